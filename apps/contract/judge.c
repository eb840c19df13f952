/* --judge: figures of the labelling as a sentence, a table or JSON on standard output. */
#include <math.h>

#include "common/json.h"
#include "job.h"

sp_status contract_judge(contract_job *job)
{
    const contract_options *o = job->options;
    const io_graph *in = &job->input;
    const io_labelling *l = &job->labelling;
    if (!l->labels)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some nodes are in several groups, or have weights, which --judge cannot judge", o->labels);
    show_line(&job->line, "judging");
    const sp_status status = contraction_judge(job->host, &job->g, job->undirected, l->labels, job->groups,
                                               in->node_weights, in->constraints, &job->judgement);
    if (status == SP_ERROR_ARGUMENT) {
        char why[256];
        snprintf(why, sizeof why, "%s", sp_last_error(job->host));
        return sp_fail(job->host, status, "%s: %s", o->graph, why);
    }
    return status;
}

/* ---- the three forms ------------------------------------------------------------------------------------- */

static double percent(double part, double all) { return all > 0 ? 100 * part / all : 0; }

static void put_sentence(const contract_job *job, io_output *out)
{
    const contraction_judgement *j = &job->judgement;
    char edges[COUNTED_TEXT], groups[COUNTED_TEXT], largest[COUNTED_TEXT], smallest[COUNT_TEXT];
    char balance[32] = "NA", modularity[32] = "NA", coverage[32] = "NA";
    short_name worst;
    if (isfinite(j->balance)) snprintf(balance, sizeof balance, "%.4f", j->balance);
    if (isfinite(j->modularity)) snprintf(modularity, sizeof modularity, "%.5f", j->modularity);
    if (isfinite(j->coverage)) snprintf(coverage, sizeof coverage, "%.5f", j->coverage);
    counted(j->cut_edges, "edge", edges);
    counted(j->groups, "group", groups);
    counted(j->largest, "node", largest);
    show_count(j->smallest, smallest);
    io_output_format(out, "edge cut %.15g (%.3g %% of the weight, %s); modularity %s; coverage %s; ", j->cut,
                     percent(j->cut, j->weight), edges, modularity, coverage);
    io_output_format(out, "conductance %.5f mean, %.5f worst", j->mean_conductance, j->worst_conductance);
    if (j->worst >= 0) io_output_format(out, " (group %s)", contract_short_group(job, j->worst, worst));
    io_output_format(out, "; balance %s; %s of %s to %s, median %.15g\n", balance, groups, smallest, largest,
                     j->median);
}

static void put_cell(io_output *out, bool first, double number)
{
    if (!first) io_output_string(out, "\t");
    if (isfinite(number)) io_output_number(out, number);
    else io_output_string(out, "NA");
}

static void put_table(const contract_job *job, io_output *out)
{
    const contraction_judgement *j = &job->judgement;
    const double counts[] = {(double)j->nodes, (double)j->left_out, (double)j->groups, (double)j->empty,
                             (double)j->edges, j->weight, (double)j->cut_edges, j->cut, j->coverage, j->modularity,
                             j->mean_conductance, j->worst_conductance};
    const double sizes[] = {j->balance, (double)j->smallest, j->median, j->mean, (double)j->largest, (double)j->alone};
    char buffer[32];
    size_t length = 2;
    const char *worst = j->worst < 0 ? "NA" : contract_group_name(job, j->worst, buffer, &length);
    io_output_string(out, "nodes\tleft_out\tgroups\tempty\tedges\tweight\tcut_edges\tcut\tcoverage\tmodularity\t"
                          "conductance_mean\tconductance_worst\tworst_group\tbalance\tsmallest\tmedian\tmean\tlargest\t"
                          "alone\n");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) put_cell(out, i == 0, counts[i]);
    io_output_string(out, "\t");
    io_output_bytes(out, worst, length);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) put_cell(out, false, sizes[i]);
    io_output_string(out, "\n");
}

void contract_put_figures(const contract_job *job, json *j)
{
    const contraction_judgement *figures = &job->judgement;
    short_name worst;
    json_count(j, "nodes", figures->nodes);
    json_count(j, "left_out", figures->left_out);
    json_count(j, "groups", figures->groups);
    json_count(j, "empty", figures->empty);
    json_count(j, "edges", figures->edges);
    json_number(j, "weight", figures->weight);
    json_count(j, "cut_edges", figures->cut_edges);
    json_number(j, "cut", figures->cut);
    json_number(j, "coverage", figures->coverage);
    json_number(j, "modularity", figures->modularity);
    json_number(j, "conductance_mean", figures->mean_conductance);
    json_number(j, "conductance_worst", figures->worst_conductance);
    json_text(j, "worst_group", figures->worst < 0 ? NULL : contract_short_group(job, figures->worst, worst));
    json_number(j, "balance", figures->balance);
    json_count(j, "smallest", figures->smallest);
    json_number(j, "median", figures->median);
    json_number(j, "mean", figures->mean);
    json_count(j, "largest", figures->largest);
    json_count(j, "alone", figures->alone);
}

static void put_json(const contract_job *job, io_output *out)
{
    json file = {.out = out};
    json_begin(&file, NULL, '{');
    json_text(&file, "tool", "contract");
    json_text(&file, "version", SP_VERSION);
    json_text(&file, "graph", job->options->graph);
    json_text(&file, "labels", job->options->labels);
    json_flag(&file, "undirected", job->undirected);
    contract_put_figures(job, &file);
    json_end(&file, '}');
}

void contract_put_judgement(const contract_job *job, io_output *out)
{
    switch (job->options->judge) {
    case JUDGE_NOT: break;
    case JUDGE_LINE: put_sentence(job, out); break;
    case JUDGE_TSV: put_table(job, out); break;
    case JUDGE_JSON: put_json(job, out); break;
    }
}
