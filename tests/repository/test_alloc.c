/* Every allocation fails once: each public function is called with the first, second, third… allocation failing
 * until it succeeds. After each failure nothing is left allocated, outputs are as they were and the status says why.
 * The same with all later allocations failing too, as when memory has really run out; with the interrupt flag set by
 * an allocation; and on CUDA with each call of the runtime, and with each allocation on the device. */
#include <stdlib.h>
#include <string.h>

#ifdef SPARSE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "contraction.h"
#include "generate.h"
#include "gnn.h"
#include "mcl.h"
#include "support.h"

/* What the functions work on: host matrices from an allocator that never fails. */
typedef struct subject {
    sp_csr square, negative, wide, mask, stochastic, graph, limit; /* negative: -square */
    int32_t rows[200], cols[200], order[200]; /* order: a permutation */
    sp_dense dense; /* a row for each of stochastic's */
    gnn_engine *engine; /* on CUDA, where each one opens cuBLAS: of the context whose allocations fail */
} subject;

/* One call under test. It writes its output to `out`, which a failed call must leave as it was and `release` frees
 * after a success. */
typedef struct trial {
    const char *name;
    sp_status (*call)(sp_context *context, subject *s, void *out);
    void (*release)(sp_context *context, void *out);
    size_t size;
} trial;

static void release_csr(sp_context *context, void *out) { sp_csr_free(context, out); }
static void release_block(sp_context *context, void *out) { sp_free(context, *(void **)out); }
static void release_clustering(sp_context *context, void *out) { mcl_clustering_free(context, out); }
static void release_plan(sp_context *context, void *out)
{
    (void)context;
    sp_spgemm_plan_free(*(sp_spgemm_plan **)out);
}
static void release_nothing(sp_context *context, void *out)
{
    (void)context;
    (void)out;
}
static void release_transform(sp_context *context, void *out) { mcl_transform_free(context, *(mcl_transform **)out); }

static sp_status call_alloc(sp_context *context, subject *s, void *out)
{
    (void)s;
    return sp_alloc(context, 100, 8, out);
}

static sp_status call_calloc(sp_context *context, subject *s, void *out)
{
    (void)s;
    return sp_calloc(context, 100, 8, out);
}

static sp_status call_grow(sp_context *context, subject *s, void *out)
{
    void *block = NULL;
    (void)s;
    const sp_status status = sp_grow(context, 0, 100, 8, &block);
    if (status == SP_OK) *(void **)out = block;
    return status;
}

static sp_status call_create(sp_context *context, subject *s, void *out)
{
    (void)s;
    return sp_csr_create(context, 10, 10, 20, SP_F64, SP_HOST, out);
}

static sp_status call_copy(sp_context *context, subject *s, void *out)
{
    return sp_csr_copy(context, &s->square, SP_HOST, out);
}

static sp_status call_from_coo(sp_context *context, subject *s, void *out)
{
    return sp_csr_from_coo(context, 40, 40, 200, s->rows, s->cols, NULL, SP_F32, SP_COMBINE_SUM, true, out);
}

static sp_status call_transpose(sp_context *context, subject *s, void *out)
{
    return sp_csr_transpose(context, &s->wide, out);
}

static sp_status call_spgemm(sp_context *context, subject *s, void *out)
{
    return sp_spgemm(context, &s->square, &s->wide, NULL, out, NULL);
}

static sp_status call_spgemm_masked(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.semiring = SP_MAX_TIMES, .mask = &s->mask};
    return sp_spgemm(context, &s->square, &s->wide, &options, out, NULL);
}

static sp_status call_spgemm_turned(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.semiring = SP_MIN_PLUS, .transpose_a = true, .transpose_b = true,
                                       .mask = &s->square, .complement = true, .to_host = true};
    return sp_spgemm(context, &s->square, &s->square, &options, out, NULL);
}

static sp_status call_spgemm_pattern(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.semiring = SP_OR_AND};
    return sp_spgemm(context, &s->square, &s->wide, &options, out, NULL);
}

static sp_status call_spgemm_hash(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.algorithm = SP_SPGEMM_HASH, .aia = SP_AIA_ON};
    return sp_spgemm(context, &s->square, &s->wide, &options, out, NULL);
}

static sp_status call_spgemm_dense(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.algorithm = SP_SPGEMM_DENSE};
    return sp_spgemm(context, &s->square, &s->wide, &options, out, NULL);
}

static sp_status call_plan_create(sp_context *context, subject *s, void *out)
{
    return sp_spgemm_plan_create(context, &s->square, &s->wide, NULL, out);
}

static sp_status call_plan_create_masked(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.transpose_a = true, .mask = &s->mask};
    return sp_spgemm_plan_create(context, &s->square, &s->wide, &options, out);
}

static sp_status call_plan_execute(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.transpose_a = true, .mask = &s->mask};
    sp_spgemm_plan *plan;
    sp_csr c = {0};
    sp_status status = sp_spgemm_plan_create(context, &s->square, &s->wide, &options, &plan);
    if (status == SP_OK) status = sp_spgemm_plan_execute(plan, &s->square, &s->wide, &c);
    sp_spgemm_plan_free(plan);
    if (status == SP_OK) memcpy(out, &c, sizeof c);
    else test_expect(!c.row_offsets && !c.col_indices && !c.values, "sp_spgemm_plan_execute: C was touched");
    return status;
}

/* New values for a C that is there: after a failure it has the old ones. */
static sp_status call_plan_execute_again(sp_context *context, subject *s, void *out)
{
    sp_spgemm_plan *plan;
    sp_csr c = {0}, before = {0};
    sp_status status = sp_spgemm_plan_create(context, &s->square, &s->wide, NULL, &plan);
    if (status == SP_OK) status = sp_spgemm_plan_execute(plan, &s->square, &s->wide, &c);
    if (status == SP_OK) status = sp_csr_copy(context, &c, SP_HOST, &before);
    if (status == SP_OK) {
        status = sp_spgemm_plan_execute(plan, &s->negative, &s->wide, &c);
        if (status != SP_OK && c.space == SP_HOST) test_same(&before, &c, 0);
    }
    sp_csr_free(context, &before);
    sp_spgemm_plan_free(plan);
    if (status == SP_OK) memcpy(out, &c, sizeof c);
    else sp_csr_free(context, &c);
    return status;
}

static sp_status call_markov(sp_context *context, subject *s, void *out)
{
    const sp_markov_epilogue epilogue = {
        .cutoff = 1e-3, .select = 20, .recover = 30, .recover_mass = 0.9, .inflation = 2, .dense_factor = 10};
    return sp_spgemm_markov(context, &s->stochastic, &s->stochastic, &epilogue, out, NULL, NULL);
}

static sp_status call_permute(sp_context *context, subject *s, void *out)
{
    return sp_csr_permute(context, &s->stochastic, s->order, s->order, out);
}

static sp_status call_add(sp_context *context, subject *s, void *out)
{
    return sp_csr_add(context, 1, &s->square, 2, &s->negative, out);
}

static sp_status call_hadamard(sp_context *context, subject *s, void *out)
{
    return sp_csr_hadamard(context, &s->square, &s->negative, out);
}

