/* Trainers as bytes: a head of fixed width with options and progress, the parameters, the best parameters, the
 * optimizer's moments, as in memory (little-endian), the names of the features and those of the classes, each with a
 * NUL. Bytes from outside are used only after the checksum of all and the sizes have been checked. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "trainer.h"

/* 2 has no `names`, 3 nothing after them, 4 nothing after `undirected`, 5 no `links` */
enum { VERSION = 6, OLDEST = 2, MOST_PARTS = 4 };
static const char MAGIC[8] = {'g', 'n', 'n', '-', 's', 'a', 'v', 'e'};

typedef struct saved_head {
    char magic[8];
    uint64_t version, checksum; /* of all after it */
    int64_t bytes;              /* of the whole */
    int64_t layer, layers, inputs, outputs, hidden, heads, output_heads, maxk, type, keep_aggregated, half,
        normalised;
    double input_dropout, dropout, attention_dropout;
    int64_t method, decay_first_layer;
    double rate, beta1, beta2, epsilon, decay;
    int64_t several, epoch, best_epoch, step, steps;
    double best_loss;
    uint64_t seed;
    int64_t parameters, has_best, moments; /* numbers in each part; flags and count of optional parts */
    int64_t names;                         /* bytes of them; 0: classes are numbers */
    int64_t norm, residual, jump;
    int64_t cuts, cut_epoch; /* of the rate, by its plateaus */
    int64_t undirected;
    int64_t feature_names;   /* bytes of them, 0: they have none */
    gnn_split_drawn drawn;
    int64_t links;           /* a flag: it predicts them */
} saved_head;

_Static_assert(sizeof(saved_head) % sizeof(uint64_t) == 0 && sizeof(saved_head) == 51 * sizeof(uint64_t),
               "no padding: the head is the same everywhere");

/* Mixes 64 bits a step by a bijection: bytes that differ in one word never have the same sum. The last word is padded
 * with zeros; the length is in the head. */
static uint64_t checksum(const void *bytes, int64_t size)
{
    const char *at = bytes;
    uint64_t sum = 0;
    for (int64_t i = 0; i < size; i += (int64_t)sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, at + i, size - i < 8 ? (size_t)(size - i) : sizeof word);
        sum = mix64(sum ^ word) + RANDOM_STEP;
    }
    return sum;
}

static const size_t COVERED = offsetof(saved_head, bytes);

static uint64_t whole_checksum(const void *bytes, int64_t size)
{
    return checksum((const char *)bytes + COVERED, size - (int64_t)COVERED);
}

static size_t head_size(uint64_t version)
{
    switch (version) {
    case 2: return offsetof(saved_head, names);
    case 3: return offsetof(saved_head, norm);
    case 4: return offsetof(saved_head, feature_names);
    case 5: return offsetof(saved_head, links);
    default: return sizeof(saved_head);
    }
}

/* ---- saving -------------------------------------------------------------------------------------------- */

/* The size of `count` names in at most `room` bytes, or -1. */
static int64_t names_size(const char *names, int64_t count, int64_t room)
{
    int64_t size = 0;
    for (; count > 0 && size < room; size++) count -= names[size] == '\0';
    return count > 0 ? -1 : size;
}

static saved_head head_of(const gnn_trainer_options *options)
{
    const gnn_model_options *m = &options->model;
    const gnn_optimizer_options *o = &options->optimizer;
    saved_head head = {
        .version = VERSION,
        .layer = m->layer, .layers = m->layers, .inputs = m->inputs, .outputs = m->outputs, .hidden = m->hidden,
        .heads = m->heads, .output_heads = m->output_heads, .maxk = m->maxk, .type = m->type,
        .keep_aggregated = m->keep_aggregated, .half = m->half, .normalised = m->normalised,
        .undirected = m->undirected, .links = options->links,
        .input_dropout = m->input_dropout, .dropout = m->dropout, .attention_dropout = m->attention_dropout,
        .norm = m->norm, .residual = m->residual, .jump = m->jump,
        .method = o->method, .decay_first_layer = o->decay_first_layer,
        .rate = o->rate, .beta1 = o->beta1, .beta2 = o->beta2, .epsilon = o->epsilon, .decay = o->decay};
    memcpy(head.magic, MAGIC, sizeof MAGIC);
    return head;
}

