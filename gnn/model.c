/* Models: layers in sequence. The parameters lie in one array and the gradients in another. Results of the layers lie
 * in memory that grows with the shapes and is kept, so a full-batch epoch allocates nothing after the first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layer.h"

enum { LAYER_PARAMETERS = 8, MOST_PARAMETERS = GNN_MAX_LAYERS * LAYER_PARAMETERS + 2 }; /* two of a jump */

struct gnn_model {
    gnn_engine *engine;
    gnn_model_options options;
    int parameters;
    gnn_parameter parameter[MOST_PARAMETERS];
    gnn_weight *weight[MOST_PARAMETERS]; /* in the layers */
    int64_t size;
    void *weights, *gradients;
    gnn_layer_state layer[GNN_MAX_LAYERS];
    gnn_readout jump;
    bool forwarded; /* a forward pass was made, which the backward pass needs */

    gnn_layer_input input;
    gnn_matrix dropped, ones;  /* features, or the values of their entries, after dropout; values of a pattern */
    gnn_matrix logits_gradient; /* in bf16 */
    gnn_matrix rounded;        /* dense features in bf16, rounded from */
    int64_t rounded_block;     /* those that came with this block */
    const void *rounded_from;  /* at this address; NULL: none */
    sp_csr planned;            /* sparse features of input.plan (the caller's arrays), */
    int64_t planned_block;     /* the block that they came with, */
    const void *entries;       /* and their values in this pass */
};

/* ---- options ------------------------------------------------------------------------------------------ */

static void fill_defaults(gnn_model_options *o)
{
    if (o->layers == 0) o->layers = 2;
    if (o->heads == 0) o->heads = 8;
    if (o->output_heads == 0) o->output_heads = 1;
}

static sp_status check_maxk(sp_context *context, const gnn_model_options *o)
{
    if (o->layer != GNN_GCN && o->layer != GNN_SAGE && o->layer != GNN_GIN)
        return sp_fail(context, SP_ERROR_ARGUMENT, "MaxK goes with GCN, GraphSAGE (mean) and GIN");
    if (o->layers < 2 && o->jump == GNN_JUMP_NONE)
        return sp_fail(context, SP_ERROR_ARGUMENT, "MaxK is for hidden layers, and there is none");
    if (o->hidden > 65536 || o->maxk > o->hidden)
        return sp_fail(context, SP_ERROR_ARGUMENT, "MaxK keeps %lld of %lld hidden columns; there are 65536 at most,"
                       " and all can be kept", (long long)o->maxk, (long long)o->hidden);
    return SP_OK;
}

static sp_status check_options(sp_context *context, const gnn_model_options *o)
{
    const double rates[] = {o->input_dropout, o->dropout, o->attention_dropout};
    const int64_t most_heads = o->heads > o->output_heads ? o->heads : o->output_heads;
    const int64_t widest = o->hidden > o->outputs ? o->hidden : o->outputs;
    if ((unsigned)o->layer > GNN_GAT)
        return sp_fail(context, SP_ERROR_ARGUMENT, "layer %d does not exist", (int)o->layer);
    if (o->layers < 1 || o->layers > GNN_MAX_LAYERS)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%d layers; there can be 1 to %d", o->layers, GNN_MAX_LAYERS);
    if (o->inputs < 1 || o->outputs < 1 || o->inputs > INT32_MAX || widest > INT32_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld features, %lld hidden columns and %lld classes; there must"
                       " be one at least, and at most %d", (long long)o->inputs, (long long)o->hidden,
                       (long long)o->outputs, INT32_MAX);
    if (o->hidden < 1 && (o->layers > 1 || o->layer == GNN_GIN || o->jump != GNN_JUMP_NONE))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%lld hidden columns; there must be one at least",
                       (long long)o->hidden);
    if (o->heads < 1 || o->output_heads < 1 || (o->layer == GNN_GAT && most_heads * widest > INT32_MAX))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%d heads and %d in the last layer: there must be one at least,"
                       " and %d columns of them at most", o->heads, o->output_heads, INT32_MAX);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (!(rates[i] >= 0 && rates[i] < 1))
            return sp_fail(context, SP_ERROR_ARGUMENT, "a dropout of %g; it is at least 0 and below 1", rates[i]);
    if ((unsigned)o->norm > GNN_NORM_LAYER || (unsigned)o->jump > GNN_JUMP_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "norm %d or jump %d does not exist", (int)o->norm, (int)o->jump);
    if (o->type != SP_DENSE_F32 && o->type != SP_DENSE_F64)
        return sp_fail(context, SP_ERROR_ARGUMENT, "models are of type f32 or f64");
    if (o->keep_aggregated && o->input_dropout > 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "with dropout of the features A·X changes, and cannot be kept");
    if (o->half && (o->type != SP_DENSE_F32 || o->maxk > 0 || o->layer == GNN_SAGE_MAX))
        return sp_fail(context, SP_ERROR_ARGUMENT, "numbers in bf16 are for f32 models without MaxK and without maxima"
                       " over neighbours");
    if (o->maxk < 0) return sp_fail(context, SP_ERROR_ARGUMENT, "MaxK keeps %lld columns", (long long)o->maxk);
    return o->maxk > 0 ? check_maxk(context, o) : SP_OK;
}

