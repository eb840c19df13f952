/* Y = alpha · reduce(A · X) + beta · Y, a group of lanes a row, in the order of the rows.
 *
 * Rows of a few entries are a chain of loads (offsets, columns, X) with little work at its end. A warp takes 32 of
 * them, loads the offsets and columns of all at once, and then keeps the rows of X of several rows of A in flight.
 *
 * A row of n entries reads 16 bytes of offsets, 8n of A and n·width numbers of X, and writes width numbers of Y.
 * Nothing is prepared, and neighbouring rows run on the same multiprocessor, so that they share its cache. But a group
 * with a long row works on after the others have ended. So this is for rows of like lengths.
 */
#include "spmm/cuda/walk.cuh"

enum { ROW_THREADS = 256 };

template <int LOADS, int PARTS, typename T, int V, int LANES, int REPEATS, typename Result>
static __global__ void __launch_bounds__(ROW_THREADS, SPMM_RESIDENT(T, V, LANES, REPEATS, Result, false, ROW_THREADS))
    split_rows(const spmm_product p)
{
    const int64_t row = (int64_t)blockIdx.x * (ROW_THREADS / LANES) + threadIdx.x / LANES;
    let_next_begin();
    const spmm_columns<T, V, LANES, REPEATS> columns(p, (int)blockIdx.y, PARTS);
    const bool there = row < p.rows;
    const int64_t begin = there ? __ldg(p.offsets + row) : 0;
    const int count = there ? (int)(__ldg(p.offsets + row + 1) - begin) : 0;
    Result results[REPEATS];
#pragma unroll
    for (int r = 0; r < REPEATS; r++) results[r].clear(p);
    if constexpr (LOADS > 0) add_quads<LOADS, PARTS>(p, begin, count, columns, results[0]);
    else if constexpr (PARTS == LANES) add_apart<2>(p, begin, count, 0, columns, results[0]);
    else if constexpr (PARTS > 1) {
        __shared__ entry_exchange<32> exchange[ROW_THREADS / 32];
        add_pairs<2>(p, begin, count, LANES, columns, results, exchange[threadIdx.x / 32]);
    } else if constexpr (LANES == 16 && REPEATS == 2) {
        __shared__ entry_exchange<32> exchange[ROW_THREADS / 32];
        add_exchanged<exchange_depth<T, V, LANES, REPEATS, Result::EXTREME>::UNROLL>(p, begin, count, columns, results,
                                                                              exchange[threadIdx.x / 32]);
    } else add_entries<spmm_depth<T, REPEATS, Result::EXTREME>::UNROLL>(p, begin, count, 0, columns, results);
    if (there) write_row(p, row, columns, results);
}

template <bool IS_EXTREME> struct row_launch {
    static constexpr bool EXTREME = IS_EXTREME;
    sp_context *context;
    const spmm_product &product;

    template <typename T, int V, int LANES, int REPEATS, int PARTS = 1> sp_status run() const
    {
        using Result = std::conditional_t<EXTREME, spmm_extremes<T, V>, spmm_sums<T, V>>;
        constexpr int ROWS = ROW_THREADS / LANES;
        const dim3 grid((unsigned)((product.rows + ROWS - 1) / ROWS), (unsigned)product.tiles);
        auto kernel = split_rows<0, PARTS, T, V, LANES, REPEATS, Result>;
        /* With four lanes of f32 they leave too few registers for 1,536 threads. */
        using quads = spmm_quads<T, V, LANES, REPEATS, EXTREME>;
        if constexpr (quads::FIT && sizeof(T) == 2 && PARTS == 1)
            if (has_quads(product) && !left_out("spmm-quads"))
                kernel = 2 * product.width > V * LANES ? split_rows<quads::LOADS, 1, T, V, LANES, REPEATS, Result>
                                                       : split_rows<quads::LOADS, 2, T, V, LANES, REPEATS, Result>;
        unsigned early;
        CHECK(can_be_early(context, kernel, &early));
        CUDA_CHECK(launch_kernel(kernel, grid, ROW_THREADS, 0, cuda_state_of(context)->stream, early > 0, product));
        return SP_OK;
    }
};

/* ---- rows of a few entries ------------------------------------------------------------------------------- */

/* Entries of a row that are loaded ahead, rows of a group whose X is in flight, and bytes of X of a lane in all. */
enum { FEW = 4, ROWS_AHEAD = 4, MOST_BYTES = 24 * 16, SHORT_BLOCKS = 2 };

