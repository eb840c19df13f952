/* test_alloc, on CUDA: each call of the runtime fails in turn, and each allocation on the device. */
#include <stdlib.h>
#include <string.h>

#ifdef SPARSE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "alloc_shared.h"
#include "generate.h"

#ifdef SPARSE_CUDA
/* The linker gives the library these functions in place of the runtime's (--wrap in the Makefile). */
typedef enum failing { NO_CALL, ONE_CALL, ALLOCATIONS } failing; /* ALLOCATIONS: one and all after it */

static struct {
    failing what;
    int64_t calls, fail_at, live; /* live: blocks of device memory */
    bool in_wait; /* it was a wait that failed */
    cudaError_t last;
} runtime;

static bool fails(failing what, cudaError_t error)
{
    if (runtime.what != what) return false;
    const int64_t call = runtime.calls++;
    if (call != runtime.fail_at && (what == ONE_CALL || call < runtime.fail_at)) return false;
    runtime.last = error;
    return true;
}

#define RUNTIME(name, parameters, ...)                                            \
    cudaError_t __real_##name parameters __attribute__((weak));                   \
    cudaError_t __wrap_##name parameters;                                         \
    cudaError_t __wrap_##name parameters                                          \
    {                                                                             \
        if (fails(ONE_CALL, cudaErrorUnknown)) return cudaErrorUnknown;           \
        return __real_##name(__VA_ARGS__);                                        \
    }
RUNTIME(__cudaLaunchKernel, (void *k, dim3 g, dim3 b, void **a, size_t s, cudaStream_t t), k, g, b, a, s, t)
RUNTIME(cudaLaunchKernel, (const void *k, dim3 g, dim3 b, void **a, size_t s, cudaStream_t t), k, g, b, a, s, t)
RUNTIME(cudaLaunchKernelExC, (const cudaLaunchConfig_t *c, const void *k, void **a), c, k, a)
RUNTIME(cudaMemcpyAsync, (void *d, const void *s, size_t n, enum cudaMemcpyKind k, cudaStream_t t), d, s, n, k, t)
RUNTIME(cudaMemsetAsync, (void *d, int v, size_t n, cudaStream_t t), d, v, n, t)
RUNTIME(cudaStreamWaitEvent, (cudaStream_t t, cudaEvent_t e, unsigned f), t, e, f)
RUNTIME(cudaEventRecord, (cudaEvent_t e, cudaStream_t t), e, t)
RUNTIME(cudaFuncGetAttributes, (struct cudaFuncAttributes * a, const void *k), a, k)

cudaError_t __real_cudaStreamSynchronize(cudaStream_t);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream)
{
    if (!fails(ONE_CALL, cudaErrorUnknown)) return __real_cudaStreamSynchronize(stream);
    runtime.in_wait = true;
    return cudaErrorUnknown;
}

