/* test_gnn_dense: attention, maxima, MaxK, repeatability and the life of an engine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_dense_shared.h"

/* ---- attention ----------------------------------------------------------------------------------------- */

static void check_heads(subject *s, int64_t nodes, int heads, int64_t width)
{
    const int64_t cols = heads * width;
    double *h = random_numbers(s, nodes * cols), *vector = random_numbers(s, cols);
    double *ds = random_numbers(s, nodes * heads), *dh = random_numbers(s, nodes * cols);
    double *scores = numbers(nodes * heads), *dh_wanted = numbers(nodes * cols), *dv_wanted = numbers(cols);
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t j = 0; j < cols; j++) {
            scores[i * heads + j / width] += h[i * cols + j] * vector[j];
            dh_wanted[i * cols + j] = dh[i * cols + j] + ds[i * heads + j / width] * vector[j];
            dv_wanted[j] += ds[i * heads + j / width] * h[i * cols + j];
        }
    sp_dense x = put_matrix(s, nodes, cols, h), out = new_matrix(s, nodes, heads);
    sp_dense gradient = put_matrix(s, nodes, heads, ds), dx = put_matrix(s, nodes, cols, dh);
    void *v = put_numbers(s, cols, vector), *dv = put_numbers(s, cols, vector);
    ck_ok(s->context, s->back->head_scores(s->engine, &x, heads, v, &out));
    ck_ok(s->context, s->back->head_scores_backward(s->engine, &x, heads, v, &gradient, &dx, dv));
    double *out_is = take_matrix(s, &out), *dh_is = take_matrix(s, &dx), *dv_is = take_numbers(s, cols, dv);
    expect_close(s, nodes * heads, out_is, scores, s->tolerance * 4, "head scores");
    expect_close(s, nodes * cols, dh_is, dh_wanted, s->tolerance, "their gradient by H");
    expect_close(s, cols, dv_is, dv_wanted, s->tolerance * 4, "their gradient by the vector");
    end_matrix(s, &x);
    end_matrix(s, &gradient);
    drop_array(s, v);
    drop_array(s, dv);
    void *all[] = {h, vector, ds, dh, scores, dh_wanted, dv_wanted, out_is, dh_is, dv_is};
    for (size_t k = 0; k < COUNT(all); k++) free(all[k]);
}

static void heads(subject *s)
{
    check_heads(s, 0, 2, 3);
    check_heads(s, 1, 1, 1);
    check_heads(s, 70, 8, 8);
    check_heads(s, 3000, 3, 5);
    check_heads(s, 257, 4, 64);
    check_heads(s, 40, 1, 300);
}

TEST(head_scores_go_forward_and_back) { on_subjects(_i, heads); }

/* A pattern with its transpose and where the transpose's entries stand in it, in the engine's space as well. */
typedef struct edges {
    sp_csr a, transpose, a_there, transpose_there;
    int64_t *places, *places_there;
} edges;

static edges make_edges(subject *s, int64_t rows, int64_t cols, double density, bool hub)
{
    edges e;
    double *dense = numbers(rows * cols);
    for (int64_t k = 0; k < rows * cols; k++)
        dense[k] = test_unit(&s->random) < density || (hub && (k / cols == rows / 2 || k % cols == cols / 3));
    sp_value_type type = s->type == SP_DENSE_F32 ? SP_F32 : SP_F64;
    e.a = test_from_dense(s->context, rows, cols, dense, type);
    ck_ok(s->context, sp_csr_create(s->context, cols, rows, e.a.nnz, type, SP_HOST, &e.transpose));
    e.places = test_zeros((size_t)e.a.nnz + 1, sizeof *e.places);
    int64_t t = 0;
    for (int64_t j = 0; j < cols; j++) {
        e.transpose.row_offsets[j] = t;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = e.a.row_offsets[i]; dense[i * cols + j] != 0 && k < e.a.row_offsets[i + 1]; k++)
                if (e.a.col_indices[k] == j) {
                    e.transpose.col_indices[t] = (int32_t)i;
                    e.places[t++] = k;
                }
    }
    e.transpose.row_offsets[cols] = t;
    for (int64_t k = 0; k < t; k++) {
        test_set(&e.transpose, k, 1);
    }
    free(dense);
    ck_ok(s->context, sp_csr_copy(s->context, &e.a, s->engine->space, &e.a_there));
    ck_ok(s->context, sp_csr_copy(s->context, &e.transpose, s->engine->space, &e.transpose_there));
    e.places_there = put(s, e.a.nnz, sizeof *e.places, e.places);
    return e;
}

