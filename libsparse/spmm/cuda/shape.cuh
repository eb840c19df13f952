/* Which lane takes which columns of X: see shape.cu. */
#ifndef SPARSE_CUDA_SPMM_SHAPE_CUH
#define SPARSE_CUDA_SPMM_SHAPE_CUH

#include "spmm/cuda/spmm.cuh"
#include "spmm/plan.h"

/* Columns of the narrowest tile of X, 128 bytes in f32: a whole line of the caches. */
static const int64_t TILE_COLUMNS = 32;
enum { LINE_BYTES = 128, WORD = 16 /* bytes, of the caches and of the longest load */ };

/* Whether rows begin at lines of the caches. */
bool cuda_spmm_at_lines(const sp_dense *matrix);
/* Whether packets of this many numbers are aligned in every row. */
bool cuda_spmm_fits(const sp_dense *matrix, int64_t numbers);
/* Whether rows of X are one tile of 9 to 12 packets, so that lanes load two entries at a time; `most`: columns that the
 * cache holds. */
bool cuda_spmm_takes_pairs(const sp_dense *x, const sp_dense *y, bool extreme, sp_spmm_algorithm algorithm,
                           int64_t most);
/* Whether a row of X is one packet, whose entries lanes take apart: one to four columns. */
bool cuda_spmm_takes_apart(const sp_dense *x, const sp_dense *y);
/* The shape and the operands of a product. Where X or Y does not lie on the device, as they would be there. */
sp_status cuda_spmm_describe(sp_context *context, const sp_csr *a, const sp_spmm_options *options,
                             const spmm_state *state, double alpha, const sp_dense *x, double beta, const sp_dense *y,
                             int64_t *argument, spmm_shape *shape, spmm_product *product);

#endif
