/* Matrices made up from a few numbers: the shapes on which sparse products are compared.
 *
 * A row is a function of the seed, the kind's parameters and its own number, made twice: once to count, once to
 * store. So rows are made in parallel, need no memory beyond the matrix, and come out the same whatever the threads.
 * Kinds whose entries belong to no row of their own (R-MAT, clusters) make a list of edges first.
 * R-MAT: Chakrabarti, Zhan, Faloutsos 2004, with the quadrants of Graph500. Web graphs: a copying model (Kumar et al.
 * 2000) in blocks, the pages of a host sharing a list of links.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "internal.h"

/* ---- random numbers ------------------------------------------------------------------------------------ */

/* splitmix64's finalizer: a bijection in which each input bit changes half of the output. */
static inline uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline double unit(uint64_t z) { return (double)(z >> 11) * 0x1p-53; } /* [0, 1) */

/* A stream of its own for each number of each purpose. */
static inline uint64_t stream(uint64_t seed, uint64_t purpose, int64_t number)
{
    return mix(mix(seed + purpose * 0x632be59bd9b4e019u) ^ (uint64_t)number);
}

static inline double draw(uint64_t *state) { return unit(mix(*state += 0x632be59bd9b4e019u)); }

static inline int64_t below(uint64_t *state, int64_t bound) { return (int64_t)(draw(state) * (double)bound); }

/* The same number for (i, j) and (j, i). */
static inline uint64_t pair_hash(uint64_t seed, int64_t i, int64_t j)
{
    const uint64_t low = (uint64_t)(i < j ? i : j), high = (uint64_t)(i < j ? j : i);
    return mix(mix(seed ^ low) ^ high * 3);
}

enum { ROWS_OF_KIND = 1, LENGTHS, HOSTS, NODES, LABELS, VALUES, PAIRS }; /* purposes of streams */

/* ---- what a kind is ------------------------------------------------------------------------------------ */

enum { MAX_PARAMETERS = 12 };

typedef struct recipe {
    uint64_t seed;
    double p[MAX_PARAMETERS];
    int count;        /* of p */
    int64_t rows, cols;
    int64_t longest;  /* bound of a row's entries, repetitions included */
    int64_t *starts;  /* of parts of the rows (web: hosts, fem3d: nodes), or of edges (powerlaw); NULL: not needed */
    int64_t parts;
    int32_t *ids, *places; /* community, shuffled: the id of each place, the place of each id */
} recipe;

/* Writes the columns of a row, sorted or not, with repetitions or not; returns how many. */
typedef int64_t make_row(const recipe *r, int64_t row, int32_t *cols);

static inline int64_t whole(const recipe *r, int parameter) { return (int64_t)r->p[parameter]; }

/* rows := the product of the first parameters, if it is a dimension. */
static sp_status set_rows(sp_context *context, recipe *r, int parameters)
{
    double rows = 1;
    for (int i = 0; i < parameters; i++) rows *= r->p[i];
    r->rows = rows <= INT32_MAX ? (int64_t)rows : 0;
    if (rows <= INT32_MAX) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%.10g rows: dimensions end at %d", rows, INT32_MAX);
}

/* The last part that starts at or before `place`, which is not before the first; starts[parts] is the end of all.
 * Parts are spread so evenly that it lies near the place's share of them. */
static int64_t part_of(const int64_t *starts, int64_t parts, int64_t place)
{
    const double share = (double)(place - starts[0]) / (double)(starts[parts] - starts[0]);
    int64_t low = (int64_t)(share * (double)(parts - 1)), high = low;
    for (int64_t step = 4; low > 0 && starts[low] > place; step *= 2) low = low > step ? low - step : 0;
    for (int64_t step = 4; high < parts - 1 && starts[high + 1] <= place; step *= 2)
        high = parts - 1 - high > step ? high + step : parts - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (starts[middle] <= place) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* A random-looking bijection of the numbers of `bits` bits: hubs must not all have small numbers. */
static uint64_t relabel(uint64_t x, int bits, uint64_t seed)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    const int shift = bits / 2 + 1;
    for (int round = 0; round < 4; round++) {
        const uint64_t key = stream(seed, LABELS, round);
        x = (x * (key | 1) + (key >> 32)) & mask;
        x ^= x >> shift;
    }
    return x;
}

