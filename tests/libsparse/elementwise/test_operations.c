/* The calls that stand between products: sums and Hadamard products, scaling, extraction, selection, the k largest of
 * a row, row sums and degrees, against dense and obvious references; edge shapes; long rows; refusals; both back ends
 * and both spaces. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "support.h"

/* ---- dense references ------------------------------------------------------------------------------------ */

/* A matrix as numbers and whether they are there. */
typedef struct dense {
    int64_t rows, cols;
    double *number;
    bool *there;
} dense;

static dense dense_create(int64_t rows, int64_t cols)
{
    const size_t count = (size_t)(rows * cols) + 1;
    dense d = {rows, cols, calloc(count, sizeof *d.number), calloc(count, sizeof *d.there)};
    ck_assert(d.number && d.there);
    return d;
}

static void dense_free(dense *d)
{
    free_all(d->number, d->there);
}

static dense dense_of(const sp_csr *m)
{
    dense d = dense_create(m->rows, m->cols);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t k = m->row_offsets[i]; k < m->row_offsets[i + 1]; k++) {
            d.number[i * m->cols + m->col_indices[k]] = test_value(m, k);
            d.there[i * m->cols + m->col_indices[k]] = true;
        }
    return d;
}

static double rounded(double value, sp_value_type type) { return type == SP_F32 ? (double)(float)value : value; }

static sp_space space_of(sp_context *context) { return sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST; }

/* The matrix is well formed, lies where the context computes, and is just what the reference says, which ends. */
static void check_matrix(sp_context *context, sp_csr *m, dense *expected, uint64_t seed)
{
    const unsigned long long s = (unsigned long long)seed;
    test_expect(m->space == space_of(context), "seed %llu: in the wrong space", s);
    test_to_host(context, m);
    ck_ok(context, sp_csr_check(context, m));
    test_expect(m->rows == expected->rows && m->cols == expected->cols, "seed %llu: %lld x %lld, not %lld x %lld", s,
                (long long)m->rows, (long long)m->cols, (long long)expected->rows, (long long)expected->cols);
    dense found = dense_of(m);
    for (int64_t i = 0; i < m->rows * m->cols; i++)
        test_expect(found.there[i] == expected->there[i] && found.number[i] == expected->number[i],
                    "seed %llu: (%lld, %lld) is %d %.17g, not %d %.17g", s, (long long)(i / m->cols),
                    (long long)(i % m->cols), found.there[i], found.number[i], expected->there[i],
                    expected->number[i]);
    dense_free(&found);
    dense_free(expected);
    sp_csr_free(context, m);
}

/* ---- operands -------------------------------------------------------------------------------------------- */

static const double densities[] = {0, 0.02, 0.2, 0.6, 1};

static sp_csr random_matrix(sp_context *context, test_random *random, int64_t rows, int64_t cols, sp_value_type type)
{
    return test_matrix(context, random, rows, cols, densities[test_below(random, 5)], type,
                       (test_values)test_below(random, 4));
}

/* On a GPU every other matrix goes there. */
static sp_csr send(sp_context *context, test_random *random, const sp_csr *m)
{
    sp_csr copy;
    const sp_space space = test_below(random, 2) ? space_of(context) : SP_HOST;
    ck_ok(context, sp_csr_copy(context, m, space, &copy));
    return copy;
}

/* An array of `count` entries in a space at random. */
static void *send_array(sp_context *context, test_random *random, const void *from, int64_t count, size_t size,
                        sp_space *space)
{
    void *to;
    *space = test_below(random, 2) ? space_of(context) : SP_HOST;
    ck_ok(context, sp_array_create(context, count, size, *space, &to));
    ck_ok(context, sp_array_copy(context, count, size, to, *space, from, SP_HOST));
    return to;
}

static sp_csr *take_values(sp_context *context, sp_csr *m)
{
    sp_free(context, m->values);
    m->values = NULL;
    return m;
}

/* `count` rows of `length` entries each, the columns spread over `cols`, but that row `full` has all. */
static sp_csr spread_matrix(sp_context *context, int64_t rows, int64_t cols, int64_t length, int64_t full,
                            sp_value_type type, uint64_t seed)
{
    test_random random = test_seed(seed);
    sp_csr m;
    ck_ok(context, sp_csr_create(context, rows, cols, rows * length + cols, type, SP_HOST, &m));
    int64_t at = 0;
    for (int64_t i = 0; i < rows; i++) {
        m.row_offsets[i] = at;
        const int64_t count = i == full ? cols : length;
        for (int64_t k = 0; k < count; k++, at++) {
            m.col_indices[at] = (int32_t)(cols * k / count + test_below(&random, cols / count));
            const double value = rounded(2 * test_unit(&random) - 1, type);
            if (type == SP_F32) ((float *)m.values)[at] = (float)value;
            else ((double *)m.values)[at] = value;
        }
    }
    m.row_offsets[rows] = m.nnz = at;
    ck_ok(context, sp_csr_check(context, &m));
    return m;
}

/* ---- addition -------------------------------------------------------------------------------------------- */

static dense dense_add(double alpha, const sp_csr *a, double beta, const sp_csr *b)
{
    dense x = dense_of(a), y = dense_of(b), sum = dense_create(a->rows, a->cols);
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        sum.there[i] = x.there[i] || y.there[i];
        sum.number[i] = rounded(x.there[i] && y.there[i] ? alpha * x.number[i] + beta * y.number[i]
                                : x.there[i]             ? alpha * x.number[i]
                                : y.there[i]             ? beta * y.number[i]
                                                         : 0,
                                a->value_type);
    }
    dense_free(&x);
    dense_free(&y);
    return sum;
}

CONTEXT_TEST(sums_are_those_of_dense_matrices, _i, 0)
{
    static const double factors[] = {1, -1, 0.5, 0, 3.7};
    for (int64_t seed = 1; seed <= test_cases(150); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 40), cols = test_below(&random, 90);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        const double alpha = factors[test_below(&random, 5)], beta = factors[test_below(&random, 5)];
        sp_csr x = random_matrix(context, &random, rows, cols, type), a = send(context, &random, &x);
        sp_csr y = random_matrix(context, &random, rows, cols, type), b = send(context, &random, &y), c;
        ck_ok(context, sp_csr_add(context, alpha, &a, beta, &b, &c));
        dense expected = dense_add(alpha, &x, beta, &y);
        ck_assert_ptr_nonnull(c.values);
        check_matrix(context, &c, &expected, (uint64_t)seed);
        sp_csr *all[] = {&x, &y, &a, &b};
        for (int i = 0; i < 4; i++) sp_csr_free(context, all[i]);
    }
}

