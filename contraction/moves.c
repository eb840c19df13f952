/* Boundary refinement of a partition into k parts (Fiduccia and Mattheyses, "A linear-time heuristic for improving
 * network partitions", 1982; for k parts Karypis and Kumar, "Multilevel k-way partitioning scheme for irregular
 * graphs", 1998). A pass takes the node of the largest gain, moves it to the neighbouring part where it gains most and
 * that has room, and fixes it there; gains may be below 0. The pass ends where it has not been at its best for long,
 * and goes back to its best. Passes follow each other while they gain.
 *
 *   gain of a node = Σ weights of its edges to the new part - Σ of those to its own
 *
 * The heap has upper bounds of gains: what a move would gain if all parts had room, which a move of a neighbour then
 * changes in O(1). The gain itself is found when a node comes first. Moves follow each other, so one thread makes them;
 * all threads find where a pass begins. So the result does not depend on their number. A pass takes O(nnz) and, for a
 * move, O(degree · log nodes). */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/random.h"
#include "moves.h"

enum {
    PASSES = 10,
    PATIENCE = 200,       /* moves without a new best after which a pass ends, and one more */
    PATIENCE_PART = 20,   /* for each 20 nodes at borders */
    LET_IN = 2,           /* nodes that wait for room, where one leaves: it may be heavier than they are */
    INTERRUPT_STEP = 4096 /* nodes between looks at the interrupt flag */
};

/* The parts next to a node, as one thread looks at it. */
typedef struct neighbourhood {
    double *toward; /* weight of the node's edges to each part, */
    int64_t *stamp; /* if this is the number of the present look */
    int64_t look;
    int32_t *part;  /* those that it has edges to */
    int64_t count;
} neighbourhood;

/* Of the heap. */
typedef struct entry {
    double key;
    int32_t node;
} entry;

/* Passes end with one that lowers the cut by less than this part of it: on large graphs they would go on for a long
 * time, and each takes the nodes of all borders. */
static const double WORTH = 1e-4;

typedef struct moving {
    const partition *p;
    int64_t *load, *size; /* of parts: weights, nodes */
    neighbourhood *near;  /* of each thread that fills the heap; the first is that of the moves */
    int threads;
    double *key;          /* of nodes: at least the gain */
    entry *heap;          /* the largest key first */
    int32_t *place;       /* of nodes in the heap; OUTSIDE, WAITING, or FIXED in this pass */
    int64_t count;
    int32_t *first, *last; /* of the nodes that wait for room in a part, those of the largest gain first; -1: none */
    int32_t *next;         /* of these; NOT_LISTED */
    int32_t *moved, *from;
} moving;

enum { OUTSIDE = -1, FIXED = -2, WAITING = -3, LIST_END = -1, NOT_LISTED = -2 };

/* ---- the heap ---------------------------------------------------------------------------------------------- */

static bool comes_first(const moving *m, entry a, entry b)
{
    if (a.key != b.key) return a.key > b.key;
    return mix64(m->p->seed ^ (uint64_t)a.node) > mix64(m->p->seed ^ (uint64_t)b.node);
}

static void put(moving *m, int64_t at, entry e)
{
    m->heap[at] = e;
    m->place[e.node] = (int32_t)at;
}

static void rise(moving *m, int64_t at, entry e)
{
    for (; at > 0 && comes_first(m, e, m->heap[(at - 1) / 2]); at = (at - 1) / 2) put(m, at, m->heap[(at - 1) / 2]);
    put(m, at, e);
}

static void sink(moving *m, int64_t at, entry e)
{
    for (int64_t below; (below = 2 * at + 1) < m->count; at = below) {
        if (below + 1 < m->count && comes_first(m, m->heap[below + 1], m->heap[below])) below++;
        if (!comes_first(m, m->heap[below], e)) break;
        put(m, at, m->heap[below]);
    }
    put(m, at, e);
}

/* Enters a node, or changes its key. */
static void set_key(moving *m, int32_t node, double key)
{
    const bool inside = m->place[node] >= 0, falls = inside && key < m->key[node];
    m->key[node] = key;
    if (falls) sink(m, m->place[node], (entry){key, node});
    else rise(m, inside ? m->place[node] : m->count++, (entry){key, node});
}

static int32_t take_first(moving *m)
{
    const int32_t first = m->heap[0].node;
    const entry last = m->heap[--m->count];
    if (m->count > 0) sink(m, 0, last);
    m->place[first] = OUTSIDE;
    return first;
}

