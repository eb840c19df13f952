/* What sparse-bench gnn says: a line for everything measured, and everything as JSON. */
#include <math.h>

#include "gnn_bench.h"

static double milliseconds(double seconds) { return 1e3 * seconds; }

const char *layer_name(gnn_layer layer)
{
    static const char *const names[] = {[GNN_GCN] = "gcn", [GNN_SAGE] = "sage", [GNN_SAGE_MAX] = "sage-max",
                                        [GNN_GIN] = "gin", [GNN_GAT] = "gat"};
    return names[layer];
}

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

static const spmm_figures *backward_of(const gnn_aggregation *a, int row)
{
    const int kernel = rows[row].backward;
    return &a->kernels[kernel == AGGREGATE_CUSPARSE && *a->kernels[kernel].word ? AGGREGATE_SPMM : kernel];
}

/* ---- lines --------------------------------------------------------------------------------------------- */

void gnn_report_header(const machine *m, const bench_options *o)
{
    printf("%s, %s; copies at %.0f GB/s\n", *m->gpu ? m->gpu : m->cpu, o->type == SP_F32 ? "fp32" : "fp64",
           m->copy_bandwidth * 1e-9);
}

static void print_time(const spmm_figures *f)
{
    if (*f->word) printf(" %10s", f->word);
    else printf(" %10.4f", milliseconds(f->time.median));
}

static void print_why(const spmm_figures *f)
{
    if (*f->word) printf(" (%s)", f->why);
}

static void print_trainings(const gnn_result *r)
{
    if (r->order_seconds > 1e-3) printf("  renumbering: %.3f s\n", r->order_seconds);
    if (r->training_count) printf("  %-10s %6s %5s %-9s %-9s %10s %10s ms\n", "model", "hidden", "maxk", "A*X", "order",
                                  "forward", "epoch");
    for (int i = 0; i < r->training_count; i++) {
        const gnn_training *t = &r->trainings[i];
        printf("  %-10s %6lld %5lld %-9s %-9s", layer_name(t->layer), (long long)t->hidden, (long long)t->maxk,
               t->keep ? "kept" : t->half ? "in bf16" : "each time", order_name(t));
        print_time(&t->forward);
        print_time(&t->epoch);
        print_why(*t->forward.word ? &t->forward : &t->epoch);
        printf("\n");
    }
}

static void print_aggregation(const gnn_aggregation *a)
{
    printf("  aggregation of %lld of %lld columns: selection", (long long)a->k, (long long)a->width);
    print_time(&a->kernels[AGGREGATE_SELECT]);
    printf(" ms\n  %-24s %10s %10s %10s ms %10s\n", "", "forward", "backward", "total", "error");
    for (int i = 0; i < ROWS; i++) {
        const spmm_figures *forward = &a->kernels[rows[i].forward], *backward = backward_of(a, i);
        printf("  %-24s", rows[i].name);
        print_time(forward);
        print_time(backward);
        if (!*forward->word && !*backward->word)
            printf(" %10.4f    %10.1e%s", milliseconds(forward->time.median + backward->time.median),
                   fmax(forward->error, backward->error),
                   fmax(forward->error, backward->error) <= GNN_TOLERANCE ? "" : ", WRONG");
        print_why(*forward->word ? forward : backward);
        printf("\n");
    }
}

static void print_sampling(const gnn_sampling *s)
{
    printf("  sampling");
    for (int l = 0; l < s->layers; l++) printf("%s%lld", l ? "," : " ", (long long)s->fanout[l]);
    printf(" in %lld minibatches of %lld:", (long long)s->minibatches, (long long)s->batch);
    print_time(&s->pass);
    if (*s->pass.word) printf("%s\n", s->pass.why);
    else
        printf(" ms, %lld edges, %.1f M a second\n", (long long)s->edges,
               1e-6 * (double)s->edges / s->pass.time.median);
}

