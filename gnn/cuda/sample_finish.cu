/* Sampling on a CUDA device: turns the drawn entries into the blocks of each minibatch. Columns are places in the
 * minibatch's list, ascending within a row. 8, 16 or 32 lanes take a row and sort it in registers; blocks take longer
 * rows and sort them in shared memory. */
#include "sample.cuh"

/* Entries that a block sorts in shared memory, 32 KB. */
enum { SORTED_IN_SHARED = 4096 };

/* ---- blocks ------------------------------------------------------------------------------------------- */

template <typename V> struct finish_job {
    graph g;
    const int64_t *first;
    const int32_t *nodes;
    const int64_t *offsets;
    const int32_t *cols, *at;
    const V *values;                  /* of the matrix; NULL: a pattern */
    const int64_t *column_first;
    const double *scale, *sums, *thresholds;
    int64_t fanout;
    bool node_wise;
    const gnn_target *targets;
    int64_t *long_rows;               /* stacked rows with more entries than lanes */
    unsigned long long *long_count;
    uint64_t *keys;                   /* for rows of more than SORTED_IN_SHARED entries */

    /* The value of drawn entry `entry` of a stacked row, times the factors of its column and of its row's sample. */
    __device__ __forceinline__ double value(int64_t list, int64_t stacked, const row_view &row, int64_t entry,
                                            int32_t place) const
    {
        const int32_t where = at[entry];
        const double own = (double)__ldg(values + row.begin + where);
        const bool part = node_wise && row.others > fanout && where != row.own;
        const double factor = !part        ? 1
                              : thresholds ? gnn_drawn_factor(fabs(own), thresholds[stacked])
                                           : (double)row.others / (double)fanout;
        double result = own * factor;
        if (scale) result *= scale[column_first[list] + place];
        return result;
    }
};

/* Σ over the lanes of a row, in the CPU's order: lane i holds the i-th partial sum. */
template <int WIDTH> static __device__ __forceinline__ double sum_lanes(double value)
{
    for (int step = WIDTH / 2; step > 0; step /= 2) value += __shfl_xor_sync(FULL_WARP, value, step, WIDTH);
    return value;
}

/* Sorts keys over WIDTH lanes, ascending (a bitonic network). */
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

/* WIDTH lanes a row: columns become places, sorted, with their values. Longer rows are put on a list. */
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
    if (lane < length)
        value = job.value(m, list.first + r, row_view(job.g, node), begin + (uint32_t)key, (int32_t)(key >> 32));
    if (job.sums) {
        const double sum = sum_lanes<WIDTH>(fabs(value));
        value *= sum > 0 ? job.sums[node] / sum : 1;
    }
    if (lane < length) ((V *)target.values)[to + lane] = (V)value;
}

/* Sorts any number of keys over a block, ascending. Comparisons with keys beyond the end are left out, as if these
 * were infinite: every comparison puts the smaller key first. */
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
        const int64_t m = row_of_entry(job.first, lists, stacked);
        const int64_t begin = job.offsets[stacked], length = job.offsets[stacked + 1] - begin;
        const int64_t to = begin - job.offsets[job.first[m]];
        const gnn_target target = job.targets[m];
        uint64_t *keys = length <= SORTED_IN_SHARED ? shared : job.keys + begin;
        __syncthreads(); /* all threads have used the keys of the row before */
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
                sum += fabs(job.value(m, stacked, row, begin + (uint32_t)keys[t], (int32_t)(keys[t] >> 32)));
            sum = sum_lanes<32>(sum);
            if (threadIdx.x == 0) ratio = sum > 0 ? job.sums[node] / sum : 1;
        }
        __syncthreads();
        for (int64_t t = threadIdx.x; t < length; t += THREADS)
            ((V *)target.values)[to + t] =
                (V)(job.value(m, stacked, row, begin + (uint32_t)keys[t], (int32_t)(keys[t] >> 32)) * ratio);
    }
}

template <typename V>
static sp_status finish_blocks(const gnn_sampler *s, const gnn_lists *rows, const gnn_lists *columns,
                               const gnn_drawn *drawn, int64_t fanout, const gnn_target *targets)
{
    const int64_t count = rows->first[rows->count], entries = drawn->first[rows->count];
    const bool node_wise = s->options.kind == GNN_SAMPLE_NODE;
    const int64_t widest = node_wise ? widest_row(s, fanout) : 33;
    const int lanes = lanes_for(widest);
    sample_array<gnn_target> there;
    sample_array<int64_t> long_rows;
    sample_array<unsigned long long> long_count;
    sample_array<uint64_t> keys;
    CHECK(send_targets(s, rows->count, targets, &there));
    if (widest > 32) {
        CHECK(long_rows.allocate(s, count));
        CHECK(long_count.allocate(s, 1));
        CHECK(keys.allocate(s, s->a.rows > SORTED_IN_SHARED ? entries : 0));
        CHECK(long_count.fill(0, 1));
    }
    const finish_job<V> job = {graph_of(s),    rows->first_there,    rows->nodes,
                               drawn->offsets, drawn->cols,          drawn->at,
                               (const V *)s->a.values,
                               columns->first_there, drawn->scale,   s->sums,       drawn->thresholds,
                               fanout,         node_wise,            there.data,
                               long_rows.data, long_count.data,      keys.data};
    const auto kernel = lanes == 8 ? finish_short<8, V> : lanes == 16 ? finish_short<16, V> : finish_short<32, V>;
    CHECK(launch_lists(s, kernel, rows, lanes, job));
    if (widest <= 32) return SP_OK;
    return launch(s, finish_long<V>, count < 1024 ? count : 1024, job, rows->count);
}

sp_status gnn_cuda_sample_finish(const gnn_sampler *s, const gnn_lists *rows, const gnn_lists *columns,
                                 const gnn_drawn *drawn, int64_t fanout, const gnn_target *targets)
{
    if (rows->first[rows->count] == 0) return SP_OK;
    return s->a.value_type == SP_F64 ? finish_blocks<double>(s, rows, columns, drawn, fanout, targets)
                                     : finish_blocks<float>(s, rows, columns, drawn, fanout, targets);
}
