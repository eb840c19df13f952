/* What sampler.c, sample.c and the back ends share: the minibatches of a bulk while they are drawn, the operations on
 * them, and random numbers, which are the same on both back ends.
 *
 * The lists of a bulk are stacked: each of `count` minibatches has a list of nodes, one list follows the other, and
 * row r of the stack is node lists.nodes[r]. The place of a node in its minibatch's list is its row in the blocks
 * below and its column in the block above. Lists only grow, so places do not change. */
#ifndef GNN_SAMPLE_H
#define GNN_SAMPLE_H

#include <math.h>

#include "base/bits.h"
#include "internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- random numbers ----------------------------------------------------------------------------------- */

/* Sites of gnn_random beyond those of dropout; the step is the pass. The index is a place in the order, or minibatch
 * of the pass * nodes + node, so nothing depends on which minibatches are drawn together. */
enum { GNN_SITE_SHUFFLE = 0x10000, GNN_SITE_SAMPLE = 0x10001 /* + the layer */ };

/* A number below `bound` from 64 random bits; the bias is bound / 2^64. */
INLINE int64_t gnn_below(uint64_t bits, int64_t bound)
{
    return (int64_t)((unsigned __int128)bits * (uint64_t)bound >> 64);
}

/* The t-th number that follows from the random state of a row (SplitMix64). */
INLINE uint64_t gnn_follow(uint64_t state, int64_t t)
{
    return mix64(state + RANDOM_STEP * (uint64_t)(t + 1));
}

/* Exponentially distributed with mean 1: -log u, u in (0, 1] of 53 bits. Logarithms of libraries differ in the last
 * bit. This one is the same everywhere, as it uses operations that IEEE 754 defines: u = m · 2^e with m in [0.707,
 * 1.414], log m = 2 artanh((m - 1) / (m + 1)) in eleven terms. */
INLINE double gnn_exponential(uint64_t random)
{
    const uint64_t bits = bits_of_double((double)((random >> 11) + 1) * 0x1p-53), fraction = bits & 0xfffffffffffffu;
    int exponent = (int)(bits >> 52) - 1023;
    double m = double_of_bits(fraction | 0x3ff0000000000000u);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    const double f = (m - 1) / (m + 1), square = f * f;
    double sum = 0;
    for (int k = 10; k >= 0; k--) sum = sum * square + 1.0 / (2 * k + 1);
    return -((double)exponent * 0.69314718055994531 + 2 * f * sum);
}

/* 1 - exp(-x) for x >= 0, likewise. The relative error is a few units in the last place, also for small x. */
INLINE double gnn_chance(double x)
{
    if (!(x < 40)) return 1;
    const int k = (int)(x * 1.4426950408889634 + 0.5);
    const double t = (double)k * 0.69314718055994531 - x, half = double_of_bits((uint64_t)(1023 - k) << 52);
    double series = 1;
    for (int i = 17; i >= 2; i--) series = 1 + t * series / i;
    return 1 - half - half * (t * series);
}

/* The key of a candidate: by ascending key, candidates are successive draws with probabilities proportional to the
 * remaining weights (Efraimidis and Spirakis 2006). One without weight comes last. */
INLINE double gnn_key(uint64_t random, double weight)
{
    return weight > 0 ? gnn_exponential(random) / weight : double_of_bits(0x7ff0000000000000u);
}

/* What a drawn value is multiplied by, so that sums have no bias: 1 over the probability that its key is below the
 * smallest that was not drawn, given all other keys (Cohen and Kaplan 2007). */
INLINE double gnn_drawn_factor(double weight, double threshold)
{
    return weight > 0 ? 1 / gnn_chance(weight * threshold) : 1;
}

/* ---- a bulk -------------------------------------------------------------------------------- */

