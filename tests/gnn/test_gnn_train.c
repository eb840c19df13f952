/* Training on every device: data and their splits, what is learnt full batch and by each sampler, repeatability,
 * saved trainers, what ends a training. The graph is a planted partition: communities whose features say a little. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gnn/internal.h"
#include "generate.h"
#include "support.h"

/* ---- subjects ------------------------------------------------------------------------------------------ */

enum { CLASSES = 4, SIZE = 60, NODES = CLASSES * SIZE, FEATURES = 22, SEED = 5 };

/* Where data are made and looked at; each test has its own. */
static sp_context *host;

static void open_host(void) { host = test_context(0, 2); }

static void close_host(void) { sp_context_destroy(host); }

static int32_t true_class(int64_t node) { return (int32_t)(node / SIZE); }

/* Feature j belongs to class j % CLASSES: there with probability 0.45 in its class, 0.05 outside. */
static void put_features(sp_context *context, test_random *random, bool sparse, gnn_features *x)
{
    double *numbers = calloc((size_t)NODES * FEATURES, sizeof *numbers);
    ck_assert_ptr_nonnull(numbers);
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

/* Nodes of the same features and edges, whether the features are sparse or not. */
static gnn_data make_data(sp_context *context, bool sparse, bool several)
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

static gnn_trainer_options usual(gnn_layer layer)
{
    return (gnn_trainer_options){
        .model = {.layer = layer, .hidden = 16, .heads = 4, .dropout = 0.3, .input_dropout = 0.2},
        .optimizer = {.rate = 0.01, .decay = 5e-4, .decay_first_layer = true},
        .sampler = {.kind = GNN_SAMPLE_NODE, .fanout = {10, 10}, .batch = 20}, .epochs = 60};
}

/* A trainer with all that it needs. */
typedef struct subject {
    sp_context *context;
    gnn_engine *engine;
    gnn_trainer *trainer;
} subject;

static subject make_subject(int device, const gnn_data *data, const gnn_trainer_options *options, uint64_t seed)
{
    subject s = {.context = test_context(device, 2)};
    ck_ok(s.context, gnn_engine_create(s.context, seed, &s.engine));
    ck_ok(s.context, gnn_trainer_create(s.engine, data, options, &s.trainer));
    return s;
}

static void free_subject(subject *s)
{
    gnn_trainer_free(s->trainer);
    gnn_engine_free(s->engine);
    sp_context_destroy(s->context);
}

/* Epochs until there are no more, at most `most`; how many there were. */
static int64_t train(subject *s, int64_t most, gnn_epoch *epochs)
{
    bool done = false;
    int64_t count = 0;
    while (!done && count < most) ck_ok(s->context, gnn_trainer_epoch(s->trainer, &epochs[count++], &done));
    return count;
}

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static void same_epochs(const gnn_epoch *a, const gnn_epoch *b, int64_t count)
{
    for (int64_t e = 0; e < count; e++) {
        test_expect(a[e].epoch == b[e].epoch && same_number(a[e].loss, b[e].loss),
                    "epoch %lld: loss %.17g, not %.17g", (long long)a[e].epoch, b[e].loss, a[e].loss);
        for (int k = 0; k < GNN_SPLITS; k++)
            test_expect(same_number(a[e].split_loss[k], b[e].split_loss[k]) &&
                            same_number(a[e].accuracy[k], b[e].accuracy[k]),
                        "epoch %lld, split %d: loss %.17g, not %.17g", (long long)a[e].epoch, k, b[e].split_loss[k],
                        a[e].split_loss[k]);
    }
}

/* ---- data ---------------------------------------------------------------------------------------------- */

static void refuses_data(const gnn_data *data, sp_status status, const char *sentence)
{
    ck_assert_int_eq(gnn_data_check(host, data), status);
    ck_assert_msg(strstr(sp_last_error(host), sentence) != NULL, "\"%s\", not \"%s\"", sp_last_error(host), sentence);
}

TEST(the_first_node_that_is_wrong_is_named)
{
    for (int sparse = 0; sparse < 2; sparse++) {
        gnn_data data = make_data(host, sparse, false);
        float *x = sparse ? data.features.sparse.values : data.features.dense.values;
        const int64_t at = sparse ? data.features.sparse.row_offsets[17] : 17 * FEATURES + 3;
        const int64_t last = at + 5 * FEATURES;
        const float kept = x[at], then = x[last];
        x[at] = NAN;
        x[last] = INFINITY;
        refuses_data(&data, SP_ERROR_NOT_FINITE, sparse ? "of node 17 (from 0)" : "feature 3 of node 17 (");
        x[at] = kept;
        x[last] = then;
        data.labels[40] = CLASSES;
        data.labels[50] = -2;
        refuses_data(&data, SP_ERROR_ARGUMENT, "node 40 (from 0) has label 4, but labels are below 4");
        data.labels[40] = true_class(40);
        refuses_data(&data, SP_ERROR_ARGUMENT, "node 50 (from 0) has label -2");
        data.labels[50] = -1;
        data.split[50] = GNN_TEST;
        refuses_data(&data, SP_ERROR_ARGUMENT, "node 50 (from 0) is a test node but has no label");
        data.split[50] = GNN_SPLITS;
        refuses_data(&data, SP_ERROR_ARGUMENT, "node 50 (from 0) is in split 4");
        data.split[50] = GNN_UNUSED;
        ck_ok(host, gnn_data_check(host, &data));
        for (int64_t i = 0; i < NODES; i++) data.split[i] = data.split[i] == GNN_TRAIN ? GNN_UNUSED : data.split[i];
        refuses_data(&data, SP_ERROR_ARGUMENT, "no training nodes");
        gnn_data_free(host, &data);
    }
}

TEST(shapes_that_do_not_fit_are_refused)
{
    gnn_data data = make_data(host, false, true);
    data.features.dense.rows--;
    refuses_data(&data, SP_ERROR_ARGUMENT, "239 rows of features, but the graph has 240 nodes");
    data.features.dense.rows++;
    data.graph.cols++;
    refuses_data(&data, SP_ERROR_ARGUMENT, "240 rows but 241 columns");
    data.graph.cols--;
    data.targets[13 * CLASSES + 2] = 7;
    refuses_data(&data, SP_ERROR_ARGUMENT, "target 2 of node 13 (from 0) is 7");
    data.targets[13 * CLASSES + 2] = 0;
    data.classes = 0;
    refuses_data(&data, SP_ERROR_ARGUMENT, "0 classes");
    data.classes = CLASSES;
    data.graph.col_indices[data.graph.nnz - 1] = NODES;
    ck_assert_int_eq(gnn_data_check(host, &data), SP_ERROR_MATRIX);
    gnn_data_free(host, &data);
}

/* Of magnitudes; entries of a pattern are ones. */
static double row_sum(const gnn_features *x, int64_t row)
{
    const int64_t begin = x->dense.values ? row * x->dense.stride : x->sparse.row_offsets[row];
    const int64_t end = x->dense.values ? begin + x->dense.cols : x->sparse.row_offsets[row + 1];
    const float *values = x->dense.values ? x->dense.values : x->sparse.values;
    double sum = 0;
    for (int64_t e = begin; e < end; e++) sum += values ? fabs((double)values[e]) : 1;
    return sum;
}

TEST(normalised_rows_sum_to_one)
{
    for (int kind = 0; kind < 3; kind++) { /* dense, sparse, a pattern */
        gnn_data data = make_data(host, kind > 0, false);
        sp_csr *sparse = &data.features.sparse;
        if (kind == 0) memset(data.features.dense.values, 0, 2 * FEATURES * sizeof(float));
        if (kind == 0) ((float *)data.features.dense.values)[FEATURES] = -3;
        if (kind == 2) sp_free(host, sparse->values);
        if (kind == 2) sparse->values = NULL;
        double before[NODES];
        for (int64_t i = 0; i < NODES; i++) before[i] = row_sum(&data.features, i);
        ck_ok(host, gnn_data_normalise(host, &data));
        for (int64_t i = 0; i < NODES; i++) {
            const double sum = row_sum(&data.features, i);
            test_expect(before[i] == 0 ? sum == 0 : fabs(sum - 1) < 1e-6, "row %lld sums to %g", (long long)i, sum);
        }
        gnn_data_free(host, &data);
    }
}

static void count_split(const gnn_data *data, int32_t class, int64_t count[GNN_SPLITS])
{
    memset(count, 0, GNN_SPLITS * sizeof *count);
    for (int64_t i = 0; i < NODES; i++) count[data->split[i]] += data->labels[i] == class;
}

TEST(splits_have_so_many_nodes_of_each_class)
{
    gnn_data data = make_data(host, false, false);
    int64_t count[GNN_SPLITS];
    uint8_t before[NODES];
    for (int64_t i = 0; i < NODES; i++) { /* class 1 has 9 nodes, the others of it no label */
        if (true_class(i) == 1 && i >= SIZE + 9) data.labels[i] = -1;
    }
    ck_ok(host, gnn_data_draw_split(host, &data, 20, 30, 3));
    count_split(&data, 0, count);
    ck_assert(count[GNN_TRAIN] == 20 && count[GNN_VALIDATION] == 30 && count[GNN_TEST] == SIZE - 50);
    count_split(&data, 1, count);
    ck_assert(count[GNN_TRAIN] == 5 && count[GNN_VALIDATION] == 4 && count[GNN_TEST] == 0);
    count_split(&data, -1, count);
    ck_assert_int_eq(count[GNN_UNUSED], SIZE - 9);
    memcpy(before, data.split, NODES);
    ck_ok(host, gnn_data_draw_split(host, &data, 20, 30, 4));
    ck_assert(memcmp(before, data.split, NODES) != 0);
    ck_ok(host, gnn_data_draw_split(host, &data, 20, 30, 3));
    ck_assert(memcmp(before, data.split, NODES) == 0);
    ck_assert_int_eq(gnn_data_draw_split(host, &data, 0, 30, 3), SP_ERROR_ARGUMENT);
    gnn_data_free(host, &data);
}

TEST(every_node_can_be_drawn_for_training)
{
    enum { DRAWS = 400 };
    gnn_data data = make_data(host, false, false);
    int drawn[NODES] = {0};
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        ck_ok(host, gnn_data_draw_split(host, &data, SIZE / 4, 10, seed));
        for (int64_t i = 0; i < NODES; i++) drawn[i] += data.split[i] == GNN_TRAIN;
    }
    for (int64_t i = 0; i < NODES; i++) /* 100 expected, deviation 8.7 */
        test_expect(drawn[i] > 55 && drawn[i] < 145, "node %lld: %d of %d", (long long)i, drawn[i], DRAWS);
    gnn_data_free(host, &data);
}

