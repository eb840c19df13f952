/* Sampled minibatches: their structure against the graph, the same ones whatever the bulk, the threads and the
 * back end, the distributions against exact probabilities, and the edges of what can be asked for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_sampler_shared.h"

/* ---- subjects ----------------------------------------------------------------------------------------- */

/* Values of a matrix for which every row has its diagonal, or none has, or some have. */
static sp_csr random_graph(sp_context *host, test_random *random, int64_t nodes)
{
    const double density = test_unit(random) * test_unit(random);
    const int64_t diagonal = test_below(random, 3);
    const sp_value_type type = test_below(random, 2) ? SP_F32 : SP_F64;
    double *entries = test_zeros((size_t)(nodes * nodes) + 1, sizeof *entries);
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t j = 0; j < nodes; j++)
            if (i == j ? diagonal == 1 || (diagonal == 2 && test_below(random, 2))
                       : test_unit(random) < (i % 7 == 3 ? 0 : i % 11 == 5 ? 0.9 : density))
                entries[i * nodes + j] = test_unit(random) + 0x1p-20;
    sp_csr a = test_from_dense(host, nodes, nodes, entries, type);
    free(entries);
    if (test_below(random, 3) == 0) test_drop_values(host, &a);
    return a;
}

static subject random_subject(sp_context *host, uint64_t seed)
{
    test_random random = test_seed(seed);
    const int64_t nodes = 1 + test_below(&random, test_below(&random, 3) ? 40 : 160);
    subject s = {.a = random_graph(host, &random, nodes)};
    s.options.kind = (gnn_sampler_kind)test_below(&random, 4);
    s.options.layers = (int)(1 + test_below(&random, 4));
    s.options.batch = 1 + test_below(&random, test_below(&random, 2) ? 8 : nodes + 5);
    s.options.bulk = test_below(&random, 5);
    for (int l = 0; l < s.options.layers; l++)
        s.options.fanout[l] = 1 + test_below(&random, test_below(&random, 4) ? 8 : nodes + 2);
    s.nodes = numbers(nodes);
    for (int64_t i = nodes - 1; i > 0; i--) {
        const int64_t j = test_below(&random, i + 1);
        const int32_t swap = s.nodes[i];
        s.nodes[i] = s.nodes[j];
        s.nodes[j] = swap;
    }
    s.count = test_below(&random, nodes + 1);
    s.clusters = numbers(nodes);
    const int64_t groups = 1 + test_below(&random, nodes);
    for (int64_t i = 0; i < nodes; i++) s.clusters[i] = (int32_t)test_below(&random, groups);
    if (s.options.kind == GNN_SAMPLE_CLUSTER) s.options.clusters = s.clusters;
    s.options.by_value = test_below(&random, 2);
    snprintf(s.name, sizeof s.name,
             "seed %llu: %s, %lld of %lld nodes, %lld entries%s, %d layers, fan-outs from %lld, batches of %lld",
             (unsigned long long)seed, kind_names[s.options.kind], (long long)s.count, (long long)nodes,
             (long long)s.a.nnz, s.a.values ? "" : " without values", s.options.layers,
             (long long)s.options.fanout[0], (long long)s.options.batch);
    return s;
}

/* ---- structure ---------------------------------------------------------------------------------------- */

static double magnitude(const sp_csr *a, int64_t i)
{
    double sum = 0;
    for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) sum += fabs(test_value(a, k));
    return sum;
}

/* By value, drawn values are divided by the chance 1 - exp(-value · threshold), with the same threshold in all of a
 * row, which `seen` begins as 0. */
static void check_chance(const subject *s, double is, double was, double *seen)
{
    const double chance = was / is, tolerance = s->a.value_type == SP_F32 ? 1e-2 : 1e-6;
    if (was == 0 && is == 0) return;
    test_expect(is >= was * (1 - 1e-6) && isfinite(is), "%s: %g became %g", s->name, was, is);
    if (chance > 0.999 || chance < 1e-3) return; /* the threshold does not show well */
    const double threshold = -log1p(-chance) / was;
    test_expect(*seen == 0 || fabs(threshold / *seen - 1) < tolerance, "%s: thresholds of %g and %g", s->name, *seen,
                threshold);
    *seen = threshold;
}