static void free_edges(subject *s, edges *e)
{
    test_free(s->context, &e->a, &e->transpose, &e->a_there, &e->transpose_there);
    drop_array(s, e->places_there);
    free(e->places);
}

enum { HEADS = 3, HEAD = 1 };

static const double SLOPE = 0.2;

/* Scores of the edges, and Σ weight · score, whose gradient is `weight` taken back through them. */
static double edge_sum(const edges *e, const double *left, const double *right, const double *weight, double *scores)
{
    double sum = 0;
    for (int64_t i = 0; i < e->a.rows; i++)
        for (int64_t k = e->a.row_offsets[i]; k < e->a.row_offsets[i + 1]; k++) {
            const double x = left[i * HEADS + HEAD] + right[e->a.col_indices[k] * HEADS + HEAD];
            scores[k] = x > 0 ? x : SLOPE * x;
            sum += weight[k] * scores[k];
        }
    return sum;
}

/* Central differences of edge_sum by `moved`, which is `left` or `right`; the sum is linear but for its kinks. */
static double *edge_slopes(const edges *e, double *left, double *right, const double *weight, double *moved,
                           int64_t nodes)
{
    const double step = 1e-6;
    double *slopes = numbers(nodes), *scores = numbers(e->a.nnz);
    for (int64_t i = 0; i < nodes; i++) {
        double *x = moved + i * HEADS + HEAD;
        const double at = *x;
        *x = at + step;
        const double above = edge_sum(e, left, right, weight, scores);
        *x = at - step;
        slopes[i] = (above - edge_sum(e, left, right, weight, scores)) / (2 * step);
        *x = at;
    }
    free(scores);
    return slopes;
}

static void expect_head(const subject *s, int64_t nodes, const double *is, const double *wanted, double tolerance,
                        const char *what)
{
    for (int64_t i = 0; i < nodes; i++) {
        expect_close(s, 1, is + i * HEADS + HEAD, wanted + i, tolerance, what);
        for (int h = 0; h < HEADS; h++)
            test_expect(h == HEAD || isnan(is[i * HEADS + h]), "%s: %s touches head %d", s->name, what, h);
    }
}

static void check_edges(subject *s, int64_t rows, int64_t cols, double density, bool hub)
{
    edges e = make_edges(s, rows, cols, density, hub);
    double *left = random_numbers(s, rows * HEADS), *right = random_numbers(s, cols * HEADS);
    double *weight = random_numbers(s, e.a.nnz), *wanted = numbers(e.a.nnz);
    sp_dense l = put_matrix(s, rows, HEADS, left), r = put_matrix(s, cols, HEADS, right);
    sp_dense dl = new_matrix(s, rows, HEADS), dr = new_matrix(s, cols, HEADS);
    void *values = put_numbers(s, e.a.nnz, weight), *work = put_numbers(s, e.a.nnz, weight);
    edge_sum(&e, left, right, weight, wanted);
    ck_ok(s->context, s->back->edge_scores(s->engine, &e.a_there, &l, &r, HEAD, SLOPE, values));
    ck_ok(s->context, s->back->edge_scores_backward(s->engine, &e.a_there, &e.transpose_there, e.places_there, &l, &r,
                                                    HEAD, SLOPE, work, &dl, &dr));
    double *scores = take_numbers(s, e.a.nnz, values), *dl_is = take_matrix(s, &dl), *dr_is = take_matrix(s, &dr);
    double *dl_wanted = edge_slopes(&e, left, right, weight, left, rows);
    double *dr_wanted = edge_slopes(&e, left, right, weight, right, cols);
    expect_close(s, e.a.nnz, scores, wanted, s->tolerance, "edge scores");
    const double tolerance = s->type == SP_DENSE_F32 ? 1e-4 : 1e-7;
    expect_head(s, rows, dl_is, dl_wanted, tolerance, "gradient by left");
    expect_head(s, cols, dr_is, dr_wanted, tolerance, "gradient by right");
    end_matrix(s, &l);
    end_matrix(s, &r);
    drop_array(s, values);
    drop_array(s, work);
    free_edges(s, &e);
    void *all[] = {left, right, weight, wanted, scores, dl_is, dr_is, dl_wanted, dr_wanted};
    for (size_t k = 0; k < COUNT(all); k++) free(all[k]);
}