/* ---- renumbering --------------------------------------------------------------------------------------- */

/* make_data with the nodes mixed: node i is what node i * 77 + 5 was, of 240 nodes. */
static int64_t mixed(int64_t node) { return (node * 77 + 5) % NODES; }

static gnn_data make_mixed(sp_context *context, bool sparse, bool several)
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

static double entry_of(const sp_csr *a, int64_t row, int64_t col)
{
    for (int64_t k = a->row_offsets[row]; k < a->row_offsets[row + 1]; k++)
        if (a->col_indices[k] == col) return test_value(a, k);
    return 0;
}

static double feature_of(const gnn_features *x, int64_t row, int64_t col)
{
    if (!x->dense.values) return entry_of(&x->sparse, row, col);
    return (double)((const float *)x->dense.values)[row * x->dense.stride + col];
}

/* Node i of `given` is row place[i] of `moved`. */
static void is_moved(const gnn_data *given, const gnn_data *moved)
{
    const int32_t *place = moved->place;
    bool taken[NODES] = {false};
    for (int64_t i = 0; i < NODES; i++) {
        const int64_t row = place[i];
        test_expect(row >= 0 && row < NODES && !taken[row], "row %lld", (long long)row);
        taken[row] = true;
        for (int64_t j = 0; j < NODES; j++)
            test_expect(entry_of(&given->graph, i, j) == entry_of(&moved->graph, row, place[j]), "edge %lld %lld",
                        (long long)i, (long long)j);
        for (int64_t j = 0; j < FEATURES; j++)
            test_expect(feature_of(&given->features, i, j) == feature_of(&moved->features, row, j),
                        "node %lld, feature %lld", (long long)i, (long long)j);
        if (given->labels) ck_assert_int_eq(given->labels[i], moved->labels[row]);
        else ck_assert(memcmp(given->targets + i * CLASSES, moved->targets + row * CLASSES, CLASSES) == 0);
        ck_assert_int_eq(given->split[i], moved->split[row]);
    }
}

