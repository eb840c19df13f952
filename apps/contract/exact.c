/* Whole numbers stay exact, or the run is refused.
 *
 * f64 holds whole numbers up to 2^53. A sum of them is exact in any order while the absolute values of its terms add up
 * to at most that. Mostly this holds for all weights of the graph together, and nothing else is checked. Otherwise each
 * absolute value is cut into two parts, whose sums are exact, and both are contracted as the graph was.
 */
#include <math.h>

#include "base/search.h"
#include "job.h"

static const double MOST = 9007199254740992.0; /* 2^53 */
enum { LOW_BITS = 20 };

/* ---- weights -------------------------------------------------------------------------------------------- */

/* Figures of an array: the sum of absolute values, exact below 2^53 if all are whole. */
typedef struct magnitude {
    double sum;
    int64_t fractions, vast;
} magnitude;

static magnitude measure(const sp_context *context, const double *values, int64_t count)
{
    double sum = 0;
    int64_t fractions = 0, vast = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum, fractions, vast) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < count; e++) {
        fractions += values[e] != trunc(values[e]);
        vast += fabs(values[e]) > MOST;
        sum += fabs(values[e]);
    }
    return (magnitude){sum, fractions, vast};
}

/* The figures of the weights of all processes. */
static sp_status join_magnitudes(contract_job *job, magnitude *own)
{
    const int size = job->team.ranks ? job->team.ranks->size : 0;
    magnitude *all = NULL;
    sp_status status;
    if (size == 0) return SP_OK;
    TRY(sp_alloc(job->host, size, sizeof *all, (void **)&all));
    TRY(team_share(&job->team, own, sizeof *own, all));
    *own = (magnitude){0};
    for (int r = 0; r < size; r++) {
        own->sum += all[r].sum;
        own->fractions += all[r].fractions;
        own->vast += all[r].vast;
    }
done:
    sp_free(job->host, all);
    return status;
}

sp_status contract_check_weights(contract_job *job, const void *values, sp_value_type type, int64_t count)
{
    const char *const why = "a whole weight beyond 2^53, which is not held exactly; scale the weights down, or give "
                            "--values f32, which rounds";
    const char *file = job->options->graph;
    const int64_t line = job->input.vast_line;
    magnitude all = {.sum = (double)count};
    job->whole = job->options->values == SP_F64;
    if (job->whole && values && type == SP_F64) all = measure(job->host, values, count);
    const sp_status status = join_magnitudes(job, &all);
    if (status != SP_OK) return status;
    job->whole = job->whole && all.fractions == 0;
    job->weight_sum = all.sum;
    if (!job->whole || !values || (line == 0 && all.vast == 0)) return SP_OK;
    if (line <= 0) return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: %s", file, why);
    return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s:%lld: %s", file, (long long)line, why);
}

/* ---- parts ---------------------------------------------------------------------------------------------- */

sp_status contract_part(sp_context *context, const double *values, int64_t count, contract_half half, double **part)
{
    const double unit = 1 << LOW_BITS;
    const sp_status status = sp_alloc(context, count, sizeof **part, (void **)part);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < count; e++) {
        const double value = values ? fabs(values[e]) : 1, high = floor(value / unit);
        (*part)[e] = half == HALF_HIGH ? high : value - high * unit;
    }
    return SP_OK;
}

/* The comparison with each part alone comes first, so that the integers below do not overflow. */
bool contract_is_beyond(double high, double low)
{
    if (high > MOST / (1 << LOW_BITS) || low > MOST) return true;
    return ((int64_t)high << LOW_BITS) + (int64_t)low > (int64_t)MOST;
}

/* S without signs; it owns its values. */
static sp_status absolute(sp_context *context, const sp_csr *s, sp_csr *made)
{
    double *values;
    *made = *s;
    if (!s->values) return SP_OK;
    const sp_status status = sp_alloc(context, s->nnz, sizeof *values, (void **)&values);
    if (status != SP_OK) return status;
    for (int64_t e = 0; e < s->nnz; e++) values[e] = fabs(((const double *)s->values)[e]);
    made->values = values;
    return SP_OK;
}

/* ---- sums ----------------------------------------------------------------------------------------------- */

