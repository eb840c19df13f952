/* Tab files, for a graph of ids 0..9 or of ids with gaps. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t ids[] = {1, 2, 5, 7, 8, 100, 1000, 1001, 65536, 2147483646};
    if (!fuzz_is_short(data, size)) return 0;
    sp_context *context = fuzz_context(1);
    io_graph graph = {.nodes = 10, .ids = data[0] & 1 ? ids : NULL};
    io_source *source;
    fuzz_require(io_source_memory(context, "in", data + 1, size - 1, &source) == SP_OK);
    sp_status status = io_read_tab(context, source, &graph);
    io_source_close(source);
    fuzz_require(graph.names.count == (status == SP_OK ? 10 : 0));
    fuzz_check_names(&graph.names);
    graph.ids = NULL;
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
