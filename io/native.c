/* mcl's native matrix, text or binary, as a graph: column = tail, row = head.
 *
 * Text: sections "(mclheader", optionally "(mcldoms" or "(mclrows" and "(mclcols", then "(mclmatrix ... begin"; white
 * space and # comments anywhere between tokens, columns missing, in any order or repeated, ids without a value
 * (1). As in mcl, of entries repeated within a column the first counts and entries of value 0 are dropped; entries of
 * a column that is repeated are left for the caller to combine (mcl takes the largest). For the binary layout see
 * write_native.c. Domains may have any ids; nodes are numbered by their order.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "internal.h"

enum {
    TEXT_BYTES = 1 << 18,
    TOKEN_BYTES = 512,    /* no token is longer */
    SETTLE_ENTRIES = 1 << 16,
    BINARY_ENTRIES = 4096 /* taken at once */
};

/* What both forms build. */
typedef struct native {
    sp_context *context;
    const io_read_options *options;
    const char *name;
    int64_t nodes;
    int64_t *ids; /* ascending; NULL: 0..nodes-1 */
    bool clustering;     /* rows are nodes, columns are clusters */
    int64_t columns;     /* as many as nodes, but in a clustering */
    int64_t *column_ids; /* of a clustering, as `ids`; in a graph they are the same */
    io_packed arcs;
    int64_t column_begin, weight_begin; /* first arc of the present column, and first weight */
    bool ascending;       /* its heads, so far */
    int64_t settle_at;    /* arcs at which it is sorted early */
    uint64_t *entries;    /* for sorting: a head above its place within the column */
    double *weights;      /* of the column, in that case; there only if it has any */
    int64_t entry_capacity, weight_capacity;
    int64_t negative, odd_lines, vast_line;
} native;

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
    const int64_t *found = bsearch(&id, ids, (size_t)count, sizeof id, compare_ids);
    return found ? found - ids : -1;
}

static int64_t find_node(const native *from, int64_t id) { return find_id(from->ids, from->nodes, id); }

static int64_t find_column(const native *from, int64_t id)
{
    return find_id(from->clustering ? from->column_ids : from->ids, from->columns, id);
}

/* A column of ever repeated entries is settled now and then, lest it takes more memory than its nodes need: when half
 * as many have come as it had. */
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

static sp_status add_entry(native *to, int32_t head, double value)
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

static void begin_column(native *to)
{
    to->column_begin = to->arcs.count;
    to->weight_begin = to->arcs.weight_count;
    to->ascending = true;
    set_next_settling(to);
}

static sp_status end_column(native *to, int32_t tail)
{
    io_packed *arcs = &to->arcs;
    sp_status status = to->ascending ? SP_OK : settle_column(to);
    const int64_t count = arcs->count - to->column_begin; /* below 2^32: heads ascend */
    if (status != SP_OK || count == 0) return status;
    status = io_packed_reserve(to->context, arcs, arcs->count, arcs->run_count + 1, arcs->weight_count);
    if (status == SP_OK) arcs->runs[arcs->run_count++] = (io_run){tail, (uint32_t)count};
    return status;
}

