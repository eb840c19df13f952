/* Entries of rows drawn without replacement, on the CPU. Threads share the rows. */
#include "core/backend_cpu.h"
#include "elementwise/draw.h"

sp_status sp_cpu_sample_rows(sp_context *context, const sp_csr *a, const int32_t *rows, int64_t row_count,
                             const int64_t *offsets, uint64_t seed, int64_t *places)
{
    enum { ROW_COST = 64 }; /* two cache misses and some ten draws */
    sp_watch watch = {context, false};
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, ROW_COST * row_count))
    for (int64_t i = 0; i < row_count; i++) {
        if (sp_stops(&watch)) continue;
        const int64_t begin = a->row_offsets[rows[i]], length = a->row_offsets[rows[i] + 1] - begin;
        draw_entries(begin, length, offsets[i + 1] - offsets[i], draw_state(seed, i), places + offsets[i]);
    }
    return sp_watched(&watch);
}
