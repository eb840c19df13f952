/* test_gnn_model: layers and their gradients against the formulas. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_model_shared.h"

/* Of one kind of layer, every number of layers, shape and kind of features, with and without dropout. */
static void check_layer(int device, gnn_layer layer, bool maxk)
{
    sp_context *host = test_context(0, 1);
    uint64_t seed = 1000 * ((uint64_t)layer + 1);
    runner r = open_runner(device);
    kinks = differences = 0;
    for (int layers = maxk ? 2 : 1; layers <= MOST_LAYERS; layers++)
        for (int kind = 0; kind < SHAPES; kind++)
            for (int variant = 0; variant < (layer == GNN_SAGE_MAX ? 1 : 3); variant++)
                for (int64_t c = 0; c < 2 * test_cases(2); c++) {
                    example e = draw_example(host, seed++, layer, layers, (shape)kind, variant,
                                             (c % 2 ? DROPOUT : 0) | (maxk ? MAXK : 0));
                    load_runner(&r, &e);
                    check_forward(&r, &e);
                    check_gradients(&r, &e);
                    unload_runner(&r);
                    free_example(host, &e);
                }
    ck_assert_msg(kinks * 100 <= differences, "%lld of %lld differences cross a kink", (long long)kinks,
                  (long long)differences);
    free_runner(&r);
    sp_context_destroy(host);
}

TEST(gcn_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_GCN, false); }
TEST(sage_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_SAGE, false); }
TEST(sage_max_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_SAGE_MAX, false); }
TEST(gin_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_GIN, false); }
TEST(gat_and_its_gradients_follow_the_formula) { check_layer(_i, GNN_GAT, false); }
TEST(maxk_and_its_gradients_follow_the_formula)
{
    check_layer(_i, GNN_GCN, true);
    check_layer(_i, GNN_SAGE, true);
    check_layer(_i, GNN_GIN, true);
}

/* Norms, residuals and jumps in all company: drawn, but every norm with every jump. */
static void check_between(int device, gnn_layer layer)
{
    sp_context *host = test_context(0, 1);
    runner r = open_runner(device);
    kinks = differences = 0;
    for (uint64_t c = 1; c <= 24 * (uint64_t)test_cases(3); c++) {
        test_random random = test_seed(1000 * (uint64_t)layer + c);
        const int layers = 1 + (int)test_below(&random, MOST_LAYERS);
        const bool kept = layer != GNN_SAGE_MAX && layer != GNN_GAT, training = test_below(&random, 2);
        const int variant = layer == GNN_SAGE_MAX ? 0 : (int)test_below(&random, 3);
        const gnn_jump jump = (gnn_jump)(c / 3 % 4);
        const bool maxk = kept && (layers > 1 || jump != GNN_JUMP_NONE) && test_below(&random, 3) == 0;
        example e = draw_example(host, 7000 + c, layer, layers, (shape)test_below(&random, SHAPES), variant,
                                 (test_below(&random, 2) ? DROPOUT : 0) | (maxk ? MAXK : 0));
        e.training = e.training || training;
        e.o.norm = (gnn_norm)(c % 3);
        e.o.residual = test_below(&random, 3) > 0;
        e.o.jump = jump;
        load_runner(&r, &e);
        check_forward(&r, &e);
        check_gradients(&r, &e);
        unload_runner(&r);
        free_example(host, &e);
    }
    ck_assert_msg(kinks * 100 <= 2 * differences, "%lld of %lld differences cross a kink", (long long)kinks,
                  (long long)differences);
    free_runner(&r);
    sp_context_destroy(host);
}

TEST(norms_residuals_and_jumps_follow_their_formulas)
{
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) check_between(_i, (gnn_layer)layer);
}

/* ---- layer by layer -------------------------------------------------------------------------------------- */

enum { WALKED = 333 };

/* A directed graph with a node that receives from all, one without edges, and one that is its own neighbour. */
static sp_csr walked_graph(sp_context *host, test_random *random)
{
    double *numbers = test_zeros((size_t)WALKED * WALKED, sizeof *numbers);
    for (int64_t i = 0; i < WALKED; i++)
        for (int64_t j = 0; j < WALKED; j++)
            if (i != 1 && (i == 40 || test_below(random, 25) == 0)) numbers[i * WALKED + j] = 0.1 + test_unit(random);
    numbers[2 * WALKED + 2] = 0.5;
    sp_csr graph = test_from_dense(host, WALKED, WALKED, numbers, SP_F64);
    free(numbers);
    return graph;
}

