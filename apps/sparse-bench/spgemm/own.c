/* Our own product: whole calls, and where asked the ablation of the gathering stage and the numeric phase alone. */
#include <math.h>
#include <string.h>

#include "sparse-bench/bench.h"

/* ---- a product ----------------------------------------------------------------------------------------- */

typedef struct own_run {
    sp_context *context;
    sp_csr a, b_own; /* where the context computes */
    const sp_csr *b;
    sp_spgemm_options options;
    sp_spgemm_plan *plan;
    sp_csr c;
    sp_spgemm_info info, infos[MAX_SAMPLES];
    double first_seconds; /* of the first product */
} own_run;

static sp_status own_step(void *user)
{
    own_run *run = user;
    sp_status status = sp_spgemm(run->context, &run->a, run->b, &run->options, &run->c, &run->info);
    if (status == SP_OK) sp_csr_free(run->context, &run->c);
    return status;
}

static void own_taken(void *user, int sample)
{
    own_run *run = user;
    run->infos[sample] = run->info;
}

static sp_status measure(own_run *run, const bench_options *options, candidate *result, sp_spgemm_info *info)
{
    sp_status status = time_steps(options, own_step, own_taken, run, &result->time);
    if (status == SP_OK) *info = run->infos[result->time.middle];
    result->peak_bytes = known_bytes(info->peak_bytes);
    return candidate_failed(run->context, status, result);
}

/* The rows that will be compared, taken from a product before it is timed. */
static sp_status keep_rows(bench_case *c, own_run *run)
{
    const bool first = c->ours.offsets == NULL;
    sp_status status;
    const double began = wall_seconds();
    TRY(sp_spgemm(run->context, &run->a, run->b, &run->options, &run->c, &run->info));
    run->first_seconds = wall_seconds() - began;
    const raw_matrix raw = raw_of(&run->c);
    if (first) {
        bench_result *r = c->result;
        const size_t value = c->options->common.type == SP_F32 ? sizeof(float) : sizeof(double);
        r->bytes += 8 * (run->c.rows + 1) + run->c.nnz * (int64_t)(4 + (run->c.values ? value : 0));
        r->info = run->info;
    }
    if (c->options->common.no_check) goto done;
    TRY(choose_rows(c->host, &run->c, &c->a, c->b, &c->ranges));
    TRY(extract_rows(c->host, &raw, &c->ranges, &c->ours));
done:
    sp_csr_free(run->context, &run->c);
    if (status != SP_OK && *sp_last_error(c->host)) sp_fail(run->context, status, "%s", sp_last_error(c->host));
    return status;
}

/* ---- what else may be asked for ------------------------------------------------------------------------ */

const sp_aia aia_modes[AIA_MODES] = {SP_AIA_UNCACHED, SP_AIA_OFF, SP_AIA_ON};
const char *const aia_names[AIA_MODES] = {"stage off, uncached loads", "stage off", "stage on"};

static sp_status measure_aia(bench_case *c, own_run *run)
{
    const sp_spgemm_options before = run->options;
    sp_status status = SP_OK;
    run->options.algorithm = SP_SPGEMM_HASH;
    for (int i = 0; i < AIA_MODES && status == SP_OK; i++) {
        candidate *result = &c->result->aia[i];
        snprintf(result->name, sizeof result->name, "%s", aia_names[i]);
        run->options.aia = aia_modes[i];
        if (sp_context_is_cuda(run->context))
            status = measure(run, &c->options->common, result, &c->result->aia_info[i]);
        else
            status = candidate_failed(run->context, sp_fail(run->context, SP_ERROR_UNSUPPORTED,
                                                            "the CPU has no such stage"), result);
    }
    run->options = before;
    return status;
}

static sp_status making_step(void *user)
{
    own_run *run = user;
    sp_spgemm_plan_free(run->plan);
    run->plan = NULL;
    return sp_spgemm_plan_create(run->context, &run->a, run->b, &run->options, &run->plan);
}

static sp_status plan_step(void *user)
{
    own_run *run = user;
    return sp_spgemm_plan_execute(run->plan, 1, &run->a, run->b, 0, &run->c);
}

/* C by a plan must be C. */
static sp_status check_plan(bench_case *c, own_run *run)
{
    extract made = {0};
    verdict v = {0};
    const raw_matrix raw = raw_of(&run->c);
    sp_status status = extract_rows(c->host, &raw, &c->ranges, &made);
    if (status != SP_OK) return sp_fail(run->context, status, "%s", sp_last_error(c->host));
    compare_extracts(&c->a, c->b, &c->options->common, &c->ranges, &c->ours, &made, &v);
    extract_free(c->host, &made);
    return v.good ? SP_OK : sp_fail(run->context, SP_ERROR_MATRIX, "a plan gives another C: %s", v.sentence);
}

