/* Text that is being written, and matrices as text. */
#ifndef IO_TEXT_WRITE_H
#define IO_TEXT_WRITE_H

#include <string.h>

#include "text/number.h"

typedef struct io_text {
    sp_context *context;
    io_output *output; /* where the buffer goes when it is full; NULL: it grows */
    char *bytes;
    size_t used, capacity;
    sp_status status; /* the first failure; text after it is dropped */
} io_text;

/* Makes room for `bytes` more bytes; returns their place, or NULL without memory. */
char *io_text_make_room(io_text *text, size_t bytes);
/* Bytes that are longer than the buffer of an output. */
void io_text_long(io_text *text, const char *bytes, size_t count);

/* The place of `bytes` more bytes, NULL without memory. The caller adds to `used`. */
static inline char *io_text_room(io_text *text, size_t bytes)
{
    return bytes <= text->capacity - text->used ? text->bytes + text->used : io_text_make_room(text, bytes);
}

static inline void io_text_bytes(io_text *text, const char *bytes, size_t count)
{
    char *to = io_text_room(text, count);
    if (to) memcpy(to, bytes, count);
    if (to) text->used += count;
    else io_text_long(text, bytes, count);
}

/* Whether a field of a table is written in quotes, because readers would take it for something else: a comment, several
 * fields, or one without its blanks. */
bool io_field_is_quoted(const char *field, size_t length, char separator);

void io_text_int(io_text *text, int64_t value);
/* The value of a matrix's entry, 1 in a pattern. */
size_t io_format_value(char *to, const sp_csr *matrix, int64_t entry);

/* Writes entries begin..end of a row: the whole row from row_offsets[row] to row_offsets[row + 1], or a part. */
typedef void (*io_row_formatter)(const void *user, int64_t row, int64_t begin, int64_t end, io_text *text);

/* A host matrix as text: `formatter` is called by several threads for every row, also those without entries, or,
 * unless `whole_rows`, for the parts of a long one. */
sp_status io_put_rows(sp_context *context, io_output *output, const sp_csr *matrix, bool whole_rows,
                      io_row_formatter formatter, const void *user);

#endif
