/* How a group of lanes walks the entries of one row of A, and writes the row of Y.
 *
 * A group of LANES threads takes a row (or a part of one) and a tile of columns: lane l holds columns l·V of REPEATS
 * stretches of LANES·V, so that every load of X is 16 bytes a lane and whole sectors a group. The group loads LANES
 * entries of A at a time, ahead of their use; lanes exchange them by shuffles or through shared memory.
 *
 * Latency decides: a row is a chain of four loads and a store, some 3 µs under load, and 10 TB/s at 0.7 µs are 53 KB
 * in flight a multiprocessor. So groups are narrow, 4 or 8 lanes with up to 4 packets each, for many rows in flight,
 * and kernels keep to 40 or 64 registers. Groups of up to 32 lanes with 8 entries in flight each, in 80 registers,
 * took 1.3 to 1.7 times as long on rows of 2 to 16 entries and were not faster on rows of 200.
 */
#ifndef SPARSE_CUDA_SPMM_WALK_CUH
#define SPARSE_CUDA_SPMM_WALK_CUH

#include <type_traits>

#include "spmm/cuda/result.cuh"

/* Entries whose rows of X are in flight at a time, and threads of a multiprocessor that registers are dealt for. */
template <typename T, int REPEATS, bool EXTREME> struct spmm_depth {
    static constexpr int UNROLL = REPEATS == 1 ? 4 : 2;
    static constexpr int THREADS = EXTREME ? 768 : REPEATS == 1 && sizeof(T) == 4 ? 1536 : 1024;
};

/* The blocks of a multiprocessor that have THREADS in all, for launch bounds. */
template <int THREADS, int BLOCK> struct spmm_resident {
    static constexpr int FIT = (THREADS < ARCH_THREADS ? THREADS : ARCH_THREADS) / BLOCK;
    static constexpr int BLOCKS = FIT < ARCH_BLOCKS ? FIT : ARCH_BLOCKS;
};
/* Packets of 8 bytes or less leave registers for all threads that a multiprocessor holds: over the survey 602 columns
 * take 0.89 of the time. Not where groups of a block would spill and walk once, at 50 columns 1.06. */
template <typename T, int V, int LANES, int REPEATS, bool EXTREME, bool BLOCKS> struct spmm_threads {
    static constexpr bool THIN = LANES == 32 && sizeof(T) * V <= 8 && !EXTREME && (REPEATS > 1 || !BLOCKS);
    static constexpr int COUNT = THIN ? 2048 : spmm_depth<T, REPEATS, EXTREME>::THREADS;
};
#define SPMM_RESIDENT(T, V, LANES, REPEATS, Result, IN_BLOCKS, BLOCK) \
    (spmm_resident<spmm_threads<T, V, LANES, REPEATS, Result::EXTREME, IN_BLOCKS>::COUNT, (BLOCK)>::BLOCKS)

/* Kernels may begin before the one ahead has ended, and wait for it before they read what kernels write. A's columns
 * were there before the plan: a group asks for its first ones, then waits, which makes each of several consecutive
 * products 0.2 to 0.5 us shorter. */

/* A group's columns of X and Y. Lanes beyond the last column repeat an earlier one, which is loaded anyway. In its last
 * repeat a group may have parts: each has the columns of the first part, which writes them. The first columns of the
 * first tile may be `missing`. */
template <typename T, int V, int LANES, int REPEATS> struct spmm_columns {
    const char *x;
    int32_t at[REPEATS];
    uint32_t delta[REPEATS]; /* bytes from the first of them */
    bool inside[REPEATS];

    __device__ __forceinline__ spmm_columns(const spmm_product &p, int tile, int parts = 1, int32_t missing = 0)
    {
        const int lane = threadIdx.x % LANES, each = LANES / parts;
        const int32_t first = tile * V * (LANES * (REPEATS - 1) + each) - missing;
#pragma unroll
        for (int r = 0; r < REPEATS; r++) {
            const bool last = r == REPEATS - 1;
            const int32_t own = first + (r * LANES + (last ? lane % each : lane)) * V;
            inside[r] = (uint32_t)own < (uint32_t)p.width;
            at[r] = inside[r] ? own : r > 0 ? at[0] : max(first, 0);
            inside[r] = inside[r] && (!last || lane < each);
            delta[r] = (uint32_t)(at[r] - at[0]) * sizeof(T);
        }
        x = (const char *)((const T *)p.x + at[0]);
    }
};

