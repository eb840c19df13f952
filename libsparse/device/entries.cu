/* Subsets of the entries of a matrix: see entries.cuh. The counts take 8 bytes for every 32 members. */
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "device/entries.cuh"

static int64_t words_for(int64_t members) { return members / 32 + 1; }

sp_status marked_part::create(sp_context *context, int64_t members)
{
    CHECK(words.allocate(context, words_for(members)));
    return words.fill(0, words_for(members));
}

struct count_bits {
    const uint32_t *words;
    int64_t count;
    __device__ __forceinline__ int64_t operator()(int64_t i) const { return i < count ? __popc(words[i]) : 0; }
};

sp_status marked_part::count(sp_context *context, int64_t members)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const int64_t n = words_for(members);
    const auto bits = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0),
                                                      count_bits{words.data, n});
    device_array<char> scratch;
    size_t bytes = 0;
    CHECK(before.allocate(context, n + 1));
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, bits, before.data, n + 1, stream));
    CHECK(scratch.allocate(context, (int64_t)bytes));
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(scratch.data, bytes, bits, before.data, n + 1, stream));
    CUDA_CHECK(cudaMemcpyAsync(&total, before.data + n, sizeof total, cudaMemcpyDeviceToHost, stream));
    return cuda_finish(context);
}

static __global__ void __launch_bounds__(ENTRY_THREADS)
    place_rows(int64_t rows, const int64_t *offsets, member_places part, int64_t *to)
{
    const int64_t row = (int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x;
    if (row <= rows) to[row] = part.place(offsets[row]);
}

/* A warp processes 32 entries at a time, those of one word of bits. Everything is loaded before anything is stored. */
template <typename V>
static __global__ void __launch_bounds__(ENTRY_THREADS)
    take_entries(int64_t nnz, matrix_view<V> a, member_places part, const int32_t *names, int32_t *cols, V *values)
{
    const int lane = threadIdx.x % 32;
    const int64_t begin = ((int64_t)blockIdx.x * ENTRY_THREADS + threadIdx.x) / 32 * 32 * ENTRIES_A_THREAD + lane;
    uint32_t word[ENTRIES_A_THREAD];
    int64_t to[ENTRIES_A_THREAD];
    int32_t col[ENTRIES_A_THREAD];
    V value[ENTRIES_A_THREAD];
#pragma unroll
    for (int i = 0; i < ENTRIES_A_THREAD; i++) {
        const int64_t at = begin + i * 32;
        word[i] = at < nnz ? __ldg(part.words + at / 32) : 0;
        to[i] = at < nnz ? __ldg(part.before + at / 32) : 0;
    }
#pragma unroll
    for (int i = 0; i < ENTRIES_A_THREAD; i++)
        if (word[i] >> lane & 1) {
            col[i] = __ldg(a.cols + begin + i * 32);
            if (values) value[i] = __ldg(a.values + begin + i * 32);
        }
#pragma unroll
    for (int i = 0; i < ENTRIES_A_THREAD; i++)
        if (word[i] >> lane & 1) {
            const int64_t place = to[i] + __popc(word[i] & ((1u << lane) - 1));
            cols[place] = names ? __ldg(names + col[i]) : col[i];
            if (values) values[place] = value[i];
        }
}

sp_status cuda_take_marked(sp_context *context, const sp_csr *a, const marked_part *part, int64_t cols,
                           const int32_t *names, sp_csr *b)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const unsigned blocks = entry_blocks(a->nnz);
    CHECK(sp_csr_create_like(context, a, a->rows, cols, part->total, SP_DEVICE, b));
    place_rows<<<thread_blocks(a->rows + 1), ENTRY_THREADS, 0, stream>>>(a->rows, a->row_offsets, part->places(),
                                                                         b->row_offsets);
    if (part->total > 0 && a->value_type == SP_F32)
        take_entries<<<blocks, ENTRY_THREADS, 0, stream>>>(a->nnz, view_of<float>(a), part->places(), names,
                                                           b->col_indices, (float *)b->values);
    else if (part->total > 0)
        take_entries<<<blocks, ENTRY_THREADS, 0, stream>>>(a->nnz, view_of<double>(a), part->places(), names,
                                                           b->col_indices, (double *)b->values);
    const sp_status status = cuda_status(context, cudaGetLastError(), "take_entries");
    if (status != SP_OK) sp_csr_free(context, b);
    return status;
}
