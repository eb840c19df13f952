/* What the parts of test_gnn_train share. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_train_shared.h"

sp_context *host;

void open_host(void) { host = test_context(0, 2); }

void close_host(void) { sp_context_destroy(host); }

int32_t true_class(int64_t node) { return (int32_t)(node / SIZE); }

/* Feature j belongs to class j % CLASSES: there with probability 0.45 in its class, 0.05 outside. */
static void put_features(sp_context *context, test_random *random, bool sparse, gnn_features *x)
{
    double *numbers = test_zeros((size_t)NODES * FEATURES, sizeof *numbers);
    for (int64_t i = 0; i < NODES; i++)
        for (int64_t j = 0; j < FEATURES; j++)
            numbers[i * FEATURES + j] = test_unit(random) < (j % CLASSES == true_class(i) ? 0.45 : 0.05);
    if (sparse) {
        x->sparse = test_from_dense(context, NODES, FEATURES, numbers, SP_F32);
    } else {
        ck_ok(context, sp_dense_create(context, NODES, FEATURES, SP_DENSE_F32, SP_HOST, &x->dense));
        for (int64_t i = 0; i < NODES * FEATURES; i++) ((float *)x->dense.values)[i] = (float)numbers[i];
    }
    free(numbers);
}

gnn_data make_data(sp_context *context, bool sparse, bool several)
{
    test_random random = test_seed(SEED);
    gnn_data data = {.classes = CLASSES};
    data.graph = test_communities(context, &random, CLASSES, SIZE, 0.15, 0.01);
    put_features(context, &random, sparse, &data.features);
    if (several) ck_ok(context, sp_calloc(context, NODES * CLASSES, 1, (void **)&data.targets));
    else ck_ok(context, sp_alloc(context, NODES, sizeof *data.labels, (void **)&data.labels));
    for (int64_t i = 0; i < NODES; i++) {
        const int32_t class = true_class(i), next = (class + 1) % CLASSES;
        if (!several) data.labels[i] = class;
        else data.targets[i * CLASSES + class] = data.targets[i * CLASSES + next] = 1;
    }
    ck_ok(context, gnn_data_draw_split(context, &data, several ? 60 : 15, several ? 60 : 15, 1));
    ck_ok(context, gnn_data_check(context, &data));
    return data;
}

gnn_trainer_options usual(gnn_layer layer)
{
    return (gnn_trainer_options){
        .model = {.layer = layer, .hidden = 16, .heads = 4, .dropout = 0.3, .input_dropout = 0.2},
        .optimizer = {.rate = 0.01, .decay = 5e-4, .decay_first_layer = true},
        .sampler = {.kind = GNN_SAMPLE_NODE, .fanout = {10, 10}, .batch = 20}, .epochs = 60};
}

subject make_subject(int device, const gnn_data *data, const gnn_trainer_options *options, uint64_t seed)
{
    subject s = {.context = test_context(device, 2)};
    ck_ok(s.context, gnn_engine_create(s.context, seed, &s.engine));
    ck_ok(s.context, gnn_trainer_create(s.engine, data, options, &s.trainer));
    return s;
}

void free_subject(subject *s)
{
    gnn_trainer_free(s->trainer);
    gnn_engine_free(s->engine);
    sp_context_destroy(s->context);
}

int64_t train(subject *s, int64_t most, gnn_epoch *epochs)
{
    bool done = false;
    int64_t count = 0;
    while (!done && count < most) ck_ok(s->context, gnn_trainer_epoch(s->trainer, &epochs[count++], &done));
    return count;
}

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

void same_epochs(const gnn_epoch *a, const gnn_epoch *b, int64_t count)
{
    for (int64_t e = 0; e < count; e++) {
        test_expect(a[e].epoch == b[e].epoch && same_number(a[e].loss, b[e].loss) && a[e].rate == b[e].rate,
                    "epoch %lld: loss %.17g, not %.17g", (long long)a[e].epoch, b[e].loss, a[e].loss);
        for (int k = 0; k < GNN_SPLITS; k++)
            test_expect(same_number(a[e].split_loss[k], b[e].split_loss[k]) &&
                            same_number(a[e].accuracy[k], b[e].accuracy[k]),
                        "epoch %lld, split %d: loss %.17g, not %.17g", (long long)a[e].epoch, k, b[e].split_loss[k],
                        a[e].split_loss[k]);
    }
}

int64_t mixed(int64_t node) { return (node * 77 + 5) % NODES; }

gnn_data make_mixed(sp_context *context, bool sparse, bool several)
{
    gnn_data given = make_data(context, sparse, several), data = {.classes = CLASSES};
    int32_t from[NODES], to[NODES], same[FEATURES];
    for (int32_t i = 0; i < NODES; i++) from[i] = (int32_t)mixed(i);
    for (int32_t i = 0; i < NODES; i++) to[from[i]] = i;
    for (int32_t j = 0; j < FEATURES; j++) same[j] = j;
    ck_ok(context, sp_csr_permute(context, &given.graph, from, to, &data.graph));
    if (sparse) ck_ok(context, sp_csr_permute(context, &given.features.sparse, from, same, &data.features.sparse));
    else ck_ok(context, sp_dense_copy(context, &given.features.dense, SP_HOST, &data.features.dense));
    if (several) ck_ok(context, sp_alloc(context, NODES, CLASSES, (void **)&data.targets));
    else ck_ok(context, sp_alloc(context, NODES, sizeof *data.labels, (void **)&data.labels));
    for (int64_t i = 0; i < NODES; i++) {
        const float *row = (const float *)given.features.dense.values + from[i] * FEATURES;
        if (!sparse) memcpy((float *)data.features.dense.values + i * FEATURES, row, FEATURES * sizeof *row);
        if (several) memcpy(data.targets + i * CLASSES, given.targets + from[i] * CLASSES, CLASSES);
        else data.labels[i] = given.labels[from[i]];
    }
    ck_ok(context, gnn_data_draw_split(context, &data, 15, 15, 1));
    gnn_data_free(context, &given);
    return data;
}
