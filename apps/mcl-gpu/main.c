/* mcl-gpu: clusters a graph as mcl 22-282 does, on the CPU or on a CUDA device.
 *
 * read -> graph (CSR) -> start matrix -> for each inflation: iterate -> interpret -> write. This file holds the order
 * of the steps, the first three of them, and what ends a run early. The command line is in options.c, the choice of
 * the device in device.c, one clustering in cluster.c, the log in log.c, the JSON report in report.c.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.h"

/* ---- signals ------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t stop_asked; /* SIGALRM: interpret the present iterand, as mcl does */

static void on_alarm(int number)
{
    (void)number;
    stop_asked = 1;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* --abc-neg-log[10] first, then -abc-tf, in f64. */
static double transform_value(void *user, double weight)
{
    const job *j = user;
    if (j->settings->negative_log) weight = weight > 0 ? -log(weight) : (double)FLT_MAX;
    if (j->settings->negative_log10) weight = weight > 0 ? -log10(weight) : (double)FLT_MAX / M_LN10;
    return j->value_transform ? mcl_transform_value(j->value_transform, weight) : weight;
}

/* The smallest weight of label pairs, where weights differ as only E-values do; else 1. */
static double smallest_evalue(const job *j)
{
    const double rarely_similarity = 1e-20, range = 1e10;
    const settings *s = j->settings;
    const io_graph *g = &j->input;
    double smallest = 1, largest = 0;
    if (g->format != IO_ABC || j->value_transform || s->negative_log || s->negative_log10 ||
        s->graph_transform)
        return 1;
    for (int64_t i = 0; g->weights && i < g->arcs; i++) {
        const double weight = io_arc_weight(g, i);
        if (weight > 0 && weight < smallest) smallest = weight;
        if (weight > largest) largest = weight;
    }
    return smallest < rarely_similarity && largest > range * smallest ? smallest : 1;
}

static void log_read(job *j)
{
    const settings *s = j->settings;
    const io_graph *g = &j->input;
    if (g->format == IO_NATIVE)
        log_matrix_read(&j->log, s->input, g->lines == 0, g->nodes, g->nodes, g->arcs);
    else
        log_labels_read(&j->log, g->lines);
    if (g->odd_lines > 0)
        log_warning(&j->log, "mcl-gpu: %s: %lld odd lines taken as mcl takes them, %lld negative weights", s->input,
                    (long long)g->odd_lines, (long long)g->negative);
    if (g->blast_hits)
        log_warning(&j->log, "mcl-gpu: %s: a BLAST table, read as label pairs weighs its hits by their identity, "
                    "column 3; --blast bits or --blast evalue by their scores", s->input);
    if (g->presumed)
        log_line(&j->log, "mcl-gpu: " UNDIRECTED "export a directed one in another way", s->input);
    if (g->unused.count > 0) {
        char columns[IO_LISTED];
        log_warning(&j->log, "mcl-gpu: " UNWEIGHTED, s->input, io_names_list(&g->unused, columns));
    }
    const double smallest = smallest_evalue(j);
    if (smallest < 1)
        log_warning(&j->log,
                    "mcl-gpu: %s: weights down to %.2g, and larger means closer here; if they are E-values, give "
                    "--abc-neg-log10", s->input, smallest);
}

static io_read_options read_options(job *j)
{
    const settings *s = j->settings;
    io_read_options options = s->read;
    options.refuse_others = true;
    options.any_sign = s->graph_transform && !s->read.lenient; /* it is what the transforms leave that counts */
    if (j->value_transform || s->negative_log || s->negative_log10) {
        options.transform = transform_value;
        options.transform_user = j;
    }
    return options;
}

sp_status job_read_graph(job *j, const char *path, io_graph *graph)
{
    const io_read_options options = read_options(j);
    return read_file_or_folder(j->host, path, &options, graph);
}

static sp_status read_input(job *j)
{
    const settings *s = j->settings;
    bool done = false;
    may_block = 1;
    sp_status status = job_read_together(j, read_options(j), &done);
    if (status == SP_OK && !done) status = job_read_graph(j, s->input, &j->input);
    may_block = 0;
    if (status == SP_OK && s->read.minimum_score > 0 && j->input.format != IO_STRING)
        status = sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: not a STRING file; leave --min-score out", s->input);
    if (status == SP_OK && s->read.minimum_score > 0 && j->input.nodes == 0)
        status = sp_fail(j->host, SP_ERROR_ARGUMENT,
                         "%s: no pair scores %g or more, which leaves nothing to cluster; scores go from 0 to 1000",
                         s->input, s->read.minimum_score);
    if (status == SP_OK) log_read(j);
    if (status == SP_OK && j->input.arcs == 0)
        log_warning(&j->log, "mcl-gpu: %s: no edges; %s", s->input,
                    j->input.nodes == 0 ? "there is nothing to cluster" : "each node is a cluster of its own");
    j->mcl = s->mcl;
    j->mcl.fast = s->fast;
    j->mcl.device_only = device_is_auto(s->device); /* else the CPU goes on */
    if (j->input.ids) j->mcl.dense_factor = 0; /* mcl multiplies densely only where ids are 0, 1, 2... */
    return status;
}

/* Whether the graph, which this process has whole, differs from its mirror image. */
static sp_status differs_from_transpose(const job *j, bool *directed)
{
    const sp_csr *g = &j->graph;
    sp_csr opposite = {0};
    const sp_status status = sp_csr_transpose(j->host, g, &opposite);
    if (status != SP_OK) return status;
    *directed = memcmp(g->row_offsets, opposite.row_offsets, (size_t)(g->rows + 1) * sizeof *g->row_offsets) != 0 ||
                (g->nnz > 0 &&
                 memcmp(g->col_indices, opposite.col_indices, (size_t)g->nnz * sizeof *g->col_indices) != 0);
    sp_csr_free(j->host, &opposite);
    return SP_OK;
}

/* Says that a matrix is directed, which its file does not show at a glance. */
static sp_status note_directed(job *j)
{
    const io_format format = j->input.format;
    const bool may_be = format == IO_MTX || format == IO_CSR || format == IO_NPZ || format == IO_GRAPHML;
    if (!may_be || j->input.undirected || j->input.symmetric || j->settings->quiet) return SP_OK;
    bool directed = false;
    const sp_status status = j->given ? job_is_directed(j, &directed) : differs_from_transpose(j, &directed);
    if (status != SP_OK) return status;
    if (directed)
        log_line(&j->log, "mcl-gpu: %s: a directed graph, clustered as it is; -tf '#max()' makes it undirected",
                 j->settings->input);
    return SP_OK;
}

/* Of arcs that are repeated mcl takes the heaviest (within a column of a matrix the first: that is all there is). */
static sp_status make_graph(job *j)
{
    io_graph *g = &j->input;
    report *r = &j->report;
    r->format = g->format;
    r->nodes = g->nodes;
    r->arcs = g->arcs;
    r->lines = g->lines;
    r->bytes = g->bytes;
    r->odd_lines = g->odd_lines;
    r->negative = g->negative;
    if (j->given) { /* the graph is there */
        r->graph_entries = j->graph.nnz;
        const sp_status added = team_add_up(&j->team, &r->graph_entries);
        return added == SP_OK ? note_directed(j) : added;
    }
    sp_status status = io_graph_matrix(j->host, g, false, SP_COMBINE_MAX, g->symmetric, &j->graph);
    r->graph_entries = j->graph.nnz;
    return status == SP_OK ? note_directed(j) : status;
}

/* ---- the start matrix ---------------------------------------------------------------------------------- */

/* The first iterand before inflation. */
static sp_status write_expanded(job *j)
{
    sp_csr expanded = {0};
    sp_status status;
    TRY(team_agree_on(&j->team, SP_OK)); /* all have come here */
    TRY(job_expand(j, &j->start, &expanded));
    TRY(job_write_matrix(j, MATRIX_KEPT, j->settings->write_expanded, &expanded, NULL));
done:
    sp_csr_free(j->host, &expanded);
    return status;
}

/* A matrix before the iterations. */
static sp_status write_early(job *j, const char *path, const sp_csr *matrix)
{
    const sp_csr rows = ranks_own_rows(j, matrix);
    return job_write_matrix(j, MATRIX_KEPT, path, &rows, NULL);
}

/* Entries that are not loops, or with `loops` all. */
static int64_t count_arcs(const sp_csr *matrix, bool loops)
{
    int64_t arcs = 0;
    if (loops) return matrix->nnz;
    for (int64_t row = 0; row < matrix->rows; row++)
        for (int64_t e = matrix->row_offsets[row]; e < matrix->row_offsets[row + 1]; e++)
            arcs += matrix->col_indices[e] != row;
    return arcs;
}

static sp_status add_columns(sp_context *context, const sp_csr *matrix, double **sums)
{
    const float *values = matrix->values;
    sp_status status = sp_calloc(context, matrix->rows, sizeof **sums, (void **)sums);
    for (int64_t row = 0; row < matrix->rows && status == SP_OK; row++)
        for (int64_t e = matrix->row_offsets[row]; e < matrix->row_offsets[row + 1]; e++)
            (*sums)[row] += (double)values[e];
    return status;
}

/* Rows that other processes have got loops here. */
static void keep_given(const job *j, sp_csr *matrix)
{
    if (j->given && matrix->row_offsets)
        mcl_keep_rows(matrix, j->given[j->team.ranks->rank], j->given[j->team.ranks->rank + 1]);
}

/* The graph that clusters are to be connected in: that of the start matrix. */
static sp_status prepare_graph(job *j)
{
    sp_csr prepared;
    sp_status status = mcl_prepared_graph(j->host, &j->graph, j->graph_transform, &j->mcl, j->settings->read.lenient,
                                          &prepared);
    if (status != SP_OK) return status;
    keep_given(j, &prepared);
    sp_csr_free(j->host, &j->graph);
    j->graph = prepared;
    return SP_OK;
}

/* Warns of columns that pre-inflation has left without entries. */
static sp_status warn_pre_inflated(job *j)
{
    mcl_options options = j->mcl;
    sp_csr before = {0};
    bool *empty = NULL, *now = NULL;
    int64_t full = 0;
    sp_status status = SP_OK;
    while (full < j->start.rows && j->start.row_offsets[full] < j->start.row_offsets[full + 1]) full++;
    if (options.pre_inflation <= 0 || (full == j->start.rows && !j->given)) return SP_OK;
    options.pre_inflation = 0;
    TRY(mcl_prepared_graph(j->host, &j->graph, j->graph_transform, &options, j->settings->read.lenient, &before));
    TRY(job_find_empty(j->host, &before, &empty));
    TRY(job_find_empty(j->host, &j->start, &now));
    TRY(team_agree_on(&j->team, SP_OK)); /* all have come here */
    TRY(ranks_gather_rows(j, empty, sizeof *empty));
    TRY(ranks_gather_rows(j, now, sizeof *now));
    job_warn_vanished(j, j->start.rows, now, empty);
done:
    FREE_ALL(j->host, empty, now);
    sp_csr_free(j->host, &before);
    return status;
}

/* Says how many entries there are, in all processes together. */
static sp_status log_entries(job *j)
{
    const bool loops = !j->settings->mcl.discard_loops;
    int64_t graph = count_arcs(&j->graph, loops), start = count_arcs(&j->start, loops), all = j->start.nnz;
    sp_status status = SP_OK;
    if (j->given) {
        TRY(team_agree_on(&j->team, SP_OK)); /* all have come here */
        TRY(team_add_up(&j->team, &graph));
        TRY(team_add_up(&j->team, &start));
        TRY(team_add_up(&j->team, &all));
    }
    if (j->graph_transform)
        log_line(&j->log, "[mcl] transform: went from %lld to %lld entries", (long long)graph, (long long)start);
    j->report.start_entries = all;
done:
    return status;
}

static sp_status make_start(job *j)
{
    const settings *s = j->settings;
    const mcl_transform *transform = j->graph_transform;
    const bool iterates = s->mcl.initial_length > 0 || s->mcl.main_length > 0;
    const bool sums = s->dump_iterands || (s->write_limit && !iterates); /* mcl writes them with the start matrix */
    sp_csr prepared = {0};
    sp_status status = SP_OK;
    if (s->write_graph) TRY(write_early(j, s->write_graph, &j->graph));
    if (s->write_transformed || sums)
        TRY(mcl_prepared_graph(j->host, &j->graph, transform, &j->mcl, s->read.lenient, &prepared));
    keep_given(j, &prepared);
    if (s->write_transformed) TRY(write_early(j, s->write_transformed, &prepared));
    if (sums) TRY(add_columns(j->host, &prepared, &j->start_sums));
    if (sums) TRY(team_agree_on(&j->team, SP_OK)); /* all have come here */
    if (sums) TRY(ranks_gather_rows(j, j->start_sums, sizeof *j->start_sums));
    TRY(mcl_start_matrix(j->host, &j->graph, transform, &j->mcl, s->read.lenient, &j->start));
    keep_given(j, &j->start);
    TRY(warn_pre_inflated(j));
    TRY(log_entries(j));
    log_line(&j->log, "[mcl] pid %ld", (long)getpid());
    if (s->write_expanded && iterates) TRY(write_expanded(j));
    if (!s->mcl.force_connected && !s->check_connected && !settings_judge(s)) sp_csr_free(j->host, &j->graph);
    else if (transform || s->mcl.pre_inflation > 0) TRY(prepare_graph(j));
done:
    sp_csr_free(j->host, &prepared);
    return status;
}

/* ---- the whole run ------------------------------------------------------------------------------------- */

static bool mistakes_folder(const job *j, const char *path)
{
    if (!path || !lies_in_folder(path, j->settings->input)) return false;
    return !usage_mistake("mcl-gpu", "the output \"%.200s\" lies in the folder that is the input: put it elsewhere",
                          path);
}

/* Inputs stay, and outputs are apart. */
static sp_status keep_apart(job *j, output_list *all, const char *path)
{
    const settings *s = j->settings;
    if (j->team.follows) return SP_OK;
    j->mistaken = mistakes_folder(j, path) || overwrites("mcl-gpu", path, s->input) ||
                  overwrites("mcl-gpu", path, s->read.tab) ||
                  overwrites("mcl-gpu", path, s->start_from) || overwrites("mcl-gpu", path, s->start_graph) ||
                  (path != s->checkpoint && overwrites("mcl-gpu", path, s->resume)) ||
                  !add_output(all, "mcl-gpu", path);
    return j->mistaken ? SP_ERROR_ARGUMENT : SP_OK;
}

static sp_status check_output(job *j, output_list *all, const char *path)
{
    sp_status status = keep_apart(j, all, path);
    return status == SP_OK && path && !j->team.follows ? io_output_check(j->host, path) : status;
}

static sp_status check_dumps(job *j, const output_list *all)
{
    for (int i = 0; i < j->settings->inflation_count && !j->mistaken && !j->team.follows; i++)
        for (int k = 0; k < all->count && !j->mistaken; k++)
            if (job_is_dump(j, &j->report.runs[i], &all->places[k]))
                j->mistaken = !usage_mistake("mcl-gpu", "a dump would be written to \"%s\", too: give one another name",
                                             all->places[k].name);
    return j->mistaken ? SP_ERROR_ARGUMENT : SP_OK;
}

/* Fails before the work if an output could not be written after it, or would replace an input or another output.
 * Standard output takes several, as with mcl. */
static sp_status check_outputs(job *j)
{
    const settings *s = j->settings;
    const char *const fixed[] = {s->write_graph, s->write_transformed, s->write_expanded,
                                 s->report,      s->table,             s->graphml,       s->checkpoint};
    output_list all = {.share_stdout = true};
    char beside[MAX_PATH + 8];
    sp_status status = SP_OK;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) TRY(check_output(j, &all, fixed[i]));
    for (int i = 0; i < s->inflation_count; i++) {
        report_run *run = &j->report.runs[i];
        run->inflation = s->inflations[i];
        settings_output_name(s, run->inflation, run->output);
        TRY(check_output(j, &all, run->output));
        snprintf(beside, sizeof beside, "%s-limit", run->output);
        if (s->write_limit) TRY(keep_apart(j, &all, beside));
        snprintf(beside, sizeof beside, "%s-rags", run->output);
        if (s->mcl.force_connected) TRY(keep_apart(j, &all, beside));
    }
    TRY(check_dumps(j, &all));
done:
    return status;
}

