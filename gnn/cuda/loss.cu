/* Losses over the nodes of each split, with their gradients, and probabilities, on CUDA: one launch, 2 lanes a row up
 * to 16 columns, else 32.
 *
 * Softmax: the row's largest logit is subtracted first, so that no exponential overflows; the loss is log Σ exp(x_k -
 * most) - (x_label - most), its gradient softmax(x) - e_label. Sigmoid: the loss is max(x, 0) - x·t + log(1 +
 * exp(-|x|)), its gradient sigmoid(x) - t. A row is read from memory once, then from the first-level cache. The
 * gradient is written once. Each group of lanes keeps scores in shared memory. They are added up within the block,
 * and over all blocks by the last one, always in the same order.
 */
#include "backend.cuh"

struct loss_job {
    int64_t rows, cols;
    const int32_t *nodes, *labels; /* labels, or */
    const uint8_t *targets, *split;
    const double *weights; /* of the classes; NULL: ones */
    int of;
    double part; /* of a node in the mean: 1 / count */
    gnn_score *partial, *score;
    unsigned *ticket;
    const float *bias; /* of a few classes: not yet in the logits; or NULL */
};

static __device__ __forceinline__ float exponential(float x) { return expf(x); }
static __device__ __forceinline__ double exponential(double x) { return exp(x); }
static __device__ __forceinline__ float magnitude(float x) { return fabsf(x); }
static __device__ __forceinline__ double magnitude(double x) { return fabs(x); }

/* The largest number of the row and its first place. */
template <typename T> struct leader {
    T value;
    int64_t place;
};

template <typename T, int LANES>
static __device__ __forceinline__ leader<T> find_leader(const T *x, int64_t cols, int lane)
{
    leader<T> best = {-(T)INFINITY, INT64_MAX};
    for (int64_t j = lane; j < cols; j += LANES)
        if (best.place == INT64_MAX || x[j] > best.value) best = {x[j], j};
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) {
        const leader<T> other = {__shfl_xor_sync(group_mask<LANES>(), best.value, step),
                                 __shfl_xor_sync(group_mask<LANES>(), best.place, step)};
        if (other.value > best.value || (other.value == best.value && other.place < best.place)) best = other;
    }
    return best;
}

/* The score of the group's row, valid in lane 0. `gradient` (or NULL): that of its loss times `weight`. */
template <typename T, int LANES>
static __device__ __forceinline__ gnn_score softmax_node(const T *x, int64_t cols, int32_t label, double weight,
                                                         T *gradient, int lane)
{
    const leader<T> best = find_leader<T, LANES>(x, cols, lane);
    T sum = 0;
    for (int64_t j = lane; j < cols; j += LANES) sum += exponential(x[j] - best.value);
    sum = group_sum<LANES>(sum);
    for (int64_t j = lane; gradient && j < cols; j += LANES)
        gradient[j] = (exponential(x[j] - best.value) / sum - (T)(j == label)) * (T)weight;
    return {log((double)sum) - (double)(x[label] - best.value), 1, best.place == label, 0, 0};
}

template <typename T, int LANES>
static __device__ __forceinline__ gnn_score sigmoid_node(const T *x, int64_t cols, const uint8_t *target,
                                                         double weight, T *gradient, int lane)
{
    const T by = (T)(weight / (double)cols);
    double loss = 0;
    int right = 0, predicted = 0, actual = 0;
    for (int64_t j = lane; j < cols; j += LANES) {
        const T at = x[j], power = exponential(-magnitude(at));
        const T positive = 1 / (1 + power), chance = at < 0 ? power * positive : positive;
        const bool wanted = target[j] != 0, given = at > 0;
        const T least = wanted ? (at < 0 ? -at : 0) : (at < 0 ? 0 : at);
        loss += (double)least + log1p((double)power);
        right += wanted && given;
        predicted += given;
        actual += wanted;
        if (gradient) gradient[j] = (chance - (T)wanted) * by;
    }
    loss = group_sum<LANES>(loss);
    return {loss / (double)cols, 1, group_sum<LANES>(right), group_sum<LANES>(predicted), group_sum<LANES>(actual)};
}

