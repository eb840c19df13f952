/* The steps of sampling on a CUDA device (sample.h says what each does, sample.c in which order). All minibatches of
 * a bulk together: a launch has a row of blocks for each.
 *
 * Node-wise, P = Q·A is rows of A: 8, 16 or 32 lanes take a row, draw places in it and read just these columns; P is
 * never formed. New nodes are found without a sort: a bit for each node and minibatch is set, and the bits are
 * counted and listed, ascending. Columns become places by a table of 4 bytes a node and minibatch, and are sorted
 * within rows in registers. Rows of more than 32 entries are taken by warps, and sorted by blocks in shared memory.
 *
 * Bytes an entry, from wherever they come: 32 for its column in A, 4 written and read again; a bit in a table of
 * n / 8 bytes a minibatch, mostly in the first-level cache; 32 for its place; 4 for its column in the block: 76
 * (values: 44 more). Of these 64 are sectors of random reads, which the second-level cache serves as far as the
 * graph or the table, 4n bytes a minibatch, fit it. Beside them 50 bytes a row and, for each layer, n / 4 bytes a
 * minibatch. A bulk costs some 15 launches a layer and, for sizes that the host must know, one wait, two where rows
 * may be long. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "backend.cuh"
#include "sample.h"

enum { WORDS_A_THREAD = 4, CHUNK_WORDS = THREADS * WORDS_A_THREAD };
/* Entries that a block sorts in shared memory, 32 KB. */
enum { SORTED_IN_SHARED = 4096 };
enum { SELECT_THREADS = 1024, SELECT_BITS = 11, SELECT_BINS = 1 << SELECT_BITS };

static constexpr unsigned FULL_WARP = 0xffffffffu;
static constexpr uint64_t INFINITE_KEY = 0x7ff0000000000000u; /* the bits of infinity */

/* ---- host: arrays, sizes, launches -------------------------------------------------------------------- */

/* Device memory that ends with its scope. */
template <typename T> struct scratch {
    sp_context *context = nullptr;
    T *data = nullptr;

    scratch() = default;
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
    ~scratch()
    {
        if (data) sp_array_free(context, SP_DEVICE, data);
    }
    sp_status allocate(const gnn_sampler *s, int64_t count)
    {
        context = s->engine->context;
        return sp_array_create(context, count, sizeof(T), SP_DEVICE, (void **)&data);
    }
};

static cudaStream_t stream_of(const gnn_sampler *s) { return state_of(s->engine)->stream; }

/* The sizes that the host must know; waits for the stream. */
static sp_status to_host(const gnn_sampler *s, int64_t count, const int64_t *from, int64_t *to)
{
    gnn_engine *engine = s->engine;
    CUDA_CHECK(cudaMemcpyAsync(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToHost, stream_of(s)));
    CUDA_CHECK(cudaStreamSynchronize(stream_of(s)));
    return SP_OK;
}

/* The lists' firsts, from the host. */
static sp_status send_firsts(const gnn_sampler *s, const gnn_lists *lists)
{
    gnn_engine *engine = s->engine;
    CUDA_CHECK(cudaMemcpyAsync(lists->first_there, lists->first, (size_t)(lists->count + 1) * sizeof *lists->first,
                               cudaMemcpyHostToDevice, stream_of(s)));
    return SP_OK;
}

static sp_status send_targets(const gnn_sampler *s, int64_t count, const gnn_target *targets,
                              scratch<gnn_target> *there)
{
    gnn_engine *engine = s->engine;
    CHECK(there->allocate(s, count));
    CUDA_CHECK(cudaMemcpyAsync(there->data, targets, (size_t)count * sizeof *targets, cudaMemcpyHostToDevice,
                               stream_of(s)));
    return SP_OK;
}

/* sums[i] = Σ of sums up to i, in place. */
static sp_status scan(const gnn_sampler *s, int64_t count, int64_t *sums)
{
    gnn_engine *engine = s->engine;
    size_t bytes = 0;
    scratch<char> work;
    CUDA_CHECK(cub::DeviceScan::InclusiveSum(nullptr, bytes, sums, sums, count, stream_of(s)));
    CHECK(work.allocate(s, (int64_t)bytes));
    CUDA_CHECK(cub::DeviceScan::InclusiveSum(work.data, bytes, sums, sums, count, stream_of(s)));
    return SP_OK;
}

static int64_t longest_list(const gnn_lists *lists)
{
    int64_t longest = 0;
    for (int64_t m = 0; m < lists->count; m++) {
        const int64_t length = lists->first[m + 1] - lists->first[m];
        if (length > longest) longest = length;
    }
    return longest;
}

