/* Training on every device: data and their splits, what is learnt full batch and by each sampler, repeatability,
 * saved trainers, what ends a training. The graph is a planted partition: communities whose features say a little. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_train_shared.h"

/* ---- what is learnt ------------------------------------------------------------------------------------ */

enum { MOST_EPOCHS = 200 };

static void learns(int device, const gnn_data *data, const gnn_trainer_options *options, double least,
                   const char *name)
{
    subject s = make_subject(device, data, options, 2);
    gnn_epoch epochs[MOST_EPOCHS], best;
    const int64_t count = train(&s, MOST_EPOCHS, epochs);
    ck_ok(s.context, gnn_trainer_finish(s.trainer));
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &best));
    test_expect(best.accuracy[GNN_TEST] > least, "%s, %s: test accuracy %.3f after %lld epochs, loss %g", name,
                sp_context_device(s.context), best.accuracy[GNN_TEST], (long long)count, epochs[count - 1].loss);
    free_subject(&s);
}

static const char *const layer_names[] = {"GCN", "SAGE", "SAGE max", "GIN", "GAT"};

TEST(every_layer_learns_communities_full_batch)
{
    for (int sparse = 0; sparse < 2; sparse++) {
        gnn_data data = make_data(host, sparse, false);
        for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
            const gnn_trainer_options options = usual((gnn_layer)layer);
            learns(_i, &data, &options, 0.9, layer_names[layer]);
        }
        gnn_data_free(host, &data);
    }
}

TEST(phases_of_minibatches_are_timed_where_that_is_asked_for)
{
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_SAGE);
    gnn_epoch epochs[2][2];
    options.sampled = true;
    for (int timed = 0; timed < 2; timed++) {
        options.phases = timed;
        subject s = make_subject(_i, &data, &options, 3);
        train(&s, 2, epochs[timed]);
        free_subject(&s);
    }
    same_epochs(epochs[0], epochs[1], 2);
    for (int p = 0; p < GNN_PHASES; p++) ck_assert(epochs[0][1].phase[p] == 0 && epochs[1][1].phase[p] > 0);
    const double *phase = epochs[1][1].phase;
    ck_assert(phase[GNN_PHASE_SAMPLE] + phase[GNN_PHASE_GATHER] + phase[GNN_PHASE_STEP] <= epochs[1][1].seconds);
    gnn_data_free(host, &data);
}

TEST(every_layer_learns_communities_by_every_sampler)
{
    static const char *const sampler_names[] = {"node", "layer", "FastGCN", "cluster"};
    gnn_data data = make_data(host, true, false);
    int32_t clusters[NODES];
    char name[64];
    for (int64_t i = 0; i < NODES; i++) clusters[i] = (int32_t)(i / 20);
    for (int kind = GNN_SAMPLE_NODE; kind <= GNN_SAMPLE_CLUSTER; kind++)
        for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
            gnn_trainer_options options = usual((gnn_layer)layer);
            options.sampled = true;
            options.epochs = 25;
            options.sampler = (gnn_sampler_options){.kind = (gnn_sampler_kind)kind, .batch = 20, .fanout = {10, 10},
                                                    .clusters = clusters};
            if (kind == GNN_SAMPLE_LAYER || kind == GNN_SAMPLE_FASTGCN) options.sampler.fanout[0] = 120;
            if (kind == GNN_SAMPLE_LAYER || kind == GNN_SAMPLE_FASTGCN) options.sampler.fanout[1] = 120;
            if (kind == GNN_SAMPLE_CLUSTER) options.sampler.batch = 4;
            snprintf(name, sizeof name, "%s, %s", layer_names[layer], sampler_names[kind]);
            learns(_i, &data, &options, 0.9, name);
        }
    gnn_data_free(host, &data);
}

