/* The calls whose allocations test_alloc makes fail, and what they work on. */
#include <string.h>

#include "alloc_shared.h"
#include "contraction.h"
#include "generate.h"
#include "mcl.h"

static void release_dense(sp_context *context, void *out) { sp_dense_free(context, out); }
static void release_cbsr(sp_context *context, void *out) { sp_cbsr_free(context, out); }
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

/* What was made goes out, or is released after a failure. */
static sp_status hand_over(sp_context *context, sp_status status, void *made, void *out, size_t size,
                           void (*release)(sp_context *, void *))
{
    if (status == SP_OK) memcpy(out, made, size);
    else release(context, made);
    return status;
}

/* call_NAME, which returns what follows. */
#define CALL(name, ...)                                                                                         \
    static sp_status call_##name(sp_context *context, subject *s CK_ATTRIBUTE_UNUSED, void *out)                \
    {                                                                                                           \
        return __VA_ARGS__;                                                                                     \
    }

CALL(alloc, sp_alloc(context, 100, 8, out))
CALL(calloc, sp_calloc(context, 100, 8, out))

static sp_status call_grow(sp_context *context, subject *s, void *out)
{
    void *block = NULL;
    (void)s;
    const sp_status status = sp_grow(context, 0, 100, 8, &block);
    if (status == SP_OK) *(void **)out = block;
    return status;
}

CALL(create, sp_csr_create(context, 10, 10, 20, SP_F64, SP_HOST, out))
CALL(copy, sp_csr_copy(context, &s->square, SP_HOST, out))
CALL(from_coo, sp_csr_from_coo(context, &(sp_coo){.rows = 40, .cols = 40, .count = 200, .row_indices = s->rows,
                                                  .col_indices = s->cols}, SP_COMBINE_SUM, true, out))
CALL(transpose, sp_csr_transpose(context, &s->wide, out))
CALL(sort, sp_csr_sort(context, &s->wide, out))
CALL(spgemm, sp_spgemm(context, &s->square, &s->wide, NULL, out, NULL))
CALL(spgemm_shifted, sp_spgemm(context, &s->band, &s->band, NULL, out, NULL))
CALL(spgemm_masked, sp_spgemm(context, &s->square, &s->wide, &(sp_spgemm_options){.semiring = SP_MAX_TIMES,
     .mask = &s->mask}, out, NULL))
CALL(spgemm_turned, sp_spgemm(context, &s->square, &s->square, &(sp_spgemm_options){.semiring = SP_MIN_PLUS,
     .transpose_a = true, .transpose_b = true, .mask = &s->square, .complement = true, .to_host = true}, out, NULL))
CALL(spgemm_pattern, sp_spgemm(context, &s->square, &s->wide, &(sp_spgemm_options){.semiring = SP_OR_AND}, out, NULL))
CALL(spgemm_hash, sp_spgemm(context, &s->square, &s->wide, &(sp_spgemm_options){.algorithm = SP_SPGEMM_HASH,
     .aia = SP_AIA_ON}, out, NULL))
CALL(spgemm_dense, sp_spgemm(context, &s->square, &s->wide, &(sp_spgemm_options){.algorithm = SP_SPGEMM_DENSE}, out,
     NULL))
CALL(plan_create, sp_spgemm_plan_create(context, &s->square, &s->wide, NULL, out))
CALL(plan_create_repeated, sp_spgemm_plan_create(context, &s->elements, &s->elements, NULL, out))
CALL(plan_create_masked, sp_spgemm_plan_create(context, &s->square, &s->wide,
     &(sp_spgemm_options){.transpose_a = true, .mask = &s->mask}, out))

