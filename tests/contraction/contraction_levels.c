/* test_contraction: coarsening where a graph lies on the device against the same on the host. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"

enum { METHODS = CONTRACTION_PROPAGATION + 1 };

/* Copies an array to where the context computes. */
static void *move_up(sp_context *context, sp_space space, const void *from, int64_t count, size_t size)
{
    void *to;
    ck_ok(context, sp_array_create(context, count, size, space, &to));
    ck_ok(context, sp_array_copy(context, count, size, to, space, from, SP_HOST));
    return to;
}

/* Labels and weights of groups by both. */
static void check_same_groups(sp_context *context, sp_context *host, const sp_csr *g,
                              const contraction_coarsening *how, const char *name)
{
    const int64_t n = g->rows;
    const sp_space space = sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST;
    int32_t *expected = calloc((size_t)n + 1, sizeof *expected), *found = calloc((size_t)n + 1, sizeof *found), *labels;
    double *sums = calloc((size_t)n + 1, sizeof *sums), *loads = calloc((size_t)n + 1, sizeof *loads), *weights = NULL;
    contraction_coarsening there = *how;
    int64_t groups, same;
    sp_csr copy;
    ck_ok(context, sp_csr_copy(context, g, space, &copy));
    ck_ok(context, sp_array_create(context, n, sizeof *labels, space, (void **)&labels));
    if (how->weights) there.weights = weights = move_up(context, space, how->weights, n, sizeof *weights);
    ck_ok(host, contraction_coarsen(host, g, how, expected, &groups));
    ck_ok(context, contraction_coarsen(context, &copy, &there, labels, &same));
    ck_ok(context, sp_array_copy(context, n, sizeof *labels, found, SP_HOST, labels, space));
    test_expect(same == groups, "%s: %d groups, not %d", name, (int)same, (int)groups);
    for (int64_t i = 0; i < n; i++)
        test_expect(found[i] == expected[i], "%s: node %d of %d is in group %d, not %d", name, (int)i, (int)n, found[i],
                    expected[i]);
    if (weights) {
        for (int64_t i = 0; i < n; i++) sums[expected[i]] += how->weights[i];
        ck_ok(context, contraction_add_weights(context, labels, n, groups, space, weights));
        ck_ok(context, sp_array_copy(context, groups, sizeof *loads, loads, SP_HOST, weights, space));
        test_expect(memcmp(sums, loads, (size_t)groups * sizeof *sums) == 0, "%s: weights of groups differ", name);
        sp_array_free(context, space, weights);
    }
    sp_array_free(context, space, labels);
    sp_csr_free(context, &copy);
    free_all(expected, found, sums, loads);
}

/* Without values, with f32 and with f64 ones; bounded, weighted and with a least number of groups. */
static void check_ways(sp_context *context, sp_context *host, sp_csr *g, test_random *random, const char *name)
{
    double *weights = malloc(((size_t)g->rows + 1) * sizeof *weights);
    void *values = g->values;
    for (int64_t i = 0; i < g->rows; i++) weights[i] = 0.1 + (double)test_below(random, 5);
    for (int method = 0; method < METHODS; method++)
        for (int way = 0; way < 8; way++) {
            const contraction_coarsening how = {.method = (contraction_method)method,
                                                .seed = 7 + (uint64_t)way,
                                                .max_weight = way & 1 ? 2 + (double)test_below(random, 6) : 0,
                                                .weights = way & 2 ? weights : NULL,
                                                .least = way == 6 ? g->rows * 2 / 3 : 0};
            char title[160];
            snprintf(title, sizeof title, "%s, method %d, way %d", name, method, way);
            g->values = way & 4 ? NULL : values;
            check_same_groups(context, host, g, &how, title);
        }
    g->values = values;
    free(weights);
}

