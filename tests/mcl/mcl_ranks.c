/* test_mcl: mcl_iterate_together, with threads as the processes, against mcl_iterate. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mcl_shared.h"

/* ---- threads that exchange data -------------------------------------------------------------------------- */

enum { MOST = 8 };

/* What the threads of a run share. A call begins when all have come and ends when all have read. */
typedef struct meeting {
    int size;
    pthread_barrier_t barrier;
    const void *sent[MOST];
    const int64_t *counts[MOST];
    int64_t cut[MOST + 1];
    int64_t memory;
    int64_t fails_at, calls; /* the call that fails; for runs of one thread */
} meeting;

/* One of them: the `user` of its functions. */
typedef struct member {
    meeting *all;
    int rank;
    const int32_t *wanted; /* between the two calls of a fetch */
    int64_t count;
} member;

static void meet(member *m) { pthread_barrier_wait(&m->all->barrier); }

static const char *failure(member *m) { return m->all->calls++ == m->all->fails_at ? "the line is cut" : NULL; }

static const char *broadcast(void *user, void *bytes, int64_t count)
{
    member *m = user;
    if (m->all->size == 1) return failure(m);
    if (m->rank == 0) m->all->sent[0] = bytes;
    meet(m);
    if (m->rank > 0) memcpy(bytes, m->all->sent[0], (size_t)count);
    meet(m);
    return NULL;
}

static const char *gather(void *user, const void *bytes, int64_t count, const int64_t *counts, void *all)
{
    member *m = user;
    char *to = all;
    if (m->all->size == 1 && failure(m)) return "the line is cut";
    m->all->sent[m->rank] = bytes;
    if (m->rank == 0 && all != bytes) memcpy(all, bytes, (size_t)count);
    meet(m);
    for (int r = 1; r < m->all->size && m->rank == 0; r++) {
        to += counts[r - 1];
        if (counts[r] > 0) memcpy(to, m->all->sent[r], (size_t)counts[r]);
    }
    meet(m);
    return NULL;
}

static const char *exchange(void *user, const void *bytes, const int64_t *counts, void *got, const int64_t *got_counts)
{
    member *m = user;
    char *to = got;
    if (m->all->size == 1 && failure(m)) return "the line is cut";
    m->all->sent[m->rank] = bytes;
    m->all->counts[m->rank] = counts;
    meet(m);
    for (int r = 0; r < m->all->size; to += got_counts[r++]) {
        const char *from = m->all->sent[r];
        for (int k = 0; k < m->rank; k++) from += m->all->counts[r][k];
        ck_assert_int_eq(m->all->counts[r][m->rank], got_counts[r]);
        if (got_counts[r] > 0) memcpy(to, from, (size_t)got_counts[r]);
    }
    meet(m);
    return NULL;
}

/* The part that has row `number`, and the row's place in it. */
static const sp_csr *part_of(const meeting *all, int64_t number, int64_t *row)
{
    int owner = 0;
    while (number >= all->cut[owner + 1]) owner++;
    *row = number - all->cut[owner];
    return all->sent[owner];
}

static const char *fetch_lengths(void *user, const int64_t *cut, const sp_csr *part, int64_t count,
                                 const int32_t *numbers, int64_t *lengths)
{
    member *m = user;
    if (m->all->size == 1 && failure(m)) return "the line is cut";
    if (m->rank == 0) memcpy(m->all->cut, cut, (size_t)(m->all->size + 1) * sizeof *cut);
    m->all->sent[m->rank] = part;
    m->wanted = numbers;
    m->count = count;
    meet(m);
    for (int64_t k = 0; k < count; k++) {
        int64_t row;
        const sp_csr *from = part_of(m->all, numbers[k], &row);
        lengths[k] = test_row_length(from, row);
    }
    meet(m);
    return NULL;
}