static sp_status call_scale(sp_context *context, subject *s, void *out)
{
    const double factors[200] = {1};
    sp_csr work = {0};
    sp_status status = sp_csr_copy(context, &s->mask, s->mask.space, &work);
    if (status == SP_OK) status = sp_csr_scale(context, &work, factors, factors, SP_HOST);
    if (status == SP_OK) memcpy(out, &work, sizeof work);
    else sp_csr_free(context, &work);
    return status;
}

static sp_status call_extract_rows(sp_context *context, subject *s, void *out)
{
    return sp_csr_extract(context, &s->square, s->rows, 200, NULL, 0, SP_HOST, out);
}

static sp_status call_extract(sp_context *context, subject *s, void *out)
{
    return sp_csr_extract(context, &s->square, s->rows, 200, s->cols, 200, SP_HOST, out);
}

static sp_status call_top_k(sp_context *context, subject *s, void *out)
{
    return sp_csr_top_k(context, &s->wide, 3, out);
}

static sp_status call_spgemm_top_k(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.mask = &s->mask};
    return sp_spgemm_top_k(context, &s->square, &s->wide, 3, &options, out, NULL);
}

static sp_status call_select_place(sp_context *context, subject *s, void *out)
{
    return sp_csr_select(context, &s->square, SP_SELECT_LOWER, -1, out);
}

static sp_status call_select_value(sp_context *context, subject *s, void *out)
{
    return sp_csr_select(context, &s->wide, SP_SELECT_GT, 0, out);
}

static sp_status call_degree_order(sp_context *context, subject *s, void *out)
{
    int32_t order[60];
    const sp_status status = sp_csr_degree_order(context, &s->square, order, SP_HOST);
    if (status == SP_OK) memcpy(out, order, sizeof order);
    return status;
}

static sp_status call_markov_renumbered(sp_context *context, subject *s, void *out)
{
    const sp_markov_epilogue epilogue = {.cutoff = 1e-3, .inflation = 2, .order = s->order};
    return sp_spgemm_markov(context, &s->stochastic, &s->stochastic, &epilogue, out, NULL, NULL);
}

static sp_status call_community_order(sp_context *context, subject *s, void *out)
{
    return sp_csr_community_order(context, &s->stochastic, out);
}

static sp_status call_renumber(sp_context *context, subject *s, void *out)
{
    return mcl_renumber(context, &s->stochastic, s->order, out);
}

static sp_status call_restore(sp_context *context, subject *s, void *out)
{
    return mcl_restore(context, &s->stochastic, s->order, out);
}

static sp_status call_prepared(sp_context *context, subject *s, void *out)
{
    mcl_options options;
    mcl_options_default(&options);
    return mcl_prepared_graph(context, &s->graph, NULL, &options, false, out);
}

static sp_status call_start(sp_context *context, subject *s, void *out)
{
    mcl_options options;
    mcl_options_default(&options);
    return mcl_start_matrix(context, &s->graph, NULL, &options, false, out);
}

static sp_status call_iterate(sp_context *context, subject *s, void *out)
{
    mcl_options options;
    mcl_run run;
    mcl_options_default(&options);
    options.main_length = 3;
    return mcl_iterate(context, &s->stochastic, &options, NULL, NULL, out, &run);
}

static sp_status call_interpret(sp_context *context, subject *s, void *out)
{
    mcl_options options;
    mcl_options_default(&options);
    options.overlap = MCL_OVERLAP_SPLIT;
    options.force_connected = true;
    return mcl_interpret(context, &s->limit, &s->graph, &options, out);
}

static sp_status call_label(sp_context *context, subject *s, void *out)
{
    mcl_options options;
    int64_t clusters;
    mcl_options_default(&options);
    options.main_length = 3;
    return mcl_label(context, &s->graph, &options, out, &clusters);
}

static sp_status call_measure(sp_context *context, subject *s, void *out)
{
    int64_t offsets[] = {0, 50, 200};
    const mcl_clustering halves = {.nodes = 200, .clusters = 2, .offsets = offsets, .members = s->order};
    return mcl_measure(context, &s->stochastic, &halves, out);
}

static sp_status call_transform_parse(sp_context *context, subject *s, void *out)
{
    (void)s;
    return mcl_transform_parse(context, "gq(0.5),mul(10),#knn(20)", false, out);
}

static sp_status call_transform_graph(sp_context *context, subject *s, void *out)
{
    mcl_transform *transform;
    sp_csr work = {0};
    sp_status status = mcl_transform_parse(context, "gq(0.1),mul(10),#knn(5)", false, &transform);
    if (status != SP_OK) return status;
    status = sp_csr_copy(context, &s->graph, SP_HOST, &work);
    if (status == SP_OK) status = mcl_transform_graph(context, transform, NULL, &work);
    mcl_transform_free(context, transform);
    if (status == SP_OK) memcpy(out, &work, sizeof work);
    else sp_csr_free(context, &work);
    return status;
}

/* ---- contraction --------------------------------------------------------------------------------------- */

static void release_hierarchy(sp_context *context, void *out) { contraction_hierarchy_free(context, out); }

static sp_status contract(sp_context *context, subject *s, contraction_engine engine, sp_combine combine,
                          int64_t groups, void *out)
{
    const contraction_options options = {.engine = engine, .how = {.combine = combine, .loops = SP_LOOPS_DROP}};
    int32_t labels[200];
    for (int i = 0; i < 200; i++) labels[i] = s->order[i] % 3 * 5;
    return contraction_quotient(context, &s->square, labels, groups, &options, out, NULL);
}

static sp_status call_contract(sp_context *context, subject *s, void *out)
{
    return contract(context, s, CONTRACTION_FUSED, SP_COMBINE_MEAN, 11, out);
}

/* Cells for so many groups are not worth their memory. */
static sp_status call_contract_hash(sp_context *context, subject *s, void *out)
{
    return contract(context, s, CONTRACTION_FUSED, SP_COMBINE_SUM, 100000, out);
}

static sp_status call_triple(sp_context *context, subject *s, void *out)
{
    return contract(context, s, CONTRACTION_PRODUCT, SP_COMBINE_SUM, 11, out);
}

static sp_status call_quotient_mean(sp_context *context, subject *s, void *out)
{
    return contract(context, s, CONTRACTION_PRODUCT, SP_COMBINE_MEAN, 11, out);
}

static sp_status call_quotient_first(sp_context *context, subject *s, void *out)
{
    return contract(context, s, CONTRACTION_PRODUCT, SP_COMBINE_FIRST, 11, out);
}

/* A copy, as it works in place. */
static sp_status call_mirror(sp_context *context, subject *s, void *out)
{
    sp_csr c;
    bool symmetric;
    sp_status status = sp_csr_copy(context, &s->graph, SP_HOST, &c);
    if (status != SP_OK) return status;
    status = contraction_mirror(context, &c, &symmetric);
    if (status == SP_OK) memcpy(out, &c, sizeof c);
    else sp_csr_free(context, &c);
    return status;
}