/* ---- uniform ------------------------------------------------------------------------------------------- */

static sp_status prepare_uniform(sp_context *context, recipe *r)
{
    r->longest = whole(r, 1);
    if (r->count > 2) r->cols = whole(r, 2);
    return set_rows(context, r, 1);
}

static int64_t uniform_row(const recipe *r, int64_t row, int32_t *cols)
{
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    for (int64_t k = 0; k < r->longest; k++) cols[k] = (int32_t)below(&state, r->cols);
    return r->longest;
}

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
        if (beside[i] >= 0 && beside[i] < r->rows && 100 * unit(pair_hash(r->seed, row, beside[i])) < r->p[2])
            cols[count++] = (int32_t)beside[i];
    return count;
}

/* ---- finite elements ----------------------------------------------------------------------------------- */

static sp_status prepare_fem2d(sp_context *context, recipe *r)
{
    r->longest = 9 * whole(r, 2);
    return set_rows(context, r, 3);
}

/* Nine nodes around each, coupled by full blocks. */
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
    sp_status status = set_rows(context, r, 3); /* nodes, for now */
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

/* A periodic box, 27 nodes around each, coupled by full blocks of differing size. */
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

/* The node itself and the two beside it in each dimension. */
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

/* Five diagonals; the first rows and columns hold a given share of all entries. */
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

/* ---- power law ----------------------------------------------------------------------------------------- */

/* Lengths follow a power law; they are spread evenly over its quantiles (a golden-ratio sequence), because the few
 * longest rows decide how many products there are. */
static sp_status prepare_powerlaw(sp_context *context, recipe *r)
{
    const double exponent = r->p[3] / 100, scale = r->p[1] * (1 - exponent), golden = 0.6180339887498949;
    uint64_t first = stream(r->seed, LENGTHS, 0);
    const double offset = draw(&first);
    r->rows = r->parts = whole(r, 0);
    r->longest = whole(r, 2);
    sp_status status = sp_alloc(context, r->rows + 1, sizeof *r->starts, (void **)&r->starts);
    if (status != SP_OK) return status;
    r->starts[0] = 0;
    for (int64_t i = 0; i < r->rows; i++) {
        uint64_t state = stream(r->seed, LENGTHS, i + 1);
        const double u = fmod(offset + golden * (double)i, 1.0);
        int64_t length = (int64_t)(scale * pow(u + 1e-9, -exponent) + draw(&state));
        if (length < 1) length = 1;
        r->starts[i + 1] = r->starts[i] + (length < r->longest ? length : r->longest);
    }
    return SP_OK;
}

/* A column is the row of a random edge, so that columns are as skewed as rows, or lies near. */
static int64_t powerlaw_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t length = r->starts[row + 1] - r->starts[row], edges = r->starts[r->rows];
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    for (int64_t k = 0; k < length; k++) {
        int64_t col;
        if (100 * draw(&state) < r->p[4]) col = part_of(r->starts, r->parts, below(&state, edges));
        else col = (row + below(&state, 40) - 20) % r->rows;
        cols[k] = (int32_t)(col < 0 ? col + r->rows : col);
    }
    return length;
}

/* ---- communities --------------------------------------------------------------------------------------- */

/* A permutation of the ids, of which the places within communities are the inverse. */
static sp_status shuffle(sp_context *context, recipe *r)
{
    int bits = 1;
    while ((int64_t)1 << bits < r->rows) bits++;
    sp_status status = sp_alloc(context, r->rows, sizeof *r->ids, (void **)&r->ids);
    if (status == SP_OK) status = sp_alloc(context, r->rows, sizeof *r->places, (void **)&r->places);
    if (status != SP_OK) return status;
    for (int64_t place = 0; place < r->rows; place++) {
        uint64_t id = (uint64_t)place;
        do id = relabel(id, bits, r->seed); /* until it falls below the number of rows, which keeps it a bijection */
        while (id >= (uint64_t)r->rows);
        r->ids[place] = (int32_t)id;
        r->places[id] = (int32_t)place;
    }
    return SP_OK;
}