static void edge_cases(subject *s)
{
    check_edges(s, 0, 4, 0.5, false);
    check_edges(s, 4, 6, 0, false);
    check_edges(s, 30, 45, 0.1, false);
    check_edges(s, 70, 60, 0.6, false);
    check_edges(s, 40, 700, 0.02, true);
}

TEST(edge_scores_go_forward_and_back) { on_subjects(_i, edge_cases); }

/* A row and a column of 6,000 entries: beyond what a few lanes take alone. */
TEST(edge_gradients_of_hubs_are_complete)
{
    enum { NODES = 6000 };
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    double *ones = numbers(HEADS * NODES), *weight = numbers(2 * NODES);
    int64_t *offsets = calloc(NODES + 1, sizeof *offsets), *places = calloc(2 * NODES, sizeof *places);
    int32_t *cols = calloc(2 * NODES, sizeof *cols);
    ck_assert(offsets && places && cols);
    int64_t nnz = 0;
    for (int64_t i = 0; i < NODES; i++) { /* row 0 is full, all other rows hold column 0 alone: A = Aᵀ */
        offsets[i] = nnz;
        for (int64_t j = 0; j < (i ? 1 : NODES); j++) cols[nnz++] = (int32_t)j;
    }
    offsets[NODES] = nnz;
    for (int64_t k = 0; k < nnz; k++) places[k] = k < NODES ? (k ? NODES - 1 + k : 0) : k - NODES + 1;
    for (int64_t k = 0; k < HEADS * NODES; k++) ones[k] = 1;
    for (int64_t k = 0; k < nnz; k++) weight[k] = 0.5;
    sp_csr a = {.rows = NODES, .cols = NODES, .nnz = nnz, .space = s.engine->space};
    a.row_offsets = put(&s, NODES + 1, sizeof *offsets, offsets);
    a.col_indices = put(&s, nnz, sizeof *cols, cols);
    int64_t *places_there = put(&s, nnz, sizeof *places, places);
    sp_dense l = put_matrix(&s, NODES, HEADS, ones);
    sp_dense dl = new_matrix(&s, NODES, HEADS), dr = new_matrix(&s, NODES, HEADS);
    void *work = put_numbers(&s, nnz, weight);
    ck_ok(s.context,
          s.back->edge_scores_backward(s.engine, &a, &a, places_there, &l, &l, HEAD, SLOPE, work, &dl, &dr));
    double *left = take_matrix(&s, &dl), *right = take_matrix(&s, &dr);
    for (int64_t i = 0; i < NODES; i++) {
        const double wanted = i ? 0.5 : 0.5 * NODES, row = left[i * HEADS + HEAD], column = right[i * HEADS + HEAD];
        test_expect(row == wanted, "row %lld sums to %g", (long long)i, row);
        test_expect(column == wanted, "column %lld sums to %g", (long long)i, column);
    }
    end_matrix(&s, &l);
    drop_array(&s, work);
    drop_array(&s, places_there);
    sp_csr_free(s.context, &a);
    void *all[] = {ones, weight, offsets, places, cols, left, right};
    for (size_t k = 0; k < COUNT(all); k++) free(all[k]);
    free_subject(&s);
}

static void gathers(subject *s)
{
    static const int64_t counts[] = {0, 1, 5000};
    for (int c = 0; c < 3; c++) {
        const int64_t count = counts[c];
        double *from = random_numbers(s, 300), *wanted = numbers(count);
        int64_t *place = test_zeros((size_t)count + 1, sizeof *place);
        for (int64_t t = 0; t < count; t++) wanted[t] = from[place[t] = test_below(&s->random, 300)];
        void *source = put_numbers(s, 300, from), *places = put(s, count, sizeof *place, place);
        void *to = put_numbers(s, count, wanted);
        ck_ok(s->context, s->back->gather(s->engine, places, count, source, s->type, to));
        double *is = take_numbers(s, count, to);
        expect_close(s, count, is, wanted, 0, "gathered");
        drop_array(s, source);
        drop_array(s, places);
        drop_array(s, to);
        free_all(from, wanted, place, is);
    }
}

