/* One step of Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or gradient descent with momentum over
 * all parameters on CUDA: one launch, each number by itself, in the order of operations of PyTorch's optimizers. The
 * rate and the number of steps are read on the device, so that captured steps advance; the last block counts the
 * step. 28 bytes a parameter for Adam in f32.
 */
#include "backend.cuh"

/* The same for all parameters of a step. */
struct step_job {
    gnn_method method;
    gnn_range decay;
    int64_t count;
    double beta1, beta2, epsilon, weight_decay;
    gnn_pace *pace;
    unsigned *ticket;
};

static __device__ __forceinline__ float root(float x) { return sqrtf(x); }
static __device__ __forceinline__ double root(double x) { return sqrt(x); }

template <typename T>
static __global__ void __launch_bounds__(THREADS) take_step(const step_job job, T *w, const T *gradients, T *m, T *v)
{
    follow();
    __shared__ double shared[3];
    if (threadIdx.x == 0 || threadIdx.x == 32) { /* a power each, of two warps */
        const double rate = job.pace->rate, t = (double)(job.pace->steps + 1);
        const double rest = 1 - pow(threadIdx.x == 0 ? job.beta1 : job.beta2, t);
        if (threadIdx.x == 0) shared[0] = rate;
        if (threadIdx.x == 0) shared[1] = rate / rest;
        else shared[2] = sqrt(rest);
    }
    __syncthreads();
    const T rate = (T)shared[0], first = (T)shared[1], second = (T)shared[2], epsilon = (T)job.epsilon;
    const T beta1 = (T)job.beta1, rest1 = (T)(1 - job.beta1), beta2 = (T)job.beta2, rest2 = (T)(1 - job.beta2);
    const T decay = (T)job.weight_decay, keep = (T)(1 - shared[0] * job.weight_decay);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < job.count; k += (int64_t)gridDim.x * THREADS) {
        const bool decays = k >= job.decay.begin && k < job.decay.end;
        T gradient = gradients[k], weight = w[k];
        if (decays && job.method != GNN_ADAMW) gradient += decay * weight;
        if (job.method == GNN_SGD) {
            if (m) gradient = m[k] = beta1 * m[k] + gradient;
            w[k] = weight - rate * gradient;
            continue;
        }
        if (decays && job.method == GNN_ADAMW) weight *= keep;
        const T mean = m[k], moved = mean + rest1 * (gradient - mean);
        const T square = beta2 * v[k] + rest2 * gradient * gradient;
        m[k] = moved;
        v[k] = square;
        w[k] = weight - first * (moved / (root(square) / second + epsilon));
    }
    if (is_last_block(job.ticket, gridDim.x) && threadIdx.x == 0) job.pace->steps++;
}

sp_status gnn_cuda_optimize(gnn_engine *engine, const gnn_optimizer_options *how, gnn_range decay, int64_t count,
                            sp_dense_type type, void *weights, const void *gradients, void *m, void *v,
                            gnn_pace *pace)
{
    const gnn_cuda_state *state = state_of(engine);
    const step_job job = {how->method, decay, count, how->beta1, how->beta2, how->epsilon, how->decay, pace,
                          state->tickets};
    const int64_t wanted = ceil_div(count, THREADS), blocks = wanted < state->blocks ? wanted : state->blocks;
    const int64_t grid = blocks > 0 ? blocks : 1;
    if (type == SP_DENSE_F32)
        return launch_early(engine, take_step<float>, grid, THREADS, 0, job, (float *)weights,
                            (const float *)gradients, (float *)m, (float *)v);
    return launch_early(engine, take_step<double>, grid, THREADS, 0, job, (double *)weights,
                        (const double *)gradients, (double *)m, (double *)v);
}
