/* What the files of the CPU back end share: operations, state, threads, and sums over rows. */
#ifndef GNN_CPU_BACKEND_H
#define GNN_CPU_BACKEND_H

#include <string.h>

#include "base/half.h"
#include "internal.h"

/* The engine's `state`. */
typedef struct cpu_state {
    /* The number of threads of OpenBLAS; NULL for another BLAS. */
    void (*set_blas_threads)(int);
    int (*blas_threads)(void);
    void *scratch;
    int64_t scratch_bytes;
    float *packed; /* of gemm.c */
    int64_t packed_count;
} cpu_state;

/* `count` entries of `size` bytes, valid until the next call. The engine keeps the memory. */
sp_status gnn_cpu_scratch(gnn_engine *engine, int64_t count, size_t size, void **scratch);

/* Adds rows begin .. end - 1 to the sums, one a column. */
typedef void cpu_add_rows(const void *job, int64_t begin, int64_t end, double *sums);
/* sums[j] (of `type`) = Σ over all rows: first within chunks of rows, in parallel, then over the chunks in their
 * order. Chunks depend on the shape alone, so the bits do not depend on the number of threads. */
sp_status gnn_cpu_sum_rows(gnn_engine *engine, cpu_add_rows *add, const void *job, int64_t rows, int64_t cols,
                           sp_dense_type type, void *sums);

/* Threads for a loop of `steps` steps of about a nanosecond: one for each 50 µs of work. */
static inline int cpu_context_threads(const sp_context *context, int64_t steps)
{
    const int64_t useful = 1 + steps / 50000, most = sp_context_threads(context);
    return (int)(useful < most ? useful : most);
}

static inline int cpu_threads(const gnn_engine *engine, int64_t steps)
{
    return cpu_context_threads(engine->context, steps);
}

static inline void *cpu_row(const sp_dense *matrix, int64_t i)
{
    return (char *)matrix->values + (size_t)(i * matrix->stride) * number_size(matrix->type);
}

/* The columns j .. j + cols - 1 of the rows i .. i + rows - 1. */
static inline sp_dense cpu_part(const sp_dense *matrix, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    sp_dense part = *matrix;
    part.rows = rows;
    part.cols = cols;
    part.values = (char *)cpu_row(matrix, i) + (size_t)j * number_size(matrix->type);
    return part;
}

/* 1 at least, even where `most` is less. */
static inline int64_t cpu_at_most(int64_t value, int64_t most)
{
    return value < 1 || most < 1 ? 1 : value < most ? value : most;
}

/* The number of tasks of a product, by its shape alone: at most 32, of at least 65,536 multiplications each. Smaller
 * tasks spend more on calls and on packing A and B than threads save: of 64 tasks each would pack the 500 rows of W
 * for 1,400 of X on Flickr's shape. cpu_steps: its steps for cpu_threads. */
static inline int64_t cpu_tasks(int64_t rows, int64_t cols, int64_t inner)
{
    return cpu_at_most((int64_t)((double)rows * (double)cols * (double)inner / (1 << 16)), 32);
}

static inline int64_t cpu_steps(int64_t rows, int64_t cols, int64_t inner)
{
    return (int64_t)((double)rows * (double)cols * (double)inner / 16);
}

/* ---- bf16 ----------------------------------------------------------------------------------------------- */

static inline bool cpu_is_half(const sp_dense *matrix) { return matrix->type == SP_DENSE_BF16; }

/* half.c: `count` numbers. */
void gnn_cpu_widen_row(const uint16_t *from, float *to, int64_t count);
/* Asks for the numbers `ahead` of these, unless that is 0. */
void gnn_cpu_widen_ahead(const uint16_t *from, float *to, int64_t count, int64_t ahead);
void gnn_cpu_round_row(const float *from, uint16_t *to, int64_t count);

/* For operations that know no bf16. *wide is the matrix, or if it is bf16 an f32 matrix of the same shape: with its
 * numbers if `read`. cpu_leave_wide frees that, after it has rounded its numbers to `narrow`, unless that is NULL.
 */
sp_status gnn_cpu_wide(gnn_engine *engine, const sp_dense *matrix, bool read, sp_dense *wide);
void gnn_cpu_leave_wide(gnn_engine *engine, const sp_dense *matrix, sp_dense *narrow, sp_dense *wide);

/* gemm.c: C_k = alpha · op(A) · op(B_k) + beta · C_k for one or two B, on the calling thread. A may have more rows
 * than C_2, or with the transpose than B_2: the first ones count. Each matrix may be bf16 in place of f32, but with the
 * transpose not C, if gnn_cpu_multiplies_half; C is rounded once. Calls from threads 0 .. `threads` - 1 stand between
 * _begin and _end; they have at most `inner` terms, and `cols` columns of all C together. `half`: any of bf16. */
typedef struct cpu_gemm {
    bool transpose_a, transpose_b;
    double alpha, beta;
    sp_dense a;
    int count;
    sp_dense b[2], c[2];
} cpu_gemm;
typedef struct cpu_gemm_room {
    const struct gemm_loops *loops; /* NULL: BLAS, which had blas_threads threads */
    float *packed, *wide;    /* wide: copies of bf16 in f32 */
    int64_t each, wide_each; /* numbers of a thread */
    int blas_threads;
} cpu_gemm_room;
sp_status gnn_cpu_gemm_begin(gnn_engine *engine, sp_dense_type type, int threads, int64_t inner, int64_t cols,
                             bool half, cpu_gemm_room *room);
bool gnn_cpu_multiplies_half(void);
/* half.c: the same where a C is bf16, with so much work space for as many columns of all C together, or fewer. */
int64_t gnn_cpu_half_numbers(int64_t cols);
void gnn_cpu_gemm_half(const cpu_gemm *g, const cpu_gemm_room *room, float *space);
void gnn_cpu_gemm(const cpu_gemm *g, const cpu_gemm_room *room);
void gnn_cpu_gemm_end(const gnn_engine *engine, const cpu_gemm_room *room);
bool gnn_cpu_fits_blas(const sp_dense *matrix);

/* pointwise.c: activation and dropout of rows begin .. end - 1. */
typedef struct cpu_mask {
    uint64_t seed, site, bound; /* bound 0: nothing is dropped */
    int64_t step;
    double scale;
    gnn_activation activation;
} cpu_mask;

cpu_mask gnn_cpu_mask(const gnn_engine *engine, const gnn_pointwise *how);
void gnn_cpu_forward_rows(const cpu_mask *how, const sp_dense *x, const void *bias, sp_dense *y, int64_t begin,
                          int64_t end);
/* `sums` (or NULL) grow by the rows of dX. */
void gnn_cpu_backward_rows(const cpu_mask *how, const sp_dense *y, const sp_dense *y_gradient, sp_dense *x_gradient,
                           int64_t begin, int64_t end, double *sums);

#define GNN_OPERATION(name, ...) sp_status gnn_cpu_##name(gnn_engine *engine, __VA_ARGS__);
#include "operations.inc"

#endif
