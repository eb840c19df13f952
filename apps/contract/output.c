/* Writes the graph of groups, and beside it the names of groups, the maps of a hierarchy, figures of each group and a
 * report. All files are written under temporary names first. The graph is renamed last, so that a graph under its own
 * name means that all other files are complete.
 */
#include <string.h>
#include <unistd.h>

#include "job.h"

enum { MAX_OUTPUTS = MAX_LEVELS + 8, TOTAL_MAP = -1 };

/* ---- where ---------------------------------------------------------------------------------------------- */

/* Names beside the output. What belongs to a compressed graph is compressed, too: OUT.gz has OUT.tab.gz. */
static sp_status beside(const contract_job *job, const char *ending, char path[MAX_PATH])
{
    const char *out = job->options->out, *packed = ends_with(out, ".gz") ? ".gz" : "";
    const int stem = (int)(strlen(out) - strlen(packed));
    if (strlen(out) < MAX_PATH && snprintf(path, MAX_PATH, "%.*s%s%s", stem, out, ending, packed) < MAX_PATH)
        return SP_OK;
    return sp_fail(job->host, SP_ERROR_ARGUMENT, "the name of an output is too long");
}

/* The map of a level, or TOTAL_MAP. */
static sp_status map_path(const contract_job *job, int level, bool array, char path[MAX_PATH])
{
    const char *kind = array ? "npy" : "map";
    char ending[32];
    if (level == TOTAL_MAP) snprintf(ending, sizeof ending, ".total.%s", kind);
    else snprintf(ending, sizeof ending, ".level%d.%s", level + 1, kind);
    return beside(job, ending, path);
}

/* Beside a matrix of scipy maps are arrays, unless nodes have names, whose order these would not tell. */
static bool has_arrays(const contract_job *job)
{
    return job->options->to == IO_NPZ && job->input.names.count == 0 && !job->input.ids;
}

/* Formats without names get a file of them, as mcl-gpu -use-tab takes it. */
static bool needs_tab(const contract_options *o) { return o->names && !has_names(o->to); }

static bool mistakes_folder(const contract_options *o, const char *path)
{
    if (!lies_in_folder(path, o->graph)) return false;
    return !usage_mistake("contract", "the output \"%.200s\" lies in the folder that is the input: put it elsewhere",
                          path);
}

static sp_status check_output(contract_job *job, output_list *all, const char *path)
{
    const contract_options *o = job->options;
    job->mistaken = overwrites("contract", path, o->graph) || overwrites("contract", path, o->labels) ||
                    overwrites("contract", path, o->through) || overwrites("contract", path, o->attributes) ||
                    overwrites("contract", path, o->node_weights) ||
                    !add_output(all, "contract", path) ||
                    mistakes_folder(o, path);
    return job->mistaken ? SP_ERROR_ARGUMENT : io_output_check(job->host, path);
}

sp_status contract_check_outputs(contract_job *job)
{
    const contract_options *o = job->options;
    output_list all = {0};
    char path[MAX_PATH];
    sp_status status;
    job->tab = job->tab || needs_tab(o);
    if (o->judge) TRY(check_output(job, &all, "-"));
    if (o->out) TRY(check_output(job, &all, o->out));
    if (o->node_output) TRY(check_output(job, &all, o->node_output));
    if (o->label_output) TRY(check_output(job, &all, o->label_output));
    if (o->refine) TRY(check_output(job, &all, o->refine));
    if (o->report) TRY(check_output(job, &all, o->report));
    if (job->tab) {
        TRY(beside(job, ".tab", path));
        TRY(check_output(job, &all, path));
    }
    for (int k = TOTAL_MAP; o->repeat != REPEAT_NEVER && k < o->levels; k++)
        for (int array = 0; array <= (o->to == IO_NPZ); array++) {
            TRY(map_path(job, k, array, path));
            TRY(check_output(job, &all, path));
        }
done:
    return status;
}

/* Names that labels have, and OUT has none of, go to OUT.tab unasked, unless OUT is a stream. */
sp_status contract_check_tab(contract_job *job)
{
    const contract_options *o = job->options;
    if (job->tab || !o->out || has_names(o->to) || job->labelling.names.count == 0) return SP_OK;
    if (strcmp(o->out, "-") != 0 && (access(o->out, F_OK) != 0 || file_bytes(o->out) >= 0)) {
        job->tab = true;
        return contract_check_outputs(job);
    }
    notice_line(&job->line, "%s: the names of groups are left out, as --to %s has none: give -o a new file, for "
                "OUT.tab, or --to abc, tsv, csv, graphml or bin", output_name(o->out), format_word(o->to));
    return SP_OK;
}

/* ---- names ---------------------------------------------------------------------------------------------- */

