/* The Markov product on several devices against the same product on one. */
#include <stdlib.h>
#include <string.h>

#include "core/devices.h"
#include "markov/kept.h"
#include "support.h"

/* All that one product made and measured. */
typedef struct outcome {
    sp_csr c;
    sp_markov_row *rows;
    sp_spgemm_info info;
} outcome;

static outcome multiply(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue)
{
    outcome made = {.rows = calloc((size_t)a->rows + 1, sizeof *made.rows)};
    ck_ok(context, sp_spgemm_markov(context, a, b, epilogue, &made.c, made.rows, &made.info));
    test_to_host(context, &made.c);
    return made;
}

static void release(sp_context *context, outcome *made)
{
    sp_csr_free(context, &made->c);
    free(made->rows);
}

/* On CUDA the chaos of a row and its homogeneity may differ in the last place: they are sums in an order that depends
 * on the class of the row, which depends on free memory. */
static void expect_same(const outcome *expected, const outcome *found, int64_t rows, bool cuda, uint64_t seed)
{
    test_same(&expected->c, &found->c, seed);
    ck_assert_int_eq(expected->info.products, found->info.products);
    ck_assert_int_eq(expected->info.product_nnz, found->info.product_nnz);
    ck_assert_int_eq(expected->info.nnz, found->info.nnz);
    ck_assert_int_eq(expected->info.dense_rows, found->info.dense_rows);
    for (int64_t i = 0; i < rows; i++) {
        const sp_markov_row *x = &expected->rows[i], *y = &found->rows[i];
        const bool near = (double)x->chaos - (double)y->chaos < 1e-6 && (double)y->chaos - (double)x->chaos < 1e-6;
        test_expect(cuda ? near && x->kept_mass == y->kept_mass && x->expanded == y->expanded
                         : memcmp(x, y, sizeof *x) == 0,
                    "seed %llu: figures of row %lld differ", (unsigned long long)seed, (long long)i);
    }
}

/* Contexts of one device, and of several. Opening a GPU takes a while, so a test opens them once. */
enum { FLEETS = 3 };
typedef struct fleet {
    int device;
    sp_context *one, *several[FLEETS];
} fleet;

static fleet open_fleet(int device)
{
    static const int counts[FLEETS] = {2, 3, 5};
    fleet f = {.device = device, .one = test_context(device, 2)};
    for (int i = 0; i < FLEETS; i++)
        f.several[i] = test_context_of(device, counts[i], (sp_context_options){.threads = 3});
    return f;
}

static void close_fleet(fleet *f)
{
    for (int i = 0; i < FLEETS; i++) sp_context_destroy(f->several[i]);
    sp_context_destroy(f->one);
}

/* Compares several devices with one. */
static void check_counts(const fleet *f, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue,
                         uint64_t seed)
{
    outcome expected = multiply(f->one, a, b, epilogue);
    for (int i = 0; i < FLEETS; i++) {
        outcome found = multiply(f->several[i], a, b, epilogue);
        expect_same(&expected, &found, a->rows, f->device, seed);
        release(f->several[i], &found);
    }
    release(f->one, &expected);
}

static const sp_markov_epilogue epilogues[] = {
    {.inflation = 1},
    {.cutoff = 0.01, .inflation = 1.4, .dense_factor = 10},
    {.cutoff = 0.02, .recover = 20, .recover_mass = 0.9, .inflation = 2, .dense_factor = 10},
    {.cutoff = 0.001, .select = 10, .recover = 15, .recover_mass = 0.95, .inflation = 2, .dense_factor = 10},
    {.cutoff = 0.9, .inflation = 2, .dense_factor = 10}, /* most rows are emptied and get a loop */
};

/* ---- tests --------------------------------------------------------------------------------------------- */

HOST_TEST(several_devices_give_the_bits_of_one, 2)
{
    fleet devices = open_fleet(_i);
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (size_t e = 0; e < COUNT(epilogues); e++) {
            test_random random = test_seed(seed);
            sp_csr m = test_stochastic(host, &random, 40 + 400 * (int64_t)(seed - 1), seed == 3 ? 300 : 12);
            check_counts(&devices, &m, &m, &epilogues[e], seed);
            sp_csr_free(host, &m);
        }
    close_fleet(&devices);
}

