/* Training: epochs of gradient steps over the whole graph or over sampled minibatches, evaluation, the best
 * parameters.
 *
 * A full-batch epoch is one step: forward, loss and its gradient, backward, optimizer. It never waits for the device,
 * so CUDA records it as one graph: the first epoch makes all buffers, the second is recorded, and from then on an
 * epoch is a replay and the reading of one score. Small graphs are bound by launches and gain most. Evaluation is
 * recorded in the same way.
 */
#include "base/half.h"
#include "trainer.h"

#include <math.h>
#include <string.h>

/* ---- what is trained with ------------------------------------------------------------------------------ */

static sp_status check_options(sp_context *context, const gnn_data *data, const gnn_trainer_options *o)
{
    const int64_t rows = data->features.dense.values ? data->features.dense.rows : data->features.sparse.rows;
    if (data->graph.rows != data->graph.cols || rows != data->graph.rows || (data->classes < 1 && !o->links))
        return sp_fail(context, SP_ERROR_ARGUMENT, "a graph of %lld x %lld, %lld rows of features, %lld classes",
                       (long long)data->graph.rows, (long long)data->graph.cols, (long long)rows,
                       (long long)data->classes);
    if (o->epochs < 0 || o->patience < 0 || o->evaluate_every < 0 || o->loss_every < 0 || o->rate_step < 0 ||
        o->warmup < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "epochs, patience, intervals are not negative");
    if ((unsigned)o->schedule > GNN_SCHEDULE_PLATEAU || (o->schedule == GNN_SCHEDULE_PLATEAU && o->rate_step == 0))
        return sp_fail(context, SP_ERROR_ARGUMENT, "schedule %d, %lld epochs a step: there is no such schedule, or it"
                       " needs one epoch at least", (int)o->schedule, (long long)o->rate_step);
    if (o->rate_step > 0 && !(o->rate_factor > 0 && isfinite(o->rate_factor)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "the learning rate is multiplied by a number above 0 (got %g)",
                       o->rate_factor);
    for (int64_t c = 0; o->class_weights && c < data->classes; c++)
        if (!(o->class_weights[c] >= 0 && isfinite(o->class_weights[c])))
            return sp_fail(context, SP_ERROR_ARGUMENT, "class %lld has a weight of %g; weights are not negative",
                           (long long)c, o->class_weights[c]);
    if ((o->class_weights || o->balance_classes) && (data->targets || (o->class_weights && o->balance_classes)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "weights of classes are given or balanced, and for nodes with one"
                       " class each");
    if (o->negatives < 0 || (o->links && (o->sampled || o->class_weights || o->balance_classes)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "links are learnt full batch, without weights of classes, and beside"
                       " other pairs");
    if (data->split && !o->links && !data->labels && !data->targets)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a split needs labels or targets");
    return SP_OK;
}

static void fill_options(gnn_trainer *t)
{
    gnn_trainer_options *o = &t->options;
    const gnn_features *x = &t->data->features;
    o->model.inputs = x->dense.values ? x->dense.cols : x->sparse.cols;
    if (!o->links) o->model.outputs = t->data->classes;
    if (o->negatives == 0) o->negatives = 1;
    if (o->epochs == 0) o->epochs = 200;
    if (o->evaluate_every == 0) o->evaluate_every = 1;
    if (o->loss_every == 0) o->loss_every = 1;
    if (o->optimizer.rate == 0) o->optimizer.rate = 0.01;
}

/* ---- making and freeing -------------------------------------------------------------------------------- */

/* How many losses of minibatches are read at once, at most. */
enum { MOST_SCORES = 1024 };

/* A new model with an optimizer. */
static sp_status begin(gnn_trainer *t)
{
    sp_status status;
    TRY(gnn_model_create(t->engine, &t->options.model, &t->model));
    t->options.model = *gnn_model_shape(t->model);
    TRY(gnn_optimizer_create(t->model, &t->options.optimizer, &t->optimizer));
    t->rate = t->options.optimizer.rate;
    t->epoch = t->best_epoch = t->cuts = t->cut_epoch = 0;
    t->best_loss = INFINITY;
done:
    return status;
}

static sp_status build(gnn_trainer *t)
{
    sp_status status;
    TRY(begin(t));
    TRY(gnn_trainer_place(t));
    TRY(gnn_trainer_place_split(t));
    TRY(gnn_trainer_place_links(t));
    TRY(sp_array_create(t->context, MOST_SCORES * GNN_SPLITS, sizeof *t->score, t->engine->space,
                        (void **)&t->score));
    TRY(sp_array_create(t->context, gnn_model_size(t->model), number_size(t->options.model.type), t->engine->space,
                        &t->best));
done:
    return status;
}

sp_status gnn_trainer_create(gnn_engine *engine, const gnn_data *data, const gnn_trainer_options *options,
                             gnn_trainer **trainer)
{
    gnn_trainer *t;
    if (trainer) *trainer = NULL;
    sp_status status = gnn_require(__func__, "engine", engine);
    if (status == SP_OK) status = sp_require(engine->context, __func__, "data", data);
    if (status == SP_OK) status = sp_require(engine->context, __func__, "options", options);
    if (status == SP_OK) status = sp_require(engine->context, __func__, "trainer", trainer);
    if (status != SP_OK) return status;
    sp_context *context = engine->context;
    status = check_options(context, data, options);
    if (status == SP_OK) status = sp_calloc(context, 1, sizeof *t, (void **)&t);
    if (status != SP_OK) return status;
    *t = (gnn_trainer){.engine = engine, .context = context, .data = data, .options = *options,
                       .several = data->targets && !options->links};
    fill_options(t);
    status = build(t);
    if (status == SP_OK) *trainer = t;
    else gnn_trainer_free(t);
    return status;
}

void gnn_trainer_forget(gnn_trainer *t)
{
    const gnn_backend *backend = t->engine->backend;
    gnn_recorded *all[] = {&t->training, &t->evaluation};
    for (int i = 0; i < 2; i++) {
        if (all[i]->graph) backend->forget(t->engine, all[i]->graph);
        *all[i] = (gnn_recorded){0};
    }
}

sp_status gnn_trainer_restart(gnn_trainer *t, uint64_t seed)
{
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status != SP_OK) return status;
    gnn_trainer_forget(t);
    gnn_optimizer_free(t->optimizer);
    gnn_model_free(t->model);
    t->optimizer = NULL;
    t->model = NULL;
    t->engine->seed = seed;
    TRY(t->engine->backend->set_step(t->engine, 0));
    TRY(begin(t));
    TRY(gnn_trainer_place_split(t));
done:
    return status;
}

void gnn_trainer_free(gnn_trainer *t)
{
    if (!t) return;
    const sp_space space = t->engine->space;
    gnn_trainer_forget(t);
    gnn_sampler_free(t->sampler);
    gnn_trainer_free_blocks(t->block);
    gnn_optimizer_free(t->optimizer);
    gnn_model_free(t->model);
    sp_csr_free(t->context, &t->matrix);
    gnn_trainer_free_walks(t);
    gnn_trainer_free_features(t);
    void *const there[] = {t->labels, t->targets, t->split, t->class_weights, t->score, t->best};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) sp_array_free(t->context, space, there[i]);
    gnn_trainer_free_links(t);
    sp_dense_free(t->context, &t->gradient);
    sp_dense_free(t->context, &t->rows);
    FREE_ALL(t->context, t->training_nodes, t->batch, t);
}

gnn_model *gnn_trainer_model(gnn_trainer *trainer) { return trainer ? trainer->model : NULL; }

bool gnn_trainer_symmetric(const gnn_trainer *trainer) { return trainer && trainer->symmetric; }

/* ---- one step ------------------------------------------------------------------------------------------ */

sp_status gnn_trainer_rows(gnn_trainer *t, int64_t rows, int64_t cols, sp_dense *matrix, int64_t *capacity)
{
    if (rows > *capacity) {
        sp_dense_free(t->context, matrix);
        *capacity = 0;
        sp_status status = gnn_rows_create(t->engine, rows, cols, t->options.model.type, matrix);
        if (status != SP_OK) return status;
        *capacity = rows;
    }
    matrix->rows = rows;
    return SP_OK;
}

/* Scores of all splits. Row i of the logits is node nodes[i] or, if `nodes` is NULL, first + i. `gradient` (or NULL):
 * that of the mean over the `count` training nodes. The logits lack `bias` (or NULL). */
static sp_status lose(gnn_trainer *t, sp_dense *logits, const void *bias, const int32_t *nodes, int64_t first,
                      int64_t count, gnn_score *score, sp_dense *gradient)
{
    const gnn_backend *b = t->engine->backend;
    const gnn_pointwise linear = {.activation = GNN_LINEAR};
    const uint8_t *split = t->split + first;
    void *sums = gradient ? gnn_model_logit_sums(t->model) : NULL;
    if (!t->several)
        return b->softmax_loss(t->engine, logits, bias, nodes, t->labels + first, t->class_weights, split, GNN_TRAIN,
                               count, score, gradient, sums);
    const sp_status status = bias ? b->forward(t->engine, &linear, logits, bias, logits) : SP_OK;
    if (status != SP_OK) return status;
    return b->sigmoid_loss(t->engine, logits, nodes, t->targets + first * logits->cols, split, GNN_TRAIN, count, score,
                           gradient, sums);
}

/* One training step. `nodes` (NULL: all) are the nodes of the rows of the last block. */
static sp_status step(gnn_trainer *t, gnn_block *const *block, const gnn_features *x, const int32_t *nodes,
                      int64_t count, gnn_score *score)
{
    sp_dense *logits;
    const void *bias;
    sp_status status;
    TRY(t->engine->backend->advance(t->engine));
    TRY(gnn_model_forward_open(t->model, block, x, true, &logits, &bias));
    TRY(gnn_trainer_rows(t, logits->rows, logits->cols, &t->gradient, &t->gradient_capacity));
    TRY(lose(t, logits, bias, nodes, 0, count, score, &t->gradient));
    TRY(gnn_model_backward_summed(t->model, block, x, &t->gradient));
    TRY(gnn_optimizer_step(t->optimizer));
done:
    return status;
}

/* Adds up the scores of `losses` losses. */
static sp_status read_scores(gnn_trainer *t, int64_t losses, gnn_score total[GNN_SPLITS])
{
    gnn_score *read;
    sp_status status = sp_alloc(t->context, losses * GNN_SPLITS, sizeof *read, (void **)&read);
    if (status != SP_OK) return status;
    status = sp_array_copy(t->context, losses * GNN_SPLITS, sizeof *read, read, SP_HOST, t->score, t->engine->space);
    for (int64_t i = 0; status == SP_OK && i < losses * GNN_SPLITS; i++)
        gnn_add_score(&total[i % GNN_SPLITS], &read[i]);
    sp_free(t->context, read);
    return status;
}

/* ---- full batch ---------------------------------------------------------------------------------------- */

static sp_status full_step(gnn_trainer *t) { return step(t, t->block, &t->x, NULL, t->nodes[GNN_TRAIN], t->score); }

static sp_status full_losses(gnn_trainer *t)
{
    sp_dense *logits;
    const void *bias;
    sp_status status = gnn_model_forward_open(t->model, t->block, &t->x, false, &logits, &bias);
    return status == SP_OK ? lose(t, logits, bias, NULL, 0, t->nodes[GNN_TRAIN], t->score, NULL) : status;
}

/* ---- passes over all nodes ------------------------------------------------------------------------------ */

sp_status gnn_trainer_pass(gnn_trainer *t, const sp_dense **logits, const sp_dense **hidden)
{
    sp_status status;
    if (!t->walks) {
        status = gnn_model_forward(t->model, t->block, &t->x, false, logits);
        if (hidden) *hidden = gnn_model_hidden(t->model);
        if (!gnn_trainer_may_walk(t, status)) return status;
        TRY(gnn_trainer_begin_walks(t));
    }
    TRY(gnn_trainer_walk(t, hidden != NULL));
    *logits = &t->logits.here;
    if (hidden) *hidden = &t->hidden.here;
done:
    return status;
}

sp_status gnn_trainer_outputs(gnn_trainer *t, const sp_dense **logits)
{
    sp_dense_free(t->context, &t->outputs);
    const sp_status status = gnn_trainer_pass(t, logits, NULL);
    if (status != SP_OK || (*logits)->space == t->engine->space) return status;
    const sp_dense *here = *logits;
    *logits = &t->outputs;
    return sp_dense_copy(t->context, here, t->engine->space, &t->outputs);
}

/* Rows of a matrix in `space`: a part of it, or a copy, which is freed by sp_dense_free(made). */
static sp_status rows_in(gnn_trainer *t, const sp_dense *all, int64_t first, int64_t count, sp_space space,
                         sp_dense *rows, sp_dense *made)
{
    const sp_dense part = gnn_row_range(all, first, count);
    *made = (sp_dense){0};
    *rows = part;
    if (all->space == space) return SP_OK;
    const sp_status status = sp_dense_copy(t->context, &part, space, made);
    *rows = *made;
    return status;
}

/* Rows of logits that are looked at together, where all together may not fit. */
enum { PART_ROWS = 2048 };

/* The losses after a walk: on a CPU, where its results lie, of all rows at once. */
static sp_status walked_losses(gnn_trainer *t, gnn_score total[GNN_SPLITS])
{
    const int64_t nodes = t->data->graph.rows, most = t->engine->space == SP_HOST ? nodes : PART_ROWS;
    sp_status status;
    TRY(gnn_trainer_walk(t, false));
    for (int64_t first = 0; first < nodes; first += most) {
        const int64_t count = nodes - first < most ? nodes - first : most;
        sp_dense rows, made;
        status = rows_in(t, &t->logits.here, first, count, t->engine->space, &rows, &made);
        if (status == SP_OK) status = lose(t, &rows, NULL, NULL, first, t->nodes[GNN_TRAIN], t->score, NULL);
        if (status == SP_OK) status = read_scores(t, 1, total);
        sp_dense_free(t->context, &made);
        if (status != SP_OK) return status;
    }
done:
    return status;
}

/* Does the work, from the second time on as a recorded graph. With minibatches the model's buffers move, so nothing
 * is recorded. */
static sp_status run(gnn_trainer *t, sp_status (*work)(gnn_trainer *), gnn_recorded *recorded)
{
    const gnn_backend *b = t->engine->backend;
    if (!b->capture_begin || t->options.sampled || recorded->times++ == 0) return work(t);
    if (!recorded->graph) {
        sp_status status = b->capture_begin(t->engine);
        if (status != SP_OK) return status;
        const sp_status queued = work(t);
        status = b->capture_end(t->engine, &recorded->graph);
        if (queued != SP_OK || status != SP_OK) return queued != SP_OK ? queued : status;
    }
    return b->replay(t->engine, recorded->graph);
}

static bool reads_loss(const gnn_trainer *t)
{
    return t->options.sampled || t->epoch == t->options.epochs || t->epoch % t->options.loss_every == 0;
}

static sp_status full_epoch(gnn_trainer *t, gnn_score *total)
{
    const sp_status status = t->options.links ? gnn_trainer_link_step(t) : run(t, full_step, &t->training);
    return status == SP_OK && reads_loss(t) ? read_scores(t, 1, total) : status;
}

/* ---- minibatches --------------------------------------------------------------------------------------- */

/* The number of training nodes in the batch: clusters include others. */
static sp_status count_training(gnn_trainer *t, const gnn_minibatch *m, int64_t *count)
{
    *count = m->batch_size;
    if (t->options.sampler.kind != GNN_SAMPLE_CLUSTER) return SP_OK;
    if (m->batch_size > t->batch_capacity) {
        sp_free(t->context, t->batch);
        t->batch = NULL;
        t->batch_capacity = 0;
        sp_status status = sp_alloc(t->context, m->batch_size, sizeof *t->batch, (void **)&t->batch);
        if (status != SP_OK) return status;
        t->batch_capacity = m->batch_size;
    }
    sp_status status = sp_array_copy(t->context, m->batch_size, sizeof *t->batch, t->batch, SP_HOST, m->batch,
                                     t->engine->space);
    *count = 0;
    for (int64_t i = 0; status == SP_OK && i < m->batch_size; i++) *count += t->data->split[t->batch[i]] == GNN_TRAIN;
    return status;
}

/* The end of a phase that began at *began. */
static sp_status end_phase(gnn_trainer *t, gnn_phase phase, double *began, gnn_epoch *epoch)
{
    if (!t->options.phases) return SP_OK;
    const sp_status status = t->engine->backend->wait(t->engine);
    const double now = wall_seconds();
    epoch->phase[phase] += now - *began;
    *began = now;
    return status;
}

static sp_status minibatch_step(gnn_trainer *t, const gnn_minibatch *m, gnn_score *score, double *began,
                                gnn_epoch *epoch)
{
    const sp_csr *matrix[GNN_MAX_LAYERS];
    const sp_dense *all = t->x.dense.values ? &t->x.dense : &t->reached.there;
    gnn_block *block[GNN_MAX_LAYERS] = {NULL};
    gnn_features x = {0};
    int64_t count = 0;
    sp_status status;
    for (int l = 0; l < m->layers; l++) matrix[l] = &m->block[l];
    TRY(count_training(t, m, &count));
    TRY(gnn_trainer_blocks(t, matrix, false, block));
    TRY(gnn_trainer_rows(t, m->block[0].cols, t->options.model.inputs, &t->rows, &t->rows_capacity));
    TRY(t->engine->backend->gather_rows(t->engine, all, m->node[0], &t->rows));
    x.dense = t->rows;
    TRY(end_phase(t, GNN_PHASE_GATHER, began, epoch));
    TRY(step(t, block, &x, m->batch, count, score));
    TRY(end_phase(t, GNN_PHASE_STEP, began, epoch));
done:
    gnn_trainer_free_blocks(block);
    return status;
}

static sp_status sampled_epoch(gnn_trainer *t, gnn_score *total, gnn_epoch *epoch)
{
    double began = wall_seconds();
    int64_t losses = 0;
    sp_status status = gnn_sampler_begin(t->sampler, t->training_nodes, t->nodes[GNN_TRAIN], t->engine->seed, t->epoch);
    while (status == SP_OK) {
        gnn_minibatch m = {0};
        status = gnn_sampler_next(t->sampler, &m);
        if (status == SP_OK) status = end_phase(t, GNN_PHASE_SAMPLE, &began, epoch);
        if (m.layers == 0) break;
        epoch->edges += m.edges;
        if (status == SP_OK) status = minibatch_step(t, &m, t->score + losses++ * GNN_SPLITS, &began, epoch);
        gnn_minibatch_free(t->context, &m);
        if (status != SP_OK || losses < MOST_SCORES) continue;
        status = read_scores(t, losses, total);
        losses = 0;
    }
    return status == SP_OK ? read_scores(t, losses, total) : status;
}

/* ---- epochs -------------------------------------------------------------------------------------------- */

static double mean_loss(const gnn_score *s) { return s->nodes > 0 ? s->loss / (double)s->nodes : NAN; }

static double accuracy(const gnn_trainer *t, const gnn_score *s)
{
    if (s->nodes == 0) return NAN;
    if (!t->several) return (double)s->right / (double)s->nodes;
    const int64_t both = s->predicted + s->actual;
    return both > 0 ? 2 * (double)s->right / (double)both : 1; /* there was nothing to find, and nothing was found */
}

static gnn_epoch empty_epoch(int64_t number)
{
    gnn_epoch epoch = {.epoch = number, .loss = NAN};
    for (int s = 0; s < GNN_SPLITS; s++) epoch.split_loss[s] = epoch.accuracy[s] = NAN;
    return epoch;
}

static sp_status evaluate(gnn_trainer *t, gnn_epoch *epoch)
{
    gnn_score total[GNN_SPLITS] = {{0}};
    if (t->options.links) return gnn_trainer_evaluate_links(t, epoch);
    sp_status status = t->walks ? walked_losses(t, total) : run(t, full_losses, &t->evaluation);
    if (gnn_trainer_may_walk(t, status)) {
        status = gnn_trainer_begin_walks(t);
        if (status == SP_OK) status = walked_losses(t, total);
    } else if (status == SP_OK && !t->walks) status = read_scores(t, 1, total);
    for (int s = GNN_TRAIN; status == SP_OK && s < GNN_SPLITS; s++) {
        epoch->split_loss[s] = mean_loss(&total[s]);
        epoch->accuracy[s] = accuracy(t, &total[s]);
    }
    return status;
}

static sp_status copy_parameters(gnn_trainer *t, void *to, const void *from)
{
    const sp_space space = t->engine->space;
    return sp_array_copy(t->context, gnn_model_size(t->model), number_size(t->options.model.type), to, space, from,
                         space);
}

static sp_status not_finite(gnn_trainer *t, const char *which, double loss)
{
    return sp_fail(t->context, SP_ERROR_NOT_FINITE,
                   "epoch %lld: the %s loss is %s; a learning rate below %g, or normalised features, may help",
                   (long long)t->epoch, which, isnan(loss) ? "not a number" : "infinite", t->rate);
}

/* Keeps the parameters if they are the best so far. */
static sp_status judge(gnn_trainer *t, const gnn_epoch *epoch)
{
    const double loss = epoch->split_loss[GNN_VALIDATION];
    if (t->nodes[GNN_VALIDATION] == 0) return SP_OK;
    if (!isfinite(loss)) return not_finite(t, "validation", loss);
    const double judged = t->options.links ? 1 - epoch->accuracy[GNN_VALIDATION] : loss;
    if (!(judged < t->best_loss)) return SP_OK;
    t->best_loss = judged;
    t->best_epoch = t->epoch;
    return copy_parameters(t, t->best, gnn_model_weights(t->model));
}

/* The part of the rate that the epoch takes. */
static double scheduled(const gnn_trainer *t)
{
    const gnn_trainer_options *o = &t->options;
    const double before = (double)(t->epoch - 1), warm = t->epoch < o->warmup ? (before + 1) / (double)o->warmup : 1;
    int64_t cuts = t->cuts;
    if (o->schedule == GNN_SCHEDULE_COSINE) return warm * (1 + cos(acos(-1) * before / (double)o->epochs)) / 2;
    if (o->schedule == GNN_SCHEDULE_STEP) cuts = o->rate_step > 0 ? (t->epoch - 1) / o->rate_step : 0;
    return warm * (cuts > 0 ? pow(o->rate_factor, (double)cuts) : 1);
}

static sp_status set_rate(gnn_trainer *t)
{
    const double rate = t->options.optimizer.rate * scheduled(t);
    if (rate == t->rate) return SP_OK;
    t->rate = rate;
    return gnn_optimizer_set_rate(t->optimizer, rate);
}

/* Cuts the rate of the epochs to come, if the validation loss has not fallen for long. */
static void watch_plateau(gnn_trainer *t)
{
    const int64_t since = t->best_epoch > t->cut_epoch ? t->best_epoch : t->cut_epoch;
    if (t->options.schedule != GNN_SCHEDULE_PLATEAU || t->nodes[GNN_VALIDATION] == 0) return;
    if (t->epoch - since < t->options.rate_step) return;
    t->cuts++;
    t->cut_epoch = t->epoch;
}

static sp_status train(gnn_trainer *t, gnn_epoch *epoch)
{
    gnn_score total[GNN_SPLITS] = {{0}};
    const double began = wall_seconds();
    sp_status status;
    TRY(set_rate(t));
    epoch->rate = t->rate;
    TRY(t->options.sampled ? sampled_epoch(t, total, epoch) : full_epoch(t, total));
    epoch->seconds = wall_seconds() - began;
    epoch->loss = mean_loss(&total[GNN_TRAIN]);
    if (reads_loss(t) && !isfinite(epoch->loss)) status = not_finite(t, "training", epoch->loss);
done:
    return status;
}

/* Whether the patience is used up. */
static bool is_hopeless(const gnn_trainer *t)
{
    const int64_t patience = t->options.patience;
    return patience > 0 && t->nodes[GNN_VALIDATION] > 0 && t->epoch - t->best_epoch >= patience;
}

sp_status gnn_trainer_epoch(gnn_trainer *t, gnn_epoch *epoch, bool *done)
{
    gnn_epoch now = empty_epoch(0);
    bool last = true;
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status == SP_OK) status = sp_require(t->context, __func__, "epoch", epoch);
    if (status == SP_OK) status = sp_require(t->context, __func__, "done", done);
    if (status != SP_OK) return status;
    const gnn_trainer_options *o = &t->options;
    if (t->nodes[GNN_TRAIN] == 0)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "there are no training %s", o->links ? "links" : "nodes");
    if (t->epoch < o->epochs) {
        now.epoch = ++t->epoch;
        last = t->epoch == o->epochs;
        TRY(train(t, &now));
        if (last || t->epoch % o->evaluate_every == 0) {
            TRY(evaluate(t, &now));
            TRY(judge(t, &now));
            watch_plateau(t);
            last = last || is_hopeless(t);
        }
    }
    *epoch = now;
    *done = last;
