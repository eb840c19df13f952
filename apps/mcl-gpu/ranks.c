/* One run of mcl-gpu in several processes (common/team.h). Each reads the input, or a part of it, and makes the start
 * matrix; the process itself is shared (mcl_iterate_together). Process 0 does all the rest: it writes and logs.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "common/device.h"
#include "common/json.h"
#include "job.h"

/* ---- opening --------------------------------------------------------------------------------------------- */

/* The outputs of a run that is given up. */
static void discard(void *user)
{
    job *j = user;
    for (int i = 0; i < j->kept_count; i++) io_output_discard(j->kept[i]);
}

sp_status job_open_ranks(job *j)
{
    const settings *s = j->settings;
    j->team = (team){.tool = "mcl-gpu", .progress = &j->log.progress, .discard = discard, .user = j};
    const sp_status status = team_open(&j->team, s->mpi);
    if (status != SP_OK || !j->team.mpi) return status;
    /* Of a GPU's memory, fetched columns leave half to the product. */
    j->team.mpi->ranks.memory = device_is_cuda(s->device) ? s->memory / 2 : s->memory / j->team.mpi->host_size;
    j->team.mpi->ranks.needed = &j->needed;
    j->log.mute = j->team.follows;
    j->log.quiet = j->log.quiet || j->team.follows;
    if (j->team.follows) j->log.terminal = j->log.plain = false;
    return SP_OK;
}

/* Options that need a standard input for each process, or act on parts of the graph that only one knows. */
bool ranks_allow(const job *j)
{
    const settings *s = j->settings;
    const char *option = strcmp(s->input, "-") == 0 ? "standard input"
                         : s->start_from            ? "--start-from"
                         : s->fast && !device_is_cuda(s->device) ? "--fast"
                                                    : NULL;
    if (!j->team.ranks || !option) return true;
    return j->team.follows
        ? false : usage_mistake("mcl-gpu", "%s is for a run in one process, and there are %d", option,
                                              j->team.ranks->size);
}

/* ---- together -------------------------------------------------------------------------------------------- */

sp_status ranks_compare_start(job *j)
{
    if (!j->team.ranks || j->given) return SP_OK;
    const uint64_t own = job_hash(&j->start);
    uint64_t first = own;
    const sp_status status = team_agree(&j->team, &first, sizeof first);
    if (status != SP_OK || own == first) return status;
    return sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: not the network that process 0 has read", j->settings->input);
}

sp_status ranks_gather_rows(job *j, void *all, int64_t size)
{
    const sp_ranks *ranks = j->team.ranks;
    if (!j->given) return SP_OK;
    const int64_t own = j->given[ranks->rank], count = j->given[ranks->rank + 1] - own;
    int64_t *counts = calloc((size_t)ranks->size, sizeof *counts);
    if (!counts) team_give_up(&j->team, j->host, SP_ERROR_HOST_MEMORY);
    for (int r = 0; r < ranks->size; r++) counts[r] = (j->given[r + 1] - j->given[r]) * size;
    const sp_status status = team_gather(&j->team, (char *)all + own * size, count * size, counts, all);
    free(counts);
    return status;
}

sp_status ranks_leave(job *j, sp_status status)
{
    if (j->team.ranks && status != SP_OK && status != SP_ERROR_INTERRUPTED) team_give_up(&j->team, j->host, status);
    return status;
}

sp_csr ranks_own_rows(const job *j, const sp_csr *matrix)
{
    sp_csr own = *matrix;
    if (!j->team.ranks) return own;
    if (j->given) {
        own.rows = j->given[j->team.ranks->rank + 1] - j->given[j->team.ranks->rank];
        own.row_offsets += j->given[j->team.ranks->rank]; /* no entries precede them */
    } else if (j->team.follows) {
        own.rows = own.nnz = 0; /* process 0 has them all */
    }
    return own;
}

sp_status ranks_count_products(job *j, double *products)
{
    const sp_csr *m = &j->start;
    int64_t *lengths = NULL, sum = 0;
    sp_status status = SP_OK;
    *products = 0;
    if (!j->given || !j->settings->report) return SP_OK;
    status = sp_alloc(j->host, m->rows, sizeof *lengths, (void **)&lengths);
    for (int64_t i = 0; i < m->rows && status == SP_OK; i++) lengths[i] = m->row_offsets[i + 1] - m->row_offsets[i];
    TRY(team_agree_on(&j->team, status));
    TRY(sp_ranks_share(j->host, j->team.ranks, j->given, sizeof *lengths, lengths));
    for (int64_t e = 0; e < m->nnz; e++) sum += lengths[m->col_indices[e]];
    TRY(team_add_up(&j->team, &sum));
    *products = (double)sum;
done:
    sp_free(j->host, lengths);
    return status;
}

sp_status ranks_learn_cut(job *j, const sp_csr *rows, int64_t **cut)
{
    const sp_ranks *ranks = j->team.ranks;
    sp_status status = sp_alloc(j->host, ranks->size + 1, sizeof **cut, (void **)cut);
    if (status == SP_OK) status = sp_ranks_cut(j->host, ranks, rows->rows, *cut);
    return status;
}

