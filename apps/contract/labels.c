/* Labels that are those of a coarse graph's nodes (--through), and labels as a file (--label-output, --refine). */
#include <string.h>

#include "job.h"

/* ---- carried through a map ------------------------------------------------------------------------------- */

static sp_status refuse_several(const contract_job *job, const char *path)
{
    return sp_fail(job->host, SP_ERROR_ARGUMENT,
                   "%s: some nodes are in several groups, or have weights, which --through cannot carry", path);
}

/* The labels of the coarse graph, whose nodes are the groups of the map. Numbers may have gaps. */
static sp_status read_coarse(contract_job *job, const io_label_options *reading, const io_labelling *map)
{
    const contract_options *o = job->options;
    io_graph coarse = {.format = map->names.count > 0 ? IO_ABC : IO_METIS, .nodes = map->groups, .first = map->base,
                       .names = map->names};
    char why[512];
    sp_status status = SP_OK;
    if (map->numbers) status = sp_alloc(job->host, map->groups, sizeof *coarse.ids, (void **)&coarse.ids);
    if (status != SP_OK) return status;
    for (int64_t p = 0; map->numbers && p < map->groups; p++) coarse.ids[p] = map->numbers[p];
    status = io_read_labels(job->host, o->labels, &coarse, reading, &job->labelling);
    sp_free(job->host, coarse.ids);
    if (status == SP_OK) return job->labelling.labels ? SP_OK : refuse_several(job, o->labels);
    if (status != SP_ERROR_ARGUMENT) return status;
    snprintf(why, sizeof why, "%s", sp_last_error(job->host));
    return sp_fail(job->host, status, "%s (the nodes are the groups of %s, by their %s)", why, o->through,
                   map->names.count > 0 ? "names" : "numbers");
}

static sp_status carry(contract_job *job, const io_labelling *map)
{
    io_labelling *l = &job->labelling;
    int32_t *labels;
    const sp_status status = sp_alloc(job->host, job->g.rows, sizeof *labels, (void **)&labels);
    if (status != SP_OK) return status;
    l->unlabelled = 0;
    for (int64_t i = job->g.rows; i-- > 0;) {
        labels[i] = map->labels[i] < 0 ? -1 : l->labels[map->labels[i]];
        if (labels[i] >= 0) continue;
        l->unlabelled++;
        l->first_unlabelled = i;
    }
    sp_free(job->host, l->labels);
    l->labels = labels;
    return SP_OK;
}

sp_status contract_read_through(contract_job *job, const io_label_options *reading)
{
    const io_label_options of_map = {.base = IO_BASE_AUTO, .skip_unknown = reading->skip_unknown, .compact = true,
                                     .interrupt = &interrupt_signal};
    const char *path = job->options->through;
    io_labelling map;
    sp_status status = io_read_labels(job->host, path, &job->input, &of_map, &map);
    if (status != SP_OK) return status;
    TRY(map.labels ? SP_OK : refuse_several(job, path));
    TRY(read_coarse(job, reading, &map));
    TRY(carry(job, &map));
done:
    io_labelling_free(job->host, &map);
    return status;
}

/* ---- as a file ------------------------------------------------------------------------------------------- */

static const char *label_file(const contract_options *o) { return o->refine ? o->refine : o->label_output; }

sp_status contract_check_label_file(const contract_job *job)
{
    const char *path = label_file(job->options);
    if (!path || !is_kind(path, ".npy")) return SP_OK;
    if (job->labelling.names.count > 0 || job->options->names)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: groups have names, and an array has numbers only: give a name "
                                                     "that ends in .csv, or in .tsv", path);
    if (!io_have_order(&job->input))
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: the nodes of %s are known by names and have no order, which an "
                       "array needs: give a name that ends in .csv, or in .tsv", path, job->options->graph);
    return SP_OK;
}

static bool is_none(const char *word)
{
    static const char *const none[] = {"-1", "NA", "nan", "NaN"};
    bool is = false;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) is = is || strcmp(word, none[i]) == 0;
    return is;
}

