/* Attention of GAT on CUDA, all heads in one pass over the entries of A, forward and back.
 *
 *   Y(i, ·) = Σ_j w_ij·H(j, ·),   w = dropout(α),   α = softmax over j of leakyrelu(l_i + r_j)
 *
 * Forward, a team of lanes takes a row, once over its entries: it keeps the largest score so far and, relative to that,
 * the sums of Y and of exponentials, which shrink by a factor when a larger score comes. Nothing is stored a number an
 * entry; of a row there remain log Σ exp(score), from which any α follows, and Q. Since leakyrelu's derivative λ is one
 * of two numbers,
 *
 *   dl_i = Σ_j λ_ij·α_ij·(dw_ij - D_i) = dY_i·Q_i,   Q_i = Σ_j λ_ij·w_ij·H_j - (Σ_j λ_ij·α_ij)·Y_i,   D_i = dY_i·Y_i,
 *
 * so that the way back needs entries only once: a team takes a row j of the transpose, keeps H_j, gathers dY_i, and has
 *
 *   dH_j = Σ_i w_ij·dY_i + dl_j·left + dr_j·right,   dr_j = Σ_i λ_ij·α_ij·(dw_ij - D_i),   dw_ij = mask·(dY_i·H_j).
 *
 * Step by step this takes four passes that gather rows, and arrays of all entries and heads. (Softmax from stored sums:
 * Dao et al., FlashAttention, 2022.) An entry costs a row of H or dY, its index, and 4 or 12 bytes a head.
 *
 * A head has 2^part_shift lanes with V numbers each, side by side, and TILES such packs. As many heads as fit in a warp
 * lie beside each other: the group of lanes of one entry. A team has one or more groups, its slots, which take the
 * entries of its row in turn; the host chooses teams by the mean length of rows, since a slot needs a few entries to be
 * worth its sums at the end. Rows that are long for a team are shared by the warps of a block: a warp waits a
 * microsecond for every four entries that it takes. All sums have one order, so results have the same bits in every
 * run. */
#include <cfloat>
#include <initializer_list>

#include "each.cuh"

/* LONG: a row with more entries than this for each slot of a warp goes to the block. FEW: a slot should have these. */
enum { WARPS = THREADS / 32, LONG = 64, FEW = 4 };

/* Calls body(width_of<LANES>()): the lanes that share the numbers of a row and head, about 4 or more each. */
template <typename Body> static sp_status by_lanes(int64_t width, const Body &body)
{
    if (width <= 4) return body(width_of<1>());
    if (width <= 8) return body(width_of<2>());
    return width <= 32 ? body(width_of<8>()) : body(width_of<32>());
}

/* ---- scores of nodes ------------------------------------------------------------------------------------- */

template <typename S> struct scores_job {
    using T = computed_t<S>;
    int64_t rows, first_own, own_rows; /* own_rows: from row first_own on there are left scores */
    int heads, width;
    dense_view<S> h;
    const T *left, *right;
    dense_view<T> left_scores, right_scores;
};

template <typename S, int LANES>
static __global__ void __launch_bounds__(THREADS) score_heads(const __grid_constant__ scores_job<S> job)
{
    using T = computed_t<S>;
    const int64_t place = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    if (place >= job.rows * job.heads) return;
    const int64_t row = place / job.heads, head = place - row * job.heads, own = row - job.first_own;
    const S *x = job.h.values + row * job.h.stride + head * job.width;
    T left = 0, right = 0;
    for (int k = threadIdx.x % LANES; k < job.width; k += LANES) {
        const T number = number_from(x + k);
        left += number * job.left[head * job.width + k];
        right += number * job.right[head * job.width + k];
    }
    left = group_sum<LANES>(left);
    right = group_sum<LANES>(right);
    if (threadIdx.x % LANES != 0) return;
    job.right_scores.values[row * job.right_scores.stride + head] = right;
    if (own >= 0 && own < job.own_rows) job.left_scores.values[own * job.left_scores.stride + head] = left;
}

