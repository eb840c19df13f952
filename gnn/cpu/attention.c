/* Attention of GAT on the CPU, by the formulas of cuda/attention.cu: forward once over the entries of A, back once over
 * those of the transpose. Threads share the rows, so every sum has one thread and one order. */
#include <math.h>
#include <omp.h>

#include "lanes.h"

typedef struct attention_job {
    const gnn_attention *of;
    const gnn_attention_gradient *back;
    int64_t width;
    cpu_mask mask;
} attention_job;

static inline float float_of(const float *at) { return *at; }
static inline double double_of(const double *at) { return *at; }
static inline float half_of(const uint16_t *at) { return float_of_bf16(*at); }
static inline void to_float(float number, float *at) { *at = number; }
static inline void to_double(double number, double *at) { *at = number; }
static inline void to_half(float number, uint16_t *at) { *at = bf16_of_float(number); }

static inline uint64_t stream_of(const cpu_mask *how, int head)
{
    return gnn_stream(how->seed, how->step, how->site + (uint64_t)GNN_MAX_LAYERS * (uint64_t)head);
}

/* What a number is multiplied by in dropout: 0, or 1 / (1 - rate). */
static inline double keep(const cpu_mask *how, uint64_t stream, int64_t entry)
{
    return !how->bound ? 1 : gnn_draw(stream, entry) >> 40 < how->bound ? 0 : how->scale;
}

