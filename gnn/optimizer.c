/* Optimizers: their options and their state. The back end does a step in one pass. */
#include <math.h>

#include "layer.h"

struct gnn_optimizer {
    gnn_model *model;
    gnn_engine *engine;
    gnn_optimizer_options options;
    gnn_range decay;
    void *moments[2];
    gnn_pace *pace; /* in the engine's space, so that a replayed step sees a new rate */
};

static void fill_defaults(gnn_optimizer_options *o)
{
    if (o->rate == 0) o->rate = 0.01;
    if (o->epsilon == 0) o->epsilon = 1e-8;
    if (o->method == GNN_SGD) return;
    if (o->beta1 == 0) o->beta1 = 0.9;
    if (o->beta2 == 0) o->beta2 = 0.999;
}

static sp_status check_rate(sp_context *context, double rate)
{
    if (rate >= 0 && isfinite(rate)) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "a learning rate of %g; it is a positive number", rate);
}

static sp_status check_options(sp_context *context, const gnn_optimizer_options *o)
{
    if ((unsigned)o->method > GNN_SGD)
        return sp_fail(context, SP_ERROR_ARGUMENT, "method %d does not exist", (int)o->method);
    if (!(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1))
        return sp_fail(context, SP_ERROR_ARGUMENT, "betas of %g and %g; they are at least 0 and below 1", o->beta1,
                       o->beta2);
    if (!(o->epsilon > 0 && isfinite(o->epsilon)) || !(o->decay >= 0 && isfinite(o->decay)))
        return sp_fail(context, SP_ERROR_ARGUMENT, "an epsilon of %g and a decay of %g; neither is negative",
                       o->epsilon, o->decay);
    return check_rate(context, o->rate);
}

sp_status gnn_optimizer_check(sp_context *context, const gnn_optimizer_options *options)
{
    gnn_optimizer_options o = *options;
    fill_defaults(&o);
    return check_options(context, &o);
}

/* All weights and biases, or those of the first layer. */
static gnn_range decaying(const gnn_model *model, bool first_layer)
{
    int count;
    const gnn_parameter *p = gnn_model_parameters(model, &count);
    gnn_range range = {0, 0};
    for (int i = 0; i < count && p[i].kind <= GNN_BIAS && !(first_layer && p[i].layer > 0); i++)
        range.end = p[i].offset + p[i].rows * p[i].cols;
    return range;
}

static int moments_of(const gnn_optimizer_options *o) { return o->method != GNN_SGD ? 2 : o->beta1 > 0 ? 1 : 0; }

static sp_status make_state(gnn_optimizer *made)
{
    gnn_engine *engine = made->engine;
    const int64_t count = gnn_model_size(made->model);
    const gnn_pace start = {.rate = made->options.rate};
    const sp_dense_type type = gnn_model_shape(made->model)->type;
    sp_status status;
    for (int i = 0; i < moments_of(&made->options); i++) {
        sp_dense zeros = {.rows = 1, .cols = count, .stride = count, .type = type, .space = engine->space};
        TRY(sp_array_create(engine->context, count, number_size(type), engine->space, &zeros.values));
        made->moments[i] = zeros.values;
        TRY(engine->backend->fill(engine, 0, &zeros));
    }
    TRY(gnn_place(engine, 1, sizeof start, &start, &made->pace));
done:
    return status;
}

sp_status gnn_optimizer_create(gnn_model *model, const gnn_optimizer_options *options, gnn_optimizer **optimizer)
{
    gnn_optimizer *made = NULL;
    if (optimizer) *optimizer = NULL;
    sp_status status = gnn_require(__func__, "model", model);
    if (status == SP_OK) status = gnn_require(__func__, "options", options);
    if (status == SP_OK) status = gnn_require(__func__, "optimizer", optimizer);
    if (status != SP_OK) return status;
    gnn_engine *engine = gnn_model_engine(model);
    gnn_optimizer_options o = *options;
    fill_defaults(&o);
    TRY(check_options(engine->context, &o));
    TRY(sp_calloc(engine->context, 1, sizeof *made, (void **)&made));
    made->model = model;
    made->engine = engine;
    made->options = o;
    made->decay = decaying(model, o.decay_first_layer);
    TRY(make_state(made));
    *optimizer = made;
    made = NULL;
done:
    gnn_optimizer_free(made);
    return status;
}

void gnn_optimizer_free(gnn_optimizer *optimizer)
{
    if (!optimizer) return;
    sp_context *context = optimizer->engine->context;
    const sp_space space = optimizer->engine->space;
    for (int i = 0; i < 2; i++) sp_array_free(context, space, optimizer->moments[i]);
    sp_array_free(context, space, optimizer->pace);
    sp_free(context, optimizer);
}

sp_status gnn_optimizer_step(gnn_optimizer *optimizer)
{
    if (!optimizer) return gnn_require(__func__, "optimizer", optimizer);
    gnn_model *model = optimizer->model;
    return optimizer->engine->backend->optimize(optimizer->engine, &optimizer->options, optimizer->decay,
                                                gnn_model_size(model), gnn_model_shape(model)->type,
                                                gnn_model_weights(model), gnn_model_gradients(model),
                                                optimizer->moments[0], optimizer->moments[1], optimizer->pace);
}

sp_status gnn_optimizer_set_rate(gnn_optimizer *optimizer, double rate)
{
    if (!optimizer) return gnn_require(__func__, "optimizer", optimizer);
    gnn_engine *engine = optimizer->engine;
    const sp_status status = check_rate(engine->context, rate);
    if (status != SP_OK) return status;
    return sp_array_copy(engine->context, 1, sizeof rate, &optimizer->pace->rate, engine->space, &rate, SP_HOST);
}

int gnn_optimizer_state(gnn_optimizer *optimizer, void *moments[2], int64_t **steps)
{
    for (int i = 0; i < 2; i++) moments[i] = optimizer->moments[i];
    *steps = &optimizer->pace->steps;
    return moments_of(&optimizer->options);
}