sp_status gnn_model_check(sp_context *context, const gnn_model_options *options)
{
    gnn_model_options o = *options;
    fill_defaults(&o);
    return check_options(context, &o);
}

/* ---- parameters --------------------------------------------------------------------------------------- */

static void add_parameter(gnn_model *model, gnn_parameter_kind kind, int layer, const char *name, int64_t rows,
                          int64_t cols, gnn_weight *weight)
{
    gnn_parameter *p = &model->parameter[model->parameters];
    int64_t count;
    model->weight[model->parameters++] = weight;
    *p = (gnn_parameter){.kind = kind, .layer = layer, .rows = rows, .cols = cols, .offset = model->size};
    if (layer < model->options.layers) snprintf(p->name, sizeof p->name, "layer%d.%s", layer + 1, name);
    else snprintf(p->name, sizeof p->name, "jump.%s", name);
    weight->value = (sp_dense){.rows = rows, .cols = cols, .stride = cols, .type = model->options.type,
                               .space = model->engine->space};
    weight->gradient = weight->value;
    if (__builtin_mul_overflow(rows, cols, &count) || __builtin_add_overflow(model->size, count, &model->size))
        model->size = INT64_MAX; /* so that the allocation fails */
}

static void add_layer_parameters(gnn_model *model, int number, int64_t width)
{
    const int64_t hidden = model->options.hidden;
    gnn_layer_state *l = &model->layer[number];
    switch (l->kind) {
    case GNN_GCN: add_parameter(model, GNN_WEIGHT, number, "weight", l->inputs, width, &l->weight); break;
    case GNN_SAGE:
    case GNN_SAGE_MAX:
        add_parameter(model, GNN_WEIGHT, number, "weight_self", l->inputs, width, &l->own);
        add_parameter(model, GNN_WEIGHT, number, "weight_neighbours", l->inputs, width, &l->weight);
        break;
    case GNN_GIN:
        add_parameter(model, GNN_WEIGHT, number, "weight_1", l->inputs, hidden, &l->weight);
        add_parameter(model, GNN_BIAS, number, "bias_1", 1, hidden, &l->bias);
        add_parameter(model, GNN_WEIGHT, number, "weight_2", hidden, width, &l->second);
        add_parameter(model, GNN_BIAS, number, "bias_2", 1, width, &l->second_bias);
        return;
    case GNN_GAT:
        add_parameter(model, GNN_WEIGHT, number, "weight", l->inputs, width * l->heads, &l->weight);
        add_parameter(model, GNN_WEIGHT, number, "attention_left", l->heads, width, &l->left);
        add_parameter(model, GNN_WEIGHT, number, "attention_right", l->heads, width, &l->right);
        break;
    }
    add_parameter(model, GNN_BIAS, number, "bias", 1, l->outputs, &l->bias);
}

