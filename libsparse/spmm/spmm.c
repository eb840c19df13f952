/* The public sparse-dense products: plans, SpMM, SDDMM and the softmax over edges. Checks shapes and types, brings
 * operands to the back end's space and results back, calls the back end.
 *
 * A transposed plan transposes A once, with the place of each entry in A: new values go through these places, and
 * the arguments of a maximum come back through them. */
#include <string.h>

#include "spmm/plan.h"

/* ---- plans --------------------------------------------------------------------------------------------- */

static sp_status check_options(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options)
{
    const int64_t longest = a->rows > a->cols ? a->rows : a->cols;
    if (width < 0) return sp_fail(context, SP_ERROR_ARGUMENT, "a plan for %lld columns", (long long)width);
    if (width > PTRDIFF_MAX / 8 / (longest + 1)) /* 8: bytes of a number */
        return sp_fail(context, SP_ERROR_OVERFLOW, "a plan for %lld rows of %lld columns, which cannot be addressed",
                       (long long)longest, (long long)width);
    if ((unsigned)options->algorithm > SP_SPMM_BIDIRECTIONAL || (unsigned)options->reduce > SP_REDUCE_MIN)
        return sp_fail(context, SP_ERROR_ARGUMENT, "algorithm %d or reduction %d does not exist",
                       (int)options->algorithm, (int)options->reduce);
    return SP_OK;
}

/* own = Aᵀ and its places in A. They travel through the transpose where f64 values do: as eight bytes each. */
static sp_status transpose(sp_spmm_plan *plan, const sp_csr *a)
{
    sp_context *context = plan->context;
    const sp_backend *backend = context->backend;
    sp_csr numbered = *a;
    sp_status status;
    numbered.value_type = SP_F64;
    numbered.values = NULL;
    TRY(sp_array_create(context, a->nnz, sizeof(int64_t), context->backend->space, &numbered.values));
    TRY(backend->number(context, a->nnz, numbered.values));
    TRY(sp_csr_transpose(context, &numbered, &plan->own));
    plan->places = plan->own.values;
    plan->own.values = NULL;
    plan->own.value_type = a->value_type;
    if (a->values) {
        const size_t size = sp_value_size(a->value_type);
        TRY(sp_array_create(context, a->nnz, size, context->backend->space, &plan->own.values));
        TRY(backend->gather(context, plan->places, a->nnz, a->values, size, plan->own.values));
    }
done:
    sp_array_free(context, context->backend->space, numbered.values);
    return status;
}

/* plan->a, in the back end's space. */
static sp_status bring_matrix(sp_spmm_plan *plan, const sp_csr *a, bool transposed)
{
    const sp_space space = plan->context->backend->space;
    sp_csr moved = {0};
    sp_status status = SP_OK;
    if (transposed) {
        if (a->space != space) TRY(sp_csr_copy(plan->context, a, space, &moved));
        TRY(transpose(plan, a->space == space ? a : &moved));
    } else if (a->space != space) {
        TRY(sp_csr_copy(plan->context, a, space, &plan->own));
    }
    plan->a = plan->own.row_offsets ? plan->own : *a;
done:
    sp_csr_free(plan->context, &moved);
    return status;
}

sp_status sp_spmm_plan_create(sp_context *context, const sp_csr *a, int64_t width, const sp_spmm_options *options,
                              sp_spmm_plan **plan)
{
    const sp_spmm_options asked = options ? *options : (sp_spmm_options){0};
    const double start = wall_seconds();
    sp_spmm_plan *made = NULL;
    sp_status status;
    if (plan) *plan = NULL;
    TRY(sp_require(context, __func__, "plan", plan));
    TRY(sp_require_csr(context, __func__, "A", a));
    TRY(check_options(context, a, width, &asked));
    TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    made->context = context;
    sp_context_retain(context);
    made->options = asked;
    made->options.transpose = false;
    TRY(bring_matrix(made, a, asked.transpose));
    TRY(context->backend->spmm_prepare(context, &made->a, width, &made->options, &made->state, &made->info));
    if (made->places) made->info.metadata_bytes += made->a.nnz * (int64_t)sizeof *made->places;
    made->info.plan_seconds = wall_seconds() - start;
    *plan = made;
done:
    if (status != SP_OK) sp_spmm_plan_free(made);
    return status;
}

