/* METIS graphs. What is accepted is written and read again: the same arcs, sizes and weights of nodes. */
#include <stdio.h>
#include <unistd.h>

#include "target.h"

static bool same_numbers(const int64_t *a, const int64_t *b, int64_t count)
{
    if (!a || !b) return a == b;
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static void write_and_read(sp_context *context, const io_graph *graph)
{
    if (graph->nodes > 100000 || graph->negative > 0) return; /* slow, and nothing new; what METIS does not take */
    char path[64];
    sp_csr matrix, copy;
    io_graph again;
    const io_read_options reading = {.format = IO_METIS};
    const io_write_options writing = {.format = IO_METIS,
                                      .constraints = graph->constraints,
                                      .node_weights = graph->node_weights,
                                      .node_sizes = graph->node_sizes};
    fuzz_file(path, sizeof path, "metis");
    fuzz_matrix(context, graph, false, &matrix);
    if (io_write_graph(context, path, &matrix, &writing) == SP_OK) { /* weights may be no whole numbers */
        fuzz_require(io_read_graph(context, path, &reading, &again) == SP_OK);
        fuzz_require(again.constraints == graph->constraints &&
                     same_numbers(again.node_weights, graph->node_weights, graph->nodes * graph->constraints) &&
                     same_numbers(again.node_sizes, graph->node_sizes, graph->nodes));
        fuzz_require(io_graph_spread(context, &again) == SP_OK);
        fuzz_matrix(context, &again, false, &copy);
        fuzz_require(copy.rows == matrix.rows && copy.nnz == matrix.nnz);
        fuzz_require(memcmp(copy.row_offsets, matrix.row_offsets, (size_t)(copy.rows + 1) * sizeof(int64_t)) == 0);
        fuzz_require(copy.nnz == 0 || (memcmp(copy.col_indices, matrix.col_indices, (size_t)copy.nnz * 4) == 0 &&
                                       memcmp(copy.values, matrix.values, (size_t)copy.nnz * 4) == 0));
        sp_csr_free(context, &copy);
        io_graph_free(context, &again);
        unlink(path);
    }
    sp_csr_free(context, &matrix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read(data, size, (io_read_options){.format = IO_METIS}, write_and_read);
}
