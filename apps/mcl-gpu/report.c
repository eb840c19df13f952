/* The JSON report. One object: the input, the options, the phases, and for each inflation its iterations, jury
 * marks and clusters. Times are wall seconds. */
#include "job.h"

#include <string.h>

#include "base/system.h"
#include "common/json.h"
#include "common/page.h"
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
    for (int i = 0; i < r->run_count; i++) {
        sp_free(context, r->runs[i].iterations);
        quality_free(context, &r->runs[i].quality);
        mcl_clustering_free(context, &r->runs[i].clustering);
    }
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

static void put_options(json *j, const settings *s)
{
    static const char *const overlaps[] = {"cut", "keep", "split"};
    static const char *const sorts[] = {"revsize", "size", "lex", "none"};
    const mcl_options *o = &s->mcl;
    json_begin(j, "options", '{');
    json_numbers(j, "inflations", s->inflations, s->inflation_count);
    json_number(j, "initial_inflation", o->initial_inflation);
    json_count(j, "initial_length", o->initial_length);
    json_count(j, "main_length", o->main_length);
    json_number(j, "pre_inflation", o->pre_inflation);
    json_number(j, "loop_factor", o->loop_factor);
    json_flag(j, "discard_loops", o->discard_loops);
    json_count(j, "prune_number", o->prune_number);
    json_count(j, "select", o->select);
    json_count(j, "recover", o->recover);
    json_number(j, "recover_percent", o->recover_percent);
    json_text(j, "overlap", overlaps[o->overlap]);
    json_flag(j, "force_connected", o->force_connected);
    json_text(j, "sort", sorts[o->sort]);
    json_text(j, "graph_transform", s->graph_transform);
    json_text(j, "value_transform", s->value_transform);
    json_text(j, "device", s->device);
    json_flag(j, "exact", s->exact);
    json_flag(j, "lenient", s->read.lenient);
    json_count(j, "memory_budget", s->memory);
    json_end(j, '}');
}

static void put_input(json *j, const report *r, const settings *s)
{
    static const char *const formats[] = {"auto", "abc", "sif", "etc", "native", "matrix market", "string", "blast",
                                          "metis", "csr", "tsv"};
    json_begin(j, "input", '{');
    json_text(j, "file", s->input);
    json_text(j, "format", formats[r->format]);
    json_count(j, "bytes", r->bytes);
    json_count(j, "lines", r->lines);
    json_count(j, "odd_lines", r->odd_lines);
    json_count(j, "negative_weights", r->negative);
    json_count(j, "nodes", r->nodes);
    json_count(j, "arcs", r->arcs);
    json_count(j, "graph_entries", r->graph_entries);
    json_count(j, "start_entries", r->start_entries);
    json_count(j, "first_products", r->first_products);
    json_end(j, '}');
}

static void put_iteration(json *j, const mcl_iteration *i)
{
    json_begin(j, NULL, '{');
    json_count(j, "number", i->number);
    json_number(j, "inflation", i->inflation);
    json_number(j, "chaos", i->chaos);
    json_count(j, "nnz_before", i->nnz_before);
    json_count(j, "nnz_expanded", i->nnz_expanded);
    json_count(j, "nnz_after", i->nnz_after);
    json_count(j, "products", i->products);
    json_count(j, "batches", i->product.batches);
    json_numbers(j, "homogeneity", (double[]){i->homogeneity_average, i->homogeneity_low, i->homogeneity_high}, 3);
    json_number(j, "mark", i->mark);
    json_seconds(j, "seconds", i->seconds);
    json_seconds(j, "analysis_seconds", i->product.analysis_seconds);
    json_seconds(j, "symbolic_seconds", i->product.symbolic_seconds);
    json_seconds(j, "numeric_seconds", i->product.numeric_seconds);
    json_end(j, '}');
}

