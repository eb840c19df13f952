/* Symmetric and skew-symmetric Matrix Market files hold each pair of nodes in one direction; the other is its mirror
 * image. A file that holds both says every such pair twice, and sums would double. Files with entries on one side of
 * the diagonal cannot. In others, pairs of the side with fewer entries go into a hash table, in which those of the
 * other side are looked up.
 */
#include "internal.h"

/* Pairs of nodes, the lower one above, and in the two bits that are left the directions in which it has been met. */
typedef struct pair_table {
    uint64_t *slots; /* UINT64_MAX: free */
    int64_t count;
} pair_table;

static const uint64_t NODES = (UINT64_C(1) << 62) - 1, ABOVE = UINT64_C(1) << 62;

/* Nodes are numbered below 2^31 - 1, so that no pair looks like a free slot. */
static uint64_t pair_of(const io_graph *graph, int64_t arc)
{
    const int32_t tail = graph->tails[arc], head = graph->heads[arc];
    return tail < head ? (uint64_t)tail << 31 | (uint64_t)head : (uint64_t)head << 31 | (uint64_t)tail;
}

/* The slot that holds the pair, or where it would be. */
static uint64_t *find(const pair_table *table, uint64_t pair)
{
    const uint64_t hash = (pair ^ pair >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    int64_t at = (int64_t)(hash * (uint64_t)table->count >> 32);
    while (table->slots[at] != UINT64_MAX && (table->slots[at] & NODES) != pair)
        at = at + 1 < table->count ? at + 1 : 0;
    return &table->slots[at];
}

static bool is_above(const io_graph *graph, int64_t arc) { return graph->heads[arc] < graph->tails[arc]; }

static bool is_pair(const io_graph *graph, int64_t arc) { return graph->heads[arc] != graph->tails[arc]; }

/* Enters the pairs of one side. */
static sp_status fill(sp_context *context, const io_graph *graph, const io_triangles *t, bool above, pair_table *table)
{
    table->count = (above ? t->above : t->below) / 2 * 3 + 8;
    if (table->count > UINT32_MAX) return sp_fail(context, SP_ERROR_OVERFLOW, "too many entries beside the diagonal");
    sp_status status = sp_alloc(context, table->count, sizeof *table->slots, (void **)&table->slots);
    if (status != SP_OK) return status;
    memset(table->slots, 0xff, (size_t)table->count * sizeof *table->slots);
    for (int64_t e = t->first; e < graph->arcs; e += t->step)
        if (is_pair(graph, e) && is_above(graph, e) == above) *find(table, pair_of(graph, e)) = pair_of(graph, e);
    return SP_OK;
}

/* The first arc that an earlier one is the mirror image of. */
static int64_t find_second(const io_graph *graph, const io_triangles *t, const pair_table *table)
{
    for (int64_t e = t->first; e < graph->arcs; e += t->step) {
        uint64_t *slot = is_pair(graph, e) ? find(table, pair_of(graph, e)) : NULL;
        if (!slot || *slot == UINT64_MAX) continue;
        *slot |= is_above(graph, e) ? ABOVE : ABOVE << 1;
        if (*slot >> 62 == 3) return e;
    }
    return -1;
}

sp_status io_check_triangles(sp_context *context, const char *name, const io_triangles *t, const io_graph *graph)
{
    const bool above = t->above <= t->below;
    pair_table table = {0};
    int64_t both = 0;
    if (t->above == 0 || t->below == 0) return SP_OK;
    sp_status status = fill(context, graph, t, above, &table);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) reduction(+ : both) num_threads(sp_context_threads(context))
    for (int64_t e = t->first; e < graph->arcs; e += t->step)
        if (is_pair(graph, e) && is_above(graph, e) != above) both += *find(&table, pair_of(graph, e)) != UINT64_MAX;
    if (both > 0) {
        const int64_t e = find_second(graph, t, &table), entry = e / t->step;
        status = sp_fail(context, SP_ERROR_MATRIX,
                         "%s:%lld: entry %lld %lld is the mirror image of an earlier one, and in a symmetric file each "
                         "stands for both; keep one of them, or write general",
                         name, (long long)(t->header_lines + 1 + entry + io_gaps_before(&t->gaps, entry)),
                         (long long)graph->heads[e] + 1, (long long)graph->tails[e] + 1);
    }
    sp_free(context, table.slots);
    return status;
}
