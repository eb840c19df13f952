/* test_csr: triples to rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csr_shared.h"

typedef struct triples {
    int64_t count;
    int32_t *rows, *cols;
    double *values;
} triples;

static triples random_triples(test_random *random, int64_t rows, int64_t cols, int64_t count)
{
    triples t = {count, malloc((size_t)count * 4 + 1), malloc((size_t)count * 4 + 1), malloc((size_t)count * 8 + 1)};
    for (int64_t i = 0; i < count; i++) {
        t.rows[i] = (int32_t)test_below(random, rows);
        t.cols[i] = (int32_t)test_below(random, cols);
        t.values[i] = (double)test_below(random, 100) - 30; /* whole numbers: f32 sums are exact */
    }
    return t;
}

static void free_triples(triples *t) { free_all(t->rows, t->cols, t->values); }

static double combine(double old, double next, sp_combine rule)
{
    switch (rule) {
    case SP_COMBINE_SUM:
    case SP_COMBINE_MEAN: return old + next;
    case SP_COMBINE_COUNT: return old + 1;
    case SP_COMBINE_MAX: return fmax(old, next);
    case SP_COMBINE_MIN: return fmin(old, next);
    case SP_COMBINE_FIRST: break;
    }
    return old;
}

/* The same as a dense table: `present` (how many fell there) and `numbers` are rows × cols. */
static void combine_dense(const triples *t, int64_t rows, int64_t cols, sp_combine rule, bool symmetric, int *present,
                          double *numbers)
{
    for (int64_t i = 0; i < t->count; i++)
        for (int mirror = 0; mirror <= (symmetric && t->rows[i] != t->cols[i]); mirror++) {
            const int64_t at = mirror ? t->cols[i] * cols + t->rows[i] : t->rows[i] * cols + t->cols[i];
            const double first = rule == SP_COMBINE_COUNT ? 1 : t->values[i];
            numbers[at] = present[at]++ ? combine(numbers[at], t->values[i], rule) : first;
        }
    for (int64_t at = 0; at < rows * cols && rule == SP_COMBINE_MEAN; at++)
        if (present[at]) numbers[at] /= present[at];
}

static void check_against_dense(const sp_csr *matrix, const int *present, const double *numbers, uint64_t seed)
{
    int64_t entry = 0;
    for (int64_t i = 0; i < matrix->rows; i++)
        for (int64_t j = 0; j < matrix->cols; j++) {
            if (!present[i * matrix->cols + j]) continue;
            test_expect(entry < matrix->nnz && entry >= matrix->row_offsets[i] && matrix->col_indices[entry] == j,
                        "seed %llu: (%lld, %lld) is missing", (unsigned long long)seed, (long long)i, (long long)j);
            const double is = test_value(matrix, entry), should = numbers[i * matrix->cols + j];
            test_expect(is == (matrix->value_type == SP_F32 ? (double)(float)should : should),
                        "seed %llu: (%lld, %lld) is %g, not %g", (unsigned long long)seed, (long long)i,
                        (long long)j, is, should);
            entry++;
        }
    test_expect(entry == matrix->nnz, "seed %llu: %lld entries too many", (unsigned long long)seed,
                (long long)(matrix->nnz - entry));
}