static void put_jury(json *j, const mcl_run *run, int64_t nodes)
{
    const jury_report jury = jury_of(run);
    json_begin(j, "jury", '{');
    json_counts(j, "marks", (int64_t[]){jury.marks[0], jury.marks[1], jury.marks[2]}, 3);
    json_number(j, "synopsis", jury.synopsis);
    json_text(j, "word", jury_word(jury.synopsis, nodes));
    json_end(j, '}');
}

static sp_status put_run(job *work, json *j, const report_run *run)
{
    double expand = 0;
    int64_t device_peak = 0;
    for (int64_t i = 0; i < run->iteration_count; i++) {
        expand += run->iterations[i].seconds;
        if (run->iterations[i].product.peak_bytes > device_peak) device_peak = run->iterations[i].product.peak_bytes;
    }
    json_begin(j, NULL, '{');
    json_number(j, "inflation", run->inflation);
    json_text(j, "output", run->output);
    json_text(j, "device", run->device);
    json_count(j, "iterations", run->run.iterations);
    json_flag(j, "converged", run->run.converged);
    json_count(j, "clusters", run->clusters);
    json_count(j, "largest", run->largest);
    json_count(j, "singletons", run->singletons);
    json_count(j, "attractor_systems", run->attractor_systems);
    json_count(j, "overlap", run->overlap);
    json_count(j, "overlap_nodes", run->overlap_nodes);
    json_count(j, "garbage_nodes", run->garbage_nodes);
    put_jury(j, &run->run, work->report.nodes);
    json_count(j, "product_peak_bytes", device_peak);
    json_begin(j, "seconds", '{');
    json_seconds(j, "iterate", run->iterate_seconds);
    json_seconds(j, "expand", expand);
    json_seconds(j, "interpret", run->interpret_seconds);
    json_seconds(j, "write", run->write_seconds);
    json_end(j, '}');
    json_begin(j, "steps", '[');
    for (int64_t i = 0; i < run->iteration_count; i++) put_iteration(j, &run->iterations[i]);
    json_end(j, ']');
    const sp_status status = report_put_clusters(work, run, j);
    json_end(j, '}');
    return status;
}

static sp_status put_report(job *work, io_output *output)
{
    const report *r = &work->report;
    const settings *s = work->settings;
    json file = {.out = output}, *j = &file;
    sp_status status;
    json_begin(j, NULL, '{');
    json_text(j, "tool", "mcl-gpu");
    json_text(j, "version", SP_VERSION);
    json_begin(j, "arguments", '[');
    for (int i = 1; i < s->argument_count; i++) json_text(j, NULL, s->arguments[i]);
    json_end(j, ']');
    put_input(j, r, s);
    put_options(j, s);
    job_put_update(work, j);
    json_count(j, "threads", r->threads);
    json_count(j, "peak_host_bytes", system_peak_bytes());
    ranks_put(work, j);
    json_begin(j, "seconds", '{');
    json_seconds(j, "read", r->read_seconds);
    json_seconds(j, "start", r->start_seconds);
    json_seconds(j, "total", r->total_seconds);
    json_end(j, '}');
    json_begin(j, "runs", '[');
    for (int i = 0; i < r->run_count; i++) TRY(put_run(work, j, &r->runs[i]));
    json_end(j, ']');
    TRY(report_put_comparison(work, j));
    json_end(j, '}');
done:
    return status;
}

/* ---- the page ------------------------------------------------------------------------------------------- */

static const unsigned char page[] = {
#include "mcl-gpu/page.js.h"
    '\0'
};

sp_status report_put(job *j, io_output **output)
{
    const char *path = j->settings->report;
    sp_status status = io_output_open(j->host, path, output);
    if (status != SP_OK) return status;
    if (is_page(path)) page_begin(*output);
    status = put_report(j, *output);
    if (is_page(path)) page_end(*output, (const char *)page);
    if (status != SP_OK) {
        io_output_discard(*output);
        *output = NULL;
    }
    return status;
}
