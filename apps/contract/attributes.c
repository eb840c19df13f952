/* Attributes of nodes: a table of them, combined by group for --node-output, and the column that weighs nodes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static const char *const words[] = {"sum", "mean", "min", "max", "median", "first", "mode", "count", NULL};
static const double MOST_WHOLE = 9007199254740992.0; /* 2^53: whole sums are exact up to here */

#define mistake(...) usage_mistake("contract", __VA_ARGS__)

/* ---- rules ---------------------------------------------------------------------------------------------- */

/* A part of the text between commas: a rule, of a column if it names one. A name in double quotes may hold commas. */
typedef struct rule_part {
    const char *column; /* NULL: of all that it fits */
    int column_length;
    int rule; /* -1: unknown */
    const char *text;
    int length;
} rule_part;

/* Takes the part at *at, which becomes NULL behind the last. */
static rule_part take_part(const char **at)
{
    const char *text = *at, *quote = *text == '"' ? strchr(text + 1, '"') : NULL;
    const bool quoted = quote && quote[1] == '=';
    const char *end = strchr(quoted ? quote : text, ',');
    rule_part part = {.text = text, .length = (int)(end ? end - text : (int64_t)strlen(text)), .rule = -1};
    const char *stop = text + part.length, *equals = quoted ? quote + 1 : stop, *word = text;
    while (!quoted && equals > text && *equals != '=') equals--;
    if (equals > text) {
        part.column = text + quoted;
        part.column_length = (int)(equals - text) - 2 * quoted;
        word = equals + 1;
    }
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == (size_t)(stop - word) && memcmp(words[i], word, (size_t)(stop - word)) == 0)
            part.rule = i;
    *at = end ? end + 1 : NULL;
    return part;
}

/* Whether texts can have it, too. */
static bool is_for_texts(int rule) { return rule >= ATTRIBUTE_FIRST; }

/* Whether both are rules of one column, or of all numbers, or of all texts. */
static bool contradict(const rule_part *a, const rule_part *b)
{
    if (!a->column != !b->column) return false;
    if (!a->column) return is_for_texts(a->rule) == is_for_texts(b->rule);
    return a->column_length == b->column_length && memcmp(a->column, b->column, (size_t)a->column_length) == 0;
}

bool contract_check_rules(const char *text)
{
    for (const char *at = text; at;) {
        const rule_part part = take_part(&at);
        if (part.rule < 0)
            return mistake("--combine-attributes takes sum, mean, min, max, median, first, mode, count, and "
                           "COLUMN=RULE, with \"COLUMN\" if it holds a comma (got \"%.*s\")", part.length < 40
                           ? part.length : 40,
                           part.text);
        for (const char *before = text; before < part.text;) {
            const rule_part other = take_part(&before);
            if (contradict(&other, &part))
                return mistake("--combine-attributes has two rules for the same: \"%.*s\" and \"%.*s\"",
                               other.length < 40 ? other.length : 40, other.text, part.length < 40 ? part.length : 40,
                               part.text);
        }
    }
    return true;
}

static sp_status find_column(const contract_job *job, const char *name, int length, int64_t *column)
{
    const io_names *headings = &job->attributes.headings;
    char there[IO_LISTED];
    for (*column = 0; *column < headings->count; ++*column)
        if (io_name_length(headings, *column) == (size_t)length &&
            memcmp(io_name(headings, *column), name, (size_t)length) == 0)
            return SP_OK;
    return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: no column \"%.*s\" besides that of the nodes; there are: %s",
                   job->options->attributes, length < 40 ? length : 40, name, io_names_list(headings, there));
}

static bool fits(const io_attribute *column, int rule) { return !column->is_text || is_for_texts(rule); }

/* Sets the rule of the column that a part names, or of all columns that it fits. */
static sp_status apply_part(contract_job *job, const rule_part *part)
{
    const io_node_table *table = &job->attributes;
    const char *file = job->options->attributes;
    for (int64_t c = 0; !part->column && c < table->columns; c++)
        if (fits(&table->column[c], part->rule)) job->rules[c] = (contract_attribute_rule)part->rule;
    if (!part->column) return SP_OK;
    int64_t c;
    const sp_status status = find_column(job, part->column, part->column_length, &c);
    if (status != SP_OK) return status;
    if (!fits(&table->column[c], part->rule))
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: some values of the column \"%.*s\" are not numbers, and have no %s: give first, mode or "
                       "count",
                       file, part->column_length < 40 ? part->column_length : 40, part->column, words[part->rule]);
    job->rules[c] = (contract_attribute_rule)part->rule;
    return SP_OK;
}

