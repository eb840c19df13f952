/* One clustering: the process, its interpretation, the output, and the dumps on the way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/device.h"
#include "job.h"

enum { MATRIX_DIGITS = 7 }; /* what mcl writes of an f32 */

/* Holds a file back until the clustering that it belongs to appears. What is written directly is complete: a reader
 * may wait for its end. */
static sp_status keep(job *j, io_output *output)
{
    if (!io_output_is_file(output) || j->kept_count == MOST_KEPT) return io_output_commit(output);
    j->kept[j->kept_count++] = output;
    return SP_OK;
}

/* A matrix that is being written. */
typedef struct matrix_writer {
    job *job;
    io_output *output;
    io_native_options options;
    sp_status status; /* the first failure, after which blocks are dropped */
} matrix_writer;

static void put_block(void *user, int64_t first, const sp_csr *rows)
{
    matrix_writer *w = user;
    w->options.first = first;
    if (w->status == SP_OK) w->status = io_put_native_columns(w->job->host, w->output, rows, &w->options);
}

/* Process 0 writes blocks of the rows of all, so that it does not hold them. */
static sp_status put_together(job *j, const sp_csr *rows, matrix_writer *w)
{
    int64_t *offsets = NULL;
    sp_status status = SP_OK;
    if (w->options.binary) status = ranks_gather_offsets(j, rows, &offsets);
    w->options.offsets = offsets;
    if (status == SP_OK) status = sp_ranks_stream_rows(j->host, j->team.ranks, rows, TEAM_BLOCK, put_block, w);
    if (status != SP_OK) team_give_up(&j->team, j->host, status); /* the others are waiting in the middle of it */
    sp_free(j->host, offsets);
    return w->status;
}

sp_status job_write_matrix(job *j, matrix_kind kind, const char *path, const sp_csr *rows, const double *numbers)
{
    const io_native_options options = {.ids = j->input.ids, .numbers = numbers, .digits = MATRIX_DIGITS,
                                       .binary = j->settings->binary};
    matrix_writer w = {.job = j, .options = options};
    int64_t nnz = rows->nnz;
    sp_status status = SP_OK;
    may_block = 1;
    if (!j->team.follows) status = io_output_open(j->host, path, &w.output);
    TRY(team_agree_on(&j->team, status));
    if (j->team.ranks) TRY(team_add_up(&j->team, &nnz));
    if (j->team.ranks) status = put_together(j, rows, &w);
    else status = io_put_native_columns(j->host, w.output, rows, &options);
    if (status == SP_OK && !j->team.follows) {
        status = kind == MATRIX_DUMP ? io_output_commit(w.output) : keep(j, w.output);
        w.output = NULL;
    }
    TRY(team_agree_on(&j->team, status));
    log_matrix_written(&j->log, path, options.binary, rows->cols, rows->cols, nnz);
done:
    io_output_discard(w.output);
    may_block = 0;
    return status;
}

/* ---- the process --------------------------------------------------------------------------------------- */

typedef struct monitor_state {
    job *job;
    sp_context *context; /* where the iterand lives */
    bool keep_start;     /* for another inflation, for the CPU when the device fails, or to judge clusters */
    saved_state *saved;  /* where the run goes on, until its first iteration has ended; NULL: it does not */
    /* the next iterand before inflation, if -dump cls wants its clusters; the rows of this process */
    sp_csr expanded;
    report_run *run;
    sp_status status;
} monitor_state;

static io_clusters as_lists(const mcl_clustering *c)
{
    return (io_clusters){.nodes = c->nodes, .clusters = c->clusters, .offsets = c->offsets, .members = c->members};
}

/* KIND-NUMBER.STEM, as mcl names its dumps: beside an output that was named, otherwise in the present folder. Beside
 * stdout the stem is the input's bare name. */
