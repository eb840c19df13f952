/* Attention of GAT in f32 and bf16 by AVX-512: attention.c's sums with sixteen numbers at once, where the heads (1, 2,
 * 4, 8 or 16) fill vectors. One row of A, or of its transpose, at a time:
 *
 *   scores    of all heads of neighbouring entries side by side in a vector: leakyrelu, exp, dropout. They stay in the
 *             first-level cache, up to SCORES of them, as weights w and λ·w;
 *   rows      Σ w·X(j, ·) and Σ λ·w·X(j, ·) over the entries, up to 8 vectors of columns of both in registers. Forward
 *             X is H, and the second sum makes Q. Back X is dY, and the second sum, times H(j, ·), makes dr, so that an
 *             entry needs no sum over its columns.
 *
 * An epoch of 8 heads of 2 columns takes 106 ms in place of 509, of 8 heads of 32 columns 0.5 s in place of 4.7 (one
 * thread of a Zen 5, Flickr's shape). */
#include <math.h>
#include <omp.h>

#include "base/kernel.h"
#include "lanes.h"

#if defined __x86_64__
#define UNROLL _Pragma("GCC unroll 8")

/* SCORES: of the entries that are worked on at once. MOST_VECTORS: of columns in registers. AHEAD: entries from one to
 * that whose row is asked for. */
enum { SCORES = 1024, MOST_VECTORS = 8, AHEAD = 16 };

typedef struct lanes_job {
    const gnn_attention *of;
    const gnn_attention_gradient *back;
    cpu_mask mask;
    uint64_t stream[LANES]; /* of dropout, of the heads again and again */
    int heads;
    int64_t width, cols, row; /* of a head; of all; and of these in whole vectors */
    bool half;                /* H, Y, Q and their gradients are bf16; scores and room are f32 */
    const int32_t *head; /* of each column */
    float *room;         /* `each` numbers a thread */
    int64_t each;
} lanes_job;

/* A thread's work space. */
typedef struct lanes_room {
    float *weight, *slope; /* SCORES, and a vector */
    float *sums, *slope_sums, *products; /* a row of whole vectors */
} lanes_room;

static lanes_room room_of(const lanes_job *job)
{
    float *own = job->room + omp_get_thread_num() * job->each;
    float *rows = own + 2 * (SCORES + LANES);
    return (lanes_room){own, own + SCORES + LANES, rows, rows + job->row, rows + 2 * job->row};
}

/* ---- numbers of heads ----------------------------------------------------------------------------------- */

/* Lane t has the number of head t mod heads. */
AVX512 static inline __m512i head_lanes(int heads)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_and_si512(lane, _mm512_set1_epi32(heads - 1));
}

/* The row's numbers of all heads, again and again. */
AVX512 static inline __m512 repeated(const float *row, int heads)
{
    return _mm512_permutexvar_ps(head_lanes(heads), _mm512_maskz_loadu_ps(lanes_first(heads), row));
}

/* Lane t: the sum, or the maximum, of all lanes of its head. */
AVX512 static inline __m512 fold(__m512 x, int heads, bool maximum)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for (int step = heads; step < LANES; step *= 2) {
        const __m512 other = _mm512_permutexvar_ps(_mm512_xor_si512(lane, _mm512_set1_epi32(step)), x);
        x = maximum ? _mm512_max_ps(x, other) : _mm512_add_ps(x, other);
    }
    return x;
}

/* to[entry · heads + h] = X(cols[entry], h); `left`: entries from cols[0] to the end of the matrix. */
AVX512 static inline void take_scores(const sp_dense *x, const int32_t *cols, int64_t count, int64_t left, int heads,
                                      float *to)
{
    const float *from = x->values;
    const int64_t stride = x->stride;
    const __mmask16 some = lanes_first(heads);
    for (int64_t k = 0; k < count; k++) {
        __builtin_prefetch(from + (k + AHEAD < left ? cols[k + AHEAD] : 0) * stride);
        if (heads == 1) to[k] = from[cols[k] * stride];
        else if (heads == 8) _mm256_storeu_ps(to + 8 * k, _mm256_loadu_ps(from + cols[k] * stride));
        else _mm512_mask_storeu_ps(to + heads * k, some, _mm512_maskz_loadu_ps(some, from + cols[k] * stride));
    }
}

