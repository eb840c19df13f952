/* gnn train: data -> clusters -> numbering -> epochs, once or for several seeds -> files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* ---- before ---------------------------------------------------------------------------------------------- */

/* Takes the options that the command line does not name from a saved model. */
static sp_status take_saved(gnn_job *job, gnn_saved *saved)
{
    const char *path = job->settings->resume;
    char why[256];
    sp_status status;
    if (!path) return SP_OK;
    TRY(gnn_read_saved(job, path));
    status = gnn_saved_read(job->host, job->saved, job->saved_size, saved);
    if (status != SP_OK) {
        snprintf(why, sizeof why, "%s", sp_last_error(job->host));
        return sp_fail(job->host, status, "%s: %s", path, why);
    }
    job->mistaken = gnn_parse(job->argc, job->argv, saved, &job->resumed) != OPTIONS_RUN;
    if (job->mistaken) return SP_ERROR_ARGUMENT;
    job->settings = &job->resumed;
done:
    return status;
}

/* Counts classes with fewer nodes than a drawn split takes of each. */
static sp_status count_small(gnn_job *job, int64_t *small)
{
    const gnn_data *data = &job->data;
    const int64_t wanted = job->settings->split_train + job->settings->split_validation;
    int64_t *size;
    *small = 0;
    sp_status status = sp_calloc(job->host, data->classes, sizeof *size, (void **)&size);
    if (status != SP_OK) return status;
    for (int64_t i = 0; data->labels && i < data->graph.rows; i++)
        if (data->labels[i] >= 0) size[data->labels[i]]++;
    for (int64_t c = 0; data->labels && c < data->classes; c++) *small += size[c] > 0 && size[c] < wanted;
    sp_free(job->host, size);
    return SP_OK;
}

/* Notices about a run that may not be meant so. */
static sp_status remark(gnn_job *job)
{
    const gnn_settings *s = job->settings;
    const char *what = s->task == TASK_LINK ? "links" : "nodes", *measure = s->task == TASK_LINK ? "AUC" : "accuracy";
    int64_t small;
    if (job->line.quiet) return SP_OK;
    sp_status status = count_small(job, &small);
    if (status != SP_OK) return status;
    if (s->split && s->split_train > 0 && small > 0)
        notice_line(&job->line, "%s: %lld of %lld classes have fewer than %lld nodes, --split's for each: at most "
                    "half of these train, the others validate or test", s->folder, (long long)small,
                    (long long)job->data.classes,
                    (long long)(s->split_train + s->split_validation));
    if (job->nodes[GNN_TEST] == 0)
        notice_line(&job->line, "%s: there are no test %s, so that there is no test %s", s->folder, what, measure);
    if (job->data.graph.values && s->model != GNN_GCN)
        notice_line(&job->line, "%s: the weights of the edges do not count with %s; they do with gcn", s->folder,
                    model_word(s->model));
    return SP_OK;
}

static sp_status draw_split(sp_context *context, const gnn_settings *s, gnn_data *data, int64_t seed)
{
    if (s->split_train > 0)
        return gnn_data_draw_split(context, data, s->split_train, s->split_validation, (uint64_t)seed);
    return gnn_data_draw_shares(context, data, s->train_share, s->validation_share, (uint64_t)seed);
}

/* Makes the training data from the folder's contents. */
static sp_status prepare_data(gnn_job *job)
{
    const gnn_settings *s = job->settings;
    gnn_data *data = &job->input.data;
    const bool links = s->task == TASK_LINK;
    char why[256];
    sp_status status;
    if (!job->input.has_split && !s->split && !links)
        return sp_fail(job->host, SP_ERROR_ARGUMENT,
                       "%s: there is no split; add train.txt, val.txt and test.txt, or draw one with --split 20,30 "
                       "(nodes of a class) or --split 60%%,20%%", s->folder);
    if (links) TRY(gnn_draw_links(job));
    else if (s->split) TRY(draw_split(job->host, s, data, s->seed));
    status = gnn_data_check(job->host, data);
    if (status != SP_OK) {
        snprintf(why, sizeof why, "%s", sp_last_error(job->host));
        return sp_fail(job->host, status, "%s: %s", s->folder, why);
    }
    TRY(gnn_hint_before(job, data));
    if (!s->no_normalise) TRY(gnn_data_normalise(job->host, data));
    job->data = *data;
    if (links) memcpy(job->nodes, data->links.linked, sizeof job->nodes);
    for (int64_t i = 0; !links && i < data->graph.rows; i++) job->nodes[data->split[i]]++;
    if (s->split && !links && job->nodes[GNN_TEST] == 0)
        TRY(sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: --split takes all nodes of known class, so none are left to "
                    "test with; take fewer, or shares such as --split 60%%,20%%", s->folder));
    const bool plateau = s->schedule == GNN_SCHEDULE_PLATEAU;
    if ((s->patience > 0 || plateau) && job->nodes[GNN_VALIDATION] == 0)
        TRY(sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: there are no validation %s, whose loss %s waits for; "
                    "leave it out", s->folder, links ? "links" : "nodes",
                    plateau ? "--schedule plateau" : "--patience"));
    status = remark(job);
