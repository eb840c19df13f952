/* sparse-bench: times the library's products beside other libraries', and checks them in the same run. A folder a
 * command: spgemm/, spmm/, contract/, coarsen/, gnn/; peers/ has the other libraries. */
#include <string.h>

#include "sparse-bench/options.h"

/* A result that failed is a row on stdout; stderr says so as well, and what was written all the same. */
static void complain(void)
{
    char text[4096] = "";
    tool_line line = open_line("sparse-bench", false);
    const bool wrote = io_output_account(text, sizeof text);
    error_line(&line, "a result failed or was wrong: its row on standard output says why%s%s", wrote ? "; " : "",
               wrote ? text : "");
}

/* What was measured and where it was written, if it was; the figures are on stdout. */
static void summarise(const any_options *any)
{
    const bench_options *o = &any->common;
    const char *folder = o->kind == BENCH_GNN ? any->gnn.export : NULL;
    tool_line line = open_line("sparse-bench", false);
    char more[64] = "";
    if (o->kind == BENCH_SURVEY) {
        const int parts = __builtin_popcount(any->survey.parts);
        summary_line(&line, "measured %d part%s; wrote %.1000s/PART.json", parts, parts == 1 ? "" : "s",
                     any->survey.out);
        return;
    }
    if (o->source_count == 0 || (!o->json && !folder)) return;
    if (o->source_count > 1) snprintf(more, sizeof more, " and %d more", o->source_count - 1);
    summary_line(&line, "%s %.1000s%s; wrote %.1000s%s%.1000s", o->sources[0].spec ? "made" : "read",
                 o->sources[0].name, more, folder ? folder : "", folder && o->json ? " and " : "",
                 o->json ? o->json : "");
}

static sp_status run_command(sp_context *host, const any_options *o, int *code);

/* Every part, whether or not results of others failed. */
static sp_status run_survey(sp_context *host, const survey_options *survey, int *code)
{
    static any_options part;
    char json[4096];
    sp_status status = SP_OK;
    for (int i = 0; survey_parts[i] && status == SP_OK; i++) {
        if (!(survey->parts >> i & 1)) continue;
        if (!survey_part(survey, i, &part, json, sizeof json)) return SP_ERROR_ARGUMENT;
        printf("%s%s, into %s\n\n", i ? "\n" : "", survey_parts[i], json);
        status = run_command(host, &part, code);
    }
    return status;
}

static sp_status run_command(sp_context *host, const any_options *o, int *code)
{
    switch (o->common.kind) {
    case BENCH_SPMM: return spmm_run(host, &o->spmm, &interrupt_signal, code);
    case BENCH_CONTRACT: return contract_run(host, &o->contract, &interrupt_signal, code);
    case BENCH_COARSEN: return coarsen_run(host, &o->coarsen, &interrupt_signal, code);
    case BENCH_GNN: return gnn_run(host, &o->gnn, &interrupt_signal, code);
    case BENCH_SURVEY: return run_survey(host, &o->survey, code);
    case BENCH_SPGEMM: break;
    }
    return spgemm_run(host, &o->spgemm, &interrupt_signal, code);
}

static int run(const any_options *o)
{
    const sp_context_options options = {.device = "cpu", .threads = (int)o->common.threads,
                                        .interrupt = &interrupt_signal};
    sp_context *host;
    int code = EXIT_DONE;
    sp_status status = sp_context_create(&options, &host);
    if (status == SP_OK) status = run_command(host, o, &code);
    if (interrupt_signal || status != SP_OK) {
        tool_line line = open_line("sparse-bench", false);
        const int failed = end_failed(&line, host, status);
        if (interrupt_signal || code == EXIT_DONE) code = failed;
    }
    if (!interrupt_signal && status == SP_OK) {
        if (code == EXIT_DONE) summarise(o);
        else complain();
    }
    sp_context_destroy(host);
    return code;
}

int main(int argc, char **argv)
{
    static any_options o;
    hold_standard_streams();
    if (argc < 2) {
        bench_usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        if (strcmp(argv[1], "--version") == 0) puts("sparse-bench " SP_VERSION);
        else bench_usage(stdout);
        return end_answer("sparse-bench");
    }
    switch (bench_parse(argc, argv, &o)) {
    case OPTIONS_MISTAKE: return EXIT_USAGE;
    case OPTIONS_HELP: bench_command_usage(stdout, o.common.kind); return end_answer("sparse-bench");
    case OPTIONS_VERSION: puts("sparse-bench " SP_VERSION); return end_answer("sparse-bench");
    case OPTIONS_RUN: break;
    }
    catch_signals("sparse-bench");
    return run(&o);
}
