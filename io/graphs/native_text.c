/* mcl's native matrix as text: its tokens and sections. */
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "graphs/native.h"
#include "text/words.h"

enum {
    TEXT_BYTES = 1 << 18,
    TOKEN_BYTES = 512 /* no token is longer */
};

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
        return fail(from, "(mclheader is expected",
                    io_advice(from->to->options, "is this a native matrix? for label triples use --abc",
                              "is this a native matrix? for label triples pass format=\"abc\""));
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
    if (!io_native_sort_domain(*ids, count)) return fail(from, "a domain with a repeated id", "remove it");
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
    int64_t tail = io_native_column(to, id), head;
    if (tail < 0) return alien(from, "column", id);
    TRY(take_value(from, &value)); /* columns may carry a number, which is ignored */
    io_native_begin_column(to);
    for (;;) {
        TRY(skip_space(from));
        if (take_char(from, '$')) break;
        TRY(take_id(from, &id));
        head = io_native_node(to, id);
        if (head < 0) return alien(from, "row", id);
        TRY(take_value(from, &value));
        TRY(io_native_add(to, (int32_t)head, value));
    }
    status = io_native_end_column(to, (int32_t)tail);
done:
    return status;
}

/* Of the columns that follow only those of a part are left. */
static sp_status take_part(text *from)
{
    const native *to = from->to;
    int64_t begin, taken = from->bytes - (from->end - from->at);
    const sp_status status = io_source_take_part(from->source, taken, to->part, to->parts, true, &begin);
    if (to->part > 0) from->line = 1;
    from->bytes = to->part > 0 ? 0 : taken;
    from->at = from->end = from->buffer;
    *from->buffer = '\0';
    from->ended = false;
    return status;
}

static sp_status read_columns(text *from)
{
    const bool goes_on = from->to->parts > 1 && from->to->part < from->to->parts - 1; /* in another part */
    sp_status status;
    if (from->to->parts > 1) TRY(take_part(from));
    for (;;) {
        TRY(skip_space(from));
        if (goes_on && from->at == from->end) return SP_OK;
        if (!goes_on && take_char(from, ')')) break;
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
    status = io_native_set_domains(to, rows, cols, row_ids, both ? row_ids : col_ids);
    if (status != SP_OK) return status;
    TRY(skip_space(from));
    if (!take(from, "begin")) return fail(from, "begin is expected", "write (mclmatrix, begin on two lines");
    TRY(read_columns(from));
done:
    return status;
}

sp_status io_native_read_text(native *to, io_source *source, io_graph *graph)
{
    int64_t *row_ids = NULL, *col_ids = NULL;
    text from = {.source = source, .to = to, .line = 1};
    sp_status status;
    TRY(io_grow(to->context, 0, TEXT_BYTES + 1, 1, (void **)&from.buffer));
    from.at = from.end = from.buffer;
    TRY(read_sections(&from, &row_ids, &col_ids));
    TRY(io_native_finish(to, from.line - 1, from.bytes, graph));
done:
    FREE_ALL(to->context, row_ids, col_ids, from.buffer);
    return status;
}
