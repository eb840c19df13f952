/* Text of features, classes, edges and GraphSAINT's JSON, one of them by the first byte; from a file, as their
 * readers open it twice. */
#include <stdio.h>
#include <unistd.h>

#include "target.h"

static const char *file_of(const uint8_t *data, size_t size)
{
    static char path[64];
    fuzz_file(path, sizeof path, "nodes");
    FILE *file = fopen(path, "wb");
    fuzz_require(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return path;
}

static void read_features(sp_context *context, const char *path)
{
    sp_dense dense;
    sp_csr sparse;
    io_names names;
    if (io_read_features(context, path, NULL, &dense, &sparse, &names, NULL) != SP_OK) return;
    for (int64_t e = 0; dense.values && e < dense.rows * dense.cols; e++)
        fuzz_require(isfinite(((float *)dense.values)[e]));
    if (sparse.row_offsets) fuzz_require(sp_csr_check(context, &sparse) == SP_OK);
    fuzz_check_names(&names);
    fuzz_require(names.count == 0 || names.count == dense.rows);
    sp_dense_free(context, &dense);
    sp_csr_free(context, &sparse);
    io_names_free(context, &names);
}

static void check_classes(sp_context *context, io_classes *c)
{
    for (int64_t i = 0; c->labels && i < c->nodes; i++) fuzz_require(c->labels[i] >= -1 && c->labels[i] < c->classes);
    for (int64_t e = 0; c->targets && e < c->nodes * c->classes; e++) fuzz_require(c->targets[e] <= 1);
    fuzz_check_names(&c->names);
    io_classes_free(context, c);
}

/* What a graph of nodes with names reads: tables, lists, edges. */
static void read_named(sp_context *context, bool drop, const char *path)
{
    static const char edges[] = "a b\nc d\ne 1\n";
    const io_read_options reading = {.format = IO_ABC};
    int64_t unknown = 0, count;
    int32_t *nodes;
    io_graph graph;
    io_classes classes;
    sp_csr matrix;
    bool table;
    fuzz_require(io_read_memory(context, "graph", edges, sizeof edges - 1, &reading, 0, &graph) == SP_OK);
    const io_adjacency_options options = {.nodes = graph.nodes, .names = &graph.names, .unknown = drop
                                          ? &unknown : NULL};
    if (io_is_node_table(context, path, NULL, &graph, &table) == SP_OK && table &&
        io_read_class_table(context, path, NULL, &graph, options.unknown, &classes) == SP_OK)
        check_classes(context, &classes);
    if (io_read_node_list(context, path, NULL, &graph, options.unknown, &nodes, &count) == SP_OK) {
        for (int64_t i = 0; i < count; i++) fuzz_require(nodes[i] >= 0 && nodes[i] < graph.nodes);
        sp_free(context, nodes);
    }
    if (io_read_node_pairs(context, path, NULL, &graph, &nodes, &count) == SP_OK) {
        for (int64_t i = 0; i < 2 * count; i++) fuzz_require(nodes[i] >= 0 && nodes[i] < graph.nodes);
        sp_free(context, nodes);
    }
    if (io_read_adjacency(context, path, &options, &matrix) == SP_OK) {
        fuzz_require(sp_csr_check(context, &matrix) == SP_OK);
        sp_csr_free(context, &matrix);
    }
    fuzz_require(unknown >= 0 && (drop || unknown == 0));
    io_graph_free(context, &graph);
}

static void read_weights(sp_context *context, const char *path)
{
    int64_t *weights;
    int each;
    if (io_read_node_weights(context, path, NULL, 4, &weights, &each) != SP_OK) return;
    fuzz_require(each >= 1 && each <= 1024);
    for (int i = 0; i < 4 * each; i++) fuzz_require(weights[i] >= 0 && weights[i] <= INT64_C(1) << 53);
    sp_free(context, weights);
}

static void read_one(sp_context *context, int kind, bool undirected, const char *path)
{
    const io_adjacency_options options = {.nodes = undirected ? 50 : 0, .undirected = undirected};
    io_classes classes;
    uint8_t *roles;
    int32_t *numbers;
    int64_t count;
    sp_csr graph;
    switch (kind) {
    case 0: read_features(context, path); break;
    case 1:
        if (io_read_classes(context, path, NULL, &classes) == SP_OK) check_classes(context, &classes);
        break;
    case 2:
        if (io_read_adjacency(context, path, &options, &graph) != SP_OK) break;
        fuzz_require(sp_csr_check(context, &graph) == SP_OK);
        sp_csr_free(context, &graph);
        break;
    case 3:
        if (io_read_class_map(context, path, NULL, 5, &classes) == SP_OK) check_classes(context, &classes);
        break;
    case 4:
        if (io_read_roles(context, path, NULL, 5, &roles) == SP_OK) sp_free(context, roles);
        break;
    case 6: read_named(context, undirected, path); break;
    case 7: read_weights(context, path); break;
    default:
        if (io_read_numbers(context, path, NULL, 0, 9, NULL, &numbers, &count) == SP_OK) sp_free(context, numbers);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!fuzz_is_short(data, size)) return 0;
    sp_context *context = fuzz_context(data[0] & 64 ? 2 : 1);
    const char *path = file_of(data + 1, size - 1);
    read_one(context, data[0] & 7, data[0] & 128, path);
    unlink(path);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
