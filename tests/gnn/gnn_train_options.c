/* test_gnn_train: schedules of the learning rate, and weights of classes in the loss. */
#include <math.h>
#include <string.h>

#include "gnn_train_shared.h"

enum { EPOCHS = 60 };

/* Trains to the end, and leaves each epoch's figures. */
static int64_t train_with(int device, const gnn_data *data, const gnn_trainer_options *options, gnn_epoch *epochs)
{
    subject s = make_subject(device, data, options, 3);
    const int64_t count = train(&s, EPOCHS, epochs);
    free_subject(&s);
    return count;
}

static void expect_rate(const gnn_epoch *epoch, double rate)
{
    test_expect(fabs(epoch->rate - rate) <= 1e-12 * rate, "epoch %lld: a rate of %.17g, not %.17g",
                (long long)epoch->epoch, epoch->rate, rate);
}

TEST(steps_multiply_the_rate_at_their_interval)
{
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[EPOCHS];
    options.epochs = 8;
    options.rate_step = 3;
    options.rate_factor = 0.25;
    ck_assert_int_eq(train_with(_i, &data, &options, epochs), 8);
    for (int e = 0; e < 8; e++) expect_rate(&epochs[e], e < 3 ? 0.01 : e < 6 ? 0.0025 : 0.000625);
    options.rate_step = 0;
    train_with(_i, &data, &options, epochs);
    for (int e = 0; e < 8; e++) expect_rate(&epochs[e], 0.01);
    gnn_data_free(host, &data);
}

/* The rates are those of PyTorch 2.15: CosineAnnealingLR(SGD(..., lr=0.01), T_max=7). */
TEST(cosines_end_near_0_like_those_of_pytorch)
{
    static const double rates[] = {0.01, 0.0095048443395121, 0.00811744900929367, 0.00611260466978157,
                                   0.00388739533021843, 0.00188255099070633, 0.000495155660487905};
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[EPOCHS];
    options.epochs = 7;
    options.schedule = GNN_SCHEDULE_COSINE;
    ck_assert_int_eq(train_with(_i, &data, &options, epochs), 7);
    for (int e = 0; e < 7; e++) expect_rate(&epochs[e], rates[e]);
    options.warmup = 4;
    train_with(_i, &data, &options, epochs);
    for (int e = 0; e < 7; e++) expect_rate(&epochs[e], rates[e] * fmin(1, (e + 1) / 4.0));
    gnn_data_free(host, &data);
}

TEST(plateaus_cut_the_rate_of_the_epochs_after_them)
{
    gnn_data data = make_data(host, false, false);
    for (int every = 1; every <= 2; every++) {
        gnn_trainer_options options = usual(GNN_GCN);
        gnn_epoch epochs[EPOCHS];
        double rate = 0.05, least = INFINITY;
        int waited = 0, cuts = 0;
        options.optimizer.rate = rate;
        options.schedule = GNN_SCHEDULE_PLATEAU;
        options.rate_step = 4;
        options.rate_factor = 0.5;
        options.evaluate_every = every;
        ck_assert_int_eq(train_with(_i, &data, &options, epochs), EPOCHS);
        for (int e = 0; e < EPOCHS; e++) {
            const double loss = epochs[e].split_loss[GNN_VALIDATION];
            expect_rate(&epochs[e], rate);
            waited++;
            if (isnan(loss)) continue; /* not looked at */
            if (loss < least) waited = 0;
            if (loss < least) least = loss;
            if (waited < 4) continue;
            waited = 0;
            rate /= 2;
            cuts++;
        }
        ck_assert_int_ge(cuts, 2);
    }
    gnn_data_free(host, &data);
}

TEST(schedules_that_say_nothing_are_refused)
{
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    subject s = make_subject(0, &data, &options, 3);
    gnn_trainer *made;
    options.schedule = (gnn_schedule)3;
    ck_assert_int_eq(gnn_trainer_create(s.engine, &data, &options, &made), SP_ERROR_ARGUMENT);
    options.schedule = GNN_SCHEDULE_PLATEAU;
    ck_assert_int_eq(gnn_trainer_create(s.engine, &data, &options, &made), SP_ERROR_ARGUMENT);
    options.rate_step = 3; /* and a factor of 0 */
    ck_assert_int_eq(gnn_trainer_create(s.engine, &data, &options, &made), SP_ERROR_ARGUMENT);
    options.rate_factor = 0.5;
    options.warmup = -1;
    ck_assert_int_eq(gnn_trainer_create(s.engine, &data, &options, &made), SP_ERROR_ARGUMENT);
    ck_assert_ptr_null(made);
    free_subject(&s);
    gnn_data_free(host, &data);
}

/* ---- weights of classes ---------------------------------------------------------------------------------- */

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

const test_entry options_tests[] = {
    CASE_WITH("schedules", 300, open_host, close_host),
    ON_DEVICES(steps_multiply_the_rate_at_their_interval),
    ON_DEVICES(cosines_end_near_0_like_those_of_pytorch),
    ON_DEVICES(plateaus_cut_the_rate_of_the_epochs_after_them),
    ONCE(schedules_that_say_nothing_are_refused),
    CASE_WITH("weights of classes", 300, open_host, close_host),
    ON_DEVICES(losses_are_weighted_by_classes),
    ON_DEVICES(balanced_classes_let_a_rare_one_be_found),
    ONCE(impossible_weights_of_classes_are_refused),
    {0},
};
