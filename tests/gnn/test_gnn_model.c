/* Operators, blocks, models and optimizers of gnn: forward passes against the layers' formulas in dense f64 loops,
 * gradients against central differences of the same formulas, dropout included; what is kept between calls, and what
 * is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gnn/internal.h"
#include "support.h"

/* ---- dense matrices ------------------------------------------------------------------------------------ */

/* Differences lose digits: those of 64 bits, over a step of 1e-5, keep as many as f64 has. */
typedef long double real;

/* All matrices of a forward pass come from here; it starts again with the next pass. */
static real arena[1 << 20];
static size_t arena_used;

typedef struct mat {
    int64_t rows, cols;
    real *v;
} mat;

static mat zeros(int64_t rows, int64_t cols)
{
    mat m = {rows, cols, arena + arena_used};
    arena_used += (size_t)(rows * cols);
    test_expect(arena_used <= COUNT(arena), "the arena is too small");
    for (int64_t k = 0; k < rows * cols; k++) m.v[k] = 0;
    return m;
}

static mat times(mat a, mat b)
{
    mat c = zeros(a.rows, b.cols);
    test_expect(a.cols == b.rows, "%lld columns times %lld rows", (long long)a.cols, (long long)b.rows);
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t j = 0; j < c.cols; j++)
            for (int64_t k = 0; k < a.cols; k++) c.v[i * c.cols + j] += a.v[i * a.cols + k] * b.v[k * b.cols + j];
    return c;
}

/* A + the first rows of B, as many as A has; or B's single row added to each of A's. */
static mat plus(mat a, mat b, bool each)
{
    mat c = zeros(a.rows, a.cols);
    test_expect(a.cols == b.cols, "%lld columns plus %lld", (long long)a.cols, (long long)b.cols);
    for (int64_t k = 0; k < a.rows * a.cols; k++) c.v[k] = a.v[k] + b.v[each ? k % a.cols : k];
    return c;
}

static mat first_rows(mat a, int64_t rows) { return (mat){rows, a.cols, a.v}; }

/* ---- the formulas -------------------------------------------------------------------------------------- */

enum { MOST_LAYERS = 3, SEED = 77 };

/* A model's data. Matrices are on the host; `sparse` features have a pattern or values. */
typedef struct example {
    gnn_model_options o;
    uint64_t seed;
    bool symmetric, sparse;
    sp_csr a[MOST_LAYERS], x_sparse;
    double *x; /* a.cols of the first x inputs */
    double *weights;
    const gnn_parameter *parameter;
    int parameters;
    bool training;
    int64_t step;
} example;

/* Which side of its kinks a pass was on: a hash of all comparisons. */
static uint64_t sides;

static bool side(bool choice)
{
    sides = sides * 6364136223846793005u + (choice ? 3 : 1);
    return choice;
}

static mat parameter(const example *e, int layer, const char *name)
{
    char full[32];
    snprintf(full, sizeof full, "layer%d.%s", layer + 1, name);
    for (int i = 0; i < e->parameters; i++)
        if (!strcmp(e->parameter[i].name, full)) {
            const gnn_parameter *p = &e->parameter[i];
            mat m = zeros(p->rows, p->cols);
            for (int64_t k = 0; k < p->rows * p->cols; k++) m.v[k] = e->weights[p->offset + k];
            return m;
        }
    ck_abort_msg("there is no %s", full);
    return (mat){0};
}

/* Number k of a site, as it comes out of dropout. */
static real dropped(const example *e, real rate, uint64_t site, int64_t k, real value)
{
    if (!e->training || rate == 0) return value;
    return (real)gnn_unit(gnn_random(SEED, e->step, site, k)) < rate ? 0 : value / (1 - rate);
}

/* Keeps the k largest numbers of each row, of equals those of lower columns, and drops some of them. */
static mat largest(const example *e, int layer, mat p, int64_t k)
{
    mat c = zeros(p.rows, p.cols);
    for (int64_t i = 0, kept = 0; i < p.rows; i++)
        for (int64_t j = 0; j < p.cols; j++) {
            int64_t before = 0;
            for (int64_t l = 0; l < p.cols; l++) {
                const real other = p.v[i * p.cols + l], own = p.v[i * p.cols + j];
                before += other > own || (other == own && l < j);
            }
            if (!side(before < k)) continue;
            c.v[i * p.cols + j] = dropped(e, e->o.dropout, (uint64_t)layer + 1, kept++, p.v[i * p.cols + j]);
        }
    return c;
}

/* Sums, means or maxima of the rows of P over the neighbours. */
static mat gather(const example *e, const sp_csr *a, mat p)
{
    const gnn_layer kind = e->o.layer;
    mat q = zeros(a->rows, p.cols);
    test_expect(a->cols == p.rows, "%lld columns times %lld rows", (long long)a->cols, (long long)p.rows);
    for (int64_t i = 0; i < q.rows; i++)
        for (int64_t c = 0; c < q.cols; c++) {
            real *to = &q.v[i * q.cols + c];
            const int64_t begin = a->row_offsets[i], end = a->row_offsets[i + 1];
            for (int64_t k = begin; k < end; k++) {
                const real value = p.v[a->col_indices[k] * p.cols + c];
                if (kind != GNN_SAGE_MAX) *to += value * test_value(a, k);
                else if (k == begin || side(value > *to)) *to = value;
            }
            if (kind == GNN_SAGE && end > begin) *to /= (real)(end - begin);
        }
    return q;
}

static mat convolution(const example *e, int layer, mat x)
{
    const sp_csr *a = &e->a[layer];
    const bool gin = e->o.layer == GNN_GIN;
    const int64_t k = layer + 1 < e->o.layers ? e->o.maxk : 0;
    const mat bias = parameter(e, layer, gin ? "bias_1" : "bias");
    const char *names[] = {[GNN_GCN] = "weight", [GNN_SAGE] = "weight_neighbours",
                           [GNN_SAGE_MAX] = "weight_neighbours", [GNN_GIN] = "weight_1"};
    const mat w = parameter(e, layer, names[e->o.layer]);
    mat p = times(x, w), y;
    if (k > 0) {
        p = plus(p, bias, true);
        y = gather(e, a, largest(e, layer, p, k));
    } else {
        y = plus(e->o.layer == GNN_SAGE_MAX ? times(gather(e, a, x), w) : gather(e, a, p), bias, true);
    }
    if (gin) y = plus(y, p, false);
    else if (e->o.layer != GNN_GCN)
        y = plus(y, times(first_rows(x, a->rows), parameter(e, layer, "weight_self")), false);
    if (!gin) return y;
    for (int64_t i = 0; i < y.rows * y.cols && k == 0; i++) y.v[i] = side(y.v[i] > 0) ? y.v[i] : 0;
    return plus(times(y, parameter(e, layer, "weight_2")), parameter(e, layer, "bias_2"), true);
}

static mat attention(const example *e, int layer, mat x)
{
    const sp_csr *a = &e->a[layer];
    const bool last = layer + 1 == e->o.layers;
    const int heads = last ? e->o.output_heads : e->o.heads;
    const mat h = times(x, parameter(e, layer, "weight"));
    const mat left = parameter(e, layer, "attention_left"), right = parameter(e, layer, "attention_right");
    const int64_t width = h.cols / heads;
    mat y = zeros(a->rows, last ? width : h.cols), weight = zeros(1, a->nnz);
    for (int head = 0; head < heads; head++)
        for (int64_t i = 0; i < a->rows; i++) {
            real sum = 0;
            for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
                real score = 0;
                for (int64_t c = head * width; c < (head + 1) * width; c++)
                    score += h.v[i * h.cols + c] * left.v[c] + h.v[a->col_indices[k] * h.cols + c] * right.v[c];
                weight.v[k] = expl(side(score > 0) ? score : 0.2 * score);
                sum += weight.v[k];
            }
            for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
                const uint64_t site = (uint64_t)(GNN_MAX_LAYERS * (head + 1) + layer);
                const real w = dropped(e, e->o.attention_dropout, site, k, weight.v[k] / sum);
                for (int64_t c = 0; c < width; c++)
                    y.v[i * y.cols + (last ? 0 : head * width) + c] +=
                        w * h.v[a->col_indices[k] * h.cols + head * width + c] / (last ? heads : 1);
            }
        }
    return plus(y, parameter(e, layer, "bias"), true);
}

static mat features_of(const example *e)
{
    const int64_t rows = e->a[0].cols, cols = e->o.inputs;
    mat x = zeros(rows, cols);
    if (!e->sparse) {
        for (int64_t k = 0; k < rows * cols; k++) x.v[k] = dropped(e, e->o.input_dropout, 0, k, e->x[k]);
        return x;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = e->x_sparse.row_offsets[i]; k < e->x_sparse.row_offsets[i + 1]; k++)
            x.v[i * cols + e->x_sparse.col_indices[k]] =
                dropped(e, e->o.input_dropout, 0, k, test_value(&e->x_sparse, k));
    return x;
}

static mat formula(const example *e)
{
    arena_used = 0;
    sides = 1;
    mat x = features_of(e);
    for (int layer = 0; layer < e->o.layers; layer++) {
        mat y = e->o.layer == GNN_GAT ? attention(e, layer, x) : convolution(e, layer, x);
        for (int64_t k = 0; k < y.rows * y.cols && layer + 1 < e->o.layers; k++) {
            if (e->o.maxk > 0) break;
            if (e->o.layer == GNN_GAT) y.v[k] = side(y.v[k] > 0) ? y.v[k] : expm1l(y.v[k]);
            else y.v[k] = side(y.v[k] > 0) ? y.v[k] : 0;
            y.v[k] = dropped(e, e->o.dropout, (uint64_t)layer + 1, k, y.v[k]);
        }
        x = y;
    }
    return x;
}

