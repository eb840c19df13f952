/* An order of A's rows in which the rows of a community follow one another.
 *
 * Communities come from label propagation (Raghavan et al., 2007): in each round a node takes the label that most of
 * its neighbours have. The first label of a node is the smallest hash among it and its neighbours, which a dozen nodes
 * of a community share at once, so four rounds are enough: in graphs with 80 % of the edges inside communities of 500
 * and 3,000 nodes, nearly all nodes then have the label of their community. 32 neighbours of a node vote in a round,
 * others in the next. All nodes change at once, so the order is the same in every run.
 *
 * In a graph without communities one label would spread over all nodes. So a test comes first: for some thousand pairs
 * of neighbours of a node, whether they are neighbours of each other. In R-MAT and uniform graphs as many are as
 * degrees lead to expect (0.2 and 0.1 %), in graphs with communities ten times as many and more (7 %).
 *
 * Rows keep their entries, and columns keep their numbers: only the order of work changes. The preparation reads A's
 * columns once and gathers 4 x 32 labels a row: 0.6 ms for 233,000 rows of 450, 3.6 for 2.4 million of 50. The
 * numbering on the host (core/community.c) weighs all entries and takes hundreds of times as long.
 */
#include "device/entries.cuh"
#include "device/radix.cuh"
#include "spmm/cuda/spmm.cuh"

enum { THREADS = ENTRY_THREADS };
enum { ROUNDS = 4, MOST_LOOKED = 512 /* entries of a row, for the first label */ };
enum { ASKED = 32768 /* pairs of neighbours */ };
/* Entries a row: of fewer neighbours too few lie in a community. */
static const int64_t LEAST_MEAN = 16;

static __device__ __forceinline__ uint32_t mix(uint32_t z)
{
    z = (z ^ z >> 16) * 0x7feb352du;
    z = (z ^ z >> 15) * 0x846ca68bu;
    return z ^ z >> 16;
}

/* Pairs of neighbours: asked, how many of them are neighbours of each other, and of 2^20 how many would be by
 * chance. Not of hubs, which have common neighbours with all. */
struct pair_counts {
    unsigned long long asked, closed, chance;
};

static __global__ void __launch_bounds__(THREADS)
    ask_pairs(int64_t rows, int64_t nnz, const int64_t *offsets, const int32_t *cols, pair_counts *counts)
{
    const uint32_t at = blockIdx.x * THREADS + threadIdx.x;
    const int64_t row = (int64_t)((uint64_t)mix(at) * (uint64_t)rows >> 32), most = 4 * (nnz / rows);
    const int64_t begin = offsets[row], entries = offsets[row + 1] - begin;
    bool asked = false, closed = false;
    float chance = 0;
    if (entries >= 2 && entries <= most) {
        const int32_t one = cols[begin + mix(at + ASKED) % entries];
        const int32_t other = cols[begin + mix(at + 2 * ASKED) % entries];
        const int64_t first = offsets[one], end = offsets[one + 1];
        const int64_t of_one = end - first, of_other = offsets[other + 1] - offsets[other];
        asked = one != other && of_one <= most && of_other <= most;
        chance = asked ? (float)of_one * (float)of_other / (float)nnz : 0;
        if (asked) {
            const int64_t found = lower_bound_i32(cols, first, end, other);
            closed = found < end && cols[found] == other;
        }
    }
    const int all = __popc(__ballot_sync(FULL_WARP, asked)), yes = __popc(__ballot_sync(FULL_WARP, closed));
    for (int step = 16; step > 0; step /= 2) chance += __shfl_xor_sync(FULL_WARP, chance, step);
    if (threadIdx.x % 32) return;
    atomicAdd(&counts->asked, (unsigned long long)all);
    atomicAdd(&counts->closed, (unsigned long long)yes);
    atomicAdd(&counts->chance, (unsigned long long)(chance * 1048576.f));
}

/* A warp a row. */
static __global__ void __launch_bounds__(THREADS)
    start_labels(int64_t rows, const int64_t *offsets, const int32_t *cols, uint32_t *labels)
{
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    if (row >= rows) return;
    const int64_t begin = offsets[row], entries = offsets[row + 1] - begin;
    const int64_t step = entries > MOST_LOOKED ? entries / MOST_LOOKED : 1;
    uint32_t least = mix((uint32_t)row);
    for (int64_t k = threadIdx.x % 32 * step; k < entries; k += 32 * step)
        least = min(least, mix((uint32_t)cols[begin + k]));
    for (int s = 16; s > 0; s /= 2) least = min(least, __shfl_xor_sync(FULL_WARP, least, s));
    if (threadIdx.x % 32 == 0) labels[row] = least;
}

/* A warp a row: the label that most of 32 neighbours have, of equals the smallest. votes: how many there were, and
 * how many were for the label taken. */
