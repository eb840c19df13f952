/* Weights for other programs, as safetensors: 8 bytes with the length of a header, the header (JSON: name, type, shape
 * and place of each tensor, and texts about the model), the numbers. docs/formats.md lists names and texts.
 *
 * Files are read as a saved model: those that gnn train --save and spgraph.torch write. Their header is JSON of one
 * form: an object of tensors, each an object of dtype, shape and data_offsets, and __metadata__, an object of texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "job.h"

/* ---- writing ---------------------------------------------------------------------------------------------- */

sp_status gnn_take_weights(gnn_job *job, gnn_model *model)
{
    const sp_space there = strcmp(sp_context_device(job->compute), "cpu") == 0 ? SP_HOST : SP_DEVICE;
    const int64_t size = gnn_model_size(model);
    const gnn_parameter *parameters = gnn_model_parameters(model, &job->weight_parts);
    sp_status status;
    FREE_ALL(job->host, job->weights, job->weight_list);
    job->weights = NULL;
    job->weight_list = NULL;
    TRY(sp_alloc(job->host, size, sizeof *job->weights, (void **)&job->weights));
    TRY(sp_alloc(job->host, job->weight_parts, sizeof *job->weight_list, (void **)&job->weight_list));
    job->weight_size = size;
    memcpy(job->weight_list, parameters, (size_t)job->weight_parts * sizeof *job->weight_list);
    status = sp_array_copy(job->compute, size, sizeof *job->weights, job->weights, SP_HOST, gnn_model_weights(model),
                           there);
done:
    return status;
}

/* A text within the quotes of JSON; bytes that are not UTF-8 as Latin-1. */
static void put_inner(FILE *to, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        const size_t length = io_utf8_length((const char *)p, 4);
        if (length == 0 || *p < ' ' || *p == '"' || *p == '\\') fprintf(to, "\\u%04x", *p++);
        else for (size_t i = 0; i < length; i++) fputc(*p++, to);
    }
}

static void put_number(FILE *to, const char *key, int64_t number)
{
    fprintf(to, ",\"%s\":\"%lld\"", key, (long long)number);
}

/* Names, each with a NUL, a line each; nothing if `names` is NULL. */
static void put_lines(FILE *to, const char *key, const char *names, int64_t count)
{
    if (!names) return;
    fprintf(to, ",\"%s\":\"", key);
    for (int64_t i = 0; i < count; i++, names += strlen(names) + 1) {
        put_inner(to, names);
        fputs("\\n", to);
    }
    fputc('"', to);
}

/* The texts about the model. */
static void put_texts(const gnn_job *job, FILE *to)
{
    const gnn_model_options *m = &job->how.model;
    const int64_t outputs = job->how.links ? job->how.model.outputs : job->data.classes;
    fprintf(to, "{\"__metadata__\":{\"format\":\"gnn\",\"version\":\"%s\",\"task\":\"%s\",\"model\":\"%s\"",
            SP_VERSION, task_word(job->settings->task), model_word((int)m->layer));
    put_number(to, "layers", m->layers);
    put_number(to, "inputs", job->weight_list[0].rows);
    put_number(to, "hidden", m->hidden);
    put_number(to, "outputs", outputs);
    if (m->layer == GNN_GAT) put_number(to, "heads", m->heads);
    if (m->maxk > 0) put_number(to, "maxk", m->maxk);
    fprintf(to, ",\"norm\":\"%s\",\"residual\":\"%s\",\"jump\":\"%s\"", norm_word((int)m->norm),
            m->residual ? "yes" : "no", jump_word((int)m->jump));
    fprintf(to, ",\"normalised_features\":\"%s\",\"several_classes_a_node\":\"%s\"", m->normalised ? "yes" : "no",
            job->data.targets ? "yes" : "no");
    fprintf(to, ",\"undirected\":\"%s\",\"dropout\":\"%.17g\"", m->undirected ? "yes" : "no", m->dropout);
    fprintf(to, ",\"input_dropout\":\"%.17g\",\"attention_dropout\":\"%.17g\"", m->input_dropout,
            m->attention_dropout);
    if (!job->how.links) put_lines(to, "classes", job->input.data.class_names, job->data.classes);
    put_lines(to, "features", job->input.data.feature_names, job->weight_list[0].rows);
    fputc('}', to);
}