TEST(renumbered_data_are_the_same_and_their_communities_lie_together)
{
    for (int sparse = 0; sparse < 2; sparse++)
        for (int several = 0; several < 2; several++) {
            gnn_data given = make_mixed(host, sparse, several), moved = make_mixed(host, sparse, several);
            int64_t class_of_row[NODES], changes = 0;
            ck_ok(host, gnn_data_renumber(host, &moved, GNN_ORDER_COMMUNITY));
            ck_ok(host, gnn_data_check(host, &moved));
            is_moved(&given, &moved);
            for (int64_t i = 0; i < NODES; i++) class_of_row[moved.place[i]] = true_class(mixed(i));
            for (int64_t r = 1; r < NODES; r++) changes += class_of_row[r] != class_of_row[r - 1];
            test_expect(changes < NODES / 4, "%lld changes", (long long)changes); /* mixed: 180 */
            ck_ok(host, gnn_data_draw_split(host, &given, 10, 20, 5));
            ck_ok(host, gnn_data_draw_split(host, &moved, 10, 20, 5));
            is_moved(&given, &moved);
            gnn_data_free(host, &given);
            gnn_data_free(host, &moved);
        }
}

TEST(data_that_do_not_gain_keep_their_numbers)
{
    static const char *const specs[] = {"community:40000,350,4000,50,800,80,1",
                                        "community:40000,350,4000,50,800,80,0"};
    gnn_data small = make_mixed(host, true, false);
    ck_ok(host, gnn_data_renumber(host, &small, GNN_ORDER_AUTO));
    ck_ok(host, gnn_data_renumber(host, &small, GNN_ORDER_KEEP));
    ck_assert_ptr_null(small.place);
    ((float *)small.graph.values)[7] = -1;
    ck_assert_int_eq(gnn_data_renumber(host, &small, GNN_ORDER_COMMUNITY), SP_ERROR_ARGUMENT);
    ((float *)small.graph.values)[7] = 1;
    ck_ok(host, gnn_data_renumber(host, &small, GNN_ORDER_COMMUNITY));
    ck_assert_int_eq(gnn_data_renumber(host, &small, GNN_ORDER_COMMUNITY), SP_ERROR_ARGUMENT);
    gnn_data_free(host, &small);
    for (int k = 0; k < 2; k++) { /* large and mixed; large, its communities side by side */
        gnn_data large = {.classes = 2};
        ck_ok(host, generate_matrix(host, specs[k], 3, SP_F32, &large.graph));
        ck_assert_int_ge(large.graph.nnz, 10000000);
        ck_ok(host, sp_dense_create(host, large.graph.rows, 1, SP_DENSE_F32, SP_HOST, &large.features.dense));
        memset(large.features.dense.values, 0, (size_t)large.graph.rows * sizeof(float));
        ck_ok(host, gnn_data_renumber(host, &large, GNN_ORDER_AUTO));
        ck_assert_int_eq(large.place != NULL, k == 0);
        gnn_data_free(host, &large);
    }
}

