/* The directions of edges: whether a file has each edge once or in both directions, and how its arcs become entries.
 *
 * Some formats say it. Matrices and arcs do not: they are an undirected graph if they are equal to their transpose.
 * Lists have each edge once, unless each is there in both directions with the same weight, as contract writes --to tsv.
 */

#include "base/bits.h"
#include "base/random.h"
#include "job.h"

/* A random number for an arc, the same in all processes. */
static uint64_t number_arc(int32_t tail, int32_t head, double weight)
{
    return mix64(mix64((uint64_t)(uint32_t)tail << 32 | (uint32_t)head) ^ bits_of_double(weight));
}

/* The numbers of this process's arcs less those of their opposites. Over all arcs the sum is 0 if each has its opposite
 * with the same weight, as often as itself; by chance it is 0 for one in 2^64 other files. It needs neither an order of
 * the arcs nor all of them in one place. */
static int64_t subtract_opposites(const contract_job *job)
{
    const io_graph *in = &job->input;
    uint64_t difference = 0;
#pragma omp parallel for schedule(static) reduction(+ : difference) num_threads(sp_context_threads(job->host))
    for (int64_t e = 0; e < in->arcs; e++) {
        const int32_t tail = in->tails[e], head = in->heads[e];
        const double weight = io_arc_weight(in, e);
        difference += number_arc(tail, head, weight) - number_arc(head, tail, weight);
    }
    return (int64_t)difference;
}

static void count_directions(contract_job *job)
{
    const io_graph *in = &job->input;
    int64_t up = 0, down = 0;
#pragma omp parallel for schedule(static) reduction(+ : up, down) num_threads(sp_context_threads(job->host))
    for (int64_t e = 0; e < in->arcs; e++) {
        up += in->tails[e] < in->heads[e];
        down += in->tails[e] > in->heads[e];
    }
    job->up = up;
    job->down = down;
}

/* Whether the format or an option says how many directions of an edge the file has. --undirected says it of lists, and
 * of no matrix, since it leaves those as they are that have both. */
static bool is_said(const contract_options *o, const io_graph *in)
{
    if (o->directed || in->skew) return true;
    if (in->symmetric) return o->undirected || in->format == IO_MTX || in->format == IO_STRING;
    return in->undirected || (!o->undirected && (in->format == IO_CSR || in->format == IO_GRAPHML));
}

static sp_status add_up(contract_job *job, int64_t *number)
{
    return job->team.ranks ? team_add_up(&job->team, number) : SP_OK;
}

sp_status contract_find_directions(contract_job *job)
{
    io_graph *in = &job->input;
    const bool list = in->symmetric;
    int64_t difference;
    sp_status status = SP_OK;
    if (is_said(job->options, in)) return SP_OK;
    count_directions(job);
    TRY(add_up(job, &job->up));
    TRY(add_up(job, &job->down));
    if (job->up != job->down || (list && job->up == 0)) return SP_OK;
    difference = subtract_opposites(job);
    TRY(add_up(job, &difference));
    if (difference != 0) return SP_OK;
    in->undirected = true;
    in->symmetric = false;
    if (list)
        notice_line(&job->line, "%s: each edge is there in both directions, and counts once; --undirected counts each "
                    "line", job->options->graph);
done:
    return status;
}

sp_status contract_view(contract_job *job, arcs_view *view)
{
    const contract_options *o = job->options;
    const io_graph *in = &job->input;
    const bool listed = in->undirected && !in->symmetric; /* both directions are there */
    const bool rows_are_heads = in->format == IO_MTX || in->format == IO_NPZ;
    /* STRING files hold every pair twice, too, so that their lines are arcs. */
    view->mirror = o->undirected ? !listed : !o->directed && in->symmetric && in->format != IO_STRING;
    view->sources = rows_are_heads ? in->heads : in->tails;
    view->targets = rows_are_heads ? in->tails : in->heads;
    job->undirected = view->mirror || (!o->directed && listed);
    job->arcs = in->arcs;
    if (o->undirected && in->skew)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the two directions of an edge have opposite weights in a "
                       "skew-symmetric matrix, and would cancel; leave --undirected out", o->graph);
    return SP_OK;
}

void contract_notice_directions(contract_job *job, int64_t entries)
{
    if (job->options->undirected || entries != job->arcs || job->up == 0 || job->up != job->down) return;
    notice_line(&job->line, "%s: each edge is there twice, with different weights, and both count; if these are its "
                "directions, give --directed", job->options->graph);
}
