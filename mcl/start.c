/* The start matrix: graph weights made stochastic by columns, each column with a loop as heavy as its heaviest arc.
 *
 * Columns of the stochastic matrix are rows of the stored one. The loop makes the process aperiodic; its weight
 * keeps the result independent of the scale of the weights (van Dongen 2000, section 5.3.1).
 */
#include <math.h>
#include <string.h>

#include "mcl.h"

static sp_status check_graph(sp_context *context, const sp_csr *graph, bool lenient)
{
    if (graph->space != SP_HOST || graph->value_type != SP_F32 || !graph->values || graph->rows != graph->cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the graph must be a square host matrix of f32 values");
    const float *values = graph->values;
    for (int64_t j = 0; j < graph->rows && !lenient; j++)
        for (int64_t k = graph->row_offsets[j]; k < graph->row_offsets[j + 1]; k++)
            if (values[k] < 0)
                return sp_fail(context, SP_ERROR_ARGUMENT,
                               "the arc between nodes %lld and %d has the negative weight %g; weights are similarities",
                               (long long)j, graph->col_indices[k], (double)values[k]);
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

/* Gives each column a loop as heavy as its heaviest other arc, or with `sums` as all of them, 1 where there is none. A
 * loop that a transform made goes. */
static sp_status add_loops(sp_context *context, const sp_csr *graph, bool sums, sp_csr *result)
{
    sp_status status =
        sp_csr_create(context, graph->rows, graph->cols, graph->nnz + graph->rows, SP_F32, SP_HOST, result);
    if (status != SP_OK) return status;
    const float *from = graph->values;
    float *to = result->values;
    int64_t nnz = 0;
    for (int64_t j = 0; j < graph->rows; j++) {
        const int64_t first = graph->row_offsets[j], end = graph->row_offsets[j + 1];
        bool any = false;
        double sum = 0;
        float heaviest = 0; /* negative in a column of negative weights, as with mcl */
        for (int64_t k = first; k < end; k++) {
            if (graph->col_indices[k] == j) continue;
            if (!any || from[k] > heaviest) heaviest = from[k];
            sum += (double)from[k];
            any = true;
        }
        const float loop = sums ? (float)sum : heaviest;
        result->row_offsets[j] = nnz;
        int64_t k = first;
        for (; k < end && graph->col_indices[k] < j; k++, nnz++) {
            result->col_indices[nnz] = graph->col_indices[k];
            to[nnz] = from[k];
        }
        result->col_indices[nnz] = (int32_t)j;
        to[nnz++] = loop != 0 ? loop : 1;
        if (k < end && graph->col_indices[k] == j) k++;
        for (; k < end; k++, nnz++) {
            result->col_indices[nnz] = graph->col_indices[k];
            to[nnz] = from[k];
        }
    }
    result->row_offsets[graph->rows] = result->nnz = nnz;
    return SP_OK;
}

static void scale_loops(sp_csr *matrix, double factor)
{
    float *values = matrix->values;
    for (int64_t j = 0; j < matrix->rows; j++)
        for (int64_t k = matrix->row_offsets[j]; k < matrix->row_offsets[j + 1]; k++)
            if (matrix->col_indices[k] == j) values[k] *= (float)factor; /* mcl multiplies in f32 */
}

sp_status mcl_prepared_graph(sp_context *context, const sp_csr *graph, const mcl_transform *transform,
                             const mcl_options *options, bool lenient, sp_csr *prepared)
{
    const bool loops = options->discard_loops || options->sum_loops;
    sp_csr work = {0}, made = {0};
    memset(prepared, 0, sizeof *prepared);
    sp_status status = check_graph(context, graph, lenient);
    if (status != SP_OK) return status;
    if (loops) status = drop_loops(context, graph, &work);
    else status = sp_csr_copy(context, graph, SP_HOST, &work);
    if (status == SP_OK && transform) status = mcl_transform_graph(context, transform, options, &work);
    if (status != SP_OK) goto done;
    if (options->degree_power != 0) adjust_to_degrees(&work, options->degree_power);
    if (loops) {
        status = add_loops(context, &work, options->sum_loops, &made);
        if (status != SP_OK) goto done;
        sp_csr_free(context, &work);
    } else {
        made = work;
        work = (sp_csr){0};
    }
    if (options->loop_factor != 1) scale_loops(&made, options->loop_factor);
    if (options->pre_inflation > 0) status = sp_csr_inflate(context, &made, options->pre_inflation);
done:
    sp_csr_free(context, &work);
    if (status == SP_OK) *prepared = made;
    else sp_csr_free(context, &made);
    return status;
}

sp_status mcl_start_matrix(sp_context *context, const sp_csr *graph, const mcl_transform *transform,
                           const mcl_options *options, bool lenient, sp_csr *start)
{
    sp_status status = mcl_prepared_graph(context, graph, transform, options, lenient, start);
    if (status == SP_OK) status = sp_csr_inflate(context, start, 1);
    if (status != SP_OK) sp_csr_free(context, start);
    return status;
}
