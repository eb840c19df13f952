/* test_gnn_sampler: how minibatches are distributed, and the edges of what can be asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_sampler_shared.h"

/* What chi-square with so many degrees of freedom exceeds once in 10,000 times (Wilson and Hilferty 1931). */
static double chi_square_limit(int64_t freedom)
{
    const double part = 2.0 / (9.0 * (double)freedom);
    return (double)freedom * pow(1 - part + 3.719 * sqrt(part), 3);
}

static void expect_frequencies(const char *what, int64_t cells, const int64_t *counts, const double *chances)
{
    int64_t total = 0, used = 0;
    double square = 0;
    for (int64_t c = 0; c < cells; c++) total += counts[c];
    for (int64_t c = 0; c < cells; c++) {
        if (chances[c] == 0) {
            ck_assert_int_eq(counts[c], 0);
            continue;
        }
        const double expected = chances[c] * (double)total;
        test_expect(expected >= 5, "%s: cell %d expects %g", what, (int)c, expected);
        square += ((double)counts[c] - expected) * ((double)counts[c] - expected) / expected;
        used++;
    }
    test_expect(square < chi_square_limit(used - 1), "%s: chi-square %g of %d cells", what, square, (int)used);
}

enum { HUBS = 6, SPOKES = 400 };

/* Nodes HUBS and up hear from nodes 0 .. HUBS - 1 with these weights, from themselves too if `own`. */
static sp_csr star(sp_context *host, const double *weights, bool own)
{
    const int64_t n = HUBS + SPOKES;
    double *entries = test_zeros((size_t)(n * n), sizeof *entries);
    for (int64_t i = HUBS; i < n; i++) {
        for (int64_t j = 0; j < HUBS; j++) entries[i * n + j] = weights[j];
        if (own) entries[i * n + i] = 1;
    }
    sp_csr a = test_from_dense(host, n, n, entries, SP_F64);
    free(entries);
    return a;
}

/* Chances of each set of HUBS nodes when `left` more are drawn, one after another, proportionally to weights. */
static void enumerate(const double *weights, unsigned set, int left, double chance, double *chances)
{
    double sum = 0;
    for (int j = 0; j < HUBS; j++)
        if (!(set >> j & 1)) sum += weights[j];
    if (left == 0 || sum == 0) chances[set] += chance;
    else
        for (int j = 0; j < HUBS; j++)
            if (!(set >> j & 1) && weights[j] > 0)
                enumerate(weights, set | 1u << j, left - 1, chance * weights[j] / sum, chances);
}

/* Which hubs row i of the block has. */
static unsigned hubs_of(const gnn_minibatch *m, int64_t i)
{
    unsigned set = 0;
    const sp_csr *block = &m->block[0];
    for (int64_t k = block->row_offsets[i]; k < block->row_offsets[i + 1]; k++)
        if (m->node[0][block->col_indices[k]] < HUBS) set |= 1u << m->node[0][block->col_indices[k]];
    return set;
}

/* Counts which sets of hubs the spokes get in so many passes. */
static void count_sets(int device, const sp_csr *a, const gnn_sampler_options *options, int passes, int64_t *counts)
{
    place p = place_open(device, 2, 42);
    gnn_sampler *sampler;
    int32_t *nodes = numbers(HUBS + SPOKES);
    memset(counts, 0, sizeof *counts << HUBS);
    ck_ok(p.context, gnn_sampler_create(p.context, a, options, &sampler));
    for (int pass = 0; pass < passes; pass++) {
        sample all = draw_pass(&p, sampler, nodes + HUBS, SPOKES, pass);
        for (int64_t b = 0; b < all.count; b++)
            for (int64_t i = 0; i < all.minibatch[b].batch_size; i += options->kind ? options->batch : 1)
                counts[hubs_of(&all.minibatch[b], i)]++;
        free_sample(&p, &all);
    }
    gnn_sampler_free(sampler);
    free(nodes);
    place_close(&p);
}

