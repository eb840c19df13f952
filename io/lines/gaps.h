/* The places of comments and empty lines in a file. */
#ifndef IO_LINES_GAPS_H
#define IO_LINES_GAPS_H

#include "io.h"

/* A gap: comments and empty lines before a thing that is numbered in the order of the file (a node, an entry). */
typedef struct io_gap {
    uint16_t after; /* this many things after the gap before */
    uint16_t lines;
} io_gap;

typedef struct io_gaps {
    io_gap *all;
    int64_t count, capacity;
    int64_t last; /* the thing after the last gap */
} io_gaps;

sp_status io_gaps_add(sp_context *context, io_gaps *gaps, int64_t thing, int64_t lines); /* lines: below 2^16 */
/* Appends gaps in which things are numbered from `first` on. */
sp_status io_gaps_join(sp_context *context, io_gaps *all, const io_gaps *part, int64_t first);
/* How many such lines come before the thing's own. */
int64_t io_gaps_before(const io_gaps *gaps, int64_t thing);
void io_gaps_clear(io_gaps *gaps); /* keeps the memory */
void io_gaps_free(sp_context *context, io_gaps *gaps);

#endif
