/* The implementation of team.h. */
#include "team.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"

/* ---- who has started this process ---------------------------------------------------------------------------- */

/* What launchers tell each process: Open MPI, then those with PMI (MPICH, Intel MPI, srun) and PMIx (srun, prterun),
 * which does not tell the size; and srun of a step without MPI. A batch script, which is alone, knows the tasks of its
 * job, but not of a step. */
static const struct { const char *rank, *size; bool mpi; } launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true}, {"PMI_RANK", "PMI_SIZE", true}, {"PMIX_RANK", NULL, true},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", false}};

/* This process's number among those that were launched with it; -1: it is alone. */
static int launched_rank(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *rank = getenv(launchers[i].rank), *size = launchers[i].size ? getenv(launchers[i].size) : NULL;
        if (rank && launchers[i].mpi) return size && strcmp(size, "1") == 0 ? -1 : atoi(rank);
    }
    return -1;
}

bool team_launched_behind(void) { return launched_rank() > 0; }

/* A launcher ends all processes when one has failed: the first, which says why, gets two seconds for that. */
static void let_first_speak(void)
{
    if (team_launched_behind()) sleep(2);
}

int team_mistaken(void)
{
    let_first_speak();
    return EXIT_USAGE;
}

bool team_is_alone(const char *tool)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *rank = getenv(launchers[i].rank), *size = launchers[i].size ? getenv(launchers[i].size) : NULL;
        if (!rank || !size || atoi(size) <= 1) continue;
        if (atoi(rank) == 0)
            usage_mistake(tool, "one of %d processes of mpirun or another launcher, which would all do the same work: "
                          "start it by itself, or give --mpi no if each has work of its own", atoi(size));
        else sleep(2);
        return false;
    }
    return true;
}

int team_hide_messages(void)
{
    const int kept = team_launched_behind() ? dup(STDERR_FILENO) : -1,
              nowhere = kept >= 0 ? open("/dev/null", O_WRONLY) : -1;
    if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0) close(nowhere);
    return kept;
}

