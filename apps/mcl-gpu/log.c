/* The log of mcl-gpu. Each line is one write, so that lines of concurrent runs do not mix within a line. On a
 * terminal a progress line stands below the log and is erased before the next line is printed. */
#include "log.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/tool.h"
#include "options.h"

void log_open(run_log *log, bool quiet, bool dots)
{
    *log = (run_log){.quiet = quiet, .dots = dots, .began = wall_seconds()};
    log->terminal = !quiet && isatty(STDERR_FILENO);
}

static void erase_progress(run_log *log)
{
    if (log->progress) fputs("\r\033[K", stderr);
    log->progress = false;
}

static void print_line(run_log *log, const char *format, va_list arguments)
{
    char line[2 * MAX_PATH];
    const size_t length = format_line(line, sizeof line - 1, format, arguments);
    line[length] = '\n';
    erase_progress(log);
    fwrite(line, 1, length + 1, stderr);
}

void log_line(run_log *log, const char *format, ...)
{
    if (log->quiet) return;
    va_list arguments;
    va_start(arguments, format);
    print_line(log, format, arguments);
    va_end(arguments);
}

void log_warning(run_log *log, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(log, format, arguments);
    va_end(arguments);
}

/* ---- reading and writing ------------------------------------------------------------------------------- */

enum { DOTS_MAX = 64, LINES_A_DOT = 20000, MATRIX_DOTS = 40, ITERATION_DOTS = 20 };

/* One mark for every k of `count` things, where k is the least that makes at most `most` marks. */
static void fill_marks(char marks[DOTS_MAX + 1], int64_t count, int most, char mark)
{
    int64_t every = (count + most - 1) / most;
    int64_t number = every > 0 ? count / every : 0;
    memset(marks, mark, (size_t)number);
    marks[number] = '\0';
}

void log_labels_read(run_log *log, int64_t lines)
{
    if (log->quiet) return;
    for (int64_t i = lines / LINES_A_DOT; i > 0; i--) fputc('.', stderr);
    log_line(log, "[mcl] new tab created");
}

void log_matrix_read(run_log *log, const char *path, bool binary, int64_t rows, int64_t columns, int64_t entries)
{
    char dots[DOTS_MAX + 1];
    fill_marks(dots, columns, MATRIX_DOTS, '.');
    log_line(log, "[mclIO%s] reading <%s>", binary ? " full" : "", path);
    log_line(log, "%s", dots);
    log_line(log, "[mclIO] read native %s %lldx%lld matrix with %lld entries", binary ? "binary" : "interchange",
             (long long)rows, (long long)columns, (long long)entries);
}

void log_matrix_written(run_log *log, const char *path, bool binary, int64_t rows, int64_t columns, int64_t entries)
{
    char dots[DOTS_MAX + 1];
    fill_marks(dots, columns, MATRIX_DOTS, '.');
    log_line(log, "[mclIO] writing <%s>", path);
    log_line(log, "%s", dots);
    log_line(log, "[mclIO] wrote native %s %lldx%lld matrix with %lld entries to stream <%s>",
             binary ? "binary" : "interchange", (long long)rows, (long long)columns, (long long)entries, path);
}

/* ---- iterations ---------------------------------------------------------------------------------------- */

void log_header(run_log *log, int64_t nodes)
{
    char dashes[DOTS_MAX + 1];
    log->nodes = nodes;
    fill_marks(dashes, nodes, ITERATION_DOTS, '-');
    if (log->dots && nodes > 0)
        log_line(log, " ite %s  chaos  time hom(avg,lo,hi) m-ie m-ex i-ex fmv", dashes);
    else
        log_line(log, " ite   chaos  time hom(avg,lo,hi) m-ie m-ex i-ex fmv");
}

/* Entries of one matrix per entry of another, as mcl divides: it adds one to the divisor. */
static double ratio(int64_t entries, int64_t per) { return (double)entries / ((double)per + 1); }

static void show_progress(run_log *log, const mcl_iteration *iteration)
{
    if (!log->terminal) return;
    fprintf(stderr, "\r\033[Kiteration %lld: chaos %.4f, %lld entries, %.1f s", (long long)iteration->number,
            iteration->chaos, (long long)iteration->nnz_after, wall_seconds() - log->began);
    log->progress = true;
}

void log_iteration(run_log *log, const mcl_iteration *iteration)
{
    char dots[DOTS_MAX + 1] = "";
    if (log->quiet) return;
    if (log->dots) fill_marks(dots, log->nodes, ITERATION_DOTS, '.');
    const int64_t expanded = iteration->nnz_expanded + iteration->empty_columns; /* mcl counts these with one entry */
    int dense = log->nodes > 0 ? (int)(100.0 * (double)iteration->dense_columns / (double)log->nodes) : 0;
    log_line(log, "%3lld  %s%7.2f %5.2f %.2f/%.2f/%.2f %.2f %.2f %.2f %3d", (long long)iteration->number, dots,
             iteration->chaos, iteration->cpu_seconds, iteration->homogeneity_average, iteration->homogeneity_low,
             iteration->homogeneity_high, ratio(expanded, iteration->nnz_before),
             ratio(iteration->nnz_after, iteration->nnz_before), ratio(iteration->nnz_after, iteration->nnz_input),
             dense);
    show_progress(log, iteration);
}

jury_report jury_of(const mcl_run *run)
{
    const double rounding = 1 + 1e-6; /* unpruned columns sum to 1 but for f32: mcl gives 100 from 99.9999 on */
    jury_report jury;
    for (int i = 0; i < 3; i++) jury.marks[i] = (int)(run->marks[i] * rounding);
    jury.synopsis = (5 * jury.marks[0] + 2 * jury.marks[1] + jury.marks[2]) / 8.0;
    return jury;
}

void log_jury(run_log *log, const mcl_run *run)
{
    jury_report jury = jury_of(run);
    log_line(log, "[mcl] jury pruning marks: <%d,%d,%d>, out of 100", jury.marks[0], jury.marks[1], jury.marks[2]);
    log_line(log, "[mcl] jury pruning synopsis: <%.1f or %s> (cf -scheme, -do log)", jury.synopsis,
             jury_word(jury.synopsis));
}

void log_citation(run_log *log)
{
    static const char *const lines[] = {
        "", "Please cite:", "    Stijn van Dongen, Graph Clustering Via a Discrete Uncoupling Process,",
        "    SIAM Journal on Matrix Analysis and Applications, 30(1):121-141, 2008.",
        "    ( http://link.aip.org/link/?SJMAEL/30/121/1 )"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) log_line(log, "%s", lines[i]);
}
