/* Markov clustering: options, start matrix, iteration and interpretation, on graphs with known answers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mcl_shared.h"

/* graph → start → limit → clusters on `context`. */
static mcl_clustering cluster(sp_context *context, const sp_csr *graph, const mcl_options *options)
{
    sp_csr start, limit;
    mcl_run run;
    mcl_clustering clustering;
    ck_ok(context, mcl_start_matrix(context, graph, NULL, options, false, &start));
    ck_ok(context, mcl_iterate(context, &start, options, NULL, NULL, &limit, &run));
    ck_ok(context, mcl_interpret(context, &limit, graph, options, &clustering));
    test_free(context, &start, &limit);
    return clustering;
}

/* ---- options ------------------------------------------------------------------------------------------- */

CONTEXT_TEST(defaults_are_scheme_six, 0, 1)
{
    mcl_options options = defaults(), six = options;
    ck_ok(context, mcl_options_scheme(context, &six, 6));
    ck_assert_int_eq(memcmp(&options, &six, sizeof six), 0);
    ck_assert(options.inflation == 2 && options.main_length == 10000 && options.overlap == MCL_OVERLAP_CUT);
}

CONTEXT_TEST(schemes_set_the_published_numbers, 0, 1)
{
    static const int64_t expected[7][3] = {{3000, 400, 500}, {4000, 500, 600}, {5000, 600, 700},
                                           {6000, 700, 800}, {7000, 800, 900}, {10000, 1100, 1400},
                                           {10000, 1200, 1600}};
    for (int scheme = 1; scheme <= 7; scheme++) {
        mcl_options options = defaults();
        ck_ok(context, mcl_options_scheme(context, &options, scheme));
        ck_assert_int_eq(options.prune_number, expected[scheme - 1][0]);
        ck_assert_int_eq(options.select, expected[scheme - 1][1]);
        ck_assert_int_eq(options.recover, expected[scheme - 1][2]);
        ck_assert(options.recover_percent == 90);
    }
    mcl_options options = defaults();
    ck_assert_int_eq(mcl_options_scheme(context, &options, 0), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(mcl_options_scheme(context, &options, 8), SP_ERROR_ARGUMENT);
}

/* ---- start matrix -------------------------------------------------------------------------------------- */

/* The start matrix of `numbers` (n × n) must be `expected`, up to one rounding. */
static void check_start(int64_t n, const double *numbers, const mcl_options *options, const double *expected)
{
    sp_context *context = test_context(0, 1);
    sp_csr graph = test_from_dense(context, n, n, numbers, SP_F32), start;
    ck_ok(context, mcl_start_matrix(context, &graph, NULL, options, false, &start));
    ck_ok(context, sp_csr_check(context, &start));
    int64_t entry = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            if (expected[i * n + j] == 0) continue;
            ck_assert_int_lt(entry, start.row_offsets[i + 1]);
            ck_assert_int_eq(start.col_indices[entry], j);
            ck_assert_double_eq_tol(test_value(&start, entry), expected[i * n + j], 1e-6);
            entry++;
        }
    ck_assert_int_eq(entry, start.nnz);
    test_free(context, &graph, &start);
    sp_context_destroy(context);
}

TEST(loops_become_the_column_maximum)
{
    const double expected[] = {.5, .5, 0, 0, .2, .4, .4, 0, 0, .5, .5, 0, 0, 0, 0, 1};
    mcl_options options = defaults();
    check_start(4, path, &options, expected);
}