/* The closing line: what was read and what was written. */
static void log_summary(job *j)
{
    const io_graph *g = &j->input;
    const int64_t edges = g->undirected && !g->symmetric ? j->report.arcs / 2 : j->report.arcs;
    char line[2 * MAX_PATH], nodes[COUNT_TEXT], arcs[COUNT_TEXT], clusters[COUNT_TEXT];
    size_t used = 0;
    if (j->log.quiet) return;
    for (int i = 0; i < j->report.run_count && used < sizeof line; i++) {
        const report_run *run = &j->report.runs[i];
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s%s to %s", i > 0 ? ", " : "",
                                 show_count(run->clusters, clusters),
                                 i > 0 ? "" : run->clusters == 1 ? " cluster" : " clusters",
                                 output_name(run->output));
    }
    log_line(&j->log, "mcl-gpu: read %s as %s, %s nodes, %s %s; wrote %s",
             input_name(j->settings->input), io_format_name(g->format),
             show_count(j->report.nodes, nodes), show_count(edges, arcs), g->undirected ? "edges" : "arcs", line);
}

/* What can be checked before the input is read. */
static sp_status check_all(job *j, opening *device)
{
    const settings *s = j->settings;
    char start[MAX_PATH];
    snprintf(start, sizeof start, "%s", s->arguments[0]);
    sp_status status;
    if (!ranks_allow(j)) {
        j->mistaken = true;
        return SP_ERROR_ARGUMENT;
    }
    TRY(report_create(j->host, s->inflation_count, &j->report));
    TRY(check_outputs(j));
    const char *slash = strrchr(start, '/');
    if (!(j->command_line = settings_quoted(s, slash ? slash + 1 : start)))
        TRY(sp_fail(j->host, SP_ERROR_HOST_MEMORY, "out of memory"));
    if (s->steep)
        log_warning(&j->log, "___ [mclInit] float argument to -I should be in range (0.0,30.0]; left out, as with mcl; "
                    "%s %g", s->inflation_count > 1 ? "the first left is" : "it is", s->inflations[0]);
    job_begin_opening(j, device);
    TRY(job_check_opening(j, device));
done:
    return status;
}