/* Row lengths as in a power law; starts[] are those of places, not of ids. */
static sp_status prepare_community(sp_context *context, recipe *r)
{
    sp_status status = prepare_powerlaw(context, r);
    return status == SP_OK && r->p[6] > 0 ? shuffle(context, r) : status;
}

/* A column is the place of a random edge of the row's community or, now and then, of any: members with many edges
 * are met most. */
static int64_t community_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t place = r->places ? r->places[row] : row, size = whole(r, 4), first = place / size * size;
    const int64_t last = first + size < r->rows ? first + size : r->rows,
                  length = r->starts[place + 1] - r->starts[place];
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    for (int64_t k = 0; k < length; k++) {
        const bool inside = 100 * draw(&state) < r->p[5];
        const int64_t from = inside ? first : 0, end = inside ? last : r->rows;
        const int64_t edge = r->starts[from] + below(&state, r->starts[end] - r->starts[from]);
        const int64_t col = from + part_of(r->starts + from, end - from, edge);
        cols[k] = r->ids ? r->ids[col] : (int32_t)col;
    }
    return length;
}

/* ---- molecules ----------------------------------------------------------------------------------------- */

static sp_status prepare_molecules(sp_context *context, recipe *r)
{
    r->longest = 4;
    return set_rows(context, r, 1);
}

/* An atom is bound to the one before it or the one before that, and some of even number close a ring of six: at most
 * one such bond up, two down, and one of a ring for each. */
static bool bound_to(const recipe *r, int64_t atom, int64_t earlier)
{
    const int64_t size = whole(r, 1), gap = atom - earlier;
    if (earlier < 0 || atom >= r->rows || atom / size != earlier / size) return false;
    uint64_t state = stream(r->seed, NODES, atom);
    const bool chain = draw(&state) < 0.75 || atom % size == 1, ring = atom % 2 == 0 && draw(&state) < 0.2;
    return gap == 5 ? ring : gap == (chain ? 1 : 2);
}

static int64_t molecules_row(const recipe *r, int64_t row, int32_t *cols)
{
    static const int gaps[] = {1, 2, 5};
    int64_t count = 0;
    for (int i = 0; i < 3; i++) {
        if (bound_to(r, row, row - gaps[i])) cols[count++] = (int32_t)(row - gaps[i]);
        if (bound_to(r, row + gaps[i], row)) cols[count++] = (int32_t)(row + gaps[i]);
    }
    return count;
}

/* ---- Mycielski graphs ---------------------------------------------------------------------------------- */

static int64_t mycielski_nodes(int order) { return order < 2 ? 1 : ((int64_t)3 << (order - 2)) - 1; }

static sp_status prepare_mycielski(sp_context *context, recipe *r)
{
    const int order = (int)whole(r, 0);
    (void)context;
    r->rows = mycielski_nodes(order);
    r->longest = mycielski_nodes(order - 1);
    return SP_OK;
}

/* Order 2 is an edge. The next order adds a copy of each node, bound to the node's neighbours, and one node that is
 * bound to all copies (Mycielski 1955). Columns ascend. */
static int64_t mycielski_neighbours(int order, int64_t node, int32_t *cols)
{
    const int64_t nodes = mycielski_nodes(order - 1);
    if (order == 2) {
        cols[0] = (int32_t)(1 - node);
        return 1;
    }
    if (node == 2 * nodes) {
        for (int64_t i = 0; i < nodes; i++) cols[i] = (int32_t)(nodes + i);
        return nodes;
    }
    const int64_t count = mycielski_neighbours(order - 1, node < nodes ? node : node - nodes, cols);
    if (node >= nodes) {
        cols[count] = (int32_t)(2 * nodes);
        return count + 1;
    }
    for (int64_t i = 0; i < count; i++) cols[count + i] = (int32_t)(cols[i] + nodes);
    return 2 * count;
}

static int64_t mycielski_row(const recipe *r, int64_t row, int32_t *cols)
{
    return mycielski_neighbours((int)whole(r, 0), row, cols);
}

/* ---- web ----------------------------------------------------------------------------------------------- */

enum { LEAST_HOST = 14, LARGEST_HOST = 20000 };

/* Two numbers in [0, 1) for each host, spread evenly over the square (the R2 sequence): a few large hosts with many
 * links decide how many products there are. */
