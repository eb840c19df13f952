/* Which lane takes which columns of X: alignment of rows, width of tiles, lanes of a group.
 */
#include "spmm/cuda/shape.cuh"

bool cuda_spmm_at_lines(const sp_dense *matrix)
{
    return matrix->stride * (int64_t)sp_dense_size(matrix->type) % LINE_BYTES == 0 &&
        (uintptr_t)matrix->values % LINE_BYTES == 0;
}

bool cuda_spmm_fits(const sp_dense *matrix, int64_t numbers)
{
    const size_t bytes = (size_t)numbers * sp_dense_size(matrix->type), most = bytes < 16 ? bytes : 16;
    return matrix->cols % numbers == 0 && matrix->stride * (int64_t)sp_dense_size(matrix->type) % (int64_t)most == 0 &&
           (uintptr_t)matrix->values % most == 0;
}

/* Lanes and repeats with the least to do, for at most `most` columns: packets, idle ones too, and for each tile what
 * its entries of A cost, some 8 packets of X. Rows of few entries are taken 8 a warp rather than 4. Wide rows of X
 * that lie across lines are loaded by 256 bytes, which are in three lines, rather than by 128, in two, and in tiles
 * of which the cache holds half: 262,144 of them at 100 and 200 columns 814 -> 761 and 1,655 -> 1,464 us; 128 columns
 * in lines would take 896 for 871. */
static spmm_shape choose_shape(const sp_dense *x, const sp_dense *y, bool extreme, bool few, int64_t most)
{
    static const int whole_shapes[][2] = {{4, 1}, {4, 2}, {8, 1}, {8, 2}, {16, 2}};
    static const int narrow_shapes[][2] = {{8, 1}, {32, 1}, {32, 2}, {16, 1}};
    const int packet = (int)(16 / sp_dense_size(x->type));
    const bool whole = cuda_spmm_fits(x, packet) && cuda_spmm_fits(y, packet), single = x->type == SP_DENSE_F32;
    const int vector = whole ? packet : single && cuda_spmm_fits(x, 2) && cuda_spmm_fits(y, 2) ? 2 : 1;
    const int count = (int)(whole ? sizeof whole_shapes : sizeof narrow_shapes) / (int)sizeof *whole_shapes;
    const bool across = sp_dense_size(x->type) <= 4 && !cuda_spmm_at_lines(x);
    const int64_t packets = x->cols / vector;
    spmm_shape best = {vector, 8, 1};
    int64_t best_cost = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const int lanes = (whole ? whole_shapes : narrow_shapes)[i][0];
        const int repeats = (whole ? whole_shapes : narrow_shapes)[i][1], span = lanes * repeats;
        if ((repeats > 1 && extreme) || (whole && lanes == 16 && !across)) continue;
        if ((span * vector > (lanes == 16 ? 2 * most : most) && span > 8) ||
            (lanes == 4 && repeats == 2 && !few))
            continue;
        const int64_t tiles = (packets + span - 1) / span, cost = tiles * (span + 8);
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = {vector, lanes, repeats};
    }
    return best;
}

/* Rows of X of 9 to 12 packets are one tile, two entries at a time, beyond the cache too: R-MAT 20 at 96 columns of
 * f16 2.07 -> 1.81 ms by ranges. But where rows are alike, narrower tiles, which the cache holds, take 1.37 ms for
 * 1.76. */
bool cuda_spmm_takes_pairs(const sp_dense *x, const sp_dense *y, bool extreme, sp_spmm_algorithm algorithm,
                           int64_t most)
{
    const int64_t packet = 16 / (int64_t)sp_dense_size(x->type), packets = x->cols / packet;
    if (left_out("spmm-pairs")) return false;
    return packets > 8 && packets <= 12 && x->type != SP_DENSE_F64 && !extreme && cuda_spmm_fits(x, packet) &&
           cuda_spmm_fits(y, packet) && (algorithm != SP_SPMM_ROW_SPLIT || 12 * packet <= most);
}

bool cuda_spmm_takes_apart(const sp_dense *x, const sp_dense *y)
{
    return x->cols <= 4 && (x->cols == 3 || (cuda_spmm_fits(x, x->cols) && cuda_spmm_fits(y, x->cols)));
}

/* Lanes with entries of their own: as many as make a row two steps or three. The lanes of idle groups of a block wait,
 * so blocks have no fewer than four. */
static int lanes_apart(const spmm_blocks *parts, int64_t nnz, int64_t places)
{
    const int64_t mean = places > 0 ? nnz / places : 0;
    if (parts) return mean < 13 ? 4 : 8;
    return mean < 5 ? 2 : mean < 17 ? 4 : 8;
}

sp_status cuda_spmm_describe(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                             const spmm_state *state, double alpha, const sp_dense *x, double beta, const sp_dense *y,
                             int64_t *argument, spmm_shape *shape, spmm_product *product)
{
    const int64_t row_bytes = x->stride * (int64_t)sp_dense_size(x->type);
    if (row_bytes > UINT32_MAX || x->cols > INT32_MAX / 2)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "rows of X of %lld columns, %lld bytes apart",
                       (long long)x->cols, (long long)row_bytes);
    /* Tiles of X that the second-level cache holds, if lines of it are narrow enough. */
    int64_t most = 128;
    while (most > TILE_COLUMNS && a->cols * most * (int64_t)sp_dense_size(x->type) > state->cache / 10 * 11) most /= 2;
    if (state->algorithm == SP_SPMM_BIDIRECTIONAL) most = TILE_COLUMNS;
    const int64_t places = state->parts ? state->parts->places : a->rows;
    if (cuda_spmm_takes_apart(x, y))
        *shape = {(int)x->cols, lanes_apart(state->parts, a->nnz, places), 1, false, true};
    else if (cuda_spmm_takes_pairs(x, y, spmm_is_extreme(options), state->algorithm, most))
        *shape = {16 / (int)sp_dense_size(x->type), 8, 2, true};
    else *shape = choose_shape(x, y, spmm_is_extreme(options), a->nnz < 8 * places, most);
    *product = {};
    product->offsets = a->row_offsets;
    product->cols = a->col_indices;
    product->values = a->values;
    product->rows = a->rows;
    product->nnz = a->nnz;
    product->x = x->values;
    product->y = y->values;
    product->argument = argument;
    product->y_stride = y->stride;
    product->x_bytes = (uint32_t)row_bytes;
    product->width = product->total = (int32_t)x->cols;
    product->tiles = (int32_t)((x->cols + shape->columns() - 1) / shape->columns());
    product->alpha = alpha;
    product->beta = beta;
    product->mean = options->reduce == SP_REDUCE_MEAN;
    product->minimum = options->reduce == SP_REDUCE_MIN;
    product->y_narrow = sp_dense_size(y->type) == 2;
    product->keep = SPMM_STAYS;
    if (product->tiles > 65535)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "X has %lld columns", (long long)x->cols);
    return SP_OK;
}
