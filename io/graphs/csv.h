/* Tables of edges: which columns they have. */
#ifndef IO_GRAPHS_CSV_H
#define IO_GRAPHS_CSV_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

typedef struct io_csv {
    char separator;              /* ' ': any number of blanks */
    int source, target, weight;  /* numbers of columns from 0; weight -1: none */
    int64_t heading_bytes, heading_lines; /* up to the end of the heading; 0: there is none */
    bool certain;                /* no edge could look like this heading */
    bool named;                  /* the first line names the separator */
    bool marked;                 /* the heading stands behind a # */
} io_csv;

/* Finds the columns by the first two lines of text that begins a file. */
void io_csv_find(const char *bytes, size_t count, io_csv *csv);

#endif
