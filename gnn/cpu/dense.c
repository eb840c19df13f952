/* Dense layers in one pass on the CPU: Y = forward(Σ A·B + bias), and back dX = (Σ G·Wᵀ) ∘ derivative with its column
 * sums and dW = Xᵀ·G. A thread takes a tile of rows and does all steps while the tile lies in its caches. Products
 * are gemm.c's.
 *
 * On the way back X and dX, nodes x hidden, are read or written once each, instead of eight times together step by
 * step. With few classes nothing else takes time. Two products become one of [G_1 G_2] and [W_1 W_2], so X is read
 * once.
 *
 * dW and the sums are added up over parts of the rows. Parts depend on the shape alone, so the bits do not depend on
 * threads. Shapes with few parts go step by step, where products are also cut by columns. */
#include <omp.h>
#include <string.h>

#include "backend.h"

/* Rows of a part and parts of a matrix, at least. TILE: numbers of X and [G_1 G_2] in a tile (2 MB, with dX 4 MB, in
 * the third-level cache). PARTIAL: numbers of dW in all parts together, at most; each part costs a pass. */
enum { ROWS = 128, FEW = 8, TILE = 1 << 19, PARTIAL = 1 << 22 };

sp_status gnn_cpu_dense(gnn_engine *engine, int count, const gnn_product *product, const gnn_pointwise *how,
                        const void *bias, sp_dense *y)
{
    const bool changes = bias || how->activation != GNN_LINEAR || how->rate > 0;
    int64_t inner = 0;
    bool fits = gnn_cpu_fits_blas(y), half = cpu_is_half(y);
    for (int k = 0; k < count; k++) {
        half = half || cpu_is_half(product[k].a);
        inner += product[k].a->cols;
        fits = fits && gnn_cpu_fits_blas(product[k].a) && gnn_cpu_fits_blas(product[k].b);
    }
    const int64_t tiles = cpu_at_most(y->rows / ROWS, cpu_tasks(y->rows, y->cols, inner));
    if (left_out("gnn-cpu-dense") || !fits || tiles < FEW || y->cols == 0 ||
        (half && !gnn_cpu_multiplies_half()))
        return gnn_dense_by_steps(engine, count, product, how, bias, y);
    const cpu_mask mask = gnn_cpu_mask(engine, how);
    const int threads = cpu_threads(engine, cpu_steps(y->rows, y->cols, inner));
    cpu_gemm_room room;
    const sp_status status = gnn_cpu_gemm_begin(engine, y->type, threads, inner, y->cols, half, &room);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t tile = 0; tile < tiles; tile++) {
        const int64_t begin = y->rows * tile / tiles, end = y->rows * (tile + 1) / tiles;
        const sp_dense to = cpu_part(y, begin, end - begin, 0, y->cols);
        for (int k = 0; k < count; k++) {
            const sp_dense a = cpu_part(product[k].a, begin, end - begin, 0, product[k].a->cols);
            gnn_cpu_gemm(&(cpu_gemm){false, false, 1, k > 0, a, 1, {*product[k].b}, {to}}, &room);
        }
        if (changes) gnn_cpu_forward_rows(&mask, y, bias, y, begin, end);
    }
    gnn_cpu_gemm_end(engine, &room);
    return SP_OK;
}

typedef struct way_back {
    int count;
    const gnn_product_gradient *product;
    cpu_mask how;
    const sp_dense *x;
    sp_dense *x_gradient;
    int64_t parts, tile_rows;
    sp_dense w;          /* [W_1 W_2] */
    sp_dense beside;     /* of two products: tile_rows rows a thread, for [G_1 G_2] */
    sp_dense w_gradient; /* x->cols rows a part: Xᵀ·[G_1 G_2], f32 or f64 */
    double *sums;        /* x->cols a part */
    cpu_gemm_room room;
} way_back;

/* Rows i .. i + rows - 1 of [G_1 G_2]; missing rows of the second are 0. */
static sp_dense tile_of_gradients(const way_back *job, int64_t i, int64_t rows)
{
    const size_t size = number_size(job->x->type);
    if (job->count == 1) return cpu_part(job->product->g, i, rows, 0, job->product->g->cols);
    const sp_dense tile = cpu_part(&job->beside, omp_get_thread_num() * job->tile_rows, rows, 0, job->beside.cols);
    for (int64_t r = 0; r < rows; r++) {
        char *to = cpu_row(&tile, r);
        for (int k = 0; k < job->count; k++) {
            const sp_dense *g = job->product[k].g;
            const size_t bytes = (size_t)g->cols * size;
            if (i + r < g->rows) memcpy(to, cpu_row(g, i + r), bytes);
            else memset(to, 0, bytes);
            to += bytes;
        }
    }
    return tile;
}

static void go_back(const way_back *job, int64_t part)
{
    const int64_t cols = job->x->cols, end = job->x->rows * (part + 1) / job->parts;
    const int64_t begin = job->x->rows * part / job->parts;
    const sp_dense w_gradient = cpu_part(&job->w_gradient, part * cols, cols, 0, job->w_gradient.cols);
    double *sums = job->sums + part * cols;
    memset(sums, 0, (size_t)cols * sizeof *sums);
    for (int64_t i = begin; i < end; i += job->tile_rows) {
        const int64_t rows = end - i < job->tile_rows ? end - i : job->tile_rows;
        const sp_dense g = tile_of_gradients(job, i, rows), x = cpu_part(job->x, i, rows, 0, cols);
        const sp_dense x_gradient = cpu_part(job->x_gradient, i, rows, 0, cols);
        gnn_cpu_gemm(&(cpu_gemm){true, false, 1, i > begin, x, 1, {g}, {w_gradient}}, &job->room);
        gnn_cpu_gemm(&(cpu_gemm){false, true, 1, 0, g, 1, {job->w}, {x_gradient}}, &job->room);
        gnn_cpu_backward_rows(&job->how, job->x, job->x_gradient, job->x_gradient, i, i + rows, sums);
    }
}