static const char *fetch_entries(void *user, const sp_csr *part, int32_t *columns, float *values)
{
    member *m = user;
    if (m->all->size == 1 && failure(m)) return "the line is cut";
    m->all->sent[m->rank] = part;
    meet(m);
    for (int64_t k = 0, at = 0; k < m->count; k++) {
        int64_t row;
        const sp_csr *from = part_of(m->all, m->wanted[k], &row);
        for (int64_t e = from->row_offsets[row]; e < from->row_offsets[row + 1]; e++, at++) {
            columns[at] = from->col_indices[e];
            values[at] = ((const float *)from->values)[e];
        }
    }
    meet(m);
    return NULL;
}

static sp_ranks ranks_of(member *m)
{
    return (sp_ranks){.rank = m->rank, .size = m->all->size, .memory = m->all->memory, .user = m, .broadcast = broadcast, .gather = gather,
                       .exchange = exchange, .fetch_lengths = fetch_lengths, .fetch_entries = fetch_entries};
}

/* ---- runs ------------------------------------------------------------------------------------------------ */

/* What a monitor saw, without what differs between runs: times, and how products were made. */
typedef struct seen {
    int64_t count;
    mcl_iteration last;
    double chaos_sum;
    int64_t stop_after;
    sp_context *context;
    const sp_ranks *ranks; /* not NULL: iterand number `stop_after` is gathered */
    sp_csr gathered;
    sp_status status;
    int64_t interrupt_after; /* the iteration after which `interrupt` is set */
    volatile int interrupt;
    int64_t interrupted;     /* the monitor's calls after an interrupt */
    int64_t streamed;        /* rows that have come by blocks */
} seen;

/* Rows that come by blocks are those of the matrix that is gathered. */
static void take_rows(void *user, int64_t first, const sp_csr *rows)
{
    seen *s = user;
    const sp_csr *all = &s->gathered;
    ck_assert_int_eq(first, s->streamed);
    for (int64_t i = 0; i < rows->rows; i++) {
        const int64_t length = test_row_length(rows, i), from = rows->row_offsets[i], to = all->row_offsets[first + i];
        ck_assert_int_eq(length, test_row_length(all, first + i));
        for (int64_t e = 0; e < length; e++)
            ck_assert(rows->col_indices[from + e] == all->col_indices[to + e] &&
                      test_value(rows, from + e) == test_value(all, to + e));
    }
    s->streamed += rows->rows;
}

/* By one message and by blocks. */
static void gather_rows(seen *s, const sp_csr *iterand)
{
    s->status = sp_ranks_gather_rows(s->context, s->ranks, iterand, &s->gathered);
    for (int64_t most = 1; most < 2000 && s->status == SP_OK; most *= 40) {
        s->streamed = 0;
        s->status = sp_ranks_stream_rows(s->context, s->ranks, iterand, most, take_rows, s);
        if (s->status == SP_OK) ck_assert_int_eq(s->streamed, s->ranks->rank == 0 ? s->gathered.rows : 0);
    }
}

static bool watch(void *user, const mcl_iteration *iteration, const sp_csr *iterand)
{
    seen *s = user;
    if (iteration->interrupted) {
        s->interrupted++;
        gather_rows(s, iterand);
        ck_assert_int_eq(iteration->number, s->last.number);
        return false;
    }
    if (iteration->number > 0 && iteration->number == s->interrupt_after) s->interrupt = 1;
    if (iteration->number == s->stop_after && s->ranks) gather_rows(s, iterand);
    else if (iteration->number == s->stop_after) s->status = sp_csr_copy(s->context, iterand, SP_HOST, &s->gathered);
    s->count++;
    s->last = *iteration;
    s->chaos_sum += iteration->chaos * (double)iteration->number;
    return iteration->number != s->stop_after;
}

/* Arcs of a graph, which processes get in turn. */
typedef struct arc_list {
    int64_t nodes, count;
    int32_t *tails, *heads;
    float *weights; /* NULL: all 1 */
    bool mirror;
} arc_list;

typedef struct task {
    member member;
    int device;
    int64_t memory;
    const sp_csr *start;
    const mcl_state *state; /* not NULL: where it goes on */
    const arc_list *arcs;   /* not NULL: make the start matrix; each process has some of its rows */
    const mcl_options *options;
    seen seen;
    sp_context *context;
    sp_csr limit;
    mcl_run run;
    sp_status status;
} task;