TEST(kept_loops_are_left_alone_and_none_is_added)
{
    const double expected[] = {0, 1, 0, 0, 2. / 15, 9. / 15, 4. / 15, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    mcl_options options = defaults();
    options.discard_loops = false;
    check_start(4, path, &options, expected);
}

TEST(loop_factor_scales_the_diagonal)
{
    const double expected[] = {.75, .25, 0, 0, 2. / 18, 12. / 18, 4. / 18, 0, 0, .25, .75, 0, 0, 0, 0, 1};
    mcl_options options = defaults();
    options.loop_factor = 3;
    check_start(4, path, &options, expected);
}

TEST(pre_inflation_sharpens_columns)
{
    const double expected[] = {.5, .5, 0, 0, 1. / 9, 4. / 9, 4. / 9, 0, 0, .5, .5, 0, 0, 0, 0, 1};
    mcl_options options = defaults();
    options.pre_inflation = 2;
    check_start(4, path, &options, expected);
}

TEST(rows_of_the_graph_are_columns_of_the_process)
{
    /* An arc 0 → 1 only. */
    const double arc[] = {0, 3, 0, 0}, expected[] = {.5, .5, 0, 1};
    mcl_options options = defaults();
    check_start(2, arc, &options, expected);
}

CONTEXT_TEST(odd_graphs_are_refused, 0, 1)
{
    const double negative[] = {0, -1, -1, 0};
    const mcl_options options = defaults();
    sp_csr graph = test_from_dense(context, 2, 2, negative, SP_F32), start;
    test_mark(&start, sizeof start);
    ck_assert_int_eq(mcl_start_matrix(context, &graph, NULL, &options, false, &start), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&start, sizeof start));
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "-1"));
    ck_ok(context, mcl_start_matrix(context, &graph, NULL, &options, true, &start));
    sp_csr_free(context, &start);
    mcl_transform *magnitudes, *doubled;
    ck_ok(context, mcl_transform_parse(context, "abs()", false, &magnitudes));
    ck_ok(context, mcl_transform_parse(context, "mul(2)", false, &doubled));
    ck_ok(context, mcl_start_matrix(context, &graph, magnitudes, &options, false, &start));
    sp_csr_free(context, &start);
    ck_assert_int_eq(mcl_start_matrix(context, &graph, doubled, &options, false, &start), SP_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "-2"));
    mcl_transform_free(context, magnitudes);
    mcl_transform_free(context, doubled);
    sp_csr_free(context, &graph);
    sp_csr wide = test_from_dense(context, 1, 2, path, SP_F32), f64 = test_from_dense(context, 2, 2, path, SP_F64);
    ck_assert_int_eq(mcl_start_matrix(context, &wide, NULL, &options, false, &start), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(mcl_start_matrix(context, &f64, NULL, &options, false, &start), SP_ERROR_ARGUMENT);
    test_free(context, &wide, &f64);
}

CONTEXT_TEST(prepared_graph_has_loops_and_unscaled_weights, 0, 1)
{
    const double expected[] = {2, 2, 0, 0, 2, 4, 4, 0, 0, 4, 4, 0, 0, 0, 0, 1};
    const mcl_options options = defaults();
    sp_csr graph = test_from_dense(context, 4, 4, path, SP_F32), prepared;
    sp_csr wanted = test_from_dense(context, 4, 4, expected, SP_F32);
    ck_ok(context, mcl_prepared_graph(context, &graph, NULL, &options, false, &prepared));
    test_same(&wanted, &prepared, 0);
    test_free(context, &graph, &prepared, &wanted);
}

CONTEXT_TEST(community_order_brings_groups_together_and_can_be_undone, 0, 2)
{
    enum { GROUPS = 8, SIZE = 25, N = GROUPS * SIZE };
    test_random random = test_seed(51);
    sp_csr ordered = test_communities(context, &random, GROUPS, SIZE, 0.8, 0.002), graph, moved, back;
    int32_t mix[N], unmix[N], place[N], *order;
    for (int32_t j = 0; j < N; j++) mix[j] = (j * 77 + 5) % N; /* 77 and 200 have no common factor */
    for (int32_t j = 0; j < N; j++) unmix[mix[j]] = j;
    ck_ok(context, sp_csr_permute(context, &ordered, mix, unmix, &graph));
    ck_ok(context, sp_csr_community_order(context, &graph, &order));
    for (int j = 0; j < N; j++) place[j] = -1;
    for (int32_t j = 0; j < N; j++) {
        ck_assert(order[j] >= 0 && order[j] < N && place[order[j]] == -1);
        place[order[j]] = j;
    }
    int changes = 0;
    for (int j = 1; j < N; j++) changes += mix[order[j]] / SIZE != mix[order[j - 1]] / SIZE;
    ck_assert_int_lt(changes, 3 * GROUPS);
    ck_ok(context, mcl_renumber(context, &graph, order, &moved));
    ck_ok(context, mcl_restore(context, &moved, order, &back));
    test_same(&graph, &back, 51);
    sp_csr_free(context, &back);
    ck_ok(context, mcl_restore(context, &graph, NULL, &back));
    test_same(&graph, &back, 51);
    sp_csr *all[] = {&ordered, &graph, &moved, &back};
    for (int i = 0; i < 4; i++) sp_csr_free(context, all[i]);
    sp_free(context, order);
}

