/* C = A·B on the CPU, row-wise (Gustavson 1978), sums in f64, sorted; entries that cancel to zero are kept.
 *
 * The accumulator is chosen a row by its products p against the columns N: a hash table of at least 2p slots for
 * p < N / 16, sorted afterwards (Nagasaka et al. 2018), else N sums with a byte a column that says "present". One
 * pass: a thread appends finished rows to its own buffer, so no symbolic phase is needed. O(products).
 */
#include <string.h>

#include "backend.h"
#include "rows.h"
#include "table.h"

enum { DENSE_SHARE = 16 };

/* One thread's scratch memory. */
typedef struct worker {
    const sp_csr *a, *b;
    double *sums;        /* dense: valid where `present` */
    uint8_t *present;    /* cols rounded up to 8, zero between rows */
    int32_t *keys;       /* hash, -1: empty */
    double *slots;
    uint64_t *sorted[2]; /* column << 32 | slot */
} worker;

static inline double value_at(const void *values, sp_value_type type, int64_t i)
{
    if (!values) return 1;
    return type == SP_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static inline void store(void *values, sp_value_type type, int64_t i, double value)
{
    if (type == SP_F32) ((float *)values)[i] = (float)value;
    else ((double *)values)[i] = value;
}

/* The two accumulators are compiled once a value type: `type` is a constant where they are called. */
static inline __attribute__((always_inline)) void row_dense(worker *w, int64_t row, sp_value_type type, row_buffer *out)
{
    const sp_csr *a = w->a, *b = w->b;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int32_t j = a->col_indices[k];
        const double weight = value_at(a->values, type, k);
        for (int64_t q = b->row_offsets[j]; q < b->row_offsets[j + 1]; q++) {
            const int32_t column = b->col_indices[q];
            const double product = weight * value_at(b->values, type, q);
            w->sums[column] = w->present[column] ? w->sums[column] + product : product;
            w->present[column] = 1;
        }
    }
    for (int64_t base = 0; base < b->cols; base += 8) {
        uint64_t eight;
        memcpy(&eight, w->present + base, sizeof eight);
        if (eight == 0) continue;
        for (int64_t column = base; column < base + 8; column++) {
            if (!w->present[column]) continue;
            out->columns[out->count] = (int32_t)column;
            store(out->values, type, out->count++, w->sums[column]);
        }
        memset(w->present + base, 0, sizeof eight);
    }
}

static inline __attribute__((always_inline)) void row_hashed(worker *w, int64_t row, int64_t products,
                                                             sp_value_type type, row_buffer *out)
{
    const sp_csr *a = w->a, *b = w->b;
    const int bits = table_bits(products);
    const uint32_t size = 1u << bits, mask = size - 1;
    memset(w->keys, 0xff, size * sizeof *w->keys);
    int64_t count = 0;
    uint64_t *list = w->sorted[0];
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int32_t j = a->col_indices[k];
        const double weight = value_at(a->values, type, k);
        for (int64_t q = b->row_offsets[j]; q < b->row_offsets[j + 1]; q++) {
            const int32_t column = b->col_indices[q];
            const double product = weight * value_at(b->values, type, q);
            uint32_t at = hash_column(column, bits);
            while (w->keys[at] != column && w->keys[at] != -1) at = (at + 1) & mask;
            if (w->keys[at] == -1) {
                w->keys[at] = column;
                w->slots[at] = product;
                list[count++] = pack_entry(column, at);
            } else {
                w->slots[at] += product;
            }
        }
    }
    list = sort_entries(list, w->sorted[1], count, b->cols);
    for (int64_t i = 0; i < count; i++) {
        out->columns[out->count] = (int32_t)(list[i] >> 32);
        store(out->values, type, out->count++, w->slots[(uint32_t)list[i]]);
    }
}

