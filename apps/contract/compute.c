/* Chooses the device; makes the quotient graph of a labelling, or a hierarchy of quotient graphs. */
#include <math.h>
#include <string.h>

#include "base/search.h"
#include "common/device.h"
#include "job.h"
#include "mcl.h"

/* ---- devices ------------------------------------------------------------------------------------------- */

static device_choice choice_of(const contract_options *o)
{
    return (device_choice){.device = o->device, .input = o->graph, .threads = o->threads, .memory = o->memory};
}

sp_status contract_open_host(contract_job *job)
{
    const device_choice choice = choice_of(job->options);
    return device_open(&choice, "cpu", &interrupt_signal, &job->host);
}

/* Opening a CUDA device takes about 0.3 s. In that time a thread of the CPU contracts some 15 million entries, or
 * forms some 10 million products of a clustering. */
static const double CUDA_ENTRIES = 2e7, CUDA_PRODUCTS = 1e7;

static bool is_large(const contract_job *job)
{
    const int threads = sp_context_threads(job->host);
    if (job->options->repeat == REPEAT_CLUSTER) return square_products(&job->g, threads) > CUDA_PRODUCTS * threads;
    return (double)job->g.nnz > CUDA_ENTRIES * threads;
}

/* METIS graphs have no loops. Loops that a labelling makes are found before the work; the writer finds the others. */
static sp_status refuse_loops(const contract_job *job, sp_context *context, const sp_csr *g, const int32_t *labels)
{
    const contract_options *o = job->options;
    if (o->to != IO_METIS || o->loops == SP_LOOPS_DROP) return SP_OK;
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t e = g->row_offsets[i]; labels[i] >= 0 && e < g->row_offsets[i + 1]; e++)
            if (labels[g->col_indices[e]] == labels[i])
                return sp_fail(context, SP_ERROR_ARGUMENT,
                               "%s: edges within groups are loops, and METIS graphs have none: use --loops drop",
                               o->out);
    return SP_OK;
}

/* ---- one contraction ------------------------------------------------------------------------------------ */

/* Moves a result to the host's memory and context. */
static sp_status bring_home(contract_job *job, sp_context *context, sp_csr *made, sp_csr *c)
{
    if (context == job->host) {
        *c = *made;
        return SP_OK;
    }
    sp_status status = sp_csr_copy(context, made, SP_HOST, c);
    sp_csr_free(context, made);
    return status;
}

sp_status contract_quotient(contract_job *job, sp_context *context, const sp_csr *g, const sp_csr *s,
                            const contraction_options *how, sp_csr *c)
{
    const io_labelling *l = &job->labelling;
    sp_csr made = {0};
    sp_status status = l->labels ? contraction_quotient(context, g, l->labels, job->groups, how, &made, &job->info)
                                 : contraction_product(context, s, g, how, &made, &job->info);
    return status == SP_OK ? bring_home(job, context, &made, c) : status;
}

static sp_status contract_on(contract_job *job, sp_context *context)
{
    const contract_options *o = job->options;
    contraction_options how = {.engine = o->engine,
                               .how = {.combine = job->combine, .loops = o->loops, .half_loops = o->half_loops}};
    const sp_csr *s = &job->labelling.s;
    sp_csr times = {0};
    sp_status status;
    if (job->repeats.row_offsets) how.how.half_loops = false; /* a mean of sums and counts, both whole */
    TRY(contract_quotient(job, context, &job->g, s, &how, &job->c));
    if (job->repeats.row_offsets) {
        TRY(contract_quotient(job, context, &job->repeats, s, &how, &times));
        for (int64_t e = 0; e < job->c.nnz; e++) ((double *)job->c.values)[e] /= ((const double *)times.values)[e];
    }
    snprintf(job->device_name, sizeof job->device_name, "%s", sp_context_device(context));
done:
    sp_csr_free(job->host, &times);
    if (status != SP_OK) sp_csr_free(job->host, &job->c);
    if (status != SP_OK && context != job->host) sp_fail(job->host, status, "%s", sp_last_error(context));
    return status;
}

/* ---- hierarchies ---------------------------------------------------------------------------------------- */

static sp_status match_level(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    const contract_job *job = user;
    const sp_status status = contraction_match(context, g, (uint64_t)job->options->seed, labels, groups);
    return status == SP_OK ? refuse_loops(job, context, g, labels) : status;
}

static sp_status cluster_level(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    contract_job *job = user;
    mcl_options options;
    mcl_options_default(&options);
    options.inflation = job->options->inflation;
    show_line(&job->line, "clustering %lld nodes", (long long)g->rows);
    const sp_status status = mcl_label(context, g, &options, labels, groups);
    if (status == SP_ERROR_NOT_FINITE) {
        char why[256];
        snprintf(why, sizeof why, "%s", sp_last_error(context));
        return sp_fail(context, status, "%s: %s", job->options->graph, why);
    }
    return status == SP_OK ? refuse_loops(job, context, g, labels) : status;
}

/* --loops and --half-loops, for the last graph only: on the way edges within groups are kept and whole, so that the
 * levels compose to the direct contraction. */
