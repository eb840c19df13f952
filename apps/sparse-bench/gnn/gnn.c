/* sparse-bench gnn: the graphs, and training on all of each. Through the public calls of gnn.h alone.
 *
 * An epoch is what gnn_trainer_epoch does without evaluation: forward with dropout, loss, backward, one step of Adam;
 * on CUDA one recorded graph, which the epochs before the first sample have made. The loss is not read, so that an
 * epoch is queued while the one before runs, as on PyTorch's side. Forward passes have no dropout. */
#include <math.h>
#include <string.h>

#include "gnn/input.h"
#include "sparse-bench/gnn/gnn_bench.h"
#include "sparse-bench/report.h"

/* ---- graphs -------------------------------------------------------------------------------------------- */

/* A folder, a preset of gnn convert, or any generated graph with features and classes as the options say. */
static sp_status load_data(sp_context *host, const gnn_options *o, const source *from,
                           const volatile int *interrupt, gnn_data *data)
{
    const gnn_input_options reading = {.interrupt = interrupt};
    gnn_recipe recipe = {.spec = from->spec, .features = o->feature_count, .classes = o->class_count,
                         .seed = (uint64_t)o->common.seeds.number[0]};
    gnn_input input;
    memset(data, 0, sizeof *data);
    if (from->spec) gnn_recipe_named(from->spec, &recipe);
    const sp_status status = from->spec ? gnn_generate(host, &recipe, &input)
                                        : gnn_input_load(host, from->name, &reading, &input);
    if (status != SP_OK) return status;
    *data = input.data;
    input.data = (gnn_data){0};
    gnn_input_free(host, &input);
    return SP_OK;
}

/* ---- training ------------------------------------------------------------------------------------------ */

enum { LAYERS = 2, EPOCHS_BEFORE = 4 };

static gnn_model_options model_of(const gnn_case *c, const gnn_training *t)
{
    const int heads = gnn_bench_heads(t->layer);
    return (gnn_model_options){.layer = t->layer, .layers = LAYERS, .inputs = c->result->features,
                               .outputs = c->result->classes, .hidden = t->hidden / heads, .heads = heads,
                               .dropout = 0.5, .maxk = t->maxk, .type = SP_DENSE_F32, .keep_aggregated = t->keep,
                               .half = t->half};
}

static sp_status epoch_step(void *user)
{
    gnn_epoch epoch;
    bool done;
    return gnn_trainer_epoch(user, &epoch, &done);
}

static sp_status measure_epoch(gnn_case *c, gnn_training *t)
{
    const gnn_trainer_options options = {.model = model_of(c, t),
                                         .optimizer = {.rate = 0.01},
                                         .epochs = INT64_MAX,
                                         .evaluate_every = INT64_MAX,
                                         .loss_every = INT64_MAX};
    gnn_trainer *trainer = NULL;
    const double began = wall_seconds();
    sp_status status = gnn_trainer_create(c->engine, c->data, &options, &trainer);
    for (int i = 0; i < EPOCHS_BEFORE && status == SP_OK; i++) status = epoch_step(trainer);
    gnn_epoch evaluated; /* for which it waits */
    if (status == SP_OK) status = gnn_trainer_evaluate(trainer, &evaluated);
    const double first = wall_seconds() - began;
    if (status == SP_OK) status = spmm_time(&c->options->common, epoch_step, trainer, &t->epoch.time);
    t->once_seconds = fmax(0, first - EPOCHS_BEFORE * t->epoch.time.median);
    gnn_trainer_free(trainer);
    return candidate_failed(c->context, status, &t->epoch);
}

typedef struct forward_run {
    gnn_model *model;
    gnn_block *block[LAYERS];
    gnn_features x;
} forward_run;

static sp_status forward_step(void *user)
{
    forward_run *run = user;
    const sp_dense *logits;
    return gnn_model_forward(run->model, run->block, &run->x, false, &logits);
}

static sp_status prepare_forward(gnn_case *c, const gnn_training *t, const sp_csr *matrix, forward_run *run)
{
    const sp_space space = sp_context_is_cuda(c->context) ? SP_DEVICE : SP_HOST;
    const gnn_model_options options = model_of(c, t);
    const gnn_features *x = &c->data->features;
    gnn_block *block = NULL;
    sp_status status = SP_OK;
    if (x->dense.values) TRY(sp_dense_copy(c->context, &x->dense, space, &run->x.dense));
    else TRY(sp_csr_copy(c->context, &x->sparse, space, &run->x.sparse));
    TRY(gnn_model_create(c->engine, &options, &run->model));
    TRY(gnn_block_create(c->engine, matrix, t->layer, c->result->symmetric, options.hidden, &block));
    if (t->maxk == 0) TRY(gnn_block_split(block));
done:
    for (int l = 0; l < LAYERS; l++) run->block[l] = block;
    return status;
}

