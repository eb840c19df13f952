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
    if (log->mute) return;
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
}

/* Towards the end chaos falls by about the same factor in each iteration, or faster. */
int64_t log_iterations_left(const run_log *log)
{
    const double limit = 1e-4, slow = 0.97;
    const double now = log->chaos[0], before = log->chaos[CHAOS_SEEN - 1];
    if (!(before > 0) || !(now > 0)) return -1;
    const double factor = pow(now / before, 1.0 / (CHAOS_SEEN - 1));
    if (factor > slow || log->chaos[0] > log->chaos[1]) return -1;
    return now < limit ? 0 : (int64_t)ceil(log10(limit / now) / log10(factor));
}

/* "; next about 3 s; about 5 more, at most about 15 s", as far as is known. Iterations are taken to become cheaper as
 * they do now; in fact most become so faster. */
static void foresee(const run_log *log, double last, double next, char text[128])
{
    const double cheaper = fmin(next / fmax(last, 1e-9), 0.999);
    const int64_t left = log_iterations_left(log);
    char one[32], all[32];
    show_duration(next, one);
    show_duration(next * (1 - pow(cheaper, (double)left)) / (1 - cheaper), all);
    if (left < 0) snprintf(text, 128, "; next about %s; no estimate of the end until chaos falls steadily", one);
    else snprintf(text, 128, "; next about %s; about %lld more, at most about %s", one, (long long)left, all);
}

/* Seconds of the next expansion, by those of the last one: a part for each multiplication, whose cost varies little,
 * and the rest for each entry of the product, whose number is foreseen as well, or badly, as the last time. */
static double next_seconds(const run_log *log, const mcl_iteration *i, const expansion *next)
{
    const double each = 1.5e-9; /* seconds of one thread */
    if (!(next->products > 0) || !(log->ahead.entries > 0)) return i->seconds;
    const double last = fmin(i->seconds, each / next->threads * (double)i->products);
    return each / next->threads * next->products + (i->seconds - last) * next->entries / log->ahead.entries;
}

void log_progress(run_log *log, const mcl_iteration *i, const expansion *ahead_of)
{
    enum { PLAIN_SECONDS = 10, LONG_SECONDS = 60 };
    const double now = wall_seconds();
    const double next = next_seconds(log, i, ahead_of);
    char ahead[128] = "", line[256], one[32];
    memmove(log->chaos + 1, log->chaos, (CHAOS_SEEN - 1) * sizeof *log->chaos);
    if (i->number == 1) memset(log->chaos, 0, sizeof log->chaos);
    log->chaos[0] = i->chaos;
    log->ahead = *ahead_of;
    if (!i->converged) foresee(log, i->seconds, next, ahead);
    snprintf(line, sizeof line, "iteration %lld: chaos %.4f, %lld entries, %.1f s%s", (long long)i->number, i->chaos,
             (long long)i->nnz_after, now - log->began, ahead);
    if (log->plain) {
        if (i->number > 1 && now - log->shown < PLAIN_SECONDS && next < PLAIN_SECONDS && !i->converged) return;
        log_warning(log, "mcl-gpu: %s", line);
        log->shown = now;
    } else if (log->terminal) {
        fprintf(stderr, "\r\033[K%s", line);
        log->progress = true;
    } else if (!i->converged && next >= LONG_SECONDS && !log->long_said) {
        show_duration(next, one);
        log_line(log, "mcl-gpu: the next expansion makes %.2g multiplications, about %s; --progress plain shows more",
                 ahead_of->products, one);
        log->long_said = true;
    }
}

jury_report jury_of(const mcl_run *run)
{
    const double rounding = 1 + 1e-6; /* unpruned columns sum to 1 but for f32: mcl gives 100 from 99.9999 on */
    const double most = 1e9; /* an integer; sums of negative weights can be anything */
    jury_report jury;
    for (int i = 0; i < 3; i++) jury.marks[i] = (int)fmax(-most, fmin(run->marks[i] * rounding, most));
    jury.synopsis = (5 * jury.marks[0] + 2 * jury.marks[1] + jury.marks[2]) / 8.0;
    return jury;
}

void log_jury(run_log *log, const mcl_run *run)
{
    jury_report jury = jury_of(run);
    log_line(log, "[mcl] jury pruning marks: <%d,%d,%d>, out of 100", jury.marks[0], jury.marks[1], jury.marks[2]);
    log_line(log, "[mcl] jury pruning synopsis: <%.1f or %s> (cf -scheme, -do log)", jury.synopsis,
             jury_word(jury.synopsis, log->nodes));
}

void log_citation(run_log *log)
{
    static const char *const lines[] = {
        "", "Please cite:", "    Stijn van Dongen, Graph Clustering Via a Discrete Uncoupling Process,",
        "    SIAM Journal on Matrix Analysis and Applications, 30(1):121-141, 2008.",
        "    ( http://link.aip.org/link/?SJMAEL/30/121/1 )"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) log_line(log, "%s", lines[i]);
}