/* ---- examples ------------------------------------------------------------------------------------------ */

/* Of examples. */
enum { DROPOUT = 1, MAXK = 2, SINGLE = 4 };
typedef enum shape { SYMMETRIC, DIRECTED, SAMPLED, SHAPES } shape;

/* A random graph with weights, a node without edges, another with a loop. */
static sp_csr random_graph(sp_context *host, test_random *random, int64_t nodes, bool symmetric)
{
    double *numbers = calloc((size_t)(nodes * nodes), sizeof *numbers);
    ck_assert_ptr_nonnull(numbers);
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t j = 0; j < nodes; j++)
            if (i != 1 && j != 1 && test_below(random, 4) == 0) {
                numbers[i * nodes + j] = 0.1 + test_unit(random);
                if (symmetric) numbers[j * nodes + i] = numbers[i * nodes + j];
            }
    if (nodes > 2) numbers[2 * nodes + 2] = 0.5;
    sp_csr graph = test_from_dense(host, nodes, nodes, numbers, SP_F64);
    free(numbers);
    return graph;
}

static void draw_blocks(sp_context *host, test_random *random, example *e, shape kind, sp_value_type type)
{
    const bool pattern = e->o.layer != GNN_GCN && e->o.layer != GNN_GIN;
    int64_t cols = 1 + test_below(random, 12);
    if (kind == SAMPLED) {
        for (int i = 0; i < e->o.layers; i++) {
            const int64_t rows = cols > 2 ? 2 + test_below(random, cols - 2) : cols;
            e->a[i] = test_matrix(host, random, rows, cols, 0.4, type, pattern ? TEST_PATTERN : TEST_SIGNED);
            cols = rows;
        }
        return;
    }
    sp_csr graph = random_graph(host, random, cols, kind == SYMMETRIC);
    for (int i = 0; i < e->o.layers; i++) ck_ok(host, gnn_operator(host, &graph, e->o.layer, type, &e->a[i]));
    sp_csr_free(host, &graph);
}

/* `variant` 0: dense features, 1: sparse ones, 2: a pattern. Widths are drawn: both orders of products occur. */
static example draw_example(sp_context *host, uint64_t seed, gnn_layer layer, int layers, shape kind, int variant,
                            int flags)
{
    test_random random = test_seed(seed);
    example e = {.seed = seed, .symmetric = kind == SYMMETRIC, .sparse = variant > 0, .training = flags & DROPOUT};
    e.o = (gnn_model_options){.layer = layer, .layers = layers, .inputs = 1 + test_below(&random, 7),
                              .outputs = 1 + test_below(&random, 7), .hidden = 1 + test_below(&random, 6),
                              .heads = 1 + (int)test_below(&random, 3),
                              .output_heads = 1 + (int)test_below(&random, 3),
                              .type = flags & SINGLE ? SP_DENSE_F32 : SP_DENSE_F64};
    const sp_value_type type = flags & SINGLE ? SP_F32 : SP_F64;
    if (flags & DROPOUT) {
        e.o.input_dropout = 0.3;
        e.o.dropout = 0.4;
        e.o.attention_dropout = layer == GNN_GAT ? 0.5 : 0;
    }
    if (flags & MAXK) e.o.maxk = 1 + test_below(&random, e.o.hidden);
    draw_blocks(host, &random, &e, kind, type);
    const int64_t rows = e.a[0].cols;
    e.x = malloc((size_t)(rows * e.o.inputs) * sizeof *e.x);
    ck_assert_ptr_nonnull(e.x);
    for (int64_t k = 0; k < rows * e.o.inputs; k++) e.x[k] = (float)(2 * test_unit(&random) - 1);
    if (e.sparse)
        e.x_sparse = test_matrix(host, &random, rows, e.o.inputs, 0.5, type,
                                 variant == 2 ? TEST_PATTERN : TEST_SIGNED);
    return e;
}

static void free_example(sp_context *host, example *e)
{
    for (int i = 0; i < MOST_LAYERS; i++) sp_csr_free(host, &e->a[i]);
    sp_csr_free(host, &e->x_sparse);
    free_all(e->x, e->weights);
}

/* ---- what runs them ------------------------------------------------------------------------------------ */

/* A model with its blocks and features where the engine computes. */
typedef struct runner {
    sp_context *context;
    gnn_engine *engine;
    gnn_model *model;
    gnn_block *block[GNN_MAX_LAYERS];
    gnn_features x;
} runner;

/* Numbers of the model's type, doubles here. */
static void to_space(runner *r, void *to, const double *from, int64_t count)
{
    const bool single = gnn_model_shape(r->model)->type == SP_DENSE_F32;
    float *rounded = malloc((size_t)count * sizeof *rounded + 1);
    ck_assert_ptr_nonnull(rounded);
    for (int64_t k = 0; k < count; k++) rounded[k] = (float)from[k];
    ck_ok(r->context, sp_array_copy(r->context, count, single ? 4 : 8, to, r->engine->space,
                                    single ? (const void *)rounded : from, SP_HOST));
    free(rounded);
}

static void to_host(runner *r, double *to, const void *from, int64_t count)
{
    const bool single = gnn_model_shape(r->model)->type == SP_DENSE_F32;
    float *rounded = malloc((size_t)count * sizeof *rounded + 1);
    ck_assert_ptr_nonnull(rounded);
    ck_ok(r->context, sp_array_copy(r->context, count, single ? 4 : 8, single ? (void *)rounded : to, SP_HOST, from,
                                    r->engine->space));
    for (int64_t k = 0; k < count && single; k++) to[k] = rounded[k];
    free(rounded);
}

static void rows_to_host(runner *r, double *to, const sp_dense *from)
{
    const size_t size = from->type == SP_DENSE_F32 ? 4 : 8;
    for (int64_t i = 0; i < from->rows; i++)
        to_host(r, to + i * from->cols, (const char *)from->values + (size_t)(i * from->stride) * size, from->cols);
}

static void make_features(runner *r, const example *e)
{
    const int64_t rows = e->a[0].cols, cols = e->o.inputs;
    if (e->sparse) {
        ck_ok(r->context, sp_csr_copy(r->context, &e->x_sparse, r->engine->space, &r->x.sparse));
        return;
    }
    ck_ok(r->context, sp_dense_create(r->context, rows, cols, e->o.type, r->engine->space, &r->x.dense));
    to_space(r, r->x.dense.values, e->x, rows * cols);
}

static runner open_runner(int device)
{
    runner r = {.context = test_context(device, 2)};
    ck_ok(r.context, gnn_engine_create(r.context, SEED, &r.engine));
    return r;
}

/* What load_runner made. */
static void unload_runner(runner *r)
{
    for (int i = 0; i < GNN_MAX_LAYERS; i++) gnn_block_free(r->block[i]);
    gnn_model_free(r->model);
    sp_dense_free(r->context, &r->x.dense);
    sp_csr_free(r->context, &r->x.sparse);
    *r = (runner){.context = r->context, .engine = r->engine};
}

static void free_runner(runner *r)
{
    unload_runner(r);
    gnn_engine_free(r->engine);
    sp_context_destroy(r->context);
}

/* Draws all weights at random, biases too: e->weights and the model's. */
static void draw_weights(runner *r, example *e)
{
    test_random random = test_seed(e->seed + 1);
    const int64_t size = gnn_model_size(r->model);
    e->parameter = gnn_model_parameters(r->model, &e->parameters);
    free(e->weights);
    e->weights = malloc((size_t)size * sizeof *e->weights);
    ck_assert_ptr_nonnull(e->weights);
    for (int64_t k = 0; k < size; k++) e->weights[k] = (float)(2 * test_unit(&random) - 1);
    to_space(r, gnn_model_weights(r->model), e->weights, size);
}

static void load_runner(runner *r, example *e)
{
    ck_ok(r->context, gnn_model_create(r->engine, &e->o, &r->model));
    for (int i = 0; i < e->o.layers; i++)
        ck_ok(r->context, gnn_block_create(r->engine, &e->a[i], e->o.layer, e->symmetric, e->o.hidden, &r->block[i]));
    make_features(r, e);
    e->o = *gnn_model_shape(r->model);
    draw_weights(r, e);
    e->step = 5;
    ck_ok(r->context, r->engine->backend->set_step(r->engine, e->step));
}

static runner make_runner(int device, example *e)
{
    runner r = open_runner(device);
    load_runner(&r, e);
    return r;
}

static const char *describe(const example *e)
{
    static char text[160];
    snprintf(text, sizeof text, "layer %d, %d layers, %s %lld features, %lld hidden, %lld classes, %lld nodes, maxk"
             " %lld, seed %llu", (int)e->o.layer, e->o.layers, e->sparse ? "sparse" : "dense", (long long)e->o.inputs,
             (long long)e->o.hidden, (long long)e->o.outputs, (long long)e->a[0].cols, (long long)e->o.maxk,
             (unsigned long long)e->seed);
    return text;
}

static double tolerance(const example *e, double wide, double single)
{
    return e->o.type == SP_DENSE_F64 ? wide : single;
}

/* The logits are those of the formula. */
static void compare_logits(runner *r, const example *e, const sp_dense *logits)
{
    const mat expected = formula(e);
    ck_assert_msg(logits->rows == expected.rows && logits->cols == expected.cols, "%s: shape", describe(e));
    double *found = malloc((size_t)(logits->rows * logits->cols + 1) * sizeof *found);
    ck_assert_ptr_nonnull(found);
    rows_to_host(r, found, logits);
    for (int64_t k = 0; k < expected.rows * expected.cols; k++)
        test_expect(fabsl(found[k] - expected.v[k]) <= tolerance(e, 1e-11, 1e-5) * (1 + fabsl(expected.v[k])),
                    "%s: logit %lld is %.15g, not %.15Lg", describe(e), (long long)k, found[k], expected.v[k]);
    free(found);
}

