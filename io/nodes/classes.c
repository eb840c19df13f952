/* Classes of nodes: a line or an element each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "graphs/formats.h"
#include "nodes/nodes.h"
#include "text/words.h"

/* ---- one label ------------------------------------------------------------------------------------------ */

bool io_class_of_number(double number, int32_t *label)
{
    if (isnan(number)) number = -1;
    if (!(number >= -1 && number < IO_MOST_CLASSES) || number != floor(number)) return false;
    *label = (int32_t)number;
    return true;
}

const char *io_class_remedy(double number)
{
    if (number != floor(number)) return "gnn learns classes, not values: sort these into classes, numbered from 0";
    return number < 0 ? "number the classes from 0, and write -1 where it is unknown"
                      : "number the classes from 0, below 65536";
}

/* What NumPy, pandas, R, databases and spreadsheets write where a value is missing. Quotes are a part of a name: a
 * class whose name is one of these words is written in quotes. */
bool io_is_missing_class(const char *word, const char *end)
{
    static const char *const marks[] = {"nan", "-nan", "na", "n/a", "#n/a", "<na>", "null", "none", "\"\"",
                                        NULL};
    return io_word_among(word, end, marks) >= 0;
}

/* ---- text ---------------------------------------------------------------------------------------------- */

typedef enum label_kind { LABEL_UNKNOWN, LABEL_NUMBER, LABEL_NAME } label_kind;

static label_kind kind_of(const char *word, const char *end, double *number)
{
    if (io_is_missing_class(word, end)) return LABEL_UNKNOWN;
    if (io_parse_decimal(word, end, number) != end) return LABEL_NAME;
    return *number == -1 ? LABEL_UNKNOWN : LABEL_NUMBER;
}

/* "3,0": a number with a decimal comma, or a node beside its class. */
static bool is_row_of_numbers(const char *line, const char *end)
{
    int64_t fields = 0;
    for (const char *at = line; at < end; fields++) {
        const char *field = io_next_field(&at, end), *stop = io_field_end(field, end);
        double number;
        if (stop == field || io_parse_decimal(field, stop, &number) != stop) return false;
    }
    return fields > 1;
}

/* Several fields, as in a row of a table. Blanks may be within a name, unless a number comes before. */
static bool is_row(const char *name, size_t length)
{
    size_t digits = 0;
    while (digits < length && io_is_digit(name[digits])) digits++;
    return memchr(name, ',', length) || memchr(name, ';', length) || memchr(name, '\t', length) ||
           (digits > 0 && digits < length && io_is_blank(name[digits]));
}

typedef struct label_reader {
    sp_context *context;
    io_classes *classes;
    io_labels labels;
    int64_t capacity;
    bool numbers, named;
    int64_t known, rows;       /* names, and those of them that are rows of several fields */
    char first[IO_MOST_NAME + 1]; /* a name in the first line, which the next one may show to be a heading */
    int64_t unknown;           /* labels that are missing since then: classes may be numbers or names */
    int64_t empty;             /* lines without anything since the last label */
} label_reader;

static sp_status append(label_reader *to, int32_t label)
{
    io_classes *c = to->classes;
    sp_status status = io_reserve(to->context, c->nodes, c->nodes + 1, sizeof *c->labels, &to->capacity,
                                  (void **)&c->labels);
    if (status != SP_OK) return status;
    c->labels[c->nodes++] = label;
    if (label >= c->classes) c->classes = (int64_t)label + 1;
    return SP_OK;
}

static sp_status append_name(label_reader *to, const char *name, size_t length)
{
    int32_t id;
    sp_status status = io_labels_add(to->context, &to->labels, name, length, io_label_hash(name, length), &id);
    if (status != SP_OK) return status;
    if (id >= IO_MOST_CLASSES) return sp_fail(to->context, SP_ERROR_ARGUMENT, "more than 65536 classes");
    to->known++;
    to->rows += is_row(name, length);
    return append(to, id);
}

