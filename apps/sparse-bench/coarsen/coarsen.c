/* sparse-bench coarsen: the labels of contraction_coarsen and the quotient by them. The graph, made symmetric, lies
 * where they are computed before the clock starts, and so do the labels, as in a hierarchy on a device. The labels are
 * compared with those of the CPU, which is timed once, or on the CPU with those of one thread. */
#include <string.h>

#include "contraction.h"
#include "sparse-bench/coarsen/coarsen_bench.h"
#include "sparse-bench/report.h"

enum { METHODS = CONTRACTION_PROPAGATION + 1 };

/* One way of coarsening. */
typedef struct level {
    candidate labels, quotient;
    int64_t groups, nnz;
    double other_seconds; /* of the labels that are compared */
    bool compared, same;
} level;

typedef struct coarsen_case {
    const source *from;
    int64_t nodes, entries, edges;
    level levels[METHODS];
} coarsen_case;

typedef struct coarsen_job {
    const coarsen_options *options;
    sp_context *host, *context, *other; /* other: that of the labels that are compared, on the CPU */
    sp_csr g, there;                    /* there: where the context computes */
    contraction_coarsening how;
    sp_space space;
    int32_t *labels;
    int64_t groups;
    sp_csr c;
} coarsen_job;

/* ---- graphs ------------------------------------------------------------------------------------------------ */

static bool are_same(const sp_csr *a, const sp_csr *b)
{
    const size_t size = a->value_type == SP_F32 ? sizeof(float) : sizeof(double);
    return memcmp(a->row_offsets, b->row_offsets, ((size_t)a->rows + 1) * sizeof *a->row_offsets) == 0 &&
           (a->nnz == 0 || (memcmp(a->col_indices, b->col_indices, (size_t)a->nnz * sizeof *a->col_indices) == 0 &&
                            (!a->values || memcmp(a->values, b->values, (size_t)a->nnz * size) == 0)));
}

/* A graph that is not symmetric gets its transpose added. */
static sp_status load_graph(coarsen_job *job, const source *from)
{
    sp_csr read = {0}, transpose = {0};
    sp_status status;
    sp_csr_free(job->host, &job->g);
    TRY(input_load(job->host, from, &job->options->common, &read));
    if (read.rows != read.cols)
        TRY(sp_fail(job->host, SP_ERROR_ARGUMENT, "%s is %lld x %lld, and a graph square", from->name,
                    (long long)read.rows, (long long)read.cols));
    TRY(sp_csr_transpose(job->host, &read, &transpose));
    if (are_same(&read, &transpose)) {
        job->g = read;
        read = (sp_csr){0};
    } else {
        TRY(sp_csr_add(job->host, 1, &read, 1, &transpose, &job->g));
    }
done:
    sp_csr_free(job->host, &read);
    sp_csr_free(job->host, &transpose);
    return status;
}

static int64_t count_edges(const sp_csr *g)
{
    int64_t loops = 0;
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t k = g->row_offsets[i]; k < g->row_offsets[i + 1]; k++) loops += g->col_indices[k] == i;
    return (g->nnz - loops) / 2;
}

/* ---- times ------------------------------------------------------------------------------------------------- */

static sp_status label_step(void *user)
{
    coarsen_job *job = user;
    return contraction_coarsen(job->context, &job->there, &job->how, job->labels, &job->groups);
}

static sp_status quotient_step(void *user)
{
    coarsen_job *job = user;
    sp_csr_free(job->context, &job->c);
    return sp_contract(job->context, &job->there, job->labels, job->space, job->groups, NULL, &job->c, NULL);
}

static sp_status compare(coarsen_job *job, level *l)
{
    const int64_t n = job->g.rows;
    int32_t *made = NULL, *expected = NULL;
    int64_t groups;
    sp_status status;
    TRY(sp_alloc(job->host, n, sizeof *made, (void **)&made));
    TRY(sp_alloc(job->host, n, sizeof *expected, (void **)&expected));
    TRY(sp_array_copy(job->context, n, sizeof *made, made, SP_HOST, job->labels, job->space));
    const double began = wall_seconds();
    TRY(contraction_coarsen(job->other, &job->g, &job->how, expected, &groups));
    l->other_seconds = wall_seconds() - began;
    l->compared = true;
    l->same = groups == job->groups && (n == 0 || memcmp(made, expected, (size_t)n * sizeof *made) == 0);
done:
    FREE_ALL(job->host, made, expected);
    return status;
}

static sp_status measure(coarsen_job *job, level *l)
{
    const bench_options *o = &job->options->common;
    sp_status status;
    TRY(time_steps(o, label_step, NULL, job, &l->labels.time));
    l->groups = job->groups;
    TRY(time_steps(o, quotient_step, NULL, job, &l->quotient.time));
    l->nnz = job->c.nnz;
    if (!o->no_check) TRY(compare(job, l));
done:
    sp_csr_free(job->context, &job->c);
    return candidate_failed(job->context, status, &l->labels);
}

/* ---- report ------------------------------------------------------------------------------------------------ */

