/* Hints: where the defaults of gnn train, which are those of a paper about Cora, will not do for other data. A line
 * each.
 * Figures are means of three splits by --split 20,30. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "job.h"

static bool has_negative(const float *values, int64_t count)
{
    for (int64_t e = 0; e < count; e++)
        if (values[e] < 0) return true;
    return false;
}

/* Amazon Photo with features scaled to mean 0 and deviation 1: 0.47 as they are by default, 0.90 with --no-normalise.
 */
static void hint_normalisation(gnn_job *job, const gnn_data *data)
{
    const sp_dense *dense = &data->features.dense;
    const sp_csr *sparse = &data->features.sparse;
    bool negative = false;
    if (job->settings->no_normalise) return;
    if (!dense->values) negative = sparse->values && has_negative(sparse->values, sparse->nnz);
    for (int64_t i = 0; dense->values && !negative && i < dense->rows; i++)
        negative = has_negative((const float *)dense->values + i * dense->stride, dense->cols);
    if (negative)
        notice_line(&job->line, "%s: some features are negative, as scaled ones are, and each row is divided by the "
                    "sum of its magnitudes; --no-normalise leaves them as they are, which is mostly better",
                    job->settings->folder);
}

/* Coauthor CS with 15 classes: 0.884 with 8 columns, 0.918 with 16, 0.921 with 64. */
static void hint_width(gnn_job *job, const gnn_data *data)
{
    const gnn_settings *s = job->settings;
    const int64_t columns = s->model == GNN_GAT ? s->hidden * s->heads : s->hidden;
    if (s->layers > 1 && columns < data->classes)
        notice_line(&job->line, "%s: %lld classes from %lld hidden columns; more of them may tell the classes better, "
                    "such as --hidden %lld", s->folder, (long long)data->classes, (long long)columns,
                    (long long)(data->classes <= 64 ? 64 : 256));
}

/* Numbers of classes that no node has: labels from 1, as Matlab and R count, or codes with gaps. Where all known nodes
 * have one class, a network learns to answer it; two classes called -1 and 1 come as that, because -1 is unknown. */
static sp_status hint_classes(gnn_job *job, const gnn_data *data)
{
    const char *folder = job->settings->folder;
    int64_t *members, first = -1, empty = 0, last = 0, unknown = 0;
    if (!data->labels || data->classes < 2) return SP_OK;
    const sp_status status = sp_calloc(job->host, data->classes, sizeof *members, (void **)&members);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < data->graph.rows; i++)
        if (data->labels[i] < 0) unknown++;
        else members[data->labels[i]]++;
    for (int64_t c = 0; c < data->classes; c++) {
        if (members[c] > 0) last = c;
        else if (empty++ == 0) first = c;
    }
    sp_free(job->host, members);
    const bool numbers = job->input.classes.count == 0;
    if (empty >= data->classes - 1)
        notice_line(&job->line, "%s: all nodes of known class have the same one, so there is nothing to tell apart%s",
                    folder, numbers && last == 1 && unknown > 0
                                ? "; -1 is an unknown class: where -1 and 1 are two classes, call them 0 and 1" : "");
    else if (numbers && empty == 1 && first == 0)
        notice_line(&job->line, "%s: no node has label 0, so one of the %lld classes is empty; number the classes from "
                    "0", folder, (long long)data->classes);
    else if (numbers && empty > 0)
        notice_line(&job->line, "%s: %lld of the %lld classes are empty, the first is %lld; number the classes from 0 "
                    "without gaps, or make names of them (code7)", folder, (long long)empty, (long long)data->classes,
                    (long long)first);
    return SP_OK;
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* A column of ages or incomes hides columns of about 1, above all where rows are divided by their sums. Planted
 * communities of 3,000 nodes, ten features of deviation 1 and one more that means nothing: 0.97 without it, 0.62 with
 * one up to 200, 0.45 (all in the largest class) up to 600. With --no-normalise --hidden 64: 0.98 up to 600, 0.45 up to
 * 3,000. */
