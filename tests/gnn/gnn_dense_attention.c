/* test_gnn_dense: attention, maxima, MaxK, repeatability and the life of an engine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_dense_shared.h"

/* ---- attention ----------------------------------------------------------------------------------------- */

/* Right scores of all nodes, left ones of those from first_own up to the last but one. */
static void check_heads(subject *s, int64_t nodes, int heads, int64_t width)
{
    const int64_t cols = heads * width, first_own = nodes / 3, own = nodes > 1 ? nodes - 1 - first_own : nodes;
    double *h = random_numbers(s, nodes * cols), *vectors = random_numbers(s, 2 * cols);
    double *ds = random_numbers(s, nodes * heads);
    double *scores[2] = {numbers(nodes * heads), numbers(nodes * heads)}, *dv_wanted = numbers(cols);
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t j = 0; j < cols; j++) {
            for (int side = 0; side < 2; side++)
                scores[side][i * heads + j / width] += h[i * cols + j] * vectors[side * cols + j];
            dv_wanted[j] += ds[i * heads + j / width] * h[i * cols + j];
        }
    sp_dense x = put_matrix(s, nodes, cols, h), gradient = put_matrix(s, nodes, heads, ds);
    sp_dense left = new_matrix(s, own, heads), right = new_matrix(s, nodes, heads);
    void *v[2] = {put_numbers(s, cols, vectors), put_numbers(s, cols, vectors + cols)};
    void *dv = put_numbers(s, cols, vectors);
    ck_ok(s->context, s->back->head_scores(s->engine, &x, heads, first_own, v[0], v[1], &left, &right));
    ck_ok(s->context, s->back->head_scores_backward(s->engine, &x, heads, &gradient, dv));
    double *left_is = take_matrix(s, &left), *right_is = take_matrix(s, &right), *dv_is = take_numbers(s, cols, dv);
    expect_close(s, own * heads, left_is, scores[0] + first_own * heads, s->tolerance * 4, "left scores");
    expect_close(s, nodes * heads, right_is, scores[1], s->tolerance * 4, "right scores");
    expect_close(s, cols, dv_is, dv_wanted, s->tolerance * 4, "their gradient by the vector");
    end_matrix(s, &x);
    end_matrix(s, &gradient);
    drop_array(s, v[0]);
    drop_array(s, v[1]);
    drop_array(s, dv);
    void *all[] = {h, vectors, ds, scores[0], scores[1], dv_wanted, left_is, right_is, dv_is};
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

static const double SLOPE = 0.2;

typedef struct attention_case {
    int64_t rows, cols, width;
    int heads;
    double rate;
    bool averaged;
} attention_case;

/* What the formulas say, entry by entry, with the gradient of the softmax as it is written down. */
typedef struct attention_wanted {
    double *y, *dh, *dl, *dr;
} attention_wanted;

