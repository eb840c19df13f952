/* What the rows of a matrix come to, on the CPU: their entries combined in order, and their order by length. */
#include <math.h>

#include "backend.h"
#include "coo.h"

static double reduce_row(const sp_csr *a, int64_t i, sp_combine combine)
{
    const int64_t begin = a->row_offsets[i], end = a->row_offsets[i + 1], count = end - begin;
    double result = 0;
    if (count == 0) return 0;
    switch (combine) {
    case SP_COMBINE_COUNT: return (double)count;
    case SP_COMBINE_FIRST: return sp_load_value(a->values, a->value_type, begin);
    case SP_COMBINE_MAX:
        result = -INFINITY;
        for (int64_t k = begin; k < end; k++) {
            const double value = sp_load_value(a->values, a->value_type, k);
            result = value > result ? value : result;
        }
        return result;
    case SP_COMBINE_MIN:
        result = INFINITY;
        for (int64_t k = begin; k < end; k++) {
            const double value = sp_load_value(a->values, a->value_type, k);
            result = value < result ? value : result;
        }
        return result;
    case SP_COMBINE_SUM:
    case SP_COMBINE_MEAN: break;
    }
    for (int64_t k = begin; k < end; k++) result += sp_load_value(a->values, a->value_type, k);
    return combine == SP_COMBINE_MEAN ? result / (double)count : result;
}

sp_status sp_cpu_reduce_rows(sp_context *context, const sp_csr *a, sp_combine combine, double *result)
{
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, a->nnz + a->rows))
    for (int64_t i = 0; i < a->rows; i++) result[i] = reduce_row(a, i, combine);
    return SP_OK;
}

sp_status sp_cpu_degree_order(sp_context *context, const sp_csr *a, int32_t *order)
{
    const int64_t *offsets = a->row_offsets;
    int64_t longest = 0, *place; /* of the next row of each length, the longest first */
    for (int64_t i = 0; i < a->rows; i++)
        if (offsets[i + 1] - offsets[i] > longest) longest = offsets[i + 1] - offsets[i];
    const sp_status status = sp_calloc(context, longest + 2, sizeof *place, (void **)&place);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < a->rows; i++) place[longest - (offsets[i + 1] - offsets[i]) + 1]++;
    for (int64_t l = 0; l < longest; l++) place[l + 1] += place[l];
    for (int64_t i = 0; i < a->rows; i++) order[place[longest - (offsets[i + 1] - offsets[i])]++] = (int32_t)i;
    sp_free(context, place);
    return SP_OK;
}