static double host_quantile(const recipe *r, int64_t host, int which)
{
    static const double steps[2] = {0.7548776662466927, 0.5698402909980532};
    uint64_t state = stream(r->seed, HOSTS, which);
    return fmod(draw(&state) + steps[which] * (double)host, 1.0);
}

/* Hosts are runs of pages, their sizes by a power law. */
static sp_status prepare_web(sp_context *context, recipe *r)
{
    r->rows = whole(r, 0);
    r->longest = whole(r, 4);
    sp_status status = sp_alloc(context, r->rows / LEAST_HOST + 2, sizeof *r->starts, (void **)&r->starts);
    if (status != SP_OK) return status;
    for (int64_t at = 0; at < r->rows; r->parts++) {
        const double size = 15 * pow(host_quantile(r, r->parts, 0) + 1e-6, -0.7);
        r->starts[r->parts] = at;
        at += size < LARGEST_HOST ? (int64_t)size : LARGEST_HOST;
    }
    r->starts[r->parts] = r->rows;
    return SP_OK;
}

/* A page links to its host's list of common links, to other pages of the host, or anywhere, to popular pages most. */
static int64_t web_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t host = part_of(r->starts, r->parts, row), first = r->starts[host];
    const int64_t size = r->starts[host + 1] - first;
    const double common = r->p[2] / 100, local = common + (1 - common) * r->p[3] / 100;
    uint64_t page = stream(r->seed, ROWS_OF_KIND, row);
    double degree = r->p[1] * 0.5 * pow(host_quantile(r, host, 1) + 1e-6, -0.5);
    if (degree > r->p[4] / 2) degree = r->p[4] / 2;
    int64_t list = (int64_t)(1.6 * degree) + 1, length = (int64_t)(degree * (0.3 + 1.4 * draw(&page)) + draw(&page));
    if (list > size) list = size;
    if (draw(&page) < 0.003) length *= 8; /* indices */
    if (length > r->longest) length = r->longest;
    if (draw(&page) < 0.1) length = 0; /* pages without links */
    for (int64_t k = 0; k < length; k++) {
        const double choice = draw(&page), where = draw(&page);
        int64_t col;
        if (choice < common) col = first + (int64_t)((double)list * where);
        else if (choice < local) col = first + (int64_t)((double)size * where);
        else col = (int64_t)(mix((uint64_t)((double)r->rows * where * where * where)) % (uint64_t)r->rows);
        cols[k] = (int32_t)col;
    }
    return length;
}

/* ---- rows to matrix ------------------------------------------------------------------------------------ */

/* Shell sort: rows are short, or nearly in order. */
static void sort_columns(int32_t *list, int64_t count)
{
    for (int64_t gap = count > 12 ? (count * 4 - 1) / 9 : 1; gap > 0; gap = gap > 2 ? (gap * 4 - 1) / 9 : gap - 1)
        for (int64_t i = gap; i < count; i++) {
            const int32_t moving = list[i];
            int64_t j = i;
            for (; j >= gap && moving < list[j - gap]; j -= gap) list[j] = list[j - gap];
            list[j] = moving;
        }
}

static int64_t finish_row(const recipe *r, make_row *make, int64_t row, int32_t *cols)
{
    const int64_t count = make(r, row, cols);
    int64_t left = 0;
    sort_columns(cols, count);
    for (int64_t k = 0; k < count; k++)
        if (left == 0 || cols[left - 1] != cols[k]) cols[left++] = cols[k];
    return left;
}

/* Values in (0, 1], the same above and below the diagonal. */
static void fill_values(const recipe *r, int64_t row, sp_csr *matrix)
{
    const uint64_t seed = stream(r->seed, VALUES, 0);
    for (int64_t k = matrix->row_offsets[row]; k < matrix->row_offsets[row + 1]; k++) {
        const double value = 1 - unit(pair_hash(seed, row, matrix->col_indices[k]));
        if (matrix->value_type == SP_F32) ((float *)matrix->values)[k] = (float)value;
        else ((double *)matrix->values)[k] = value;
    }
}

