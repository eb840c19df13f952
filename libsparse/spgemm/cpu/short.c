/* Up to 16 products: the place of each column is the number of smaller ones, counted without a branch. */
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

/* The same with eight columns a register. A product's place in C is the number of taken places below its own, so that
 * nothing is moved twice, and only the length of the list is branched on. */
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

#define SHORT(op, type, filtered)                                                                 \
    do {                                                                                          \
        walk(w, row, op, type, false, false, NULL, 0, put_short);                                 \
        count = take_short_avx2(w, op, type, out->columns + out->count, out->values, out->count); \
    } while (0)
AVX2 static void row_short_avx2(accumulator *w, int64_t row, row_buffer *out)
{
    int64_t count = 0;
    w->listed = 0;
    EACH_KIND(w->job->kind, SHORT)
    out->count += count;
}
#undef SHORT
#endif

void sp_row_short(accumulator *w, int64_t row, const int32_t *mask, int64_t mask_count, row_buffer *out)
{
    const row_product *job = w->job;
#ifdef __x86_64__
    if (!mask && have_avx2()) { /* what passes a mask is little, and takes longer so */
        row_short_avx2(w, row, out);
        return;
    }
#endif
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
