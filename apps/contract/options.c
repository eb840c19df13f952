/* The command line of contract. */
#include <string.h>

#include "job.h"

/* ---- words ---------------------------------------------------------------------------------------------- */

static const char *const formats[] = {"auto",  "abc", "sif", "etc", "mcl", "mtx",    "string", "blast",
                                      "metis", "bin", "tsv", "csv", "npz", "graphml", "dimacs", NULL};
static const char *const label_formats[] = {"auto", "list", "pairs", "clusters", "mcl", NULL};
static const char *const combines[] = {"sum", "max", "min", "first", "mean", "count", NULL};
static const char *const all_loops[] = {"keep", "drop", "only", NULL};
static const char *const engines[] = {"auto", "fused", "product", NULL};
static const char *const unlabelled_words[] = {"error", "drop", "keep", NULL};
static const char *const unknown_words[] = {"error", "drop", NULL};
static const char *const value_words[] = {"f32", "f64", NULL};
static const char *const mpi_words[] = {"auto", "yes", "no", NULL}; /* as the enum */
static const char *const judge_words[] = {"line", "tsv", "json", NULL};
static const char *const repeats[] = {"never", "cluster", "matching", "two-hop", "hec", "lp", NULL};

const char *format_word(io_format format) { return formats[format]; }
const char *label_format_word(io_label_format format) { return label_formats[format]; }
const char *combine_word(sp_combine combine) { return combines[combine]; }
const char *loops_word(sp_loops loops) { return all_loops[loops]; }
const char *engine_word(contraction_engine engine) { return engines[engine]; }
const char *values_word(sp_value_type values) { return value_words[values]; }
const char *repeat_word(contract_repeat repeat) { return repeats[repeat]; }

#define mistake(...) usage_mistake("contract", __VA_ARGS__)

/* ---- the table ------------------------------------------------------------------------------------------ */

bool has_names(io_format format)
{
    return format == IO_ABC || format == IO_TSV || format == IO_CSV || format == IO_CSR ||
           format == IO_GRAPHML;
}

static bool parse_from(void *settings, const char *value)
{
    static const char *const known[] = {"abc",    "csv",   "sif",   "etc",    "mcl", "mtx",
                                        "string", "blast", "metis", "dimacs", "npz", "graphml",
                                        "bin",    NULL};
    static const io_format format[] = {IO_ABC,    IO_CSV,   IO_SIF,   IO_ETC,    IO_NATIVE, IO_MTX,
                                       IO_STRING, IO_BLAST, IO_METIS, IO_DIMACS, IO_NPZ,    IO_GRAPHML,
                                       IO_CSR};
    contract_options *o = settings;
    const int place = strcmp(value, "tsv") == 0 ? 0 : find_word(value, known);
    if (place < 0)
        return mistake("--from is one of abc, csv, sif, etc, mcl, mtx, string, blast, metis, dimacs, npz, graphml, bin "
                       "(got \"%.40s\")", value);
    o->from = format[place];
    return true;
}

static bool parse_to(void *settings, const char *value)
{
    static const char *const known[] = {"mtx", "abc", "tsv", "csv", "mcl", "metis", "dimacs", "npz", "graphml", "bin",
                                        NULL};
    static const io_format format[] = {IO_MTX, IO_ABC, IO_TSV, IO_CSV, IO_NATIVE, IO_METIS, IO_DIMACS, IO_NPZ,
                                       IO_GRAPHML, IO_CSR};
    contract_options *o = settings;
    const int place = find_word(value, known);
    if (place < 0)
        return mistake("--to is one of mtx, abc, tsv, csv, mcl, metis, dimacs, npz, graphml, bin (got \"%.40s\")",
                       value);
    o->to = format[place];
    return true;
}

static bool give_loops(void *settings, const char *value)
{
    ((contract_options *)settings)->loops_given = value != NULL;
    return true;
}

