/* The JSON report of gnn train: data, options, every epoch of every run, what came out. Times are wall seconds; what
 * was not evaluated is null. */
#include <math.h>
#include <sys/resource.h>

#include "job.h"

const char *gnn_show(double accuracy, gnn_text text)
{
    if (isnan(accuracy)) return "none";
    snprintf(text, sizeof(gnn_text), "%.4f", accuracy);
    return text;
}

/* ---- means over the runs -------------------------------------------------------------------------------- */

double gnn_test_accuracy(const gnn_run *run) { return run->best.accuracy[GNN_TEST]; }
double gnn_epoch_seconds(const gnn_run *run) { return run->median; }
static double validation_accuracy(const gnn_run *run) { return run->best.accuracy[GNN_VALIDATION]; }

/* The deviation is that of the sample, 0 for one run. */
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

static void put_text(io_output *out, const char *key, const char *text)
{
    io_output_format(out, "\"%s\": ", key);
    put_json_text(out, text);
    io_output_string(out, ", ");
}

static void put_whole(io_output *out, const char *key, int64_t number)
{
    io_output_format(out, "\"%s\": %lld, ", key, (long long)number);
}

static void put_number(io_output *out, const char *key, double number)
{
    if (isfinite(number)) io_output_format(out, "\"%s\": %.9g, ", key, number);
    else io_output_format(out, "\"%s\": null, ", key);
}

static void put_switch(io_output *out, const char *key, bool value)
{
    io_output_format(out, "\"%s\": %s, ", key, value ? "true" : "false");
}

static void put_data(const gnn_job *job, io_output *out)
{
    const gnn_data *data = &job->data;
    const sp_csr *sparse = &data->features.sparse;
    const sp_dense *dense = &data->features.dense;
    io_output_string(out, "  \"data\": {");
    put_text(out, "folder", job->settings->folder);
    put_whole(out, "nodes", data->graph.rows);
    put_whole(out, "edges", data->graph.nnz);
    put_whole(out, "features", dense->values ? dense->cols : sparse->cols);
    put_whole(out, "feature_entries", dense->values ? dense->rows * dense->cols : sparse->nnz);
    put_switch(out, "sparse_features", !dense->values);
    io_output_string(out, "\n    ");
    put_whole(out, "classes", data->classes);
    put_switch(out, "several_classes_a_node", data->targets != NULL);
    put_whole(out, "training", job->nodes[GNN_TRAIN]);
    put_whole(out, "validation", job->nodes[GNN_VALIDATION]);
    io_output_format(out, "\"test\": %lld},\n", (long long)job->nodes[GNN_TEST]);
}

static void put_model(const gnn_job *job, io_output *out)
{
    const gnn_model_options *m = &job->how.model;
    put_text(out, "model", model_word(m->layer));
    put_whole(out, "layers", m->layers);
    put_whole(out, "hidden", m->hidden);
    if (m->layer == GNN_GAT) put_whole(out, "heads", m->heads);
    put_whole(out, "maxk", m->maxk);
    put_number(out, "input_dropout", m->input_dropout);
    put_number(out, "dropout", m->dropout);
    put_number(out, "attention_dropout", m->attention_dropout);
    put_switch(out, "normalise", m->normalised);
    put_switch(out, "keep_aggregated", m->keep_aggregated);
    put_switch(out, "half_gather", m->half_gather);
}

static void put_training(const gnn_job *job, io_output *out)
{
    const gnn_settings *s = job->settings;
    const gnn_trainer_options *how = &job->how;
    put_text(out, "optimizer", optimizer_word(how->optimizer.method));
    put_number(out, "rate", how->optimizer.rate);
    put_number(out, "decay", how->optimizer.decay);
    put_switch(out, "decay_first_layer_only", how->optimizer.decay_first_layer);
    put_whole(out, "epochs", how->epochs);
    put_whole(out, "patience", how->patience);
    put_whole(out, "evaluate_every", how->evaluate_every);
    put_whole(out, "rate_step", how->rate_step);
    put_number(out, "rate_factor", how->rate_factor);
    io_output_string(out, "\n    ");
    put_text(out, "sampler", sampler_word(s->sampler));
    if (how->sampled) {
        io_output_string(out, "\"fanout\": [");
        for (int64_t l = 0; l < s->fanouts; l++)
            io_output_format(out, "%s%lld", l ? ", " : "", (long long)s->fanout[l]);
        io_output_string(out, "], ");
        put_whole(out, "batch", how->sampler.batch);
        put_whole(out, "bulk", how->sampler.bulk);
    }
    if (job->clusters) {
        put_text(out, "clusters", s->clusters);
        put_whole(out, "cluster_count", job->cluster_count);
    }
}