/* `type` in memory, computed as `real`. sums: room for 2 · width numbers. */
#define ATTENTION(type, memory, real, exponential)                                                                   \
    static real score_##type(const memory *h, const real *vector, int64_t width)                                     \
    {                                                                                                                \
        real sum = 0;                                                                                                \
        for (int64_t k = 0; k < width; k++) sum += type##_of(h + k) * vector[k];                                     \
        return sum;                                                                                                  \
    }                                                                                                                \
    static void add_scores_##type(const memory *h, const real *ds, int heads, int64_t width, double *sums)           \
    {                                                                                                                \
        for (int head = 0; head < heads; head++)                                                                     \
            for (int64_t k = head * width; k < (head + 1) * width; k++)                                              \
                sums[k] += (double)ds[head] * (double)type##_of(h + k);                                              \
    }                                                                                                                \
    static void attend_##type(const attention_job *job, int64_t i, int head, double *room)                           \
    {                                                                                                                \
        const gnn_attention *of = job->of;                                                                           \
        const int64_t width = job->width, begin = of->a->row_offsets[i], end = of->a->row_offsets[i + 1];            \
        const int32_t *cols = of->a->col_indices;                                                                    \
        const real own = ((const real *)cpu_row(of->left, i))[head], *right = of->right->values;                     \
        const real slope = (real)of->slope;                                                                          \
        real *sums = (real *)room, *slope_sums = sums + width, most = -INFINITY, total = 0, slope_total = 0;         \
        memory *y = (memory *)cpu_row(of->y, i) + head * width;                                                      \
        const uint64_t stream = stream_of(&job->mask, head);                                                         \
        memset(sums, 0, (size_t)(2 * width) * sizeof *sums);                                                         \
        for (int64_t e = begin; e < end; e++) {                                                                      \
            const real score = own + right[cols[e] * of->right->stride + head];                                      \
            if (!(score <= most)) most = score;                                                                      \
        }                                                                                                            \
        most = most > 0 ? most : slope * most;                                                                       \
        for (int64_t e = begin; e < end; e++) {                                                                      \
            const real score = own + right[cols[e] * of->right->stride + head], by = score > 0 ? 1 : slope;          \
            const real chance = exponential(by * score - most), weight = chance * (real)keep(&job->mask, stream, e); \
            const memory *h = (const memory *)cpu_row(of->h, cols[e]) + head * width;                                \
            total += chance;                                                                                         \
            slope_total += by * chance;                                                                              \
            for (int64_t k = 0; k < width; k++) sums[k] += weight * type##_of(h + k);                                \
            for (int64_t k = 0; of->slopes && k < width; k++) slope_sums[k] += by * weight * type##_of(h + k);       \
        }                                                                                                            \
        const real by = begin == end ? 0 : 1 / total;                                                                \
        ((real *)cpu_row(of->logs, i))[head] = begin == end ? 0 : most + (real)log((double)total);                   \
        for (int64_t k = 0; k < width; k++) to_##type(by * sums[k], y + k);                                          \
        if (!of->slopes) return;                                                                                     \
        memory *slopes = (memory *)cpu_row(of->slopes, i) + head * width;                                            \
        for (int64_t k = 0; k < width; k++)                                                                          \
            to_##type(by * slope_sums[k] - by * slope_total * (by * sums[k]), slopes + k);                           \
    }                                                                                                                \
    static void along_##type(const attention_job *job, int64_t i, int head, double *room)                            \
    {                                                                                                                \
        const gnn_attention *of = job->of;                                                                           \
        const gnn_attention_gradient *back = job->back;                                                              \
        const bool averaged = back->y_gradient->cols != of->h->cols;                                                 \
        const memory *y = (const memory *)cpu_row(of->y, i) + head * job->width;                                     \
        const memory *slopes = (const memory *)cpu_row(of->slopes, i) + head * job->width;                           \
        const memory *dy = (const memory *)cpu_row(back->y_gradient, i) + (averaged ? 0 : head * job->width);        \
        const real factor = averaged ? 1 / (real)of->heads : 1;                                                      \
        real along = 0, left = 0;                                                                                    \
        (void)room;                                                                                                  \
        for (int64_t k = 0; k < job->width; k++) {                                                                   \
            along += type##_of(dy + k) * type##_of(y + k);                                                           \
            left += type##_of(dy + k) * type##_of(slopes + k);                                                       \
        }                                                                                                            \
        ((real *)cpu_row(back->along, i))[head] = factor * along;                                                    \
        ((real *)cpu_row(back->left_gradient, i))[head] = factor * left;                                             \
    }                                                                                                                \
    static void attend_back_##type(const attention_job *job, int64_t j, int head, double *room)                      \
    {                                                                                                                \
        const gnn_attention *of = job->of;                                                                           \
        const gnn_attention_gradient *back = job->back;                                                              \
        const bool averaged = back->y_gradient->cols != of->h->cols;                                                 \
        const int64_t width = job->width, end = back->transpose->row_offsets[j + 1];                                 \
        const memory *h = (const memory *)cpu_row(of->h, j) + head * width;                                          \
        const real own = ((const real *)cpu_row(of->right, j))[head], slope = (real)of->slope;                       \
        const uint64_t stream = stream_of(&job->mask, head);                                                         \
        const real factor = averaged ? 1 / (real)of->heads : 1;                                                      \
        const real *left_vector = (const real *)back->left_vector + head * width;                                    \
        const real *right_vector = (const real *)back->right_vector + head * width;                                  \
        real *sums = (real *)room, right = 0, left = 0;                                                              \
        memset(sums, 0, (size_t)width * sizeof *sums);                                                               \
        for (int64_t t = back->transpose->row_offsets[j]; t < end; t++) {                                            \
            const int64_t i = back->transpose->col_indices[t];                                                       \
            const memory *dy = (const memory *)cpu_row(back->y_gradient, i) + (averaged ? 0 : head * width);         \
            const real score = own + ((const real *)cpu_row(of->left, i))[head], by = score > 0 ? 1 : slope;         \
            const real chance = exponential(by * score - ((const real *)cpu_row(of->logs, i))[head]);                \
            const real kept = (real)keep(&job->mask, stream, back->places[t]);                                       \
            real product = 0;                                                                                        \
            for (int64_t k = 0; k < width; k++) product += type##_of(dy + k) * type##_of(h + k);                     \
            for (int64_t k = 0; k < width; k++) sums[k] += chance * kept * type##_of(dy + k);                        \
            right += by * chance * (kept * factor * product - ((const real *)cpu_row(back->along, i))[head]);        \
        }                                                                                                            \
        ((real *)cpu_row(back->right_gradient, j))[head] = right;                                                    \
        if (j < of->a->rows) left = ((const real *)cpu_row(back->left_gradient, j))[head];                           \
        memory *dh = (memory *)cpu_row(back->h_gradient, j) + head * width;                                          \
        for (int64_t k = 0; k < width; k++)                                                                          \
            to_##type(factor * sums[k] + left * left_vector[k] + right * right_vector[k], dh + k);                   \
    }                                                                                                                \
    static void average_##type(const memory *x, int heads, real *y, int64_t width)                                   \
    {                                                                                                                \
        for (int64_t k = 0; k < width; k++) {                                                                        \
            real sum = 0;                                                                                            \
            for (int head = 0; head < heads; head++) sum += type##_of(x + head * width + k);                         \
            y[k] = sum / (real)heads;                                                                                \
        }                                                                                                            \
    }

ATTENTION(float, float, float, expf)
ATTENTION(double, double, double, exp)
ATTENTION(half, uint16_t, float, expf)

#define OF_TYPE(of, call) ((of) == SP_DENSE_F32 ? call##_float : (of) == SP_DENSE_F64 ? call##_double : call##_half)

/* ---- scores of nodes ------------------------------------------------------------------------------------ */

