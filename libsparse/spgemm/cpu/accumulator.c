/* Accumulators of row-wise products; see accumulator.h. Each is compiled once a semiring, value type and filter. */
#include <math.h>
#include <string.h>

#include "spgemm/cpu/accumulator.h"
#include "core/table.h"

/* From this share of all columns on a row is summed densely, whatever memory that takes. */
enum { DENSE_SHARE = 16 };
/* Shorter rows than one product per so many columns are hashed: dense ones look through a word per 4,096 columns. */
enum { SCAN_COLUMNS = 1 << 14 };
/* Dense sums of this many columns fit the second-level cache of any machine, and are free. */
enum { FREE_COLUMNS = 1 << 16 };
/* The mask's columns are looked up in rows of B that are so many times as long. */
enum { FOUND_SHARE = 16 };
/* Rows in a block: a register of AVX2. */
enum { BLOCK = 4 };
/* The shortest ring of blocks' sums, in columns: 128 KB. */
enum { LEAST_RING = 1 << 12 };

enum { F32 = SP_F32, F64 = SP_F64, NO_VALUES };

#define KERNEL static inline __attribute__((always_inline))

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

KERNEL double identity(int op) { return op == SP_PLUS_TIMES ? -0.0 : op == SP_MIN_PLUS ? INFINITY : -INFINITY; }

KERNEL double multiply(int op, double x, double y) { return op == SP_MIN_PLUS ? x + y : x * y; }

KERNEL double add(int op, double sum, double next)
{
    if (op == SP_PLUS_TIMES) return sum + next;
    if (op == SP_MIN_PLUS) return next < sum ? next : sum;
    return next > sum ? next : sum;
}

KERNEL double load(const void *values, int type, int64_t i)
{
    return type == SP_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

KERNEL void store(void *values, int type, int64_t i, double value)
{
    if (type == SP_F32) ((float *)values)[i] = (float)value;
    else ((double *)values)[i] = value;
}

/* ---- the products of a row ----------------------------------------------------------------------------- */

KERNEL bool bit_at(const uint64_t *bits, int32_t column) { return bits[column >> 6] >> (column & 63) & 1; }

/* Where a product goes. */
typedef void put_product(accumulator *w, int op, int type, int32_t column, double value);

KERNEL void put_dense(accumulator *w, int op, int type, int32_t column, double value)
{
    if (type != NO_VALUES) w->sums[column] = add(op, w->sums[column], value);
    w->bits[column >> 6] |= (uint64_t)1 << (column & 63);
}

KERNEL void put_dense_sparse(accumulator *w, int op, int type, int32_t column, double value)
{
    put_dense(w, op, type, column, value);
    w->summary[column >> 12] |= (uint64_t)1 << (column >> 6 & 63);
}

KERNEL uint32_t find_slot(const accumulator *w, int32_t column)
{
    const uint32_t mask = (uint32_t)(((uint64_t)1 << w->bits_of_table) - 1);
    const int32_t *keys = w->keys;
    uint32_t at = hash_column(column, w->bits_of_table);
    while (keys[at] != column && keys[at] != -1) at = (at + 1) & mask;
    return at;
}

KERNEL void put_hash(accumulator *w, int op, int type, int32_t column, double value)
{
    const uint32_t at = find_slot(w, column);
    if (w->keys[at] == -1) {
        w->keys[at] = column;
        w->list[0][w->listed++] = pack_entry(column, at);
        if (type != NO_VALUES) w->slots[at] = add(op, identity(op), value);
    } else if (type != NO_VALUES) {
        w->slots[at] = add(op, w->slots[at], value);
    }
}

KERNEL void put_short(accumulator *w, int op, int type, int32_t column, double value)
{
    (void)op;
    w->short_columns[w->listed] = column;
    if (type != NO_VALUES) w->short_values[w->listed] = value;
    w->listed++;
}

/* C's pattern is known: nothing is marked. */
KERNEL void put_known_dense(accumulator *w, int op, int type, int32_t column, double value)
{
    (void)type;
    w->sums[column] = add(op, w->sums[column], value);
}

KERNEL void put_known_hash(accumulator *w, int op, int type, int32_t column, double value)
{
    (void)type;
    const uint32_t at = find_slot(w, column);
    w->slots[at] = add(op, w->slots[at], value);
}

/* B's rows are reached through A's columns: their offsets are asked for 16 entries ahead, their first entries 6. On
 * rows drawn at random this halves the time, on others it costs a few percent. */
KERNEL void prefetch_rows(const row_product *job, int64_t k, int type)
{
    const sp_csr *a = job->a, *b = job->b;
    if (k + 16 >= a->nnz) return;
    __builtin_prefetch(&b->row_offsets[a->col_indices[k + 16]]);
    const int64_t start = b->row_offsets[a->col_indices[k + 6]];
    __builtin_prefetch(b->col_indices + start);
    if (type == NO_VALUES) return;
    const size_t size = type == SP_F32 ? sizeof(float) : sizeof(double);
    __builtin_prefetch((const char *)job->b_values + (size_t)(start & job->b_select) * size);
    __builtin_prefetch((const char *)job->b_values + (size_t)((start + 8) & job->b_select) * size);
}

/* Puts the products of B's row at the mask's columns, found by bisection. */
KERNEL void walk_found(accumulator *w, int32_t j, double weight, const int32_t *wanted, int64_t count, int op,
                       int type, put_product *put)
{
    const row_product *job = w->job;
    const int32_t *columns = job->b->col_indices;
    int64_t low = job->b->row_offsets[j];
    const int64_t end = job->b->row_offsets[j + 1];
    for (int64_t i = 0; i < count && low < end; i++) {
        int64_t high = end;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (columns[middle] < wanted[i]) low = middle + 1;
            else high = middle;
        }
        if (low == end || columns[low] != wanted[i]) continue;
        const double value = type == NO_VALUES ? 0 : load(job->b_values, type, low & job->b_select);
        put(w, op, type, wanted[i], multiply(op, weight, value));
    }
}

