/* Output files that appear complete or not at all.
 *
 * A regular target is written as PATH.tmp.XXXXXXXX, random hexadecimal digits, in its own folder, synced and renamed
 * over PATH; the folder is synced too, so that the name survives a power cut. Another process may own or replace a file
 * of that name, so the file is renamed or removed only while the name still leads to the open descriptor. A process
 * locks its temporary file, so what nobody has locked is of one that was killed, and is removed. Standard
 * output, FIFOs and devices are written directly. The first error is kept and reported by io_output_commit.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system.h"
#include "bytes/deflate.h"

enum { BUFFER_BYTES = 1 << 16, MOST_OUTPUTS = 64, START_BYTES = 1 << 23 };
enum { SUFFIX_BYTES = 16, RANDOM_DIGITS = 8 }; /* room for .tmp.XXXXXXXX */
enum { NAME_ATTEMPTS = 8 };

struct io_output {
    sp_context *context;
    int file;
    bool close_file;
    bool settled; /* synced */
    bool joined;  /* another process has opened the file, and ends it */
    int slot;  /* in `temporaries`; -1: written directly */
    int error; /* errno of the first failure, or NAME_LOST */
    off_t written, started; /* bytes of the temporary file, and those that are on their way to the disk */
    io_deflate *deflate; /* compresses what leaves the buffer; NULL: nothing does */
    size_t used;
    char shown[256];       /* what the user called it */
    char target[PATH_MAX]; /* symbolic links followed */
    char buffer[BUFFER_BYTES];
};

enum { NAME_LOST = -1 };

/* The temporary files that exist, in memory that stays: a signal handler may look at them at any time. */
typedef enum temporary_state { STATE_FREE, STATE_TAKEN, STATE_OPEN } temporary_state;
static struct temporary {
    _Atomic(int) state;
    int file;
    char path[PATH_MAX];
} temporaries[MOST_OUTPUTS];

static sp_status fail(sp_context *context, const char *path, const char *what)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s; give another place", path, what);
}

/* ---- open and finished outputs -------------------------------------------------------------------------- */

/* Names of the files that were written, one after another, a NUL after each: only appended to, so that a signal
 * handler may read them at any time. Those that do not fit are counted. */
enum { WRITTEN_BYTES = 4096, LISTED = 8 };
static char written_names[WRITTEN_BYTES];
static _Atomic(int) written_listed, written_others, begun; /* begun: direct outputs that got a part */

static void note_written(const char *name)
{
    const char *at = written_names;
    const int listed = atomic_load(&written_listed);
    for (int i = 0; i < listed; i++, at += strlen(at) + 1)
        if (strcmp(at, name) == 0) return;
    if (listed == LISTED || strlen(name) >= (size_t)(written_names + WRITTEN_BYTES - at)) {
        atomic_fetch_add(&written_others, 1);
        return;
    }
    strcpy(written_names + (at - written_names), name);
    atomic_store(&written_listed, listed + 1);
}

static void append(char *text, size_t size, const char *more)
{
    const size_t used = strlen(text), length = strlen(more), room = size - used - 1;
    memcpy(text + used, more, length < room ? length : room);
    text[used + (length < room ? length : room)] = '\0';
}

static void append_count(char *text, size_t size, int count)
{
    char digits[12], *at = digits + sizeof digits - 1;
    *at = '\0';
    do *--at = (char)('0' + count % 10);
    while (count /= 10);
    append(text, size, at);
}