/* From this process's share of the arcs. */
static sp_status run_from_arcs(task *t, const sp_ranks *ranks)
{
    const arc_list *arcs = t->arcs;
    const int64_t first = arcs->count * ranks->rank / ranks->size, end = arcs->count * (ranks->rank + 1) / ranks->size;
    int64_t given[MOST + 1];
    sp_csr graph = {0}, start = {0};
    const sp_arcs own = {.count = end - first, .rows = arcs->tails + first, .columns = arcs->heads + first,
                         .weights = arcs->weights ? arcs->weights + first : NULL, .type = SP_F32};
    sp_status status = mcl_share_graph(t->context, ranks, arcs->nodes, &own, arcs->mirror, given, &graph);
    if (status == SP_OK) status = mcl_start_matrix(t->context, &graph, NULL, t->options, false, &start);
    if (status == SP_OK) mcl_keep_rows(&start, given[ranks->rank], given[ranks->rank + 1]);
    if (status == SP_OK)
        status = mcl_iterate_together(t->context, ranks, &start, given, t->options, watch, &t->seen, &t->limit, &t->run);
    test_free(t->context, &graph, &start);
    return status;
}

static void *run_task(void *argument)
{
    task *t = argument;
    const sp_ranks ranks = ranks_of(&t->member);
    t->seen.context = t->context;
    t->seen.ranks = &ranks;
    if (t->state)
        t->status = mcl_continue_together(t->context, &ranks, t->state, t->options, watch, &t->seen, &t->limit, &t->run);
    else if (t->arcs) t->status = run_from_arcs(t, &ranks);
    else
        t->status = mcl_iterate_together(t->context, &ranks, t->start, NULL, t->options, watch, &t->seen, &t->limit,
                                         &t->run);
    return NULL;
}

static void expect_same_figures(const seen *a, const seen *b, bool cuda)
{
    const mcl_iteration *x = &a->last, *y = &b->last;
    ck_assert_int_eq(a->count, b->count);
    ck_assert_int_eq(x->nnz_before, y->nnz_before);
    ck_assert_int_eq(x->nnz_expanded, y->nnz_expanded);
    ck_assert_int_eq(x->nnz_after, y->nnz_after);
    ck_assert_int_eq(x->products, y->products);
    ck_assert_int_eq(x->empty_columns, y->empty_columns);
    ck_assert_int_eq(x->dense_columns, y->dense_columns);
    ck_assert(x->mark == y->mark && x->next_inflation == y->next_inflation && x->converged == y->converged);
    if (cuda) return; /* chaos and homogeneity may differ in the last place */
    ck_assert(a->chaos_sum == b->chaos_sum && x->homogeneity_average == y->homogeneity_average);
    ck_assert(x->homogeneity_low == y->homogeneity_low && x->homogeneity_high == y->homogeneity_high);
}

/* Runs `size` threads; what they made is in `tasks`. */
static void run_threads(task *tasks, int size, const task *common)
{
    meeting all = {.size = size, .memory = common->memory, .fails_at = -1};
    pthread_t threads[MOST];
    pthread_barrier_init(&all.barrier, NULL, (unsigned)size);
    for (int r = 0; r < size; r++) {
        tasks[r] = *common;
        tasks[r].member = (member){.all = &all, .rank = r};
        tasks[r].context = test_context(common->device, 1 + r % 2);
    }
    for (int r = 0; r < size; r++) ck_assert_int_eq(pthread_create(&threads[r], NULL, run_task, &tasks[r]), 0);
    for (int r = 0; r < size; r++) pthread_join(threads[r], NULL);
    pthread_barrier_destroy(&all.barrier);
    for (int r = 0; r < size; r++) {
        ck_assert_msg(tasks[r].status == SP_OK, "%s", sp_last_error(tasks[r].context));
        ck_assert_int_eq(tasks[r].seen.status, SP_OK);
        ck_assert_int_eq(tasks[r].limit.rows, r > 0 ? 0 : common->start->rows);
    }
}

