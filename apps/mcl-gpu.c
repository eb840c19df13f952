/* mcl-gpu: clusters a graph as mcl 22-282 does, on the CPU or on a CUDA device.
 *
 * read -> graph (CSR) -> start matrix -> for each inflation: iterate -> interpret -> write. The command line is in
 * mcl_options, the log in mcl_log, the JSON report in mcl_report; this file holds the order of the steps, the choice
 * of the device and what ends a run early.
 */
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mcl.h"
#include "mcl_log.h"
#include "mcl_options.h"
#include "mcl_report.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

/* Evaluates a call that returns sp_status; on failure keeps it in `status` and jumps to `done`. */
#define TRY(call)                       \
    do {                                \
        status = (call);                \
        if (status != SP_OK) goto done; \
    } while (0)

/* ---- signals ------------------------------------------------------------------------------------------- */

static volatile int interrupt_signal; /* the number of the signal; the library's interrupt flag */
static volatile sig_atomic_t may_block; /* reading: a pipe may never answer, so the handler ends the run itself */
static volatile sig_atomic_t stop_asked; /* SIGALRM: interpret the present iterand, as mcl does */

static void on_signal(int number)
{
    if (number == SIGALRM) {
        stop_asked = 1;
        return;
    }
    if (may_block || interrupt_signal) { /* or it is the second one */
        io_output_unlink_all();
        _exit(EXIT_SIGNAL + number);
    }
    interrupt_signal = number;
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, inherited;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN) /* nohup stays */
            sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a write error, with a message */
}

/* Descriptors 0 to 2 must not be given to the first files that are opened. A closed stdin becomes one that cannot be
 * read, a closed stdout or stderr one that cannot be written, so that using it fails as it should. */
static void hold_standard_streams(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
            int opened = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
            if (opened > descriptor) close(opened);
        }
}

/* ---- a job --------------------------------------------------------------------------------------------- */

typedef struct job {
    const settings *settings;
    run_log log;
    report report;
    sp_context *host;   /* reads, prepares, interprets, writes; computes where there is no device */
    sp_context *device; /* CUDA; NULL: compute on the host */
    mcl_transform *value_transform, *graph_transform; /* -abc-tf, -tf; NULL: none */
    io_graph input;     /* its arcs are released once the graph is made; names and ids stay */
    sp_csr graph, start;
    char *command_line;
} job;

/* The size of a plain file; -1 for pipes, standard input and what is not there. */
static int64_t file_bytes(const char *path)
{
    struct stat file;
    return strcmp(path, "-") != 0 && stat(path, &file) == 0 && S_ISREG(file.st_mode) ? (int64_t)file.st_size : -1;
}

/* Starting and joining threads costs more than it brings on small inputs, which pipelines cluster by the thousand,
 * often side by side. A thread for each part of this size takes some 10 ms or more to work on it. */
static const int64_t THREAD_BYTES = 256 << 10;

/* -te, or as many as the input is worth; never more than the processors that this process may use. */
static int thread_count(const settings *s)
{
    cpu_set_t usable;
    int64_t most = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : sysconf(_SC_NPROCESSORS_ONLN);
    int64_t bytes = file_bytes(s->input), wanted = s->threads;
    if (wanted == 0) wanted = bytes >= 0 ? 1 + bytes / THREAD_BYTES : most;
    if (most < 1) most = 1;
    return (int)(wanted < most ? wanted : most);
}

static sp_context_options context_options(const settings *s, const char *device)
{
    return (sp_context_options){
        .device = device,
        .threads = thread_count(s),
        .memory_budget = (size_t)s->memory,
        .interrupt = &interrupt_signal,
    };
}

/* ---- the device ---------------------------------------------------------------------------------------- */

/* A CUDA context takes about 0.3 s to make, in which two CPU cores expand about 2e8 products: below that the device
 * cannot win even where it is infinitely fast. */
static const double CUDA_PRODUCTS = 2e8;
/* Files from this size on may hold such a graph: their device is opened while they are read. */
static const int64_t CUDA_BYTES = 8 << 20;

typedef struct opening {
    const settings *settings;
    pthread_t thread;
    bool running;
    sp_status status;
    sp_context *context;
} opening;

