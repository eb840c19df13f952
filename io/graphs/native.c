/* mcl's native matrix, text or binary, as a graph: column = tail, row = head.
 *
 * Text: sections "(mclheader", optionally "(mcldoms" or "(mclrows" and "(mclcols", then "(mclmatrix ... begin"; white
 * space and # comments anywhere between tokens, columns missing, in any order or repeated, ids without a value (1). As
 * in mcl, the first of repeated entries within a column counts, and entries of value 0 are dropped. The caller combines
 * the entries of a repeated column (mcl takes the largest). For the binary layout see write_native.c. Domains may have
 * any ids; nodes are numbered by their order.
 */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/try.h"
#include "bytes/memory.h"
#include "graphs/native.h"

enum { SETTLE_ENTRIES = 1 << 16 };

/* ---- columns -------------------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_entries(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The place of an id in a domain, or -1. */
static int64_t find_id(const int64_t *ids, int64_t count, int64_t id)
{
    if (!ids) return id < count ? id : -1;
    if (count == 0) return -1;
    int64_t guess = id - ids[0]; /* domains are mostly without gaps */
    if (guess >= 0 && guess < count && ids[guess] == id) return guess;
    const int64_t found = lower_bound_i64(ids, 0, count, id);
    return found < count && ids[found] == id ? found : -1;
}

int64_t io_native_node(const native *from, int64_t id) { return find_id(from->ids, from->nodes, id); }

int64_t io_native_column(const native *from, int64_t id)
{
    return find_id(from->clustering ? from->column_ids : from->ids, from->columns, id);
}

/* A column of repeated entries is sorted early, once it has grown by half, so that it takes no more memory than its
 * nodes need. */
static void set_next_settling(native *to)
{
    const int64_t more = (to->arcs.count - to->column_begin) / 2;
    to->settle_at = to->arcs.count + (more < SETTLE_ENTRIES ? SETTLE_ENTRIES : more);
}

static sp_status put_entry(native *to, int32_t head, double value)
{
    io_packed *arcs = &to->arcs;
    const bool has_own = value != arcs->weight;
    sp_status status =
        io_packed_reserve(to->context, arcs, arcs->count + 1, arcs->run_count, arcs->weight_count + has_own);
    if (status != SP_OK) return status;
    arcs->heads[arcs->count++] = has_own ? ~head : head;
    if (has_own) io_store_value(arcs->weights, arcs->values, arcs->weight_count++, value);
    return SP_OK;
}

/* Sorts the present column and keeps the first of the entries that are repeated. */
static sp_status settle_column(native *to)
{
    io_packed *arcs = &to->arcs;
    const int64_t begin = to->column_begin, count = arcs->count - begin;
    const bool weighted = arcs->weight_count > to->weight_begin;
    sp_status status =
        io_reserve(to->context, 0, count, sizeof *to->entries, &to->entry_capacity, (void **)&to->entries);
    if (status == SP_OK && weighted)
        status = io_reserve(to->context, 0, count, sizeof *to->weights, &to->weight_capacity, (void **)&to->weights);
    if (status != SP_OK) return status;
    if (count > INT32_MAX) return sp_fail(to->context, SP_ERROR_OVERFLOW, "%s: a column of 2^31 entries", to->name);
    for (int64_t i = 0, own = to->weight_begin; i < count; i++) {
        to->entries[i] = (uint64_t)io_packed_head(arcs, begin + i) << 32 | (uint64_t)i;
        if (weighted)
            to->weights[i] =
                arcs->heads[begin + i] < 0 ? load_value(arcs->weights, arcs->values, own++) : arcs->weight;
    }
    qsort(to->entries, (size_t)count, sizeof *to->entries, compare_entries);
    arcs->count = begin;
    arcs->weight_count = to->weight_begin;
    for (int64_t i = 0; i < count && status == SP_OK; i++)
        if (i == 0 || to->entries[i] >> 32 != to->entries[i - 1] >> 32)
            status = put_entry(to, (int32_t)(to->entries[i] >> 32),
                               weighted ? to->weights[to->entries[i] & UINT32_MAX] : arcs->weight);
    to->ascending = true;
    return status;
}

sp_status io_native_add(native *to, int32_t head, double value)
{
    io_packed *arcs = &to->arcs;
    value = io_round(arcs->values, value);
    if (value == 0) return SP_OK;
    if (arcs->count > to->column_begin && io_packed_head(arcs, arcs->count - 1) >= head) to->ascending = false;
    sp_status status = put_entry(to, head, value);
    if (status != SP_OK || to->ascending || arcs->count < to->settle_at) return status;
    status = settle_column(to);
    set_next_settling(to);
    return status;
}

void io_native_begin_column(native *to)
{
    to->column_begin = to->arcs.count;
    to->weight_begin = to->arcs.weight_count;
    to->ascending = true;
    set_next_settling(to);
}