/* A list of nodes for each minibatch. Arrays lie in the context's space unless said otherwise. */
typedef struct gnn_lists {
    int64_t count;        /* of lists */
    int64_t *first;       /* count + 1, host: where each begins */
    int64_t *first_there; /* the same, in the context's space */
    int32_t *nodes;
} gnn_lists;

/* What was drawn for the rows of one layer, row after row. */
typedef struct gnn_drawn {
    int64_t *offsets; /* rows + 1 */
    int64_t *first;   /* lists + 1, host: where the entries of each minibatch begin */
    int32_t *cols;    /* nodes of the graph, ascending within a row but for GNN_SAMPLE_NODE */
    int32_t *at;      /* where the entry stands in the row of the matrix; NULL for patterns */
    double *thresholds; /* by_value: the smallest key of each row that was not drawn, or infinite; or NULL */
    double *scale;    /* of each node of the lists that the columns are: a factor of the entries; or NULL */
} gnn_drawn;

/* Where a block of one minibatch goes: offsets, columns and values of a layer, or in the end its list. */
typedef struct gnn_target {
    int64_t *offsets;
    int32_t *cols;
    void *values;
    int32_t *nodes;
} gnn_target;

struct gnn_sampler {
    sp_context *context;
    sp_space space; /* of the context */
    const struct gnn_sample_backend *backend;
    gnn_sampler_options options; /* `clusters` is NULL */
    sp_csr a, copy;              /* the matrix in that space, and the copy if it was elsewhere */
    int32_t *own;      /* GNN_SAMPLE_NODE: where a row's diagonal entry stands in it, or -1; NULL: no row has one */
    double *sums;      /* others, of matrices with values: Σ |value| of each row */
    double *weights;   /* GNN_SAMPLE_FASTGCN: Σ value² of each column */
    sp_csr squares;    /* GNN_SAMPLE_LAYER: each value squared; shares the arrays of `a` but the values */
    int64_t clusters, *cluster_first; /* GNN_SAMPLE_CLUSTER, host: where each one's nodes begin in */
    int32_t *cluster_nodes;

    int64_t asked_count; /* nodes of the last pass, on the host and in the context's space */
    int32_t *asked, *asked_there;
    uint64_t seed;
    int64_t pass, minibatches, next; /* of the pass; the first that is not drawn yet */
    int64_t *first;                  /* minibatches + 1, host: where each one's batch begins in */
    int32_t *nodes;
    gnn_minibatch *ready;            /* drawn, not yet handed out: from ready_next to ready_count - 1 */
    int64_t ready_count, ready_next;

    /* For each minibatch of a bulk and each node of the graph. Between bulks places are -1, bits 0. */
    int64_t lists, words; /* minibatches that there is room for; 32-bit words of bits of each */
    int32_t *place;       /* lists x nodes: the node's place in the list, or -1 */
    uint32_t *known;      /* lists x words: the nodes in the list */
    uint32_t *drawn;      /* lists x words: nodes drawn for this layer, in the list or not */
};

/* Makes, fills and frees arrays in the context's space. `array` points to the pointer; `from` is on the host. */
static inline sp_status gnn_sample_array(const gnn_sampler *s, int64_t count, size_t size, void *array)
{
    return sp_array_create(s->context, count, size, s->space, (void **)array);
}

static inline sp_status gnn_sample_place(const gnn_sampler *s, int64_t count, size_t size, const void *from,
                                         void *array)
{
    const sp_status status = gnn_sample_array(s, count, size, array);
    if (status != SP_OK) return status;
    return sp_array_copy(s->context, count, size, *(void **)array, s->space, from, SP_HOST);
}

static inline void gnn_sample_array_free(const gnn_sampler *s, void *array)
{
    sp_array_free(s->context, s->space, array);
}

/* sample.c: draws the next `count` minibatches of the pass into the sampler's `ready`; frees those; frees the marks. */
sp_status gnn_sample_bulk(gnn_sampler *s, int64_t count);
void gnn_sample_drop(gnn_sampler *s);
void gnn_sample_free_marks(gnn_sampler *s);