static sp_status hint_scale(gnn_job *job, const gnn_data *data)
{
    enum { FEW = 3 };
    const float most = job->settings->no_normalise ? 300 : 50;
    const sp_dense *x = &data->features.dense;
    const io_names *names = &job->input.features;
    float *largest;
    int64_t far = 0;
    if (!x->values || x->cols < FEW) return SP_OK;
    const sp_status status = sp_calloc(job->host, 2 * x->cols, sizeof *largest, (void **)&largest);
    if (status != SP_OK) return status;
    float *sorted = largest + x->cols;
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++)
            largest[j] = fmaxf(largest[j], fabsf(((const float *)x->values)[i * x->stride + j]));
    memcpy(sorted, largest, (size_t)x->cols * sizeof *sorted);
    qsort(sorted, (size_t)x->cols, sizeof *sorted, by_size);
    const float middle = sorted[x->cols / 2];
    for (int64_t j = 1; j < x->cols; j++)
        if (largest[j] > largest[far]) far = j;
    if (middle > 0 && largest[far] > most * middle) {
        const bool named = names->count == x->cols;
        const int length = named ? (int)io_name_length(names, far) : 0;
        notice_line(&job->line, "%s: feature %lld%s%.*s%s is as large as %.6g, half of the features at most %.3g, "
                    "which hardly count beside it; bring all to one scale, such as mean 0 and deviation 1",
                    job->settings->folder, (long long)far + 1, named ? " (" : "", length < 40 ? length : 40,
                    named ? io_name(names, far) : "", named ? ")" : "", (double)largest[far], (double)middle);
    }
    sp_free(job->host, largest);
    return SP_OK;
}

sp_status gnn_hint_before(gnn_job *job, const gnn_data *data)
{
    sp_status status;
    if (job->line.quiet) return SP_OK;
    if (data->graph.nnz == 0)
        notice_line(&job->line, "%s: the graph has no edges, so nodes learn from their own features alone",
                    job->settings->folder);
    TRY(hint_scale(job, data));
    hint_normalisation(job, data);
    if (job->settings->task == TASK_LINK) goto done;
    TRY(hint_classes(job, data));
    hint_width(job, data);
done:
    return status;
}

/* Amazon Photo: 0.54, and 0.69 with --undirected; Cora-ML: 0.76 and 0.82. */
void gnn_hint_directed(gnn_job *job)
{
    if (job->line.quiet || job->settings->undirected || !job->directed) return;
    notice_line(&job->line, "%s: edges have directions, or different weights in both; where they join alike nodes "
                "(citations, co-purchases, a list that names each edge once) --undirected is mostly better",
                job->settings->folder);
}

/* The training loss that is left, as a part of that of a guess, is 0.12 to 0.25 on Cora, Cora-ML and Coauthor CS, whose
 * accuracy other options raise by at most 0.01; on Amazon Photo 0.34 to 0.69, and 0.59 to 0.81 of the nodes are right,
 * where --hidden 64 --no-normalise has 0.02 and 0.91. */
void gnn_hint_after(gnn_job *job)
{
    static const double MOST_LEFT = 0.3;
    static const int64_t FEW_EPOCHS = 50; /* a trial, whose result is not the point */
    const gnn_settings *s = job->settings;
    const gnn_run *run = &job->runs[0];
    const double loss = run->best.split_loss[GNN_TRAIN], guess = log((double)job->data.classes);
    if (job->line.quiet || job->stopped || job->how.links || job->data.targets || job->data.classes < 2 ||
        run->epochs[run->count - 1].epoch < FEW_EPOCHS || !(loss > MOST_LEFT * guess))
        return;
    notice_line(&job->line, "%s: even the training nodes are not told well (loss %.2f; a guess has %.2f): try %s%smore "
                "--epochs or a %s --rate", s->folder, loss, guess, s->hidden < 64 ? "--hidden 64, " : "",
                s->no_normalise ? "" : "--no-normalise, ", loss > guess ? "smaller" : "larger");
}