/* `hidden`: the layer gives no logits, so that activation and the rest follow it. */
static void describe_layer(gnn_model *model, int number, bool hidden)
{
    const gnn_model_options *o = &model->options;
    const bool gat = o->layer == GNN_GAT;
    const gnn_pointwise how = {.activation = !hidden || o->maxk > 0 ? GNN_LINEAR : gat ? GNN_ELU : GNN_RELU,
                               .site = (uint64_t)number + 1};
    gnn_layer_state *l = &model->layer[number];
    *l = (gnn_layer_state){.engine = model->engine, .kind = o->layer, .type = o->type, .number = number,
                           .numbers = o->half ? SP_DENSE_BF16 : o->type};
    l->results = hidden ? l->numbers : o->type;
    l->heads = !gat ? 1 : hidden ? o->heads : o->output_heads;
    l->average = !hidden;
    l->inputs = number == 0 ? o->inputs : gat ? o->hidden * o->heads : o->hidden;
    l->outputs = hidden ? o->hidden * l->heads : o->outputs;
    l->maxk = hidden ? o->maxk : 0;
    l->between.present = hidden && (o->norm != GNN_NORM_NONE || o->residual || o->jump != GNN_JUMP_NONE);
    l->between.norm = o->norm;
    l->between.residual = o->residual && number > 0;
    l->between.how = how;
    l->after = how;
    if (l->between.present) l->after.activation = GNN_LINEAR;
    l->next = !hidden || l->between.present ? NULL : l + 1;
    add_layer_parameters(model, number, hidden ? o->hidden : o->outputs);
}

/* Scales and shifts stand after all that decays, and running numbers after all that is learned. */
static void describe_norms(gnn_model *model)
{
    for (int i = 0; i < model->options.layers; i++) {
        gnn_between *b = &model->layer[i].between;
        const int64_t cols = model->layer[i].outputs;
        if (!b->present || b->norm == GNN_NORM_NONE) continue;
        add_parameter(model, GNN_SCALE, i, "norm_scale", 1, cols, &b->scale);
        add_parameter(model, GNN_SHIFT, i, "norm_shift", 1, cols, &b->shift);
    }
    for (int i = 0; i < model->options.layers; i++) {
        gnn_between *b = &model->layer[i].between;
        const int64_t cols = model->layer[i].outputs;
        if (!b->present || b->norm != GNN_NORM_BATCH) continue;
        add_parameter(model, GNN_RUNNING_MEAN, i, "norm_mean", 1, cols, &b->running_mean);
        add_parameter(model, GNN_RUNNING_VARIANCE, i, "norm_variance", 1, cols, &b->running_variance);
    }
}

static void describe(gnn_model *model)
{
    const gnn_model_options *o = &model->options;
    const gnn_layer_state *last = &model->layer[o->layers - 1];
    model->jump.kind = o->jump;
    for (int i = 0; i < o->layers; i++) describe_layer(model, i, i + 1 < o->layers || o->jump != GNN_JUMP_NONE);
    if (o->jump != GNN_JUMP_NONE) {
        const int64_t outputs = o->jump == GNN_JUMP_CAT ? o->layers : 1;
        add_parameter(model, GNN_WEIGHT, o->layers, "weight", outputs * last->outputs, o->outputs,
                      &model->jump.weight);
        add_parameter(model, GNN_BIAS, o->layers, "bias", 1, o->outputs, &model->jump.bias);
    }
    describe_norms(model);
}

/* Weights are uniform in ±√(6 / (rows + cols)), biases 0 (Glorot and Bengio 2010). Layers of GIN are perceptrons;
 * their weights and biases are uniform in ±1 / √inputs, as PyTorch has it: with the wider bounds GIN does not learn
 * on graphs with 31 neighbours a node (Amazon Photo: 35 % instead of 74 %). Norms begin as the identity. Drawn on the
 * host, so they are the same on all devices. Only this uses step -1. */
static void draw_parameters(const gnn_model *model, void *numbers)
{
    for (int i = 0; i < model->parameters; i++) {
        const gnn_parameter *p = &model->parameter[i];
        const bool bias = p->kind == GNN_BIAS, drawn = bias || p->kind == GNN_WEIGHT;
        const int64_t inputs = bias ? model->parameter[i - 1].rows : p->rows; /* a bias follows its weights */
        const double start = p->kind == GNN_SCALE || p->kind == GNN_RUNNING_VARIANCE;
        const double limit = !drawn                            ? 0
                             : model->options.layer == GNN_GIN ? 1 / sqrt((double)inputs)
                             : bias                            ? 0
                                                               : sqrt(6.0 / (double)(p->rows + p->cols));
        for (int64_t k = 0; k < p->rows * p->cols; k++) {
            const float unit = gnn_unit(gnn_random(model->engine->seed, -1, (uint64_t)i, k));
            const double value = start + limit * (2 * (double)unit - 1);
            store_value(numbers, value_type(model->options.type), p->offset + k, value);
        }
    }
}

