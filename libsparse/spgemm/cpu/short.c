/* Up to 16 products: the place of each column is the number of smaller ones, counted without a branch. */
#include "base/kernel.h"
#include "base/vectors.h"
#include "spgemm/cpu/kernels.h"

KERNEL void put_short(accumulator *w, int op, int type, int32_t column, double value)
{
    (void)op;
    w->short_columns[w->listed] = column;
    if (type != NO_VALUES) w->short_values[w->listed] = value;
    w->listed++;
}

/* Sums the listed products by the number of smaller columns: places of equal columns agree, the places after them
 * stay empty. */
KERNEL int64_t take_short(accumulator *w, int op, int type, int32_t *columns, void *values, int64_t to)
{
    const int count = (int)w->listed;
    int32_t place[SHORT_PRODUCTS], sorted[SHORT_PRODUCTS];
    double sums[SHORT_PRODUCTS];
    uint32_t taken = 0;
    for (int i = 0; i < SHORT_PRODUCTS; i++) place[i] = 0;
    for (int j = 0; j < count; j++) {
        const int32_t column = w->short_columns[j];
        for (int i = 0; i < SHORT_PRODUCTS; i++) place[i] += w->short_columns[i] > column;
    }
    if (type != NO_VALUES)
        for (int i = 0; i < SHORT_PRODUCTS; i++) sums[i] = identity(op);
    for (int i = 0; i < count; i++) {
        sorted[place[i]] = w->short_columns[i];
        if (type != NO_VALUES) sums[place[i]] = add(op, sums[place[i]], w->short_values[i]);
        taken |= 1u << place[i];
    }
    int64_t made = 0;
    for (; taken; taken &= taken - 1, made++) {
        const int i = __builtin_ctz(taken);
        columns[made] = sorted[i];
        if (type != NO_VALUES) store(values, type, to + made, sums[i]);
    }
    return made;
}

#ifdef __x86_64__
typedef int32_t eight __attribute__((vector_size(32)));

/* The bits of the places of eight columns. */
KERNEL uint32_t place_bits(const eight *places)
{
    const eight one = {1, 1, 1, 1, 1, 1, 1, 1}, bits = one << *places;
    uint64_t pairs[4];
    memcpy(pairs, &bits, sizeof bits);
    const uint64_t pair = pairs[0] | pairs[1] | pairs[2] | pairs[3];
    return (uint32_t)(pair | pair >> 32);
}

/* The same with eight columns a register, for rows without a mask: what passes a mask is little, and takes longer so. A
 * product's place in C is the number of taken places below its own, so that nothing is moved twice, and only the length
 * of the list is branched on. */
KERNEL int64_t take_short_avx2(accumulator *w, int op, int type, int32_t *columns, void *values, int64_t to)
{
    const int count = (int)w->listed;
    int32_t *listed = w->short_columns, places[SHORT_PRODUCTS];
    double sums[SHORT_PRODUCTS], *out = type == F64 ? (double *)values + to : sums;
    eight low, high, low_places = {0}, high_places = {0};
    for (int i = 0; i < 8; i++) listed[count + i] = INT32_MAX;
    memcpy(&low, listed, sizeof low);
    memcpy(&high, listed + 8, sizeof high);
    for (int i = 0; i < 8; i++) low_places -= low > listed[i];
    if (count > 8) {
        for (int i = 8; i < SHORT_PRODUCTS; i++) low_places -= low > listed[i];
        for (int i = 0; i < SHORT_PRODUCTS; i++) high_places -= high > listed[i];
    }
    memcpy(places, &low_places, sizeof low);
    memcpy(places + 8, &high_places, sizeof high);
    const uint32_t all = place_bits(&low_places) | (count > 8 ? place_bits(&high_places) : 0);
    const uint32_t taken = all & (((uint32_t)1 << count) - 1);
    const int made = __builtin_popcount(taken);
    for (int i = 0; type != NO_VALUES && i < SHORT_PRODUCTS; i++) out[i] = identity(op);
    for (int i = 0; i < count; i++) {
        const int at = __builtin_popcount(taken & (((uint32_t)1 << places[i]) - 1));
        columns[at] = listed[i];
        if (type != NO_VALUES) out[at] = add(op, out[at], w->short_values[i]);
    }
    for (int i = 0; type == F32 && i < made; i++) store(values, type, to + i, sums[i]);
    return made;
}
#endif

