/* C = epilogue(A·B): the Markov product on the CPU; see sp_markov_epilogue in sparse.h for the epilogue.
 *
 * Each row is summed in f64 in an accumulator chosen by its products p against the columns N:
 *   hash   p < N / 16   a table of at least 2p slots, its entries sorted afterwards;
 *   dense  otherwise    N sums; the scan that collects them reads cache lines of eight sums and skips empty ones.
 * Then the row is pruned, inflated and normalised where it lies and appended to the output. Sums run over A's row in
 * ascending column order and, within a row, over ascending columns: the order in which mcl adds, so that results
 * agree to the last bit. A product costs one load of B's column and value and one read-modify-write of a sum.
 */
#include <math.h>
#include <string.h>

#include "backend.h"
#include "rows.h"
#include "table.h"

enum { DENSE_SHARE = 16 };

typedef struct markov {
    const sp_csr *a, *b;
    const sp_markov_epilogue *epilogue;
    sp_markov_row *rows; /* may be NULL */
} markov;

/* One thread's scratch memory. */
typedef struct markov_worker {
    const markov *job;
    double *sums;         /* dense accumulator: cols, rounded up to cache lines, all zero between rows */
    int32_t *keys;        /* hash accumulator, -1: empty */
    double *slots;
    uint64_t *sorted[2];  /* entries of a hash row as column << 32 | value */
    int32_t *columns;     /* the collected row */
    float *values, *scratch;
    int64_t expanded, dense_rows;
} markov_worker;

/* ---- accumulation -------------------------------------------------------------------------------------- */

/* sums += row i of A·B. mcl's dense path multiplies in f32, its sparse path in f64; both add in f64. */
static void accumulate_dense(const markov *job, int64_t row, bool f32_products, double *restrict sums)
{
    const sp_csr *a = job->a, *b = job->b;
    const float *a_values = a->values, *b_values = b->values;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int32_t j = a->col_indices[k];
        const float weight = a_values[k];
        const int64_t end = b->row_offsets[j + 1];
        if (f32_products)
            for (int64_t q = b->row_offsets[j]; q < end; q++) sums[b->col_indices[q]] += (double)(weight * b_values[q]);
        else
            for (int64_t q = b->row_offsets[j]; q < end; q++)
                sums[b->col_indices[q]] += (double)weight * (double)b_values[q];
    }
}

typedef uint64_t __attribute__((may_alias)) sum_bits;

/* Collects the nonzero sums in ascending column order, rounded to f32, and clears them. */
static int64_t collect_dense(double *sums, int64_t cols, int32_t *restrict columns, float *restrict values)
{
    int64_t count = 0;
    for (int64_t line = 0; line < cols; line += 8) {
        double *s = sums + line;
        const sum_bits *u = (const sum_bits *)s;
        if ((u[0] | u[1] | u[2] | u[3] | u[4] | u[5] | u[6] | u[7]) == 0) continue;
        for (int i = 0; i < 8; i++) {
            columns[count] = (int32_t)(line + i);
            values[count] = (float)s[i];
            count += s[i] != 0;
            s[i] = 0;
        }
    }
    return count;
}

/* Sums row i of A·B in the hash table, collects it sorted. */
static int64_t collect_hashed(markov_worker *w, int64_t row, int64_t products, bool f32_products)
{
    const sp_csr *a = w->job->a, *b = w->job->b;
    const float *a_values = a->values, *b_values = b->values;
    const int bits = table_bits(products);
    const uint32_t size = 1u << bits, mask = size - 1;
    int32_t *keys = w->keys;
    double *slots = w->slots;
    memset(keys, 0xff, size * sizeof *keys);
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int32_t j = a->col_indices[k];
        const float weight = a_values[k];
        for (int64_t q = b->row_offsets[j]; q < b->row_offsets[j + 1]; q++) {
            const int32_t column = b->col_indices[q];
            const double product = f32_products ? (double)(weight * b_values[q]) : (double)weight * (double)b_values[q];
            uint32_t at = hash_column(column, bits);
            while (keys[at] != column && keys[at] != -1) at = (at + 1) & mask;
            if (keys[at] == -1) {
                keys[at] = column;
                slots[at] = product;
            } else {
                slots[at] += product;
            }
        }
    }
    int64_t count = 0;
    uint64_t *list = w->sorted[0];
    for (uint32_t at = 0; at < size; at++)
        if (keys[at] != -1 && slots[at] != 0) list[count++] = pack_entry(keys[at], float_bits((float)slots[at]));
    list = sort_entries(list, w->sorted[1], count, b->cols);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t value = (uint32_t)list[i];
        w->columns[i] = (int32_t)(list[i] >> 32);
        memcpy(&w->values[i], &value, sizeof value);
    }
    return count;
}

