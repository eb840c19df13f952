/* Meshes and matrices of a regular shape: grids, finite elements, lattices, diagonals, blocks, and the transfers
 * between a grid and a coarser one. */
#include <math.h>

#include "recipe.h"

/* ---- grid with deletions ------------------------------------------------------------------------------- */

static sp_status prepare_grid(sp_context *context, recipe *r)
{
    r->longest = 4;
    return set_rows(context, r, 2);
}

static int64_t grid_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t width = whole(r, 0), x = row % width;
    const int64_t beside[4] = {row - width, x > 0 ? row - 1 : -1, x < width - 1 ? row + 1 : -1, row + width};
    int64_t count = 0;
    for (int i = 0; i < 4; i++)
        if (beside[i] >= 0 && beside[i] < r->rows && 100 * unit64(pair_hash(r->seed, row, beside[i])) < r->p[2])
            cols[count++] = (int32_t)beside[i];
    return count;
}

/* ---- finite elements ----------------------------------------------------------------------------------- */

static sp_status prepare_fem2d(sp_context *context, recipe *r)
{
    r->longest = 9 * whole(r, 2);
    return set_rows(context, r, 3);
}

/* Each node has nine nodes around it, coupled by full blocks. */
static int64_t fem2d_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t width = whole(r, 0), height = whole(r, 1), block = whole(r, 2);
    const int64_t node = row / block, x = node % width, y = node / width;
    int64_t count = 0;
    for (int64_t v = y > 0 ? y - 1 : 0; v <= y + 1 && v < height; v++)
        for (int64_t u = x > 0 ? x - 1 : 0; u <= x + 1 && u < width; u++)
            for (int64_t e = 0; e < block; e++) cols[count++] = (int32_t)((v * width + u) * block + e);
    return count;
}

static sp_status prepare_fem3d(sp_context *context, recipe *r)
{
    const int64_t least = whole(r, 3), most = whole(r, 4);
    if (most < least)
        return sp_fail(context, SP_ERROR_ARGUMENT, "fem3d: MOST is %lld, below LEAST, %lld", (long long)most,
                       (long long)least);
    sp_status status = set_rows(context, r, 3); /* counts nodes here */
    if (status != SP_OK) return status;
    r->parts = r->rows;
    status = sp_alloc(context, r->parts + 1, sizeof *r->starts, (void **)&r->starts);
    if (status != SP_OK) return status;
    r->starts[0] = 0;
    for (int64_t i = 0; i < r->parts; i++) {
        uint64_t state = stream(r->seed, NODES, i);
        r->starts[i + 1] = r->starts[i] + least + below(&state, most - least + 1);
    }
    r->rows = r->starts[r->parts];
    r->longest = 27 * most;
    if (r->rows <= INT32_MAX) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%lld rows: dimensions end at %d", (long long)r->rows, INT32_MAX);
}

/* A periodic box: each node has 27 nodes around it, coupled by full blocks of different sizes. */
static int64_t fem3d_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t nx = whole(r, 0), ny = whole(r, 1), nz = whole(r, 2), node = part_of(r->starts, r->parts, row);
    const int64_t x = node % nx, y = node / nx % ny, z = node / nx / ny;
    int64_t count = 0;
    for (int64_t k = 0; k < 27; k++) {
        const int64_t u = (x + k % 3 - 1 + nx) % nx, v = (y + k / 3 % 3 - 1 + ny) % ny, w = (z + k / 9 - 1 + nz) % nz;
        const int64_t other = (w * ny + v) * nx + u;
        for (int64_t col = r->starts[other]; col < r->starts[other + 1]; col++) cols[count++] = (int32_t)col;
    }
    return count;
}

/* ---- torus --------------------------------------------------------------------------------------------- */

static sp_status prepare_torus(sp_context *context, recipe *r)
{
    r->longest = 1 + 2 * r->count;
    return set_rows(context, r, r->count);
}

/* A node and its two neighbours in each dimension. */
static int64_t torus_row(const recipe *r, int64_t row, int32_t *cols)
{
    int64_t count = 0, stride = 1;
    cols[count++] = (int32_t)row;
    for (int i = 0; i < r->count; i++) {
        const int64_t size = whole(r, i), x = row / stride % size, base = row - x * stride;
        cols[count++] = (int32_t)(base + (x + 1) % size * stride);
        cols[count++] = (int32_t)(base + (x + size - 1) % size * stride);
        stride *= size;
    }
    return count;
}

/* ---- arrowhead ----------------------------------------------------------------------------------------- */