/* ---- iteration ----------------------------------------------------------------------------------------- */

typedef struct record {
    int64_t count, stop_after;
    mcl_iteration seen[400];
    double worst_sum; /* farthest that a column's sum was from 1 */
    sp_context *context;
    sp_csr *start; /* freed as soon as that is allowed; may be NULL */
    bool began;
} record;

static bool watch(void *user, const mcl_iteration *iteration, const sp_csr *iterand)
{
    record *r = user;
    ck_assert_int_lt(r->count, 400);
    ck_assert_int_eq(iteration->nnz_after, iterand->nnz);
    if (r->start && iterand != r->start) sp_csr_free(r->context, r->start);
    if (iteration->number == 0) {
        ck_assert(!r->began && iteration->nnz_input == iterand->nnz);
        r->began = true;
        return true;
    }
    ck_assert(r->began);
    r->seen[r->count++] = *iteration;
    if (iterand->space == SP_HOST)
        for (int64_t j = 0; j < iterand->rows; j++) {
            double sum = 0;
            for (int64_t k = iterand->row_offsets[j]; k < iterand->row_offsets[j + 1]; k++)
                sum += test_value(iterand, k);
            r->worst_sum = fmax(r->worst_sum, fabs(sum - 1));
        }
    return r->stop_after == 0 || r->count < r->stop_after;
}

/* Iterates from the start matrix of `graph`; the limit goes to *limit unless it is NULL. */
static mcl_run iterate(sp_context *context, const sp_csr *graph, const mcl_options *options, record *r, sp_csr *limit)
{
    sp_csr start, end;
    mcl_run run;
    ck_ok(context, mcl_start_matrix(context, graph, NULL, options, false, &start));
    r->context = context;
    r->start = &start;
    ck_ok(context, mcl_iterate(context, &start, options, watch, r, &end, &run));
    ck_assert_int_eq(end.space, SP_HOST);
    ck_assert_int_eq(run.iterations, r->count);
    sp_csr_free(context, &start);
    if (limit) *limit = end;
    else sp_csr_free(context, &end);
    return run;
}

/* Nodes in a row: slow to converge at a low inflation. */
static sp_csr row_of_nodes(sp_context *context, int n)
{
    double *numbers = calloc((size_t)(n * n), sizeof *numbers);
    for (int i = 0; i + 1 < n; i++) numbers[i * n + i + 1] = numbers[(i + 1) * n + i] = 1;
    sp_csr graph = test_from_dense(context, n, n, numbers, SP_F32);
    free(numbers);
    return graph;
}