static sp_status make_by_rows(sp_context *context, const recipe *r, make_row *make, sp_value_type type,
                              sp_csr *matrix)
{
    const int threads = sp_threads_for(context, 10 * r->rows);
    int64_t *offsets = NULL;
    int32_t *scratch = NULL;
    sp_status status;
    SP_TRY(sp_alloc(context, r->rows + 1, sizeof *offsets, (void **)&offsets));
    SP_TRY(sp_alloc(context, (r->longest + 1) * threads, sizeof *scratch, (void **)&scratch));
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t i = 0; i < r->rows; i++)
        offsets[i + 1] = sp_interrupted(context) ? 0
                         : finish_row(r, make, i, scratch + (r->longest + 1) * omp_get_thread_num());
    offsets[0] = 0;
    for (int64_t i = 0; i < r->rows; i++) offsets[i + 1] += offsets[i];
    SP_TRY(sp_csr_create(context, r->rows, r->cols, offsets[r->rows], type, SP_HOST, matrix));
    memcpy(matrix->row_offsets, offsets, ((size_t)r->rows + 1) * sizeof *offsets);
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t i = 0; i < r->rows; i++) {
        int32_t *cols = scratch + (r->longest + 1) * omp_get_thread_num();
        if (sp_interrupted(context)) continue;
        const int64_t count = finish_row(r, make, i, cols);
        memcpy(matrix->col_indices + offsets[i], cols, (size_t)count * sizeof *cols);
        fill_values(r, i, matrix);
    }
    if (sp_interrupted(context)) {
        sp_csr_free(context, matrix);
        status = sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
    }
done:
    sp_free(context, offsets);
    sp_free(context, scratch);
    return status;
}

/* ---- R-MAT --------------------------------------------------------------------------------------------- */

static const int64_t MOST_EDGES = (int64_t)1 << 33; /* what sp_csr_from_coo takes */

typedef struct edges {
    int64_t count, capacity;
    int32_t *rows, *cols;
} edges;

static sp_status grow_edges(sp_context *context, edges *list, int64_t capacity)
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

static sp_status rmat_edges(sp_context *context, recipe *r, edges *list)
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
#pragma omp parallel for schedule(static) num_threads(sp_threads_for(context, 20 * count))
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

/* Families of proteins, as similarity networks show them: sizes by a power law, cut into subfamilies that are dense
 * inside; a quarter of the degree goes to the rest of the family, a few links go anywhere. */
enum { FAMILY_LIMIT = 4000, SUBFAMILY_MEAN = 60, SUBFAMILY_LIMIT = 300 };

static sp_status add_edge(sp_context *context, edges *list, int64_t row, int64_t col)
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

static sp_status add_subfamily(sp_context *context, edges *list, uint64_t *state, double degree, int64_t first,
                               int64_t size, int64_t family, int64_t family_size)
{
    const double chance = fmin(0.9, 1.3 * degree / (double)size), step = log1p(-chance);
    sp_status status = SP_OK;
    for (int64_t i = 0; i < size; i++) {
        /* From one edge to the next by the geometric distribution of the gap. */
        double j = (double)i;
        while ((j += 1 + floor(log(1 - draw(state)) / step)) < (double)size)
            SP_TRY(add_edge(context, list, first + i, first + (int64_t)j));
        if (size == family_size) continue;
        for (double links = degree / 8 - draw(state); links >= 0; links--)
            SP_TRY(add_edge(context, list, first + i, family + below(state, family_size)));
    }
done:
    return status;
}

