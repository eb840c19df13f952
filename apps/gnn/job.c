/* What gnn train and gnn predict share: contexts, data, saved models, and outputs that appear all or not at all. */
#include <errno.h>
#include <string.h>

#include "common/device.h"
#include "job.h"

/* ---- devices ------------------------------------------------------------------------------------------- */

static device_choice choice_of(const gnn_settings *s)
{
    return (device_choice){.device = s->device, .input = "-", .threads = s->threads, .memory = s->memory};
}

sp_status gnn_open_host(gnn_job *job)
{
    device_choice choice = choice_of(job->settings);
    choice.allocator = budget_open(&job->budget, &choice);
    return device_open(&choice, "cpu", &interrupt_signal, &job->host);
}

/* Where the model is trained: on the opened device, or on the CPU if that is NULL. */
static sp_status set_compute(gnn_job *job, sp_context *device)
{
    device_choice choice = choice_of(job->settings);
    sp_status status = SP_OK;
    sp_context_destroy(job->compute);
    job->compute = device;
    choice.allocator = job->budget.limit > 0 ? &job->budget.allocator : NULL;
    if (!device) status = device_open(&choice, "cpu", NULL, &job->compute);
    if (status == SP_OK) snprintf(job->device_name, sizeof job->device_name, "%s", sp_context_device(job->compute));
    return status;
}

/* Opening a CUDA device and its BLAS takes some 0.5 s, in which a CPU thread does some 2 G operations of gathering
 * products. --doctor says this number. */
static const double CUDA_OPERATIONS = 2e9;

static bool is_large(const gnn_job *job)
{
    const gnn_settings *s = job->settings;
    const gnn_features *x = &job->data.features;
    const double nodes = (double)job->data.graph.rows, hidden = (double)s->hidden;
    const double entries = x->dense.values ? nodes * (double)x->dense.cols : (double)x->sparse.nnz;
    const double inner = (double)(s->layers - 1) * nodes * hidden * hidden;
    const double passes = s->command == COMMAND_TRAIN ? 6 * (double)(s->epochs * s->seeds) : 2;
    const double pass = (double)(s->layers * job->data.graph.nnz) * hidden + entries * hidden + inner;
    return passes * pass > CUDA_OPERATIONS * sp_context_threads(job->host);
}

/* Copies the sentence of a failure to the context that reports it. */
static sp_status work_on_compute(gnn_job *job, sp_status (*work)(gnn_job *))
{
    const sp_status status = work(job);
    const char *sentence = sp_last_error(job->compute);
    if (status != SP_OK && *sentence) sp_fail(job->host, status, "%s", sentence);
    return status;
}

/* Signals do not interrupt an epoch, since a part of one cannot be saved: NULL stands for the flag. */
sp_status gnn_on_device(gnn_job *job, sp_status (*work)(gnn_job *))
{
    const device_choice choice = choice_of(job->settings);
    sp_context *device;
    sp_status status = device_choose(&choice, is_large(job), NULL, job->host, &job->line, &device);
    if (status != SP_OK) return status;
    if (device) {
        status = set_compute(job, device);
        if (status == SP_OK) status = work_on_compute(job, work);
        if (!device_gives_way(choice.device, status)) return status;
        notice_line(&job->line, GOING_ON_WITH_CPU, sp_last_error(job->host));
    }
    bool known = true;
    const char *blas = is_large(job) && !job->line.quiet ? gnn_blas(&known) : NULL;
    if (!known)
        notice_line(&job->line, "the BLAS of this machine is %s; if that is the reference one, as Debian has it, "
                    "OpenBLAS (libopenblas0) is some 20 times as fast", blas);
    status = set_compute(job, NULL);
    return status == SP_OK ? work_on_compute(job, work) : status;
}

void gnn_explain_memory(gnn_job *job, sp_status status)
{
    const gnn_settings *s = job->settings;
    char what[256];
    snprintf(what, sizeof what, "%s%.200s", job->compute ? "the work on " : "", s->folder);
    if (job->least_known) budget_explain(&job->budget, job->host, status, "the prediction", true, "");
    else
        budget_explain(&job->budget, job->host, status, what, false, job->compute && s->command == COMMAND_TRAIN &&
                       s->sampler == 0 ? "; --sampler node takes less" : "");
}

/* ---- input --------------------------------------------------------------------------------------------- */

