/* What sparse-bench contract says: a line a graph, labelling and number of groups with the peers below it, and
 * everything as JSON. */
#include <math.h>
#include <string.h>

#include "contract_bench.h"

static double milliseconds(double seconds) { return 1e3 * seconds; }

/* The fastest peer that makes what we make: sorted. NULL: none ran. */
static const contract_figures *best_peer(const contract_result *r)
{
    const contract_figures *best = NULL;
    for (int i = 0; i < r->peer_count; i++) {
        const contract_figures *p = &r->peers[i];
        if (!*p->word && p->sorted && (!best || p->time.median < best->time.median)) best = p;
    }
    return best;
}

static double floor_seconds(const machine *m, const contract_result *r)
{
    return (double)r->bytes / m->copy_bandwidth;
}

/* ---- table --------------------------------------------------------------------------------------------- */

void contract_report_header(const machine *m, const bench_options *o)
{
    printf("%s, %s; copies at %.0f GB/s\n", *m->gpu ? m->gpu : m->cpu, o->type == SP_F32 ? "fp32" : "fp64",
           m->copy_bandwidth * 1e-9);
    printf("%-16s %9s %10s %-6s %9s %10s | %10s %12s | %8s %6s | %-54s | %s\n", "graph", "nodes", "edges", "labels",
           "groups", "nnz(C)", "fused, ms", "products, ms", "floor", "above", "best peer: ms, fused and products are "
           "faster by", "error");
}

static void print_figures(const contract_figures *f, bool first)
{
    printf("%s%s ", first ? "" : ", ", f->name);
    if (strcmp(f->word, "absent") == 0) printf("absent"); /* what is missing stands in the JSON */
    else if (*f->word) printf("%s (%s)", f->word, f->why);
    else printf("%.3f ms", milliseconds(f->time.median));
    if (f->makes) printf(", from labels %.3f", milliseconds(f->whole.median));
    if (f->peak_bytes) printf(" %.0f MB", 1e-6 * (double)f->peak_bytes);
    if (!f->sorted) printf(" (columns unsorted)");
    if (!*f->word && *f->why) printf(" (%s)", f->why);
}

static void print_own(const contract_figures *f, int width)
{
    if (*f->word) printf(" %*s", width, f->word);
    else printf(" %*.3f", width, milliseconds(f->time.median));
}

static void print_aia(const contract_result *r)
{
    const contract_figures *off = &r->aia[AIA_MODES - 2], *on = &r->aia[AIA_MODES - 1];
    printf("    stage of products, hash algorithm: ");
    for (int i = 0; i < AIA_MODES; i++) print_figures(&r->aia[i], i == 0);
    if (!*off->word && !*on->word) printf("; gain %+.1f %%", 100 * (off->time.median / on->time.median - 1));
    printf("\n");
}

