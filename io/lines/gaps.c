/* The places of comments and empty lines. They turn the number of a node or an entry into the number of its line, and
 * take 4 bytes a gap.
 */
#include <string.h>

#include "bytes/memory.h"
#include "lines/gaps.h"

static sp_status push(sp_context *context, io_gaps *gaps, int64_t after, int64_t lines)
{
    const sp_status status = io_reserve(context, gaps->count, gaps->count + 1, sizeof *gaps->all, &gaps->capacity,
                                        (void **)&gaps->all);
    if (status == SP_OK) gaps->all[gaps->count++] = (io_gap){(uint16_t)after, (uint16_t)lines};
    return status;
}

sp_status io_gaps_add(sp_context *context, io_gaps *gaps, int64_t thing, int64_t lines)
{
    io_gap *last = gaps->count > 0 ? &gaps->all[gaps->count - 1] : NULL;
    sp_status status = SP_OK;
    if (last && gaps->last == thing && lines <= UINT16_MAX - last->lines) {
        last->lines = (uint16_t)(last->lines + lines);
        return SP_OK;
    }
    for (; status == SP_OK && thing - gaps->last > UINT16_MAX; gaps->last += UINT16_MAX)
        status = push(context, gaps, UINT16_MAX, 0);
    if (status == SP_OK) status = push(context, gaps, thing - gaps->last, lines);
    if (status == SP_OK) gaps->last = thing;
    return status;
}

sp_status io_gaps_join(sp_context *context, io_gaps *all, const io_gaps *part, int64_t first)
{
    sp_status status = SP_OK;
    for (int64_t i = 0; status == SP_OK && i < part->count; i++) {
        first += part->all[i].after;
        status = io_gaps_add(context, all, first, part->all[i].lines);
    }
    return status;
}

int64_t io_gaps_before(const io_gaps *gaps, int64_t thing)
{
    int64_t lines = 0, at = 0;
    for (int64_t i = 0; i < gaps->count && (at += gaps->all[i].after) <= thing; i++) lines += gaps->all[i].lines;
    return lines;
}

void io_gaps_clear(io_gaps *gaps) { gaps->count = gaps->last = 0; }

void io_gaps_free(sp_context *context, io_gaps *gaps)
{
    sp_free(context, gaps->all);
    memset(gaps, 0, sizeof *gaps);
}