static void end_threads(task *tasks, int size)
{
    for (int r = 0; r < size; r++) {
        test_free(tasks[r].context, &tasks[r].limit, &tasks[r].seen.gathered);
        sp_context_destroy(tasks[r].context);
    }
}

static void expect_same_run(const mcl_run *a, const mcl_run *b)
{
    ck_assert(a->iterations == b->iterations && a->converged == b->converged && a->stopped == b->stopped &&
              a->synopsis == b->synopsis && memcmp(a->marks, b->marks, sizeof a->marks) == 0);
}

/* Compares `size` threads with one call of mcl_iterate. */
static void check_together(int device, int size, const sp_csr *start, const mcl_options *options, int64_t stop_after)
{
    sp_context *alone = test_context(device, 2);
    seen expected = {.stop_after = stop_after, .context = alone};
    const task common = {.device = device, .start = start, .options = options, .seen = {.stop_after = stop_after}};
    task tasks[MOST];
    sp_csr limit;
    mcl_run run;
    ck_ok(alone, mcl_iterate(alone, start, options, watch, &expected, &limit, &run));
    run_threads(tasks, size, &common);
    for (int r = 0; r < size; r++) {
        expect_same_figures(&expected, &tasks[r].seen, device);
        expect_same_run(&run, &tasks[r].run);
    }
    test_same(&limit, &tasks[0].limit, (uint64_t)size);
    if (expected.gathered.row_offsets) test_same(&expected.gathered, &tasks[0].seen.gathered, (uint64_t)size);
    end_threads(tasks, size);
    test_free(alone, &limit, &expected.gathered);
    sp_context_destroy(alone);
}

static sp_csr start_of(sp_context *host, sp_csr graph)
{
    const mcl_options options = defaults();
    sp_csr start;
    ck_ok(host, mcl_start_matrix(host, &graph, NULL, &options, false, &start));
    sp_csr_free(host, &graph);
    return start;
}

/* ---- tests ----------------------------------------------------------------------------------------------- */

HOST_TEST(processes_together_find_what_one_finds, 1)
{
    mcl_options many = defaults(), few = defaults(), emptied = defaults();
    few.select = 6;
    few.recover = 9;
    few.prune_number = 30;
    emptied.prune_number = 4;
    emptied.select = emptied.recover = 0;
    const mcl_options *const options[] = {&many, &few, &emptied};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        test_random random = test_seed(seed);
        sp_csr start = start_of(host, test_communities(host, &random, 5, 12 + 10 * (int64_t)seed, 0.6, 0.02));
        for (int size = 1; size <= 5; size++) check_together(_i, size, &start, options[seed - 1], -1);
        sp_csr_free(host, &start);
    }
}

/* Matrices of this size are renumbered by community. */
HOST_TEST(numbering_by_community_is_shared, 1)
{
    test_random random = test_seed(9);
    mcl_options options = defaults();
    sp_csr start = start_of(host, test_communities(host, &random, 12, 160, 0.7, 0.002));
    ck_assert_int_gt(start.nnz, 200000);
    options.prune_number = 1000;
    check_together(_i, 3, &start, &options, -1);
    sp_csr_free(host, &start);
}

HOST_TEST(more_processes_than_nodes_work, 1)
{
    const mcl_options options = defaults();
    const double pair[] = {0, 1, 1, 0};
    sp_csr two = start_of(host, test_from_dense(host, 2, 2, pair, SP_F32));
    sp_csr nothing = start_of(host, test_from_dense(host, 0, 0, pair, SP_F32));
    for (int size = 2; size <= MOST; size += 3) {
        check_together(_i, size, &two, &options, -1);
        check_together(_i, size, &nothing, &options, -1);
    }
    test_free(host, &two, &nothing);
}

HOST_TEST(what_the_first_monitor_says_ends_all, 1)
{
    test_random random = test_seed(2);
    mcl_options options = defaults();
    sp_csr start = start_of(host, test_communities(host, &random, 4, 20, 0.5, 0.1));
    check_together(_i, 3, &start, &options, 0);
    check_together(_i, 3, &start, &options, 2);
    options.main_length = 0;
    check_together(_i, 3, &start, &options, -1);
    sp_csr_free(host, &start);
}