static dense dense_hadamard(const sp_csr *a, const sp_csr *b)
{
    dense x = dense_of(a), y = dense_of(b);
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        x.there[i] = x.there[i] && y.there[i];
        x.number[i] = x.there[i] ? rounded(x.number[i] * y.number[i], a->value_type) : 0;
    }
    dense_free(&y);
    return x;
}

CONTEXT_TEST(hadamard_products_are_those_of_dense_matrices, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(150); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 40), cols = test_below(&random, 90);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        sp_csr x = random_matrix(context, &random, rows, cols, type), a = send(context, &random, &x);
        sp_csr y = random_matrix(context, &random, rows, cols, type), b = send(context, &random, &y), c;
        ck_ok(context, sp_csr_hadamard(context, &a, &b, &c));
        dense expected = dense_hadamard(&x, &y);
        ck_assert(!c.values == (!x.values && !y.values) && c.value_type == type);
        check_matrix(context, &c, &expected, (uint64_t)seed);
        sp_csr *all[] = {&x, &y, &a, &b};
        for (int i = 0; i < 4; i++) sp_csr_free(context, all[i]);
    }
}

/* ---- scaling --------------------------------------------------------------------------------------------- */

CONTEXT_TEST(scaling_multiplies_rows_and_columns, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(100); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 40), cols = test_below(&random, 60);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        sp_csr x = random_matrix(context, &random, rows, cols, type), a = send(context, &random, &x);
        const sp_space space = a.space;
        double by_row[64], by_col[64];
        for (int i = 0; i < 64; i++) by_row[i] = 2 * test_unit(&random) - 1, by_col[i] = 3 * test_unit(&random);
        sp_space where, there = SP_HOST;
        double *row_factors = send_array(context, &random, by_row, rows, sizeof *by_row, &where), *col_factors;
        do col_factors = send_array(context, &random, by_col, cols, sizeof *by_col, &there);
        while (there != where && (sp_array_free(context, there, col_factors), true));
        const bool no_rows = seed % 5 == 0, no_cols = seed % 3 == 0;
        ck_ok(context, sp_csr_scale(context, &a, no_rows ? NULL : row_factors, no_cols ? NULL : col_factors, where));
        ck_assert(a.space == space && a.values);
        dense expected = dense_of(&x);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) {
                const double factor = (no_rows ? 1 : by_row[i]) * (no_cols ? 1 : by_col[j]);
                expected.number[i * cols + j] = rounded(expected.number[i * cols + j] * factor, type);
            }
        test_to_host(context, &a);
        sp_csr found;
        ck_ok(context, sp_csr_copy(context, &a, space_of(context), &found));
        check_matrix(context, &found, &expected, (uint64_t)seed);
        sp_array_free(context, where, row_factors);
        sp_array_free(context, where, col_factors);
        test_free(context, &x, &a);
    }
}

/* ---- extraction ------------------------------------------------------------------------------------------ */

enum { LIST = 100 };

/* `count` indices below `bound`: any, ascending with repetitions, or ascending strictly (then fewer). */
static int64_t random_list(test_random *random, int32_t *list, int64_t bound, int kind)
{
    int64_t count = bound == 0 ? 0 : test_below(random, LIST);
    for (int64_t i = 0; i < count; i++) list[i] = (int32_t)test_below(random, bound);
    if (kind == 0) return count;
    for (int64_t i = 1; i < count; i++)
        for (int64_t j = i; j > 0 && list[j - 1] > list[j]; j--) {
            const int32_t held = list[j];
            list[j] = list[j - 1];
            list[j - 1] = held;
        }
    if (kind == 1 || count == 0) return count;
    int64_t distinct = 1;
    for (int64_t i = 1; i < count; i++)
        if (list[i] != list[i - 1]) list[distinct++] = list[i];
    return distinct;
}

CONTEXT_TEST(extraction_takes_what_is_listed, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(200); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 40), cols = test_below(&random, 60);
        sp_csr x = random_matrix(context, &random, rows, cols, seed % 2 ? SP_F32 : SP_F64), b;
        sp_csr a = send(context, &random, &x);
        int32_t row_list[LIST], col_list[LIST];
        int64_t row_count = random_list(&random, row_list, rows, (int)test_below(&random, 3));
        int64_t col_count = random_list(&random, col_list, cols, (int)test_below(&random, 3));
        const bool all_rows = test_below(&random, 4) == 0, all_cols = test_below(&random, 4) == 0;
        sp_space where, there;
        int32_t *listed_rows = send_array(context, &random, row_list, row_count, sizeof *row_list, &where);
        int32_t *listed_cols;
        do listed_cols = send_array(context, &random, col_list, col_count, sizeof *col_list, &there);
        while (there != where && (sp_array_free(context, there, listed_cols), true));
        ck_ok(context, sp_csr_extract(context, &a, all_rows ? NULL : listed_rows, row_count,
                                      all_cols ? NULL : listed_cols, col_count, where, &b));
        sp_array_free(context, where, listed_rows);
        sp_array_free(context, where, listed_cols);
        if (all_rows)
            for (row_count = 0; row_count < rows; row_count++) row_list[row_count] = (int32_t)row_count;
        if (all_cols)
            for (col_count = 0; col_count < cols; col_count++) col_list[col_count] = (int32_t)col_count;
        dense from = dense_of(&x), expected = dense_create(row_count, col_count);
        for (int64_t i = 0; i < row_count; i++)
            for (int64_t j = 0; j < col_count; j++) {
                expected.number[i * col_count + j] = from.number[row_list[i] * cols + col_list[j]];
                expected.there[i * col_count + j] = from.there[row_list[i] * cols + col_list[j]];
            }
        dense_free(&from);
        ck_assert(!b.values == !x.values && b.value_type == x.value_type);
        check_matrix(context, &b, &expected, (uint64_t)seed);
        test_free(context, &x, &a);
    }
}

/* ---- selection ------------------------------------------------------------------------------------------- */

static bool selected(sp_select select, int64_t i, int64_t j, double value, double bound)
{
    switch (select) {
    case SP_SELECT_LOWER: return (double)(j - i) <= bound;
    case SP_SELECT_UPPER: return (double)(j - i) >= bound;
    case SP_SELECT_DIAGONAL: return (double)(j - i) == bound;
    case SP_SELECT_OFF_DIAGONAL: return (double)(j - i) != bound;
    case SP_SELECT_LT: return value < bound;
    case SP_SELECT_LE: return value <= bound;
    case SP_SELECT_EQ: return value == bound;
    case SP_SELECT_NE: return value != bound;
    case SP_SELECT_GE: return value >= bound;
    case SP_SELECT_GT: return value > bound;
    case SP_SELECT_ABS_GE: return fabs(value) >= bound;
    }
    ck_abort_msg("selection %d", (int)select);
    return false;
}

