/* The JSON report. One object: the input, the options, the phases, and for each inflation its iterations, jury
 * marks and clusters. Times are wall seconds. */
#include "report.h"

#include <string.h>
#include <sys/resource.h>

#include "common/tool.h"
#include "log.h"

sp_status report_create(sp_context *context, int runs, report *r)
{
    memset(r, 0, sizeof *r);
    void *made;
    sp_status status = sp_calloc(context, runs, sizeof *r->runs, &made);
    if (status != SP_OK) return status;
    r->runs = made;
    r->run_count = runs;
    return SP_OK;
}

void report_free(sp_context *context, report *r)
{
    for (int i = 0; i < r->run_count; i++) sp_free(context, r->runs[i].iterations);
    sp_free(context, r->runs);
    memset(r, 0, sizeof *r);
}

sp_status report_add_iteration(sp_context *context, report_run *run, const mcl_iteration *iteration)
{
    if (run->iteration_count == run->iteration_capacity) {
        int64_t capacity = run->iteration_capacity ? 2 * run->iteration_capacity : 64;
        void *grown = run->iterations;
        sp_status status = sp_grow(context, run->iteration_count, capacity, sizeof *run->iterations, &grown);
        if (status != SP_OK) return status;
        run->iterations = grown;
        run->iteration_capacity = capacity;
    }
    run->iterations[run->iteration_count++] = *iteration;
    return SP_OK;
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_key(io_output *out, const char *key) { io_output_format(out, "\"%s\": ", key); }

static void put_text_field(io_output *out, const char *key, const char *text)
{
    put_key(out, key);
    put_json_text(out, text);
    io_output_string(out, ", ");
}

static const char *boolean(bool value) { return value ? "true" : "false"; }

static void put_options(io_output *out, const settings *s)
{
    static const char *const overlaps[] = {"cut", "keep", "split"};
    static const char *const sorts[] = {"revsize", "size", "lex", "none"};
    const mcl_options *o = &s->mcl;
    io_output_string(out, "  \"options\": {\"inflations\": [");
    for (int i = 0; i < s->inflation_count; i++) io_output_format(out, "%s%.9g", i ? ", " : "", s->inflations[i]);
    io_output_format(out, "], \"initial_inflation\": %.9g, \"initial_length\": %lld, \"main_length\": %lld,\n",
                     o->initial_inflation, (long long)o->initial_length, (long long)o->main_length);
    io_output_format(out, "    \"pre_inflation\": %.9g, \"loop_factor\": %.9g, ",
                     o->pre_inflation, o->loop_factor);
    io_output_format(out, "\"discard_loops\": %s,\n    \"prune_number\": %lld, \"select\": %lld, ",
                     boolean(o->discard_loops), (long long)o->prune_number, (long long)o->select);
    io_output_format(out, "\"recover\": %lld, \"recover_percent\": %.9g, \"overlap\": \"%s\", ",
                     (long long)o->recover, o->recover_percent, overlaps[o->overlap]);
    io_output_format(out, "\"force_connected\": %s, \"sort\": \"%s\",\n    ", boolean(o->force_connected),
                     sorts[o->sort]);
    put_text_field(out, "graph_transform", s->graph_transform);
    put_text_field(out, "value_transform", s->value_transform);
    put_text_field(out, "device", s->device);
    io_output_format(out, "\"exact\": %s, \"lenient\": %s, \"memory_budget\": %lld},\n", boolean(s->exact),
                     boolean(s->read.lenient), (long long)s->memory);
}

static void put_input(io_output *out, const report *r, const settings *s)
{
    static const char *const formats[] = {"auto", "abc", "sif", "etc", "native", "matrix market", "string", "blast",
                                          "metis", "csr", "tsv"};
    io_output_string(out, "  \"input\": {");
    put_text_field(out, "file", s->input);
    put_text_field(out, "format", formats[r->format]);
    io_output_format(out, "\"bytes\": %lld, \"lines\": %lld, \"odd_lines\": %lld, \"negative_weights\": %lld,\n",
                     (long long)r->bytes, (long long)r->lines, (long long)r->odd_lines, (long long)r->negative);
    io_output_format(out, "    \"nodes\": %lld, \"arcs\": %lld, \"graph_entries\": %lld, \"start_entries\": %lld, ",
                     (long long)r->nodes, (long long)r->arcs, (long long)r->graph_entries,
                     (long long)r->start_entries);
    io_output_format(out, "\"first_products\": %lld},\n", (long long)r->first_products);
}

static void put_iteration(io_output *out, const mcl_iteration *i)
{
    io_output_format(out, "{\"number\": %lld, \"inflation\": %.9g, \"chaos\": %.9g, \"nnz_before\": %lld, ",
                     (long long)i->number, i->inflation, i->chaos, (long long)i->nnz_before);
    io_output_format(out, "\"nnz_expanded\": %lld, \"nnz_after\": %lld, \"products\": %lld, \"batches\": %lld,\n"
                          "       ",
                     (long long)i->nnz_expanded, (long long)i->nnz_after, (long long)i->products,
                     (long long)i->product.batches);
    io_output_format(out, "\"homogeneity\": [%.9g, %.9g, %.9g], \"mark\": %.9g, ", i->homogeneity_average,
                     i->homogeneity_low, i->homogeneity_high, i->mark);
    io_output_format(out, "\"seconds\": %.6f, \"analysis_seconds\": %.6f, ", i->seconds, i->product.analysis_seconds);
    io_output_format(out, "\"symbolic_seconds\": %.6f, \"numeric_seconds\": %.6f}", i->product.symbolic_seconds,
                     i->product.numeric_seconds);
}

static void put_run(io_output *out, const report_run *run)
{
    jury_report jury = jury_of(&run->run);
    double expand = 0;
    int64_t device_peak = 0;
    for (int64_t i = 0; i < run->iteration_count; i++) {
        expand += run->iterations[i].seconds;
        if (run->iterations[i].product.peak_bytes > device_peak) device_peak = run->iterations[i].product.peak_bytes;
    }
    io_output_format(out, "    {\"inflation\": %.9g, ", run->inflation);
    put_text_field(out, "output", run->output);
    put_text_field(out, "device", run->device);
    io_output_format(out, "\"iterations\": %lld, \"converged\": %s,\n     \"clusters\": %lld, \"largest\": %lld, ",
                     (long long)run->run.iterations, boolean(run->run.converged), (long long)run->clusters,
                     (long long)run->largest);
    io_output_format(out, "\"singletons\": %lld, \"attractor_systems\": %lld, \"overlap\": %lld, ",
                     (long long)run->singletons, (long long)run->attractor_systems, (long long)run->overlap);
    io_output_format(out, "\"overlap_nodes\": %lld, \"garbage_nodes\": %lld,\n", (long long)run->overlap_nodes,
                     (long long)run->garbage_nodes);
    io_output_format(out, "     \"jury\": {\"marks\": [%d, %d, %d], \"synopsis\": %.9g, \"word\": \"%s\"},\n",
                     jury.marks[0], jury.marks[1], jury.marks[2], jury.synopsis, jury_word(jury.synopsis));
    io_output_format(out, "     \"product_peak_bytes\": %lld,\n", (long long)device_peak);
    io_output_format(out, "     \"seconds\": {\"iterate\": %.6f, \"expand\": %.6f, \"interpret\": %.6f, ",
                     run->iterate_seconds, expand, run->interpret_seconds);
    io_output_format(out, "\"write\": %.6f},\n     \"steps\": [", run->write_seconds);
    for (int64_t i = 0; i < run->iteration_count; i++) {
        io_output_string(out, i ? ",\n      " : "\n      ");
        put_iteration(out, &run->iterations[i]);
    }
    io_output_string(out, "]}");
}

/* Peak resident memory of the process, in bytes (Linux counts it in KiB). */
static int64_t peak_host_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

sp_status report_put(sp_context *context, const report *r, const settings *s, io_output **output)
{
    sp_status status = io_output_open(context, s->report, output);
    if (status != SP_OK) return status;
    io_output *out = *output;
    io_output_string(out, "{\"tool\": \"mcl-gpu\", \"version\": \"" SP_VERSION "\",\n  \"arguments\": [");
    for (int i = 1; i < s->argument_count; i++) {
        if (i > 1) io_output_string(out, ", ");
        put_json_text(out, s->arguments[i]);
    }
    io_output_string(out, "],\n");
    put_input(out, r, s);
    put_options(out, s);
    io_output_format(out, "  \"threads\": %d, \"peak_host_bytes\": %lld,\n", r->threads,
                     (long long)peak_host_bytes());
    io_output_format(out, "  \"seconds\": {\"read\": %.6f, \"start\": %.6f, \"total\": %.6f},\n  \"runs\": [\n",
                     r->read_seconds, r->start_seconds, r->total_seconds);
    for (int i = 0; i < r->run_count; i++) {
        if (i) io_output_string(out, ",\n");
        put_run(out, &r->runs[i]);
    }
    io_output_string(out, "]}\n");
    return SP_OK;
}
