/* The Markov cluster process: M := inflate(prune(M·M)) until the columns are (nearly) homogeneous.
 *
 * Expansion, pruning and inflation are one product with a row epilogue (sp_spgemm_markov), on whichever back end the
 * context has, or in several processes (ranks.c); here are the schedule of inflation, the stop rule and the figures of
 * each iteration.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/try.h"
#include "ranks.h"

/* mcl's stop rule, and its remedy for graphs whose process flips between two states for ever. */
static const double CHAOS_LIMIT = 1e-4, BUMP = 1.001;
enum { BUMP_AFTER = 40, WORST_COLUMNS = 1000 };

static void sift_down(float *heap, int64_t root, int64_t count)
{
    float moving = heap[root];
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap[child] < heap[child + 1]) child++;
        if (!(moving < heap[child])) break;
        heap[root] = heap[child];
    }
    heap[root] = moving;
}

/* Mean kept mass in percent of the columns that pruning hurt most: a heap holds the worst seen so far. */
static double jury_mark(const sp_markov_row *rows, int64_t count)
{
    float worst[WORST_COLUMNS];
    const int64_t size = count < WORST_COLUMNS ? count : WORST_COLUMNS;
    double sum = 0;
    if (count == 0) return 100;
    for (int64_t i = 0; i < size; i++) worst[i] = rows[i].kept_mass;
    for (int64_t i = size / 2; i-- > 0;) sift_down(worst, i, size);
    for (int64_t i = size; i < count; i++) {
        if (!(rows[i].kept_mass < worst[0])) continue;
        worst[0] = rows[i].kept_mass;
        sift_down(worst, 0, size);
    }
    for (int64_t i = 0; i < size; i++) sum += (double)worst[i];
    return 100 * sum / (double)size;
}

/* Fills the figures that come from single columns. A NaN is refused, named by its column. */
static sp_status summarise(sp_context *context, const sp_markov_row *rows, int64_t count, mcl_iteration *iteration)
{
    double sum = 0;
    float low = count ? rows[0].homogeneity : 0, high = low;
    for (int64_t j = 0; j < count; j++) {
        if (isnan(rows[j].chaos))
            return sp_fail(context, SP_ERROR_NOT_FINITE, "column %lld of iteration %lld is not a number",
                           (long long)j, (long long)iteration->number);
        if ((double)rows[j].chaos > iteration->chaos) iteration->chaos = (double)rows[j].chaos;
        iteration->empty_columns += rows[j].expanded == 0;
        sum += (double)rows[j].homogeneity;
        if (rows[j].homogeneity < low) low = rows[j].homogeneity;
        if (rows[j].homogeneity > high) high = rows[j].homogeneity;
    }
    iteration->homogeneity_average = count ? sum / (double)count : 0;
    iteration->homogeneity_low = (double)low;
    iteration->homogeneity_high = (double)high;
    iteration->mark = jury_mark(rows, count);
    return SP_OK;
}

/* A process on its way. */
typedef struct process {
    sp_context *context;
    const mcl_options *options;
    mcl_monitor monitor;
    void *user;
    const sp_csr *current;
    sp_csr owned;           /* the iterand, once it is not the caller's */
    const int32_t *order;
    sp_markov_row *rows;    /* figures of all columns, or with `ranks` elsewhere than at process 0 of its own */
    int64_t nnz_input;
    double inflation;       /* the main one from here on */
    mcl_run done;
    const sp_ranks *ranks; /* the processes that share this one, each with its rows of the iterand; NULL: it is alone */
    int64_t *cut;           /* the rows of each of them */
} process;

/* Several devices take more than one: each copies up to all rows of the iterand, and C exists twice as it is joined. */
static int64_t count_devices(const sp_context *context)
{
    int64_t count = 1;
    for (const char *at = sp_context_device(context); *at; at++) count += *at == ',';
    return count;
}

/* The next iterand does not fit the memory. Its rows are made some at a time and dropped, to learn its size, which the
 * sentence has, and which the allocator is asked for: --memory of mcl-gpu says by that how much would do. */