done:
    return status;
}

/* Renumbers the data for training. Clusters and outputs keep the original order. */
static sp_status renumber(gnn_job *job)
{
    const double began = wall_seconds();
    const gnn_order order = gnn_order_for(&job->how.model, (gnn_order)job->settings->order);
    if (order != GNN_ORDER_KEEP) show_line(&job->line, "finding communities");
    const sp_status status = gnn_data_renumber(job->host, &job->input.data, order);
    job->data = job->input.data;
    job->seconds.order = wall_seconds() - began;
    return status;
}

/* ---- one training ---------------------------------------------------------------------------------------- */

static sp_status add_epoch(gnn_job *job, gnn_run *run, const gnn_epoch *epoch)
{
    if (run->count == run->capacity) {
        const int64_t capacity = run->capacity ? 2 * run->capacity : 256;
        void *grown = run->epochs;
        sp_status status = sp_grow(job->host, run->count, capacity, sizeof *run->epochs, &grown);
        if (status != SP_OK) return status;
        run->epochs = grown;
        run->capacity = capacity;
    }
    run->epochs[run->count++] = *epoch;
    return SP_OK;
}

/* The first epochs also record and plan, so they say little about those that follow. */
enum { FORESEEN = 3 };

/* Of this run and those behind it, by the seconds of an epoch with its evaluation. */
static double seconds_left(const gnn_job *job, const gnn_run *run, double epoch)
{
    const int64_t runs = job->run_count - (run - job->runs) - 1;
    const int64_t epochs = job->how.epochs - run->epochs[run->count - 1].epoch + runs * job->how.epochs;
    return (double)epochs * epoch;
}

/* At most ten times a second. */
static void show_epoch(gnn_job *job, const gnn_run *run, double began, double *shown)
{
    const gnn_epoch *now = &run->epochs[run->count - 1], *judged = now;
    const double time = wall_seconds();
    char which[48] = "", accuracies[96] = "", left[64] = "", duration[DURATION_TEXT];
    gnn_text text[3];
    if (!job->line.terminal || time - *shown < 0.1) return;
    *shown = time;
    if (job->run_count > 1)
        snprintf(which, sizeof which, "run %lld of %lld  ", (long long)(run - job->runs + 1),
                 (long long)job->run_count);
    while (judged > run->epochs && isnan(judged->accuracy[GNN_TRAIN]) && isnan(judged->accuracy[GNN_TEST])) judged--;
    if (job->how.links)
        snprintf(accuracies, sizeof accuracies, "  validation AUC %s  test %s",
                 gnn_show(judged->accuracy[GNN_VALIDATION], text[0]), gnn_show(judged->accuracy[GNN_TEST], text[1]));
    else if (!isnan(judged->accuracy[GNN_TRAIN]))
        snprintf(accuracies, sizeof accuracies, "  accuracy %s  validation %s  test %s",
                 gnn_show(judged->accuracy[GNN_TRAIN], text[0]), gnn_show(judged->accuracy[GNN_VALIDATION], text[1]),
                 gnn_show(judged->accuracy[GNN_TEST], text[2]));
    if (run->count >= FORESEEN)
        snprintf(left, sizeof left, job->how.patience > 0 ? "  at most %s left" : "  about %s left",
                 show_duration(seconds_left(job, run, (time - began) / (double)run->count), duration));
    show_line(&job->line, "%sepoch %lld of %lld  loss %.4f%s  %.2f ms%s", which, (long long)now->epoch,
                 (long long)job->how.epochs, now->loss, accuracies, 1e3 * now->seconds, left);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static sp_status find_median(gnn_job *job, gnn_run *run)
{
    double *seconds;
    sp_status status = sp_alloc(job->host, run->count, sizeof *seconds, (void **)&seconds);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < run->count; i++) seconds[i] = run->epochs[i].seconds;
    qsort(seconds, (size_t)run->count, sizeof *seconds, by_size);
    run->median = run->count > 0 ? (seconds[run->count / 2] + seconds[(run->count - 1) / 2]) / 2 : 0;
    sp_free(job->host, seconds);
    return SP_OK;
}

