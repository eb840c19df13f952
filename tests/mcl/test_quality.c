/* Distances between clusterings and profiles of clusters, against counting by hand and by pairs of nodes. */
#include <math.h>
#include <stdlib.h>

#include "mcl.h"
#include "support.h"

/* A partition from the cluster of each node; numbers from 0 without gaps. */
static mcl_clustering partition(sp_context *context, const int32_t *labels, int64_t nodes, int64_t clusters)
{
    mcl_clustering c = {.nodes = nodes, .clusters = clusters};
    int64_t at = 0;
    ck_ok(context, sp_alloc(context, clusters + 1, sizeof *c.offsets, (void **)&c.offsets));
    ck_ok(context, sp_alloc(context, nodes, sizeof *c.members, (void **)&c.members));
    for (int32_t k = 0; k < clusters; k++) {
        c.offsets[k] = at;
        for (int32_t i = 0; i < nodes; i++)
            if (labels[i] == k) c.members[at++] = i;
    }
    c.offsets[clusters] = at;
    return c;
}

/* ---- distances ----------------------------------------------------------------------------------------- */

TEST(a_finer_clustering_is_its_own_meet)
{
    sp_context *context = test_context(0, 1);
    const int32_t coarse[] = {0, 0, 0, 0, 1, 1}, fine[] = {0, 0, 1, 1, 2, 2};
    mcl_clustering a = partition(context, coarse, 6, 2), b = partition(context, fine, 6, 3);
    mcl_distance d;
    ck_ok(context, mcl_compare(context, &a, &b, &d));
    ck_assert_int_eq(d.moved_first, 2);
    ck_assert_int_eq(d.moved_second, 0);
    ck_assert_double_eq_tol(d.information_first, 4. / 6 * log(2), 1e-12);
    ck_assert_double_eq_tol(d.information_second, 0, 1e-12);
    ck_ok(context, mcl_compare(context, &a, &a, &d));
    ck_assert(d.moved_first == 0 && d.moved_second == 0 && d.information_first == 0 && d.information_second == 0);
    mcl_clustering_free(context, &a);
    mcl_clustering_free(context, &b);
    sp_context_destroy(context);
}

/* Σ over clusters of `from` of the size less the greatest part in one of `to`, by counting all pairs of clusters. */
static int64_t moved(const int32_t *from, const int32_t *to, int64_t nodes, int clusters, double *information)
{
    int64_t sum = 0;
    *information = 0;
    for (int a = 0; a < clusters; a++) {
        int64_t size = 0, most = 0;
        for (int64_t i = 0; i < nodes; i++) size += from[i] == a;
        for (int b = 0; b < clusters; b++) {
            int64_t both = 0;
            for (int64_t i = 0; i < nodes; i++) both += from[i] == a && to[i] == b;
            if (both > most) most = both;
            if (both > 0) *information += (double)both / (double)nodes * log((double)size / (double)both);
        }
        sum += size - most;
    }
    return sum;
}

TEST(distances_are_those_of_all_pairs_of_clusters)
{
    enum { NODES = 60, CLUSTERS = 7 };
    sp_context *context = test_context(0, 1);
    test_random random = test_seed(11);
    for (int64_t turn = test_cases(50); turn > 0; turn--) {
        int32_t x[NODES], y[NODES];
        for (int i = 0; i < NODES; i++) {
            x[i] = i < CLUSTERS ? i : (int32_t)test_below(&random, CLUSTERS);
            y[i] = i < CLUSTERS ? CLUSTERS - 1 - i : (int32_t)test_below(&random, 1 + turn % CLUSTERS);
        }
        mcl_clustering a = partition(context, x, NODES, CLUSTERS), b = partition(context, y, NODES, CLUSTERS);
        mcl_distance d;
        double first, second;
        ck_ok(context, mcl_compare(context, &a, &b, &d));
        ck_assert_int_eq(d.moved_first, moved(x, y, NODES, CLUSTERS, &first));
        ck_assert_int_eq(d.moved_second, moved(y, x, NODES, CLUSTERS, &second));
        ck_assert_double_eq_tol(d.information_first, first, 1e-12);
        ck_assert_double_eq_tol(d.information_second, second, 1e-12);
        mcl_clustering_free(context, &a);
        mcl_clustering_free(context, &b);
    }
    sp_context_destroy(context);
}

