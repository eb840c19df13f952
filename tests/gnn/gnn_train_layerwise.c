/* test_gnn_train: predictions and evaluation layer by layer, where memory does not suffice for the whole graph. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../gnn/trainer.h"
#include "gnn_train_shared.h"

/* An allocator that refuses what would exceed a limit. The size stands before each block. */
typedef struct purse {
    int64_t limit, held, most, wanted; /* most: held at once; wanted: what the largest refused block would have made
                                          it */
} purse;

enum { BEFORE = 64 };

static void *purse_allocate(void *user, size_t bytes)
{
    purse *p = user;
    const int64_t held = __atomic_add_fetch(&p->held, (int64_t)bytes, __ATOMIC_RELAXED);
    char *block = held <= p->limit ? malloc(bytes + BEFORE) : NULL;
    if (held > p->limit && held > p->wanted) p->wanted = held;
    if (block && held > p->most) p->most = held;
    if (!block) __atomic_sub_fetch(&p->held, (int64_t)bytes, __ATOMIC_RELAXED);
    else memcpy(block, &bytes, sizeof bytes);
    return block ? block + BEFORE : NULL;
}

static void purse_release(void *user, void *block)
{
    purse *p = user;
    size_t bytes;
    if (!block) return;
    memcpy(&bytes, (char *)block - BEFORE, sizeof bytes);
    __atomic_sub_fetch(&p->held, (int64_t)bytes, __ATOMIC_RELAXED);
    free((char *)block - BEFORE);
}

/* With at most that limit of host memory on the CPU, else of device memory. */
static sp_context *context_within(int device, purse *p)
{
    const sp_allocator allocator = {purse_allocate, purse_release, p, NULL};
    const bool cuda = device > 0;
    return test_context_with(device, (sp_context_options){
        .threads = 2, .allocator = cuda ? NULL : &allocator, .memory_budget = cuda ? (size_t)p->limit : 0});
}

/* What a trainer says of all nodes. */
typedef struct answer {
    int32_t classes[NODES];
    uint8_t targets[NODES * CLASSES];
    float scores[NODES * CLASSES], *embeddings;
    int64_t width, rows; /* rows of a block, 0: no walk */
    gnn_epoch epoch;
} answer;

/* Predicts by a saved model. */
static sp_status ask(int device, const gnn_data *data, const gnn_trainer_options *how, const void *saved, int64_t size,
                     purse *p, answer *a)
{
    sp_context *context = context_within(device, p);
    gnn_engine *engine = NULL;
    gnn_trainer *trainer = NULL;
    sp_status status;
    TRY(gnn_engine_create(context, 9, &engine));
    TRY(gnn_trainer_create(engine, data, how, &trainer));
    TRY(gnn_trainer_restore(trainer, saved, size));
    TRY(gnn_trainer_finish(trainer));
    TRY(gnn_trainer_predict(trainer, data->targets ? NULL : a->classes, data->targets ? a->targets : NULL, a->scores));
    a->width = gnn_trainer_width(trainer);
    free(a->embeddings);
    a->embeddings = a->width ? test_zeros((size_t)(NODES * a->width), sizeof *a->embeddings) : NULL;
    if (a->width) TRY(gnn_trainer_embed(trainer, a->embeddings));
    if (data->split) TRY(gnn_trainer_evaluate(trainer, &a->epoch));
    a->rows = trainer->walks ? trainer->walk_rows : 0;
done:
    gnn_trainer_free(trainer);
    gnn_engine_free(engine);
    sp_context_destroy(context);
    return status;
}

