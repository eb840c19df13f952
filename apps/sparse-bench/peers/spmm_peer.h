/* What the library of a peer's product Y = A·X offers to sparse-bench, which opens it: BUILD/peers/bin/spmm-NAME.so,
 * made by build.sh with spmm_peer.cuh. Numbers are f32, X and Y lie row by row, A is compressed by rows with offsets of
 * 32 bits. Calls return NULL, or why they failed. */
#ifndef SPARSE_BENCH_SPMM_PEER_H
#define SPARSE_BENCH_SPMM_PEER_H

#include <stdint.h>

/* Arrays on the device, and offsets in host memory too; all stay until forget. SPMM_PEER_SPARE zeros follow columns and
 * values, since some peers read whole vectors. */
enum { SPMM_PEER_SPARE = 256 };
typedef struct spmm_peer_operands {
    int64_t rows, cols, nnz, width; /* of A; columns of X */
    const int32_t *host_offsets;
    int32_t *offsets, *columns;
    float *values, *x, *y;
} spmm_peer_operands;

typedef struct spmm_peer_calls {
    const char *name; /* and commit */
    const char *(*prepare)(const spmm_peer_operands *operands); /* for A and the width; finished on return */
    const char *(*run)(void);  /* starts a product */
    const char *(*wait)(void); /* until all is finished */
    void (*forget)(void);      /* drops the preparations, if there are any */
} spmm_peer_calls;

/* Its only symbol. */
#define SPMM_PEER_SYMBOL "spmm_peer_table"

#endif
