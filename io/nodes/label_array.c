/* Labels of nodes as an array of NumPy: a label an element, in the order of the nodes, by the rules of lists. */
#include <math.h>

#include "arrays/npy.h"
#include "base/try.h"
#include "bytes/message.h"
#include "nodes/labelling.h"
#include "text/number.h"
#include "text/words.h"

/* A label as text: a word of an array of these, or a number, NaN as nan. False for a number with a fraction. */
static bool show_label(const io_array *array, int64_t i, char buffer[IO_NUMBER], const char **text, size_t *length)
{
    *text = buffer;
    if (array->type == IO_TEXT) {
        *text = (const char *)array->values + (size_t)i * array->item_size;
        *length = strnlen(*text, array->item_size);
    } else if (array->type == IO_I64) {
        *length = io_format_int(buffer, ((const int64_t *)array->values)[i]);
    } else {
        const double value = ((const double *)array->values)[i];
        if (isnan(value)) *text = "nan";
        *length = isnan(value) ? 3 : isinf(value) ? 0 : io_format_f64(buffer, value);
        return !isfinite(value) || value == trunc(value);
    }
    return true;
}

static sp_status take_label(labeller *l, const io_array *array, int64_t i, int32_t *group)
{
    char buffer[IO_NUMBER];
    const char *text;
    size_t length;
    const int64_t number = array->type == IO_I64 ? ((const int64_t *)array->values)[i] : -1;
    if (number > 0 && number < INT32_MAX) { /* fast path, and most labels */
        l->decided = true;
        return io_take_number(l, number, NULL, NULL, group);
    }
    const bool whole = show_label(array, i, buffer, &text, &length);
    if (whole && length > 0 && !memchr(text, '\n', length) && !memchr(text, '\t', length))
        return io_find_group(l, text, text + length, group);
    return io_fail_line(l->context, l->name, l->line,
                        !whole        ? "the label is not a whole number"
                        : length == 0 ? "an empty label"
                                      : "a label that holds a tab or a line feed",
                        text, text + length, "labels are whole numbers, or names, and -1 where a node has none");
}

static sp_status convert(labeller *l, io_array *array)
{
    if (array->dimensions != 1)
        return sp_fail(l->context, SP_ERROR_ARGUMENT, "%s: %d dimensions; save one, a label a node", l->name,
                       array->dimensions);
    if (array->type == IO_BOOL)
        return sp_fail(l->context, SP_ERROR_ARGUMENT, "%s: bools, not labels; save astype(int) of them", l->name);
    if (array->type == IO_TEXT) return SP_OK;
    return array->type < IO_F16 ? io_array_to_i64(l->context, l->name, array)
                                : io_array_to_f64(l->context, l->name, array);
}

sp_status io_read_label_array(labeller *l, io_source *source, io_labelling *labelling)
{
    io_file file;
    io_array array = {0};
    sp_status status = io_file_of_source(l->context, source, l->options->interrupt, &file);
    if (status != SP_OK) return status;
    if (l->format != IO_LABELS_AUTO && l->format != IO_LABELS_LIST)
        TRY(sp_fail(l->context, SP_ERROR_ARGUMENT, "%s: an array, which is a list: leave --labels out", l->name));
    l->format = IO_LABELS_LIST;
    TRY(io_read_npy_file(&file, &array));
    TRY(convert(l, &array));
    l->list_lines = array.count;
    if (!io_have_order(l->graph) && l->graph->nodes > 0) TRY(io_order_list(l));
    else if (array.count != l->graph->nodes)
        TRY(sp_fail(l->context, SP_ERROR_ARGUMENT, "%s: %lld labels, but the graph has %lld nodes; save one for each, "
                    "in the order of the nodes", l->name, (long long)array.count, (long long)l->graph->nodes));
    for (int64_t i = 0; i < array.count; i++) {
        const int64_t node = l->node_of_line ? l->node_of_line[i] : i;
        int32_t group;
        l->line = i + 1;
        TRY(take_label(l, &array, i, &group));
        if (node >= 0 && group >= 0) TRY(io_add_member(l, node, group, 1));
    }
    labelling->lines = array.count;
    labelling->bytes = file.size;
done:
    io_array_free(l->context, &array);
    io_file_close(&file);
    return status;
}
