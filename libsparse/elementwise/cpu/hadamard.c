/* C = A ∘ B on the CPU. Each row is merged in one pass, chunk by chunk as products are formed (rows.h).
 *
 * A step takes the smaller of two columns, or both if they are equal. The outcome cannot be predicted, so nothing
 * branches on it: every step writes, and the next step overwrites what was not a pair. */
#include "core/rows.h"

typedef struct hadamard {
    const sp_csr *a, *b;
} hadamard;

/* One row; the entries made. A pattern's values are one number, at which all its entries look (a_all, b_all: 0, else
 * -1); `values` is NULL where both are patterns. */
#define MERGE(type)                                                                                              \
    static int64_t merge_##type(const hadamard *job, int64_t row, int32_t *restrict columns,                     \
                                type *restrict values)                                                           \
    {                                                                                                            \
        static const type one = 1;                                                                               \
        const int32_t *restrict a = job->a->col_indices, *restrict b = job->b->col_indices;                      \
        const type *x = job->a->values, *y = job->b->values;                                                     \
        const int64_t a_all = x ? -1 : 0, b_all = y ? -1 : 0;                                                    \
        const int64_t a_end = job->a->row_offsets[row + 1], b_end = job->b->row_offsets[row + 1];                \
        int64_t p = job->a->row_offsets[row], q = job->b->row_offsets[row], made = 0;                            \
        if (!x) x = &one;                                                                                        \
        if (!y) y = &one;                                                                                        \
        while (p < a_end && q < b_end) {                                                                         \
            const int32_t i = a[p], j = b[q];                                                                    \
            columns[made] = i;                                                                                   \
            if (values) values[made] = x[p & a_all] * y[q & b_all];                                              \
            made += i == j;                                                                                      \
            p += i <= j;                                                                                         \
            q += j <= i;                                                                                         \
        }                                                                                                        \
        return made;                                                                                             \
    }

MERGE(float)
MERGE(double)

static sp_status multiply_row(void *worker, int64_t row, int64_t entries, row_buffer *out)
{
    const hadamard *job = worker;
    const int64_t *offsets = job->a->row_offsets;
    const sp_status status = sp_row_buffer_reserve(out, offsets[row + 1] - offsets[row]);
    (void)entries;
    if (status != SP_OK) return status;
    int32_t *columns = out->columns + out->count;
    void *values = out->value_size ? (char *)out->values + (size_t)out->count * out->value_size : NULL;
    out->count += job->a->value_type == SP_F32 ? merge_float(job, row, columns, values)
                                               : merge_double(job, row, columns, values);
    return SP_OK;
}

sp_status sp_cpu_hadamard(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c)
{
    hadamard job = {a, b};
    const row_method method = {.row = multiply_row, .workers = &job, /* of no size: one for all threads */
                               .threads = sp_threads_for(context, 3 * (a->nnz + b->nnz)), .room = a->row_offsets,
                               .pattern = !a->values && !b->values};
    int64_t *entries;
    sp_status status = sp_calloc(context, a->rows + 1, sizeof *entries, (void **)&entries);
    if (status != SP_OK) return status;
    for (int64_t i = 1; i <= a->rows; i++)
        entries[i] = a->row_offsets[i] - a->row_offsets[i - 1] + b->row_offsets[i] - b->row_offsets[i - 1];
    status = sp_row_run(context, a->rows, a->cols, &entries, a->nnz + b->nnz, &method, a->value_type, c);
    sp_free(context, entries);
    return status;
}
