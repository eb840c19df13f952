/* The options of mcl-gpu: mcl 22-282's, in one table, and our own.
 *
 * A row says how an option is read and where its value goes. As in mcl, single-dash options take a value and
 * double-dash options are flags, and -x VALUE may be written --x=VALUE; we take either number of dashes. Options act
 * in the order in which they stand (-scheme 2 -P 500 keeps 500).
 */
#include "options.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/device.h"
#include "common/tool.h"

#define mistake(...) usage_mistake("mcl-gpu", __VA_ARGS__)

/* ---- options with their own reading -------------------------------------------------------------------- */

bool settings_judge(const settings *s)
{
    return s->inflation_count > 1 || s->quality || s->report || s->table || s->graphml;
}

/* From coarse to fine: mcl's manual names 1.4, 2, 4 and 6 as a start. */
static const char sweep[] = "1.4,2,2.8,4,6";

/* F or F,F,...: each above 0 and at most 30. Or "sweep". One above 30 is left out with a warning, as mcl does; so is
 * the option, if no other is in it. */
static bool parse_inflations(void *into, const char *value)
{
    settings *s = into;
    double inflation, kept[MAX_INFLATIONS];
    int count = 0;
    if (strcmp(value, "sweep") == 0) value = sweep;
    for (const char *next = value;;) {
        const char *comma = strchr(next, ',');
        size_t length = comma ? (size_t)(comma - next) : strlen(next);
        char item[64];
        if (length >= sizeof item) return mistake("-I takes numbers (got \"%.40s\")", value);
        memcpy(item, next, length);
        item[length] = '\0';
        if (!read_number(item, &inflation) || inflation <= 0)
            return mistake("-I takes numbers above 0 and at most 30, separated by commas (got \"%.40s\")", value);
        if (inflation > 30) s->steep = true;
        else if (count == MAX_INFLATIONS) return mistake("-I takes at most %d inflations", MAX_INFLATIONS);
        else kept[count++] = inflation;
        if (!comma) break;
        next = comma + 1;
    }
    if (count == 0) return true;
    for (int i = 0; i < count; i++) {
        if (count > 1 && kept[i] <= 1)
            return mistake("-I %.40s: with inflation %g walks never settle in clusters; in a list take more than 1 "
                           "(decimals have a point: 1.4)", value, kept[i]);
        s->inflations[i] = kept[i];
    }
    s->inflation_count = count;
    s->mcl.inflation = s->inflations[0];
    return true;
}

/* ---- what an option does once its value is stored -------------------------------------------------------- */

static bool use_scheme(void *into, const char *value)
{
    settings *s = into;
    (void)value;
    s->prune_given = true;
    return mcl_options_scheme(NULL, &s->mcl, (int)s->preset) == SP_OK;
}

void settings_skid(mcl_options *options, int skid)
{
    static const int64_t presets[PRESETS][4] = {{100, 50, 70, 30},   {200, 60, 100, 35},  {300, 70, 100, 40},
                                                {400, 80, 100, 45},  {600, 100, 150, 50}, {800, 150, 200, 55},
                                                {1000, 200, 250, 60}};
    const int64_t *preset = presets[skid - 1];
    options->prune_number = preset[0];
    options->prune_cutoff = 0;
    options->select = preset[1];
    options->recover = preset[2];
    options->recover_percent = (double)preset[3];
}

static bool use_skid(void *into, const char *value)
{
    settings *s = into;
    (void)value;
    s->prune_given = true;
    settings_skid(&s->mcl, (int)s->preset);
    return true;
}

/* -resource K is -S K, -R K and, unless a prune number was given before, -P 10K. */
static bool use_resource(void *into, const char *value)
{
    settings *s = into;
    (void)value;
    s->mcl.recover = s->mcl.select;
    if (!s->prune_given) s->mcl.prune_number = 10 * s->mcl.select;
    return true;
}

static bool use_prune_number(void *into, const char *value)
{
    settings *s = into;
    (void)value;
    s->mcl.prune_cutoff = 0;
    return s->prune_given = true;
}

/* mcl keeps the whole part of the inverse of the cutoff as f32: -p 0.0003 is -P 3333, -p 0.05 is -P 19. It takes the
 * default if the inverse is not a 32-bit number, and 0 means no pruning. */
static bool use_prune_cutoff(void *into, const char *value)
{
    settings *s = into;
    const double cutoff = s->mcl.prune_cutoff, number = cutoff > 0 ? 1 / (double)(float)cutoff : 0;
    s->mcl.prune_number = number <= INT32_MAX ? (int64_t)number : 10000;
    return use_prune_number(s, value);
}