static void print_levels(const coarsen_options *o, const coarsen_case *c)
{
    print_case(source_name(c->from), "%lld nodes, %lld edges, %lld entries", (long long)c->nodes, (long long)c->edges,
               (long long)c->entries);
    for (int method = 0; method < METHODS; method++) {
        const level *l = &c->levels[method];
        char compared[64] = "not checked";
        if (!(o->methods & 1u << method)) continue;
        if (l->compared)
            snprintf(compared, sizeof compared, "%s the %s: %.1f ms", l->same ? "checked with" : "DIFFERS from",
                     "CPU", 1e3 * l->other_seconds);
        print_candidate(&l->labels, 0, "%lld groups; quotient %.3f ms; %s", (long long)l->groups,
                        1e3 * l->quotient.time.median, compared);
    }
    fflush(stdout);
}

static void put_levels(json *j, const coarsen_options *o, const coarsen_case *c)
{
    json_begin(j, NULL, '{');
    put_source(j, c->from);
    json_count(j, "nodes", c->nodes);
    json_count(j, "edges", c->edges);
    json_count(j, "entries", c->entries);
    json_begin(j, "methods", '[');
    for (int method = 0; method < METHODS; method++) {
        const level *l = &c->levels[method];
        if (!(o->methods & 1u << method)) continue;
        if (begin_candidate(j, NULL, &l->labels)) {
            json_count(j, "groups", l->groups);
            json_count(j, "nnz_quotient", l->nnz);
            if (l->compared) {
                json_flag(j, "same", l->same);
                json_seconds(j, "compared_seconds", l->other_seconds);
            }
            json_begin(j, "labels", '{');
            put_timing(j, &l->labels.time);
            json_end(j, '}');
            json_begin(j, "quotient", '{');
            put_timing(j, &l->quotient.time);
            json_end(j, '}');
        }
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
}

static sp_status write_json(sp_context *host, const machine *m, const coarsen_options *o, const coarsen_case *cases,
                            int count)
{
    json file, *j = &file;
    const sp_status status = report_open(host, m, &o->common, j);
    if (status != SP_OK) return status;
    json_count(j, "most_nodes_of_a_group", o->most);
    report_list(j, &o->common);
    for (int i = 0; i < count; i++) put_levels(j, o, &cases[i]);
    return report_close(j);
}

/* ---- the cases --------------------------------------------------------------------------------------------- */

static sp_status run_case(coarsen_job *job, coarsen_case *c, int *code)
{
    const coarsen_options *o = job->options;
    sp_status status;
    c->nodes = job->g.rows;
    c->entries = job->g.nnz;
    c->edges = count_edges(&job->g);
    TRY(sp_csr_copy(job->context, &job->g, job->space, &job->there));
    TRY(sp_array_create(job->context, c->nodes, sizeof *job->labels, job->space, (void **)&job->labels));
    for (int method = 0; method < METHODS; method++) {
        level *l = &c->levels[method];
        if (!(o->methods & 1u << method)) continue;
        snprintf(l->labels.name, sizeof l->labels.name, "%s", method_name(method));
        job->how = (contraction_coarsening){.method = (contraction_method)method, .seed = 1,
                                            .max_weight = (double)o->most};
        TRY(measure(job, l));
        if (*l->labels.word || (l->compared && !l->same)) *code = EXIT_FAILED;
    }
done:
    if (status != SP_OK) sp_fail(job->host, status, "%s", sp_last_error(job->context));
    sp_array_free(job->context, job->space, job->labels);
    job->labels = NULL;
    sp_csr_free(job->context, &job->there);
    return status;
}

static sp_status open_contexts(coarsen_job *job, const volatile int *interrupt)
{
    const bench_options *o = &job->options->common;
    const sp_context_options options = compute_options(o, interrupt);
    sp_context_options other = {.device = "cpu", .interrupt = interrupt};
    sp_status status = sp_context_create(&options, &job->context);
    if (status != SP_OK) return sp_fail(job->host, status, "--device %s: %s", o->device, sp_last_error(NULL));
    job->space = sp_context_is_cuda(job->context) ? SP_DEVICE : SP_HOST;
    other.threads = job->space == SP_DEVICE ? (int)o->threads : 1;
    status = sp_context_create(&other, &job->other);
    return status == SP_OK ? SP_OK : sp_fail(job->host, status, "%s", sp_last_error(NULL));
}

sp_status coarsen_run(sp_context *host, const coarsen_options *o, const volatile int *interrupt, int *code)
{
    coarsen_job job = {.options = o, .host = host};
    coarsen_case *cases = NULL;
    machine m;
    bool cuda;
    sp_status status;
    TRY(sp_calloc(host, o->common.source_count, sizeof *cases, (void **)&cases));
    if (o->common.json) TRY(io_output_check(host, o->common.json));
    for (int i = 0; i < o->common.source_count; i++) {
        cases[i].from = &o->common.sources[i];
        status = load_graph(&job, cases[i].from);
        if (status == SP_ERROR_ARGUMENT && cases[i].from->spec) *code = EXIT_USAGE;
        if (status != SP_OK) goto done;
        if (i == 0) {
            TRY(machine_look_around(host, &o->common, &m, &cuda));
            print_machine(&m, &o->common, "");
            TRY(open_contexts(&job, interrupt));
        }
        TRY(run_case(&job, &cases[i], code));
        print_levels(o, &cases[i]);
        if (o->common.json) TRY(write_json(host, &m, o, cases, i + 1));
    }
done:
    sp_csr_free(host, &job.g);
    sp_context_destroy(job.context);
    sp_context_destroy(job.other);
    sp_free(host, cases);
    return status;
}