static sp_status find_size(process *p, const sp_markov_epilogue *epilogue, int64_t number)
{
    enum { PARTS = 16, ENTRY_BYTES = sizeof(int32_t) + sizeof(float) };
    const sp_csr *m = p->current;
    sp_context *context = p->context;
    int64_t *offsets = NULL, entries = 0, scratch = 0, length = m->rows / PARTS + 1;
    void *room = NULL;
    sp_status status;
    TRY(sp_alloc(context, length + 1, sizeof *offsets, (void **)&offsets));
    for (int64_t first = 0; first < m->rows;) {
        const int64_t end = m->rows - first < length ? m->rows : first + length, base = m->row_offsets[first];
        sp_markov_epilogue own = *epilogue;
        sp_csr rows = *m, made = {0};
        sp_spgemm_info info;
        own.diagonal = first;
        for (int64_t i = first; i <= end; i++) offsets[i - first] = m->row_offsets[i] - base;
        rows.rows = end - first;
        rows.nnz = offsets[end - first];
        rows.row_offsets = offsets;
        rows.col_indices = m->col_indices + base;
        rows.values = (float *)m->values + base;
        status = sp_spgemm_markov(context, &rows, m, &own, &made, NULL, &info);
        if (status == SP_ERROR_HOST_MEMORY && length > 1) {
            length = (length + 1) / 2;
            continue;
        }
        TRY(status);
        entries += made.nnz;
        if (info.peak_bytes > scratch) scratch = info.peak_bytes;
        first = end;
        sp_csr_free(context, &made);
    }
    /* C's size is an estimate while it is made; the next iteration has this iterand beside one that is hardly larger */
    const int64_t entries_after = entries + entries / PARTS + (entries > m->nnz ? entries - m->nnz : 0);
    const int64_t devices = count_devices(context), of_one = entries_after * ENTRY_BYTES + scratch;
    const int64_t copies = m->nnz * ENTRY_BYTES + m->rows * (int64_t)sizeof *offsets + scratch;
    status = sp_alloc(context, devices == 1 ? of_one : 2 * of_one + devices * copies, 1, &room);
    sp_free(context, room);
    status = sp_fail(context, SP_ERROR_HOST_MEMORY, "out of memory: iteration %lld makes a matrix of %lld entries, "
                     "%lld bytes, beside one of %lld bytes", (long long)number, (long long)entries,
                     (long long)entries * ENTRY_BYTES, (long long)m->nnz * ENTRY_BYTES);
done:
    sp_free(context, offsets);
    return status;
}

/* Room for the figures of all columns, or elsewhere than at process 0 of those kept. */
static sp_status open_rows(process *p, int64_t all)
{
    const int64_t count = p->ranks && p->ranks->rank > 0 ? p->current->rows : all;
    return sp_alloc(p->context, count, sizeof *p->rows, (void **)&p->rows);
}

/* Rows of the iterand move where a process would have too many products. */
static sp_status even_out(process *p)
{
    bool moves;
    const sp_status status = mcl_ranks_even(p->context, p->ranks, p->cut, &p->owned, &moves);
    if (status != SP_OK || !moves) return status;
    sp_free(p->context, p->rows);
    p->rows = NULL;
    return open_rows(p, p->owned.cols);
}

/* *next = epilogue(current²). An iterand in the memory of a GPU leaves it for the host's if it takes the room for the
 * product. */
static sp_status expand(process *p, const sp_markov_epilogue *epilogue, sp_csr *next, sp_spgemm_info *product)
{
    sp_csr moved;
    if (p->ranks) return mcl_ranks_expand(p->context, p->ranks, p->cut, p->current, epilogue, next, p->rows, product);
    sp_status status = sp_spgemm_markov(p->context, p->current, p->current, epilogue, next, p->rows, product);
    if (status != SP_ERROR_DEVICE_MEMORY || p->owned.space != SP_DEVICE || epilogue->device_only) return status;
    status = sp_csr_copy(p->context, &p->owned, SP_HOST, &moved);
    if (status != SP_OK) return status;
    sp_csr_free(p->context, &p->owned);
    p->owned = moved;
    return sp_spgemm_markov(p->context, p->current, p->current, epilogue, next, p->rows, product);
}