sp_status gnn_cuda_head_scores(gnn_engine *engine, const sp_dense *h, int heads, int64_t first_own, const void *left,
                               const void *right, sp_dense *left_scores, sp_dense *right_scores)
{
    return by_type(h->type, false, [&](auto number, auto) {
        using S = decltype(number);
        using T = computed_t<S>;
        const scores_job<S> job = {h->rows, first_own, left_scores->rows, heads, (int)(h->cols / heads), view_of<S>(h),
                                   (const T *)left, (const T *)right, view_of<T>(left_scores),
                                   view_of<T>(right_scores)};
        return by_lanes(job.width, [&](auto lanes) {
            return launch(engine, score_heads<S, lanes>, ceil_div(job.rows * heads, THREADS / lanes), job);
        });
    });
}

/* Sums of ds(i, head) · H(i, k) over rows. */
template <typename S, int V> struct heads_backward_op {
    using T = computed_t<S>;
    struct local {
        int head[V];
    };
    using input = pack<T, V>;
    int64_t width;
    dense_view<S> h;
    dense_view<T> scores_gradient;

    __device__ __forceinline__ local begin(int64_t col) const
    {
        local made;
#pragma unroll
        for (int v = 0; v < V; v++) made.head[v] = (int)((col + v) / width);
        return made;
    }
    __device__ __forceinline__ input load(int64_t row, int64_t col) const { return h.template load<V>(row, col); }
    __device__ __forceinline__ void add(int64_t row, int64_t, const input &in, const local &own,
                                        double (&sums)[V]) const
    {
#pragma unroll
        for (int v = 0; v < V; v++)
            sums[v] += (double)scores_gradient.values[row * scores_gradient.stride + own.head[v]] * (double)in.part[v];
    }
};

sp_status gnn_cuda_head_scores_backward(gnn_engine *engine, const sp_dense *h, int heads,
                                        const sp_dense *scores_gradient, void *vector_gradient)
{
    return by_type(h->type, is_aligned(h), [&](auto number, auto lanes) {
        using S = decltype(number);
        using T = computed_t<S>;
        constexpr int V = lanes;
        const heads_backward_op<S, V> op = {h->cols / heads, view_of<S>(h), view_of<T>(scores_gradient)};
        return launch_sums<S, V>(engine, h->rows, h->cols, op, (T *)vector_gradient);
    });
}

/* ---- what both ways share -------------------------------------------------------------------------------- */

template <typename S> struct attention_job {
    using T = computed_t<S>;
    const int64_t *offsets, *places; /* of A, or of the transpose, whose entries are A's `places` */
    const int32_t *cols;
    int64_t rows, own_rows, entries; /* own_rows: rows of A */
    int heads, width, part_shift, group_shift, team_shift; /* log2 of the lanes of a head, of an entry, of a row */
    int longest;                                           /* row of a team */
    T slope, factor;        /* factor: of dY, 1 / heads if heads are averaged, which then share it */
    mask how;
    dense_view<S> h, y, slopes, y_gradient, h_gradient;
    bool averaged, keeps_slopes;
    dense_view<T> left, right, logs, along, left_gradient, right_gradient;
    const T *left_vector, *right_vector;
};

/* This thread's packs of a head. */
struct attention_lane {
    int head, head_col, col, apart; /* col: of its first pack in the head; apart: from pack to pack */
    bool filled;
    uint64_t stream; /* of the head's masks */
};

template <typename S, int V> static __device__ __forceinline__ attention_lane lane_of(const attention_job<S> &job)
{
    const int lane = threadIdx.x % 32, parts = 1 << job.part_shift, group = 1 << job.group_shift;
    attention_lane made;
    made.head = (int)blockIdx.y * (group / parts) + lane % group / parts;
    made.head_col = made.head * job.width;
    made.col = lane % parts * V;
    made.apart = V * parts;
    made.filled = made.head < job.heads && made.col < job.width;
    mask own = job.how;
    own.site += (uint64_t)GNN_MAX_LAYERS * (uint64_t)made.head;
    made.stream = stream_of(own);
    return made;
}