/* ---- gains ------------------------------------------------------------------------------------------------- */

/* Fills `near` for a node. */
static void look_at(const partition *p, int64_t node, neighbourhood *near)
{
    const sp_csr *g = p->g;
    near->look++;
    near->count = 0;
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t part = p->labels[g->col_indices[k]];
        if (part < 0 || g->col_indices[k] == node) continue;
        if (near->stamp[part] != near->look) {
            near->stamp[part] = near->look;
            near->toward[part] = 0;
            near->part[near->count++] = part;
        }
        near->toward[part] += entry_value(g, k);
    }
}

/* What a node would gain if all parts had room; whether it has neighbours in another part. */
static bool bound_gain(const partition *p, int64_t node, neighbourhood *near, double *bound)
{
    const int32_t own = p->labels[node];
    double inside = 0, most = -INFINITY;
    *bound = 0;
    if (own < 0) return false;
    look_at(p, node, near);
    for (int64_t i = 0; i < near->count; i++) {
        const double toward = near->toward[near->part[i]];
        if (near->part[i] == own) inside = toward;
        else most = fmax(most, toward);
    }
    *bound = fmax(most, 0) - inside;
    return most > -INFINITY;
}

static bool has_room(const moving *m, int32_t node, int32_t part)
{
    const int constraints = m->p->constraints;
    for (int c = 0; c < constraints; c++) {
        const int64_t weight = m->p->weights[(int64_t)node * constraints + c];
        if (weight > 0 && (double)(m->load[(int64_t)part * constraints + c] + weight) > m->p->cap[c]) return false;
    }
    return true;
}

/* The neighbouring part where the node gains most, the lighter of equals; -1: none has room, or its own would be empty.
 * *gain is what a move there gains or, without one, to a part where it has no edges. *full is a part without room to
 * which it has the heaviest edges, -1 if all have room. */
static int32_t best_part(moving *m, int32_t node, double *gain, int32_t *full)
{
    const partition *p = m->p;
    neighbourhood *near = &m->near[0];
    const double *toward = near->toward;
    const int32_t own = p->labels[node];
    double inside = 0;
    int32_t best = -1;
    *gain = 0;
    *full = -1;
    if (m->size[own] == 1) return -1;
    look_at(p, node, near);
    for (int64_t i = 0; i < near->count; i++) {
        const int32_t part = near->part[i];
        if (part == own) {
            inside = toward[own];
            continue;
        }
        if (!has_room(m, node, part)) {
            if (*full < 0 || toward[part] > toward[*full]) *full = part;
            continue;
        }
        if (best >= 0 && (toward[part] < toward[best] ||
                          (toward[part] == toward[best] &&
                           m->load[(int64_t)part * p->constraints] >= m->load[(int64_t)best * p->constraints])))
            continue;
        best = part;
    }
    *gain = (best >= 0 ? toward[best] : 0) - inside;
    return best;
}

/* ---- moves ------------------------------------------------------------------------------------------------- */

static void relabel(moving *m, int32_t node, int32_t part)
{
    const partition *p = m->p;
    const int32_t from = p->labels[node];
    for (int c = 0; c < p->constraints; c++) {
        const int64_t weight = p->weights[(int64_t)node * p->constraints + c];
        m->load[(int64_t)from * p->constraints + c] -= weight;
        m->load[(int64_t)part * p->constraints + c] += weight;
    }
    m->size[from]--;
    m->size[part]++;
    p->labels[node] = part;
}

/* Bounds of the neighbours' gains after a move. An edge that was inside of `from` is now between parts, and the best
 * part may be the new one. */
static void change_neighbours(moving *m, int32_t node, int32_t from)
{
    const partition *p = m->p;
    const sp_csr *g = p->g;
    const int32_t to = p->labels[node];
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t other = g->col_indices[k], part = p->labels[other];
        const double weight = entry_value(g, k), size = weight < 0 ? -weight : weight;
        double bound;
        if (part < 0 || other == node || m->place[other] == FIXED) continue;
        const double change = part == from ? 2 * size : part == to ? -weight : size;
        if (m->place[other] >= 0) set_key(m, other, m->key[other] + change);
        else if (bound_gain(p, other, &m->near[0], &bound)) set_key(m, other, bound);
    }
}

