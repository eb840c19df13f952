/* What sparse-bench spgemm says. */
#include <math.h>

#include "sparse-bench/report.h"

static double gflops(const bench_result *r, double seconds) { return 2e-9 * (double)r->info.products / seconds; }

static double fraction_of_copy(const machine *m, const bench_result *r)
{
    return (double)r->bytes / r->own.time.median / m->copy_bandwidth;
}

/* The stage's share of the time with it. */
static double aia_ratio(const bench_result *r)
{
    const timing *on = &r->aia[AIA_MODES - 1].time;
    return r->aia_info[AIA_MODES - 1].aia_seconds / on->seconds[on->middle];
}

/* ---- stdout --------------------------------------------------------------------------------------------- */

static void print_phases(const bench_result *r)
{
    const sp_spgemm_info *info = &r->info;
    printf("      phases: analysis %.3f, stage %.3f, symbolic %.3f, numeric %.3f ms; %lld batch%s",
           1e3 * info->analysis_seconds, 1e3 * info->aia_seconds, 1e3 * info->symbolic_seconds,
           1e3 * info->numeric_seconds, (long long)info->batches, info->batches == 1 ? "" : "es");
    for (int i = 0; i < info->groups; i++)
        printf("%s %s %lld", i ? "," : "; rows:", info->group[i].name, (long long)info->group[i].count);
    printf("\n");
}

static void print_all(const machine *m, const spgemm_options *o, const bench_result *r)
{
    const double ours = r->own.time.median;
    print_candidate(&r->own, 0, "%.2f GFLOPS, %.1f GB/s, %.1f %% of copies", gflops(r, ours),
                    1e-9 * (double)r->bytes / ours, 100 * fraction_of_copy(m, r));
    if (*r->own.word) return;
    print_phases(r);
    if (o->plan) print_candidate(&r->plan, ours, r->plan.plan_bytes < 0 ? "%.2f GFLOPS, after %.3f ms"
                                                 : "%.2f GFLOPS, after %.3f ms, keeps %.1f MB",
                                 gflops(r, r->plan.time.median), 1e3 * r->plan.once_seconds,
                                 1e-6 * (double)r->plan.plan_bytes);
    for (int i = 0; i < AIA_MODES && o->aia; i++) print_candidate(&r->aia[i], ours, "%s", "");
    if (o->aia && !*r->aia[AIA_MODES - 1].word) {
        const double total = 1e3 * r->aia[AIA_MODES - 1].time.median, ratio = aia_ratio(r);
        printf("      the stage takes %.1f %%; at 2x %.3f ms (%.2f %%), at 4x %.3f ms (%.2f %%)\n", 100 * ratio,
               total * (1 - ratio / 2), 50 * ratio, total * (1 - ratio * 3 / 4), 75 * ratio);
    }
    for (int i = 0; i < r->peer_count; i++) {
        const candidate *p = &r->peers[i];
        print_candidate(p, ours, p->plan ? "%.2f GFLOPS, after %.3f ms" : "%.2f GFLOPS", gflops(r, p->time.median),
                        1e3 * p->once_seconds);
    }
}

