/* sp_spgemm_markov against the epilogue of sparse.h written out step by step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* ---- the reference ------------------------------------------------------------------------------------- */

/* One row of A·B and what the epilogue makes of it. */
typedef struct reference_row {
    int64_t count;     /* entries before, then after pruning */
    int32_t *columns;
    float *values;
    bool *kept;
    double mass;
    sp_markov_row seen;
} reference_row;

static int compare_descending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The nth largest of the row's values v with low <= v < high. */
static double nth_largest(const reference_row *row, double low, double high, int64_t nth)
{
    float *list = malloc(((size_t)row->count + 1) * sizeof *list);
    int64_t count = 0;
    for (int64_t i = 0; i < row->count; i++)
        if ((double)row->values[i] >= low && (double)row->values[i] < high) list[count++] = row->values[i];
    qsort(list, (size_t)count, sizeof *list, compare_descending);
    test_expect(nth <= count, "the reference asks for the %lldth of %lld", (long long)nth, (long long)count);
    const double value = (double)list[nth - 1];
    free(list);
    return value;
}

/* Marks what is >= bar; returns how many. */
static int64_t keep(reference_row *row, double bar)
{
    int64_t count = 0;
    row->mass = 0;
    for (int64_t i = 0; i < row->count; i++) {
        row->kept[i] = (double)row->values[i] >= bar;
        if (!row->kept[i]) continue;
        row->mass += (double)row->values[i];
        count++;
    }
    return count;
}

static void prune(reference_row *row, const sp_markov_epilogue *e)
{
    const int64_t n = row->count, k = keep(row, e->cutoff);
    if (k < e->recover && row->mass < e->recover_mass) {
        keep(row, n <= e->recover ? 0 : nth_largest(row, 0, e->cutoff, e->recover - k));
    } else if (e->select > 0 && k > e->select) {
        const double bar = nth_largest(row, 0, INFINITY, e->select);
        const int64_t selected = keep(row, bar);
        if (selected < e->recover && row->mass < e->recover_mass)
            keep(row, k <= e->recover ? e->cutoff : nth_largest(row, e->cutoff, bar, e->recover - selected));
    }
}

static double squares(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)values[i] * (double)values[i];
    return sum;
}

/* Row i of A·B into `row` before pruning; `sums` is b->cols of scratch. */
static void expand(const sp_csr *a, const sp_csr *b, int64_t i, int64_t dense_factor, double *sums,
                   reference_row *row)
{
    int64_t products = 0;
    memset(sums, 0, (size_t)b->cols * sizeof *sums);
    for (int64_t p = a->row_offsets[i]; p < a->row_offsets[i + 1]; p++)
        products += b->row_offsets[a->col_indices[p] + 1] - b->row_offsets[a->col_indices[p]];
    for (int64_t p = a->row_offsets[i]; p < a->row_offsets[i + 1]; p++)
        for (int64_t q = b->row_offsets[a->col_indices[p]]; q < b->row_offsets[a->col_indices[p] + 1]; q++) {
            const float x = ((const float *)a->values)[p], y = ((const float *)b->values)[q];
            const float narrow = x * y;
            sums[b->col_indices[q]] += dense_factor * products >= b->cols ? (double)narrow : (double)x * (double)y;
        }
    row->count = 0;
    for (int64_t j = 0; j < b->cols; j++) {
        if (sums[j] == 0) continue;
        row->columns[row->count] = (int32_t)j;
        row->values[row->count++] = (float)sums[j];
    }
}

