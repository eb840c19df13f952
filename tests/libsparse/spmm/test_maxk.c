/* sp_maxk*, sp_cbsr*: selections against sorted rows; products and gradients against dense references in f64, for all
 * algorithms of plans; rows of many thousand entries; the gradient by its definition; mistakes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "maxk_shared.h"

/* ---- operands -------------------------------------------------------------------------------------------- */

/* Numbers in f64 that a value of `type` can be. */
static double *random_numbers(test_random *random, int64_t count, sp_dense_type type)
{
    double *numbers = test_block((size_t)count * sizeof *numbers + 1);
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = 2 * test_unit(random) - 1;
        if (type == SP_DENSE_F32) numbers[i] = (double)(float)numbers[i];
    }
    return numbers;
}

static sp_cbsr place_kept(sp_context *context, const kept_rows *kept, sp_dense_type type)
{
    const int64_t count = kept->rows * kept->k;
    const size_t size = type == SP_DENSE_F32 ? 4 : 8, column = kept->cols <= 256 ? 1 : 2;
    sp_cbsr made;
    void *values, *columns;
    ck_ok(context, sp_cbsr_create(context, kept->rows, kept->cols, kept->k, type, &made));
    ck_ok(context, sp_array_create(context, count, size, SP_HOST, &values));
    ck_ok(context, sp_array_create(context, count, column, SP_HOST, &columns));
    for (int64_t e = 0; e < count; e++) {
        if (size == 4) ((float *)values)[e] = (float)kept->values[e];
        else ((double *)values)[e] = kept->values[e];
        if (column == 1) ((uint8_t *)columns)[e] = (uint8_t)kept->columns[e];
        else ((uint16_t *)columns)[e] = (uint16_t)kept->columns[e];
    }
    ck_ok(context, sp_array_copy(context, count, size, made.values, made.space, values, SP_HOST));
    ck_ok(context, sp_array_copy(context, count, column, made.columns, made.space, columns, SP_HOST));
    sp_array_free(context, SP_HOST, values);
    sp_array_free(context, SP_HOST, columns);
    return made;
}

/* k distinct columns a row, ascending, and any values. */
static kept_rows random_kept(test_random *random, int64_t rows, int64_t cols, int64_t k, sp_dense_type type)
{
    kept_rows kept = make_kept(rows, cols, k);
    double *values = random_numbers(random, rows * k, type);
    memcpy(kept.values, values, (size_t)(rows * k) * sizeof *values);
    free(values);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0, e = 0; e < k; j++)
            if (test_below(random, cols - j) < k - e) kept.columns[i * k + e++] = (int32_t)j;
    return kept;
}

static double *expanded(const kept_rows *kept)
{
    double *dense = test_zeros((size_t)(kept->rows * kept->cols) + 1, sizeof *dense);
    for (int64_t i = 0; i < kept->rows; i++)
        for (int64_t e = i * kept->k; e < (i + 1) * kept->k; e++)
            dense[i * kept->cols + kept->columns[e]] = kept->values[e];
    return dense;
}

/* Between 1 and all of them, often one of the two, a power of two or its neighbour. */
static int64_t random_k(test_random *random, int64_t cols)
{
    int64_t k = 1 + test_below(random, cols);
    if (test_below(random, 4) == 0) k = test_below(random, 2) ? cols : 1;
    else if (test_below(random, 2)) k = ((int64_t)1 << test_below(random, 7)) + test_below(random, 2);
    return k < cols ? k : cols;
}

/* ---- selection ------------------------------------------------------------------------------------------- */

/* One row of every kind: reals, few different numbers, all the same, negative ones, infinities, zeros of both signs,
 * NaNs. */
static void fill_row(test_random *random, double *row, int64_t cols)
{
    const int64_t kind = test_below(random, 7);
    for (int64_t j = 0; j < cols; j++) {
        const double real = (double)(float)(2 * test_unit(random) - 1);
        const int64_t draw = test_below(random, 4);
        switch (kind) {
        case 0: row[j] = real; break;
        case 1: row[j] = (double)(draw - 2); break;
        case 2: row[j] = 3; break;
        case 3: row[j] = -fabs(real) * 0x1p-100; break;
        case 4: row[j] = draw == 0 ? -INFINITY : draw == 1 ? INFINITY : real; break;
        case 5: row[j] = draw < 3 ? copysign(0, real) : real; break;
        default: row[j] = draw == 0 ? copysign(NAN, real) : real;
        }
    }
}

