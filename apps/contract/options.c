/* The command line of contract. */
#include <string.h>

#include "job.h"

/* ---- words ---------------------------------------------------------------------------------------------- */

static const char *const formats[] = {"auto",   "abc",   "sif",   "etc", "mcl", "mtx",
                                      "string", "blast", "metis", "bin", "tsv", NULL};
static const char *const label_formats[] = {"auto", "list", "pairs", "clusters", "mcl", NULL};
static const char *const combines[] = {"sum", "max", "min", "first", "mean", "count", NULL};
static const char *const all_loops[] = {"keep", "drop", "only", NULL};
static const char *const engines[] = {"auto", "fused", "product", NULL};
static const char *const unlabelled_words[] = {"error", "drop", "keep", NULL};
static const char *const unknown_words[] = {"error", "drop", NULL};
static const char *const value_words[] = {"f32", "f64", NULL};
static const char *const repeats[] = {"never", "cluster", "matching", NULL};

const char *format_word(io_format format) { return formats[format]; }
const char *label_format_word(io_label_format format) { return label_formats[format]; }
const char *combine_word(sp_combine combine) { return combines[combine]; }
const char *loops_word(sp_loops loops) { return all_loops[loops]; }
const char *engine_word(contraction_engine engine) { return engines[engine]; }
const char *values_word(sp_value_type values) { return value_words[values]; }
const char *repeat_word(contract_repeat repeat) { return repeats[repeat]; }

void contract_usage(FILE *stream)
{
    fputs("usage: contract GRAPH LABELS -o OUT [options]        the graph whose nodes are the labels of another's\n"
          "       contract GRAPH -o OUT --repeat cluster|matching [--levels N] [options]\n"
          "\n"
          "  mcl-gpu g.abc --abc -o c && contract g.abc c -o q.mtx\n"
          "\n"
          "  GRAPH               Matrix Market, label pairs, mcl matrix, STRING, METIS ...; .gz .zst; - is stdin\n"
          "  LABELS              LABEL a line, or NODE LABEL a line, or clusters as mcl writes them\n"
          "  -o FILE             where to write; - is stdout\n"
          "  --from FORMAT       abc sif etc mcl mtx string blast metis bin [by content or ending, else abc]\n"
          "  --to FORMAT         mtx abc tsv mcl metis bin [by the ending of OUT]\n"
          "  --labels KIND       list pairs clusters mcl [by content]\n"
          "  --base 0|1          the first label, where labels are numbers [1]\n"
          "\n"
          "  --combine OP        of edges that fall together: sum max min mean count first [sum]\n"
          "  --loops MODE        edges within a group: keep drop only [keep]\n"
          "  --half-loops        count them half: in undirected graphs each is there in both directions\n"
          "  --undirected        each edge of GRAPH stands for both directions; --directed: for one [as its format]\n"
          "  --unlabelled MODE   nodes without a label: error drop keep (a group each) [error]\n"
          "  --unknown MODE      labels of what is no node: error drop [error]\n"
          "  --compact           leave out groups without nodes\n"
          "  --names             call a group by the name of its first node\n"
          "\n"
          "  --repeat HOW        contract again and again, by clusters of mcl or by a heavy-edge matching;\n"
          "                      OUT.level1.map, OUT.level2.map ... say where nodes went\n"
          "  --levels N          at most so often [10]; --inflation F of clusters [2]; --seed N of matchings [1]\n"
          "\n"
          "  --node-output FILE  size, internal weight, cut and conductance of each group\n"
          "  --report FILE       what was done and how long it took, as JSON\n"
          "  --values f32|f64    weights and sums in single or double precision [f64]\n"
          "  --quiet             say nothing but errors\n"
          "  --engine NAME       auto, fused (one pass), product (two sparse products) [auto]\n"
          "  --device NAME       auto, cpu, cuda, cuda:N [auto]\n"
          "  --threads N --memory SIZE   [all, what is free]\n"
          "  --version -h --help\n", stream);
}

#define mistake(...) usage_mistake("contract", __VA_ARGS__)

/* ---- values --------------------------------------------------------------------------------------------- */

/* Sets *chosen to the place of `value` among words, from `first` on. */
static bool choose(const char *option, const char *value, const char *const *words, int first, int *chosen)
{
    char list[128] = "";
    for (int i = first; words[i]; i++) {
        if (strcmp(value, words[i]) == 0) {
            *chosen = i;
            return true;
        }
        const size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", i > first ? ", " : "", words[i]);
    }
    return mistake("%s is one of %s (got \"%.40s\")", option, list, value);
}

static bool read_count(const char *option, const char *value, int64_t low, int64_t high, int64_t *number)
{
    if (read_integer(value, number) && *number >= low && *number <= high) return true;
    return mistake("%s takes a whole number from %lld to %lld (got \"%.40s\")", option, (long long)low,
                   (long long)high, value);
}

static bool can_be_written(io_format format)
{
    return format == IO_MTX || format == IO_ABC || format == IO_TSV || format == IO_NATIVE || format == IO_METIS ||
           format == IO_CSR;
}

