/* sparse-bench gnn --export: one pass of each model, forward and backward, without dropout, in f32 and in f64, as
 * files for whoever wants to compare it with another library: FOLDER/MODEL-TYPE.json says where each parameter begins,
 * -weights.npy and -gradients.npy hold all of them, -logits.npy the logits. The loss is the mean cross-entropy of the
 * training nodes. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "sparse-bench/gnn/gnn_bench.h"

enum { LAYERS = 2 };

typedef struct export_run {
    gnn_case *c;
    gnn_layer layer;
    sp_dense_type type;
    gnn_model *model;
    sp_csr matrix; /* that the blocks refer to */
    gnn_block *block[LAYERS];
    gnn_features x;
    sp_dense logits, gradient; /* logits on the host */
} export_run;

static double number_at(const sp_dense *m, int64_t row, int64_t col)
{
    const int64_t at = row * m->stride + col;
    return m->type == SP_DENSE_F64 ? ((const double *)m->values)[at] : (double)((const float *)m->values)[at];
}

static void put_number(sp_dense *m, int64_t row, int64_t col, double value)
{
    const int64_t at = row * m->stride + col;
    if (m->type == SP_DENSE_F64) ((double *)m->values)[at] = value;
    else ((float *)m->values)[at] = (float)value;
}

/* ---- the pass ------------------------------------------------------------------------------------------ */

static sp_status prepare(export_run *run)
{
    gnn_case *c = run->c;
    const sp_dense *x = &c->data->features.dense;
    const sp_space space = sp_context_is_cuda(c->context) ? SP_DEVICE : SP_HOST;
    const int heads = gnn_bench_heads(run->layer);
    const gnn_model_options options = {.layer = run->layer, .layers = LAYERS, .inputs = c->result->features,
                                       .outputs = c->result->classes, .hidden = c->options->widths.number[0] / heads,
                                       .heads = heads, .type = run->type};
    sp_dense typed = {0};
    sp_status status;
    if (!x->values || !c->data->labels)
        return sp_fail(c->context, SP_ERROR_UNSUPPORTED, "--export takes dense features and one label a node");
    TRY(sp_dense_create(c->context, x->rows, x->cols, run->type, SP_HOST, &typed));
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) put_number(&typed, i, j, number_at(x, i, j));
    TRY(sp_dense_copy(c->context, &typed, space, &run->x.dense));
    TRY(gnn_operator(c->context, &c->data->graph, run->layer, run->type == SP_DENSE_F64 ? SP_F64 : SP_F32,
                     &run->matrix));
    TRY(gnn_model_create(c->engine, &options, &run->model));
    TRY(gnn_block_create(c->engine, &run->matrix, run->layer, c->result->symmetric, options.hidden, &run->block[0]));
    run->block[1] = run->block[0];
done:
    sp_dense_free(c->context, &typed);
    return status;
}

/* The gradient of the loss: softmax less the label, over the number of training nodes. */
static void differentiate(const gnn_case *c, const sp_dense *logits, sp_dense *gradient)
{
    for (int64_t i = 0; i < logits->rows; i++) {
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < logits->cols; j++) /* not by fmax: an internal error of gcc 12 for arm64 */
            if (number_at(logits, i, j) > most) most = number_at(logits, i, j);
        for (int64_t j = 0; j < logits->cols; j++) sum += exp(number_at(logits, i, j) - most);
        for (int64_t j = 0; j < logits->cols; j++) {
            const double part = exp(number_at(logits, i, j) - most) / sum - (j == c->data->labels[i]);
            put_number(gradient, i, j, c->data->split[i] == GNN_TRAIN ? part / (double)c->result->training_nodes : 0);
        }
    }
}

static sp_status pass(export_run *run)
{
    gnn_case *c = run->c;
    const sp_space space = sp_context_is_cuda(c->context) ? SP_DEVICE : SP_HOST;
    const sp_dense *logits;
    sp_dense host = {0};
    sp_status status;
    TRY(gnn_model_forward(run->model, run->block, &run->x, true, &logits));
    TRY(sp_dense_copy(c->context, logits, SP_HOST, &run->logits));
    TRY(sp_dense_create(c->context, logits->rows, logits->cols, run->type, SP_HOST, &host));
    differentiate(c, &run->logits, &host);
    TRY(sp_dense_copy(c->context, &host, space, &run->gradient));
    TRY(gnn_model_backward(run->model, run->block, &run->x, &run->gradient));
done:
    sp_dense_free(c->context, &host);
    return status;
}

