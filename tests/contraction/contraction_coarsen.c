/* test_contraction: labels that make a graph smaller. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"
#include "rating.h"

static const char *const method_names[] = {"matching", "two-hop", "heavy edges", "propagation"};
enum { METHODS = COUNT(method_names) };

/* Whether i and j are neighbours, or have one in common. */
static bool are_near(const sp_csr *g, int64_t i, int64_t j, int hops)
{
    for (int64_t k = g->row_offsets[i]; k < g->row_offsets[i + 1]; k++)
        if (g->col_indices[k] == j || (hops > 1 && are_near(g, g->col_indices[k], j, hops - 1))) return true;
    return false;
}

/* ---- matching ------------------------------------------------------------------------------------------ */

typedef struct edge {
    double weight;
    uint64_t bits; /* between equals */
    int32_t from, to;
} edge;

static int heaviest(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->weight == y->weight) return (x->bits < y->bits) - (x->bits > y->bits);
    return x->weight < y->weight ? 1 : -1;
}

/* All edges by falling weight, each taken if both ends are free. */
static void match_greedily(const sp_csr *g, uint64_t seed, int32_t *mate)
{
    edge *edges = calloc((size_t)g->nnz + 1, sizeof *edges);
    int64_t count = 0;
    for (int64_t i = 0; i < g->rows; i++) {
        mate[i] = -1;
        for (int64_t k = g->row_offsets[i]; k < g->row_offsets[i + 1]; k++)
            if (g->col_indices[k] > i && test_value(g, k) > 0)
                edges[count++] = (edge){test_value(g, k), edge_bits(seed, (int32_t)i, g->col_indices[k]), (int32_t)i,
                                        g->col_indices[k]};
    }
    qsort(edges, (size_t)count, sizeof *edges, heaviest);
    for (int64_t e = 0; e < count; e++) {
        if (mate[edges[e].from] >= 0 || mate[edges[e].to] >= 0) continue;
        mate[edges[e].from] = edges[e].to;
        mate[edges[e].to] = edges[e].from;
    }
    free(edges);
}

HOST_TEST(matching_is_the_greedy_one_by_falling_weight, 2)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        test_random random = test_seed(seed);
        sp_csr g = test_communities(host, &random, 1 + test_below(&random, 8), 1 + test_below(&random, 9), 0.6, 0.1);
        int32_t labels[100], mate[100];
        int64_t groups;
        ck_ok(host, contraction_coarsen(host, &g, &(contraction_coarsening){.seed = seed}, labels, &groups));
        match_greedily(&g, seed, mate);
        for (int64_t i = 0; i < g.rows; i++)
            for (int64_t j = 0; j < i; j++)
                test_expect((labels[i] == labels[j]) == (mate[i] == j), "seed %d: nodes %d and %d", (int)seed, (int)i,
                            (int)j);
        sp_csr_free(host, &g);
    }
}

static void expect_mates(const sp_csr *g, const int32_t *labels, const int32_t *mate, const char *what, uint64_t seed)
{
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t k = g->row_offsets[i]; k < g->row_offsets[i + 1]; k++) {
            const int32_t j = g->col_indices[k];
            if (j == i) continue;
            test_expect((labels[i] == labels[j]) == (mate[i] == j), "%s, seed %d: nodes %d and %d", what, (int)seed,
                        (int)i, (int)j);
        }
}

/* Rows shorter and longer than a register, without weights, with few and with some below 0; with a bound that binds
 * nobody, which another function keeps. */