sp_status ranks_gather_offsets(job *j, const sp_csr *rows, int64_t **offsets)
{
    const sp_ranks *ranks = j->team.ranks;
    const int64_t all = j->team.follows ? 0 : rows->cols;
    int64_t *counts = NULL, *entries = NULL;
    sp_status status;
    TRY(sp_alloc(j->host, ranks->size, sizeof *counts, (void **)&counts));
    TRY(sp_alloc(j->host, ranks->size, sizeof *entries, (void **)&entries));
    TRY(sp_alloc(j->host, all + 1, sizeof **offsets, (void **)offsets));
    TRY(sp_ranks_numbers(j->host, ranks, rows->rows, counts));
    TRY(sp_ranks_numbers(j->host, ranks, rows->nnz, entries));
    TRY(sp_ranks_gather(j->host, ranks, rows->row_offsets + 1, counts, sizeof **offsets, *offsets + 1));
    (*offsets)[0] = 0;
    for (int64_t r = 0, row = 0, before = 0; r < ranks->size && all > 0; before += entries[r++])
        for (const int64_t end = row + counts[r]; row < end; row++) (*offsets)[row + 1] += before;
done:
    FREE_ALL(j->host, counts, entries);
    return status;
}

void ranks_gather_attracting(job *j, const sp_csr *rows, sp_csr *attracting)
{
    int64_t *cut = NULL;
    sp_csr kept = {0};
    sp_status status;
    TRY(ranks_learn_cut(j, rows, &cut));
    TRY(mcl_keep_attracting(j->host, rows, cut[j->team.ranks->rank], &kept));
    TRY(sp_ranks_gather_rows(j->host, j->team.ranks, &kept, attracting));
done:
    if (status != SP_OK) team_give_up(&j->team, j->host, status); /* the others are waiting in the middle of it */
    sp_free(j->host, cut);
    sp_csr_free(j->host, &kept);
}

/* ---- what the processes say of themselves ------------------------------------------------------------------ */

sp_status ranks_account(job *j)
{
    const sp_ranks *ranks = j->team.ranks;
    sp_status status = SP_OK;
    if (!ranks) return SP_OK;
    process_account own = {.received = j->team.mpi->received, .messages = j->team.mpi->messages,
                           .peak = system_peak_bytes(), .read = j->report.read_seconds,
                           .worked = j->iterate_seconds - j->iterate_waited, .waited = j->iterate_waited};
    gethostname(own.host, sizeof own.host - 1);
    if (!j->accounts) status = sp_calloc(j->host, ranks->size, sizeof own, (void **)&j->accounts);
    const char *failure = status == SP_OK ? team_gather_each(&j->team, &own, sizeof own, j->accounts) : NULL;
    if (failure) status = sp_fail(j->host, SP_ERROR_DEVICE, "%s", failure);
    if (status != SP_OK) team_give_up(&j->team, j->host, status); /* the others are waiting in the middle of it */
    return SP_OK;
}

/* The largest and the mean of one figure. */
typedef struct spread {
    int64_t most, sum;
} spread;

static void spread_add(spread *s, int64_t figure)
{
    s->sum += figure;
    if (figure > s->most) s->most = figure;
}

static int64_t megabytes(int64_t bytes) { return bytes / 1000000; }

static void log_process(job *j, const char *which, const process_account *all, int number)
{
    const process_account *p = &all[number];
    char received[COUNT_TEXT], memory[COUNT_TEXT];
    log_line(&j->log, "mcl-gpu: the %s process, %d on %s, worked for %.1f s, received %s MB and has taken %s MB", which,
             number, p->host, p->worked, show_count(megabytes(p->received), received),
             show_count(megabytes(p->peak), memory));
}

void ranks_log(job *j)
{
    const process_account *all = j->accounts;
    const int size = j->team.ranks ? j->team.ranks->size : 0;
    spread received = {0}, memory = {0};
    char total[COUNT_TEXT], largest[COUNT_TEXT], peak[COUNT_TEXT], mean[COUNT_TEXT], usual[COUNT_TEXT];
    int slowest = 0, fastest = 0;
    double sum = 0;
    if (!all || j->team.follows) return;
    j->accounts[0].peak = system_peak_bytes(); /* this process has written since */
    for (int r = 0; r < size; r++) {
        spread_add(&received, all[r].received);
        spread_add(&memory, all[r].peak);
        sum += all[r].worked;
        if (all[r].worked > all[slowest].worked) slowest = r;
        if (all[r].worked < all[fastest].worked) fastest = r;
    }
    log_line(&j->log, "mcl-gpu: %d processes received %s MB of columns, one of them %s MB; at most %s MB of memory in "
                      "one",
             size, show_count(megabytes(received.sum), total), show_count(megabytes(received.most), largest),
             show_count(megabytes(memory.most), peak));
    log_process(j, "slowest", all, slowest); /* for which the others have waited */
    log_process(j, "fastest", all, fastest);
    log_line(&j->log, "mcl-gpu: a process on average worked for %.1f s, received %s MB and has taken %s MB", sum / size,
             show_count(megabytes(received.sum / size), mean), show_count(megabytes(memory.sum / size), usual));
}

void ranks_put(job *j, json *file)
{
    const int size = j->team.ranks ? j->team.ranks->size : 0;
    if (!j->accounts) return;
    j->accounts[0].peak = system_peak_bytes();
    json_begin(file, "processes", '[');
    for (int r = 0; r < size; r++) {
        const process_account *p = &j->accounts[r];
        json_begin(file, NULL, '{');
        json_text(file, "host", p->host);
        json_seconds(file, "read_seconds", p->read);
        json_seconds(file, "worked_seconds", p->worked);
        json_seconds(file, "waited_seconds", p->waited);
        json_count(file, "received_bytes", p->received);
        json_count(file, "messages", p->messages);
        json_count(file, "peak_host_bytes", p->peak);
        json_end(file, '}');
    }
    json_end(file, ']');
}
