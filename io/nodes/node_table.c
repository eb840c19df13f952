/* Tables of nodes: a row a node, a column an attribute, below a heading; or the nodes of GraphML with theirs.
 *
 * All values are kept as texts, each once, until the file has been read. Then columns whose texts are all numbers
 * become columns of numbers.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "nodes/labelling.h"
#include "nodes/nodes.h"
#include "text/field.h"
#include "text/number.h"
#include "text/words.h"
#include "xml/graphml.h"

enum { PEEKED = 1 << 12, MOST_COLUMNS = 1 << 12, MOST_TEXT = 1 << 16 };

typedef struct table_reader {
    sp_context *context;
    const char *name;
    const io_graph *graph;
    const io_node_options *options;
    io_labels nodes;     /* over the graph's names, which are not ours */
    io_labels headings, texts;
    double *numbers;     /* that texts stand for; NaN for others, infinite for those with a decimal comma */
    int64_t number_capacity;
    char separator;
    int64_t fields, key; /* of a row; which of them names the node, -1: none, rows are in the order of the nodes */
    int64_t index;       /* the field without a name beside one that names the node, -1: none */
    io_field *field;     /* those of the row at hand */
    bool headless;       /* the first line is a row */
    int64_t line;
    uint8_t *seen;       /* a node has a row */
    char *copy;          /* of a row, where its doubled quotes become one */
    size_t copy_size;
    io_node_table *table;
} table_reader;

static sp_status fail(const table_reader *r, const char *what, const char *text, const char *end, const char *remedy)
{
    return io_fail_line(r->context, r->name, r->line, what, text, end, remedy);
}

/* What a row is about. */
static const char *row_of(const table_reader *r) { return r->options->row ? r->options->row : "node"; }

/* ---- the heading ---------------------------------------------------------------------------------------- */

/* A name that no column can have, of the one without. */
static const char NO_NAME[] = "\t";

static bool is_word(const io_field *f, const char *word)
{
    const size_t length = (size_t)(f->end - f->text);
    return length == strlen(word) && memcmp(f->text, word, length) == 0;
}

/* Whether the column's heading says that it names the nodes. */
static bool is_key(const table_reader *r, const io_field *f)
{
    static const char *const label[] = {"label", NULL};
    const char *wanted = r->options->node_column;
    if (wanted) return is_word(f, wanted);
    if (r->options->wanted && is_word(f, r->options->wanted)) return false;
    return io_is_id_heading(f->text, f->end) ||
           (!r->options->classes && io_word_among(f->text, f->end, label) >= 0);
}

static sp_status add_heading(table_reader *r, const io_field *f)
{
    const size_t length = (size_t)(f->end - f->text);
    double number;
    int32_t id;
    if (length == 0 && r->fields > 0)
        return fail(r, "a column without a name", f->text, f->end, "name all columns in the first line");
    if (length > 0 && io_parse_decimal(f->text, f->end, &number) == f->end)
        return fail(r, "a number in the heading", f->text, f->end,
                    "name the columns in the first line, as in node,age,kind");
    if (memchr(f->text, '\t', length))
        return fail(r, "the name of a column holds a tab", f->text, f->end, "rename the column");
    if (r->key < 0 && is_key(r, f)) r->key = r->fields;
    const char *name = length > 0 ? f->text : NO_NAME;
    const size_t size = length > 0 ? length : strlen(NO_NAME);
    const sp_status status = io_labels_add(r->context, &r->headings, name, size, io_label_hash(name, size), &id);
    if (status != SP_OK) return status;
    if (id != r->fields) return fail(r, "two columns have one name", f->text, f->end, "rename one of them");
    r->fields++;
    return SP_OK;
}

/* The names of the columns with values. Data frames write their index without a name before all others: it names the
 * nodes or, if another column does, counts rows. */