HOST_TEST(equal_edges_are_matched_in_the_order_of_their_bits, 2)
{
    static const char *const kinds[] = {"pattern", "f32", "f64"};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        test_random random = test_seed(seed);
        sp_csr g = test_communities(host, &random, 3, 2 + test_below(&random, 30), 0.1 + 0.03 * (double)seed, 0.05);
        double weights[10000];
        float single[10000];
        int32_t labels[100], bounded[100], mate[100];
        int64_t groups;
        ck_assert(g.rows <= 100);
        for (int64_t i = 0; i < g.rows; i++)
            for (int64_t k = g.row_offsets[i]; k < g.row_offsets[i + 1]; k++) {
                weights[k] = (double)((i + g.col_indices[k]) % 4) - (seed % 2 ? 1 : 0);
                single[k] = (float)weights[k];
            }
        for (int kind = 0; kind < 3; kind++) {
            sp_csr of = g;
            of.values = kind == 0 ? NULL : kind == 1 ? (void *)single : weights;
            of.value_type = kind == 1 ? SP_F32 : SP_F64;
            ck_ok(host, contraction_coarsen(host, &of, &(contraction_coarsening){.seed = seed}, labels, &groups));
            match_greedily(&of, seed, mate);
            expect_mates(&of, labels, mate, kinds[kind], seed);
            ck_ok(host, contraction_coarsen(host, &of, &(contraction_coarsening){.seed = seed, .max_weight = 100},
                                            bounded, &groups));
            ck_assert_mem_eq(labels, bounded, (size_t)g.rows * sizeof *labels);
        }
        sp_csr_free(host, &g);
    }
}

/* A path whose weights rise: proposals would take a round an edge. */
HOST_TEST(a_path_of_rising_weights_is_matched_from_its_heavy_end, 2)
{
    enum { N = 1001 };
    sp_csr g;
    int32_t labels[N];
    int64_t groups, e = 0;
    ck_ok(host, sp_csr_create(host, N, N, 2 * (N - 1), SP_F64, SP_HOST, &g));
    g.row_offsets[0] = 0;
    for (int32_t i = 0; i < N; i++) {
        for (int32_t j = i - 1; j <= i + 1; j += 2) {
            if (j < 0 || j >= N) continue;
            g.col_indices[e] = j;
            ((double *)g.values)[e++] = (i < j ? i : j) + 1;
        }
        g.row_offsets[i + 1] = e;
    }
    ck_ok(host, contraction_coarsen(host, &g, &(contraction_coarsening){.seed = 1}, labels, &groups));
    ck_assert_int_eq(groups, N / 2 + 1);
    ck_assert(labels[N - 1] == labels[N - 2]);
    sp_csr_free(host, &g);
}

/* A path whose weights rise, and a directed ring: no two nodes agree, and coins join them in a few rounds. */
HOST_TEST(chains_and_directed_rings_are_joined_along_heavy_edges, 2)
{
    enum { N = 1000 };
    int32_t labels[N];
    for (int directed = 0; directed < 2; directed++) {
        const contraction_coarsening how = {.method = CONTRACTION_HEAVY_EDGES, .seed = 1, .max_weight = 4};
        entry_list list = {0};
        int64_t groups;
        for (int32_t i = 0; i + 1 < N + directed; i++) {
            entry_add(&list, i, (i + 1) % N, i + 1);
            if (!directed) entry_add(&list, i + 1, i, i + 1);
        }
        sp_csr g = entry_matrix(host, &list, N, N, SP_F64, false);
        ck_ok(host, contraction_coarsen(host, &g, &how, labels, &groups));
        test_expect(groups >= N / 4 && groups < N * 6 / 10, "directed %d: %d groups", directed, (int)groups);
        sp_csr_free(host, &g);
    }
}

/* A path whose middle edge is the heaviest, but for loops, which match nobody. Of equal edges the seed takes one. */
HOST_TEST(the_heaviest_edge_is_taken_and_any_of_equals, 1)
{
    const double heavy[] = {9, 1, 0, 0,  1, 0, 5, 0,  0, 5, 0, 1,  0, 0, 1, 9};
    const double equal[] = {0, 0, 2, 0,  0, 0, 2, 0,  2, 2, 0, 2,  0, 0, 2, 0};
    const double negative[] = {0, -1,  -1, 0};
    sp_csr path = test_from_dense(host, 4, 4, heavy, SP_F64), star = test_from_dense(host, 4, 4, equal, SP_F32),
           below = test_from_dense(host, 2, 2, negative, SP_F64);
    int chosen[4] = {0};
    int32_t labels[4];
    int64_t groups;
    for (uint64_t seed = 0; seed < 64; seed++) {
        const contraction_coarsening how = {.seed = seed};
        ck_ok(host, contraction_coarsen(host, &path, &how, labels, &groups));
        ck_assert(groups == 3 && labels[1] == labels[2]);
        ck_ok(host, contraction_coarsen(host, &star, &how, labels, &groups));
        ck_assert_int_eq(groups, 3);
        for (int i = 0; i < 4; i++) chosen[i] += i != 2 && labels[i] == labels[2];
    }
    test_expect(chosen[0] >= 10 && chosen[1] >= 10 && chosen[3] >= 10, "%d, %d and %d times", chosen[0], chosen[1],
                chosen[3]);
    ck_ok(host, contraction_coarsen(host, &below, NULL, labels, &groups));
    ck_assert_int_eq(groups, 2);
    test_free(host, &path, &star);
    sp_csr_free(host, &below);
}