static sp_status restore(gnn_job *job, gnn_trainer *trainer)
{
    char why[256];
    if (!job->saved) return SP_OK;
    const sp_status status = gnn_trainer_restore(trainer, job->saved, job->saved_size);
    if (status == SP_OK) return status;
    snprintf(why, sizeof why, "%s", sp_last_error(job->compute));
    return sp_fail(job->compute, status, "%s: %s", job->settings->resume, why);
}

/* Writes everything that is needed to continue from here. Signals are looked at afterwards. */
static sp_status write_checkpoint(gnn_job *job, gnn_trainer *trainer)
{
    io_output *out = NULL;
    void *bytes = NULL;
    int64_t size;
    sp_status status;
    TRY(gnn_trainer_save(trainer, false, &bytes, &size));
    TRY(io_output_open(job->compute, job->settings->checkpoint, &out));
    io_output_bytes(out, bytes, (size_t)size);
    status = io_output_commit(out);
    job->checkpointed = status == SP_OK;
done:
    sp_free(job->compute, bytes);
    return status;
}

static sp_status run_epochs(gnn_job *job, gnn_trainer *trainer, gnn_run *run)
{
    const gnn_settings *s = job->settings;
    bool last = false;
    const double began = wall_seconds();
    double shown = 0;
    sp_status status;
    while (!last && !interrupt_signal) {
        gnn_epoch epoch;
        TRY(gnn_trainer_epoch(trainer, &epoch, &last));
        if (epoch.epoch == 0)
            TRY(sp_fail(job->compute, SP_ERROR_ARGUMENT,
                        "%s was trained for %lld epochs already: give --epochs a larger number", s->resume,
                        (long long)gnn_trainer_epochs(trainer)));
        TRY(add_epoch(job, run, &epoch));
        show_epoch(job, run, began, &shown);
        if (s->checkpoint && epoch.epoch % s->checkpoint_every == 0) TRY(write_checkpoint(job, trainer));
    }
    job->stopped = !last;
    if (job->stopped && ((!s->save && !s->checkpoint) || run->count == 0))
        return sp_fail(job->compute, SP_ERROR_INTERRUPTED, "interrupted");
    if (job->stopped && s->checkpoint) TRY(write_checkpoint(job, trainer));
    status = find_median(job, run);
done:
    return status;
}

/* Judges the test nodes by the best parameters; for the first run with all figures that a report holds. */
static sp_status judge(gnn_job *job, gnn_trainer *trainer, gnn_run *run)
{
    static const int64_t MOST_SCORES = 1 << 28;
    const int64_t nodes = job->data.graph.rows, all = nodes * job->data.classes;
    const bool first = run == job->runs, scored = first && job->settings->report && all <= MOST_SCORES;
    gnn_figures figures = {0};
    int32_t *classes = NULL;
    uint8_t *targets = NULL;
    float *scores = NULL;
    sp_status status = SP_OK;
    run->macro_f1 = run->links.auc = run->links.average_precision = NAN;
    if (job->nodes[GNN_TEST] == 0) return SP_OK;
    if (job->how.links) return gnn_trainer_judge_links(trainer, GNN_TEST, &run->links);
    if (job->data.targets) TRY(sp_alloc(job->host, all, sizeof *targets, (void **)&targets));
    else TRY(sp_alloc(job->host, nodes, sizeof *classes, (void **)&classes));
    if (scored) TRY(sp_alloc(job->host, all, sizeof *scores, (void **)&scores));
    TRY(gnn_trainer_predict(trainer, classes, targets, scores));
    TRY(gnn_judge(job->host, &job->data, GNN_TEST, classes, targets, scores, &figures));
    run->macro_f1 = figures.macro_f1;
    if (first) {
        gnn_figures_free(job->host, &job->figures);
        job->figures = figures;
        memset(&figures, 0, sizeof figures);
    }
done:
    gnn_figures_free(job->host, &figures);
    FREE_ALL(job->host, classes, targets, scores);
    return status;
}

