/* Weights for other programs, as safetensors: 8 bytes with the length of a header, the header (JSON: name, type, shape and
 * place of each tensor, and texts about the model), the numbers. docs/formats.md lists names and texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "job.h"

sp_status gnn_take_weights(gnn_job *job, gnn_model *model)
{
    const sp_space there = strcmp(sp_context_device(job->compute), "cpu") == 0 ? SP_HOST : SP_DEVICE;
    const int64_t size = gnn_model_size(model);
    const gnn_parameter *parameters = gnn_model_parameters(model, &job->weight_parts);
    sp_status status;
    sp_free(job->host, job->weights);
    sp_free(job->host, job->weight_list);
    job->weights = NULL;
    job->weight_list = NULL;
    TRY(sp_alloc(job->host, size, sizeof *job->weights, (void **)&job->weights));
    TRY(sp_alloc(job->host, job->weight_parts, sizeof *job->weight_list, (void **)&job->weight_list));
    job->weight_size = size;
    memcpy(job->weight_list, parameters, (size_t)job->weight_parts * sizeof *job->weight_list);
    status = sp_array_copy(job->compute, size, sizeof *job->weights, job->weights, SP_HOST, gnn_model_weights(model), there);
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
    fprintf(to, "{\"__metadata__\":{\"format\":\"gnn\",\"version\":\"%s\",\"model\":\"%s\"", SP_VERSION,
            model_word((int)m->layer));
    put_number(to, "layers", m->layers);
    put_number(to, "inputs", job->weight_list[0].rows);
    put_number(to, "hidden", m->hidden);
    put_number(to, "outputs", job->data.classes);
    if (m->layer == GNN_GAT) put_number(to, "heads", m->heads);
    if (m->maxk > 0) put_number(to, "maxk", m->maxk);
    fprintf(to, ",\"norm\":\"%s\",\"residual\":\"%s\",\"jump\":\"%s\"", norm_word((int)m->norm),
            m->residual ? "yes" : "no", jump_word((int)m->jump));
    fprintf(to, ",\"normalised_features\":\"%s\",\"several_classes_a_node\":\"%s\"", m->normalised ? "yes" : "no",
            job->data.targets ? "yes" : "no");
    fprintf(to, ",\"undirected\":\"%s\",\"dropout\":\"%.17g\"", m->undirected ? "yes" : "no", m->dropout);
    fprintf(to, ",\"input_dropout\":\"%.17g\",\"attention_dropout\":\"%.17g\"", m->input_dropout,
            m->attention_dropout);
    put_lines(to, "classes", job->input.data.class_names, job->data.classes);
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
