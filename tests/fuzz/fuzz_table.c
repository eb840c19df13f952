/* Tables of nodes, for graphs with names, with numbers as names, with ids or with neither. */
#include <math.h>

#include "target.h"

enum { NODES = 10 };

static void check(const io_node_table *table)
{
    fuzz_require(table->columns >= 0 && table->headings.count == table->columns);
    fuzz_check_names(&table->headings);
    fuzz_check_names(&table->texts);
    for (int64_t c = 0; c < table->columns; c++)
        for (int64_t i = 0; i < NODES; i++) {
            const double value = table->column[c].values[i];
            if (isnan(value)) continue;
            fuzz_require(isfinite(value));
            if (!table->column[c].is_text) continue;
            fuzz_require(value >= 0 && value < (double)table->texts.count && value == floor(value));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const edges[] = {"a b\nc d\ne f\ng h\ni j\n", "0 1\n2 3\n4 5\n6 7\n8 9\n"};
    int64_t ids[NODES] = {1, 2, 5, 7, 8, 100, 1000, 1001, 65536, 2147483646};
    if (size < 2 || !fuzz_is_short(data, size)) return 0;
    const int kind = data[0] & 3;
    const io_read_options reading = {.format = IO_ETC};
    const io_node_options options = {.skip_unknown = data[0] >> 3 & 1, .classes = data[0] >> 4 & 1};
    sp_context *context = fuzz_context(1);
    io_graph graph = {.format = IO_MTX, .nodes = NODES, .ids = kind == 3 ? ids : NULL};
    if (kind < 2)
        fuzz_require(io_read_memory(context, "graph", edges[kind], strlen(edges[kind]), &reading, 0, &graph) == SP_OK);
    fuzz_require(graph.nodes == NODES);
    io_node_table table;
    io_source *source;
    fuzz_require(io_source_memory(context, "in", data + 1, size - 1, &source) == SP_OK);
    if (io_read_node_table_source(context, source, &graph, &options, &table) == SP_OK) check(&table);
    else fuzz_require(table.columns == 0 && !table.column);
    io_source_close(source);
    io_node_table_free(context, &table);
    graph.ids = NULL;
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
