/* Dense tiles of a block for tensor cores. If nodes are numbered by community, a tile of 128 rows and 64 columns
 * within a community has hundreds of entries. As bits it is multiplied on tensor cores in less time than its entries
 * take to gather rows of X one by one:
 *
 *   A = diag(r)·T·diag(c) + R        T: the tiles' ones; R: the entries of all other tiles, as ever
 *
 * r and c are 1/√d for GCN's Â of a graph without weights, 1/d and nothing for means, nothing for sums. (Tiles of
 * sparse matrices on tensor cores: Wang et al., TC-GNN, 2023, who condense columns; here the numbering does.)
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "internal.h"

/* A tile takes as long as some 180 gathered entries (H200, 256 columns: 20.7 ns; an entry 0.113 ns for 1 KB at 9.1
 * TB/s). Matrices with few entries, few columns or few dense tiles are left as they are. */
enum { LEAST_IN_TILE = 180, LEAST_WIDTH = 32 };
static const int64_t LEAST_ENTRIES = 1000000;
static const double LEAST_SHARE = 0.25;

/* The result on the host. */
typedef struct cut {
    int64_t *start, *kept; /* tiles before each panel; entries beside the tiles before each row */
    int32_t *column;
    uint32_t *bits;
    float *scale;
    sp_csr rest;
    float *backward;
} cut;

static void free_cut(sp_context *context, cut *c)
{
    void *const all[] = {c->start, c->kept, c->column, c->bits, c->scale, c->backward};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sp_free(context, all[i]);
    sp_csr_free(context, &c->rest);
}

/* ---- scales -------------------------------------------------------------------------------------------- */

static int64_t length_of(const sp_csr *a, int64_t i) { return a->row_offsets[i + 1] - a->row_offsets[i]; }

/* The scale 1/√d or 1/d. *fits: the matrix has the values that this scale gives. */
static sp_status find_scale(sp_context *context, const sp_csr *a, gnn_layer layer, cut *c, bool *fits)
{
    const float *values = a->values;
    bool all = true;
    sp_status status = SP_OK;
    *fits = layer == GNN_GCN ? values != NULL : layer == GNN_SAGE || (layer == GNN_GIN && !values);
    if (!*fits || layer == GNN_GIN) return SP_OK;
    TRY(sp_alloc(context, a->rows, sizeof *c->scale, (void **)&c->scale));
    for (int64_t i = 0; i < a->rows; i++) {
        const double degree = length_of(a, i) > 0 ? (double)length_of(a, i) : 1;
        c->scale[i] = (float)(layer == GNN_GCN ? 1 / sqrt(degree) : 1 / degree);
    }
    if (layer == GNN_SAGE) return SP_OK;
#pragma omp parallel for schedule(dynamic, 1024) reduction(&& : all) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
            const float made = c->scale[i] * c->scale[a->col_indices[k]];
            all = all && fabsf(values[k] - made) <= 1e-6f * made;
        }
    *fits = all;
done:
    return status;
}

/* ---- the cut ------------------------------------------------------------------------------------------- */

static int64_t end_of_panel(const sp_csr *a, int64_t panel)
{
    const int64_t end = (panel + 1) * GNN_TILE_ROWS;
    return end < a->rows ? end : a->rows;
}

/* Entries of each tile of a panel. */
static void count_tiles(const sp_csr *a, int64_t panel, int64_t columns, int32_t *count)
{
    const int64_t begin = a->row_offsets[panel * GNN_TILE_ROWS], end = a->row_offsets[end_of_panel(a, panel)];
    memset(count, 0, (size_t)columns * sizeof *count);
    for (int64_t k = begin; k < end; k++) count[a->col_indices[k] / GNN_TILE_COLS]++;
}

/* Counts the tiles of each panel and the entries that each row keeps. */
static void count_all(sp_context *context, const sp_csr *a, int64_t panels, int64_t columns, int32_t *counts, cut *c)
{
    const int threads = sp_context_threads(context);
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t p = 0; p < panels; p++) {
        int32_t *count = counts + omp_get_thread_num() * columns;
        count_tiles(a, p, columns, count);
        for (int64_t j = 0; j < columns; j++) c->start[p + 1] += count[j] >= LEAST_IN_TILE;
        for (int64_t i = p * GNN_TILE_ROWS; i < end_of_panel(a, p); i++)
            for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++)
                c->kept[i + 1] += count[a->col_indices[k] / GNN_TILE_COLS] < LEAST_IN_TILE;
    }
    for (int64_t p = 0; p < panels; p++) c->start[p + 1] += c->start[p];
    for (int64_t i = 0; i < a->rows; i++) c->kept[i + 1] += c->kept[i];
}

/* Sets the bit of row r and column j of a tile. Bits have the order of m16n8k16 products: for every 16 rows each lane
 * has a word, whose bits b and 16 + b are the two numbers of a register. */
static void set_bit(uint32_t *tile, int r, int j)
{
    const int lane = r % 8 * 4 + j % 8 / 2, bit = j / 16 * 4 + j % 16 / 8 * 2 + r % 16 / 8;
    tile[r / 16 * 32 + lane] |= 1u << (bit + j % 2 * 16);
}