/* ---- files --------------------------------------------------------------------------------------------- */

static const char *type_name(const export_run *run) { return run->type == SP_DENSE_F64 ? "f64" : "f32"; }

static sp_status open_file(export_run *run, const char *suffix, io_output **out)
{
    sp_context *context = run->c->context;
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s-%s%s", run->c->options->export, layer_name(run->layer),
                                type_name(run), suffix);
    if (length >= (int)sizeof path) return sp_fail(context, SP_ERROR_ARGUMENT, "the name of the folder is too long");
    return io_output_open(context, path, out);
}

/* `count` numbers in any memory. */
static sp_status write_array(export_run *run, const char *suffix, const void *values, sp_space space, int64_t count)
{
    sp_context *context = run->c->context;
    const size_t size = run->type == SP_DENSE_F64 ? sizeof(double) : sizeof(float);
    io_output *out;
    void *host = NULL;
    sp_status status;
    TRY(sp_array_create(context, count, size, SP_HOST, &host));
    TRY(sp_array_copy(context, count, size, host, SP_HOST, values, space));
    TRY(open_file(run, suffix, &out));
    io_put_npy(out, &(io_array){.type = size == 8 ? IO_F64 : IO_F32, .dimensions = 1, .shape = {count},
                                .count = count, .item_size = size, .values = host});
    status = io_output_commit(out);
done:
    sp_array_free(context, SP_HOST, host);
    return status;
}

static sp_status write_parameters(export_run *run)
{
    int count;
    const gnn_parameter *parameters = gnn_model_parameters(run->model, &count);
    json file = {.out = NULL}, *j = &file;
    const sp_status status = open_file(run, ".json", &file.out);
    if (status != SP_OK) return status;
    json_begin(j, NULL, '{');
    json_text(j, "model", layer_name(run->layer));
    json_text(j, "type", type_name(run));
    json_count(j, "hidden", run->c->options->widths.number[0]);
    json_begin(j, "parameters", '[');
    for (int i = 0; i < count; i++) {
        json_begin(j, NULL, '{');
        json_text(j, "name", parameters[i].name);
        json_count(j, "rows", parameters[i].rows);
        json_count(j, "cols", parameters[i].cols);
        json_count(j, "offset", parameters[i].offset);
        json_end(j, '}');
    }
    json_end(j, ']');
    json_end(j, '}');
    return io_output_commit(file.out);
}

static sp_status write_files(export_run *run)
{
    const sp_space space = sp_context_is_cuda(run->c->context) ? SP_DEVICE : SP_HOST;
    const int64_t size = gnn_model_size(run->model);
    sp_status status;
    TRY(write_array(run, "-weights.npy", gnn_model_weights(run->model), space, size));
    TRY(write_array(run, "-gradients.npy", gnn_model_gradients(run->model), space, size));
    TRY(write_array(run, "-logits.npy", run->logits.values, SP_HOST, run->logits.rows * run->logits.cols));
    TRY(write_parameters(run));
done:
    return status;
}

static sp_status export_model(gnn_case *c, gnn_layer layer, sp_dense_type type)
{
    export_run run = {.c = c, .layer = layer, .type = type};
    sp_status status = prepare(&run);
    if (status == SP_OK) status = pass(&run);
    if (status == SP_OK) status = write_files(&run);
    gnn_block_free(run.block[0]);
    gnn_model_free(run.model);
    sp_csr_free(c->context, &run.matrix);
    sp_dense_free(c->context, &run.x.dense);
    sp_dense_free(c->context, &run.logits);
    sp_dense_free(c->context, &run.gradient);
    return status;
}

sp_status gnn_export(gnn_case *c)
{
    const char *folder = c->options->export;
    sp_status status = SP_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return sp_fail(c->context, SP_ERROR_ARGUMENT, "%s: %s", folder, strerror(errno));
    for (int layer = 0; layer <= GNN_GAT && status == SP_OK; layer++) {
        if (!(c->options->models >> layer & 1)) continue;
        status = export_model(c, (gnn_layer)layer, SP_DENSE_F32);
        if (status == SP_OK) status = export_model(c, (gnn_layer)layer, SP_DENSE_F64);
    }
    return status;
}