/* The greatest of a number that each group of LANES lanes has. */
template <int LANES> static __device__ __forceinline__ int most_of_groups(int number)
{
#pragma unroll
    for (int step = LANES; step < 32; step *= 2) number = max(number, __shfl_xor_sync(FULL_WARP, number, step));
    return number;
}

/* Adds entries begin .. begin + count of A, which are the row's from `number` on, to the group's results. All lanes
 * of the warp take part, `count` being the group's own: the warp's groups walk together, since those that went apart
 * would be served one after another. */
template <int UNROLL, typename T, int V, int LANES, int REPEATS, typename Result>
static __device__ __forceinline__ void add_entries(const spmm_product &p, int64_t begin, int count, int number,
                                                   const spmm_columns<T, V, LANES, REPEATS> &columns,
                                                   Result (&results)[REPEATS])
{
    using S = typename spmm_sum<T>::type;
    constexpr int CHUNK = LANES > UNROLL ? LANES : UNROLL, OWN = CHUNK / LANES;
    const int lane = threadIdx.x % LANES;
    const int32_t *cols = p.cols + begin;
    const S *values = p.values ? (const S *)p.values + begin : nullptr;
    const int longest = most_of_groups<LANES>(count);
    int32_t next_col[OWN], col[OWN];
    S next_weight[OWN], weight[OWN];
    const auto fetch = [&](int base, bool cols_too) {
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int at = base + i * LANES + lane;
            if (cols_too) next_col[i] = at < count ? load_kept(cols + at, p.keep) : 0;
            next_weight[i] = at < count ? values ? load_kept(values + at, p.keep) : S(1) : S(0);
        }
    };
#pragma unroll
    for (int i = 0; i < OWN; i++)
        next_col[i] = i * LANES + lane < count ? load_kept(cols + i * LANES + lane, p.keep) : 0;
    wait_for_previous();
    fetch(0, false);
    for (int base = 0; base < longest; base += CHUNK) {
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            col[i] = next_col[i];
            weight[i] = next_weight[i];
        }
        if (base + CHUNK < longest) fetch(base + CHUNK, true);
#pragma unroll 1
        for (int at = 0; at < CHUNK && base + at < longest; at += UNROLL) {
            const int left = count - base - at;
            packet<T, V> gathered[UNROLL][REPEATS];
            S weights[UNROLL];
            if (__all_sync(FULL_WARP, left >= UNROLL)) {
#pragma unroll
                for (int u = 0; u < UNROLL; u++) {
                    const int32_t c = __shfl_sync(FULL_WARP, col[u / LANES], (at + u) % LANES, LANES);
                    weights[u] = __shfl_sync(FULL_WARP, weight[u / LANES], (at + u) % LANES, LANES);
#pragma unroll
                    for (int r = 0; r < REPEATS; r++)
                        gathered[u][r].load((const T *)(row_of_x(columns.x, c, p.x_bytes) + columns.delta[r]),
                                            p.keep);
                }
#pragma unroll
                for (int u = 0; u < UNROLL; u++)
#pragma unroll
                    for (int r = 0; r < REPEATS; r++)
                        results[r].add(gathered[u][r], weights[u], number + base + at + u, true);
            } else {
#pragma unroll
                for (int u = 0; u < UNROLL; u++) {
                    const int32_t c = __shfl_sync(FULL_WARP, col[u / LANES], (at + u) % LANES, LANES);
                    weights[u] = __shfl_sync(FULL_WARP, weight[u / LANES], (at + u) % LANES, LANES);
#pragma unroll
                    for (int r = 0; r < REPEATS; r++)
                        gathered[u][r].load_if(
                            u < left, (const T *)(row_of_x(columns.x, c, p.x_bytes) + columns.delta[r]), p.keep);
                }
#pragma unroll
                for (int u = 0; u < UNROLL; u++)
#pragma unroll
                    for (int r = 0; r < REPEATS; r++)
                        results[r].add(gathered[u][r], weights[u], number + base + at + u, u < left);
            }
        }
    }
}