bool io_output_account(char *text, size_t size)
{
    const int listed = atomic_load(&written_listed), others = atomic_load(&written_others);
    const int all = listed + (others > 0);
    const char *at = written_names;
    text[0] = '\0';
    for (int i = 0; i < listed; i++, at += strlen(at) + 1) {
        if (i > 0) append(text, size, i + 1 == all ? " and " : ", ");
        append(text, size, at);
    }
    if (others > 0) {
        append(text, size, listed > 0 ? " and " : "");
        append_count(text, size, others);
        append(text, size, listed > 0 ? " more" : others > 1 ? " files" : " file");
    }
    append(text, size, all == 0 ? "no file was written" : listed + others > 1 ? " were written, no other file"
                                                                              : " was written, no other file");
    if (atomic_load(&begun) > 0) append(text, size, "; what went to standard output or a pipe is incomplete");
    return all > 0;
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

/* Below /dev and /proc a name stands for an open file, which must not be replaced; /dev/shm is a folder like any
 * other. */
static bool is_alias(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 ||
           (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0);
}

/* What PATH is; *mode gets the permissions of an existing file, else 0. */
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
    if (is_alias(path) && is_standard_output(&about)) *kind = TARGET_STANDARD; /* at its place, if it is a file */
    else if (!S_ISREG(about.st_mode) || is_alias(path)) *kind = TARGET_DIRECT;
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

void io_output_place(const char *path, io_place *place)
{
    struct stat about;
    char target[PATH_MAX], folder[PATH_MAX];
    memset(place, 0, sizeof *place);
    place->dash = strcmp(path, "-") == 0;
    place->there = (place->dash ? fstat(STDOUT_FILENO, &about) : stat(path, &about)) == 0;
    if (place->there) {
        place->standard = is_alias(path) && is_standard_output(&about);
        place->sink = S_ISCHR(about.st_mode);
        place->device = about.st_dev;
        place->file = about.st_ino;
        place->names = about.st_nlink;
    }
    place->standard |= place->dash;
    if (place->dash || strlen(path) >= PATH_MAX) return;
    if (!place->there || !realpath(path, target)) strcpy(target, path);
    folder_of(target, folder);
    place->placed = stat(folder, &about) == 0 && strlen(name_of(target)) < sizeof place->name;
    if (!place->placed) return;
    place->folder_device = about.st_dev;
    place->folder = about.st_ino;
    strcpy(place->name, name_of(target));
}

/* Hard links count as separate files, since a rename separates them. On a file system that ignores case, one file has
 * two names. */
bool io_output_same_place(const io_place *a, const io_place *b)
{
    if (a->dash && b->dash) return true;
    if (a->sink || b->sink) return false;
    const bool one_file = a->there && b->there && a->device == b->device && a->file == b->file;
    if (one_file && (a->names == 1 || a->standard || b->standard)) return true;
    return a->placed && b->placed && a->folder_device == b->folder_device && a->folder == b->folder &&
           strcmp(a->name, b->name) == 0;
}

/* ---- opening -------------------------------------------------------------------------------------------- */

static bool is_temporary_of(const char *path, const char *target)
{
    static const char mark[] = ".tmp.";
    const size_t length = strlen(target), head = length + sizeof mark - 1;
    return strncmp(path, target, length) == 0 && strncmp(path + length, mark, sizeof mark - 1) == 0 &&
           strlen(path + head) == RANDOM_DIGITS && strspn(path + head, "0123456789abcdef") == RANDOM_DIGITS;
}

static sp_status take_slot(io_output *output)
{
    int slot = -1;
    for (int i = MOST_OUTPUTS; i-- > 0;) {
        if (atomic_load(&temporaries[i].state) == STATE_FREE) slot = i;
        else if (is_temporary_of(temporaries[i].path, output->target))
            return fail(output->context, output->shown, "this file is already being written");
    }
    if (slot < 0) return fail(output->context, output->shown, "too many output files are open");
    temporaries[slot].path[0] = '\0';
    atomic_store(&temporaries[slot].state, STATE_TAKEN);
    output->slot = slot;
    return SP_OK;
}

static void release_slot(io_output *output)
{
    atomic_store(&temporaries[output->slot].state, STATE_FREE);
    output->slot = -1;
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

/* Whether `path` still names the open file. */
static bool leads_to(const char *path, int file)
{
    struct stat opened, named;
    return fstat(file, &opened) == 0 && lstat(path, &named) == 0 && are_same(&opened, &named);
}

/* Whether somebody has removed the open file of that name; not, where that cannot be told. */
static bool is_gone(const char *path, int file)
{
    struct stat opened, named;
    if (lstat(path, &named) != 0) return errno == ENOENT;
    return fstat(file, &opened) == 0 && !are_same(&opened, &named);
}

/* Whether the new file is this process's: one that removes what is abandoned may just have taken it for that. Where
 * files cannot be locked nobody removes any. */
static bool is_ours(const char *path, int file)
{
    return (flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && !is_gone(path, file);
}

/* Removes the temporary files of killed processes beside `target`, which was to be their output. */
static void remove_abandoned(const char *target)
{
    char folder[PATH_MAX], path[PATH_MAX];
    const struct dirent *entry;
    struct stat about;
    folder_of(target, folder);
    DIR *entries = opendir(folder);
    while (entries && (entry = readdir(entries))) {
        if (!is_temporary_of(entry->d_name, name_of(target))) continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= PATH_MAX) continue;
        const int file = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (file < 0) continue;
        if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0 &&
            leads_to(path, file))
            unlink(path);
        close(file);
    }
    if (entries) closedir(entries);
}

/* A new file with a random name beside `target`: its descriptor, or -1 and errno. */
static int create_temporary(const char *target, char path[PATH_MAX])
{
    uint32_t number;
    int file = -1;
    for (int attempt = 0; attempt < NAME_ATTEMPTS && file < 0; attempt++) {
        if (getentropy(&number, sizeof number) != 0) return -1;
        const int length = snprintf(path, PATH_MAX, "%s.tmp.%08x", target, (unsigned)number);
        if (length < 0 || length >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST) return -1;
        if (file < 0 || is_ours(path, file)) continue;
        close(file);
        file = -1;
        errno = EEXIST;
    }
    return file;
}

static sp_status open_temporary(io_output *output, const char *path, mode_t mode)
{
    resolve(path, mode, output->target);
    sp_status status = take_slot(output);
    if (status != SP_OK) return status;
    remove_abandoned(output->target);
    struct temporary *made = &temporaries[output->slot];
    output->file = made->file = create_temporary(output->target, made->path);
    if (output->file < 0) {
        status = fail(output->context, output->shown, strerror(errno));
        release_slot(output);
        return status;
    }
    atomic_store(&made->state, STATE_OPEN);
    if (mode != 0 && fchmod(output->file, mode) != 0) output->error = errno;
    return SP_OK;
}

static sp_status open_target(io_output *output, const char *path, target_kind kind, mode_t mode)
{
    if (kind == TARGET_FILE) return open_temporary(output, path, mode);
    output->file = kind == TARGET_STANDARD ? STDOUT_FILENO : open(path, O_WRONLY | O_CLOEXEC);
    return output->file < 0 ? fail(output->context, path, strerror(errno)) : SP_OK;
}

static bool is_compressed(const char *path)
{
    const size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
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
    made->settled = made->joined = false;
    made->written = made->started = 0;
    made->deflate = NULL;
    made->used = 0;
    snprintf(made->shown, sizeof made->shown, "%s", kind == TARGET_STANDARD ? "(standard output)" : path);
    if (is_compressed(path)) status = io_deflate_open(context, &made->deflate);
    if (status == SP_OK) status = open_target(made, path, kind, mode);
    if (status != SP_OK) {
        io_deflate_close(context, made->deflate);
        sp_free(context, made);
        return status;
    }
    *output = made;
    return SP_OK;
}

const char *io_output_temporary(const io_output *output)
{
    return output->slot >= 0 ? temporaries[output->slot].path : NULL;
}

sp_status io_output_join(sp_context *context, const char *path, const char *temporary, io_output **output)
{
    io_output *made;
    sp_status status = sp_calloc(context, 1, sizeof *made, (void **)&made);
    if (status != SP_OK) return status;
    made->context = context;
    made->slot = -1;
    made->close_file = made->joined = true;
    snprintf(made->shown, sizeof made->shown, "%s", path);
    made->file = open(temporary, O_WRONLY | O_CLOEXEC);
    if (made->file >= 0) {
        *output = made;
        return SP_OK;
    }
    status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s: %s; give a place that all hosts share", path, temporary,
                     strerror(errno));
    sp_free(context, made);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------------------- */

/* Starts writing to the disk early, so that the sync at the end is short. */
static void start_disk(io_output *output)
{
    if (output->slot < 0 || output->written - output->started < START_BYTES) return;
    system_start_writing(output->file, output->started, output->written - output->started);
    output->started = output->written;
}

static void write_all(io_output *output, const char *bytes, size_t count)
{
    while (count && !output->error) {
        ssize_t written = write(output->file, bytes, count);
        if (written >= 0) {
            bytes += written;
            count -= (size_t)written;
            if (output->written == 0 && written > 0 && output->slot < 0) atomic_fetch_add(&begun, 1);
            output->written += written;
        } else if (errno != EINTR) {
            output->error = errno;
        }
    }
    start_disk(output);
}

static void write_compressed(void *output, const char *bytes, size_t count) { write_all(output, bytes, count); }

/* Bytes that leave the buffer, or do not go through it. */
static void pass_on(io_output *output, const char *bytes, size_t count, bool last)
{
    if (output->error) return;
    if (output->deflate) io_deflate_bytes(output->deflate, bytes, count, last, write_compressed, output);
    else write_all(output, bytes, count);
}

static void flush(io_output *output, bool last)
{
    pass_on(output, output->buffer, output->used, last);
    output->used = 0;
}

void io_output_bytes(io_output *output, const void *bytes, size_t count)
{
    if (count == 0) return; /* `bytes` may be NULL */
    if (count > BUFFER_BYTES - output->used) flush(output, false);
    if (count > BUFFER_BYTES) {
        pass_on(output, bytes, count, false);
        return;
    }
    memcpy(output->buffer + output->used, bytes, count);
    output->used += count;
}

void io_output_at(io_output *output, int64_t place, const void *bytes, size_t count)
{
    for (const char *at = bytes; count > 0 && !output->error;) {
        const ssize_t written = pwrite(output->file, at, count, (off_t)place);
        if (written < 0 && errno != EINTR) output->error = errno;
        if (written <= 0) continue;
        at += written;
        place += written;
        count -= (size_t)written;
    }
}

void io_output_string(io_output *output, const char *string) { io_output_bytes(output, string, strlen(string)); }

/* Text that is longer than the buffer. */
static void put_long(io_output *output, size_t length, const char *format, va_list arguments)
{
    char *text;
    if (sp_alloc(output->context, (int64_t)length + 1, 1, (void **)&text) != SP_OK) {
        if (!output->error) output->error = ENOMEM;
        return;
    }
    vsnprintf(text, length + 1, format, arguments);
    io_output_bytes(output, text, length);
    sp_free(output->context, text);
}

void io_output_format(io_output *output, const char *format, ...)
{
    va_list arguments;
    int length = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        size_t room = BUFFER_BYTES - output->used;
        va_start(arguments, format);
        length = vsnprintf(output->buffer + output->used, room, format, arguments);
        va_end(arguments);
        if (length >= 0 && (size_t)length < room) {
            output->used += (size_t)length;
            return;
        }
        flush(output, false);
    }
    va_start(arguments, format);
    if (length >= 0) put_long(output, (size_t)length, format, arguments);
    else if (!output->error) output->error = errno ? errno : EIO;
    va_end(arguments);
}