/* Makes scores[0] the sum over `count` scores (a power of two), for each split. */
static __device__ __forceinline__ void add_groups(gnn_score (*scores)[GNN_SPLITS], int count)
{
    for (int half = count / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half * GNN_SPLITS)
            gnn_add_score(&scores[threadIdx.x / GNN_SPLITS][threadIdx.x % GNN_SPLITS],
                          &scores[threadIdx.x / GNN_SPLITS + half][threadIdx.x % GNN_SPLITS]);
    }
    __syncthreads();
}

template <typename T, int LANES>
static __global__ void __launch_bounds__(THREADS)
    score_rows(const loss_job job, const dense_view<const T> logits, const dense_view<T> gradients)
{
    constexpr int GROUPS = THREADS / LANES, SEGMENTS = THREADS / GNN_SPLITS;
    __shared__ gnn_score scores[GROUPS > SEGMENTS ? GROUPS : SEGMENTS][GNN_SPLITS];
    const int group = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int segment = threadIdx.x / GNN_SPLITS, own = threadIdx.x % GNN_SPLITS;
    for (int g = segment; g < GROUPS; g += SEGMENTS) scores[g][own] = {};
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * GROUPS + group; i < job.rows; i += (int64_t)gridDim.x * GROUPS) {
        const int64_t node = job.nodes ? job.nodes[i] : i;
        const int split = job.split[node];
        const int32_t label = job.labels ? job.labels[node] : 0;
        const bool counts = split != GNN_UNUSED && split < GNN_SPLITS && label >= 0 && label < job.cols;
        const T *x = logits.values + i * logits.stride;
        T *gradient = gradients.values ? gradients.values + i * gradients.stride : NULL;
        if (gradient && (!counts || split != job.of)) {
            for (int64_t j = lane; j < job.cols; j += LANES) gradient[j] = 0;
            gradient = NULL;
        }
        if (!counts) continue;
        const uint8_t *target = job.targets + node * job.cols;
        const double weight = job.weights ? job.weights[label] : 1;
        gnn_score one = job.labels ? softmax_node<T, LANES>(x, job.cols, label, job.part * weight, gradient, lane)
                                   : sigmoid_node<T, LANES>(x, job.cols, target, job.part, gradient, lane);
        one.loss *= weight;
        if (lane == 0) gnn_add_score(&scores[group][split], &one);
    }
    add_groups(scores, GROUPS);
    if (threadIdx.x < GNN_SPLITS) job.partial[blockIdx.x * GNN_SPLITS + threadIdx.x] = scores[0][threadIdx.x];
    if (!is_last_block(job.ticket, gridDim.x)) return;
    gnn_score sum = {};
#pragma unroll 4
    for (unsigned b = segment; b < gridDim.x; b += SEGMENTS) gnn_add_score(&sum, &job.partial[b * GNN_SPLITS + own]);
    scores[segment][own] = sum;
    add_groups(scores, SEGMENTS);
    if (threadIdx.x < GNN_SPLITS) job.score[threadIdx.x] = scores[0][threadIdx.x];
}

template <typename T, int LANES>
static sp_status launch_scores(gnn_engine *engine, const loss_job &job, const sp_dense *logits, sp_dense *gradient)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t wanted = ceil_div(job.rows, THREADS / LANES);
    const int64_t blocks = wanted < state->blocks ? wanted : state->blocks;
    const dense_view<const T> x = {(const T *)logits->values, logits->stride};
    const dense_view<T> dx = {gradient ? (T *)gradient->values : NULL, gradient ? gradient->stride : 0};
    return launch(engine, score_rows<T, LANES>, blocks > 0 ? blocks : 1, job, x, dx);
}

/* ---- a few classes --------------------------------------------------------------------------------------- */