DEVICE_TEST(a_device_makes_the_groups_of_the_host, _i, 2)
{
    for (int seed = 1; seed <= 12; seed++) {
        test_random random = test_seed((uint64_t)seed);
        sp_csr g = test_communities(host, &random, 1 + test_below(&random, 30), 1 + test_below(&random, 12), 0.5, 0.02);
        char name[40];
        snprintf(name, sizeof name, "communities, seed %d", seed);
        check_ways(context, host, &g, &random, name);
        sp_csr_free(host, &g);
    }
    for (int seed = 1; seed <= 4; seed++) { /* directed */
        test_random random = test_seed((uint64_t)seed);
        const int64_t n = test_below(&random, 300);
        sp_csr g = test_matrix(host, &random, n, n, 0.02, seed % 2 ? SP_F32 : SP_F64, TEST_SIGNED);
        char name[40];
        snprintf(name, sizeof name, "directed, seed %d", seed);
        check_ways(context, host, &g, &random, name);
        sp_csr_free(host, &g);
    }
}

/* `hubs` nodes that have all others as neighbours, and a ring of the others. Rows of several chunks; free nodes with
 * long rows, since hubs are not neighbours. */
static sp_csr make_hubs(sp_context *host, test_random *random, int32_t nodes, int32_t hubs)
{
    const int64_t count = 2 * ((int64_t)hubs * (nodes - hubs) + nodes - hubs);
    int32_t *rows = malloc((size_t)count * sizeof *rows), *cols = malloc((size_t)count * sizeof *cols);
    double *values = malloc((size_t)count * sizeof *values);
    int64_t e = 0;
    sp_csr g;
    for (int32_t i = hubs; i < nodes; i++)
        for (int32_t h = 0; h <= hubs; h++) {
            const int32_t other = h < hubs ? h : i + 1 < nodes ? i + 1 : hubs;
            const double weight = 1 + (double)test_below(random, 3);
            rows[e] = cols[e + 1] = i;
            cols[e] = rows[e + 1] = other;
            values[e] = values[e + 1] = weight;
            e += 2;
        }
    ck_ok(host, sp_csr_from_coo(host, &(sp_coo){.rows = nodes, .cols = nodes, .count = e, .row_indices = rows,
                                                .col_indices = cols, .values = values, .value_type = SP_F64},
                                SP_COMBINE_MAX, false, &g));
    free_all(rows, cols, values);
    return g;
}

DEVICE_TEST(long_rows_give_the_groups_of_the_host, _i, 2)
{
    static const int32_t hubs[] = {1, 3, 40};
    for (size_t i = 0; i < COUNT(hubs); i++) {
        test_random random = test_seed(i + 1);
        sp_csr g = make_hubs(host, &random, hubs[i] == 3 ? 70000 : 3000, hubs[i]);
        char name[40];
        snprintf(name, sizeof name, "%d hubs", hubs[i]);
        check_ways(context, host, &g, &random, name);
        sp_csr_free(host, &g);
    }
}

/* A path of rising weights, in one direction or both, and nodes without edges: heavy edges by coins, pairs one by one.
 */
DEVICE_TEST(chains_give_the_groups_of_the_host, _i, 2)
{
    enum { N = 3000 };
    for (int directed = 0; directed < 2; directed++) {
        test_random random = test_seed(3);
        entry_list list = {0};
        for (int32_t i = 0; i + 1 < N - 100; i++) {
            entry_add(&list, i, i + 1, i + 1);
            if (!directed) entry_add(&list, i + 1, i, i + 1);
        }
        sp_csr g = entry_matrix(host, &list, N, N, SP_F64, false);
        check_ways(context, host, &g, &random, directed ? "directed chain" : "chain");
        sp_csr_free(host, &g);
    }
}

/* Nodes whose weights differ by a billion, and none of which is a whole number. */
DEVICE_TEST(weights_far_apart_give_the_groups_of_the_host, _i, 2)
{
    for (int seed = 1; seed <= 4; seed++) {
        test_random random = test_seed((uint64_t)seed);
        sp_csr g = test_communities(host, &random, 30, 12, 0.5, 0.02);
        double *weights = malloc((size_t)g.rows * sizeof *weights);
        for (int64_t i = 0; i < g.rows; i++) weights[i] = pow(10, -9 * test_unit(&random));
        for (int method = 0; method < METHODS; method++) {
            const contraction_coarsening how = {.method = (contraction_method)method, .seed = 5, .max_weight = 0.3,
                                                .weights = weights};
            char name[60];
            snprintf(name, sizeof name, "weights, seed %d, method %d", seed, method);
            check_same_groups(context, host, &g, &how, name);
        }
        free(weights);
        sp_csr_free(host, &g);
    }
}

