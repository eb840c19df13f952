/* C_k = alpha · op(A) · op(B_k) + beta · C_k on the CPU, for one B or two: tiles of C side by side on OpenMP threads,
 * each by gemm.c. For Xᵀ·G the inner dimension, the nodes, is cut as well, and the parts are added in their order.
 * Tiles depend on the shape alone, so the bits of C do not depend on threads. */
#include "backend.h"

/* TILE: rows and columns of a tile, at least. PART: a part of the inner dimension, at least; each part costs a pass
 * over C. PARTIAL: numbers of all parts together, at most. */
enum { TILE = 128, PART = 256, PARTIAL = 1 << 22 };

typedef struct product {
    cpu_gemm of;
    int64_t inner, rows, cols; /* of all C together */
    int64_t row_tiles, col_tiles, parts;
    void *partial; /* parts - 1 matrices of C_1's and then C_2's shape */
} product;

/* Tiles of a transposed A would read it in short pieces (1.4 times as long for 500 x 89,250 x 256), so there the
 * inner dimension is cut first. */
static void cut(product *p)
{
    const int64_t tasks = cpu_tasks(p->rows, p->cols, p->inner);
    p->parts = p->of.transpose_a
                   ? cpu_at_most(p->inner / PART, cpu_at_most(PARTIAL / p->rows / p->cols, tasks)) : 1;
    p->row_tiles = cpu_at_most(p->rows / TILE, tasks / p->parts);
    p->col_tiles = p->of.count > 1 ? 1 : cpu_at_most(p->cols / TILE, tasks / p->parts / p->row_tiles);
}

/* cpu_part of a matrix that may end before row i + rows. */
static sp_dense known_part(const sp_dense *matrix, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    const int64_t begin = i < matrix->rows ? i : matrix->rows, left = matrix->rows - begin;
    return cpu_part(matrix, begin, left < rows ? left : rows, j, cols);
}

/* Where a part of C_k goes: to C_k itself, or to the matrix of the part. */
static sp_dense part_of_c(const product *p, int64_t part, int k)
{
    sp_dense c = p->of.c[k];
    if (part == 0) return c;
    const int64_t before = ((part - 1) * p->cols + (k > 0 ? p->of.c[0].cols : 0)) * p->rows;
    c.stride = c.cols;
    c.values = (char *)p->partial + (size_t)before * number_size(c.type); /* not bf16, whose products have one part */
    return c;
}

static void multiply_tile(const product *p, int64_t task, const cpu_gemm_room *room)
{
    const int64_t part = task % p->parts, tile = task / p->parts;
    const int64_t row = tile / p->col_tiles, col = tile % p->col_tiles;
    const int64_t i = p->rows * row / p->row_tiles, m = p->rows * (row + 1) / p->row_tiles - i;
    const int64_t k = p->inner * part / p->parts, inner = p->inner * (part + 1) / p->parts - k;
    cpu_gemm g = p->of;
    g.a = g.transpose_a ? cpu_part(&g.a, k, inner, i, m) : cpu_part(&g.a, i, m, k, inner);
    if (part > 0) g.beta = 0;
    for (int each = 0; each < g.count; each++) {
        const sp_dense *b = &p->of.b[each], c = part_of_c(p, part, each);
        const int64_t j = c.cols * col / p->col_tiles, n = c.cols * (col + 1) / p->col_tiles - j;
        g.b[each] = g.transpose_b ? cpu_part(b, j, n, k, inner) : known_part(b, k, inner, j, n);
        g.c[each] = known_part(&c, i, m, j, n);
    }
    gnn_cpu_gemm(&g, room);
}

#define ADD_PARTS(type)                                                                                   \
    static void add_parts_##type(const product *p, int64_t i)                                             \
    {                                                                                                     \
        for (int k = 0; k < p->of.count; k++) {                                                           \
            const sp_dense *c = &p->of.c[k];                                                              \
            type *to = cpu_row(c, i);                                                                     \
            for (int64_t part = 1; part < p->parts; part++) {                                             \
                const sp_dense sum = part_of_c(p, part, k);                                               \
                const type *from = cpu_row(&sum, i);                                                      \
                for (int64_t j = 0; j < c->cols; j++) to[j] += from[j];                                   \
            }                                                                                             \
        }                                                                                                 \
    }