const sp_spmm_info *sp_spmm_plan_info(const sp_spmm_plan *plan) { return plan ? &plan->info : NULL; }

sp_status sp_spmm_plan_set_values(sp_spmm_plan *plan, const void *values, sp_space space)
{
    if (!plan) return sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: plan is NULL", __func__);
    sp_context *context = plan->context;
    const sp_backend *backend = context->backend;
    const int64_t nnz = plan->a.nnz;
    const size_t size = sp_value_size(plan->a.value_type), bytes = (size_t)nnz * size;
    void *moved = NULL;
    sp_status status;
    TRY(sp_require(context, __func__, "values", values));
    TRY(sp_require_space(context, __func__, "values", space));
    if (!plan->values) TRY(sp_array_create(context, nnz, size, context->backend->space, &plan->values));
    if (plan->places && space != backend->space) {
        TRY(sp_array_create(context, nnz, size, context->backend->space, &moved));
        TRY(backend->copy(context, moved, backend->space, values, space, bytes));
    }
    if (plan->places) TRY(backend->gather(context, plan->places, nnz, moved ? moved : values, size, plan->values));
    else TRY(backend->copy(context, plan->values, backend->space, values, space, bytes));
    plan->a.values = plan->values;
    TRY(backend->spmm_refresh(context, &plan->a, plan->state));
done:
    sp_array_free(context, context->backend->space, moved);
    return status;
}

void sp_spmm_plan_free(sp_spmm_plan *plan)
{
    if (!plan) return;
    sp_context *context = plan->context;
    if (plan->state) context->backend->spmm_forget(context, plan->state);
    sp_csr_free(context, &plan->own);
    sp_array_free(context, context->backend->space, plan->values);
    sp_array_free(context, context->backend->space, plan->places);
    sp_free(context, plan);
    sp_context_destroy(context);
}

/* ---- the product --------------------------------------------------------------------------------------- */

static sp_status check_rows(sp_context *context, const char *call, const char *name, const sp_dense *m, int64_t rows)
{
    if (m->rows == rows) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s is %lld x %lld, and %lld rows are needed", call, name,
                   (long long)m->rows, (long long)m->cols, (long long)rows);
}

static bool types_fit(const sp_csr *a, sp_dense_type x, sp_dense_type y)
{
    if ((unsigned)x > SP_DENSE_BF16 || (unsigned)y > SP_DENSE_BF16) return false;
    if (x == SP_DENSE_F64 || y == SP_DENSE_F64) return x == y && (!a->values || a->value_type == SP_F64);
    return (y == SP_DENSE_F32 || y == x) && (!a->values || a->value_type == SP_F32);
}

/* As many matrices of X and Y, those of Y apart from each other: one behind the other, or columns of wider ones. */
static sp_status check_batch(sp_context *context, const char *call, const sp_dense *x, const sp_dense *y)
{
    const int64_t batch = sp_dense_batch(y), each = sp_dense_length(y);
    const sp_dense one = sp_dense_of(y, 0);
    if (sp_dense_batch(x) != batch)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: X is a batch of %lld matrices and Y of %lld", call,
                       (long long)sp_dense_batch(x), (long long)batch);
    if (batch == 1 || sp_dense_bytes(y) == 0) return SP_OK;
    if ((size_t)y->batch_stride * sp_dense_size(y->type) >= sp_dense_bytes(&one)) return SP_OK;
    if (y->batch_stride >= each && (batch - 1) * y->batch_stride + each <= y->stride) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: the matrices of the batch Y, %lld apart, overlap", call,
                   (long long)y->batch_stride);
}

