/* One run in several processes that a launcher such as mpirun has started. Each reads the input and makes the start
 * matrix; the process itself is shared (mcl_iterate_together). Process 0 does all the rest: it writes and logs. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "common/device.h"
#include "job.h"

/* ---- who has started this process ---------------------------------------------------------------------------- */

/* What launchers tell each process: Open MPI, then those with PMI (MPICH, Intel MPI, srun) and PMIx (srun, prterun),
 * which does not tell the size. */
static const struct { const char *rank, *size; } launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"PMIX_RANK", NULL}};

/* This process's number among those that were launched with it; -1: it is alone. */
static int launched_rank(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *rank = getenv(launchers[i].rank), *size = launchers[i].size ? getenv(launchers[i].size) : NULL;
        if (rank) return size && strcmp(size, "1") == 0 ? -1 : atoi(rank);
    }
    return -1;
}

bool ranks_launched_behind(void) { return launched_rank() > 0; }

bool ranks_parse(int argc, char **argv, settings *s)
{
    const int kept = ranks_launched_behind() ? dup(STDERR_FILENO) : -1, nowhere = kept >= 0 ? open("/dev/null", O_WRONLY) : -1;
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    const bool parsed = settings_parse(argc, argv, s);
    if (nowhere >= 0) dup2(kept, STDERR_FILENO);
    if (nowhere >= 0) close(nowhere);
    if (kept >= 0) close(kept);
    return parsed;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

/* The shared object is beside the program, in ../lib, or where the system looks. */
static mpi_ranks_open_function *find_ranks(char why[256])
{
    char path[PATH_MAX + 32];
    void *object = NULL;
    system_program(path);
    char *end = strrchr(path, '/');
    if (end) {
        snprintf(end, sizeof path - (size_t)(end - path), "/../lib/" MPI_RANKS_FILE);
        object = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* Open MPI's plugins look for its names among the global ones */
    }
    if (!object && (!end || access(path, F_OK) != 0)) object = dlopen(MPI_RANKS_FILE, RTLD_NOW | RTLD_GLOBAL);
    if (!object) snprintf(why, 256, "%s", dlerror());
    return object ? (mpi_ranks_open_function *)dlsym(object, MPI_RANKS_OPEN) : NULL;
}

sp_status job_open_ranks(job *j)
{
    const settings *s = j->settings;
    const int launched = launched_rank();
    char why[256] = "its function is missing";
    if (s->mpi == MPI_NO || (s->mpi == MPI_AUTO && launched < 0)) return SP_OK;
    mpi_ranks_open_function *open_ranks = find_ranks(why);
    if (!open_ranks) {
        j->silent = launched > 0;
        return sp_fail(NULL, SP_ERROR_UNSUPPORTED, "this is one of several MPI processes, and " MPI_RANKS_FILE
                       " cannot be opened (%s): make mpi builds it, and --mpi no runs without it", why);
    }
    const char *failure = open_ranks(SP_ABI, &j->mpi);
    if (failure) return sp_fail(NULL, SP_ERROR_UNSUPPORTED, "%s", failure);
    if (j->mpi->ranks.size > 1) j->ranks = &j->mpi->ranks;
    /* Of a GPU's memory, fetched columns leave half to the product. */
    j->mpi->ranks.memory = device_is_cuda(s->device) ? s->memory / 2 : s->memory / j->mpi->host_size;
    j->follows = j->mpi->ranks.rank > 0;
    j->log.mute = j->silent = j->follows;
    j->log.quiet = j->log.quiet || j->follows;
    if (!j->follows) return SP_OK;
    j->log.terminal = j->log.plain = false;
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
    if (!j->ranks || !option) return true;
    return j->follows ? false : usage_mistake("mcl-gpu", "%s is for a run in one process, and there are %d", option,
                                              j->ranks->size);
}

int64_t ranks_threads(const job *j)
{
    const settings *s = j->settings;
    const int threads = thread_count(s->input, s->threads);
    if (!j->ranks || s->threads > 0) return s->threads;
    /* A launcher that binds has shared out the processors. */
    const int64_t online = sysconf(_SC_NPROCESSORS_ONLN), bound = system_processors();
    const int64_t share = bound < online ? bound : online / j->mpi->host_size;
    return share < 1 ? 1 : threads < share ? threads : share;
}

/* ---- together -------------------------------------------------------------------------------------------- */

sp_status ranks_agree(job *j, void *bytes, int64_t count)
{
    const char *failure = j->ranks ? j->ranks->broadcast(j->ranks->user, bytes, count) : NULL;
    return failure ? sp_fail(j->host, SP_ERROR_DEVICE, "%s", failure) : SP_OK;
}

/* all[r]: the `size` bytes of process r, at process 0. NULL, or why it failed. */
static const char *gather_each(const mcl_ranks *ranks, const void *own, int64_t size, void *all)
{
    int64_t *counts = calloc((size_t)ranks->size, sizeof *counts);
    if (!counts) return "out of memory";
    for (int r = 0; r < ranks->size; r++) counts[r] = size;
    const char *failure = ranks->gather(ranks->user, own, size, counts, all);
    free(counts);
    return failure;
}

sp_status ranks_share(job *j, const void *own, int64_t size, void *all)
{
    const char *failure = gather_each(j->ranks, own, size, all);
    if (failure) ranks_give_up(j, j->host, sp_fail(j->host, SP_ERROR_DEVICE, "%s", failure));
    return ranks_agree(j, all, j->ranks->size * size);
}

sp_status ranks_add_up(job *j, int64_t *number)
{
    int64_t own = *number, *all = calloc((size_t)j->ranks->size, sizeof *all);
    if (!all) ranks_give_up(j, j->host, SP_ERROR_HOST_MEMORY);
    const sp_status status = ranks_share(j, &own, sizeof own, all);
    *number = 0;
    for (int r = 0; r < j->ranks->size; r++) *number = (int64_t)((uint64_t)*number + (uint64_t)all[r]);
    free(all);
    return status;
}

sp_status ranks_agree_on(job *j, sp_status status)
{
    const mcl_ranks *ranks = j->ranks;
    if (!ranks || j->ends_together) return status;
    sp_status *all = calloc((size_t)ranks->size, sizeof *all);
    int first = 0;
    if (!all) ranks_give_up(j, j->host, SP_ERROR_HOST_MEMORY);
    sp_status agreed = ranks_share(j, &status, sizeof status, all);
    while (agreed == SP_OK && first < ranks->size && all[first] == SP_OK) first++;
    j->ends_together = agreed == SP_OK && first < ranks->size;
    j->silent = j->ends_together && first != ranks->rank; /* from here on a process says why it alone fails */
    if (j->ends_together) agreed = all[first];
    free(all);
    if (agreed == SP_ERROR_INTERRUPTED && ranks_agree_on_signal(j) != SP_OK) agreed = SP_ERROR_DEVICE;
    return agreed;
}

sp_status ranks_agree_on_signal(job *j)
{
    int own = interrupt_signal, *all = j->ranks ? calloc((size_t)j->ranks->size, sizeof *all) : NULL;
    if (!j->ranks) return SP_OK;
    if (!all) ranks_give_up(j, j->host, SP_ERROR_HOST_MEMORY);
    const sp_status status = ranks_share(j, &own, sizeof own, all);
    for (int r = 0; r < j->ranks->size && !interrupt_signal && status == SP_OK; r++) interrupt_signal = all[r];
    free(all);
    j->ends_together = status == SP_OK;
    j->silent = j->follows;
    return status;
}

sp_status ranks_compare_start(job *j)
{
    if (!j->ranks || j->given) return SP_OK;
    const uint64_t own = job_hash(&j->start);
    uint64_t first = own;
    const sp_status status = ranks_agree(j, &first, sizeof first);
    if (status != SP_OK || own == first) return status;
    return sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: not the network that process 0 has read", j->settings->input);
}

sp_status ranks_gather(job *j, const void *bytes, int64_t count, const int64_t *counts, void *all)
{
    const char *failure = j->ranks->gather(j->ranks->user, bytes, count, counts, all);
    return failure ? sp_fail(j->host, SP_ERROR_DEVICE, "%s", failure) : SP_OK;
}

sp_status ranks_gather_rows(job *j, void *all, int64_t size)
{
    const mcl_ranks *ranks = j->ranks;
    if (!j->given) return SP_OK;
    const int64_t own = j->given[ranks->rank], count = j->given[ranks->rank + 1] - own;
    int64_t *counts = calloc((size_t)ranks->size, sizeof *counts);
    if (!counts) ranks_give_up(j, j->host, SP_ERROR_HOST_MEMORY);
    for (int r = 0; r < ranks->size; r++) counts[r] = (j->given[r + 1] - j->given[r]) * size;
    const sp_status status = ranks_gather(j, (char *)all + own * size, count * size, counts, all);
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
    const int size = j->ranks->size;
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
    const mcl_ranks *ranks = j->ranks;
    int64_t sum = 0, most = 0, peak = 0;
    char total[COUNT_TEXT], largest[COUNT_TEXT], memory[COUNT_TEXT];
    if (!ranks) return;
    own.received = j->mpi->received;
    own.messages = j->mpi->messages;
    own.peak = system_peak_bytes();
    own.worked = j->iterate_seconds - j->iterate_waited;
    gethostname(own.host, sizeof own.host - 1);
    all = calloc((size_t)ranks->size, sizeof *all);
    if (all && !gather_each(ranks, &own, sizeof own, all) && ranks->rank == 0) {
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

void ranks_name_failure(const job *j, sp_status status)
{
    char host[128] = "", why[512];
    if (!j->follows) return;
    gethostname(host, sizeof host - 1);
    snprintf(why, sizeof why, "%s", sp_last_error(j->host));
    sp_fail(j->host, status, "process %d on %s: %s", j->ranks->rank, host, *why ? why : sp_status_string(status));
}

void ranks_give_up(job *j, sp_context *context, sp_status status)
{
    tool_line line = {.tool = "mcl-gpu", .progress = j->log.progress};
    if (context != j->host) sp_fail(j->host, status, "%s", sp_last_error(context));
    ranks_name_failure(j, status);
    const int code = end_failed(&line, j->host, status);
    for (int i = 0; i < j->kept_count; i++) io_output_discard(j->kept[i]);
    j->mpi->stop(code);
    exit(code);
}

void ranks_end(const job *j, int code)
{
    /* A launcher ends all when the first has ended with a failure, which is the same failure. */
    const int ending[] = {SIGTERM, SIGINT, SIGHUP};
    if (!j->mpi) return;
    for (size_t i = 0; i < sizeof ending / sizeof *ending && code != EXIT_DONE; i++) signal(ending[i], SIG_IGN);
    if (code != EXIT_DONE && !j->ends_together) j->mpi->stop(code);
    j->mpi->close();
}
