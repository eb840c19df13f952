/* Sampling on a CUDA device: how many entries rows get, draws of neighbours, and the choice of nodes for all rows of
 * a minibatch. */
#include <cub/block/block_scan.cuh>

#include "sample.cuh"

enum { SELECT_THREADS = 1024, SELECT_BITS = 11, SELECT_BINS = 1 << SELECT_BITS };

static constexpr uint64_t INFINITE_KEY = 0x7ff0000000000000u; /* the bits of infinity */

/* ---- offsets ------------------------------------------------------------------------------------------ */

static __global__ void __launch_bounds__(THREADS)
    count_drawn(graph g, int64_t rows, const int32_t *nodes, int64_t fanout, int64_t *offsets)
{
    const int64_t r = thread_number();
    if (r == 0) offsets[0] = 0;
    if (r < rows) offsets[r + 1] = row_view(g, nodes[r]).drawn(fanout);
}

/* Counts the entries of known columns, a warp a row. */
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

sp_status gnn_cuda_sample_count(const gnn_sampler *s, const gnn_lists *rows, int64_t fanout, gnn_drawn *drawn)
{
    const int64_t count = rows->first[rows->count];
    if (s->options.kind == GNN_SAMPLE_NODE)
        CHECK(launch(s, count_drawn, ceil_div(count + 1, THREADS), graph_of(s), count, rows->nodes, fanout,
                     drawn->offsets));
    else CHECK(launch_lists(s, count_known, rows, 32, graph_of(s), rows->first_there, rows->nodes, drawn->offsets));
    return gnn_cuda_sample_scan(s, count + 1, drawn->offsets);
}

sp_status gnn_cuda_sample_sizes(const gnn_sampler *s, const gnn_lists *rows, gnn_drawn *drawn)
{
    sample_array<int64_t> picked;
    CHECK(picked.allocate(s, rows->count + 1));
    CHECK(launch(s, pick_offsets, 1, rows->count, rows->first_there, drawn->offsets, picked.data));
    return gnn_cuda_sample_to_host(s, rows->count + 1, picked.data, drawn->first);
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
    /* Stores the entry at `place` of the row as entry `to`. */
    __device__ __forceinline__ void put(const row_view &row, int32_t place, int64_t to) const
    {
        const int32_t col = __ldg(g.cols + row.begin + place);
        cols[to] = col;
        if (at) at[to] = place;
        uint32_t *word = g.drawn + blockIdx.y * g.words + col / 32;
        const uint32_t bit = 1u << col % 32;
        if (!(*word & bit)) atomicOr(word, bit); /* an outdated copy only costs an atomic too many */
    }
};

/* Floyd's algorithm (Bentley and Floyd 1987), WIDTH lanes a row: draw t is one of the first others - fanout + t + 1
 * places, or the last of these if an earlier draw has it. All draws are made at once; if two agree, they are resolved
 * one by one. */
template <int WIDTH> static __global__ void __launch_bounds__(THREADS) draw_short(draw_job job)
{
    const node_list list = list_at(job.first, job.nodes);
    const int64_t r = thread_number() / WIDTH;
    const int lane = threadIdx.x % WIDTH;
    const unsigned mates = WIDTH == 32 ? FULL_WARP : ((1u << WIDTH % 32) - 1) << threadIdx.x % 32 / WIDTH * WIDTH;
    const unsigned earlier = mates & ((1u << threadIdx.x % 32) - 1);
    const bool there = r < list.count;
    const int fanout = (int)job.fanout; /* at most WIDTH, or no row is longer */
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

/* The same, a warp a row, with the draws in global memory: each is compared with all before it, 32 at a time. */
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

/* By value, a warp a row: each draw is the smallest key after the last one, of equal keys that of the earlier place.
 * Keys are made again each time, which takes no memory however long the row is. */
template <typename V>
static __global__ void __launch_bounds__(THREADS) draw_by_value(draw_job job, const V *values, double *thresholds)
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
        if (lane == 0) thresholds[list.first + r] = double_of_bits(INFINITE_KEY);
        return;
    }
    const uint64_t state = job.state(node);
    uint64_t last = 0;
    int32_t last_place = -1;
    for (int64_t draw = 0; draw <= job.fanout; draw++) {
        uint64_t least = ~(uint64_t)0;
        int32_t place = INT32_MAX;
        for (int32_t t = lane; t < row.length; t += 32) {
            if (t == row.own) continue;
            const uint64_t key = bits_of_double(gnn_key(gnn_follow(state, t),
                                                        fabs((double)__ldg(values + row.begin + t))));
            if (key < last || (key == last && t <= last_place) || key >= least) continue;
            least = key;
            place = t;
        }
        for (int step = 16; step > 0; step /= 2) {
            const uint64_t key = __shfl_xor_sync(FULL_WARP, least, step);
            const int32_t other = __shfl_xor_sync(FULL_WARP, place, step);
            if (key > least || (key == least && other > place)) continue;
            least = key;
            place = other;
        }
        if (lane == 0 && draw < job.fanout) job.put(row, place, to + draw);
        last = least;
        last_place = place;
    }
    if (lane > 0) return;
    if (row.own >= 0) job.put(row, row.own, to + job.fanout);
    thresholds[list.first + r] = double_of_bits(last);
}