static void check_row(const subject *s, const gnn_minibatch *m, int l, int64_t i)
{
    const sp_csr *block = &m->block[l], *a = &s->a;
    const int64_t node = m->node[l][i], fanout = s->options.fanout[m->layers - 1 - l];
    const double tolerance = a->value_type == SP_F32 ? 1e-5 : 1e-12;
    int64_t own = test_find(a, node, node) >= 0, entries = 0;
    const int64_t others = test_row_length(a, node) - own;
    double threshold = 0;
    for (int64_t k = block->row_offsets[i]; k < block->row_offsets[i + 1]; k++) {
        const int32_t col = m->node[l][block->col_indices[k]];
        const int64_t entry = test_find(a, node, col);
        test_expect(entry >= 0, "%s: layer %d holds (%lld, %d), which is no edge", s->name, l, (long long)node, col);
        if (s->options.kind != GNN_SAMPLE_NODE || !a->values) continue;
        if (s->options.by_value && others > fanout && col != node) {
            check_chance(s, test_value(block, k), test_value(a, entry), &threshold);
            continue;
        }
        const double factor = others > fanout && col != node ? (double)others / (double)fanout : 1;
        const double should = test_value(a, entry) * factor;
        test_expect(fabs(test_value(block, k) - should) <= tolerance * should, "%s: layer %d has %g at (%lld, %d)",
                    s->name, l, test_value(block, k), (long long)node, col);
    }
    if (s->options.kind == GNN_SAMPLE_NODE) {
        entries = own + (others < fanout ? others : fanout);
    } else {
        for (int64_t j = 0; j < block->cols; j++) entries += test_find(a, node, m->node[l][j]) >= 0;
        const double sum = magnitude(block, i), should = test_row_length(block, i) ? magnitude(a, node) : 0;
        test_expect(!a->values || fabs(sum - should) <= tolerance * should, "%s: row of %lld sums to %g, not %g",
                    s->name, (long long)node, sum, should);
    }
    test_expect(test_row_length(block, i) == entries, "%s: layer %d has %lld entries of node %lld, not %lld", s->name,
                l, (long long)test_row_length(block, i), (long long)node, (long long)entries);
}

/* How many nodes could be drawn for all rows of the block together. */
static int64_t candidates(const subject *s, const gnn_minibatch *m, int l)
{
    const int64_t n = s->a.rows;
    uint8_t *seen = test_zeros((size_t)n + 1, 1);
    int64_t count = 0;
    for (int64_t i = 0; i < m->block[l].rows; i++) seen[m->node[l][i]] = 2;
    for (int64_t i = 0; i < m->block[l].rows; i++)
        for (int64_t k = s->a.row_offsets[m->node[l][i]]; k < s->a.row_offsets[m->node[l][i] + 1]; k++)
            seen[s->a.col_indices[k]] |= 1;
    for (int64_t j = 0; j < n; j++) count += seen[j] == 1;
    free(seen);
    return count;
}

static void check_columns(const subject *s, const gnn_minibatch *m, int l)
{
    const sp_csr *block = &m->block[l];
    const int64_t fresh = block->cols - block->rows, fanout = s->options.fanout[m->layers - 1 - l];
    const int32_t *above = l + 1 < m->layers ? m->node[l + 1] : m->batch;
    test_expect(block->rows == (l + 1 < m->layers ? m->block[l + 1].cols : m->batch_size), "%s: rows of layer %d",
                s->name, l);
    test_expect(memcmp(m->node[l], above, (size_t)block->rows * sizeof *above) == 0, "%s: own nodes of layer %d",
                s->name, l);
    uint8_t *used = calloc((size_t)(s->a.rows + block->cols) + 1, 1), *twice = used + block->cols;
    ck_assert_ptr_nonnull(used);
    for (int64_t k = 0; k < block->nnz; k++) used[block->col_indices[k]] = 1;
    for (int64_t j = 0; j < block->cols; j++) {
        test_expect(m->node[l][j] >= 0 && m->node[l][j] < s->a.rows && !twice[m->node[l][j]]++,
                    "%s: column %lld of layer %d", s->name, (long long)j, l);
        test_expect(j < block->rows || used[j], "%s: column %lld of layer %d is of no use", s->name, (long long)j, l);
        test_expect(j <= block->rows || m->node[l][j] > m->node[l][j - 1], "%s: order of new nodes in layer %d",
                    s->name, l);
    }
    free(used);
    if (s->options.kind == GNN_SAMPLE_CLUSTER) ck_assert(fresh == 0);
    if (s->options.kind != GNN_SAMPLE_LAYER && s->options.kind != GNN_SAMPLE_FASTGCN) return;
    const int64_t most = candidates(s, m, l);
    test_expect(fresh == (most < fanout ? most : fanout), "%s: layer %d has %lld new nodes of %lld", s->name, l,
                (long long)fresh, (long long)most);
}