/* to[h] = Σ of a head's columns. */
AVX512 static inline void sum_heads(const float *row, int heads, int64_t width, float *to)
{
    for (int h = 0; h < heads; h++, row += width) {
        float sum = 0;
        if (width % LANES == 0) {
            __m512 sums = _mm512_setzero_ps();
            for (int64_t k = 0; k < width; k += LANES) sums = _mm512_add_ps(sums, _mm512_loadu_ps(row + k));
            sum = _mm512_reduce_add_ps(sums);
        } else {
            for (int64_t k = 0; k < width; k++) sum += row[k];
        }
        to[h] = sum;
    }
}

/* products[k] = x[k] · y[k]; which of the two are bf16 */
AVX512 static inline void multiply_row(const void *x, bool x_half, const void *y, bool y_half, int64_t cols,
                                       float *products)
{
    for (int64_t k = 0; k < cols; k += LANES) {
        const __mmask16 some = lanes_first(cols - k);
        _mm512_storeu_ps(products + k, _mm512_mul_ps(lanes_load(x, k, some, x_half), lanes_load(y, k, some, y_half)));
    }
}

/* Dropout of weights; entry k is places[k], or first + k. */
AVX512 static void drop_weights(const lanes_job *job, int64_t first, const int64_t *places, int64_t count,
                                const lanes_room *room)
{
    const __m512i step = _mm512_set1_epi64((int64_t)RANDOM_STEP), one = _mm512_set1_epi64(1);
    const __m512i bound = _mm512_set1_epi64((int64_t)job->mask.bound);
    const __m512 scale = _mm512_set1_ps((float)job->mask.scale);
    const unsigned shift = (unsigned)__builtin_ctz((unsigned)job->heads);
    if (!job->mask.bound) return;
    for (int64_t t = 0; t < count << shift; t += LANES) {
        __mmask16 kept = 0;
        for (int half = 0; half < 2; half++) {
            const __m512i lane = _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                                                  _mm512_set1_epi64(8 * half));
            const __m512i at = _mm512_add_epi64(_mm512_srli_epi64(lane, shift), _mm512_set1_epi64(t >> shift));
            const __mmask8 some = _mm512_cmplt_epi64_mask(at, _mm512_set1_epi64(count));
            const __m512i entry = places ? _mm512_mask_i64gather_epi64(one, some, at, places, 8)
                                         : _mm512_add_epi64(at, _mm512_set1_epi64(first));
            const __m512i stream = _mm512_loadu_si512(job->stream + 8 * half);
            const __m512i place = _mm512_add_epi64(stream, _mm512_mullo_epi64(_mm512_add_epi64(entry, one), step));
            const __m512i bits = _mm512_srli_epi64(lanes_draw(place), 40);
            kept = (__mmask16)(kept | _mm512_cmpge_epu64_mask(bits, bound) << 8 * half);
        }
        _mm512_storeu_ps(room->weight + t, _mm512_maskz_mul_ps(kept, _mm512_loadu_ps(room->weight + t), scale));
        _mm512_storeu_ps(room->slope + t, _mm512_maskz_mul_ps(kept, _mm512_loadu_ps(room->slope + t), scale));
    }
}

/* ---- sums of rows --------------------------------------------------------------------------------------- */