/* ---- the operations ----------------------------------------------------------------------------------- */

/* One back end. `number` is the place of the bulk's first minibatch in the pass. */
typedef struct gnn_sample_backend {
    /* Sets the marks of `lists` lists to -1 and 0. */
    sp_status (*clear)(const gnn_sampler *sampler, int64_t lists);
    /* to = from, sorted by the upper 32 bits of each entry's random number; equal ones keep their order. */
    sp_status (*shuffle)(const gnn_sampler *sampler, int64_t pass, int64_t count, const int32_t *from, int32_t *to);
    /* Marks the nodes of the lists as known, with their places. Writes first_there. */
    sp_status (*enter)(const gnn_sampler *sampler, const gnn_lists *lists);
    /* Clears these marks, and writes each list to its target. */
    sp_status (*leave)(const gnn_sampler *sampler, const gnn_lists *lists, const gnn_target *targets);
    /* `count`: the offsets of the entries that `draw` will write. `sizes`: where the entries of each list begin. */
    sp_status (*count)(const gnn_sampler *sampler, const gnn_lists *rows, int64_t fanout, gnn_drawn *drawn);
    sp_status (*sizes)(const gnn_sampler *sampler, const gnn_lists *rows, gnn_drawn *drawn);
    /* Node-wise: draws `fanout` of a row's entries (all if there are no more), each set of that size with the same
     * probability or by value, keeps the row's own entry, and marks their columns as drawn. Otherwise: takes the
     * entries of known columns. */
    sp_status (*draw)(const gnn_sampler *sampler, const gnn_lists *rows, int64_t number, int layer, int64_t fanout,
                      gnn_drawn *drawn);
    /* Lists the known nodes, or those that are drawn and not known, ascending. Writes `first` on both sides and
     * allocates the nodes. */
    sp_status (*list)(const gnn_sampler *sampler, bool fresh, gnn_lists *lists);
    /* Row m of P holds the candidates of minibatch m with weights w: P's values, or the sampler's. A candidate that
     * is not known gets the key E / w, E exponential: candidates by ascending key are successive draws with
     * probabilities proportional to the remaining weights (Efraimidis and Spirakis 2006). The first `fanout` are
     * marked as drawn. thresholds[m] is the smallest other key, or infinite. */
    sp_status (*choose)(const gnn_sampler *sampler, const sp_csr *p, int64_t number, int layer, int64_t fanout,
                        double *thresholds);
    /* grown = lists, each followed by its fresh nodes, which become known. No node is drawn afterwards. Writes
     * first_there. */
    sp_status (*grow)(const gnn_sampler *sampler, const gnn_lists *lists, const gnn_lists *fresh, gnn_lists *grown);
    /* Writes a scale for each node of the grown lists: 1 for those of `lists`, for the others 1 over the probability
     * that E is below w · threshold, given all other keys. Sums over scaled samples have no bias (Cohen and Kaplan
     * 2007). */
    sp_status (*weigh)(const gnn_sampler *sampler, const sp_csr *p, const double *thresholds, const gnn_lists *lists,
                       const gnn_lists *grown, double *scale);
    /* Writes the blocks. Columns are places, ascending. Node-wise, a drawn value is multiplied by the number of
     * entries to draw from over the number of draws, or by value as gnn_drawn_factor has it. Otherwise it is multiplied
     * by its column's scale, and then each row is scaled to its Σ |value| in the matrix. */
    sp_status (*finish)(const gnn_sampler *sampler, const gnn_lists *rows, const gnn_lists *columns,
                        const gnn_drawn *drawn, int64_t fanout, const gnn_target *targets);
} gnn_sample_backend;

extern const gnn_sample_backend gnn_sample_cpu;
#ifdef GNN_CUDA
extern const gnn_sample_backend gnn_sample_cuda;
#endif

#ifdef __cplusplus
}
#endif
#endif
