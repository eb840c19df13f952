/* Features of nodes: a row of numbers a node, dense or sparse, from Matrix Market, NumPy's and scipy's files, and
 * text. Text is read twice: its beginning for the number of fields, then all of it by the parallel line reader, the
 * numbers that are not 0 as entries.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "internal.h"

/* ---- text ---------------------------------------------------------------------------------------------- */

static bool is_separator(char c) { return c == ',' || c == ';'; }

const char *io_field_end(const char *field, const char *end)
{
    while (field < end && !io_is_blank(*field) && !is_separator(*field)) field++;
    return field;
}

const char *io_next_field(const char **at, const char *end)
{
    const char *field = io_skip_blanks(*at, end);
    *at = io_skip_blanks(io_field_end(field, end), end);
    if (*at < end && is_separator(**at)) *at = io_skip_blanks(*at + 1, end);
    return field;
}

/* Whether a field is a number, NaN and infinity among them: then the line is no heading, but perhaps a wrong row. */
static bool has_number(const char *line, const char *end)
{
    for (const char *at = io_skip_blanks(line, end); at < end;) {
        const char *field = io_next_field(&at, end), *stop = io_field_end(field, end);
        double value;
        if (stop > field && io_parse_scanf(field, stop, &value) == stop) return true;
    }
    return false;
}

static int64_t count_fields(const char *line, const char *end)
{
    int64_t fields = 0;
    for (const char *at = io_skip_blanks(line, end); at < end; fields++) io_next_field(&at, end);
    while (end > line && io_is_blank(end[-1])) end--;
    return fields + (end > line && is_separator(end[-1])); /* an empty field, which is refused later */
}

static bool is_comment(const char *line, const char *end)
{
    const char *at = io_skip_blanks(line, end);
    return at == end || *line == '#' || *line == '%';
}

/* 0,5;0,25: a comma within a number, where something else separates numbers. */
static bool has_decimal_comma(const char *line, const char *end)
{
    const size_t length = (size_t)(end - line);
    if (!memchr(line, ';', length) && !memchr(line, '\t', length)) return false;
    for (const char *at = line + 1; at + 1 < end; at++)
        if (*at == ',' && io_is_digit(at[-1]) && io_is_digit(at[1])) return true;
    return false;
}

typedef struct line_buffer {
    char *bytes;
    int64_t filled, capacity, begin;
    int64_t dropped, lines; /* bytes before, and lines taken */
    bool ended;
} line_buffer;

enum { PORTION = 1 << 16 };

/* The next line, however long, from b->begin on; its length without the newline, or -1 at the end. One byte behind it
 * is readable and no part of a number. */
static sp_status next_line(sp_context *context, io_source *source, line_buffer *b, int64_t *length)
{
    int64_t searched = b->begin;
    for (;;) {
        const char *newline = searched < b->filled
                                  ? memchr(b->bytes + searched, '\n', (size_t)(b->filled - searched))
                                  : NULL;
        *length = newline ? newline - (b->bytes + b->begin) : b->filled - b->begin;
        if (!newline && b->ended && *length == 0) *length = -1;
        if (newline || b->ended) return SP_OK;
        size_t got;
        if (b->begin > 0) memmove(b->bytes, b->bytes + b->begin, (size_t)(b->filled - b->begin));
        b->dropped += b->begin;
        b->filled -= b->begin;
        b->begin = 0;
        searched = b->filled;
        const int64_t needed = b->filled + PORTION + 1;
        sp_status status = io_reserve(context, b->filled, needed, 1, &b->capacity, (void **)&b->bytes);
        if (status == SP_OK) status = io_source_read(source, b->bytes + b->filled, PORTION, &got);
        if (status == SP_OK)
            status = io_check_text(context, io_source_name(source), b->bytes, b->filled + (int64_t)got, b->filled,
                                   b->lines);
        if (status != SP_OK) return status;
        b->filled += (int64_t)got;
        b->bytes[b->filled] = '\n';
        b->ended = got < PORTION;
    }
}

