/* C = alpha · op(A) · op(B) + beta · C on the CPU: CBLAS, one call a tile of C, tiles side by side on OpenMP threads.
 *
 * BLAS stays on one thread a call. Its own threads would spin on the cores that the operations before and after use,
 * and would not split a product with a small C. For Xᵀ·G the inner dimension, the nodes, is cut as well, and the
 * parts are added in their order. Tiles depend on the shape alone, so the bits of C do not depend on threads. */
#include <cblas.h>

#include "backend.h"

/* TILE: rows and columns of a tile, at least. PART: a part of the inner dimension, at least; BLAS packs as much at
 * once, and each part costs a pass over C. PARTIAL: numbers of all parts together, at most. */
enum { TILE = 128, PART = 256, PARTIAL = 1 << 22 };

typedef struct product {
    bool transpose_a, transpose_b;
    double alpha, beta;
    const sp_dense *a, *b;
    sp_dense *c;
    int64_t inner, row_tiles, col_tiles, parts;
    void *partial; /* parts - 1 matrices of C's shape, side by side */
} product;

/* Tiles of a transposed A would read it in short pieces (1.4 times as long for 500 x 89,250 x 256), so there the
 * inner dimension is cut first. */
static void cut(product *p)
{
    const int64_t rows = p->c->rows, cols = p->c->cols;
    const int64_t tasks = cpu_tasks(rows, cols, p->inner);
    p->parts = p->transpose_a ? cpu_at_most(p->inner / PART, cpu_at_most(PARTIAL / rows / cols, tasks)) : 1;
    p->row_tiles = cpu_at_most(rows / TILE, tasks / p->parts);
    p->col_tiles = cpu_at_most(cols / TILE, tasks / p->parts / p->row_tiles);
}

void gnn_cpu_gemm(bool transpose_a, bool transpose_b, double alpha, const sp_dense *a, const sp_dense *b, double beta,
                  sp_dense *c)
{
    const CBLAS_TRANSPOSE op_a = transpose_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE op_b = transpose_b ? CblasTrans : CblasNoTrans;
    const int m = (int)c->rows, n = (int)c->cols, inner = (int)(transpose_a ? a->rows : a->cols);
    /* BLAS ends the process over a stride of 0, even if it reads nothing. */
    const int a_stride = a->stride > 0 ? (int)a->stride : 1, b_stride = b->stride > 0 ? (int)b->stride : 1;
    const int c_stride = (int)c->stride;
    if (c->type == SP_DENSE_F32)
        cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, inner, (float)alpha, a->values, a_stride, b->values, b_stride,
                    (float)beta, c->values, c_stride);
    else
        cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, inner, alpha, a->values, a_stride, b->values, b_stride, beta,
                    c->values, c_stride);
}

static void multiply_tile(const product *p, int64_t task)
{
    const int64_t part = task % p->parts, tile = task / p->parts;
    const int64_t row = tile / p->col_tiles, col = tile % p->col_tiles;
    const int64_t i = p->c->rows * row / p->row_tiles, j = p->c->cols * col / p->col_tiles;
    const int64_t k = p->inner * part / p->parts;
    const int64_t m = p->c->rows * (row + 1) / p->row_tiles - i, n = p->c->cols * (col + 1) / p->col_tiles - j;
    const int64_t inner = p->inner * (part + 1) / p->parts - k;
    const sp_dense a = p->transpose_a ? cpu_part(p->a, k, inner, i, m) : cpu_part(p->a, i, m, k, inner);
    const sp_dense b = p->transpose_b ? cpu_part(p->b, j, n, k, inner) : cpu_part(p->b, k, inner, j, n);
    sp_dense c = *p->c;
    if (part > 0) {
        c.stride = c.cols;
        c.values = (char *)p->partial + (size_t)((part - 1) * c.rows * c.cols) * number_size(c.type);
    }
    c = cpu_part(&c, i, m, j, n);
    gnn_cpu_gemm(p->transpose_a, p->transpose_b, p->alpha, &a, &b, part > 0 ? 0 : p->beta, &c);
}

