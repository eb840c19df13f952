/* Hierarchies: labels found by clustering or coarsening, level by level. */
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "base/value.h"
#include "job.h"
#include "mcl.h"

/* A level that leaves more of its nodes than this is the last. */
static const double STALLED = 0.95;
/* With --to-nodes a group weighs at most this many times the mean, unless --max-weight says otherwise. */
static const double ROOM = 2;

/* ---- labels of a level ----------------------------------------------------------------------------------- */

static sp_status cluster(contract_job *job, sp_context *context, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    mcl_options options;
    sp_status status;
    mcl_options_default(&options);
    options.inflation = job->options->inflation;
    show_line(&job->line, "clustering %lld nodes", (long long)g->rows);
    status = mcl_label(context, g, &options, labels, groups);
    if (status == SP_ERROR_NOT_FINITE) {
        char why[256];
        snprintf(why, sizeof why, "%s", sp_last_error(context));
        return sp_fail(context, status, "%s: %s", job->options->graph, why);
    }
    if (status == SP_OK && *groups < job->options->to_nodes)
        status = contraction_loosen(context, g, labels, groups, job->options->to_nodes);
    return status;
}

static sp_status coarsen(contract_job *job, sp_context *context, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    static const contraction_method methods[] = {[REPEAT_MATCHING] = CONTRACTION_MATCHING,
                                                 [REPEAT_TWO_HOP] = CONTRACTION_TWO_HOP,
                                                 [REPEAT_HEC] = CONTRACTION_HEAVY_EDGES,
                                                 [REPEAT_LP] = CONTRACTION_PROPAGATION};
    const contraction_coarsening how = {.method = methods[job->options->repeat],
                                        .seed = (uint64_t)job->options->seed,
                                        .least = job->options->to_nodes,
                                        .max_weight = job->max_weight,
                                        .weights = job->loads};
    show_line(&job->line, "coarsening %lld nodes", (long long)g->rows);
    return contraction_coarsen(context, g, &how, labels, groups);
}

/* Labels that change nothing end a hierarchy. */
static sp_status label_level(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    contract_job *job = user;
    const contract_options *o = job->options;
    sp_status status;
    *groups = g->rows;
    if (g->rows <= o->to_nodes || job->shrunk > STALLED) return SP_OK;
    status = (o->repeat == REPEAT_CLUSTER ? cluster : coarsen)(job, context, g, labels, groups);
    if (status != SP_OK) return status;
    job->shrunk = g->rows > 0 ? (double)*groups / (double)g->rows : 1;
    if (job->loads) status = contraction_add_weights(context, labels, g->rows, *groups, g->space, job->loads);
    return status == SP_OK && g->space == SP_HOST ? contract_refuse_loops(job, context, g, labels) : status;
}

/* ---- bounds ---------------------------------------------------------------------------------------------- */

/* Weights of nodes as coarsening takes them: above 0, so that a node without weight has next to none. */
static sp_status start_loads(contract_job *job)
{
    const contract_options *o = job->options;
    const io_graph *in = &job->input;
    const int64_t n = job->g.rows;
    double sum = 0;
    const sp_status status = sp_alloc(job->host, n, sizeof *job->loads, (void **)&job->loads);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < n; i++) {
        job->loads[i] = in->node_weights ? (double)in->node_weights[i * in->constraints] : 1;
        sum += job->loads[i];
    }
    for (int64_t i = 0; i < n; i++) job->loads[i] = fmax(job->loads[i], sum > 0 ? 1e-6 * sum / (double)n : 1);
    job->max_weight = o->max_weight;
    if (o->max_weight <= 0 && o->to_nodes > 0) job->max_weight = ROOM * sum / (double)o->to_nodes;
    return SP_OK;
}

/* Coarsening is the device's work, if there is one, and levels stay there. A METIS graph's loops are looked for on the
 * host. */
static bool stays_on_device(const contract_options *o, const sp_context *context)
{
    return sp_context_is_cuda(context) && o->repeat != REPEAT_CLUSTER &&
           (o->to != IO_METIS || o->loops == SP_LOOPS_DROP);
}

/* Moves the weights of the nodes there. */
static sp_status move_loads(contract_job *job, sp_context *context)
{
    double *there = NULL;
    sp_status status;
    TRY(sp_array_create(context, job->g.rows, sizeof *there, SP_DEVICE, (void **)&there));
    TRY(sp_array_copy(context, job->g.rows, sizeof *there, there, SP_DEVICE, job->loads, SP_HOST));
    sp_free(job->host, job->loads);
    job->loads = there;
    there = NULL;
done:
    sp_array_free(context, SP_DEVICE, there);
    return status;
}

/* Why a hierarchy ended before it was as small as wanted. */
static void notice_end(contract_job *job)
{
    const contract_options *o = job->options;
    const contraction_hierarchy *h = &job->hierarchy;
    char left[COUNTED_TEXT], wanted[COUNT_TEXT];
    counted(job->groups, "group", left);
    if (job->shrunk > STALLED && job->groups > (o->to_nodes > 1 ? o->to_nodes : 1) && job->shrunk < 1)
        notice_line(&job->line, "%s: level %d shrinks the graph by %.1f %% only, less than 5 %%, and is the last: %s%s",
                    o->graph, h->count, 100 * (1 - job->shrunk), left,
                    o->repeat == REPEAT_MATCHING ? "; --repeat two-hop also joins nodes with a common neighbour" : "");
    else if (job->groups > o->to_nodes && o->to_nodes > 0)
        notice_line(&job->line, "%s: %s are left, not %s: %s", o->graph, left, show_count(o->to_nodes, wanted),
                    h->count == o->levels ? "the levels are used up" : "no more of them may be joined");
}