/* From the input to the matrix and the device that iterations begin with. */
static sp_status make_ready(job *j, opening *device)
{
    sp_status status;
    TRY(make_graph(j));
    TRY(make_start(j));
    TRY(job_begin_update(j));
    TRY(job_choose_device(j, device));
done:
    return status;
}

/* Everything before the first iteration. Processes that share the run come to the same steps, or none goes on. */
static sp_status prepare(job *j, opening *device)
{
    double began;
    sp_status status;
    TRY(team_agree_on(&j->team, check_all(j, device)));
    began = wall_seconds();
    TRY(team_agree_on(&j->team, read_input(j)));
    j->report.read_seconds = wall_seconds() - began;
    began = wall_seconds();
    TRY(team_agree_on(&j->team, make_ready(j, device)));
    TRY(job_begin_checkpoints(j));
    j->report.start_seconds = wall_seconds() - began;
done:
    return status;
}

static sp_status cluster(job *j)
{
    const settings *s = j->settings;
    sp_status status = SP_OK;
    for (int i = 0; i < s->inflation_count; i++) {
        if (s->inflation_count > 1)
            log_line(&j->log, "[mcl-gpu] inflation %g, %d of %d", s->inflations[i], i + 1, s->inflation_count);
        TRY(job_cluster(j, &j->report.runs[i]));
    }
    ranks_log(j);
    if (j->team.follows) goto done;
    log_citation(&j->log);
    if (s->quality || (s->inflation_count > 1 && !j->log.quiet)) TRY(quality_show(j));
    log_summary(j);
done:
    return status;
}

