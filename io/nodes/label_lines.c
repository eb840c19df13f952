/* Label files: which group each node of a graph belongs to.
 *
 *   list       LABEL a line, in the order of the nodes; where nodes are named by numbers, in the order of these, as an
 *              edge list has no order but that in which lines name nodes
 *   pairs      NODE LABEL [WEIGHT] a line
 *   clusters   NODE NODE... a line, a line a group, as mcl writes clusters of labels
 *   native     mcl's matrix with a column a cluster
 * Fields are separated by tabs in lines that hold one, so that names may contain blanks, else by blanks. Empty lines
 * and lines that begin with # are skipped. Labels of lists and pairs are whole numbers, counted from `base`, or names,
 * if the first is none; -1, NA, nan and NaN are no label.
 *
 * The file is held in memory and gone over twice only if a node turns out to be in several groups, or to have a
 * weight: then memberships are collected, otherwise a label a node is all there is.
 */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/search.h"
#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "nodes/labelling.h"
#include "nodes/nodes.h"
#include "text/field.h"
#include "text/number.h"
#include "text/words.h"

enum { PAIR_FIELDS = 3, TOGETHER = 16 };

typedef struct field {
    const char *begin, *end;
} field;

/* ---- words ---------------------------------------------------------------------------------------------- */

static sp_status fail(const labeller *l, const char *what, field word, const char *remedy)
{
    return io_fail_line(l->context, l->name, l->line, what, word.begin, word.end, remedy);
}

/* The next line that is neither empty nor a comment, without blanks around it; false at the end of the file. */
static bool next_line(labeller *l, const char **at, field *line)
{
    const char *file_end = l->bytes + l->size;
    while (*at < file_end) {
        const char *begin = *at, *end = memchr(begin, '\n', (size_t)(file_end - begin) + 1);
        *at = end + 1;
        l->line++;
        *line = (field){begin, end};
        if (io_trim_line(&line->begin, &line->end)) return true;
    }
    return false;
}

/* Fast path: the next line if it is a number of at most nine digits, as most lines of lists are. Takes a quarter of the
 * time of the general path. */
static bool next_number(labeller *l, const char **at, int64_t *number)
{
    const char *digit = *at;
    if (digit >= l->bytes + l->size) return false;
    for (*number = 0; io_is_digit(*digit) && digit - *at < 10; digit++)
        *number = 10 * *number + (*digit - '0');
    if (*digit != '\n' || digit == *at || digit - *at > 9) return false;
    *at = digit + 1;
    l->line++;
    return true;
}

/* The next field of a line. */
static bool next_field(const char **at, const char *end, bool tabs, field *word)
{
    const char *begin = io_skip_blanks(*at, end), *stop;
    if (begin == end) return false;
    if (tabs) {
        stop = memchr(begin, '\t', (size_t)(end - begin));
        if (!stop) stop = end;
        *word = (field){begin, stop};
        io_trim_line(&word->begin, &word->end);
    } else {
        stop = io_skip_word(begin, end);
        *word = (field){begin, stop};
    }
    *at = stop;
    return true;
}

static bool has_tab(field line) { return memchr(line.begin, '\t', (size_t)(line.end - line.begin)) != NULL; }

static bool is_whole(field word)
{
    if (word.begin < word.end && (*word.begin == '-' || *word.begin == '+')) word.begin++;
    if (word.begin == word.end) return false;
    for (; word.begin < word.end; word.begin++)
        if (*word.begin < '0' || *word.begin > '9') return false;
    return true;
}

/* Whether the field says that a node has no label: clustering programs write -1, tables of data the others. */
static bool is_no_label(field label)
{
    static const char *const words[] = {"-1", "NA", "nan", "NaN"};
    const size_t length = (size_t)(label.end - label.begin);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (length == strlen(words[i]) && memcmp(label.begin, words[i], length) == 0) return true;
    return false;
}

/* ---- nodes ---------------------------------------------------------------------------------------------- */

/* The node that mcl would give this id, or -1. */
int64_t io_node_of_id(const io_graph *graph, int64_t id)
{
    if (!graph->ids) return id < graph->nodes ? id : -1;
    const int64_t found = lower_bound_i64(graph->ids, 0, graph->nodes, id);
    return found < graph->nodes && graph->ids[found] == id ? found : -1;
}