/* Puts the products of A's row. With `filtered` only columns whose filter bit is not `excluded`; where these are the
 * columns of a short row of `wanted`, they are looked up in long rows of B. */
KERNEL void walk(accumulator *w, int64_t row, int op, int type, bool filtered, bool excluded, const int32_t *wanted,
                 int64_t wanted_count, put_product *put)
{
    const row_product *job = w->job;
    const int64_t *offsets = job->b->row_offsets;
    const int32_t *columns = job->b->col_indices;
    const void *values = job->b_values;
    const int64_t select = job->b_select;
    for (int64_t k = job->a->row_offsets[row]; k < job->a->row_offsets[row + 1]; k++) {
        const int32_t j = job->a->col_indices[k];
        const double weight = type == NO_VALUES ? 0 : load(job->a_values, type, k & job->a_select);
        const int64_t end = offsets[j + 1];
        prefetch_rows(job, k, type);
        if (filtered && !excluded && wanted_count * FOUND_SHARE < end - offsets[j]) {
            walk_found(w, j, weight, wanted, wanted_count, op, type, put);
            continue;
        }
        for (int64_t q = offsets[j]; q < end; q++) {
            if (filtered && bit_at(w->filter, columns[q]) == excluded) continue;
            put(w, op, type, columns[q],
                type == NO_VALUES ? 0 : multiply(op, weight, load(values, type, q & select)));
        }
    }
}

/* One case for each compiled kernel; KERNEL_OF(op, type, filtered). */
#define EACH_KIND(kind, KERNEL_OF)                              \
    switch (kind) {                                             \
    case 0: KERNEL_OF(SP_PLUS_TIMES, F32, false); break;        \
    case 1: KERNEL_OF(SP_PLUS_TIMES, F32, true); break;         \
    case 2: KERNEL_OF(SP_PLUS_TIMES, F64, false); break;        \
    case 3: KERNEL_OF(SP_PLUS_TIMES, F64, true); break;         \
    case 4: KERNEL_OF(SP_MIN_PLUS, F32, false); break;          \
    case 5: KERNEL_OF(SP_MIN_PLUS, F32, true); break;           \
    case 6: KERNEL_OF(SP_MIN_PLUS, F64, false); break;          \
    case 7: KERNEL_OF(SP_MIN_PLUS, F64, true); break;           \
    case 8: KERNEL_OF(SP_MAX_TIMES, F32, false); break;         \
    case 9: KERNEL_OF(SP_MAX_TIMES, F32, true); break;          \
    case 10: KERNEL_OF(SP_MAX_TIMES, F64, false); break;        \
    case 11: KERNEL_OF(SP_MAX_TIMES, F64, true); break;         \
    case 12: KERNEL_OF(SP_PLUS_TIMES, NO_VALUES, false); break; \
    default: KERNEL_OF(SP_PLUS_TIMES, NO_VALUES, true); break;  \
    }
enum { KIND_PATTERN = 12 };

static int kind_of(sp_semiring semiring, sp_value_type type, bool pattern, bool filtered)
{
    const int op = semiring == SP_MIN_PLUS ? 1 : semiring == SP_MAX_TIMES ? 2 : 0;
    return (pattern ? KIND_PATTERN : op * 4 + (type == SP_F64) * 2) + filtered;
}

/* ---- dense --------------------------------------------------------------------------------------------- */

KERNEL int64_t take_word(uint64_t word, int64_t base, int32_t *columns, int64_t count)
{
    for (; word; word &= word - 1) columns[count++] = (int32_t)(base + __builtin_ctzll(word));
    return count;
}

typedef struct range {
    int32_t low, high; /* low > high: empty */
} range;

/* The first and the last column that the row's products have. */
static range row_range(const row_product *job, int64_t row)
{
    const sp_csr *a = job->a, *b = job->b;
    int32_t low = INT32_MAX, high = 0;
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++) {
        const int64_t start = b->row_offsets[a->col_indices[k]], end = b->row_offsets[a->col_indices[k] + 1];
        if (start == end) continue;
        if (b->col_indices[start] < low) low = b->col_indices[start];
        if (b->col_indices[end - 1] > high) high = b->col_indices[end - 1];
    }
    return (range){low, high};
}

