/* Counts of up to 16 entries of G in one register: labels are gathered and sorted by a network, the first of each equal
 * ones are kept, and the distances between these are the counts. No loop but that over the group's nodes, and so no
 * branch that cannot be predicted; rows are complete, in order, and written once.
 *
 * Graphs whose nodes have few edges, meshes and roads, mostly have such rows after a matching. Without this, half of
 * each row is made and mirrored (mirror.c), which takes 1.7 to 2.9 times as long on 4elt, luxembourg, New York and a
 * grid. */
#include "base/lanes.h"
#include "contract/cpu/short.h"

bool sp_may_be_short(const contraction *job)
{
    return job->counts && job->loops != SP_LOOPS_ONLY && have_avx512();
}

#if defined(__x86_64__)
/* The labels of the row's entries, `entries` in all; -1 in other lanes. */
AVX512 static inline __m512i gather_labels(const contraction *job, int64_t row, int64_t entries)
{
    const int64_t *offsets = job->g->row_offsets;
    __m512i columns = _mm512_setzero_si512();
    int64_t count = 0;
    for (int64_t n = job->starts[row]; n < job->starts[row + 1]; n++) {
        const int64_t start = offsets[job->order[n]], length = offsets[job->order[n] + 1] - start;
        const __mmask16 lanes = (__mmask16)(((1u << length) - 1) << count);
        sp_prefetch_rows(job, n, 0);
        columns = _mm512_mask_expandloadu_epi32(columns, lanes, job->g->col_indices + start);
        count += length;
    }
    return _mm512_mask_i32gather_epi32(_mm512_set1_epi32(-1), (__mmask16)((1u << entries) - 1), columns, job->labels,
                                       4);
}

/* Writes up to 16 columns and values at the end of `out`; returns how many count. */
AVX512 static inline int make_short(worker *w, int64_t row, int64_t entries, row_buffer *out)
{
    const contraction *job = w->job;
    const __m512i own = _mm512_set1_epi32((int32_t)row),
                  places = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5,
                                                                                   4, 3, 2, 1, 0);
    __m512i labels = gather_labels(job, row, entries);
    if (job->loops == SP_LOOPS_DROP)
        labels = _mm512_mask_mov_epi32(labels, _mm512_cmpeq_epi32_mask(labels, own), _mm512_set1_epi32(-1));
    labels = sort_lanes(labels, true); /* those below 0 are the last: unsigned */
    const int valid = __builtin_popcount(_mm512_cmpge_epi32_mask(labels, _mm512_setzero_si512()));
    const __m512i before = _mm512_alignr_epi32(labels, _mm512_set1_epi32(-1), 15); /* of each lane the one before it */
    const __mmask16 kept = _mm512_cmpneq_epi32_mask(labels, before) & (__mmask16)((1u << valid) - 1);
    const int count = __builtin_popcount(kept);
    const __m512i columns = _mm512_maskz_compress_epi32(kept, labels);
    const __m512i starts = _mm512_mask_compress_epi32(_mm512_set1_epi32(valid), kept, places);
    const __m512i ends = _mm512_alignr_epi32(_mm512_set1_epi32(valid), starts, 1);
    const __m512i times = _mm512_sub_epi32(ends, starts);
    __m512d low = _mm512_cvtepi32_pd(_mm512_castsi512_si256(times));
    __m512d high = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(times, 1));
    if (job->half) {
        const __mmask16 loop = _mm512_cmpeq_epi32_mask(columns, own);
        low = _mm512_mask_mul_pd(low, (__mmask8)loop, low, _mm512_set1_pd(0.5));
        high = _mm512_mask_mul_pd(high, (__mmask8)(loop >> 8), high, _mm512_set1_pd(0.5));
    }
    _mm512_storeu_si512(out->columns + out->count, columns);
    if (job->g->value_type == SP_F64) {
        _mm512_storeu_pd((double *)out->values + out->count, low);
        _mm512_storeu_pd((double *)out->values + out->count + 8, high);
    } else {
        _mm256_storeu_ps((float *)out->values + out->count, _mm512_cvtpd_ps(low));
        _mm256_storeu_ps((float *)out->values + out->count + 8, _mm512_cvtpd_ps(high));
    }
    w->left_out += entries - valid;
    return count;
}

AVX512 sp_status sp_make_short_rows(void *scratch, int64_t first, int64_t end, int64_t *counts, row_buffer *out)
{
    worker *w = scratch;
    int64_t most = SHORT_ENTRIES;
    for (int64_t row = first; row < end; row++) most += counts[row] < w->job->groups ? counts[row] : w->job->groups;
    sp_status status = sp_row_buffer_reserve(out, most);
    for (int64_t row = first; row < end && status == SP_OK; row++) {
        const int64_t entries = counts[row], before = out->count;
        if (entries > SHORT_ENTRIES) {
            status = sp_make_row(scratch, row, entries, out);
        } else if (entries > 0) {
            out->count += make_short(w, row, entries, out);
            w->rows[ROW_SHORT]++;
        }
        counts[row] = out->count - before;
    }
    return status;
}

#else

sp_status sp_make_short_rows(void *scratch, int64_t first, int64_t end, int64_t *counts, row_buffer *out)
{
    sp_status status = SP_OK;
    for (int64_t row = first; row < end && status == SP_OK; row++) {
        const int64_t before = out->count;
        status = sp_make_row(scratch, row, counts[row], out);
        counts[row] = out->count - before;
    }
    return status;
}

#endif