/* Columns first + col .. of a row of heads; those beyond the head, in the padding of a row, are 0 and not written. */
template <int V, typename S, typename T = computed_t<S>>
static __device__ __forceinline__ pack<T, V> load_part(const dense_view<S> &from, int64_t row, int first, int col,
                                                       int width)
{
    pack<T, V> part = from.template load<V>(row, first + col);
    if (width % V != 0)
#pragma unroll
        for (int v = 0; v < V; v++)
            if (col + v >= width) part.part[v] = 0;
    return part;
}

template <int V, typename S, typename T = computed_t<S>>
static __device__ __forceinline__ void store_part(const dense_view<S> &to, int64_t row, int first, int col, int width,
                                                  const pack<T, V> &part)
{
    if (width % V == 0) {
        to.store(row, first + col, part);
        return;
    }
#pragma unroll
    for (int v = 0; v < V; v++)
        if (col + v < width) number_to(to.values + row * to.stride + first + col + v, part.part[v]);
}

static __device__ __forceinline__ float exponential(float x) { return __expf(x); }
static __device__ __forceinline__ double exponential(double x) { return exp(x); }
static __device__ __forceinline__ float logarithm(float x) { return logf(x); }
static __device__ __forceinline__ double logarithm(double x) { return log(x); }

/* Combines a team's slots, or with ALL the block's; every thread gets the result. All threads of the warp, or of the
 * block, call it. */
template <bool ALL, typename S, typename T, typename Op>
static __device__ __forceinline__ T combine(const attention_job<S> &job, T value, T (*shared)[32], const Op &op)
{
    for (int apart = 1 << job.group_shift; apart < (ALL ? 32 : 1 << job.team_shift); apart *= 2)
        value = op(value, __shfl_xor_sync(FULL_WARP, value, apart));
    if (!ALL) return value;
    __syncthreads();
    shared[threadIdx.x / 32][threadIdx.x % 32] = value;
    __syncthreads();
    value = shared[0][threadIdx.x % 32];
    for (int w = 1; w < WARPS; w++) value = op(value, shared[w][threadIdx.x % 32]);
    return value;
}

/* now = next, and next = the columns of the entries from, from + step, ...; 0 beyond the end. */
template <int COUNT>
static __device__ __forceinline__ void load_columns(const int32_t *cols, uint32_t from, uint32_t end, uint32_t step,
                                                    int32_t (&now)[COUNT], int32_t (&next)[COUNT])
{
#pragma unroll
    for (int u = 0; u < COUNT; u++) {
        now[u] = next[u];
        next[u] = from + u * step < end ? __ldg(cols + from + u * step) : 0;
    }
}

struct take_larger {
    template <typename T> __device__ __forceinline__ T operator()(T a, T b) const { return a > b ? a : b; }
};
struct take_sum {
    template <typename T> __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};

/* A row a team, then the long ones of the block a block. row(i, begin, count, first, step, all): entries begin + first,
 * begin + first + step, ... of `count`. All lanes of a warp call it together: i is -1 for teams without a row. */
