/* The public products: checks shapes and types, brings operands to the back end's space, transposes them where asked,
 * calls the back end. */
#include <string.h>

#include "core/devices.h"

/* What a back end is given: the caller's matrices, or copies of them, which end with this struct. */
typedef struct operands {
    const sp_csr *a, *b;
    sp_spgemm_options options;
    sp_csr a_copy, b_copy, mask_copy;
} operands;

/* The matrices of a product that the function `call` forms, and where its result goes. */
static sp_status check_matrices(sp_context *context, const char *call, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, const void *c)
{
    const sp_csr *mask = options ? options->mask : NULL;
    sp_status status;
    TRY(sp_require_csr(context, call, "A", a));
    TRY(sp_require_csr(context, call, "B", b));
    if (mask) TRY(sp_require_csr(context, call, "the mask", mask));
    TRY(sp_require_output(context, call, "C", c, "A", a));
    TRY(sp_require_output(context, call, "C", c, "B", b));
    if (mask) TRY(sp_require_output(context, call, "C", c, "the mask", mask));
done:
    return status;
}

static sp_status check_shapes(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options)
{
    const int64_t rows = options->transpose_a ? a->cols : a->rows, inner = options->transpose_a ? a->rows : a->cols;
    const int64_t cols = options->transpose_b ? b->rows : b->cols, other = options->transpose_b ? b->cols : b->rows;
    const sp_csr *mask = options->mask;
    if (inner != other)
        return sp_fail(context, SP_ERROR_ARGUMENT, "A is %lld x %lld, B is %lld x %lld: A's columns must be B's rows",
                       (long long)rows, (long long)inner, (long long)other, (long long)cols);
    if (a->value_type != b->value_type)
        return sp_fail(context, SP_ERROR_ARGUMENT, "A holds %s and B %s: values of the same type are needed",
                       sp_value_type_name(a->value_type), sp_value_type_name(b->value_type));
    if (mask && (mask->rows != rows || mask->cols != cols))
        return sp_fail(context, SP_ERROR_ARGUMENT, "the mask is %lld x %lld and the product %lld x %lld",
                       (long long)mask->rows, (long long)mask->cols, (long long)rows, (long long)cols);
    if (options->complement && !mask)
        return sp_fail(context, SP_ERROR_ARGUMENT, "a mask is to be complemented and there is none");
    if ((unsigned)options->semiring > SP_OR_AND || (unsigned)options->algorithm > SP_SPGEMM_WARP ||
        (unsigned)options->aia > SP_AIA_UNCACHED)
        return sp_fail(context, SP_ERROR_ARGUMENT, "semiring %d, algorithm %d or stage %d does not exist",
                       (int)options->semiring, (int)options->algorithm, (int)options->aia);
    return SP_OK;
}

static sp_status check_epilogue(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_markov_epilogue *epilogue)
{
    if (a->value_type != SP_F32 || !a->values || !b->values)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the Markov product needs f32 values");
    if (!(epilogue->inflation >= 0) || !(epilogue->cutoff >= 0) || epilogue->select < 0 || epilogue->recover < 0 ||
        epilogue->dense_factor < 0)
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "inflation %g, cutoff %g, selection %lld and recovery %lld must not be below 0",
                       epilogue->inflation, epilogue->cutoff, (long long)epilogue->select,
                       (long long)epilogue->recover);
    if (epilogue->diagonal < 0 || epilogue->diagonal > INT32_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the diagonal begins at column %lld, which cannot be",
                       (long long)epilogue->diagonal);
    return SP_OK;
}

/* Points *used at `matrix`, or at a copy in the back end's space or at its transpose, which `copy` then owns. */
static sp_status bring(sp_context *context, const sp_csr *matrix, bool transpose, sp_csr *copy, const sp_csr **used)
{
    const sp_space space = context->backend->space;
    sp_csr moved = {0};
    sp_status status = SP_OK;
    *used = matrix;
    if (matrix->space != space) {
        TRY(sp_csr_copy(context, matrix, space, transpose ? &moved : copy));
        *used = transpose ? &moved : copy;
    }
    if (transpose) {
        TRY(sp_csr_transpose(context, *used, copy));
        *used = copy;
    }
done:
    sp_csr_free(context, &moved);
    return status;
}

/* Releases what prepare() took; fit for a zeroed struct. */
static void release(sp_context *context, operands *o)
{
    sp_csr_free(context, &o->a_copy);
    sp_csr_free(context, &o->b_copy);
    sp_csr_free(context, &o->mask_copy);
}

