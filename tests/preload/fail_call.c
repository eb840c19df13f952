/* Loaded before a program (LD_PRELOAD), makes the Nth call of the system that writes a file fail with EIO, or with
 * ENOSPC where it is a write: FAIL_CALL=N. Counts open and close of files for writing, write, fsync and rename; with
 * FAIL_CALL=0 none fails. FAIL_COUNT names a file that gets the number of calls at the end. Descriptors 0 to 2 are
 * left alone. fail_resource.c has memory, reading and the other calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_FILES = 1024 };
static bool written_to[MOST_FILES]; /* descriptors that are open for writing */
static long calls;

static void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }

static bool fails_now(int error)
{
    const char *wanted = getenv("FAIL_CALL");
    if (++calls != (wanted ? atol(wanted) : 0)) return false;
    errno = error;
    return true;
}

static bool is_ours(int file) { return file > 2 && file < MOST_FILES && written_to[file]; }

static int open_file(const char *path, int flags, mode_t mode)
{
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    if (writes && fails_now(EIO)) return -1;
    const int file = ((int (*)(const char *, int, ...))next_of("open"))(path, flags, mode);
    if (file > 2 && file < MOST_FILES) written_to[file] = writes;
    return file;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(arguments, int) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_file(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_file(path, flags, mode);
}

int fcntl(int file, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    const int copy = ((int (*)(int, int, ...))next_of("fcntl"))(file, command, argument);
    if ((command == F_DUPFD_CLOEXEC || command == F_DUPFD) && copy > 2 && copy < MOST_FILES)
        written_to[copy] = is_ours(file);
    return copy;
}

int fcntl64(int file, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fcntl(file, command, argument);
}

ssize_t write(int file, const void *bytes, size_t count)
{
    if (is_ours(file) && fails_now(ENOSPC)) return -1;
    return ((ssize_t (*)(int, const void *, size_t))next_of("write"))(file, bytes, count);
}

int fsync(int file)
{
    if (is_ours(file) && fails_now(EIO)) return -1;
    return ((int (*)(int))next_of("fsync"))(file);
}

/* Closed all the same, as the kernel does. */
int close(int file)
{
    const bool fails = is_ours(file) && fails_now(EIO);
    if (file >= 0 && file < MOST_FILES) written_to[file] = false;
    const int result = ((int (*)(int))next_of("close"))(file);
    if (!fails) return result;
    errno = EIO;
    return -1;
}

int rename(const char *from, const char *to)
{
    if (fails_now(EIO)) return -1;
    return ((int (*)(const char *, const char *))next_of("rename"))(from, to);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAIL_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld\n", calls);
    fclose(file);
}