template <typename S, typename Row>
static __device__ __forceinline__ void each_row(const attention_job<S> &job, const Row &row)
{
    __shared__ unsigned long_ones[WARPS]; /* of each warp, as bits of their first lanes */
    const int team_shift = job.team_shift, team = 1 << team_shift, slot = (threadIdx.x & (team - 1)) >> job.group_shift;
    const int64_t first = (int64_t)blockIdx.x * (THREADS >> team_shift), own = first + (threadIdx.x >> team_shift);
    int64_t begin = 0, count = 0;
    if (own < job.rows) {
        begin = job.offsets[own];
        count = job.offsets[own + 1] - begin;
    }
    const bool is_long = count > job.longest, takes = own < job.rows && !is_long;
    row(takes ? own : -1, begin, takes ? (uint32_t)count : 0, slot, team >> job.group_shift, width_of<0>());
    long_ones[threadIdx.x / 32] = __ballot_sync(FULL_WARP, is_long && (threadIdx.x & (team - 1)) == 0);
    if (!__syncthreads_or(is_long)) return;
    for (int w = 0; w < WARPS; w++)
        for (unsigned left = long_ones[w]; left != 0; left &= left - 1) {
            const int64_t i = first + ((w * 32 + __ffs((int)left) - 1) >> team_shift);
            begin = job.offsets[i];
            row(i, begin, (uint32_t)(job.offsets[i + 1] - begin), threadIdx.x >> job.group_shift,
                THREADS >> job.group_shift, width_of<1>());
        }
}

template <typename T> static __device__ __forceinline__ T leaky(T x, T slope) { return x > 0 ? x : slope * x; }

/* AHEAD: entries that a slot loads at once. BLOCKS: blocks that the registers of a multiprocessor must suffice for. For
 * slots of about 5 entries, 3 take as many rounds as 4, with fewer registers. */
template <typename S, int V, int TILES> struct attention_shape {
    static constexpr int AHEAD = TILES > 1 ? 1 : V > 4 ? 2 : V > 2 ? 3 : 4;
    static constexpr int BLOCKS = TILES > 1 ? 1 : sizeof(S) == 8 || V > 4 ? 2 : 4;
};

/* ---- forward --------------------------------------------------------------------------------------------- */

/* Combines the sums of a row's slots; Y, log Σ exp, and Q. A row without entries has zeros. */
template <bool ALL, typename S, int V, int TILES, typename T = computed_t<S>>
static __device__ __forceinline__ void
finish_row(const attention_job<S> &job, const attention_lane &at, int64_t i, bool stores, bool has_entries, T most,
           T total, T slope_total, const T (&sums)[TILES][V], const T (&slope_sums)[TILES][V], T (*shared)[32])
{
    total = combine<ALL>(job, total, shared, take_sum());
    slope_total = combine<ALL>(job, slope_total, shared, take_sum());
    const T by = has_entries ? 1 / total : 0;
    if (stores && at.col == 0)
        job.logs.values[i * job.logs.stride + at.head] = has_entries ? most + logarithm(total) : 0;
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        pack<T, V> y, slopes;
#pragma unroll
        for (int v = 0; v < V; v++) {
            y.part[v] = by * combine<ALL>(job, sums[t][v], shared, take_sum());
            slopes.part[v] = by * combine<ALL>(job, slope_sums[t][v], shared, take_sum()) -
                             by * slope_total * y.part[v];
        }
        if (!stores || at.col + t * at.apart >= job.width) continue;
        store_part(job.y, i, at.head_col, at.col + t * at.apart, job.width, y);
        if (job.keeps_slopes) store_part(job.slopes, i, at.head_col, at.col + t * at.apart, job.width, slopes);
    }
}

/* `most` starts at the lowest finite number: exp(score - most) is then 0 for scores of -∞, and a slot without entries
 * has zeros, not NaN. */
