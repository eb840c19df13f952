/* test_context: the caller's device memory, and the current device of the caller's thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef SPARSE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "context_shared.h"

/* ---- the caller's memory ----------------------------------------------------------------------------------- */

CONTEXT_TEST(allocators_of_device_memory_need_both_functions, 0, 1)
{
    const sp_device_allocator none = {0};
    sp_context *made;
    test_mark(&made, sizeof made);
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .device_allocator = &none}, &made),
                     SP_ERROR_ARGUMENT);
    ck_assert_ptr_null(made);
    ck_assert_str_eq(sp_last_error(NULL), "an allocator of device memory needs the functions allocate and release");
}

#ifdef SPARSE_CUDA
/* One call of each kind, whose results are those of `host`. Fails with the status of the first call that does. */
static sp_status use(sp_context *context, sp_context *host, const sp_csr *a)
{
    const sp_space space = test_space(context);
    const int32_t edges[] = {0, 1, 2, 1};
    int32_t *there = NULL, *labels = NULL;
    sp_csr moved = {0}, c = {0}, expected = {0}, made = {0}, added = {0}, near = {0}, quotient = {0};
    sp_dense x = {0}, y = {0};
    sp_spmm_plan *plan = NULL;
    sp_status status = sp_csr_copy(context, a, space, &moved);
    if (status == SP_OK) status = sp_spgemm(context, &moved, &moved, NULL, &c, NULL);
    if (status == SP_OK) status = sp_csr_add(context, 1, &moved, 2, &c, &added);
    if (status == SP_OK) status = sp_similarity(context, &moved, &moved, NULL, &near, NULL);
    if (status == SP_OK) status = sp_array_create(context, 4, sizeof *there, space, (void **)&there);
    if (status == SP_OK) status = sp_array_copy(context, 4, sizeof *there, there, space, edges, SP_HOST);
    if (status == SP_OK)
        status = sp_csr_from_coo(context, &(sp_coo){.rows = 3, .cols = 3, .count = 4, .row_indices = there,
                                                    .col_indices = there, .space = space}, SP_COMBINE_SUM, false,
                                                    &made);
    if (status == SP_OK) status = sp_array_create(context, a->rows, sizeof *labels, space, (void **)&labels);
    if (status == SP_OK) status = sp_csr_degree_order(context, &moved, labels, space);
    if (status == SP_OK) status = sp_contract(context, &moved, labels, space, a->rows, NULL, &quotient, NULL);
    if (status == SP_OK) status = sp_dense_create(context, a->cols, 20, SP_DENSE_F64, space, &x);
    if (status == SP_OK) status = sp_dense_create(context, a->rows, 20, SP_DENSE_F64, space, &y);
    if (status == SP_OK) status = sp_spmm_plan_create(context, &moved, 20, NULL, &plan);
    if (status == SP_OK) status = sp_spmm_execute(plan, 1, &x, 0, &y);
    if (status == SP_OK) status = sp_context_trim(context);
    if (status == SP_OK) {
        ck_ok(host, sp_spgemm(host, a, a, NULL, &expected, NULL));
        test_to_host(context, &c);
        test_same(&expected, &c, 1);
        sp_csr_free(host, &expected);
    }
    sp_spmm_plan_free(plan);
    test_free(context, &moved, &c, &made, &added, &near, &quotient);
    test_free_dense(context, &x, &y);
    sp_array_free(context, space, there);
    sp_array_free(context, space, labels);
    return status;
}

enum { BLOCKS = 4096 };

/* An allocator that counts, and knows what it gave. */
typedef struct lender {
    int64_t asked, fail_at; /* allocations; the first that fails, -1 for none */
    int64_t blocks, bytes, peak;
    struct { void *data; size_t bytes; } given[BLOCKS];
} lender;

static void *lend(void *user, size_t bytes, int device, void *stream)
{
    lender *l = user;
    void *data;
    int current = -1;
    ck_assert_int_eq(cudaGetDevice(&current), cudaSuccess);
    ck_assert_int_eq(current, device);
    ck_assert_int_eq(cudaStreamQuery(stream) == cudaErrorInvalidResourceHandle, 0);
    if (l->asked++ >= l->fail_at && l->fail_at >= 0) return NULL;
    ck_assert_int_lt(l->blocks, BLOCKS);
    if (cudaMalloc(&data, bytes) != cudaSuccess) return NULL;
    l->given[l->blocks].data = data;
    l->given[l->blocks++].bytes = bytes;
    l->bytes += (int64_t)bytes;
    if (l->bytes > l->peak) l->peak = l->bytes;
    return data;
}