int64_t io_find_node(const io_graph *graph, const io_labels *index, const char *word, const char *end)
{
    int64_t id;
    const size_t length = (size_t)(end - word);
    if (graph->names.count > 0) return io_labels_find(index, word, length, io_label_hash(word, length));
    if (!io_parse_index(word, end, INT32_MAX, &id)) return -1;
    return id < graph->first ? -1 : io_node_of_id(graph, id - graph->first);
}

const char *io_node_remedy(const io_graph *graph, const char *word, const char *end)
{
    int64_t id;
    if (graph->names.count > 0) return "write its names (--unknown drop passes over others)";
    if (!graph->ids && graph->format != IO_NATIVE && io_parse_index(word, end, INT32_MAX, &id)) {
        if (id == 0 && graph->first == 1)
            return "its nodes are numbered from 1; give --node-base 0 if this file counts from 0";
        if (id == graph->nodes && graph->first == 0)
            return "its nodes are numbered from 0; give --node-base 1 if this file counts from 1";
    }
    return "write its numbers as the graph's file has them (--unknown drop passes over others)";
}

static int64_t find_node(const labeller *l, field word)
{
    return io_find_node(l->graph, &l->nodes, word.begin, word.end);
}

/* ---- headings ------------------------------------------------------------------------------------------- */

static bool is_number(field word)
{
    double number;
    return io_parse_decimal(word.begin, word.end, &number) == word.end;
}

/* Whether the first line of a list is a word and all others are numbers. Sets l->line to its number. */
static bool heads_list(labeller *l, field *heading)
{
    const char *at = l->bytes;
    bool numbers = false;
    field line;
    l->line = 0;
    if (!next_line(l, &at, heading) || is_number(*heading) || is_no_label(*heading)) return false;
    const int64_t first = l->line;
    while (next_line(l, &at, &line)) {
        if (!is_number(line) && !is_no_label(line)) return false;
        numbers = numbers || is_number(line);
    }
    l->line = first;
    return numbers;
}

/* Whether the first line heads rows of nodes: its words are neither nodes nor numbers, the next line begins with a
 * node, and that line has a number, or the first word is "node" or the like. Sets l->line to its number and `column` to
 * its second word, which is empty where the rows have a field more. */
static bool heads_rows(labeller *l, field *heading, field *column)
{
    const char *at = l->bytes, *in;
    field row, word;
    int64_t words = 0, fields = 0;
    bool numbers = false, named = false;
    l->line = 0;
    if (!next_line(l, &at, heading)) return false;
    const int64_t first = l->line;
    if (!next_line(l, &at, &row)) return false;
    l->line = first;
    *column = (field){heading->end, heading->end};
    for (in = heading->begin; next_field(&in, heading->end, has_tab(*heading), &word); words++) {
        if (is_number(word) || find_node(l, word) >= 0) return false;
        if (words == 0) named = io_is_id_heading(word.begin, word.end);
        if (words == 1) *column = word;
    }
    for (in = row.begin; next_field(&in, row.end, has_tab(row), &word); fields++) {
        if (fields == 0 && find_node(l, word) < 0) return false;
        numbers = numbers || is_number(word);
    }
    if (fields == words + 1) column->begin = column->end;
    return (fields == words || fields == words + 1) && (numbers || named);
}

/* How to go on with a heading whose column of labels has the name `column`, empty if only the line can go. */
static sp_status refuse_heading(const labeller *l, field heading, field column)
{
    char remedy[IO_MESSAGE], name[IO_MESSAGE];
    const long long next = (long long)l->line + 1;
    io_show_token(column.begin, column.end, name, sizeof name);
    const bool whole = (size_t)(column.end - column.begin) == strlen(name); /* nothing is escaped or cut */
    const char *quote = strchr(name, ' ') ? "\"" : "";
    if (column.begin < column.end)
        snprintf(remedy, sizeof remedy, "give --label-column %s%.40s%s, or leave the line out, as tail -n +%lld does",
                 quote, whole ? name : "NAME", quote, next);
    else snprintf(remedy, sizeof remedy, "leave the line out, as tail -n +%lld does", next);
    return fail(l, "this line looks like a heading", heading, remedy);
}

