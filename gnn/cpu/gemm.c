/* C_k = alpha · op(A) · op(B_k) + beta · C_k of f32 or bf16 for one B or two, on the calling thread.
 *
 * Rows of C are formed ROWS at a time in two vectors of columns each (AVX-512: 12 x 32 numbers, AVX2: 6 x 16), which
 * stay in registers over up to INNER terms: 24 or 12 multiply-adds for 14 or 8 loads a term. A is read where it lies, B
 * from a copy in the order of the loop, at most INNER x COLS numbers (512 KB, in the second-level cache). Two B side by
 * side share one pass over A. BLAS packs A, too, which takes longer than multiplying where C is narrow: 89,250 x 500 x
 * 16 takes OpenBLAS 27 ms and MKL 32, this 7 (one thread of a Zen 5; X alone is read in 4.5).
 *
 * bf16 is computed in f32: B is widened where it is packed, A into a buffer in the first-level cache just before it is
 * multiplied, C by half.c. Copies of whole matrices would take as long as the product.
 *
 * The order of additions depends on the shape alone. f64, and machines without AVX2, use BLAS. */
#include <cblas.h>
#include <omp.h>

#include "backend.h"
#include "base/kernel.h"
#include "base/vectors.h"

/* INNER: terms between two visits of a sum in C; DOWN: the same for Aᵀ·B, whose terms are rows of A, so that what a
 * group of A's columns touches (DOWN lines) stays in the first-level cache. COLS: columns of B that are packed at
 * once. LINE_NUMBERS: numbers of a line of the caches. GROUPS: of A's columns that are widened at once. WIDE: numbers
 * of A that are (25 KB), in rows that do not begin at the same places of the cache. */
enum { INNER = 512, DOWN = 128, COLS = 256, MOST_VECTORS = COLS / 8, LINE_NUMBERS = 16, GROUPS = 4 };
enum { MOST_ROWS = 12, WIDE_STRIDE = INNER + LINE_NUMBERS, WIDE = MOST_ROWS * WIDE_STRIDE };

/* A vector of neighbouring columns: of C, and of B or, where B is transposed, rows of it. */
typedef struct gemm_vector {
    float *c;
    int64_t stride, rows; /* rows from there on are not C's */
    const char *b;
    bool half; /* B is bf16 */
    int64_t b_stride, terms; /* terms from there on are 0 */
    int lanes;
} gemm_vector;

typedef struct gemm_block {
    int64_t stride, ahead, inner; /* of A; ahead: the distance of the numbers that follow after these sums */
    float beta;
} gemm_block;

/* Rows row .. end - 1 of C in a panel; `a` are the first one's numbers. */
typedef void gemm_panel(const gemm_block *block, const float *a, const float *b, int64_t row, int64_t end,
                        const gemm_vector *to);
typedef struct gemm_loops {
    int lanes, rows;
    gemm_panel *panel[2][2]; /* op(A) = A and Aᵀ; of one vector, of two */
} gemm_loops;

#define UNROLL _Pragma("GCC unroll 16")
#define JOIN_EXPANDED(name, level) name##_##level
#define JOIN(name, level) JOIN_EXPANDED(name, level)

#if defined __x86_64__
#define LEVEL avx512
#define LANES 16
#define ROWS 12
#define TARGET AVX512
#define VECTOR __m512
#define ZERO _mm512_setzero_ps()
#define LOAD _mm512_loadu_ps
#define SPREAD _mm512_set1_ps
#define ADD_PRODUCT _mm512_fmadd_ps
#define LOAD_SOME(at, lanes) _mm512_maskz_loadu_ps((__mmask16)((1u << (lanes)) - 1), at)
#define STORE_SOME(at, lanes, value) _mm512_mask_storeu_ps(at, (__mmask16)((1u << (lanes)) - 1), value)
#include "gemm.inc"

static const int32_t some_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
#define FIRST_LANES(lanes) _mm256_loadu_si256((const __m256i *)(some_lanes + 8 - (lanes)))
#define LEVEL avx2
#define LANES 8
#define ROWS 6
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR __m256
#define ZERO _mm256_setzero_ps()
#define LOAD _mm256_loadu_ps
#define SPREAD _mm256_set1_ps
#define ADD_PRODUCT _mm256_fmadd_ps
#define LOAD_SOME(at, lanes) _mm256_maskload_ps(at, FIRST_LANES(lanes))
#define STORE_SOME(at, lanes, value) _mm256_maskstore_ps(at, FIRST_LANES(lanes), value)
#include "gemm.inc"
#endif

