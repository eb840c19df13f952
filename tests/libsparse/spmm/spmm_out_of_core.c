/* test_spmm: products in tiles through a device that does not hold X and Y. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef SPARSE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "spmm_shared.h"

/* On CUDA alone: on the CPU nothing is out of core. */
enum { BUDGET = 3 << 20 };

static sp_context *limited_context(size_t bytes, const sp_allocator *allocator, const volatile int *interrupt)
{
    return test_context_with(1, (sp_context_options){.threads = 2, .memory_budget = bytes, .allocator = allocator,
                                                     .interrupt = interrupt});
}

static sp_context *budget_context(const sp_allocator *allocator, const volatile int *interrupt)
{
    return limited_context(BUDGET, allocator, interrupt);
}

/* A copy in pinned memory where there is CUDA. */
static sp_dense pinned_clone(const sp_dense *m)
{
    sp_dense copy = *m;
#ifdef SPARSE_CUDA
    ck_assert_int_eq(cudaMallocHost(&copy.values, bytes_of(m)), cudaSuccess);
    memcpy(copy.values, m->values, bytes_of(m));
#else
    copy = clone(m);
#endif
    return copy;
}

static void free_pinned(sp_dense *m)
{
#ifdef SPARSE_CUDA
    cudaFreeHost(m->values);
#else
    free(m->values);
#endif
}

/* What was released is free then. */
static void finish_device(void)
{
#ifdef SPARSE_CUDA
    cudaDeviceSynchronize();
#endif
}

/* One operand may lie on the device: 0 none, 1 X, 2 Y. Both contexts get the same. */
static void same_as_in_core(uint64_t seed)
{
    static const struct { sp_value_type a; sp_dense_type x, y; } types[] = {
        {SP_F32, SP_DENSE_F32, SP_DENSE_F32}, {SP_F64, SP_DENSE_F64, SP_DENSE_F64},
        {SP_F32, SP_DENSE_F16, SP_DENSE_F16}, {SP_F32, SP_DENSE_BF16, SP_DENSE_F32},
    };
    test_random random = test_seed(seed);
    const int64_t width = 640 + test_below(&random, 260), gap = test_below(&random, 2) * test_below(&random, 9);
    const int type = (int)test_below(&random, 4), placed = seed % 3 ? 0 : 1 + (int)test_below(&random, 2);
    const bool pinned = test_below(&random, 2);
    const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)test_below(&random, ALGORITHMS),
                                     .reduce = (sp_reduce)test_below(&random, REDUCTIONS),
                                     .transpose = test_below(&random, 2), .partition_bytes = 20000};
    const double alpha = test_below(&random, 2) ? 1 : -0.75, beta = test_below(&random, 2) ? 0 : 1.5;
    const int64_t y_rows = placed == 2 ? 100 : placed == 1 ? 2500 : 1300 + test_below(&random, 200);
    const int64_t x_rows = placed == 1 ? 100 : placed == 2 ? 2500 : 1300 + test_below(&random, 200);
    sp_context *host = test_context(0, 1), *contexts[] = {test_context(1, 2), budget_context(NULL, NULL)};
    sp_csr a = options.transpose ? large_sparse(host, &random, x_rows, y_rows, types[type].a)
                                 : large_sparse(host, &random, y_rows, x_rows, types[type].a);
    sp_dense x = random_dense(&random, x_rows, width, width + gap, types[type].x, TEST_SIGNED);
    sp_dense y = random_dense(&random, y_rows, width, width + gap, types[type].y, TEST_SIGNED), results[2];
    ck_assert_int_gt((int64_t)(bytes_of(&x) + bytes_of(&y)), BUDGET);
    for (int i = 0; i < 2; i++) {
        sp_dense x_used = pinned ? pinned_clone(&x) : clone(&x), y_used, x_placed, y_placed;
        sp_spmm_plan *plan;
        results[i] = pinned ? pinned_clone(&y) : clone(&y);
        y_used = results[i];
        if (beta == 0) fill(&y_used, NAN);
        ck_ok(contexts[i], sp_spmm_plan_create(contexts[i], &a, width, &options, &plan));
        x_placed = place_dense(contexts[i], &x_used, placed == 1);
        y_placed = place_dense(contexts[i], &y_used, placed == 2);
        ck_ok(contexts[i], sp_spmm_execute(plan, alpha, &x_placed, beta, &y_placed));
        fetch_dense(contexts[i], &y_placed, &results[i]);
        if (placed == 1) sp_dense_free(contexts[i], &x_placed);
        sp_spmm_plan_free(plan);
        if (pinned) free_pinned(&x_used);
        else free(x_used.values);
    }
    test_expect(memcmp(results[0].values, results[1].values, bytes_of(&y)) == 0,
                "seed %llu: types %d %d, algorithm %d, reduction %d, width %lld differ out of core",
                (unsigned long long)seed, (int)x.type, (int)y.type, (int)options.algorithm, (int)options.reduce,
                (long long)width);
    for (int i = 0; i < 2; i++) {
        if (pinned) free_pinned(&results[i]);
        else free(results[i].values);
        sp_context_destroy(contexts[i]);
    }
    free_all(x.values, y.values);
    sp_csr_free(host, &a);
    sp_context_destroy(host);
}

