/* Whether a node is in a cluster, for passes over arcs. */
#ifndef MCL_MEMBERS_H
#define MCL_MEMBERS_H

#include "mcl.h"

static inline bool is_member(const mcl_memberships *m, int64_t node, int32_t cluster)
{
    int64_t k = m->starts[node];
    const int64_t end = m->starts[node + 1];
    while (k < end && m->clusters[k] != cluster) k++;
    return k < end;
}

#endif
