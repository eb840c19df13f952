/* The steps of sampling on the CPU (sample.h describes each, sample.c their order). Threads share the rows of the
 * stacked minibatches where rows are independent, else the minibatches.
 *
 * Costs: a draw mixes 64 bits and searches the draws before it. An entry reads its column in the matrix and twice its
 * place, at random, 4 bytes each. The places of a minibatch are 4 bytes a node and stay in a core's second-level
 * cache up to some 250,000 nodes. */
#include <stdlib.h>

#include "backend.h"
#include "sample.h"

/* Rough costs in ns of a node of a list, an entry, and a candidate of layer-wise sampling, for the number of threads.
 */
enum { NODE_COST = 4, ENTRY_COST = 16, CANDIDATE_COST = 32 };

/* The list that holds row `row` of the stack; `near` is that of an earlier row. */
static int64_t list_of(const gnn_lists *lists, int64_t row, int64_t near)
{
    while (lists->first[near] > row) near--;
    while (lists->first[near + 1] <= row) near++;
    return near;
}

static sp_status clear(const gnn_sampler *sampler, int64_t lists)
{
    const size_t bytes = (size_t)(lists * sampler->words) * sizeof *sampler->known;
    memset(sampler->place, -1, (size_t)(lists * sampler->a.rows) * sizeof *sampler->place);
    memset(sampler->known, 0, bytes);
    memset(sampler->drawn, 0, bytes);
    return SP_OK;
}

typedef struct keyed {
    uint32_t key;
    int32_t node;
} keyed;

/* One pass of a radix sort by 11 bits of the key, from bit `shift` on. */
static void sort_digit(const keyed *from, keyed *to, int64_t count, int shift)
{
    enum { BINS = 2048 };
    int64_t starts[BINS + 1] = {0};
    for (int64_t i = 0; i < count; i++) starts[(from[i].key >> shift) % BINS + 1]++;
    for (int b = 0; b < BINS; b++) starts[b + 1] += starts[b];
    for (int64_t i = 0; i < count; i++) to[starts[(from[i].key >> shift) % BINS]++] = from[i];
}

static sp_status shuffle(const gnn_sampler *sampler, int64_t pass, int64_t count, const int32_t *from, int32_t *to)
{
    sp_context *context = sampler->context;
    keyed *one = NULL, *other = NULL;
    sp_status status;
    TRY(sp_alloc(context, count, sizeof *one, (void **)&one));
    TRY(sp_alloc(context, count, sizeof *other, (void **)&other));
    for (int64_t i = 0; i < count; i++)
        one[i] = (keyed){(uint32_t)(gnn_random(sampler->seed, pass, GNN_SITE_SHUFFLE, i) >> 32), from[i]};
    sort_digit(one, other, count, 0);
    sort_digit(other, one, count, 11);
    sort_digit(one, other, count, 22);
    for (int64_t i = 0; i < count; i++) to[i] = other[i].node;
done:
    FREE_ALL(context, other, one);
    return status;
}

static sp_status enter(const gnn_sampler *sampler, const gnn_lists *lists)
{
    memcpy(lists->first_there, lists->first, (size_t)(lists->count + 1) * sizeof *lists->first);
    const int threads = cpu_context_threads(sampler->context, NODE_COST * lists->first[lists->count]);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t m = 0; m < lists->count; m++) {
        int32_t *place = sampler->place + m * sampler->a.rows;
        for (int64_t r = lists->first[m]; r < lists->first[m + 1]; r++) {
            const int32_t node = lists->nodes[r];
            place[node] = (int32_t)(r - lists->first[m]);
            sampler->known[m * sampler->words + node / 32] |= 1u << node % 32;
        }
    }
    return SP_OK;
}

