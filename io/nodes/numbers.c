/* Names, and numbers that name nodes: a line or an element each. */
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "nodes/nodes.h"
#include "text/labels.h"
#include "text/number.h"
#include "text/words.h"

/* ---- names --------------------------------------------------------------------------------------------- */

static sp_status name_lines(sp_context *context, io_source *source, int64_t most, io_labels *labels)
{
    const char *line, *end;
    int64_t bytes = 0, lines = 0;
    int32_t id;
    sp_status status;
    for (;;) {
        const int32_t next = (int32_t)labels->list.names.count;
        TRY(io_source_line(source, &line, &end, &bytes));
        if (!line) break;
        lines++;
        if (!io_trim_line(&line, &end)) continue;
        const size_t length = (size_t)(end - line);
        if (length > IO_MOST_NAME || memchr(line, '\0', length))
            return io_fail_line(context, io_source_name(source), lines, "a name of more than 255 bytes or with a NUL",
                                line, end, "write a name a line");
        TRY(io_labels_add(context, labels, line, length, io_label_hash(line, length), &id));
        if (id < next)
            return io_fail_line(context, io_source_name(source), lines, "a name that is there twice", line, end,
                                "names differ");
        if (next == most)
            return io_fail_line(context, io_source_name(source), lines, "more names than can be", line, end,
                                most == IO_MOST_CLASSES
                                ? "there are at most 65536 classes" : "is this the right file?");
    }
done:
    return status;
}

sp_status io_read_names(sp_context *context, const char *path, const volatile int *interrupt, int64_t most,
                        io_names *names)
{
    io_source *source;
    memset(names, 0, sizeof *names);
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    io_labels labels = {.file = io_source_name(source)};
    status = name_lines(context, source, most, &labels);
    if (status == SP_OK) {
        *names = labels.list.names;
        memset(&labels.list.names, 0, sizeof labels.list.names);
    }
    io_labels_free(context, &labels);
    io_source_close(source);
    return status;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

typedef struct range {
    int64_t low, high;
    const char *const *words;
    char remedy[160];
} range;

static bool read_whole(const char *word, const char *end, int64_t low, int64_t high, int64_t *number)
{
    const bool negative = word < end && *word == '-';
    if (!io_parse_index(word + negative, end, INT32_MAX, number)) return false;
    if (negative) *number = -*number;
    return *number >= low && *number <= high;
}

static bool read_word(const range *r, const char *line, const char *end, int64_t *number)
{
    for (int64_t k = 0; r->words && r->words[k]; k++)
        if (strlen(r->words[k]) == (size_t)(end - line) && memcmp(r->words[k], line, (size_t)(end - line)) == 0) {
            *number = r->low + k;
            return true;
        }
    return read_whole(line, end, r->low, r->high, number);
}

static sp_status number_lines(sp_context *context, io_source *source, const range *r, int32_t **numbers,
                              int64_t *count)
{
    const char *line, *end;
    int64_t bytes = 0, lines = 0, capacity = 0, number;
    sp_status status = io_reserve(context, 0, 1, sizeof **numbers, &capacity, (void **)numbers);
    while (status == SP_OK) {
        status = io_source_line(source, &line, &end, &bytes);
        if (status != SP_OK || !line) break;
        lines++;
        if (!io_trim_line(&line, &end)) continue;
        if (!read_word(r, line, end, &number))
            return io_fail_line(context, io_source_name(source), lines,
                                r->words ? "no such word or number" : "a number that is out of range", line, end,
                                r->remedy);
        status = io_reserve(context, *count, *count + 1, sizeof **numbers, &capacity, (void **)numbers);
        if (status == SP_OK) (*numbers)[(*count)++] = (int32_t)number;
    }
    return status;
}

static sp_status number_array(sp_context *context, const char *path, const volatile int *interrupt, const range *r,
                              int32_t **numbers, int64_t *count)
{
    io_array array;
    sp_status status = io_read_npy(context, path, interrupt, &array);
    if (status != SP_OK) return status;
    if (array.dimensions != 1)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %d dimensions; save one", path, array.dimensions));
    if (array.type == IO_BOOL)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: bools, not numbers; of a mask save numpy.flatnonzero", path));
    TRY(io_array_to_i32(context, path, &array));
    const int32_t *values = array.values;
    for (int64_t i = 0; i < array.count; i++)
        if (values[i] < r->low || values[i] > r->high)
            TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: element %lld (from 0) is out of range (got \"%d\"); %s",
                        path, (long long)i, (int)values[i], r->remedy));
    *numbers = array.values;
    *count = array.count;
    array.values = NULL;
done:
    io_array_free(context, &array);
    return status;
}

static void write_remedy(range *r)
{
    size_t used = 0;
    for (int64_t k = 0; r->words && r->words[k] && used < sizeof r->remedy; k++)
        used += (size_t)snprintf(r->remedy + used, sizeof r->remedy - used, k > 0 ? ", %s" : "write %s", r->words[k]);
    if (used < sizeof r->remedy)
        snprintf(r->remedy + used, sizeof r->remedy - used, "%s whole numbers from %lld to %lld",
                 used > 0 ? ", or" : "write", (long long)r->low, (long long)r->high);
}

sp_status io_read_numbers(sp_context *context, const char *path, const volatile int *interrupt, int64_t low,
                          int64_t high, const char *const *words, int32_t **numbers, int64_t *count)
{
    range r = {.low = low, .high = high, .words = words};
    io_content content;
    io_source *source;
    *numbers = NULL;
    *count = 0;
    write_remedy(&r);
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    TRY(io_detect_content(source, &content));
    status = content == IO_CONTENT_NPY ? number_array(context, path, interrupt, &r, numbers, count)
                                       : number_lines(context, source, &r, numbers, count);
done:
    io_source_close(source);
    if (status != SP_OK) {
        sp_free(context, *numbers);
        *numbers = NULL;
        *count = 0;
    }
    return status;
}
