/* Weights in safetensors, as gnn predict --load and gnn train --resume read them. With bit 128 of the first byte the
 * length of the header is set to where the last brace is, so that changed headers are read at all. */
#include "gnn/job.h"
#include "target.h"

enum { LENGTH = 8 };

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
