/* Sampled minibatches: their structure against the graph, the same ones whatever the bulk, the threads and the
 * back end, the distributions against exact probabilities, and the edges of what can be asked for. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn.h"

/* ---- subjects ----------------------------------------------------------------------------------------- */

/* Where a test runs. */
typedef struct place {
    sp_context *context;
    gnn_engine *engine;
} place;

static place place_open(int device, int threads, uint64_t seed)
{
    place p = {.context = test_context(device, threads)};
    ck_ok(p.context, gnn_engine_create(p.context, seed, &p.engine));
    return p;
}

static void place_close(place *p)
{
    gnn_engine_free(p->engine);
    sp_context_destroy(p->context);
}

/* A minibatch on the host, each array its own. */
static gnn_minibatch to_host(place *p, gnn_minibatch *m)
{
    const sp_space space = sp_context_is_cuda(p->context) ? SP_DEVICE : SP_HOST;
    gnn_minibatch host = *m;
    for (int l = 0; l < m->layers; l++) {
        const int64_t cols = m->block[l].cols;
        ck_assert(m->block[l].space == space);
        ck_ok(p->context, sp_csr_copy(p->context, &m->block[l], SP_HOST, &host.block[l]));
        host.node[l] = malloc(((size_t)cols + 1) * sizeof *host.node[l]);
        ck_ok(p->context,
              sp_array_copy(p->context, cols, sizeof *host.node[l], host.node[l], SP_HOST, m->node[l], space));
    }
    host.batch = malloc(((size_t)m->batch_size + 1) * sizeof *host.batch);
    ck_ok(p->context,
          sp_array_copy(p->context, m->batch_size, sizeof *host.batch, host.batch, SP_HOST, m->batch, space));
    gnn_minibatch_free(p->engine, m);
    ck_assert(m->layers == 0 && m->batch == NULL);
    return host;
}

static void free_host(place *p, gnn_minibatch *m)
{
    for (int l = 0; l < m->layers; l++) {
        sp_csr_free(p->context, &m->block[l]);
        free(m->node[l]);
    }
    free(m->batch);
}

/* All minibatches of a pass, on the host. */
typedef struct sample {
    int64_t count;
    gnn_minibatch *minibatch;
} sample;

static sample draw_pass(place *p, gnn_sampler *sampler, const int32_t *nodes, int64_t count, int64_t pass)
{
    sample all = {0};
    ck_ok(p->context, gnn_sampler_begin(sampler, nodes, count, pass));
    for (;;) {
        gnn_minibatch next;
        ck_ok(p->context, gnn_sampler_next(sampler, &next));
        if (next.layers == 0) break;
        all.minibatch = realloc(all.minibatch, (size_t)(all.count + 1) * sizeof *all.minibatch);
        ck_assert_ptr_nonnull(all.minibatch);
        all.minibatch[all.count++] = to_host(p, &next);
    }
    return all;
}

static void free_sample(place *p, sample *all)
{
    for (int64_t b = 0; b < all->count; b++) free_host(p, &all->minibatch[b]);
    free(all->minibatch);
}

/* One matrix, what is asked of it, and for which nodes. */
typedef struct subject {
    sp_csr a;
    gnn_sampler_options options;
    int32_t *clusters, *nodes;
    int64_t count;
    char name[160];
} subject;

static int32_t *numbers(int64_t count)
{
    int32_t *list = malloc(((size_t)count + 1) * sizeof *list);
    ck_assert_ptr_nonnull(list);
    for (int64_t i = 0; i < count; i++) list[i] = (int32_t)i;
    return list;
}

/* Values of a matrix for which every row has its diagonal, or none has, or some have. */
static sp_csr random_graph(sp_context *host, test_random *random, int64_t nodes)
{
    const double density = test_unit(random) * test_unit(random);
    const int64_t diagonal = test_below(random, 3);
    const sp_value_type type = test_below(random, 2) ? SP_F32 : SP_F64;
    double *entries = calloc((size_t)(nodes * nodes) + 1, sizeof *entries);
    ck_assert_ptr_nonnull(entries);
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t j = 0; j < nodes; j++)
            if (i == j ? diagonal == 1 || (diagonal == 2 && test_below(random, 2))
                       : test_unit(random) < (i % 7 == 3 ? 0 : i % 11 == 5 ? 0.9 : density))
                entries[i * nodes + j] = test_unit(random) + 0x1p-20;
    sp_csr a = test_from_dense(host, nodes, nodes, entries, type);
    free(entries);
    if (test_below(random, 3) == 0) {
        sp_free(host, a.values);
        a.values = NULL;
    }
    return a;
}

