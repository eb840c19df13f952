/* The implementation of scipy.h. */
#include "sparse-bench/peers/scipy.h"

#include <stdlib.h>
#include <string.h>

bool scipy_run(const char *operation, const bench_options *o, program_files *files, candidate *figures)
{
    const char *python = getenv("PYTHON"), *script = getenv("BENCH_SCIPY");
    const char *const words[] = {python && *python ? python : "python3", "-B", script ? script : "", operation,
                                 o->type == SP_F32 ? "f32" : "f64", NULL};
    return program_run(words, o, files, figures);
}

void scipy_open(sp_context *context, const bench_options *o, scipy_peer *scipy)
{
    const char *script = getenv("BENCH_SCIPY");
    candidate found = {0};
    program_files *files = NULL;
    *scipy = (scipy_peer){.wanted = true, .status = SP_ERROR_NO_DEVICE};
    if (!script || !*script) {
        snprintf(scipy->why, sizeof scipy->why, "BENCH_SCIPY names no script: set it to bench/scipy_peer.py");
        return;
    }
    const sp_status status = program_begin(context, &files);
    if (status != SP_OK) {
        scipy->status = status;
        snprintf(scipy->why, sizeof scipy->why, "%s", sp_last_error(context));
        return;
    }
    if (scipy_run("version", o, files, &found)) scipy->status = SP_OK;
    snprintf(scipy->version, sizeof scipy->version, "%s", found.name);
    snprintf(scipy->why, sizeof scipy->why, "%s", found.why);
    program_end(context, files);
}

void scipy_append_version(const scipy_peer *scipy, char *text, size_t size)
{
    const size_t used = strlen(text);
    if (scipy->wanted && scipy->status == SP_OK)
        snprintf(text + used, size - used, "%s%s", used ? ", " : "", scipy->version);
}