CONTEXT_TEST(iteration_reports_what_it_did, _i, 0)
{
    test_random random = test_seed(21);
    sp_csr graph = test_communities(context, &random, 8, 25, 0.5, 0.01), limit;
    mcl_options options = defaults();
    options.prune_number = 100;
    options.select = 15;
    options.recover = 10;
    record r = {0};
    const mcl_run run = iterate(context, &graph, &options, &r, &limit);
    ck_assert(run.converged && !run.stopped);
    ck_assert_int_gt(run.iterations, 3);
    ck_assert_double_lt(r.worst_sum, 1e-5);
    for (int64_t i = 0; i < r.count; i++) {
        const mcl_iteration *it = &r.seen[i];
        ck_assert_int_eq(it->number, i + 1);
        ck_assert_int_eq(it->nnz_before, i ? r.seen[i - 1].nnz_after : it->nnz_input);
        ck_assert_int_ge(it->nnz_expanded, it->nnz_after);
        ck_assert_int_ge(it->products, it->nnz_expanded);
        ck_assert(it->mark > 0 && it->mark < 100.0001);
        ck_assert(it->homogeneity_low <= it->homogeneity_average && it->homogeneity_average <= it->homogeneity_high);
        ck_assert(it->inflation == 2 && !it->bumped);
        ck_assert((it->chaos < 1e-4) == (i + 1 == r.count));
    }
    ck_assert_int_eq(limit.nnz, r.seen[r.count - 1].nnz_after);
    for (int i = 0; i < 3; i++) ck_assert_double_eq_tol(run.marks[i], r.seen[i].mark, 1e-9);
    ck_assert_double_lt(run.marks[0], 99.9);
    ck_assert_double_eq_tol(run.synopsis, (5 * run.marks[0] + 2 * run.marks[1] + run.marks[2]) / 8, 1e-9);
    test_free(context, &graph, &limit);
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

CONTEXT_TEST(mark_is_the_mean_of_the_worst_thousand_columns, _i, 2)
{
    enum { N = 1400 };
    test_random random = test_seed(23);
    sp_csr start = test_stochastic(context, &random, N, 12), product, limit;
    mcl_options options = defaults();
    options.prune_number = 50;
    options.recover = 5;
    options.main_length = 1;
    const sp_markov_epilogue epilogue = {.cutoff = 0.99999 / 50, .select = options.select, .recover = 5,
                                         .recover_mass = 0.9, .inflation = 2, .dense_factor = 10};
    sp_markov_row *rows = calloc(N, sizeof *rows);
    float *masses = calloc(N, sizeof *masses);
    ck_ok(context, sp_spgemm_markov(context, &start, &start, &epilogue, &product, rows, NULL));
    for (int i = 0; i < N; i++) masses[i] = rows[i].kept_mass;
    qsort(masses, N, sizeof *masses, compare_floats);
    double worst = 0;
    for (int i = 0; i < 1000; i++) worst += (double)masses[i] / 10;
    record r = {0};
    mcl_run run;
    ck_ok(context, mcl_iterate(context, &start, &options, watch, &r, &limit, &run));
    ck_assert_double_eq_tol(run.marks[0], worst, 1e-3);
    ck_assert(masses[0] < masses[N - 1] && run.marks[1] == 100);
    free_all(rows, masses);
    test_free(context, &start, &product, &limit);
}

CONTEXT_TEST(numbers_that_are_none_end_the_process, _i, 1)
{
    test_random random = test_seed(27);
    sp_csr start = test_stochastic(context, &random, 50, 8), limit;
    ((float *)start.values)[100] = NAN;
    const mcl_options options = defaults();
    mcl_run run;
    test_mark(&limit, sizeof limit);
    ck_assert_int_eq(mcl_iterate(context, &start, &options, NULL, NULL, &limit, &run), SP_ERROR_NOT_FINITE);
    ck_assert(test_is_marked(&limit, sizeof limit));
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "column"));
    sp_csr_free(context, &start);
}

CONTEXT_TEST(monitor_and_main_length_end_the_run, _i, 1)
{
    sp_csr graph = row_of_nodes(context, 40);
    mcl_options options = defaults();
    record stopped = {.stop_after = 2}, limited = {0};
    mcl_run run = iterate(context, &graph, &options, &stopped, NULL);
    ck_assert(run.stopped && !run.converged);
    ck_assert_int_eq(run.iterations, 2);
    options.main_length = 3;
    run = iterate(context, &graph, &options, &limited, NULL);
    ck_assert(!run.stopped && !run.converged);
    ck_assert_int_eq(run.iterations, 3);
    sp_csr_free(context, &graph);
}

CONTEXT_TEST(no_iterations_leave_the_start_matrix, _i, 1)
{
    sp_csr graph = row_of_nodes(context, 5), limit;
    mcl_options options = defaults();
    options.main_length = 0;
    record r = {0};
    const mcl_run run = iterate(context, &graph, &options, &r, &limit);
    ck_assert_int_eq(run.iterations, 0);
    ck_assert(run.marks[0] == 100 && run.synopsis == 100);
    ck_assert_int_eq(limit.nnz, 13);
    test_free(context, &graph, &limit);
}

CONTEXT_TEST(initial_inflation_lasts_its_length, _i, 1)
{
    sp_csr graph = row_of_nodes(context, 40);
    mcl_options options = defaults();
    options.initial_length = 2;
    options.initial_inflation = 1.2;
    options.main_length = 2;
    record r = {0};
    const mcl_run run = iterate(context, &graph, &options, &r, NULL);
    ck_assert_int_eq(run.iterations, 4);
    for (int i = 0; i < 4; i++) ck_assert(fabs(r.seen[i].inflation - (i < 2 ? 1.2 : 2)) < 1e-6);
    sp_csr_free(context, &graph);
}

