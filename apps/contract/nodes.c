/* Weights and sizes of nodes, from METIS, a table or a file of them: a group has the sums over its nodes, and the same
 * whether a hierarchy is made in one call or level by level. Without weights each node counts 1. */
#include "job.h"

static const int64_t MOST = INT64_C(1) << 53; /* as io reads and writes them */

sp_status contract_read_weights(contract_job *job)
{
    const contract_options *o = job->options;
    io_graph *in = &job->input;
    if (in->node_weights)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: its nodes have weights: leave --node-weights out", o->graph);
    if (!io_have_order(in))
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the nodes of %s are known by names and have no order: give a "
                       "table of them to --attributes, with --node-weight COLUMN", o->node_weights, o->graph);
    show_line(&job->line, "reading %s", o->node_weights);
    may_block = 1;
    const sp_status status = io_read_node_weights(job->host, o->node_weights, &interrupt_signal, job->g.rows,
                                                  &in->node_weights, &in->constraints);
    may_block = 0;
    return status;
}

static sp_status refuse_sum(const contract_job *job, const char *what, int64_t group)
{
    short_name name;
    return sp_fail(job->host, SP_ERROR_OVERFLOW, "%s: the %s of the nodes of group %s sum to more than 2^53; scale "
                   "them down", job->options->graph, what, contract_short_group(job, group, name));
}

/* `each` numbers a node, or NULL for ones. Nodes without a label count nowhere. */
static sp_status sum(const contract_job *job, const char *what, const int64_t *numbers, int each, int64_t **sums)
{
    const int32_t *labels = job->labelling.labels;
    const sp_status status = sp_calloc(job->host, job->groups * each, sizeof **sums, (void **)sums);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < job->g.rows; i++)
        for (int k = 0; k < each && labels[i] >= 0; k++) {
            int64_t *to = &(*sums)[(int64_t)labels[i] * each + k];
            *to += numbers ? numbers[i * each + k] : 1;
            if (*to > MOST) return refuse_sum(job, what, labels[i]);
        }
    return SP_OK;
}

sp_status contract_sum_nodes(contract_job *job)
{
    const contract_options *o = job->options;
    const io_graph *in = &job->input;
    const bool given = in->node_weights || in->node_sizes, has = o->to == IO_METIS || o->to == IO_GRAPHML;
    sp_status status = SP_OK;
    if (given && !job->labelling.labels && o->to == IO_METIS)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: the graph has weights or sizes of nodes, which cannot be shared between groups: give"
                       " each node one label", o->labels);
    if (given && o->out && !(has && job->labelling.labels) && !o->node_output)
        notice_line(&job->line, "%s: the weights and sizes of its nodes are left out; --to metis or graphml writes "
                                "their sums",
                    o->graph);
    if (!job->labelling.labels) return SP_OK;
    job->constraints = in->node_weights ? in->constraints : 1;
    if (in->node_weights || o->to == IO_METIS)
        status = sum(job, "weights", in->node_weights, job->constraints, &job->group_weights);
    if (status == SP_OK && in->node_sizes) status = sum(job, "sizes", in->node_sizes, 1, &job->group_sizes);
    return status;
}