static sp_status dump_name(const job *j, const report_run *run, const char *kind, int64_t number, char name[MAX_PATH])
{
    const settings *s = j->settings;
    char made[MAX_PATH];
    const bool to_stdout = s->output && strcmp(s->output, "-") == 0;
    settings_input_name(s, run->inflation, made);
    const char *stem = s->dump_stem ? s->dump_stem
                       : to_stdout  ? settings_input_base(s)
                       : s->output  ? run->output
                                    : made;
    const char *slash = strrchr(stem, '/');
    int folder = slash ? (int)(slash - stem) + 1 : 0;
    int length = snprintf(name, MAX_PATH, "%.*s%s-%lld.%s", folder, stem, kind, (long long)number, stem + folder);
    if (length >= MAX_PATH) return sp_fail(j->host, SP_ERROR_ARGUMENT, "the name of a dump is too long");
    if (!io_output_is_input(name, s->input) && !lies_in_folder(name, s->input)) return SP_OK;
    return sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: this dump would replace the input, or lie in its folder; give "
                   "another -dump-stem", name);
}

static bool is_dumped(const settings *s, int64_t number)
{
    return number >= s->dump_from && number < s->dump_to && (number - s->dump_from) % s->dump_modulo == 0;
}

bool job_is_dump(const job *j, const report_run *run, const io_place *place)
{
    const settings *s = j->settings;
    const char *const kind = strncmp(place->name, "ite-", 4) == 0 && s->dump_iterands   ? "ite"
                             : strncmp(place->name, "cls-", 4) == 0 && s->dump_clusters ? "cls"
                                                                                        : NULL;
    char name[MAX_PATH];
    io_place dump;
    if (!kind) return false;
    const int64_t number = strtoll(place->name + 4, NULL, 10);
    if (!is_dumped(s, number) || dump_name(j, run, kind, number, name) != SP_OK) return false;
    io_output_place(name, &dump);
    return io_output_same_place(&dump, place);
}

static mcl_options expansion_alone(const job *j)
{
    mcl_options options = j->mcl;
    options.inflation = 0;
    options.main_length = 1;
    options.initial_length = 0;
    return options;
}

sp_status job_expand(job *j, const sp_csr *start, sp_csr *expanded)
{
    const mcl_options options = expansion_alone(j);
    mcl_run run;
    if (!j->team.ranks) return mcl_iterate(j->host, start, &options, NULL, NULL, expanded, &run);
    const sp_status status =
        mcl_iterate_together(j->host, j->team.ranks, start, j->given, &options, NULL, NULL, expanded, &run);
    return ranks_leave(j, status);
}

/* The same of this process's rows of an iterand. */
static sp_status expand_rows(job *j, const mcl_iteration *iteration, const sp_csr *rows, sp_csr *expanded)
{
    const mcl_options options = expansion_alone(j);
    int64_t *cut = NULL;
    mcl_run run;
    sp_status status = ranks_learn_cut(j, rows, &cut);
    const mcl_state state = {.order = iteration->order, .iterand = rows, .given = cut};
    if (status == SP_OK)
        status = mcl_continue_together(j->host, j->team.ranks, &state, &options, NULL, NULL, expanded, &run);
    sp_free(j->host, cut);
    return ranks_leave(j, status);
}

/* The clusters of an iterand: mcl looks at it before inflation. */
static sp_status put_clusters_of(job *j, const report_run *run, int64_t number, const sp_csr *expanded)
{
    const settings *s = j->settings;
    char name[MAX_PATH];
    mcl_options options = s->mcl;
    mcl_clustering clustering = {0};
    sp_status status;
    options.force_connected = false;
    options.overlap = MCL_OVERLAP_KEEP;
    options.weak_attraction = true;
    options.sort = MCL_SORT_NONE;
    TRY(dump_name(j, run, "cls", number, name));
    TRY(mcl_interpret(j->host, expanded, NULL, &options, &clustering));
    const io_clusters lists = as_lists(&clustering);
    TRY(io_write_native_clusters(j->host, name, &lists, j->input.ids, s->binary, NULL));
    log_matrix_written(&j->log, name, s->binary, lists.nodes, lists.clusters, lists.offsets[lists.clusters]);
done:
    mcl_clustering_free(j->host, &clustering);
    return status;
}

/* Process 0 writes them. */
static sp_status dump_clusters(job *j, const report_run *run, int64_t number, const sp_csr *expanded)
{
    sp_csr attracting = {0};
    sp_status status = SP_OK;
    if (!j->team.ranks) return put_clusters_of(j, run, number, expanded);
    ranks_gather_attracting(j, expanded, &attracting);
    if (!j->team.follows) status = put_clusters_of(j, run, number, &attracting);
    sp_csr_free(j->host, &attracting);
    return team_agree_on(&j->team, status);
}