TEST(gathers_numbers) { on_subjects(_i, gathers); }

/* ---- maximum ------------------------------------------------------------------------------------------- */

static void check_maximum(subject *s, int64_t rows, int64_t nodes, int64_t cols, double density, bool hub)
{
    edges e = make_edges(s, rows, nodes, density, hub);
    double *dy = random_numbers(s, rows * cols), *wanted = numbers(nodes * cols);
    int64_t *argument = test_zeros((size_t)(rows * cols) + 1, sizeof *argument);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++) {
            const int64_t begin = e.a.row_offsets[i], count = e.a.row_offsets[i + 1] - begin;
            argument[i * cols + k] = count ? begin + test_below(&s->random, count) : -1;
            if (count) wanted[e.a.col_indices[argument[i * cols + k]] * cols + k] += dy[i * cols + k];
        }
    sp_dense gradient = put_matrix(s, rows, cols, dy), dx = new_matrix(s, nodes, cols);
    void *arguments = put(s, rows * cols, sizeof *argument, argument);
    ck_ok(s->context,
          s->back->maximum_backward(s->engine, &e.transpose_there, e.places_there, arguments, &gradient, &dx));
    double *is = take_matrix(s, &dx);
    expect_close(s, nodes * cols, is, wanted, s->tolerance, "gradient of the maximum");
    end_matrix(s, &gradient);
    drop_array(s, arguments);
    free_edges(s, &e);
    free_all(dy, wanted, argument, is);
}

static void maxima(subject *s)
{
    check_maximum(s, 0, 3, 4, 0.5, false);
    check_maximum(s, 5, 3, 0, 0.5, false);
    check_maximum(s, 50, 60, 7, 0.1, false);
    check_maximum(s, 60, 50, 64, 0.3, false);
    check_maximum(s, 900, 20, 33, 0.02, true);
}

TEST(maxima_give_gradients_to_where_they_came_from) { on_subjects(_i, maxima); }

/* ---- products where MaxK kept ------------------------------------------------------------------------ */

static void check_kept(subject *s, int64_t rows, int64_t cols, int64_t k, int64_t inner)
{
    double *left = random_numbers(s, rows * inner), *right = random_numbers(s, cols * inner);
    double *wanted = numbers(rows * k), *zeros = numbers(rows * k);
    uint8_t *narrow = calloc((size_t)(rows * k) + 1, 1);
    uint16_t *wide = calloc((size_t)(rows * k) + 1, sizeof *wide);
    ck_assert(narrow && wide);
    for (int64_t e = 0; e < rows * k; e++) {
        const int64_t column = test_below(&s->random, cols);
        narrow[e] = (uint8_t)column;
        wide[e] = (uint16_t)column;
        for (int64_t t = 0; t < inner; t++) wanted[e] += left[e / k * inner + t] * right[column * inner + t];
    }
    sp_dense s_there = put_matrix(s, rows, inner, left), w_there = put_matrix(s, cols, inner, right);
    sp_cbsr kept = {.rows = rows, .cols = cols, .k = k, .type = s->type, .space = s->engine->space};
    kept.columns = cols <= 256 ? put(s, rows * k, 1, narrow) : put(s, rows * k, sizeof *wide, wide);
    kept.values = put_numbers(s, rows * k, zeros);
    ck_ok(s->context, s->back->multiply_kept(s->engine, &s_there, &w_there, &kept));
    double *is = take_numbers(s, rows * k, kept.values);
    expect_close(s, rows * k, is, wanted, s->tolerance, "product where kept");
    end_matrix(s, &s_there);
    end_matrix(s, &w_there);
    drop_array(s, kept.columns);
    drop_array(s, kept.values);
    free_all(left, right, wanted, zeros, narrow, wide, is);
}

static void kept_products(subject *s)
{
    check_kept(s, 0, 5, 2, 3);
    check_kept(s, 70, 256, 7, 7);
    check_kept(s, 300, 64, 16, 16);
    check_kept(s, 33, 1000, 20, 41);
    check_kept(s, 9, 65536, 1, 2);
}

TEST(products_where_maxk_kept_are_those_of_the_formula) { on_subjects(_i, kept_products); }

/* ---- repeatability, capture, life ------------------------------------------------------------------------ */