/* Fetched rows that may take little memory are fetched in batches, not as many in each process. */
HOST_TEST(batches_change_no_bit, 1)
{
    sp_context *alone = test_context(_i, 1);
    test_random random = test_seed(11);
    const mcl_options options = defaults();
    sp_csr start = start_of(host, test_communities(host, &random, 40, 12, 0.6, 0.0006)), limit;
    task common = {.device = _i, .start = &start, .options = &options, .seen = {.stop_after = 3}}, tasks[MOST];
    seen expected = {.stop_after = 3, .context = alone};
    mcl_run run;
    ck_ok(alone, mcl_iterate(alone, &start, &options, watch, &expected, &limit, &run));
    for (int size = 1; size <= 4; size++)
        for (common.memory = 50000; common.memory < 500000; common.memory *= 3) {
            run_threads(tasks, size, &common);
            test_same(&limit, &tasks[0].limit, (uint64_t)size);
            expect_same_figures(&expected, &tasks[0].seen, _i);
            if (common.memory == 50000) ck_assert_int_ge(tasks[0].seen.last.product.batches, size + (size < 3));
            end_threads(tasks, size);
        }
    test_free(alone, &limit, &expected.gathered);
    sp_csr_free(host, &start);
    sp_context_destroy(alone);
}

/* A column that needs more than there may be is reported by its process. */
TEST(a_column_that_needs_too_much_is_reported)
{
    sp_context *context = test_context(_i, 1);
    test_random random = test_seed(12);
    const mcl_options options = defaults();
    sp_csr start = start_of(context, test_communities(context, &random, 1, 50, 1, 0)), limit = {0};
    meeting all = {.size = 1, .memory = 1000, .fails_at = -1};
    member one = {.all = &all};
    const sp_ranks ranks = ranks_of(&one);
    mcl_run run;
    pthread_barrier_init(&all.barrier, NULL, 1);
    ck_assert_int_eq(mcl_iterate_together(context, &ranks, &start, NULL, &options, NULL, NULL, &limit, &run),
                     SP_ERROR_HOST_MEMORY);
    ck_assert_msg(strstr(sp_last_error(context), "needs 20000 bytes") != NULL, "%s", sp_last_error(context));
    pthread_barrier_destroy(&all.barrier);
    sp_csr_free(context, &start);
    sp_context_destroy(context);
}

/* What one process had after two iterations goes on in several, and the reverse. */
HOST_TEST(a_run_goes_on_in_another_number_of_processes, 1)
{
    sp_context *alone = test_context(_i, 1);
    test_random random = test_seed(7);
    const mcl_options options = defaults();
    sp_csr start = start_of(host, test_communities(host, &random, 5, 25, 0.5, 0.03)), limit, again;
    seen two = {.stop_after = 2, .context = alone};
    const task whole = {.device = _i, .start = &start, .options = &options, .seen = {.stop_after = -1}};
    task first = whole, rest = whole, tasks[MOST];
    mcl_run run, stopped, found;
    ck_ok(alone, mcl_iterate(alone, &start, &options, NULL, NULL, &limit, &run));
    ck_ok(alone, mcl_iterate(alone, &start, &options, watch, &two, &again, &stopped));
    const mcl_state state = {.iterations = 2, .nnz_input = start.nnz, .inflation = two.last.next_inflation,
                             .marks = {stopped.marks[0], stopped.marks[1], stopped.marks[2]}, .iterand = &two.gathered};
    sp_csr_free(alone, &again);
    rest.state = &state;
    run_threads(tasks, 3, &rest);
    test_same(&limit, &tasks[0].limit, 7);
    expect_same_run(&run, &tasks[0].run);
    end_threads(tasks, 3);

    first.seen.stop_after = 2;
    run_threads(tasks, 4, &first);
    test_same(&two.gathered, &tasks[0].seen.gathered, 7);
    ck_ok(alone, mcl_continue(alone, &state, &options, NULL, NULL, &again, &found));
    test_same(&limit, &again, 7);
    end_threads(tasks, 4);
    test_free(alone, &limit, &again, &two.gathered);
    sp_csr_free(host, &start);
    sp_context_destroy(alone);
}

