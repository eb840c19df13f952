/* contract: the quotient graph of a labelling, from files to files.
 *
 * graph -> labels -> contraction -> names -> files. This file holds the order of the steps and what ends a run
 * early. The command line is in contract_options, reading in contract_input, the choice of the device and the
 * computation in contract_compute, what is written in contract_output.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "contract_job.h"

/* ---- signals ------------------------------------------------------------------------------------------- */

static volatile int interrupt_signal;   /* the number of the signal; the library's interrupt flag */
static volatile sig_atomic_t may_block; /* a pipe may never go on: then the handler ends the run itself */

static void on_signal(int number)
{
    if (may_block || interrupt_signal) { /* or it is the second one */
        io_output_unlink_all();
        _exit(EXIT_SIGNAL + number);
    }
    interrupt_signal = number;
}

/* ---- what is said --------------------------------------------------------------------------------------- */

void contract_quiet(contract_job *job)
{
    if (job->progress) fputs("\r\033[K", stderr);
    job->progress = false;
}

void contract_progress(contract_job *job, const char *format, ...)
{
    if (!job->terminal) return;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    job->progress = true;
}

void contract_notice(contract_job *job, const char *format, ...)
{
    va_list arguments;
    contract_quiet(job);
    va_start(arguments, format);
    fputs("contract: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
}

/* ---- the whole run -------------------------------------------------------------------------------------- */

static sp_status run_job(contract_job *job)
{
    const double began = wall_seconds();
    sp_status status;
    TRY(contract_check_outputs(job));
    TRY(contract_read_graph(job));
    if (job->options->labels) TRY(contract_read_labels(job));
    TRY(contract_compute(job));
    TRY(contract_name_groups(job));
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
    contract_job job = {.options = options, .interrupt = &interrupt_signal, .may_block = &may_block};
    int code = EXIT_FAILED;
    job.terminal = isatty(STDERR_FILENO);
    sp_status status = contract_open_host(&job);
    if (status == SP_OK) status = run_job(&job);
    contract_quiet(&job);
    if (status == SP_OK) {
        code = EXIT_DONE;
    } else if (interrupt_signal) {
        code = EXIT_SIGNAL + interrupt_signal;
        contract_notice(&job, "stopped by signal %d; nothing was written", interrupt_signal);
    } else {
        const char *sentence = job.host ? sp_last_error(job.host) : "";
        contract_notice(&job, "%s", *sentence ? sentence : sp_status_string(status));
    }
    close_job(&job);
    return code;
}

static int answer(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_DONE;
    fprintf(stderr, "contract: stdout: %s\n", strerror(errno));
    return EXIT_FAILED;
}

enum { LARGE_ARRAY = 1 << 20 };

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
    case CONTRACT_HELP: contract_usage(stdout); return answer();
    case CONTRACT_VERSION: puts("contract " SP_VERSION); return answer();
    case CONTRACT_RUN: break;
    }
    /* Large arrays come from the kernel and go back to it: what grows is moved without a second copy. */
    mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY);
    if (options.threads != 1) wait_asleep(argv);
    catch_signals(on_signal);
    return run(&options);
}
