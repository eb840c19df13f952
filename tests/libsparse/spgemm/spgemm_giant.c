/* test_spgemm: rows of so many elements of A, or products, that CUDA splits them over blocks, B of one column, and rows
 * that are nearly one row of B. Sums of many products show in which order they were added. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spgemm_shared.h"

/* More than GIANT_ELEMENTS of libsparse/spgemm/cuda/classes.cuh; the other limit is GIANT_PRODUCTS, 2^19. */
enum { MANY_ELEMENTS = 33000 };

/* How values are drawn: as in other suites, with powers of two among them, or such that sums only grow, or are exact,
 * or are rounded where two numbers are equally near. */
enum { WILD, GROWING, EXACT, TIES, VALUE_KINDS };

static double giant_value(test_random *random, int kind)
{
    if (kind == WILD) return product_value(random);
    if (kind == GROWING) return test_unit(random) + 0x1p-20;
    if (kind == EXACT) return (double)(1 + test_below(random, 9));
    return 1 + (double)test_below(random, 4) * 0x1p-16;
}

static void check_giant(sp_context *context, product *p, const char *what, uint64_t seed)
{
    test_random random = test_seed(seed);
    snprintf(p->name, sizeof p->name, "%s", what);
    product_check(context, p, &random, false);
}

/* In brief one of the value types. */
static int first_type(int kind) { return test_is_brief() ? kind % 2 : SP_F32; }
static int last_type(int kind) { return test_is_brief() ? kind % 2 : SP_F64; }

/* 1 x n times n x cols, with an entry a row of B. */
static product row_by_columns(sp_context *host, test_random *random, int64_t n, int64_t cols, int kind,
                              sp_value_type type)
{
    entry_list list = {0};
    for (int64_t j = 0; j < n; j++) entry_add(&list, 0, j, giant_value(random, kind));
    sp_csr a = entry_matrix(host, &list, 1, n, type, false);
    for (int64_t j = 0; j < n; j++) entry_add(&list, j, j * 7 % cols, giant_value(random, kind));
    return product_of(a, entry_matrix(host, &list, n, cols, type, false));
}

/* 1 x n times n x 1, of lengths around those that lanes and warps take at once. */
DEVICE_TEST(a_row_by_a_column_is_summed_in_order, _i, 2)
{
    static const int64_t lengths[] = {MANY_ELEMENTS, 33279, 33280, 33281, 33792, 34816, 34817, 300001};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (int kind = 0; kind < VALUE_KINDS; kind++)
            for (int type = first_type(kind); type <= last_type(kind); type++) {
                test_random random = test_seed(i + 1);
                product p = row_by_columns(host, &random, lengths[i], 1, kind, (sp_value_type)type);
                check_giant(context, &p, "row by column", i);
                product_free(host, &p);
            }
}

/* Rows of lengths around those that lanes and warps take at once, or all long, or one for the whole device, times a
 * column of which some entries are missing: among others all that a row of A has. */
static product rows_by_column(sp_context *host, test_random *random, int64_t each, int missing, int kind,
                              sp_value_type type)
{
    enum { INNER = 70000, ROWS = 200 };
    static const int64_t lengths[] = {0, 1, 31, 64, 65, 511, 512, 513, 2000, MANY_ELEMENTS, 2};
    entry_list list = {0};
    for (int64_t i = 0; i < ROWS; i++) {
        const int64_t length = each ? each : i == 7 ? INNER : i > 150 ? 0 : lengths[i % (int64_t)COUNT(lengths)];
        for (int64_t k = 0; k < length; k++)
            entry_add(&list, i, i == 7 ? k : (i + k * 2) % INNER, giant_value(random, kind));
    }
    sp_csr a = entry_matrix(host, &list, ROWS, INNER, type, false);
    for (int64_t j = 0; j < INNER; j++)
        if (missing < 2 ? !missing || j % 3 : j == 12345) entry_add(&list, j, 0, giant_value(random, kind));
    return product_of(a, entry_matrix(host, &list, INNER, 1, type, false));
}

DEVICE_TEST(rows_by_a_column_are_summed_in_order, _i, 2)
{
    for (int64_t each = 0; each <= 700; each += 700)
        for (int missing = 0; missing < 3; missing++)
            for (int kind = 0; kind < VALUE_KINDS; kind++)
                for (int type = first_type(kind); type <= last_type(kind); type++) {
                    test_random random = test_seed((uint64_t)(21 + missing));
                    product p = rows_by_column(host, &random, each, missing, kind, (sp_value_type)type);
                    check_giant(context, &p, "rows by a column", 22);
                    product_free(host, &p);
                }
}