/* Rows of B far apart and close together, one of them full, in matrices that are not square. */
HOST_TEST(each_device_gets_the_rows_that_its_own_name, 2)
{
    fleet devices = open_fleet(_i);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        test_random random = test_seed(seed);
        sp_csr a = test_matrix(host, &random, 50, 20000, seed % 2 ? 0.0005 : 0.2, SP_F32, TEST_POSITIVE);
        sp_csr b = test_matrix(host, &random, 20000, seed < 3 ? 30 : 3000, seed < 3 ? 0.9 : 0.01, SP_F32,
                               TEST_POSITIVE);
        const sp_markov_epilogue epilogue = {.cutoff = 1e-3, .select = 20, .inflation = 2, .dense_factor = 10};
        check_counts(&devices, &a, &b, &epilogue, seed);
        test_free(host, &a, &b);
    }
    close_fleet(&devices);
}

HOST_TEST(edge_shapes_work_on_several_devices, 2)
{
    fleet devices = open_fleet(_i);
    static const int64_t shapes[][3] = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 9, 2}, {1, 50, 40}, {40, 1, 1}, {0, 3, 7}};
    for (uint64_t s = 0; s < COUNT(shapes); s++)
        for (int full = 0; full < 2; full++) {
            test_random random = test_seed(s + 1);
            const int64_t *shape = shapes[s];
            sp_csr a = test_matrix(host, &random, shape[0], shape[1], full, SP_F32, TEST_POSITIVE);
            sp_csr b = test_matrix(host, &random, shape[1], shape[2], full, SP_F32, TEST_POSITIVE);
            for (size_t e = 0; e < COUNT(epilogues); e++) check_counts(&devices, &a, &b, &epilogues[e], s + 1);
            test_free(host, &a, &b);
        }
    close_fleet(&devices);
}

/* A row that takes all products leaves nothing for some of the devices. */
HOST_TEST(one_row_may_be_all_the_work, 2)
{
    fleet devices = open_fleet(_i);
    enum { N = 300 };
    double *numbers = calloc(N * N, sizeof *numbers);
    for (int i = 0; i < N; i++) numbers[i] = numbers[i * N] = 1. / N;
    sp_csr m = test_from_dense(host, N, N, numbers, SP_F32);
    for (size_t e = 0; e < COUNT(epilogues); e++) check_counts(&devices, &m, &m, &epilogues[e], 0);
    sp_csr_free(host, &m);
    free(numbers);
    close_fleet(&devices);
}

/* The order of the sums is that of the original numbers on all devices. */
HOST_TEST(renumbered_matrices_keep_their_bits, 2)
{
    fleet devices = open_fleet(_i);
    enum { N = 500 };
    test_random random = test_seed(21);
    sp_csr m = test_stochastic(host, &random, N, 60);
    int32_t order[N];
    sp_markov_epilogue epilogue = epilogues[3];
    for (int i = 0; i < N; i++) order[i] = (int32_t)((i * 7 + 3) % N);
    epilogue.order = order;
    check_counts(&devices, &m, &m, &epilogue, 21);
    sp_csr_free(host, &m);
    close_fleet(&devices);
}

/* Rows of a larger matrix: those that are emptied get their loops on its diagonal, not on the block's. */
CONTEXT_TEST(a_block_of_rows_has_its_diagonal, _i, 2)
{
    sp_context *host = test_context(0, 1);
    test_random random = test_seed(8);
    sp_csr m = test_stochastic(host, &random, 90, 20);
    sp_markov_epilogue epilogue = {.cutoff = 0.2, .inflation = 2};
    outcome whole = multiply(context, &m, &m, &epilogue);
    int64_t loops = 0;
    for (int64_t first = 0; first < m.rows; first += 30) {
        int64_t offsets[31];
        for (int i = 0; i <= 30; i++) offsets[i] = m.row_offsets[first + i] - m.row_offsets[first];
        const sp_csr rows = {.rows = 30, .cols = m.cols, .nnz = offsets[30], .row_offsets = offsets,
                             .col_indices = m.col_indices + m.row_offsets[first],
                             .values = (float *)m.values + m.row_offsets[first]};
        epilogue.diagonal = first;
        outcome block = multiply(context, &rows, &m, &epilogue);
        for (int64_t i = 0; i < 30; i++) {
            const int64_t at = block.c.row_offsets[i], there = whole.c.row_offsets[first + i];
            ck_assert_int_eq(test_row_length(&block.c, i), test_row_length(&whole.c, first + i));
            for (int64_t k = 0; k < test_row_length(&block.c, i); k++)
                test_expect(block.c.col_indices[at + k] == whole.c.col_indices[there + k] &&
                                test_value(&block.c, at + k) == test_value(&whole.c, there + k),
                            "row %lld differs", (long long)(first + i));
            loops += block.rows[i].kept_mass == 0 && block.c.col_indices[at] == first + i;
        }
        release(context, &block);
    }
    ck_assert_int_gt(loops, 10);
    epilogue.diagonal = -1;
    sp_csr c = {0};
    ck_assert_int_eq(sp_spgemm_markov(context, &m, &m, &epilogue, &c, NULL, NULL), SP_ERROR_ARGUMENT);
    release(context, &whole);
    sp_csr_free(host, &m);
    sp_context_destroy(host);
}

