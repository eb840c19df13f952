/* Sums and sparse rows by lines of eight columns; see lines.h. */
#include <string.h>

#include "base/kernel.h"
#include "markov/cpu/lines.h"
#include "markov/cpu/spread.h"

#if defined(__x86_64__)
/* Eight lanes a mask: the place of the lane's value among the packed ones, or -128 for an absent lane. */
#define PLACE(m, i) (char)((m) >> (i) & 1 ? __builtin_popcount((m) & ((1u << (i)) - 1)) : -128)
#define PLACES(m) \
    {PLACE(m, 0), PLACE(m, 1), PLACE(m, 2), PLACE(m, 3), PLACE(m, 4), PLACE(m, 5), PLACE(m, 6), PLACE(m, 7)}
#define PLACES4(m) PLACES(m), PLACES(m + 1u), PLACES(m + 2u), PLACES(m + 3u)
#define PLACES16(m) PLACES4(m), PLACES4(m + 4u), PLACES4(m + 8u), PLACES4(m + 12u)
#define PLACES64(m) PLACES16(m), PLACES16(m + 16u), PLACES16(m + 32u), PLACES16(m + 48u)
const char sp_spread_places[256][LINE_COLUMNS] = {PLACES64(0u), PLACES64(64u), PLACES64(128u), PLACES64(192u)};
#endif

/* ---- the index ----------------------------------------------------------------------------------------- */

/* Lines of a row; writes them where `lines` is not NULL. */
static int64_t row_lines(const sp_csr *b, int64_t row, uint32_t *lines)
{
    int64_t count = 0;
    int32_t group = -1;
    uint32_t mask = 0;
    for (int64_t k = b->row_offsets[row]; k < b->row_offsets[row + 1]; k++) {
        const int32_t column = b->col_indices[k];
        if (column / LINE_COLUMNS != group) {
            if (lines && group >= 0) lines[count - 1] = (uint32_t)group << 8 | mask;
            group = column / LINE_COLUMNS;
            mask = 0;
            count++;
        }
        mask |= 1u << column % LINE_COLUMNS;
    }
    if (lines && group >= 0) lines[count - 1] = (uint32_t)group << 8 | mask;
    return count;
}

sp_status sp_line_index_count(sp_context *context, const sp_csr *b, line_index *index)
{
    *index = (line_index){0};
    /* 24 bits hold a group's number up to 2^27 columns. */
    if (!have_avx2() || b->cols > (int64_t)LINE_COLUMNS << 24) return SP_OK;
    sp_status status = sp_alloc(context, b->rows + 1, sizeof *index->offsets, (void **)&index->offsets);
    if (status != SP_OK) return status;
    int64_t *offsets = index->offsets;
    sp_watch watch = {context, false};
    offsets[0] = 0;
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, b->nnz))
    for (int64_t i = 0; i < b->rows; i++)
        if (!sp_stops(&watch)) offsets[i + 1] = row_lines(b, i, NULL);
    TRY(sp_watched(&watch));
    for (int64_t i = 0; i < b->rows; i++) offsets[i + 1] += offsets[i];
done:
    if (status != SP_OK) sp_line_index_free(context, index);
    return status;
}

sp_status sp_line_index_fill(sp_context *context, const sp_csr *b, line_index *index)
{
    const int64_t *offsets = index->offsets;
    sp_watch watch = {context, false};
    sp_status status = sp_alloc(context, offsets[b->rows], sizeof *index->lines, (void **)&index->lines);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, b->nnz))
    for (int64_t i = 0; i < b->rows; i++)
        if (!sp_stops(&watch)) row_lines(b, i, index->lines + offsets[i]);
    return sp_watched(&watch);
}

void sp_line_index_free(sp_context *context, line_index *index)
{
    FREE_ALL(context, index->offsets, index->lines);
    *index = (line_index){0};
}

/* ---- the sums ------------------------------------------------------------------------------------------ */

sp_status sp_line_sums_create(sp_context *context, int64_t cols, line_sums *sums)
{
    *sums = (line_sums){.lines = (cols + LINE_COLUMNS - 1) / LINE_COLUMNS};
    sp_status status = sp_calloc(context, sums->lines + 1, LINE_COLUMNS * sizeof(double), &sums->block);
    if (status == SP_OK) sums->sums = (double *)(((uintptr_t)sums->block + 63) / 64 * 64);
    if (status == SP_OK) status = sp_calloc(context, sums->lines + 8, 1, (void **)&sums->touched);
    if (status == SP_OK) status = sp_alloc(context, sums->lines + 1, sizeof *sums->ids, (void **)&sums->ids);
    return status;
}