TEST(every_method_and_maxk_learn)
{
    gnn_data data = make_data(host, false, false);
    for (int method = GNN_ADAM; method <= GNN_SGD; method++) {
        gnn_trainer_options options = usual(GNN_GCN);
        options.optimizer.method = (gnn_method)method;
        if (method == GNN_SGD) options.optimizer.rate = 0.3;
        if (method == GNN_SGD) options.optimizer.beta1 = 0.9;
        learns(_i, &data, &options, 0.9, method == GNN_SGD ? "SGD" : method ? "AdamW" : "Adam");
        options.model.maxk = 4;
        learns(_i, &data, &options, 0.9, "MaxK");
    }
    gnn_data_free(host, &data);
}

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

TEST(nodes_with_several_classes_are_learnt)
{
    gnn_data data = make_data(host, true, true);
    for (int sampled = 0; sampled < 2; sampled++) {
        gnn_trainer_options options = usual(GNN_SAGE);
        options.sampled = sampled;
        learns(_i, &data, &options, 0.9, sampled ? "targets, sampled" : "targets");
    }
    gnn_data_free(host, &data);
}

/* ---- the same again ------------------------------------------------------------------------------------ */

TEST(a_seed_gives_the_same_losses_bit_for_bit)
{
    enum { EPOCHS = 6 };
    gnn_data data = make_data(host, true, false);
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int sampled = 0; sampled < 2; sampled++) {
            gnn_trainer_options options = usual((gnn_layer)layer);
            gnn_epoch epochs[3][EPOCHS];
            options.sampled = sampled;
            options.model.norm = (gnn_norm)(layer % 3);
            options.model.residual = layer % 2;
            options.model.jump = (gnn_jump)(layer % 4);
            for (int run = 0; run < 3; run++) {
                subject s = make_subject(_i, &data, &options, run < 2 ? 7 : 8);
                train(&s, EPOCHS, epochs[run]);
                free_subject(&s);
            }
            same_epochs(epochs[0], epochs[1], EPOCHS);
            ck_assert(epochs[0][0].loss != epochs[2][0].loss); /* another seed */
        }
    gnn_data_free(host, &data);
}

/* After epochs with another seed and another split, full batch and sampled. */
TEST(a_restarted_trainer_is_one_that_was_made_anew)
{
    enum { EPOCHS = 6 };
    gnn_data data = make_data(host, true, false);
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int sampled = 0; sampled < 2; sampled++) {
            gnn_trainer_options options = usual((gnn_layer)layer);
            gnn_epoch before[EPOCHS], anew[EPOCHS], again[EPOCHS];
            options.sampled = sampled;
            options.rate_step = 2;
            options.rate_factor = 0.5;
            ck_ok(host, gnn_data_draw_split(host, &data, 15, 15, 1));
            subject a = make_subject(_i, &data, &options, 7);
            train(&a, EPOCHS, before);
            ck_ok(host, gnn_data_draw_split(host, &data, 18, 12, 2));
            ck_ok(a.context, gnn_trainer_restart(a.trainer, 8));
            ck_assert_int_eq(gnn_trainer_best(a.trainer), 0);
            train(&a, EPOCHS, again);
            subject b = make_subject(_i, &data, &options, 8);
            train(&b, EPOCHS, anew);
            same_epochs(anew, again, EPOCHS);
            ck_assert(before[0].loss != again[0].loss);
            free_subject(&a);
            free_subject(&b);
        }
    gnn_data_free(host, &data);
}

/* Each minibatch is a community, which by its wrong nodes would have other edges inside. */
TEST(clusters_are_those_of_the_nodes_wherever_their_rows_are)
{
    gnn_data given = make_mixed(host, false, false), moved = make_mixed(host, false, false);
    gnn_trainer_options options = usual(GNN_SAGE);
    int32_t clusters[NODES];
    gnn_epoch there, here;
    ck_ok(host, gnn_data_renumber(host, &moved, GNN_ORDER_COMMUNITY));
    for (int64_t i = 0; i < NODES; i++) clusters[i] = true_class(mixed(i));
    options.sampled = true;
    options.sampler = (gnn_sampler_options){.kind = GNN_SAMPLE_CLUSTER, .batch = 1, .clusters = clusters};
    subject a = make_subject(_i, &given, &options, 3), b = make_subject(_i, &moved, &options, 3);
    train(&a, 1, &there);
    train(&b, 1, &here);
    ck_assert_int_gt(there.edges, 0);
    ck_assert_int_eq(there.edges, here.edges);
    free_subject(&a);
    free_subject(&b);
    gnn_data_free(host, &given);
    gnn_data_free(host, &moved);
}

