/* What systems do differently: Linux, with glibc or musl, and macOS. No other file of the CPU's code asks which system
 * it is for, or calls what only one of them has. */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#include <malloc/malloc.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <xlocale.h>
#else
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#endif

/* ---- memory --------------------------------------------------------------------------------------------- */

/* What a block from malloc has room for: at least what was requested. */
static inline size_t system_block_bytes(void *block)
{
#ifdef __APPLE__
    return malloc_size(block);
#else
    return malloc_usable_size(block);
#endif
}

/* Requests huge pages for the pages of these bytes. */
static inline void system_huge_pages(void *from, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { PAGE = 4096 };
    const uintptr_t start = (uintptr_t)from / PAGE * PAGE, end = ((uintptr_t)from + bytes + PAGE - 1) / PAGE * PAGE;
    madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
    (void)from;
    (void)bytes;
#endif
}

/* Takes blocks of at least `bytes` from the system one by one, if the C library can be told. */
static inline void system_map_blocks(int bytes)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, bytes);
#else
    (void)bytes;
#endif
}

/* Bytes of memory; *unused gets those that are free, 0 if the system does not say. */
static inline uint64_t system_memory(uint64_t *unused)
{
    *unused = 0;
#ifdef __APPLE__
    uint64_t bytes = 0;
    size_t size = sizeof bytes;
    return sysctlbyname("hw.memsize", &bytes, &size, NULL, 0) == 0 ? bytes : 0;
#else
    struct sysinfo memory;
    if (sysinfo(&memory) != 0) return 0;
    *unused = (uint64_t)memory.freeram * memory.mem_unit;
    return (uint64_t)memory.totalram * memory.mem_unit;
#endif
}

/* The most memory that this process has had, in bytes. */
static inline int64_t system_peak_bytes(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#ifdef __APPLE__
    return (int64_t)usage.ru_maxrss;
#else
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}

/* ---- processors and processes --------------------------------------------------------------------------- */

/* Processors that this process may use. */
static inline int system_processors(void)
{
#ifdef __APPLE__
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
#else
    cpu_set_t usable;
    return sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
#endif
}

/* Bytes of the last cache that a core has for itself, or 512 KB if the system does not say. */
static inline int64_t system_core_cache(void)
{
    int64_t bytes = 0;
#ifdef __APPLE__
    size_t size = sizeof bytes;
    if (sysctlbyname("hw.l2cachesize", &bytes, &size, NULL, 0) != 0) bytes = 0;
#elif defined _SC_LEVEL2_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return bytes > 0 ? bytes : 512 << 10;
}

/* Whether this process may have several threads. */
static inline bool system_has_threads(void)
{
#ifdef __APPLE__
    return true;
#else
    struct stat tasks; /* this folder has two links, and one more a thread */
    return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 3;
#endif
}

/* The path of the running program; "" if it is unknown. */
static inline void system_program(char path[PATH_MAX])
{
#ifdef __APPLE__
    uint32_t size = PATH_MAX;
    if (_NSGetExecutablePath(path, &size) != 0) path[0] = '\0';
#else
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
#endif
}

/* A condition for system_wait. */
static inline bool system_condition(pthread_cond_t *condition)
{
#ifdef __APPLE__
    return pthread_cond_init(condition, NULL) == 0;
#else
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0) return false;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    const bool made = pthread_cond_init(condition, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    return made;
#endif
}

/* Waits for the condition, at most this time, which is below a second. A change of the time of day does not matter. */
static inline void system_wait(pthread_cond_t *condition, pthread_mutex_t *lock, long nanoseconds)
{
#ifdef __APPLE__
    const struct timespec time = {0, nanoseconds};
    pthread_cond_timedwait_relative_np(condition, lock, &time);
#else
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(condition, lock, &until);
#endif
}

/* Signals that POSIX does not have and that end a process. Returns how many. */
enum { SYSTEM_SIGNALS = 64 };
static inline int system_signals(int numbers[SYSTEM_SIGNALS])
{
    int count = 0;
#ifdef SIGSTKFLT
    numbers[count++] = SIGSTKFLT;
#endif
#ifdef SIGPWR
    numbers[count++] = SIGPWR;
#endif
#ifdef SIGRTMIN
    for (int number = SIGRTMIN; number <= SIGRTMAX && count < SYSTEM_SIGNALS; number++) numbers[count++] = number;
#else
    (void)numbers;
#endif
    return count;
}

/* ---- bytes and files ------------------------------------------------------------------------------------ */

/* The last `byte` of `count` bytes, NULL if there is none. */
static inline char *system_find_last(char *bytes, char byte, size_t count)
{
#ifdef __APPLE__
    while (count > 0 && bytes[count - 1] != byte) count--;
    return count > 0 ? bytes + count - 1 : NULL;
#else
    return memrchr(bytes, byte, count);
#endif
}

/* strtod as in the C locale, which glibc and musl hand out without allocating. */
static inline double system_strtod(const char *text, char **end)
{
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale) return strtod(text, end);
    const double value = strtod_l(text, end, locale);
    freelocale(locale);
    return value;
}

/* Starts to write these bytes of a file to the disk; only advice. */
static inline void system_start_writing(int file, off_t from, off_t bytes)
{
#ifdef SYNC_FILE_RANGE_WRITE
    (void)!sync_file_range(file, from, bytes, SYNC_FILE_RANGE_WRITE);
#else
    (void)file;
    (void)from;
    (void)bytes;
#endif
}

#endif
