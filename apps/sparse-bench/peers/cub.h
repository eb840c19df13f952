/* The quotient graph by sorting, behind C: see cub.cu. Everything lies on the device. */
#ifndef BENCH_CUB_H
#define BENCH_CUB_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cub_graph {
    int64_t nodes, groups;
    int32_t nnz;
    const int64_t *offsets;
    const int32_t *cols, *labels;
    const void *values;
    bool wide; /* values are doubles, else floats */
} cub_graph;

typedef struct cub_quotient {
    int64_t nnz;
    int64_t *offsets; /* groups + 1 */
    int32_t *cols;
    void *values;
} cub_quotient;

/* C, from the pool, finished on return; on failure what has been taken for C is still there to be freed. `all_bits`:
 * keys of 64 bits that are sorted by all of them, else by those that keys have, as 32 where they suffice. */
cudaError_t cub_contract(const cub_graph *graph, bool all_bits, cudaMemPool_t pool, cudaStream_t stream,
                         cub_quotient *quotient);

/* S and Sᵀ of labels: a group's row lists its nodes, in any order, a node's its label. All have room. */
typedef struct cub_labelling {
    const int32_t *labels; /* Sᵀ's columns as well */
    int32_t nodes, groups;
    bool wide;
    int32_t *offsets, *cols, *offsets_transposed;
    void *values, *values_transposed;
} cub_labelling;

/* Enqueued on return. */
cudaError_t cub_make_labelling(const cub_labelling *s, cudaMemPool_t pool, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