static const char *const kind_names[] = {"node-wise", "LADIES", "FastGCN", "clusters"};

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
    snprintf(s.name, sizeof s.name,
             "seed %llu: %s, %lld of %lld nodes, %lld entries%s, %d layers, fan-outs from %lld, batches of %lld",
             (unsigned long long)seed, kind_names[s.options.kind], (long long)s.count, (long long)nodes,
             (long long)s.a.nnz, s.a.values ? "" : " without values", s.options.layers,
             (long long)s.options.fanout[0], (long long)s.options.batch);
    return s;
}

static void free_subject(sp_context *host, subject *s)
{
    sp_csr_free(host, &s->a);
    free_all(s->clusters, s->nodes);
}

static sample draw_subject(place *p, const subject *s, int64_t bulk, int64_t pass)
{
    gnn_sampler_options options = s->options;
    gnn_sampler *sampler;
    options.bulk = bulk;
    ck_ok(p->context, gnn_sampler_create(p->engine, &s->a, &options, &sampler));
    sample all = draw_pass(p, sampler, s->nodes, s->count, pass);
    gnn_sampler_free(sampler);
    return all;
}

/* ---- structure ---------------------------------------------------------------------------------------- */

/* The entry (i, j), or -1. */
static int64_t find_entry(const sp_csr *a, int64_t i, int64_t j)
{
    for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++)
        if (a->col_indices[k] == j) return k;
    return -1;
}

static int64_t length(const sp_csr *a, int64_t i) { return a->row_offsets[i + 1] - a->row_offsets[i]; }

static double magnitude(const sp_csr *a, int64_t i)
{
    double sum = 0;
    for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) sum += fabs(test_value(a, k));
    return sum;
}

static void check_row(const subject *s, const gnn_minibatch *m, int l, int64_t i)
{
    const sp_csr *block = &m->block[l], *a = &s->a;
    const int64_t node = m->node[l][i], fanout = s->options.fanout[m->layers - 1 - l];
    const double tolerance = a->value_type == SP_F32 ? 1e-5 : 1e-12;
    int64_t own = find_entry(a, node, node) >= 0, entries = 0;
    const int64_t others = length(a, node) - own;
    for (int64_t k = block->row_offsets[i]; k < block->row_offsets[i + 1]; k++) {
        const int32_t col = m->node[l][block->col_indices[k]];
        const int64_t entry = find_entry(a, node, col);
        test_expect(entry >= 0, "%s: layer %d holds (%lld, %d), which is no edge", s->name, l, (long long)node, col);
        if (s->options.kind != GNN_SAMPLE_NODE || !a->values) continue;
        const double factor = others > fanout && col != node ? (double)others / (double)fanout : 1;
        const double should = test_value(a, entry) * factor;
        test_expect(fabs(test_value(block, k) - should) <= tolerance * should, "%s: layer %d has %g at (%lld, %d)",
                    s->name, l, test_value(block, k), (long long)node, col);
    }
    if (s->options.kind == GNN_SAMPLE_NODE) {
        entries = own + (others < fanout ? others : fanout);
    } else {
        for (int64_t j = 0; j < block->cols; j++) entries += find_entry(a, node, m->node[l][j]) >= 0;
        const double sum = magnitude(block, i), should = length(block, i) ? magnitude(a, node) : 0;
        test_expect(!a->values || fabs(sum - should) <= tolerance * should, "%s: row of %lld sums to %g, not %g",
                    s->name, (long long)node, sum, should);
    }
    test_expect(length(block, i) == entries, "%s: layer %d has %lld entries of node %lld, not %lld", s->name, l,
                (long long)length(block, i), (long long)node, (long long)entries);
}

