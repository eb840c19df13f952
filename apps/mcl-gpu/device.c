/* Where mcl-gpu computes: on the CPU or on a CUDA device. */
#include <signal.h>
#include <string.h>

#include "job.h"

/* ---- contexts ------------------------------------------------------------------------------------------ */

static sp_context_options context_options(const job *j, const char *device)
{
    const settings *s = j->settings;
    return (sp_context_options){
        .device = device,
        .threads = thread_count(s->input, s->threads),
        .memory_budget = (size_t)s->memory,
        .interrupt = &interrupt_signal,
    };
}

sp_status job_open_host(job *j)
{
    sp_context_options options = context_options(j, "cpu");
    return sp_context_create(&options, &j->host);
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
    const char *device = o->job->settings->device;
    sp_context_options options = context_options(o->job, strcmp(device, "auto") == 0 ? "cuda" : device);
    o->status = sp_context_create(&options, &o->context);
    if (o->status != SP_OK) snprintf(o->why, sizeof o->why, "%s", sp_last_error(NULL)); /* of this thread */
    return NULL;
}

bool cuda_required(const settings *s) { return strncmp(s->device, "cuda", 4) == 0; }

/* Whether it may be used. */
static bool cuda_allowed(const settings *s)
{
    return cuda_required(s) || (strcmp(s->device, "auto") == 0 && !s->exact);
}

/* The thread blocks all signals: they are the main thread's. */
void job_begin_opening(const job *j, opening *o)
{
    const settings *s = j->settings;
    bool large = file_bytes(s->input) >= CUDA_BYTES * thread_count(s->input, s->threads);
    *o = (opening){.job = j};
    if (!cuda_required(s) && !(cuda_allowed(s) && large)) return;
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

/* The multiplications of the first expansion: for each entry (j, k), the length of row k. */
static double count_products(const sp_csr *matrix, int threads)
{
    double products = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : products)
    for (int64_t e = 0; e < matrix->nnz; e++) {
        int32_t row = matrix->col_indices[e];
        products += (double)(matrix->row_offsets[row + 1] - matrix->row_offsets[row]);
    }
    return products;
}

sp_status job_choose_device(job *j, opening *o)
{
    const settings *s = j->settings;
    double products = count_products(&j->start, sp_context_threads(j->host));
    bool wanted = cuda_required(s) || (cuda_allowed(s) && products > CUDA_PRODUCTS * sp_context_threads(j->host));
    j->report.first_products = (int64_t)products;
    bool began = o->running;
    end_opening(o);
    if (wanted && !began) open_device(o);
    if (wanted) j->device = o->context;
    else sp_context_destroy(o->context);
    o->context = NULL;
    if (j->device || !cuda_required(s)) return SP_OK;
    return sp_fail(j->host, o->status, "--device %s: %s; use --device cpu or auto", s->device, o->why);
}

void opening_close(opening *o)
{
    end_opening(o);
    sp_context_destroy(o->context);
    o->context = NULL;
}
