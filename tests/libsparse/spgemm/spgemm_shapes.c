/* test_spgemm: operands that reach each class of rows and each boundary between classes. */
#include <math.h>
#include <stdio.h>

#include "spgemm_shared.h"

/* Products a row on both sides of every limit that the back ends have. */
static const int64_t limits[] = {0,   1,   2,    3,    4,    5,    7,    8,    9,    15,   16,   17,   31,   32,
                                 33,  63,  64,   65,   95,   96,   97,   127,  128,  129,  255,  256,  257,  511,
                                 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 6145, 8191, 8192,
                                 8193, 16384, 16385};
enum { LIMITS = COUNT(limits), BITS = 15 };

/* In brief a row of each class, of the most products that it may have, and one of the longest. */
static int64_t limit(int i)
{
    const bool largest = (limits[i] & (limits[i] - 1)) == 0 && i < LIMITS - 2;
    return !test_is_brief() || largest || i == LIMITS - 1 ? limits[i] : 0;
}

/* Of shapes in columns that lie far apart, whose wide rows cost time by the column. */
static int64_t most_columns(void) { return test_is_brief() ? 1 << 22 : INT32_MAX; }

/* A whose rows have limits[] products with a B whose row r has 2^r entries: one entry of A a bit of the number. Each
 * row stands three times in succession, in brief once. */
static sp_csr binary_rows(sp_context *host, test_random *random, sp_value_type type)
{
    const int times = test_is_brief() ? 1 : 3;
    entry_list list = {0};
    for (int i = 0; i < times * LIMITS; i++)
        for (int bit = 0; bit < BITS; bit++)
            if (limit(i / times) >> bit & 1) entry_add(&list, i, bit, product_value(random));
    return entry_matrix(host, &list, times * LIMITS, BITS, type, false);
}

/* Rows of 2^r entries of which no two have a column in common; `multiplier` is odd and scatters them. */
static sp_csr disjoint_rows(sp_context *host, test_random *random, sp_value_type type, int64_t multiplier,
                            int64_t stride)
{
    entry_list list = {0};
    for (int r = 0; r < BITS; r++)
        for (int64_t k = (int64_t)1 << r; k < (int64_t)2 << r; k++)
            entry_add(&list, r, k * multiplier % (1 << BITS) * stride, product_value(random));
    return entry_matrix(host, &list, BITS, stride == 1 ? 1 << BITS : most_columns(), type, false);
}

/* A · A. */
static product square_of(sp_csr a) { return (product){.a = a, .b_is_a = true}; }

/* Operands by a recipe. */
#define SHAPE(name) static product name(sp_context *host, test_random *random, sp_value_type type)

SHAPE(every_limit_all_columns_differ)
{
    sp_csr a = binary_rows(host, random, type);
    return product_of(a, disjoint_rows(host, random, type, 1, 1));
}

SHAPE(every_limit_in_columns_up_to_2_31)
{
    sp_csr a = binary_rows(host, random, type);
    return product_of(a, disjoint_rows(host, random, type, 2531, most_columns() >> BITS));
}

SHAPE(every_limit_columns_in_common)
{
    sp_csr a = binary_rows(host, random, type);
    entry_list list = {0};
    for (int r = 0; r < BITS; r++)
        for (int64_t k = 0; k < (int64_t)1 << r; k++) entry_add(&list, r, k, product_value(random));
    return product_of(a, entry_matrix(host, &list, BITS, 1 << BITS, type, false));
}

/* Rows of limits[] entries, in brief without the longest, each of which meets a row of B with one entry, in column
 * j % period · stride. */
static product single_entries(sp_context *host, test_random *random, sp_value_type type, int64_t period,
                              int64_t stride)
{
    const int64_t inner = limits[LIMITS - 1], most = test_is_brief() ? 2048 : inner;
    entry_list list = {0};
    for (int i = 0; i < LIMITS; i++)
        for (int64_t j = 0; j < limit(i) && limit(i) <= most; j++) entry_add(&list, i, j, product_value(random));
    sp_csr a = entry_matrix(host, &list, LIMITS, inner, type, false);
    for (int64_t j = 0; j < inner; j++) entry_add(&list, j, j % period * stride, product_value(random));
    return product_of(a, entry_matrix(host, &list, inner, period * stride, type, false));
}