/* The first node of each group, -1 for none. */
static void find_first(const contract_job *job, int32_t *first)
{
    const io_labelling *l = &job->labelling;
    for (int64_t p = 0; p < job->groups; p++) {
        const bool member = !l->labels && l->s.row_offsets[p] < l->s.row_offsets[p + 1];
        first[p] = member ? l->s.col_indices[l->s.row_offsets[p]] : -1;
    }
    for (int64_t i = job->g.rows; l->labels && i-- > 0;)
        if (l->labels[i] >= 0) first[l->labels[i]] = (int32_t)i;
}

/* Nodes without labels have numbers behind those of the labels. */
int64_t contract_group_number(const contract_job *job, int64_t group)
{
    const io_labelling *l = &job->labelling;
    const int64_t before = job->old ? job->old[group] : group; /* compaction */
    int64_t number = before;
    if (l->numbers && before < l->groups) number = l->numbers[before];
    else if (l->numbers) number = (int64_t)l->numbers[l->groups - 1] + 1 + before - l->groups;
    return number + job->base;
}

/* What a group is called by. */
enum { BY_LABEL = 1, BY_NODE = 2, BY_NUMBER = 4 };

static sp_status name_group(const contract_job *job, int64_t p, const int32_t *first, int *by, io_name_list *list)
{
    const io_labelling *l = &job->labelling;
    const int64_t before = job->old ? job->old[p] : p;
    char buffer[32];
    const char *name = buffer;
    size_t length;
    if (before < l->names.count) {
        name = io_name(&l->names, before);
        length = io_name_length(&l->names, before);
        *by |= BY_LABEL;
    } else if (first[p] >= 0 && (l->names.count > 0 || job->options->names)) {
        name = contract_node_name(job, first[p], buffer, &length);
        *by |= BY_NODE;
    } else {
        *by |= BY_NUMBER;
        length = (size_t)snprintf(buffer, sizeof buffer, "%lld", (long long)contract_group_number(job, p));
    }
    return io_names_append(job->host, list, name, length);
}

/* Groups of one name would be one group to whoever reads the output. */
static sp_status refuse_namesakes(contract_job *job, const io_names *names, int by)
{
    const char *remedy = "they overlap in their first node: leave --names out";
    if (by & BY_LABEL) remedy = "a node without a label is called as another's label: rename one, or give "
                                "--unlabelled drop";
    else if (by & BY_NUMBER) remedy = "a group without nodes has the number that is a node's name: give --compact";
    int64_t twin;
    const sp_status status = io_names_repeated(job->host, names, &twin);
    if (status != SP_OK || twin < 0) return status;
    const size_t length = io_name_length(names, twin);
    return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: two groups are called \"%.*s\"; %s", job->options->labels,
                   (int)(length < 40 ? length : 40), io_name(names, twin), remedy);
}

sp_status contract_name_groups(contract_job *job)
{
    const contract_options *o = job->options;
    const io_labelling *l = &job->labelling;
    io_name_list list = {0};
    int32_t *first = NULL;
    int by = 0;
    sp_status status = SP_OK;
    if (l->names.count == 0 && !o->names && !job->old && !l->numbers) return SP_OK;
    TRY(sp_alloc(job->host, job->groups, sizeof *first, (void **)&first));
    find_first(job, first);
    for (int64_t p = 0; p < job->groups; p++) TRY(name_group(job, p, first, &by, &list));
    /* Where some groups have names, those called by numbers are empty: a list of edges does not show them. */
    const bool edges_alone = (o->to == IO_ABC || o->to == IO_TSV || o->to == IO_CSV) && !o->node_output;
    const int shown = edges_alone ? by & ~BY_NUMBER : by;
    if ((shown & (shown - 1)) || (shown == BY_NODE && l->s.row_offsets)) TRY(refuse_namesakes(job, &list.names, by));
    job->group_names = list.names;
    memset(&list.names, 0, sizeof list.names);
done:
    io_names_free(job->host, &list.names);
    sp_free(job->host, first);
    return status;
}

const char *contract_group_name(const contract_job *job, int64_t group, char buffer[32], size_t *length)
{
    const io_names *names = &job->group_names;
    if (names->count > 0) {
        *length = io_name_length(names, group);
        return io_name(names, group);
    }
    *length = (size_t)snprintf(buffer, 32, "%lld", (long long)(job->base + group));
    return buffer;
}

const char *contract_short_group(const contract_job *job, int64_t group, short_name text)
{
    char buffer[32];
    size_t length;
    const char *name = contract_group_name(job, group, buffer, &length);
    snprintf(text, sizeof(short_name), "%.*s", (int)(length < 40 ? length : 40), name);
    return text;
}

