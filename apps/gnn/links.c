/* gnn train --task link and the links of gnn predict: which links are hidden, how good the model is, which pairs are
 * predicted. */
#include <math.h>
#include <string.h>

#include "job.h"

/* ---- training ------------------------------------------------------------------------------------------ */

sp_status gnn_draw_links(gnn_job *job)
{
    const gnn_settings *s = job->settings;
    const double test = 1 - s->train_share - s->validation_share;
    char why[256];
    const sp_status status = gnn_data_draw_links(job->host, &job->input.data, s->validation_share, test,
                                                 (uint64_t)s->seed);
    if (status == SP_OK) return SP_OK;
    snprintf(why, sizeof why, "%s", sp_last_error(job->host));
    return sp_fail(job->host, status, "%s: %s", s->folder, why);
}

double gnn_test_precision(const gnn_run *run) { return run->links.average_precision; }

void gnn_put_link_figures(const gnn_link_figures *f, const char *key, json *j)
{
    char at[32];
    json_begin(j, key, '{');
    json_count(j, "linked", f->linked);
    json_count(j, "unlinked", f->unlinked);
    json_number(j, "auc", f->auc);
    json_number(j, "average_precision", f->average_precision);
    for (int k = 0; k < GNN_HITS; k++) {
        snprintf(at, sizeof at, "hits_at_%d", gnn_hits_at[k]);
        json_number(j, at, f->hits[k]);
    }
    json_end(j, '}');
}

void gnn_answer_links(const gnn_job *job)
{
    const gnn_run *run = &job->runs[0];
    double deviation, precise_deviation;
    char hits[128] = "";
    size_t used = 0;
    gnn_text text[4];
    const double test = gnn_mean(job, gnn_test_accuracy, &deviation);
    const double precise = gnn_mean(job, gnn_test_precision, &precise_deviation);
    if (job->run_count > 1) {
        answer_line("test AUC %s, deviation %s, average precision %s, deviation %s, over %lld seeds",
                    gnn_show(test, text[0]), gnn_show(deviation, text[1]), gnn_show(precise, text[2]),
                    gnn_show(precise_deviation, text[3]), (long long)job->run_count);
        return;
    }
    answer_line("epoch %lld of %lld: validation AUC %s, test AUC %s, average precision %s", (long long)run->best_epoch,
                (long long)run->epochs[run->count - 1].epoch, gnn_show(run->best.accuracy[GNN_VALIDATION], text[0]),
                gnn_show(test, text[1]), gnn_show(precise, text[2]));
    for (int k = 0; k < GNN_HITS; k++)
        if (!isnan(run->links.hits[k]))
            used += (size_t)snprintf(hits + used, sizeof hits - used, "%shits@%d %.4f", used > 0 ? ", " : "",
                                     gnn_hits_at[k], run->links.hits[k]);
    if (used > 0) answer_line("%s, of %lld links among %lld other pairs", hits, (long long)run->links.linked,
                              (long long)run->links.unlinked);
}

/* ---- prediction ---------------------------------------------------------------------------------------- */

sp_status gnn_read_pairs(gnn_job *job)
{
    const gnn_settings *s = job->settings;
    const io_graph graph = {.nodes = job->data.graph.rows, .names = job->input.nodes};
    sp_status status = SP_OK;
    if (s->pairs)
        TRY(io_read_node_pairs(job->host, s->pairs, &interrupt_signal, &graph, &job->pairs, &job->pair_count));
    else TRY(sp_alloc(job->host, 2 * s->best_links, sizeof *job->pairs, (void **)&job->pairs));
    TRY(sp_alloc(job->host, s->pairs ? job->pair_count : s->best_links, sizeof *job->scores, (void **)&job->scores));
done:
    return status;
}

sp_status gnn_predict_links(gnn_job *job, gnn_trainer *trainer)
{
    const gnn_settings *s = job->settings;
    if (s->pairs) return gnn_trainer_score_links(trainer, job->pairs, job->pair_count, job->scores);
    return s->best_links > 0 ? gnn_trainer_best_links(trainer, s->best_links, job->pairs, job->scores, &job->pair_count)
                             : SP_OK;
}
