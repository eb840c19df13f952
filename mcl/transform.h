/* Transforms: the operations of a list, and what their files share. transform_list.c reads lists, transform.c applies
 * them and has the operations on single weights, transform_graph.c those on the whole graph. */
#ifndef MCL_TRANSFORM_H
#define MCL_TRANSFORM_H

#include "base/try.h"
#include "mcl.h"

typedef enum tf_kind {
    LT, LQ, GQ, GT, /* filters first: see is_filter */
    CEIL, FLOOR, MUL, ADD, POW, EXP, LOG, NEGLOG, RAND, SCALE, ABS, ACOS,
    KNN, KNNJ, CEILNB, ILS, MCL, SYMMCL, EDGE_ADD, EDGE_MIN, EDGE_MAX, EDGE_MUL, ARCMAX, ARCSUB, TRANSPOSE, SELFRM,
    SELFMAX, STEP, THREAD, UNSUPPORTED
} tf_kind;

typedef enum tf_argument { NONE, OPTIONAL, NUMBER, BASE, COUNT, INFLATION } tf_argument;

typedef struct tf_definition {
    const char *name;
    tf_kind kind;
    tf_argument argument;
} tf_definition;

typedef struct tf_operation {
    const tf_definition *definition;
    float number;  /* 0 when left out: the base e */
    int64_t count; /* the number rounded to the nearest integer, as mcl does */
} tf_operation;

struct mcl_transform {
    int64_t count;
    tf_operation *operations;
};

/* Operations that keep a weight or make it 0; on a single weight; others see the whole graph. */
static inline bool is_filter(tf_kind kind) { return kind <= GT; }
static inline bool is_value(tf_kind kind) { return kind <= ACOS; }

/* How many threads work on a graph of this size. */
int transform_threads(const sp_context *context, const sp_csr *graph);
/* Squeezes out the arcs whose weight is 0. */
void transform_drop_zeros(sp_csr *graph);
sp_status transform_check_finite(sp_context *context, const sp_csr *graph, const char *name);
/* A "#..." operation. `options` may be NULL: #mcl takes its pruning. */
sp_status transform_arcs(sp_context *context, const tf_operation *operation, const mcl_options *options, sp_csr *graph);

#endif