TEST(models_with_maxk_keep_the_numbers_unless_told_otherwise)
{
    const gnn_model_options relu = {.hidden = 8}, maxk = {.hidden = 8, .maxk = 4};
    ck_assert_int_eq(gnn_order_for(&relu, GNN_ORDER_AUTO), GNN_ORDER_AUTO);
    ck_assert_int_eq(gnn_order_for(&maxk, GNN_ORDER_AUTO), GNN_ORDER_KEEP);
    ck_assert_int_eq(gnn_order_for(&maxk, GNN_ORDER_COMMUNITY), GNN_ORDER_COMMUNITY);
}

TEST(mistakes_in_renumbered_data_name_the_node)
{
    gnn_data data = make_mixed(host, false, false);
    ck_ok(host, gnn_data_renumber(host, &data, GNN_ORDER_COMMUNITY));
    ck_assert_int_ne(data.place[17], 17);
    data.labels[data.place[17]] = CLASSES;
    refuses_data(&data, SP_ERROR_ARGUMENT, "node 17 (from 0) has label 4");
    data.labels[data.place[17]] = 0;
    ((float *)data.features.dense.values)[data.place[17] * FEATURES + 3] = NAN;
    refuses_data(&data, SP_ERROR_NOT_FINITE, "feature 3 of node 17 ");
    gnn_data_free(host, &data);
}

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
    for (int way = 0; way < 4; way++) {
        gnn_data data = make_data(host, way & 1, false);
        for (int layer = GNN_GCN; layer <= GNN_GAT; layer++) {
            gnn_trainer_options options = usual((gnn_layer)layer);
            gnn_epoch cpu[EPOCHS], here[EPOCHS];
            options.sampled = way & 2;
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
            double *start = malloc((size_t)size * sizeof *start);
            ck_assert_ptr_nonnull(start);
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

/* ---- saved trainers ------------------------------------------------------------------------------------ */

TEST(a_restored_trainer_goes_on_as_if_it_had_not_stopped)
{
    enum { BEFORE = 4, AFTER = 5 };
    gnn_data data = make_data(host, true, false);
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int sampled = 0; sampled < 2; sampled++)
            for (int method = GNN_ADAM; method <= GNN_SGD; method++) {
                gnn_trainer_options options = usual((gnn_layer)layer);
                gnn_epoch whole[BEFORE + AFTER], rest[AFTER];
                void *bytes;
                int64_t size;
                options.sampled = sampled;
                options.optimizer.method = (gnn_method)method;
                options.rate_step = 3;
                options.rate_factor = 0.5;
                subject a = make_subject(_i, &data, &options, 7);
                train(&a, BEFORE, whole);
                ck_ok(a.context, gnn_trainer_save(a.trainer, false, &bytes, &size));
                train(&a, AFTER, whole + BEFORE);
                subject b = make_subject(_i, &data, &options, 8); /* the seed is restored too */
                train(&b, 3, rest);
                ck_ok(b.context, gnn_trainer_restore(b.trainer, bytes, size));
                train(&b, AFTER, rest);
                same_epochs(whole + BEFORE, rest, AFTER);
                ck_assert_int_eq(gnn_trainer_best(a.trainer), gnn_trainer_best(b.trainer));
                sp_free(a.context, bytes);
                free_subject(&a);
                free_subject(&b);
            }
    gnn_data_free(host, &data);
}

TEST(saved_options_build_a_trainer_that_predicts_the_same)
{
    gnn_data data = make_data(host, true, false), unlabelled = data;
    gnn_trainer_options options = usual(GNN_GAT);
    gnn_saved saved;
    gnn_epoch epochs[10];
    void *bytes;
    int64_t size;
    int32_t expected[NODES], got[NODES];
    float scores[NODES * CLASSES], again[NODES * CLASSES];
    bool done;
    options.model.normalised = true;
    options.optimizer.decay = 0.125;
    subject a = make_subject(_i, &data, &options, 7);
    train(&a, 10, epochs);
    ck_ok(a.context, gnn_trainer_save(a.trainer, true, &bytes, &size));
    ck_ok(a.context, gnn_trainer_finish(a.trainer));
    ck_ok(a.context, gnn_trainer_predict(a.trainer, expected, NULL, scores));
    ck_ok(a.context, gnn_saved_read(a.context, bytes, size, &saved));
    const gnn_model_options *model = &saved.options.model;
    ck_assert(!saved.several && saved.seed == 7 && saved.options.optimizer.decay == 0.125);
    ck_assert(model->layer == GNN_GAT && model->heads == 4 && model->normalised && !model->half_gather);
    ck_assert(model->inputs == FEATURES && model->outputs == CLASSES);
    unlabelled.labels = NULL;
    unlabelled.split = NULL;
    subject b = make_subject(_i, &unlabelled, &saved.options, 1);
    ck_ok(b.context, gnn_trainer_restore(b.trainer, bytes, size));
    ck_ok(b.context, gnn_trainer_predict(b.trainer, got, NULL, again));
    ck_assert(memcmp(expected, got, sizeof got) == 0);
    ck_assert(memcmp(scores, again, sizeof again) == 0);
    ck_assert_int_eq(gnn_trainer_epoch(b.trainer, epochs, &done), SP_ERROR_ARGUMENT);
    sp_free(a.context, bytes);
    free_subject(&a);
    free_subject(&b);
    gnn_data_free(host, &data);
}

/* As save.c has it: all after the checksum, which is the third word. */
static void set_checksum(char *bytes, int64_t size)
{
    uint64_t sum = 0;
    for (int64_t i = 24; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? (size_t)(size - i) : sizeof word);
        sum = mix64(sum ^ word) + 0x9e3779b97f4a7c15u;
    }
    memcpy(bytes + 16, &sum, sizeof sum);
}

