/* Attention of GAT on the CPU: scores of nodes and of edges, with their gradients. Threads share the rows. A column's
 * sum runs over a row of the transpose, so every sum has one thread and one order. */
#include "backend.h"

typedef struct heads_job {
    const sp_dense *h, *scores_gradient;
    sp_dense *h_gradient;
    const void *vector;
    int heads;
} heads_job;

#define HEADS(type)                                                                                              \
    static void scores_##type(const type *h, const type *vector, int heads, int64_t width, type *scores)         \
    {                                                                                                            \
        for (int head = 0; head < heads; head++) {                                                               \
            type sum = 0;                                                                                        \
            for (int64_t k = head * width; k < (head + 1) * width; k++) sum += h[k] * vector[k];                 \
            scores[head] = sum;                                                                                  \
        }                                                                                                        \
    }                                                                                                            \
    static void scores_backward_##type(const type *h, const type *vector, const type *ds, int heads,             \
                                       int64_t width, type *dh, double *sums)                                    \
    {                                                                                                            \
        for (int head = 0; head < heads; head++)                                                                 \
            for (int64_t k = head * width; k < (head + 1) * width; k++) {                                        \
                dh[k] += ds[head] * vector[k];                                                                   \
                sums[k] += (double)ds[head] * (double)h[k];                                                      \
            }                                                                                                    \
    }

HEADS(float)
HEADS(double)

sp_status gnn_cpu_head_scores(gnn_engine *engine, const sp_dense *h, int heads, const void *vector, sp_dense *scores)
{
    const int64_t width = h->cols / heads;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, h->rows * h->cols))
    for (int64_t i = 0; i < h->rows; i++)
        if (h->type == SP_DENSE_F32) scores_float(cpu_row(h, i), vector, heads, width, cpu_row(scores, i));
        else scores_double(cpu_row(h, i), vector, heads, width, cpu_row(scores, i));
    return SP_OK;
}

static void add_scores_backward(const void *job, int64_t begin, int64_t end, double *sums)
{
    const heads_job *j = job;
    const int64_t width = j->h->cols / j->heads;
    for (int64_t i = begin; i < end; i++) {
        const void *h = cpu_row(j->h, i), *ds = cpu_row(j->scores_gradient, i);
        void *dh = cpu_row(j->h_gradient, i);
        if (j->h->type == SP_DENSE_F32) scores_backward_float(h, j->vector, ds, j->heads, width, dh, sums);
        else scores_backward_double(h, j->vector, ds, j->heads, width, dh, sums);
    }
}

sp_status gnn_cpu_head_scores_backward(gnn_engine *engine, const sp_dense *h, int heads, const void *vector,
                                       const sp_dense *scores_gradient, sp_dense *h_gradient, void *vector_gradient)
{
    const heads_job job = {h, scores_gradient, h_gradient, vector, heads};
    return gnn_cpu_sum_rows(engine, add_scores_backward, &job, h->rows, h->cols, h->type, vector_gradient);
}

/* ---- edges --------------------------------------------------------------------------------------------- */

/* Forward: values = leakyrelu(left + right). Backward: values times its derivative, and their sum. Rows of `right`
 * are `stride` numbers apart. */
#define EDGES(type)                                                                                              \
    static void row_scores_##type(const int32_t *cols, int64_t count, type left, const type *right,              \
                                  int64_t stride, type slope, type *values)                                      \
    {                                                                                                            \
        for (int64_t e = 0; e < count; e++) {                                                                    \
            const type score = left + right[cols[e] * stride];                                                   \
            values[e] = score > 0 ? score : slope * score;                                                       \
        }                                                                                                        \
    }                                                                                                            \
    static type row_backward_##type(const int32_t *cols, int64_t count, type left, const type *right,            \
                                    int64_t stride, type slope, type *values)                                    \
    {                                                                                                            \
        double sum = 0;                                                                                          \
        for (int64_t e = 0; e < count; e++) {                                                                    \
            if (!(left + right[cols[e] * stride] > 0)) values[e] *= slope;                                       \
            sum += (double)values[e];                                                                            \
        }                                                                                                        \
        return (type)sum;                                                                                        \
    }                                                                                                            \
    static type gathered_sum_##type(const int64_t *places, int64_t count, const type *values)                    \
    {                                                                                                            \
        double sum = 0;                                                                                          \
        for (int64_t t = 0; t < count; t++) sum += (double)values[places[t]];                                    \
        return (type)sum;                                                                                        \
    }

EDGES(float)
EDGES(double)

sp_status gnn_cpu_edge_scores(gnn_engine *engine, const sp_csr *a, const sp_dense *left, const sp_dense *right,
                              int head, double slope, void *values)
{
#pragma omp parallel for schedule(dynamic, 256) num_threads(cpu_threads(engine, 2 * a->nnz + a->rows))
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = a->row_offsets[i], count = a->row_offsets[i + 1] - begin;
        if (left->type == SP_DENSE_F32)
            row_scores_float(a->col_indices + begin, count, ((const float *)cpu_row(left, i))[head],
                             (const float *)right->values + head, right->stride, (float)slope,
                             (float *)values + begin);
        else
            row_scores_double(a->col_indices + begin, count, ((const double *)cpu_row(left, i))[head],
                              (const double *)right->values + head, right->stride, slope, (double *)values + begin);
    }
    return SP_OK;
}

sp_status gnn_cpu_edge_scores_backward(gnn_engine *engine, const sp_csr *a, const sp_csr *transpose,
                                       const int64_t *places, const sp_dense *left, const sp_dense *right, int head,
                                       double slope, void *values, sp_dense *left_gradient, sp_dense *right_gradient)
{
#pragma omp parallel for schedule(dynamic, 256) num_threads(cpu_threads(engine, 2 * a->nnz + a->rows))
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = a->row_offsets[i], count = a->row_offsets[i + 1] - begin;
        if (left->type == SP_DENSE_F32)
            ((float *)cpu_row(left_gradient, i))[head] =
                row_backward_float(a->col_indices + begin, count, ((const float *)cpu_row(left, i))[head],
                                   (const float *)right->values + head, right->stride, (float)slope,
                                   (float *)values + begin);
        else
            ((double *)cpu_row(left_gradient, i))[head] =
                row_backward_double(a->col_indices + begin, count, ((const double *)cpu_row(left, i))[head],
                                    (const double *)right->values + head, right->stride, slope,
                                    (double *)values + begin);
    }
#pragma omp parallel for schedule(dynamic, 256) num_threads(cpu_threads(engine, 2 * a->nnz + a->cols))
    for (int64_t j = 0; j < transpose->rows; j++) {
        const int64_t begin = transpose->row_offsets[j], count = transpose->row_offsets[j + 1] - begin;
        if (right->type == SP_DENSE_F32)
            ((float *)cpu_row(right_gradient, j))[head] = gathered_sum_float(places + begin, count, values);
        else ((double *)cpu_row(right_gradient, j))[head] = gathered_sum_double(places + begin, count, values);
    }
    return SP_OK;
}

sp_status gnn_cpu_gather(gnn_engine *engine, const int64_t *places, int64_t count, const void *from,
                         sp_dense_type type, void *to)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, 2 * count))
    for (int64_t t = 0; t < count; t++)
        if (type == SP_DENSE_F32) ((float *)to)[t] = ((const float *)from)[places[t]];
        else ((double *)to)[t] = ((const double *)from)[places[t]];
    return SP_OK;
}
