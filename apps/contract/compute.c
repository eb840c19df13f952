/* Chooses the device; makes the quotient graph of a labelling. */
#include <math.h>
#include <string.h>

#include "base/search.h"
#include "common/device.h"
#include "job.h"

/* ---- devices ------------------------------------------------------------------------------------------- */

static device_choice choice_of(const contract_options *o)
{
    return (device_choice){.device = o->device, .input = o->graph, .threads = o->threads, .memory = o->memory};
}

sp_status contract_open_host(contract_job *job)
{
    device_choice choice = choice_of(job->options);
    const team *t = &job->team;
    choice.threads = team_threads(t, choice.input, choice.threads);
    if (t->ranks) choice.memory = choice.memory / t->mpi->host_size;
    else choice.allocator = budget_open(&job->budget, &choice);
    const char *const device = device_is_cpu(choice.device) ? choice.device : "cpu";
    const sp_status status = device_open(&choice, device, &interrupt_signal, &job->host);
    job->team.host = job->host;
    return status;
}

/* Before the input is read, so that it fails before the work. */
sp_status contract_open_device(contract_job *job)
{
    const device_choice choice = choice_of(job->options);
    return device_choose(&choice, false, &interrupt_signal, job->host, &job->line, &job->device);
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

static bool makes_loops(const sp_csr *g, const int32_t *labels)
{
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t e = g->row_offsets[i]; labels[i] >= 0 && e < g->row_offsets[i + 1]; e++)
            if (labels[g->col_indices[e]] == labels[i]) return true;
    return false;
}

/* METIS graphs have no loops. Loops that a labelling makes are found before the work; the writer finds the others. */
sp_status contract_refuse_loops(const contract_job *job, sp_context *context, const sp_csr *g,
                                const int32_t *labels)
{
    const contract_options *o = job->options;
    if (o->to != IO_METIS || o->loops == SP_LOOPS_DROP || !makes_loops(g, labels)) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT,
                   "%s: edges within groups are loops, and METIS graphs have none: use --loops drop",
                   output_name(o->out));
}

void contract_notice_loops(contract_job *job, const sp_csr *g, const int32_t *labels)
{
    if (!job->options->loops_by_format || (g && labels && !makes_loops(g, labels))) return;
    notice_line(&job->line, "%s: METIS graphs have no loops, so edges within groups are left out; --loops drop says so "
                "without this notice", output_name(job->options->out));
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

sp_status contract_on(contract_job *job, sp_context *context)
{
    const contract_options *o = job->options;
    contraction_options how = {.engine = o->engine,
                               .how = {.combine = job->combine, .loops = o->loops, .half_loops = o->half_loops,
                                       .symmetric = job->undirected && o->combine != SP_COMBINE_FIRST &&
                                                    !job->team.ranks}}; /* each of these has other rows of G */
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

/* ---- all ------------------------------------------------------------------------------------------------ */

sp_status contract_refuse_infinite(contract_job *job)
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
                   job->options->graph,
                   contract_short_group(job, job->first + row_of_entry(c->row_offsets, c->rows, first), from),
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
    return job->options->repeat == REPEAT_NEVER ? contract_on(job, context) : contract_repeat_on(job, context);
}

/* C as it is written. */
static sp_status finish(contract_job *job)
{
    sp_status status = SP_OK;
    if (job->options->combine == SP_COMBINE_MEAN)
        status = contract_convert(job->host, &job->c, job->options->values);
    if (job->options->repeat != REPEAT_NEVER) job->c_undirected = job->undirected; /* each level was mirrored */
    else if (job->info.mirrored) job->c_undirected = true;
    else if (status == SP_OK && job->undirected && job->options->combine != SP_COMBINE_FIRST)
        status = contraction_mirror(job->host, &job->c, &job->c_undirected);
    if (status == SP_OK) status = contract_refuse_infinite(job);
    if (status == SP_OK) io_add_head(job->host, &job->c, 0, &job->head);
    return status;
}

sp_status contract_compute(contract_job *job)
{
    const device_choice choice = choice_of(job->options);
    const double began = wall_seconds();
    sp_status status;
    if (job->labelling.labels) TRY(contract_refuse_loops(job, job->host, &job->g, job->labelling.labels));
    if (!job->device)
        TRY(device_choose(&choice, is_large(job), &interrupt_signal, job->host, &job->line, &job->device));
    if (job->options->repeat == REPEAT_NEVER) contract_notice_loops(job, &job->g, job->labelling.labels);
    show_line(&job->line, "contracting");
    status = compute_on(job, job->device ? job->device : job->host);
    if (job->device && device_gives_way(choice.device, status)) {
        notice_line(&job->line, GOING_ON_WITH_CPU, sp_last_error(job->host));
        status = compute_on(job, job->host);
    }
    if (status == SP_OK) status = contract_check_sums(job);
    if (status == SP_OK) status = finish(job);
    if (status == SP_OK && (job->options->node_output || job->options->judge)) contract_average_edges(job);
    job->seconds.contract = wall_seconds() - began;
done:
    return status;
}