SHAPE(all_on_one_column) { return single_entries(host, random, type, 1, 1); }
SHAPE(all_on_seven_far_columns) { return single_entries(host, random, type, 7, 100003); }

/* As many as a table to sum holds, and one more. */
SHAPE(all_on_768_columns) { return single_entries(host, random, type, 768, 1361); }
SHAPE(all_on_769_columns) { return single_entries(host, random, type, 769, 1361); }
SHAPE(all_on_columns_of_their_own) { return single_entries(host, random, type, limits[LIMITS - 1], 1); }

/* Most rows span some hundreds of columns, some all of them, others none. */
static product local_rows(sp_context *host, test_random *random, sp_value_type type, int rows, int distance)
{
    entry_list list = {0};
    for (int i = 0; i < rows; i++)
        for (int j = i - 3; j <= i + 3 && i % 16; j++)
            if (j >= 0 && j < rows) entry_add(&list, i, i % 40 == 1 ? (j + rows / 2) % rows : j, product_value(random));
    entry_add(&list, 8, rows - 1, product_value(random));
    sp_csr a = entry_matrix(host, &list, rows, rows, type, false);
    for (int j = 0; j < rows; j++)
        for (int k = 0; k < 6 && j % 32; k++) {
            const int near = j * distance + 7 * k % distance, far = test_below(random, 2) ? k : rows * distance - 1 - k;
            entry_add(&list, j, j % 24 ? near : far, product_value(random));
        }
    return product_of(a, entry_matrix(host, &list, rows, rows * distance, type, false));
}
SHAPE(columns_of_a_row_lie_together) { return local_rows(host, random, type, 320, 199); }
/* Too many columns for a sum each, beside such small matrices. */
SHAPE(together_in_many_columns) { return local_rows(host, random, type, 4000, 40); }

/* A row has up to 30 products on up to 23 columns. The last of these is the matrix's last column. Some rows of B are
 * empty. */
SHAPE(few_products_on_few_columns)
{
    const int64_t cols = test_is_brief() ? 1 << 22 : (1 << 28) - 1;
    entry_list list = {0};
    for (int i = 0; i < 600; i++)
        for (int64_t k = test_below(random, 7); k > 0; k--)
            entry_add(&list, i, i % 50 ? test_below(random, 96) : 6 * k, product_value(random));
    sp_csr a = entry_matrix(host, &list, 600, 96, type, false);
    for (int j = 0; j < 96; j++)
        for (int k = 0; k < j % 6; k++)
            entry_add(&list, j, cols - 1 - (j / 6 * 7 + k * 5) % 23 * (cols / 23), product_value(random));
    return product_of(a, entry_matrix(host, &list, 96, cols, type, false));
}

/* Rows of B whose columns follow each other, or do but for one. */
SHAPE(runs_of_neighbouring_columns)
{
    static const int starts[] = {0, 1, 31, 63, 64, 65, 100, 127}, lengths[] = {31, 32, 33, 63, 64, 65, 128, 200, 600};
    const int places = COUNT(starts), count = places * (int)COUNT(lengths);
    entry_list list = {0};
    for (int i = 0; i < 200; i++)
        for (int64_t k = 0; k <= i % 5; k++) entry_add(&list, i, test_below(random, count), product_value(random));
    sp_csr a = entry_matrix(host, &list, 200, count, type, false);
    for (int j = 0; j < count; j++)
        for (int k = 0, length = lengths[j / places]; k < length; k++) {
            const int gap = j % 7 == 0 && k == length / 2;
            entry_add(&list, j, starts[j % places] + k + gap, product_value(random));
        }
    return product_of(a, entry_matrix(host, &list, count, 800, type, false));
}