#define ADD_PARTS(type)                                                                                   \
    static void add_parts_##type(const product *p, int64_t i)                                             \
    {                                                                                                     \
        const int64_t rows = p->c->rows, cols = p->c->cols;                                               \
        type *to = cpu_row(p->c, i);                                                                      \
        for (int64_t part = 0; part < p->parts - 1; part++) {                                             \
            const type *from = (const type *)p->partial + (part * rows + i) * cols;                       \
            for (int64_t j = 0; j < cols; j++) to[j] += from[j];                                          \
        }                                                                                                 \
    }

ADD_PARTS(float)
ADD_PARTS(double)

bool gnn_cpu_fits_blas(const sp_dense *matrix)
{
    return matrix->rows <= INT32_MAX && matrix->cols <= INT32_MAX && matrix->stride <= INT32_MAX;
}

int gnn_cpu_blas_alone(const gnn_engine *engine)
{
    const cpu_state *state = engine->state;
    const int threads = state->blas_threads ? state->blas_threads() : 1;
    if (threads > 1) state->set_blas_threads(1);
    return threads;
}

void gnn_cpu_blas_return(const gnn_engine *engine, int threads)
{
    const cpu_state *state = engine->state;
    if (threads > 1) state->set_blas_threads(threads);
}

static sp_status multiply_half(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, const sp_dense *a,
                               const sp_dense *b, double beta, sp_dense *c)
{
    sp_dense wide_a = {0}, wide_b = {0}, wide_c = {0};
    sp_status status;
    TRY(gnn_cpu_wide(engine, a, true, &wide_a));
    TRY(gnn_cpu_wide(engine, b, true, &wide_b));
    TRY(gnn_cpu_wide(engine, c, beta != 0, &wide_c));
    TRY(gnn_cpu_multiply(engine, transpose_a, transpose_b, alpha, &wide_a, &wide_b, beta, &wide_c));
done:
    gnn_cpu_leave_wide(engine, c, status == SP_OK ? c : NULL, &wide_c);
    gnn_cpu_leave_wide(engine, b, NULL, &wide_b);
    gnn_cpu_leave_wide(engine, a, NULL, &wide_a);
    return status;
}

sp_status gnn_cpu_multiply(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, const sp_dense *a,
                           const sp_dense *b, double beta, sp_dense *c)
{
    if (a->type == SP_DENSE_BF16 || b->type == SP_DENSE_BF16 || c->type == SP_DENSE_BF16)
        return multiply_half(engine, transpose_a, transpose_b, alpha, a, b, beta, c);
    const int64_t inner = transpose_a ? a->rows : a->cols;
    product p = {transpose_a, transpose_b, alpha, beta, a, b, c, inner, 1, 1, 1, NULL};
    if (!gnn_cpu_fits_blas(a) || !gnn_cpu_fits_blas(b) || !gnn_cpu_fits_blas(c))
        return sp_fail(engine->context, SP_ERROR_UNSUPPORTED, "a product of %lld x %lld x %lld: BLAS counts to 2^31",
                       (long long)c->rows, (long long)inner, (long long)c->cols);
    if (c->rows == 0 || c->cols == 0) return SP_OK;
    cut(&p);
    if (p.parts > 1) {
        const sp_status status =
            gnn_cpu_scratch(engine, (p.parts - 1) * c->rows * c->cols, number_size(c->type), &p.partial);
        if (status != SP_OK) return status;
    }
    const int64_t tasks = p.row_tiles * p.col_tiles * p.parts;
    const int threads = cpu_threads(engine, cpu_steps(c->rows, c->cols, inner));
    const int blas_threads = gnn_cpu_blas_alone(engine);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t task = 0; task < tasks; task++) multiply_tile(&p, task);
    gnn_cpu_blas_return(engine, blas_threads);
    if (p.parts == 1) return SP_OK;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, p.parts * c->rows * c->cols))
    for (int64_t i = 0; i < c->rows; i++)
        if (c->type == SP_DENSE_F32) add_parts_float(&p, i);
        else add_parts_double(&p, i);
    return SP_OK;
}

sp_status gnn_cpu_multiply_features(gnn_engine *engine, bool transpose, const sp_dense *x, int count,
                                    const gnn_product_with *each)
{
    sp_status status = SP_OK;
    for (int k = 0; status == SP_OK && k < count; k++) {
        const sp_dense first = gnn_first_rows(x, (transpose ? each[k].b : each[k].c)->rows);
        status = gnn_cpu_multiply(engine, transpose, false, 1, &first, each[k].b, 0, each[k].c);
    }
    return status;
}
