/* A source: the uncompressed bytes of a file, of standard input or of memory, in order. */
#ifndef IO_BYTES_SOURCE_H
#define IO_BYTES_SOURCE_H

#include <string.h>

#include "io.h"

typedef struct io_source io_source;

sp_status io_source_open(sp_context *context, const char *path, const volatile int *interrupt, io_source **source);
sp_status io_source_memory(sp_context *context, const char *name, const void *bytes, size_t count,
                           io_source **source);
void io_source_close(io_source *source);
/* The bytes of a byte order mark of UTF-8 at the beginning: 0 or 3. */
static inline size_t io_mark_bytes(const char *bytes, size_t count)
{
    return count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
/* Before anything is read: a byte order mark at the beginning is not dropped. */
void io_source_keep_mark(io_source *source);
/* Fills `to`; *got is less than `count` only at the end of the data. */
sp_status io_source_read(io_source *source, void *to, size_t count, size_t *got);
/* The first bytes (up to `*count`) without taking them; valid until the next read. */
sp_status io_source_peek(io_source *source, const char **bytes, size_t *count);
/* Refuses a zip archive (also an .npz), for readers of text and of our own formats. */
sp_status io_source_refuse_zip(io_source *source);
/* Takes a line of at most 64 KB, for headers and small files; *line is NULL at the end of the data, **end is readable
 * unless it is. Valid until the next call; *bytes grows by the bytes taken. */
sp_status io_source_line(io_source *source, const char **line, const char **end, int64_t *bytes);
/* Whether the source is an uncompressed file of a known size. Nothing but peeking and io_source_line has happened. */
bool io_source_has_parts(const io_source *source);
/* From now on the source has only the lines that begin in one of `parts` equal parts of such a file, except its first
 * `taken` bytes, which have been taken. *begin is the place of the first. With `columns` these are the columns of a
 * matrix: parts begin behind lines that end with $ and have no comment, where in a sound file a column has ended. */
sp_status io_source_take_part(io_source *source, int64_t taken, int part, int parts, bool columns, int64_t *begin);
/* From now on the source has only these bytes of such a file. */
sp_status io_source_take_range(io_source *source, int64_t begin, int64_t end);
/* The lines that end before that place. */
sp_status io_source_count_lines(io_source *source, int64_t begin, int64_t *lines);
/* What it reads, if that is a file with a path; else -1. */
int io_source_descriptor(const io_source *source);
const char *io_source_name(const io_source *source);
/* Bytes that are certainly still to come (a plain file's size), 0 when unknown. */
int64_t io_source_size(const io_source *source);
/* How much of the whole to read next, after a portion of that size or, first, 0: all of a small file and one byte more,
 * to see the end at once. Portions double, because the size may be that of compressed bytes. */
static inline size_t io_next_portion(const io_source *source, size_t portion, size_t most)
{
    const int64_t size = io_source_size(source);
    const size_t next = portion > 0 ? 2 * portion : size > 0 && size < (int64_t)most ? (size_t)size + 1 : most;
    return next < most ? next : most;
}

#endif
