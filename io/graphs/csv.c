/* Tables of edges, as spreadsheets and data frames write them: a row a line, its fields separated by tabs, commas,
 * semicolons or blanks, mostly below a heading.
 *
 * A heading that names the columns of source and target says where they are, also behind a # as in the tables of
 * STRING's site; without such names they are the first two. Fields may be quoted as in RFC 4180, but end on their line.
 * Further columns are ignored.
 */
#include <string.h>

#include "base/try.h"
#include "graphs/csv.h"
#include "graphs/formats.h"
#include "text/field.h"
#include "text/table.h"
#include "text/words.h"

enum { PEEKED = 1 << 16, NO_COLUMN = -1 };

/* ---- the heading ---------------------------------------------------------------------------------------- */

static bool is_one_of(const io_field *f, const char *const *names)
{
    return io_word_among(f->text, f->end, names) >= 0;
}

static bool is_number(const io_field *f)
{
    double number;
    return f->text < f->end && io_parse_decimal(f->text, f->end, &number) == f->end;
}

/* Whether it can be the name of a column of weights: not a number, nor what begins like one or stands for none. */
static bool is_heading(const io_field *f)
{
    static const char *const missing[] = {"na", "n/a", "nan", "null", "none", "inf", "-inf", NULL};
    double number;
    return f->text < f->end && io_parse_decimal(f->text, f->end, &number) == f->text && !is_one_of(f, missing);
}

/* The first line at *at that is neither empty nor a comment; false if it does not end in the text. */
static bool next_line(const char **at, const char *end, const char **line, const char **line_end, int64_t *lines)
{
    while (*at < end) {
        const char *stop = memchr(*at, '\n', (size_t)(end - *at));
        if (!stop && end - *at >= PEEKED / 2) return false; /* goes on where we do not see it */
        *line = *at;
        *line_end = stop ? stop : end;
        *at = stop ? stop + 1 : end;
        ++*lines;
        if (io_trim_line(line, line_end)) return true;
    }
    return false;
}

/* The column of weights that a line names, of several the one whose name comes first here. */
static int find_weight(const char *line, const char *end, char separator)
{
    static const char *const weights[] = {"weight", "value", "score", "combined_score", NULL};
    int found = NO_COLUMN, best = sizeof weights / sizeof *weights;
    io_field f;
    for (int i = 0; line && !io_take_field(&line, end, separator, &f); i++) {
        const int place = io_word_among(f.text, f.end, weights);
        if (place < 0 || place >= best) continue;
        best = place;
        found = i;
    }
    return found;
}

static bool same_field(const io_field *a, const io_field *b)
{
    const size_t length = (size_t)(a->end - a->text);
    return length > 0 && length == (size_t)(b->end - b->text) && memcmp(a->text, b->text, length) == 0;
}

/* The columns that a line names; whether it names source and target. */
static bool find_names(const char *line, const char *end, io_csv *csv)
{
    static const char *const sources[] = {"source", "from", "src", "node1", NULL};
    static const char *const targets[] = {"target", "to", "dst", "node2", NULL};
    int source = NO_COLUMN, target = NO_COLUMN, weight = find_weight(line, end, csv->separator), count = 0;
    bool numbers = false, counted = false;
    io_field f;
    for (const char *at = line; at; count++) {
        if (io_take_field(&at, end, csv->separator, &f)) return false;
        if (source < 0 && is_one_of(&f, sources)) source = count;
        else if (target < 0 && is_one_of(&f, targets)) target = count;
        else counted = counted || io_counts_rows(f.text, f.end);
        numbers = numbers || is_number(&f);
    }
    if (source < 0 || target < 0 || numbers) return false;
    if (weight < 0 && count == 3 && !counted) weight = 3 - source - target;
    csv->source = source;
    csv->target = target;
    csv->weight = weight;
    csv->certain = count > 2; /* two words may be an edge */
    return true;
}

/* Whether the first line, which does not name source and target, is a heading of the second. */
static bool heads(const char *line, const char *end, const char *next, const char *next_end, char separator)
{
    io_field a[3] = {{0}}, b[3] = {{0}};
    int fields = 0;
    for (int i = 0; i < 3 && line && next; i++, fields++)
        if (io_take_field(&line, end, separator, &a[i]) || io_take_field(&next, next_end, separator, &b[i]))
            return false;
    /* A decimal comma is refused where it stands, not the heading above it. */
    if (fields == 3) return is_heading(&a[2]) && (is_number(&b[2]) || io_has_decimal_comma(b[2].text, b[2].end));
    return fields == 2 && is_heading(&a[0]) && is_heading(&a[1]) && is_number(&b[0]) && is_number(&b[1]);
}

