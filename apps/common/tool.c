/* The implementation of tool.h. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system.h"

/* ---- the process --------------------------------------------------------------------------------------- */

void hold_standard_streams(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
            int opened = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
            if (opened > descriptor) close(opened);
        }
}

/* Makes OpenMP's threads sleep while they wait, instead of spinning. OpenMP reads its setting only at the start of a
 * process, so this starts the process again, unless the environment has a setting. Alone on a machine it makes no
 * difference; beside other jobs, as in pipelines, threads that spin take processors from threads that work. On a busy
 * machine mcl-gpu on 20,000 nodes took 5.9 s of processor time, and 3.5 s with sleeping threads. */
static void wait_asleep(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    char program[PATH_MAX]; /* by its own name, which ps and top show */
    system_program(program);
    if (!*program || setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
    execv(program, argv);
}

/* ---- signals -------------------------------------------------------------------------------------------- */

volatile int interrupt_signal;
volatile sig_atomic_t may_block;

enum { LONGEST_LINE = 8192 }; /* bytes: two names of files */

static struct {
    const char *tool;
    bool terminal; /* stderr is a terminal: a changing line may stand there */
    bool silent;   /* signals get no message */
} process;

void leave_signals_unsaid(void) { process.silent = true; }

static void blank_controls(char *line)
{
    for (; *line; line++)
        if ((unsigned char)*line < ' ' || *line == 127) *line = '?';
}

/* The message of a run that a signal ended. Calls only functions that are safe in a signal handler. */
static void stop_text(int number, char *text, size_t size)
{
    static const char begin[] = "stopped by signal ";
    const char digits[] = {(char)('0' + number / 10), (char)('0' + number % 10), ';', ' ', '\0'};
    strcpy(text, begin);
    strcat(text, digits + (number < 10));
    const size_t used = strlen(text);
    io_output_account(text + used, size - used);
}

static void end_at_once(int number)
{
    static const char erase[] = "\r\033[K";
    char line[LONGEST_LINE], text[LONGEST_LINE - 128];
    stop_text(number, text, sizeof text);
    blank_controls(text);
    strcpy(line, process.terminal ? erase : "");
    strcat(line, process.tool);
    strcat(line, ": ");
    strcat(line, text);
    strcat(line, "\n");
    io_output_unlink_all();
    const ssize_t written = process.silent ? 0 : write(STDERR_FILENO, line, strlen(line));
    (void)written; /* a failure to write a message cannot be reported */
    _exit(EXIT_SIGNAL + number);
}

static void on_signal(int number)
{
    if (may_block || interrupt_signal) end_at_once(number);
    interrupt_signal = number;
}

static void on_crash(int number)
{
    io_output_unlink_all();
    raise(number); /* by now with its default action */
}

static void set_handler(int number, void (*handler)(int), unsigned flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)flags}, present;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &present) == 0 && !(present.sa_flags & SA_SIGINFO) && present.sa_handler == SIG_DFL)
        sigaction(number, &action, NULL);
}

void catch_signal(int number, void (*handler)(int)) { set_handler(number, handler, SA_RESTART); }

