/* Lists of nodes, and their order in the output. */
#include "base/try.h"
#include "lists.h"
#include "members.h"

#include <stdlib.h>
#include <string.h>

void lists_free(sp_context *context, lists *l)
{
    FREE_ALL(context, l->offsets, l->members);
    memset(l, 0, sizeof *l);
}

sp_status lists_reserve(sp_context *context, lists *l, int64_t length)
{
    sp_status status = SP_OK;
    const int64_t used = l->offsets ? l->offsets[l->count] : 0;
    if (l->count + 2 > l->offsets_capacity) {
        const int64_t capacity = 2 * l->count + 64;
        status = sp_grow(context, l->offsets ? l->count + 1 : 0, capacity, sizeof *l->offsets, (void **)&l->offsets);
        if (status != SP_OK) return status;
        if (l->count == 0) l->offsets[0] = 0;
        l->offsets_capacity = capacity;
    }
    if (used + length > l->members_capacity) {
        const int64_t capacity = used + length + used / 2;
        status = sp_grow(context, used, capacity, sizeof *l->members, (void **)&l->members);
        if (status != SP_OK) return status;
        l->members_capacity = capacity;
    }
    return SP_OK;
}

/* ---- order --------------------------------------------------------------------------------------------- */

typedef struct placed {
    const int32_t *members;
    int64_t count;
} placed;

static int by_members(const void *left, const void *right)
{
    const placed *a = left, *b = right;
    for (int64_t i = 0; i < a->count && i < b->count; i++)
        if (a->members[i] != b->members[i]) return a->members[i] < b->members[i] ? -1 : 1;
    return a->count < b->count ? -1 : a->count > b->count;
}

static int by_falling_size(const void *left, const void *right)
{
    const placed *a = left, *b = right;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return by_members(left, right);
}

static int by_rising_size(const void *left, const void *right) { return -by_falling_size(left, right); }

sp_status lists_order(sp_context *context, mcl_sort sort, lists *clusters)
{
    static int (*const comparisons[])(const void *, const void *) = {by_falling_size, by_rising_size, by_members};
    placed *order = NULL;
    lists made = {0};
    int64_t count = 0;
    sp_status status = sp_alloc(context, clusters->count, sizeof *order, (void **)&order);
    if (status != SP_OK) return status;
    for (int64_t c = 0; c < clusters->count; c++)
        if (lists_length(clusters, c) > 0)
            order[count++] = (placed){clusters->members + clusters->offsets[c], lists_length(clusters, c)};
    if (sort != MCL_SORT_NONE) qsort(order, (size_t)count, sizeof *order, comparisons[sort]);
    status = sp_alloc(context, count + 1, sizeof *made.offsets, (void **)&made.offsets);
    if (status == SP_OK)
        status = sp_alloc(context, clusters->offsets[clusters->count], sizeof *made.members, (void **)&made.members);
    if (status == SP_OK) {
        made.count = count;
        made.offsets[0] = 0;
        for (int64_t c = 0; c < count; c++) {
            memcpy(made.members + made.offsets[c], order[c].members, (size_t)order[c].count * sizeof *made.members);
            made.offsets[c + 1] = made.offsets[c] + order[c].count;
        }
        lists_free(context, clusters);
        *clusters = made;
    } else {
        lists_free(context, &made);
    }
    sp_free(context, order);
    return status;
}

/* ---- the clusters of nodes ------------------------------------------------------------------------------------ */

sp_status mcl_memberships_make(sp_context *context, const mcl_clustering *c, mcl_memberships *memberships)
{
    mcl_memberships made = {.clustering = c};
    sp_status status;
    TRY(sp_require(context, __func__, "clustering", c));
    TRY(sp_require(context, __func__, "memberships", memberships));
    const int64_t members = c->clusters > 0 ? c->offsets[c->clusters] : 0;
    TRY(sp_calloc(context, c->nodes + 2, sizeof *made.starts, (void **)&made.starts));
    TRY(sp_alloc(context, members, sizeof *made.clusters, (void **)&made.clusters));
    for (int64_t i = 0; i < members; i++) made.starts[c->members[i] + 2]++;
    for (int64_t i = 0; i < c->nodes; i++) made.starts[i + 2] += made.starts[i + 1];
    for (int64_t k = 0; k < c->clusters; k++)
        for (int64_t i = c->offsets[k]; i < c->offsets[k + 1]; i++)
            made.clusters[made.starts[c->members[i] + 1]++] = (int32_t)k;
    *memberships = made;
    made = (mcl_memberships){0};
done:
    mcl_memberships_free(context, &made);
    return status;
}

bool mcl_is_member(const mcl_memberships *memberships, int64_t node, int32_t cluster)
{
    return is_member(memberships, node, cluster);
}

void mcl_memberships_free(sp_context *context, mcl_memberships *c)
{
    FREE_ALL(context, c->starts, c->clusters);
    *c = (mcl_memberships){0};
}