static int count_fields(const char *line, const char *end, char separator)
{
    io_field f;
    int count = 0;
    while (line && !io_take_field(&line, end, separator, &f)) count++;
    return count;
}

/* The first line without its #; false if it does not begin with one, or does not end in the text. */
static bool take_marked(const char **at, const char *end, const char **line, const char **line_end)
{
    const char *stop = *at < end && **at == '#' ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (!stop) return false;
    *line = *at + 1;
    *line_end = stop[-1] == '\r' ? stop - 1 : stop;
    *at = stop + 1;
    return true;
}

/* A heading behind a # in the first line. Other comments may consist of such words, so it has more columns than label
 * pairs, and the next line has as many; both have tabs. */
static bool find_marked(const char **at, const char *end, io_csv *csv)
{
    enum { PAIR_COLUMNS = 3 };
    const char *line, *line_end, *next, *next_end, *rest = *at;
    io_csv found = {.separator = '\t'};
    int64_t lines = 0;
    if (!take_marked(&rest, end, &line, &line_end)) return false;
    const char *behind = rest;
    const int fields = count_fields(line, line_end, '\t');
    if (fields <= PAIR_COLUMNS || !find_names(line, line_end, &found) || found.weight < 0 ||
        !next_line(&rest, end, &next, &next_end, &lines) || count_fields(next, next_end, '\t') != fields)
        return false;
    *csv = found;
    *at = behind;
    return true;
}

void io_csv_find(const char *bytes, size_t count, io_csv *csv)
{
    const char *at = bytes, *end = bytes + count, *line, *line_end, *next, *next_end;
    int64_t lines = 0, more = 0;
    *csv = (io_csv){.separator = ' ', .target = 1, .weight = 2};
    if (find_marked(&at, end, csv)) {
        csv->heading_bytes = at - bytes;
        csv->heading_lines = 1;
        csv->marked = true;
        return;
    }
    if (!next_line(&at, end, &line, &line_end, &lines)) return;
    const char *first = memchr(bytes, '\n', count), named = io_named_separator(bytes, first ? first : end);
    csv->separator = named ? named : io_find_separator(line, line_end);
    const char *rest = at;
    const bool says = find_names(line, line_end, csv);
    csv->named = named != '\0';
    if (!says) {
        if (!next_line(&rest, end, &next, &next_end, &more) ||
            !heads(line, line_end, next, next_end, csv->separator))
            return;
        const int weight = find_weight(line, line_end, csv->separator);
        if (weight > csv->target) csv->weight = weight;
    }
    csv->heading_bytes = at - bytes;
    csv->heading_lines = lines;
}

/* A matrix that data frames write: names of nodes as the heading, and before each row the same names. Its heading has
 * the first row's name in the second field or, where a name of the first column is missing, in the first one. A heading
 * that names source and target is one of edges, although a node may be called source. */
