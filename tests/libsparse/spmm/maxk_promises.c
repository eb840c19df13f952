/* test_maxk: edges, refusals, failing allocations, interrupts. */
#include <stdlib.h>
#include <string.h>

#include "maxk_shared.h"

/* ---- promises -------------------------------------------------------------------------------------------- */

CONTEXT_TEST(graphs_without_edges_or_rows_are_graphs_too, _i, 1)
{
    static const int64_t shapes[][2] = {{0, 0}, {0, 4}, {5, 0}, {5, 4}};
    for (int s = 0; s < 4; s++)
        for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
            const int64_t rows = shapes[s][0], nodes = shapes[s][1];
            const double ones[50] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
            int64_t offsets[6] = {0};
            sp_csr a = {rows, nodes, 0, offsets, NULL, NULL, SP_F32, SP_HOST};
            sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)algorithm};
            sp_dense x = place(context, ones, nodes, 10, 10, SP_DENSE_F32),
                     y = place(context, ones, rows, 10, 10, SP_DENSE_F32);
            sp_cbsr kept, slopes;
            sp_spmm_plan *plan;
            ck_ok(context, sp_cbsr_create(context, nodes, 10, 3, SP_DENSE_F32, &kept));
            ck_ok(context, sp_cbsr_create(context, rows, 10, 3, SP_DENSE_F32, &slopes));
            ck_ok(context, sp_maxk(context, &x, &kept));
            ck_ok(context, sp_maxk(context, &y, &slopes));
            ck_ok(context, sp_spmm_plan_create(context, &a, 10, &options, &plan));
            ck_ok(context, sp_maxk_spmm(plan, 1, &kept, 0.5, &y));
            ck_ok(context, sp_maxk_spmm_backward(plan, &x, &slopes));
            kept_rows got = read_kept(context, &slopes);
            double *product = take_back(context, &y);
            for (int64_t i = 0; i < rows * 10; i++) ck_assert(product[i] == 0.5 * ones[i]);
            for (int64_t e = 0; e < rows * 3; e++) ck_assert(got.values[e] == 0);
            sp_spmm_plan_free(plan);
            sp_dense_free(context, &x);
            sp_cbsr_free(context, &kept);
            sp_cbsr_free(context, &slopes);
            free_kept(&got);
            free(product);
        }
}