static sp_status make_parameters(gnn_model *model)
{
    gnn_engine *engine = model->engine;
    const size_t size = number_size(model->options.type);
    void *numbers = NULL;
    sp_status status;
    TRY(sp_array_create(engine->context, model->size, size, engine->space, &model->weights));
    TRY(sp_array_create(engine->context, model->size, size, engine->space, &model->gradients));
    TRY(sp_alloc(engine->context, model->size, size, &numbers));
    draw_parameters(model, numbers);
    TRY(sp_array_copy(engine->context, model->size, size, model->weights, engine->space, numbers, SP_HOST));
    memset(numbers, 0, (size_t)model->size * size);
    TRY(sp_array_copy(engine->context, model->size, size, model->gradients, engine->space, numbers, SP_HOST));
    for (int i = 0; i < model->parameters; i++) {
        const size_t offset = (size_t)model->parameter[i].offset * size;
        model->weight[i]->value.values = (char *)model->weights + offset;
        model->weight[i]->gradient.values = (char *)model->gradients + offset;
    }
done:
    sp_free(engine->context, numbers);
    return status;
}

/* ---- features ----------------------------------------------------------------------------------------- */

static sp_status check_features(const gnn_model *model, const gnn_block *block, const gnn_features *x)
{
    sp_context *context = model->engine->context;
    const bool dense = x->dense.values != NULL, wide = model->options.type == SP_DENSE_F64;
    const int64_t rows = dense ? x->dense.rows : x->sparse.rows, cols = dense ? x->dense.cols : x->sparse.cols;
    if (rows != block->a.cols || cols != model->options.inputs)
        return sp_fail(context, SP_ERROR_ARGUMENT, "features are %lld x %lld; the first block and the model need"
                       " %lld x %lld", (long long)rows, (long long)cols, (long long)block->a.cols,
                       (long long)model->options.inputs);
    if (dense ? x->dense.type != model->options.type : x->sparse.value_type != (wide ? SP_F64 : SP_F32))
        return sp_fail(context, SP_ERROR_ARGUMENT, "features of %s are needed: they are not of the same type as the"
                       " model", wide ? "f64" : "f32");
    if ((dense ? x->dense.space : x->sparse.space) != model->engine->space)
        return sp_fail(context, SP_ERROR_ARGUMENT, "features must lie where the engine computes");
    if (!dense && model->options.layer == GNN_SAGE_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "maxima over neighbours need dense features");
    return SP_OK;
}

/* Rounds once, as long as the same features come with the same block. */
static sp_status round_features(gnn_model *model, const gnn_block *block, const sp_dense *x)
{
    gnn_engine *engine = model->engine;
    sp_status status = SP_OK;
    if (model->rounded_from != x->values || model->rounded_block != block->number) {
        model->rounded_from = NULL;
        TRY(gnn_matrix_shape_rows(engine, x->rows, x->cols, SP_DENSE_BF16, &model->rounded));
        TRY(engine->backend->round(engine, x, &model->rounded.now));
        model->rounded_from = x->values;
        model->rounded_block = block->number;
    }
    model->input.dense = model->rounded.now;
done:
    return status;
}

static sp_status take_dense(gnn_model *model, const gnn_block *block, const sp_dense *x, double rate)
{
    const gnn_pointwise how = {.rate = rate};
    sp_status status;
    model->input.dense = *x;
    if (model->options.half) TRY(round_features(model, block, x));
    x = &model->input.dense;
    if (rate == 0) return SP_OK;
    TRY(gnn_matrix_shape_rows(model->engine, x->rows, x->cols, x->type, &model->dropped));
    TRY(model->engine->backend->forward(model->engine, &how, x, NULL, &model->dropped.now));
    model->input.dense = model->dropped.now;
done:
    return status;
}

static void forget_plans(gnn_model *model)
{
    sp_spmm_plan_free(model->input.plan);
    sp_spmm_plan_free(model->input.transposed);
    model->input = (gnn_layer_input){0};
}

