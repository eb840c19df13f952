/* Text that may not be text, and the whole of a text in memory. */
#ifndef IO_TEXT_CHECK_H
#define IO_TEXT_CHECK_H

#include "bytes/source.h"

/* Bytes of a word, of a gap between words, or of a line of few fields. */
enum { IO_LONGEST = 1 << 20 };
#define IO_LONG_RUN "a word, or a gap between words, of more than 1 MB"

/* A word or a gap that is longer, NULL if there is none. */
const char *io_find_long_run(const char *bytes, int64_t count);
/* Refuses a NUL byte and such a word or gap; all but what follows `checked` has been checked. `lines` come before. */
sp_status io_check_text(sp_context *context, const char *name, const char *bytes, int64_t count, int64_t checked,
                        int64_t lines);
/* All that is left of a source, checked; a line feed follows. */
sp_status io_read_text(sp_context *context, io_source *source, char **bytes, int64_t *size);

#endif