/* Rows of A with one element of a long row of B, before, between or behind others, whose products are up to a few more
 * than are added to a copy of the long row; or with two of these, or with very many elements. */
DEVICE_TEST(rows_that_are_nearly_one_row_of_b_have_the_bits_of_the_reference, _i, 2)
{
    enum { ROWS = 600, INNER = 400, COLS = 20000, LONG_ROW = 5000 };
    for (int kind = 0; kind < VALUE_KINDS; kind++)
        for (int type = first_type(kind); type <= last_type(kind); type++) {
            test_random random = test_seed(23);
            entry_list list = {0};
            for (int64_t i = 0; i < ROWS; i++) {
                const int64_t from = i % 3 == 0 ? 0 : i % 3 == 1 ? 150 : 90, others = i < 300 ? i % 33 : i % 7 * 45;
                entry_add(&list, i, 100, giant_value(&random, kind));
                if (i % 50 == 49) entry_add(&list, i, 101, giant_value(&random, kind));
                for (int64_t k = 0; k < others; k++)
                    entry_add(&list, i, (from + k) % INNER, giant_value(&random, kind));
            }
            sp_csr a = entry_matrix(host, &list, ROWS, INNER, (sp_value_type)type, false);
            for (int64_t j = 0; j < INNER; j++) {
                const int64_t length = j == 100 || j == 101 ? LONG_ROW : j % 20 == 0 ? 0 : j % 8;
                for (int64_t k = 0; k < length; k++)
                    entry_add(&list, j, length == LONG_ROW ? k * 4 + k % 3 : (j * 37 + k * (j % 5)) % 400 * 50,
                              giant_value(&random, kind));
            }
            product p = product_of(a, entry_matrix(host, &list, INNER, COLS, (sp_value_type)type, false));
            check_giant(context, &p, "nearly one row", 24);
            product_free(host, &p);
        }
}

/* Every entry of C has very many products, or some more or less than one lane takes. */
DEVICE_TEST(a_giant_row_of_few_columns_is_summed_in_order, _i, 2)
{
    static const int64_t columns[] = {2, 7, 500, 515, 530, 1300, 5000, 33000};
    for (size_t i = 0; i < COUNT(columns); i++)
        for (int kind = 0; kind < VALUE_KINDS; kind++)
            for (int type = first_type(kind); type <= last_type(kind); type++) {
                test_random random = test_seed(i + 1);
                product p = row_by_columns(host, &random, MANY_ELEMENTS, columns[i], kind, (sp_value_type)type);
                check_giant(context, &p, "few columns", i);
                product_free(host, &p);
            }
}

/* Runs of so many products that all of the device adds them, beside each other. */
DEVICE_TEST(two_or_three_entries_with_most_products_are_summed_in_order, _i, 2)
{
    for (int64_t columns = 2; columns <= 3; columns++)
        for (int kind = 0; kind < VALUE_KINDS; kind++)
            for (int type = first_type(kind); type <= last_type(kind); type++) {
                test_random random = test_seed((uint64_t)columns);
                product p = row_by_columns(host, &random, 150001, columns, kind, (sp_value_type)type);
                check_giant(context, &p, "most products", 2);
                product_free(host, &p);
            }
}

/* Four to seven entries a row, by the kind, and row `full` and column `full_col`: the entry where these meet has a
 * product a row. */
static sp_csr crossed(sp_context *host, test_random *random, int64_t n, int64_t full, int64_t full_col, int kind,
                      sp_value_type type)
{
    entry_list list = {0};
    for (int64_t i = 0; i < n; i++) {
        entry_add(&list, full, i, giant_value(random, kind));
        entry_add(&list, i, full_col, giant_value(random, kind));
        for (int k = 0; k < 2 + kind; k++) entry_add(&list, i, test_below(random, n), giant_value(random, kind));
    }
    return entry_matrix(host, &list, n, n, type, false);
}

DEVICE_TEST(a_full_row_and_a_full_column_have_the_bits_of_the_reference, _i, 2)
{
    for (int kind = 0; kind < VALUE_KINDS; kind++)
        for (int type = first_type(kind); type <= last_type(kind); type++) {
            test_random random = test_seed(3);
            product p = {.a = crossed(host, &random, MANY_ELEMENTS, 5, 9, kind, (sp_value_type)type), .b_is_a = true};
            check_giant(context, &p, "crossed", 4);
            product_free(host, &p);
        }
}