static sp_status parse_list(job *j, const char *option, const char *list, bool of_labels, mcl_transform **transform)
{
    char why[512];
    if (!list) return SP_OK;
    const sp_status status = mcl_transform_parse(j->host, list, of_labels, transform);
    if (status != SP_ERROR_ARGUMENT) return status;
    snprintf(why, sizeof why, "%s", sp_last_error(j->host));
    return sp_fail(j->host, status, "%s: %s", option, why);
}

/* The lists of -tf and -abc-tf; a mistake in them is one of usage. */
static sp_status parse_transforms(job *j)
{
    const settings *s = j->settings;
    const sp_status status = parse_list(j, "-abc-tf", s->value_transform, true, &j->value_transform);
    return status == SP_OK ? parse_list(j, "-tf", s->graph_transform, false, &j->graph_transform) : status;
}

/* What every process has before it looks at anything; *code for mistakes in the command line. */
static sp_status open_job(job *j, int *code)
{
    sp_status status = job_open_host(j);
    if (status != SP_OK) return status;
    status = parse_transforms(j);
    if (status == SP_ERROR_ARGUMENT || status == SP_ERROR_UNSUPPORTED) *code = EXIT_USAGE;
    return status;
}

static void close_job(job *j)
{
    for (int i = 0; i < j->kept_count; i++) io_output_discard(j->kept[i]);
    free(j->command_line);
    if (j->host) {
        mcl_transform_free(j->host, j->value_transform);
        mcl_transform_free(j->host, j->graph_transform);
        sp_csr_free(j->host, &j->graph);
        sp_csr_free(j->host, &j->start);
        job_free_update(j);
        FREE_ALL(j->host, j->start_sums, j->given, j->accounts);
        io_graph_free(j->host, &j->input);
        report_free(j->host, &j->report);
    }
    sp_context_destroy(j->device);
    sp_context_destroy(j->host);
}