/* Whether the iterand itself is dumped after iteration `number`, and the clusters of the one that follows. */
static bool dumps_iterand(const settings *s, int64_t number) { return s->dump_iterands && is_dumped(s, number); }
static bool dumps_next(const settings *s, int64_t number) { return s->dump_clusters && is_dumped(s, number + 1); }

static sp_status dump(monitor_state *m, const mcl_iteration *iteration, const sp_csr *iterand)
{
    job *j = m->job;
    const settings *s = j->settings;
    const sp_ranks *ranks = j->team.ranks;
    const int64_t number = iteration->number;
    const bool now = dumps_iterand(s, number), next = dumps_next(s, number);
    char name[MAX_PATH];
    sp_csr copy = {0};
    sp_status status = SP_OK;
    if (m->expanded.row_offsets) TRY(dump_clusters(j, m->run, number, &m->expanded));
    sp_csr_free(j->host, &m->expanded);
    if (!now && !next) return SP_OK;
    if (ranks && now)
        TRY(ranks_leave(j, mcl_restore_together(j->host, ranks, iterand, iteration->order, &copy)));
    if (!ranks) TRY(mcl_restore(m->context, iterand, iteration->order, &copy));
    if (now) {
        TRY(team_agree_on(&j->team, dump_name(j, m->run, "ite", number, name)));
        TRY(job_write_matrix(j, MATRIX_DUMP, name, &copy, number == 0 ? j->start_sums : NULL));
    }
    if (next) status = ranks ? expand_rows(j, iteration, iterand, &m->expanded) : job_expand(j, &copy, &m->expanded);
done:
    sp_csr_free(ranks ? j->host : m->context, &copy);
    return status;
}

/* The expansion of an iterand. O(entries). */
static expansion foresee(const monitor_state *m, const sp_csr *iterand)
{
    const job *j = m->job;
    const int threads = sp_context_threads(m->context);
    const int64_t *offsets = iterand->row_offsets;
    double products = 0, entries = 0;
    if (j->team.ranks || sp_context_is_cuda(m->context) || (j->log.quiet && !j->log.plain))
        return (expansion){.threads = threads};
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : products, entries) num_threads(threads)
    for (int64_t row = 0; row < iterand->rows; row++) {
        int64_t row_products = 0;
        for (int64_t e = offsets[row]; e < offsets[row + 1]; e++)
            row_products += offsets[iterand->col_indices[e] + 1] - offsets[iterand->col_indices[e]];
        products += (double)row_products;
        entries += (double)(row_products < iterand->cols ? row_products : iterand->cols);
    }
    return (expansion){products, entries, threads};
}

/* The dumps and the checkpoint after an iteration, or the checkpoint after an interrupt. */
static sp_status save(monitor_state *m, const mcl_iteration *iteration, const sp_csr *iterand)
{
    job *j = m->job;
    bool due = job_checkpoint_due(j, iteration);
    sp_status status = iteration->interrupted ? SP_OK : dump(m, iteration, iterand);
    TRY(team_agree_on(&j->team, status));
    TRY(team_agree(&j->team, &due, sizeof due));
    if (due) TRY(job_checkpoint(j, m->context, m->run, iteration, iterand));
done:
    return status;
}

/* An iteration was interrupted: saves the iterand before it. */
static void save_interrupted(monitor_state *m, const mcl_iteration *iteration, const sp_csr *iterand)
{
    job *j = m->job;
    tool_line line = {.tool = "mcl-gpu", .progress = j->log.progress};
    m->status = save(m, iteration, iterand);
    if (m->status != SP_OK && !j->team.silent) {
        team_name_failure(&j->team, m->status);
        error_line(&line, "%s", sp_last_error(j->host));
    }
    if (team_agree_on_signal(&j->team) != SP_OK) team_give_up(&j->team, j->host, SP_ERROR_DEVICE);
}