/* A head of version 2 ended before the size of the names. */
static void make_older(char *bytes, int64_t *size)
{
    const int64_t version = 2;
    memmove(bytes + 288, bytes + 296, (size_t)(*size - 296));
    *size -= 8;
    memcpy(bytes + 8, &version, sizeof version);
    memcpy(bytes + 24, size, sizeof *size);
    set_checksum(bytes, *size);
}

TEST(saved_bytes_hold_the_names_of_the_classes)
{
    gnn_data data = make_data(host, true, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    char names[8 * CLASSES] = "";
    size_t used = 0;
    gnn_saved saved;
    gnn_epoch epochs[3], before, after;
    char *bytes, *unnamed;
    int64_t size, shorter;
    for (int c = 0; c < CLASSES; c++) used += (size_t)snprintf(names + used, sizeof names - used, "no %d", c) + 1;
    subject s = make_subject(_i, &data, &options, 7);
    train(&s, 3, epochs);
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &before));
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&unnamed, &shorter));
    ck_ok(s.context, gnn_saved_read(s.context, unnamed, shorter, &saved));
    ck_assert_ptr_null(saved.class_names);
    data.class_names = names;
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    ck_assert_int_eq(size, shorter + (int64_t)used);
    ck_ok(s.context, gnn_saved_read(s.context, bytes, size, &saved));
    ck_assert_ptr_nonnull(saved.class_names);
    ck_assert(memcmp(saved.class_names, names, used) == 0);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size));

    bytes[size - 1] = 'x'; /* the last name does not end */
    set_checksum(bytes, size);
    ck_assert_int_eq(gnn_saved_read(s.context, bytes, size, &saved), SP_ERROR_ARGUMENT);
    bytes[size - 1] = bytes[size - 3] = '\0'; /* a name too many */
    set_checksum(bytes, size);
    ck_assert_int_eq(gnn_saved_read(s.context, bytes, size, &saved), SP_ERROR_ARGUMENT);

    make_older(unnamed, &shorter);
    ck_ok(s.context, gnn_saved_read(s.context, unnamed, shorter, &saved));
    ck_assert(!saved.class_names && saved.options.model.outputs == CLASSES);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, unnamed, shorter));
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &after));
    same_epochs(&before, &after, 1);
    sp_free(s.context, bytes);
    sp_free(s.context, unnamed);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(damaged_bytes_are_refused_and_change_nothing)
{
    gnn_data data = make_data(host, false, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[3], before, after;
    char *bytes;
    int64_t size;
    subject s = make_subject(_i, &data, &options, 7);
    train(&s, 3, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &before));
    for (int64_t i = 0; i < size; i += i < 400 ? 1 : 97) {
        bytes[i] ^= 4;
        test_expect(gnn_trainer_restore(s.trainer, bytes, size) == SP_ERROR_ARGUMENT, "byte %lld", (long long)i);
        bytes[i] ^= 4;
    }
    for (int64_t cut = 0; cut < size; cut += 61)
        test_expect(gnn_trainer_restore(s.trainer, bytes, cut) == SP_ERROR_ARGUMENT, "cut to %lld", (long long)cut);
    ck_ok(s.context, gnn_trainer_evaluate(s.trainer, &after));
    same_epochs(&before, &after, 1);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size));
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