static saved_head make_head(gnn_trainer *t)
{
    saved_head head = head_of(&t->options);
    head.several = t->several;
    head.epoch = t->epoch;
    head.best_epoch = t->best_epoch;
    head.best_loss = t->best_loss;
    head.has_best = t->best_epoch > 0;
    head.cuts = t->cuts;
    head.cut_epoch = t->cut_epoch;
    head.seed = t->engine->seed;
    head.step = t->engine->step;
    head.parameters = gnn_model_size(t->model);
    head.drawn = t->data->drawn;
    return head;
}

/* The sizes of the names, and of the whole with `parts` arrays of parameters. */
static void measure(saved_head *head, int parts, const char *class_names, const char *feature_names)
{
    const size_t one = (size_t)head->parameters * number_size((sp_dense_type)head->type);
    if (class_names) head->names = names_size(class_names, head->outputs, INT64_MAX);
    if (feature_names) head->feature_names = names_size(feature_names, head->inputs, INT64_MAX);
    head->bytes = (int64_t)(sizeof *head + (size_t)parts * one) + head->feature_names + head->names;
}

/* Writes head and names around the parts, which are in place. */
static void seal(char *made, saved_head *head, const char *class_names, const char *feature_names)
{
    char *names = made + head->bytes - head->names;
    if (feature_names) memcpy(names - head->feature_names, feature_names, (size_t)head->feature_names);
    if (class_names) memcpy(names, class_names, (size_t)head->names);
    memcpy(made, head, sizeof *head);
    head->checksum = whole_checksum(made, head->bytes);
    memcpy(made, head, sizeof *head);
}

/* The addresses of the parts that follow a head, in their order. */
static int list_parts(gnn_trainer *t, const saved_head *head, void *part[MOST_PARTS], int64_t **steps)
{
    void *moments[2] = {NULL};
    int count = 0;
    part[count++] = gnn_model_weights(t->model);
    if (head->has_best) part[count++] = t->best;
    gnn_optimizer_state(t->optimizer, moments, steps);
    for (int i = 0; i < head->moments; i++) part[count++] = moments[i];
    return count;
}

/* A number is not finite if all bits of its exponent are set. */
static bool all_finite(const void *numbers, int64_t count, int64_t type)
{
    const uint64_t wide = UINT64_C(0x7ff) << 52;
    const uint32_t narrow = UINT32_C(0xff) << 23;
    for (int64_t i = 0; i < count; i++) {
        const char *at = (const char *)numbers + (size_t)i * number_size((sp_dense_type)type);
        uint64_t bits = 0;
        memcpy(&bits, at, number_size((sp_dense_type)type));
        if (type == SP_DENSE_F64 ? (bits & wide) == wide : ((uint32_t)bits & narrow) == narrow) return false;
    }
    return true;
}

sp_status gnn_trainer_save(gnn_trainer *t, bool best, void **bytes, int64_t *size)
{
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status == SP_OK) status = sp_require(t->context, __func__, "bytes", bytes);
    if (status == SP_OK) status = sp_require(t->context, __func__, "size", size);
    if (status != SP_OK) return status;
    const sp_space there = t->engine->space;
    saved_head head = make_head(t);
    void *part[MOST_PARTS], *moments[2];
    int64_t *steps;
    char *made;
    head.moments = gnn_optimizer_state(t->optimizer, moments, &steps);
    int parts = list_parts(t, &head, part, &steps);
    if (best) {
        if (head.has_best) part[0] = t->best;
        head.has_best = head.moments = 0;
        parts = 1;
    }
    const size_t one = (size_t)head.parameters * number_size((sp_dense_type)head.type);
    const char *class_names = t->options.links ? NULL : t->data->class_names;
    measure(&head, parts, class_names, t->data->feature_names);
    status = sp_alloc(t->context, head.bytes, 1, (void **)&made);
    if (status != SP_OK) return status;
    TRY(sp_array_copy(t->context, 1, sizeof head.steps, &head.steps, SP_HOST, steps, there));
    for (int i = 0; i < parts; i++)
        TRY(sp_array_copy(t->context, head.parameters, number_size((sp_dense_type)head.type),
                          made + sizeof head + (size_t)i * one, SP_HOST, part[i], there));
    if (!all_finite(made + sizeof head, parts * head.parameters, head.type)) {
        status = sp_fail(t->context, SP_ERROR_NOT_FINITE, "epoch %lld: the model has numbers that are not finite; a "
                         "learning rate below %g, or normalised features, may help", (long long)t->epoch, t->rate);
        goto done;
    }
    seal(made, &head, class_names, t->data->feature_names);
    *bytes = made;
    *size = head.bytes;
done:
    if (status != SP_OK) sp_free(t->context, made);
    return status;
}