static bool on_iteration(void *user, const mcl_iteration *iteration, const sp_csr *iterand)
{
    monitor_state *m = user;
    job *j = m->job;
    int64_t initial = j->settings->mcl.initial_length;
    if (iteration->interrupted) {
        save_interrupted(m, iteration, iterand);
        return false;
    }
    if (!m->keep_start && iterand != &j->start) sp_csr_free(j->host, &j->start);
    if (m->saved && iterand != &m->saved->iterand) sp_csr_free(j->host, &m->saved->iterand);
    j->iterates = true;
    if (iteration->number == 0) {
        j->log.ahead = foresee(m, iterand);
        m->status = save(m, iteration, iterand);
        return m->status == SP_OK;
    }
    const expansion ahead = foresee(m, iterand);
    log_iteration(&j->log, iteration);
    log_progress(&j->log, iteration, &ahead);
    if (iteration->bumped)
        log_line(&j->log, "[mclProcess] ====== Inflation bumped to %.4f ======", iteration->next_inflation);
    if (initial > 0 && iteration->number == initial)
        log_line(&j->log, "[mclProcess] ====== Changing from initial to main inflation now ======");
    m->status = report_add_iteration(j->host, m->run, iteration);
    if (m->status == SP_OK) m->status = save(m, iteration, iterand);
    return m->status == SP_OK && !*j->finish;
}

/* Runs the process on `context`, from the start or from --resume; the limit is host memory of that context. */
static sp_status iterate_on(job *j, sp_context *context, bool resume, const mcl_options *options, report_run *run,
                            sp_csr *limit)
{
    const bool last = run == &j->report.runs[j->settings->inflation_count - 1];
    monitor_state monitor = {.job = j, .context = context, .run = run,
                             .keep_start = !last || context != j->host || j->settings->analyze ||
                                           j->settings->start_from || settings_judge(j->settings)};
    saved_state saved = {0};
    sp_status status = SP_OK;
    run->iteration_count = 0;
    if (resume) status = job_resume(j, options, run, context != j->host, &saved);
    if (status != SP_OK) return status;
    monitor.saved = resume ? &saved : NULL;
    snprintf(run->device, sizeof run->device, "%s", sp_context_device(context));
    log_header(&j->log, j->start.rows);
    if (resume && j->team.ranks)
        status = mcl_continue_together(context, j->team.ranks, &saved.state, options, on_iteration, &monitor, limit,
                                       &run->run);
    else if (resume) status = mcl_continue(context, &saved.state, options, on_iteration, &monitor, limit, &run->run);
    else if (j->team.ranks)
        status = mcl_iterate_together(context, j->team.ranks, &j->start, j->given, options, on_iteration, &monitor,
                                      limit, &run->run);
    else status = mcl_iterate(context, &j->start, options, on_iteration, &monitor, limit, &run->run);
    sp_csr_free(j->host, &monitor.expanded);
    job_free_saved(j, &saved);
    /* who says it; all were interrupted */
    if (status == SP_ERROR_INTERRUPTED) status = team_agree_on(&j->team, status);
    if (status == SP_OK && monitor.status != SP_OK) {
        sp_csr_free(context, limit);
        return monitor.status;
    }
    if (status != SP_OK && context != j->host) /* the sentence outlives the device's context */
        sp_fail(j->host, status, "%s", sp_last_error(context));
    return status;
}

/* On the device if there is one; if that fails and it was our choice, once more on the CPU. */
static sp_status iterate(job *j, const mcl_options *options, report_run *run, sp_csr *limit, sp_context **owner)
{
    *owner = j->device ? j->device : j->host;
    sp_status status = iterate_on(j, *owner, j->settings->resume, options, run, limit);
    if (!j->device || j->team.ranks || !device_gives_way(j->settings->device, status)) return status;
    log_warning(&j->log, "mcl-gpu: " GOING_ON_WITH_CPU, sp_last_error(j->host));
    sp_context_destroy(j->device);
    j->device = NULL;
    *owner = j->host;
    return iterate_on(j, j->host, false, options, run, limit);
}

sp_status job_find_empty(sp_context *context, const sp_csr *columns, bool **empty)
{
    sp_status status = sp_alloc(context, columns->rows, sizeof **empty, (void **)empty);
    for (int64_t k = 0; k < columns->rows && status == SP_OK; k++)
        (*empty)[k] = columns->row_offsets[k] == columns->row_offsets[k + 1];
    return status;
}

