/* SIF and ETC lines (mcl --sif, --etc): LABEL [RELATION] LABEL..., arcs from the first label to each of the others.
 *
 * Fields are separated by blanks or tabs; one that begins with # starts a comment. A label alone declares a node.
 * With expect_values a target may carry its weight as LABEL:VALUE, otherwise weights are 1.
 */
#include <string.h>

#include "graphs/formats.h"
#include "text/words.h"

/* The next field, up to *at; empty at the end of the line or before a comment. */
static const char *next_field(const char **at, const char *end)
{
    const char *field = io_skip_blanks(*at, end);
    *at = field < end && *field == '#' ? field : io_skip_word(field, end);
    return field;
}

/* A field LABEL:VALUE. Without a value its span is empty and `rest` is where the field ends. */
typedef struct target {
    const char *label, *label_end, *value, *value_end;
    const char *rest; /* what follows, on which the next field begins */
} target;

/* Splits field..field_end at its first colon. As mcl has it, a field with an empty label or without a number after
 * the colon is a label as it stands; lenient reading also takes blanks after the colon, and what follows the number
 * as the next label. */
static bool split_value(io_slice *slice, const char *field, const char *field_end, const char *line_end, target *into)
{
    const bool lenient = slice->state->options->lenient;
    const char *colon = memchr(field, ':', (size_t)(field_end - field));
    *into = (target){field, field_end, field_end, field_end, field_end};
    if (!colon) return true;
    const char *value = colon + 1;
    if (lenient) value = io_skip_blanks(value, line_end);
    double number;
    const char *stop =
        lenient ? io_parse_scanf(value, line_end, &number) : io_parse_decimal(value, line_end, &number);
    bool found = colon > field && stop > value;
    slice->odd = slice->odd || !found || stop != field_end;
    if (slice->odd && !lenient)
        return io_slice_fail(slice, "a target does not have the form LABEL:VALUE", field, field_end,
                             "write a decimal number after a label without colons");
    if (found) *into = (target){field, colon, value, stop, stop};
    return true;
}

/* *text ends at the line's end or where its comment begins. */
static bool read_targets(io_slice *slice, const char **text, const char *end, int32_t tail)
{
    const char *at = *text;
    const bool values = slice->state->options->expect_values;
    for (const char *field = next_field(&at, end); field < at; field = next_field(&at, end)) {
        target to = {field, at, at, at, at};
        if (values && !split_value(slice, field, at, end, &to)) return false;
        int32_t head;
        double weight;
        bool keep;
        if (!io_slice_weight(slice, to.value, to.value_end, &weight, &keep)) return false;
        if (!io_slice_label(slice, to.label, to.label_end, &head)) return false;
        if (keep && !io_slice_arc(slice, tail, head, weight)) return false;
        at = to.rest;
    }
    *text = at;
    return true;
}

/* Moves past the relation of a SIF line, which must have a target. mcl takes VALUE off it too, and a label after
 * that. */
static bool skip_relation(io_slice *slice, const char *label, const char **at, const char *end)
{
    const io_read_options *options = slice->state->options;
    const char *name = next_field(at, end), *name_end = *at, *rest = *at;
    if (name == name_end) return true;
    if (options->lenient && options->expect_values) {
        target to;
        bool split = split_value(slice, name, name_end, end, &to);
        *at = to.rest;
        return split;
    }
    if (next_field(&rest, end) < rest) return true;
    if (!options->lenient)
        return io_slice_fail(slice, "a relation without a target", label, name_end,
                             "write LABEL RELATION LABEL..., or LABEL alone for a node without arcs");
    slice->odd = true;
    return true;
}

/* What a line begins with; *comment if it is nothing else, or nothing at all. */
static bool begin_line(io_slice *slice, const char **at, const char *end, bool relation, io_open_line *line)
{
    const char *label = next_field(at, end);
    *line = (io_open_line){.comment = label == *at};
    if (line->comment) return true;
    if (!io_slice_label(slice, label, *at, &line->tail)) return false;
    return !relation || skip_relation(slice, label, at, end);
}

static bool read_line(io_slice *slice, const char *at, const char *end, bool relation)
{
    io_open_line line = slice->open;
    if (!io_line_continues(slice, at) && !begin_line(slice, &at, end, relation, &line)) return false;
    if (!line.comment && !read_targets(slice, &at, end, line.tail)) return false;
    line.comment = line.comment || at < end;
    if (slice->goes_on) slice->open = line;
    return true;
}

bool io_line_sif(io_slice *slice, char *line, char *end) { return read_line(slice, line, end, true); }

bool io_line_etc(io_slice *slice, char *line, char *end) { return read_line(slice, line, end, false); }