/* Names in the form of a saved model. */
static sp_status join_names(gnn_job *job, const io_names *names, char **joined)
{
    if (names->count == 0) return SP_OK;
    const sp_status status = sp_alloc(job->host, io_name_begin(names, names->count) + names->count, 1, (void **)joined);
    char *at = *joined;
    for (int64_t c = 0; status == SP_OK && c < names->count; c++) {
        memcpy(at, io_name(names, c), io_name_length(names, c));
        at += io_name_length(names, c);
        *at++ = '\0';
    }
    return status;
}

sp_status gnn_read_data(gnn_job *job)
{
    const gnn_settings *s = job->settings;
    const gnn_input_options options = {.undirected = s->undirected || job->how.model.undirected,
                                       .no_labels = s->command == COMMAND_PREDICT || s->task == TASK_LINK,
                                       .drop_unknown = s->unknown,
                                       .features = (gnn_made_features)s->features,
                                       .interrupt = &interrupt_signal};
    const double began = wall_seconds();
    show_line(&job->line, "reading %s", s->folder);
    may_block = 1;
    sp_status status = gnn_input_load(job->host, s->folder, &options, &job->input);
    may_block = 0;
    if (status == SP_OK) gnn_input_notice(&job->line, s->folder, &job->input);
    if (status == SP_OK) status = join_names(job, &job->input.classes, &job->class_names);
    if (status == SP_OK) status = join_names(job, &job->input.features, &job->feature_names);
    if (status == SP_OK) status = join_names(job, &job->input.nodes, &job->node_names);
    job->input.data.class_names = job->class_names;
    job->input.data.node_names = job->node_names;
    job->input.data.feature_names = job->feature_names;
    job->data = job->input.data;
    job->seconds.read += wall_seconds() - began;
    return status;
}

static sp_status fail_file(gnn_job *job, const char *path, const char *why)
{
    return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: %s; give a model that gnn train --save wrote", path, why);
}

/* Reads the whole file into memory that grows with it. */
sp_status gnn_read_saved(gnn_job *job, const char *path)
{
    const int64_t size = file_bytes(path);
    int64_t used = 0, room = size >= 0 ? size + 1 : 1 << 16;
    void *bytes = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return fail_file(job, path, strerror(errno));
    may_block = 1;
    sp_status status = sp_alloc(job->host, room, 1, &bytes);
    while (status == SP_OK) {
        const size_t got = fread((char *)bytes + used, 1, (size_t)(room - used), file);
        used += (int64_t)got;
        if (used < room) break;
        status = sp_grow(job->host, used, 2 * room, 1, &bytes);
        if (status == SP_OK) room *= 2;
    }
    if (status == SP_OK && ferror(file)) status = fail_file(job, path, strerror(errno));
    may_block = 0;
    fclose(file);
    if (status != SP_OK) {
        sp_free(job->host, bytes);
        return status;
    }
    job->saved = bytes;
    job->saved_size = used;
    return is_weights(path) ? gnn_from_weights(job, path) : SP_OK;
}

/* Names of a saved model as a list. */
static sp_status list_names(gnn_job *job, const char *at, int64_t count, io_name_list *list)
{
    sp_status status = SP_OK;
    for (int64_t i = 0; status == SP_OK && i < count; i++, at += strlen(at) + 1)
        status = io_names_append(job->host, list, at, strlen(at));
    return status;
}

/* The next character in UTF-8, and how many bytes of the text it takes; a byte outside UTF-8 counts as Latin-1. */
static size_t next_character(const char *text, size_t left, char character[4], size_t *length)
{
    const size_t taken = io_utf8_length(text, left);
    if (taken > 0) memcpy(character, text, taken);
    *length = taken > 0 ? taken : io_put_utf8(character, (unsigned char)*text);
    return taken > 0 ? taken : 1;
}

/* Models in safetensors have their names in UTF-8, whatever those of the folder are. */
static bool same_name(const char *a, size_t a_left, const char *b, size_t b_left)
{
    if (a_left == b_left && memcmp(a, b, a_left) == 0) return true;
    while (a_left > 0 && b_left > 0) {
        char of_a[4], of_b[4];
        size_t a_length, b_length;
        const size_t a_taken = next_character(a, a_left, of_a, &a_length);
        const size_t b_taken = next_character(b, b_left, of_b, &b_length);
        if (a_length != b_length || memcmp(of_a, of_b, a_length) != 0) return false;
        a += a_taken, a_left -= a_taken;
        b += b_taken, b_left -= b_taken;
    }
    return a_left == 0 && b_left == 0;
}