void job_warn_vanished(job *j, int64_t columns, const bool *empty, const bool *before)
{
    for (int64_t k = 0; k < columns; k++)
        if (empty[k] && !before[k])
            log_warning(&j->log, "___ [mclvInflate] warning: nonpositive sum <%f> for vector %lld", 0.0,
                        (long long)(j->input.ids ? j->input.ids[k] : k));
}

/* ---- interpretation ------------------------------------------------------------------------------------- */

static void log_findings(job *j, const mcl_options *options, const mcl_clustering *c)
{
    static const char *const done[] = {"cut", "kept", "split"};
    if (c->overlap > 0)
        log_warning(&j->log, "[mcl] %s <%lld> instances of overlap", done[options->overlap], (long long)c->overlap);
    if (c->garbage > 0) log_warning(&j->log, "[mcl] added <%lld> garbage entries", (long long)c->garbage);
}

/* Whether `path` is, or will be, a file with a place beside it: not stdout, a device or a pipe. */
static bool is_plain(const char *path)
{
    struct stat file;
    return strcmp(path, "-") != 0 && (stat(path, &file) != 0 || S_ISREG(file.st_mode));
}

/* -force-connected and -check-connected: clusters in their connected parts. The unsplit clustering goes to OUT-rags,
 * as with mcl, where the split one replaces it. */
static sp_status connect_clusters(job *j, const mcl_options *options, const char *output, const sp_csr *limit,
                                  mcl_clustering *c)
{
    mcl_options connected = *options;
    mcl_clustering parts = {0};
    char rags[MAX_PATH + 8];
    connected.force_connected = true;
    sp_status status = mcl_interpret(j->host, limit, &j->graph, &connected, &parts);
    if (status != SP_OK) return status;
    int64_t more = parts.clusters - c->clusters;
    if (more <= 0) {
        log_line(&j->log, "[mcl parlour] clustering induces connected components");
    } else {
        log_line(&j->log, "[mcl parlour] splitting yields an additional %lld clusters at a total of %lld",
                 (long long)more, (long long)parts.clusters);
    }
    if (more > 0 && options->force_connected) {
        if (is_plain(output)) {
            io_clusters lists = as_lists(c);
            io_output *whole;
            snprintf(rags, sizeof rags, "%s-rags", output);
            TRY(io_output_open(j->host, rags, &whole));
            io_put_native_clusters(whole, &lists, j->input.ids, NULL);
            TRY(keep(j, whole));
            log_matrix_written(&j->log, rags, false, lists.nodes, lists.clusters, lists.offsets[lists.clusters]);
        }
        log_line(&j->log, "[mcl parlour] proceeding with split clustering");
        mcl_clustering unsplit = *c;
        *c = parts;
        parts = unsplit;
    }
done:
    mcl_clustering_free(j->host, &parts);
    return status;
}

static sp_status interpret(job *j, const mcl_options *options, const report_run *run, const sp_csr *limit,
                           mcl_clustering *clustering)
{
    const bool part = j->settings->start_from != NULL;
    mcl_options plain = *options;
    plain.force_connected = part && options->force_connected;
    sp_status status = mcl_interpret(j->host, limit, plain.force_connected ? &j->graph : NULL, &plain, clustering);
    if (status != SP_OK) return status;
    log_findings(j, options, clustering);
    log_jury(&j->log, &run->run);
    if (!part && (options->force_connected || j->settings->check_connected))
        status = connect_clusters(j, options, run->output, limit, clustering);
    return status;
}

/* ---- output -------------------------------------------------------------------------------------------- */

/* The text of -append-log, in mcl's layout. */
static char *run_information(const job *j, const report_run *run)
{
    const settings *s = j->settings;
    char *text = NULL, *arguments = settings_quoted(s, "");
    size_t size;
    FILE *stream = arguments ? open_memstream(&text, &size) : NULL;
    if (stream) {
        fprintf(stream, "\n(mclruninfo\n\nversion <mcl-gpu " SP_VERSION ">\ninput file name <%s>\n", s->input);
        fprintf(stream, "number of nodes <%lld>\nnumber of clusters <%lld>\n", (long long)j->input.nodes,
                (long long)run->clusters);
        fprintf(stream, "command line <%s>\ntotal time usage <%.2f>\nnumber of iterations <%lld>\n\n", arguments,
                run->iterate_seconds, (long long)run->run.iterations);
        settings_print(s, run->inflation, stream);
        fprintf(stream, ")\n");
        if (fclose(stream) != 0) {
            free(text);
            text = NULL;
        }
    }
    free(arguments);
    return text;
}