/* Lists the entries of known columns, a warp a row. */
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

sp_status gnn_cuda_sample_draw(const gnn_sampler *s, const gnn_lists *rows, int64_t number, int layer, int64_t fanout,
                               gnn_drawn *drawn)
{
    const draw_job job = {graph_of(s),    rows->first_there, rows->nodes,
                          s->seed,        GNN_SITE_SAMPLE + (uint64_t)layer,
                          s->pass,        number,            fanout,
                          drawn->offsets, drawn->cols,       drawn->at};
    const int64_t widest = widest_row(s, fanout);
    const int lanes = lanes_for(widest);
    if (s->options.kind != GNN_SAMPLE_NODE) return launch_lists(s, extract_known, rows, 32, job);
    if (drawn->thresholds && s->a.value_type == SP_F32)
        return launch_lists(s, draw_by_value<float>, rows, 32, job, (const float *)s->a.values, drawn->thresholds);
    if (drawn->thresholds)
        return launch_lists(s, draw_by_value<double>, rows, 32, job, (const double *)s->a.values, drawn->thresholds);
    if (widest > 32) return launch_lists(s, draw_long, rows, 32, job);
    return launch_lists(s, lanes == 8 ? draw_short<8> : lanes == 16 ? draw_short<16> : draw_short<32>, rows, lanes,
                        job);
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
        return row_of_entry(offsets, lists, entry);
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
        key = bits_of_double(gnn_key(gnn_random(seed, pass, site, (number + list) * g.nodes + node), weight));
    keys[entry] = key;
}

/* thresholds[m] = the key of row m with `fanout` smaller keys, or infinity. A block a row finds it digit by digit
 * from the highest, by counting the keys that agree so far. Any number of keys may be infinite. */
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
        if (threadIdx.x == 0) thresholds[blockIdx.x] = double_of_bits(INFINITE_KEY);
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
    if (threadIdx.x == 0) thresholds[blockIdx.x] = double_of_bits(found);
}

static __global__ void __launch_bounds__(THREADS)
    mark_chosen(graph g, candidates c, const uint64_t *keys, const double *thresholds)
{
    const int64_t entry = thread_number();
    if (entry >= c.count) return;
    const int64_t list = c.list_of(entry);
    const int32_t node = c.cols[entry];
    if (keys[entry] < bits_of_double(thresholds[list])) atomicOr(g.drawn + list * g.words + node / 32, 1u << node % 32);
}

sp_status gnn_cuda_sample_choose(const gnn_sampler *s, const sp_csr *p, int64_t number, int layer, int64_t fanout,
                                 double *thresholds)
{
    const int64_t blocks = ceil_div(p->nnz, THREADS);
    const graph g = graph_of(s);
    const candidates c = candidates_of(s, p);
    sample_array<uint64_t> keys;
    CHECK(keys.allocate(s, p->nnz));
    CHECK(launch(s, make_keys, blocks, g, c, s->seed, s->pass, GNN_SITE_SAMPLE + (uint64_t)layer, number, keys.data));
    CHECK(launch_blocks(s, false, select_keys, p->rows, SELECT_THREADS, 0, p->row_offsets, keys.data, fanout,
                        thresholds));
    return launch(s, mark_chosen, blocks, g, c, keys.data, thresholds);
}

static __global__ void __launch_bounds__(THREADS)
    weigh_nodes(candidates c, const double *thresholds, const int64_t *first, const int64_t *grown_first,
                const int32_t *grown, double *scale)
{
    const node_list list = list_at(grown_first, grown);
    const int64_t j = thread_number(), old = first[blockIdx.y + 1] - first[blockIdx.y];
    if (j >= list.count) return;
    double own = 1;
    if (j >= old) { /* a candidate of P */
        const int64_t entry = lower_bound_i32(c.cols, c.offsets[blockIdx.y], c.offsets[blockIdx.y + 1], list.nodes[j]);
        own = gnn_drawn_factor(c.weight(entry), thresholds[blockIdx.y]);
    }
    scale[list.first + j] = own;
}

sp_status gnn_cuda_sample_weigh(const gnn_sampler *s, const sp_csr *p, const double *thresholds,
                                const gnn_lists *lists, const gnn_lists *grown, double *scale)
{
    return launch_lists(s, weigh_nodes, grown, 1, candidates_of(s, p), thresholds, lists->first_there,
                        grown->first_there, grown->nodes, scale);
}