static void settle_loops(const contract_options *o, bool sums, sp_csr *c)
{
    const size_t size = c->value_type == SP_F32 ? sizeof(float) : sizeof(double);
    int64_t kept = 0;
    for (int64_t i = 0, e = 0; i < c->rows; i++) {
        for (const int64_t end = c->row_offsets[i + 1]; e < end; e++) {
            const bool loop = c->col_indices[e] == i;
            if (o->loops != SP_LOOPS_KEEP && loop != (o->loops == SP_LOOPS_ONLY)) continue;
            if (c->values)
                memmove((char *)c->values + (size_t)kept * size, (char *)c->values + (size_t)e * size, size);
            if (loop && o->half_loops && sums && c->value_type == SP_F32) ((float *)c->values)[kept] /= 2;
            if (loop && o->half_loops && sums && c->value_type == SP_F64) ((double *)c->values)[kept] /= 2;
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

/* Levels are kept in host memory of the context that makes them: on a device's context that is malloc's as well. */
static sp_status repeat_on(contract_job *job, sp_context *context)
{
    const contract_options *o = job->options;
    const bool sums = job->combine == SP_COMBINE_SUM || job->combine == SP_COMBINE_COUNT;
    const contraction_options how = {.engine = o->engine,
                                     .undirected = job->undirected,
                                     .how.combine = job->combine == SP_COMBINE_COUNT ? SP_COMBINE_SUM : job->combine};
    contraction_hierarchy *h = &job->hierarchy;
    const double began = wall_seconds();
    sp_status status;
    TRY(give_values(job)); /* the last graph may be this one */
    status = contraction_repeat(context, &job->g, (int)o->levels,
                                o->repeat == REPEAT_CLUSTER ? cluster_level : match_level, job, &how, h);
    if (status != SP_OK) {
        if (context != job->host) sp_fail(job->host, status, "%s", sp_last_error(context));
        return status;
    }
    snprintf(job->device_name, sizeof job->device_name, "%s", sp_context_device(context));
    TRY(sp_csr_copy(job->host, h->count ? &h->level[h->count - 1].c : &job->g, SP_HOST, &job->c));
    settle_loops(o, sums, &job->c);
    TRY(compose_maps(job));
    job->info = (contraction_info){.engine = o->engine, .nnz = job->c.nnz, .seconds = wall_seconds() - began};
done:
    return status;
}

/* ---- all ------------------------------------------------------------------------------------------------ */

/* Sums may leave the range of their type. */
static sp_status refuse_infinite(contract_job *job)
{
    const sp_csr *c = &job->c;
    const bool single = c->value_type == SP_F32;
    int64_t first = INT64_MAX;
    short_name from, to;
#pragma omp parallel for schedule(static) reduction(min : first) num_threads(sp_context_threads(job->host))
    for (int64_t e = 0; e < (c->values ? c->nnz : 0); e++) {
        const bool finite = single ? isfinite(((const float *)c->values)[e]) : isfinite(((const double *)c->values)[e]);
        if (!finite && e < first) first = e;
    }
    if (first == INT64_MAX) return SP_OK;
    return sp_fail(job->host, SP_ERROR_NOT_FINITE,
                   "%s: the edges from group %s to group %s sum to more than %s; scale the weights down",
                   job->options->graph, contract_short_group(job, row_of_entry(c->row_offsets, c->rows, first), from),
                   contract_short_group(job, c->col_indices[first], to), single ? "3.4e38" : "1.8e308");
}

/* Sums of repeated edges made means, as the figures of groups take them. */
void contract_average_edges(contract_job *job)
{
    if (!job->repeats.row_offsets) return;
    double *sums = job->g.values;
    const double *times = job->repeats.values;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(job->host))
    for (int64_t e = 0; e < job->g.nnz; e++) sums[e] /= times[e];
}

static sp_status compute_on(contract_job *job, sp_context *context)
{
    return job->options->repeat == REPEAT_NEVER ? contract_on(job, context) : repeat_on(job, context);
}

sp_status contract_compute(contract_job *job)
{
    const device_choice choice = choice_of(job->options);
    const double began = wall_seconds();
    sp_status status;
    if (job->labelling.labels) TRY(refuse_loops(job, job->host, &job->g, job->labelling.labels));
    TRY(device_choose(&choice, is_large(job), &interrupt_signal, job->host, &job->line, &job->device));
    show_line(&job->line, "contracting");
    status = compute_on(job, job->device ? job->device : job->host);
    if (job->device && device_gives_way(choice.device, status)) {
        notice_line(&job->line, GOING_ON_WITH_CPU, sp_last_error(job->host));
        status = compute_on(job, job->host);
    }
    if (status == SP_OK) status = contract_check_sums(job);
    if (status == SP_OK && job->options->combine == SP_COMBINE_MEAN)
        status = contract_convert(job->host, &job->c, job->options->values);
    if (status == SP_OK && job->undirected && job->options->combine != SP_COMBINE_FIRST)
        status = contraction_mirror(job->host, &job->c, &job->c_undirected);
    if (status == SP_OK) status = refuse_infinite(job);
    if (status == SP_OK && (job->options->node_output || job->options->judge)) contract_average_edges(job);
    job->seconds.contract = wall_seconds() - began;
done:
    return status;
}
