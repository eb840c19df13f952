/* SIF and ETC lines (mcl --sif, --etc): LABEL [RELATION] LABEL..., arcs from the first label to each of the others.
 *
 * Fields are separated by blanks or tabs. A label alone declares a node. With expect_values a target may carry its
 * weight as LABEL:VALUE, otherwise weights are 1.
 */
#include "internal.h"

static const char *next_field(const char **at, const char *end)
{
    while (*at < end && io_is_blank(**at)) ++*at;
    const char *field = *at;
    while (*at < end && !io_is_blank(**at)) ++*at;
    return field;
}

/* Splits "LABEL:VALUE" at its first colon: *label_end is the colon, *value_end where the value stops. As mcl has
 * it, a field with an empty label or without a number after the colon is a label as it stands (*label_end ==
 * *value_end). */
static bool split_value(io_slice *slice, const char *field, const char *end, const char **label_end,
                        const char **value_end)
{
    const bool lenient = slice->state->options->lenient;
    const char *colon = memchr(field, ':', (size_t)(end - field));
    *label_end = *value_end = end;
    if (!colon) return true;
    double number;
    const char *stop = lenient ? io_parse_scanf(colon + 1, end, &number) : io_parse_decimal(colon + 1, end, &number);
    if (colon > field && stop == end && stop > colon + 1) {
        *label_end = colon;
        return true;
    }
    if (!lenient)
        return io_slice_fail(slice, "a target does not have the form LABEL:VALUE", field, end,
                             "write a decimal number after a label without colons");
    slice->odd = true;
    if (colon == field || stop == colon + 1) return true;
    *label_end = colon;
    *value_end = stop; /* what follows the number is the next label */
    return true;
}

static bool read_targets(io_slice *slice, const char *at, const char *end, int32_t tail)
{
    const bool values = slice->state->options->expect_values;
    for (const char *field = next_field(&at, end); field < at; field = next_field(&at, end)) {
        const char *label_end = at, *value_end = at;
        if (values && !split_value(slice, field, at, &label_end, &value_end)) return false;
        const char *token = label_end < value_end ? label_end + 1 : value_end;
        int32_t head;
        float weight;
        bool keep;
        if (!io_slice_weight(slice, token, value_end, &weight, &keep)) return false;
        if (!io_slice_label(slice, field, label_end, &head)) return false;
        if (keep && !io_slice_arc(slice, tail, head, weight)) return false;
        at = value_end;
    }
    return true;
}

static bool read_line(io_slice *slice, const char *at, const char *end, bool relation)
{
    const char *label = next_field(&at, end);
    if (label == at || *label == '#') return true;
    int32_t tail;
    if (!io_slice_label(slice, label, at, &tail)) return false;
    if (relation) {
        const char *name = next_field(&at, end), *name_end = at, *rest = at;
        if (name < name_end && next_field(&rest, end) == end) {
            if (!slice->state->options->lenient)
                return io_slice_fail(slice, "a relation without a target", label, end,
                                     "write LABEL RELATION LABEL..., or LABEL alone for a node without arcs");
            slice->odd = true;
        }
    }
    return read_targets(slice, at, end, tail);
}

bool io_line_sif(io_slice *slice, char *line, char *end) { return read_line(slice, line, end, true); }

bool io_line_etc(io_slice *slice, char *line, char *end) { return read_line(slice, line, end, false); }