/* ---- pruning ------------------------------------------------------------------------------------------- */

/* The nth largest (from 1) of values, which are reordered; values are distinct or not, finite. */
static float nth_largest(float *values, int64_t count, int64_t nth)
{
    int64_t low = 0, high = count - 1, target = nth - 1;
    while (low < high) {
        float a = values[low], b = values[low + (high - low) / 2], c = values[high];
        float pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] > pivot) i++;
            while (values[j] < pivot) j--;
            if (i > j) break;
            float swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        if (target <= j) high = j;
        else if (target >= i) low = i;
        else return values[target];
    }
    return values[target];
}

/* The nth largest of those values v with low <= v < high. */
static float nth_largest_between(markov_worker *w, int64_t count, double low, double high, int64_t nth)
{
    int64_t chosen = 0;
    for (int64_t i = 0; i < count; i++)
        if ((double)w->values[i] >= low && (double)w->values[i] < high) w->scratch[chosen++] = w->values[i];
    return nth_largest(w->scratch, chosen, nth);
}

typedef struct kept {
    int64_t count;
    double mass;
} kept;

static kept keep_above(const float *values, int64_t count, double bar)
{
    kept k = {0, 0};
    for (int64_t i = 0; i < count; i++)
        if ((double)values[i] >= bar) {
            k.count++;
            k.mass += (double)values[i];
        }
    return k;
}

/* The value that an entry needs to stay. */
static double pruning_bar(markov_worker *w, int64_t count)
{
    const sp_markov_epilogue *e = w->job->epilogue;
    double bar = e->cutoff;
    kept k = keep_above(w->values, count, bar);
    if (k.count < e->recover && k.mass < e->recover_mass) {
        if (count <= e->recover) return 0;
        return (double)nth_largest_between(w, count, 0, bar, e->recover - k.count);
    }
    if (e->select == 0 || k.count <= e->select) return bar;
    double selected = (double)nth_largest_between(w, count, bar, INFINITY, e->select);
    kept s = keep_above(w->values, count, selected);
    if (s.count >= e->recover || s.mass >= e->recover_mass) return selected;
    if (k.count <= e->recover) return bar;
    return (double)nth_largest_between(w, count, bar, selected, e->recover - s.count);
}

static double sum_of_squares(const float *values, int64_t count)
{
    double lanes[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int l = 0; l < 4; l++) lanes[l] += (double)values[i + l] * (double)values[i + l];
    for (; i < count; i++) lanes[0] += (double)values[i] * (double)values[i];
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

/* ---- inflation ----------------------------------------------------------------------------------------- */

/* values := values^power / Σ. The square of an f32 is exact in f64, so that pow() would give no other bits. */
static void inflate(float *values, int64_t count, double power)
{
    double sum = 0;
    if (power == 2)
        for (int64_t i = 0; i < count; i++) values[i] = (float)((double)values[i] * (double)values[i]);
    else if (power != 1)
        for (int64_t i = 0; i < count; i++) values[i] = (float)pow((double)values[i], power);
    for (int64_t i = 0; i < count; i++) sum += (double)values[i];
    if (sum > 0)
        for (int64_t i = 0; i < count; i++) values[i] = (float)((double)values[i] / sum);
}

/* ---- a row --------------------------------------------------------------------------------------------- */

static sp_status markov_row(void *worker, int64_t row, int64_t products, row_buffer *out)
{
    markov_worker *w = worker;
    const markov *job = w->job;
    const sp_markov_epilogue *e = job->epilogue;
    const int64_t cols = job->b->cols;
    const bool f32_products = e->dense_factor > 0 && products >= (cols + e->dense_factor - 1) / e->dense_factor;
    int64_t count;
    if (products < cols / DENSE_SHARE) {
        count = collect_hashed(w, row, products, f32_products);
    } else {
        accumulate_dense(job, row, f32_products, w->sums);
        count = collect_dense(w->sums, cols, w->columns, w->values);
    }
    w->expanded += count;
    w->dense_rows += f32_products;

    float largest = 0;
    for (int64_t i = 0; i < count; i++) largest = w->values[i] > largest ? w->values[i] : largest;
    const double centre = sum_of_squares(w->values, count);
    const double bar = pruning_bar(w, count);
    sp_status status = row_buffer_reserve(out, count + 1);
    if (status != SP_OK) return status;
    int32_t *columns = out->columns + out->count;
    float *values = (float *)out->values + out->count;
    int64_t left = 0;
    double mass = 0;
    for (int64_t i = 0; i < count; i++) {
        if ((double)w->values[i] < bar) continue;
        columns[left] = w->columns[i];
        values[left++] = w->values[i];
        mass += (double)w->values[i];
    }
    if (left == 0 && e->recover == 0 && row < cols) {
        columns[0] = (int32_t)row;
        values[left++] = 1;
        mass = 1;
    }
    if (mass > 0)
        for (int64_t i = 0; i < left; i++) values[i] = (float)((double)values[i] / mass);
    inflate(values, left, e->inflation);
    out->count += left;

    if (job->rows) {
        const int64_t first = job->a->row_offsets[row];
        const double before = sum_of_squares((const float *)job->a->values + first, job->a->row_offsets[row + 1] - first);
        const double after = sum_of_squares(values, left);
        job->rows[row] = (sp_markov_row){.chaos = (float)(((double)largest - centre) * (double)left),
                                         .homogeneity = after > 0 ? (float)(before / after) : 0,
                                         .kept_mass = (float)mass,
                                         .expanded = (int32_t)count};
    }
    return SP_OK;
}

/* ---- the product --------------------------------------------------------------------------------------- */

static void close_workers(sp_context *context, markov_worker *workers, int threads)
{
    for (int t = 0; workers && t < threads; t++) {
        markov_worker *w = &workers[t];
        void *arrays[] = {w->sums, w->keys, w->slots, w->sorted[0], w->sorted[1], w->columns, w->values, w->scratch};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) sp_free(context, arrays[i]);
    }
    sp_free(context, workers);
}

