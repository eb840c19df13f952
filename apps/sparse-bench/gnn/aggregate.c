/* sparse-bench gnn: aggregation of features of which each row keeps k, in the ways of Li et al., Table II: Â·S as
 * SpGEMM by hashing, without and with the stage that gathers ranges; as compressed rows (MaxK); with dense rows, ours
 * and cuSPARSE's. Every result is compared with that of our dense product, entry by entry.
 *
 * The matrix is GCN's Â of the graph, so that all of them sum; where it is symmetric the gradient needs Â·G, else
 * Âᵀ·G. SpGEMM allocates its result each time; the others write into the same rows. */
#include <math.h>
#include <string.h>

#include "base/longest.h"
#include "sparse-bench/gnn/gnn_bench.h"

/* The operands: Â on the host and where the context computes; X with k entries a row, expanded and as CSR. */
typedef struct aggregate_run {
    gnn_case *c;
    gnn_aggregation *made;
    sp_space space;
    sp_csr host_a, a, host_s, s, product;
    sp_dense x, host_expanded, expanded, y, gradient;
    sp_cbsr kept, slopes;
    sp_spmm_plan *forward, *backward, *plan; /* plan: of the dense product */
    sp_spgemm_options spgemm;
    float *expected; /* of the dense product, on the host */
} aggregate_run;

/* ---- operands ------------------------------------------------------------------------------------------ */

/* Sums of twelve uniform numbers: normal enough. */
static sp_status random_rows(aggregate_run *run, int64_t rows, uint64_t seed, sp_dense *made)
{
    gnn_case *c = run->c;
    sp_dense host;
    sp_status status = sp_dense_create(c->context, rows, run->made->width, SP_DENSE_F32, SP_HOST, &host);
    if (status != SP_OK) return status;
    float *values = host.values;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(c->host))
    for (int64_t at = 0; at < rows * host.cols; at++) {
        double sum = -6;
        for (uint64_t i = 0; i < 12; i++)
            sum += (double)(mix64(seed ^ (uint64_t)at << 8 ^ i) >> 11) * 0x1p-53;
        values[at] = (float)sum;
    }
    status = sp_dense_copy(c->context, &host, run->space, made);
    sp_dense_free(c->context, &host);
    return status;
}

/* The kept entries as a CSR and as dense rows on the host, and both where the context computes. */
static sp_status spread(aggregate_run *run)
{
    sp_context *context = run->c->context;
    const sp_cbsr *kept = &run->kept;
    const int64_t count = kept->rows * kept->k;
    const size_t column = kept->cols <= 256 ? 1 : 2;
    void *columns = NULL;
    sp_status status;
    TRY(sp_array_create(context, count, column, SP_HOST, &columns));
    TRY(sp_csr_create(context, kept->rows, kept->cols, count, SP_F32, SP_HOST, &run->host_s));
    TRY(sp_array_copy(context, count, column, columns, SP_HOST, kept->columns, kept->space));
    TRY(sp_array_copy(context, count, sizeof(float), run->host_s.values, SP_HOST, kept->values, kept->space));
    for (int64_t i = 0; i <= kept->rows; i++) run->host_s.row_offsets[i] = i * kept->k;
    for (int64_t e = 0; e < count; e++)
        run->host_s.col_indices[e] = column == 1 ? ((uint8_t *)columns)[e] : ((uint16_t *)columns)[e];
    TRY(sp_csr_copy(context, &run->host_s, run->space, &run->s));
    TRY(sp_dense_create(context, kept->rows, kept->cols, SP_DENSE_F32, run->space, &run->expanded));
    TRY(sp_maxk_expand(context, kept, &run->expanded));
    TRY(sp_dense_copy(context, &run->expanded, SP_HOST, &run->host_expanded));
done:
    sp_array_free(context, SP_HOST, columns);
    return status;
}

static sp_status prepare(aggregate_run *run)
{
    gnn_case *c = run->c;
    gnn_aggregation *made = run->made;
    sp_context *context = c->context;
    sp_spmm_options options = {0};
    sp_status status = gnn_operator(c->host, &c->data->graph, GNN_GCN, SP_F32, &run->host_a);
    if (status != SP_OK) return sp_fail(context, status, "%s", sp_last_error(c->host));
    const sp_csr *a = &run->host_a;
    made->longest_row = longest_of(a->row_offsets, a->rows);
    TRY(sp_csr_copy(context, a, run->space, &run->a));
    TRY(random_rows(run, a->rows, 1, &run->x));
    TRY(random_rows(run, a->rows, 2, &run->gradient));
    TRY(sp_cbsr_create(context, a->rows, made->width, made->k, SP_DENSE_F32, &run->kept));
    TRY(sp_maxk(context, &run->x, &run->kept));
    TRY(spread(run));
    TRY(sp_cbsr_create(context, a->rows, made->width, made->k, SP_DENSE_F32, &run->slopes));
    TRY(sp_maxk(context, &run->x, &run->slopes));
    TRY(sp_dense_create(context, a->rows, made->width, SP_DENSE_F32, run->space, &run->y));
    TRY(sp_spmm_plan_create(context, &run->a, made->width, &options, &run->forward));
    options.transpose = !c->result->symmetric;
    TRY(sp_spmm_plan_create(context, &run->a, made->width, &options, &run->backward));
done:
    return status;
}

