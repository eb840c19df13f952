/* What sparse-bench spmm says: a line a graph and width with details below it, and everything as JSON. */
#include <stdlib.h>

#include "spmm_bench.h"

static const char *const names[SPMM_ALGORITHMS] = {"auto", "row split", "block partition", "bidirectional"};
static const char *const keys[SPMM_ALGORITHMS] = {"auto", "row_split", "block_partition", "bidirectional"};

static double milliseconds(double seconds) { return 1e3 * seconds; }

static const spmm_figures *best(const spmm_figures *list, int first, int count)
{
    const spmm_figures *found = NULL;
    for (int i = first; i < count; i++)
        if (!*list[i].word && (!found || list[i].time.median < found->time.median)) found = &list[i];
    return found;
}

/* How much longer the choice takes than the best of the algorithms it could have chosen. */
static double behind_best(const spmm_result *r)
{
    const spmm_figures *fastest = best(r->own, 1, SPMM_ALGORITHMS);
    return fastest && !*r->own[0].word ? r->own[0].time.median / fastest->time.median - 1 : 0;
}

static double largest_error(const spmm_result *r)
{
    double largest = -1;
    for (int i = 0; i < SPMM_ALGORITHMS; i++)
        if (!(r->own[i].error <= largest)) largest = r->own[i].error;
    for (int i = 0; i < r->variant_count; i++)
        if (!*r->variants[i].word && !(r->variants[i].error <= largest)) largest = r->variants[i].error;
    return largest;
}

/* ---- table --------------------------------------------------------------------------------------------- */

void spmm_report_header(const machine *m, const bench_options *o)
{
    printf("%s, %s, features %s, result %s, %s; copies at %.0f GB/s\n", *m->gpu ? m->gpu : m->cpu,
           o->type == SP_F32 ? "fp32" : "fp64", features_name(o->features), features_name(o->result),
           reduce_name(o->reduce), m->copy_bandwidth * 1e-9);
    printf("%-20s %9s %10s %6s | %9s %8s %8s %5s | %-34s | %-40s | %s\n", "graph", "rows", "nnz", "width", "ms",
           "gathered", "moved", "copy", "chosen", "best peer: ms, ours is faster by", "error");
}

static void print_figures(const char *name, const spmm_figures *f, bool first)
{
    printf("%s %s", first ? "" : ",", name);
    if (*f->word) printf(" %s", f->word);
    else printf(" %.4f ms (once %.3f)", milliseconds(f->time.median), milliseconds(f->plan_seconds));
}

static void print_details(const spmm_result *r)
{
    printf("   ");
    for (int i = 1; i < SPMM_ALGORITHMS; i++) {
        print_figures(names[i], &r->own[i], i == 1);
        if (!*r->own[i].word && r->own[i].info.metadata_bytes)
            printf(" %.1f MB", 1e-6 * (double)r->own[i].info.metadata_bytes);
    }
    printf("\n");
    if (r->peer_count) printf("   ");
    for (int i = 0; i < r->peer_count; i++) print_figures(r->peers[i].name, &r->peers[i], i == 0);
    if (r->peer_count) printf("\n");
    if (r->variant_count) printf("   ");
    for (int i = 0; i < r->variant_count; i++) {
        char name[60];
        snprintf(name, sizeof name, r->variants[i].caches > 0 ? "%s of %g caches" : "%s", r->variants[i].name,
                 r->variants[i].caches);
        print_figures(name, &r->variants[i], i == 0);
    }
    if (r->variant_count) printf("\n");
}

/* X goes over the link once and Y comes back once; `floor` is the time of plain pinned copies of as many bytes, each
 * way alone and both at once. */
typedef struct link_use {
    double in, out, floor;
} link_use;

static link_use use_of_link(const machine *m, const bench_options *o, const spmm_result *r)
{
    const double x = (double)spmm_size_of(o->features), y = (double)spmm_size_of(o->result);
    link_use use = {.in = (double)r->width * (double)r->cols * x, .out = (double)r->width * (double)r->rows * y};
    const double floors[] = {use.in / m->link_in, use.out / m->link_out, (use.in + use.out) / m->link_both};
    for (int i = 0; i < 3; i++)
        if (floors[i] > use.floor) use.floor = floors[i];
    return use;
}

static void print_link(const machine *m, const bench_options *o, const spmm_result *r)
{
    const link_use use = use_of_link(m, o, r);
    const double seconds = r->own[0].time.median;
    printf("    X and Y in %s memory: %.1f MB in, %.1f MB out, %.1f GB/s, %.0f %% of the link;",
           o->host == HOST_PINNED ? "pinned" : "pageable", 1e-6 * use.in, 1e-6 * use.out,
           1e-9 * (use.in + use.out) / seconds, 100 * use.floor / seconds);
    printf(" plain pinned copies %.1f in, %.1f out, %.1f both ways\n", 1e-9 * m->link_in, 1e-9 * m->link_out,
           1e-9 * m->link_both);
}