void sp_line_sums_free(sp_context *context, line_sums *sums)
{
    FREE_ALL(context, sums->block, sums->touched, sums->ids);
    *sums = (line_sums){0};
}

static void list_touched(line_sums *sums)
{
    int64_t count = 0;
    for (int64_t base = 0; base < sums->lines; base += 8) {
        uint64_t eight;
        memcpy(&eight, sums->touched + base, sizeof eight);
        if (eight == 0) continue;
        for (int64_t line = base; line < base + 8; line++) {
            sums->ids[count] = (int32_t)line;
            count += sums->touched[line];
        }
        memset(sums->touched + base, 0, sizeof eight);
    }
    sums->id_count = count;
}

int64_t sp_line_below(const line_sums *sums, float bar, float *values)
{
    int64_t count = 0;
    for (int64_t l = 0; l < sums->id_count; l++) {
        const double *s = sums->sums + (int64_t)sums->ids[l] * LINE_COLUMNS;
        for (int i = 0; i < LINE_COLUMNS; i++)
            if (s[i] != 0 && (float)s[i] < bar) values[count++] = (float)s[i];
    }
    return count;
}

void sp_line_clear(line_sums *sums)
{
    for (int64_t l = 0; l < sums->id_count; l++)
        memset(sums->sums + (int64_t)sums->ids[l] * LINE_COLUMNS, 0, LINE_COLUMNS * sizeof(double));
    sums->id_count = 0;
}

void sp_line_touch_all(line_sums *sums)
{
    memset(sums->touched, 1, (size_t)sums->lines);
}

/* Its cost is its instructions, hence a loop for each case. */
KERNEL void add_entries(line_sums *sums, const sp_csr *b, int64_t row, float weight, bool f32_products, bool mark)
{
    const float *restrict values = b->values;
    const int32_t *restrict columns = b->col_indices;
    double *restrict all = sums->sums;
    uint8_t *restrict touched = sums->touched;
    const int64_t end = b->row_offsets[row + 1];
    for (int64_t k = b->row_offsets[row]; k < end; k++) {
        const uint32_t column = (uint32_t)columns[k];
        if (mark) touched[column / LINE_COLUMNS] = 1;
        all[column] += f32_products ? (double)(weight * values[k]) : (double)weight * (double)values[k];
    }
}

void sp_line_add_entries(line_sums *sums, const sp_csr *b, int64_t row, float weight, bool f32_products, bool mark)
{
    if (mark) {
        if (f32_products) add_entries(sums, b, row, weight, true, true);
        else add_entries(sums, b, row, weight, false, true);
    } else {
        if (f32_products) add_entries(sums, b, row, weight, true, false);
        else add_entries(sums, b, row, weight, false, false);
    }
}

static int64_t scan_plain(const line_sums *sums, float cutoff, int32_t *columns, float *values, row_figures *figures)
{
    int64_t kept = 0, count = 0;
    float largest = 0;
    double squares = 0;
    for (int64_t l = 0; l < sums->id_count; l++) {
        const double *s = sums->sums + (int64_t)sums->ids[l] * LINE_COLUMNS;
        for (int i = 0; i < LINE_COLUMNS; i++) {
            const float value = (float)s[i];
            if (s[i] == 0) continue;
            count++;
            largest = value > largest ? value : largest;
            squares += (double)value * (double)value;
            if (value < cutoff) continue;
            columns[kept] = sums->ids[l] * LINE_COLUMNS + i;
            values[kept++] = value;
        }
    }
    *figures = (row_figures){count, largest, squares};
    return kept;
}

#if defined(__x86_64__)

AVX2 static inline void add_line(double *s, __m256 value, __m256 weight, __m256d wide_weight, bool f32_products)
{
    __m256d low, high;
    if (f32_products) {
        const __m256 product = _mm256_mul_ps(weight, value);
        low = _mm256_cvtps_pd(_mm256_castps256_ps128(product));
        high = _mm256_cvtps_pd(_mm256_extractf128_ps(product, 1));
    } else {
        low = _mm256_mul_pd(wide_weight, _mm256_cvtps_pd(_mm256_castps256_ps128(value)));
        high = _mm256_mul_pd(wide_weight, _mm256_cvtps_pd(_mm256_extractf128_ps(value, 1)));
    }
    _mm256_store_pd(s, _mm256_add_pd(_mm256_load_pd(s), low));
    _mm256_store_pd(s + 4, _mm256_add_pd(_mm256_load_pd(s + 4), high));
}