/* ---- hierarchies --------------------------------------------------------------------------------------- */

typedef struct way {
    contraction_coarsening how;
    sp_space space; /* where the last graph lay */
} way;

static sp_status coarsen_level(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    way *w = user;
    w->space = g->space;
    return contraction_coarsen(context, g, &w->how, labels, groups);
}

DEVICE_TEST(a_hierarchy_on_the_device_is_that_of_the_host, _i, 2)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        for (int turn = 0; turn < 4; turn++) {
            test_random random = test_seed(seed);
            sp_csr g = test_communities(host, &random, 30, 1 + test_below(&random, 12), 0.4, 0.02);
            contraction_options options = {.undirected = turn & 1,
                                           .engine = turn & 2 ? CONTRACTION_PRODUCT : CONTRACTION_AUTO};
            contraction_hierarchy expected, found;
            way w = {.how = {.method = (contraction_method)(seed % METHODS), .seed = seed, .max_weight = 40}};
            ck_ok(host, contraction_repeat(host, &g, 5, coarsen_level, &w, &options, &expected));
            options.on_device = true;
            ck_ok(context, contraction_repeat(context, &g, 5, coarsen_level, &w, &options, &found));
            ck_assert_int_eq(w.space, sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST);
            ck_assert_int_eq(found.count, expected.count);
            for (int k = 0; k < found.count; k++) {
                const contraction_level *x = &expected.level[k], *y = &found.level[k];
                ck_assert(x->nodes == y->nodes && x->groups == y->groups);
                ck_assert_mem_eq(x->map, y->map, (size_t)x->nodes * sizeof *x->map);
                test_same(&x->c, &y->c, seed);
            }
            contraction_hierarchy_free(host, &expected);
            contraction_hierarchy_free(context, &found);
            sp_csr_free(host, &g);
        }
}

/* Sums in two orders differ in the last place; the mirror takes those below the diagonal. */
DEVICE_TEST(a_quotient_is_mirrored_where_it_lies, _i, 2)
{
    const sp_space space = sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST;
    for (int turn = 0; turn < 4; turn++) {
        double numbers[40 * 40] = {0};
        bool symmetric;
        test_random random = test_seed((uint64_t)turn + 1);
        for (int i = 0; i < 40; i++)
            for (int j = 0; j <= i; j++)
                if (test_below(&random, 3) == 0) {
                    numbers[40 * i + j] = 1 + test_unit(&random);
                    numbers[40 * j + i] = numbers[40 * i + j] + (i == j ? 0 : 0.25);
                }
        if (turn == 3) numbers[40 * 2 + 1] = 1, numbers[40 * 1 + 2] = 0;
        sp_csr g = test_from_dense(host, 40, 40, numbers, turn % 2 ? SP_F32 : SP_F64), c;
        ck_ok(context, sp_csr_copy(context, &g, space, &c));
        ck_ok(context, contraction_mirror(context, &c, &symmetric));
        test_to_host(context, &c);
        ck_assert(symmetric == (turn != 3));
        for (int64_t i = 0; i < 40; i++)
            for (int64_t k = c.row_offsets[i]; k < c.row_offsets[i + 1]; k++) {
                const int64_t j = c.col_indices[k], low = i > j ? i : j, high = i > j ? j : i;
                const double value = symmetric ? numbers[40 * low + high] : numbers[40 * i + j];
                ck_assert(test_value(&c, k) == (turn % 2 ? (double)(float)value : value));
            }
        sp_csr_free(context, &c);
        sp_csr_free(host, &g);
    }
}

const test_entry levels_tests[] = {
    CASE("levels", 120),
    ON_DEVICES(a_device_makes_the_groups_of_the_host),
    ON_DEVICES(long_rows_give_the_groups_of_the_host),
    ON_DEVICES(chains_give_the_groups_of_the_host),
    ON_DEVICES(weights_far_apart_give_the_groups_of_the_host),
    ON_DEVICES(a_hierarchy_on_the_device_is_that_of_the_host),
    ON_DEVICES(a_quotient_is_mirrored_where_it_lies),
    {0},
};
