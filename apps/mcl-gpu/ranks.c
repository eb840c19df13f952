/* One run of mcl-gpu in several processes (common/team.h). Each reads the input, or a part of it, and makes the start
 * matrix; the process itself is shared (mcl_iterate_together). Process 0 does all the rest: it writes and logs.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "common/device.h"
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
    return j->team.follows ? false : usage_mistake("mcl-gpu", "%s is for a run in one process, and there are %d", option,
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

/* What a process says of itself at the end. */
typedef struct account {
    int64_t received, messages, peak;
    double worked; /* seconds in which it did not wait for others */
    char host[64];
} account;

/* Names the process that the others have waited for. */
static void log_slowest(job *j, const account *all)
{
    const int size = j->team.ranks->size;
    int slowest = 0;
    double sum = 0;
    for (int r = 0; r < size; r++) {
        sum += all[r].worked;
        if (all[r].worked > all[slowest].worked) slowest = r;
    }
    log_line(&j->log, "mcl-gpu: the slowest process, %d on %s, worked for %.1f s, all on average for %.1f s", slowest,
             all[slowest].host, all[slowest].worked, sum / size);
}

void ranks_log(job *j)
{
    account own = {0}, *all = NULL;
    const sp_ranks *ranks = j->team.ranks;
    int64_t sum = 0, most = 0, peak = 0;
    char total[COUNT_TEXT], largest[COUNT_TEXT], memory[COUNT_TEXT];
    if (!ranks) return;
    own.received = j->team.mpi->received;
    own.messages = j->team.mpi->messages;
    own.peak = system_peak_bytes();
    own.worked = j->iterate_seconds - j->iterate_waited;
    gethostname(own.host, sizeof own.host - 1);
    all = calloc((size_t)ranks->size, sizeof *all);
    if (all && !team_gather_each(&j->team, &own, sizeof own, all) && ranks->rank == 0) {
        for (int r = 0; r < ranks->size; r++) {
            sum += all[r].received;
            if (all[r].received > most) most = all[r].received;
            if (all[r].peak > peak) peak = all[r].peak;
        }
        log_line(&j->log, "mcl-gpu: %d processes received %s MB of columns, one of them %s MB; at most %s MB of memory in "
                 "one", ranks->size, show_count(sum / 1000000, total), show_count(most / 1000000, largest),
                 show_count(peak / 1000000, memory));
        log_slowest(j, all);
    }
    free(all);
}