CONTEXT_TEST(coo_combines_duplicates_by_each_rule, 0, 1 + _i % 2)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        test_random random = test_seed(seed);
        const bool symmetric = seed % 3 == 0;
        const int64_t rows = 1 + test_below(&random, 12), cols = symmetric ? rows : 1 + test_below(&random, 90);
        const sp_combine rule = (sp_combine)(seed / 3 % 6);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        triples t = random_triples(&random, rows, cols, test_below(&random, 600));
        float *narrow = malloc((size_t)t.count * sizeof *narrow + 1);
        for (int64_t i = 0; i < t.count; i++) narrow[i] = (float)t.values[i];
        int *present = calloc((size_t)(rows * cols), sizeof *present);
        double *numbers = calloc((size_t)(rows * cols), sizeof *numbers);
        combine_dense(&t, rows, cols, rule, symmetric, present, numbers);
        sp_csr matrix;
        ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = rows, .cols = cols, .count = t.count,
                                                          .row_indices = t.rows, .col_indices = t.cols,
                                                          .values = type == SP_F32 ? (void *)narrow : (void *)t.values,
                                                          .value_type = type}, rule, symmetric, &matrix));
        ck_ok(context, sp_csr_check(context, &matrix));
        check_against_dense(&matrix, present, numbers, seed);
        sp_csr_free(context, &matrix);
        free_triples(&t);
        free_all(narrow, present, numbers);
    }
}

/* The same without a table: triples brought into order by a stable merge sort on (row, column), then combined. */
static void sort_triples(int64_t count, const uint64_t *keys, int64_t *order, int64_t *spare)
{
    if (count < 2) return;
    const int64_t half = count / 2;
    sort_triples(half, keys, order, spare);
    sort_triples(count - half, keys, order + half, spare);
    for (int64_t i = 0, j = half, k = 0; k < count; k++)
        spare[k] = j >= count || (i < half && keys[order[i]] <= keys[order[j]]) ? order[i++] : order[j++];
    memcpy(order, spare, (size_t)count * sizeof *order);
}

static void check_against_sorted(const sp_csr *matrix, const triples *t, sp_combine rule, bool symmetric,
                                 const char *what)
{
    const size_t most = 2 * (size_t)t->count + 1;
    uint64_t *keys = malloc(most * sizeof *keys);
    int64_t *order = malloc(most * sizeof *order), *spare = malloc(most * sizeof *spare);
    double *values = malloc(most * sizeof *values);
    int64_t count = 0, entry = 0;
    for (int64_t i = 0; i < t->count; i++)
        for (int mirror = 0; mirror <= (symmetric && t->rows[i] != t->cols[i]); mirror++) {
            const uint64_t row = (uint64_t)(mirror ? t->cols : t->rows)[i];
            keys[count] = row << 32 | (uint64_t)(mirror ? t->rows : t->cols)[i];
            values[count] = t->values ? t->values[i] : 1;
            order[count] = count;
            count++;
        }
    sort_triples(count, keys, order, spare);
    for (int64_t k = 0; k < count; entry++) {
        const int64_t begin = k;
        const uint64_t key = keys[order[k]];
        const int64_t row = (int64_t)(key >> 32);
        double value = rule == SP_COMBINE_COUNT ? 1 : values[order[k]];
        for (k++; k < count && keys[order[k]] == key; k++) value = combine(value, values[order[k]], rule);
        if (rule == SP_COMBINE_MEAN) value /= (double)(k - begin);
        test_expect(entry < matrix->nnz && entry >= matrix->row_offsets[row] &&
                        entry < matrix->row_offsets[row + 1] && matrix->col_indices[entry] == (int32_t)key,
                    "%s: entry %lld is not at (%lld, %d)", what, (long long)entry, (long long)row, (int32_t)key);
        const double is = test_value(matrix, entry);
        test_expect(is == (matrix->value_type == SP_F32 ? (double)(float)value : value),
                    "%s: (%lld, %d) is %g, not %g", what, (long long)row, (int32_t)key, is, value);
    }
    test_expect(entry == matrix->nnz, "%s: %lld entries, not %lld", what, (long long)matrix->nnz, (long long)entry);
    free_all(keys, order, spare, values);
}

typedef enum coo_shape {
    COO_EVEN,
    COO_SKEWED,       /* as in graphs of few nodes with many edges */
    COO_LONG_ROW,     /* a third in one row */
    COO_ONE_ROW,
    COO_ONE_COL,
    COO_REPEATED,     /* ten of everything */
    COO_FEW_ROWS,     /* fewer than blocks */
    COO_MANY_ROWS,    /* more than groups of blocks, most of them empty */
    COO_BY_COLUMNS,   /* in order of columns */
    COO_TRANSPOSED,   /* and of rows within these */
    COO_IN_ORDER,
    COO_ALMOST,       /* in order up to the last */
    COO_SHAPES
} coo_shape;