static attention_wanted attend_slowly(const subject *s, const edges *e, const attention_case *c, const double *h,
                                      const double *l, const double *r, const double *dy, const double *vectors)
{
    const int64_t all = c->heads * c->width;
    attention_wanted w = {numbers(c->rows * all), numbers(c->cols * all), numbers(c->rows * c->heads),
                          numbers(c->cols * c->heads)};
    double *chance = numbers(e->a.nnz), *mask = numbers(e->a.nnz), *back = numbers(e->a.nnz);
    for (int head = 0; head < c->heads; head++) {
        const int64_t at = head * c->width;
        for (int64_t i = 0; i < c->rows; i++) {
            const int64_t begin = e->a.row_offsets[i], end = e->a.row_offsets[i + 1];
            const double *g = c->averaged ? dy + i * c->width : dy + i * all + at;
            double total = 0, along = 0;
            for (int64_t k = begin; k < end; k++) {
                const double x = l[i * c->heads + head] + r[e->a.col_indices[k] * c->heads + head];
                total += chance[k] = exp(x > 0 ? x : SLOPE * x);
                mask[k] = kept(s, c->rate, 64 + (uint64_t)GNN_MAX_LAYERS * (uint64_t)head, k);
            }
            for (int64_t k = begin; k < end; k++) {
                const double *x = h + e->a.col_indices[k] * all + at;
                chance[k] /= total;
                back[k] = 0;
                for (int64_t j = 0; j < c->width; j++) {
                    w.y[i * all + at + j] += chance[k] * mask[k] * x[j];
                    back[k] += mask[k] * g[j] * x[j] / (c->averaged ? c->heads : 1);
                }
                along += chance[k] * back[k];
            }
            for (int64_t k = begin; k < end; k++) {
                const int32_t to = e->a.col_indices[k];
                const double x = l[i * c->heads + head] + r[to * c->heads + head];
                const double score = (x > 0 ? 1 : SLOPE) * chance[k] * (back[k] - along);
                w.dl[i * c->heads + head] += score;
                w.dr[to * c->heads + head] += score;
                for (int64_t j = 0; j < c->width; j++)
                    w.dh[to * all + at + j] += chance[k] * mask[k] * g[j] / (c->averaged ? c->heads : 1);
            }
        }
        for (int64_t i = 0; i < c->cols; i++)
            for (int64_t j = 0; j < c->width; j++)
                w.dh[i * all + at + j] += w.dr[i * c->heads + head] * vectors[all + at + j] +
                                          (i < c->rows ? w.dl[i * c->heads + head] * vectors[at + j] : 0);
    }
    free_all(chance, mask, back);
    return w;
}

static void check_attention(subject *s, const edges *e, const attention_case *c)
{
    const int64_t all = c->heads * c->width, own = c->averaged ? c->width : all;
    double *h = random_numbers(s, c->cols * all), *l = random_numbers(s, c->rows * c->heads);
    double *r = random_numbers(s, c->cols * c->heads), *dy = random_numbers(s, c->rows * own);
    double *vectors = random_numbers(s, 2 * all);
    sp_dense x = put_matrix(s, c->cols, all, h), left = put_matrix(s, c->rows, c->heads, l);
    sp_dense right = put_matrix(s, c->cols, c->heads, r), g = put_matrix(s, c->rows, own, dy);
    sp_dense y = new_matrix(s, c->rows, all), slopes = new_matrix(s, c->rows, all), dh = new_matrix(s, c->cols, all);
    sp_dense logs = new_matrix(s, c->rows, c->heads), along = new_matrix(s, c->rows, c->heads);
    sp_dense dl = new_matrix(s, c->rows, c->heads), dr = new_matrix(s, c->cols, c->heads);
    void *v[2] = {put_numbers(s, all, vectors), put_numbers(s, all, vectors + all)};
    const gnn_attention attention = {.a = &e->a_there, .heads = c->heads, .slope = SLOPE, .rate = c->rate, .site = 64,
                                     .h = &x, .left = &left, .right = &right, .y = &y, .logs = &logs,
                                     .slopes = &slopes};
    const gnn_attention_gradient back = {.transpose = &e->transpose_there, .places = e->places_there,
                                         .y_gradient = &g, .left_vector = v[0], .right_vector = v[1],
                                         .along = &along, .left_gradient = &dl, .right_gradient = &dr,
                                         .h_gradient = &dh};
    ck_ok(s->context, s->back->attention(s->engine, &attention));
    ck_ok(s->context, s->back->attention_backward(s->engine, &attention, &back));
    attention_wanted w = attend_slowly(s, e, c, h, l, r, dy, vectors);
    double *is[] = {take_matrix(s, &y), take_matrix(s, &dh), take_matrix(s, &dl), take_matrix(s, &dr)};
    const double tolerance = s->type == SP_DENSE_F32 ? 3e-5 : 1e-12;
    expect_close(s, c->rows * all, is[0], w.y, tolerance, "attention");
    expect_close(s, c->rows * c->heads, is[2], w.dl, tolerance, "its gradient by l");
    expect_close(s, c->cols * c->heads, is[3], w.dr, tolerance, "its gradient by r");
    expect_close(s, c->cols * all, is[1], w.dh, 4 * tolerance, "its gradient by H");
    sp_dense *const matrices[] = {&x, &left, &right, &g, &slopes, &logs, &along};
    for (size_t k = 0; k < COUNT(matrices); k++) end_matrix(s, matrices[k]);
    drop_array(s, v[0]);
    drop_array(s, v[1]);
    void *const here[] = {h, l, r, dy, vectors, w.y, w.dh, w.dl, w.dr, is[0], is[1], is[2], is[3]};
    for (size_t k = 0; k < COUNT(here); k++) free(here[k]);
}