/* The weights of one node's memberships at most, signs aside; 1 where nodes have a label each. */
static sp_status largest_share(const contract_job *job, const sp_csr *s, double *largest)
{
    double *share;
    *largest = 1;
    if (job->labelling.labels) return SP_OK;
    const sp_status status = sp_calloc(job->host, s->cols, sizeof *share, (void **)&share);
    if (status != SP_OK) return status;
    for (int64_t e = 0; e < s->nnz; e++)
        share[s->col_indices[e]] += s->values ? fabs(((const double *)s->values)[e]) : 1;
    for (int64_t i = 0; i < s->cols; i++)
        if (share[i] > *largest) *largest = share[i];
    sp_free(job->host, share);
    return SP_OK;
}

static sp_status refuse_cell(const contract_job *job, const sp_csr *c, int64_t entry)
{
    short_name from, to;
    return sp_fail(job->host, SP_ERROR_OVERFLOW,
                   "%s: the weights from group %s to group %s, signs aside, add up to more than 2^53, beyond which "
                   "whole sums are not exact; scale the weights down, or give --values f32, which rounds",
                   job->options->graph, contract_short_group(job, row_of_entry(c->row_offsets, c->rows, entry), from),
                   contract_short_group(job, c->col_indices[entry], to));
}

static sp_status refuse_group(const contract_job *job, int64_t group)
{
    short_name name;
    return sp_fail(job->host, SP_ERROR_OVERFLOW,
                   "%s: the weights of group %s, signs aside, add up to more than 2^53, beyond which whole sums are "
                   "not exact; scale the weights down, or leave --node-output out",
                   job->options->node_output, contract_short_group(job, group, name));
}

static sp_status check_cells(contract_job *job, const sp_csr parts[2], const sp_csr *s)
{
    const contract_options *o = job->options;
    const contraction_options how = {.engine = o->engine, .how = {.loops = o->loops}};
    const contraction_info info = job->info;
    sp_csr sums[2] = {{0}, {0}}, positive = {0};
    sp_status status;
    TRY(absolute(job->host, s, &positive));
    for (int i = 0; i < 2; i++) TRY(contract_quotient(job, job->host, &parts[i], &positive, &how, &sums[i]));
    const double *high = sums[HALF_HIGH].values, *low = sums[HALF_LOW].values;
    for (int64_t e = 0; e < sums[0].nnz; e++)
        if (contract_is_beyond(high[e], low[e])) TRY(refuse_cell(job, &sums[0], e));
done:
    job->info = info;
    if (positive.values != s->values) sp_free(job->host, positive.values);
    for (int i = 0; i < 2; i++) sp_csr_free(job->host, &sums[i]);
    return status;
}

static sp_status check_groups(contract_job *job, const sp_csr parts[2])
{
    contraction_group *sums[2] = {NULL, NULL};
    sp_status status;
    for (int i = 0; i < 2; i++) {
        TRY(sp_alloc(job->host, job->groups, sizeof **sums, (void **)&sums[i]));
        TRY(contraction_groups(job->host, &parts[i], job->labelling.labels, job->groups, sums[i]));
    }
    const contraction_group *high = sums[HALF_HIGH], *low = sums[HALF_LOW];
    for (int64_t p = 0; p < job->groups; p++)
        if (contract_is_beyond(high[p].internal, low[p].internal) || contract_is_beyond(high[p].cut, low[p].cut))
            TRY(refuse_group(job, p));
done:
    for (int i = 0; i < 2; i++) sp_free(job->host, sums[i]);
    return status;
}

sp_status contract_check_sums(contract_job *job)
{
    const contract_options *o = job->options;
    const bool weights = o->combine == SP_COMBINE_SUM, cells = weights || o->combine == SP_COMBINE_COUNT;
    sp_csr parts[2] = {job->g, job->g}, s = job->labelling.s;
    double *values[2] = {NULL, NULL}, share;
    sp_status status;
    if (!weights) s.values = NULL;
    if (!job->whole || (!cells && !o->node_output)) return SP_OK;
    if (s.values && measure(job->host, s.values, s.nnz).fractions > 0) return SP_OK;
    TRY(largest_share(job, &s, &share));
    if (job->weight_sum * share * share < MOST) return SP_OK;
    for (int i = 0; i < 2; i++) {
        TRY(contract_part(job->host, job->g.values, job->g.nnz, (contract_half)i, &values[i]));
        parts[i].values = values[i];
    }
    if (cells) TRY(check_cells(job, parts, &s));
    if (o->node_output) TRY(check_groups(job, parts));
done:
    for (int i = 0; i < 2; i++) sp_free(job->host, values[i]);
    return status;
}