/* Wide enough for tiles of BLAS; both orders of products occur. */
static example draw_walked(sp_context *host, test_random *random, gnn_layer layer, int variant, bool single)
{
    static const int64_t widths[] = {3, 16, 33, 100};
    example e = {.sparse = variant > 0};
    const bool kept = layer == GNN_GCN || layer == GNN_SAGE || layer == GNN_GIN;
    e.o = (gnn_model_options){.layer = layer, .layers = 1 + (int)test_below(random, MOST_LAYERS),
                              .inputs = widths[test_below(random, 4)], .outputs = 1 + test_below(random, 9),
                              .hidden = widths[test_below(random, 3)], .heads = 1 + (int)test_below(random, 3),
                              .output_heads = 1 + (int)test_below(random, 2), .norm = (gnn_norm)test_below(random, 3),
                              .residual = test_below(random, 2), .jump = (gnn_jump)test_below(random, 4),
                              .type = single ? SP_DENSE_F32 : SP_DENSE_F64};
    const bool hidden = e.o.layers > 1 || e.o.jump != GNN_JUMP_NONE;
    if (kept && hidden && test_below(random, 3) == 0) e.o.maxk = 1 + test_below(random, e.o.hidden);
    e.o.half = single && layer != GNN_SAGE_MAX && e.o.maxk == 0 && test_below(random, 3) == 0;
    e.o.keep_aggregated = e.o.maxk == 0 && test_below(random, 3) == 0;
    sp_csr graph = walked_graph(host, random);
    for (int i = 0; i < e.o.layers; i++)
        ck_ok(host, gnn_operator(host, &graph, layer, single ? SP_F32 : SP_F64, &e.a[i]));
    sp_csr_free(host, &graph);
    e.x = test_block((size_t)(WALKED * e.o.inputs) * sizeof *e.x);
    for (int64_t k = 0; k < WALKED * e.o.inputs; k++) e.x[k] = (float)(2 * test_unit(random) - 1);
    if (e.sparse)
        e.x_sparse = test_matrix(host, random, WALKED, e.o.inputs, 0.3, single ? SP_F32 : SP_F64,
                                 variant == 2 ? TEST_PATTERN : TEST_SIGNED);
    return e;
}

/* Numbers of any type, without the gaps between rows, as f64. */
static double *numbers_of(runner *r, const sp_dense *x)
{
    double *numbers = test_block((size_t)(x->rows * x->cols + 1) * sizeof *numbers);
    sp_dense here;
    ck_ok(r->context, sp_dense_copy(r->context, x, SP_HOST, &here));
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) {
            const int64_t at = i * here.stride + j;
            if (here.type == SP_DENSE_BF16) {
                const uint32_t bits = (uint32_t)((const uint16_t *)here.values)[at] << 16;
                float wide;
                memcpy(&wide, &bits, sizeof wide);
                numbers[i * x->cols + j] = (double)wide;
            } else {
                numbers[i * x->cols + j] = load_value(here.values, here.type == SP_DENSE_F64 ? SP_F64 : SP_F32, at);
            }
        }
    sp_dense_free(r->context, &here);
    return numbers;
}

/* Sums over neighbours have the same order. BLAS chooses the order of a product by its number of rows (OpenBLAS has
 * other kernels for small ones), and so does CUDA for long rows of A; bf16 may then round the other way. The softmax of
 * GAT multiplies what scores of some 100 lose. */
static void same_numbers(runner *r, const example *e, int64_t rows, const char *what, const sp_dense *whole,
                         const sp_dense *walked)
{
    const double far = e->o.type == SP_DENSE_F64 ? 1e-12 : e->o.half ? 0.05 : e->o.layer == GNN_GAT ? 2e-4 : 2e-5;
    double *expected = numbers_of(r, whole), *found = numbers_of(r, walked), most = 1;
    ck_assert(whole->rows == walked->rows && whole->cols == walked->cols && whole->type == walked->type);
    for (int64_t k = 0; k < whole->rows * whole->cols; k++) most = fmax(most, fabs(expected[k]));
    for (int64_t k = 0; k < whole->rows * whole->cols; k++)
        test_expect(fabs(expected[k] - found[k]) <= far * most,
                    "%s, half %d, kept %d, blocks of %lld: %s %lld is %.17g, not %.17g", describe(e), e->o.half,
                    e->o.keep_aggregated, (long long)rows, what, (long long)k, found[k], expected[k]);
    free(expected);
    free(found);
}

