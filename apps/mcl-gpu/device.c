/* Where mcl-gpu computes: on the CPU or on a CUDA device. */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/device.h"
#include "job.h"

static device_choice choice_of(const job *j)
{
    const settings *s = j->settings;
    return (device_choice){.device = s->device, .input = s->input, .threads = team_threads(&j->team, s->input, s->threads), .memory = s->memory};
}

sp_status job_open_host(job *j)
{
    device_choice choice = choice_of(j);
    if (!j->team.ranks) choice.allocator = budget_open(&j->budget, &choice);
    const sp_status status = device_open(&choice, device_is_cpu(choice.device) ? choice.device : "cpu", &interrupt_signal,
                                         &j->host);
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
    if (o->job->team.ranks && strcmp(name, "cuda") == 0 && sp_cuda_count() > 0) { /* the processes of a host share its GPUs out */
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

/* A whole run costs the CPU about 6e-8 s for each product of its first expansion (measured on a protein-like network
 * of 20,000 nodes), shared by its threads. */
static const double SECONDS_A_PRODUCT = 6e-8;

/* The multiplications of a row's expansion: the sum of the lengths of the rows that it names. */
static double row_products(const sp_csr *matrix, int64_t row)
{
    double products = 0;
    for (int64_t e = matrix->row_offsets[row]; e < matrix->row_offsets[row + 1]; e++) {
        const int32_t other = matrix->col_indices[e];
        products += (double)(matrix->row_offsets[other + 1] - matrix->row_offsets[other]);
    }
    return products;
}

/* A multiplication of a later expansion, where many products meet in few entries (measured on networks of hubs). */
static const double SECONDS_A_MULTIPLICATION = 1.5e-9;

/* Says which node makes expansions large. Steps through it lead from each of its neighbours to all others, so the first
 * expansion gives the columns of its neighbours as many entries as it has. Pruning leaves up to max(S, R) of them,
 * which the second expansion multiplies with each other. */
static void note_wide(job *j, double products)
{
    enum { SECONDS = 10 };
    const sp_csr *m = &j->start;
    const int64_t keep = j->mcl.select > j->mcl.recover ? j->mcl.select : j->mcl.recover;
    const double most = (double)(keep < m->rows ? keep : m->rows);
    char name[256], degree[COUNT_TEXT], threads[COUNTED_TEXT];
    int64_t hub = 0;
    double through = 0, kept = 0;
    for (int64_t row = 0; row < m->rows; row++) {
        const int64_t length = m->row_offsets[row + 1] - m->row_offsets[row];
        if (length > m->row_offsets[hub + 1] - m->row_offsets[hub]) hub = row;
        if (length > keep) through += (double)length * (double)length;
        kept += fmin(row_products(m, row), most);
    }
    if (m->rows == 0) return;
    const double second = kept * kept / (double)m->rows;
    const double seconds = second * SECONDS_A_MULTIPLICATION / sp_context_threads(j->host);
    if (j->device || seconds < SECONDS || 2 * through < products) return;
    log_line(&j->log, "mcl-gpu: %s has %s neighbours: %.0f %% of the first expansion goes through nodes like it, and the "
             "second may take %.0f s on %s; -R 0 recovers no small entries, -tf '#knn(500)' keeps the strongest "
             "edges of each node, or leave it out",
             job_node_name(j, hub, name, sizeof name), show_count(m->row_offsets[hub + 1] - m->row_offsets[hub], degree),
             100 * fmin(1, through / products), seconds, counted(sp_context_threads(j->host), "thread", threads));
}

/* Says which node will hold the others up: its column is the work of one thread, and longer than a thread's share. */
static void note_hub(job *j, double products)
{
    enum { SECONDS = 2 };
    const sp_csr *m = &j->start;
    char name[256], degree[COUNT_TEXT];
    int64_t hub = 0;
    for (int64_t row = 1; row < m->rows; row++)
        if (m->row_offsets[row + 1] - m->row_offsets[row] > m->row_offsets[hub + 1] - m->row_offsets[hub]) hub = row;
    if (m->rows == 0) return;
    const double most = row_products(m, hub), seconds = most * SECONDS_A_PRODUCT;
    if (seconds < SECONDS || most * sp_context_threads(j->host) < products) return;
    log_line(&j->log, "mcl-gpu: %s has %s neighbours: its column makes %.0f %% of the work, about %.0f s that no other "
             "thread can share; -tf '#knn(500)' keeps the strongest edges of each node, or leave it out",
             job_node_name(j, hub, name, sizeof name), show_count(m->row_offsets[hub + 1] - m->row_offsets[hub], degree),
             100 * most / products, seconds);
}

/* Says what a long run will take on the CPU. */
static void note_cost(job *j, double products)
{
    enum { SECONDS = 60 };
    char threads[COUNTED_TEXT];
    const double seconds = products * SECONDS_A_PRODUCT / sp_context_threads(j->host);
    if (!j->device && seconds >= SECONDS)
        log_line(&j->log, "mcl-gpu: about %.0f minutes on %s, for each inflation; more if the network does not "
                 "fall apart", ceil(seconds / 60), counted(sp_context_threads(j->host), "thread", threads));
}

sp_status job_choose_device(job *j, opening *o)
{
    const settings *s = j->settings;
    /* A process that has some rows only does not know the lengths of the others. */
    double products = j->given ? 0 : square_products(&j->start, sp_context_threads(j->host));
    bool wanted = device_is_cuda(s->device) ||
                  (cuda_allowed(j) && products > CUDA_PRODUCTS * sp_context_threads(j->host));
    j->report.first_products = (int64_t)products;
    bool began = o->running;
    end_opening(o);
    if (wanted && !began) open_device(o);
    if (wanted) j->device = o->context;
    else sp_context_destroy(o->context);
    o->context = NULL;
    if (!j->given) {
        note_hub(j, products);
        note_wide(j, products);
        note_cost(j, products);
    }
    if (j->device || !device_is_cuda(s->device)) return SP_OK;
    return device_missing(j->host, s->device, o->status, o->why);
}

void opening_close(opening *o)
{
    end_opening(o);
    sp_context_destroy(o->context);
    o->context = NULL;
}