static sp_status check_product(sp_spmm_plan *plan, const char *call, const sp_dense *x, const sp_dense *y)
{
    if (!plan) return sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: plan is NULL", call);
    sp_context *context = plan->context;
    sp_status status;
    TRY(sp_require_any_dense(context, call, "X", x));
    TRY(sp_require_any_dense(context, call, "Y", y));
    TRY(check_rows(context, call, "X", x, plan->a.cols));
    TRY(check_rows(context, call, "Y", y, plan->a.rows));
    TRY(check_batch(context, call, x, y));
    TRY(sp_require_dense_apart(context, call, "Y", y, "X", x));
    if (x->cols != y->cols)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "X has %lld columns and Y %lld", (long long)x->cols,
                         (long long)y->cols);
    else if (!types_fit(&plan->a, x->type, y->type))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "A is %s, X %s and Y %s, which do not go together",
                         plan->a.values ? sp_value_type_name(plan->a.value_type) : "a pattern",
                         sp_dense_type_name(x->type), sp_dense_type_name(y->type));
done:
    return status;
}

/* Whether the back end can work on the matrix itself. */
static bool suits(const sp_backend *backend, const sp_dense *m)
{
    return m->space == backend->space && m->layout == SP_ROW_MAJOR;
}

/* The product with all of X and Y in the back end's space, by rows; `argument` (or NULL) lies in Y's. *begun: Y may
 * have changed. */
static sp_status multiply_there(sp_spmm_plan *plan, double alpha, const sp_dense *x, double beta, sp_dense *y,
                                int64_t *argument, bool *begun)
{
    sp_context *context = plan->context;
    const sp_backend *backend = context->backend;
    const bool there = suits(backend, y), moves = argument && y->space != backend->space;
    const int64_t count = y->rows * y->cols;
    sp_dense x_copy = {0}, y_copy = {0};
    int64_t *places = argument;
    sp_status status = SP_OK;
    *begun = false;
    /* Nothing is moved before there is room for all. */
    if (!there) TRY(sp_dense_create(context, y->rows, y->cols, y->type, backend->space, &y_copy));
    if (moves) TRY(sp_array_create(context, count, sizeof *places, backend->space, (void **)&places));
    if (!suits(backend, x)) TRY(sp_dense_copy(context, x, backend->space, &x_copy));
    if (!there && beta != 0) TRY(sp_dense_move(context, y, &y_copy));
    *begun = there;
    TRY(backend->spmm(context, &plan->a, &plan->options, plan->state, alpha, x_copy.values ? &x_copy : x, beta,
                      there ? y : &y_copy, places));
    *begun = true;
    if (argument && plan->places)
        TRY(backend->gather(context, places, count, plan->places, sizeof *places, places));
    if (!there) TRY(sp_dense_move(context, &y_copy, y));
    if (moves)
        TRY(backend->copy(context, argument, y->space, places, backend->space, (size_t)count * sizeof *places));
done:
    sp_dense_free(context, &x_copy);
    sp_dense_free(context, &y_copy);
    if (places != argument) sp_array_free(context, context->backend->space, places);
    return status;
}

/* Arguments of Aᵀ, in either space, become those of A, through 1 MB in the back end's, or less if memory is short. */
static sp_status translate(sp_spmm_plan *plan, int64_t count, int64_t *argument, sp_space space)
{
    sp_context *context = plan->context;
    const sp_backend *backend = context->backend;
    int64_t most = count < 1 << 17 ? count : 1 << 17;
    int64_t *part = NULL;
    sp_status status = SP_OK;
    if (space == backend->space)
        return backend->gather(context, argument, count, plan->places, sizeof *argument, argument);
    for (;; most /= 2) {
        status = sp_array_create(context, most, sizeof *part, backend->space, (void **)&part);
        if (status != SP_ERROR_DEVICE_MEMORY || most <= 1 << 12) break;
    }
    for (int64_t done = 0; done < count && status == SP_OK; done += most) {
        const int64_t now = count - done < most ? count - done : most;
        const size_t bytes = (size_t)now * sizeof *part;
        TRY(backend->copy(context, part, backend->space, argument + done, space, bytes));
        TRY(backend->gather(context, part, now, plan->places, sizeof *part, part));
        TRY(backend->copy(context, argument + done, space, part, backend->space, bytes));
    }
done:
    sp_array_free(context, context->backend->space, part);
    return status;
}

