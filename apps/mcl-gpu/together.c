/* Processes that read parts of the input (common/team.h), each of which keeps some rows of the graph. */
#include "job.h"

/* Smaller files are read by all, and the log says more: hubs, and how long the run will take. */
enum { LEAST_BYTES = 64 << 20 };

/* What needs the graph or the start matrix of all nodes in one place; NULL: nothing does. */
static const char *whole_for(const job *j)
{
    const settings *s = j->settings;
    const struct { bool asked; const char *option; } cases[] = {
        {!mcl_transform_is_local(j->graph_transform), "a transform of -tf that sees several columns"},
        {s->mcl.degree_power != 0, "-dae"},
        {s->mcl.force_connected || s->check_connected, "--force-connected"},
        {s->graphml != NULL, "--graphml"},
        {s->read.tab != NULL, "-use-tab"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].asked) return cases[i].option;
    return NULL;
}

/* Process 0 decides. */
static sp_status decide(job *j, const io_read_options *options, bool *parts)
{
    const settings *s = j->settings;
    const char *option = whole_for(j);
    *parts = false;
    if (!j->team.ranks || s->mpi_read == MPI_READ_WHOLE) return SP_OK;
    if (!j->team.follows && !option)
        *parts = team_can_read(&j->team, s->input, options, s->mpi_read == MPI_READ_PARTS ? 0 : LEAST_BYTES);
    if (!j->team.follows && s->mpi_read == MPI_READ_PARTS && !*parts)
        log_line(&j->log, "mcl-gpu: each process reads the whole input: %s%s",
                 option ? option : "only uncompressed label pairs and matrices (Matrix Market, mcl, binary) are read "
                                   "in parts",
                 option ? " needs it" : "");
    return team_agree(&j->team, parts, sizeof *parts);
}

/* Gives the rows of the graph to the processes. */
static sp_status share_part(job *j, const io_graph *part)
{
    const io_graph *in = &j->input;
    const sp_arcs arcs = {.count = part->arcs, .rows = part->tails, .columns = part->heads, .weights = part->weights,
                          .type = SP_F32};
    sp_status status = sp_alloc(j->host, j->team.ranks->size + 1, sizeof *j->given, (void **)&j->given);
    if (status == SP_OK)
        status = mcl_share_graph(j->host, j->team.ranks, in->nodes, &arcs, in->symmetric, j->given, &j->graph);
    return status;
}

sp_status job_read_together(job *j, io_read_options options, bool *done)
{
    io_graph part = {0};
    sp_status status = decide(j, &options, done);
    if (status != SP_OK || !*done) return status;
    status = team_read(&j->team, j->settings->input, options, &part, &j->input, done);
    if (status == SP_OK && *done) {
        status = share_part(j, &part);
        if (status != SP_OK) team_give_up(&j->team, j->host, status); /* the others are waiting in the middle of it */
    }
    io_graph_free(j->host, &part);
    return status;
}

/* ---- directed graphs ----------------------------------------------------------------------------------------- */

/* A sum over the arcs of this process, by their ends in this order or, with `opposite`, in the other. */
static int64_t add_arcs(const sp_csr *rows, bool opposite)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < rows->rows; i++)
        for (int64_t e = rows->row_offsets[i]; e < rows->row_offsets[i + 1]; e++) {
            const int32_t ends[2] = {opposite ? rows->col_indices[e] : (int32_t)i,
                                     opposite ? (int32_t)i : rows->col_indices[e]};
            sum += mix_bytes(1, ends, sizeof ends);
        }
    return (int64_t)sum;
}

sp_status job_is_directed(job *j, bool *directed)
{
    int64_t sums[2];
    sp_status status = SP_OK;
    for (int k = 0; k < 2 && status == SP_OK; k++) {
        sums[k] = add_arcs(&j->graph, k == 1);
        status = team_add_up(&j->team, &sums[k]);
    }
    *directed = status == SP_OK && sums[0] != sums[1];
    return status;
}
