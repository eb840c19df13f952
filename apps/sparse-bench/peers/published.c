/* Kernels that others have published, for products of f64: programs that bench/peers/build.sh makes and BENCH_PEERS
 * names the folder of. Each runs by itself, so that one that crashes takes nothing along: it gets the operands in a
 * file, prints its times, and leaves C in another file (bench/peers/peer.cuh has both formats). */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sparse-bench/bench.h"

extern char **environ;

enum { LEAST_SECONDS = 60, MOST_OUTPUT = 1 << 16 };

typedef struct exchange {
    char operands[80], result[80]; /* paths */
    char output[MOST_OUTPUT];
} exchange;

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
               put(values, sizeof(double), (size_t)m->nnz, file);
done:
    sp_free(context, ones);
    sp_free(context, offsets);
    return status;
}

static sp_status write_operands(bench_case *c, const char *path)
{
    const sp_csr *a = &c->a, *b = c->b;
    const int64_t header[] = {a->rows, a->cols, b->cols, a->nnz, b->nnz, a == b};
    bool written = true;
    sp_status status = SP_OK;
    FILE *file = fopen(path, "wb");
    if (!file) return file_failed(c->host, path);
    written = put(header, sizeof header, 1, file);
    if (written) status = write_matrix(c->host, a, file, &written);
    if (written && status == SP_OK && a != b) status = write_matrix(c->host, b, file, &written);
    if (fclose(file) != 0 || !written) return status != SP_OK ? status : file_failed(c->host, path);
    return status;
}

/* Reads C's rows that are compared. */
static sp_status read_result(bench_case *c, const char *path, extract *theirs)
{
    int64_t size[2];
    char *bytes = NULL;
    sp_status status = SP_OK;
    FILE *file = fopen(path, "rb");
    if (!file) return file_failed(c->host, path);
    if (fread(size, sizeof size, 1, file) != 1 || size[0] != c->a.rows || size[1] < 0 || size[1] > INT32_MAX)
        TRY(sp_fail(c->host, SP_ERROR_ARGUMENT, "%s is no result", path));
    const size_t offsets = ((size_t)size[0] + 1) * 4, columns = (size_t)size[1] * 4, values = (size_t)size[1] * 8;
    TRY(sp_alloc(c->host, (int64_t)(offsets + columns + values), 1, (void **)&bytes));
    if (fread(bytes, 1, offsets + columns + values, file) != offsets + columns + values)
        TRY(sp_fail(c->host, SP_ERROR_ARGUMENT, "%s ends early", path));
    const raw_matrix raw = {.rows = size[0], .nnz = size[1], .offsets = bytes, .cols = bytes + offsets,
                            .values = bytes + offsets + columns, .offset_width = 4, .col_width = 4, .type = SP_F64};
    TRY(extract_rows(c->host, &raw, &c->ranges, theirs));
done:
    sp_free(c->host, bytes);
    fclose(file);
    return status;
}

/* ---- a program ----------------------------------------------------------------------------------------- */

/* Reads what the program prints until it ends, or kills it when its time is over. */
static void listen(int pipe, pid_t child, double seconds, char *output)
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
        const ssize_t got = read(pipe, output + used, MOST_OUTPUT - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    output[used] = '\0';
}

/* Runs the program; its exit status, or -1 if it did not end by itself. */
static int run_program(const bench_case *c, const char *path, exchange *files)
{
    const bench_options *o = &c->options->common;
    char repeat[24], limit[32];
    char *arguments[] = {(char *)path, files->operands, files->result, repeat, limit, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], ended = 0;
    pid_t child;
    snprintf(repeat, sizeof repeat, "%lld", (long long)o->repeat);
    snprintf(limit, sizeof limit, "%.3f", o->limit);
    files->output[0] = '\0';
    if (pipe(ends) != 0) return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int failed = posix_spawn(&child, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!failed) {
        listen(ends[0], child, LEAST_SECONDS + 4 * o->limit, files->output);
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

static sp_status measure_program(bench_case *c, const char *path, exchange *files)
{
    candidate *figures = &c->result->peers[c->result->peer_count++];
    extract theirs = {0};
    verdict v = {0};
    memset(figures, 0, sizeof *figures);
    figures->peak_bytes = -1;
    snprintf(figures->name, sizeof figures->name, "%s", strrchr(path, '/') + 1);
    const int ended = run_program(c, path, files);
    read_output(files->output, figures);
    if (ended != 0 || figures->time.count == 0) {
        if (!*figures->why) snprintf(figures->why, sizeof figures->why, "it ended without a result");
        snprintf(figures->word, sizeof figures->word, "failed");
        return SP_OK;
    }
    if (!c->ours.offsets) return SP_OK;
    sp_status status = read_result(c, files->result, &theirs);
    if (status == SP_OK) {
        figures->unsorted = !theirs.sorted;
        compare_extracts(&c->a, c->b, &c->options->common, &c->ranges, &c->ours, &theirs, &v);
        snprintf(v.with, sizeof v.with, "%s", figures->name);
        if (!v.good) snprintf(figures->why, sizeof figures->why, "%s", v.sentence);
        if (!v.good) snprintf(figures->word, sizeof figures->word, "differs");
        else if (!c->result->checked.with[0]) c->result->checked = v;
    }
    extract_free(c->host, &theirs);
    return candidate_failed(c->host, status, figures);
}

sp_status published_measure(bench_case *c)
{
    const char *folder = getenv("BENCH_PEERS");
    const bench_options *o = &c->options->common;
    char pattern[300];
    glob_t found;
    exchange *files;
    sp_status status;
    if (!folder || !*folder || o->type != SP_F64 || o->semiring != SP_PLUS_TIMES || c->a.nnz > INT32_MAX ||
        c->b->nnz > INT32_MAX)
        return SP_OK;
    snprintf(pattern, sizeof pattern, "%s/spgemm-*", folder);
    if (glob(pattern, 0, NULL, &found) != 0) return SP_OK;
    TRY(sp_calloc(c->host, 1, sizeof *files, (void **)&files));
    TRY(make_file(c->host, &files->operands));
    TRY(make_file(c->host, &files->result));
    TRY(write_operands(c, files->operands));
    for (size_t i = 0; i < found.gl_pathc && c->result->peer_count < MAX_PEERS && !*c->interrupt; i++)
        TRY(measure_program(c, found.gl_pathv[i], files));
done:
    if (files && *files->operands) unlink(files->operands);
    if (files && *files->result) unlink(files->result);
    sp_free(c->host, files);
    globfree(&found);
    return status;
}
