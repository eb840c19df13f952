/* Sums of blocks of rows by panels of 16 columns; see panels.h. */
#include <string.h>

#include "markov/cpu/panels.h"
#include "markov/cpu/spread.h"

/* A tile of a panel has at most TILE_ROWS rows: 256 KB, half of a second-level cache. A block has at most BLOCK_MOST
 * rows and about BLOCK_SUMS sums, 4 MB; each thread gets BLOCKS of them if that leaves BLOCK_LEAST rows a block. */
enum { TILE_ROWS = 1 << 12, BLOCK_MOST = 128, BLOCK_LEAST = 32, BLOCK_SUMS = 1 << 20, BLOCKS = 8 };
/* A place in a vector of values that is read beyond its end. */
enum { SPARE = 8 };

/* A row of B within its tile, and what it is multiplied by. */
typedef struct panel_term {
    uint32_t row;
    float weight;
} panel_term;

struct panel_block {
    const panel_index *index;
    int64_t count, tiles;
    panel_term *terms;
    int64_t *starts;  /* tiles + 1 a row: where the terms of each tile begin */
    float *sums;      /* panels · PANEL a row */
    double *partial;  /* PANEL a row: a panel's sums over the tiles so far */
    float *tile;      /* PANEL a row of B */
    void *tile_block; /* where `tile` lies */
};

/* ---- whether, and how large ---------------------------------------------------------------------------- */

int64_t sp_panel_block_rows(const sp_csr *a, const sp_csr *b, int threads)
{
    int64_t rows = a->rows / ((int64_t)BLOCKS * threads);
    if (rows > BLOCK_SUMS / (b->cols + 1)) rows = BLOCK_SUMS / (b->cols + 1);
    if (rows > BLOCK_MOST) rows = BLOCK_MOST;
    return rows < BLOCK_LEAST ? BLOCK_LEAST : rows;
}

bool sp_panels_pay(const sp_csr *a, const sp_csr *b, int64_t line_products, bool fast)
{
    /* Nanoseconds of an EPYC: a term in a panel, a row of B that is spread in one, a line that is added by itself. */
    const double term = fast ? 1.0 : 1.9, row = 4, line = 3;
    const double panels = (double)((b->cols + PANEL - 1) / PANEL);
    const double blocks = (double)(a->rows / sp_panel_block_rows(a, b, 1) + 1);
    return have_avx2() &&
           panels * ((double)a->nnz * term + blocks * (double)b->rows * row) < (double)line_products * line;
}

/* ---- B by panels --------------------------------------------------------------------------------------- */

/* Marks the columns of B's rows of original numbers first to end - 1 and counts the values of each panel in `at`; or,
 * with `fill`, writes the values from `at` on. */
static void deal_rows(const panel_index *index, const sp_csr *b, const int32_t *by_number, int64_t first, int64_t end,
                      int64_t *at, bool fill)
{
    const float *values = b->values;
    for (int64_t r = first; r < end; r++) {
        const int64_t row = by_number ? by_number[r] : r;
        for (int64_t k = b->row_offsets[row]; k < b->row_offsets[row + 1]; k++) {
            const int64_t panel = b->col_indices[k] / PANEL;
            if (fill) {
                index->values[at[panel]] = values[k];
            } else {
                uint16_t *mask = &index->masks[panel * index->rows + r];
                *mask = (uint16_t)(*mask | 1u << b->col_indices[k] % PANEL);
            }
            at[panel]++;
        }
    }
}

/* Turns each thread's counts of the panels into the places of its values. */
static void place_values(panel_index *index, int64_t *counts, int threads)
{
    int64_t sum = 0;
    for (int64_t p = 0; p < index->panels; p++) {
        index->offsets[p] = sum;
        for (int t = 0; t < threads; t++) {
            const int64_t count = counts[t * index->panels + p];
            counts[t * index->panels + p] = sum;
            sum += count;
        }
    }
    memset(index->values + sum, 0, SPARE * sizeof *index->values);
}