static void walk_in_blocks(runner *r, const example *e, int64_t most, const sp_dense *logits, const sp_dense *hidden)
{
    gnn_host_rows dense = {0}, made = {0}, made_hidden = {0};
    sp_dense x = {0};
    sp_csr sparse = {0};
    int64_t rows = most;
    gnn_walk how = {.matrix = &e->a[0], .rows = &rows, .logits = &made, .hidden = &made_hidden};
    if (e->sparse) how.sparse = &e->x_sparse;
    else {
        ck_ok(r->context, sp_dense_copy(r->context, &r->x.dense, SP_HOST, &x));
        ck_ok(r->context, gnn_host_rows_of(r->engine, &x, &dense));
        how.dense = &dense;
    }
    ck_ok(r->context, gnn_model_walk(r->model, &how));
    ck_assert_int_eq(rows, most);
    same_numbers(r, e, most, "logit", logits, &made.here);
    if (hidden) same_numbers(r, e, most, "hidden number", hidden, &made_hidden.here);
    else ck_assert(!made_hidden.here.values);
    gnn_host_rows_free(r->engine, &dense);
    gnn_host_rows_free(r->engine, &made);
    gnn_host_rows_free(r->engine, &made_hidden);
    sp_dense_free(r->context, &x);
    sp_csr_free(r->context, &sparse);
}

TEST(a_pass_layer_by_layer_in_blocks_of_rows_gives_the_numbers_of_the_whole_graph)
{
    static const int64_t blocks[] = {WALKED, 97, 32, 1};
    sp_context *host = test_context(0, 1);
    runner r = open_runner(_i);
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (uint64_t c = 0; c < 9 * (uint64_t)test_cases(1); c++) {
            const uint64_t seed = 9000 + 1000 * (uint64_t)layer + c;
            test_random random = test_seed(seed);
            const int variant = layer == GNN_SAGE_MAX ? 0 : (int)(c % 3);
            example e = draw_walked(host, &random, (gnn_layer)layer, variant, c % 4 > 0);
            const sp_dense *logits, *hidden;
            sp_dense kept_logits, kept_hidden = {0};
            e.seed = seed;
            load_runner(&r, &e);
            ck_ok(r.context, gnn_model_forward(r.model, r.block, &r.x, false, &logits));
            hidden = gnn_model_hidden(r.model);
            ck_ok(r.context, sp_dense_copy(r.context, logits, SP_HOST, &kept_logits));
            if (hidden) ck_ok(r.context, sp_dense_copy(r.context, hidden, SP_HOST, &kept_hidden));
            for (int k = 0; k < (c == 0 ? 4 : 3); k++)
                walk_in_blocks(&r, &e, blocks[k], &kept_logits, hidden ? &kept_hidden : NULL);
            sp_dense_free(r.context, &kept_logits);
            sp_dense_free(r.context, &kept_hidden);
            unload_runner(&r);
            free_example(host, &e);
        }
    free_runner(&r);
    sp_context_destroy(host);
}

const test_entry layers_tests[] = {
    CASE("formulas", 300),
    ON_DEVICES(gcn_and_its_gradients_follow_the_formula),
    ON_DEVICES(sage_and_its_gradients_follow_the_formula),
    ON_DEVICES(sage_max_and_its_gradients_follow_the_formula),
    ON_DEVICES(gin_and_its_gradients_follow_the_formula),
    ON_DEVICES(gat_and_its_gradients_follow_the_formula),
    ON_DEVICES(maxk_and_its_gradients_follow_the_formula),
    ON_DEVICES(norms_residuals_and_jumps_follow_their_formulas),
    ON_DEVICES(a_pass_layer_by_layer_in_blocks_of_rows_gives_the_numbers_of_the_whole_graph),
    {0},
};