void spgemm_report_result(const machine *m, const spgemm_options *o, const bench_result *r)
{
    const verdict *v = &r->checked;
    print_case(r->name, "%s: %lld rows, %lld entries, %lld products, %lld entries of C, compression %.2f; %s%s%s",
               r->operation, (long long)r->rows, (long long)r->nnz_a, (long long)r->info.products,
               (long long)r->info.nnz, r->info.nnz > 0 ? (double)r->info.products / (double)r->info.nnz : 1,
               o->common.no_check ? "not checked" : v->good ? "checked with " : "WRONG: ",
               o->common.no_check ? "" : v->good ? v->with : v->sentence,
               o->common.no_check || v->whole ? "" : " (rows spread over it)");
    print_all(m, o, r);
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_own(json *j, const char *key, const candidate *own, const sp_spgemm_info *info)
{
    if (begin_candidate(j, key, own)) {
        put_timing(j, &own->time);
        json_begin(j, "seconds", '{');
        json_seconds(j, "analysis", info->analysis_seconds);
        json_seconds(j, "stage", info->aia_seconds);
        json_seconds(j, "symbolic", info->symbolic_seconds);
        json_seconds(j, "numeric", info->numeric_seconds);
        json_end(j, '}');
        json_count(j, "batches", info->batches);
        put_bytes(j, "peak_bytes", own->peak_bytes);
        json_begin(j, "groups", '{');
        for (int i = 0; i < info->groups; i++) json_count(j, info->group[i].name, info->group[i].count);
        json_end(j, '}');
    }
    json_end(j, '}');
}

static void put_peer(json *j, const candidate *p)
{
    if (begin_candidate(j, NULL, p)) {
        if (p->plan) json_seconds(j, "plan_seconds", p->once_seconds);
        json_flag(j, "sorted", !p->unsorted);
        json_text(j, "differs", *p->why ? p->why : NULL);
        put_bytes(j, "peak_bytes", p->peak_bytes);
        put_timing(j, &p->time);
    }
    json_end(j, '}');
}

static void put_checked(json *j, const verdict *v)
{
    json_begin(j, "checked", '{');
    json_text(j, "with", *v->with ? v->with : NULL);
    json_flag(j, "good", v->good);
    json_flag(j, "whole", v->whole);
    json_count(j, "rows", v->rows);
    json_count(j, "entries", v->entries);
    json_number(j, "largest_difference", finite_error(v->largest));
    json_text(j, "sentence", *v->sentence ? v->sentence : NULL);
    json_end(j, '}');
}

static void put_shape(json *j, const machine *m, const bench_result *r)
{
    put_source(j, r->from);
    json_text(j, "operation", r->operation);
    json_count(j, "rows", r->rows);
    json_count(j, "inner", r->inner);
    json_count(j, "columns", r->cols);
    json_count(j, "nnz", r->nnz_a);
    json_count(j, "nnz_right", r->nnz_b);
    json_count(j, "longest_row", r->longest_row);
    json_count(j, "products", r->info.products);
    json_count(j, "nnz_product", r->info.nnz);
    json_count(j, "bytes", r->bytes);
    json_number(j, "gflops", *r->own.word ? NAN : gflops(r, r->own.time.median));
    json_number(j, "copy_fraction", *r->own.word ? NAN : fraction_of_copy(m, r));
}

static void put_result(json *j, const machine *m, const spgemm_options *o, const bench_result *r)
{
    static const char *const keys[AIA_MODES] = {"stage_off_uncached", "stage_off", "stage_on"};
    json_begin(j, NULL, '{');
    put_shape(j, m, r);
    put_own(j, "ours", &r->own, &r->info);
    if (o->plan) put_own(j, "plan", &r->plan, &r->plan_info);
    if (o->plan) json_seconds(j, "plan_seconds", r->plan.once_seconds);
    if (o->plan) put_bytes(j, "plan_bytes", *r->plan.word ? -1 : r->plan.plan_bytes);
    for (int i = 0; i < AIA_MODES && o->aia; i++) put_own(j, keys[i], &r->aia[i], &r->aia_info[i]);
    if (o->aia && !*r->aia[AIA_MODES - 1].word) json_seconds(j, "stage_ratio", aia_ratio(r));
    json_begin(j, "peers", '[');
    for (int i = 0; i < r->peer_count; i++) put_peer(j, &r->peers[i]);
    json_end(j, ']');
    if (o->common.no_check || *r->own.word) json_null(j, "checked");
    else put_checked(j, &r->checked);
    json_end(j, '}');
}

sp_status spgemm_report_json(sp_context *context, const machine *m, const spgemm_options *o,
                             const bench_result *results, int count)
{
    json file, *j = &file;
    const sp_status status = report_open(context, m, &o->common, j);
    if (status != SP_OK) return status;
    json_text(j, "semiring", semiring_name(o->common.semiring));
    json_text(j, "algorithm", algorithm_name(o->algorithm));
    report_list(j, &o->common);
    for (int i = 0; i < count; i++) put_result(j, m, o, &results[i]);
    return report_close(j);
}