/* An interrupt of one process ends all after the same iteration; what they had goes on as if nothing had happened. */
HOST_TEST(an_interrupt_of_one_process_ends_all, 1)
{
    sp_context *alone = test_context(_i, 1);
    test_random random = test_seed(13);
    const mcl_options options = defaults();
    sp_csr start = start_of(host, test_communities(host, &random, 40, 12, 0.6, 0.0006)), limit, again;
    mcl_run run, found;
    ck_ok(alone, mcl_iterate(alone, &start, &options, NULL, NULL, &limit, &run));
    for (int size = 1; size <= 4; size++) {
        meeting all = {.size = size, .memory = size % 2 ? 100000 : 0, .fails_at = -1};
        task tasks[MOST];
        pthread_t threads[MOST];
        pthread_barrier_init(&all.barrier, NULL, (unsigned)size);
        for (int r = 0; r < size; r++) {
            task *t = &tasks[r];
            *t = (task){.device = _i, .start = &start, .options = &options, .seen = {.stop_after = -1}};
            t->member = (member){.all = &all, .rank = r};
            t->seen.interrupt_after = r == size - 1 ? 2 : 0;
            t->context = test_context_with(_i, (sp_context_options){.threads = 1, .interrupt = &t->seen.interrupt});
        }
        for (int r = 0; r < size; r++) ck_assert_int_eq(pthread_create(&threads[r], NULL, run_task, &tasks[r]), 0);
        for (int r = 0; r < size; r++) pthread_join(threads[r], NULL);
        pthread_barrier_destroy(&all.barrier);
        for (int r = 0; r < size; r++) {
            ck_assert_int_eq(tasks[r].status, SP_ERROR_INTERRUPTED);
            ck_assert_int_eq(tasks[r].seen.interrupted, 1);
            ck_assert_int_eq(tasks[r].seen.last.number, 2);
            ck_assert_int_eq(tasks[r].seen.status, SP_OK);
        }
        const mcl_iteration *last = &tasks[0].seen.last;
        const mcl_state state = {.iterations = 2, .nnz_input = start.nnz, .inflation = last->next_inflation,
                                 .marks = {last->marks[0], last->marks[1], 100}, .iterand = &tasks[0].seen.gathered};
        ck_ok(alone, mcl_continue(alone, &state, &options, NULL, NULL, &again, &found));
        test_same(&limit, &again, (uint64_t)size);
        expect_same_run(&run, &found);
        sp_csr_free(alone, &again);
        end_threads(tasks, size);
    }
    test_free(alone, &limit);
    sp_csr_free(host, &start);
    sp_context_destroy(alone);
}

/* Each call of the functions fails in turn: the sentence is theirs, nothing is written and nothing is left. */
TEST(a_broken_connection_ends_the_run)
{
    sp_context *host = test_context(0, 1);
    test_random random = test_seed(5);
    const mcl_options options = defaults();
    sp_csr start = start_of(host, test_communities(host, &random, 3, 10, 0.6, 0.05));
    bool done = false;
    for (int64_t fails_at = 0; !done; fails_at++) {
        meeting all = {.size = 1, .fails_at = fails_at};
        member one = {.all = &all};
        const sp_ranks ranks = ranks_of(&one);
        test_heap heap = {.fail_at = -1};
        sp_context *context = test_heap_context(&heap, _i, 1);
        sp_csr limit = {0};
        mcl_run run;
        pthread_barrier_init(&all.barrier, NULL, 1);
        test_mark(&run, sizeof run);
        const sp_status status = mcl_iterate_together(context, &ranks, &start, NULL, &options, NULL, NULL, &limit, &run);
        done = status == SP_OK;
        if (!done) {
            ck_assert_int_eq(status, SP_ERROR_DEVICE);
            ck_assert(strstr(sp_last_error(context), "the line is cut"));
            ck_assert_ptr_null(limit.row_offsets);
            ck_assert(test_is_marked(&run, sizeof run));
        }
        sp_csr_free(context, &limit);
        test_end_heap(context, &heap);
        pthread_barrier_destroy(&all.barrier);
        ck_assert_int_lt(fails_at, 500);
    }
    sp_csr_free(host, &start);
    sp_context_destroy(host);
}