static sp_status append_unknown(label_reader *to, int64_t count)
{
    sp_status status = SP_OK;
    if (!to->numbers && !to->named) to->unknown += count;
    else for (; status == SP_OK && count > 0; count--) status = append(to, -1);
    return status;
}

/* The first line was a name, if that is known now, or a heading; the missing labels that followed. Even before names
 * some words are headings. */
static sp_status settle_first(label_reader *to)
{
    static const char *const headings[] = {"label", "labels", "class", "classes", "category", "target", "y", NULL};
    const size_t length = strlen(to->first);
    const bool heading = to->classes->nodes == 0 && io_word_among(to->first, to->first + length, headings) >= 0;
    sp_status status = SP_OK;
    if (to->named && length > 0 && !heading) status = append_name(to, to->first, length);
    to->first[0] = '\0';
    for (; status == SP_OK && to->unknown > 0; to->unknown--) status = append(to, -1);
    return status;
}

/* An empty line between two others is an empty cell of a column. */
static sp_status count_empty(label_reader *to)
{
    const int64_t empty = to->empty;
    to->empty = 0;
    if (to->classes->nodes == 0 && to->unknown == 0 && !to->first[0]) return SP_OK;
    to->classes->empty += empty;
    return append_unknown(to, empty);
}

static sp_status refuse_label(label_reader *to, int64_t line_number, const char *what, const char *line,
                              const char *end, const char *remedy)
{
    return io_fail_line(to->context, to->labels.file, line_number, what, line, end, remedy);
}

static sp_status append_number(label_reader *to, int64_t line_number, const char *line, const char *end,
                               label_kind kind, double number)
{
    int32_t label;
    if (kind == LABEL_NUMBER && io_class_of_number(number, &label)) return append(to, label);
    return refuse_label(to, line_number, "a label that is not a class", line, end,
                        kind == LABEL_NUMBER ? io_class_remedy(number)
                                             : "the first one is a number: write numbers, or names, for all");
}

static sp_status read_label(label_reader *to, int64_t line_number, const char *line, const char *end)
{
    double number = 0;
    const label_kind kind = kind_of(line, end, &number);
    sp_status status = count_empty(to);
    if (status != SP_OK) return status;
    if (kind == LABEL_UNKNOWN) return append_unknown(to, 1);
    if (kind == LABEL_NUMBER && *line == '+') /* +1 and -1 would be a class and none */
        return refuse_label(to, line_number, "a label that is not a class", line, end, "number the classes from 0");
    if (kind == LABEL_NAME && is_row_of_numbers(line, end))
        return refuse_label(to, line_number, "several numbers", line, end,
                            "write the class alone, in the order of the nodes");
    if (!to->numbers && !to->named) {
        to->numbers = kind == LABEL_NUMBER;
        to->named = !to->numbers && (to->first[0] || to->unknown > 0); /* else it may be a heading */
        if (to->numbers || to->named) {
            status = settle_first(to);
            if (status != SP_OK) return status;
        }
    }
    if (to->numbers) return append_number(to, line_number, line, end, kind, number);
    if (end - line > IO_MOST_NAME || memchr(line, '\0', (size_t)(end - line)))
        return refuse_label(to, line_number, "a class of more than 255 bytes or with a NUL", line, end,
                            "write a name a line");
    if (to->named) {
        status = append_name(to, line, (size_t)(end - line));
        if (status != SP_ERROR_ARGUMENT) return status;
        return refuse_label(to, line_number, "more than 65536 classes", line, end, "is this the file of labels?");
    }
    memcpy(to->first, line, (size_t)(end - line));
    to->first[end - line] = '\0';
    return SP_OK;
}

typedef struct class_name {
    const char *bytes;
    size_t length;
    int32_t id;
} class_name;