static sp_status spgemm_row(void *scratch, int64_t row, int64_t products, row_buffer *out)
{
    worker *w = scratch;
    const int64_t cols = w->b->cols;
    sp_status status = row_buffer_reserve(out, products < cols ? products : cols);
    if (status != SP_OK) return status;
    const bool hashed = products < cols / DENSE_SHARE;
    if (w->a->value_type == SP_F32) {
        if (hashed) row_hashed(w, row, products, SP_F32, out);
        else row_dense(w, row, SP_F32, out);
    } else {
        if (hashed) row_hashed(w, row, products, SP_F64, out);
        else row_dense(w, row, SP_F64, out);
    }
    return SP_OK;
}

static void close_workers(sp_context *context, worker *workers, int threads)
{
    for (int t = 0; workers && t < threads; t++) {
        worker *w = &workers[t];
        void *arrays[] = {w->sums, w->present, w->keys, w->slots, w->sorted[0], w->sorted[1]};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) sp_free(context, arrays[i]);
    }
    sp_free(context, workers);
}

/* Scratch for rows of at most `largest` products. */
static sp_status open_workers(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t largest, int threads,
                              worker **workers)
{
    const int64_t cols = b->cols, width = (cols + 7) / 8 * 8;
    const int64_t hashed = largest < cols / DENSE_SHARE ? largest : cols / DENSE_SHARE;
    const int64_t slots = (int64_t)1 << table_bits(hashed);
    sp_status status = sp_calloc(context, threads, sizeof **workers, (void **)workers);
    for (int t = 0; t < threads && status == SP_OK; t++) {
        worker *w = &(*workers)[t];
        w->a = a;
        w->b = b;
        if (largest >= cols / DENSE_SHARE) {
            SP_TRY(sp_alloc(context, width, sizeof(double), (void **)&w->sums));
            SP_TRY(sp_calloc(context, width, 1, (void **)&w->present));
        }
        SP_TRY(sp_alloc(context, slots, sizeof(int32_t), (void **)&w->keys));
        SP_TRY(sp_alloc(context, slots, sizeof(double), (void **)&w->slots));
        SP_TRY(sp_alloc(context, hashed, sizeof(uint64_t), (void **)&w->sorted[0]));
        SP_TRY(sp_alloc(context, hashed, sizeof(uint64_t), (void **)&w->sorted[1]));
    }
done:
    return status;
}

sp_status sp_cpu_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                        sp_csr *c, sp_spgemm_info *info)
{
    worker *workers = NULL;
    int64_t *products = NULL, largest;
    int threads = 0;
    sp_status status;
    const double start = sp_seconds();
    if (options->semiring != SP_PLUS_TIMES || options->mask)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "only plus-times without a mask");
    SP_TRY(row_products(context, a, b, &products, &info->products, &largest));
    threads = sp_threads_for(context, info->products);
    SP_TRY(open_workers(context, a, b, largest, threads, &workers));
    info->analysis_seconds = sp_seconds() - start;
    const row_method method = {spgemm_row, workers, sizeof *workers, threads, 0};
    SP_TRY(row_run(context, a->rows, b->cols, products, &method, a->value_type, c));
    info->product_nnz = info->nnz = c->nnz;
    info->batches = 1;
    info->numeric_seconds = sp_seconds() - start - info->analysis_seconds;
done:
    close_workers(context, workers, threads);
    sp_free(context, products);
    return status;
}

sp_status sp_cpu_spgemm_symbolic(sp_context *context, const sp_csr *a, const sp_csr *b,
                                 const sp_spgemm_options *options, sp_csr *pattern, void **state,
                                 sp_spgemm_info *info)
{
    *state = NULL;
    const sp_status status = sp_cpu_spgemm(context, a, b, options, pattern, info);
    if (status != SP_OK) return status;
    sp_free(context, pattern->values);
    pattern->values = NULL;
    return SP_OK;
}

sp_status sp_cpu_spgemm_numeric(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, void *state, sp_csr *c)
{
    sp_csr made;
    sp_spgemm_info info = {0};
    (void)state;
    const sp_status status = sp_cpu_spgemm(context, a, b, options, &made, &info);
    if (status != SP_OK) return status;
    memcpy(c->values, made.values, (size_t)made.nnz * sp_value_size(made.value_type));
    sp_csr_free(context, &made);
    return SP_OK;
}

void sp_cpu_spgemm_forget(sp_context *context, void *state) { sp_free(context, state); }