/* What is wrong with a list of too many labels; SP_OK if that is not its heading. */
static sp_status check_list_heading(const labeller *l)
{
    labeller scan = *l;
    field heading;
    if (!l->bytes || !heads_list(&scan, &heading)) return SP_OK;
    return refuse_heading(&scan, heading, io_have_order(l->graph) ? heading : (field){heading.end, heading.end});
}

static sp_status check_row_heading(const labeller *l)
{
    labeller scan = *l;
    field heading, column;
    if (!heads_rows(&scan, &heading, &column) || scan.line != l->line) return SP_OK;
    return refuse_heading(&scan, heading, column);
}

static sp_status alien(const labeller *l, field word)
{
    if (l->options->skip_unknown) return SP_OK;
    const sp_status status = check_row_heading(l);
    if (status != SP_OK) return status;
    return fail(l, l->graph->nodes == 0 ? "the graph has no nodes" : "this is not a node of the graph", word,
                io_node_remedy(l->graph, word.begin, word.end));
}

/* A node's name, which may begin or end in blanks: with those around the word, if there is such a node. */
static field name_at(const labeller *l, field word)
{
    field wide = word;
    if (!l->blanks) return word;
    while (wide.begin > l->bytes && wide.begin[-1] == ' ') wide.begin--;
    while (*wide.end == ' ') wide.end++;
    return find_node(l, wide) >= 0 ? wide : word;
}

/* ---- groups --------------------------------------------------------------------------------------------- */

sp_status io_take_number(labeller *l, int64_t number, const char *label, const char *end, int32_t *group)
{
    if (number < l->base)
        return fail(l, "a label 0 where labels begin at 1", (field){label, end},
                    "number them from 1, or give --base 0");
    l->has_zero = l->has_zero || number == 0;
    *group = (int32_t)(number - l->base);
    if (*group >= l->group_count) l->group_count = (int64_t)*group + 1;
    return SP_OK;
}

sp_status io_find_group(labeller *l, const char *begin, const char *end, int32_t *group)
{
    const field label = {begin, end};
    int64_t number;
    *group = -1;
    if (is_no_label(label)) return SP_OK;
    if (*label.begin == '-' && is_whole(label))
        return fail(l, "the label is negative", label,
                    l->base ? "labels are whole numbers from 1, or names, and -1 where a node has none"
                            : "labels are whole numbers from 0, or names, and -1 where a node has none");
    if (!l->decided) l->named = !is_whole(label);
    l->decided = true;
    if (l->named) {
        const size_t length = (size_t)(label.end - label.begin);
        sp_status status = io_labels_add(l->context, &l->groups, label.begin, length,
                                         io_label_hash(label.begin, length), group);
        l->group_count = l->groups.list.names.count;
        return status;
    }
    if (!is_whole(label))
        return fail(l, "the label is not a whole number, and those before were", label,
                    "write numbers only, or names that are none");
    if (!io_parse_index(label.begin + (*label.begin == '+'), label.end, (int64_t)INT32_MAX - 1 + l->base, &number))
        return fail(l, "the label is too large", label, "labels are below 2147483647");
    return io_take_number(l, number, label.begin, label.end, group);
}

sp_status io_add_member(labeller *l, int64_t node, int32_t group, double weight)
{
    sp_status status = SP_OK;
    if (!l->collect) {
        if (weight != 1) l->weighted = true;
        if (weight != 1 || (l->labels[node] >= 0 && l->labels[node] != group)) l->general = true;
        l->labels[node] = group;
        return SP_OK;
    }
    const int64_t needed = l->count + 1;
    TRY(io_reserve(l->context, l->count, needed, sizeof(int32_t), &l->group_capacity, (void **)&l->member_groups));
    TRY(io_reserve(l->context, l->count, needed, sizeof(int32_t), &l->member_capacity, (void **)&l->members));
    if (l->weighted) {
        TRY(io_reserve(l->context, l->count, needed, sizeof *l->weights, &l->weight_capacity, (void **)&l->weights));
        l->weights[l->count] = weight;
    }
    l->member_groups[l->count] = group;
    l->members[l->count++] = (int32_t)node;
done:
    return status;
}

