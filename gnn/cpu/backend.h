/* What the files of the CPU back end share: its operations, its state, threads, and sums over rows. */
#ifndef GNN_CPU_BACKEND_H
#define GNN_CPU_BACKEND_H

#include "internal.h"

/* The engine's `state`. */
typedef struct cpu_state {
    /* OpenBLAS's own threads, where that is the BLAS; else NULL. */
    void (*set_blas_threads)(int);
    int (*blas_threads)(void);
    void *scratch;
    int64_t scratch_bytes;
} cpu_state;

/* `count` entries of `size` bytes until the next call; grows, and is kept by the engine. */
sp_status gnn_cpu_scratch(gnn_engine *engine, int64_t count, size_t size, void **scratch);

/* Adds what rows begin .. end - 1 give to the sums, one a column. */
typedef void cpu_add_rows(const void *job, int64_t begin, int64_t end, double *sums);
/* sums[j] (of `type`) = Σ over all rows: chunks of rows side by side, then the chunks in their order. Chunks depend
 * on the shape alone, so that sums have the same bits whatever the threads. */
sp_status gnn_cpu_sum_rows(gnn_engine *engine, cpu_add_rows *add, const void *job, int64_t rows, int64_t cols,
                           sp_dense_type type, void *sums);

/* Threads for a loop of so many steps of a nanosecond or so: it takes a twentieth of a millisecond of work to be
 * worth waking one. */
static inline int cpu_threads(const gnn_engine *engine, int64_t steps)
{
    const int64_t useful = 1 + steps / 50000, most = sp_context_threads(engine->context);
    return (int)(useful < most ? useful : most);
}

static inline size_t cpu_size(sp_dense_type type) { return type == SP_DENSE_F32 ? sizeof(float) : sizeof(double); }

static inline void *cpu_row(const sp_dense *matrix, int64_t i)
{
    return (char *)matrix->values + (size_t)(i * matrix->stride) * cpu_size(matrix->type);
}

sp_status gnn_cpu_multiply(gnn_engine *engine, bool transpose_a, bool transpose_b, double alpha, const sp_dense *a,
                           const sp_dense *b, double beta, sp_dense *c);

sp_status gnn_cpu_forward(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *x, const void *bias,
                          sp_dense *y);
sp_status gnn_cpu_backward(gnn_engine *engine, const gnn_pointwise *how, const sp_dense *y,
                           const sp_dense *y_gradient, sp_dense *x_gradient, void *sums);
sp_status gnn_cpu_drop(gnn_engine *engine, double rate, uint64_t site, int64_t count, const void *x,
                       sp_dense_type type, void *y);
sp_status gnn_cpu_copy(gnn_engine *engine, const sp_dense *from, sp_dense *to);
sp_status gnn_cpu_round(gnn_engine *engine, const sp_dense *from, sp_dense *to);
sp_status gnn_cpu_fill(gnn_engine *engine, double value, sp_dense *to);
sp_status gnn_cpu_add(gnn_engine *engine, double alpha, const sp_dense *from, sp_dense *to);
sp_status gnn_cpu_column_sums(gnn_engine *engine, const sp_dense *x, void *sums);
sp_status gnn_cpu_gather_rows(gnn_engine *engine, const sp_dense *x, const int32_t *rows, sp_dense *y);

sp_status gnn_cpu_softmax_loss(gnn_engine *engine, const sp_dense *logits, const int32_t *nodes,
                               const int32_t *labels, const uint8_t *split, gnn_split of, int64_t count,
                               gnn_score *score, sp_dense *gradient, void *sums);
sp_status gnn_cpu_sigmoid_loss(gnn_engine *engine, const sp_dense *logits, const int32_t *nodes,
                               const uint8_t *targets, const uint8_t *split, gnn_split of, int64_t count,
                               gnn_score *score, sp_dense *gradient, void *sums);
sp_status gnn_cpu_probabilities(gnn_engine *engine, const sp_dense *x, bool softmax, sp_dense *y);

sp_status gnn_cpu_optimize(gnn_engine *engine, const gnn_optimizer_options *how, gnn_range decay, int64_t count,
                           sp_dense_type type, void *weights, const void *gradients, void *m, void *v,
                           gnn_pace *pace);

sp_status gnn_cpu_head_scores(gnn_engine *engine, const sp_dense *h, int heads, const void *vector, sp_dense *scores);
sp_status gnn_cpu_head_scores_backward(gnn_engine *engine, const sp_dense *h, int heads, const void *vector,
                                       const sp_dense *scores_gradient, sp_dense *h_gradient, void *vector_gradient);
sp_status gnn_cpu_edge_scores(gnn_engine *engine, const sp_csr *a, const sp_dense *left, const sp_dense *right,
                              int head, double slope, void *values);
sp_status gnn_cpu_edge_scores_backward(gnn_engine *engine, const sp_csr *a, const sp_csr *transpose,
                                       const int64_t *places, const sp_dense *left, const sp_dense *right, int head,
                                       double slope, void *values, sp_dense *left_gradient, sp_dense *right_gradient);
sp_status gnn_cpu_gather(gnn_engine *engine, const int64_t *places, int64_t count, const void *from,
                         sp_dense_type type, void *to);

sp_status gnn_cpu_maximum_backward(gnn_engine *engine, const sp_csr *transpose, const int64_t *places,
                                   const int64_t *argument, const sp_dense *y_gradient, sp_dense *x_gradient);

sp_status gnn_cpu_multiply_kept(gnn_engine *engine, const sp_dense *s, const sp_dense *w, sp_cbsr *kept);

#endif
