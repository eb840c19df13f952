/* test_operations: shapes, properties and refusals. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "operations_shared.h"

static sp_csr *take_values(sp_context *context, sp_csr *m)
{
    test_drop_values(context, m);
    return m;
}

/* ---- shapes ---------------------------------------------------------------------------------------------- */

/* Both are freed. */
static void expect_same(sp_context *context, sp_csr *found, sp_context *host, sp_csr *expected, uint64_t seed)
{
    test_to_host(context, found);
    test_same(found, expected, seed);
    sp_csr_free(context, found);
    sp_csr_free(host, expected);
}

/* Every call on a matrix, on the context and on one that computes on the CPU with one thread: the same bits. */
static void compare_with_host(sp_context *context, const sp_csr *m, uint64_t seed)
{
    sp_context *host = test_context(0, 1);
    test_random random = test_seed(seed);
    sp_csr there, turned, found, expected;
    int32_t rows[300], cols[300], up[300];
    int64_t ascending = 0;
    double *factors = test_block((size_t)(m->rows + m->cols + 1) * sizeof *factors);
    for (int64_t i = 0; i < m->rows + m->cols; i++) factors[i] = test_unit(&random);
    for (int i = 0; i < 300; i++) {
        rows[i] = m->rows ? (int32_t)test_below(&random, m->rows) : 0;
        cols[i] = m->cols ? (int32_t)test_below(&random, m->cols) : 0;
    }
    for (int64_t j = 0; j < m->cols && ascending < 300; j += 1 + m->cols / 300) up[ascending++] = (int32_t)j;
    const int64_t row_count = m->rows ? 300 : 0, col_count = m->cols ? 300 : 0;
    ck_ok(context, sp_csr_copy(context, m, test_space(context), &there));

    ck_ok(context, sp_csr_extract(context, &there, rows, row_count, cols, col_count, SP_HOST, &found));
    ck_ok(host, sp_csr_extract(host, m, rows, row_count, cols, col_count, SP_HOST, &expected));
    expect_same(context, &found, host, &expected, seed);

    ck_ok(context, sp_csr_extract(context, &there, NULL, 0, up, ascending, SP_HOST, &found));
    ck_ok(host, sp_csr_extract(host, m, NULL, 0, up, ascending, SP_HOST, &expected));
    expect_same(context, &found, host, &expected, seed);

    for (int64_t k = 0; k < 5000; k = 3 * k + 1) {
        ck_ok(context, sp_csr_top_k(context, &there, k, &found));
        ck_ok(host, sp_csr_top_k(host, m, k, &expected));
        expect_same(context, &found, host, &expected, seed);
    }

    /* A and what its rows have turned by one: partly the same places. */
    ck_ok(context, sp_csr_copy(context, m, SP_HOST, &turned));
    if (m->rows > 1) {
        int32_t *order = test_block((size_t)m->rows * sizeof *order);
        for (int64_t i = 0; i < m->rows; i++) order[i] = (int32_t)((i + 1) % m->rows);
        sp_csr_free(context, &turned);
        ck_ok(host, sp_csr_extract(host, m, order, m->rows, NULL, 0, SP_HOST, &turned));
        free(order);
    }
    for (int same = 0; same < 2; same++) {
        ck_ok(context, sp_csr_add(context, 0.3, &there, -1.7, same ? &there : &turned, &found));
        ck_ok(host, sp_csr_add(host, 0.3, m, -1.7, same ? m : &turned, &expected));
        expect_same(context, &found, host, &expected, seed);
    }
    for (int same = 0; same < 2; same++) {
        ck_ok(context, sp_csr_hadamard(context, same ? &there : &turned, &there, &found));
        ck_ok(host, sp_csr_hadamard(host, same ? m : &turned, m, &expected));
        if (same) ck_assert_int_eq(expected.nnz, m->nnz);
        expect_same(context, &found, host, &expected, seed);
    }
    sp_csr_free(m->rows > 1 ? host : context, &turned);

    for (int select = SP_SELECT_LOWER; select <= SP_SELECT_ABS_GE; select++) {
        const bool of_places = select <= SP_SELECT_OFF_DIAGONAL;
        const double bound = of_places ? (double)(test_below(&random, m->cols + 1) - m->rows / 2) : 0.5;
        ck_ok(context, sp_csr_select(context, &there, (sp_select)select, bound, &found));
        ck_ok(host, sp_csr_select(host, m, (sp_select)select, bound, &expected));
        expect_same(context, &found, host, &expected, seed);
    }

    ck_ok(host, sp_csr_copy(host, m, SP_HOST, &expected));
    ck_ok(context, sp_csr_scale(context, &there, factors, factors + m->rows, SP_HOST));
    ck_ok(host, sp_csr_scale(host, &expected, factors, factors + m->rows, SP_HOST));
    expect_same(context, &there, host, &expected, seed);
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
    ck_ok(context, sp_csr_copy(context, &m, test_space(context), &a));
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
    ck_ok(context, sp_csr_copy(context, &m, test_space(context), &a));
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
    for (int space = 0; space <= (test_space(context) == SP_DEVICE); space++) {
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
    if (test_space(context) == SP_HOST) { /* what another context has on a device */
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
    const int32_t down[] = {900, 900, 5}, up[] = {5, 900};
    double factors[5000] = {0};
    sp_context *context = test_context_with(1, (sp_context_options){.memory_budget = BUDGET});
    sp_csr host, a, made, pattern;
    void *rest;
    int64_t room = BUDGET;
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

/* ---- draws ------------------------------------------------------------------------------------------------ */

/* The places that a call on `context` draws, in host memory. */
static void draw(sp_context *context, const sp_csr *host, const int32_t *rows, int64_t count, const int64_t *offsets,
                 uint64_t seed, int64_t *places)
{
    const sp_space there = test_space(context);
    const int64_t total = offsets[count];
    void *r, *o, *p;
    sp_csr a;
    ck_ok(context, sp_csr_copy(context, host, there, &a));
    ck_ok(context, sp_array_create(context, count, sizeof *rows, there, &r));
    ck_ok(context, sp_array_create(context, count + 1, sizeof *offsets, there, &o));
    ck_ok(context, sp_array_create(context, total, sizeof *places, there, &p));
    ck_ok(context, sp_array_copy(context, count, sizeof *rows, r, there, rows, SP_HOST));
    ck_ok(context, sp_array_copy(context, count + 1, sizeof *offsets, o, there, offsets, SP_HOST));
    ck_ok(context, sp_csr_sample_rows(context, &a, r, count, o, seed, p));
    ck_ok(context, sp_array_copy(context, total, sizeof *places, places, SP_HOST, p, there));
    sp_array_free(context, there, r);
    sp_array_free(context, there, o);
    sp_array_free(context, there, p);
    sp_csr_free(context, &a);
}

CONTEXT_TEST(draws_are_entries_of_their_rows_in_order_and_the_same_everywhere, _i, 0)
{
    sp_context *host = test_context(0, 1);
    for (int64_t seed = 1; seed <= test_cases(60); seed++) {
        test_random random = test_seed((uint64_t)seed);
        const int64_t width = 1 + test_below(&random, 400), count = test_below(&random, 50);
        sp_csr a = random_matrix(host, &random, 1 + test_below(&random, 40), width, SP_F32);
        int32_t rows[50];
        int64_t offsets[51] = {0}, places[2][50 * 400];
        for (int64_t i = 0; i < count; i++) {
            rows[i] = (int32_t)test_below(&random, a.rows);
            const int64_t length = a.row_offsets[rows[i] + 1] - a.row_offsets[rows[i]];
            offsets[i + 1] = offsets[i] + (i % 3 ? test_below(&random, length < 9 ? length + 1 : 9) : length);
        }
        draw(context, &a, rows, count, offsets, (uint64_t)seed, places[0]);
        draw(host, &a, rows, count, offsets, (uint64_t)seed, places[1]);
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = offsets[i]; k < offsets[i + 1]; k++) {
                test_expect(places[0][k] >= a.row_offsets[rows[i]] && places[0][k] < a.row_offsets[rows[i] + 1] &&
                                (k == offsets[i] || places[0][k] > places[0][k - 1]),
                            "seed %d: draw %d of row %d", (int)seed, (int)k, (int)rows[i]);
                test_expect(places[0][k] == places[1][k], "seed %d: draw %d differs by device", (int)seed, (int)k);
            }
        sp_csr_free(host, &a);
    }
    sp_context_destroy(host);
}

/* Each set of two of sixteen entries and of three of eight (by Floyd's algorithm), and of five of six and of six of
 * eight (by Algorithm S), is drawn about as often as the others. */
CONTEXT_TEST(each_set_of_entries_is_as_likely, _i, 0)
{
    enum { DRAWS = 40000 };
    enum { WIDTH = 16, MOST = 6 };
    static const struct { int64_t length, count, sets; } kinds[] = {{16, 2, 120}, {8, 3, 56}, {6, 5, 6}, {8, 6, 28}};
    int32_t *rows = calloc(DRAWS, sizeof *rows);
    int64_t *offsets = malloc((DRAWS + 1) * sizeof *offsets), *places = malloc(MOST * DRAWS * sizeof *places);
    ck_assert(rows && offsets && places);
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        const int64_t length = kinds[kind].length, count = kinds[kind].count;
        double seen[1 << WIDTH] = {0}, expected = (double)DRAWS / (double)kinds[kind].sets, distance = 0;
        int64_t row_offsets[] = {0, length}, sets = 0;
        int32_t cols[WIDTH];
        for (int32_t j = 0; j < WIDTH; j++) cols[j] = j;
        const sp_csr a = {1, WIDTH, length, row_offsets, cols, NULL, SP_F32, SP_HOST};
        for (int64_t i = 0; i <= DRAWS; i++) offsets[i] = i * count;
        draw(context, &a, rows, DRAWS, offsets, 7, places);
        for (int64_t i = 0; i < DRAWS; i++) {
            int64_t set = 0;
            for (int64_t k = 0; k < count; k++) set |= 1 << places[i * count + k];
            seen[set]++;
        }
        for (int64_t set = 0; set < 1 << WIDTH; set++)
            if (seen[set] > 0) {
                sets++;
                distance += (seen[set] - expected) * (seen[set] - expected) / expected;
            }
        /* Chi squared: its mean is sets - 1 and its variance twice that. */
        ck_assert_msg(sets == kinds[kind].sets, "%d of %d sets were drawn", (int)sets, (int)kinds[kind].sets);
        ck_assert_msg(distance < (double)sets + 5 * sqrt(2 * (double)sets), "%d of %d: chi squared is %f",
                      (int)count, (int)length, distance);
    }
    free(rows);
    free(offsets);
    free(places);
}

const test_entry shapes_tests[] = {
    CASE("random", 120),
    ON_DEVICES(what_does_not_fit_is_refused),
    CASE("shapes", 120),
    ON_DEVICES(shapes_at_the_edge),
    ON_DEVICES(skewed_rows),
    ON_DEVICES(a_symmetric_matrix_scaled_alike_stays_so),
    ON_DEVICES(a_permutation_taken_twice_is_that_of_csr_permute),
    ON_CUDA(too_little_device_memory_leaves_nothing),
    CASE("draws", 120),
    ON_DEVICES(draws_are_entries_of_their_rows_in_order_and_the_same_everywhere),
    ON_DEVICES(each_set_of_entries_is_as_likely),
    {0},
};
