/* METIS: whether each edge stands in the lines of both its nodes, once and with one weight, and the first line in
 * which it does not.
 *
 * Hashing checks that both lines agree: the sum of the hashes of all (lower node, higher node, weight) is the same over
 * ascending and over descending arcs. The sums miss a neighbour that both lines name twice. Ascending neighbours are
 * all different; the others are compared line by line.
 *
 * While reading, ascending arcs are never fewer than descending ones, because the line of an edge's lower node comes
 * first. Reading stops once they are: a line with one arc back to a node of one digit has two bytes and takes 12 in
 * memory. Only its ascending arc, whose node number is long, makes up for that.
 *
 * Once something is wrong, the first wrong line is looked for. The edge whose lower node has the least number is found
 * by summing up again, in BUCKETS ranges of the lower node, then in as many ranges within the first range whose sum
 * is not 0, and likewise for the higher node: four passes over the arcs, without memory for a second copy of them.
 */
#include <string.h>

#include "base/bits.h"
#include "base/random.h"
#include "bytes/memory.h"
#include "graphs/metis.h"

enum { BUCKETS = 1 << 15, FEW = 32 /* neighbours, compared each with each */, FIRST_SLOTS = 1 << 7 };

uint64_t io_metis_hash(int32_t low, int32_t high, double weight)
{
    uint64_t bits = bits_of_double(weight);
    bits ^= bits >> 32; /* small whole numbers have nothing in the lower half */
    uint64_t hash = ((uint64_t)(uint32_t)low << 32 | (uint32_t)high) + RANDOM_STEP * (bits + 1);
    return mix64(hash);
}

static int64_t bits_of(int32_t node) { return 32 - __builtin_clz((unsigned)node + 1); }

void io_metis_add_up(io_slice *slice)
{
    const io_arcs *arcs = &slice->arcs;
    const double *weights = arcs->weights;
    io_edge_sums sums = {.disorder = slice->again && arcs->count > 0 && arcs->tails[0] == 0};
    for (int64_t i = 0; i < arcs->count; i++) {
        const int32_t tail = arcs->tails[i] + (int32_t)slice->first_node, head = arcs->heads[i];
        const bool ascends = tail < head;
        const uint64_t hash = io_metis_hash(ascends ? tail : head, ascends ? head : tail, weights[i]);
        sums.loops += tail == head;
        sums.hash += ascends ? hash : -hash;
        sums.ahead += ascends ? bits_of(head) : -bits_of(tail);
        sums.disorder += i > 0 && arcs->tails[i - 1] == arcs->tails[i] && arcs->heads[i - 1] >= head;
    }
    slice->edges = sums;
}

/* ---- neighbours that are named twice -------------------------------------------------------------------- */

/* The neighbours of a node: `count` arcs from arc `begin` on, runs up to run `next`. */
typedef struct row {
    int64_t begin, count, next;
    int32_t node;
} row;

static row row_at(const io_packed *arcs, int64_t run, int64_t arc)
{
    row r = {.begin = arc, .next = run, .node = arcs->runs[run].tail};
    while (r.next < arcs->run_count && arcs->runs[r.next].tail == r.node) r.count += arcs->runs[r.next++].count;
    return r;
}

/* A hash table of numbers that are all different. */
typedef struct seen {
    sp_context *context;
    int32_t *slots; /* -1: free */
    int64_t slot_count, capacity, used;
} seen;

/* False if the number was in it before. */
static bool enter(seen *s, int32_t number)
{
    const uint64_t mask = (uint64_t)s->slot_count - 1;
    uint64_t at = ((uint64_t)(uint32_t)number * RANDOM_STEP >> 32) & mask;
    for (; s->slots[at] >= 0; at = (at + 1) & mask)
        if (s->slots[at] == number) return false;
    s->slots[at] = number;
    s->used++;
    return true;
}

/* Empties the table and gives it `count` slots. It grows with the number of different neighbours, not with the length
 * of the line. */
