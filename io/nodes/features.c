/* Features of nodes: a row of numbers a node, dense or sparse, from Matrix Market, NumPy's and scipy's files, and text.
 * Text is read twice: first for the number of fields and the names of nodes (its beginning, or all of it if a column
 * has them), then by the parallel line reader, which keeps the numbers that are not 0 as entries.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "graphs/formats.h"
#include "nodes/nodes.h"
#include "text/field.h"
#include "text/table.h"

/* ---- text ---------------------------------------------------------------------------------------------- */

static bool read_row(io_slice *slice, char *line, char *line_end)
{
    const char *end = line_end, *at = io_skip_blanks(line, end);
    if (io_is_table_comment(line, end)) return true;
    const int32_t row = (int32_t)slice->node_lines++;
    int64_t col = 0;
    char separator = 0;
    while (end > at && io_is_blank(end[-1])) end--;
    for (bool more = true; more; col++) {
        const char *stop = io_field_end(at, end);
        double value;
        if (col == slice->state->cols)
            return io_slice_fail(slice, "more numbers than in the first row", at, stop, "rows have equal lengths");
        if (stop == at || io_parse_decimal(at, stop, &value) != stop)
            return io_slice_fail(slice, "a feature that is not a number", at, stop,
                                 col == 0 ? "write numbers; a column of names is headed id" : "write numbers");
        if (!(fabs(value) <= FLT_MAX))
            return io_slice_fail(slice, "a feature that is too large", at, stop, "write numbers below 3.4e38");
        if (value != 0 && !io_slice_arc(slice, row, (int32_t)col, io_round(slice->values, value))) return false;
        at = io_skip_blanks(stop, end);
        more = at < end;
        const char here = more && io_is_separator(*at) ? *at : ' ';
        if (more && separator && here != separator)
            return io_slice_fail(slice, "two kinds of separators", line, end,
                                 "use one; decimals are written as 1.5, not 1,5");
        separator = here;
        if (here != ' ') at = io_skip_blanks(at + 1, end);
    }
    return col == slice->state->cols ||
           io_slice_fail(slice, "fewer numbers than in the first row", line, end, "rows have equal lengths");
}

/* Whether a comment could be a row whose name begins with its sign, which no blank follows: "#a,1,2". */
static bool looks_like_row(const io_slice *slice, const char *line, const char *end)
{
    const io_csv *csv = slice->state->csv;
    const char *at = line;
    io_field f;
    int64_t numbers = 0;
    int i = 0;
    if (csv->source != 0 || (*line != '#' && *line != '%') || line + 1 == end || io_is_blank(line[1])) return false;
    for (; at; i++) {
        double value;
        if (io_take_field(&at, end, csv->separator, &f)) return false;
        numbers += i > 0 && f.text < f.end && io_parse_decimal(f.text, f.end, &value) == f.end;
    }
    return i > 1 && numbers == i - 1 && numbers == slice->state->cols;
}

static bool fail_missing(io_slice *slice, int column, const char *line, const char *end)
{
    char what[64];
    snprintf(what, sizeof what, "a feature that is missing, in column %d", column + 1);
    return io_slice_fail(slice, what, line, end, "write a number, such as 0 or the mean of its column");
}

