/* A forward pass layer by layer, for graphs whose numbers do not fit the memory. The numbers between two layers lie in
 * host memory, and a layer is computed block of rows by block of rows. A block is the rows of A, with the columns that
 * have an entry or are own nodes of the rows, ascending: sums have the order that they have in the whole graph. Only
 * the rows of these columns come to where the engine computes. Layers that compute A·(X·W) form X·W for all rows
 * first, so that no row is multiplied twice and neighbours gather the narrower matrix. */
#include "layer.h"

/* ---- host memory that the engine reaches ---------------------------------------------------------------- */

enum { PAGE = 4096 };

sp_status gnn_host_rows_of(gnn_engine *engine, const sp_dense *matrix, gnn_host_rows *rows)
{
    const gnn_backend *backend = engine->backend;
    const int64_t bytes = matrix->rows * matrix->stride * (int64_t)number_size(matrix->type);
    gnn_host_rows made = {.here = *matrix, .there = *matrix};
    made.there.space = engine->space;
    if (backend->pin && bytes > 0) {
        const sp_status status = backend->pin(engine, matrix->values, (size_t)bytes, &made.there.values);
        if (status != SP_OK) return status;
        made.pinned = true;
    }
    *rows = made;
    return SP_OK;
}

/* Of whole pages, so that no page is pinned twice; all 0, since products also read the numbers between rows. */
sp_status gnn_host_rows_create(gnn_engine *engine, int64_t rows, int64_t cols, sp_dense_type type, gnn_host_rows *made)
{
    sp_dense matrix = {.rows = rows, .cols = cols, .stride = gnn_row_stride(engine, cols, type), .type = type};
    const int64_t row = matrix.stride * (int64_t)number_size(type);
    int64_t bytes;
    void *memory;
    if (__builtin_mul_overflow(rows, row, &bytes) || bytes > INT64_MAX - 2 * PAGE)
        return sp_fail(engine->context, SP_ERROR_OVERFLOW, "a matrix of %lld x %lld numbers cannot be addressed",
                       (long long)rows, (long long)cols);
    sp_status status = sp_calloc(engine->context, bytes + 2 * PAGE, 1, &memory);
    if (status != SP_OK) return status;
    matrix.values = (char *)memory + (PAGE - (uintptr_t)memory % PAGE) % PAGE;
    status = gnn_host_rows_of(engine, &matrix, made);
    if (status == SP_OK) made->memory = memory;
    else sp_free(engine->context, memory);
    return status;
}

void gnn_host_rows_free(gnn_engine *engine, gnn_host_rows *rows)
{
    if (rows->pinned) {
        engine->backend->wait(engine);
        engine->backend->unpin(engine, rows->here.values);
    }
    sp_free(engine->context, rows->memory);
    *rows = (gnn_host_rows){0};
}

/* ---- a pass ---------------------------------------------------------------------------------------------- */

typedef struct walk {
    gnn_engine *engine;
    gnn_model *model;
    const gnn_model_options *options;
    gnn_layer_state *layer; /* the present one, */
    bool sparse;            /* whose input is sparse features */
    int64_t nodes, width;   /* width: columns that it gathers */
    const gnn_walk *of;
    uint64_t *marked;       /* a bit a node: the columns of a block, */
    int32_t *before;        /* and how many there are before each word */
    gnn_host_rows input, sent;  /* H of the layer before, and X·W */
    gnn_host_rows output, most; /* H, and with GNN_JUMP_MAX the maximum so far */
    gnn_host_rows *own;         /* where X·W_self waits, until a block of rows replaces it by H or logits; NULL:
                                   there is none */
    gnn_matrix taken, gathered, rounded; /* rows of these */
} walk;

static void drop(walk *w)
{
    gnn_matrix *const all[] = {&w->taken, &w->gathered, &w->rounded};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gnn_matrix_free(w->engine, all[i]);
}

/* Rows in host memory, copied to where the engine computes. */
static sp_status take(walk *w, const gnn_host_rows *from, int64_t first, int64_t count, gnn_matrix *to)
{
    const sp_dense part = gnn_row_range(&from->there, first, count);
    const sp_status status = gnn_matrix_shape_rows(w->engine, count, part.cols, part.type, to);
    return status == SP_OK ? w->engine->backend->copy(w->engine, &part, &to->now) : status;
}

static sp_status put(walk *w, const sp_dense *from, gnn_host_rows *to, int64_t first)
{
    sp_dense part = gnn_row_range(&to->there, first, from->rows);
    return w->engine->backend->copy(w->engine, from, &part);
}

