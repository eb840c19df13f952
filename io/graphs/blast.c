/* BLAST and DIAMOND tables (-outfmt 6): 12 or more tab-separated columns
 *   query subject identity length mismatches gaps qstart qend sstart send evalue bitscore
 * The weight of a hit is its bit score, its -log10 E (0 to 200, as mcxdeblast caps it) or its identity. Comment lines
 * (-outfmt 7) are skipped; hits of a sequence to itself declare it.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "graphs/formats.h"
#include "text/words.h"

enum { COLUMNS = 12, IDENTITY = 2, EVALUE = 10, BITS = 11 };
static const double evalue_cap = 200.0;

/* E-values may be written as e-180. */
static bool parse_number(int column, const char *text, const char *end, double *number)
{
    return io_parse_decimal(text, end, number) == end ||
           (column == EVALUE && io_parse_bare_exponent(text, end, number));
}

bool io_begins_with_hit(const char *text, const char *end)
{
    double number;
    const char *line_end = memchr(text, '\n', (size_t)(end - text));
    for (const char *line = text, *last = line_end; line_end && !io_trim_line(&line, &last);) {
        line = text = line_end + 1;
        last = line_end = memchr(text, '\n', (size_t)(end - text));
    }
    for (int i = 0; line_end && i < COLUMNS; i++) {
        const char *tab = memchr(text, '\t', (size_t)(line_end - text)), *field_end = tab ? tab : line_end;
        if (!tab && i + 1 < COLUMNS) return false;
        while (text < field_end && *text == ' ') text++;
        while (field_end > text && (field_end[-1] == ' ' || field_end[-1] == '\r')) field_end--;
        if (text == field_end || (i >= IDENTITY && !parse_number(i, text, field_end, &number))) return false;
        if (tab) text = tab + 1;
    }
    return line_end != NULL;
}

/* The weight that the score column stands for. */
static bool read_score(io_slice *slice, const char *text, const char *end, double *weight, bool *keep)
{
    static const int columns[] = {[IO_BLAST_BITS] = BITS, [IO_BLAST_EVALUE] = EVALUE, [IO_BLAST_IDENTITY] = IDENTITY};
    static const char *const wrong[] = {[BITS] = "the bit score (column 12) is not a number, 0 or above",
                                        [EVALUE] = "the E-value (column 11) is not a number, 0 or above",
                                        [IDENTITY] = "the identity (column 3) is not a number, 0 or above"};
    io_blast_score score = slice->state->options->blast;
    double number;
    while (text < end && *text == ' ') text++; /* BLAST pads its bit scores */
    while (end > text && (end[-1] == ' ' || end[-1] == '\r')) end--;
    if (text == end || !parse_number(columns[score], text, end, &number) || !(number >= 0) || number > DBL_MAX)
        return io_slice_fail(slice, wrong[columns[score]], text, end,
                             "give a BLAST or DIAMOND table of -outfmt 6 with its 12 standard columns; a heading must "
                             "go, as with tail -n +2");
    if (score == IO_BLAST_EVALUE) {
        number = number > 0 ? -log10(number) : evalue_cap;
        if (number > evalue_cap) number = evalue_cap;
        if (number < 0) number = 0;
    }
    return io_slice_settle(slice, text, end, number, weight, keep);
}

bool io_line_blast(io_slice *slice, char *line, char *line_end)
{
    const char *begins[COLUMNS], *ends[COLUMNS], *end = line_end, *at = line;
    at = io_skip_blanks(at, end);
    if (at == end || *at == '#') return true;
    at = line;
    for (int i = 0; i < COLUMNS; i++) {
        const char *tab = at <= end ? memchr(at, '\t', (size_t)(end - at)) : NULL;
        begins[i] = at;
        ends[i] = tab ? tab : end;
        if (!tab && i + 1 < COLUMNS) {
            if (!slice->state->options->lenient)
                return io_slice_fail(slice, "fewer than 12 tab-separated columns", line, end,
                                     io_slice_remedy(slice, "give a BLAST or DIAMOND table of -outfmt 6",
                                                     "give a BLAST or DIAMOND table of -outfmt 6 (--lenient skips "
                                                     "such lines)"));
            slice->odd = true;
            return true;
        }
        at = ends[i] + 1;
    }
    for (int i = 0; i < 2; i++)
        if (begins[i] == ends[i])
            return io_slice_fail(slice, i ? "the subject is empty" : "the query is empty", line, end,
                                 "columns 1 and 2 name the sequences");
    static const int columns[] = {[IO_BLAST_BITS] = BITS, [IO_BLAST_EVALUE] = EVALUE, [IO_BLAST_IDENTITY] = IDENTITY};
    int column = columns[slice->state->options->blast];
    double weight;
    bool keep;
    if (!read_score(slice, begins[column], ends[column], &weight, &keep)) return false;
    return io_slice_pair(slice, begins[0], ends[0], begins[1], ends[1], weight, keep);
}