template <typename S, int V, int TILES>
static __global__ void __launch_bounds__(THREADS, (attention_shape<S, V, TILES>::BLOCKS))
    attend(const __grid_constant__ attention_job<S> job)
{
    using T = computed_t<S>;
    constexpr int AHEAD = attention_shape<S, V, TILES>::AHEAD;
    __shared__ T shared[WARPS][32];
    const attention_lane at = lane_of<S, V>(job);
    each_row(job, [&](int64_t i, int64_t begin, uint32_t count, uint32_t first, uint32_t step, auto all) {
        constexpr bool ALL = decltype(all)::value;
        const bool takes = at.filled && i >= 0, stores = takes && first == 0;
        const uint32_t end = takes ? count : 0;
        const T own = takes ? job.left.values[i * job.left.stride + at.head] : 0;
        T most = sizeof(T) == 4 ? (T)-FLT_MAX : (T)-DBL_MAX, total = 0, slope_total = 0;
        T sums[TILES][V] = {}, slope_sums[TILES][V] = {};
        const auto shrink = [&](T factor) {
            total *= factor;
            slope_total *= factor;
#pragma unroll
            for (int k = 0; k < TILES * V; k++) {
                sums[k / V][k % V] *= factor;
                slope_sums[k / V][k % V] *= factor;
            }
        };
        int32_t now[AHEAD], next[AHEAD] = {}; /* columns of the entries of this round and the next */
        load_columns(job.cols + begin, first, end, step, now, next);
        for (uint32_t e = first; e < end; e += AHEAD * step) {
            T score[AHEAD], larger = -INFINITY;
            pack<T, V> x[AHEAD][TILES];
            load_columns(job.cols + begin, e + AHEAD * step, end, step, now, next);
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                if (e + u * step >= end) continue;
                const int64_t j = now[u];
                score[u] = own + job.right.values[j * job.right.stride + at.head];
#pragma unroll
                for (int t = 0; t < TILES; t++)
                    if (TILES == 1 || at.col + t * at.apart < job.width)
                        x[u][t] = load_part<V>(job.h, j, at.head_col, at.col + t * at.apart, job.width);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (e + u * step < end) larger = take_larger()(score[u], larger);
            larger = leaky(larger, job.slope);
            if (larger > most) {
                shrink(exponential(most - larger));
                most = larger;
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                if (e + u * step >= end) continue;
                const T slope = score[u] > 0 ? (T)1 : job.slope, chance = exponential(slope * score[u] - most);
                total += chance;
                slope_total = fused(slope, chance, slope_total);
                const T weight = !job.how.bound                                         ? chance
                                 : dropped(job.how, at.stream, begin + (e + u * step)) ? 0
                                                                                         : chance * (T)job.how.scale;
#pragma unroll
                for (int t = 0; t < TILES; t++)
                    if (TILES == 1 || at.col + t * at.apart < job.width)
#pragma unroll
                        for (int v = 0; v < V; v++) {
                            sums[t][v] = fused(weight, x[u][t].part[v], sums[t][v]);
                            slope_sums[t][v] = fused(slope * weight, x[u][t].part[v], slope_sums[t][v]);
                        }
            }
        }
        const T most_of_all = combine<ALL>(job, most, shared, take_larger());
        shrink(exponential(most - most_of_all));
        finish_row<ALL, S, V, TILES>(job, at, i, stores, count > 0, most_of_all, total, slope_total, sums, slope_sums,
                                     shared);
    });
}

/* ---- back ------------------------------------------------------------------------------------------------ */

/* D and dl of a row and head, a group of lanes. */
template <typename S, int LANES>
static __global__ void __launch_bounds__(THREADS) go_along_rows(const __grid_constant__ attention_job<S> job)
{
    using T = computed_t<S>;
    const int64_t place = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    if (place >= job.own_rows * job.heads) return;
    const int64_t i = place / job.heads, head = place - i * job.heads, col = head * job.width;
    const S *y = job.y.values + i * job.y.stride + col, *slopes = job.slopes.values + i * job.slopes.stride + col;
    const S *dy = job.y_gradient.values + i * job.y_gradient.stride + (job.averaged ? 0 : col);
    T along = 0, left = 0;
    for (int k = threadIdx.x % LANES; k < job.width; k += LANES) {
        const T by = number_from(dy + k);
        along = fused(by, number_from(y + k), along);
        left = fused(by, number_from(slopes + k), left);
    }
    along = group_sum<LANES>(along);
    left = group_sum<LANES>(left);
    if (threadIdx.x % LANES != 0) return;
    job.along.values[i * job.along.stride + head] = job.factor * along;
    job.left_gradient.values[i * job.left_gradient.stride + head] = job.factor * left;
}