/* Random numbers are the same on both, and in epochs that are replayed: only rounding differs. */
TEST(devices_train_alike)
{
    enum { EPOCHS = 8 };
    for (int way = 0; way < 8; way++) {
        gnn_data data = make_data(host, way & 1, false);
        for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
            gnn_trainer_options options = usual((gnn_layer)layer);
            gnn_epoch cpu[EPOCHS], here[EPOCHS];
            options.sampled = way & 2;
            options.model.norm = way & 4 ? (gnn_norm)(layer % 3) : GNN_NORM_NONE;
            options.model.residual = way & 4;
            options.model.jump = way & 4 ? (gnn_jump)(layer % 4) : GNN_JUMP_NONE;
            options.model.layers = options.model.residual ? 3 : 2;
            options.sampler.fanout[2] = 10;
            subject a = make_subject(0, &data, &options, 3), b = make_subject(_i, &data, &options, 3);
            train(&a, EPOCHS, cpu);
            train(&b, EPOCHS, here);
            for (int e = 0; e < EPOCHS; e++)
                test_expect(fabs(cpu[e].loss - here[e].loss) < 2e-3 * cpu[e].loss, "%s, epoch %d: loss %g, not %g",
                            layer_names[layer], e + 1, here[e].loss, cpu[e].loss);
            free_subject(&a);
            free_subject(&b);
        }
        gnn_data_free(host, &data);
    }
}

/* Without dropout of the features, dense ones (way 0), sparse ones (1), f64 (2), A·X kept (3), sparse ones in f64
 * (4), patterns (5) make little difference. */
TEST(ways_to_hold_features_make_no_difference)
{
    enum { EPOCHS = 5 };
    gnn_epoch first[EPOCHS], other[EPOCHS];
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int way = 0; way < 6; way++) {
            gnn_data data = make_data(host, way == 1 || way > 3, false);
            gnn_trainer_options options = usual((gnn_layer)layer);
            options.model.input_dropout = 0;
            options.model.type = way == 2 || way == 4 ? SP_DENSE_F64 : SP_DENSE_F32;
            if (way == 5) sp_free(host, data.features.sparse.values);
            if (way == 5) data.features.sparse.values = NULL;
            options.model.keep_aggregated = way == 3;
            subject s = make_subject(_i, &data, &options, 3);
            train(&s, EPOCHS, way ? other : first);
            for (int e = 0; way && e < EPOCHS; e++)
                test_expect(fabs(first[e].loss - other[e].loss) < 1e-3 * first[e].loss,
                            "%s, way %d, epoch %d: loss %g, not %g", layer_names[layer], way, e + 1, other[e].loss,
                            first[e].loss);
            free_subject(&s);
            gnn_data_free(host, &data);
        }
}

/* With fan-outs above every degree, no dropout and next to no steps, minibatches have the loss of the whole; more of
 * them than are read at once. */