static void put_header(const gnn_job *job, FILE *to)
{
    put_texts(job, to);
    for (int i = 0; i < job->weight_parts; i++) {
        const gnn_parameter *p = &job->weight_list[i];
        const long long begin = 4 * (long long)p->offset, end = begin + 4 * (long long)(p->rows * p->cols);
        fprintf(to, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%lld,%lld],\"data_offsets\":[%lld,%lld]}", p->name,
                (long long)p->rows, (long long)p->cols, begin, end);
    }
    fputc('}', to);
}

sp_status gnn_put_weights(gnn_job *job, io_output *out)
{
    enum { ALIGNMENT = 8 };
    char *header = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&header, &length);
    if (to) put_header(job, to);
    if (!to || fclose(to) != 0) {
        free(header);
        return sp_fail(job->host, SP_ERROR_HOST_MEMORY, "no memory for a header of weights");
    }
    const int64_t padded = (int64_t)((length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    io_output_bytes(out, &padded, sizeof padded);
    io_output_bytes(out, header, length);
    for (size_t i = length; i < (size_t)padded; i++) io_output_string(out, " ");
    io_output_bytes(out, job->weights, (size_t)job->weight_size * sizeof *job->weights);
    free(header);
    return SP_OK;
}

/* ---- reading: the file ---------------------------------------------------------------------------------- */

enum { MOST_TENSORS = 256, NAME = 32, LENGTH_BYTES = 8 };

typedef struct tensor {
    char name[NAME];
    int64_t rows, cols, begin, end;
} tensor;

/* The texts that are read; those of a missing key are "". `classes` and `features` end their names with line feeds. */
typedef struct weight_texts {
    char task[16], model[16], layers[16], inputs[16], hidden[16], outputs[16], heads[16], maxk[16], norm[16],
        residual[8], jump[16],
        normalised[8], several[8], undirected[8], dropout[32], input_dropout[32], attention_dropout[32];
    char *classes, *features; /* within `strings` */
} weight_texts;

typedef struct weight_reader {
    gnn_job *job;
    const char *path;
    io_json header;
    char *strings, *room;  /* as long as the header: texts without escapes */
    tensor tensors[MOST_TENSORS];
    int count;
    weight_texts texts;
} weight_reader;

static sp_status refuse(const weight_reader *r, const char *what)
{
    return sp_fail(r->job->host, SP_ERROR_ARGUMENT, "%s: %s; give what gnn train --save or spgraph.torch wrote",
                   r->path, what);
}

/* ---- the header ----------------------------------------------------------------------------------------- */

static bool take(weight_reader *r, char c) { return io_json_take(&r->header, c); }

/* A text, which stays in `strings`; NULL: there is none. */
static char *take_text(weight_reader *r)
{
    const char *string;
    char *text = r->room;
    size_t length;
    if (!io_json_string(&r->header, &string, &length) || !io_json_unescape(string, length, text)) return NULL;
    r->room = text + strlen(text) + 1;
    return text;
}

/* [A], or [A, B]. A missing B is 1 before A: a row of A. */
static bool take_pair(weight_reader *r, int64_t pair[2])
{
    static const int64_t MOST = INT64_C(1) << 53; /* so far doubles are exact */
    if (!take(r, '[') || !io_json_whole(&r->header, 0, MOST, &pair[1])) return false;
    if (take(r, ']')) {
        pair[0] = 1;
        return true;
    }
    pair[0] = pair[1];
    return take(r, ',') && io_json_whole(&r->header, 0, MOST, &pair[1]) && take(r, ']');
}

static sp_status take_texts(weight_reader *r)
{
    weight_texts *t = &r->texts;
    const struct {
        const char *key;
        char *to;
        size_t size;
    } short_texts[] = {{"task", t->task, sizeof t->task}, {"model", t->model, sizeof t->model},
                       {"layers", t->layers, sizeof t->layers},
                       {"inputs", t->inputs, sizeof t->inputs}, {"hidden", t->hidden, sizeof t->hidden},
                       {"outputs", t->outputs, sizeof t->outputs}, {"heads", t->heads, sizeof t->heads},
                       {"maxk", t->maxk, sizeof t->maxk}, {"norm", t->norm, sizeof t->norm},
                       {"residual", t->residual, sizeof t->residual}, {"jump", t->jump, sizeof t->jump},
                       {"normalised_features", t->normalised, sizeof t->normalised},
                       {"several_classes_a_node", t->several, sizeof t->several},
                       {"undirected", t->undirected, sizeof t->undirected}, {"dropout", t->dropout, sizeof t->dropout},
                       {"input_dropout", t->input_dropout, sizeof t->input_dropout},
                       {"attention_dropout", t->attention_dropout, sizeof t->attention_dropout}};
    if (!take(r, '{')) return refuse(r, "its __metadata__ is no object");
    if (take(r, '}')) return SP_OK;
    do {
        const char *key = take_text(r);
        char *text = key && take(r, ':') ? take_text(r) : NULL;
        if (!text) return refuse(r, "its __metadata__ has something else than texts");
        for (size_t i = 0; i < sizeof short_texts / sizeof *short_texts; i++)
            if (strcmp(key, short_texts[i].key) == 0) snprintf(short_texts[i].to, short_texts[i].size, "%s", text);
        if (strcmp(key, "classes") == 0) t->classes = text;
        if (strcmp(key, "features") == 0) t->features = text;
    } while (take(r, ','));
    return take(r, '}') ? SP_OK : refuse(r, "its __metadata__ does not end");
}

static sp_status take_tensor(weight_reader *r, const char *name)
{
    char what[128];
    int64_t shape[2] = {0, 0}, offsets[2] = {0, 0};
    bool floats = false;
    if (r->count == MOST_TENSORS || strlen(name) >= NAME || !take(r, '{'))
        return refuse(r, "it has tensors of no model");
    do {
        const char *key = take_text(r), *type;
        bool good = key && take(r, ':');
        if (good && strcmp(key, "dtype") == 0) floats = (type = take_text(r)) && strcmp(type, "F32") == 0;
        else if (good && strcmp(key, "shape") == 0) good = take_pair(r, shape);
        else if (good && strcmp(key, "data_offsets") == 0) good = take_pair(r, offsets);
        else good = false;
        snprintf(what, sizeof what, "the tensor %.31s has no shape of one or two numbers, or no place", name);
        if (!good) return refuse(r, what);
    } while (take(r, ','));
    snprintf(what, sizeof what, "the tensor %.31s is not of type F32", name);
    if (!floats) return refuse(r, what);
    tensor *t = &r->tensors[r->count++];
    *t = (tensor){.rows = shape[0], .cols = shape[1], .begin = offsets[0], .end = offsets[1]};
    snprintf(t->name, sizeof t->name, "%s", name);
    return take(r, '}') ? SP_OK : refuse(r, "the description of a tensor does not end");
}

static sp_status read_header(weight_reader *r)
{
    sp_status status = SP_OK;
    if (!take(r, '{')) return refuse(r, "its header is not JSON");
    do {
        const char *name = take_text(r);
        if (!name || !take(r, ':')) return refuse(r, "its header is not an object of tensors");
        TRY(strcmp(name, "__metadata__") == 0 ? take_texts(r) : take_tensor(r, name));
    } while (take(r, ','));
    if (!take(r, '}')) status = refuse(r, "its header does not end");
done:
    return status;
}

/* ---- the model ------------------------------------------------------------------------------------------ */

/* A whole number up to `most`, -1 for another text; `missing` for none. */
static int64_t whole_of(const char *text, int64_t most, int64_t missing)
{
    char *end;
    if (!*text) return missing;
    const long long number = strtoll(text, &end, 10);
    return *end || number < 0 || number > most ? -1 : number;
}

/* The place of a word; the first for none, -1 for another. */
static int64_t word_of(const char *text, const char *(*word)(int), int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, word(i)) == 0) return i;
    return *text ? -1 : 0;
}