HOST_TEST(all_sets_of_neighbours_are_equally_likely, 1)
{
    const double weights[HUBS] = {1, 2, 3, 4, 5, 6}, equal[HUBS] = {1, 1, 1, 1, 1, 1};
    for (int own = 0; own < 2; own++)
        for (int s = 1; s < HUBS; s++) {
            int64_t counts[1 << HUBS];
            double chances[1 << HUBS] = {0};
            sp_csr a = star(host, weights, own);
            const gnn_sampler_options options = {.kind = GNN_SAMPLE_NODE, .layers = 1, .batch = 64, .fanout = {s}};
            count_sets(_i, &a, &options, 10, counts);
            enumerate(equal, 0, s, 1, chances);
            expect_frequencies("node-wise", 1 << HUBS, counts, chances);
            sp_csr_free(host, &a);
        }
}

/* Batches of one and of three rows, which hear the same: squares of weights count, as often for all. */
HOST_TEST(neighbours_by_value_are_successive_draws, 1)
{
    const double weights[HUBS] = {1, 1.5, 0.75, 2, 1.25, 0.5};
    for (int own = 0; own < 2; own++)
        for (int s = 1; s < HUBS; s++) {
            int64_t counts[1 << HUBS];
            double chances[1 << HUBS] = {0};
            sp_csr a = star(host, weights, own);
            const gnn_sampler_options options = {.kind = GNN_SAMPLE_NODE, .layers = 1, .batch = 64, .fanout = {s},
                                                 .by_value = true};
            count_sets(_i, &a, &options, 12, counts);
            enumerate(weights, 0, s, 1, chances);
            expect_frequencies("by value", 1 << HUBS, counts, chances);
            sp_csr_free(host, &a);
        }
}

HOST_TEST(nodes_of_a_layer_are_successive_draws_by_squared_weights, 1)
{
    const double weights[HUBS] = {1, 1.5, 0.75, 2, 1.25, 0.5};
    double squares[HUBS];
    for (int j = 0; j < HUBS; j++) squares[j] = weights[j] * weights[j];
    for (int kind = GNN_SAMPLE_LAYER; kind <= GNN_SAMPLE_FASTGCN; kind++)
        for (int s = 1; s < HUBS; s += 2)
            for (int64_t batch = 1; batch < 4; batch += 2) {
                int64_t counts[1 << HUBS];
                double chances[1 << HUBS] = {0};
                sp_csr a = star(host, weights, batch == 3);
                const gnn_sampler_options options = {.kind = (gnn_sampler_kind)kind, .layers = 1, .batch = batch,
                                                     .bulk = 50, .fanout = {s}};
                count_sets(_i, &a, &options, batch == 3 ? 36 : 12, counts);
                enumerate(squares, 0, s, 1, chances);
                expect_frequencies(kind_names[kind], 1 << HUBS, counts, chances);
                sp_csr_free(host, &a);
            }
}

/* Mean and standard error over samples. */
typedef struct estimate {
    int64_t count;
    double sum, squares;
} estimate;

static void observe(estimate *e, double x)
{
    e->count++;
    e->sum += x;
    e->squares += x * x;
}

/* Four and a half standard errors: once in 150,000. */
static void expect_mean(const estimate *e, double should, const char *what, int64_t which)
{
    const double mean = e->sum / (double)e->count;
    const double variance = e->squares / (double)e->count - mean * mean;
    const double error = sqrt(fmax(variance, 0) / (double)(e->count - 1)) + 1e-6 * fabs(should);
    test_expect(fabs(mean - should) <= 4.5 * error, "%s %d: mean %g +- %g, not %g", what, (int)which, mean, error,
                should);
}