static sp_status keep_headings(table_reader *r)
{
    io_name_list list = {0};
    sp_status status = SP_OK;
    r->index = r->key > 0 && *io_name(&r->headings.list.names, 0) == *NO_NAME ? 0 : -1;
    for (int64_t i = 0; i < r->fields; i++)
        if (i != r->key && i != r->index)
            TRY(io_names_append(r->context, &list, io_name(&r->headings.list.names, i),
                                io_name_length(&r->headings.list.names, i)));
    r->table->headings = list.names;
    memset(&list.names, 0, sizeof list.names);
done:
    io_names_free(r->context, &list.names);
    return status;
}

static sp_status make_columns(table_reader *r)
{
    io_node_table *table = r->table;
    const int64_t nodes = r->graph->nodes, columns = r->fields - (r->key >= 0) - (r->index >= 0);
    sp_status status;
    TRY(sp_calloc(r->context, columns, sizeof *table->column, (void **)&table->column));
    for (table->columns = 0; table->columns < columns; table->columns++) {
        double **values = &table->column[table->columns].values;
        TRY(sp_alloc(r->context, nodes, sizeof **values, (void **)values));
        for (int64_t i = 0; i < nodes; i++) (*values)[i] = NAN;
    }
done:
    return status;
}

/* Whether the first line is a row already; then its columns are called by their numbers. */
static bool lacks_heading(const table_reader *r, const io_field *f)
{
    return r->options->classes && r->fields == 0 && r->graph->names.count > 0 && !is_key(r, f) &&
           io_find_node(r->graph, &r->nodes, f->text, f->end) >= 0;
}

/* No heading says which column names the nodes: the first, unless it is the wanted one and alone. */
static sp_status choose_key(table_reader *r)
{
    const io_names *names = &r->headings.list.names;
    const char *wanted = r->options->wanted;
    const bool first = !r->headless && wanted && io_name_length(names, 0) == strlen(wanted) &&
                       memcmp(io_name(names, 0), wanted, strlen(wanted)) == 0;
    r->key = first && r->fields == 1 ? -1 : 0;
    if (r->key == 0 || io_have_order(r->graph)) return SP_OK;
    return sp_fail(r->context, SP_ERROR_ARGUMENT, "%s: a table of one column, and nodes that have names and no order; "
                   "add a column of their names", r->name);
}