static double rate_of(const char *text)
{
    double rate;
    return *text && read_number(text, &rate) ? rate : 0; /* the model's check refuses what is out of range */
}

static sp_status make_options(weight_reader *r, gnn_saved *saved)
{
    const weight_texts *t = &r->texts;
    const int64_t layer = *t->model ? word_of(t->model, model_word, GNN_GAT + 1) : -1;
    const int64_t task = word_of(t->task, task_word, TASK_LINK + 1);
    const int64_t layers = whole_of(t->layers, GNN_MAX_LAYERS, -1);
    const int64_t norm = word_of(t->norm, norm_word, GNN_NORM_LAYER + 1);
    const int64_t jump = word_of(t->jump, jump_word, GNN_JUMP_MAX + 1);
    const bool gat = layer == GNN_GAT; /* only GAT has heads; texts of other models may name some */
    gnn_model_options m = {.layer = (gnn_layer)layer, .layers = (int)layers,
                           .inputs = whole_of(t->inputs, INT32_MAX, -1),
                           .outputs = whole_of(t->outputs, INT32_MAX, -1), .hidden = whole_of(t->hidden, INT32_MAX, -1),
                           .heads = gat ? (int)whole_of(t->heads, 1 << 10, 1) : 1, .output_heads = 1,
                           .maxk = whole_of(t->maxk, 1 << 16, 0),
                           .norm = (gnn_norm)norm, .jump = (gnn_jump)jump, .residual = strcmp(t->residual, "yes") == 0,
                           .normalised = strcmp(t->normalised, "yes") == 0,
                           .undirected = strcmp(t->undirected, "yes") == 0,
                           .dropout = rate_of(t->dropout), .input_dropout = rate_of(t->input_dropout),
                           .attention_dropout = rate_of(t->attention_dropout)};
    if (task < 0 || layer < 0 || layers < 1 || m.inputs < 1 || m.outputs < 1 || m.hidden < 0 || m.heads < 1 ||
        m.maxk < 0 || norm < 0 || jump < 0)
        return refuse(r, "its __metadata__ does not describe a model");
    saved->options.model = m;
    saved->options.links = task == TASK_LINK;
    saved->options.optimizer = (gnn_optimizer_options){.rate = gat ? 0.005 : 0.01, .decay = 5e-4,
                                                       .decay_first_layer = !gat};
    saved->several = strcmp(t->several, "yes") == 0;
    saved->seed = 1;
    return SP_OK;
}