sp_status io_scan_table(sp_context *context, const char *path, const volatile int *interrupt, io_table *table)
{
    line_buffer b = {0};
    io_source *source;
    bool headed = false;
    memset(table, 0, sizeof *table);
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    for (int64_t lines = 1;; lines++) {
        int64_t length;
        TRY(next_line(context, source, &b, &length));
        if (length < 0) break;
        const char *line = b.bytes + b.begin, *end = line + length;
        const bool comment = is_comment(line, end), number = has_number(line, end);
        b.begin += length + 1;
        b.lines = lines;
        if (comment) continue;
        if (number || headed) {
            if (has_decimal_comma(line, end))
                TRY(io_fail_line(context, path, lines, "a comma within a number, which separates numbers here",
                                 line, end, "write decimal points"));
            table->fields = count_fields(line, end);
            break;
        }
        headed = true;
        table->heading_bytes = b.dropped + (b.begin < b.filled ? b.begin : b.filled);
        table->heading_lines = lines;
    }
done:
    sp_free(context, b.bytes);
    io_source_close(source);
    return status;
}

sp_status io_skip_heading(io_source *source, const io_table *table)
{
    char bytes[1 << 12];
    int64_t left = table->heading_bytes;
    sp_status status = SP_OK;
    while (status == SP_OK && left > 0) {
        size_t got;
        status = io_source_read(source, bytes, left < (int64_t)sizeof bytes ? (size_t)left : sizeof bytes, &got);
        if (got == 0) break;
        left -= (int64_t)got;
    }
    return status;
}

static bool read_row(io_slice *slice, char *line, char *line_end)
{
    const char *end = line_end, *at = io_skip_blanks(line, end);
    if (is_comment(line, end)) return true;
    const int32_t row = (int32_t)slice->node_lines++;
    int64_t col = 0;
    while (end > at && io_is_blank(end[-1])) end--;
    for (bool more = true; more; col++) {
        const char *stop = io_field_end(at, end);
        double value;
        if (col == slice->state->cols)
            return io_slice_fail(slice, "more numbers than in the first row", at, stop, "rows have equal lengths");
        if (stop == at || io_parse_decimal(at, stop, &value) != stop)
            return io_slice_fail(slice, "a feature that is no number", at, stop,
                                 col == 0 ? "write numbers alone, without names of nodes" : "write numbers");
        if (!(fabs(value) <= FLT_MAX))
            return io_slice_fail(slice, "a feature that is too large", at, stop, "write numbers below 3.4e38");
        if (value != 0 && !io_slice_arc(slice, row, (int32_t)col, io_round(slice->values, value))) return false;
        at = io_skip_blanks(stop, end);
        more = at < end;
        if (more && is_separator(*at)) at = io_skip_blanks(at + 1, end);
    }
    return col == slice->state->cols ||
           io_slice_fail(slice, "fewer numbers than in the first row", line, end, "rows have equal lengths");
}

static sp_status fill_dense(sp_context *context, int64_t rows, int64_t cols, sp_dense *dense)
{
    sp_status status = sp_dense_create(context, rows, cols, SP_DENSE_F32, SP_HOST, dense);
    if (status == SP_OK) memset(dense->values, 0, (size_t)rows * (size_t)cols * sizeof(float));
    return status;
}

static sp_status read_text(sp_context *context, io_source *source, const io_table *table, sp_dense *dense)
{
    const io_read_options options = {.any_sign = true};
    const io_format_state state = {.options = &options, .cols = table->fields, .long_lines = true};
    io_line_counts counts = {0};
    io_graph entries = {0};
    sp_status status;
    TRY(io_skip_heading(source, table));
    TRY(io_read_lines(context, source, &state, read_row, 0, table->heading_lines, &counts, &entries));
    if (counts.node_lines == 0 || state.cols == 0)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: no features; write a row of numbers a node",
                    io_source_name(source)));
    TRY(fill_dense(context, counts.node_lines, state.cols, dense));
    float *values = dense->values;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < entries.arcs; e++)
        values[(int64_t)entries.tails[e] * dense->cols + entries.heads[e]] = (float)io_arc_weight(&entries, e);
done:
    io_graph_free(context, &entries);
    return status;
}

/* ---- Matrix Market ------------------------------------------------------------------------------------- */

static sp_status read_mtx(sp_context *context, io_source *source, const volatile int *interrupt, sp_dense *dense,
                          sp_csr *sparse)
{
    io_mtx_numbers m;
    sp_status status = io_read_mtx_numbers(context, source, interrupt, &m);
    if (status != SP_OK) return status;
    const io_graph *g = &m.graph;
    if (!m.array) {
        status = sp_csr_from_coo(context, m.rows, m.cols, g->arcs, g->heads, g->tails, g->weights, SP_F32,
                                 SP_COMBINE_SUM, false, sparse);
    } else {
        status = fill_dense(context, m.rows, m.cols, dense);
        float *values = dense->values;
        for (int64_t e = 0; status == SP_OK && e < g->arcs; e++) /* column by column */
            values[g->tails[e] % m.rows * m.cols + g->tails[e] / m.rows] = (float)io_arc_weight(g, e);
    }
    io_graph_free(context, &m.graph);
    return status;
}