void contract_report_result(const machine *m, const bench_options *o, const contract_result *r)
{
    const contract_figures *best = best_peer(r), *fused = &r->own[CONTRACT_FUSED];
    const contract_figures *products = &r->own[CONTRACT_PRODUCTS];
    char rival[120] = "none";
    if (best && !*fused->word && !*products->word)
        snprintf(rival, sizeof rival, "%s: %.3f, %.2fx, %.2fx", best->name, milliseconds(best->time.median),
                 best->time.median / fused->time.median, best->time.median / products->time.median);
    printf("%-16.24s %9lld %10lld %-6s %9lld %10lld |", r->name, (long long)r->nodes, (long long)r->edges, r->labels,
           (long long)r->groups, (long long)r->nnz);
    print_own(fused, 10);
    print_own(products, 12);
    printf(" | %8.3f", milliseconds(floor_seconds(m, r)));
    if (*fused->word) printf("        ");
    else printf(" %5.1fx", fused->time.median / floor_seconds(m, r));
    printf(" | %-54s | ", rival);
    if (!o->check) printf("no\n");
    else printf("%.1e%s%s\n", fmax(fused->error, products->error),
                fmax(fused->error, products->error) <= contract_tolerance(o) ? "" : ", WRONG",
                r->whole ? "" : " (groups spread over it)");
    printf("    ours: ");
    for (int i = 0; i < CONTRACT_OWN; i++) print_figures(&r->own[i], i == 0);
    if (r->peer_count) printf("; peers: ");
    for (int i = 0; i < r->peer_count; i++) print_figures(&r->peers[i], i == 0);
    printf("\n");
    if (o->aia) print_aia(r);
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_figures(io_output *out, const contract_figures *f)
{
    if (*f->word) {
        put_text(out, "failed", f->word);
        io_output_string(out, "\"why\": ");
        put_json_text(out, f->why);
    } else {
        io_output_format(out, "\"sorted\": %s, ", f->sorted ? "true" : "false");
        put_count(out, "peak_bytes", f->peak_bytes);
        if (f->error >= 0) io_output_format(out, "\"error\": %.3g, ", f->error);
        if (f->makes) {
            io_output_string(out, "\"from_labels\": {");
            put_timing(out, &f->whole);
            io_output_string(out, "}, ");
        }
        put_timing(out, &f->time);
    }
    io_output_string(out, "}");
}

static void put_result(io_output *out, const machine *m, const bench_options *o, const contract_result *r)
{
    static const char *const keys[CONTRACT_OWN] = {"fused", "products"};
    bool correct = true;
    double largest = 0;
    for (int i = 0; i < CONTRACT_OWN; i++) {
        correct &= !*r->own[i].word && r->own[i].sorted && r->own[i].error <= contract_tolerance(o);
        largest = fmax(largest, r->own[i].error);
    }
    io_output_string(out, "  {");
    put_source(out, r->from);
    put_text(out, "labels", r->labels);
    put_count(out, "nodes", r->nodes);
    put_count(out, "edges", r->edges);
    put_count(out, "groups", r->groups);
    put_count(out, "nnz_quotient", r->nnz);
    put_count(out, "bytes", r->bytes);
    io_output_format(out, "\"floor_seconds\": %.9f,\n   \"ours\": {", floor_seconds(m, r));
    for (int i = 0; i < CONTRACT_OWN; i++) {
        io_output_format(out, "%s\n    \"%s\": {", i ? "," : "", keys[i]);
        put_figures(out, &r->own[i]);
    }
    io_output_string(out, "},\n");
    if (o->aia) {
        static const char *const modes[AIA_MODES] = {"stage_off_uncached", "stage_off", "stage_on"};
        for (int i = 0; i < AIA_MODES; i++) {
            io_output_format(out, "   \"%s\": {", modes[i]);
            put_figures(out, &r->aia[i]);
            io_output_string(out, ",\n");
        }
    }
    io_output_string(out, "   \"peers\": [");
    for (int i = 0; i < r->peer_count; i++) {
        io_output_string(out, i ? ",\n    {" : "\n    {");
        put_text(out, "name", r->peers[i].name);
        put_figures(out, &r->peers[i]);
    }
    /* JSON has no infinity, which another pattern gives. */
    if (o->check)
        io_output_format(out, "],\n   \"checked\": {\"good\": %s, \"whole\": %s, \"largest_error\": %.3g}}",
                         correct ? "true" : "false", r->whole ? "true" : "false", fmin(largest, 1e300));
    else io_output_string(out, "],\n   \"checked\": null}");
}

sp_status contract_report_json(sp_context *context, const machine *m, const bench_options *o,
                               const contract_result *results, int count)
{
    io_output *out;
    sp_status status = report_open(context, m, o, &out);
    if (status != SP_OK) return status;
    report_list(out, o);
    for (int i = 0; i < count; i++) {
        io_output_string(out, i ? ",\n" : "\n");
        put_result(out, m, o, &results[i]);
    }
    return report_close(out);
}
