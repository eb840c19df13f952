/* contraction: quotient graphs. A labelling of the nodes of a graph makes a smaller graph whose nodes are the labels.
 * Labellings may overlap or have weights (a matrix S), may come from the graph itself (matching), and may be repeated
 * (hierarchies). Uses libsparse only and reads no file. Conventions are those of sparse.h. `options` and `info` may be
 * NULL everywhere. A call has finished when it returns, with three exceptions on CUDA: what contraction_coarsen,
 * contraction_add_weights and contraction_mirror write to device memory may still be queued, in the context's stream.
 */
#ifndef CONTRACTION_H
#define CONTRACTION_H

#include "sparse.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum contraction_engine {
    CONTRACTION_AUTO,
    CONTRACTION_FUSED,   /* sp_contract: one pass over G; needs one label a node */
    CONTRACTION_PRODUCT  /* sp_triple_product: G·Sᵀ, then S·(G·Sᵀ) */
} contraction_engine;

typedef struct contraction_options {
    contraction_engine engine;
    sp_contract_options how;
    bool undirected;               /* contraction_repeat: G is symmetric, and so are its levels, to the last bit */
    bool on_device;                /* contraction_repeat on CUDA: the labeller gets each graph on the device */
    sp_spgemm_algorithm algorithm; /* algorithm of the products */
    sp_aia aia;                    /* gather stage of the products */
} contraction_options;

typedef struct contraction_info {
    contraction_engine engine; /* the engine that was used */
    int64_t nnz;               /* nonzeros of C */
    int64_t peak_bytes;        /* working memory beyond G, labels and C (0: not measured) */
    double seconds;
    bool mirrored;             /* how.symmetric: C is symmetric to the last bit, and needs no contraction_mirror */
} contraction_info;

/* The quotient graph of a square G by `labels` (host, G.rows entries below `groups`; a negative label leaves out the
 * node and its edges). AUTO takes the fused engine, which combines each entry of G once; two products combine nnz(G·Sᵀ)
 * entries more. (sp_triple_product itself forms one product for sums and counts that keep loops.) Both engines give the
 * same result, except that two products add in another order and round f32 sums twice. C is as for sp_contract. */
sp_status contraction_quotient(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                               const contraction_options *options, sp_csr *c, contraction_info *info);

/* S·G·Sᵀ for any S with G.rows columns, a group a row, possibly overlapping or weighted: the product engine.
 * CONTRACTION_FUSED is refused. S has values of G's type. Weights only have an agreed meaning for SP_COMBINE_SUM; all
 * other operations take S as a pattern. */
sp_status contraction_product(sp_context *context, const sp_csr *s, const sp_csr *g,
                              const contraction_options *options, sp_csr *c, contraction_info *info);

/* Makes the quotient C of a symmetric G symmetric to the last digit, since sums in two orders may differ: each entry
 * above the diagonal gets the value of its mirror image. If an entry has no mirror image, C
 * stays as it is and *symmetric is false. Not for SP_COMBINE_FIRST, whose result differs in the two directions. O(nnz),
 * and temporarily as much memory as C. */
sp_status contraction_mirror(sp_context *context, sp_csr *c, bool *symmetric);

/* Figures of one group. Every edge G(i, j) counts at its source. So in a symmetric G an edge within a group counts
 * twice in `internal`, and an edge between groups counts once in the `cut` of each. Edges of nodes without a label do
 * not count. */
typedef struct contraction_group {
    int64_t size;       /* number of nodes */
    double internal;    /* weight within the group */
    double cut;         /* weight of the edges to other groups */
    double conductance; /* cut ÷ min(internal + cut, that of all other groups); 0 if cut is 0, 1 if the others have no
                           weight */
} contraction_group;

/* Fills `group` (host, `groups` elements) for a host G. O(nnz). */
sp_status contraction_groups(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                             contraction_group *group);
/* Their conductances, from their weights: for figures of groups that were made in several places. */
void contraction_conductances(contraction_group *group, int64_t groups);

/* How good a labelling is. Nodes without a label do not count, nor do their edges. In an undirected graph an edge
 * counts once, and a loop counts at both of its ends. */
typedef struct contraction_judgement {
    int64_t nodes, left_out;  /* with a label and without one */
    int64_t groups, empty;    /* with nodes and without any */
    int64_t edges, cut_edges; /* all; between groups */
    double weight, cut;       /* the sums of their weights */
    double coverage;          /* the part of the weight that lies within groups; NaN without weight, as the next */
    double modularity;        /* undirected: Newman and Girvan 2004; directed: Leicht and Newman 2008 */
    double mean_conductance, worst_conductance; /* over groups with nodes; as in contraction_group, but for loops */
    int64_t worst;            /* the first group of the worst conductance; -1 without groups */
    /* weight of the nodes of the heaviest group over the mean; of several weights the worst */
    double balance;
    int64_t smallest, largest, alone; /* sizes of groups with nodes; those of one node */
    double median, mean;
} contraction_judgement;

/* Judges the labelling of a host G. `undirected`: G is symmetric. `weights` (host): `constraints` numbers a node, or
 * NULL for 1 each. Weights of edges are at least 0. O(nnz). */
sp_status contraction_judge(sp_context *context, const sp_csr *g, bool undirected, const int32_t *labels,
                            int64_t groups, const int64_t *weights, int constraints,
                            contraction_judgement *judgement);