TEST(minibatches_of_all_neighbours_have_the_loss_of_the_whole)
{
    test_random random = test_seed(SEED);
    gnn_data data = {.classes = 3};
    ck_ok(host, generate_matrix(host, "grid:40,30,100", 1, SP_F32, &data.graph));
    const int64_t nodes = data.graph.rows;
    ck_ok(host, sp_dense_create(host, nodes, 5, SP_DENSE_F32, SP_HOST, &data.features.dense));
    ck_ok(host, sp_alloc(host, nodes, sizeof *data.labels, (void **)&data.labels));
    ck_ok(host, sp_alloc(host, nodes, sizeof *data.split, (void **)&data.split));
    for (int64_t i = 0; i < 5 * nodes; i++) ((float *)data.features.dense.values)[i] = (float)test_unit(&random);
    for (int64_t i = 0; i < nodes; i++) data.labels[i] = (int32_t)test_below(&random, 3);
    memset(data.split, GNN_TRAIN, (size_t)nodes);
    ck_ok(host, gnn_data_check(host, &data));
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
        gnn_trainer_options options = usual((gnn_layer)layer);
        gnn_epoch whole, sampled;
        bool done;
        options.model.dropout = options.model.input_dropout = 0;
        options.optimizer = (gnn_optimizer_options){.method = GNN_SGD, .rate = 1e-20};
        options.sampled = true;
        options.sampler.batch = 1;
        subject s = make_subject(_i, &data, &options, 3);
        ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &whole));
        ck_ok(s.context, gnn_trainer_epoch(s.trainer, &sampled, &done));
        test_expect(fabs(whole.split_loss[GNN_TRAIN] - sampled.loss) < 1e-5, "%s: %.9g, not %.9g", layer_names[layer],
                    sampled.loss, whole.split_loss[GNN_TRAIN]);
        ck_assert(sampled.edges > 2 * nodes);
        free_subject(&s);
    }
    gnn_data_free(host, &data);
}

/* Entries (i, j) with i + j divisible by 3 and i < j go (way 0), or have another weight (way 1). */
static void make_directed(sp_csr *g, int way)
{
    int64_t kept = 0;
    for (int64_t i = 0, e = 0; i < g->rows; i++) {
        for (const int64_t end = g->row_offsets[i + 1]; e < end; e++) {
            const int32_t j = g->col_indices[e];
            const bool odd = i < j && (i + j) % 3 == 0;
            if (odd && way == 0) continue;
            ((float *)g->values)[kept] = ((const float *)g->values)[e] * (odd ? 2 : 1);
            g->col_indices[kept++] = j;
        }
        g->row_offsets[i + 1] = kept;
    }
    g->nnz = kept;
}

/* What a step goes down is the gradient of the loss that is reported, also where edges have a direction. */
TEST(gradients_are_those_of_the_loss_on_directed_graphs)
{
    for (int way = 0; way < 2; way++)
        for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
            gnn_data data = make_data(host, false, false);
            gnn_trainer_options options = usual((gnn_layer)layer);
            gnn_epoch epoch, up, down;
            bool done;
            make_directed(&data.graph, way);
            options.model.type = SP_DENSE_F64;
            options.model.dropout = options.model.input_dropout = options.optimizer.decay = 0;
            options.optimizer.method = GNN_SGD;
            subject s = make_subject(0, &data, &options, 3);
            gnn_model *model = gnn_trainer_model(s.trainer);
            const int64_t size = gnn_model_size(model);
            double *weights = gnn_model_weights(model), *gradients = gnn_model_gradients(model);
            double *start = test_block((size_t)size * sizeof *start);
            memcpy(start, weights, (size_t)size * sizeof *start);
            ck_ok(s.context, gnn_trainer_epoch(s.trainer, &epoch, &done));
            memcpy(weights, start, (size_t)size * sizeof *start);
            for (int64_t k = 0; k < size; k += 1 + size / 20) {
                const double h = 1e-6;
                weights[k] = start[k] + h;
                ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &up));
                weights[k] = start[k] - h;
                ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &down));
                weights[k] = start[k];
                const double slope = (up.split_loss[GNN_TRAIN] - down.split_loss[GNN_TRAIN]) / (2 * h);
                test_expect(fabs(slope - gradients[k]) < 1e-6, "%s, way %d, parameter %lld: %g, not %g",
                            layer_names[layer], way, (long long)k, gradients[k], slope);
            }
            free(start);
            free_subject(&s);
            gnn_data_free(host, &data);
        }
}

