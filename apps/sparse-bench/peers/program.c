/* The implementation of program.h. */
#include "sparse-bench/peers/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LEAST_SECONDS = 60, MOST_WORDS = 8 };

/* ---- files --------------------------------------------------------------------------------------------- */

static sp_status file_failed(sp_context *context, const char *path)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", path, strerror(errno));
}

static sp_status make_file(sp_context *context, char (*path)[80])
{
    const char *folder = getenv("TMPDIR");
    snprintf(*path, sizeof *path, "%.50s/sparse-bench-XXXXXX", folder && *folder ? folder : "/tmp");
    const int file = mkstemp(*path);
    if (file < 0) {
        const sp_status status = file_failed(context, *path);
        (*path)[0] = '\0';
        return status;
    }
    close(file);
    return SP_OK;
}

sp_status program_begin(sp_context *context, program_files **files)
{
    program_files *made = NULL;
    sp_status status;
    TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    TRY(make_file(context, &made->operands));
    TRY(make_file(context, &made->result));
    *files = made;
    return SP_OK;
done:
    program_end(context, made);
    return status;
}

void program_end(sp_context *context, program_files *files)
{
    if (files && *files->operands) unlink(files->operands);
    if (files && *files->result) unlink(files->result);
    sp_free(context, files);
}

static bool put(const void *bytes, size_t size, size_t count, FILE *file)
{
    return fwrite(bytes, size, count, file) == count;
}

static sp_status write_matrix(sp_context *context, const sp_csr *m, FILE *file, bool *written)
{
    const void *values;
    void *ones = NULL;
    int32_t *offsets = NULL;
    sp_status status;
    TRY(values_or_ones(context, m, &values, &ones));
    TRY(sp_alloc(context, m->rows + 1, sizeof *offsets, (void **)&offsets));
    for (int64_t i = 0; i <= m->rows; i++) offsets[i] = (int32_t)m->row_offsets[i];
    *written = put(offsets, sizeof *offsets, (size_t)m->rows + 1, file) &&
               put(m->col_indices, sizeof(int32_t), (size_t)m->nnz, file) &&
               put(values, m->value_type == SP_F32 ? sizeof(float) : sizeof(double), (size_t)m->nnz, file);
done:
    sp_free(context, ones);
    sp_free(context, offsets);
    return status;
}

sp_status program_write(sp_context *context, const program_files *files, const int64_t header[PROGRAM_HEADER],
                        const sp_csr *a, const sp_csr *b, const void *more, size_t more_bytes)
{
    sp_status status = SP_OK;
    FILE *file = fopen(files->operands, "wb");
    if (!file) return file_failed(context, files->operands);
    bool written = put(header, sizeof *header, PROGRAM_HEADER, file);
    if (written) status = write_matrix(context, a, file, &written);
    if (written && status == SP_OK && b) status = write_matrix(context, b, file, &written);
    if (written && status == SP_OK) written = put(more, 1, more_bytes, file);
    if (fclose(file) != 0 || !written) return status != SP_OK ? status : file_failed(context, files->operands);
    return status;
}

sp_status program_read(sp_context *context, const program_files *files, size_t count, void **bytes)
{
    sp_status status;
    FILE *file = fopen(files->result, "rb");
    *bytes = NULL;
    if (!file) return file_failed(context, files->result);
    TRY(sp_alloc(context, (int64_t)count, 1, bytes));
    if (fread(*bytes, 1, count, file) == count) goto done;
    sp_free(context, *bytes);
    *bytes = NULL;
    status = sp_fail(context, SP_ERROR_ARGUMENT, "%s ends early", files->result);
done:
    fclose(file);
    return status;
}

sp_status program_read_matrix(sp_context *context, const program_files *files, int64_t rows, sp_value_type type,
                              raw_matrix *matrix, void **bytes)
{
    const size_t value = type == SP_F32 ? sizeof(float) : sizeof(double);
    int64_t *size;
    sp_status status = program_read(context, files, 2 * sizeof *size, bytes);
    if (status != SP_OK) return status;
    size = *bytes;
    const int64_t nnz = size[1];
    const bool fits = size[0] == rows && nnz >= 0 && nnz <= INT32_MAX;
    sp_free(context, size);
    *bytes = NULL;
    if (!fits) return sp_fail(context, SP_ERROR_ARGUMENT, "%s is not a result", files->result);
    const size_t offsets = 2 * sizeof *size, cols = offsets + ((size_t)rows + 1) * 4, values = cols + (size_t)nnz * 4;
    status = program_read(context, files, values + (size_t)nnz * value, bytes);
    if (status != SP_OK) return status;
    char *memory = *bytes;
    *matrix = (raw_matrix){.rows = rows, .nnz = nnz, .offsets = memory + offsets, .cols = memory + cols,
                           .values = memory + values, .offset_width = 4, .col_width = 4, .type = type};
    return SP_OK;
}

/* ---- a program ----------------------------------------------------------------------------------------- */

/* Reads what the program prints until it ends, or kills it when its time is over. */
static void listen(int pipe, pid_t child, double seconds, char *output, size_t size)
{
    const double end = wall_seconds() + seconds;
    size_t used = 0;
    for (;;) {
        struct pollfd waits = {.fd = pipe, .events = POLLIN};
        const double left = end - wall_seconds();
        const int ready = left > 0 ? poll(&waits, 1, (int)(1e3 * left) + 1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) {
            kill(child, SIGKILL);
            break;
        }
        const ssize_t got = read(pipe, output + used, size - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    output[used] = '\0';
}

/* Runs the program; its exit status, or -1 if it did not end by itself. */
static int run(char *const *arguments, double limit, program_files *files)
{
    posix_spawn_file_actions_t actions;
    int ends[2], ended = 0;
    pid_t child;
    files->output[0] = '\0';
    if (pipe(ends) != 0) return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int failed = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!failed) {
        listen(ends[0], child, LEAST_SECONDS + 4 * limit, files->output, sizeof files->output);
        while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {}
    }
    close(ends[0]);
    return !failed && WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

/* The name, samples and memory that the program printed. */
static void read_output(const char *output, candidate *figures)
{
    for (const char *line = output; *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "") {
        double seconds;
        long long bytes;
        if (sscanf(line, "seconds %lf", &seconds) == 1 && figures->time.count < MAX_SAMPLES)
            figures->time.seconds[figures->time.count++] = seconds;
        else if (sscanf(line, "peak %lld", &bytes) == 1) figures->peak_bytes = bytes;
        else if (sscanf(line, "name %39[^\n]", figures->name) != 1) sscanf(line, "failed %199[^\n]", figures->why);
    }
    if (figures->time.count > 0) time_median(&figures->time);
}

bool program_run(const char *const *words, const bench_options *o, program_files *files, candidate *figures)
{
    char repeat[24], limit[32];
    char *arguments[MOST_WORDS + 5] = {NULL}, *const more[] = {files->operands, files->result, repeat, limit};
    int count = 0;
    for (; words[count] && count < MOST_WORDS; count++) arguments[count] = (char *)(uintptr_t)words[count];
    memcpy(arguments + count, more, sizeof more);
    snprintf(repeat, sizeof repeat, "%lld", (long long)o->repeat);
    snprintf(limit, sizeof limit, "%.3f", o->limit);
    const int ended = run(arguments, o->limit, files);
    figures->peak_bytes = -1;
    read_output(files->output, figures);
    if (ended == 0 && figures->time.count > 0) return true;
    if (!*figures->why) snprintf(figures->why, sizeof figures->why, "it ended without a result");
    snprintf(figures->word, sizeof figures->word, "failed");
    return false;
}
