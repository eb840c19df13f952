/* Rows of up to 16 products in a register of 16 lanes: columns, each with the number of its product behind it, are
 * sorted by a network; then equal ones stand side by side, and their values are added in the order of the products.
 * Products of LISTED_ROWS rows are listed before the first row is sorted. What a register loads was stored in pieces
 * long before, and the ends of A's rows, which cannot be predicted, are not asked for. Without it roads and molecules
 * take 1.7 times as long, de Bruijn graphs 1.3 times (one thread of a Zen 5). */
#include "base/kernel.h"
#include "base/lanes.h"
#include "spgemm/cpu/kernels.h"

/* Columns leave the bits for a product's number free. */
enum { NUMBER_BITS = 4 };
/* As many products of a column are added without asking how many there are: roads have two to four, and each question
 * would wait for the sorted row. */
enum { UNASKED = 4 };

bool sp_fits_lanes(const row_product *job)
{
    const bool numbers = (job->kind & ~3) == 0 && job->a_select && job->b_select; /* plus-times */
    return (numbers || job->pattern) && !job->single && job->b->cols < (int64_t)1 << (32 - NUMBER_BITS) &&
           have_avx512() && !left_out("spgemm-lanes");
}

#if defined(__x86_64__)

/* Listing and summing share no registers: inlined into one loop they take 4 % longer. */
#define SEPARATE AVX512 static __attribute__((noinline))

/* Rows that are summed together. */
typedef struct batch {
    int64_t first, end;
    bool wide;    /* many have more than eight products */
    bool repeats; /* rows before them had equal columns */
} batch;

/* Four numbers of B, those in `lanes`; 0 in others. */
AVX512 KERNEL __m256d load_lanes(const void *values, int type, int64_t at, __mmask8 lanes)
{
    return type == F64 ? _mm256_maskz_loadu_pd(lanes, (const double *)values + at)
                       : _mm256_cvtps_pd(_mm_maskz_loadu_ps(lanes, (const float *)values + at));
}

/* Lists the products of A's entries k to end - 1, four at a time. */
SEPARATE void list_products(accumulator *w, int64_t k, int64_t end, int type)
{
    const row_product *job = w->job;
    const int32_t *rows = job->a->col_indices, *b_columns = job->b->col_indices;
    const int64_t *offsets = job->b->row_offsets;
    const void *a_values = job->a_values, *b_values = job->b_values;
    int32_t *columns = w->listed_columns;
    double *values = w->listed_values;
    for (; k < end; k++) {
        const int64_t start = offsets[rows[k]];
        const int length = (int)(offsets[rows[k] + 1] - start);
        const __m256d weight = _mm256_set1_pd(type == NO_VALUES ? 0 : load(a_values, type, k));
        int i = 0;
        prefetch_rows(job, k, type);
        do { /* nearly always once, also for a row without entries */
            const __mmask8 lanes = (__mmask8)(((1u << (length - i)) - 1) & 15);
            _mm_storeu_si128((__m128i *)(columns + i), _mm_maskz_loadu_epi32(lanes, b_columns + start + i));
            if (type != NO_VALUES)
                _mm256_storeu_pd(values + i, _mm256_mul_pd(weight, load_lanes(b_values, type, start + i, lanes)));
            i += 4;
        } while (i < length);
        columns += length;
        values += length;
    }
}

/* Writes eight sums. */
AVX512 KERNEL void store_eight(void *values, int type, int64_t to, __m512d sums)
{
    if (type == F64) _mm512_storeu_pd((double *)values + to, sums);
    else _mm256_storeu_ps((float *)values + to, _mm512_cvtpd_ps(sums));
}

/* The numbers that are one lane further; 0 follows on the last. */
AVX512 KERNEL __m512d one_further(__m512d low, __m512d high)
{
    return _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(high), _mm512_castpd_si512(low), 1));
}

/* Sums the values of equal keys, whose low bits say where their products are listed. Writes the sums of lanes `kept`,
 * the first of each equal ones; `repeated` are the other lanes that count. */
AVX512 KERNEL void sum_values(const double *products, __m512i keys, uint32_t kept, uint32_t repeated, int type,
                              bool wide, bool repeats, void *values, int64_t to)
{
    const __m512i from = _mm512_and_epi32(keys, _mm512_set1_epi32((1 << NUMBER_BITS) - 1));
    const __m512i from_low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(from));
    const __m512i from_high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(from, 1));
    const __m512d zero = _mm512_setzero_pd();
    const __m512d first = _mm512_loadu_pd(products), second = wide ? _mm512_loadu_pd(products + 8) : zero;
    __m512d low = _mm512_permutex2var_pd(first, from_low, second), next_low = low;
    __m512d high = wide ? _mm512_permutex2var_pd(first, from_high, second) : zero, next_high = high;
    uint32_t more = repeated >> 1; /* lanes that the product `distance` lanes further belongs to, too */
    for (int distance = 1; (repeats && distance < UNASKED) || more; more &= repeated >> ++distance) {
        next_low = one_further(next_low, next_high);
        low = _mm512_mask_add_pd(low, (__mmask8)more, low, next_low);
        if (!wide) continue;
        next_high = one_further(next_high, zero);
        high = _mm512_mask_add_pd(high, (__mmask8)(more >> 8), high, next_high);
    }
    store_eight(values, type, to, _mm512_maskz_compress_pd((__mmask8)kept, low));
    if (!wide) return;
    store_eight(values, type, to + __builtin_popcount(kept & 255),
                _mm512_maskz_compress_pd((__mmask8)(kept >> 8), high));
}

