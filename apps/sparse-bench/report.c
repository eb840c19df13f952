/* What sparse-bench says: a line a matrix with details below it, and everything as JSON. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

/* ---- figures ------------------------------------------------------------------------------------------- */

static double gflops(const bench_result *r, double seconds)
{
    return 2 * (double)r->own.info.products / seconds * 1e-9;
}

static double fraction_of_copy(const machine *m, const bench_result *r)
{
    return (double)r->bytes / r->own.time.median / m->copy_bandwidth;
}

static double compression(const bench_result *r)
{
    const int64_t nnz = r->own.info.nnz;
    return nnz > 0 ? (double)r->own.info.products / (double)nnz : 1;
}

static double milliseconds(double seconds) { return 1e3 * seconds; }

/* The fastest peer that makes what we make: sorted, and no plan. NULL: none ran. */
static const peer_result *best_peer(const bench_result *r)
{
    const peer_result *best = NULL;
    for (int i = 0; i < r->peer_count; i++) {
        const peer_result *p = &r->peers[i];
        if (!*p->word && p->sorted && !p->plan && (!best || p->time.median < best->time.median)) best = p;
    }
    return best;
}

static const char *const aia_names[AIA_MODES] = {"off, uncached loads", "off", "on"};

/* The stage's share of the time with it. */
static double aia_ratio(const bench_result *r)
{
    const own_result *on = &r->aia[AIA_MODES - 1];
    return on->info.aia_seconds / on->time.seconds[on->time.middle];
}

/* ---- table --------------------------------------------------------------------------------------------- */

void report_header(const machine *m, const bench_options *o)
{
    printf("%s, %s, %s; copies at %.0f GB/s\n", *m->gpu ? m->gpu : m->cpu, o->type == SP_F32 ? "fp32" : "fp64",
           semiring_name(o->semiring), m->copy_bandwidth * 1e-9);
    printf("%-16s %9s %10s %11s %11s %6s | %9s %7s %6s %5s | %-40s | %s\n", "matrix", "rows", "nnz", "products",
           "nnz(C)", "compr.", "ms", "GFLOPS", "GB/s", "copy", "best peer: ms, GFLOPS, ours is faster by", "checked");
}

static void print_peer(const bench_result *r, const peer_result *p, bool first)
{
    printf("%s%s ", first ? "" : ", ", p->name);
    if (*p->word) {
        printf("%s", p->word);
        return;
    }
    printf("%.3f ms %.2f", milliseconds(p->time.median), gflops(r, p->time.median));
    if (p->plan) printf(" (after %.3f ms)", milliseconds(p->setup_seconds));
    if (p->peak_bytes) printf(" %.0f MB", 1e-6 * (double)p->peak_bytes);
    if (!p->sorted) printf(" (columns unsorted)");
    if (p->differs) printf(" (%s)", p->why);
}

static void print_details(const bench_result *r)
{
    const sp_spgemm_info *info = &r->own.info;
    printf("    phases: analysis %.3f, stage %.3f, symbolic %.3f, numeric %.3f ms; %lld batch%s",
           milliseconds(info->analysis_seconds), milliseconds(info->aia_seconds),
           milliseconds(info->symbolic_seconds), milliseconds(info->numeric_seconds), (long long)info->batches,
           info->batches == 1 ? "" : "es");
    if (info->peak_bytes)
        printf("; working memory %.1f MB, %.1f %% of operands and result", 1e-6 * (double)info->peak_bytes,
               100 * (double)info->peak_bytes / (double)r->bytes);
    if (info->groups > 0) printf("\n    groups:");
    for (int i = 0; i < info->groups; i++)
        printf("%s %s %lld", i ? "," : "", info->group[i].name, (long long)info->group[i].count);
    if (r->peer_count > 0) printf("\n    peers: ");
    for (int i = 0; i < r->peer_count; i++) print_peer(r, &r->peers[i], i == 0);
    printf("\n");
}

static void print_plan(const bench_result *r)
{
    if (*r->plan.word) printf("    plan: %s (%s)\n", r->plan.word, r->plan.why);
    else
        printf("    plan: pattern %.3f ms, then values in %.3f ms, %.2f GFLOPS\n", milliseconds(r->plan_seconds),
               milliseconds(r->plan.time.median), gflops(r, r->plan.time.median));
}

static void print_aia(const bench_result *r)
{
    printf("    stage, hash algorithm:");
    bool complete = true;
    for (int i = 0; i < AIA_MODES; i++) {
        const own_result *a = &r->aia[i];
        if (*a->word) printf("%s %s %s", i ? "," : "", aia_names[i], a->word);
        else printf("%s %s %.3f ms", i ? "," : "", aia_names[i], milliseconds(a->time.median));
        complete &= !*a->word;
    }
    if (complete) {
        const double total = milliseconds(r->aia[AIA_MODES - 1].time.median), ratio = aia_ratio(r);
        printf("; ratio %.1f %%, at 2x %.3f ms (%.2f %%), at 4x %.3f ms (%.2f %%)", 100 * ratio,
               total * (1 - ratio / 2), 50 * ratio, total * (1 - ratio * 3 / 4), 75 * ratio);
    }
    printf("\n");
}