typedef struct candidate {
    double value;
    int32_t column;
} candidate;

static int by_value(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    const double x = isnan(a->value) ? INFINITY : a->value, y = isnan(b->value) ? INFINITY : b->value;
    if (!isnan(a->value) != !isnan(b->value)) return isnan(a->value) ? -1 : 1;
    return x > y ? -1 : x < y ? 1 : a->column < b->column ? -1 : 1;
}

static int by_column(const void *left, const void *right)
{
    return ((const candidate *)left)->column < ((const candidate *)right)->column ? -1 : 1;
}

static void check_selection(const double *x, const kept_rows *kept, uint64_t seed)
{
    candidate *row = test_block((size_t)kept->cols * sizeof *row);
    for (int64_t i = 0; i < kept->rows; i++) {
        for (int64_t j = 0; j < kept->cols; j++) row[j] = (candidate){x[i * kept->cols + j], (int32_t)j};
        qsort(row, (size_t)kept->cols, sizeof *row, by_value);
        qsort(row, (size_t)kept->k, sizeof *row, by_column);
        for (int64_t e = 0; e < kept->k; e++) {
            const double got = kept->values[i * kept->k + e], value = row[e].value;
            const bool same = isnan(value) ? isnan(got) : got == value && !signbit(got) == !signbit(value);
            test_expect(kept->columns[i * kept->k + e] == row[e].column && same,
                        "seed %llu: entry %lld of row %lld is %g in column %d, not %g in column %d",
                        (unsigned long long)seed, (long long)e, (long long)i, got,
                        (int)kept->columns[i * kept->k + e], value, (int)row[e].column);
        }
    }
    free(row);
}

CONTEXT_TEST(the_largest_are_those_of_the_sorted_row, _i, 2)
{
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(150); seed++) {
        test_random random = test_seed(seed);
        const int64_t cols = widths[seed % WIDTHS], k = random_k(&random, cols), rows = test_below(&random, 40);
        const sp_dense_type type = seed % 2 ? SP_DENSE_F32 : SP_DENSE_F64;
        double *numbers = random_numbers(&random, rows * cols, type);
        for (int64_t i = 0; i < rows; i++) fill_row(&random, numbers + i * cols, cols);
        const int64_t between = test_below(&random, 3) * (test_below(&random, 2) ? 4 : 1); /* packets fit, or not */
        sp_dense x = place(context, numbers, rows, cols, cols + between, type);
        sp_cbsr kept;
        ck_ok(context, sp_cbsr_create(context, rows, cols, k, type, &kept));
        ck_ok(context, sp_maxk(context, &x, &kept));
        kept_rows got = read_kept(context, &kept);
        check_selection(numbers, &got, seed);
        free_kept(&got);
        sp_cbsr_free(context, &kept);
        sp_dense_free(context, &x);
        free(numbers);
    }
}

CONTEXT_TEST(rows_as_wide_as_allowed_are_selected, _i, 1)
{
    enum { ROWS = 3, COLS = 65536 };
    test_random random = test_seed(5);
    double *numbers = random_numbers(&random, ROWS * COLS, SP_DENSE_F32);
    sp_dense x = place(context, numbers, ROWS, COLS, COLS, SP_DENSE_F32);
    for (int64_t k = 1; k <= COLS; k *= 256) {
        sp_cbsr kept;
        ck_ok(context, sp_cbsr_create(context, ROWS, COLS, k, SP_DENSE_F32, &kept));
        ck_ok(context, sp_maxk(context, &x, &kept));
        kept_rows got = read_kept(context, &kept);
        check_selection(numbers, &got, 5);
        free_kept(&got);
        sp_cbsr_free(context, &kept);
    }
    sp_dense_free(context, &x);
    free(numbers);
}