TEST(products_out_of_core_have_the_bits_of_those_in_core)
{
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(60); seed++) same_as_in_core(seed);
}

/* Panels take the last columns in a tile of a half or a quarter of a line, or of a line and a half, and a streamed
 * tile of X may begin and end anywhere: 40 to 130 columns of X and Y fit beside A. */
TEST(panels_out_of_core_have_the_bits_of_those_in_core)
{
    static const sp_dense_type types[] = {SP_DENSE_F32, SP_DENSE_F16, SP_DENSE_BF16};
    static const int64_t some[] = {208, 232, 240, 176};
    enum { TYPES = 3, ROOM = 3 << 20 /* for the plan */ };
    sp_context *host = test_context(0, 2), *whole = test_context(1, 2);
    sp_csr a = random_communities(host, 1);
    for (int64_t kind = 0; kind < 4 * TYPES; kind++) {
        const sp_dense_type type = types[kind % TYPES];
        const int64_t width = some[kind / TYPES], columns = 40 + 30 * (kind / TYPES);
        test_random random = test_seed((uint64_t)kind + 1);
        sp_dense x = random_dense(&random, a.cols, width, width, type, TEST_SIGNED), results[2];
        const size_t column = bytes_of(&x) / (size_t)width + 4 * (size_t)a.rows;
        const size_t left = 8 * ((size_t)a.rows + 1) + 8 * (size_t)a.nnz + ROOM + (size_t)columns * column;
        sp_context *contexts[] = {whole, limited_context(left, NULL, NULL)};
        for (int i = 0; i < 2; i++) {
            sp_spmm_plan *plan;
            results[i] = make_dense(a.rows, width, width, SP_DENSE_F32);
            fill(&results[i], NAN);
            ck_ok(contexts[i], sp_spmm_plan_create(contexts[i], &a, width, NULL, &plan));
            ck_ok(contexts[i], sp_spmm_execute(plan, 1, &x, 0, &results[i]));
            sp_spmm_plan_free(plan);
        }
        test_expect(memcmp(results[0].values, results[1].values, bytes_of(&results[0])) == 0,
                    "type %d, width %lld: results differ out of core, where %lld columns fit", (int)type,
                    (long long)width, (long long)columns);
        for (int i = 0; i < 2; i++) free(results[i].values);
        free(x.values);
        sp_context_destroy(contexts[1]);
    }
    sp_csr_free(host, &a);
    test_end(whole, host);
}