/* The text of -analyze, in mcl's layout. */
static void put_measures(io_output *output, const job *j, const report_run *run, const mcl_measures *m)
{
    io_output_format(output, "ncl=%lld max=%lld  ctr=%.1f avg=%.1f min=%lld ", (long long)m->clusters,
                     (long long)m->largest, m->center, m->average, (long long)m->smallest);
    io_output_format(output, "DGI=%lld TWI=%lld TWL=%lld sgl=%lld qrt=%lld\n", (long long)m->dust,
                     (long long)m->half, (long long)m->half_size, (long long)m->singletons, (long long)m->quartets);
    io_output_format(output, "eff=%.5f mod=%.5f mf=%.5f af=%.5f target-name=", m->efficiency, m->modularity,
                     m->mass_fraction, m->area_fraction);
    io_output_string(output, j->settings->input);
    io_output_string(output, "\nsource-name=");
    io_output_string(output, run->output);
    io_output_string(output, "\n\n");
}

/* Whether nodes have names: then clusters are lines of these, else a native matrix. */
static bool is_labelled(const io_graph *g)
{
    return g->names.count > 0 || g->first < 0;
}

static sp_status put_clusters(job *j, const report_run *run, const io_clusters *lists, const mcl_measures *measures,
                              io_output *output)
{
    if (is_labelled(&j->input)) {
        log_line(&j->log, "[mcl] output is in %s", run->output);
        io_put_label_clusters(output, lists, &j->input.names);
    } else {
        io_put_native_clusters(output, lists, j->input.ids, j->command_line);
    }
    if (j->settings->append_log) {
        char *text = run_information(j, run);
        if (!text) return sp_fail(j->host, SP_ERROR_HOST_MEMORY, "out of memory");
        io_output_string(output, text);
        free(text);
    }
    if (j->settings->analyze) {
        put_measures(output, j, run, measures);
        log_line(&j->log, "[mcl parlour] included performance measures in cluster output");
        if (is_labelled(&j->input))
            log_line(&j->log, "mcl-gpu: these are two lines behind the clusters, not clusters; --quality prints "
                     "figures instead");
    }
    return SP_OK;
}

/* The clusters, the matrices that were kept, and with the last clustering the report, all or none. */
static sp_status finish_clusters(job *j, report_run *run, double began, io_output *output, sp_status status)
{
    const bool last = run == &j->report.runs[j->settings->inflation_count - 1];
    const struct { const char *path; sp_status (*put)(job *j, io_output *out); } tables[] = {
        {j->settings->table, job_put_table}, {j->settings->graphml, job_put_graphml}};
    io_output *all[MOST_KEPT + 4] = {output};
    int count = 1;
    for (int i = 0; i < j->kept_count; i++) all[count++] = j->kept[i];
    j->kept_count = 0;
    for (int i = 0; i < count && status == SP_OK; i++) status = io_output_settle(all[i]);
    run->write_seconds = wall_seconds() - began;
    for (int i = 0; i < 2 && status == SP_OK && last; i++) {
        if (!tables[i].path) continue;
        status = io_output_open(j->host, tables[i].path, &all[count]);
        if (status == SP_OK) status = tables[i].put(j, all[count++]);
    }
    if (status == SP_OK && last && j->settings->report) {
        j->report.threads = sp_context_threads(j->host);
        j->report.total_seconds = wall_seconds() - j->log.began;
        status = report_put(j, &all[count]);
        count += status == SP_OK;
    }
    return finish_outputs(all, count, status);
}

static sp_status write_clusters(job *j, report_run *run)
{
    const double began = wall_seconds();
    const io_clusters lists = as_lists(&run->clustering);
    io_output *output;
    sp_status status = io_output_open(j->host, run->output, &output);
    if (status != SP_OK) return status;
    status = put_clusters(j, run, &lists, &run->quality.measures, output);
    status = finish_clusters(j, run, began, output, status);
    if (status != SP_OK) return status;
    if (!is_labelled(&j->input))
        log_matrix_written(&j->log, run->output, false, lists.nodes, lists.clusters, lists.offsets[lists.clusters]);
    log_line(&j->log, "[mcl] %lld clusters found", (long long)lists.clusters);
    log_line(&j->log, "[mcl] output is in %s", run->output);
    return SP_OK;
}