static void check_sums(sp_context *host, int device, bool by_value)
{
    enum { NODES = 30, PASSES = 1500 };
    test_random random = test_seed(11);
    sp_csr a = test_matrix(host, &random, NODES, NODES, 0.4, SP_F32, TEST_SIGNED);
    double x[NODES];
    estimate sums[NODES] = {0};
    for (int j = 0; j < NODES; j++) x[j] = test_unit(&random);
    place p = place_open(device, 1, 3);
    gnn_sampler *sampler;
    int32_t *nodes = numbers(NODES);
    const gnn_sampler_options options = {.kind = GNN_SAMPLE_NODE, .layers = 1, .batch = 7, .fanout = {4},
                                         .by_value = by_value};
    ck_ok(p.context, gnn_sampler_create(p.context, &a, &options, &sampler));
    for (int pass = 0; pass < PASSES; pass++) {
        sample all = draw_pass(&p, sampler, nodes, NODES, pass);
        for (int64_t b = 0; b < all.count; b++) {
            const gnn_minibatch *m = &all.minibatch[b];
            for (int64_t i = 0; i < m->batch_size; i++) {
                double sum = 0;
                for (int64_t k = m->block[0].row_offsets[i]; k < m->block[0].row_offsets[i + 1]; k++)
                    sum += test_value(&m->block[0], k) * x[m->node[0][m->block[0].col_indices[k]]];
                observe(&sums[m->batch[i]], sum);
            }
        }
        free_sample(&p, &all);
    }
    for (int i = 0; i < NODES; i++) {
        double should = 0;
        for (int64_t k = a.row_offsets[i]; k < a.row_offsets[i + 1]; k++)
            should += test_value(&a, k) * x[a.col_indices[k]];
        expect_mean(&sums[i], should, "sum of node", i);
    }
    gnn_sampler_free(sampler);
    place_close(&p);
    free(nodes);
    sp_csr_free(host, &a);
}

HOST_TEST(node_wise_sums_are_estimated_without_bias, 1)
{
    check_sums(host, _i, false);
    check_sums(host, _i, true);
}

/* Before rows are scaled an entry is divided by the chance of its column, whose mean over all samples is then the
 * entry. A row's own entry is divided by nothing: beside it the others show by what they were. */
HOST_TEST(layer_wise_weights_are_without_bias, 1)
{
    const double weights[HUBS] = {1, 1.5, 0.75, 2, 1.25, 0.5};
    sp_csr a = star(host, weights, true);
    int32_t *nodes = numbers(HUBS + SPOKES);
    for (int kind = GNN_SAMPLE_LAYER; kind <= GNN_SAMPLE_FASTGCN; kind++)
        for (int s = 3; s < HUBS; s += 2) { /* of a single draw the variance is infinite */
            const gnn_sampler_options options = {.kind = (gnn_sampler_kind)kind, .layers = 1, .batch = 2,
                                                 .fanout = {s}};
            estimate entries[HUBS] = {0}, all_entries = {0}; /* together they vary less */
            place p = place_open(_i, 1, 8);
            gnn_sampler *sampler;
            ck_ok(p.context, gnn_sampler_create(p.context, &a, &options, &sampler));
            for (int pass = 0; pass < 60; pass++) {
                sample all = draw_pass(&p, sampler, nodes + HUBS, SPOKES, pass);
                for (int64_t b = 0; b < all.count; b++) {
                    const gnn_minibatch *m = &all.minibatch[b];
                    double row[HUBS] = {0};
                    const double own = test_value(&m->block[0], 0);
                    ck_assert_int_eq(m->block[0].col_indices[0], 0); /* the first row's own */
                    for (int64_t k = 1; k < m->block[0].row_offsets[1]; k++)
                        row[m->node[0][m->block[0].col_indices[k]]] = test_value(&m->block[0], k) / own;
                    double together = 0;
                    for (int j = 0; j < HUBS; j++) {
                        observe(&entries[j], row[j]);
                        together += row[j] / weights[j];
                    }
                    observe(&all_entries, together);
                }
                free_sample(&p, &all);
            }
            for (int j = 0; j < HUBS; j++) expect_mean(&entries[j], weights[j], kind_names[kind], j);
            expect_mean(&all_entries, HUBS, kind_names[kind], HUBS);
            gnn_sampler_free(sampler);
            place_close(&p);
        }
    free(nodes);
    sp_csr_free(host, &a);
}