/* Softmax, a thread a row, which it keeps in registers; the columns of the gradient are added up as well. Blocks
 * store: the loss of each split, its nodes, its right nodes, sums of columns. */
enum { FEW_CLASSES = 16, LOSS = 0, NODES = GNN_SPLITS, RIGHT = 2 * GNN_SPLITS, COLUMNS = 3 * GNN_SPLITS };

/* A thread's sums. */
template <int MOST> struct few_sums {
    double loss[GNN_SPLITS];
    int counts[2 * GNN_SPLITS]; /* nodes, then right nodes */
    float columns[MOST];
};

/* Replaces a row's logits by its gradient. */
template <int MOST>
static __device__ __forceinline__ void score_few_row(const loss_job &job, int64_t node, float (&x)[MOST],
                                                     few_sums<MOST> &sums)
{
    const int split = job.split[node];
    const int32_t label = job.labels[node];
    const bool counts = split != GNN_UNUSED && split < GNN_SPLITS && label >= 0 && label < job.cols;
    float most = x[0], own = 0, sum = 0;
    int place = 0;
#pragma unroll
    for (int j = 1; j < MOST; j++)
        if (j < job.cols && x[j] > most) {
            most = x[j];
            place = j;
        }
#pragma unroll
    for (int j = 0; j < MOST; j++) {
        if (j == label) own = x[j] - most;
        x[j] = j < job.cols ? exponential(x[j] - most) : 0;
        sum += x[j];
    }
    const double weight = counts && job.weights ? job.weights[label] : 1;
    const double loss = weight * (log((double)sum) - (double)own);
#pragma unroll
    for (int s = 0; s < GNN_SPLITS; s++)
        if (counts && s == split) {
            sums.loss[s] += loss;
            sums.counts[s] += 1;
            sums.counts[GNN_SPLITS + s] += place == label;
        }
#pragma unroll
    for (int j = 0; j < MOST; j++) {
        x[j] = counts && split == job.of ? (x[j] / sum - (float)(j == label)) * (float)(job.part * weight) : 0;
        sums.columns[j] += x[j];
    }
}

/* Lane k gets the warp's sum of sums[k]. */
template <int COUNT, typename T> static __device__ __forceinline__ T warp_sums(T (&sums)[COUNT])
{
    T sum = deal_sums<COUNT>(sums);
#pragma unroll
    for (int apart = COUNT; apart < 32; apart *= 2) sum += __shfl_xor_sync(FULL_WARP, sum, apart);
    return sum;
}

/* The first `cols` numbers of a row; WIDE: all MOST of them, 16 bytes at a time. */
template <int MOST, bool WIDE>
static __device__ __forceinline__ void load_few(const float *from, int64_t cols, float (&x)[MOST])
{
    if (WIDE)
#pragma unroll
        for (int j = 0; j < MOST; j += 4) *(float4 *)(x + j) = *(const float4 *)(from + j);
    else
#pragma unroll
        for (int j = 0; j < MOST; j++)
            if (j < cols) x[j] = from[j];
}
template <int MOST, bool WIDE>
static __device__ __forceinline__ void store_few(const float (&x)[MOST], int64_t cols, float *to)
{
    if (WIDE)
#pragma unroll
        for (int j = 0; j < MOST; j += 4) *(float4 *)(to + j) = *(const float4 *)(x + j);
    else
#pragma unroll
        for (int j = 0; j < MOST; j++)
            if (j < cols) to[j] = x[j];
}

/* Threads of a block, as registers allow. */
template <int MOST> struct few_block {
    static constexpr int THREADS = MOST <= 8 ? 1024 : 512;
};