static sp_status clear(seen *s, int64_t count)
{
    sp_status status = SP_OK;
    if (count > s->capacity) status = io_grow(s->context, 0, count, sizeof *s->slots, (void **)&s->slots);
    if (status != SP_OK) return status;
    if (count > s->capacity) s->capacity = count;
    s->slot_count = count;
    s->used = 0;
    memset(s->slots, 0xff, (size_t)count * sizeof *s->slots);
    return SP_OK;
}

static bool ascend(const io_packed *arcs, const row *r)
{
    for (int64_t i = 1; i < r->count; i++)
        if (io_packed_head(arcs, r->begin + i - 1) >= io_packed_head(arcs, r->begin + i)) return false;
    return true;
}

/* Makes a neighbour its own node, which the sums below leave out. */
static void blot_out(io_packed *arcs, int64_t arc, int32_t node)
{
    arcs->heads[arc] = arcs->heads[arc] < 0 ? ~node : node;
}

/* The first neighbour that one before it equals, -1 if there is none; loops are passed over. With `blot` all such
 * neighbours are blotted out. */
static int32_t find_among_few(io_packed *arcs, const row *r, bool blot)
{
    int32_t heads[FEW], first = -1;
    for (int64_t i = 0; i < r->count; i++) {
        heads[i] = io_packed_head(arcs, r->begin + i);
        int same = 0;
        for (int64_t k = 0; k < i; k++) same |= heads[k] == heads[i];
        if (!same || heads[i] == r->node) continue;
        if (first < 0) first = heads[i];
        if (!blot) break;
        blot_out(arcs, r->begin + i, r->node);
    }
    return first;
}

/* The same by a table. */
static sp_status find_among_many(io_packed *arcs, const row *r, seen *s, bool blot, int32_t *first)
{
    sp_status status = clear(s, FIRST_SLOTS);
    for (int64_t i = 0; status == SP_OK && i < r->count; i++) {
        if (s->used >= s->slot_count / 4 * 3) {
            status = clear(s, 2 * s->slot_count);
            for (int64_t k = 0; status == SP_OK && k < i; k++) enter(s, io_packed_head(arcs, r->begin + k));
            if (status != SP_OK) break;
        }
        const int32_t head = io_packed_head(arcs, r->begin + i);
        if (enter(s, head) || head == r->node) continue;
        if (*first < 0) *first = head;
        if (!blot) break;
        blot_out(arcs, r->begin + i, r->node);
    }
    return status;
}

static sp_status find_repeated(io_packed *arcs, const row *r, seen *s, bool blot, int32_t *first)
{
    *first = -1;
    if (ascend(arcs, r)) return SP_OK;
    if (r->count > FEW) return find_among_many(arcs, r, s, blot, first);
    *first = find_among_few(arcs, r, blot);
    return SP_OK;
}

/* Whether a node names a neighbour twice. */
static sp_status find_repeats(sp_context *context, io_packed *arcs, bool *repeated)
{
    enum { MOST_PARTS = 64 };
    const int threads = sp_context_threads(context);
    int64_t runs[MOST_PARTS + 1], begins[MOST_PARTS], arc = 0;
    int parts = 0, count = 0;
    sp_status failed = SP_OK;
    for (int64_t r = 0; r < arcs->run_count; arc += arcs->runs[r++].count) {
        if (arc < arcs->count / MOST_PARTS * parts || parts == MOST_PARTS) continue;
        if (r > 0 && arcs->runs[r - 1].tail == arcs->runs[r].tail) continue;
        runs[parts] = r;
        begins[parts++] = arc;
    }
    runs[parts] = arcs->run_count;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) reduction(+ : count) if (threads > 1)
    for (int p = 0; p < parts; p++) {
        seen s = {.context = context};
        sp_status status = SP_OK;
        int32_t found = -1;
        row r = {.next = runs[p], .begin = begins[p]};
        while (status == SP_OK && found < 0 && r.next < runs[p + 1]) {
            r = row_at(arcs, r.next, r.begin + r.count);
            status = find_repeated(arcs, &r, &s, false, &found);
        }
        count += found >= 0;
#pragma omp critical(io_context)
        {
            sp_free(context, s.slots);
            if (status != SP_OK) failed = status;
        }
    }
    *repeated = count > 0;
    return failed;
}