void catch_signals(const char *tool)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                                 SIGVTALRM, SIGPROF, SIGXCPU, SIGIO};
    static const int crashing[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
    static char stack[1 << 16]; /* for the handler of a stack overflow */
    int others[SYSTEM_SIGNALS];
    process.tool = tool;
    process.terminal = isatty(STDERR_FILENO);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) catch_signal(ending[i], on_signal);
    for (int i = system_signals(others); i > 0; i--) catch_signal(others[i - 1], on_signal);
    for (size_t i = 0; i < sizeof crashing / sizeof *crashing; i++)
        set_handler(crashing[i], on_crash, SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

enum { LARGE_ARRAY = 1 << 20 };

/* Large arrays come from mmap: they grow without a second copy, and memory that one phase frees is there for the next.
 * On 20,000 nodes the peak of mcl-gpu falls from 101 to 80 MB. */
void settle_process(const char *tool, char **argv, int64_t threads)
{
    system_map_blocks(LARGE_ARRAY);
    if (threads != 1) wait_asleep(argv);
    catch_signals(tool);
}

/* ---- what is said --------------------------------------------------------------------------------------- */

size_t format_line(char *line, size_t size, const char *format, va_list arguments)
{
    const int length = vsnprintf(line, size, format, arguments);
    const size_t used = length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
    line[used] = '\0';
    blank_controls(line);
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

tool_line open_line(const char *tool, bool quiet)
{
    return (tool_line){.tool = tool, .terminal = !quiet && isatty(STDERR_FILENO), .quiet = quiet};
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

static void put_line(tool_line *line, const char *format, va_list arguments)
{
    char text[LONGEST_LINE];
    format_line(text, sizeof text, format, arguments);
    quiet_line(line);
    fprintf(stderr, "%s: %s\n", line->tool, text);
}

void error_line(tool_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_line(line, format, arguments);
    va_end(arguments);
}

void notice_line(tool_line *line, const char *format, ...)
{
    va_list arguments;
    if (line->quiet) return;
    va_start(arguments, format);
    put_line(line, format, arguments);
    va_end(arguments);
}

void summary_line(tool_line *line, const char *format, ...)
{
    va_list arguments;
    if (line->quiet) return;
    va_start(arguments, format);
    put_line(line, format, arguments);
    va_end(arguments);
}

int end_failed(tool_line *line, const sp_context *host, sp_status status)
{
    char text[LONGEST_LINE];
    if (interrupt_signal) {
        if (process.silent) return EXIT_SIGNAL + interrupt_signal;
        stop_text(interrupt_signal, text, sizeof text);
        error_line(line, "%s", text);
        return EXIT_SIGNAL + interrupt_signal;
    }
    const char *sentence = sp_last_error(host); /* without a host context, why it could not be created */
    if (!*sentence) sentence = sp_status_string(status);
    if (io_output_account(text, sizeof text)) error_line(line, "%s; %s", sentence, text);
    else error_line(line, "%s", sentence);
    return EXIT_FAILED;
}

const char *show_count(int64_t number, char text[COUNT_TEXT])
{
    char digits[COUNT_TEXT];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)number), sign = number < 0;
    char *to = text;
    for (int i = 0; i < length; i++) {
        if (i > sign && (length - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

const char *show_duration(double seconds, char text[DURATION_TEXT])
{
    if (seconds < 99.5) snprintf(text, DURATION_TEXT, "%.0f s", seconds);
    else if (seconds < 99.5 * 60) snprintf(text, DURATION_TEXT, "%.0f minutes", seconds / 60);
    else snprintf(text, DURATION_TEXT, "%.0f hours", seconds / 3600);
    return text;
}

const char *counted(int64_t number, const char *word, char text[COUNTED_TEXT])
{
    char digits[COUNT_TEXT];
    snprintf(text, COUNTED_TEXT, "%s %s%s", show_count(number, digits), word, number == 1 ? "" : "s");
    return text;
}

const char *input_name(const char *path) { return strcmp(path, "-") == 0 ? "standard input" : path; }
const char *output_name(const char *path) { return strcmp(path, "-") == 0 ? "standard output" : path; }

/* ---- files and threads ---------------------------------------------------------------------------------- */

bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

bool is_kind(const char *path, const char *ending)
{
    char packed[32];
    snprintf(packed, sizeof packed, "%s.gz", ending);
    return ends_with(path, ending) || ends_with(path, packed);
}

bool is_uncompressed(const char *command, const char *option, const char *path)
{
    return !path || !ends_with(path, ".gz") ||
           usage_mistake(command, "%s writes a file that is not compressed: leave .gz out (got \"%.200s\")", option,
                         path);
}

int64_t file_bytes(const char *path)
{
    struct stat file;
    return strcmp(path, "-") != 0 && stat(path, &file) == 0 && S_ISREG(file.st_mode) ? (int64_t)file.st_size : -1;
}

sp_status finish_outputs(io_output *const *outputs, int count, sp_status status)
{
    for (int i = 0; i < count && status == SP_OK; i++) status = io_output_settle(outputs[i]);
    may_block = 0; /* renaming is not broken off in the middle */
    if (status == SP_OK) return io_output_commit_all(outputs, count);
    for (int i = 0; i < count; i++) io_output_discard(outputs[i]);
    return status;
}

bool overwrites(const char *command, const char *output, const char *input)
{
    if (!output || !input || !io_output_is_input(output, input)) return false;
    return !usage_mistake(command, "the output \"%.200s\" is an input, too: give it another name", output);
}

bool add_output(output_list *list, const char *command, const char *path)
{
    if (!path) return true;
    if (ends_with(path, ".zst"))
        return usage_mistake(command, "outputs are compressed by gzip only: end the name in .gz, or pipe - to zstd "
                             "(got \"%.200s\")", path);
    if (list->count == MOST_PLACES) return usage_mistake(command, "more than %d outputs", MOST_PLACES);
    io_place *place = &list->places[list->count];
    io_output_place(path, place);
    for (int i = 0; i < list->count; i++) {
        const io_place *other = &list->places[i];
        if (list->share_stdout && place->standard && other->standard) continue;
        if (io_output_same_place(place, other))
            return usage_mistake(command, "two outputs would be written to \"%.200s\": give one another name", path);
    }
    list->count++;
    return true;
}

/* A thread is worth starting for this much input, which takes it some 10 ms or more. On small inputs, which pipelines
 * process by the thousand, starting and joining threads costs more than it saves. */
static const int64_t THREAD_BYTES = 256 << 10;

int thread_count(const char *path, int64_t wanted)
{
    const int64_t most = system_processors();
    const int64_t bytes = file_bytes(path);
    if (wanted == 0) wanted = bytes >= 0 ? 1 + bytes / THREAD_BYTES : most;
    return (int)(wanted < most ? wanted : most);
}

double square_products(const sp_csr *matrix, int threads)
{
    double products = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : products)
    for (int64_t e = 0; e < matrix->nnz; e++) {
        const int32_t row = matrix->col_indices[e];
        products += (double)(matrix->row_offsets[row + 1] - matrix->row_offsets[row]);
    }
    return products;
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

uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (; count >= 8; count -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    uint64_t rest = count;
    memcpy((char *)&rest + 1, at, count < 7 ? count : 7);
    hash = (hash ^ rest) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

bool lies_in_folder(const char *path, const char *folder)
{
    struct stat input;
    io_place place;
    if (stat(folder, &input) != 0 || !S_ISDIR(input.st_mode)) return false;
    io_output_place(path, &place);
    return place.placed && place.folder_device == (uint64_t)input.st_dev && place.folder == input.st_ino;
}

sp_status read_file_or_folder(sp_context *context, const char *path, const io_read_options *options, io_graph *graph)
{
    io_files files;
    if (!io_is_folder(path)) return io_read_graph(context, path, options, graph);
    sp_status status = io_list_folder(context, path, &files);
    if (status != SP_OK) return status;
    status = io_read_files(context, files.list, files.count, options, graph);
    io_files_free(context, &files);
    return status;
}