static sp_status plan_features(gnn_model *model, const sp_csr *x, bool transposed, sp_spmm_plan **plan)
{
    const sp_spmm_options how = {.deterministic = true, .transpose = transposed};
    return sp_spmm_plan_create(model->engine->context, x, model->layer[0].weight.value.cols, &how, plan);
}

/* Sparse features, with the plan of the last pass if they are the same. With dropout, values are set in each pass, so
 * that passes can be replayed in any order. */
static sp_status take_sparse(gnn_model *model, const gnn_block *block, const sp_csr *x, double rate)
{
    gnn_engine *engine = model->engine;
    const sp_csr *p = &model->planned;
    sp_status status;
    if (!model->input.plan || model->planned_block != block->number || p->row_offsets != x->row_offsets ||
        p->col_indices != x->col_indices || p->values != x->values) {
        forget_plans(model);
        model->planned = *x;
        model->planned_block = block->number;
        TRY(plan_features(model, &model->planned, false, &model->input.plan));
    }
    model->input.dense = (sp_dense){.rows = x->rows, .cols = x->cols};
    if (model->options.input_dropout == 0) return SP_OK;
    model->entries = x->values;
    if (!x->values) {
        TRY(gnn_matrix_shape(engine, 1, x->nnz, model->options.type, &model->ones));
        TRY(engine->backend->fill(engine, 1, &model->ones.now));
        model->entries = model->ones.now.values;
    }
    if (rate > 0) {
        TRY(gnn_matrix_shape(engine, 1, x->nnz, model->options.type, &model->dropped));
        TRY(engine->backend->drop(engine, rate, 0, x->nnz, model->entries, model->options.type,
                                  model->dropped.now.values));
        model->entries = model->dropped.now.values;
    }
    TRY(sp_spmm_plan_set_values(model->input.plan, model->entries, engine->space));
done:
    return status;
}

/* The transposed plan of sparse features, with the values of the forward pass. */
static sp_status prepare_transposed(gnn_model *model)
{
    sp_status status = SP_OK;
    if (!model->input.plan) return SP_OK;
    if (!model->input.transposed) TRY(plan_features(model, &model->planned, true, &model->input.transposed));
    if (model->options.input_dropout > 0)
        TRY(sp_spmm_plan_set_values(model->input.transposed, model->entries, model->engine->space));
done:
    return status;
}

/* ---- passes ------------------------------------------------------------------------------------------- */

/* Checks the arguments of a pass. */
static sp_status check_pass(const char *call, const gnn_model *model, gnn_block *const *block, const gnn_features *x)
{
    sp_status status = gnn_require(call, "model", model);
    if (status == SP_OK) status = sp_require(model->engine->context, call, "block", block);
    for (int i = 0; status == SP_OK && i < model->options.layers; i++)
        status = sp_require(model->engine->context, call, "an element of block", block[i]);
    return status == SP_OK ? sp_require(model->engine->context, call, "x", x) : status;
}

static sp_status check_blocks(const gnn_model *model, gnn_block *const *block)
{
    sp_context *context = model->engine->context;
    const sp_value_type type = value_type(model->options.type);
    for (int i = 0; i < model->options.layers; i++) {
        if (block[i]->layer != model->options.layer || block[i]->a.value_type != type ||
            block[i]->engine != model->engine)
            return sp_fail(context, SP_ERROR_ARGUMENT, "block %d is of another kind of layer, type or engine than the"
                           " model", i);
        if (block[i]->tiles && model->options.maxk > 0)
            return sp_fail(context, SP_ERROR_ARGUMENT, "block %d has dense tiles set apart, which MaxK does not take",
                           i);
        if (i > 0 && block[i]->a.cols != block[i - 1]->a.rows)
            return sp_fail(context, SP_ERROR_ARGUMENT, "block %d has %lld columns and the one before %lld rows", i,
                           (long long)block[i]->a.cols, (long long)block[i - 1]->a.rows);
    }
    return SP_OK;
}

/* Where the column sums of a layer's gradient go: to the bias that was added last. With MaxK a bias is added before the
 * aggregation. */
static void *sums_of(const gnn_layer_state *l)
{
    const gnn_weight *bias = l->kind == GNN_GIN ? &l->second_bias : &l->bias;
    return l->maxk > 0 && l->kind != GNN_GIN ? NULL : bias->gradient.values;
}