static int by_bytes(const void *a, const void *b)
{
    const class_name *x = a, *y = b;
    const int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Numbers classes in the order of their names instead of their first nodes, so that the same classes have the same
 * numbers in every folder. */
sp_status io_sort_classes(sp_context *context, io_classes *classes)
{
    const int64_t count = classes->names.count;
    class_name *names = NULL;
    int32_t *number = NULL;
    io_name_list sorted = {0};
    sp_status status;
    TRY(sp_alloc(context, count, sizeof *names, (void **)&names));
    TRY(sp_alloc(context, count, sizeof *number, (void **)&number));
    for (int32_t i = 0; i < count; i++)
        names[i] = (class_name){io_name(&classes->names, i), io_name_length(&classes->names, i), i};
    qsort(names, (size_t)count, sizeof *names, by_bytes);
    for (int32_t i = 0; i < count; i++) {
        number[names[i].id] = i;
        TRY(io_names_append(context, &sorted, names[i].bytes, names[i].length));
    }
    for (int64_t i = 0; i < classes->nodes; i++)
        if (classes->labels[i] >= 0) classes->labels[i] = number[classes->labels[i]];
    io_names_free(context, &classes->names);
    classes->names = sorted.names;
    memset(&sorted.names, 0, sizeof sorted.names);
done:
    io_names_free(context, &sorted.names);
    FREE_ALL(context, names, number);
    return status;
}

static sp_status read_text(sp_context *context, io_source *source, io_classes *classes)
{
    const char *line, *end, *name = io_source_name(source);
    label_reader to = {.context = context, .classes = classes, .labels.file = name};
    int64_t bytes = 0, lines = 0;
    sp_status status;
    for (;;) {
        TRY(io_source_line(source, &line, &end, &bytes));
        if (!line) break;
        lines++;
        if (io_trim_line(&line, &end) || io_is_missing_class(line, end)) TRY(read_label(&to, lines, line, end));
        else to.empty += line == end;
    }
    to.named = to.named || to.first[0];
    TRY(settle_first(&to));
    if (classes->nodes == 0) TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: no labels; write one a line", name));
    classes->names = to.labels.list.names;
    memset(&to.labels.list.names, 0, sizeof to.labels.list.names);
    /* A heading may be none. */
    if (to.rows > 2 && to.rows + 1 >= to.known && classes->names.count == to.known)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT,
                    "%s: no two lines are the same, as in a table of nodes and classes; call the column of nodes id, "
                    "or write the class alone, in the order of the nodes", name));
    if (to.named) TRY(io_sort_classes(context, classes));
done:
    io_labels_free(context, &to.labels);
    return status;
}

/* ---- arrays -------------------------------------------------------------------------------------------- */

/* Element `i` of an array of numbers; whole ones beyond 2^53 are no classes, rounded or not. */
static double number_at(const io_array *array, int64_t i)
{
    switch (array->type) {
    case IO_F32: return (double)((const float *)array->values)[i];
    case IO_F64: return ((const double *)array->values)[i];
    default: return (double)((const int64_t *)array->values)[i];
    }
}

static sp_status take_labels(sp_context *context, const char *path, io_array *array, io_classes *classes)
{
    sp_status status = SP_OK;
    if (array->type == IO_F16) status = io_array_to_f32(context, path, array);
    else if (array->type != IO_F32 && array->type != IO_F64) status = io_array_to_i64(context, path, array);
    if (status != SP_OK) return status;
    status = sp_alloc(context, array->count, sizeof *classes->labels, (void **)&classes->labels);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < array->count; i++) {
        const double number = number_at(array, i);
        int32_t *label = &classes->labels[i];
        if (!io_class_of_number(number, label))
            return sp_fail(context, SP_ERROR_ARGUMENT, "%s: element %lld (from 0) is not a class (got \"%.9g\"); %s",
                           path, (long long)i, number, io_class_remedy(number));
        if (*label >= classes->classes) classes->classes = (int64_t)*label + 1;
    }
    classes->nodes = array->count;
    return SP_OK;
}

