/* The implementation of support.h. */
#include "base/random.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- running ------------------------------------------------------------------------------------------- */

static int skipped;

int test_devices(void)
{
    static int devices;
    if (devices) return devices;
    sp_context *context;
    devices = sp_context_create(&(sp_context_options){.device = "cuda"}, &context) == SP_OK ? 2 : 1;
    sp_context_destroy(context);
    return devices;
}

int64_t test_cases(int64_t usual)
{
    const char *wanted = getenv("TEST_CASES");
    return wanted && atoll(wanted) > 0 ? atoll(wanted) : usual;
}

bool test_is_brief(void) { return test_cases(100) < 100; }

/* Whether the test that is registered next is of this process's share; a TEST_SHARE that is none ends the program. */
static bool is_mine(void)
{
    static int number;
    const char *share = getenv("TEST_SHARE");
    if (!share) return true;
    int index, count, end = 0;
    if (sscanf(share, "%d/%d%n", &index, &count, &end) != 2 || share[end] || index < 0 || index >= count) {
        fprintf(stderr, "TEST_SHARE=%s: I/N is wanted, I from 0 to N - 1\n", share);
        exit(2);
    }
    return number++ % count == index;
}

/* Whether a suite of which nothing ran has failed: Check passes it, also where a name that is none has left all of it
 * out. What needs a GPU may be all that there is. */
static bool fails_empty(void)
{
    static const char *const choices[] = {"CK_RUN_SUITE", "CK_RUN_CASE", "TEST_SHARE"};
    bool chosen = false;
    for (size_t i = 0; i < COUNT(choices); i++) {
        const char *choice = getenv(choices[i]);
        if (choice) printf("no test ran: %s=%s\n", choices[i], choice);
        chosen = chosen || choice;
    }
    if (!chosen && !skipped) printf("no test ran\n");
    return chosen || !skipped;
}

typedef struct made_test {
    TTest test;
    struct made_test *next;
} made_test;
static made_test *made; /* all, which the runner keeps until its end */

static void add_test(TCase *tcase, const test_entry *entry)
{
    const int devices = test_devices(), brief = test_is_brief();
    const int first = entry->devices == TEST_CUDA ? 1 : entry->devices == TEST_EACH && brief ? devices - 1 : 0;
    const int end = entry->devices ? devices : 1;
    if ((entry->devices && devices == 1) || (entry->possible && !entry->possible())) skipped += entry->turns;
    if (entry->possible && !entry->possible()) return;
    for (int turn = first * entry->turns; turn < end * entry->turns; turn++) {
        if (!is_mine()) continue;
        made_test *test = malloc(sizeof *test);
        if (!test) abort();
        *test = (made_test){{entry->name, entry->run, __FILE__, __LINE__}, made};
        made = test;
        tcase_add_loop_test(tcase, &test->test, turn, turn + 1);
    }
}

/* The case that the entry begins, which parts of a suite may share: of one name there is one. */
static TCase *begin_case(Suite *suite, const test_entry *entry)
{
    enum { MOST = 20 };
    static TCase *cases[MOST];
    static const char *names[MOST];
    int i = 0;
    while (i < MOST && names[i] && strcmp(names[i], entry->name) != 0) i++;
    if (i == MOST) abort();
    if (names[i]) return cases[i];
    names[i] = entry->name;
    cases[i] = tcase_create(entry->name);
    if (entry->seconds) tcase_set_timeout(cases[i], entry->seconds);
    if (entry->open) tcase_add_checked_fixture(cases[i], entry->open, entry->close);
    suite_add_tcase(suite, cases[i]);
    return cases[i];
}

static Suite *make_suite(const char *name, const test_entry *const *tables)
{
    Suite *suite = suite_create(name);
    TCase *tcase = NULL;
    for (; *tables; tables++)
        for (const test_entry *entry = *tables; entry->name; entry++)
            if (entry->run) add_test(tcase, entry);
            else tcase = begin_case(suite, entry);
    return suite;
}

int test_run_tables(const char *name, const test_entry *const *tables)
{
    SRunner *runner = srunner_create(make_suite(name, tables));
    /* CUDA does not survive a fork. */
    if (test_devices() > 1) srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    int passed = srunner_ntests_run(runner) - failed;
    srunner_free(runner);
    for (made_test *next; made; made = next) {
        next = made->next;
        free(made);
    }
    if (passed + failed == 0 && fails_empty()) failed = 1;
    if (skipped) printf("skipped on the GPU, of which there is none: %d tests\n", skipped);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}

