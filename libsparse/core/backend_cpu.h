/* The operations of the CPU back end, one file each. */
#ifndef SPARSE_CPU_BACKEND_H
#define SPARSE_CPU_BACKEND_H

#include "core/internal.h"

sp_status sp_cpu_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                        sp_csr *c, sp_spgemm_info *info);
sp_status sp_cpu_spgemm_symbolic(sp_context *context, const sp_csr *a, const sp_csr *b,
                                 const sp_spgemm_options *options, sp_csr *pattern, void **state,
                                 sp_spgemm_info *info);
sp_status sp_cpu_spgemm_numeric(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, void *state, sp_csr *c);
void sp_cpu_spgemm_forget(sp_context *context, void *state);
sp_status sp_cpu_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b,
                               const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                               sp_spgemm_info *info);
sp_status sp_cpu_inverse_lengths(sp_context *context, const sp_csr *a, double *factors);
sp_status sp_cpu_similarity(sp_context *context, const sp_csr *a, const double *factors, const sp_csr *b,
                            const sp_similarity_options *options, sp_csr *c, sp_spgemm_info *info);
sp_status sp_cpu_contract(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                          const sp_contract_options *options, sp_csr *c, sp_contract_info *info);
sp_status sp_cpu_triple_product(sp_context *context, const sp_csr *s, const sp_csr *g, sp_csr *c,
                                sp_spgemm_info *info, bool *done);
sp_status sp_cpu_spmm_prepare(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                              void **state, sp_spmm_info *info);
sp_status sp_cpu_spmm_refresh(sp_context *context, const sp_csr *a, void *state);
sp_status sp_cpu_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state, double alpha,
                      const sp_dense *x, double beta, sp_dense *y, int64_t *argument);
void sp_cpu_spmm_forget(sp_context *context, void *state);
sp_status sp_cpu_spmm_heads(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                            const int64_t *places, int64_t head_width, double alpha, const sp_dense *x, double beta,
                            sp_dense *y, bool *done);
sp_status sp_cpu_sddmm(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values);
sp_status sp_cpu_edge_softmax(sp_context *context, const sp_csr *a, int64_t heads, void *values);
sp_status sp_cpu_edge_softmax_backward(sp_context *context, const sp_csr *a, int64_t heads, const void *softmax,
                                       void *gradient);
sp_status sp_cpu_maxk(sp_context *context, const sp_dense *x, sp_cbsr *kept);
sp_status sp_cpu_maxk_expand(sp_context *context, const sp_cbsr *kept, sp_dense *x);
sp_status sp_cpu_maxk_spmm(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                           double alpha, const sp_cbsr *kept, double beta, sp_dense *y);
sp_status sp_cpu_maxk_spmm_backward(sp_context *context, const sp_csr *a, const sp_spmm_options *options, void *state,
                                    const sp_dense *gradient, sp_cbsr *kept);
sp_status sp_cpu_add(sp_context *context, double alpha, const sp_csr *a, double beta, const sp_csr *b, sp_csr *c);
sp_status sp_cpu_scale(sp_context *context, const sp_csr *a, const double *row_factors, const double *col_factors,
                       void *values);
sp_status sp_cpu_extract(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                         const int32_t *cols, int64_t col_count, sp_csr *b);
sp_status sp_cpu_find_outside(sp_context *context, const int32_t *list, int64_t count, int64_t bound, int64_t *place);
sp_status sp_cpu_top_k(sp_context *context, const sp_csr *a, int64_t k, sp_csr *b);
sp_status sp_cpu_reduce_rows(sp_context *context, const sp_csr *a, sp_combine combine, double *result);
sp_status sp_cpu_degree_order(sp_context *context, const sp_csr *a, int32_t *order);
sp_status sp_cpu_sample_rows(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                             const int64_t *offsets, uint64_t seed, int64_t *places);
sp_status sp_cpu_hadamard(sp_context *context, const sp_csr *a, const sp_csr *b, sp_csr *c);
sp_status sp_cpu_select(sp_context *context, const sp_csr *a, sp_select select, double bound, sp_csr *b);

#endif
