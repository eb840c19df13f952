/* test_contraction: the borders of a partition. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"

/* Weight of the edges between parts, by its definition. */
static double cut_of(const sp_csr *g, const int32_t *labels)
{
    double sum = 0;
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t k = g->row_offsets[i]; k < g->row_offsets[i + 1]; k++) {
            const int32_t there = labels[g->col_indices[k]];
            if (labels[i] >= 0 && there >= 0 && there != labels[i]) sum += test_value(g, k);
        }
    return sum / 2;
}

static bool is_same(double a, double b) { return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(b); }

/* The heaviest part by one of the weights, the number of parts that have nodes, the weight of all. */
static double heaviest(const int32_t *labels, int64_t nodes, int64_t parts, const int64_t *weights, int constraints,
                       int which, int64_t *used, double *all)
{
    double *load = test_zeros((size_t)parts, sizeof *load), most = 0;
    bool *filled = test_zeros((size_t)parts, sizeof *filled);
    *used = 0;
    *all = 0;
    for (int64_t i = 0; i < nodes; i++) {
        const double weight = weights ? (double)weights[i * constraints + which] : 1;
        if (labels[i] < 0) continue;
        load[labels[i]] += weight;
        filled[labels[i]] = true;
        *all += weight;
    }
    for (int64_t p = 0; p < parts; p++) {
        *used += filled[p];
        most = fmax(most, load[p]);
    }
    free_all(load, filled);
    return most;
}

/* What a refinement promises, against its definition. */
static void check_promises(const sp_csr *g, int64_t parts, const contraction_refinement *how, const int32_t *before,
                           const int32_t *after, const contraction_refined *made, const char *name)
{
    const double old = cut_of(g, before), new = cut_of(g, after), near = 1e-9 * (1 + fabs(old));
    double balance = NAN, was_balance = NAN, bound = NAN;
    test_expect(fabs(made->cut_before - old) <= near && fabs(made->cut - new) <= near, "%s: cut %g to %g, not %g to %g",
                name, made->cut_before, made->cut, old, new);
    for (int64_t i = 0; i < g->rows; i++)
        test_expect((after[i] < 0) == (before[i] < 0) && after[i] < parts, "%s: node %lld has label %d", name,
                    (long long)i, after[i]);
    for (int c = 0; c < (how->weights ? how->constraints : 1); c++) {
        int64_t used, still;
        double all;
        const double was = heaviest(before, g->rows, parts, how->weights, how->constraints, c, &used, &all),
                     is = heaviest(after, g->rows, parts, how->weights, how->constraints, c, &still, &all),
                     mean = used ? all / (double)used : 0;
        const double room = ceil((1 + (how->imbalance == 0 ? 0.03 : fmax(0, how->imbalance))) * mean - 1e-9 * mean),
                     most = how->imbalance == 0 ? fmax(was, room) : room;
        test_expect(still == used, "%s: %lld parts have nodes, not %lld", name, (long long)still, (long long)used);
        test_expect(is <= fmax(was, most) * (1 + 1e-12), "%s: the heaviest part weighs %g, before %g", name, is, was);
        test_expect(how->weights || is <= most * (1 + 1e-12), "%s: the heaviest part weighs %g, more than %g", name, is,
                    most);
        if (all == 0) continue;
        balance = fmax(balance, is / mean);
        was_balance = fmax(was_balance, was / mean);
        bound = fmax(bound, most / mean);
    }
    test_expect(is_same(made->balance, balance) && is_same(made->balance_before, was_balance) &&
                    is_same(made->bound, bound), "%s: balance %g to %g of %g, not %g to %g of %g", name,
                made->balance_before, made->balance, made->bound, was_balance, balance, bound);
    test_expect(new <= old + near || (how->imbalance != 0 && was_balance > bound), "%s: the cut rises from %g to %g",
                name, old, new);
}

/* A grid whose nodes are joined to the next in their row and column. */
static sp_csr make_grid(sp_context *host, int32_t side)
{
    sp_csr g;
    int64_t e = 0;
    ck_ok(host, sp_csr_create(host, side * side, side * side, 4 * side * (side - 1), SP_F64, SP_HOST, &g));
    g.row_offsets[0] = 0;
    for (int32_t i = 0; i < side * side; i++) {
        const int32_t row = i / side, col = i % side;
        if (row > 0) g.col_indices[e++] = i - side;
        if (col > 0) g.col_indices[e++] = i - 1;
        if (col < side - 1) g.col_indices[e++] = i + 1;
        if (row < side - 1) g.col_indices[e++] = i + side;
        g.row_offsets[i + 1] = e;
    }
    for (int64_t k = 0; k < e; k++) ((double *)g.values)[k] = 1;
    return g;
}