/* ---- rows ---------------------------------------------------------------------------------------------- */

void sp_row_short(accumulator *w, int64_t row, const int32_t *mask, int64_t mask_count, row_buffer *out)
{
    const row_product *job = w->job;
    int32_t *columns = out->columns + out->count;
    int64_t count = 0;
    w->listed = 0;
#define SHORT(op, type, filtered)                                                       \
    do {                                                                                \
        walk(w, row, op, type, filtered, job->complement, mask, mask_count, put_short); \
        count = take_short(w, op, type, columns, out->values, out->count);              \
    } while (0)
    EACH_KIND(job->kind, SHORT)
#undef SHORT
    out->count += count;
}

/* B's row, scaled; A's row has the one entry k. Few columns are moved without a call. */
KERNEL void copy_row(const row_product *job, int64_t k, int64_t count, int op, int type, row_buffer *out)
{
    const int64_t from = job->b->row_offsets[job->a->col_indices[k]];
    prefetch_rows(job, k, type);
    for (int64_t i = 0; i < count; i++) out->columns[out->count + i] = job->b->col_indices[from + i];
    if (type != NO_VALUES) copy_values(job, k, from, count, op, type, out->values, out->count);
}

typedef int64_t take_products(accumulator *w, int op, int type, int32_t *columns, void *values, int64_t to);

KERNEL sp_status make_light(accumulator *w, int64_t *row, int64_t end, int64_t *counts, int op, int type,
                            take_products *take, row_buffer *out)
{
    const int64_t *offsets = w->job->a->row_offsets;
    int64_t i = *row, copied = 0, summed = 0;
    sp_status status = SP_OK;
    for (; i < end && counts[i] <= SHORT_PRODUCTS; i++) {
        if (counts[i] == 0) continue; /* most rows of a hypersparse matrix */
        /* take_short clears SHORT_PRODUCTS ahead. */
        if (out->capacity - out->count < 2 * SHORT_PRODUCTS) status = sp_row_buffer_reserve(out, 2 * SHORT_PRODUCTS);
        if (status != SP_OK) break;
        if (offsets[i + 1] - offsets[i] == 1) {
            copy_row(w->job, offsets[i], counts[i], op, type, out);
            copied++;
        } else {
            w->listed = 0;
            walk(w, i, op, type, false, false, NULL, 0, put_short);
            counts[i] = take(w, op, type, out->columns + out->count, out->values, out->count);
            summed++;
        }
        out->count += counts[i];
    }
    w->rows[ROW_COPY] += copied;
    w->rows[ROW_SHORT] += summed;
    *row = i;
    return status;
}

#ifdef __x86_64__
#define LIGHT(op, type, filtered) return make_light(w, row, end, counts, op, type, take_short_avx2, out)
AVX2 static sp_status make_light_avx2(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out)
{
    EACH_KIND(w->job->kind & ~1, LIGHT)
}
#undef LIGHT
#endif

sp_status sp_rows_light(accumulator *w, int64_t *row, int64_t end, int64_t *counts, row_buffer *out)
{
    if (w->job->lanes) return sp_rows_lanes(w, row, end, counts, out);
#ifdef __x86_64__
    if (have_avx2()) return make_light_avx2(w, row, end, counts, out);
#endif
#define LIGHT(op, type, filtered) return make_light(w, row, end, counts, op, type, take_short, out)
    EACH_KIND(w->job->kind & ~1, LIGHT)
#undef LIGHT
}