/* The product with operands in any space. What lies in host memory and does not fit the device stays there: the back
 * end streams it, tile by tile. */
static sp_status multiply(sp_spmm_plan *plan, double alpha, const sp_dense *x, double beta, sp_dense *y,
                          int64_t *argument)
{
    sp_context *context = plan->context;
    const sp_backend *backend = context->backend;
    bool begun;
    sp_status status = multiply_there(plan, alpha, x, beta, y, argument, &begun);
    if (status != SP_ERROR_DEVICE_MEMORY || begun || (x->space == backend->space && y->space == backend->space) ||
        x->layout != SP_ROW_MAJOR || y->layout != SP_ROW_MAJOR)
        return status;
    status = backend->spmm(context, &plan->a, &plan->options, plan->state, alpha, x, beta, y, argument);
    if (status == SP_OK && argument && plan->places)
        status = translate(plan, y->rows * y->cols, argument, y->space);
    return status;
}

/* Whether a batch is the columns of one matrix, `all`. */
static bool is_one_matrix(const sp_dense *m, sp_dense *all)
{
    const bool by_rows = m->layout == SP_ROW_MAJOR;
    *all = sp_dense_of(m, 0);
    all->cols *= sp_dense_batch(m);
    return m->batch_stride == (by_rows ? m->cols : m->cols * m->stride) && (!by_rows || all->cols <= m->stride);
}

sp_status sp_spmm_execute(sp_spmm_plan *plan, double alpha, const sp_dense *x, double beta, sp_dense *y)
{
    sp_status status = check_product(plan, __func__, x, y);
    sp_dense one_x, one_y;
    if (status != SP_OK) return status;
    if (sp_dense_batch(y) == 1) return multiply(plan, alpha, x, beta, y, NULL);
    if (is_one_matrix(x, &one_x) && is_one_matrix(y, &one_y)) return multiply(plan, alpha, &one_x, beta, &one_y, NULL);
    for (int64_t b = 0; b < sp_dense_batch(y) && status == SP_OK; b++) {
        one_x = sp_dense_of(x, b);
        one_y = sp_dense_of(y, b);
        status = multiply(plan, alpha, &one_x, beta, &one_y, NULL);
    }
    return status;
}

/* ---- several heads --------------------------------------------------------------------------------------- */

static sp_status check_heads(sp_spmm_plan *plan, const void *values, sp_space space, const sp_dense *x,
                             const sp_dense *y)
{
    static const char call[] = "sp_spmm_execute_heads";
    sp_status status = check_product(plan, call, x, y);
    if (status != SP_OK) return status;
    sp_context *context = plan->context;
    sp_csr weighted = plan->a;
    const size_t bytes = (size_t)sp_dense_batch(y) * (size_t)plan->a.nnz * sp_value_size(plan->a.value_type);
    if (plan->a.nnz > 0) TRY(sp_require(context, call, "values", values));
    TRY(sp_require_space(context, call, "values", space));
    TRY(sp_require_apart(context, call, "values", values, bytes, "Y", y->values, sp_dense_bytes(y)));
    weighted.values = y->values; /* any: that there are values decides which types fit */
    if (y->values && !types_fit(&weighted, x->type, y->type))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: values are %s, X %s and Y %s, which do not go together", call,
                         sp_value_type_name(weighted.value_type), sp_dense_type_name(x->type),
                         sp_dense_type_name(y->type));
done:
    return status;
}