/* What the plan keeps, the pattern of C included, and the most that making it and a product take beyond C. */
static sp_status count_plan(bench_case *c, own_run *run, candidate *result)
{
    byte_counter counter;
    sp_spgemm_plan *plan = NULL;
    sp_csr product = {0};
    sp_status status = counter_open(c->host, &c->options->common, c->interrupt, sp_context_is_cuda(run->context),
                                    &counter);
    if (status != SP_OK) return sp_fail(run->context, status, "%s", sp_last_error(c->host));
    device_finish();
    status = sp_spgemm_plan_create(counter.context, &run->a, run->b, &run->options, &plan);
    if (status == SP_OK) status = sp_spgemm_plan_execute(plan, 1, &run->a, run->b, 0, &product);
    device_finish();
    if (status == SP_OK) {
        const int64_t with_product = counter.live;
        sp_csr_free(counter.context, &product);
        result->plan_bytes = counter.live;
        result->peak_bytes = counter.peak - (with_product - counter.live);
    } else if (status == SP_ERROR_INTERRUPTED) {
        sp_fail(run->context, status, "%s", sp_last_error(counter.context));
    } else {
        status = SP_OK; /* the time stands without these figures */
    }
    sp_spgemm_plan_free(plan);
    counter_close(&counter);
    return status;
}

static sp_status time_plan(bench_case *c, own_run *run, candidate *result)
{
    snprintf(result->name, sizeof result->name, "plan");
    result->peak_bytes = result->plan_bytes = -1;
    timing making;
    sp_status status = time_steps(&c->options->common, making_step, NULL, run, &making);
    if (status == SP_OK) {
        result->once_seconds = making.median;
        c->result->plan_info = *sp_spgemm_plan_info(run->plan);
        status = time_steps(&c->options->common, plan_step, NULL, run, &result->time);
    }
    if (status == SP_OK && !c->options->common.no_check) status = check_plan(c, run);
    sp_csr_free(run->context, &run->c);
    sp_spgemm_plan_free(run->plan);
    run->plan = NULL;
    return candidate_failed(run->context, status, result);
}

/* The product and the plan again, without each special path. */
static sp_status measure_without(bench_case *c, own_run *run)
{
    const bench_result *r = c->result;
    without path = {0};
    sp_status status = SP_OK;
    while (status == SP_OK && without_next("spgemm-", &path)) {
        candidate product = {0}, plan = {0};
        sp_spgemm_info info = {0};
        status = measure(run, &c->options->common, &product, &info);
        if (status == SP_OK && c->options->plan) status = time_plan(c, run, &plan);
        without_report(&path, r->from, r->operation, &r->own, &product);
        if (c->options->plan) without_report(&path, r->from, "plan", &r->plan, &plan);
    }
    return status;
}

/* ---- one case ------------------------------------------------------------------------------------------ */

sp_status own_measure(bench_case *c)
{
    const spgemm_options *o = c->options;
    const sp_context_options options = compute_options(&o->common, c->interrupt);
    own_run *run = NULL;
    sp_context *context;
    sp_status status = sp_context_create(&options, &context);
    if (status != SP_OK) return sp_fail(c->host, status, "--device %s: %s", o->common.device, sp_last_error(NULL));
    TRY(sp_calloc(context, 1, sizeof *run, (void **)&run));
    *run = (own_run){.context = context, .options = {.semiring = o->common.semiring, .algorithm = o->algorithm}};
    const sp_space space = sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST;
    TRY(sp_csr_copy(context, &c->a, space, &run->a));
    run->b = &run->a;
    snprintf(c->result->own.name, sizeof c->result->own.name, "ours");
    if (c->b != &c->a) {
        TRY(sp_csr_copy(context, c->b, space, &run->b_own));
        run->b = &run->b_own;
    }
    TRY(candidate_failed(context, keep_rows(c, run), &c->result->own));
    if (*c->result->own.word) goto done;
    TRY(measure(run, &o->common, &c->result->own, &c->result->info));
    c->result->own.time.first = run->first_seconds;
    if (o->aia) TRY(measure_aia(c, run));
    if (o->plan) TRY(time_plan(c, run, &c->result->plan));
    if (o->plan && !*c->result->plan.word) TRY(count_plan(c, run, &c->result->plan));
    TRY(measure_without(c, run));
done:
    if (status != SP_OK) sp_fail(c->host, status, "%s", sp_last_error(context));
    if (run) {
        sp_csr_free(context, &run->a);
        sp_csr_free(context, &run->b_own);
        sp_free(context, run);
    }
    sp_context_destroy(context);
    return status;
}