/* The output of a layer as the input of the next one. */
static gnn_layer_input output_of(const gnn_layer_state *l)
{
    if (l->between.present) return (gnn_layer_input){.dense = *gnn_between_output(l), .how = &l->after};
    return (gnn_layer_input){.dense = l->output.now, .how = &l->after, .sums = sums_of(l),
                       .open = l->open ? &l->bias : NULL};
}

/* Sets what products read of a weight. */
static sp_status use_weight(gnn_model *model, gnn_weight *weight)
{
    sp_status status = SP_OK;
    weight->used = weight->value;
    if (!model->options.half || !weight->value.values) return SP_OK;
    TRY(gnn_matrix_shape_rows(model->engine, weight->value.rows, weight->value.cols, SP_DENSE_BF16, &weight->rounded));
    TRY(model->engine->backend->round(model->engine, &weight->value, &weight->rounded.now));
    weight->used = weight->rounded.now;
done:
    return status;
}

static sp_status use_weights(gnn_model *model)
{
    sp_status status = SP_OK;
    for (int i = 0; i < model->options.layers; i++) {
        gnn_layer_state *l = &model->layer[i];
        TRY(use_weight(model, &l->weight));
        TRY(use_weight(model, &l->own));
        TRY(use_weight(model, &l->second));
    }
    TRY(use_weight(model, &model->jump.weight));
done:
    return status;
}

/* Sets what differs between passes: dropout, and running numbers. */
static void set_pass(gnn_model *model, bool training)
{
    const gnn_model_options *o = &model->options;
    for (int i = 0; i < o->layers; i++) {
        gnn_layer_state *l = &model->layer[i];
        const bool hidden = l->between.present || i + 1 < o->layers;
        const double dropout = training && hidden ? o->dropout : 0, all = l->maxk > 0 ? 0 : dropout;
        l->after.rate = l->between.present ? 0 : all;
        l->between.how.rate = all;
        l->between.fixed = !training;
        l->kept_dropout = l->maxk > 0 ? dropout : 0;
        l->attention_dropout = training ? o->attention_dropout : 0;
    }
}

static sp_dense *logits_of(gnn_model *model)
{
    return model->jump.kind == GNN_JUMP_NONE ? &model->layer[model->options.layers - 1].output.now
                                             : &model->jump.logits.now;
}

sp_status gnn_model_forward_open(gnn_model *model, gnn_block *const *block, const gnn_features *x, bool training,
                                 sp_dense **logits, const void **bias)
{
    const gnn_model_options *o = &model->options;
    const gnn_layer_state *last = &model->layer[o->layers - 1];
    const double rate = training ? o->input_dropout : 0;
    sp_status status;
    model->forwarded = false;
    TRY(check_blocks(model, block));
    TRY(check_features(model, block[0], x));
    if (x->dense.values) {
        forget_plans(model);
        TRY(take_dense(model, block[0], &x->dense, rate));
    } else {
        TRY(take_sparse(model, block[0], &x->sparse, rate));
    }
    set_pass(model, training);
    TRY(use_weights(model));
    for (int i = 0; i < o->layers; i++) {
        gnn_layer_state *l = &model->layer[i], *previous = &model->layer[i > 0 ? i - 1 : 0];
        const gnn_layer_input before = output_of(previous), *input = i > 0 ? &before : &model->input;
        if (o->layer == GNN_GAT) TRY(gnn_attention_forward(l, block[i], input));
        else TRY(gnn_convolution_forward(l, block[i], input, o->keep_aggregated && i == 0));
        if (l->between.present) TRY(gnn_between_forward(l, i > 0 ? gnn_between_output(previous) : NULL));
    }
    if (o->jump != GNN_JUMP_NONE) TRY(gnn_jump_forward(&model->jump, model->layer, o->layers));
    model->forwarded = true;
    *logits = logits_of(model);
    *bias = o->jump != GNN_JUMP_NONE ? model->jump.bias.value.values : last->open ? last->bias.value.values : NULL;
done:
    return status;
}