static sp_status cluster_edges(sp_context *context, recipe *r, edges *list)
{
    const int64_t rows = r->rows = whole(r, 0), limit = rows / 60 < 50 ? 50 : rows / 60;
    const double degree = r->p[1];
    uint64_t state = stream(r->seed, PAIRS, 0);
    sp_status status;
    SP_TRY(grow_edges(context, list, (int64_t)(0.6 * degree * (double)rows) + 1000));
    for (int64_t family = 0, size; family < rows; family += size) {
        const double drawn = 2 * pow(1 - draw(&state), -1 / 0.9);
        const int64_t most = limit < FAMILY_LIMIT ? limit : FAMILY_LIMIT;
        size = drawn < (double)most ? (int64_t)drawn : most;
        if (size > rows - family) size = rows - family;
        for (int64_t first = family, part; first < family + size; first += part) {
            part = 2 + (int64_t)(-(SUBFAMILY_MEAN - 2) * log(1 - draw(&state)));
            if (part > SUBFAMILY_LIMIT) part = SUBFAMILY_LIMIT;
            if (part > family + size - first) part = family + size - first;
            SP_TRY(add_subfamily(context, list, &state, degree, first, part, family, size));
        }
        if (sp_interrupted(context)) SP_TRY(sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted"));
    }
    for (int64_t k = (int64_t)(0.04 * degree * (double)rows); k > 0; k--)
        SP_TRY(add_edge(context, list, below(&state, rows), below(&state, rows)));
done:
    return status;
}

static sp_status make_by_edges(sp_context *context, recipe *r, sp_status (*make)(sp_context *, recipe *, edges *),
                               bool symmetric, sp_value_type type, sp_csr *matrix)
{
    edges list = {0};
    sp_status status;
    SP_TRY(make(context, r, &list));
    SP_TRY(sp_csr_from_coo(context, r->rows, r->rows, list.count, list.rows, list.cols, NULL, type, SP_COMBINE_FIRST,
                           symmetric, matrix));
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_threads_for(context, 10 * matrix->nnz))
    for (int64_t i = 0; i < r->rows; i++) fill_values(r, i, matrix);
done:
    sp_free(context, list.rows);
    sp_free(context, list.cols);
    return status;
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

typedef struct parameter {
    const char *name;
    double low, high;
    bool fraction; /* need not be a whole number */
} parameter;

enum { MOST_NAMED = 7 };

typedef struct kind {
    const char *name;
    int least, most; /* parameters */
    parameter parameters[MOST_NAMED];
    sp_status (*prepare)(sp_context *, recipe *); /* of kinds made by rows */
    make_row *row;
    sp_status (*edges)(sp_context *, recipe *, edges *);
    bool symmetric; /* the edges */
} kind;

#define WHOLE(name, low, high) {name, low, high, false}
#define NUMBER(name, low, high) {name, low, high, true}
#define SIZE(name) WHOLE(name, 1, INT32_MAX)
#define PERCENT(name) NUMBER(name, 0, 100)
#define BY_ROWS(kind) .prepare = prepare_##kind, .row = kind##_row

static const kind kinds[] = {
    {"rmat", 2, 2, {WHOLE("SCALE", 1, 30), WHOLE("DEGREE", 1, 4096)}, .edges = rmat_edges},
    {"uniform", 2, 3, {SIZE("ROWS"), WHOLE("DEGREE", 0, 1e6), SIZE("COLUMNS")}, BY_ROWS(uniform)},
    {"grid", 3, 3, {SIZE("WIDTH"), SIZE("HEIGHT"), PERCENT("KEPT")}, BY_ROWS(grid)},
    {"fem2d", 3, 3, {SIZE("WIDTH"), SIZE("HEIGHT"), WHOLE("BLOCK", 1, 1000)}, BY_ROWS(fem2d)},
    {"fem3d", 5, 5,
     {WHOLE("WIDTH", 3, 100000), WHOLE("HEIGHT", 3, 100000), WHOLE("DEPTH", 3, 100000), WHOLE("LEAST", 0, 1000),
      WHOLE("MOST", 1, 1000)},
     BY_ROWS(fem3d)},
    {"web", 5, 5,
     {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e6), PERCENT("COMMON"), PERCENT("LOCAL"), WHOLE("LONGEST", 1, 1e6)},
     BY_ROWS(web)},
    {"powerlaw", 5, 5,
     {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e6), WHOLE("LONGEST", 1, 1e6), NUMBER("EXPONENT", 0, 99),
      PERCENT("FOLLOWING")},
     BY_ROWS(powerlaw)},
    {"torus", 1, MAX_PARAMETERS, {WHOLE("SIZE", 1, 1000)}, BY_ROWS(torus)},
    {"arrow", 3, 3, {SIZE("ROWS"), WHOLE("DENSE", 0, INT32_MAX), PERCENT("FILLED")}, BY_ROWS(arrow)},
    {"community", 7, 7,
     {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e6), WHOLE("LONGEST", 1, 1e6), NUMBER("EXPONENT", 0, 99), SIZE("SIZE"),
      PERCENT("INSIDE"), WHOLE("SHUFFLED", 0, 1)},
     BY_ROWS(community)},
    {"molecules", 2, 2, {SIZE("ROWS"), SIZE("ATOMS")}, BY_ROWS(molecules)},
    {"mycielski", 1, 1, {WHOLE("ORDER", 2, 20)}, BY_ROWS(mycielski)},
    {"cluster", 2, 2, {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e5)}, .edges = cluster_edges, .symmetric = true},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* The parameters of a kind as its users write them; the last of a torus stands for all. */