static void take_back(void *user, void *pointer, size_t bytes, int device, void *stream)
{
    lender *l = user;
    int64_t at = 0;
    (void)device;
    while (at < l->blocks && l->given[at].data != pointer) at++;
    ck_assert_int_lt(at, l->blocks);
    ck_assert_uint_eq(l->given[at].bytes, bytes);
    l->given[at] = l->given[--l->blocks];
    l->bytes -= (int64_t)bytes;
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
    cudaFree(pointer);
}

static sp_context *lending_context(lender *l, size_t budget)
{
    const sp_device_allocator allocator = {lend, take_back, l};
    *l = (lender){.fail_at = -1};
    return test_context_with(1, (sp_context_options){.threads = 1, .memory_budget = budget,
                                                     .device_allocator = &allocator});
}

/* All device memory is the caller's, its failures are ours, and all of it goes back. */
HOST_TEST(device_memory_comes_from_the_caller, 1)
{
    test_random random = test_seed(3);
    sp_csr a = test_matrix(host, &random, 300, 300, 0.05, SP_F64, TEST_SIGNED);
    static lender l;
    sp_context *context = lending_context(&l, 0);
    ck_ok(context, use(context, host, &a));
    ck_assert_int_eq(l.blocks, 0);
    const int64_t all = l.asked;
    ck_assert_int_gt(all, 10);
    for (int64_t at = 0; at < all; at++) {
        l.asked = 0;
        l.fail_at = at;
        const sp_status status = use(context, host, &a);
        test_expect(status == SP_ERROR_DEVICE_MEMORY || status == SP_OK, "allocation %lld: status %d", (long long)at,
                    (int)status);
        ck_assert_int_eq(l.blocks, 0);
    }
    sp_context_destroy(context);
    context = lending_context(&l, 1 << 16);
    ck_assert_int_eq(use(context, host, &a), SP_ERROR_DEVICE_MEMORY);
    ck_assert_int_le(l.peak, 1 << 16);
    void *forgotten;
    ck_ok(context, sp_array_create(context, 10, 8, SP_DEVICE, &forgotten));
    sp_context_destroy(context);
    ck_assert_int_eq(l.blocks, 0);
    sp_csr_free(host, &a);
}

/* ---- the current device ------------------------------------------------------------------------------------ */

static bool has_two_gpus(void) { return sp_cuda_count() > 1; }

/* A context of the last device, while another is current: before, between and after its calls. */
static void *work_on_last(void *user)
{
    sp_context *host = test_context(0, 1), *context;
    const int last = sp_cuda_count() - 1, *chosen = user;
    const int before = chosen ? *chosen : 0;
    char name[20];
    int current = -1;
    test_random random = test_seed(4);
    sp_csr a = test_matrix(host, &random, 300, 300, 0.05, SP_F64, TEST_SIGNED);
    if (chosen) ck_assert_int_eq(cudaSetDevice(*chosen), cudaSuccess);
    snprintf(name, sizeof name, "cuda:%d", last);
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = name}, &context), SP_OK);
    ck_assert(cudaGetDevice(&current) == cudaSuccess && current == before);
    ck_ok(context, use(context, host, &a));
    ck_assert(cudaGetDevice(&current) == cudaSuccess && current == before);
    ck_ok(context, sp_context_enter(context));
    ck_assert(cudaGetDevice(&current) == cudaSuccess && current == last);
    ck_ok(context, use(context, host, &a));
    ck_assert(cudaGetDevice(&current) == cudaSuccess && current == last);
    sp_context_leave(context);
    ck_assert(cudaGetDevice(&current) == cudaSuccess && current == before);
    sp_context_destroy(context);
    ck_assert(cudaGetDevice(&current) == cudaSuccess && current == before);
    sp_csr_free(host, &a);
    sp_context_destroy(host);
    return NULL;
}

/* Also of a thread that has never chosen a device. */
TEST(calls_leave_the_current_device_as_it_was)
{
    pthread_t thread;
    int first = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, work_on_last, NULL), 0);
    pthread_join(thread, NULL);
    work_on_last(&first);
}
#endif

CONTEXT_TEST(entering_a_context_nests, _i, 1)
{
    ck_ok(context, sp_context_enter(context));
    ck_ok(context, sp_context_enter(context));
    sp_context_leave(context);
    sp_context_leave(context);
    sp_context_leave(NULL);
    ck_assert_int_eq(sp_context_enter(NULL), SP_ERROR_ARGUMENT);
}

const test_entry device_tests[] = {
    CASE("device memory", 300),
    ONCE(allocators_of_device_memory_need_both_functions),
#ifdef SPARSE_CUDA
    ON_CUDA(device_memory_comes_from_the_caller),
#endif
    CASE("current device", 120),
    ON_DEVICES(entering_a_context_nests),
#ifdef SPARSE_CUDA
    ONCE_IF(calls_leave_the_current_device_as_it_was, has_two_gpus),
#endif
    {0},
};