/* The left and the right half of a square, with every third node near the border on the wrong side. A straight border
 * is the shortest and has SIDE edges. */
HOST_TEST(a_ragged_border_in_a_grid_becomes_nearly_straight, 2)
{
    enum { SIDE = 20 };
    sp_csr g = make_grid(host, SIDE);
    int32_t labels[SIDE * SIDE], before[SIDE * SIDE];
    contraction_refined made;
    for (int seed = 0; seed < 10; seed++) {
        const contraction_refinement how = {.seed = (uint64_t)seed};
        test_random random = test_seed((uint64_t)seed);
        for (int i = 0; i < SIDE * SIDE; i++) {
            const int col = i % SIDE;
            before[i] = labels[i] = (col >= SIDE / 2) ^ (abs(2 * col - SIDE + 1) < 6 && test_below(&random, 3) == 0);
        }
        ck_assert(cut_of(&g, labels) > 40);
        ck_ok(host, contraction_refine(host, &g, 2, &how, labels, &made));
        check_promises(&g, 2, &how, before, labels, &made, "grid");
        test_expect(cut_of(&g, labels) <= 1.2 * SIDE, "seed %d: cut %g", seed, cut_of(&g, labels));
    }
    sp_csr_free(host, &g);
}

/* Four grids A, B, C, D. Ten edges join A to C and B to D, and one joins A to B and C to D, but the parts are A and B,
 * C and D. It takes moves of whole grids, each of more nodes than a pass moves without a gain. */
HOST_TEST(whole_regions_change_their_part, 2)
{
    enum { SIDE = 24, GRID = SIDE * SIDE, N = 4 * GRID };
    double *edges = test_zeros((size_t)N * N, sizeof *edges);
    contraction_refined made;
    int32_t *labels = test_block(N * sizeof *labels);
    const contraction_refinement how = {.imbalance = 0.6};
#define JOIN(a, b) edges[(int64_t)(a) * N + (b)] = edges[(int64_t)(b) * N + (a)] = 1
    for (int i = 0; i < N; i++) {
        if (i % SIDE < SIDE - 1) JOIN(i, i + 1);
        if (i % GRID < GRID - SIDE) JOIN(i, i + SIDE);
        labels[i] = i / (2 * GRID);
    }
    for (int k = 0; k < 10; k++) JOIN(k, 2 * GRID + k);
    for (int k = 0; k < 10; k++) JOIN(GRID + k, 3 * GRID + k);
    JOIN(GRID - 1, 2 * GRID - 1);
    JOIN(3 * GRID - 1, 4 * GRID - 1);
#undef JOIN
    sp_csr g = test_from_dense(host, N, N, edges, SP_F64);
    ck_assert(cut_of(&g, labels) == 20);
    ck_ok(host, contraction_refine(host, &g, 2, &how, labels, &made));
    test_expect(made.cut_before == 20 && made.cut == 2 && cut_of(&g, labels) == 2, "cut %g", cut_of(&g, labels));
    sp_csr_free(host, &g);
    free_all(edges, labels);
}

/* Graphs of all kinds, some nodes without a part, parts without nodes, several weights, f32, patterns, loops. */
HOST_TEST(the_cut_does_not_rise_and_the_balance_is_kept, 2)
{
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(150); seed++) {
        test_random random = test_seed(seed);
        sp_csr g = test_communities(host, &random, 1 + test_below(&random, 12), 1 + test_below(&random, 30), 0.4, 0.05);
        const int64_t n = g.rows, parts = 1 + test_below(&random, seed % 7 == 0 ? 2 * n : 9);
        const int constraints = 1 + (int)(seed % 3);
        int32_t *labels = test_block((size_t)n * sizeof *labels), *before = test_block((size_t)n * sizeof *before);
        int64_t *weights = test_block((size_t)(n * constraints) * sizeof *weights);
        contraction_refined made;
        char name[32];
        if (seed % 4 == 0) test_drop_values(host, &g);
        for (int64_t i = 0; i < n; i++)
            before[i] = labels[i] = (int32_t)(test_below(&random, parts + (seed % 5 == 0)) - (seed % 5 == 0));
        for (int64_t i = 0; i < n * constraints; i++) weights[i] = test_below(&random, seed % 2 ? 4 : 1000);
        const contraction_refinement how = {.seed = seed, .imbalance = seed % 6 == 0   ? 0.3
                                                         : seed % 6 == 3 ? CONTRACTION_BALANCED
                                                         : seed % 6 == 4 ? 0.01
                                                                         : 0,
                                            .weights = seed % 8 ? weights : NULL, .constraints = constraints,
                                            .cycles = (int)(seed % 4)};
        snprintf(name, sizeof name, "seed %d", (int)seed);
        ck_ok(host, contraction_refine(host, &g, parts, &how, labels, &made));
        check_promises(&g, parts, &how, before, labels, &made, name);
        free_all(labels, before, weights);
        sp_csr_free(host, &g);
    }
}