static void check_minibatch(sp_context *host, const subject *s, const gnn_minibatch *m)
{
    int64_t edges = 0;
    test_expect(m->layers == s->options.layers, "%s: %d layers", s->name, m->layers);
    for (int l = 0; l < m->layers; l++) {
        const sp_csr *block = &m->block[l];
        test_expect(sp_csr_check(host, block) == SP_OK, "%s: layer %d: %s", s->name, l, sp_last_error(host));
        ck_assert(!block->values == !s->a.values && block->value_type == s->a.value_type);
        check_columns(s, m, l);
        for (int64_t i = 0; i < block->rows; i++) check_row(s, m, l, i);
        edges += block->nnz;
    }
    test_expect(m->edges == edges, "%s: %lld edges, not %lld", s->name, (long long)m->edges, (long long)edges);
}

/* Batches are whole but the last, and hold each node once: those asked for, or all of the clusters that hold one. */
static void check_batches(const subject *s, const sample *all)
{
    const int64_t n = s->a.rows;
    uint8_t *wanted = calloc((size_t)(2 * n) + 1, 1), *cluster = wanted + n;
    const bool clusters = s->options.kind == GNN_SAMPLE_CLUSTER;
    int64_t units = 0;
    ck_assert_ptr_nonnull(wanted);
    for (int64_t i = 0; i < s->count; i++) {
        wanted[s->nodes[i]] = 1;
        cluster[s->clusters[s->nodes[i]]] = 1;
    }
    for (int64_t c = 0; c < n; c++) units += cluster[c];
    for (int64_t i = 0; i < n && clusters; i++) wanted[i] = cluster[s->clusters[i]];
    if (!clusters) units = s->count;
    test_expect(all->count == (units + s->options.batch - 1) / s->options.batch, "%s: %lld minibatches", s->name,
                (long long)all->count);
    for (int64_t b = 0; b < all->count; b++) {
        const gnn_minibatch *m = &all->minibatch[b];
        const bool last = b + 1 == all->count;
        test_expect(clusters || m->batch_size == (last ? s->count - b * s->options.batch : s->options.batch),
                    "%s: minibatch %lld has %lld nodes", s->name, (long long)b, (long long)m->batch_size);
        for (int64_t i = 0; i < m->batch_size; i++)
            test_expect(wanted[m->batch[i]]-- == 1, "%s: node %d comes twice", s->name, m->batch[i]);
    }
    for (int64_t i = 0; i < n; i++) test_expect(!wanted[i], "%s: node %lld never comes", s->name, (long long)i);
    free(wanted);
}

HOST_TEST(minibatches_are_neighbourhoods_in_the_graph, 1)
{
    const int64_t cases = test_cases(300);
    place p = place_open(_i, 2, 1);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        subject s = random_subject(host, seed);
        sample all = draw_subject(&p, &s, s.options.bulk, 0);
        check_batches(&s, &all);
        for (int64_t b = 0; b < all.count; b++) check_minibatch(host, &s, &all.minibatch[b]);
        free_sample(&p, &all);
        free_subject(host, &s);
    }
    place_close(&p);
}

/* ---- sameness ----------------------------------------------------------------------------------------- */

static void same_samples(const subject *s, const sample *x, const sample *y, const char *how)
{
    test_expect(x->count == y->count, "%s: %s: %lld minibatches", s->name, how, (long long)y->count);
    for (int64_t b = 0; b < x->count; b++) {
        const gnn_minibatch *m = &x->minibatch[b], *w = &y->minibatch[b];
        test_expect(m->batch_size == w->batch_size && m->edges == w->edges &&
                        memcmp(m->batch, w->batch, (size_t)m->batch_size * sizeof *m->batch) == 0,
                    "%s: %s: batch %lld", s->name, how, (long long)b);
        for (int l = 0; l < m->layers; l++) {
            const sp_csr *u = &m->block[l], *v = &w->block[l];
            test_expect(u->rows == v->rows && u->cols == v->cols && u->nnz == v->nnz, "%s: %s: shape of layer %d",
                        s->name, how, l);
            test_expect(memcmp(m->node[l], w->node[l], (size_t)u->cols * sizeof *m->node[l]) == 0,
                        "%s: %s: nodes of layer %d", s->name, how, l);
            test_expect(memcmp(u->row_offsets, v->row_offsets, (size_t)(u->rows + 1) * sizeof(int64_t)) == 0 &&
                            memcmp(u->col_indices, v->col_indices, (size_t)u->nnz * sizeof(int32_t)) == 0,
                        "%s: %s: entries of layer %d", s->name, how, l);
            const size_t size = u->value_type == SP_F32 ? 4 : 8;
            test_expect(!u->values || memcmp(u->values, v->values, (size_t)u->nnz * size) == 0,
                        "%s: %s: values of layer %d", s->name, how, l);
        }
    }
}