/* Ends each of `count` names by a NUL in place of its line feed. */
static sp_status split_names(weight_reader *r, char *names, int64_t count, const char **found)
{
    int64_t lines = 0;
    *found = names;
    for (char *at = names; at && *at; at++)
        if (*at == '\n') {
            *at = '\0';
            lines++;
        }
    return !names || lines == count ? SP_OK : refuse(r, "it has not as many names as classes or features");
}

/* Copies the tensors to the places of the model's parameters. */
static sp_status collect(weight_reader *r, const char *data, int64_t size, const gnn_parameter *wanted, int count,
                         float *weights)
{
    char what[160];
    for (int i = 0; i < count; i++) {
        const gnn_parameter *p = &wanted[i];
        const tensor *t = NULL;
        for (int k = 0; k < r->count && !t; k++)
            if (strcmp(r->tensors[k].name, p->name) == 0) t = &r->tensors[k];
        snprintf(what, sizeof what, "there is no tensor %.31s", p->name);
        if (!t) return refuse(r, what);
        snprintf(what, sizeof what, "the tensor %.31s is %lld x %lld, where its model has %lld x %lld", p->name,
                 (long long)t->rows, (long long)t->cols, (long long)p->rows, (long long)p->cols);
        if (t->rows != p->rows || t->cols != p->cols) return refuse(r, what);
        const int64_t bytes = p->rows * p->cols * (int64_t)sizeof *weights;
        if (t->begin > size || t->end > size || t->end - t->begin != bytes) return refuse(r, "it is truncated");
        memcpy(weights + p->offset, data + t->begin, (size_t)bytes);
    }
    snprintf(what, sizeof what, "it has %d tensors, where its model has %d", r->count, count);
    return r->count == count ? SP_OK : refuse(r, what);
}