sp_status sp_spmm_execute_heads(sp_spmm_plan *plan, const void *values, sp_space space, double alpha, const sp_dense *x,
                                double beta, sp_dense *y)
{
    sp_dense one_x, one_y;
    bool done = false;
    sp_status status = check_heads(plan, values, space, x, y);
    if (status != SP_OK || y->rows == 0 || y->cols == 0) return status;
    const sp_backend *backend = plan->context->backend;
    if (backend->spmm_heads && space == backend->space && suits(backend, x) && suits(backend, y) &&
        is_one_matrix(x, &one_x) && is_one_matrix(y, &one_y)) {
        sp_csr weighted = plan->a;
        weighted.values = (void *)(uintptr_t)values; /* which are not written */
        status = backend->spmm_heads(plan->context, &weighted, &plan->options, plan->state, plan->places, y->cols,
                                     alpha, &one_x, beta, &one_y, &done);
    }
    const size_t head = (size_t)plan->a.nnz * sp_value_size(plan->a.value_type);
    for (int64_t h = 0; h < sp_dense_batch(y) && status == SP_OK && !done; h++) {
        one_x = sp_dense_of(x, h);
        one_y = sp_dense_of(y, h);
        if (head > 0) status = sp_spmm_plan_set_values(plan, (const char *)values + (size_t)h * head, space);
        if (status == SP_OK) status = multiply(plan, alpha, &one_x, beta, &one_y, NULL);
    }
    return status;
}

sp_status sp_spmm_execute_argument(sp_spmm_plan *plan, const sp_dense *x, sp_dense *y, int64_t *argument)
{
    sp_status status = check_product(plan, __func__, x, y);
    if (status != SP_OK) return status;
    if (sp_dense_batch(y) > 1)
        return sp_fail(plan->context, SP_ERROR_UNSUPPORTED, "%s: a batch has no argument", __func__);
    if (!spmm_is_extreme(&plan->options))
        return sp_fail(plan->context, SP_ERROR_ARGUMENT, "only a maximum or minimum has an argument");
    if (y->rows > 0 && y->cols > 0) {
        const size_t places = (size_t)y->rows * (size_t)y->cols * sizeof *argument;
        TRY(sp_require(plan->context, __func__, "argument", argument));
        TRY(sp_require_apart(plan->context, __func__, "argument", argument, places, "X", x->values,
                             sp_dense_bytes(x)));
        TRY(sp_require_apart(plan->context, __func__, "argument", argument, places, "Y", y->values,
                             sp_dense_bytes(y)));
    }
    status = multiply(plan, 1, x, 0, y, argument);
done:
    return status;
}

/* ---- over the edges ------------------------------------------------------------------------------------ */

/* A's pattern in the back end's space: *used points at it, `copy` owns what had to be moved. */
static sp_status bring_pattern(sp_context *context, const sp_csr *a, sp_csr *pattern, sp_csr *copy,
                               const sp_csr **used)
{
    *pattern = *a;
    pattern->values = NULL;
    *used = pattern;
    memset(copy, 0, sizeof *copy);
    if (a->space == context->backend->space) return SP_OK;
    *used = copy;
    return sp_csr_copy(context, pattern, context->backend->space, copy);
}

static sp_status check_sampled(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y,
                               const void *values)
{
    static const char call[] = "sp_sddmm";
    sp_status status;
    TRY(sp_require_csr(context, call, "A", a));
    TRY(sp_require_any_dense(context, call, "X", x));
    TRY(sp_require_any_dense(context, call, "Y", y));
    TRY(check_rows(context, call, "X", x, a->rows));
    TRY(check_rows(context, call, "Y", y, a->cols));
    if (x->layout != SP_ROW_MAJOR || y->layout != SP_ROW_MAJOR)
        return sp_fail(context, SP_ERROR_UNSUPPORTED, "%s: %s is stored by columns, which this call does not take",
                       call, x->layout != SP_ROW_MAJOR ? "X" : "Y");
    if (sp_dense_batch(x) != sp_dense_batch(y))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: X is a batch of %lld matrices and Y of %lld", call,
                       (long long)sp_dense_batch(x), (long long)sp_dense_batch(y));
    if (x->cols != y->cols || x->type != y->type || (x->type != SP_DENSE_F32 && x->type != SP_DENSE_F64))
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "X has %lld columns of %s and Y %lld of %s: as many of both, all f32 or all f64, are needed",
                       (long long)x->cols, sp_dense_type_name(x->type), (long long)y->cols,
                       sp_dense_type_name(y->type));
    if (a->nnz == 0) return SP_OK;
    const size_t bytes = (size_t)sp_dense_batch(x) * (size_t)a->nnz * sp_dense_size(x->type);
    TRY(sp_require(context, call, "values", values));
    TRY(sp_require_apart(context, call, "values", values, bytes, "X", x->values, sp_dense_bytes(x)));
    TRY(sp_require_apart(context, call, "values", values, bytes, "Y", y->values, sp_dense_bytes(y)));
