/* gnn: graph neural networks from the command line: train, predict, info, convert.
 *
 * This file holds what a process begins with, what ends it early, and what it says. The command line of train and
 * predict is in gnn_options, their steps in gnn_train and gnn_predict, what they share in gnn_job; info and convert
 * have files of their own.
 */
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "gnn_job.h"

/* ---- signals ------------------------------------------------------------------------------------------- */

volatile sig_atomic_t gnn_may_block;

/* The first signal ends the run at the next epoch, a second one, or one during reading and writing, at once. */
static void on_signal(int number)
{
    if (gnn_may_block || gnn_interrupt) {
        io_output_unlink_all();
        _exit(EXIT_SIGNAL + number);
    }
    gnn_interrupt = number;
}

/* ---- what is said --------------------------------------------------------------------------------------- */

void gnn_quiet(gnn_job *job)
{
    if (job->progress) fputs("\r\033[K", stderr);
    job->progress = false;
}

void gnn_progress(gnn_job *job, const char *format, ...)
{
    if (!job->terminal) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    job->progress = true;
}

void gnn_notice(gnn_job *job, const char *format, ...)
{
    va_list arguments;
    gnn_quiet(job);
    va_start(arguments, format);
    fputs("gnn: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
}

static int answer(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_DONE;
    fprintf(stderr, "gnn: stdout: %s\n", strerror(errno));
    return EXIT_FAILED;
}

/* ---- train and predict ---------------------------------------------------------------------------------- */

static int end_of(gnn_job *job, sp_status status)
{
    gnn_quiet(job);
    if (status == SP_OK && job->stopped) {
        gnn_notice(job, "stopped by signal %d after epoch %lld; %s is complete", gnn_interrupt,
                   (long long)job->runs[0].epochs[job->runs[0].count - 1].epoch, job->settings->save);
        return EXIT_KEPT;
    }
    if (status == SP_OK) return answer();
    if (job->mistaken) return EXIT_USAGE;
    if (gnn_interrupt) {
        gnn_notice(job, "stopped by signal %d; nothing was written", gnn_interrupt);
        return EXIT_SIGNAL + gnn_interrupt;
    }
    const char *sentence = job->host ? sp_last_error(job->host) : "";
    gnn_notice(job, "%s", *sentence ? sentence : sp_status_string(status));
    return EXIT_FAILED;
}

static int run(const gnn_settings *settings, int argc, char **argv)
{
    gnn_job job = {.settings = settings, .argc = argc, .argv = argv,
                   .terminal = !settings->quiet && isatty(STDERR_FILENO)};
    sp_status status = gnn_open_host(&job);
    if (status == SP_OK) status = settings->command == COMMAND_TRAIN ? gnn_train(&job) : gnn_predict(&job);
    const int code = end_of(&job, status);
    gnn_close(&job);
    return code;
}

enum { LARGE_ARRAY = 1 << 20 };

/* Large arrays come from the kernel and go back to it: what grows is moved without a second copy. */
static void settle_process(char **argv, int64_t threads)
{
    mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY);
    if (threads != 1) wait_asleep(argv);
    catch_signals(on_signal);
}

static int train_or_predict(int argc, char **argv)
{
    static gnn_settings settings;
    switch (gnn_parse(argc - 1, argv + 1, NULL, &settings)) {
    case REQUEST_MISTAKE: return EXIT_USAGE;
    case REQUEST_HELP: gnn_usage(stdout); return answer();
    case REQUEST_RUN: break;
    }
    settle_process(argv, settings.threads);
    return run(&settings, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    if (argc < 2) {
        gnn_usage(stderr);
        return EXIT_USAGE;
    }
    const char *command = argv[1];
    if (strcmp(command, "train") == 0 || strcmp(command, "predict") == 0) return train_or_predict(argc, argv);
    if (strcmp(command, "info") == 0 || strcmp(command, "convert") == 0) {
        settle_process(argv, 0);
        return (command[0] == 'i' ? gnn_info_main : gnn_convert_main)(argc - 1, argv + 1);
    }
    if (strcmp(command, "-h") == 0 || strcmp(command, "--help") == 0) {
        gnn_usage(stdout);
        return answer();
    }
    if (strcmp(command, "--version") == 0) {
        puts("gnn " SP_VERSION);
        return answer();
    }
    fprintf(stderr,
            "gnn: the first argument is one of train, predict, info, convert (got \"%.40s\"); see gnn --help\n",
            command);
    return EXIT_USAGE;
}