/* The same for a table with a column of names, which csv->source is, and perhaps one that counts rows, csv->target. */
static bool read_named_row(io_slice *slice, char *line, char *line_end)
{
    static const char *const missing[] = {"na", "n/a", "nan", "null", "none", NULL};
    const io_csv *csv = slice->state->csv;
    const char *end = line_end, *at = csv->separator == ' ' ? io_skip_blanks(line, end) : line, *wrong;
    io_field f;
    int64_t col = 0;
    if (looks_like_row(slice, line, end))
        return io_slice_fail(slice, "a comment that looks like a row", line, end,
                             "write the name in quotes if it is one, else a blank behind the sign of the comment");
    if (io_is_table_comment(line, end)) return true;
    const int32_t row = (int32_t)slice->node_lines++;
    for (int i = 0; at; i++) {
        double value;
        if ((wrong = io_take_field(&at, end, csv->separator, &f)))
            return io_slice_fail(slice, wrong, f.text, end, "close it, and write a quote within a quoted field twice");
        if (i == csv->source || i == csv->target) continue;
        if (col == slice->state->cols)
            return io_slice_fail(slice, "more numbers than in the first row", f.text, f.end, "rows have equal lengths");
        if (f.text == f.end || io_word_among(f.text, f.end, missing) >= 0)
            return fail_missing(slice, i, line, end);
        if (io_parse_decimal(f.text, f.end, &value) != f.end)
            return io_slice_fail(slice, "a feature that is not a number", f.text, f.end,
                                 io_is_comma_number(f.text, f.end)
                                     ? "decimals are written as 1.5, not 1,5"
                                     : "write numbers; for kinds, a column of 0 and 1 for each");
        if (!(fabs(value) <= FLT_MAX))
            return io_slice_fail(slice, "a feature that is too large", f.text, f.end, "write numbers below 3.4e38");
        if (value != 0 && !io_slice_arc(slice, row, (int32_t)col, io_round(slice->values, value))) return false;
        col++;
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

/* csv->source < 0: there is no column of names. */
static sp_status read_text(sp_context *context, io_source *source, const io_table *table, const io_csv *csv,
                           sp_dense *dense)
{
    const io_read_options options = {.any_sign = true};
    const io_format_state state = {.options = &options, .cols = table->fields, .csv = csv, .long_lines = true};
    io_line_counts counts = {0};
    io_graph entries = {0};
    sp_status status;
    TRY(io_skip_heading(source, table));
    TRY(io_read_lines(context, source, &state, csv->source < 0 ? read_row : read_named_row, 0, table->heading_lines,
                      &counts, &entries));
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

/* The heading of each column but that of the names of nodes, which R leaves without one. None if the heading does not
 * have one for each of `cols` columns. */
static sp_status read_headings(sp_context *context, const char *path, const volatile int *interrupt,
                               const io_table *table, const io_csv *csv, int64_t cols, io_names *headings)
{
    io_long_lines b = {0};
    io_name_list list = {0};
    const char *line = NULL, *end = NULL;
    char *copy = NULL;
    io_field f;
    if (table->heading_lines == 0) return SP_OK;
    sp_status status = io_source_open(context, path, interrupt, &b.source);
    if (status != SP_OK) return status;
    while (b.lines < table->heading_lines) TRY(io_take_line(context, &b, &line, &end));
    if (!line) goto done;
    TRY(sp_alloc(context, end - line + 1, 1, (void **)&copy));
    memcpy(copy, line, (size_t)(end - line));
    end = copy + (end - line);
    const char *at = csv->separator == ' ' ? io_skip_blanks(copy, end) : copy, *first = at;
    int64_t fields = 0;
    while (at && !io_take_field(&at, end, csv->separator, &f)) fields++;
    at = first;
    for (int64_t i = 0; at && !io_take_field(&at, end, csv->separator, &f); i++) {
        if (fields == cols + 1 + (csv->target >= 0) && (i == csv->source || i == csv->target)) continue;
        io_undouble(copy, &f);
        TRY(io_names_append(context, &list, f.text, (size_t)(f.end - f.text)));
    }
    if (list.names.count == cols) {
        *headings = list.names;
        memset(&list.names, 0, sizeof list.names);
    }
done:
    io_names_free(context, &list.names);
    FREE_ALL(context, copy, b.bytes);
    io_source_close(b.source);
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
        status = sp_csr_from_coo(context, &(sp_coo){.rows = m.rows, .cols = m.cols, .count = g->arcs,
                                                    .row_indices = g->heads, .col_indices = g->tails,
                                                    .values = g->weights}, SP_COMBINE_SUM, false, sparse);
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

static sp_status read_table(sp_context *context, io_source *source, const char *path, const volatile int *interrupt,
                            sp_dense *dense, io_names *names, io_names *headings)
{
    io_table table;
    io_csv csv;
    sp_status status;
    TRY(io_scan_ids(context, path, interrupt, &csv, &table.fields, names));
    if (csv.source < 0) TRY(io_scan_table(context, path, interrupt, &table));
    else {
        table.heading_bytes = csv.heading_bytes;
        table.heading_lines = csv.heading_lines;
    }
    TRY(read_text(context, source, &table, &csv, dense));
    if (csv.source >= 0 && dense->rows != names->count)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: changed while it was read", path));
    if (headings) status = read_headings(context, path, interrupt, &table, &csv, dense->cols, headings);
done:
    return status;
}

sp_status io_read_features(sp_context *context, const char *path, const volatile int *interrupt, sp_dense *dense,
                           sp_csr *sparse, io_names *names, io_names *headings)
{
    io_content content;
    io_source *source;
    memset(dense, 0, sizeof *dense);
    memset(sparse, 0, sizeof *sparse);
    memset(names, 0, sizeof *names);
    if (headings) memset(headings, 0, sizeof *headings);
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    TRY(io_detect_content(source, &content));
    if (content != IO_CONTENT_MTX) TRY(io_require_file(context, path));
    switch (content) {
    case IO_CONTENT_NPY: status = read_npy(context, path, interrupt, dense); break;
    case IO_CONTENT_NPZ: status = read_npz(context, path, interrupt, sparse); break;
    case IO_CONTENT_MTX: status = read_mtx(context, source, interrupt, dense, sparse); break;
    case IO_CONTENT_TEXT: status = read_table(context, source, path, interrupt, dense, names, headings); break;
    }
done:
    io_source_close(source);
    if (status != SP_OK) sp_dense_free(context, dense);
    if (status != SP_OK) sp_csr_free(context, sparse);
    if (status != SP_OK) io_names_free(context, names);
    return status;
}