/* ---- edges of what can be asked for ------------------------------------------------------------------- */

HOST_TEST(large_fan_outs_give_whole_neighbourhoods, 1)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        test_random random = test_seed(seed);
        const int64_t n = 1 + test_below(&random, 60);
        subject s = {.nodes = numbers(n), .count = n, .name = "whole"};
        s.a = test_matrix(host, &random, n, n, 0.2, SP_F64, TEST_POSITIVE);
        for (int kind = GNN_SAMPLE_NODE; kind <= GNN_SAMPLE_FASTGCN; kind++) {
            s.options = (gnn_sampler_options){.kind = (gnn_sampler_kind)kind, .layers = 2, .batch = 9,
                                              .fanout = {n, INT64_MAX}};
            place p = place_open(_i, 2, seed);
            sample all = draw_subject(&p, &s, 4, 0);
            for (int64_t b = 0; b < all.count; b++)
                for (int l = 0; l < 2; l++) {
                    const gnn_minibatch *m = &all.minibatch[b];
                    const sp_csr *block = &m->block[l];
                    for (int64_t i = 0; i < block->rows; i++) {
                        ck_assert_int_eq(test_row_length(block, i), test_row_length(&s.a, m->node[l][i]));
                        for (int64_t k = block->row_offsets[i]; k < block->row_offsets[i + 1]; k++) {
                            const int64_t e = test_find(&s.a, m->node[l][i], m->node[l][block->col_indices[k]]);
                            ck_assert_double_eq_tol(test_value(block, k), test_value(&s.a, e), 1e-14);
                        }
                    }
                }
            free_sample(&p, &all);
            place_close(&p);
        }
        free_subject(host, &s);
    }
}

HOST_TEST(clusters_give_the_graph_between_their_nodes, 1)
{
    test_random random = test_seed(5);
    sp_csr a = test_communities(host, &random, 6, 10, 0.5, 0.05);
    int32_t clusters[60];
    const int32_t wanted[] = {57, 3, 12, 4};
    for (int i = 0; i < 60; i++) clusters[i] = i / 10 * 3; /* numbers in between are empty */
    const gnn_sampler_options options = {.kind = GNN_SAMPLE_CLUSTER, .layers = 2, .batch = 2, .clusters = clusters};
    place p = place_open(_i, 1, 1);
    gnn_sampler *sampler;
    ck_ok(p.context, gnn_sampler_create(p.context, &a, &options, &sampler));
    sample all = draw_pass(&p, sampler, wanted, 4, 0);
    ck_assert_int_eq(all.count, 2);
    ck_assert_int_eq(all.minibatch[0].batch_size, 20);
    ck_assert_int_eq(all.minibatch[1].batch_size, 10);
    int seen[6] = {0};
    for (int64_t b = 0; b < 2; b++) {
        const gnn_minibatch *m = &all.minibatch[b];
        for (int64_t i = 0; i < m->batch_size; i++) {
            seen[m->batch[i] / 10]++;
            ck_assert_int_eq(m->batch[i] % 10, i % 10);
        }
        for (int64_t i = 0; i < m->batch_size; i++)
            for (int64_t j = 0; j < m->batch_size; j++)
                ck_assert((test_find(&a, m->batch[i], m->batch[j]) >= 0) == (test_find(&m->block[0], i, j) >= 0));
        ck_assert_int_eq(m->edges, 2 * m->block[1].nnz);
    }
    ck_assert(seen[0] == 10 && seen[1] == 10 && seen[5] == 10);
    free_sample(&p, &all);
    gnn_sampler_free(sampler);
    place_close(&p);
    sp_csr_free(host, &a);
}