static sp_status call_groups(sp_context *context, subject *s, void *out)
{
    int32_t labels[200];
    for (int i = 0; i < 200; i++) labels[i] = s->order[i] % 6;
    return contraction_groups(context, &s->square, labels, 6, out);
}

static sp_status call_compact(sp_context *context, subject *s, void *out)
{
    int32_t labels[200];
    int64_t groups = 300;
    memcpy(labels, s->order, sizeof labels);
    const sp_status status = contraction_compact(context, 200, labels, &groups, out);
    if (status != SP_OK && (groups != 300 || memcmp(labels, s->order, sizeof labels) != 0))
        ck_abort_msg("contraction_compact: labels changed by a failure");
    return status;
}

static sp_status call_product(sp_context *context, subject *s, void *out)
{
    const contraction_options options = {.how = {.combine = SP_COMBINE_COUNT, .half_loops = true}};
    return contraction_product(context, &s->square, &s->square, &options, out, NULL);
}

static sp_status call_match(sp_context *context, subject *s, void *out)
{
    int64_t groups;
    return contraction_match(context, &s->graph, 1, out, &groups);
}

static sp_status match_labeller(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    (void)user;
    return contraction_match(context, g, 1, labels, groups);
}

static sp_status call_repeat(sp_context *context, subject *s, void *out)
{
    return contraction_repeat(context, &s->graph, 3, match_labeller, NULL, NULL, out);
}

/* ---- products with dense matrices ------------------------------------------------------------------------ */

enum { WIDTH = 32, KEPT = 5 };

static sp_space here(const sp_context *context) { return sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST; }

static void release_dense(sp_context *context, void *out) { sp_dense_free(context, out); }
static void release_cbsr(sp_context *context, void *out) { sp_cbsr_free(context, out); }
static void release_array(sp_context *context, void *out) { sp_array_free(context, here(context), *(void **)out); }
static void release_spmm_plan(sp_context *context, void *out)
{
    (void)context;
    sp_spmm_plan_free(*(sp_spmm_plan **)out);
}

static sp_status call_spmm_plan(sp_context *context, subject *s, void *out)
{
    const sp_spmm_options options = {.algorithm = SP_SPMM_BLOCK_PARTITION, .transpose = true};
    return sp_spmm_plan_create(context, &s->stochastic, WIDTH, &options, out);
}

/* Y in the space of X. */
static sp_status spmm(sp_context *context, subject *s, const sp_spmm_options *options, void *out)
{
    sp_spmm_plan *plan;
    sp_dense y = {0};
    sp_status status = sp_spmm_plan_create(context, &s->stochastic, WIDTH, options, &plan);
    const sp_dense *x = &s->dense;
    if (status == SP_OK) status = sp_dense_create(context, x->rows, x->cols, SP_DENSE_F32, x->space, &y);
    if (status == SP_OK) status = sp_spmm_execute(plan, 2, x, 0, &y);
    sp_spmm_plan_free(plan);
    if (status == SP_OK) memcpy(out, &y, sizeof y);
    else sp_dense_free(context, &y);
    return status;
}

static sp_status call_spmm_rows(sp_context *context, subject *s, void *out)
{
    return spmm(context, s, &(sp_spmm_options){.algorithm = SP_SPMM_ROW_SPLIT, .reduce = SP_REDUCE_MEAN}, out);
}

static sp_status call_spmm_blocks(sp_context *context, subject *s, void *out)
{
    return spmm(context, s, &(sp_spmm_options){.algorithm = SP_SPMM_BLOCK_PARTITION}, out);
}

static sp_status call_spmm_ranges(sp_context *context, subject *s, void *out)
{
    const sp_spmm_options options = {.algorithm = SP_SPMM_BIDIRECTIONAL, .transpose = true,
                                     .partition_bytes = 1 << 12};
    return spmm(context, s, &options, out);
}

static sp_status call_spmm_values(sp_context *context, subject *s, void *out)
{
    const sp_spmm_options options = {.algorithm = SP_SPMM_BLOCK_PARTITION, .transpose = true};
    sp_spmm_plan *plan;
    sp_status status = sp_spmm_plan_create(context, &s->stochastic, WIDTH, &options, &plan);
    if (status == SP_OK) status = sp_spmm_plan_set_values(plan, s->stochastic.values, s->stochastic.space);
    if (status == SP_OK) *(sp_spmm_plan **)out = plan;
    else sp_spmm_plan_free(plan);
    return status;
}

static sp_status call_spmm_argument(sp_context *context, subject *s, void *out)
{
    const sp_spmm_options options = {.algorithm = SP_SPMM_BLOCK_PARTITION, .reduce = SP_REDUCE_MAX};
    const sp_space space = s->dense.space;
    sp_spmm_plan *plan;
    sp_dense y = {0};
    void *argument = NULL;
    sp_status status = sp_spmm_plan_create(context, &s->stochastic, WIDTH, &options, &plan);
    if (status == SP_OK) status = sp_dense_create(context, 200, WIDTH, SP_DENSE_F32, space, &y);
    if (status == SP_OK) status = sp_array_create(context, 200 * WIDTH, sizeof(int64_t), space, &argument);
    if (status == SP_OK) status = sp_spmm_execute_argument(plan, &s->dense, &y, argument);
    sp_array_free(context, space, argument);
    sp_spmm_plan_free(plan);
    if (status == SP_OK) memcpy(out, &y, sizeof y);
    else sp_dense_free(context, &y);
    return status;
}

/* Values for stochastic's entries, from X and X: the gradient of a softmax over those of the rows. */
static sp_status call_edges(sp_context *context, subject *s, void *out)
{
    const sp_space space = here(context);
    const int64_t count = s->stochastic.nnz;
    void *softmax = NULL, *gradient = NULL;
    sp_dense x = {0};
    sp_status status = sp_dense_copy(context, &s->dense, space, &x);
    if (status == SP_OK) status = sp_array_create(context, count, sizeof(float), space, &softmax);
    if (status == SP_OK) status = sp_array_create(context, count, sizeof(float), space, &gradient);
    if (status == SP_OK) status = sp_sddmm(context, &s->stochastic, &x, &x, softmax);
    if (status == SP_OK) status = sp_sddmm(context, &s->stochastic, &x, &x, gradient);
    if (status == SP_OK) status = sp_edge_softmax(context, &s->stochastic, softmax);
    if (status == SP_OK) status = sp_edge_softmax_backward(context, &s->stochastic, softmax, gradient);
    sp_array_free(context, space, softmax);
    sp_dense_free(context, &x);
    if (status == SP_OK) *(void **)out = gradient;
    else sp_array_free(context, space, gradient);
    return status;
}

static sp_status call_maxk(sp_context *context, subject *s, void *out)
{
    sp_dense x = {0};
    sp_cbsr kept = {0};
    sp_status status = sp_dense_copy(context, &s->dense, here(context), &x);
    if (status == SP_OK) status = sp_cbsr_create(context, 200, WIDTH, KEPT, SP_DENSE_F32, &kept);
    if (status == SP_OK) status = sp_maxk(context, &x, &kept);
    if (status == SP_OK) status = sp_maxk_expand(context, &kept, &x);
    sp_dense_free(context, &x);
    if (status == SP_OK) memcpy(out, &kept, sizeof kept);
    else sp_cbsr_free(context, &kept);
    return status;
}

