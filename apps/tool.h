/* What the tools share: how a process begins, numbers on the command line, JSON text. */
#ifndef TOOL_H
#define TOOL_H

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

/* OpenMP's threads spin while they wait for each other, and learn only at the start of a process that they should
 * sleep instead. Alone on a machine that makes no difference; beside other jobs, as in pipelines, spinning takes the
 * processors from those that work: mcl-gpu on 20,000 nodes took 5.9 s of processor time on a busy machine, 3.5 s like
 * this. Starts the process again with that said, unless the environment says something. */
void wait_asleep(char **argv);

/* SIGINT, SIGTERM and SIGHUP go to the handler, which a process that was told to ignore one of them (nohup) goes on
 * ignoring; SIGPIPE is ignored, so that a reader that went away is a write error. catch_signal does it for one more. */
void catch_signals(void (*handler)(int));
void catch_signal(int number, void (*handler)(int));

/* The size of a plain file; -1 for pipes, standard input and what is not there. */
int64_t file_bytes(const char *path);
/* `wanted`, or with 0 as many threads as reading the file at `path` is worth; never more than the processors that this
 * process may use. */
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