template <typename S, int V, int TILES>
static __global__ void __launch_bounds__(THREADS, (attention_shape<S, V, TILES>::BLOCKS))
    attend_back(const __grid_constant__ attention_job<S> job)
{
    using T = computed_t<S>;
    constexpr int AHEAD = attention_shape<S, V, TILES>::AHEAD;
    __shared__ T shared[WARPS][32];
    const attention_lane at = lane_of<S, V>(job);
    const int dy_col = job.averaged ? 0 : at.head_col;
    each_row(job, [&](int64_t j, int64_t begin, uint32_t count, uint32_t first, uint32_t step, auto all) {
        constexpr bool ALL = decltype(all)::value;
        const bool takes = at.filled && j >= 0, stores = takes && first == 0;
        const uint32_t end = takes ? count : 0;
        const T own = takes ? job.right.values[j * job.right.stride + at.head] : 0;
        T right = 0;
        T sums[TILES][V] = {};
        pack<T, V> x[TILES] = {};
#pragma unroll
        for (int t = 0; t < TILES; t++)
            if (takes && at.col + t * at.apart < job.width)
                x[t] = load_part<V>(job.h, j, at.head_col, at.col + t * at.apart, job.width);
        /* All lanes of a warp go round together, for the sums over a head's lanes. */
        int32_t now[AHEAD], next[AHEAD] = {};
        load_columns(job.cols + begin, first, end, step, now, next);
        for (uint32_t e = first; __any_sync(FULL_WARP, e < end); e += AHEAD * step) {
            T score[AHEAD] = {}, log[AHEAD] = {}, along[AHEAD] = {};
            pack<T, V> g[AHEAD][TILES] = {};
            load_columns(job.cols + begin, e + AHEAD * step, end, step, now, next);
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                if (e + u * step >= end) continue;
                const int64_t i = now[u];
                score[u] = own + job.left.values[i * job.left.stride + at.head];
                log[u] = job.logs.values[i * job.logs.stride + at.head];
                along[u] = job.along.values[i * job.along.stride + at.head];
#pragma unroll
                for (int t = 0; t < TILES; t++)
                    if (TILES == 1 || at.col + t * at.apart < job.width)
                        g[u][t] = load_part<V>(job.y_gradient, i, dy_col, at.col + t * at.apart, job.width);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                T product = 0;
#pragma unroll
                for (int t = 0; t < TILES; t++)
#pragma unroll
                    for (int v = 0; v < V; v++) product = fused(g[u][t].part[v], x[t].part[v], product);
                for (int apart = (1 << job.part_shift) / 2; apart > 0; apart /= 2)
                    product += __shfl_xor_sync(FULL_WARP, product, apart);
                if (e + u * step >= end) continue;
                const T slope = score[u] > 0 ? (T)1 : job.slope, chance = exponential(slope * score[u] - log[u]);
                const T keep = !job.how.bound                                                     ? (T)1
                               : dropped(job.how, at.stream, job.places[begin + (e + u * step)]) ? 0
                                                                                                 : (T)job.how.scale;
                right += slope * chance * (keep * job.factor * product - along[u]);
#pragma unroll
                for (int t = 0; t < TILES; t++)
#pragma unroll
                    for (int v = 0; v < V; v++) sums[t][v] = fused(chance * keep, g[u][t].part[v], sums[t][v]);
            }
        }
        right = combine<ALL>(job, right, shared, take_sum());
        const bool adds_left = stores && j < job.own_rows;
        const T left = adds_left ? job.left_gradient.values[j * job.left_gradient.stride + at.head] : 0;
        if (stores && at.col == 0) job.right_gradient.values[j * job.right_gradient.stride + at.head] = right;
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const int col = at.col + t * at.apart;
            pack<T, V> out;
#pragma unroll
            for (int v = 0; v < V; v++) {
                const T gathered = job.factor * combine<ALL>(job, sums[t][v], shared, take_sum());
                const int at_vector = at.head_col + col + v;
                out.part[v] = stores && col + v < job.width
                                  ? gathered + left * job.left_vector[at_vector] + right * job.right_vector[at_vector]
                                  : 0;
            }
            if (stores && col < job.width) store_part(job.h_gradient, j, at.head_col, col, job.width, out);
        }
    });
}

