/* Label triples (mcl --abc): LABEL LABEL [WEIGHT] a line.
 *
 * A line that holds a tab is split at tabs, so that labels may contain blanks; any other at blanks. A missing weight
 * is 1, further columns are ignored, lines that begin with # are comments.
 */
#include "internal.h"

bool io_line_abc(io_slice *slice, char *line, char *line_end)
{
    const bool lenient = slice->state->options->lenient;
    const char *end = line_end, *text = io_skip_blanks(line, end);
    if (text == end || *text == '#') return true;
    if (end[-1] == '\r' && !lenient) end--; /* mcl keeps the CR as a part of a tab-separated label */

    const char *first = text, *first_end, *second, *second_end, *tab = memchr(line, '\t', (size_t)(end - line));
    if (tab) {
        first = line;
        first_end = tab;
        second = io_skip_blanks(tab, end);
        second_end = second == end ? end : memchr(second, '\t', (size_t)(end - second));
        if (!second_end) second_end = end;
    } else {
        first_end = io_skip_word(text, end);
        second = io_skip_blanks(first_end, end);
        second_end = io_skip_word(second, end);
    }
    if (first == first_end || second == second_end) {
        if (!lenient)
            return io_slice_fail(slice,
                                 tab ? "one field where two tab-separated labels are expected"
                                     : "one field where two labels are expected",
                                 line, end, "write LABEL LABEL [WEIGHT] (--lenient skips such lines)");
        slice->odd = true;
        return true;
    }

    const char *token = io_skip_blanks(second_end, end), *token_end = io_skip_word(token, end);
    float weight;
    bool keep;
    if (!io_slice_weight(slice, token, token_end, &weight, &keep)) return false;
    return io_slice_pair(slice, first, first_end, second, second_end, weight, keep);
}