/* ---- rows of a start matrix ------------------------------------------------------------------------------ */

/* Communities of `size` nodes in no order; repeated arcs, loops, both directions. */
static arc_list make_arcs(test_random *random, int64_t nodes, int64_t count, int64_t size)
{
    arc_list arcs = {.nodes = nodes, .count = nodes > 0 ? count : 0, .mirror = test_below(random, 4) > 0,
                     .tails = malloc((size_t)count * sizeof *arcs.tails + 1),
                     .heads = malloc((size_t)count * sizeof *arcs.heads + 1),
                     .weights = test_below(random, 3) ? malloc((size_t)count * sizeof *arcs.weights + 1) : NULL};
    const int64_t groups = nodes / size + 1;
    for (int64_t k = 0; k < arcs.count; k++) {
        const int64_t tail = test_below(random, nodes);
        int64_t head = test_below(random, 8) ? tail % groups + groups * test_below(random, size) : test_below(random, nodes);
        if (head >= nodes) head = tail;
        arcs.tails[k] = (int32_t)tail;
        arcs.heads[k] = (int32_t)head;
        if (arcs.weights) arcs.weights[k] = 0.125f + (float)test_below(random, 50);
    }
    return arcs;
}

static void check_arcs(int device, int size, const arc_list *arcs, const mcl_options *options)
{
    sp_context *alone = test_context(device, 2), *host = test_context(0, 2);
    float *ones = malloc((size_t)arcs->count * sizeof *ones + 1);
    seen expected = {.stop_after = -1, .context = alone};
    task tasks[MOST], common = {.device = device, .options = options, .arcs = arcs, .seen.stop_after = -1};
    sp_csr graph, start, limit;
    mcl_run run;
    for (int64_t k = 0; k < arcs->count; k++) ones[k] = 1;
    ck_ok(host, sp_csr_from_coo(host, &(sp_coo){.rows = arcs->nodes, .cols = arcs->nodes, .count = arcs->count,
                                                .row_indices = arcs->tails, .col_indices = arcs->heads,
                                                .values = arcs->weights ? arcs->weights : ones}, SP_COMBINE_MAX,
                                arcs->mirror, &graph));
    ck_ok(host, mcl_start_matrix(host, &graph, NULL, options, false, &start));
    ck_ok(alone, mcl_iterate(alone, &start, options, watch, &expected, &limit, &run));
    common.start = &start;
    run_threads(tasks, size, &common);
    for (int r = 0; r < size; r++) {
        ck_assert_int_eq(tasks[r].seen.last.nnz_input, expected.last.nnz_input);
        expect_same_figures(&expected, &tasks[r].seen, device);
        expect_same_run(&run, &tasks[r].run);
    }
    test_same(&limit, &tasks[0].limit, (uint64_t)size);
    end_threads(tasks, size);
    sp_csr_free(alone, &limit);
    test_free(host, &graph, &start);
    test_end(alone, host);
    free(ones);
}

static void free_arcs(arc_list *arcs) { free_all(arcs->tails, arcs->heads, arcs->weights); }

TEST(processes_that_have_read_some_arcs_find_what_one_finds)
{
    static const int64_t shapes[][2] = {{0, 0}, {1, 1}, {3, 4}, {40, 0}, {40, 90}, {300, 2000}, {1500, 9000}};
    for (uint64_t s = 0; s < COUNT(shapes); s++)
        for (int size = 1; size <= MOST; size += 1 + size / 3) {
            test_random random = test_seed(s + 1);
            mcl_options options = defaults();
            arc_list arcs = make_arcs(&random, shapes[s][0], shapes[s][1], 12);
            options.inflation = s % 2 ? 1.5 : 2;
            check_arcs(_i, size, &arcs, &options);
            free_arcs(&arcs);
        }
}