/* As in mcl an f32, where -pi is an f64. */
static bool use_start_inflation(void *into, const char *value)
{
    settings *s = into;
    s->mcl.pre_inflation = (double)(float)s->mcl.pre_inflation;
    s->mcl.discard_loops = false;
    return s->mcl.pre_inflation > 0 || mistake("-if takes a number above 0 (got \"%.40s\")", value);
}

static bool note_loop_factor(void *into, const char *value)
{
    settings *s = into;
    (void)value;
    return s->loops_scaled = true;
}

/* -dae sets the power, wherever it stands. */
static bool use_degrees(void *into, const char *value)
{
    settings *s = into;
    (void)value;
    if (s->mcl.degree_power == 0) s->mcl.degree_power = 1;
    return true;
}

static bool use_format(settings *s, io_format format)
{
    if (s->read.format != IO_AUTO && s->read.format != format)
        return mistake("only one of --abc, --sif, --etc, --blast can be given");
    s->read.format = format;
    return true;
}

static bool use_abc(void *into, const char *value) { return (void)value, use_format(into, IO_ABC); }
static bool use_sif(void *into, const char *value) { return (void)value, use_format(into, IO_SIF); }
static bool use_etc(void *into, const char *value) { return (void)value, use_format(into, IO_ETC); }
static bool use_blast(void *into, const char *value) { return (void)value, use_format(into, IO_BLAST); }

/* -dump takes a list; mcl passes over words that it does not know, we do not. */
static bool parse_dump(void *into, const char *value)
{
    settings *s = into;
    for (const char *next = value; *next;) {
        size_t length = strcspn(next, ",");
        if (length == 3 && strncmp(next, "ite", 3) == 0) s->dump_iterands = true;
        else if (length == 3 && strncmp(next, "cls", 3) == 0) s->dump_clusters = true;
        else return mistake("-dump offers ite and cls (got \"%.40s\")", value);
        next += length + (next[length] == ',');
    }
    return true;
}

/* I:J, J = 0 meaning without end, or "all". */
static bool parse_dump_interval(void *into, const char *value)
{
    settings *s = into;
    int used = 0;
    long long from, to;
    if (strcmp(value, "all") == 0) {
        s->dump_from = 0;
        s->dump_to = INT64_MAX;
        return true;
    }
    if (sscanf(value, "%lld:%lld%n", &from, &to, &used) != 2 || value[used] || from < 0 || to < 0)
        return mistake("-dump-interval is I:J or all (got \"%.40s\")", value);
    s->dump_from = from;
    s->dump_to = to == 0 ? INT64_MAX : to;
    return true;
}

/* mcl's -V all silences the whole log. -V with other words, and -v, do nothing that a log shows. */
static bool use_verbosity(void *into, const char *value)
{
    settings *s = into;
    if (strstr(value, "all")) s->quiet = true;
    return true;
}

/* -progress N of old scripts has no effect. */
static bool use_progress(void *into, const char *value)
{
    static const char *const words[] = {"auto", "plain", "none", NULL};
    settings *s = into;
    double number;
    if (read_number(value, &number)) return true;
    const int place = find_word(value, words);
    if (place < 0) return mistake("--progress takes auto, plain or none (got \"%.40s\")", value);
    s->progress = place;
    return true;
}

static bool be_quiet(void *into, const char *value)
{
    settings *s = into;
    (void)value;
    return s->quiet = true;
}

static bool ask_memory(void *into, const char *value)
{
    settings *s = into;
    (void)value;
    s->request = REQUEST_RAM;
    return true;
}

