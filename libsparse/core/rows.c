/* Cuts row-wise products into chunks and joins the results to C; see rows.h. */
#include <omp.h>
#include <string.h>
#include <time.h>

#include "core/rows.h"

/* Each thread gets at least CHUNKS chunks, unless they would be so short that the few hundred nanoseconds for taking a
 * chunk and handing it in matter. */
enum { CHUNKS = 128, CHUNK_LEAST = 1 << 12, CHUNK_MOST = 1 << 18, CHUNK_ROWS = 4096 };
/* The size of C is estimated once rows with a bound of SAMPLE_ENTRIES entries in all, or 1 / SAMPLE_SHARE of the total
 * bound, are made; the other rows are assumed to be like them. Until then the threads hold their rows. */
enum { SAMPLE_ENTRIES = 1 << 20, SAMPLE_SHARE = 32 };
/* A thread waits when it holds more than its part of 1 / AHEAD_SHARE of C. Then a row before its own takes very long,
 * or the thread that makes it has no processor. AHEAD_LEAST entries are too few to wait for; AHEAD_MOST is what the
 * caches hold. */
enum { AHEAD_SHARE = 32, AHEAD_LEAST = 1 << 13, AHEAD_MOST = 1 << 19 };

typedef struct chunk {
    int64_t bound; /* Σ row_bound of its rows */
    int64_t count; /* entries; -1: not made yet */
    int64_t place; /* place of the first entry in C, once all chunks before this one are made */
    int64_t next;  /* the next chunk that the same thread made, or the number of chunks */
} chunk;

/* Chunks that a thread has made and not yet moved to C: `first` to `last`, in the order of its buffer. */
typedef struct lane {
    row_buffer buffer;
    int64_t first, last; /* first: the number of chunks if there are none */
    char apart[APART];
} lane;

/* The state of one product. */
typedef struct run {
    sp_context *context;
    const row_method *method;
    int64_t chunk_count, *first; /* the first row of each chunk, and the end */
    chunk *chunks;
    lane *lanes; /* one for each thread */
    size_t value_size;
    int64_t bound;   /* Σ row_bound */
    int64_t sample;  /* the part of the bound after which C is estimated */
    int64_t largest; /* the largest row_bound */
    sp_csr made;     /* nnz: entries of the chunks that have their place. row_offsets[i + 1] holds first the products of
                        row i, then its length, then, once its chunk is moved, its end */
    int64_t capacity; /* of made's arrays */
    int64_t taken;    /* chunks that threads have taken */
    omp_lock_t lock;  /* guards made.nnz, capacity, and all fields below */
    int64_t finished, placed;         /* chunks made; chunks that have their place (the first `placed`) */
    int64_t bound_done, entries_done; /* sums over the chunks made */
    int copying;                      /* threads that are moving chunks to C; its arrays must stay where they are */
    sp_status failure;
} run;

/* Grows the arrays to `capacity` entries and keeps the first `used`. */
static sp_status grow_entries(sp_context *context, int64_t used, int64_t capacity, size_t value_size,
                              int32_t **columns, void **values)
{
    sp_status status = sp_grow(context, used, capacity, sizeof(int32_t), (void **)columns);
    if (status == SP_OK && value_size) status = sp_grow(context, used, capacity, value_size, values);
    return status;
}

/* Moves the array to a new block of `count` elements. */
static sp_status move_array(sp_context *context, int64_t used, int64_t count, size_t size, void **array)
{
    void *moved;
    const sp_status status = sp_alloc(context, count, size, &moved);
    if (status != SP_OK) return status;
    if (used) memcpy(moved, *array, (size_t)used * size);
    sp_free(context, *array);
    *array = moved;
    return SP_OK;
}

/* The same with new blocks. Only a block allocated at once gets huge pages: first touches of small pages cost 8 ns an
 * entry instead of 2. But blocks of huge pages grow slowly, so C moves once, to a block of its estimated size. */
static sp_status move_entries(sp_context *context, int64_t used, int64_t capacity, size_t value_size,
                              int32_t **columns, void **values)
{
    sp_status status = move_array(context, used, capacity, sizeof(int32_t), (void **)columns);
    if (status == SP_OK && value_size) status = move_array(context, used, capacity, value_size, values);
    return status;
}