ADD_PARTS(float)
ADD_PARTS(double)

bool gnn_cpu_fits_blas(const sp_dense *matrix)
{
    return matrix->rows <= INT32_MAX && matrix->cols <= INT32_MAX && matrix->stride <= INT32_MAX;
}

static sp_status multiply_all(gnn_engine *engine, product *p)
{
    const sp_dense_type type = p->of.c[0].type;
    const int64_t count = p->rows * p->cols;
    cpu_gemm_room room;
    cut(p);
    const int64_t tasks = p->row_tiles * p->col_tiles * p->parts;
    const int threads = cpu_threads(engine, cpu_steps(p->rows, p->cols, p->inner));
    if (p->parts > 1) {
        const sp_status status = gnn_cpu_scratch(engine, (p->parts - 1) * count, number_size(type), &p->partial);
        if (status != SP_OK) return status;
    }
    const bool half = cpu_is_half(&p->of.a) || cpu_is_half(&p->of.c[0]);
    const sp_status status = gnn_cpu_gemm_begin(engine, type, threads, p->inner, p->cols, half, &room);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t task = 0; task < tasks; task++) multiply_tile(p, task, &room);
    gnn_cpu_gemm_end(engine, &room);
    if (p->parts == 1) return SP_OK;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, p->parts * count))
    for (int64_t i = 0; i < p->rows; i++)
        if (type == SP_DENSE_F32) add_parts_float(p, i);
        else add_parts_double(p, i);
    return SP_OK;
}

/* Whole copies in f32: for BLAS, and where C = Aᵀ·B is bf16, which no model does. */
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
    const bool half = cpu_is_half(a) || cpu_is_half(b) || cpu_is_half(c);
    if (half && (!gnn_cpu_multiplies_half() || (transpose_a && cpu_is_half(c))))
        return multiply_half(engine, transpose_a, transpose_b, alpha, a, b, beta, c);
    product p = {{transpose_a, transpose_b, alpha, beta, *a, 1, {*b}, {*c}}, transpose_a ? a->rows : a->cols,
                 c->rows, c->cols, 1, 1, 1, NULL};
    if (!gnn_cpu_fits_blas(a) || !gnn_cpu_fits_blas(b) || !gnn_cpu_fits_blas(c))
        return sp_fail(engine->context, SP_ERROR_UNSUPPORTED, "a product of %lld x %lld x %lld: BLAS counts to 2^31",
                       (long long)c->rows, (long long)p.inner, (long long)c->cols);
    return c->rows == 0 || c->cols == 0 ? SP_OK : multiply_all(engine, &p);
}

/* Two products of f32 or bf16 in one pass over X: it is read from memory once, not twice. */
sp_status gnn_cpu_multiply_features(gnn_engine *engine, bool transpose, const sp_dense *x, int count,
                                    const gnn_product_with *each)
{
    sp_status status = SP_OK;
    const sp_dense *c = each[0].c, *b = each[0].b;
    const bool half = cpu_is_half(x) || cpu_is_half(b) || cpu_is_half(c);
    if (count == 2 && x->type != SP_DENSE_F64 && c->type == each[1].c->type && gnn_cpu_fits_blas(x) &&
        !(half && (!gnn_cpu_multiplies_half() || (transpose && cpu_is_half(c))))) {
        product p = {{transpose, false, 1, 0, *x, 2, {*b, *each[1].b}, {*c, *each[1].c}},
                     transpose ? x->rows : x->cols, c->rows, c->cols + each[1].c->cols, 1, 1, 1, NULL};
        return p.rows == 0 || p.cols == 0 ? SP_OK : multiply_all(engine, &p);
    }
    for (int k = 0; status == SP_OK && k < count; k++) {
        const sp_dense first = gnn_first_rows(x, (transpose ? each[k].b : each[k].c)->rows);
        status = gnn_cpu_multiply(engine, transpose, false, 1, &first, each[k].b, 0, each[k].c);
    }
    return status;
}