static void check_forward(runner *r, const example *e)
{
    const sp_dense *logits;
    ck_ok(r->context, gnn_model_forward(r->model, r->block, &r->x, e->training, &logits));
    compare_logits(r, e, logits);
}

/* Σ logits ∘ direction */
static real scalar(const example *e, const double *direction)
{
    const mat y = formula(e);
    real sum = 0;
    for (int64_t k = 0; k < y.rows * y.cols; k++) sum += y.v[k] * direction[k];
    return sum;
}

static int64_t kinks, differences;

/* d scalar / d weights[k] by central differences; NAN where a step of 1e-5 crosses a kink. */
static double difference(const example *e, const double *direction, int64_t k, uint64_t centre)
{
    const double step = 1e-5, kept = e->weights[k];
    real value[2], at[2];
    bool crossed = false;
    for (int s = 0; s < 2; s++) {
        at[s] = e->weights[k] = kept + (s ? step : -step);
        value[s] = scalar(e, direction);
        crossed = crossed || sides != centre;
    }
    e->weights[k] = kept;
    differences++;
    kinks += crossed;
    return crossed ? NAN : (double)((value[1] - value[0]) / (at[1] - at[0]));
}

/* Within 1e-6 of the differences, or of a hundredth of the parameter's largest one; those that are 0, within
 * 1e-12. */
static void check_parameter(const example *e, const gnn_parameter *p, const double *found, const double *direction)
{
    const int64_t count = p->rows * p->cols;
    double *expected = malloc((size_t)count * sizeof *expected), largest_one = 0;
    ck_assert_ptr_nonnull(expected);
    scalar(e, direction);
    const uint64_t centre = sides;
    for (int64_t k = 0; k < count; k++) {
        expected[k] = difference(e, direction, p->offset + k, centre);
        if (fabs(expected[k]) > largest_one) largest_one = fabs(expected[k]);
    }
    const double least = tolerance(e, 0.01, 1) * largest_one;
    for (int64_t k = 0; k < count; k++)
        test_expect(isnan(expected[k]) ||
                        fabs(found[p->offset + k] - expected[k]) <=
                            tolerance(e, 1e-6, 1e-4) * fmax(fabs(expected[k]), least) + tolerance(e, 1e-12, 1e-6),
                    "%s: gradient %lld of %s is %.12g, not %.12g", describe(e), (long long)k, p->name,
                    found[p->offset + k], expected[k]);
    free(expected);
}

/* The gradients that the model holds are those of Σ logits ∘ direction. */
static void compare_gradients(runner *r, const example *e, const double *direction)
{
    double *found = malloc((size_t)gnn_model_size(r->model) * sizeof *found);
    ck_assert_ptr_nonnull(found);
    to_host(r, found, gnn_model_gradients(r->model), gnn_model_size(r->model));
    for (int i = 0; i < e->parameters; i++) check_parameter(e, &e->parameter[i], found, direction);
    free(found);
}

/* A direction for the logits, on the host and, in *there, where the engine computes. */
static double *draw_direction(runner *r, const example *e, sp_dense *there)
{
    test_random random = test_seed(e->seed + 2);
    const int64_t rows = e->a[e->o.layers - 1].rows, count = rows * e->o.outputs;
    double *direction = malloc((size_t)(count + 1) * sizeof *direction);
    ck_assert_ptr_nonnull(direction);
    for (int64_t k = 0; k < count; k++) direction[k] = (float)(2 * test_unit(&random) - 1);
    ck_ok(r->context, sp_dense_create(r->context, rows, e->o.outputs, e->o.type, r->engine->space, there));
    to_space(r, there->values, direction, count);
    return direction;
}

static void check_gradients(runner *r, const example *e)
{
    sp_dense gradient;
    double *direction = draw_direction(r, e, &gradient);
    ck_ok(r->context, gnn_model_backward(r->model, r->block, &r->x, &gradient));
    compare_gradients(r, e, direction);
    sp_dense_free(r->context, &gradient);
    free(direction);
}

/* Of one kind of layer, every number of layers, shape and kind of features, with and without dropout. */
static void check_layer(int device, gnn_layer layer, bool maxk)
{
    sp_context *host = test_context(0, 1);
    uint64_t seed = 1000 * ((uint64_t)layer + 1);
    runner r = open_runner(device);
    kinks = differences = 0;
    for (int layers = maxk ? 2 : 1; layers <= MOST_LAYERS; layers++)
        for (int kind = 0; kind < SHAPES; kind++)
            for (int variant = 0; variant < (layer == GNN_SAGE_MAX ? 1 : 3); variant++)
                for (int64_t c = 0; c < 2 * test_cases(2); c++) {
                    example e = draw_example(host, seed++, layer, layers, (shape)kind, variant,
                                             (c % 2 ? DROPOUT : 0) | (maxk ? MAXK : 0));
                    load_runner(&r, &e);
                    check_forward(&r, &e);
                    check_gradients(&r, &e);
                    unload_runner(&r);
                    free_example(host, &e);
                }
    ck_assert_msg(kinks * 100 <= differences, "%lld of %lld differences cross a kink", (long long)kinks,
                  (long long)differences);
    free_runner(&r);
    sp_context_destroy(host);
}

TEST(gcn_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_GCN, false); }
TEST(sage_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_SAGE, false); }
TEST(sage_max_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_SAGE_MAX, false); }
TEST(gin_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_GIN, false); }
TEST(gat_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_GAT, false); }
TEST(maxk_and_its_gradients_follow_the_formula)
{
    check_layer(_i, GNN_GCN, true);
    check_layer(_i, GNN_SAGE, true);
    check_layer(_i, GNN_GIN, true);
}

/* ---- operators ----------------------------------------------------------------------------------------- */

/* Entry (i, j) of the operator by its definition. */
static double operator_entry(gnn_layer layer, const double *graph, int64_t nodes, int64_t i, int64_t j)
{
    double degree[2] = {1, 1};
    const double loop = i == j, weight = graph[i * nodes + j];
    if (layer == GNN_GAT) return weight != 0 || i == j;
    if (layer != GNN_GCN) return weight != 0 && i != j;
    for (int64_t k = 0; k < nodes; k++) {
        degree[0] += graph[i * nodes + k];
        degree[1] += graph[j * nodes + k];
    }
    return (weight + loop) / (sqrt(degree[0]) * sqrt(degree[1]));
}

HOST_TEST(operators_are_those_of_their_definitions, 2)
{
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(60); seed++) {
        test_random random = test_seed(seed);
        const int64_t nodes = seed % 20 == 0 ? 400 : test_below(&random, 12);
        const gnn_layer layer = (gnn_layer)(seed % 5);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        sp_csr graph = test_matrix(host, &random, nodes, nodes, seed % 20 == 0 ? 0.9 : 0.3,
                                   seed % 3 ? SP_F32 : SP_F64, seed % 7 ? TEST_POSITIVE : TEST_PATTERN), made;
        double *numbers = calloc((size_t)(nodes * nodes) + 1, sizeof *numbers);
        ck_assert_ptr_nonnull(numbers);
        for (int64_t i = 0; i < nodes; i++)
            for (int64_t k = graph.row_offsets[i]; k < graph.row_offsets[i + 1]; k++)
                numbers[i * nodes + graph.col_indices[k]] = test_value(&graph, k);
        ck_ok(host, gnn_operator(host, &graph, layer, type, &made));
        ck_ok(host, sp_csr_check(host, &made));
        ck_assert(made.value_type == type && (made.values != NULL) == (layer == GNN_GCN));
        int64_t entries = 0;
        for (int64_t i = 0, k = 0; i < nodes; i++)
            for (int64_t j = 0; j < nodes; j++) {
                const double expected = operator_entry(layer, numbers, nodes, i, j);
                if (expected == 0) continue;
                entries++;
                test_expect(k < made.nnz && made.col_indices[k] == j && k < made.row_offsets[i + 1] &&
                                fabs(test_value(&made, k) - expected) <= (type == SP_F32 ? 1e-7 : 1e-15),
                            "seed %llu: entry (%lld, %lld)", (unsigned long long)seed, (long long)i, (long long)j);
                k++;
            }
        ck_assert_int_eq(made.nnz, entries);
        free(numbers);
        test_free(host, &graph, &made);
    }
}

HOST_TEST(the_gcn_operator_of_a_symmetric_graph_is_symmetric_to_the_last_bit, 2)
{
    test_random random = test_seed(5);
    sp_csr graph = random_graph(host, &random, 40, true), made, mirrored;
    ck_ok(host, gnn_operator(host, &graph, GNN_GCN, SP_F32, &made));
    ck_ok(host, sp_csr_transpose(host, &made, &mirrored));
    test_same(&made, &mirrored, 5);
    test_free(host, &graph, &made, &mirrored);
}

HOST_TEST(operators_of_impossible_graphs_are_refused, 1)
{
    test_random random = test_seed(5);
    const double negative[] = {0, -2, 1, 0};
    sp_csr wide = test_matrix(host, &random, 3, 4, 0.5, SP_F32, TEST_SIGNED), made;
    sp_csr graph = test_from_dense(host, 2, 2, negative, SP_F32);
    test_mark(&made, sizeof made);
    ck_assert_int_eq(gnn_operator(host, &wide, GNN_GCN, SP_F32, &made), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(host), "the graph is 3 x 4: it must be square and in host memory");
    ck_assert_int_eq(gnn_operator(host, &graph, GNN_GCN, SP_F32, &made), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(host), "the weights of node 0 (from 0) and its loop have no positive sum, and GCN"
                                          " divides by it");
    ck_assert(test_is_marked(&made, sizeof made));
    ck_assert_int_eq(gnn_operator(host, &graph, (gnn_layer)9, SP_F32, &made), SP_ERROR_ARGUMENT);
    ck_ok(host, gnn_operator(host, &graph, GNN_SAGE, SP_F32, &made));
    test_free(host, &made, &wide, &graph);
}