/* ---- all ways ------------------------------------------------------------------------------------------ */

/* Numbers in the order of first nodes, none too heavy, pairs where pairs are made, as many groups as asked for. */
static void check_labels(const sp_csr *g, const contraction_coarsening *how, const int32_t *labels, int64_t groups,
                         const char *name)
{
    const int64_t n = g->rows;
    int64_t next = 0, *sizes = calloc((size_t)n + 1, sizeof *sizes);
    double *heavy = calloc((size_t)n + 1, sizeof *heavy);
    for (int64_t i = 0; i < n; i++) {
        test_expect(labels[i] >= 0 && labels[i] <= next, "%s: node %d has label %d", name, (int)i, labels[i]);
        next += labels[i] == next;
        sizes[labels[i]]++;
        heavy[labels[i]] += how->weights ? how->weights[i] : 1;
    }
    test_expect(next == groups && groups >= (how->least < n ? how->least : n), "%s: %d groups", name, (int)groups);
    for (int64_t p = 0; p < groups; p++) {
        test_expect(sizes[p] == 1 || how->max_weight == 0 || heavy[p] <= how->max_weight * (1 + 1e-12),
                    "%s: group %d weighs %g", name, (int)p, heavy[p]);
        test_expect(how->method > CONTRACTION_TWO_HOP || sizes[p] <= 2, "%s: group of %d", name, (int)sizes[p]);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i && how->method <= CONTRACTION_TWO_HOP; j++)
            test_expect(labels[i] != labels[j] || are_near(g, i, j, how->method == CONTRACTION_TWO_HOP ? 2 : 1),
                        "%s: nodes %d and %d are far apart", name, (int)i, (int)j);
    free_all(sizes, heavy);
}

static void check_ways(sp_context *host, const sp_csr *g, const double *weights, test_random *random, int seed)
{
    int32_t labels[3][200];
    int64_t groups[3];
    for (int method = 0; method < METHODS; method++) {
        const contraction_coarsening how = {.method = (contraction_method)method,
                                            .seed = (uint64_t)seed,
                                            .least = seed % 3 ? 0 : test_below(random, g->rows + 3),
                                            .max_weight = seed % 2 ? 0 : 1 + (double)test_below(random, 9),
                                            .weights = seed % 5 ? NULL : weights};
        char name[80];
        snprintf(name, sizeof name, "seed %d, %s", seed, method_names[method]);
        for (int t = 0; t < 3; t++) {
            sp_context *context = test_context(0, 1 + 2 * t);
            ck_ok(context, contraction_coarsen(context, g, &how, labels[t], &groups[t]));
            sp_context_destroy(context);
            test_expect(groups[t] == groups[0] &&
                            memcmp(labels[t], labels[0], (size_t)g->rows * sizeof **labels) == 0,
                        "%s: %d threads make a difference", name, 1 + 2 * t);
        }
        check_labels(g, &how, labels[0], groups[0], name);
    }
    (void)host;
}

HOST_TEST(groups_keep_their_bounds_whatever_the_threads, 1)
{
    double weights[200];
    for (int seed = 1; seed <= 60; seed++) {
        test_random random = test_seed((uint64_t)seed);
        sp_csr g = test_communities(host, &random, 1 + test_below(&random, 10), 1 + test_below(&random, 12), 0.5, 0.05);
        for (int64_t i = 0; i < g.rows; i++) weights[i] = 0.5 + (double)test_below(&random, 5);
        check_ways(host, &g, weights, &random, seed);
        sp_csr_free(host, &g);
    }
    for (int seed = 61; seed <= 75; seed++) { /* directed graphs, where proposals need no answer */
        test_random random = test_seed((uint64_t)seed);
        const int64_t n = 1 + test_below(&random, 60);
        sp_csr g = test_matrix(host, &random, n, n, 0.1, SP_F32, TEST_POSITIVE);
        for (int64_t i = 0; i < n; i++) weights[i] = 1;
        for (int method = 0; method < METHODS; method++) {
            int32_t labels[60];
            int64_t groups;
            ck_ok(host, contraction_coarsen(host, &g, &(contraction_coarsening){.method = (contraction_method)method},
                                            labels, &groups));
            ck_assert(groups >= 1 && groups <= n);
        }
        sp_csr_free(host, &g);
    }
}