/* ---- host ------------------------------------------------------------------------------------------------ */

/* Whether rows of heads can be read V numbers at a time; those of one head may end in their padding. */
static bool takes_packs(const sp_dense *matrix, int heads, int64_t width, int v)
{
    return matrix->stride % v == 0 && (uintptr_t)matrix->values % (number_size(matrix->type) * (size_t)v) == 0 &&
           (heads == 1 ? ceil_div(width, v) * v <= matrix->stride : width % v == 0);
}

template <typename S> static attention_job<S> make_job(gnn_engine *engine, const gnn_attention *a)
{
    using T = computed_t<S>;
    attention_job<S> job = {};
    job.offsets = a->a->row_offsets;
    job.cols = a->a->col_indices;
    job.rows = job.own_rows = a->a->rows;
    job.entries = a->a->nnz;
    job.heads = a->heads;
    job.width = (int)(a->h->cols / a->heads);
    job.slope = (T)a->slope;
    job.factor = 1;
    job.how = make_mask(engine, GNN_LINEAR, a->rate, a->site);
    job.h = view_of<S>(a->h);
    job.y = view_of<S>(a->y);
    job.left = view_of<T>(a->left);
    job.right = view_of<T>(a->right);
    job.logs = view_of<T>(a->logs);
    job.keeps_slopes = a->slopes != NULL;
    if (a->slopes) job.slopes = view_of<S>(a->slopes);
    return job;
}

template <typename S, int V, int TILES>
static sp_status launch_packs(gnn_engine *engine, attention_job<S> job, bool back)
{
    int heads = 1;
    job.part_shift = 0;
    while (TILES == 1 ? V << job.part_shift < job.width : job.part_shift < 5) job.part_shift++;
    job.group_shift = job.part_shift;
    while (job.group_shift < 5 && heads < job.heads) {
        job.group_shift++;
        heads *= 2;
    }
    if (job.rows == 0) return SP_OK;
    job.team_shift = job.group_shift;
    while (job.team_shift < 5 && job.entries >> (job.team_shift - job.group_shift + 1) >= FEW * job.rows)
        job.team_shift++;
    /* Where a warp has several rows, all of them wait for the longest: half as many entries make a row long. */
    job.longest = (job.team_shift < 5 ? LONG / 2 : LONG) << (job.team_shift - job.group_shift);
    const dim3 grid((unsigned)ceil_div(job.rows, THREADS >> job.team_shift), (unsigned)ceil_div(job.heads, heads));
    return launch_grid(engine, false, back ? attend_back<S, V, TILES> : attend<S, V, TILES>, grid, THREADS, 0, job);
}

enum { MOST_TILES = 8 };

template <typename S, int V> static sp_status launch_job(gnn_engine *engine, const attention_job<S> &job, bool back)
{
    if (job.width <= 32 * V) return launch_packs<S, V, 1>(engine, job, back);
    if (job.width <= 32 * V * MOST_TILES) return launch_packs<S, V, MOST_TILES>(engine, job, back);
    return sp_fail(engine->context, SP_ERROR_UNSUPPORTED, "attention heads of %d columns: %d are possible, and more if"
                   " columns are a multiple of %d", job.width, 32 * V * MOST_TILES, 16 / (int)sizeof(S));
}