static sp_status leave(const gnn_sampler *sampler, const gnn_lists *lists, const gnn_target *targets)
{
    const int threads = cpu_context_threads(sampler->context, NODE_COST * lists->first[lists->count]);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t m = 0; m < lists->count; m++) {
        int32_t *place = sampler->place + m * sampler->a.rows;
        const int32_t *nodes = lists->nodes + lists->first[m];
        const int64_t count = lists->first[m + 1] - lists->first[m];
        for (int64_t j = 0; j < count; j++) {
            place[nodes[j]] = -1;
            sampler->known[m * sampler->words + nodes[j] / 32] = 0;
        }
        if (count) memcpy(targets[m].nodes, nodes, (size_t)count * sizeof *nodes);
    }
    return SP_OK;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

/* A row of the matrix for node-wise sampling. */
typedef struct row_view {
    int64_t begin, length, others; /* others: all except the diagonal entry */
    int64_t own;                   /* place of the diagonal entry, or -1 */
} row_view;

static row_view row_of(const gnn_sampler *sampler, int32_t node)
{
    row_view row = {.begin = sampler->a.row_offsets[node], .own = sampler->own ? sampler->own[node] : -1};
    row.length = sampler->a.row_offsets[node + 1] - row.begin;
    row.others = row.length - (row.own >= 0);
    return row;
}

static int64_t known_entries(const gnn_sampler *sampler, int64_t list, int32_t node)
{
    const int32_t *place = sampler->place + list * sampler->a.rows;
    int64_t count = 0;
    for (int64_t k = sampler->a.row_offsets[node]; k < sampler->a.row_offsets[node + 1]; k++)
        count += place[sampler->a.col_indices[k]] >= 0;
    return count;
}

static sp_status count_entries(const gnn_sampler *sampler, const gnn_lists *rows, int64_t fanout, gnn_drawn *drawn)
{
    const int64_t count = rows->first[rows->count];
    drawn->offsets[0] = 0;
    const int threads = cpu_context_threads(sampler->context, ENTRY_COST * count);
    int64_t list = 0;
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads) firstprivate(list)
    for (int64_t r = 0; r < count; r++) {
        if (sampler->options.kind == GNN_SAMPLE_NODE) {
            const row_view row = row_of(sampler, rows->nodes[r]);
            drawn->offsets[r + 1] = row.others <= fanout ? row.length : fanout + (row.own >= 0);
        } else {
            list = list_of(rows, r, list);
            drawn->offsets[r + 1] = known_entries(sampler, list, rows->nodes[r]);
        }
    }
    for (int64_t r = 0; r < count; r++) drawn->offsets[r + 1] += drawn->offsets[r];
    return SP_OK;
}

static sp_status read_sizes(const gnn_sampler *sampler, const gnn_lists *rows, gnn_drawn *drawn)
{
    (void)sampler;
    for (int64_t m = 0; m <= rows->count; m++) drawn->first[m] = drawn->offsets[rows->first[m]];
    return SP_OK;
}

/* Draws `fanout` places in the row, each set with the same probability (Floyd's algorithm, in Bentley and Floyd
 * 1987), and adds the diagonal entry. */
static void draw_places(const row_view *row, uint64_t state, int64_t fanout, int32_t *places)
{
    for (int64_t t = 0; t < fanout; t++) {
        const int32_t last = (int32_t)(row->others - fanout + t);
        int32_t place = (int32_t)gnn_below(gnn_follow(state, t), last + 1);
        for (int64_t before = 0; before < t; before++)
            if (places[before] == place) {
                place = last;
                break;
            }
        places[t] = place;
    }
    if (row->own < 0) return;
    for (int64_t t = 0; t < fanout; t++) places[t] += places[t] >= row->own;
    places[fanout] = (int32_t)row->own;
}

/* Marks the columns of the row's entries at the places in `cols`, and puts them in their stead. */
static void take_places(const gnn_sampler *sampler, const row_view *row, uint32_t *drawn, int64_t count, int32_t *cols,
                        int32_t *at)
{
    for (int64_t t = 0; t < count; t++) {
        if (at) at[t] = cols[t];
        const int32_t col = sampler->a.col_indices[row->begin + cols[t]];
        cols[t] = col;
        const uint32_t bit = 1u << col % 32;
        if (!(__atomic_load_n(drawn + col / 32, __ATOMIC_RELAXED) & bit))
            __atomic_fetch_or(drawn + col / 32, bit, __ATOMIC_RELAXED);
    }
}

