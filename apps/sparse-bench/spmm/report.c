/* What sparse-bench spmm says. */
#include <math.h>

#include "sparse-bench/report.h"
#include "sparse-bench/spmm/spmm_bench.h"

static const char *const keys[SPMM_ALGORITHMS] = {"auto", "row_split", "block_partition", "bidirectional"};

/* How much longer the choice takes than the best of the algorithms it could have chosen. */
static double behind_best(const spmm_result *r)
{
    double fastest = INFINITY;
    for (int i = 1; i < SPMM_ALGORITHMS; i++)
        if (!*r->own[i].word) fastest = fmin(fastest, r->own[i].time.median);
    return isfinite(fastest) && !*r->own[0].word ? r->own[0].time.median / fastest - 1 : 0;
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

/* X goes over the link once and Y comes back once; `floor` is the time of plain pinned copies of as many bytes, each
 * way alone and both at once. */
typedef struct link_use {
    double in, out, floor;
} link_use;

static link_use use_of_link(const machine *m, const spmm_options *o, const spmm_result *r)
{
    const double x = (double)spmm_size_of(o->features), y = (double)spmm_size_of(o->result);
    link_use use = {.in = (double)r->width * (double)r->cols * x, .out = (double)r->width * (double)r->rows * y};
    use.floor = fmax(fmax(use.in / m->link_in, use.out / m->link_out), (use.in + use.out) / m->link_both);
    return use;
}

/* What a plan keeps: counted, or as the library reports it. */
static int64_t kept_bytes(const candidate *c) { return c->plan_bytes > 0 ? c->plan_bytes : c->info.metadata_bytes; }

/* ---- stdout --------------------------------------------------------------------------------------------- */

static void print_link(const machine *m, const spmm_options *o, const spmm_result *r)
{
    const link_use use = use_of_link(m, o, r);
    const double seconds = r->own[0].time.median;
    printf("      X and Y in %s memory: %.1f MB in, %.1f MB out, %.1f GB/s, %.0f %% of the link;",
           o->host == HOST_PINNED ? "pinned" : "pageable", 1e-6 * use.in, 1e-6 * use.out,
           1e-9 * (use.in + use.out) / seconds, 100 * use.floor / seconds);
    printf(" plain pinned copies %.1f in, %.1f out, %.1f both ways\n", 1e-9 * m->link_in, 1e-9 * m->link_out,
           1e-9 * m->link_both);
}

static void print_choice(const machine *m, const spmm_options *o, const spmm_result *r)
{
    const double seconds = r->own[0].time.median;
    print_candidate(&r->own[0], 0,
                    "%s, %+.0f %% of the best; %.1f GB/s gathered, %.1f moved, %.0f %% of copies; plan %.3f ms, "
                    "%.1f MB",
                    keys[r->own[0].info.algorithm], 100 * behind_best(r), 1e-9 * (double)r->gathered_bytes / seconds,
                    1e-9 * (double)r->compulsory_bytes / seconds,
                    100 * (double)r->compulsory_bytes / seconds / m->copy_bandwidth, 1e3 * r->own[0].once_seconds,
                    1e-6 * (double)kept_bytes(&r->own[0]));
    if (*r->own[0].word) return;
    if (r->floor_seconds > 0)
        printf("      gathers in A's order and bytes that must move take %.4f ms, %.0f %% of it\n",
               1e3 * r->floor_seconds, 100 * r->floor_seconds / seconds);
    if (o->host) print_link(m, o, r);
}

static void print_other(const candidate *c, double ours)
{
    print_candidate(c, ours, c->caches > 0 ? "once %.3f ms, %.1f MB; partitions of %g caches"
                             : kept_bytes(c) ? "once %.3f ms, %.1f MB" : "once %.3f ms",
                    1e3 * c->once_seconds, 1e-6 * (double)kept_bytes(c), c->caches);
}

void spmm_report_result(const machine *m, const spmm_options *o, const spmm_result *r)
{
    const double error = largest_error(r), ours = *r->own[0].word ? 0 : r->own[0].time.median;
    print_case(r->name, "%lld rows, %lld entries, %lld columns of X; %s%.1e%s", (long long)r->rows, (long long)r->nnz,
               (long long)r->width, o->common.no_check ? "not checked, error " : "error ", error,
               o->common.no_check || error <= spmm_tolerance(o) ? "" : ", WRONG");
    print_choice(m, o, r);
    for (int i = 1; i < SPMM_ALGORITHMS; i++) print_other(&r->own[i], ours);
    for (int i = 0; i < r->peer_count; i++) print_other(&r->peers[i], ours);
    for (int i = 0; i < r->variant_count; i++) print_other(&r->variants[i], ours);
    fflush(stdout);
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_candidate(json *j, const char *key, const candidate *c, bool variant)
{
    const bool timed = begin_candidate(j, key, c);
    if (variant) json_number(j, "caches", c->caches);
    if (timed) {
        json_seconds(j, "once_seconds", c->once_seconds);
        if (c->error >= 0) json_number(j, "error", finite_error(c->error));
        if (key || variant) {
            json_text(j, "algorithm", keys[c->info.algorithm]);
            json_count(j, "metadata_bytes", c->info.metadata_bytes);
            json_count(j, "partitions", c->info.partitions);
        }
        if (key) put_bytes(j, "plan_bytes", c->plan_bytes);
        if (!variant) put_bytes(j, "peak_bytes", c->peak_bytes);
        put_timing(j, &c->time);
    }
    json_end(j, '}');
}

static void put_link(json *j, const machine *m, const spmm_options *o, const spmm_result *r)
{
    const link_use use = use_of_link(m, o, r);
    json_begin(j, "host", '{');
    json_flag(j, "pinned", o->host == HOST_PINNED);
    json_number(j, "bytes_in", use.in);
    json_number(j, "bytes_out", use.out);
    json_seconds(j, "link_in", m->link_in);
    json_seconds(j, "link_out", m->link_out);
    json_seconds(j, "link_both", m->link_both);
    json_seconds(j, "floor_seconds", use.floor);
    if (!*r->own[0].word) json_seconds(j, "link_fraction", use.floor / r->own[0].time.median);
    json_end(j, '}');
}

static void put_shape(json *j, const machine *m, const spmm_result *r)
{
    const bool timed = !*r->own[0].word;
    const double seconds = r->own[0].time.median;
    put_source(j, r->from);
    json_count(j, "rows", r->rows);
    json_count(j, "columns", r->cols);
    json_count(j, "nnz", r->nnz);
    json_count(j, "longest_row", r->longest_row);
    json_count(j, "width", r->width);
    json_count(j, "gathered_bytes", r->gathered_bytes);
    json_count(j, "compulsory_bytes", r->compulsory_bytes);
    json_count(j, "warp_metadata_bytes", r->warp_metadata_bytes);
    json_seconds(j, "copy_fraction", timed ? (double)r->compulsory_bytes / seconds / m->copy_bandwidth : NAN);
    json_seconds(j, "behind_best", timed ? behind_best(r) : NAN);
    if (timed && r->floor_seconds > 0) {
        json_seconds(j, "floor_seconds", r->floor_seconds);
        json_seconds(j, "floor_fraction", r->floor_seconds / seconds);
    }
}

static void put_result(json *j, const machine *m, const spmm_options *o, const spmm_result *r)
{
    const double error = largest_error(r);
    json_begin(j, NULL, '{');
    put_shape(j, m, r);
    if (o->host) put_link(j, m, o, r);
    json_begin(j, "ours", '{');
    for (int i = 0; i < SPMM_ALGORITHMS; i++) put_candidate(j, keys[i], &r->own[i], false);
    json_end(j, '}');
    json_begin(j, "ablation", '[');
    for (int i = 0; i < r->variant_count; i++) put_candidate(j, NULL, &r->variants[i], true);
    json_end(j, ']');
    json_begin(j, "peers", '[');
    for (int i = 0; i < r->peer_count; i++) put_candidate(j, NULL, &r->peers[i], false);
    json_end(j, ']');
    if (o->common.no_check) json_null(j, "checked");
    else {
        json_begin(j, "checked", '{');
        json_flag(j, "good", error <= spmm_tolerance(o));
        json_number(j, "largest_error", finite_error(error));
        json_end(j, '}');
    }
    json_end(j, '}');
}

sp_status spmm_report_json(sp_context *context, const machine *m, const spmm_options *o, const spmm_result *results,
                           int count)
{
    json file, *j = &file;
    const sp_status status = report_open(context, m, &o->common, j);
    if (status != SP_OK) return status;
    json_text(j, "features", features_name(o->features));
    json_text(j, "result", features_name(o->result));
    json_text(j, "reduce", reduce_name(o->reduce));
    json_flag(j, "transpose", o->transpose);
    report_list(j, &o->common);
    for (int i = 0; i < count; i++) put_result(j, m, o, &results[i]);
    return report_close(j);
}
