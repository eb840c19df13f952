/* mcl's native matrix, byte for byte as mcl 22-282 writes it.
 *
 * Text: a column is its id, perhaps ":number", padded, then " row:value" entries and " $"; columns without entries
 * are left out. A line is broken before an entry when an id of full width would carry it past 70 columns; values are
 * not looked at, so lines of a graph may be longer. Continued lines are indented by two more than the padded id.
 * Binary, in the machine's byte order: int32 cookie, int64 columns, rows, flags (bit 0: columns are 0..n-1, bit 1:
 * rows are), the domains that are not, int64 offset[columns + 1] in bytes, then a vector for each column: int64
 * entries, int64 id, f64 value, entries x (int32 row, f32 value).
 */
#include <stdio.h>
#include <string.h>

#include "graphs/formats.h"
#include "text/write.h"

enum { LINE_WIDTH = 70 };

typedef struct native_writer {
    io_text *text;
    int64_t width;   /* of a column's id, padded: the digits of the largest node id plus one */
    int64_t length;  /* of the line so far */
    int64_t indent;  /* of a continued line */
} native_writer;

/* ---- text ----------------------------------------------------------------------------------------------- */

static int64_t decimal_digits(int64_t number)
{
    int64_t digits = 1;
    for (; number >= 10; number /= 10) digits++;
    return digits;
}

static void put(native_writer *writer, const char *text, size_t length)
{
    io_text_bytes(writer->text, text, length);
    writer->length += (int64_t)length;
}

static void put_string(io_text *text, const char *string) { io_text_bytes(text, string, strlen(string)); }

static void break_line(native_writer *writer)
{
    if (writer->length + writer->width + 1 <= LINE_WIDTH) return;
    put_string(writer->text, "\n");
    writer->length = 0;
    for (int64_t i = 0; i < writer->indent; i++) put(writer, " ", 1);
}

static void put_value(native_writer *writer, const char *text, size_t length)
{
    put(writer, ":", 1);
    put(writer, text, length);
}

/* `number` is written with the id unless it is NULL. */
static void begin_column(native_writer *writer, int64_t id, const double *number, int digits)
{
    char text[IO_NUMBER];
    writer->length = 0;
    put(writer, text, io_format_int(text, id));
    if (number) put_value(writer, text, (size_t)snprintf(text, sizeof text, "%.*g", digits, *number));
    while (writer->length < writer->width) put(writer, " ", 1);
}

/* Without a value, as in clusterings. */
static void put_entry(native_writer *writer, int64_t id)
{
    break_line(writer);
    char *at = io_text_room(writer->text, 2 * IO_NUMBER);
    if (!at) return;
    *at = ' ';
    const size_t length = 1 + io_format_int(at + 1, id);
    writer->text->used += length;
    writer->length += (int64_t)length;
}

static void end_column(native_writer *writer) { put_string(writer->text, " $\n"); }

static void write_domain(native_writer *writer, const char *name, const int64_t *ids, int64_t count)
{
    put_string(writer->text, "(");
    put_string(writer->text, name);
    put_string(writer->text, "\n");
    writer->length = writer->indent = 0;
    for (int64_t i = 0; i < count; i++) put_entry(writer, ids[i]);
    end_column(writer);
    put_string(writer->text, ")\n");
    writer->indent = writer->width + 2;
}

/* `rows` nodes have `ids` (ascending; NULL: 0..rows-1). */
static void set_width(native_writer *writer, int64_t rows, const int64_t *ids)
{
    writer->width = decimal_digits(rows == 0 ? 0 : ids ? ids[rows - 1] + 1 : rows);
    writer->length = 0;
    writer->indent = writer->width + 2;
}

/* Writes everything above the first column; with `graph` the columns have the ids of the rows. */
static void begin_matrix(native_writer *writer, io_text *text, int64_t rows, int64_t cols, const int64_t *ids,
                     bool graph, const char *command_line)
{
    writer->text = text;
    set_width(writer, rows, ids);
    if (command_line) {
        put_string(text, "# cline: ");
        put_string(text, command_line);
        put_string(text, "\n");
    }
    put_string(text, "(mclheader\nmcltype matrix\ndimensions ");
    io_text_int(text, rows);
    put_string(text, "x");
    io_text_int(text, cols);
    put_string(text, "\n)\n");
    if (ids) write_domain(writer, graph ? "mcldoms" : "mclrows", ids, rows);
    put_string(text, "(mclmatrix\nbegin\n");
}