sp_status sp_row_buffer_reserve(row_buffer *buffer, int64_t more)
{
    sp_status status;
    if (buffer->count + more <= buffer->capacity) return SP_OK;
    const int64_t needed = buffer->count + more;
    int64_t capacity = buffer->expected ? buffer->expected : buffer->capacity + buffer->capacity / 2;
    if (capacity < needed) capacity = needed + needed / 8;
#pragma omp critical(sp_row_buffer)
    status = (buffer->expected && !buffer->moved ? move_entries : grow_entries)(
        buffer->context, buffer->count, capacity, buffer->value_size, &buffer->columns, &buffer->values);
    if (status != SP_OK) return status;
    buffer->capacity = capacity;
    buffer->moved = buffer->expected > 0;
    return SP_OK;
}

/* What all rows have together; `about` is the sum as a double, to detect overflow. */
typedef struct product_count {
    int64_t sum, most;
    double about;
    bool overflow;
} product_count;

/* The products of one row. Up to `safe` entries cannot overflow. */
static void count_row(const sp_csr *a, const sp_csr *b, int64_t row, int64_t safe, int64_t *products,
                      product_count *all)
{
    const int64_t *lengths = b->row_offsets, start = a->row_offsets[row], end = a->row_offsets[row + 1];
    const int32_t *columns = a->col_indices;
    int64_t sum = 0;
    if (end - start <= safe) {
        for (int64_t k = start; k < end; k++) sum += lengths[columns[k] + 1] - lengths[columns[k]];
    } else {
        for (int64_t k = start; k < end; k++)
            all->overflow |= __builtin_add_overflow(sum, lengths[columns[k] + 1] - lengths[columns[k]], &sum);
    }
    products[row] = sum;
    all->sum = (int64_t)((uint64_t)all->sum + (uint64_t)sum);
    all->about += (double)sum;
    if (sum > all->most) all->most = sum;
}

/* COUNTED rows of at most COUNTED_ENTRIES entries together are counted at once. */
enum { COUNTED = 64, COUNTED_ENTRIES = 1024 };

/* The products of rows first to end - 1, by running sums over all their entries. Whether another row begins is not
 * asked, which could not be predicted: roads, molecules and hypersparse matrices take half the time. */
static void count_rows(const sp_csr *a, const sp_csr *b, int64_t first, int64_t end, int64_t *products,
                       product_count *all)
{
    const int64_t *starts = a->row_offsets, *lengths = b->row_offsets, from = starts[first];
    const int32_t *columns = a->col_indices + from;
    const int64_t count = starts[end] - from;
    int64_t sums[COUNTED_ENTRIES + 1];
    if (count == 0) {
        memset(products + first, 0, (size_t)(end - first) * sizeof *products);
        return;
    }
    sums[0] = 0;
    for (int64_t k = 0; k < count; k++) sums[k + 1] = sums[k] + (lengths[columns[k] + 1] - lengths[columns[k]]);
    for (int64_t row = first; row < end; row++) {
        products[row] = sums[starts[row + 1] - from] - sums[starts[row] - from];
        if (products[row] > all->most) all->most = products[row];
    }
    all->sum = (int64_t)((uint64_t)all->sum + (uint64_t)sums[count]);
    all->about += (double)sums[count];
}

sp_status sp_row_products(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t **products, int64_t *total,
                          int64_t *largest)
{
    sp_status status = sp_alloc(context, a->rows + 1, sizeof **products, (void **)products);
    if (status != SP_OK) return status;
    int64_t sum = 0, most = 0, *out = *products + 1;
    double about = 0;
    bool overflow = false;
    sp_watch watch = {context, false};
    const int64_t safe = INT64_MAX / (b->nnz + 1), together = safe < COUNTED_ENTRIES ? 0 : COUNTED_ENTRIES;
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, a->nnz + a->rows / 4)) \
    reduction(+ : sum, about) reduction(max : most) reduction(|| : overflow)
    for (int64_t first = 0; first < a->rows; first += COUNTED) {
        const int64_t end = a->rows - first < COUNTED ? a->rows : first + COUNTED;
        product_count all = {0};
        if (sp_stops(&watch)) continue;
        if (a->row_offsets[end] - a->row_offsets[first] <= together) count_rows(a, b, first, end, out, &all);
        else for (int64_t row = first; row < end; row++) count_row(a, b, row, safe, out, &all);
        sum = (int64_t)((uint64_t)sum + (uint64_t)all.sum);
        about += all.about;
        overflow = overflow || all.overflow;
        if (all.most > most) most = all.most;
    }
    if (watch.stopped) return sp_watched(&watch);
    if (overflow || about > 9e18)
        return sp_fail(context, SP_ERROR_OVERFLOW, "the product has more than 9e18 multiplications");
    *total = sum;
    *largest = most;
    return SP_OK;
}