/* Whoever makes such bytes can make their checksum, too. */
TEST(bytes_that_lie_do_no_harm)
{
    enum { HEAD = 296 };
    static const int64_t lies[] = {-1, 0, 1, 3, 17, 1 << 20, INT64_C(1) << 31, INT64_C(1) << 61, INT64_MAX,
                                   INT64_MIN};
    gnn_data data = make_data(host, false, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    char *bytes;
    int64_t size, refused = 0, restored = 0;
    subject s = make_subject(0, &data, &options, 7);
    gnn_epoch epochs[2];
    train(&s, 2, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    set_checksum(bytes, size);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size)); /* the checksum is right */
    for (int64_t at = 24; at < HEAD; at += 8)
        for (size_t k = 0; k < COUNT(lies); k++) {
            gnn_saved saved;
            char kept[8];
            memcpy(kept, bytes + at, 8);
            memcpy(bytes + at, &lies[k], 8);
            set_checksum(bytes, size);
            const sp_status status = gnn_trainer_restore(s.trainer, bytes, size);
            test_expect(status == SP_OK || status == SP_ERROR_ARGUMENT, "word %lld", (long long)at / 8);
            if (gnn_saved_read(s.context, bytes, size, &saved) == SP_OK) {
                gnn_trainer *made;
                if (gnn_trainer_create(s.engine, &data, &saved.options, &made) == SP_OK) gnn_trainer_free(made);
            }
            *(status == SP_OK ? &restored : &refused) += 1;
            memcpy(bytes + at, kept, 8);
        }
    ck_assert(refused > restored && restored > 0);
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

/* A word of the head, or a number behind it, is another: the sentence says what is wrong with that. */
static void refuses_word(const subject *s, char *bytes, int64_t size, int64_t at, const void *word, size_t count,
                         const char *sentence)
{
    char kept[8];
    gnn_saved saved;
    memcpy(kept, bytes + at, count);
    memcpy(bytes + at, word, count);
    set_checksum(bytes, size);
    for (int i = 0; i < 2; i++) {
        const sp_status status = i == 0 ? gnn_saved_read(s->context, bytes, size, &saved)
                                        : gnn_trainer_restore(s->trainer, bytes, size);
        test_expect(status == SP_ERROR_ARGUMENT && strstr(sp_last_error(s->context), sentence), "\"%s\", not \"%s\"",
                    sp_last_error(s->context), sentence);
    }
    memcpy(bytes + at, kept, count);
}

TEST(saved_options_that_exclude_each_other_are_refused)
{
    enum { LAYER = 4, MAXK = 11, KEEP = 13, HALF = 14, DROPOUT = 17, RATE = 21 };
    static const int64_t one = 1, maxima = GNN_SAGE_MAX, many = 1 << 16;
    static const double minus = -1, all = 1;
    static const char what[] = "this is no saved model: its options do not go together: ";
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options options = usual(GNN_GCN);
    options.model.maxk = 4;
    gnn_epoch epochs[2];
    char *bytes, sentence[128];
    int64_t size;
    const struct {
        int word;
        const void *value;
        const char *sentence;
    } cases[] = {{LAYER, &maxima, "MaxK goes with GCN"},     {MAXK, &many, "MaxK keeps 65536 of"},
                 {HALF, &one, "16-bit gathers are for f32"}, {KEEP, &one, "with dropout of the features"},
                 {DROPOUT, &all, "a dropout of 1;"},         {RATE, &minus, "a learning rate of -1;"}};
    subject s = make_subject(0, &data, &options, 7);
    train(&s, 2, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    for (size_t c = 0; c < COUNT(cases); c++) {
        snprintf(sentence, sizeof sentence, "%s%s", what, cases[c].sentence);
        refuses_word(&s, bytes, size, 8 * cases[c].word, cases[c].value, 8, sentence);
    }
    set_checksum(bytes, size);
    ck_ok(s.context, gnn_trainer_restore(s.trainer, bytes, size));
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(saved_numbers_that_are_not_finite_are_refused)
{
    enum { HEAD = 296 };
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    gnn_data data = make_data(host, true, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[2];
    char *bytes;
    int64_t size;
    subject s = make_subject(0, &data, &options, 7);
    train(&s, 2, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, (void **)&bytes, &size));
    const int64_t part = (size - HEAD) / 4; /* weights, the best, two moments */
    ck_assert_int_eq(part, 4 * gnn_model_size(gnn_trainer_model(s.trainer)));
    for (int p = 0; p < 4; p++)
        for (int b = 0; b < 3; b++) {
            const char *sentence = p < 2 ? "this is no saved model: it has a weight that is no finite number"
                                         : "this is no saved model: the state of its optimizer has a number";
            refuses_word(&s, bytes, size, HEAD + p * part, &bad[b], 4, sentence);
            refuses_word(&s, bytes, size, HEAD + (p + 1) * part - 4, &bad[b], 4, sentence);
        }
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
}

TEST(numbers_that_are_not_finite_are_not_saved)
{
    gnn_data data = make_data(host, true, false);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_epoch epochs[2];
    void *bytes = NULL;
    int64_t size;
    subject s = make_subject(0, &data, &options, 7);
    train(&s, 2, epochs);
    ((float *)gnn_model_weights(gnn_trainer_model(s.trainer)))[3] = INFINITY;
    ck_assert_int_eq(gnn_trainer_save(s.trainer, false, &bytes, &size), SP_ERROR_NOT_FINITE);
    ck_assert(!bytes && strstr(sp_last_error(s.context), "epoch 2: the model has numbers that are not finite"));
    free_subject(&s);
    gnn_data_free(host, &data);
}

static void refuses_bytes(const gnn_data *data, const gnn_trainer_options *options, const void *bytes, int64_t size,
                          const char *sentence)
{
    subject s = make_subject(0, data, options, 1);
    ck_assert_int_eq(gnn_trainer_restore(s.trainer, bytes, size), SP_ERROR_ARGUMENT);
    ck_assert_msg(strstr(sp_last_error(s.context), sentence) != NULL, "\"%s\", not \"%s\"", sp_last_error(s.context),
                  sentence);
    free_subject(&s);
}

TEST(models_of_another_shape_are_refused_with_the_difference)
{
    gnn_data data = make_data(host, false, false), several = make_data(host, false, true);
    const gnn_trainer_options options = usual(GNN_GCN);
    gnn_trainer_options other = options;
    void *bytes;
    int64_t size;
    subject s = make_subject(0, &data, &options, 7);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, &bytes, &size));
    other.model.layer = GNN_GIN;
    refuses_bytes(&data, &other, bytes, size, "the saved model is GCN, not GIN");
    other = options;
    other.model.layers = 3;
    refuses_bytes(&data, &other, bytes, size, "the saved model has 2 layers, not 3");
    other = options;
    other.model.hidden = 8;
    refuses_bytes(&data, &other, bytes, size, "the saved model has 16 hidden columns, not 8");
    other = options;
    other.model.type = SP_DENSE_F64;
    refuses_bytes(&data, &other, bytes, size, "the saved model has 4 bytes a number, not 8");
    other = options;
    other.optimizer.method = GNN_SGD;
    refuses_bytes(&data, &other, bytes, size, "the saved model was trained by Adam, not SGD");
    refuses_bytes(&several, &options, bytes, size, "the saved model gives a node one class, the data several");
    several.features.dense.cols = FEATURES - 1;
    refuses_bytes(&several, &options, bytes, size, "the saved model has 22 features, not 21");
    sp_free(s.context, bytes);
    free_subject(&s);
    gnn_data_free(host, &data);
    gnn_data_free(host, &several);
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
    sp_allocator allocator = test_allocator(&heap);
    sp_context *context;
    const sp_context_options how = {.device = "cpu", .threads = 1, .allocator = &allocator};
    ck_assert_int_eq(sp_context_create(&how, &context), SP_OK);
    gnn_data data = make_data(host, true, false);
    for (int sampled = 0; sampled < 2; sampled++) {
        gnn_trainer_options options = usual(sampled ? GNN_SAGE : GNN_GAT);
        sp_status status = SP_ERROR_HOST_MEMORY;
        options.epochs = 2;
        options.sampled = sampled;
        for (int64_t n = 0; status != SP_OK; n++) {
            const int64_t before = heap.live_blocks;
            test_expect(n < 100000, "no end");
            heap.allocations = 0;
            heap.fail_at = n;
            status = whole_life(context, &data, &options);
            test_expect(status == SP_OK || status == SP_ERROR_HOST_MEMORY, "allocation %lld: %s", (long long)n,
                        sp_last_error(context));
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
    sp_allocator allocator = test_allocator(&heap);
    sp_context *context;
    const sp_context_options how = {.device = "cpu", .threads = 1, .allocator = &allocator};
    sp_status status = SP_ERROR_HOST_MEMORY;
    ck_assert_int_eq(sp_context_create(&how, &context), SP_OK);
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
    ONCE(the_first_node_that_is_wrong_is_named),
    ONCE(shapes_that_do_not_fit_are_refused),
    ONCE(normalised_rows_sum_to_one),
    ONCE(splits_have_so_many_nodes_of_each_class),
    ONCE(every_node_can_be_drawn_for_training),
    ONCE(renumbered_data_are_the_same_and_their_communities_lie_together),
    ONCE(data_that_do_not_gain_keep_their_numbers),
    ONCE(models_with_maxk_keep_the_numbers_unless_told_otherwise),
    ONCE(mistakes_in_renumbered_data_name_the_node),
    ONCE(data_that_cannot_be_renumbered_for_want_of_memory_stay_as_they_are),
    CASE_WITH("training", 300, open_host, close_host),
    ON_DEVICES(every_layer_learns_communities_full_batch),
    ON_DEVICES(every_layer_learns_communities_by_every_sampler),
    ON_DEVICES(every_method_and_maxk_learn),
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
    ON_DEVICES(a_restored_trainer_goes_on_as_if_it_had_not_stopped),
    ON_DEVICES(saved_options_build_a_trainer_that_predicts_the_same),
    ON_DEVICES(saved_bytes_hold_the_names_of_the_classes),
    ON_DEVICES(damaged_bytes_are_refused_and_change_nothing),
    ONCE(bytes_that_lie_do_no_harm),
    ONCE(saved_options_that_exclude_each_other_are_refused),
    ONCE(saved_numbers_that_are_not_finite_are_refused),
    ONCE(numbers_that_are_not_finite_are_not_saved),
    ONCE(models_of_another_shape_are_refused_with_the_difference),
    ON_DEVICES(impossible_options_are_refused),
    ONCE(failing_allocations_leak_nothing),
    {0},
};

int main(void) { return test_run("gnn: training", tests); }
