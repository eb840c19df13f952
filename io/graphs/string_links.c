/* STRING protein.links files: a header "protein1 protein2 ... combined_score", then a pair a line.
 *
 * The weight is the column that the options name, else combined_score, else the last one; pairs below the minimum
 * score, as the file has it, are left out, and with them proteins that have no other pair. Every pair occurs in both
 * directions.
 */
#include <string.h>

#include "base/try.h"
#include "graphs/formats.h"
#include "text/words.h"

enum { PROTEINS = 2 };

static bool read_pair(io_slice *slice, char *line, char *end)
{
    const io_read_options *options = slice->state->options;
    const char *at = line, *names[PROTEINS], *name_ends[PROTEINS], *word = line, *word_end = line;
    for (int i = 0; i <= slice->state->score_column; i++) {
        word = io_next_word(&at, end);
        word_end = at;
        if (i < PROTEINS) {
            names[i] = word;
            name_ends[i] = word_end;
        }
        if (word < word_end) continue;
        if (i == 0) return true; /* an empty line */
        if (!options->lenient)
            return io_slice_fail(slice, "fewer columns than the header has", line, end,
                                 io_slice_remedy(slice, "the file is cut or no STRING links file",
                                                 "the file is cut or no STRING links file (--lenient skips such "
                                                 "lines)"));
        slice->odd = true;
        return true;
    }
    double score, weight;
    bool keep;
    if (!io_slice_number(slice, word, word_end, &score)) return false;
    if (options->minimum_score > 0 && score < options->minimum_score) return true;
    if (!io_slice_settle(slice, word, word_end, score, &weight, &keep)) return false;
    return io_slice_pair(slice, names[0], name_ends[0], names[1], name_ends[1], weight, keep);
}

/* Finds the score column in the header. */
static sp_status read_header(sp_context *context, const char *name, const char *line, const char *end,
                             const char *wanted, int *column)
{
    const char *at = line, *word = line;
    const char *score = wanted ? wanted : "combined_score";
    int last = -1, found = -1;
    for (int i = 0; (word = io_next_word(&at, end)) < at; i++) {
        size_t length = (size_t)(at - word);
        if (i < PROTEINS && (length != 8 || memcmp(word, i ? "protein2" : "protein1", length) != 0)) break;
        if (length == strlen(score) && memcmp(word, score, length) == 0) found = i;
        last = i;
    }
    if (last < PROTEINS)
        return io_fail_line(context, name, 1, "no header of a STRING links file", line, end,
                            "the first line is protein1 protein2 ... combined_score");
    if (wanted && found < PROTEINS)
        return io_fail_line(context, name, 1, "the header does not have the score column that was asked for", line,
                            end, "name one of its columns");
    *column = found >= PROTEINS ? found : last;
    return SP_OK;
}

sp_status io_read_string(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                         io_graph *graph)
{
    io_format_state state = {.options = options};
    const char *line, *end;
    int64_t bytes = 0;
    sp_status status;
    TRY(io_source_line(source, &line, &end, &bytes));
    if (!line) line = end = "";
    TRY(read_header(context, io_source_name(source), line, end, options->score_column, &state.score_column));
    graph->bytes = bytes;
    status = io_read_lines(context, source, &state, read_pair, reader_block, 1, NULL, graph);
done:
    return status;
}