/* All other work is the first device's. */
TEST(other_products_are_those_of_the_first_device)
{
    sp_context *one = test_context(_i, 2), *several = test_context_of(_i, 2, (sp_context_options){0});
    test_random random = test_seed(3);
    sp_csr a = test_matrix(one, &random, 80, 80, 0.2, SP_F32, TEST_SIGNED), expected, found;
    ck_ok(one, sp_spgemm(one, &a, &a, NULL, &expected, NULL));
    ck_ok(several, sp_spgemm(several, &a, &a, NULL, &found, NULL));
    ck_assert_int_eq(found.space, expected.space);
    test_to_host(one, &expected);
    test_to_host(several, &found);
    test_same(&expected, &found, 3);
    ck_assert(sp_context_is_cuda(several) == (_i != 0));
    ck_assert((sp_context_stream(several) != NULL) == (_i != 0));
    sp_csr_free(several, &found);
    test_free(one, &a, &expected);
    test_end(several, one);
}

/* A chain of products as the Markov process makes it: on GPUs each begins where the one before it left its result. */
HOST_TEST(results_are_the_next_operands, 2)
{
    fleet devices = open_fleet(_i);
    test_random random = test_seed(12);
    sp_csr m = test_stochastic(host, &random, 700, 40);
    for (int i = 0; i < FLEETS; i++) {
        sp_csr expected = {0}, found = {0};
        for (int turn = 0; turn < 3; turn++) {
            sp_csr next, one;
            ck_ok(devices.several[i],
                  sp_spgemm_markov(devices.several[i], turn ? &found : &m, turn == 1 ? &m : turn ? &found : &m,
                                                       &epilogues[2], &next, NULL, NULL));
            ck_ok(devices.one,
                  sp_spgemm_markov(devices.one, turn ? &expected : &m, turn == 1 ? &m : turn ? &expected : &m,
                                                &epilogues[2], &one, NULL, NULL));
            ck_assert_int_eq(next.space, one.space);
            sp_csr_free(devices.several[i], &found);
            sp_csr_free(devices.one, &expected);
            found = next;
            expected = one;
        }
        test_to_host(devices.several[i], &found);
        test_to_host(devices.one, &expected);
        test_same(&expected, &found, 12);
        sp_csr_free(devices.several[i], &found);
        sp_csr_free(devices.one, &expected);
    }
    sp_csr_free(host, &m);
    close_fleet(&devices);
}