sp_status sp_panel_index_create(sp_context *context, const sp_csr *b, const int32_t *order, panel_index *index)
{
    const int threads = sp_threads_for(context, b->nnz);
    int32_t *by_number = NULL;
    int64_t *counts = NULL;
    sp_status status;
    *index = (panel_index){.rows = b->rows, .panels = (b->cols + PANEL - 1) / PANEL};
    const int64_t tiles = (b->rows + TILE_ROWS - 1) / TILE_ROWS, panels = index->panels;
    index->tile = tiles ? (b->rows + tiles - 1) / tiles : 1;
    TRY(sp_alloc(context, panels + 1, sizeof *index->offsets, (void **)&index->offsets));
    TRY(sp_calloc(context, panels * b->rows, sizeof *index->masks, (void **)&index->masks));
    TRY(sp_alloc(context, b->nnz + SPARE, sizeof *index->values, (void **)&index->values));
    TRY(sp_calloc(context, panels * threads, sizeof *counts, (void **)&counts));
    if (order) {
        TRY(sp_alloc(context, b->rows, sizeof *by_number, (void **)&by_number));
        for (int64_t i = 0; i < b->rows; i++) by_number[order[i]] = (int32_t)i;
    }
    for (int fill = 0; fill < 2; fill++) {
#pragma omp parallel for schedule(static, 1) num_threads(threads)
        for (int t = 0; t < threads; t++)
            deal_rows(index, b, by_number, b->rows * t / threads, b->rows * (t + 1) / threads, counts + t * panels,
                      fill);
        if (!fill) place_values(index, counts, threads);
    }
done:
    FREE_ALL(context, by_number, counts);
    if (status != SP_OK) sp_panel_index_free(context, index);
    return status;
}

void sp_panel_index_free(sp_context *context, panel_index *index)
{
    FREE_ALL(context, index->offsets, index->masks, index->values);
    *index = (panel_index){0};
}

/* ---- a block ------------------------------------------------------------------------------------------- */

sp_status sp_panel_block_create(sp_context *context, const panel_index *index, int64_t rows, int64_t terms,
                                panel_block **block)
{
    panel_block *made = NULL;
    sp_status status;
    TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    made->index = index;
    made->tiles = (index->rows + index->tile - 1) / index->tile;
    TRY(sp_alloc(context, terms, sizeof *made->terms, (void **)&made->terms));
    TRY(sp_alloc(context, rows * (made->tiles + 1), sizeof *made->starts, (void **)&made->starts));
    TRY(sp_alloc(context, rows * index->panels, PANEL * sizeof *made->sums, (void **)&made->sums));
    TRY(sp_alloc(context, rows, PANEL * sizeof *made->partial, (void **)&made->partial));
    TRY(sp_alloc(context, index->tile + 1, PANEL * sizeof *made->tile, &made->tile_block));
    made->tile = (float *)(((uintptr_t)made->tile_block + 63) / 64 * 64);
done:
    if (status != SP_OK) sp_panel_block_free(context, made);
    *block = status == SP_OK ? made : NULL;
    return status;
}

void sp_panel_block_free(sp_context *context, panel_block *block)
{
    if (!block) return;
    FREE_ALL(context, block->terms, block->starts, block->sums, block->partial, block->tile_block, block);
}

void sp_panel_block_begin(panel_block *block)
{
    block->count = 0;
    block->starts[0] = 0;
}

void sp_panel_block_add(panel_block *block, const int32_t *rows, const float *weights, int64_t terms,
                        const int32_t *order)
{
    int64_t *starts = block->starts + block->count * (block->tiles + 1);
    const int64_t first = block->count > 0 ? starts[-1] : 0, tile_rows = block->index->tile;
    int64_t tile = 0;
    starts[0] = first;
    for (int64_t k = 0; k < terms; k++) {
        const int64_t row = order ? order[rows[k]] : rows[k];
        while (row >= (tile + 1) * tile_rows) starts[++tile] = first + k;
        block->terms[first + k] = (panel_term){(uint32_t)(row - tile * tile_rows), weights[k]};
    }
    while (tile < block->tiles) starts[++tile] = first + terms;
    block->count++;
}

const float *sp_panel_block_row(const panel_block *block, int64_t row)
{
    return block->sums + row * block->index->panels * PANEL;
}

#if defined(__x86_64__)

/* Spreads the packed values of `rows` rows of a panel; returns where the next rows' values begin. */
AVX2 static const float *spread_tile(const uint16_t *masks, int64_t rows, const float *packed, float *tile)
{
    for (int64_t r = 0; r < rows; r++, tile += PANEL) {
        const unsigned low = masks[r] & 255u, high = masks[r] >> 8u;
        _mm256_store_ps(tile, spread(packed, low));
        packed += _mm_popcnt_u32(low);
        _mm256_store_ps(tile + 8, spread(packed, high));
        packed += _mm_popcnt_u32(high);
    }
    return packed;
}