/* How many nodes could be drawn for all rows of the block together. */
static int64_t candidates(const subject *s, const gnn_minibatch *m, int l)
{
    const int64_t n = s->a.rows;
    uint8_t *seen = calloc((size_t)n + 1, 1);
    int64_t count = 0;
    ck_assert_ptr_nonnull(seen);
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

/* Rows longer than what is sorted in registers, and than what fits shared memory; more draws than a warp has
 * lanes. */
HOST_TEST(long_rows_give_the_same_on_both_back_ends, 1)
{
    const int64_t n = 9000, fanouts[] = {40, 3000, 8990, 20000};
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
    ck_ok(host, sp_csr_from_coo(host, n, n, count, row, col, NULL, SP_F32, SP_COMBINE_FIRST, false, &s.a));
    s.nodes[9] = 4000;
    for (int kind = GNN_SAMPLE_NODE; kind <= GNN_SAMPLE_FASTGCN; kind++)
        for (int f = 0; f < 4; f++) {
            s.options = (gnn_sampler_options){.kind = (gnn_sampler_kind)kind, .layers = 2, .batch = 6,
                                              .fanout = {fanouts[f], fanouts[(f + 1) % 4]}};
            place p = place_open(0, 1, 5), other = place_open(_i, 2, 5);
            sample reference = draw_subject(&p, &s, 1, 0), all = draw_subject(&other, &s, 2, 0);
            same_samples(&s, &reference, &all, kind_names[kind]);
            if (f == 0)
                for (int64_t b = 0; b < all.count; b++) {
                    ck_ok(host, sp_csr_check(host, &all.minibatch[b].block[0]));
                    check_row(&s, &all.minibatch[b], 1, 0);
                }
            free_sample(&p, &reference);
            free_sample(&other, &all);
            place_close(&p);
            place_close(&other);
        }
    free_subject(host, &s);
    free_all(row, col);
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
        ck_ok(p.context, gnn_sampler_create(p.engine, &s.a, &s.options, &sampler));
        sample first = draw_pass(&p, sampler, s.nodes, 200, 0), second = draw_pass(&p, sampler, s.nodes, 200, 1);
        gnn_minibatch left_over;
        ck_ok(p.context, gnn_sampler_begin(sampler, s.nodes, 200, 9)); /* and not to its end */
        ck_ok(p.context, gnn_sampler_next(sampler, &left_over));
        sample again = draw_pass(&p, sampler, s.nodes, 200, 0), seed = draw_subject(&other, &s, 4, 0);
        same_samples(&s, &first, &again, "the same pass again");
        ck_assert(memcmp(first.minibatch[0].batch, second.minibatch[0].batch, 16 * sizeof(int32_t)) != 0);
        ck_assert(memcmp(first.minibatch[0].batch, seed.minibatch[0].batch, 16 * sizeof(int32_t)) != 0);
        gnn_sampler_free(sampler);
        ck_assert_int_eq(left_over.layers, 2); /* a minibatch outlives its sampler */
        gnn_minibatch_free(p.engine, &left_over);
        free_sample(&p, &first);
        free_sample(&p, &second);
        free_sample(&p, &again);
        free_sample(&other, &seed);
        place_close(&p);
        place_close(&other);
    }
    free_subject(host, &s);
}

/* ---- distributions ------------------------------------------------------------------------------------ */

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
    double *entries = calloc((size_t)(n * n), sizeof *entries);
    ck_assert_ptr_nonnull(entries);
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
    ck_ok(p.context, gnn_sampler_create(p.engine, a, options, &sampler));
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

