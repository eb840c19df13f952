/* The steps of sampling on a CUDA device (sample.h describes each, sample.c their order): marks and lists here,
 * counts and draws in sample_draw.cu, the blocks in sample_finish.cu. A launch works on all minibatches of a bulk,
 * with a row of blocks for each.
 *
 * Node-wise, P = Q·A consists of rows of A: 8, 16 or 32 lanes take a row, draw places in it and read these columns
 * only; P is never formed. New nodes are found without a sort: a bit for each node and minibatch is set, and the bits
 * are counted and listed, ascending. A table of 4 bytes a node and minibatch turns columns into places, which are
 * sorted within rows in registers. Warps take rows of more than 32 entries, and blocks sort these in shared memory.
 *
 * Bytes an entry: 32 for its column in A, 4 written and read again; a bit in a table of n / 8 bytes a minibatch,
 * mostly in the first-level cache; 32 for its place; 4 for its column in the block: 76 (44 more for a value). 64 of
 * them are sectors of random reads, from the second-level cache if the graph and the table of 4n bytes a minibatch
 * fit it. Beside them 50 bytes a row and, for each layer, n / 4 bytes a minibatch. A bulk costs some 15 launches a
 * layer and one wait for sizes, two if rows may be long. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "sample.cuh"

enum { WORDS_A_THREAD = 4, CHUNK_WORDS = THREADS * WORDS_A_THREAD };

sp_status gnn_cuda_sample_to_host(const gnn_sampler *s, int64_t count, const int64_t *from, int64_t *to)
{
    SAMPLE_CHECK(cudaMemcpyAsync(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToHost, stream_of(s)));
    SAMPLE_CHECK(cudaStreamSynchronize(stream_of(s)));
    return SP_OK;
}

/* Copies `first` to the device. */
static sp_status send_firsts(const gnn_sampler *s, const gnn_lists *lists)
{
    SAMPLE_CHECK(cudaMemcpyAsync(lists->first_there, lists->first, (size_t)(lists->count + 1) * sizeof *lists->first,
                                 cudaMemcpyHostToDevice, stream_of(s)));
    return SP_OK;
}

sp_status gnn_cuda_sample_scan(const gnn_sampler *s, int64_t count, int64_t *sums)
{
    size_t bytes = 0;
    sample_array<char> work;
    SAMPLE_CHECK(cub::DeviceScan::InclusiveSum(nullptr, bytes, sums, sums, count, stream_of(s)));
    CHECK(work.allocate(s, (int64_t)bytes));
    SAMPLE_CHECK(cub::DeviceScan::InclusiveSum(work.data, bytes, sums, sums, count, stream_of(s)));
    return SP_OK;
}

/* ---- marks -------------------------------------------------------------------------------------------- */

static sp_status clear(const gnn_sampler *s, int64_t lists)
{
    const size_t bytes = (size_t)(lists * s->words) * sizeof *s->known;
    cudaStream_t stream = stream_of(s);
    SAMPLE_CHECK(cudaMemsetAsync(s->place, -1, (size_t)(lists * s->a.rows) * sizeof *s->place, stream));
    SAMPLE_CHECK(cudaMemsetAsync(s->known, 0, bytes, stream));
    SAMPLE_CHECK(cudaMemsetAsync(s->drawn, 0, bytes, stream));
    return SP_OK;
}

static __global__ void __launch_bounds__(THREADS)
    make_shuffle_keys(int64_t count, uint64_t seed, int64_t pass, uint32_t *keys)
{
    const int64_t i = thread_number();
    if (i < count) keys[i] = (uint32_t)(gnn_random(seed, pass, GNN_SITE_SHUFFLE, i) >> 32);
}