/* Of two runs the better one, by its validation loss, or AUC; without validation nodes by its last training loss. */
static bool is_better(const gnn_job *job, const gnn_run *run, const gnn_run *other)
{
    const bool judged = job->nodes[GNN_VALIDATION] > 0;
    if (job->how.links && judged) return run->best.accuracy[GNN_VALIDATION] > other->best.accuracy[GNN_VALIDATION];
    if (job->how.links) return run->epochs[run->count - 1].loss < other->epochs[other->count - 1].loss;
    const gnn_split by = judged ? GNN_VALIDATION : GNN_TRAIN;
    return run->best.split_loss[by] < other->best.split_loss[by];
}

/* Keeps what is to be saved if this run is the best so far. `made` (or NULL) is taken over. */
static sp_status keep_best(gnn_job *job, gnn_trainer *trainer, const gnn_run *run, void *made, int64_t size)
{
    const bool first = run == job->runs;
    if (!job->settings->save) return SP_OK;
    if (!first && !is_better(job, run, &job->runs[job->saved_run])) {
        sp_free(job->host, made);
        return SP_OK;
    }
    job->saved_run = run - job->runs;
    if (is_weights(job->settings->save)) return gnn_take_weights(job, gnn_trainer_model(trainer));
    sp_free(job->host, job->made);
    job->made = made;
    job->made_size = size;
    return SP_OK;
}

/* One run. The first one makes the trainer, later ones restart it. */
static sp_status train_once(gnn_job *job, gnn_engine *engine, gnn_trainer **made, gnn_run *run)
{
    const gnn_settings *s = job->settings;
    const double began = wall_seconds();
    void *bytes = NULL;
    int64_t size = 0;
    sp_status status;
    if (s->split && !job->how.links) TRY(draw_split(job->compute, s, &job->data, run->seed));
    if (*made) TRY(gnn_trainer_restart(*made, (uint64_t)run->seed));
    else TRY(gnn_trainer_create(engine, &job->data, &job->how, made));
    gnn_trainer *trainer = *made;
    TRY(restore(job, trainer));
    job->parameters = gnn_model_size(gnn_trainer_model(trainer));
    job->directed = !gnn_trainer_symmetric(trainer);
    if (run == job->runs) gnn_hint_directed(job);
    job->seconds.prepare += wall_seconds() - began;
    TRY(run_epochs(job, trainer, run));
    if (s->save && !is_weights(s->save)) TRY(gnn_trainer_save(trainer, false, &bytes, &size));
    TRY(gnn_trainer_finish(trainer));
    TRY(gnn_trainer_evaluate(trainer, &run->best));
    TRY(keep_best(job, trainer, run, bytes, size));
    bytes = NULL;
    TRY(judge(job, trainer, run));
    run->best_epoch = gnn_trainer_best(trainer) > 0 ? gnn_trainer_best(trainer) : run->epochs[run->count - 1].epoch;
    run->seconds = wall_seconds() - began;
done:
    sp_free(job->host, bytes);
    return status;
}

static sp_status train_all(gnn_job *job)
{
    gnn_engine *engine = NULL;
    gnn_trainer *trainer = NULL;
    sp_status status;
    for (int64_t i = 0; i < job->run_count; i++) { /* a second attempt starts from the beginning */
        sp_free(job->host, job->runs[i].epochs);
        job->runs[i] = (gnn_run){.seed = job->settings->seed + i};
    }
    TRY(gnn_engine_create(job->compute, (uint64_t)job->settings->seed, &engine));
    job->saved_run = 0;
    for (int64_t i = 0; i < job->run_count; i++) {
        TRY(train_once(job, engine, &trainer, &job->runs[i]));
        job->stopped = job->stopped || (interrupt_signal && i + 1 < job->run_count && job->settings->save);
        if (job->stopped) job->run_count = i + 1; /* those behind it do not begin */
    }
done:
    gnn_trainer_free(trainer);
    gnn_engine_free(engine);
    return status;
}

/* ---- after ------------------------------------------------------------------------------------------------ */

