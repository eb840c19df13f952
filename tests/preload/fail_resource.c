/* Loaded before a program (LD_PRELOAD), makes the Nth request of the program itself fail: FAIL_CALL=N; 0: none.
 * Requests of the libraries that it loads do not count, nor what comes before main, where CUDA's runtime registers
 * kernels.
 * FAIL_KIND tells of which kind: memory (malloc, calloc, realloc, aligned_alloc, posix_memalign), read (open for
 * reading, fopen, read, pread, fstat), place (stat, lstat, access, realpath, opendir, readdir, mkdir, lseek, fchmod,
 * getentropy, pwrite), handle (flock, fcntl, poll, dup, dup2, readlink, sync_file_range, newlocale, open_memstream) or
 * thread (pthread_create). With FAIL_REMOVALS=1 unlink and rmdir of the program always fail, too: nothing is removed
 * unless something has failed before. FAIL_COUNT names a file that gets the number of requests at the end.
 *
 * Left out: mmap, madvise and the like, which only the allocators of libraries call; sigaction, isatty and sysconf,
 * which fail on wrong arguments alone; getrusage and clocks, which are for figures; and pipe, posix_spawn, waitpid,
 * mkstemp and glob, by which sparse-bench --peers runs programs that others publish: they are not here, and it writes
 * no result before they have ended. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* glibc's own, which need no dlsym: that allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

enum { MEMORY = 1, READ, PLACE, HANDLE, THREAD };
static int kind;
static long wanted;
static atomic_long calls;
static uintptr_t code_begin, code_end; /* of the program */
static bool keeps;                     /* removals fail */
static bool begun;                     /* main has */

static int find_code(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        code_begin = object->dlpi_addr + part->p_vaddr;
        code_end = code_begin + part->p_memsz;
    }
    return 1; /* the program is the first object */
}

__attribute__((constructor)) static void begin(void)
{
    const char *what = getenv("FAIL_KIND"), *call = getenv("FAIL_CALL");
    dl_iterate_phdr(find_code, NULL);
    wanted = call ? atol(call) : 0;
    keeps = getenv("FAIL_REMOVALS") != NULL;
    kind = !what                        ? 0
           : strcmp(what, "memory") == 0 ? MEMORY
           : strcmp(what, "read") == 0   ? READ
           : strcmp(what, "place") == 0  ? PLACE
           : strcmp(what, "handle") == 0 ? HANDLE
                                         : THREAD;
}

/* Whether this request of the caller is the one that fails. */
static bool fails(int of, const void *caller, int error)
{
    const uintptr_t from = (uintptr_t)caller;
    if (!begun || kind != of || from < code_begin || from >= code_end || ++calls != wanted) return false;
    errno = error;
    return true;
}
#define FAILS(of, error) fails(of, __builtin_return_address(0), error)

static void *next_of(const char *name) { return dlsym(RTLD_NEXT, name); }