/* What products read of the first layer's numbers. */
static sp_status round_input(walk *w, sp_dense *x)
{
    sp_status status = SP_OK;
    if (x->type == w->layer->numbers) return SP_OK;
    TRY(gnn_matrix_shape_rows(w->engine, x->rows, x->cols, w->layer->numbers, &w->rounded));
    TRY(w->engine->backend->round(w->engine, x, &w->rounded.now));
    *x = w->rounded.now;
done:
    return status;
}

/* ---- products of rows ------------------------------------------------------------------------------------ */

/* Rows of a host matrix, which has the values. The offsets are new. */
static sp_status slice(sp_context *context, const sp_csr *a, int64_t first, int64_t count, sp_csr *rows)
{
    const int64_t begin = a->row_offsets[first];
    const size_t size = a->value_type == SP_F64 ? 8 : 4;
    int64_t *offsets;
    const sp_status status = sp_alloc(context, count + 1, sizeof *offsets, (void **)&offsets);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i <= count; i++) offsets[i] = a->row_offsets[first + i] - begin;
    *rows = *a;
    rows->rows = count;
    rows->nnz = offsets[count];
    rows->row_offsets = offsets;
    rows->col_indices += begin;
    if (a->values) rows->values = (char *)a->values + (size_t)begin * size;
    return SP_OK;
}

static sp_status form_products(gnn_layer_state *layer, const gnn_layer_input *x)
{
    const bool own = layer->own.value.values != NULL;
    if (layer->kind == GNN_GAT) return gnn_attention_products(layer, x);
    return gnn_convolution_products(layer, x, own ? x->dense.rows : 0);
}

static sp_status multiply_sparse(walk *w, int64_t first, int64_t count)
{
    sp_context *context = w->engine->context;
    const sp_spmm_options how = {.deterministic = true};
    const sp_csr *features = w->of->sparse;
    gnn_layer_input x = {.dense = {.rows = count, .cols = features->cols}};
    sp_csr rows = {0}, there = {0};
    sp_status status;
    TRY(slice(context, features, first, count, &rows));
    if (w->engine->space != SP_HOST) TRY(sp_csr_copy(context, &rows, w->engine->space, &there));
    TRY(sp_spmm_plan_create(context, there.row_offsets ? &there : &rows, w->layer->weight.value.cols, &how, &x.plan));
    TRY(form_products(w->layer, &x));
done:
    sp_spmm_plan_free(x.plan);
    sp_csr_free(context, &there);
    sp_free(context, rows.row_offsets);
    return status;
}

static sp_status multiply_dense(walk *w, int64_t first, int64_t count)
{
    gnn_layer_input x = {0};
    sp_status status;
    TRY(take(w, &w->input, first, count, &w->taken));
    x.dense = w->taken.now;
    TRY(round_input(w, &x.dense));
    TRY(form_products(w->layer, &x));
done:
    return status;
}

static sp_status multiply_part(walk *w, int64_t first, int64_t count)
{
    sp_status status;
    TRY((w->sparse ? multiply_sparse : multiply_dense)(w, first, count));
    TRY(put(w, &w->layer->product.now, &w->sent, first));
    if (w->own) TRY(put(w, &w->layer->output.now, w->own, first));
done:
    return status;
}

/* ---- blocks of rows -------------------------------------------------------------------------------------- */

/* A block on the host. */
typedef struct cut {
    sp_csr a;       /* the rows; columns are numbered within */
    int32_t *node;  /* these */
    int64_t own;    /* where the rows' own nodes begin among them */
} cut;

static void free_cut(sp_context *context, cut *c)
{
    FREE_ALL(context, c->a.row_offsets, c->a.col_indices, c->node);
}

static int64_t place_of(const walk *w, int64_t node)
{
    const uint64_t below = w->marked[node / 64] & (((uint64_t)1 << node % 64) - 1);
    return w->before[node / 64] + __builtin_popcountll(below);
}

/* Marks the columns of the rows, and counts them. */
static int64_t mark(walk *w, const sp_csr *rows, int64_t first)
{
    const int64_t words = (w->nodes + 63) / 64;
    const int threads = sp_context_threads(w->engine->context);
    int64_t count = 0;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t k = 0; k < words; k++) w->marked[k] = 0;
    for (int64_t i = first; i < first + rows->rows; i++) w->marked[i / 64] |= (uint64_t)1 << i % 64;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t e = 0; e < rows->nnz; e++) {
        uint64_t *word = &w->marked[rows->col_indices[e] / 64], present;
        const uint64_t bit = (uint64_t)1 << rows->col_indices[e] % 64;
#pragma omp atomic read
        present = *word;
        if (present & bit) continue;
#pragma omp atomic
        *word |= bit;
    }
    for (int64_t k = 0; k < words; k++) {
        w->before[k] = (int32_t)count;
        count += __builtin_popcountll(w->marked[k]);
    }
    return count;
}

