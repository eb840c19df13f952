/* The command line of gnn train and gnn predict. */
#include "options.h"

#include <string.h>

#include "common/tool.h"
#include "input.h"

/* ---- words ---------------------------------------------------------------------------------------------- */

static const char *const tasks[] = {"node", "link", NULL};
static const char *const models[] = {"gcn", "sage", "sage-max", "gin", "gat", NULL};
static const char *const samplers[] = {"full", "node", "layer", "fastgcn", "cluster", NULL};
static const char *const optimizers[] = {"adam", "adamw", "sgd", NULL};
static const char *const norms[] = {"none", "batch", "layer", NULL};
static const char *const jumps[] = {"none", "last", "cat", "max", NULL};
static const char *const schedules[] = {"step", "cosine", "plateau", NULL};
static const char *const orders[] = {"auto", "keep", "community", NULL};
static const char *const mpi_words[] = {"auto", "no", NULL};
static const char *const precisions[] = {"f32", "bf16", NULL};

enum { SAMPLER_FULL, SAMPLER_NODE = GNN_SAMPLE_NODE + 1, SAMPLER_CLUSTER = GNN_SAMPLE_CLUSTER + 1 };

const char *task_word(int task) { return tasks[task]; }
const char *model_word(int model) { return models[model]; }
const char *sampler_word(int sampler) { return samplers[sampler]; }
const char *optimizer_word(int optimizer) { return optimizers[optimizer]; }
const char *norm_word(int norm) { return norms[norm]; }
const char *jump_word(int jump) { return jumps[jump]; }
const char *schedule_word(int schedule) { return schedules[schedule]; }
const char *order_word(int order) { return orders[order]; }
const char *precision_word(int precision) { return precisions[precision]; }

#define mistake(...) usage_mistake("gnn", __VA_ARGS__)

/* ---- the table ------------------------------------------------------------------------------------------ */

/* "60%" or "0.6"; false for anything else. */
static bool read_share(const char *text, size_t length, double *share)
{
    char copy[32];
    const bool percent = length > 0 && text[length - 1] == '%';
    if (length >= sizeof copy) return false;
    snprintf(copy, sizeof copy, "%.*s", (int)(length - percent), text);
    if (!read_number(copy, share)) return false;
    if (percent) *share /= 100;
    return *share >= 0 && *share < 1;
}

static bool parse_split(void *settings, const char *value)
{
    gnn_settings *s = settings;
    const char *comma = strchr(value, ',');
    int64_t nodes[2];
    double share[2];
    s->split = true;
    s->split_train = s->split_validation = 0;
    s->train_share = s->validation_share = 0;
    if (read_counts(value, 0, INT32_MAX, 2, nodes) == 2 && nodes[0] > 0) {
        s->split_train = nodes[0];
        s->split_validation = nodes[1];
        return true;
    }
    if (!strpbrk(value, ".%") || !comma || !read_share(value, (size_t)(comma - value), &share[0]) ||
        !read_share(comma + 1, strlen(comma + 1), &share[1]) || share[0] == 0)
        return mistake("--split takes nodes, or shares, of a class to train and to validate with, such as 20,30 or "
                       "60%%,20%%; with --task link shares of all links, such as 85%%,5%% (got \"%.40s\")", value);
    s->train_share = share[0];
    s->validation_share = share[1];
    return true;
}

static bool take_folder(void *settings, const char *text)
{
    gnn_settings *s = settings;
    if (s->folder) return mistake("a second folder \"%.40s\"", text);
    s->folder = text;
    return true;
}

#define AT(place) .field = offsetof(gnn_settings, place)
static const double MOST = 1 << 30;

