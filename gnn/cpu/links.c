/* The loss of links on the CPU: log(1 + exp(-s·x)) for a score x with the sign s, and its gradient
 * -s / (1 + exp(s·x)), written so that exp never overflows. Threads take chunks of pairs; the sums of chunks are added
 * in order. */
#include <math.h>

#include "backend.h"

enum { CHUNK = 4096 };

/* The losses of pairs begin .. end - 1; gradients are those times `part`. */
#define LINK_LOSSES(type, exponential)                                                                            \
    static double link_losses_##type(const type *sign, type *x, int64_t begin, int64_t end, double part)          \
    {                                                                                                             \
        double loss = 0;                                                                                          \
        for (int64_t k = begin; k < end; k++) {                                                                   \
            const type right = sign[k] * x[k], power = exponential(right < 0 ? right : -right);                   \
            loss += (double)(right < 0 ? -right : 0) + log1p((double)power);                                      \
            x[k] = -sign[k] * (right < 0 ? 1 : power) / (1 + power) * (type)part;                                 \
        }                                                                                                         \
        return loss;                                                                                              \
    }

LINK_LOSSES(float, expf)
LINK_LOSSES(double, exp)

sp_status gnn_cpu_link_loss(gnn_engine *engine, int64_t count, const void *signs, sp_dense_type type, void *scores,
                            gnn_score *score)
{
    const int64_t chunks = (count + CHUNK - 1) / CHUNK;
    const double part = 2 / (double)count;
    double *partial;
    const sp_status status = gnn_cpu_scratch(engine, chunks, sizeof *partial, (void **)&partial);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, 10 * count))
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t begin = c * CHUNK, end = begin + CHUNK < count ? begin + CHUNK : count;
        partial[c] = type == SP_DENSE_F32 ? link_losses_float(signs, scores, begin, end, part)
                                          : link_losses_double(signs, scores, begin, end, part);
    }
    for (int s = 0; s < GNN_SPLITS; s++) score[s] = (gnn_score){0};
    score[GNN_TRAIN].nodes = count;
    for (int64_t c = 0; c < chunks; c++) score[GNN_TRAIN].loss += partial[c];
    return SP_OK;
}