/* Few columns at the ends of column ranges, many products on each: no cut of the columns leaves few in a range. */
SHAPE(heaps_beside_empty_ranges)
{
    static const int32_t columns[] = {0,    511,  512,  1022, 1023,    1024,          1025,         2047, 2048,
                                      4095, 4096, 5000, 5001, 1 << 20, (1 << 20) + 1, (1 << 21) - 1};
    enum { INNER = 2600 };
    entry_list list = {0};
    for (int i = 0; i < LIMITS; i++)
        for (int64_t j = 0; j < limit(i) && j < INNER; j++) entry_add(&list, i, j * 7 % INNER, product_value(random));
    sp_csr a = entry_matrix(host, &list, LIMITS, INNER, type, false);
    for (int64_t j = 0; j < INNER; j++)
        for (size_t c = 0; c < COUNT(columns); c++)
            if (test_below(random, 3)) entry_add(&list, j, columns[c], product_value(random));
    return product_of(a, entry_matrix(host, &list, INNER, 1 << 21, type, false));
}

/* Rows of A with one entry: C's rows are rows of B, up to 20,000 entries long. */
SHAPE(single_rows_of_b)
{
    enum { N = 60, COLS = 20000 };
    entry_list list = {0};
    for (int i = 0; i < 2 * N; i++) entry_add(&list, i, (i * 7) % N, product_value(random));
    sp_csr a = entry_matrix(host, &list, 2 * N, N, type, false);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < COLS; j += 1 + i * i) entry_add(&list, i, j, product_value(random));
    return product_of(a, entry_matrix(host, &list, N, COLS, type, false));
}

/* B is a pattern with one entry a row, or none: it gives A's columns new names, many the same. */
SHAPE(columns_renamed)
{
    enum { INNER = 12000, NAMES = 700 };
    static const int64_t lengths[] = {0,   1,   8,    9,    16,   17,   32,   33,   64,   65,   128,  129,
                                      256, 512, 1024, 1025, 2048, 2049, 4096, 4097, 8192, 8193, INNER};
    enum { ROWS = COUNT(lengths) };
    entry_list list = {0};
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < lengths[i]; k++) entry_add(&list, i, k * 7919 % INNER, product_value(random));
    sp_csr a = entry_matrix(host, &list, ROWS, INNER, type, false);
    for (int64_t j = 0; j < INNER; j++)
        if (j % 11) entry_add(&list, j, test_below(random, NAMES), 1);
    return product_of(a, entry_matrix(host, &list, INNER, NAMES, type, true));
}

/* A is a pattern: C's rows are sums of up to 16,384 rows of B, of which one in four is empty. */
SHAPE(rows_added_up)
{
    enum { ROWS = 15, INNER = 24000, COLS = 5000 };
    entry_list list = {0};
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < 1 << i; k++) entry_add(&list, 2 * i, (k * 7 + i) % INNER, 1);
    sp_csr a = entry_matrix(host, &list, 2 * ROWS, INNER, type, true);
    for (int64_t j = 0; j < INNER; j++)
        for (int64_t k = j % 64 == 1 ? 40 : j % 4; k > 0; k--)
            entry_add(&list, j, test_below(random, COLS), product_value(random));
    return product_of(a, entry_matrix(host, &list, INNER, COLS, type, false));
}

/* B is tall and thin. Its rows are of lengths around the widths that lanes are dealt out in; those of A take rows of
 * up to one of these lengths each. One column in five has only zeros, of which products and sums are -0 in half of
 * C's rows: entries like others. */
static product few_columns(sp_context *host, test_random *random, sp_value_type type, int64_t cols)
{
    static const int64_t lengths[] = {0, 1, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 130, 300, 1100};
    static const int64_t elements[] = {0, 1, 31, 32, 33, 120, 700};
    enum { LENGTHS = COUNT(lengths), ELEMENTS = COUNT(elements), INNER = 2400 };
    entry_list list = {0};
    for (int64_t i = 0; i < LENGTHS * ELEMENTS; i++)
        for (int64_t k = 0, j = 0; j < INNER && k < elements[i % ELEMENTS]; j++) {
            if (j % LENGTHS > i / ELEMENTS || test_below(random, 4) == 0) continue;
            const double value = product_value(random);
            entry_add(&list, i, j, i % 2 ? value : -fabs(value));
            k++;
        }
    sp_csr a = entry_matrix(host, &list, LENGTHS * ELEMENTS, INNER, type, false);
    for (int64_t j = 0; j < INNER; j++)
        for (int64_t k = 0, first = test_below(random, cols); k < lengths[j % LENGTHS] && k < cols; k++) {
            const int64_t col = (first + k * 7) % cols;
            entry_add(&list, j, col, col % 5 == 2 ? 0 : product_value(random));
        }
    return product_of(a, entry_matrix(host, &list, INNER, cols, type, false));
}