/* A diagonal within the matrix or beyond it; a value that there is, one beside it, zero or any number. */
static double random_bound(test_random *random, sp_select select, const sp_csr *m)
{
    static const double far[] = {-INFINITY, -0x1p40, -0x1p31, 0x1p31, 0x1p40, INFINITY};
    const int64_t kind = test_below(random, 5);
    if (select <= SP_SELECT_OFF_DIAGONAL) {
        if (kind == 0) return far[test_below(random, 6)];
        return kind == 1 ? 0 : (double)(test_below(random, m->rows + m->cols + 3) - m->rows - 1);
    }
    const double value = m->nnz ? test_value(m, test_below(random, m->nnz)) : 1;
    switch (kind) {
    case 0: return value;
    case 1: return nextafter(value, 2 * test_unit(random) < 1 ? -INFINITY : INFINITY); /* no f32 where values are */
    case 2: return fabs(value);
    case 3: return 0;
    default: return 2 * test_unit(random) - 1;
    }
}

CONTEXT_TEST(selection_keeps_what_it_says, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(440); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const sp_select select = (sp_select)(seed % (SP_SELECT_ABS_GE + 1));
        const int64_t rows = test_below(&random, 70), cols = test_below(&random, 70);
        sp_csr x = random_matrix(context, &random, rows, cols, test_below(&random, 2) ? SP_F32 : SP_F64), b;
        sp_csr a = send(context, &random, &x);
        const double bound = random_bound(&random, select, &x);
        dense expected = dense_of(&x);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) {
                const int64_t at = i * cols + j;
                expected.there[at] = expected.there[at] && selected(select, i, j, expected.number[at], bound);
                if (!expected.there[at]) expected.number[at] = 0;
            }
        ck_ok(context, sp_csr_select(context, &a, select, bound, &b));
        ck_assert(!b.values == !x.values && b.value_type == x.value_type);
        check_matrix(context, &b, &expected, (uint64_t)seed);
        test_free(context, &x, &a);
    }
}

/* NaN, infinities and both zeros compare as in C; of f32 values, so do bounds that f32 lacks or cannot reach. */
CONTEXT_TEST(odd_values_are_compared_as_in_c, _i, 1)
{
    static const double bounds[] = {0, -0.0, 0.1, -0.1, 1e300, -1e300, 0x1p-160, -0x1p-160, INFINITY, -INFINITY, NAN};
    const double numbers[] = {0, -0.0, NAN, INFINITY, -INFINITY, (double)0.1f, (double)-0.1f, 0.1, FLT_MAX, -FLT_MAX,
                              FLT_TRUE_MIN, -1};
    enum { NUMBERS = COUNT(numbers) };
    for (int type = 0; type < 2; type++) {
        sp_csr m, a, b;
        ck_ok(context, sp_csr_create(context, 1, NUMBERS, NUMBERS, type ? SP_F64 : SP_F32, SP_HOST, &m));
        m.row_offsets[0] = 0;
        m.row_offsets[1] = NUMBERS;
        for (int j = 0; j < NUMBERS; j++) {
            m.col_indices[j] = j;
            if (type) ((double *)m.values)[j] = numbers[j];
            else ((float *)m.values)[j] = (float)numbers[j];
        }
        ck_ok(context, sp_csr_copy(context, &m, space_of(context), &a));
        for (int select = SP_SELECT_LT; select <= SP_SELECT_ABS_GE; select++)
            for (size_t n = 0; n < COUNT(bounds); n++) {
                ck_ok(context, sp_csr_select(context, &a, (sp_select)select, bounds[n], &b));
                test_to_host(context, &b);
                int64_t at = 0;
                for (int j = 0; j < NUMBERS; j++) {
                    if (!selected((sp_select)select, 0, j, test_value(&m, j), bounds[n])) continue;
                    test_expect(at < b.nnz && b.col_indices[at] == j, "selection %d by %g: %g is lost", select,
                                bounds[n], test_value(&m, j));
                    at++;
                }
                test_expect(at == b.nnz, "selection %d by %g: %lld entries too many", select, bounds[n],
                            (long long)(b.nnz - at));
                sp_csr_free(context, &b);
            }
        test_free(context, &a, &m);
    }
}

/* ---- the k largest --------------------------------------------------------------------------------------- */

/* The k largest numbers of each row, of equals those of the lowest columns. */
static void keep_largest(dense *d, int64_t k)
{
    bool stays[700];
    for (int64_t i = 0; i < d->rows; i++) {
        double *number = d->number + i * d->cols;
        bool *there = d->there + i * d->cols;
        for (int64_t j = 0; j < d->cols; j++) {
            int64_t before = 0;
            for (int64_t l = 0; l < d->cols; l++)
                before += there[l] && (number[l] > number[j] || (number[l] == number[j] && l < j));
            stays[j] = there[j] && before < k;
        }
        for (int64_t j = 0; j < d->cols; j++)
            if (!stays[j]) there[j] = false, number[j] = 0;
    }
}

CONTEXT_TEST(the_k_largest_of_each_row_stay, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(150); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 30), cols = test_below(&random, seed % 5 == 0 ? 700 : 70);
        const int64_t k = test_below(&random, 2 + cols / 2);
        sp_csr x = random_matrix(context, &random, rows, cols, seed % 2 ? SP_F32 : SP_F64), b;
        sp_csr a = send(context, &random, &x);
        dense expected = dense_of(&x);
        keep_largest(&expected, k);
        ck_ok(context, sp_csr_top_k(context, &a, k, &b));
        ck_assert(!b.values == !x.values && b.value_type == x.value_type);
        check_matrix(context, &b, &expected, (uint64_t)seed);
        test_free(context, &x, &a);
    }
}

/* Sums run by ascending column of A and are rounded once. */
static dense dense_product(const sp_csr *a, const sp_csr *b, const sp_csr *mask)
{
    dense x = dense_of(a), y = dense_of(b), c = dense_create(a->rows, b->cols);
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t l = 0; l < x.cols; l++)
            for (int64_t j = 0; x.there[i * x.cols + l] && j < c.cols; j++) {
                if (!y.there[l * y.cols + j]) continue;
                c.there[i * c.cols + j] = true;
                c.number[i * c.cols + j] += x.number[i * x.cols + l] * y.number[l * y.cols + j];
            }
    for (int64_t i = 0; i < c.rows * c.cols; i++) c.number[i] = rounded(c.number[i], a->value_type);
    if (mask) {
        dense m = dense_of(mask);
        for (int64_t i = 0; i < c.rows * c.cols; i++)
            if (!m.there[i]) c.there[i] = false, c.number[i] = 0;
        dense_free(&m);
    }
    dense_free(&x);
    dense_free(&y);
    return c;
}