/* Lists the columns that a row touched, by ascending number, and unmarks them. */
static int64_t take_columns(accumulator *w, range columns_of_row, int32_t *columns)
{
    int64_t count = 0;
    for (int64_t i = columns_of_row.low / 64; i <= columns_of_row.high / 64; i++) {
        if (!w->bits[i]) continue;
        count = take_word(w->bits[i], i * 64, columns, count);
        w->bits[i] = 0;
    }
    return count;
}

/* The same for a row of few products against the columns, by way of the summary. */
static int64_t take_sparse_columns(accumulator *w, int32_t *columns)
{
    const int64_t cols = w->job->b->cols;
    int64_t count = 0;
    for (int64_t s = 0; s < (cols + 4095) / 4096; s++) {
        if (!w->summary[s]) continue;
        for (uint64_t words = w->summary[s]; words; words &= words - 1) {
            const int64_t i = s * 64 + __builtin_ctzll(words);
            count = take_word(w->bits[i], i * 64, columns, count);
            w->bits[i] = 0;
        }
        w->summary[s] = 0;
    }
    return count;
}

/* The same where only the columns of `wanted` can have been touched. */
static int64_t take_wanted(accumulator *w, const int32_t *wanted, int64_t wanted_count, int32_t *columns)
{
    int64_t count = 0;
    for (int64_t i = 0; i < wanted_count; i++) {
        columns[count] = wanted[i];
        count += bit_at(w->bits, wanted[i]);
    }
    for (int64_t i = 0; i < count; i++) w->bits[columns[i] >> 6] = 0;
    return count;
}

/* Moves the sums of the listed columns out. */
KERNEL void take_sums(accumulator *w, const int32_t *columns, int64_t count, int op, int type, void *values,
                      int64_t to)
{
    double *sums = w->sums;
    for (int64_t i = 0; i < count; i++) {
        store(values, type, to + i, sums[columns[i]]);
        sums[columns[i]] = identity(op);
    }
}

static void row_dense(accumulator *w, int64_t row, int64_t products, const int32_t *mask, int64_t mask_count,
                      row_buffer *out)
{
    const row_product *job = w->job;
    const bool excluded = job->complement, wanted = job->mask && !excluded;
    const bool sparse = !wanted && products < job->b->cols / 64;
    int32_t *columns = out->columns + out->count;
#define WALK(op, type, filtered)                                                                    \
    do {                                                                                            \
        if (sparse) walk(w, row, op, type, filtered, excluded, mask, mask_count, put_dense_sparse); \
        else walk(w, row, op, type, filtered, excluded, mask, mask_count, put_dense);               \
    } while (0)
    EACH_KIND(job->kind, WALK)
#undef WALK
    const int64_t count = wanted ? take_wanted(w, mask, mask_count, columns)
                        : sparse ? take_sparse_columns(w, columns)
                                 : take_columns(w, row_range(job, row), columns);
#define TAKE(op, type, filtered) \
    if (type != NO_VALUES) take_sums(w, columns, count, op, type, out->values, out->count)
    EACH_KIND(job->kind, TAKE)
#undef TAKE
    out->count += count;
}

/* ---- blocks of rows ------------------------------------------------------------------------------------ */

typedef double four __attribute__((vector_size(BLOCK * sizeof(double))));

static bool same_columns(const sp_csr *a, int64_t row, int64_t other)
{
    const int64_t start = a->row_offsets[row], count = a->row_offsets[row + 1] - start;
    const int64_t at = a->row_offsets[other];
    return a->row_offsets[other + 1] - at == count && count > 0 && a->col_indices[start] == a->col_indices[at] &&
           memcmp(a->col_indices + start, a->col_indices + at, (size_t)count * sizeof(int32_t)) == 0;
}

/* Whether the ring holds all columns of a row, which is not much longer than its products. */
static bool fits_ring(const row_product *job, range columns, int64_t products)
{
    const int64_t length = (int64_t)columns.high - columns.low;
    return (job->ring < 0 || length <= job->ring) && length / SCAN_COLUMNS <= products;
}

/* Whether all of a row's products are formed: a mask whose row is short against those of B is looked up in them. */
static bool worth_block(const row_product *job, int64_t row, int64_t products, int64_t most)
{
    return !job->mask || most * FOUND_SHARE * (job->a->row_offsets[row + 1] - job->a->row_offsets[row]) >= products;
}

/* How many rows from `row` on, below `end`, have the same columns of A; at most a block. */
static int block_rows(const row_product *job, int64_t row, int64_t end)
{
    int count = 1;
    while (count < BLOCK && row + count < end && same_columns(job->a, row, row + count)) count++;
    return count;
}