static __global__ void __launch_bounds__(THREADS)
    vote(int64_t rows, int round, const int64_t *offsets, const int32_t *cols, const uint32_t *labels,
         uint32_t *taken, unsigned long long *votes)
{
    const int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32;
    if (row >= rows) return;
    const int lane = threadIdx.x % 32;
    const int64_t begin = offsets[row], entries = offsets[row + 1] - begin;
    const uint32_t own = labels[row];
    int64_t at = lane;
    if (entries > 32) at = (mix((uint32_t)row * 31u + (uint32_t)round) % entries + lane * entries / 32) % entries;
    const bool votes_here = lane < entries;
    const uint32_t label = votes_here ? labels[cols[begin + at]] : own;
    const unsigned voters = __ballot_sync(FULL_WARP, votes_here);
    const int count = __popc(__match_any_sync(FULL_WARP, label) & voters) + (label == own);
    unsigned long long best = (unsigned long long)count << 32 | (uint32_t)~label;
    for (int step = 16; step > 0; step /= 2) best = max(best, __shfl_xor_sync(FULL_WARP, best, step));
    if (lane) return;
    taken[row] = ~(uint32_t)best;
    if (round == ROUNDS - 1 && row % 64 == 0) {
        atomicAdd(votes, (unsigned long long)(__popc(voters) + 1));
        atomicAdd(votes + 1, (unsigned long long)(best >> 32));
    }
}

/* *larger: rows of communities of more than `size`, without the last `size` of each. */
static __global__ void __launch_bounds__(THREADS)
    count_larger(int64_t rows, int64_t size, const uint32_t *sorted, unsigned long long *larger)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int count = __popc(__ballot_sync(FULL_WARP, at + size < rows && sorted[at] == sorted[at + size]));
    if (threadIdx.x % 32 == 0 && count) atomicAdd(larger, (unsigned long long)count);
}

static __global__ void __launch_bounds__(THREADS) count_up(int64_t rows, int32_t *to)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at < rows) to[at] = (int32_t)at;
}

static sp_status has_communities(sp_context *context, const sp_csr *a, bool *has)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<pair_counts> counts;
    pair_counts seen;
    CHECK(counts.allocate(context, 1));
    CHECK(counts.fill(0, 1));
    ask_pairs<<<ASKED / THREADS, THREADS, 0, stream>>>(a->rows, a->nnz, a->row_offsets, a->col_indices, counts.data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(&seen, counts.data, sizeof seen, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    const double closed = (double)seen.closed, chance = (double)seen.chance / 1048576;
    *has = closed > 0.005 * (double)seen.asked && closed > 8 * chance;
    return SP_OK;
}

/* labels, and taken as room for others: those of the last round. */
static sp_status propagate(sp_context *context, const sp_csr *a, uint32_t *labels, uint32_t *taken,
                           unsigned long long *votes)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    const unsigned blocks = thread_blocks(a->rows * 32);
    start_labels<<<blocks, THREADS, 0, stream>>>(a->rows, a->row_offsets, a->col_indices, labels);
    CUDA_CHECK(cudaGetLastError());
    static_assert(ROUNDS % 2 == 0, "the last round writes labels");
    for (int round = 0; round < ROUNDS; round++) {
        vote<<<blocks, THREADS, 0, stream>>>(a->rows, round, a->row_offsets, a->col_indices,
                                             round % 2 ? taken : labels, round % 2 ? labels : taken, votes);
        CUDA_CHECK(cudaGetLastError());
    }
    return SP_OK;
}

sp_status cuda_spmm_order(sp_context *context, const sp_csr *a, int64_t most, int64_t few,
                          device_array<int32_t> *order, bool *small)
{
    cudaStream_t stream = cuda_state_of(context)->stream;
    device_array<uint32_t> labels, taken;
    device_array<int32_t> numbers;
    device_array<unsigned long long> counts; /* votes, those for what was taken, rows of large communities */
    unsigned long long seen[4];
    bool has = false;
    *small = false;
    if (a->rows != a->cols || a->nnz < LEAST_MEAN * a->rows) return SP_OK;
    CHECK(has_communities(context, a, &has));
    if (!has) return SP_OK;
    CHECK(labels.allocate(context, a->rows));
    CHECK(taken.allocate(context, a->rows));
    CHECK(numbers.allocate(context, a->rows));
    CHECK(counts.allocate(context, 4));
    CHECK(counts.fill(0, 4));
    CHECK(propagate(context, a, labels.data, taken.data, counts.data));
    count_up<<<thread_blocks(a->rows), THREADS, 0, stream>>>(a->rows, numbers.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(order->allocate(context, a->rows));
    CHECK(radix_sort_pairs(context, labels.data, taken.data, numbers.data, order->data, a->rows, 32));
    count_larger<<<thread_blocks(a->rows), THREADS, 0, stream>>>(a->rows, most, taken.data, counts.data + 2);
    CUDA_CHECK(cudaGetLastError());
    count_larger<<<thread_blocks(a->rows), THREADS, 0, stream>>>(a->rows, few, taken.data, counts.data + 3);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyAsync(seen, counts.data, sizeof seen, cudaMemcpyDeviceToHost, stream));
    CHECK(cuda_finish(context));
    if (2 * seen[1] < seen[0] || (int64_t)seen[2] > a->rows / 8) order->free();
    else *small = (int64_t)seen[3] <= a->rows / 2;
    return SP_OK;
}
