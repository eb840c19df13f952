/* test_gnn_train: models with many layers, which learn by norms, residuals and jumps. */
#include "gnn_train_shared.h"

/* The share of test nodes that GCN with sixteen layers gets right, after 40 epochs. */
static double deep_accuracy(int device, const gnn_data *data, gnn_trainer_options options)
{
    enum { EPOCHS = 40 };
    gnn_epoch epochs[EPOCHS], best;
    options.model.layers = 16;
    options.epochs = EPOCHS;
    subject s = make_subject(device, data, &options, 2);
    train(&s, EPOCHS, epochs);
    ck_ok(s.context, gnn_trainer_finish(s.trainer));
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &best));
    free_subject(&s);
    return best.accuracy[GNN_TEST];
}

TEST(sixteen_layers_of_gcn_learn_with_norms_and_residuals_only)
{
    gnn_data data = make_data(host, false, false);
    const double plain = deep_accuracy(_i, &data, usual(GNN_GCN));
    ck_assert_msg(plain < 0.6, "%g without them", plain);
    for (int norm = GNN_NORM_BATCH; norm <= GNN_NORM_LAYER; norm++)
        for (int jump = GNN_JUMP_NONE; jump <= GNN_JUMP_MAX; jump++) {
            gnn_trainer_options options = usual(GNN_GCN);
            options.model.norm = (gnn_norm)norm;
            options.model.jump = (gnn_jump)jump;
            options.model.residual = true;
            const double deep = deep_accuracy(_i, &data, options);
            ck_assert_msg(deep > 0.9, "%g with norm %d, jump %d", deep, norm, jump);
        }
    gnn_data_free(host, &data);
}

const test_entry depth_tests[] = {
    CASE_WITH("depth", 300, open_host, close_host),
    ON_DEVICES(sixteen_layers_of_gcn_learn_with_norms_and_residuals_only),
    {0},
};
