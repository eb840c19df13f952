/* sparse-bench gnn: bulk sampling of neighbours, in passes over the training nodes in minibatches of 1,024. What is
 * timed is everything from the shuffled nodes to the blocks of every minibatch, where the context computes. */
#include "sparse-bench/gnn/gnn_bench.h"

enum { BATCH = 1024 };

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
    TRY(gnn_sampler_begin(run->sampler, run->nodes, run->count, run->pass++));
    for (;;) {
        TRY(gnn_sampler_next(run->sampler, &minibatch));
        if (minibatch.layers == 0) break;
        run->made->edges += minibatch.edges;
        run->made->minibatches++;
        gnn_minibatch_free(run->c->engine, &minibatch);
    }
done:
    return status;
}

static sp_status measure(sample_run *run, const sp_csr *matrix)
{
    gnn_case *c = run->c;
    gnn_sampler_options options = {.kind = GNN_SAMPLE_NODE, .layers = run->made->layers, .batch = BATCH};
    sp_status status;
    for (int l = 0; l < options.layers; l++) options.fanout[l] = run->made->fanout[l];
    TRY(sp_alloc(c->context, c->result->training_nodes, sizeof *run->nodes, (void **)&run->nodes));
    for (int64_t i = 0; i < c->result->nodes; i++)
        if (c->data->split[i] == GNN_TRAIN) run->nodes[run->count++] = (int32_t)i;
    TRY(gnn_sampler_create(c->engine, matrix, &options, &run->sampler));
    TRY(time_steps(&c->options->common, pass_step, NULL, run, &run->made->pass.time));
done:
    return status;
}

sp_status gnn_sample(gnn_case *c, const int64_t *fanout, int layers)
{
    gnn_sampling *made = &c->result->samplings[c->result->sampling_count++];
    sample_run run = {.c = c, .made = made};
    sp_csr matrix;
    *made = (gnn_sampling){.layers = layers, .batch = BATCH, .pass = {.error = -1}};
    for (int l = 0; l < layers; l++) made->fanout[l] = fanout[l];
    sp_status status = gnn_operator(c->host, &c->data->graph, GNN_SAGE, SP_F32, &matrix);
    if (status != SP_OK) return status;
    status = candidate_failed(c->context, measure(&run, &matrix), &made->pass);
    gnn_sampler_free(run.sampler);
    sp_free(c->context, run.nodes);
    sp_csr_free(c->host, &matrix);
    return status;
}