/* ---- the course of a training --------------------------------------------------------------------------- */

TEST(patience_ends_a_training_and_the_best_parameters_are_kept)
{
    enum { EPOCHS = 200 };
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[EPOCHS], best;
    options.epochs = EPOCHS;
    options.patience = 4;
    options.optimizer.rate = 0.1; /* overfits soon */
    options.model.dropout = options.model.input_dropout = 0;
    subject s = make_subject(_i, &data, &options, 3);
    const int64_t count = train(&s, EPOCHS, epochs);
    ck_assert_int_lt(count, EPOCHS);
    int64_t lowest = 0;
    for (int64_t e = 0; e < count; e++)
        if (epochs[e].split_loss[GNN_VALIDATION] < epochs[lowest].split_loss[GNN_VALIDATION]) lowest = e;
    ck_assert_int_eq(count, lowest + 1 + options.patience);
    ck_assert_int_eq(gnn_trainer_best(s.trainer), lowest + 1);
    ck_ok(s.context, gnn_trainer_finish(s.trainer));
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &best));
    for (int k = GNN_TRAIN; k < GNN_SPLITS; k++)
        test_expect(fabs(best.split_loss[k] - epochs[lowest].split_loss[k]) < 1e-5, "split %d", k);
    free_subject(&s);
    gnn_data_free(host, &data);
}

/* From epoch 4 on the rate is 0 for all that f32 can tell. */
TEST(the_learning_rate_follows_its_schedule)
{
    enum { EPOCHS = 8 };
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[EPOCHS];
    options.rate_step = 3;
    options.rate_factor = 1e-30;
    subject s = make_subject(_i, &data, &options, 3);
    train(&s, EPOCHS, epochs);
    for (int e = 1; e < EPOCHS; e++)
        ck_assert_msg((epochs[e].split_loss[GNN_TEST] == epochs[e - 1].split_loss[GNN_TEST]) == (e >= 3), "epoch %d",
                      e + 1);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(evaluations_come_at_their_interval_and_at_the_end)
{
    enum { EPOCHS = 8 };
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[EPOCHS], more;
    bool done = false;
    options.epochs = EPOCHS;
    options.evaluate_every = 3;
    subject s = make_subject(_i, &data, &options, 3);
    ck_assert_int_eq(train(&s, EPOCHS + 1, epochs), EPOCHS);
    for (int e = 0; e < EPOCHS; e++) {
        const bool expected = e == 2 || e == 5 || e == 7;
        ck_assert_int_eq(epochs[e].epoch, e + 1);
        ck_assert(isfinite(epochs[e].loss) && isnan(epochs[e].accuracy[GNN_UNUSED]));
        ck_assert(isnan(epochs[e].accuracy[GNN_TEST]) != expected);
    }
    ck_ok(s.context, gnn_trainer_epoch(s.trainer, &more, &done)); /* there is none */
    ck_assert(done && more.epoch == 0);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(losses_are_read_at_their_interval_and_at_the_end)
{
    enum { EPOCHS = 8 };
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch all[EPOCHS], some[EPOCHS];
    options.epochs = EPOCHS;
    subject s = make_subject(_i, &data, &options, 3);
    ck_assert_int_eq(train(&s, EPOCHS, all), EPOCHS);
    free_subject(&s);
    options.loss_every = 3;
    s = make_subject(_i, &data, &options, 3);
    ck_assert_int_eq(train(&s, EPOCHS, some), EPOCHS);
    free_subject(&s);
    for (int e = 0; e < EPOCHS; e++) {
        if (e != 2 && e != 5 && e != 7) ck_assert(isnan(some[e].loss));
        else ck_assert(some[e].loss == all[e].loss);
        ck_assert(some[e].split_loss[GNN_TRAIN] == all[e].split_loss[GNN_TRAIN]);
    }
    gnn_data_free(host, &data);
}

TEST(a_loss_that_is_no_number_ends_the_training)
{
    gnn_data data = make_data(host, false, false);
    for (int sampled = 0; sampled < 2; sampled++) {
        gnn_trainer_options options = usual(GNN_GCN);
        gnn_epoch epoch;
        bool done = false;
        sp_status status = SP_OK;
        options.optimizer.rate = 1e30;
        options.sampled = sampled;
        subject s = make_subject(_i, &data, &options, 3);
        for (int e = 0; status == SP_OK && e < 10; e++) status = gnn_trainer_epoch(s.trainer, &epoch, &done);
        ck_assert_int_eq(status, SP_ERROR_NOT_FINITE);
        ck_assert_ptr_nonnull(strstr(sp_last_error(s.context), "epoch "));
        ck_assert_ptr_nonnull(strstr(sp_last_error(s.context), "a learning rate below 1e+30"));
        free_subject(&s);
    }
    gnn_data_free(host, &data);
}

/* ---- prediction ---------------------------------------------------------------------------------------- */

/* Predictions with probabilities, for trainers of both kinds; the fraction that is right is the accuracy. */
TEST(predictions_are_what_the_accuracy_counts)
{
    for (int several = 0; several < 2; several++) {
        gnn_data data = make_data(host, true, several);
        const gnn_trainer_options options = usual(GNN_GCN);
        gnn_epoch epochs[20], now;
        int32_t classes[NODES];
        uint8_t targets[NODES * CLASSES];
        float scores[NODES * CLASSES];
        subject s = make_subject(_i, &data, &options, 3);
        int64_t right = 0, count = 0;
        train(&s, 20, epochs);
        ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &now));
        ck_ok(s.context, gnn_trainer_predict(s.trainer, classes, targets, scores));
        for (int64_t i = 0; i < NODES; i++) {
            const float *p = scores + i * CLASSES;
            double sum = 0;
            for (int64_t c = 0; c < CLASSES; c++) {
                sum += (double)p[c];
                if (several) ck_assert_int_eq(targets[i * CLASSES + c], p[c] > 0.5f);
                else test_expect(p[c] <= p[classes[i]], "node %lld", (long long)i);
            }
            test_expect(several || fabs(sum - 1) < 1e-5, "node %lld: probabilities sum to %g", (long long)i, sum);
            if (several || data.split[i] != GNN_TEST) continue;
            right += classes[i] == data.labels[i];
            count++;
        }
        test_expect(several || fabs((double)right / (double)count - now.accuracy[GNN_TEST]) < 1e-12,
                    "%lld of %lld right", (long long)right, (long long)count);
        free_subject(&s);
        gnn_data_free(host, &data);
    }
}