sp_status io_note_unknown(labeller *l, int64_t group)
{
    sp_status status = SP_OK;
    if (l->collect) return SP_OK; /* noted when the file was read first */
    const int64_t before = l->incomplete_count;
    if (group >= before) {
        TRY(io_reserve(l->context, before, group + 1, 1, &l->incomplete_capacity, (void **)&l->incomplete));
        memset(l->incomplete + before, 0, (size_t)(group + 1 - before));
        l->incomplete_count = group + 1;
    }
    l->incomplete[group] = 1;
    l->unknown++;
done:
    return status;
}

/* ---- the kinds of lines --------------------------------------------------------------------------------- */

static sp_status count_error(const labeller *l, int64_t labels)
{
    return sp_fail(
        l->context, SP_ERROR_ARGUMENT,
        "%s:%lld: %lld labels, but the graph has %lld nodes; write one a line, in the order of the nodes, or "
        "NODE LABEL",
        l->name, (long long)(l->line ? l->line : 1), (long long)labels, (long long)l->graph->nodes);
}

static bool is_numbered(const io_names *names, int64_t node, int64_t *number)
{
    const char *name = io_name(names, node);
    return io_parse_index(name, name + io_name_length(names, node), INT32_MAX, number);
}

/* Their rows, unless all their names are numbers. */
bool io_have_order(const io_graph *graph)
{
    int64_t number;
    if (graph->names.count == 0 || graph->format == IO_NATIVE || io_numbers_from_one(graph->format)) return true;
    if (graph->format != IO_CSR) return graph->format == IO_NPZ || graph->format == IO_GRAPHML;
    for (int64_t i = 0; i < graph->nodes; i++)
        if (!is_numbered(&graph->names, i, &number)) return true;
    return false;
}

/* The smallest and the largest number that names a node, -1 if there are no nodes. */
static sp_status find_range(labeller *l, int64_t *low, int64_t *high)
{
    const io_names *names = &l->graph->names;
    int64_t number;
    *low = INT64_MAX;
    *high = -1;
    for (int64_t i = 0; i < l->graph->nodes; i++) {
        const field name = {io_name(names, i), io_name(names, i) + io_name_length(names, i)};
        if (!is_numbered(names, i, &number))
            return fail(l, "a label a line for nodes that have names", name, "write NODE LABEL a line");
        if (number < *low) *low = number;
        if (number > *high) *high = number;
    }
    return SP_OK;
}

/* What the list counts from: as graph->first says, else 0 if there is a node 0. */
static sp_status find_first(labeller *l, int64_t *first, int64_t *last)
{
    int64_t low;
    sp_status status = find_range(l, &low, last);
    if (status != SP_OK) return status;
    const int64_t line = l->line ? l->line : 1;
    *first = l->graph->first >= 0 ? l->graph->first : low > 0;
    if (low < *first)
        return sp_fail(l->context, SP_ERROR_ARGUMENT, "%s:%lld: the graph has a node 0; give --node-base 0", l->name,
                       (long long)line);
    if (*last - *first != l->list_lines - 1 && (status = check_list_heading(l)) != SP_OK) return status;
    if (*last - *first >= l->list_lines)
        return sp_fail(l->context, SP_ERROR_ARGUMENT,
                       "%s:%lld: %lld labels for nodes that are named by numbers up to %lld; write one for each number "
                       "from %lld on, or NODE LABEL a line",
                       l->name, (long long)line, (long long)l->list_lines, (long long)*last, (long long)*first);
    if (l->graph->first < 0 && *first == 1 && *last < l->list_lines)
        return sp_fail(l->context, SP_ERROR_ARGUMENT,
                       "%s:%lld: %lld labels for nodes that are named from 1 to %lld, or 0 has no edges; give "
                       "--node-base 0 or 1, or write NODE LABEL a line",
                       l->name, (long long)line, (long long)l->list_lines, (long long)*last);
    return SP_OK;
}

/* Nodes that are named by numbers are listed in the order of these. */
sp_status io_order_list(labeller *l)
{
    const io_graph *g = l->graph;
    int64_t number, first, last;
    field line;
    const char *at = l->bytes;
    sp_status status;
    for (l->line = 0; l->bytes && next_line(l, &at, &line);) l->list_lines++;
    TRY(find_first(l, &first, &last));
    TRY(sp_alloc(l->context, l->list_lines, sizeof *l->node_of_line, (void **)&l->node_of_line));
    memset(l->node_of_line, 0xff, (size_t)l->list_lines * sizeof *l->node_of_line);
    for (int64_t i = 0; i < g->nodes; i++) {
        const field name = {io_name(&g->names, i), io_name(&g->names, i) + io_name_length(&g->names, i)};
        is_numbered(&g->names, i, &number);
        if (l->node_of_line[number - first] >= 0)
            return fail(l, "two nodes have names of the same number", name, "write NODE LABEL a line");
        l->node_of_line[number - first] = (int32_t)i;
    }
done:
    return status;
}