void gnn_report_result(const gnn_result *r)
{
    printf("%s: %lld nodes, %lld edges, %lld features, %lld classes, %lld nodes to train with\n", r->name,
           (long long)r->nodes, (long long)r->edges, (long long)r->features, (long long)r->classes,
           (long long)r->training_nodes);
    print_trainings(r);
    for (int i = 0; i < r->aggregation_count; i++) print_aggregation(&r->aggregations[i]);
    for (int i = 0; i < r->sampling_count; i++) print_sampling(&r->samplings[i]);
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

/* "key": {...} */
static void put_figures(io_output *out, const char *key, const spmm_figures *f)
{
    io_output_format(out, "\"%s\": {", key);
    if (*f->word) {
        put_text(out, "failed", f->word);
        io_output_string(out, "\"why\": ");
        put_json_text(out, f->why);
    } else {
        if (*f->name) put_text(out, "name", f->name);
        if (f->error >= 0) io_output_format(out, "\"error\": %.3g, ", fmin(f->error, 1e300));
        put_timing(out, &f->time);
    }
    io_output_string(out, "}");
}

static void put_training(io_output *out, const gnn_training *t)
{
    io_output_string(out, "    {");
    put_text(out, "model", layer_name(t->layer));
    put_count(out, "hidden", t->hidden);
    put_count(out, "maxk", t->maxk);
    put_text(out, "order", order_name(t));
    io_output_format(out, "\"kept\": %s, \"half\": %s, ", t->keep ? "true" : "false", t->half ? "true" : "false");
    put_figures(out, "forward", &t->forward);
    io_output_string(out, ", ");
    put_figures(out, "epoch", &t->epoch);
    io_output_string(out, "}");
}

static void put_aggregation(io_output *out, const gnn_aggregation *a)
{
    io_output_string(out, "    {");
    put_count(out, "width", a->width);
    put_count(out, "k", a->k);
    put_count(out, "longest_row", a->longest_row);
    io_output_string(out, "\"rows\": [");
    for (int i = 0; i < ROWS; i++) {
        io_output_string(out, i ? ",\n      {" : "\n      {");
        put_text(out, "name", rows[i].name);
        put_figures(out, "forward", &a->kernels[rows[i].forward]);
        io_output_string(out, ", ");
        put_figures(out, "backward", backward_of(a, i));
        io_output_string(out, "}");
    }
    io_output_string(out, "],\n     ");
    put_figures(out, "select", &a->kernels[AGGREGATE_SELECT]);
    io_output_string(out, "}");
}

static void put_sampling(io_output *out, const gnn_sampling *s)
{
    io_output_string(out, "    {\"fanout\": [");
    for (int l = 0; l < s->layers; l++) io_output_format(out, "%s%lld", l ? ", " : "", (long long)s->fanout[l]);
    io_output_string(out, "], ");
    put_count(out, "batch", s->batch);
    put_count(out, "minibatches", s->minibatches);
    put_count(out, "edges", s->edges);
    if (*s->pass.word) io_output_string(out, "\"edges_a_second\": null, ");
    else io_output_format(out, "\"edges_a_second\": %.6g, ", (double)s->edges / s->pass.time.median);
    put_figures(out, "pass", &s->pass);
    io_output_string(out, "}");
}

static void put_result(io_output *out, const gnn_result *r)
{
    io_output_string(out, "  {");
    put_text(out, "matrix", r->name);
    put_text(out, "generated", r->spec);
    put_text(out, "file", r->folder);
    put_count(out, "nodes", r->nodes);
    put_count(out, "edges", r->edges);
    put_count(out, "features", r->features);
    put_count(out, "classes", r->classes);
    put_count(out, "training_nodes", r->training_nodes);
    io_output_format(out, "\"symmetric\": %s, \"order_seconds\": %.6f,\n   \"training\": [",
                     r->symmetric ? "true" : "false", r->order_seconds);
    for (int i = 0; i < r->training_count; i++) {
        io_output_string(out, i ? ",\n" : "\n");
        put_training(out, &r->trainings[i]);
    }
    io_output_string(out, "],\n   \"aggregation\": [");
    for (int i = 0; i < r->aggregation_count; i++) {
        io_output_string(out, i ? ",\n" : "\n");
        put_aggregation(out, &r->aggregations[i]);
    }
    io_output_string(out, "],\n   \"sampling\": [");
    for (int i = 0; i < r->sampling_count; i++) {
        io_output_string(out, i ? ",\n" : "\n");
        put_sampling(out, &r->samplings[i]);
    }
    io_output_string(out, "]}");
}

sp_status gnn_report_json(sp_context *context, const machine *m, const bench_options *o, const gnn_result *results,
                          int count)
{
    io_output *out;
    sp_status status = report_open(context, m, o, &out);
    if (status != SP_OK) return status;
    report_list(out, o);
    for (int i = 0; i < count; i++) {
        io_output_string(out, i ? ",\n" : "\n");
        put_result(out, &results[i]);
    }
    return report_close(out);
}