static void drop(aggregate_run *run)
{
    sp_context *context = run->c->context;
    sp_spmm_plan_free(run->forward);
    sp_spmm_plan_free(run->backward);
    sp_csr_free(run->c->host, &run->host_a);
    sp_csr_free(context, &run->a);
    sp_csr_free(context, &run->host_s);
    sp_csr_free(context, &run->s);
    sp_csr_free(context, &run->product);
    sp_dense_free(context, &run->x);
    sp_dense_free(context, &run->host_expanded);
    sp_dense_free(context, &run->expanded);
    sp_dense_free(context, &run->y);
    sp_dense_free(context, &run->gradient);
    sp_cbsr_free(context, &run->kept);
    sp_cbsr_free(context, &run->slopes);
    sp_free(context, run->expected);
}

/* ---- comparison ---------------------------------------------------------------------------------------- */

/* The largest difference between an expected row and a computed one (all columns, or those given), relative to the
 * largest number of the row. */
static void compare_row(const float *expected, int64_t width, const float *got, const int32_t *columns, int64_t count,
                        double *worst)
{
    double size = 0, difference = 0;
    for (int64_t j = 0; j < width; j++) { /* not by fmax: an internal error of gcc 12 for arm64 */
        const double magnitude = fabs((double)expected[j]);
        if (magnitude > size) size = magnitude;
    }
    for (int64_t e = 0; e < count; e++) {
        const double apart = fabs((double)got[e] - (double)expected[columns ? columns[e] : e]);
        if (!(apart <= difference)) difference = apart; /* NaN shows */
    }
    const double relative = difference == 0 ? 0 : difference / size;
    if (!(relative <= *worst)) *worst = relative;
}

/* Y, in any memory, against what is expected. */
static sp_status compare_dense(aggregate_run *run, const void *values, double *error)
{
    const int64_t width = run->made->width, rows = run->host_a.rows;
    float *row = NULL;
    double worst = 0;
    sp_status status = sp_alloc(run->c->context, rows * width, sizeof *row, (void **)&row);
    if (status != SP_OK) return status;
    status = device_copy(run->c->context, row, values, (size_t)(rows * width) * sizeof *row);
    for (int64_t i = 0; i < rows && status == SP_OK; i++)
        compare_row(run->expected + i * width, width, row + i * width, NULL, width, &worst);
    sp_free(run->c->context, row);
    *error = worst;
    return status;
}

static sp_status compare_product(aggregate_run *run, double *error)
{
    sp_context *context = run->c->context;
    const int64_t width = run->made->width;
    sp_csr host = {0};
    float *row = NULL;
    double worst = 0;
    sp_status status;
    TRY(sp_csr_copy(context, &run->product, SP_HOST, &host));
    TRY(sp_alloc(context, width, sizeof *row, (void **)&row));
    for (int64_t i = 0; i < host.rows; i++) {
        memset(row, 0, (size_t)width * sizeof *row);
        for (int64_t k = host.row_offsets[i]; k < host.row_offsets[i + 1]; k++)
            row[host.col_indices[k]] = ((const float *)host.values)[k];
        compare_row(run->expected + i * width, width, row, NULL, width, &worst);
    }
    *error = worst;
done:
    sp_csr_free(context, &host);
    sp_free(context, row);
    return status;
}