static sp_status call_plan_execute(sp_context *context, subject *s, void *out)
{
    const sp_spgemm_options options = {.transpose_a = true, .mask = &s->mask};
    sp_spgemm_plan *plan;
    sp_csr c = {0};
    sp_status status = sp_spgemm_plan_create(context, &s->square, &s->wide, &options, &plan);
    if (status == SP_OK) status = sp_spgemm_plan_execute(plan, 1, &s->square, &s->wide, 0, &c);
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
    if (status == SP_OK) status = sp_spgemm_plan_execute(plan, 1, &s->square, &s->wide, 0, &c);
    if (status == SP_OK) status = sp_csr_copy(context, &c, SP_HOST, &before);
    if (status == SP_OK) {
        status = sp_spgemm_plan_execute(plan, 1, &s->negative, &s->wide, 0, &c);
        if (status != SP_OK && c.space == SP_HOST) test_same(&before, &c, 0);
    }
    if (status == SP_OK) status = sp_spgemm_plan_execute(plan, 2, &s->square, &s->wide, 3, &c);
    if (status == SP_OK) status = sp_spgemm_plan_execute(plan, 2, &s->square, &s->wide, 0, &c);
    sp_csr_free(context, &before);
    sp_spgemm_plan_free(plan);
    return hand_over(context, status, &c, out, sizeof c, release_csr);
}

CALL(markov, sp_spgemm_markov(context, &s->stochastic, &s->stochastic, &(sp_markov_epilogue){ .cutoff = 1e-3,
     .select = 20, .recover = 30, .recover_mass = 0.9, .inflation = 2, .dense_factor = 10}, out, NULL, NULL))
CALL(permute, sp_csr_permute(context, &s->stochastic, s->order, s->order, out))
CALL(add, sp_csr_add(context, 1, &s->square, 2, &s->negative, out))
CALL(hadamard, sp_csr_hadamard(context, &s->square, &s->negative, out))

static sp_status call_scale(sp_context *context, subject *s, void *out)
{
    const double factors[200] = {1};
    sp_csr work = {0};
    sp_status status = sp_csr_copy(context, &s->mask, s->mask.space, &work);
    if (status == SP_OK) status = sp_csr_scale(context, &work, factors, factors, SP_HOST);
    return hand_over(context, status, &work, out, sizeof work, release_csr);
}

CALL(extract_rows, sp_csr_extract(context, &s->square, s->rows, 200, NULL, 0, SP_HOST, out))
CALL(extract, sp_csr_extract(context, &s->square, s->rows, 200, s->cols, 200, SP_HOST, out))
CALL(similarity, sp_similarity(context, &s->wide, &s->wide, &(sp_similarity_options){.top_k = 3}, out, NULL))
CALL(top_k, sp_csr_top_k(context, &s->wide, 3, out))
CALL(spgemm_top_k, sp_spgemm_top_k(context, &s->square, &s->wide, 3, &(sp_spgemm_options){.mask = &s->mask}, out,
     NULL))
CALL(select_place, sp_csr_select(context, &s->square, SP_SELECT_LOWER, -1, out))
CALL(select_value, sp_csr_select(context, &s->wide, SP_SELECT_GT, 0, out))

static sp_status call_degree_order(sp_context *context, subject *s, void *out)
{
    int32_t order[60];
    const sp_status status = sp_csr_degree_order(context, &s->square, order, SP_HOST);
    if (status == SP_OK) memcpy(out, order, sizeof order);
    return status;
}

CALL(markov_renumbered, sp_spgemm_markov(context, &s->stochastic, &s->stochastic,
     &(sp_markov_epilogue){.cutoff = 1e-3, .inflation = 2, .order = s->order}, out, NULL, NULL))
CALL(community_order, sp_csr_community_order(context, &s->stochastic, out))
CALL(renumber, mcl_renumber(context, &s->stochastic, s->order, out))
CALL(restore, mcl_restore(context, &s->stochastic, s->order, out))
CALL(keep_attracting, mcl_keep_attracting(context, &s->stochastic, 0, out))

static mcl_options usual(void)
{
    mcl_options options;
    mcl_options_default(&options);
    return options;
}

CALL(prepared, mcl_prepared_graph(context, &s->graph, NULL, (const mcl_options[]){usual()}, false, out))
CALL(start, mcl_start_matrix(context, &s->graph, NULL, (const mcl_options[]){usual()}, false, out))

static sp_status call_iterate(sp_context *context, subject *s, void *out)
{
    mcl_options options = usual();
    mcl_run run;
    options.main_length = 3;
    return mcl_iterate(context, &s->stochastic, &options, NULL, NULL, out, &run);
}