static void put_options(const gnn_job *job, io_output *out)
{
    const gnn_settings *s = job->settings;
    io_output_string(out, "  \"options\": {");
    put_model(job, out);
    io_output_string(out, "\n    ");
    put_training(job, out);
    io_output_string(out, "\n    ");
    if (s->split_train > 0) io_output_format(out, "\"split\": [%lld, %lld], ", (long long)s->split_train,
                                             (long long)s->split_validation);
    put_text(out, "order", order_word(s->order));
    put_whole(out, "seed", s->seed);
    put_whole(out, "seeds", s->seeds);
    put_text(out, "device", s->device);
    put_text(out, "resume", s->resume);
    io_output_format(out, "\"memory_budget\": %lld},\n", (long long)s->memory);
}

/* ---- runs ------------------------------------------------------------------------------------------------- */

static void put_splits(io_output *out, const gnn_epoch *epoch)
{
    static const char *const splits[GNN_SPLITS] = {"unused", "training", "validation", "test"};
    char key[32];
    for (int s = GNN_TRAIN; s < GNN_SPLITS; s++) {
        snprintf(key, sizeof key, "%s_loss", splits[s]);
        put_number(out, key, epoch->split_loss[s]);
        snprintf(key, sizeof key, "%s_accuracy", splits[s]);
        put_number(out, key, epoch->accuracy[s]);
    }
}

static void put_run(const gnn_run *run, io_output *out)
{
    io_output_string(out, "    {");
    put_whole(out, "seed", run->seed);
    put_whole(out, "best_epoch", run->best_epoch);
    put_splits(out, &run->best);
    io_output_string(out, "\n     ");
    put_number(out, "median_epoch_seconds", run->median);
    io_output_format(out, "\"seconds\": %.6f,\n     \"epochs\": [", run->seconds);
    for (int64_t i = 0; i < run->count; i++) {
        const gnn_epoch *e = &run->epochs[i];
        io_output_string(out, i ? ",\n      {" : "\n      {");
        put_whole(out, "epoch", e->epoch);
        put_number(out, "loss", e->loss);
        put_splits(out, e);
        if (e->edges > 0) put_whole(out, "sampled_edges", e->edges);
        io_output_format(out, "\"seconds\": %.9f}", e->seconds);
    }
    io_output_string(out, "]}");
}

sp_status gnn_put_report(gnn_job *job, io_output *out)
{
    struct rusage usage;
    const int64_t peak = getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
    double deviation;
    const double test = gnn_mean(job, gnn_test_accuracy, &deviation);
    io_output_string(out, "{\"tool\": \"gnn\", \"version\": \"" SP_VERSION "\", \"command\": \"train\",\n");
    put_data(job, out);
    put_options(job, out);
    io_output_string(out, "  ");
    put_text(out, "device", job->device_name);
    put_whole(out, "threads", sp_context_threads(job->host));
    put_whole(out, "parameters", job->parameters);
    put_whole(out, "peak_host_bytes", peak);
    put_switch(out, "renumbered", job->data.place != NULL);
    put_switch(out, "stopped", job->stopped);
    io_output_string(out, "\n  ");
    put_number(out, "test_accuracy", test);
    put_number(out, "test_accuracy_deviation", deviation);
    put_number(out, "validation_accuracy", gnn_mean(job, validation_accuracy, NULL));
    put_number(out, "median_epoch_seconds", gnn_mean(job, gnn_epoch_seconds, NULL));
    put_whole(out, "best_epoch", job->runs[0].best_epoch);
    io_output_format(out, "\n  \"seconds\": {\"read\": %.6f, \"order\": %.6f, \"prepare\": %.6f, \"total\": %.6f},\n"
                     "  \"runs\": [\n", job->seconds.read, job->seconds.order, job->seconds.prepare,
                     job->seconds.total);
    for (int64_t i = 0; i < job->run_count; i++) {
        if (i) io_output_string(out, ",\n");
        put_run(&job->runs[i], out);
    }
    io_output_string(out, "]}\n");
    return SP_OK;
}