void report_result(const machine *m, const bench_options *o, const bench_result *r)
{
    const peer_result *best = best_peer(r);
    if (*r->own.word) {
        printf("%-16.24s %9lld %10lld %s: %s\n", r->name, (long long)r->rows, (long long)r->nnz_a, r->own.word,
               r->own.why);
        return;
    }
    const double seconds = r->own.time.median;
    char rival[64] = "none";
    if (best)
        snprintf(rival, sizeof rival, "%s: %.3f, %.2f, %.2fx", best->name, milliseconds(best->time.median),
                 gflops(r, best->time.median), best->time.median / seconds);
    printf("%-16.24s %9lld %10lld %11lld %11lld %6.2f | %9.3f %7.2f %6.1f %4.1f%% | %-40s | %s%s%s\n", r->name,
           (long long)r->rows, (long long)r->nnz_a, (long long)r->own.info.products, (long long)r->own.info.nnz,
           compression(r), milliseconds(seconds), gflops(r, seconds), (double)r->bytes / seconds * 1e-9,
           100 * fraction_of_copy(m, r), rival, !o->check ? "no" : r->checked.good ? "" : "WRONG, ",
           o->check ? r->checked.with : "", o->check && !r->checked.whole ? " (rows spread over it)" : "");
    if (o->check && !r->checked.good) printf("    WRONG: %s\n", r->checked.sentence);
    print_details(r);
    if (o->plan) print_plan(r);
    if (o->aia) print_aia(r);
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

void put_text(io_output *out, const char *key, const char *text)
{
    io_output_format(out, "\"%s\": ", key);
    put_json_text(out, text && *text ? text : NULL);
    io_output_string(out, ", ");
}

void put_count(io_output *out, const char *key, int64_t count)
{
    io_output_format(out, "\"%s\": %lld, ", key, (long long)count);
}

void put_source(io_output *out, const source *from)
{
    put_text(out, "matrix", source_name(from));
    put_text(out, "family", from->family);
    put_text(out, "generated", from->spec);
    if (from->spec) io_output_format(out, "\"seed\": %llu, ", (unsigned long long)from->seed);
    put_text(out, "file", from->spec ? NULL : from->name);
}

static const char *boolean(bool value) { return value ? "true" : "false"; }

static void put_machine(io_output *out, const machine *m)
{
    const char *driver = getenv("BENCH_DRIVER");
    io_output_string(out, " \"machine\": {");
    put_text(out, "cpu", m->cpu);
    put_count(out, "cores", m->cores);
    put_count(out, "memory_bytes", m->memory_bytes);
    put_text(out, "gpu", m->gpu);
    put_text(out, "driver", *m->gpu ? (*m->driver ? m->driver : driver) : NULL);
    put_text(out, "cuda", m->cuda);
    put_text(out, "kernel", m->kernel);
    put_count(out, "cache_bytes", m->cache_bytes);
    io_output_format(out, "\"copy_bandwidth\": %.6g},\n", m->copy_bandwidth);
}

void put_timing(io_output *out, const timing *time)
{
    io_output_format(out, "\"median_seconds\": %.9f, \"samples\": [", time->median);
    for (int i = 0; i < time->count; i++) io_output_format(out, "%s%.9f", i ? ", " : "", time->seconds[i]);
    io_output_string(out, "]");
}

static void put_info(io_output *out, const sp_spgemm_info *info)
{
    io_output_format(out, "\"seconds\": {\"analysis\": %.9f, \"stage\": %.9f, ", info->analysis_seconds,
                     info->aia_seconds);
    io_output_format(out, "\"symbolic\": %.9f, \"numeric\": %.9f}, ", info->symbolic_seconds, info->numeric_seconds);
    put_count(out, "batches", info->batches);
    put_count(out, "peak_bytes", info->peak_bytes);
    io_output_string(out, "\"groups\": {");
    for (int i = 0; i < info->groups; i++) {
        io_output_string(out, i ? ", " : "");
        put_json_text(out, info->group[i].name);
        io_output_format(out, ": %lld", (long long)info->group[i].count);
    }
    io_output_string(out, "}");
}

static void put_own(io_output *out, const char *key, const own_result *own)
{
    io_output_format(out, "   \"%s\": {", key);
    if (*own->word) {
        put_text(out, "failed", own->word);
        io_output_string(out, "\"why\": ");
        put_json_text(out, own->why);
    } else {
        put_timing(out, &own->time);
        io_output_string(out, ", ");
        put_info(out, &own->info);
    }
    io_output_string(out, "},\n");
}

static void put_peer(io_output *out, const peer_result *p)
{
    io_output_string(out, "    {");
    put_text(out, "name", p->name);
    if (*p->word) {
        put_text(out, "failed", p->word);
        io_output_string(out, "\"why\": ");
        put_json_text(out, p->why);
    } else {
        if (p->plan) io_output_format(out, "\"plan_seconds\": %.9f, ", p->setup_seconds);
        io_output_format(out, "\"sorted\": %s, \"differs\": ", boolean(p->sorted));
        put_json_text(out, p->differs ? p->why : NULL);
        io_output_string(out, ", ");
        put_count(out, "peak_bytes", p->peak_bytes);
        put_timing(out, &p->time);
    }
    io_output_string(out, "}");
}

static void put_checked(io_output *out, const verdict *v)
{
    io_output_string(out, "   \"checked\": {");
    put_text(out, "with", v->with);
    io_output_format(out, "\"good\": %s, \"whole\": %s, ", boolean(v->good), boolean(v->whole));
    put_count(out, "rows", v->rows);
    put_count(out, "entries", v->entries);
    /* JSON has no infinity, which columns that differ give. */
    io_output_format(out, "\"largest_difference\": %.3g, \"sentence\": ", v->largest < 1e300 ? v->largest : 1e300);
    put_json_text(out, *v->sentence ? v->sentence : NULL);
    io_output_string(out, "}");
}

static void put_result(io_output *out, const machine *m, const bench_options *o, const bench_result *r)
{
    io_output_string(out, "  {");
    put_source(out, r->from);
    put_text(out, "operation", r->operation);
    io_output_string(out, "\n   ");
    put_count(out, "rows", r->rows);
    put_count(out, "inner", r->inner);
    put_count(out, "columns", r->cols);
    put_count(out, "nnz", r->nnz_a);
    put_count(out, "nnz_right", r->nnz_b);
    put_count(out, "longest_row", r->longest_row);
    put_count(out, "products", r->own.info.products);
    put_count(out, "nnz_product", r->own.info.nnz);
    put_count(out, "bytes", r->bytes);
    if (!*r->own.word)
        io_output_format(out, "\"gflops\": %.6g, \"copy_fraction\": %.6g,", gflops(r, r->own.time.median),
                         fraction_of_copy(m, r));
    else io_output_string(out, "\"gflops\": null, \"copy_fraction\": null,");
    io_output_string(out, "\n");
    put_own(out, "ours", &r->own);
    if (o->plan) {
        put_own(out, "plan", &r->plan);
        io_output_format(out, "   \"plan_seconds\": %.9f,\n", r->plan_seconds);
    }
    if (o->aia) {
        static const char *const keys[AIA_MODES] = {"stage_off_uncached", "stage_off", "stage_on"};
        for (int i = 0; i < AIA_MODES; i++) put_own(out, keys[i], &r->aia[i]);
        if (!*r->aia[AIA_MODES - 1].word) io_output_format(out, "   \"stage_ratio\": %.6f,\n", aia_ratio(r));
    }
    io_output_string(out, "   \"peers\": [");
    for (int i = 0; i < r->peer_count; i++) {
        io_output_string(out, i ? ",\n" : "\n");
        put_peer(out, &r->peers[i]);
    }
    io_output_string(out, "],\n");
    if (o->check && !*r->own.word) put_checked(out, &r->checked);
    else io_output_string(out, "   \"checked\": null");
    io_output_string(out, "}");
}

sp_status report_open(sp_context *context, const machine *m, const bench_options *o, io_output **out)
{
    char date[16] = "";
    const time_t now = time(NULL);
    struct tm utc;
    sp_status status = io_output_open(context, o->json, out);
    if (status != SP_OK) return status;
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d", &utc);
    io_output_format(*out, "{\"bench\": \"%s\", \"version\": \"" SP_VERSION "\", ", kind_name(o->kind));
    put_text(*out, "date", date);
    put_text(*out, "commit", getenv("BENCH_COMMIT"));
    io_output_string(*out, "\n");
    put_machine(*out, m);
    io_output_string(*out, " \"options\": {");
    put_text(*out, "device", o->device);
    put_count(*out, "threads", o->threads);
    put_text(*out, "values", o->type == SP_F32 ? "fp32" : "fp64");
    return SP_OK;
}

void report_list(io_output *out, const bench_options *o)
{
    put_count(out, "repeat", o->repeat);
    put_count(out, "memory", o->memory);
    io_output_format(out, "\"seed\": %lld},\n \"matrices\": [", (long long)o->seeds[0]);
}

sp_status report_close(io_output *out)
{
    io_output_string(out, "]}\n");
    return io_output_commit(out);
}

sp_status report_json(sp_context *context, const machine *m, const bench_options *o,
                      const bench_result *results, int count)
{
    io_output *out;
    sp_status status = report_open(context, m, o, &out);
    if (status != SP_OK) return status;
    put_text(out, "semiring", semiring_name(o->semiring));
    put_text(out, "algorithm", algorithm_name(o->algorithm));
    report_list(out, o);
    for (int i = 0; i < count; i++) {
        io_output_string(out, i ? ",\n" : "\n");
        put_result(out, m, o, &results[i]);
    }
    return report_close(out);
}
