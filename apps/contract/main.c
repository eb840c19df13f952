/* contract: the quotient graph of a labelling, from files to files.
 *
 * graph -> labels -> contraction -> names -> files. This file holds the order of the steps and what ends a run
 * early. The command line is in options.c, reading in input.c, the choice of the device and the
 * computation in compute.c, what is written in output.c.
 */
#include <string.h>

#include "job.h"

/* ---- the closing line ------------------------------------------------------------------------------------ */

int64_t contract_count_loops(const sp_csr *m)
{
    int64_t loops = 0;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_offsets[i]; e < m->row_offsets[i + 1]; e++) loops += m->col_indices[e] == i;
    return loops;
}

/* Edges of a graph, whose matrix has those of an undirected one in both directions. */
static int64_t count_edges(int64_t entries, int64_t loops, bool undirected)
{
    return undirected ? (entries + loops) / 2 : entries;
}

static void summarize(contract_job *job)
{
    const contract_options *o = job->options;
    const io_graph *in = &job->input;
    const bool both_listed = in->undirected && !in->symmetric;
    char nodes[COUNTED_TEXT], edges[COUNTED_TEXT], groups[COUNTED_TEXT], joined[COUNTED_TEXT], left[COUNTED_TEXT];
    char levels[COUNTED_TEXT + 2] = "", dropped[COUNTED_TEXT + 32] = "", refined[REFINED_TEXT],
         better[REFINED_TEXT + 16] = "";
    if (job->line.quiet) return;
    counted(job->g.rows, "node", nodes);
    counted(count_edges(job->arcs, job->loops, both_listed), "edge", edges);
    counted(job->head.rows, "group", groups);
    counted(job->c_undirected ? job->head.lower : job->head.entries, "edge", joined);
    if (o->repeat != REPEAT_NEVER)
        snprintf(levels, sizeof levels, "%s, ", counted(job->hierarchy.count, "level", left));
    if (job->labelling.unlabelled > 0 && o->unlabelled == UNLABELLED_DROP)
        snprintf(dropped, sizeof dropped, "; left out %s without a label",
                 counted(job->labelling.unlabelled, "node", left));
    if (o->refine) snprintf(better, sizeof better, ": %s", contract_refined_text(job, refined));
    else if (o->label_output) snprintf(better, sizeof better, " to %.150s", output_name(o->label_output));
    if (!o->out) {
        counted(job->old ? job->groups : job->groups - job->empty, "group", groups);
        summary_line(&job->line, "read %s as %s, %s, %s; %s %s%s%s", input_name(o->graph), io_format_name(in->format),
                     nodes, edges, o->refine ? "refined" : o->label_output
                     ? "wrote the labels of" : "judged", groups, better,
                     dropped);
        return;
    }
    if (o->refine) snprintf(better, sizeof better, "; refined: %s", refined);
    else *better = '\0';
    summary_line(&job->line, "read %s as %s, %s, %s; wrote %s%s, %s to %s%s%s%s",
                 input_name(o->graph), io_format_name(in->format), nodes, edges, levels, groups, joined,
                 output_name(o->out), job->tab && !o->names ? ", their names beside it" : "", better, dropped);
}

/* ---- the whole run -------------------------------------------------------------------------------------- */

static sp_status run_job(contract_job *job)
{
    const double began = wall_seconds();
    sp_status status;
    TRY(contract_check_outputs(job));
    TRY(contract_open_device(job));
    TRY(contract_read_graph(job));
    if (job->input.undirected && !job->input.symmetric) job->loops = contract_count_loops(&job->g);
    if (job->options->node_weights) TRY(contract_read_weights(job));
    if (job->options->attributes) TRY(contract_read_attributes(job));
    if (job->options->labels) { /* what is refused for them is, before the work */
        TRY(contract_read_labels(job));
        if (job->options->refine) TRY(contract_refine(job));
        TRY(contract_name_groups(job));
        TRY(contract_check_tab(job));
        TRY(contract_sum_nodes(job));
    }
    if (job->options->out) TRY(contract_compute(job));
    else contract_average_edges(job);
    if (!job->options->labels) {
        TRY(contract_name_groups(job));
        TRY(contract_sum_nodes(job));
    }
    if (job->options->judge) TRY(contract_judge(job));
    job->seconds.total = wall_seconds() - began;
    TRY(contract_write(job));
done:
    return status;
}

static sp_status run_any(contract_job *job)
{
    return job->team.ranks ? contract_run_together(job) : run_job(job);
}

static void close_job(contract_job *job)
{
    if (job->host) {
        io_graph_free(job->host, &job->input);
        io_node_table_free(job->host, &job->attributes);
        sp_free(job->host, job->rules);
        io_labelling_free(job->host, &job->labelling);
        io_names_free(job->host, &job->group_names);
        contraction_hierarchy_free(job->host, &job->hierarchy);
        sp_csr_free(job->host, &job->g);
        sp_csr_free(job->host, &job->repeats);
        sp_csr_free(job->host, &job->c);
        FREE_ALL(job->host, job->old, job->figures, job->group_weights, job->group_sizes);
    }
    sp_context_destroy(job->device);
    sp_context_destroy(job->host);
}

/* Returns the exit code. */
static int say_failure(contract_job *job, sp_status status)
{
    if (job->mistaken) return EXIT_USAGE;
    if (job->team.silent) return interrupt_signal ? EXIT_SIGNAL + interrupt_signal : EXIT_FAILED;
    budget_explain(&job->budget, job->host, status, input_name(job->options->graph), false, "");
    team_name_failure(&job->team, status);
    return end_failed(&job->line, job->host, status);
}

static int run(const contract_options *options, uint64_t arguments)
{
    contract_job job = {.options = options, .line = open_line("contract", options->quiet), .arguments = arguments};
    int code = EXIT_DONE;
    job.team = (team){.tool = "contract", .progress = &job.line.progress};
    sp_status status = team_open(&job.team, options->mpi);
    if (job.team.ranks) job.team.mpi->ranks.memory = options->memory / job.team.mpi->host_size;
    if (job.team.follows) job.line = (tool_line){.tool = "contract", .quiet = true};
    if (status == SP_OK) status = contract_open_host(&job);
    if (job.team.ranks) status = team_agree_on(&job.team, status);
    if (status == SP_OK) status = run_any(&job);
    quiet_line(&job.line);
    if (status == SP_OK) summarize(&job);
    else code = say_failure(&job, status);
    close_job(&job);
    team_end(&job.team, code);
    return code;
}

int main(int argc, char **argv)
{
    static contract_options options;
    uint64_t arguments = 1;
    hold_standard_streams();
    if (argc < 2) {
        contract_usage(stderr);
        return EXIT_USAGE;
    }
    const int kept = team_hide_messages();
    const options_outcome outcome = contract_parse(argc, argv, &options);
    team_show_messages(kept);
    if (outcome == OPTIONS_MISTAKE) return team_mistaken();
    if (outcome != OPTIONS_RUN && team_launched_behind()) return EXIT_DONE;
    if (outcome == OPTIONS_HELP) contract_usage(stdout);
    if (outcome == OPTIONS_VERSION) puts("contract " SP_VERSION);
    if (outcome != OPTIONS_RUN) return end_answer("contract");
    for (int i = 1; i < argc; i++) arguments = mix_bytes(arguments, argv[i], strlen(argv[i]));
    if (team_launched_behind()) leave_signals_unsaid();
    settle_process("contract", argv, options.threads);
    return run(&options, arguments);
}
