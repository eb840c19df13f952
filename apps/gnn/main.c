/* gnn: graph neural networks from the command line: train, predict, info, convert.
 *
 * This file has the begin and the end of a process. The command line of train and predict is in options.c, their
 * steps are in train.c and predict.c, shared steps in job.c. info.c and convert.c are the other commands.
 */
#include <string.h>
#include <unistd.h>

#include "common/doctor.h"
#include "common/team.h"
#include "job.h"

/* ---- train and predict ---------------------------------------------------------------------------------- */

static int end_of(gnn_job *job, sp_status status)
{
    quiet_line(&job->line);
    if (status == SP_OK && job->stopped) {
        const gnn_run *last = &job->runs[job->run_count - 1];
        error_line(&job->line, "stopped by signal %d after epoch %lld; %s is complete", interrupt_signal,
                   (long long)last->epochs[last->count - 1].epoch,
                   job->settings->save ? job->settings->save : job->settings->checkpoint);
        return EXIT_KEPT;
    }
    if (status == SP_OK) return end_answer("gnn");
    gnn_explain_memory(job, status);
    return job->mistaken ? EXIT_USAGE : end_failed(&job->line, job->host, status);
}

static int run(const gnn_settings *settings, int argc, char **argv)
{
    gnn_job job = {.settings = settings, .argc = argc, .argv = argv,
                   .line = open_line("gnn", settings->quiet)};
    sp_status status = gnn_open_host(&job);
    if (status == SP_OK) status = settings->command == COMMAND_TRAIN ? gnn_train(&job) : gnn_predict(&job);
    const int code = end_of(&job, status);
    gnn_close(&job);
    return code;
}

static int train_or_predict(int argc, char **argv)
{
    static gnn_settings settings;
    switch (gnn_parse(argc - 1, argv + 1, NULL, &settings)) {
    case OPTIONS_MISTAKE: return EXIT_USAGE;
    case OPTIONS_HELP: gnn_usage(stdout); return end_answer("gnn");
    case OPTIONS_VERSION: puts("gnn " SP_VERSION); return end_answer("gnn");
    case OPTIONS_RUN: break;
    }
    if (!settings.mpi_no && !team_is_alone("gnn")) return EXIT_USAGE;
    settle_process("gnn", argv, settings.threads);
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
        settle_process("gnn", argv, 0);
        return (command[0] == 'i' ? gnn_info_main : gnn_convert_main)(argc - 1, argv + 1);
    }
    if (strcmp(command, "-h") == 0 || strcmp(command, "--help") == 0) {
        gnn_usage(stdout);
        return end_answer("gnn");
    }
    if (strcmp(command, "--version") == 0) {
        puts("gnn " SP_VERSION);
        return end_answer("gnn");
    }
    if (strcmp(command, "--doctor") == 0) {
        bool known;
        doctor_print("gnn", gnn_blas(&known), "more than 2,000 million operations a thread");
        return end_answer("gnn");
    }
    usage_mistake("gnn", "the first argument is one of train, predict, info, convert (got \"%.40s\")", command);
    return EXIT_USAGE;
}