/* Rows of X of 64 bytes, 4 lanes: the second-level cache answers a fixed number of requests a second, half a line or
 * less being one, and columns and weights that are asked for by 4 entries are as many again as half of X's rows. So
 * each lane asks for 4 entries of its own, from a multiple of 4 on, 16 a group. Rows of 32 bytes are loaded by two
 * of the group's lanes, those of two entries at a time: a group has PARTS. `LOADS` times 4 are in flight a lane. */
template <typename T, int V, int LANES, int REPEATS, bool EXTREME> struct spmm_quads {
    static constexpr bool FIT = sizeof(T) <= 4 && sizeof(T) * V == 16 && LANES == 4 && REPEATS == 1 && !EXTREME;
    static constexpr int LOADS = sizeof(T) == 4 ? 2 : 1; /* sums of 8 columns leave fewer registers */
};

/* What the lanes of a warp load of A for each other, by fours: see entry_exchange. */
struct quad_exchange {
    uint4 cols[32], weights[32];
};

/* Entries begin..end, by the lanes for which `own` holds. */
template <typename T, int V, int LANES>
static __device__ __forceinline__ void add_one_by_one(const spmm_product &p, int64_t begin, int64_t end,
                                                      const spmm_columns<T, V, LANES, 1> &columns, bool own,
                                                      spmm_sums<T, V> &result)
{
#pragma unroll 1
    for (int64_t at = begin; at < end; at++) {
        packet<T, V> x;
        x.load((const T *)row_of_x(columns.x, __ldg(p.cols + at), p.x_bytes));
        if (own) result.add(x, p.values ? __ldg((const float *)p.values + at) : 1.f, 0, true);
    }
}

/* As add_entries. A's columns and weights begin at multiples of 16 bytes. Lanes exchange them by shuffles, or
 * through `exchange`, which leaves registers for twice the rows of X in flight: R-MAT 17 at 32 columns of f16 27.1 ->
 * 25.0 us; but rows of 32 bytes take 21.8 for 21.3, those of f32 22.5 for 22.2. */