/* Forward and back. */
static sp_status call_maxk_products(sp_context *context, subject *s, void *out)
{
    sp_spmm_plan *plan = NULL;
    sp_cbsr kept = {0};
    sp_dense y = {0};
    sp_status status = call_maxk(context, s, &kept);
    if (status != SP_OK) return status;
    status = sp_spmm_plan_create(context, &s->stochastic, WIDTH, NULL, &plan);
    if (status == SP_OK) status = sp_dense_create(context, 200, WIDTH, SP_DENSE_F32, here(context), &y);
    if (status == SP_OK) status = sp_maxk_spmm(plan, 1, &kept, 0, &y);
    if (status == SP_OK) status = sp_maxk_spmm_backward(plan, &y, &kept);
    sp_spmm_plan_free(plan);
    sp_cbsr_free(context, &kept);
    if (status == SP_OK) memcpy(out, &y, sizeof y);
    else sp_dense_free(context, &y);
    return status;
}

static sp_status call_array(sp_context *context, subject *s, void *out)
{
    (void)s;
    return sp_array_create(context, 100, 8, here(context), out);
}

static sp_status call_dense_create(sp_context *context, subject *s, void *out)
{
    (void)s;
    return sp_dense_create(context, 20, 10, SP_DENSE_F16, here(context), out);
}

static sp_status call_dense_copy(sp_context *context, subject *s, void *out)
{
    return sp_dense_copy(context, &s->dense, here(context), out);
}

static sp_status call_cbsr_create(sp_context *context, subject *s, void *out)
{
    (void)s;
    return sp_cbsr_create(context, 20, 10, 3, SP_DENSE_F64, out);
}

static sp_status call_generate_rows(sp_context *context, subject *s, void *out)
{
    (void)s;
    return generate_matrix(context, "uniform:100,4", 1, SP_F32, out);
}

static sp_status call_generate_edges(sp_context *context, subject *s, void *out)
{
    (void)s;
    return generate_matrix(context, "rmat:6,4", 1, SP_F64, out);
}

/* ---- graph neural networks ------------------------------------------------------------------------------- */

enum { CLASSES = 3 };

static sp_status open_engine(sp_context *context, const subject *s, gnn_engine **engine)
{
    *engine = s->engine;
    return s->engine ? SP_OK : gnn_engine_create(context, 1, engine);
}

static void close_engine(const subject *s, gnn_engine *engine)
{
    if (engine != s->engine) gnn_engine_free(engine);
}

static sp_status call_operator(sp_context *context, subject *s, void *out)
{
    return gnn_operator(context, &s->graph, GNN_GCN, SP_F32, out);
}

static sp_status call_symmetric(sp_context *context, subject *s, void *out)
{
    return gnn_symmetric(context, &s->graph, out);
}

/* All minibatches of a pass. */
static sp_status call_sampler(sp_context *context, subject *s, void *out)
{
    const gnn_sampler_options options = {.layers = 2, .fanout = {4, 3}, .batch = 40, .bulk = 2};
    gnn_engine *engine;
    gnn_sampler *sampler = NULL;
    gnn_minibatch minibatch = {.layers = 1};
    sp_status status = open_engine(context, s, &engine);
    if (status == SP_OK) status = gnn_sampler_create(engine, &s->graph, &options, &sampler);
    if (status == SP_OK) status = gnn_sampler_begin(sampler, s->order + 140, 60, 0); /* 59 .. 0 */
    while (status == SP_OK && minibatch.layers) {
        status = gnn_sampler_next(sampler, &minibatch);
        if (status == SP_OK) gnn_minibatch_free(engine, &minibatch);
    }
    gnn_sampler_free(sampler);
    close_engine(s, engine);
    (void)out;
    return status;
}

/* A trainer is made, trains two epochs, predicts and is saved: the bytes are the output. */
static sp_status train(sp_context *context, subject *s, gnn_trainer_options options, void *out)
{
    int32_t labels[60], classes[60];
    uint8_t split[60];
    for (int i = 0; i < 60; i++) labels[i] = i / 20, split[i] = (uint8_t)(GNN_TRAIN + i % GNN_TEST);
    gnn_data data = {.graph = s->graph, .classes = CLASSES, .labels = labels, .split = split};
    data.features.dense = (sp_dense){60, WIDTH, WIDTH, NULL, SP_DENSE_F32, SP_HOST};
    float features[60 * WIDTH];
    for (int i = 0; i < 60 * WIDTH; i++) features[i] = (float)(i * 7 % 31) / 31;
    data.features.dense.values = features;
    gnn_engine *engine;
    gnn_trainer *trainer = NULL;
    gnn_epoch epoch;
    void *bytes = NULL;
    int64_t size;
    bool done = false;
    options.model.hidden = 16;
    options.epochs = 2;
    sp_status status = open_engine(context, s, &engine);
    if (status == SP_OK) status = gnn_trainer_create(engine, &data, &options, &trainer);
    while (status == SP_OK && !done) status = gnn_trainer_epoch(trainer, &epoch, &done);
    if (status == SP_OK) status = gnn_trainer_finish(trainer);
    if (status == SP_OK) status = gnn_trainer_predict(trainer, classes, NULL, NULL);
    if (status == SP_OK) status = gnn_trainer_save(trainer, true, &bytes, &size);
    gnn_trainer_free(trainer);
    close_engine(s, engine);
    if (status == SP_OK) *(void **)out = bytes;
    return status;
}

static sp_status call_train_gcn(sp_context *context, subject *s, void *out)
{
    const gnn_model_options model = {.layer = GNN_GCN, .dropout = 0.5, .keep_aggregated = true};
    return train(context, s, (gnn_trainer_options){.model = model}, out);
}

static sp_status call_train_maxk(sp_context *context, subject *s, void *out)
{
    return train(context, s, (gnn_trainer_options){.model = {.layer = GNN_SAGE, .maxk = 4}}, out);
}

static sp_status call_train_gat(sp_context *context, subject *s, void *out)
{
    return train(context, s, (gnn_trainer_options){.model = {.layer = GNN_GAT, .heads = 2}}, out);
}

static sp_status call_train_sampled(sp_context *context, subject *s, void *out)
{
    const gnn_sampler_options sampler = {.layers = 2, .fanout = {4, 3}, .batch = 10, .bulk = 2};
    return train(context, s, (gnn_trainer_options){.model = {.layer = GNN_SAGE}, .sampled = true, .sampler = sampler},
                 out);
}