CONTEXT_TEST(the_k_largest_of_each_row_of_a_product, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(60); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 30), inner = test_below(&random, 40), cols = test_below(&random, 50);
        const int64_t k = test_below(&random, 2 + cols / 2);
        const sp_value_type type = seed % 2 ? SP_F32 : SP_F64;
        sp_csr x = random_matrix(context, &random, rows, inner, type), a = send(context, &random, &x);
        sp_csr y = random_matrix(context, &random, inner, cols, type), b = send(context, &random, &y);
        sp_csr mask = random_matrix(context, &random, rows, cols, SP_F32), c;
        const bool masked = seed % 3 == 0;
        const sp_spgemm_options options = {.mask = masked ? &mask : NULL};
        sp_spgemm_info info;
        ck_ok(context, sp_spgemm_top_k(context, &a, &b, k, &options, &c, &info));
        ck_assert(info.nnz == c.nnz && info.batches == 1);
        dense expected = dense_product(&x, &y, options.mask);
        keep_largest(&expected, k);
        check_matrix(context, &c, &expected, (uint64_t)seed);
        sp_csr *all[] = {&x, &y, &a, &b, &mask};
        for (int i = 0; i < 5; i++) sp_csr_free(context, all[i]);
    }
}

/* Blocks of rows under a memory budget: the same bits, with masks, transposes, semirings and C on the host. */
TEST(blocks_of_a_product_keep_their_k_largest)
{
    enum { ROWS = 1200, KEPT = 7 };
    sp_csr mask;
    const sp_spgemm_options kinds[] = {{0}, {.transpose_b = true, .to_host = true}, {.semiring = SP_OR_AND},
                                       {.mask = &mask, .complement = true, .transpose_a = true},
                                       {.mask = &mask, .semiring = SP_MAX_TIMES}};
    const sp_context_options limits = {.device = _i ? "cuda" : "cpu", .memory_budget = 16 << 20};
    sp_context *context = test_context(_i, 0), *limited;
    ck_assert_int_eq(sp_context_create(&limits, &limited), SP_OK);
    for (size_t n = 0; n < COUNT(kinds); n++) {
        test_random random = test_seed(n);
        sp_csr a = test_matrix(context, &random, ROWS, ROWS, 0.04, n % 2 ? SP_F32 : SP_F64, TEST_SIGNED);
        sp_csr b = spread_matrix(context, ROWS, ROWS, 40, 77, a.value_type, n), whole, expected, found;
        mask = test_matrix(context, &random, ROWS, ROWS, 0.2, SP_F32, TEST_PATTERN);
        sp_spgemm_info info;
        ck_ok(context, sp_spgemm(context, &a, &b, &kinds[n], &whole, NULL));
        ck_ok(context, sp_csr_top_k(context, &whole, KEPT, &expected));
        ck_ok(limited, sp_spgemm_top_k(limited, &a, &b, KEPT, &kinds[n], &found, &info));
        ck_assert_int_gt(info.batches, 2);
        ck_assert_int_eq(info.product_nnz, whole.nnz);
        int64_t grouped = 0;
        for (int i = 0; i < info.groups; i++) grouped += info.group[i].count;
        ck_assert(info.groups <= SP_SPGEMM_GROUPS && grouped < ROWS); /* of the last block */
        ck_assert(found.space == (kinds[n].to_host ? SP_HOST : space_of(limited)));
        test_to_host(limited, &found);
        test_to_host(context, &expected);
        test_same(&found, &expected, n);
        sp_csr_free(limited, &found);
        sp_csr *all[] = {&a, &b, &whole, &expected, &mask};
        for (int i = 0; i < 5; i++) sp_csr_free(context, all[i]);
    }
    sp_context_destroy(limited);
    sp_context_destroy(context);
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Rows of 1,000 to 300,000 entries, their values all different, few different ones, or all equal. */
CONTEXT_TEST(long_rows_keep_their_k_largest, _i, 0)
{
    enum { LONGEST = 300000 };
    static const int64_t lengths[] = {1000, 1024, 1025, 4096, 4097, 30000, 0, LONGEST, 3, 8193};
    static const int64_t kept[] = {1, 10, 1024, 4000, 29999, 290000};
    double *sorted = malloc(LONGEST * sizeof *sorted);
    ck_assert_ptr_nonnull(sorted);
    for (int kind = 0; kind < 6; kind++) {
        const sp_value_type type = kind % 2 ? SP_F64 : SP_F32;
        test_random random = test_seed((uint64_t)kind);
        int64_t nnz = 0;
        for (int i = 0; i < 10; i++) nnz += lengths[i];
        sp_csr m, a, b;
        ck_ok(context, sp_csr_create(context, 10, LONGEST, nnz, type, SP_HOST, &m));
        m.row_offsets[0] = 0;
        for (int i = 0; i < 10; i++) {
            m.row_offsets[i + 1] = m.row_offsets[i] + lengths[i];
            for (int64_t e = 0; e < lengths[i]; e++) {
                const double unit = 2 * test_unit(&random) - 1;
                const double value = kind < 2 ? unit : kind < 4 ? floor(unit * 5) : -2;
                m.col_indices[m.row_offsets[i] + e] = (int32_t)(LONGEST - lengths[i] + e);
                if (type == SP_F32) ((float *)m.values)[m.row_offsets[i] + e] = (float)value;
                else ((double *)m.values)[m.row_offsets[i] + e] = value;
            }
        }
        ck_ok(context, sp_csr_copy(context, &m, space_of(context), &a));
        for (size_t n = 0; n < COUNT(kept); n++) {
            const int64_t k = kept[n];
            ck_ok(context, sp_csr_top_k(context, &a, k, &b));
            test_to_host(context, &b);
            ck_ok(context, sp_csr_check(context, &b));
            for (int i = 0; i < 10; i++) {
                const int64_t begin = m.row_offsets[i], length = lengths[i];
                for (int64_t e = 0; e < length; e++) sorted[e] = test_value(&m, begin + e);
                qsort(sorted, (size_t)length, sizeof *sorted, descending);
                const double least = k < length ? sorted[k - 1] : -INFINITY;
                int64_t equals = k, at = b.row_offsets[i];
                for (int64_t e = 0; e < length && sorted[e] > least; e++) equals--;
                for (int64_t e = 0; e < length; e++) {
                    const double value = test_value(&m, begin + e);
                    if (value < least || (value == least && equals-- <= 0)) continue;
                    test_expect(at < b.row_offsets[i + 1] && b.col_indices[at] == m.col_indices[begin + e] &&
                                    test_value(&b, at) == value,
                                "kind %d, k %lld, row %d: entry %lld is lost", kind, (long long)k, i, (long long)e);
                    at++;
                }
                test_expect(at == b.row_offsets[i + 1], "kind %d, k %lld, row %d: too many", kind, (long long)k, i);
            }
            sp_csr_free(context, &b);
        }
        test_free(context, &a, &m);
    }
    free(sorted);
}

/* NaN above infinity, zeros equal. */
CONTEXT_TEST(odd_values_have_their_order, _i, 1)
{
    const double numbers[] = {-0.0, 0.0, -INFINITY, NAN, INFINITY, -1, 0.0};
    static const int32_t expected[] = {3, 4, 0, 1, 6, 5, 2}; /* largest first */
    for (int type = 0; type < 2; type++)
        for (int64_t copies = 1; copies <= 400; copies += 57) { /* of rows that have only zeros beside */
            const int64_t cols = 7 * copies;
            sp_csr m, a, b;
            ck_ok(context, sp_csr_create(context, 1, cols, cols, type ? SP_F64 : SP_F32, SP_HOST, &m));
            m.row_offsets[0] = 0;
            m.row_offsets[1] = cols;
            for (int64_t j = 0; j < cols; j++) {
                const double value = j < 7 ? numbers[j] : -INFINITY;
                m.col_indices[j] = (int32_t)j;
                if (type) ((double *)m.values)[j] = value;
                else ((float *)m.values)[j] = (float)value;
            }
            ck_ok(context, sp_csr_copy(context, &m, space_of(context), &a));
            for (int64_t k = 1; k <= 7; k++) {
                ck_ok(context, sp_csr_top_k(context, &a, k, &b));
                test_to_host(context, &b);
                ck_assert_int_eq(b.nnz, k);
                for (int64_t e = 0; e < k; e++) {
                    bool found = false;
                    for (int64_t o = 0; o < k; o++) found = found || expected[o] == b.col_indices[e];
                    test_expect(found, "%lld of %lld: column %d stays", (long long)k, (long long)cols,
                                b.col_indices[e]);
                }
                sp_csr_free(context, &b);
            }
            test_free(context, &a, &m);
        }
}

/* Memory of the host that runs out at any point of several blocks: nothing is kept. */
TEST(blocks_of_a_product_survive_failed_allocations)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = _i ? "cuda" : "cpu", .threads = 1, .allocator = &allocator,
                                        .memory_budget = 8 << 20};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    sp_csr a = spread_matrix(context, 3000, 3000, 20, 7, SP_F64, 1), c;
    const int64_t before = heap.live_blocks;
    sp_spgemm_info info;
    sp_status status = SP_ERROR_HOST_MEMORY;
    for (int64_t n = 0; status != SP_OK; n += 1 + n / 8) {
        heap.fail_at = heap.allocations + n;
        test_mark(&c, sizeof c);
        status = sp_spgemm_top_k(context, &a, &a, 3, NULL, &c, &info);
        ck_assert(status == SP_OK || (status == SP_ERROR_HOST_MEMORY && test_is_marked(&c, sizeof c)));
        if (status == SP_OK) sp_csr_free(context, &c);
        test_expect(heap.live_blocks == before, "allocation %lld: memory leaked", (long long)n);
    }
    ck_assert_int_gt(info.batches, 2);
    sp_csr_free(context, &a);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