/* Touched columns lie together here, so that a word of their bits is gathered in a register. */
KERNEL void walk_block(accumulator *w, int64_t row, int rows, int type, bool mark)
{
    const row_product *job = w->job;
    const int64_t *starts = job->a->row_offsets + row, *offsets = job->b->row_offsets;
    const int32_t *columns = job->b->col_indices;
    const void *values = job->b_values;
    const int64_t select = job->b_select, ring = job->ring;
    double *sums = w->sums;
    for (int64_t k = 0; k < starts[1] - starts[0]; k++) {
        const int32_t j = job->a->col_indices[starts[0] + k];
        four weights = {0};
        int32_t word = 0;
        uint64_t bits = 0;
        for (int r = 0; r < rows; r++) weights[r] = load(job->a_values, type, (starts[r] + k) & job->a_select);
        for (int64_t q = offsets[j]; q < offsets[j + 1]; q++) {
            const int32_t column = columns[q];
            *(four *)(sums + BLOCK * (column & ring)) += weights * load(values, type, q & select);
            if (!mark) continue;
            if (column >> 6 != word) {
                w->bits[word] |= bits;
                word = column >> 6;
                bits = 0;
            }
            bits |= (uint64_t)1 << (column & 63);
        }
        if (mark) w->bits[word] |= bits;
    }
}

KERNEL void take_block(accumulator *w, const int32_t *columns, int64_t count, int rows, int type, void *values,
                       int64_t to)
{
    const int64_t ring = w->job->ring;
    for (int64_t i = 0; i < count; i++) {
        four *sums = (four *)(w->sums + BLOCK * (columns[i] & ring));
        for (int r = 0; r < rows; r++) store(values, type, to + r * count + i, (*sums)[r]);
        *sums = (four){-0.0, -0.0, -0.0, -0.0};
    }
}

/* Fills the sums, marking the columns or not. */
#define WALK_BLOCK(name, attributes)                                                             \
    attributes static void name(accumulator *w, int64_t row, int rows, int type, bool mark)      \
    {                                                                                            \
        if (type == SP_F32 && mark) walk_block(w, row, rows, SP_F32, true);                      \
        else if (type == SP_F32) walk_block(w, row, rows, SP_F32, false);                        \
        else if (mark) walk_block(w, row, rows, SP_F64, true);                                   \
        else walk_block(w, row, rows, SP_F64, false);                                            \
    }
WALK_BLOCK(walk_block_portable, )
#ifdef __x86_64__
WALK_BLOCK(walk_block_avx2, __attribute__((target("avx2"))))
#endif

static void sum_block(accumulator *w, int64_t row, int rows, bool mark)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        walk_block_avx2(w, row, rows, (int)w->job->a->value_type, mark);
        return;
    }
#endif
    walk_block_portable(w, row, rows, (int)w->job->a->value_type, mark);
}

static void take_block_sums(accumulator *w, const int32_t *columns, int64_t count, int rows, void *values, int64_t to)
{
    if (w->job->a->value_type == SP_F32) take_block(w, columns, count, rows, SP_F32, values, to);
    else take_block(w, columns, count, rows, SP_F64, values, to);
}

static void rows_block(accumulator *w, int64_t row, int rows, range columns_of_row, int64_t *lengths,
                       row_buffer *out)
{
    int32_t *columns = out->columns + out->count;
    sum_block(w, row, rows, true);
    const int64_t count = take_columns(w, columns_of_row, columns);
    take_block_sums(w, columns, count, rows, out->values, out->count);
    for (int r = 0; r < rows; r++) {
        if (r > 0) memcpy(columns + r * count, columns, (size_t)count * sizeof *columns);
        lengths[row + r] = count;
    }
    out->count += rows * count;
}

/* Moves one row's sums out of a block, at the columns that the mask lets pass of those that the block touched. */
KERNEL int64_t take_masked(const accumulator *w, int64_t row, int place, const int32_t *columns, int64_t count,
                           int type, int32_t *kept, void *values, int64_t to)
{
    const row_product *job = w->job;
    const int32_t *listed = job->mask->col_indices + job->mask->row_offsets[row];
    const int32_t *end = job->mask->col_indices + job->mask->row_offsets[row + 1];
    int64_t made = 0;
    for (int64_t i = 0; i < count; i++) {
        while (listed < end && *listed < columns[i]) listed++;
        if ((listed < end && *listed == columns[i]) == job->complement) continue;
        kept[made] = columns[i];
        store(values, type, to + made++, w->sums[BLOCK * (columns[i] & job->ring) + place]);
    }
    return made;
}

/* The same under a mask; together the rows come to have at most `most` entries. */
static void rows_block_masked(accumulator *w, int64_t row, int rows, range columns_of_row, int64_t most,
                              int64_t *lengths, row_buffer *out)
{
    int32_t *touched = out->columns + out->count + most; /* behind all that the rows can have */
    sum_block(w, row, rows, true);
    const int64_t count = take_columns(w, columns_of_row, touched);
    for (int r = 0; r < rows; r++) {
        int32_t *kept = out->columns + out->count;
        if (w->job->a->value_type == SP_F32)
            lengths[row + r] = take_masked(w, row + r, r, touched, count, SP_F32, kept, out->values, out->count);
        else lengths[row + r] = take_masked(w, row + r, r, touched, count, SP_F64, kept, out->values, out->count);
        out->count += lengths[row + r];
    }
    for (int64_t i = 0; i < count; i++)
        *(four *)(w->sums + BLOCK * (touched[i] & w->job->ring)) = (four){-0.0, -0.0, -0.0, -0.0};
}