/* Draws `fanout` places in the row by value: those of the smallest keys, which are kept sorted while the row is gone
 * through. `keys` has room for one more. Returns the smallest key that was not drawn. */
static double draw_by_value(const gnn_sampler *sampler, const row_view *row, uint64_t state, int64_t fanout,
                            int32_t *places, double *keys)
{
    int64_t kept = 0;
    for (int64_t t = 0; t < row->length; t++) {
        if (t == row->own) continue;
        const double key = gnn_key(gnn_follow(state, t), fabs(entry_value(&sampler->a, row->begin + t)));
        if (kept > fanout && key >= keys[fanout]) continue;
        int64_t at = kept > fanout ? fanout : kept++;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
            if (at < fanout) places[at] = places[at - 1];
        }
        keys[at] = key;
        if (at < fanout) places[at] = (int32_t)t;
    }
    if (row->own >= 0) places[fanout] = (int32_t)row->own;
    return keys[fanout];
}

static void extract_row(const gnn_sampler *sampler, int64_t list, int32_t node, int32_t *cols, int32_t *at)
{
    const int32_t *place = sampler->place + list * sampler->a.rows;
    const int64_t begin = sampler->a.row_offsets[node], end = sampler->a.row_offsets[node + 1];
    for (int64_t k = begin, t = 0; k < end; k++) {
        if (place[sampler->a.col_indices[k]] < 0) continue;
        if (at) at[t] = (int32_t)(k - begin);
        cols[t++] = sampler->a.col_indices[k];
    }
}

/* How many rows ahead offsets and first columns are prefetched; rows are in random order. */
enum { OFFSETS_AHEAD = 16, COLUMNS_AHEAD = 8 };

static void fetch_ahead(const gnn_sampler *sampler, const int32_t *nodes, int64_t left)
{
    if (left > OFFSETS_AHEAD) __builtin_prefetch(sampler->a.row_offsets + nodes[OFFSETS_AHEAD]);
    if (left > COLUMNS_AHEAD)
        __builtin_prefetch(sampler->a.col_indices + sampler->a.row_offsets[nodes[COLUMNS_AHEAD]]);
}

static sp_status draw(const gnn_sampler *sampler, const gnn_lists *rows, int64_t number, int layer, int64_t fanout,
                      gnn_drawn *drawn)
{
    const int64_t count = rows->first[rows->count];
    const uint64_t site = GNN_SITE_SAMPLE + (uint64_t)layer;
    const int threads = cpu_context_threads(sampler->context, ENTRY_COST * drawn->offsets[count]);
    double *keys = NULL; /* of each row one more than entries */
    int64_t list = 0;
    if (drawn->thresholds) {
        const int64_t room = drawn->offsets[count] + count;
        const sp_status status = sp_alloc(sampler->context, room, sizeof *keys, (void **)&keys);
        if (status != SP_OK) return status;
    }
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads) firstprivate(list)
    for (int64_t r = 0; r < count; r++) {
        const int32_t node = rows->nodes[r];
        int32_t *cols = drawn->cols + drawn->offsets[r], *at = drawn->at ? drawn->at + drawn->offsets[r] : NULL;
        list = list_of(rows, r, list);
        fetch_ahead(sampler, rows->nodes + r, count - r);
        if (sampler->options.kind == GNN_SAMPLE_NODE) {
            const row_view row = row_of(sampler, node);
            const bool part = row.others > fanout;
            const int64_t index = (number + list) * sampler->a.rows + node;
            const int64_t entries = drawn->offsets[r + 1] - drawn->offsets[r];
            const uint64_t state = part ? gnn_random(sampler->seed, sampler->pass, site, index) : 0;
            if (keys) drawn->thresholds[r] = INFINITY;
            if (part && keys)
                drawn->thresholds[r] = draw_by_value(sampler, &row, state, fanout, cols, keys + drawn->offsets[r] + r);
            else if (part) draw_places(&row, state, fanout, cols);
            else for (int64_t t = 0; t < entries; t++) cols[t] = (int32_t)t;
            take_places(sampler, &row, sampler->drawn + list * sampler->words, entries, cols, at);
        } else {
            extract_row(sampler, list, node, cols, at);
        }
    }
    sp_free(sampler->context, keys);
    return SP_OK;
}