static void *open_device(void *argument)
{
    opening *o = argument;
    bool any = strcmp(o->settings->device, "auto") == 0;
    sp_context_options options = context_options(o->settings, any ? "cuda" : o->settings->device);
    o->status = sp_context_create(&options, &o->context);
    return NULL;
}

/* Whether CUDA was asked for by name. */
static bool cuda_required(const settings *s) { return strncmp(s->device, "cuda", 4) == 0; }

/* Whether it may be used. */
static bool cuda_allowed(const settings *s) { return cuda_required(s) || (strcmp(s->device, "auto") == 0 && !s->exact); }

/* Begins to open the device beside the reading where it is likely to be used. The thread blocks all signals. */
static void begin_opening(opening *o, const settings *s)
{
    bool large = file_bytes(s->input) >= CUDA_BYTES;
    *o = (opening){.settings = s, .status = SP_ERROR_NO_DEVICE};
    if (!cuda_required(s) && !(cuda_allowed(s) && large)) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    o->running = pthread_create(&o->thread, NULL, open_device, o) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_opening(opening *o)
{
    if (o->running) pthread_join(o->thread, NULL);
    o->running = false;
}

/* The multiplications of the first expansion: for each entry (j, k), the length of row k. */
static double count_products(const sp_csr *matrix)
{
    double products = 0;
    for (int64_t e = 0; e < matrix->nnz; e++) {
        int32_t row = matrix->col_indices[e];
        products += (double)(matrix->row_offsets[row + 1] - matrix->row_offsets[row]);
    }
    return products;
}

/* Decides where to compute, now that the work is known. */
static sp_status choose_device(job *j, opening *o)
{
    const settings *s = j->settings;
    double products = count_products(&j->start);
    bool wanted = cuda_required(s) || (cuda_allowed(s) && products > CUDA_PRODUCTS);
    j->report.first_products = (int64_t)products;
    bool began = o->running;
    end_opening(o);
    if (wanted && !began) open_device(o);
    if (wanted) j->device = o->context;
    else sp_context_destroy(o->context);
    o->context = NULL;
    if (j->device || !cuda_required(s)) return SP_OK;
    return sp_fail(j->host, o->status, "--device %s: %s; use --device cpu or auto", s->device,
                   sp_status_string(o->status));
}

/* Trouble that the CPU does not have. */
static bool is_device_trouble(sp_status status)
{
    return status == SP_ERROR_DEVICE_MEMORY || status == SP_ERROR_DEVICE || status == SP_ERROR_UNSUPPORTED;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* --abc-neg-log[10] first, then -abc-tf, in f64. */
static double transform_value(void *user, double weight)
{
    const job *j = user;
    if (j->settings->negative_log) weight = weight > 0 ? -log(weight) : (double)FLT_MAX;
    if (j->settings->negative_log10) weight = weight > 0 ? -log10(weight) : (double)FLT_MAX;
    return j->value_transform ? mcl_transform_value(j->value_transform, weight) : weight;
}

static void log_read(job *j)
{
    const settings *s = j->settings;
    const io_graph *g = &j->input;
    if (g->format == IO_NATIVE)
        log_matrix_read(&j->log, s->input, g->lines == 0, g->nodes, g->nodes, g->arcs);
    else
        log_labels_read(&j->log, g->lines);
    if (g->odd_lines > 0 || g->negative > 0)
        log_warning(&j->log, "mcl-gpu: %s: %lld odd lines taken as mcl takes them, %lld negative weights", s->input,
                    (long long)g->odd_lines, (long long)g->negative);
}

static sp_status read_input(job *j)
{
    const settings *s = j->settings;
    io_read_options options = s->read;
    if (j->value_transform || s->negative_log || s->negative_log10) {
        options.transform = transform_value;
        options.transform_user = j;
    }
    may_block = 1;
    sp_status status = io_read_graph(j->host, s->input, &options, &j->input);
    may_block = 0;
    if (status == SP_OK && s->read.format == IO_AUTO && j->input.format == IO_ABC)
        status = sp_fail(j->host, SP_ERROR_ARGUMENT,
                         "%s: not a matrix and not a STRING file; for label pairs give --abc", s->input);
    if (status == SP_OK) log_read(j);
    return status;
}

/* An arc of weight zero declares its nodes and is no arc. */
static void drop_zero_arcs(io_graph *g)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < g->arcs; i++) {
        if (g->weights[i] == 0) continue;
        g->tails[kept] = g->tails[i];
        g->heads[kept] = g->heads[i];
        g->weights[kept++] = g->weights[i];
    }
    g->arcs = kept;
}

