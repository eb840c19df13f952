/* Label triples (mcl --abc): LABEL LABEL [WEIGHT] a line.
 *
 * A line that holds a tab is split at tabs, so that labels may contain blanks; any other at blanks. A missing weight
 * is 1, further columns are ignored, lines that begin with # are comments.
 */
#include <string.h>

#include "bytes/message.h"
#include "graphs/formats.h"
#include "text/words.h"

/* A line with one field: that may be a table. Lenient reading skips the line. */
static bool refuse_field(io_slice *slice, const char *line, const char *end, bool tab)
{
    if (slice->state->options->lenient) {
        slice->odd = true;
        return true;
    }
    if (!tab && memchr(line, ',', (size_t)(end - line)))
        return io_slice_fail(slice, "commas between the fields, where tabs or blanks are expected", line, end,
                             io_advice(slice->state->options,
                                       io_slice_remedy(slice,
                                                       "give the file a name that ends in .csv (contract: --from csv)",
                                                       "give the file a name that ends in .csv, and no --abc"),
                                       "if it is a table of edges, pass format=\"csv\""));
    return io_slice_fail(slice,
                         tab ? "one field where two tab-separated labels are expected"
                             : "one field where two labels are expected, with a tab or blank between them",
                         line, end,
                         io_slice_remedy(slice, "write LABEL LABEL [WEIGHT]",
                                         "write LABEL LABEL [WEIGHT] (--lenient skips such lines)"));
}

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
    if (first == first_end || second == second_end) return refuse_field(slice, line, end, tab);

    const char *token = io_skip_blanks(second_end, end), *token_end = io_skip_word(token, end);
    double weight;
    bool keep;
    if (!io_slice_weight(slice, token, token_end, &weight, &keep)) return false;
    return io_slice_pair(slice, first, first_end, second, second_end, weight, keep);
}

/* LABEL LABEL [WEIGHT], not longer than IO_SCANNED, with one tab or one blank between them. */
const char *io_scan_abc(io_slice *slice, const char *line)
{
    const char *const end = slice->end;
    if (slice->state->options->transform) return line;
    while (line < end) {
        io_pair *pair = &slice->pairs[slice->pair_count];
        uint64_t blanks = io_find_blanks(line);
        const int first = blanks ? __builtin_ctzll(blanks) : 0;
        blanks &= blanks - 1;
        int last = blanks ? __builtin_ctzll(blanks) : 0;
        const char separator = line[first];
        double weight = 1;
        if (first == 0 || last <= first + 1 || *line == '#' || (separator != '\t' && separator != ' ')) return line;
        io_scan_label(line, first, &pair->tail);
        io_scan_label(line + first + 1, last - first - 1, &pair->head);
        if (line[last] != '\n') {
            const int begin = last + 1;
            blanks &= blanks - 1;
            if (line[last] != separator || !blanks) return line;
            last = __builtin_ctzll(blanks);
            if (line[last] != '\n' || !io_scan_weight(line + begin, last - begin, slice->scan_most, &weight))
                return line;
            weight = io_round(slice->values, weight);
        }
        slice->lines++;
        if (!io_slice_push(slice, weight, weight != 0)) return NULL;
        line += last + 1;
    }
    return line;
}
