/* The heading of a table of numbers, and how many fields its rows have: read before all else, once. */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "text/check.h"
#include "text/number.h"
#include "text/table.h"

/* Whether a field is a number, NaN or infinity: then the line is not a heading, but perhaps a wrong row. */
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
    return fields + (end > line && io_is_separator(end[-1])); /* an empty field, which is refused later */
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
        const bool comment = io_is_table_comment(line, end), number = has_number(line, end);
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
