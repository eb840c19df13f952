/* The command line of gnn train and gnn predict. */
#include "options.h"

#include <stddef.h>
#include <string.h>

#include "common/tool.h"

/* ---- words ---------------------------------------------------------------------------------------------- */

static const char *const models[] = {"gcn", "sage", "sage-max", "gin", "gat", NULL};
static const char *const samplers[] = {"full", "node", "layer", "fastgcn", "cluster", NULL};
static const char *const optimizers[] = {"adam", "adamw", "sgd", NULL};
static const char *const orders[] = {"auto", "keep", "community", NULL};

enum { SAMPLER_FULL, SAMPLER_NODE = GNN_SAMPLE_NODE + 1, SAMPLER_CLUSTER = GNN_SAMPLE_CLUSTER + 1 };

const char *model_word(int64_t model) { return models[model]; }
const char *sampler_word(int64_t sampler) { return samplers[sampler]; }
const char *optimizer_word(int64_t optimizer) { return optimizers[optimizer]; }
const char *order_word(int64_t order) { return orders[order]; }

void gnn_usage(FILE *stream)
{
    fputs("usage: gnn train DIR [options]                          learns to classify the nodes of a graph\n"
          "       gnn predict DIR --load FILE -o FILE [--scores]   the class of every node by a saved model\n"
          "       gnn info DIR                                     what a folder holds\n"
          "       gnn convert FROM... DIR                          other formats into a folder; gnn convert --help\n"
          "\n"
          "  DIR has graph.*, features.*, labels.* and a split: train.txt val.txt test.txt, or split.*\n"
          "\n"
          "  --model NAME        gcn sage sage-max gin gat [gcn]\n"
          "  --layers N          [2]; --hidden N columns between them [16; gat: 8 a head]; --heads N of gat [8]\n"
          "  --maxk K            keep the K largest of each row between layers, instead of ReLU\n"
          "  --dropout F --input-dropout F --attention-dropout F    [0.5; gat: 0.6; the input as between layers]\n"
          "  --no-normalise      leave the rows of features as they are; else they sum to 1\n"
          "  --keep-aggregated   the first layer's neighbours are summed once (no dropout of the input)\n"
          "  --half-gather       16 bits of what neighbours hear (gcn, sage, gin): faster on large graphs\n"
          "\n"
          "  --epochs N          [200]; --patience N ends after N epochs without a lower validation loss\n"
          "  --evaluate-every N  epochs between evaluations [1]\n"
          "  --optimizer NAME    adam adamw sgd [adam]; --rate F [0.01; gat: 0.005]\n"
          "  --rate-step N --rate-factor F    every N epochs the rate is multiplied by F [0.5]\n"
          "  --decay F           weight decay [0.0005] of the first layer; --decay-all of all [gat]\n"
          "  --sampler NAME      full node layer fastgcn cluster [full]\n"
          "  --fanout A,B,...    neighbours of a node, or nodes of a layer, from the last layer on [25,10; 512,512]\n"
          "  --batch N           nodes, or clusters, of a minibatch [1024]; --bulk N minibatches drawn at once\n"
          "  --clusters HOW      matching, mcl, or a file of them [matching]\n"
          "  --order HOW         nodes in memory: auto, keep, community: those of one side by side [auto]\n"
          "  --split A,B         draw A training and B validation nodes of each class; the others test\n"
          "  --undirected        each edge stands for both directions\n"
          "  --seed N            [1]; --seeds N: as many runs, each with its own split; mean and deviation\n"
          "\n"
          "  --save FILE         the model; --resume FILE: go on with a saved one\n"
          "  --checkpoint FILE   the model so far, to --resume, every --checkpoint-every N epochs [100]\n"
          "  --report FILE       as JSON; --plot FILE: curves as SVG; --quiet\n"
          "  --device NAME       auto cpu cuda cuda:N [auto]; --threads N --memory SIZE\n"
          "  --version -h --help\n", stream);
}

#define mistake(...) usage_mistake("gnn", __VA_ARGS__)