/* ---- lists -------------------------------------------------------------------------------------------- */

static uint32_t bits_of(const gnn_sampler *sampler, bool fresh, int64_t word)
{
    return fresh ? sampler->drawn[word] & ~sampler->known[word] : sampler->known[word];
}

static sp_status list_nodes(const gnn_sampler *sampler, bool fresh, gnn_lists *lists)
{
    const int64_t words = sampler->words;
    lists->first[0] = 0;
    for (int64_t m = 0; m < lists->count; m++) {
        int64_t count = 0;
        for (int64_t w = m * words; w < (m + 1) * words; w++) count += __builtin_popcount(bits_of(sampler, fresh, w));
        lists->first[m + 1] = lists->first[m] + count;
    }
    memcpy(lists->first_there, lists->first, (size_t)(lists->count + 1) * sizeof *lists->first);
    const sp_status status = sp_alloc(sampler->context, lists->first[lists->count], sizeof *lists->nodes,
                                      (void **)&lists->nodes);
    if (status != SP_OK) return status;
    int32_t *to = lists->nodes;
    for (int64_t m = 0; m < lists->count; m++)
        for (int64_t w = 0; w < words; w++)
            for (uint32_t left = bits_of(sampler, fresh, m * words + w); left; left &= left - 1)
                *to++ = (int32_t)(32 * w + __builtin_ctz(left));
    return SP_OK;
}

static sp_status grow(const gnn_sampler *sampler, const gnn_lists *lists, const gnn_lists *fresh, gnn_lists *grown)
{
    memcpy(grown->first_there, grown->first, (size_t)(grown->count + 1) * sizeof *grown->first);
    const int threads = cpu_context_threads(sampler->context, NODE_COST * grown->first[grown->count]);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t m = 0; m < lists->count; m++) {
        int32_t *place = sampler->place + m * sampler->a.rows;
        const int64_t old = lists->first[m + 1] - lists->first[m], more = fresh->first[m + 1] - fresh->first[m];
        int32_t *to = grown->nodes + grown->first[m];
        if (old) memcpy(to, lists->nodes + lists->first[m], (size_t)old * sizeof *to);
        for (int64_t j = 0; j < more; j++) {
            const int32_t node = fresh->nodes[fresh->first[m] + j];
            to[old + j] = node;
            place[node] = (int32_t)(old + j);
        }
        for (int64_t w = m * sampler->words; w < (m + 1) * sampler->words; w++) {
            sampler->known[w] |= sampler->drawn[w];
            sampler->drawn[w] = 0;
        }
    }
    return SP_OK;
}

/* ---- layer-wise choice -------------------------------------------------------------------------------- */

static double weight_of(const gnn_sampler *sampler, const sp_csr *p, int64_t entry)
{
    if (sampler->weights) return sampler->weights[p->col_indices[entry]];
    return entry_value(p, entry);
}

/* The n-th smallest key, n from 0, by a radix selection from the highest byte. Overwrites the keys. */
static uint64_t select_key(uint64_t *keys, int64_t count, int64_t n)
{
    for (int shift = 56; shift >= 0; shift -= 8) {
        int64_t bins[256] = {0}, kept = 0;
        uint64_t bin = 0;
        for (int64_t i = 0; i < count; i++) bins[keys[i] >> shift & 255]++;
        while (n >= bins[bin]) n -= bins[bin++];
        for (int64_t i = 0; i < count; i++)
            if ((keys[i] >> shift & 255) == bin) keys[kept++] = keys[i];
        count = kept;
    }
    return keys[0];
}

