/* --refine: the borders of the groups moved so that fewer edges are cut. */
#include <math.h>

#include "job.h"

/* Nodes may be too heavy for the balance that was asked for. */
static void notice_balance(contract_job *job)
{
    const contraction_refined *r = &job->refined;
    if (job->options->imbalance < 0 || !(r->balance > r->bound * (1 + 1e-12))) return;
    notice_line(&job->line, "%s: the heaviest group still weighs %.4f times the mean, where --imbalance allows %.4f: "
                "no group has room for more of its nodes", job->options->labels, r->balance, r->bound);
}

sp_status contract_refine(contract_job *job)
{
    const contract_options *o = job->options;
    const io_graph *in = &job->input;
    const contraction_refinement how = {.imbalance = o->imbalance < 0    ? 0
                                                     : o->imbalance == 0 ? CONTRACTION_BALANCED
                                                                         : o->imbalance,
                                        .weights = in->node_weights,
                                        .constraints = in->constraints};
    if (!job->labelling.labels)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some nodes are in several groups, or have weights, which --refine cannot move", o->labels);
    if (!job->undirected)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the graph is directed, and --refine takes undirected ones: "
                                                     "give --undirected if it is one", o->graph);
    const double began = wall_seconds();
    show_line(&job->line, "refining");
    const sp_status status = contraction_refine(job->host, &job->g, job->groups, &how, job->labelling.labels,
                                                &job->refined);
    job->seconds.refine = wall_seconds() - began;
    if (status == SP_OK) notice_balance(job);
    return status;
}

const char *contract_refined_text(const contract_job *job, char text[REFINED_TEXT])
{
    const contraction_refined *r = &job->refined;
    char moves[COUNTED_TEXT], balance[64] = "";
    if (!isnan(r->balance)) snprintf(balance, sizeof balance, "balance %.4f to %.4f, ", r->balance_before, r->balance);
    snprintf(text, REFINED_TEXT, "edge cut %.15g to %.15g, %s%s", r->cut_before, r->cut, balance,
             counted(r->moves, "move", moves));
    return text;
}

void contract_put_refined(const contract_job *job, json *j)
{
    const contraction_refined *r = &job->refined;
    json_begin(j, "refined", '{');
    json_text(j, "file", job->options->refine);
    json_number(j, "cut_before", r->cut_before);
    json_number(j, "cut", r->cut);
    json_number(j, "balance_before", r->balance_before);
    json_number(j, "balance", r->balance);
    json_number(j, "balance_bound", r->bound);
    json_count(j, "moves", r->moves);
    json_count(j, "passes", r->passes);
    json_count(j, "cycles", r->cycles);
    json_seconds(j, "seconds", job->seconds.refine);
    json_end(j, '}');
}