/* The bits of a product with a long inner dimension, of column sums and of losses, with so many threads. */
static void repeatable_bits(int device, int threads, double *to)
{
    enum { ROWS = 9001, COLS = 16 };
    subject s = make_subject(device, SP_DENSE_F32, 0, threads);
    loss_case c = make_loss_case(&s, ROWS, COLS, false, 5);
    double none[COLS] = {0};
    sp_dense x = put_matrix(&s, ROWS, COLS, c.logits), product = new_matrix(&s, COLS, COLS);
    void *sums = put_numbers(&s, COLS, none), *label = put(&s, ROWS, 4, c.label), *split = put(&s, ROWS, 1, c.split);
    gnn_score *scores = put(&s, GNN_SPLITS, sizeof *scores, (gnn_score[GNN_SPLITS]){{0}}), is[GNN_SPLITS];
    ck_ok(s.context, s.back->multiply(s.engine, true, false, 1, &x, &x, 0, &product));
    ck_ok(s.context, s.back->column_sums(s.engine, &x, sums));
    ck_ok(s.context, s.back->softmax_loss(s.engine, &x, NULL, NULL, label, NULL, split, GNN_TRAIN, 1, scores, NULL,
                                          NULL));
    take(&s, GNN_SPLITS, sizeof *scores, scores, is);
    double *first = take_matrix(&s, &product), *second = take_numbers(&s, COLS, sums);
    memcpy(to, first, COLS * COLS * sizeof *to);
    memcpy(to + COLS * COLS, second, COLS * sizeof *to);
    for (int k = 0; k < GNN_SPLITS; k++) to[COLS * COLS + COLS + k] = is[k].loss;
    free_all(first, second);
    end_matrix(&s, &x);
    drop_array(&s, sums);
    drop_array(&s, label);
    drop_array(&s, split);
    drop_array(&s, scores);
    free_loss_case(&c);
    free_subject(&s);
}

enum { WAY_ROWS = 9001, WAY_IN = 24, WAY_OUT = 6, WAY_BITS = WAY_ROWS * WAY_IN + 2 * WAY_IN * WAY_OUT + WAY_IN };

/* dX, both dW and the sums of the way back through a dense layer, with so many threads. */
static void way_back_bits(int device, int threads, double *to)
{
    subject s = make_subject(device, SP_DENSE_F32, 0, threads);
    const gnn_pointwise how = {GNN_RELU, 0.4, 3};
    double *number[] = {random_numbers(&s, WAY_ROWS * WAY_IN), random_numbers(&s, WAY_ROWS * WAY_OUT),
                        random_numbers(&s, WAY_IN * WAY_OUT)};
    sp_dense x = put_matrix(&s, WAY_ROWS, WAY_IN, number[0]), g = put_matrix(&s, WAY_ROWS, WAY_OUT, number[1]);
    sp_dense w = put_matrix(&s, WAY_IN, WAY_OUT, number[2]), fewer = g;
    sp_dense made[] = {new_matrix(&s, WAY_ROWS, WAY_IN), new_matrix(&s, WAY_IN, WAY_OUT),
                       new_matrix(&s, WAY_IN, WAY_OUT), new_matrix(&s, 1, WAY_IN)};
    const gnn_product_gradient product[] = {{&g, &w, &made[1]}, {&fewer, &w, &made[2]}};
    fewer.rows = WAY_ROWS / 2;
    ck_ok(s.context, s.back->dense_backward(s.engine, 2, product, &how, &x, &made[0], made[3].values));
    for (int k = 0; k < 4; k++) {
        const int64_t count = made[k].rows * made[k].cols;
        double *is = take_matrix(&s, &made[k]);
        memcpy(to, is, (size_t)count * sizeof *to);
        to += count;
        free(is);
    }
    end_matrix(&s, &x);
    end_matrix(&s, &g);
    end_matrix(&s, &w);
    for (int k = 0; k < 3; k++) free(number[k]);
    free_subject(&s);
}

TEST(sums_have_the_same_bits_whatever_the_threads)
{
    enum { COUNT = 16 * 16 + 16 + GNN_SPLITS };
    double first[COUNT], again[COUNT], *way = numbers(WAY_BITS), *way_again = numbers(WAY_BITS);
    repeatable_bits(_i, 1, first);
    way_back_bits(_i, 1, way);
    for (int threads = 1; threads <= 3; threads++) {
        repeatable_bits(_i, threads, again);
        ck_assert_msg(memcmp(first, again, sizeof first) == 0, "%d threads give other bits", threads);
        way_back_bits(_i, threads, way_again);
        ck_assert_msg(memcmp(way, way_again, WAY_BITS * sizeof *way) == 0,
                      "%d threads give other bits on the way back", threads);
    }
    free_all(way, way_again);
}