static void report_clusters(report_run *run, const mcl_clustering *c)
{
    run->clusters = c->clusters;
    run->attractor_systems = c->attractors;
    run->overlap = c->overlap;
    run->overlap_nodes = c->overlap_nodes;
    run->garbage_nodes = c->garbage;
    run->largest = run->singletons = 0;
    for (int64_t i = 0; i < c->clusters; i++) {
        int64_t size = c->offsets[i + 1] - c->offsets[i];
        run->singletons += size == 1;
        if (size > run->largest) run->largest = size;
    }
}

/* From the start matrix to clusters; with --start-from those of the part that runs. */
static sp_status find_clusters(job *j, report_run *run, mcl_clustering *clustering)
{
    mcl_options options = j->mcl;
    /* of several processes the rows of this one, and at the first what it interprets */
    sp_csr limit = {0}, attracting = {0};
    sp_context *owner = j->host;
    char limit_name[MAX_PATH + 8];
    bool *empty = NULL, *now = NULL;
    sp_status status;
    options.inflation = run->inflation;
    double began = wall_seconds();
    const double waited = j->team.ranks ? j->team.mpi->waited : 0;
    TRY(job_find_empty(j->host, &j->start, &empty));
    TRY(ranks_gather_rows(j, empty, sizeof *empty));
    TRY(iterate(j, &options, run, &limit, &owner));
    j->iterate_seconds += wall_seconds() - began;
    j->iterate_waited += j->team.ranks ? j->team.mpi->waited - waited : 0;
    TRY(ranks_account(j));
    if (j->team.ranks) ranks_gather_attracting(j, &limit, &attracting);
    const sp_csr *whole = j->team.ranks ? &attracting : &limit;
    TRY(job_find_empty(j->host, whole, &now));
    job_warn_vanished(j, whole->rows, now, empty);
    run->iterate_seconds = wall_seconds() - began;
    if (j->settings->write_limit) {
        snprintf(limit_name, sizeof limit_name, "%s-limit", run->output);
        TRY(job_write_matrix(j, MATRIX_KEPT, limit_name, &limit, run->run.iterations == 0 ? j->start_sums : NULL));
    }
    if (j->team.follows) goto done;
    began = wall_seconds();
    TRY(interpret(j, &options, run, whole, clustering));
    run->interpret_seconds = wall_seconds() - began;
done:
    sp_csr_free(j->host, &attracting);
    FREE_ALL(j->host, empty, now);
    sp_csr_free(owner, &limit);
    return status;
}

/* --check-start. */
static sp_status check_update(job *j, const report_run *run, const mcl_clustering *found)
{
    report_run full = {.inflation = run->inflation};
    mcl_clustering clustering = {0};
    sp_status status = SP_OK;
    if (!j->settings->check_start) return SP_OK;
    snprintf(full.output, sizeof full.output, "%s", run->output);
    log_line(&j->log, "mcl-gpu: --check-start: a run of everything");
    job_run_everything(j);
    TRY(find_clusters(j, &full, &clustering));
    TRY(job_check_update(j, found, &clustering));
done:
    mcl_clustering_free(j->host, &clustering);
    sp_free(j->host, full.iterations);
    return status;
}

sp_status job_cluster(job *j, report_run *run)
{
    const bool kept = settings_judge(j->settings), judged = kept || j->settings->analyze;
    mcl_clustering *clustering = &run->clustering;
    sp_status status;
    TRY(find_clusters(j, run, clustering));
    if (j->team.follows) return judged ? quality_judge(j, run) : SP_OK;
    if (job_update_falls_short(j, clustering)) {
        mcl_clustering_free(j->host, clustering);
        TRY(find_clusters(j, run, clustering));
    }
    TRY(job_join_update(j, clustering));
    TRY(check_update(j, run, clustering));
    report_clusters(run, clustering);
    if (judged) TRY(quality_judge(j, run));
    may_block = 1;
    status = write_clusters(j, run);
    may_block = 0;
    if (!kept) mcl_clustering_free(j->host, clustering);
done:
    return status;
}
