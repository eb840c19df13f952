/* test_mcl: mcl_iterate_together, with threads as the processes, against mcl_iterate. */
#include <stdlib.h>
#include <string.h>

#include "mcl_threads.h"

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

/* ---- partitions ---------------------------------------------------------------------------------------- */

typedef enum shape { CYCLE, GRID, HUB, SEVEN, FAMILIES, SHAPES } shape;

/* A symmetric graph of that shape. */
static sp_csr make_network(sp_context *host, shape kind)
{
    static const int64_t sizes[] = {[CYCLE] = 101, [GRID] = 400, [HUB] = 200, [SEVEN] = 7};
    test_random random = test_seed(21);
    if (kind == FAMILIES) return test_communities(host, &random, 12, 20, 0.5, 0.01);
    const int64_t n = sizes[kind];
    double *weights = test_zeros((size_t)(n * n), sizeof *weights);
    for (int64_t i = 0; i < n; i++) {
        const int64_t ends[] = {kind == GRID ? i + (i % 20 < 19) : (i + 1) % n, kind == GRID ? i + 20 : kind == HUB
                                ? 0 : i};
        for (int k = 0; k < 2; k++)
            if (ends[k] != i && ends[k] < n)
                weights[n * i + ends[k]] = weights[n * ends[k] + i] = kind == CYCLE || kind == GRID
                    ? 1 : (double)(1 + i % 5);
    }
    const sp_csr graph = test_from_dense(host, n, n, weights, SP_F32);
    free(weights);
    return graph;
}

typedef enum partition { NATURAL, COMMUNITIES, RANDOM, PARTITIONS } partition;

