/* Tables of numbers as text: their heading and the number of their fields. */
#ifndef IO_TEXT_TABLE_H
#define IO_TEXT_TABLE_H

#include "bytes/source.h"
#include "text/words.h"

/* A table as text, its fields separated by commas, semicolons or blanks: the size of its heading (a line without
 * numbers, and everything before it), and the number of fields in the first line of numbers (0: no such line). */
typedef struct io_table {
    int64_t heading_bytes, heading_lines, fields;
} io_table;

/* Lines of any length from a source. */
typedef struct io_long_lines {
    io_source *source;
    char *bytes; /* the caller frees them */
    int64_t filled, capacity, begin;
    int64_t dropped, lines; /* bytes before, and lines taken */
    bool ended;
} io_long_lines;
/* Takes the next line, without its newline; *line is NULL at the end. One byte behind it is readable and no part of a
 * number. Valid until the next call. */
sp_status io_take_line(sp_context *context, io_long_lines *b, const char **line, const char **end);
/* The bytes of all lines taken so far. */
static inline int64_t io_taken_bytes(const io_long_lines *b)
{
    return b->dropped + (b->begin < b->filled ? b->begin : b->filled);
}

sp_status io_scan_table(sp_context *context, const char *path, const volatile int *interrupt, io_table *table);
sp_status io_skip_heading(io_source *source, const io_table *table);

/* Empty lines and comments, which tables may have anywhere. */
static inline bool io_is_table_comment(const char *line, const char *end)
{
    const char *at = io_skip_blanks(line, end);
    while (end > at && io_is_blank(end[-1])) end--;
    return at == end || *line == '#' || *line == '%' || io_names_separator(at, end);
}

#endif
