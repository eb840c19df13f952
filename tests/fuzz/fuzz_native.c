/* Native matrices, text and binary. What is accepted is written in both forms and read again: the same graph, once
 * repeated columns are combined. */
#include <stdio.h>
#include <unistd.h>

#include "target.h"

static sp_csr columns_of(sp_context *context, const io_graph *graph)
{
    sp_csr matrix;
    fuzz_matrix(context, graph, false, &matrix);
    return matrix;
}

static void fuzz_same_matrix(const sp_csr *a, const sp_csr *b)
{
    fuzz_require(a->rows == b->rows && a->nnz == b->nnz);
    fuzz_require(memcmp(a->row_offsets, b->row_offsets, (size_t)(a->rows + 1) * sizeof *a->row_offsets) == 0);
    if (a->nnz == 0) return;
    fuzz_require(memcmp(a->col_indices, b->col_indices, (size_t)a->nnz * sizeof *a->col_indices) == 0);
    fuzz_require(memcmp(a->values, b->values, (size_t)a->nnz * sizeof(float)) == 0);
}

static void write_and_read(sp_context *context, const io_graph *graph)
{
    if (graph->nodes > 100000) return; /* slow, and nothing new */
    char path[64];
    fuzz_file(path, sizeof path, "native");
    sp_csr matrix = columns_of(context, graph);
    for (int binary = 0; binary < 2; binary++) {
        io_graph again;
        const io_read_options options = {.format = IO_NATIVE, .lenient = true};
        fuzz_require(io_write_native_matrix(context, path, &matrix, graph->ids, NULL, 9, binary, NULL) == SP_OK);
        fuzz_require(io_read_graph(context, path, &options, &again) == SP_OK);
        fuzz_require(io_graph_spread(context, &again) == SP_OK);
        fuzz_require(!again.ids == !graph->ids);
        if (graph->ids) fuzz_require(memcmp(again.ids, graph->ids, (size_t)graph->nodes * sizeof *again.ids) == 0);
        sp_csr copy = columns_of(context, &again);
        fuzz_same_matrix(&matrix, &copy);
        sp_csr_free(context, &copy);
        io_graph_free(context, &again);
    }
    sp_csr_free(context, &matrix);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_read(data, size, (io_read_options){.format = IO_NATIVE}, write_and_read);
}
