/* C = alpha·A + beta·B on the CPU. Each row is merged in one pass, chunk by chunk as products are formed (rows.h).
 *
 * A step takes the smaller of two columns, or both if they are equal. The outcome cannot be predicted, so nothing
 * branches on it: an operand that is not taken adds -0, which changes no number. */
#include "core/rows.h"

typedef struct addition {
    double alpha, beta;
    const sp_csr *a, *b;
} addition;

/* One row: a from its entry p to a_end, b from q to b_end; the entries made. A pattern's values are one number, at
 * which all its entries look (a_all, b_all: 0, else -1). */
#define MERGE(type)                                                                                                  \
    static int64_t merge_##type(const addition *job, int64_t row, int32_t *restrict columns, type *restrict values)  \
    {                                                                                                                \
        static const type one = 1;                                                                                   \
        const int32_t *restrict a = job->a->col_indices, *restrict b = job->b->col_indices;                          \
        const type *restrict x = job->a->values, *restrict y = job->b->values;                                       \
        const int64_t a_all = x ? -1 : 0, b_all = y ? -1 : 0;                                                        \
        const int64_t a_end = job->a->row_offsets[row + 1], b_end = job->b->row_offsets[row + 1];                    \
        const double alpha = job->alpha, beta = job->beta;                                                           \
        int64_t p = job->a->row_offsets[row], q = job->b->row_offsets[row], made = 0;                                \
        if (!x) x = &one;                                                                                            \
        if (!y) y = &one;                                                                                            \
        while (p < a_end && q < b_end) {                                                                             \
            const int32_t i = a[p], j = b[q];                                                                        \
            const double terms[2][2] = {{-0.0, alpha * (double)x[p & a_all]}, {-0.0, beta * (double)y[q & b_all]}};  \
            const int of_a = i <= j, of_b = j <= i;                                                                  \
            columns[made] = i < j ? i : j;                                                                           \
            values[made++] = (type)(terms[0][of_a] + terms[1][of_b]);                                                \
            p += of_a;                                                                                               \
            q += of_b;                                                                                               \
        }                                                                                                            \
        for (; p < a_end; p++, made++) {                                                                             \
            columns[made] = a[p];                                                                                    \
            values[made] = (type)(alpha * (double)x[p & a_all]);                                                     \
        }                                                                                                            \
        for (; q < b_end; q++, made++) {                                                                             \
            columns[made] = b[q];                                                                                    \
            values[made] = (type)(beta * (double)y[q & b_all]);                                                      \
        }                                                                                                            \
        return made;                                                                                                 \
    }

MERGE(float)
MERGE(double)

static sp_status add_row(void *worker, int64_t row, int64_t entries, row_buffer *out)
{
    const addition *job = worker;
    const sp_status status = sp_row_buffer_reserve(out, entries);
    if (status != SP_OK) return status;
    int32_t *columns = out->columns + out->count;
    out->count += job->a->value_type == SP_F32 ? merge_float(job, row, columns, (float *)out->values + out->count)
                                               : merge_double(job, row, columns, (double *)out->values + out->count);
    return SP_OK;
}

sp_status sp_cpu_add(sp_context *context, double alpha, const sp_csr *a, double beta, const sp_csr *b, sp_csr *c)
{
    addition job = {alpha, beta, a, b};
    const row_method method = {.row = add_row, .workers = &job, /* of no size: one for all threads */
                               .threads = sp_threads_for(context, 3 * (a->nnz + b->nnz))};
    int64_t *entries;
    sp_status status = sp_calloc(context, a->rows + 1, sizeof *entries, (void **)&entries);
    if (status != SP_OK) return status;
    for (int64_t i = 1; i <= a->rows; i++)
        entries[i] = a->row_offsets[i] - a->row_offsets[i - 1] + b->row_offsets[i] - b->row_offsets[i - 1];
    status = sp_row_run(context, a->rows, a->cols, &entries, a->nnz + b->nnz, &method, a->value_type, c);
    sp_free(context, entries);
    return status;
}
