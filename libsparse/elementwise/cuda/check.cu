/* Whether a matrix on a CUDA device is what sp_csr promises. Nothing is said of where it is not: then the CPU reads a
 * copy. First a thread a row reads the offsets, on which the entries of the second kernel rely. */
#include "device/entries.cuh"

static __global__ void __launch_bounds__(ENTRY_THREADS)
    check_offsets(int64_t rows, int64_t nnz, const int64_t *offsets, int *wrong)
{
    const int64_t row = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (row > rows) return;
    const int64_t begin = offsets[row];
    const bool fits = row < rows ? begin <= offsets[row + 1] : begin == nnz;
    if (!fits || (row == 0 && begin != 0)) *wrong = 1;
}

template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    check_entries(int64_t rows, int64_t cols, int64_t nnz, matrix_view<V> a, int *wrong)
{
    const auto is_sound = [&](int64_t row, int64_t at) {
        const int32_t col = __ldg(a.cols + at);
        const bool ascends = at == __ldg(a.offsets + row) || __ldg(a.cols + at - 1) < col;
        return ascends && col >= 0 && col < cols && (!a.values || isfinite(__ldg(a.values + at)));
    };
    for_entries(rows, nnz, a.offsets, is_sound, [&](int64_t, bool sound) {
        if (!sound) *wrong = 1;
    });
}

sp_status sp_cuda_is_sound(sp_context *context, const sp_csr *matrix, bool *sound)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t rows = matrix->rows, nnz = matrix->nnz;
    device_array<int> wrong;
    int found = 0;
    CHECK(wrong.allocate(context, 1));
    CHECK(wrong.fill(0, 1));
    check_offsets<<<thread_blocks(rows + 1), ENTRY_THREADS, 0, stream>>>(rows, nnz, matrix->row_offsets, wrong.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(sp_array_copy(context, 1, sizeof found, &found, SP_HOST, wrong.data, SP_DEVICE));
    if (!found && nnz > 0) {
        if (matrix->value_type == SP_F32)
            check_entries<<<entry_blocks(nnz), ENTRY_THREADS, 0, stream>>>(rows, matrix->cols, nnz,
                                                                           view_of<float>(matrix), wrong.data);
        else
            check_entries<<<entry_blocks(nnz), ENTRY_THREADS, 0, stream>>>(rows, matrix->cols, nnz,
                                                                           view_of<double>(matrix), wrong.data);
        CUDA_CHECK(cudaGetLastError());
        CHECK(sp_array_copy(context, 1, sizeof found, &found, SP_HOST, wrong.data, SP_DEVICE));
    }
    *sound = !found;
    return cuda_finish(context);
}
