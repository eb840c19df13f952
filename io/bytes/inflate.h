/* Decompression of a member of gzip, by ISA-L where the build found it, else by zlib. Several threads may each have one
 * of these. */
#ifndef IO_BYTES_INFLATE_H
#define IO_BYTES_INFLATE_H

#include "io.h"

typedef struct io_inflate io_inflate;

typedef enum io_inflated {
    IO_INFLATED,         /* some bytes: more can be taken or written */
    IO_INFLATE_ENDS,     /* the member, and its sums are right */
    IO_INFLATE_STARVES,  /* nothing happens without more input */
    IO_INFLATE_DAMAGED,
    IO_INFLATE_NO_MEMORY
} io_inflated;

sp_status io_inflate_open(sp_context *context, io_inflate **inflate);
void io_inflate_close(sp_context *context, io_inflate *inflate);
/* The next byte begins a member. */
void io_inflate_reset(io_inflate *inflate);
/* Decompresses; the counts are of bytes that may be, then those that were taken and written. What is written before
 * damage depends on how input and room were divided. */
io_inflated io_inflate_some(io_inflate *from, const char *in, size_t *taken, char *out, size_t *written);

#endif