/* Makes the keys of one minibatch's candidates. Returns how many can be drawn; `finite` gets their keys. */
static int64_t make_keys(const gnn_sampler *sampler, const sp_csr *p, int64_t list, int64_t number, int layer,
                         uint64_t *keys, uint64_t *finite)
{
    int64_t count = 0;
    for (int64_t e = p->row_offsets[list]; e < p->row_offsets[list + 1]; e++, keys++) {
        const int32_t node = p->col_indices[e];
        const double weight = weight_of(sampler, p, e);
        *keys = bits_of_double(INFINITY);
        if (sampler->place[list * sampler->a.rows + node] >= 0 || !(weight > 0)) continue;
        const uint64_t random = gnn_random(sampler->seed, sampler->pass, GNN_SITE_SAMPLE + (uint64_t)layer,
                                           (number + list) * sampler->a.rows + node);
        *keys = bits_of_double(gnn_key(random, weight));
        finite[count++] = *keys;
    }
    return count;
}

static sp_status choose(const gnn_sampler *sampler, const sp_csr *p, int64_t number, int layer, int64_t fanout,
                        double *thresholds)
{
    sp_context *context = sampler->context;
    uint64_t *keys = NULL, *finite = NULL;
    sp_status status;
    TRY(sp_alloc(context, p->nnz, sizeof *keys, (void **)&keys));
    TRY(sp_alloc(context, p->nnz, sizeof *finite, (void **)&finite));
    const int threads = cpu_context_threads(sampler->context, CANDIDATE_COST * p->nnz);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t m = 0; m < p->rows; m++) {
        const int64_t begin = p->row_offsets[m];
        uint32_t *drawn = sampler->drawn + m * sampler->words;
        const int64_t count = make_keys(sampler, p, m, number, layer, keys + begin, finite + begin);
        const uint64_t threshold = count > fanout
            ? select_key(finite + begin, count, fanout) : bits_of_double(INFINITY);
        for (int64_t e = begin; e < p->row_offsets[m + 1]; e++)
            if (keys[e] < threshold) drawn[p->col_indices[e] / 32] |= 1u << p->col_indices[e] % 32;
        thresholds[m] = double_of_bits(threshold);
    }
done:
    FREE_ALL(context, finite, keys);
    return status;
}

/* The entry of column `node` in P's row, which has it. */
static int64_t find_column(const sp_csr *p, int64_t row, int32_t node)
{
    return lower_bound_i32(p->col_indices, p->row_offsets[row], p->row_offsets[row + 1], node);
}

static sp_status weigh(const gnn_sampler *sampler, const sp_csr *p, const double *thresholds, const gnn_lists *lists,
                       const gnn_lists *grown, double *scale)
{
    const int threads = cpu_context_threads(sampler->context, NODE_COST * grown->first[grown->count]);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t m = 0; m < grown->count; m++) {
        const int64_t fresh = grown->first[m] + lists->first[m + 1] - lists->first[m];
        for (int64_t j = grown->first[m]; j < grown->first[m + 1]; j++)
            scale[j] = j < fresh ? 1
                                 : gnn_drawn_factor(weight_of(sampler, p, find_column(p, m, grown->nodes[j])),
                                                    thresholds[m]);
    }
    return SP_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------- */

