/* The command line of sparse-bench: tables of the options of all commands, and of each. */
#include "sparse-bench/options.h"

#include <string.h>
#include <time.h>

#include "common/device.h"
#include "gnn/input.h"

/* ---- words ---------------------------------------------------------------------------------------------- */

static const char *const kinds[] = {"spgemm", "spmm", "contract", "coarsen", "gnn", "survey", NULL};
static const char *const semirings[] = {"plus-times", "plus-pair", "min-plus", "max-times", "or-and", NULL};
static const char *const algorithms[] = {"auto", "hash", "dense", "warp", NULL};
static const char *const reductions[] = {"sum", "mean", "max", "min", NULL};
static const char *const memories[] = {"pageable", "pinned", NULL};                /* from HOST_PAGEABLE */
static const char *const ablations[] = {"warps", "partitions", "sizes", NULL};     /* by ABLATE_ */
static const char *const label_kinds[] = {"random", "blocks", "power", NULL};      /* by LABELS_ */
static const char *const methods[] = {"matching", "two-hop", "hec", "lp", NULL};     /* by contraction_method */
/* by PEER_ */
static const char *const peer_names[] = {"none", "cusparse", "graphblas", "published", "mkl", "scipy", "cub", NULL};
static const char *const product_peers[] = {"none", "cusparse", "graphblas", "published", "mkl", "scipy", NULL};
static const char *const dense_peers[] = {"none", "cusparse", "graphblas", "published", NULL};
static const char *const orders[] = {"auto", "keep", "community", NULL};           /* by gnn_order */
static const char *const models[] = {"gcn", "sage", "sage-max", "gin", "gat", "none", NULL}; /* by gnn_layer */
static const char *const types[] = {"f32", "f64", "f16", "bf16", NULL};            /* by sp_dense_type */
static const char *const narrow_types[] = {"f32", "f16", "bf16", NULL};

const char *kind_name(bench_kind kind) { return kinds[kind]; }
const char *semiring_name(sp_semiring semiring) { return semirings[semiring]; }
const char *algorithm_name(sp_spgemm_algorithm algorithm) { return algorithms[algorithm]; }
const char *reduce_name(sp_reduce reduce) { return reductions[reduce]; }
const char *label_kind_name(unsigned kind) { return label_kinds[__builtin_ctz(kind)]; }
const char *method_name(int method) { return methods[method]; }
const char *features_name(sp_dense_type type) { return types[type]; }
const char *layer_name(gnn_layer layer) { return models[layer]; }

#define mistake(...) usage_mistake("sparse-bench", __VA_ARGS__)

/* ---- what an option does with its value ------------------------------------------------------------------- */

static bool add_source(bench_options *o, source added)
{
    if (o->source_count == MAX_SOURCES) return mistake("more than %d matrices", MAX_SOURCES);
    o->sources[o->source_count++] = added;
    return true;
}

bool use_file(void *into, const char *text) { return add_source(into, (source){.name = text}); }

/* A preset by its name, or a specification as it stands, which the generator reads. */
static source generated(bench_kind kind, const char *text)
{
    const source *preset = preset_named(kind, text);
    return preset ? *preset : (source){.name = text, .spec = text};
}

bool use_generated(void *into, const char *value)
{
    bench_options *o = into;
    if (!preset_of_set(o->kind, value, 0)) return add_source(o, generated(o->kind, value));
    for (int i = 0; preset_of_set(o->kind, value, i); i++)
        if (!add_source(o, *preset_of_set(o->kind, value, i))) return false;
    return true;
}

static bool use_times(void *into, const char *value)
{
    ((spgemm_options *)into)->times = (source){.name = value};
    return true;
}

static bool use_times_generated(void *into, const char *value)
{
    ((spgemm_options *)into)->times = generated(BENCH_SPGEMM, value);
    return true;
}

static bool use_features(void *into, const char *value)
{
    ((spmm_options *)into)->features = (sp_dense_type)find_word(value, types);
    return true;
}

static bool use_result(void *into, const char *value)
{
    ((spmm_options *)into)->result = (sp_dense_type)find_word(value, types);
    return true;
}

