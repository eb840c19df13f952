/* Sentences about a line of a file: "FILE:LINE: what (got "..."); what would be right". */
#ifndef IO_BYTES_MESSAGE_H
#define IO_BYTES_MESSAGE_H

#include "io.h"

enum { IO_TOKEN_SHOWN = 40, IO_MESSAGE = 320 };
#define IO_NO_TEXT "is this a text file?"

/* The remedy that names options of the tools, or for Python that with its keywords. */
static inline const char *io_advice(const io_read_options *options, const char *tools, const char *python)
{
    return options->names_keywords ? python : tools;
}
/* Writes text..end into `shown` for a message: cut to IO_TOKEN_SHOWN bytes, with escapes for bytes that cannot be
 * printed. */
void io_show_token(const char *text, const char *end, char *shown, size_t size);
/* "what (got "token"); remedy". */
void io_write_message(char *message, size_t size, const char *what, const char *token, const char *token_end,
                      const char *remedy);
/* "NAME:LINE: what (got "token"); remedy" as the context's error. */
sp_status io_fail_line(sp_context *context, const char *name, int64_t line, const char *what, const char *token,
                       const char *token_end, const char *remedy);

#endif