static const gemm_loops *find_loops(void)
{
#if defined __x86_64__
    if (left_out("gnn-cpu-gemm")) return NULL;
    if (have_avx512() && !left_out("gnn-cpu-gemm-512")) return &loops_avx512;
    if (have_avx2() && __builtin_cpu_supports("fma")) return &loops_avx2;
#endif
    return NULL;
}

/* ---- packing ------------------------------------------------------------------------------------------ */

/* A place among the columns of C_1 and then C_2. */
typedef struct gemm_place {
    int product;
    int64_t column;
} gemm_place;

/* The next vectors from `at` on, which moves; the result is their number. */
static int list_vectors(const cpu_gemm *g, int lanes, gemm_place *at, gemm_vector *to)
{
    int count = 0;
    while (at->product < g->count && count < COLS / lanes) {
        const sp_dense *b = &g->b[at->product], *c = &g->c[at->product];
        const int64_t j = at->column, left = c->cols - j;
        to[count++] = (gemm_vector){(float *)c->values + j, c->stride, c->rows,
                                    cpu_part(b, g->transpose_b ? j : 0, 0, g->transpose_b ? 0 : j, 0).values,
                                    cpu_is_half(b), b->stride, g->transpose_b ? b->cols : b->rows,
                                    (int)(left < lanes ? left : lanes)};
        at->column = left > lanes ? j + lanes : 0;
        at->product += at->column == 0;
    }
    return count;
}

static inline float number_of(const char *values, int64_t at, bool half)
{
    return half ? float_of_bf16(((const uint16_t *)values)[at]) : ((const float *)values)[at];
}

/* Terms first .. first + count - 1 of the vectors, panel by panel. */
static void pack(const cpu_gemm *g, int lanes, const gemm_vector *vector, int vectors, int64_t first, int64_t count,
                 float *packed)
{
    const float alpha = (float)g->alpha;
    for (int v = 0; v < vectors; v++) {
        const gemm_vector *of = &vector[v];
        const int64_t width = v + 1 < vectors || v % 2 ? 2 * lanes : lanes, left = of->terms - first;
        const int64_t known = left < 0 ? 0 : left < count ? left : count;
        const int64_t term = g->transpose_b ? 1 : of->b_stride, column = g->transpose_b ? of->b_stride : 1;
        const int64_t size = of->half ? sizeof(uint16_t) : sizeof(float);
        const char *from = of->b + first * term * size;
        float *to = packed + v / 2 * (count * 2 * lanes) + v % 2 * lanes;
        for (int64_t k = 0; k < known; k++, from += term * size, to += width) {
            if (column == 1 && of->lanes == lanes && alpha == 1) {
                if (of->half) gnn_cpu_widen_row((const uint16_t *)(const void *)from, to, lanes);
                else memcpy(to, from, (size_t)lanes * sizeof *to);
                continue;
            }
            for (int j = 0; j < of->lanes; j++) to[j] = alpha * number_of(from, j * column, of->half);
            for (int j = of->lanes; j < lanes; j++) to[j] = 0;
        }
        for (int64_t k = known; k < count; k++, to += width) memset(to, 0, (size_t)lanes * sizeof *to);
    }
}

/* ---- products ----------------------------------------------------------------------------------------- */

/* A's numbers for rows `row` .. of C and `inner` terms from `first` on, in f32: where they lie, or widened. */
static const float *numbers_of_a(const cpu_gemm *g, int rows, int64_t row, int64_t first, int64_t inner, float *wide)
{
    const bool down = g->transpose_a;
    const int64_t group = GROUPS * rows, left = (down ? g->a.cols : g->a.rows) - row;
    if (!cpu_is_half(&g->a))
        return (const float *)g->a.values + (down ? first * g->a.stride + row : row * g->a.stride + first);
    if (down && row % group) return wide + row % group;
    const sp_dense part = down ? cpu_part(&g->a, first, inner, row, left < group ? left : group)
                               : cpu_part(&g->a, row, left < rows ? left : rows, first, inner);
    for (int64_t i = 0; i < part.rows; i++)
        gnn_cpu_widen_ahead(cpu_row(&part, i), wide + i * (down ? group : WIDE_STRIDE), part.cols,
                            g->a.stride * (down ? DOWN : rows));
    return wide;
}

