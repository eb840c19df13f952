/* test_mcl: nodes added to a clustering, against a run of everything and against reachability by squaring. */
#include <stdlib.h>
#include <string.h>

#include "mcl_shared.h"

enum { NODES = 150, GROUP = 12 };

/* A graph of separate groups of nodes, as a dense matrix. In group g nodes of one kind are linked more often. */
static void random_groups(test_random *random, double *numbers)
{
    memset(numbers, 0, NODES * NODES * sizeof *numbers);
    for (int i = 0; i < NODES; i++)
        for (int j = 0; j < i; j++) {
            const double likely = i % 3 == j % 3 ? 0.7 : 0.1;
            if (i / GROUP != j / GROUP || test_unit(random) > likely) continue;
            numbers[i * NODES + j] = numbers[j * NODES + i] = 1 + (double)test_below(random, 20);
        }
}

/* reach[i][j]: j is reached from i, along arcs in either direction. */
static void find_reach(const double *numbers, bool *reach)
{
    for (int i = 0; i < NODES * NODES; i++)
        reach[i] = numbers[i] != 0 || numbers[i % NODES * NODES + i / NODES] != 0 || i / NODES == i % NODES;
    for (int k = 0; k < NODES; k++)
        for (int i = 0; i < NODES; i++)
            for (int j = 0; j < NODES && reach[i * NODES + k]; j++) reach[i * NODES + j] |= reach[k * NODES + j];
}

static mcl_clustering run_from(sp_context *context, const sp_csr *start)
{
    const mcl_options options = defaults();
    sp_csr limit;
    mcl_run run;
    mcl_clustering c;
    ck_ok(context, mcl_iterate(context, start, &options, NULL, NULL, &limit, &run));
    ck_ok(context, mcl_interpret(context, &limit, NULL, &options, &c));
    sp_csr_free(context, &limit);
    return c;
}

static sp_csr start_of(sp_context *context, int64_t nodes, const double *numbers)
{
    const mcl_options options = defaults();
    sp_csr graph = test_from_dense(context, nodes, nodes, numbers, SP_F32), start;
    ck_ok(context, mcl_start_matrix(context, &graph, NULL, &options, false, &start));
    sp_csr_free(context, &graph);
    return start;
}

/* The graph without the nodes that are `absent`, its start matrix and its clusters in the numbers of the whole. */
typedef struct older {
    sp_csr start;
    int32_t place[NODES];
    mcl_clustering clusters;
} older;

static older make_older(sp_context *context, const double *numbers, const bool *absent)
{
    older o;
    int count = 0;
    double *part = test_zeros(NODES * NODES, sizeof *part);
    for (int i = 0; i < NODES; i++)
        if (!absent[i]) o.place[count++] = i;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) part[i * count + j] = numbers[o.place[i] * NODES + o.place[j]];
    o.start = start_of(context, count, part);
    o.clusters = run_from(context, &o.start);
    for (int64_t i = 0; i < o.clusters.offsets[o.clusters.clusters]; i++)
        o.clusters.members[i] = o.place[o.clusters.members[i]];
    o.clusters.nodes = NODES;
    free(part);
    return o;
}

static void free_older(sp_context *context, older *o)
{
    mcl_clustering_free(context, &o->clusters);
    sp_csr_free(context, &o->start);
}

static void check_same_clusters(const mcl_clustering *a, const mcl_clustering *b)
{
    ck_assert_int_eq(a->clusters, b->clusters);
    ck_assert_int_eq(memcmp(a->offsets, b->offsets, (size_t)(a->clusters + 1) * sizeof *a->offsets), 0);
    ck_assert_int_eq(memcmp(a->members, b->members, (size_t)a->offsets[a->clusters] * sizeof *a->members), 0);
}

/* Every step from an older clustering, against a run of everything. */
static mcl_changes check_update(sp_context *context, const sp_csr *start, const mcl_former *former,
                                const bool *expected)
{
    mcl_update update;
    mcl_changes changes;
    mcl_clustering joined;
    sp_csr part;
    ck_ok(context, mcl_find_touched(context, start, former, &update));
    int64_t touched = 0;
    for (int i = 0; i < NODES; i++) {
        ck_assert_msg(update.touched[i] == expected[i], "node %d: %d", i, update.touched[i]);
        touched += expected[i];
    }
    ck_assert_int_eq(update.nodes_touched, touched);
    ck_ok(context, mcl_touched_part(context, start, update.touched, &part));
    ck_ok(context, sp_csr_check(context, &part));
    mcl_clustering fresh = run_from(context, &part), full = run_from(context, start);
    ck_ok(context, mcl_join_clusterings(context, former, update.touched, &fresh, MCL_SORT_SIZE, &joined));
    check_same_clusters(&joined, &full);
    for (int i = 0; i < NODES; i++)
        ck_assert_int_eq(joined.system_of[i] == MCL_SYSTEM_UNKNOWN, !expected[i]);
    ck_ok(context, mcl_find_changes(context, former, update.touched, &joined, &changes));
    ck_assert_int_eq(changes.kept + changes.same + changes.grown + changes.shrunk + changes.merged + changes.pieces +
                     changes.made, joined.clusters);
    mcl_clustering_free(context, &fresh);
    mcl_clustering_free(context, &full);
    mcl_clustering_free(context, &joined);
    mcl_update_free(context, &update);
    sp_csr_free(context, &part);
    return changes;
}