static void finish(const sp_csr *a, int64_t i, const sp_markov_epilogue *e, reference_row *row)
{
    float largest = 0;
    for (int64_t k = 0; k < row->count; k++) largest = fmaxf(largest, row->values[k]);
    const double centre = squares(row->values, row->count);
    row->seen.expanded = (int32_t)row->count;
    prune(row, e);
    int64_t left = 0;
    for (int64_t k = 0; k < row->count; k++) {
        if (!row->kept[k]) continue;
        row->columns[left] = row->columns[k];
        row->values[left++] = row->values[k];
    }
    row->seen.kept_mass = (float)row->mass;
    if (left == 0 && e->recover == 0) {
        row->columns[0] = (int32_t)i;
        row->values[left++] = 1;
        row->mass = 1;
    }
    row->count = left;
    row->seen.chaos = (float)(((double)largest - centre) * (double)left);
    double sum = 0, second = 0, fourth = 0;
    for (int64_t k = 0; k < left; k++) {
        const double scaled = (double)(float)((double)row->values[k] / row->mass);
        second += scaled * scaled;
        fourth += scaled * scaled * scaled * scaled;
        row->values[k] = e->inflation > 0 ? (float)pow(scaled, e->inflation) : (float)scaled;
        sum += (double)row->values[k];
    }
    for (int64_t k = 0; k < left && e->inflation > 0; k++) row->values[k] = (float)((double)row->values[k] / sum);
    const int64_t first = a->row_offsets[i];
    const double before = squares((const float *)a->values + first, a->row_offsets[i + 1] - first);
    row->seen.homogeneity = left > 0 ? (float)(before / (fourth / (second * second))) : 1;
}

static bool near(float a, float b, float relative) { return fabsf(a - b) <= relative * fmaxf(fabsf(a), fabsf(b)); }

/* Compares C = epilogue(A·B) on `device`, row by row. On the CPU all bits count; on CUDA powers and sums may round
 * otherwise in the last place. */
static void check_markov(int device, int threads, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *e,
                         uint64_t seed)
{
    sp_context *context = test_context(device, threads);
    sp_csr c;
    sp_spgemm_info info = {0};
    sp_markov_row *rows = calloc((size_t)a->rows + 1, sizeof *rows);
    double *sums = calloc((size_t)b->cols + 1, sizeof *sums);
    reference_row row = {.columns = calloc((size_t)b->cols + 1, sizeof(int32_t)),
                         .values = calloc((size_t)b->cols + 1, sizeof(float)),
                         .kept = calloc((size_t)b->cols + 1, sizeof(bool))};
    int64_t expanded = 0;
    memset(rows, 0xff, (size_t)a->rows * sizeof *rows); /* rows that nobody writes stay NaN */
    ck_ok(context, sp_spgemm_markov(context, a, b, e, &c, rows, &info));
    test_to_host(context, &c);
    ck_ok(context, sp_csr_check(context, &c));
    const float slack = device ? 0x1p-21f : 0;
    for (int64_t i = 0; i < a->rows; i++) {
        expand(a, b, i, e->dense_factor, sums, &row);
        finish(a, i, e, &row);
        expanded += row.seen.expanded;
        const int64_t first = c.row_offsets[i], count = c.row_offsets[i + 1] - first;
        test_expect(count == row.count, "seed %llu: row %lld has %lld entries, not %lld", (unsigned long long)seed,
                    (long long)i, (long long)count, (long long)row.count);
        for (int64_t k = 0; k < count; k++) {
            const float value = ((const float *)c.values)[first + k];
            test_expect(c.col_indices[first + k] == row.columns[k] && near(value, row.values[k], slack),
                        "seed %llu: row %lld has %.9g in column %d, not %.9g in column %d",
                        (unsigned long long)seed, (long long)i, (double)value, c.col_indices[first + k],
                        (double)row.values[k], row.columns[k]);
        }
        test_expect(rows[i].expanded == row.seen.expanded && near(rows[i].kept_mass, row.seen.kept_mass, 1e-6f) &&
                        fabsf(rows[i].chaos - row.seen.chaos) <= 1e-5f * (1 + fabsf(row.seen.chaos)) &&
                        near(rows[i].homogeneity, row.seen.homogeneity, 1e-5f),
                    "seed %llu: row %lld: expanded %d mass %g chaos %g homogeneity %g, not %d %g %g %g",
                    (unsigned long long)seed, (long long)i, rows[i].expanded, (double)rows[i].kept_mass,
                    (double)rows[i].chaos, (double)rows[i].homogeneity, row.seen.expanded,
                    (double)row.seen.kept_mass, (double)row.seen.chaos, (double)row.seen.homogeneity);
    }
    ck_assert_int_eq(info.product_nnz, expanded);
    ck_assert_int_eq(info.nnz, c.nnz);
    free_all(row.columns, row.values, row.kept, rows, sums);
    sp_csr_free(context, &c);
    sp_context_destroy(context);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

/* Every branch of the pruning, alone and together; sizes suit rows of some ten to hundred entries. */
static const sp_markov_epilogue epilogues[] = {
    {.inflation = 1},
    {.inflation = 2, .dense_factor = 10},
    {.cutoff = 0.01, .inflation = 1.4, .dense_factor = 10},
    {.cutoff = 0.02, .recover = 20, .recover_mass = 0.9, .inflation = 2, .dense_factor = 10},
    {.cutoff = 0.02, .recover = 200, .recover_mass = 0.99, .inflation = 2, .dense_factor = 1000000},
    {.select = 10, .inflation = 2.5, .dense_factor = 10},
    {.cutoff = 0.001, .select = 10, .recover = 15, .recover_mass = 0.95, .inflation = 2, .dense_factor = 10},
    {.cutoff = 0.005, .select = 5, .recover = 60, .recover_mass = 0.95, .inflation = 4, .dense_factor = 10},
    {.cutoff = 0.0001, .select = 30, .recover = 10, .recover_mass = 0.5, .inflation = 2},
    {.cutoff = 0.9, .inflation = 2, .dense_factor = 10},
    {.cutoff = 2, .inflation = 2},
    {.cutoff = 0.3, .recover = 1, .recover_mass = 0.9, .inflation = 2},
    {.cutoff = 0.01, .dense_factor = 10},
};
enum { EPILOGUES = COUNT(epilogues) };

HOST_TEST(epilogue_follows_its_definition, 1)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        for (int e = 0; e < EPILOGUES; e++) {
            test_random random = test_seed(seed);
            sp_csr m = test_stochastic(host, &random, 20 + 60 * (int64_t)seed, 3 + 2 * (int64_t)seed);
            check_markov(_i, 1 + e % 2, &m, &m, &epilogues[e], seed);
            sp_csr_free(host, &m);
        }
}