CONTEXT_TEST(expansion_puts_values_back_and_zeros_elsewhere, _i, 2)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        test_random random = test_seed(seed);
        const int64_t cols = widths[seed % WIDTHS], rows = test_below(&random, 30), k = random_k(&random, cols);
        const sp_dense_type type = seed % 2 ? SP_DENSE_F32 : SP_DENSE_F64;
        kept_rows rows_kept = random_kept(&random, rows, cols, k, type);
        double *expected = expanded(&rows_kept), *before = random_numbers(&random, rows * cols, type);
        sp_cbsr kept = place_kept(context, &rows_kept, type);
        sp_dense x = place(context, before, rows, cols, cols + test_below(&random, 3), type);
        ck_ok(context, sp_maxk_expand(context, &kept, &x));
        double *got = take_back(context, &x);
        for (int64_t i = 0; i < rows * cols; i++)
            test_expect(got[i] == expected[i], "seed %llu: number %lld is %g, not %g", (unsigned long long)seed,
                        (long long)i, got[i], expected[i]);
        free_all(got, expected, before);
        free_kept(&rows_kept);
        sp_cbsr_free(context, &kept);
    }
}

/* ---- products -------------------------------------------------------------------------------------------- */

/* made = reduce(A · X) or reduce(Aᵀ · X) and, beside each number, the sum of the magnitudes of its terms. */
static void multiply(const sp_csr *a, bool transpose, bool mean, const double *x, int64_t cols, double *made,
                     double *sizes)
{
    const int64_t rows = transpose ? a->cols : a->rows;
    int64_t *entries = test_zeros((size_t)rows + 1, sizeof *entries);
    memset(made, 0, (size_t)(rows * cols) * sizeof *made);
    memset(sizes, 0, (size_t)(rows * cols) * sizeof *sizes);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t e = a->row_offsets[i]; e < a->row_offsets[i + 1]; e++) {
            const int64_t to = transpose ? a->col_indices[e] : i, from = transpose ? i : a->col_indices[e];
            const double weight = a->values ? test_value(a, e) : 1;
            entries[to]++;
            for (int64_t j = 0; j < cols; j++) {
                made[to * cols + j] += weight * x[from * cols + j];
                sizes[to * cols + j] += fabs(weight * x[from * cols + j]);
            }
        }
    for (int64_t at = 0; mean && at < rows * cols; at++)
        if (entries[at / cols] > 0) made[at] /= (double)entries[at / cols];
    free(entries);
}

typedef struct product_case {
    sp_csr a;
    sp_spmm_options options;
    sp_dense_type type;
    int64_t cols, k;
    int64_t from, to; /* rows that are gathered, rows that are made */
} product_case;

static product_case random_case(sp_context *host, test_random *random, uint64_t seed)
{
    product_case c = {.type = seed % 2 ? SP_DENSE_F32 : SP_DENSE_F64, .cols = widths[seed % WIDTHS]};
    const sp_value_type type = c.type == SP_DENSE_F32 ? SP_F32 : SP_F64;
    const double density = test_unit(random);
    c.k = random_k(random, c.cols);
    c.a = test_matrix(host, random, test_below(random, 120), test_below(random, 120), density * density, type,
                      test_below(random, 3) ? TEST_SIGNED : TEST_PATTERN);
    c.options = (sp_spmm_options){.algorithm = (sp_spmm_algorithm)(seed % ALGORITHMS),
                                  .reduce = test_below(random, 3) ? SP_REDUCE_SUM : SP_REDUCE_MEAN,
                                  .transpose = test_below(random, 2),
                                  .partition_bytes = seed % 3 ? 0 : 2000};
    c.from = c.options.transpose ? c.a.rows : c.a.cols;
    c.to = c.options.transpose ? c.a.cols : c.a.rows;
    return c;
}

static double tolerance(sp_dense_type type) { return type == SP_DENSE_F32 ? 3e-6 : 1e-14; }

