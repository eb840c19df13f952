/* contraction: quotient graphs. A labelling of a graph's nodes makes a smaller graph whose nodes are the labels;
 * labellings can overlap or carry weights (a matrix S), follow from the graph itself (matching), and be repeated
 * (hierarchies). On libsparse alone; reads no file. Conventions are those of sparse.h; `options` and `info` may be
 * NULL everywhere.
 */
#ifndef CONTRACTION_H
#define CONTRACTION_H

#include "sparse.h"

typedef enum contraction_engine {
    CONTRACTION_AUTO,
    CONTRACTION_FUSED,   /* sp_contract: one pass over G; needs one label a node */
    CONTRACTION_PRODUCT  /* sp_triple_product: G·Sᵀ, then S·(G·Sᵀ) */
} contraction_engine;

typedef struct contraction_options {
    contraction_engine engine;
    sp_contract_options how;
    bool undirected;               /* contraction_repeat: G is symmetric, and contraction_mirror keeps its levels so */
    sp_spgemm_algorithm algorithm; /* of the products */
    sp_aia aia;                    /* and their gathering stage */
} contraction_options;

typedef struct contraction_info {
    contraction_engine engine; /* that was used */
    int64_t nnz;               /* of C */
    int64_t peak_bytes;        /* working memory beyond G, labels and C (0: not measured) */
    double seconds;
} contraction_info;

/* The quotient graph of a square G by `labels` (host, G.rows entries below `groups`; negative: left out with its
 * edges). AUTO is the fused engine: it combines each entry of G once, the products nnz(G·Sᵀ) more, where they are two
 * (sp_triple_product: but for sums and counts that keep loops). Same result from both, but that two products add in
 * another order and round f32 sums twice. C as for sp_contract. */
sp_status contraction_quotient(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                               const contraction_options *options, sp_csr *c, contraction_info *info);

/* S·G·Sᵀ for any S of G.rows columns (a group a row; overlapping, weighted): the product engine; CONTRACTION_FUSED is
 * refused. S has values of G's type. With weights only SP_COMBINE_SUM has a meaning that all agree on: the others
 * take S as a pattern. */
sp_status contraction_product(sp_context *context, const sp_csr *s, const sp_csr *g,
                              const contraction_options *options, sp_csr *c, contraction_info *info);

/* Makes a C of the quotient of a symmetric G symmetric to the last digit, which sums in two orders are not: each entry
 * above the diagonal gets the value of its mirror image below. C is on the host. One whose entries have no mirror
 * images stays as it is, and *symmetric is false then. (The first of entries that fall together, SP_COMBINE_FIRST, is
 * another in either direction: such a C is not for this.) O(nnz), and as much memory as C for a while. */
sp_status contraction_mirror(sp_context *context, sp_csr *c, bool *symmetric);

/* What is known of one group. Every edge G(i, j) counts where it leaves: in a symmetric G an edge within a group
 * counts twice in `internal`, one between groups once in the `cut` of each. Edges to or from nodes without a label do
 * not count. */
typedef struct contraction_group {
    int64_t size;       /* nodes */
    double internal;    /* weight within the group */
    double cut;         /* weight that leaves it */
    double conductance; /* cut ÷ min(internal + cut, that of all others); 0 where nothing leaves, 1 where the others
                           have no weight */
} contraction_group;

/* `group` (host, `groups` entries) of a host G. O(nnz). */
sp_status contraction_groups(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                             contraction_group *group);

/* Renumbers labels so that no group is empty, in the order of the old numbers: labels (host) are changed in place,
 * `old` (allocated here, *groups entries, or NULL if not wanted) says what each was. */
sp_status contraction_compact(sp_context *context, int64_t nodes, int32_t *labels, int64_t *groups, int32_t **old);

/* Heavy-edge matching (Karypis and Kumar 1998) of a host G: each unmatched node takes its heaviest unmatched
 * neighbour, ties to the lowest number; nodes are visited in an order drawn from `seed`. labels (host, G.rows) get
 * group numbers in the order of the groups' lowest nodes. O(nnz). */
sp_status contraction_match(sp_context *context, const sp_csr *g, uint64_t seed, int32_t *labels, int64_t *groups);

/* Labels for one level of a hierarchy: fills labels (G.rows entries) and *groups. */
typedef sp_status (*contraction_labeller)(sp_context *context, void *user, const sp_csr *g, int32_t *labels,
                                          int64_t *groups);

/* One level: map[i] is the group of node i of the graph before, c the graph of groups. */
typedef struct contraction_level {
    int64_t nodes, groups;
    int32_t *map;
    sp_csr c;
} contraction_level;

typedef struct contraction_hierarchy {
    int count;
    contraction_level *level; /* level 0 contracts G itself */
} contraction_hierarchy;

/* Contracts again and again with what `labeller` says, at most `levels` times, until it gives a graph as many groups
 * as it has nodes: that level is not made. G and all levels lie on the host. */
sp_status contraction_repeat(sp_context *context, const sp_csr *g, int levels, contraction_labeller labeller,
                             void *user, const contraction_options *options, contraction_hierarchy *hierarchy);
void contraction_hierarchy_free(sp_context *context, contraction_hierarchy *hierarchy);

#endif