static sp_status prepare(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                         operands *o)
{
    sp_status status;
    memset(o, 0, sizeof *o);
    o->options = options ? *options : (sp_spgemm_options){0};
    TRY(check_shapes(context, a, b, &o->options));
    TRY(bring(context, a, o->options.transpose_a, &o->a_copy, &o->a));
    if (b == a && o->options.transpose_a == o->options.transpose_b) o->b = o->a;
    else TRY(bring(context, b, o->options.transpose_b, &o->b_copy, &o->b));
    if (o->options.mask) TRY(bring(context, o->options.mask, false, &o->mask_copy, &o->options.mask));
    o->options.transpose_a = o->options.transpose_b = false;
done:
    if (status != SP_OK) release(context, o);
    return status;
}

sp_status sp_spgemm(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_spgemm_options *options,
                    sp_csr *c, sp_spgemm_info *info)
{
    operands o = {0};
    sp_csr made = {0};
    sp_spgemm_info measured = {0};
    sp_status status;
    TRY(check_matrices(context, __func__, a, b, options, c));
    TRY(prepare(context, a, b, options, &o));
    TRY(context->backend->spgemm(context, o.a, o.b, &o.options, &made, &measured));
    *c = made;
    if (info) *info = measured;
done:
    release(context, &o);
    return status;
}

/* ---- the k largest of each row -------------------------------------------------------------------------- */

/* The most products of a block of rows, unless it is a single row: 0.2 and 1.6 GB of f64 if no two of them
 * fall together. Smaller blocks save the CPU no time, and cost a GPU some: 5 % with 2^26. */
enum { CPU_PRODUCTS = 1 << 24, GPU_PRODUCTS = 1 << 27 };

/* A's pattern by the lengths of B's rows. */
sp_status sp_count_products(sp_context *context, const sp_csr *a, const sp_csr *b, double *products)
{
    sp_csr pattern = *a;
    sp_spmm_plan *plan = NULL;
    double *lengths;
    sp_status status;
    pattern.values = NULL;
    pattern.value_type = SP_F64;
    TRY(sp_alloc(context, b->rows, sizeof *lengths, (void **)&lengths));
    TRY(sp_csr_reduce_rows(context, b, SP_COMBINE_COUNT, lengths, SP_HOST));
    TRY(sp_spmm_plan_create(context, &pattern, 1, NULL, &plan));
    const sp_dense x = {.rows = b->rows, .cols = 1, .stride = 1, .values = lengths, .type = SP_DENSE_F64};
    sp_dense y = {.rows = a->rows, .cols = 1, .stride = 1, .values = products, .type = SP_DENSE_F64};
    TRY(sp_spmm_execute(plan, 1, &x, 0, &y));
done:
    sp_spmm_plan_free(plan);
    sp_free(context, lengths);
    return status;
}

/* Where the block of rows that begins with `row` ends. */
static int64_t end_of_block(const double *products, int64_t rows, int64_t row, double most)
{
    double sum = 0;
    do sum += products[row++];
    while (row < rows && sum + products[row] <= most);
    return row;
}

/* Rows first .. end - 1 of the product, each cut to its k largest entries. `list` numbers A's rows. */
static sp_status make_block(sp_context *context, const operands *o, const int32_t *list, int64_t first, int64_t end,
                            int64_t k, sp_csr *block, sp_spgemm_info *info)
{
    const int64_t count = end - first;
    const bool whole = count == o->a->rows;
    sp_spgemm_options options = o->options;
    sp_csr a = {0}, mask = {0}, c = {0};
    sp_status status;
    options.to_host = false;
    memset(info, 0, sizeof *info);
    if (!whole) TRY(sp_csr_extract(context, o->a, list + first, count, NULL, 0, SP_HOST, &a));
    if (!whole && options.mask) {
        TRY(sp_csr_extract(context, options.mask, list + first, count, NULL, 0, SP_HOST, &mask));
        options.mask = &mask;
    }
    TRY(context->backend->spgemm(context, whole ? o->a : &a, o->b, &options, &c, info));
    TRY(sp_csr_top_k(context, &c, k, block));
done:
    sp_csr_free(context, &c);
    sp_csr_free(context, &mask);
    sp_csr_free(context, &a);
    return status;
}