/* Fills one panel's tiles and the other entries of its rows. `place`: room for a number for each column of tiles. */
static void fill_panel(const sp_csr *a, int64_t panel, int64_t columns, int32_t *place, cut *c)
{
    const int64_t first = panel * GNN_TILE_ROWS;
    int64_t next = c->start[panel];
    count_tiles(a, panel, columns, place);
    for (int64_t j = 0; j < columns; j++) {
        const bool dense = place[j] >= LEAST_IN_TILE;
        place[j] = dense ? (int32_t)(next - c->start[panel]) : -1;
        if (dense) c->column[next++] = (int32_t)j;
    }
    for (int64_t i = first; i < end_of_panel(a, panel); i++) {
        int64_t to = c->kept[i];
        for (int64_t k = a->row_offsets[i]; k < a->row_offsets[i + 1]; k++) {
            const int32_t j = a->col_indices[k], at = place[j / GNN_TILE_COLS];
            if (at >= 0) {
                set_bit(c->bits + (c->start[panel] + at) * GNN_TILE_WORDS, (int)(i - first), j % GNN_TILE_COLS);
                continue;
            }
            c->rest.col_indices[to] = j;
            if (c->rest.values)
                ((float *)c->rest.values)[to] = a->values ? ((const float *)a->values)[k] : c->scale[i];
            if (c->backward) c->backward[to] = c->scale[j];
            to++;
        }
    }
}

/* Everything except the scales. *pays: enough entries lie in tiles. */
static sp_status cut_tiles(sp_context *context, const sp_csr *a, gnn_layer layer, cut *c, bool *pays)
{
    const int64_t panels = (a->rows + GNN_TILE_ROWS - 1) / GNN_TILE_ROWS;
    const int64_t columns = (a->cols + GNN_TILE_COLS - 1) / GNN_TILE_COLS;
    const int threads = sp_context_threads(context);
    int32_t *counts = NULL;
    sp_status status;
    TRY(sp_alloc(context, columns * threads, sizeof *counts, (void **)&counts));
    TRY(sp_calloc(context, panels + 1, sizeof *c->start, (void **)&c->start));
    TRY(sp_calloc(context, a->rows + 1, sizeof *c->kept, (void **)&c->kept));
    count_all(context, a, panels, columns, counts, c);
    const int64_t left = c->kept[a->rows], tiles = c->start[panels];
    *pays = (double)(a->nnz - left) >= LEAST_SHARE * (double)a->nnz;
    if (!*pays) goto done;
    TRY(sp_alloc(context, tiles, sizeof *c->column, (void **)&c->column));
    TRY(sp_calloc(context, tiles * GNN_TILE_WORDS, sizeof *c->bits, (void **)&c->bits));
    TRY(sp_csr_create(context, a->rows, a->cols, left, SP_F32, SP_HOST, &c->rest));
    memcpy(c->rest.row_offsets, c->kept, (size_t)(a->rows + 1) * sizeof *c->kept);
    if (layer == GNN_SAGE) TRY(sp_alloc(context, left, sizeof *c->backward, (void **)&c->backward));
    if (layer == GNN_GIN) {
        sp_free(context, c->rest.values);
        c->rest.values = NULL;
    }
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t p = 0; p < panels; p++) fill_panel(a, p, columns, counts + omp_get_thread_num() * columns, c);
done:
    sp_free(context, counts);
    return status;
}

/* ---- the tiles in the engine's space ------------------------------------------------------------------- */

static void free_tiles(gnn_tiles *t)
{
    sp_context *context = t->engine->context;
    const sp_space space = t->engine->space;
    void *const all[] = {t->start, t->column, t->bits, t->scale, t->backward_values, t->halves, t->largest};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sp_array_free(context, space, all[i]);
    sp_csr_free(context, &t->rest);
    if (t->engine->tiles == t) t->engine->tiles = NULL;
    sp_free(context, t);
}

/* NULL stays NULL. */
static sp_status place(gnn_engine *engine, const void *from, int64_t count, size_t size, void *to)
{
    return from ? gnn_place(engine, count, size, from, to) : SP_OK;
}

static sp_status place_tiles(gnn_engine *engine, const cut *c, gnn_tiles *t)
{
    const int64_t panels = (c->rest.rows + GNN_TILE_ROWS - 1) / GNN_TILE_ROWS, count = c->start[panels];
    sp_status status;
    t->panels = panels;
    TRY(place(engine, c->start, panels + 1, sizeof *c->start, &t->start));
    TRY(place(engine, c->column, count, sizeof *c->column, &t->column));
    TRY(place(engine, c->bits, count * GNN_TILE_WORDS, sizeof *c->bits, &t->bits));
    TRY(place(engine, c->scale, c->rest.rows, sizeof *c->scale, &t->scale));
    TRY(place(engine, c->backward, c->rest.nnz, sizeof *c->backward, &t->backward_values));
    TRY(sp_csr_copy(engine->context, &c->rest, engine->space, &t->rest));
    TRY(sp_array_create(engine->context, 1, sizeof *t->largest, engine->space, (void **)&t->largest));
done:
    return status;
}