/* ---- models -------------------------------------------------------------------------------------------- */

HOST_TEST(a_graph_of_one_node_is_no_exception, 1)
{
    const double loop = 1;
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int looped = 0; looped < 2; looped++) {
            example e = draw_example(host, 3, (gnn_layer)layer, 2, SYMMETRIC, 0, 0);
            sp_csr graph = test_from_dense(host, 1, 1, looped ? &loop : &(double){0}, SP_F64);
            for (int i = 0; i < 2; i++) {
                sp_csr_free(host, &e.a[i]);
                ck_ok(host, gnn_operator(host, &graph, e.o.layer, SP_F64, &e.a[i]));
            }
            runner r = make_runner(_i, &e);
            check_forward(&r, &e);
            check_gradients(&r, &e);
            sp_csr_free(host, &graph);
            free_runner(&r);
            free_example(host, &e);
        }
}

HOST_TEST(one_model_takes_blocks_of_any_shape_after_each_other, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
        example first = draw_example(host, 50, (gnn_layer)layer, 2, SYMMETRIC, 0, 0);
        runner r = make_runner(_i, &first);
        for (uint64_t seed = 51; seed < 59; seed++) {
            const int variant = layer == GNN_SAGE_MAX ? 0 : (int)(seed % 3);
            example e = draw_example(host, seed, (gnn_layer)layer, 2, SAMPLED, variant, 0);
            const int64_t rows = e.a[0].cols, inputs = first.o.inputs;
            test_random random = test_seed(seed);
            free(e.x);
            sp_csr_free(host, &e.x_sparse);
            e.o = first.o; /* the model's, without dropout */
            e.x = calloc((size_t)(rows * inputs), sizeof *e.x);
            ck_assert_ptr_nonnull(e.x);
            for (int64_t k = 0; k < rows * inputs; k++) e.x[k] = test_unit(&random);
            if (e.sparse) e.x_sparse = test_from_dense(host, rows, inputs, e.x, SP_F64);
            sp_dense_free(r.context, &r.x.dense);
            sp_csr_free(r.context, &r.x.sparse);
            make_features(&r, &e);
            for (int i = 0; i < 2; i++) {
                gnn_block_free(r.block[i]);
                ck_ok(r.context, gnn_block_create(r.engine, &e.a[i], e.o.layer, false, 4, &r.block[i]));
            }
            draw_weights(&r, &e);
            check_forward(&r, &e);
            check_gradients(&r, &e);
            free_example(host, &e);
        }
        free_runner(&r);
        free_example(host, &first);
    }
}

HOST_TEST(dropout_ends_with_training, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int variant = 0; variant < (layer == GNN_SAGE_MAX ? 1 : 3); variant++) {
            example e = draw_example(host, 60, (gnn_layer)layer, 2, DIRECTED, variant, DROPOUT);
            runner r = make_runner(_i, &e);
            for (int pass = 0; pass < 4; pass++) {
                e.training = pass % 2 == 0;
                ck_ok(r.context, r.engine->backend->set_step(r.engine, e.step = pass));
                check_forward(&r, &e);
                check_gradients(&r, &e);
            }
            free_runner(&r);
            free_example(host, &e);
        }
}

HOST_TEST(what_is_aggregated_is_kept_until_another_block_comes, 1)
{
    for (int layer = GNN_GCN; layer < GNN_GAT; layer++) {
        example e = draw_example(host, 71, (gnn_layer)layer, 2, SYMMETRIC, 0, 0);
        e.o.keep_aggregated = true;
        runner r = make_runner(_i, &e);
        const int64_t count = e.a[0].cols * e.o.inputs;
        for (int pass = 0; pass < 3; pass++) {
            check_forward(&r, &e);
            check_gradients(&r, &e);
            e.seed++;
            draw_weights(&r, &e);
        }
        /* Numbers that change behind a block are not seen where A·X is all that is made of them; they may come, in
         * the same place, with another block. */
        double *moved = malloc((size_t)count * sizeof *moved);
        ck_assert_ptr_nonnull(moved);
        for (int64_t k = 0; k < count; k++) moved[k] = e.x[k] + 1;
        to_space(&r, r.x.dense.values, moved, count);
        if (layer == GNN_GCN) check_forward(&r, &e);
        memcpy(e.x, moved, (size_t)count * sizeof *moved);
        free(moved);
        gnn_block_free(r.block[0]);
        ck_ok(r.context, gnn_block_create(r.engine, &e.a[0], e.o.layer, false, 4, &r.block[0]));
        check_forward(&r, &e);
        check_gradients(&r, &e);
        free_runner(&r);
        free_example(host, &e);
    }
}

HOST_TEST(maxk_of_all_columns_is_linear, 1)
{
    example e = draw_example(host, 81, GNN_GCN, 3, DIRECTED, 0, 0);
    e.o.maxk = e.o.hidden;
    runner r = make_runner(_i, &e);
    arena_used = 0;
    mat y = features_of(&e);
    for (int layer = 0; layer < 3; layer++) {
        y = gather(&e, &e.a[layer], times(y, parameter(&e, layer, "weight")));
    }
    for (int i = 0; i < e.parameters; i++) {
        const gnn_parameter *p = &e.parameter[i];
        if (strstr(p->name, "bias")) memset(e.weights + p->offset, 0, (size_t)p->cols * sizeof *e.weights);
    }
    to_space(&r, gnn_model_weights(r.model), e.weights, gnn_model_size(r.model));
    const sp_dense *logits;
    double found[1000];
    ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, false, &logits));
    ck_assert_int_le(y.rows * y.cols, 1000);
    rows_to_host(&r, found, logits);
    for (int64_t k = 0; k < y.rows * y.cols; k++) ck_assert_double_eq_tol(found[k], (double)y.v[k], 1e-12);
    free_runner(&r);
    free_example(host, &e);
}

HOST_TEST(single_precision_is_as_good_as_it_can_be, 1)
{
    runner r = open_runner(_i);
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int64_t c = 0; c < test_cases(12); c++) {
            const uint64_t seed = 100 * (uint64_t)layer + (uint64_t)c;
            const bool maxk = c % 3 == 2 && layer != GNN_GAT && layer != GNN_SAGE_MAX;
            const int variant = layer == GNN_SAGE_MAX ? 0 : (int)c % 3;
            example e = draw_example(host, seed, (gnn_layer)layer, 2, (shape)(c / 2 % 3), variant,
                                     SINGLE | (c % 2 ? DROPOUT : 0) | (maxk ? MAXK : 0));
            load_runner(&r, &e);
            check_forward(&r, &e);
            check_gradients(&r, &e);
            unload_runner(&r);
            free_example(host, &e);
        }
    free_runner(&r);
}

/* Logits and gradients differ by what bf16 rounds off, 2^-9 of a number, and differ they do: rows of 32 numbers are
 * gathered as they are, but not those of 36. */
HOST_TEST(sixteen_bit_gathers_lose_what_rounding_takes, 1)
{
    static const gnn_layer layers[] = {GNN_GCN, GNN_SAGE, GNN_GIN};
    for (size_t l = 0; l < COUNT(layers); l++)
        for (int variant = 0; variant < 2; variant++) {
            static double numbers[2][2][5000];
            double largest = 0, difference = 0;
            int64_t count[2] = {0};
            for (int half = 0; half < 2; half++) {
                example e = draw_example(host, 78, layers[l], 2, DIRECTED, variant, SINGLE);
                e.o.half_gather = half;
                e.o.hidden = e.o.outputs = 36;
                runner r = make_runner(_i, &e);
                const sp_dense *logits;
                ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, true, &logits));
                ck_assert_int_le(logits->rows * logits->cols, 5000);
                ck_assert_int_le(gnn_model_size(r.model), 5000);
                rows_to_host(&r, numbers[half][0], logits);
                sp_dense direction = *logits; /* Σ logits² / 2 */
                ck_ok(r.context, gnn_model_backward(r.model, r.block, &r.x, &direction));
                to_host(&r, numbers[half][1], gnn_model_gradients(r.model), gnn_model_size(r.model));
                count[0] = logits->rows * logits->cols, count[1] = gnn_model_size(r.model);
                free_runner(&r);
                free_example(host, &e);
            }
            for (int what = 0; what < 2; what++) {
                largest = difference = 0;
                for (int64_t k = 0; k < count[what]; k++) {
                    largest = fmax(largest, fabs(numbers[0][what][k]));
                    difference = fmax(difference, fabs(numbers[0][what][k] - numbers[1][what][k]));
                }
                ck_assert_msg(difference > 0 && difference < 0.03 * largest, "layer %d, features %d, %s: %g of %g",
                              (int)layers[l], variant, what ? "gradients" : "logits", difference, largest);
            }
        }
}