static const option_row train_rows[] = {
    {"--task", "NAME", "node (its class), link (of two nodes) [node]", OPTION_WORD, AT(task),
     .words = tasks},
    {"--negatives", "N", "other pairs a link in an epoch [1]", OPTION_COUNT, AT(negatives), OPTION_RANGE(1, 1 << 10),
     .beside = true},
    {"--model", "NAME", "gcn sage sage-max gin gat [gcn]", OPTION_WORD, AT(model), .words = models},
    {"--layers", "N", "[2]", OPTION_COUNT, AT(layers), OPTION_RANGE(1, GNN_MAX_LAYERS)},
    {"--hidden", "N", "columns between them [16; gat: 8 a head; link: 64]", OPTION_COUNT, AT(hidden),
     OPTION_RANGE(1, 1 << 16), .beside = true},
    {"--heads", "N", "of gat [8]", OPTION_COUNT, AT(heads), OPTION_RANGE(1, 1 << 10), .beside = true},
    {"--maxk", "K", "keep the K largest of each row between layers, instead of ReLU", OPTION_COUNT, AT(maxk),
     OPTION_RANGE(1, 1 << 16)},
    {"--norm", "NAME", "between layers: none, batch, layer [none]", OPTION_WORD, AT(norm), .words = norms},
    {"--residual", NULL, "add the input of a layer to its output", OPTION_FLAG, AT(residual), .beside = true},
    {"--jump", "NAME", "classes by the outputs of all layers: none, last, cat, max [none]", OPTION_WORD, AT(jump),
     .words = jumps},
    {"--dropout", "F", "between layers [0.5; gat: 0.6]", OPTION_NUMBER, AT(dropout), OPTION_BELOW(0, 1)},
    {"--input-dropout", "F", "[the same]", OPTION_NUMBER, AT(input_dropout), OPTION_BELOW(0, 1), .beside = true},
    {"--attention-dropout", "F", "[gat: 0.6]", OPTION_NUMBER, AT(attention_dropout), OPTION_BELOW(0, 1),
     .beside = true},
    {"--no-normalise", NULL, "leave the rows of features as they are; else they sum to 1", OPTION_FLAG,
     AT(no_normalise)},
    {"--keep-aggregated", NULL, "sum the first layer's neighbours once (no input dropout)", OPTION_FLAG,
     AT(keep_aggregated)},
    {"--precision", "TYPE", "f32, bf16 [f32]", OPTION_WORD, AT(precision), .words = precisions, .beside = true},
    {"", .kind = OPTION_HEADING},
    {"--epochs", "N", "[200]", OPTION_COUNT, AT(epochs), OPTION_RANGE(1, MOST)},
    {"--patience", "N", "ends after N epochs without a lower validation loss", OPTION_COUNT, AT(patience),
     OPTION_RANGE(0, MOST), .beside = true},
    {"--evaluate-every", "N", "epochs between evaluations [1]", OPTION_COUNT, AT(evaluate_every),
     OPTION_RANGE(1, MOST)},
    {"--optimizer", "NAME", "adam adamw sgd [adam]", OPTION_WORD, AT(optimizer), .words = optimizers},
    {"--rate", "F", "the learning rate [0.01; gat: 0.005]", OPTION_NUMBER, AT(rate), OPTION_ABOVE(0), .beside = true},
    {"--schedule", "NAME", "of the rate: step, plateau (by --rate-step), cosine [step]", OPTION_WORD, AT(schedule),
     .words = schedules},
    {"--warmup", "N", "epochs in which it rises", OPTION_COUNT, AT(warmup), OPTION_RANGE(0, MOST), .beside = true},
    {"--rate-step", "N", "epochs until the rate is multiplied by --rate-factor [never; plateau: 10]", OPTION_COUNT,
     AT(rate_step), OPTION_RANGE(1, MOST)},
    {"--rate-factor", "F", "[0.5]", OPTION_NUMBER, AT(rate_factor), OPTION_ABOVE(0), .beside = true},
    {"--class-weights", "HOW", "of the classes in the loss: balanced, or a table of them", OPTION_TEXT,
     AT(class_weights)},
    {"--decay", "F", "weight decay of the first layer [0.0005; link: 0]", OPTION_NUMBER, AT(decay), OPTION_FROM(0)},
    {"--decay-all", NULL, "of all layers [gat]", OPTION_FLAG, AT(decay_all), .beside = true},
    {"--sampler", "NAME", "minibatches by full node layer fastgcn cluster [full]", OPTION_WORD, AT(sampler),
     .words = samplers},
    {"--by-weight", NULL, "neighbours by weight (gcn)", OPTION_FLAG, AT(by_weight), .beside = true},
    {"--fanout", "A,B,...", "neighbours of a node, or nodes of a layer, from the last layer on [25,10; 512,512]",
     OPTION_COUNTS, AT(fanout), OPTION_RANGE(1, INT32_MAX), .most = GNN_MAX_LAYERS},
    {"--batch", "N", "nodes, or clusters, of a minibatch [1024]", OPTION_COUNT, AT(batch),
     OPTION_RANGE(1, INT32_MAX)},
    {"--bulk", "N", "minibatches drawn at once", OPTION_COUNT, AT(bulk), OPTION_RANGE(1, 1 << 16), .beside = true},
    {"--clusters", "HOW", "matching, mcl, or a file of them [matching]", OPTION_TEXT, AT(clusters)},
    {"--order", "HOW", "nodes in memory: auto, keep, community (those of one side by side) [auto]", OPTION_WORD,
     AT(order), .words = orders},
    {"--split", "A,B", "draw A training and B validation nodes, or A% and B%, of each class; the others test",
     OPTION_OWN,
     .then = parse_split},
    {"--seed", "N", "[1]", OPTION_COUNT, AT(seed), OPTION_RANGE(0, 0x1p62)},
    {"--seeds", "N", "as many runs, each with its own split; mean and deviation", OPTION_COUNT, AT(seeds),
     OPTION_RANGE(1, 1 << 16), .beside = true},
    {"", .kind = OPTION_HEADING},
    {"--save", "FILE", "write the model; weights alone as .safetensors", OPTION_TEXT, AT(save), .once = true},
    {"--resume", "FILE", "go on with a saved one", OPTION_TEXT, AT(resume), .beside = true},
    {"--checkpoint", "FILE", "write the model so far, to --resume, every --checkpoint-every", OPTION_TEXT,
     AT(checkpoint), .once = true},
    {"--checkpoint-every", "N", "epochs [100]", OPTION_COUNT, AT(checkpoint_every), OPTION_RANGE(1, MOST),
     .beside = true},
    {"--report", "FILE", "write what was done as JSON, or for a browser (.html)", OPTION_TEXT, AT(report),
     .once = true},
    {"--plot", "FILE", "write the curves as SVG", OPTION_TEXT, AT(plot), .once = true, .beside = true},
};

