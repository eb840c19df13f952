/* Figures of predictions: precision, recall and F1 of each class, macro F1, confusion, confidence. */
#include "figures.h"

#include <stdio.h>
#include <string.h>

/* ---- counting ------------------------------------------------------------------------------------------ */

typedef struct judged {
    const gnn_data *data;
    const int32_t *classes;
    const uint8_t *targets;
    const float *scores;
} judged;

void gnn_figures_free(sp_context *context, gnn_figures *f)
{
    FREE_ALL(context, f->right, f->predicted, f->support, f->confusion);
    memset(f, 0, sizeof *f);
}

static sp_status make_counts(sp_context *context, gnn_figures *f)
{
    sp_status status;
    TRY(sp_calloc(context, f->classes, sizeof *f->right, (void **)&f->right));
    TRY(sp_calloc(context, f->classes, sizeof *f->predicted, (void **)&f->predicted));
    TRY(sp_calloc(context, f->classes, sizeof *f->support, (void **)&f->support));
    if (!f->several && f->classes <= GNN_MOST_CONFUSED)
        TRY(sp_calloc(context, f->classes * f->classes, sizeof *f->confusion, (void **)&f->confusion));
done:
    return status;
}

static void count_confidence(const judged *of, int64_t node, bool right, gnn_figures *f)
{
    const double score = (double)of->scores[node * f->classes + of->classes[node]];
    int bin = (int)(score * GNN_BINS);
    if (bin >= GNN_BINS) bin = GNN_BINS - 1;
    f->bin_nodes[bin]++;
    f->bin_right[bin] += right;
    f->bin_sum[bin] += score;
}

/* A node has its features and labels in row `row`, its predictions in row `node`. */
static void count_node(const judged *of, int64_t row, int64_t node, gnn_figures *f)
{
    f->nodes++;
    if (f->several) {
        for (int64_t c = 0; c < f->classes; c++) {
            const bool truth = of->data->targets[row * f->classes + c], told = of->targets[node * f->classes + c];
            f->support[c] += truth;
            f->predicted[c] += told;
            f->right[c] += truth && told;
        }
        return;
    }
    const int64_t truth = of->data->labels[row], told = of->classes[node];
    f->support[truth]++;
    f->predicted[told]++;
    f->right[truth] += truth == told;
    if (f->confusion) f->confusion[truth * f->classes + told]++;
    if (of->scores) count_confidence(of, node, truth == told, f);
}

static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

gnn_class_figures gnn_class_judged(const gnn_figures *f, int64_t c)
{
    const double right = (double)f->right[c], predicted = (double)f->predicted[c], support = (double)f->support[c];
    return (gnn_class_figures){ratio(right, predicted), ratio(right, support), ratio(2 * right, predicted + support)};
}

static void sum_up(gnn_figures *f)
{
    double right = 0, both = 0, sum = 0;
    int64_t there = 0;
    for (int64_t c = 0; c < f->classes; c++) {
        const int64_t count = f->predicted[c] + f->support[c];
        right += (double)f->right[c];
        both += (double)count;
        if (count == 0 && !f->several) continue;
        there++;
        sum += gnn_class_judged(f, c).f1;
    }
    f->macro_f1 = ratio(sum, (double)there);
    f->accuracy = both > 0 ? 2 * right / both : 1; /* each node has one of both: right / nodes */
}

sp_status gnn_judge(sp_context *context, const gnn_data *data, gnn_split part, const int32_t *classes,
                    const uint8_t *targets, const float *scores, gnn_figures *f)
{
    const judged of = {data, classes, targets, scores};
    gnn_figures_free(context, f);
    f->classes = data->classes;
    f->several = data->targets != NULL;
    f->confident = scores && !f->several;
    const sp_status status = make_counts(context, f);
    if (status != SP_OK) {
        gnn_figures_free(context, f);
        return status;
    }
    for (int64_t node = 0; node < data->graph.rows; node++) {
        const int64_t row = data->place ? data->place[node] : node;
        if (part != GNN_SPLITS && data->split[row] != (uint8_t)part) continue;
        if (f->several || data->labels[row] >= 0) count_node(&of, row, node, f);
    }
    sum_up(f);
    return SP_OK;
}

/* ---- output -------------------------------------------------------------------------------------------- */

const char *gnn_class_name(const io_names *names, int64_t class, char *text, size_t size)
{
    if (names->count > 0) snprintf(text, size, "%.*s", (int)io_name_length(names, class), io_name(names, class));
    else snprintf(text, size, "%lld", (long long)class);
    return text;
}

void gnn_show_figures(const gnn_figures *f, const io_names *names)
{
    enum { NAME = 24 };
    char name[4 * NAME];
    if (f->nodes == 0 || f->classes > GNN_MOST_SHOWN) return;
    answer_line("%-24s %9s %7s %7s %8s", "class", "precision", "recall", "F1", "nodes");
    for (int64_t c = 0; c < f->classes; c++) {
        const gnn_class_figures of = gnn_class_judged(f, c);
        answer_line("%-24.24s %9.4f %7.4f %7.4f %8lld", gnn_class_name(names, c, name, sizeof name), of.precision,
                    of.recall, of.f1, (long long)f->support[c]);
    }
}

static void put_classes(const gnn_figures *f, const io_names *names, json *j)
{
    char name[256];
    json_begin(j, "classes", '[');
    for (int64_t c = 0; c < f->classes; c++) {
        const gnn_class_figures of = gnn_class_judged(f, c);
        json_begin(j, NULL, '{');
        json_text(j, "name", gnn_class_name(names, c, name, sizeof name));
        json_number(j, "precision", of.precision);
        json_number(j, "recall", of.recall);
        json_number(j, "f1", of.f1);
        json_count(j, "support", f->support[c]);
        json_count(j, "predicted", f->predicted[c]);
        json_end(j, '}');
    }
    json_end(j, ']');
}

void gnn_put_figures(const gnn_figures *f, const io_names *names, const char *key, json *j)
{
    if (f->nodes == 0) {
        json_null(j, key);
        return;
    }
    json_begin(j, key, '{');
    json_count(j, "nodes", f->nodes);
    json_number(j, "accuracy", f->accuracy);
    json_number(j, "macro_f1", f->macro_f1);
    put_classes(f, names, j);
    if (f->confusion) {
        json_begin(j, "confusion", '[');
        for (int64_t c = 0; c < f->classes; c++) json_counts(j, NULL, f->confusion + c * f->classes, f->classes);
        json_end(j, ']');
    }
    if (f->confident) {
        json_begin(j, "confidence", '[');
        for (int b = 0; b < GNN_BINS; b++) {
            json_begin(j, NULL, '{');
            json_count(j, "nodes", f->bin_nodes[b]);
            json_count(j, "right", f->bin_right[b]);
            json_number(j, "mean", f->bin_nodes[b] > 0 ? f->bin_sum[b] / (double)f->bin_nodes[b] : 0);
            json_end(j, '}');
        }
        json_end(j, ']');
    }
    json_end(j, '}');
}