static const trial trials[] = {
    {"sp_alloc", call_alloc, release_block, sizeof(void *)},
    {"sp_calloc", call_calloc, release_block, sizeof(void *)},
    {"sp_grow", call_grow, release_block, sizeof(void *)},
    {"sp_csr_create", call_create, release_csr, sizeof(sp_csr)},
    {"sp_array_create", call_array, release_array, sizeof(void *)},
    {"sp_dense_create", call_dense_create, release_dense, sizeof(sp_dense)},
    {"sp_dense_copy", call_dense_copy, release_dense, sizeof(sp_dense)},
    {"sp_cbsr_create", call_cbsr_create, release_cbsr, sizeof(sp_cbsr)},
    {"generate_matrix, rows", call_generate_rows, release_csr, sizeof(sp_csr)},
    {"generate_matrix, edges", call_generate_edges, release_csr, sizeof(sp_csr)},
    {"sp_csr_copy", call_copy, release_csr, sizeof(sp_csr)},
    {"sp_csr_from_coo", call_from_coo, release_csr, sizeof(sp_csr)},
    {"sp_csr_transpose", call_transpose, release_csr, sizeof(sp_csr)},
    {"sp_spgemm", call_spgemm, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, masked", call_spgemm_masked, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, transposed", call_spgemm_turned, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, or-and", call_spgemm_pattern, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, hash", call_spgemm_hash, release_csr, sizeof(sp_csr)},
    {"dense sp_spgemm", call_spgemm_dense, release_csr, sizeof(sp_csr)}, /* the CPU's only */
    {"sp_spgemm_top_k", call_spgemm_top_k, release_csr, sizeof(sp_csr)},
    {"sp_spgemm_plan_create", call_plan_create, release_plan, sizeof(sp_spgemm_plan *)},
    {"sp_spgemm_plan_create, masked", call_plan_create_masked, release_plan, sizeof(sp_spgemm_plan *)},
    {"sp_spgemm_plan_execute", call_plan_execute, release_csr, sizeof(sp_csr)},
    {"sp_spgemm_plan_execute, again", call_plan_execute_again, release_csr, sizeof(sp_csr)},
    {"sp_contract", call_contract, release_csr, sizeof(sp_csr)},
    {"sp_contract, hash", call_contract_hash, release_csr, sizeof(sp_csr)},
    {"sp_triple_product", call_triple, release_csr, sizeof(sp_csr)},
    {"contraction_quotient, mean", call_quotient_mean, release_csr, sizeof(sp_csr)},
    {"contraction_quotient, first", call_quotient_first, release_csr, sizeof(sp_csr)},
    {"contraction_mirror", call_mirror, release_csr, sizeof(sp_csr)},
    {"contraction_groups", call_groups, release_nothing, 6 * sizeof(contraction_group)},
    {"contraction_product", call_product, release_csr, sizeof(sp_csr)},
    {"contraction_match", call_match, release_nothing, 60 * sizeof(int32_t)},
    {"contraction_compact", call_compact, release_block, sizeof(void *)},
    {"contraction_repeat", call_repeat, release_hierarchy, sizeof(contraction_hierarchy)},
    {"sp_csr_permute", call_permute, release_csr, sizeof(sp_csr)},
    {"sp_csr_add", call_add, release_csr, sizeof(sp_csr)},
    {"sp_csr_hadamard", call_hadamard, release_csr, sizeof(sp_csr)},
    {"sp_csr_scale", call_scale, release_csr, sizeof(sp_csr)},
    {"sp_csr_extract, rows", call_extract_rows, release_csr, sizeof(sp_csr)},
    {"sp_csr_extract", call_extract, release_csr, sizeof(sp_csr)},
    {"sp_csr_top_k", call_top_k, release_csr, sizeof(sp_csr)},
    {"sp_csr_select, by place", call_select_place, release_csr, sizeof(sp_csr)},
    {"sp_csr_select, by value", call_select_value, release_csr, sizeof(sp_csr)},
    {"sp_csr_degree_order", call_degree_order, release_nothing, 60 * sizeof(int32_t)},
    {"sp_spgemm_markov", call_markov, release_csr, sizeof(sp_csr)},
    {"sp_spgemm_markov, renumbered", call_markov_renumbered, release_csr, sizeof(sp_csr)},
    {"sp_csr_community_order", call_community_order, release_block, sizeof(void *)},
    {"mcl_renumber", call_renumber, release_csr, sizeof(sp_csr)},
    {"mcl_restore", call_restore, release_csr, sizeof(sp_csr)},
    {"mcl_prepared_graph", call_prepared, release_csr, sizeof(sp_csr)},
    {"mcl_start_matrix", call_start, release_csr, sizeof(sp_csr)},
    {"mcl_iterate", call_iterate, release_csr, sizeof(sp_csr)},
    {"mcl_interpret", call_interpret, release_clustering, sizeof(mcl_clustering)},
    {"mcl_label", call_label, release_nothing, 60 * sizeof(int32_t)},
    {"mcl_measure", call_measure, release_nothing, sizeof(mcl_measures)},
    {"mcl_transform_parse", call_transform_parse, release_transform, sizeof(mcl_transform *)},
    {"mcl_transform_graph", call_transform_graph, release_csr, sizeof(sp_csr)},
    {"sp_spmm_plan_create", call_spmm_plan, release_spmm_plan, sizeof(sp_spmm_plan *)},
    {"sp_spmm_plan_set_values", call_spmm_values, release_spmm_plan, sizeof(sp_spmm_plan *)},
    {"sp_spmm_execute, rows", call_spmm_rows, release_dense, sizeof(sp_dense)},
    {"sp_spmm_execute, blocks", call_spmm_blocks, release_dense, sizeof(sp_dense)},
    {"sp_spmm_execute, ranges", call_spmm_ranges, release_dense, sizeof(sp_dense)},
    {"sp_spmm_execute_argument", call_spmm_argument, release_dense, sizeof(sp_dense)},
    {"sp_edge_softmax_backward", call_edges, release_array, sizeof(void *)},
    {"sp_maxk", call_maxk, release_cbsr, sizeof(sp_cbsr)},
    {"sp_maxk_spmm_backward", call_maxk_products, release_dense, sizeof(sp_dense)},
    {"gnn_operator", call_operator, release_csr, sizeof(sp_csr)},
    {"gnn_symmetric", call_symmetric, release_nothing, sizeof(bool)},
    {"gnn_sampler_next", call_sampler, release_nothing, 0},
    {"gnn_trainer, GCN", call_train_gcn, release_block, sizeof(void *)},
    {"gnn_trainer, MaxK", call_train_maxk, release_block, sizeof(void *)},
    {"gnn_trainer, GAT", call_train_gat, release_block, sizeof(void *)},
    {"gnn_trainer, sampled", call_train_sampled, release_block, sizeof(void *)},
};
enum { TRIALS = COUNT(trials) };

/* Minibatches for which memory does not suffice are drawn again, half as many at a time. */
static bool retries(const trial *t) { return t->call == call_sampler || t->call == call_train_sampled; }

/* A limit with overlap and with nodes that no attractor reaches, so that every list of the interpretation is made. */
static sp_csr overlapping_limit(sp_context *context)
{
    enum { N = 60 };
    double numbers[N * N] = {0};
    for (int j = 0; j < N - 5; j++) numbers[j * N + j / 10 * 10] = 1;
    for (int j = 11; j < 50; j += 7) numbers[j * N + (j / 10 + 1) % 5 * 10] = 1;
    return test_from_dense(context, N, N, numbers, SP_F32);
}

