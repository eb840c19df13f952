/* What mcl-gpu says on stderr: the lines of mcl 22-282, in its layout, because scripts and people read them. */
#ifndef MCL_LOG_H
#define MCL_LOG_H

#include "mcl.h"

enum { CHAOS_SEEN = 4 };

/* What is known of an expansion before it is done; zeros: nothing. */
typedef struct expansion {
    double products; /* multiplications */
    double entries;  /* of the product before pruning, at most */
    int threads;
} expansion;

typedef struct run_log {
    bool quiet;    /* -V all: warnings and errors only */
    bool mute;     /* another process of the run has the log: nothing is printed */
    bool dots;     /* mcl's unthreaded layout: a dot for every few nodes */
    bool terminal; /* stderr is one: a progress line is kept below the log */
    bool progress; /* a progress line stands there now */
    bool plain;    /* --progress plain: lines in its place, also when quiet */
    int64_t nodes;
    double began; /* wall seconds */
    double chaos[CHAOS_SEEN]; /* of the last iterations, the latest first; 0: there was none */
    expansion ahead; /* as it was foreseen after the iteration before */
    double shown; /* when the last line of plain progress was */
    bool long_said; /* that an expansion will be long */
} run_log;

void log_open(run_log *log, bool quiet, bool dots);

/* A line of the log; silent when quiet. */
void log_line(run_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line that -V all does not silence. */
void log_warning(run_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Label text was read: a dot for each 20,000 lines, as mcl shows them. */
void log_labels_read(run_log *log, int64_t lines);
/* A matrix was read or written; `columns` is what mcl shows dots for. */
void log_matrix_read(run_log *log, const char *path, bool binary, int64_t rows, int64_t columns, int64_t entries);
void log_matrix_written(run_log *log, const char *path, bool binary, int64_t rows, int64_t columns, int64_t entries);

void log_header(run_log *log, int64_t nodes);
void log_iteration(run_log *log, const mcl_iteration *iteration);
/* Shows how far the process is, on a terminal or as --progress says. `next` is the expansion that follows. */
void log_progress(run_log *log, const mcl_iteration *iteration, const expansion *next);
/* How many more iterations the last ones let expect, -1 if chaos does not fall. */
int64_t log_iterations_left(const run_log *log);

/* The marks of a run as mcl reports them: whole percents, and the synopsis made of these. */
typedef struct jury_report {
    int marks[3];
    double synopsis;
} jury_report;

jury_report jury_of(const mcl_run *run);
void log_jury(run_log *log, const mcl_run *run);
void log_citation(run_log *log);

#endif
