/* test_gnn_train: weights of classes in the loss. */
#include <math.h>
#include <string.h>

#include "gnn_train_shared.h"

/* As nn.CrossEntropyLoss(weight) of PyTorch has it: Σ w·loss / Σ w over the training nodes, by the probabilities that
 * the trainer predicts. */
static double weighted_loss(subject *s, const gnn_data *data, const double *weight)
{
    static float scores[NODES * CLASSES];
    int32_t classes[NODES];
    double sum = 0, all = 0;
    ck_ok(s->context, gnn_trainer_predict(s->trainer, classes, NULL, scores));
    for (int64_t i = 0; i < NODES; i++) {
        if (data->split[i] != GNN_TRAIN) continue;
        sum -= weight[data->labels[i]] * log((double)scores[i * CLASSES + data->labels[i]]);
        all += weight[data->labels[i]];
    }
    return sum / all;
}

/* Of class 0 there remain `left` training nodes. */
static void make_rare(gnn_data *data, int left)
{
    for (int64_t i = 0; i < NODES; i++)
        if (data->labels[i] == 0 && data->split[i] == GNN_TRAIN && left-- <= 0) data->split[i] = GNN_UNUSED;
}

static void balance(const gnn_data *data, double *weight)
{
    double size[CLASSES] = {0};
    for (int64_t i = 0; i < NODES; i++)
        if (data->split[i] == GNN_TRAIN) size[data->labels[i]]++;
    for (int c = 0; c < CLASSES; c++) weight[c] = size[c] > 0 ? 1 / size[c] : 0;
}

TEST(losses_are_weighted_by_classes)
{
    static const double given[CLASSES] = {0.5, 0, 3, 2};
    gnn_data data = make_data(host, true, false);
    make_rare(&data, 2);
    for (int sampled = 0; sampled < 2; sampled++)
        for (int balanced = 0; balanced < 2; balanced++) {
            gnn_trainer_options options = usual(GNN_SAGE);
            double weight[CLASSES];
            gnn_epoch before, epoch;
            bool done;
            memcpy(weight, given, sizeof given);
            if (balanced) balance(&data, weight);
            options.model.dropout = options.model.input_dropout = 0;
            options.sampled = sampled;
            options.sampler.fanout[0] = options.sampler.fanout[1] = NODES;
            options.optimizer.rate = 1e-20;
            options.balance_classes = balanced;
            options.class_weights = balanced ? NULL : given;
            subject s = make_subject(_i, &data, &options, 3);
            for (int restart = 0; restart < 2; restart++) { /* with another split */
                ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &before));
                ck_assert_double_eq_tol(before.split_loss[GNN_TRAIN], weighted_loss(&s, &data, weight), 1e-5);
                ck_ok(s.context, gnn_trainer_epoch(s.trainer, &epoch, &done));
                ck_assert_double_eq_tol(before.split_loss[GNN_TRAIN], epoch.loss, 1e-5);
                ck_ok(host, gnn_data_draw_split(host, &data, 15, 15, 2));
                make_rare(&data, 7 - 7 * restart);
                if (balanced) balance(&data, weight);
                if (restart == 0) ck_ok(s.context, gnn_trainer_restart(s.trainer, 4));
            }
            free_subject(&s);
        }
    gnn_data_free(host, &data);
}

static double recall_of_rare(int device, const gnn_data *data, bool balanced)
{
    gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[60];
    int32_t classes[NODES];
    int64_t found = 0, all = 0;
    options.balance_classes = balanced;
    options.epochs = 10;
    subject s = make_subject(device, data, &options, 3);
    train(&s, 60, epochs);
    ck_ok(s.context, gnn_trainer_predict(s.trainer, classes, NULL, NULL));
    for (int64_t i = 0; i < NODES; i++) {
        all += data->labels[i] == 0;
        found += data->labels[i] == 0 && classes[i] == 0;
    }
    free_subject(&s);
    return (double)found / (double)all;
}

TEST(balanced_classes_let_a_rare_one_be_found)
{
    gnn_data data = make_data(host, true, false);
    make_rare(&data, 2);
    const double plain = recall_of_rare(_i, &data, false), balanced = recall_of_rare(_i, &data, true);
    ck_assert_msg(plain < 0.3 && balanced > 0.7, "%g of the rare class, balanced %g", plain, balanced);
    gnn_data_free(host, &data);
}

TEST(impossible_weights_of_classes_are_refused)
{
    static const double bad[][CLASSES] = {{1, -1, 1, 1}, {1, NAN, 1, 1}, {INFINITY, 1, 1, 1}, {0, 0, 0, 0}};
    gnn_data data = make_data(host, true, false), several = make_data(host, true, true);
    gnn_trainer_options options = usual(GNN_GCN);
    subject s = make_subject(0, &data, &options, 3);
    gnn_trainer *made;
    for (size_t k = 0; k < COUNT(bad); k++) {
        options.class_weights = bad[k];
        ck_assert_int_eq(gnn_trainer_create(s.engine, &data, &options, &made), SP_ERROR_ARGUMENT);
    }
    options.class_weights = (double[CLASSES]){1, 1, 1, 1};
    ck_assert_int_eq(gnn_trainer_create(s.engine, &several, &options, &made), SP_ERROR_ARGUMENT);
    options.balance_classes = true;
    ck_assert_int_eq(gnn_trainer_create(s.engine, &data, &options, &made), SP_ERROR_ARGUMENT);
    ck_assert_ptr_null(made);
    free_subject(&s);
    gnn_data_free(host, &data);
    gnn_data_free(host, &several);
}

const test_entry weights_tests[] = {
    CASE_WITH("weights of classes", 300, open_host, close_host),
    ON_DEVICES(losses_are_weighted_by_classes),
    ON_DEVICES(balanced_classes_let_a_rare_one_be_found),
    ONCE(impossible_weights_of_classes_are_refused),
    {0},
};
