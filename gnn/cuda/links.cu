/* The loss of links on CUDA: log(1 + exp(-s·x)) for a score x with the sign s, and its gradient -s / (1 + exp(s·x)), so
 * formed that no exponential overflows. A number of each is read and a gradient written a pair, in one launch. Losses
 * are added up within a block and by the last one over all blocks, always in the same order. */
#include "backend.cuh"

static __device__ __forceinline__ float exponential(float x) { return expf(x); }
static __device__ __forceinline__ double exponential(double x) { return exp(x); }

/* The block's sum in thread 0. */
static __device__ __forceinline__ double block_total(double value, double (&shared)[THREADS / 32])
{
    value = group_sum<32>(value);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    double total = 0;
    for (int w = 0; threadIdx.x == 0 && w < THREADS / 32; w++) total += shared[w];
    return total;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    lose_links(int64_t count, const T *signs, T *scores, double *partial, unsigned *ticket, gnn_score *score)
{
    __shared__ double shared[THREADS / 32];
    const T part = (T)(2 / (double)count);
    double loss = 0;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count; k += (int64_t)gridDim.x * THREADS) {
        const T sign = signs[k], right = sign * scores[k], power = exponential(right < 0 ? right : -right);
        loss += (double)(right < 0 ? -right : 0) + log1p((double)power);
        scores[k] = -sign * (right < 0 ? 1 : power) / (1 + power) * part;
    }
    loss = block_total(loss, shared);
    if (threadIdx.x == 0) partial[blockIdx.x] = loss;
    if (!is_last_block(ticket, gridDim.x)) return;
    loss = 0;
    for (unsigned b = threadIdx.x; b < gridDim.x; b += THREADS) loss += __ldcg(partial + b);
    loss = block_total(loss, shared);
    if (threadIdx.x != 0) return;
    for (int s = 0; s < GNN_SPLITS; s++) score[s] = {};
    score[GNN_TRAIN].loss = loss;
    score[GNN_TRAIN].nodes = count;
}

sp_status gnn_cuda_link_loss(gnn_engine *engine, int64_t count, const void *signs, sp_dense_type type, void *scores,
                             gnn_score *score)
{
    const gnn_cuda_state *state = state_of(engine);
    const int64_t wanted = ceil_div(count, THREADS), most = state->blocks;
    const int64_t blocks = wanted < 1 ? 1 : wanted < most ? wanted : most;
    if (type == SP_DENSE_F32)
        return launch(engine, lose_links<float>, blocks, count, (const float *)signs, (float *)scores, state->partial,
                      state->tickets, score);
    return launch(engine, lose_links<double>, blocks, count, (const double *)signs, (double *)scores, state->partial,
                  state->tickets, score);
}