/* A model is made to learn what its parameters are. The header promises as many bytes, so a small file asks for little.
 */
static sp_status make_saved(weight_reader *r, const char *data, int64_t size, const gnn_saved *saved, void **bytes,
                            int64_t *bytes_size)
{
    gnn_job *job = r->job;
    gnn_engine *engine = NULL;
    gnn_model *model = NULL;
    float *weights = NULL;
    const gnn_model_options *m = &saved->options.model;
    int count;
    sp_status status;
    if (m->inputs > size || m->outputs > size || m->hidden > size) return refuse(r, "it is truncated");
    TRY(gnn_engine_create(job->host, 0, &engine));
    status = gnn_model_create(engine, m, &model);
    if (status == SP_ERROR_ARGUMENT) TRY(refuse(r, "its options do not go together"));
    if (status != SP_OK) goto done;
    const gnn_parameter *wanted = gnn_model_parameters(model, &count);
    TRY(sp_alloc(job->host, gnn_model_size(model), sizeof *weights, (void **)&weights));
    TRY(collect(r, data, size, wanted, count, weights));
    status = gnn_saved_make(job->host, saved, weights, gnn_model_size(model), bytes, bytes_size);
done:
    sp_free(job->host, weights);
    gnn_model_free(model);
    gnn_engine_free(engine);
    return status;
}

sp_status gnn_from_weights(gnn_job *job, const char *path)
{
    weight_reader *r = NULL;
    const char *begin = job->saved;
    uint64_t length = 0;
    gnn_saved saved = {0};
    void *bytes;
    int64_t size;
    sp_status status = sp_calloc(job->host, 1, sizeof *r, (void **)&r); /* large for a stack */
    if (status != SP_OK) return status;
    *r = (weight_reader){.job = job, .path = path};
    if (job->saved_size >= LENGTH_BYTES) memcpy(&length, begin, LENGTH_BYTES);
    if (length < 2 || length > (uint64_t)(job->saved_size - LENGTH_BYTES)) TRY(refuse(r, "it is no safetensors file"));
    const char *data = begin + LENGTH_BYTES + length;
    r->header = (io_json){begin + LENGTH_BYTES, data};
    TRY(sp_alloc(job->host, (int64_t)length + 1, 1, (void **)&r->strings));
    r->room = r->strings;
    TRY(read_header(r));
    TRY(make_options(r, &saved));
    TRY(split_names(r, r->texts.classes, saved.options.model.outputs, &saved.class_names));
    TRY(split_names(r, r->texts.features, saved.options.model.inputs, &saved.feature_names));
    TRY(make_saved(r, data, job->saved_size - (data - begin), &saved, &bytes, &size));
    sp_free(job->host, job->saved);
    job->saved = bytes;
    job->saved_size = size;
done:
    FREE_ALL(job->host, r->strings, r);
    return status;
}
