/* Graphs made as lists of edges. R-MAT: Chakrabarti, Zhan and Faloutsos 2004, with the quadrants of Graph500. */
#include <math.h>

#include "recipe.h"

/* ---- R-MAT --------------------------------------------------------------------------------------------- */

static const int64_t MOST_EDGES = (int64_t)1 << 33; /* the limit of sp_csr_from_coo */

static sp_status grow_edges(sp_context *context, edge_list *list, int64_t capacity)
{
    void *rows = list->rows, *cols = list->cols;
    sp_status status = sp_grow(context, list->count, capacity, sizeof *list->rows, &rows);
    list->rows = rows;
    if (status != SP_OK) return status;
    status = sp_grow(context, list->count, capacity, sizeof *list->cols, &cols);
    list->cols = cols;
    if (status == SP_OK) list->capacity = capacity;
    return status;
}

static sp_status rmat_edges(sp_context *context, recipe *r, edge_list *list)
{
    const int scale = (int)whole(r, 0);
    const int64_t count = whole(r, 1) << scale;
    const uint64_t seed = r->seed;
    r->rows = (int64_t)1 << scale;
    if (count > MOST_EDGES)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld edges at once are more than 2^33", (long long)count);
    sp_status status = grow_edges(context, list, count);
    if (status != SP_OK) return status;
    list->count = count;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < count; e++) {
        uint64_t state = stream(seed, ROWS_OF_KIND, e), row = 0, col = 0;
        for (int bit = 0; bit < scale; bit++) {
            const double u = draw(&state);
            row = 2 * row + (u >= 0.76);
            col = 2 * col + ((u >= 0.57 && u < 0.76) || u >= 0.95);
        }
        list->rows[e] = (int32_t)relabel(row, scale, seed);
        list->cols[e] = (int32_t)relabel(col, scale, seed);
    }
    return SP_OK;
}

/* ---- clusters ------------------------------------------------------------------------------------------ */

/* Families of proteins, as in similarity networks: sizes follow a power law, and families are cut into dense
 * subfamilies. A quarter of a node's degree goes to the rest of its family, and a few edges go anywhere. */
enum { FAMILY_LIMIT = 4000, SUBFAMILY_MEAN = 60, SUBFAMILY_LIMIT = 300 };

static sp_status add_edge(sp_context *context, edge_list *list, int64_t row, int64_t col)
{
    if (row == col) return SP_OK;
    if (list->count == list->capacity) {
        sp_status status = grow_edges(context, list, list->capacity + list->capacity / 2);
        if (status != SP_OK) return status;
    }
    list->rows[list->count] = (int32_t)row;
    list->cols[list->count++] = (int32_t)col;
    return SP_OK;
}

static sp_status add_subfamily(sp_context *context, edge_list *list, uint64_t *state, double degree, int64_t first,
                               int64_t size, int64_t family, int64_t family_size)
{
    const double chance = fmin(0.9, 1.3 * degree / (double)size), step = log1p(-chance);
    sp_status status = SP_OK;
    for (int64_t i = 0; i < size; i++) {
        /* The gap to the next edge follows the geometric distribution. */
        double j = (double)i;
        while ((j += 1 + floor(log(1 - draw(state)) / step)) < (double)size)
            TRY(add_edge(context, list, first + i, first + (int64_t)j));
        if (size == family_size) continue;
        for (double links = degree / 8 - draw(state); links >= 0; links--)
            TRY(add_edge(context, list, first + i, family + below(state, family_size)));
    }
done:
    return status;
}

static sp_status cluster_edges(sp_context *context, recipe *r, edge_list *list)
{
    const int64_t rows = r->rows = whole(r, 0), limit = rows / 60 < 50 ? 50 : rows / 60;
    const double degree = r->p[1];
    uint64_t state = stream(r->seed, PAIRS, 0);
    sp_status status;
    TRY(grow_edges(context, list, (int64_t)(0.6 * degree * (double)rows) + 1000));
    for (int64_t family = 0, size; family < rows; family += size) {
        const double drawn = 2 * pow(1 - draw(&state), -1 / 0.9);
        const int64_t most = limit < FAMILY_LIMIT ? limit : FAMILY_LIMIT;
        size = drawn < (double)most ? (int64_t)drawn : most;
        if (size > rows - family) size = rows - family;
        for (int64_t first = family, part; first < family + size; first += part) {
            part = 2 + (int64_t)(-(SUBFAMILY_MEAN - 2) * log(1 - draw(&state)));
            if (part > SUBFAMILY_LIMIT) part = SUBFAMILY_LIMIT;
            if (part > family + size - first) part = family + size - first;
            TRY(add_subfamily(context, list, &state, degree, first, part, family, size));
        }
        if (sp_context_interrupted(context)) TRY(sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted"));
    }
    for (int64_t k = (int64_t)(0.04 * degree * (double)rows); k > 0; k--)
        TRY(add_edge(context, list, below(&state, rows), below(&state, rows)));
done:
    return status;
}

/* ---- entries anywhere ---------------------------------------------------------------------------------- */

static sp_status entries_edges(sp_context *context, recipe *r, edge_list *list)
{
    const int64_t count = whole(r, 1);
    r->rows = whole(r, 0);
    const sp_status status = grow_edges(context, list, count);
    if (status != SP_OK) return status;
    list->count = count;
    for (int64_t e = 0; e < count; e++) {
        uint64_t state = stream(r->seed, ROWS_OF_KIND, e);
        list->rows[e] = (int32_t)below(&state, r->rows);
        list->cols[e] = (int32_t)below(&state, r->rows);
    }
    return SP_OK;
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

const kind edge_kinds[] = {
    {"rmat", 2, 2, {WHOLE("SCALE", 1, 30), WHOLE("DEGREE", 1, 4096)}, .edges = rmat_edges},
    {"cluster", 2, 2, {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e5)}, .edges = cluster_edges, .symmetric = true},
    {"entries", 2, 2, {SIZE("ROWS"), WHOLE("COUNT", 0, 1e9)}, .edges = entries_edges},
    {0},
};