static sp_status read_list(labeller *l)
{
    const int64_t lines = l->node_of_line ? l->list_lines : l->graph->nodes;
    const char *at = l->bytes;
    int64_t found = 0, number;
    int32_t group;
    field line;
    sp_status status = SP_OK;
    for (;;) {
        line.begin = at;
        const bool plain = l->decided && !l->named && next_number(l, &at, &number);
        if (plain) line.end = at - 1;
        else if (!next_line(l, &at, &line)) break;
        if (found == lines) {
            TRY(check_list_heading(l));
            return fail(l, "a label more than the graph has nodes", line, "write one a line");
        }
        const int64_t node = l->node_of_line ? l->node_of_line[found] : found;
        found++;
        TRY(plain ? io_take_number(l, number, line.begin, line.end, &group)
                  : io_find_group(l, line.begin, line.end, &group));
        if (node >= 0 && group >= 0) TRY(io_add_member(l, node, group, 1));
    }
    if (found < lines) return count_error(l, found);
done:
    return status;
}

/* A line of a pair, split. */
typedef struct pair_line {
    field line, words[PAIR_FIELDS + 1];
    int count;
    int64_t number;
    uint32_t hash; /* of the node's name */
} pair_line;

static sp_status read_pair(labeller *l, const pair_line *pair)
{
    double weight = 1;
    int32_t group;
    l->line = pair->number;
    if (pair->count < 2 || pair->count > PAIR_FIELDS)
        return fail(l, pair->count < 2 ? "a node without a label" : "too many fields", pair->line,
                    pair->count < 2 ? "write NODE LABEL [WEIGHT], with -1 for no label" : "write NODE LABEL [WEIGHT]");
    const field name = pair->words[0];
    const size_t length = (size_t)(name.end - name.begin);
    const int64_t node =
        l->nodes.slots ? io_labels_find(&l->nodes, name.begin, length, pair->hash) : find_node(l, name);
    if (node < 0) return alien(l, name);
    if (pair->count == PAIR_FIELDS) {
        const field w = pair->words[2];
        if (io_parse_decimal(w.begin, w.end, &weight) != w.end || !(weight >= -DBL_MAX && weight <= DBL_MAX))
            return fail(l, "the weight of a membership is not a number", w, "write NODE LABEL [WEIGHT]");
    }
    sp_status status = io_find_group(l, pair->words[1].begin, pair->words[1].end, &group);
    return status == SP_OK && group >= 0 ? io_add_member(l, node, group, weight) : status;
}

/* Lines are taken TOGETHER, so that the cache misses of finding their nodes overlap. */
static sp_status read_pairs(labeller *l)
{
    pair_line pairs[TOGETHER];
    int32_t ids[TOGETHER];
    const char *at = l->bytes;
    int count = TOGETHER;
    int64_t read = 0;
    sp_status status = SP_OK;
    while (status == SP_OK && count == TOGETHER) {
        l->line = read;
        for (count = 0; count < TOGETHER && next_line(l, &at, &pairs[count].line); count++) {
            pair_line *pair = &pairs[count];
            const bool tabs = has_tab(pair->line);
            const char *in = pair->line.begin;
            pair->number = l->line;
            pair->count = 0;
            while (pair->count <= PAIR_FIELDS && next_field(&in, pair->line.end, tabs, &pair->words[pair->count]))
                pair->count++;
            if (tabs) pair->words[0] = name_at(l, pair->words[0]);
            pair->hash = io_label_hash(pair->words[0].begin, (size_t)(pair->words[0].end - pair->words[0].begin));
            io_labels_prefetch_slot(&l->nodes, pair->hash);
        }
        read = l->line;
        for (int i = 0; i < count; i++) ids[i] = io_labels_prefetch_offset(&l->nodes, pairs[i].hash);
        for (int i = 0; i < count; i++) io_labels_prefetch_name(&l->nodes, ids[i]);
        for (int i = 0; i < count && status == SP_OK; i++) status = read_pair(l, &pairs[i]);
    }
    if (status == SP_OK) l->line = read;
    return status;
}