/* ---- values --------------------------------------------------------------------------------------------- */

/* What an option takes, and which field of the settings it goes to. */
typedef enum value_kind { VALUE_FLAG, VALUE_TEXT, VALUE_WORD, VALUE_COUNT, VALUE_NUMBER, VALUE_OTHER } value_kind;
enum { FOR_TRAIN = 1, FOR_PREDICT = 2, FOR_BOTH = 3 };

typedef struct option_entry {
    const char *name;
    value_kind kind;
    int commands;
    size_t field;
    const char *const *words; /* VALUE_WORD */
    int64_t low, high;        /* VALUE_COUNT */
    double least, below;      /* VALUE_NUMBER: least <= value < below */
} option_entry;

#define FIELD(name) offsetof(gnn_settings, name)

static const option_entry entries[] = {
    {"--model", VALUE_WORD, FOR_TRAIN, FIELD(model), .words = models},
    {"--sampler", VALUE_WORD, FOR_TRAIN, FIELD(sampler), .words = samplers},
    {"--optimizer", VALUE_WORD, FOR_TRAIN, FIELD(optimizer), .words = optimizers},
    {"--order", VALUE_WORD, FOR_TRAIN, FIELD(order), .words = orders},
    {"--layers", VALUE_COUNT, FOR_TRAIN, FIELD(layers), .low = 1, .high = GNN_MAX_LAYERS},
    {"--hidden", VALUE_COUNT, FOR_TRAIN, FIELD(hidden), .low = 1, .high = 1 << 16},
    {"--heads", VALUE_COUNT, FOR_TRAIN, FIELD(heads), .low = 1, .high = 1 << 10},
    {"--maxk", VALUE_COUNT, FOR_TRAIN, FIELD(maxk), .low = 1, .high = 1 << 16},
    {"--epochs", VALUE_COUNT, FOR_TRAIN, FIELD(epochs), .low = 1, .high = 1 << 30},
    {"--patience", VALUE_COUNT, FOR_TRAIN, FIELD(patience), .low = 0, .high = 1 << 30},
    {"--evaluate-every", VALUE_COUNT, FOR_TRAIN, FIELD(evaluate_every), .low = 1, .high = 1 << 30},
    {"--rate-step", VALUE_COUNT, FOR_TRAIN, FIELD(rate_step), .low = 1, .high = 1 << 30},
    {"--batch", VALUE_COUNT, FOR_TRAIN, FIELD(batch), .low = 1, .high = INT32_MAX},
    {"--bulk", VALUE_COUNT, FOR_TRAIN, FIELD(bulk), .low = 1, .high = 1 << 16},
    {"--seed", VALUE_COUNT, FOR_TRAIN, FIELD(seed), .low = 0, .high = INT64_MAX / 2},
    {"--seeds", VALUE_COUNT, FOR_TRAIN, FIELD(seeds), .low = 1, .high = 1 << 16},
    {"--threads", VALUE_COUNT, FOR_BOTH, FIELD(threads), .low = 1, .high = 4096},
    {"--rate", VALUE_NUMBER, FOR_TRAIN, FIELD(rate), .least = 1e-300, .below = 1e300},
    {"--rate-factor", VALUE_NUMBER, FOR_TRAIN, FIELD(rate_factor), .least = 1e-300, .below = 1e300},
    {"--decay", VALUE_NUMBER, FOR_TRAIN, FIELD(decay), .least = 0, .below = 1e300},
    {"--dropout", VALUE_NUMBER, FOR_TRAIN, FIELD(dropout), .least = 0, .below = 1},
    {"--input-dropout", VALUE_NUMBER, FOR_TRAIN, FIELD(input_dropout), .least = 0, .below = 1},
    {"--attention-dropout", VALUE_NUMBER, FOR_TRAIN, FIELD(attention_dropout), .least = 0, .below = 1},
    {"--clusters", VALUE_TEXT, FOR_TRAIN, FIELD(clusters), .words = NULL},
    {"--save", VALUE_TEXT, FOR_TRAIN, FIELD(save), .words = NULL},
    {"--checkpoint", VALUE_TEXT, FOR_TRAIN, FIELD(checkpoint), .words = NULL},
    {"--checkpoint-every", VALUE_COUNT, FOR_TRAIN, FIELD(checkpoint_every), .low = 1, .high = 1 << 30},
    {"--resume", VALUE_TEXT, FOR_TRAIN, FIELD(resume), .words = NULL},
    {"--report", VALUE_TEXT, FOR_TRAIN, FIELD(report), .words = NULL},
    {"--plot", VALUE_TEXT, FOR_TRAIN, FIELD(plot), .words = NULL},
    {"--load", VALUE_TEXT, FOR_PREDICT, FIELD(load), .words = NULL},
    {"-o", VALUE_TEXT, FOR_PREDICT, FIELD(out), .words = NULL},
    {"--decay-all", VALUE_FLAG, FOR_TRAIN, FIELD(decay_all), .words = NULL},
    {"--no-normalise", VALUE_FLAG, FOR_TRAIN, FIELD(no_normalise), .words = NULL},
    {"--keep-aggregated", VALUE_FLAG, FOR_TRAIN, FIELD(keep_aggregated), .words = NULL},
    {"--half-gather", VALUE_FLAG, FOR_TRAIN, FIELD(half_gather), .words = NULL},
    {"--undirected", VALUE_FLAG, FOR_BOTH, FIELD(undirected), .words = NULL},
    {"--quiet", VALUE_FLAG, FOR_BOTH, FIELD(quiet), .words = NULL},
    {"--scores", VALUE_FLAG, FOR_PREDICT, FIELD(scores), .words = NULL},
    {"--fanout", VALUE_OTHER, FOR_TRAIN, 0, .words = NULL},
    {"--split", VALUE_OTHER, FOR_TRAIN, 0, .words = NULL},
    {"--device", VALUE_OTHER, FOR_BOTH, 0, .words = NULL},
    {"--memory", VALUE_OTHER, FOR_BOTH, 0, .words = NULL},
};

