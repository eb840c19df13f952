/* Rows of A with one entry: the row of B, scaled. */
#include "spgemm/cpu/kernels.h"

/* Values of a row whose only entry of A is k. */
void sp_values_copy(const row_product *job, int64_t k, void *values, int64_t to)
{
    const int32_t j = job->a->col_indices[k];
    const int64_t from = job->b->row_offsets[j], count = job->b->row_offsets[j + 1] - from;
#define COPY(op, type, filtered) \
    if (type != NO_VALUES) copy_values(job, k, from, count, op, type, values, to)
    EACH_KIND(job->kind, COPY)
#undef COPY
}

void sp_row_copy(accumulator *w, int64_t row, int64_t count, row_buffer *out)
{
    const row_product *job = w->job;
    const int64_t k = job->a->row_offsets[row];
    memcpy(out->columns + out->count, job->b->col_indices + job->b->row_offsets[job->a->col_indices[k]],
           (size_t)count * sizeof(int32_t));
    sp_values_copy(job, k, out->values, out->count);
    out->count += count;
}