template <int LOADS, int PARTS, typename T, int V, int LANES>
static __device__ __forceinline__ void add_quads(const spmm_product &p, int64_t begin, int count,
                                                 const spmm_columns<T, V, LANES, 1> &columns,
                                                 spmm_sums<T, V> &result, quad_exchange *exchange = nullptr)
{
    constexpr bool EXCHANGED = LOADS > spmm_quads<T, V, LANES, 1, false>::LOADS;
    constexpr int QUADS = LOADS * PARTS; /* of entries, whose rows of X are in flight at a time */
    const int64_t first = begin & ~(int64_t)3, whole = p.nnz & ~(int64_t)3;
    const bool last = begin + count > whole; /* the last group may have fewer than four entries */
    const int own = threadIdx.x % 32, lane = own % LANES, lead = (int)(begin & 3), part = lane / (LANES / PARTS);
    const int end = last ? (int)(whole - first) : count > 0 ? lead + count : 0;
    const uint4 *quad = (const uint4 *)(p.cols + first) + lane;
    const int64_t away = (const char *)p.values - (const char *)p.cols;
    const int longest = most_of_groups<LANES>(end);
    uint4 col = load_kept_if(4 * lane < end, quad, p.keep), weight;
    const auto fetch_weight = [&](int at) {
        const uint32_t one = 0x3f800000;
        const uint4 *there = (const uint4 *)((const char *)quad + away);
        if (p.values) weight = load_kept_if(at + 4 * lane < end, there, p.keep);
        else weight = {one, one, one, one};
        quad += LANES;
    };
    wait_for_previous();
    if (last) add_one_by_one(p, max(begin, whole), begin + count, columns, part == 0, result);
    if (EXCHANGED) fetch_weight(0);
#pragma unroll 1
    for (int at = 0; at < longest; at += 4 * QUADS) {
        packet<T, V> gathered[LOADS][4];
        const int source = at / 4 % LANES + part;
        if (at / 4 % LANES == 0) {
            if (EXCHANGED) {
                __syncwarp();
                exchange->cols[own] = col;
                exchange->weights[own] = weight;
                __syncwarp();
                if (at + 4 * LANES < longest) {
                    col = load_kept_if(at + 4 * LANES + 4 * lane < end, quad, p.keep);
                    fetch_weight(at + 4 * LANES);
                }
            } else fetch_weight(at);
        }
        const auto take = [&](auto all) { /* entries of the row, or only some of them */
            constexpr bool ALL = decltype(all)::value;
            const auto wanted = [&](int j, int k) {
                const int place = at + 4 * (j * PARTS + part) + k;
                return ALL || (place >= lead && place < end);
            };
            const auto exchanged = [&](const uint4 &words, const uint4 (quad_exchange::*kept)[32], int j) {
                return EXCHANGED ? (exchange->*kept)[own - lane + source + j * PARTS] : words;
            };
            const auto word = [&](uint32_t w, int j) {
                return EXCHANGED ? w : __shfl_sync(FULL_WARP, w, source + j * PARTS, LANES);
            };
            const auto gather = [&](int j, int k, uint32_t c) {
                const T *from = (const T *)row_of_x(columns.x, (int32_t)word(c, j), p.x_bytes);
                if (ALL) gathered[j][k].load(from, p.keep);
                else gathered[j][k].load_if(wanted(j, k), from, p.keep);
            };
            const auto add = [&](int j, int k, uint32_t w) {
                const float factor = __uint_as_float(word(w, j));
                result.add(gathered[j][k], wanted(j, k) ? factor : 0.f, 0, true);
            };
#pragma unroll
            for (int j = 0; j < LOADS; j++) {
                const uint4 c = exchanged(col, &quad_exchange::cols, j);
                gather(j, 0, c.x), gather(j, 1, c.y), gather(j, 2, c.z), gather(j, 3, c.w);
            }
            if (!EXCHANGED && at / 4 % LANES + QUADS == LANES && at + 4 * QUADS < longest)
                col = load_kept_if(at + 4 * QUADS + 4 * lane < end, quad, p.keep);
#pragma unroll
            for (int j = 0; j < LOADS; j++) {
                const uint4 w = exchanged(weight, &quad_exchange::weights, j);
                add(j, 0, w.x), add(j, 1, w.y), add(j, 2, w.z), add(j, 3, w.w);
            }
        };
        if (__all_sync(FULL_WARP, at >= lead && at + 4 * QUADS <= end)) take(std::true_type());
        else take(std::false_type());
    }
#pragma unroll
    for (int step = LANES / PARTS; step < LANES; step *= 2) result.merge(result.across(step));
}

/* What the lanes of a warp load of A for each other, a group's entries side by side. The pipe of the first-level
 * cache takes a turn for every shuffle, of one word of each of 4 groups, and one for a load of two of each: where
 * rows of X come from that cache, turns decide. */
template <int COUNT> struct __align__(16) entry_exchange {
    int32_t cols[COUNT]; /* -1: none */
    float weights[COUNT];
};