SHAPE(one_column) { return few_columns(host, random, type, 1); }
SHAPE(columns_255) { return few_columns(host, random, type, 255); }
SHAPE(columns_256) { return few_columns(host, random, type, 256); }
SHAPE(columns_257) { return few_columns(host, random, type, 257); }
SHAPE(columns_4096) { return few_columns(host, random, type, 4096); }
SHAPE(columns_4097) { return few_columns(host, random, type, 4097); }

/* One row of A takes all rows of B, the others take three. */
SHAPE(one_dense_row_of_a)
{
    enum { ROWS = 40, INNER = 700, COLS = 1500000 };
    entry_list list = {0};
    for (int64_t j = 0; j < INNER; j++) entry_add(&list, 17, j, product_value(random));
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < 3; k++) entry_add(&list, i, test_below(random, INNER), product_value(random));
    sp_csr a = entry_matrix(host, &list, ROWS, INNER, type, false);
    for (int64_t j = 0; j < INNER; j++)
        for (int64_t k = 0; k < 150; k++)
            entry_add(&list, j, test_below(random, k % 2 ? COLS : 3000), product_value(random));
    return product_of(a, entry_matrix(host, &list, INNER, COLS, type, false));
}

/* Every row of A takes row 0 of B, which is long. */
SHAPE(one_dense_column_of_a)
{
    enum { ROWS = 300, INNER = 50, COLS = 900 };
    entry_list list = {0};
    for (int64_t i = 0; i < ROWS; i++) {
        entry_add(&list, i, 0, product_value(random));
        entry_add(&list, i, test_below(random, INNER), product_value(random));
    }
    sp_csr a = entry_matrix(host, &list, ROWS, INNER, type, false);
    for (int64_t j = 0; j < COLS; j += 1 + test_below(random, 2)) entry_add(&list, 0, j, product_value(random));
    for (int64_t i = 1; i < INNER; i++) entry_add(&list, i, test_below(random, COLS), product_value(random));
    return product_of(a, entry_matrix(host, &list, INNER, COLS, type, false));
}

SHAPE(arrowhead)
{
    enum { N = 500 };
    entry_list list = {0};
    for (int64_t i = 0; i < N; i++) {
        entry_add(&list, i, i, product_value(random));
        entry_add(&list, 0, i, product_value(random));
        entry_add(&list, i, 0, product_value(random));
    }
    return square_of(entry_matrix(host, &list, N, N, type, false));
}

/* Blocks of four equal rows beside the diagonal, as of finite elements with four unknowns a node. */
SHAPE(finite_elements)
{
    enum { NODES = 120, BLOCK = 4, N = NODES * BLOCK };
    entry_list list = {0};
    for (int64_t i = 0; i < N; i++)
        for (int64_t node = i / BLOCK - 2; node <= i / BLOCK + 2; node++)
            for (int64_t k = 0; k < BLOCK && node >= 0 && node < NODES; k++)
                entry_add(&list, i, node * BLOCK + k, product_value(random));
    return square_of(entry_matrix(host, &list, N, N, type, false));
}

/* The same with one to seven unknowns a node and more neighbours, up to 250 entries a row: rows of C have up to 500
 * entries, close together unless columns are `stride` apart, and up to 60,000 products. Here and there a row lacks an
 * entry that the row before has. */
