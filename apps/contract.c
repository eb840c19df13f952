/* contract: the quotient graph of a labelling, from files to files.
 *
 * graph -> labels -> contraction -> names -> files. This file holds the order of the steps and what ends a run
 * early. The command line is in contract_options, reading in contract_input, the choice of the device and the
 * computation in contract_compute, what is written in contract_output.
 */
#include <unistd.h>

#include "contract_job.h"

/* ---- the whole run -------------------------------------------------------------------------------------- */

static sp_status run_job(contract_job *job)
{
    const double began = wall_seconds();
    sp_status status;
    TRY(contract_check_outputs(job));
    TRY(contract_read_graph(job));
    if (job->options->labels) { /* what is refused for them is, before the work */
        TRY(contract_read_labels(job));
        TRY(contract_name_groups(job));
    }
    TRY(contract_compute(job));
    if (!job->options->labels) TRY(contract_name_groups(job));
    job->seconds.total = wall_seconds() - began;
    TRY(contract_write(job));
done:
    return status;
}

static void close_job(contract_job *job)
{
    if (job->host) {
        io_graph_free(job->host, &job->input);
        io_labelling_free(job->host, &job->labelling);
        io_names_free(job->host, &job->group_names);
        contraction_hierarchy_free(job->host, &job->hierarchy);
        sp_csr_free(job->host, &job->g);
        sp_csr_free(job->host, &job->repeats);
        sp_csr_free(job->host, &job->c);
        sp_free(job->host, job->old);
    }
    sp_context_destroy(job->device);
    sp_context_destroy(job->host);
}

static int run(const contract_options *options)
{
    contract_job job = {.options = options, .line = {.tool = "contract", .terminal = isatty(STDERR_FILENO)}};
    int code = EXIT_FAILED;
    sp_status status = contract_open_host(&job);
    if (status == SP_OK) status = run_job(&job);
    quiet_line(&job.line);
    if (status == SP_OK) {
        code = EXIT_DONE;
    } else if (interrupt_signal) {
        code = EXIT_SIGNAL + interrupt_signal;
        notice_line(&job.line, "stopped by signal %d; nothing was written", interrupt_signal);
    } else if (job.mistaken) {
        code = EXIT_USAGE;
    } else {
        const char *sentence = job.host ? sp_last_error(job.host) : "";
        notice_line(&job.line, "%s", *sentence ? sentence : sp_status_string(status));
    }
    close_job(&job);
    return code;
}

int main(int argc, char **argv)
{
    static contract_options options;
    hold_standard_streams();
    if (argc < 2) {
        contract_usage(stderr);
        return EXIT_USAGE;
    }
    switch (contract_parse(argc, argv, &options)) {
    case CONTRACT_MISTAKE: return EXIT_USAGE;
    case CONTRACT_HELP: contract_usage(stdout); return end_answer("contract");
    case CONTRACT_VERSION: puts("contract " SP_VERSION); return end_answer("contract");
    case CONTRACT_RUN: break;
    }
    settle_process(argv, options.threads);
    return run(&options);
}