static sp_status call_interpret(sp_context *context, subject *s, void *out)
{
    mcl_options options = usual();
    options.overlap = MCL_OVERLAP_SPLIT;
    options.force_connected = true;
    return mcl_interpret(context, &s->limit, &s->graph, &options, out);
}

static sp_status call_label(sp_context *context, subject *s, void *out)
{
    mcl_options options = usual();
    int64_t clusters;
    options.main_length = 3;
    return mcl_label(context, &s->graph, &options, out, &clusters);
}

#define HALVES \
    (&(mcl_clustering){.nodes = 200, .clusters = 2, .offsets = (int64_t[]){0, 50, 200}, .members = s->order})
CALL(measure, mcl_measure(context, &s->stochastic, HALVES, out))

static sp_status call_profile(sp_context *context, subject *s, void *out)
{
    mcl_profile profiles[2];
    const sp_status status = mcl_profile_clusters(context, &s->stochastic, HALVES, profiles, NULL, NULL);
    if (status == SP_OK) memcpy(out, profiles, sizeof profiles);
    return status;
}

/* Half of the nodes had clusters, pairs of neighbours in the order. */
static sp_status call_update(sp_context *context, subject *s, void *out)
{
    int64_t offsets[51];
    for (int i = 0; i <= 50; i++) offsets[i] = 2 * i;
    const mcl_former former = {.clustering = {.nodes = 200, .clusters = 50, .offsets = offsets, .members = s->order},
                               .start = &s->stochastic, .place = s->order};
    mcl_update update = {0};
    mcl_clustering joined = {0};
    mcl_changes changes;
    sp_csr part = {0};
    sp_status status = mcl_find_touched(context, &s->stochastic, &former, &update);
    if (status == SP_OK) status = mcl_touched_part(context, &s->stochastic, update.touched, &part);
    if (status == SP_OK)
        status = mcl_join_clusterings(context, &former, update.touched, &former.clustering, MCL_SORT_SIZE, &joined);
    if (status == SP_OK) status = mcl_find_changes(context, &former, update.touched, &joined, &changes);
    mcl_update_free(context, &update);
    sp_csr_free(context, &part);
    return hand_over(context, status, &joined, out, sizeof joined, release_clustering);
}

CALL(transform_parse, mcl_transform_parse(context, "gq(0.5),mul(10),#knn(20)", false, out))