/* With the nodes at borders, or with those that `may_move`. */
static int64_t fill_heap(moving *m, bool (*may_move)(const moving *m, int32_t node))
{
    const partition *p = m->p;
    const int64_t n = p->g->rows;
#pragma omp parallel for schedule(dynamic, 1024) num_threads(m->threads) if (p->g->nnz > 100000)
    for (int64_t i = 0; i < n; i++) {
        const bool at_border = bound_gain(p, i, &m->near[omp_get_thread_num()], &m->key[i]);
        m->place[i] = (may_move ? may_move(m, (int32_t)i) : at_border) ? 0 : OUTSIDE;
    }
    m->count = 0;
    for (int64_t k = 0; k < p->parts; k++) m->first[k] = LIST_END;
    for (int64_t i = 0; i < n; i++) m->next[i] = NOT_LISTED;
    for (int64_t i = 0; i < n; i++)
        if (m->place[i] == 0) put(m, m->count++, (entry){m->key[i], (int32_t)i});
    for (int64_t at = m->count / 2; at-- > 0;) sink(m, at, m->heap[at]);
    return m->count;
}

static sp_status look_for_interrupt(const moving *m)
{
    if (!sp_context_interrupted(m->p->context)) return SP_OK;
    return sp_fail(m->p->context, SP_ERROR_INTERRUPTED, "interrupted while nodes were moved between parts");
}

/* Puts a node back whose gain turns out to be less than that of another, which comes first. */
static bool is_late(moving *m, int32_t node, double gain)
{
    if (m->count == 0 || gain >= m->key[node] || gain >= m->heap[0].key) return false;
    set_key(m, node, gain);
    return true;
}

/* Lets a node wait until another one leaves the part. One that has waited before and was put back by a move of its
 * neighbours is still in its list. */
static void wait_for(moving *m, int32_t node, int32_t part)
{
    m->place[node] = WAITING;
    if (m->next[node] != NOT_LISTED) return;
    m->next[node] = LIST_END;
    if (m->first[part] < 0) m->first[part] = node;
    else m->next[m->last[part]] = node;
    m->last[part] = node;
}

/* Puts nodes that wait for the part back. Those whose neighbours have moved are in the heap already. */
static void let_in(moving *m, int32_t part)
{
    for (int put_back = 0; m->first[part] >= 0 && put_back < LET_IN;) {
        const int32_t node = m->first[part];
        m->first[part] = m->next[node];
        m->next[node] = NOT_LISTED;
        if (m->place[node] != WAITING) continue;
        set_key(m, node, m->key[node]);
        put_back++;
    }
}

static void move(moving *m, int32_t node, int32_t part)
{
    const int32_t from = m->p->labels[node];
    relabel(m, node, part);
    m->place[node] = FIXED;
    change_neighbours(m, node, from);
    let_in(m, from);
}

static sp_status pass(moving *m, bool *better)
{
    const int64_t patience = PATIENCE + fill_heap(m, NULL) / PATIENCE_PART;
    int64_t moves = 0, kept = 0, taken = 0;
    double sum = 0, best = 0;
    sp_status status = SP_OK;
    while (m->count > 0 && moves - kept < patience) {
        if (taken++ % INTERRUPT_STEP == 0) TRY(look_for_interrupt(m));
        const int32_t node = take_first(m);
        const int32_t from = m->p->labels[node];
        double gain;
        int32_t full;
        const int32_t part = best_part(m, node, &gain, &full);
        if (part < 0 && full >= 0) wait_for(m, node, full);
        if (part < 0 || is_late(m, node, gain)) continue;
        move(m, node, part);
        m->moved[moves] = node;
        m->from[moves++] = from;
        sum += gain;
        if (sum <= best + m->p->least) continue;
        best = sum;
        kept = moves;
    }
    while (moves-- > kept) relabel(m, m->moved[moves], m->from[moves]);
    m->p->made->cut -= best;
    m->p->made->moves += kept;
    m->p->made->passes++;
    *better = best > WORTH * m->p->made->cut;
done:
    return status;
}

/* As many threads as have no more parts to keep than there are edges. */
static sp_status open_neighbourhoods(moving *m)
{
    const partition *p = m->p;
    const int64_t most = p->g->nnz / p->parts, threads = sp_context_threads(p->context);
    sp_status status;
    m->threads = (int)(most < 1 ? 1 : most < threads ? most : threads);
    TRY(sp_calloc(p->context, m->threads, sizeof *m->near, (void **)&m->near));
    for (int t = 0; t < m->threads; t++) {
        TRY(sp_calloc(p->context, p->parts, sizeof *m->near->toward, (void **)&m->near[t].toward));
        TRY(sp_calloc(p->context, p->parts, sizeof *m->near->stamp, (void **)&m->near[t].stamp));
        TRY(sp_alloc(p->context, p->parts, sizeof *m->near->part, (void **)&m->near[t].part));
    }
done:
    return status;
}

