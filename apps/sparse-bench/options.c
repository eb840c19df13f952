/* The command line of sparse-bench. */
#include <string.h>

#include "gnn/input.h"
#include "gnn_bench.h"

static const char *const kinds[] = {"spgemm", "spmm", "contract", "gnn"};
static const char *const semirings[] = {"plus-times", "plus-pair", "min-plus", "max-times", "or-and"};
static const char *const algorithms[] = {"auto", "hash", "dense", "warp"};
static const char *const reductions[] = {"sum", "mean", "max", "min"};
static const char *const label_kinds[] = {"random", "blocks", "power"}; /* by LABELS_ */
static const char *const features[] = {"f32", "f64", "f16", "bf16"}; /* as sp_dense_type counts */

const char *kind_name(bench_kind kind) { return kinds[kind]; }
const char *semiring_name(sp_semiring semiring) { return semirings[semiring]; }
const char *algorithm_name(sp_spgemm_algorithm algorithm) { return algorithms[algorithm]; }
const char *reduce_name(sp_reduce reduce) { return reductions[reduce]; }
const char *label_kind_name(unsigned kind) { return label_kinds[__builtin_ctz(kind)]; }
const char *features_name(sp_dense_type type) { return features[type]; }

static void print_presets(FILE *stream, bench_kind kind)
{
    int column = fprintf(stream, "                   presets of %s:", kinds[kind]);
    for (int i = 0; preset_at(kind, i); i++) {
        const char *name = preset_at(kind, i)->name;
        if (column + (int)strlen(name) > 100) column = fprintf(stream, "\n                     ");
        column += fprintf(stream, " %s", name);
    }
    fputs("\n", stream);
}

