/* What the suites share: devices, random matrices, slow and obvious references, an allocator that counts and fails,
 * and a runner that ends with the line "N passed, N failed, N skipped".
 *
 * A suite is a table of test_entry; main is `return test_run("NAME", tests);`. A long suite test_NAME.c has parts
 * NAME_*.c beside it with a table each, and NAME_shared.[ch] for what they share. A test is a function of its turn
 * `_i`, which for tests that run once a device is the device for test_context.
 *
 * From the environment: TEST_CASES=N runs N random cases in place of a suite's own, and less of the rest if N is
 * below 100; TEST_SHARE=I/N runs every N-th test of a suite, from number I on, so that N processes, I = 0 .. N - 1,
 * run each test once. A turn of a loop counts as a test.
 */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <check.h>

#include "sparse.h"

/* ---- running ------------------------------------------------------------------------------------------- */

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* TEST(name) { ... } */
#define TEST(name) static void name(int _i CK_ATTRIBUTE_UNUSED)
/* A test with a context of its own: `context` on a device, an expression in _i; `host` on the CPU; or both, `host` with
 * one thread. */
#define CONTEXT_TEST(name, device, threads) TEST_WITH(name, context, device, threads)
#define HOST_TEST(name, threads) TEST_WITH(name, host, 0, threads)
#define TEST_WITH(name, context, device, threads)                                                               \
    static void name##_body(sp_context *context, int _i);                                                       \
    TEST(name)                                                                                                  \
    {                                                                                                           \
        sp_context *test_own = test_context(device, threads);                                                   \
        name##_body(test_own, _i);                                                                              \
        sp_context_destroy(test_own);                                                                           \
    }                                                                                                           \
    static void name##_body(sp_context *context CK_ATTRIBUTE_UNUSED, int _i CK_ATTRIBUTE_UNUSED)
#define DEVICE_TEST(name, device, threads)                                                                      \
    static void name##_on(sp_context *host, sp_context *context, int _i);                                       \
    HOST_TEST(name, 1)                                                                                          \
    {                                                                                                           \
        sp_context *test_own = test_context(device, threads);                                                   \
        name##_on(host, test_own, _i);                                                                         \
        sp_context_destroy(test_own);                                                                           \
    }                                                                                                           \
    static void name##_on(sp_context *host, sp_context *context, int _i CK_ATTRIBUTE_UNUSED)

/* A row of the table of a suite, which a row of zeros ends. */
typedef struct test_entry {
    const char *name;
    void (*run)(int turn);           /* NULL: a case begins */
    int turns, seconds;              /* turns a device; a case's time limit, 0: Check's own */
    enum { TEST_ONCE, TEST_EACH, TEST_CUDA } devices;
    bool (*possible)(void);          /* unless NULL: whether it can run here; it is counted as skipped otherwise */
    void (*open)(void), (*close)(void);
} test_entry;

#define CASE(title, limit) {.name = title, .seconds = limit}
#define CASE_WITH(title, limit, before, after) {.name = title, .seconds = limit, .open = before, .close = after}
#define ONCE(test) TURNS(test, 1)
#define ONCE_IF(test, condition) {.name = #test, .run = test, .turns = 1, .possible = condition}
#define TURNS(test, count) {.name = #test, .run = test, .turns = count}
/* On each device; `_i` is the device times the turns plus the turn. */
#define ON_DEVICES(test) TURNS_ON_DEVICES(test, 1)
#define TURNS_ON_DEVICES(test, count) {.name = #test, .run = test, .turns = count, .devices = TEST_EACH}
/* Only on CUDA; `_i` is 1. */
#define ON_CUDA(test) {.name = #test, .run = test, .turns = 1, .devices = TEST_CUDA}

/* Runs the tables of a suite and reports; the value for main to return. */
#define test_run(suite, ...) test_run_tables(suite, (const test_entry *const[]){__VA_ARGS__, NULL})
int test_run_tables(const char *suite, const test_entry *const *tables);

/* 1: only the CPU; 2: a CUDA device as well. */
int test_devices(void);

/* How many random cases to run: TEST_CASES of the environment, else `usual`. */
int64_t test_cases(int64_t usual);

/* Whether few cases are wanted, as where a tool slows kernels down: TEST_CASES is below 100. Suites then reach each
 * kind of kernel with what costs least, and of the devices only the last. */
bool test_is_brief(void);

/* A context on device 0 (CPU) or 1 (CUDA) with so many threads (0: all). */
sp_context *test_context(int device, int threads);
/* The same with other options; .device is not used. */
sp_context *test_context_with(int device, sp_context_options options);
/* A context of that device `count` times over: "cpu,cpu" or "cuda:0,cuda:0". */
sp_context *test_context_of(int device, int count, sp_context_options options);
/* Destroys several. */
#define test_end(...) test_end_contexts((sp_context *[]){__VA_ARGS__}, COUNT(((sp_context *[]){__VA_ARGS__})))
void test_end_contexts(sp_context *const *contexts, size_t count);
/* Where it computes. */
sp_space test_space(const sp_context *context);