/* A model is trained on data as they are, saved, and used on the same data renumbered. */
TEST(predictions_on_renumbered_data_are_those_of_the_nodes)
{
    for (int several = 0; several < 2; several++) {
        gnn_data given = make_mixed(host, true, several), moved = make_mixed(host, true, several);
        const gnn_trainer_options options = usual(GNN_SAGE);
        gnn_epoch epochs[20], there, here;
        int32_t expected[NODES], got[NODES];
        uint8_t targets[NODES * CLASSES], same[NODES * CLASSES];
        float scores[NODES * CLASSES], again[NODES * CLASSES];
        void *bytes;
        int64_t size;
        ck_ok(host, gnn_data_renumber(host, &moved, GNN_ORDER_COMMUNITY));
        subject a = make_subject(_i, &given, &options, 3), b = make_subject(_i, &moved, &options, 4);
        train(&a, 20, epochs);
        ck_ok(a.context, gnn_trainer_save(a.trainer, false, &bytes, &size));
        ck_ok(b.context, gnn_trainer_restore(b.trainer, bytes, size));
        ck_ok(a.context, gnn_trainer_predict(a.trainer, expected, targets, scores));
        ck_ok(b.context, gnn_trainer_predict(b.trainer, got, same, again));
        ck_ok(a.context, gnn_trainer_evaluate(a.trainer, &there));
        ck_ok(b.context, gnn_trainer_evaluate(b.trainer, &here));
        for (int64_t k = 0; k < NODES * CLASSES; k++)
            test_expect(fabsf(scores[k] - again[k]) < 1e-4f, "score %lld: %g, not %g", (long long)k, (double)again[k],
                        (double)scores[k]);
        if (several) ck_assert(memcmp(targets, same, sizeof same) == 0);
        else ck_assert(memcmp(expected, got, sizeof got) == 0);
        for (int s = GNN_TRAIN; s < GNN_SPLITS; s++) ck_assert(there.accuracy[s] == here.accuracy[s]);
        sp_free(a.context, bytes);
        free_subject(&a);
        free_subject(&b);
        gnn_data_free(host, &given);
        gnn_data_free(host, &moved);
    }
}

