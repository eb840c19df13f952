/* Losses over the nodes of each split, with their gradients, and probabilities, on the CPU.
 *
 * Softmax: the row's largest logit is taken off before exponentials are formed, so that none overflows; the loss is
 * log Σ exp(x_k - most) - (x_label - most), its gradient softmax(x) - e_label. Sigmoid: the loss is
 * max(x, 0) - x·t + log(1 + exp(-|x|)), its gradient sigmoid(x) - t. Chunks of rows side by side, their scores added
 * in order. */
#include <math.h>
#include <string.h>

#include "lanes.h"

enum { CHUNK_ROWS = 256 };

typedef struct loss_job {
    const sp_dense *logits;
    const int32_t *nodes, *labels; /* labels, or */
    const uint8_t *targets, *split;
    const double *weights; /* of the classes; NULL: ones */
    gnn_split of;
    double part; /* of a node in the mean: 1 / count */
    sp_dense *gradient;
} loss_job;

/* One node's score; `gradient` (or NULL) is that of its loss times `weight`. */
#define LOSSES(type, exponential)                                                                                 \
    static gnn_score softmax_node_##type(const type *x, int64_t cols, int32_t label, double weight,               \
                                         type *gradient)                                                          \
    {                                                                                                             \
        int64_t best = 0;                                                                                         \
        type sum = 0;                                                                                             \
        for (int64_t j = 1; j < cols; j++)                                                                        \
            if (x[j] > x[best]) best = j;                                                                         \
        for (int64_t j = 0; j < cols; j++) {                                                                      \
            const type power = exponential(x[j] - x[best]);                                                       \
            sum += power;                                                                                         \
            if (gradient) gradient[j] = power;                                                                    \
        }                                                                                                         \
        for (int64_t j = 0; gradient && j < cols; j++)                                                            \
            gradient[j] = (gradient[j] / sum - (type)(j == label)) * (type)weight;                                \
        return (gnn_score){log((double)sum) - (double)(x[label] - x[best]), 1, best == label, 0, 0};              \
    }                                                                                                             \
    static gnn_score sigmoid_node_##type(const type *x, int64_t cols, const uint8_t *target, double weight,       \
                                         type *gradient)                                                          \
    {                                                                                                             \
        gnn_score score = {.nodes = 1};                                                                           \
        const type by = (type)(weight / (double)cols);                                                            \
        for (int64_t j = 0; j < cols; j++) {                                                                      \
            const type power = exponential(-(x[j] < 0 ? -x[j] : x[j]));                                           \
            const type positive = 1 / (1 + power), chance = x[j] < 0 ? power * positive : positive;               \
            const bool wanted = target[j] != 0, given = x[j] > 0;                                                 \
            const type least = wanted ? (x[j] < 0 ? -x[j] : 0) : (x[j] < 0 ? 0 : x[j]);                           \
            score.loss += (double)least + log1p((double)power);                                                   \
            score.right += wanted && given;                                                                       \
            score.predicted += given;                                                                             \
            score.actual += wanted;                                                                               \
            if (gradient) gradient[j] = (chance - (type)wanted) * by;                                             \
        }                                                                                                         \
        score.loss /= (double)cols;                                                                               \
        return score;                                                                                             \
    }                                                                                                             \
    static void softmax_row_##type(const type *x, type *y, int64_t cols)                                          \
    {                                                                                                             \
        type most = -(type)INFINITY, sum = 0;                                                                     \
        for (int64_t j = 0; j < cols; j++) most = x[j] > most ? x[j] : most;                                      \
        for (int64_t j = 0; j < cols; j++) sum += y[j] = exponential(x[j] - most);                                \
        for (int64_t j = 0; j < cols; j++) y[j] /= sum;                                                           \
    }                                                                                                             \
    static void sigmoid_row_##type(const type *x, type *y, int64_t cols)                                          \
    {                                                                                                             \
        for (int64_t j = 0; j < cols; j++) {                                                                      \
            const type power = exponential(-(x[j] < 0 ? -x[j] : x[j])), positive = 1 / (1 + power);               \
            y[j] = x[j] < 0 ? power * positive : positive;                                                        \
        }                                                                                                         \
    }

LOSSES(float, expf)
LOSSES(double, exp)

#if defined __x86_64__
/* softmax_node_float sixteen classes at once: a node of 7 classes takes 16 ns instead of 80. */
AVX512 static gnn_score softmax_node_lanes(const float *x, int64_t cols, int32_t label, double weight, float *gradient)
{
    __m512 most = _mm512_set1_ps(-INFINITY), sums = _mm512_setzero_ps();
    int64_t best = -1;
    for (int64_t j = 0; j < cols; j += LANES)
        most = _mm512_max_ps(_mm512_mask_loadu_ps(most, lanes_first(cols - j), x + j), most);
    const float top = _mm512_reduce_max_ps(most);
    const __m512 tops = _mm512_set1_ps(top);
    for (int64_t j = 0; j < cols; j += LANES) {
        const __mmask16 some = lanes_first(cols - j);
        const __m512 logits = _mm512_maskz_loadu_ps(some, x + j);
        const __mmask16 equal = _mm512_mask_cmp_ps_mask(some, logits, tops, _CMP_EQ_OQ);
        const __m512 power = _mm512_maskz_mov_ps(some, lanes_exponential(_mm512_sub_ps(logits, tops)));
        if (best < 0 && equal) best = j + __builtin_ctz(equal);
        sums = _mm512_add_ps(sums, power);
        if (gradient) _mm512_mask_storeu_ps(gradient + j, some, power);
    }
    const float sum = _mm512_reduce_add_ps(sums);
    const __m512 by = _mm512_set1_ps((float)weight / sum);
    for (int64_t j = 0; gradient && j < cols; j += LANES) {
        const __mmask16 some = lanes_first(cols - j);
        _mm512_mask_storeu_ps(gradient + j, some, _mm512_mul_ps(_mm512_maskz_loadu_ps(some, gradient + j), by));
    }
    if (gradient) gradient[label] -= (float)weight;
    return (gnn_score){log((double)sum) - (double)(x[label] - top), 1, best == label, 0, 0};
}