static bool is_named_matrix(const char *bytes, size_t count, char separator)
{
    io_csv columns = {.separator = separator};
    const char *at = bytes, *end = bytes + count, *line, *line_end, *next, *next_end;
    int64_t lines = 0;
    io_field head, second = {0}, name, number;
    if (!next_line(&at, end, &line, &line_end, &lines) || !next_line(&at, end, &next, &next_end, &lines)) return false;
    const char *rest = line;
    if (find_names(line, line_end, &columns)) return false;
    if (io_take_field(&line, line_end, separator, &head) || !line ||
        io_take_field(&line, line_end, separator, &second) || io_take_field(&next, next_end, separator, &name))
        return false;
    const io_field *same = same_field(&second, &name) ? &second : same_field(&head, &name) ? &head : NULL;
    if (!same || is_number(&name)) return false;
    for (line = rest; line;) /* no field of the heading is a number */
        if (io_take_field(&line, line_end, separator, &head) || is_number(&head)) return false;
    int numbers = 0;
    for (; next; numbers++)
        if (io_take_field(&next, next_end, separator, &number) || !is_number(&number)) return false;
    return numbers > 1;
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

static bool refuse(io_slice *slice, const char *what, const char *text, const char *end, const char *remedy)
{
    if (!slice->state->options->lenient) return io_slice_fail(slice, what, text, end, remedy);
    slice->odd = true;
    return true;
}

/* What would be a comment, or two fields, where labels are written line by line. */
static bool is_unfit(const io_field *f)
{
    return *f->text == '#' || memchr(f->text, '\t', (size_t)(f->end - f->text));
}

bool io_line_csv(io_slice *slice, char *line, char *line_end)
{
    const io_csv *csv = slice->state->csv;
    const char *at = line, *end = line_end, *wrong;
    io_field f, source = {0}, target = {0}, weighs = {0};
    double weight = 1;
    bool keep = true;
    if (!io_trim_line(&at, &end)) return true;
    if (csv->separator == '\t') at = line; /* the first field may be empty */
    for (int i = 0; at; i++) {
        if ((wrong = io_take_field(&at, end, csv->separator, &f)))
            return refuse(slice, wrong, f.text, end, "close it, and write a quote within a quoted field twice");
        if (i == csv->source) source = f;
        if (i == csv->target) target = f;
        if (i == csv->weight) weighs = f;
    }
    io_undouble(line, &source);
    io_undouble(line, &target);
    if (source.text == source.end || target.text == target.end)
        return refuse(slice, "a row without a source or without a target", line, line_end,
                      csv->separator == ' '
                          ? "separate the fields by commas, semicolons, tabs or blanks"
                          : "fill both fields, and use the same separator as in the first line");
    if (is_unfit(&source) || is_unfit(&target))
        return refuse(slice, "a label that begins with # or holds a tab", line, line_end,
                      "rename it: lists of labels cannot hold it");
    if (!io_slice_weight(slice, weighs.text, weighs.end, &weight, &keep)) return false;
    return io_slice_pair(slice, source.text, source.end, target.text, target.end, weight, keep);
}

/* The heading, and what is behind it. */
static const char *find_heading(const char *bytes, const io_csv *csv, const char **line, const char **line_end)
{
    const char *at = bytes, *end = bytes + csv->heading_bytes;
    int64_t lines = 0;
    *line = *line_end = NULL;
    if (!csv->marked || !take_marked(&at, end, line, line_end)) next_line(&at, end, line, line_end, &lines);
    return end;
}

/* Lists columns of numbers, as far as the first row tells, of a table without one of weights. */
static sp_status list_unused(sp_context *context, const char *bytes, size_t count, const io_csv *csv, io_names *unused)
{
    const char *line, *line_end, *row, *row_end, *at = find_heading(bytes, csv, &line, &line_end);
    io_name_list list = {0};
    int64_t lines = 0;
    io_field name, value;
    sp_status status = SP_OK;
    if (csv->weight >= 0 || !next_line(&at, bytes + count, &row, &row_end, &lines)) return SP_OK;
    for (int i = 0; line && row; i++) {
        if (io_take_field(&line, line_end, csv->separator, &name) ||
            io_take_field(&row, row_end, csv->separator, &value)) break;
        if (i != csv->source && i != csv->target && is_number(&value) && !io_counts_rows(name.text, name.end))
            TRY(io_names_append(context, &list, name.text, (size_t)(name.end - name.text)));
    }
    *unused = list.names;
    memset(&list.names, 0, sizeof list.names);
done:
    io_names_free(context, &list.names);
    return status;
}

/* The column of weights that the options name, in the heading. */
static sp_status find_wanted(sp_context *context, const char *name, const char *bytes, const char *wanted, io_csv *csv)
{
    const char *line, *line_end;
    char there[IO_LISTED];
    io_name_list list = {0};
    io_field f;
    sp_status status = SP_OK;
    csv->weight = -1;
    if (csv->heading_lines == 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: no column \"%.40s\", as there is no heading", name, wanted);
    find_heading(bytes, csv, &line, &line_end);
    for (int i = 0; line && csv->weight < 0 && !io_take_field(&line, line_end, csv->separator, &f); i++) {
        const size_t length = (size_t)(f.end - f.text);
        if (length == strlen(wanted) && memcmp(f.text, wanted, length) == 0) csv->weight = i;
        TRY(io_names_append(context, &list, f.text, length));
    }
    if (csv->weight < 0)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: no column \"%.40s\"; there are: %s", name, wanted,
                         io_names_list(&list.names, there));
done:
    io_names_free(context, &list.names);
    return status;
}

sp_status io_read_csv(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                      io_graph *graph)
{
    io_csv csv;
    const io_format_state state = {.options = options, .csv = &csv};
    const char *bytes;
    size_t count = PEEKED;
    sp_status status = io_source_peek(source, &bytes, &count);
    if (status != SP_OK && count == 0) return status; /* otherwise reading reports the error at its place */
    io_csv_find(bytes, count, &csv);
    if (!options->lenient && is_named_matrix(bytes, count, csv.separator))
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%s: a matrix with names of nodes above and beside it; write a line for each "
                       "pair, NODE NODE WEIGHT", io_source_name(source));
    if (options->score_column) TRY(find_wanted(context, io_source_name(source), bytes, options->score_column, &csv));
    else TRY(list_unused(context, bytes, count, &csv, &graph->unused));
    const io_table heading = {.heading_bytes = csv.heading_bytes, .heading_lines = csv.heading_lines};
    TRY(io_skip_heading(source, &heading));
    graph->bytes = csv.heading_bytes;
    status = io_read_lines(context, source, &state, io_line_csv, reader_block, csv.heading_lines, NULL, graph);
done:
    return status;
}