void contract_put_node(const contract_job *job, io_output *out, int64_t node)
{
    const io_graph *in = &job->input;
    if (in->names.count > 0) io_output_bytes(out, io_name(&in->names, node), io_name_length(&in->names, node));
    else io_output_int(out, in->ids ? in->ids[node] : node + in->first);
}

void contract_put_group(const contract_job *job, io_output *out, int64_t group)
{
    const io_names *names = &job->group_names;
    if (names->count > 0) io_output_bytes(out, io_name(names, group), io_name_length(names, group));
    else io_output_int(out, job->base + group);
}

/* ---- the graph and what belongs to it ------------------------------------------------------------------- */

static sp_status put_graph(contract_job *job, io_output *out)
{
    const contract_options *o = job->options;
    const io_write_options writing = {.format = o->to,
                                      .undirected = job->c_undirected,
                                      .names = &job->group_names,
                                      .first = job->base,
                                      .constraints = job->constraints,
                                      .node_weights = job->group_weights,
                                      .node_sizes = job->group_sizes,
                                      .whole = io_has_blocks(o->to) ? &job->head : NULL};
    const sp_status status = job->team.ranks ? contract_put_together(job, out, &writing)
                                             : io_put_graph(job->host, out, &job->c, &writing);
    if (status != SP_ERROR_ARGUMENT) return status;
    char why[512];
    snprintf(why, sizeof why, "%s", sp_last_error(job->host));
    return sp_fail(job->host, status, "%s: %s", o->out, why);
}

static void put_tab(const contract_job *job, io_output *out)
{
    for (int64_t p = 0; p < job->groups; p++) {
        io_output_int(out, p);
        io_output_string(out, "\t");
        contract_put_group(job, out, p);
        io_output_string(out, "\n");
    }
}

/* Columns that only graphs with weights or sizes of nodes have. */
static void put_node_headings(const contract_job *job, io_output *out)
{
    const int constraints = job->input.node_weights ? job->constraints : 0;
    if (constraints == 1) io_output_string(out, "\tweight");
    for (int k = 0; constraints > 1 && k < constraints; k++) io_output_format(out, "\tweight%d", k + 1);
    if (job->group_sizes) io_output_string(out, "\tsize_sum");
}

static void put_node_sums(const contract_job *job, io_output *out, int64_t group)
{
    const int constraints = job->input.node_weights ? job->constraints : 0;
    for (int k = 0; k < constraints; k++) {
        io_output_string(out, "\t");
        io_output_int(out, job->group_weights[group * constraints + k]);
    }
    if (!job->group_sizes) return;
    io_output_string(out, "\t");
    io_output_int(out, job->group_sizes[group]);
}

