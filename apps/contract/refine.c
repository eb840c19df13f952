/* --refine: the borders of the groups moved so that fewer edges are cut. */
#include "job.h"

sp_status contract_refine(contract_job *job)
{
    const contract_options *o = job->options;
    const io_graph *in = &job->input;
    const contraction_refinement how = {.imbalance = o->imbalance,
                                        .weights = in->node_weights,
                                        .constraints = in->constraints};
    if (!job->labelling.labels)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some nodes are in several groups, or have weights, which --refine cannot move", o->labels);
    if (!job->undirected)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the graph is directed, and --refine takes undirected ones: "
                                                     "give --undirected if it is one", o->graph);
    show_line(&job->line, "refining");
    return contraction_refine(job->host, &job->g, job->groups, &how, job->labelling.labels, &job->gained);
}

/* In a form that contract takes as labels: a label a line in the order of the nodes, with the node where it has a
 * name. -1 is a node without a label. */
void contract_put_labels(const contract_job *job, io_output *out)
{
    const int32_t *labels = job->labelling.labels;
    const bool named = job->input.names.count > 0 || job->input.ids;
    char buffer[32];
    size_t length;
    for (int64_t i = 0; i < job->g.rows; i++) {
        if (named) {
            const char *name = contract_node_name(job, i, buffer, &length);
            io_output_bytes(out, name, length);
            io_output_string(out, "\t");
        }
        if (labels[i] < 0) {
            io_output_string(out, "-1");
        } else {
            const char *group = contract_group_name(job, labels[i], buffer, &length);
            io_output_bytes(out, group, length);
        }
        io_output_string(out, "\n");
    }
}