#else
#define softmax_node_lanes softmax_node_float
#endif

/* Row i into the scores; a node without a split or a label counts nowhere. */
static void score_row(const loss_job *job, int64_t i, gnn_score *score)
{
    const int64_t node = job->nodes ? job->nodes[i] : i, cols = job->logits->cols;
    const int split = job->split[node];
    const bool single = job->logits->type == SP_DENSE_F32, counts = split != GNN_UNUSED && split < GNN_SPLITS;
    const int32_t label = job->labels && counts ? job->labels[node] : 0;
    double weight = 1;
    void *gradient = job->gradient ? cpu_row(job->gradient, i) : NULL;
    const void *x = cpu_row(job->logits, i);
    gnn_score one = {0};
    if (gradient && (!counts || split != (int)job->of || label < 0 || label >= cols)) {
        memset(gradient, 0, (size_t)cols * number_size(job->gradient->type));
        gradient = NULL;
    }
    if (!counts || label < 0 || label >= cols) return;
    if (job->weights) weight = job->weights[label];
    if (job->labels)
        one = single && have_lanes(SP_DENSE_F32) ? softmax_node_lanes(x, cols, label, job->part * weight, gradient)
              : single                      ? softmax_node_float(x, cols, label, job->part * weight, gradient)
                                            : softmax_node_double(x, cols, label, job->part * weight, gradient);
    else
        one = single ? sigmoid_node_float(x, cols, job->targets + node * cols, job->part, gradient)
                     : sigmoid_node_double(x, cols, job->targets + node * cols, job->part, gradient);
    one.loss *= weight;
    gnn_add_score(&score[split], &one);
}

static sp_status score_rows(gnn_engine *engine, const loss_job *job, gnn_score *score)
{
    const int64_t rows = job->logits->rows, chunks = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    gnn_score *partial;
    const sp_status status = gnn_cpu_scratch(engine, chunks * GNN_SPLITS, sizeof *partial, (void **)&partial);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(dynamic, 1) num_threads(cpu_threads(engine, 5 * rows * job->logits->cols))
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t end = (c + 1) * CHUNK_ROWS < rows ? (c + 1) * CHUNK_ROWS : rows;
        memset(partial + c * GNN_SPLITS, 0, GNN_SPLITS * sizeof *partial);
        for (int64_t i = c * CHUNK_ROWS; i < end; i++) score_row(job, i, partial + c * GNN_SPLITS);
    }
    memset(score, 0, GNN_SPLITS * sizeof *score);
    for (int64_t k = 0; k < chunks * GNN_SPLITS; k++) gnn_add_score(&score[k % GNN_SPLITS], &partial[k]);
    return SP_OK;
}

sp_status gnn_cpu_softmax_loss(gnn_engine *engine, sp_dense *logits, const void *bias, const int32_t *nodes,
                               const int32_t *labels, const double *weights, const uint8_t *split, gnn_split of,
                               int64_t count, gnn_score *score, sp_dense *gradient, void *sums)
{
    const loss_job job = {logits, nodes, labels, NULL, split, weights, of, 1 / (double)count, gradient};
    const gnn_pointwise linear = {.activation = GNN_LINEAR};
    sp_status status = bias ? gnn_cpu_forward(engine, &linear, logits, bias, logits) : SP_OK;
    if (status == SP_OK) status = score_rows(engine, &job, score);
    return status == SP_OK && sums ? gnn_cpu_column_sums(engine, gradient, sums) : status;
}

sp_status gnn_cpu_sigmoid_loss(gnn_engine *engine, const sp_dense *logits, const int32_t *nodes,
                               const uint8_t *targets, const uint8_t *split, gnn_split of, int64_t count,
                               gnn_score *score, sp_dense *gradient, void *sums)
{
    const loss_job job = {logits, nodes, NULL, targets, split, NULL, of, 1 / (double)count, gradient};
    const sp_status status = score_rows(engine, &job, score);
    return status == SP_OK && sums ? gnn_cpu_column_sums(engine, gradient, sums) : status;
}

sp_status gnn_cpu_probabilities(gnn_engine *engine, const sp_dense *x, bool softmax, sp_dense *y)
{
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, 5 * x->rows * x->cols))
    for (int64_t i = 0; i < x->rows; i++) {
        const void *from = cpu_row(x, i);
        void *to = cpu_row(y, i);
        if (x->type == SP_DENSE_F32) (softmax ? softmax_row_float : sigmoid_row_float)(from, to, x->cols);
        else (softmax ? softmax_row_double : sigmoid_row_double)(from, to, x->cols);
    }
    return SP_OK;
}