done:
    return status;
}

sp_status gnn_trainer_finish(gnn_trainer *t)
{
    if (!t) return gnn_require(__func__, "trainer", t);
    return t->best_epoch > 0 ? copy_parameters(t, gnn_model_weights(t->model), t->best) : SP_OK;
}

int64_t gnn_trainer_best(const gnn_trainer *t) { return t ? t->best_epoch : 0; }

int64_t gnn_trainer_epochs(const gnn_trainer *t) { return t->epoch; }

sp_status gnn_trainer_evaluate(gnn_trainer *t, gnn_epoch *epoch)
{
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status == SP_OK) status = sp_require(t->context, __func__, "epoch", epoch);
    if (status != SP_OK) return status;
    gnn_epoch now = empty_epoch(t->epoch);
    if (t->options.links ? t->nodes[GNN_TRAIN] == 0 : !t->split)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "there is no split to evaluate");
    status = evaluate(t, &now);
    if (status == SP_OK) *epoch = now;
    return status;
}

/* ---- prediction ---------------------------------------------------------------------------------------- */

static double number_at(const sp_dense *x, int64_t i, int64_t j)
{
    const int64_t place = i * x->stride + j;
    if (x->type == SP_DENSE_BF16) return (double)float_of_bf16(((const uint16_t *)x->values)[place]);
    return x->type == SP_DENSE_F64 ? ((const double *)x->values)[place] : (double)((const float *)x->values)[place];
}

