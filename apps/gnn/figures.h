/* How good predictions are: what the tools print, and what reports hold. */
#ifndef GNN_FIGURES_H
#define GNN_FIGURES_H

#include "common/json.h"
#include "common/tool.h"
#include "gnn.h"

enum { GNN_BINS = 10, GNN_MOST_CONFUSED = 256, GNN_MOST_SHOWN = 40 };

/* Figures of some nodes, as scikit-learn defines them. A ratio whose divisor is 0 is 0. A node
 * without a known class counts nowhere. */
typedef struct gnn_figures {
    int64_t classes, nodes;               /* nodes 0: there was nothing to judge, and all else is empty */
    int64_t *right, *predicted, *support; /* nodes of each class: found, predicted, in truth */
    int64_t *confusion;                   /* classes x classes, row: the truth; NULL if nodes can have several, or
                                             for more than GNN_MOST_CONFUSED of them */
    double accuracy;                      /* micro F1 if nodes can have several classes */
    double macro_f1;                      /* over classes that are there in truth or prediction; all, if several */
    bool several, confident;              /* confident: there are scores. Nodes by their largest probability: */
    int64_t bin_nodes[GNN_BINS], bin_right[GNN_BINS];
    double bin_sum[GNN_BINS];
} gnn_figures;

/* Judges the predictions (as gnn_trainer_predict gives them) of the nodes in a part of the split, or with GNN_SPLITS of
 * all. `scores` may be NULL. Frees what `figures` held before. */
sp_status gnn_judge(sp_context *context, const gnn_data *data, gnn_split part, const int32_t *classes,
                    const uint8_t *targets, const float *scores, gnn_figures *figures);
void gnn_figures_free(sp_context *context, gnn_figures *figures);

typedef struct gnn_class_figures {
    double precision, recall, f1;
} gnn_class_figures;
gnn_class_figures gnn_class_judged(const gnn_figures *figures, int64_t class);

/* A table on standard output, a line a class, unless there are more than GNN_MOST_SHOWN; and an object of a report.
 * `names` are those of the classes, count 0: numbers. */
void gnn_show_figures(const gnn_figures *figures, const io_names *names);
void gnn_put_figures(const gnn_figures *figures, const io_names *names, const char *key, json *j);
/* The name or number of a class, cut to the room. */
const char *gnn_class_name(const io_names *names, int64_t class, char *text, size_t size);

#endif