/* The order of the nodes; a process has some that follow each other in it. */
static int32_t *make_order(sp_context *host, const sp_csr *start, partition kind)
{
    test_random random = test_seed(22);
    int32_t *order = NULL;
    if (kind == COMMUNITIES) ck_ok(host, sp_csr_community_order(host, start, &order));
    if (kind != RANDOM) return order;
    order = test_block((size_t)(start->rows + 1) * sizeof *order);
    for (int64_t i = 0; i < start->rows; i++) {
        const int64_t j = test_below(&random, i + 1);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

/* Runs from a numbered start matrix in several processes, where one makes `limit`. All have the whole, or each has rows
 * of any cut, in which some have none. */
static void check_partition(const task *common, const int32_t *order, const sp_csr *limit, const mcl_run *run)
{
    test_random random = test_seed(23);
    sp_context *host = test_context(0, 1);
    task tasks[MOST], rest = *common;
    sp_csr numbered;
    if (order) ck_ok(host, mcl_renumber(host, common->start, order, &numbered));
    else ck_ok(host, sp_csr_copy(host, common->start, SP_HOST, &numbered));
    const mcl_state state = {.nnz_input = numbered.nnz, .inflation = (double)(float)common->options->inflation,
                             .marks = {100, 100, 100}, .order = order, .iterand = &numbered};
    rest.state = &state;
    for (int size = 1; size <= MOST; size += size < 4 ? 1 : 5) {
        int64_t cut[MOST + 1] = {0};
        for (int r = 1; r < size; r++)
            cut[r] = test_below(&random, 3)
                ? cut[r - 1] + test_below(&random, numbered.rows - cut[r - 1] + 1) : cut[r - 1];
        cut[size] = numbered.rows;
        rest.given = test_below(&random, 2) || order ? cut : NULL;
        run_threads(tasks, size, &rest);
        test_same(limit, &tasks[0].limit, (uint64_t)size);
        expect_same_run(run, &tasks[0].run);
        end_threads(tasks, size);
    }
    sp_csr_free(host, &numbered);
    sp_context_destroy(host);
}

/* On the CPU, whose sums run in the order of the original numbers. */
TEST(any_partition_finds_what_one_process_finds)
{
    sp_context *host = test_context(0, 1);
    mcl_options options[3] = {defaults(), defaults(), defaults()};
    options[1].prune_number = 4;
    options[1].select = options[1].recover = 0;
    options[2].prune_number = 40;
    options[2].select = 5;
    options[2].recover = 8;
    options[2].inflation = 1.4;
    for (shape kind = 0; kind < SHAPES; kind++)
        for (size_t o = 0; o < COUNT(options); o++) {
            sp_csr start = start_of(host, make_network(host, kind)), limit;
            task common = {.start = &start, .options = &options[o], .seen = {.stop_after = -1}};
            mcl_run run;
            ck_ok(host, mcl_iterate(host, &start, &options[o], NULL, NULL, &limit, &run));
            for (partition p = 0; p < PARTITIONS; p++) {
                int32_t *order = make_order(host, &start, p);
                common.memory = 0;
                check_partition(&common, order, &limit, &run);
                common.memory = 25000; /* a column that names all others needs more */
                if (kind == CYCLE || kind == GRID || (kind == FAMILIES && o > 0))
                    check_partition(&common, order, &limit, &run);
                if (p == COMMUNITIES) sp_free(host, order);
                else free(order);
            }
            test_free(host, &start, &limit);
        }
    sp_context_destroy(host);
    (void)_i;
}

/* ---- failures ------------------------------------------------------------------------------------------ */

/* A column that needs more than there may be is reported by its process. */
TEST(a_column_that_needs_too_much_is_reported)
{
    sp_context *context = test_context(_i, 1);
    test_random random = test_seed(12);
    const mcl_options options = defaults();
    sp_csr start = start_of(context, test_communities(context, &random, 1, 50, 1, 0)), limit = {0};
    meeting all = {.size = 1, .memory = 1000, .fails_at = -1};
    member one = {.all = &all};
    int64_t needed = 0;
    sp_ranks ranks = ranks_of(&one);
    mcl_run run;
    ranks.needed = &needed;
    pthread_barrier_init(&all.barrier, NULL, 1);
    ck_assert_int_eq(mcl_iterate_together(context, &ranks, &start, NULL, &options, NULL, NULL, &limit, &run),
                     SP_ERROR_HOST_MEMORY);
    ck_assert_msg(strstr(sp_last_error(context), "needs 20000 bytes") != NULL, "%s", sp_last_error(context));
    ck_assert_int_eq(needed, 20000);
    ranks.memory = needed;
    ck_ok(context, mcl_iterate_together(context, &ranks, &start, NULL, &options, NULL, NULL, &limit, &run));
    sp_csr_free(context, &limit);
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
        const sp_status status = mcl_iterate_together(context, &ranks, &start, NULL, &options, NULL, NULL, &limit,
                                                      &run);
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

/* Rows go back to their original numbers, or a cut line or a lack of memory is reported and nothing is left. */
TEST(rows_in_the_original_numbers_or_a_reason)
{
    sp_context *host = test_context(0, 1);
    test_random random = test_seed(6);
    sp_csr start = start_of(host, test_communities(host, &random, 3, 10, 0.6, 0.05)), numbered, expected;
    int32_t *order = make_order(host, &start, RANDOM);
    ck_ok(host, mcl_renumber(host, &start, order, &numbered));
    ck_ok(host, mcl_restore(host, &numbered, order, &expected));
    for (int memory = 0; memory < 2; memory++) {
        bool done = false;
        for (int64_t fails_at = 0; !done; fails_at++) {
            meeting all = {.size = 1, .fails_at = memory ? -1 : fails_at};
            member one = {.all = &all};
            const sp_ranks ranks = ranks_of(&one);
            test_heap heap = {.fail_at = -1};
            sp_context *context = test_heap_context(&heap, 0, 1);
            sp_csr restored = {0};
            if (memory) heap.fail_at = heap.allocations + fails_at;
            pthread_barrier_init(&all.barrier, NULL, 1);
            const sp_status status = mcl_restore_together(context, &ranks, &numbered, order, &restored);
            done = status == SP_OK;
            if (done) test_same(&expected, &restored, 6);
            else ck_assert(status == (memory ? SP_ERROR_HOST_MEMORY : SP_ERROR_DEVICE) && !restored.row_offsets);
            sp_csr_free(context, &restored);
            test_end_heap(context, &heap);
            pthread_barrier_destroy(&all.barrier);
            ck_assert_int_lt(fails_at, 50);
        }
    }
    free(order);
    test_free(host, &start, &numbered, &expected);
    sp_context_destroy(host);
}

/* Also where weights are negative, and in the shape of a first iterand. */
HOST_TEST(what_attracts_is_enough_to_find_clusters, 1)
{
    test_random random = test_seed(31);
    for (int round = 0; round < 200; round++) {
        const int64_t n = 1 + test_below(&random, 12);
        double *weights = test_zeros((size_t)(n * n), sizeof *weights);
        for (int64_t e = 0; e < n * n; e++)
            if (test_below(&random, 3) == 0) weights[e] = (double)(test_below(&random, 12) - (round % 2 ? 3 : 0)) / 8;
        sp_csr limit = test_from_dense(host, n, n, weights, SP_F32), kept;
        ck_ok(host, mcl_keep_attracting(host, &limit, 0, &kept));
        for (int64_t i = 0; i < n; i++)
            ck_assert((test_row_length(&kept, i) > 0) == (test_row_length(&limit, i) > 0));
        expect_same_clusters(host, &limit, &kept);
        test_free(host, &limit, &kept);
        free(weights);
    }
    (void)_i;
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
        int64_t head = test_below(random, 8)
            ? tail % groups + groups * test_below(random, size) : test_below(random, nodes);
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
    ONCE(any_partition_finds_what_one_process_finds),
    ON_DEVICES(a_column_that_needs_too_much_is_reported),
    ON_DEVICES(a_run_goes_on_in_another_number_of_processes),
    ON_DEVICES(an_interrupt_of_one_process_ends_all),
    ON_DEVICES(a_broken_connection_ends_the_run),
    ONCE(rows_in_the_original_numbers_or_a_reason),
    ONCE(what_attracts_is_enough_to_find_clusters),
    {0},
};