/* ---- ending --------------------------------------------------------------------------------------------- */

/* Removes the temporary file, if it still is ours, and forgets it. */
static void drop_temporary(io_output *output)
{
    if (output->slot < 0) return;
    const char *path = temporaries[output->slot].path;
    if (leads_to(path, output->file)) unlink(path);
    release_slot(output);
}

/* Some file systems do not support fsync, which is not an error. */
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
    return sp_fail(output->context, SP_ERROR_ARGUMENT, "%s: %s; %s", output->shown,
                   output->error == NAME_LOST ? "another process removed or replaced its temporary file"
                                              : strerror(output->error),
                   temporary ? "nothing was written there" : "what was written is incomplete");
}

sp_status io_output_settle(io_output *output)
{
    const bool temporary = output->slot >= 0;
    if (!output->settled) flush(output, true);
    const bool lasts = temporary || output->joined;
    if (!output->error && lasts && !output->settled) output->error = sync_file(output->file);
    output->settled = true;
    return output->error ? failure(output, lasts) : SP_OK;
}

/* Network file systems report at close what they could not write. A copy is closed, because the descriptor still
 * identifies our file. */
static int close_copy(int file)
{
    const int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
    return copy < 0 || close(copy) != 0 ? errno : 0;
}

/* Gives the settled temporary file its name. */
static int publish(io_output *output)
{
    const char *path = temporaries[output->slot].path;
    const int error = close_copy(output->file);
    if (error) return error;
    if (!leads_to(path, output->file)) return NAME_LOST;
    if (rename(path, output->target) != 0) return errno;
    release_slot(output);
    sync_folder(output->target);
    note_written(output->shown);
    return 0;
}