TEST(a_large_partition_does_not_depend_on_threads)
{
    enum { SIDE = 200 };
    int32_t *expected = test_block(SIDE * SIDE * sizeof *expected), *labels = test_block(SIDE * SIDE * sizeof *labels);
    for (int threads = 1; threads <= 5; threads += 2) {
        sp_context *context = test_context(0, threads);
        test_random random = test_seed(3);
        sp_csr g = make_grid(context, SIDE);
        int32_t *to = threads == 1 ? expected : labels;
        contraction_refined made;
        for (int i = 0; i < SIDE * SIDE; i++) to[i] = (int32_t)((i / 5000) ^ (test_below(&random, 10) == 0));
        ck_ok(context, contraction_refine(context, &g, 9, NULL, to, &made));
        ck_assert(made.cut_before - made.cut > 10000); /* a tenth of the nodes were astray */
        if (threads > 1) ck_assert(memcmp(labels, expected, SIDE * SIDE * sizeof *labels) == 0);
        sp_csr_free(context, &g);
        sp_context_destroy(context);
    }
    free_all(expected, labels);
}

HOST_TEST(partitions_with_nothing_to_move_stay, 1)
{
    const double edges[] = {0, 3, 0, 0,  3, 0, 0, 0,  0, 0, 5, 0,  0, 0, 0, 0}; /* an edge, a loop, a node alone */
    sp_csr g = test_from_dense(host, 4, 4, edges, SP_F32), nothing = test_from_dense(host, 0, 0, NULL, SP_F64);
    const int32_t cases[][4] = {{0, 0, 0, 0}, {0, 1, 2, 3}, {0, 9, 9, 5}, {-1, -1, -1, -1}, {0, -1, 1, 1}};
    int32_t labels[4];
    contraction_refined made;
    for (size_t c = 0; c < COUNT(cases); c++) {
        memcpy(labels, cases[c], sizeof labels);
        ck_ok(host, contraction_refine(host, &g, 10, NULL, labels, &made));
        if (c == 2) { /* node 1 can go to node 0, and leaves node 2 */
            ck_assert(made.cut_before == 3 && made.cut == 0 && made.moves == 1 && labels[0] == labels[1] &&
                      labels[2] == 9 && labels[3] == 5);
            continue;
        }
        ck_assert(made.cut == made.cut_before && made.moves == 0 && memcmp(labels, cases[c], sizeof labels) == 0);
    }
    ck_ok(host, contraction_refine(host, &nothing, 0, NULL, NULL, &made));
    ck_ok(host, contraction_refine(host, &nothing, 3, NULL, NULL, NULL));
    test_free(host, &g, &nothing);
}

/* A path 0 - 1 - 2 - 3 whose heavy edge is cut: only a light node has room beyond it. */
HOST_TEST(a_node_moves_only_where_it_has_room, 1)
{
    const double edges[] = {0, 1, 0, 0,  1, 0, 8, 0,  0, 8, 0, 1,  0, 0, 1, 0};
    const int64_t heavy[] = {4, 4, 4, 4}, light[] = {5, 1, 5, 1}, second[] = {1, 0,  1, 9,  1, 9,  1, 0};
    sp_csr g = test_from_dense(host, 4, 4, edges, SP_F64);
    const struct {
        contraction_refinement how;
        double gained;
    } cases[] = {{{.weights = heavy, .constraints = 1}, 0},
                 {{.weights = heavy, .constraints = 1, .imbalance = 0.5}, 7},
                 {{.weights = light, .constraints = 1, .imbalance = 0.2}, 7},
                 {{.weights = second, .constraints = 2, .imbalance = 0.6}, 0},
                 {{.imbalance = CONTRACTION_BALANCED}, 0},
                 {{.imbalance = 0.5}, 7}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        int32_t labels[] = {0, 0, 1, 1};
        contraction_refined made;
        ck_ok(host, contraction_refine(host, &g, 2, &cases[c].how, labels, &made));
        test_expect(made.cut_before - made.cut == cases[c].gained, "case %d: gained %g", (int)c,
                    made.cut_before - made.cut);
    }
    sp_csr_free(host, &g);
}