/* WIDE: rows are MOST numbers apart at least. */
template <int MOST, bool WIDE>
static __global__ void __launch_bounds__(few_block<MOST>::THREADS)
    score_few(const loss_job job, const dense_view<const float> logits, const dense_view<float> gradients,
              double *partial, float *sums)
{
    follow();
    constexpr int COUNT = few_block<MOST>::THREADS, WARPS = COUNT / 32, ALL = COLUMNS + MOST;
    __shared__ double shared[ALL][WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    few_sums<MOST> own = {};
    for (int64_t i = (int64_t)blockIdx.x * COUNT + threadIdx.x; i < job.rows; i += (int64_t)gridDim.x * COUNT) {
        alignas(16) float x[MOST] = {};
        load_few<MOST, WIDE>(logits.values + i * logits.stride, job.cols, x);
#pragma unroll
        for (int j = 0; j < MOST; j++)
            if (job.bias && j < job.cols) x[j] += job.bias[j];
        score_few_row<MOST>(job, job.nodes ? job.nodes[i] : i, x, own);
        if (gradients.values) store_few<MOST, WIDE>(x, job.cols, gradients.values + i * gradients.stride);
    }
    const double loss = warp_sums(own.loss);
    const int count = warp_sums(own.counts);
    const float column = warp_sums(own.columns);
    if (lane < GNN_SPLITS) shared[LOSS + lane][warp] = loss;
    if (lane < 2 * GNN_SPLITS) shared[NODES + lane][warp] = count;
    if (lane < MOST) shared[COLUMNS + lane][warp] = (double)column;
    __syncthreads();
    for (int k = warp; k < ALL; k += WARPS) {
        const double sum = group_sum<32>(lane < WARPS ? shared[k][lane] : 0);
        if (lane == 0) partial[(int64_t)k * gridDim.x + blockIdx.x] = sum;
    }
    if (!is_last_block(job.ticket, gridDim.x)) return;
    for (int k = warp; k < ALL; k += WARPS) {
        double sum = 0;
#pragma unroll 8
        for (unsigned b = lane; b < gridDim.x; b += 32) sum += __ldcg(partial + (int64_t)k * gridDim.x + b);
        sum = group_sum<32>(sum);
        if (lane == 0) shared[k][0] = sum;
    }
    __syncthreads();
    const int k = threadIdx.x;
    if (k < GNN_SPLITS)
        job.score[k] = k == GNN_UNUSED ? gnn_score{}
                                       : gnn_score{shared[LOSS + k][0], (int64_t)shared[NODES + k][0],
                                                   (int64_t)shared[RIGHT + k][0], 0, 0};
    if (sums && k < job.cols) sums[k] = (float)shared[COLUMNS + k][0];
}

/* A block a multiprocessor, so that few parts remain to add up, a warp a number. */
template <int MOST>
static sp_status launch_few(gnn_engine *engine, const loss_job &job, const sp_dense *logits, sp_dense *gradient,
                            void *sums)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t wanted = ceil_div(job.rows, few_block<MOST>::THREADS), most = state->processors;
    const int64_t blocks = wanted < 1 ? 1 : wanted < most ? wanted : most;
    const dense_view<const float> x = {(const float *)logits->values, logits->stride};
    const dense_view<float> dx = {gradient ? (float *)gradient->values : NULL, gradient ? gradient->stride : 0};
    const auto wide = [](const sp_dense *m) {
        return !m || (m->stride >= MOST && m->stride % 4 == 0 && (uintptr_t)m->values % 16 == 0);
    };
    const bool whole = wide(logits) && wide(gradient);
    return launch_early(engine, whole ? score_few<MOST, true> : score_few<MOST, false>, blocks,
                        few_block<MOST>::THREADS, 0, job, x, dx, state->partial, (float *)sums);
}

static bool has_few(const sp_dense *logits)
{
    return !left_out("gnn-few") && logits->type == SP_DENSE_F32 && logits->cols <= FEW_CLASSES;
}

