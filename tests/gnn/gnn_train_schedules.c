/* test_gnn_train: how the learning rate changes from epoch to epoch. */
#include <math.h>

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

const test_entry schedules_tests[] = {
    CASE_WITH("schedules", 300, open_host, close_host),
    ON_DEVICES(steps_multiply_the_rate_at_their_interval),
    ON_DEVICES(cosines_end_near_0_like_those_of_pytorch),
    ON_DEVICES(plateaus_cut_the_rate_of_the_epochs_after_them),
    ONCE(schedules_that_say_nothing_are_refused),
    {0},
};