/* Enough entries that the nodes are numbered by communities, each process by its own labels. */
TEST(rows_of_large_graphs_move_to_their_communities)
{
    for (int size = 2; size <= 5; size += 3) {
        test_random random = test_seed((uint64_t)size);
        mcl_options options = defaults();
        arc_list arcs = make_arcs(&random, 9000, 180000, 60);
        options.main_length = 4;
        check_arcs(_i, size, &arcs, &options);
        free_arcs(&arcs);
    }
}

/* Whichever exchange fails while a graph is shared. */
TEST(a_broken_connection_ends_the_sharing)
{
    test_random random = test_seed(5);
    const mcl_options options = defaults();
    arc_list arcs = make_arcs(&random, 3000, 210000, 50);
    bool done = false;
    for (int64_t fails_at = 0; !done; fails_at++) {
        meeting all = {.size = 1, .fails_at = fails_at};
        test_heap heap = {.fail_at = -1};
        task t = {.member = {.all = &all}, .arcs = &arcs, .options = &options, .seen.stop_after = 1};
        const sp_ranks ranks = ranks_of(&t.member);
        t.context = test_heap_context(&heap, 0, 1);
        pthread_barrier_init(&all.barrier, NULL, 1);
        t.status = run_from_arcs(&t, &ranks);
        done = t.status == SP_OK;
        if (!done) ck_assert(t.status == SP_ERROR_DEVICE && strstr(sp_last_error(t.context), "the line is cut"));
        test_free(t.context, &t.limit, &t.seen.gathered);
        test_end_heap(t.context, &heap);
        pthread_barrier_destroy(&all.barrier);
        ck_assert_int_lt(fails_at, 500);
    }
    free_arcs(&arcs);
    (void)_i;
}

TEST(only_the_rows_that_are_kept_stay)
{
    sp_context *host = test_context(0, 1);
    for (int64_t first = 0; first <= 4; first++)
        for (int64_t end = first; end <= 4; end++) {
            const double numbers[] = {1, 2, 0, 0,  0, 0, 0, 0,  3, 0, 4, 5,  0, 6, 0, 7};
            sp_csr m = test_from_dense(host, 4, 4, numbers, SP_F32);
            mcl_keep_rows(&m, first, end);
            ck_ok(host, sp_csr_check(host, &m));
            for (int64_t i = 0; i < 4; i++) {
                int64_t entries = 0;
                for (int64_t j = 0; j < 4; j++) entries += numbers[4 * i + j] != 0;
                ck_assert_int_eq(test_row_length(&m, i), i >= first && i < end ? entries : 0);
                for (int64_t k = m.row_offsets[i]; k < m.row_offsets[i + 1]; k++)
                    ck_assert(test_value(&m, k) == numbers[4 * i + m.col_indices[k]]);
            }
            sp_csr_free(host, &m);
        }
    sp_context_destroy(host);
    (void)_i;
}

const test_entry ranks_tests[] = {
    CASE("ranks", 240),
    ON_DEVICES(processes_together_find_what_one_finds),
    ON_DEVICES(processes_that_have_read_some_arcs_find_what_one_finds),
    ON_DEVICES(rows_of_large_graphs_move_to_their_communities),
    ONCE(a_broken_connection_ends_the_sharing),
    ONCE(only_the_rows_that_are_kept_stay),
    ON_DEVICES(numbering_by_community_is_shared),
    ON_DEVICES(more_processes_than_nodes_work),
    ON_DEVICES(what_the_first_monitor_says_ends_all),
    ON_DEVICES(batches_change_no_bit),
    ON_DEVICES(a_column_that_needs_too_much_is_reported),
    ON_DEVICES(a_run_goes_on_in_another_number_of_processes),
    ON_DEVICES(an_interrupt_of_one_process_ends_all),
    ON_DEVICES(a_broken_connection_ends_the_run),
    {0},
};