/* Packs of 16 bytes if all matrices have them, else of 8 or of one number. */
template <typename S>
static sp_status launch_attention(gnn_engine *engine, const attention_job<S> &job, int64_t width,
                                  std::initializer_list<const sp_dense *> matrices, bool back)
{
    constexpr int WHOLE = 16 / sizeof(S), LESS = WHOLE / 2;
    const auto all_take = [&](int v) {
        bool take = true;
        for (const sp_dense *matrix : matrices) take = take && takes_packs(matrix, job.heads, width, v);
        return take;
    };
    if (all_take(WHOLE)) return launch_job<S, WHOLE>(engine, job, back);
    if (LESS > 1 && all_take(LESS)) return launch_job<S, LESS>(engine, job, back);
    return launch_job<S, 1>(engine, job, back);
}

sp_status gnn_cuda_attention(gnn_engine *engine, const gnn_attention *a)
{
    return by_type(a->h->type, false, [&](auto number, auto) {
        using S = decltype(number);
        return launch_attention<S>(engine, make_job<S>(engine, a), a->h->cols / a->heads,
                                   {a->h, a->y, a->slopes ? a->slopes : a->y}, false);
    });
}

template <typename S>
static sp_status go_back(gnn_engine *engine, const gnn_attention *a, const gnn_attention_gradient *back)
{
    using T = computed_t<S>;
    attention_job<S> job = make_job<S>(engine, a);
    job.averaged = back->y_gradient->cols != a->h->cols;
    job.factor = job.averaged ? (T)1 / (T)a->heads : (T)1;
    job.y_gradient = view_of<S>(back->y_gradient);
    job.h_gradient = view_of<S>(back->h_gradient);
    job.along = view_of<T>(back->along);
    job.left_gradient = view_of<T>(back->left_gradient);
    job.right_gradient = view_of<T>(back->right_gradient);
    job.left_vector = (const T *)back->left_vector;
    job.right_vector = (const T *)back->right_vector;
    CHECK(by_lanes(job.width, [&](auto lanes) {
        return launch(engine, go_along_rows<S, lanes>, ceil_div(job.own_rows * job.heads, THREADS / lanes), job);
    }));
    job.offsets = back->transpose->row_offsets;
    job.cols = back->transpose->col_indices;
    job.places = back->places;
    job.rows = back->transpose->rows;
    job.entries = back->transpose->nnz;
    return launch_attention<S>(engine, job, job.width, {a->h, back->h_gradient, back->y_gradient}, true);
}

sp_status gnn_cuda_attention_backward(gnn_engine *engine, const gnn_attention *a, const gnn_attention_gradient *back)
{
    return by_type(a->h->type, false, [&](auto number, auto) {
        return go_back<decltype(number)>(engine, a, back);
    });
}

/* ---- the mean of heads ----------------------------------------------------------------------------------- */

template <typename S, typename Y>
static __global__ void __launch_bounds__(THREADS)
    average(int64_t rows, int64_t width, int heads, const dense_view<const S> x, const dense_view<Y> y)
{
    const int64_t place = (int64_t)blockIdx.x * THREADS + threadIdx.x, i = place / width, k = place - i * width;
    if (i >= rows) return;
    computed_t<S> sum = 0;
    for (int head = 0; head < heads; head++) sum += number_from(x.values + i * x.stride + head * width + k);
    number_to(y.values + i * y.stride + k, (computed_t<Y>)(sum / (computed_t<S>)heads));
}

sp_status gnn_cuda_average_heads(gnn_engine *engine, const sp_dense *x, int heads, sp_dense *y)
{
    const int64_t blocks = ceil_div(y->rows * y->cols, THREADS);
    return by_type(x->type, false, [&](auto number, auto) {
        using S = decltype(number);
        using T = computed_t<S>; /* logits are f32 */
        return launch(engine, average<S, T>, blocks, y->rows, y->cols, heads,
                      dense_view<const S>{(const S *)x->values, x->stride}, view_of<T>(y));
    });
}