/* ---- hash ---------------------------------------------------------------------------------------------- */

static void clear_table(accumulator *w, int64_t entries)
{
    w->bits_of_table = table_bits(entries);
    w->listed = 0;
    memset(w->keys, 0xff, ((size_t)1 << w->bits_of_table) * sizeof *w->keys);
}

static void row_hash(accumulator *w, int64_t row, int64_t entries, const int32_t *mask, int64_t mask_count,
                     row_buffer *out)
{
    const row_product *job = w->job;
    int32_t *columns = out->columns + out->count;
    clear_table(w, entries);
#define WALK(op, type, filtered) walk(w, row, op, type, filtered, job->complement, mask, mask_count, put_hash)
    EACH_KIND(job->kind, WALK)
#undef WALK
    const uint64_t *list = sort_entries(w->list[0], w->list[1], w->listed, job->b->cols);
    for (int64_t i = 0; i < w->listed; i++) columns[i] = (int32_t)(list[i] >> 32);
    if (!job->pattern) {
        for (int64_t i = 0; i < w->listed; i++)
            store(out->values, (int)job->a->value_type, out->count + i, w->slots[(uint32_t)list[i]]);
    }
    out->count += w->listed;
}

/* ---- short --------------------------------------------------------------------------------------------- */

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
__attribute__((target("avx2,popcnt"))) static void row_short_avx2(accumulator *w, int64_t row, row_buffer *out)
{
    int64_t count = 0;
    w->listed = 0;
    EACH_KIND(w->job->kind, SHORT)
    out->count += count;
}
#undef SHORT
#endif