void bench_usage(FILE *stream)
{
    fputs("usage: sparse-bench spgemm FILE... [options]    times sparse matrix products beside other libraries\n"
          "       sparse-bench spmm FILE... [options]      times products of sparse and dense matrices\n"
          "       sparse-bench contract FILE... [options]  times quotient graphs\n"
          "       sparse-bench gnn FOLDER... [options]     times graph neural networks\n"
          "       sparse-bench spgemm | spmm | contract | gnn --generate KIND:ARGS ...\n"
          "\n"
          "  sparse-bench spgemm graph.mtx.gz                  its square, with every algorithm that is there\n"
          "  sparse-bench spgemm --generate rmat:16,8 --fp32   of a matrix made up\n"
          "  sparse-bench spgemm --generate paper --json x.json\n"
          "  sparse-bench spmm --generate rmat17 --width 32,128\n"
          "  sparse-bench contract --generate rmat20 --groups 1%,10%,50%\n"
          "  sparse-bench gnn --generate flickr --hidden 16 --keep --sample\n"
          "\n"
          "  FILE             Matrix Market, or edges FROM TO [WEIGHT] a line; .gz .zst\n"
          "  FOLDER           a graph with features, as gnn train takes it\n"
          "  --generate X     KIND:ARGS, a preset, or a set of presets; may be repeated\n"
          "                   kinds: rmat:SCALE,DEGREE uniform:ROWS,DEGREE[,COLUMNS] grid:WIDTH,HEIGHT,KEPT%\n"
          "                     fem2d:WIDTH,HEIGHT,BLOCK fem3d:WIDTH,HEIGHT,DEPTH,LEAST,MOST torus:SIZE,...\n"
          "                     web:ROWS,DEGREE,COMMON%,LOCAL%,LONGEST arrow:ROWS,DENSE,FILLED% cluster:ROWS,DEGREE\n"
          "                     powerlaw:ROWS,DEGREE,LONGEST,EXPONENT%,FOLLOWING% molecules:ROWS,ATOMS\n"
          "                     mycielski:ORDER stencil:WIDTH,HEIGHT,DEPTH,POINTS band:ROWS,HALF,FILLED%\n"
          "                     community:ROWS,DEGREE,LONGEST,EXPONENT%,SIZE,INSIDE%,SHUFFLED ...\n"
          "                     KIND:ARGS/shuffled numbers at random, /sorted by degree; man sparse-bench has all\n",
          stream);
    for (int kind = BENCH_SPGEMM; kind <= BENCH_GNN; kind++) print_presets(stream, (bench_kind)kind);
    fputs("                   sets: paper (ten large ones, nine of spmm, three of contract, two of gnn), small;\n"
          "                     of spmm also accel-gcn and bikd, with the shapes of these papers' graphs;\n"
          "                     survey: all families of matrices, by which changes are judged (bench/survey.sh)\n"
          "  --seed N[,M]     of generated matrices; of two, every other matrix has the second [4]\n"
          "  --fp64 --fp32    values [spgemm: fp64, others: fp32]\n"
          "  --device NAME    auto, cpu, cuda, cuda:N [auto]\n"
          "  --threads N      [all]\n"
          "  --memory SIZE    working memory, e.g. 8G [what is free]\n"
          "\n"
          "spgemm:\n"
          "  --aat --ata      A times its transpose; its transpose times A\n"
          "  --times FILE     A times this matrix; --times-generated X: times a generated one\n"
          "  --semiring NAME  plus-times, plus-pair, min-plus, max-times, or-and [plus-times]\n"
          "  --algorithm NAME auto, hash, dense, warp [auto]\n"
          "  --aia            the hash algorithm with and without the stage that gathers ranges (CUDA)\n"
          "  --plan           also the numeric phase alone, the pattern being known\n"
          "\n"
          "spmm:\n"
          "  --width N,...    columns of the dense matrix [16,32,64,96,128,256,384; those of bikd: the paper's]\n"
          "  --reduce NAME    sum, mean, max, min [sum]\n"
          "  --features TYPE  of the dense matrix: f32, f16, bf16 [f32; f64 with --fp64]\n"
          "  --result TYPE    of the product: f32 or that of the features [f32; f64 with --fp64]\n"
          "  --host MEMORY    the dense matrices lie in host memory, pageable or pinned (CUDA); no peers\n"
          "  --ablation LIST  also without combined warps (warps), with each cut alone (partitions), with partitions\n"
          "                     of 1/4 to 8 second-level caches (sizes)\n"
          "\n"
          "contract:\n"
          "  --groups N,...   groups, or percent of the nodes [1%,10%,50%]\n"
          "  --labels LIST    random, blocks (runs of nodes), power (sizes by a power law) [random,blocks]\n"
          "  --aia            two products by the hash algorithm with and without the stage (CUDA)\n"
          "\n"
          "gnn:\n"
          "  --model LIST     gcn, sage, sage-max, gin, gat, none [gcn,sage]\n"
          "  --hidden N,...   columns between the two layers [16,256]\n"
          "  --maxk K,...     also with the K largest of each row in place of ReLU\n"
          "  --keep           also with A*X of the first layer kept from epoch to epoch\n"
          "  --half           also with 16-bit gathers\n"
          "  --order LIST     of the nodes of models, as gnn train takes it: auto, keep, community [auto]\n"
          "  --aggregate      products with the K largest of each row alone, in several ways\n"
          "  --sample         bulk sampling\n"
          "  --export FOLDER  no times: weights, logits and gradients of one pass, for other libraries\n"
          "  --features N     of graphs made by KIND:ARGS [100]\n"
          "  --classes N      [10]\n"
          "\n"
          "  --repeat N       samples, of which the median counts, after one to warm up [10]\n"
          "  --limit SECONDS  for each candidate; then fewer samples do [60]\n"
          "  --peers LIST     cusparse, graphblas, cub (of contract), none [those that fit the device]\n"
          "  --no-check       do not compare results\n"
          "  --json FILE      everything that was measured\n"
          "  --version -h --help\n"
          "\n"
          "Exit status: 0; 1 if a file could not be read, a product failed or was wrong; 2 for a mistake on the\n"
          "command line.\n", stream);
}

#define mistake(...) (usage_mistake("sparse-bench", __VA_ARGS__), REQUEST_MISTAKE)

/* The index of `text` among `count` words, or -1. */
static int read_word(const char *text, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) return i;
    return -1;
}

static bool add_source(bench_options *o, source added)
{
    if (o->source_count == MAX_SOURCES) return false;
    o->sources[o->source_count++] = added;
    return true;
}