static bool check_report(void *into, const char *value)
{
    (void)into;
    if (is_kind(value, ".pdf"))
        return mistake("--report writes a page (.html) or JSON, no PDF: a browser prints the page (got \"%.40s\")",
                       value);
    return strcmp(value, "-") != 0 || mistake("--report needs a file name");
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static const char *const overlaps[] = {"cut", "keep", "split", NULL};
static const char *const orders[] = {"revsize", "size", "lex", "none", NULL}; /* mcl's size: the smallest first */
static const char *const mpi_read_words[] = {"auto", "whole", "parts", NULL}; /* as the enum */
static const char *const mpi_words[] = {"auto", "yes", "no", NULL}; /* as the enum */
static const char *const scores[] = {"bits", "evalue", "identity", NULL};

#define AT(place) .field = offsetof(settings, place)
#define ASK(which) OPTION_SET, AT(request), .low = (which)

static const option_row options[] = {
    {"Clustering", .kind = OPTION_HEADING},
    {"-I", "F[,F...]", "inflation, 0 < F <= 30 [2.0]; a list: a clustering each;\nsweep: 1.4,2,2.8,4,6", OPTION_OWN,
     .then = parse_inflations, .main = true},
    {"-i", "F", "inflation of the first -l iterations [2.0]", OPTION_NUMBER, AT(mcl.initial_inflation),
     OPTION_RANGE(0.1, 30)},
    {"-l", "N", "length of the initial run [0]", OPTION_COUNT, AT(mcl.initial_length), OPTION_FROM(0)},
    {"-L", "N", "length of the main run [10000]", OPTION_COUNT, AT(mcl.main_length), OPTION_FROM(0)},
    {"-pi", "F", "inflate the graph once before the process", OPTION_NUMBER, AT(mcl.pre_inflation), OPTION_ABOVE(0)},
    {"-if", "F", "the graph is an expanded one: -pi F and -discard-loops n", OPTION_NUMBER, AT(mcl.pre_inflation),
     OPTION_ABOVE(0), .then = use_start_inflation},
    {"-c", "F", "multiply the weights of loops by F [1.0]", OPTION_NUMBER, AT(mcl.loop_factor), OPTION_FROM(0),
     .then = note_loop_factor},
    {"-discard-loops", "y|n", "replace loops of the input by the largest weight of their node [y]", OPTION_YES_NO,
     AT(mcl.discard_loops)},
    {"--sum-loops", NULL, "loops as heavy as all arcs of their node together", OPTION_FLAG, AT(mcl.sum_loops)},
    {"--degree-adjust", NULL, "divide weights by the degrees of both nodes together", OPTION_OWN, .then = use_degrees},
    {"-dae", "F", "the same, by that sum to the power F", OPTION_NUMBER, AT(mcl.degree_power), OPTION_RANGE(-100, 100)},
    {"-overlap", "MODE", "cut, keep or split clusters that share nodes [cut]", OPTION_WORD, AT(mcl.overlap),
     .words = overlaps, .main = true},
    {"-force-connected", "y|n", "split clusters into their connected parts [n]", OPTION_YES_NO,
     AT(mcl.force_connected), .main = true},
    {"-check-connected", "y|n", "say whether the clusters are connected [n]", OPTION_YES_NO, AT(check_connected)},

    {"--start-from", "FILE", "clusters of the network before it grew: only changed parts run",
     OPTION_TEXT, AT(start_from), .main = true},
    {"--start-graph", "OLD", "the graph of --start-from, to find changed edges", OPTION_TEXT, AT(start_graph)},
    {"--check-start", NULL, "run everything as well and say whether the clusters are the same", OPTION_FLAG,
     AT(check_start)},

    {"Pruning", .kind = OPTION_HEADING},
    {"-scheme", "1..7", "preset of -P -S -R -pct [6]; see --show-schemes", OPTION_COUNT, AT(preset),
     OPTION_RANGE(1, PRESETS), .then = use_scheme, .main = true},
    {"-resource", "K", "keep K entries a node: -S K -R K, and -P 10K unless given", OPTION_COUNT, AT(mcl.select),
     OPTION_RANGE(1, INT32_MAX), .then = use_resource},
    {"-P", "N", "drop entries below 1/N [10000]", OPTION_COUNT, AT(mcl.prune_number), OPTION_FROM(0),
     .then = use_prune_number},
    {"-p", "F", "drop entries below F", OPTION_NUMBER, AT(mcl.prune_cutoff), OPTION_RANGE(0, 0.1),
     .then = use_prune_cutoff},
    {"-S", "N", "keep at most about N entries a node [1100]", OPTION_COUNT, AT(mcl.select), OPTION_FROM(0)},
    {"-R", "N", "recover up to N entries where too much was dropped [1400]", OPTION_COUNT, AT(mcl.recover),
     OPTION_FROM(0)},
    {"-pct", "N", "too much: less than N percent is left [90]", OPTION_NUMBER, AT(mcl.recover_percent),
     OPTION_RANGE(0, 100)},
    {"-skid", "1..7", "cheap preset of -P -S -R -pct; see --show-skid", OPTION_COUNT, AT(preset),
     OPTION_RANGE(1, PRESETS), .then = use_skid},
    {"-sparse", "N", "when mcl multiplies densely [10]; decides last bits", OPTION_COUNT, AT(mcl.dense_factor),
     OPTION_FROM(0)},

    {"Input: mcl's matrices, Matrix Market and STRING files are known by content, gzip and zstd too",
     .kind = OPTION_HEADING},
    {"--abc", NULL, "LABEL LABEL [WEIGHT] a line", OPTION_OWN, .then = use_abc, .main = true},
    {"--sif", NULL, "LABEL RELATION LABEL... a line", OPTION_OWN, .then = use_sif, .main = true},
    {"--etc", NULL, "LABEL LABEL... a line", OPTION_OWN, .then = use_etc, .main = true},
    {"--blast", "SCORE", "BLAST or DIAMOND outfmt 6; weight: bits, evalue (-log10, capped at 200) or identity",
     OPTION_WORD, AT(read.blast), .words = scores, .then = use_blast, .main = true},
    {"--min-score", "N", "STRING links: leave out pairs that score below N [0]", OPTION_NUMBER,
     AT(read.minimum_score), OPTION_RANGE(0, 1e9), .main = true},
    {"--edge-column", "NAME", "of weights, in tables of edges, STRING files and GraphML", OPTION_TEXT,
     AT(read.score_column), .main = true},
    {"--expect-values", NULL, "labels of --sif and --etc carry :WEIGHT", OPTION_FLAG, AT(read.expect_values)},
    {"-use-tab", "FILE", "labels for a matrix: ID<TAB>LABEL a line", OPTION_TEXT, AT(read.tab), .main = true},
    {"-abc-tf", "LIST", "transform label weights, e.g. 'gq(5),ceil(200)'", OPTION_TEXT, AT(value_transform),
     .main = true},
    {"--abc-neg-log", NULL, "weights become -ln(weight)", OPTION_FLAG, AT(negative_log)},
    {"--abc-neg-log10", NULL, "weights become -log10(weight)", OPTION_FLAG, AT(negative_log10), .main = true},
    {"-tf", "LIST", "transform the graph, e.g. 'gq(0.5)', '#knn(20)', '#ceilnb(50)'", OPTION_TEXT,
     AT(graph_transform), .main = true},
    {"--lenient", NULL, "take odd lines as mcl does and count them", OPTION_FLAG, AT(read.lenient), .main = true},

    {"Output", .kind = OPTION_HEADING},
    {"-o", "FILE", "the clusters; - for stdout [out.INPUT.I20, as mcl names it]", OPTION_TEXT, AT(output),
     .main = true},
    {"-odir", "DIR", "folder for names that are made", OPTION_TEXT, AT(directory)},
    {"--d", NULL, "use the folder of the input", OPTION_FLAG, AT(input_directory)},
    {"-ap", "PREFIX", "start of names that are made; = stands for the input's name [out.=]", OPTION_TEXT, AT(prefix)},
    {"-aa", "SUFFIX", "end of names that are made", OPTION_TEXT, AT(suffix)},
    {"--i3", NULL, "three digits of the inflation in names", OPTION_FLAG, AT(three_digits)},
    {"-sort", "MODE", "order: revsize (largest first), size, lex or none [revsize]", OPTION_WORD, AT(mcl.sort),
     .words = orders},
    {"-append-log", "y|n", "append the settings to the clustering", OPTION_YES_NO, AT(append_log)},
    {"--table", "FILE", "a line a node: cluster, its size, weight inside, attractor (.csv: with commas)", OPTION_TEXT,
     AT(table), .once = true, .main = true},
    {"--graphml", "FILE", "the graph with clusters as attributes, for Cytoscape and others", OPTION_TEXT,
     AT(graphml), .once = true},
    {"--quality", NULL, "print modularity, efficiency and other figures; with several\ninflations this is always done",
     OPTION_FLAG, AT(quality)},
    {"-analyze", "y|n", "append efficiency, modularity and figures of the sizes", OPTION_YES_NO, AT(analyze)},
    {"-write-graph", "FILE", "the graph as read", OPTION_TEXT, AT(write_graph)},
    {"-write-graphx", "FILE", "the graph with transforms and loops", OPTION_TEXT, AT(write_transformed)},
    {"-write-expanded", "FILE", "the graph after the first expansion", OPTION_TEXT, AT(write_expanded)},
    {"--write-limit", NULL, "the limit matrix, to OUT-limit", OPTION_FLAG, AT(write_limit)},
    {"--write-binary", NULL, "matrices in mcl's binary form", OPTION_FLAG, AT(binary)},
    {"-dump", "LIST", "write every iterand (ite), its clustering (cls), or both", OPTION_OWN, .then = parse_dump},
    {"-dump-stem", "NAME", "end of the dumps' names [that of -o, or INPUT.I20]", OPTION_TEXT, AT(dump_stem)},
    {"-dump-interval", "I:J", "iterations I to J-1 [0:5], or all", OPTION_OWN, .then = parse_dump_interval},
    {"-dump-modulo", "N", "every Nth iteration [1]", OPTION_COUNT, AT(dump_modulo), OPTION_FROM(1)},

    {"Machine", .kind = OPTION_HEADING},
    {"-te", "N", "threads, 0 for all [all; fewer for small inputs]", OPTION_COUNT, AT(threads), OPTION_FROM(0),
     .main = true},
    {"-t", "N", "the same", OPTION_COUNT, AT(threads), OPTION_FROM(0)},
    {"--device", "NAME", "auto, cpu, cuda, cuda:N, cuda:all or cuda:0,cuda:1 [auto: CUDA for large graphs]",
     OPTION_DEVICES, AT(device), .main = true},
    {"--mpi", "HOW", "processes of mpirun share the work: auto, yes or no [auto: if it started several]", OPTION_WORD,
     AT(mpi), .words = mpi_words},
    {"--mpi-read", "HOW", "each process reads the whole input, or a part of it [auto: large ones in parts]",
     OPTION_WORD, AT(mpi_read), .words = mpi_read_words},
    {"--exact", NULL, "the very bytes that mcl writes (on the CPU, its default)", OPTION_FLAG, AT(exact), .main = true},
    {"--fast", NULL, "the same partition up to rounding (CUDA always does so)", OPTION_FLAG, AT(fast), .main = true},
    {"--memory", "SIZE", "working memory, e.g. 8G [what is free]", OPTION_BYTES, AT(memory),
     .main = true},

    {"--checkpoint", "FILE", "save the run now and then, and when a signal ends it", OPTION_TEXT, AT(checkpoint),
     .once = true, .main = true},
    {"--checkpoint-every", "SECONDS", "how often, at most [600]", OPTION_NUMBER, AT(checkpoint_every),
     OPTION_FROM(0)},
    {"--checkpoint-iterations", "N", "save it after every N iterations, too", OPTION_COUNT, AT(checkpoint_iterations),
     OPTION_RANGE(1, INT32_MAX)},
    {"--resume", "FILE", "go on from a checkpoint, with the same input and options", OPTION_TEXT, AT(resume)},

    {"Log", .kind = OPTION_HEADING},
    {"-V", "all", "silence the log (warnings remain)", OPTION_OWN, .then = use_verbosity, .main = true},
    {"-q", "x", "the same", OPTION_OWN, .then = be_quiet},
    {"--progress", "HOW", "plain: lines of progress with an estimate of what is left; auto: on\na terminal [auto]; "
                          "none",
     OPTION_OWN, .then = use_progress},
    {"--report", "FILE", "what was done and the clusters: a page if FILE ends in .html, else JSON",
     OPTION_TEXT, AT(report), .once = true, .then = check_report, .main = true},

    {"Information", .kind = OPTION_HEADING},
    {"-h", NULL, "the important options", ASK(REQUEST_HELP)},
    {"--help", NULL, "the same", ASK(REQUEST_HELP)},
    {"--help-all", NULL, "every option", ASK(REQUEST_HELP_ALL), .main = true},
    {"--amoixa", NULL, "the same", ASK(REQUEST_HELP_ALL)},
    {"--version", NULL, "the version", ASK(REQUEST_VERSION), .main = true},
    {"--doctor", NULL, "this machine: GPUs, CUDA, processors, memory, and what auto chooses", ASK(REQUEST_DOCTOR),
     .main = true},
    {"-z", NULL, "the settings that the other options make", ASK(REQUEST_SETTINGS), .main = true},
    {"-az", NULL, "the name of the output", ASK(REQUEST_OUTPUT_NAME)},
    {"-ax", NULL, "the suffix that the settings make", ASK(REQUEST_OUTPUT_SUFFIX)},
    {"--show-schemes", NULL, "the presets of -scheme", ASK(REQUEST_SCHEMES), .main = true},
    {"--show-skid", NULL, "the presets of -skid", ASK(REQUEST_SKIDS)},
    {"--jury-charter", NULL, "the words of the jury's synopsis", ASK(REQUEST_CHARTER)},
    {"-how-much-ram", "N", "memory for a graph of N nodes, at most", OPTION_COUNT, AT(ram_nodes),
     OPTION_RANGE(0, INT32_MAX), .then = ask_memory, .main = true},

    {"Accepted for old scripts, without effect", .kind = OPTION_HEADING},
    {"-v", .argument = "WORD", .kind = OPTION_IGNORED},
    {"-show-log", .argument = "y|n", .kind = OPTION_IGNORED},
    {"-annot", .argument = "TEXT", .kind = OPTION_IGNORED},
    {"-cache-mx", .argument = "y|n", .kind = OPTION_IGNORED},
    {"-digits", .argument = "N", .kind = OPTION_IGNORED},
    {"--unchecked", .kind = OPTION_IGNORED},
    {"-warn-pct", "N", NULL, OPTION_COUNT, AT(warn_percent), OPTION_RANGE(0, 99)},
    {"-warn-factor", "N", NULL, OPTION_COUNT, AT(warn_factor), OPTION_FROM(0)},
    {"--partition-selection", .kind = OPTION_IGNORED},
    {"-partition-p", .argument = "N", .kind = OPTION_IGNORED},
    {"-ti", .argument = "N", .kind = OPTION_IGNORED},
    {"-set", .argument = "KEY=VALUE", .kind = OPTION_IGNORED},
    {"-devel", .argument = "N", .kind = OPTION_IGNORED},
    {"--silent", .kind = OPTION_IGNORED},
    {"-nj", .argument = "N", .kind = OPTION_IGNORED},
    {"--stream-mirror", .kind = OPTION_IGNORED},

    {"Options of mcl that are refused", .kind = OPTION_HEADING},
    {"-icl", .argument = "FILE", .help = "cluster the subgraphs of a clustering one by one instead",
     .kind = OPTION_REFUSED},
    {"--show", .help = "use -dump ite", .kind = OPTION_REFUSED},
    {"--regularized", .help = "a different process", .kind = OPTION_REFUSED},
    {"--null-node", .help = "not in mcl 22-282 either", .kind = OPTION_REFUSED},
    {"-Q", .argument = "N", .help = "use -P", .kind = OPTION_REFUSED},
    {"-wmax", .argument = "F", .help = "interpretation is as with mcl's default", .kind = OPTION_REFUSED},
    {"-wself", .argument = "F", .help = "interpretation is as with mcl's default", .kind = OPTION_REFUSED},
};

/* A folder's name is used without the slashes at its end. */
static bool take_input(void *into, const char *text)
{
    static char folder[MAX_PATH];
    settings *s = into;
    if (s->input) return mistake("one input file only (got \"%.40s\" and \"%.40s\")", s->input, text);
    s->input = text;
    size_t length = strlen(text);
    while (length > 1 && text[length - 1] == '/') length--;
    if (!text[length] || length >= sizeof folder) return true;
    memcpy(folder, text, length);
    s->input = folder;
    return true;
}

static const command_line line = {"mcl-gpu", {OPTION_LIST(options)}, take_input, .mcl_syntax = true};

void settings_usage(FILE *stream)
{
    fputs("usage: mcl-gpu FILE|- [options]      Markov clustering, with the options and results of mcl 22-282\n"
          "\n"
          "  mcl-gpu graph.abc --abc -I 2 -o clusters.txt      label pairs with weights\n"
          "  mcl-gpu graph.mci -I 1.4,2,4                      a matrix, three inflations: out.graph.mci.I14, ...\n"
          "  mcl-gpu 4932.protein.links.txt.gz --min-score 700 a STRING file\n"
          "  diamond ... | mcl-gpu - --blast evalue -o -       all-against-all hits, outfmt 6\n"
          "\n", stream);
    options_help_main(&line, stream);
}

void settings_usage_all(FILE *stream)
{
    fputs("usage: mcl-gpu FILE|- [options]\n", stream);
    options_help(&line, stream);
}

/* ---- what no single option can see ----------------------------------------------------------------------- */

/* A file for each inflation: names show one digit behind the point, with --i3 two. */
static bool check_inflations(const settings *s)
{
    settings long_names = *s;
    char names[2][MAX_PATH];
    long_names.three_digits = true;
    for (int i = 0; i < s->inflation_count; i++) {
        const double last = s->inflations[i];
        if (!settings_output_name(s, last, names[0])) return mistake("the output's name is too long");
        for (int j = 0; j < i; j++) {
            const double first = s->inflations[j];
            if (first == last) return mistake("-I lists inflation %g twice: name it once", first);
            settings_output_name(s, first, names[1]);
            if (strcmp(names[0], names[1]) != 0) continue;
            char both[MAX_PATH];
            snprintf(both, sizeof both, "%s", names[0]);
            settings_output_name(&long_names, first, names[0]);
            settings_output_name(&long_names, last, names[1]);
            return mistake("inflations %g and %g would both be written to %s; %s", first, last, both,
                           strcmp(names[0], names[1]) != 0 ? "use --i3" : "names hold two digits behind the point");
        }
    }
    return true;
}

static const double CHECKPOINT_SECONDS = 600;

static bool check_start_from(const settings *s)
{
    if (!s->start_from && s->start_graph) return mistake("--start-graph goes with --start-from CLUSTERS");
    if (!s->start_from && s->check_start) return mistake("--check-start goes with --start-from CLUSTERS");
    if (!s->start_from) return true;
    if (strcmp(s->start_from, "-") == 0) return mistake("--start-from needs a file");
    if (s->start_graph && strcmp(s->start_graph, "-") == 0) return mistake("--start-graph needs a file");
    if (s->inflation_count > 1) return mistake("--start-from takes the clusters of one inflation");
    if (s->mcl.sort == MCL_SORT_NONE || (s->mcl.force_connected && s->mcl.sort != MCL_SORT_SIZE))
        return mistake("--start-from cannot know this order of clusters; leave -sort out");
    if (s->dump_iterands || s->dump_clusters || s->write_limit || s->write_expanded || s->check_connected)
        return mistake("--start-from runs a part of the graph: leave out -dump, --write-limit, -write-expanded and "
                       "-check-connected");
    return true;
}

static bool check_checkpoints(const settings *s)
{
    const char *option = s->resume ? "--resume" : "--checkpoint";
    if (s->checkpoint_every != CHECKPOINT_SECONDS && !s->checkpoint)
        return mistake("--checkpoint-every goes with --checkpoint FILE");
    if (s->checkpoint_iterations && !s->checkpoint)
        return mistake("--checkpoint-iterations goes with --checkpoint FILE");
    if (!s->checkpoint && !s->resume) return true;
    if ((s->checkpoint && strcmp(s->checkpoint, "-") == 0) || (s->resume && strcmp(s->resume, "-") == 0))
        return mistake("%s needs a file", option);
    if (!is_uncompressed("mcl-gpu", "--checkpoint", s->checkpoint)) return false;
    if (s->inflation_count > 1) return mistake("%s is for a run of one inflation", option);
    if (s->start_from) return mistake("%s and --start-from exclude each other", option);
    if (s->resume && (s->dump_iterands || s->dump_clusters))
        return mistake("--resume cannot make earlier dumps; leave -dump out");
    return true;
}

static bool check_together(const settings *s)
{
    const bool cuda = device_is_cuda(s->device);
    if (!s->input) return mistake("no input; name a file, or - for stdin");
    if (s->exact && s->fast) return mistake("--exact and --fast exclude each other");
    if (s->exact && cuda)
        return mistake("--exact with --device %s: CUDA rounds in its own order; use --device cpu", s->device);
    if (s->fast && device_is_cpu(s->device) && device_is_several(s->device))
        return mistake("--fast with --device %s: its sums would depend on the number of devices", s->device);
    if (s->negative_log && s->negative_log10) return mistake("--abc-neg-log and --abc-neg-log10 exclude each other");
    if (s->read.tab && s->read.format != IO_AUTO) return mistake("-use-tab names the nodes of a matrix");
    if (s->read.minimum_score > 0 && s->read.format != IO_AUTO) return mistake("--min-score is for STRING files");
    if (s->read.score_column && s->read.format != IO_AUTO)
        return mistake("--edge-column is for tables, STRING and GraphML, which are known by their content");
    if (s->read.minimum_score > 0 && s->read.minimum_score < 1)
        return mistake("--min-score %g leaves out no pair: scores go from 0 to 1000", s->read.minimum_score);
    if (s->inflation_count > 1 && s->output && strcmp(s->output, "-") == 0)
        return mistake("several inflations cannot share stdout; use -o FILE");
    if (s->inflation_count > 1 && s->dump_stem && (s->dump_iterands || s->dump_clusters))
        return mistake("-dump-stem would give the dumps of several inflations one name; leave it out");
    return check_start_from(s) && check_checkpoints(s) && check_inflations(s);
}

bool settings_parse(int argc, char **argv, settings *s)
{
    memset(s, 0, sizeof *s);
    mcl_options_default(&s->mcl);
    s->inflations[0] = s->mcl.inflation;
    s->inflation_count = 1;
    s->read.offers_lenient = true;
    s->device = "auto";
    s->dump_to = 5;
    s->checkpoint_every = CHECKPOINT_SECONDS;
    s->dump_modulo = 1;
    s->warn_percent = 10;
    s->warn_factor = 1000;
    s->argument_count = argc;
    s->arguments = argv;
    if (options_parse(&line, argc, argv, s) != OPTIONS_RUN) return false;
    return s->request != REQUEST_RUN || check_together(s);
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* 1.45 as mcl writes it into names: one digit (two with --i3) of the number as f32, without the point. */
static void name_number(char text[32], double value, int digits)
{
    char printed[32];
    size_t used = 0;
    snprintf(printed, sizeof printed, "%.*f", digits, (double)(float)value);
    for (const char *p = printed; *p; p++)
        if (*p != '.') text[used++] = *p;
    text[used] = '\0';
}

void settings_suffix(const settings *s, double inflation, char suffix[SUFFIX_SIZE])
{
    char number[32];
    name_number(number, inflation, s->three_digits ? 2 : 1);
    int used = snprintf(suffix, SUFFIX_SIZE, "I%s", number);
    if (s->mcl.initial_length > 0) {
        name_number(number, s->mcl.initial_inflation, 1);
        used += snprintf(suffix + used, SUFFIX_SIZE - (size_t)used, "l%lldi%s", (long long)s->mcl.initial_length,
                         number);
    }
    if (s->mcl.pre_inflation > 0) {
        name_number(number, s->mcl.pre_inflation, 1);
        used += snprintf(suffix + used, SUFFIX_SIZE - (size_t)used, "pi%s", number);
    }
    if (s->loops_scaled) {
        name_number(number, s->mcl.loop_factor, 1);
        snprintf(suffix + used, SUFFIX_SIZE - (size_t)used, "c%s", number);
    }
}

const char *settings_input_base(const settings *s)
{
    const char *slash = strrchr(s->input, '/');
    return slash ? slash + 1 : s->input;
}

void settings_input_name(const settings *s, double inflation, char name[MAX_PATH])
{
    char suffix[SUFFIX_SIZE];
    settings_suffix(s, inflation, suffix);
    snprintf(name, MAX_PATH, "%s.%s%s", settings_input_base(s), suffix, s->suffix ? s->suffix : "");
}

bool settings_output_name(const settings *s, double inflation, char name[MAX_PATH])
{
    char suffix[SUFFIX_SIZE];
    settings_suffix(s, inflation, suffix);
    int used;
    if (s->output) {
        bool stem = s->inflation_count > 1;
        used = snprintf(name, MAX_PATH, "%s%s%s", s->output, stem ? "." : "", stem ? suffix : "");
        return used < MAX_PATH;
    }
    const char *slash = strrchr(s->input, '/');
    const char *base = settings_input_base(s);
    const char *prefix = s->prefix ? s->prefix : "out.=";
    const char *place = strchr(prefix, '=');
    int before = place ? (int)(place - prefix) : (int)strlen(prefix);
    const char *directory = s->directory ? s->directory : s->input_directory && slash ? s->input : "";
    int directory_length = s->directory || !slash ? (int)strlen(directory) : (int)(slash - s->input);
    if (!*directory) directory_length = 0;
    bool separate = directory_length > 0 && directory[directory_length - 1] != '/';
    if (s->input_directory && !s->directory && slash == s->input) { /* the root folder */
        directory_length = 1;
        separate = false;
    }
    used = snprintf(name, MAX_PATH, "%.*s%s%.*s%s%s.%s%s", directory_length, directory, separate ? "/" : "", before,
                    prefix, place ? base : "", place ? place + 1 : "", suffix, s->suffix ? s->suffix : "");
    return used < MAX_PATH;
}

char *settings_quoted(const settings *s, const char *start)
{
    size_t bytes = strlen(start) + 1, used;
    for (int i = 1; i < s->argument_count; i++) bytes += strlen(s->arguments[i]) + 3;
    char *text = malloc(bytes);
    if (!text) return NULL;
    used = (size_t)sprintf(text, "%s", start);
    for (int i = 1; i < s->argument_count; i++) {
        bool input = s->arguments[i] == s->input;
        if (input && !*start) continue;
        used += (size_t)sprintf(text + used, input ? "%s%s" : "%s\"%s\"", used ? " " : "", s->arguments[i]);
    }
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127) *p = '?';
    return text;
}