/* Arguments on the host, of A and of its transpose, beside those of the CPU. */
TEST(arguments_out_of_core_are_the_first_of_equals)
{
    sp_context *host = test_context(0, 2), *context = budget_context(NULL, NULL);
    for (uint64_t seed = 1; seed <= 8; seed++) {
        test_random random = test_seed(seed);
        const int64_t rows = 900 + 50 * (int64_t)seed, width = 700 + test_below(&random, 30);
        const sp_spmm_options options = {.reduce = seed % 2 ? SP_REDUCE_MAX : SP_REDUCE_MIN,
                                         .transpose = seed / 2 % 2,
                                         .algorithm = (sp_spmm_algorithm)(seed / 4 % 2 + 1)};
        sp_csr a = large_sparse(host, &random, rows, rows, SP_F32);
        sp_dense x = random_dense(&random, rows, width, width + 1, SP_DENSE_F32, TEST_INTEGERS);
        sp_dense y[] = {make_dense(rows, width, width + 2, SP_DENSE_F32),
                        make_dense(rows, width, width + 2, SP_DENSE_F32)};
        const size_t bytes = (size_t)(rows * width) * sizeof(int64_t);
        int64_t *arguments[] = {malloc(bytes), malloc(bytes)};
        for (int64_t k = 0; k < a.nnz; k++) ((float *)a.values)[k] = 1;
        for (int i = 0; i < 2; i++) {
            sp_context *used = i ? context : host;
            sp_spmm_plan *plan;
            ck_assert_ptr_nonnull(arguments[i]);
            ck_ok(used, sp_spmm_plan_create(used, &a, width, &options, &plan));
            ck_ok(used, sp_spmm_execute_argument(plan, &x, &y[i], arguments[i]));
            sp_spmm_plan_free(plan);
        }
        test_expect(memcmp(arguments[0], arguments[1], bytes) == 0, "seed %llu: arguments", (unsigned long long)seed);
        test_expect(memcmp(y[0].values, y[1].values, bytes_of(&y[0])) == 0, "seed %llu: values",
                    (unsigned long long)seed);
        for (int i = 0; i < 2; i++) free(y[i].values), free(arguments[i]);
        free(x.values);
        sp_csr_free(host, &a);
    }
    test_end(context, host);
}

/* X and Y have so many rows that 8 or 16 columns of X fit, once or twice: even so the bits are those in core. */
TEST(narrow_tiles_have_the_bits_of_products_in_core)
{
    sp_context *host = test_context(0, 1), *contexts[] = {test_context(1, 2), budget_context(NULL, NULL)};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        test_random random = test_seed(seed);
        const sp_spmm_options options = {.algorithm = SP_SPMM_ROW_SPLIT,
                                         .reduce = seed % 4 == 3 ? SP_REDUCE_MAX : SP_REDUCE_SUM};
        const int64_t rows = 8000 + 4000 * (int64_t)seed, width = seed % 2 ? 49 + test_below(&random, 40) : 64;
        const double beta = seed % 4 == 0 ? -0.5 : 0;
        sp_csr a = large_sparse(host, &random, rows, rows, SP_F32);
        sp_dense x = random_dense(&random, rows, width, width, SP_DENSE_F32, TEST_SIGNED);
        sp_dense y = random_dense(&random, rows, width, width, SP_DENSE_F32, TEST_SIGNED), results[2];
        for (int i = 0; i < 2; i++) {
            sp_dense x_used = seed % 3 ? pinned_clone(&x) : clone(&x);
            sp_spmm_plan *plan;
            results[i] = seed % 3 ? pinned_clone(&y) : clone(&y);
            ck_ok(contexts[i], sp_spmm_plan_create(contexts[i], &a, width, &options, &plan));
            ck_ok(contexts[i], sp_spmm_execute(plan, 1, &x_used, beta, &results[i]));
            sp_spmm_plan_free(plan);
            if (seed % 3) free_pinned(&x_used);
            else free(x_used.values);
        }
        test_expect(memcmp(results[0].values, results[1].values, bytes_of(&y)) == 0,
                    "seed %llu: %lld rows, width %lld differ out of core", (unsigned long long)seed, (long long)rows,
                    (long long)width);
        for (int i = 0; i < 2; i++) {
            if (seed % 3) free_pinned(&results[i]);
            else free(results[i].values);
        }
        free_all(x.values, y.values);
        sp_csr_free(host, &a);
    }
    for (int i = 0; i < 2; i++) sp_context_destroy(contexts[i]);
    sp_context_destroy(host);
}