static sp_status find_rules(contract_job *job)
{
    const io_node_table *table = &job->attributes;
    sp_status status;
    TRY(sp_alloc(job->host, table->columns, sizeof *job->rules, (void **)&job->rules));
    for (int64_t c = 0; c < table->columns; c++)
        job->rules[c] = table->column[c].is_text ? ATTRIBUTE_MODE : ATTRIBUTE_MEAN;
    for (int strength = 0; strength < 3; strength++) /* rules of columns are the strongest, then those of numbers */
        for (const char *at = job->options->attribute_rules; at;) {
            const rule_part part = take_part(&at);
            if ((part.column ? 2 : !is_for_texts(part.rule)) == strength) TRY(apply_part(job, &part));
        }
done:
    return status;
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static sp_status refuse_weight(const contract_job *job, int64_t node)
{
    short_name name;
    return sp_fail(job->host, SP_ERROR_ARGUMENT,
                   "%s: the column \"%.40s\" has no whole number from 0 to 2^53 for node %s; write its weight",
                   job->options->attributes, job->options->node_weight, contract_short_node(job, node, name));
}

static sp_status take_weights(contract_job *job)
{
    const contract_options *o = job->options;
    io_graph *in = &job->input;
    int64_t c;
    if (in->node_weights)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: its nodes have weights: leave --node-weight out", o->graph);
    sp_status status = find_column(job, o->node_weight, (int)strlen(o->node_weight), &c);
    if (status != SP_OK) return status;
    const io_attribute *column = &job->attributes.column[c];
    status = sp_alloc(job->host, job->g.rows, sizeof *in->node_weights, (void **)&in->node_weights);
    in->constraints = 1;
    for (int64_t i = 0; status == SP_OK && i < job->g.rows; i++) {
        const double weight = column->values[i];
        if (column->is_text || !(weight >= 0 && weight <= MOST_WHOLE) || weight != floor(weight))
            return refuse_weight(job, i);
        in->node_weights[i] = (int64_t)weight;
    }
    return status;
}

/* What may be a mistake in the table: nodes without a row, and columns in which a word stands among numbers. */
static void notice_gaps(contract_job *job)
{
    const io_node_table *table = &job->attributes;
    const char *file = job->options->attributes;
    char without[COUNTED_TEXT], all[COUNTED_TEXT];
    if (table->rows < job->g.rows)
        notice_line(&job->line, "%s: no row for %s of %s", file, show_count(job->g.rows - table->rows, without),
                    counted(job->g.rows, "node", all));
    for (int64_t c = 0; c < table->columns; c++) {
        const int64_t node = table->column[c].odd;
        if (node < 0) continue;
        const int64_t text = (int64_t)table->column[c].values[node];
        const size_t length = io_name_length(&table->texts, text);
        short_name name;
        notice_line(&job->line, "%s: the column \"%.*s\" is one of texts, because node %s has \"%.*s\"", file,
                    (int)io_name_length(&table->headings, c), io_name(&table->headings, c),
                    contract_short_node(job, node, name), (int)(length < 40 ? length : 40),
                    io_name(&table->texts, text));
    }
}

sp_status contract_read_attributes(contract_job *job)
{
    const contract_options *o = job->options;
    const io_node_options reading = {.node_column = o->node_column, .skip_unknown = o->unknown == UNKNOWN_DROP,
                                     .interrupt = &interrupt_signal};
    sp_status status;
    show_line(&job->line, "reading %s", o->attributes);
    may_block = 1;
    status = io_read_node_table(job->host, o->attributes, &job->input, &reading, &job->attributes);
    may_block = 0;
    if (status == SP_OK) status = find_rules(job);
    if (status == SP_OK && o->node_weight) status = take_weights(job);
    if (status == SP_OK) notice_gaps(job);
    return status;
}

/* ---- combining ------------------------------------------------------------------------------------------ */

typedef struct member {
    int32_t group;
    double value;
    int64_t node;
} member;

static int by_group_and_value(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The nodes that have a group and a value, sorted by these. */
static sp_status sort_members(const contract_job *job, const double *values, member **members, int64_t *count)
{
    const int32_t *labels = job->labelling.labels;
    member *list;
    const sp_status status = sp_alloc(job->host, job->g.rows, sizeof *list, (void **)&list);
    if (status != SP_OK) return status;
    *count = 0;
    for (int64_t i = 0; i < job->g.rows; i++)
        if (labels[i] >= 0 && !isnan(values[i])) list[(*count)++] = (member){labels[i], values[i], i};
    qsort(list, (size_t)*count, sizeof *list, by_group_and_value);
    *members = list;
    return SP_OK;
}

/* The value in the middle of each group, or the mean of the two there. */
static sp_status find_medians(const contract_job *job, const double *values, double *result)
{
    member *list;
    int64_t count;
    const sp_status status = sort_members(job, values, &list, &count);
    if (status != SP_OK) return status;
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && list[end].group == list[i].group;) end++;
        const double low = list[i + (end - i - 1) / 2].value, high = list[i + (end - i) / 2].value;
        result[list[i].group] = low == high ? low : low / 2 + high / 2;
    }
    sp_free(job->host, list);
    return SP_OK;
}

