/* The CUDA code of this module: coarsening, and what hierarchies need between two levels. Matrices and arrays lie on
 * the device of the context. Results have the bits of the CPU's. */
#ifndef CONTRACTION_ON_DEVICE_H
#define CONTRACTION_ON_DEVICE_H

#include "contraction.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As contraction_coarsen, but for how->least, which it does not know. Where a matching needs a step that takes the
 * nodes one by one (directed graphs, long chains of rising weights), *complete is false, and labels mean nothing. */
sp_status contraction_cuda_coarsen(sp_context *context, const sp_csr *g, const contraction_coarsening *how,
                                   int32_t *labels, int64_t *groups, bool *complete);
/* As contraction_add_weights. */
sp_status contraction_cuda_add_weights(sp_context *context, const int32_t *labels, int64_t nodes, int64_t groups,
                                       double *weights);
/* As contraction_mirror. */
sp_status contraction_cuda_mirror(sp_context *context, sp_csr *c, bool *symmetric);

#ifdef __cplusplus
}
#endif
#endif