HOST_TEST(graphs_without_edges_and_passes_without_nodes_are_sampled, 1)
{
    int32_t *nodes = numbers(5), clusters[5] = {0, 0, 1, 1, 1};
    for (int kind = GNN_SAMPLE_NODE; kind <= GNN_SAMPLE_CLUSTER; kind++)
        for (int64_t n = 0; n <= 5; n += n ? 4 : 1) {
            const double zeros[25] = {0};
            sp_csr a = test_from_dense(host, n, n, zeros, SP_F32);
            const gnn_sampler_options options = {.kind = (gnn_sampler_kind)kind, .layers = 3, .batch = 100,
                                                 .fanout = {2, 2, 2}, .clusters = clusters};
            place p = place_open(_i, 1, 1);
            gnn_sampler *sampler;
            gnn_minibatch none;
            ck_ok(p.context, gnn_sampler_create(p.context, &a, &options, &sampler));
            ck_ok(p.context, gnn_sampler_next(sampler, &none)); /* before any pass */
            ck_assert_int_eq(none.layers, 0);
            sample empty = draw_pass(&p, sampler, NULL, 0, 0), all = draw_pass(&p, sampler, nodes, n, 0);
            ck_assert_int_eq(empty.count, 0);
            ck_assert_int_eq(all.count, n > 0);
            for (int l = 0; l < 3 && n > 0; l++) {
                const sp_csr *block = &all.minibatch[0].block[l];
                ck_assert(block->rows == n && block->cols == n && block->nnz == 0);
            }
            free_sample(&p, &empty);
            free_sample(&p, &all);
            gnn_sampler_free(sampler);
            place_close(&p);
            sp_csr_free(host, &a);
        }
    free(nodes);
}

HOST_TEST(impossible_requests_are_refused, 1)
{
    const double entries[9] = {0, 1, 1, 1, 0, 0, 1, 1, 0};
    sp_csr a = test_from_dense(host, 3, 3, entries, SP_F32), wide = test_from_dense(host, 1, 9, entries, SP_F32);
    const int32_t bad[] = {0, -1, 0}, high[] = {0, 3, 0};
    const gnn_sampler_options good = {.kind = GNN_SAMPLE_NODE, .layers = 2, .fanout = {2, 2}, .batch = 2};
    gnn_sampler_options wrong[10];
    for (int i = 0; i < 10; i++) wrong[i] = good;
    wrong[0].layers = 0;
    wrong[1].layers = GNN_MAX_LAYERS + 1;
    wrong[2].fanout[1] = 0;
    wrong[3].fanout[0] = -1;
    wrong[4].batch = 0;
    wrong[5].bulk = -1;
    wrong[6].kind = (gnn_sampler_kind)4;
    wrong[7].kind = wrong[8].kind = wrong[9].kind = GNN_SAMPLE_CLUSTER;
    wrong[8].clusters = bad;
    wrong[9].clusters = high;
    place p = place_open(_i, 1, 1);
    gnn_sampler *sampler;
    for (int i = 0; i < 10; i++) {
        sampler = (gnn_sampler *)1;
        ck_assert_int_eq(gnn_sampler_create(p.context, &a, &wrong[i], &sampler), SP_ERROR_ARGUMENT);
        ck_assert_ptr_null(sampler);
        ck_assert(sp_last_error(p.context)[0] != '\0');
    }
    ck_assert_int_eq(gnn_sampler_create(p.context, &wide, &good, &sampler), SP_ERROR_ARGUMENT);
    ck_ok(p.context, gnn_sampler_create(p.context, &a, &good, &sampler));
    ck_assert_int_eq(gnn_sampler_begin(sampler, (int32_t[]){0, 3}, 2, 1, 0), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_sampler_begin(sampler, (int32_t[]){0, -1}, 2, 1, 0), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_sampler_begin(sampler, (int32_t[]){0, 1, 0}, 3, 1, 0), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(p.context), "node 0 is to be sampled for twice");
    ck_assert_int_eq(gnn_sampler_begin(sampler, NULL, 1, 1, 0), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_sampler_begin(sampler, NULL, -1, 1, 0), SP_ERROR_ARGUMENT);
    gnn_sampler_free(sampler);
    place_close(&p);
    test_free(host, &a, &wide);
}