/* ---- what cannot be ------------------------------------------------------------------------------------ */

CONTEXT_TEST(impossible_options_are_refused, _i, 1)
{
    gnn_data data = make_data(context, false, false);
    const gnn_trainer_options good = usual(GNN_GCN);
    gnn_trainer_options bad[7] = {good, good, good, good, good, good, good};
    gnn_engine *engine;
    gnn_trainer *trainer;
    ck_ok(context, gnn_engine_create(context, 1, &engine));
    bad[0].epochs = -1;
    bad[1].patience = -1;
    bad[2].rate_step = 5;
    bad[3].model.dropout = 1;
    bad[4].optimizer.rate = -1;
    bad[5].sampled = true;
    bad[5].sampler.batch = 0;
    bad[6].loss_every = -1;
    for (int i = 0; i < 7; i++) {
        ck_assert_msg(gnn_trainer_create(engine, &data, &bad[i], &trainer) == SP_ERROR_ARGUMENT, "options %d", i);
        ck_assert_ptr_null(trainer);
    }
    gnn_engine_free(engine);
    gnn_data_free(context, &data);
}

/* Everything a trainer does, with the allocation numbered `fail_at` failing. */
static sp_status whole_life(sp_context *context, const gnn_data *data, const gnn_trainer_options *options)
{
    gnn_engine *engine = NULL;
    gnn_trainer *trainer = NULL;
    gnn_epoch epoch;
    bool done = false;
    void *bytes = NULL;
    int64_t size;
    int32_t classes[NODES];
    sp_status status = gnn_engine_create(context, 1, &engine);
    if (status == SP_OK) status = gnn_trainer_create(engine, data, options, &trainer);
    while (status == SP_OK && !done) status = gnn_trainer_epoch(trainer, &epoch, &done);
    if (status == SP_OK) status = gnn_trainer_save(trainer, false, &bytes, &size);
    if (status == SP_OK) status = gnn_trainer_restore(trainer, bytes, size);
    if (status == SP_OK) status = gnn_trainer_finish(trainer);
    if (status == SP_OK) status = gnn_trainer_predict(trainer, classes, NULL, NULL);
    if (status == SP_OK) status = gnn_trainer_restart(trainer, 4);
    if (status == SP_OK) status = gnn_trainer_epoch(trainer, &epoch, &done);
    sp_free(context, bytes);
    gnn_trainer_free(trainer);
    gnn_engine_free(engine);
    return status;
}

TEST(failing_allocations_leak_nothing)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    gnn_data data = make_data(host, true, false);
    for (int sampled = 0; sampled < 2; sampled++) {
        gnn_trainer_options options = usual(sampled ? GNN_SAGE : GNN_GAT);
        bool failed = true;
        options.epochs = 2;
        options.sampled = sampled;
        options.model.norm = GNN_NORM_BATCH;
        options.model.residual = sampled;
        options.model.jump = GNN_JUMP_MAX;
        options.balance_classes = true;
        for (int64_t n = 0; failed; n++) {
            const int64_t before = heap.live_blocks;
            test_expect(n < 100000, "no end");
            heap.allocations = 0;
            heap.fail_at = n;
            const sp_status status = whole_life(context, &data, &options);
            failed = heap.allocations > n;
            test_expect(status == (failed ? SP_ERROR_HOST_MEMORY : SP_OK) || (sampled && status == SP_OK),
                        "allocation %lld: %s", (long long)n, sp_last_error(context));
            test_expect(heap.live_blocks == before, "allocation %lld: %lld blocks leaked", (long long)n,
                        (long long)(heap.live_blocks - before));
        }
        heap.fail_at = -1;
    }
    gnn_data_free(host, &data);
    sp_context_destroy(context);
}