static int ascending(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* A ring with chords of several lengths; weights 1 to 4, the same in both directions. */
static sp_csr make_ring(sp_context *context, int32_t nodes)
{
    static const int32_t steps[] = {1, 2, 7, 100};
    const int32_t each = 2 * (int32_t)COUNT(steps);
    sp_csr g;
    ck_ok(context, sp_csr_create(context, nodes, nodes, (int64_t)nodes * each, SP_F64, SP_HOST, &g));
    g.row_offsets[0] = 0;
    for (int32_t i = 0; i < nodes; i++) {
        int32_t *row = g.col_indices + (int64_t)i * each;
        for (int32_t k = 0; k < each; k++) row[k] = (i + nodes + (k % 2 ? -steps[k / 2] : steps[k / 2])) % nodes;
        qsort(row, (size_t)each, sizeof *row, ascending);
        for (int32_t k = 0; k < each; k++) ((double *)g.values)[i * each + k] = 1 + (i ^ row[k]) % 4;
        g.row_offsets[i + 1] = (int64_t)(i + 1) * each;
    }
    return g;
}

/* Large enough for several threads in every loop: labels by 1 and by 5. */
TEST(large_graphs_do_not_depend_on_threads)
{
    enum { N = 40000 };
    int32_t *labels[2] = {malloc(N * sizeof(int32_t)), malloc(N * sizeof(int32_t))};
    int64_t groups[2];
    for (int method = 0; method < METHODS; method++) {
        for (int t = 0; t < 2; t++) {
            sp_context *context = test_context(0, 1 + 4 * t);
            sp_csr g = make_ring(context, N);
            const contraction_coarsening how = {.method = (contraction_method)method, .max_weight = 9, .least = 12000};
            ck_ok(context, contraction_coarsen(context, &g, &how, labels[t], &groups[t]));
            sp_csr_free(context, &g);
            sp_context_destroy(context);
        }
        test_expect(groups[0] == groups[1] && memcmp(labels[0], labels[1], N * sizeof **labels) == 0, "%s",
                    method_names[method]);
    }
    free_all(labels[0], labels[1]);
    (void)_i;
}

/* ---- hubs ---------------------------------------------------------------------------------------------- */

static sp_csr make_star(sp_context *context, int64_t leaves)
{
    sp_csr g;
    ck_ok(context, sp_csr_create(context, leaves + 1, leaves + 1, 2 * leaves, SP_F64, SP_HOST, &g));
    g.row_offsets[0] = 0;
    for (int64_t i = 0; i < leaves; i++) {
        g.col_indices[i] = (int32_t)i + 1;
        g.col_indices[leaves + i] = 0;
    }
    for (int64_t i = 0; i <= leaves; i++) g.row_offsets[i + 1] = leaves + i;
    for (int64_t e = 0; e < 2 * leaves; e++) ((double *)g.values)[e] = 1;
    return g;
}

/* A matching pairs one leaf of a star. Bounds on weights leave leaves over, which two hops pair. */
HOST_TEST(a_star_of_leaves_does_not_stall, 2)
{
    static int32_t labels[10001];
    sp_csr g = make_star(host, 10000);
    int64_t groups;
    ck_ok(host, contraction_coarsen(host, &g, &(contraction_coarsening){.seed = 1}, labels, &groups));
    ck_assert_int_eq(groups, 10000);
    ck_ok(host, contraction_coarsen(host, &g, NULL, labels, &groups));
    ck_assert_int_eq(groups, 5001);
    for (int method = CONTRACTION_HEAVY_EDGES; method < METHODS; method++) {
        const contraction_coarsening how = {.method = (contraction_method)method, .max_weight = 100};
        ck_ok(host, contraction_coarsen(host, &g, &how, labels, &groups));
        test_expect(groups <= 5001, "%s: %d groups", method_names[method], (int)groups);
    }
    sp_csr_free(host, &g);
}

/* Two cliques of 8 joined by an edge: whatever makes groups of several, none has nodes of both. */
HOST_TEST(groups_do_not_cross_a_bridge_between_cliques, 1)
{
    double edges[16 * 16] = {0};
    int32_t labels[16];
    int64_t groups;
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) edges[16 * i + j] = i / 8 == j / 8 ? i != j : i + j == 15 && (i == 7 || j == 7);
    sp_csr g = test_from_dense(host, 16, 16, edges, SP_F64);
    for (int method = CONTRACTION_TWO_HOP; method < METHODS; method++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            const contraction_coarsening how = {.method = (contraction_method)method, .seed = seed, .max_weight = 8};
            ck_ok(host, contraction_coarsen(host, &g, &how, labels, &groups));
            for (int i = 0; i < 8; i++)
                for (int j = 8; j < 16; j++)
                    test_expect(labels[i] != labels[j], "%s, seed %d: nodes %d and %d", method_names[method], (int)seed,
                                i, j);
        }
    sp_csr_free(host, &g);
}