sp_status gnn_model_forward(gnn_model *model, gnn_block *const *block, const gnn_features *x, bool training,
                            const sp_dense **logits)
{
    const void *bias;
    sp_dense *made;
    sp_status status = check_pass(__func__, model, block, x);
    if (status == SP_OK) status = sp_require(model->engine->context, __func__, "logits", logits);
    if (status != SP_OK) return status;
    const gnn_pointwise linear = {.activation = GNN_LINEAR};
    TRY(gnn_model_forward_open(model, block, x, training, &made, &bias));
    if (bias) TRY(model->engine->backend->forward(model->engine, &linear, made, bias, made));
    *logits = made;
done:
    return status;
}

void *gnn_model_logit_sums(gnn_model *model)
{
    return model->jump.kind == GNN_JUMP_NONE ? sums_of(&model->layer[model->options.layers - 1])
                                             : model->jump.bias.gradient.values;
}

/* The gradient of layer i's output, before anything that follows it, in model->layer[i].gradient. If it has a
 * successor, the gradient of that one's input is known already. */
static sp_status leave_between(gnn_model *model, int i, const sp_dense *logits_gradient)
{
    gnn_layer_state *l = &model->layer[i];
    const bool last = i + 1 == model->options.layers;
    sp_status status = SP_OK;
    if (!last && l[1].between.present && l[1].between.residual) {
        const sp_dense *added = &l[1].between.gradient.now;
        sp_dense own = gnn_first_rows(&l->between.gradient.now, added->rows);
        TRY(model->engine->backend->add(model->engine, 1, added, &own));
    }
    if (model->jump.kind != GNN_JUMP_NONE) TRY(gnn_jump_backward(&model->jump, l, last, logits_gradient));
    TRY(gnn_between_backward(l, sums_of(l)));
done:
    return status;
}

const sp_dense *gnn_model_hidden(const gnn_model *model)
{
    const gnn_jump jump = model->options.jump;
    const int number = model->options.layers - (jump == GNN_JUMP_NONE ? 2 : 1);
    if (number < 0) return NULL;
    if (jump == GNN_JUMP_MAX) return &model->jump.most.now;
    const gnn_layer_state *l = &model->layer[number];
    return l->between.present ? gnn_between_output(l) : &l->output.now;
}

static sp_status go_back(gnn_model *model, gnn_block *const *block, const gnn_features *x,
                         const sp_dense *logits_gradient, bool summed)
{
    gnn_engine *engine = model->engine;
    const int layers = model->options.layers;
    const sp_dense *logits = logits_of(model);
    sp_status status;
    if (!model->forwarded || logits_gradient->rows != logits->rows || logits_gradient->cols != logits->cols ||
        logits_gradient->type != logits->type)
        return sp_fail(engine->context, SP_ERROR_ARGUMENT, "a backward pass needs a forward pass before it, and the"
                       " gradient of its logits");
    TRY(check_features(model, block[0], x));
    TRY(prepare_transposed(model));
    if (!summed) TRY(engine->backend->column_sums(engine, logits_gradient, gnn_model_logit_sums(model)));
    if (model->options.half) {
        const sp_dense *g = logits_gradient;
        TRY(gnn_matrix_shape_rows(engine, g->rows, g->cols, SP_DENSE_BF16, &model->logits_gradient));
        TRY(engine->backend->round(engine, g, &model->logits_gradient.now));
        logits_gradient = &model->logits_gradient.now;
    }
    for (int i = layers - 1; i >= 0; i--) {
        gnn_layer_state *l = &model->layer[i], *previous = &model->layer[i > 0 ? i - 1 : 0];
        const gnn_layer_input before = output_of(previous), *input = i > 0 ? &before : &model->input;
        const bool logits_here = i + 1 == layers && !l->between.present;
        const sp_dense *gradient = logits_here ? logits_gradient : &l->gradient.now;
        sp_dense *input_gradient = NULL;
        if (l->between.present) TRY(leave_between(model, i, logits_gradient));
        if (i > 0) {
            gnn_matrix *to = previous->between.present ? &previous->between.gradient : &previous->gradient;
            TRY(gnn_matrix_shape_rows(engine, block[i]->a.cols, l->inputs, l->numbers, to));
            input_gradient = &to->now;
        }
        if (l->kind == GNN_GAT) TRY(gnn_attention_backward(l, block[i], input, gradient, input_gradient));
        else TRY(gnn_convolution_backward(l, block[i], input, gradient, input_gradient));
    }
done:
    return status;
}