static double reduced_row(const sp_csr *m, int64_t i, sp_combine combine)
{
    const int64_t begin = m->row_offsets[i], count = m->row_offsets[i + 1] - begin;
    double sum = 0, most = -INFINITY, least = INFINITY;
    for (int64_t k = begin; k < begin + count; k++) {
        sum += test_value(m, k);
        most = fmax(most, test_value(m, k));
        least = fmin(least, test_value(m, k));
    }
    if (count == 0) return 0;
    switch (combine) {
    case SP_COMBINE_SUM: return sum;
    case SP_COMBINE_MAX: return most;
    case SP_COMBINE_MIN: return least;
    case SP_COMBINE_FIRST: return test_value(m, begin);
    case SP_COMBINE_MEAN: return sum / (double)count;
    case SP_COMBINE_COUNT: break;
    }
    return (double)count;
}

/* Of every kind, in either space; sums within rounding. */
static void check_rows(sp_context *context, test_random *random, const sp_csr *m)
{
    sp_csr a = send(context, random, m);
    double *result = calloc((size_t)m->rows + 1, sizeof *result);
    int32_t *order = calloc((size_t)m->rows + 1, sizeof *order);
    ck_assert(result && order);
    for (int combine = SP_COMBINE_SUM; combine <= SP_COMBINE_COUNT; combine++) {
        sp_space space;
        void *there = send_array(context, random, result, m->rows, sizeof *result, &space);
        ck_ok(context, sp_csr_reduce_rows(context, &a, (sp_combine)combine, there, space));
        ck_ok(context, sp_array_copy(context, m->rows, sizeof *result, result, SP_HOST, there, space));
        sp_array_free(context, space, there);
        for (int64_t i = 0; i < m->rows; i++) {
            const double expected = reduced_row(m, i, (sp_combine)combine);
            const bool sums = combine == SP_COMBINE_SUM || combine == SP_COMBINE_MEAN;
            const double error = sums ? 1e-15 * (double)(m->row_offsets[i + 1] - m->row_offsets[i]) : 0;
            test_expect(fabs(result[i] - expected) <= error,
                        "seed %llu: row %lld of %lld x %lld by %d is %.17g, not %.17g",
                        (unsigned long long)random->seed, (long long)i, (long long)m->rows, (long long)m->cols,
                        combine, result[i], expected);
        }
    }
    sp_space space;
    void *there = send_array(context, random, order, m->rows, sizeof *order, &space);
    ck_ok(context, sp_csr_degree_order(context, &a, there, space));
    ck_ok(context, sp_array_copy(context, m->rows, sizeof *order, order, SP_HOST, there, space));
    sp_array_free(context, space, there);
    for (int64_t i = 0; i < m->rows; i++) {
        const int32_t row = order[i], before = i > 0 ? order[i - 1] : -1;
        test_expect(row >= 0 && row < m->rows, "seed %llu: row %d", (unsigned long long)random->seed, row);
        if (i == 0) continue;
        const int64_t length = m->row_offsets[row + 1] - m->row_offsets[row];
        const int64_t longer = m->row_offsets[before + 1] - m->row_offsets[before];
        test_expect(longer > length || (longer == length && before < row),
                    "seed %llu: row %d of %lld entries before row %d of %lld", (unsigned long long)random->seed,
                    before, (long long)longer, row, (long long)length);
    }
    free_all(result, order);
    sp_csr_free(context, &a);
}