static sp_status put_nodes(const contract_job *job, io_output *out)
{
    contraction_group *group = job->figures;
    double **columns = NULL;
    sp_status status = SP_OK;
    if (!group) TRY(sp_alloc(job->host, job->groups, sizeof *group, (void **)&group));
    if (!job->figures) TRY(contraction_groups(job->host, &job->g, job->labelling.labels, job->groups, group));
    TRY(contract_combine_attributes(job, &columns));
    io_output_string(out, "group\tsize\tinternal\tcut\tconductance");
    put_node_headings(job, out);
    contract_put_attribute_headings(job, out);
    io_output_string(out, "\n");
    for (int64_t p = 0; p < job->groups; p++) {
        const double numbers[] = {group[p].internal, group[p].cut, group[p].conductance};
        contract_put_group(job, out, p);
        io_output_string(out, "\t");
        io_output_int(out, group[p].size);
        for (int i = 0; i < 3; i++) {
            io_output_string(out, "\t");
            io_output_number(out, numbers[i]);
        }
        put_node_sums(job, out, p);
        contract_put_attributes(job, out, columns, p);
        io_output_string(out, "\n");
    }
done:
    contract_free_attributes(job, columns);
    if (group != job->figures) sp_free(job->host, group);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------------------ */

typedef struct output_set {
    io_output *open[MAX_OUTPUTS];
    int count;
} output_set;

static sp_status open_next(contract_job *job, output_set *all, const char *path, io_output **out)
{
    sp_status status = io_output_open(job->host, path, out);
    if (status != SP_OK) return status;
    all->open[all->count++] = *out;
    return SP_OK;
}

/* ---- maps of a hierarchy --------------------------------------------------------------------------------- */

/* Groups have names in the maps if the nodes of OUT have; these are the nodes of the input that come first in them. */
static bool has_named_maps(const contract_options *o) { return o->names && has_names(o->to); }

/* An element a node: its row in the matrix of the next level. */
static void put_map_array(io_output *out, const int32_t *map, int64_t nodes)
{
    const io_array array = {.type = IO_I32, .dimensions = 1, .shape = {nodes}, .count = nodes,
                            .item_size = sizeof *map, .values = (void *)map};
    io_put_npy(out, &array);
}

/* What a map calls a node of a level: the node of the input that is first in it, or its number. */
static void put_member(const contract_job *job, io_output *out, const int32_t *first, int64_t node)
{
    if (first) contract_put_node(job, out, first[node]);
    else io_output_int(out, job->base + node);
}

/* NODE<TAB>GROUP a line; the groups of a level are the nodes of the next, and those of the first are the input's.
 * `from` and `to` have the first nodes of both if maps have names. */
static sp_status put_map(contract_job *job, output_set *all, int level, const int32_t *map, int64_t nodes,
                         const int32_t *from, const int32_t *to)
{
    char path[MAX_PATH];
    io_output *out;
    sp_status status;
    TRY(map_path(job, level, has_arrays(job), path));
    TRY(open_next(job, all, path, &out));
    if (has_arrays(job)) put_map_array(out, map, nodes);
    for (int64_t i = 0; !has_arrays(job) && i < nodes; i++) {
        if (level > 0) put_member(job, out, from, i);
        else contract_put_node(job, out, i);
        io_output_string(out, "\t");
        put_member(job, out, to, map[i]);
        io_output_string(out, "\n");
    }
done:
    return status;
}

static sp_status check_map_names(const contract_job *job, const int32_t *first, int64_t groups)
{
    label_words words = {0};
    sp_status status = SP_OK;
    for (int64_t p = 0; status == SP_OK && p < groups; p++) {
        char buffer[32];
        size_t length;
        const char *name = contract_node_name(job, first[p], buffer, &length);
        status = contract_check_word(job, job->options->out, name, length, "leave --names out", &words);
    }
    return status;
}

/* The first nodes of groups, from those of their members. */
static void find_first_nodes(const contraction_level *level, const int32_t *from, int32_t *to)
{
    for (int64_t p = 0; p < level->groups; p++) to[p] = INT32_MAX;
    for (int64_t i = 0; i < level->nodes; i++)
        if (from[i] < to[level->map[i]]) to[level->map[i]] = from[i];
}

static sp_status put_maps(contract_job *job, output_set *all)
{
    const contraction_hierarchy *h = &job->hierarchy;
    const int64_t nodes = job->g.rows;
    int32_t *from = NULL, *to = NULL;
    sp_status status = SP_OK;
    if (has_named_maps(job->options)) {
        TRY(sp_alloc(job->host, nodes, sizeof *from, (void **)&from));
        TRY(sp_alloc(job->host, nodes, sizeof *to, (void **)&to));
        for (int64_t i = 0; i < nodes; i++) from[i] = (int32_t)i;
        if (h->count > 0) find_first_nodes(&h->level[0], from, to);
        TRY(check_map_names(job, h->count > 0 ? to : from, h->count > 0 ? h->level[0].groups : nodes));
        find_first(job, to);
    }
    TRY(put_map(job, all, TOTAL_MAP, job->labelling.labels, nodes, NULL, to));
    for (int k = 0; k < h->count; k++) {
        int32_t *const before = from;
        if (from) find_first_nodes(&h->level[k], from, to);
        TRY(put_map(job, all, k, h->level[k].map, h->level[k].nodes, from, to));
        from = to;
        to = before;
    }
done:
    FREE_ALL(job->host, from, to);
    return status;
}

/* ---- everything ------------------------------------------------------------------------------------------- */

/* Writes everything but does not let it appear. */
static sp_status write_all(contract_job *job, output_set *all)
{
    const contract_options *o = job->options;
    const double began = wall_seconds();
    char path[MAX_PATH];
    io_output *out;
    sp_status status = SP_OK;
    if (o->out) {
        TRY(open_next(job, all, o->out, &out));
        show_line(&job->line, "writing %s", o->out);
        TRY(put_graph(job, out));
    }
    if (o->judge) {
        TRY(open_next(job, all, "-", &out));
        contract_put_judgement(job, out);
    }
    if (job->tab) {
        TRY(beside(job, ".tab", path));
        TRY(open_next(job, all, path, &out));
        put_tab(job, out);
    }
    if (o->repeat != REPEAT_NEVER) TRY(put_maps(job, all));
    if (o->node_output) {
        TRY(open_next(job, all, o->node_output, &out));
        TRY(put_nodes(job, out));
    }
    if (o->refine || o->label_output) {
        TRY(open_next(job, all, o->refine ? o->refine : o->label_output, &out));
        TRY(contract_put_labels(job, out));
    }
    job->seconds.write = wall_seconds() - began;
    if (o->report) {
        TRY(open_next(job, all, o->report, &out));
        contract_put_report(job, out);
    }
done:
    return status;
}

sp_status contract_write(contract_job *job)
{
    output_set all = {.count = 0};
    may_block = 1;
    const sp_status status = write_all(job, &all);
    return finish_outputs(all.open, all.count, status);
}
