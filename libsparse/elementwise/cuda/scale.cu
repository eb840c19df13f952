/* Scaling of rows and columns on a CUDA device: values[e] = A's entry (i, j) · (row_factors[i] · col_factors[j]).
 *
 * A block takes 2,048 entries, whatever their rows. An entry reads and writes its value. If columns are scaled it also
 * reads its column and a factor at random, which the second-level cache holds up to some 5 million columns. */
#include "device/entries.cuh"

/* f32 is held to 32 registers, with which processors are full: with 40 it takes a tenth longer. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS, sizeof(V) == sizeof(float) ? ARCH_THREADS / ENTRY_THREADS : 1)
    scale_entries(int64_t rows, int64_t nnz, matrix_view<V> a, const double *row_factors, const double *col_factors,
                  V *values)
{
    const auto scaled = [&](int64_t row, int64_t at) {
        const double by_row = row_factors ? __ldg(row_factors + row) : 1;
        const double by_col = col_factors ? __ldg(col_factors + a.cols[at]) : 1;
        return (V)((a.values ? (double)a.values[at] : 1) * (by_row * by_col));
    };
    for_entries(rows, nnz, a.offsets, scaled, [&](int64_t at, V value) { values[at] = value; });
}

sp_status sp_cuda_scale(sp_context *context, const sp_csr *a, const double *row_factors, const double *col_factors,
                        void *values)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    if (a->nnz == 0) return SP_OK;
    if (a->value_type == SP_F32)
        scale_entries<<<entry_blocks(a->nnz), ENTRY_THREADS, 0, stream>>>(a->rows, a->nnz, view_of<float>(a),
                                                                          row_factors, col_factors, (float *)values);
    else
        scale_entries<<<entry_blocks(a->nnz), ENTRY_THREADS, 0, stream>>>(a->rows, a->nnz, view_of<double>(a),
                                                                          row_factors, col_factors, (double *)values);
    CUDA_CHECK(cudaGetLastError());
    return cuda_finish(context);
}
