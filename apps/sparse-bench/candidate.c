/* Candidates of all commands: the context they compute in, their samples, their failures. */
#include <math.h>
#include <string.h>

#include "sparse-bench/bench.h"

sp_context_options compute_options(const bench_options *o, const volatile int *interrupt)
{
    return (sp_context_options){.device = o->device, .threads = (int)o->threads, .memory_budget = (size_t)o->memory,
                                .interrupt = interrupt};
}

static void order(double *list, int count)
{
    for (int i = 1; i < count; i++) {
        const double moving = list[i];
        int j = i;
        for (; j > 0 && moving < list[j - 1]; j--) list[j] = list[j - 1];
        list[j] = moving;
    }
}

void time_median(timing *time)
{
    double sorted[MAX_SAMPLES];
    memcpy(sorted, time->seconds, sizeof sorted);
    order(sorted, time->count);
    time->median = (sorted[time->count / 2] + sorted[(time->count - 1) / 2]) / 2;
    time->middle = 0;
    for (int i = 1; i < time->count; i++)
        if (fabs(time->seconds[i] - time->median) < fabs(time->seconds[time->middle] - time->median))
            time->middle = i;
}

sp_status time_steps(const bench_options *options, sp_status (*step)(void *), void (*taken)(void *, int), void *user,
                     timing *time)
{
    const double first = wall_seconds();
    time->count = 0;
    sp_status status = step(user);
    device_finish();
    time->first = wall_seconds() - first;
    while (status == SP_OK && time->count < options->repeat) {
        if (time->count > 0 && wall_seconds() - first > options->limit) break;
        device_finish();
        const double began = wall_seconds();
        status = step(user);
        device_finish();
        time->seconds[time->count] = wall_seconds() - began;
        if (status == SP_OK && taken) taken(user, time->count);
        if (status == SP_OK) time->count++;
    }
    if (status == SP_OK) time_median(time);
    return status;
}

int64_t known_bytes(int64_t peak_bytes) { return peak_bytes > 0 ? peak_bytes : -1; }

static const char *failure_word(sp_status status)
{
    switch (status) {
    case SP_ERROR_NO_DEVICE: return "absent";
    case SP_ERROR_HOST_MEMORY: case SP_ERROR_DEVICE_MEMORY: return "memory";
    case SP_ERROR_UNSUPPORTED: case SP_ERROR_OVERFLOW: return "unsupported";
    default: return "failed";
    }
}

sp_status candidate_failed(sp_context *context, sp_status status, candidate *c)
{
    if (status == SP_OK || status == SP_ERROR_INTERRUPTED) return status;
    snprintf(c->word, sizeof c->word, "%s", failure_word(status));
    snprintf(c->why, sizeof c->why, "%s", sp_last_error(context));
    return SP_OK;
}
