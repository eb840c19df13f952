/* Transforms of a graph's weights and arcs: the lists of mcl's -tf and -abc-tf, "gq(0.5),mul(10),#knn(20)".
 *
 * A value operation maps one weight to one weight. As in mcl, arguments and every intermediate weight are f32,
 * consecutive value operations run on one arc at a time, a filter (lt lq gq gt) that leaves 0 ends the run, and arcs
 * whose weight is 0 at its end are dropped. A graph operation ("#...") sees the whole graph.
 * Rows of the graph are mcl's columns: entry (j, i) is the arc written "i" in column j of a native matrix.
 */
#include <float.h>
#include <math.h>

#include "base/random.h"
#include "transform.h"

enum { PARALLEL_ARCS = 50000 }; /* below, waking threads costs more than they save */

int transform_threads(const sp_context *context, const sp_csr *graph)
{
    return graph->nnz < PARALLEL_ARCS ? 1 : sp_context_threads(context);
}

/* ---- values --------------------------------------------------------------------------------------------- */

/* 0 has no logarithm: mcl gives it the largest finite one; negative weights become 0. */
static float logarithm(float value, float base, double sign)
{
    if (value < 0) return 0;
    if (value == 0) return sign > 0 ? -FLT_MAX : FLT_MAX;
    double natural = sign * log((double)value);
    return (float)(base > 0 ? natural / log((double)base) : natural);
}

static float apply(const tf_operation *operation, float v)
{
    float x = operation->number;
    switch (operation->definition->kind) {
    case LT: return v < x ? v : 0;
    case LQ: return v <= x ? v : 0;
    case GQ: return v >= x ? v : 0;
    case GT: return v > x ? v : 0;
    case CEIL: return v > x ? x : v;
    case FLOOR: return v < x ? x : v;
    case MUL: return v * x;
    case ADD: return v + x;
    case POW: return (float)pow((double)v, (double)x);
    case EXP: return (float)(x > 0 ? pow((double)x, (double)v) : exp((double)v));
    case LOG: return logarithm(v, x, 1);
    case NEGLOG: return logarithm(v, x, -1);
    case SCALE: return x != 0 ? v / x : 0;
    case ABS: return fabsf(v);
    case ACOS: return v <= 1 ? (float)acos(fmax(-1, (double)v)) : 0; /* π below -1, 0 above 1, as in mcl */
    default: return v;
    }
}

/* Uniform in [0, 1) from the arc and the place of the operation in the list (SplitMix64): mcl draws other
 * numbers in each run; here the same input gives the same output with any number of threads. */
static double random_of(int64_t row, int64_t column, int64_t place)
{
    const uint64_t arc = (uint64_t)row * RANDOM_STEP + (uint64_t)column * 0xd1b54a32d192ed03u + (uint64_t)place;
    return unit64(mix64(mix64(arc + RANDOM_STEP) + RANDOM_STEP));
}

/* Operations [first, last) of the list, all on values, on the weight of one arc. */
static float apply_run(const mcl_transform *transform, int64_t first, int64_t last, float v, int64_t row,
                       int64_t column)
{
    for (int64_t k = first; k < last; k++) {
        const tf_operation *operation = &transform->operations[k];
        tf_kind kind = operation->definition->kind;
        if (kind == RAND)
            v = random_of(row, column, k) < (double)operation->number ? v : 0;
        else
            v = apply(operation, v);
        if (v == 0 && is_filter(kind)) return 0;
    }
    return v;
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

void transform_drop_zeros(sp_csr *graph)
{
    float *values = graph->values;
    int64_t kept = 0, begin = 0;
    for (int64_t j = 0; j < graph->rows; j++) {
        int64_t end = graph->row_offsets[j + 1];
        for (int64_t e = begin; e < end; e++) {
            if (values[e] == 0) continue;
            graph->col_indices[kept] = graph->col_indices[e];
            values[kept++] = values[e];
        }
        begin = end;
        graph->row_offsets[j + 1] = kept;
    }
    graph->nnz = kept;
}

sp_status transform_check_finite(sp_context *context, const sp_csr *graph, const char *name)
{
    const float *values = graph->values;
    bool finite = true;
#pragma omp parallel for reduction(&& : finite) num_threads(transform_threads(context, graph))
    for (int64_t e = 0; e < graph->nnz; e++) finite = finite && isfinite(values[e]);
    if (finite) return SP_OK;
    return sp_fail(context, SP_ERROR_NOT_FINITE, "transform %s makes weights infinite or undefined", name);
}

static sp_status transform_values(sp_context *context, const mcl_transform *transform, int64_t first, int64_t last,
                                  sp_csr *graph)
{
    float *values = graph->values;
#pragma omp parallel for schedule(dynamic, 256) num_threads(transform_threads(context, graph))
    for (int64_t j = 0; j < graph->rows; j++)
        for (int64_t e = graph->row_offsets[j]; e < graph->row_offsets[j + 1]; e++)
            values[e] = apply_run(transform, first, last, values[e], j, graph->col_indices[e]);
    transform_drop_zeros(graph);
    return transform_check_finite(context, graph, transform->operations[last - 1].definition->name);
}

/* ---- the public functions ------------------------------------------------------------------------------- */

double mcl_transform_value(const mcl_transform *transform, double weight)
{
    float v = (float)weight;
    for (int64_t k = 0; transform && k < transform->count; k++) {
        const tf_operation *operation = &transform->operations[k];
        v = apply(operation, v);
        if (v == 0 && is_filter(operation->definition->kind)) return 0;
    }
    return (double)v;
}

bool mcl_transform_is_local(const mcl_transform *transform)
{
    for (int64_t k = 0; transform && k < transform->count; k++) {
        const tf_kind kind = transform->operations[k].definition->kind;
        if (!is_value(kind) && kind != SELFRM && kind != SELFMAX && kind != THREAD) return false;
    }
    return true;
}

/* On failure *graph holds whatever the operations before the failed one made, and is still the caller's to free. */
sp_status mcl_transform_graph(sp_context *context, const mcl_transform *transform, const mcl_options *options,
                              sp_csr *graph)
{
    sp_status status = sp_require(context, __func__, "transform", transform);
    if (status == SP_OK) status = sp_require_csr(context, __func__, "graph", graph);
    if (status != SP_OK) return status;
    if (graph->rows != graph->cols || graph->space != SP_HOST || graph->value_type != SP_F32 || !graph->values)
        return sp_fail(context, SP_ERROR_ARGUMENT, "transforms need a square host matrix of f32");
    if (transform->count) transform_drop_zeros(graph);
    for (int64_t k = 0; k < transform->count && status == SP_OK;) {
        int64_t first = k;
        while (k < transform->count && is_value(transform->operations[k].definition->kind)) k++;
        if (k > first)
            status = transform_values(context, transform, first, k, graph);
        else
            status = transform_arcs(context, &transform->operations[k++], options, graph);
    }
    return status;
}