static sp_status make_tiles(gnn_engine *engine, const sp_csr *a, gnn_layer layer, gnn_tiles **tiles)
{
    sp_context *context = engine->context;
    cut c = {0};
    sp_csr host = {0};
    gnn_tiles *t = NULL;
    bool good = false;
    sp_status status;
    TRY(sp_csr_copy(context, a, SP_HOST, &host));
    TRY(find_scale(context, &host, layer, &c, &good));
    if (good) TRY(cut_tiles(context, &host, layer, &c, &good));
    if (!good) goto done;
    TRY(sp_calloc(context, 1, sizeof *t, (void **)&t));
    *t = (gnn_tiles){.engine = engine, .offsets = a->row_offsets, .layer = layer};
    TRY(place_tiles(engine, &c, t));
    *tiles = t;
    t = NULL;
done:
    if (t) free_tiles(t);
    sp_csr_free(context, &host);
    free_cut(context, &c);
    return status;
}

/* Room for two halves of X with `width` columns. On failure the old room stays, for other blocks. */
static sp_status widen(gnn_tiles *t, int64_t width)
{
    const int64_t padded = gnn_tile_width(width);
    const int64_t rows = (t->rest.cols + GNN_TILE_COLS - 1) / GNN_TILE_COLS * GNN_TILE_COLS;
    void *halves;
    if (padded <= t->padded) return SP_OK;
    const sp_status status = sp_array_create(t->engine->context, 2 * rows * padded, 2, t->engine->space, &halves);
    if (status != SP_OK) return status;
    sp_array_free(t->engine->context, t->engine->space, t->halves);
    t->halves = halves;
    t->padded = padded;
    return SP_OK;
}

/* ---- of a block ---------------------------------------------------------------------------------------- */

void gnn_tiles_release(gnn_tiles *tiles)
{
    if (tiles && --tiles->users == 0) free_tiles(tiles);
}

static sp_status split(gnn_block *block)
{
    const sp_spmm_options how = {.deterministic = true};
    gnn_engine *engine = block->engine;
    gnn_tiles *tiles = engine->tiles;
    sp_status status;
    if (!tiles || tiles->offsets != block->a.row_offsets || tiles->layer != block->layer) {
        tiles = NULL;
        TRY(make_tiles(engine, &block->a, block->layer, &tiles));
        if (!tiles) goto done;
        engine->tiles = tiles;
    }
    tiles->users++;
    block->tiles = tiles;
    TRY(widen(tiles, block->width));
    TRY(sp_spmm_plan_create(engine->context, &tiles->rest, block->width, &how, &block->rest));
done:
    return status;
}

sp_status gnn_block_split(gnn_block *block)
{
    if (!block) return gnn_require(__func__, "block", block);
    const gnn_engine *engine = block->engine;
    const sp_csr *a = &block->a;
    const bool taken = block->layer == GNN_GCN || block->layer == GNN_SAGE || block->layer == GNN_GIN;
    if (block->tiles || !taken || !engine->takes_tiles || !block->symmetric || a->value_type != SP_F32 ||
        a->nnz < LEAST_ENTRIES || block->width < LEAST_WIDTH)
        return SP_OK;
    const sp_status status = split(block);
    if (status == SP_OK) return SP_OK;
    gnn_tiles_release(block->tiles);
    block->tiles = NULL;
    return gnn_lacks_memory(status) ? SP_OK : status; /* tiles are optional */
}

sp_status gnn_tiles_prepare_backward(gnn_block *block)
{
    const sp_spmm_options how = {.deterministic = true};
    if (block->rest_backward) return SP_OK;
    block->rest_backward = block->rest; /* the block is symmetric, and so are its tiles */
    if (block->layer != GNN_SAGE) return SP_OK;
    sp_csr turned = block->tiles->rest;
    turned.values = block->tiles->backward_values;
    block->rest_backward = NULL;
    return sp_spmm_plan_create(block->engine->context, &turned, block->width, &how, &block->rest_backward);
}

sp_status gnn_block_multiply(gnn_block *block, bool backward, const sp_dense *x, const sp_dense *gathered,
                             double beta, sp_dense *y, sp_dense *whole_y)
{
    const gnn_tiles *t = block->tiles;
    const float *scale = t ? t->scale : NULL;
    const bool means = block->layer == GNN_SAGE;
    if (!t) return sp_spmm_execute(backward ? block->backward : block->forward, 1, gathered, beta, whole_y);
    sp_spmm_plan *rest = backward ? block->rest_backward : block->rest;
    const sp_status status = sp_spmm_execute(rest, 1, gathered, beta, whole_y);
    if (status != SP_OK) return status;
    return block->engine->backend->multiply_tiles(block->engine, t, means && backward ? NULL : scale,
                                                  means && !backward ? NULL : scale, x, y);
}