static void score_row(const sp_dense *h, int64_t row, int heads, const void *vector, sp_dense *scores, int64_t to)
{
    const int64_t width = h->cols / heads;
    for (int head = 0; head < heads; head++) {
        const int64_t first = head * width;
        void *score = (char *)cpu_row(scores, to) + (size_t)head * number_size(scores->type);
        const void *x = (const char *)cpu_row(h, row) + (size_t)first * number_size(h->type);
        if (h->type == SP_DENSE_F64) *(double *)score = score_double(x, (const double *)vector + first, width);
        else if (h->type == SP_DENSE_F32) *(float *)score = score_float(x, (const float *)vector + first, width);
        else *(float *)score = score_half(x, (const float *)vector + first, width);
    }
}

sp_status gnn_cpu_head_scores(gnn_engine *engine, const sp_dense *h, int heads, int64_t first_own, const void *left,
                              const void *right, sp_dense *left_scores, sp_dense *right_scores)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, 2 * h->rows * h->cols))
    for (int64_t i = 0; i < h->rows; i++) {
        const int64_t own = i - first_own;
        score_row(h, i, heads, right, right_scores, i);
        if (own >= 0 && own < left_scores->rows) score_row(h, i, heads, left, left_scores, own);
    }
    return SP_OK;
}

typedef struct scores_job {
    const sp_dense *h, *scores_gradient;
    int heads;
} scores_job;

static void add_scores(const void *job, int64_t begin, int64_t end, double *sums)
{
    const scores_job *j = job;
    const int64_t width = j->h->cols / j->heads;
    for (int64_t i = begin; i < end; i++) {
        const void *h = cpu_row(j->h, i), *ds = cpu_row(j->scores_gradient, i);
        if (j->h->type == SP_DENSE_F64) add_scores_double(h, ds, j->heads, width, sums);
        else if (j->h->type == SP_DENSE_F32) add_scores_float(h, ds, j->heads, width, sums);
        else add_scores_half(h, ds, j->heads, width, sums);
    }
}

sp_status gnn_cpu_head_scores_backward(gnn_engine *engine, const sp_dense *h, int heads,
                                       const sp_dense *scores_gradient, void *vector_gradient)
{
    const scores_job job = {h, scores_gradient, heads};
    return gnn_cpu_sum_rows(engine, add_scores, &job, h->rows, h->cols, scores_gradient->type, vector_gradient);
}

/* ---- entries -------------------------------------------------------------------------------------------- */

typedef void row_work(const attention_job *job, int64_t row, int head, double *room);

static sp_status each_row(gnn_engine *engine, const attention_job *job, int64_t rows, int64_t entries, row_work *work)
{
    const int threads = cpu_threads(engine, (2 * entries + rows) * (job->of->h->cols + 1));
    double *room;
    const sp_status status = gnn_cpu_scratch(engine, 2 * job->width * threads, sizeof *room, (void **)&room);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (int64_t i = 0; i < rows; i++)
        for (int head = 0; head < job->of->heads; head++)
            work(job, i, head, room + 2 * job->width * omp_get_thread_num());
    return SP_OK;
}

static attention_job make_job(const gnn_engine *engine, const gnn_attention *attention,
                              const gnn_attention_gradient *back)
{
    const gnn_pointwise drop = {.rate = attention->rate, .site = attention->site};
    return (attention_job){attention, back, attention->h->cols / attention->heads, gnn_cpu_mask(engine, &drop)};
}

sp_status gnn_cpu_attention(gnn_engine *engine, const gnn_attention *attention)
{
    const attention_job job = make_job(engine, attention, NULL);
    if (gnn_cpu_takes_lanes(attention->h->type, attention->heads))
        return gnn_cpu_attention_lanes(engine, attention, &job.mask, NULL);
    return each_row(engine, &job, attention->a->rows, attention->a->nnz, OF_TYPE(attention->h->type, attend));
}

sp_status gnn_cpu_attention_backward(gnn_engine *engine, const gnn_attention *attention,
                                     const gnn_attention_gradient *back)
{
    const attention_job job = make_job(engine, attention, back);
    const sp_dense_type type = attention->h->type;
    if (gnn_cpu_takes_lanes(type, attention->heads) && back->y_gradient->cols == attention->h->cols)
        return gnn_cpu_attention_lanes(engine, attention, &job.mask, back);
    const sp_status status = each_row(engine, &job, attention->a->rows, 0, OF_TYPE(type, along));
    if (status != SP_OK) return status;
    return each_row(engine, &job, back->transpose->rows, back->transpose->nnz, OF_TYPE(type, attend_back));
}

sp_status gnn_cpu_average_heads(gnn_engine *engine, const sp_dense *x, int heads, sp_dense *y)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, x->rows * x->cols))
    for (int64_t i = 0; i < y->rows; i++)
        if (x->type == SP_DENSE_F64) average_double(cpu_row(x, i), heads, cpu_row(y, i), y->cols);
        else if (x->type == SP_DENSE_F32) average_float(cpu_row(x, i), heads, cpu_row(y, i), y->cols);
        else average_half(cpu_row(x, i), heads, cpu_row(y, i), y->cols);
    return SP_OK;
}
