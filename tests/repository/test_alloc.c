/* Every allocation fails once: each public function is called with the first, second, third… allocation failing
 * until it succeeds. After each failure nothing is left allocated, outputs are as they were and the status says why.
 * The same with all later allocations failing too, as when memory has really run out; with the interrupt flag set by
 * an allocation; and on CUDA with each call of the runtime, and with each allocation on the device. */
#include <stdlib.h>
#include <string.h>

#include "alloc_shared.h"

bool is_untouched(const trial *t, const unsigned char *out)
{
    static const unsigned char zeros[MOST_BYTES];
    if (strstr(t->name, "_create") || strcmp(t->name, "sp_alloc") == 0 || strcmp(t->name, "sp_calloc") == 0)
        return memcmp(out, zeros, t->size) == 0 && test_is_marked(out + t->size, MOST_BYTES - t->size);
    return test_is_marked(out, MOST_BYTES);
}

/* Minibatches for which memory does not suffice are drawn again, half as many at a time. */
static bool retries(const trial *t) { return is_trial(t, "gnn_sampler_next") || is_trial(t, "gnn_trainer, sampled"); }

/* Calls with allocation `fail_at` failing; true when the call succeeded, as nothing was left to fail. */
static bool attempt(const trial *t, sp_context *context, test_heap *heap, subject *s, int64_t fail_at, bool fail_all)
{
    unsigned char out[MOST_BYTES];
    const int64_t blocks = heap->live_blocks, bytes = heap->live_bytes;
    test_mark(out, sizeof out);
    heap->allocations = 0;
    heap->fail_at = fail_at;
    heap->fail_all = fail_all;
    const sp_status status = t->call(context, s, out);
    const bool reached = heap->allocations > fail_at;
    heap->fail_at = -1;
    if (status == SP_OK) {
        test_expect(!reached || retries(t), "%s: succeeded although allocation %lld failed", t->name,
                    (long long)fail_at);
        t->release(context, out);
    } else {
        test_expect(status == SP_ERROR_HOST_MEMORY, "%s, allocation %lld: %s", t->name, (long long)fail_at,
                    sp_status_string(status));
        test_expect(is_untouched(t, out), "%s, allocation %lld: the output was touched", t->name, (long long)fail_at);
        test_expect(strstr(sp_last_error(context), "memory") != NULL, "%s: the sentence is \"%s\"", t->name,
                    sp_last_error(context));
    }
    test_expect(heap->live_blocks == blocks && heap->live_bytes == bytes,
                "%s, allocation %lld: %lld blocks, %lld bytes leaked", t->name, (long long)fail_at,
                (long long)(heap->live_blocks - blocks), (long long)(heap->live_bytes - bytes));
    return !reached;
}

/* Runs one trial to its end on a context with two threads: the order in which they allocate changes from run to
 * run, but which allocations fail in turn is covered all the same. */
static void exhaust(const trial *t, int threads, bool fail_all)
{
    test_heap heap = {.fail_at = -1};
    sp_context *host = test_context(0, 1), *context = test_heap_context(&heap, 0, threads);
    subject s = open_subject(host, context);
    int64_t n = 0;
    while (!attempt(t, context, &heap, &s, n, fail_all)) {
        n++;
        test_expect(n < 2000, "%s: no success after %lld failed allocations", t->name, (long long)n);
    }
    test_expect(n > 0, "%s: allocates nothing through the context", t->name);
    close_subject(host, &s);
    test_end_heap(context, &heap);
    sp_context_destroy(host);
}

TEST(one_failed_allocation_leaks_nothing) { exhaust(&trials[_i], 1, false); }

TEST(memory_that_has_run_out_leaks_nothing) { exhaust(&trials[_i], 1, true); }

TEST(failures_inside_threads_leak_nothing) { exhaust(&trials[_i], 2, true); }

/* ---- interrupts ------------------------------------------------------------------------------------------- */

/* Whether the call does work that grows with its operands, beside copying them. */
static bool is_long(const trial *t)
{
    static const char *const brief[] = {"sp_alloc", "sp_calloc", "sp_grow", "sp_csr_create", "sp_array_create",
                                        "sp_dense_create", "sp_dense_copy", "sp_cbsr_create", "sp_csr_copy"};
    for (size_t i = 0; i < COUNT(brief); i++)
        if (strcmp(t->name, brief[i]) == 0) return false;
    return strncmp(t->name, "sp_", 3) == 0;
}

/* Calls with the interrupt flag set before (-1) or by allocation `raise_at`; true when it was not reached. */
static bool interrupt_at(const trial *t, sp_context *context, test_heap *heap, subject *s, int64_t raise_at)
{
    unsigned char out[MOST_BYTES];
    const int64_t blocks = heap->live_blocks;
    test_mark(out, sizeof out);
    heap->allocations = 0;
    heap->raise_at = raise_at;
    *heap->flag = raise_at < 0;
    const sp_status status = t->call(context, s, out);
    const bool reached = heap->allocations > raise_at;
    heap->raise_at = -1;
    *heap->flag = 0;
    if (status == SP_OK) {
        test_expect(raise_at >= 0 || !is_long(t), "%s goes on although it was interrupted before", t->name);
        t->release(context, out);
    } else {
        test_expect(reached && status == SP_ERROR_INTERRUPTED, "%s, allocation %lld: %s (%s)", t->name,
                    (long long)raise_at, sp_status_string(status), sp_last_error(context));
        test_expect(is_untouched(t, out), "%s, allocation %lld: the output was touched", t->name,
                    (long long)raise_at);
    }
    test_expect(heap->live_blocks == blocks, "%s, allocation %lld: %lld blocks leaked", t->name, (long long)raise_at,
                (long long)(heap->live_blocks - blocks));
    return !reached;
}

