/* mcl's native matrix, byte for byte as mcl 22-282 writes it.
 *
 * Text: a column is its id, padded, then " row:value" entries and " $"; columns without entries are left out. A line
 * is broken before an entry when an id of full width would carry it past 70 columns; values are not looked at, so
 * lines of a graph may be longer. Continued lines are indented by two more than the padded id.
 * Binary, in the machine's byte order: int32 cookie, int64 columns, rows, flags (bit 0: columns are 0..n-1, bit 1:
 * rows are), the domains that are not, int64 offset[columns + 1] in bytes, then a vector for each column: int64
 * entries, int64 id, f64 value, entries x (int32 row, f32 value).
 */
#include <stdio.h>

#include "internal.h"

enum { LINE_WIDTH = 70 };

/* ---- text ----------------------------------------------------------------------------------------------- */

static int64_t decimal_digits(int64_t number)
{
    int64_t digits = 1;
    for (; number >= 10; number /= 10) digits++;
    return digits;
}

static void put(io_native_writer *writer, const char *text, int length)
{
    io_output_bytes(writer->output, text, (size_t)length);
    writer->length += length;
}

static void break_line(io_native_writer *writer)
{
    if (writer->length + writer->width + 1 <= LINE_WIDTH) return;
    io_output_bytes(writer->output, "\n", 1);
    writer->length = 0;
    for (int64_t i = 0; i < writer->indent; i++) put(writer, " ", 1);
}

static void write_domain(io_native_writer *writer, const char *name, const int64_t *ids, int64_t count)
{
    io_output_format(writer->output, "(%s\n", name);
    writer->length = writer->indent = 0;
    for (int64_t i = 0; i < count; i++) io_native_entry(writer, ids[i], NULL);
    io_native_column_end(writer);
    io_output_string(writer->output, ")\n");
    writer->indent = writer->width + 2;
}

void io_native_begin(io_native_writer *writer, io_output *output, int64_t rows, int64_t cols, const int64_t *ids,
                     bool graph, int digits, const char *command_line)
{
    writer->output = output;
    writer->digits = digits;
    writer->width = decimal_digits(rows == 0 ? 0 : ids ? ids[rows - 1] + 1 : rows);
    writer->length = 0;
    writer->indent = writer->width + 2;
    if (command_line) {
        io_output_string(output, "# cline: ");
        io_output_string(output, command_line);
        io_output_string(output, "\n");
    }
    io_output_format(output, "(mclheader\nmcltype matrix\ndimensions %lldx%lld\n)\n", (long long)rows,
                     (long long)cols);
    if (ids) write_domain(writer, graph ? "mcldoms" : "mclrows", ids, rows);
    io_output_string(output, "(mclmatrix\nbegin\n");
}

void io_native_column(io_native_writer *writer, int64_t id)
{
    char text[32];
    writer->length = 0;
    put(writer, text, snprintf(text, sizeof text, "%-*lld", (int)writer->width, (long long)id));
}

void io_native_entry(io_native_writer *writer, int64_t id, const float *value)
{
    char text[64];
    break_line(writer);
    int length = snprintf(text, sizeof text, " %lld", (long long)id);
    put(writer, text, length);
    if (value) put(writer, text, snprintf(text, sizeof text, ":%.*g", writer->digits, (double)*value));
}

void io_native_column_end(io_native_writer *writer) { io_output_string(writer->output, " $\n"); }

void io_native_end(io_native_writer *writer) { io_output_string(writer->output, ")\n"); }

static void write_text(io_output *output, const sp_csr *columns, const int64_t *ids, int digits,
                       const char *command_line)
{
    const float one = 1.0f, *values = columns->values;
    io_native_writer writer;
    io_native_begin(&writer, output, columns->rows, columns->rows, ids, true, digits, command_line);
    for (int64_t j = 0; j < columns->rows; j++) {
        int64_t begin = columns->row_offsets[j], end = columns->row_offsets[j + 1];
        if (begin == end) continue;
        io_native_column(&writer, ids ? ids[j] : j);
        for (int64_t k = begin; k < end; k++) {
            int64_t row = columns->col_indices[k];
            io_native_entry(&writer, ids ? ids[row] : row, values ? values + k : &one);
        }
        io_native_column_end(&writer);
    }
    io_native_end(&writer);
}

/* ---- binary --------------------------------------------------------------------------------------------- */

static void put_number(io_output *output, int64_t number) { io_output_bytes(output, &number, sizeof number); }

/* A vector's head; mcl keeps a number with each, which means nothing in a file. */
static void put_head(io_output *output, int64_t count, int64_t id)
{
    const double nothing = 0;
    put_number(output, count);
    put_number(output, id);
    io_output_bytes(output, &nothing, sizeof nothing);
}

static void put_pair(io_output *output, int64_t id, float value)
{
    const int32_t narrow = (int32_t)id;
    io_output_bytes(output, &narrow, sizeof narrow);
    io_output_bytes(output, &value, sizeof value);
}

static void write_binary(io_output *output, const sp_csr *columns, const int64_t *ids)
{
    enum { HEAD_BYTES = 24, PAIR_BYTES = 8, CANONICAL = 3 };
    const float *values = columns->values;
    io_output_bytes(output, io_binary_cookie, sizeof io_binary_cookie);
    put_number(output, columns->rows);
    put_number(output, columns->rows);
    put_number(output, ids ? 0 : CANONICAL);
    for (int domain = 0; ids && domain < 2; domain++) {
        put_head(output, columns->rows, -1);
        for (int64_t i = 0; i < columns->rows; i++) put_pair(output, ids[i], 1.0f);
    }
    for (int64_t j = 0; j <= columns->rows; j++)
        put_number(output, j * HEAD_BYTES + columns->row_offsets[j] * PAIR_BYTES);
    for (int64_t j = 0; j < columns->rows; j++) {
        int64_t begin = columns->row_offsets[j], end = columns->row_offsets[j + 1];
        put_head(output, end - begin, ids ? ids[j] : j);
        for (int64_t k = begin; k < end; k++) {
            int64_t row = columns->col_indices[k];
            put_pair(output, ids ? ids[row] : row, values ? values[k] : 1.0f);
        }
    }
}

sp_status io_write_native_matrix(sp_context *context, const char *path, const sp_csr *columns, const int64_t *ids,
                                 int digits, bool binary, const char *command_line)
{
    bool f32 = !columns->values || columns->value_type == SP_F32;
    if (columns->rows != columns->cols || columns->space != SP_HOST || !f32)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: a native matrix is made from a square f32 host matrix", path);
    io_output *output;
    sp_status status = io_output_open(context, path, &output);
    if (status != SP_OK) return status;
    if (binary)
        write_binary(output, columns, ids);
    else
        write_text(output, columns, ids, digits, command_line);
    return io_output_commit(output);
}
