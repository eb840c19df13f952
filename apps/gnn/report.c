/* The report of gnn train, as JSON or as a page that draws it: data, options, every epoch of every run, results. Times
 * are wall seconds. Values that were not evaluated are null. */
#include <math.h>

#include "base/system.h"
#include "common/json.h"
#include "common/page.h"
#include "job.h"

const char *gnn_show(double accuracy, gnn_text text)
{
    if (isnan(accuracy)) return "none";
    snprintf(text, sizeof(gnn_text), "%.4f", accuracy);
    return text;
}

const char *gnn_measure(const gnn_job *job)
{
    return job->how.links ? "AUC" : job->data.targets ? "micro F1" : "accuracy";
}

/* ---- means over the runs -------------------------------------------------------------------------------- */

double gnn_test_accuracy(const gnn_run *run) { return run->best.accuracy[GNN_TEST]; }
double gnn_test_macro_f1(const gnn_run *run) { return run->macro_f1; }
double gnn_epoch_seconds(const gnn_run *run) { return run->median; }
static double validation_accuracy(const gnn_run *run) { return run->best.accuracy[GNN_VALIDATION]; }

/* *deviation: of the sample, 0 for one run. */
double gnn_mean(const gnn_job *job, double (*of)(const gnn_run *run), double *deviation)
{
    const double count = (double)job->run_count;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < job->run_count; i++) sum += of(&job->runs[i]);
    const double mean = sum / count;
    for (int64_t i = 0; i < job->run_count; i++) squares += pow(of(&job->runs[i]) - mean, 2);
    if (deviation) *deviation = job->run_count > 1 ? sqrt(squares / (count - 1)) : 0;
    return mean;
}

/* ---- fields ---------------------------------------------------------------------------------------------- */

static void put_data(const gnn_job *job, json *j)
{
    const gnn_data *data = &job->data;
    const sp_csr *sparse = &data->features.sparse;
    const sp_dense *dense = &data->features.dense;
    json_begin(j, "data", '{');
    json_text(j, "folder", job->settings->folder);
    json_count(j, "nodes", data->graph.rows);
    json_count(j, "edges", data->graph.nnz);
    json_count(j, "features", dense->values ? dense->cols : sparse->cols);
    json_count(j, "feature_entries", dense->values ? dense->rows * dense->cols : sparse->nnz);
    json_flag(j, "sparse_features", !dense->values);
    json_count(j, "classes", data->classes);
    json_flag(j, "several_classes_a_node", data->targets || job->targets);
    if (job->settings->command == COMMAND_TRAIN) {
        json_count(j, "training", job->nodes[GNN_TRAIN]);
        json_count(j, "validation", job->nodes[GNN_VALIDATION]);
        json_count(j, "test", job->nodes[GNN_TEST]);
    }
    json_end(j, '}');
}

void gnn_put_model(const gnn_job *job, json *j)
{
    const gnn_model_options *m = &job->how.model;
    json_text(j, "model", model_word((int)m->layer));
    json_count(j, "layers", m->layers);
    json_count(j, "hidden", m->hidden);
    if (m->layer == GNN_GAT) json_count(j, "heads", m->heads);
    json_count(j, "maxk", m->maxk);
    json_text(j, "norm", norm_word((int)m->norm));
    json_flag(j, "residual", m->residual);
    json_text(j, "jump", jump_word((int)m->jump));
    json_number(j, "input_dropout", m->input_dropout);
    json_number(j, "dropout", m->dropout);
    json_number(j, "attention_dropout", m->attention_dropout);
    json_flag(j, "normalise", m->normalised);
    json_flag(j, "keep_aggregated", m->keep_aggregated);
    json_text(j, "precision", precision_word(m->half));
}

static void put_training(const gnn_job *job, json *j)
{
    const gnn_settings *s = job->settings;
    const gnn_trainer_options *how = &job->how;
    json_text(j, "optimizer", optimizer_word((int)how->optimizer.method));
    json_number(j, "rate", how->optimizer.rate);
    json_number(j, "decay", how->optimizer.decay);
    json_flag(j, "decay_first_layer_only", how->optimizer.decay_first_layer);
    json_count(j, "epochs", how->epochs);
    json_count(j, "patience", how->patience);
    json_count(j, "evaluate_every", how->evaluate_every);
    json_text(j, "schedule", schedule_word((int)how->schedule));
    json_count(j, "rate_step", how->rate_step);
    json_number(j, "rate_factor", how->rate_factor);
    json_count(j, "warmup", how->warmup);
    json_text(j, "class_weights", s->class_weights);
    json_text(j, "sampler", sampler_word(s->sampler));
    if (how->sampled) {
        json_counts(j, "fanout", s->fanout.number, s->fanout.count);
        json_flag(j, "by_weight", s->by_weight);
        json_count(j, "batch", how->sampler.batch);
        json_count(j, "bulk", how->sampler.bulk);
    }
    if (job->clusters) {
        json_text(j, "clusters", s->clusters);
        json_count(j, "cluster_count", job->cluster_count);
    }
}