/* Several processes: a column needs more of the others' than --memory leaves. No column that was pruned has more than
 * max(S, R) entries, but for ties, nor do those that it names: that bounds what later iterations need. */
static void explain_columns(job *j, sp_status status)
{
    const settings *s = j->settings;
    const mcl_options *options = &j->mcl;
    const int64_t entry = sizeof(int32_t) + sizeof(float), nodes = j->input.nodes;
    const int64_t kept = options->select > options->recover ? options->select : options->recover;
    const int64_t length = options->select > 0 && kept < nodes ? kept : nodes;
    const int parts = device_is_cuda(s->device) ? 2 : j->team.mpi->host_size;
    const int64_t later = length * length * entry, enough = later > j->needed ? later : j->needed;
    team_remedy remedy;
    sp_fail(j->host, status,
            "a column needs %lld KB of other columns, and --memory leaves %lld KB for them in each process: %s",
            (long long)(j->needed / 1000 + 1), (long long)(j->team.ranks->memory / 1000),
            team_would_do(&j->team, enough, s->memory, parts, remedy));
}

static void explain_memory(job *j, sp_status status)
{
    if (j->needed > 0) explain_columns(j, status);
    if (j->iterates)
        budget_explain(&j->budget, j->host, status, "the matrix of the next iteration", true,
                       "; lower -S and -R take less, and several hosts share it");
    else budget_explain(&j->budget, j->host, status, "the network", false, "");
}

