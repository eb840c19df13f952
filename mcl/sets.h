/* Disjoint sets of nodes: parent[j] leads towards the root of node j's set, its smallest node, which is its own parent.
 */
#ifndef MCL_SETS_H
#define MCL_SETS_H

#include <stdint.h>

static inline int32_t find_root(int32_t *parent, int32_t node)
{
    while (parent[node] != node) node = parent[node] = parent[parent[node]];
    return node;
}

static inline void join(int32_t *parent, int32_t a, int32_t b)
{
    a = find_root(parent, a);
    b = find_root(parent, b);
    if (a < b) parent[b] = a;
    else parent[a] = b;
}

#endif