static sp_status finish(native *from, int64_t lines, int64_t bytes, io_graph *graph)
{
    if (!from->ids) {
        sp_status status = io_check_nodes(from->context, from->name, from->nodes, bytes);
        if (status == SP_OK && !from->column_ids)
            status = io_check_nodes(from->context, from->name, from->columns, bytes);
        if (status != SP_OK) return status;
    }
    sp_free(from->context, from->entries);
    sp_free(from->context, from->weights);
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

/* Takes the domains of rows and columns, NULL for 0..n-1. Those of a graph must be the same, and `rows` be their
 * size. */
static sp_status set_domains(native *to, int64_t rows, int64_t cols, int64_t **row_ids, int64_t **col_ids)
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

/* Sorts a domain; false if an id is repeated. */
static bool sort_domain(int64_t *ids, int64_t count)
{
    bool sorted = true;
    for (int64_t i = 1; i < count && sorted; i++) sorted = ids[i - 1] < ids[i];
    if (!sorted) qsort(ids, (size_t)count, sizeof *ids, compare_ids);
    for (int64_t i = 1; i < count; i++)
        if (ids[i - 1] == ids[i]) return false;
    return true;
}

/* ---- text: tokens --------------------------------------------------------------------------------------- */

typedef struct text {
    io_source *source;
    native *to;
    char *buffer;
    const char *at, *end; /* *end is 0 */
    bool ended;
    int64_t line, bytes;
} text;

/* Makes sure that the next TOKEN_BYTES are in the buffer, or all that is left. */
static sp_status ensure(text *from)
{
    if (from->ended || from->end - from->at >= TOKEN_BYTES) return SP_OK;
    size_t left = (size_t)(from->end - from->at), got;
    memmove(from->buffer, from->at, left);
    sp_status status = io_source_read(from->source, from->buffer + left, TEXT_BYTES - left, &got);
    from->at = from->buffer;
    from->end = from->buffer + left + got;
    from->buffer[left + got] = '\0';
    from->ended = got < TEXT_BYTES - left;
    from->bytes += (int64_t)got;
    return status;
}

/* Moves to the next token. */
static sp_status skip_space(text *from)
{
    bool comment = false;
    for (;;) {
        for (; from->at < from->end; from->at++) {
            char c = *from->at;
            if (c == '\n') {
                from->line++;
                comment = false;
            } else if (comment || io_is_blank(c)) {
                continue;
            } else if (c == '#') {
                comment = true;
            } else {
                return ensure(from);
            }
        }
        sp_status status = ensure(from);
        if (status != SP_OK || from->at == from->end) return status;
    }
}

static const char *word_end(const text *from)
{
    const char *stop = from->at;
    while (stop < from->end && *stop != '\n' && !io_is_blank(*stop) && stop - from->at < TOKEN_BYTES) stop++;
    return stop;
}

static sp_status fail(text *from, const char *what, const char *remedy)
{
    if (from->at == from->end)
        return sp_fail(from->to->context, SP_ERROR_MATRIX, "%s:%lld: %s, but the file ends; it is truncated",
                       from->to->name, (long long)from->line, what);
    return io_fail_line(from->to->context, from->to->name, from->line, what, from->at, word_end(from), remedy);
}

/* Takes `word` if it is next. */
static bool take(text *from, const char *word)
{
    size_t length = (size_t)(word_end(from) - from->at);
    if (length != strlen(word) || memcmp(from->at, word, length) != 0) return false;
    from->at += length;
    return true;
}

static bool take_char(text *from, char c)
{
    if (from->at == from->end || *from->at != c) return false;
    from->at++;
    return true;
}

static sp_status take_id(text *from, int64_t *id)
{
    const char *stop = from->at;
    while (io_is_digit(*stop)) stop++;
    if (stop == from->at) return fail(from, "an id (a whole number, 0 or above) is expected", "see docs/formats.md");
    if (!io_parse_index(from->at, stop, INT32_MAX - 1, id))
        return fail(from, "the id is too large", "ids are below 2147483647");
    from->at = stop;
    return SP_OK;
}

/* Takes ":VALUE", white space allowed on both sides of the colon, as mcl does; 1 if there is none. */
static sp_status take_value(text *from, double *value)
{
    *value = 1.0;
    sp_status status = skip_space(from);
    if (status != SP_OK || !take_char(from, ':')) return status;
    status = skip_space(from);
    if (status != SP_OK) return status;
    const char *stop = io_parse_decimal(from->at, from->end, value);
    bool whole = stop == from->end || *stop == '\n' || *stop == '$' || io_is_blank(*stop);
    if (stop == from->at || !whole) return fail(from, "a value that is a number is expected", "write ID:VALUE");
    const sp_value_type type = from->to->arcs.values;
    if (!(fabs(*value) <= io_most(type))) return fail(from, "the value is too large", io_most_remedy(type));
    if (io_is_vast(type, *value, from->at, stop) && !from->to->vast_line) from->to->vast_line = from->line;
    if (*value < 0) {
        const io_read_options *options = from->to->options;
        if (!options->lenient && !options->any_sign)
            return fail(from, "the value is negative", io_sign_remedy(options));
        from->to->negative++;
        from->to->odd_lines += !options->any_sign;
    }
    from->at = stop;
    return SP_OK;
}

/* ---- text: sections ------------------------------------------------------------------------------------- */

static sp_status skip_line(text *from)
{
    for (;;) {
        while (from->at < from->end && *from->at != '\n') from->at++;
        if (from->at < from->end || from->ended) return SP_OK;
        sp_status status = ensure(from);
        if (status != SP_OK || from->at == from->end) return status;
    }
}

/* "RxC" */
static sp_status take_dimensions(text *from, int64_t *rows, int64_t *cols)
{
    const char *stop = word_end(from), *cross = memchr(from->at, 'x', (size_t)(stop - from->at));
    if (!cross || !io_parse_index(from->at, cross, INT32_MAX, rows) ||
        !io_parse_index(cross + 1, stop, INT32_MAX, cols))
        return fail(from, "dimensions that are not ROWSxCOLUMNS, both below 2^31", "write e.g. dimensions 10x10");
    from->at = stop;
    return SP_OK;
}

static sp_status read_header(text *from, int64_t *rows, int64_t *cols)
{
    bool typed = false, sized = false;
    sp_status status = skip_space(from);
    if (status != SP_OK) return status;
    if (!take(from, "(mclheader"))
        return fail(from, "(mclheader is expected", "is this a native matrix? for label triples use --abc");
    for (;;) {
        TRY(skip_space(from));
        if (take(from, ")")) break;
        if (from->at == from->end) return fail(from, "the header's ) is expected", "");
        if (take(from, "mcltype")) {
            TRY(skip_space(from));
            typed = take(from, "matrix");
            if (!typed) return fail(from, "mcltype matrix is expected", "only matrices are graphs");
        } else if (take(from, "dimensions")) {
            TRY(skip_space(from));
            TRY(take_dimensions(from, rows, cols));
            sized = true;
        } else {
            TRY(skip_line(from)); /* other facts */
        }
    }
    if (!typed || !sized) {
        from->at--;
        return fail(from, typed ? "a header without dimensions" : "a header without mcltype matrix",
                    "write (mclheader, mcltype matrix, dimensions NxN, ) on four lines");
    }
done:
    return status;
}

/* The ids of a domain up to ")"; `expected` is the dimension that the header gave. */
static sp_status read_domain(text *from, int64_t expected, int64_t **ids)
{
    int64_t count = 0, capacity = 0;
    double value;
    sp_status status;
    if (*ids) return fail(from, "a second domain of the same kind", "remove one");
    for (;;) {
        TRY(skip_space(from));
        if (take_char(from, '$')) break;
        if (count == expected) return fail(from, "more ids in the domain than its dimension says", "correct either");
        TRY(io_reserve(from->to->context, count, count + 1, sizeof **ids, &capacity, (void **)ids));
        TRY(take_id(from, *ids + count));
        TRY(take_value(from, &value));
        count++;
    }
    TRY(skip_space(from));
    if (count < expected) return fail(from, "fewer ids in the domain than its dimension says", "correct either");
    if (count == 0) TRY(io_reserve(from->to->context, 0, 1, sizeof **ids, &capacity, (void **)ids));
    if (!sort_domain(*ids, count)) return fail(from, "a domain with a repeated id", "remove it");
    if (!take(from, ")")) return fail(from, "the domain's ) is expected", "write $ and ) after the ids");
done:
    return status;
}

static sp_status alien(text *from, const char *kind, int64_t id)
{
    return sp_fail(from->to->context, SP_ERROR_MATRIX,
                   "%s:%lld: %s %lld is not in the domain; correct the dimensions or the id", from->to->name,
                   (long long)from->line, kind, (long long)id);
}

static sp_status read_column(text *from)
{
    native *to = from->to;
    int64_t id;
    double value;
    sp_status status;
    TRY(take_id(from, &id));
    int64_t tail = find_column(to, id), head;
    if (tail < 0) return alien(from, "column", id);
    TRY(take_value(from, &value)); /* columns may carry a number of no meaning here */
    begin_column(to);
    for (;;) {
        TRY(skip_space(from));
        if (take_char(from, '$')) break;
        TRY(take_id(from, &id));
        head = find_node(to, id);
        if (head < 0) return alien(from, "row", id);
        TRY(take_value(from, &value));
        TRY(add_entry(to, (int32_t)head, value));
    }
    status = end_column(to, (int32_t)tail);
done:
    return status;
}

static sp_status read_columns(text *from)
{
    sp_status status;
    for (;;) {
        TRY(skip_space(from));
        if (take_char(from, ')')) break;
        TRY(read_column(from));
    }
    TRY(skip_space(from));
    if (from->at < from->end && !from->to->options->lenient)
        return fail(from, "something follows the matrix", "keep one matrix a file");
done:
    return status;
}

static sp_status read_sections(text *from, int64_t **row_ids, int64_t **col_ids)
{
    native *to = from->to;
    int64_t rows = 0, cols = 0;
    bool both = false;
    sp_status status;
    TRY(read_header(from, &rows, &cols));
    for (;;) {
        TRY(skip_space(from));
        if (take(from, "(mclmatrix")) break;
        if (take(from, "(mclcols")) {
            TRY(read_domain(from, cols, col_ids));
        } else if (take(from, "(mclrows")) {
            TRY(read_domain(from, rows, row_ids));
        } else if (take(from, "(mcldoms")) {
            both = true;
            TRY(read_domain(from, rows, row_ids));
        } else {
            return fail(from, "(mclmatrix or a domain is expected", "see docs/formats.md");
        }
    }
    if (both && *col_ids) return fail(from, "(mcldoms and (mclcols exclude each other", "keep one");
    status = set_domains(to, rows, cols, row_ids, both ? row_ids : col_ids);
    if (status != SP_OK) return status;
    TRY(skip_space(from));
    if (!take(from, "begin")) return fail(from, "begin is expected", "write (mclmatrix, begin on two lines");
    TRY(read_columns(from));
done:
    return status;
}

static sp_status read_text(native *to, io_source *source, io_graph *graph)
{
    int64_t *row_ids = NULL, *col_ids = NULL;
    text from = {.source = source, .to = to, .line = 1};
    sp_status status;
    TRY(io_grow(to->context, 0, TEXT_BYTES + 1, 1, (void **)&from.buffer));
    from.at = from.end = from.buffer;
    TRY(read_sections(&from, &row_ids, &col_ids));
    TRY(finish(to, from.line - 1, from.bytes, graph));
done:
    sp_free(to->context, row_ids);
    sp_free(to->context, col_ids);
    sp_free(to->context, from.buffer);
    return status;
}

/* ---- binary --------------------------------------------------------------------------------------------- */

typedef struct binary {
    io_source *source;
    native *to;
    int64_t bytes;
} binary;

static sp_status take_bytes(binary *from, void *into, size_t count)
{
    size_t got;
    sp_status status = io_source_read(from->source, into, count, &got);
    from->bytes += (int64_t)got;
    if (status == SP_OK && got < count)
        return sp_fail(from->to->context, SP_ERROR_MATRIX,
                       "%s: byte %lld: the binary matrix ends too soon; it is truncated, or its header lies",
                       from->to->name, (long long)from->bytes);
    return status;
}

static sp_status corrupt(binary *from, const char *what, int64_t number)
{
    return sp_fail(from->to->context, SP_ERROR_MATRIX, "%s: byte %lld: %s (got %lld); write the file again",
                   from->to->name, (long long)from->bytes, what, (long long)number);
}

typedef struct vector_head {
    int64_t count, id;
} vector_head;

static sp_status take_head(binary *from, int64_t most, vector_head *head)
{
    double value;
    sp_status status = take_bytes(from, &head->count, sizeof head->count);
    if (status == SP_OK) status = take_bytes(from, &head->id, sizeof head->id);
    if (status == SP_OK) status = take_bytes(from, &value, sizeof value);
    if (status == SP_OK && (head->count < 0 || head->count > most))
        return corrupt(from, "a vector with more entries than the matrix has rows", head->count);
    return status;
}

typedef struct pair {
    int32_t id;
    float value;
} pair;

static sp_status take_domain(binary *from, int64_t count, int64_t **ids)
{
    pair pairs[BINARY_ENTRIES];
    vector_head head;
    int64_t capacity = 0;
    sp_status status;
    TRY(take_head(from, count, &head));
    if (head.count != count) return corrupt(from, "a domain whose size is not the dimension", head.count);
    TRY(io_reserve(from->to->context, 0, 1, sizeof **ids, &capacity, (void **)ids));
    for (int64_t done = 0; done < count;) {
        int64_t now = count - done < BINARY_ENTRIES ? count - done : BINARY_ENTRIES;
        TRY(take_bytes(from, pairs, (size_t)now * sizeof *pairs));
        TRY(io_reserve(from->to->context, done, done + now, sizeof **ids, &capacity, (void **)ids));
        for (int64_t i = 0; i < now; i++, done++) {
            if (pairs[i].id < 0) return corrupt(from, "a negative id in a domain", pairs[i].id);
            (*ids)[done] = pairs[i].id;
        }
    }
    if (!sort_domain(*ids, count)) return corrupt(from, "a domain with a repeated id among", count);
done:
    return status;
}

/* The offsets only serve access out of order; here they must ascend and end where the columns do. */
static sp_status take_offsets(binary *from, int64_t count, int64_t *last)
{
    int64_t offsets[BINARY_ENTRIES];
    sp_status status = SP_OK;
    *last = 0;
    for (int64_t done = 0; done < count;) {
        int64_t now = count - done < BINARY_ENTRIES ? count - done : BINARY_ENTRIES;
        TRY(take_bytes(from, offsets, (size_t)now * sizeof *offsets));
        for (int64_t i = 0; i < now; i++) {
            if (offsets[i] < *last) return corrupt(from, "column offsets that do not ascend", offsets[i]);
            *last = offsets[i];
        }
        done += now;
    }
done:
    return status;
}

static sp_status take_column(binary *from)
{
    native *to = from->to;
    pair pairs[BINARY_ENTRIES];
    vector_head head;
    sp_status status;
    TRY(take_head(from, to->nodes, &head));
    int64_t tail = head.id < 0 ? -1 : find_column(to, head.id);
    if (tail < 0) return corrupt(from, "a column that is not in the domain", head.id);
    begin_column(to);
    for (int64_t done = 0; done < head.count;) {
        int64_t now = head.count - done < BINARY_ENTRIES ? head.count - done : BINARY_ENTRIES;
        TRY(take_bytes(from, pairs, (size_t)now * sizeof *pairs));
        for (int64_t i = 0; i < now; i++, done++) {
            int64_t node = pairs[i].id < 0 ? -1 : find_node(to, pairs[i].id);
            if (node < 0) return corrupt(from, "a row that is not in the domain", pairs[i].id);
            if (!isfinite(pairs[i].value)) return corrupt(from, "a value that is not finite in column", head.id);
            if (pairs[i].value < 0) {
                if (!to->options->lenient && !to->options->any_sign)
                    return corrupt(from, "a negative value in column", head.id);
                to->negative++;
                to->odd_lines += !to->options->any_sign;
            }
            TRY(add_entry(to, (int32_t)node, (double)pairs[i].value));
        }
    }
    status = end_column(to, (int32_t)tail);
done:
    return status;
}

static sp_status read_vectors(binary *from, int64_t **row_ids, int64_t **col_ids)
{
    native *to = from->to;
    int32_t cookie;
    int64_t sizes[3], last, begin; /* columns, rows, flags */
    sp_status status;
    TRY(take_bytes(from, &cookie, sizeof cookie));
    TRY(take_bytes(from, sizes, sizeof sizes));
    for (int i = 0; i < 2; i++)
        if (sizes[i] < 0 || sizes[i] > INT32_MAX)
            return corrupt(from, "a dimension that is not below 2^31", sizes[i]);
    if (!(sizes[2] & 1)) TRY(take_domain(from, sizes[0], col_ids));
    if (!(sizes[2] & 2)) TRY(take_domain(from, sizes[1], row_ids));
    status = set_domains(to, sizes[1], sizes[0], row_ids, col_ids);
    if (status != SP_OK) return status;
    TRY(take_offsets(from, sizes[0] + 1, &last));
    begin = from->bytes;
    for (int64_t j = 0; j < sizes[0]; j++) TRY(take_column(from));
    if (from->bytes - begin != last) return corrupt(from, "columns that do not end where their offsets say", last);
done:
    return status;
}

static sp_status read_binary(native *to, io_source *source, io_graph *graph)
{
    int64_t *row_ids = NULL, *col_ids = NULL;
    binary from = {.source = source, .to = to};
    sp_status status;
    TRY(read_vectors(&from, &row_ids, &col_ids));
    TRY(finish(to, 0, from.bytes, graph));
done:
    sp_free(to->context, row_ids);
    sp_free(to->context, col_ids);
    return status;
}

/* ---- both ----------------------------------------------------------------------------------------------- */

const unsigned char io_binary_cookie[4] = {0x1b, 0xc2, 0x4d, 0xe8};

sp_status io_read_native(sp_context *context, io_source *source, const io_read_options *options, int64_t *columns,
                         io_graph *graph)
{
    native to = {.context = context, .options = options, .name = io_source_name(source), .clustering = columns != NULL,
                 .arcs = {.weight = 1, .values = options->values}};
    const char *bytes;
    size_t count = sizeof io_binary_cookie;
    sp_status status = io_source_peek(source, &bytes, &count);
    if (count == sizeof io_binary_cookie && memcmp(bytes, io_binary_cookie, count) == 0)
        status = read_binary(&to, source, graph);
    else if (status == SP_OK)
        status = read_text(&to, source, graph);
    if (columns) *columns = to.columns;
    sp_free(context, to.ids);
    sp_free(context, to.column_ids);
    sp_free(context, to.entries);
    sp_free(context, to.weights);
    io_packed_free(context, &to.arcs);
    return status;
}