static sp_csr long_elements_matrix(sp_context *host, test_random *random, sp_value_type type, int64_t stride)
{
    enum { NODES = 260, UNKNOWNS = 7 };
    const int64_t nodes = test_is_brief() ? 60 : NODES, third = nodes / 3;
    int64_t first[NODES + 1] = {0};
    entry_list list = {0};
    for (int64_t node = 0; node < nodes; node++) first[node + 1] = first[node] + 1 + node * 5 % UNKNOWNS;
    for (int64_t node = 0; node < nodes; node++) {
        const int64_t reach = node < third ? 6 : node < 2 * third ? 16 : 30;
        const int64_t low = node < reach ? 0 : node - reach, high = node + reach < nodes ? node + reach + 1 : nodes;
        for (int64_t i = first[node]; i < first[node + 1]; i++) {
            const int64_t gap = i % 29 == (stride > 1 ? 3 : 5) ? first[low] + test_below(random, 20) : -1;
            for (int64_t col = first[low]; col < first[high]; col++)
                if (col != gap) entry_add(&list, i, col * stride, product_value(random));
        }
    }
    return entry_matrix(host, &list, first[nodes], first[nodes] * stride, type, false);
}
SHAPE(long_elements)
{
    return square_of(long_elements_matrix(host, random, type, 1));
}
SHAPE(long_elements_of_two)
{
    sp_csr a = long_elements_matrix(host, random, type, 1);
    return product_of(a, long_elements_matrix(host, random, type, 50));
}

SHAPE(power_law)
{
    enum { N = 1000 };
    entry_list list = {0};
    for (int64_t i = 0; i < N; i++)
        for (double k = 0; k < 1 + 300.0 / (double)(1 + i); k++) {
            const double u = test_unit(random);
            entry_add(&list, i * 383 % N, (int64_t)(u * u * u * N) * 383 % N, product_value(random));
        }
    return square_of(entry_matrix(host, &list, N, N, type, false));
}

/* 2^31 - 1 columns: nothing may cost memory or time by the column. */
SHAPE(columns_up_to_2_31)
{
    enum { ROWS = 60, INNER = 50 };
    sp_csr a = product_matrix(host, random, ROWS, INNER, 12, type, TEST_SIGNED);
    entry_list list = {0};
    for (int64_t i = 0; i < INNER; i++) {
        entry_add(&list, i, most_columns() - 1 - i % 3, product_value(random));
        entry_add(&list, i, i % 5, product_value(random));
        for (int64_t k = 0; k < 2 * i; k++)
            entry_add(&list, i, test_below(random, most_columns()), product_value(random));
    }
    return product_of(a, entry_matrix(host, &list, INNER, most_columns(), type, false));
}

/* Runs of columns that follow one another, far from each other, some across a multiple of 2^18; the longest row of C
 * has some 10^5 entries. */
SHAPE(crowds_in_columns_up_to_2_31)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 8, 13, 21, 34, 64};
    enum { ROWS = COUNT(lengths), INNER = 64, RUNS = 3, RUN = 500 };
    entry_list list = {0};
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < lengths[i]; k++) entry_add(&list, i, (k * 5 + i) % INNER, product_value(random));
    sp_csr a = entry_matrix(host, &list, ROWS, INNER, type, false);
    for (int64_t i = 0; i < INNER; i++)
        for (int64_t run = 0; run < RUNS; run++) {
            const int64_t first = run == 0 ? (((i % 4) + 1) << 18) - 250 : test_below(random, most_columns() - RUN);
            for (int64_t k = 0; k < RUN; k++) entry_add(&list, i, first + k, product_value(random));
        }
    return product_of(a, entry_matrix(host, &list, INNER, most_columns(), type, false));
}

/* Whoever estimates nnz(C) from some rows sees only empty ones, unless these are rows 384 to 1,919. */
SHAPE(nearly_all_rows_empty)
{
    enum { ROWS = 1200000, INNER = 50, COLS = 3000 };
    entry_list list = {0};
    for (int64_t i = 384; i < 1920; i++) entry_add(&list, i, i % INNER, product_value(random));
    entry_add(&list, ROWS - 1, 0, product_value(random));
    sp_csr a = entry_matrix(host, &list, ROWS, INNER, type, false);
    for (int64_t i = 0; i < INNER; i++)
        for (int64_t k = 0; k < 8; k++) entry_add(&list, i, 7 * i + 331 * k, product_value(random));
    return product_of(a, entry_matrix(host, &list, INNER, COLS, type, false));
}

SHAPE(many_tiny_rows)
{
    const int64_t n = test_is_brief() ? 20000 : 100000;
    sp_csr a = product_matrix(host, random, n, n, 1.5, type, TEST_SIGNED);
    return product_of(a, product_matrix(host, random, n, n, 1.5, type, TEST_SIGNED));
}

