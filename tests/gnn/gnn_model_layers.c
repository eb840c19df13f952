/* test_gnn_model: layers and their gradients against the formulas. */
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

const test_entry layers_tests[] = {
    CASE("formulas", 300),
    ON_DEVICES(gcn_and_its_gradients_follow_the_formula),
    ON_DEVICES(sage_and_its_gradients_follow_the_formula),
    ON_DEVICES(sage_max_and_its_gradients_follow_the_formula),
    ON_DEVICES(gin_and_its_gradients_follow_the_formula),
    ON_DEVICES(gat_and_its_gradients_follow_the_formula),
    ON_DEVICES(maxk_and_its_gradients_follow_the_formula),
    ON_DEVICES(norms_residuals_and_jumps_follow_their_formulas),
    {0},
};