static const parameter *parameter_of(const kind *k, int index)
{
    return &k->parameters[k->prepare == prepare_torus ? 0 : index];
}

/* ---- reading a specification --------------------------------------------------------------------------- */

static sp_status unknown_kind(sp_context *context, const char *spec)
{
    char names[160] = "";
    for (int i = 0; i < KINDS; i++) {
        strcat(names, i == 0 ? "" : i < KINDS - 1 ? ", " : " or ");
        strcat(names, kinds[i].name);
    }
    return sp_fail(context, SP_ERROR_ARGUMENT, "\"%.60s\" begins with no kind of matrix: %s, a colon and numbers",
                   spec, names);
}

static sp_status wrong_count(sp_context *context, const char *spec, const kind *k)
{
    char names[160] = "";
    for (int i = 0; i < k->most && parameter_of(k, i) < k->parameters + MOST_NAMED; i++) {
        if (k->prepare == prepare_torus && i == 3) break; /* the others are alike */
        strcat(names, i ? "," : "");
        strcat(names, parameter_of(k, i)->name);
    }
    return sp_fail(context, SP_ERROR_ARGUMENT, "\"%.60s\" has not the form %s:%s%s", spec, k->name, names,
                   k->least < k->most ? k->prepare == prepare_torus ? ",..." : " (the last may be left out)" : "");
}

/* Digits with or without a point, whatever the locale. */
static const char *read_number(const char *at, double *number)
{
    double scale = 1;
    bool point = false, digits = false;
    for (*number = 0; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        digits = true;
        *number = *number * 10 + (*at - '0');
        if (point) scale *= 10;
    }
    *number /= scale;
    return digits ? at : NULL;
}

static sp_status read_parameters(sp_context *context, const char *spec, const char *at, const kind *k, recipe *r)
{
    do {
        double number;
        if (r->count == k->most || !(at = read_number(at + 1, &number))) return wrong_count(context, spec, k);
        const parameter *p = parameter_of(k, r->count);
        if (number < p->low || number > p->high || (!p->fraction && number != floor(number)))
            return sp_fail(context, SP_ERROR_ARGUMENT, "\"%.60s\": %s is %.12g, not a %s from %.10g to %.10g", spec,
                           p->name, number, p->fraction ? "number" : "whole number", p->low, p->high);
        r->p[r->count++] = number;
    } while (*at == ',');
    return *at == '\0' && r->count >= k->least ? SP_OK : wrong_count(context, spec, k);
}

sp_status sp_generate(sp_context *context, const char *spec, uint64_t seed, sp_value_type type, sp_csr *matrix)
{
    recipe r = {.seed = mix(seed)};
    sp_csr made = {0};
    const size_t length = strcspn(spec, ":");
    const kind *k = NULL;
    sp_status status;
    memset(matrix, 0, sizeof *matrix);
    for (int i = 0; i < KINDS; i++)
        if (length == strlen(kinds[i].name) && memcmp(kinds[i].name, spec, length) == 0) k = &kinds[i];
    if (!k) return unknown_kind(context, spec);
    if (!spec[length]) return wrong_count(context, spec, k);
    SP_TRY(read_parameters(context, spec, spec + length, k, &r));
    if (k->edges) {
        SP_TRY(make_by_edges(context, &r, k->edges, k->symmetric, type, &made));
    } else {
        SP_TRY(k->prepare(context, &r));
        if (r.cols == 0) r.cols = r.rows;
        SP_TRY(make_by_rows(context, &r, k->row, type, &made));
    }
    *matrix = made;
done:
    sp_free(context, r.starts);
    sp_free(context, r.ids);
    sp_free(context, r.places);
    return status;
}
