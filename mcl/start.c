/* The start matrix: graph weights made stochastic by columns, each column with a loop as heavy as its heaviest arc.
 *
 * Columns of the stochastic matrix are rows of the stored one. The loop makes the process aperiodic; its weight
 * keeps the result independent of the scale of the weights (van Dongen 2000, section 5.3.1).
 */
#include <math.h>
#include <string.h>

#include "base/search.h"
#include "mcl.h"

/* Smaller graphs are copied before a second thread would have started. */
enum { PARALLEL_NNZ = 100000 };

static sp_status check_graph(sp_context *context, const sp_csr *graph, bool lenient, const char *remedy)
{
    if (graph->space != SP_HOST || graph->value_type != SP_F32 || !graph->values || graph->rows != graph->cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the graph must be a square host matrix of f32 values");
    const float *values = graph->values;
    for (int64_t j = 0; j < graph->rows && !lenient; j++)
        for (int64_t k = graph->row_offsets[j]; k < graph->row_offsets[j + 1]; k++)
            if (values[k] < 0)
                return sp_fail(context, SP_ERROR_ARGUMENT,
                               "the arc between nodes %lld and %d has the negative weight %g; weights are "
                               "similarities%s",
                               (long long)j, graph->col_indices[k], (double)values[k], remedy);
    return SP_OK;
}

/* The graph without its diagonal. */
static sp_status drop_loops(sp_context *context, const sp_csr *graph, sp_csr *result)
{
    sp_status status = sp_csr_create(context, graph->rows, graph->cols, graph->nnz, SP_F32, SP_HOST, result);
    if (status != SP_OK) return status;
    const float *from = graph->values;
    float *to = result->values;
    int64_t nnz = 0;
    for (int64_t j = 0; j < graph->rows; j++) {
        result->row_offsets[j] = nnz;
        for (int64_t k = graph->row_offsets[j]; k < graph->row_offsets[j + 1]; k++) {
            if (graph->col_indices[k] == j) continue;
            result->col_indices[nnz] = graph->col_indices[k];
            to[nnz++] = from[k];
        }
    }
    result->row_offsets[graph->rows] = result->nnz = nnz;
    return SP_OK;
}

/* Divides each weight by a power of the sum of the degrees of its two nodes. */
static void adjust_to_degrees(sp_csr *graph, double power)
{
    const int64_t *offsets = graph->row_offsets;
    float *values = graph->values;
    for (int64_t j = 0; j < graph->rows; j++)
        for (int64_t k = offsets[j]; k < offsets[j + 1]; k++) {
            const int32_t i = graph->col_indices[k];
            const int64_t degrees = offsets[j + 1] - offsets[j] + offsets[i + 1] - offsets[i];
            values[k] = (float)((double)values[k] / pow((double)degrees, power));
        }
}

/* Where in row j column j is, or would be. */
static int64_t loop_place(const sp_csr *graph, int64_t j)
{
    return lower_bound_i32(graph->col_indices, graph->row_offsets[j], graph->row_offsets[j + 1], (int32_t)j);
}

static inline bool has_loop(const sp_csr *graph, int64_t j, int64_t place)
{
    return place < graph->row_offsets[j + 1] && graph->col_indices[place] == j;
}

/* The weight of column j's loop: its heaviest other arc, or with `sums` all of them; 1 if it has no other arc. */
static float loop_weight(const sp_csr *graph, int64_t j, bool sums)
{
    const float *values = graph->values;
    bool any = false;
    double sum = 0;
    float heaviest = 0; /* negative in a column of negative weights, as with mcl */
    for (int64_t k = graph->row_offsets[j]; k < graph->row_offsets[j + 1]; k++) {
        if (graph->col_indices[k] == j) continue;
        if (!any || values[k] > heaviest) heaviest = values[k];
        sum += (double)values[k];
        any = true;
    }
    const float loop = sums ? (float)sum : heaviest;
    return loop != 0 ? loop : 1;
}

/* Gives each column a loop by loop_weight, in place of the one that it may have. */
static sp_status set_loops(sp_context *context, const sp_csr *graph, bool sums, sp_csr *result)
{
    sp_status status =
        sp_csr_create(context, graph->rows, graph->cols, graph->nnz + graph->rows, SP_F32, SP_HOST, result);
    if (status != SP_OK) return status;
    const float *from = graph->values;
    float *to = result->values;
    int64_t *offsets = result->row_offsets;
    offsets[0] = 0;
    for (int64_t j = 0; j < graph->rows; j++)
        offsets[j + 1] = offsets[j] + graph->row_offsets[j + 1] - graph->row_offsets[j] +
                         !has_loop(graph, j, loop_place(graph, j));
    result->nnz = offsets[graph->rows];
    const int threads = graph->nnz < PARALLEL_NNZ ? 1 : sp_context_threads(context);
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t j = 0; j < graph->rows; j++) {
        const int64_t first = graph->row_offsets[j], place = loop_place(graph, j), before = place - first;
        const int64_t rest = place + has_loop(graph, j, place), after = graph->row_offsets[j + 1] - rest;
        int32_t *columns = result->col_indices + offsets[j];
        float *values = to + offsets[j];
        memcpy(columns, graph->col_indices + first, (size_t)before * sizeof *columns);
        memcpy(values, from + first, (size_t)before * sizeof *values);
        columns[before] = (int32_t)j;
        values[before] = loop_weight(graph, j, sums);
        memcpy(columns + before + 1, graph->col_indices + rest, (size_t)after * sizeof *columns);
        memcpy(values + before + 1, from + rest, (size_t)after * sizeof *values);
    }
    return SP_OK;
}