/* The conversions bind: two instructions each on the two ports that add. */
AVX2 static void sum_terms(const float *tile, const panel_term *terms, const panel_term *end, double *sums)
{
    __m256d s0 = _mm256_loadu_pd(sums), s1 = _mm256_loadu_pd(sums + 4);
    __m256d s2 = _mm256_loadu_pd(sums + 8), s3 = _mm256_loadu_pd(sums + 12);
    for (; terms < end; terms++) {
        const float *b = tile + (size_t)terms->row * PANEL;
        const __m128 weight = _mm_broadcast_ss(&terms->weight);
        s0 = _mm256_add_pd(s0, _mm256_cvtps_pd(_mm_mul_ps(weight, _mm_load_ps(b))));
        s1 = _mm256_add_pd(s1, _mm256_cvtps_pd(_mm_mul_ps(weight, _mm_load_ps(b + 4))));
        s2 = _mm256_add_pd(s2, _mm256_cvtps_pd(_mm_mul_ps(weight, _mm_load_ps(b + 8))));
        s3 = _mm256_add_pd(s3, _mm256_cvtps_pd(_mm_mul_ps(weight, _mm_load_ps(b + 12))));
    }
    _mm256_storeu_pd(sums, s0);
    _mm256_storeu_pd(sums + 4, s1);
    _mm256_storeu_pd(sums + 8, s2);
    _mm256_storeu_pd(sums + 12, s3);
}

/* The same in f32, two terms at a time. */
AVX2 static void sum_terms_fast(const float *tile, const panel_term *terms, const panel_term *end, float *sums)
{
    __m256 s0 = _mm256_loadu_ps(sums), s1 = _mm256_loadu_ps(sums + 8);
    __m256 t0 = _mm256_setzero_ps(), t1 = t0;
    for (; terms + 1 < end; terms += 2) {
        const float *b = tile + (size_t)terms->row * PANEL, *c = tile + (size_t)terms[1].row * PANEL;
        const __m256 weight = _mm256_broadcast_ss(&terms->weight), next = _mm256_broadcast_ss(&terms[1].weight);
        s0 = _mm256_add_ps(s0, _mm256_mul_ps(weight, _mm256_load_ps(b)));
        s1 = _mm256_add_ps(s1, _mm256_mul_ps(weight, _mm256_load_ps(b + 8)));
        t0 = _mm256_add_ps(t0, _mm256_mul_ps(next, _mm256_load_ps(c)));
        t1 = _mm256_add_ps(t1, _mm256_mul_ps(next, _mm256_load_ps(c + 8)));
    }
    if (terms < end) {
        const float *b = tile + (size_t)terms->row * PANEL;
        const __m256 weight = _mm256_broadcast_ss(&terms->weight);
        s0 = _mm256_add_ps(s0, _mm256_mul_ps(weight, _mm256_load_ps(b)));
        s1 = _mm256_add_ps(s1, _mm256_mul_ps(weight, _mm256_load_ps(b + 8)));
    }
    _mm256_storeu_ps(sums, _mm256_add_ps(s0, t0));
    _mm256_storeu_ps(sums + 8, _mm256_add_ps(s1, t1));
}

/* Moves the f64 sums of a panel to their places as f32, and zeroes them. */
AVX2 static void round_sums(const panel_block *block, int64_t panel)
{
    const int64_t stride = block->index->panels * PANEL;
    for (int64_t i = 0; i < block->count; i++) {
        double *from = block->partial + i * PANEL;
        float *to = block->sums + i * stride + panel * PANEL;
        for (int j = 0; j < PANEL; j += 4) {
            _mm_storeu_ps(to + j, _mm256_cvtpd_ps(_mm256_loadu_pd(from + j)));
            _mm256_storeu_pd(from + j, _mm256_setzero_pd());
        }
    }
}

AVX2 static void sum_panel(panel_block *block, int64_t panel, bool fast)
{
    const panel_index *index = block->index;
    const uint16_t *masks = index->masks + panel * index->rows;
    const float *packed = index->values + index->offsets[panel];
    const int64_t stride = index->panels * PANEL;
    for (int64_t t = 0; t < block->tiles; t++) {
        const int64_t first = t * index->tile, left = index->rows - first;
        packed = spread_tile(masks + first, left < index->tile ? left : index->tile, packed, block->tile);
        for (int64_t i = 0; i < block->count; i++) {
            const int64_t *starts = block->starts + i * (block->tiles + 1) + t;
            const panel_term *terms = block->terms + starts[0], *end = block->terms + starts[1];
            if (fast) sum_terms_fast(block->tile, terms, end, block->sums + i * stride + panel * PANEL);
            else sum_terms(block->tile, terms, end, block->partial + i * PANEL);
        }
    }
    if (!fast) round_sums(block, panel);
}

void sp_panel_block_sum(panel_block *block, bool fast)
{
    if (block->count == 0) return;
    memset(block->partial, 0, (size_t)block->count * PANEL * sizeof *block->partial);
    if (fast) memset(block->sums, 0, (size_t)(block->count * block->index->panels) * PANEL * sizeof *block->sums);
    for (int64_t p = 0; p < block->index->panels; p++) sum_panel(block, p, fast);
}

#else

void sp_panel_block_sum(panel_block *block, bool fast)
{
    (void)block;
    (void)fast;
}

#endif