/* ---- fewer nodes in groups ----------------------------------------------------------------------------- */

HOST_TEST(nodes_with_the_lightest_edges_leave_their_group_first, 1)
{
    const double edges[] = {0, 5, 1, 0,  5, 0, 2, 0,  1, 2, 0, 9,  0, 0, 9, 0};
    sp_csr g = test_from_dense(host, 4, 4, edges, SP_F64);
    int32_t labels[] = {0, 0, 0, 1}, kept[] = {0, 0, 1, 2}, none[] = {0, 1, 2, 3};
    int64_t groups = 2;
    ck_ok(host, contraction_loosen(host, &g, labels, &groups, 2));
    ck_assert_int_eq(groups, 2);
    ck_ok(host, contraction_loosen(host, &g, labels, &groups, 3)); /* node 2 is bound by 3, node 1 by 7 */
    ck_assert(groups == 3 && memcmp(labels, kept, sizeof kept) == 0);
    ck_ok(host, contraction_loosen(host, &g, labels, &groups, 100));
    ck_assert(groups == 4 && memcmp(labels, none, sizeof none) == 0);
    sp_csr_free(host, &g);
}

HOST_TEST(impossible_coarsenings_are_refused, 1)
{
    const double edges[] = {0, 1,  1, 0};
    const contraction_coarsening bad[] = {{.method = (contraction_method)METHODS}, {.max_weight = -1},
                                          {.max_weight = NAN}, {.least = -1}};
    sp_csr g = test_from_dense(host, 2, 2, edges, SP_F64);
    int32_t labels[2] = {7, 7};
    int64_t groups = 5;
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert_int_eq(contraction_coarsen(host, &g, &bad[i], labels, &groups), SP_ERROR_ARGUMENT);
    ck_assert(groups == 5 && labels[0] == 7 && labels[1] == 7);
    labels[0] = 0;
    ck_assert_int_eq(contraction_loosen(host, &g, labels, &groups, 6), SP_ERROR_ARGUMENT);
    sp_csr_free(host, &g);
}

const test_entry coarsen_tests[] = {
    CASE("coarsen", 120),
    ONCE(matching_is_the_greedy_one_by_falling_weight),
    ONCE(equal_edges_are_matched_in_the_order_of_their_bits),
    ONCE(a_path_of_rising_weights_is_matched_from_its_heavy_end),
    ONCE(chains_and_directed_rings_are_joined_along_heavy_edges),
    ONCE(the_heaviest_edge_is_taken_and_any_of_equals),
    ONCE(groups_keep_their_bounds_whatever_the_threads),
    ONCE(large_graphs_do_not_depend_on_threads),
    ONCE(a_star_of_leaves_does_not_stall),
    ONCE(groups_do_not_cross_a_bridge_between_cliques),
    ONCE(nodes_with_the_lightest_edges_leave_their_group_first),
    ONCE(impossible_coarsenings_are_refused),
    {0},
};