/* A preset by its name, or a specification as it stands; the library reads it. */
static source generated(const bench_options *o, const char *text)
{
    const source *preset = preset_named(o->kind, text);
    return preset ? *preset : (source){.name = text, .spec = text};
}

static bench_request parse_generate(bench_options *o, const char *value)
{
    if (!preset_of_set(o->kind, value, 0))
        return add_source(o, generated(o, value)) ? REQUEST_BENCH : mistake("more than %d matrices", MAX_SOURCES);
    for (int i = 0; preset_of_set(o->kind, value, i); i++)
        if (!add_source(o, *preset_of_set(o->kind, value, i))) return mistake("more than %d matrices", MAX_SOURCES);
    return REQUEST_BENCH;
}

static bench_request parse_peers(bench_options *o, const char *value)
{
    static const char *const names[] = {"none", "cusparse", "graphblas", "cub"};
    static const unsigned bits[] = {0, PEER_CUSPARSE, PEER_GRAPHBLAS, PEER_CUB};
    const bool contract = o->kind == BENCH_CONTRACT;
    char list[64];
    if (snprintf(list, sizeof list, "%s", value) >= (int)sizeof list) list[0] = '\0'; /* then it is no name either */
    o->peers = 0;
    for (char *rest = list, *word; (word = strsep(&rest, ","));) {
        const int chosen = read_word(word, names, contract ? 4 : 3);
        if (chosen < 0)
            return mistake("--peers takes cusparse, graphblas%s or none (got \"%.40s\")", contract ? ", cub" : "",
                           value);
        o->peers |= bits[chosen];
    }
    return REQUEST_BENCH;
}

static bench_request parse_count(const char *option, const char *value, int64_t low, int64_t high, int *number)
{
    int64_t read;
    if (!read_integer(value, &read) || read < low || read > high)
        return mistake("%s takes a whole number from %lld to %lld (got \"%.40s\")", option, (long long)low,
                       (long long)high, value);
    *number = (int)read;
    return REQUEST_BENCH;
}

static bench_request parse_numbers(const char *option, const char *value, int64_t low, int64_t high, int most,
                                   int64_t *numbers, int *count)
{
    char list[200];
    if (snprintf(list, sizeof list, "%s", value) >= (int)sizeof list) list[0] = '\0';
    *count = 0;
    for (char *rest = list, *word; (word = strsep(&rest, ","));) {
        int64_t number;
        if (*count == most || !read_integer(word, &number) || number < low || number > high)
            return mistake("%s takes up to %d whole numbers from %lld to %lld (got \"%.40s\")", option, most,
                           (long long)low, (long long)high, value);
        numbers[(*count)++] = number;
    }
    return REQUEST_BENCH;
}

static bench_request parse_models(bench_options *o, const char *value)
{
    char list[64];
    if (snprintf(list, sizeof list, "%s", value) >= (int)sizeof list) list[0] = '\0';
    o->models = 0;
    for (char *rest = list, *word; (word = strsep(&rest, ","));) {
        int chosen = GNN_GCN;
        if (strcmp(word, "none") == 0) continue;
        while (chosen <= GNN_GAT && strcmp(word, layer_name((gnn_layer)chosen)) != 0) chosen++;
        if (chosen > GNN_GAT)
            return mistake("--model takes gcn, sage, sage-max, gin, gat or none (got \"%.40s\")", value);
        o->models |= 1u << chosen;
    }
    return REQUEST_BENCH;
}

static bench_request parse_groups(bench_options *o, const char *value)
{
    char list[200];
    if (snprintf(list, sizeof list, "%s", value) >= (int)sizeof list) list[0] = '\0';
    o->grouping_count = 0;
    for (char *rest = list, *word; (word = strsep(&rest, ","));) {
        char *sign = strchr(word, '%');
        const bool percent = sign && sign[1] == '\0';
        grouping g = {.percent = percent};
        int64_t whole;
        if (percent) *sign = '\0';
        bool good = percent ? read_number(word, &g.amount) && g.amount > 0 && g.amount <= 100
                            : read_integer(word, &whole) && whole > 0 && whole <= INT32_MAX;
        if (good && !percent) g.amount = (double)whole;
        if (!good || o->grouping_count == MAX_GROUPINGS)
            return mistake("--groups takes up to %d whole numbers from 1, or percents up to 100%% (got \"%.40s\")",
                           MAX_GROUPINGS, value);
        o->groupings[o->grouping_count++] = g;
    }
    return REQUEST_BENCH;
}

