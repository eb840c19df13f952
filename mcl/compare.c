/* How far two clusterings of the same nodes lie apart: the distances of clm dist.
 *
 * Both are made partitions first: a node in several clusters counts in the first. The meet of two partitions has a
 * part for each non-empty A ∩ B. The distance from a partition to the meet is
 *   split/join                Σ over its clusters A of |A| - max |A ∩ B|: nodes to move,
 *   variation of information  Σ over A ∩ B of |A ∩ B| / N · ln(|A| / |A ∩ B|).
 * It is 0 where A is the finer of both. The distance between the two is the sum of their distances to the meet.
 * O(N) time and memory.
 */
#include "mcl.h"

#include <math.h>

#include "base/try.h"

/* The distances from A to the meet with B, whose clusters are numbered in cluster_of; counts are 0 before and after. */
static void to_meet(const mcl_clustering *a, const int32_t *own, const int32_t *cluster_of, int64_t *counts,
                    int64_t *moved, double *information)
{
    *moved = 0;
    *information = 0;
    for (int64_t k = 0; k < a->clusters; k++) {
        int64_t size = 0, largest = 0;
        for (int64_t i = a->offsets[k]; i < a->offsets[k + 1]; i++) {
            const int32_t node = a->members[i];
            if (own[node] != k || cluster_of[node] < 0) continue;
            const int64_t count = ++counts[cluster_of[node]];
            if (count > largest) largest = count;
            size++;
        }
        *moved += size - largest;
        for (int64_t i = a->offsets[k]; i < a->offsets[k + 1]; i++) {
            const int32_t node = a->members[i];
            if (own[node] != k || cluster_of[node] < 0) continue;
            const int64_t part = counts[cluster_of[node]];
            if (part > 0)
                *information += (double)part / (double)a->nodes * log((double)size / (double)part);
            counts[cluster_of[node]] = 0;
        }
    }
}

sp_status mcl_compare(sp_context *context, const mcl_clustering *a, const mcl_clustering *b, mcl_distance *distance)
{
    static const char call[] = "mcl_compare";
    mcl_distance made = {0};
    int32_t *in_a = NULL, *in_b = NULL;
    int64_t *counts = NULL;
    sp_status status;
    TRY(sp_require(context, call, "a", a));
    TRY(sp_require(context, call, "b", b));
    TRY(sp_require(context, call, "distance", distance));
    if (a->nodes != b->nodes)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "clusterings of %lld and of %lld nodes cannot be compared",
                    (long long)a->nodes, (long long)b->nodes));
    TRY(sp_alloc(context, a->nodes, sizeof *in_a, (void **)&in_a));
    TRY(sp_alloc(context, a->nodes, sizeof *in_b, (void **)&in_b));
    TRY(sp_calloc(context, a->clusters > b->clusters ? a->clusters : b->clusters, sizeof *counts, (void **)&counts));
    mcl_clustering_labels(a, in_a);
    mcl_clustering_labels(b, in_b);
    to_meet(a, in_a, in_b, counts, &made.moved_first, &made.information_first);
    to_meet(b, in_b, in_a, counts, &made.moved_second, &made.information_second);
    *distance = made;
done:
    FREE_ALL(context, in_a, in_b, counts);
    return status;
}
