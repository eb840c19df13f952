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
    return io_has_decimal_comma(line, end);
}

enum { PORTION = 1 << 16 };

sp_status io_take_line(sp_context *context, io_long_lines *b, const char **line, const char **end)
{
    int64_t searched = b->begin;
    *line = *end = NULL;
    for (;;) {
        const char *newline = searched < b->filled
                                  ? memchr(b->bytes + searched, '\n', (size_t)(b->filled - searched))
                                  : NULL;
        if (newline || b->ended) {
            if (!newline && b->begin >= b->filled) return SP_OK;
            *line = b->bytes + b->begin;
            *end = newline ? newline : b->bytes + b->filled;
            b->begin = *end - b->bytes + 1;
            b->lines++;
            return SP_OK;
        }
        size_t got;
        if (b->begin > 0) memmove(b->bytes, b->bytes + b->begin, (size_t)(b->filled - b->begin));
        b->dropped += b->begin;
        b->filled -= b->begin;
        b->begin = 0;
        searched = b->filled;
        const int64_t needed = b->filled + PORTION + 1;
        sp_status status = io_reserve(context, b->filled, needed, 1, &b->capacity, (void **)&b->bytes);
        if (status == SP_OK) status = io_source_read(b->source, b->bytes + b->filled, PORTION, &got);
        if (status == SP_OK)
            status = io_check_text(context, io_source_name(b->source), b->bytes, b->filled + (int64_t)got, b->filled,
                                   b->lines);
        if (status != SP_OK) return status;
        b->filled += (int64_t)got;
        b->bytes[b->filled] = '\n';
        b->ended = got < PORTION;
    }
}

sp_status io_scan_table(sp_context *context, const char *path, const volatile int *interrupt, io_table *table)
{
    io_long_lines b = {0};
    const char *line, *end;
    bool headed = false;
    memset(table, 0, sizeof *table);
    sp_status status = io_source_open(context, path, interrupt, &b.source);
    if (status != SP_OK) return status;
    for (;;) {
        TRY(io_take_line(context, &b, &line, &end));
        if (!line) break;
        if (io_is_table_comment(line, end)) continue;
        if (headed || has_number(line, end)) {
            if (has_decimal_comma(line, end))
                TRY(io_fail_line(context, path, b.lines, "a comma within a number, which separates numbers here",
                                 line, end, "write decimal points"));
            table->fields = count_fields(line, end);
            break;
        }
        headed = true;
        table->heading_bytes = io_taken_bytes(&b);
        table->heading_lines = b.lines;
    }
done:
    sp_free(context, b.bytes);
    io_source_close(b.source);
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