/* 100 or 1%. */
static bool read_grouping(const char *item, int length, grouping *g)
{
    char text[32];
    int64_t whole;
    if (length <= 0 || length >= (int)sizeof text) return false;
    snprintf(text, sizeof text, "%.*s", length, item);
    g->percent = text[length - 1] == '%';
    if (g->percent) {
        text[length - 1] = '\0';
        return read_number(text, &g->amount) && g->amount > 0 && g->amount <= 100;
    }
    if (!read_integer(text, &whole) || whole < 1 || whole > INT32_MAX) return false;
    g->amount = (double)whole;
    return true;
}

static bool use_groups(void *into, const char *value)
{
    contract_bench_options *o = into;
    o->grouping_count = 0;
    for (const char *rest = value; rest;) {
        const int length = (int)strcspn(rest, ",");
        if (o->grouping_count == MAX_GROUPINGS || !read_grouping(rest, length, &o->groupings[o->grouping_count++]))
            return mistake("--groups takes up to %d whole numbers from 1, or percents up to 100%% (got \"%.40s\")",
                           MAX_GROUPINGS, value);
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    return true;
}

/* ---- the tables ------------------------------------------------------------------------------------------- */

#define AT(place) .field = offsetof(bench_options, place)
#define SPGEMM(place) .field = offsetof(spgemm_options, place)
#define SPMM(place) .field = offsetof(spmm_options, place)
#define CONTRACT(place) .field = offsetof(contract_bench_options, place)
#define COARSEN(place) .field = offsetof(coarsen_options, place)
#define GNN(place) .field = offsetof(gnn_options, place)
#define SURVEY(place) .field = offsetof(survey_options, place)

static const option_row source_rows[] = {
    {"FILE", .help = "Matrix Market, or edges FROM TO [WEIGHT] a line; .gz .zst", .kind = OPTION_OPERAND},
    {"FOLDER", .help = "a graph with features, as gnn train takes it", .kind = OPTION_OPERAND},
    {"--generate", "X", "KIND:ARGS, a preset, or a set of presets; may be repeated\n"
     "kinds: rmat:SCALE,DEGREE uniform:ROWS,DEGREE[,COLUMNS] grid:WIDTH,HEIGHT,KEPT%\n"
     "  fem2d:WIDTH,HEIGHT,BLOCK fem3d:WIDTH,HEIGHT,DEPTH,LEAST,MOST torus:SIZE,...\n"
     "  web:ROWS,DEGREE,COMMON%,LOCAL%,LONGEST arrow:ROWS,DENSE,FILLED% cluster:ROWS,DEGREE\n"
     "  powerlaw:ROWS,DEGREE,LONGEST,EXPONENT%,FOLLOWING% molecules:ROWS,ATOMS\n"
     "  mycielski:ORDER stencil:WIDTH,HEIGHT,DEPTH,POINTS band:ROWS,HALF,FILLED%\n"
     "  community:ROWS,DEGREE,LONGEST,EXPONENT%,SIZE,INSIDE%,SHUFFLED ...\n"
     "  KIND:ARGS/shuffled numbers at random, /sorted by degree; man sparse-bench has all\n"
     "sets: paper (ten large ones, nine of spmm, three of contract, two of gnn), small;\n"
     "  of spmm also accel-gcn and bikd, with the shapes of these papers' graphs;\n"
     "  survey: all families of matrices, by which changes are judged (bench/survey.sh)",
     OPTION_OWN, .then = use_generated},
    {"--seed", "N[,M]", "of generated matrices; of two, every other matrix has the second [4]", OPTION_COUNTS,
     AT(seeds), OPTION_FROM(0), .most = 2},
    {"--fp64", NULL, "values [spgemm: fp64, others: fp32]", OPTION_SET, AT(type), .low = SP_F64},
    {"--fp32", NULL, NULL, OPTION_SET, AT(type), .low = SP_F32, .beside = true},
    {"--device", "NAME", "auto, cpu, cuda, cuda:N [auto]", OPTION_DEVICE, AT(device)},
    {"--threads", "N", "[all]", OPTION_COUNT, AT(threads), OPTION_RANGE(1, 4096)},
    {"--memory", "SIZE", "working memory, e.g. 8G [what is free]", OPTION_BYTES, AT(memory), .beside = true},
};

static const option_row spgemm_rows[] = {
    {"spgemm", .kind = OPTION_HEADING},
    {"--aat", NULL, "A times its transpose", OPTION_FLAG, SPGEMM(aat)},
    {"--ata", NULL, "its transpose times A", OPTION_FLAG, SPGEMM(ata), .beside = true},
    {"--times", "FILE", "A times this matrix", OPTION_OWN, .then = use_times},
    {"--times-generated", "X", "a generated one", OPTION_OWN, .then = use_times_generated, .beside = true},
    {"--semiring", "NAME", "plus-times, plus-pair, min-plus, max-times, or-and [plus-times]", OPTION_WORD,
     AT(semiring), .words = semirings},
    {"--algorithm", "NAME", "auto, hash, dense, warp [auto]", OPTION_WORD, SPGEMM(algorithm), .words = algorithms},
    {"--aia", NULL, "the hash algorithm with and without the stage that gathers ranges (CUDA)", OPTION_FLAG,
     SPGEMM(aia)},
    {"--plan", NULL, "also the numeric phase alone, with the pattern known", OPTION_FLAG, SPGEMM(plan)},
};

static const option_row spmm_rows[] = {
    {"spmm", .kind = OPTION_HEADING},
    {"--width", "N,...", "columns of the dense matrix [16,32,64,96,128,256,384; those of bikd: the paper's]",
     OPTION_COUNTS, SPMM(widths), OPTION_RANGE(1, 1 << 20), .most = MAX_WIDTHS},
    {"--reduce", "NAME", "sum, mean, max, min [sum]", OPTION_WORD, SPMM(reduce), .words = reductions},
    {"--features", "TYPE", "of the dense matrix: f32, f16, bf16 [f32; f64 with --fp64]", OPTION_WORD, SPMM(features),
     .words = narrow_types, .then = use_features},
    {"--result", "TYPE", "of the product: f32 or that of the features [f32; f64 with --fp64]", OPTION_WORD,
     SPMM(result), .words = narrow_types, .then = use_result},
    {"--transpose", NULL, "our plans multiply with the transpose; peers are given that as a matrix", OPTION_FLAG,
     SPMM(transpose)},
    {"--host", "MEMORY", "the dense matrices lie in host memory, pageable or pinned (CUDA); no peers", OPTION_WORD,
     SPMM(host), .words = memories, .low = HOST_PAGEABLE},
    {"--ablation", "LIST", "also without combined warps (warps), with each cut alone (partitions), with partitions\n"
     "of 1/4 to 8 second-level caches (sizes)", OPTION_WORDS, SPMM(ablation), .words = ablations},
};

static const option_row contract_rows[] = {
    {"contract", .kind = OPTION_HEADING},
    {"--groups", "N,...", "groups, or percent of the nodes [1%,10%,50%]", OPTION_OWN, .then = use_groups},
    {"--labels", "LIST", "random, blocks (runs of nodes), power (sizes by a power law) [random,blocks]", OPTION_WORDS,
     CONTRACT(labels), .words = label_kinds},
    {"--aia", NULL, "two products by the hash algorithm with and without the stage (CUDA)", OPTION_FLAG,
     CONTRACT(aia)},
};

static const option_row coarsen_rows[] = {
    {"coarsen", .kind = OPTION_HEADING},
    {"--method", "LIST", "matching, two-hop, hec, lp [all]", OPTION_WORDS, COARSEN(methods), .words = methods},
    {"--most", "N", "nodes of a group [no bound]", OPTION_COUNT, COARSEN(most), OPTION_RANGE(1, INT32_MAX),
     .beside = true},
};

static const option_row gnn_rows[] = {
    {"gnn", .kind = OPTION_HEADING},
    {"--model", "LIST", "gcn, sage, sage-max, gin, gat, none [gcn,sage]", OPTION_WORDS, GNN(models), .words = models},
    {"--hidden", "N,...", "columns between the two layers, of all 8 heads of gat [16,256]", OPTION_COUNTS, GNN(widths),
     OPTION_RANGE(1, 1 << 20), .most = MAX_WIDTHS},
    {"--maxk", "K,...", "also with the K largest of each row in place of ReLU", OPTION_COUNTS, GNN(maxk),
     OPTION_RANGE(1, 65536), .most = MAX_MAXK},
    {"--keep", NULL, "also with A*X of the first layer kept from epoch to epoch", OPTION_FLAG, GNN(keep)},
    {"--half", NULL, "also with numbers between operations in bf16", OPTION_FLAG, GNN(half)},
    {"--order", "LIST", "of the nodes of models, as gnn train takes it: auto, keep, community [auto]", OPTION_WORDS,
     GNN(orders), .words = orders},
    {"--aggregate", NULL, "products with the K largest of each row alone, in several ways", OPTION_FLAG,
     GNN(aggregate)},
    {"--sample", NULL, "bulk sampling", OPTION_FLAG, GNN(sample)},
    {"--minibatches", NULL, "epochs of sage by sampled minibatches, with their phases", OPTION_FLAG, GNN(minibatches),
     .beside = true},
    {"--export", "FOLDER", "no times: weights, logits and gradients of one pass, for other libraries", OPTION_TEXT,
     GNN(export)},
    {"--features", "N", "of graphs made by KIND:ARGS [100]", OPTION_COUNT, GNN(feature_count),
     OPTION_RANGE(1, 1 << 20)},
    {"--classes", "N", "[10]", OPTION_COUNT, GNN(class_count), OPTION_RANGE(1, 1 << 20), .beside = true},
};

static const option_row survey_rows[] = {
    {"survey", .kind = OPTION_HEADING},
    {"--parts", "LIST", "spgemm-f64, spgemm-f32, spmm-f32, spmm-f16, spmm-bf16, spmm-transposed-f32,\n"
     "contract-f64, contract-f32 [all]", OPTION_WORDS, SURVEY(parts), .words = survey_parts},
    {"--width", "N,...", "of spmm [25 of them, from 1 to 1433]", OPTION_COUNTS, SURVEY(widths),
     OPTION_RANGE(1, 1 << 20), .most = MAX_WIDTHS},
    {"--out", "FOLDER", "for PART.json, everything that was measured [.]", OPTION_TEXT, SURVEY(out)},
};

static const option_row measurement_rows[] = {
    {"", .kind = OPTION_HEADING},
    {"--repeat", "N", "samples after one to warm up; their median counts [10]", OPTION_COUNT, AT(repeat),
     OPTION_RANGE(1, MAX_SAMPLES)},
    {"--limit", "SECONDS", "for each candidate; then fewer samples do [60]", OPTION_NUMBER, AT(limit), OPTION_ABOVE(0)},
    {"--no-check", NULL, "do not compare results", OPTION_FLAG, AT(no_check)},
    {"--json", "FILE", "everything that was measured", OPTION_TEXT, AT(json), .once = true},
    {"--version", .kind = OPTION_VERSION},
    {"-h", .kind = OPTION_HELP, .beside = true},
    {"--help", .kind = OPTION_HELP, .beside = true},
};

#define PEERS_ROW(list) "--peers", "LIST", "cusparse, graphblas, mkl, published (what BENCH_PEERS has for\n" \
                        "spgemm and spmm), cub (contract), scipy (the script that BENCH_SCIPY names,\n" \
                        "bench/scipy_peer.py), none [those that fit the device; scipy if it is named]", \
                        OPTION_WORDS, AT(peers), .words = list
static const option_row product_peer_rows[] = {{PEERS_ROW(product_peers)}};
static const option_row dense_peer_rows[] = {{PEERS_ROW(dense_peers)}};
static const option_row peer_rows[] = {{PEERS_ROW(peer_names)}};

static command_line command_of(bench_kind kind)
{
    static const option_list own[] = {OPTION_LIST(spgemm_rows), OPTION_LIST(spmm_rows), OPTION_LIST(contract_rows),
                                      OPTION_LIST(coarsen_rows), OPTION_LIST(gnn_rows), OPTION_LIST(survey_rows)};
    static const option_list peers[] = {OPTION_LIST(product_peer_rows), OPTION_LIST(product_peer_rows),
                                        OPTION_LIST(peer_rows), {NULL, 0}, OPTION_LIST(dense_peer_rows),
                                        OPTION_LIST(peer_rows)};
    return (command_line){"sparse-bench", {OPTION_LIST(source_rows), own[kind], OPTION_LIST(measurement_rows),
                                           peers[kind]}, use_file, .mcl_syntax = false};
}

/* ---- help ------------------------------------------------------------------------------------------------- */

static void print_presets(FILE *stream, bench_kind kind)
{
    if (!preset_at(kind, 0)) return;
    int column = fprintf(stream, "  presets of %s:", kinds[kind]);
    for (int i = 0; preset_at(kind, i); i++) {
        const char *name = preset_at(kind, i)->name;
        if (column + (int)strlen(name) > 100) column = fprintf(stream, "\n   ");
        column += fprintf(stream, " %s", name);
    }
    fputs("\n", stream);
}

void bench_command_usage(FILE *stream, bench_kind kind)
{
    const command_line line = command_of(kind);
    fprintf(stream, "usage: sparse-bench %s %s [options]\n\n", kinds[kind],
            kind == BENCH_GNN ? "FOLDER..." : kind == BENCH_SURVEY ? "[FILE...]" : "FILE...");
    options_help(&line, stream);
    fputs("\n", stream);
    print_presets(stream, kind);
}

void bench_usage(FILE *stream)
{
    static const command_line all = {"sparse-bench", {OPTION_LIST(source_rows), OPTION_LIST(spgemm_rows),
                                                      OPTION_LIST(spmm_rows), OPTION_LIST(contract_rows),
                                                      OPTION_LIST(coarsen_rows), OPTION_LIST(gnn_rows),
                                                      OPTION_LIST(survey_rows), OPTION_LIST(measurement_rows),
                                                      OPTION_LIST(peer_rows)}, use_file, .mcl_syntax = false};
    fputs("usage: sparse-bench spgemm FILE... [options]    times sparse matrix products beside other libraries\n"
          "       sparse-bench spmm FILE... [options]      times products of sparse and dense matrices\n"
          "       sparse-bench contract FILE... [options]  times quotient graphs\n"
          "       sparse-bench coarsen FILE... [options]   times levels of coarsening\n"
          "       sparse-bench gnn FOLDER... [options]     times graph neural networks\n"
          "       sparse-bench survey [FILE...] [options]  all families of matrices, operation by operation\n"
          "       sparse-bench spgemm | spmm | contract | coarsen | gnn --generate KIND:ARGS ...\n"
          "\n"
          "  sparse-bench spgemm graph.mtx.gz                  its square, with every algorithm that is there\n"
          "  sparse-bench spgemm --generate rmat:16,8 --fp32   of a generated matrix\n"
          "  sparse-bench spgemm --generate paper --json x.json\n"
          "  sparse-bench spmm --generate rmat17 --width 32,128\n"
          "  sparse-bench contract --generate rmat20 --groups 1%,10%,50%\n"
          "  sparse-bench coarsen --generate stencil:160,160,160,27 --method two-hop,lp\n"
          "  sparse-bench gnn --generate flickr --hidden 16 --keep --sample\n"
          "  sparse-bench survey --parts spmm-f16,spmm-bf16 --out results\n"
          "\n", stream);
    options_help(&all, stream);
    fputs("\n", stream);
    for (int kind = BENCH_SPGEMM; kind <= BENCH_GNN; kind++) print_presets(stream, (bench_kind)kind);
    fputs("\n"
          "Exit status: 0; 1 if a file could not be read, a product failed or was wrong; 2 for a mistake on the\n"
          "command line.\n", stream);
}

/* ---- what no single option can see ------------------------------------------------------------------------ */

static bool check_spgemm(spgemm_options *o)
{
    if (o->aat + o->ata + (o->times.name != NULL) > 1) return mistake("--aat, --ata and --times exclude each other");
    o->operation = o->aat ? OPERATION_AAT : o->ata ? OPERATION_ATA : o->times.name ? OPERATION_TIMES : OPERATION_SQUARE;
    o->times.seed = (uint64_t)o->common.seeds.number[0];
    return o->times.spec || !overwrites("sparse-bench", o->common.json, o->times.name);
}

static bool check_spmm(spmm_options *o)
{
    o->widths_given = o->widths.count > 0;
    if (!o->widths_given) o->widths = (option_counts){{16, 32, 64, 96, 128, 256, 384}, 7};
    if (o->host) o->common.peers = PEER_NONE;
    if (o->ablation && o->host) return mistake("--ablation and --host exclude each other");
    if (o->transpose && o->ablation) return mistake("--ablation takes products without --transpose apart");
    if (o->ablation && o->reduce != SP_REDUCE_SUM) return mistake("--ablation takes sums apart, not --reduce");
    if (o->common.type == SP_F64) {
        if (o->features != SP_DENSE_F32 || o->result != SP_DENSE_F32)
            return mistake("--fp64 excludes --features and --result");
        o->features = o->result = SP_DENSE_F64;
    }
    return o->result == o->features || o->result == SP_DENSE_F32 ||
           mistake("--result is f32 or the type of the features, %s", features_name(o->features));
}

static bool check_gnn(gnn_options *o)
{
    o->models &= (1u << (GNN_GAT + 1)) - 1; /* without "none" */
    if (o->common.type == SP_F64) return mistake("gnn is measured in fp32 alone");
    for (int w = 0; w < o->widths.count && o->models >> GNN_GAT & 1; w++)
        if (o->widths.number[w] % GNN_BENCH_HEADS != 0)
            return mistake("--hidden %lld: with gat give a multiple of its %d heads, which share the columns",
                           (long long)o->widths.number[w], GNN_BENCH_HEADS);
    return !o->aggregate || o->maxk.count > 0 || mistake("--aggregate needs --maxk");
}

/* Of a survey, unless an option says one. */
static const sp_value_type NO_TYPE = (sp_value_type)-1;

/* Each part that is asked for must be one that could run. */
static bool check_survey(const survey_options *o)
{
    static any_options part;
    char json[4096];
    if (o->common.json) return mistake("--json is for one part alone; name a folder by --out");
    if (o->common.type != NO_TYPE) return mistake("parts of a survey name their types: --parts spgemm-f32,...");
    for (int i = 0; survey_parts[i]; i++)
        if (o->parts >> i & 1 && !survey_part(o, i, &part, json, sizeof json)) return false;
    return true;
}

bool bench_check(any_options *any)
{
    bench_options *o = &any->common;
    if (o->kind == BENCH_SURVEY) return check_survey(&any->survey);
    if (o->source_count == 0) return mistake("no matrix: name files or --generate one");
    for (int i = 0; i < o->source_count; i++) o->sources[i].seed = (uint64_t)o->seeds.number[i % o->seeds.count];
    for (int i = 0; i < o->source_count; i++)
        if (!o->sources[i].spec && (overwrites("sparse-bench", o->json, o->sources[i].name) ||
                                    gnn_input_overwritten("sparse-bench", o->sources[i].name, o->json)))
            return false;
    return o->kind == BENCH_SPGEMM ? check_spgemm(&any->spgemm)
           : o->kind == BENCH_SPMM ? check_spmm(&any->spmm)
           : o->kind == BENCH_GNN  ? check_gnn(&any->gnn)
                                   : true;
}

void bench_defaults(bench_kind kind, any_options *any)
{
    bench_options *o = &any->common;
    memset(any, 0, sizeof *any);
    if (kind == BENCH_CONTRACT) {
        any->contract.groupings[0] = (grouping){1, true};
        any->contract.groupings[1] = (grouping){10, true};
        any->contract.groupings[2] = (grouping){50, true};
        any->contract.grouping_count = 3;
        any->contract.labels = LABELS_RANDOM | LABELS_BLOCKS;
    } else if (kind == BENCH_COARSEN) {
        any->coarsen.methods = ~0u;
    } else if (kind == BENCH_GNN) {
        any->gnn = (gnn_options){.widths = {{16, 256}, 2}, .feature_count = 100, .class_count = 10,
                                 .models = 1u << GNN_GCN | 1u << GNN_SAGE, .orders = 1u << GNN_ORDER_AUTO};
    } else if (kind == BENCH_SURVEY) {
        any->survey = (survey_options){.parts = (1u << SURVEY_PARTS) - 1, .out = ".",
                                       .widths = {{1, 2, 3, 4, 7, 8, 16, 20, 32, 33, 48, 50, 64, 96, 100, 128, 200,
                                                   256, 300, 500, 512, 602, 1000, 1024, 1433}, 25}};
    }
    o->kind = kind;
    o->type = kind == BENCH_SPGEMM ? SP_F64 : SP_F32;
    o->seeds = (option_counts){{4}, 1};
    o->device = "auto";
    o->repeat = 10;
    o->limit = 60;
    if (kind != BENCH_SURVEY) return;
    o->type = NO_TYPE;
    o->seeds = (option_counts){{4, (int64_t)time(NULL)}, 2}; /* half of the matrices are new */
    o->repeat = 5;
    o->limit = 1;
}

options_outcome bench_parse(int argc, char **argv, any_options *any)
{
    const int kind = find_word(argv[1], kinds);
    if (kind < 0) {
        mistake("\"%.40s\" is nothing that can be measured, spgemm, spmm, contract, coarsen, gnn and survey are",
                argv[1]);
        return OPTIONS_MISTAKE;
    }
    bench_defaults((bench_kind)kind, any);
    const command_line line = command_of((bench_kind)kind);
    const options_outcome outcome = options_parse(&line, argc - 1, argv + 1, any);
    return outcome == OPTIONS_RUN && !bench_check(any) ? OPTIONS_MISTAKE : outcome;
}
