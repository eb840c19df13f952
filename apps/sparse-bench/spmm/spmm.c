/* sparse-bench spmm: the cases, our algorithms, and the sums in f64 that every Y is compared with.
 *
 * A and X lie where the product is computed; with --host X and Y lie in host memory. A sample is as many products in a
 * row as take some milliseconds, with one wait at its end: what is timed is the product, not the call. Plans are timed
 * apart. */
#include <math.h>
#include <string.h>

#include "base/longest.h"
#include "base/random.h"
#include "base/value.h"
#include "sparse-bench/report.h"
#include "sparse-bench/spmm/spmm_bench.h"

/* ---- figures ------------------------------------------------------------------------------------------- */

typedef struct batch {
    sp_status (*run)(void *);
    void *user;
    int count;
} batch;

static sp_status batch_step(void *user)
{
    const batch *b = user;
    sp_status status = SP_OK;
    for (int i = 0; i < b->count && status == SP_OK; i++) status = b->run(b->user);
    return status;
}

static const double SAMPLE_SECONDS = 5e-3;
enum { MOST_PRODUCTS = 500 };

/* How many products make a sample; they are warm then. */
static sp_status choose_count(sp_status (*run)(void *), void *user, int *count)
{
    sp_status status = run(user);
    device_finish();
    const double began = wall_seconds();
    if (status == SP_OK) status = run(user);
    device_finish();
    const double products = SAMPLE_SECONDS / (wall_seconds() - began);
    *count = products < 1 ? 1 : products < MOST_PRODUCTS ? (int)products : MOST_PRODUCTS;
    return status;
}

sp_status spmm_time(const bench_options *options, sp_status (*run)(void *), void *user, timing *time)
{
    batch b = {run, user, 1};
    sp_status status = choose_count(run, user, &b.count);
    if (status == SP_OK) status = time_steps(options, batch_step, NULL, &b, time);
    for (int i = 0; i < time->count; i++) time->seconds[i] /= b.count;
    time->median /= b.count;
    return status;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

size_t spmm_size_of(sp_dense_type type) { return type == SP_DENSE_F64 ? 8 : type == SP_DENSE_F32 ? 4 : 2; }

static int fraction_bits(sp_dense_type type) { return type == SP_DENSE_F16 ? 10 : 7; } /* of 16 */
static int exponent_bias(sp_dense_type type) { return type == SP_DENSE_F16 ? 15 : 127; }

static double value_at(const void *values, sp_dense_type type, int64_t at)
{
    if (type == SP_DENSE_F32) return (double)((const float *)values)[at];
    if (type == SP_DENSE_F64) return ((const double *)values)[at];
    const int bits = ((const uint16_t *)values)[at], fraction = fraction_bits(type), bias = exponent_bias(type);
    const int exponent = (bits & 0x7fff) >> fraction, hidden = exponent ? 1 << fraction : 0;
    if (exponent == 2 * bias + 1) return NAN; /* infinite or none: never right */
    const double size = ldexp((bits & ((1 << fraction) - 1)) + hidden, (hidden ? exponent : 1) - bias - fraction);
    return bits >> 15 ? -size : size;
}

uint16_t spmm_small_bits(double value, sp_dense_type type)
{
    const int fraction = fraction_bits(type), bias = exponent_bias(type);
    const int exponent = value == 0 || ilogb(value) < 1 - bias ? 1 - bias : ilogb(value);
    const uint16_t sign = signbit(value) ? 0x8000 : 0, infinite = (uint16_t)((2 * bias + 1) << fraction);
    if (exponent > bias) return sign | infinite;
    /* What is rounded up to the next power of two carries into the exponent. */
    const int bits = (int)rint(ldexp(fabs(value), fraction - exponent)) + ((exponent + bias - 1) << fraction);
    return (uint16_t)(sign | bits);
}

double spmm_rounding(sp_dense_type type)
{
    return type == SP_DENSE_F16 ? 0x1p-11 : type == SP_DENSE_BF16 ? 0x1p-8 : 0;
}

/* Half of the last place of the least numbers, which rounding costs whatever their size. */
static double least_rounding(sp_dense_type type)
{
    return spmm_size_of(type) == 2 ? ldexp(1, -exponent_bias(type) - fraction_bits(type)) : 0;
}

/* Numbers from 1/4 to 1 of either sign. */
static sp_status make_features(spmm_case *c, int64_t width)
{
    const sp_dense_type type = c->options->features;
    sp_status status = sp_dense_create(c->host, c->a.cols, width, type, SP_HOST, &c->x);
    if (status != SP_OK) return status;
    void *values = c->x.values;
    const int64_t count = c->a.cols * width;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(c->host))
    for (int64_t at = 0; at < count; at++) {
        const uint64_t random = mix64((uint64_t)c->options->common.seeds.number[0] ^ (uint64_t)at);
        const double value = (0.25 + 0.75 * (double)(random >> 12) * 0x1p-52) * (random & 1 ? -1 : 1);
        const uint16_t sign = (uint16_t)(random & 1 ? 0x8000 : 0);
        if (type == SP_DENSE_F32) ((float *)values)[at] = (float)value;
        else if (type == SP_DENSE_F64) ((double *)values)[at] = value;
        else if (type == SP_DENSE_F16) ((uint16_t *)values)[at] = (uint16_t)(0x3400 | (random >> 20 & 0x07ff) | sign);
        else ((uint16_t *)values)[at] = (uint16_t)(0x3e80 | (random >> 20 & 0x00ff) | sign);
    }
    return SP_OK;
}