TEST(names_of_devices_are_checked)
{
    static const struct { const char *device; sp_status status; const char *words; } cases[] = {
        {"cpu,", SP_ERROR_ARGUMENT, "device \"\" of \"cpu,\""},
        {",", SP_ERROR_ARGUMENT, "device \"\""},
        {"cpu,auto", SP_ERROR_ARGUMENT, "device \"auto\""},
        {"cpu,cuda:all", SP_ERROR_ARGUMENT, "device \"cuda:all\""},
        {"cpu,cuda:0", SP_ERROR_ARGUMENT, "CPUs beside CUDA devices"},
        {"cuda:x,cuda:1", SP_ERROR_ARGUMENT, "device \"cuda:x\""},
        {"cuda:1022,cuda:1023", SP_ERROR_NO_DEVICE, "CUDA"},
        {"cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,"
         "cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,"
         "cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu", SP_ERROR_ARGUMENT, "more than 64"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const sp_context_options options = {.device = cases[i].device};
        sp_context *context = (sp_context *)&options;
        ck_assert_int_eq(sp_context_create(&options, &context), cases[i].status);
        ck_assert_ptr_null(context);
        test_expect(strstr(sp_last_error(NULL), cases[i].words), "\"%s\" lacks \"%s\"", sp_last_error(NULL),
                    cases[i].words);
    }
    sp_context *context = test_context_of(0, 3, (sp_context_options){.threads = 2});
    ck_assert_str_eq(sp_context_device(context), "cpu,cpu,cpu");
    ck_assert_int_eq(sp_context_threads(context), 2);
    sp_context_destroy(context);
}

static sp_status multiply_by_itself(sp_context *context, const void *m, sp_csr *c)
{
    return sp_spgemm_markov(context, m, m, &epilogues[3], c, NULL, NULL);
}

TEST(a_device_that_fails_ends_the_product)
{
    sp_context *host = test_context(0, 1);
    test_random random = test_seed(4);
    sp_csr m = test_stochastic(host, &random, 120, 10);
    test_failing_devices(multiply_by_itself, &m);
    sp_csr_free(host, &m);
    sp_context_destroy(host);
}

TEST(interrupt_flag_ends_all_devices)
{
    volatile int interrupt = 1;
    sp_context *host = test_context(0, 1);
    sp_context *context = test_context_of(_i, 2, (sp_context_options){.interrupt = &interrupt});
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

/* ---- pieces from host memory ----------------------------------------------------------------------------- */

/* What a CPU says is free; and what it has room for: so many rows of a product, entries of its B, and no copy of so
 * many bytes. */
static struct {
    size_t said;
    int64_t rows, entries, bytes;
    int products; /* atomic */
} room;

static sp_status say_room(sp_context *device, size_t *bytes)
{
    *bytes = device ? room.said : 0;
    return SP_OK;
}

static sp_status multiply_in_room(sp_context *device, const sp_csr *a, const sp_csr *b,
                                  const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                  sp_spgemm_info *info)
{
    __atomic_add_fetch(&room.products, 1, __ATOMIC_RELAXED);
    if (a->rows > room.rows || b->nnz > room.entries)
        return sp_fail(device, SP_ERROR_DEVICE_MEMORY, "%lld rows have no room", (long long)a->rows);
    return sp_backend_cpu.spgemm_markov(device, a, b, epilogue, c, rows, info);
}

static sp_status copy_in_room(sp_context *device, void *to, sp_space to_space, const void *from, sp_space from_space,
                              size_t bytes)
{
    if ((int64_t)bytes == room.bytes) return sp_fail(device, SP_ERROR_DEVICE_MEMORY, "%zu bytes have no room", bytes);
    return sp_backend_cpu.copy(device, to, to_space, from, from_space, bytes);
}

/* Two CPUs as if each were a GPU with little memory. */
static sp_context *open_little(void)
{
    static sp_backend backend;
    sp_context *little = test_context_of(0, 2, (sp_context_options){.threads = 2});
    backend = sp_backend_cpu;
    backend.available = say_room;
    backend.spgemm_markov = multiply_in_room;
    backend.copy = copy_in_room;
    for (int d = 0; d < 2; d++) sp_devices_number(little, d)->backend = &backend;
    return little;
}

TEST(pieces_of_any_length_have_the_bits_of_the_whole)
{
    sp_context *one = test_context(0, 2), *little = open_little();
    test_random random = test_seed(14);
    sp_csr m = test_stochastic(one, &random, 700, 60);
    const int64_t all = INT64_MAX, whole = 4 * m.nnz;
    const struct {
        size_t said;
        int64_t rows, entries, bytes;
        int least, most; /* products */
    } cases[] = {
        {SIZE_MAX / 4, all, all, 0, 2, 2},                /* B as a whole, and a piece a device */
        {(size_t)whole * 4, all, all, 0, 4, 700},         /* B as a whole, in pieces */
        {(size_t)whole * 2, all, all, 0, 4, 700},         /* the rows of B that each piece names */
        {0, all, all, 0, 700, 700},                       /* a row at a time */
        {SIZE_MAX / 4, 7, all, 0, 120, 700},              /* halves of halves, and slowly more again */
        {SIZE_MAX / 4, all, m.nnz - 1, 0, 20, 2000},      /* no product beside all of B */
        {SIZE_MAX / 4, all, all, whole, 2, 40},           /* less memory than it seemed: B does not fit */
    };
    for (size_t e = 0; e < COUNT(epilogues); e++) {
        outcome expected = multiply(one, &m, &m, &epilogues[e]);
        for (size_t i = 0; i < COUNT(cases); i++) {
            room.said = cases[i].said, room.rows = cases[i].rows, room.entries = cases[i].entries;
            room.bytes = cases[i].bytes, room.products = 0;
            outcome found = multiply(little, &m, &m, &epilogues[e]);
            expect_same(&expected, &found, m.rows, false, i);
            test_expect(room.products >= cases[i].least && room.products <= cases[i].most, "case %zu: %d products", i,
                        room.products);
            release(little, &found);
        }
        release(one, &expected);
    }
    room.rows = 0;
    sp_csr c = {0};
    ck_assert_int_eq(sp_spgemm_markov(little, &m, &m, &epilogues[3], &c, NULL, NULL), SP_ERROR_DEVICE_MEMORY);
    ck_assert_ptr_null(c.row_offsets);
    ck_assert_ptr_nonnull(strstr(sp_last_error(little), "do not fit the memory that is free: "));
    sp_csr_free(one, &m);
    test_end(little, one);
}

TEST(a_selection_of_any_size_keeps_at_most_what_there_is)
{
    ck_assert_int_eq(most_kept(&(sp_markov_epilogue){.select = 640}), 666);
    ck_assert_int_eq(most_kept(&(sp_markov_epilogue){.select = 1, .recover = 640}), 666);
    ck_assert_int_eq(most_kept(&(sp_markov_epilogue){.recover = 640}), INT64_MAX);
    ck_assert_int_eq(most_kept(&(sp_markov_epilogue){.select = INT64_MAX}), INT64_MAX);
    ck_assert_int_eq(most_kept(&(sp_markov_epilogue){.select = 1, .recover = INT64_MAX - 1}), INT64_MAX);
}

/* ---- little memory ------------------------------------------------------------------------------------- */

enum { BAND_ROWS = 40000, BAND = 30, MEGABYTE = 1 << 20 };

/* A band of 9.6 MB: fewer rows of A need fewer rows of B. With `hub` the last row names all columns. */
static sp_csr make_band(sp_context *host, bool hub)
{
    const int64_t count = BAND_ROWS * BAND, all = count + (hub ? BAND_ROWS : 0);
    test_random random = test_seed(6);
    int32_t *rows = malloc((size_t)all * sizeof *rows), *columns = malloc((size_t)all * sizeof *columns);
    float *values = malloc((size_t)all * sizeof *values);
    sp_csr m;
    for (int64_t k = 0; k < all; k++) {
        rows[k] = k < count ? (int32_t)(k / BAND) : BAND_ROWS - 1;
        columns[k] = (int32_t)(k < count ? (k / BAND + k % BAND) % BAND_ROWS : k - count);
        values[k] = (float)test_unit(&random) + 0x1p-20f;
    }
    ck_ok(host, sp_csr_from_coo(host, &(sp_coo){.rows = BAND_ROWS, .cols = BAND_ROWS, .count = all, .row_indices = rows,
                                                .col_indices = columns, .values = values}, SP_COMBINE_SUM, false, &m));
    ck_ok(host, sp_csr_inflate(host, &m, 1));
    free_all(rows, columns, values);
    return m;
}

/* Memory for a fraction of the rows: devices make them in batches, with the same bits. */
static void check_batches(int device, int count)
{
    sp_context *host = test_context(0, 1), *one = test_context(device, 2);
    sp_context *little = test_context_of(device, count, (sp_context_options){.memory_budget = 8 * MEGABYTE});
    sp_csr m = make_band(host, false);
    outcome expected = multiply(one, &m, &m, &epilogues[3]), found = multiply(little, &m, &m, &epilogues[3]);
    expect_same(&expected, &found, m.rows, true, 6);
    ck_assert_int_gt(found.info.batches, 2);
    release(one, &expected);
    release(little, &found);
    sp_csr_free(host, &m);
    test_end(little, one, host);
}

TEST(devices_with_little_memory_make_batches) { check_batches(_i, 2); }

TEST(one_device_with_little_memory_makes_batches) { check_batches(_i, 1); }

HOST_TEST(a_product_for_the_device_only_fails_without_room, 1)
{
    sp_context *little = test_context_of(_i, 1, (sp_context_options){.memory_budget = 8 * MEGABYTE});
    sp_markov_epilogue epilogue = epilogues[3];
    sp_csr m = make_band(host, false), c = {0};
    epilogue.device_only = true;
    ck_assert_int_eq(sp_spgemm_markov(little, &m, &m, &epilogue, &c, NULL, NULL), SP_ERROR_DEVICE_MEMORY);
    ck_assert_ptr_null(c.row_offsets);
    sp_csr_free(host, &m);
    sp_context_destroy(little);
}

/* Two products in turn, with less and less memory: the results of the first lie on the device, then in host memory. */
HOST_TEST(a_chain_of_products_leaves_the_device, 1)
{
    sp_context *one = test_context(_i, 2);
    sp_csr m = make_band(host, false), c, d, next, last;
    bool there = false, home = false;
    ck_ok(one, sp_spgemm_markov(one, &m, &m, &epilogues[0], &c, NULL, NULL));
    ck_ok(one, sp_spgemm_markov(one, &c, &c, &epilogues[3], &d, NULL, NULL));
    test_to_host(one, &d);
    for (size_t next_budget, budget = 160 * (size_t)MEGABYTE; budget > 8 * MEGABYTE; budget = next_budget) {
        sp_context *little = test_context_of(_i, 1, (sp_context_options){.memory_budget = budget});
        next_budget = test_is_brief() ? budget / 8 : budget - budget / 4;
        ck_ok(little, sp_spgemm_markov(little, &m, &m, &epilogues[0], &next, NULL, NULL));
        there = there || next.space == SP_DEVICE;
        home = home || next.space == SP_HOST;
        ck_ok(little, sp_spgemm_markov(little, &next, &next, &epilogues[3], &last, NULL, NULL));
        test_to_host(little, &last);
        test_same(&d, &last, budget);
        sp_csr_free(little, &next);
        sp_csr_free(little, &last);
        sp_context_destroy(little);
    }
    ck_assert(there && home);
    test_free(one, &c, &d);
    sp_csr_free(host, &m);
    sp_context_destroy(one);
}

/* No row fits: the sentence names a budget with which the product is made. */
HOST_TEST(a_row_that_does_not_fit_tells_what_would_do, 1)
{
    for (int hub = test_is_brief(); hub < 2; hub++) {
        sp_context *one = test_context(_i, 2);
        sp_context *little = test_context_of(_i, 1, (sp_context_options){.memory_budget = 200000});
        sp_csr m = make_band(host, hub), c = {0};
        ck_assert_int_eq(sp_spgemm_markov(little, &m, &m, &epilogues[3], &c, NULL, NULL), SP_ERROR_DEVICE_MEMORY);
        ck_assert_ptr_null(c.row_offsets);
        const char *told = strstr(sp_last_error(little), "of 200000 bytes: ");
        test_expect(told && strstr(told, "M would do"), "%s", sp_last_error(little));
        const size_t enough = (size_t)atoi(strchr(told, ':') + 1) * MEGABYTE;
        sp_context *told_of = test_context_of(_i, 1, (sp_context_options){.memory_budget = enough});
        outcome expected = multiply(one, &m, &m, &epilogues[3]), found = multiply(told_of, &m, &m, &epilogues[3]);
        expect_same(&expected, &found, m.rows, true, 7);
        release(one, &expected);
        release(told_of, &found);
        sp_csr_free(host, &m);
        test_end(told_of, little, one);
    }
}

static const test_entry tests[] = {
    CASE("devices", 120),
    ON_DEVICES(several_devices_give_the_bits_of_one),
    ON_DEVICES(each_device_gets_the_rows_that_its_own_name),
    ON_DEVICES(edge_shapes_work_on_several_devices),
    ON_DEVICES(one_row_may_be_all_the_work),
    ON_DEVICES(renumbered_matrices_keep_their_bits),
    ON_DEVICES(a_block_of_rows_has_its_diagonal),
    ON_DEVICES(results_are_the_next_operands),
    ON_DEVICES(other_products_are_those_of_the_first_device),
    ONCE(names_of_devices_are_checked),
    ONCE(a_device_that_fails_ends_the_product),
    ON_DEVICES(interrupt_flag_ends_all_devices),
    CASE("pieces", 120),
    ONCE(pieces_of_any_length_have_the_bits_of_the_whole),
    ONCE(a_selection_of_any_size_keeps_at_most_what_there_is),
    CASE("little_memory", 120),
    ON_CUDA(devices_with_little_memory_make_batches),
    ON_CUDA(one_device_with_little_memory_makes_batches),
    ON_CUDA(a_product_for_the_device_only_fails_without_room),
    ON_CUDA(a_chain_of_products_leaves_the_device),
    ON_CUDA(a_row_that_does_not_fit_tells_what_would_do),
    {0},
};

int main(void) { return test_run("markov_devices", tests); }
