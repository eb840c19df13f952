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
} partition;

/* Lowers the weight of the edges between parts. Adds to *gained by how much. */
sp_status move_nodes(partition *p, double *gained);

#endif