/* Numbers of labels that no node has. */
HOST_TEST(empty_parts_change_nothing, 1)
{
    enum { SIDE = 24 };
    sp_csr g = make_grid(host, SIDE);
    int32_t close[SIDE * SIDE], apart[SIDE * SIDE];
    contraction_refined made;
    test_random random = test_seed(5);
    for (int i = 0; i < SIDE * SIDE; i++) {
        close[i] = i / (SIDE * SIDE / 8) ^ (test_below(&random, 5) == 0);
        apart[i] = 1000 * close[i] + 7;
    }
    ck_ok(host, contraction_refine(host, &g, 8, NULL, close, &made));
    ck_ok(host, contraction_refine(host, &g, 100000, NULL, apart, NULL));
    for (int i = 0; i < SIDE * SIDE; i++) ck_assert_int_eq(apart[i], 1000 * close[i] + 7);
    sp_csr_free(host, &g);
}

/* Nearly all nodes in one part. Strips of the grid would cut 4 · SIDE edges. */
HOST_TEST(parts_become_as_light_as_asked, 2)
{
    enum { SIDE = 30, PARTS = 5 };
    sp_csr g = make_grid(host, SIDE);
    const double asked[] = {CONTRACTION_BALANCED, 0.01, 0.2};
    for (size_t c = 0; c < COUNT(asked); c++) {
        const contraction_refinement how = {.imbalance = asked[c]};
        int32_t labels[SIDE * SIDE], before[SIDE * SIDE];
        contraction_refined made;
        for (int i = 0; i < SIDE * SIDE; i++) before[i] = labels[i] = i % SIDE < PARTS - 1 && i < SIDE ? i % SIDE : 4;
        ck_ok(host, contraction_refine(host, &g, PARTS, &how, labels, &made));
        check_promises(&g, PARTS, &how, before, labels, &made, "corner");
        test_expect(made.cut <= 4 * SIDE, "imbalance %g: cut %g", asked[c], made.cut);
    }
    sp_csr_free(host, &g);
}

HOST_TEST(impossible_refinements_are_refused, 1)
{
    const double edges[] = {0, 1,  1, 0}, infinite[] = {0, INFINITY,  INFINITY, 0}, wide[] = {0, 1};
    const int64_t below[] = {1, -1};
    const contraction_refinement bad[] = {{.weights = below, .constraints = 1}, {.weights = below}, {.imbalance = -0.5},
                                          {.imbalance = NAN}, {.imbalance = INFINITY}, {.cycles = -1}};
    sp_csr g = test_from_dense(host, 2, 2, edges, SP_F64), beyond = test_from_dense(host, 2, 2, infinite, SP_F64),
           row = test_from_dense(host, 1, 2, wide, SP_F64);
    int32_t labels[2] = {0, 1};
    contraction_refined made = {.cut = 5};
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert_int_eq(contraction_refine(host, &g, 2, &bad[i], labels, &made), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(contraction_refine(host, &g, 1, NULL, labels, &made), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(contraction_refine(host, &g, -1, NULL, labels, &made), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(contraction_refine(host, &row, 2, NULL, labels, &made), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(contraction_refine(host, &beyond, 2, NULL, labels, &made), SP_ERROR_NOT_FINITE);
    ck_assert(made.cut == 5 && labels[0] == 0 && labels[1] == 1);
    test_free(host, &g, &beyond, &row);
}

const test_entry refine_tests[] = {
    CASE("refine", 120),
    ONCE(a_ragged_border_in_a_grid_becomes_nearly_straight),
    ONCE(whole_regions_change_their_part),
    ONCE(the_cut_does_not_rise_and_the_balance_is_kept),
    ONCE(a_large_partition_does_not_depend_on_threads),
    ONCE(partitions_with_nothing_to_move_stay),
    ONCE(a_node_moves_only_where_it_has_room),
    ONCE(empty_parts_change_nothing),
    ONCE(parts_become_as_light_as_asked),
    ONCE(impossible_refinements_are_refused),
    {0},
};