/* ---- the reference ------------------------------------------------------------------------------------- */

/* Multiplications in f64 that take a second or so. */
static const double REFERENCE_PRODUCTS = 1e8;
enum { REFERENCE_ROWS = 20000, REFERENCE_RUN = 40 /* of neighbours, which are fetched at once */ };

static void refer_row(const spmm_case *c, int64_t row, double *sums, double *sizes)
{
    const sp_csr *a = &c->a;
    const int64_t width = c->x.cols, first = a->row_offsets[row], end = a->row_offsets[row + 1];
    const sp_reduce reduce = c->options->reduce;
    const double sign = reduce == SP_REDUCE_MIN ? -1 : 1,
                 share = reduce == SP_REDUCE_MEAN ? (double)(end - first) : 1;
    for (int64_t j = 0; j < width; j++) sums[j] = sizes[j] = 0;
    for (int64_t k = first; k < end; k++)
        for (int64_t j = 0; j < width; j++) {
            const double x = value_at(c->x.values, c->x.type, a->col_indices[k] * c->x.stride + j);
            const double term = entry_value(a, k) * x / share;
            if (reduce <= SP_REDUCE_MEAN) {
                sums[j] += term;
                sizes[j] += fabs(term);
            } else if (k == first || sign * term > sign * sums[j]) {
                sums[j] = term;
                sizes[j] = fabs(term);
            }
        }
}

static void drop_reference(spmm_case *c)
{
    FREE_ALL(c->host, c->reference.rows, c->reference.sums, c->reference.sizes);
    c->reference = (spmm_reference){0};
}