/* Rows of 15 to 19 elements whose rows of B have 39,000 entries, or none; two have the same columns. Other rows have up
 * to nine such elements. */
DEVICE_TEST(few_elements_with_very_many_products_have_the_bits_of_the_reference, _i, 2)
{
    enum { ROWS = 70, INNER = 40, COLS = 40000, LONG_ROW = 39000 };
    for (int type = first_type(0); type <= last_type(0); type++) {
        test_random random = test_seed(5);
        entry_list list = {0};
        for (int64_t i = 0; i < ROWS; i++) {
            const bool giant = i == 3 || i == 20 || i == 21 || i == ROWS - 1;
            for (int64_t j = 0; j < (giant ? 15 + i % 20 / 2 : i % 4 * 8); j++)
                entry_add(&list, i, giant ? j : 39 - j, product_value(&random));
        }
        sp_csr a = entry_matrix(host, &list, ROWS, INNER, (sp_value_type)type, false);
        for (int64_t j = 0; j < INNER; j++) {
            const int64_t length = j % 16 == 15 ? 0 : j < 25 ? LONG_ROW : j;
            for (int64_t k = 0; k < length; k++)
                entry_add(&list, j, (k * 7 + j) % COLS, product_value(&random));
        }
        product p = product_of(a, entry_matrix(host, &list, INNER, COLS, (sp_value_type)type, false));
        check_giant(context, &p, "few elements", 6);
        product_free(host, &p);
    }
}

/* Giant rows at both ends and side by side, two of them alike, among rows of every other length; B has empty rows. */
DEVICE_TEST(giant_rows_among_others_have_the_bits_of_the_reference, _i, 2)
{
    enum { ROWS = 400, COLS = 3000000 };
    static const int32_t giants[] = {0, 100, 101, 102, 250, ROWS - 1};
    for (int type = first_type(1); type <= last_type(1); type++) {
        test_random random = test_seed(7);
        entry_list list = {0};
        for (size_t g = 0; g < COUNT(giants); g++) {
            const int64_t step = giants[g] == 250 ? 2 : 1;
            for (int64_t j = 0; j < MANY_ELEMENTS; j++)
                entry_add(&list, giants[g], j * step, product_value(&random));
        }
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t k = 0; k < i % 7 * (i % 5); k++)
                entry_add(&list, i, test_below(&random, 2 * MANY_ELEMENTS), product_value(&random));
        sp_csr a = entry_matrix(host, &list, ROWS, 2 * MANY_ELEMENTS, (sp_value_type)type, false);
        for (int64_t j = 0; j < 2 * MANY_ELEMENTS; j++)
            for (int64_t k = 0; k < j * j % 4; k++)
                entry_add(&list, j, test_below(&random, k % 2 ? COLS : 2000), product_value(&random));
        product p = product_of(a, entry_matrix(host, &list, 2 * MANY_ELEMENTS, COLS, (sp_value_type)type, false));
        check_giant(context, &p, "giants among others", 8);
        product_free(host, &p);
    }
}

/* Rows of B that a giant row meets are all empty, or all but one. */
DEVICE_TEST(giant_rows_may_have_no_products, _i, 2)
{
    for (int filled = 0; filled < 2; filled++)
        for (int rows = 1; rows <= 40; rows += 39) {
            test_random random = test_seed(9);
            entry_list list = {0};
            for (int64_t j = 0; j < MANY_ELEMENTS; j++) entry_add(&list, rows / 2, j, product_value(&random));
            sp_csr a = entry_matrix(host, &list, rows, MANY_ELEMENTS + 1, SP_F64, false);
            if (filled) entry_add(&list, MANY_ELEMENTS - 1, 77, product_value(&random));
            entry_add(&list, MANY_ELEMENTS, 5, product_value(&random));
            product p = product_of(a, entry_matrix(host, &list, MANY_ELEMENTS + 1, 100, SP_F64, false));
            check_giant(context, &p, filled ? "one product" : "no products", 10);
            product_free(host, &p);
        }
}