/* So many threads for each node of the longest list, a row of blocks for each list. No list: no blocks. */
static dim3 grid_for(const gnn_lists *lists, int threads)
{
    return dim3((unsigned)ceil_div(longest_list(lists) * threads, THREADS), (unsigned)lists->count);
}

/* ---- what kernels see --------------------------------------------------------------------------------- */

struct graph {
    int64_t nodes, words;
    const int64_t *offsets;
    const int32_t *cols, *own;
    int32_t *place;
    uint32_t *known, *drawn;
};

static graph graph_of(const gnn_sampler *s)
{
    return {s->a.rows, s->words, s->a.row_offsets, s->a.col_indices, s->own, s->place, s->known, s->drawn};
}

/* A list of this block's minibatch. */
struct node_list {
    const int32_t *nodes;
    int64_t first, count;
};

static __device__ __forceinline__ node_list list_at(const int64_t *first, const int32_t *nodes)
{
    const int64_t begin = __ldg(first + blockIdx.y), end = __ldg(first + blockIdx.y + 1);
    return {nodes + begin, begin, end - begin};
}

static __device__ __forceinline__ int64_t thread_number() { return (int64_t)blockIdx.x * THREADS + threadIdx.x; }

/* A row of the matrix as node-wise sampling sees it: its entries but for its own are the others. */
struct row_view {
    int64_t begin;
    int32_t length, others, own;

    __device__ __forceinline__ row_view(const graph &g, int32_t node)
    {
        begin = __ldg(g.offsets + node);
        length = (int32_t)(__ldg(g.offsets + node + 1) - begin);
        own = g.own ? __ldg(g.own + node) : -1;
        others = length - (own >= 0);
    }
    __device__ __forceinline__ int32_t drawn(int64_t fanout) const
    {
        return others <= fanout ? length : (int32_t)fanout + (own >= 0);
    }
};

/* ---- marks -------------------------------------------------------------------------------------------- */