/* ---- the hierarchy --------------------------------------------------------------------------------------- */

/* --loops and --half-loops, for the last graph only: on the way edges within groups are kept and whole, so that the
 * levels compose to the direct contraction. */
static void settle_loops(const contract_options *o, bool sums, sp_csr *c)
{
    const bool half = o->half_loops && sums;
    int64_t kept = 0;
    if (o->loops == SP_LOOPS_KEEP && !half) return;
    for (int64_t i = 0, e = 0; i < c->rows; i++) {
        for (const int64_t end = c->row_offsets[i + 1]; e < end; e++) {
            const bool loop = c->col_indices[e] == i;
            if (o->loops != SP_LOOPS_KEEP && loop != (o->loops == SP_LOOPS_ONLY)) continue;
            if (c->values) store_value(c->values, c->value_type, kept, entry_value(c, e) / (loop && half ? 2 : 1));
            c->col_indices[kept++] = c->col_indices[e];
        }
        c->row_offsets[i + 1] = kept;
    }
    c->nnz = kept;
}

/* The group of every node of the input, through all levels. */
static sp_status compose_maps(contract_job *job)
{
    const contraction_hierarchy *h = &job->hierarchy;
    int32_t *labels;
    sp_status status = sp_alloc(job->host, job->g.rows, sizeof *labels, (void **)&labels);
    if (status != SP_OK) return status;
    job->groups = h->count ? h->level[h->count - 1].groups : job->g.rows;
    for (int64_t i = 0; i < job->g.rows; i++) {
        labels[i] = (int32_t)i;
        for (int k = 0; k < h->count; k++) labels[i] = h->level[k].map[labels[i]];
    }
    job->labelling.labels = labels;
    return SP_OK;
}

/* Ones for the values of a pattern. */
static sp_status give_values(contract_job *job)
{
    sp_csr *g = &job->g;
    if (g->values) return SP_OK;
    sp_status status = sp_alloc(job->host, g->nnz, sizeof(double), &g->values);
    if (status != SP_OK) return status;
    g->value_type = SP_F64;
    for (int64_t e = 0; e < g->nnz; e++) ((double *)g->values)[e] = 1;
    return SP_OK;
}

/* The last graph, which is the input itself if there is no level, as it will be written. Of the level its number of
 * entries stays, for the report. */
static sp_status take_last(contract_job *job)
{
    contraction_hierarchy *h = &job->hierarchy;
    sp_status status = SP_OK;
    if (h->count > 0) {
        sp_csr *last = &h->level[h->count - 1].c;
        job->c = *last;
        *last = (sp_csr){.nnz = job->c.nnz};
    } else {
        TRY(give_values(job));
        TRY(sp_csr_copy(job->host, &job->g, SP_HOST, &job->c));
    }
done:
    return status;
}

/* Levels are kept in host memory of the context that makes them: on a device's context that is malloc's as well. */
sp_status contract_repeat_on(contract_job *job, sp_context *context)
{
    const contract_options *o = job->options;
    const bool sums = job->combine == SP_COMBINE_SUM || job->combine == SP_COMBINE_COUNT;
    const contraction_options how = {.engine = o->engine,
                                     .undirected = job->undirected,
                                     .on_device = stays_on_device(o, context),
                                     .how.combine = job->combine == SP_COMBINE_COUNT ? SP_COMBINE_SUM : job->combine};
    contraction_hierarchy *h = &job->hierarchy;
    const double began = wall_seconds();
    sp_space loads_space = SP_HOST;
    sp_status status;
    job->g.value_type = job->g.values ? job->g.value_type : SP_F64;
    if (sp_context_is_cuda(context) || o->repeat == REPEAT_CLUSTER) TRY(give_values(job));
    job->shrunk = 0;
    if (o->repeat != REPEAT_CLUSTER) TRY(start_loads(job));
    status = how.on_device ? move_loads(job, context) : SP_OK;
    if (status == SP_OK && how.on_device) loads_space = SP_DEVICE;
    if (status == SP_OK) status = contraction_repeat(context, &job->g, (int)o->levels, label_level, job, &how, h);
    if (status != SP_OK) {
        if (context != job->host) sp_fail(job->host, status, "%s", sp_last_error(context));
        goto done;
    }
    snprintf(job->device_name, sizeof job->device_name, "%s", sp_context_device(context));
    TRY(take_last(job));
    settle_loops(o, sums, &job->c);
    TRY(compose_maps(job));
    contract_notice_loops(job, &job->g, job->labelling.labels);
    notice_end(job);
    job->info = (contraction_info){.engine = o->engine, .nnz = job->c.nnz, .seconds = wall_seconds() - began};
done:
    sp_array_free(context, loads_space, job->loads);
    job->loads = NULL;
    return status;
}