static bool take_file(void *settings, const char *text)
{
    contract_options *o = settings;
    if (!o->graph) o->graph = text;
    else if (!o->labels) o->labels = text;
    else return mistake("a third file \"%.40s\"", text);
    return true;
}

#define AT(place) .field = offsetof(contract_options, place)

static const option_row rows[] = {
    {"GRAPH", .help = "Matrix Market, label pairs, CSV, mcl, STRING, METIS, DIMACS, npz, GraphML; .gz .zst; - is stdin",
     .kind = OPTION_OPERAND},
    {"LABELS", .help = "LABEL a line, NODE LABEL a line, clusters as mcl writes them, or an array (.npy)",
     .kind = OPTION_OPERAND},
    {"-o", "FILE", "where to write, compressed if the name ends in .gz; - is stdout", OPTION_TEXT, AT(out),
     .once = true},
    {"--from", "FORMAT", "abc csv sif etc mcl mtx string blast metis dimacs npz graphml bin [by content, else abc]",
     OPTION_OWN, .then = parse_from},
    {"--to", "FORMAT", "mtx abc tsv csv mcl metis dimacs npz graphml bin [by the ending of OUT]", OPTION_OWN,
     .then = parse_to},
    {"--labels", "KIND", "list pairs clusters mcl [by content]", OPTION_WORD, AT(label_format),
     .words = label_formats + 1, .low = 1},
    {"--base", "0|1", "the first label, if a number [0 if one is 0, else 1]", OPTION_COUNT, AT(base),
     OPTION_RANGE(0, 1)},
    {"--node-base", "0|1", "the first node [as in GRAPH]", OPTION_COUNT, AT(node_base), OPTION_RANGE(0, 1),
     .beside = true},
    {"", .kind = OPTION_HEADING},
    {"--combine", "OP", "of edges that fall together: sum max min mean count first [sum]", OPTION_WORD, AT(combine),
     .words = combines},
    {"--loops", "MODE", "edges within a group: keep drop only [keep]", OPTION_WORD, AT(loops), .words = all_loops,
     .then = give_loops},
    {"--half-loops", NULL, "count them half: in undirected graphs each is there in both directions", OPTION_FLAG,
     AT(half_loops)},
    {"--undirected", NULL, "each edge of GRAPH stands for both directions", OPTION_FLAG, AT(undirected)},
    {"--directed", NULL, "for one [as its format]", OPTION_FLAG, AT(directed), .beside = true},
    {"--unlabelled", "MODE", "nodes without a label: error drop keep (a group each) [error]", OPTION_WORD,
     AT(unlabelled), .words = unlabelled_words},
    {"--unknown", "MODE", "labels of names that are not nodes: error drop [error]", OPTION_WORD, AT(unknown),
     .words = unknown_words},
    {"--compact", NULL, "leave out groups without nodes", OPTION_FLAG, AT(compact)},
    {"--names", NULL, "call a group by the name of its first node", OPTION_FLAG, AT(names), .beside = true},
    {"", .kind = OPTION_HEADING},
    {"--repeat", "HOW", "contract repeatedly, by: cluster (Markov clustering), matching (heavy edges), two-hop\n"
     "(also of nodes with a common neighbour), hec (groups along heavy edges), lp (label\n"
     "propagation); OUT.total.map, OUT.level1.map ... say where nodes went", OPTION_WORD, AT(repeat),
     .words = repeats + 1, .low = REPEAT_CLUSTER},
    {"--to-nodes", "N", "until N nodes are left", OPTION_COUNT, AT(to_nodes), OPTION_FROM(1)},
    {"--max-weight", "F", "greatest weight of a group [with --to-nodes twice the mean]", OPTION_NUMBER, AT(max_weight),
     OPTION_ABOVE(0), .beside = true},
    {"--levels", "N", "at most N levels [10, with --to-nodes 32]", OPTION_COUNT, AT(levels),
     OPTION_RANGE(1, MAX_LEVELS)},
    {"--inflation", "F", "of clusters [2]", OPTION_NUMBER, AT(inflation), OPTION_ABOVE_TO(0, 30), .beside = true},
    {"--seed", "N", "of choices [1]", OPTION_COUNT, AT(seed), OPTION_FROM(0), .beside = true},
    {"", .kind = OPTION_HEADING},
    {"--node-output", "FILE", "size, internal weight, cut and conductance of each group", OPTION_TEXT, AT(node_output),
     .once = true},
    {"--label-column", "NAME", "of LABELS, a table or GraphML", OPTION_TEXT, AT(label_column)},
    {"--edge-column", "NAME", "of weights", OPTION_TEXT, AT(edge_column), .beside = true},
    {"--node-column", "NAME", "of nodes there", OPTION_TEXT, AT(node_column), .beside = true},
    {"--attributes", "FILE", "of nodes, for --node-output", OPTION_TEXT, AT(attributes)},
    {"--node-weight", "COLUMN", "that weighs them", OPTION_TEXT, AT(node_weight), .beside = true},
    {"--node-weights", "FILE", "of weights", OPTION_TEXT, AT(node_weights), .beside = true},
    {"--combine-attributes", "RULES", "sum mean min max median first mode count, or COLUMN=RULE,... [mean, of texts "
                                      "mode]",
     OPTION_TEXT, AT(attribute_rules)},
    {"--judge", "FORM", "edge cut, modularity ... of the labels on stdout: line tsv json; without -o nothing else",
     OPTION_WORD, AT(judge), .words = judge_words, .low = JUDGE_LINE},
    {"--through", "MAP", "LABELS are of a coarse graph with this OUT.total.map", OPTION_TEXT, AT(through)},
    {"--label-output", "FILE", "those of GRAPH", OPTION_TEXT, AT(label_output), .once = true, .beside = true},
    {"--refine", "FILE", "labels with a lower edge cut", OPTION_TEXT, AT(refine), .once = true},
    {"--imbalance", "F", "of groups [the heaviest, or 0.03]", OPTION_NUMBER, AT(imbalance), OPTION_FROM(0),
     .beside = true},
    {"--report", "FILE", "what was done and how long it took, as JSON", OPTION_TEXT, AT(report), .once = true},
    {"--mpi", "HOW", "share with processes: auto yes no [auto]", OPTION_WORD, AT(mpi), .words = mpi_words,
     .beside = true},
    {"--values", "f32|f64", "weights and sums in single or double precision [f64]", OPTION_WORD, AT(values),
     .words = value_words},
    {"--quiet", NULL, "print nothing but errors", OPTION_FLAG, AT(quiet), .beside = true},
    {"--engine", "NAME", "auto, fused (one pass), product (two sparse products) [auto]", OPTION_WORD, AT(engine),
     .words = engines},
    {"--device", "NAME", "auto, cpu, cuda, cuda:N, cuda:all, cuda:0,cuda:1 [auto]", OPTION_DEVICES, AT(device)},
    {"--threads", "N", "[all]", OPTION_COUNT, AT(threads), OPTION_RANGE(1, 4096), .beside = true},
    {"--memory", "SIZE", "of work, e.g. 8G [what is free]", OPTION_BYTES, AT(memory)},
    {"--version", .kind = OPTION_VERSION, .beside = true},
    {"-h", .kind = OPTION_HELP, .beside = true},
    {"--help", .kind = OPTION_HELP, .beside = true},
};