sp_status gnn_saved_make(sp_context *context, const gnn_saved *saved, const float *weights, int64_t count, void **bytes,
                         int64_t *size)
{
    sp_status status = sp_require(context, __func__, "saved", saved);
    if (status == SP_OK) status = sp_require(context, __func__, "weights", weights);
    if (status == SP_OK) status = sp_require(context, __func__, "bytes", bytes);
    if (status == SP_OK) status = sp_require(context, __func__, "size", size);
    if (status != SP_OK) return status;
    saved_head head = head_of(&saved->options);
    head.several = saved->several;
    head.seed = saved->seed;
    head.best_loss = INFINITY;
    head.parameters = count;
    head.drawn = saved->drawn;
    measure(&head, 1, saved->class_names, saved->feature_names);
    char *made;
    status = sp_alloc(context, head.bytes, 1, (void **)&made);
    if (status != SP_OK) return status;
    memcpy(made + sizeof head, weights, (size_t)count * sizeof *weights);
    seal(made, &head, saved->class_names, saved->feature_names);
    *bytes = made;
    *size = head.bytes;
    return SP_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static sp_status damaged(sp_context *context, const char *what)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "this is no saved model: %s", what);
}

static bool in_range(int64_t number, int64_t low, int64_t high) { return number >= low && number <= high; }

/* Each layer has at least one matrix of weights, so a head cannot ask for more memory than its file has. */
static bool weights_fit(const saved_head *h)
{
    const bool gat = h->layer == GNN_GAT, gin = h->layer == GNN_GIN, jump = h->jump != GNN_JUMP_NONE;
    const double hidden = (double)h->hidden * (double)(gat ? h->heads : 1);
    const double last = (double)h->outputs * (double)(gat ? h->output_heads : 1);
    double weights = jump ? hidden * (double)h->outputs : 0;
    for (int64_t l = 0; l < h->layers; l++)
        weights += (l == 0 ? (double)h->inputs : hidden) * (l + 1 < h->layers || gin || jump ? hidden : last);
    return weights <= (double)h->parameters;
}

/* Options in the range of a trainer, which checks the rest itself. */
static bool is_plausible(const saved_head *h)
{
    const double reals[] = {h->input_dropout, h->dropout, h->attention_dropout, h->rate, h->beta1, h->beta2,
                            h->epsilon, h->decay, h->drawn.train_share, h->drawn.validation_share};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (!isfinite(reals[i])) return false;
    return in_range(h->layer, GNN_GCN, GNN_GAT) && in_range(h->layers, 1, GNN_MAX_LAYERS) &&
           in_range(h->inputs, 1, INT32_MAX) && in_range(h->outputs, 1, INT32_MAX) &&
           in_range(h->hidden, 0, INT32_MAX) && in_range(h->heads, 0, INT32_MAX) &&
           in_range(h->output_heads, 0, INT32_MAX) && in_range(h->norm, GNN_NORM_NONE, GNN_NORM_LAYER) &&
           in_range(h->residual, 0, 1) && in_range(h->jump, GNN_JUMP_NONE, GNN_JUMP_MAX) &&
           in_range(h->links, 0, 1) && in_range(h->maxk, 0, INT32_MAX) &&
           in_range(h->type, SP_DENSE_F32, SP_DENSE_F64) && in_range(h->method, GNN_ADAM, GNN_SGD) &&
           in_range(h->epoch, 0, INT64_MAX) && in_range(h->best_epoch, h->has_best, h->epoch) &&
           in_range(h->cuts, 0, h->epoch) && in_range(h->cut_epoch, 0, h->epoch) &&
           in_range(h->step, 0, INT64_MAX - 1) && in_range(h->steps, 0, INT64_MAX - 1) && !isnan(h->best_loss) &&
           in_range(h->drawn.train, 0, INT32_MAX) && in_range(h->drawn.validation, 0, INT32_MAX) &&
           h->drawn.train_share >= 0 && h->drawn.validation_share >= 0 &&
           h->drawn.train_share + h->drawn.validation_share <= 1 && in_range(h->has_best, 0, 1) &&
           in_range(h->moments, 0, 2) && in_range(h->parameters, 1, INT64_MAX) && weights_fit(h);
}

static const char *names_of(const void *bytes, const saved_head *head)
{
    return (const char *)bytes + head->bytes - head->names;
}

static const char *feature_names_of(const void *bytes, const saved_head *head)
{
    return names_of(bytes, head) - head->feature_names;
}

