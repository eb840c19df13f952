/* test_mcl: interpretation of the limit, and measures of clusterings. */
#include <stdio.h>

#include "mcl_shared.h"

/* The clusters of nodes as text. */
static const char *labels_text(sp_context *context, const sp_csr *graph, const mcl_options *options)
{
    static char line[256];
    int32_t labels[16];
    int64_t clusters;
    ck_assert_int_le(graph->rows, 16);
    ck_ok(context, mcl_label(context, graph, options, labels, &clusters));
    size_t at = (size_t)snprintf(line, sizeof line, "%d:", (int)clusters);
    for (int64_t i = 0; i < graph->rows; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, " %d", (int)labels[i]);
    return line;
}

/* ---- interpretation ------------------------------------------------------------------------------------ */

/* Interprets a limit matrix given densely, row j = column j of the process. */
static mcl_clustering interpret(sp_context *context, int64_t n, const double *numbers, const mcl_options *options)
{
    sp_csr limit = test_from_dense(context, n, n, numbers, SP_F32);
    mcl_clustering clustering;
    ck_ok(context, mcl_interpret(context, &limit, NULL, options, &clustering));
    ck_assert_int_eq(clustering.nodes, n);
    sp_csr_free(context, &limit);
    return clustering;
}

static void check_clusters(int64_t n, const double *numbers, const mcl_options *options, const char *expected)
{
    sp_context *context = test_context(0, 1);
    mcl_clustering clustering = interpret(context, n, numbers, options);
    ck_assert_str_eq(text(&clustering), expected);
    mcl_clustering_free(context, &clustering);
    ck_assert_ptr_null(clustering.members);
    sp_context_destroy(context);
}

/* Attractors 1 and 4; 0 and 2 go to 1, 3 to 4, 5 to 3 (and so to 4). */
static const double two_stars[] = {0, 1, 0, 0, 0, 0, /**/ 0, 1, 0, 0, 0, 0, /**/ 0, 1, 0, 0, 0, 0,
                                   0, 0, 0, 0, 1, 0, /**/ 0, 0, 0, 0, 1, 0, /**/ 0, 0, 0, 1, 0, 0};

CONTEXT_TEST(labels_are_the_clusters_whatever_the_values_type, 0, 1)
{
    mcl_options options = defaults();
    const double triangles[] = {0, 2, 2, 0, 0, 0, 2, 0, 2, 1, 0, 0, 2, 2, 0, 0, 0, 0,
                                0, 1, 0, 0, 2, 2, 0, 0, 0, 2, 0, 2, 0, 0, 0, 2, 2, 0};
    for (int type = 0; type < 3; type++) {
        sp_csr graph = test_from_dense(context, 6, 6, triangles, type == 1 ? SP_F64 : SP_F32);
        if (type == 2) test_drop_values(context, &graph);
        ck_assert_str_eq(labels_text(context, &graph, &options), "2: 0 0 0 1 1 1");
        options.force_connected = true;
        ck_assert_str_eq(labels_text(context, &graph, &options), "2: 0 0 0 1 1 1");
        options.overlap = MCL_OVERLAP_KEEP;
        ck_assert_str_eq(labels_text(context, &graph, &options), "2: 0 0 0 1 1 1");
        sp_csr_free(context, &graph);
    }
    sp_csr graph = test_from_dense(context, 4, 4, path, SP_F32);
    ck_assert_str_eq(labels_text(context, &graph, &options), "2: 0 0 0 1");
    ((float *)graph.values)[0] = -1;
    int32_t labels[4];
    int64_t clusters;
    ck_assert_int_eq(mcl_label(context, &graph, &options, labels, &clusters), SP_ERROR_ARGUMENT);
    sp_csr_free(context, &graph);
}

TEST(nodes_join_the_attractor_they_reach)
{
    mcl_options options = defaults();
    check_clusters(6, two_stars, &options, "0,1,2 3,4,5");
}

CONTEXT_TEST(clusters_come_in_the_order_asked_for, 0, 1)
{
    /* Attractors 0 (alone), 1 (with 2), 3 (with 4, 5), 6 (with 7). */
    const double limit[64] = {[0 * 8 + 0] = 1, [1 * 8 + 1] = 1, [2 * 8 + 1] = 1, [3 * 8 + 3] = 1,
                              [4 * 8 + 3] = 1, [5 * 8 + 3] = 1, [6 * 8 + 6] = 1, [7 * 8 + 6] = 1};
    mcl_options options = defaults();
    check_clusters(8, limit, &options, "3,4,5 1,2 6,7 0");
    options.sort = MCL_SORT_LEX;
    check_clusters(8, limit, &options, "0 1,2 3,4,5 6,7");
    options.sort = MCL_SORT_REVSIZE;
    mcl_clustering clustering = interpret(context, 8, limit, &options);
    ck_assert_int_eq(clustering.clusters, 4);
    for (int64_t c = 1; c < 4; c++)
        ck_assert_int_ge(clustering.offsets[c + 1] - clustering.offsets[c],
                         clustering.offsets[c] - clustering.offsets[c - 1]);
    mcl_clustering_free(context, &clustering);
}