/* The longest row and runs of others spread over the graph, as many as can be afforded. */
static sp_status make_reference(spmm_case *c)
{
    const sp_csr *a = &c->a;
    const int64_t width = c->x.cols, rows = a->rows < REFERENCE_ROWS ? a->rows : REFERENCE_ROWS;
    spmm_reference *r = &c->reference;
    double products = 0;
    int64_t longest = 0;
    sp_status status;
    TRY(sp_alloc(c->host, rows + 1, sizeof *r->rows, (void **)&r->rows));
    for (int64_t i = 0; i < a->rows; i++)
        if (a->row_offsets[i + 1] - a->row_offsets[i] > a->row_offsets[longest + 1] - a->row_offsets[longest])
            longest = i;
    if (a->rows > 0) r->rows[r->count++] = longest;
    for (int64_t n = 0; n < rows && products < REFERENCE_PRODUCTS; n++) {
        const int64_t run = n / REFERENCE_RUN, last = a->rows - REFERENCE_RUN;
        const int64_t row = rows == a->rows ? n
                                            : (int64_t)(mix64((uint64_t)run) % (uint64_t)last) + n % REFERENCE_RUN;
        products += (double)((a->row_offsets[row + 1] - a->row_offsets[row]) * width);
        r->rows[r->count++] = row;
    }
    TRY(sp_alloc(c->host, r->count * width, sizeof *r->sums, (void **)&r->sums));
    TRY(sp_alloc(c->host, r->count * width, sizeof *r->sizes, (void **)&r->sizes));
#pragma omp parallel for schedule(dynamic, 1) num_threads(sp_context_threads(c->host))
    for (int64_t n = 0; n < r->count; n++) refer_row(c, r->rows[n], r->sums + n * width, r->sizes + n * width);
done:
    return status;
}

double spmm_tolerance(const spmm_options *options)
{
    return (options->common.type == SP_F64 ? 1e-12 : 1e-5) + spmm_rounding(options->result);
}

sp_status spmm_compare(const spmm_case *c, const void *values, sp_dense_type type, sp_dense_type weights,
                       double *error)
{
    const int64_t width = c->x.cols;
    const spmm_reference *r = &c->reference;
    const size_t bytes = (size_t)width * spmm_size_of(type);
    char *rows = NULL;
    double worst = 0;
    sp_status status;
    TRY(sp_alloc(c->host, REFERENCE_RUN * width, spmm_size_of(type), (void **)&rows));
    for (int64_t n = 0, next; n < r->count; n = next) {
        for (next = n + 1; next < r->count && next < n + REFERENCE_RUN && r->rows[next] == r->rows[next - 1] + 1;)
            next++;
        TRY(device_copy(c->host, rows, (const char *)values + (size_t)r->rows[n] * bytes,
                        (size_t)(next - n) * bytes));
        for (int64_t j = 0; j < (next - n) * width; j++) {
            const int64_t row = r->rows[n + j / width], length = c->a.row_offsets[row + 1] - c->a.row_offsets[row];
            const double lost = least_rounding(type) + (double)length * least_rounding(weights);
            const double difference = fdim(fabs(value_at(rows, type, j) - r->sums[n * width + j]), lost);
            const double size = r->sizes[n * width + j], relative = difference == 0 ? 0 : difference / size;
            if (!(relative <= worst)) worst = relative; /* NaN shows */
        }
    }
    *error = worst;
done:
    sp_free(c->host, rows);
    return status;
}

/* ---- ours ---------------------------------------------------------------------------------------------- */

typedef struct own_run {
    sp_context *context;
    sp_csr a;
    sp_dense x, y;
    sp_spmm_plan *plan;
} own_run;

static sp_status own_step(void *user)
{
    own_run *run = user;
    return sp_spmm_execute(run->plan, 1, &run->x, 0, &run->y);
}

static const char *const names[SPMM_ALGORITHMS] = {"ours", "row split", "block partition", "bidirectional"};

/* A plan, how many products make a sample, and a product that is compared. */
static sp_status prepare_own(spmm_case *c, own_run *run, sp_spmm_algorithm algorithm, candidate *figures, int *count)
{
    const sp_spmm_options options = {.algorithm = algorithm, .reduce = c->options->reduce,
                                     .transpose = c->options->transpose};
    sp_status status = SP_OK;
    figures->error = -1;
    snprintf(figures->name, sizeof figures->name, "%s", names[algorithm]);
    for (int time = 0; time < 2 && status == SP_OK; time++) { /* the first plan warms up */
        sp_spmm_plan_free(run->plan);
        run->plan = NULL;
        const double began = wall_seconds();
        status = sp_spmm_plan_create(run->context, &run->a, run->x.cols, &options, &run->plan);
        device_finish();
        figures->once_seconds = wall_seconds() - began;
    }
    if (status == SP_OK) {
        status = choose_count(own_step, run, count);
        figures->info = *sp_spmm_plan_info(run->plan); /* 16-bit features may have a plan of their own by now */
    }
    if (status == SP_OK && !c->options->common.no_check) {
        status = spmm_compare(c, run->y.values, run->y.type, SP_DENSE_F32, &figures->error);
        if (status != SP_OK) sp_fail(run->context, status, "%s", sp_last_error(c->host));
    }
    return candidate_failed(run->context, status, figures);
}