sp_context *test_context_with(int device, sp_context_options options)
{
    sp_context *context;
    options.device = device ? "cuda" : "cpu";
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    ck_assert(sp_context_is_cuda(context) == (device != 0));
    return context;
}

sp_context *test_context(int device, int threads)
{
    return test_context_with(device, (sp_context_options){.threads = threads});
}

sp_context *test_context_of(int device, int count, sp_context_options options)
{
    const char *const name = device ? "cuda:0," : "cpu,";
    char list[128] = "";
    sp_context *context;
    for (int d = 0; d < count; d++) strcat(list, name);
    list[strlen(list) - 1] = '\0';
    options.device = list;
    ck_assert_msg(sp_context_create(&options, &context) == SP_OK, "%s", sp_last_error(NULL));
    return context;
}

void test_end_contexts(sp_context *const *contexts, size_t count)
{
    for (size_t i = 0; i < count; i++) sp_context_destroy(contexts[i]);
}

sp_space test_space(const sp_context *context) { return sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST; }

/* ---- random matrices ----------------------------------------------------------------------------------- */

test_random test_seed(uint64_t seed) { return (test_random){seed, seed}; }

uint64_t test_next(test_random *random) { return next64(&random->state); }

int64_t test_below(test_random *random, int64_t bound) { return (int64_t)(test_next(random) % (uint64_t)bound); }

double test_unit(test_random *random) { return unit64(test_next(random)); }

static double random_value(test_random *random, test_values values)
{
    switch (values) {
    case TEST_POSITIVE: return test_unit(random) + 0x1p-20;
    case TEST_SIGNED: return 2 * test_unit(random) - 1;
    case TEST_INTEGERS: return (double)(1 + test_below(random, 3)) * (test_below(random, 2) ? 1 : -1);
    case TEST_PATTERN: break;
    }
    return 1;
}

sp_csr test_from_dense(sp_context *context, int64_t rows, int64_t cols, const double *numbers, sp_value_type type)
{
    int64_t nnz = 0;
    for (int64_t i = 0; i < rows * cols; i++) nnz += numbers[i] != 0;
    sp_csr matrix;
    ck_ok(context, sp_csr_create(context, rows, cols, nnz, type, SP_HOST, &matrix));
    nnz = 0;
    for (int64_t i = 0; i < rows; i++) {
        matrix.row_offsets[i] = nnz;
        for (int64_t j = 0; j < cols; j++) {
            if (numbers[i * cols + j] == 0) continue;
            matrix.col_indices[nnz] = (int32_t)j;
            test_set(&matrix, nnz, numbers[i * cols + j]);
            nnz++;
        }
    }
    matrix.row_offsets[rows] = nnz;
    return matrix;
}

void *test_block(size_t bytes)
{
    void *block = malloc(bytes);
    ck_assert_ptr_nonnull(block);
    return block;
}

void *test_zeros(size_t count, size_t size)
{
    void *block = calloc(count, size);
    ck_assert_ptr_nonnull(block);
    return block;
}

sp_csr test_matrix(sp_context *context, test_random *random, int64_t rows, int64_t cols, double density,
                   sp_value_type type, test_values values)
{
    double *numbers = test_zeros((size_t)(rows * cols) + 1, sizeof *numbers);
    for (int64_t i = 0; i < rows * cols; i++)
        if (test_unit(random) < density) numbers[i] = random_value(random, values);
    sp_csr matrix = test_from_dense(context, rows, cols, numbers, type);
    free(numbers);
    if (values == TEST_PATTERN) test_drop_values(context, &matrix);
    return matrix;
}

sp_csr test_stochastic(sp_context *context, test_random *random, int64_t nodes, int64_t degree)
{
    double *numbers = test_zeros((size_t)(nodes * nodes) + 1, sizeof *numbers);
    for (int64_t i = 0; i < nodes; i++) {
        double *row = numbers + i * nodes, sum = 0;
        row[i] = 1;
        for (int64_t k = 1; k < degree; k++) row[test_below(random, nodes)] = test_unit(random) + 0x1p-20;
        for (int64_t j = 0; j < nodes; j++) sum += row[j];
        for (int64_t j = 0; j < nodes; j++) row[j] /= sum;
    }
    sp_csr matrix = test_from_dense(context, nodes, nodes, numbers, SP_F32);
    free(numbers);
    return matrix;
}