/* Rows of X in flight a group where lanes exchange A like that; 0: by shuffles. */
template <typename T, int V, int LANES, int REPEATS, bool EXTREME> struct exchange_depth {
    static constexpr bool WHOLE = sizeof(T) <= 4 && sizeof(T) * V == 16 && !EXTREME;
    static constexpr int NARROW = REPEATS > 1 ? 0 : sizeof(T) == 4 ? 4 : 8, WIDE = sizeof(T) == 4 ? 4 : 2;
    static constexpr int UNROLL = !WHOLE ? 0 : LANES == 16 ? WIDE : LANES == 8 ? NARROW : 0;
};

/* As add_entries, through `exchange`: R-MAT 17 at 32 columns of f32 33.2 -> 30.4 us; R-MAT 18 at 64 of f16, with eight
 * rows of X in flight, 230 -> 221. */
template <int UNROLL, typename T, int V, int LANES, int REPEATS>
static __device__ __forceinline__ void add_exchanged(const spmm_product &p, int64_t begin, int count,
                                                  const spmm_columns<T, V, LANES, REPEATS> &columns,
                                                  spmm_sums<T, V> (&results)[REPEATS], entry_exchange<32> &exchange)
{
    const int own = threadIdx.x % 32, lane = own % LANES;
    const int32_t *cols = p.cols + begin + lane;
    const int64_t away = (const char *)p.values - (const char *)p.cols;
    int longest = most_of_groups<LANES>(count), left = count; /* of the warp's groups; of this one */
    int32_t next_col = lane < left ? load_kept(cols, p.keep) : 0; /* 0 beyond the row */
    float next_weight;
    const auto fetch_weight = [&](int there) {
        const float *weights = (const float *)((const char *)cols + away);
        next_weight = lane < there ? p.values ? load_kept(weights, p.keep) : 1.f : 0.f;
        cols += LANES;
    };
    wait_for_previous();
    fetch_weight(left);
    for (; longest > 0; longest -= LANES, left -= LANES) {
        __syncwarp();
        exchange.cols[own] = next_col;
        exchange.weights[own] = next_weight;
        __syncwarp();
        if (longest > LANES) {
            next_col = lane < left - LANES ? load_kept(cols, p.keep) : 0;
            fetch_weight(left - LANES);
        }
#pragma unroll 1
        for (int at = 0; at < LANES && at < longest; at += UNROLL) {
            packet<T, V> gathered[UNROLL][REPEATS];
            const auto gather = [&](auto all) {
                const auto take = [&](int u, int32_t col) {
                    const char *row = row_of_x(columns.x, col, p.x_bytes);
#pragma unroll
                    for (int r = 0; r < REPEATS; r++)
                        if (decltype(all)::value) gathered[u][r].load((const T *)(row + columns.delta[r]), p.keep);
                        else gathered[u][r].load_if(at + u < left, (const T *)(row + columns.delta[r]), p.keep);
                };
#pragma unroll
                for (int u = 0; u < UNROLL; u += 2) {
                    const int2 pair = *(const int2 *)(exchange.cols + own - lane + at + u);
                    take(u, pair.x), take(u + 1, pair.y);
                }
            };
            if (__all_sync(FULL_WARP, at + UNROLL <= left)) gather(std::true_type());
            else gather(std::false_type());
#pragma unroll
            for (int u = 0; u < UNROLL; u += 2) {
                const float2 pair = *(const float2 *)(exchange.weights + own - lane + at + u);
#pragma unroll
                for (int r = 0; r < REPEATS; r++) {
                    results[r].add(gathered[u][r], pair.x, 0, true);
                    results[r].add(gathered[u + 1][r], pair.y, 0, true);
                }
            }
        }
    }
}

/* Rows of X of 12 packets, 8 lanes: two entries are three loads, one of each and one of the last 4 packets of both,
 * where two loads an entry would leave a quarter of the lanes idle. Adds a group's runs of LANES entries, which begin
 * every `step`; the first `left` entries from `begin` on are the row's. All lanes of the warp take part. */
