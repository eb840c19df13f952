/* The loops of tile.h: made for each type of X, with vectors of 64 bytes where the machine has AVX-512 and a row of
 * sums fills one, of 32 bytes where it has AVX2, of 16 bytes elsewhere and for 4 to 7 columns, and for single columns
 * below that. Sums of a column are formed in the same order by all of them. */
#include <math.h>
#include <string.h>
#if defined __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/ablation.h"
#include "base/half.h"
#include "base/kernel.h"
#include "base/vectors.h"
#include "spmm/cpu/tile.h"

/* X's rows are asked for this many entries ahead: 16 rows of 64 bytes cover the latency of memory (100 ns) at the
 * bandwidth of one core (10 GB/s). Rows of a line are over sooner, and twice as many take 5 to 12 % less time. */
enum { AHEAD = 16 };

/* Sums of this many entries are formed apart and then added: one chain of f32 additions over a hub's 10^5 entries would
 * be wrong in the fifth digit. */
enum { PIECE = 1024 };

/* Bytes of a row of sums while ranges of X's rows are gone through: of wider tiles a range holds too few rows, uniform
 * graphs at 128 columns and communities at 256 take 1.1 to 1.25 times as long. */
enum { RANGE_TILE_BYTES = 256 };

#define UNROLL _Pragma("GCC unroll 8")
#if defined __x86_64__
#define AVX2_F16C __attribute__((target("avx2,f16c")))
#define AVX512_F16C __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")))

/* Asked once: under a hypervisor cpuid takes microseconds, and not every compiler's __builtin_cpu_supports knows of
 * conversions from f16. */
static bool have_avx2_f16c(void)
{
    static int known; /* 1: no, 2: yes */
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!answer) {
        unsigned a, b, c = 0, d;
        const bool halves = __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
        answer = halves && __builtin_cpu_supports("avx2") ? 2 : 1;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == 2;
}
#endif

/* ---- rows that go through memory ----------------------------------------------------------------------- */

static void finish_float(const sp_dense *y, int64_t row, int64_t column, int64_t width, const float *sums,
                         double scale, double beta)
{
    const int64_t at = row * y->stride + column;
    const float by = (float)scale, keep = (float)beta;
    if (y->type == SP_DENSE_F32) {
        float *to = (float *)y->values + at;
        for (int64_t j = 0; j < width; j++) to[j] = sums[j] * by + keep * to[j];
        return;
    }
    uint16_t *to = (uint16_t *)y->values + at;
    const bool brain = y->type == SP_DENSE_BF16;
    for (int64_t j = 0; j < width; j++) {
        float value = sums[j] * by;
        if (beta != 0) value += keep * (brain ? float_of_bf16(to[j]) : float_of_f16(to[j]));
        to[j] = brain ? bf16_of_float(value) : f16_of_float(value);
    }
}

static void finish_double(const sp_dense *y, int64_t row, int64_t column, int64_t width, const double *sums,
                          double scale, double beta)
{
    double *to = (double *)y->values + row * y->stride + column;
    for (int64_t j = 0; j < width; j++) to[j] = sums[j] * scale + beta * to[j];
}

/* ---- instances ----------------------------------------------------------------------------------------- */

/* As numbers, to be compared by the preprocessor; types as in sp_dense_type. */
#define F32 0
#define F64 1
#define F16 2
#define BF16 3
#define WIDE 0
#define NARROW 1
#define SINGLE 2
#define WIDEST 3
#define JOIN_EXPANDED(name, type, level) name##_##type##_##level
#define JOIN(name, type, level) JOIN_EXPANDED(name, type, level)