HOST_TEST(bulks_threads_and_back_ends_give_the_same_minibatches, 1)
{
    const int64_t cases = test_cases(120), bulks[] = {1, 3, 64, 0};
    place p = place_open(0, 1, 1), others[] = {place_open(_i, 2, 1), place_open(_i, 1, 1)};
    for (uint64_t seed = 1000; seed < 1000 + (uint64_t)cases; seed++) {
        subject s = random_subject(host, seed);
        sample reference = draw_subject(&p, &s, 1, 3);
        for (int i = 0; i < 4; i++) {
            char how[64];
            sample all = draw_subject(&others[i % 2], &s, bulks[i], 3);
            snprintf(how, sizeof how, "%d threads, bulks of %d", i % 2 ? 1 : 2, (int)bulks[i]);
            same_samples(&s, &reference, &all, how);
            free_sample(&others[i % 2], &all);
        }
        free_sample(&p, &reference);
        free_subject(host, &s);
    }
    place_close(&p);
    place_close(&others[0]);
    place_close(&others[1]);
}

/* Row 4000 has all columns but one, row 5 two thirds of them, others two. */
static subject long_rows(sp_context *host)
{
    const int64_t n = 9000;
    int32_t *row = malloc((size_t)n * 4 * sizeof *row), *col = malloc((size_t)n * 4 * sizeof *col);
    ck_assert(row && col);
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        if (j != 17) row[count] = 4000, col[count++] = (int32_t)j;
        if (j % 3) row[count] = 5, col[count++] = (int32_t)j;
        row[count] = (int32_t)j;
        col[count++] = (int32_t)((j + 4000) % n);
        row[count] = (int32_t)j;
        col[count++] = (int32_t)((j * 7 + 1) % n);
    }
    subject s = {.nodes = numbers(n), .count = 12, .name = "long rows"};
    ck_ok(host, sp_csr_from_coo(host, &(sp_coo){.rows = n, .cols = n, .count = count, .row_indices = row,
                                                .col_indices = col}, SP_COMBINE_FIRST, false, &s.a));
    s.nodes[9] = 4000;
    free_all(row, col);
    return s;
}

static void check_long_rows(sp_context *host, int device, const subject *s, const char *what)
{
    place p = place_open(0, 1, 5), other = place_open(device, 2, 5);
    sample reference = draw_subject(&p, s, 1, 0), all = draw_subject(&other, s, 2, 0);
    same_samples(s, &reference, &all, what);
    for (int64_t b = 0; b < all.count; b++) {
        ck_ok(host, sp_csr_check(host, &all.minibatch[b].block[0]));
        check_row(s, &all.minibatch[b], 1, 0);
    }
    free_sample(&p, &reference);
    free_sample(&other, &all);
    place_close(&p);
    place_close(&other);
}

/* Rows longer than what is sorted in registers, and than what fits shared memory; more draws than a warp has
 * lanes. */
HOST_TEST(long_rows_give_the_same_on_both_back_ends, 1)
{
    const int64_t fanouts[] = {40, 3000, 8990, 20000};
    subject s = long_rows(host);
    for (int kind = GNN_SAMPLE_NODE; kind <= GNN_SAMPLE_FASTGCN; kind++)
        for (int f = 0; f < 4; f++) {
            s.options = (gnn_sampler_options){.kind = (gnn_sampler_kind)kind, .layers = 2, .batch = 6,
                                              .fanout = {fanouts[f], fanouts[(f + 1) % 4]}};
            check_long_rows(host, _i, &s, kind_names[kind]);
        }
    free_subject(host, &s);
}

/* With many equal values, and with fewer above 0 than are to be drawn. */
HOST_TEST(long_rows_by_value_give_the_same_on_both_back_ends, 1)
{
    const int64_t fanouts[] = {3, 40, 700, 8990};
    test_random random = test_seed(9);
    subject s = long_rows(host);
    for (int f = 0; f < 4; f++) {
        for (int64_t k = 0; k < s.a.nnz; k++)
            ((float *)s.a.values)[k] = f == 2 ? (float)(k % 16 == 0) : (float)test_unit(&random) + 0.01f;
        s.options = (gnn_sampler_options){.kind = GNN_SAMPLE_NODE, .layers = 2, .batch = 6, .by_value = true,
                                          .fanout = {fanouts[f], fanouts[(f + 1) % 3]}};
        check_long_rows(host, _i, &s, "by value");
    }
    free_subject(host, &s);
}

