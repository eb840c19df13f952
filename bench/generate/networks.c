/* Graphs whose rows are made one by one: uniform and skewed degrees, communities, molecules, web pages.
 *
 * Web graphs: a copying model (Kumar et al. 2000) in blocks, the pages of a host sharing a list of links. */
#include <math.h>

#include "recipe.h"

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

/* ---- power law ----------------------------------------------------------------------------------------- */

/* Lengths follow a power law. They are spread evenly over its quantiles (a golden-ratio sequence), because the few
 * longest rows decide the number of products. */
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

/* A column is the row of a random edge, so that columns are as skewed as rows, or lies near the diagonal. */
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

/* Row lengths follow a power law. starts[] is by place, not by id. */
static sp_status prepare_community(sp_context *context, recipe *r)
{
    sp_status status = prepare_powerlaw(context, r);
    return status == SP_OK && r->p[6] > 0 ? shuffle(context, r) : status;
}

/* A column is the place of a random edge of the row's community, or occasionally of any community. Members with many
 * edges are chosen most often. */
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

/* An atom is bound to the atom before it or to the one before that. Some atoms of even number close a ring of six. Each
 * atom has at most one such bond up, two down, and one of a ring. */
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

/* Order 2 is an edge. Each further order adds a copy of every node, bound to the node's neighbours, and one node that
 * is bound to all copies (Mycielski 1955). Columns ascend. */
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

/* Two numbers in [0, 1) for each host, spread evenly over the square (the R2 sequence), because a few large hosts with
 * many links decide the number of products. */
static double host_quantile(const recipe *r, int64_t host, int which)
{
    static const double steps[2] = {0.7548776662466927, 0.5698402909980532};
    uint64_t state = stream(r->seed, HOSTS, which);
    return fmod(draw(&state) + steps[which] * (double)host, 1.0);
}

/* Hosts are runs of pages; their sizes follow a power law. */
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

/* A page links to pages of its host's common list, to other pages of the host, or to any page, popular pages most
 * often. */
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

/* ---- bipartite ----------------------------------------------------------------------------------------- */

static sp_status prepare_bipartite(sp_context *context, recipe *r)
{
    r->cols = whole(r, 4);
    return prepare_powerlaw(context, r);
}

/* Popular columns have random numbers. */
static int64_t bipartite_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t length = r->starts[row + 1] - r->starts[row];
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    for (int64_t k = 0; k < length; k++) {
        const double where = draw(&state);
        cols[k] = (int32_t)(mix((uint64_t)((double)r->cols * where * where)) % (uint64_t)r->cols);
    }
    return length;
}

/* ---- overlapping communities --------------------------------------------------------------------------- */

/* Two covers of the nodes by runs of the same sizes: one in the order of the numbers, one in a random order. Sizes
 * follow a power law. */
static sp_status prepare_overlap(sp_context *context, recipe *r)
{
    const int64_t smallest = whole(r, 2), largest = whole(r, 3);
    if (largest < smallest)
        return sp_fail(context, SP_ERROR_ARGUMENT, "overlap: LARGEST is %lld, below SMALLEST, %lld",
                       (long long)largest, (long long)smallest);
    r->rows = whole(r, 0);
    r->longest = 2 * whole(r, 1) + 1;
    sp_status status = sp_alloc(context, r->rows / smallest + 2, sizeof *r->starts, (void **)&r->starts);
    if (status != SP_OK) return status;
    for (int64_t at = 0; at < r->rows; r->parts++) {
        uint64_t state = stream(r->seed, HOSTS, r->parts);
        const double size = (double)smallest * pow(1 - draw(&state), -0.8);
        r->starts[r->parts] = at;
        at += size < (double)largest ? (int64_t)size : largest;
    }
    r->starts[r->parts] = r->rows;
    return shuffle(context, r);
}

static int64_t overlap_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t parts[2] = {part_of(r->starts, r->parts, row), part_of(r->starts, r->parts, r->places[row])};
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    const int64_t length = (int64_t)(2 * r->p[1] * draw(&state) + draw(&state));
    for (int64_t k = 0; k < length; k++) {
        const double choice = draw(&state);
        const int cover = choice < 0.45;
        const int64_t begin = r->starts[parts[cover]], size = r->starts[parts[cover] + 1] - begin;
        const int64_t place = begin + below(&state, size);
        if (choice >= 0.9) cols[k] = (int32_t)below(&state, r->rows);
        else cols[k] = cover ? r->ids[place] : (int32_t)place;
    }
    return length;
}

