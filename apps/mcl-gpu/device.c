/* Where mcl-gpu computes: on the CPU or on a CUDA device. */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/device.h"
#include "job.h"

static device_choice choice_of(const job *j)
{
    const settings *s = j->settings;
    return (device_choice){.device = s->device, .input = s->input,
                           .threads = team_threads(&j->team, s->input, s->threads), .memory = s->memory};
}

sp_status job_open_host(job *j)
{
    device_choice choice = choice_of(j);
    if (!j->team.ranks) choice.allocator = budget_open(&j->budget, &choice);
    const sp_status status = device_open(&choice, device_is_cpu(choice.device) ? choice.device : "cpu",
                                         &interrupt_signal, &j->host);
    j->team.host = j->host;
    return status;
}

/* ---- the device ---------------------------------------------------------------------------------------- */

/* Opening a CUDA device takes about 0.3 s and a run of two dozen iterations
 * about 0.2 s more, however small: below this many products a thread the CPU is done by then. --doctor
 * says this number. */
static const double CUDA_PRODUCTS = 1e7;
/* Text of label pairs has about 7 such products a byte: for files from this size on, a thread, the device is opened
 * while they are read. */
static const int64_t CUDA_BYTES = 2 << 20;

static void *open_device(void *argument)
{
    opening *o = argument;
    const device_choice choice = choice_of(o->job);
    const char *name = device_is_auto(choice.device) ? "cuda" : choice.device;
    char own[24];
    /* the processes of a host share its GPUs out */
    if (o->job->team.ranks && strcmp(name, "cuda") == 0 && sp_cuda_count() > 0) {
        snprintf(own, sizeof own, "cuda:%d", o->job->team.mpi->host_rank % sp_cuda_count());
        name = own;
    }
    o->status = device_open(&choice, name, &interrupt_signal, &o->context);
    if (o->status != SP_OK) snprintf(o->why, sizeof o->why, "%s", sp_last_error(NULL)); /* of this thread */
    atomic_store(&o->ended, true);
    return NULL;
}

/* Whether it may be used. Several processes must compute on one kind of device, so it is not chosen for each. */
static bool cuda_allowed(const job *j)
{
    const settings *s = j->settings;
    return device_is_cuda(s->device) || (device_is_auto(s->device) && !s->exact && !j->team.ranks);
}

/* The thread blocks all signals: they are the main thread's. */
void job_begin_opening(const job *j, opening *o)
{
    const settings *s = j->settings;
    bool large = file_bytes(s->input) >= CUDA_BYTES * thread_count(s->input, s->threads);
    o->job = j;
    if (!device_is_cuda(s->device) && !(cuda_allowed(j) && large)) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    o->running = pthread_create(&o->thread, NULL, open_device, o) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A device that is not there is missed within milliseconds, one that is there opens while the input is read. */
sp_status job_check_opening(job *j, opening *o)
{
    enum { MILLISECONDS = 50 };
    const struct timespec nap = {.tv_nsec = 1000000};
    if (!device_is_cuda(j->settings->device) || !o->running) return SP_OK;
    for (int i = 0; i < MILLISECONDS && !atomic_load(&o->ended); i++) nanosleep(&nap, NULL);
    if (!atomic_load(&o->ended) || o->status == SP_OK) return SP_OK;
    return device_missing(j->host, j->settings->device, o->status, o->why);
}

static void end_opening(opening *o)
{
    if (o->running) pthread_join(o->thread, NULL);
    o->running = false;
}

sp_status job_choose_device(job *j, opening *o)
{
    const settings *s = j->settings;
    double products;
    const sp_status counted = ranks_count_products(j, &products);
    if (counted != SP_OK) return counted;
    if (!j->given) products = square_products(&j->start, sp_context_threads(j->host));
    bool wanted = device_is_cuda(s->device) ||
                  (cuda_allowed(j) && products > CUDA_PRODUCTS * sp_context_threads(j->host));
    j->report.first_products = (int64_t)products;
    bool began = o->running;
    end_opening(o);
    if (wanted && !began) open_device(o);
    if (wanted) j->device = o->context;
    else sp_context_destroy(o->context);
    o->context = NULL;
    if (!j->given) job_note_work(j, products);
    if (j->device || !device_is_cuda(s->device)) return SP_OK;
    return device_missing(j->host, s->device, o->status, o->why);
}

void opening_close(opening *o)
{
    end_opening(o);
    sp_context_destroy(o->context);
    o->context = NULL;
}