/* A row a node of 0 and 1. */
static sp_status take_targets(sp_context *context, const char *path, const float *values, int64_t nodes,
                              int64_t count, io_classes *classes)
{
    if (count > IO_MOST_CLASSES)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld classes; at most 65536 are read", path,
                       (long long)count);
    sp_status status = sp_alloc(context, nodes * count, 1, (void **)&classes->targets);
    if (status != SP_OK) return status;
    for (int64_t e = 0; e < nodes * count; e++) {
        if (values[e] != 0 && values[e] != 1)
            return sp_fail(context, SP_ERROR_ARGUMENT,
                           "%s: row %lld (from 0) has a number other than 0 and 1; 1 is for a class that it has",
                           path, (long long)(e / count));
        classes->targets[e] = values[e] != 0;
    }
    classes->nodes = nodes;
    classes->classes = count;
    return SP_OK;
}

sp_status io_make_classes(sp_context *context, const char *name, io_array *array, io_classes *classes)
{
    sp_status status;
    memset(classes, 0, sizeof *classes);
    if (array->dimensions == 1 || (array->dimensions == 2 && array->shape[1] == 1)) {
        status = take_labels(context, name, array, classes);
    } else if (array->dimensions == 2) {
        status = io_array_to_f32(context, name, array);
        if (status == SP_OK)
            status = take_targets(context, name, array->values, array->shape[0], array->shape[1], classes);
    } else {
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %d dimensions; labels have one, several classes a node two",
                         name, array->dimensions);
    }
    if (status != SP_OK) io_classes_free(context, classes);
    return status;
}

static sp_status read_npy(sp_context *context, const char *path, const volatile int *interrupt, io_classes *classes)
{
    io_array array;
    sp_status status = io_read_npy(context, path, interrupt, &array);
    if (status == SP_OK) status = io_make_classes(context, path, &array, classes);
    io_array_free(context, &array);
    return status;
}

static sp_status read_mtx(sp_context *context, io_source *source, const volatile int *interrupt, io_classes *classes)
{
    const char *path = io_source_name(source);
    io_mtx_numbers m;
    float *values = NULL;
    sp_status status = io_read_mtx_numbers(context, source, interrupt, &m);
    if (status != SP_OK) return status;
    const io_graph *g = &m.graph;
    /* A matrix of classes is nearly dense; other files that claim so much are refused. */
    if (m.cols > IO_MOST_CLASSES || m.rows * m.cols / 64 > g->bytes + (1 << 20))
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld classes for %lld nodes; is this the file of labels?",
                    path, (long long)m.cols, (long long)m.rows));
    TRY(sp_calloc(context, m.rows * m.cols, sizeof *values, (void **)&values));
    for (int64_t e = 0; e < g->arcs; e++) {
        const int64_t row = m.array ? g->tails[e] % m.rows : g->heads[e];
        const int64_t col = m.array ? g->tails[e] / m.rows : g->tails[e];
        values[row * m.cols + col] = (float)io_arc_weight(g, e);
    }
    if (m.array && m.cols == 1) { /* as an array of NumPy with one column */
        io_array labels = {.type = IO_F32, .count = m.rows, .values = values};
        status = take_labels(context, path, &labels, classes);
    } else status = take_targets(context, path, values, m.rows, m.cols, classes);
done:
    sp_free(context, values);
    io_graph_free(context, &m.graph);
    return status;
}

/* ---- all ----------------------------------------------------------------------------------------------- */

sp_status io_read_classes(sp_context *context, const char *path, const volatile int *interrupt, io_classes *classes)
{
    io_content content;
    io_source *source;
    memset(classes, 0, sizeof *classes);
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    TRY(io_detect_content(source, &content));
    switch (content) {
    case IO_CONTENT_NPY: status = read_npy(context, path, interrupt, classes); break;
    case IO_CONTENT_MTX: status = read_mtx(context, source, interrupt, classes); break;
    case IO_CONTENT_TEXT: status = read_text(context, source, classes); break;
    case IO_CONTENT_NPZ:
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: an archive of arrays; save the labels as .npy", path);
        break;
    }
done:
    io_source_close(source);
    if (status != SP_OK) io_classes_free(context, classes);
    return status;
}

void io_classes_free(sp_context *context, io_classes *classes)
{
    FREE_ALL(context, classes->labels, classes->targets);
    io_names_free(context, &classes->names);
    memset(classes, 0, sizeof *classes);
}
