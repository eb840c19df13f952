/* What sparse-bench contract says. */
#include <math.h>

#include "sparse-bench/contract/contract_bench.h"
#include "sparse-bench/report.h"

static double floor_seconds(const machine *m, const contract_result *r) { return (double)r->bytes / m->copy_bandwidth; }

static double largest_error(const contract_result *r)
{
    return fmax(r->own[CONTRACT_FUSED].error, r->own[CONTRACT_PRODUCTS].error);
}

static bool is_correct(const contract_bench_options *o, const contract_result *r)
{
    bool correct = true;
    for (int i = 0; i < CONTRACT_OWN; i++)
        correct &= !*r->own[i].word && !r->own[i].unsorted && r->own[i].error <= contract_tolerance(o);
    return correct;
}

void contract_report_result(const machine *m, const contract_bench_options *o, const contract_result *r)
{
    const candidate *fused = &r->own[CONTRACT_FUSED];
    const double ours = *fused->word ? 0 : fused->time.median;
    print_case(r->name, "%lld nodes, %lld edges, %s labels, %lld groups, %lld edges of groups; floor %.3f ms; %s%s",
               (long long)r->nodes, (long long)r->edges, r->labels, (long long)r->groups, (long long)r->nnz,
               1e3 * floor_seconds(m, r), o->common.no_check ? "not checked" : is_correct(o, r) ? "checked" : "WRONG",
               o->common.no_check || r->whole ? "" : " (groups spread over it)");
    for (int i = 0; i < CONTRACT_OWN; i++)
        print_candidate(&r->own[i], i ? ours : 0, "%.1fx the floor, error %.1e",
                        r->own[i].time.median / floor_seconds(m, r), r->own[i].error);
    for (int i = 0; i < AIA_MODES && o->aia; i++) print_candidate(&r->aia[i], ours, "error %.1e", r->aia[i].error);
    for (int i = 0; i < r->peer_count; i++) {
        const timing *made = &r->from_labels[i];
        print_candidate(&r->peers[i], ours, made->count ? "error %.1e; from labels %.3f ms" : "error %.1e",
                        r->peers[i].error, 1e3 * made->median);
    }
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_candidate(json *j, const char *key, const candidate *c, const timing *from_labels)
{
    if (begin_candidate(j, key, c)) {
        json_flag(j, "sorted", !c->unsorted);
        put_bytes(j, "peak_bytes", c->peak_bytes);
        if (c->error >= 0) json_number(j, "error", finite_error(c->error));
        if (from_labels && from_labels->count) {
            json_begin(j, "from_labels", '{');
            put_timing(j, from_labels);
            json_end(j, '}');
        }
        put_timing(j, &c->time);
    }
    json_end(j, '}');
}

static void put_checked(json *j, const contract_bench_options *o, const contract_result *r)
{
    if (o->common.no_check) {
        json_null(j, "checked");
        return;
    }
    json_begin(j, "checked", '{');
    json_flag(j, "good", is_correct(o, r));
    json_flag(j, "whole", r->whole);
    json_number(j, "largest_error", finite_error(fmax(largest_error(r), 0)));
    json_end(j, '}');
}

static void put_result(json *j, const machine *m, const contract_bench_options *o, const contract_result *r)
{
    static const char *const keys[CONTRACT_OWN] = {"fused", "products"};
    static const char *const modes[AIA_MODES] = {"stage_off_uncached", "stage_off", "stage_on"};
    json_begin(j, NULL, '{');
    put_source(j, r->from);
    json_text(j, "labels", r->labels);
    json_count(j, "nodes", r->nodes);
    json_count(j, "edges", r->edges);
    json_count(j, "groups", r->groups);
    json_count(j, "nnz_quotient", r->nnz);
    json_count(j, "bytes", r->bytes);
    json_seconds(j, "floor_seconds", floor_seconds(m, r));
    json_begin(j, "ours", '{');
    for (int i = 0; i < CONTRACT_OWN; i++) put_candidate(j, keys[i], &r->own[i], NULL);
    json_end(j, '}');
    for (int i = 0; i < AIA_MODES && o->aia; i++) put_candidate(j, modes[i], &r->aia[i], NULL);
    json_begin(j, "peers", '[');
    for (int i = 0; i < r->peer_count; i++) put_candidate(j, NULL, &r->peers[i], &r->from_labels[i]);
    json_end(j, ']');
    put_checked(j, o, r);
    json_end(j, '}');
}

sp_status contract_report_json(sp_context *context, const machine *m, const contract_bench_options *o,
                               const contract_result *results, int count)
{
    json file, *j = &file;
    const sp_status status = report_open(context, m, &o->common, j);
    if (status != SP_OK) return status;
    report_list(j, &o->common);
    for (int i = 0; i < count; i++) put_result(j, m, o, &results[i]);
    return report_close(j);
}