typedef int main_function(int, char **, char **);
static main_function *programs_main;
static int counted_main(int argc, char **argv, char **variables)
{
    begun = true;
    return programs_main(argc, argv, variables);
}

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*unload)(void), void *stack_end)
{
    typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    programs_main = main;
    return ((start_function *)next_of("__libc_start_main"))(counted_main, argc, argv, init, fini, unload, stack_end);
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

void *malloc(size_t size) { return FAILS(MEMORY, ENOMEM) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return FAILS(MEMORY, ENOMEM) ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return FAILS(MEMORY, ENOMEM) ? NULL : __libc_realloc(block, size); }
void *aligned_alloc(size_t alignment, size_t size)
{
    return FAILS(MEMORY, ENOMEM) ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (FAILS(MEMORY, ENOMEM)) return ENOMEM;
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

/* ---- reading --------------------------------------------------------------------------------------------- */

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
    if ((flags & O_ACCMODE) == O_RDONLY && FAILS(READ, EIO)) return -1;
    return ((int (*)(const char *, int, ...))next_of("open"))(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    if ((flags & O_ACCMODE) == O_RDONLY && FAILS(READ, EIO)) return -1;
    return ((int (*)(const char *, int, ...))next_of("open64"))(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    if (*mode == 'r' && FAILS(READ, EIO)) return NULL;
    return ((FILE * (*)(const char *, const char *))next_of("fopen"))(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    if (*mode == 'r' && FAILS(READ, EIO)) return NULL;
    return ((FILE * (*)(const char *, const char *))next_of("fopen64"))(path, mode);
}

ssize_t read(int file, void *bytes, size_t count)
{
    if (FAILS(READ, EIO)) return -1;
    return ((ssize_t (*)(int, void *, size_t))next_of("read"))(file, bytes, count);
}

ssize_t pread(int file, void *bytes, size_t count, off_t at)
{
    if (FAILS(READ, EIO)) return -1;
    return ((ssize_t (*)(int, void *, size_t, off_t))next_of("pread"))(file, bytes, count, at);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t at)
{
    if (FAILS(READ, EIO)) return -1;
    return ((ssize_t (*)(int, void *, size_t, off64_t))next_of("pread64"))(file, bytes, count, at);
}

int fstat(int file, struct stat *status)
{
    if (FAILS(READ, EIO)) return -1;
    return ((int (*)(int, struct stat *))next_of("fstat"))(file, status);
}

/* ---- places ---------------------------------------------------------------------------------------------- */

/* ANY(kind, result, name, error, failed, (parameters), (arguments)): a call that fails with `error` and returns
 * `failed`. */
#define ANY(of, result, name, error, failed, parameters, arguments)      \
    result name parameters                                               \
    {                                                                    \
        if (FAILS(of, error)) return failed;                             \
        return ((result(*) parameters)next_of(#name))arguments;          \
    }
#define PLACED(...) ANY(PLACE, __VA_ARGS__)
#define HANDLED(...) ANY(HANDLE, __VA_ARGS__)
PLACED(int, stat, EIO, -1, (const char *path, struct stat *about), (path, about))
PLACED(int, lstat, EIO, -1, (const char *path, struct stat *about), (path, about))
PLACED(int, access, EIO, -1, (const char *path, int how), (path, how))
PLACED(char *, realpath, EIO, NULL, (const char *path, char *target), (path, target))
PLACED(DIR *, opendir, EIO, NULL, (const char *path), (path))
PLACED(struct dirent *, readdir, EIO, NULL, (DIR * folder), (folder))
PLACED(int, mkdir, ENOSPC, -1, (const char *path, mode_t mode), (path, mode))
PLACED(off_t, lseek, EIO, -1, (int file, off_t place, int from), (file, place, from))
PLACED(int, fchmod, EPERM, -1, (int file, mode_t mode), (file, mode))
PLACED(int, getentropy, EIO, -1, (void *bytes, size_t count), (bytes, count))
PLACED(ssize_t, pwrite, ENOSPC, -1, (int file, const void *bytes, size_t count, off_t at), (file, bytes, count, at))

/* ---- handles --------------------------------------------------------------------------------------------- */

HANDLED(int, flock, ENOLCK, -1, (int file, int how), (file, how))
HANDLED(int, poll, ENOMEM, -1, (struct pollfd * files, nfds_t count, int wait), (files, count, wait))
HANDLED(int, dup, EMFILE, -1, (int file), (file))
HANDLED(int, dup2, EIO, -1, (int file, int copy), (file, copy))
HANDLED(ssize_t, readlink, EACCES, -1, (const char *path, char *target, size_t room), (path, target, room))
HANDLED(int, sync_file_range, EIO, -1, (int file, off64_t from, off64_t count, unsigned how), (file, from, count, how))
HANDLED(locale_t, newlocale, ENOMEM, (locale_t)0, (int mask, const char *name, locale_t base), (mask, name, base))
HANDLED(FILE *, open_memstream, ENOMEM, NULL, (char **text, size_t *size), (text, size))

int fcntl(int file, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (FAILS(HANDLE, command == F_DUPFD_CLOEXEC ? EMFILE : EIO)) return -1;
    return ((int (*)(int, int, ...))next_of("fcntl"))(file, command, argument);
}

static bool stays(const void *caller)
{
    return keeps && (uintptr_t)caller >= code_begin && (uintptr_t)caller < code_end;
}

#define REMOVAL(name)                                                    \
    int name(const char *path)                                           \
    {                                                                    \
        if (!stays(__builtin_return_address(0))) return ((int (*)(const char *))next_of(#name))(path); \
        errno = EACCES;                                                  \
        return -1;                                                       \
    }
REMOVAL(unlink)
REMOVAL(rmdir)

/* ---- threads --------------------------------------------------------------------------------------------- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    if (FAILS(THREAD, EAGAIN)) return EAGAIN;
    return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))next_of("pthread_create"))(
        thread, attributes, start, argument);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAIL_COUNT");
    kind = 0;
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld\n", (long)calls);
    fclose(file);
}