/* Sets *chosen to the place of `value` among words. */
static bool choose(const char *option, const char *value, const char *const *words, int64_t *chosen)
{
    char list[128] = "";
    for (int i = 0; words[i]; i++) {
        if (strcmp(value, words[i]) == 0) {
            *chosen = i;
            return true;
        }
        const size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    return mistake("%s is one of %s (got \"%.40s\")", option, list, value);
}

static bool read_count(const option_entry *entry, const char *value, int64_t *number)
{
    if (read_integer(value, number) && *number >= entry->low && *number <= entry->high) return true;
    return mistake("%s takes a whole number from %lld to %lld (got \"%.40s\")", entry->name, (long long)entry->low,
                   (long long)entry->high, value);
}

static bool read_real(const option_entry *entry, const char *value, double *number)
{
    if (read_number(value, number) && *number >= entry->least && *number < entry->below) return true;
    if (entry->below == 1)
        return mistake("%s takes a number from 0 to below 1 (got \"%.40s\")", entry->name, value);
    return mistake("%s takes a number %s (got \"%.40s\")", entry->name, entry->least == 0 ? "from 0 on" : "above 0",
                   value);
}

/* Whole numbers from `low` on, separated by commas; false if there are more than `most`, or anything else. */
static bool read_list(const char *value, int64_t low, int64_t most, int64_t *numbers, int64_t *count)
{
    for (*count = 0; *count < most; value++) {
        char text[24];
        const size_t length = strcspn(value, ",");
        if (length == 0 || length >= sizeof text) return false;
        memcpy(text, value, length);
        text[length] = '\0';
        if (!read_integer(text, &numbers[*count])) return false;
        if (numbers[*count] < low || numbers[*count] > INT32_MAX) return false;
        ++*count;
        value += length;
        if (*value == '\0') return true;
    }
    return false;
}

static bool parse_device(gnn_settings *s, const char *value)
{
    const size_t length = strlen(value);
    const bool numbered = strncmp(value, "cuda:", 5) == 0 && length > 5 && length <= 8 &&
                          strspn(value + 5, "0123456789") == length - 5;
    s->device = value;
    return numbered || strcmp(value, "auto") == 0 || strcmp(value, "cpu") == 0 || strcmp(value, "cuda") == 0 ||
           mistake("--device is one of auto, cpu, cuda, cuda:N (got \"%.40s\")", value);
}

static bool parse_other(gnn_settings *s, const char *option, const char *value)
{
    int64_t pair[2], count;
    if (strcmp(option, "--device") == 0) return parse_device(s, value);
    if (strcmp(option, "--memory") == 0)
        return read_bytes(value, &s->memory) ||
               mistake("--memory takes a size such as 8G or 500M (got \"%.40s\")", value);
    if (strcmp(option, "--fanout") == 0)
        return read_list(value, 1, GNN_MAX_LAYERS, s->fanout, &s->fanouts) ||
               mistake("--fanout takes whole numbers such as 25,10 (got \"%.40s\")", value);
    if (!read_list(value, 0, 2, pair, &count) || count != 2 || pair[0] == 0)
        return mistake("--split takes nodes of a class to train and to validate with, such as 20,30 (got \"%.40s\")",
                       value);
    s->split_train = pair[0];
    s->split_validation = pair[1];
    return true;
}

static bool parse_value(gnn_settings *s, const option_entry *entry, const char *value)
{
    void *field = (char *)s + entry->field;
    switch (entry->kind) {
    case VALUE_WORD: return choose(entry->name, value, entry->words, field);
    case VALUE_COUNT: return read_count(entry, value, field);
    case VALUE_NUMBER: return read_real(entry, value, field);
    case VALUE_TEXT: return *(const char **)field = value, true;
    case VALUE_FLAG: return *(bool *)field = true;
    case VALUE_OTHER: break;
    }
    return parse_other(s, entry->name, value);
}

/* ---- defaults ------------------------------------------------------------------------------------------- */

static const int64_t HEADS = 8;
static const double RATE_FACTOR = 0.5;
static const int64_t CHECKPOINT_EVERY = 100;

/* Settings of Kipf and Welling (2017); GAT's are those of Velickovic et al. (2018). */
static void set_defaults(int64_t model, gnn_settings *s)
{
    const bool gat = model == GNN_GAT;
    *s = (gnn_settings){.command = s->command, .model = model, .layers = 2, .hidden = gat ? 8 : 16, .heads = HEADS,
                        .epochs = 200, .evaluate_every = 1, .seed = 1, .seeds = 1, .rate = gat ? 0.005 : 0.01,
                        .rate_factor = RATE_FACTOR, .decay = 5e-4, .decay_all = gat, .dropout = gat ? 0.6 : 0.5,
                        .input_dropout = -1, .attention_dropout = gat ? 0.6 : 0, .device = "auto"};
}

static void set_saved(const gnn_saved *saved, gnn_settings *s)
{
    const gnn_model_options *m = &saved->options.model;
    const gnn_optimizer_options *o = &saved->options.optimizer;
    set_defaults(m->layer, s);
    s->layers = m->layers;
    s->hidden = m->hidden;
    s->heads = m->heads;
    s->maxk = m->maxk;
    s->dropout = m->dropout;
    s->input_dropout = m->input_dropout;
    s->attention_dropout = m->attention_dropout;
    s->keep_aggregated = m->keep_aggregated;
    s->half_gather = m->half_gather;
    s->no_normalise = !m->normalised;
    s->optimizer = o->method;
    s->rate = o->rate;
    s->decay = o->decay;
    s->decay_all = !o->decay_first_layer;
    s->seed = (int64_t)saved->seed;
}

/* What depends on other options, where it was not given. */
static void fill_in(gnn_settings *s)
{
    const bool nodewise = s->sampler == SAMPLER_NODE;
    if (s->input_dropout < 0) s->input_dropout = s->keep_aggregated ? 0 : s->dropout;
    if (s->sampler == SAMPLER_CLUSTER && !s->clusters) s->clusters = "matching";
    if (s->checkpoint && s->checkpoint_every == 0) s->checkpoint_every = CHECKPOINT_EVERY;
    if (s->sampler == SAMPLER_FULL || s->sampler == SAMPLER_CLUSTER || s->fanouts > 0) return;
    s->fanouts = s->layers;
    for (int64_t l = 0; l < s->layers; l++) s->fanout[l] = !nodewise ? 512 : l == 0 ? 25 : 10;
}

gnn_trainer_options gnn_trainer_settings(const gnn_settings *s)
{
    enum { BATCH = 1024 };
    gnn_trainer_options how = {
        .model = {.layer = (gnn_layer)s->model, .layers = (int)s->layers, .hidden = s->hidden, .heads = (int)s->heads,
                  .input_dropout = s->input_dropout, .dropout = s->dropout, .attention_dropout = s->attention_dropout,
                  .maxk = s->maxk, .keep_aggregated = s->keep_aggregated, .half_gather = s->half_gather,
                  .normalised = !s->no_normalise},
        .optimizer = {.method = (gnn_method)s->optimizer, .rate = s->rate, .decay = s->decay,
                      .decay_first_layer = !s->decay_all},
        .sampled = s->sampler != SAMPLER_FULL,
        .sampler = {.layers = (int)s->layers, .batch = s->batch ? s->batch : BATCH, .bulk = s->bulk},
        .epochs = s->epochs, .patience = s->patience, .evaluate_every = s->evaluate_every,
        .rate_step = s->rate_step, .rate_factor = s->rate_factor};
    if (how.sampled) how.sampler.kind = (gnn_sampler_kind)(s->sampler - 1);
    for (int64_t l = 0; l < s->fanouts; l++) how.sampler.fanout[l] = s->fanout[l];
    return how;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

/* Classes are text, or an array of NumPy: a name that promises anything else would deceive. */
static bool check_out(const gnn_settings *s)
{
    static const char *const others[] = {".npz", ".mtx", ".json", ".gz", ".zst", ".parquet", ".h5", ".pt"};
    if (!s->out) return mistake("no output: give -o FILE");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_with(s->out, others[i]))
            return mistake("-o writes text, or an array of NumPy where the name ends in .npy, no %s (got \"%.200s\")",
                           others[i], s->out);
    return true;
}

static bool check_together(const gnn_saved *saved, const gnn_settings *s)
{
    if (!s->folder) return mistake("no folder: give one with graph.*, features.* and labels.*");
    if (s->command == COMMAND_PREDICT) {
        if (!s->load) return mistake("no model: give --load FILE");
        return check_out(s);
    }
    if (s->resume && !saved) return true; /* the saved model says what the rest has to go with */
    if (s->maxk > 0 && s->layers == 1) return mistake("--maxk is for what goes between layers: it needs two of them");
    if (s->maxk > s->hidden)
        return mistake("--maxk %lld of %lld columns: it is at most --hidden", (long long)s->maxk,
                       (long long)s->hidden);
    if (s->maxk > 0 && (s->model == GNN_GAT || s->model == GNN_SAGE_MAX))
        return mistake("--maxk goes with gcn, sage and gin");
    if (s->keep_aggregated && s->input_dropout > 0)
        return mistake("--keep-aggregated needs --input-dropout 0: a sum of what is dropped anew cannot be kept");
    if (s->half_gather && (s->maxk > 0 || s->model == GNN_GAT || s->model == GNN_SAGE_MAX))
        return mistake("--half-gather goes with gcn, sage and gin, without --maxk");
    if (!s->resume && s->model != GNN_GAT && (s->heads != HEADS || s->attention_dropout > 0))
        return mistake("--heads and --attention-dropout go with gat");
    if (s->rate_step == 0 && s->rate_factor != RATE_FACTOR)
        return mistake("--rate-factor goes with --rate-step, the epochs after which it counts");
    if (s->fanouts > 0 && (s->sampler == SAMPLER_FULL || s->sampler == SAMPLER_CLUSTER))
        return mistake("--fanout goes with --sampler node, layer or fastgcn");
    if (s->fanouts > 0 && s->fanouts != s->layers)
        return mistake("--fanout takes a number for each layer: there are %lld, not %lld", (long long)s->layers,
                       (long long)s->fanouts);
    if (s->sampler == SAMPLER_FULL && (s->batch > 0 || s->bulk > 0))
        return mistake("--batch and --bulk go with --sampler");
    if (s->clusters && s->sampler != SAMPLER_CLUSTER) return mistake("--clusters goes with --sampler cluster");
    if (s->seeds > 1 && (s->save || s->resume || s->checkpoint))
        return mistake("--save, --checkpoint and --resume are for one run: leave --seeds out");
    if (s->checkpoint_every > 0 && !s->checkpoint) return mistake("--checkpoint-every goes with --checkpoint FILE");
    if (s->checkpoint && strcmp(s->checkpoint, "-") == 0)
        return mistake("--checkpoint takes a file, which it replaces");
    return true;
}

static bool parse_argument(int argc, char **argv, int *i, bool folders, gnn_settings *s)
{
    const char *option = argv[*i], *equals = strchr(option, '=');
    const size_t length = strncmp(option, "--", 2) == 0 ? strcspn(option, "=") : strlen(option);
    const int command = s->command == COMMAND_TRAIN ? FOR_TRAIN : FOR_PREDICT;
    if (folders || option[0] != '-') {
        if (s->folder) return mistake("a second folder \"%.40s\"", option);
        s->folder = option;
        return true;
    }
    for (size_t k = 0; k < sizeof entries / sizeof *entries; k++) {
        const option_entry *entry = &entries[k];
        if (strlen(entry->name) != length || strncmp(option, entry->name, length) != 0) continue;
        if (!(entry->commands & command))
            return mistake("%s is no option of gnn %s", entry->name, command == FOR_TRAIN ? "train" : "predict");
        if (entry->kind == VALUE_FLAG)
            return option[length] == '=' ? mistake("%s takes no value", entry->name) : parse_value(s, entry, NULL);
        if (option[length] == '=') return parse_value(s, entry, equals + 1);
        if (*i + 1 >= argc) return mistake("%s needs a value", entry->name);
        return parse_value(s, entry, argv[++*i]);
    }
    return mistake("unknown option \"%.40s\"", option);
}

static gnn_request parse_all(int argc, char **argv, gnn_settings *s)
{
    bool folders = false;
    for (int i = 1; i < argc; i++) {
        if (!folders && (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)) return REQUEST_HELP;
        if (!folders && strcmp(argv[i], "--") == 0) folders = true;
        else if (!parse_argument(argc, argv, &i, folders, s)) return REQUEST_MISTAKE;
    }
    return REQUEST_RUN;
}

/* Twice where defaults depend on the model, which may be named last. */
gnn_request gnn_parse(int argc, char **argv, const gnn_saved *saved, gnn_settings *s)
{
    gnn_settings first = {.command = strcmp(argv[0], "predict") == 0 ? COMMAND_PREDICT : COMMAND_TRAIN};
    *s = first;
    set_defaults(GNN_GCN, &first);
    gnn_request request = parse_all(argc, argv, &first);
    if (request != REQUEST_RUN) return request;
    if (saved) set_saved(saved, s);
    else set_defaults(first.model, s);
    request = parse_all(argc, argv, s);
    if (s->command == COMMAND_TRAIN) fill_in(s);
    if (request == REQUEST_RUN && saved && s->seed != (int64_t)saved->seed) {
        mistake("--seed %lld, but the saved model goes on with its own, %lld", (long long)s->seed,
                (long long)saved->seed);
        return REQUEST_MISTAKE;
    }
    return request == REQUEST_RUN && !check_together(saved, s) ? REQUEST_MISTAKE : request;
}