HOST_TEST(a_product_without_products_tells_of_each_row, 1)
{
    test_random random = test_seed(5);
    sp_csr a = test_stochastic(host, &random, 90, 4);
    sp_csr b = test_matrix(host, &random, 90, 90, 0, SP_F32, TEST_POSITIVE);
    ck_assert_int_eq(b.nnz, 0);
    for (int e = 0; e < EPILOGUES; e++) check_markov(_i, 1 + e % 2, &a, &b, &epilogues[e], 5);
    test_free(host, &a, &b);
}

/* An unweighted ring of cliques: most entries of a row are equal, so every bar falls on a tie. */
HOST_TEST(ties_stay_together, 1)
{
    enum { CLIQUE = 12, CLIQUES = 9, N = CLIQUE * CLIQUES };
    double *numbers = calloc(N * N, sizeof *numbers);
    for (int i = 0; i < N; i++) {
        for (int j = i / CLIQUE * CLIQUE; j < (i / CLIQUE + 1) * CLIQUE; j++) numbers[i * N + j] = 1.0 / (CLIQUE + 2);
        numbers[i * N + (i + CLIQUE) % N] = numbers[i * N + (i + N - CLIQUE) % N] = 1.0 / (CLIQUE + 2);
    }
    sp_csr m = test_from_dense(host, N, N, numbers, SP_F32);
    for (int e = 0; e < EPILOGUES; e++) check_markov(_i, 1 + e % 2, &m, &m, &epilogues[e], 0);
    sp_csr_free(host, &m);
    free(numbers);
}

/* Few entries in many columns, and rows of up to all columns: every accumulator of either back end is used. */
HOST_TEST(epilogue_works_in_every_accumulator, 1)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        test_random random = test_seed(seed);
        sp_csr a = test_matrix(host, &random, 80, 400, seed == 1 ? 0.01 : 0.5, SP_F32, TEST_POSITIVE);
        sp_csr b = test_matrix(host, &random, 400, 12000, seed == 1 ? 0.002 : 0.05, SP_F32, TEST_POSITIVE);
        ck_ok(host, sp_csr_inflate(host, &a, 1));
        ck_ok(host, sp_csr_inflate(host, &b, 1));
        const sp_markov_epilogue cases[] = {
            {.cutoff = 1e-4, .select = 300, .recover = 400, .recover_mass = 0.9, .inflation = 2, .dense_factor = 10},
            {.cutoff = 9.9999e-5, .select = 1100, .recover = 1400, .recover_mass = 0.9, .inflation = 2,
             .dense_factor = 10},
            {.inflation = 2}};
        for (size_t e = 0; e < 3; e++) check_markov(_i, 2, &a, &b, &cases[e], seed);
        test_free(host, &a, &b);
    }
}