static void end_matrix(native_writer *writer) { put_string(writer->text, ")\n"); }

/* What a column is written from. */
typedef struct native_text {
    const sp_csr *columns;
    int64_t first; /* the number of the first of them */
    const int64_t *ids;
    const double *numbers; /* one a column, or NULL */
    int digits; /* as printf's %g has them; 0: as many as give the value back */
    native_writer start;
} native_text;

static size_t format_value(const native_text *from, int64_t entry, char *to)
{
    const sp_csr *m = from->columns;
    if (!from->digits || !m->values || m->value_type == SP_F64) return io_format_value(to, m, entry);
    return (size_t)snprintf(to, IO_NUMBER, "%.*g", from->digits, (double)((const float *)m->values)[entry]);
}

static void write_column(const void *user, int64_t place, int64_t begin, int64_t end, io_text *text)
{
    const native_text *from = user;
    const int64_t column = from->first + place;
    native_writer writer = from->start;
    char value[IO_NUMBER];
    if (begin == end) return;
    writer.text = text;
    begin_column(&writer, from->ids ? from->ids[column] : column, from->numbers ? from->numbers + column : NULL,
                     from->digits);
    for (int64_t e = begin; e < end; e++) {
        const int64_t row = from->columns->col_indices[e];
        put_entry(&writer, from->ids ? from->ids[row] : row);
        put_value(&writer, value, format_value(from, e, value));
    }
    end_column(&writer);
}

sp_status io_put_native_matrix(sp_context *context, io_output *output, const sp_csr *columns, const int64_t *ids,
                               const double *numbers, int digits, int64_t first, const char *command_line)
{
    char buffer[1 << 12];
    io_text text = {.output = output, .bytes = buffer, .capacity = sizeof buffer};
    native_text from = {.columns = columns, .first = first, .ids = ids, .numbers = numbers, .digits = digits};
    set_width(&from.start, columns->cols, ids);
    if (first == 0) begin_matrix(&from.start, &text, columns->cols, columns->cols, ids, true, command_line);
    io_output_bytes(output, buffer, text.used);
    sp_status status = io_put_rows(context, output, columns, true, write_column, &from);
    if (first + columns->rows == columns->cols) io_output_string(output, ")\n");
    return status;
}

/* ---- binary --------------------------------------------------------------------------------------------- */

static void put_number(io_output *output, int64_t number) { io_output_bytes(output, &number, sizeof number); }

/* A vector's head. */
static void put_head(io_output *output, int64_t count, int64_t id, double number)
{
    put_number(output, count);
    put_number(output, id);
    io_output_bytes(output, &number, sizeof number);
}

static void put_pair(io_output *output, int64_t id, float value)
{
    const int32_t narrow = (int32_t)id;
    io_output_bytes(output, &narrow, sizeof narrow);
    io_output_bytes(output, &value, sizeof value);
}

static void put_domain(io_output *output, const int64_t *ids, int64_t count)
{
    if (!ids) return;
    put_head(output, count, -1, 0);
    for (int64_t i = 0; i < count; i++) put_pair(output, ids[i], 1.0f);
}

/* All that precedes the vectors of a matrix; ids as in io_graph. */
static void put_binary_head(io_output *output, int64_t columns, int64_t rows, const int64_t *column_ids,
                            const int64_t *row_ids, const int64_t *offsets)
{
    enum { HEAD_BYTES = 24, PAIR_BYTES = 8 };
    io_output_bytes(output, io_binary_cookie, sizeof io_binary_cookie);
    put_number(output, columns);
    put_number(output, rows);
    put_number(output, (column_ids ? 0 : 1) | (row_ids ? 0 : 2));
    put_domain(output, column_ids, columns);
    put_domain(output, row_ids, rows);
    for (int64_t j = 0; j <= columns; j++) put_number(output, j * HEAD_BYTES + offsets[j] * PAIR_BYTES);
}

