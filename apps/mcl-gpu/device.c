/* Where mcl-gpu computes: on the CPU or on a CUDA device. */
#include <signal.h>
#include <string.h>

#include "common/device.h"
#include "job.h"

static device_choice choice_of(const settings *s)
{
    return (device_choice){.device = s->device, .input = s->input, .threads = s->threads, .memory = s->memory};
}

sp_status job_open_host(job *j)
{
    const device_choice choice = choice_of(j->settings);
    return device_open(&choice, "cpu", &interrupt_signal, &j->host);
}

/* ---- the device ---------------------------------------------------------------------------------------- */

/* A whole run costs the CPU about 6e-8 s for each product of its first expansion (measured on a protein-like network
 * of 20,000 nodes), shared by its threads. Opening a CUDA device takes about 0.3 s and a run of two dozen iterations
 * about 0.2 s more, however small: below this many products a thread the CPU is done by then. */
static const double CUDA_PRODUCTS = 1e7;
/* Text of label pairs has about 7 such products a byte: for files from this size on, a thread, the device is opened
 * while they are read. */
static const int64_t CUDA_BYTES = 2 << 20;

static void *open_device(void *argument)
{
    opening *o = argument;
    const device_choice choice = choice_of(o->job->settings);
    o->status = device_open(&choice, device_is_auto(choice.device) ? "cuda" : choice.device, &interrupt_signal,
                            &o->context);
    if (o->status != SP_OK) snprintf(o->why, sizeof o->why, "%s", sp_last_error(NULL)); /* of this thread */
    return NULL;
}

/* Whether it may be used. */
static bool cuda_allowed(const settings *s)
{
    return device_is_cuda(s->device) || (device_is_auto(s->device) && !s->exact);
}

/* The thread blocks all signals: they are the main thread's. */
void job_begin_opening(const job *j, opening *o)
{
    const settings *s = j->settings;
    bool large = file_bytes(s->input) >= CUDA_BYTES * thread_count(s->input, s->threads);
    *o = (opening){.job = j};
    if (!device_is_cuda(s->device) && !(cuda_allowed(s) && large)) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    o->running = pthread_create(&o->thread, NULL, open_device, o) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void end_opening(opening *o)
{
    if (o->running) pthread_join(o->thread, NULL);
    o->running = false;
}

sp_status job_choose_device(job *j, opening *o)
{
    const settings *s = j->settings;
    double products = square_products(&j->start, sp_context_threads(j->host));
    bool wanted = device_is_cuda(s->device) || (cuda_allowed(s) && products > CUDA_PRODUCTS * sp_context_threads(j->host));
    j->report.first_products = (int64_t)products;
    bool began = o->running;
    end_opening(o);
    if (wanted && !began) open_device(o);
    if (wanted) j->device = o->context;
    else sp_context_destroy(o->context);
    o->context = NULL;
    if (j->device || !device_is_cuda(s->device)) return SP_OK;
    return device_missing(j->host, s->device, o->status, o->why);
}

void opening_close(opening *o)
{
    end_opening(o);
    sp_context_destroy(o->context);
    o->context = NULL;
}