static const command_line line = {"contract", {OPTION_LIST(rows)}, take_file, .mcl_syntax = false};

void contract_usage(FILE *stream)
{
    fputs("usage: contract GRAPH LABELS -o OUT [options]        the graph whose nodes are the labels of another's\n"
          "       contract GRAPH LABELS --judge line|tsv|json          how good the labels are\n"
          "       contract GRAPH -o OUT --repeat HOW [--to-nodes N] [options]       a hierarchy\n"
          "\n"
          "  mcl-gpu g.abc --abc -o c && contract g.abc c -o q.mtx\n"
          "\n", stream);
    options_help(&line, stream);
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static bool find_output_format(contract_options *o)
{
    static const struct {
        const char *ending;
        io_format format;
    } endings[] = {{".mtx", IO_MTX}, {".abc", IO_ABC}, {".tsv", IO_TSV}, {".csv", IO_CSV}, {".mci", IO_NATIVE},
                   {".mcl", IO_NATIVE}, {".metis", IO_METIS}, {".graph", IO_METIS}, {".bin", IO_CSR}, {".csr", IO_CSR},
                   {".gr", IO_DIMACS}, {".dimacs", IO_DIMACS}, {".npz", IO_NPZ}, {".graphml", IO_GRAPHML}};
    for (size_t i = 0; o->to == IO_AUTO && i < sizeof endings / sizeof *endings; i++)
        if (is_kind(o->out, endings[i].ending)) o->to = endings[i].format;
    return o->to != IO_AUTO ||
           mistake("the name \"%.40s\" does not tell the format of the output: give --to", o->out);
}

/* Options of hierarchies, which would do nothing for another. */
static bool check_repeat(contract_options *o)
{
    if (o->levels && o->repeat == REPEAT_NEVER) return mistake("--levels goes with --repeat");
    if (o->inflation > 0 && o->repeat != REPEAT_CLUSTER) return mistake("--inflation goes with --repeat cluster");
    if (o->seed >= 0 && o->repeat < REPEAT_MATCHING)
        return mistake("--seed goes with --repeat matching, two-hop, hec and lp");
    if (o->to_nodes && o->repeat == REPEAT_NEVER) return mistake("--to-nodes goes with --repeat");
    if (o->max_weight > 0 && o->repeat < REPEAT_MATCHING)
        return mistake("--max-weight goes with --repeat matching, two-hop, hec and lp");
    if (o->levels == 0) o->levels = o->to_nodes ? MAX_LEVELS : 10;
    if (o->inflation <= 0) o->inflation = 2;
    if (o->seed < 0) o->seed = 1;
    return true;
}

/* Options of the quotient graph, which is not made without -o. */
static bool check_judge(const contract_options *o)
{
    const char *idle = o->to != IO_AUTO                  ? "--to"
                       : o->loops != SP_LOOPS_KEEP       ? "--loops"
                       : o->half_loops                   ? "--half-loops"
                       : o->engine != CONTRACTION_AUTO   ? "--engine"
                       : o->repeat != REPEAT_NEVER       ? "--repeat"
                                                         : NULL;
    return !idle || mistake("%s is about the graph of the groups, which goes to -o FILE", idle);
}

static bool check_attributes(const contract_options *o)
{
    const char *const inputs[] = {o->graph, o->labels, o->attributes, o->through, o->node_weights};
    int standard = 0;
    for (int i = 0; i < 5; i++) standard += inputs[i] && strcmp(inputs[i], "-") == 0;
    if (standard > 1) return mistake("only one input can be standard input");
    if (o->attribute_rules && !o->attributes) return mistake("--combine-attributes goes with --attributes");
    if (o->node_weight && !o->attributes) return mistake("--node-weight goes with --attributes");
    if (o->node_weight && o->node_weights) return mistake("--node-weight and --node-weights exclude each other");
    if (o->attributes && !o->node_output && !o->node_weight)
        return mistake("--attributes goes with --node-output, which has their columns, or with --node-weight");
    return !o->attribute_rules || contract_check_rules(o->attribute_rules);
}

/* Labels are text or an array of NumPy. Refuses names with another ending. */
static bool check_label_file(const char *option, const char *path)
{
    static const char *const others[] = {".npz", ".mtx", ".graphml", ".graph", ".json", ".parquet", ".h5"};
    for (size_t i = 0; path && i < sizeof others / sizeof *others; i++)
        if (is_kind(path, others[i]))
            return mistake("%s writes labels as text, as a table (.csv) or as an array of NumPy (.npy), no %s (got "
                           "\"%.200s\")", option, others[i], path);
    return true;
}

static bool check_labels(const contract_options *o)
{
    if (o->through && !o->labels) return mistake("--through goes with LABELS, those of the nodes of the coarse graph");
    if (o->label_output && o->repeat != REPEAT_NEVER)
        return mistake("--label-output goes with LABELS: with --repeat OUT.total.map has the groups of the nodes");
    if (o->label_output && !o->labels) return mistake("--label-output goes with LABELS");
    if (o->label_output && o->refine) return mistake("--refine FILE has the labels: leave --label-output out");
    return check_label_file("--refine", o->refine) && check_label_file("--label-output", o->label_output);
}

static bool check_refine(const contract_options *o)
{
    if (o->imbalance >= 0 && !o->refine) return mistake("--imbalance goes with --refine");
    if (!o->refine) return true;
    if (!o->labels) return mistake("--refine goes with LABELS, which it makes better");
    if (o->directed) return mistake("--refine takes undirected graphs: leave --directed out");
    if (o->combine == SP_COMBINE_MEAN)
        return mistake("--refine adds the weights of edges up: leave --combine mean out");
    return true;
}

static bool check_columns(const contract_options *o)
{
    if (o->label_column && o->label_format != IO_LABELS_AUTO)
        return mistake("--label-column takes LABELS from a table: leave --labels out");
    return !o->label_column || o->labels || mistake("--label-column goes with LABELS, a table of nodes or GraphML");
}

static bool check_together(contract_options *o)
{
    if (!o->graph) return mistake("no graph");
    if (!check_columns(o)) return false;
    if (!check_attributes(o) || !check_refine(o) || !check_labels(o)) return false;
    if (o->directed && o->undirected) return mistake("--directed and --undirected exclude each other");
    if (!o->out && !o->judge && !o->refine && !o->label_output)
        return mistake("no output: give -o FILE, or --judge, --refine or --label-output");
    if (!o->labels && o->repeat == REPEAT_NEVER) return mistake("no labels: give a file of them, or --repeat");
    if (o->labels && o->repeat != REPEAT_NEVER)
        return mistake("--repeat makes its own labels: leave \"%.40s\" out", o->labels);
    if (o->repeat != REPEAT_NEVER && (o->combine == SP_COMBINE_MEAN || o->combine == SP_COMBINE_FIRST))
        return mistake("--combine %s of what is combined already has no meaning: it does not go with --repeat",
                       combine_word(o->combine));
    if (o->repeat != REPEAT_NEVER && o->out && strcmp(o->out, "-") == 0)
        return mistake("--repeat writes several files: -o takes the name of one");
    if (!check_repeat(o) || !(o->out ? find_output_format(o) : check_judge(o))) return false;
    if (!o->out) return true;
    o->loops_by_format = o->to == IO_METIS && !o->loops_given;
    if (o->loops_by_format) o->loops = SP_LOOPS_DROP;
    if (o->names && !has_names(o->to) && strcmp(o->out, "-") == 0)
        return mistake("--names with --to %s goes to OUT.tab, which standard output has none of: give -o FILE, or --to "
                       "abc, tsv, csv, graphml or bin", format_word(o->to));
    if (o->to == IO_METIS && o->loops == SP_LOOPS_ONLY)
        return mistake("--loops only leaves no edge that a METIS graph can have");
    return true;
}

options_outcome contract_parse(int argc, char **argv, contract_options *o)
{
    *o = (contract_options){.base = -1, .node_base = -1, .seed = -1, .imbalance = -1, .values = SP_F64,
                            .device = "auto"};
    const options_outcome outcome = options_parse(&line, argc, argv, o);
    return outcome == OPTIONS_RUN && !check_together(o) ? OPTIONS_MISTAKE : outcome;
}
