/* The rows of C that several processes have (together.c): made symmetric, and written.
 *
 * A process that has a row sends its entries below the diagonal to the processes that have their mirror images. Process
 * 0 writes formats that have the rows one after another as the rows come, so it holds a block of them beside its own;
 * for others it gathers them.
 */
#include "base/value.h"
#include "job.h"

/* ---- symmetry -------------------------------------------------------------------------------------------------- */

static int owner_of_row(const void *user, int32_t row) { return ((const int32_t *)user)[row]; }

/* The entries of this process below the diagonal as arcs of their mirror images; they belong to the caller. */
static sp_status list_below(contract_job *job, sp_arcs *arcs)
{
    const sp_csr *c = &job->c;
    int64_t count = 0;
    sp_status status;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t e = c->row_offsets[i]; e < c->row_offsets[i + 1] && c->col_indices[e] < job->first + i; e++)
            count++;
    *arcs = (sp_arcs){.type = c->value_type};
    TRY(sp_alloc(job->host, count, sizeof *arcs->rows, (void **)&arcs->rows));
    TRY(sp_alloc(job->host, count, sizeof *arcs->columns, (void **)&arcs->columns));
    TRY(sp_alloc(job->host, count, c->value_type == SP_F32 ? sizeof(float) : sizeof(double), &arcs->weights));
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t e = c->row_offsets[i]; e < c->row_offsets[i + 1] && c->col_indices[e] < job->first + i; e++) {
            arcs->rows[arcs->count] = c->col_indices[e];
            arcs->columns[arcs->count] = (int32_t)(job->first + i);
            store_value(arcs->weights, arcs->type, arcs->count++, entry_value(c, e));
        }
done:
    return status;
}

/* Whether the arcs are the entries of this process above the diagonal; with `take` these get their values. Arcs of a
 * row come in the order of its columns. next[i] is scratch. */
static bool take_above(contract_job *job, const sp_arcs *arcs, int64_t *next, bool take)
{
    const sp_csr *c = &job->c;
    for (int64_t i = 0; i < c->rows; i++) {
        next[i] = c->row_offsets[i];
        while (next[i] < c->row_offsets[i + 1] && c->col_indices[next[i]] <= job->first + i) next[i]++;
    }
    for (int64_t k = 0; k < arcs->count; k++) {
        const int64_t i = arcs->rows[k] - job->first, e = next[i]++;
        if (e == c->row_offsets[i + 1] || c->col_indices[e] != arcs->columns[k]) return false;
        if (take) store_value(c->values, c->value_type, e, load_value(arcs->weights, arcs->type, k));
    }
    for (int64_t i = 0; i < c->rows; i++)
        if (next[i] < c->row_offsets[i + 1]) return false;
    return true;
}

/* As contraction_mirror. */
static sp_status mirror(contract_job *job, const int32_t *owner)
{
    sp_arcs below = {0}, got = {0};
    int64_t *next = NULL, others = 0;
    sp_status status;
    TRY(team_agree_on(&job->team, list_below(job, &below)));
    status = sp_ranks_send_arcs(job->host, job->team.ranks, &below, false, owner_of_row, owner, &got);
    if (status != SP_OK) team_give_up(&job->team, job->host, status); /* the others are waiting in the middle of it */
    TRY(team_agree_on(&job->team, sp_alloc(job->host, job->c.rows, sizeof *next, (void **)&next)));
    others = !take_above(job, &got, next, false);
    TRY(team_add_up(&job->team, &others));
    job->c_undirected = others == 0;
    if (job->c_undirected) take_above(job, &got, next, true);
done:
    sp_arcs_free(job->host, &below);
    sp_arcs_free(job->host, &got);
    sp_free(job->host, next);
    return status;
}

sp_status contract_finish_rows(contract_job *job, const int32_t *owner)
{
    const contract_options *o = job->options;
    int64_t *const sums[] = {&job->head.rows, &job->head.entries, &job->head.lower, &job->head.unwhole};
    sp_status status = SP_OK;
    if (o->combine == SP_COMBINE_MEAN) status = contract_convert(job->host, &job->c, o->values);
    TRY(team_agree_on(&job->team, status));
    if (job->undirected && o->combine != SP_COMBINE_FIRST) TRY(mirror(job, owner));
    TRY(team_agree_on(&job->team, contract_refuse_infinite(job)));
    io_add_head(job->host, &job->c, job->first, &job->head);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) TRY(team_add_up(&job->team, sums[i]));
done:
    return status;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* What process 0 writes. */
typedef struct writer {
    contract_job *job;
    io_output *out;
    io_write_options options;
    sp_status status; /* the first failure, after which blocks are dropped */
} writer;

static void put_block(void *user, int64_t first, const sp_csr *rows)
{
    writer *w = user;
    w->options.row = first;
    if (w->status == SP_OK) w->status = io_put_graph(w->job->host, w->out, rows, &w->options);
}

/* All processes come here if one of them has said that C is written. */
static sp_status bring_rows(contract_job *job, writer *w)
{
    sp_csr whole = {0};
    if (io_has_blocks(job->options->to))
        return sp_ranks_stream_rows(job->host, job->team.ranks, &job->c, TEAM_BLOCK, put_block, w);
    const sp_status status = sp_ranks_gather_rows(job->host, job->team.ranks, &job->c, &whole);
    if (status == SP_OK && !job->team.follows) w->status = io_put_graph(job->host, w->out, &whole, &w->options);
    sp_csr_free(job->host, &whole);
    return status;
}

/* Process 0 tells the others whether it writes C. */
static sp_status tell(contract_job *job, bool *writes)
{
    const sp_status status = team_agree(&job->team, writes, sizeof *writes);
    job->written = true;
    return status;
}

sp_status contract_put_together(contract_job *job, io_output *out, const io_write_options *writing)
{
    writer w = {.job = job, .out = out, .options = *writing};
    bool writes = true;
    sp_status status = tell(job, &writes);
    if (status == SP_OK) status = bring_rows(job, &w);
    if (status != SP_OK) io_output_discard(out);
    if (status != SP_OK) team_give_up(&job->team, job->host, status);
    return w.status;
}

/* What the other processes do while process 0 writes. */
static sp_status serve(contract_job *job)
{
    bool writes;
    sp_status status = tell(job, &writes);
    if (status == SP_OK && writes) status = bring_rows(job, NULL);
    if (status != SP_OK) team_give_up(&job->team, job->host, status);
    return status;
}

sp_status contract_write_together(contract_job *job)
{
    bool writes = false;
    sp_status status = job->team.follows ? serve(job) : contract_write(job);
    if (!job->written) tell(job, &writes);
    return team_agree_on(&job->team, status);
}