/* X has so many rows that no tile of its columns fits: sums by ranges of rows, and no extremes. */
TEST(ranges_of_x_are_summed_where_no_tile_fits)
{
    static const struct { int64_t rows, cols, width, gap; sp_dense_type x, y; double beta; } cases[] = {
        {3000, 99000, 32, 0, SP_DENSE_F32, SP_DENSE_F32, 0},  {500, 1000000, 1, 0, SP_DENSE_F32, SP_DENSE_F32, 0.5},
        {2000, 99000, 77, 3, SP_DENSE_F32, SP_DENSE_F32, -2}, {1000, 99000, 50, 0, SP_DENSE_F64, SP_DENSE_F64, 1},
        {2000, 99000, 64, 8, SP_DENSE_F16, SP_DENSE_F16, 3},  {2000, 99000, 40, 1, SP_DENSE_BF16, SP_DENSE_F32, 0},
    };
    sp_context *host = test_context(0, 1), *context = budget_context(NULL, NULL);
    for (int kind = 0; kind < 4 * (int)(COUNT(cases)); kind++) {
        const int c = kind / 4;
        if (test_is_brief() && kind % 4 != c % 4) continue;
        test_random random = test_seed((uint64_t)kind + 1);
        const sp_spmm_options options = {.reduce = kind % 2 ? SP_REDUCE_MEAN : SP_REDUCE_SUM,
                                         .algorithm = kind % 4 / 2 ? SP_SPMM_BLOCK_PARTITION : SP_SPMM_ROW_SPLIT};
        const sp_spmm_options extreme = {.reduce = SP_REDUCE_MAX};
        const int64_t stride = cases[c].width + cases[c].gap;
        scenario s = {.alpha = 1.25, .beta = cases[c].beta, .seed = (uint64_t)kind + 1};
        sp_spmm_plan *plan;
        s.a = large_sparse(host, &random, cases[c].rows, cases[c].cols, cases[c].x == SP_DENSE_F64 ? SP_F64 : SP_F32);
        s.x = random_dense(&random, cases[c].cols, cases[c].width, stride, cases[c].x, TEST_SIGNED);
        s.y = random_dense(&random, cases[c].rows, cases[c].width, stride, cases[c].y, TEST_SIGNED);
        answer expected = reference(&(problem){&s.a, &s.x, options.reduce, false});
        run_scenario(context, &s, &options, &expected);
        ck_ok(context, sp_spmm_plan_create(context, &s.a, cases[c].width, &extreme, &plan));
        ck_assert_int_eq(sp_spmm_execute(plan, 1, &s.x, 0, &s.y), SP_ERROR_DEVICE_MEMORY);
        sp_spmm_plan_free(plan);
        free_answer(&expected);
        sp_csr_free(host, &s.a);
        free_all(s.x.values, s.y.values);
    }
    test_end(context, host);
}

/* A tile of Y takes more than the budget, the blocks of its rows do not. And where lanes are dealt to two entries the
 * one tile of X does not fit, but narrower ones do. */
TEST(tall_results_go_out_in_blocks)
{
    sp_context *host = test_context(0, 1), *context = budget_context(NULL, NULL);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        test_random random = test_seed(seed);
        const sp_spmm_options options = {.algorithm = SP_SPMM_ROW_SPLIT,
                                         .reduce = seed % 2 ? SP_REDUCE_SUM : SP_REDUCE_MAX};
        const int64_t cols = seed > 4 ? 20000 : 2000, width = seed > 4 ? 40 : 70, stride = seed > 4 ? 40 : 72;
        scenario s = {.alpha = 1.25, .beta = seed > 2 ? 0.5 : 0, .seed = seed};
        s.a = large_sparse(host, &random, 25000, cols, SP_F32);
        s.x = random_dense(&random, cols, width, stride, SP_DENSE_F32, TEST_SIGNED);
        s.y = random_dense(&random, 25000, width, stride, SP_DENSE_F32, TEST_SIGNED);
        run_and_free(context, host, &s, &options);
    }
    test_end(context, host);
}

/* X of 99,000 rows takes more than the budget in any tile, and maxima have no ranges. Nothing is lost by trying: as
 * much fits as before. */