TEST(data_that_cannot_be_renumbered_for_want_of_memory_stay_as_they_are)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    sp_status status = SP_ERROR_HOST_MEMORY;
    gnn_data given = make_mixed(context, true, false);
    for (int64_t n = 0; status != SP_OK; n++) {
        gnn_data data = make_mixed(context, true, false);
        const int64_t before = heap.live_blocks;
        test_expect(n < 1000, "no end");
        heap.allocations = 0;
        heap.fail_at = n;
        status = gnn_data_renumber(context, &data, GNN_ORDER_COMMUNITY);
        heap.fail_at = -1;
        ck_assert(status == SP_OK || status == SP_ERROR_HOST_MEMORY);
        ck_assert_int_eq(status == SP_OK, data.place != NULL);
        ck_assert_int_eq(heap.live_blocks, before + (status == SP_OK)); /* place */
        if (status != SP_OK) {
            test_same(&given.graph, &data.graph, SEED);
            test_same(&given.features.sparse, &data.features.sparse, SEED);
            ck_assert(memcmp(given.labels, data.labels, NODES * sizeof *data.labels) == 0);
        }
        gnn_data_free(context, &data);
    }
    gnn_data_free(context, &given);
    sp_context_destroy(context);
}

static const test_entry tests[] = {
    CASE_WITH("data", 300, open_host, close_host),
    ONCE(data_that_cannot_be_renumbered_for_want_of_memory_stay_as_they_are),
    CASE_WITH("training", 300, open_host, close_host),
    ON_DEVICES(every_layer_learns_communities_full_batch),
    ON_DEVICES(every_layer_learns_communities_by_every_sampler),
    ON_DEVICES(phases_of_minibatches_are_timed_where_that_is_asked_for),
    ON_DEVICES(every_method_and_maxk_learn),
    ON_DEVICES(sixteen_layers_of_gcn_learn_with_norms_and_residuals_only),
    ON_DEVICES(nodes_with_several_classes_are_learnt),
    ON_DEVICES(a_seed_gives_the_same_losses_bit_for_bit),
    ON_DEVICES(a_restarted_trainer_is_one_that_was_made_anew),
    ON_DEVICES(clusters_are_those_of_the_nodes_wherever_their_rows_are),
    ON_CUDA(devices_train_alike),
    ON_DEVICES(ways_to_hold_features_make_no_difference),
    ON_DEVICES(minibatches_of_all_neighbours_have_the_loss_of_the_whole),
    ONCE(gradients_are_those_of_the_loss_on_directed_graphs),
    ON_DEVICES(patience_ends_a_training_and_the_best_parameters_are_kept),
    ON_DEVICES(the_learning_rate_follows_its_schedule),
    ON_DEVICES(evaluations_come_at_their_interval_and_at_the_end),
    ON_DEVICES(losses_are_read_at_their_interval_and_at_the_end),
    ON_DEVICES(a_loss_that_is_no_number_ends_the_training),
    ON_DEVICES(predictions_are_what_the_accuracy_counts),
    ON_DEVICES(predictions_on_renumbered_data_are_those_of_the_nodes),
    CASE_WITH("saving", 300, open_host, close_host),
    ON_DEVICES(impossible_options_are_refused),
    ONCE(failing_allocations_leak_nothing),
    {0},
};

int main(void)
{
    return test_run("gnn: training", tests, data_tests, layerwise_tests, links_tests, options_tests, saved_tests);
}