/* A list of words as bits, that of the first name being 1; 0: another word is among them. */
static unsigned read_words(const char *value, const char *const *names, int count)
{
    unsigned bits = 0;
    char list[64];
    if (snprintf(list, sizeof list, "%s", value) >= (int)sizeof list) return 0;
    for (char *rest = list, *word; (word = strsep(&rest, ","));) {
        const int chosen = read_word(word, names, count);
        if (chosen < 0) return 0;
        bits |= 1u << chosen;
    }
    return bits;
}

static bench_request parse_labels(bench_options *o, const char *value)
{
    o->labels = read_words(value, label_kinds, LABEL_KINDS);
    if (!o->labels) return mistake("--labels takes random, blocks and power (got \"%.40s\")", value);
    return REQUEST_BENCH;
}

static bench_request parse_orders(bench_options *o, const char *value)
{
    static const char *const names[] = {"auto", "keep", "community"}; /* by gnn_order */
    o->orders = read_words(value, names, 3);
    if (!o->orders) return mistake("--order takes auto, keep or community, or several (got \"%.40s\")", value);
    return REQUEST_BENCH;
}

static bench_request parse_ablation(bench_options *o, const char *value)
{
    static const char *const names[] = {"warps", "partitions", "sizes"}; /* by ABLATE_ */
    o->ablation = read_words(value, names, 3);
    if (!o->ablation) return mistake("--ablation takes warps, partitions and sizes (got \"%.40s\")", value);
    return REQUEST_BENCH;
}

static bench_request parse_valued(bench_options *o, const char *option, const char *value)
{
    int chosen;
    if (strcmp(option, "--generate") == 0) return parse_generate(o, value);
    if (strcmp(option, "--peers") == 0) return parse_peers(o, value);
    if (strcmp(option, "--width") == 0 || strcmp(option, "--hidden") == 0) {
        o->widths_given = true;
        return parse_numbers(option, value, 1, 1 << 20, MAX_WIDTHS, o->widths, &o->width_count);
    }
    if (strcmp(option, "--ablation") == 0) return parse_ablation(o, value);
    if (strcmp(option, "--maxk") == 0)
        return parse_numbers(option, value, 1, 65536, MAX_MAXK, o->maxk, &o->maxk_count);
    if (strcmp(option, "--model") == 0) return parse_models(o, value);
    if (strcmp(option, "--order") == 0) return parse_orders(o, value);
    if (o->kind == BENCH_GNN && strcmp(option, "--features") == 0)
        return parse_numbers(option, value, 1, 1 << 20, 1, &o->feature_count, &(int){0});
    if (strcmp(option, "--classes") == 0)
        return parse_numbers(option, value, 1, 1 << 20, 1, &o->class_count, &(int){0});
    if (strcmp(option, "--groups") == 0) return parse_groups(o, value);
    if (strcmp(option, "--labels") == 0) return parse_labels(o, value);
    if (strcmp(option, "--threads") == 0) return parse_count(option, value, 1, 4096, &o->threads);
    if (strcmp(option, "--repeat") == 0) return parse_count(option, value, 1, MAX_SAMPLES, &o->repeat);
    if (strcmp(option, "--times") == 0) o->times = (source){.name = value};
    if (strcmp(option, "--times-generated") == 0) o->times = generated(o, value);
    if (strcmp(option, "--device") == 0) o->device = value;
    if (strcmp(option, "--json") == 0) o->json = value;
    if (strcmp(option, "--export") == 0) o->export = value;
    if (strcmp(option, "--memory") == 0 && !read_bytes(value, &o->memory))
        return mistake("--memory takes a size such as 8G or 500M (got \"%.40s\")", value);
    if (strcmp(option, "--limit") == 0 && !(read_number(value, &o->limit) && o->limit > 0))
        return mistake("--limit takes seconds above 0 (got \"%.40s\")", value);
    if (strcmp(option, "--seed") == 0)
        return parse_numbers(option, value, 0, INT64_MAX, 2, o->seeds, &o->seed_count);
    if (strcmp(option, "--semiring") == 0) {
        if ((chosen = read_word(value, semirings, 5)) < 0)
            return mistake("--semiring is plus-times, plus-pair, min-plus, max-times or or-and (got \"%.40s\")",
                           value);
        o->semiring = (sp_semiring)chosen;
    }
    if (strcmp(option, "--algorithm") == 0) {
        if ((chosen = read_word(value, algorithms, 4)) < 0)
            return mistake("--algorithm is auto, hash, dense or warp (got \"%.40s\")", value);
        o->algorithm = (sp_spgemm_algorithm)chosen;
    }
    if (strcmp(option, "--reduce") == 0) {
        if ((chosen = read_word(value, reductions, 4)) < 0)
            return mistake("--reduce is sum, mean, max or min (got \"%.40s\")", value);
        o->reduce = (sp_reduce)chosen;
    }
    if (strcmp(option, "--host") == 0) {
        static const char *const memories[] = {"pageable", "pinned"};
        if ((chosen = read_word(value, memories, 2)) < 0)
            return mistake("--host is pageable or pinned (got \"%.40s\")", value);
        o->host = (host_memory)(chosen + 1);
    }
    if (strcmp(option, "--features") == 0) {
        if ((chosen = read_word(value, features, 4)) < 0 || chosen == SP_DENSE_F64)
            return mistake("--features is f32, f16 or bf16 (got \"%.40s\")", value);
        o->features = (sp_dense_type)chosen;
    }
    if (strcmp(option, "--result") == 0) {
        if ((chosen = read_word(value, features, 4)) < 0 || chosen == SP_DENSE_F64)
            return mistake("--result is f32, f16 or bf16 (got \"%.40s\")", value);
        o->result = (sp_dense_type)chosen;
    }
    return REQUEST_BENCH;
}