static sp_status call_transform_graph(sp_context *context, subject *s, void *out)
{
    mcl_transform *transform;
    sp_csr work = {0};
    sp_status status = mcl_transform_parse(context, "gq(0.1),mul(10),#knn(5)", false, &transform);
    if (status != SP_OK) return status;
    status = sp_csr_copy(context, &s->graph, SP_HOST, &work);
    if (status == SP_OK) status = mcl_transform_graph(context, transform, NULL, &work);
    mcl_transform_free(context, transform);
    return hand_over(context, status, &work, out, sizeof work, release_csr);
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

CALL(contract, contract(context, s, CONTRACTION_FUSED, SP_COMBINE_MEAN, 11, out))
/* Cells for so many groups are not worth their memory. */
CALL(contract_hash, contract(context, s, CONTRACTION_FUSED, SP_COMBINE_SUM, 100000, out))
static sp_status call_into(sp_context *context, subject *s, void *out)
{
    const sp_value_type type = s->square.value_type;
    int32_t labels[200];
    sp_csr c = {0}, b = {0};
    for (int i = 0; i < 200; i++) labels[i] = i % 11;
    sp_status status = sp_csr_create(context, 11, 11, 11 * 11, type, SP_HOST, &c);
    if (status == SP_OK) status = sp_contract_into(context, &s->square, labels, SP_HOST, 11, NULL, &c, NULL);
    if (status == SP_OK) status = sp_csr_create(context, 11, 11, c.nnz, type, SP_HOST, &b);
    if (status == SP_OK) status = sp_csr_transpose_into(context, &c, &b);
    sp_csr_free(context, &c);
    return hand_over(context, status, &b, out, sizeof b, release_csr);
}
static sp_status call_contract_symmetric(sp_context *context, subject *s, void *out)
{
    int32_t labels[200];
    for (int i = 0; i < 200; i++) labels[i] = s->order[i] % 3 * 5;
    return sp_contract(context, &s->square, labels, SP_HOST, 11, &(sp_contract_options){.symmetric = true}, out, NULL);
}

CALL(triple, contract(context, s, CONTRACTION_PRODUCT, SP_COMBINE_SUM, 11, out))
CALL(quotient_mean, contract(context, s, CONTRACTION_PRODUCT, SP_COMBINE_MEAN, 11, out))
CALL(quotient_first, contract(context, s, CONTRACTION_PRODUCT, SP_COMBINE_FIRST, 11, out))

/* A copy, as it works in place. */
static sp_status call_mirror(sp_context *context, subject *s, void *out)
{
    sp_csr c;
    bool symmetric;
    sp_status status = sp_csr_copy(context, &s->graph, SP_HOST, &c);
    if (status != SP_OK) return status;
    status = contraction_mirror(context, &c, &symmetric);
    return hand_over(context, status, &c, out, sizeof c, release_csr);
}

static sp_status call_groups(sp_context *context, subject *s, void *out)
{
    int32_t labels[200];
    for (int i = 0; i < 200; i++) labels[i] = s->order[i] % 6;
    return contraction_groups(context, &s->square, labels, 6, out);
}

static sp_status call_judge(sp_context *context, subject *s, void *out)
{
    int32_t labels[200];
    for (int i = 0; i < 200; i++) labels[i] = s->order[i] % 6;
    return contraction_judge(context, &s->graph, true, labels, 6, NULL, 0, out);
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

CALL(product, contraction_product(context, &s->square, &s->square,
     &(contraction_options){.how = {.combine = SP_COMBINE_COUNT, .half_loops = true}}, out, NULL))

/* 59 groups of 60 nodes: nodes are taken out of groups. */
static sp_status coarsen(sp_context *context, subject *s, contraction_method method, void *out)
{
    const contraction_coarsening how = {.method = method, .seed = 1, .least = 59};
    int64_t groups;
    return contraction_coarsen(context, &s->graph, &how, out, &groups);
}

CALL(matching, coarsen(context, s, CONTRACTION_MATCHING, out))
CALL(heavy_edges, coarsen(context, s, CONTRACTION_HEAVY_EDGES, out))
CALL(propagation, coarsen(context, s, CONTRACTION_PROPAGATION, out))

/* Leaves of a hub, which two-hop matching pairs. */
static sp_status call_two_hop(sp_context *context, subject *s, void *out)
{
    int64_t offsets[61], groups;
    int32_t columns[118];
    (void)s;
    for (int i = 0; i < 59; i++) columns[i] = i + 1;
    for (int i = 0; i < 59; i++) columns[59 + i] = 0;
    offsets[0] = 0;
    for (int i = 1; i <= 60; i++) offsets[i] = 58 + i;
    const sp_csr star = {.rows = 60, .cols = 60, .nnz = 118, .row_offsets = offsets, .col_indices = columns,
                         .value_type = SP_F32};
    return contraction_coarsen(context, &star, NULL, out, &groups);
}

/* A copy, as it works in place. The graph is that of call_repeat, in two parts. */
static sp_status call_refine(sp_context *context, subject *s, void *out)
{
    int32_t labels[60];
    for (int i = 0; i < 60; i++) labels[i] = s->order[i] & 1;
    const sp_status status = contraction_refine(context, &s->graph, 2, NULL, labels, NULL);
    for (int i = 0; status != SP_OK && i < 60; i++)
        if (labels[i] != (s->order[i] & 1)) ck_abort_msg("contraction_refine: labels changed by a failure");
    if (status == SP_OK) memcpy(out, labels, sizeof labels);
    return status;
}

static sp_status match_labeller(sp_context *context, void *user, const sp_csr *g, int32_t *labels, int64_t *groups)
{
    (void)user;
    return contraction_coarsen(context, g, NULL, labels, groups);
}

CALL(repeat, contraction_repeat(context, &s->graph, 3, match_labeller, NULL, NULL, out))

/* ---- products with dense matrices ------------------------------------------------------------------------ */

enum { WIDTH = 32, KEPT = 5 };

static void release_array(sp_context *context, void *out)
{
    sp_array_free(context, test_space(context), *(void **)out);
}
static void release_spmm_plan(sp_context *context, void *out)
{
    (void)context;
    sp_spmm_plan_free(*(sp_spmm_plan **)out);
}

CALL(spmm_plan, sp_spmm_plan_create(context, &s->stochastic, WIDTH,
     &(sp_spmm_options){.algorithm = SP_SPMM_BLOCK_PARTITION, .transpose = true}, out))

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
    return hand_over(context, status, &y, out, sizeof y, release_dense);
}

CALL(spmm_rows, spmm(context, s, &(sp_spmm_options){.algorithm = SP_SPMM_ROW_SPLIT, .reduce = SP_REDUCE_MEAN}, out))
CALL(spmm_blocks, spmm(context, s, &(sp_spmm_options){.algorithm = SP_SPMM_BLOCK_PARTITION}, out))
CALL(spmm_ranges, spmm(context, s, &(sp_spmm_options){.algorithm = SP_SPMM_BIDIRECTIONAL, .transpose = true,
     .partition_bytes = 1 << 12}, out))

static sp_status call_spmm_values(sp_context *context, subject *s, void *out)
{
    const sp_spmm_options options = {.algorithm = SP_SPMM_BLOCK_PARTITION, .transpose = true};
    sp_dense x = s->dense, y = {0}; /* a head of 8 columns */
    sp_spmm_plan *plan;
    sp_status status = sp_spmm_plan_create(context, &s->stochastic, WIDTH, &options, &plan);
    if (status == SP_OK) status = sp_spmm_plan_set_values(plan, s->stochastic.values, s->stochastic.space);
    if (status == SP_OK) status = sp_dense_create(context, x.rows, 8, x.type, x.space, &y);
    x.cols = x.batch_stride = y.batch_stride = 8 * (x.batch = y.batch = 1);
    if (status == SP_OK) status = sp_spmm_execute_heads(plan, s->stochastic.values, x.space, 1, &x, 0, &y);
    sp_dense_free(context, &y);
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
    return hand_over(context, status, &y, out, sizeof y, release_dense);
}

/* Values for stochastic's entries, from X and X: the gradient of a softmax over those of the rows. */
static sp_status call_edges(sp_context *context, subject *s, void *out)
{
    const sp_space space = test_space(context);
    const int64_t count = s->stochastic.nnz;
    void *softmax = NULL, *gradient = NULL;
    sp_dense x = {0};
    sp_status status = sp_dense_copy(context, &s->dense, space, &x);
    if (status == SP_OK) status = sp_array_create(context, count, sizeof(float), space, &softmax);
    if (status == SP_OK) status = sp_array_create(context, count, sizeof(float), space, &gradient);
    if (status == SP_OK) status = sp_sddmm(context, &s->stochastic, &x, &x, softmax);
    if (status == SP_OK) status = sp_sddmm(context, &s->stochastic, &x, &x, gradient);
    if (status == SP_OK) status = sp_edge_softmax(context, &s->stochastic, 1, softmax);
    if (status == SP_OK) status = sp_edge_softmax_backward(context, &s->stochastic, 1, softmax, gradient);
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
    sp_status status = sp_dense_copy(context, &s->dense, test_space(context), &x);
    if (status == SP_OK) status = sp_cbsr_create(context, 200, WIDTH, KEPT, SP_DENSE_F32, &kept);
    if (status == SP_OK) status = sp_maxk(context, &x, &kept);
    if (status == SP_OK) status = sp_maxk_expand(context, &kept, &x);
    sp_dense_free(context, &x);
    return hand_over(context, status, &kept, out, sizeof kept, release_cbsr);
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
    if (status == SP_OK) status = sp_dense_create(context, 200, WIDTH, SP_DENSE_F32, test_space(context), &y);
    if (status == SP_OK) status = sp_maxk_spmm(plan, 1, &kept, 0, &y);
    if (status == SP_OK) status = sp_maxk_spmm_backward(plan, &y, &kept);
    sp_spmm_plan_free(plan);
    sp_cbsr_free(context, &kept);
    return hand_over(context, status, &y, out, sizeof y, release_dense);
}

CALL(array, sp_array_create(context, 100, 8, test_space(context), out))
CALL(dense_create, sp_dense_create(context, 20, 10, SP_DENSE_F16, test_space(context), out))
CALL(dense_copy, sp_dense_copy(context, &s->dense, test_space(context), out))
CALL(cbsr_create, sp_cbsr_create(context, 20, 10, 3, SP_DENSE_F64, out))
CALL(generate_rows, generate_matrix(context, "uniform:100,4", 1, SP_F32, out))
CALL(generate_edges, generate_matrix(context, "rmat:6,4", 1, SP_F64, out))

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

CALL(operator, gnn_operator(context, &s->graph, GNN_GCN, SP_F32, out))
CALL(symmetric, gnn_symmetric(context, &s->graph, out))

/* All minibatches of a pass. */
static sp_status call_sampler(sp_context *context, subject *s, void *out)
{
    const gnn_sampler_options options = {.layers = 2, .fanout = {4, 3}, .batch = 40, .bulk = 2};
    gnn_sampler *sampler;
    gnn_minibatch minibatch = {.layers = 1};
    sp_status status = gnn_sampler_create(context, &s->graph, &options, &sampler);
    if (status == SP_OK) status = gnn_sampler_begin(sampler, s->order + 140, 60, 1, 0); /* 59 .. 0 */
    while (status == SP_OK && minibatch.layers) {
        status = gnn_sampler_next(sampler, &minibatch);
        if (status == SP_OK) gnn_minibatch_free(context, &minibatch);
    }
    gnn_sampler_free(sampler);
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
    data.features.dense = (sp_dense){.rows = 60, .cols = WIDTH, .stride = WIDTH};
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

CALL(train_maxk, train(context, s, (gnn_trainer_options){.model = {.layer = GNN_SAGE, .maxk = 4}}, out))
CALL(train_gat, train(context, s, (gnn_trainer_options){.model = {.layer = GNN_GAT, .heads = 2}}, out))

static sp_status call_train_sampled(sp_context *context, subject *s, void *out)
{
    const gnn_sampler_options sampler = {.layers = 2, .fanout = {4, 3}, .batch = 10, .bulk = 2};
    return train(context, s, (gnn_trainer_options){.model = {.layer = GNN_SAGE}, .sampled = true, .sampler = sampler},
                 out);
}

const trial trials[] = {
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
    {"sp_csr_sort", call_sort, release_csr, sizeof(sp_csr)},
    {"sp_spgemm", call_spgemm, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, shifted", call_spgemm_shifted, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, masked", call_spgemm_masked, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, transposed", call_spgemm_turned, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, or-and", call_spgemm_pattern, release_csr, sizeof(sp_csr)},
    {"sp_spgemm, hash", call_spgemm_hash, release_csr, sizeof(sp_csr)},
    {"dense sp_spgemm", call_spgemm_dense, release_csr, sizeof(sp_csr)}, /* the CPU's only */
    {"sp_similarity", call_similarity, release_csr, sizeof(sp_csr)},
    {"sp_spgemm_top_k", call_spgemm_top_k, release_csr, sizeof(sp_csr)},
    {"sp_spgemm_plan_create", call_plan_create, release_plan, sizeof(sp_spgemm_plan *)},
    {"sp_spgemm_plan_create, repeated", call_plan_create_repeated, release_plan, sizeof(sp_spgemm_plan *)},
    {"sp_spgemm_plan_create, masked", call_plan_create_masked, release_plan, sizeof(sp_spgemm_plan *)},
    {"sp_spgemm_plan_execute", call_plan_execute, release_csr, sizeof(sp_csr)},
    {"sp_spgemm_plan_execute, again", call_plan_execute_again, release_csr, sizeof(sp_csr)},
    {"sp_contract", call_contract, release_csr, sizeof(sp_csr)},
    {"sp_contract_into, sp_csr_transpose_into", call_into, release_csr, sizeof(sp_csr)},
    {"sp_contract, hash", call_contract_hash, release_csr, sizeof(sp_csr)},
    {"sp_contract, symmetric", call_contract_symmetric, release_csr, sizeof(sp_csr)},
    {"sp_triple_product", call_triple, release_csr, sizeof(sp_csr)},
    {"contraction_quotient, mean", call_quotient_mean, release_csr, sizeof(sp_csr)},
    {"contraction_quotient, first", call_quotient_first, release_csr, sizeof(sp_csr)},
    {"contraction_mirror", call_mirror, release_csr, sizeof(sp_csr)},
    {"contraction_groups", call_groups, release_nothing, 6 * sizeof(contraction_group)},
    {"contraction_judge", call_judge, release_nothing, sizeof(contraction_judgement)},
    {"contraction_product", call_product, release_csr, sizeof(sp_csr)},
    {"contraction_coarsen, matching", call_matching, release_nothing, 60 * sizeof(int32_t)},
    {"contraction_coarsen, two-hop", call_two_hop, release_nothing, 60 * sizeof(int32_t)},
    {"contraction_coarsen, heavy edges", call_heavy_edges, release_nothing, 60 * sizeof(int32_t)},
    {"contraction_coarsen, propagation", call_propagation, release_nothing, 60 * sizeof(int32_t)},
    {"contraction_refine", call_refine, release_nothing, 60 * sizeof(int32_t)},
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
    {"mcl_keep_attracting", call_keep_attracting, release_csr, sizeof(sp_csr)},
    {"mcl_prepared_graph", call_prepared, release_csr, sizeof(sp_csr)},
    {"mcl_start_matrix", call_start, release_csr, sizeof(sp_csr)},
    {"mcl_iterate", call_iterate, release_csr, sizeof(sp_csr)},
    {"mcl_interpret", call_interpret, release_clustering, sizeof(mcl_clustering)},
    {"mcl_label", call_label, release_nothing, 60 * sizeof(int32_t)},
    {"mcl_find_touched and all that follows", call_update, release_clustering, sizeof(mcl_clustering)},
    {"mcl_measure", call_measure, release_nothing, sizeof(mcl_measures)},
    {"mcl_profile_clusters", call_profile, release_nothing, 2 * sizeof(mcl_profile)},
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
_Static_assert(COUNT(trials) == TRIALS, "alloc_shared.h says how many trials there are");

bool is_trial(const trial *t, const char *name) { return strcmp(t->name, name) == 0; }

/* ---- their operands and outputs ------------------------------------------------------------------------- */

/* A limit with overlap and with nodes that no attractor reaches, so that every list of the interpretation is made. */
static sp_csr overlapping_limit(sp_context *context)
{
    enum { N = 60 };
    double numbers[N * N] = {0};
    for (int j = 0; j < N - 5; j++) numbers[j * N + j / 10 * 10] = 1;
    for (int j = 11; j < 50; j += 7) numbers[j * N + (j / 10 + 1) % 5 * 10] = 1;
    return test_from_dense(context, N, N, numbers, SP_F32);
}

subject open_subject(sp_context *context, sp_context *failing)
{
    test_random random = test_seed(41);
    subject s = {.square = test_matrix(context, &random, 60, 60, 0.1, SP_F64, TEST_SIGNED),
                 .wide = test_matrix(context, &random, 60, 200, 0.1, SP_F64, TEST_SIGNED),
                 .mask = test_matrix(context, &random, 60, 200, 0.3, SP_F32, TEST_PATTERN),
                 .stochastic = test_stochastic(context, &random, 200, 15),
                 .graph = test_communities(context, &random, 6, 10, 0.5, 0.02),
                 .limit = overlapping_limit(context)};
    ck_ok(context, sp_csr_copy(context, &s.square, SP_HOST, &s.negative));
    ck_ok(context, generate_matrix(context, "band:60,2,100", 1, SP_F64, &s.band));
    ck_ok(context, generate_matrix(context, "fem2d:4,4,3", 1, SP_F64, &s.elements));
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

void close_subject(sp_context *context, subject *s)
{
    sp_csr *all[] = {&s->square, &s->negative, &s->wide, &s->mask, &s->stochastic, &s->graph, &s->limit,
                     &s->band, &s->elements};
    for (size_t i = 0; i < COUNT(all); i++) sp_csr_free(context, all[i]);
    sp_dense_free(context, &s->dense);
    gnn_engine_free(s->engine);
}