static triples shaped_triples(test_random *random, coo_shape shape, int64_t *rows, int64_t *cols)
{
    static const int64_t sizes[COO_SHAPES][3] = {
        {3000, 5000, 200000},  {4096, 4096, 200000}, {2000, 300000, 150000}, {1, 400000, 200000}, {70000, 1, 150000},
        {3000, 3000, 200000},  {7, 100000, 150000},  {900001, 60, 140000},   {3000, 5000, 200000},
        {5000, 4000, 150000},  {4000, 5000, 150000},  {4000, 5000, 150000}};
    const int64_t count = sizes[shape][2];
    *rows = sizes[shape][0];
    *cols = sizes[shape][1];
    triples t = random_triples(random, *rows, *cols, count);
    for (int64_t i = 0; i < count; i++) {
        if (shape == COO_SKEWED) t.rows[i] &= (int32_t)test_below(random, *rows);
        if (shape == COO_SKEWED) t.cols[i] &= (int32_t)test_below(random, *cols);
        if (shape == COO_LONG_ROW && i % 3 == 0) t.rows[i] = 1234;
        if (shape == COO_REPEATED && i >= count / 10) t.rows[i] = t.rows[i % (count / 10)];
        if (shape == COO_REPEATED && i >= count / 10) t.cols[i] = t.cols[i % (count / 10)];
        if (shape == COO_BY_COLUMNS) t.cols[i] = (int32_t)(i * *cols / count);
        if (shape == COO_TRANSPOSED) t.cols[i] = (int32_t)(i / 50);
        if (shape == COO_TRANSPOSED) t.rows[i] = (int32_t)(i % 50 * 100);
        if (shape >= COO_IN_ORDER) t.rows[i] = (int32_t)(i / 50);
        if (shape >= COO_IN_ORDER) t.cols[i] = (int32_t)(i % 50 * 100);
    }
    if (shape == COO_ALMOST) t.cols[count - 1] = t.cols[count - 2];
    return t;
}

CONTEXT_TEST(coo_sorts_many_triples_of_each_shape, 0, 1 + 2 * (_i % 2))
{
    const coo_shape shape = (coo_shape)(_i / 2);
    test_random random = test_seed((uint64_t)_i + 1);
    int64_t rows, cols;
    triples t = shaped_triples(&random, shape, &rows, &cols);
    float *narrow = malloc((size_t)t.count * sizeof *narrow);
    for (int64_t i = 0; i < t.count; i++) narrow[i] = (float)t.values[i];
    for (int variant = 0; variant < 8; variant++) {
        const bool symmetric = variant == 3 && rows == cols, pattern = variant == 6;
        const sp_combine rule = variant < 6 ? (sp_combine)((variant + 3) % 6) : SP_COMBINE_SUM; /* FIRST first */
        const sp_value_type type = variant % 2 ? SP_F64 : SP_F32;
        triples given = t;
        if (pattern) given.values = NULL;
        char what[64];
        snprintf(what, sizeof what, "shape %d, variant %d", (int)shape, variant);
        sp_csr matrix;
        const void *values = pattern ? NULL : type == SP_F32 ? (void *)narrow : (void *)t.values;
        ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = rows, .cols = cols, .count = t.count,
                                                          .row_indices = t.rows, .col_indices = t.cols,
                                                          .values = values, .value_type = type}, rule, symmetric,
                                       &matrix));
        ck_ok(context, sp_csr_check(context, &matrix));
        check_against_sorted(&matrix, &given, rule, symmetric, what);
        sp_csr_free(context, &matrix);
    }
    free_triples(&t);
    free(narrow);
}

