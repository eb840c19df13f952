/* Weights in safetensors, as gnn predict --load and gnn train --resume read them. With bit 128 of the first byte the
 * length of the header is set to where the last brace is, so that changed headers are read at all. An accepted model is
 * written with other numbers, and read again. */
#include "gnn/job.h"
#include "round_trip.h"

enum { LENGTH = 8, MOST_NUMBERS = 1 << 14 };

static void repair(unsigned char *file, size_t size)
{
    size_t end = size;
    while (end > LENGTH && file[end - 1] != '}') end--;
    const uint64_t length = end > LENGTH ? end - LENGTH : 0;
    if (size >= LENGTH) memcpy(file, &length, sizeof length);
}

/* Each of `count` names has its end within the model. */
static void check_names(const gnn_job *job, const char *names, int64_t count)
{
    const char *end = (const char *)job->saved + job->saved_size;
    for (int64_t i = 0; names && i < count; i++) {
        names = memchr(names, '\0', (size_t)(end - names));
        fuzz_require(names != NULL);
        names++;
    }
}

/* Writes the weights of `job` as gnn train --save does, and reads them as a saved model. */
static void write_and_read(gnn_job *job)
{
    char path[64];
    io_output *out;
    fuzz_file(path, sizeof path, "weights");
    fuzz_require(io_output_open(job->host, path, &out) == SP_OK);
    fuzz_require(gnn_put_weights(job, out) == SP_OK && io_output_commit(out) == SP_OK);
    size_t size;
    char *bytes = fuzz_file_bytes(path, &size);
    unlink(path);
    fuzz_require(sp_alloc(job->host, (int64_t)size, 1, &job->saved) == SP_OK);
    memcpy(job->saved, bytes, size);
    job->saved_size = (int64_t)size;
    free(bytes);
    const sp_status status = gnn_from_weights(job, "again");
    if (status != SP_OK) fprintf(stderr, "%s\n", sp_last_error(job->host));
    fuzz_require(status == SP_OK);
}

/* Names in UTF-8, in which they are written: bytes outside it count as Latin-1. The caller frees them. */
static char *in_utf8(const char *names, int64_t count)
{
    char *text = NULL;
    size_t size;
    if (!names) return NULL;
    FILE *out = open_memstream(&text, &size);
    fuzz_require(out != NULL);
    for (int64_t i = 0; i < count; names++) {
        char character[4];
        const size_t length = io_utf8_length(names, strlen(names));
        if (*names == '\0') i++;
        if (length == 0 && *names) fwrite(character, 1, io_put_utf8(character, (unsigned char)*names), out);
        else fputc(*names, out);
        for (size_t k = 1; k < length; k++) fputc(*++names, out);
    }
    fuzz_require(fclose(out) == 0);
    return text;
}

/* The model with numbers of our own is read as it was written: all bytes of the saved model are those that they should
 * be. */
static void check_round_trip(sp_context *context, gnn_saved *saved)
{
    gnn_saved as_written = *saved;
    const gnn_settings settings = {.task = saved->options.links ? TASK_LINK : TASK_NODE};
    gnn_job job = {.host = context, .settings = &settings, .how = saved->options};
    static const uint8_t some;
    gnn_engine *engine;
    gnn_model *model;
    char *classes, *features;
    void *expected;
    int64_t size;
    fuzz_require(gnn_engine_create(context, 0, &engine) == SP_OK);
    fuzz_require(gnn_model_create(engine, &saved->options.model, &model) == SP_OK);
    job.weight_list = (gnn_parameter *)gnn_model_parameters(model, &job.weight_parts);
    job.weight_size = gnn_model_size(model);
    job.data.classes = saved->options.model.outputs;
    job.data.targets = saved->several ? (void *)&some : NULL;
    job.input.data.class_names = (char *)saved->class_names;
    job.input.data.feature_names = (char *)saved->feature_names;
    if (job.weight_size <= MOST_NUMBERS) {
        fuzz_require(sp_alloc(context, job.weight_size, sizeof *job.weights, (void **)&job.weights) == SP_OK);
        for (int64_t i = 0; i < job.weight_size; i++) job.weights[i] = (float)(i % 97 - 48) / 7;
        as_written.class_names = classes = in_utf8(saved->class_names, saved->options.model.outputs);
        as_written.feature_names = features = in_utf8(saved->feature_names, saved->options.model.inputs);
        fuzz_require(gnn_saved_make(context, &as_written, job.weights, job.weight_size, &expected, &size) == SP_OK);
        write_and_read(&job);
        fuzz_require(job.saved_size == size && memcmp(job.saved, expected, (size_t)size) == 0);
        sp_free(context, expected);
        sp_free(context, job.saved);
        sp_free(context, job.weights);
        free(classes);
        free(features);
    }
    gnn_model_free(model);
    gnn_engine_free(engine);
}

/* What was accepted is a saved model with names for all or none of its classes and features. Only its numbers are
 * checked when it is read. */
static void check_saved(gnn_job *job)
{
    gnn_saved saved;
    const sp_status status = gnn_saved_read(job->host, job->saved, job->saved_size, &saved);
    fuzz_require(status == SP_OK || strstr(sp_last_error(job->host), "a weight that is no finite number"));
    if (status != SP_OK) return;
    const gnn_model_options *m = &saved.options.model;
    fuzz_require(m->layers >= 1 && m->inputs >= 1 && m->outputs >= 1);
    check_names(job, saved.class_names, m->outputs);
    check_names(job, saved.feature_names, m->inputs);
    check_round_trip(job->host, &saved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    sp_context *context = fuzz_context(1);
    gnn_job job = {.host = context, .saved_size = (int64_t)size - 1};
    fuzz_require(sp_alloc(context, (int64_t)size, 1, &job.saved) == SP_OK);
    memcpy(job.saved, data + 1, size - 1);
    if (data[0] & 128) repair(job.saved, size - 1);
    if (gnn_from_weights(&job, "in") == SP_OK) check_saved(&job);
    else fuzz_require(*sp_last_error(context) != '\0');
    sp_free(context, job.saved);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
