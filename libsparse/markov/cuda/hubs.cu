/* Rows of the Markov product with very many entries in A, of hubs. A block that summed one would meet at a barrier for
 * each row of B: 864 ms for a hub of 150,000 neighbours (H200), while nothing else is left to do. Their products are
 * sorted and summed by the whole device (spgemm/cuda/giant.cu), in A's order as everywhere; a block prunes a row. */
#include "markov/cuda/epilogue.cuh"
#include "spgemm/cuda/classes.cuh"

enum { HUB_THREADS = 512 };

/* A summed row by its sums in f64. */
struct summed_entries {
    const int32_t *cols;
    const double *sums;
    int length;
    static constexpr bool SORTED = true;
    __device__ int count() const { return length; }
    __device__ int32_t col(int i) const { return cols[i]; }
    __device__ float value(int i) const { return entry_value(sums[i]); }
};

/* A block a row. */
static __global__ void __launch_bounds__(HUB_THREADS)
    prune_rows(markov_job job, const int32_t *rows, const int64_t *firsts, const int32_t *cols, const double *sums)
{
    __shared__ markov_memory memory;
    const int64_t first = firsts[blockIdx.x];
    const summed_entries entries = {cols + first, sums + first, (int)(firsts[blockIdx.x + 1] - first)};
    const row_facts facts = examine<HUB_THREADS>(entries, memory.reduce);
    unsigned long long place;
    finish_row<HUB_THREADS>(job, rows[blockIdx.x], facts, entries, entries, memory, &place);
}

sp_status cuda_markov_hubs(sp_context *context, const markov_job &job, const sp_csr *a, const sp_csr *b,
                           const int32_t *rows, int64_t count, bool *made)
{
    giant_rows hubs = {};
    CHECK(form_giant_rows<float>(context, a, b, rows, count, job.f32_from, job.lengths, &hubs, made));
    if (!*made) return SP_OK;
    prune_rows<<<(unsigned)count, HUB_THREADS, 0, stream_of(context)>>>(job, hubs.rows.data, hubs.firsts.data,
                                                                        hubs.cols.data, hubs.sums.data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}