/* Up to four elements and sixteen products a row, as in road networks; here and there a row with one element more,
 * and its neighbours are no longer all that short. */
SHAPE(short_rows)
{
    enum { N = 5000 };
    entry_list list = {0};
    for (int64_t i = 0; i < N; i++) {
        const int64_t length = i % 331 == 7 ? 5 : i / 640 % 2 ? 4 : test_below(random, 5);
        for (int64_t k = 0; k < length; k++)
            entry_add(&list, i, (i + 9 * k + test_below(random, 9)) % N, product_value(random));
    }
    return square_of(entry_matrix(host, &list, N, N, type, false));
}

/* Columns that multiplicative hashing puts in one place: the ten highest or lowest bits of the product with one of
 * two well-known multipliers are zero. */
SHAPE(colliding_keys)
{
    enum { KEYS = 160, ROWS = 48, FAMILIES = 4 };
    entry_list list = {0};
    sp_csr a = product_matrix(host, random, 3 * ROWS, ROWS, 6, type, TEST_SIGNED);
    for (int family = 0; family < FAMILIES; family++)
        for (int found = 0; found < KEYS;) {
            const int32_t key = (int32_t)test_below(random, INT32_MAX);
            const uint32_t narrow = (uint32_t)key * 0x9e3779b1u;
            const uint64_t wide = (uint64_t)key * 0x9E3779B97F4A7C15u;
            const uint64_t bits[FAMILIES] = {narrow >> 22, narrow & 1023, wide >> 54, wide >> 32 & 1023};
            if (bits[family] != 0) continue;
            for (int row = 0; row < ROWS / FAMILIES; row++)
                if (test_below(random, 2))
                    entry_add(&list, family * ROWS / FAMILIES + row, key, product_value(random));
            found++;
        }
    return product_of(a, entry_matrix(host, &list, ROWS, INT32_MAX, type, false));
}

SHAPE(columns_at_multiples_of_2_20)
{
    enum { ROWS = 40 };
    entry_list list = {0};
    sp_csr a = product_matrix(host, random, 3 * ROWS, ROWS, 8, type, TEST_SIGNED);
    for (int row = 0; row < ROWS; row++)
        for (int64_t k = 0; k < 2047; k += 1 + test_below(random, 20))
            entry_add(&list, row, k * ((most_columns() + 1) >> 11), product_value(random));
    return product_of(a, entry_matrix(host, &list, ROWS, most_columns(), type, false));
}

/* Entries 2j and 2j+1 of A's rows are opposite, as rows 2j and 2j+1 of B are equal: every sum is zero and stays. */
SHAPE(everything_cancels)
{
    enum { ROWS = 100, PAIRS = 200, COLS = 4000 };
    entry_list list = {0};
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k <= i / 4; k++) {
            const int64_t j = (i + k * 3) % PAIRS;
            const double value = 2 * test_unit(random) - 1;
            entry_add(&list, i, 2 * j, value);
            entry_add(&list, i, 2 * j + 1, -value);
        }
    sp_csr a = entry_matrix(host, &list, ROWS, 2 * PAIRS, type, false);
    for (int64_t j = 0; j < PAIRS; j++)
        for (int k = 0; k < 40; k++) {
            const int64_t col = j * 20 + k < COLS ? j * 20 + k : k; /* neighbours share half of their columns */
            entry_add(&list, 2 * j, col, 1 + (double)k);
            entry_add(&list, 2 * j + 1, col, 1 + (double)k);
        }
    return product_of(a, entry_matrix(host, &list, 2 * PAIRS, COLS, type, false));
}

/* Rows of about 16 entries of A, some lengths alike and some not, some rows with the columns of the row before,
 * others that differ from it in their last column only; C's rows from a few to thousands of entries. */