static const option_row predict_rows[] = {
    {"--load", "FILE", "the model", OPTION_TEXT, AT(load)},
    {"-o", "FILE", "where to write", OPTION_TEXT, AT(out), .once = true},
    {"--scores", NULL, "with the probability of each class", OPTION_FLAG, AT(scores)},
    {"--pairs", "FILE", "of a model of links: pairs of nodes, to write the probability of a link for", OPTION_TEXT,
     AT(pairs)},
    {"--links", "N", "of a model of links: the N most probable ones that the graph does not have", OPTION_COUNT,
     AT(best_links), OPTION_RANGE(1, MOST)},
    {"--embeddings", "FILE", "the numbers of the last hidden layer", OPTION_TEXT, AT(embeddings), .once = true},
    {"--report", "FILE", "how good it is as JSON, or for a browser (.html)", OPTION_TEXT, AT(report), .once = true},
};

static const option_row common_rows[] = {
    {"--undirected", NULL, "each edge stands for both directions", OPTION_FLAG, AT(undirected)},
    {"--unknown", "HOW", "nodes without features: error, drop [error]", OPTION_WORD, AT(unknown),
     .words = gnn_unknown_words, .beside = true},
    {"--features", "HOW", "of the nodes: file, degree, identity [file]", OPTION_WORD, AT(features),
     .words = gnn_feature_words},
    {"--quiet", NULL, "print nothing but errors", OPTION_FLAG, AT(quiet), .beside = true},
    {"--device", "NAME", "auto cpu cuda cuda:N [auto]", OPTION_DEVICE, AT(device)},
    {"--threads", "N", "[all]", OPTION_COUNT, AT(threads), OPTION_RANGE(1, 4096), .beside = true},
    {"--memory", "SIZE", "working memory [what is free]", OPTION_BYTES, AT(memory), .beside = true},
    {"--mpi", "HOW", "as one of several processes: auto (refuse), no (work alone) [auto]", OPTION_WORD, AT(mpi_no),
     .words = mpi_words},
    {"--version", .kind = OPTION_VERSION, .beside = true},
    {"-h", .kind = OPTION_HELP, .beside = true},
    {"--help", .kind = OPTION_HELP, .beside = true},
};

static const command_line train_line = {"gnn", {OPTION_LIST(train_rows), OPTION_LIST(common_rows)}, take_folder,
                                        .mcl_syntax = false};
static const command_line predict_line = {"gnn", {OPTION_LIST(predict_rows), OPTION_LIST(common_rows)}, take_folder,
                                          .mcl_syntax = false};

