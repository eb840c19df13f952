/* Inside the reader of lines: blocks of lines, and slices that are parsed. */
#ifndef IO_LINES_READER_H
#define IO_LINES_READER_H

#include "bytes/source.h"
#include "lines/lines.h"

/* Lines in memory: bytes[0..used) are whole lines, bytes[used..filled) the beginning of the next one. */
typedef struct block {
    char *bytes;
    int64_t capacity, filled, used;
    bool ended;
    bool continues, goes_on; /* begins within a line; is of one line, which does not end */
    bool cut_short; /* reading has ended within its last line, which is wrong and may be endless */
    sp_status status; /* why no more bytes came; the lines before are parsed all the same */
} block;


/* Reads the block that follows `before`, whose incomplete last line it takes over: `target` bytes, or as many more
 * as it takes to hold a whole line, unless that may be cut. */
void io_fill_block(sp_context *context, io_source *source, const block *before, int64_t target,
                   const io_format_state *state, block *into);
/* Parses the lines of a slice up to the first that is malformed. */
void io_parse_slice(io_slice *slice, io_line_parser parser);

#endif
