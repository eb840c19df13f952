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
sp_status io_scan_table(sp_context *context, const char *path, const volatile int *interrupt, io_table *table);
sp_status io_skip_heading(io_source *source, const io_table *table);

/* Empty lines and comments, which tables may have anywhere. */
static inline bool io_is_table_comment(const char *line, const char *end)
{
    const char *at = io_skip_blanks(line, end);
    return at == end || *line == '#' || *line == '%';
}

#endif
