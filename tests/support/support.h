/* What the suites share: devices, random matrices, slow and obvious references, an allocator that counts and fails,
 * and a runner that ends with the line "N passed, N failed, N skipped".
 *
 * A test registered with test_on_devices runs once a device; its loop index `_i` is the device for test_context.
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

/* 1: only the CPU; 2: a CUDA device as well. */
int test_devices(void);
void test_count_skipped(int tests);

/* How many random cases to run: TEST_CASES of the environment, else `usual`. */
int64_t test_cases(int64_t usual);

/* Whether few cases are wanted, as where a tool slows kernels down: TEST_CASES is below 100. Suites then reach each
 * kind of kernel with what costs least, and of the devices only the last. */
bool test_is_brief(void);

/* Whether the test that is registered next is of this process's share; a TEST_SHARE that is none ends the program. */
bool test_is_mine(void);

/* Check's own two ways to register a test, by shares. */
#undef tcase_add_test
#undef tcase_add_loop_test
#define tcase_add_test(tcase, test) tcase_add_loop_test(tcase, test, 0, 1)
#define tcase_add_loop_test(tcase, test, first, end)                                                            \
    do {                                                                                                        \
        for (int test_turn = (first); test_turn < (end); test_turn++)                                           \
            if (test_is_mine()) tcase_add_loop_test_raise_signal(tcase, test, 0, test_turn, test_turn + 1);     \
    } while (0)

#define test_on_devices(tcase, test) test_loop_on_devices(tcase, test, 1)
/* `_i` is the device times `turns` plus the turn. */
#define test_loop_on_devices(tcase, test, turns)                                                                \
    do {                                                                                                        \
        tcase_add_loop_test(tcase, test, test_is_brief() ? (turns) * (test_devices() - 1) : 0,                  \
                            (turns) * test_devices());                                                          \
        if (test_devices() == 1) test_count_skipped(turns);                                                     \
    } while (0)

/* Runs the suite and reports; the value for main to return. */
int test_run(Suite *suite);

/* A context on device 0 (CPU) or 1 (CUDA) with so many threads (0: all). */
sp_context *test_context(int device, int threads);

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

/* ---- comparisons --------------------------------------------------------------------------------------- */

/* A host copy of a matrix wherever it is; the original is freed. */
void test_to_host(sp_context *context, sp_csr *matrix);
/* Same shape, pattern, type and bits; `seed` is printed on failure. */
void test_same(const sp_csr *a, const sp_csr *b, uint64_t seed);

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

#endif