static void row_short(accumulator *w, int64_t row, const int32_t *mask, int64_t mask_count, row_buffer *out)
{
    const row_product *job = w->job;
#ifdef __x86_64__
    if (!mask && __builtin_cpu_supports("avx2")) { /* what passes a mask is little, and takes longer so */
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

/* ---- copy ---------------------------------------------------------------------------------------------- */

KERNEL void copy_values(const row_product *job, int64_t k, int64_t from, int64_t count, int op, int type,
                        void *values, int64_t to)
{
    const double weight = load(job->a_values, type, k & job->a_select);
    for (int64_t i = 0; i < count; i++)
        store(values, type, to + i,
              add(op, identity(op), multiply(op, weight, load(job->b_values, type, (from + i) & job->b_select))));
}

/* Values of a row whose only entry of A is k. */
static void copy_row_values(const row_product *job, int64_t k, void *values, int64_t to)
{
    const int32_t j = job->a->col_indices[k];
    const int64_t from = job->b->row_offsets[j], count = job->b->row_offsets[j + 1] - from;
#define COPY(op, type, filtered) \
    if (type != NO_VALUES) copy_values(job, k, from, count, op, type, values, to)
    EACH_KIND(job->kind, COPY)
#undef COPY
}

static void row_copy(accumulator *w, int64_t row, int64_t count, row_buffer *out)
{
    const row_product *job = w->job;
    const int64_t k = job->a->row_offsets[row];
    memcpy(out->columns + out->count, job->b->col_indices + job->b->row_offsets[job->a->col_indices[k]],
           (size_t)count * sizeof(int32_t));
    copy_row_values(job, k, out->values, out->count);
    out->count += count;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static void mark_filter(accumulator *w, const int32_t *columns, int64_t count)
{
    for (int64_t i = 0; i < count; i++) w->filter[columns[i] >> 6] |= (uint64_t)1 << (columns[i] & 63);
}

static void clear_filter(accumulator *w, const int32_t *columns, int64_t count)
{
    for (int64_t i = 0; i < count; i++) w->filter[columns[i] >> 6] = 0;
}

static bool single_entry(const row_product *job, int64_t row)
{
    return job->a->row_offsets[row + 1] - job->a->row_offsets[row] == 1;
}

/* `most`: entries that the row may come to have. */
static int choose_method(const row_product *job, int64_t row, int64_t products, int64_t most)
{
    const int64_t cols = job->b->cols;
    if (job->algorithm == SP_SPGEMM_HASH) return ROW_HASH;
    if (job->algorithm == SP_SPGEMM_DENSE) return ROW_DENSE;
    if (!job->mask && single_entry(job, row)) return ROW_COPY;
    if (products <= SHORT_PRODUCTS) return ROW_SHORT;
    if (job->mask && !job->complement) return job->dense ? ROW_DENSE : ROW_HASH;
    if (most >= cols / DENSE_SHARE) return ROW_DENSE;
    return job->dense && products >= cols / SCAN_COLUMNS ? ROW_DENSE : ROW_HASH;
}

/* Makes one row of at most `most` entries by the method; its filter is the mask's row. */
static void make_row(accumulator *w, int method, int64_t row, int64_t products, int64_t most, row_buffer *out)
{
    const row_product *job = w->job;
    const sp_csr *mask = job->mask;
    const int32_t *columns = mask ? mask->col_indices + mask->row_offsets[row] : NULL;
    const int64_t count = mask ? mask->row_offsets[row + 1] - mask->row_offsets[row] : 0;
    if (mask) mark_filter(w, columns, count);
    if (method == ROW_COPY) row_copy(w, row, products, out);
    else if (method == ROW_SHORT) row_short(w, row, columns, count, out);
    else if (method == ROW_DENSE) row_dense(w, row, products, columns, count, out);
    else row_hash(w, row, most, columns, count, out);
    if (mask) clear_filter(w, columns, count);
}

/* How many entries a row of so many products may come to have. */
static int64_t most_entries(const row_product *job, int64_t row, int64_t products)
{
    int64_t most = products < job->b->cols ? products : job->b->cols;
    if (job->mask && !job->complement) {
        const int64_t wanted = job->mask->row_offsets[row + 1] - job->mask->row_offsets[row];
        if (wanted < most) most = wanted;
    }
    return most;
}

static sp_status open_dense(accumulator *w, int64_t sums);
static sp_status open_hash(accumulator *w, int64_t entries);

/* Takes the scratch memory that the method needs. Threads may call it at the same time. */
static inline sp_status reserve(accumulator *w, int method, int64_t entries)
{
    if (method == ROW_SHORT || method == ROW_COPY) return SP_OK;
    const row_product *job = w->job;
    const int64_t cols = job->b->cols, block = BLOCK * (job->ring < 0 ? cols : job->ring + 1);
    const int64_t sums = job->pattern ? 0 : method == ROW_BLOCK ? block : cols;
    const bool dense = (method == ROW_DENSE || method == ROW_BLOCK) && (!w->bits || sums > w->sums_room);
    sp_status status = SP_OK;
    if (!dense && (method != ROW_HASH || entries <= w->room)) return SP_OK;
#pragma omp critical(sp_row_buffer)
    status = dense ? open_dense(w, sums) : open_hash(w, entries);
    return status;
}

/* A row with the columns of the one before, whose pattern is the last in `out`. */
static void repeat_row(int64_t count, row_buffer *out)
{
    memcpy(out->columns + out->count, out->columns + out->count - count, (size_t)count * sizeof(int32_t));
    out->count += count;
}

sp_status sp_accumulate_rows(void *worker, int64_t first, int64_t end, int64_t *counts, row_buffer *out)
{
    accumulator *w = worker;
    const row_product *job = w->job;
    const int64_t cols = job->b->cols;
    for (int64_t row = first; row < end;) {
        const int64_t products = counts[row], most = most_entries(job, row, products);
        const int method = choose_method(job, row, products, most);
        const bool block = job->blocks && (method == ROW_DENSE || method == ROW_HASH);
        int rows = block && !job->pattern && worth_block(job, row, products, most) ? block_rows(job, row, end) : 1;
        range columns = {0, 0};
        if (rows > 1) {
            columns = row_range(job, row);
            if (!fits_ring(job, columns, products)) rows = 1;
        }
        sp_status status = reserve(w, rows > 1 ? ROW_BLOCK : method, most);
        int64_t room = rows * most, listed = SHORT_PRODUCTS; /* take_short clears so many ahead, take_wanted one */
        if (rows > 1 && job->mask) {
            listed = products < cols ? products : cols;
            room = job->complement ? rows * listed : job->mask->row_offsets[row + rows] - job->mask->row_offsets[row];
        }
        if (status == SP_OK) status = sp_row_buffer_reserve(out, room + listed);
        if (status != SP_OK) return status;
        const int64_t before = out->count;
        if (rows > 1) {
            if (job->mask) rows_block_masked(w, row, rows, columns, room, counts, out);
            else rows_block(w, row, rows, columns, counts, out);
            w->rows[ROW_BLOCK] += rows;
        } else if (most > 0) {
            if (block && job->pattern && row > first && same_columns(job->a, row - 1, row))
                repeat_row(counts[row - 1], out);
            else make_row(w, method, row, products, most, out);
            w->rows[method]++;
        }
        if (rows == 1) counts[row] = out->count - before;
        row += rows;
    }
    return SP_OK;
}

/* ---- values for a pattern ------------------------------------------------------------------------------ */

static void values_dense(accumulator *w, int64_t row, int kind, const int32_t *columns, int64_t count, void *values,
                         int64_t to)
{
#define WALK(op, type, filtered)                                                  \
    do {                                                                          \
        walk(w, row, op, type, filtered, false, columns, count, put_known_dense); \
        take_sums(w, columns, count, op, type, values, to);                       \
    } while (0)
    EACH_KIND(kind, WALK)
#undef WALK
}

static void values_hash(accumulator *w, int64_t row, int kind, const int32_t *columns, int64_t count, void *values,
                        int64_t to)
{
    clear_table(w, count);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t at = find_slot(w, columns[i]);
        w->keys[at] = columns[i];
        w->list[0][i] = at;
    }
#define WALK(op, type, filtered)                                                                  \
    do {                                                                                          \
        for (int64_t i = 0; i < count; i++) w->slots[w->list[0][i]] = identity(op);               \
        walk(w, row, op, type, filtered, false, columns, count, put_known_hash);                  \
        for (int64_t i = 0; i < count; i++) store(values, type, to + i, w->slots[w->list[0][i]]); \
    } while (0)
    EACH_KIND(kind, WALK)
#undef WALK
}

void sp_accumulate_values(accumulator *w, int64_t first, int64_t end, bool masked, sp_csr *c)
{
    const row_product *job = w->job;
    const int kind = (job->kind & ~1) + masked;
    for (int64_t row = first; row < end;) {
        const int64_t to = c->row_offsets[row], count = c->row_offsets[row + 1] - to;
        const int32_t *columns = c->col_indices + to;
        int rows = 1;
        if (job->blocks && !masked && count > 0 && fits_ring(job, (range){columns[0], columns[count - 1]}, count))
            rows = block_rows(job, row, end);
        row += rows;
        if (count == 0) continue;
        if (masked) mark_filter(w, columns, count);
        if (rows > 1) {
            sum_block(w, row - rows, rows, false);
            take_block_sums(w, columns, count, rows, c->values, to);
        } else if (!masked && single_entry(job, row - 1)) {
            copy_row_values(job, job->a->row_offsets[row - 1], c->values, to);
        } else if (w->sums_room >= job->b->cols) {
            values_dense(w, row - 1, kind, columns, count, c->values, to);
        } else {
            values_hash(w, row - 1, kind, columns, count, c->values, to);
        }
        if (masked) clear_filter(w, columns, count);
    }
}

/* ---- life ---------------------------------------------------------------------------------------------- */

/* Whether half of a sample of A's rows have the columns of the row after them. */
static bool rows_repeat(const sp_csr *a)
{
    const int64_t step = a->rows / 256 + 1;
    int64_t same = 0, seen = 0;
    for (int64_t row = 0; row + 1 < a->rows; row += step, seen++) same += same_columns(a, row, row + 1);
    return same * 2 > seen;
}

/* Bytes of a dense accumulator with so many sums a column. */
static int64_t dense_bytes(int64_t cols, int sums) { return cols * (int64_t)sizeof(double) * sums + cols / 8; }

/* Bytes of a hash accumulator for so many entries: slots of a key and a sum; two lists. */
static int64_t hash_bytes(const row_product *job, int64_t entries)
{
    return entries ? ((int64_t)1 << table_bits(entries)) * (job->pattern ? 4 : 12) + entries * 16 : 0;
}

void sp_row_product_values(row_product *job, const sp_csr *a, const sp_csr *b, sp_semiring semiring)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    const void *one = a->value_type == SP_F32 ? (const void *)&one_f32 : (const void *)&one_f64;
    const bool counts = semiring == SP_PLUS_PAIR; /* plus-times on patterns */
    job->a = a;
    job->b = b;
    job->a_select = counts || !a->values ? 0 : -1;
    job->b_select = counts || !b->values ? 0 : -1;
    job->a_values = job->a_select ? a->values : one;
    job->b_values = job->b_select ? b->values : one;
}

/* Bytes of a share of what the matrices take, C guessed at one entry in `products_an_entry` products, a thread. */
static int64_t share_of_matrices(const row_product *job, int64_t products, int products_an_entry, int share)
{
    const sp_csr *a = job->a, *b = job->b, *mask = job->mask;
    const int64_t entry = (int64_t)(sizeof(int32_t) + sp_value_size(a->value_type));
    int64_t entries = products / products_an_entry;
    if (mask && !job->complement && mask->nnz < entries) entries = mask->nnz;
    const int64_t matrices = 8 * (a->rows * 2 + b->rows) + entry * (a->nnz + (a == b ? 0 : b->nnz) + entries);
    return matrices / share / job->context->threads;
}

void sp_row_product_begin(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                          int64_t products, int64_t largest, row_product *job)
{
    *job = (row_product){.context = context, .mask = options->mask, .algorithm = options->algorithm,
                         .complement = options->complement, .pattern = options->semiring == SP_OR_AND};
    sp_row_product_values(job, a, b, options->semiring);
    job->kind = kind_of(options->semiring, a->value_type, job->pattern, options->mask != NULL);

    /* All threads' sums may take an eighth of what the matrices do; a 32nd where the rows of a mask fit small tables.
     * Finite elements have an entry of C in ten to thirty products, and a row's columns lie together: a 32nd is
     * enough for blocks. */
    const int64_t cols = b->cols;
    const bool wanted = options->mask && !options->complement;
    const bool elements = options->algorithm == SP_SPGEMM_AUTO && largest > 0 && rows_repeat(a);
    const int products_an_entry = elements ? 16 : 4;
    const int64_t share = share_of_matrices(job, products, products_an_entry, 32);
    job->dense = dense_bytes(cols, 1) <= (wanted ? share : share_of_matrices(job, products, products_an_entry, 8)) ||
                 cols <= (wanted ? FREE_COLUMNS / 2 : FREE_COLUMNS);
    job->blocks = elements && !(options->mask && job->pattern) && options->semiring != SP_MIN_PLUS &&
                  options->semiring != SP_MAX_TIMES;
    job->ring = -1;
    if (cols <= FREE_COLUMNS || dense_bytes(cols, BLOCK) <= share) return;
    for (job->ring = LEAST_RING; dense_bytes(2 * job->ring, BLOCK) <= share;) job->ring *= 2;
    job->ring--;
}

void sp_accumulators_close(sp_context *context, accumulator *workers, int threads)
{
    for (int t = 0; workers && t < threads; t++) {
        accumulator *w = &workers[t];
        void *arrays[] = {w->sums_block, w->bits, w->summary, w->filter, w->keys, w->slots, w->list[0], w->list[1]};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) sp_free(context, arrays[i]);
    }
    sp_free(context, workers);
}

