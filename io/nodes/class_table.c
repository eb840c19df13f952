/* Classes of nodes from a table that names them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "nodes/labelling.h"
#include "nodes/nodes.h"
#include "text/number.h"
#include "text/words.h"

typedef struct class_reader {
    sp_context *context;
    const char *path;
    const io_graph *graph;
    const io_node_table *table;
    io_classes *classes;
} class_reader;

/* "%.*s" of a name in messages. */
enum { SHOWN = 60 };
static int shown(const io_names *names, int64_t i)
{
    const size_t length = io_name_length(names, i);
    return length < SHOWN ? (int)length : SHOWN;
}

/* Refuses a node's value. */
static sp_status refuse(const class_reader *r, int64_t node, const char *what, const io_attribute *column,
                        const char *remedy)
{
    char number[32], text[SHOWN + 1];
    snprintf(number, sizeof number, "%lld", (long long)node);
    snprintf(text, sizeof text, "%.9g", column->values[node]);
    const io_names *names = &r->graph->names;
    if (column->is_text) {
        const int64_t value = (int64_t)column->values[node];
        snprintf(text, sizeof text, "%.*s", shown(&r->table->texts, value), io_name(&r->table->texts, value));
    }
    const bool named = names->count > 0;
    return sp_fail(r->context, SP_ERROR_ARGUMENT, "%s: node %.*s: %s (got \"%s\"); %s", r->path,
                   named ? shown(names, node) : (int)strlen(number), named ? io_name(names, node) : number, what, text,
                   remedy);
}

/* ---- one column ----------------------------------------------------------------------------------------- */

static sp_status take_numbers(const class_reader *r, const io_attribute *column)
{
    io_classes *c = r->classes;
    for (int64_t i = 0; i < c->nodes; i++) {
        if (!io_class_of_number(column->values[i], &c->labels[i]))
            return refuse(r, i, "a label that is not a class", column, io_class_remedy(column->values[i]));
        if (c->labels[i] >= c->classes) c->classes = (int64_t)c->labels[i] + 1;
    }
    return SP_OK;
}

typedef enum text_kind { TEXT_MISSING, TEXT_NUMBER, TEXT_NAME } text_kind;

static text_kind kind_of(const io_names *texts, int64_t text, double *number)
{
    const char *begin = io_name(texts, text), *end = begin + io_name_length(texts, text);
    char copy[SHOWN + 1]; /* texts are packed, and what follows one may be digits */
    if (io_is_missing_class(begin, end)) return TEXT_MISSING;
    if (end - begin > SHOWN) return TEXT_NAME;
    memcpy(copy, begin, (size_t)(end - begin));
    copy[end - begin] = '\0';
    if (io_parse_decimal(copy, copy + (end - begin), number) != copy + (end - begin)) return TEXT_NAME;
    return *number == -1 ? TEXT_MISSING : TEXT_NUMBER;
}

/* Numbers beside words that stand for none. */
static sp_status take_number_texts(const class_reader *r, const io_attribute *column)
{
    io_classes *c = r->classes;
    for (int64_t i = 0; i < c->nodes; i++) {
        double number = NAN;
        if (isnan(column->values[i]) ||
            kind_of(&r->table->texts, (int64_t)column->values[i], &number) == TEXT_MISSING)
            number = NAN;
        if (!io_class_of_number(number, &c->labels[i]))
            return refuse(r, i, "a label that is not a class", column, io_class_remedy(number));
        if (c->labels[i] >= c->classes) c->classes = (int64_t)c->labels[i] + 1;
    }
    return SP_OK;
}