CONTEXT_TEST(coo_takes_no_triples, 0, 2)
{
    for (int64_t rows = 0; rows < 3; rows++) {
        sp_csr matrix;
        ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = rows, .cols = rows, .count = 0, .row_indices = NULL,
                                                          .col_indices = NULL}, SP_COMBINE_SUM, rows == 1, &matrix));
        ck_ok(context, sp_csr_check(context, &matrix));
        ck_assert_int_eq(matrix.nnz, 0);
        sp_csr_free(context, &matrix);
    }
}

/* An array of `count` elements where the context computes, or NULL for NULL. */
static void *placed(sp_context *context, int64_t count, size_t size, const void *from)
{
    void *to = NULL;
    if (!from) return NULL;
    ck_ok(context, sp_array_create(context, count, size, test_space(context), &to));
    ck_ok(context, sp_array_copy(context, count, size, to, test_space(context), from, SP_HOST));
    return to;
}

/* The same triples where the context computes, with indices of either type; the matrix in host memory. */
static sp_csr from_placed(sp_context *context, int64_t rows, int64_t cols, const triples *t, sp_index_type type,
                          sp_combine rule, bool symmetric)
{
    const size_t size = type == SP_I64 ? sizeof(int64_t) : sizeof(int32_t);
    const sp_space space = test_space(context);
    int64_t *wide_rows = test_block((size_t)t->count * 8 + 1), *wide_cols = test_block((size_t)t->count * 8 + 1);
    for (int64_t i = 0; i < t->count; i++) wide_rows[i] = t->rows[i], wide_cols[i] = t->cols[i];
    void *const row_indices = placed(context, t->count, size, type == SP_I64 ? (void *)wide_rows : t->rows);
    void *const col_indices = placed(context, t->count, size, type == SP_I64 ? (void *)wide_cols : t->cols);
    void *const values = placed(context, t->count, sizeof(double), t->values);
    sp_csr matrix;
    ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = rows, .cols = cols, .count = t->count,
                                                      .row_indices = row_indices, .col_indices = col_indices,
                                                      .values = values, .index_type = type, .value_type = SP_F64,
                                                      .space = space}, rule, symmetric, &matrix));
    ck_assert_int_eq(matrix.space, space);
    test_to_host(context, &matrix);
    sp_array_free(context, space, row_indices);
    sp_array_free(context, space, col_indices);
    sp_array_free(context, space, values);
    free_all(wide_rows, wide_cols);
    return matrix;
}

CONTEXT_TEST(coo_takes_either_index_type_where_the_context_computes, _i, 2)
{
    for (uint64_t seed = 1; seed <= 72; seed++) {
        test_random random = test_seed(seed);
        const bool symmetric = seed % 3 == 0;
        const int64_t rows = 1 + test_below(&random, 12), cols = symmetric ? rows : 1 + test_below(&random, 90);
        const sp_combine rule = (sp_combine)(seed / 3 % 6);
        triples t = random_triples(&random, rows, cols, test_below(&random, seed % 2 ? 600 : 8));
        double *const given = t.values;
        if (seed % 5 == 0) t.values = NULL;
        for (int64_t i = 0; i < t.count && !t.values; i++) given[i] = 1;
        int *present = test_zeros((size_t)(rows * cols), sizeof *present);
        double *numbers = test_zeros((size_t)(rows * cols), sizeof *numbers);
        combine_dense(&(triples){t.count, t.rows, t.cols, given}, rows, cols, rule, symmetric, present, numbers);
        sp_csr matrix = from_placed(context, rows, cols, &t, seed / 2 % 2 ? SP_I64 : SP_I32, rule, symmetric);
        ck_ok(context, sp_csr_check(context, &matrix));
        check_against_dense(&matrix, present, numbers, seed);
        sp_csr_free(context, &matrix);
        t.values = given;
        free_triples(&t);
        free_all(present, numbers);
    }
}

