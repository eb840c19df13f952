/* The steps of the process that several processes take together (mcl_ranks in mcl.h): each keeps the rows cut[rank] to
 * cut[rank + 1] - 1 of the iterand. */
#ifndef MCL_RANKS_H
#define MCL_RANKS_H

#include "mcl.h"

/* Cuts the rows so that all processes get about equally many products and rows; *cut has size + 1 elements. *part is
 * this process's rows. */
sp_status mcl_ranks_cut(sp_context *context, const mcl_ranks *ranks, const sp_csr *whole, int64_t **cut, sp_csr *part);

/* As sp_spgemm_markov of the whole matrix with itself, for this process's rows; *next is in host memory. */
sp_status mcl_ranks_expand(sp_context *context, const mcl_ranks *ranks, const int64_t *cut, const sp_csr *part,
                           const sp_markov_epilogue *epilogue, sp_csr *next, sp_markov_row *rows,
                           sp_spgemm_info *info);

/* At process 0: `rows`, which begins with its own, gets those of all; counts of the iteration become sums, times the
 * longest. */
sp_status mcl_ranks_gather(sp_context *context, const mcl_ranks *ranks, const int64_t *cut, sp_markov_row *rows,
                           mcl_iteration *iteration);

/* `bytes` of process 0 become those of all. */
sp_status mcl_ranks_agree(sp_context *context, const mcl_ranks *ranks, void *bytes, int64_t count);

#endif