/* Duplicate arcs: mcl takes the heaviest of label pairs and the first of a matrix. */
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
    drop_zero_arcs(g);
    sp_combine combine = g->format == IO_NATIVE ? SP_COMBINE_FIRST : SP_COMBINE_MAX;
    sp_status status = sp_csr_from_coo(j->host, g->nodes, g->nodes, g->arcs, g->tails, g->heads, g->weights, SP_F32,
                                       combine, g->symmetric, &j->graph);
    sp_free(j->host, g->tails);
    sp_free(j->host, g->heads);
    sp_free(j->host, g->weights);
    g->tails = g->heads = NULL;
    g->weights = NULL;
    r->graph_entries = j->graph.nnz;
    return status;
}

/* ---- matrices on request ------------------------------------------------------------------------------- */

enum { MATRIX_DIGITS = 7 }; /* what mcl writes of an f32 */

static sp_status write_matrix(job *j, const char *path, const sp_csr *matrix)
{
    bool binary = j->settings->binary;
    sp_status status = io_write_native_matrix(j->host, path, matrix, j->input.ids, MATRIX_DIGITS, binary, NULL);
    if (status == SP_OK) log_matrix_written(&j->log, path, binary, matrix->rows, matrix->cols, matrix->nnz);
    return status;
}

/* The first expansion, pruned and made stochastic, is what one iteration without inflation leaves. */
static sp_status write_expanded(job *j)
{
    mcl_options options = j->settings->mcl;
    mcl_run run;
    sp_csr expanded = {0};
    options.inflation = 1;
    options.main_length = 1;
    options.initial_length = 0;
    sp_status status = mcl_iterate(j->host, &j->start, &options, NULL, NULL, &expanded, &run);
    if (status == SP_OK) status = write_matrix(j, j->settings->write_expanded, &expanded);
    sp_csr_free(j->host, &expanded);
    return status;
}

/* Entries that are not loops. */
static int64_t count_arcs(const sp_csr *matrix)
{
    int64_t arcs = 0;
    for (int64_t row = 0; row < matrix->rows; row++)
        for (int64_t e = matrix->row_offsets[row]; e < matrix->row_offsets[row + 1]; e++)
            arcs += matrix->col_indices[e] != row;
    return arcs;
}

static sp_status make_start(job *j)
{
    const settings *s = j->settings;
    const mcl_transform *transform = j->graph_transform;
    sp_csr prepared = {0};
    sp_status status = SP_OK;
    if (s->write_graph) TRY(write_matrix(j, s->write_graph, &j->graph));
    if (s->write_transformed) {
        TRY(mcl_prepared_graph(j->host, &j->graph, transform, &s->mcl, s->read.lenient, &prepared));
        TRY(write_matrix(j, s->write_transformed, &prepared));
    }
    TRY(mcl_start_matrix(j->host, &j->graph, transform, &s->mcl, s->read.lenient, &j->start));
    if (transform)
        log_line(&j->log, "[mcl] transform: went from %lld to %lld entries", (long long)count_arcs(&j->graph),
                 (long long)count_arcs(&j->start));
    j->report.start_entries = j->start.nnz;
    log_line(&j->log, "[mcl] pid %ld", (long)getpid());
    if (s->write_expanded) TRY(write_expanded(j));
    if (!s->mcl.force_connected && !s->check_connected) sp_csr_free(j->host, &j->graph);
done:
    sp_csr_free(j->host, &prepared);
    return status;
}

/* ---- one clustering ------------------------------------------------------------------------------------ */

typedef struct monitor_state {
    job *job;
    sp_context *context; /* where the iterand lives */
    report_run *run;
    sp_status status;
} monitor_state;

static io_clusters as_lists(const mcl_clustering *c)
{
    return (io_clusters){.nodes = c->nodes, .clusters = c->clusters, .offsets = c->offsets, .members = c->members};
}