/* The algorithms take turns, sample by sample: what slows the machine for a while slows all of them. */
static sp_status measure_own(spmm_case *c, own_run *run)
{
    const spmm_options *o = c->options;
    sp_spmm_plan *plans[SPMM_ALGORITHMS] = {0};
    double spent[SPMM_ALGORITHMS] = {0};
    int counts[SPMM_ALGORITHMS];
    sp_status status = SP_OK;
    for (int i = 0; i < SPMM_ALGORITHMS && status == SP_OK; i++) {
        status = prepare_own(c, run, (sp_spmm_algorithm)i, &c->result->own[i], &counts[i]);
        plans[i] = run->plan;
        run->plan = NULL;
    }
    for (int turn = 0; turn < o->common.repeat * SPMM_ALGORITHMS && status == SP_OK; turn++) {
        const int i = turn % SPMM_ALGORITHMS;
        candidate *figures = &c->result->own[i];
        if (*figures->word || (figures->time.count > 0 && spent[i] > o->common.limit)) continue;
        run->plan = plans[i];
        device_finish();
        const double began = wall_seconds();
        status = batch_step(&(batch){own_step, run, counts[i]});
        device_finish();
        const double seconds = wall_seconds() - began;
        spent[i] += seconds;
        if (status == SP_OK) figures->time.seconds[figures->time.count++] = seconds / counts[i];
        status = candidate_failed(run->context, status, figures);
    }
    for (int i = 0; i < SPMM_ALGORITHMS; i++) {
        if (c->result->own[i].time.count > 0) time_median(&c->result->own[i].time);
        sp_spmm_plan_free(plans[i]);
    }
    run->plan = NULL;
    return status;
}

/* What each plan keeps, and the most that making it and a product take beyond A, X and Y. */
static sp_status count_bytes(spmm_case *c, own_run *run)
{
    byte_counter *counter = &c->counter;
    const bool cuda = sp_context_is_cuda(run->context);
    if (!counter->context) {
        const sp_status status = counter_open(c->host, &c->options->common, c->interrupt, cuda, counter);
        if (status != SP_OK) return sp_fail(run->context, status, "%s", sp_last_error(c->host));
    }
    for (int i = 0; i < SPMM_ALGORITHMS; i++) {
        candidate *figures = &c->result->own[i];
        const sp_spmm_options options = {.algorithm = (sp_spmm_algorithm)i, .reduce = c->options->reduce,
                                         .transpose = c->options->transpose};
        const int64_t before = counter->peak = counter->live;
        sp_spmm_plan *plan = NULL;
        figures->peak_bytes = figures->plan_bytes = -1;
        if (*figures->word) continue;
        device_finish();
        sp_status status = sp_spmm_plan_create(counter->context, &run->a, run->x.cols, &options, &plan);
        if (status == SP_OK) status = sp_spmm_execute(plan, 1, &run->x, 0, &run->y);
        device_finish();
        if (status == SP_OK) {
            figures->plan_bytes = counter->live - before; /* the first product may have added to it */
            figures->peak_bytes = counter->peak - before;
        }
        sp_spmm_plan_free(plan);
        if (status == SP_ERROR_INTERRUPTED)
            return sp_fail(run->context, status, "%s", sp_last_error(counter->context));
    }
    return SP_OK;
}