/* Fails each allocation in turn: a bulk that finds no memory is tried again in halves, so that many runs succeed, and
 * with the minibatches that they would have given; those that do not leave nothing behind. */
HOST_TEST(every_failed_allocation_is_survived, 1)
{
    for (int kind = GNN_SAMPLE_NODE; kind <= GNN_SAMPLE_CLUSTER; kind++) {
        test_random random = test_seed(3);
        subject s = {.nodes = numbers(40), .count = 40, .clusters = numbers(40), .name = "failures"};
        s.a = test_matrix(host, &random, 40, 40, 0.2, SP_F32, TEST_POSITIVE);
        s.options = (gnn_sampler_options){.kind = (gnn_sampler_kind)kind, .layers = 2, .batch = 6, .bulk = 4,
                                          .fanout = {3, 3}, .clusters = s.clusters, .by_value = true};
        place whole = place_open(0, 1, 1);
        sample reference = draw_subject(&whole, &s, 4, 0);
        int64_t succeeded = 0, failed = 0;
        for (int64_t fail = 0; succeeded == 0 || fail < 400; fail++) {
            test_heap heap = {.fail_at = -1};
            place p = {.context = test_heap_context(&heap, 0, 1)};
            gnn_sampler *sampler = NULL;
            const int64_t blocks = heap.live_blocks;
            heap.fail_at = heap.allocations + fail;
            sp_status status = gnn_sampler_create(p.context, &s.a, &s.options, &sampler);
            if (status == SP_OK) status = gnn_sampler_begin(sampler, s.nodes, s.count, 1, 0);
            for (int64_t b = 0; status == SP_OK && b < reference.count; b++) {
                gnn_minibatch m;
                status = gnn_sampler_next(sampler, &m);
                if (status != SP_OK) break;
                ck_assert_int_eq(m.edges, reference.minibatch[b].edges);
                ck_assert_mem_eq(m.batch, reference.minibatch[b].batch, (size_t)m.batch_size * sizeof *m.batch);
                gnn_minibatch_free(p.context, &m);
            }
            gnn_sampler_free(sampler);
            ck_assert_int_eq(heap.live_blocks, blocks);
            ck_assert(status == SP_OK || status == SP_ERROR_HOST_MEMORY);
            failed += status != SP_OK;
            succeeded += status == SP_OK;
            place_close(&p);
        }
        ck_assert_int_gt(failed, 3);
        free_sample(&whole, &reference);
        place_close(&whole);
        free_subject(host, &s);
    }
}

const test_entry distribution_tests[] = {
    CASE("structure", 120),
    ON_DEVICES(clusters_give_the_graph_between_their_nodes),
    CASE("distribution", 120),
    ON_DEVICES(all_sets_of_neighbours_are_equally_likely),
    ON_DEVICES(neighbours_by_value_are_successive_draws),
    ON_DEVICES(nodes_of_a_layer_are_successive_draws_by_squared_weights),
    ON_DEVICES(node_wise_sums_are_estimated_without_bias),
    ON_DEVICES(layer_wise_weights_are_without_bias),
    CASE("edges", 120),
    ON_DEVICES(large_fan_outs_give_whole_neighbourhoods),
    ON_DEVICES(graphs_without_edges_and_passes_without_nodes_are_sampled),
    ON_DEVICES(impossible_requests_are_refused),
    ONCE(every_failed_allocation_is_survived),
    {0},
};