static sp_status start(moving *m)
{
    const partition *p = m->p;
    sp_context *context = p->context;
    const int64_t n = p->g->rows;
    sp_status status;
    TRY(sp_calloc(context, p->parts * p->constraints, sizeof *m->load, (void **)&m->load));
    TRY(sp_calloc(context, p->parts, sizeof *m->size, (void **)&m->size));
    TRY(sp_alloc(context, p->parts, sizeof *m->first, (void **)&m->first));
    TRY(sp_alloc(context, p->parts, sizeof *m->last, (void **)&m->last));
    TRY(sp_alloc(context, n, sizeof *m->next, (void **)&m->next));
    TRY(sp_alloc(context, n, sizeof *m->key, (void **)&m->key));
    TRY(sp_alloc(context, n, sizeof *m->heap, (void **)&m->heap));
    TRY(sp_alloc(context, n, sizeof *m->place, (void **)&m->place));
    TRY(sp_alloc(context, n, sizeof *m->moved, (void **)&m->moved));
    TRY(sp_alloc(context, n, sizeof *m->from, (void **)&m->from));
    TRY(open_neighbourhoods(m));
    for (int64_t i = 0; i < n; i++) {
        const int32_t part = p->labels[i];
        if (part < 0) continue;
        m->size[part]++;
        for (int c = 0; c < p->constraints; c++)
            m->load[(int64_t)part * p->constraints + c] += p->weights[i * p->constraints + c];
    }
done:
    return status;
}

static void finish(moving *m)
{
    sp_context *context = m->p->context;
    FREE_ALL(context, m->load, m->size);
    for (int t = 0; m->near && t < m->threads; t++) {
        FREE_ALL(context, m->near[t].toward, m->near[t].stamp, m->near[t].part);
    }
    FREE_ALL(context, m->near, m->first, m->last, m->next, m->key, m->heap, m->place, m->moved, m->from);
}

/* ---- balance ----------------------------------------------------------------------------------------------- */

/* Whether the node's part is too heavy, and becomes lighter without it. */
static bool may_leave(const moving *m, int32_t node)
{
    const partition *p = m->p;
    const int64_t part = p->labels[node];
    if (part < 0 || m->size[part] == 1) return false;
    for (int c = 0; c < p->constraints; c++)
        if ((double)m->load[part * p->constraints + c] > p->cap[c] &&
            p->weights[(int64_t)node * p->constraints + c] > 0)
            return true;
    return false;
}

/* The lightest part that has room, -1 for none. */
static int32_t lightest_part(const moving *m, int32_t node)
{
    const partition *p = m->p;
    int32_t best = -1;
    for (int32_t k = 0; k < p->parts; k++)
        if (k != p->labels[node] && has_room(m, node, k) &&
            (best < 0 || m->load[(int64_t)k * p->constraints] < m->load[(int64_t)best * p->constraints]))
            best = k;
    return best;
}

sp_status lighten_parts(partition *p, double *excess)
{
    moving m = {.p = p};
    int64_t taken = 0;
    sp_status status;
    TRY(start(&m));
    fill_heap(&m, may_leave);
    while (m.count > 0) {
        if (taken++ % INTERRUPT_STEP == 0) TRY(look_for_interrupt(&m));
        const int32_t node = take_first(&m);
        double gain;
        int32_t full;
        if (!may_leave(&m, node)) continue;
        int32_t part = best_part(&m, node, &gain, &full);
        if (part < 0) part = lightest_part(&m, node);
        if (part < 0 || is_late(&m, node, gain)) continue;
        move(&m, node, part);
        p->made->cut -= gain;
        p->made->moves++;
    }
    *excess = 0;
    for (int64_t k = 0; k < p->parts * p->constraints; k++)
        *excess += fmax(0, (double)m.load[k] - p->cap[k % p->constraints]);
done:
    finish(&m);
    return status;
}

/* ---- moves that lower the cut ------------------------------------------------------------------------------ */

sp_status move_nodes(partition *p)
{
    moving m = {.p = p};
    bool better = true;
    sp_status status;
    TRY(start(&m));
    for (int k = 0; k < PASSES && better; k++) TRY(pass(&m, &better));
done:
    finish(&m);
    return status;
}