static sp_status launch_loss(gnn_engine *engine, const sp_dense *logits, const int32_t *nodes, const int32_t *labels,
                             const uint8_t *targets, const double *weights, const uint8_t *split, gnn_split of,
                             int64_t count, gnn_score *score, sp_dense *gradient, void *sums, const void *bias)
{
    const gnn_cuda_state *state = state_of(engine);
    const loss_job job = {logits->rows, logits->cols, nodes, labels, targets, split, weights, (int)of,
                          1 / (double)count, (gnn_score *)state->partial, score, state->tickets, (const float *)bias};
    const bool narrow = logits->cols <= 16, single = logits->type == SP_DENSE_F32;
    if (labels && has_few(logits)) {
        return logits->cols <= 8 ? launch_few<8>(engine, job, logits, gradient, sums)
                                 : launch_few<FEW_CLASSES>(engine, job, logits, gradient, sums);
    }
    CHECK((single ? narrow ? launch_scores<float, 2> : launch_scores<float, 32>
                  : narrow ? launch_scores<double, 2> : launch_scores<double, 32>)(engine, job, logits, gradient));
    return sums ? gnn_cuda_column_sums(engine, gradient, sums) : SP_OK;
}

sp_status gnn_cuda_softmax_loss(gnn_engine *engine, sp_dense *logits, const void *bias, const int32_t *nodes,
                                const int32_t *labels, const double *weights, const uint8_t *split, gnn_split of,
                                int64_t count, gnn_score *score, sp_dense *gradient, void *sums)
{
    const gnn_pointwise linear = {GNN_LINEAR, 0, 0};
    if (bias && !has_few(logits)) CHECK(gnn_cuda_forward(engine, &linear, logits, bias, logits));
    return launch_loss(engine, logits, nodes, labels, NULL, weights, split, of, count, score, gradient, sums, bias);
}

sp_status gnn_cuda_sigmoid_loss(gnn_engine *engine, const sp_dense *logits, const int32_t *nodes,
                                const uint8_t *targets, const uint8_t *split, gnn_split of, int64_t count,
                                gnn_score *score, sp_dense *gradient, void *sums)
{
    return launch_loss(engine, logits, nodes, NULL, targets, NULL, split, of, count, score, gradient, sums, NULL);
}

/* ---- probabilities --------------------------------------------------------------------------------------- */

template <typename T, int LANES>
static __global__ void __launch_bounds__(THREADS)
    make_probabilities(int64_t rows, int64_t cols, bool softmax, const dense_view<const T> from,
                       const dense_view<T> to)
{
    const int64_t i = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    const int lane = threadIdx.x % LANES;
    if (i >= rows) return;
    const T *x = from.values + i * from.stride;
    T *y = to.values + i * to.stride;
    if (softmax) {
        const T most = find_leader<T, LANES>(x, cols, lane).value;
        T sum = 0;
        for (int64_t j = lane; j < cols; j += LANES) sum += y[j] = exponential(x[j] - most);
        sum = group_sum<LANES>(sum);
        for (int64_t j = lane; j < cols; j += LANES) y[j] /= sum;
    } else
        for (int64_t j = lane; j < cols; j += LANES) {
            const T at = x[j], power = exponential(-magnitude(at)), positive = 1 / (1 + power);
            y[j] = at < 0 ? power * positive : positive;
        }
}

template <typename T, int LANES>
static sp_status launch_probabilities(gnn_engine *engine, const sp_dense *x, bool softmax, sp_dense *y)
{
    if (x->cols == 0) return SP_OK;
    return launch(engine, make_probabilities<T, LANES>, ceil_div(x->rows, THREADS / LANES), x->rows, x->cols, softmax,
                  dense_view<const T>{(const T *)x->values, x->stride}, view_of<T>(y));
}

sp_status gnn_cuda_probabilities(gnn_engine *engine, const sp_dense *x, bool softmax, sp_dense *y)
{
    const bool narrow = x->cols <= 16;
    if (x->type == SP_DENSE_F32)
        return (narrow ? launch_probabilities<float, 8> : launch_probabilities<float, 32>)(engine, x, softmax, y);
    return (narrow ? launch_probabilities<double, 8> : launch_probabilities<double, 32>)(engine, x, softmax, y);
}