/* Where predictions go; `node` has the node of each row, NULL: row i is node i. */
typedef struct predictions {
    const int32_t *node;
    int32_t *classes;
    uint8_t *targets;
    float *scores;
} predictions;

/* The class with the largest logit (the first of equals), or all classes with a logit above 0, a probability above
 * 1/2. `first` is the number of the first row; the probabilities are NULL unless scores are wanted. */
static void choose(const gnn_trainer *t, const sp_dense *logits, const sp_dense *chances, int64_t first,
                   const predictions *to)
{
    for (int64_t i = 0; i < logits->rows; i++) {
        const int64_t node = to->node ? to->node[first + i] : first + i, at = node * logits->cols;
        int64_t best = 0;
        for (int64_t c = 0; c < logits->cols; c++) {
            if (number_at(logits, i, c) > number_at(logits, i, best)) best = c;
            if (t->several && to->targets) to->targets[at + c] = number_at(logits, i, c) > 0;
            if (to->scores) to->scores[at + c] = (float)number_at(chances, i, c);
        }
        if (!t->several && to->classes) to->classes[node] = (int32_t)best;
    }
}

static sp_status predict_rows(gnn_trainer *t, const sp_dense *logits, int64_t first, int64_t count,
                              const predictions *to)
{
    sp_dense chances = {0}, chances_here = {0}, there, here, made_there = {0}, made_here = {0};
    sp_dense *const all[] = {&chances, &chances_here, &made_there, &made_here};
    sp_status status;
    TRY(rows_in(t, logits, first, count, SP_HOST, &here, &made_here));
    if (to->scores) {
        TRY(rows_in(t, logits, first, count, t->engine->space, &there, &made_there));
        TRY(gnn_rows_create(t->engine, count, logits->cols, logits->type, &chances));
        TRY(t->engine->backend->probabilities(t->engine, &there, !t->several, &chances));
        TRY(sp_dense_copy(t->context, &chances, SP_HOST, &chances_here));
    }
    choose(t, &here, &chances_here, first, to);
done:
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sp_dense_free(t->context, all[i]);
    return status;
}

