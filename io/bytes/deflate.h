/* Compression to one member of gzip, by zlib. The same bytes give the same member: its header has no name and no time.
 */
#ifndef IO_BYTES_DEFLATE_H
#define IO_BYTES_DEFLATE_H

#include "io.h"

typedef struct io_deflate io_deflate;
/* Takes compressed bytes. */
typedef void (*io_deflate_sink)(void *user, const char *bytes, size_t count);

sp_status io_deflate_open(sp_context *context, io_deflate **opened);
void io_deflate_close(sp_context *context, io_deflate *to);
/* Compresses `count` bytes; with `last` the member ends with them, and nothing may follow. */
void io_deflate_bytes(io_deflate *to, const char *bytes, size_t count, bool last, io_deflate_sink sink,
                      void *user);

#endif