/* Loops and pre-inflation can take weights beyond f32, and what is infinite has no share of its column. */
static sp_status check_finite(sp_context *context, const sp_csr *matrix)
{
    const float *values = matrix->values;
    for (int64_t j = 0; j < matrix->rows; j++)
        for (int64_t k = matrix->row_offsets[j]; k < matrix->row_offsets[j + 1]; k++)
            if (!isfinite(values[k]))
                return sp_fail(context, SP_ERROR_NOT_FINITE,
                               "the weights of node %lld are too large for what is asked of loops, -dae or -pi; "
                               "divide all weights by the same number, as -tf 'mul(1e-20)' does",
                               (long long)j);
    return SP_OK;
}

static void scale_loops(sp_csr *matrix, double factor)
{
    float *values = matrix->values;
    for (int64_t j = 0; j < matrix->rows; j++)
        for (int64_t k = matrix->row_offsets[j]; k < matrix->row_offsets[j + 1]; k++)
            if (matrix->col_indices[k] == j) values[k] *= (float)factor; /* mcl multiplies in f32 */
}

static bool has_vanished(const sp_csr *matrix, int64_t j)
{
    const float *values = matrix->values;
    int64_t k = matrix->row_offsets[j];
    while (k < matrix->row_offsets[j + 1] && values[k] == 0) k++;
    return k == matrix->row_offsets[j + 1];
}

void mcl_drop_vanished(sp_csr *matrix)
{
    float *values = matrix->values;
    int64_t j = 0;
    while (j < matrix->rows && (matrix->row_offsets[j] == matrix->row_offsets[j + 1] || !has_vanished(matrix, j))) j++;
    if (j == matrix->rows) return;
    int64_t nnz = matrix->row_offsets[j], begin = nnz;
    for (; j < matrix->rows; j++) {
        const int64_t end = matrix->row_offsets[j + 1], kept = has_vanished(matrix, j) ? 0 : end - begin;
        memmove(matrix->col_indices + nnz, matrix->col_indices + begin, (size_t)kept * sizeof *matrix->col_indices);
        memmove(values + nnz, values + begin, (size_t)kept * sizeof *values);
        matrix->row_offsets[j] = nnz;
        nnz += kept;
        begin = end;
    }
    matrix->row_offsets[j] = matrix->nnz = nnz;
}

sp_status mcl_prepared_graph(sp_context *context, const sp_csr *graph, const mcl_transform *transform,
                             const mcl_options *options, bool lenient, sp_csr *prepared)
{
    sp_csr work = {0}, made = {0};
    const sp_csr *source = graph;
    sp_status status = sp_require_csr(context, __func__, "graph", graph);
    if (status == SP_OK) status = sp_require(context, __func__, "options", options);
    if (status == SP_OK) status = sp_require_output(context, __func__, "prepared", prepared, "graph", graph);
    if (status == SP_OK) status = check_graph(context, graph, lenient || transform, "");
    if (status != SP_OK) return status;
    const bool loops = options->discard_loops || options->sum_loops;
    if (!loops || transform || options->degree_power != 0) {
        source = &work;
        if (options->discard_loops) status = drop_loops(context, graph, &work);
        else status = sp_csr_copy(context, graph, SP_HOST, &work);
        if (status == SP_OK && transform) status = mcl_transform_graph(context, transform, options, &work);
        if (status == SP_OK && transform)
            status = check_graph(context, &work, lenient, ": end the transforms with gt(0) to drop such arcs");
        if (status != SP_OK) goto done;
        if (options->degree_power != 0) adjust_to_degrees(&work, options->degree_power);
    }
    if (loops) {
        status = set_loops(context, source, options->sum_loops, &made);
        if (status != SP_OK) goto done;
    } else {
        made = work;
        work = (sp_csr){0};
    }
    if (options->loop_factor != 1) scale_loops(&made, options->loop_factor);
    if (options->pre_inflation > 0) {
        status = sp_csr_inflate(context, &made, options->pre_inflation);
        if (status == SP_OK) mcl_drop_vanished(&made);
    }
    const bool grown = options->sum_loops || options->loop_factor > 1 || options->pre_inflation > 1 ||
                       options->degree_power < 0;
    if (status == SP_OK && grown) status = check_finite(context, &made);
done:
    sp_csr_free(context, &work);
    if (status == SP_OK) *prepared = made;
    else sp_csr_free(context, &made);
    return status;
}

sp_status mcl_start_matrix(sp_context *context, const sp_csr *graph, const mcl_transform *transform,
                           const mcl_options *options, bool lenient, sp_csr *start)
{
    sp_csr made = {0};
    sp_status status = sp_require_output(context, __func__, "start", start, "graph", graph);
    if (status == SP_OK) status = mcl_prepared_graph(context, graph, transform, options, lenient, &made);
    if (status == SP_OK) status = sp_csr_inflate(context, &made, 1);
    if (status == SP_OK) *start = made;
    else sp_csr_free(context, &made);
    return status;
}
