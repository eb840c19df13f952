/* The implementation of tool.h. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the process --------------------------------------------------------------------------------------- */

void hold_standard_streams(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
            int opened = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
            if (opened > descriptor) close(opened);
        }
}

/* OpenMP's threads spin while they wait for each other, and learn only at the start of a process that they should
 * sleep instead. Alone on a machine that makes no difference; beside other jobs, as in pipelines, spinning takes the
 * processors from those that work: mcl-gpu on 20,000 nodes took 5.9 s of processor time on a busy machine, 3.5 s like
 * this. Starts the process again with that said, unless the environment says something. */
static void wait_asleep(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    char program[PATH_MAX]; /* by its own name, which ps and top show */
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0 || setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
    program[length] = '\0';
    execv(program, argv);
}

void catch_signal(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, inherited;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
}

volatile int interrupt_signal;
volatile sig_atomic_t may_block;

static void on_signal(int number)
{
    if (may_block || interrupt_signal) {
        io_output_unlink_all();
        _exit(EXIT_SIGNAL + number);
    }
    interrupt_signal = number;
}

void catch_signals(void)
{
    catch_signal(SIGINT, on_signal);
    catch_signal(SIGTERM, on_signal);
    catch_signal(SIGHUP, on_signal);
    signal(SIGPIPE, SIG_IGN);
}

enum { LARGE_ARRAY = 1 << 20 };

/* Matrices that grow are moved without a second copy, and what one phase frees is not kept from the next: on 20,000
 * nodes the peak of mcl-gpu falls from 101 to 80 MB. */
void settle_process(char **argv, int64_t threads)
{
    mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY);
    if (threads != 1) wait_asleep(argv);
    catch_signals();
}

/* ---- what is said --------------------------------------------------------------------------------------- */

enum { LONGEST_LINE = 8192 }; /* bytes: two names of files */

size_t format_line(char *line, size_t size, const char *format, va_list arguments)
{
    const int length = vsnprintf(line, size, format, arguments);
    const size_t used = length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
    for (size_t i = 0; i < used; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 127) line[i] = '?';
    line[used] = '\0';
    return used;
}

bool usage_mistake(const char *command, const char *format, ...)
{
    char line[LONGEST_LINE];
    va_list arguments;
    va_start(arguments, format);
    format_line(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%.*s: %s; see %s --help\n", (int)strcspn(command, " "), command, line, command);
    return false;
}

void answer_line(const char *format, ...)
{
    char line[LONGEST_LINE];
    va_list arguments;
    va_start(arguments, format);
    format_line(line, sizeof line, format, arguments);
    va_end(arguments);
    puts(line);
}

int end_answer(const char *tool)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_DONE;
    fprintf(stderr, "%s: stdout: %s\n", tool, strerror(errno));
    return EXIT_FAILED;
}

void quiet_line(tool_line *line)
{
    if (line->progress) fputs("\r\033[K", stderr);
    line->progress = false;
}

void show_line(tool_line *line, const char *format, ...)
{
    char text[LONGEST_LINE];
    if (!line->terminal) return;
    va_list arguments;
    va_start(arguments, format);
    format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\r\033[K%s", text);
    line->progress = true;
}

void notice_line(tool_line *line, const char *format, ...)
{
    char text[LONGEST_LINE];
    va_list arguments;
    va_start(arguments, format);
    format_line(text, sizeof text, format, arguments);
    va_end(arguments);
    quiet_line(line);
    fprintf(stderr, "%s: %s\n", line->tool, text);
}

/* ---- files and threads ---------------------------------------------------------------------------------- */

int64_t file_bytes(const char *path)
{
    struct stat file;
    return strcmp(path, "-") != 0 && stat(path, &file) == 0 && S_ISREG(file.st_mode) ? (int64_t)file.st_size : -1;
}

bool overwrites(const char *command, const char *output, const char *input)
{
    if (!output || !input || !io_output_is_input(output, input)) return false;
    return !usage_mistake(command, "the output \"%.200s\" is an input, too: give it another name", output);
}

/* Starting and joining threads costs more than it brings on small inputs, which pipelines work on by the thousand,
 * often side by side. A thread for each part of this size takes some 10 ms or more to work on it. */
static const int64_t THREAD_BYTES = 256 << 10;

int thread_count(const char *path, int64_t wanted)
{
    cpu_set_t usable;
    const int64_t most = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
    const int64_t bytes = file_bytes(path);
    if (wanted == 0) wanted = bytes >= 0 ? 1 + bytes / THREAD_BYTES : most;
    return (int)(wanted < most ? wanted : most);
}

double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

bool read_number(const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && isfinite(*value);
}

bool read_integer(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

bool read_bytes(const char *text, int64_t *bytes)
{
    static const char suffixes[] = "KMGT";
    char number[64];
    size_t length = strlen(text);
    double scale = 1, amount = 0;
    if (length == 0 || length >= sizeof number) return false;
    memcpy(number, text, length + 1);
    const char *suffix = strchr(suffixes, number[length - 1]);
    if (suffix) {
        scale = ldexp(1, 10 * (int)(suffix - suffixes + 1));
        number[length - 1] = '\0';
    }
    if (!read_number(number, &amount) || !(amount * scale >= 1) || !(amount * scale < ldexp(1, 62))) return false;
    *bytes = (int64_t)(amount * scale);
    return true;
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

/* The length of the UTF-8 character that `text` begins with, 0 if it is none. */
static int utf8_length(const unsigned char *text)
{
    int length = text[0] < 0x80 ? 1 : text[0] >= 0xc2 && text[0] < 0xe0 ? 2 : (text[0] & 0xf0) == 0xe0 ? 3 : 4;
    if (length == 4 && (text[0] < 0xf0 || text[0] > 0xf4)) return 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool surrogate = text[0] == 0xed && text[1] >= 0xa0, beyond = text[0] == 0xf4 && text[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

void put_json_text(io_output *out, const char *text)
{
    if (!text) {
        io_output_string(out, "null");
        return;
    }
    io_output_string(out, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int length = utf8_length(p);
        if (length == 0 || *p < ' ' || *p == '"' || *p == '\\') {
            io_output_format(out, "\\u%04x", *p++);
        } else {
            io_output_bytes(out, p, (size_t)length);
            p += length;
        }
    }
    io_output_string(out, "\"");
}
