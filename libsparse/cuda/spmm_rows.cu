/* Y = alpha · reduce(A · X) + beta · Y, a group of lanes a row, rows as they come.
 *
 * A row of n entries reads 16 bytes of offsets, 8n of A and n·width numbers of X, and writes width numbers of Y.
 * Nothing is prepared and neighbouring rows run on the same multiprocessor, so that what they share comes from its
 * own cache; but a row of many entries keeps its group long after the others have gone: for even degrees, and for
 * matrices whose neighbouring rows are alike.
 */
#include "spmm.cuh"

template <typename T, int V, int LANES, int REPEATS, typename Result>
static __global__ void __launch_bounds__(SPMM_ROW_THREADS, SPMM_RESIDENT(T, REPEATS, Result, SPMM_ROW_THREADS))
    split_rows(const spmm_product p)
{
    const int64_t row = (int64_t)blockIdx.x * (SPMM_ROW_THREADS / LANES) + threadIdx.x / LANES;
    const spmm_columns<T, V, LANES, REPEATS> columns(p, (int)blockIdx.y);
    const bool there = row < p.rows;
    const int64_t begin = there ? __ldg(p.offsets + row) : 0;
    const int count = there ? (int)(__ldg(p.offsets + row + 1) - begin) : 0;
    Result results[REPEATS];
#pragma unroll
    for (int r = 0; r < REPEATS; r++) results[r].clear(p);
    add_entries<spmm_depth<T, REPEATS, Result::EXTREME>::UNROLL>(p, begin, count, 0, columns, results);
    if (there) write_row(p, row, columns, results);
}

template <bool IS_EXTREME> struct row_launch {
    static constexpr bool EXTREME = IS_EXTREME;
    sp_context *context;
    const spmm_product &product;

    template <typename T, int V, int LANES, int REPEATS> sp_status run() const
    {
        using Result = std::conditional_t<EXTREME, spmm_extremes<T, V>, spmm_sums<T, V>>;
        constexpr int ROWS = SPMM_ROW_THREADS / LANES;
        const dim3 grid((unsigned)((product.rows + ROWS - 1) / ROWS), (unsigned)product.tiles);
        split_rows<T, V, LANES, REPEATS, Result>
            <<<grid, SPMM_ROW_THREADS, 0, cuda_state_of(context)->stream>>>(product);
        CUDA_TRY(cudaGetLastError());
        return SP_OK;
    }
};

sp_status cuda_spmm_rows(sp_context *context, sp_dense_type type, bool extreme, const spmm_shape &shape,
                         const spmm_product &product)
{
    return extreme ? spmm_with_shape(type, shape, row_launch<true>{context, product})
                   : spmm_with_shape(type, shape, row_launch<false>{context, product});
}