/* Rows without entries, lanes that are not filled, heads that are packed and not, several packs a lane, and hubs that a
 * block shares. */
static void attention_cases(subject *s)
{
    static const attention_case cases[] = {{0, 4, 3, 2, 0, false},     {4, 6, 8, 1, 0, false},
                                           {30, 45, 7, 1, 0.4, false}, {30, 45, 8, 8, 0.5, false},
                                           {25, 25, 5, 3, 0, true},    {25, 40, 16, 2, 0.3, true},
                                           {20, 30, 41, 1, 0, false},  {20, 20, 150, 2, 0.2, false},
                                           {20, 20, 33, 5, 0, false},  {1200, 1200, 4, 2, 0, false},
                                           {1200, 1200, 1, 8, 0.3, false}, {1200, 1200, 3, 1, 0, true},
                                           {20, 30, 32, 8, 0.4, false}, {20, 30, 3, 16, 0, false},
                                           {20, 30, 37, 4, 0.2, false}, {20, 30, 5, 4, 0.2, true},
                                           {1200, 1200, 2, 8, 0.3, false}, {1200, 1200, 7, 3, 0.3, true}};
    for (size_t k = 0; k < COUNT(cases); k++) {
        const attention_case *c = &cases[k];
        const bool hub = c->rows > 1000;
        edges e = make_edges(s, c->rows, c->cols, k == 1 ? 0 : hub ? 0.005 : 0.3, hub);
        check_attention(s, &e, c);
        free_edges(s, &e);
    }
}

TEST(attention_goes_forward_and_back) { on_subjects(_i, attention_cases); }

/* Heads are averaged. */
static void check_average(subject *s)
{
    enum { ROWS = 37, WIDTH = 6, HEADS = 3 };
    double *x = random_numbers(s, ROWS * HEADS * WIDTH), *wanted = numbers(ROWS * WIDTH);
    for (int64_t k = 0; k < ROWS * HEADS * WIDTH; k++)
        wanted[k / (HEADS * WIDTH) * WIDTH + k % WIDTH] += x[k] / HEADS;
    sp_dense from = put_matrix(s, ROWS, HEADS * WIDTH, x), to = new_matrix(s, ROWS, WIDTH);
    ck_ok(s->context, s->back->average_heads(s->engine, &from, HEADS, &to));
    double *is = take_matrix(s, &to);
    expect_close(s, ROWS * WIDTH, is, wanted, s->tolerance, "means of heads");
    end_matrix(s, &from);
    free_all(x, wanted, is);
}

TEST(heads_are_averaged) { on_subjects(_i, check_average); }

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
    ON_DEVICES(attention_goes_forward_and_back),
    ON_DEVICES(heads_are_averaged),
    ON_DEVICES(maxima_give_gradients_to_where_they_came_from),
    ON_DEVICES(products_where_maxk_kept_are_those_of_the_formula),
    ON_DEVICES(sums_have_the_same_bits_whatever_the_threads),
    ON_DEVICES(captured_work_runs_at_each_replay_with_its_own_step),
    ON_DEVICES(engines_free_what_they_took_when_memory_runs_out),
    {0},
};
