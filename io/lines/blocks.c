/* Blocks of whole lines: read, and cut where a line of many arcs goes on. */
#include <string.h>

#include "base/system.h"
#include "bytes/memory.h"
#include "lines/reader.h"
#include "lines/scan.h"
#include "text/check.h"
#include "text/words.h"

/* Makes room for `target` bytes, the newline that ends a last line without one, and what scanners look at. */
static sp_status widen(sp_context *context, block *into, int64_t target)
{
    if (target <= into->capacity) return SP_OK;
    sp_status status = io_grow(context, into->filled, target + 1 + IO_SCANNED, 1, (void **)&into->bytes);
    if (status == SP_OK) into->capacity = target;
    return status;
}

/* The place where a line of many arcs may be cut, 0 if there is none: after the blank that follows a field, from the
 * fourth field on, because the first ones are special. "LABEL: VALUE" stays together. */
static int64_t find_cut(const block *from)
{
    const char *bytes = from->bytes;
    int64_t least = 0, at = from->filled;
    for (int fields = 0; !from->continues && fields < 4; fields++) {
        while (least < at && bytes[least] <= ' ' && bytes[least] >= 0) least++;
        while (least < at && !io_is_blank(bytes[least])) least++;
    }
    for (at--; at > least + 1; at--) /* something is left for what follows */
        if (io_is_blank(bytes[at - 1]) && bytes[at - 2] && !io_is_blank(bytes[at - 2]) && bytes[at - 2] != ':')
            return at;
    return 0;
}

/* Whether the first line of the block will be refused however it continues. A line that is read in parts can be cut
 * somewhere within WORDS_AND_GAPS words and gaps. */
static bool is_endless(const block *from, const io_format_state *state)
{
    enum { WORDS_AND_GAPS = 10 };
    if (!state->options->lenient && memchr(from->bytes, '\0', (size_t)from->filled)) return true;
    if (from->filled <= IO_LONGEST) return false;
    if (!state->many_arcs && !state->long_lines) return true;
    return io_find_long_run(from->bytes, from->filled) ||
           (state->many_arcs && from->filled > (int64_t)WORDS_AND_GAPS * IO_LONGEST);
}

void io_fill_block(sp_context *context, io_source *source, const block *before, int64_t target,
                 const io_format_state *state, block *into)
{
    int64_t carried = before->filled - before->used;
    into->continues = before->goes_on;
    into->goes_on = into->cut_short = false;
    into->used = into->filled = 0;
    into->status = SP_OK;
    into->ended = before->ended;
    while (into->used == 0 && !into->ended) {
        if (target < 2 * carried) target = 2 * carried;
        into->status = widen(context, into, target);
        if (into->status != SP_OK) break;
        if (into->filled == 0 && carried) memcpy(into->bytes, before->bytes + before->used, (size_t)carried);
        char *fresh = into->bytes + carried;
        size_t got, wanted = (size_t)(into->capacity - carried);
        into->status = io_source_read(source, fresh, wanted, &got);
        into->ended = into->status != SP_OK || got < wanted;
        into->filled = carried + (int64_t)got;
        char *newline = system_find_last(fresh, '\n', got);
        into->used = newline ? newline + 1 - into->bytes : 0;
        if (!newline && state->many_arcs && !into->ended) into->used = find_cut(into);
        into->goes_on = !newline && into->used > 0;
        if (into->used == 0 && !into->ended) into->ended = into->cut_short = is_endless(into, state);
        carried = into->filled;
    }
    if (into->status == SP_OK && into->ended && into->used < into->filled) {
        into->bytes[into->filled] = '\n';
        into->used = into->filled;
        into->goes_on = false;
    }
}