/* Many triples of three places, with reals of any size: the sum is that of a loop in their order, bit by bit. Zeros of
 * both signs, and NaN, count as in a loop of comparisons. */
CONTEXT_TEST(coo_combines_long_runs_in_order, _i, 2)
{
    enum { RUNS = 3, KINDS = 5, TRIPLES = 20000 };
    static const sp_combine rules[KINDS] = {SP_COMBINE_SUM, SP_COMBINE_MEAN, SP_COMBINE_MAX, SP_COMBINE_MIN,
                                            SP_COMBINE_FIRST};
    for (size_t kind = 0; kind < 3 * KINDS; kind++) {
        test_random random = test_seed(kind);
        const sp_combine rule = rules[kind % KINDS];
        triples t = random_triples(&random, 1, RUNS, TRIPLES);
        double expected[RUNS];
        int64_t seen[RUNS] = {0};
        for (int64_t i = 0; i < t.count; i++) {
            const double size = kind < KINDS ? exp(40 * test_unit(&random)) : (double)test_below(&random, 2);
            t.values[i] = kind >= 2 * KINDS && i % 7 == 0 ? (double)NAN : test_below(&random, 2) ? size : -size;
            double *const kept = &expected[t.cols[i]];
            const double value = t.values[i];
            if (!seen[t.cols[i]]++) *kept = value;
            else if (rule == SP_COMBINE_MAX) *kept = value > *kept ? value : *kept;
            else if (rule == SP_COMBINE_MIN) *kept = value < *kept ? value : *kept;
            else if (rule != SP_COMBINE_FIRST) *kept += value;
        }
        sp_csr matrix = from_placed(context, 1, RUNS, &t, SP_I32, rule, false);
        ck_assert_int_eq(matrix.nnz, RUNS);
        for (int run = 0; run < RUNS; run++) {
            const double should = rule == SP_COMBINE_MEAN ? expected[run] / (double)seen[run] : expected[run];
            const double is = ((double *)matrix.values)[run];
            test_expect(isnan(should) ? isnan(is) : memcmp(&is, &should, sizeof is) == 0,
                        "kind %zu, run %d: %.17g, not %.17g", kind, run, is, should);
        }
        sp_csr_free(context, &matrix);
        free_triples(&t);
    }
}

/* Indices that would be inside if their upper halves were lost. */
CONTEXT_TEST(coo_refuses_wide_positions_outside, _i, 1)
{
    const int64_t inside[] = {0, 1, 0}, outside[] = {0, (int64_t)1 << 32 | 1, 5};
    void *const good = placed(context, 3, sizeof *inside, inside),
        *const bad = placed(context, 3, sizeof *outside, outside);
    sp_coo coo = {.rows = 2, .cols = 2, .count = 3, .row_indices = good, .col_indices = bad, .index_type = SP_I64,
                  .space = test_space(context)};
    sp_csr m;
    test_mark(&m, sizeof m);
    ck_assert_int_eq(sp_csr_from_coo(context, &coo, SP_COMBINE_SUM, false, &m), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(context), "triple 1 is at (1, 4294967297), outside 2 x 2");
    coo.index_type = (sp_index_type)2;
    ck_assert_int_eq(sp_csr_from_coo(context, &coo, SP_COMBINE_SUM, false, &m), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_csr_from_coo(context, NULL, SP_COMBINE_SUM, false, &m), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&m, sizeof m));
    sp_array_free(context, coo.space, good);
    sp_array_free(context, coo.space, bad);
}