/* The number of a name among those, or -1. The search begins at `first`, so names in the same order cost one pass. */
static int64_t find_name(const io_names *names, int64_t first, const char *name, size_t length)
{
    for (int64_t i = 0; i < names->count; i++) {
        const int64_t c = (first + i) % names->count;
        if (same_name(io_name(names, c), io_name_length(names, c), name, length)) return c;
    }
    return -1;
}

/* The column of the data for each of the model's; *moved: they are not in one order. */
static sp_status find_columns(gnn_job *job, const char *path, const io_names *wanted, int64_t *column, bool *moved)
{
    const io_names *own = &job->input.features;
    *moved = false;
    for (int64_t i = 0, found = -1; i < wanted->count; i++) {
        const int length = (int)io_name_length(wanted, i);
        found = find_name(own, found + 1, io_name(wanted, i), (size_t)length);
        if (found < 0)
            return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: there is no feature %.*s, which the model in %s has; add "
                           "the column", job->settings->folder, length < 40 ? length : 40, io_name(wanted, i), path);
        column[i] = found;
        *moved = *moved || found != i;
    }
    return SP_OK;
}

static sp_status move_columns(gnn_job *job, const int64_t *column)
{
    const sp_dense *x = &job->input.data.features.dense;
    float *row;
    const sp_status status = sp_alloc(job->host, x->cols, sizeof *row, (void **)&row);
    for (int64_t i = 0; status == SP_OK && i < x->rows; i++) {
        float *values = (float *)x->values + i * x->stride;
        memcpy(row, values, (size_t)x->cols * sizeof *row);
        for (int64_t j = 0; j < x->cols; j++) values[j] = row[column[j]];
    }
    sp_free(job->host, row);
    return status;
}

/* The data has more columns than the model; names one of them. */
static sp_status refuse_more(gnn_job *job, const char *path, const io_names *wanted)
{
    const io_names *own = &job->input.features;
    for (int64_t i = 0, found = -1; i < own->count; i++) {
        const int length = (int)io_name_length(own, i);
        found = find_name(wanted, found + 1, io_name(own, i), (size_t)length);
        if (found < 0)
            return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the model in %s has no feature %.*s; leave the column "
                           "out", job->settings->folder, path, length < 40 ? length : 40, io_name(own, i));
    }
    return SP_OK; /* a name repeats: the numbers of columns tell */
}

/* Brings columns with names into the model's order. Those of sparse features are not moved. */
static sp_status order_features(gnn_job *job, const char *path, const char *names, int64_t count)
{
    io_name_list list = {0};
    int64_t *column = NULL;
    bool moved;
    sp_status status;
    TRY(list_names(job, names, count, &list));
    TRY(sp_alloc(job->host, count, sizeof *column, (void **)&column));
    TRY(find_columns(job, path, &list.names, column, &moved));
    if (job->input.features.count > count) TRY(refuse_more(job, path, &list.names));
    if (job->input.features.count != count) goto done;
    if (moved && !job->data.features.dense.values)
        TRY(sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the sparse features are in another order than in the model in "
                    "%s; write them in that order", job->settings->folder, path));
    if (moved) TRY(move_columns(job, column));
done:
    sp_free(job->host, column);
    io_names_free(job->host, &list.names);
    return status;
}

sp_status gnn_match_features(gnn_job *job, const char *path, const gnn_saved *saved)
{
    const gnn_features *x = &job->data.features;
    const int64_t columns = x->dense.values ? x->dense.cols : x->sparse.cols, wanted = saved->options.model.inputs;
    const bool named = saved->feature_names && job->input.features.count > 0;
    const sp_status status = named ? order_features(job, path, saved->feature_names, wanted) : SP_OK;
    if (status != SP_OK) return status;
    if (columns != wanted)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the saved model has %lld features, not %lld", path,
                       (long long)wanted, (long long)columns);
    if (!saved->feature_names) return SP_OK;
    job->input.data.feature_names = job->data.feature_names = saved->feature_names;
    return SP_OK;
}

