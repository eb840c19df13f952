/* sparse-bench gnn: bulk sampling of neighbours, in passes over the training nodes in minibatches of 1,024. What is
 * timed is everything from the shuffled nodes to the blocks of every minibatch, where the context computes. Epochs of
 * training by such minibatches: sampling, gathering of features and steps of Adam, without dropout and evaluation. */
#include <string.h>

#include "sparse-bench/gnn/gnn_bench.h"

/* ---- sampling ------------------------------------------------------------------------------------------ */

typedef struct sample_run {
    gnn_case *c;
    gnn_sampling *made;
    gnn_sampler *sampler;
    int32_t *nodes; /* of the training split */
    int64_t count, pass;
} sample_run;

static sp_status pass_step(void *user)
{
    sample_run *run = user;
    gnn_minibatch minibatch;
    sp_status status;
    run->made->edges = run->made->minibatches = 0;
    TRY(gnn_sampler_begin(run->sampler, run->nodes, run->count, (uint64_t)run->c->options->common.seeds.number[0],
                          run->pass++));
    for (;;) {
        TRY(gnn_sampler_next(run->sampler, &minibatch));
        if (minibatch.layers == 0) break;
        run->made->edges += minibatch.edges;
        run->made->minibatches++;
        gnn_minibatch_free(run->c->context, &minibatch);
    }
done:
    return status;
}

static sp_status measure(sample_run *run, const sp_csr *matrix)
{
    gnn_case *c = run->c;
    gnn_sampler_options options = {.kind = GNN_SAMPLE_NODE, .layers = run->made->layers, .batch = GNN_BATCH};
    sp_status status;
    for (int l = 0; l < options.layers; l++) options.fanout[l] = run->made->fanout[l];
    TRY(sp_alloc(c->context, c->result->training_nodes, sizeof *run->nodes, (void **)&run->nodes));
    for (int64_t i = 0; i < c->result->nodes; i++)
        if (c->data->split[i] == GNN_TRAIN) run->nodes[run->count++] = (int32_t)i;
    TRY(gnn_sampler_create(c->context, matrix, &options, &run->sampler));
    TRY(time_steps(&c->options->common, pass_step, NULL, run, &run->made->pass.time));
done:
    return status;
}

sp_status gnn_sample(gnn_case *c, const int64_t *fanout, int layers)
{
    gnn_sampling *made = &c->result->samplings[c->result->sampling_count++];
    sample_run run = {.c = c, .made = made};
    sp_csr matrix;
    *made = (gnn_sampling){.layers = layers, .batch = GNN_BATCH, .pass = {.error = -1}};
    for (int l = 0; l < layers; l++) made->fanout[l] = fanout[l];
    sp_status status = gnn_operator(c->host, &c->data->graph, GNN_SAGE, SP_F32, &matrix);
    if (status != SP_OK) return status;
    status = candidate_failed(c->context, measure(&run, &matrix), &made->pass);
    gnn_sampler_free(run.sampler);
    sp_free(c->context, run.nodes);
    sp_csr_free(c->host, &matrix);
    return status;
}

/* ---- training ------------------------------------------------------------------------------------------ */

const int64_t gnn_minibatch_fanout[GNN_MINIBATCH_LAYERS] = {25, 10};

typedef struct minibatch_run {
    gnn_trainer *trainer;
    gnn_epoch last;
} minibatch_run;

static sp_status epoch_step(void *user)
{
    minibatch_run *run = user;
    bool done;
    return gnn_trainer_epoch(run->trainer, &run->last, &done);
}

static sp_status open_run(gnn_case *c, const gnn_minibatches *made, bool phases, minibatch_run *run)
{
    gnn_trainer_options options = {.model = {.layer = GNN_SAGE, .layers = GNN_MINIBATCH_LAYERS,
                                             .hidden = made->hidden, .half = made->half},
                                   .optimizer = {.rate = 0.01},
                                   .sampled = true,
                                   .sampler = {.layers = GNN_MINIBATCH_LAYERS, .batch = GNN_BATCH},
                                   .epochs = INT64_MAX,
                                   .evaluate_every = INT64_MAX,
                                   .phases = phases};
    memcpy(options.sampler.fanout, gnn_minibatch_fanout, sizeof gnn_minibatch_fanout);
    const sp_status status = gnn_trainer_create(c->engine, c->data, &options, &run->trainer);
    return status == SP_OK ? epoch_step(run) : status; /* memory grows */
}

/* The fastest of these counts. */
enum { PHASED_EPOCHS = 3 };

static double sum_of(const double phase[GNN_PHASES])
{
    double sum = 0;
    for (int k = 0; k < GNN_PHASES; k++) sum += phase[k];
    return sum;
}

sp_status gnn_train_minibatches(gnn_case *c, int64_t hidden, bool half)
{
    gnn_minibatches *made = &c->result->minibatches[c->result->minibatch_count++];
    minibatch_run run = {0};
    sp_status status;
    *made = (gnn_minibatches){.hidden = hidden, .half = half, .epoch = {.error = -1}};
    TRY(open_run(c, made, false, &run));
    TRY(time_steps(&c->options->common, epoch_step, NULL, &run, &made->epoch.time));
    made->edges = run.last.edges;
    gnn_trainer_free(run.trainer);
    run.trainer = NULL;
    TRY(open_run(c, made, true, &run));
    for (int i = 0; i < PHASED_EPOCHS; i++) {
        TRY(epoch_step(&run));
        if (i > 0 && sum_of(run.last.phase) > sum_of(made->phase)) continue;
        memcpy(made->phase, run.last.phase, sizeof made->phase);
    }
done:
    gnn_trainer_free(run.trainer);
    return candidate_failed(c->context, status, &made->epoch);
}
