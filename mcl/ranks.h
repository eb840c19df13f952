/* The steps of the process that several processes take together (sp_ranks in mcl.h): each keeps the rows cut[rank] to
 * cut[rank + 1] - 1 of the iterand. */
#ifndef MCL_RANKS_H
#define MCL_RANKS_H

#include "mcl.h"

/* A matrix of this many entries stays in cache however its nodes are numbered. */
enum { RENUMBER_NNZ = 200000 };
/* Rows are cut again when a process has more than this many times the mean of the work. */
static const double MCL_RANKS_UNEVEN = 1.1;
/* The products that a process forms while it receives an entry: at 25 GB/s, and 7·10⁸ products a second on each of 64
 * cores. Few processes receive nearly as much with any cut, and then only products count. */
static inline int64_t mcl_ranks_received(int processes) { return processes >= 64 ? 16 : 0; }

/* Cuts the rows so that all processes get about equally many products and rows; *cut has size + 1 elements. *part is
 * this process's rows. */
sp_status mcl_ranks_cut(sp_context *context, const sp_ranks *ranks, const sp_csr *whole, int64_t **cut, sp_csr *part);

/* The same for a start matrix of which each process gives the rows given[rank] to given[rank + 1] - 1 (share.c).
 * *order: the new numbering of the nodes, NULL: as they were. *nnz: entries of the whole. */
sp_status mcl_ranks_share(sp_context *context, const sp_ranks *ranks, const sp_csr *start, const int64_t *given,
                          int64_t **cut, int32_t **order, sp_csr *part, int64_t *nnz);

/* If a process has too much work with the product of the iterand and itself, cuts the rows again, and moves them. */
sp_status mcl_ranks_even(sp_context *context, const sp_ranks *ranks, int64_t *cut, sp_csr *part, bool *moves);

/* As sp_spgemm_markov of the whole matrix with itself, for this process's rows; *next is in host memory. */
sp_status mcl_ranks_expand(sp_context *context, const sp_ranks *ranks, const int64_t *cut, const sp_csr *part,
                           const sp_markov_epilogue *epilogue, sp_csr *next, sp_markov_row *rows,
                           sp_spgemm_info *info);

/* At process 0: `rows`, which begins with its own, gets those of all; counts of the iteration become sums, times the
 * longest. */
sp_status mcl_ranks_gather(sp_context *context, const sp_ranks *ranks, const int64_t *cut, sp_markov_row *rows,
                           mcl_iteration *iteration);

/* A step that each process takes by itself has ended with this status. An interrupt of one is one of all; with another
 * failure the process returns at once, and the others wait. */
sp_status mcl_ranks_go_on(sp_context *context, const sp_ranks *ranks, sp_status status);

#endif