/* Enough entries for threads to share the columns among them. */
TEST(symmetry_is_found_whatever_the_threads)
{
    enum { N = 1800 };
    for (int threads = 1; threads <= 3; threads++) {
        sp_context *context = test_context(0, threads);
        test_random random = test_seed(41);
        sp_csr a = test_communities(context, &random, 3, N / 3, 0.2, 0.01);
        bool symmetric = false;
        ck_assert_int_gt(a.nnz, 100000);
        ck_ok(context, gnn_symmetric(context, &a, &symmetric));
        ck_assert(symmetric);
        for (int64_t k = 0; k < a.nnz; k += a.nnz / 7) { /* another value */
            float *value = (float *)a.values + k, before = *value;
            *value = before + 1;
            ck_ok(context, gnn_symmetric(context, &a, &symmetric));
            test_expect(!symmetric, "entry %lld", (long long)k);
            *value = before;
        }
        for (int64_t i = 0; i < N; i += 300) { /* another column, of which the mirror image is not there */
            const int64_t last = a.row_offsets[i + 1] - 1;
            const int32_t before = a.col_indices[last];
            if (before == N - 1) continue;
            a.col_indices[last] = N - 1;
            ck_ok(context, gnn_symmetric(context, &a, &symmetric));
            test_expect(!symmetric, "row %lld", (long long)i);
            a.col_indices[last] = before;
        }
        sp_csr_free(context, &a);
        sp_context_destroy(context);
    }
}

/* The back end's product with tiles, by the layout of m16n8k16's left operand: lane l has of rows l / 4 and 8 below
 * it the columns 2 (l mod 4) and the one after it, and 8 to the right of these. On the CPU, where there is none. */
static sp_status multiply_tiles_slowly(gnn_engine *engine, const gnn_tiles *t, const float *r, const float *c,
                                       const sp_dense *x, sp_dense *y)
{
    for (int64_t tile = 0, panel = 0; tile < t->start[t->panels]; tile++) {
        while (tile >= t->start[panel + 1]) panel++;
        for (int word = 0; word < GNN_TILE_WORDS; word++)
            for (int bit = 0; bit < 32; bit++) {
                const int lane = word % 32, product = bit % 16 / 4, below = bit % 2, right = bit % 4 / 2;
                const int64_t i = panel * GNN_TILE_ROWS + word / 32 * 16 + below * 8 + lane / 4;
                const int64_t j = t->column[tile] * (int64_t)GNN_TILE_COLS + product * 16 + right * 8 + lane % 4 * 2 +
                                  bit / 16;
                if (!(t->bits[tile * GNN_TILE_WORDS + word] >> bit & 1)) continue;
                const float factor = (r ? r[i] : 1) * (c ? c[j] : 1);
                for (int64_t k = 0; k < x->cols; k++)
                    ((float *)y->values)[i * y->stride + k] += factor * ((const float *)x->values)[j * x->stride + k];
            }
    }
    return engine ? SP_OK : SP_ERROR_ARGUMENT;
}

/* Logits and gradients of a pass, as doubles; the gradient of the logits is fixed. */
static void whole_pass(runner *r, double *logits, double *gradients)
{
    const sp_dense *made;
    sp_dense gradient, host;
    ck_ok(r->context, gnn_model_forward(r->model, r->block, &r->x, false, &made));
    ck_ok(r->context, sp_dense_copy(r->context, made, SP_HOST, &host));
    for (int64_t i = 0; i < host.rows; i++)
        for (int64_t j = 0; j < host.cols; j++) {
            float *number = (float *)host.values + i * host.stride + j;
            logits[i * host.cols + j] = (double)*number;
            *number = (float)((i * 7 + j * 3) % 11 - 5);
        }
    ck_ok(r->context, sp_dense_copy(r->context, &host, r->engine->space, &gradient));
    ck_ok(r->context, gnn_model_backward(r->model, r->block, &r->x, &gradient));
    to_host(r, gradients, gnn_model_gradients(r->model), gnn_model_size(r->model));
    test_free_dense(r->context, &host, &gradient);
}

static double largest_of(const double *numbers, const double *less, int64_t count)
{
    double most = 0;
    for (int64_t k = 0; k < count; k++) most = fmax(most, fabs(numbers[k] - (less ? less[k] : 0)));
    return most;
}

static void free_blocks(runner *r)
{
    for (int l = 0; l < 2; l++) {
        gnn_block_free(r->block[l]);
        r->block[l] = NULL;
    }
}

/* Both blocks of the matrix, which lies where the engine computes, with tiles set apart if asked. */
static void make_blocks(runner *r, const sp_csr *matrix, gnn_layer layer, const int64_t *widths, bool apart)
{
    free_blocks(r);
    for (int l = 0; l < 2; l++)
        ck_ok(r->context, gnn_block_create(r->engine, matrix, layer, true, widths[l], &r->block[l]));
    for (int l = 0; l < 2 && apart; l++) {
        ck_ok(r->context, gnn_block_split(r->block[l]));
        if (!r->engine->takes_tiles) continue;
        ck_assert_ptr_nonnull(r->block[l]->tiles);
        ck_assert_int_lt(r->block[l]->tiles->rest.nnz, matrix->nnz / 4);
    }
    ck_assert_ptr_eq(r->block[0]->tiles, r->block[1]->tiles);
}

static void expect_near(const double *a, const double *b, int64_t count, int layer, const char *what)
{
    const double apart = largest_of(a, b, count), most = largest_of(a, NULL, count);
    test_expect(apart < 1e-5 * most, "layer %d: %s differ by %g of %g", layer, what, apart, most);
}

/* Three communities with a third of all possible edges: most lies in tiles. The last panel and tile are not whole. */
HOST_TEST(dense_tiles_set_apart_change_nothing_but_rounding, 2)
{
    enum { GROUP = 1201, N = 3 * GROUP, IN = 50, HIDDEN = 70, OUT = 33 };
    static double logits[2][N * OUT], gradients[2][1 << 14];
    test_random random = test_seed(31);
    gnn_backend slow = gnn_backend_cpu;
    sp_csr graph = test_communities(host, &random, 3, GROUP, 0.33, 0.01);
    sp_free(host, graph.values);
    graph.values = NULL;
    slow.multiply_tiles = multiply_tiles_slowly;
    for (int layer = GNN_GCN; layer <= GNN_GIN; layer++) {
        const gnn_model_options o = {.layer = (gnn_layer)layer, .inputs = IN, .hidden = HIDDEN, .outputs = OUT,
                                     .type = SP_DENSE_F32};
        if (layer == GNN_SAGE_MAX) continue;
        runner r = open_runner(_i);
        sp_dense x;
        sp_csr matrix, there;
        if (_i == 0) {
            r.engine->backend = &slow;
            r.engine->takes_tiles = true;
        }
        ck_ok(host, gnn_operator(host, &graph, o.layer, SP_F32, &matrix));
        ck_ok(host, sp_dense_create(host, N, IN, SP_DENSE_F32, SP_HOST, &x));
        for (int64_t k = 0; k < N * IN; k++) ((float *)x.values)[k] = (float)test_unit(&random) - 0.5f;
        ck_ok(r.context, sp_dense_copy(r.context, &x, r.engine->space, &r.x.dense));
        ck_ok(r.context, gnn_model_create(r.engine, &o, &r.model));
        const int64_t size = gnn_model_size(r.model);
        ck_assert_int_le(size, 1 << 14);
        ck_ok(r.context, sp_csr_copy(r.context, &matrix, r.engine->space, &there));
        for (int apart = 0; apart < 2; apart++) {
            make_blocks(&r, &there, o.layer, (int64_t[]){HIDDEN, OUT}, apart);
            whole_pass(&r, logits[apart], gradients[apart]);
        }
        expect_near(logits[0], logits[1], N * OUT, layer, "logits");
        expect_near(gradients[0], gradients[1], size, layer, "gradients");
        free_blocks(&r); /* before their matrix */
        ck_assert_ptr_null(r.engine->tiles);
        sp_csr_free(r.context, &there);
        sp_csr_free(host, &matrix);
        sp_dense_free(host, &x);
        free_runner(&r);
    }
    sp_csr_free(host, &graph);
}

/* What was recorded once is right for other weights, features and steps: masks are drawn anew. */
HOST_TEST(a_full_batch_pass_can_be_recorded_and_replayed, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int variant = 0; variant < (layer == GNN_SAGE_MAX ? 1 : 2); variant++) {
            const bool maxk = variant == 1 && layer != GNN_GAT && layer != GNN_SAGE_MAX;
            example e = draw_example(host, 95, (gnn_layer)layer, 2, DIRECTED, variant, DROPOUT | (maxk ? MAXK : 0));
            runner r = make_runner(_i, &e);
            const gnn_backend *backend = r.engine->backend;
            const sp_dense *logits;
            sp_dense gradient;
            void *graph;
            double *direction = draw_direction(&r, &e, &gradient);
            for (int pass = 0; pass < 2; pass++) {
                if (pass) ck_ok(r.context, backend->capture_begin(r.engine));
                ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, true, &logits));
                ck_ok(r.context, gnn_model_backward(r.model, r.block, &r.x, &gradient));
            }
            ck_ok(r.context, backend->capture_end(r.engine, &graph));
            for (int replay = 0; replay < 3; replay++) {
                e.seed++;
                draw_weights(&r, &e);
                ck_ok(r.context, backend->set_step(r.engine, ++e.step));
                ck_ok(r.context, backend->replay(r.engine, graph));
                compare_logits(&r, &e, logits);
                compare_gradients(&r, &e, direction);
            }
            backend->forget(r.engine, graph);
            sp_dense_free(r.context, &gradient);
            free(direction);
            free_runner(&r);
            free_example(host, &e);
        }
}

