/* Output files that appear complete or not at all.
 *
 * A regular target is written as PATH.tmp.PID in its own folder, synced and renamed over PATH; the folder is synced
 * too, so that the name survives a power cut. Standard output, FIFOs and devices are written directly. The first
 * error is kept and reported by io_output_commit.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

enum { BUFFER_BYTES = 1 << 16, MOST_OUTPUTS = 64, START_BYTES = 1 << 23 };
enum { SUFFIX_BYTES = 16 }; /* room for .tmp.PID */

struct io_output {
    sp_context *context;
    int file;
    bool close_file;
    bool settled; /* synced */
    int slot;  /* in `temporaries`; -1: written directly */
    int error; /* errno of the first failure */
    off_t written, started; /* bytes of the temporary file, and those that are on their way to the disk */
    size_t used;
    char shown[256];       /* what the user called it */
    char target[PATH_MAX]; /* symbolic links followed */
    char temporary[PATH_MAX];
    char buffer[BUFFER_BYTES];
};

/* Paths of the temporary files that exist, for the signal handler. */
static _Atomic(const char *) temporaries[MOST_OUTPUTS];

static sp_status fail(sp_context *context, const char *path, const char *what)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s; give another place", path, what);
}

/* ---- where ---------------------------------------------------------------------------------------------- */

typedef enum target_kind { TARGET_STANDARD, TARGET_DIRECT, TARGET_FILE } target_kind;