/* One step: *next = epilogue(current²), with the figures of the step. */
static sp_status step(process *p, mcl_iteration *iteration, sp_csr *next)
{
    const mcl_options *options = p->options;
    const sp_markov_epilogue epilogue = {
        .cutoff = mcl_options_cutoff(options),
        .select = options->select,
        .recover = options->recover,
        .recover_mass = options->recover_percent / 100,
        .inflation = iteration->inflation,
        .dense_factor = options->dense_factor,
        .order = iteration->order,
        .fast = options->fast,
        .device_only = options->device_only,
    };
    const double start = wall_seconds();
    const clock_t cpu_start = clock();
    sp_spgemm_info *product = &iteration->product;
    sp_status status = p->ranks ? even_out(p) : SP_OK;
    if (status != SP_OK) return status;
    status = expand(p, &epilogue, next, product);
    if (status == SP_ERROR_HOST_MEMORY && !p->ranks && p->current->space == SP_HOST)
        status = find_size(p, &epilogue, iteration->number);
    if (status != SP_OK) return status;
    iteration->seconds = wall_seconds() - start;
    iteration->cpu_seconds = (double)(clock() - cpu_start) / CLOCKS_PER_SEC;
    iteration->nnz_before = p->current->nnz;
    iteration->nnz_expanded = product->product_nnz;
    iteration->nnz_after = next->nnz;
    iteration->products = product->products;
    iteration->dense_columns = product->dense_rows;
    if (!sp_context_is_cuda(p->context)) mcl_drop_vanished(next); /* the figures are those of before inflation */
    if (p->ranks) status = mcl_ranks_gather(p->context, p->ranks, p->cut, p->rows, iteration);
    if (status == SP_OK && (!p->ranks || p->ranks->rank == 0))
        status = summarise(p->context, p->rows, next->cols, iteration);
    if (status == SP_OK && p->ranks) {
        status = sp_ranks_broadcast(p->context, p->ranks, iteration, sizeof *iteration);
        iteration->order = p->order;
    }
    if (status != SP_OK) sp_csr_free(p->context, next);
    return status;
}

static sp_status check_arguments(sp_context *context, const char *call, const sp_csr *start,
                                 const mcl_options *options, const sp_csr *limit, const mcl_run *run)
{
    sp_status status = sp_require_csr(context, call, "start", start);
    if (status == SP_OK) status = sp_require(context, call, "options", options);
    if (status == SP_OK) status = sp_require_output(context, call, "limit", limit, "start", start);
    if (status == SP_OK) status = sp_require(context, call, "run", run);
    return status;
}

static mcl_iteration begin_iteration(const process *p, int64_t number)
{
    mcl_iteration iteration = {.number = number, .nnz_input = p->nnz_input, .next_inflation = p->inflation,
                               .order = p->order};
    memcpy(iteration.marks, p->done.marks, sizeof iteration.marks);
    return iteration;
}

/* One iteration, and what the monitor makes of it. */
static sp_status advance(process *p)
{
    mcl_run *done = &p->done;
    mcl_iteration iteration = begin_iteration(p, done->iterations + 1);
    const bool initial = iteration.number <= p->options->initial_length; /* which goes on, converged or not */
    sp_csr next;
    iteration.inflation = initial ? (double)(float)p->options->initial_inflation : p->inflation;
    sp_status status = step(p, &iteration, &next);
    if (status == SP_ERROR_INTERRUPTED && p->monitor) {
        iteration = begin_iteration(p, done->iterations);
        iteration.interrupted = true;
        p->monitor(p->user, &iteration, p->current);
    }
    if (status != SP_OK) return status;
    sp_csr_free(p->context, &p->owned);
    p->owned = next;
    p->current = &p->owned;
    done->iterations = iteration.number;
    done->converged = iteration.converged = !initial && iteration.chaos < CHAOS_LIMIT;
    if (iteration.number <= 3) done->marks[iteration.number - 1] = iteration.mark;
    memcpy(iteration.marks, done->marks, sizeof iteration.marks);
    iteration.bumped = !initial && iteration.number >= BUMP_AFTER;
    if (iteration.bumped) p->inflation *= BUMP;
    iteration.next_inflation = p->inflation;
    if (p->monitor && !p->monitor(p->user, &iteration, p->current)) done->stopped = true;
    if (p->ranks) status = sp_ranks_broadcast(p->context, p->ranks, &done->stopped, sizeof done->stopped);
    return status;
}

