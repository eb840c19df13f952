/* Names of nodes, where tables have a column of them: which column that is, and what it holds; and lists of names. */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "nodes/labelling.h"
#include "nodes/nodes.h"
#include "text/field.h"
#include "text/number.h"
#include "text/table.h"

static const char *const id_words[] = {"id", "node", "name", "vertex", "node_id", "nodeid", "node id", NULL};

bool io_is_id_heading(const char *text, const char *end) { return io_word_among(text, end, id_words) >= 0; }

/* ---- the column of a table of numbers ------------------------------------------------------------------- */

/* What a line shows of a table. */
typedef struct line_facts {
    int64_t fields, words; /* words: fields that are neither numbers nor empty */
    int64_t named;         /* the first field whose text heads a column of names; -1: none */
    bool first_empty, first_word;
} line_facts;

static bool is_number(const io_field *f)
{
    double number;
    return f->text < f->end &&
           (io_parse_scanf(f->text, f->end, &number) == f->end || io_is_comma_number(f->text, f->end));
}

static bool is_word(const io_field *f)
{
    static const char *const missing[] = {"na", "n/a", "null", "none", NULL};
    return f->text < f->end && !is_number(f) && io_word_among(f->text, f->end, missing) < 0;
}

static line_facts look_at(const char *line, const char *end, char separator)
{
    line_facts facts = {.named = -1};
    const char *at = line;
    io_field f;
    for (; at && !io_take_field(&at, end, separator, &f); facts.fields++) {
        const bool word = is_word(&f);
        if (facts.named < 0 && io_is_id_heading(f.text, f.end)) facts.named = facts.fields;
        if (facts.fields == 0) {
            facts.first_empty = f.text == f.end && separator != ' ';
            facts.first_word = word;
        }
        facts.words += word;
    }
    return facts;
}

/* The column that names the nodes, -1 if there is none, by the first three lines (fields 0: there is none), and whether
 * the first is a heading. In front of a heading pandas writes an empty field, and R nothing. Below a heading words in
 * other columns are features of another kind, which are refused by name. */
static int64_t find_column(const line_facts line[3], bool *headed)
{
    const line_facts *first = &line[0], *next = &line[1];
    const bool index = first->first_empty && next->fields == first->fields && !next->first_empty;
    *headed = first->named >= 0 || index || (first->words == first->fields && next->fields > 0);
    if (first->named >= 0) return first->named;
    if (*headed && (index || next->fields == first->fields + 1)) return 0;
    const line_facts *row = &line[*headed]; /* two rows, if there are, as one word may be a mistake */
    return row[0].first_word && (row[0].words == 1 || *headed) && (row[1].fields == 0 || row[1].first_word) ? 0 : -1;
}

static sp_status add_id(sp_context *context, const io_long_lines *b, const char *line, const char *end,
                        const io_csv *csv, io_labels *ids)
{
    const int64_t next = ids->list.names.count;
    const char *at = line, *wrong = NULL, *what = NULL;
    const char *remedy = "fill the column of names in every row";
    io_field f = {line, line, false};
    int32_t id;
    for (int i = 0; at && i <= csv->source && !wrong; i++) wrong = io_take_field(&at, end, csv->separator, &f);
    if (wrong) {
        what = wrong;
        remedy = "close it, and write a quote within a quoted field twice";
    } else if (f.text == f.end) what = "a row without the name of its node";
    else if (f.doubled || memchr(f.text, '\t', (size_t)(f.end - f.text))) {
        what = "the name of a node holds a quote or a tab";
        remedy = "rename it";
    }
    if (what) return io_fail_line(context, ids->file, b->lines, what, f.text, end, remedy);
    const size_t length = (size_t)(f.end - f.text);
    const sp_status status = io_labels_add(context, ids, f.text, length, io_label_hash(f.text, length), &id);
    if (status != SP_OK || id == next) return status;
    return io_fail_line(context, ids->file, b->lines, "a second row for this node", f.text, f.end,
                        "keep one row a node");
}

static sp_status next_row(sp_context *context, io_long_lines *b, const char **line, const char **end)
{
    sp_status status;
    do status = io_take_line(context, b, line, end);
    while (status == SP_OK && *line && io_is_table_comment(*line, *end));
    return status;
}

static sp_status find_ids(sp_context *context, io_long_lines *b, io_csv *csv, int64_t *numbers)
{
    const char *line, *end;
    line_facts facts[3] = {{0}};
    bool headed;
    sp_status status;
    for (int i = 0; i < 3; i++) {
        TRY(next_row(context, b, &line, &end));
        if (!line) break;
        if (i == 0) {
            csv->separator = io_find_separator(line, end);
            csv->heading_bytes = io_taken_bytes(b);
            csv->heading_lines = b->lines;
        }
        if (csv->separator == ' ') line = io_skip_blanks(line, end);
        facts[i] = look_at(line, end, csv->separator);
    }
    if (csv->separator == '\t' && facts[0].words == 0) facts[0].first_empty = false; /* numbers behind a tab */
    csv->source = facts[0].fields > 0 ? (int)find_column(facts, &headed) : -1;
    const bool index = csv->source > 0 && facts[0].first_empty && facts[1].fields == facts[0].fields &&
                       !facts[1].first_word;
    csv->target = index ? 0 : -1;
    if (csv->source >= 0) *numbers = facts[headed && facts[1].fields > 0].fields - 1 - index;
    if (csv->source >= 0 && !headed) csv->heading_bytes = csv->heading_lines = 0;
done:
    return status;
}