static bool parse_flag(bench_options *o, const char *option)
{
    const struct { bench_kind kind; const char *name; bool *flag; } flags[] = {
        {BENCH_SPGEMM, "--aia", &o->aia}, {BENCH_SPGEMM, "--plan", &o->plan},
        {BENCH_CONTRACT, "--aia", &o->aia},
        {BENCH_GNN, "--keep", &o->keep}, {BENCH_GNN, "--half", &o->half}, {BENCH_GNN, "--aggregate", &o->aggregate},
        {BENCH_GNN, "--sample", &o->sample},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (o->kind == flags[i].kind && strcmp(option, flags[i].name) == 0) return *flags[i].flag = true;
    const bool transposed = strcmp(option, "--aat") == 0 || strcmp(option, "--ata") == 0;
    if (o->kind == BENCH_SPGEMM && transposed) {
        if (o->operation != OPERATION_SQUARE) return false;
        o->operation = strcmp(option, "--aat") == 0 ? OPERATION_AAT : OPERATION_ATA;
        return true;
    }
    if (strcmp(option, "--fp64") == 0) o->type = SP_F64;
    else if (strcmp(option, "--fp32") == 0) o->type = SP_F32;
    else if (strcmp(option, "--no-check") == 0) o->check = false;
    else return false;
    return true;
}

static bench_request check_device(const bench_options *o)
{
    sp_context *context;
    const sp_context_options options = {.device = o->device, .threads = 1};
    sp_status status = sp_context_create(&options, &context);
    sp_context_destroy(context);
    return status == SP_ERROR_ARGUMENT
               ? mistake("--device is auto, cpu, cuda or cuda:N (got \"%.40s\")", o->device)
               : REQUEST_BENCH;
}

/* The options that take a value, the common ones first. */
static bool takes_value(const bench_options *o, const char *option)
{
    static const char *const all[] = {"--generate", "--seed", "--device", "--threads", "--memory", "--repeat",
                                       "--limit", "--peers", "--json"};
    static const char *const own[][7] = {
        [BENCH_SPGEMM] = {"--times", "--times-generated", "--semiring", "--algorithm"},
        [BENCH_SPMM] = {"--width", "--reduce", "--features", "--result", "--host", "--ablation"},
        [BENCH_CONTRACT] = {"--groups", "--labels"},
        [BENCH_GNN] = {"--model", "--hidden", "--maxk", "--order", "--features", "--classes", "--export"},
    };
    int count = 0;
    while (count < (int)(sizeof *own / sizeof **own) && own[o->kind][count]) count++;
    return read_word(option, all, sizeof all / sizeof *all) >= 0 || read_word(option, own[o->kind], count) >= 0;
}

static bool keeps_inputs(const bench_options *o)
{
    for (int i = 0; i < o->source_count; i++)
        if (!o->sources[i].spec && (overwrites("sparse-bench", o->json, o->sources[i].name) ||
                                    gnn_input_overwritten("sparse-bench", o->sources[i].name, o->json)))
            return false;
    return o->times.spec || !overwrites("sparse-bench", o->json, o->times.name);
}

static bench_request check_options(bench_options *o)
{
    if (o->source_count == 0) return mistake("no matrix: name files or --generate one");
    if (o->kind == BENCH_GNN && o->type == SP_F64) return mistake("gnn is measured in fp32 alone");
    if (o->aggregate && o->maxk_count == 0) return mistake("--aggregate needs --maxk");
    if (o->times.name && o->operation != OPERATION_SQUARE)
        return mistake("--aat, --ata and --times exclude each other");
    if (o->times.name) o->operation = OPERATION_TIMES;
    for (int i = 0; i < o->source_count; i++) o->sources[i].seed = (uint64_t)o->seeds[i % o->seed_count];
    o->times.seed = (uint64_t)o->seeds[0];
    if (o->host) o->peers = 0;
    if (o->ablation && o->host) return mistake("--ablation and --host exclude each other");
    if (o->ablation && o->reduce != SP_REDUCE_SUM) return mistake("--ablation takes sums apart, not --reduce");
    if (o->kind == BENCH_SPMM && o->type == SP_F64) {
        if (o->features != SP_DENSE_F32 || o->result != SP_DENSE_F32)
            return mistake("--fp64 excludes --features and --result");
        o->features = o->result = SP_DENSE_F64;
    }
    if (o->result != o->features && o->result != SP_DENSE_F32)
        return mistake("--result is f32 or the type of the features, %s", features_name(o->features));
    return keeps_inputs(o) ? check_device(o) : REQUEST_MISTAKE;
}

bench_request bench_parse(int argc, char **argv, bench_options *o)
{
    *o = (bench_options){.type = SP_F64, .device = "auto", .repeat = 10, .limit = 60, .check = true, .seeds = {4}, .seed_count = 1,
                         .peers = PEER_DEFAULT, .widths = {16, 32, 64, 96, 128, 256, 384}, .width_count = 7,
                         .groupings = {{1, true}, {10, true}, {50, true}}, .grouping_count = 3,
                         .labels = LABELS_RANDOM | LABELS_BLOCKS, .feature_count = 100, .class_count = 10,
                         .models = 1u << GNN_GCN | 1u << GNN_SAGE, .orders = 1u << GNN_ORDER_AUTO};
    const int kind = read_word(argv[1], kinds, 4);
    if (kind < 0)
        return mistake("\"%.40s\" is nothing that can be measured, spgemm, spmm, contract and gnn are", argv[1]);
    o->kind = (bench_kind)kind;
    if (o->kind != BENCH_SPGEMM) o->type = SP_F32;
    if (o->kind == BENCH_GNN) o->width_count = 2, o->widths[1] = 256;
    bool files = false;
    for (int i = 2; i < argc; i++) {
        const char *option = argv[i];
        bench_request request = REQUEST_BENCH;
        if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) return REQUEST_HELP;
        if (strcmp(option, "--version") == 0) return REQUEST_VERSION;
        if (strcmp(option, "--") == 0 && !files) {
            files = true;
        } else if (files || option[0] != '-' || option[1] == '\0') {
            if (!add_source(o, (source){.name = option})) return mistake("more than %d matrices", MAX_SOURCES);
        } else if (takes_value(o, option)) {
            if (i + 1 == argc) return mistake("%s needs a value", option);
            request = parse_valued(o, option, argv[++i]);
        } else if (!parse_flag(o, option)) {
            return mistake("unknown option \"%.40s\"", option);
        }
        if (request != REQUEST_BENCH) return request;
    }
    return check_options(o);
}