CONTEXT_TEST(rows_are_reduced_and_ordered, _i, 0)
{
    for (int64_t seed = 1; seed <= test_cases(60); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t rows = test_below(&random, 60), cols = test_below(&random, seed % 4 ? 60 : 900);
        sp_csr m = random_matrix(context, &random, rows, cols, seed % 2 ? SP_F32 : SP_F64);
        check_rows(context, &random, &m);
        sp_csr_free(context, &m);
    }
    for (uint64_t seed = 1; seed <= 4; seed++) {
        test_random random = test_seed(seed);
        sp_csr m = spread_matrix(context, 50, 100000, 1 + 700 * (int64_t)seed, 10 * (int64_t)seed,
                                 seed % 2 ? SP_F32 : SP_F64, seed);
        check_rows(context, &random, &m);
        sp_csr_free(context, &m);
    }
}

/* ---- shapes ---------------------------------------------------------------------------------------------- */

/* Every call on a matrix, on the context and on one that computes on the CPU with one thread: the same bits. */
static void compare_with_host(sp_context *context, const sp_csr *m, uint64_t seed)
{
    sp_context *host = test_context(0, 1);
    test_random random = test_seed(seed);
    sp_csr there, turned, found, expected;
    int32_t rows[300], cols[300], up[300];
    int64_t ascending = 0;
    double *factors = malloc((size_t)(m->rows + m->cols + 1) * sizeof *factors);
    ck_assert_ptr_nonnull(factors);
    for (int64_t i = 0; i < m->rows + m->cols; i++) factors[i] = test_unit(&random);
    for (int i = 0; i < 300; i++) {
        rows[i] = m->rows ? (int32_t)test_below(&random, m->rows) : 0;
        cols[i] = m->cols ? (int32_t)test_below(&random, m->cols) : 0;
    }
    for (int64_t j = 0; j < m->cols && ascending < 300; j += 1 + m->cols / 300) up[ascending++] = (int32_t)j;
    const int64_t row_count = m->rows ? 300 : 0, col_count = m->cols ? 300 : 0;
    ck_ok(context, sp_csr_copy(context, m, space_of(context), &there));

    ck_ok(context, sp_csr_extract(context, &there, rows, row_count, cols, col_count, SP_HOST, &found));
    ck_ok(host, sp_csr_extract(host, m, rows, row_count, cols, col_count, SP_HOST, &expected));
    test_to_host(context, &found);
    test_same(&found, &expected, seed);
    sp_csr_free(context, &found);
    sp_csr_free(host, &expected);

    ck_ok(context, sp_csr_extract(context, &there, NULL, 0, up, ascending, SP_HOST, &found));
    ck_ok(host, sp_csr_extract(host, m, NULL, 0, up, ascending, SP_HOST, &expected));
    test_to_host(context, &found);
    test_same(&found, &expected, seed);
    sp_csr_free(context, &found);
    sp_csr_free(host, &expected);

    for (int64_t k = 0; k < 5000; k = 3 * k + 1) {
        ck_ok(context, sp_csr_top_k(context, &there, k, &found));
        ck_ok(host, sp_csr_top_k(host, m, k, &expected));
        test_to_host(context, &found);
        test_same(&found, &expected, seed);
        sp_csr_free(context, &found);
        sp_csr_free(host, &expected);
    }

    /* A and what its rows have turned by one: partly the same places. */
    ck_ok(context, sp_csr_copy(context, m, SP_HOST, &turned));
    if (m->rows > 1) {
        int32_t *order = malloc((size_t)m->rows * sizeof *order);
        ck_assert_ptr_nonnull(order);
        for (int64_t i = 0; i < m->rows; i++) order[i] = (int32_t)((i + 1) % m->rows);
        sp_csr_free(context, &turned);
        ck_ok(host, sp_csr_extract(host, m, order, m->rows, NULL, 0, SP_HOST, &turned));
        free(order);
    }
    for (int same = 0; same < 2; same++) {
        ck_ok(context, sp_csr_add(context, 0.3, &there, -1.7, same ? &there : &turned, &found));
        ck_ok(host, sp_csr_add(host, 0.3, m, -1.7, same ? m : &turned, &expected));
        test_to_host(context, &found);
        test_same(&found, &expected, seed);
        sp_csr_free(context, &found);
        sp_csr_free(host, &expected);
    }
    for (int same = 0; same < 2; same++) {
        ck_ok(context, sp_csr_hadamard(context, same ? &there : &turned, &there, &found));
        ck_ok(host, sp_csr_hadamard(host, same ? m : &turned, m, &expected));
        if (same) ck_assert_int_eq(expected.nnz, m->nnz);
        test_to_host(context, &found);
        test_same(&found, &expected, seed);
        sp_csr_free(context, &found);
        sp_csr_free(host, &expected);
    }
    sp_csr_free(m->rows > 1 ? host : context, &turned);

    for (int select = SP_SELECT_LOWER; select <= SP_SELECT_ABS_GE; select++) {
        const bool of_places = select <= SP_SELECT_OFF_DIAGONAL;
        const double bound = of_places ? (double)(test_below(&random, m->cols + 1) - m->rows / 2) : 0.5;
        ck_ok(context, sp_csr_select(context, &there, (sp_select)select, bound, &found));
        ck_ok(host, sp_csr_select(host, m, (sp_select)select, bound, &expected));
        test_to_host(context, &found);
        test_same(&found, &expected, seed);
        sp_csr_free(context, &found);
        sp_csr_free(host, &expected);
    }

    ck_ok(host, sp_csr_copy(host, m, SP_HOST, &expected));
    ck_ok(context, sp_csr_scale(context, &there, factors, factors + m->rows, SP_HOST));
    ck_ok(host, sp_csr_scale(host, &expected, factors, factors + m->rows, SP_HOST));
    test_to_host(context, &there);
    test_same(&there, &expected, seed);
    sp_csr_free(context, &there);
    sp_csr_free(host, &expected);
    free(factors);
    sp_context_destroy(host);
}

CONTEXT_TEST(shapes_at_the_edge, _i, 3)
{
    static const struct {
        int64_t rows, cols;
        double density;
    } shapes[] = {{0, 0, 0}, {0, 9, 0}, {9, 0, 0}, {1, 1, 1}, {1, 5000, 0.5}, {5000, 1, 0.5}, {300, 200, 0},
                  {1, 5000, 1}, {40, 40, 1}, {2500, 40, 0.002}};
    for (size_t n = 0; n < COUNT(shapes); n++)
        for (int values = 0; values < 4; values++) {
            test_random random = test_seed(n);
            sp_csr m = test_matrix(context, &random, shapes[n].rows, shapes[n].cols, shapes[n].density,
                                   values % 2 ? SP_F64 : SP_F32, (test_values)values);
            compare_with_host(context, &m, n);
            check_rows(context, &random, &m);
            sp_csr_free(context, &m);
        }
}