/* Numbers of products of BLAS differ in the last bits with the number of rows; all else does not. */
static void same_answer(const gnn_data *data, const answer *a, const answer *b, const char *what)
{
    if (data->targets) ck_assert(memcmp(a->targets, b->targets, sizeof a->targets) == 0);
    else ck_assert(memcmp(a->classes, b->classes, sizeof a->classes) == 0);
    for (int64_t k = 0; k < NODES * CLASSES; k++)
        test_expect(fabsf(a->scores[k] - b->scores[k]) < 1e-5f, "%s: score %lld is %g, not %g", what, (long long)k,
                    (double)b->scores[k], (double)a->scores[k]);
    for (int64_t k = 0; k < NODES * a->width; k++)
        test_expect(fabsf(a->embeddings[k] - b->embeddings[k]) < 1e-5f * (1 + fabsf(a->embeddings[k])),
                    "%s: embedding %lld is %g, not %g", what, (long long)k, (double)b->embeddings[k],
                    (double)a->embeddings[k]);
    for (int s = GNN_TRAIN; s < GNN_SPLITS; s++)
        test_expect(!data->split || fabs(a->epoch.split_loss[s] - b->epoch.split_loss[s]) < 1e-5, "%s: loss %g, not %g",
                    what, b->epoch.split_loss[s], a->epoch.split_loss[s]);
}

/* A model that was trained a little, and its bytes. */
static void save_model(const gnn_data *data, const gnn_trainer_options *how, void **bytes, int64_t *size)
{
    gnn_epoch epochs[3];
    subject s = make_subject(0, data, how, 9);
    train(&s, 3, epochs);
    ck_ok(s.context, gnn_trainer_save(s.trainer, false, bytes, size));
    free_subject(&s);
}

/* The least limit, to within a kilobyte, that an answer needs; it does with 1 GB. */
static int64_t least_limit(int device, const gnn_data *data, const gnn_trainer_options *how, const void *saved,
                           int64_t size, answer *a)
{
    int64_t low = 0, high = (int64_t)1 << 30;
    while (high - low > 1024) {
        purse p = {.limit = (low + high) / 2};
        const sp_status status = ask(device, data, how, saved, size, &p, a);
        test_expect(status == SP_OK || gnn_lacks_memory(status), "status %d at %lld bytes", (int)status,
                    (long long)p.limit);
        if (status == SP_OK) high = p.limit;
        else low = p.limit;
    }
    return high;
}

static void check_answers(int device, gnn_data *data, const gnn_trainer_options *how, const char *what)
{
    static answer whole, walked;
    purse ample = {.limit = (int64_t)1 << 30};
    void *saved;
    int64_t size;
    uint8_t *split = data->split;
    whole.rows = -1;
    save_model(data, how, &saved, &size);
    if (!how->sampled) data->split = NULL; /* only predicts */
    ck_assert_int_eq(ask(device, data, how, saved, size, &ample, &whole), SP_OK);
    ck_assert_int_eq(whole.rows, 0);
    const int64_t least = least_limit(device, data, how, saved, size, &walked);
    for (int k = 0; k < 4; k++) {
        purse p = {.limit = least + 20000 * k};
        ck_assert_int_eq(ask(device, data, how, saved, size, &p, &walked), SP_OK);
        /* A small graph's numbers are few beside those of a device's engine. */
        test_expect(k > 0 || (walked.rows > 0 && (walked.rows < NODES || device > 0)), "%s: %lld rows a block", what,
                    (long long)walked.rows);
        same_answer(data, &whole, &walked, what);
    }
    purse small = {.limit = least - 5000};
    ck_assert(gnn_lacks_memory(ask(device, data, how, saved, size, &small, &walked)));
    if (device == 0) { /* the largest refused block says how much would do */
        purse told = {.limit = small.wanted};
        test_expect(ask(device, data, how, saved, size, &told, &walked) == SP_OK, "%s: %lld bytes do not do", what,
                    (long long)told.limit);
    }
    data->split = split;
    sp_free(host, saved);
    free(whole.embeddings);
    free(walked.embeddings);
    whole.embeddings = walked.embeddings = NULL;
}