static sp_status prepare_arrow(sp_context *context, recipe *r)
{
    (void)context;
    r->rows = r->longest = whole(r, 0);
    return SP_OK;
}

/* Five diagonals. The first rows and columns hold a given share of all entries. */
static int64_t arrow_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t head = whole(r, 1), dense = row < head ? r->rows : head < r->rows ? head : r->rows;
    const int64_t reach = row < head ? 0 : 2, low = row - reach, high = row + reach;
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    int64_t count = 0;
    for (int64_t j = 0; j < dense; j++)
        if (100 * draw(&state) < r->p[2] || (j >= low && j <= high)) cols[count++] = (int32_t)j;
    for (int64_t j = low > dense ? low : dense; j <= high && j < r->rows; j++) cols[count++] = (int32_t)j;
    return count;
}

/* ---- stencils and grid transfers ----------------------------------------------------------------------- */

typedef struct box {
    int64_t size[3];
} box;

static box box_of(const recipe *r) { return (box){{whole(r, 0), whole(r, 1), whole(r, 2)}}; }

/* The grid of boxes of 3 x 3 x 3 nodes. */
static box coarsened(box fine)
{
    for (int i = 0; i < 3; i++) fine.size[i] = (fine.size[i] + 2) / 3;
    return fine;
}

static void place_in(const box *grid, int64_t node, int64_t place[3])
{
    place[0] = node % grid->size[0];
    place[1] = node / grid->size[0] % grid->size[1];
    place[2] = node / grid->size[0] / grid->size[1];
}

/* The number of a node by its coordinates; -1 outside the grid. */
static int64_t node_at(const box *grid, int64_t x, int64_t y, int64_t z)
{
    if (x < 0 || y < 0 || z < 0 || x >= grid->size[0] || y >= grid->size[1] || z >= grid->size[2]) return -1;
    return (z * grid->size[1] + y) * grid->size[0] + x;
}

static sp_status prepare_stencil(sp_context *context, recipe *r)
{
    const int64_t points = whole(r, 3);
    r->longest = 27;
    if ((points == 5 || points == 9) && whole(r, 2) != 1)
        return sp_fail(context, SP_ERROR_ARGUMENT, "stencil: %lld points need DEPTH 1", (long long)points);
    if (points != 5 && points != 7 && points != 9 && points != 27)
        return sp_fail(context, SP_ERROR_ARGUMENT, "stencil: POINTS is %lld, not 5, 7, 9 or 27", (long long)points);
    return set_rows(context, r, 3);
}

static int64_t stencil_row(const recipe *r, int64_t row, int32_t *cols)
{
    const box grid = box_of(r);
    const bool cross = whole(r, 3) < 9;
    int64_t at[3], count = 0;
    place_in(&grid, row, at);
    for (int64_t k = 0; k < 27; k++) {
        const int64_t dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1;
        const int64_t node = node_at(&grid, at[0] + dx, at[1] + dy, at[2] + dz);
        if (node >= 0 && (!cross || dx * dx + dy * dy + dz * dz <= 1)) cols[count++] = (int32_t)node;
    }
    return count;
}

static sp_status prepare_aggregation(sp_context *context, recipe *r)
{
    const box coarse = coarsened(box_of(r));
    r->longest = 1;
    r->cols = coarse.size[0] * coarse.size[1] * coarse.size[2];
    return set_rows(context, r, 3);
}

static int64_t aggregation_row(const recipe *r, int64_t row, int32_t *cols)
{
    const box fine = box_of(r), coarse = coarsened(fine);
    int64_t at[3];
    place_in(&fine, row, at);
    cols[0] = (int32_t)node_at(&coarse, at[0] / 3, at[1] / 3, at[2] / 3);
    return 1;
}

static sp_status prepare_restriction(sp_context *context, recipe *r)
{
    const sp_status status = prepare_aggregation(context, r);
    const int64_t fine = r->rows;
    r->rows = r->cols;
    r->cols = fine;
    r->longest = 81; /* 27 nodes, and the 54 beside the faces of their box */
    return status;
}

/* The nodes of a box, and those within `reach` of its faces along one axis. */
static int64_t box_row(const recipe *r, int64_t row, int64_t reach, int32_t *cols)
{
    const box fine = box_of(r), coarse = coarsened(fine);
    int64_t at[3], count = 0;
    place_in(&coarse, row, at);
    for (int64_t z = -reach; z < 3 + reach; z++)
        for (int64_t y = -reach; y < 3 + reach; y++)
            for (int64_t x = -reach; x < 3 + reach; x++) {
                const int outside = (x < 0 || x > 2) + (y < 0 || y > 2) + (z < 0 || z > 2);
                const int64_t node = node_at(&fine, 3 * at[0] + x, 3 * at[1] + y, 3 * at[2] + z);
                if (node >= 0 && outside <= 1) cols[count++] = (int32_t)node;
            }
    return count;
}