SHAPE(neighbours_that_agree)
{
    enum { ROWS = 600, INNER = 900, COLS = 5000, MOST = 40 };
    entry_list list = {0};
    int32_t cols[MOST];
    int64_t length = 0;
    for (int i = 0; i < ROWS; i++) {
        const int64_t kind = i == 0 ? 3 : test_below(random, 4); /* 0, 1: the same; 2: another last column */
        if (kind == 3) {
            length = i % 50 == 0 ? MOST : 14 + test_below(random, 4);
            const int64_t first = test_below(random, INNER - 2 * MOST);
            for (int64_t k = 0; k < length; k++) cols[k] = (int32_t)(first + 2 * k);
        } else if (kind == 2) {
            cols[length - 1]++;
        }
        for (int64_t k = 0; k < length; k++) entry_add(&list, i, cols[k], product_value(random));
    }
    sp_csr a = entry_matrix(host, &list, ROWS, INNER, type, false);
    for (int64_t j = 0; j < INNER; j++) {
        const int64_t near = j / 30 * 160; /* crowds of rows with columns in common, and a few rows that are long */
        const int64_t entries = j % 97 == 0 ? 400 : 1 + test_below(random, 30);
        for (int64_t k = 0; k < entries; k++) {
            const int64_t col = j % 3 ? near + test_below(random, 160) : test_below(random, COLS);
            entry_add(&list, j, col, product_value(random));
        }
    }
    return product_of(a, entry_matrix(host, &list, INNER, COLS, type, false));
}

/* Columns at multiples of a Fibonacci number, which multiplication by the golden ratio leaves close together. */
SHAPE(columns_at_golden_distances)
{
    return single_entries(host, random, type, test_is_brief() ? 1000 : limits[LIMITS - 1], 4181);
}

SHAPE(rows_all_equal)
{
    entry_list list = {0};
    for (int64_t i = 0; i < 90; i++)
        for (int64_t k = 0; k < 30; k++) entry_add(&list, i, 7 + k + k / 25, product_value(random));
    return square_of(entry_matrix(host, &list, 90, 90, type, false));
}

SHAPE(shifted_rows) { return product_shifted(host, random, 4, type); }
SHAPE(long_shifted_rows) { return product_shifted(host, random, 30, type); }

/* Rows of up to `points` elements, at the same distances from the diagonal but for one in ten; a few are long. Their
 * number is no multiple of a warp's 32 rows. */
static product rows_like_neighbours(sp_context *host, test_random *random, sp_value_type type, int points)
{
    enum { ROWS = 17001, WIDTH = 113 };
    entry_list list = {0};
    for (int i = 0; i < ROWS; i++) {
        for (int p = 0; p < points; p++) {
            const int j = i + (p / 3 - points / 6) * WIDTH + p % 3 - 1;
            if (j >= 0 && j < ROWS && test_below(random, 10)) entry_add(&list, i, j, product_value(random));
        }
        for (int k = 0; k < 40 && i % 3000 == 1500; k++) entry_add(&list, i, 300 * k + 7, product_value(random));
    }
    return square_of(entry_matrix(host, &list, ROWS, ROWS, type, false));
}
SHAPE(four_points_like_neighbours) { return rows_like_neighbours(host, random, type, 4); }
SHAPE(nine_points_like_neighbours) { return rows_like_neighbours(host, random, type, 9); }

static const struct shape {
    const char *name;
    product (*make)(sp_context *host, test_random *random, sp_value_type type);
} shapes[] = {
    {"every limit, all columns differ", every_limit_all_columns_differ},
    {"every limit, in columns up to 2^31", every_limit_in_columns_up_to_2_31},
    {"every limit, columns in common", every_limit_columns_in_common},
    {"all on one column", all_on_one_column},
    {"all on seven far columns", all_on_seven_far_columns},
    {"all on 768 columns", all_on_768_columns},
    {"all on 769 columns", all_on_769_columns},
    {"all on columns of their own", all_on_columns_of_their_own},
    {"columns of a row lie together", columns_of_a_row_lie_together},
    {"together, in many columns", together_in_many_columns},
    {"few products on few columns", few_products_on_few_columns},
    {"runs of neighbouring columns", runs_of_neighbouring_columns},
    {"heaps beside empty ranges", heaps_beside_empty_ranges},
    {"single rows of B", single_rows_of_b},
    {"columns renamed", columns_renamed},
    {"rows added up", rows_added_up},
    {"B of one column", one_column},
    {"B of 255 columns", columns_255},
    {"B of 256 columns", columns_256},
    {"B of 257 columns", columns_257},
    {"B of 4,096 columns", columns_4096},
    {"B of 4,097 columns", columns_4097},
    {"one dense row of A", one_dense_row_of_a},
    {"one dense column of A", one_dense_column_of_a},
    {"arrowhead", arrowhead},
    {"finite elements", finite_elements},
    {"long elements", long_elements},
    {"long elements of two", long_elements_of_two},
    {"power law", power_law},
    {"columns up to 2^31", columns_up_to_2_31},
    {"crowds in columns up to 2^31", crowds_in_columns_up_to_2_31},
    {"nearly all rows empty", nearly_all_rows_empty},
    {"many tiny rows", many_tiny_rows},
    {"short rows", short_rows},
    {"colliding keys", colliding_keys},
    {"columns at multiples of 2^20", columns_at_multiples_of_2_20},
    {"everything cancels", everything_cancels},
    {"neighbours that agree", neighbours_that_agree},
    {"columns at golden distances", columns_at_golden_distances},
    {"rows all equal", rows_all_equal},
    {"shifted rows", shifted_rows},
    {"long shifted rows", long_shifted_rows},
    {"four points, like neighbours", four_points_like_neighbours},
    {"nine points, like neighbours", nine_points_like_neighbours},
};
enum { SHAPES = COUNT(shapes) };