HOST_TEST(node_wise_sums_are_estimated_without_bias, 1)
{
    enum { NODES = 30, PASSES = 1500 };
    test_random random = test_seed(11);
    sp_csr a = test_matrix(host, &random, NODES, NODES, 0.4, SP_F32, TEST_SIGNED);
    double x[NODES];
    estimate sums[NODES] = {0};
    for (int j = 0; j < NODES; j++) x[j] = test_unit(&random);
    place p = place_open(_i, 1, 3);
    gnn_sampler *sampler;
    int32_t *nodes = numbers(NODES);
    const gnn_sampler_options options = {.kind = GNN_SAMPLE_NODE, .layers = 1, .batch = 7, .fanout = {4}};
    ck_ok(p.context, gnn_sampler_create(p.engine, &a, &options, &sampler));
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
            ck_ok(p.context, gnn_sampler_create(p.engine, &a, &options, &sampler));
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
                        ck_assert_int_eq(length(block, i), length(&s.a, m->node[l][i]));
                        for (int64_t k = block->row_offsets[i]; k < block->row_offsets[i + 1]; k++) {
                            const int64_t e = find_entry(&s.a, m->node[l][i], m->node[l][block->col_indices[k]]);
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
    ck_ok(p.context, gnn_sampler_create(p.engine, &a, &options, &sampler));
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
                ck_assert((find_entry(&a, m->batch[i], m->batch[j]) >= 0) ==
                          (find_entry(&m->block[0], i, j) >= 0));
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
            ck_ok(p.context, gnn_sampler_create(p.engine, &a, &options, &sampler));
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
        ck_assert_int_eq(gnn_sampler_create(p.engine, &a, &wrong[i], &sampler), SP_ERROR_ARGUMENT);
        ck_assert_ptr_null(sampler);
        ck_assert(sp_last_error(p.context)[0] != '\0');
    }
    ck_assert_int_eq(gnn_sampler_create(p.engine, &wide, &good, &sampler), SP_ERROR_ARGUMENT);
    ck_ok(p.context, gnn_sampler_create(p.engine, &a, &good, &sampler));
    ck_assert_int_eq(gnn_sampler_begin(sampler, (int32_t[]){0, 3}, 2, 0), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_sampler_begin(sampler, (int32_t[]){0, -1}, 2, 0), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_sampler_begin(sampler, (int32_t[]){0, 1, 0}, 3, 0), SP_ERROR_ARGUMENT);
    ck_assert_str_eq(sp_last_error(p.context), "node 0 is to be sampled for twice");
    ck_assert_int_eq(gnn_sampler_begin(sampler, NULL, 1, 0), SP_ERROR_ARGUMENT);
    ck_assert_int_eq(gnn_sampler_begin(sampler, NULL, -1, 0), SP_ERROR_ARGUMENT);
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
                                          .fanout = {3, 3}, .clusters = s.clusters};
        place whole = place_open(0, 1, 1);
        sample reference = draw_subject(&whole, &s, 4, 0);
        int64_t succeeded = 0, failed = 0;
        for (int64_t fail = 0; succeeded == 0 || fail < 400; fail++) {
            test_heap heap = {.fail_at = -1};
            const sp_allocator allocator = test_allocator(&heap);
            const sp_context_options options = {.device = "cpu", .threads = 1, .allocator = &allocator};
            place p = {0};
            gnn_sampler *sampler = NULL;
            ck_assert_int_eq(sp_context_create(&options, &p.context), SP_OK);
            ck_ok(p.context, gnn_engine_create(p.context, 1, &p.engine));
            const int64_t blocks = heap.live_blocks;
            heap.fail_at = heap.allocations + fail;
            sp_status status = gnn_sampler_create(p.engine, &s.a, &s.options, &sampler);
            if (status == SP_OK) status = gnn_sampler_begin(sampler, s.nodes, s.count, 0);
            for (int64_t b = 0; status == SP_OK && b < reference.count; b++) {
                gnn_minibatch m;
                status = gnn_sampler_next(sampler, &m);
                if (status != SP_OK) break;
                ck_assert_int_eq(m.edges, reference.minibatch[b].edges);
                ck_assert_mem_eq(m.batch, reference.minibatch[b].batch, (size_t)m.batch_size * sizeof *m.batch);
                gnn_minibatch_free(p.engine, &m);
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

static const test_entry tests[] = {
    CASE("structure", 120),
    ON_DEVICES(minibatches_are_neighbourhoods_in_the_graph),
    ON_DEVICES(bulks_threads_and_back_ends_give_the_same_minibatches),
    ON_DEVICES(long_rows_give_the_same_on_both_back_ends),
    ON_DEVICES(passes_and_seeds_differ_and_repeat),
    ON_DEVICES(clusters_give_the_graph_between_their_nodes),
    CASE("distribution", 120),
    ON_DEVICES(all_sets_of_neighbours_are_equally_likely),
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

int main(void) { return test_run("gnn_sampler", tests); }
