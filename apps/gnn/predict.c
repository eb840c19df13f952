/* gnn predict: the class of every node, or the probabilities of links, by a model that gnn train saved. */
#include <string.h>

#include "job.h"

/* ---- the model and the data ----------------------------------------------------------------------------- */

static sp_status fail_model(gnn_job *job, sp_context *context, sp_status status)
{
    char why[256];
    snprintf(why, sizeof why, "%s", sp_last_error(context));
    return sp_fail(context, status, "%s: %s", job->settings->load, why);
}

/* Adapts the data to the model: its classes, and which labels are compared. */
static sp_status match_data(gnn_job *job, const gnn_saved *saved)
{
    const gnn_settings *s = job->settings;
    gnn_data *data = &job->data;
    sp_status status = SP_OK;
    if (data->classes > job->how.model.outputs || (data->targets && data->classes != job->how.model.outputs))
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: the labels have %lld classes, the model in %s has %lld",
                       s->folder, (long long)data->classes, s->load, (long long)job->how.model.outputs);
    const bool judged = data->classes > 0 && saved->several == (data->targets != NULL);
    if (judged) status = gnn_data_draw_again(job->host, &job->input.data, &saved->drawn, &job->drawn);
    job->judged = !judged ? -1 : job->input.has_split || job->drawn ? GNN_TEST : GNN_SPLITS;
    data->classes = job->how.model.outputs;
    data->split = NULL; /* nothing is trained */
    return status;
}

/* What the options ask for is what the model predicts. */
static sp_status match_task(gnn_job *job)
{
    const gnn_settings *s = job->settings;
    const bool asks = s->pairs || s->best_links > 0;
    if (job->how.links && (s->scores || s->report))
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: a model of links, which has no classes; leave %s out",
                       s->load, s->scores ? "--scores" : "--report");
    if (job->how.links && s->out && !asks)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: a model of links; say which with --pairs FILE or --links N",
                       s->load);
    if (!job->how.links && asks)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: a model of classes; %s goes with one of links (gnn train "
                       "--task link)", s->load, s->pairs ? "--pairs" : "--links");
    return SP_OK;
}

static sp_status load(gnn_job *job)
{
    gnn_saved saved = {0};
    sp_status status;
    TRY(gnn_read_saved(job, job->settings->load));
    status = gnn_saved_read(job->host, job->saved, job->saved_size, &saved);
    if (status != SP_OK) return fail_model(job, job->host, status);
    job->how = saved.options;
    TRY(match_task(job));
    TRY(gnn_read_data(job));
    TRY(gnn_match_features(job, job->settings->load, &saved));
    if (job->how.model.normalised) {
        TRY(gnn_data_normalise(job->host, &job->input.data));
        job->data = job->input.data;
    }
    if (job->how.links) {
        job->data.split = NULL; /* nothing is trained */
        job->judged = -1;
        return gnn_read_pairs(job);
    }
    TRY(gnn_match_classes(job, job->settings->load, &saved));
    TRY(match_data(job, &saved));
    const int64_t nodes = job->data.graph.rows, all = nodes * job->how.model.outputs; /* below 2^62 */
    if (saved.several) TRY(sp_alloc(job->host, all, sizeof *job->targets, (void **)&job->targets));
    else TRY(sp_alloc(job->host, nodes, sizeof *job->classes, (void **)&job->classes));
    if (job->settings->scores || job->settings->report)
        TRY(sp_alloc(job->host, all, sizeof *job->scores, (void **)&job->scores));
done:
    return status;
}

static sp_status make_embeddings(gnn_job *job, const gnn_trainer *trainer)
{
    job->width = gnn_trainer_width(trainer);
    if (job->width == 0)
        return sp_fail(job->compute, SP_ERROR_ARGUMENT, "%s: a model of one layer, which has no embeddings; leave "
                       "--embeddings out", job->settings->load);
    sp_free(job->host, job->embeddings);
    job->embeddings = NULL;
    return sp_alloc(job->host, job->data.graph.rows * job->width, sizeof *job->embeddings, (void **)&job->embeddings);
}

static sp_status judge(gnn_job *job)
{
    gnn_data data = job->data;
    if (job->judged < 0) return SP_OK;
    data.split = job->input.data.split;
    return gnn_judge(job->host, &data, (gnn_split)job->judged, job->classes, job->targets, job->scores, &job->figures);
}