/* A row whose values are followed by at least seven more, so that each line may be read as eight. */
AVX2 KERNEL void add_lines(const line_sums *sums, const uint32_t *lines, const uint32_t *end, const float *packed,
                           float weight, bool f32_products)
{
    const __m256 weights = _mm256_set1_ps(weight);
    const __m256d wide_weights = _mm256_set1_pd((double)weight);
    double *const all = sums->sums;
    uint8_t *const touched = sums->touched;
    for (; lines < end; lines++) {
        const uint32_t group = *lines >> 8, mask = *lines & 255;
        add_line(all + (size_t)group * LINE_COLUMNS, spread(packed, mask), weights, wide_weights, f32_products);
        touched[group] = 1;
        packed += _mm_popcnt_u32(mask);
    }
}

AVX2 static void add_row_avx2(line_sums *sums, const sp_csr *b, const line_index *index, int64_t row, float weight,
                              bool f32_products)
{
    const uint32_t *lines = index->lines + index->offsets[row], *end = index->lines + index->offsets[row + 1];
    const float *packed = (const float *)b->values + b->row_offsets[row];
    if (f32_products) add_lines(sums, lines, end, packed, weight, true);
    else add_lines(sums, lines, end, packed, weight, false);
}

AVX2 static int64_t scan_avx2(const line_sums *sums, float cutoff, int32_t *columns, float *values,
                              row_figures *figures)
{
    const __m256d zero = _mm256_setzero_pd();
    const __m256 bar = _mm256_set1_ps(cutoff);
    __m256 top = _mm256_setzero_ps();
    __m256d squares_low = zero, squares_high = zero;
    int64_t kept = 0, count = 0;
    for (int64_t l = 0; l < sums->id_count; l++) {
        const double *s = sums->sums + (int64_t)sums->ids[l] * LINE_COLUMNS;
        const __m256d low = _mm256_load_pd(s), high = _mm256_load_pd(s + 4);
        const __m128 low_f = _mm256_cvtpd_ps(low), high_f = _mm256_cvtpd_ps(high);
        const __m256 value = _mm256_set_m128(high_f, low_f);
        const __m256d low_d = _mm256_cvtps_pd(low_f), high_d = _mm256_cvtps_pd(high_f);
        count += _mm_popcnt_u32((unsigned)(_mm256_movemask_pd(_mm256_cmp_pd(low, zero, _CMP_NEQ_UQ)) |
                                           _mm256_movemask_pd(_mm256_cmp_pd(high, zero, _CMP_NEQ_UQ)) << 4));
        top = _mm256_max_ps(top, value);
        squares_low = _mm256_add_pd(squares_low, _mm256_mul_pd(low_d, low_d));
        squares_high = _mm256_add_pd(squares_high, _mm256_mul_pd(high_d, high_d));
        unsigned above = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(value, bar, _CMP_GE_OQ));
        for (; above; above &= above - 1) {
            const int i = __builtin_ctz(above);
            if (s[i] == 0) continue; /* without a cutoff absent entries pass the comparison */
            columns[kept] = sums->ids[l] * LINE_COLUMNS + i;
            values[kept++] = (float)s[i];
        }
    }
    float tops[LINE_COLUMNS], largest = 0;
    double lanes[4];
    _mm256_storeu_ps(tops, top);
    _mm256_storeu_pd(lanes, _mm256_add_pd(squares_low, squares_high));
    for (int i = 0; i < LINE_COLUMNS; i++) largest = tops[i] > largest ? tops[i] : largest;
    *figures = (row_figures){count, largest, (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])};
    return kept;
}

#endif

void sp_line_add(line_sums *sums, const sp_csr *b, const line_index *index, int64_t row, float weight,
                 bool f32_products)
{
#if defined(__x86_64__)
    if (b->row_offsets[row + 1] + LINE_COLUMNS <= b->nnz) {
        add_row_avx2(sums, b, index, row, weight, f32_products);
        return;
    }
#else
    (void)index;
#endif
    sp_line_add_entries(sums, b, row, weight, f32_products, true);
}

static int64_t scan(const line_sums *sums, float bar, int32_t *columns, float *values, row_figures *figures)
{
#if defined(__x86_64__)
    if (have_avx2()) return scan_avx2(sums, bar, columns, values, figures);
#endif
    return scan_plain(sums, bar, columns, values, figures);
}

int64_t sp_line_scan(line_sums *sums, float cutoff, int32_t *columns, float *values, row_figures *figures)
{
    list_touched(sums);
    return scan(sums, cutoff, columns, values, figures);
}

int64_t sp_line_above(const line_sums *sums, float bar, int32_t *columns, float *values)
{
    row_figures figures;
    return scan(sums, bar, columns, values, &figures);
}