DEVICE_TEST(products_agree_with_the_dense_ones, _i, 2)
{
    static const double alphas[] = {1, -0.5, 0}, betas[] = {0, 1, -2.5};
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(200); seed++) {
        test_random random = test_seed(seed);
        product_case c = random_case(host, &random, seed);
        const double alpha = alphas[test_below(&random, 3)], beta = betas[test_below(&random, 3)];
        const int64_t count = c.to * c.cols;
        kept_rows rows_kept = random_kept(&random, c.from, c.cols, c.k, c.type);
        double *x = expanded(&rows_kept), *before = random_numbers(&random, count, c.type);
        double *expected = malloc((size_t)count * sizeof *expected + 1), *sizes = malloc((size_t)count * 8 + 1);
        for (int64_t i = 0; beta == 0 && i < count; i++) before[i] = NAN;
        multiply(&c.a, c.options.transpose, c.options.reduce == SP_REDUCE_MEAN, x, c.cols, expected, sizes);
        sp_cbsr kept = place_kept(context, &rows_kept, c.type);
        sp_dense y = place(context, before, c.to, c.cols, c.cols + test_below(&random, 3), c.type);
        sp_spmm_plan *plan;
        ck_ok(context, sp_spmm_plan_create(context, &c.a, c.cols, &c.options, &plan));
        ck_ok(context, sp_maxk_spmm(plan, alpha, &kept, beta, &y));
        double *got = take_back(context, &y);
        for (int64_t i = 0; i < count; i++) {
            const double kept_before = beta == 0 ? 0 : beta * before[i], wanted = alpha * expected[i] + kept_before;
            test_expect(fabs(got[i] - wanted) <= tolerance(c.type) * (sizes[i] + fabs(kept_before)),
                        "seed %llu: number %lld of a product of rows with %lld of %lld is %g, not %g",
                        (unsigned long long)seed, (long long)i, (long long)c.k, (long long)c.cols, got[i], wanted);
        }
        sp_spmm_plan_free(plan);
        sp_cbsr_free(context, &kept);
        free_kept(&rows_kept);
        free_all(got, x, before, expected, sizes);
        sp_csr_free(host, &c.a);
    }
}

DEVICE_TEST(gradients_are_the_kept_entries_of_dense_products, _i, 2)
{
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(200); seed++) {
        test_random random = test_seed(seed);
        product_case c = random_case(host, &random, seed);
        const int64_t count = c.to * c.cols;
        kept_rows rows_kept = random_kept(&random, c.to, c.cols, c.k, c.type);
        double *gradient = random_numbers(&random, c.from * c.cols, c.type);
        double *expected = malloc((size_t)count * sizeof *expected + 1), *sizes = malloc((size_t)count * 8 + 1);
        multiply(&c.a, c.options.transpose, c.options.reduce == SP_REDUCE_MEAN, gradient, c.cols, expected, sizes);
        sp_cbsr kept = place_kept(context, &rows_kept, c.type);
        sp_dense g = place(context, gradient, c.from, c.cols, c.cols + test_below(&random, 3), c.type);
        sp_spmm_plan *plan;
        ck_ok(context, sp_spmm_plan_create(context, &c.a, c.cols, &c.options, &plan));
        ck_ok(context, sp_maxk_spmm_backward(plan, &g, &kept));
        kept_rows got = read_kept(context, &kept);
        for (int64_t e = 0; e < c.to * c.k; e++) {
            const int64_t at = e / c.k * c.cols + rows_kept.columns[e];
            test_expect(got.columns[e] == rows_kept.columns[e], "seed %llu: column %lld changed",
                        (unsigned long long)seed, (long long)e);
            test_expect(fabs(got.values[e] - expected[at]) <= tolerance(c.type) * sizes[at],
                        "seed %llu: entry %lld of a gradient of rows with %lld of %lld is %g, not %g",
                        (unsigned long long)seed, (long long)e, (long long)c.k, (long long)c.cols, got.values[e],
                        expected[at]);
        }
        sp_spmm_plan_free(plan);
        sp_cbsr_free(context, &kept);
        sp_dense_free(context, &g);
        free_kept(&rows_kept);
        free_kept(&got);
        free_all(gradient, expected, sizes);
        sp_csr_free(host, &c.a);
    }
}