/* Matrices of `context`, for calls with `failing`. */
static subject open_subject(sp_context *context, sp_context *failing)
{
    test_random random = test_seed(41);
    subject s = {.square = test_matrix(context, &random, 60, 60, 0.1, SP_F64, TEST_SIGNED),
                 .wide = test_matrix(context, &random, 60, 200, 0.1, SP_F64, TEST_SIGNED),
                 .mask = test_matrix(context, &random, 60, 200, 0.3, SP_F32, TEST_PATTERN),
                 .stochastic = test_stochastic(context, &random, 200, 15),
                 .graph = test_communities(context, &random, 6, 10, 0.5, 0.02),
                 .limit = overlapping_limit(context)};
    ck_ok(context, sp_csr_copy(context, &s.square, SP_HOST, &s.negative));
    for (int64_t k = 0; k < s.square.nnz; k++) ((double *)s.negative.values)[k] *= -1;
    for (int i = 0; i < 200; i++) {
        s.rows[i] = (int32_t)test_below(&random, 40);
        s.cols[i] = (int32_t)test_below(&random, 40);
        s.order[i] = 199 - i;
    }
    ck_ok(context, sp_dense_create(context, 200, WIDTH, SP_DENSE_F32, SP_HOST, &s.dense));
    for (int i = 0; i < 200 * WIDTH; i++) ((float *)s.dense.values)[i] = (float)test_unit(&random);
    if (sp_context_is_cuda(failing)) ck_ok(failing, gnn_engine_create(failing, 1, &s.engine));
    return s;
}

static void close_subject(sp_context *context, subject *s)
{
    sp_csr *all[] = {&s->square, &s->negative, &s->wide, &s->mask, &s->stochastic, &s->graph, &s->limit};
    for (size_t i = 0; i < COUNT(all); i++) sp_csr_free(context, all[i]);
    sp_dense_free(context, &s->dense);
    gnn_engine_free(s->engine);
}

enum { MOST_BYTES = 256 }; /* of an output */

/* Whether a failed call has left the output as test_mark made it; or zeroed, if it is one of those that do. */
static bool is_untouched(const trial *t, const unsigned char *out)
{
    static const unsigned char zeros[MOST_BYTES];
    if (strstr(t->name, "_create") || strcmp(t->name, "sp_alloc") == 0 || strcmp(t->name, "sp_calloc") == 0)
        return memcmp(out, zeros, t->size) == 0 && test_is_marked(out + t->size, MOST_BYTES - t->size);
    return test_is_marked(out, MOST_BYTES);
}

/* Calls with allocation `fail_at` failing; true when the call succeeded, as nothing was left to fail. */
static bool attempt(const trial *t, sp_context *context, test_heap *heap, subject *s, int64_t fail_at, bool fail_all)
{
    unsigned char out[MOST_BYTES];
    const int64_t blocks = heap->live_blocks, bytes = heap->live_bytes;
    test_mark(out, sizeof out);
    heap->allocations = 0;
    heap->fail_at = fail_at;
    heap->fail_all = fail_all;
    const sp_status status = t->call(context, s, out);
    const bool reached = heap->allocations > fail_at;
    heap->fail_at = -1;
    if (status == SP_OK) {
        test_expect(!reached || retries(t), "%s: succeeded although allocation %lld failed", t->name,
                    (long long)fail_at);
        t->release(context, out);
    } else {
        test_expect(status == SP_ERROR_HOST_MEMORY, "%s, allocation %lld: %s", t->name, (long long)fail_at,
                    sp_status_string(status));
        test_expect(is_untouched(t, out), "%s, allocation %lld: the output was touched", t->name,
                    (long long)fail_at);
        test_expect(strstr(sp_last_error(context), "memory") != NULL, "%s: the sentence is \"%s\"", t->name,
                    sp_last_error(context));
    }
    test_expect(heap->live_blocks == blocks && heap->live_bytes == bytes,
                "%s, allocation %lld: %lld blocks, %lld bytes leaked", t->name, (long long)fail_at,
                (long long)(heap->live_blocks - blocks), (long long)(heap->live_bytes - bytes));
    return !reached;
}

/* Runs one trial to its end on a context with two threads: the order in which they allocate changes from run to
 * run, but which allocations fail in turn is covered all the same. */
static void exhaust(const trial *t, int threads, bool fail_all)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = "cpu", .threads = threads, .allocator = &allocator};
    sp_context *host = test_context(0, 1), *context;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    subject s = open_subject(host, context);
    int64_t n = 0;
    while (!attempt(t, context, &heap, &s, n, fail_all)) {
        n++;
        test_expect(n < 2000, "%s: no success after %lld failed allocations", t->name, (long long)n);
    }
    test_expect(n > 0, "%s: allocates nothing through the context", t->name);
    close_subject(host, &s);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
    sp_context_destroy(host);
}

TEST(one_failed_allocation_leaks_nothing) { exhaust(&trials[_i], 1, false); }

TEST(memory_that_has_run_out_leaks_nothing) { exhaust(&trials[_i], 1, true); }

TEST(failures_inside_threads_leak_nothing) { exhaust(&trials[_i], 2, true); }

/* ---- interrupts ------------------------------------------------------------------------------------------- */

/* Whether the call does work that grows with its operands, beside copying them. */
static bool is_long(const trial *t)
{
    static const char *const brief[] = {"sp_alloc", "sp_calloc", "sp_grow", "sp_csr_create", "sp_array_create",
                                        "sp_dense_create", "sp_dense_copy", "sp_cbsr_create", "sp_csr_copy"};
    for (size_t i = 0; i < COUNT(brief); i++)
        if (strcmp(t->name, brief[i]) == 0) return false;
    return strncmp(t->name, "sp_", 3) == 0;
}

/* Calls with the interrupt flag set before (-1) or by allocation `raise_at`; true when it was not reached. */
static bool interrupt_at(const trial *t, sp_context *context, test_heap *heap, subject *s, int64_t raise_at)
{
    unsigned char out[MOST_BYTES];
    const int64_t blocks = heap->live_blocks;
    test_mark(out, sizeof out);
    heap->allocations = 0;
    heap->raise_at = raise_at;
    *heap->flag = raise_at < 0;
    const sp_status status = t->call(context, s, out);
    const bool reached = heap->allocations > raise_at;
    heap->raise_at = -1;
    *heap->flag = 0;
    if (status == SP_OK) {
        test_expect(raise_at >= 0 || !is_long(t), "%s goes on although it was interrupted before", t->name);
        t->release(context, out);
    } else {
        test_expect(reached && status == SP_ERROR_INTERRUPTED, "%s, allocation %lld: %s (%s)", t->name,
                    (long long)raise_at, sp_status_string(status), sp_last_error(context));
        test_expect(is_untouched(t, out), "%s, allocation %lld: the output was touched", t->name,
                    (long long)raise_at);
    }
    test_expect(heap->live_blocks == blocks, "%s, allocation %lld: %lld blocks leaked", t->name, (long long)raise_at,
                (long long)(heap->live_blocks - blocks));
    return !reached;
}