/* Adds a block's figures; groups are the last block's. */
static void add_info(sp_spgemm_info *sum, const sp_spgemm_info *block)
{
    const sp_spgemm_info before = *sum;
    *sum = *block;
    sum->products += before.products;
    sum->product_nnz += before.product_nnz;
    sum->batches = before.batches + 1;
    if (before.peak_bytes > sum->peak_bytes) sum->peak_bytes = before.peak_bytes;
    sum->analysis_seconds += before.analysis_seconds;
    sum->aia_seconds += before.aia_seconds;
    sum->symbolic_seconds += before.symbolic_seconds;
    sum->numeric_seconds += before.numeric_seconds;
}

/* Blocks one below the other; `offsets` are on the host. */
static sp_status join_blocks(sp_context *context, const sp_csr *blocks, int64_t count, const int64_t *offsets,
                             int64_t rows, sp_space space, sp_csr *joined)
{
    const size_t size = sp_value_size(blocks->value_type);
    int64_t at = 0;
    sp_status status;
    TRY(sp_csr_create_like(context, blocks, rows, blocks->cols, offsets[rows], space, joined));
    TRY(sp_array_copy(context, rows + 1, sizeof *offsets, joined->row_offsets, space, offsets, SP_HOST));
    for (int64_t i = 0; i < count; at += blocks[i++].nnz) {
        TRY(sp_array_copy(context, blocks[i].nnz, sizeof *joined->col_indices, joined->col_indices + at, space,
                          blocks[i].col_indices, blocks[i].space));
        if (joined->values)
            TRY(sp_array_copy(context, blocks[i].nnz, size, (char *)joined->values + (size_t)at * size, space,
                              blocks[i].values, blocks[i].space));
    }
done:
    if (status != SP_OK) sp_csr_free(context, joined);
    return status;
}

sp_status sp_spgemm_top_k(sp_context *context, const sp_csr *a, const sp_csr *b, int64_t k,
                          const sp_spgemm_options *options, sp_csr *c, sp_spgemm_info *info)
{
    operands o = {0};
    sp_csr *blocks = NULL;
    sp_spgemm_info sum = {0}, block;
    double *products = NULL;
    int32_t *list = NULL;
    int64_t *offsets = NULL, count = 0, made = 0;
    sp_csr joined = {0};
    sp_status status = check_matrices(context, __func__, a, b, options, c);
    if (status != SP_OK) return status;
    if (k < 0) return sp_fail(context, SP_ERROR_ARGUMENT, "%lld entries of each row cannot be kept", (long long)k);
    TRY(prepare(context, a, b, options, &o));
    const int64_t rows = o.a->rows;
    const size_t entry = sizeof *o.a->col_indices + sp_value_size(o.a->value_type);
    const size_t budget = context->memory_budget / 4 / entry;
    const size_t usual = context->backend->space == SP_HOST ? CPU_PRODUCTS : GPU_PRODUCTS;
    const double most = (double)(budget > 0 && budget < usual ? budget : usual);
    TRY(sp_alloc(context, rows, sizeof *products, (void **)&products));
    TRY(sp_alloc(context, rows, sizeof *list, (void **)&list));
    TRY(sp_alloc(context, rows + 1, sizeof *offsets, (void **)&offsets));
    TRY(sp_count_products(context, o.a, o.b, products));
    for (int64_t i = 0; i < rows; i++) list[i] = (int32_t)i;
    for (int64_t i = 0; i < rows; i = end_of_block(products, rows, i, most)) count++;
    TRY(sp_calloc(context, count + 1, sizeof *blocks, (void **)&blocks));
    offsets[0] = 0;
    for (int64_t first = 0, end; made == 0 || first < rows; first = end) { /* one block if there are no rows */
        end = rows ? end_of_block(products, rows, first, most) : 0;
        const int64_t before = offsets[first];
        TRY(make_block(context, &o, list, first, end, k, &blocks[made], &block));
        const sp_csr *kept = &blocks[made++];
        TRY(sp_array_copy(context, end - first + 1, sizeof *offsets, offsets + first, SP_HOST, kept->row_offsets,
                          kept->space));
        for (int64_t i = first; i <= end; i++) offsets[i] += before;
        add_info(&sum, &block);
    }
    TRY(join_blocks(context, blocks, made, offsets, rows, o.options.to_host ? SP_HOST : context->backend->space,
                    &joined));
    *c = joined;
    sum.nnz = joined.nnz;
    if (info) *info = sum;
done:
    for (int64_t i = 0; i < made; i++) sp_csr_free(context, &blocks[i]);
    FREE_ALL(context, blocks, offsets, list, products);
    release(context, &o);
    return status;
}