static void multiply_vectors(const cpu_gemm *g, const gemm_loops *loops, const gemm_vector *vector, int vectors,
                             float *packed, float *wide)
{
    const sp_dense *a = &g->a;
    const int64_t stride = !cpu_is_half(a) ? a->stride : g->transpose_a ? GROUPS * loops->rows : WIDE_STRIDE;
    const bool down = g->transpose_a;
    const int64_t rows = down ? a->cols : a->rows, all = down ? a->rows : a->cols, most = down ? DOWN : INNER;
    int64_t first = 0;
    do { /* without terms C is 0 */
        const int64_t inner = all - first < most ? all - first : most;
        const gemm_block block = {stride, cpu_is_half(a) ? 0 : stride * (down ? DOWN : loops->rows), inner,
                                  first > 0 ? 1 : (float)g->beta};
        pack(g, loops->lanes, vector, vectors, first, inner, packed);
        for (int64_t row = 0; row < rows; row += loops->rows) {
            const float *from = numbers_of_a(g, loops->rows, row, first, inner, wide);
            for (int v = 0; v < vectors; v += 2)
                loops->panel[down][v + 1 < vectors](&block, from, packed + v * inner * loops->lanes, row,
                                                    rows - row < loops->rows ? rows : row + loops->rows, vector + v);
        }
        first += inner;
    } while (first < all);
}

static void multiply_by_blas(const cpu_gemm *g, int k)
{
    const CBLAS_TRANSPOSE op_a = g->transpose_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE op_b = g->transpose_b ? CblasTrans : CblasNoTrans;
    const sp_dense *a = &g->a, *b = &g->b[k], *c = &g->c[k];
    const int64_t terms = g->transpose_b ? b->cols : b->rows;
    const int m = (int)c->rows, n = (int)c->cols, inner = (int)terms;
    /* BLAS ends the process over a stride of 0, even if it reads nothing. */
    const int a_stride = a->stride > 0 ? (int)a->stride : 1, b_stride = b->stride > 0 ? (int)b->stride : 1;
    const int c_stride = (int)c->stride;
    if (c->type == SP_DENSE_F32)
        cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, inner, (float)g->alpha, a->values, a_stride, b->values, b_stride,
                    (float)g->beta, c->values, c_stride);
    else
        cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, inner, g->alpha, a->values, a_stride, b->values, b_stride,
                    g->beta, c->values, c_stride);
}

bool gnn_cpu_multiplies_half(void) { return find_loops() != NULL; }

void gnn_cpu_gemm(const cpu_gemm *g, const cpu_gemm_room *room)
{
    gemm_vector vector[MOST_VECTORS];
    gemm_place at = {0, 0};
    float *wide = room->wide + omp_get_thread_num() * room->wide_each;
    if (cpu_is_half(&g->c[0]) || (g->count > 1 && cpu_is_half(&g->c[1]))) gnn_cpu_gemm_half(g, room, wide + WIDE);
    else if (!room->loops)
        for (int k = 0; k < g->count; k++) multiply_by_blas(g, k);
    else
        while (at.product < g->count) {
            const int vectors = list_vectors(g, room->loops->lanes, &at, vector);
            multiply_vectors(g, room->loops, vector, vectors, room->packed + omp_get_thread_num() * room->each, wide);
        }
}

sp_status gnn_cpu_gemm_begin(gnn_engine *engine, sp_dense_type type, int threads, int64_t inner, int64_t cols,
                             bool half, cpu_gemm_room *room)
{
    cpu_state *state = engine->state;
    *room = (cpu_gemm_room){.loops = type == SP_DENSE_F64 ? NULL : find_loops(), .blas_threads = 1};
    if (room->loops) { /* one product's columns and the other's are whole vectors */
        const int64_t padded = cols + 2 * room->loops->lanes;
        room->each = cpu_at_most(inner, INNER) * cpu_at_most(padded, COLS) / LINE_NUMBERS * LINE_NUMBERS + LINE_NUMBERS;
    }
    room->wide_each = half ? WIDE + (gnn_cpu_half_numbers(cols) + LINE_NUMBERS) / LINE_NUMBERS * LINE_NUMBERS : 0;
    const int64_t numbers = threads * (room->each + room->wide_each) + LINE_NUMBERS;
    if (numbers > state->packed_count) {
        sp_free(engine->context, state->packed);
        state->packed_count = 0;
        const sp_status status = sp_alloc(engine->context, numbers, sizeof *state->packed, (void **)&state->packed);
        if (status != SP_OK) return status;
        state->packed_count = numbers;
    }
    room->packed = state->packed + LINE_NUMBERS - (uintptr_t)state->packed / sizeof *state->packed % LINE_NUMBERS;
    room->wide = room->packed + threads * room->each;
    if (!room->loops) {
        room->blas_threads = state->blas_threads ? state->blas_threads() : 1;
        if (room->blas_threads > 1) state->set_blas_threads(1);
    }
    return SP_OK;
}

void gnn_cpu_gemm_end(const gnn_engine *engine, const cpu_gemm_room *room)
{
    const cpu_state *state = engine->state;
    if (room->blas_threads > 1) state->set_blas_threads(room->blas_threads);
}
