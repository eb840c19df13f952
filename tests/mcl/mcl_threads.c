/* Threads that take the part of processes in mcl_iterate_together, and what they make beside mcl_iterate. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mcl_threads.h"

/* ---- threads that exchange data -------------------------------------------------------------------------- */

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

sp_ranks ranks_of(member *m)
{
    return (sp_ranks){.rank = m->rank, .size = m->all->size, .memory = m->all->memory, .user = m,
                      .broadcast = broadcast, .gather = gather,
                       .exchange = exchange, .fetch_lengths = fetch_lengths, .fetch_entries = fetch_entries};
}

/* ---- runs ------------------------------------------------------------------------------------------------ */

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

bool watch(void *user, const mcl_iteration *iteration, const sp_csr *iterand)
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

/* From this process's share of the arcs. */
sp_status run_from_arcs(task *t, const sp_ranks *ranks)
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
        status = mcl_iterate_together(t->context, ranks, &start, given, t->options, watch, &t->seen, &t->limit,
                                      &t->run);
    test_free(t->context, &graph, &start);
    return status;
}

static sp_status go_on(task *t, const sp_ranks *ranks)
{
    const sp_csr *whole = t->state->iterand;
    const int64_t first = t->given ? t->given[ranks->rank] : 0,
                  end = t->given ? t->given[ranks->rank + 1] : whole->rows;
    int64_t *offsets = test_block((size_t)(end - first + 1) * sizeof *offsets);
    const int64_t base = whole->row_offsets[first];
    sp_csr rows = *whole;
    mcl_state state = *t->state;
    for (int64_t i = first; i <= end; i++) offsets[i - first] = whole->row_offsets[i] - base;
    rows.rows = end - first;
    rows.nnz = offsets[end - first];
    rows.row_offsets = offsets;
    rows.col_indices += base;
    rows.values = (float *)rows.values + base;
    state.iterand = &rows;
    state.given = t->given;
    const sp_status status = mcl_continue_together(t->context, ranks, &state, t->options, watch, &t->seen, &t->limit,
                                                   &t->run);
    free(offsets);
    return status;
}

/* Thread 0 gets all rows of the limit, and those that mcl_interpret looks at. */
static sp_status gather_limit(task *t, const sp_ranks *ranks)
{
    sp_csr part = t->limit, kept = {0};
    int64_t cut[MOST + 1];
    t->limit = (sp_csr){0};
    sp_status status = sp_ranks_cut(t->context, ranks, part.rows, cut);
    if (status == SP_OK) status = sp_ranks_gather_rows(t->context, ranks, &part, &t->limit);
    if (status == SP_OK) status = mcl_keep_attracting(t->context, &part, cut[ranks->rank], &kept);
    if (status == SP_OK) status = sp_ranks_gather_rows(t->context, ranks, &kept, &t->attracting);
    test_free(t->context, &part, &kept);
    return status;
}

void *run_task(void *argument)
{
    task *t = argument;
    const sp_ranks ranks = ranks_of(&t->member);
    t->seen.context = t->context;
    t->seen.ranks = &ranks;
    if (t->state) t->status = go_on(t, &ranks);
    else if (t->arcs) t->status = run_from_arcs(t, &ranks);
    else
        t->status = mcl_iterate_together(t->context, &ranks, t->start, NULL, t->options, watch, &t->seen, &t->limit,
                                         &t->run);
    if (t->status == SP_OK) t->status = gather_limit(t, &ranks);
    return NULL;
}

void expect_same_figures(const seen *a, const seen *b, bool cuda)
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

void run_threads(task *tasks, int size, const task *common)
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

void end_threads(task *tasks, int size)
{
    for (int r = 0; r < size; r++) {
        test_free(tasks[r].context, &tasks[r].limit, &tasks[r].attracting, &tasks[r].seen.gathered);
        sp_context_destroy(tasks[r].context);
    }
}

void expect_same_run(const mcl_run *a, const mcl_run *b)
{
    ck_assert(a->iterations == b->iterations && a->converged == b->converged && a->stopped == b->stopped &&
              a->synopsis == b->synopsis && memcmp(a->marks, b->marks, sizeof a->marks) == 0);
}

void expect_same_clusters(sp_context *context, const sp_csr *limit, const sp_csr *attracting)
{
    for (int weak = 0; weak < 2; weak++) {
        mcl_options options = defaults();
        mcl_clustering a, b;
        options.weak_attraction = weak;
        options.overlap = MCL_OVERLAP_KEEP;
        ck_ok(context, mcl_interpret(context, limit, NULL, &options, &a));
        ck_ok(context, mcl_interpret(context, attracting, NULL, &options, &b));
        ck_assert(a.clusters == b.clusters && a.overlap == b.overlap && a.attractors == b.attractors);
        ck_assert(memcmp(a.offsets, b.offsets, (size_t)(a.clusters + 1) * sizeof *a.offsets) == 0);
        ck_assert(memcmp(a.members, b.members, (size_t)a.offsets[a.clusters] * sizeof *a.members) == 0);
        mcl_clustering_free(context, &a);
        mcl_clustering_free(context, &b);
    }
}

void check_together(int device, int size, const sp_csr *start, const mcl_options *options, int64_t stop_after)
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
    expect_same_clusters(alone, &limit, &tasks[0].attracting);
    if (expected.gathered.row_offsets) test_same(&expected.gathered, &tasks[0].seen.gathered, (uint64_t)size);
    end_threads(tasks, size);
    test_free(alone, &limit, &expected.gathered);
    sp_context_destroy(alone);
}

sp_csr start_of(sp_context *host, sp_csr graph)
{
    const mcl_options options = defaults();
    sp_csr start;
    ck_ok(host, mcl_start_matrix(host, &graph, NULL, &options, false, &start));
    sp_csr_free(host, &graph);
    return start;
}