/* ---- the Markov product --------------------------------------------------------------------------------- */

sp_status sp_device_spgemm_markov(sp_context *device, const sp_csr *a, const sp_csr *b,
                                  const sp_markov_epilogue *epilogue, sp_csr *c, sp_markov_row *rows,
                                  sp_spgemm_info *info)
{
    operands o = {0};
    sp_status status = prepare(device, a, b, NULL, &o);
    if (status == SP_OK) status = device->backend->spgemm_markov(device, o.a, o.b, epilogue, c, rows, info);
    release(device, &o);
    return status;
}

sp_status sp_spgemm_markov(sp_context *context, const sp_csr *a, const sp_csr *b, const sp_markov_epilogue *epilogue,
                           sp_csr *c, sp_markov_row *rows, sp_spgemm_info *info)
{
    sp_csr made = {0};
    sp_spgemm_info measured = {0};
    sp_status status;
    TRY(check_matrices(context, __func__, a, b, NULL, c));
    TRY(sp_require(context, __func__, "epilogue", epilogue));
    TRY(check_epilogue(context, a, b, epilogue));
    TRY(check_shapes(context, a, b, &(sp_spgemm_options){0}));
    if (context->devices || (context->backend->space == SP_DEVICE && !epilogue->device_only))
        TRY(sp_devices_spgemm_markov(context, a, b, epilogue, &made, rows, &measured));
    else TRY(sp_device_spgemm_markov(context, a, b, epilogue, &made, rows, &measured));
    *c = made;
    if (info) *info = measured;
done:
    return status;
}

/* ---- plans --------------------------------------------------------------------------------------------- */

struct sp_spgemm_plan {
    sp_context *context;
    sp_spgemm_options options; /* the caller's, without the mask: the pattern has passed it */
    sp_spgemm_info info;
    sp_csr pattern; /* of C, where C is to lie */
    void *state;    /* the back end's */
    sp_csr a, b;    /* shapes, nnz and types only */
};

sp_status sp_spgemm_plan_create(sp_context *context, const sp_csr *a, const sp_csr *b,
                                const sp_spgemm_options *options, sp_spgemm_plan **plan)
{
    operands o = {0};
    sp_spgemm_plan *made = NULL;
    sp_status status;
    if (plan) *plan = NULL;
    TRY(sp_require(context, __func__, "plan", plan));
    TRY(check_matrices(context, __func__, a, b, options, plan));
    TRY(sp_calloc(context, 1, sizeof *made, (void **)&made));
    made->context = context;
    sp_context_retain(context);
    made->a = *a;
    made->b = *b;
    TRY(prepare(context, a, b, options, &o));
    TRY(context->backend->spgemm_symbolic(context, o.a, o.b, &o.options, &made->pattern, &made->state,
                                          &made->info));
    if (options) made->options = *options;
    made->options.mask = NULL;
    made->options.complement = false;
    *plan = made;
done:
    release(context, &o);
    if (status != SP_OK) sp_spgemm_plan_free(made);
    return status;
}

const sp_spgemm_info *sp_spgemm_plan_info(const sp_spgemm_plan *plan) { return plan ? &plan->info : NULL; }

static bool same_size(const sp_csr *a, const sp_csr *b)
{
    return a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && a->value_type == b->value_type;
}

/* C in `space`, with the plan's pattern and room for values. */
static sp_status copy_pattern(sp_spgemm_plan *plan, sp_space space, sp_csr *c)
{
    sp_context *context = plan->context;
    const size_t size = sp_value_size(plan->pattern.value_type);
    size_t bytes;
    sp_status status = sp_csr_copy(context, &plan->pattern, space, c);
    if (status != SP_OK || plan->options.semiring == SP_OR_AND) return status;
    if (space == SP_HOST) status = sp_alloc(context, c->nnz, size, &c->values);
    else if (!sp_mul_size((size_t)c->nnz, size, &bytes))
        status = sp_fail(context, SP_ERROR_OVERFLOW, "%lld values cannot be addressed", (long long)c->nnz);
    else status = context->backend->allocate(context, bytes, &c->values);
    if (status != SP_OK) sp_csr_free(context, c);
    return status;
}

/* C = alpha · C, in place. */
static sp_status scale(sp_context *context, double alpha, sp_csr *c)
{
    double *factors = NULL;
    sp_status status;
    TRY(sp_alloc(context, c->rows, sizeof *factors, (void **)&factors));
    for (int64_t i = 0; i < c->rows; i++) factors[i] = alpha;
    TRY(sp_csr_scale(context, c, factors, NULL, SP_HOST));
done:
    sp_free(context, factors);
    return status;
}

