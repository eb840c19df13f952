/* Saved models and checkpoints of gnn, as predict --load and train --resume take them. What is accepted fits a trainer
 * of the options that it names: saved and restored again it has the same bytes, and it predicts and trains on, or one
 * sentence says why not. The first byte chooses the file (a model, with its optimizer or without) and whether the input
 * is the whole file in place of changes of it. */
#include "base/random.h"
#include "forged.h"
#include "gnn.h"

enum { MODELS = 8, BEST = 8, LONG = 16, WHOLE = 64, NODES = 6, EDGES = 2 * NODES, TRAINED = 2 };
/* Places in the file. */
enum { CHECKSUM = 16, COVERED = 24, HEAD_LEAST = 32 };
/* Above these a step takes too long, and has nothing new. */
enum { MOST_COLUMNS = 64, MOST_PARAMETERS = 4096 };

static const gnn_model_options models[MODELS] = {
    {.layer = GNN_GCN, .layers = 2, .hidden = 3},
    {.layer = GNN_SAGE, .layers = 2, .hidden = 3, .dropout = 0.5, .norm = GNN_NORM_BATCH},
    {.layer = GNN_SAGE_MAX, .layers = 3, .hidden = 2, .residual = true, .jump = GNN_JUMP_CAT},
    {.layer = GNN_GIN, .layers = 2, .hidden = 4, .maxk = 2},
    {.layer = GNN_GAT, .layers = 2, .hidden = 2, .heads = 2, .output_heads = 1, .attention_dropout = 0.25},
    {.layer = GNN_GCN, .layers = 3, .hidden = 2, .jump = GNN_JUMP_MAX, .norm = GNN_NORM_LAYER, .half = true},
    {.layer = GNN_SAGE, .layers = 1, .type = SP_DENSE_F64, .input_dropout = 0.25},
    {.layer = GNN_GCN, .layers = 2, .hidden = 3}, /* of links */
};
static forged_file written[MODELS][2]; /* all of it, and the best parameters alone */

/* ---- data and trainers ----------------------------------------------------------------------------------- */

typedef struct workshop {
    int64_t offsets[NODES + 1];
    int32_t columns[EDGES], labels[NODES];
    uint8_t split[NODES], targets[NODES * MOST_COLUMNS];
    float features[NODES * MOST_COLUMNS];
    gnn_data data;
    gnn_engine *engine;
    gnn_trainer *trainer;
} workshop;

/* A ring whose nodes have the features and classes that the model asks for. */
static void fill_data(workshop *w, const gnn_trainer_options *options, bool several)
{
    const int64_t inputs = options->model.inputs, classes = options->links ? 0 : options->model.outputs;
    for (int i = 0; i < NODES; i++) {
        const int before = (i + NODES - 1) % NODES, after = (i + 1) % NODES;
        w->offsets[i] = 2 * i;
        w->columns[2 * i] = before < after ? before : after;
        w->columns[2 * i + 1] = before < after ? after : before;
        w->labels[i] = (int32_t)(classes ? i % classes : 0);
        w->split[i] = (uint8_t)(GNN_TRAIN + i % 3);
        for (int64_t c = 0; c < inputs; c++) w->features[i * inputs + c] = (float)((i + c) % 3);
        for (int64_t c = 0; c < classes; c++) w->targets[i * classes + c] = (i + c) % 2 == 0;
    }
    w->offsets[NODES] = EDGES;
    w->data = (gnn_data){
        .graph = {.rows = NODES, .cols = NODES, .nnz = EDGES, .row_offsets = w->offsets, .col_indices = w->columns},
        .features.dense = {.rows = NODES, .cols = inputs, .stride = inputs, .values = w->features},
        .classes = classes};
    if (options->links) return;
    w->data.split = w->split;
    if (several) w->data.targets = w->targets;
    else w->data.labels = w->labels;
}

/* Links of the ring; the pairs beside them are across it. */
static void fill_links(workshop *w)
{
    static int32_t pairs[] = {0, 1, 0, 3};
    for (int split = GNN_VALIDATION; split <= GNN_TEST; split++) {
        w->data.links.linked[split] = w->data.links.unlinked[split] = 1;
        w->data.links.pair[split] = pairs;
    }
    w->data.links.linked[GNN_TRAIN] = NODES;
}

static sp_status open_workshop(workshop *w, sp_context *context, const gnn_trainer_options *options, bool several)
{
    fill_data(w, options, several);
    if (options->links) fill_links(w);
    fuzz_require(gnn_engine_create(context, 1, &w->engine) == SP_OK);
    return gnn_trainer_create(w->engine, &w->data, options, &w->trainer);
}

static void close_workshop(workshop *w)
{
    gnn_trainer_free(w->trainer);
    gnn_engine_free(w->engine);
}

/* ---- files ------------------------------------------------------------------------------------------------- */