/* So many sums, in place of those there are, which hold the identity. */
static sp_status open_dense(accumulator *w, int64_t sums)
{
    const row_product *job = w->job;
    sp_context *context = job->context;
    const int64_t words = job->b->cols / 64 + 1;
    sp_status status = SP_OK;
    if (sums > 0) {
        sp_free(context, w->sums_block);
        w->bytes -= w->sums_room * 8;
        w->sums_room = 0;
        TRY(sp_alloc(context, sums + 8, sizeof(double), &w->sums_block));
        w->sums = (double *)(((uintptr_t)w->sums_block + 63) / 64 * 64);
        const double empty = (job->kind & ~1) >= 8 ? identity(SP_MAX_TIMES)
                           : (job->kind & ~1) >= 4 ? identity(SP_MIN_PLUS) : identity(SP_PLUS_TIMES);
        for (int64_t i = 0; i < sums; i++) w->sums[i] = empty;
        w->bytes += sums * 8;
        w->sums_room = sums;
    }
    if (w->bits) goto done;
    TRY(sp_calloc(context, words / 64 + 1, sizeof(uint64_t), (void **)&w->summary));
    TRY(sp_calloc(context, words, sizeof(uint64_t), (void **)&w->bits));
    w->bytes += words * 8 + words / 8;
done:
    return status;
}