static bool are_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_standard_output(const struct stat *about)
{
    struct stat standard;
    return fstat(STDOUT_FILENO, &standard) == 0 && are_same(&standard, about) &&
           (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/* What PATH is; *mode gets the permissions of a file that is there, 0 if none is. */
static sp_status classify(sp_context *context, const char *path, target_kind *kind, mode_t *mode)
{
    struct stat about;
    *mode = 0;
    *kind = TARGET_FILE;
    if (strcmp(path, "-") == 0) {
        *kind = TARGET_STANDARD;
        if (fcntl(STDOUT_FILENO, F_GETFD) < 0) return fail(context, "(standard output)", strerror(errno));
        return SP_OK;
    }
    if (stat(path, &about) != 0) {
        const int error = errno;
        if (error == ENOENT && lstat(path, &about) == 0) return fail(context, path, "this link leads to no file");
        if (error == ENOENT && *path) return SP_OK;
        return fail(context, *path ? path : "\"\"", strerror(error));
    }
    if (S_ISDIR(about.st_mode)) return fail(context, path, "this is a folder");
    /* Below /dev and /proc a name stands for an open file, which must not be replaced; /dev/shm is a folder like any
     * other. */
    bool alias = strncmp(path, "/proc/", 6) == 0 ||
                 (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0);
    if (alias && is_standard_output(&about)) *kind = TARGET_STANDARD; /* at its place in the file, if it is one */
    else if (!S_ISREG(about.st_mode) || alias) *kind = TARGET_DIRECT;
    *mode = about.st_mode & 0777;
    return SP_OK;
}

/* What follows the last slash. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The folder of `path`, "." when it names none. */
static void folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (!slash)
        strcpy(folder, ".");
    else if (length == 0)
        strcpy(folder, "/");
    else {
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
}

sp_status io_output_check(sp_context *context, const char *path)
{
    target_kind kind;
    mode_t mode;
    char folder[PATH_MAX];
    sp_status status = classify(context, path, &kind, &mode);
    if (status != SP_OK || kind == TARGET_STANDARD) return status;
    if (strlen(path) + SUFFIX_BYTES > PATH_MAX || strlen(name_of(path)) + SUFFIX_BYTES > NAME_MAX)
        return fail(context, path, strerror(ENAMETOOLONG));
    if (mode != 0 && access(path, W_OK) != 0) return fail(context, path, strerror(errno));
    if (kind == TARGET_DIRECT) return SP_OK;
    folder_of(path, folder);
    if (access(folder, W_OK | X_OK) == 0) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: the folder %s cannot be written: %s; give another place",
                   path, folder, strerror(errno));
}

static bool is_file(const char *path, int standard, struct stat *about)
{
    const int failed = strcmp(path, "-") == 0 ? fstat(standard, about) : stat(path, about);
    return failed == 0 && S_ISREG(about->st_mode);
}

bool io_output_is_input(const char *path, const char *input)
{
    struct stat to, from;
    return is_file(path, STDOUT_FILENO, &to) && is_file(input, STDIN_FILENO, &from) && are_same(&to, &from);
}

/* ---- opening -------------------------------------------------------------------------------------------- */

static sp_status take_slot(io_output *output)
{
    for (int i = 0; i < MOST_OUTPUTS; i++) {
        const char *free_slot = NULL;
        if (atomic_compare_exchange_strong(&temporaries[i], &free_slot, output->temporary)) {
            output->slot = i;
            return SP_OK;
        }
        if (strcmp(free_slot, output->temporary) == 0)
            return fail(output->context, output->shown, "this file is already being written");
    }
    return fail(output->context, output->shown, "too many output files are open");
}

/* The file that `path` names, links followed, and its folder's: one file has one name, if that is not too long. */
static void resolve(const char *path, mode_t mode, char target[PATH_MAX])
{
    const char *name = name_of(path);
    char folder[PATH_MAX];
    if (mode != 0 && realpath(path, target)) return;
    folder_of(path, folder);
    const size_t used = realpath(folder, target) ? strlen(target) : PATH_MAX;
    if (used + strlen(name) + SUFFIX_BYTES < PATH_MAX) snprintf(target + used, PATH_MAX - used, "/%s", name);
    else strcpy(target, path);
}

static sp_status open_temporary(io_output *output, const char *path, mode_t mode)
{
    resolve(path, mode, output->target);
    int length = snprintf(output->temporary, sizeof output->temporary, "%s.tmp.%ld", output->target, (long)getpid());
    if (length < 0 || length >= PATH_MAX) return fail(output->context, output->shown, strerror(ENAMETOOLONG));
    sp_status status = take_slot(output);
    if (status != SP_OK) return status;
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    output->file = open(output->temporary, flags, 0666);
    if (output->file < 0 && errno == EEXIST) {
        /* Left by a process that was killed and had our number. */
        unlink(output->temporary);
        output->file = open(output->temporary, flags, 0666);
    }
    if (output->file < 0) {
        status = fail(output->context, output->shown, strerror(errno));
        atomic_store(&temporaries[output->slot], NULL);
        output->slot = -1;
        return status;
    }
    if (mode != 0 && fchmod(output->file, mode) != 0) output->error = errno;
    return SP_OK;
}

sp_status io_output_open(sp_context *context, const char *path, io_output **output)
{
    target_kind kind;
    mode_t mode;
    *output = NULL;
    sp_status status = io_output_check(context, path);
    if (status == SP_OK) status = classify(context, path, &kind, &mode);
    io_output *made = NULL;
    if (status == SP_OK) status = sp_alloc(context, 1, sizeof *made, (void **)&made);
    if (status != SP_OK) return status;
    made->context = context;
    made->file = made->slot = -1;
    made->close_file = kind != TARGET_STANDARD;
    made->error = 0;
    made->settled = false;
    made->written = made->started = 0;
    made->used = 0;
    snprintf(made->shown, sizeof made->shown, "%s", kind == TARGET_STANDARD ? "(standard output)" : path);
    if (kind == TARGET_STANDARD) {
        made->file = STDOUT_FILENO;
    } else if (kind == TARGET_DIRECT) {
        made->file = open(path, O_WRONLY | O_CLOEXEC);
        if (made->file < 0) status = fail(context, path, strerror(errno));
    } else {
        status = open_temporary(made, path, mode);
    }
    if (status != SP_OK) {
        sp_free(context, made);
        return status;
    }
    *output = made;
    return SP_OK;
}

/* ---- writing -------------------------------------------------------------------------------------------- */

/* Lets the disk begin while more is written, so that the sync at the end waits for little. */
static void start_disk(io_output *output)
{
#ifdef SYNC_FILE_RANGE_WRITE
    if (output->slot < 0 || output->written - output->started < START_BYTES) return;
    if (sync_file_range(output->file, output->started, output->written - output->started, SYNC_FILE_RANGE_WRITE) != 0)
        errno = 0; /* only advice */
    output->started = output->written;
#else
    (void)output;
#endif
}

static void write_all(io_output *output, const char *bytes, size_t count)
{
    while (count && !output->error) {
        ssize_t written = write(output->file, bytes, count);
        if (written >= 0) {
            bytes += written;
            count -= (size_t)written;
            output->written += written;
        } else if (errno != EINTR) {
            output->error = errno;
        }
    }
    start_disk(output);
}

static void flush(io_output *output)
{
    write_all(output, output->buffer, output->used);
    output->used = 0;
}

void io_output_bytes(io_output *output, const void *bytes, size_t count)
{
    if (count == 0) return; /* `bytes` may be NULL */
    if (count > BUFFER_BYTES - output->used) flush(output);
    if (count > BUFFER_BYTES) {
        write_all(output, bytes, count);
        return;
    }
    memcpy(output->buffer + output->used, bytes, count);
    output->used += count;
}

void io_output_string(io_output *output, const char *string) { io_output_bytes(output, string, strlen(string)); }

void io_output_format(io_output *output, const char *format, ...)
{
    va_list arguments;
    for (int attempt = 0; attempt < 2; attempt++) {
        size_t room = BUFFER_BYTES - output->used;
        va_start(arguments, format);
        int length = vsnprintf(output->buffer + output->used, room, format, arguments);
        va_end(arguments);
        if (length >= 0 && (size_t)length < room) {
            output->used += (size_t)length;
            return;
        }
        flush(output);
    }
    /* Longer than the buffer: written through a stream of its own. */
    va_start(arguments, format);
    if (!output->error && vdprintf(output->file, format, arguments) < 0) output->error = errno ? errno : EIO;
    va_end(arguments);
}

void io_output_int(io_output *output, int64_t value)
{
    char digits[IO_NUMBER];
    io_output_bytes(output, digits, io_format_int(digits, value));
}

void io_output_number(io_output *output, double value)
{
    char digits[IO_NUMBER];
    io_output_bytes(output, digits, io_format_f64(digits, value));
}

/* ---- ending --------------------------------------------------------------------------------------------- */

/* Removes the temporary file, if it still is there, and forgets it. */
static void drop_temporary(io_output *output)
{
    if (output->slot < 0) return;
    unlink(output->temporary);
    atomic_store(&temporaries[output->slot], NULL);
    output->slot = -1;
}

/* Some file systems know no fsync: that is no failure of ours. */
static int sync_file(int file)
{
    if (fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS) return 0;
    return errno;
}

static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    folder_of(path, folder);
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return; /* a folder that may be written but not read */
    fsync(file);
    close(file);
}