static sp_status measure_forward(gnn_case *c, gnn_training *t)
{
    forward_run run = {0};
    sp_csr matrix = {0};
    sp_status status = gnn_operator(c->host, &c->data->graph, t->layer, SP_F32, &matrix);
    if (status != SP_OK) return status;
    status = prepare_forward(c, t, &matrix, &run);
    if (status == SP_OK) status = spmm_time(&c->options->common, forward_step, &run, &t->forward.time);
    status = candidate_failed(c->context, status, &t->forward);
    gnn_block_free(run.block[0]);
    gnn_model_free(run.model);
    sp_dense_free(c->context, &run.x.dense);
    sp_csr_free(c->context, &run.x.sparse);
    sp_csr_free(c->host, &matrix);
    return status;
}

static sp_status measure_training(gnn_case *c, gnn_training t)
{
    gnn_training *made = &c->result->trainings[c->result->training_count++];
    *made = t;
    made->renumbered = c->data->place != NULL;
    made->forward.error = made->epoch.error = -1;
    sp_status status = measure_forward(c, made);
    return status == SP_OK ? measure_epoch(c, made) : status;
}

enum { WITH_RELU = 1, WITH_MAXK = 2 };

/* Every model and width with ReLU, A·X kept and not, in bf16, and with MaxK, whose first layer aggregates X·W
 * anyway. */
static sp_status measure_models(gnn_case *c, unsigned kinds)
{
    const gnn_options *o = c->options;
    sp_status status = SP_OK;
    for (int layer = 0; layer <= GNN_GAT; layer++) {
        if (!(o->models >> layer & 1)) continue;
        for (int w = 0; w < o->widths.count; w++) {
            const bool relu = kinds & WITH_RELU;
            gnn_training t = {.layer = (gnn_layer)layer, .hidden = o->widths.number[w]};
            if (relu) TRY(measure_training(c, t));
            t.keep = relu && o->keep && layer != GNN_GAT;
            if (t.keep) TRY(measure_training(c, t));
            t.keep = false;
            t.half = relu && o->half && layer != GNN_SAGE_MAX;
            if (t.half) TRY(measure_training(c, t));
            t.half = false;
            for (int m = 0; kinds & WITH_MAXK && m < o->maxk.count && layer != GNN_GAT && layer != GNN_SAGE_MAX; m++) {
                t.maxk = o->maxk.number[m];
                if (t.maxk < t.hidden) TRY(measure_training(c, t));
            }
        }
    }
done:
    return status;
}

/* Data can be renumbered once; where AUTO leaves them as they are, it is KEEP again. MaxK, where it is to have them
 * so, comes before. */
static sp_status measure_renumbered(gnn_case *c)
{
    const gnn_model_options maxk = {.maxk = 1};
    const unsigned orders = c->options->orders;
    const gnn_order order = orders >> GNN_ORDER_COMMUNITY & 1 ? GNN_ORDER_COMMUNITY : GNN_ORDER_AUTO;
    const bool apart = gnn_order_for(&maxk, order) == GNN_ORDER_KEEP;
    if (orders == 1u << GNN_ORDER_KEEP || c->options->models == 0) return SP_OK;
    sp_status status = SP_OK;
    if (apart && !(orders >> GNN_ORDER_KEEP & 1)) status = measure_models(c, WITH_MAXK);
    if (status != SP_OK) return status;
    const double began = wall_seconds();
    status = gnn_data_renumber(c->host, c->data, order);
    c->result->order_seconds = wall_seconds() - began;
    if (status != SP_OK || (!c->data->place && orders >> GNN_ORDER_KEEP & 1)) return status;
    return measure_models(c, apart ? WITH_RELU : WITH_RELU | WITH_MAXK);
}

/* ---- the cases ----------------------------------------------------------------------------------------- */

static const struct {
    int layers;
    int64_t fanout[3];
} fanouts[] = {{2, {25, 10}}, {3, {15, 10, 5}}};

static sp_status measure_case(gnn_case *c)
{
    const gnn_options *o = c->options;
    sp_status status;
    if (o->export) return gnn_export(c);
    if (o->orders >> GNN_ORDER_KEEP & 1) TRY(measure_models(c, WITH_RELU | WITH_MAXK));
    for (int w = 0; w < o->widths.count && o->aggregate; w++)
        for (int m = 0; m < o->maxk.count; m++)
            if (o->maxk.number[m] < o->widths.number[w]) TRY(gnn_aggregate(c, o->widths.number[w], o->maxk.number[m]));
    for (size_t f = 0; f < sizeof fanouts / sizeof *fanouts && o->sample; f++)
        TRY(gnn_sample(c, fanouts[f].fanout, fanouts[f].layers));
    for (int w = 0; w < o->widths.count && o->minibatches; w++)
        for (int half = 0; half <= o->half; half++) TRY(gnn_train_minibatches(c, o->widths.number[w], half));
    TRY(measure_renumbered(c));
    if (*c->interrupt) status = sp_fail(c->host, SP_ERROR_INTERRUPTED, "interrupted");
done:
    return status;
}