void spmm_report_result(const machine *m, const bench_options *o, const spmm_result *r)
{
    const spmm_figures *own = &r->own[0], *fastest = best(r->peers, 0, r->peer_count);
    const double seconds = own->time.median, error = largest_error(r);
    char rival[80] = "none", chosen[80];
    printf("%-20.24s %9lld %10lld %6lld |", r->name, (long long)r->rows, (long long)r->nnz, (long long)r->width);
    if (*own->word) {
        printf(" %s: %s\n", own->word, own->why);
        return;
    }
    if (fastest)
        snprintf(rival, sizeof rival, "%s: %.4f, %.2fx", fastest->name, milliseconds(fastest->time.median),
                 fastest->time.median / seconds);
    snprintf(chosen, sizeof chosen, "%s, %+.0f %% of the best", names[own->info.algorithm], 100 * behind_best(r));
    printf(" %9.4f %8.1f %8.1f %4.0f%% | %-34s | %-40s | ", milliseconds(seconds),
           1e-9 * (double)r->gathered_bytes / seconds, 1e-9 * (double)r->compulsory_bytes / seconds,
           100 * (double)r->compulsory_bytes / seconds / m->copy_bandwidth, chosen, rival);
    if (!o->check) printf("no\n");
    else printf("%.1e%s\n", error, error <= spmm_tolerance(o) ? "" : ", WRONG");
    print_details(r);
    if (r->floor_seconds > 0)
        printf("    gathers in A's order and bytes that must move take %.4f ms, %.0f %% of it\n",
               milliseconds(r->floor_seconds), 100 * r->floor_seconds / seconds);
    if (o->host) print_link(m, o, r);
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_figures(io_output *out, const spmm_figures *f, bool own)
{
    if (*f->word) {
        put_text(out, "failed", f->word);
        io_output_string(out, "\"why\": ");
        put_json_text(out, f->why);
    } else {
        io_output_format(out, "\"once_seconds\": %.9f, ", f->plan_seconds);
        if (f->error >= 0) io_output_format(out, "\"error\": %.3g, ", f->error);
        if (own) {
            put_text(out, "algorithm", keys[f->info.algorithm]);
            put_count(out, "metadata_bytes", f->info.metadata_bytes);
            put_count(out, "partitions", f->info.partitions);
        }
        put_timing(out, &f->time);
    }
    io_output_string(out, "}");
}

static void put_link(io_output *out, const machine *m, const bench_options *o, const spmm_result *r)
{
    const link_use use = use_of_link(m, o, r);
    io_output_format(out, "\n   \"host\": {\"pinned\": %s, ", o->host == HOST_PINNED ? "true" : "false");
    io_output_format(out, "\"bytes_in\": %.0f, \"bytes_out\": %.0f, ", use.in, use.out);
    io_output_format(out, "\"link_in\": %.6g, \"link_out\": %.6g, ", m->link_in, m->link_out);
    io_output_format(out, "\"link_both\": %.6g, \"floor_seconds\": %.9f", m->link_both, use.floor);
    if (!*r->own[0].word) io_output_format(out, ", \"link_fraction\": %.6g", use.floor / r->own[0].time.median);
    io_output_string(out, "},");
}

static void put_result(io_output *out, const machine *m, const bench_options *o, const spmm_result *r)
{
    const double error = largest_error(r), seconds = r->own[0].time.median;
    io_output_string(out, "  {");
    put_source(out, r->from);
    put_count(out, "rows", r->rows);
    put_count(out, "columns", r->cols);
    put_count(out, "nnz", r->nnz);
    put_count(out, "longest_row", r->longest_row);
    put_count(out, "width", r->width);
    put_count(out, "gathered_bytes", r->gathered_bytes);
    put_count(out, "compulsory_bytes", r->compulsory_bytes);
    put_count(out, "warp_metadata_bytes", r->warp_metadata_bytes);
    if (!*r->own[0].word)
        io_output_format(out, "\"copy_fraction\": %.6g, \"behind_best\": %.6g,",
                         (double)r->compulsory_bytes / seconds / m->copy_bandwidth, behind_best(r));
    else io_output_string(out, "\"copy_fraction\": null, \"behind_best\": null,");
    if (!*r->own[0].word && r->floor_seconds > 0)
        io_output_format(out, "\"floor_seconds\": %.9f, \"floor_fraction\": %.6g,", r->floor_seconds,
                         r->floor_seconds / seconds);
    if (o->host) put_link(out, m, o, r);
    io_output_string(out, "\n   \"ours\": {");
    for (int i = 0; i < SPMM_ALGORITHMS; i++) {
        io_output_format(out, "%s\n    \"%s\": {", i ? "," : "", keys[i]);
        put_figures(out, &r->own[i], true);
    }
    io_output_string(out, "},\n   \"ablation\": [");
    for (int i = 0; i < r->variant_count; i++) {
        io_output_string(out, i ? ",\n    {" : "\n    {");
        put_text(out, "name", r->variants[i].name);
        io_output_format(out, "\"caches\": %g, ", r->variants[i].caches);
        put_figures(out, &r->variants[i], true);
    }
    io_output_string(out, "],\n   \"peers\": [");
    for (int i = 0; i < r->peer_count; i++) {
        io_output_string(out, i ? ",\n    {" : "\n    {");
        put_text(out, "name", r->peers[i].name);
        put_figures(out, &r->peers[i], false);
    }
    /* JSON has no NaN. */
    if (o->check)
        io_output_format(out, "],\n   \"checked\": {\"good\": %s, \"largest_error\": %.3g}}",
                         error <= spmm_tolerance(o) ? "true" : "false", error < 1e300 ? error : 1e300);
    else io_output_string(out, "],\n   \"checked\": null}");
}

sp_status spmm_report_json(sp_context *context, const machine *m, const bench_options *o, const spmm_result *results,
                           int count)
{
    io_output *out;
    sp_status status = report_open(context, m, o, &out);
    if (status != SP_OK) return status;
    put_text(out, "features", features_name(o->features));
    put_text(out, "result", features_name(o->result));
    put_text(out, "reduce", reduce_name(o->reduce));
    report_list(out, o);
    for (int i = 0; i < count; i++) {
        io_output_string(out, i ? ",\n" : "\n");
        put_result(out, m, o, &results[i]);
    }
    return report_close(out);
}