/* The columns from number `first` on. */
static void put_vectors(io_output *output, const sp_csr *columns, int64_t first, const int64_t *column_ids,
                        const int64_t *row_ids, const double *numbers)
{
    const float *values = columns->values;
    for (int64_t j = 0; j < columns->rows; j++) {
        const int64_t begin = columns->row_offsets[j], end = columns->row_offsets[j + 1], number = first + j;
        put_head(output, end - begin, column_ids ? column_ids[number] : number, numbers ? numbers[number] : 0);
        for (int64_t k = begin; k < end; k++) {
            int64_t row = columns->col_indices[k];
            put_pair(output, row_ids ? row_ids[row] : row, values ? values[k] : 1.0f);
        }
    }
}

sp_status io_put_native_columns(sp_context *context, io_output *output, const sp_csr *columns,
                                const io_native_options *o)
{
    const bool f32 = !columns->values || columns->value_type == SP_F32, whole = columns->rows == columns->cols;
    const bool fits = whole || (o->first + columns->rows <= columns->cols && (o->offsets || !o->binary));
    if (!fits || columns->space != SP_HOST || !f32)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a native matrix is made from a square f32 host matrix");
    if (!o->binary)
        return io_put_native_matrix(context, output, columns, o->ids, o->numbers, o->digits, o->first, o->command_line);
    if (o->first == 0)
        put_binary_head(output, columns->cols, columns->cols, o->ids, o->ids, whole
                        ? columns->row_offsets : o->offsets);
    put_vectors(output, columns, o->first, o->ids, o->ids, o->numbers);
    return SP_OK;
}

sp_status io_write_native_matrix(sp_context *context, const char *path, const sp_csr *columns, const int64_t *ids,
                                 const double *numbers, int digits, bool binary, const char *command_line)
{
    const io_native_options options = {ids, numbers, digits, binary, command_line, 0, NULL};
    io_output *output;
    sp_status status = io_output_open(context, path, &output);
    if (status != SP_OK) return status;
    status = io_put_native_columns(context, output, columns, &options);
    if (status == SP_OK) return io_output_commit(output);
    io_output_discard(output);
    return status;
}

/* ---- clusterings ---------------------------------------------------------------------------------------- */

void io_put_label_clusters(io_output *output, const io_clusters *clusters, const io_names *names)
{
    for (int64_t c = 0; c < clusters->clusters; c++) {
        for (int64_t i = clusters->offsets[c]; i < clusters->offsets[c + 1]; i++) {
            int64_t node = clusters->members[i];
            if (i > clusters->offsets[c]) io_output_bytes(output, "\t", 1);
            io_output_bytes(output, io_name(names, node), io_name_length(names, node));
        }
        io_output_bytes(output, "\n", 1);
    }
}

void io_put_native_clusters(io_output *output, const io_clusters *clusters, const int64_t *ids,
                            const char *command_line)
{
    char buffer[1 << 12];
    io_text text = {.output = output, .bytes = buffer, .capacity = sizeof buffer};
    native_writer writer;
    begin_matrix(&writer, &text, clusters->nodes, clusters->clusters, ids, false, command_line);
    for (int64_t c = 0; c < clusters->clusters; c++) {
        if (clusters->offsets[c] == clusters->offsets[c + 1]) continue;
        begin_column(&writer, c, NULL, 0);
        for (int64_t i = clusters->offsets[c]; i < clusters->offsets[c + 1]; i++)
            put_entry(&writer, ids ? ids[clusters->members[i]] : clusters->members[i]);
        end_column(&writer);
    }
    end_matrix(&writer);
    io_output_bytes(output, buffer, text.used);
}

sp_status io_write_native_clusters(sp_context *context, const char *path, const io_clusters *clusters,
                                   const int64_t *ids, bool binary, const char *command_line)
{
    const sp_csr columns = {.rows = clusters->clusters, .cols = clusters->nodes,
                            .row_offsets = (int64_t *)clusters->offsets, .col_indices = (int32_t *)clusters->members};
    io_output *output;
    sp_status status = io_output_open(context, path, &output);
    if (status != SP_OK) return status;
    if (binary) put_binary_head(output, columns.rows, columns.cols, NULL, ids, columns.row_offsets);
    if (binary) put_vectors(output, &columns, 0, NULL, ids, NULL);
    else io_put_native_clusters(output, clusters, ids, command_line);
    return io_output_commit(output);
}