void gnn_usage(FILE *stream)
{
    fputs("usage: gnn train DIR [options]                          learns classes of nodes, or links\n"
          "       gnn predict DIR --load FILE -o FILE [--scores] [--embeddings FILE] [--report FILE]\n"
          "                   [--pairs FILE | --links N]           classes of nodes, or links, by a saved model\n"
          "       gnn info DIR                                     what a folder holds; gnn --doctor: this machine\n"
          "       gnn convert FROM... DIR                          other formats into a folder; gnn convert --help\n"
          "\n"
          "  DIR has graph.*, features.*, labels.* and a split: train.txt val.txt test.txt, or split.*\n"
          "\n", stream);
    options_help(&train_line, stream);
}

/* ---- defaults ------------------------------------------------------------------------------------------- */

static const int64_t HEADS = 8;
static const double RATE_FACTOR = 0.5;
static const int64_t CHECKPOINT_EVERY = 100, PLATEAU_EPOCHS = 10;

/* Settings of Kipf and Welling (2017); GAT's are those of Velickovic et al. (2018). Links are learnt without decay: on
 * Cora an AUC of 0.91, and 0.78 with that of classes. */
static void set_defaults(int model, int task, gnn_settings *s)
{
    const bool gat = model == GNN_GAT, link = task == TASK_LINK;
    *s = (gnn_settings){.command = s->command, .task = task, .model = model, .layers = 2,
                        .hidden = gat ? 8 : link ? 64 : 16, .heads = HEADS,
                        .epochs = 200, .evaluate_every = 1, .seed = 1, .seeds = 1, .rate = gat ? 0.005 : 0.01,
                        .rate_factor = RATE_FACTOR, .decay = link ? 0 : 5e-4, .decay_all = gat,
                        .dropout = gat ? 0.6 : 0.5,
                        .input_dropout = -1, .attention_dropout = gat ? 0.6 : 0, .device = "auto"};
}

static void set_saved(const gnn_saved *saved, gnn_settings *s)
{
    const gnn_model_options *m = &saved->options.model;
    const gnn_optimizer_options *o = &saved->options.optimizer;
    set_defaults((int)m->layer, saved->options.links ? TASK_LINK : TASK_NODE, s);
    s->layers = m->layers;
    s->hidden = m->hidden;
    s->heads = m->heads;
    s->maxk = m->maxk;
    s->norm = (int)m->norm;
    s->residual = m->residual;
    s->jump = (int)m->jump;
    s->dropout = m->dropout;
    s->input_dropout = m->input_dropout;
    s->attention_dropout = m->attention_dropout;
    s->keep_aggregated = m->keep_aggregated;
    s->precision = m->half;
    s->no_normalise = !m->normalised;
    s->undirected = m->undirected;
    s->optimizer = (int)o->method;
    s->rate = o->rate;
    s->decay = o->decay;
    s->decay_all = !o->decay_first_layer;
    s->seed = (int64_t)saved->seed;
}

/* Defaults that depend on other options. */
static void fill_in(gnn_settings *s)
{
    const bool nodewise = s->sampler == SAMPLER_NODE;
    if (s->input_dropout < 0) s->input_dropout = s->keep_aggregated ? 0 : s->dropout;
    if (s->sampler == SAMPLER_CLUSTER && !s->clusters) s->clusters = "matching";
    if (s->schedule == GNN_SCHEDULE_PLATEAU && s->rate_step == 0) s->rate_step = PLATEAU_EPOCHS;
    if (s->task == TASK_LINK && !s->split) { /* shares of Kipf and Welling (2016) */
        s->train_share = 0.85;
        s->validation_share = 0.05;
    }
    if (s->checkpoint && s->checkpoint_every == 0) s->checkpoint_every = CHECKPOINT_EVERY;
    if (s->sampler == SAMPLER_FULL || s->sampler == SAMPLER_CLUSTER || s->fanout.count > 0) return;
    s->fanout.count = (int)s->layers;
    for (int64_t l = 0; l < s->layers; l++) s->fanout.number[l] = !nodewise ? 512 : l == 0 ? 25 : 10;
}