/* ---- small worlds -------------------------------------------------------------------------------------- */

static sp_status prepare_smallworld(sp_context *context, recipe *r)
{
    r->longest = whole(r, 1) + 1;
    return set_rows(context, r, 1);
}

static int64_t smallworld_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t count = whole(r, 1);
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    for (int64_t k = 0; k < count; k++) {
        const int64_t distance = k / 2 % r->rows + 1, beside = row + (k % 2 ? distance : r->rows - distance % r->rows);
        cols[k] = (int32_t)(100 * draw(&state) < r->p[2] ? below(&state, r->rows) : beside % r->rows);
    }
    return count;
}

/* ---- nearest neighbours -------------------------------------------------------------------------------- */

enum { MOST_NEIGHBOURS = 64, NODES_A_CELL = 2 };

static void point_of(const recipe *r, int64_t node, double point[2])
{
    uint64_t state = stream(r->seed, NODES, node);
    point[0] = draw(&state);
    point[1] = draw(&state);
}

static int64_t cells_across(const recipe *r) { return 1 + (int64_t)sqrt((double)r->rows / NODES_A_CELL); }

static int64_t cell_of(const recipe *r, int64_t node)
{
    const double across = (double)cells_across(r);
    double point[2];
    point_of(r, node, point);
    return (int64_t)(point[1] * across) * cells_across(r) + (int64_t)(point[0] * across);
}

/* Lists the nodes by the cells of a square grid. */
static sp_status prepare_knn(sp_context *context, recipe *r)
{
    sp_status status = set_rows(context, r, 1);
    if (status != SP_OK) return status;
    r->longest = whole(r, 1);
    r->parts = cells_across(r) * cells_across(r);
    status = sp_calloc(context, r->parts + 2, sizeof *r->starts, (void **)&r->starts);
    if (status == SP_OK) status = sp_alloc(context, r->rows, sizeof *r->ids, (void **)&r->ids);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < r->rows; i++) r->starts[cell_of(r, i) + 2]++;
    for (int64_t c = 0; c < r->parts; c++) r->starts[c + 2] += r->starts[c + 1];
    for (int64_t i = 0; i < r->rows; i++) r->ids[r->starts[cell_of(r, i) + 1]++] = (int32_t)i;
    return SP_OK;
}

typedef struct nearest {
    double distance[MOST_NEIGHBOURS];
    int64_t count, wanted;
} nearest;

/* Offers the nodes of a cell. A node that is nearer than the farthest kept one replaces it. */
static void offer_cell(const recipe *r, int64_t cell, int64_t row, const double from[2], nearest *kept, int32_t *cols)
{
    for (int64_t k = r->starts[cell]; k < r->starts[cell + 1]; k++) {
        double point[2];
        if (r->ids[k] == row) continue;
        point_of(r, r->ids[k], point);
        const double dx = point[0] - from[0], dy = point[1] - from[1], distance = dx * dx + dy * dy;
        if (kept->count == kept->wanted && distance >= kept->distance[kept->count - 1]) continue;
        int64_t at = kept->count < kept->wanted ? kept->count++ : kept->count - 1;
        for (; at > 0 && kept->distance[at - 1] > distance; at--) {
            kept->distance[at] = kept->distance[at - 1];
            cols[at] = cols[at - 1];
        }
        kept->distance[at] = distance;
        cols[at] = r->ids[k];
    }
}

/* Searches rings of cells around the node's own, until the next ring is farther than the farthest kept neighbour. */
static int64_t knn_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t across = cells_across(r), cell = cell_of(r, row), x = cell % across, y = cell / across;
    nearest kept = {.wanted = whole(r, 1)};
    double from[2];
    point_of(r, row, from);
    for (int64_t ring = 0; ring < across; ring++) {
        const double reach = (double)(ring - 1) / (double)across;
        if (ring > 1 && kept.count == kept.wanted && kept.distance[kept.count - 1] <= reach * reach) break;
        for (int64_t v = y - ring; v <= y + ring; v++)
            for (int64_t u = x - ring; u <= x + ring; u += v == y - ring || v == y + ring ? 1 : 2 * ring)
                if (u >= 0 && v >= 0 && u < across && v < across)
                    offer_cell(r, v * across + u, row, from, &kept, cols);
    }
    return kept.count;
}

/* ---- words that overlap -------------------------------------------------------------------------------- */

static sp_status prepare_debruijn(sp_context *context, recipe *r)
{
    r->longest = 4;
    return set_rows(context, r, 1);
}