TEST(what_does_not_fit_the_memory_is_predicted_in_blocks_of_rows)
{
    static const char *const names[] = {"GCN", "SAGE", "SAGE max", "GIN", "GAT"};
    for (int layer = GNN_GCN; layer <= GNN_GAT; layer++)
        for (int sparse = 0; sparse < (layer % 2 ? 2 : 1); sparse++) {
            gnn_data data = make_data(host, sparse, layer == GNN_GIN);
            gnn_trainer_options how = usual((gnn_layer)layer);
            how.model.hidden = layer == GNN_GAT ? 16 : 64;
            how.model.layers = 6; /* of which a walk holds one at a time */
            how.model.jump = layer == GNN_GIN ? GNN_JUMP_CAT : GNN_JUMP_NONE;
            how.model.norm = layer == GNN_SAGE ? GNN_NORM_BATCH : GNN_NORM_NONE;
            how.model.residual = layer == GNN_SAGE;
            check_answers(_i, &data, &how, names[layer]);
            gnn_data_free(host, &data);
        }
}

/* Minibatches that take less memory than the whole graph. */
static void sample_little(gnn_trainer_options *how)
{
    how->sampled = true;
    how->model.hidden = 96;
    how->model.layers = 5;
    how->sampler = (gnn_sampler_options){.kind = GNN_SAMPLE_NODE, .layers = 5, .fanout = {2, 1, 1, 1, 1}, .batch = 3,
                                         .bulk = 1};
}

TEST(trainers_with_minibatches_are_judged_in_blocks_of_rows)
{
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options how = usual(GNN_SAGE);
    sample_little(&how);
    check_answers(_i, &data, &how, "sampled SAGE");
    gnn_data_free(host, &data);
}

/* Trains for a few epochs. *far: features stay in host memory, out of the engine's. */
static sp_status train_within(int device, const gnn_data *data, const gnn_trainer_options *how, purse *p,
                              gnn_epoch epochs[3], bool *far, bool *walks)
{
    sp_context *context = context_within(device, p);
    gnn_engine *engine = NULL;
    gnn_trainer *trainer = NULL;
    bool done;
    sp_status status;
    TRY(gnn_engine_create(context, 9, &engine));
    TRY(gnn_trainer_create(engine, data, how, &trainer));
    for (int e = 0; e < 3; e++) TRY(gnn_trainer_epoch(trainer, &epochs[e], &done));
    *far = !trainer->x.dense.values;
    *walks = trainer->walks;
done:
    gnn_trainer_free(trainer);
    gnn_engine_free(engine);
    sp_context_destroy(context);
    return status;
}

/* Only the evaluation may differ, in the last bits. */
TEST(minibatches_are_the_same_wherever_features_lie)
{
    gnn_data data = make_data(host, false, false);
    gnn_trainer_options how = usual(GNN_SAGE);
    gnn_epoch ample[3], scarce[3];
    purse p = {.limit = (int64_t)1 << 30};
    bool far, walks;
    int64_t low = 0, high = p.limit;
    sample_little(&how);
    ck_assert_int_eq(train_within(_i, &data, &how, &p, ample, &far, &walks), SP_OK);
    ck_assert(!far && !walks);
    while (high - low > 1024) {
        p = (purse){.limit = (low + high) / 2};
        if (train_within(_i, &data, &how, &p, scarce, &far, &walks) == SP_OK) high = p.limit;
        else low = p.limit;
    }
    p = (purse){.limit = high};
    ck_assert_int_eq(train_within(_i, &data, &how, &p, scarce, &far, &walks), SP_OK);
    ck_assert(walks && (far || _i == 0));
    for (int e = 0; e < 3; e++) {
        test_expect(ample[e].loss == scarce[e].loss, "epoch %d: %.17g, not %.17g", e + 1, scarce[e].loss,
                    ample[e].loss);
        for (int s = GNN_TRAIN; s < GNN_SPLITS; s++)
            test_expect(fabs(ample[e].split_loss[s] - scarce[e].split_loss[s]) < 1e-6, "epoch %d", e + 1);
    }
    gnn_data_free(host, &data);
}

const test_entry layerwise_tests[] = {
    CASE_WITH("layer by layer", 300, open_host, close_host),
    ON_DEVICES(what_does_not_fit_the_memory_is_predicted_in_blocks_of_rows),
    ON_DEVICES(trainers_with_minibatches_are_judged_in_blocks_of_rows),
    ON_DEVICES(minibatches_are_the_same_wherever_features_lie),
    {0},
};
