/* Matrices of bf16 on the CPU, computed in f32: rows widened and rounded, products with a result of bf16 by pieces of
 * its rows, and for operations that know f32 alone copies of whole matrices. */
#include "lanes.h"

/* PIECE: numbers of C that are worked on at once (256 KB in f32, in the second-level cache). FEW: rows of them at
 * least, and a multiple of those that gemm.c's loops take at once. */
enum { PIECE = 1 << 16, FEW = 24 };

/* ---- rows ----------------------------------------------------------------------------------------------- */

#if defined __x86_64__
AVX512 static void widen_lanes(const uint16_t *from, float *to, int64_t count, int64_t ahead)
{
    int64_t j = 0;
    for (; count - j >= 2 * LANES; j += 2 * LANES) {
        const __m512i bits = _mm512_loadu_si512(from + j);
        if (ahead) __builtin_prefetch(from + j + ahead);
        const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(bits));
        const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(bits, 1));
        _mm512_storeu_si512(to + j, _mm512_slli_epi32(low, 16));
        _mm512_storeu_si512(to + j + LANES, _mm512_slli_epi32(high, 16));
    }
    if (ahead) __builtin_prefetch(from + j + ahead);
    for (; j < count; j += LANES) {
        const __mmask16 some = lanes_first(count - j);
        _mm512_mask_storeu_ps(to + j, some, lanes_load(from, j, some, true));
    }
}

AVX512 static void round_lanes(const float *from, uint16_t *to, int64_t count)
{
    for (int64_t j = 0; j < count; j += LANES) {
        const __mmask16 some = lanes_first(count - j);
        lanes_store(to, j, some, lanes_load(from, j, some, false), true);
    }
}
#else
#define widen_lanes(...) ((void)0)
#define round_lanes(...) ((void)0)
#endif

void gnn_cpu_widen_row(const uint16_t *from, float *to, int64_t count) { gnn_cpu_widen_ahead(from, to, count, 0); }

void gnn_cpu_widen_ahead(const uint16_t *from, float *to, int64_t count, int64_t ahead)
{
    if (have_lanes(SP_DENSE_BF16)) widen_lanes(from, to, count, ahead);
    else
        for (int64_t j = 0; j < count; j++) to[j] = float_of_bf16(from[j]);
}

void gnn_cpu_round_row(const float *from, uint16_t *to, int64_t count)
{
    if (have_lanes(SP_DENSE_BF16)) round_lanes(from, to, count);
    else
        for (int64_t j = 0; j < count; j++) to[j] = bf16_of_float(from[j]);
}

/* ---- products ------------------------------------------------------------------------------------------- */

static int64_t rows_at_once(int64_t cols)
{
    const int64_t rows = PIECE / (cols > 0 ? cols : 1);
    return rows < FEW ? FEW : rows / FEW * FEW;
}

/* Fewer columns may take more: 1,366 of them 24 rows at once, and 273 of these 240. */
int64_t gnn_cpu_half_numbers(int64_t cols) { return FEW * cols > PIECE ? FEW * cols : PIECE; }

/* Rows i .. of a matrix that may end before. */
static sp_dense rows_of(const sp_dense *matrix, int64_t i, int64_t rows)
{
    const int64_t begin = i < matrix->rows ? i : matrix->rows, left = matrix->rows - begin;
    return cpu_part(matrix, begin, left < rows ? left : rows, 0, matrix->cols);
}

/* Rows of C in f32, with their numbers if `read`. */
static sp_dense widened(const sp_dense *rows, bool read, float *space)
{
    if (!cpu_is_half(rows)) return *rows;
    const sp_dense wide = {.rows = rows->rows, .cols = rows->cols, .stride = rows->cols, .type = SP_DENSE_F32,
                           .space = rows->space, .values = space};
    for (int64_t i = 0; read && i < rows->rows; i++) gnn_cpu_widen_row(cpu_row(rows, i), cpu_row(&wide, i), rows->cols);
    return wide;
}

void gnn_cpu_gemm_half(const cpu_gemm *g, const cpu_gemm_room *room, float *space)
{
    const int64_t cols = g->c[0].cols + (g->count > 1 ? g->c[1].cols : 0);
    const int64_t rows = rows_at_once(cols);
    cpu_gemm wide = *g;
    for (int64_t i = 0; i < g->a.rows; i += rows) {
        sp_dense part[2];
        wide.a = rows_of(&g->a, i, rows);
        for (int k = 0; k < g->count; k++) {
            part[k] = rows_of(&g->c[k], i, rows);
            wide.c[k] = widened(&part[k], g->beta != 0, space + (k ? rows * g->c[0].cols : 0));
        }
        gnn_cpu_gemm(&wide, room);
        for (int k = 0; k < g->count; k++)
            for (int64_t r = 0; cpu_is_half(&part[k]) && r < part[k].rows; r++)
                gnn_cpu_round_row(cpu_row(&wide.c[k], r), cpu_row(&part[k], r), part[k].cols);
    }
}

/* ---- whole matrices ------------------------------------------------------------------------------------- */

sp_status gnn_cpu_wide(gnn_engine *engine, const sp_dense *matrix, bool read, sp_dense *wide)
{
    sp_dense made;
    if (matrix->type != SP_DENSE_BF16) {
        *wide = *matrix;
        return SP_OK;
    }
    const sp_status status = sp_dense_create(engine->context, matrix->rows, matrix->cols, SP_DENSE_F32, SP_HOST, &made);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(engine, matrix->rows * matrix->cols / 2))
    for (int64_t i = 0; i < matrix->rows; i++)
        if (read) gnn_cpu_widen_row(cpu_row(matrix, i), cpu_row(&made, i), matrix->cols);
    *wide = made;
    return SP_OK;
}

void gnn_cpu_leave_wide(gnn_engine *engine, const sp_dense *matrix, sp_dense *narrow, sp_dense *wide)
{
    if (matrix->type != SP_DENSE_BF16) return;
    if (narrow && wide->values) gnn_cpu_round(engine, wide, narrow);
    sp_dense_free(engine->context, wide);
}