/* KIND-NUMBER.STEM beside the output, as mcl names its dumps. */
static sp_status dump_name(const job *j, const report_run *run, const char *kind, int64_t number, char name[MAX_PATH])
{
    const char *stem = j->settings->dump_stem ? j->settings->dump_stem : run->output;
    const char *slash = strrchr(stem, '/');
    int folder = slash ? (int)(slash - stem) + 1 : 0;
    int length = snprintf(name, MAX_PATH, "%.*s%s-%lld.%s", folder, stem, kind, (long long)number, stem + folder);
    return length < MAX_PATH ? SP_OK : sp_fail(j->host, SP_ERROR_ARGUMENT, "the name of a dump is too long");
}

/* `order`: how the iterand is numbered, NULL for as the graph is. */
static sp_status dump(monitor_state *m, int64_t number, const sp_csr *iterand, const int32_t *order)
{
    job *j = m->job;
    const settings *s = j->settings;
    char name[MAX_PATH];
    sp_csr copy = {0};
    mcl_clustering clustering = {0};
    sp_status status = SP_OK;
    if (!(s->dump_iterands || s->dump_clusters) || number < s->dump_from || number >= s->dump_to ||
        number % s->dump_modulo != 0)
        return SP_OK;
    TRY(mcl_restore(m->context, iterand, order, &copy));
    if (s->dump_iterands) {
        TRY(dump_name(j, m->run, "ite", number, name));
        TRY(write_matrix(j, name, &copy));
    }
    if (s->dump_clusters && number > 0) {
        TRY(dump_name(j, m->run, "cls", number, name));
        mcl_options options = s->mcl;
        options.force_connected = false;
        TRY(mcl_interpret(j->host, &copy, NULL, &options, &clustering));
        io_clusters lists = as_lists(&clustering);
        TRY(io_write_native_clusters(j->host, name, &lists, j->input.ids, NULL));
        log_matrix_written(&j->log, name, false, lists.nodes, lists.clusters, lists.offsets[lists.clusters]);
    }
done:
    mcl_clustering_free(j->host, &clustering);
    sp_csr_free(m->context, &copy);
    return status;
}

static bool on_iteration(void *user, const mcl_iteration *iteration, const sp_csr *iterand)
{
    monitor_state *m = user;
    job *j = m->job;
    int64_t initial = j->settings->mcl.initial_length;
    log_iteration(&j->log, iteration);
    if (iteration->bumped)
        log_line(&j->log, "[mclProcess] ====== Inflation bumped to %.4f ======", iteration->next_inflation);
    if (initial > 0 && iteration->number == initial)
        log_line(&j->log, "[mclProcess] ====== Changing from initial to main inflation now ======");
    m->status = report_add_iteration(j->host, m->run, iteration);
    if (m->status == SP_OK) m->status = dump(m, iteration->number, iterand, iteration->order);
    return m->status == SP_OK && !stop_asked;
}

/* Runs the process on `context`; the limit is host memory of that context. */
static sp_status iterate_on(job *j, sp_context *context, const mcl_options *options, report_run *run, sp_csr *limit)
{
    monitor_state monitor = {.job = j, .context = context, .run = run};
    run->iteration_count = 0;
    snprintf(run->device, sizeof run->device, "%s", sp_context_device(context));
    log_header(&j->log, j->start.rows);
    sp_status status = dump(&monitor, 0, &j->start, NULL);
    if (status == SP_OK) status = mcl_iterate(context, &j->start, options, on_iteration, &monitor, limit, &run->run);
    if (status == SP_OK && monitor.status != SP_OK) {
        sp_csr_free(context, limit);
        return monitor.status;
    }
    if (status != SP_OK && context != j->host) /* the sentence outlives the device's context */
        sp_fail(j->host, status, "%s: %s", sp_context_device(context), sp_last_error(context));
    return status;
}

/* On the device if there is one; if that fails and it was our choice, once more on the CPU. */
static sp_status iterate(job *j, const mcl_options *options, report_run *run, sp_csr *limit, sp_context **owner)
{
    *owner = j->device ? j->device : j->host;
    sp_status status = iterate_on(j, *owner, options, run, limit);
    if (!j->device || !is_device_trouble(status) || cuda_required(j->settings)) return status;
    log_warning(&j->log, "mcl-gpu: %s; going on with the CPU", sp_last_error(j->host));
    sp_context_destroy(j->device);
    j->device = NULL;
    *owner = j->host;
    return iterate_on(j, j->host, options, run, limit);
}

