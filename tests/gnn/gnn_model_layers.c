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

const test_entry layers_tests[] = {
    CASE("formulas", 300),
    ON_DEVICES(gcn_and_its_gradients_follow_the_formula),
    ON_DEVICES(sage_and_its_gradients_follow_the_formula),
    ON_DEVICES(sage_max_and_its_gradients_follow_the_formula),
    ON_DEVICES(gin_and_its_gradients_follow_the_formula),
    ON_DEVICES(gat_and_its_gradients_follow_the_formula),
    ON_DEVICES(maxk_and_its_gradients_follow_the_formula),
    {0},
};
