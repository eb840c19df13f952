/* One step of Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or gradient descent with momentum over
 * all parameters on the CPU: one pass, each number by itself, in the order of operations of PyTorch's optimizers. */
#include <math.h>

#include "backend.h"

enum { PIECE = 4096 };

/* The same for all parameters of a step. */
typedef struct step_job {
    gnn_method method;
    gnn_range decay;
    double rate, beta1, beta2, epsilon, weight_decay;
    double first, second; /* Adam: rate ÷ (1 - beta1^t), √(1 - beta2^t) */
} step_job;

#define STEP(type, root)                                                                                         \
    static void step_##type(const step_job *job, int64_t begin, int64_t end, type *w, const type *gradients,     \
                            type *m, type *v)                                                                    \
    {                                                                                                            \
        const type beta1 = (type)job->beta1, rest1 = (type)(1 - job->beta1);                                     \
        const type beta2 = (type)job->beta2, rest2 = (type)(1 - job->beta2);                                     \
        const type rate = (type)job->rate, first = (type)job->first, second = (type)job->second;                 \
        const type epsilon = (type)job->epsilon, keep = (type)(1 - job->rate * job->weight_decay);               \
        for (int64_t k = begin; k < end; k++) {                                                                  \
            const bool decays = k >= job->decay.begin && k < job->decay.end;                                     \
            type gradient = gradients[k];                                                                        \
            if (decays && job->method != GNN_ADAMW) gradient += (type)job->weight_decay * w[k];                  \
            if (job->method == GNN_SGD) {                                                                        \
                if (m) gradient = m[k] = beta1 * m[k] + gradient;                                                \
                w[k] -= rate * gradient;                                                                         \
                continue;                                                                                        \
            }                                                                                                    \
            if (decays && job->method == GNN_ADAMW) w[k] *= keep;                                                \
            m[k] += rest1 * (gradient - m[k]);                                                                   \
            v[k] = beta2 * v[k] + rest2 * gradient * gradient;                                                   \
            w[k] -= first * (m[k] / (root(v[k]) / second + epsilon));                                            \
        }                                                                                                        \
    }

STEP(float, sqrtf)
STEP(double, sqrt)

sp_status gnn_cpu_optimize(gnn_engine *engine, const gnn_optimizer_options *how, gnn_range decay, int64_t count,
                           sp_dense_type type, void *weights, const void *gradients, void *m, void *v, gnn_pace *pace)
{
    const double t = (double)++pace->steps;
    const step_job job = {how->method,       decay,
                          pace->rate,        how->beta1,
                          how->beta2,        how->epsilon,
                          how->decay,        pace->rate / (1 - pow(how->beta1, t)),
                          sqrt(1 - pow(how->beta2, t))};
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, 4 * count))
    for (int64_t begin = 0; begin < count; begin += PIECE) {
        const int64_t end = begin + PIECE < count ? begin + PIECE : count;
        if (type == SP_DENSE_F32) step_float(&job, begin, end, weights, gradients, m, v);
        else step_double(&job, begin, end, weights, gradients, m, v);
    }
    return SP_OK;
}