static sp_status clear(const gnn_sampler *s, int64_t lists)
{
    gnn_engine *engine = s->engine;
    const size_t bytes = (size_t)(lists * s->words) * sizeof *s->known;
    cudaStream_t stream = stream_of(s);
    CUDA_CHECK(cudaMemsetAsync(s->place, -1, (size_t)(lists * s->a.rows) * sizeof *s->place, stream));
    CUDA_CHECK(cudaMemsetAsync(s->known, 0, bytes, stream));
    CUDA_CHECK(cudaMemsetAsync(s->drawn, 0, bytes, stream));
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
    gnn_engine *engine = s->engine;
    cudaStream_t stream = stream_of(s);
    const unsigned blocks = (unsigned)ceil_div(count, THREADS);
    scratch<uint32_t> keys, sorted;
    scratch<char> work;
    size_t bytes = 0;
    if (blocks == 0) return SP_OK;
    CHECK(keys.allocate(s, count));
    CHECK(sorted.allocate(s, count));
    make_shuffle_keys<<<blocks, THREADS, 0, stream>>>(count, engine->seed, pass, keys.data);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys.data, sorted.data, from, to, count, 0, 32, stream));
    CHECK(work.allocate(s, (int64_t)bytes));
    CUDA_CHECK(cub::DeviceRadixSort::SortPairs(work.data, bytes, keys.data, sorted.data, from, to, count, 0, 32,
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
    gnn_engine *engine = s->engine;
    const dim3 grid = grid_for(lists, 1);
    CHECK(send_firsts(s, lists));
    enter_nodes<<<grid, THREADS, 0, stream_of(s)>>>(graph_of(s), lists->first_there, lists->nodes);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
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
    gnn_engine *engine = s->engine;
    const dim3 grid = grid_for(lists, 1);
    scratch<gnn_target> there;
    if (grid.x == 0) return SP_OK;
    CHECK(send_targets(s, lists->count, targets, &there));
    leave_nodes<<<grid, THREADS, 0, stream_of(s)>>>(graph_of(s), lists->first_there, lists->nodes, there.data);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- lists -------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t bits_at(const graph &g, bool fresh, int64_t word)
{
    if (word >= g.words) return 0;
    const int64_t at = blockIdx.y * g.words + word;
    return fresh ? g.drawn[at] & ~g.known[at] : g.known[at];
}

/* Bits of each chunk of words. */
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

/* first[m] = how many bits the chunks before list m have. */
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
    gnn_engine *engine = s->engine;
    const int64_t chunks = ceil_div(s->words, CHUNK_WORDS);
    const dim3 grid((unsigned)chunks, (unsigned)lists->count);
    const graph g = graph_of(s);
    scratch<int64_t> ends;
    CHECK(ends.allocate(s, chunks * lists->count));
    count_bits<<<grid, THREADS, 0, stream_of(s)>>>(g, fresh, ends.data);
    CUDA_CHECK(cudaGetLastError());
    CHECK(scan(s, chunks * lists->count, ends.data));
    find_firsts<<<1, THREADS, 0, stream_of(s)>>>(lists->count, chunks, ends.data, lists->first_there);
    CUDA_CHECK(cudaGetLastError());
    CHECK(to_host(s, lists->count + 1, lists->first_there, lists->first));
    CHECK(sp_array_create(s->engine->context, lists->first[lists->count], sizeof *lists->nodes, SP_DEVICE,
                          (void **)&lists->nodes));
    write_bits<<<grid, THREADS, 0, stream_of(s)>>>(g, fresh, ends.data, lists->nodes);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
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
    gnn_engine *engine = s->engine;
    const dim3 grid = grid_for(grown, 1);
    const int64_t words = lists->count * s->words;
    CHECK(send_firsts(s, grown));
    grow_lists<<<grid, THREADS, 0, stream_of(s)>>>(graph_of(s), lists->first_there, lists->nodes, fresh->first_there,
                                                   fresh->nodes, grown->first_there, grown->nodes);
    CUDA_CHECK(cudaGetLastError());
    merge_bits<<<(unsigned)ceil_div(words, THREADS), THREADS, 0, stream_of(s)>>>(words, s->known, s->drawn);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- offsets ------------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(THREADS)
    count_drawn(graph g, int64_t rows, const int32_t *nodes, int64_t fanout, int64_t *offsets)
{
    const int64_t r = thread_number();
    if (r == 0) offsets[0] = 0;
    if (r < rows) offsets[r + 1] = row_view(g, nodes[r]).drawn(fanout);
}

/* Entries of known columns, a warp a row. */
static __global__ void __launch_bounds__(THREADS)
    count_known(graph g, const int64_t *first, const int32_t *nodes, int64_t *offsets)
{
    const node_list list = list_at(first, nodes);
    const int64_t r = thread_number() / 32;
    if (thread_number() == 0 && blockIdx.y == 0) offsets[0] = 0;
    if (r >= list.count) return;
    const row_view row(g, list.nodes[r]);
    const int32_t *place = g.place + blockIdx.y * g.nodes;
    int64_t count = 0;
    for (int32_t t = 0; t < row.length; t += 32) {
        const int32_t at = t + (int32_t)(threadIdx.x % 32);
        count += __popc(__ballot_sync(FULL_WARP, at < row.length && place[__ldg(g.cols + row.begin + at)] >= 0));
    }
    if (threadIdx.x % 32 == 0) offsets[list.first + r + 1] = count;
}

static __global__ void pick_offsets(int64_t lists, const int64_t *first, const int64_t *offsets, int64_t *picked)
{
    for (int64_t m = threadIdx.x; m <= lists; m += blockDim.x) picked[m] = offsets[first[m]];
}

static sp_status count_entries(const gnn_sampler *s, const gnn_lists *rows, int64_t fanout, gnn_drawn *drawn)
{
    gnn_engine *engine = s->engine;
    const int64_t count = rows->first[rows->count];
    if (s->options.kind == GNN_SAMPLE_NODE)
        count_drawn<<<(unsigned)ceil_div(count + 1, THREADS), THREADS, 0, stream_of(s)>>>(
            graph_of(s), count, rows->nodes, fanout, drawn->offsets);
    else
        count_known<<<grid_for(rows, 32), THREADS, 0, stream_of(s)>>>(graph_of(s), rows->first_there, rows->nodes,
                                                                      drawn->offsets);
    CUDA_CHECK(cudaGetLastError());
    return scan(s, count + 1, drawn->offsets);
}

static sp_status read_sizes(const gnn_sampler *s, const gnn_lists *rows, gnn_drawn *drawn)
{
    gnn_engine *engine = s->engine;
    scratch<int64_t> picked;
    CHECK(picked.allocate(s, rows->count + 1));
    pick_offsets<<<1, THREADS, 0, stream_of(s)>>>(rows->count, rows->first_there, drawn->offsets, picked.data);
    CUDA_CHECK(cudaGetLastError());
    return to_host(s, rows->count + 1, picked.data, drawn->first);
}

/* ---- draws -------------------------------------------------------------------------------------------- */

struct draw_job {
    graph g;
    const int64_t *first;
    const int32_t *nodes;
    uint64_t seed, site;
    int64_t pass, number, fanout;
    const int64_t *offsets;
    int32_t *cols, *at;

    __device__ __forceinline__ uint64_t state(int32_t node) const
    {
        return gnn_random(seed, pass, site, (number + blockIdx.y) * g.nodes + node);
    }
    /* The entry that stands at `place` of the row becomes entry `to`. */
    __device__ __forceinline__ void put(const row_view &row, int32_t place, int64_t to) const
    {
        const int32_t col = __ldg(g.cols + row.begin + place);
        cols[to] = col;
        if (at) at[to] = place;
        uint32_t *word = g.drawn + blockIdx.y * g.words + col / 32;
        const uint32_t bit = 1u << col % 32;
        if (!(*word & bit)) atomicOr(word, bit); /* an old copy of the word only costs a needless atomic */
    }
};

/* Floyd's algorithm (Bentley and Floyd 1987), WIDTH lanes a row: draw t is one of the first others - fanout + t + 1
 * places, or the last of these if an earlier draw has it. All are made at once; only where two agree are they gone
 * through one by one. */
template <int WIDTH> static __global__ void __launch_bounds__(THREADS) draw_short(draw_job job)
{
    const node_list list = list_at(job.first, job.nodes);
    const int64_t r = thread_number() / WIDTH;
    const int lane = threadIdx.x % WIDTH;
    const unsigned mates = WIDTH == 32 ? FULL_WARP : ((1u << WIDTH % 32) - 1) << threadIdx.x % 32 / WIDTH * WIDTH;
    const unsigned earlier = mates & ((1u << threadIdx.x % 32) - 1);
    const bool there = r < list.count;
    const int fanout = (int)job.fanout; /* below WIDTH + 1, or no row is longer */
    const int32_t node = there ? list.nodes[r] : 0;
    const row_view row(job.g, node);
    const bool part = there && row.others > job.fanout;
    const int32_t last = row.others - fanout + lane;
    int32_t place = lane;
    if (part) place = lane < fanout ? (int32_t)gnn_below(gnn_follow(job.state(node), lane), last + 1) : -1 - lane;
    const unsigned equals = __match_any_sync(FULL_WARP, place) & mates;
    if (__any_sync(FULL_WARP, part && equals != 1u << threadIdx.x % 32))
        for (int t = 1; t < fanout; t++) {
            const int32_t now = __shfl_sync(FULL_WARP, place, t, WIDTH);
            const bool taken = __ballot_sync(FULL_WARP, part && lane < t && place == now) & earlier;
            if (part && lane == t && taken) place = last;
        }
    if (!there || lane >= row.drawn(job.fanout)) return;
    if (part && row.own >= 0) place = lane == fanout ? row.own : place + (place >= row.own);
    job.put(row, place, __ldg(job.offsets + list.first + r) + lane);
}

/* The same by a warp a row, with the draws in global memory: each is compared with all before it, 32 at a time. */
static __global__ void __launch_bounds__(THREADS) draw_long(draw_job job)
{
    const node_list list = list_at(job.first, job.nodes);
    const int64_t r = thread_number() / 32;
    const int lane = threadIdx.x % 32;
    if (r >= list.count) return;
    const int32_t node = list.nodes[r];
    const row_view row(job.g, node);
    const int64_t to = job.offsets[list.first + r];
    if (row.others <= job.fanout) {
        for (int32_t t = lane; t < row.length; t += 32) job.put(row, t, to + t);
        return;
    }
    const int32_t fanout = (int32_t)job.fanout;
    const uint64_t state = job.state(node);
    volatile int32_t *places = job.cols + to;
    for (int32_t t = 0; t < fanout; t++) {
        const int32_t last = row.others - fanout + t, place = (int32_t)gnn_below(gnn_follow(state, t), last + 1);
        bool taken = false;
        for (int32_t before = lane; before < t; before += 32) taken |= places[before] == place;
        taken = __any_sync(FULL_WARP, taken);
        if (lane == 0) places[t] = taken ? last : place;
        __syncwarp();
    }
    for (int32_t t = lane; t < fanout; t += 32) {
        const int32_t place = places[t];
        job.put(row, place + (row.own >= 0 && place >= row.own), to + t);
    }
    if (row.own >= 0 && lane == 0) job.put(row, row.own, to + fanout);
}

/* Entries of known columns, a warp a row. */
static __global__ void __launch_bounds__(THREADS) extract_known(draw_job job)
{
    const node_list list = list_at(job.first, job.nodes);
    const int64_t r = thread_number() / 32;
    const int lane = threadIdx.x % 32;
    if (r >= list.count) return;
    const row_view row(job.g, list.nodes[r]);
    const int32_t *place = job.g.place + blockIdx.y * job.g.nodes;
    int64_t to = job.offsets[list.first + r];
    for (int32_t t = 0; t < row.length; t += 32) {
        const int32_t col = t + lane < row.length ? __ldg(job.g.cols + row.begin + t + lane) : -1;
        const bool kept = col >= 0 && place[col] >= 0;
        const unsigned all = __ballot_sync(FULL_WARP, kept);
        const int64_t own = to + __popc(all & ((1u << lane) - 1));
        if (kept) job.cols[own] = col;
        if (kept && job.at) job.at[own] = t + lane;
        to += __popc(all);
    }
}

/* The longest row that node-wise draws can give, or more than 32. */
static int64_t widest_row(const gnn_sampler *s, int64_t fanout)
{
    return fanout > 32 ? 33 : fanout + (s->own != NULL);
}

static sp_status draw(const gnn_sampler *s, const gnn_lists *rows, int64_t number, int layer, int64_t fanout,
                      gnn_drawn *drawn)
{
    gnn_engine *engine = s->engine;
    const draw_job job = {graph_of(s),     rows->first_there, rows->nodes,
                          s->engine->seed, GNN_SITE_SAMPLE + (uint64_t)layer,
                          s->pass,         number,            fanout,
                          drawn->offsets,  drawn->cols,       drawn->at};
    const int64_t widest = widest_row(s, fanout);
    const int width = widest <= 8 ? 8 : widest <= 16 ? 16 : 32;
    const dim3 grid = grid_for(rows, s->options.kind == GNN_SAMPLE_NODE ? width : 32);
    cudaStream_t stream = stream_of(s);
    if (grid.x == 0) return SP_OK;
    if (s->options.kind != GNN_SAMPLE_NODE) extract_known<<<grid, THREADS, 0, stream>>>(job);
    else if (widest <= 8) draw_short<8><<<grid, THREADS, 0, stream>>>(job);
    else if (widest <= 16) draw_short<16><<<grid, THREADS, 0, stream>>>(job);
    else if (widest <= 32) draw_short<32><<<grid, THREADS, 0, stream>>>(job);
    else draw_long<<<grid, THREADS, 0, stream>>>(job);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- layer-wise choice -------------------------------------------------------------------------------- */

/* The candidates and their weights. */
struct candidates {
    int64_t lists, count;
    const int64_t *offsets;
    const int32_t *cols;
    const float *single;
    const double *twice, *weights; /* one of the three is there */

    __device__ __forceinline__ double weight(int64_t entry) const
    {
        if (weights) return __ldg(weights + cols[entry]);
        return single ? (double)single[entry] : twice[entry];
    }
    __device__ __forceinline__ int64_t list_of(int64_t entry) const
    {
        int64_t low = 0, high = lists;
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            if (__ldg(offsets + middle) <= entry) low = middle;
            else high = middle;
        }
        return low;
    }
};

static candidates candidates_of(const gnn_sampler *s, const sp_csr *p)
{
    const bool own = !s->weights;
    return {p->rows,
            p->nnz,
            p->row_offsets,
            p->col_indices,
            own && p->value_type == SP_F32 ? (const float *)p->values : nullptr,
            own && p->value_type == SP_F64 ? (const double *)p->values : nullptr,
            s->weights};
}

static __global__ void __launch_bounds__(THREADS)
    make_keys(graph g, candidates c, uint64_t seed, int64_t pass, uint64_t site, int64_t number, uint64_t *keys)
{
    const int64_t entry = thread_number();
    if (entry >= c.count) return;
    const int64_t list = c.list_of(entry);
    const int32_t node = c.cols[entry];
    const double weight = c.weight(entry);
    uint64_t key = INFINITE_KEY;
    if (weight > 0 && g.place[list * g.nodes + node] < 0)
        key = gnn_bits(gnn_exponential(gnn_random(seed, pass, site, (number + list) * g.nodes + node)) / weight);
    keys[entry] = key;
}

/* thresholds[m] = the key of row m that `fanout` keys are below, or infinity: digit by digit from the highest, by
 * counts of the keys that agree so far. A block a row. Keys are at most infinity, of which there may be any
 * number. */
static __global__ void __launch_bounds__(SELECT_THREADS)
    select_keys(const int64_t *offsets, const uint64_t *keys, int64_t fanout, double *thresholds)
{
    typedef cub::BlockScan<int, SELECT_THREADS> block_scan;
    __shared__ typename block_scan::TempStorage work;
    __shared__ int bins[SELECT_BINS];
    __shared__ int rest, digit;
    const int64_t begin = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
    uint64_t found = 0;
    int shift = 64;
    if (end - begin <= fanout) {
        if (threadIdx.x == 0) thresholds[blockIdx.x] = gnn_double(INFINITE_KEY);
        return;
    }
    if (threadIdx.x == 0) rest = (int)fanout;
    while (shift > 0) {
        const int bits = shift < SELECT_BITS ? shift : SELECT_BITS;
        const uint64_t agree = shift == 64 ? 0 : ~(uint64_t)0 << shift;
        shift -= bits;
        for (int b = threadIdx.x; b < SELECT_BINS; b += SELECT_THREADS) bins[b] = 0;
        __syncthreads();
        for (int64_t e = begin + threadIdx.x; e < end; e += SELECT_THREADS) {
            const uint64_t key = keys[e];
            if ((key & agree) == found) atomicAdd(bins + (key >> shift & ((1u << bits) - 1)), 1);
        }
        __syncthreads();
        int own[SELECT_BINS / SELECT_THREADS], count = 0, before;
        for (int b = 0; b < SELECT_BINS / SELECT_THREADS; b++) {
            own[b] = bins[threadIdx.x * (SELECT_BINS / SELECT_THREADS) + b];
            count += own[b];
        }
        block_scan(work).ExclusiveSum(count, before);
        int wanted = rest - before;
        __syncthreads(); /* `rest` is read before it is written */
        if (wanted >= 0 && wanted < count) {
            int b = 0;
            while (wanted >= own[b]) wanted -= own[b++];
            digit = threadIdx.x * (SELECT_BINS / SELECT_THREADS) + b;
            rest = wanted;
        }
        __syncthreads();
        found |= (uint64_t)digit << shift;
    }
    if (threadIdx.x == 0) thresholds[blockIdx.x] = gnn_double(found);
}

static __global__ void __launch_bounds__(THREADS)
    mark_chosen(graph g, candidates c, const uint64_t *keys, const double *thresholds)
{
    const int64_t entry = thread_number();
    if (entry >= c.count) return;
    const int64_t list = c.list_of(entry);
    const int32_t node = c.cols[entry];
    if (keys[entry] < gnn_bits(thresholds[list])) atomicOr(g.drawn + list * g.words + node / 32, 1u << node % 32);
}

static sp_status choose(const gnn_sampler *s, const sp_csr *p, int64_t number, int layer, int64_t fanout,
                        double *thresholds)
{
    gnn_engine *engine = s->engine;
    const unsigned blocks = (unsigned)ceil_div(p->nnz, THREADS);
    const graph g = graph_of(s);
    const candidates c = candidates_of(s, p);
    cudaStream_t stream = stream_of(s);
    scratch<uint64_t> keys;
    CHECK(keys.allocate(s, p->nnz));
    if (blocks) {
        make_keys<<<blocks, THREADS, 0, stream>>>(g, c, s->engine->seed, s->pass, GNN_SITE_SAMPLE + (uint64_t)layer,
                                                  number, keys.data);
        CUDA_CHECK(cudaGetLastError());
    }
    select_keys<<<(unsigned)p->rows, SELECT_THREADS, 0, stream>>>(p->row_offsets, keys.data, fanout, thresholds);
    CUDA_CHECK(cudaGetLastError());
    if (blocks) {
        mark_chosen<<<blocks, THREADS, 0, stream>>>(g, c, keys.data, thresholds);
        CUDA_CHECK(cudaGetLastError());
    }
    return SP_OK;
}

static __global__ void __launch_bounds__(THREADS)
    weigh_nodes(candidates c, const double *thresholds, const int64_t *first, const int64_t *grown_first,
                const int32_t *grown, double *scale)
{
    const node_list list = list_at(grown_first, grown);
    const int64_t j = thread_number(), old = first[blockIdx.y + 1] - first[blockIdx.y];
    if (j >= list.count) return;
    double own = 1;
    if (j >= old) { /* a candidate: it is there */
        int64_t low = c.offsets[blockIdx.y], high = c.offsets[blockIdx.y + 1] - 1;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (c.cols[middle] < list.nodes[j]) low = middle + 1;
            else high = middle;
        }
        own = 1 / gnn_chance(thresholds[blockIdx.y] * c.weight(low));
    }
    scale[list.first + j] = own;
}

static sp_status weigh(const gnn_sampler *s, const sp_csr *p, const double *thresholds, const gnn_lists *lists,
                       const gnn_lists *grown, double *scale)
{
    gnn_engine *engine = s->engine;
    const dim3 grid = grid_for(grown, 1);
    if (grid.x == 0) return SP_OK;
    weigh_nodes<<<grid, THREADS, 0, stream_of(s)>>>(candidates_of(s, p), thresholds, lists->first_there,
                                                    grown->first_there, grown->nodes, scale);
    CUDA_CHECK(cudaGetLastError());
    return SP_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------- */

template <typename V> struct finish_job {
    graph g;
    const int64_t *first;
    const int32_t *nodes;
    const int64_t *offsets;
    const int32_t *cols, *at;
    const V *values;                  /* of the matrix; NULL: a pattern */
    const int64_t *column_first;
    const double *scale, *sums;
    int64_t fanout;
    bool node_wise;
    const gnn_target *targets;
    int64_t *long_rows;               /* stacked rows of more than the lanes' entries */
    unsigned long long *long_count;
    uint64_t *keys;                   /* for rows beyond SORTED_IN_SHARED; as many as entries */

    /* Entry `entry` of all that were drawn, times what its column and its row's sample call for. */
    __device__ __forceinline__ double value(int64_t list, const row_view &row, int64_t entry, int32_t place) const
    {
        const int32_t where = at[entry];
        const bool part = node_wise && row.others > fanout && where != row.own;
        const double factor = part ? (double)row.others / (double)fanout : 1;
        double result = (double)__ldg(values + row.begin + where) * factor;
        if (scale) result *= scale[column_first[list] + place];
        return result;
    }
};

/* Σ over the lanes that a row has, in the CPU's order: lane i holds what falls to strand i. */
template <int WIDTH> static __device__ __forceinline__ double sum_lanes(double value)
{
    for (int step = WIDTH / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step, WIDTH);
    return value;
}

/* Ascending over WIDTH lanes (a bitonic network). */
template <int WIDTH> static __device__ __forceinline__ uint64_t sort_lanes(uint64_t key)
{
    const int lane = threadIdx.x % WIDTH;
#pragma unroll
    for (int size = 2; size <= WIDTH; size *= 2)
#pragma unroll
        for (int step = size / 2; step > 0; step /= 2) {
            const uint64_t other = __shfl_xor_sync(FULL_WARP, key, step, WIDTH);
            const bool low = ((lane & step) == 0) == ((lane & size) == 0);
            key = (other < key) == low ? other : key;
        }
    return key;
}

/* WIDTH lanes a row: columns to places, sorted, with their values; longer rows are put on a list. */
template <int WIDTH, typename V> static __global__ void __launch_bounds__(THREADS) finish_short(finish_job<V> job)
{
    const node_list list = list_at(job.first, job.nodes);
    const int64_t r = thread_number() / WIDTH, m = blockIdx.y;
    const int lane = threadIdx.x % WIDTH;
    int64_t begin = 0, to = 0;
    int64_t length = 0;
    gnn_target target = {};
    if (r < list.count) {
        begin = __ldg(job.offsets + list.first + r);
        length = __ldg(job.offsets + list.first + r + 1) - begin;
        to = begin - __ldg(job.offsets + list.first);
        target = job.targets[m];
        if (lane == 0) {
            target.offsets[r + 1] = to + length;
            if (r == 0) target.offsets[0] = 0;
        }
        if (length > WIDTH) {
            if (lane == 0) job.long_rows[atomicAdd(job.long_count, 1ull)] = list.first + r;
            length = 0;
        }
    }
    uint64_t key = ~(uint64_t)0;
    if (lane < length)
        key = (uint64_t)job.g.place[m * job.g.nodes + job.cols[begin + lane]] << 32 | (uint32_t)lane;
    key = sort_lanes<WIDTH>(key);
    if (lane < length) target.cols[to + lane] = (int32_t)(key >> 32);
    if (!job.values) return;
    double value = 0;
    const int32_t node = r < list.count ? list.nodes[r] : 0;
    if (lane < length) value = job.value(m, row_view(job.g, node), begin + (uint32_t)key, (int32_t)(key >> 32));
    if (job.sums) {
        const double sum = sum_lanes<WIDTH>(fabs(value));
        value *= sum > 0 ? job.sums[node] / sum : 1;
    }
    if (lane < length) ((V *)target.values)[to + lane] = (V)value;
}

/* Ascending over a block, any number of keys: steps that compare with keys beyond the end are left out, as if
 * these were infinite, which is right where every comparison has its smaller key first. */
static __device__ void sort_block(uint64_t *keys, int64_t count)
{
    for (int64_t size = 2; size / 2 < count; size *= 2)
        for (int64_t step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            const bool flip = step == size / 2;
            for (int64_t p = threadIdx.x;; p += THREADS) {
                const int64_t within = p & (step - 1), block = (p - within) * 2, a = block + within;
                const int64_t b = flip ? block + 2 * step - 1 - within : a + step;
                if (a >= count) break;
                if (b < count && keys[b] < keys[a]) {
                    const uint64_t swap = keys[a];
                    keys[a] = keys[b];
                    keys[b] = swap;
                }
            }
        }
    __syncthreads();
}

/* A block a row of the list. */
template <typename V> static __global__ void __launch_bounds__(THREADS) finish_long(finish_job<V> job, int64_t lists)
{
    __shared__ uint64_t shared[SORTED_IN_SHARED];
    __shared__ double ratio;
    const int64_t count = (int64_t)*job.long_count;
    for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
        const int64_t stacked = job.long_rows[i];
        int64_t m = 0, high = lists;
        while (high - m > 1) {
            const int64_t middle = (m + high) / 2;
            if (job.first[middle] <= stacked) m = middle;
            else high = middle;
        }
        const int64_t begin = job.offsets[stacked], length = job.offsets[stacked + 1] - begin;
        const int64_t to = begin - job.offsets[job.first[m]];
        const gnn_target target = job.targets[m];
        uint64_t *keys = length <= SORTED_IN_SHARED ? shared : job.keys + begin;
        __syncthreads(); /* the row before is done with the keys */
        for (int64_t t = threadIdx.x; t < length; t += THREADS)
            keys[t] = (uint64_t)job.g.place[m * job.g.nodes + job.cols[begin + t]] << 32 | (uint64_t)t;
        sort_block(keys, length);
        for (int64_t t = threadIdx.x; t < length; t += THREADS) target.cols[to + t] = (int32_t)(keys[t] >> 32);
        if (!job.values) continue;
        const int32_t node = job.nodes[stacked];
        const row_view row(job.g, node);
        if (threadIdx.x < 32) {
            double sum = 0;
            for (int64_t t = threadIdx.x; t < length && job.sums; t += 32)
                sum += fabs(job.value(m, row, begin + (uint32_t)keys[t], (int32_t)(keys[t] >> 32)));
            sum = sum_lanes<32>(sum);
            if (threadIdx.x == 0) ratio = sum > 0 ? job.sums[node] / sum : 1;
        }
        __syncthreads();
        for (int64_t t = threadIdx.x; t < length; t += THREADS)
            ((V *)target.values)[to + t] =
                (V)(job.value(m, row, begin + (uint32_t)keys[t], (int32_t)(keys[t] >> 32)) * ratio);
    }
}

template <typename V>
static sp_status finish_blocks(const gnn_sampler *s, const gnn_lists *rows, const gnn_lists *columns,
                               const gnn_drawn *drawn, int64_t fanout, const gnn_target *targets)
{
    gnn_engine *engine = s->engine;
    const int64_t count = rows->first[rows->count], entries = drawn->first[rows->count];
    const bool node_wise = s->options.kind == GNN_SAMPLE_NODE;
    const int64_t widest = node_wise ? widest_row(s, fanout) : 33;
    const dim3 grid = grid_for(rows, widest <= 8 ? 8 : widest <= 16 ? 16 : 32);
    cudaStream_t stream = stream_of(s);
    scratch<gnn_target> there;
    scratch<int64_t> long_rows;
    scratch<unsigned long long> long_count;
    scratch<uint64_t> keys;
    CHECK(send_targets(s, rows->count, targets, &there));
    if (widest > 32) {
        CHECK(long_rows.allocate(s, count));
        CHECK(long_count.allocate(s, 1));
        CHECK(keys.allocate(s, s->a.rows > SORTED_IN_SHARED ? entries : 0));
        CUDA_CHECK(cudaMemsetAsync(long_count.data, 0, sizeof *long_count.data, stream));
    }
    const finish_job<V> job = {graph_of(s),    rows->first_there,    rows->nodes,
                               drawn->offsets, drawn->cols,          drawn->at,
                               (const V *)s->a.values,
                               columns->first_there, drawn->scale,   s->sums,
                               fanout,         node_wise,            there.data,
                               long_rows.data, long_count.data,      keys.data};
    if (widest <= 8) finish_short<8><<<grid, THREADS, 0, stream>>>(job);
    else if (widest <= 16) finish_short<16><<<grid, THREADS, 0, stream>>>(job);
    else finish_short<32><<<grid, THREADS, 0, stream>>>(job);
    CUDA_CHECK(cudaGetLastError());
    if (widest > 32) {
        finish_long<<<(unsigned)(count < 1024 ? count : 1024), THREADS, 0, stream>>>(job, rows->count);
        CUDA_CHECK(cudaGetLastError());
    }
    return SP_OK;
}

static sp_status finish(const gnn_sampler *s, const gnn_lists *rows, const gnn_lists *columns, const gnn_drawn *drawn,
                        int64_t fanout, const gnn_target *targets)
{
    if (rows->first[rows->count] == 0) return SP_OK;
    return s->a.value_type == SP_F64 ? finish_blocks<double>(s, rows, columns, drawn, fanout, targets)
                                     : finish_blocks<float>(s, rows, columns, drawn, fanout, targets);
}

const gnn_sample_backend gnn_sample_cuda = {
    clear, shuffle, enter, leave, count_entries, read_sizes, draw, list_nodes, choose, grow, weigh, finish,
};