/* A plan and its products again, without each special path. */
static sp_status measure_without(spmm_case *c, own_run *run)
{
    const spmm_result *r = c->result;
    without path = {0};
    sp_status status = SP_OK;
    char detail[40];
    snprintf(detail, sizeof detail, "x%lld", (long long)r->width);
    while (status == SP_OK && without_next("spmm-", &path)) {
        candidate left = {0};
        int count;
        status = prepare_own(c, run, SP_SPMM_AUTO, &left, &count);
        if (status == SP_OK && !*left.word) status = spmm_time(&c->options->common, own_step, run, &left.time);
        without_report(&path, r->from, detail, &r->own[SP_SPMM_AUTO], &left);
    }
    sp_spmm_plan_free(run->plan);
    run->plan = NULL;
    return status;
}

/* A matrix of the same shape as X or Y where the options say. */
static sp_status make_operand(const spmm_options *o, sp_context *context, int64_t rows, int64_t cols,
                              sp_dense_type type, sp_dense *matrix)
{
    const sp_space space = sp_context_is_cuda(context) && !o->host ? SP_DEVICE : SP_HOST;
    if (o->host != HOST_PINNED) return sp_dense_create(context, rows, cols, type, space, matrix);
    *matrix = (sp_dense){.rows = rows, .cols = cols, .stride = cols, .type = type, .space = SP_HOST};
    return device_pin(context, (size_t)(rows * cols) * spmm_size_of(type), &matrix->values);
}

static void free_operand(const spmm_options *o, sp_context *context, sp_dense *matrix)
{
    if (o->host == HOST_PINNED) device_unpin(matrix->values);
    else sp_dense_free(context, matrix);
}

static sp_status measure_ours(spmm_case *c)
{
    const spmm_options *o = c->options;
    const sp_context_options options = compute_options(&o->common, c->interrupt);
    own_run run = {0};
    sp_status status = sp_context_create(&options, &run.context);
    if (status != SP_OK) return sp_fail(c->host, status, "--device %s: %s", o->common.device, sp_last_error(NULL));
    const sp_space space = sp_context_is_cuda(run.context) ? SP_DEVICE : SP_HOST;
    TRY(sp_csr_copy(run.context, o->transpose ? &c->stored : &c->a, space, &run.a));
    TRY(make_operand(o, run.context, c->x.rows, c->x.cols, c->x.type, &run.x));
    TRY(device_copy(run.context, run.x.values, c->x.values,
                    (size_t)(c->x.rows * c->x.cols) * spmm_size_of(c->x.type)));
    TRY(make_operand(o, run.context, c->a.rows, c->x.cols, o->result, &run.y));
    TRY(measure_own(c, &run));
    TRY(count_bytes(c, &run));
    if (space == SP_HOST) spmm_floor_measure(c, &run.x);
    TRY(measure_without(c, &run));
    if (o->ablation) TRY(spmm_ablation_measure(c, run.context, &run.a, &run.x, &run.y));
done:
    if (status != SP_OK) sp_fail(c->host, status, "%s", sp_last_error(run.context));
    sp_csr_free(run.context, &run.a);
    free_operand(o, run.context, &run.x);
    free_operand(o, run.context, &run.y);
    sp_context_destroy(run.context);
    return status;
}

/* ---- the cases ----------------------------------------------------------------------------------------- */

static void describe(spmm_case *c, const source *from, int64_t width)
{
    spmm_result *r = c->result;
    const sp_csr *a = &c->a;
    const int64_t value = a->values ? (a->value_type == SP_F64 ? 8 : 4) : 0,
                  element = (int64_t)spmm_size_of(c->options->features),
                  sum = (int64_t)spmm_size_of(c->options->result);
    *r = (spmm_result){.from = from, .name = source_name(from), .rows = a->rows, .cols = a->cols, .nnz = a->nnz,
                       .width = width};
    r->gathered_bytes = a->nnz * width * element;
    r->warp_metadata_bytes = spmm_warp_metadata(a);
    r->compulsory_bytes = 8 * (a->rows + 1) + a->nnz * (4 + value) + a->cols * width * element +
                          a->rows * width * sum;
    r->longest_row = longest_of(a->row_offsets, a->rows);
}