static int64_t restriction_row(const recipe *r, int64_t row, int32_t *cols) { return box_row(r, row, 0, cols); }

static sp_status prepare_coarse(sp_context *context, recipe *r) { return prepare_restriction(context, r); }

static int64_t coarse_row(const recipe *r, int64_t row, int32_t *cols) { return box_row(r, row, 1, cols); }

/* ---- around the diagonal ------------------------------------------------------------------------------- */

static sp_status prepare_band(sp_context *context, recipe *r)
{
    (void)context;
    r->rows = whole(r, 0);
    r->longest = 2 * whole(r, 1) + 1;
    return SP_OK;
}

static int64_t band_row(const recipe *r, int64_t row, int32_t *cols)
{
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    int64_t count = 0;
    for (int64_t col = row - whole(r, 1); col <= row + whole(r, 1); col++)
        if (100 * draw(&state) < r->p[2] && col >= 0 && col < r->rows) cols[count++] = (int32_t)col;
    return count;
}

static sp_status prepare_blocks(sp_context *context, recipe *r)
{
    const int64_t least = whole(r, 1), most = whole(r, 2);
    if (most < least)
        return sp_fail(context, SP_ERROR_ARGUMENT, "blocks: MOST is %lld, below LEAST, %lld", (long long)most,
                       (long long)least);
    r->rows = whole(r, 0);
    r->longest = most;
    const sp_status status = sp_alloc(context, r->rows / least + 2, sizeof *r->starts, (void **)&r->starts);
    if (status != SP_OK) return status;
    for (int64_t at = 0; at < r->rows; r->parts++) {
        uint64_t state = stream(r->seed, NODES, r->parts);
        r->starts[r->parts] = at;
        at += least + below(&state, most - least + 1);
    }
    r->starts[r->parts] = r->rows;
    return SP_OK;
}

static int64_t blocks_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t part = part_of(r->starts, r->parts, row);
    int64_t count = 0;
    for (int64_t col = r->starts[part]; col < r->starts[part + 1]; col++) cols[count++] = (int32_t)col;
    return count;
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

const kind mesh_kinds[] = {
    {"grid", 3, 3, {SIZE("WIDTH"), SIZE("HEIGHT"), PERCENT("KEPT")}, BY_ROWS(grid)},
    {"fem2d", 3, 3, {SIZE("WIDTH"), SIZE("HEIGHT"), WHOLE("BLOCK", 1, 1000)}, BY_ROWS(fem2d)},
    {"fem3d", 5, 5,
     {WHOLE("WIDTH", 3, 100000), WHOLE("HEIGHT", 3, 100000), WHOLE("DEPTH", 3, 100000), WHOLE("LEAST", 0, 1000),
      WHOLE("MOST", 1, 1000)},
     BY_ROWS(fem3d)},
    {"torus", 1, MAX_PARAMETERS, {WHOLE("SIZE", 1, 1000)}, BY_ROWS(torus), .repeats = true},
    {"arrow", 3, 3, {SIZE("ROWS"), WHOLE("DENSE", 0, INT32_MAX), PERCENT("FILLED")}, BY_ROWS(arrow)},
    {"stencil", 4, 4, {SIZE("WIDTH"), SIZE("HEIGHT"), SIZE("DEPTH"), WHOLE("POINTS", 5, 27)}, BY_ROWS(stencil)},
    {"aggregation", 3, 3, {SIZE("WIDTH"), SIZE("HEIGHT"), SIZE("DEPTH")}, BY_ROWS(aggregation)},
    {"restriction", 3, 3, {SIZE("WIDTH"), SIZE("HEIGHT"), SIZE("DEPTH")}, BY_ROWS(restriction)},
    {"coarse", 3, 3, {SIZE("WIDTH"), SIZE("HEIGHT"), SIZE("DEPTH")}, BY_ROWS(coarse)},
    {"band", 3, 3, {SIZE("ROWS"), WHOLE("HALF", 0, 1e6), PERCENT("FILLED")}, BY_ROWS(band)},
    {"blocks", 3, 3, {SIZE("ROWS"), WHOLE("LEAST", 1, 1e5), WHOLE("MOST", 1, 1e5)}, BY_ROWS(blocks)},
    {0},
};