/* Scratch for rows of at most `largest` products. */
static sp_status open_workers(sp_context *context, const markov *job, int64_t largest, int threads,
                              markov_worker **workers)
{
    const int64_t cols = job->b->cols, width = (cols + 7) / 8 * 8;
    const int64_t hashed = largest < cols / DENSE_SHARE ? largest : cols / DENSE_SHARE;
    const int64_t longest = largest < cols ? largest : cols;
    const int64_t slots = (int64_t)1 << table_bits(hashed);
    sp_status status = sp_calloc(context, threads, sizeof **workers, (void **)workers);
    for (int t = 0; t < threads && status == SP_OK; t++) {
        markov_worker *w = &(*workers)[t];
        w->job = job;
        if (largest >= cols / DENSE_SHARE) SP_TRY(sp_calloc(context, width, sizeof(double), (void **)&w->sums));
        SP_TRY(sp_alloc(context, slots, sizeof(int32_t), (void **)&w->keys));
        SP_TRY(sp_alloc(context, slots, sizeof(double), (void **)&w->slots));
        SP_TRY(sp_alloc(context, hashed, sizeof(uint64_t), (void **)&w->sorted[0]));
        SP_TRY(sp_alloc(context, hashed, sizeof(uint64_t), (void **)&w->sorted[1]));
        /* collect_dense writes one entry beyond the last that it keeps, up to a line of eight. */
        SP_TRY(sp_alloc(context, longest + 8, sizeof(int32_t), (void **)&w->columns));
        SP_TRY(sp_alloc(context, longest + 8, sizeof(float), (void **)&w->values));
        SP_TRY(sp_alloc(context, longest, sizeof(float), (void **)&w->scratch));
    }
done:
    return status;
}

sp_status sp_cpu_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                               const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info)
{
    const markov job = {a, b, epilogue, rows};
    markov_worker *workers = NULL;
    int64_t *products = NULL, largest;
    int threads = 0;
    sp_status status;
    const double start = sp_seconds();
    SP_TRY(row_products(context, a, b, &products, &info->products, &largest));
    threads = row_threads(context, info->products);
    SP_TRY(open_workers(context, &job, largest, threads, &workers));
    info->analysis_seconds = sp_seconds() - start;
    const int64_t most = epilogue->select > epilogue->recover ? epilogue->select : epilogue->recover;
    const row_method method = {markov_row, workers, sizeof *workers, threads, most};
    SP_TRY(row_run(context, a->rows, b->cols, products, &method, SP_F32, c));
    for (int t = 0; t < threads; t++) {
        info->product_nnz += workers[t].expanded;
        info->dense_rows += workers[t].dense_rows;
    }
    info->nnz = c->nnz;
    info->batches = 1;
    info->numeric_seconds = sp_seconds() - start - info->analysis_seconds;
done:
    close_workers(context, workers, threads);
    sp_free(context, products);
    return status;
}
