/* Input that may not be text: a device of zeros, a compressed file of blanks, a line without an end. It is refused
 * before it takes memory: at a NUL byte, and at a word or a gap between words of more than IO_LONGEST bytes.
 */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "text/check.h"
#include "text/words.h"

enum { PORTION = 1 << 20 };

static bool separates(char c) { return io_is_blank(c) || c == '\n' || c == ',' || c == ';'; }

/* One byte in IO_LONGEST is examined: a run of more than IO_LONGEST bytes contains at least one of them. */
const char *io_find_long_run(const char *bytes, int64_t count)
{
    for (int64_t at = IO_LONGEST; at < count; at += IO_LONGEST) {
        const bool kind = separates(bytes[at]);
        int64_t begin = at, end = at + 1;
        while (begin > 0 && at - begin < IO_LONGEST && separates(bytes[begin - 1]) == kind) begin--;
        while (end < count && end - begin <= IO_LONGEST && separates(bytes[end]) == kind) end++;
        if (end - begin > IO_LONGEST) return bytes + begin;
    }
    return NULL;
}

sp_status io_check_text(sp_context *context, const char *name, const char *bytes, int64_t count, int64_t checked,
                        int64_t lines)
{
    const int64_t from = checked > IO_LONGEST ? checked - IO_LONGEST : 0;
    const char *nul = memchr(bytes + checked, '\0', (size_t)(count - checked));
    const char *run = io_find_long_run(bytes + from, (nul ? nul - bytes : count) - from), *wrong = run ? run : nul;
    if (!wrong) return SP_OK;
    for (const char *at = bytes; at < wrong; at++) lines += *at == '\n';
    return run ? io_fail_line(context, name, lines + 1, IO_LONG_RUN, run, bytes + count, IO_NO_TEXT)
               : io_fail_line(context, name, lines + 1, "the line holds a NUL byte", nul, nul + 1, IO_NO_TEXT);
}

sp_status io_read_text(sp_context *context, io_source *source, char **bytes, int64_t *size)
{
    int64_t capacity = 0;
    size_t portion = 0, got = 0;
    sp_status status = SP_OK;
    *bytes = NULL;
    for (*size = 0; got == portion; *size += (int64_t)got) {
        portion = io_next_portion(source, portion, PORTION);
        TRY(io_reserve(context, *size, *size + (int64_t)portion + 1, 1, &capacity, (void **)bytes));
        TRY(io_source_read(source, *bytes + *size, portion, &got));
        TRY(io_check_text(context, io_source_name(source), *bytes, *size + (int64_t)got, *size, 0));
    }
    (*bytes)[*size] = '\n';
    return SP_OK;
done:
    sp_free(context, *bytes);
    *bytes = NULL;
    return status;
}