/* The largest possible number of entries of a row with `products` products. */
static int64_t row_bound(const run *r, int64_t row, int64_t products)
{
    const int64_t *room = r->method->room;
    int64_t most = r->method->row_entries ? r->method->row_entries : r->made.cols;
    if (room && room[row + 1] - room[row] < most) most = room[row + 1] - room[row];
    return products < most ? products : most;
}

/* Whether RUN rows from `row` on have at most `room` products together, and none more than C has columns; their sum and
 * the largest. Without a question a row they take half the time. */
enum { RUN = 64 };
static bool is_light_run(const run *r, int64_t row, int64_t room, int64_t *sum, int64_t *largest)
{
    const int64_t *products = r->made.row_offsets + 1 + row;
    *sum = *largest = 0;
    for (int i = 0; i < RUN; i++) {
        *sum += products[i];
        if (products[i] > *largest) *largest = products[i];
    }
    return *sum <= room && *largest <= r->made.cols;
}

/* Cuts the rows into chunks of about equal products, `total` in all, or of equally many rows. */
static sp_status cut_rows(run *r, int64_t total)
{
    const int64_t rows = r->made.rows, even = total / (CHUNKS * r->method->threads);
    const int64_t *products = r->made.row_offsets + 1;
    const int64_t most = even < CHUNK_LEAST ? CHUNK_LEAST : even > CHUNK_MOST ? CHUNK_MOST : even;
    const int64_t fixed = r->method->chunk_rows, longest = fixed ? fixed : CHUNK_ROWS;
    const bool plain = !fixed && !r->method->room && !r->method->row_entries; /* rows have their products for a bound */
    /* all but the last have this many rows or products */
    const int64_t room = rows / longest + (fixed ? 0 : total / most) + 1;
    sp_status status;
    TRY(sp_alloc(r->context, room + 1, sizeof *r->first, (void **)&r->first));
    TRY(sp_alloc(r->context, room, sizeof *r->chunks, (void **)&r->chunks));
    r->first[0] = 0;
    for (int64_t row = 0; row < rows; r->first[r->chunk_count] = row) {
        const int64_t start = row;
        int64_t sum = 0, bound = 0;
        const int64_t end = rows - start < longest ? rows : start + longest;
        while (row < end && (fixed || sum < most)) {
            const int64_t next = end - row < RUN ? end : row + RUN;
            int64_t together, one;
            if (plain && next == row + RUN && is_light_run(r, row, most - sum, &together, &one)) {
                sum += together;
                bound += together;
                if (one > r->largest) r->largest = one;
                row = next;
            }
            for (; row < next && (fixed || sum < most); row++) {
                const int64_t of_row = row_bound(r, row, products[row]);
                sum += products[row];
                bound += of_row;
                if (of_row > r->largest) r->largest = of_row;
            }
        }
        r->bound += bound;
        r->chunks[r->chunk_count++] = (chunk){.bound = bound, .count = -1};
    }
    r->sample = r->bound / SAMPLE_SHARE < SAMPLE_ENTRIES ? r->bound / SAMPLE_SHARE : SAMPLE_ENTRIES;
done:
    return status;
}

/* Estimates the entries of C, assuming that the remaining rows are like those made so far. */
static int64_t expected_entries(const run *r)
{
    const double estimate = (double)r->entries_done * 1.05 * (double)r->bound / (double)(r->bound_done + 1);
    const int64_t most = r->entries_done + r->bound - r->bound_done;
    if (r->method->expected > r->entries_done) return r->method->expected < most ? r->method->expected : most;
    return estimate < (double)most ? (int64_t)estimate : most;
}

/* Makes the rows of one chunk. Their lengths go into row_offsets[row + 1]. */
static sp_status make_chunk(run *r, int64_t i, void *worker, row_buffer *out)
{
    const row_method *method = r->method;
    int64_t *lengths = r->made.row_offsets + 1; /* and until then the products */
    sp_status status = sp_interrupted(r->context) ? SP_ERROR_INTERRUPTED : SP_OK;
    if (method->rows) {
        if (status == SP_OK) status = method->rows(worker, r->first[i], r->first[i + 1], lengths, out);
    } else {
        for (int64_t row = r->first[i]; row < r->first[i + 1] && status == SP_OK; row++) {
            const int64_t before = out->count;
            status = method->row(worker, row, lengths[row], out);
            lengths[row] = out->count - before;
        }
    }
    return status;
}

/* ---- several threads ----------------------------------------------------------------------------------- */