TEST(what_no_tile_fits_is_refused)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    volatile int flag = 0;
    sp_context *host = test_context(0, 1), *context = budget_context(&allocator, &flag);
    test_random random = test_seed(5);
    const sp_spmm_options options = {.algorithm = SP_SPMM_ROW_SPLIT, .reduce = SP_REDUCE_MAX};
    sp_csr a = large_sparse(host, &random, 2000, 99000, SP_F32);
    sp_dense x = random_dense(&random, 99000, 64, 64, SP_DENSE_F32, TEST_SIGNED);
    sp_dense y = make_dense(2000, 64, 64, SP_DENSE_F32), most;
    sp_csr small = large_sparse(host, &random, 1500, 1500, SP_F32);
    sp_dense wide = random_dense(&random, 1500, 600, 600, SP_DENSE_F32, TEST_SIGNED);
    sp_dense made = make_dense(1500, 600, 600, SP_DENSE_F32);
    sp_spmm_plan *plan, *fitting;
    ck_ok(context, sp_spmm_plan_create(context, &a, 64, &options, &plan));
    ck_ok(context, sp_spmm_plan_create(context, &small, 600, NULL, &fitting));
    ck_ok(context, sp_spmm_execute(fitting, 1, &wide, 0, &made));
    const int64_t before = heap.live_blocks;
    int64_t rows = BUDGET / 1024;
    finish_device();
    while (sp_dense_create(context, rows, 256, SP_DENSE_F32, SP_DEVICE, &most) != SP_OK) rows--;
    sp_dense_free(context, &most);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(sp_spmm_execute(plan, 1, &x, 0, &y), SP_ERROR_DEVICE_MEMORY);
        ck_assert_ptr_nonnull(strstr(sp_last_error(context), "bytes"));
        ck_ok(context, sp_spmm_execute(fitting, 1, &wide, 0, &made));
        flag = 1;
        ck_assert_int_eq(sp_spmm_execute(fitting, 1, &wide, 0, &made), SP_ERROR_INTERRUPTED);
        flag = 0;
        ck_assert_int_eq(heap.live_blocks, before);
    }
    finish_device();
    ck_ok(context, sp_dense_create(context, rows, 256, SP_DENSE_F32, SP_DEVICE, &most));
    sp_dense_free(context, &most);
    sp_spmm_plan_free(plan);
    sp_spmm_plan_free(fitting);
    sp_context_destroy(context);
    test_free(host, &a, &small);
    sp_context_destroy(host);
    free_all(x.values, y.values, wide.values, made.values);
}

/* Pageable operands go through buffers that a plan keeps: those that cannot be had fail the product alone. */
TEST(failed_allocations_out_of_core_leave_nothing)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    sp_context *host = test_context(0, 1), *context = budget_context(&allocator, NULL);
    test_random random = test_seed(6);
    sp_csr a = large_sparse(host, &random, 1500, 1500, SP_F32);
    sp_dense x = random_dense(&random, 1500, 700, 700, SP_DENSE_F32, TEST_SIGNED);
    sp_dense y = make_dense(1500, 700, 700, SP_DENSE_F32), expected = make_dense(1500, 700, 700, SP_DENSE_F32);
    sp_spmm_plan *plan;
    const int64_t empty = heap.live_blocks;
    int64_t kept;
    ck_ok(context, sp_spmm_plan_create(context, &a, 700, NULL, &plan));
    kept = heap.live_blocks;
    for (int64_t n = 0;; n++) {
        const int64_t before = heap.live_blocks;
        heap.allocations = 0;
        heap.fail_at = n;
        const sp_status status = sp_spmm_execute(plan, 1, &x, 0, &y);
        heap.fail_at = -1;
        if (status == SP_OK) break;
        ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        test_expect(heap.live_blocks - before <= n, "allocation %lld: %lld blocks more", (long long)n,
                    (long long)(heap.live_blocks - before));
        ck_assert_int_lt(n, 20);
    }
    ck_assert_int_gt(heap.live_blocks, kept);
    ck_ok(context, sp_spmm_execute(plan, 1, &x, 0, &expected));
    ck_assert_mem_eq(y.values, expected.values, bytes_of(&y));
    sp_spmm_plan_free(plan);
    ck_assert_int_eq(heap.live_blocks, empty);
    sp_context_destroy(context);
    sp_csr_free(host, &a);
    sp_context_destroy(host);
    free_all(x.values, y.values, expected.values);
}

const test_entry out_of_core_tests[] = {
    CASE("products", 600),
    ON_CUDA(products_out_of_core_have_the_bits_of_those_in_core),
    ON_CUDA(panels_out_of_core_have_the_bits_of_those_in_core),
    ON_CUDA(arguments_out_of_core_are_the_first_of_equals),
    ON_CUDA(narrow_tiles_have_the_bits_of_products_in_core),
    ON_CUDA(ranges_of_x_are_summed_where_no_tile_fits),
    ON_CUDA(tall_results_go_out_in_blocks),
    ON_CUDA(what_no_tile_fits_is_refused),
    ON_CUDA(failed_allocations_out_of_core_leave_nothing),
    {0},
};