/* A line without tabs may be one name with blanks. */
static bool next_member(const labeller *l, field line, bool tabs, const char **at, field *word)
{
    const bool whole = l->blanks && !tabs && *at == line.begin && find_node(l, name_at(l, line)) >= 0;
    if (!whole && !next_field(at, line.end, tabs, word)) return false;
    if (whole) *at = line.end;
    if (whole || tabs) *word = name_at(l, whole ? line : *word);
    return true;
}

static sp_status read_cluster(labeller *l, field line)
{
    const bool tabs = has_tab(line);
    const char *at = line.begin;
    field word;
    if (l->group_count == INT32_MAX) return sp_fail(l->context, SP_ERROR_OVERFLOW, "%s: 2^31 groups", l->name);
    const int32_t group = (int32_t)l->group_count++;
    while (next_member(l, line, tabs, &at, &word)) {
        const int64_t node = find_node(l, word);
        sp_status status = node >= 0                ? io_add_member(l, node, group, 1)
                           : l->options->other_graph ? io_note_unknown(l, group)
                                                     : alien(l, word);
        if (status != SP_OK) return status;
    }
    return SP_OK;
}

sp_status io_read_label_lines(labeller *l)
{
    const char *at = l->bytes;
    field line;
    sp_status status = SP_OK;
    l->line = l->group_count = 0;
    if (l->format == IO_LABELS_LIST) return read_list(l);
    if (l->format == IO_LABELS_PAIRS) return read_pairs(l);
    while (status == SP_OK && next_line(l, &at, &line)) status = read_cluster(l, line);
    return status;
}

/* ---- which kind ----------------------------------------------------------------------------------------- */

/* Whether every field names a node and none is repeated: then lines of one or two fields are clusters. */
static bool are_partition(labeller *l)
{
    const char *at = l->bytes;
    bool partition = true;
    field line, word;
    l->line = 0;
    while (partition && next_line(l, &at, &line)) {
        const bool tabs = has_tab(line);
        const char *in = line.begin;
        while (partition && next_member(l, line, tabs, &in, &word)) {
            const int64_t node = find_node(l, word);
            partition = node >= 0 && l->labels[node] < 0;
            if (partition) l->labels[node] = 0;
        }
    }
    memset(l->labels, 0xff, (size_t)l->graph->nodes * sizeof *l->labels);
    return partition;
}

/* Whether the line is a row of a table: its first field, before a comma or semicolon, is a node, and it is not. */
static bool is_row(const labeller *l, field line)
{
    const char separator = io_find_separator(line.begin, line.end), *at = line.begin;
    io_field first;
    if (separator != ',' && separator != ';') return false;
    if (io_take_field(&at, line.end, separator, &first) || !at) return false;
    return find_node(l, (field){first.text, first.end}) >= 0 && find_node(l, line) < 0;
}

sp_status io_refuse_commas(labeller *l)
{
    const char *at = l->bytes;
    field line;
    l->line = 0;
    for (int i = 0; i < 2 && next_line(l, &at, &line); i++)
        if (is_row(l, line))
            return fail(l, "commas between the fields", line,
                        "of a table with a heading give --label-column NAME, else separate them by tabs (--labels list "
                        "if the commas belong to labels)");
    return SP_OK;
}

io_label_format io_find_label_kind(labeller *l)
{
    const char *at = l->bytes;
    bool ones = true, twos = true;
    int64_t number;
    field line, word;
    l->line = 0;
    while (ones || twos) {
        int count = next_number(l, &at, &number);
        if (count == 0) {
            if (!next_line(l, &at, &line)) break;
            const bool tabs = has_tab(line);
            const char *in = line.begin;
            while (count < 3 && next_member(l, line, tabs, &in, &word)) count++;
        }
        ones = ones && count == 1;
        twos = twos && count == 2;
    }
    if (ones) return l->graph->names.count > 0 && are_partition(l) ? IO_LABELS_CLUSTERS : IO_LABELS_LIST;
    if (twos) return are_partition(l) ? IO_LABELS_CLUSTERS : IO_LABELS_PAIRS;
    return IO_LABELS_CLUSTERS;
}