/* Dropout of ones, a product and a step, recorded once: each replay draws the masks of its own step. */
TEST(captured_work_runs_at_each_replay_with_its_own_step)
{
    enum { COUNT = 1000 };
    subject s = make_subject(_i, SP_DENSE_F32, 0, 0);
    double *ones = numbers(COUNT);
    for (int64_t k = 0; k < COUNT; k++) ones[k] = 1;
    sp_dense x = put_matrix(&s, 40, 25, ones), y = new_matrix(&s, 40, 25), product = new_matrix(&s, 25, 25);
    const gnn_pointwise how = {GNN_LINEAR, 0.5, 9};
    void *graph = NULL;
    ck_ok(s.context, s.back->set_step(s.engine, 10));
    ck_assert((s.back->capture_begin != NULL) == (_i == 1));
    if (s.back->capture_begin) {
        ck_ok(s.context, s.back->capture_begin(s.engine));
        ck_ok(s.context, s.back->forward(s.engine, &how, &x, NULL, &y));
        ck_ok(s.context, s.back->multiply(s.engine, true, false, 1, &y, &y, 0, &product));
        ck_ok(s.context, s.back->advance(s.engine));
        ck_ok(s.context, s.back->capture_end(s.engine, &graph));
        ck_assert_int_eq(s.engine->step, 10);
        for (int64_t step = 10; step < 13; step++) {
            ck_ok(s.context, s.back->replay(s.engine, graph));
            ck_ok(s.context, s.back->wait(s.engine));
            ck_assert_int_eq(s.engine->step, step + 1);
            double *is = take_numbers(&s, COUNT, y.values), *squares = take_numbers(&s, 625, product.values);
            double first = 0;
            s.engine->step = step; /* for kept() */
            for (int64_t k = 0; k < COUNT; k++)
                test_expect(is[k] == kept(&s, 0.5, 9, k), "step %lld, number %lld", (long long)step, (long long)k);
            s.engine->step = step + 1;
            for (int64_t i = 0; i < 40; i++) first += is[i * 25] * is[i * 25];
            ck_assert_double_eq_tol(squares[0], first, 1e-3);
            free_all(is, squares);
        }
        s.back->forget(s.engine, graph);
    }
    end_matrix(&s, &x);
    end_matrix(&s, &y);
    end_matrix(&s, &product);
    free(ones);
    free_subject(&s);
}

TEST(engines_free_what_they_took_when_memory_runs_out)
{
    bool made = false;
    for (int64_t fail_at = 0; !made; fail_at++) {
        test_heap heap = {.fail_at = -1};
        sp_context *context = test_heap_context(&heap, _i, 0);
        gnn_engine *engine;
        const int64_t before = heap.live_blocks;
        heap.fail_at = heap.allocations + fail_at;
        const sp_status status = gnn_engine_create(context, 1, &engine);
        made = status == SP_OK;
        ck_assert(made ? engine != NULL && gnn_engine_context(engine) == context
                       : status == SP_ERROR_HOST_MEMORY && engine == NULL);
        gnn_engine_free(engine);
        ck_assert_int_eq(heap.live_blocks, before);
        sp_context_destroy(context);
    }
}

const test_entry attention_tests[] = {
    CASE("dense", 300),
    ON_DEVICES(head_scores_go_forward_and_back),
    ON_DEVICES(edge_scores_go_forward_and_back),
    ON_DEVICES(edge_gradients_of_hubs_are_complete),
    ON_DEVICES(gathers_numbers),
    ON_DEVICES(maxima_give_gradients_to_where_they_came_from),
    ON_DEVICES(products_where_maxk_kept_are_those_of_the_formula),
    ON_DEVICES(sums_have_the_same_bits_whatever_the_threads),
    ON_DEVICES(captured_work_runs_at_each_replay_with_its_own_step),
    ON_DEVICES(engines_free_what_they_took_when_memory_runs_out),
    {0},
};