/* Iterates to the end, and makes the limit. */
static sp_status finish(process *p, sp_csr *limit, mcl_run *run)
{
    const int64_t last = p->options->initial_length + p->options->main_length;
    mcl_run *done = &p->done;
    sp_status status = SP_OK;
    while (status == SP_OK && done->iterations < last && !done->converged && !done->stopped) status = advance(p);
    if (status != SP_OK) return status;
    if (!p->order && p->owned.row_offsets && p->owned.space == SP_HOST) {
        *limit = p->owned;
        p->owned = (sp_csr){0};
    } else if (p->ranks) {
        status = mcl_restore_together(p->context, p->ranks, p->current, p->order, limit);
    } else {
        status = mcl_restore(p->context, p->current, p->order, limit);
    }
    done->synopsis = (5 * done->marks[0] + 2 * done->marks[1] + done->marks[2]) / 8;
    if (status == SP_OK) *run = *done;
    return status;
}

/* Keeps this process's rows of the iterand, which is the caller's start matrix or a renumbered copy. */
static sp_status take_part(process *p)
{
    sp_csr part;
    const sp_status status = mcl_ranks_cut(p->context, p->ranks, p->current, &p->cut, &part);
    if (status != SP_OK) return status;
    sp_csr_free(p->context, &p->owned);
    p->owned = part;
    p->current = &p->owned;
    return SP_OK;
}

/* The same where the caller has given each process its rows. */
static sp_status take_given(process *p, const int64_t *given)
{
    const int64_t count = p->ranks->size + 1;
    sp_status status;
    TRY(sp_alloc(p->context, count, sizeof *p->cut, (void **)&p->cut));
    memcpy(p->cut, given, (size_t)count * sizeof *p->cut);
    TRY(sp_csr_copy(p->context, p->current, SP_HOST, &p->owned));
    p->current = &p->owned;
done:
    return status;
}

static void close_process(process *p)
{
    sp_csr_free(p->context, &p->owned);
    FREE_ALL(p->context, p->rows, p->cut);
}

static sp_status number_by_communities(process *p, const sp_csr *start, int32_t **order)
{
    if (start->nnz < RENUMBER_NNZ) return SP_OK;
    sp_status status = sp_csr_community_order(p->context, start, order);
    if (status == SP_OK) status = mcl_renumber(p->context, start, *order, &p->owned);
    if (status == SP_OK) p->current = &p->owned;
    return status;
}

/* Numbers the nodes by communities, and keeps this process's rows. */
static sp_status place_rows(process *p, const sp_csr *start, const int64_t *given, int32_t **order)
{
    sp_status status = SP_OK;
    if (given) {
        TRY(mcl_ranks_share(p->context, p->ranks, start, given, &p->cut, order, &p->owned, &p->nnz_input));
        p->current = &p->owned;
    } else {
        status = number_by_communities(p, start, order);
        if (p->ranks) TRY(mcl_ranks_go_on(p->context, p->ranks, status));
        if (p->ranks) TRY(take_part(p));
    }
    p->order = *order;
done:
    return status;
}