CONTEXT_TEST(inflation_rises_after_forty_iterations, _i, 1)
{
    sp_csr graph = row_of_nodes(context, 60);
    mcl_options options = defaults();
    options.inflation = 1.01;
    options.main_length = 44;
    record r = {0};
    const mcl_run run = iterate(context, &graph, &options, &r, NULL);
    ck_assert_int_eq(run.iterations, 44);
    /* mcl keeps the number in f32. */
    double inflation = 1.01;
    for (int i = 0; i < 44; i++) {
        ck_assert_double_eq_tol(r.seen[i].inflation, inflation, 1e-6);
        ck_assert(r.seen[i].bumped == (i >= 39));
        if (i >= 39) inflation *= 1.001;
        ck_assert_double_eq_tol(r.seen[i].next_inflation, inflation, 1e-6);
    }
    sp_csr_free(context, &graph);
}

TEST(interrupt_flag_ends_the_process)
{
    volatile int interrupt = 1;
    sp_context *host = test_context(0, 1);
    sp_context *context = test_context_with(_i, (sp_context_options){.interrupt = &interrupt});
    sp_csr graph = row_of_nodes(host, 300), start, limit;
    const mcl_options options = defaults();
    mcl_run run;
    ck_ok(host, mcl_start_matrix(host, &graph, NULL, &options, false, &start));
    test_mark(&limit, sizeof limit);
    ck_assert_int_eq(mcl_iterate(context, &start, &options, NULL, NULL, &limit, &run), SP_ERROR_INTERRUPTED);
    ck_assert(test_is_marked(&limit, sizeof limit));
    test_free(host, &graph, &start);
    test_end(context, host);
}

/* The state after one iteration, copied, as a checkpoint has it. */
typedef struct kept_state {
    sp_context *context;
    int64_t after;      /* which */
    volatile int *interrupt; /* is set after that iteration; may be NULL */
    mcl_state state;
    sp_csr iterand;
    int32_t *order;
    bool interrupted;
} kept_state;

static bool keep_state(void *user, const mcl_iteration *iteration, const sp_csr *iterand)
{
    kept_state *k = user;
    if (iteration->interrupted) {
        ck_assert_int_eq(iteration->number, k->after);
        ck_assert_int_eq(iterand->nnz, k->iterand.nnz);
        k->interrupted = true;
    }
    if (iteration->number != k->after || iteration->interrupted) return true;
    ck_ok(k->context, sp_csr_copy(k->context, iterand, SP_HOST, &k->iterand));
    if (iteration->order) {
        k->order = test_block((size_t)iterand->rows * sizeof *k->order);
        memcpy(k->order, iteration->order, (size_t)iterand->rows * sizeof *k->order);
    }
    k->state = (mcl_state){.iterations = iteration->number, .nnz_input = iteration->nnz_input,
                           .inflation = iteration->next_inflation, .order = k->order, .iterand = &k->iterand};
    memcpy(k->state.marks, iteration->marks, sizeof iteration->marks);
    if (k->interrupt) *k->interrupt = 1;
    return true;
}