CONTEXT_TEST(bad_arguments_are_refused, _i, 1)
{
    int64_t offsets[] = {0, 2, 3};
    int32_t cols[] = {0, 2, 1};
    float values[] = {1, 2, 3};
    sp_csr a = {2, 3, 3, offsets, cols, values, SP_F32, SP_HOST};
    const sp_spmm_options extreme = {.reduce = SP_REDUCE_MAX};
    const sp_space space = test_space(context);
    sp_cbsr none, kept, doubles, slopes;
    sp_dense x, y, narrow;
    sp_spmm_plan *plan, *maximum;
    ck_assert_int_eq(sp_cbsr_create(context, 3, 8, 0, SP_DENSE_F32, &none), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_cbsr_create(context, 3, 8, 9, SP_DENSE_F32, &none), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_cbsr_create(context, -1, 8, 2, SP_DENSE_F32, &none), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_cbsr_create(context, 3, 65537, 2, SP_DENSE_F32, &none), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_cbsr_create(context, 3, 8, 2, SP_DENSE_F16, &none), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_cbsr_create(context, INT64_MAX, 8, 2, SP_DENSE_F32, &none), SP_ERROR_OVERFLOW);
    ck_assert(!none.values && !none.columns);
    ck_ok(context, sp_cbsr_create(context, 3, 8, 2, SP_DENSE_F32, &kept));
    ck_ok(context, sp_cbsr_create(context, 2, 8, 2, SP_DENSE_F32, &slopes));
    ck_ok(context, sp_cbsr_create(context, 3, 8, 2, SP_DENSE_F64, &doubles));
    ck_ok(context, sp_dense_create(context, 3, 8, SP_DENSE_F32, space, &x));
    ck_ok(context, sp_dense_create(context, 2, 8, SP_DENSE_F32, space, &y));
    ck_ok(context, sp_dense_create(context, 3, 7, SP_DENSE_F32, space, &narrow));
    ck_ok(context, sp_spmm_plan_create(context, &a, 8, NULL, &plan));
    ck_ok(context, sp_spmm_plan_create(context, &a, 8, &extreme, &maximum));
    ck_assert_int_eq(sp_maxk(context, &narrow, &kept), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk(context, &y, &kept), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk(context, &x, &doubles), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk_expand(context, &kept, &y), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk_spmm(plan, 1, &slopes, 0, &y), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk_spmm(plan, 1, &kept, 0, &x), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk_spmm(plan, 1, &doubles, 0, &y), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk_spmm(maximum, 1, &kept, 0, &y), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk_spmm_backward(plan, &y, &slopes), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk_spmm_backward(plan, &x, &kept), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(sp_maxk_spmm_backward(maximum, &x, &slopes), SP_ERROR_ARGUMENT);
    sp_dense elsewhere = x;
    elsewhere.space = space == SP_HOST ? SP_DEVICE : SP_HOST;
    ck_assert_int_eq(sp_maxk(context, &elsewhere, &kept), SP_ERROR_ARGUMENT);
    ck_assert(strstr(sp_last_error(context), "where the context computes") != NULL);
    sp_spmm_plan_free(plan);
    sp_spmm_plan_free(maximum);
    sp_cbsr_free(context, &kept);
    sp_cbsr_free(context, &slopes);
    sp_cbsr_free(context, &doubles);
    test_free_dense(context, &x, &y, &narrow);
}

/* Selection, expansion, product and gradient of ten nodes in a ring. */
static sp_status use_everything(sp_context *context)
{
    enum { NODES = 10, COLS = 6, K = 2 };
    static float x_values[NODES * COLS], y_values[NODES * COLS];
    int64_t offsets[NODES + 1];
    int32_t cols[NODES];
    for (int i = 0; i < NODES; i++) {
        offsets[i] = i;
        cols[i] = (i + 1) % NODES;
    }
    offsets[NODES] = NODES;
    sp_csr a = {NODES, NODES, NODES, offsets, cols, NULL, SP_F32, SP_HOST};
    sp_dense x = {.rows = NODES, .cols = COLS, .stride = COLS, .values = x_values},
             y = {.rows = NODES, .cols = COLS, .stride = COLS, .values = y_values};
    sp_cbsr kept = {0};
    sp_spmm_plan *plan = NULL;
    sp_status status = sp_spmm_plan_create(context, &a, COLS, NULL, &plan);
    if (status == SP_OK) status = sp_cbsr_create(context, NODES, COLS, K, SP_DENSE_F32, &kept);
    if (status == SP_OK) status = sp_maxk(context, &x, &kept);
    if (status == SP_OK) status = sp_maxk_expand(context, &kept, &x);
    if (status == SP_OK) status = sp_maxk_spmm(plan, 1, &kept, 0, &y);
    if (status == SP_OK) status = sp_maxk_spmm_backward(plan, &y, &kept);
    sp_spmm_plan_free(plan);
    sp_cbsr_free(context, &kept);
    return status;
}

TEST(failed_allocations_leave_nothing)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 2);
    const int64_t before = heap.live_blocks;
    for (int64_t n = 0;; n++) {
        heap.allocations = 0;
        heap.fail_at = n;
        const sp_status status = use_everything(context);
        ck_assert_msg(heap.live_blocks == before, "allocation %lld leaks", (long long)n);
        if (status == SP_OK) break;
        ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        ck_assert_int_lt(n, 100);
    }
    ck_assert_int_gt(heap.allocations, 5);
    sp_context_destroy(context);
}

TEST(interrupts_end_the_calls)
{
    volatile int flag = 1;
    sp_context *context = test_context_with(0, (sp_context_options){.threads = 2, .interrupt = &flag});
    sp_dense x;
    sp_cbsr kept;
    ck_ok(context, sp_dense_create(context, 10, 10, SP_DENSE_F32, SP_HOST, &x));
    ck_ok(context, sp_cbsr_create(context, 10, 10, 2, SP_DENSE_F32, &kept));
    memset(x.values, 0, 100 * sizeof(float));
    ck_assert_int_eq(sp_maxk(context, &x, &kept), SP_ERROR_INTERRUPTED);
    flag = 0;
    ck_ok(context, sp_maxk(context, &x, &kept));
    sp_cbsr_free(context, &kept);
    sp_dense_free(context, &x);
    sp_context_destroy(context);
}

const test_entry promises_tests[] = {
    CASE("promises", 120),
    ON_DEVICES(graphs_without_edges_or_rows_are_graphs_too),
    ON_DEVICES(bad_arguments_are_refused),
    ONCE(failed_allocations_leave_nothing),
    ONCE(interrupts_end_the_calls),
    {0},
};