sp_csr test_communities(sp_context *context, test_random *random, int64_t groups, int64_t size, double inner,
                        double outer)
{
    const int64_t nodes = groups * size;
    double *numbers = test_zeros((size_t)(nodes * nodes) + 1, sizeof *numbers);
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t j = 0; j < i; j++)
            if (test_unit(random) < (i / size == j / size ? inner : outer))
                numbers[i * nodes + j] = numbers[j * nodes + i] = test_unit(random) + 0x1p-20;
    sp_csr matrix = test_from_dense(context, nodes, nodes, numbers, SP_F32);
    free(numbers);
    return matrix;
}

void test_set(sp_csr *matrix, int64_t entry, double value)
{
    if (matrix->value_type == SP_F32) ((float *)matrix->values)[entry] = (float)value;
    else ((double *)matrix->values)[entry] = value;
}

void test_drop_values(sp_context *context, sp_csr *matrix)
{
    sp_free(context, matrix->values);
    matrix->values = NULL;
}

int64_t test_find(const sp_csr *matrix, int64_t row, int64_t col)
{
    for (int64_t k = matrix->row_offsets[row]; k < matrix->row_offsets[row + 1]; k++)
        if (matrix->col_indices[k] == col) return k;
    return -1;
}

int64_t test_row_length(const sp_csr *matrix, int64_t row)
{
    return matrix->row_offsets[row + 1] - matrix->row_offsets[row];
}

double test_value(const sp_csr *matrix, int64_t entry)
{
    if (!matrix->values) return 1;
    if (matrix->value_type == SP_F32) return (double)((const float *)matrix->values)[entry];
    return ((const double *)matrix->values)[entry];
}

/* ---- comparisons --------------------------------------------------------------------------------------- */

void test_to_host(sp_context *context, sp_csr *matrix)
{
    if (matrix->space == SP_HOST) return;
    sp_csr copy;
    ck_ok(context, sp_csr_copy(context, matrix, SP_HOST, &copy));
    sp_csr_free(context, matrix);
    *matrix = copy;
}

void test_equal(const sp_csr *expected, const sp_csr *found, bool nan, const char *name)
{
    const sp_csr *e = expected, *f = found;
    test_expect(e->rows == f->rows && e->cols == f->cols && e->nnz == f->nnz && e->value_type == f->value_type,
                "%s: %lld x %lld with %lld entries of type %d, not %lld x %lld with %lld of type %d", name,
                (long long)f->rows, (long long)f->cols, (long long)f->nnz, (int)f->value_type, (long long)e->rows,
                (long long)e->cols, (long long)e->nnz, (int)e->value_type);
    test_expect(!e->values == !f->values, "%s: %s", name, f->values ? "values" : "no values");
    for (int64_t i = 0; i <= e->rows; i++)
        test_expect(e->row_offsets[i] == f->row_offsets[i], "%s: row %lld ends at %lld, not at %lld", name,
                    (long long)i - 1, (long long)f->row_offsets[i], (long long)e->row_offsets[i]);
    for (int64_t i = 0; i < e->rows; i++)
        for (int64_t k = e->row_offsets[i]; k < e->row_offsets[i + 1]; k++) {
            const double is = test_value(f, k), should = test_value(e, k);
            test_expect(e->col_indices[k] == f->col_indices[k], "%s: row %lld has column %d, not %d", name,
                        (long long)i, f->col_indices[k], e->col_indices[k]);
            test_expect(memcmp(&is, &should, sizeof is) == 0 || (nan && isnan(is) && isnan(should)),
                        "%s: (%lld, %d) is %.17g, not %.17g", name, (long long)i, f->col_indices[k], is, should);
        }
}

void test_same(const sp_csr *expected, const sp_csr *found, uint64_t seed)
{
    char name[40];
    snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
    test_equal(expected, found, false, name);
}

void test_free_matrices(sp_context *context, sp_csr *const *matrices, size_t count)
{
    for (size_t i = 0; i < count; i++) sp_csr_free(context, matrices[i]);
}

void test_free_dense_matrices(sp_context *context, sp_dense *const *matrices, size_t count)
{
    for (size_t i = 0; i < count; i++) sp_dense_free(context, matrices[i]);
}

void test_free_blocks(void *const *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) free(blocks[i]);
}

enum { MARK = 0x3c };

void test_mark(void *output, size_t size) { memset(output, MARK, size); }

bool test_is_marked(const void *output, size_t size)
{
    const unsigned char *bytes = output;
    while (size && bytes[size - 1] == MARK) size--;
    return size == 0;
}

/* ---- allocation ---------------------------------------------------------------------------------------- */