/* Row `row` of every dW. */
#define ADD_PARTS(type)                                                                                     \
    static void add_parts_##type(const way_back *job, int64_t row)                                          \
    {                                                                                                       \
        int64_t first = 0;                                                                                  \
        for (int k = 0; k < job->count; k++) {                                                              \
            const sp_dense *to = job->product[k].w_gradient;                                                \
            type *sum = cpu_row(to, row);                                                                   \
            memset(sum, 0, (size_t)to->cols * sizeof *sum);                                                 \
            for (int64_t part = 0; part < job->parts; part++) {                                             \
                const type *from = (type *)cpu_row(&job->w_gradient, part * job->x->cols + row) + first;    \
                for (int64_t j = 0; j < to->cols; j++) sum[j] += from[j];                                   \
            }                                                                                               \
            first += to->cols;                                                                              \
        }                                                                                                   \
    }

ADD_PARTS(float)
ADD_PARTS(double)

static void add_parts(const gnn_engine *engine, const way_back *job, void *sums)
{
    const int64_t cols = job->x->cols;
    const bool single = job->w_gradient.type == SP_DENSE_F32;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, job->parts * cols * job->w_gradient.cols))
    for (int64_t row = 0; row < cols; row++) (single ? add_parts_float : add_parts_double)(job, row);
    for (int64_t j = 0; sums && j < cols; j++) {
        double sum = 0;
        for (int64_t part = 0; part < job->parts; part++) sum += job->sums[part * cols + j];
        if (single) ((float *)sums)[j] = (float)sum;
        else ((double *)sums)[j] = sum;
    }
}

/* The work space, with [W_1 W_2] in it. */
static sp_status prepare(gnn_engine *engine, way_back *job, int threads)
{
    const int64_t in = job->x->cols, out = job->w_gradient.cols;
    const int64_t beside = job->count > 1 ? threads * job->tile_rows * out + in * out : 0;
    const size_t size = number_size(job->x->type);
    const sp_status status =
        gnn_cpu_scratch(engine, job->parts * in * (out + 1) + beside, sizeof(double), (void **)&job->sums);
    if (status != SP_OK) return status;
    job->w_gradient.values = job->sums + job->parts * in;
    job->beside.values =
        (char *)job->w_gradient.values + (size_t)(job->parts * in * out) * number_size(job->w_gradient.type);
    job->w = *job->product->w;
    if (job->count == 1) return SP_OK;
    job->w = job->beside;
    job->w.rows = in;
    job->w.values = (char *)job->beside.values + (size_t)(threads * job->tile_rows * out) * size;
    for (int64_t i = 0; i < in; i++) {
        char *to = cpu_row(&job->w, i);
        for (int k = 0; k < job->count; k++) {
            const size_t bytes = (size_t)job->product[k].w->cols * size;
            memcpy(to, cpu_row(job->product[k].w, i), bytes);
            to += bytes;
        }
    }
    return SP_OK;
}

sp_status gnn_cpu_dense_backward(gnn_engine *engine, int count, const gnn_product_gradient *product,
                                 const gnn_pointwise *how, const sp_dense *x, sp_dense *x_gradient, void *sums)
{
    const int64_t rows = x->rows, in = x->cols;
    int64_t out = 0;
    bool fits = gnn_cpu_fits_blas(x) && gnn_cpu_fits_blas(x_gradient);
    for (int k = 0; k < count; k++) {
        out += product[k].g->cols;
        fits = fits && gnn_cpu_fits_blas(product[k].g) && gnn_cpu_fits_blas(product[k].w);
        fits = fits && product[k].g->type == x->type && product[k].w->type == x->type;
    }
    way_back job = {count, product, gnn_cpu_mask(engine, how), x, x_gradient, .parts = 1};
    if (in > 0 && out > 0 && in <= PARTIAL && out <= PARTIAL)
        job.parts = cpu_at_most(rows / ROWS, cpu_at_most(PARTIAL / in / out, cpu_tasks(rows, in, out)));
    const bool half = cpu_is_half(x);
    if (left_out("gnn-cpu-back") || !fits || job.parts < FEW || (half && !gnn_cpu_multiplies_half()))
        return gnn_dense_backward_by_steps(engine, count, product, how, x, x_gradient, sums);
    const int threads = cpu_threads(engine, cpu_steps(rows, in, out));
    job.tile_rows = cpu_at_most(TILE / (in + out), rows);
    job.w_gradient = (sp_dense){.rows = job.parts * in, .cols = out, .stride = out,
                                .type = half ? SP_DENSE_F32 : x->type, .space = x->space};
    job.beside = (sp_dense){.rows = threads * job.tile_rows, .cols = out, .stride = out, .type = x->type,
                            .space = x->space};
    sp_status status = prepare(engine, &job, threads);
    if (status == SP_OK)
        status = gnn_cpu_gemm_begin(engine, x->type, threads, rows, in > out ? in : out, half, &job.room);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t part = 0; part < job.parts; part++) go_back(&job, part);
    gnn_cpu_gemm_end(engine, &job.room);
    add_parts(engine, &job, sums);
    return SP_OK;
}

sp_status gnn_cpu_finish_multiply(gnn_engine *engine, const gnn_pointwise *how, const void *bias, sp_dense *y,
                                  int count, const gnn_product_with *product)
{
    return gnn_finish_multiply_by_steps(engine, how, bias, y, count, product);
}