sp_status io_native_end_column(native *to, int32_t tail)
{
    io_packed *arcs = &to->arcs;
    sp_status status = to->ascending ? SP_OK : settle_column(to);
    const int64_t count = arcs->count - to->column_begin; /* below 2^32: heads ascend */
    if (status != SP_OK || count == 0) return status;
    status = io_packed_reserve(to->context, arcs, arcs->count, arcs->run_count + 1, arcs->weight_count);
    if (status == SP_OK) arcs->runs[arcs->run_count++] = (io_run){tail, (uint32_t)count};
    return status;
}

sp_status io_native_finish(native *from, int64_t lines, int64_t bytes, io_graph *graph)
{
    const int64_t all = from->parts > 1 ? from->size : bytes;
    if (!from->ids) {
        sp_status status = io_check_nodes(from->context, from->name, from->nodes, all);
        if (status == SP_OK && !from->column_ids)
            status = io_check_nodes(from->context, from->name, from->columns, all);
        if (status != SP_OK) return status;
    }
    FREE_ALL(from->context, from->entries, from->weights);
    from->entries = NULL;
    from->weights = NULL;
    sp_status status = io_packed_hand_over(from->context, &from->arcs, graph);
    if (status != SP_OK) return status;
    graph->nodes = from->nodes;
    graph->ids = from->ids;
    graph->symmetric = false;
    graph->lines = lines;
    graph->bytes = bytes;
    graph->negative = from->negative;
    graph->odd_lines = from->odd_lines;
    graph->vast_line = from->vast_line;
    from->ids = NULL;
    return SP_OK;
}

static bool is_canonical(const int64_t *ids, int64_t count)
{
    for (int64_t i = 0; ids && i < count; i++)
        if (ids[i] != i) return false;
    return true;
}

/* Takes an array over. */
static int64_t *take_over(int64_t **ids)
{
    int64_t *taken = *ids;
    *ids = NULL;
    return taken;
}

sp_status io_native_set_domains(native *to, int64_t rows, int64_t cols, int64_t **row_ids, int64_t **col_ids)
{
    to->nodes = rows;
    to->columns = cols;
    if (to->clustering) {
        if (!is_canonical(*row_ids, rows)) to->ids = take_over(row_ids);
        if (!is_canonical(*col_ids, cols)) to->column_ids = take_over(col_ids);
        return SP_OK;
    }
    bool same = rows == cols;
    for (int64_t i = 0; same && (*row_ids || *col_ids) && i < rows; i++)
        same = (*row_ids ? (*row_ids)[i] : i) == (*col_ids ? (*col_ids)[i] : i);
    if (!same)
        return sp_fail(to->context, SP_ERROR_MATRIX,
                       "%s: rows (%lld) and columns (%lld) are not the same nodes; a graph needs a square matrix "
                       "with equal domains",
                       to->name, (long long)rows, (long long)cols);
    if (!is_canonical(*row_ids, rows)) to->ids = take_over(row_ids);
    return SP_OK;
}

bool io_native_sort_domain(int64_t *ids, int64_t count)
{
    bool sorted = true;
    for (int64_t i = 1; i < count && sorted; i++) sorted = ids[i - 1] < ids[i];
    if (!sorted) qsort(ids, (size_t)count, sizeof *ids, compare_ids);
    for (int64_t i = 1; i < count; i++)
        if (ids[i - 1] == ids[i]) return false;
    return true;
}

/* ---- both ----------------------------------------------------------------------------------------------- */

const unsigned char io_binary_cookie[4] = {0x1b, 0xc2, 0x4d, 0xe8};

static sp_status read_matrix(native *to, io_source *source, io_graph *graph)
{
    sp_context *context = to->context;
    const char *bytes;
    size_t count = sizeof io_binary_cookie;
    sp_status status = io_source_peek(source, &bytes, &count);
    if (count == sizeof io_binary_cookie && memcmp(bytes, io_binary_cookie, count) == 0)
        status = io_native_read_binary(to, source, graph);
    else if (status == SP_OK)
        status = io_native_read_text(to, source, graph);
    FREE_ALL(context, to->ids, to->column_ids, to->entries, to->weights);
    io_packed_free(context, &to->arcs);
    return status;
}

sp_status io_read_native(sp_context *context, io_source *source, const io_read_options *options, int64_t *columns,
                         io_graph *graph)
{
    native to = {.context = context, .options = options, .name = io_source_name(source), .clustering = columns != NULL,
                 .arcs = {.weight = 1, .values = options->values}};
    const sp_status status = read_matrix(&to, source, graph);
    if (columns) *columns = to.columns;
    return status;
}

/* Whoever reads the whole file says what is wrong with it. */
sp_status io_read_native_part(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph)
{
    native to = {.context = context, .options = options, .name = io_source_name(source),
                 .arcs = {.weight = 1, .values = options->values}, .part = options->part, .parts = options->parts,
                 .size = io_source_size(source)};
    const sp_status status = read_matrix(&to, source, graph);
    graph->part.entries = status == SP_ERROR_MATRIX || status == SP_ERROR_ARGUMENT ? -1 : 0;
    return graph->part.entries < 0 ? SP_OK : status == SP_OK ? io_graph_spread(context, graph) : status;
}