static void release(io_output *output)
{
    io_deflate_close(output->context, output->deflate);
    sp_free(output->context, output);
}

sp_status io_output_commit(io_output *output)
{
    const bool temporary = output->slot >= 0;
    sp_status status = io_output_settle(output);
    if (temporary && !output->error) output->error = publish(output);
    drop_temporary(output);
    if (output->close_file && close(output->file) != 0 && !temporary && !output->error) output->error = errno;
    if (output->error) status = failure(output, temporary || output->joined);
    else if (!temporary && output->written > 0) atomic_fetch_sub(&begun, 1);
    release(output);
    return status;
}

sp_status io_output_commit_all(io_output *const *outputs, int count)
{
    sp_status status = SP_OK;
    for (int i = 0; i < count && status == SP_OK; i++) status = io_output_settle(outputs[i]);
    for (int i = count; i-- > 0;) {
        if (status == SP_OK) status = io_output_commit(outputs[i]);
        else io_output_discard(outputs[i]);
    }
    return status;
}

bool io_output_is_file(const io_output *output) { return output->slot >= 0; }

void io_output_discard(io_output *output)
{
    if (!output) return;
    drop_temporary(output);
    if (output->close_file) close(output->file);
    release(output);
}

void io_output_unlink_all(void)
{
    for (int i = 0; i < MOST_OUTPUTS; i++) {
        const struct temporary *t = &temporaries[i];
        if (atomic_load(&t->state) == STATE_OPEN && leads_to(t->path, t->file)) unlink(t->path);
    }
}