TEST(interrupts_at_any_allocation_leak_nothing)
{
    volatile int flag = 0;
    test_heap heap = {.fail_at = -1, .flag = &flag, .raise_at = -1};
    sp_context *host = test_context(0, 1), *context = test_heap_context(&heap, 0, 2);
    subject s = open_subject(host, context);
    for (int64_t n = -1; !interrupt_at(&trials[_i], context, &heap, &s, n) && n < 2000; n++) {}
    close_subject(host, &s);
    test_end_heap(context, &heap);
    sp_context_destroy(host);
}

/* Many triples in each of the orders that are treated in their own way, the flag set by each allocation in turn, which
 * all loops but the last moves follow: with the work before a flag is set, no call goes on to its end after it. */
TEST(merges_end_soon_after_an_interrupt)
{
    enum { NODES = 3000, LENGTH = 1000, TRIPLES = NODES * LENGTH };
    volatile int flag = 0;
    test_heap heap = {.fail_at = -1, .flag = &flag, .raise_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 2);
    int32_t *rows = malloc(TRIPLES * sizeof *rows), *cols = malloc(TRIPLES * sizeof *cols);
    float *values = malloc(TRIPLES * sizeof *values);
    test_random random = test_seed(9);
    for (int order = 0; order < 4; order++) { /* anywhere; all in one row; ascending by rows; by columns */
        for (int k = 0; k < TRIPLES; k++) {
            const int32_t any = (int32_t)test_below(&random, NODES), other = (int32_t)test_below(&random, NODES);
            rows[k] = order == 1 ? 7 : order == 2 ? k / LENGTH : order == 3 ? k % LENGTH : any;
            cols[k] = order == 2 ? k % LENGTH : order == 3 ? k / LENGTH : other;
            values[k] = 1;
        }
        int64_t interrupted = 0;
        for (int64_t n = -1;; n++) {
            sp_csr m = {0};
            heap.allocations = 0;
            heap.raise_at = n;
            flag = n < 0;
            const sp_status status = sp_csr_from_coo(context, &(sp_coo){.rows = NODES, .cols = NODES, .count = TRIPLES,
                                                                        .row_indices = rows, .col_indices = cols,
                                                                        .values = values}, SP_COMBINE_SUM, false, &m);
            const bool reached = heap.allocations > n;
            interrupted += status == SP_ERROR_INTERRUPTED;
            ck_assert(status == SP_OK || (status == SP_ERROR_INTERRUPTED && !m.row_offsets));
            sp_csr_free(context, &m);
            ck_assert_int_eq(heap.live_blocks, 1); /* the context */
            if (!reached) break;
        }
        test_expect(interrupted >= (order < 2 ? 6 : 3), "order %d: %lld calls were interrupted", order,
                    (long long)interrupted);
    }
    free_all(rows, cols, values);
    sp_context_destroy(context);
}

TEST(context_creation_survives_a_failed_allocation)
{
    test_heap heap = {.fail_at = 0};
    const sp_allocator allocator = test_allocator(&heap);
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .allocator = &allocator}, &context),
                     SP_ERROR_HOST_MEMORY);
    ck_assert_ptr_null(context);
    ck_assert_int_eq(heap.live_blocks, 0);
}

/* On CUDA: host allocations of a product fail in turn; device memory belongs to the context's pool. */
TEST(products_on_any_device_leak_no_host_memory)
{
    test_heap heap = {.fail_at = -1};
    sp_context *host = test_context(0, 1), *context = test_heap_context(&heap, _i, 2);
    subject s = open_subject(host, context);
    for (int i = 0; i < TRIALS; i++) {
        if (strncmp(trials[i].name, "sp_spgemm", 9) != 0 && strncmp(trials[i].name, "sp_contract", 11) != 0) continue;
        /* The first call may leave something with the context for the next; that is not a leak. */
        attempt(&trials[i], context, &heap, &s, INT64_MAX, false);
        for (int64_t n = 0; !attempt(&trials[i], context, &heap, &s, n, false) && n < 200; n++) {}
    }
    close_subject(host, &s);
    test_end_heap(context, &heap);
    sp_context_destroy(host);
}

static const test_entry tests[] = {
    CASE("failures", 120),
    TURNS(one_failed_allocation_leaks_nothing, TRIALS),
    TURNS(memory_that_has_run_out_leaks_nothing, TRIALS),
    TURNS(failures_inside_threads_leak_nothing, TRIALS),
    TURNS(interrupts_at_any_allocation_leak_nothing, TRIALS),
    ONCE(merges_end_soon_after_an_interrupt),
    ONCE(context_creation_survives_a_failed_allocation),
    ON_DEVICES(products_on_any_device_leak_no_host_memory),
    {0},
};

int main(void) { return test_run("alloc", tests, cuda_tests); }