/* Other semirings, masks and patterns of a row that plus-times splits. */
DEVICE_TEST(giant_rows_obey_semirings_masks_and_patterns, _i, 2)
{
    test_random random = test_seed(11);
    product p = {.a = crossed(host, &random, MANY_ELEMENTS, 5, 9, WILD, SP_F32), .b_is_a = true};
    for (int semiring = SP_PLUS_PAIR; semiring <= SP_OR_AND; semiring++) {
        p.options.semiring = (sp_semiring)semiring;
        check_giant(context, &p, "crossed", 12);
    }
    p.options.semiring = SP_PLUS_TIMES;
    p.masked = p.mask_is_a = true;
    check_giant(context, &p, "crossed, masked", 13);
    p.masked = p.mask_is_a = false;
    test_drop_values(host, &p.a);
    check_giant(context, &p, "crossed pattern", 14);
    product_free(host, &p);
}

/* Infinities, NaN and zeros of either sign in a long sum. */
DEVICE_TEST(odd_values_in_a_giant_row_give_what_the_arithmetic_gives, _i, 2)
{
    static const double odd[] = {HUGE_VAL, -HUGE_VAL, -0.0, 0.0, NAN};
    for (size_t o = 0; o < COUNT(odd); o++)
        for (int everywhere = 0; everywhere < 2; everywhere++) {
            test_random random = test_seed(15);
            product p = row_by_columns(host, &random, MANY_ELEMENTS, 3, EXACT, SP_F64);
            for (int64_t k = 0; k < p.a.nnz; k++)
                if (everywhere || k == MANY_ELEMENTS / 2) test_set(&p.a, k, odd[o]);
            check_giant(context, &p, "odd values", o);
            product_free(host, &p);
        }
}

static int64_t giant_group(const sp_spgemm_info *info)
{
    for (int g = 0; g < info->groups; g++)
        if (strcmp(info->group[g].name, "giant") == 0) return info->group[g].count;
    return 0;
}

/* With less memory than sorting takes the row is formed as others are, and the bits stay. */
TEST(a_giant_row_without_room_to_sort_has_the_same_bits)
{
    const sp_spgemm_options options = {.algorithm = SP_SPGEMM_WARP};
    sp_context *host = test_context(0, 1);
    for (int64_t cols = 1; cols <= 5000; cols += 4999) {
        test_random random = test_seed(17);
        product p = row_by_columns(host, &random, MANY_ELEMENTS, cols, WILD, SP_F64);
        sp_csr expected = product_reference(host, &p, NULL), c;
        sp_context *context = test_context_with(_i, (sp_context_options){.memory_budget = 3 << 20});
        sp_spgemm_info info;
        ck_ok(context, sp_spgemm(context, &p.a, &p.b, &options, &c, &info));
        ck_assert_int_eq(giant_group(&info), 0);
        test_to_host(context, &c);
        product_same(&expected, &c, "small budget");
        sp_csr_free(context, &c);
        sp_context_destroy(context);
        sp_csr_free(host, &expected);
        product_free(host, &p);
    }
    sp_context_destroy(host);
}

DEVICE_TEST(giant_rows_are_a_group_of_their_own, _i, 2)
{
    test_random random = test_seed(19);
    sp_csr a = crossed(host, &random, MANY_ELEMENTS, 5, 9, WILD, SP_F32), c;
    sp_spgemm_info info;
    ck_ok(context, sp_spgemm(context, &a, &a, NULL, &c, &info));
    ck_assert_int_eq(giant_group(&info), 1);
    sp_csr_free(context, &c);
    sp_csr_free(host, &a);
}

const test_entry giant_tests[] = {
    CASE("giant", 120),
    ON_DEVICES(a_row_by_a_column_is_summed_in_order),
    ON_DEVICES(rows_by_a_column_are_summed_in_order),
    ON_DEVICES(rows_that_are_nearly_one_row_of_b_have_the_bits_of_the_reference),
    ON_DEVICES(a_giant_row_of_few_columns_is_summed_in_order),
    ON_DEVICES(two_or_three_entries_with_most_products_are_summed_in_order),
    ON_DEVICES(a_full_row_and_a_full_column_have_the_bits_of_the_reference),
    ON_DEVICES(few_elements_with_very_many_products_have_the_bits_of_the_reference),
    ON_DEVICES(giant_rows_among_others_have_the_bits_of_the_reference),
    ON_DEVICES(giant_rows_may_have_no_products),
    ON_DEVICES(giant_rows_obey_semirings_masks_and_patterns),
    ON_DEVICES(odd_values_in_a_giant_row_give_what_the_arithmetic_gives),
    ON_CUDA(a_giant_row_without_room_to_sort_has_the_same_bits),
    ON_CUDA(giant_rows_are_a_group_of_their_own),
    {0},
};