/* Makes room for `needed` entries, or for the estimate if that is more. The caller holds the lock. */
static sp_status grow_result(run *r, int64_t needed)
{
    sp_status status;
    const int64_t expected = expected_entries(r), capacity = expected > needed ? expected : needed;
    for (int copying = 1; copying;) { /* for microseconds, once or twice in a product */
#pragma omp atomic read acquire
        copying = r->copying;
    }
#pragma omp critical(sp_row_buffer)
    status = (r->capacity ? grow_entries : move_entries)(r->context, r->made.nnz, capacity, r->value_size,
                                                         &r->made.col_indices, &r->made.values);
    if (status == SP_OK) r->capacity = capacity;
    return status;
}

/* Assigns places to the chunks that follow without a gap. The caller holds the lock. */
static sp_status place_chunks(run *r)
{
    if (r->capacity == 0 && r->bound_done < r->sample && r->finished < r->chunk_count) return SP_OK;
    for (; r->placed < r->chunk_count && r->chunks[r->placed].count >= 0; r->placed++) {
        chunk *next = &r->chunks[r->placed];
        const int64_t end = r->made.nnz + next->count;
        if (end > r->capacity) {
            const sp_status status = grow_result(r, end);
            if (status != SP_OK) return status;
        }
        next->place = r->made.nnz;
        r->made.nnz = end;
    }
    return SP_OK;
}

/* Records that a thread made chunk i and appended `count` entries for it. Takes the lock. */
static void hand_in(run *r, lane *own, int64_t i, int64_t count, sp_status status)
{
    omp_set_lock(&r->lock);
    r->chunks[i].count = count;
    r->chunks[i].next = r->chunk_count;
    if (own->first == r->chunk_count) own->first = i;
    else r->chunks[own->last].next = i;
    own->last = i;
    r->finished++;
    r->entries_done += count;
    r->bound_done += r->chunks[i].bound;
    if (status == SP_OK) status = place_chunks(r);
    if (r->failure == SP_OK) r->failure = status;
}

/* Moves the thread's chunks below `placed` to C. The remaining ones go to the front of its buffer. */
static void move_chunks(run *r, lane *own, int64_t placed)
{
    sp_csr *c = &r->made;
    row_buffer *buffer = &own->buffer;
    const size_t size = r->value_size;
    char *values = buffer->values;
    int64_t from = 0;
    while (own->first < placed) {
        const chunk *moving = &r->chunks[own->first];
        if (moving->count > 0) {
            memcpy(c->col_indices + moving->place, buffer->columns + from, (size_t)moving->count * sizeof(int32_t));
            if (size)
                memcpy((char *)c->values + (size_t)moving->place * size, values + (size_t)from * size,
                       (size_t)moving->count * size);
        }
        int64_t end = moving->place;
        for (int64_t row = r->first[own->first]; row < r->first[own->first + 1]; row++)
            c->row_offsets[row + 1] = end += c->row_offsets[row + 1];
        from += moving->count;
        own->first = moving->next;
    }
    if (from == 0) return;
    buffer->count -= from;
    memmove(buffer->columns, buffer->columns + from, (size_t)buffer->count * sizeof(int32_t));
    if (size) memmove(values, values + (size_t)from * size, (size_t)buffer->count * size);
}

/* Moves the chunks that have a place. The caller holds the lock, which is released. Returns whether the thread should
 * wait before it goes on. */
static bool deliver(run *r, lane *own)
{
    const int64_t placed = r->placed, share = r->capacity / (AHEAD_SHARE * r->method->threads);
    const int64_t ahead = share < AHEAD_LEAST ? AHEAD_LEAST : share > AHEAD_MOST ? AHEAD_MOST : share;
    const bool may_wait = r->bound_done >= r->sample && r->failure == SP_OK;
#pragma omp atomic update
    r->copying++;
    omp_unset_lock(&r->lock);
    move_chunks(r, own, placed);
#pragma omp atomic update release
    r->copying--;
    return may_wait && own->buffer.count > ahead;
}

/* Takes chunks until none are left. Chunks are taken in order, so the one that others wait for is always under way. */
static void make_share(run *r, int thread)
{
    const struct timespec nap = {.tv_nsec = 50000};
    void *worker = (char *)r->method->workers + (size_t)thread * r->method->worker_size;
    lane *own = &r->lanes[thread];
    sp_status status = SP_OK;
    while (status == SP_OK) {
        int64_t i;
#pragma omp atomic capture
        i = r->taken++;
        if (i >= r->chunk_count) break;
        const int64_t before = own->buffer.count;
        status = make_chunk(r, i, worker, &own->buffer);
        hand_in(r, own, i, own->buffer.count - before, status);
        status = r->failure;
        while (deliver(r, own)) {
            nanosleep(&nap, NULL);
            omp_set_lock(&r->lock);
        }
    }
}