bool has_names(io_format format) { return format == IO_ABC || format == IO_TSV || format == IO_CSR; }

static bool parse_formats(contract_options *o, const char *option, const char *value)
{
    int chosen;
    if (!choose(option, value, formats, 1, &chosen)) return false;
    if (strcmp(option, "--from") == 0) {
        if (chosen == IO_TSV) chosen = IO_ABC;
        o->from = (io_format)chosen;
        return true;
    }
    o->to = (io_format)chosen;
    return can_be_written(o->to) || mistake("--to is one of mtx, abc, tsv, mcl, metis, bin (got \"%.40s\")", value);
}

static bool parse_device(contract_options *o, const char *value)
{
    const size_t length = strlen(value);
    const bool numbered = strncmp(value, "cuda:", 5) == 0 && length > 5 && length <= 8 &&
                          strspn(value + 5, "0123456789") == length - 5;
    o->device = value;
    return numbered || strcmp(value, "auto") == 0 || strcmp(value, "cpu") == 0 || strcmp(value, "cuda") == 0 ||
           mistake("--device is one of auto, cpu, cuda, cuda:N (got \"%.40s\")", value);
}

static bool parse_words(contract_options *o, const char *option, const char *value, bool *known)
{
    int chosen = 0;
    bool good = false;
    *known = true;
    if (strcmp(option, "--from") == 0 || strcmp(option, "--to") == 0) return parse_formats(o, option, value);
    if (strcmp(option, "--labels") == 0) {
        if ((good = choose(option, value, label_formats, 1, &chosen))) o->label_format = (io_label_format)chosen;
    } else if (strcmp(option, "--combine") == 0) {
        if ((good = choose(option, value, combines, 0, &chosen))) o->combine = (sp_combine)chosen;
    } else if (strcmp(option, "--loops") == 0) {
        if ((good = choose(option, value, all_loops, 0, &chosen))) o->loops = (sp_loops)chosen;
    } else if (strcmp(option, "--unlabelled") == 0) {
        if ((good = choose(option, value, unlabelled_words, 0, &chosen))) o->unlabelled = (contract_unlabelled)chosen;
    } else if (strcmp(option, "--unknown") == 0) {
        if ((good = choose(option, value, unknown_words, 0, &chosen))) o->skip_unknown = chosen;
    } else if (strcmp(option, "--repeat") == 0) {
        if ((good = choose(option, value, repeats, 1, &chosen))) o->repeat = (contract_repeat)chosen;
    } else if (strcmp(option, "--values") == 0) {
        if ((good = choose(option, value, value_words, 0, &chosen))) o->values = (sp_value_type)chosen;
    } else if (strcmp(option, "--engine") == 0) {
        if ((good = choose(option, value, engines, 0, &chosen))) o->engine = (contraction_engine)chosen;
    } else {
        *known = false;
    }
    return good;
}

static bool parse_valued(contract_options *o, const char *option, const char *value)
{
    bool known;
    const bool good = parse_words(o, option, value, &known);
    if (known) return good;
    if (strcmp(option, "-o") == 0) return o->out = value, true;
    if (strcmp(option, "--node-output") == 0) return o->node_output = value, true;
    if (strcmp(option, "--report") == 0) return o->report = value, true;
    if (strcmp(option, "--base") == 0) return read_count(option, value, 0, 1, &o->base);
    if (strcmp(option, "--levels") == 0) return read_count(option, value, 1, MAX_LEVELS, &o->levels);
    if (strcmp(option, "--seed") == 0) return read_count(option, value, 0, INT64_MAX, &o->seed);
    if (strcmp(option, "--threads") == 0) return read_count(option, value, 1, 4096, &o->threads);
    if (strcmp(option, "--device") == 0) return parse_device(o, value);
    if (strcmp(option, "--inflation") == 0)
        return (read_number(value, &o->inflation) && o->inflation > 0 && o->inflation <= 30) ||
               mistake("--inflation takes a number above 0 and at most 30 (got \"%.40s\")", value);
    return read_bytes(value, &o->memory) ||
           mistake("--memory takes a size such as 8G or 500M (got \"%.40s\")", value);
}