static sp_status compare_slopes(aggregate_run *run, double *error)
{
    sp_context *context = run->c->context;
    const sp_cbsr *slopes = &run->slopes;
    const int64_t count = slopes->rows * slopes->k, width = slopes->cols, k = slopes->k;
    float *values = NULL;
    double worst = 0;
    sp_status status;
    TRY(sp_alloc(context, count, sizeof *values, (void **)&values));
    TRY(sp_array_copy(context, count, sizeof *values, values, SP_HOST, slopes->values, slopes->space));
    for (int64_t i = 0; i < slopes->rows; i++)
        compare_row(run->expected + i * width, width, values + i * k, run->host_s.col_indices + i * k, k, &worst);
    *error = worst;
done:
    sp_free(context, values);
    return status;
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

static sp_status select_step(void *user)
{
    aggregate_run *run = user;
    return sp_maxk(run->c->context, &run->x, &run->kept);
}

static sp_status maxk_step(void *user)
{
    aggregate_run *run = user;
    return sp_maxk_spmm(run->forward, 1, &run->kept, 0, &run->y);
}

static sp_status maxk_backward_step(void *user)
{
    aggregate_run *run = user;
    return sp_maxk_spmm_backward(run->backward, &run->gradient, &run->slopes);
}

static sp_status spgemm_step(void *user)
{
    aggregate_run *run = user;
    sp_csr_free(run->c->context, &run->product);
    return sp_spgemm(run->c->context, &run->a, &run->s, &run->spgemm, &run->product, NULL);
}

static sp_status dense_step(void *user)
{
    aggregate_run *run = user;
    return sp_spmm_execute(run->plan, 1, &run->expanded, 0, &run->y);
}

static sp_status measure(aggregate_run *run, int kernel, sp_status (*step)(void *),
                         sp_status (*compare)(aggregate_run *, double *))
{
    const gnn_options *o = run->c->options;
    candidate *figures = &run->made->kernels[kernel];
    sp_status status = step == spgemm_step ? time_steps(&o->common, step, NULL, run, &figures->time)
                                           : spmm_time(&o->common, step, run, &figures->time);
    if (status == SP_OK && !o->common.no_check && compare) status = compare(run, &figures->error);
    return candidate_failed(run->c->context, status, figures);
}

static sp_status compare_y(aggregate_run *run, double *error) { return compare_dense(run, run->y.values, error); }

static sp_status measure_spgemm(aggregate_run *run, int kernel, sp_spgemm_algorithm algorithm, sp_aia aia)
{
    run->spgemm = (sp_spgemm_options){.algorithm = algorithm, .aia = aia};
    return measure(run, kernel, spgemm_step, compare_product);
}

/* What the other results are compared with: our product with dense rows, which spmm compares with sums in f64. */
static sp_status expect(aggregate_run *run, sp_spmm_plan *plan, const sp_dense *x)
{
    sp_context *context = run->c->context;
    const int64_t count = run->y.rows * run->y.cols;
    sp_status status = sp_spmm_execute(plan, 1, x, 0, &run->y);
    if (status == SP_OK && !run->expected)
        status = sp_alloc(context, count, sizeof *run->expected, (void **)&run->expected);
    if (status == SP_OK)
        status = sp_array_copy(context, count, sizeof *run->expected, run->expected, SP_HOST, run->y.values,
                               run->space);
    return status;
}

/* The fastest of its algorithms. */
static sp_status measure_cusparse(aggregate_run *run)
{
    const gnn_options *o = run->c->options;
    const spmm_options as_spmm = {.common = o->common}; /* f32 */
    const spmm_peer *cusparse = &spmm_peer_cusparse;
    candidate *figures = &run->made->kernels[AGGREGATE_CUSPARSE];
    void *state = NULL;
    const void *y;
    bool loaded = false;
    sp_status status = cusparse->open(run->c->host, &as_spmm, &state);
    if (status == SP_OK) status = cusparse->load(state, &run->host_a, &run->host_expanded);
    loaded = status == SP_OK;
    for (int i = 0; status == SP_OK && cusparse->algorithms[i]; i++) {
        timing time;
        TRY(cusparse->prepare(state, i));
        TRY(spmm_time(&o->common, cusparse->run, state, &time));
        if (*figures->name && time.median >= figures->time.median) continue;
        snprintf(figures->name, sizeof figures->name, "%s", cusparse->algorithms[i]);
        figures->time = time;
        TRY(cusparse->view(state, &y));
        if (!o->common.no_check) TRY(compare_dense(run, y, &figures->error));
    }
done:
    if (loaded) cusparse->unload(state);
    if (state) cusparse->close(state);
    return candidate_failed(run->c->host, status, figures);
}

static sp_status measure_all(aggregate_run *run)
{
    sp_status status;
    TRY(prepare(run));
    TRY(expect(run, run->forward, &run->expanded));
    TRY(measure(run, AGGREGATE_SELECT, select_step, NULL));
    TRY(measure(run, AGGREGATE_MAXK, maxk_step, compare_y));
    run->plan = run->forward;
    TRY(measure(run, AGGREGATE_SPMM, dense_step, compare_y));
    TRY(measure_spgemm(run, AGGREGATE_HASH, SP_SPGEMM_HASH, SP_AIA_OFF));
    if (sp_context_is_cuda(run->c->context)) {
        TRY(measure_spgemm(run, AGGREGATE_HASH_AIA, SP_SPGEMM_HASH, SP_AIA_ON));
        TRY(measure_cusparse(run));
    } else {
        const sp_status none = sp_fail(run->c->context, SP_ERROR_UNSUPPORTED, "it is there on CUDA alone");
        TRY(candidate_failed(run->c->context, none, &run->made->kernels[AGGREGATE_HASH_AIA]));
        TRY(candidate_failed(run->c->context, none, &run->made->kernels[AGGREGATE_CUSPARSE]));
    }
    TRY(measure_spgemm(run, AGGREGATE_SPGEMM, SP_SPGEMM_AUTO, SP_AIA_AUTO));
    TRY(expect(run, run->backward, &run->gradient));
    TRY(measure(run, AGGREGATE_MAXK_BACKWARD, maxk_backward_step, compare_slopes));
done:
    return status;
}

sp_status gnn_aggregate(gnn_case *c, int64_t width, int64_t k)
{
    gnn_aggregation *made = &c->result->aggregations[c->result->aggregation_count++];
    aggregate_run run = {.c = c, .made = made, .space = sp_context_is_cuda(c->context) ? SP_DEVICE : SP_HOST};
    *made = (gnn_aggregation){.width = width, .k = k};
    for (int i = 0; i < AGGREGATE_KERNELS; i++) made->kernels[i].error = -1;
    const sp_status status = measure_all(&run);
    drop(&run);
    return status;
}
