/* The calls that stand between products: sums and Hadamard products, scaling, extraction, selection, the k largest of
 * a row, row sums and degrees, against dense and obvious references; edge shapes; long rows; refusals; both back ends
 * and both spaces. */
#include <float.h>
#include <math.h>

#include "operations_shared.h"

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
        ck_ok(context, sp_csr_copy(context, &a, test_space(context), &found));
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
        ck_ok(context, sp_csr_copy(context, &m, test_space(context), &a));
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

/* ---- rows ------------------------------------------------------------------------------------------------ */

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

static const test_entry tests[] = {
    CASE("random", 120),
    ON_DEVICES(sums_are_those_of_dense_matrices),
    ON_DEVICES(hadamard_products_are_those_of_dense_matrices),
    ON_DEVICES(scaling_multiplies_rows_and_columns),
    ON_DEVICES(extraction_takes_what_is_listed),
    ON_DEVICES(selection_keeps_what_it_says),
    ON_DEVICES(odd_values_are_compared_as_in_c),
    ON_DEVICES(rows_are_reduced_and_ordered),
    {0},
};

int main(void) { return test_run("operations", tests, select_tests, shapes_tests); }