/* <G, A·kept(V)> = <backward(G), V> for every G and V. */
DEVICE_TEST(the_gradient_is_the_adjoint_of_the_product, _i, 2)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        test_random random = test_seed(seed);
        const int64_t rows = 1 + test_below(&random, 200), nodes = 1 + test_below(&random, 200), cols = 48;
        sp_csr a = test_matrix(host, &random, rows, nodes, 0.1, SP_F64, TEST_SIGNED);
        kept_rows v = random_kept(&random, nodes, cols, 1 + test_below(&random, cols), SP_DENSE_F64);
        double *gradient = random_numbers(&random, rows * cols, SP_DENSE_F64);
        sp_cbsr kept = place_kept(context, &v, SP_DENSE_F64);
        sp_dense g = place(context, gradient, rows, cols, cols, SP_DENSE_F64), y;
        sp_spmm_plan *forward, *backward;
        ck_ok(context, sp_dense_create(context, rows, cols, SP_DENSE_F64, test_space(context), &y));
        ck_ok(context, sp_spmm_plan_create(context, &a, cols, NULL, &forward));
        ck_ok(context, sp_spmm_plan_create(context, &a, cols, &(sp_spmm_options){.transpose = true}, &backward));
        ck_ok(context, sp_maxk_spmm(forward, 1, &kept, 0, &y));
        ck_ok(context, sp_maxk_spmm_backward(backward, &g, &kept));
        kept_rows slopes = read_kept(context, &kept);
        double *product = take_back(context, &y), left = 0, right = 0, size = 0;
        for (int64_t i = 0; i < rows * cols; i++) {
            left += gradient[i] * product[i];
            size += fabs(gradient[i] * product[i]);
        }
        for (int64_t e = 0; e < nodes * v.k; e++) right += slopes.values[e] * v.values[e];
        ck_assert_msg(fabs(left - right) <= 1e-12 * size, "seed %llu: %.17g and %.17g", (unsigned long long)seed,
                      left, right);
        sp_spmm_plan_free(forward);
        sp_spmm_plan_free(backward);
        sp_cbsr_free(context, &kept);
        sp_dense_free(context, &g);
        free_kept(&v);
        free_kept(&slopes);
        free_all(gradient, product);
        sp_csr_free(host, &a);
    }
}

/* Two rows with 60,000 and 35,000 entries, some with thousands, most with few: `wide` of them gather from `nodes`. */
static sp_csr hubs(sp_context *host, test_random *random, int64_t rows, int64_t nodes)
{
    static const int64_t lengths[] = {60000, 35000, 9000, 8192, 4097, 2000, 1025, 300, 129, 64, 33};
    const int64_t count = COUNT(lengths);
    int64_t nnz = 0;
    sp_csr a;
    for (int64_t i = 0; i < rows; i++) nnz += i % 7 == 0 && i / 7 < count ? lengths[i / 7] : i % 5;
    ck_ok(host, sp_csr_create(host, rows, nodes, nnz, SP_F32, SP_HOST, &a));
    nnz = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t length = i % 7 == 0 && i / 7 < count ? lengths[i / 7] : i % 5;
        a.row_offsets[i] = nnz;
        for (int64_t j = 0, e = 0; e < length; j++) {
            if (test_below(random, nodes - j) >= length - e) continue;
            a.col_indices[nnz] = (int32_t)j;
            ((float *)a.values)[nnz++] = (float)test_unit(random);
            e++;
        }
    }
    a.row_offsets[rows] = nnz;
    return a;
}

static double *single_column(const double *numbers, int64_t rows, int64_t cols, int64_t column)
{
    double *made = test_block((size_t)rows * sizeof *made);
    for (int64_t i = 0; i < rows; i++) made[i] = numbers[i * cols + column];
    return made;
}

DEVICE_TEST(rows_of_many_thousand_entries_sum_to_five_digits, _i, 2)
{
    enum { ROWS = 200, NODES = 70000, COLS = 96, K = 12 };
    test_random random = test_seed(11);
    sp_csr a = hubs(host, &random, ROWS, NODES);
    kept_rows gathered = random_kept(&random, NODES, COLS, K, SP_DENSE_F32),
              wanted = random_kept(&random, ROWS, COLS, K, SP_DENSE_F32);
    double *x = expanded(&gathered), *gradient = random_numbers(&random, NODES * COLS, SP_DENSE_F32);
    double *zeros = test_zeros(ROWS * COLS, sizeof *zeros);
    for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
        const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)algorithm, .partition_bytes = 1 << 21};
        sp_cbsr kept = place_kept(context, &gathered, SP_DENSE_F32),
                slopes = place_kept(context, &wanted, SP_DENSE_F32);
        sp_dense y = place(context, zeros, ROWS, COLS, COLS, SP_DENSE_F32),
                 g = place(context, gradient, NODES, COLS, COLS, SP_DENSE_F32);
        sp_spmm_plan *plan;
        ck_ok(context, sp_spmm_plan_create(context, &a, COLS, &options, &plan));
        for (int run = 0; run < 2; run++) { /* the second finds what the first left */
            ck_ok(context, sp_maxk_spmm(plan, 1, &kept, 0, &y));
            ck_ok(context, sp_maxk_spmm_backward(plan, &g, &slopes));
        }
        kept_rows got = read_kept(context, &slopes);
        double *product = take_back(context, &y);
        for (int64_t column = 0; column < COLS; column += 19) {
            double expected[ROWS], sizes[ROWS];
            double *one = single_column(x, NODES, COLS, column);
            double *other = single_column(gradient, NODES, COLS, column);
            multiply(&a, false, false, one, 1, expected, sizes);
            for (int64_t i = 0; i < ROWS; i++)
                test_expect(fabs(product[i * COLS + column] - expected[i]) <= 1e-5 * sizes[i],
                            "algorithm %d: row %lld is %g, not %g", algorithm, (long long)i,
                            product[i * COLS + column], expected[i]);
            multiply(&a, false, false, other, 1, expected, sizes);
            for (int64_t e = 0; e < ROWS * K; e++)
                test_expect(wanted.columns[e] != column ||
                                fabs(got.values[e] - expected[e / K]) <= 1e-5 * sizes[e / K],
                            "algorithm %d: gradient %lld is %g, not %g", algorithm, (long long)e, got.values[e],
                            expected[e / K]);
            free_all(one, other);
        }
        sp_spmm_plan_free(plan);
        sp_cbsr_free(context, &kept);
        sp_cbsr_free(context, &slopes);
        sp_dense_free(context, &g);
        free_kept(&got);
        free(product);
    }
    free_all(x, zeros, gradient);
    free_kept(&gathered);
    free_kept(&wanted);
    sp_csr_free(host, &a);
}