static bool parse_flag(contract_options *o, const char *option)
{
    if (strcmp(option, "--half-loops") == 0) return o->half_loops = true;
    if (strcmp(option, "--compact") == 0) return o->compact = true;
    if (strcmp(option, "--names") == 0) return o->names = true;
    if (strcmp(option, "--quiet") == 0) return o->quiet = true;
    if (strcmp(option, "--directed") == 0) return o->directed = true;
    if (strcmp(option, "--undirected") == 0) return o->undirected = true;
    return false;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static bool find_output_format(contract_options *o)
{
    static const struct {
        const char *ending;
        io_format format;
    } endings[] = {{".mtx", IO_MTX}, {".abc", IO_ABC}, {".tsv", IO_TSV}, {".mci", IO_NATIVE}, {".mcl", IO_NATIVE},
                   {".metis", IO_METIS}, {".graph", IO_METIS}, {".bin", IO_CSR}, {".csr", IO_CSR}};
    for (size_t i = 0; o->to == IO_AUTO && i < sizeof endings / sizeof *endings; i++)
        if (ends_with(o->out, endings[i].ending)) o->to = endings[i].format;
    if (ends_with(o->out, ".gz") || ends_with(o->out, ".zst"))
        return mistake("outputs are not compressed: pipe -o - to gzip or zstd (got \"%.40s\")", o->out);
    return o->to != IO_AUTO ||
           mistake("the name \"%.40s\" does not tell the format of the output: give --to", o->out);
}

/* Options of hierarchies, which would do nothing for another. */
static bool check_repeat(contract_options *o)
{
    if (o->levels && o->repeat == REPEAT_NEVER) return mistake("--levels goes with --repeat");
    if (o->inflation > 0 && o->repeat != REPEAT_CLUSTER) return mistake("--inflation goes with --repeat cluster");
    if (o->seed >= 0 && o->repeat != REPEAT_MATCHING) return mistake("--seed goes with --repeat matching");
    if (o->levels == 0) o->levels = 10;
    if (o->inflation <= 0) o->inflation = 2;
    if (o->seed < 0) o->seed = 1;
    return true;
}

static bool check_together(contract_options *o)
{
    if (!o->graph) return mistake("no graph");
    if (o->directed && o->undirected) return mistake("--directed and --undirected exclude each other");
    if (!o->out) return mistake("no output: give -o FILE");
    if (!o->labels && o->repeat == REPEAT_NEVER) return mistake("no labels: give a file of them, or --repeat");
    if (o->labels && o->repeat != REPEAT_NEVER)
        return mistake("--repeat makes its own labels: leave \"%.40s\" out", o->labels);
    if (o->labels && strcmp(o->labels, "-") == 0 && strcmp(o->graph, "-") == 0)
        return mistake("the graph and the labels cannot both be standard input");
    if (o->repeat != REPEAT_NEVER && (o->combine == SP_COMBINE_MEAN || o->combine == SP_COMBINE_FIRST))
        return mistake("--combine %s of what is combined already has no meaning: it does not go with --repeat",
                       combine_word(o->combine));
    if (o->repeat != REPEAT_NEVER && strcmp(o->out, "-") == 0)
        return mistake("--repeat writes several files: -o takes the name of one");
    if (!check_repeat(o) || !find_output_format(o)) return false;
    if (o->names && !has_names(o->to) && strcmp(o->out, "-") == 0)
        return mistake("--names with --to %s goes to OUT.tab, which standard output has none of: give -o FILE, or --to "
                       "abc, tsv or bin", format_word(o->to));
    if (o->to == IO_METIS && o->loops == SP_LOOPS_ONLY)
        return mistake("--loops only leaves no edge that a METIS graph can have");
    return true;
}

/* The value of an option: what follows '=' or the next argument. */
static bool take_value(int argc, char **argv, int *i, const char *name, const char **value)
{
    const char *equals = strchr(argv[*i], '=');
    if (argv[*i][1] == '-' && equals) {
        *value = equals + 1;
        return true;
    }
    if (*i + 1 >= argc) return mistake("%s needs a value", name);
    *value = argv[++*i];
    return true;
}

static bool parse_argument(int argc, char **argv, int *i, bool files, contract_options *o)
{
    static const char *const valued[] = {"-o",        "--from",      "--to",         "--labels",      "--base",
                                         "--combine", "--loops",     "--unlabelled", "--unknown",     "--repeat",
                                         "--levels",  "--inflation", "--seed",       "--node-output", "--report",
                                         "--engine",  "--device",    "--threads",    "--memory",      "--values"};
    const char *option = argv[*i], *value = NULL;
    const size_t length = strncmp(option, "--", 2) == 0 ? strcspn(option, "=") : strlen(option);
    if (files || option[0] != '-' || option[1] == '\0') {
        if (!o->graph) o->graph = option;
        else if (!o->labels) o->labels = option;
        else return mistake("a third file \"%.40s\"", option);
        return true;
    }
    for (size_t k = 0; k < sizeof valued / sizeof *valued; k++)
        if (strlen(valued[k]) == length && strncmp(option, valued[k], length) == 0)
            return take_value(argc, argv, i, valued[k], &value) && parse_valued(o, valued[k], value);
    return parse_flag(o, option) || mistake("unknown option \"%.40s\"", option);
}

contract_request contract_parse(int argc, char **argv, contract_options *o)
{
    bool files = false;
    *o = (contract_options){.base = 1, .seed = -1, .values = SP_F64, .device = "auto"};
    for (int i = 1; i < argc; i++) {
        if (!files && (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)) return CONTRACT_HELP;
        if (!files && strcmp(argv[i], "--version") == 0) return CONTRACT_VERSION;
        if (!files && strcmp(argv[i], "--") == 0) files = true;
        else if (!parse_argument(argc, argv, &i, files, o)) return CONTRACT_MISTAKE;
    }
    return check_together(o) ? CONTRACT_RUN : CONTRACT_MISTAKE;
}