void team_show_messages(int kept)
{
    if (kept < 0) return;
    dup2(kept, STDERR_FILENO);
    close(kept);
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

sp_status team_open(team *t, team_mpi how)
{
    const int launched = launched_rank();
    char why[256] = "its function is missing";
    if (how == TEAM_MPI_NO || (how == TEAM_MPI_AUTO && launched < 0)) return SP_OK;
    mpi_ranks_open_function *open_ranks = find_ranks(why);
    if (!open_ranks) {
        t->silent = launched > 0;
        let_first_speak();
        return sp_fail(NULL, SP_ERROR_UNSUPPORTED, "this is one of several MPI processes, and " MPI_RANKS_FILE
                       " cannot be opened (%s): make mpi builds it, and --mpi no runs without it", why);
    }
    const char *failure = open_ranks(SP_ABI, &t->mpi);
    if (failure) return sp_fail(NULL, SP_ERROR_UNSUPPORTED, "%s", failure);
    if (t->mpi->ranks.size > 1) t->ranks = &t->mpi->ranks;
    t->follows = t->silent = t->mpi->ranks.rank > 0;
    return SP_OK;
}

int64_t team_threads(const team *t, const char *input, int64_t wanted)
{
    const int threads = thread_count(input, wanted);
    if (!t->ranks || wanted > 0) return wanted;
    /* A launcher that binds has shared out the processors. */
    const int64_t online = sysconf(_SC_NPROCESSORS_ONLN), bound = system_processors();
    const int64_t share = bound < online ? bound : online / t->mpi->host_size;
    return share < 1 ? 1 : threads < share ? threads : share;
}

/* ---- together -------------------------------------------------------------------------------------------- */

sp_status team_agree(team *t, void *bytes, int64_t count)
{
    const char *failure = t->ranks ? t->ranks->broadcast(t->ranks->user, bytes, count) : NULL;
    return failure ? sp_fail(t->host, SP_ERROR_DEVICE, "%s", failure) : SP_OK;
}

const char *team_gather_each(const team *t, const void *own, int64_t size, void *all)
{
    const sp_ranks *ranks = t->ranks;
    int64_t *counts = calloc((size_t)ranks->size, sizeof *counts);
    if (!counts) return "out of memory";
    for (int r = 0; r < ranks->size; r++) counts[r] = size;
    const char *failure = ranks->gather(ranks->user, own, size, counts, all);
    free(counts);
    return failure;
}

sp_status team_share(team *t, const void *own, int64_t size, void *all)
{
    const char *failure = team_gather_each(t, own, size, all);
    if (failure) team_give_up(t, t->host, sp_fail(t->host, SP_ERROR_DEVICE, "%s", failure));
    return team_agree(t, all, t->ranks->size * size);
}

sp_status team_add_up(team *t, int64_t *number)
{
    int64_t own = *number, *all = calloc((size_t)t->ranks->size, sizeof *all);
    if (!all) team_give_up(t, t->host, SP_ERROR_HOST_MEMORY);
    const sp_status status = team_share(t, &own, sizeof own, all);
    *number = 0;
    for (int r = 0; r < t->ranks->size; r++) *number = (int64_t)((uint64_t)*number + (uint64_t)all[r]);
    free(all);
    return status;
}

sp_status team_agree_on(team *t, sp_status status)
{
    const sp_ranks *ranks = t->ranks;
    if (!ranks || t->ends_together) return status;
    sp_status *all = calloc((size_t)ranks->size, sizeof *all);
    int first = 0;
    if (!all) team_give_up(t, t->host, SP_ERROR_HOST_MEMORY);
    sp_status agreed = team_share(t, &status, sizeof status, all);
    while (agreed == SP_OK && first < ranks->size && all[first] == SP_OK) first++;
    t->ends_together = agreed == SP_OK && first < ranks->size;
    t->silent = t->ends_together && first != ranks->rank; /* from here on a process says why it alone fails */
    if (t->ends_together) agreed = all[first];
    free(all);
    if (agreed == SP_ERROR_INTERRUPTED && team_agree_on_signal(t) != SP_OK) agreed = SP_ERROR_DEVICE;
    return agreed;
}

sp_status team_agree_on_signal(team *t)
{
    int own = interrupt_signal, *all = t->ranks ? calloc((size_t)t->ranks->size, sizeof *all) : NULL;
    if (!t->ranks) return SP_OK;
    if (!all) team_give_up(t, t->host, SP_ERROR_HOST_MEMORY);
    const sp_status status = team_share(t, &own, sizeof own, all);
    for (int r = 0; r < t->ranks->size && !interrupt_signal && status == SP_OK; r++) interrupt_signal = all[r];
    free(all);
    t->ends_together = status == SP_OK;
    t->silent = t->follows;
    return status;
}

sp_status team_gather(team *t, const void *bytes, int64_t count, const int64_t *counts, void *all)
{
    const char *failure = t->ranks->gather(t->ranks->user, bytes, count, counts, all);
    return failure ? sp_fail(t->host, SP_ERROR_DEVICE, "%s", failure) : SP_OK;
}

const char *team_would_do(const team *t, int64_t bytes, int64_t memory, int parts, team_remedy text)
{
    const int size = t->ranks->size;
    const int64_t fit = parts == t->mpi->host_size ? memory / bytes : 0; /* processes a host */
    const long long megabytes = (bytes * parts >> 20) + 1, hosts = fit > 0 ? (size + fit - 1) / fit : 0;
    if (hosts == 0) snprintf(text, sizeof(team_remedy), "--memory %lldM would do", megabytes);
    else snprintf(text, sizeof(team_remedy), "--memory %lldM would do, or %lld hosts", megabytes, hosts);
    return text;
}

void team_name_failure(const team *t, sp_status status)
{
    char host[128] = "", why[512];
    if (!t->follows) return;
    gethostname(host, sizeof host - 1);
    snprintf(why, sizeof why, "%s", sp_last_error(t->host));
    sp_fail(t->host, status, "process %d on %s: %s", t->ranks->rank, host, *why ? why : sp_status_string(status));
}

void team_give_up(team *t, sp_context *context, sp_status status)
{
    tool_line line = {.tool = t->tool, .progress = t->progress && *t->progress};
    if (context != t->host) sp_fail(t->host, status, "%s", sp_last_error(context));
    team_name_failure(t, status);
    const int code = end_failed(&line, t->host, status);
    if (t->discard) t->discard(t->user);
    t->mpi->stop(code);
    exit(code);
}

void team_end(const team *t, int code)
{
    /* A launcher ends all when the first has ended with a failure, which is the same failure. */
    const int ending[] = {SIGTERM, SIGINT, SIGHUP};
    if (!t->mpi) return;
    for (size_t i = 0; i < sizeof ending / sizeof *ending && code != EXIT_DONE; i++) signal(ending[i], SIG_IGN);
    if (code != EXIT_DONE && !t->ends_together) t->mpi->stop(code);
    t->mpi->close();
}
