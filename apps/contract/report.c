/* The JSON report of contract: input, labels, options, levels, output and seconds. */
#include "base/system.h"
#include "job.h"

static void put_input(const contract_job *job, json *j)
{
    const io_graph *in = &job->input;
    const io_labelling *l = &job->labelling;
    json_begin(j, "graph", '{');
    json_text(j, "file", job->options->graph);
    json_text(j, "format", format_word(in->format));
    json_count(j, "bytes", in->bytes);
    json_count(j, "nodes", job->g.rows);
    json_count(j, "edges", job->arcs);
    json_count(j, "entries", job->g.nnz);
    json_count(j, "repeated", job->repeated);
    json_count(j, "negative", in->negative);
    json_flag(j, "undirected", job->undirected);
    json_end(j, '}');
    json_begin(j, "labels", '{');
    json_text(j, "file", job->options->labels);
    if (job->options->through) json_text(j, "through", job->options->through);
    json_text(j, "kind", label_format_word(l->format));
    json_count(j, "bytes", l->bytes);
    json_count(j, "unlabelled", l->unlabelled);
    json_count(j, "empty", job->empty);
    json_flag(j, "overlapping", l->s.row_offsets != NULL);
    json_end(j, '}');
}

static void put_options(const contract_job *job, json *j)
{
    const contract_options *o = job->options;
    json_begin(j, "options", '{');
    json_text(j, "combine", combine_word(o->combine));
    json_text(j, "loops", loops_word(o->loops));
    json_flag(j, "half_loops", o->half_loops);
    json_count(j, "base", job->base);
    json_flag(j, "compact", o->compact);
    json_text(j, "repeat", repeat_word(o->repeat));
    json_text(j, "values", values_word(o->values));
    json_text(j, "device", o->device);
    json_count(j, "memory_budget", o->memory);
    json_end(j, '}');
}

static void put_output(const contract_job *job, json *j)
{
    json_begin(j, "levels", '[');
    for (int k = 0; k < job->hierarchy.count; k++) {
        const contraction_level *level = &job->hierarchy.level[k];
        json_begin(j, NULL, '{');
        json_count(j, "nodes", level->nodes);
        json_count(j, "groups", level->groups);
        json_count(j, "entries", level->c.nnz);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_begin(j, "output", '{');
    json_text(j, "file", job->options->out);
    json_text(j, "format", format_word(job->options->to));
    json_count(j, "groups", job->head.rows);
    json_count(j, "entries", job->head.entries);
    json_flag(j, "undirected", job->c_undirected);
    json_end(j, '}');
}

static void put_seconds(const contract_seconds *t, json *j)
{
    json_begin(j, "seconds", '{');
    json_seconds(j, "read_graph", t->graph);
    json_seconds(j, "build", t->build);
    json_seconds(j, "read_labels", t->labels);
    json_seconds(j, "contract", t->contract);
    json_seconds(j, "write", t->write);
    json_seconds(j, "total", t->total + t->write);
    json_end(j, '}');
}

void contract_put_report(const contract_job *job, io_output *out)
{
    json file = {.out = out}, *j = &file;
    json_begin(j, NULL, '{');
    json_text(j, "tool", "contract");
    json_text(j, "version", SP_VERSION);
    put_input(job, j);
    put_options(job, j);
    put_output(job, j);
    if (job->options->judge) {
        json_begin(j, "judgement", '{');
        contract_put_figures(job, j);
        json_end(j, '}');
    }
    if (job->options->refine) contract_put_refined(job, j);
    json_text(j, "engine", engine_word(job->info.engine));
    json_text(j, "device", job->device_name);
    json_count(j, "threads", sp_context_threads(job->host));
    json_count(j, "peak_host_bytes", system_peak_bytes());
    json_count(j, "working_bytes", job->info.peak_bytes);
    put_seconds(&job->seconds, j);
    json_end(j, '}');
}