/* Changes labels to the model's numbers. Targets have a column a class, whose order must be the model's. */
static sp_status map_classes(gnn_job *job, const char *path, const io_names *classes)
{
    const io_names *own = &job->input.classes;
    gnn_data *data = &job->input.data;
    int32_t *number;
    sp_status status = sp_alloc(job->host, own->count, sizeof *number, (void **)&number);
    if (status != SP_OK) return status;
    for (int64_t i = 0, found = -1; i < own->count; i++) {
        const char *name = io_name(own, i);
        const int length = (int)io_name_length(own, i);
        found = find_name(classes, found + 1, name, (size_t)length);
        number[i] = (int32_t)found;
        if (found < 0 || (data->targets && found != i))
            TRY(sp_fail(job->host, SP_ERROR_ARGUMENT, found < 0 ? "%s: the model in %s has no class %.*s; write -1 "
                                                                  "for it, or train anew"
                                                                : "%s: the model in %s has another order of classes, "
                                                                  "from %.*s on", job->settings->folder, path,
                        length < 40 ? length : 40, name));
    }
    for (int64_t i = 0; data->labels && i < data->graph.rows; i++)
        if (data->labels[i] >= 0) data->labels[i] = number[data->labels[i]];
done:
    sp_free(job->host, number);
    return status;
}

sp_status gnn_match_classes(gnn_job *job, const char *path, const gnn_saved *saved)
{
    io_name_list list = {0};
    sp_status status = SP_OK;
    if (!saved->class_names) return SP_OK;
    TRY(list_names(job, saved->class_names, saved->options.model.outputs, &list));
    if (job->input.classes.count > 0) {
        TRY(map_classes(job, path, &list.names));
        job->input.data.classes = list.names.count;
    }
    io_names_free(job->host, &job->input.classes);
    job->input.classes = list.names;
    memset(&list.names, 0, sizeof list.names);
    job->input.data.class_names = saved->class_names;
    job->data = job->input.data;
done:
    io_names_free(job->host, &list.names);
    return status;
}

void gnn_close(gnn_job *job)
{
    if (job->host) {
        gnn_input_free(job->host, &job->input);
        for (int64_t i = 0; i < job->run_count; i++) sp_free(job->host, job->runs[i].epochs);
        sp_free(job->host, job->runs);
        gnn_figures_free(job->host, &job->figures);
        FREE_ALL(job->host, job->saved, job->class_names, job->feature_names, job->node_names, job->made, job->weights,
                 job->weight_list, job->clusters, job->class_weights, job->classes, job->targets, job->scores,
                 job->embeddings, job->pairs);
    }
    sp_context_destroy(job->compute);
    sp_context_destroy(job->host);
}

/* ---- output -------------------------------------------------------------------------------------------- */

enum { MOST_FILES = 4 };

sp_status gnn_check_files(gnn_job *job, const gnn_file *files, int count)
{
    const gnn_settings *s = job->settings;
    output_list all = {0};
    sp_status status = SP_OK;
    for (int i = 0; i < count; i++) {
        const char *path = files[i].path;
        if (!path) continue;
        job->mistaken = overwrites("gnn", path, s->load) || overwrites("gnn", path, s->clusters) ||
                        overwrites("gnn", path, s->pairs) ||
                        overwrites("gnn", path, s->class_weights) ||
                        gnn_input_overwritten("gnn", s->folder, path) || !add_output(&all, "gnn", path);
        if (job->mistaken) return SP_ERROR_ARGUMENT;
        TRY(io_output_check(job->host, path));
    }
done:
    return status;
}

bool gnn_takes_stdout(const gnn_file *files, int count)
{
    bool taken = false;
    for (int i = 0; i < count; i++) taken = taken || (files[i].path && strcmp(files[i].path, "-") == 0);
    return taken;
}

sp_status gnn_write_files(gnn_job *job, const gnn_file *files, int count)
{
    io_output *open[MOST_FILES];
    int opened = 0;
    sp_status status = SP_OK;
    may_block = 1;
    for (int i = 0; i < count && status == SP_OK; i++) {
        if (!files[i].path) continue;
        status = io_output_open(job->host, files[i].path, &open[opened]);
        if (status == SP_OK) status = files[i].put(job, open[opened++]);
    }
    return finish_outputs(open, opened, status);
}

/* The names of the written files: "a, b". */
static void list_files(const gnn_file *files, int count, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "nothing");
    for (int i = 0; i < count && used < size; i++) {
        const char *path = files[i].path;
        if (!path) continue;
        if (strcmp(path, "-") == 0) path = "standard output";
        used += (size_t)snprintf(text + used, size - used, used > 0 ? ", %.1000s" : "%.1000s", path);
    }
}

void gnn_end_line(gnn_job *job, const char *read, const gnn_file *files, int count, const char *result)
{
    char data[GNN_DESCRIPTION], written[MOST_FILES * 1024];
    gnn_input_describe(&job->data, job->directed, data);
    list_files(files, count, written, sizeof written);
    summary_line(&job->line, "read %.2000s, %s%s; wrote %s%s", job->settings->folder, data, read, written, result);
}