static void list_marked(const walk *w, int32_t *node)
{
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(w->engine->context))
    for (int64_t k = 0; k < (w->nodes + 63) / 64; k++) {
        int64_t at = w->before[k];
        for (uint64_t left = w->marked[k]; left; left &= left - 1)
            node[at++] = (int32_t)(64 * k + __builtin_ctzll(left));
    }
}

static sp_status cut_rows(walk *w, int64_t first, int64_t count, cut *c)
{
    sp_context *context = w->engine->context;
    const int32_t *col;
    sp_status status;
    TRY(slice(context, w->of->matrix, first, count, &c->a));
    col = c->a.col_indices;
    c->a.cols = mark(w, &c->a, first);
    c->own = place_of(w, first);
    c->a.col_indices = NULL;
    TRY(sp_alloc(context, c->a.cols, sizeof *c->node, (void **)&c->node));
    TRY(sp_alloc(context, c->a.nnz, sizeof *col, (void **)&c->a.col_indices));
    list_marked(w, c->node);
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t e = 0; e < c->a.nnz; e++) c->a.col_indices[e] = (int32_t)place_of(w, col[e]);
done:
    return status;
}

/* The rows of the block's columns. */
static sp_status gather(walk *w, const gnn_host_rows *from, const cut *c, gnn_matrix *to)
{
    gnn_engine *engine = w->engine;
    const sp_dense *all = &from->there;
    int32_t *there = NULL;
    sp_status status;
    TRY(gnn_place(engine, c->a.cols, sizeof *there, c->node, &there));
    TRY(gnn_matrix_shape_rows(engine, c->a.cols, all->cols, all->type, to));
    TRY(engine->backend->gather_rows(engine, all, there, &to->now));
done:
    sp_array_free(engine->context, engine->space, there);
    return status;
}

/* The layer's own output, before what stands between layers. */
static sp_status compute(walk *w, int64_t first, const cut *c, gnn_block *block)
{
    gnn_layer_state *layer = w->layer;
    gnn_layer_input x = {0};
    sp_status status;
    if (w->sent.here.values) {
        TRY(gather(w, &w->sent, c, &layer->product));
        if (w->own) TRY(take(w, w->own, first, c->a.rows, &layer->output));
        if (layer->kind == GNN_GAT) TRY(gnn_attention_gather(layer, block));
        else TRY(gnn_convolution_gather(layer, block, NULL, false));
    } else {
        TRY(gather(w, &w->input, c, &w->gathered));
        x.dense = w->gathered.now;
        TRY(round_input(w, &x.dense));
        TRY(gnn_convolution_gather(layer, block, &x, false));
    }
    if (layer->between.present) {
        if (layer->between.residual) TRY(take(w, &w->input, first, c->a.rows, &w->taken));
        TRY(gnn_between_forward(layer, &w->taken.now));
    } else if (layer->open) TRY(gnn_finish(w->engine, &layer->after, &layer->bias, &layer->output.now));
done:
    return status;
}

/* What the jump makes of the rows H of a layer's output; in the end the logits. */
static sp_status jump(walk *w, int64_t first, const sp_dense *h)
{
    const gnn_pointwise linear = {.activation = GNN_LINEAR};
    gnn_readout *jump = gnn_model_jump(w->model);
    const int number = w->layer->number, layers = w->options->layers;
    const bool last = number + 1 == layers;
    gnn_matrix *carried = gnn_jump_carried(jump);
    gnn_host_rows *all = jump->kind == GNN_JUMP_MAX ? &w->most : w->of->logits;
    sp_status status;
    if (carried && number > 0) TRY(take(w, all, first, h->rows, carried));
    TRY(gnn_jump_take(jump, w->engine, h, number, layers));
    if (last) TRY(gnn_finish(w->engine, &linear, &jump->bias, &jump->logits.now));
    if (carried) TRY(put(w, &carried->now, all, first));
    if (last && carried != &jump->logits) TRY(put(w, &jump->logits.now, w->of->logits, first));
done:
    return status;
}