TEST(interrupts_at_any_allocation_leak_nothing)
{
    volatile int flag = 0;
    test_heap heap = {.fail_at = -1, .flag = &flag, .raise_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = "cpu", .threads = 2, .allocator = &allocator, .interrupt = &flag};
    sp_context *host = test_context(0, 1), *context;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    subject s = open_subject(host, context);
    for (int64_t n = -1; !interrupt_at(&trials[_i], context, &heap, &s, n) && n < 2000; n++) {}
    close_subject(host, &s);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
    sp_context_destroy(host);
}

/* Many triples in each of the orders that are treated in their own way, the flag set by each allocation in turn, which
 * all loops but the last moves follow: with the work before a flag is set, no call goes on to its end after it. */
TEST(merges_end_soon_after_an_interrupt)
{
    enum { COUNT = 300000, NODES = 3000 };
    volatile int flag = 0;
    test_heap heap = {.fail_at = -1, .flag = &flag, .raise_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = "cpu", .threads = 2, .allocator = &allocator, .interrupt = &flag};
    sp_context *context;
    int32_t *rows = malloc(COUNT * sizeof *rows), *cols = malloc(COUNT * sizeof *cols);
    float *values = malloc(COUNT * sizeof *values);
    test_random random = test_seed(9);
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    for (int order = 0; order < 4; order++) { /* anywhere; all in one row; ascending by rows; by columns */
        for (int k = 0; k < COUNT; k++) {
            const int32_t any = (int32_t)test_below(&random, NODES), other = (int32_t)test_below(&random, NODES);
            rows[k] = order == 1 ? 7 : order == 2 ? k / 100 : order == 3 ? k % 100 : any;
            cols[k] = order == 2 ? k % 100 : order == 3 ? k / 100 : other;
            values[k] = 1;
        }
        int64_t interrupted = 0;
        for (int64_t n = -1;; n++) {
            sp_csr m = {0};
            heap.allocations = 0;
            heap.raise_at = n;
            flag = n < 0;
            const sp_status status = sp_csr_from_coo(context, NODES, NODES, COUNT, rows, cols, values, SP_F32,
                                                     SP_COMBINE_SUM, false, &m);
            const bool reached = heap.allocations > n;
            interrupted += status == SP_ERROR_INTERRUPTED;
            ck_assert(status == SP_OK || (status == SP_ERROR_INTERRUPTED && !m.row_offsets));
            sp_csr_free(context, &m);
            ck_assert_int_eq(heap.live_blocks, 1); /* the context */
            if (!reached) break;
        }
        test_expect(interrupted >= (order < 2 ? 6 : 3), "order %d: %lld calls were interrupted", order,
                    (long long)interrupted);
    }
    free_all(rows, cols, values);
    sp_context_destroy(context);
}

TEST(context_creation_survives_a_failed_allocation)
{
    test_heap heap = {.fail_at = 0};
    const sp_allocator allocator = test_allocator(&heap);
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .allocator = &allocator}, &context),
                     SP_ERROR_HOST_MEMORY);
    ck_assert_ptr_null(context);
    ck_assert_int_eq(heap.live_blocks, 0);
}

/* On CUDA: host allocations of a product fail in turn; device memory belongs to the context's pool. */
TEST(products_on_any_device_leak_no_host_memory)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = _i ? "cuda" : "cpu", .threads = 2, .allocator = &allocator};
    sp_context *host = test_context(0, 1), *context;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    subject s = open_subject(host, context);
    for (int i = 0; i < TRIALS; i++) {
        if (strncmp(trials[i].name, "sp_spgemm", 9) != 0 && strncmp(trials[i].name, "sp_contract", 11) != 0) continue;
        /* The first call may leave something with the context for the next; that is not a leak. */
        attempt(&trials[i], context, &heap, &s, INT64_MAX, false);
        for (int64_t n = 0; !attempt(&trials[i], context, &heap, &s, n, false) && n < 200; n++) {}
    }
    close_subject(host, &s);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
    sp_context_destroy(host);
}

/* ---- the CUDA runtime ------------------------------------------------------------------------------------ */

#ifdef SPARSE_CUDA
/* The linker gives the library these functions in place of the runtime's (--wrap in the Makefile). */
typedef enum failing { NO_CALL, ONE_CALL, ALLOCATIONS } failing; /* ALLOCATIONS: one and all after it */

static struct {
    failing what;
    int64_t calls, fail_at, live; /* live: blocks of device memory */
    bool in_wait; /* it was a wait that failed */
    cudaError_t last;
} runtime;

static bool fails(failing what, cudaError_t error)
{
    if (runtime.what != what) return false;
    const int64_t call = runtime.calls++;
    if (call != runtime.fail_at && (what == ONE_CALL || call < runtime.fail_at)) return false;
    runtime.last = error;
    return true;
}

#define RUNTIME(name, parameters, ...)                                            \
    cudaError_t __real_##name parameters __attribute__((weak));                   \
    cudaError_t __wrap_##name parameters;                                         \
    cudaError_t __wrap_##name parameters                                          \
    {                                                                             \
        if (fails(ONE_CALL, cudaErrorUnknown)) return cudaErrorUnknown;           \
        return __real_##name(__VA_ARGS__);                                        \
    }
RUNTIME(__cudaLaunchKernel, (void *k, dim3 g, dim3 b, void **a, size_t s, cudaStream_t t), k, g, b, a, s, t)
RUNTIME(cudaLaunchKernel, (const void *k, dim3 g, dim3 b, void **a, size_t s, cudaStream_t t), k, g, b, a, s, t)
RUNTIME(cudaLaunchKernelExC, (const cudaLaunchConfig_t *c, const void *k, void **a), c, k, a)
RUNTIME(cudaMemcpyAsync, (void *d, const void *s, size_t n, enum cudaMemcpyKind k, cudaStream_t t), d, s, n, k, t)
RUNTIME(cudaMemsetAsync, (void *d, int v, size_t n, cudaStream_t t), d, v, n, t)
RUNTIME(cudaStreamWaitEvent, (cudaStream_t t, cudaEvent_t e, unsigned f), t, e, f)
RUNTIME(cudaEventRecord, (cudaEvent_t e, cudaStream_t t), e, t)
RUNTIME(cudaFuncGetAttributes, (struct cudaFuncAttributes * a, const void *k), a, k)

cudaError_t __real_cudaStreamSynchronize(cudaStream_t);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream)
{
    if (!fails(ONE_CALL, cudaErrorUnknown)) return __real_cudaStreamSynchronize(stream);
    runtime.in_wait = true;
    return cudaErrorUnknown;
}