sp_status gnn_model_backward(gnn_model *model, gnn_block *const *block, const gnn_features *x,
                             const sp_dense *logits_gradient)
{
    sp_status status = check_pass(__func__, model, block, x);
    if (status == SP_OK)
        status = sp_require_dense(model->engine->context, __func__, "logits_gradient", logits_gradient);
    return status == SP_OK ? go_back(model, block, x, logits_gradient, false) : status;
}

sp_status gnn_model_backward_summed(gnn_model *model, gnn_block *const *block, const gnn_features *x,
                                    const sp_dense *logits_gradient)
{
    return go_back(model, block, x, logits_gradient, true);
}

/* ---- life --------------------------------------------------------------------------------------------- */

sp_status gnn_model_create(gnn_engine *engine, const gnn_model_options *options, gnn_model **model)
{
    gnn_model *made = NULL;
    if (model) *model = NULL;
    sp_status status = gnn_require(__func__, "engine", engine);
    if (status == SP_OK) status = sp_require(engine->context, __func__, "options", options);
    if (status == SP_OK) status = sp_require(engine->context, __func__, "model", model);
    if (status != SP_OK) return status;
    gnn_model_options o = *options;
    fill_defaults(&o);
    TRY(check_options(engine->context, &o));
    TRY(sp_calloc(engine->context, 1, sizeof *made, (void **)&made));
    made->engine = engine;
    made->options = o;
    describe(made);
    TRY(make_parameters(made));
    *model = made;
    made = NULL;
done:
    gnn_model_free(made);
    return status;
}

static void free_layer(gnn_layer_state *l)
{
    gnn_matrix *const all[] = {&l->output,       &l->gradient,      &l->aggregated,     &l->product,
                               &l->inner,        &l->padded,        &l->argument,       &l->product_gradient,
                               &l->narrow,       &l->inner_gradient, &l->kept,
                               &l->weight.rounded, &l->own.rounded, &l->second.rounded,
                               &l->kept_columns, &l->left_scores,   &l->right_scores,   &l->left_gradient,
                               &l->logs,         &l->right_gradient, &l->along,         &l->slopes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gnn_matrix_free(l->engine, all[i]);
    gnn_between_free(l->engine, &l->between);
}

/* All that passes make, which later ones then make again. */
static void free_results(gnn_model *model)
{
    gnn_matrix *const all[] = {&model->dropped, &model->rounded, &model->logits_gradient, &model->jump.weight.rounded,
                               &model->ones};
    for (int i = 0; i < model->options.layers; i++) {
        free_layer(&model->layer[i]);
        model->layer[i].kept_block = 0;
    }
    forget_plans(model);
    gnn_jump_free(model->engine, &model->jump);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gnn_matrix_free(model->engine, all[i]);
    model->rounded_from = NULL;
    model->forwarded = false;
}

sp_status gnn_model_renew(gnn_model *model)
{
    free_results(model);
    set_pass(model, false);
    return use_weights(model);
}

void gnn_model_free(gnn_model *model)
{
    if (!model) return;
    sp_context *context = model->engine->context;
    free_results(model);
    sp_array_free(context, model->engine->space, model->weights);
    sp_array_free(context, model->engine->space, model->gradients);
    sp_free(context, model);
}

const gnn_model_options *gnn_model_shape(const gnn_model *model) { return model ? &model->options : NULL; }
int64_t gnn_model_size(const gnn_model *model) { return model ? model->size : 0; }
void *gnn_model_weights(gnn_model *model) { return model ? model->weights : NULL; }
void *gnn_model_gradients(gnn_model *model) { return model ? model->gradients : NULL; }
gnn_engine *gnn_model_engine(const gnn_model *model) { return model->engine; }
gnn_layer_state *gnn_model_layer(gnn_model *model, int number) { return &model->layer[number]; }
gnn_readout *gnn_model_jump(gnn_model *model) { return &model->jump; }

int64_t gnn_model_gather_width(const gnn_model *model, int layer, const sp_csr *matrix, bool sparse)
{
    const bool first = layer == 0;
    return gnn_layer_gather_width(&model->layer[layer], matrix, first && sparse,
                                  first && model->options.keep_aggregated);
}

const gnn_parameter *gnn_model_parameters(const gnn_model *model, int *count)
{
    if (count) *count = model ? model->parameters : 0;
    if (!model) return NULL;
    return model->parameter;
}