/* Sums `count` listed products, at most eight if not `wide`. Writes up to 16 entries and returns how many count. */
AVX512 KERNEL int sum_products(const int32_t *listed, const double *products, int count, int type, bool wide,
                               bool repeats, int32_t *columns, void *values, int64_t to)
{
    const __m512i numbers = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i last = _mm512_set1_epi32(-1);
    const __mmask16 valid = (__mmask16)((1u << count) - 1);
    const __m512i shifted = _mm512_slli_epi32(_mm512_loadu_si512(listed), NUMBER_BITS);
    const __m512i keys = sort_lanes(_mm512_mask_or_epi32(last, valid, shifted, numbers), wide);
    const __m512i sorted = _mm512_srli_epi32(keys, NUMBER_BITS), before = _mm512_alignr_epi32(sorted, last, 15);
    const __mmask16 kept = _mm512_mask_cmpneq_epi32_mask(valid, sorted, before);
    _mm512_storeu_si512(columns, _mm512_maskz_compress_epi32(kept, sorted));
    if (type != NO_VALUES)
        sum_values(products, keys, kept, valid & ~(uint32_t)kept, type, wide, repeats, values, to);
    return __builtin_popcount(kept);
}

/* The listed products of a row of A with one entry: nothing is to be sorted. */
AVX512 KERNEL void copy_products(const int32_t *listed, const double *products, int type, bool wide, int32_t *columns,
                                 void *values, int64_t to)
{
    _mm512_storeu_si512(columns, _mm512_loadu_si512(listed));
    if (type == NO_VALUES) return;
    store_eight(values, type, to, _mm512_loadu_pd(products));
    if (wide) store_eight(values, type, to + 8, _mm512_loadu_pd(products + 8));
}

/* Makes the rows of a batch, whose products are listed. */
SEPARATE void sum_batch(accumulator *w, const batch *rows, int64_t *counts, int type, row_buffer *out)
{
    const int64_t *offsets = w->job->a->row_offsets;
    const int32_t *listed = w->listed_columns;
    const double *products = w->listed_values;
    int64_t to = out->count, copied = 0, summed = 0;
    for (int64_t row = rows->first; row < rows->end; row++) {
        const int count = (int)counts[row];
        const bool wide = rows->wide || count > 8, repeats = rows->repeats;
        int32_t *columns = out->columns + to;
        if (count == 0) continue;
        if (offsets[row + 1] - offsets[row] == 1) {
            copy_products(listed, products, type, wide, columns, out->values, to);
            copied++;
        } else {
            counts[row] = wide ? sum_products(listed, products, count, type, true, repeats, columns, out->values, to)
                               : sum_products(listed, products, count, type, false, repeats, columns, out->values, to);
            summed++;
        }
        to += counts[row];
        listed += count;
        products += count;
    }
    w->rows[ROW_COPY] += copied;
    w->rows[ROW_SHORT] += summed;
    out->count = to;
}

AVX512 KERNEL sp_status make_batches(accumulator *w, int64_t *row, int64_t end, int64_t *counts, int type,
                                     row_buffer *out)
{
    const int64_t *offsets = w->job->a->row_offsets;
    sp_status status = SP_OK;
    batch rows = {.first = *row};
    for (; rows.first < end && counts[rows.first] <= SHORT_PRODUCTS; rows.first = rows.end) {
        int64_t products = 0, wide = 0;
        for (rows.end = rows.first; rows.end < end && rows.end < rows.first + LISTED_ROWS; rows.end++) {
            if (counts[rows.end] > SHORT_PRODUCTS) break;
            products += counts[rows.end];
            wide += counts[rows.end] > 8;
        }
        if (products == 0) continue;
        /* SHORT_PRODUCTS entries are written at a time. */
        status = sp_row_buffer_reserve(out, products + SHORT_PRODUCTS);
        if (status != SP_OK) break;
        const int64_t before = out->count;
        rows.wide = wide * 8 > rows.end - rows.first;
        list_products(w, offsets[rows.first], offsets[rows.end], type);
        sum_batch(w, &rows, counts, type, out);
        rows.repeats = out->count - before < products;
    }
    *row = rows.first;
    return status;
}

AVX512 static sp_status make_pattern(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out)
{
    return make_batches(w, row, end, counts, NO_VALUES, out);
}

AVX512 static sp_status make_f32(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out)
{
    return make_batches(w, row, end, counts, F32, out);
}

AVX512 static sp_status make_f64(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out)
{
    return make_batches(w, row, end, counts, F64, out);
}

sp_status sp_rows_lanes(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out)
{
    if (w->job->pattern) return make_pattern(w, row, end, counts, out);
    return (w->job->a->value_type == SP_F32 ? make_f32 : make_f64)(w, row, end, counts, out);
}

#else

sp_status sp_rows_lanes(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out)
{
    (void)w, (void)row, (void)end, (void)counts, (void)out;
    return SP_OK; /* sp_fits_lanes holds for no product */
}

#endif
