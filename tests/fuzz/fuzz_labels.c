/* Label files of every kind, for graphs with names, with numbers as names, with ids or with neither. The groups of an
 * accepted one are written as clusters, and read again. */
#include "round_trip.h"

enum { NODES = 10 };

static void check(sp_context *context, const io_labelling *l, const io_label_options *options)
{
    fuzz_require(l->groups >= 0 && l->groups <= INT32_MAX);
    fuzz_require(l->names.count == 0 || l->names.count == l->groups);
    fuzz_check_names(&l->names);
    fuzz_require(!l->labels == (l->s.row_offsets != NULL));
    fuzz_require(l->base == options->base || (options->base == IO_BASE_AUTO && l->base >= 0 && l->base <= 1));
    int64_t unlabelled = 0;
    for (int64_t i = 0; l->labels && i < NODES; i++) {
        fuzz_require(l->labels[i] >= -1 && l->labels[i] < l->groups);
        unlabelled += l->labels[i] < 0;
    }
    if (l->labels) fuzz_require(unlabelled == l->unlabelled);
    else fuzz_require(l->s.rows == l->groups && l->s.cols == NODES && sp_csr_check(context, &l->s) == SP_OK);
    for (int64_t p = 1; l->numbers && p < l->groups; p++) fuzz_require(l->numbers[p - 1] < l->numbers[p]);
    fuzz_require(!l->numbers || options->compact);
    fuzz_require(!l->incomplete || options->other_graph);
    for (int64_t p = 0; l->incomplete && p < l->groups; p++) fuzz_require(l->incomplete[p] <= 1);
    fuzz_require((l->unknown > 0) == (l->incomplete != NULL));
}

/* The groups that have nodes, as lists. */
typedef struct listed {
    io_clusters clusters;
    int64_t *offsets;
    int32_t *members;
} listed;

static listed list_groups(const io_labelling *l)
{
    const int64_t entries = l->labels ? NODES : l->s.nnz;
    listed all = {.offsets = malloc((size_t)(entries + 1) * sizeof *all.offsets),
                  .members = malloc((size_t)(entries + 1) * sizeof *all.members)};
    int64_t used = 0, count = 0;
    fuzz_require(all.offsets && all.members);
    all.offsets[0] = 0;
    for (int32_t last = -1; l->labels;) { /* the next larger label that a node has */
        int32_t label = INT32_MAX;
        for (int i = 0; i < NODES; i++)
            if (l->labels[i] > last && l->labels[i] < label) label = l->labels[i];
        if (label == INT32_MAX) break;
        for (int32_t i = 0; i < NODES; i++)
            if (l->labels[i] == label) all.members[used++] = i;
        all.offsets[++count] = used;
        last = label;
    }
    for (int64_t p = 0; !l->labels && p < l->groups; p++) {
        for (int64_t e = l->s.row_offsets[p]; e < l->s.row_offsets[p + 1]; e++)
            all.members[used++] = l->s.col_indices[e];
        if (used > all.offsets[count]) all.offsets[++count] = used;
    }
    all.clusters = (io_clusters){.nodes = NODES, .clusters = count, .offsets = all.offsets, .members = all.members};
    return all;
}

/* As clusters of names or, for graphs without names, as mcl's matrix. */
static void write_and_read(sp_context *context, const io_labelling *l, const io_graph *graph)
{
    listed written = list_groups(l), found;
    char path[64];
    io_output *out;
    io_labelling again;
    const bool named = graph->names.count > 0;
    const io_label_options reading = {.format = named ? IO_LABELS_CLUSTERS : IO_LABELS_NATIVE};
    fuzz_file(path, sizeof path, "labels");
    fuzz_require(io_output_open(context, path, &out) == SP_OK);
    if (named) io_put_label_clusters(out, &written.clusters, &graph->names);
    else io_put_native_clusters(out, &written.clusters, graph->ids, NULL);
    fuzz_require(io_output_commit(out) == SP_OK);
    const sp_status status = io_read_labels(context, path, graph, &reading, &again);
    if (status != SP_OK) fprintf(stderr, "%s\n", sp_last_error(context));
    fuzz_require(status == SP_OK);
    unlink(path);
    found = list_groups(&again);
    fuzz_require(found.clusters.clusters == written.clusters.clusters);
    for (int64_t c = 0; c <= written.clusters.clusters; c++) fuzz_require(found.offsets[c] == written.offsets[c]);
    for (int64_t i = 0; i < written.offsets[written.clusters.clusters]; i++)
        fuzz_require(found.members[i] == written.members[i]);
    io_labelling_free(context, &again);
    free(written.offsets);
    free(written.members);
    free(found.offsets);
    free(found.members);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const edges[] = {"a b\nc d\ne f\ng h\ni jj kk\n", "0 1\n2 3\n4 5\n6 7\n8 9\n"};
    int64_t ids[NODES] = {1, 2, 5, 7, 8, 100, 1000, 1001, 65536, 2147483646};
    if (size < 2 || !fuzz_is_short(data, size)) return 0;
    const int kind = data[0] & 3;
    const io_read_options reading = {.format = IO_ETC};
    const io_label_options options = {.format = (io_label_format)((data[0] >> 2 & 7) % 5),
                                      .base = data[0] % 5 % 3 - 1,
                                      .other_graph = (data[0] >> 2 & 7) == 5,
                                      .compact = (data[0] >> 6 & 1) && (data[0] >> 2 & 7) != 5,
                                      .skip_unknown = data[0] >> 7};
    sp_context *context = fuzz_context(1);
    io_graph graph = {.format = IO_MTX, .nodes = NODES, .first = 1, .ids = kind == 3 ? ids : NULL};
    if (kind < 2) {
        fuzz_require(io_read_memory(context, "graph", edges[kind], strlen(edges[kind]), &reading, 0, &graph) ==
                     SP_OK);
        fuzz_require(graph.nodes == NODES + (kind == 0));
        graph.nodes = NODES;
        graph.names.count = NODES;
    }
    io_labelling labelling;
    io_source *source;
    fuzz_require(io_source_memory(context, "in", data + 1, size - 1, &source) == SP_OK);
    if (io_read_labels_source(context, source, &graph, &options, &labelling) == SP_OK) {
        check(context, &labelling, &options);
        if (size % 4 == 0 && labelling.unlabelled < NODES) write_and_read(context, &labelling, &graph);
    } else fuzz_require(labelling.labels == NULL && labelling.groups == 0);
    io_source_close(source);
    io_labelling_free(context, &labelling);
    graph.ids = NULL;
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