#define ck_ok(context, call)                                                                                     \
    do {                                                                                                         \
        sp_status ck_status = (call);                                                                            \
        ck_assert_msg(ck_status == SP_OK, "%s: %s (%s)", #call, sp_status_string(ck_status),                     \
                      sp_last_error(context));                                                                   \
    } while (0)

/* ck_assert_msg for inner loops: Check's own makes a system call each time, also when all is well. */
#define test_expect(condition, ...)                     \
    do {                                                \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);    \
    } while (0)

/* ---- random matrices ----------------------------------------------------------------------------------- */

typedef struct test_random {
    uint64_t seed, state;
} test_random;

test_random test_seed(uint64_t seed);
uint64_t test_next(test_random *random);
int64_t test_below(test_random *random, int64_t bound); /* 0 .. bound - 1 */
double test_unit(test_random *random);                  /* [0, 1) */

/* What the values of a random matrix are: reals in (0, 1), reals in (-1, 1), or small integers of both signs, whose
 * products cancel exactly; or none at all (a pattern). */
typedef enum test_values { TEST_POSITIVE, TEST_SIGNED, TEST_INTEGERS, TEST_PATTERN } test_values;

/* A host matrix whose entries are present with probability `density`. */
sp_csr test_matrix(sp_context *context, test_random *random, int64_t rows, int64_t cols, double density,
                   sp_value_type type, test_values values);
/* A host f32 matrix, every row of which sums to 1, with `degree` entries a row at most, the diagonal among them. */
sp_csr test_stochastic(sp_context *context, test_random *random, int64_t nodes, int64_t degree);
/* A host matrix from dense rows × cols numbers; zeros are no entries. */
sp_csr test_from_dense(sp_context *context, int64_t rows, int64_t cols, const double *numbers, sp_value_type type);
/* A symmetric weighted graph without loops: `groups` groups of `size` nodes, dense inside (probability `inner`),
 * sparse between (`outer`). */
sp_csr test_communities(sp_context *context, test_random *random, int64_t groups, int64_t size, double inner,
                        double outer);

double test_value(const sp_csr *matrix, int64_t entry);
void test_set(sp_csr *matrix, int64_t entry, double value); /* rounded to the matrix's type */
/* Makes it a pattern. */
void test_drop_values(sp_context *context, sp_csr *matrix);
/* The place of entry (row, col), -1 if there is none; the number of entries of a row. */
int64_t test_find(const sp_csr *matrix, int64_t row, int64_t col);
int64_t test_row_length(const sp_csr *matrix, int64_t row);

/* Blocks that are there, of any bytes or of zeros. */
void *test_block(size_t bytes);
void *test_zeros(size_t count, size_t size);

/* ---- comparisons --------------------------------------------------------------------------------------- */

/* A host copy of a matrix wherever it is; the original is freed. */
void test_to_host(sp_context *context, sp_csr *matrix);
/* Same shape, pattern, type and bits on the host; `name` and the first difference are printed on failure. With `nan`
 * any NaN equals any other. */
void test_equal(const sp_csr *expected, const sp_csr *found, bool nan, const char *name);
void test_same(const sp_csr *expected, const sp_csr *found, uint64_t seed);

/* Free several at once: test_free(context, &a, &b), test_free_dense(context, &x, &y), free_all(p, q). */
#define test_free(context, ...) \
    test_free_matrices(context, (sp_csr *[]){__VA_ARGS__}, COUNT(((sp_csr *[]){__VA_ARGS__})))
#define test_free_dense(context, ...) \
    test_free_dense_matrices(context, (sp_dense *[]){__VA_ARGS__}, COUNT(((sp_dense *[]){__VA_ARGS__})))
#define free_all(...) test_free_blocks((void *[]){__VA_ARGS__}, COUNT(((void *[]){__VA_ARGS__})))
void test_free_matrices(sp_context *context, sp_csr *const *matrices, size_t count);
void test_free_dense_matrices(sp_context *context, sp_dense *const *matrices, size_t count);
void test_free_blocks(void *const *blocks, size_t count);

/* Fills an output before a call that is to fail; whether nothing has written to it since. */
void test_mark(void *output, size_t size);
bool test_is_marked(const void *output, size_t size);

/* ---- allocation ---------------------------------------------------------------------------------------- */

/* Counts blocks and bytes; the allocation numbered `fail_at` (from 0) and, with `fail_all`, those after it fail. That
 * numbered `raise_at` sets *flag, if there is one. */
typedef struct test_heap {
    int64_t allocations, live_blocks, live_bytes, peak_bytes, fail_at;
    bool fail_all;
    volatile int *flag;
    int64_t raise_at;
} test_heap;

/* An allocator on `heap`, for sp_context_options; safe for threads. */
sp_allocator test_allocator(test_heap *heap);
/* A context with that allocator, interrupted by the heap's flag, if there is one. */
sp_context *test_heap_context(test_heap *heap, int device, int threads);
/* Ends it: nothing is left on the heap. */
void test_end_heap(sp_context *context, const test_heap *heap);
/* Makes each allocation of a call on three CPUs fail in turn: one sentence, no output, nothing left behind. */
void test_failing_devices(sp_status (*call)(sp_context *context, const void *user, sp_csr *c), const void *user);

#endif
