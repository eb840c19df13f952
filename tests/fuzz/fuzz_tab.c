/* Tab files, for a graph of ids 0..9 or of ids with gaps. The names of an accepted one are written, ID<TAB>LABEL a
 * line, and read again. */
#include "target.h"

/* The tab file of the graph; the caller frees it. */
static char *write_tab(const io_graph *graph, size_t *size)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, size);
    fuzz_require(out != NULL);
    for (int64_t i = 0; i < graph->nodes; i++) {
        fprintf(out, "%lld\t", (long long)(graph->ids ? graph->ids[i] : i));
        fwrite(io_name(&graph->names, i), 1, io_name_length(&graph->names, i), out);
        fputc('\n', out);
    }
    fuzz_require(fclose(out) == 0);
    return bytes;
}

static void write_and_read(sp_context *context, const io_graph *graph)
{
    io_graph again = {.nodes = graph->nodes, .ids = graph->ids};
    io_source *source;
    size_t size;
    char *bytes = write_tab(graph, &size);
    fuzz_require(io_source_memory(context, "again", bytes, size, &source) == SP_OK);
    fuzz_require(io_read_tab(context, source, &again) == SP_OK);
    io_source_close(source);
    free(bytes);
    for (int64_t i = 0; i < graph->nodes; i++) {
        const size_t length = io_name_length(&graph->names, i);
        fuzz_require(io_name_length(&again.names, i) == length);
        fuzz_require(memcmp(io_name(&again.names, i), io_name(&graph->names, i), length) == 0);
    }
    io_names_free(context, &again.names);
}

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
    if (status == SP_OK) write_and_read(context, &graph);
    graph.ids = NULL;
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