/* The options of model and optimizer. */
static gnn_trainer_options options_of(const saved_head *h)
{
    return (gnn_trainer_options){
        .model = {.layer = (gnn_layer)h->layer, .layers = (int)h->layers, .inputs = h->inputs, .outputs = h->outputs,
                  .hidden = h->hidden, .heads = (int)h->heads, .output_heads = (int)h->output_heads,
                  .input_dropout = h->input_dropout, .dropout = h->dropout,
                  .attention_dropout = h->attention_dropout, .maxk = h->maxk, .type = (sp_dense_type)h->type,
                  .keep_aggregated = h->keep_aggregated != 0, .half = h->half != 0,
                  .normalised = h->normalised != 0, .undirected = h->undirected != 0, .norm = (gnn_norm)h->norm,
                  .residual = h->residual != 0, .jump = (gnn_jump)h->jump},
        .optimizer = {.method = (gnn_method)h->method, .rate = h->rate, .beta1 = h->beta1, .beta2 = h->beta2,
                      .epsilon = h->epsilon, .decay = h->decay, .decay_first_layer = h->decay_first_layer != 0},
        .links = h->links != 0};
}

/* Checks that options go together and that numbers are finite. */
static sp_status check_content(sp_context *context, const void *bytes, const saved_head *head)
{
    const gnn_trainer_options options = options_of(head);
    const int64_t one = head->parameters, part = one * (int64_t)number_size((sp_dense_type)head->type);
    const char *at = (const char *)bytes + head_size(head->version), *moments = at + (1 + head->has_best) * part;
    char why[256];
    sp_status status = gnn_model_check(context, &options.model);
    if (status == SP_OK) status = gnn_optimizer_check(context, &options.optimizer);
    if (status != SP_OK) {
        snprintf(why, sizeof why, "its options do not go together: %s", sp_last_error(context));
        return damaged(context, why);
    }
    if (!all_finite(at, (1 + head->has_best) * one, head->type))
        return damaged(context, "it has a weight that is no finite number; train it again");
    if (!all_finite(moments, head->moments * one, head->type))
        return damaged(context, "the state of its optimizer has a number that is not finite; train it again");
    return SP_OK;
}

/* Reads the head after checking all bytes. */
static sp_status read_head(sp_context *context, const void *bytes, int64_t size, saved_head *head)
{
    const int64_t least = (int64_t)head_size(OLDEST);
    if (size < least) return damaged(context, "it is too short");
    memset(head, 0, sizeof *head);
    memcpy(head, bytes, (size_t)least);
    if (memcmp(head->magic, MAGIC, sizeof MAGIC) != 0) return damaged(context, "it does not begin like one");
    if (head->version < OLDEST || head->version > VERSION)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the saved model has version %llu, this program reads %d to %d",
                       (unsigned long long)head->version, OLDEST, VERSION);
    const int64_t begin = (int64_t)head_size(head->version);
    if (head->bytes != size || size < begin)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the saved model is truncated or extended: %lld bytes, not %lld",
                       (long long)size, (long long)head->bytes);
    if (head->checksum != whole_checksum(bytes, size)) return damaged(context, "its checksum is wrong");
    memcpy(head, bytes, (size_t)begin);
    if (!is_plausible(head) || !in_range(head->names, 0, size - begin) ||
        !in_range(head->feature_names, 0, size - begin - head->names))
        return damaged(context, "its options are out of range");
    const int64_t one = head->parameters, parts = 1 + head->has_best + head->moments;
    const int64_t number = (int64_t)number_size((sp_dense_type)head->type);
    const int64_t left = size - begin - head->names - head->feature_names;
    if (one > left / number || one * parts * number != left)
        return damaged(context, "its parts do not add up to its size");
    if (head->names && names_size(names_of(bytes, head), head->outputs, head->names) != head->names)
        return damaged(context, "it has not as many names as classes");
    if (head->feature_names &&
        names_size(feature_names_of(bytes, head), head->inputs, head->feature_names) != head->feature_names)
        return damaged(context, "it has not as many names as features");
    return check_content(context, bytes, head);
}

sp_status gnn_saved_read(sp_context *context, const void *bytes, int64_t size, gnn_saved *saved)
{
    saved_head h;
    sp_status status = sp_require(context, __func__, "bytes", bytes);
    if (status == SP_OK) status = sp_require(context, __func__, "saved", saved);
    if (status == SP_OK) status = read_head(context, bytes, size, &h);
    if (status != SP_OK) return status;
    *saved = (gnn_saved){.options = options_of(&h), .seed = h.seed, .several = h.several != 0, .drawn = h.drawn};
    if (h.names) saved->class_names = names_of(bytes, &h);
    if (h.feature_names) saved->feature_names = feature_names_of(bytes, &h);
    return SP_OK;
}

