/* Clusters of nodes for minibatches (Chiang et al. 2019): from a file, by Markov clustering, or by repeated matchings
 * until a cluster has about a hundred nodes. */
#include <string.h>

#include "contraction.h"
#include "job.h"
#include "mcl.h"

enum { CLUSTER_NODES = 100, MOST_LEVELS = 32 };

/* ---- by matchings --------------------------------------------------------------------------------------- */

/* A small enough graph keeps its nodes, which ends the contraction. */
static sp_status match(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    const gnn_job *job = user;
    const contraction_coarsening how = {.method = CONTRACTION_MATCHING, .seed = (uint64_t)job->settings->seed};
    if (g->rows > job->data.graph.rows / CLUSTER_NODES) return contraction_coarsen(context, g, &how, labels, groups);
    *groups = g->rows;
    for (int64_t i = 0; i < g->rows; i++) labels[i] = (int32_t)i;
    return SP_OK;
}

static sp_status by_matchings(gnn_job *job)
{
    const contraction_options how = {.how = {.combine = SP_COMBINE_SUM, .loops = SP_LOOPS_DROP}};
    const int64_t nodes = job->data.graph.rows;
    contraction_hierarchy h = {0};
    sp_status status = contraction_repeat(job->host, &job->data.graph, MOST_LEVELS, match, job, &how, &h);
    if (status != SP_OK) return status;
    job->cluster_count = h.count > 0 ? h.level[h.count - 1].groups : nodes;
    for (int64_t i = 0; i < nodes; i++) {
        job->clusters[i] = (int32_t)i;
        for (int k = 0; k < h.count; k++) job->clusters[i] = h.level[k].map[job->clusters[i]];
    }
    contraction_hierarchy_free(job->host, &h);
    return SP_OK;
}

/* ---- by Markov clustering ------------------------------------------------------------------------------- */

static sp_status by_markov(gnn_job *job)
{
    mcl_options options;
    mcl_options_default(&options);
    return mcl_label(job->host, &job->data.graph, &options, job->clusters, &job->cluster_count);
}

/* ---- from a file ---------------------------------------------------------------------------------------- */

static sp_status from_file(gnn_job *job)
{
    const char *path = job->settings->clusters;
    const io_graph shape = {.format = IO_CSR, .nodes = job->data.graph.rows};
    const io_label_options options = {.base = 0, .compact = true, .interrupt = &interrupt_signal};
    io_labelling read = {0};
    gnn_node_text name;
    sp_status status;
    TRY(io_read_labels(job->host, path, &shape, &options, &read));
    if (!read.labels)
        TRY(sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: a node is in several clusters; it must be in one", path));
    if (read.unlabelled > 0)
        TRY(sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: node %s is in no cluster; nodes are numbers from 0 there, in "
                    "the order of the features", path, gnn_input_node(&job->input, read.first_unlabelled, name)));
    memcpy(job->clusters, read.labels, (size_t)job->data.graph.rows * sizeof *job->clusters);
    job->cluster_count = read.groups;
done:
    io_labelling_free(job->host, &read);
    return status;
}

sp_status gnn_make_clusters(gnn_job *job)
{
    const char *how = job->settings->clusters;
    const int64_t nodes = job->data.graph.rows;
    gnn_sampler_options *sampler = &job->how.sampler;
    sp_status status;
    if (!job->how.sampled || sampler->kind != GNN_SAMPLE_CLUSTER) return SP_OK;
    show_line(&job->line, "clustering");
    TRY(sp_alloc(job->host, nodes, sizeof *job->clusters, (void **)&job->clusters));
    TRY(strcmp(how, "matching") == 0 ? by_matchings(job) : strcmp(how, "mcl") == 0 ? by_markov(job) : from_file(job));
    sampler->clusters = job->clusters;
    if (job->settings->batch == 0) { /* as many clusters as hold the default number of nodes */
        const int64_t size = nodes / (job->cluster_count > 0 ? job->cluster_count : 1);
        if (size > 1) sampler->batch = (sampler->batch + size - 1) / size;
    }
done:
    return status;
}