template <typename T, int V, int LANES, int REPEATS>
static __global__ void __launch_bounds__(ROW_THREADS, SHORT_BLOCKS)
    short_rows(const spmm_product p)
{
    using S = typename spmm_sum<T>::type;
    constexpr int GROUPS = 32 / LANES, MOST_AHEAD = MOST_BYTES / (FEW * REPEATS * V * (int)sizeof(T));
    constexpr int FIT = MOST_AHEAD >= ROWS_AHEAD ? ROWS_AHEAD : MOST_AHEAD >= 2 ? 2 : 1;
    constexpr int AHEAD = FIT * GROUPS < 32 ? FIT : 32 / GROUPS;
    static_assert(32 % (AHEAD * GROUPS) == 0, "a warp's turns end with its rows");
    const int lane = threadIdx.x % 32;
    const int64_t first = ((int64_t)blockIdx.x * ROW_THREADS + threadIdx.x) / 32 * 32, own = first + lane;
    let_next_begin();
    if (first >= p.rows) return;
    const spmm_columns<T, V, LANES, REPEATS> columns(p, (int)blockIdx.y);
    const int64_t begin = own < p.rows ? __ldg(p.offsets + own) : 0;
    const int count = own < p.rows ? (int)(__ldg(p.offsets + own + 1) - begin) : 0;
    int32_t col[FEW];
    S weight[FEW];
#pragma unroll
    for (int k = 0; k < FEW; k++) col[k] = k < count ? __ldg(p.cols + begin + k) : 0;
    wait_for_previous();
#pragma unroll
    for (int k = 0; k < FEW; k++)
        weight[k] = k < count ? p.values ? __ldg((const S *)p.values + begin + k) : S(1) : S(0);
#pragma unroll 1
    for (int done = 0; done < 32; done += AHEAD * GROUPS) {
        packet<T, V> gathered[AHEAD][FEW][REPEATS];
        int source[AHEAD], entries[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            source[a] = done + a * GROUPS + lane / LANES;
            entries[a] = __shfl_sync(FULL_WARP, count, source[a]);
            if (first + source[a] < p.rows) prefetch_row(p, first + source[a], columns);
#pragma unroll
            for (int k = 0; k < FEW; k++) {
                const int32_t c = __shfl_sync(FULL_WARP, col[k], source[a]);
#pragma unroll
                for (int r = 0; r < REPEATS; r++)
                    gathered[a][k][r].load_if(k < entries[a], (const T *)(row_of_x(columns.x, c, p.x_bytes) +
                                                                          columns.delta[r]));
            }
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            spmm_sums<T, V> results[REPEATS];
#pragma unroll
            for (int r = 0; r < REPEATS; r++) results[r].clear(p);
#pragma unroll
            for (int k = 0; k < FEW; k++) {
                const S w = __shfl_sync(FULL_WARP, weight[k], source[a]);
#pragma unroll
                for (int r = 0; r < REPEATS; r++) results[r].add(gathered[a][k][r], w, k, k < entries[a]);
            }
            const int64_t start = __shfl_sync(FULL_WARP, (long long)begin, source[a]);
            for (int k = FEW; k < entries[a]; k++) {
                const char *row = row_of_x(columns.x, __ldg(p.cols + start + k), p.x_bytes);
                const S w = p.values ? __ldg((const S *)p.values + start + k) : S(1);
#pragma unroll
                for (int r = 0; r < REPEATS; r++) {
                    packet<T, V> x;
                    x.load((const T *)(row + columns.delta[r]));
                    results[r].add(x, w, k, true);
                }
            }
            if (first + source[a] < p.rows) write_row(p, first + source[a], columns, results);
        }
    }
}

struct short_launch {
    sp_context *context;
    const spmm_product &product;

    template <typename T, int V, int LANES, int REPEATS = 1> sp_status run() const
    {
        constexpr int COLUMNS = V * LANES * REPEATS;
        const dim3 grid((unsigned)((product.rows + ROW_THREADS - 1) / ROW_THREADS),
                        (unsigned)((product.width + COLUMNS - 1) / COLUMNS));
        const auto kernel = short_rows<T, V, LANES, REPEATS>;
        unsigned early;
        CHECK(can_be_early(context, kernel, &early));
        CUDA_CHECK(launch_kernel(kernel, grid, ROW_THREADS, 0, cuda_state_of(context)->stream, early > 0, product));
        return SP_OK;
    }
    /* As many lanes as a row has packets. Those that are too many load nothing, and with too little under way memory
     * waits: 24 packets, 0.54 ms for 32 with 0.61, take 8 lanes three times, and 12 take 4. */
    template <typename T> sp_status run_wide(int vector) const
    {
        constexpr int V = 16 / sizeof(T);
        const int packets = product.width / vector;
        if (vector == 1)
            return packets <= 8 ? run<float, 1, 8>() : packets <= 32 ? run<float, 1, 8, 4>() : run<float, 1, 32, 4>();
        if (vector < V)
            return packets <= 8 ? run<float, 2, 8>() : packets <= 32 ? run<float, 2, 8, 4>() : run<float, 2, 32, 2>();
        if (packets <= 4) return run<T, V, 4>();
        if (packets <= 8) return run<T, V, 8>();
        if (packets <= 12) return run<T, V, 4, 3>();
        if (packets <= 16) return run<T, V, 16>();
        if ((packets + 23) / 24 * 24 < (packets + 31) / 32 * 32) return run<T, V, 8, 3>();
        return run<T, V, 32>();
    }
};

sp_status cuda_spmm_short_rows(sp_context *context, sp_dense_type type, int vector, const spmm_product &product)
{
    const short_launch launch = {context, product};
    switch (type) {
    case SP_DENSE_F32: return launch.run_wide<float>(vector);
    case SP_DENSE_F64: return launch.run_wide<double>(vector);
    case SP_DENSE_F16: return launch.run_wide<__half>(vector);
    case SP_DENSE_BF16: return launch.run_wide<__nv_bfloat16>(vector);
    }
    return SP_ERROR_UNSUPPORTED;
}

/* ---- the product ----------------------------------------------------------------------------------------- */

sp_status cuda_spmm_rows(sp_context *context, sp_dense_type type, bool extreme, const spmm_shape &shape,
                         const spmm_product &product)
{
    return extreme ? spmm_with_shape(type, shape, row_launch<true>{context, product})
                   : spmm_with_shape(type, shape, row_launch<false>{context, product});
}