cudaError_t __real_cudaMallocFromPoolAsync(void **, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t __wrap_cudaMallocFromPoolAsync(void **, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t __wrap_cudaMallocFromPoolAsync(void **block, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    if (fails(ONE_CALL, cudaErrorUnknown)) return cudaErrorUnknown;
    if (fails(ALLOCATIONS, cudaErrorMemoryAllocation)) return cudaErrorMemoryAllocation;
    const cudaError_t error = __real_cudaMallocFromPoolAsync(block, bytes, pool, stream);
    runtime.live += error == cudaSuccess;
    return error;
}

cudaError_t __real_cudaFreeAsync(void *, cudaStream_t);
cudaError_t __wrap_cudaFreeAsync(void *, cudaStream_t);
cudaError_t __wrap_cudaFreeAsync(void *block, cudaStream_t stream)
{
    runtime.live--;
    return __real_cudaFreeAsync(block, stream);
}

cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void)
{
    const cudaError_t own = runtime.last, real = __real_cudaGetLastError();
    runtime.last = cudaSuccess;
    return own != cudaSuccess ? own : real;
}

cudaError_t __real_cudaPeekAtLastError(void);
cudaError_t __wrap_cudaPeekAtLastError(void);
cudaError_t __wrap_cudaPeekAtLastError(void)
{
    return runtime.last != cudaSuccess ? runtime.last : __real_cudaPeekAtLastError();
}

/* What waits for the device once more when its work is done and it is freed, which has no status to tell of that. */
static bool waits_when_freed(const trial *t)
{
    return strncmp(t->name, "gnn_trainer", 11) == 0 || strstr(t->name, "out of core");
}

/* A context keeps the counts of contractions for the next one, in one block, unless it fails. */
enum { KEPT_BLOCKS = 1 };

/* Calls with one failing; true when nothing was left to fail. What can do with less memory may succeed without. */
static bool attempt_on_device(const trial *t, sp_context *context, subject *s, failing what, int64_t fail_at)
{
    unsigned char out[MOST_BYTES];
    const int64_t live = runtime.live;
    test_mark(out, sizeof out);
    runtime.calls = 0;
    runtime.fail_at = fail_at;
    runtime.in_wait = false;
    runtime.last = cudaSuccess;
    runtime.what = what;
    const sp_status status = t->call(context, s, out);
    const bool reached = runtime.calls > fail_at;
    runtime.what = NO_CALL;
    test_expect(runtime.last == cudaSuccess, "%s, %d, %lld: the runtime's last error is left behind", t->name, what,
                (long long)fail_at);
    if (status == SP_OK) {
        test_expect(!reached || what == ALLOCATIONS || (runtime.in_wait && waits_when_freed(t)),
                    "%s: succeeded although call %lld failed", t->name, (long long)fail_at);
        t->release(context, out);
    } else {
        test_expect(reached && status == (what == ALLOCATIONS ? SP_ERROR_DEVICE_MEMORY : SP_ERROR_DEVICE),
                    "%s, %d, %lld: %s (%s)", t->name, what, (long long)fail_at, sp_status_string(status),
                    sp_last_error(context));
        test_expect(is_untouched(t, out), "%s, %d, %lld: the output was touched", t->name, what,
                    (long long)fail_at);
    }
    test_expect(llabs(runtime.live - live) <= KEPT_BLOCKS, "%s, %d, %lld: %lld blocks of device memory leaked",
                t->name, what, (long long)fail_at, (long long)(runtime.live - live));
    return !reached;
}

static void place(sp_context *context, sp_csr *matrix)
{
    sp_csr there;
    ck_ok(context, sp_csr_copy(context, matrix, SP_DEVICE, &there));
    sp_csr_free(context, matrix);
    *matrix = there;
}

static void place_dense(sp_context *context, sp_dense *matrix)
{
    sp_dense there;
    ck_ok(context, sp_dense_copy(context, matrix, SP_DEVICE, &there));
    sp_dense_free(context, matrix);
    *matrix = there;
}

/* Each call of the runtime, then each allocation and all after it. */
static void exhaust_device(const trial *t, sp_context *context, const test_heap *heap, subject *s)
{
    const int64_t before = heap->live_blocks, live = runtime.live;
    /* The first call may leave something with the context and the runtime for the next. */
    attempt_on_device(t, context, s, NO_CALL, INT64_MAX);
    for (int64_t n = 0; !attempt_on_device(t, context, s, ONE_CALL, n); n++) {}
    for (int64_t n = 0; !attempt_on_device(t, context, s, ALLOCATIONS, n); n++) {}
    test_expect(heap->live_blocks == before, "%s: host memory leaked", t->name);
    test_expect(llabs(runtime.live - live) <= KEPT_BLOCKS, "%s: device memory leaked", t->name);
}

/* Operands on the host, then on the device, where most functions of the library take them. */
TEST(any_call_of_the_runtime_may_fail)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = "cuda", .threads = 2, .allocator = &allocator};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    for (int there = 0; there < 2; there++) {
        subject s = open_subject(context, context);
        sp_csr *all[] = {&s.square, &s.negative, &s.wide, &s.mask, &s.stochastic};
        for (size_t m = 0; there && m < COUNT(all); m++) place(context, all[m]);
        if (there) place_dense(context, &s.dense);
        for (int i = 0; i < TRIALS; i++) {
            const trial *t = &trials[i];
            if (t->call == call_spgemm_dense) continue;
            if (there && strncmp(t->name, "sp_", 3) != 0) continue;
            if (there && (t->call == call_permute || t->call == call_community_order)) continue;
            exhaust_device(t, context, &heap, &s);
        }
        close_subject(context, &s);
    }
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
    ck_assert_int_eq(runtime.live, 0);
}

/* X and Y are 5 MB each, on the host, and go in tiles through a device that may hold 8 with A. */
TEST(any_call_of_a_product_out_of_core_may_fail)
{
    enum { ROWS = 20000, COLS = 64 };
    const trial t = {"sp_spmm_execute, out of core", call_spmm_blocks, release_dense, sizeof(sp_dense)};
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = "cuda", .threads = 2, .allocator = &allocator,
                                        .memory_budget = 8 << 20};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    subject s = {0};
    ck_ok(context, generate_matrix(context, "uniform:20000,4", 1, SP_F32, &s.stochastic));
    ck_ok(context, sp_dense_create(context, ROWS, COLS, SP_DENSE_F32, SP_HOST, &s.dense));
    for (int64_t i = 0; i < ROWS * COLS; i++) ((float *)s.dense.values)[i] = (float)(i % 7);
    exhaust_device(&t, context, &heap, &s);
    close_subject(context, &s);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
    ck_assert_int_eq(runtime.live, 0);
}
#else
TEST(any_call_of_the_runtime_may_fail) {}
TEST(any_call_of_a_product_out_of_core_may_fail) {}
#endif

static const test_entry tests[] = {
    CASE("failures", 120),
    TURNS(one_failed_allocation_leaks_nothing, TRIALS),
    TURNS(memory_that_has_run_out_leaks_nothing, TRIALS),
    TURNS(failures_inside_threads_leak_nothing, TRIALS),
    TURNS(interrupts_at_any_allocation_leak_nothing, TRIALS),
    ONCE(merges_end_soon_after_an_interrupt),
    ONCE(context_creation_survives_a_failed_allocation),
    ON_DEVICES(products_on_any_device_leak_no_host_memory),
    CASE("device", 120),
    ON_CUDA(any_call_of_the_runtime_may_fail),
    ON_CUDA(any_call_of_a_product_out_of_core_may_fail),
    {0},
};

int main(void) { return test_run("alloc", tests); }