template <int PAIRS, typename T, int V, int LANES>
static __device__ __forceinline__ void add_pairs(const spmm_product &p, int64_t begin, int left, int step,
                                                 const spmm_columns<T, V, LANES, 2> &columns,
                                                 spmm_sums<T, V> (&results)[2], entry_exchange<32> &exchange)
{
    const int own = threadIdx.x % 32, lane = own % LANES;
    const bool second = lane >= LANES / 2; /* of a pair */
    const int32_t *cols = p.cols + begin + lane;
    const int64_t away = (const char *)p.values - (const char *)p.cols;
    left -= lane;
    int32_t next_col = left > 0 ? load_kept(cols, p.keep) : -1;
    float next_weight;
    const auto fetch_weight = [&] {
        const float *weights = (const float *)((const char *)cols + away);
        next_weight = left > 0 ? p.values ? load_kept(weights, p.keep) : 1.f : 0.f;
        cols += step;
        left -= step;
    };
    wait_for_previous();
    fetch_weight();
    while (__any_sync(FULL_WARP, next_col >= 0)) {
        const bool whole = __all_sync(FULL_WARP, next_col >= 0);
        __syncwarp();
        exchange.cols[own] = next_col;
        exchange.weights[own] = next_weight;
        __syncwarp();
        next_col = left > 0 ? load_kept(cols, p.keep) : -1;
        fetch_weight();
#pragma unroll 1
        for (int at = own - lane; at < own - lane + LANES; at += 2 * PAIRS) {
            packet<T, V> gathered[PAIRS][3];
            const auto gather = [&](auto all) {
#pragma unroll
                for (int j = 0; j < PAIRS; j++) {
                    const int2 pair = *(const int2 *)(exchange.cols + at + 2 * j);
                    const int32_t shared = second ? pair.y : pair.x;
                    const auto take = [&](packet<T, V> &to, int32_t col, int r) {
                        const T *from = (const T *)(row_of_x(columns.x, col, p.x_bytes) + columns.delta[r]);
                        if (decltype(all)::value) to.load(from, p.keep);
                        else to.load_if(col >= 0, from, p.keep);
                    };
                    take(gathered[j][0], pair.x, 0);
                    take(gathered[j][1], pair.y, 0);
                    take(gathered[j][2], shared, 1);
                }
            };
            if (whole) gather(std::true_type());
            else gather(std::false_type());
#pragma unroll
            for (int j = 0; j < PAIRS; j++) {
                const float2 pair = *(const float2 *)(exchange.weights + at + 2 * j);
                results[0].add(gathered[j][0], pair.x, 0, true);
                results[0].add(gathered[j][1], pair.y, 0, true);
                results[1].add(gathered[j][2], second ? pair.y : pair.x, 0, true);
            }
        }
    }
    results[1].merge(results[1].across(LANES / 2));
}

/* Rows of X of one packet: each lane takes entries of its own, since lanes that share one would have nothing to load.
 * Five-point rows at 1 column 14.5 -> 5.9 us, a web of 1.5 million entries 23.8 -> 9.2. All lanes of the warp take
 * part. */
template <int UNROLL, typename T, int V, int LANES, typename Result>
static __device__ __forceinline__ void add_apart(const spmm_product &p, int64_t begin, int count, int number,
                                                 const spmm_columns<T, V, LANES, 1> &columns, Result &result)
{
    using S = typename spmm_sum<T>::type;
    const int lane = threadIdx.x % LANES;
    const int32_t *cols = p.cols + begin;
    const S *values = (const S *)p.values + begin;
    int32_t col[UNROLL];
    const auto fetch = [&](int at) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            col[u] = at + u * LANES < count ? load_kept(cols + at + u * LANES, p.keep) : 0;
    };
    fetch(lane);
    wait_for_previous();