/* A mask for the product: about half of its entries, and some where it has none. */
static sp_csr half_of(sp_context *host, test_random *random, const product *p)
{
    sp_csr c = product_reference(host, p, NULL);
    entry_list list = {0};
    for (int64_t i = 0; i < c.rows; i++) {
        for (int64_t k = c.row_offsets[i]; k < c.row_offsets[i + 1]; k++)
            if (test_below(random, 2)) entry_add(&list, i, c.col_indices[k], 0);
        if (i % 3 == 0) entry_add(&list, i, test_below(random, c.cols), 0);
    }
    sp_csr mask = entry_matrix(host, &list, c.rows, c.cols, SP_F32, test_below(random, 2));
    sp_csr_free(host, &c);
    return mask;
}

/* The shape with each semiring, masked and not. */
static void check_other_products(sp_context *host, sp_context *context, product *p, test_random *random)
{
    const sp_value_type type = p->a.value_type;
    for (int semiring = 1 + (int)type; semiring <= SP_OR_AND; semiring += 2) {
        p->options.semiring = (sp_semiring)semiring;
        product_check(context, p, random, false);
    }
    p->options.semiring = type == SP_F32 ? SP_PLUS_TIMES : SP_MIN_PLUS;
    p->mask = half_of(host, random, p);
    p->masked = true;
    product_check(context, p, random, false);
    p->options.semiring = type == SP_F32 ? SP_OR_AND : SP_PLUS_TIMES;
    p->options.complement = true;
    product_check(context, p, random, false);
}

/* One of these a shape, another with every shape. */
static void check_another_product(sp_context *host, sp_context *context, int64_t number, product *p,
                                  test_random *random)
{
    p->options.semiring = (sp_semiring)(number % (SP_OR_AND + 1));
    if (number % 3) {
        p->mask = half_of(host, random, p);
        p->masked = true;
        p->options.complement = number % 3 == 2;
    }
    product_check(context, p, random, false);
}

/* Plus-times with all stages, then other products; all in either type, or few in one. */
static void check_shape(int device, const struct shape *shape)
{
    sp_context *host = test_context(0, 1), *context = test_context(device, 2);
    const int64_t number = shape - shapes;
    for (int type = SP_F32; type <= SP_F64; type++) {
        if (test_is_brief() && type == number % 2) continue;
        test_random random = test_seed(29);
        product p = shape->make(host, &random, (sp_value_type)type);
        snprintf(p.name, sizeof p.name, "%s", shape->name);
        product_check(context, &p, &random, true);
        if (test_is_brief()) check_another_product(host, context, number, &p, &random);
        else check_other_products(host, context, &p, &random);
        product_free(host, &p);
    }
    test_end(context, host);
}

TEST(shapes_have_the_bits_of_the_reference) { check_shape(_i / SHAPES, &shapes[_i % SHAPES]); }

const test_entry shapes_tests[] = {
    CASE("shapes", 120),
    TURNS_ON_DEVICES(shapes_have_the_bits_of_the_reference, SHAPES),
    {0},
};