CONTEXT_TEST(what_new_nodes_touch_runs_again_and_the_rest_keeps_its_clusters, 0, 1)
{
    double *numbers = test_block(NODES * NODES * sizeof *numbers);
    bool *reach = test_block(NODES * NODES), absent[NODES], expected[NODES];
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(20); seed++) {
        test_random random = test_seed(seed);
        random_groups(&random, numbers);
        for (int i = 0; i < NODES; i++) absent[i] = test_below(&random, 40) == 0;
        find_reach(numbers, reach);
        for (int i = 0; i < NODES; i++) {
            expected[i] = false;
            for (int j = 0; j < NODES; j++) expected[i] |= absent[j] && reach[i * NODES + j];
        }
        older o = make_older(context, numbers, absent);
        sp_csr start = start_of(context, NODES, numbers);
        mcl_former former = {.clustering = o.clusters};
        check_update(context, &start, &former, expected);
        former.start = &o.start;
        former.place = o.place;
        check_update(context, &start, &former, expected);
        free_older(context, &o);
        sp_csr_free(context, &start);
    }
    free_all(numbers, reach);
}

/* One weight changes in one group; another group loses its only link between two halves. */
CONTEXT_TEST(changed_edges_are_found_by_the_older_graph_alone, 0, 1)
{
    double *numbers = test_zeros(NODES * NODES, sizeof *numbers);
    bool absent[NODES] = {false}, expected[NODES] = {false};
    for (int i = 0; i < NODES; i++)
        for (int j = 0; j < NODES; j++)
            if (i != j && i / GROUP == j / GROUP) numbers[i * NODES + j] = i % GROUP / 6 == j % GROUP / 6 ? 9 : 0;
    numbers[5 * NODES + 6] = numbers[6 * NODES + 5] = 1;
    older o = make_older(context, numbers, absent);
    numbers[5 * NODES + 6] = numbers[6 * NODES + 5] = 0;
    numbers[30 * NODES + 31] = numbers[31 * NODES + 30] = 4;
    sp_csr start = start_of(context, NODES, numbers);
    mcl_former former = {.clustering = o.clusters};
    check_update(context, &start, &former, expected);
    former.start = &o.start;
    former.place = o.place;
    for (int i = 0; i < 12; i++) expected[i] = true;
    for (int i = 30; i < 36; i++) expected[i] = true;
    const mcl_changes changes = check_update(context, &start, &former, expected);
    ck_assert_int_eq(changes.same, 3);
    free_older(context, &o);
    sp_csr_free(context, &start);
    free(numbers);
}

/* Six cliques of four; older clusters differ from the cliques in every way that is counted. */
CONTEXT_TEST(changes_are_counted_by_kind, 0, 1)
{
    double numbers[24 * 24] = {0};
    for (int i = 0; i < 24; i++)
        for (int j = 0; j < 24; j++) numbers[i * 24 + j] = i != j && i / 4 == j / 4;
    sp_csr start = start_of(context, 24, numbers);
    /* as before; with a new node; lost one; two that merge; one across two cliques; all gone */
    int32_t members[] = {0, 1, 2, 3, /**/ 4, 5, 6, /**/ 8, 9, 10, 11, /**/ 12, 13, /**/ 14, 15, /**/ 16, 17, 18, 19, 20,
                         21, 22, 23};
    int64_t offsets[] = {0, 4, 7, 11, 13, 15, 23, 23};
    const uint8_t incomplete[] = {0, 0, 1, 0, 0, 0, 1};
    const mcl_former former = {.clustering = {.nodes = 24, .clusters = 7, .offsets = offsets, .members = members},
                               .incomplete = incomplete};
    mcl_update update;
    mcl_changes c;
    mcl_clustering joined, fresh = run_from(context, &start);
    ck_ok(context, mcl_find_touched(context, &start, &former, &update));
    ck_assert_int_eq(update.new_nodes, 1);
    ck_assert_int_eq(update.components, 6);
    ck_assert_int_eq(update.components_touched, 4);
    memset(update.touched + 12, 1, 4);
    ck_ok(context, mcl_join_clusterings(context, &former, update.touched, &fresh, MCL_SORT_SIZE, &joined));
    ck_ok(context, mcl_find_changes(context, &former, update.touched, &joined, &c));
    ck_assert(c.kept == 1 && c.same == 0 && c.grown == 1 && c.shrunk == 1 && c.merged == 1 && c.pieces == 2);
    ck_assert(c.made == 0 && c.split == 1 && c.gone == 1);
    mcl_clustering_free(context, &joined);
    mcl_clustering_free(context, &fresh);
    mcl_update_free(context, &update);
    sp_csr_free(context, &start);
}

CONTEXT_TEST(an_older_clustering_of_another_size_is_refused, 0, 1)
{
    sp_csr start = start_of(context, 4, path);
    mcl_former former = {.clustering = {.nodes = 3}};
    mcl_update update;
    test_mark(&update, sizeof update);
    ck_assert_int_eq(mcl_find_touched(context, &start, &former, &update), SP_ERROR_ARGUMENT);
    ck_assert(test_is_marked(&update, sizeof update));
    sp_csr_free(context, &start);
}

const test_entry update_tests[] = {
    CASE("update", 120),
    ONCE(what_new_nodes_touch_runs_again_and_the_rest_keeps_its_clusters),
    ONCE(changed_edges_are_found_by_the_older_graph_alone),
    ONCE(changes_are_counted_by_kind),
    ONCE(an_older_clustering_of_another_size_is_refused),
    {0},
};