/* ---- the first wrong line ------------------------------------------------------------------------------- */

/* What is wrong in the line of a node. */
typedef struct fault {
    int64_t node; /* INT64_MAX: nothing */
    int64_t other;
    enum { LOOP, TWICE, ONE_SIDED } kind;
} fault;

static void note(fault *first, int64_t node, int64_t other, int kind)
{
    if (node >= first->node) return;
    *first = (fault){node, other, kind};
}

/* Loops and neighbours named twice. */
static sp_status find_in_lines(sp_context *context, io_packed *arcs, fault *first)
{
    seen s = {.context = context};
    sp_status status = SP_OK;
    for (row r = {0}; status == SP_OK && r.next < arcs->run_count;) {
        int32_t named;
        r = row_at(arcs, r.next, r.begin + r.count);
        for (int64_t e = r.begin; e < r.begin + r.count; e++)
            if (io_packed_head(arcs, e) == r.node) note(first, r.node, r.node, LOOP);
        status = find_repeated(arcs, &r, &s, true, &named);
        if (status == SP_OK && named >= 0) note(first, r.node, named, TWICE);
    }
    sp_free(context, s.slots);
    return status;
}

/* Called with the tail, head and weight of each arc between two of the nodes 0..complete-1, except loops. */
typedef void (*visitor)(void *user, int32_t tail, int32_t head, double weight);

static void visit(const io_packed *arcs, int64_t complete, visitor call, void *user)
{
    int64_t arc = 0, own = 0;
    for (int64_t r = 0; r < arcs->run_count; r++) {
        const int32_t tail = arcs->runs[r].tail;
        for (const int64_t end = arc + arcs->runs[r].count; arc < end; arc++) {
            const int32_t head = io_packed_head(arcs, arc);
            const double weight = arcs->heads[arc] < 0 ? load_value(arcs->weights, arcs->values, own++)
                                                       : arcs->weight;
            if (tail != head && tail < complete && head < complete) call(user, tail, head, weight);
        }
    }
}

/* Sums of edges by their lower node, or, of those whose lower node is `low`, by their higher one. */
typedef struct buckets {
    uint64_t *sums;
    int64_t begin, width, step; /* nodes begin .. begin + width - 1, `step` a bucket */
    int64_t low;                /* -1: any */
} buckets;

static void sum_up(void *user, int32_t tail, int32_t head, double weight)
{
    const buckets *b = user;
    const int32_t low = tail < head ? tail : head, high = tail < head ? head : tail;
    const int64_t place = (b->low < 0 ? low : high) - b->begin;
    if (place < 0 || place >= b->width || (b->low >= 0 && low != b->low)) return;
    const uint64_t hash = io_metis_hash(low, high, weight);
    b->sums[place / b->step] += tail < head ? hash : -hash;
}

/* The first node whose edges have a sum other than 0, -1 if there is none. */
static int64_t find_node(const io_packed *arcs, int64_t complete, int64_t low, uint64_t *sums)
{
    buckets b = {.sums = sums, .width = complete, .low = low};
    do {
        b.step = (b.width + BUCKETS - 1) / BUCKETS;
        memset(sums, 0, BUCKETS * sizeof *sums);
        visit(arcs, complete, sum_up, &b);
        int64_t first = 0;
        while (first < BUCKETS && sums[first] == 0) first++;
        if (first == BUCKETS) return -1;
        const int64_t left = b.width - first * b.step;
        b.begin += first * b.step;
        b.width = left < b.step ? left : b.step;
    } while (b.step > 1);
    return b.begin;
}

