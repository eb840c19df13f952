/* Moves of single nodes between the parts of a partition; see moves.c. */
#ifndef CONTRACTION_MOVES_H
#define CONTRACTION_MOVES_H

#include "internal.h"

/* A partition on its way. Nodes with a negative label are in no part and do not move. */
typedef struct partition {
    sp_context *context;
    const sp_csr *g;        /* symmetric, on the host */
    const int64_t *weights; /* of nodes, `constraints` each */
    int constraints;
    const double *cap;      /* greatest weight of a part, by constraint */
    int64_t parts;
    double least;           /* gains up to it may be rounding */
    uint64_t seed;          /* decides between equals */
    int32_t *labels;
    contraction_refined *made; /* its cut, moves and passes are kept up to date */
} partition;

/* Moves nodes out of parts that are heavier than p->cap, as far as others have room, those first that raise the cut
 * least. *excess is the weight that is still too much in all parts together. */
sp_status lighten_parts(partition *p, double *excess);
/* Lowers the weight of the edges between parts. */
sp_status move_nodes(partition *p);

#endif