sp_status contract_check_word(const contract_job *job, const char *path, const char *name, size_t length,
                              const char *remedy, label_words *words)
{
    char word[32], again[32];
    int64_t value = -1;
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    const bool digits = length < sizeof word && strspn(word, "+-0123456789") == length && read_integer(word, &value);
    snprintf(again, sizeof again, "%lld", (long long)value);
    const bool number = digits && value >= 0 && value < INT32_MAX && strcmp(word, again) == 0;
    const bool odd = digits != number || length == 0 || name[0] == ' ' || name[length - 1] == ' ' || is_none(word);
    words->numbers = words->numbers || number;
    words->names = words->names || !number;
    if (!odd && !(words->numbers && words->names)) return SP_OK;
    return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: a group is called \"%.*s\", which labels cannot hold%s: %s", path,
                   (int)(length < 40 ? length : 40), name, odd ? "" : number ? " among names" : " among numbers",
                   is_none(word) ? "rename it" : remedy);
}

/* Labels in lines are checked; a table has them in quotes. */
static sp_status check_names(const contract_job *job)
{
    const char *path = label_file(job->options);
    const int32_t *labels = job->labelling.labels;
    label_words words = {0};
    uint8_t *seen = NULL;
    sp_status status;
    TRY(sp_calloc(job->host, job->groups, sizeof *seen, (void **)&seen));
    for (int64_t i = 0; i < job->g.rows; i++) {
        char buffer[32];
        size_t length;
        if (labels[i] < 0 || seen[labels[i]]) continue;
        seen[labels[i]] = 1;
        const char *name = contract_group_name(job, labels[i], buffer, &length);
        TRY(contract_check_word(job, path, name, length, "give a file whose name ends in .csv", &words));
    }
done:
    sp_free(job->host, seen);
    return status;
}

static void put_node(const contract_job *job, io_output *out, int64_t node, bool table)
{
    char buffer[32];
    size_t length;
    if (table) {
        const char *name = contract_node_name(job, node, buffer, &length);
        io_put_field(out, name, length, ',');
    } else {
        contract_put_node(job, out, node);
    }
    io_output_string(out, table ? "," : "\t");
}

static void put_label(const contract_job *job, io_output *out, int32_t label, bool table)
{
    char buffer[32];
    size_t length;
    if (label < 0) {
        io_output_string(out, "-1");
    } else if (table) {
        const char *name = contract_group_name(job, label, buffer, &length);
        io_put_field(out, name, length, ',');
    } else {
        contract_put_group(job, out, label);
    }
    io_output_string(out, "\n");
}

static sp_status put_array(const contract_job *job, io_output *out)
{
    const int32_t *labels = job->labelling.labels;
    int64_t *numbers;
    const sp_status status = sp_alloc(job->host, job->g.rows, sizeof *numbers, (void **)&numbers);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < job->g.rows; i++) numbers[i] = labels[i] < 0 ? -1 : contract_group_number(job, labels[i]);
    const io_array array = {.type = IO_I64, .dimensions = 1, .shape = {job->g.rows}, .count = job->g.rows,
                            .item_size = sizeof *numbers, .values = numbers};
    io_put_npy(out, &array);
    sp_free(job->host, numbers);
    return SP_OK;
}

/* In a form that contract takes as labels. -1 is a node without a label. */
sp_status contract_put_labels(const contract_job *job, io_output *out)
{
    const char *path = label_file(job->options);
    const bool table = is_kind(path, ".csv"), named = table || job->input.names.count > 0 || job->input.ids;
    if (is_kind(path, ".npy")) return put_array(job, out);
    if (!table && job->group_names.count > 0) {
        const sp_status status = check_names(job);
        if (status != SP_OK) return status;
    }
    if (table) io_output_string(out, "node,label\n");
    for (int64_t i = 0; i < job->g.rows; i++) {
        if (named) put_node(job, out, i, table);
        put_label(job, out, job->labelling.labels[i], table);
    }
    return SP_OK;
}
