/* What the parts of test_gnn_dense share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_dense_shared.h"

subject make_subject(int device, sp_dense_type type, int layout, int threads)
{
    static const int64_t padding[LAYOUTS] = {0, 3, 4, 0}, offset[LAYOUTS] = {0, 0, 0, 1};
    subject s = {.context = test_context(device, threads), .type = type};
    ck_ok(s.context, gnn_engine_create(s.context, 17, &s.engine));
    s.back = s.engine->backend;
    s.padding = padding[layout];
    s.offset = offset[layout];
    s.tolerance = type == SP_DENSE_F32 ? 2e-5 : 1e-12;
    s.random = test_seed(SEED + (uint64_t)layout);
    snprintf(s.name, sizeof s.name, "%s, %s, layout %d, seed %d", sp_context_device(s.context),
             type == SP_DENSE_F32 ? "f32" : "f64", layout, SEED + layout);
    return s;
}

void free_subject(subject *s)
{
    gnn_engine_free(s->engine);
    sp_context_destroy(s->context);
}

int layout_step(void) { return test_is_brief() ? LAYOUTS - 1 : 1; }

void on_subjects(int device, void (*body)(subject *))
{
    for (int layout = 0; layout < LAYOUTS; layout += layout_step())
        for (int type = 0; type < 2; type++) {
            subject s = make_subject(device, type ? SP_DENSE_F64 : SP_DENSE_F32, layout, 0);
            body(&s);
            free_subject(&s);
        }
}

static size_t size_of(const subject *s) { return s->type == SP_DENSE_F32 ? 4 : 8; }

double *numbers(int64_t count)
{
    double *made = test_zeros((size_t)count + 1, sizeof *made);
    return made;
}

double *random_numbers(subject *s, int64_t count)
{
    double *made = numbers(count);
    for (int64_t k = 0; k < count; k++) {
        made[k] = 2 * test_unit(&s->random) - 1;
        if (s->type == SP_DENSE_F32) made[k] = (double)(float)made[k];
    }
    return made;
}

void *put(const subject *s, int64_t count, size_t size, const void *from)
{
    void *array;
    ck_ok(s->context, sp_array_create(s->context, count, size, s->engine->space, &array));
    ck_ok(s->context, sp_array_copy(s->context, count, size, array, s->engine->space, from, SP_HOST));
    return array;
}

void take(const subject *s, int64_t count, size_t size, const void *array, void *to)
{
    ck_ok(s->context, s->back->wait(s->engine));
    ck_ok(s->context, sp_array_copy(s->context, count, size, to, SP_HOST, array, s->engine->space));
}

void drop_array(const subject *s, void *array) { sp_array_free(s->context, s->engine->space, array); }

void *put_numbers(const subject *s, int64_t count, const double *from)
{
    char *host = test_block((size_t)count * 8 + 8);
    for (int64_t k = 0; k < count; k++)
        if (s->type == SP_DENSE_F32) ((float *)(void *)host)[k] = (float)from[k];
        else ((double *)(void *)host)[k] = from[k];
    void *array = put(s, count, size_of(s), host);
    free(host);
    return array;
}

double *take_numbers(const subject *s, int64_t count, const void *array)
{
    double *made = numbers(count);
    take(s, count, size_of(s), array, made);
    if (s->type == SP_DENSE_F32)
        for (int64_t k = count - 1; k >= 0; k--) {
            float one;
            memcpy(&one, (const char *)made + 4 * k, sizeof one);
            made[k] = (double)one;
        }
    return made;
}

static const double UNTOUCHED = 12345;

sp_dense put_matrix(const subject *s, int64_t rows, int64_t cols, const double *from)
{
    const int64_t stride = cols + s->padding, count = s->offset + rows * stride;
    double *all = numbers(count);
    for (int64_t k = 0; k < count; k++) all[k] = UNTOUCHED;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) all[s->offset + i * stride + j] = from[i * cols + j];
    char *array = put_numbers(s, count, all);
    free(all);
    return (sp_dense){.rows = rows, .cols = cols, .stride = stride,
                      .values = array + (size_t)s->offset * size_of(s), .type = s->type,
                      .space = s->engine->space};
}

sp_dense new_matrix(const subject *s, int64_t rows, int64_t cols)
{
    double *none = numbers(rows * cols);
    for (int64_t k = 0; k < rows * cols; k++) none[k] = NAN;
    const sp_dense made = put_matrix(s, rows, cols, none);
    free(none);
    return made;
}

double *take_matrix(const subject *s, sp_dense *matrix)
{
    const int64_t count = s->offset + matrix->rows * matrix->stride;
    char *array = (char *)matrix->values - (size_t)s->offset * size_of(s);
    double *all = take_numbers(s, count, array), *made = numbers(matrix->rows * matrix->cols);
    for (int64_t k = 0; k < count; k++) {
        const int64_t place = k - s->offset, stride = matrix->stride > 0 ? matrix->stride : 1;
        const int64_t i = place / stride, j = place % stride;
        if (place >= 0 && j < matrix->cols) made[i * matrix->cols + j] = all[k];
        else
            test_expect(all[k] == UNTOUCHED, "%s: number %lld outside the matrix is %g", s->name, (long long)k,
                        all[k]);
    }
    free(all);
    drop_array(s, array);
    return made;
}

void end_matrix(const subject *s, sp_dense *matrix) { free(take_matrix(s, matrix)); }

void expect_close(const subject *s, int64_t count, const double *is, const double *wanted, double tolerance,
                  const char *what)
{
    for (int64_t k = 0; k < count; k++)
        test_expect(fabs(is[k] - wanted[k]) <= tolerance * (1 + fabs(wanted[k])),
                    "%s: %s: number %lld is %.17g, not %.17g", s->name, what, (long long)k, is[k], wanted[k]);
}

double kept(const subject *s, double rate, uint64_t site, int64_t index)
{
    return (double)gnn_unit(gnn_random(s->engine->seed, s->engine->step, site, index)) < rate ? 0 : 1 / (1 - rate);
}

loss_case make_loss_case(subject *s, int64_t rows, int64_t cols, bool picked, double scale)
{
    loss_case c = {.nodes = picked ? 2 * rows + 3 : rows, .rows = rows, .cols = cols, .scale = scale};
    c.logits = random_numbers(s, rows * cols);
    for (int64_t k = 0; k < rows * cols; k++) c.logits[k] *= scale;
    c.node = picked ? calloc((size_t)rows + 1, sizeof *c.node) : NULL;
    c.label = calloc((size_t)c.nodes + 1, sizeof *c.label);
    c.target = calloc((size_t)(c.nodes * cols) + 1, 1);
    c.split = calloc((size_t)c.nodes + 1, 1);
    ck_assert(c.label && c.target && c.split && (!picked || c.node));
    for (int64_t i = 0; i < c.nodes; i++) {
        c.split[i] = (uint8_t)test_below(&s->random, GNN_SPLITS);
        c.label[i] = c.split[i] == GNN_UNUSED ? -1 : (int32_t)test_below(&s->random, cols);
        for (int64_t j = 0; j < cols; j++) c.target[i * cols + j] = (uint8_t)test_below(&s->random, 2);
    }
    for (int64_t i = 0; picked && i < rows; i++) c.node[i] = (int32_t)test_below(&s->random, c.nodes);
    return c;
}

void free_loss_case(loss_case *c) { free_all(c->logits, c->node, c->label, c->target, c->split); }
