/* What sparse-bench gnn says. */
#include <math.h>

#include "sparse-bench/gnn/gnn_bench.h"
#include "sparse-bench/report.h"

static const char *order_name(const gnn_training *t) { return t->renumbered ? "community" : "keep"; }

/* The rows of Table II, and the dense product that is ours. Without cuSPARSE our own takes its place backward. */
static const struct {
    const char *name;
    int forward, backward;
} rows[] = {
    {"cuSPARSE", AGGREGATE_CUSPARSE, AGGREGATE_CUSPARSE},
    {"dense rows", AGGREGATE_SPMM, AGGREGATE_SPMM},
    {"MaxK", AGGREGATE_MAXK, AGGREGATE_MAXK_BACKWARD},
    {"hash without AIA", AGGREGATE_HASH, AGGREGATE_CUSPARSE},
    {"hash with AIA", AGGREGATE_HASH_AIA, AGGREGATE_CUSPARSE},
    {"AIA + MaxK backward", AGGREGATE_HASH_AIA, AGGREGATE_MAXK_BACKWARD},
    {"SpGEMM + MaxK backward", AGGREGATE_SPGEMM, AGGREGATE_MAXK_BACKWARD},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const candidate *backward_of(const gnn_aggregation *a, int row)
{
    const int kernel = rows[row].backward;
    return &a->kernels[kernel == AGGREGATE_CUSPARSE && *a->kernels[kernel].word ? AGGREGATE_SPMM : kernel];
}

/* ---- stdout --------------------------------------------------------------------------------------------- */

/* A line of two products under one name: the sum of their times. */
static void print_pair(const char *name, const candidate *first, const candidate *second, const char *words[2])
{
    candidate both = *first->word ? *first : *second;
    snprintf(both.name, sizeof both.name, "%s", name);
    if (*both.word) {
        print_candidate(&both, 0, "%s", "");
        return;
    }
    both.time.median = first->time.median + second->time.median;
    both.error = fmax(first->error, second->error);
    print_candidate(&both, 0, both.error >= 0 ? "%s %.4f ms, %s %.4f ms, error %.1e%s" : "%s %.4f ms, %s %.4f ms",
                    words[0], 1e3 * first->time.median, words[1], 1e3 * second->time.median, both.error,
                    both.error <= GNN_TOLERANCE ? "" : ", WRONG");
}

static void print_training(const gnn_training *t)
{
    char name[64];
    candidate epoch = t->epoch;
    snprintf(name, sizeof name, "%s %lld%s%s", layer_name(t->layer), (long long)t->hidden,
             t->keep ? ", A*X kept" : t->half ? ", in bf16" : "", t->renumbered ? ", community" : "");
    snprintf(epoch.name, sizeof epoch.name, t->maxk ? "%.24s, maxk %lld" : "%.39s", name, (long long)t->maxk);
    if (*t->forward.word) print_candidate(&t->forward, 0, "%s", "");
    else
        print_candidate(&epoch, 0, "an epoch; forward %.4f ms; before the first %.1f ms", 1e3 * t->forward.time.median,
                        1e3 * t->once_seconds);
}

static void print_sampling(const gnn_sampling *s)
{
    candidate pass = s->pass;
    int used = snprintf(pass.name, sizeof pass.name, "sampling");
    for (int l = 0; l < s->layers; l++)
        used += snprintf(pass.name + used, sizeof pass.name - (size_t)used, "%s%lld", l ? "," : " ",
                         (long long)s->fanout[l]);
    print_candidate(&pass, 0, "%lld minibatches of %lld, %lld edges, %.1f M a second", (long long)s->minibatches,
                    (long long)s->batch, (long long)s->edges, 1e-6 * (double)s->edges / s->pass.time.median);
}

static const char *const phase_names[GNN_PHASES] = {"sampling", "gather", "step"};

static void print_minibatches(const gnn_minibatches *m)
{
    candidate epoch = m->epoch;
    snprintf(epoch.name, sizeof epoch.name, "sage %lld, minibatches%s", (long long)m->hidden, m->half
             ? ", in bf16" : "");
    print_candidate(&epoch, 0, "an epoch; waiting between them, sampling %.4f, gather %.4f, step %.4f ms",
                    1e3 * m->phase[GNN_PHASE_SAMPLE], 1e3 * m->phase[GNN_PHASE_GATHER], 1e3 * m->phase[GNN_PHASE_STEP]);
}

void gnn_report_result(const gnn_result *r)
{
    print_case(r->name, "%lld nodes, %lld edges, %lld features, %lld classes, %lld nodes to train with",
               (long long)r->nodes, (long long)r->edges, (long long)r->features, (long long)r->classes,
               (long long)r->training_nodes);
    if (r->order_seconds > 1e-3) printf("      renumbering: %.3f s\n", r->order_seconds);
    for (int i = 0; i < r->training_count; i++) print_training(&r->trainings[i]);
    for (int i = 0; i < r->aggregation_count; i++) {
        const gnn_aggregation *a = &r->aggregations[i];
        printf("      aggregation of %lld of %lld columns\n", (long long)a->k, (long long)a->width);
        candidate select = a->kernels[AGGREGATE_SELECT];
        snprintf(select.name, sizeof select.name, "selection");
        print_candidate(&select, 0, "%s", "");
        for (int k = 0; k < ROWS; k++)
            print_pair(rows[k].name, &a->kernels[rows[k].forward], backward_of(a, k),
                       (const char *[]){"forward", "backward"});
    }
    for (int i = 0; i < r->sampling_count; i++) print_sampling(&r->samplings[i]);
    for (int i = 0; i < r->minibatch_count; i++) print_minibatches(&r->minibatches[i]);
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_candidate(json *j, const char *key, const candidate *c)
{
    if (begin_candidate(j, key, c)) {
        if (*c->name) json_text(j, "name", c->name);
        if (c->error >= 0) json_number(j, "error", finite_error(c->error));
        put_timing(j, &c->time);
    }
    json_end(j, '}');
}

static void put_training(json *j, const gnn_training *t)
{
    json_begin(j, NULL, '{');
    json_text(j, "model", layer_name(t->layer));
    json_count(j, "hidden", t->hidden);
    json_count(j, "heads", gnn_bench_heads(t->layer));
    json_count(j, "maxk", t->maxk);
    json_text(j, "order", order_name(t));
    json_flag(j, "kept", t->keep);
    json_flag(j, "half", t->half);
    put_candidate(j, "forward", &t->forward);
    put_candidate(j, "epoch", &t->epoch);
    json_seconds(j, "once_seconds", t->once_seconds);
    json_end(j, '}');
}

static void put_aggregation(json *j, const gnn_aggregation *a)
{
    json_begin(j, NULL, '{');
    json_count(j, "width", a->width);
    json_count(j, "k", a->k);
    json_count(j, "longest_row", a->longest_row);
    json_begin(j, "rows", '[');
    for (int i = 0; i < ROWS; i++) {
        json_begin(j, NULL, '{');
        json_text(j, "name", rows[i].name);
        put_candidate(j, "forward", &a->kernels[rows[i].forward]);
        put_candidate(j, "backward", backward_of(a, i));
        json_end(j, '}');
    }
    json_end(j, ']');
    put_candidate(j, "select", &a->kernels[AGGREGATE_SELECT]);
    json_end(j, '}');
}

static void put_sampling(json *j, const gnn_sampling *s)
{
    json_begin(j, NULL, '{');
    json_counts(j, "fanout", s->fanout, s->layers);
    json_count(j, "batch", s->batch);
    json_count(j, "minibatches", s->minibatches);
    json_count(j, "edges", s->edges);
    json_number(j, "edges_a_second", *s->pass.word ? NAN : (double)s->edges / s->pass.time.median);
    put_candidate(j, "pass", &s->pass);
    json_end(j, '}');
}

static void put_minibatches(json *j, const gnn_minibatches *m)
{
    json_begin(j, NULL, '{');
    json_text(j, "model", layer_name(GNN_SAGE));
    json_count(j, "hidden", m->hidden);
    json_flag(j, "half", m->half);
    json_counts(j, "fanout", gnn_minibatch_fanout, GNN_MINIBATCH_LAYERS);
    json_count(j, "batch", GNN_BATCH);
    json_count(j, "edges", m->edges);
    json_begin(j, "phases", '{');
    for (int k = 0; k < GNN_PHASES; k++) json_number(j, phase_names[k], m->phase[k]);
    json_end(j, '}');
    put_candidate(j, "epoch", &m->epoch);
    json_end(j, '}');
}

static void put_result(json *j, const gnn_result *r)
{
    json_begin(j, NULL, '{');
    json_text(j, "matrix", r->name);
    json_text(j, "generated", r->spec);
    json_text(j, "file", r->folder);
    json_count(j, "nodes", r->nodes);
    json_count(j, "edges", r->edges);
    json_count(j, "features", r->features);
    json_count(j, "classes", r->classes);
    json_count(j, "training_nodes", r->training_nodes);
    json_flag(j, "symmetric", r->symmetric);
    json_seconds(j, "order_seconds", r->order_seconds);
    json_begin(j, "training", '[');
    for (int i = 0; i < r->training_count; i++) put_training(j, &r->trainings[i]);
    json_end(j, ']');
    json_begin(j, "aggregation", '[');
    for (int i = 0; i < r->aggregation_count; i++) put_aggregation(j, &r->aggregations[i]);
    json_end(j, ']');
    json_begin(j, "sampling", '[');
    for (int i = 0; i < r->sampling_count; i++) put_sampling(j, &r->samplings[i]);
    json_end(j, ']');
    json_begin(j, "minibatches", '[');
    for (int i = 0; i < r->minibatch_count; i++) put_minibatches(j, &r->minibatches[i]);
    json_end(j, ']');
    json_end(j, '}');
}

sp_status gnn_report_json(sp_context *context, const machine *m, const gnn_options *o, const gnn_result *results,
                          int count)
{
    json file, *j = &file;
    const sp_status status = report_open(context, m, &o->common, j);
    if (status != SP_OK) return status;
    report_list(j, &o->common);
    for (int i = 0; i < count; i++) put_result(j, &results[i]);
    return report_close(j);
}