HOST_TEST(weights_start_within_their_bounds_and_biases_too, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
        runner r = open_runner(_i);
        const gnn_model_options o = {.layer = (gnn_layer)layer, .inputs = 40, .hidden = 30, .outputs = 7,
                                     .type = SP_DENSE_F64};
        int count;
        int64_t next = 0;
        ck_ok(r.context, gnn_model_create(r.engine, &o, &r.model));
        const gnn_parameter *p = gnn_model_parameters(r.model, &count);
        double *numbers = malloc((size_t)gnn_model_size(r.model) * sizeof *numbers);
        ck_assert_ptr_nonnull(numbers);
        to_host(&r, numbers, gnn_model_weights(r.model), gnn_model_size(r.model));
        for (int i = 0; i < count; i++) {
            const bool bias = strstr(p[i].name, "bias") != NULL;
            const int64_t inputs = p[bias ? i - 1 : i].rows;
            const double bound = layer == GNN_GIN ? 1 / sqrt((double)inputs)
                                 : bias           ? 0
                                                  : sqrt(6.0 / (double)(p[i].rows + p[i].cols));
            const double least = p[i].cols == 7 && bias ? 0.4 : 0.7; /* few numbers may all be small */
            double most = 0, sum = 0;
            ck_assert_int_eq(p[i].offset, next);
            next += p[i].rows * p[i].cols;
            for (int64_t k = p[i].offset; k < next; k++) {
                most = fmax(most, fabs(numbers[k]));
                sum += numbers[k];
            }
            ck_assert_msg(most <= bound && most >= least * bound, "%s: %g", p[i].name, most);
            ck_assert_msg(fabs(sum) <= 4 * bound * sqrt((double)(p[i].rows * p[i].cols)), "%s is off centre",
                          p[i].name);
        }
        ck_assert_int_eq(next, gnn_model_size(r.model));
        free(numbers);
        free_runner(&r);
    }
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/* One pass forward and backward, everything made and freed: the first failure. */
static sp_status run_once(sp_context *context, const example *e, test_heap *heap, int64_t *growth)
{
    gnn_engine *engine = NULL;
    gnn_model *model = NULL;
    gnn_block *block[MOST_LAYERS] = {0};
    const sp_dense *logits;
    const gnn_optimizer_options adam = {0};
    gnn_optimizer *optimizer = NULL;
    const gnn_features x = {.dense = {e->a[0].cols, e->o.inputs, e->o.inputs, e->sparse ? NULL : e->x, SP_DENSE_F64,
                                      SP_HOST},
                            .sparse = e->x_sparse};
    sp_dense gradient = {e->a[1].rows, e->o.outputs, e->o.outputs, e->x, SP_DENSE_F64, SP_HOST};
    sp_status status;
    gradient.values = calloc((size_t)(gradient.rows * gradient.cols), 8);
    ck_assert_ptr_nonnull(gradient.values);
    TRY(gnn_engine_create(context, 1, &engine));
    TRY(gnn_model_create(engine, &e->o, &model));
    for (int i = 0; i < 2; i++) TRY(gnn_block_create(engine, &e->a[i], e->o.layer, false, 4, &block[i]));
    TRY(gnn_optimizer_create(model, &adam, &optimizer));
    for (int pass = 0; pass < 3; pass++) {
        const int64_t before = heap->live_bytes;
        TRY(gnn_model_forward(model, block, &x, true, &logits));
        TRY(gnn_model_backward(model, block, &x, &gradient));
        TRY(gnn_optimizer_step(optimizer));
        *growth = heap->live_bytes - before;
    }
done:
    free(gradient.values);
    gnn_optimizer_free(optimizer);
    for (int i = 0; i < 2; i++) gnn_block_free(block[i]);
    gnn_model_free(model);
    gnn_engine_free(engine);
    return status;
}

HOST_TEST(every_allocation_may_fail_and_nothing_grows_after_the_first_pass, 1)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int variant = 0; variant < (layer == GNN_SAGE_MAX ? 1 : 3); variant++) {
            const bool maxk = variant == 1 && layer != GNN_GAT && layer != GNN_SAGE_MAX;
            example e = draw_example(host, 90, (gnn_layer)layer, 2, SAMPLED, variant, DROPOUT | (maxk ? MAXK : 0));
            test_heap heap = {.fail_at = -1};
            const sp_allocator allocator = test_allocator(&heap);
            sp_status status = SP_ERROR_HOST_MEMORY;
            for (int64_t at = 0; status != SP_OK; at++) {
                sp_context *context;
                int64_t growth = 0;
                heap = (test_heap){.fail_at = -1};
                ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .threads = 1,
                                                                         .allocator = &allocator}, &context), SP_OK);
                const int64_t blocks = heap.live_blocks;
                heap.fail_at = heap.allocations + at;
                status = run_once(context, &e, &heap, &growth);
                ck_assert_msg(status == SP_OK || status == SP_ERROR_HOST_MEMORY, "%s: %s", describe(&e),
                              sp_last_error(context));
                ck_assert_msg(heap.live_blocks == blocks, "%s: leak after allocation %lld", describe(&e),
                              (long long)at);
                ck_assert_msg(status != SP_OK || (growth == 0 && at > 10), "%s: %lld bytes more", describe(&e),
                              (long long)growth);
                sp_context_destroy(context);
            }
            free_example(host, &e);
        }
}

/* ---- mistakes ------------------------------------------------------------------------------------------ */

TEST(impossible_models_are_refused_and_say_why)
{
    const gnn_model_options good = {.inputs = 5, .outputs = 3, .hidden = 4};
    const struct {
        gnn_model_options o;
        const char *why;
    } bad[] = {
        {{.layer = (gnn_layer)7, .inputs = 5, .outputs = 3, .hidden = 4}, "layer 7 does not exist"},
        {{.layers = 17, .inputs = 5, .outputs = 3, .hidden = 4}, "17 layers; there can be 1 to 16"},
        {{.layers = -1, .inputs = 5, .outputs = 3, .hidden = 4}, "-1 layers; there can be 1 to 16"},
        {{.outputs = 3, .hidden = 4}, "0 features, 4 hidden columns and 3 classes"},
        {{.inputs = 5, .hidden = 4}, "5 features, 4 hidden columns and 0 classes"},
        {{.inputs = 5, .outputs = 3}, "0 hidden columns"},
        {{.layer = GNN_GIN, .layers = 1, .inputs = 5, .outputs = 3}, "0 hidden columns"},
        {{.layer = GNN_GAT, .inputs = 5, .outputs = 3, .hidden = 1 << 30, .heads = 4}, "4 heads and 1 in the last"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .heads = -1}, "-1 heads"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .dropout = 1}, "a dropout of 1"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .input_dropout = -0.5}, "a dropout of -0.5"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .attention_dropout = NAN}, "a dropout of "},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .type = SP_DENSE_F16}, "models are of type f32 or f64"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .maxk = -2}, "MaxK keeps -2 columns"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .maxk = 2, .half_gather = true}, "16-bit gathers"},
        {{.layer = GNN_GAT, .inputs = 5, .outputs = 3, .hidden = 4, .half_gather = true}, "16-bit gathers"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .type = SP_DENSE_F64, .half_gather = true}, "16-bit gathers"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .maxk = 5}, "MaxK keeps 5 of 4 hidden columns"},
        {{.inputs = 5, .outputs = 3, .hidden = 70000, .maxk = 5}, "MaxK keeps 5 of 70000 hidden columns"},
        {{.layer = GNN_GAT, .inputs = 5, .outputs = 3, .hidden = 4, .maxk = 2}, "MaxK goes with GCN"},
        {{.layers = 1, .inputs = 5, .outputs = 3, .hidden = 4, .maxk = 2}, "MaxK is for hidden layers"},
        {{.inputs = 5, .outputs = 3, .hidden = 4, .keep_aggregated = true, .input_dropout = 0.5}, "cannot be kept"},
    };
    runner r = open_runner(_i);
    gnn_model *model;
    for (size_t i = 0; i < COUNT(bad); i++) {
        ck_assert_int_eq(gnn_model_create(r.engine, &bad[i].o, &model), SP_ERROR_ARGUMENT);
        ck_assert_ptr_null(model);
        ck_assert_msg(strstr(sp_last_error(r.context), bad[i].why), "%s", sp_last_error(r.context));
    }
    ck_assert_int_eq(gnn_model_create(r.engine,
                                      &(gnn_model_options){.inputs = INT32_MAX, .outputs = 3, .hidden = INT32_MAX},
                                      &model), SP_ERROR_OVERFLOW);
    ck_ok(r.context, gnn_model_create(r.engine, &good, &r.model));
    ck_assert_int_eq(gnn_model_shape(r.model)->layers, 2);
    free_runner(&r);
}

HOST_TEST(passes_with_what_does_not_fit_are_refused, 1)
{
    example e = draw_example(host, 7, GNN_SAGE_MAX, 2, SAMPLED, 0, 0);
    runner r = make_runner(_i, &e);
    const sp_dense *logits, nothing = {.type = SP_DENSE_F64, .space = r.engine->space};
    gnn_block *swapped[] = {r.block[1], r.block[0]}, *other;
    gnn_features x = r.x;
    ck_assert_int_eq(gnn_model_backward(r.model, r.block, &r.x, &nothing), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "needs a forward pass before it"));
    ck_assert_int_eq(gnn_model_forward(r.model, swapped, &r.x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "columns and the one before"));
    x.dense.cols++;
    ck_assert_int_eq(gnn_model_forward(r.model, r.block, &x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "the first block and the model need"));
    x = r.x;
    x.dense.type = SP_DENSE_F32;
    ck_assert_int_eq(gnn_model_forward(r.model, r.block, &x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "not of the same type"));
    x = (gnn_features){.sparse = test_matrix(host, &(test_random){1, 1}, r.x.dense.rows, r.x.dense.cols, 0.5, SP_F64,
                                             TEST_SIGNED)};
    sp_csr there;
    ck_ok(r.context, sp_csr_copy(r.context, &x.sparse, r.engine->space, &there));
    sp_csr_free(host, &x.sparse);
    x.sparse = there;
    ck_assert_int_eq(gnn_model_forward(r.model, r.block, &x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(r.context), "maxima over neighbours need dense features");
    sp_csr_free(r.context, &there);
    ck_ok(r.context, gnn_block_create(r.engine, &e.a[0], GNN_SAGE, false, 4, &other));
    swapped[0] = other;
    ck_assert_int_eq(gnn_model_forward(r.model, swapped, &r.x, false, &logits), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(r.context), "another kind of layer"));
    gnn_block_free(other);
    ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, false, &logits));
    ck_assert_int_eq(gnn_model_backward(r.model, r.block, &r.x, &nothing), SP_ERROR_ARGUMENT);
    free_runner(&r);
    free_example(host, &e);
}