static sp_status shuffle(const gnn_sampler *s, int64_t pass, int64_t count, const int32_t *from, int32_t *to)
{
    cudaStream_t stream = stream_of(s);
    sample_array<uint32_t> keys, sorted;
    sample_array<char> work;
    size_t bytes = 0;
    if (count == 0) return SP_OK;
    CHECK(keys.allocate(s, count));
    CHECK(sorted.allocate(s, count));
    CHECK(launch(s, make_shuffle_keys, ceil_div(count, THREADS), count, s->seed, pass, keys.data));
    SAMPLE_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys.data, sorted.data, from, to, count, 0, 32,
                                                 stream));
    CHECK(work.allocate(s, (int64_t)bytes));
    SAMPLE_CHECK(cub::DeviceRadixSort::SortPairs(work.data, bytes, keys.data, sorted.data, from, to, count, 0, 32,
                                                 stream));
    return SP_OK;
}

static __global__ void __launch_bounds__(THREADS) enter_nodes(graph g, const int64_t *first, const int32_t *nodes)
{
    const node_list list = list_at(first, nodes);
    const int64_t j = thread_number();
    if (j >= list.count) return;
    const int32_t node = list.nodes[j];
    g.place[blockIdx.y * g.nodes + node] = (int32_t)j;
    atomicOr(g.known + blockIdx.y * g.words + node / 32, 1u << node % 32);
}

static sp_status enter(const gnn_sampler *s, const gnn_lists *lists)
{
    CHECK(send_firsts(s, lists));
    return launch_lists(s, enter_nodes, lists, 1, graph_of(s), lists->first_there, lists->nodes);
}

static __global__ void __launch_bounds__(THREADS)
    leave_nodes(graph g, const int64_t *first, const int32_t *nodes, const gnn_target *targets)
{
    const node_list list = list_at(first, nodes);
    const int64_t j = thread_number();
    if (j >= list.count) return;
    const int32_t node = list.nodes[j];
    g.place[blockIdx.y * g.nodes + node] = -1;
    g.known[blockIdx.y * g.words + node / 32] = 0;
    targets[blockIdx.y].nodes[j] = node;
}

static sp_status leave(const gnn_sampler *s, const gnn_lists *lists, const gnn_target *targets)
{
    sample_array<gnn_target> there;
    if (longest_of(lists->first, lists->count) == 0) return SP_OK;
    CHECK(send_targets(s, lists->count, targets, &there));
    return launch_lists(s, leave_nodes, lists, 1, graph_of(s), lists->first_there, lists->nodes, there.data);
}

/* ---- lists -------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t bits_at(const graph &g, bool fresh, int64_t word)
{
    if (word >= g.words) return 0;
    const int64_t at = blockIdx.y * g.words + word;
    return fresh ? g.drawn[at] & ~g.known[at] : g.known[at];
}

/* Counts the bits of each chunk of words. */
static __global__ void __launch_bounds__(THREADS) count_bits(graph g, bool fresh, int64_t *counts)
{
    typedef cub::BlockReduce<int, THREADS> reduction;
    __shared__ typename reduction::TempStorage work;
    int count = 0;
    for (int w = 0; w < WORDS_A_THREAD; w++)
        count += __popc(bits_at(g, fresh, (int64_t)blockIdx.x * CHUNK_WORDS + w * THREADS + threadIdx.x));
    count = reduction(work).Sum(count);
    if (threadIdx.x == 0) counts[(int64_t)blockIdx.y * gridDim.x + blockIdx.x] = count;
}

/* first[m] = the number of bits in the chunks before list m. */
static __global__ void find_firsts(int64_t lists, int64_t chunks, const int64_t *ends, int64_t *first)
{
    for (int64_t m = threadIdx.x; m <= lists; m += blockDim.x) first[m] = m ? ends[m * chunks - 1] : 0;
}