static sp_status block_part(walk *w, int64_t first, int64_t count)
{
    gnn_layer_state *layer = w->layer;
    gnn_block *block = NULL;
    cut c = {0};
    const sp_dense *h;
    sp_status status;
    TRY(cut_rows(w, first, count, &c));
    TRY(gnn_block_create(w->engine, &c.a, layer->kind, false, w->width, &block));
    block->first_own = c.own;
    TRY(compute(w, first, &c, block));
    h = layer->between.present ? gnn_between_output(layer) : &layer->output.now;
    if (w->options->jump != GNN_JUMP_NONE) TRY(jump(w, first, h));
    if (w->output.here.values) TRY(put(w, h, &w->output, first));
    else if (w->options->jump == GNN_JUMP_NONE) TRY(put(w, h, w->of->logits, first));
done:
    gnn_block_free(block);
    free_cut(w->engine->context, &c);
    return status;
}

/* ---- layers ---------------------------------------------------------------------------------------------- */

/* All rows, as many at once as the memory takes. */
static sp_status each_part(walk *w, sp_status (*part)(walk *, int64_t, int64_t))
{
    int64_t *most = w->of->rows;
    for (int64_t first = 0; first < w->nodes;) {
        const int64_t left = w->nodes - first, count = left < *most ? left : *most;
        const sp_status status = part(w, first, count);
        if (status == SP_OK) {
            first += count;
            continue;
        }
        if (!gnn_lacks_memory(status) || count <= GNN_LEAST_ROWS) return status;
        *most = count / 2 > GNN_LEAST_ROWS ? count / 2 : GNN_LEAST_ROWS;
        drop(w);
        const sp_status again = gnn_model_renew(w->model);
        if (again != SP_OK) return again;
    }
    return SP_OK;
}

/* Host memory for the results of a layer. */
static sp_status make_results(walk *w, bool last, bool products)
{
    const gnn_layer_state *l = w->layer;
    const bool jump = w->options->jump != GNN_JUMP_NONE, own = products && l->own.value.values;
    gnn_engine *engine = w->engine;
    sp_status status = SP_OK;
    if (products) TRY(gnn_host_rows_create(engine, w->nodes, l->weight.value.cols, l->numbers, &w->sent));
    w->own = !own ? NULL : last && !jump ? w->of->logits : &w->output;
    if (!last || (jump && (w->of->hidden || own)))
        TRY(gnn_host_rows_create(engine, w->nodes, l->outputs, l->results, &w->output));
    if (w->options->jump == GNN_JUMP_MAX && !w->most.here.values)
        TRY(gnn_host_rows_create(engine, w->nodes, l->outputs, l->results, &w->most));
done:
    return status;
}

static sp_status one_layer(walk *w, int number)
{
    const gnn_model_options *o = w->options;
    const bool last = number + 1 == o->layers, keep = o->keep_aggregated && number == 0;
    gnn_layer_state *l = w->layer = gnn_model_layer(w->model, number);
    sp_status status;
    w->sparse = number == 0 && !w->of->dense;
    w->width = gnn_layer_gather_width(l, w->of->matrix, w->sparse, keep);
    l->aggregate_first = l->kind != GNN_GAT && gnn_layer_aggregates_first(l, w->of->matrix, w->sparse, keep);
    drop(w);
    TRY(gnn_model_renew(w->model));
    TRY(make_results(w, last, !l->aggregate_first));
    if (!l->aggregate_first) TRY(each_part(w, multiply_part));
    TRY(each_part(w, block_part));
    gnn_host_rows_free(w->engine, &w->sent);
    if (last && o->jump == GNN_JUMP_NONE) return SP_OK;
    gnn_host_rows_free(w->engine, &w->input);
    w->input = w->output;
    w->output = (gnn_host_rows){0};
done:
    return status;
}

/* ---- the least memory ------------------------------------------------------------------------------------ */

/* The most entries of `rows` rows in succession. */
static double most_entries(const sp_csr *a, int64_t rows)
{
    int64_t most = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t end = a->rows - i < rows ? a->rows : i + rows;
        const int64_t entries = a->row_offsets[end] - a->row_offsets[i];
        most = entries > most ? entries : most;
    }
    return (double)most;
}

static double row_bytes(const walk *w, int64_t cols, sp_dense_type type)
{
    return (double)gnn_row_stride(w->engine, cols, type) * (double)number_size(type);
}