/* Renumbers labels so that no group is empty, in the order of the old numbers. `labels` (host) are changed in place.
 * `old` receives an array of *groups entries with the old number of each group, which the caller releases by sp_free;
 * it may be NULL. */
sp_status contraction_compact(sp_context *context, int64_t nodes, int32_t *labels, int64_t *groups, int32_t **old);

/* Ways to make a graph smaller. Edges of weight 0 and below join no nodes. */
typedef enum contraction_method {
    CONTRACTION_MATCHING,    /* pairs of neighbours (Karypis and Kumar 1998) */
    CONTRACTION_TWO_HOP,     /* and, where these stall, pairs with a common neighbour */
    CONTRACTION_HEAVY_EDGES, /* groups along the heaviest edge of each node (Gilbert et al. 2021) */
    CONTRACTION_PROPAGATION  /* label propagation with bounded groups (Meyerhenke et al. 2014) */
} contraction_method;

typedef struct contraction_coarsening {
    contraction_method method;
    uint64_t seed;         /* decides between equals */
    int64_t least;         /* groups at least; of the nodes of a group those with the lightest edges to it stay alone */
    double max_weight;     /* greatest weight of a group of several nodes; 0: no bound */
    const double *weights; /* of nodes, above 0; NULL: 1 each */
} contraction_coarsening;

/* Labels the nodes of G by groups of strongly connected neighbours. `labels` (G.rows) and how->weights lie where G
 * lies.
 * Labels are group numbers in the order of the lowest node of each group, the same for any number of threads and on
 * every device. `how` may be NULL: two-hop. On CUDA the device finds the groups; two steps use a copy in host memory:
 * matchings of directed graphs or of long chains, and the choice of the nodes that stay alone. O(nnz) a round, few
 * rounds. */
sp_status contraction_coarsen(sp_context *context, const sp_csr *g, const contraction_coarsening *how, int32_t *labels,
                              int64_t *groups);

/* The weights of groups from those of their nodes, in place: weights[p] = Σ of the weights of the nodes with label p,
 * in their order, for the labels of contraction_coarsen. Both arrays lie in `space`. O(nodes). */
sp_status contraction_add_weights(sp_context *context, const int32_t *labels, int64_t nodes, int64_t groups,
                                  sp_space space, double *weights);

/* Takes nodes out of groups until there are `least` groups, those with the lightest edges to their group first; each
 * becomes a group of its own. `labels` (host, 0 to *groups - 1) are numbered as by contraction_coarsen, unless nothing
 * is to be done. */
sp_status contraction_loosen(sp_context *context, const sp_csr *g, int32_t *labels, int64_t *groups, int64_t least);

typedef struct contraction_refinement {
    uint64_t seed;          /* decides between equals */
    double imbalance;       /* a part may weigh 1 + imbalance times the mean of the parts that have nodes, rounded up
                               to a whole number; 0: 0.03, or as much as the heaviest part has */
    const int64_t *weights; /* of nodes (host), `constraints` each, at least 0; NULL: 1 each */
    int constraints;
    int cycles;             /* at most; 0: 4. They end when two gain nothing */
} contraction_refinement;
/* An imbalance of 0. */
#define CONTRACTION_BALANCED (-1.0)

typedef struct contraction_refined {
    int64_t parts;                  /* that have nodes */
    double cut_before, cut;         /* the weight of the edges between parts, an edge counted once */
    double balance_before, balance; /* as in contraction_judgement */
    double bound;                   /* the greatest balance that was allowed */
    int64_t moves, passes;          /* of nodes, and on graphs of joined nodes of those; rounds of such moves */
    int cycles;
} contraction_refined;

/* Lowers the edge cut of a partition, as of one carried back from a coarse graph: moves nodes at the borders of parts,
 * on G and on graphs of joined nodes. G is symmetric and on the host. `labels` (host, below `groups`; negative: in no
 * part) are changed in place, on success only. No part with nodes loses all of them. The cut does not rise, unless
 * parts are heavier than how->imbalance, if it is not 0, allows: nodes leave these first, as long as others have room.
 * *made, which may be NULL, receives figures. The same for any number of threads. On every device the CPU moves the
 * nodes. `how` may be NULL. A cycle takes O(nnz) and O(degree · log nodes) a move. */
sp_status contraction_refine(sp_context *context, const sp_csr *g, int64_t groups, const contraction_refinement *how,
                             int32_t *labels, contraction_refined *made);

/* A function that labels one level of a hierarchy: fills `labels` (G.rows entries, where G lies) and *groups. */
typedef sp_status (*contraction_labeller)(sp_context *context, void *user, const sp_csr *g, int32_t *labels,
                                          int64_t *groups);

/* One level: map[i] is the group of node i of the previous graph, c the graph of the groups. */
typedef struct contraction_level {
    int64_t nodes, groups;
    int32_t *map;
    sp_csr c;
} contraction_level;

typedef struct contraction_hierarchy {
    int count;
    contraction_level *level; /* level 0 contracts G itself */
} contraction_hierarchy;

/* Contracts repeatedly by the labels of `labeller`, at most `levels` times. A level in which `labeller` makes as many
 * groups as there are nodes is not made and ends the hierarchy. G and all levels lie in host memory. Release the result
 * by contraction_hierarchy_free. */
sp_status contraction_repeat(sp_context *context, const sp_csr *g, int levels, contraction_labeller labeller,
                             void *user, const contraction_options *options, contraction_hierarchy *hierarchy);
void contraction_hierarchy_free(sp_context *context, contraction_hierarchy *hierarchy);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