static sp_status describe(gnn_case *c, const source *from)
{
    const gnn_options *o = c->options;
    const gnn_data *data = c->data;
    gnn_result *r = c->result;
    const int64_t widths = o->widths.count, kinds = 2 * (3 + o->maxk.count);
    const char *slash = from->spec ? NULL : strrchr(from->name, '/');
    sp_status status;
    *r = (gnn_result){.name = slash && slash[1] ? slash + 1 : from->name, .spec = from->spec,
                      .folder = from->spec ? NULL : from->name, .nodes = data->graph.rows, .edges = data->graph.nnz,
                      .classes = data->classes};
    r->features = data->features.dense.values ? data->features.dense.cols : data->features.sparse.cols;
    for (int64_t i = 0; i < r->nodes; i++) r->training_nodes += data->split[i] == GNN_TRAIN;
    TRY(gnn_symmetric(c->host, &data->graph, &r->symmetric));
    TRY(sp_calloc(c->host, widths * kinds * (GNN_GAT + 1), sizeof *r->trainings, (void **)&r->trainings));
    TRY(sp_calloc(c->host, widths * o->maxk.count, sizeof *r->aggregations, (void **)&r->aggregations));
done:
    return status;
}

/* In a context of its own, which ends with the case. */
static sp_status run_case(gnn_case *c, const source *from)
{
    const gnn_options *o = c->options;
    const sp_context_options options = compute_options(&o->common, c->interrupt);
    gnn_data data = {0};
    sp_status status = load_data(c->host, o, from, c->interrupt, &data);
    c->data = &data;
    if (status == SP_OK) status = gnn_data_check(c->host, &data);
    if (status == SP_OK) status = describe(c, from);
    if (status == SP_OK) {
        status = sp_context_create(&options, &c->context);
        if (status != SP_OK) sp_fail(c->host, status, "--device %s: %s", o->common.device, sp_last_error(NULL));
    }
    if (status == SP_OK) {
        status = gnn_engine_create(c->context, (uint64_t)o->common.seeds.number[0], &c->engine);
        if (status == SP_OK) status = measure_case(c);
        if (status != SP_OK && *sp_last_error(c->context)) sp_fail(c->host, status, "%s", sp_last_error(c->context));
    }
    gnn_engine_free(c->engine);
    c->engine = NULL;
    sp_context_destroy(c->context);
    c->context = NULL;
    gnn_data_free(c->host, &data);
    return status;
}

static bool ran(const gnn_result *r)
{
    for (int i = 0; i < r->training_count; i++)
        if (*r->trainings[i].forward.word || *r->trainings[i].epoch.word) return false;
    for (int i = 0; i < r->aggregation_count; i++)
        for (int k = 0; k < AGGREGATE_KERNELS; k++) {
            const candidate *f = &r->aggregations[i].kernels[k];
            if (*f->word && k != AGGREGATE_CUSPARSE && strcmp(f->word, "unsupported") != 0) return false;
            if (!*f->word && !(f->error <= GNN_TOLERANCE)) return false;
        }
    for (int i = 0; i < r->sampling_count; i++)
        if (*r->samplings[i].pass.word) return false;
    for (int i = 0; i < r->minibatch_count; i++)
        if (*r->minibatches[i].epoch.word) return false;
    return true;
}

sp_status gnn_run(sp_context *host, const gnn_options *o, const volatile int *interrupt, int *code)
{
    gnn_case c = {.options = o, .interrupt = interrupt, .host = host};
    gnn_result *results = NULL;
    machine m;
    bool cuda;
    sp_status status;
    TRY(sp_calloc(host, o->common.source_count, sizeof *results, (void **)&results));
    if (o->common.json) TRY(io_output_check(host, o->common.json));
    TRY(machine_look_around(host, &o->common, &m, &cuda));
    print_machine(&m, &o->common, "");
    for (int i = 0; i < o->common.source_count; i++) {
        c.result = &results[i];
        status = run_case(&c, &o->common.sources[i]);
        if (status == SP_ERROR_ARGUMENT && o->common.sources[i].spec) *code = EXIT_USAGE;
        if (status != SP_OK) goto done;
        gnn_report_result(c.result);
        if (!ran(c.result)) *code = EXIT_FAILED;
        if (o->common.json) TRY(gnn_report_json(host, &m, o, results, i + 1));
    }
    bool known;
    const char *blas = gnn_blas(&known);
    if (!known && !cuda)
        fprintf(stderr, "sparse-bench: the BLAS is %s; if that is the reference one, OpenBLAS is some 20 times as "
                "fast\n", blas);
done:
    for (int i = 0; results && i < o->common.source_count; i++) {
        FREE_ALL(host, results[i].trainings, results[i].aggregations);
    }
    sp_free(host, results);
    return status;
}