/* A row-stochastic matrix with an entry in a hundred; rows 3, 8, ... and column 0 are full if asked for. */
static sp_csr with_full_lines(sp_context *host, test_random *random, int64_t rows, int64_t cols, bool by_row)
{
    double *numbers = calloc((size_t)(rows * cols), sizeof *numbers);
    for (int64_t i = 0; i < rows * cols; i++)
        if ((by_row ? i / cols % 5 == 3 : i % cols == 0) || test_below(random, 100) == 0)
            numbers[i] = test_unit(random) + 0x1p-20;
    sp_csr matrix = test_from_dense(host, rows, cols, numbers, SP_F32);
    ck_ok(host, sp_csr_inflate(host, &matrix, 1));
    free(numbers);
    return matrix;
}

/* Rows of so many entries in A that the whole device makes them; of the first entry they have 6,000 products. */
HOST_TEST(hubs_follow_the_definition, 1)
{
    test_random random = test_seed(23);
    sp_csr a = with_full_lines(host, &random, 9, 6000, true), b = with_full_lines(host, &random, 6000, 3000, false);
    for (int e = 0; e < EPILOGUES; e++) check_markov(_i, 2, &a, &b, &epilogues[e], 23);
    test_free(host, &a, &b);
}

/* Where their products find no room to be sorted. */
TEST(hubs_need_no_room_for_their_products)
{
    sp_context *host = test_context(0, 1), *plenty = test_context(_i, 2);
    sp_context *little = test_context_with(_i, (sp_context_options){.threads = 2, .memory_budget = 12 << 20});
    test_random random = test_seed(29);
    sp_csr a = with_full_lines(host, &random, 9, 6000, true), b = with_full_lines(host, &random, 6000, 3000, false), c,
           d;
    for (int e = 3; e < 7; e++) {
        ck_ok(plenty, sp_spgemm_markov(plenty, &a, &b, &epilogues[e], &c, NULL, NULL));
        ck_ok(little, sp_spgemm_markov(little, &a, &b, &epilogues[e], &d, NULL, NULL));
        test_to_host(plenty, &c);
        test_to_host(little, &d);
        test_same(&c, &d, 29);
        sp_csr_free(plenty, &c);
        sp_csr_free(little, &d);
    }
    test_free(host, &a, &b);
    test_end(plenty, little, host);
}

/* Dense matrices are summed by panels: rows in several tiles and blocks, columns that do not fill the last panel, and
 * rows of so few products that they do not take part. */
HOST_TEST(dense_matrices_follow_the_definition, 1)
{
    static const int64_t shapes[][3] = {{150, 150, 150}, {300, 5000, 70}, {40, 4096, 33}, {700, 300, 17}};
    for (uint64_t seed = 1; seed <= COUNT(shapes); seed++) {
        const int64_t *shape = shapes[seed - 1];
        test_random random = test_seed(seed);
        sp_csr a = test_matrix(host, &random, shape[0], shape[1], 0.2, SP_F32, TEST_POSITIVE);
        sp_csr b = test_matrix(host, &random, shape[1], shape[2], 0.4, SP_F32, TEST_POSITIVE);
        a.row_offsets[a.rows] = a.nnz = a.row_offsets[a.rows - 1] + 1; /* the last row has one entry */
        ((float *)a.values)[a.nnz - 1] = 1;
        ck_ok(host, sp_csr_inflate(host, &b, 1));
        const int picked[] = {1, 2, 3, 5, 6};
        for (size_t e = 0; e < COUNT(picked); e++) check_markov(_i, 1 + e % 2, &a, &b, &epilogues[picked[e]], seed);
        test_free(host, &a, &b);
    }
}