static void take_bytes(workshop *w, sp_context *context, bool best, forged_file *file)
{
    void *bytes;
    int64_t size;
    fuzz_require(gnn_trainer_save(w->trainer, best, &bytes, &size) == SP_OK && size <= MOST_FORGED);
    memcpy(file->bytes, bytes, (size_t)size);
    file->size = (size_t)size;
    sp_free(context, bytes);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    for (int i = 0; i < MODELS; i++) {
        static workshop w;
        sp_context *context = fuzz_context(1);
        gnn_trainer_options options = {.model = models[i], .links = i == MODELS - 1, .epochs = TRAINED,
                                       .optimizer.method = i % 2 ? GNN_SGD : GNN_ADAM};
        options.model.inputs = 4;
        options.model.outputs = 3;
        if (i % 2) options.optimizer.rate = 0.1;
        fuzz_require(open_workshop(&w, context, &options, i == 1) == SP_OK);
        if (i == 0) w.data.class_names = "a\0b\0c\0", w.data.feature_names = "x\0y\0z\0\0";
        bool done = false;
        gnn_epoch epoch;
        while (!done) fuzz_require(gnn_trainer_epoch(w.trainer, &epoch, &done) == SP_OK);
        for (int best = 0; best < 2; best++) take_bytes(&w, context, best, &written[i][best]);
        close_workshop(&w);
        sp_context_destroy(context);
    }
    return 0;
}

/* Sets the size, and makes the checksum right. */
static void repair(forged_file *file)
{
    const int64_t size = (int64_t)file->size;
    uint64_t sum = 0;
    if (file->size < HEAD_LEAST) return;
    memcpy(file->bytes + COVERED, &size, sizeof size);
    for (size_t at = COVERED; at < file->size; at += sizeof sum) {
        uint64_t word = 0;
        memcpy(&word, file->bytes + at, file->size - at < sizeof word ? file->size - at : sizeof word);
        sum = mix64(sum ^ word) + RANDOM_STEP;
    }
    memcpy(file->bytes + CHECKSUM, &sum, sizeof sum);
}

/* ---- what was accepted --------------------------------------------------------------------------------------- */

/* Each of `count` names has its end within the file. */
static void check_names(const forged_file *file, const char *names, int64_t count)
{
    const char *end = (const char *)file->bytes + file->size;
    for (int64_t i = 0; names && i < count; i++) {
        names = memchr(names, '\0', (size_t)(end - names));
        fuzz_require(names != NULL);
        names++;
    }
}

/* Restores, saves, restores and saves: the second bytes are the first. Then uses it. */
static void go_on(workshop *w, sp_context *context, const forged_file *file)
{
    static forged_file first, second;
    int32_t classes[NODES];
    uint8_t targets[NODES * MOST_COLUMNS];
    float embeddings[NODES * MOST_COLUMNS * MOST_COLUMNS];
    gnn_epoch epoch;
    bool done;
    if (gnn_trainer_restore(w->trainer, file->bytes, (int64_t)file->size) != SP_OK) return;
    take_bytes(w, context, false, &first);
    fuzz_require(gnn_trainer_restore(w->trainer, first.bytes, (int64_t)first.size) == SP_OK);
    take_bytes(w, context, false, &second);
    fuzz_require(first.size == second.size && memcmp(first.bytes, second.bytes, first.size) == 0);
    if (gnn_trainer_width(w->trainer) <= MOST_COLUMNS * MOST_COLUMNS) gnn_trainer_embed(w->trainer, embeddings);
    if (w->data.classes && gnn_trainer_predict(w->trainer, classes, w->data.targets ? targets : NULL, NULL) == SP_OK)
        for (int i = 0; i < NODES && !w->data.targets; i++)
            fuzz_require(classes[i] >= 0 && classes[i] < w->data.classes);
    gnn_trainer_epoch(w->trainer, &epoch, &done);
}

static void check_saved(sp_context *context, const forged_file *file, bool long_run)
{
    static workshop w;
    gnn_saved saved;
    if (gnn_saved_read(context, file->bytes, (int64_t)file->size, &saved) != SP_OK) {
        fuzz_require(*sp_last_error(context) != '\0');
        return;
    }
    const gnn_model_options *m = &saved.options.model;
    fuzz_require(m->layers >= 1 && m->inputs >= 1 && m->outputs >= 1);
    check_names(file, saved.class_names, m->outputs);
    check_names(file, saved.feature_names, m->inputs);
    if (m->inputs > MOST_COLUMNS || m->outputs > MOST_COLUMNS || m->hidden > MOST_COLUMNS || m->heads > MOST_COLUMNS ||
        m->output_heads > MOST_COLUMNS || file->size > MOST_PARAMETERS * sizeof(double)) return;
    gnn_trainer_options options = saved.options;
    options.epochs = long_run ? INT64_MAX : TRAINED + 1;
    w.trainer = NULL;
    if (open_workshop(&w, context, &options, saved.several) == SP_OK) go_on(&w, context, file);
    else fuzz_require(*sp_last_error(context) != '\0');
    close_workshop(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static forged_file file;
    if (size == 0 || size > MOST_FORGED / 2) return 0;
    if (data[0] & WHOLE) {
        file.size = size - 1;
        memcpy(file.bytes, data + 1, size - 1);
    } else {
        file = written[data[0] % MODELS][data[0] & BEST ? 1 : 0];
        fuzz_forge(&file, data + 1, size - 1);
    }
    repair(&file);
    sp_context *context = fuzz_context(1);
    check_saved(context, &file, data[0] & LONG);
    sp_context_destroy(context);
    fuzz_require(fuzz_live == 0);
    return 0;
}