static sp_status predict(gnn_job *job)
{
    gnn_engine *engine = NULL;
    gnn_trainer *trainer = NULL;
    sp_status status;
    show_line(&job->line, "predicting");
    TRY(gnn_engine_create(job->compute, 0, &engine));
    TRY(gnn_trainer_create(engine, &job->data, &job->how, &trainer));
    job->directed = !gnn_trainer_symmetric(trainer);
    status = gnn_trainer_restore(trainer, job->saved, job->saved_size);
    if (status != SP_OK) TRY(fail_model(job, job->compute, status));
    TRY(gnn_trainer_finish(trainer));
    if (job->settings->embeddings) TRY(make_embeddings(job, trainer));
    job->least_known = !job->how.links; /* passes ask for it first */
    if (job->how.links) TRY(gnn_predict_links(job, trainer));
    else TRY(gnn_trainer_predict(trainer, job->classes, job->targets, job->scores));
    if (job->settings->embeddings) TRY(gnn_trainer_embed(trainer, job->embeddings));
done:
    gnn_trainer_free(trainer);
    gnn_engine_free(engine);
    return status;
}

/* ---- output ------------------------------------------------------------------------------------ */

/* A table of text: its fields are separated by tabs, or by commas where the name of the file ends in .csv. */
typedef struct text_table {
    io_output *out;
    bool csv, begun; /* begun: the row has a field */
} text_table;

static text_table open_table(const char *path, io_output *out)
{
    return (text_table){.out = out, .csv = is_kind(path, ".csv")};
}

static void next_field(text_table *t)
{
    if (t->begun) io_output_string(t->out, t->csv ? "," : "\t");
    t->begun = true;
}

static void end_row(text_table *t)
{
    io_output_string(t->out, "\n");
    t->begun = false;
}

/* The name of a node or class, or its number. */
static void put_name(const text_table *t, const io_names *names, int64_t i)
{
    if (names->count > 0) io_put_field(t->out, io_name(names, i), io_name_length(names, i), t->csv ? ',' : '\t');
    else io_output_int(t->out, i);
}

static void put_node(text_table *t, const gnn_job *job, int64_t node)
{
    if (job->input.nodes.count == 0) return;
    next_field(t);
    put_name(t, &job->input.nodes, node);
}

static void put_class(const text_table *t, const gnn_job *job, int64_t class)
{
    static const io_names none = {0};
    const io_names *names = &job->input.classes;
    put_name(t, names->count == job->data.classes ? names : &none, class);
}

static void put_heading(text_table *t, const gnn_job *job)
{
    if (job->input.nodes.count > 0) {
        next_field(t);
        io_output_string(t->out, "node");
    }
    next_field(t);
    io_output_string(t->out, "class");
    for (int64_t c = 0; job->settings->scores && c < job->data.classes; c++) {
        next_field(t);
        put_class(t, job, c);
    }
    end_row(t);
}

/* A line for each node: its name if it has one, its class or classes, then the scores. Where that is more than a class,
 * a heading comes first. */
static sp_status put_classes(gnn_job *job, io_output *out)
{
    const int64_t classes = job->data.classes;
    text_table t = open_table(job->settings->out, out);
    const float *scores = job->settings->scores ? job->scores : NULL;
    if (job->input.nodes.count > 0 || scores || t.csv) put_heading(&t, job);
    for (int64_t i = 0; i < job->data.graph.rows; i++) {
        bool first = true;
        put_node(&t, job, i);
        next_field(&t);
        if (job->classes) put_class(&t, job, job->classes[i]);
        for (int64_t c = 0; job->targets && c < classes; c++) {
            if (!job->targets[i * classes + c]) continue;
            if (!first) io_output_string(out, " ");
            put_class(&t, job, c);
            first = false;
        }
        for (int64_t c = 0; scores && c < classes; c++) {
            next_field(&t);
            io_output_format(out, "%.6g", (double)scores[i * classes + c]);
        }
        end_row(&t);
    }
    return SP_OK;
}

/* A line a pair: its nodes, and the probability of a link. */
static sp_status put_pairs(gnn_job *job, io_output *out)
{
    text_table t = open_table(job->settings->out, out);
    if (job->input.nodes.count > 0 || t.csv)
        io_output_string(out, t.csv ? "source,target,probability\n" : "source\ttarget\tprobability\n");
    for (int64_t k = 0; k < job->pair_count; k++) {
        for (int i = 0; i < 2; i++) {
            next_field(&t);
            put_name(&t, &job->input.nodes, job->pairs[2 * k + i]);
        }
        next_field(&t);
        io_output_format(out, "%.6g", (double)job->scores[k]);
        end_row(&t);
    }
    return SP_OK;
}