static sp_status read_ids(sp_context *context, io_long_lines *b, const io_csv *csv, io_labels *ids)
{
    const char *line, *end;
    sp_status status;
    for (;;) {
        TRY(next_row(context, b, &line, &end));
        if (!line) break;
        if (b->lines <= csv->heading_lines) continue;
        if (csv->separator == ' ') line = io_skip_blanks(line, end);
        TRY(add_id(context, b, line, end, csv, ids));
    }
done:
    return status;
}

/* Opens the file for one pass over its lines. */
static sp_status open_lines(sp_context *context, const char *path, const volatile int *interrupt, io_long_lines *b)
{
    memset(b, 0, sizeof *b);
    return io_source_open(context, path, interrupt, &b->source);
}

static void close_lines(sp_context *context, io_long_lines *b)
{
    sp_free(context, b->bytes);
    io_source_close(b->source);
}

sp_status io_scan_ids(sp_context *context, const char *path, const volatile int *interrupt, io_csv *csv,
                      int64_t *numbers, io_names *names)
{
    io_long_lines b;
    io_labels ids = {.file = path};
    memset(names, 0, sizeof *names);
    memset(csv, 0, sizeof *csv);
    csv->source = csv->target = -1;
    sp_status status = open_lines(context, path, interrupt, &b);
    if (status == SP_OK) status = find_ids(context, &b, csv, numbers);
    close_lines(context, &b);
    if (status != SP_OK || csv->source < 0) return status;
    status = open_lines(context, path, interrupt, &b);
    if (status == SP_OK) status = read_ids(context, &b, csv, &ids);
    close_lines(context, &b);
    if (status == SP_OK) {
        *names = ids.list.names;
        memset(&ids.list.names, 0, sizeof ids.list.names);
    }
    io_labels_free(context, &ids);
    return status;
}

/* ---- tables of other things ----------------------------------------------------------------------------- */

sp_status io_is_node_table(sp_context *context, const char *path, const volatile int *interrupt,
                           const io_graph *graph, bool *is)
{
    const char *line, *end, *at;
    io_content content;
    io_source *source;
    io_labels index = {0};
    int64_t bytes = 0, fields = 0;
    bool word = false, node = false;
    io_field f;
    *is = false;
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    TRY(io_detect_content(source, &content));
    if (content != IO_CONTENT_TEXT) goto done;
    do TRY(io_source_line(source, &line, &end, &bytes));
    while (line && !io_trim_line(&line, &end));
    if (!line) goto done;
    if (graph->names.count > 0) TRY(io_labels_index(context, &graph->names, &index));
    const char separator = io_find_separator(line, end);
    for (at = line; at && !io_take_field(&at, end, separator, &f); fields++) {
        word = word || io_is_id_heading(f.text, f.end);
        node = node || (fields == 0 && index.slot_count > 0 && io_find_node(graph, &index, f.text, f.end) >= 0);
    }
    *is = fields > 1 && (word || node || (graph->names.count > 0 && separator != ' '));
done:
    sp_free(context, index.slots);
    io_source_close(source);
    return status;
}

/* ---- lists of nodes ------------------------------------------------------------------------------------- */

static sp_status list_nodes(sp_context *context, io_source *source, const io_graph *graph, const io_labels *index,
                            int64_t *unknown, int32_t **nodes, int64_t *count)
{
    const char *line, *end;
    int64_t bytes = 0, lines = 0, capacity = 0;
    io_field f;
    sp_status status;
    for (bool first = true;; first = false) {
        do {
            TRY(io_source_line(source, &line, &end, &bytes));
            lines++;
        } while (line && !io_trim_line(&line, &end));
        if (!line) break;
        const char *at = line, *wrong = io_take_field(&at, end, '\t', &f);
        if (wrong || at)
            return io_fail_line(context, io_source_name(source), lines, wrong ? wrong : "more than a name", line, end,
                                "write the name of a node a line, and nothing else");
        const int64_t node = io_find_node(graph, index, f.text, f.end);
        if (node < 0 && first && io_is_id_heading(f.text, f.end)) continue;
        if (node < 0 && !unknown)
            return io_fail_line(context, io_source_name(source), lines, "this is not a node of the graph", f.text,
                                f.end,
                                "write names of nodes (--unknown drop passes over others)");
        if (node < 0) {
            ++*unknown;
            continue;
        }
        TRY(io_reserve(context, *count, *count + 1, sizeof **nodes, &capacity, (void **)nodes));
        (*nodes)[(*count)++] = (int32_t)node;
    }
done:
    return status;
}

sp_status io_read_node_list(sp_context *context, const char *path, const volatile int *interrupt,
                            const io_graph *graph, int64_t *unknown, int32_t **nodes, int64_t *count)
{
    io_content content;
    io_source *source;
    io_labels index = {0};
    *nodes = NULL;
    *count = 0;
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    TRY(io_detect_content(source, &content));
    if (content == IO_CONTENT_NPY || graph->names.count == 0) {
        status = io_read_numbers(context, path, interrupt, 0, graph->nodes - 1, NULL, nodes, count);
        goto done;
    }
    TRY(io_labels_index(context, &graph->names, &index));
    status = list_nodes(context, source, graph, &index, unknown, nodes, count);
done:
    sp_free(context, index.slots);
    io_source_close(source);
    if (status != SP_OK) {
        sp_free(context, *nodes);
        *nodes = NULL;
        *count = 0;
    }
    return status;
}