static void log_findings(job *j, const mcl_options *options, const mcl_clustering *c)
{
    static const char *const done[] = {"cut", "kept", "split"};
    if (c->overlap > 0)
        log_warning(&j->log, "[mcl] %s <%lld> instances of overlap", done[options->overlap], (long long)c->overlap);
    if (c->garbage > 0) log_warning(&j->log, "[mcl] added <%lld> garbage entries", (long long)c->garbage);
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
        if (strcmp(output, "-") != 0) {
            io_clusters lists = as_lists(c);
            snprintf(rags, sizeof rags, "%s-rags", output);
            TRY(io_write_native_clusters(j->host, rags, &lists, j->input.ids, NULL));
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
    mcl_options plain = *options;
    plain.force_connected = false;
    sp_status status = mcl_interpret(j->host, limit, NULL, &plain, clustering);
    if (status != SP_OK) return status;
    log_findings(j, options, clustering);
    log_jury(&j->log, &run->run);
    if (options->force_connected || j->settings->check_connected)
        status = connect_clusters(j, options, run->output, limit, clustering);
    return status;
}

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

/* Whether nodes have names: then clusters are lines of these, else a native matrix. */
static bool is_labelled(const io_graph *g)
{
    return g->names.count > 0 || (g->format != IO_NATIVE && g->format != IO_MTX);
}

static sp_status write_clusters(job *j, const report_run *run, const mcl_clustering *clustering)
{
    const io_clusters lists = as_lists(clustering);
    const bool labelled = is_labelled(&j->input);
    io_output *output;
    sp_status status = io_output_open(j->host, run->output, &output);
    if (status != SP_OK) return status;
    if (labelled) {
        log_line(&j->log, "[mcl] output is in %s", run->output);
        io_put_label_clusters(output, &lists, &j->input.names);
    } else {
        io_put_native_clusters(output, &lists, j->input.ids, j->command_line);
    }
    if (j->settings->append_log) {
        char *text = run_information(j, run);
        if (!text) {
            io_output_discard(output);
            return sp_fail(j->host, SP_ERROR_HOST_MEMORY, "out of memory");
        }
        io_output_string(output, text);
        free(text);
    }
    status = io_output_commit(output);
    if (status != SP_OK) return status;
    if (!labelled)
        log_matrix_written(&j->log, run->output, false, lists.nodes, lists.clusters, lists.offsets[lists.clusters]);
    log_line(&j->log, "[mcl] %lld clusters found", (long long)clustering->clusters);
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

static sp_status cluster(job *j, report_run *run)
{
    mcl_options options = j->settings->mcl;
    mcl_clustering clustering = {0};
    sp_csr limit = {0};
    sp_context *owner = j->host;
    char limit_name[MAX_PATH + 8];
    sp_status status;
    options.inflation = run->inflation;
    double began = wall_seconds();
    TRY(iterate(j, &options, run, &limit, &owner));
    run->iterate_seconds = wall_seconds() - began;
    if (j->settings->write_limit) {
        snprintf(limit_name, sizeof limit_name, "%s-limit", run->output);
        TRY(write_matrix(j, limit_name, &limit));
    }
    began = wall_seconds();
    TRY(interpret(j, &options, run, &limit, &clustering));
    run->interpret_seconds = wall_seconds() - began;
    sp_csr_free(owner, &limit);
    report_clusters(run, &clustering);
    began = wall_seconds();
    TRY(write_clusters(j, run, &clustering));
    run->write_seconds = wall_seconds() - began;
done:
    mcl_clustering_free(j->host, &clustering);
    sp_csr_free(owner, &limit);
    return status;
}

/* ---- the whole run ------------------------------------------------------------------------------------- */

/* Fails before the work if an output could not be written after it. */
static sp_status check_outputs(job *j)
{
    const settings *s = j->settings;
    const char *const fixed[] = {s->write_graph, s->write_transformed, s->write_expanded, s->report};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        sp_status status = fixed[i] ? io_output_check(j->host, fixed[i]) : SP_OK;
        if (status != SP_OK) return status;
    }
    for (int i = 0; i < s->inflation_count; i++) {
        report_run *run = &j->report.runs[i];
        run->inflation = s->inflations[i];
        settings_output_name(s, run->inflation, run->output);
        sp_status status = io_output_check(j->host, run->output);
        if (status != SP_OK) return status;
    }
    return SP_OK;
}

static sp_status run_job(job *j)
{
    const settings *s = j->settings;
    opening device = {0};
    char start[MAX_PATH];
    snprintf(start, sizeof start, "%s", s->arguments[0]);
    sp_status status;
    TRY(report_create(j->host, s->inflation_count, &j->report));
    TRY(check_outputs(j));
    const char *slash = strrchr(start, '/');
    if (!(j->command_line = settings_quoted(s, slash ? slash + 1 : start)))
        TRY(sp_fail(j->host, SP_ERROR_HOST_MEMORY, "out of memory"));
    begin_opening(&device, s);
    double began = wall_seconds();
    TRY(read_input(j));
    TRY(make_graph(j));
    j->report.read_seconds = wall_seconds() - began;
    began = wall_seconds();
    TRY(make_start(j));
    TRY(choose_device(j, &device));
    j->report.start_seconds = wall_seconds() - began;
    for (int i = 0; i < s->inflation_count; i++) {
        if (s->inflation_count > 1)
            log_line(&j->log, "[mcl-gpu] inflation %g, %d of %d", s->inflations[i], i + 1, s->inflation_count);
        TRY(cluster(j, &j->report.runs[i]));
    }
    log_citation(&j->log);
    j->report.threads = sp_context_threads(j->host);
    j->report.total_seconds = wall_seconds() - j->log.began;
    if (s->report) TRY(report_write(j->host, &j->report, s));
done:
    end_opening(&device);
    sp_context_destroy(device.context);
    return status;
}

/* The lists of -tf and -abc-tf; a mistake in them is one of usage. */
static sp_status parse_transforms(job *j)
{
    const settings *s = j->settings;
    sp_status status = SP_OK;
    if (s->value_transform) status = mcl_transform_parse(j->host, s->value_transform, true, &j->value_transform);
    if (status == SP_OK && s->graph_transform)
        status = mcl_transform_parse(j->host, s->graph_transform, false, &j->graph_transform);
    return status;
}

static void close_job(job *j)
{
    free(j->command_line);
    if (j->host) {
        mcl_transform_free(j->host, j->value_transform);
        mcl_transform_free(j->host, j->graph_transform);
        sp_csr_free(j->host, &j->graph);
        sp_csr_free(j->host, &j->start);
        io_graph_free(j->host, &j->input);
        report_free(j->host, &j->report);
    }
    sp_context_destroy(j->device);
    sp_context_destroy(j->host);
}

static int run(const settings *s)
{
    job j = {.settings = s};
    int code = EXIT_FAILED;
    log_open(&j.log, s->quiet, s->threads == 0);
    sp_context_options options = context_options(s, "cpu");
    sp_status status = sp_context_create(&options, &j.host);
    if (status == SP_OK) {
        status = parse_transforms(&j);
        if (status == SP_ERROR_ARGUMENT) code = EXIT_USAGE;
    }
    if (status == SP_OK) status = run_job(&j);
    if (status == SP_OK) {
        code = EXIT_DONE;
    } else if (interrupt_signal) {
        code = EXIT_SIGNAL + interrupt_signal;
        log_warning(&j.log, "mcl-gpu: stopped by signal %d; no clusters were written", interrupt_signal);
    } else {
        const char *sentence = j.host ? sp_last_error(j.host) : "";
        log_warning(&j.log, "mcl-gpu: %s", *sentence ? sentence : sp_status_string(status));
    }
    close_job(&j);
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
    if (!settings_parse(argc, argv, &s)) return EXIT_USAGE;
    if (s.request != REQUEST_RUN) {
        settings_answer(&s);
        if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_DONE;
        fprintf(stderr, "mcl-gpu: stdout: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    catch_signals();
    return run(&s);
}
