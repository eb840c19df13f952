/* GraphML: as a graph, which is written and read again, as a table of its nodes, and as labels. */
#include "round_trip.h"

/* Other names are not kept: their bytes count as Latin-1 when they are written. */
static bool are_utf8(const io_names *names)
{
    for (int64_t i = 0; i < names->count; i++) {
        size_t left = io_name_length(names, i);
        for (const char *at = io_name(names, i); left > 0;) {
            const size_t length = io_utf8_length(at, left);
            if (length == 0) return false;
            at += length;
            left -= length;
        }
    }
    return true;
}

static void read_nodes(sp_context *context, const io_graph *graph, const uint8_t *data, size_t size)
{
    const io_node_options options = {.skip_unknown = true, .node_column = data[0] & 32 ? "id" : NULL};
    const io_label_options labels = {.column = "a", .base = IO_BASE_AUTO, .compact = true, .skip_unknown = true};
    io_source *source;
    io_node_table table;
    io_labelling labelling;
    fuzz_require(io_source_memory(context, "in", data + 1, size - 1, &source) == SP_OK);
    if (io_read_node_table_source(context, source, graph, &options, &table) == SP_OK) {
        fuzz_require(table.headings.count == table.columns && table.rows <= graph->nodes);
        for (int64_t c = 0; c < table.columns; c++)
            for (int64_t i = 0; table.column[c].is_text && i < graph->nodes; i++)
                fuzz_require(isnan(table.column[c].values[i]) || table.column[c].values[i] < (double)table.texts.count);
    }
    io_source_close(source);
    fuzz_require(io_source_memory(context, "in", data + 1, size - 1, &source) == SP_OK);
    if (io_read_labels_source(context, source, graph, &labels, &labelling) == SP_OK)
        for (int64_t i = 0; i < graph->nodes; i++)
            fuzz_require(labelling.labels[i] >= -1 && labelling.labels[i] < labelling.groups);
    io_source_close(source);
    io_node_table_free(context, &table);
    io_labelling_free(context, &labelling);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!fuzz_is_short(data, size)) return 0;
    const io_read_options options = {.format = IO_GRAPHML, .values = data[0] & 1 ? SP_F32 : SP_F64,
                                     .node_column = data[0] & 32 ? "id" : NULL,
                                     .score_column = data[0] & 64 ? "a" : NULL};
    sp_context *context = fuzz_context(1);
    io_graph graph;
    if (io_read_memory(context, "in", data + 1, size - 1, &options, 0, &graph) == SP_OK) {
        fuzz_check_graph(&graph, &options);
        fuzz_require(graph.names.count == graph.nodes);
        if (are_utf8(&graph.names)) fuzz_round_trip(context, &graph, IO_GRAPHML);
        read_nodes(context, &graph, data, size);
    } else {
        fuzz_require(graph.tails == NULL && graph.nodes == 0);
    }
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