static sp_status iterate(process *p, const sp_csr *start, const int64_t *given, sp_csr *limit, mcl_run *run)
{
    sp_context *context = p->context;
    int32_t *order = NULL;
    sp_status status = SP_OK;
    TRY(place_rows(p, start, given, &order));
    TRY(open_rows(p, start->rows));
    if (p->monitor) {
        const mcl_iteration before = {.nnz_after = p->nnz_input, .nnz_input = p->nnz_input, .order = order,
                                      .marks = {100, 100, 100}, .next_inflation = p->inflation};
        p->done.stopped = !p->monitor(p->user, &before, p->current);
    }
    if (p->ranks) TRY(sp_ranks_broadcast(context, p->ranks, &p->done.stopped, sizeof p->done.stopped));
    status = finish(p, limit, run);
done:
    sp_free(context, order);
    close_process(p);
    return status;
}

static process begin(sp_context *context, const sp_csr *start, const mcl_options *options, mcl_monitor monitor,
                     void *user)
{
    return (process){.context = context, .options = options, .monitor = monitor, .user = user, .current = start,
                     .nnz_input = start->nnz, .done = {.marks = {100, 100, 100}},
                     /* mcl reads it as f32, which decides the last bits */
                     .inflation = (double)(float)options->inflation};
}

sp_status mcl_iterate(sp_context *context, const sp_csr *start, const mcl_options *options, mcl_monitor monitor,
                      void *user, sp_csr *limit, mcl_run *run)
{
    const sp_status status = check_arguments(context, __func__, start, options, limit, run);
    if (status != SP_OK) return status;
    process p = begin(context, start, options, monitor, user);
    return iterate(&p, start, NULL, limit, run);
}

sp_status mcl_iterate_together(sp_context *context, const sp_ranks *ranks, const sp_csr *start, const int64_t *given,
                               const mcl_options *options, mcl_monitor monitor, void *user, sp_csr *limit,
                               mcl_run *run)
{
    sp_status status = sp_require(context, __func__, "ranks", ranks);
    if (status == SP_OK) status = check_arguments(context, __func__, start, options, limit, run);
    if (status != SP_OK) return status;
    process p = begin(context, start, options, monitor, user);
    p.ranks = ranks;
    return iterate(&p, start, given, limit, run);
}

/* Goes on alone if `ranks` is NULL. */
static sp_status resume(sp_context *context, const sp_ranks *ranks, const mcl_state *state, const mcl_options *options,
                        mcl_monitor monitor, void *user, sp_csr *limit, mcl_run *run)
{
    process p = begin(context, state->iterand, options, monitor, user);
    sp_status status = SP_OK;
    p.ranks = ranks;
    p.order = state->order;
    p.nnz_input = state->nnz_input;
    p.inflation = state->inflation;
    p.done.iterations = state->iterations;
    memcpy(p.done.marks, state->marks, sizeof p.done.marks);
    if (ranks) TRY(state->given ? take_given(&p, state->given) : take_part(&p));
    TRY(open_rows(&p, state->iterand->cols));
    status = finish(&p, limit, run);
done:
    close_process(&p);
    return status;
}

sp_status mcl_continue(sp_context *context, const mcl_state *state, const mcl_options *options, mcl_monitor monitor,
                       void *user, sp_csr *limit, mcl_run *run)
{
    sp_status status = sp_require(context, __func__, "state", state);
    if (status == SP_OK) status = check_arguments(context, __func__, state->iterand, options, limit, run);
    return status == SP_OK ? resume(context, NULL, state, options, monitor, user, limit, run) : status;
}

sp_status mcl_continue_together(sp_context *context, const sp_ranks *ranks, const mcl_state *state,
                                const mcl_options *options, mcl_monitor monitor, void *user, sp_csr *limit,
                                mcl_run *run)
{
    sp_status status = sp_require(context, __func__, "ranks", ranks);
    if (status == SP_OK) status = sp_require(context, __func__, "state", state);
    if (status == SP_OK) status = check_arguments(context, __func__, state->iterand, options, limit, run);
    return status == SP_OK ? resume(context, ranks, state, options, monitor, user, limit, run) : status;
}
