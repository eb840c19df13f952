/* Label files of every kind, for graphs with names, with numbers as names, with ids or with neither. */
#include "target.h"

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
    if (io_read_labels_source(context, source, &graph, &options, &labelling) == SP_OK)
        check(context, &labelling, &options);
    else fuzz_require(labelling.labels == NULL && labelling.groups == 0);
    io_source_close(source);
    io_labelling_free(context, &labelling);
    graph.ids = NULL;
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