/* One dense row among short ones; hundreds of thousands of rows without entries; degrees as skewed as an R-MAT's. */
CONTEXT_TEST(skewed_rows, _i, 0)
{
    for (int pattern = 0; pattern < 2; pattern++) {
        sp_csr m = spread_matrix(context, 2000, 60000, 7, 1234, SP_F32, 1);
        compare_with_host(context, pattern ? take_values(context, &m) : &m, 1);
        sp_csr_free(context, &m);
        m = spread_matrix(context, 3, 30000, 9000, 1, SP_F64, 2);
        int64_t *offsets;
        ck_ok(context, sp_alloc(context, 400001, sizeof *offsets, (void **)&offsets));
        for (int64_t i = 0; i <= 400000; i++)
            offsets[i] = i <= 100 ? 0 : i <= 200000 ? m.row_offsets[1] : i <= 200005 ? m.row_offsets[2] : m.nnz;
        sp_free(context, m.row_offsets);
        m.row_offsets = offsets;
        m.rows = 400000;
        compare_with_host(context, pattern ? take_values(context, &m) : &m, 2);
        sp_csr_free(context, &m);
        ck_ok(context, generate_matrix(context, "rmat:13,12", 3, SP_F32, &m));
        compare_with_host(context, pattern ? take_values(context, &m) : &m, 3);
        sp_csr_free(context, &m);
    }
}

/* ---- properties ------------------------------------------------------------------------------------------ */

CONTEXT_TEST(a_symmetric_matrix_scaled_alike_stays_so, _i, 0)
{
    test_random random = test_seed(5);
    sp_csr m = test_communities(context, &random, 5, 20, 0.5, 0.1), a, turned;
    double factors[100];
    for (int i = 0; i < 100; i++) factors[i] = 1 / sqrt(1 + 50 * test_unit(&random));
    ck_ok(context, sp_csr_copy(context, &m, space_of(context), &a));
    ck_ok(context, sp_csr_scale(context, &a, factors, factors, SP_HOST));
    test_to_host(context, &a);
    ck_ok(context, sp_csr_transpose(context, &a, &turned));
    test_same(&a, &turned, 5);
    sp_csr *all[] = {&m, &a, &turned};
    for (int i = 0; i < 3; i++) sp_csr_free(context, all[i]);
}

CONTEXT_TEST(a_permutation_taken_twice_is_that_of_csr_permute, _i, 0)
{
    sp_csr m, a, found, expected;
    int32_t order[4096], place[4096];
    ck_ok(context, generate_matrix(context, "rmat:12,8", 7, SP_F64, &m));
    ck_assert_int_eq(m.rows, 4096);
    ck_ok(context, sp_csr_degree_order(context, &m, order, SP_HOST));
    for (int i = 0; i < 4096; i++) place[order[i]] = i;
    ck_ok(context, sp_csr_copy(context, &m, space_of(context), &a));
    ck_ok(context, sp_csr_extract(context, &a, order, 4096, order, 4096, SP_HOST, &found));
    ck_ok(context, sp_csr_permute(context, &m, order, place, &expected));
    test_to_host(context, &found);
    test_same(&found, &expected, 7);
    sp_csr *all[] = {&m, &a, &found, &expected};
    for (int i = 0; i < 4; i++) sp_csr_free(context, all[i]);
}

/* ---- refusals -------------------------------------------------------------------------------------------- */