DEVICE_TEST(blocks_with_more_rows_than_columns_are_refused, _i, 1)
{
    test_random random = test_seed(1);
    sp_csr tall = test_matrix(host, &random, 4, 3, 0.5, SP_F32, TEST_SIGNED);
    sp_csr wide = test_matrix(host, &random, 3, 4, 0.5, SP_F32, TEST_SIGNED);
    gnn_engine *engine;
    gnn_block *block;
    ck_ok(context, gnn_engine_create(context, 1, &engine));
    ck_assert_int_eq(gnn_block_create(engine, &tall, GNN_GCN, false, 4, &block), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_block_create(engine, &wide, GNN_GCN, true, 4, &block), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_block_create(engine, &wide, (gnn_layer)5, false, 4, &block), SP_ERROR_ARGUMENT);
    ck_assert_ptr_null(block);
    gnn_engine_free(engine);
    test_free(host, &tall, &wide);
}

/* ---- optimizers ---------------------------------------------------------------------------------------- */

static void fill_gradients(runner *r, test_random *random)
{
    const int64_t size = gnn_model_size(r->model);
    double *numbers = malloc((size_t)size * sizeof *numbers);
    ck_assert_ptr_nonnull(numbers);
    for (int64_t k = 0; k < size; k++) numbers[k] = 2 * test_unit(random) - 1;
    to_space(r, gnn_model_gradients(r->model), numbers, size);
    free(numbers);
}

/* A run that is interrupted, and goes on with another optimizer that is given the state of the first. */
HOST_TEST(an_optimizer_goes_on_from_the_state_of_another, 1)
{
    for (int method = 0; method < 4; method++) {
        const gnn_optimizer_options how = {.method = method < 2 ? (gnn_method)method : GNN_SGD, .decay = 0.01,
                                           .beta1 = method == 2 ? 0.9 : 0};
        const int expected = method < 2 ? 2 : method == 2 ? 1 : 0;
        example e = draw_example(host, 12, GNN_GCN, 2, DIRECTED, 0, 0);
        runner r = make_runner(_i, &e);
        const int64_t size = gnn_model_size(r.model);
        double *result[2] = {malloc((size_t)size * 8), malloc((size_t)size * 8)}, *kept = malloc((size_t)size * 8);
        ck_assert(result[0] && result[1] && kept);
        for (int interrupted = 0; interrupted < 2; interrupted++) {
            test_random random = test_seed(9);
            gnn_optimizer *optimizer, *next;
            to_space(&r, gnn_model_weights(r.model), e.weights, size);
            ck_ok(r.context, gnn_optimizer_create(r.model, &how, &optimizer));
            for (int step = 0; step < 6; step++) {
                if (interrupted && step == 3) {
                    void *from[2], *to[2];
                    int64_t *done, *then, steps;
                    ck_ok(r.context, gnn_optimizer_create(r.model, &how, &next));
                    ck_assert_int_eq(gnn_optimizer_state(optimizer, from, &done), expected);
                    ck_assert_int_eq(gnn_optimizer_state(next, to, &then), expected);
                    to_host(&r, kept, gnn_model_weights(r.model), size);
                    for (int i = 0; i < expected; i++) {
                        to_host(&r, kept, to[i], size);
                        for (int64_t k = 0; k < size; k++) ck_assert(kept[k] == 0);
                        to_host(&r, kept, from[i], size);
                        to_space(&r, to[i], kept, size);
                    }
                    ck_ok(r.context, sp_array_copy(r.context, 1, 8, &steps, SP_HOST, done, r.engine->space));
                    ck_assert_int_eq(steps, 3);
                    ck_ok(r.context, sp_array_copy(r.context, 1, 8, then, r.engine->space, &steps, SP_HOST));
                    gnn_optimizer_free(optimizer);
                    optimizer = next;
                }
                fill_gradients(&r, &random);
                ck_ok(r.context, gnn_optimizer_step(optimizer));
            }
            to_host(&r, result[interrupted], gnn_model_weights(r.model), size);
            gnn_optimizer_free(optimizer);
        }
        ck_assert_int_eq(memcmp(result[0], result[1], (size_t)size * 8), 0);
        ck_assert_int_ne(memcmp(result[0], e.weights, (size_t)size * 8), 0);
        free_all(result[0], result[1], kept);
        free_runner(&r);
        free_example(host, &e);
    }
}

/* Plain descent: w - rate · (gradient + decay · w), of the first layer's parameters alone where that is asked for. */
HOST_TEST(rate_and_decay_are_what_was_asked_for, 1)
{
    for (int first_layer = 0; first_layer < 2; first_layer++) {
        const gnn_optimizer_options how = {.method = GNN_SGD, .rate = 0.5, .decay = 0.25,
                                           .decay_first_layer = first_layer};
        example e = draw_example(host, 12, GNN_GIN, 2, DIRECTED, 0, 0);
        runner r = make_runner(_i, &e);
        gnn_optimizer *optimizer;
        const int64_t size = gnn_model_size(r.model);
        double *found = malloc((size_t)size * 8), *gradient = malloc((size_t)size * 8);
        ck_assert(found && gradient);
        ck_ok(r.context, gnn_optimizer_create(r.model, &how, &optimizer));
        for (double rate = 0.5; rate > 0.2; rate -= 0.25) {
            ck_ok(r.context, gnn_optimizer_set_rate(optimizer, rate));
            fill_gradients(&r, &(test_random){4, 4});
            to_host(&r, gradient, gnn_model_gradients(r.model), size);
            ck_ok(r.context, gnn_optimizer_step(optimizer));
            to_host(&r, found, gnn_model_weights(r.model), size);
            for (int i = 0; i < e.parameters; i++) {
                const gnn_parameter *p = &e.parameter[i];
                const double decay = first_layer && p->layer > 0 ? 0 : 0.25;
                for (int64_t k = p->offset; k < p->offset + p->rows * p->cols; k++) {
                    e.weights[k] -= rate * (gradient[k] + decay * e.weights[k]);
                    ck_assert_double_eq_tol(found[k], e.weights[k], 1e-14);
                }
            }
        }
        gnn_optimizer_free(optimizer);
        free_all(found, gradient);
        free_runner(&r);
        free_example(host, &e);
    }
}

TEST(impossible_optimizers_are_refused_and_say_why)
{
    const struct {
        gnn_optimizer_options o;
        const char *why;
    } bad[] = {{{.method = (gnn_method)3}, "method 3 does not exist"},
               {{.rate = -1}, "a learning rate of -1"},
               {{.rate = INFINITY}, "a learning rate of inf"},
               {{.beta1 = 1}, "betas of 1 and 0.999"},
               {{.beta2 = -0.5}, "betas of 0.9 and -0.5"},
               {{.epsilon = -1}, "an epsilon of -1"},
               {{.decay = -1}, "a decay of -1"}};
    runner r = open_runner(_i);
    gnn_optimizer *optimizer;
    ck_ok(r.context, gnn_model_create(r.engine, &(gnn_model_options){.inputs = 5, .outputs = 3, .hidden = 4},
                                      &r.model));
    for (size_t i = 0; i < COUNT(bad); i++) {
        ck_assert_int_eq(gnn_optimizer_create(r.model, &bad[i].o, &optimizer), SP_ERROR_ARGUMENT);
        ck_assert_ptr_null(optimizer);
        ck_assert_msg(strstr(sp_last_error(r.context), bad[i].why), "%s", sp_last_error(r.context));
    }
    ck_ok(r.context, gnn_optimizer_create(r.model, &(gnn_optimizer_options){0}, &optimizer));
    ck_assert_int_eq(gnn_optimizer_set_rate(optimizer, NAN), SP_ERROR_ARGUMENT);
    gnn_optimizer_free(optimizer);
    free_runner(&r);
}

/* ---- products with features and with hidden numbers ---------------------------------------------------- */

/* Numbers in ±1 where the engine computes, and on the host: `exact` to 8 bits, as bf16 has them. */
static sp_dense draw_rows(runner *r, test_random *random, int64_t rows, int64_t cols, sp_dense_type type, bool exact,
                          double **here)
{
    const size_t size = type == SP_DENSE_F64 ? sizeof(double) : sizeof(float);
    sp_dense made;
    ck_ok(r->context, gnn_rows_create(r->engine, rows, cols, type, &made));
    void *all = calloc((size_t)(rows * made.stride), size);
    *here = malloc((size_t)(rows * cols) * sizeof **here + 1);
    ck_assert(all && *here);
    for (int64_t k = 0; k < rows * cols; k++) {
        const double unit = 2 * test_unit(random) - 1;
        const float number = exact ? (float)(floor(unit * 128) / 128) : (float)unit;
        const int64_t at = k / cols * made.stride + k % cols;
        (*here)[k] = (double)number;
        if (type == SP_DENSE_F64) ((double *)all)[at] = (double)number;
        else ((float *)all)[at] = number;
    }
    ck_ok(r->context, sp_array_copy(r->context, rows * made.stride, size, made.values, made.space, all, SP_HOST));
    free(all);
    return made;
}

static double number_of(const sp_dense *host, int64_t i, int64_t j)
{
    const int64_t at = i * host->stride + j;
    return host->type == SP_DENSE_F64 ? ((double *)host->values)[at] : (double)((float *)host->values)[at];
}

