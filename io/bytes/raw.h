/* Raw bytes: what a file or memory holds, before any decompression. */
#ifndef IO_BYTES_RAW_H
#define IO_BYTES_RAW_H

#include <stdatomic.h>

#include "io.h"

enum { IO_INPUT_BYTES = 1 << 17 }; /* taken at once; holds a block of bgzip */

/* What went wrong, found by a thread that must not use the context. */
typedef struct io_trouble {
    sp_status status;
    const char *what; /* NULL: `error` says it */
    int error;        /* an errno */
} io_trouble;

typedef struct io_raw {
    const volatile int *interrupt;
    atomic_bool stop; /* whoever reads gives up */
    bool stalls;      /* a read may wait for long, and signals do not end it: ask for bytes before */
    int file;         /* -1: memory */
    const char *memory; /* its rest */
    size_t memory_left;
    bool limited; /* only `left` bytes of the file are still to be read */
    int64_t left;
    char *input; /* bytes read ahead, IO_INPUT_BYTES at most: input[at..end) */
    size_t at, end;
    bool ended;
} io_raw;

/* Fills `to`; *got is less than `count` only at the end and after trouble. */
io_trouble io_raw_read(io_raw *raw, char *to, size_t count, size_t *got);
/* Fills the input behind its rest. */
io_trouble io_raw_refill(io_raw *raw);

#endif