static int by_key(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* Up to some fifty keys insertion is faster than a call for each comparison. */
static void sort_keys(uint64_t *keys, int64_t count)
{
    if (count > 48) {
        qsort(keys, (size_t)count, sizeof *keys, by_key);
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        const uint64_t key = keys[i];
        int64_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* What the drawn entry `at` of a row is multiplied by, of stacked row r. */
static double factor_of(const gnn_sampler *sampler, const row_view *row, const gnn_drawn *drawn, int64_t r,
                        int64_t fanout, int64_t at)
{
    if (sampler->options.kind != GNN_SAMPLE_NODE || row->others <= fanout || at == row->own) return 1;
    if (!drawn->thresholds) return (double)row->others / (double)fanout;
    return gnn_drawn_factor(fabs(entry_value(&sampler->a, row->begin + at)), drawn->thresholds[r]);
}

/* Writes the values of stacked row r; keys are place << 32 | entry, ascending. Sums have 32 partial sums, as the lanes
 * of a warp. */
static void write_values(const gnn_sampler *sampler, int32_t node, const gnn_drawn *drawn, int64_t r,
                         const double *scale, int64_t fanout, const uint64_t *keys, void *values, int64_t to)
{
    const int64_t begin = drawn->offsets[r], count = drawn->offsets[r + 1] - begin;
    const row_view row = row_of(sampler, node);
    double sums[32] = {0};
    for (int64_t t = 0; t < count; t++) {
        const int64_t at = drawn->at[begin + (int64_t)(keys[t] & UINT32_MAX)];
        double value = entry_value(&sampler->a, row.begin + at) * factor_of(sampler, &row, drawn, r, fanout, at);
        if (scale) value *= scale[keys[t] >> 32];
        sums[t % 32] += fabs(value);
        if (!sampler->sums) store_value(values, sampler->a.value_type, to + t, value);
    }
    if (!sampler->sums) return;
    for (int step = 16; step > 0; step /= 2)
        for (int i = 0; i < step; i++) sums[i] += sums[i + step];
    const double ratio = sums[0] > 0 ? sampler->sums[node] / sums[0] : 1;
    for (int64_t t = 0; t < count; t++) {
        const int64_t at = drawn->at[begin + (int64_t)(keys[t] & UINT32_MAX)];
        const double value = entry_value(&sampler->a, row.begin + at) * (scale ? scale[keys[t] >> 32] : 1);
        store_value(values, sampler->a.value_type, to + t, value * ratio);
    }
}

static sp_status finish(const gnn_sampler *sampler, const gnn_lists *rows, const gnn_lists *columns,
                        const gnn_drawn *drawn, int64_t fanout, const gnn_target *targets)
{
    const int64_t count = rows->first[rows->count], entries = drawn->offsets[count];
    uint64_t *all;
    const sp_status status = sp_alloc(sampler->context, entries, sizeof *all, (void **)&all);
    if (status != SP_OK) return status;
    int64_t m = 0;
    for (int64_t list = 0; list < rows->count; list++) targets[list].offsets[0] = 0;
    const int threads = cpu_context_threads(sampler->context, ENTRY_COST * entries);
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads) firstprivate(m)
    for (int64_t r = 0; r < count; r++) {
        m = list_of(rows, r, m);
        const int64_t begin = drawn->offsets[r], length = drawn->offsets[r + 1] - begin;
        const int64_t to = begin - drawn->first[m];
        uint64_t *keys = all + begin;
        for (int64_t t = 0; t < length; t++)
            keys[t] = (uint64_t)sampler->place[m * sampler->a.rows + drawn->cols[begin + t]] << 32 | (uint64_t)t;
        sort_keys(keys, length);
        for (int64_t t = 0; t < length; t++) targets[m].cols[to + t] = (int32_t)(keys[t] >> 32);
        targets[m].offsets[r - rows->first[m] + 1] = to + length;
        if (sampler->a.values)
            write_values(sampler, rows->nodes[r], drawn, r, drawn->scale ? drawn->scale + columns->first[m] : NULL,
                         fanout, keys, targets[m].values, to);
    }
    sp_free(sampler->context, all);
    return SP_OK;
}

const gnn_sample_backend gnn_sample_cpu = {
    .clear = clear,
    .shuffle = shuffle,
    .enter = enter,
    .leave = leave,
    .count = count_entries,
    .sizes = read_sizes,
    .draw = draw,
    .list = list_nodes,
    .choose = choose,
    .grow = grow,
    .weigh = weigh,
    .finish = finish,
};