static sp_status put_model(gnn_job *job, io_output *out)
{
    io_output_bytes(out, job->made, (size_t)job->made_size);
    return SP_OK;
}

/* The answer, on standard output. */
static void answer(const gnn_job *job)
{
    const gnn_run *run = &job->runs[0];
    double deviation, macro_deviation;
    gnn_text text[4];
    const double test = gnn_mean(job, gnn_test_accuracy, &deviation);
    const double macro = gnn_mean(job, gnn_test_macro_f1, &macro_deviation);
    answer_line("%s, %lld layers, %lld parameters, on %s; %.3g ms an epoch", model_word(job->settings->model),
                (long long)job->settings->layers, (long long)job->parameters, job->device_name,
                1e3 * gnn_mean(job, gnn_epoch_seconds, NULL));
    if (job->how.links) gnn_answer_links(job);
    else if (job->run_count > 1)
        answer_line("test %s %s, deviation %s, macro F1 %s, deviation %s, over %lld seeds", gnn_measure(job),
                    gnn_show(test, text[0]), gnn_show(deviation, text[1]), gnn_show(macro, text[2]),
                    gnn_show(macro_deviation, text[3]), (long long)job->run_count);
    else {
        answer_line("epoch %lld of %lld: validation %s %s, test %s %s, macro F1 %s", (long long)run->best_epoch,
                    (long long)run->epochs[run->count - 1].epoch, gnn_measure(job),
                    gnn_show(run->best.accuracy[GNN_VALIDATION], text[0]), gnn_measure(job), gnn_show(test, text[1]),
                    gnn_show(macro, text[2]));
        gnn_show_figures(&job->figures, &job->input.classes);
    }
}

/* The closing line, with the accuracy if standard output does not have it. */
static void end_line(gnn_job *job, const gnn_file *files, int count)
{
    char split[128], result[64] = "";
    char number[3][COUNT_TEXT];
    gnn_text text;
    bool any = false;
    for (int i = 0; i < count; i++) any = any || files[i].path;
    snprintf(split, sizeof split, ", %s training, %s validation, %s test %s",
             show_count(job->nodes[GNN_TRAIN], number[0]), show_count(job->nodes[GNN_VALIDATION], number[1]),
             show_count(job->nodes[GNN_TEST], number[2]),
             job->how.links ? "links" : "nodes");
    if (!any) snprintf(result, sizeof result, " (--save FILE keeps the model)");
    if (gnn_takes_stdout(files, count))
        snprintf(result, sizeof result, " (test %s %s)", gnn_measure(job),
                 gnn_show(gnn_mean(job, gnn_test_accuracy, NULL), text));
    gnn_end_line(job, split, files, count, result);
}

sp_status gnn_train(gnn_job *job)
{
    const gnn_file all[] = {{job->settings->checkpoint, NULL}, /* written during training */
                            {job->settings->plot, gnn_put_plot},
                            {job->settings->report, gnn_put_report},
                            {job->settings->save, is_weights(job->settings->save) ? gnn_put_weights : put_model}};
    const gnn_file *files = all + 1;
    const int count = sizeof all / sizeof *all - 1;
    const double began = wall_seconds();
    gnn_saved saved = {0};
    sp_status status;
    TRY(gnn_check_files(job, all, count + 1));
    TRY(take_saved(job, &saved));
    TRY(gnn_read_data(job));
    if (job->saved) TRY(gnn_match_features(job, job->settings->resume, &saved));
    if (job->saved) TRY(gnn_match_classes(job, job->settings->resume, &saved));
    TRY(prepare_data(job));
    job->how = gnn_trainer_settings(job->settings);
    TRY(gnn_take_class_weights(job));
    TRY(gnn_make_clusters(job));
    TRY(renumber(job));
    TRY(sp_calloc(job->host, job->settings->seeds, sizeof *job->runs, (void **)&job->runs));
    job->run_count = job->settings->seeds;
    TRY(gnn_on_device(job, train_all));
    job->seconds.total = wall_seconds() - began;
    TRY(gnn_write_files(job, files, count));
    quiet_line(&job->line);
    gnn_hint_after(job);
    if (!job->settings->quiet && !gnn_takes_stdout(files, count)) answer(job);
    if (!job->stopped) end_line(job, job->checkpointed ? all : files, job->checkpointed ? count + 1 : count);
done:
    return status;
}
