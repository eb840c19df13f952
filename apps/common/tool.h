/* What the tools share: how a process begins and ends, messages, files, threads, numbers on the command line. */
#ifndef TOOL_H
#define TOOL_H

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/try.h"
#include "io.h"

/* EXIT_KEPT: ended by a signal, and a later run goes on from a file that was written. EXIT_SIGNAL: + the signal. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_KEPT = 75, EXIT_SIGNAL = 128 };

/* Opens closed standard streams, so that files do not get their descriptors (0 to 2). A closed stdin becomes one that
 * cannot be read, a closed stdout or stderr one that cannot be written: using them fails as before. */
void hold_standard_streams(void);

/* The signal that asked the run to end, 0 while there is none: the library's interrupt flag. */
extern volatile int interrupt_signal;
/* Set while reading and writing, which may block for ever in a pipe: then a signal ends the process at once. */
extern volatile sig_atomic_t may_block;
/* From now on every signal that would end the process, such as SIGTERM, sets interrupt_signal. A second one removes
 * incomplete outputs and ends the process at once. A signal of a crash removes them, too, and takes its course. SIGPIPE
 * and SIGXFSZ are ignored: a reader that went away, or a file that may not grow, is a write error. A signal that is
 * ignored (nohup) or has a handler already stays as it is; catch_signal, called before, gives a signal another handler.
 * `tool` is the name that messages begin with. */
void catch_signals(const char *tool);
void catch_signal(int number, void (*handler)(int));
/* For a process of several: another one says why all are ended. */
void leave_signals_unsaid(void);

/* For runs that take a while: large arrays come from the kernel and go back to it, threads sleep while they wait,
 * signals are caught. With one thread the process is as it was started; otherwise it may start again. */
void settle_process(const char *tool, char **argv, int64_t threads);

/* Ends the outputs of one result: all appear, or with a `status` other than SP_OK none. */
sp_status finish_outputs(io_output *const *outputs, int count, sp_status status);

/* Formats a message of one line: control characters, which names of files may hold, become question marks. A message
 * that is too long is cut. Returns the length. */
size_t format_line(char *line, size_t size, const char *format, va_list arguments);

/* A mistake on the command line of "TOOL" or "TOOL COMMAND": one line on stderr that begins with the tool's name and
 * ends with where help is. False, so that a check can end with it. */
bool usage_mistake(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of the answer, on stdout. */
void answer_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The exit code of a run whose answer went to stdout, all of it or not. */
int end_answer(const char *tool);

/* The lines of a tool on stderr. On a terminal show_line writes a progress line, which the next line replaces and
 * quiet_line erases; other lines stay. */
typedef struct tool_line {
    const char *tool;
    bool terminal, progress; /* stderr is a terminal; a progress line stands there */
    bool quiet;              /* --quiet: neither notices nor a summary */
} tool_line;
tool_line open_line(const char *tool, bool quiet);
void show_line(tool_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
void quiet_line(tool_line *line);
/* A failure, or a partial one. */
void error_line(tool_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A notice that the input or a setting may not be as the user meant it. Not printed under --quiet. */
void notice_line(tool_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints why a run failed, in one line that names the files that it has written nevertheless. Returns the exit code.
 * `host` may be NULL. */
int end_failed(tool_line *line, const sp_context *host, sp_status status);
/* The closing line of a successful run: its input and its outputs. Not printed under --quiet. */
void summary_line(tool_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { MAX_PATH = 4096 }; /* bytes of a name that a tool makes, with the NUL */

/* A whole number with a comma every three digits: 15,606. Returns `text`. */
enum { COUNT_TEXT = 32 };
const char *show_count(int64_t number, char text[COUNT_TEXT]);

/* "1 edge", "2,000 edges". Returns `text`. */
enum { COUNTED_TEXT = COUNT_TEXT + 8 };
const char *counted(int64_t number, const char *word, char text[COUNTED_TEXT]);

/* "3 s", "20 minutes", "4 hours". Returns `text`. */
enum { DURATION_TEXT = 32 };
const char *show_duration(double seconds, char text[DURATION_TEXT]);

/* A file's name as the closing line has it: "-" is standard input or output. */
const char *input_name(const char *path);
const char *output_name(const char *path);
/* Whether a file's name has this ending, and something before it. */
bool ends_with(const char *path, const char *ending);
/* The same for the name without its .gz, which says that an output is compressed. */
bool is_kind(const char *path, const char *ending);
/* Refuses, as a mistake on the command line, the name of an output that is read back as it was written. NULL is none.
 */
bool is_uncompressed(const char *command, const char *option, const char *path);
/* The size of a plain file; -1 for pipes, standard input and files that do not exist. */
int64_t file_bytes(const char *path);
/* Whether the output is the input, under any name. If so, reports a mistake on the command line. Either may be NULL. */
bool overwrites(const char *command, const char *output, const char *input);
/* Whether a file lies in the folder, or would. */
bool lies_in_folder(const char *path, const char *folder);
/* Reads an input that may be a folder of label pairs. */
sp_status read_file_or_folder(sp_context *context, const char *path, const io_read_options *options, io_graph *graph);
/* What is said of a graph whose directions are presumed to be none: the file; a remedy follows. */
#define UNDIRECTED "%s: Cytoscape calls every network directed, so edges count in both directions; "
/* What is said of a graph with columns that are unused: the file, and a list of them. */
#define UNWEIGHTED \
    "%s: no column of edges is called weight, so all weigh 1; --edge-column NAME takes one of numbers: %s"
/* The outputs of a command line, which must be different files. */
enum { MOST_PLACES = 256 };
typedef struct output_list {
    bool share_stdout; /* several may go to standard output, one after another */
    int count;
    io_place places[MOST_PLACES];
} output_list;
/* Adds an output. Reports a mistake and returns false if it is another output as well, or would have to be compressed
 * in a way that outputs are not. NULL is no output. */
bool add_output(output_list *list, const char *command, const char *path);
/* `wanted` threads, or for 0 a number by the size of the file at `path`; at most the processors that this process may
 * use. */
int thread_count(const char *path, int64_t wanted);


/* A decimal number, or a whole one, and nothing after it. The tools never call setlocale, so a point is a point. */
bool read_number(const char *text, double *value);
bool read_integer(const char *text, int64_t *value);
/* 8G, 500M, 1.5T, 100K or plain bytes, at least one; powers of 1024. */
bool read_bytes(const char *text, int64_t *bytes);

/* The multiplications of a square of a matrix on the host: for each entry (j, k) the length of row k. */
double square_products(const sp_csr *matrix, int threads);

/* Mixes bytes into a hash. */
uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t count);

#endif