HOST_TEST(runs_and_threads_do_not_change_a_bit, 1)
{
    enum { ROWS = 200, NODES = 70000, COLS = 64, K = 9 };
    test_random random = test_seed(13);
    sp_csr a = hubs(host, &random, ROWS, NODES);
    kept_rows gathered = random_kept(&random, NODES, COLS, K, SP_DENSE_F32),
              wanted = random_kept(&random, ROWS, COLS, K, SP_DENSE_F32);
    double *gradient = random_numbers(&random, NODES * COLS, SP_DENSE_F32), *first = NULL, *zeros;
    kept_rows first_slopes = {0};
    zeros = test_zeros(ROWS * COLS, sizeof *zeros);
    for (int run = 0; run < 6; run++) {
        sp_context *context = test_context(_i, 1 + run % 3);
        sp_cbsr kept = place_kept(context, &gathered, SP_DENSE_F32),
                slopes = place_kept(context, &wanted, SP_DENSE_F32);
        sp_dense y = place(context, zeros, ROWS, COLS, COLS, SP_DENSE_F32),
                 g = place(context, gradient, NODES, COLS, COLS, SP_DENSE_F32);
        sp_spmm_plan *plan;
        ck_ok(context, sp_spmm_plan_create(context, &a, COLS, NULL, &plan));
        ck_ok(context, sp_maxk_spmm(plan, 1, &kept, 0, &y));
        ck_ok(context, sp_maxk_spmm_backward(plan, &g, &slopes));
        kept_rows got = read_kept(context, &slopes);
        double *product = take_back(context, &y);
        if (run == 0) {
            first = product;
            first_slopes = got;
        } else {
            ck_assert_mem_eq(product, first, ROWS * COLS * sizeof *product);
            ck_assert_mem_eq(got.values, first_slopes.values, ROWS * K * sizeof *got.values);
            free(product);
            free_kept(&got);
        }
        sp_spmm_plan_free(plan);
        sp_cbsr_free(context, &kept);
        sp_cbsr_free(context, &slopes);
        sp_dense_free(context, &g);
        sp_context_destroy(context);
    }
    free_all(first, zeros, gradient);
    free_kept(&first_slopes);
    free_kept(&gathered);
    free_kept(&wanted);
    sp_csr_free(host, &a);
}

static const test_entry tests[] = {
    CASE("selection", 120),
    ON_DEVICES(the_largest_are_those_of_the_sorted_row),
    ON_DEVICES(rows_as_wide_as_allowed_are_selected),
    ON_DEVICES(expansion_puts_values_back_and_zeros_elsewhere),
    CASE("products", 600),
    ON_DEVICES(products_agree_with_the_dense_ones),
    ON_DEVICES(gradients_are_the_kept_entries_of_dense_products),
    ON_DEVICES(the_gradient_is_the_adjoint_of_the_product),
    ON_DEVICES(rows_of_many_thousand_entries_sum_to_five_digits),
    ON_DEVICES(runs_and_threads_do_not_change_a_bit),
    {0},
};

int main(void) { return test_run("maxk", tests, promises_tests); }