#pragma unroll 1
    for (int at = lane; at < count; at += UNROLL * LANES) {
        packet<T, V> gathered[UNROLL];
        S weight[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const bool there = at + u * LANES < count;
            gathered[u].load_if(there, (const T *)row_of_x(columns.x, col[u], p.x_bytes), p.keep);
            weight[u] = there ? p.values ? load_kept(values + at + u * LANES, p.keep) : S(1) : S(0);
        }
        fetch(at + UNROLL * LANES);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            result.add(gathered[u], weight[u], number + at + u * LANES, at + u * LANES < count);
    }
    __syncwarp();
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) result.merge(result.across(step));
}

template <typename Y, int V, typename S>
static __device__ __forceinline__ void write_columns(Y *y, const S (&result)[V], S beta)
{
    packet<Y, V> old, made;
    if (beta != 0) old.load_changed(y);
#pragma unroll
    for (int v = 0; v < V; v++)
        narrow(beta != 0 ? fused(beta, wide(old.part[v]), result[v]) : result[v], made.part + v);
    made.store(y);
}

/* Prefetches the row of Y that the sum will be added to. */
template <typename T, int V, int LANES, int REPEATS>
static __device__ __forceinline__ void prefetch_row(const spmm_product &p, int64_t row,
                                                  const spmm_columns<T, V, LANES, REPEATS> &columns)
{
    using S = typename spmm_sum<T>::type;
    const size_t size = p.y_narrow ? sizeof(T) : sizeof(S);
    if (p.beta == 0) return;
#pragma unroll
    for (int r = 0; r < REPEATS; r++)
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)p.y + (row * p.y_stride + columns.at[r]) * size));
}

/* Writes a row's results, by one group. */
template <typename T, int V, int LANES, int REPEATS, typename Result>
static __device__ __forceinline__ void write_row(const spmm_product &p, int64_t row,
                                                 const spmm_columns<T, V, LANES, REPEATS> &columns,
                                                 const Result (&results)[REPEATS])
{
    using S = typename spmm_sum<T>::type;
    const S beta = (S)p.beta;
    S scale = (S)p.alpha;
    if (!Result::EXTREME && p.mean) {
        const int64_t entries = p.offsets[row + 1] - p.offsets[row];
        if (entries > 0) scale /= (S)entries;
    }
#pragma unroll
    for (int r = 0; r < REPEATS; r++) {
        if (!columns.inside[r]) continue;
        const int64_t at = row * p.y_stride + columns.at[r];
        S result[V];
#pragma unroll
        for (int v = 0; v < V; v++) result[v] = scale * results[r].result(v);
        if (sizeof(T) < sizeof(S) && p.y_narrow) write_columns<T, V>((T *)p.y + at, result, beta);
        else write_columns<S, V>((S *)p.y + at, result, beta);
        if constexpr (Result::EXTREME)
            if (p.argument)
#pragma unroll
                for (int v = 0; v < V; v++)
                    p.argument[row * p.width + columns.at[r] + v] =
                        results[r].entry[v] < 0 ? -1 : p.offsets[row] + results[r].entry[v];
    }
}

/* Whether loads of 16 bytes may begin at any fourth entry of A. */
static inline bool has_quads(const spmm_product &p)
{
    return ((uintptr_t)p.cols | (uintptr_t)p.values) % 16 == 0;
}

/* *can: 1 where blocks may be let in before the launch ahead has ended, so that products that follow one another take
 * 2 us less each: with code for Hopper or later, as what the driver makes of older PTX would not wait, and unless the
 * launch becomes part of a graph. */
template <typename Kernel> static sp_status can_be_early(sp_context *context, Kernel *kernel, unsigned *can)
{
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaFuncAttributes code;
    *can = 0;
    CUDA_CHECK(cudaStreamIsCapturing(cuda_state_of(context)->stream, &capture));
    if (capture != cudaStreamCaptureStatusNone) return SP_OK;
    CUDA_CHECK(cudaFuncGetAttributes(&code, kernel));
    *can = code.binaryVersion >= 90 && code.ptxVersion >= 90;
    return SP_OK;
}