/* Node 2 goes half to the attractor 0 and half to the system of 1 and 3, nodes 4 and 5 likewise; 6 goes to 0. */
static const double shared_nodes[49] = {[0 * 7 + 0] = 1,  [1 * 7 + 1] = .5, [1 * 7 + 3] = .5, [3 * 7 + 1] = .5,
                                        [3 * 7 + 3] = .5, [2 * 7 + 0] = .5, [2 * 7 + 3] = .5, [4 * 7 + 0] = .5,
                                        [4 * 7 + 1] = .5, [5 * 7 + 0] = .5, [5 * 7 + 3] = .5, [6 * 7 + 0] = 1};

CONTEXT_TEST(overlap_is_cut_kept_or_split, 0, 1)
{
    mcl_options options = defaults();
    check_clusters(7, shared_nodes, &options, "1,2,3,4,5 0,6"); /* the system with more attractors wins */
    options.overlap = MCL_OVERLAP_KEEP;
    check_clusters(7, shared_nodes, &options, "0,2,4,5,6 1,2,3,4,5");
    options.overlap = MCL_OVERLAP_SPLIT;
    check_clusters(7, shared_nodes, &options, "2,4,5 0,6 1,3");
    mcl_clustering clustering = interpret(context, 7, shared_nodes, &options);
    ck_assert_int_eq(clustering.attractors, 2);
    ck_assert_int_eq(clustering.overlap, 3);
    ck_assert_int_eq(clustering.overlap_nodes, 3);
    ck_assert_int_eq(clustering.garbage, 0);
    mcl_clustering_free(context, &clustering);
}

/* Attractors 0, 1, 2; node 3 shares 0 and 1, nodes 4 and 6 share all three, node 5 shares 1 and 2. */
TEST(split_groups_nodes_that_share_two_clusters)
{
    const double third = 1. / 3;
    const double limit[49] = {[0 * 7 + 0] = 1,     [1 * 7 + 1] = 1,     [2 * 7 + 2] = 1,     [3 * 7 + 0] = .5,
                              [3 * 7 + 1] = .5,    [4 * 7 + 0] = third, [4 * 7 + 1] = third, [4 * 7 + 2] = third,
                              [5 * 7 + 1] = .5,    [5 * 7 + 2] = .5,    [6 * 7 + 0] = third, [6 * 7 + 1] = third,
                              [6 * 7 + 2] = third};
    mcl_options options = defaults();
    options.overlap = MCL_OVERLAP_SPLIT;
    const double apart[25] = {[0 * 5 + 0] = 1,  [1 * 5 + 1] = 1,  [2 * 5 + 2] = 1, [3 * 5 + 0] = .5,
                              [3 * 5 + 1] = .5, [4 * 5 + 1] = .5, [4 * 5 + 2] = .5};
    check_clusters(7, limit, &options, "3,4,5,6 0 1 2"); /* 3 and 5 through 4 */
    check_clusters(5, apart, &options, "0 1 2 3 4");
    options.overlap = MCL_OVERLAP_CUT;
    check_clusters(7, limit, &options, "0,3,4,6 1,5 2");
}

TEST(light_entries_attract_nobody)
{
    /* Node 0 has a loop and an arc, to 1 which goes on to 2, or to 2 itself: the heavier of the two counts. */
    const double arc[] = {.45, .55, 0, 0, 0, 1, 0, 0, 1}, loop[] = {.55, 0, .45, 1, 0, 0, 0, 0, 1};
    mcl_options options = defaults();
    check_clusters(3, arc, &options, "0,1,2");
    check_clusters(3, loop, &options, "0,1 2");
}

CONTEXT_TEST(unreached_nodes_make_one_cluster, 0, 1)
{
    const double limit[25] = {[0 * 5 + 0] = 1, [3 * 5 + 0] = 1};
    mcl_options options = defaults();
    check_clusters(5, limit, &options, "1,2,4 0,3");
    mcl_clustering clustering = interpret(context, 5, limit, &options);
    ck_assert_int_eq(clustering.garbage, 3);
    mcl_clustering_free(context, &clustering);
}

CONTEXT_TEST(clusters_split_into_components_when_forced, 0, 1)
{
    /* One attractor for all, but the graph joins only 0-2 and 1-3; 4 is alone. */
    const double limit[25] = {[0] = 1, [5] = 1, [10] = 1, [15] = 1, [20] = 1};
    const double edges[25] = {[0 * 5 + 2] = 1, [2 * 5 + 0] = 1, [1 * 5 + 3] = 1, [3 * 5 + 1] = 1};
    sp_csr matrix = test_from_dense(context, 5, 5, limit, SP_F32);
    sp_csr graph = test_from_dense(context, 5, 5, edges, SP_F32);
    mcl_options options = defaults();
    mcl_clustering clustering;
    ck_ok(context, mcl_interpret(context, &matrix, &graph, &options, &clustering));
    ck_assert_str_eq(text(&clustering), "0,1,2,3,4");
    mcl_clustering_free(context, &clustering);
    options.force_connected = true;
    ck_ok(context, mcl_interpret(context, &matrix, &graph, &options, &clustering));
    ck_assert_str_eq(text(&clustering), "0,2 1,3 4");
    mcl_clustering_free(context, &clustering);
    ck_assert_int_eq(mcl_interpret(context, &matrix, NULL, &options, &clustering), SP_ERROR_ARGUMENT);
    test_free(context, &matrix, &graph);
}