gnn_trainer_options gnn_trainer_settings(const gnn_settings *s)
{
    enum { BATCH = 1024 };
    gnn_trainer_options how = {
        .model = {.layer = (gnn_layer)s->model, .layers = (int)s->layers, .hidden = s->hidden, .heads = (int)s->heads,
                  .input_dropout = s->input_dropout, .dropout = s->dropout, .attention_dropout = s->attention_dropout,
                  .maxk = s->maxk, .norm = (gnn_norm)s->norm, .residual = s->residual, .jump = (gnn_jump)s->jump,
                  .keep_aggregated = s->keep_aggregated, .half = s->precision > 0,
                  .normalised = !s->no_normalise, .undirected = s->undirected},
        .optimizer = {.method = (gnn_method)s->optimizer, .rate = s->rate, .decay = s->decay,
                      .decay_first_layer = !s->decay_all},
        .sampled = s->sampler != SAMPLER_FULL,
        .sampler = {.layers = (int)s->layers, .by_value = s->by_weight, .batch = s->batch ? s->batch : BATCH,
                    .bulk = s->bulk},
        .epochs = s->epochs, .patience = s->patience, .evaluate_every = s->evaluate_every,
        .schedule = (gnn_schedule)s->schedule, .rate_step = s->rate_step, .rate_factor = s->rate_factor,
        .warmup = s->warmup, .links = s->task == TASK_LINK, .negatives = s->negatives};
    if (how.links) how.model.outputs = s->model == GNN_GAT ? s->hidden * s->heads : s->hidden;
    if (how.sampled) how.sampler.kind = (gnn_sampler_kind)(s->sampler - 1);
    for (int l = 0; l < s->fanout.count; l++) how.sampler.fanout[l] = s->fanout.number[l];
    return how;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

bool is_weights(const char *path) { return path && ends_with(path, ".safetensors"); }

/* Predictions are text or an array of NumPy. Refuses names with another ending. */
static bool check_out(const char *option, const char *path)
{
    static const char *const others[] = {".npz", ".mtx", ".json", ".parquet", ".h5", ".pt"};
    for (size_t i = 0; path && i < sizeof others / sizeof *others; i++)
        if (is_kind(path, others[i]))
            return mistake("%s writes text, or an array of NumPy where the name ends in .npy, no %s (got \"%.200s\")",
                           option, others[i], path);
    return true;
}

static bool check_together(const gnn_saved *saved, const gnn_settings *s)
{
    if (!s->folder) return mistake("no folder: give one with graph.*, features.* and labels.*");
    if (s->command == COMMAND_PREDICT) {
        if (!s->load) return mistake("no model: give --load FILE");
        if (!s->out && !s->embeddings && !s->report)
            return mistake("no output: give -o FILE, --embeddings FILE or --report FILE");
        if (s->pairs && s->best_links > 0) return mistake("--pairs and --links: one of them at a time");
        if (!s->out && (s->pairs || s->best_links > 0)) return mistake("--pairs and --links go with -o FILE");
        if (s->best_links > 0 && is_kind(s->out, ".npy"))
            return mistake("--links writes pairs of nodes, as text: -o with another ending (got \"%.200s\")", s->out);
        if (!s->out && s->scores) return mistake("--scores goes with -o FILE");
        return check_out("-o", s->out) && check_out("--embeddings", s->embeddings);
    }
    if (!is_uncompressed("gnn", "--save", s->save) || !is_uncompressed("gnn", "--checkpoint", s->checkpoint))
        return false;
    if (is_weights(s->checkpoint))
        return mistake("--checkpoint writes all that --resume needs to go on: no .safetensors, which has the weights "
                       "alone");
    if (s->task == TASK_NODE && s->negatives > 0 && !s->resume)
        return mistake("--negatives goes with --task link");
    if (s->task == TASK_LINK && (s->sampler != SAMPLER_FULL || s->class_weights))
        return mistake("--task link trains with the whole graph and no classes: leave %s out",
                       s->class_weights ? "--class-weights" : "--sampler");
    if (s->task == TASK_LINK && s->split_train > 0)
        return mistake("--split takes shares of the links for training and validation with --task link, such as "
                       "85%%,5%%");
    if (s->split && s->train_share + s->validation_share > 1 - 1e-9)
        return mistake("--split %g%%,%g%% leaves no %s to test with: the shares are below 100%% together",
                       100 * s->train_share, 100 * s->validation_share, s->task == TASK_LINK ? "links" : "nodes");
    if (s->resume && !saved) return true; /* the saved model says what the rest has to go with */
    if (s->layers == 1 && s->jump == GNN_JUMP_NONE && (s->norm != GNN_NORM_NONE || s->residual))
        return mistake("--norm and --residual are for what goes between layers: they need two of them");
    if (s->maxk > 0 && s->layers == 1 && s->jump == GNN_JUMP_NONE)
        return mistake("--maxk is for what goes between layers: it needs two of them");
    if (s->maxk > s->hidden)
        return mistake("--maxk %lld of %lld columns: it is at most --hidden", (long long)s->maxk,
                       (long long)s->hidden);
    if (s->maxk > 0 && (s->model == GNN_GAT || s->model == GNN_SAGE_MAX))
        return mistake("--maxk goes with gcn, sage and gin");
    if (s->keep_aggregated && s->input_dropout > 0)
        return mistake("--keep-aggregated needs --input-dropout 0: a sum of what is dropped anew cannot be kept");
    if (s->precision && (s->maxk > 0 || s->model == GNN_SAGE_MAX))
        return mistake("--precision bf16 goes with gcn, sage, gin and gat, without --maxk");
    if (!s->resume && s->model != GNN_GAT && (s->heads != HEADS || s->attention_dropout > 0))
        return mistake("--heads and --attention-dropout go with gat");
    if (s->schedule == GNN_SCHEDULE_COSINE && (s->rate_step > 0 || s->rate_factor != RATE_FACTOR))
        return mistake("--rate-step and --rate-factor go with --schedule step or plateau, not with cosine");
    if (s->rate_step == 0 && s->rate_factor != RATE_FACTOR)
        return mistake("--rate-factor goes with --rate-step, the epochs after which it counts");
    if (s->warmup > 0 && s->warmup >= s->epochs)
        return mistake("--warmup %lld of %lld epochs: the rate would never be reached", (long long)s->warmup,
                       (long long)s->epochs);
    if (s->fanout.count > 0 && (s->sampler == SAMPLER_FULL || s->sampler == SAMPLER_CLUSTER))
        return mistake("--fanout goes with --sampler node, layer or fastgcn");
    if (s->fanout.count > 0 && s->fanout.count != s->layers)
        return mistake("--fanout takes a number for each layer: there are %lld, not %d", (long long)s->layers,
                       s->fanout.count);
    if (s->sampler == SAMPLER_FULL && (s->batch > 0 || s->bulk > 0))
        return mistake("--batch and --bulk go with --sampler");
    if (s->by_weight && (s->sampler != SAMPLER_NODE || s->model != GNN_GCN))
        return mistake("--by-weight goes with --sampler node and gcn, whose sums have weights");
    if (s->clusters && s->sampler != SAMPLER_CLUSTER) return mistake("--clusters goes with --sampler cluster");
    if (s->seeds > 1 && (s->resume || s->checkpoint))
        return mistake("--checkpoint and --resume are for one run: leave --seeds out");
    if (s->checkpoint_every > 0 && !s->checkpoint) return mistake("--checkpoint-every goes with --checkpoint FILE");
    if (s->checkpoint && strcmp(s->checkpoint, "-") == 0)
        return mistake("--checkpoint takes a file, which it replaces");
    return true;
}

/* Parses twice, because defaults depend on the model, which may be named last. */
options_outcome gnn_parse(int argc, char **argv, const gnn_saved *saved, gnn_settings *s)
{
    gnn_settings first = {.command = strcmp(argv[0], "predict") == 0 ? COMMAND_PREDICT : COMMAND_TRAIN};
    const command_line *line = first.command == COMMAND_TRAIN ? &train_line : &predict_line;
    *s = first;
    set_defaults(GNN_GCN, TASK_NODE, &first);
    options_outcome outcome = options_parse(line, argc, argv, &first);
    if (outcome != OPTIONS_RUN) return outcome;
    if (saved) set_saved(saved, s);
    else set_defaults(first.model, first.task, s);
    outcome = options_parse(line, argc, argv, s);
    if (s->command == COMMAND_TRAIN) fill_in(s);
    if (outcome == OPTIONS_RUN && saved && s->seed != (int64_t)saved->seed) {
        mistake("--seed %lld, but the saved model goes on with its own, %lld", (long long)s->seed,
                (long long)saved->seed);
        return OPTIONS_MISTAKE;
    }
    return outcome == OPTIONS_RUN && !check_together(saved, s) ? OPTIONS_MISTAKE : outcome;
}