/* C is Σ_k X(i, k)·B(k, j), X as it lies or the transpose of what lies there, but for rounding. */
static void check_product(runner *r, const double *x, bool transpose, int64_t inner, const double *b,
                          const sp_dense *c, const char *what)
{
    sp_dense host;
    ck_ok(r->context, sp_dense_copy(r->context, c, SP_HOST, &host));
    for (int64_t i = 0; i < c->rows; i += i < 10 || i + 10 > c->rows ? 1 : 13)
        for (int64_t j = 0; j < c->cols; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < inner; k++) {
                const double term = (transpose ? x[k * c->rows + i] : x[i * inner + k]) * b[k * c->cols + j];
                sum += term;
                size += fabs(term);
            }
            ck_assert_msg(fabs(number_of(&host, i, j) - sum) <= 2e-6 * size + 1e-30, "%s: (%lld, %lld) is %g, not %g",
                          what, (long long)i, (long long)j, number_of(&host, i, j), sum);
        }
    sp_dense_free(r->context, &host);
}

/* 9,001 rows are enough for the kernels of narrow products; features of 8 bits are the same rounded and not. Of two
 * products the second is with the first rows only. */
static void check_features(runner *r, test_random *random, const sp_dense *there, const sp_dense *rounded,
                           const double *x, int count, int64_t narrow)
{
    const gnn_backend *backend = r->engine->backend;
    const int64_t rows[] = {there->rows, there->rows - 37};
    sp_dense b_there[2], g_there[2], c[2], d[2];
    double *b[2], *g[2];
    for (int k = 0; k < count; k++) {
        b_there[k] = draw_rows(r, random, there->cols, narrow, SP_DENSE_F32, false, &b[k]);
        g_there[k] = draw_rows(r, random, rows[k], narrow, SP_DENSE_F32, false, &g[k]);
        ck_ok(r->context, gnn_rows_create(r->engine, rows[k], narrow, SP_DENSE_F32, &c[k]));
        ck_ok(r->context, gnn_rows_create(r->engine, there->cols, narrow, SP_DENSE_F32, &d[k]));
    }
    const gnn_product_with forward[] = {{&b_there[0], &c[0]}, {&b_there[1], &c[1]}};
    const gnn_product_with back[] = {{&g_there[0], &d[0]}, {&g_there[1], &d[1]}};
    for (int half = 0; half < 2; half++) {
        const sp_dense *in_half = half ? rounded : NULL;
        ck_ok(r->context, backend->multiply_features(r->engine, false, there, in_half, count, forward));
        ck_ok(r->context, backend->multiply_features(r->engine, true, there, in_half, count, back));
        for (int k = 0; k < count; k++) {
            char what[80];
            snprintf(what, sizeof what, "%lld x %lld, %s, %d of %d", (long long)there->cols, (long long)narrow,
                     half ? "rounded" : "whole", k + 1, count);
            check_product(r, x, false, there->cols, b[k], &c[k], what);
            check_product(r, x, true, rows[k], g[k], &d[k], what);
        }
    }
    for (int k = 0; k < count; k++) {
        test_free_dense(r->context, &b_there[k], &g_there[k], &c[k], &d[k]);
        free_all(b[k], g[k]);
    }
}

TEST(features_are_multiplied_in_either_type)
{
    static const int64_t widths[] = {17, 20, 256, 259, 500, 512, 600, 1024}, narrow[] = {1, 7, 8, 9, 16, 17};
    runner r = open_runner(_i);
    test_random random = test_seed(91);
    for (size_t w = 0; w < COUNT(widths); w++) {
        double *x;
        sp_dense there = draw_rows(&r, &random, 9001, widths[w], SP_DENSE_F32, true, &x), rounded;
        ck_ok(r.context, gnn_rows_create(r.engine, there.rows, widths[w], SP_DENSE_F32, &rounded));
        rounded.type = SP_DENSE_BF16;
        rounded.stride = 2 * rounded.stride;
        ck_ok(r.context, r.engine->backend->round(r.engine, &there, &rounded));
        for (size_t n = 0; n < COUNT(narrow); n++)
            if ((w + n) % 3 == 0 || widths[w] == 500)
                for (int count = 1; count <= 2; count++)
                    check_features(&r, &random, &there, &rounded, x, count, narrow[n]);
        rounded.type = SP_DENSE_F32;
        test_free_dense(r.context, &rounded, &there);
        free(x);
    }
    free_runner(&r);
}

/* Y has the bits of a forward pass by itself, and C is Y·W. */
TEST(hidden_numbers_are_finished_and_multiplied)
{
    static const int64_t widths[] = {4, 7, 8, 16, 20, 32, 36};
    static const int64_t first[] = {7, 8, 3, 16, 20}, second[] = {0, 7, 9, 5, 3};
    runner r = open_runner(_i);
    test_random random = test_seed(92);
    const gnn_backend *backend = r.engine->backend;
    for (int type = 0; type < 2; type++)
        for (size_t w = 0; w < COUNT(widths); w++)
            for (size_t n = 0; n < COUNT(first); n++) {
                const sp_dense_type t = type ? SP_DENSE_F64 : SP_DENSE_F32;
                const int64_t rows = 1 + test_below(&random, 700), cols[2] = {first[n], second[n]};
                const gnn_pointwise how = {n % 2 ? GNN_RELU : GNN_ELU, w % 2 ? 0.4 : 0, 3};
                double *numbers, *weights[2], *unused;
                sp_dense y = draw_rows(&r, &random, rows, widths[w], t, false, &numbers), alone, host, v[2], c[2];
                sp_dense bias = draw_rows(&r, &random, 1, widths[w], t, false, &unused);
                free(unused);
                ck_ok(r.context, gnn_rows_create(r.engine, rows, widths[w], t, &alone));
                ck_ok(r.context, backend->forward(r.engine, &how, &y, bias.values, &alone));
                for (int k = 0; k < 2; k++) {
                    v[k] = draw_rows(&r, &random, widths[w], cols[k] ? cols[k] : 1, t, false, &weights[k]);
                    ck_ok(r.context, gnn_rows_create(r.engine, k ? 1 + rows / 2 : rows, cols[k] ? cols[k] : 1, t,
                                                     &c[k]));
                }
                const gnn_product_with product[] = {{&v[0], &c[0]}, {&v[1], &c[1]}};
                ck_ok(r.context, backend->finish_multiply(r.engine, &how, bias.values, &y, cols[1] ? 2 : 1, product));
                sp_dense expected;
                ck_ok(r.context, sp_dense_copy(r.context, &y, SP_HOST, &host));
                ck_ok(r.context, sp_dense_copy(r.context, &alone, SP_HOST, &expected));
                for (int64_t k = 0; k < rows * widths[w]; k++) {
                    numbers[k] = number_of(&host, k / widths[w], k % widths[w]);
                    ck_assert(numbers[k] == number_of(&expected, k / widths[w], k % widths[w]));
                }
                for (int k = 0; k < (cols[1] ? 2 : 1); k++)
                    check_product(&r, numbers, false, widths[w], weights[k], &c[k], k ? "the second" : "the first");
                test_free_dense(r.context, &host, &expected, &alone, &bias, &y);
                free(numbers);
                for (int k = 0; k < 2; k++) {
                    test_free_dense(r.context, &v[k], &c[k]);
                    free(weights[k]);
                }
            }
    free_runner(&r);
}

static const test_entry tests[] = {
    CASE("formulas", 300),
    ON_DEVICES(gcn_and_its_gradients_follow_the_formula),
    ON_DEVICES(sage_and_its_gradients_follow_the_formula),
    ON_DEVICES(sage_max_and_its_gradients_follow_the_formula),
    ON_DEVICES(gin_and_its_gradients_follow_the_formula),
    ON_DEVICES(gat_and_its_gradients_follow_the_formula),
    ON_DEVICES(maxk_and_its_gradients_follow_the_formula),
    ON_DEVICES(single_precision_is_as_good_as_it_can_be),
    CASE("models", 300),
    ONCE(operators_are_those_of_their_definitions),
    ONCE(the_gcn_operator_of_a_symmetric_graph_is_symmetric_to_the_last_bit),
    ONCE(operators_of_impossible_graphs_are_refused),
    ON_DEVICES(a_graph_of_one_node_is_no_exception),
    ON_DEVICES(one_model_takes_blocks_of_any_shape_after_each_other),
    ON_DEVICES(dropout_ends_with_training),
    ON_DEVICES(what_is_aggregated_is_kept_until_another_block_comes),
    ON_DEVICES(maxk_of_all_columns_is_linear),
    ON_DEVICES(sixteen_bit_gathers_lose_what_rounding_takes),
    ON_DEVICES(features_are_multiplied_in_either_type),
    ON_DEVICES(hidden_numbers_are_finished_and_multiplied),
    ON_DEVICES(dense_tiles_set_apart_change_nothing_but_rounding),
    ONCE(symmetry_is_found_whatever_the_threads),
    ON_CUDA(a_full_batch_pass_can_be_recorded_and_replayed),
    ON_DEVICES(weights_start_within_their_bounds_and_biases_too),
    ONCE(every_allocation_may_fail_and_nothing_grows_after_the_first_pass),
    ON_DEVICES(impossible_models_are_refused_and_say_why),
    ON_DEVICES(passes_with_what_does_not_fit_are_refused),
    ON_DEVICES(blocks_with_more_rows_than_columns_are_refused),
    CASE("optimizers", 300),
    ON_DEVICES(an_optimizer_goes_on_from_the_state_of_another),
    ON_DEVICES(rate_and_decay_are_what_was_asked_for),
    ON_DEVICES(impossible_optimizers_are_refused_and_say_why),
    {0},
};

int main(void) { return test_run("gnn_model", tests); }