/* With `fast` sums are f32, whose error stays below a few last places; every number of threads gives the same bits. */
TEST(fast_sums_are_near_and_repeat)
{
    sp_context *host = test_context(0, 1);
    test_random random = test_seed(5);
    sp_csr a = test_matrix(host, &random, 400, 400, 0.5, SP_F32, TEST_POSITIVE), exact, fast, first = {0};
    sp_markov_epilogue epilogue = {.inflation = 2, .dense_factor = 10};
    int64_t moved = 0;
    ck_ok(host, sp_csr_inflate(host, &a, 1));
    ck_ok(host, sp_spgemm_markov(host, &a, &a, &epilogue, &exact, NULL, NULL));
    epilogue.fast = true;
    ck_ok(host, sp_spgemm_markov(host, &a, &a, &epilogue, &first, NULL, NULL));
    for (int threads = 2; threads <= 5; threads++) {
        sp_context *context = test_context(0, threads);
        ck_ok(context, sp_spgemm_markov(context, &a, &a, &epilogue, &fast, NULL, NULL));
        test_same(&first, &fast, 5);
        sp_csr_free(context, &fast);
        sp_context_destroy(context);
    }
    ck_assert_int_eq(first.nnz, exact.nnz);
    for (int64_t k = 0; k < exact.nnz; k++) {
        const float x = ((float *)exact.values)[k], y = ((float *)first.values)[k];
        moved += x != y;
        test_expect(first.col_indices[k] == exact.col_indices[k] && near(x, y, 0x1p-18f), "entry %lld: %.9g, not %.9g",
                    (long long)k, (double)y, (double)x);
    }
#if defined(__x86_64__)
    ck_assert_int_gt(moved, 0);
#endif
    sp_csr *all[] = {&a, &exact, &first};
    for (int i = 0; i < 3; i++) sp_csr_free(host, all[i]);
    sp_context_destroy(host);
}