static sp_status failure(const io_output *output, bool temporary)
{
    return sp_fail(output->context, SP_ERROR_ARGUMENT, "%s: %s; %s", output->shown, strerror(output->error),
                   temporary ? "nothing was written there" : "what was written is incomplete");
}

sp_status io_output_settle(io_output *output)
{
    const bool temporary = output->slot >= 0;
    flush(output);
    if (!output->error && temporary && !output->settled) output->error = sync_file(output->file);
    output->settled = true;
    return output->error ? failure(output, temporary) : SP_OK;
}

sp_status io_output_commit(io_output *output)
{
    const bool temporary = output->slot >= 0;
    sp_status status = io_output_settle(output);
    if (output->close_file && close(output->file) != 0 && !output->error) output->error = errno;
    output->file = -1;
    if (!output->error && temporary) {
        if (rename(output->temporary, output->target) != 0) {
            output->error = errno;
        } else {
            atomic_store(&temporaries[output->slot], NULL);
            output->slot = -1;
            sync_folder(output->target);
        }
    }
    if (output->error) status = failure(output, temporary);
    drop_temporary(output);
    sp_free(output->context, output);
    return status;
}

void io_output_discard(io_output *output)
{
    if (!output) return;
    if (output->close_file) close(output->file);
    drop_temporary(output);
    sp_free(output->context, output);
}

void io_output_unlink_all(void)
{
    for (int i = 0; i < MOST_OUTPUTS; i++) {
        const char *path = atomic_load(&temporaries[i]);
        if (path) unlink(path);
    }
}