/* sums and slope_sums of columns `column` .. of X's rows, by the weights of `count` entries; `more`: they go on. */
AVX512 KERNEL void add_vectors(const lanes_job *job, const sp_dense *x, const int32_t *cols,
                                             int64_t count, int64_t left, int64_t column, bool more,
                                             const lanes_room *room, const int vectors, const bool of_half)
{
    const int heads = job->heads;
    const __mmask16 last = lanes_first(job->cols - column - (vectors - 1) * LANES);
    const int64_t size = of_half ? sizeof(uint16_t) : sizeof(float);
    const char *from = (const char *)x->values + column * size;
    float *to[] = {room->sums + column, room->slope_sums + column};
    __m512 sums[2][MOST_VECTORS];
    __m512i head[MOST_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) {
        head[v] = _mm512_loadu_si512(job->head + column + v * LANES);
        sums[0][v] = more ? _mm512_loadu_ps(to[0] + v * LANES) : _mm512_setzero_ps();
        sums[1][v] = more ? _mm512_loadu_ps(to[1] + v * LANES) : _mm512_setzero_ps();
    }
    for (int64_t k = 0; k < count; k++) {
        const char *row = from + cols[k] * x->stride * size;
        const __m512 weight = _mm512_loadu_ps(room->weight + k * heads);
        const __m512 slope = _mm512_loadu_ps(room->slope + k * heads);
        const char *next = from + (k + AHEAD < left ? cols[k + AHEAD] : 0) * x->stride * size;
        UNROLL for (int v = 0; v < vectors; v++) {
            const __m512 number = lanes_load(row, v * LANES, v < vectors - 1 ? 0xffff : last, of_half);
            if (!of_half || v % 2 == 0) __builtin_prefetch(next + v * LANES * size);
            sums[0][v] = _mm512_fmadd_ps(_mm512_permutexvar_ps(head[v], weight), number, sums[0][v]);
            sums[1][v] = _mm512_fmadd_ps(_mm512_permutexvar_ps(head[v], slope), number, sums[1][v]);
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) {
        _mm512_storeu_ps(to[0] + v * LANES, sums[0][v]);
        _mm512_storeu_ps(to[1] + v * LANES, sums[1][v]);
    }
}

/* All columns. `left`: entries from cols[0] to the end of the matrix. */
#define ADD_ROWS(name, of_half)                                                                                       \
    AVX512 static void name(const lanes_job *job, const sp_dense *x, const int32_t *cols, int64_t count,              \
                            int64_t left, bool more, const lanes_room *room)                                         \
    {                                                                                                                 \
        int64_t column = 0;                                                                                           \
        for (; job->cols - column > 7 * LANES; column += 8 * LANES)                                                   \
            add_vectors(job, x, cols, count, left, column, more, room, 8, of_half);                                   \
        for (; job->cols - column > 3 * LANES; column += 4 * LANES)                                                   \
            add_vectors(job, x, cols, count, left, column, more, room, 4, of_half);                                   \
        for (; job->cols - column > LANES; column += 2 * LANES)                                                       \
            add_vectors(job, x, cols, count, left, column, more, room, 2, of_half);                                   \
        if (column < job->cols) add_vectors(job, x, cols, count, left, column, more, room, 1, of_half);               \
    }

ADD_ROWS(add_float_rows, false)
ADD_ROWS(add_half_rows, true)

static inline void add_rows(const lanes_job *job, const sp_dense *x, const int32_t *cols, int64_t count, int64_t left,
                            bool more, const lanes_room *room)
{
    (job->half ? add_half_rows : add_float_rows)(job, x, cols, count, left, more, room);
}

/* ---- forward -------------------------------------------------------------------------------------------- */

/* The largest score of each head, before leakyrelu. */
AVX512 static __m512 largest_scores(const lanes_job *job, int64_t begin, int64_t end, const lanes_room *room)
{
    const sp_csr *a = job->of->a;
    const int heads = job->heads, at_once = SCORES / heads;
    __m512 most = _mm512_set1_ps(-INFINITY);
    for (int64_t e = begin; e < end; e += at_once) {
        const int64_t count = end - e < at_once ? end - e : at_once, scores = count * heads;
        take_scores(job->of->right, a->col_indices + e, count, a->nnz - e, heads, room->weight);
        for (int64_t t = 0; t < scores; t += LANES)
            most = _mm512_max_ps(_mm512_mask_loadu_ps(most, lanes_first(scores - t), room->weight + t), most);
    }
    return fold(most, heads, true);
}

/* Scores in room->weight become weights. */
AVX512 static void weigh(const lanes_job *job, __m512 own, __m512 most, int64_t scores, const lanes_room *room,
                         __m512 *total, __m512 *slope_total)
{
    const __m512 zero = _mm512_setzero_ps(), slope = _mm512_set1_ps((float)job->of->slope), one = _mm512_set1_ps(1);
    for (int64_t t = 0; t < scores; t += LANES) {
        const __m512 score = _mm512_add_ps(own, _mm512_loadu_ps(room->weight + t));
        const __m512 by = _mm512_mask_mov_ps(slope, _mm512_cmp_ps_mask(score, zero, _CMP_GT_OQ), one);
        const __m512 power = lanes_exponential(_mm512_sub_ps(_mm512_mul_ps(by, score), most));
        const __m512 chance = _mm512_maskz_mov_ps(lanes_first(scores - t), power), sloped = _mm512_mul_ps(by, chance);
        *total = _mm512_add_ps(*total, chance);
        *slope_total = _mm512_add_ps(*slope_total, sloped);
        _mm512_storeu_ps(room->weight + t, chance);
        _mm512_storeu_ps(room->slope + t, sloped);
    }
}

/* Y(i, ·), and Q(i, ·) unless there is no way back. */
AVX512 static void write_row(const lanes_job *job, int64_t i, __m512 by, __m512 slope_total, const lanes_room *room)
{
    void *y = cpu_row(job->of->y, i), *slopes = job->of->slopes ? cpu_row(job->of->slopes, i) : NULL;
    const __m512 slope = _mm512_mul_ps(by, slope_total);
    for (int64_t k = 0; k < job->cols; k += LANES) {
        const __mmask16 some = lanes_first(job->cols - k);
        const __m512i head = _mm512_loadu_si512(job->head + k);
        const __m512 factor = _mm512_permutexvar_ps(head, by);
        const __m512 sum = _mm512_mul_ps(factor, _mm512_loadu_ps(room->sums + k));
        lanes_store(y, k, some, sum, job->half);
        if (!slopes) continue;
        const __m512 sloped = _mm512_mul_ps(factor, _mm512_loadu_ps(room->slope_sums + k));
        lanes_store(slopes, k, some, _mm512_fnmadd_ps(_mm512_permutexvar_ps(head, slope), sum, sloped), job->half);
    }
}

AVX512 static void attend(const lanes_job *job, int64_t i)
{
    const gnn_attention *of = job->of;
    const int heads = job->heads, at_once = SCORES / heads;
    const int64_t begin = of->a->row_offsets[i], end = of->a->row_offsets[i + 1];
    const __m512 zero = _mm512_setzero_ps(), own = repeated(cpu_row(of->left, i), heads);
    const lanes_room room = room_of(job);
    __m512 most = _mm512_add_ps(own, largest_scores(job, begin, end, &room)), total = zero, slope_total = zero;
    const __m512 sloped = _mm512_mul_ps(most, _mm512_set1_ps((float)of->slope));
    most = _mm512_mask_mov_ps(sloped, _mm512_cmp_ps_mask(most, zero, _CMP_GT_OQ), most);
    for (int64_t e = begin; e < end; e += at_once) {
        const int64_t count = end - e < at_once ? end - e : at_once;
        const int32_t *cols = of->a->col_indices + e;
        if (end - begin > at_once) take_scores(of->right, cols, count, of->a->nnz - e, heads, room.weight);
        weigh(job, own, most, count * heads, &room, &total, &slope_total);
        drop_weights(job, e, NULL, count, &room);
        add_rows(job, of->h, cols, count, of->a->nnz - e, e > begin, &room);
    }
    if (begin == end) memset(room.sums, 0, 2 * (size_t)job->row * sizeof *room.sums);
    total = fold(total, heads, false);
    const __m512 by = begin == end ? zero : _mm512_div_ps(_mm512_set1_ps(1), total);
    const __m512 logs = begin == end ? zero : _mm512_add_ps(most, lanes_logarithm(total));
    _mm512_mask_storeu_ps(cpu_row(of->logs, i), lanes_first(heads), logs);
    write_row(job, i, by, fold(slope_total, heads, false), &room);
}

/* ---- back ----------------------------------------------------------------------------------------------- */

/* dY·Y and dY·Q of each head. */
AVX512 static void along(const lanes_job *job, int64_t i)
{
    const lanes_room room = room_of(job);
    const void *dy = cpu_row(job->back->y_gradient, i);
    multiply_row(dy, job->half, cpu_row(job->of->y, i), job->half, job->cols, room.products);
    sum_heads(room.products, job->heads, job->width, cpu_row(job->back->along, i));
    multiply_row(dy, job->half, cpu_row(job->of->slopes, i), job->half, job->cols, room.products);
    sum_heads(room.products, job->heads, job->width, cpu_row(job->back->left_gradient, i));
}

/* Weights of `count` entries of the transpose, and what they take off dr. */
AVX512 static __m512 weigh_back(const lanes_job *job, __m512 own, const int32_t *cols, int64_t count,
                                int64_t left, const lanes_room *room)
{
    enum { FEW = 128 };
    const gnn_attention *of = job->of;
    const int heads = job->heads, at_once = FEW / heads;
    const __m512 zero = _mm512_setzero_ps(), slope = _mm512_set1_ps((float)of->slope), one = _mm512_set1_ps(1);
    __m512 taken = zero;
    float logs[FEW + LANES], alongs[FEW + LANES];
    for (int64_t k = 0; k < count; k += at_once) {
        const int64_t some = count - k < at_once ? count - k : at_once, scores = some * heads;
        float *weight = room->weight + k * heads, *sloped = room->slope + k * heads;
        take_scores(of->left, cols + k, some, left - k, heads, weight);
        take_scores(of->logs, cols + k, some, left - k, heads, logs);
        take_scores(job->back->along, cols + k, some, left - k, heads, alongs);
        for (int64_t t = 0; t < scores; t += LANES) {
            const __m512 score = _mm512_add_ps(own, _mm512_loadu_ps(weight + t));
            const __m512 by = _mm512_mask_mov_ps(slope, _mm512_cmp_ps_mask(score, zero, _CMP_GT_OQ), one);
            const __m512 chance = lanes_exponential(_mm512_fmsub_ps(by, score, _mm512_loadu_ps(logs + t)));
            const __m512 both = _mm512_mul_ps(by, chance);
            taken = _mm512_mask_add_ps(taken, lanes_first(scores - t), taken,
                                       _mm512_mul_ps(both, _mm512_loadu_ps(alongs + t)));
            _mm512_storeu_ps(weight + t, chance);
            _mm512_storeu_ps(sloped + t, both);
        }
    }
    return taken;
}

/* dH(j, ·) = Σ w·dY + dl·left + dr·right */
AVX512 static void write_gradient(const lanes_job *job, int64_t j, const float *right, const lanes_room *room)
{
    const gnn_attention_gradient *back = job->back;
    const __mmask16 all = lanes_first(job->heads);
    const float *left_vector = back->left_vector, *right_vector = back->right_vector;
    void *dh = cpu_row(back->h_gradient, j);
    const __m512 dr = _mm512_maskz_loadu_ps(all, right);
    const __m512 dl = j < job->of->a->rows ? _mm512_maskz_loadu_ps(all, cpu_row(back->left_gradient, j))
                                           : _mm512_setzero_ps();
    for (int64_t k = 0; k < job->cols; k += LANES) {
        const __mmask16 some = lanes_first(job->cols - k);
        const __m512i head = _mm512_loadu_si512(job->head + k);
        __m512 sum = _mm512_loadu_ps(room->sums + k);
        sum = _mm512_fmadd_ps(_mm512_permutexvar_ps(head, dl), _mm512_maskz_loadu_ps(some, left_vector + k), sum);
        sum = _mm512_fmadd_ps(_mm512_permutexvar_ps(head, dr), _mm512_maskz_loadu_ps(some, right_vector + k), sum);
        lanes_store(dh, k, some, sum, job->half);
    }
}

AVX512 static void attend_back(const lanes_job *job, int64_t j)
{
    const gnn_attention *of = job->of;
    const sp_csr *a = job->back->transpose;
    const int heads = job->heads, at_once = SCORES / heads;
    const int64_t begin = a->row_offsets[j], end = a->row_offsets[j + 1];
    const __m512 own = repeated(cpu_row(of->right, j), heads);
    const lanes_room room = room_of(job);
    float *right = cpu_row(job->back->right_gradient, j);
    __m512 taken = _mm512_setzero_ps();
    for (int64_t t = begin; t < end; t += at_once) {
        const int64_t count = end - t < at_once ? end - t : at_once;
        taken = _mm512_add_ps(taken, weigh_back(job, own, a->col_indices + t, count, a->nnz - t, &room));
        drop_weights(job, 0, job->back->places + t, count, &room);
        add_rows(job, job->back->y_gradient, a->col_indices + t, count, a->nnz - t, t > begin, &room);
    }
    if (begin == end) memset(room.sums, 0, 2 * (size_t)job->row * sizeof *room.sums);
    multiply_row(cpu_row(of->h, j), job->half, room.slope_sums, false, job->cols, room.products);
    sum_heads(room.products, heads, job->width, right);
    const __mmask16 all = lanes_first(heads);
    const __m512 dr = _mm512_sub_ps(_mm512_maskz_loadu_ps(all, right), fold(taken, heads, false));
    _mm512_mask_storeu_ps(right, all, dr);
    write_gradient(job, j, right, &room);
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

bool gnn_cpu_takes_lanes(sp_dense_type type, int heads)
{
    return have_lanes(type) && heads <= LANES && LANES % heads == 0;
}

static sp_status prepare(gnn_engine *engine, int threads, lanes_job *job)
{
    const int64_t row = job->row;
    int32_t *head;
    job->each = 2 * (SCORES + LANES) + 3 * row;
    const sp_status status = gnn_cpu_scratch(engine, row + threads * job->each, sizeof *head, (void **)&head);
    if (status != SP_OK) return status;
    for (int64_t k = 0; k < row; k++) head[k] = k < job->cols ? (int32_t)(k / job->width) : 0;
    job->head = head;
    job->room = (float *)(head + row);
    for (int lane = 0; lane < LANES; lane++)
        job->stream[lane] = gnn_stream(job->mask.seed, job->mask.step,
                                       job->mask.site + (uint64_t)GNN_MAX_LAYERS * (uint64_t)(lane % job->heads));
    return SP_OK;
}

sp_status gnn_cpu_attention_lanes(gnn_engine *engine, const gnn_attention *attention, const cpu_mask *mask,
                                  const gnn_attention_gradient *back)
{
    lanes_job job = {.of = attention, .back = back, .mask = *mask, .heads = attention->heads,
                     .width = attention->h->cols / attention->heads, .cols = attention->h->cols,
                     .row = (attention->h->cols + LANES - 1) / LANES * LANES,
                     .half = attention->h->type == SP_DENSE_BF16};
    const sp_csr *a = back ? back->transpose : attention->a;
    const int threads = cpu_threads(engine, (2 * a->nnz + a->rows) * (job.cols + job.heads) / 8);
    const sp_status status = prepare(engine, threads, &job);
    if (status != SP_OK) return status;
    if (back) {
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
        for (int64_t i = 0; i < attention->a->rows; i++) along(&job, i);
    }
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (int64_t i = 0; i < a->rows; i++) (back ? attend_back : attend)(&job, i);
    return SP_OK;
}
#endif