static sp_status find_one_sided(sp_context *context, const io_packed *arcs, int64_t complete, fault *first)
{
    uint64_t *sums;
    if (complete == 0) return SP_OK;
    sp_status status = sp_alloc(context, BUCKETS, sizeof *sums, (void **)&sums);
    if (status != SP_OK) return status;
    const int64_t low = find_node(arcs, complete, -1, sums);
    const int64_t high = low >= 0 ? find_node(arcs, complete, low, sums) : -1;
    if (high >= 0) note(first, low, high, ONE_SIDED);
    sp_free(context, sums);
    return SP_OK;
}

/* ---- what to say ---------------------------------------------------------------------------------------- */

/* Both weights of an edge; 0: it is not there. */
typedef struct both {
    int32_t low, high;
    double upward, downward;
} both;

static void look_up(void *user, int32_t tail, int32_t head, double weight)
{
    both *b = user;
    if (tail == b->low && head == b->high) b->upward = weight;
    if (tail == b->high && head == b->low) b->downward = weight;
}

static int64_t line_of(const io_metis *metis, int64_t node)
{
    return metis->header_line + 1 + node + io_gaps_before(&metis->comments, node);
}

static sp_status refuse_edge(sp_context *context, const char *name, const io_format_state *state,
                             const io_packed *arcs, const fault *first)
{
    both b = {.low = (int32_t)first->node, .high = (int32_t)first->other};
    visit(arcs, INT64_MAX, look_up, &b);
    const long long line = line_of(state->metis, b.low), other = line_of(state->metis, b.high);
    const long long node = b.low + 1LL, neighbour = b.high + 1LL;
    if (b.upward != 0 && b.downward != 0)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s:%lld: the edge of nodes %lld and %lld weighs %.17g here and %.17g in line %lld; write the "
                       "same weight in both", name, line, node, neighbour, b.upward, b.downward, other);
    return sp_fail(context, SP_ERROR_MATRIX,
                   "%s:%lld: node %lld %s node %lld, but that %s it in line %lld%s; write each edge in the lines of "
                   "both its nodes", name, line, node, b.upward != 0 ? "names" : "does not name", neighbour,
                   b.upward != 0 ? "does not name" : "names", other, state->weighted ? " with a weight above 0" : "");
}

sp_status io_metis_recheck(sp_context *context, const char *name, const io_format_state *state, io_packed *arcs,
                           int64_t complete, int64_t before)
{
    fault first = {.node = INT64_MAX};
    sp_status status = find_in_lines(context, arcs, &first);
    if (status == SP_OK) status = find_one_sided(context, arcs, complete, &first);
    if (status != SP_OK || first.node == INT64_MAX) return status;
    const int64_t line = line_of(state->metis, first.node);
    if (line >= before) return SP_OK;
    if (first.kind == LOOP)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s:%lld: node %lld is its own neighbour; METIS graphs have no loops", name, (long long)line,
                       (long long)first.node + 1);
    if (first.kind == TWICE)
        return sp_fail(context, SP_ERROR_MATRIX,
                       "%s:%lld: node %lld names node %lld twice; METIS graphs have no parallel edges", name,
                       (long long)line, (long long)first.node + 1, (long long)first.other + 1);
    return refuse_edge(context, name, state, arcs, &first);
}

sp_status io_metis_check(sp_context *context, const char *name, const io_format_state *state,
                         const io_line_counts *counts, io_packed *arcs)
{
    const io_edge_sums *sums = &counts->edges;
    bool wrong = counts->stopped || sums->hash != 0 || sums->loops > 0;
    sp_status status = SP_OK;
    if (!wrong && sums->disorder > 0) status = find_repeats(context, arcs, &wrong);
    if (status != SP_OK || !wrong) return status;
    status = io_metis_recheck(context, name, state, arcs, counts->complete, INT64_MAX);
    if (status != SP_OK || !counts->stopped) return status;
    return sp_fail(context, SP_ERROR_MATRIX,
                   "%s:%lld: node %lld names a node that does not name it; write each edge in the lines of both its "
                   "nodes", name, (long long)line_of(state->metis, counts->complete), (long long)counts->complete + 1);
}