done:
    return status;
}

/* With one matrix each, which may lie in either space. */
static sp_status sample(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values)
{
    const sp_space space = context->backend->space;
    sp_dense x_copy = {0}, y_copy = {0};
    sp_status status = SP_OK;
    if (x->space != space) TRY(sp_dense_copy(context, x, space, &x_copy));
    if (y->space != space) TRY(sp_dense_copy(context, y, space, &y_copy));
    TRY(context->backend->sddmm(context, a, x_copy.values ? &x_copy : x, y_copy.values ? &y_copy : y, values));
done:
    sp_dense_free(context, &x_copy);
    sp_dense_free(context, &y_copy);
    return status;
}

sp_status sp_sddmm(sp_context *context, const sp_csr *a, const sp_dense *x, const sp_dense *y, void *values)
{
    sp_csr pattern, copy = {0};
    const sp_csr *used;
    sp_status status = check_sampled(context, a, x, y, values);
    if (status != SP_OK) return status;
    const sp_backend *backend = context->backend;
    const bool there = x->space == backend->space && y->space == backend->space;
    TRY(bring_pattern(context, a, &pattern, &copy, &used));
    if (there) TRY(backend->sddmm(context, used, x, y, values));
    for (int64_t b = 0; b < sp_dense_batch(x) && !there; b++) {
        const sp_dense one_x = sp_dense_of(x, b), one_y = sp_dense_of(y, b);
        TRY(sample(context, used, &one_x, &one_y,
                   values ? (char *)values + (size_t)(b * a->nnz) * sp_dense_size(x->type) : NULL));
    }
done:
    sp_csr_free(context, &copy);
    return status;
}

static sp_status check_head_count(sp_context *context, const char *call, const sp_csr *a, int64_t heads)
{
    sp_status status = sp_require_csr(context, call, "A", a);
    if (status != SP_OK) return status;
    if (heads < 0 || (a->nnz > 0 && heads > INT64_MAX / 16 / a->nnz) || (a->rows > 0 && heads > INT64_MAX / a->rows))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld heads", call, (long long)heads);
    return SP_OK;
}

sp_status sp_edge_softmax(sp_context *context, const sp_csr *a, int64_t heads, void *values)
{
    sp_csr pattern, copy = {0};
    const sp_csr *used;
    sp_status status;
    TRY(check_head_count(context, __func__, a, heads));
    if (a->nnz > 0) TRY(sp_require(context, __func__, "values", values));
    TRY(bring_pattern(context, a, &pattern, &copy, &used));
    TRY(context->backend->edge_softmax(context, used, heads, values));
done:
    sp_csr_free(context, &copy);
    return status;
}

sp_status sp_edge_softmax_backward(sp_context *context, const sp_csr *a, int64_t heads, const void *softmax,
                                   void *gradient)
{
    sp_csr pattern, copy = {0};
    const sp_csr *used;
    sp_status status;
    TRY(check_head_count(context, __func__, a, heads));
    const size_t bytes = (size_t)(heads * a->nnz) * sp_value_size(a->value_type);
    if (a->nnz > 0) TRY(sp_require(context, __func__, "softmax", softmax));
    if (a->nnz > 0) TRY(sp_require(context, __func__, "gradient", gradient));
    TRY(sp_require_apart(context, __func__, "gradient", gradient, bytes, "softmax", softmax, bytes));
    TRY(bring_pattern(context, a, &pattern, &copy, &used));
    TRY(context->backend->edge_softmax_backward(context, used, heads, softmax, gradient));
done:
    sp_csr_free(context, &copy);
    return status;
}