/* Each allocation fails in turn: an error, and nothing is left. */
TEST(coo_of_many_triples_survives_without_memory)
{
    enum { COUNT = 140000, SCRATCH = 1 << 21 };
    test_random random = test_seed(5);
    triples t = random_triples(&random, 3000, 3000, COUNT);
    bool failed = true;
    for (int64_t at = 0; failed; at++) {
        test_heap heap = {.fail_at = -1};
        sp_allocator allocator = test_allocator(&heap);
        sp_context *context;
        ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .allocator = &allocator}, &context),
                         SP_OK);
        heap.fail_at = heap.allocations + at;
        sp_csr matrix = {0};
        const sp_status status = sp_csr_from_coo(context, &(sp_coo){.rows = 3000, .cols = 3000, .count = t.count,
                                                                    .row_indices = t.rows, .col_indices = t.cols,
                                                                    .values = t.values, .value_type = SP_F64},
                                                 SP_COMBINE_SUM, true, &matrix);
        failed = status != SP_OK;
        if (failed) ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        else ck_assert_int_le(heap.peak_bytes, 2 * COUNT * (8 + 4 + (int64_t)sizeof(double)) + SCRATCH);
        ck_assert_int_lt(at, 100);
        sp_csr_free(context, &matrix);
        test_end_heap(context, &heap);
    }
    free_triples(&t);
}

CONTEXT_TEST(coo_refuses_positions_outside, 0, 1)
{
    const int32_t inside[] = {0, 1}, outside[] = {0, 2}, below[] = {0, -1};
    sp_csr m;
    test_mark(&m, sizeof m);
    ck_assert_int_eq(sp_csr_from_coo(context, &(sp_coo){.rows = 2, .cols = 2, .count = 2, .row_indices = outside,
                                                        .col_indices = inside}, SP_COMBINE_SUM, false, &m),
                     SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_csr_from_coo(context, &(sp_coo){.rows = 2, .cols = 2, .count = 2, .row_indices = inside,
                                                        .col_indices = below}, SP_COMBINE_SUM, false, &m),
                     SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_csr_from_coo(context, &(sp_coo){.rows = 2, .cols = 3, .count = 2, .row_indices = inside,
                                                        .col_indices = inside}, SP_COMBINE_SUM, true, &m),
                     SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_csr_from_coo(context, &(sp_coo){.rows = 2, .cols = 2, .count = -1, .row_indices = inside,
                                                        .col_indices = inside}, SP_COMBINE_SUM, false, &m),
                     SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&m, sizeof m));
}

/* Orders that make a careless quicksort quadratic: within seconds or the test's time limit ends it. */
CONTEXT_TEST(coo_sorts_long_rows_of_any_order, 0, 1)
{
    enum { COUNT = 400000 };
    int32_t *rows = calloc(COUNT, sizeof *rows), *cols = malloc(COUNT * sizeof *cols);
    for (int order = 0; order < 4; order++) {
        for (int32_t i = 0; i < COUNT; i++)
            cols[i] = order == 0 ? i : order == 1 ? COUNT - 1 - i : order == 2 ? 5 : (i < COUNT / 2 ? i : COUNT - i);
        sp_csr matrix;
        ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = 1, .cols = COUNT, .count = COUNT, .row_indices = rows,
                                                          .col_indices = cols}, SP_COMBINE_MAX, false, &matrix));
        ck_ok(context, sp_csr_check(context, &matrix));
        ck_assert_int_eq(matrix.nnz, order < 2 ? COUNT : order == 2 ? 1 : COUNT / 2 + 1);
        sp_csr_free(context, &matrix);
    }
    free_all(rows, cols);
}

const test_entry coo_tests[] = {
    CASE("matrices", 60),
    TURNS(coo_combines_duplicates_by_each_rule, 2),
    TURNS(coo_sorts_many_triples_of_each_shape, 2 * COO_SHAPES),
    ONCE(coo_takes_no_triples),
    ONCE(coo_of_many_triples_survives_without_memory),
    ON_DEVICES(coo_takes_either_index_type_where_the_context_computes),
    ON_DEVICES(coo_combines_long_runs_in_order),
    ONCE(coo_refuses_positions_outside),
    ON_DEVICES(coo_refuses_wide_positions_outside),
    ONCE(coo_sorts_long_rows_of_any_order),
    {0},
};
