/* Decompressed bytes in order, made ahead of their use by threads of their own. */
#ifndef IO_BYTES_AHEAD_H
#define IO_BYTES_AHEAD_H

#include "bytes/raw.h"

typedef struct io_ahead io_ahead;

/* `raw` holds its first input. Small data, and contexts of one thread, are decompressed when they are asked for. */
sp_status io_ahead_open(sp_context *context, io_raw *raw, bool zstd, io_ahead **ahead);
void io_ahead_close(io_ahead *ahead);
/* Fills `to`; *got is less than `count` only at the end and after trouble. */
io_trouble io_ahead_read(io_ahead *ahead, char *to, size_t count, size_t *got);

#endif
