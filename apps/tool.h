/* What the tools share: how a process begins, numbers on the command line, JSON text. */
#ifndef TOOL_H
#define TOOL_H

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "io.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

/* Evaluates a call that returns sp_status; on failure keeps it in `status` and jumps to `done`. */
#define TRY(call)                       \
    do {                                \
        status = (call);                \
        if (status != SP_OK) goto done; \
    } while (0)

/* Descriptors 0 to 2 must not be given to the first files that are opened. A closed stdin becomes one that cannot be
 * read, a closed stdout or stderr one that cannot be written, so that using it fails as it should. */
void hold_standard_streams(void);

/* The signal that asked the run to end, 0 while there is none: the library's interrupt flag. */
extern volatile int interrupt_signal;
/* Set while reading and writing: a pipe may never go on, so that a signal ends the process at once. */
extern volatile sig_atomic_t may_block;
/* From now on SIGINT, SIGTERM and SIGHUP set interrupt_signal; a second one ends the process at once, outputs that
 * are not complete removed. A process that was told to ignore one of them (nohup) goes on ignoring it. SIGPIPE is
 * ignored, so that a reader that went away is a write error. catch_signal gives one more signal a handler, in the
 * same way. */
void catch_signals(void);
void catch_signal(int number, void (*handler)(int));

/* For runs that take a while: large arrays come from the kernel and go back to it, threads sleep while they wait,
 * signals are caught. With one thread the process is as it was started; otherwise it may start again. */
void settle_process(char **argv, int64_t threads);

/* Formats what is said on one line: names of files may hold any bytes, control characters become question marks. What
 * does not fit is left out. Returns the length. */
size_t format_line(char *line, size_t size, const char *format, va_list arguments);

/* A mistake on the command line of "TOOL" or "TOOL COMMAND": one line on stderr that begins with the tool's name and
 * ends with where help is. False, so that a check can end with it. */
bool usage_mistake(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of the answer, on stdout. */
void answer_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The exit code of a run whose answer went to stdout, all of it or not. */
int end_answer(const char *tool);

/* What a tool says on stderr: on a terminal a line that changes, whose place the next one, or quiet_line, takes;
 * lines that stay. */
typedef struct tool_line {
    const char *tool;
    bool terminal, progress; /* stderr is one; a changing line stands there */
} tool_line;
void show_line(tool_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
void quiet_line(tool_line *line);
void notice_line(tool_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The size of a plain file; -1 for pipes, standard input and what is not there. */
int64_t file_bytes(const char *path);
/* Whether the output is the input, by whatever name, which is a mistake on the command line: it is said as such.
 * Either may be NULL. */
bool overwrites(const char *command, const char *output, const char *input);
/* `wanted`, or with 0 as many threads as reading the file at `path` is worth; never more than the processors that
 * this process may use. */
int thread_count(const char *path, int64_t wanted);

double wall_seconds(void);

/* A decimal number, or a whole one, and nothing after it. The tools never call setlocale, so a point is a point. */
bool read_number(const char *text, double *value);
bool read_integer(const char *text, int64_t *value);
/* 8G, 500M, 1.5T, 100K or plain bytes, at least one; powers of 1024. */
bool read_bytes(const char *text, int64_t *bytes);

/* A quoted JSON string; bytes that are not UTF-8 (file names may hold any) are shown as Latin-1. NULL is null. */
void put_json_text(io_output *out, const char *text);

#endif