/* Returns the exit code. */
static int say_failure(job *j, sp_status status)
{
    tool_line line = {.tool = "mcl-gpu", .progress = j->log.progress};
    int code = interrupt_signal ? EXIT_SIGNAL + interrupt_signal : EXIT_FAILED;
    if (!j->team.silent) {
        explain_memory(j, status);
        team_name_failure(&j->team, status);
        code = end_failed(&line, j->host, status);
    }
    return interrupt_signal && job_has_checkpoint(j) ? EXIT_KEPT : code;
}

static int run(const settings *s)
{
    job j = {.settings = s, .finish = &stop_asked};
    opening device = {0};
    int code = EXIT_FAILED;
    log_open(&j.log, s->quiet, s->threads == 0);
    j.log.plain = s->progress == PROGRESS_PLAIN;
    if (s->progress != PROGRESS_AUTO) j.log.terminal = false;
    sp_status status = job_open_ranks(&j);
    if (status == SP_OK) status = team_agree_on(&j.team, open_job(&j, &code));
    if (status == SP_OK) status = prepare(&j, &device);
    if (status == SP_OK) status = ranks_compare_start(&j);
    if (status == SP_OK) status = cluster(&j);
    opening_close(&device);
    if (status == SP_OK) {
        code = EXIT_DONE;
    } else if (j.mistaken) {
        code = EXIT_USAGE;
    } else {
        const int failed = say_failure(&j, status);
        if (code != EXIT_USAGE) code = failed;
    }
    close_job(&j);
    team_end(&j.team, code);
    return code;
}

int main(int argc, char **argv)
{
    settings s;
    hold_standard_streams();
    if (argc < 2) {
        settings_usage(stderr);
        return EXIT_USAGE;
    }
    const int kept = team_hide_messages();
    const bool parsed = settings_parse(argc, argv, &s);
    team_show_messages(kept);
    if (!parsed) return team_mistaken();
    if (s.request != REQUEST_RUN) {
        if (!team_launched_behind()) settings_answer(&s);
        return end_answer("mcl-gpu");
    }
    catch_signal(SIGALRM, on_alarm);
    if (team_launched_behind()) leave_signals_unsaid();
    settle_process("mcl-gpu", argv, thread_count(s.input, s.threads));
    return run(&s);
}