cudaError_t __real_cudaMallocFromPoolAsync(void **, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t __wrap_cudaMallocFromPoolAsync(void **, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t __wrap_cudaMallocFromPoolAsync(void **block, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    if (fails(ONE_CALL, cudaErrorUnknown)) return cudaErrorUnknown;
    if (fails(ALLOCATIONS, cudaErrorMemoryAllocation)) return cudaErrorMemoryAllocation;
    const cudaError_t error = __real_cudaMallocFromPoolAsync(block, bytes, pool, stream);
    runtime.live += error == cudaSuccess;
    return error;
}

cudaError_t __real_cudaFreeAsync(void *, cudaStream_t);
cudaError_t __wrap_cudaFreeAsync(void *, cudaStream_t);
cudaError_t __wrap_cudaFreeAsync(void *block, cudaStream_t stream)
{
    runtime.live--;
    return __real_cudaFreeAsync(block, stream);
}

cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void)
{
    const cudaError_t own = runtime.last, real = __real_cudaGetLastError();
    runtime.last = cudaSuccess;
    return own != cudaSuccess ? own : real;
}

cudaError_t __real_cudaPeekAtLastError(void);
cudaError_t __wrap_cudaPeekAtLastError(void);
cudaError_t __wrap_cudaPeekAtLastError(void)
{
    return runtime.last != cudaSuccess ? runtime.last : __real_cudaPeekAtLastError();
}

/* What waits for the device once more when its work is done and it is freed, which has no status to tell of that. */
static bool waits_when_freed(const trial *t)
{
    return strncmp(t->name, "gnn_trainer", 11) == 0 || strstr(t->name, "out of core");
}

/* A context keeps the counts of contractions for the next one, in one block, unless it fails. */
enum { KEPT_BLOCKS = 1 };

/* Calls with one failing; true when nothing was left to fail. What can do with less memory may succeed without. */
static bool attempt_on_device(const trial *t, sp_context *context, subject *s, failing what, int64_t fail_at)
{
    unsigned char out[MOST_BYTES];
    const int64_t live = runtime.live;
    test_mark(out, sizeof out);
    runtime.calls = 0;
    runtime.fail_at = fail_at;
    runtime.in_wait = false;
    runtime.last = cudaSuccess;
    runtime.what = what;
    const sp_status status = t->call(context, s, out);
    const bool reached = runtime.calls > fail_at;
    runtime.what = NO_CALL;
    test_expect(runtime.last == cudaSuccess, "%s, %d, %lld: the runtime's last error is left behind", t->name, what,
                (long long)fail_at);
    if (status == SP_OK) {
        test_expect(!reached || what == ALLOCATIONS || (runtime.in_wait && waits_when_freed(t)),
                    "%s: succeeded although call %lld failed", t->name, (long long)fail_at);
        t->release(context, out);
    } else {
        test_expect(reached && status == (what == ALLOCATIONS ? SP_ERROR_DEVICE_MEMORY : SP_ERROR_DEVICE),
                    "%s, %d, %lld: %s (%s)", t->name, what, (long long)fail_at, sp_status_string(status),
                    sp_last_error(context));
        test_expect(is_untouched(t, out), "%s, %d, %lld: the output was touched", t->name, what, (long long)fail_at);
    }
    test_expect(llabs(runtime.live - live) <= KEPT_BLOCKS, "%s, %d, %lld: %lld blocks of device memory leaked",
                t->name, what, (long long)fail_at, (long long)(runtime.live - live));
    return !reached;
}

static void place(sp_context *context, sp_csr *matrix)
{
    sp_csr there;
    ck_ok(context, sp_csr_copy(context, matrix, SP_DEVICE, &there));
    sp_csr_free(context, matrix);
    *matrix = there;
}

static void place_dense(sp_context *context, sp_dense *matrix)
{
    sp_dense there;
    ck_ok(context, sp_dense_copy(context, matrix, SP_DEVICE, &there));
    sp_dense_free(context, matrix);
    *matrix = there;
}

/* Each call of the runtime, then each allocation and all after it. */
static void exhaust_device(const trial *t, sp_context *context, const test_heap *heap, subject *s)
{
    const int64_t before = heap->live_blocks, live = runtime.live;
    /* The first call may leave something with the context and the runtime for the next. */
    attempt_on_device(t, context, s, NO_CALL, INT64_MAX);
    for (int64_t n = 0; !attempt_on_device(t, context, s, ONE_CALL, n); n++) {}
    for (int64_t n = 0; !attempt_on_device(t, context, s, ALLOCATIONS, n); n++) {}
    test_expect(heap->live_blocks == before, "%s: host memory leaked", t->name);
    test_expect(llabs(runtime.live - live) <= KEPT_BLOCKS, "%s: device memory leaked", t->name);
}

/* Operands on the host, then on the device, where most functions of the library take them. */
TEST(any_call_of_the_runtime_may_fail)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 1, 2);
    for (int there = 0; there < 2; there++) {
        subject s = open_subject(context, context);
        sp_csr *all[] = {&s.square, &s.negative, &s.wide, &s.mask, &s.stochastic, &s.band, &s.elements};
        for (size_t m = 0; there && m < COUNT(all); m++) place(context, all[m]);
        if (there) place_dense(context, &s.dense);
        for (int i = 0; i < TRIALS; i++) {
            const trial *t = &trials[i];
            if (is_trial(t, "dense sp_spgemm") || is_trial(t, "sp_similarity")) continue;
            if (there && strncmp(t->name, "sp_", 3) != 0) continue;
            if (there && (is_trial(t, "sp_csr_permute") || is_trial(t, "sp_csr_community_order"))) continue;
            exhaust_device(t, context, &heap, &s);
        }
        close_subject(context, &s);
    }
    test_end_heap(context, &heap);
    ck_assert_int_eq(runtime.live, 0);
}

/* X and Y are 5 MB each, on the host, and go in tiles through a device that may hold 8 with A. */
TEST(any_call_of_a_product_out_of_core_may_fail)
{
    enum { ROWS = 20000, COLS = 64 };
    trial t = {0};
    for (int i = 0; i < TRIALS; i++)
        if (is_trial(&trials[i], "sp_spmm_execute, blocks")) t = trials[i];
    t.name = "sp_spmm_execute, out of core";
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    sp_context *context = test_context_with(
        1, (sp_context_options){.threads = 2, .allocator = &allocator, .memory_budget = 8 << 20});
    subject s = {0};
    ck_ok(context, generate_matrix(context, "uniform:20000,4", 1, SP_F32, &s.stochastic));
    ck_ok(context, sp_dense_create(context, ROWS, COLS, SP_DENSE_F32, SP_HOST, &s.dense));
    for (int64_t i = 0; i < ROWS * COLS; i++) ((float *)s.dense.values)[i] = (float)(i % 7);
    exhaust_device(&t, context, &heap, &s);
    close_subject(context, &s);
    test_end_heap(context, &heap);
    ck_assert_int_eq(runtime.live, 0);
}
#else
TEST(any_call_of_the_runtime_may_fail) {}
TEST(any_call_of_a_product_out_of_core_may_fail) {}
#endif

const test_entry cuda_tests[] = {
    CASE("device", 120),
    ON_CUDA(any_call_of_the_runtime_may_fail),
    ON_CUDA(any_call_of_a_product_out_of_core_may_fail),
    {0},
};