static int64_t debruijn_row(const recipe *r, int64_t row, int32_t *cols)
{
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    const int64_t first = below(&state, 4);
    int64_t count = 0;
    for (int64_t letter = 0; letter < 4; letter++)
        if (letter == 0 || 100 * draw(&state) < r->p[1])
            cols[count++] = (int32_t)((4 * row + (first + letter) % 4) % r->rows);
    return count;
}

/* ---- extremes ------------------------------------------------------------------------------------------ */

static sp_status prepare_equal(sp_context *context, recipe *r) { return prepare_uniform(context, r); }

static int64_t equal_row(const recipe *r, int64_t row, int32_t *cols)
{
    (void)row;
    return uniform_row(r, 0, cols);
}

static sp_status prepare_crossed(sp_context *context, recipe *r)
{
    r->longest = whole(r, 0) + whole(r, 1);
    return set_rows(context, r, 1);
}

/* Full rows and columns are spread evenly. */
static bool is_full(const recipe *r, int64_t index, int64_t full)
{
    const int64_t step = full > 0 ? r->rows / full : 0;
    return full > 0 && (step < 2 ? index < full : index % step == step / 2 && index / step < full);
}

static int64_t crossed_row(const recipe *r, int64_t row, int32_t *cols)
{
    const int64_t columns = whole(r, 3), step = columns > 0 ? r->rows / columns : 0;
    uint64_t state = stream(r->seed, ROWS_OF_KIND, row);
    int64_t count = 0;
    if (is_full(r, row, whole(r, 2))) {
        for (; count < r->rows; count++) cols[count] = (int32_t)count;
        return count;
    }
    for (; count < whole(r, 1); count++) cols[count] = (int32_t)below(&state, r->rows);
    for (int64_t i = 0; i < columns && i < r->rows; i++)
        cols[count++] = (int32_t)(step < 2 ? i : i * step + step / 2);
    return count;
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

const kind network_kinds[] = {
    {"uniform", 2, 3, {SIZE("ROWS"), WHOLE("DEGREE", 0, 1e6), SIZE("COLUMNS")}, BY_ROWS(uniform)},
    {"web", 5, 5,
     {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e6), PERCENT("COMMON"), PERCENT("LOCAL"), WHOLE("LONGEST", 1, 1e6)},
     BY_ROWS(web)},
    {"powerlaw", 5, 5,
     {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e6), WHOLE("LONGEST", 1, 1e6), NUMBER("EXPONENT", 0, 99),
      PERCENT("FOLLOWING")},
     BY_ROWS(powerlaw)},
    {"community", 7, 7,
     {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e6), WHOLE("LONGEST", 1, 1e6), NUMBER("EXPONENT", 0, 99), SIZE("SIZE"),
      PERCENT("INSIDE"), WHOLE("SHUFFLED", 0, 1)},
     BY_ROWS(community)},
    {"molecules", 2, 2, {SIZE("ROWS"), SIZE("ATOMS")}, BY_ROWS(molecules)},
    {"mycielski", 1, 1, {WHOLE("ORDER", 2, 20)}, BY_ROWS(mycielski)},
    {"bipartite", 5, 5,
     {SIZE("ROWS"), NUMBER("DEGREE", 0, 1e6), WHOLE("LONGEST", 1, 1e6), NUMBER("EXPONENT", 0, 99), SIZE("COLUMNS")},
     BY_ROWS(bipartite)},
    {"overlap", 4, 4, {SIZE("ROWS"), WHOLE("DEGREE", 0, 1e6), SIZE("SMALLEST"), SIZE("LARGEST")}, BY_ROWS(overlap)},
    {"smallworld", 3, 3, {SIZE("ROWS"), WHOLE("NEIGHBOURS", 0, 1e6), PERCENT("REWIRED")}, BY_ROWS(smallworld)},
    {"knn", 2, 2, {SIZE("ROWS"), WHOLE("NEIGHBOURS", 1, MOST_NEIGHBOURS)}, BY_ROWS(knn)},
    {"debruijn", 2, 2, {SIZE("ROWS"), PERCENT("BRANCHING")}, BY_ROWS(debruijn)},
    {"equal", 2, 2, {SIZE("ROWS"), WHOLE("DEGREE", 0, 1e6)}, BY_ROWS(equal)},
    {"crossed", 4, 4,
     {SIZE("ROWS"), WHOLE("DEGREE", 0, 1e6), WHOLE("FULL_ROWS", 0, INT32_MAX), WHOLE("FULL_COLUMNS", 0, INT32_MAX)},
     BY_ROWS(crossed)},
    {0},
};