/* ---- restoring ----------------------------------------------------------------------------------------- */

static const char *const layer_names[] = {"GCN", "GraphSAGE", "GraphSAGE with maxima", "GIN", "GAT"};
static const char *const norm_names[] = {"no norm", "norms of batches", "norms of layers"};
static const char *const jump_names[] = {"no jump", "a jump from the last layer", "a jump from all layers",
                                         "a jump from their maximum"};
static const char *const method_names[] = {"Adam", "AdamW", "SGD"};

/* The trainer has the shape that was saved; names the first difference. */
static sp_status match_shape(gnn_trainer *t, const saved_head *saved)
{
    const saved_head own = make_head(t);
    const bool attention = own.layer == GNN_GAT;
    const struct {
        const char *what;
        int64_t saved, own;
    } numbers[] = {{"layers", saved->layers, own.layers},       {"features", saved->inputs, own.inputs},
                   {own.links ? "outputs" : "classes", saved->outputs, own.outputs},
                   {"hidden columns", saved->hidden, own.hidden},
                   {"heads", attention ? saved->heads : 0, attention ? own.heads : 0},
                   {"heads in the last layer", attention ? saved->output_heads : 0, attention ? own.output_heads : 0},
                   {"columns kept by MaxK", saved->maxk, own.maxk},
                   {"residuals", saved->residual, own.residual},
                   {"bytes a number", (int64_t)number_size((sp_dense_type)saved->type),
                    (int64_t)number_size((sp_dense_type)own.type)},
                   {"parameters", saved->parameters, own.parameters}};
    if (saved->layer != own.layer)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "the saved model is %s, not %s", layer_names[saved->layer],
                       layer_names[own.layer]);
    if (saved->links != own.links)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "the saved model predicts %s, not %s",
                       saved->links ? "links" : "classes", own.links ? "links" : "classes");
    if (saved->norm != own.norm || saved->jump != own.jump)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "the saved model has %s and %s, not %s and %s",
                       norm_names[saved->norm], jump_names[saved->jump], norm_names[own.norm], jump_names[own.jump]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].saved != numbers[i].own)
            return sp_fail(t->context, SP_ERROR_ARGUMENT, "the saved model has %lld %s, not %lld",
                           (long long)numbers[i].saved, numbers[i].what, (long long)numbers[i].own);
    if (t->data->split && !own.links && (saved->several != 0) != t->several)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "the saved model gives a node %s",
                       saved->several ? "several classes, the data one" : "one class, the data several");
    if (saved->moments && saved->method != own.method)
        return sp_fail(t->context, SP_ERROR_ARGUMENT, "the saved model was trained by %s, not %s",
                       method_names[saved->method], method_names[own.method]);
    return SP_OK;
}

sp_status gnn_trainer_restore(gnn_trainer *t, const void *bytes, int64_t size)
{
    sp_status status = gnn_require(__func__, "trainer", t);
    if (status == SP_OK) status = sp_require(t->context, __func__, "bytes", bytes);
    if (status != SP_OK) return status;
    const sp_space there = t->engine->space;
    saved_head head;
    void *part[MOST_PARTS], *moments[2];
    int64_t *steps;
    TRY(read_head(t->context, bytes, size, &head));
    TRY(match_shape(t, &head));
    const int kept = gnn_optimizer_state(t->optimizer, moments, &steps);
    if (head.moments && head.moments != kept)
        return damaged(t->context, "its moments are not those of its optimizer");
    const int parts = list_parts(t, &head, part, &steps);
    const size_t one = (size_t)head.parameters * number_size((sp_dense_type)head.type);
    gnn_trainer_forget(t);
    for (int i = 0; i < parts; i++)
        TRY(sp_array_copy(t->context, head.parameters, number_size((sp_dense_type)head.type), part[i], there,
                          (const char *)bytes + head_size(head.version) + (size_t)i * one, SP_HOST));
    if (head.moments || !kept)
        TRY(sp_array_copy(t->context, 1, sizeof head.steps, steps, there, &head.steps, SP_HOST));
    TRY(t->engine->backend->set_step(t->engine, head.step));
    t->engine->seed = head.seed;
    t->epoch = head.epoch;
    t->cuts = head.cuts;
    t->cut_epoch = head.cut_epoch;
    t->rate = NAN; /* set by the next epoch */
    t->best_loss = head.has_best ? head.best_loss : INFINITY;
    t->best_epoch = head.has_best ? head.best_epoch : 0;
    if (!t->data->split) t->several = head.several != 0;
done:
    return status;
}