/* C = alpha · A·B + beta · C, where A·B is rounded before it is added. */
static sp_status add_product(sp_spgemm_plan *plan, double alpha, const operands *o, double beta, sp_csr *c)
{
    sp_context *context = plan->context;
    sp_csr product = {0}, sum = {0};
    sp_status status;
    TRY(copy_pattern(plan, c->space, &product));
    TRY(context->backend->spgemm_numeric(context, o->a, o->b, &o->options, plan->state, &product));
    TRY(sp_csr_add(context, alpha, &product, beta, c, &sum));
    if (sum.nnz == c->nnz)
        TRY(sp_array_copy(context, c->nnz, sp_value_size(c->value_type), c->values, c->space, sum.values, sum.space));
    else status = sp_fail(context, SP_ERROR_ARGUMENT, "C does not have the pattern of the plan's product");
done:
    sp_csr_free(context, &product);
    sp_csr_free(context, &sum);
    return status;
}

static sp_status check_execution(const sp_spgemm_plan *plan, double alpha, const sp_csr *a, const sp_csr *b,
                                 double beta, const sp_csr *c)
{
    sp_context *context = plan->context;
    const sp_semiring semiring = plan->options.semiring;
    sp_status status;
    TRY(check_matrices(context, "sp_spgemm_plan_execute", a, b, NULL, c));
    if (c->row_offsets) TRY(sp_require_csr(context, "sp_spgemm_plan_execute", "C", c));
    if (!same_size(a, &plan->a) || !same_size(b, &plan->b))
        status = sp_fail(context, SP_ERROR_ARGUMENT,
                         "the plan is for %lld x %lld (%lld entries) and %lld x %lld (%lld entries), not for these",
                         (long long)plan->a.rows, (long long)plan->a.cols, (long long)plan->a.nnz,
                         (long long)plan->b.rows, (long long)plan->b.cols, (long long)plan->b.nnz);
    else if (c->row_offsets && (!same_size(c, &plan->pattern) || !c->values != (semiring == SP_OR_AND) ||
                                (c->space == SP_DEVICE && context->backend->space == SP_HOST)))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "C does not have the pattern of the plan's product");
    else if (beta != 0 && !c->row_offsets)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "beta is %g, but there is no C to be added", beta);
    else if ((alpha != 1 || beta != 0) && semiring != SP_PLUS_TIMES && semiring != SP_PLUS_PAIR)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "alpha is %g and beta %g, but the semiring forms no sums", alpha,
                         beta);
done:
    return status;
}

sp_status sp_spgemm_plan_execute(sp_spgemm_plan *plan, double alpha, const sp_csr *a, const sp_csr *b, double beta,
                                 sp_csr *c)
{
    if (!plan) return sp_fail(NULL, SP_ERROR_ARGUMENT, "%s: plan is NULL", __func__);
    sp_context *context = plan->context;
    operands o = {0};
    sp_csr made = {0};
    sp_status status = check_execution(plan, alpha, a, b, beta, c);
    if (status != SP_OK) return status;
    TRY(prepare(context, a, b, &plan->options, &o));
    if (beta != 0) {
        status = add_product(plan, alpha, &o, beta, c);
        goto done;
    }
    if (!c->row_offsets) {
        status = copy_pattern(plan, plan->pattern.space, &made);
        if (status == SP_ERROR_DEVICE_MEMORY) status = copy_pattern(plan, SP_HOST, &made);
        if (status != SP_OK) goto done;
    }
    sp_csr *target = c->row_offsets ? c : &made;
    if (plan->options.semiring != SP_OR_AND)
        TRY(context->backend->spgemm_numeric(context, o.a, o.b, &o.options, plan->state, target));
    if (alpha != 1) TRY(scale(context, alpha, target));
    if (target == &made) *c = made;
    memset(&made, 0, sizeof made);
done:
    release(context, &o);
    sp_csr_free(context, &made);
    return status;
}

void sp_spgemm_plan_free(sp_spgemm_plan *plan)
{
    if (!plan) return;
    sp_context *context = plan->context;
    if (plan->state) context->backend->spgemm_forget(context, plan->state);
    sp_csr_free(context, &plan->pattern);
    sp_free(context, plan);
    sp_context_destroy(context);
}