#ifdef AVX2_F16C
#define X_TYPE F32
#define LEVEL WIDEST
#include "spmm/cpu/tile.inc"
#define X_TYPE F32
#define LEVEL WIDE
#include "spmm/cpu/tile.inc"
#endif
#define X_TYPE F32
#define LEVEL NARROW
#include "spmm/cpu/tile.inc"
#define X_TYPE F32
#define LEVEL SINGLE
#include "spmm/cpu/tile.inc"
#ifdef AVX2_F16C
#define X_TYPE F64
#define LEVEL WIDEST
#include "spmm/cpu/tile.inc"
#define X_TYPE F64
#define LEVEL WIDE
#include "spmm/cpu/tile.inc"
#endif
#define X_TYPE F64
#define LEVEL NARROW
#include "spmm/cpu/tile.inc"
#define X_TYPE F64
#define LEVEL SINGLE
#include "spmm/cpu/tile.inc"
#ifdef AVX2_F16C
#define X_TYPE F16
#define LEVEL WIDEST
#include "spmm/cpu/tile.inc"
#define X_TYPE F16
#define LEVEL WIDE
#include "spmm/cpu/tile.inc"
#endif
#define X_TYPE F16
#define LEVEL NARROW
#include "spmm/cpu/tile.inc"
#define X_TYPE F16
#define LEVEL SINGLE
#include "spmm/cpu/tile.inc"
#ifdef AVX2_F16C
#define X_TYPE BF16
#define LEVEL WIDEST
#include "spmm/cpu/tile.inc"
#define X_TYPE BF16
#define LEVEL WIDE
#include "spmm/cpu/tile.inc"
#endif
#define X_TYPE BF16
#define LEVEL NARROW
#include "spmm/cpu/tile.inc"
#define X_TYPE BF16
#define LEVEL SINGLE
#include "spmm/cpu/tile.inc"

typedef tile_rows *const tile_table[TILE_REDUCTIONS][TILE_VECTORS];

/* The loops for tiles of this many columns, and the lanes of their vectors. */
static tile_table *find_table(sp_dense_type type, int64_t width, int64_t *lanes)
{
#ifdef AVX2_F16C
    static tile_table *const widest[] = {&JOIN(tiles, F32, WIDEST), &JOIN(tiles, F64, WIDEST),
                                         &JOIN(tiles, F16, WIDEST), &JOIN(tiles, BF16, WIDEST)};
    static tile_table *const wide[] = {&JOIN(tiles, F32, WIDE), &JOIN(tiles, F64, WIDE), &JOIN(tiles, F16, WIDE),
                                       &JOIN(tiles, BF16, WIDE)};
#endif
    static tile_table *const narrow[] = {&JOIN(tiles, F32, NARROW), &JOIN(tiles, F64, NARROW),
                                         &JOIN(tiles, F16, NARROW), &JOIN(tiles, BF16, NARROW)};
    static tile_table *const single[] = {&JOIN(tiles, F32, SINGLE), &JOIN(tiles, F64, SINGLE),
                                         &JOIN(tiles, F16, SINGLE), &JOIN(tiles, BF16, SINGLE)};
    const int64_t size = type == SP_DENSE_F64 ? sizeof(double) : sizeof(float);
#ifdef AVX2_F16C
    *lanes = 64 / size;
    if (width >= *lanes && have_avx512() && have_avx2_f16c() && !left_out("spmm-avx512")) return widest[type];
    *lanes = 32 / size;
    if (width >= *lanes && have_avx2_f16c()) return wide[type];
#endif
    *lanes = 16 / size;
    if (width >= *lanes) return narrow[type];
    *lanes = 1;
    return single[type];
}

tile_rows *sp_tile_find(sp_dense_type type, tile_reduction reduction, int64_t width)
{
    int64_t lanes;
    tile_table *table = find_table(type, width, &lanes);
    return (*table)[reduction][(width + lanes - 1) / lanes - 1];
}

int64_t sp_tile_lanes(sp_dense_type type, int64_t head_width)
{
    int64_t lanes;
    for (int64_t width = INT64_MAX; width >= (type == SP_DENSE_F64 ? 2 : 4); width = lanes - 1) {
        find_table(type, width, &lanes);
        if (head_width % lanes == 0) return lanes;
    }
    return 0;
}

tile_rows *sp_tile_find_heads(sp_dense_type type, int64_t lanes, int64_t width)
{
    return (*find_table(type, lanes, &lanes))[TILE_HEADS][width / lanes - 1];
}

int64_t sp_tile_width(sp_dense_type type, tile_reduction reduction)
{
    int64_t lanes;
    find_table(type, INT64_MAX, &lanes);
    return lanes * (reduction == TILE_ARGUMENT ? ARGUMENT_VECTORS : TILE_VECTORS);
}

int64_t sp_tile_range_width(sp_dense_type type, tile_reduction reduction)
{
    const int64_t most = sp_tile_width(type, reduction);
    const int64_t fitting = RANGE_TILE_BYTES / (int64_t)(type == SP_DENSE_F64 ? sizeof(double) : sizeof(float));
    return most < fitting ? most : fitting;
}