static sp_status predict_all(gnn_trainer *t, const predictions *to)
{
    const int64_t nodes = t->data->graph.rows;
    const sp_dense *logits;
    sp_status status = gnn_trainer_pass(t, &logits, NULL);
    for (int64_t first = 0; status == SP_OK && first < nodes; first += PART_ROWS)
        status = predict_rows(t, logits, first, nodes - first < PART_ROWS ? nodes - first : PART_ROWS, to);
    return status;
}

sp_status gnn_trainer_predict(gnn_trainer *t, int32_t *classes, uint8_t *targets, float *scores)
{
    int32_t *node = NULL;
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status != SP_OK) return status;
    const int64_t nodes = t->data->graph.rows;
    if (t->options.links) return sp_fail(t->context, SP_ERROR_ARGUMENT, "the model predicts links, no classes");
    if (t->data->place) {
        TRY(sp_alloc(t->context, nodes, sizeof *node, (void **)&node));
        for (int64_t i = 0; i < nodes; i++) node[t->data->place[i]] = (int32_t)i;
    }
    const predictions to = {node, classes, targets, scores};
    status = predict_all(t, &to);
    if (gnn_trainer_may_walk(t, status)) { /* what the whole graph's pass left was too little */
        TRY(gnn_trainer_begin_walks(t));
        status = predict_all(t, &to);
    }
done:
    sp_free(t->context, node);
    return status;
}

int64_t gnn_trainer_width(const gnn_trainer *t)
{
    const gnn_model_options *o = &t->options.model;
    if (t->options.links) return o->outputs;
    if (o->layers < 2) return 0;
    return o->layer == GNN_GAT ? o->hidden * o->heads : o->hidden;
}

sp_status gnn_trainer_embed(gnn_trainer *t, float *embeddings)
{
    const sp_dense *logits, *hidden;
    sp_dense here, made = {0};
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status == SP_OK) status = sp_require(t->context, __func__, "embeddings", embeddings);
    if (status != SP_OK) return status;
    hidden = gnn_model_hidden(t->model);
    if (!hidden && !t->options.links)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "a model of one layer has no embeddings");
    TRY(gnn_trainer_pass(t, &logits, &hidden));
    if (t->options.links) hidden = logits;
    TRY(rows_in(t, hidden, 0, hidden->rows, SP_HOST, &here, &made));
    for (int64_t i = 0; i < here.rows; i++)
        for (int64_t c = 0; c < here.cols; c++)
            embeddings[i * here.cols + c] = (float)number_at(&here, gnn_trainer_row(t, i), c);
done:
    sp_dense_free(t->context, &made);
    return status;
}