/* Nodes 0 to 2 attract, and 3 goes to 0 and to 2: clusters 0,3 and 2,3 overlap. 3 has its home in the first, so that
 * the arc from 2 to it does not count, as with mcl; the one from 0 does. */
CONTEXT_TEST(nodes_of_two_clusters_are_reached_in_the_first, 0, 1)
{
    const double limit[16] = {[0] = 1, [5] = 1, [10] = 1, [12] = 0.5, [14] = 0.5};
    const double edges[16] = {[0 * 4 + 3] = 1, [2 * 4 + 3] = 1};
    sp_csr matrix = test_from_dense(context, 4, 4, limit, SP_F32);
    sp_csr graph = test_from_dense(context, 4, 4, edges, SP_F32);
    mcl_options options = defaults();
    mcl_clustering clustering;
    options.overlap = MCL_OVERLAP_KEEP;
    ck_ok(context, mcl_interpret(context, &matrix, NULL, &options, &clustering));
    ck_assert_str_eq(text(&clustering), "0,3 2,3 1");
    mcl_clustering_free(context, &clustering);
    options.force_connected = true;
    ck_ok(context, mcl_interpret(context, &matrix, &graph, &options, &clustering));
    ck_assert_str_eq(text(&clustering), "0,3 1 2 3");
    mcl_clustering_free(context, &clustering);
    test_free(context, &matrix, &graph);
}

/* ---- measures ------------------------------------------------------------------------------------------ */

/* A path of five nodes with loops, cut into 0,1,2 and 3,4. Worked out by hand: 2 and 3 keep two thirds of their mass,
 * the others all; efficiencies 2/3, 1, 1/2, 2/3 and 1; arcs weigh 1/2 at the ends and 2/3 elsewhere, 3 in all, of
 * which the clusters have 11/6 and 7/6, within them 3/2 and 5/6. */
CONTEXT_TEST(measures_are_those_worked_out_by_hand, 0, 1)
{
    double walk[25] = {0};
    for (int i = 0; i < 5; i++)
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < 5; j++) walk[5 * i + j] = i == 0 || i == 4 ? 0.5 : 1 / 3.0;
    sp_csr start = test_from_dense(context, 5, 5, walk, SP_F32);
    int64_t offsets[] = {0, 3, 5};
    int32_t members[] = {0, 1, 2, 3, 4};
    mcl_clustering clustering = {.nodes = 5, .clusters = 2, .offsets = offsets, .members = members};
    mcl_measures m;
    ck_ok(context, mcl_measure(context, &start, &clustering, &m));
    ck_assert_double_eq_tol(m.mass_fraction, (1 + 1 + 2 / 3.0 + 2 / 3.0 + 1) / 5, 1e-6);
    ck_assert_double_eq_tol(m.efficiency, (2 / 3.0 + 1 + 0.5 + 2 / 3.0 + 1) / 5, 1e-6);
    ck_assert_double_eq_tol(m.modularity, (1.5 + 5 / 6.0) / 3 - (121 + 49) / 36.0 / 9, 1e-6);
    ck_assert_double_eq_tol(m.area_fraction, 8 / 20.0, 1e-12);
    ck_assert_double_eq_tol(m.center, 13 / 5.0, 1e-12);
    ck_assert_double_eq_tol(m.average, 2.5, 1e-12);
    ck_assert_int_eq(m.clusters, 2);
    ck_assert_int_eq(m.largest, 3);
    ck_assert_int_eq(m.smallest, 2);
    ck_assert_int_eq(m.dust, 2);
    ck_assert_int_eq(m.half, 0);
    ck_assert_int_eq(m.half_size, 3);
    ck_assert_int_eq(m.singletons, 0);
    ck_assert_int_eq(m.quartets, 2);
    clustering.nodes = 4;
    ck_assert_int_eq(mcl_measure(context, &start, &clustering, &m), SP_ERROR_ARGUMENT);
    sp_csr_free(context, &start);
}

const test_entry clusters_tests[] = {
    CASE("reading", 120),
    ONCE(labels_are_the_clusters_whatever_the_values_type),
    ONCE(nodes_join_the_attractor_they_reach),
    ONCE(clusters_come_in_the_order_asked_for),
    ONCE(overlap_is_cut_kept_or_split),
    ONCE(split_groups_nodes_that_share_two_clusters),
    ONCE(light_entries_attract_nobody),
    ONCE(unreached_nodes_make_one_cluster),
    ONCE(clusters_split_into_components_when_forced),
    ONCE(nodes_of_two_clusters_are_reached_in_the_first),
    ONCE(measures_are_those_worked_out_by_hand),
    {0},
};
