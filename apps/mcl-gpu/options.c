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

#include "common/tool.h"

/* ---- reading values ------------------------------------------------------------------------------------ */

#define mistake(...) usage_mistake("mcl-gpu", __VA_ARGS__)

static bool read_yes_no(const char *text, bool *value)
{
    *value = text[0] == 'y' || text[0] == 'Y' || text[0] == '1';
    static const char *const words[] = {"y", "yes", "Y", "Yes", "1", "n", "no", "N", "No", "0"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) return true;
    return false;
}

/* The index of `text` among `count` words, or -1. */
static int read_word(const char *text, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) return i;
    return -1;
}

/* ---- options with their own reading -------------------------------------------------------------------- */

/* F or F,F,...: each above 0 and at most 30. */
static bool parse_inflations(settings *s, const char *value)
{
    s->inflation_count = 0;
    for (const char *next = value;;) {
        const char *comma = strchr(next, ',');
        size_t length = comma ? (size_t)(comma - next) : strlen(next);
        char item[64];
        double inflation;
        if (length >= sizeof item) return mistake("-I takes numbers (got \"%.40s\")", value);
        memcpy(item, next, length);
        item[length] = '\0';
        if (!read_number(item, &inflation) || inflation <= 0 || inflation > 30)
            return mistake("-I takes numbers above 0 and at most 30, separated by commas (got \"%.40s\")", value);
        if (s->inflation_count == MAX_INFLATIONS) return mistake("-I takes at most %d inflations", MAX_INFLATIONS);
        s->inflations[s->inflation_count++] = inflation;
        if (!comma) break;
        next = comma + 1;
    }
    s->mcl.inflation = s->inflations[0];
    return true;
}

static bool read_preset(const char *name, const char *value, int *number)
{
    int64_t read;
    if (!read_integer(value, &read) || read < 1 || read > PRESETS)
        return mistake("-%s takes a number from 1 to 7 (got \"%.40s\")", name, value);
    *number = (int)read;
    return true;
}