/* If the first known label is no number, all are names, and a number is one, too. */
static sp_status take_names(const class_reader *r, const io_attribute *column)
{
    const io_names *texts = &r->table->texts;
    io_classes *c = r->classes;
    io_labels names = {.file = r->path};
    int64_t words = 0, word = -1, first = INT64_MAX; /* texts count in the order of the rows */
    text_kind begins = TEXT_NAME;
    double number;
    sp_status status = SP_OK;
    for (int64_t i = 0; i < c->nodes; i++) {
        const int64_t text = isnan(column->values[i]) ? -1 : (int64_t)column->values[i];
        const text_kind kind = text < 0 ? TEXT_MISSING : kind_of(texts, text, &number);
        c->labels[i] = -1;
        if (kind == TEXT_MISSING) continue;
        const char *name = io_name(texts, text);
        const size_t length = io_name_length(texts, text);
        TRY(io_labels_add(r->context, &names, name, length, io_label_hash(name, length), &c->labels[i]));
        if (c->labels[i] >= IO_MOST_CLASSES)
            TRY(refuse(r, i, "more than 65536 classes", column, "is this the column of labels?"));
        if (kind == TEXT_NAME && words++ == 0) word = i;
        if (text < first) {
            first = text;
            begins = kind;
        }
    }
    if (words > 0 && begins == TEXT_NUMBER)
        TRY(refuse(r, word, "a word among labels that are numbers", column, "write numbers, or names, for all"));
    if (begins == TEXT_NUMBER) {
        status = take_number_texts(r, column);
        goto done;
    }
    c->names = names.list.names;
    memset(&names.list.names, 0, sizeof names.list.names);
    c->classes = c->names.count;
    status = io_sort_classes(r->context, c);
done:
    io_labels_free(r->context, &names);
    return status;
}

/* ---- several columns ------------------------------------------------------------------------------------ */

/* Whether all columns have nothing but 0 and 1. */
static bool are_targets(const io_node_table *table, int64_t nodes)
{
    for (int64_t k = 0; k < table->columns; k++)
        for (int64_t i = 0; i < nodes; i++) {
            const double value = table->column[k].values[i];
            if (table->column[k].is_text || (!isnan(value) && value != 0 && value != 1)) return false;
        }
    return table->columns > 1;
}

/* The headings are the names of the classes. */
static sp_status take_targets(const class_reader *r)
{
    const io_node_table *table = r->table;
    io_classes *c = r->classes;
    io_name_list list = {0};
    sp_status status;
    TRY(sp_calloc(r->context, c->nodes * table->columns, 1, (void **)&c->targets));
    for (int64_t k = 0; k < table->columns; k++) {
        TRY(io_names_append(r->context, &list, io_name(&table->headings, k), io_name_length(&table->headings, k)));
        for (int64_t i = 0; i < c->nodes; i++) c->targets[i * table->columns + k] = table->column[k].values[i] == 1;
    }
    c->classes = table->columns;
    c->names = list.names;
    memset(&list.names, 0, sizeof list.names);
    sp_free(r->context, c->labels);
    c->labels = NULL;
done:
    io_names_free(r->context, &list.names);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

int64_t io_find_heading(const io_node_table *table, const char *const *words)
{
    int64_t found = table->columns == 1 ? 0 : -1;
    for (int64_t k = 0; k < table->columns && found < 0; k++) {
        const char *name = io_name(&table->headings, k);
        if (io_word_among(name, name + io_name_length(&table->headings, k), words) >= 0) found = k;
    }
    return found;
}

static sp_status take(const class_reader *r)
{
    static const char *const words[] = {"label", "labels", "class", "classes", "category", "target", "y", NULL};
    const int64_t column = io_find_heading(r->table, words);
    io_classes *c = r->classes;
    c->nodes = r->graph->nodes;
    sp_status status = sp_alloc(r->context, c->nodes, sizeof *c->labels, (void **)&c->labels);
    if (status != SP_OK) return status;
    if (column >= 0)
        return (r->table->column[column].is_text ? take_names : take_numbers)(r, &r->table->column[column]);
    if (are_targets(r->table, c->nodes)) return take_targets(r);
    return sp_fail(r->context, SP_ERROR_ARGUMENT,
                   "%s: %lld columns beside that of the nodes; keep one, or call one label (several of 0 and 1 are a "
                   "class each)", r->path, (long long)r->table->columns);
}

sp_status io_read_class_table(sp_context *context, const char *path, const volatile int *interrupt,
                              const io_graph *graph, int64_t *unknown, io_classes *classes)
{
    const io_node_options options = {.skip_unknown = unknown != NULL, .classes = true, .interrupt = interrupt};
    io_node_table table;
    memset(classes, 0, sizeof *classes);
    sp_status status = io_read_node_table(context, path, graph, &options, &table);
    if (status != SP_OK) return status;
    const class_reader r = {context, path, graph, &table, classes};
    status = take(&r);
    if (unknown) *unknown += table.unknown;
    io_node_table_free(context, &table);
    if (status != SP_OK) io_classes_free(context, classes);
    return status;
}