/* The most frequent value of each group; of several that which comes first. */
static sp_status find_modes(const contract_job *job, const double *values, double *result)
{
    member *list;
    int64_t count;
    const sp_status status = sort_members(job, values, &list, &count);
    if (status != SP_OK) return status;
    for (int64_t i = 0, end, most = 0, first = 0; i < count; i = end) {
        for (end = i; end < count && list[end].group == list[i].group && list[end].value == list[i].value;) end++;
        if (i == 0 || list[i].group != list[i - 1].group) most = 0;
        if (end - i < most || (end - i == most && list[i].node > first)) continue;
        most = end - i;
        first = list[i].node;
        result[list[i].group] = list[i].value;
    }
    sp_free(job->host, list);
    return SP_OK;
}

static double join(contract_attribute_rule rule, double kept, double value)
{
    if (isnan(kept)) return value;
    switch (rule) {
    case ATTRIBUTE_MIN: return value < kept ? value : kept;
    case ATTRIBUTE_MAX: return value > kept ? value : kept;
    case ATTRIBUTE_FIRST: return kept;
    default: return kept + value;
    }
}

/* In the order of the nodes; groups without a value have NaN. */
static sp_status combine_column(const contract_job *job, int64_t c, double *result)
{
    const double *values = job->attributes.column[c].values;
    const int32_t *labels = job->labelling.labels;
    const contract_attribute_rule rule = job->rules[c];
    int64_t *counts = NULL;
    bool whole = true, vast = false;
    sp_status status;
    for (int64_t p = 0; p < job->groups; p++) result[p] = NAN;
    if (rule == ATTRIBUTE_MODE) return find_modes(job, values, result);
    if (rule == ATTRIBUTE_MEDIAN) return find_medians(job, values, result);
    TRY(sp_calloc(job->host, job->groups, sizeof *counts, (void **)&counts));
    for (int64_t i = 0; i < job->g.rows; i++) {
        if (labels[i] < 0 || isnan(values[i])) continue;
        double *to = &result[labels[i]];
        *to = join(rule, *to, values[i]);
        counts[labels[i]]++;
        whole = whole && values[i] == floor(values[i]);
        vast = vast || fabs(*to) > MOST_WHOLE;
    }
    if (rule == ATTRIBUTE_SUM && whole && vast)
        TRY(sp_fail(job->host, SP_ERROR_OVERFLOW,
                    "%s: the column \"%.*s\" sums to more than 2^53, beyond which whole sums are not exact; scale it "
                    "down",
                    job->options->attributes, (int)io_name_length(&job->attributes.headings, c),
                    io_name(&job->attributes.headings, c)));
    for (int64_t p = 0; rule == ATTRIBUTE_MEAN && p < job->groups; p++) result[p] /= (double)counts[p];
    for (int64_t p = 0; rule == ATTRIBUTE_COUNT && p < job->groups; p++) result[p] = (double)counts[p];
done:
    sp_free(job->host, counts);
    return status;
}

sp_status contract_combine_attributes(const contract_job *job, double ***columns)
{
    const int64_t count = job->attributes.columns;
    sp_status status;
    TRY(sp_calloc(job->host, count, sizeof **columns, (void **)columns));
    for (int64_t c = 0; c < count; c++) {
        TRY(sp_alloc(job->host, job->groups, sizeof ***columns, (void **)&(*columns)[c]));
        TRY(combine_column(job, c, (*columns)[c]));
    }
done:
    return status;
}

void contract_free_attributes(const contract_job *job, double **columns)
{
    for (int64_t c = 0; columns && c < job->attributes.columns; c++) sp_free(job->host, columns[c]);
    sp_free(job->host, columns);
}

/* ---- writing -------------------------------------------------------------------------------------------- */

void contract_put_attribute_headings(const contract_job *job, io_output *out)
{
    const io_names *headings = &job->attributes.headings;
    for (int64_t c = 0; c < job->attributes.columns; c++) {
        io_output_string(out, "\t");
        io_output_bytes(out, io_name(headings, c), io_name_length(headings, c));
        io_output_string(out, "_");
        io_output_string(out, words[job->rules[c]]);
    }
}

void contract_put_attributes(const contract_job *job, io_output *out, double *const *columns, int64_t group)
{
    const io_names *texts = &job->attributes.texts;
    for (int64_t c = 0; c < job->attributes.columns; c++) {
        const double value = columns[c][group];
        io_output_string(out, "\t");
        if (isnan(value)) {
            io_output_string(out, "NA");
        } else if (job->attributes.column[c].is_text && job->rules[c] != ATTRIBUTE_COUNT) {
            const int64_t text = (int64_t)value;
            io_output_bytes(out, io_name(texts, text), io_name_length(texts, text));
        } else {
            io_output_number(out, value);
        }
    }
}
