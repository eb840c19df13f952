/* Reductions of rows on the CPU: their entries combined in order, and the order of rows by length. */
#include <math.h>

#include "base/kernel.h"
#include "base/longest.h"
#include "core/backend_cpu.h"
#include "core/coo.h"

/* With the rule known when it is compiled: asked entry by entry, rows of 16 take twice as long. */
KERNEL double combine(const sp_csr *a, int64_t i, double result, sp_combine rule)
{
    for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++)
        result = sp_combine_values(result, load_value(a->values, a->value_type, k), rule);
    return result;
}

static double reduce_row(const sp_csr *a, int64_t i, sp_combine rule)
{
    const int64_t begin = a->row_offsets[i], count = a->row_offsets[i + 1] - begin;
    if (count == 0) return 0;
    switch (rule) {
    case SP_COMBINE_COUNT: return (double)count;
    case SP_COMBINE_FIRST: return load_value(a->values, a->value_type, begin);
    case SP_COMBINE_MAX: return combine(a, i, -INFINITY, SP_COMBINE_MAX);
    case SP_COMBINE_MIN: return combine(a, i, INFINITY, SP_COMBINE_MIN);
    case SP_COMBINE_MEAN: return combine(a, i, 0, SP_COMBINE_SUM) / (double)count;
    case SP_COMBINE_SUM: break;
    }
    return combine(a, i, 0, SP_COMBINE_SUM);
}

sp_status sp_cpu_reduce_rows(sp_context *context, const sp_csr *a, sp_combine rule, double *result)
{
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, a->nnz + a->rows))
    for (int64_t i = 0; i < a->rows; i++)
        if (!sp_stops(&watch)) result[i] = reduce_row(a, i, rule);
    return sp_watched(&watch);
}

sp_status sp_cpu_degree_order(sp_context *context, const sp_csr *a, int32_t *order)
{
    const int64_t *offsets = a->row_offsets;
    sp_watch watch = {context, false};
    const int64_t longest = longest_of(offsets, a->rows);
    int64_t *place; /* of the next row of each length, the longest first */
    const sp_status status = sp_calloc(context, longest + 2, sizeof *place, (void **)&place);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < a->rows; i++) place[longest - (offsets[i + 1] - offsets[i]) + 1]++;
    for (int64_t l = 0; l < longest; l++) place[l + 1] += place[l];
    for (int64_t i = 0; i < a->rows && !sp_stops_at(&watch, i); i++)
        order[place[longest - (offsets[i + 1] - offsets[i])]++] = (int32_t)i;
    sp_free(context, place);
    return sp_watched(&watch);
}
