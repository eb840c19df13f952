/* What the parts of test_gnn_model share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_model_shared.h"

/* All matrices of a forward pass come from here; it starts again with the next pass. */
static real arena[1 << 20];
size_t arena_used;

static mat zeros(int64_t rows, int64_t cols)
{
    mat m = {rows, cols, arena + arena_used};
    arena_used += (size_t)(rows * cols);
    test_expect(arena_used <= COUNT(arena), "the arena is too small");
    for (int64_t k = 0; k < rows * cols; k++) m.v[k] = 0;
    return m;
}

mat times(mat a, mat b)
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

/* Which side of its kinks a pass was on: a hash of all comparisons. */
static uint64_t sides;

static bool side(bool choice)
{
    sides = sides * 6364136223846793005u + (choice ? 3 : 1);
    return choice;
}

mat parameter(const example *e, int layer, const char *name)
{
    char full[32];
    if (layer < e->o.layers) snprintf(full, sizeof full, "layer%d.%s", layer + 1, name);
    else snprintf(full, sizeof full, "jump.%s", name);
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

mat largest(const example *e, int layer, mat p, int64_t k)
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

mat gather(const example *e, const sp_csr *a, mat p)
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

/* Whether a layer's output is not the logits. */
static bool is_hidden(const example *e, int layer)
{
    return layer + 1 < e->o.layers || e->o.jump != GNN_JUMP_NONE;
}

static mat convolution(const example *e, int layer, mat x)
{
    const sp_csr *a = &e->a[layer];
    const bool gin = e->o.layer == GNN_GIN;
    const int64_t k = is_hidden(e, layer) ? e->o.maxk : 0;
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
    const bool last = !is_hidden(e, layer);
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

mat features_of(const example *e)
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

/* The norm by its definition. */
static mat normalised(const example *e, int layer, mat z)
{
    const bool batch = e->o.norm == GNN_NORM_BATCH, running = batch && !e->training;
    const int64_t groups = batch ? z.cols : z.rows, members = batch ? z.rows : z.cols;
    if (e->o.norm == GNN_NORM_NONE) return z;
    const mat scale = parameter(e, layer, "norm_scale"), shift = parameter(e, layer, "norm_shift");
    mat y = zeros(z.rows, z.cols);
    for (int64_t g = 0; g < groups; g++) {
        real mean = 0, variance = 0;
        for (int64_t m = 0; m < members; m++) mean += z.v[batch ? m * z.cols + g : g * z.cols + m] / (real)members;
        for (int64_t m = 0; m < members; m++) {
            const real apart = z.v[batch ? m * z.cols + g : g * z.cols + m] - mean;
            variance += apart * apart / (real)members;
        }
        if (running) {
            mean = parameter(e, layer, "norm_mean").v[g];
            variance = parameter(e, layer, "norm_variance").v[g];
        }
        for (int64_t m = 0; m < members; m++) {
            const int64_t k = batch ? m * z.cols + g : g * z.cols + m, col = k % z.cols;
            y.v[k] = (z.v[k] - mean) / sqrtl(variance + 1e-5L) * scale.v[col] + shift.v[col];
        }
    }
    return y;
}

/* What is done to the output of a layer that gives no logits. */
static mat passed_on(const example *e, int layer, mat z)
{
    mat y = plus(normalised(e, layer, z), zeros(1, z.cols), true);
    for (int64_t k = 0; k < y.rows * y.cols && e->o.maxk == 0; k++) {
        if (e->o.layer == GNN_GAT) y.v[k] = side(y.v[k] > 0) ? y.v[k] : expm1l(y.v[k]);
        else y.v[k] = side(y.v[k] > 0) ? y.v[k] : 0;
        y.v[k] = dropped(e, e->o.dropout, (uint64_t)layer + 1, k, y.v[k]);
    }
    return y;
}

/* J of all outputs: the last, all beside each other, or the maximum. */
static mat jump_of(const example *e, const mat *h)
{
    const mat last = h[e->o.layers - 1];
    const int64_t parts = e->o.jump == GNN_JUMP_CAT ? e->o.layers : 1;
    mat j = zeros(last.rows, parts * last.cols);
    for (int64_t i = 0; i < last.rows; i++)
        for (int64_t c = 0; c < last.cols; c++) {
            real most = last.v[i * last.cols + c];
            for (int64_t l = 0; l < parts; l++) {
                const mat from = parts > 1 ? h[l] : last;
                j.v[i * j.cols + l * last.cols + c] = from.v[i * last.cols + c];
            }
            for (int l = e->o.layers - 2; l >= 0 && e->o.jump == GNN_JUMP_MAX; l--)
                if (side(h[l].v[i * last.cols + c] > most)) most = h[l].v[i * last.cols + c];
            if (e->o.jump == GNN_JUMP_MAX) j.v[i * j.cols + c] = most;
        }
    return j;
}

static mat formula(const example *e)
{
    arena_used = 0;
    sides = 1;
    mat x = features_of(e), h[MOST_LAYERS];
    for (int layer = 0; layer < e->o.layers; layer++) {
        mat y = e->o.layer == GNN_GAT ? attention(e, layer, x) : convolution(e, layer, x);
        if (is_hidden(e, layer)) y = passed_on(e, layer, y);
        if (is_hidden(e, layer) && e->o.residual && layer > 0) y = plus(y, x, false);
        h[layer] = x = y;
    }
    if (e->o.jump == GNN_JUMP_NONE) return x;
    return plus(times(jump_of(e, h), parameter(e, e->o.layers, "weight")), parameter(e, e->o.layers, "bias"), true);
}

sp_csr random_graph(sp_context *host, test_random *random, int64_t nodes, bool symmetric)
{
    double *numbers = test_zeros((size_t)(nodes * nodes), sizeof *numbers);
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

example draw_example(sp_context *host, uint64_t seed, gnn_layer layer, int layers, shape kind, int variant,
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
    e.x = test_block((size_t)(rows * e.o.inputs) * sizeof *e.x);
    for (int64_t k = 0; k < rows * e.o.inputs; k++) e.x[k] = (float)(2 * test_unit(&random) - 1);
    if (e.sparse)
        e.x_sparse = test_matrix(host, &random, rows, e.o.inputs, 0.5, type,
                                 variant == 2 ? TEST_PATTERN : TEST_SIGNED);
    return e;
}

void free_example(sp_context *host, example *e)
{
    for (int i = 0; i < MOST_LAYERS; i++) sp_csr_free(host, &e->a[i]);
    sp_csr_free(host, &e->x_sparse);
    free_all(e->x, e->weights);
}

void to_space(runner *r, void *to, const double *from, int64_t count)
{
    const bool single = gnn_model_shape(r->model)->type == SP_DENSE_F32;
    float *rounded = test_block((size_t)count * sizeof *rounded + 1);
    for (int64_t k = 0; k < count; k++) rounded[k] = (float)from[k];
    ck_ok(r->context, sp_array_copy(r->context, count, single ? 4 : 8, to, r->engine->space,
                                    single ? (const void *)rounded : from, SP_HOST));
    free(rounded);
}

void to_host(runner *r, double *to, const void *from, int64_t count)
{
    const bool single = gnn_model_shape(r->model)->type == SP_DENSE_F32;
    float *rounded = test_block((size_t)count * sizeof *rounded + 1);
    ck_ok(r->context, sp_array_copy(r->context, count, single ? 4 : 8, single ? (void *)rounded : to, SP_HOST, from,
                                    r->engine->space));
    for (int64_t k = 0; k < count && single; k++) to[k] = rounded[k];
    free(rounded);
}

void rows_to_host(runner *r, double *to, const sp_dense *from)
{
    const size_t size = from->type == SP_DENSE_F32 ? 4 : 8;
    for (int64_t i = 0; i < from->rows; i++)
        to_host(r, to + i * from->cols, (const char *)from->values + (size_t)(i * from->stride) * size, from->cols);
}

void make_features(runner *r, const example *e)
{
    const int64_t rows = e->a[0].cols, cols = e->o.inputs;
    if (e->sparse) {
        ck_ok(r->context, sp_csr_copy(r->context, &e->x_sparse, r->engine->space, &r->x.sparse));
        return;
    }
    ck_ok(r->context, sp_dense_create(r->context, rows, cols, e->o.type, r->engine->space, &r->x.dense));
    to_space(r, r->x.dense.values, e->x, rows * cols);
}

runner open_runner(int device)
{
    runner r = {.context = test_context(device, 2)};
    ck_ok(r.context, gnn_engine_create(r.context, SEED, &r.engine));
    return r;
}

void unload_runner(runner *r)
{
    for (int i = 0; i < GNN_MAX_LAYERS; i++) gnn_block_free(r->block[i]);
    gnn_model_free(r->model);
    sp_dense_free(r->context, &r->x.dense);
    sp_csr_free(r->context, &r->x.sparse);
    *r = (runner){.context = r->context, .engine = r->engine};
}

void free_runner(runner *r)
{
    unload_runner(r);
    gnn_engine_free(r->engine);
    sp_context_destroy(r->context);
}

void draw_weights(runner *r, example *e)
{
    test_random random = test_seed(e->seed + 1);
    const int64_t size = gnn_model_size(r->model);
    e->parameter = gnn_model_parameters(r->model, &e->parameters);
    free(e->weights);
    e->weights = test_block((size_t)size * sizeof *e->weights);
    for (int64_t k = 0; k < size; k++) e->weights[k] = (float)(2 * test_unit(&random) - 1);
    for (int i = 0; i < e->parameters; i++) {
        const gnn_parameter *p = &e->parameter[i];
        for (int64_t k = 0; k < p->cols && p->kind == GNN_RUNNING_VARIANCE; k++)
            e->weights[p->offset + k] = 0.1 + e->weights[p->offset + k] * e->weights[p->offset + k];
    }
    to_space(r, gnn_model_weights(r->model), e->weights, size);
}

void load_runner(runner *r, example *e)
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

runner make_runner(int device, example *e)
{
    runner r = open_runner(device);
    load_runner(&r, e);
    return r;
}

const char *describe(const example *e)
{
    static char text[200];
    snprintf(text, sizeof text, "layer %d, %d layers, %s %lld features, %lld hidden, %lld classes, %lld nodes, maxk"
             " %lld, norm %d, residual %d, jump %d, seed %llu", (int)e->o.layer, e->o.layers,
             e->sparse ? "sparse" : "dense", (long long)e->o.inputs, (long long)e->o.hidden, (long long)e->o.outputs,
             (long long)e->a[0].cols, (long long)e->o.maxk, (int)e->o.norm, e->o.residual, (int)e->o.jump,
             (unsigned long long)e->seed);
    return text;
}

static double tolerance(const example *e, double wide, double single)
{
    return e->o.type == SP_DENSE_F64 ? wide : single;
}

void compare_logits(runner *r, const example *e, const sp_dense *logits)
{
    const mat expected = formula(e);
    ck_assert_msg(logits->rows == expected.rows && logits->cols == expected.cols, "%s: shape", describe(e));
    double *found = test_block((size_t)(logits->rows * logits->cols + 1) * sizeof *found);
    rows_to_host(r, found, logits);
    for (int64_t k = 0; k < expected.rows * expected.cols; k++)
        test_expect(fabsl(found[k] - expected.v[k]) <= tolerance(e, 1e-11, 1e-5) * (1 + fabsl(expected.v[k])),
                    "%s: logit %lld is %.15g, not %.15Lg", describe(e), (long long)k, found[k], expected.v[k]);
    free(found);
}

void check_forward(runner *r, const example *e)
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

int64_t kinks, differences;

double difference(const example *e, const double *direction, int64_t k, uint64_t centre, double step)
{
    const double kept = e->weights[k];
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

/* Within 1e-6 of the differences, or of a hundredth of the parameter's largest one; those that are 0, within 1e-11.
 * Where a norm's nodes are nearly alike the gradient changes within the usual step: a shorter one decides then. */
static void check_parameter(const example *e, const gnn_parameter *p, const double *found, const double *direction)
{
    const int64_t count = p->rows * p->cols;
    for (int64_t k = 0; k < count && p->kind >= GNN_RUNNING_MEAN; k++)
        test_expect(found[p->offset + k] == 0, "%s: %s is learned", describe(e), p->name);
    if (p->kind >= GNN_RUNNING_MEAN) return;
    double *expected = malloc((size_t)count * sizeof *expected), largest_one = 0;
    ck_assert_ptr_nonnull(expected);
    scalar(e, direction);
    const uint64_t centre = sides;
    for (int64_t k = 0; k < count; k++) {
        expected[k] = difference(e, direction, p->offset + k, centre, 1e-5);
        if (fabs(expected[k]) > largest_one) largest_one = fabs(expected[k]);
    }
    const double least = tolerance(e, 0.01, 1) * largest_one;
    for (int64_t k = 0; k < count; k++) {
        const double own = found[p->offset + k], far = tolerance(e, 1e-6, 1e-4), zero = tolerance(e, 1e-11, 1e-6);
        const double allowed = far * fmax(fabs(expected[k]), least) + zero;
        if (isnan(expected[k]) || fabs(own - expected[k]) <= allowed) continue;
        const double nearer = difference(e, direction, p->offset + k, centre, 1e-8);
        test_expect(fabs(own - nearer) <= allowed, "%s: gradient %lld of %s is %.12g, not %.12g", describe(e),
                    (long long)k, p->name, own, nearer);
    }
    free(expected);
}

void compare_gradients(runner *r, const example *e, const double *direction)
{
    double *found = test_block((size_t)gnn_model_size(r->model) * sizeof *found);
    to_host(r, found, gnn_model_gradients(r->model), gnn_model_size(r->model));
    for (int i = 0; i < e->parameters; i++) check_parameter(e, &e->parameter[i], found, direction);
    free(found);
}

double *draw_direction(runner *r, const example *e, sp_dense *there)
{
    test_random random = test_seed(e->seed + 2);
    const int64_t rows = e->a[e->o.layers - 1].rows, count = rows * e->o.outputs;
    double *direction = test_block((size_t)(count + 1) * sizeof *direction);
    for (int64_t k = 0; k < count; k++) direction[k] = (float)(2 * test_unit(&random) - 1);
    ck_ok(r->context, sp_dense_create(r->context, rows, e->o.outputs, e->o.type, r->engine->space, there));
    to_space(r, there->values, direction, count);
    return direction;
}

void check_gradients(runner *r, const example *e)
{
    sp_dense gradient;
    double *direction = draw_direction(r, e, &gradient);
    ck_ok(r->context, gnn_model_backward(r->model, r->block, &r->x, &gradient));
    compare_gradients(r, e, direction);
    sp_dense_free(r->context, &gradient);
    free(direction);
}