/* Kept before each block: its size; 16 bytes, so that blocks stay aligned as malloc's. */
enum { HEADER = 16 };

static void count_bytes(test_heap *heap, int64_t more)
{
    const int64_t live = __atomic_add_fetch(&heap->live_bytes, more, __ATOMIC_SEQ_CST);
    int64_t peak = __atomic_load_n(&heap->peak_bytes, __ATOMIC_SEQ_CST);
    while (live > peak && !__atomic_compare_exchange_n(&heap->peak_bytes, &peak, live, false, __ATOMIC_SEQ_CST,
                                                       __ATOMIC_SEQ_CST))
        ;
}

static void *heap_allocate(void *user, size_t bytes)
{
    test_heap *heap = user;
    const int64_t number = __atomic_fetch_add(&heap->allocations, 1, __ATOMIC_SEQ_CST);
    if (heap->flag && number == heap->raise_at) __atomic_store_n(heap->flag, 1, __ATOMIC_RELAXED);
    if (number == heap->fail_at || (heap->fail_all && heap->fail_at >= 0 && number > heap->fail_at)) return NULL;
    if (bytes > (size_t)1 << 34) return NULL;
    char *block = malloc(bytes + HEADER);
    if (!block) return NULL;
    memcpy(block, &bytes, sizeof bytes);
    memset(block + HEADER, 0xa5, bytes); /* nobody may rely on fresh memory being zero */
    __atomic_fetch_add(&heap->live_blocks, 1, __ATOMIC_SEQ_CST);
    count_bytes(heap, (int64_t)bytes);
    return block + HEADER;
}

static void heap_release(void *user, void *pointer)
{
    test_heap *heap = user;
    if (!pointer) return;
    char *block = (char *)pointer - HEADER;
    size_t bytes;
    memcpy(&bytes, block, sizeof bytes);
    __atomic_fetch_sub(&heap->live_blocks, 1, __ATOMIC_SEQ_CST);
    count_bytes(heap, -(int64_t)bytes);
    memset(pointer, 0x5a, bytes);
    free(block);
}

/* Always moves, and counts as realloc does: the array is there once. */
static void *heap_resize(void *user, void *pointer, size_t bytes)
{
    test_heap *heap = user;
    size_t before = 0;
    if (pointer) memcpy(&before, (char *)pointer - HEADER, sizeof before);
    count_bytes(heap, -(int64_t)before);
    void *moved = heap_allocate(user, bytes);
    __atomic_fetch_add(&heap->live_bytes, (int64_t)before, __ATOMIC_SEQ_CST); /* until it is released */
    if (!moved || !pointer) return moved;
    memcpy(moved, pointer, before < bytes ? before : bytes);
    heap_release(user, pointer);
    return moved;
}

sp_allocator test_allocator(test_heap *heap)
{
    return (sp_allocator){heap_allocate, heap_release, heap, heap_resize};
}

sp_context *test_heap_context(test_heap *heap, int device, int threads)
{
    const sp_allocator allocator = test_allocator(heap);
    return test_context_with(device, (sp_context_options){.threads = threads, .allocator = &allocator,
                                                          .interrupt = heap->flag});
}

void test_end_heap(sp_context *context, const test_heap *heap)
{
    sp_context_destroy(context);
    ck_assert_int_eq(heap->live_blocks, 0);
}

void test_failing_devices(sp_status (*call)(sp_context *context, const void *user, sp_csr *c), const void *user)
{
    bool done = false;
    for (int64_t fail_at = 0; !done; fail_at++) {
        test_heap heap = {.fail_at = fail_at, .fail_all = fail_at % 2};
        const sp_allocator allocator = test_allocator(&heap);
        const sp_context_options options = {.device = "cpu,cpu,cpu", .threads = 2, .allocator = &allocator};
        sp_context *context;
        sp_csr c = {0};
        sp_status status = sp_context_create(&options, &context);
        if (status == SP_OK) {
            status = call(context, user, &c);
            test_expect(status == SP_OK || strstr(sp_last_error(context), "out of memory"), "%lld: \"%s\"",
                        (long long)fail_at, sp_last_error(context));
            ck_assert((status == SP_OK) == (c.row_offsets != NULL));
            sp_csr_free(context, &c);
            sp_context_destroy(context);
        }
        ck_assert(status == SP_OK || status == SP_ERROR_HOST_MEMORY);
        ck_assert_int_eq(heap.live_blocks, 0);
        done = status == SP_OK;
        ck_assert_int_lt(fail_at, 1000);
    }
}