static void put_options(const gnn_job *job, json *j)
{
    const gnn_settings *s = job->settings;
    json_begin(j, "options", '{');
    json_text(j, "task", task_word(s->task));
    gnn_put_model(job, j);
    put_training(job, j);
    if (job->how.links) json_count(j, "negatives", s->negatives > 0 ? s->negatives : 1);
    if (s->split_train > 0) json_counts(j, "split", (int64_t[]){s->split_train, s->split_validation}, 2);
    else if (s->split || job->how.links)
        json_numbers(j, "split_shares", (double[]){s->train_share, s->validation_share}, 2);
    json_text(j, "features", gnn_feature_words[s->features]);
    json_text(j, "order", order_word(s->order));
    json_count(j, "seed", s->seed);
    json_count(j, "seeds", s->seeds);
    json_text(j, "device", s->device);
    json_text(j, "resume", s->resume);
    json_count(j, "memory_budget", s->memory);
    json_end(j, '}');
}

/* ---- runs ------------------------------------------------------------------------------------------------- */

static void put_splits(const gnn_job *job, json *j, const gnn_epoch *epoch)
{
    static const char *const splits[GNN_SPLITS] = {"unused", "training", "validation", "test"};
    char key[32];
    for (int s = GNN_TRAIN; s < GNN_SPLITS; s++) {
        snprintf(key, sizeof key, "%s_loss", splits[s]);
        json_number(j, key, epoch->split_loss[s]);
        snprintf(key, sizeof key, "%s_%s", splits[s], job->how.links ? "auc" : "accuracy");
        json_number(j, key, epoch->accuracy[s]);
    }
}

static void put_run(const gnn_job *job, const gnn_run *run, json *j)
{
    json_begin(j, NULL, '{');
    json_count(j, "seed", run->seed);
    json_count(j, "best_epoch", run->best_epoch);
    put_splits(job, j, &run->best);
    if (job->how.links) gnn_put_link_figures(&run->links, "test_links", j);
    else json_number(j, "test_macro_f1", run->macro_f1);
    json_seconds(j, "median_epoch_seconds", run->median);
    json_seconds(j, "seconds", run->seconds);
    json_begin(j, "epochs", '[');
    for (int64_t i = 0; i < run->count; i++) {
        const gnn_epoch *e = &run->epochs[i];
        json_begin(j, NULL, '{');
        json_count(j, "epoch", e->epoch);
        json_number(j, "loss", e->loss);
        json_number(j, "rate", e->rate);
        put_splits(job, j, e);
        if (e->edges > 0) json_count(j, "sampled_edges", e->edges);
        json_seconds(j, "seconds", e->seconds);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
}

static void put_result(const gnn_job *job, json *j)
{
    const bool links = job->how.links;
    double deviation, other_deviation;
    const double test = gnn_mean(job, gnn_test_accuracy, &deviation);
    const double other = gnn_mean(job, links ? gnn_test_precision : gnn_test_macro_f1, &other_deviation);
    json_text(j, "device", job->device_name);
    json_count(j, "threads", sp_context_threads(job->host));
    json_count(j, "parameters", job->parameters);
    json_count(j, "peak_host_bytes", system_peak_bytes());
    json_flag(j, "renumbered", job->data.place != NULL);
    json_flag(j, "stopped", job->stopped);
    json_number(j, links ? "test_auc" : "test_accuracy", test);
    json_number(j, links ? "test_auc_deviation" : "test_accuracy_deviation", deviation);
    json_number(j, links ? "test_average_precision" : "test_macro_f1", other);
    json_number(j, links ? "test_average_precision_deviation" : "test_macro_f1_deviation", other_deviation);
    json_number(j, links ? "validation_auc" : "validation_accuracy", gnn_mean(job, validation_accuracy, NULL));
    json_seconds(j, "median_epoch_seconds", gnn_mean(job, gnn_epoch_seconds, NULL));
    json_count(j, "best_epoch", job->runs[0].best_epoch);
    json_begin(j, "seconds", '{');
    json_seconds(j, "read", job->seconds.read);
    json_seconds(j, "order", job->seconds.order);
    json_seconds(j, "prepare", job->seconds.prepare);
    json_seconds(j, "total", job->seconds.total);
    json_end(j, '}');
}

void gnn_report_begin(const gnn_job *job, json *j)
{
    json_begin(j, NULL, '{');
    json_text(j, "tool", "gnn");
    json_text(j, "version", SP_VERSION);
    json_text(j, "command", job->settings->command == COMMAND_TRAIN ? "train" : "predict");
    json_begin(j, "arguments", '[');
    for (int i = 0; i < job->argc; i++) json_text(j, NULL, job->argv[i]);
    json_end(j, ']');
    put_data(job, j);
}

static sp_status put_report(const gnn_job *job, io_output *out)
{
    json file = {.out = out}, *j = &file;
    gnn_report_begin(job, j);
    put_options(job, j);
    put_result(job, j);
    gnn_put_figures(&job->figures, &job->input.classes, "test", j);
    json_begin(j, "runs", '[');
    for (int64_t i = 0; i < job->run_count; i++) put_run(job, &job->runs[i], j);
    json_end(j, ']');
    json_end(j, '}');
    return SP_OK;
}

static const unsigned char script[] = {
#include "gnn/page.js.h"
    '\0'
};

sp_status gnn_put_page(gnn_job *job, io_output *out, sp_status (*put)(const gnn_job *, io_output *))
{
    if (is_page(job->settings->report)) page_begin(out);
    const sp_status status = put(job, out);
    if (is_page(job->settings->report)) page_end(out, (const char *)script);
    return status;
}

sp_status gnn_put_report(gnn_job *job, io_output *out) { return gnn_put_page(job, out, put_report); }