static bool parse_scheme(settings *s, const char *value)
{
    int number = 0;
    if (!read_preset("scheme", value, &number)) return false;
    s->prune_given = true;
    return mcl_options_scheme(NULL, &s->mcl, number) == SP_OK;
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

static bool parse_skid(settings *s, const char *value)
{
    int number = 0;
    if (!read_preset("skid", value, &number)) return false;
    s->prune_given = true;
    settings_skid(&s->mcl, number);
    return true;
}

static bool parse_resource(settings *s, const char *value)
{
    int64_t count;
    if (!read_integer(value, &count) || count < 1 || count > INT32_MAX)
        return mistake("-resource takes a whole number from 1 (got \"%.40s\")", value);
    s->mcl.select = s->mcl.recover = count;
    if (!s->prune_given) s->mcl.prune_number = 10 * count;
    return true;
}

static bool parse_prune_number(settings *s, const char *value)
{
    if (!read_integer(value, &s->mcl.prune_number) || s->mcl.prune_number < 0)
        return mistake("-P takes a whole number from 0 (got \"%.40s\")", value);
    s->mcl.prune_cutoff = 0;
    s->prune_given = true;
    return true;
}

/* mcl keeps the whole part of the inverse of the cutoff as f32: -p 0.0003 is -P 3333, -p 0.05 is -P 19. It takes the
 * default where that is no 32-bit number, and 0 for no pruning. */
static bool parse_prune_cutoff(settings *s, const char *value)
{
    double cutoff;
    if (!read_number(value, &cutoff) || cutoff < 0 || cutoff > 0.1)
        return mistake("-p takes a number from 0 to 0.1 (got \"%.40s\")", value);
    const double number = cutoff > 0 ? 1 / (double)(float)cutoff : 0;
    s->mcl.prune_number = number <= INT32_MAX ? (int64_t)number : 10000;
    s->mcl.prune_cutoff = 0;
    s->prune_given = true;
    return true;
}

/* As mcl has it: an f32, where -pi is an f64. */
static bool parse_start_inflation(settings *s, const char *value)
{
    double power;
    if (!read_number(value, &power) || !((float)power > 0))
        return mistake("-if takes a number above 0 (got \"%.40s\")", value);
    s->mcl.pre_inflation = (double)(float)power;
    s->mcl.discard_loops = false;
    return true;
}

static bool parse_loop_factor(settings *s, const char *value)
{
    if (!read_number(value, &s->mcl.loop_factor) || s->mcl.loop_factor < 0)
        return mistake("-c takes a number from 0 (got \"%.40s\")", value);
    s->loops_scaled = true;
    return true;
}

/* -dae, wherever it stands, sets the power. */
static bool parse_degrees(settings *s, const char *value)
{
    (void)value;
    if (s->mcl.degree_power == 0) s->mcl.degree_power = 1;
    return true;
}

static bool parse_overlap(settings *s, const char *value)
{
    static const char *const words[] = {"cut", "keep", "split"};
    int word = read_word(value, words, 3);
    if (word < 0) return mistake("-overlap is one of cut, keep, split (got \"%.40s\")", value);
    s->mcl.overlap = (mcl_overlap)word;
    return true;
}

/* mcl's size puts the smallest first; its default, the largest first, is revsize. */
static bool parse_sort(settings *s, const char *value)
{
    static const char *const words[] = {"revsize", "size", "lex", "none"};
    int word = read_word(value, words, 4);
    if (word < 0) return mistake("-sort is one of lex, size, revsize, none (got \"%.40s\")", value);
    s->mcl.sort = (mcl_sort)word;
    return true;
}

static bool use_format(settings *s, io_format format)
{
    if (s->read.format != IO_AUTO && s->read.format != format)
        return mistake("only one of --abc, --sif, --etc, --blast can be given");
    s->read.format = format;
    return true;
}

static bool parse_abc(settings *s, const char *value) { return (void)value, use_format(s, IO_ABC); }
static bool parse_sif(settings *s, const char *value) { return (void)value, use_format(s, IO_SIF); }
static bool parse_etc(settings *s, const char *value) { return (void)value, use_format(s, IO_ETC); }

static bool parse_blast(settings *s, const char *value)
{
    static const char *const words[] = {"bits", "evalue", "identity"};
    int word = read_word(value, words, 3);
    if (word < 0) return mistake("--blast is one of bits, evalue, identity (got \"%.40s\")", value);
    s->read.blast = (io_blast_score)word;
    return use_format(s, IO_BLAST);
}

/* -dump takes a list; mcl passes over words that it does not know, we do not. */
static bool parse_dump(settings *s, const char *value)
{
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
static bool parse_dump_interval(settings *s, const char *value)
{
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

static bool parse_device(settings *s, const char *value)
{
    static const char *const words[] = {"auto", "cpu", "cuda"};
    size_t length = strlen(value);
    bool numbered = strncmp(value, "cuda:", 5) == 0 && length > 5 && length <= 8 &&
                    strspn(value + 5, "0123456789") == length - 5;
    if (read_word(value, words, 3) < 0 && !numbered)
        return mistake("--device is one of auto, cpu, cuda, cuda:N (got \"%.40s\")", value);
    s->device = value;
    return true;
}

static bool parse_memory(settings *s, const char *value)
{
    return read_bytes(value, &s->memory) ||
           mistake("--memory takes a size such as 8G or 500M (got \"%.40s\")", value);
}

/* mcl's -V all silences the whole log; -V with other words, and -v, do nothing that a log shows. */
static bool parse_silence(settings *s, const char *value)
{
    if (strstr(value, "all")) s->quiet = true;
    return true;
}

static bool parse_quiet(settings *s, const char *value)
{
    (void)value;
    return s->quiet = true;
}

static bool parse_ram(settings *s, const char *value)
{
    if (!read_integer(value, &s->ram_nodes) || s->ram_nodes < 0 || s->ram_nodes > INT32_MAX)
        return mistake("-how-much-ram takes a number of nodes (got \"%.40s\")", value);
    s->request = REQUEST_RAM;
    return true;
}

static bool parse_report(settings *s, const char *value)
{
    if (strcmp(value, "-") == 0) return mistake("--report needs a file name");
    s->report = value;
    return true;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

typedef enum option_kind {
    HEADING,
    FLAG,          /* sets a bool */
    YES_NO,        /* y or n into a bool */
    TEXT,          /* a const char * */
    INTEGER,       /* an int64_t from low to high */
    NUMBER,        /* a double from low to high */
    POSITIVE,      /* a double above 0 */
    OWN,           /* takes a value, read by parse */
    OWN_FLAG,      /* takes none, acted on by parse */
    INFO,          /* asks for request number low */
    IGNORED,       /* accepted, takes a value */
    IGNORED_FLAG,  /* accepted */
    REFUSED,       /* takes a value; the help says why it is not done */
    REFUSED_FLAG
} option_kind;

typedef struct option {
    option_kind kind;
    const char *name;     /* with the dashes that it is known by; of a HEADING: its text */
    const char *argument; /* how help names the value */
    const char *help;
    size_t offset;
    double low, high;
    bool (*parse)(settings *, const char *value);
} option;

#define AT(field) offsetof(settings, field)
#define COUNT(field, from) AT(field), from, 9.0e18, NULL
#define PARSE(function) 0, 0, 0, function
#define PLACE(field) AT(field), 0, 0, NULL
#define ASK(which) 0, which, 0, NULL
#define NOTHING 0, 0, 0, NULL

static const option options[] = {
    {HEADING, "Clustering", NULL, NULL, NOTHING},
    {OWN, "-I", "F[,F...]", "inflation, 0 < F <= 30 [2.0]; a list: a clustering each", PARSE(parse_inflations)},
    {NUMBER, "-i", "F", "inflation of the first -l iterations [2.0]", AT(mcl.initial_inflation), 0.1, 30, NULL},
    {INTEGER, "-l", "N", "length of the initial run [0]", COUNT(mcl.initial_length, 0)},
    {INTEGER, "-L", "N", "length of the main run [10000]", COUNT(mcl.main_length, 0)},
    {POSITIVE, "-pi", "F", "inflate the graph once before the process", PLACE(mcl.pre_inflation)},
    {OWN, "-if", "F", "the graph is an expanded one: -pi F and -discard-loops n", PARSE(parse_start_inflation)},
    {OWN, "-c", "F", "multiply the weights of loops by F [1.0]", PARSE(parse_loop_factor)},
    {YES_NO, "-discard-loops", "y|n", "replace loops of the input by the largest weight of their node [y]",
     PLACE(mcl.discard_loops)},
    {FLAG, "--sum-loops", NULL, "loops as heavy as all arcs of their node together", PLACE(mcl.sum_loops)},
    {OWN_FLAG, "--degree-adjust", NULL, "divide weights by the degrees of both nodes together", PARSE(parse_degrees)},
    {NUMBER, "-dae", "F", "the same, by that sum to the power F", AT(mcl.degree_power), -100, 100, NULL},
    {OWN, "-overlap", "MODE", "cut, keep or split clusters that share nodes [cut]", PARSE(parse_overlap)},
    {YES_NO, "-force-connected", "y|n", "split clusters into their connected parts [n]", PLACE(mcl.force_connected)},
    {YES_NO, "-check-connected", "y|n", "say whether the clusters are connected [n]", PLACE(check_connected)},

    {HEADING, "Pruning", NULL, NULL, NOTHING},
    {OWN, "-scheme", "1..7", "preset of -P -S -R -pct [6]; see --show-schemes", PARSE(parse_scheme)},
    {OWN, "-resource", "K", "keep K entries a node: -S K -R K, and -P 10K unless given", PARSE(parse_resource)},
    {OWN, "-P", "N", "drop entries below 1/N [10000]", PARSE(parse_prune_number)},
    {OWN, "-p", "F", "drop entries below F", PARSE(parse_prune_cutoff)},
    {INTEGER, "-S", "N", "keep at most about N entries a node [1100]", COUNT(mcl.select, 0)},
    {INTEGER, "-R", "N", "recover up to N entries where too much was dropped [1400]", COUNT(mcl.recover, 0)},
    {NUMBER, "-pct", "N", "too much: less than N percent is left [90]", AT(mcl.recover_percent), 0, 100, NULL},
    {OWN, "-skid", "1..7", "cheap preset of -P -S -R -pct; see --show-skid", PARSE(parse_skid)},
    {INTEGER, "-sparse", "N", "when mcl multiplies densely [10]; decides last bits", COUNT(mcl.dense_factor, 0)},

    {HEADING, "Input: mcl's matrices, Matrix Market and STRING files are known by content, gzip and zstd too", NULL,
     NULL, NOTHING},
    {OWN_FLAG, "--abc", NULL, "LABEL LABEL [WEIGHT] a line", PARSE(parse_abc)},
    {OWN_FLAG, "--sif", NULL, "LABEL RELATION LABEL... a line", PARSE(parse_sif)},
    {OWN_FLAG, "--etc", NULL, "LABEL LABEL... a line", PARSE(parse_etc)},
    {OWN, "--blast", "SCORE", "BLAST or DIAMOND outfmt 6; weight: bits, evalue (-log10, capped at 200) or identity",
     PARSE(parse_blast)},
    {NUMBER, "--min-score", "N", "STRING links: leave out pairs that score below N [0]",
     AT(read.minimum_score), 0, 1e9, NULL},
    {FLAG, "--expect-values", NULL, "labels of --sif and --etc carry :WEIGHT", PLACE(read.expect_values)},
    {TEXT, "-use-tab", "FILE", "labels for a matrix: ID<TAB>LABEL a line", PLACE(read.tab)},
    {TEXT, "-abc-tf", "LIST", "transform label weights, e.g. 'gq(5),ceil(200)'", PLACE(value_transform)},
    {FLAG, "--abc-neg-log", NULL, "weights become -ln(weight)", PLACE(negative_log)},
    {FLAG, "--abc-neg-log10", NULL, "weights become -log10(weight)", PLACE(negative_log10)},
    {TEXT, "-tf", "LIST", "transform the graph, e.g. 'gq(0.5)', '#knn(20)', '#ceilnb(50)'", PLACE(graph_transform)},
    {FLAG, "--lenient", NULL, "take odd lines as mcl does and count them", PLACE(read.lenient)},

    {HEADING, "Output", NULL, NULL, NOTHING},
    {TEXT, "-o", "FILE", "the clusters; - for stdout [out.INPUT.I20, as mcl names it]", PLACE(output)},
    {TEXT, "-odir", "DIR", "folder for names that are made", PLACE(directory)},
    {FLAG, "--d", NULL, "use the folder of the input", PLACE(input_directory)},
    {TEXT, "-ap", "PREFIX", "start of names that are made; = stands for the input's name [out.=]", PLACE(prefix)},
    {TEXT, "-aa", "SUFFIX", "end of names that are made", PLACE(suffix)},
    {FLAG, "--i3", NULL, "three digits of the inflation in names", PLACE(three_digits)},
    {OWN, "-sort", "MODE", "order: revsize (largest first), size, lex or none [revsize]", PARSE(parse_sort)},
    {YES_NO, "-append-log", "y|n", "append the settings to the clustering", PLACE(append_log)},
    {YES_NO, "-analyze", "y|n", "append efficiency, modularity and figures of the sizes", PLACE(analyze)},
    {TEXT, "-write-graph", "FILE", "the graph as read", PLACE(write_graph)},
    {TEXT, "-write-graphx", "FILE", "the graph with transforms and loops", PLACE(write_transformed)},
    {TEXT, "-write-expanded", "FILE", "the graph after the first expansion", PLACE(write_expanded)},
    {FLAG, "--write-limit", NULL, "the limit matrix, to OUT-limit", PLACE(write_limit)},
    {FLAG, "--write-binary", NULL, "matrices in mcl's binary form", PLACE(binary)},
    {OWN, "-dump", "LIST", "write every iterand (ite), its clustering (cls), or both", PARSE(parse_dump)},
    {TEXT, "-dump-stem", "NAME", "end of the dumps' names [that of -o, or INPUT.I20]", PLACE(dump_stem)},
    {OWN, "-dump-interval", "I:J", "iterations I to J-1 [0:5], or all", PARSE(parse_dump_interval)},
    {INTEGER, "-dump-modulo", "N", "every Nth iteration [1]", COUNT(dump_modulo, 1)},

    {HEADING, "Machine", NULL, NULL, NOTHING},
    {INTEGER, "-te", "N", "threads [all; fewer for small inputs]", COUNT(threads, 0)},
    {INTEGER, "-t", "N", "the same", COUNT(threads, 0)},
    {OWN, "--device", "NAME", "auto, cpu, cuda or cuda:N [auto: CUDA for large graphs]", PARSE(parse_device)},
    {FLAG, "--exact", NULL, "the very bytes that mcl writes (on the CPU, its default)", PLACE(exact)},
    {FLAG, "--fast", NULL, "the same partition up to rounding (the default on CUDA)", PLACE(fast)},
    {OWN, "--memory", "SIZE", "working memory of the products, e.g. 8G [what is free]", PARSE(parse_memory)},

    {HEADING, "Log", NULL, NULL, NOTHING},
    {OWN, "-V", "all", "silence the log (warnings remain)", PARSE(parse_silence)},
    {OWN, "-q", "x", "the same", PARSE(parse_quiet)},
    {OWN, "--report", "FILE", "what was done and what it cost, as JSON", PARSE(parse_report)},

    {HEADING, "Information", NULL, NULL, NOTHING},
    {INFO, "-h", NULL, "the important options", ASK(REQUEST_HELP)},
    {INFO, "--help", NULL, "the same", ASK(REQUEST_HELP)},
    {INFO, "--help-all", NULL, "this text", ASK(REQUEST_HELP_ALL)},
    {INFO, "--amoixa", NULL, "the same", ASK(REQUEST_HELP_ALL)},
    {INFO, "--version", NULL, "the version", ASK(REQUEST_VERSION)},
    {INFO, "-z", NULL, "the settings that the other options make", ASK(REQUEST_SETTINGS)},
    {INFO, "-az", NULL, "the name of the output", ASK(REQUEST_OUTPUT_NAME)},
    {INFO, "-ax", NULL, "the suffix that the settings make", ASK(REQUEST_OUTPUT_SUFFIX)},
    {INFO, "--show-schemes", NULL, "the presets of -scheme", ASK(REQUEST_SCHEMES)},
    {INFO, "--show-skid", NULL, "the presets of -skid", ASK(REQUEST_SKIDS)},
    {INFO, "--jury-charter", NULL, "the words of the jury's synopsis", ASK(REQUEST_CHARTER)},
    {OWN, "-how-much-ram", "N", "memory for a graph of N nodes, at most", PARSE(parse_ram)},

    {HEADING, "Accepted for old scripts, without effect", NULL, NULL, NOTHING},
    {IGNORED, "-v", "WORD", NULL, NOTHING},
    {IGNORED, "-show-log", "y|n", NULL, NOTHING},
    {IGNORED, "-annot", "TEXT", NULL, NOTHING},
    {IGNORED, "-cache-mx", "y|n", NULL, NOTHING},
    {IGNORED, "-digits", "N", NULL, NOTHING},
    {IGNORED_FLAG, "--unchecked", NULL, NULL, NOTHING},
    {INTEGER, "-warn-pct", "N", NULL, AT(warn_percent), 0, 99, NULL},
    {INTEGER, "-warn-factor", "N", NULL, COUNT(warn_factor, 0)},
    {IGNORED_FLAG, "--partition-selection", NULL, NULL, NOTHING},
    {IGNORED, "-partition-p", "N", NULL, NOTHING},
    {IGNORED, "-ti", "N", NULL, NOTHING},
    {IGNORED, "-set", "KEY=VALUE", NULL, NOTHING},
    {IGNORED, "-devel", "N", NULL, NOTHING},
    {IGNORED_FLAG, "--silent", NULL, NULL, NOTHING},
    {IGNORED, "-progress", "N", NULL, NOTHING},
    {IGNORED, "-nj", "N", NULL, NOTHING},
    {IGNORED_FLAG, "--stream-mirror", NULL, NULL, NOTHING},

    {HEADING, "Options of mcl that are refused", NULL, NULL, NOTHING},
    {REFUSED, "-icl", "FILE", "cluster the subgraphs of a clustering one by one instead", NOTHING},
    {REFUSED_FLAG, "--show", NULL, "use -dump ite", NOTHING},
    {REFUSED_FLAG, "--regularized", NULL, "a different process", NOTHING},
    {REFUSED_FLAG, "--null-node", NULL, "not in mcl 22-282 either", NOTHING},
    {REFUSED, "-Q", "N", "use -P", NOTHING},
    {REFUSED, "-wmax", "F", "interpretation is as with mcl's default", NOTHING},
    {REFUSED, "-wself", "F", "interpretation is as with mcl's default", NOTHING},
};

enum { OPTION_COUNT = sizeof options / sizeof *options };

/* ---- parsing ------------------------------------------------------------------------------------------- */

static bool takes_value(option_kind kind)
{
    return kind != FLAG && kind != OWN_FLAG && kind != INFO && kind != IGNORED_FLAG && kind != REFUSED_FLAG;
}

static const char *without_dashes(const char *name) { return name + 1 + (name[1] == '-'); }

static const option *find_option(const char *name, size_t length)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const char *known = without_dashes(options[i].name);
        if (options[i].kind != HEADING && strlen(known) == length && strncmp(known, name, length) == 0)
            return &options[i];
    }
    return NULL;
}

/* Acts on one option; `value` is NULL for flags. */
static bool apply(settings *s, const option *o, const char *value)
{
    void *place = (char *)s + o->offset;
    switch (o->kind) {
    case FLAG: *(bool *)place = true; return true;
    case TEXT:
        *(const char **)place = value;
        return true;
    case YES_NO:
        return read_yes_no(value, place) || mistake("%s takes y or n (got \"%.40s\")", o->name, value);
    case INTEGER: {
        int64_t *number = place;
        return (read_integer(value, number) && (double)*number >= o->low && (double)*number <= o->high) ||
               mistake("%s takes a whole number from %g%s (got \"%.40s\")", o->name, o->low,
                       o->high < 100 ? " to 99" : "", value);
    }
    case NUMBER: {
        double *number = place;
        return (read_number(value, number) && *number >= o->low && *number <= o->high) ||
               mistake("%s takes a number from %g to %g (got \"%.40s\")", o->name, o->low, o->high, value);
    }
    case POSITIVE: {
        double *number = place;
        return (read_number(value, number) && *number > 0) ||
               mistake("%s takes a number above 0 (got \"%.40s\")", o->name, value);
    }
    case OWN:
    case OWN_FLAG: return o->parse(s, value);
    case INFO:
        s->request = (request)(int)o->low;
        return true;
    case REFUSED:
    case REFUSED_FLAG: return mistake("option %s of mcl is not offered: %s", o->name, o->help);
    case IGNORED:
    case IGNORED_FLAG:
    case HEADING: break;
    }
    return true;
}

/* Reads the argument at *index, and the next one where it is its value. */
static bool parse_argument(settings *s, int *index)
{
    const char *argument = s->arguments[*index];
    if (argument[0] == '\0') return true; /* Galaxy's tool passes one where it has no format option */
    if (argument[0] != '-' || argument[1] == '\0') {
        if (s->input) return mistake("one input file only (got \"%.40s\" and \"%.40s\")", s->input, argument);
        s->input = argument;
        return true;
    }
    const char *name = without_dashes(argument);
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const option *o = find_option(name, length);
    if (!o) return mistake("unknown option \"%.40s\"", argument);
    if (!takes_value(o->kind)) return equals ? mistake("option %s takes no value", o->name) : apply(s, o, NULL);
    if (equals) return apply(s, o, equals + 1);
    if (*index + 1 >= s->argument_count) return mistake("option %s needs a value", o->name);
    return apply(s, o, s->arguments[++*index]);
}

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

/* What no single option can see. */
static bool check_together(const settings *s)
{
    bool cuda = strncmp(s->device, "cuda", 4) == 0;
    if (!s->input) return mistake("no input; name a file, or - for stdin");
    if (s->exact && s->fast) return mistake("--exact and --fast exclude each other");
    if (s->exact && cuda)
        return mistake("--exact with --device %s: CUDA rounds in its own order; use --device cpu", s->device);
    if (s->negative_log && s->negative_log10) return mistake("--abc-neg-log and --abc-neg-log10 exclude each other");
    if (s->read.tab && s->read.format != IO_AUTO) return mistake("-use-tab names the nodes of a matrix");
    if (s->read.minimum_score > 0 && s->read.format != IO_AUTO) return mistake("--min-score is for STRING files");
    if (s->read.minimum_score > 0 && s->read.minimum_score < 1)
        return mistake("--min-score %g leaves out no pair: scores go from 0 to 1000", s->read.minimum_score);
    if (s->inflation_count > 1 && s->output && strcmp(s->output, "-") == 0)
        return mistake("several inflations cannot share stdout; use -o FILE");
    if (s->inflation_count > 1 && s->dump_stem && (s->dump_iterands || s->dump_clusters))
        return mistake("-dump-stem would give the dumps of several inflations one name; leave it out");
    return check_inflations(s);
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
    s->dump_modulo = 1;
    s->warn_percent = 10;
    s->warn_factor = 1000;
    s->argument_count = argc;
    s->arguments = argv;
    for (int i = 1; i < argc; i++)
        if (!parse_argument(s, &i)) return false;
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

/* ---- help ---------------------------------------------------------------------------------------------- */

void settings_print_options(void)
{
    puts("usage: mcl-gpu FILE|- [options]");
    for (int i = 0; i < OPTION_COUNT; i++) {
        const option *o = &options[i];
        if (o->kind == HEADING) {
            printf("\n%s:\n", o->name);
            continue;
        }
        char left[64];
        bool value = takes_value(o->kind);
        snprintf(left, sizeof left, "%s%s%s", o->name, value ? " " : "", value ? o->argument : "");
        if (o->help) printf("  %-24s %s\n", left, o->help);
        else printf("  %s\n", left);
    }
}