static sp_status read_heading(table_reader *r, const char *line, const char *end)
{
    const char *at = line, *wrong;
    char number[32], there[IO_LISTED];
    io_field f;
    sp_status status = SP_OK;
    if (!r->separator) r->separator = io_find_separator(line, end);
    r->key = -1;
    while (at) {
        wrong = io_take_field(&at, end, r->separator, &f);
        if (wrong) return fail(r, wrong, f.text, end, "close it, and write a quote within a quoted field twice");
        if (r->fields == MOST_COLUMNS) return fail(r, "more than 4096 columns", line, end, "leave some out");
        r->headless = r->headless || lacks_heading(r, &f);
        if (r->headless) {
            const int length = snprintf(number, sizeof number, "(%lld)", (long long)r->fields + 1);
            f = (io_field){number, number + length, false};
        }
        TRY(add_heading(r, &f));
    }
    if (r->key < 0 && r->options->node_column)
        TRY(sp_fail(r->context, SP_ERROR_ARGUMENT, "%s:%lld: no column \"%.40s\"; there are: %s", r->name,
                    (long long)r->line, r->options->node_column, io_names_list(&r->headings.list.names, there)));
    if (r->key < 0) TRY(choose_key(r));
    TRY(keep_headings(r));
    TRY(make_columns(r));
    TRY(sp_alloc(r->context, r->fields, sizeof *r->field, (void **)&r->field));
done:
    return status;
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

static bool is_missing(const io_field *f)
{
    static const char *const words[] = {"na", "n/a", "#n/a", "<na>", "nan", "null", "-", NULL};
    return f->text == f->end || io_word_among(f->text, f->end, words) >= 0;
}

/* The node of the next row of a table of one column. */
static sp_status next_node(table_reader *r, const char *line, const char *end, int64_t *node)
{
    if (r->table->rows == r->graph->nodes)
        return fail(r, "a row more than the graph has nodes", line, end, "write one a node, in their order");
    *node = r->table->rows++;
    return SP_OK;
}

/* The node of a row, -1 for one to be skipped. */
static sp_status find_row(table_reader *r, const io_field *f, int64_t *node)
{
    *node = io_find_node(r->graph, &r->nodes, f->text, f->end);
    if (*node < 0 && r->options->skip_unknown) {
        r->table->unknown++;
        return SP_OK;
    }
    if (*node < 0)
        return fail(r, "this is not a node of the graph", f->text, f->end,
                    r->graph->names.count == 0 || r->options->node_column
                        ? io_node_remedy(r->graph, f->text, f->end)
                    : r->options->classes
                        ? "write its names, in the first column or in one called node, name or id (--unknown drop "
                          "passes over others)"
                        : "write its names, or give --node-column NAME if another column has them (--unknown drop "
                          "passes over others)");
    if (r->seen[*node]) {
        char what[64], remedy[64];
        snprintf(what, sizeof what, "a second row for this %.20s", row_of(r));
        snprintf(remedy, sizeof remedy, "keep one row a %.20s", row_of(r));
        return fail(r, what, f->text, f->end, remedy);
    }
    r->seen[*node] = 1;
    r->table->rows++;
    return SP_OK;
}

/* Whether it would be a number if its comma were a point. */
static bool has_decimal_comma(const io_field *f)
{
    enum { LONGEST = 40 };
    char copy[LONGEST + 1], *comma;
    const size_t length = (size_t)(f->end - f->text);
    double number;
    if (length > LONGEST || !memchr(f->text, ',', length)) return false;
    memcpy(copy, f->text, length);
    copy[length] = '\0';
    comma = memchr(copy, ',', length);
    *comma = '.';
    return io_parse_decimal(copy, copy + length, &number) == copy + length;
}

static sp_status add_value(table_reader *r, int64_t node, int64_t column, const io_field *f)
{
    const size_t length = (size_t)(f->end - f->text);
    const int64_t known = r->texts.list.names.count;
    double number;
    int32_t id;
    sp_status status = SP_OK;
    if (is_missing(f)) return SP_OK;
    if (length > MOST_TEXT) return fail(r, "a value of more than 65536 bytes", f->text, f->end, "shorten it");
    if (memchr(f->text, '\t', length)) return fail(r, "a value that holds a tab", f->text, f->end, "use blanks");
    TRY(io_labels_add(r->context, &r->texts, f->text, length, io_label_hash(f->text, length), &id));
    r->table->column[column].values[node] = id;
    if (id < known) return SP_OK;
    TRY(io_reserve(r->context, known, known + 1, sizeof *r->numbers, &r->number_capacity, (void **)&r->numbers));
    const bool whole = io_parse_decimal(f->text, f->end, &number) == f->end && isfinite(number);
    r->numbers[id] = whole ? number : has_decimal_comma(f) ? INFINITY : NAN;
done:
    return status;
}

/* The row in memory that may be changed, with a NUL behind it. */
static sp_status copy_row(table_reader *r, const char *line, size_t length)
{
    sp_status status = SP_OK;
    if (length + 1 > r->copy_size) {
        sp_free(r->context, r->copy);
        r->copy = NULL;
        r->copy_size = 0;
        TRY(sp_alloc(r->context, (int64_t)(2 * length + 1), 1, (void **)&r->copy));
        r->copy_size = 2 * length + 1;
    }
    memcpy(r->copy, line, length);
    r->copy[length] = '\0';
done:
    return status;
}

static sp_status take_fields(table_reader *r, const char *line, const char *line_end)
{
    const char *at = r->copy, *end = at + (line_end - line), *wrong;
    int64_t count = 0;
    io_field f;
    for (; at; count++) {
        wrong = io_take_field(&at, end, r->separator, &f);
        if (wrong) return fail(r, wrong, f.text, end, "close it, and write a quote within a quoted field twice");
        if (count < r->fields) r->field[count] = f;
    }
    if (count != r->fields)
        return fail(r, count < r->fields ? "fewer fields than columns" : "more fields than columns", line, line_end,
                    "separate the fields as in the first line, and leave none out");
    for (int64_t i = 0; i < r->fields; i++) io_undouble(r->copy, &r->field[i]);
    return SP_OK;
}

static sp_status read_row(table_reader *r, const char *line, const char *line_end)
{
    int64_t node = -1;
    sp_status status;
    TRY(copy_row(r, line, (size_t)(line_end - line)));
    TRY(take_fields(r, line, line_end));
    if (r->key < 0) TRY(next_node(r, line, line_end, &node));
    else TRY(find_row(r, &r->field[r->key], &node));
    for (int64_t i = 0, column = 0; node >= 0 && i < r->fields; i++)
        if (i != r->key && i != r->index) TRY(add_value(r, node, column++, &r->field[i]));
done:
    return status;
}

/* ---- GraphML -------------------------------------------------------------------------------------------- */

/* Keys become columns, except the one that names nodes. r->field has the name and then the columns. */
static sp_status take_keys(table_reader *r, const io_graphml *g, int64_t naming)
{
    sp_status status;
    TRY(sp_alloc(r->context, g->count + 1, sizeof *r->field, (void **)&r->field));
    TRY(add_heading(r, &(io_field){NO_NAME, NO_NAME, false}));
    for (int64_t k = 0; k < g->count; k++) {
        const io_xml_span name = io_graphml_name(g, k);
        if (g->keys[k].nodes && k != naming)
            TRY(add_heading(r, &(io_field){name.text, name.text + name.length, false}));
    }
    r->key = 0;
    TRY(keep_headings(r));
    status = make_columns(r);
done:
    return status;
}

static sp_status take_node(table_reader *r, const io_graphml *g, int64_t naming)
{
    io_xml_span name;
    int64_t node, column = 0;
    sp_status status;
    r->line = g->xml.line;
    TRY(io_graphml_node_name(g, naming, &name));
    TRY(find_row(r, &(io_field){name.text, name.text + name.length, false}, &node));
    for (int64_t k = 0; k < g->count && node >= 0; k++) {
        if (!g->keys[k].nodes || k == naming) continue;
        const io_xml_span value = io_graphml_value(g, k);
        const char *begin = value.text ? value.text : "", *end = begin + value.length;
        io_trim_line(&begin, &end);
        if (memchr(begin, '\n', (size_t)(end - begin)))
            TRY(fail(r, "a value that holds a line feed", begin, end, "use blanks"));
        TRY(add_value(r, node, column++, &(io_field){begin, end, false}));
    }
done:
    return status;
}

static sp_status read_graphml(table_reader *r, io_source *source)
{
    io_graphml *g;
    int64_t naming = -1;
    sp_status status = sp_calloc(r->context, 1, sizeof *g, (void **)&g); /* too large for a stack */
    if (status != SP_OK) return status;
    TRY(io_graphml_open(r->context, source, g));
    for (;;) {
        TRY(io_graphml_next(g));
        if (g->item == IO_GRAPHML_END) break;
        if (g->item != IO_GRAPHML_NODE) continue;
        if (r->fields == 0) {
            TRY(io_graphml_naming(g, r->options->node_column, &naming));
            TRY(take_keys(r, g, naming));
        }
        TRY(take_node(r, g, naming));
    }
    if (r->fields == 0) TRY(take_keys(r, g, -1));
    r->table->lines = g->xml.line;
    r->table->bytes = g->xml.bytes;
done:
    io_graphml_close(g);
    sp_free(r->context, g);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static sp_status refuse_comma(const table_reader *r, int64_t column, int64_t text)
{
    const io_names *headings = &r->table->headings, *texts = &r->table->texts;
    return sp_fail(r->context, SP_ERROR_ARGUMENT,
                   "%s: the numbers of the column \"%.*s\" have decimal commas, as %.*s; write points", r->name,
                   (int)io_name_length(headings, column), io_name(headings, column), (int)io_name_length(texts, text),
                   io_name(texts, text));
}

/* Texts of columns in which all are numbers become these. */
static sp_status find_numbers(table_reader *r)
{
    io_node_table *table = r->table;
    const double *number_of = r->numbers;
    for (int64_t c = 0; c < table->columns; c++) {
        io_attribute *column = &table->column[c];
        bool has_number = false;
        column->odd = -1;
        for (int64_t i = 0; i < r->graph->nodes; i++) {
            if (isnan(column->values[i])) continue;
            if (!isnan(number_of[(int64_t)column->values[i]])) has_number = true;
            else if (column->odd < 0) column->odd = i;
        }
        column->is_text = column->odd >= 0;
        if (!has_number) column->odd = -1;
        for (int64_t i = 0; i < r->graph->nodes && !column->is_text; i++) {
            if (isnan(column->values[i])) continue;
            const int64_t text = (int64_t)column->values[i];
            if (isinf(number_of[text])) return refuse_comma(r, c, text);
            column->values[i] = number_of[text];
        }
    }
    return SP_OK;
}

static sp_status read_lines(table_reader *r, io_source *source)
{
    const char *line, *end;
    sp_status status;
    for (;;) {
        TRY(io_source_line(source, &line, &end, &r->table->bytes));
        if (!line) break;
        r->line++;
        const char *begin = line, *stop = end;
        if (r->line == 1) r->separator = io_named_separator(line, end);
        if (!io_trim_line(&begin, &stop)) continue;
        const bool heads = r->fields == 0;
        if (heads) TRY(read_heading(r, begin, stop));
        if (!heads || r->headless)
            TRY(read_row(r, r->separator == '\t' ? line : begin, r->separator == '\t' ? end : stop));
    }
    r->table->lines = r->line;
    if (r->fields > 0 && r->key < 0 && r->table->rows < r->graph->nodes)
        TRY(sp_fail(r->context, SP_ERROR_ARGUMENT, "%s: %lld rows for %lld nodes; write one a node, in their "
                                                   "order", r->name,
                    (long long)r->table->rows, (long long)r->graph->nodes));
    if (r->fields == 0)
        TRY(sp_fail(r->context, SP_ERROR_ARGUMENT, "%s: no heading; name the columns in the first line, as in "
                    "%s,age,kind", r->name, row_of(r)));
done:
    return status;
}

static sp_status read_table(table_reader *r, io_source *source)
{
    const char *bytes;
    size_t count = PEEKED;
    sp_status status;
    TRY(io_source_refuse_zip(source));
    if (r->graph->names.count > 0) TRY(io_labels_index(r->context, &r->graph->names, &r->nodes));
    TRY(sp_calloc(r->context, r->graph->nodes, 1, (void **)&r->seen));
    TRY(io_source_peek(source, &bytes, &count));
    TRY(io_looks_like_xml(bytes, count) ? read_graphml(r, source) : read_lines(r, source));
    r->table->texts = r->texts.list.names;
    memset(&r->texts.list.names, 0, sizeof r->texts.list.names);
    status = find_numbers(r);
done:
    return status;
}

sp_status io_read_node_table_source(sp_context *context, io_source *source, const io_graph *graph,
                                    const io_node_options *options, io_node_table *table)
{
    memset(table, 0, sizeof *table);
    table_reader r = {.context = context, .name = io_source_name(source), .graph = graph, .options = options,
                      .headings.file = io_source_name(source), .texts.file = io_source_name(source), .table = table};
    const sp_status status = read_table(&r, source);
    FREE_ALL(context, r.nodes.slots, r.seen, r.copy, r.field, r.numbers);
    io_labels_free(context, &r.headings);
    io_labels_free(context, &r.texts);
    if (status != SP_OK) io_node_table_free(context, table);
    return status;
}

sp_status io_read_node_table(sp_context *context, const char *path, const io_graph *graph,
                             const io_node_options *options, io_node_table *table)
{
    io_source *source;
    memset(table, 0, sizeof *table);
    sp_status status = io_source_open(context, path, options->interrupt, &source);
    if (status != SP_OK) return status;
    status = io_read_node_table_source(context, source, graph, options, table);
    io_source_close(source);
    return status;
}

void io_node_table_free(sp_context *context, io_node_table *table)
{
    for (int64_t c = 0; table->column && c < table->columns; c++) sp_free(context, table->column[c].values);
    sp_free(context, table->column);
    io_names_free(context, &table->headings);
    io_names_free(context, &table->texts);
    memset(table, 0, sizeof *table);
}