/* Arrays for so many entries and a quarter more; what was in smaller ones is not kept. */
static sp_status open_hash(accumulator *w, int64_t entries)
{
    const row_product *job = w->job;
    sp_context *context = job->context;
    void **arrays[] = {(void **)&w->keys, (void **)&w->slots, (void **)&w->list[0], (void **)&w->list[1]};
    const int64_t slots = (int64_t)1 << table_bits(entries);
    const int64_t room = entries + entries / 4 < slots / 2 ? entries + entries / 4 : slots / 2;
    sp_status status;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        sp_free(context, *arrays[i]);
        *arrays[i] = NULL;
    }
    w->bytes -= hash_bytes(job, w->room);
    w->room = 0;
    TRY(sp_alloc(context, slots, sizeof(int32_t), (void **)&w->keys));
    if (!job->pattern) TRY(sp_alloc(context, slots, sizeof(double), (void **)&w->slots));
    TRY(sp_alloc(context, room, sizeof(uint64_t), (void **)&w->list[0]));
    TRY(sp_alloc(context, room, sizeof(uint64_t), (void **)&w->list[1]));
    w->room = room;
    w->bytes += hash_bytes(job, room);
done:
    return status;
}

sp_status sp_accumulators_open(sp_context *context, const row_product *job, bool filter, int threads,
                               accumulator **workers)
{
    const int64_t words = job->b->cols / 64 + 1;
    sp_status status = sp_calloc(context, threads, sizeof **workers, (void **)workers);
    for (int t = 0; t < threads && status == SP_OK; t++) {
        accumulator *w = &(*workers)[t];
        w->job = job;
        if (!filter) continue;
        TRY(sp_calloc(context, words, sizeof(uint64_t), (void **)&w->filter));
        w->bytes += words * 8;
    }
done:
    return status;
}

sp_status sp_accumulators_reserve(accumulator *workers, int threads, int64_t longest)
{
    const row_product *job = workers->job;
    const bool dense = job->algorithm == SP_SPGEMM_DENSE ||
                       (job->algorithm == SP_SPGEMM_AUTO &&
                        (job->dense || dense_bytes(job->b->cols, 1) <= hash_bytes(job, longest)));
    sp_status status = SP_OK;
    for (int t = 0; t < threads && status == SP_OK; t++) {
        if (job->blocks) status = reserve(&workers[t], ROW_BLOCK, longest);
        if (status == SP_OK) status = reserve(&workers[t], dense ? ROW_DENSE : ROW_HASH, longest);
    }
    return status;
}