/* ---- host: from shapes to kernels ------------------------------------------------------------------------ */

/* Calls launch.run<T, V, LANES, REPEATS, PARTS>() for one of the shapes that spmm.cu chooses from. */
template <typename T, int V, typename Launch>
static sp_status spmm_with_lanes(const spmm_shape &shape, const Launch &launch)
{
    constexpr bool whole = sizeof(T) * V == 16;
    if constexpr (whole && sizeof(T) <= 4 && !Launch::EXTREME)
        if (shape.pairs) return launch.template run<T, V, 8, 2, 2>();
    if constexpr (whole && sizeof(T) <= 4 && !Launch::EXTREME)
        if (shape.lanes == 16) return launch.template run<T, V, 16, 2>();
    if constexpr (whole && !Launch::EXTREME) {
        if (shape.lanes == 4 && shape.repeats == 2) return launch.template run<T, V, 4, 2>();
        if (shape.lanes == 8 && shape.repeats == 2) return launch.template run<T, V, 8, 2>();
    }
    if constexpr (whole)
        if (shape.lanes == 4) return launch.template run<T, V, 4, 1>();
    if constexpr (!whole && !Launch::EXTREME)
        if (shape.repeats == 2) return launch.template run<T, V, 32, 2>();
    if constexpr (!whole)
        if (shape.lanes == 16) return launch.template run<T, V, 16, 1>();
    if (shape.lanes == 32) return launch.template run<T, V, 32, 1>();
    return launch.template run<T, V, 8, 1>();
}

/* Rows of X of one packet. */
template <typename T, int V, typename Launch>
static sp_status spmm_lanes_apart(const spmm_shape &shape, const Launch &launch)
{
    return shape.lanes == 2   ? launch.template run<T, V, 2, 1, 2>()
           : shape.lanes == 4 ? launch.template run<T, V, 4, 1, 4>()
                              : launch.template run<T, V, 8, 1, 8>();
}

template <typename T, typename Launch>
static sp_status spmm_apart(const spmm_shape &shape, const Launch &launch)
{
    switch (shape.vector) {
    case 1: return spmm_lanes_apart<T, 1>(shape, launch);
    case 2: return spmm_lanes_apart<T, 2>(shape, launch);
    case 3: return spmm_lanes_apart<T, 3>(shape, launch);
    default: return spmm_lanes_apart<T, 4>(shape, launch);
    }
}

template <typename Launch>
static sp_status spmm_with_shape(sp_dense_type type, const spmm_shape &shape, const Launch &launch)
{
    switch (type) {
    case SP_DENSE_F32:
        return shape.apart         ? spmm_apart<float>(shape, launch)
               : shape.vector == 4 ? spmm_with_lanes<float, 4>(shape, launch)
               : shape.vector == 2 ? spmm_with_lanes<float, 2>(shape, launch)
                                   : spmm_with_lanes<float, 1>(shape, launch);
    case SP_DENSE_F64:
        return shape.apart         ? spmm_apart<double>(shape, launch)
               : shape.vector == 2 ? spmm_with_lanes<double, 2>(shape, launch)
                                   : spmm_with_lanes<double, 1>(shape, launch);
    case SP_DENSE_F16:
        return shape.apart         ? spmm_apart<__half>(shape, launch)
               : shape.vector == 8 ? spmm_with_lanes<__half, 8>(shape, launch)
                                   : spmm_with_lanes<__half, 1>(shape, launch);
    case SP_DENSE_BF16:
        return shape.apart         ? spmm_apart<__nv_bfloat16>(shape, launch)
               : shape.vector == 8 ? spmm_with_lanes<__nv_bfloat16, 8>(shape, launch)
                                   : spmm_with_lanes<__nv_bfloat16, 1>(shape, launch);
    }
    return SP_ERROR_UNSUPPORTED;
}

#endif