/* With and without new numbers, from the start matrix, from the first iterations and from one where inflation rises. */
HOST_TEST(a_process_goes_on_with_the_same_bits, 1)
{
    static const int64_t after[] = {0, 1, 4, 42};
    for (int large = 0; large < 2; large++)
        for (int i = 0; i < 4; i++) {
            test_random random = test_seed(5);
            sp_csr graph = large ? test_communities(host, &random, 2, 350, 0.8, 0.05)
                                 : test_communities(host, &random, 12, 40, 0.4, 0.01), start, whole, rest;
            mcl_options options = defaults();
            mcl_run first, second;
            options.inflation = after[i] > 10 ? 1.01 : 1.6;
            options.main_length = 45;
            volatile int interrupt = 0;
            sp_context *context = test_context_with(_i, (sp_context_options){.interrupt = &interrupt, .threads = 2});
            kept_state k = {.context = context, .after = after[i]};
            ck_ok(host, mcl_start_matrix(host, &graph, NULL, &options, false, &start));
            ck_ok(context, mcl_iterate(context, &start, &options, keep_state, &k, &whole, &first));
            ck_assert_int_gt(first.iterations, after[i]);
            ck_ok(context, mcl_continue(context, &k.state, &options, NULL, NULL, &rest, &second));
            test_same(&whole, &rest, (uint64_t)i);
            ck_assert(first.iterations == second.iterations && first.converged == second.converged);
            ck_assert(first.synopsis == second.synopsis);
            kept_state cut = {.context = context, .after = after[i], .interrupt = &interrupt};
            sp_csr none;
            ck_assert_int_eq(mcl_iterate(context, &start, &options, keep_state, &cut, &none, &second),
                             SP_ERROR_INTERRUPTED);
            ck_assert(cut.interrupted);
            free(k.order);
            free(cut.order);
            test_free(context, &whole, &rest, &k.iterand, &cut.iterand);
            test_free(host, &graph, &start);
            test_end(context);
        }
}

/* A small graph, and one with so many edges that its nodes are renumbered. */
HOST_TEST(limit_does_not_depend_on_threads_or_runs, 1)
{
    for (int large = 0; large < 2; large++) {
        test_random random = test_seed(31);
        sp_csr graph = large ? test_communities(host, &random, 2, 350, 0.8, 0.05)
                             : test_communities(host, &random, 12, 40, 0.4, 0.01);
        sp_csr first = {0};
        mcl_options options = defaults();
        options.select = 30;
        options.recover = 40;
        for (int run = 0; run < 4; run++) {
            sp_context *context = test_context(_i, 1 + run % 2);
            record r = {0};
            sp_csr limit;
            iterate(context, &graph, &options, &r, &limit);
            ck_assert_int_eq(r.seen[0].order != NULL, large);
            if (run) test_same(&first, &limit, 31);
            if (run) sp_csr_free(context, &limit);
            else first = limit;
            sp_context_destroy(context);
        }
        test_free(host, &first, &graph);
    }
}

/* ---- the whole way ------------------------------------------------------------------------------------- */

CONTEXT_TEST(empty_and_single_graphs_work, _i, 1)
{
    const mcl_options options = defaults();
    const double nothing[] = {0};
    for (int64_t n = 0; n <= 1; n++) {
        sp_csr graph = test_from_dense(context, n, n, nothing, SP_F32);
        mcl_clustering clustering = cluster(context, &graph, &options);
        ck_assert_int_eq(clustering.clusters, n);
        ck_assert_str_eq(text(&clustering), n ? "0" : "");
        mcl_clustering_free(context, &clustering);
        sp_csr_free(context, &graph);
    }
}

/* The example of mcl's manual: cat hat 0.2, hat bat 0.16, bat cat 1, bat bit 0.125, bit fit 0.25, fit hit 0.5,
 * hit bit 0.16. */
CONTEXT_TEST(cat_and_hat_part_from_bit_and_hit, _i, 1)
{
    enum { CAT, HAT, BAT, BIT, FIT, HIT, N };
    const double edges[N * N] = {[CAT * N + HAT] = .2,   [HAT * N + CAT] = .2,   [HAT * N + BAT] = .16,
                                 [BAT * N + HAT] = .16,  [BAT * N + CAT] = 1,    [CAT * N + BAT] = 1,
                                 [BAT * N + BIT] = .125, [BIT * N + BAT] = .125, [BIT * N + FIT] = .25,
                                 [FIT * N + BIT] = .25,  [FIT * N + HIT] = .5,   [HIT * N + FIT] = .5,
                                 [HIT * N + BIT] = .16,  [BIT * N + HIT] = .16};
    const mcl_options options = defaults();
    sp_csr graph = test_from_dense(context, N, N, edges, SP_F32);
    mcl_clustering clustering = cluster(context, &graph, &options);
    ck_assert_str_eq(text(&clustering), "0,1,2 3,4,5");
    mcl_clustering_free(context, &clustering);
    sp_csr_free(context, &graph);
}