/* What a block of the fewest rows takes where the engine computes: its columns' rows, its own ones, entries. */
static double block_bytes(const walk *w, const gnn_layer_state *l, bool products, double entries)
{
    const double rows = GNN_LEAST_ROWS, all = (double)w->nodes, wanted = entries + rows;
    const double columns = wanted < all ? wanted : all, size = (double)number_size(l->type);
    const int64_t in = l->inputs, wide = l->weight.value.cols;
    double column = row_bytes(w, products ? wide : in, l->numbers), row = 3 * row_bytes(w, in, l->type);
    if (l->number == 0 && w->options->half) column += row_bytes(w, in, l->type);
    if (l->maxk > 0) column += (double)l->maxk * (size + 2);
    if (l->kind == GNN_GAT) column += (double)l->heads * size;
    if (l->kind == GNN_GAT) row += 2 * row_bytes(w, wide, l->type);
    row += 3 * row_bytes(w, wide, l->type) + 5 * row_bytes(w, l->outputs, l->type) + 64;
    return columns * (column + 8) + rows * row + entries * 24;
}

/* Of host memory for the results of a layer. */
static double result_bytes(const walk *w, const gnn_layer_state *l, bool products)
{
    const gnn_model_options *o = w->options;
    const double out = row_bytes(w, l->outputs, l->results);
    double row = row_bytes(w, o->outputs, o->type) + out;
    if (l->number > 0) row += row_bytes(w, l->inputs, l->numbers);
    if (products) row += row_bytes(w, l->weight.value.cols, l->numbers);
    if (o->jump == GNN_JUMP_MAX) row += row_bytes(w, o->hidden, l->numbers);
    return (double)w->nodes * row;
}

/* Asks once for all that the pass takes with the fewest rows a block, so that memory that is too small is found out
 * before the work, and an allocator knows how much would do. */
static sp_status ask_for_least(const walk *w)
{
    const bool host = w->engine->space == SP_HOST;
    const double entries = most_entries(w->of->matrix, GNN_LEAST_ROWS);
    double most = 0;
    void *all;
    for (int i = 0; i < w->options->layers; i++) {
        const gnn_layer_state *l = gnn_model_layer(w->model, i);
        const bool sparse = i == 0 && !w->of->dense, keep = w->options->keep_aggregated && i == 0;
        const bool products = l->kind == GNN_GAT || !gnn_layer_aggregates_first(l, w->of->matrix, sparse, keep);
        double bytes = block_bytes(w, l, products, entries);
        if (sparse) bytes += 24 * most_entries(w->of->sparse, GNN_LEAST_ROWS);
        if (host) bytes += result_bytes(w, l, products) + 0.2 * (double)w->nodes;
        most = bytes > most ? bytes : most;
    }
    const int64_t least = most < 0x1p60 ? (int64_t)most + (1 << 13) : (int64_t)1 << 60;
    const sp_status status = sp_array_create(w->engine->context, least, 1, w->engine->space, &all);
    if (status == SP_OK) sp_array_free(w->engine->context, w->engine->space, all);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

/* The hidden numbers are those that the logits are made of: the last layer's input, or what the jump reads. */
static sp_status run(walk *w)
{
    const bool most = w->options->jump == GNN_JUMP_MAX;
    gnn_host_rows *hidden = most ? &w->most : &w->input;
    sp_status status;
    TRY(sp_alloc(w->engine->context, (w->nodes + 63) / 64, sizeof *w->marked, (void **)&w->marked));
    TRY(sp_alloc(w->engine->context, (w->nodes + 63) / 64, sizeof *w->before, (void **)&w->before));
    if (w->of->dense) w->input = (gnn_host_rows){.here = w->of->dense->here, .there = w->of->dense->there};
    for (int i = 0; i < w->options->layers; i++) TRY(one_layer(w, i));
    TRY(w->engine->backend->wait(w->engine));
    if (!w->of->hidden || (w->options->layers < 2 && w->options->jump == GNN_JUMP_NONE)) return SP_OK;
    *w->of->hidden = *hidden;
    *hidden = (gnn_host_rows){0};
done:
    return status;
}

sp_status gnn_model_walk(gnn_model *model, const gnn_walk *of)
{
    gnn_engine *engine = gnn_model_engine(model);
    const gnn_model_options *o = gnn_model_shape(model);
    walk w = {.engine = engine, .model = model, .options = o, .of = of, .nodes = of->matrix->rows};
    gnn_host_rows *const all[] = {&w.input, &w.sent, &w.output, &w.most};
    sp_status status;
    TRY(gnn_model_renew(model));
    TRY(ask_for_least(&w));
    TRY(gnn_host_rows_create(engine, w.nodes, o->outputs, o->type, of->logits));
    status = run(&w);
done:
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gnn_host_rows_free(engine, all[i]);
    drop(&w);
    FREE_ALL(engine->context, w.marked, w.before);
    if (status == SP_OK) status = gnn_model_renew(model); /* frees what the blocks took */
    if (status != SP_OK) gnn_host_rows_free(engine, of->logits);
    return status;
}
