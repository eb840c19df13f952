/* A file whose bytes are read at any place. */
#ifndef IO_BYTES_FILE_H
#define IO_BYTES_FILE_H

#include "bytes/source.h"

typedef struct io_file {
    sp_context *context;
    const char *name;
    const volatile int *interrupt;
    int descriptor;             /* -1: in memory */
    const unsigned char *bytes; /* of memory */
    unsigned char *memory;      /* that is ours */
    int64_t size;
} io_file;

sp_status io_file_open(sp_context *context, const char *path, const volatile int *interrupt, io_file *file);
/* The whole of a source from whose beginning nothing was taken: what it reads, if that is a plain file, else its bytes
 * in memory. The source may be closed then. */
sp_status io_file_of_source(sp_context *context, io_source *source, const volatile int *interrupt, io_file *file);
void io_file_memory(sp_context *context, const char *name, const void *bytes, size_t count, io_file *file);
void io_file_close(io_file *file);
/* Reads exactly `count` bytes, by all threads if they are many. Unless it is NULL, *crc is continued with their CRC-32.
 */
sp_status io_file_read(const io_file *file, int64_t offset, void *to, int64_t count, uint32_t *crc);
/* Continues `crc` with bytes in memory, by all threads. */
uint32_t io_crc(sp_context *context, uint32_t crc, const void *bytes, int64_t count);

#endif