CONTEXT_TEST(planted_groups_are_found, _i, 0)
{
    enum { GROUPS = 10, SIZE = 30 };
    for (uint64_t seed = 1; seed <= 3; seed++) {
        test_random random = test_seed(seed);
        sp_csr graph = test_communities(context, &random, GROUPS, SIZE, 0.7, 0.003);
        const mcl_options options = defaults();
        mcl_clustering clustering = cluster(context, &graph, &options);
        test_expect(clustering.clusters == GROUPS, "seed %llu: %lld clusters", (unsigned long long)seed,
                    (long long)clustering.clusters);
        for (int64_t c = 0; c < GROUPS; c++)
            for (int64_t i = 0; i < SIZE; i++)
                test_expect(clustering.members[c * SIZE + i] == (int32_t)(c * SIZE + i), "seed %llu: cluster %lld",
                            (unsigned long long)seed, (long long)c);
        mcl_clustering_free(context, &clustering);
        sp_csr_free(context, &graph);
    }
}

/* Pruned hard, on graphs without clear groups: each node in one cluster, and the same clusters on either device. */
TEST(every_node_has_one_cluster_on_any_device)
{
    sp_context *host = test_context(0, 2), *context = test_context(_i, 0);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        test_random random = test_seed(seed);
        sp_csr graph = test_communities(host, &random, 20, 15, 0.3, 0.02);
        mcl_options options = defaults();
        options.inflation = 1.4 + 0.4 * (double)seed;
        options.prune_number = 200;
        options.select = 20;
        options.recover = 30;
        mcl_clustering expected = cluster(host, &graph, &options), clustering = cluster(context, &graph, &options);
        char *seen = calloc((size_t)graph.rows, 1);
        for (int64_t i = 0; i < clustering.offsets[clustering.clusters]; i++) seen[clustering.members[i]]++;
        for (int64_t j = 0; j < graph.rows; j++)
            test_expect(seen[j] == 1, "seed %llu: node %lld is in %d clusters", (unsigned long long)seed,
                        (long long)j, seen[j]);
        test_expect(clustering.clusters == expected.clusters &&
                        memcmp(clustering.offsets, expected.offsets,
                               (size_t)(expected.clusters + 1) * sizeof *expected.offsets) == 0 &&
                        memcmp(clustering.members, expected.members,
                               (size_t)graph.rows * sizeof *expected.members) == 0,
                    "seed %llu: the devices disagree", (unsigned long long)seed);
        free(seen);
        mcl_clustering_free(host, &expected);
        mcl_clustering_free(context, &clustering);
        sp_csr_free(host, &graph);
    }
    test_end(context, host);
}

static const test_entry tests[] = {
    CASE("setup", 120),
    ONCE(defaults_are_scheme_six),
    ONCE(schemes_set_the_published_numbers),
    ONCE(loops_become_the_column_maximum),
    ONCE(kept_loops_are_left_alone_and_none_is_added),
    ONCE(loop_factor_scales_the_diagonal),
    ONCE(pre_inflation_sharpens_columns),
    ONCE(rows_of_the_graph_are_columns_of_the_process),
    ONCE(odd_graphs_are_refused),
    ONCE(prepared_graph_has_loops_and_unscaled_weights),
    ONCE(community_order_brings_groups_together_and_can_be_undone),
    CASE("process", 120),
    ON_DEVICES(iteration_reports_what_it_did),
    ON_DEVICES(mark_is_the_mean_of_the_worst_thousand_columns),
    ON_DEVICES(numbers_that_are_none_end_the_process),
    ON_DEVICES(monitor_and_main_length_end_the_run),
    ON_DEVICES(no_iterations_leave_the_start_matrix),
    ON_DEVICES(initial_inflation_lasts_its_length),
    ON_DEVICES(inflation_rises_after_forty_iterations),
    ON_DEVICES(interrupt_flag_ends_the_process),
    ON_DEVICES(a_process_goes_on_with_the_same_bits),
    ON_DEVICES(limit_does_not_depend_on_threads_or_runs),
    CASE("whole", 120),
    ON_DEVICES(empty_and_single_graphs_work),
    ON_DEVICES(cat_and_hat_part_from_bit_and_hit),
    ON_DEVICES(planted_groups_are_found),
    ON_DEVICES(every_node_has_one_cluster_on_any_device),
    {0},
};

int main(void) { return test_run("mcl", tests, clusters_tests, ranks_tests, update_tests); }