static sp_status run_case(spmm_case *c, int64_t width, const spmm_peer_set *peers)
{
    sp_status status;
    TRY(make_features(c, width));
    if (!c->options->common.no_check) TRY(make_reference(c));
    TRY(measure_ours(c));
    TRY(spmm_peers_measure(c, peers));
done:
    drop_reference(c);
    sp_dense_free(c->host, &c->x);
    return status;
}

static bool good(const spmm_options *o, const spmm_result *r)
{
    for (int i = 0; i < SPMM_ALGORITHMS; i++)
        if (*r->own[i].word || (!o->common.no_check && !(r->own[i].error <= spmm_tolerance(o)))) return false;
    for (int i = 0; i < r->variant_count; i++)
        if (!*r->variants[i].word && !o->common.no_check && !(r->variants[i].error <= spmm_tolerance(o))) return false;
    return true;
}

/* The machine and the peers, once the first graph is loaded. */
static sp_status look_around(sp_context *host, const spmm_options *o, machine *m, spmm_peer_set *peers)
{
    bool cuda;
    const sp_status status = machine_look_around(host, &o->common, m, &cuda);
    if (status != SP_OK) return status;
    if (o->host && !cuda) return sp_fail(host, SP_ERROR_ARGUMENT, "--host needs a CUDA device");
    if (o->host) {
        const sp_status measured = device_link(host, m);
        if (measured != SP_OK) return measured;
    }
    spmm_peers_open(host, o, cuda, peers);
    spmm_peers_versions(peers, m->peers, sizeof m->peers);
    char types[64];
    snprintf(types, sizeof types, "features %s, result %s, %s", features_name(o->features), features_name(o->result),
             reduce_name(o->reduce));
    print_machine(m, &o->common, types);
    return SP_OK;
}

static sp_status load_graph(spmm_case *c, const source *from)
{
    sp_csr *stored = c->options->transpose ? &c->stored : &c->a;
    sp_csr_free(c->host, &c->a);
    sp_csr_free(c->host, &c->stored);
    const sp_status status = input_load(c->host, from, &c->options->common, stored);
    return status == SP_OK && c->options->transpose ? sp_csr_transpose(c->host, stored, &c->a) : status;
}

sp_status spmm_run(sp_context *host, const spmm_options *o, const volatile int *interrupt, int *code)
{
    spmm_case c = {.options = o, .interrupt = interrupt, .host = host};
    spmm_result *results = NULL;
    spmm_peer_set peers = {0};
    machine m;
    int done_cases = 0;
    sp_status status;
    c.machine = &m;
    TRY(sp_calloc(host, (int64_t)o->common.source_count * o->widths.count, sizeof *results, (void **)&results));
    if (o->common.json) TRY(io_output_check(host, o->common.json));
    for (int i = 0; i < o->common.source_count; i++) {
        status = load_graph(&c, &o->common.sources[i]);
        if (status == SP_ERROR_ARGUMENT && o->common.sources[i].spec) *code = EXIT_USAGE;
        if (status != SP_OK) goto done;
        if (i == 0) TRY(look_around(host, o, &m, &peers));
        const int64_t own_width = o->widths_given ? 0 : preset_width(&o->common.sources[i]);
        for (int w = 0; w < (own_width ? 1 : o->widths.count); w++) {
            const int64_t width = own_width ? own_width : o->widths.number[w];
            c.result = &results[done_cases];
            describe(&c, &o->common.sources[i], width);
            TRY(run_case(&c, width, &peers));
            /* The best so far: what else uses the link while it is measured must not make ours look fast. */
            if (o->host) TRY(device_link(host, &m));
            done_cases++;
            spmm_report_result(&m, o, c.result);
            if (!good(o, c.result)) *code = EXIT_FAILED;
            if (o->common.json) TRY(spmm_report_json(host, &m, o, results, done_cases));
        }
    }
done:
    sp_csr_free(host, &c.a);
    sp_csr_free(host, &c.stored);
    counter_close(&c.counter);
    spmm_peers_close(&peers);
    sp_free(host, results);
    return status;
}