/* Predictions for NumPy: the scores if asked for, else the numbers of classes, or 0 and 1 for each class; of links the
 * probabilities. */
static sp_status put_array(gnn_job *job, io_output *out)
{
    const int64_t nodes = job->data.graph.rows, classes = job->data.classes;
    if (job->how.links) {
        io_put_npy(out, &(io_array){.type = IO_F32, .dimensions = 1, .shape = {job->pair_count},
                                    .count = job->pair_count, .item_size = sizeof *job->scores, .values = job->scores});
        return SP_OK;
    }
    io_array array = {.type = IO_I32, .dimensions = 1, .shape = {nodes, classes}, .count = nodes,
                      .item_size = sizeof *job->classes, .values = job->classes};
    const bool scores = job->settings->scores;
    if (!job->classes || scores) {
        array.type = scores ? IO_F32 : IO_U8;
        array.dimensions = 2;
        array.count = nodes * classes;
        array.item_size = scores ? sizeof *job->scores : sizeof *job->targets;
        array.values = scores ? (void *)job->scores : job->targets;
    }
    io_put_npy(out, &array);
    return SP_OK;
}

/* A row a node, below a heading if nodes have names: e1, e2, ... */
static sp_status put_embeddings(gnn_job *job, io_output *out)
{
    const int64_t nodes = job->data.graph.rows, width = job->width;
    text_table t = open_table(job->settings->embeddings, out);
    if (is_kind(job->settings->embeddings, ".npy")) {
        io_put_npy(out, &(io_array){.type = IO_F32, .dimensions = 2, .shape = {nodes, width}, .count = nodes * width,
                                    .item_size = sizeof *job->embeddings, .values = job->embeddings});
        return SP_OK;
    }
    if (job->input.nodes.count > 0) {
        next_field(&t);
        io_output_string(out, "node");
        for (int64_t c = 0; c < width; c++) {
            next_field(&t);
            io_output_format(out, "e%lld", (long long)c + 1);
        }
        end_row(&t);
    }
    for (int64_t i = 0; i < nodes; i++) {
        put_node(&t, job, i);
        for (int64_t c = 0; c < width; c++) {
            next_field(&t);
            io_output_format(out, "%.9g", (double)job->embeddings[i * width + c]);
        }
        end_row(&t);
    }
    return SP_OK;
}

/* The end of the closing line: how good the predictions are, as far as that is known. */
static void describe_figures(const gnn_job *job, char *text, size_t size)
{
    const char *measure = job->targets ? "micro F1" : "accuracy";
    const gnn_figures *f = &job->figures;
    char count[COUNT_TEXT], pairs[COUNTED_TEXT];
    *text = '\0';
    if (job->how.links && job->settings->out)
        snprintf(text, size, " (%s)", counted(job->pair_count, "pair", pairs));
    if (job->judged == GNN_TEST && f->nodes == 0) snprintf(text, size, " (test %s none)", measure);
    else if (job->judged == GNN_TEST)
        snprintf(text, size, " (test %s %.4f, macro F1 %.4f%s)", measure, f->accuracy, f->macro_f1,
                 job->drawn ? ", of the nodes that the training's --split left" : "");
    else if (f->nodes > 0)
        snprintf(text, size, " (%s %.4f, macro F1 %.4f of %s labelled nodes)", measure, f->accuracy, f->macro_f1,
                 show_count(f->nodes, count));
}

sp_status gnn_predict(gnn_job *job)
{
    static const io_names none = {0};
    const gnn_settings *s = job->settings;
    const bool array = s->out && is_kind(s->out, ".npy"), pairs = s->pairs || s->best_links > 0;
    const gnn_file files[] = {{s->out, array ? put_array : pairs ? put_pairs : put_classes},
                              {s->embeddings, put_embeddings},
                              {s->report, gnn_put_prediction}};
    const int count = sizeof files / sizeof *files;
    const double began = wall_seconds();
    char read[1024], result[160];
    sp_status status;
    TRY(gnn_check_files(job, files, count));
    TRY(load(job));
    TRY(gnn_on_device(job, predict));
    TRY(judge(job));
    job->seconds.total = wall_seconds() - began;
    TRY(gnn_write_files(job, files, count));
    quiet_line(&job->line);
    snprintf(read, sizeof read, ", and %.1000s", s->load);
    if (!s->quiet && !gnn_takes_stdout(files, count))
        gnn_show_figures(&job->figures, job->input.classes.count == job->data.classes ? &job->input.classes : &none);
    describe_figures(job, result, sizeof result);
    gnn_end_line(job, read, files, count, result);
done:
    return status;
}