CONTEXT_TEST(what_does_not_fit_is_refused, _i, 1)
{
    test_random random = test_seed(1);
    sp_csr a = test_matrix(context, &random, 6, 8, 0.5, SP_F32, TEST_SIGNED);
    sp_csr doubles = test_matrix(context, &random, 6, 8, 0.5, SP_F64, TEST_SIGNED);
    sp_csr wide = test_matrix(context, &random, 6, 9, 0.5, SP_F32, TEST_SIGNED), c;
    const int32_t good[] = {5, 0, 5}, high[] = {1, 2, 6}, low[] = {1, -1, 3}, high_column[] = {7, 8};
    double result[6];
    sp_csr device = a;
    for (int space = 0; space <= (space_of(context) == SP_DEVICE); space++) {
        if (space) ck_ok(context, sp_csr_copy(context, &a, SP_DEVICE, &device));
#define REFUSED(call, status, words)                                                                        \
    do {                                                                                                    \
        test_mark(&c, sizeof c);                                                                           \
        ck_assert_int_eq((call), status);                                                                   \
        test_expect(strstr(sp_last_error(context), words), "%s: %s", #call, sp_last_error(context));        \
        test_expect(test_is_marked(&c, sizeof c), "%s: the output was touched", #call);                     \
    } while (0)
        REFUSED(sp_csr_add(context, 1, &device, 1, &wide, &c), SP_ERROR_ARGUMENT, "6 x 9");
        REFUSED(sp_csr_add(context, 1, &device, 1, &doubles, &c), SP_ERROR_ARGUMENT, "same type");
        REFUSED(sp_csr_extract(context, &device, high, 3, NULL, 0, SP_HOST, &c), SP_ERROR_ARGUMENT,
                "row 6, number 2 (from 0) of the list");
        REFUSED(sp_csr_extract(context, &device, low, 3, NULL, 0, SP_HOST, &c), SP_ERROR_ARGUMENT,
                "row -1, number 1 (from 0) of the list");
        REFUSED(sp_csr_extract(context, &device, good, 3, high_column, 2, SP_HOST, &c), SP_ERROR_ARGUMENT,
                "column 8, number 1 (from 0) of the list");
        REFUSED(sp_csr_extract(context, &device, good, -1, NULL, 0, SP_HOST, &c), SP_ERROR_ARGUMENT, "-1 rows");
        REFUSED(sp_csr_extract(context, &device, NULL, 0, good, (int64_t)1 << 31, SP_HOST, &c), SP_ERROR_ARGUMENT,
                "2147483648 columns");
        REFUSED(sp_csr_hadamard(context, &device, &wide, &c), SP_ERROR_ARGUMENT, "6 x 9");
        REFUSED(sp_csr_hadamard(context, &doubles, &device, &c), SP_ERROR_ARGUMENT, "same type");
        REFUSED(sp_csr_select(context, &device, SP_SELECT_LOWER, 0.5, &c), SP_ERROR_ARGUMENT, "diagonal 0.5");
        REFUSED(sp_csr_select(context, &device, SP_SELECT_OFF_DIAGONAL, NAN, &c), SP_ERROR_ARGUMENT, "diagonal nan");
        REFUSED(sp_csr_select(context, &device, (sp_select)(SP_SELECT_ABS_GE + 1), 0, &c), SP_ERROR_ARGUMENT, "11");
        REFUSED(sp_csr_select(context, &device, (sp_select)-1, 0, &c), SP_ERROR_ARGUMENT, "-1");
        REFUSED(sp_csr_top_k(context, &device, -1, &c), SP_ERROR_ARGUMENT, "-1 entries");
        REFUSED(sp_spgemm_top_k(context, &device, &device, -1, NULL, &c, NULL), SP_ERROR_ARGUMENT, "-1 entries");
        REFUSED(sp_spgemm_top_k(context, &device, &wide, 1, NULL, &c, NULL), SP_ERROR_ARGUMENT, "6 x 9");
        REFUSED(sp_csr_reduce_rows(context, &device, (sp_combine)6, result, SP_HOST), SP_ERROR_ARGUMENT, "6");
        REFUSED(sp_csr_reduce_rows(context, &device, (sp_combine)-1, result, SP_HOST), SP_ERROR_ARGUMENT, "-1");
    }
    if (device.space == SP_DEVICE) sp_csr_free(context, &device);
    if (space_of(context) == SP_HOST) { /* what another context has on a device */
        device.space = SP_DEVICE;
        const double *factors = result;
        REFUSED(sp_csr_add(context, 1, &device, 1, &a, &c), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_extract(context, &device, good, 3, NULL, 0, SP_HOST, &c), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_extract(context, &a, good, 3, NULL, 0, SP_DEVICE, &c), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_hadamard(context, &a, &device, &c), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_select(context, &device, SP_SELECT_GT, 0, &c), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_top_k(context, &device, 1, &c), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_scale(context, &device, factors, NULL, SP_HOST), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_scale(context, &a, factors, NULL, SP_DEVICE), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_reduce_rows(context, &device, SP_COMBINE_SUM, result, SP_HOST), SP_ERROR_ARGUMENT, "device");
        REFUSED(sp_csr_reduce_rows(context, &a, SP_COMBINE_SUM, result, SP_DEVICE), SP_ERROR_ARGUMENT, "device");
    }
    sp_csr *all[] = {&a, &doubles, &wide};
    for (int i = 0; i < 3; i++) sp_csr_free(context, all[i]);
}

/* Device memory that runs out at every point of every call: a status that says so, no output, nothing kept. */
TEST(too_little_device_memory_leaves_nothing)
{
    enum { BUDGET = 1 << 20, STEP = 1 << 14 };
    const sp_context_options options = {.device = "cuda", .memory_budget = BUDGET};
    const int32_t down[] = {900, 900, 5}, up[] = {5, 900};
    double factors[5000] = {0};
    sp_context *context;
    sp_csr host, a, made, pattern;
    void *rest;
    int64_t room = BUDGET;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    host = spread_matrix(context, 1000, 5000, 8, 7, SP_F32, 1);
    ck_ok(context, sp_csr_copy(context, &host, SP_DEVICE, &a));
    while (sp_array_create(context, room, 1, SP_DEVICE, &rest) != SP_OK) room -= 4096;
    sp_array_free(context, SP_DEVICE, rest);
    for (int call = 0; call < 9; call++) {
        sp_status status = SP_ERROR_DEVICE_MEMORY;
        int failures = 0;
        for (int64_t held = room; held >= 0 && status != SP_OK; held -= STEP, failures++) {
            memset(&made, 0, sizeof made);
            pattern = a;
            pattern.values = NULL;
            ck_ok(context, sp_array_create(context, held, 1, SP_DEVICE, &rest));
            switch (call) {
            case 0: status = sp_csr_add(context, 1, &a, 2, &a, &made); break;
            case 1: status = sp_csr_top_k(context, &a, 2, &made); break;
            case 2: status = sp_csr_extract(context, &a, down, 3, down, 3, SP_HOST, &made); break;
            case 3: status = sp_csr_extract(context, &a, NULL, 0, up, 2, SP_HOST, &made); break;
            case 4: status = sp_csr_reduce_rows(context, &a, SP_COMBINE_SUM, factors, SP_HOST); break;
            case 5: status = sp_csr_degree_order(context, &a, (int32_t *)factors, SP_HOST); break;
            case 6: status = sp_csr_hadamard(context, &a, &pattern, &made); break;
            case 7: status = sp_csr_select(context, &a, SP_SELECT_UPPER, 0, &made); break;
            default: status = sp_csr_scale(context, &pattern, factors, factors, SP_HOST);
            }
            sp_array_free(context, SP_DEVICE, rest);
            if (status != SP_OK) {
                test_expect(status == SP_ERROR_DEVICE_MEMORY, "call %d: %s", call, sp_last_error(context));
                ck_assert(!made.row_offsets && !made.col_indices && !made.values && !pattern.values);
            }
            sp_csr_free(context, &made);
            sp_array_free(context, SP_DEVICE, pattern.values);
        }
        test_expect(status == SP_OK && failures > 0, "call %d: %s after %d failures", call, sp_last_error(context),
                    failures);
        ck_ok(context, sp_array_create(context, room, 1, SP_DEVICE, &rest));
        sp_array_free(context, SP_DEVICE, rest);
    }
    test_free(context, &a, &host);
    sp_context_destroy(context);
}

static const test_entry tests[] = {
    CASE("random", 120),
    ON_DEVICES(sums_are_those_of_dense_matrices),
    ON_DEVICES(hadamard_products_are_those_of_dense_matrices),
    ON_DEVICES(scaling_multiplies_rows_and_columns),
    ON_DEVICES(extraction_takes_what_is_listed),
    ON_DEVICES(selection_keeps_what_it_says),
    ON_DEVICES(odd_values_are_compared_as_in_c),
    ON_DEVICES(the_k_largest_of_each_row_stay),
    ON_DEVICES(the_k_largest_of_each_row_of_a_product),
    ON_DEVICES(rows_are_reduced_and_ordered),
    ON_DEVICES(odd_values_have_their_order),
    ON_DEVICES(what_does_not_fit_is_refused),
    CASE("shapes", 120),
    ON_DEVICES(shapes_at_the_edge),
    ON_DEVICES(skewed_rows),
    ON_DEVICES(long_rows_keep_their_k_largest),
    ON_DEVICES(blocks_of_a_product_keep_their_k_largest),
    ON_DEVICES(blocks_of_a_product_survive_failed_allocations),
    ON_DEVICES(a_symmetric_matrix_scaled_alike_stays_so),
    ON_DEVICES(a_permutation_taken_twice_is_that_of_csr_permute),
    ON_CUDA(too_little_device_memory_leaves_nothing),
    {0},
};

int main(void) { return test_run("operations", tests); }