HOST_TEST(passes_and_seeds_differ_and_repeat, 1)
{
    test_random random = test_seed(7);
    subject s = {.nodes = numbers(200), .count = 200, .name = "passes"};
    s.a = test_matrix(host, &random, 200, 200, 0.1, SP_F32, TEST_POSITIVE);
    s.clusters = numbers(200);
    for (int kind = GNN_SAMPLE_NODE; kind <= GNN_SAMPLE_CLUSTER; kind++) {
        s.options = (gnn_sampler_options){.kind = (gnn_sampler_kind)kind, .layers = 2, .batch = 16, .fanout = {4, 4}};
        s.options.clusters = kind == GNN_SAMPLE_CLUSTER ? s.clusters : NULL;
        place p = place_open(_i, 1, 1), other = place_open(_i, 1, 2);
        gnn_sampler *sampler;
        ck_ok(p.context, gnn_sampler_create(p.context, &s.a, &s.options, &sampler));
        sample first = draw_pass(&p, sampler, s.nodes, 200, 0), second = draw_pass(&p, sampler, s.nodes, 200, 1);
        gnn_minibatch left_over;
        ck_ok(p.context, gnn_sampler_begin(sampler, s.nodes, 200, p.seed, 9)); /* and not to its end */
        ck_ok(p.context, gnn_sampler_next(sampler, &left_over));
        sample again = draw_pass(&p, sampler, s.nodes, 200, 0), seed = draw_subject(&other, &s, 4, 0);
        same_samples(&s, &first, &again, "the same pass again");
        ck_assert(memcmp(first.minibatch[0].batch, second.minibatch[0].batch, 16 * sizeof(int32_t)) != 0);
        ck_assert(memcmp(first.minibatch[0].batch, seed.minibatch[0].batch, 16 * sizeof(int32_t)) != 0);
        gnn_sampler_free(sampler);
        ck_assert_int_eq(left_over.layers, 2); /* a minibatch outlives its sampler */
        gnn_minibatch_free(p.context, &left_over);
        free_sample(&p, &first);
        free_sample(&p, &second);
        free_sample(&p, &again);
        free_sample(&other, &seed);
        place_close(&p);
        place_close(&other);
    }
    free_subject(host, &s);
}

/* Batches without a shuffle, and a sampler that outlives its context's other user. */
HOST_TEST(nodes_and_clusters_keep_their_order, 1)
{
    test_random random = test_seed(8);
    subject s = {.nodes = numbers(90), .count = 90, .name = "in order"};
    s.a = test_matrix(host, &random, 90, 90, 0.1, SP_F32, TEST_POSITIVE);
    s.clusters = numbers(90);
    for (int64_t i = 0; i < 90; i++) {
        s.nodes[i] = (int32_t)(i * 37 % 90);
        s.clusters[i] = (int32_t)(i % 9);
    }
    for (int kind = GNN_SAMPLE_NODE; kind <= GNN_SAMPLE_CLUSTER; kind++) {
        const bool clusters = kind == GNN_SAMPLE_CLUSTER;
        s.options = (gnn_sampler_options){.kind = (gnn_sampler_kind)kind, .layers = 1, .batch = clusters ? 2 : 20,
                                          .fanout = {4}, .in_order = true};
        s.options.clusters = clusters ? s.clusters : NULL;
        place p = place_open(_i, 2, 1);
        gnn_sampler *sampler;
        ck_ok(p.context, gnn_sampler_create(p.context, &s.a, &s.options, &sampler));
        sample all = draw_pass(&p, sampler, s.nodes, 90, 3);
        int64_t seen = 0;
        for (int64_t b = 0; b < all.count; b++)
            for (int64_t i = 0; i < all.minibatch[b].batch_size; i++, seen++)
                ck_assert_int_eq(all.minibatch[b].batch[i],
                                 clusters ? seen % 10 * 9 + seen / 10 : s.nodes[seen]);
        ck_assert_int_eq(seen, 90);
        free_sample(&p, &all);
        place_close(&p);
        gnn_sampler_free(sampler);
    }
    free_subject(host, &s);
}

static const test_entry tests[] = {
    CASE("structure", 120),
    ON_DEVICES(minibatches_are_neighbourhoods_in_the_graph),
    ON_DEVICES(bulks_threads_and_back_ends_give_the_same_minibatches),
    ON_DEVICES(long_rows_give_the_same_on_both_back_ends),
    ON_DEVICES(long_rows_by_value_give_the_same_on_both_back_ends),
    ON_DEVICES(passes_and_seeds_differ_and_repeat),
    ON_DEVICES(nodes_and_clusters_keep_their_order),
    {0},
};

int main(void) { return test_run("gnn_sampler", tests, distribution_tests); }