TEST(a_node_in_several_clusters_counts_in_the_first)
{
    sp_context *context = test_context(0, 1);
    int64_t offsets[] = {0, 3, 5};
    int32_t members[] = {0, 1, 2, 2, 3};
    const int32_t labels[] = {0, 0, 0, 1};
    const mcl_clustering overlapping = {.nodes = 4, .clusters = 2, .offsets = offsets, .members = members};
    mcl_clustering plain = partition(context, labels, 4, 2);
    mcl_distance d;
    ck_ok(context, mcl_compare(context, &overlapping, &plain, &d));
    ck_assert(d.moved_first == 0 && d.moved_second == 0);
    mcl_clustering_free(context, &plain);
    sp_context_destroy(context);
}

TEST(clusterings_of_other_nodes_are_refused)
{
    sp_context *context = test_context(0, 1);
    const int32_t labels[] = {0, 0, 0, 0, 0};
    mcl_clustering a = partition(context, labels, 4, 1), b = partition(context, labels, 5, 1), none = {0};
    mcl_distance d;
    ck_assert_int_eq(mcl_compare(context, &a, &b, &d), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(mcl_compare(context, NULL, &b, &d), SP_ERROR_ARGUMENT);
    ck_ok(context, mcl_compare(context, &none, &none, &d));
    ck_assert(d.moved_first == 0 && d.information_second == 0);
    mcl_clustering_free(context, &a);
    mcl_clustering_free(context, &b);
    sp_context_destroy(context);
}

/* ---- profiles ------------------------------------------------------------------------------------------ */

/* Two triangles of weight 1 joined by an edge of 2, and a node alone; a loop counts for nothing. */
static const double triangles[] = {9, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 2, 0, 0, 0, 0, 0, 2, 0,
                                   1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};

TEST(profiles_are_those_worked_out_by_hand)
{
    const sp_value_type types[] = {SP_F32, SP_F64};
    const int32_t labels[] = {0, 0, 0, 1, 1, 1, 2};
    for (int t = 0; t < 2; t++) {
        sp_context *context = test_context(0, 1);
        sp_csr graph = test_from_dense(context, 7, 7, triangles, types[t]);
        mcl_clustering c = partition(context, labels, 7, 3);
        mcl_profile profiles[3];
        double coverage, modularity;
        ck_ok(context, mcl_profile_clusters(context, &graph, &c, profiles, &coverage, &modularity));
        for (int k = 0; k < 2; k++) {
            ck_assert(profiles[k].size == 3 && profiles[k].arcs_inside == 6);
            ck_assert(profiles[k].weight_inside == 6 && profiles[k].weight == 8);
        }
        ck_assert(profiles[2].size == 1 && profiles[2].arcs_inside == 0 && profiles[2].weight == 0);
        ck_assert_double_eq_tol(coverage, 12. / 16, 1e-12);
        ck_assert_double_eq_tol(modularity, 12. / 16 - 2 * .25, 1e-12);
        mcl_clustering_free(context, &c);
        sp_csr_free(context, &graph);
        sp_context_destroy(context);
    }
}

TEST(graphs_without_arcs_have_no_coverage)
{
    sp_context *context = test_context(0, 1);
    const double none[4] = {0};
    const int32_t labels[] = {0, 1};
    sp_csr graph = test_from_dense(context, 2, 2, none, SP_F32);
    mcl_clustering c = partition(context, labels, 2, 2), other = partition(context, labels, 1, 1);
    mcl_profile profiles[2];
    double coverage = 1, modularity = 1;
    ck_ok(context, mcl_profile_clusters(context, &graph, &c, profiles, &coverage, &modularity));
    ck_assert(coverage == 0 && modularity == 0);
    ck_assert_int_eq(mcl_profile_clusters(context, &graph, &other, profiles, NULL, NULL), SP_ERROR_ARGUMENT);
    mcl_clustering_free(context, &c);
    mcl_clustering_free(context, &other);
    sp_csr_free(context, &graph);
    sp_context_destroy(context);
}

static const test_entry tests[] = {
    CASE("distances", 60),
    ONCE(a_finer_clustering_is_its_own_meet),
    ONCE(distances_are_those_of_all_pairs_of_clusters),
    ONCE(a_node_in_several_clusters_counts_in_the_first),
    ONCE(clusterings_of_other_nodes_are_refused),
    CASE("profiles", 60),
    ONCE(profiles_are_those_worked_out_by_hand),
    ONCE(graphs_without_arcs_have_no_coverage),
    {0},
};

int main(void) { return test_run("quality", tests); }