static sp_status make_joined(run *r)
{
    const int threads = r->method->threads;
    omp_init_lock(&r->lock);
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static, 1)
        for (int t = 0; t < threads; t++) make_share(r, t);
#pragma omp for schedule(static, 1)
        for (int t = 0; t < threads; t++)
            if (r->failure == SP_OK) move_chunks(r, &r->lanes[t], r->placed);
    }
    omp_destroy_lock(&r->lock);
    return r->failure;
}

/* ---- one thread ---------------------------------------------------------------------------------------- */

/* One thread: its buffer becomes C. Up to four rows at a time reserve their bound, which is more than they fill. */
static sp_status make_alone(run *r)
{
    sp_status status = SP_OK;
    int64_t *offsets = r->made.row_offsets;
    row_buffer *buffer = &r->lanes[0].buffer;
    if (r->method->expected) buffer->expected = expected_entries(r);
    for (int64_t i = 0; i < r->chunk_count; i++) {
        TRY(make_chunk(r, i, r->method->workers, buffer));
        for (int64_t row = r->first[i]; row < r->first[i + 1]; row++) offsets[row + 1] += offsets[row];
        r->bound_done += r->chunks[i].bound;
        r->entries_done = buffer->count;
        if (r->bound_done >= r->sample) buffer->expected = expected_entries(r) + 4 * r->largest + 64;
    }
    if (buffer->capacity == 0) return SP_OK;
    FREE_ALL(r->context, r->made.col_indices, r->made.values);
    r->made.col_indices = buffer->columns;
    r->made.values = buffer->values;
    r->made.nnz = buffer->count;
    r->capacity = buffer->capacity;
    *buffer = (row_buffer){0};
done:
    return status;
}

static int64_t run_bytes(const run *r)
{
    int64_t bytes = r->chunk_count * (int64_t)(sizeof *r->chunks + sizeof *r->first);
    for (int t = 0; r->lanes && t < r->method->threads; t++)
        bytes += r->lanes[t].buffer.capacity * (int64_t)(sizeof(int32_t) + r->value_size);
    return bytes;
}

sp_status sp_row_run(sp_context *context, int64_t rows, int64_t cols, int64_t **products, int64_t total,
                     const row_method *method, sp_value_type type, sp_csr *c)
{
    run r = {.context = context, .method = method, .value_size = method->pattern ? 0 : sp_value_size(type),
             .made = {.rows = rows, .cols = cols, .row_offsets = *products, .value_type = type, .space = SP_HOST}};
    const bool looks = total > 0 || !method->entries_only;
    sp_status status;
    *products = NULL;
    r.made.row_offsets[0] = 0;
    if (looks || method->chunks) TRY(cut_rows(&r, total)); /* else the offsets are those of C already: 0 */
    TRY(sp_calloc(context, method->threads, sizeof *r.lanes, (void **)&r.lanes));
    for (int t = 0; t < method->threads; t++)
        r.lanes[t] = (lane){.buffer = {.context = context, .value_size = r.value_size}, .first = r.chunk_count};
    TRY(sp_alloc(context, 0, sizeof *r.made.col_indices, (void **)&r.made.col_indices));
    if (!method->pattern) TRY(sp_alloc(context, 0, r.value_size, &r.made.values));
    if (looks) TRY(method->threads == 1 ? make_alone(&r) : make_joined(&r));
    /* Without realloc, giving back a few percent would take the memory of both arrays twice. */
    if (r.capacity > r.made.nnz && (context->allocator.resize || r.capacity > r.made.nnz + r.made.nnz / 8))
        TRY(grow_entries(context, r.made.nnz, r.made.nnz, r.value_size, &r.made.col_indices, &r.made.values));
done:
    if (method->bytes) *method->bytes += run_bytes(&r);
    for (int t = 0; r.lanes && t < method->threads; t++) {
        FREE_ALL(context, r.lanes[t].buffer.columns, r.lanes[t].buffer.values);
    }
    FREE_ALL(context, r.lanes, r.chunks);
    if (method->chunks && status == SP_OK) *method->chunks = (row_chunks){r.first, r.chunk_count};
    else sp_free(context, r.first);
    if (status == SP_OK) *c = r.made;
    else sp_csr_free(context, &r.made);
    if (status == SP_ERROR_INTERRUPTED) sp_fail(context, status, "interrupted");
    return status;
}