/* order[i] is the old number of the new node i. */
static void random_order(test_random *random, int64_t nodes, int32_t *order, int32_t *inverse)
{
    for (int64_t i = 0; i < nodes; i++) order[i] = (int32_t)i;
    for (int64_t i = nodes - 1; i > 0; i--) {
        const int64_t other = test_below(random, i + 1);
        const int32_t swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
    for (int64_t i = 0; i < nodes; i++) inverse[order[i]] = (int32_t)i;
}

CONTEXT_TEST(renumbering_changes_no_bit, _i, 2)
{
    for (int e = 0; e < EPILOGUES; e++) {
        test_random random = test_seed((uint64_t)e + 1);
        const int64_t nodes = e % 2 ? 60 : 700;
        sp_csr m = test_stochastic(context, &random, nodes, e % 3 == 1 ? 250 : e % 3 ? 12 : 40), moved, expected, there,
               back;
        int32_t *order = malloc((size_t)nodes * sizeof *order), *inverse = malloc((size_t)nodes * sizeof *inverse);
        sp_markov_row *rows = calloc((size_t)nodes, sizeof *rows), *moved_rows = calloc((size_t)nodes, sizeof *rows);
        random_order(&random, nodes, order, inverse);
        sp_markov_epilogue epilogue = epilogues[e];
        ck_ok(context, sp_spgemm_markov(context, &m, &m, &epilogue, &expected, rows, NULL));
        epilogue.order = order;
        ck_ok(context, sp_csr_permute(context, &m, order, inverse, &moved));
        ck_ok(context, sp_spgemm_markov(context, &moved, &moved, &epilogue, &there, moved_rows, NULL));
        test_to_host(context, &expected);
        test_to_host(context, &there);
        ck_ok(context, sp_csr_permute(context, &there, inverse, order, &back));
        if (_i == 0) {
            test_same(&expected, &back, random.seed);
            for (int64_t i = 0; i < nodes; i++)
                test_expect(rows[order[i]].kept_mass == moved_rows[i].kept_mass &&
                                rows[order[i]].chaos == moved_rows[i].chaos,
                            "seed %llu: node %d", (unsigned long long)random.seed, order[i]);
        } else {
            ck_assert_int_eq(expected.nnz, back.nnz);
            for (int64_t k = 0; k < back.nnz; k++)
                test_expect(expected.col_indices[k] == back.col_indices[k] &&
                                near(((float *)expected.values)[k], ((float *)back.values)[k], 0x1p-19f),
                            "seed %llu: entry %lld", (unsigned long long)random.seed, (long long)k);
        }
        sp_csr *all[] = {&m, &moved, &expected, &there, &back};
        for (int i = 0; i < 5; i++) sp_csr_free(context, all[i]);
        free_all(order, inverse, rows, moved_rows);
    }
}

CONTEXT_TEST(empty_rows_get_a_loop_only_without_recovery, _i, 1)
{
    const double numbers[] = {0, 0, 0, 1};
    sp_csr m = test_from_dense(context, 2, 2, numbers, SP_F32), c;
    sp_markov_epilogue epilogue = {.cutoff = 1e-4, .inflation = 2};
    ck_ok(context, sp_spgemm_markov(context, &m, &m, &epilogue, &c, NULL, NULL));
    test_to_host(context, &c);
    ck_assert_int_eq(c.nnz, 2);
    ck_assert_int_eq(c.col_indices[0], 0);
    ck_assert(test_value(&c, 0) == 1);
    sp_csr_free(context, &c);
    epilogue.recover = 10;
    epilogue.recover_mass = 0.9;
    ck_ok(context, sp_spgemm_markov(context, &m, &m, &epilogue, &c, NULL, NULL));
    test_to_host(context, &c);
    ck_assert_int_eq(c.nnz, 1);
    ck_assert_int_eq(c.row_offsets[1], 0);
    test_free(context, &c, &m);
}

TEST(markov_product_does_not_depend_on_threads_or_runs)
{
    sp_context *host = test_context(0, 1), *context = test_context(_i, 2);
    test_random random = test_seed(11);
    sp_csr m = test_stochastic(host, &random, 900, 25), first;
    const sp_markov_epilogue epilogue = epilogues[6];
    ck_ok(context, sp_spgemm_markov(context, &m, &m, &epilogue, &first, NULL, NULL));
    test_to_host(context, &first);
    for (int run = 0; run < 8; run++) {
        sp_context *other = _i ? context : test_context(0, 1 + run % 4);
        sp_csr again;
        ck_ok(other, sp_spgemm_markov(other, &m, &m, &epilogue, &again, NULL, NULL));
        test_to_host(other, &again);
        test_same(&first, &again, 11);
        sp_csr_free(other, &again);
        if (other != context) sp_context_destroy(other);
    }
    sp_csr_free(context, &first);
    sp_csr_free(host, &m);
    test_end(context, host);
}

/* The rows after it are made long before the first: their threads wait for it. */
HOST_TEST(a_long_first_row_changes_no_other, 1)
{
    enum { N = 1500 };
    test_random random = test_seed(17);
    double *numbers = calloc((size_t)N * N, sizeof *numbers);
    for (int64_t j = 0; j < N; j++) numbers[j] = test_unit(&random) + 0x1p-20;
    for (int64_t k = N; k < 12 * N; k++) numbers[k % (N - 1) * N + N + test_below(&random, N)] = test_unit(&random);
    sp_csr a = test_from_dense(host, N, N, numbers, SP_F32), b = test_stochastic(host, &random, N, 300), first;
    const sp_markov_epilogue epilogue = {.inflation = 1};
    ck_ok(host, sp_spgemm_markov(host, &a, &b, &epilogue, &first, NULL, NULL));
    ck_assert_int_gt(first.nnz, 1 << 20);
    for (int threads = 2; threads <= 5; threads++) {
        sp_context *context = test_context(0, threads);
        sp_csr again;
        ck_ok(context, sp_spgemm_markov(context, &a, &b, &epilogue, &again, NULL, NULL));
        test_same(&first, &again, 17);
        sp_csr_free(context, &again);
        sp_context_destroy(context);
    }
    sp_csr *all[] = {&a, &b, &first};
    for (int i = 0; i < 3; i++) sp_csr_free(host, all[i]);
    free(numbers);
}

/* A budget too small for all rows at once ends in batches, with the same rows. */
TEST(memory_budget_changes_nothing_but_batches)
{
    sp_context *host = test_context(0, 1), *plenty = test_context(_i, 2);
    sp_context *little = test_context_with(_i, (sp_context_options){.threads = 2, .memory_budget = 6 << 20});
    test_random random = test_seed(13);
    sp_csr m = test_stochastic(host, &random, 1500, 60), c, d;
    const sp_markov_epilogue epilogue = epilogues[2];
    ck_ok(plenty, sp_spgemm_markov(plenty, &m, &m, &epilogue, &c, NULL, NULL));
    ck_ok(little, sp_spgemm_markov(little, &m, &m, &epilogue, &d, NULL, NULL));
    test_to_host(plenty, &c);
    test_to_host(little, &d);
    test_same(&c, &d, 13);
    sp_csr_free(plenty, &c);
    sp_csr_free(little, &d);
    sp_csr_free(host, &m);
    test_end(plenty, little, host);
}

CONTEXT_TEST(odd_epilogues_are_refused, _i, 1)
{
    test_random random = test_seed(1);
    sp_csr m = test_stochastic(context, &random, 10, 3);
    sp_csr wide = test_matrix(context, &random, 3, 3, 1, SP_F64, TEST_SIGNED);
    const sp_markov_epilogue odd[] = {{.inflation = -1},
                                      {.inflation = NAN},
                                      {.inflation = 2, .select = -1},
                                      {.inflation = 2, .recover = -1},
                                      {.inflation = 2, .cutoff = NAN}};
    sp_csr c = {0};
    for (size_t i = 0; i < COUNT(odd); i++)
        ck_assert_int_eq(sp_spgemm_markov(context, &m, &m, &odd[i], &c, NULL, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_spgemm_markov(context, &wide, &wide, &epilogues[0], &c, NULL, NULL), SP_ERROR_ARGUMENT);
    ck_assert_ptr_null(c.row_offsets);
    test_free(context, &m, &wide);
}

CONTEXT_TEST(operands_that_do_not_fit_are_refused, _i, 1)
{
    test_random random = test_seed(1);
    sp_csr a = test_matrix(context, &random, 3, 4, 1, SP_F32, TEST_SIGNED), c = {0};
    ck_assert_int_eq(sp_spgemm_markov(context, &a, &a, &epilogues[0], &c, NULL, NULL), SP_ERROR_ARGUMENT);
    ck_assert_int_gt((int)strlen(sp_last_error(context)), 0);
    ck_assert_ptr_null(c.row_offsets);
    sp_csr_free(context, &a);
}

TEST(interrupt_flag_ends_a_product)
{
    volatile int interrupt = 1;
    sp_context *host = test_context(0, 1);
    sp_context *context = test_context_with(_i, (sp_context_options){.interrupt = &interrupt});
    test_random random = test_seed(5);
    sp_csr a = test_stochastic(host, &random, 500, 30), c = {0};
    ck_assert_int_eq(sp_spgemm_markov(context, &a, &a, &epilogues[0], &c, NULL, NULL), SP_ERROR_INTERRUPTED);
    ck_assert_ptr_null(c.row_offsets);
    interrupt = 0;
    ck_ok(context, sp_spgemm_markov(context, &a, &a, &epilogues[0], &c, NULL, NULL));
    sp_csr_free(context, &c);
    sp_csr_free(host, &a);
    test_end(context, host);
}

static const test_entry tests[] = {
    CASE("markov", 120),
    ON_DEVICES(epilogue_follows_its_definition),
    ON_DEVICES(a_product_without_products_tells_of_each_row),
    ON_DEVICES(ties_stay_together),
    ON_DEVICES(epilogue_works_in_every_accumulator),
    ON_DEVICES(hubs_follow_the_definition),
    ON_DEVICES(hubs_need_no_room_for_their_products),
    ON_DEVICES(dense_matrices_follow_the_definition),
    ONCE(fast_sums_are_near_and_repeat),
    ON_DEVICES(renumbering_changes_no_bit),
    ON_DEVICES(empty_rows_get_a_loop_only_without_recovery),
    ON_DEVICES(markov_product_does_not_depend_on_threads_or_runs),
    ONCE(a_long_first_row_changes_no_other),
    ON_DEVICES(memory_budget_changes_nothing_but_batches),
    ON_DEVICES(odd_epilogues_are_refused),
    ON_DEVICES(operands_that_do_not_fit_are_refused),
    ON_DEVICES(interrupt_flag_ends_a_product),
    {0},
};

int main(void) { return test_run("spgemm_markov", tests); }