/* ---- NumPy and scipy ----------------------------------------------------------------------------------- */

/* The first number that is not finite, -1 if there is none. Bits are compared: a whole exponent of ones. */
static int64_t first_bad(sp_context *context, const float *values, int64_t count)
{
    int64_t first = INT64_MAX;
    const uint32_t *bits = (const void *)values;
#pragma omp parallel for schedule(static) reduction(min : first) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < count; e++)
        if ((bits[e] & 0x7f800000u) == 0x7f800000u && e < first) first = e;
    return first == INT64_MAX ? -1 : first;
}

static sp_status not_finite(sp_context *context, const char *name, int64_t row)
{
    return sp_fail(context, SP_ERROR_NOT_FINITE,
                   "%s: row %lld (from 0) has a number that is not finite; replace NaN and infinity", name,
                   (long long)row);
}

sp_status io_check_features(sp_context *context, const char *name, const sp_csr *sparse)
{
    const int64_t bad = first_bad(context, sparse->values, sparse->nnz);
    int64_t row = 0;
    if (bad < 0) return SP_OK;
    while (sparse->row_offsets[row + 1] <= bad) row++;
    return not_finite(context, name, row);
}

sp_status io_make_features(sp_context *context, const char *name, io_array *array, sp_dense *dense)
{
    if (array->dimensions != 2)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %d dimensions; features have two, nodes and features", name,
                       array->dimensions);
    sp_status status = io_array_to_f32(context, name, array);
    if (status != SP_OK) return status;
    const int64_t bad = first_bad(context, array->values, array->count);
    if (bad >= 0) return not_finite(context, name, bad / array->shape[1]);
    *dense = (sp_dense){.rows = array->shape[0], .cols = array->shape[1], .stride = array->shape[1],
                        .values = array->values, .type = SP_DENSE_F32, .space = SP_HOST};
    array->values = NULL;
    return SP_OK;
}

static sp_status read_npy(sp_context *context, const char *path, const volatile int *interrupt, sp_dense *dense)
{
    io_array array;
    sp_status status = io_read_npy(context, path, interrupt, &array);
    if (status == SP_OK) status = io_make_features(context, path, &array, dense);
    io_array_free(context, &array);
    return status;
}

static sp_status read_npz(sp_context *context, const char *path, const volatile int *interrupt, sp_csr *sparse)
{
    io_npz *npz;
    sp_status status = io_npz_open(context, path, interrupt, &npz);
    if (status != SP_OK) return status;
    status = io_npz_matrix(npz, "", sparse);
    if (status == SP_OK) status = io_check_features(context, path, sparse);
    io_npz_close(npz);
    return status;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

sp_status io_detect_content(io_source *source, io_content *content)
{
    const char *bytes;
    size_t count = 16;
    sp_status status = io_source_peek(source, &bytes, &count);
    *content = IO_CONTENT_TEXT;
    if (count >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0) *content = IO_CONTENT_NPY;
    else if (count >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0))
        *content = IO_CONTENT_NPZ;
    else if (count >= 14 && strncasecmp(bytes, "%%MatrixMarket", 14) == 0) *content = IO_CONTENT_MTX;
    return status;
}

sp_status io_read_features(sp_context *context, const char *path, const volatile int *interrupt, sp_dense *dense,
                           sp_csr *sparse)
{
    io_content content;
    io_source *source;
    io_table table;
    memset(dense, 0, sizeof *dense);
    memset(sparse, 0, sizeof *sparse);
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    TRY(io_detect_content(source, &content));
    switch (content) {
    case IO_CONTENT_NPY: status = read_npy(context, path, interrupt, dense); break;
    case IO_CONTENT_NPZ: status = read_npz(context, path, interrupt, sparse); break;
    case IO_CONTENT_MTX: status = read_mtx(context, source, interrupt, dense, sparse); break;
    case IO_CONTENT_TEXT:
        TRY(io_scan_table(context, path, interrupt, &table));
        status = read_text(context, source, &table, dense);
        break;
    }
done:
    io_source_close(source);
    if (status != SP_OK) sp_dense_free(context, dense);
    if (status != SP_OK) sp_csr_free(context, sparse);
    return status;
}
