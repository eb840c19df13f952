/* Contexts among threads and processes: what other threads may free, and work in a forked child. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context_shared.h"

/* ---- holds and frees ------------------------------------------------------------------------------------ */

/* An allocator for several threads that counts its blocks. */
static void *take(void *user, size_t bytes)
{
    __atomic_add_fetch((int64_t *)user, 1, __ATOMIC_RELAXED);
    return malloc(bytes);
}

static void give(void *user, void *pointer)
{
    if (pointer) __atomic_sub_fetch((int64_t *)user, 1, __ATOMIC_RELAXED);
    free(pointer);
}

enum { THREADS = 4, HOLDS = 100000 };

static void *drop_holds(void *user)
{
    for (int i = 0; i < HOLDS; i++) sp_context_destroy(user);
    return NULL;
}

static void *take_and_drop(void *user)
{
    for (int i = 0; i < HOLDS; i++) {
        sp_context_retain(user);
        sp_context_destroy(user);
    }
    return NULL;
}

TEST(holds_are_counted_right_by_several_threads)
{
    int64_t blocks = 0;
    const sp_allocator allocator = {.allocate = take, .release = give, .user = &blocks};
    pthread_t threads[2 * THREADS];
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .allocator = &allocator}, &context),
                     SP_OK);
    for (int i = 0; i < THREADS * HOLDS; i++) sp_context_retain(context);
    for (int t = 0; t < 2 * THREADS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, t % 2 ? drop_holds : take_and_drop, context), 0);
    for (int t = 0; t < 2 * THREADS; t++) pthread_join(threads[t], NULL);
    ck_assert_int_eq(blocks, 1); /* the context, which one hold keeps */
    sp_context_destroy(context);
    ck_assert_int_eq(blocks, 0);
}

enum { PIECES = 40 };

typedef struct pieces {
    sp_context *context;
    sp_csr c[PIECES];
    sp_spmm_plan *spmm[PIECES];
    sp_spgemm_plan *spgemm[PIECES];
} pieces;

static void *free_pieces(void *user)
{
    pieces *p = user;
    for (int i = 0; i < PIECES; i++) {
        sp_csr_free(p->context, &p->c[i]);
        sp_spmm_plan_free(p->spmm[i]);
        sp_spgemm_plan_free(p->spgemm[i]);
    }
    return NULL;
}

/* Another thread frees matrices and plans while the context works, as a garbage collector does. */
TEST(another_thread_frees_while_the_context_works)
{
    int64_t blocks = 0;
    const sp_allocator allocator = {.allocate = take, .release = give, .user = &blocks};
    test_random random = test_seed(1);
    pieces p;
    pthread_t thread;
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .threads = 2, .allocator = &allocator},
                                       &p.context), SP_OK);
    sp_csr a = test_matrix(p.context, &random, 200, 200, 0.05, SP_F64, TEST_SIGNED), expected, c;
    ck_ok(p.context, sp_spgemm(p.context, &a, &a, NULL, &expected, NULL));
    for (int i = 0; i < PIECES; i++) {
        ck_ok(p.context, sp_spgemm(p.context, &a, &a, NULL, &p.c[i], NULL));
        ck_ok(p.context, sp_spmm_plan_create(p.context, &a, 4, NULL, &p.spmm[i]));
        ck_ok(p.context, sp_spgemm_plan_create(p.context, &a, &a, NULL, &p.spgemm[i]));
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, free_pieces, &p), 0);
    for (int i = 0; i < PIECES; i++) {
        ck_ok(p.context, sp_spgemm(p.context, &a, &a, NULL, &c, NULL));
        test_same(&expected, &c, 1);
        sp_csr_free(p.context, &c);
    }
    pthread_join(thread, NULL);
    sp_csr_free(p.context, &a);
    sp_csr_free(p.context, &expected);
    sp_context_destroy(p.context);
    ck_assert_int_eq(blocks, 0);
}

/* ---- fork ------------------------------------------------------------------------------------------------ */

/* Runs `work` in a forked child, which must end by itself within 30 seconds; its status. */
static int in_child(int (*work)(void *), void *user)
{
    int status;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(30);
        _exit(work(user));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child was ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

typedef struct inherited {
    sp_context *context;
    sp_csr a, c;
} inherited;

static bool same_product(sp_context *context, const inherited *i)
{
    sp_csr c;
    if (sp_spgemm(context, &i->a, &i->a, NULL, &c, NULL) != SP_OK || c.nnz != i->c.nnz) return false;
    const bool same = memcmp(c.values, i->c.values, (size_t)c.nnz * sizeof(double)) == 0;
    sp_csr_free(context, &c);
    return same;
}

static int multiply_in_child(void *user)
{
    const inherited *i = user;
    sp_context *made;
    if (sp_context_threads(i->context) != 1) return 1;
    if (!same_product(i->context, i)) return 2;
    if (sp_context_create(&(sp_context_options){.device = "cpu", .threads = 2}, &made) != SP_OK) return 3;
    if (sp_context_threads(made) != 1) return 4;
    if (!same_product(made, i)) return 5;
    sp_context_destroy(made);
    return 0;
}

static int fork_again(void *user) { return in_child(multiply_in_child, user); }

HOST_TEST(a_forked_child_multiplies, 2)
{
    test_random random = test_seed(2);
    inherited i = {.context = test_context(0, 2)};
    i.a = test_matrix(host, &random, 3000, 3000, 0.01, SP_F64, TEST_SIGNED);
    ck_ok(i.context, sp_spgemm(i.context, &i.a, &i.a, NULL, &i.c, NULL));
    ck_assert_int_eq(in_child(multiply_in_child, &i), 0);
    ck_assert_int_eq(in_child(fork_again, &i), 0);
    ck_assert_int_eq(sp_context_threads(i.context), 2);
    ck_assert(same_product(i.context, &i));
    sp_csr_free(i.context, &i.c);
    sp_csr_free(host, &i.a);
    sp_context_destroy(i.context);
}

static int count_threads(void *user)
{
    sp_context *made;
    if (sp_context_create(&(sp_context_options){.device = "cpu", .threads = 2}, &made) != SP_OK) return 0;
    const int inherited_threads = sp_context_threads(user), threads = sp_context_threads(made);
    sp_context_destroy(made);
    return 10 * inherited_threads + threads;
}

/* Nothing is lost where the parent has one thread. */
TEST(a_child_of_a_process_with_one_thread_keeps_its_threads)
{
    sp_context *context = test_context(0, 3);
    ck_assert_int_eq(in_child(count_threads, context), 32);
    sp_context_destroy(context);
}

static bool has_no_gpu(void) { return test_devices() == 1; }

static const test_entry tests[] = {
    CASE("holds", 60),
    ONCE(holds_are_counted_right_by_several_threads),
    ONCE(another_thread_frees_while_the_context_works),
    CASE("fork", 120),
    ONCE(a_forked_child_multiplies),
    ONCE_IF(a_child_of_a_process_with_one_thread_keeps_its_threads, has_no_gpu), /* whose driver has threads */
    {0},
};

int main(void) { return test_run("context", tests, device_tests); }