static __global__ void __launch_bounds__(THREADS)
    write_bits(graph g, bool fresh, const int64_t *ends, int32_t *nodes)
{
    typedef cub::BlockScan<int, THREADS> block_scan;
    __shared__ typename block_scan::TempStorage work;
    const int64_t chunk = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    const int64_t word = (int64_t)blockIdx.x * CHUNK_WORDS + threadIdx.x * WORDS_A_THREAD;
    uint32_t bits[WORDS_A_THREAD];
    int count = 0, before;
    for (int w = 0; w < WORDS_A_THREAD; w++) {
        bits[w] = bits_at(g, fresh, word + w);
        count += __popc(bits[w]);
    }
    block_scan(work).ExclusiveSum(count, before);
    int32_t *to = nodes + (chunk ? ends[chunk - 1] : 0) + before;
    for (int w = 0; w < WORDS_A_THREAD; w++)
        for (uint32_t left = bits[w]; left; left &= left - 1) *to++ = (int32_t)(32 * (word + w) + __ffs(left) - 1);
}

static sp_status list_nodes(const gnn_sampler *s, bool fresh, gnn_lists *lists)
{
    const int64_t chunks = ceil_div(s->words, CHUNK_WORDS);
    const dim3 grid((unsigned)chunks, (unsigned)lists->count);
    const graph g = graph_of(s);
    sample_array<int64_t> ends;
    CHECK(ends.allocate(s, chunks * lists->count));
    CHECK(launch_grid(s, false, count_bits, grid, THREADS, 0, g, fresh, ends.data));
    CHECK(gnn_cuda_sample_scan(s, chunks * lists->count, ends.data));
    CHECK(launch(s, find_firsts, 1, lists->count, chunks, ends.data, lists->first_there));
    CHECK(gnn_cuda_sample_to_host(s, lists->count + 1, lists->first_there, lists->first));
    CHECK(gnn_sample_array(s, lists->first[lists->count], sizeof *lists->nodes, &lists->nodes));
    return launch_grid(s, false, write_bits, grid, THREADS, 0, g, fresh, ends.data, lists->nodes);
}

static __global__ void __launch_bounds__(THREADS)
    grow_lists(graph g, const int64_t *first, const int32_t *nodes, const int64_t *fresh_first, const int32_t *fresh,
               const int64_t *grown_first, int32_t *grown)
{
    const node_list old = list_at(first, nodes), more = list_at(fresh_first, fresh);
    const int64_t j = thread_number();
    if (j >= old.count + more.count) return;
    int32_t *to = grown + __ldg(grown_first + blockIdx.y);
    if (j < old.count) {
        to[j] = old.nodes[j];
        return;
    }
    const int32_t node = more.nodes[j - old.count];
    to[j] = node;
    g.place[blockIdx.y * g.nodes + node] = (int32_t)j;
}

static __global__ void __launch_bounds__(THREADS) merge_bits(int64_t words, uint32_t *known, uint32_t *drawn)
{
    const int64_t w = thread_number();
    if (w >= words) return;
    known[w] |= drawn[w];
    drawn[w] = 0;
}

static sp_status grow(const gnn_sampler *s, const gnn_lists *lists, const gnn_lists *fresh, gnn_lists *grown)
{
    const int64_t words = lists->count * s->words;
    CHECK(send_firsts(s, grown));
    CHECK(launch_lists(s, grow_lists, grown, 1, graph_of(s), lists->first_there, lists->nodes, fresh->first_there,
                       fresh->nodes, grown->first_there, grown->nodes));
    return launch(s, merge_bits, ceil_div(words, THREADS), words, s->known, s->drawn);
}

const gnn_sample_backend gnn_sample_cuda = {
    .clear = there<clear>::run,
    .shuffle = there<shuffle>::run,
    .enter = there<enter>::run,
    .leave = there<leave>::run,
    .count = there<gnn_cuda_sample_count>::run,
    .sizes = there<gnn_cuda_sample_sizes>::run,
    .draw = there<gnn_cuda_sample_draw>::run,
    .list = there<list_nodes>::run,
    .choose = there<gnn_cuda_sample_choose>::run,
    .grow = there<grow>::run,
    .weigh = there<gnn_cuda_sample_weigh>::run,
    .finish = there<gnn_cuda_sample_finish>::run,
};
