/* Readers and writers: every format, every refusal with its line, compression, the parallel reader against itself,
 * numbers against strtod, mcl's native text byte for byte, failing allocations and failing files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "internal.h"
#include "support.h"

static const io_read_options automatic = {.format = IO_AUTO};

static io_read_options as(io_format format) { return (io_read_options){.format = format}; }

static io_read_options lenient(io_format format) { return (io_read_options){.format = format, .lenient = true}; }

/* Reads in blocks of so many bytes, each arc with its tail. */
static sp_status read_spread(sp_context *context, const void *bytes, size_t count, const io_read_options *options,
                             size_t block, io_graph *graph)
{
    sp_status status = io_read_memory(context, "in", bytes, count, options, block, graph);
    return status == SP_OK ? io_graph_spread(context, graph) : status;
}

static io_graph read_bytes(sp_context *context, const void *bytes, size_t count, io_read_options options)
{
    io_graph graph;
    ck_ok(context, read_spread(context, bytes, count, &options, 0, &graph));
    return graph;
}

static io_graph read_text(sp_context *context, const char *text, io_read_options options)
{
    return read_bytes(context, text, strlen(text), options);
}

/* The graph as text: "tail>head:weight ..." by label where there are labels, by id otherwise. */
static const char *arcs_of(const io_graph *graph)
{
    static char text[4096];
    size_t at = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < graph->arcs; i++) {
        int64_t ends[2] = {graph->tails[i], graph->heads[i]};
        for (int k = 0; k < 2; k++) {
            if (graph->names.count)
                at += (size_t)snprintf(text + at, sizeof text - at, "%.*s",
                                       (int)io_name_length(&graph->names, ends[k]),
                                       io_name(&graph->names, ends[k]));
            else
                at += (size_t)snprintf(text + at, sizeof text - at, "%lld",
                                       (long long)(graph->ids ? graph->ids[ends[k]] : ends[k]));
            at += (size_t)snprintf(text + at, sizeof text - at, k ? ":" : ">");
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "%.9g%s", io_arc_weight(graph, i),
                               i + 1 < graph->arcs ? " " : "");
        ck_assert_uint_lt(at, sizeof text - 100);
    }
    return text;
}

static void expect_arcs(const char *text, io_read_options options, const char *arcs, int64_t nodes)
{
    sp_context *context = test_context(0, 2);
    io_graph graph = read_text(context, text, options);
    ck_assert_str_eq(arcs_of(&graph), arcs);
    ck_assert_int_eq(graph.nodes, nodes);
    io_graph_free(context, &graph);
    sp_context_destroy(context);
}

static void expect_failure(const void *bytes, size_t count, io_read_options options, const char *beginning)
{
    sp_context *context = test_context(0, 2);
    io_graph graph;
    sp_status status = io_read_memory(context, "in", bytes, count, &options, 0, &graph);
    ck_assert_msg(status != SP_OK, "accepted: %.100s", (const char *)bytes);
    ck_assert_msg(strncmp(sp_last_error(context), beginning, strlen(beginning)) == 0, "\"%s\" instead of \"%s...\"",
                  sp_last_error(context), beginning);
    ck_assert_ptr_null(graph.tails);
    ck_assert_int_eq(graph.nodes, 0);
    sp_context_destroy(context);
}

static void expect_error(const char *text, io_read_options options, const char *beginning)
{
    expect_failure(text, strlen(text), options, beginning);
}

/* ---- what a file begins with ---------------------------------------------------------------------------- */

#define MARK "\xef\xbb\xbf"

TEST(a_byte_order_mark_is_no_part_of_the_text)
{
    expect_arcs(MARK "a b 2\nb a 3\n", as(IO_ABC), "a>b:2 b>a:3", 2);
    expect_arcs(MARK "a b 2\n" MARK "a b 3\n", as(IO_ABC), "a>b:2 " MARK "a>b:3", 3);
    expect_arcs(MARK "a b 2\n", lenient(IO_ABC), MARK "a>b:2", 2);
    expect_arcs(MARK "a\tb\n", automatic, "a>b:1", 2);
    expect_arcs(MARK "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n", automatic, "1>0:1", 2);
    expect_arcs(MARK "protein1 protein2 combined_score\na b 700\n", automatic, "a>b:700", 2);
    expect_arcs(MARK "2 1\n2\n1\n", as(IO_METIS), "0>1:1 1>0:1", 2);
    expect_arcs(MARK, as(IO_ABC), "", 0);
    expect_arcs("\xef\xbb", as(IO_ETC), "", 1);
    expect_error(MARK "a\n", as(IO_ABC), "in:1: one field where two labels are expected");
    char *text = malloc(200004);
    ck_assert_ptr_nonnull(text);
    memcpy(text, MARK, 3);
    for (int i = 0; i < 20000; i++) snprintf(text + 3 + 10 * i, 11, "%04d %04d\n", i % 100, i / 100);
    sp_context *context = test_context(0, 2);
    io_graph with = read_text(context, text, as(IO_ABC)), without = read_text(context, text + 3, as(IO_ABC));
    ck_assert_int_eq(with.arcs, 20000);
    ck_assert_int_eq(with.nodes, without.nodes);
    ck_assert_mem_eq(with.heads, without.heads, (size_t)with.arcs * sizeof *with.heads);
    io_graph_free(context, &with);
    io_graph_free(context, &without);
    sp_context_destroy(context);
    free(text);
}

TEST(compression_that_is_not_read_is_named)
{
    static const char xz[] = "\xfd" "7zXZ\0\0\4", bzip2[] = "BZh91AY&SY\x12", zip[] = "PK\3\4\x14\0\0";
    const io_read_options all[] = {as(IO_AUTO), as(IO_ABC), lenient(IO_ABC), as(IO_MTX)};
    for (size_t i = 0; i < COUNT(all); i++) {
        expect_failure(xz, sizeof xz, all[i], "in: compressed by xz, which is not read; unpack it first");
        expect_failure(bzip2, sizeof bzip2, all[i], "in: compressed by bzip2, which is not read; unpack it first");
        expect_failure(zip, sizeof zip, all[i], "in: a zip archive, which is not read here; unpack it first");
    }
    expect_arcs("BZh9 b\nPK b\n", as(IO_ABC), "BZh9>b:1 PK>b:1", 3);
}

TEST(text_of_other_systems_is_named)
{
    static const char little[] = "\xff\xfe" "a\0 \0b\0\n", big[] = "\xfe\xff\0a\0 \0b\0\n";
    static const char mac[] = "a b 1\rb c 2\r";
    const io_read_options all[] = {as(IO_AUTO), as(IO_ABC), as(IO_SIF), as(IO_METIS)};
    for (size_t i = 0; i < COUNT(all); i++) {
        expect_failure(little, sizeof little - 1, all[i], "in: text in UTF-16, which is not read; save it as UTF-8");
        expect_failure(big, sizeof big - 1, all[i], "in: text in UTF-16, which is not read; save it as UTF-8");
        expect_error(mac, all[i], "in: its lines end with CR alone");
    }
    expect_arcs(mac, lenient(IO_ABC), "a>b:1", 2);
    expect_arcs("a b 1\r", as(IO_ABC), "a>b:1", 2);
    expect_arcs("a b 2\rc d\n", as(IO_ABC), "a>b:2", 2);
}

TEST(hits_read_as_pairs_are_seen)
{
#define HIT "q\ts\t90.5\t100\t1\t0\t1\t100\t1\t100\t1e-5\t 50\n"
    static const struct {
        const char *text;
        bool hits;
    } cases[] = {{HIT, true},
                 {"# BLASTP\n\n# Fields\n" HIT, true},
                 {"q\ts\t90\t100\t1\t0\t1\t100\t1\t100\t1e-5\t50\tmore\r\n", true},
                 {"q\ts\t90\t100\t1\t0\t1\t100\t1\t100\t1e-5\n", false},
                 {"q\ts\t90\tx\t1\t0\t1\t100\t1\t100\t1e-5\t50\n", false},
                 {"q\ts\t90\t\t1\t0\t1\t100\t1\t100\t1e-5\t50\n", false},
                 {"q\ts\t90\n" HIT, false},
                 {"# nothing", false}};
    sp_context *context = test_context(0, 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        io_graph graph = read_text(context, cases[i].text, as(IO_ABC));
        ck_assert_msg(graph.blast_hits == cases[i].hits, "%s", cases[i].text);
        io_graph_free(context, &graph);
    }
    io_read_options blast = as(IO_BLAST);
    io_graph graph = read_text(context, HIT, blast);
    ck_assert(!graph.blast_hits);
    io_graph_free(context, &graph);
    sp_context_destroy(context);
#undef HIT
}

/* What follows a NUL byte is not looked at, whether it has been read or not: a tab would make other fields. */
CONTEXT_TEST(what_is_wrong_before_a_nul_byte_does_not_depend_on_blocks, 0, 2)
{
    static const struct {
        const char *text;
        size_t count;
        const char *error;
    } cases[] = {{"a b\nc d e f\0 g\th\n", 17, "in:2: the weight is not a number (got \"e\")"},
                 {"a b\nc d 1\0 g\th\n", 15, "in:2: the line holds a NUL byte"},
                 {"a b\nc\0 d\te\n", 12, "in:2: the line holds a NUL byte"}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t block = 0; block < 24; block++) {
            const io_read_options options = as(IO_ABC);
            io_graph graph;
            ck_assert_int_ne(io_read_memory(context, "in", cases[i].text, cases[i].count, &options, block, &graph),
                             SP_OK);
            test_expect(strncmp(sp_last_error(context), cases[i].error, strlen(cases[i].error)) == 0,
                        "\"%s\" instead of \"%s\", blocks of %zu", sp_last_error(context), cases[i].error, block);
        }
}

TEST(names_decide_where_the_content_does_not)
{
    static const struct {
        const char *name, *text;
        io_format format;
    } cases[] = {{"g.graph", "2 1\n2\n1\n", IO_METIS},
                 {"g.metis.gz", "2 1\n2\n1\n", IO_METIS},
                 {"g.graph", "%%MatrixMarket matrix coordinate pattern general\n2 2 0\n", IO_MTX},
                 {".graph", "2 1\n2 1\n", IO_ABC},
                 {"graph", "2 1\n2 1\n", IO_ABC},
                 {"g.txt", "3 3\n2 3\n1 3\n1 2\n", IO_METIS},
                 {"g.abc", "3 3\n2 3\n1 3\n1 2\n", IO_ABC},
                 {"g.tsv.gz", "3 3\n2 3\n1 3\n1 2\n", IO_ABC},
                 {"g.csv.zst", "3 3\n2 3\n1 3\n1 2\n", IO_ABC},
                 {"g.abc.xz", "3 3\n2 3\n1 3\n1 2\n", IO_METIS},
                 {"g.abc", "", IO_ABC}};
    const io_read_options strict = {.refuse_others = true};
    sp_context *context = test_context(0, 2);
    io_graph graph;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *name = cases[i].name, *text = cases[i].text;
        ck_ok(context, io_read_memory(context, name, text, strlen(text), &automatic, 0, &graph));
        ck_assert_int_eq(graph.format, cases[i].format);
        io_graph_free(context, &graph);
    }
    ck_assert_int_ne(io_read_memory(context, "g.graph", "a b\n", 4, &automatic, 0, &graph), SP_OK);
    ck_assert_str_eq(sp_last_error(context), "g.graph:1: no header of a METIS graph (got \"a b\"); write NODES EDGES "
                                             "[FORMAT [CONSTRAINTS]], e.g. 100 250 001");
    sp_context_destroy(context);
    expect_error("a b\n", strict, "in: not a matrix and not a STRING file; for label pairs give --abc, for "
                                 "BLAST tables --blast bits");
    expect_error("2 1\n2 1\n", strict, "in: not a matrix and not a STRING file");
    expect_error("", strict, "in: the file is empty");
}

/* ---- label triples -------------------------------------------------------------------------------------- */

TEST(abc_reads_labels_in_order_of_first_appearance)
{
    expect_arcs("b a 1\na c 2.5\n", as(IO_ABC), "b>a:1 a>c:2.5", 3);
    expect_arcs("# comment\n\n  # another\n \t \n", as(IO_ABC), "", 0);
}

TEST(abc_splits_at_tabs_if_there_are_any)
{
    expect_arcs("a b\tc d\t0.5\n", as(IO_ABC), "a b>c d:0.5", 2);
    expect_arcs("a\t\tb\t3\na\t c\t4\textra", as(IO_ABC), "a>b:3 a>c:4", 3);
    expect_arcs("a  b \t 3\r\n", as(IO_ABC), "a  b >3:1", 2);
    expect_arcs(" a \v b\f7 8 9\n", as(IO_ABC), "a>b:7", 2);
}

TEST(abc_takes_a_missing_weight_as_one_and_zero_as_no_arc)
{
    expect_arcs("a b\na\tb\t\nc d 0\ne e 2\n", as(IO_ABC), "a>b:1 a>b:1 e>e:2", 5);
}

TEST(abc_ends_a_line_at_cr_lf_and_the_last_one_anywhere)
{
    expect_arcs("a\tb\r\nb c 2\r\nc\td\t3", as(IO_ABC), "a>b:1 b>c:2 c>d:3", 4);
}

TEST(abc_strict_refuses_odd_lines_by_number)
{
    expect_error("a b 1\nbroken\n", as(IO_ABC), "in:2: one field where two labels are expected, with a tab or blank "
                                                 "between them (got \"broken\")");
    expect_error("\ta b 1\n", as(IO_ABC), "in:1: one field where two tab-separated labels are expected");
    expect_error("a b 1\n\n\na b 3\t\n", as(IO_ABC), "in:4: one field where two tab-separated labels");
    expect_error("a b x1\n", as(IO_ABC), "in:1: the weight is not a number (got \"x1\")");
    expect_error("a b nan\n", as(IO_ABC), "in:1: the weight is not a number (got \"nan\")");
    expect_error("a b inf\n", as(IO_ABC), "in:1: the weight is not a number");
    expect_error("a b 0x10\n", as(IO_ABC), "in:1: the weight is not a number");
    expect_error("a b 1,5\n", as(IO_ABC), "in:1: the weight is not a number");
    expect_error("a b 3e\n", as(IO_ABC), "in:1: the weight is not a number");
    expect_error("a b 1e39\n", as(IO_ABC), "in:1: the weight is too large");
    expect_error("a b 1e400\n", as(IO_ABC), "in:1: the weight is too large");
    expect_error("#\na b 1\na b -3\n", as(IO_ABC), "in:3: the weight is negative (got \"-3\")");
    expect_failure("a b 1\na\0c b 2\n", 14, as(IO_ABC), "in:2: the line holds a NUL byte");
}

TEST(abc_messages_cut_and_escape_what_they_quote)
{
    expect_error("a b \x01\x7f\xc3\xa9x\n", as(IO_ABC),
                 "in:1: the weight is not a number (got \"\\x01\\x7f\\xc3\\xa9x\"); write a decimal number, and no "
                 "heading");
    expect_error("a b 0123456789012345678901234567890123456789!!\n", as(IO_ABC),
                 "in:1: the weight is not a number (got \"0123456789012345678901234567890123456789...\");");
    char text[600];
    memset(text, '\x02', sizeof text);
    memcpy(text, "a b ", 4);
    expect_failure(text, sizeof text, as(IO_ABC), "in:1: the weight is not a number (got \"\\x02\\x02");
}

CONTEXT_TEST(abc_lenient_does_as_mcl_and_counts, 0, 1)
{
    io_graph graph =
        read_text(context, "a b nan\nbroken\na b 3.5abc\na b -2\na b 1e39\nd e 0x10\nd e 0xg\nd e 2e+\nc d 7\n",
                  lenient(IO_ABC));
    ck_assert_str_eq(arcs_of(&graph), "a>b:1 a>b:3.5 a>b:-2 a>b:1 d>e:16 d>e:1 d>e:2 c>d:7");
    ck_assert_int_eq(graph.lines, 9);
    ck_assert_int_eq(graph.odd_lines, 8);
    ck_assert_int_eq(graph.negative, 1);
    io_graph_free(context, &graph);

    const char nul[] = "x\0y z 3\0 4\na b 1\n";
    graph = read_bytes(context, nul, sizeof nul - 1, lenient(IO_ABC));
    ck_assert_str_eq(arcs_of(&graph), "xy>z:3 a>b:1");
    ck_assert_int_eq(graph.odd_lines, 1);
    io_graph_free(context, &graph);
}

static double scale(void *user, double weight) { return *(double *)user * weight; }

TEST(transforms_apply_in_f64_before_the_weight_is_checked)
{
    double factor = 1e-300;
    io_read_options options = {.format = IO_ABC, .transform = scale, .transform_user = &factor};
    expect_arcs("a b 1e300\n", options, "a>b:1", 2);
    factor = -2;
    expect_arcs("a b -3\n", options, "a>b:6", 2);
    expect_error("a b 3\n", options, "in:1: the weight after its transformation is negative (got \"3\")");
    factor = 1e200;
    expect_error("a b 3\n", options, "in:1: the weight after its transformation is not finite");
    factor = 0;
    expect_arcs("a b 3\n", options, "", 2);
}

/* ---- SIF, ETC, STRING, BLAST ---------------------------------------------------------------------------- */

TEST(sif_and_etc_fan_out_from_the_first_label)
{
    expect_arcs("a pp b c\td\n#x pp y\ne\nf pp b #c d\n", as(IO_SIF), "a>b:1 a>c:1 a>d:1 f>b:1", 6);
    expect_arcs("a b\tc\nd\r\n", as(IO_ETC), "a>b:1 a>c:1", 4);
    expect_error("a pp b\nc pp\n", as(IO_SIF), "in:2: a relation without a target");
    expect_arcs("a pp b\nc pp\n", lenient(IO_SIF), "a>b:1", 3);
}

TEST(expected_values_follow_a_colon)
{
    io_read_options options = {.format = IO_SIF, .expect_values = true};
    expect_arcs("a:2 pp b:3 c:4.5 d e:0\n", options, "a:2>b:3 a:2>c:4.5 a:2>d:1", 5);
    expect_error("a pp b:x\n", options, "in:1: a target does not have the form LABEL:VALUE (got \"b:x\")");
    expect_error("a pp b:3x\n", options, "in:1: a target does not");
    expect_error("a pp b:\n", options, "in:1: a target does not");
    expect_error("a pp :3\n", options, "in:1: a target does not");
    expect_error("a pp b:c:3\n", options, "in:1: a target does not");
    expect_error("a pp b:-3\n", options, "in:1: the weight is negative");
    options.lenient = true;
    expect_arcs("a pp b:3x c: :3 b::3 b:q d:nan\n", options, "a>b:3 a>x:1 a>c::1 a>:3:1 a>b::3:1 a>b:q:1 a>d:1", 8);
    expect_arcs("a pp:2c b: \t3 d:3ef:4 g:2e1e\n", options, "a>c:1 a>b:3 a>d:3 a>f:4 a>g:20 a>e:1", 7);
}

TEST(string_links_are_found_by_their_header)
{
    const char *text = "protein1 protein2 experiments combined_score\nA B 10 900\nB A 10 900\nA C 0 150\nD E 7 400\n";
    expect_arcs(text, automatic, "A>B:900 B>A:900 A>C:150 D>E:400", 5);
    io_read_options options = {.format = IO_STRING, .minimum_score = 400};
    expect_arcs(text, options, "A>B:900 B>A:900 D>E:400", 4);
    options = (io_read_options){.format = IO_STRING, .score_column = "experiments"};
    expect_arcs(text, options, "A>B:10 B>A:10 D>E:7", 5);
    options.score_column = "fusion";
    expect_error(text, options, "in:1: the header does not have the score column");
    expect_error("a b 3\n", as(IO_STRING), "in:1: no header of a STRING links file");
    expect_error("", as(IO_STRING), "in:1: no header");
    expect_error("protein1 protein2 x\nA B 1\nA C\n", as(IO_STRING), "in:3: fewer columns than the header has");
    expect_error("protein1 protein2 x\nA B y\n", as(IO_STRING), "in:2: the weight is not a number");
    expect_arcs("protein1 protein2 x\nA B 1\nA C\n", lenient(IO_STRING), "A>B:1", 2);
}

TEST(string_scores_are_transformed_after_the_cutoff)
{
    const char *text = "protein1 protein2 combined_score\nA B 900\nA C 150\nD E 400\n";
    double factor = 0.01;
    io_read_options options = {.minimum_score = 400, .transform = scale, .transform_user = &factor};
    expect_arcs(text, options, "A>B:9 D>E:4", 4);
    factor = 1e4; /* a pair below stays below */
    expect_arcs(text, options, "A>B:9000000 D>E:4000000", 4);
    factor = 0; /* no edge, but nodes */
    expect_arcs(text, options, "", 4);
    factor = -1;
    expect_error(text, options, "in:2: the weight after its transformation is negative (got \"900\")");
    expect_arcs("protein1 protein2 x\nA B 700.1\n",
                (io_read_options){.format = IO_STRING, .minimum_score = 700.1}, "A>B:700.099976", 2);
}

static io_read_options blast(io_blast_score score) { return (io_read_options){.format = IO_BLAST, .blast = score}; }

TEST(blast_tables_offer_three_scores)
{
    const char *text = "# comment\n"
                       "q1\ts1\t27.5\t334\t229\t10\t117\t445\t98\t423\t1e-38\t 141\n"
                       "q1\tq1\t100\t334\t0\t0\t1\t334\t1\t334\t0.0\t700\n"
                       "q2\ts2\t20\t33\t2\t0\t1\t33\t1\t33\t2.5\t20.1\textra\r\n";
    expect_arcs(text, blast(IO_BLAST_BITS), "q1>s1:141 q1>q1:700 q2>s2:20.1000004", 4);
    expect_arcs(text, blast(IO_BLAST_EVALUE), "q1>s1:38 q1>q1:200", 4);
    expect_arcs(text, blast(IO_BLAST_IDENTITY), "q1>s1:27.5 q1>q1:100 q2>s2:20", 4);
    expect_error("q1\ts1\t27.5\n", blast(IO_BLAST_BITS), "in:1: fewer than 12 tab-separated columns");
    expect_error("a\tb\t1\t1\t1\t1\t1\t1\t1\t1\tx\t9\n", blast(IO_BLAST_EVALUE), "in:1: the E-value (column 11)");
    expect_error("a\tb\t1\t1\t1\t1\t1\t1\t1\t1\t1\t-9\n", blast(IO_BLAST_BITS), "in:1: the bit score (column 12)");
    expect_error("a\tb\t\t1\t1\t1\t1\t1\t1\t1\t1\t9\n", blast(IO_BLAST_IDENTITY), "in:1: the identity (column 3)");
    expect_error("\n\tb\t1\t1\t1\t1\t1\t1\t1\t1\t1\t9\n", blast(IO_BLAST_BITS), "in:2: the query is empty");
    expect_error("a\t\t1\t1\t1\t1\t1\t1\t1\t1\t1\t9\n", blast(IO_BLAST_BITS), "in:1: the subject is empty");
    expect_arcs("a\tb\n", lenient(IO_BLAST), "", 0);
}

TEST(blast_scores_are_transformed_as_weights)
{
    const char *text = "q1\ts1\t27.5\t1\t1\t1\t1\t1\t1\t1\t1e-38\t 141\n"
                       "q2\ts2\t20\t1\t1\t1\t1\t1\t1\t1\t2.5\t20\n";
    double factor = 0.5;
    io_read_options options = {.format = IO_BLAST, .transform = scale, .transform_user = &factor};
    expect_arcs(text, options, "q1>s1:70.5 q2>s2:10", 4);
    options.blast = IO_BLAST_EVALUE;
    expect_arcs(text, options, "q1>s1:19", 4);
    factor = 0;
    expect_arcs(text, options, "", 4);
    factor = -1;
    expect_error(text, options, "in:1: the weight after its transformation is negative (got \"1e-38\")");
    options.any_sign = true;
    expect_arcs(text, options, "q1>s1:-38", 4);
}

TEST(transforms_as_weights_are_read_are_for_labels)
{
    double factor = 2;
    const io_read_options options = {.transform = scale, .transform_user = &factor};
    expect_error("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 3\n", options,
                 "in: Matrix Market, and -abc-tf");
    expect_error("2 1 1\n2 3\n1 3\n", options, "in: METIS, and -abc-tf");
    expect_arcs("(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mclmatrix\nbegin\n0 1:3 $\n)\n", options, "0>1:3", 2);
}

/* ---- native --------------------------------------------------------------------------------------------- */

#define HEADER "(mclheader\nmcltype matrix\ndimensions 3x3\n)\n"

TEST(native_text_is_read_as_it_occurs_in_the_wild)
{
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 1:2 2 $\n1 0:3 $\n2 2 $\n)\n", automatic, "0>1:2 0>2:1 1>0:3 2>2:1", 3);
    expect_arcs("(mclheader\nmcltype matrix\ndimensions 3x3\n)\n\n(mclmatrix\nbegin\n\n0    1:0.5  $\n2    0:0.5   "
                "2:1.0  $\n)\n",
                automatic, "0>1:0.5 2>0:0.5 2>2:1", 3);
    expect_arcs("# cline: mcl\n\n" HEADER "# y\n(mclmatrix\nbegin\n0 1 # 2 $\n 2 $ 1 0\n  2$\n)", automatic,
                "0>1:1 0>2:1 1>0:1 1>2:1", 3);
    expect_arcs(
        "(mclheader\nfoo bar baz\ndimensions\t3x3\nmcltype   matrix\n)\n(mclmatrix\nbegin\n2:7 1: 2 0 :3 $\n)",
        automatic, "2>0:3 2>1:2", 3);
    expect_arcs("(mclheader\nmcltype matrix\ndimensions 0x0\n)\n(mclmatrix\nbegin\n)\n", automatic, "", 0);
}

TEST(native_repetitions_and_zeros_are_settled_as_mcl_does)
{
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 2:2 1:5 2:9 1:7 $\n1 0:0 2:1 $\n0 1:8 $\n)\n", automatic,
                "0>1:5 0>2:2 1>2:1 0>1:8", 3);
}

CONTEXT_TEST(native_columns_of_endless_repetition_keep_their_first_entries, 0, 1)
{
    enum { ROUNDS = 40000 };
    char *text = malloc(200 + ROUNDS * 20), expected[100];
    size_t at = (size_t)sprintf(text, "(mclheader\nmcltype matrix\ndimensions 9x9\n)\n(mclmatrix\nbegin\n3 8:7\n");
    for (int i = 0; i < ROUNDS; i++)
        at += (size_t)sprintf(text + at, "%d:%d 1:%d 4:0\n", i < 35000 ? 5 : 0, i + 1, i + 2);
    sprintf(text + at, "$\n)\n");
    snprintf(expected, sizeof expected, "3>0:%d 3>1:2 3>5:1 3>8:7", 35001);
    io_graph graph = read_text(context, text, automatic);
    ck_assert_str_eq(arcs_of(&graph), expected);
    io_graph_free(context, &graph);
    free(text);
}

TEST(native_domains_give_ids)
{
    const char *two = "(mclheader\nmcltype matrix\ndimensions 2x2\n)\n";
    char text[400];
    snprintf(text, sizeof text, "%s(mcldoms\n9 5 $\n)\n(mclmatrix\nbegin\n9 5:2 $\n5 9:3 $\n)\n", two);
    expect_arcs(text, automatic, "9>5:2 5>9:3", 2);
    snprintf(text, sizeof text, "%s(mclcols 5 9 $ )\n(mclrows\n5:1 9:1 $\n)\n(mclmatrix\nbegin\n5 9:2 $\n)\n", two);
    expect_arcs(text, automatic, "5>9:2", 2);
    snprintf(text, sizeof text, "%s(mclrows\n0 1 $\n)\n(mclmatrix\nbegin\n0 1:2 $\n)\n", two);
    expect_arcs(text, automatic, "0>1:2", 2);
    snprintf(text, sizeof text, "%s(mclrows\n5 9 $\n)\n(mclmatrix\nbegin\n0 5 $\n)\n", two);
    expect_error(text, automatic, "in: rows (2) and columns (2) are not the same nodes");
    snprintf(text, sizeof text, "%s(mcldoms\n5 $\n)\n(mclmatrix\nbegin\n)\n", two);
    expect_error(text, automatic, "in:7: fewer ids in the domain");
    snprintf(text, sizeof text, "%s(mcldoms\n5 6 7 $\n)\n(mclmatrix\nbegin\n)\n", two);
    expect_error(text, automatic, "in:6: more ids in the domain");
    snprintf(text, sizeof text, "%s(mcldoms\n5 5 $\n)\n(mclmatrix\nbegin\n)\n", two);
    expect_error(text, automatic, "in:7: a domain with a repeated id");
    snprintf(text, sizeof text, "%s(mcldoms\n5 9 $\n)\n(mcldoms\n5 9 $\n)\n(mclmatrix\nbegin\n)\n", two);
    expect_error(text, automatic, "in:8: a second domain");
}

TEST(native_text_refuses_what_is_no_graph)
{
    expect_error("(mclheader\nmcltype matrix\ndimensions 3x4\n)\n(mclmatrix\nbegin\n)\n", automatic,
                 "in: rows (3) and columns (4) are not the same nodes");
    expect_error(HEADER "(mclmatrix\nbegin\n0 3 $\n)\n", automatic, "in:7: row 3 is not in the domain");
    expect_error(HEADER "(mclmatrix\nbegin\n3 0 $\n)\n", automatic, "in:7: column 3 is not in the domain");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1 -1 $\n)\n", automatic, "in:7: an id");
    expect_error(HEADER "(mclmatrix\nbegin\n0 99999999999999999999 $\n)\n", automatic, "in:7: the id is too large");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1:nan $\n)\n", automatic, "in:7: a value that is a number is expected");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1:1e50 $\n)\n", automatic, "in:7: the value is too large");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1:-2 $\n)\n", automatic, "in:7: the value is negative (got \"-2\")");
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 1:-2 $\n)\n", lenient(IO_NATIVE), "0>1:-2", 3);
    expect_error(HEADER "(mclmatrix\nbegin\n0 1:2x $\n)\n", automatic, "in:7: a value that is a number is expected");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1 2 $\n", automatic, "in:8: an id");
    expect_error(HEADER "(mclmatrix\nbegin\n0 1 2", automatic, "in:7: an id");
    expect_error(HEADER "(mclmatrix\nbegin\n)\nmore\n", automatic,
                 "in:8: something follows the matrix (got \"more\")");
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 1 $\n)\nmore\n", lenient(IO_NATIVE), "0>1:1", 3);
    expect_error(HEADER "(mclmatrix\nstart\n)\n", automatic, "in:6: begin is expected");
    expect_error(HEADER "(mclvector\n0 $\n)\n", automatic, "in:5: (mclmatrix or a domain is expected");
    expect_error("(mclmatrix\nbegin\n)\n", automatic, "in:1: (mclheader is expected");
    expect_error("(mclheader\ndimensions 3x3\n)\n(mclmatrix\nbegin\n)\n", automatic,
                 "in:3: a header without mcltype");
    expect_error("(mclheader\nmcltype matrix\n)\n(mclmatrix\nbegin\n)\n", automatic,
                 "in:3: a header without dimensions");
    expect_error("(mclheader\nmcltype matrix\ndimensions 3 x 3\n)\n", automatic, "in:3: dimensions that are not");
    expect_error("(mclheader\nmcltype matrix\ndimensions -3x3\n)\n", automatic, "in:3: dimensions that are not");
    expect_error("(mclheader\nmcltype matrix\ndimensions 99999999999x99999999999\n)\n", automatic,
                 "in:3: dimensions that are not");
    expect_error("(mclheader\nmcltype matrix\ndimensions 2000000000x2000000000\n)\n(mclmatrix\nbegin\n)\n", automatic,
                 "in: the header claims 2000000000 nodes");
}

/* Tokens and comments that lie across the ends of the reader's buffer. */
CONTEXT_TEST(native_text_longer_than_a_buffer_is_read_whole, 0, 1)
{
    const int64_t nodes = 40000;
    char *text = malloc(4000000);
    size_t at = (size_t)sprintf(text, "(mclheader\nmcltype matrix\ndimensions %lldx%lld\n)\n(mclmatrix\nbegin\n",
                                (long long)nodes, (long long)nodes);
    for (int64_t j = 0; j < nodes; j++)
        at += (size_t)sprintf(text + at, "%lld %lld:%.9g # a comment of some length\n %s$\n", (long long)j,
                              (long long)((j * 7919) % nodes), 0.001 * (double)(j + 1), j % 3 ? "" : "         ");
    at += (size_t)sprintf(text + at, ")\n");
    io_graph graph = read_bytes(context, text, at, automatic);
    ck_assert_int_eq(graph.arcs, nodes);
    ck_assert_int_eq(graph.lines, 6 + 2 * nodes + 1);
    for (int64_t j = 0; j < nodes; j++) {
        char printed[32];
        sprintf(printed, "%.9g", 0.001 * (double)(j + 1));
        test_expect(graph.tails[j] == j && graph.heads[j] == (j * 7919) % nodes &&
                        io_arc_weight(&graph, j) == (float)strtod(printed, NULL),
                    "arc %lld", (long long)j);
    }
    io_graph_free(context, &graph);
    free(text);
}

typedef struct bytes {
    char data[400];
    size_t count;
} bytes;

static void put(bytes *to, const void *data, size_t count)
{
    memcpy(to->data + to->count, data, count);
    to->count += count;
}

static void put64(bytes *to, int64_t number) { put(to, &number, sizeof number); }

static void put_vector(bytes *to, int64_t id, int count, const int32_t *ids, const float *values)
{
    const double nothing = 0;
    put64(to, count);
    put64(to, id);
    put(to, &nothing, sizeof nothing);
    for (int i = 0; i < count; i++) {
        put(to, ids + i, 4);
        put(to, values + i, 4);
    }
}

/* Columns {1: 2.5} and {0: 2.5}; what is wrong with it is up to the caller. */
static bytes binary_matrix(int64_t cols, int64_t rows, int32_t id, float value, int64_t last)
{
    bytes made = {.count = 0};
    put(&made, io_binary_cookie, 4);
    put64(&made, cols);
    put64(&made, rows);
    put64(&made, 3);
    put64(&made, 0);
    put64(&made, 32);
    put64(&made, last);
    put_vector(&made, 0, 1, &id, &value);
    put_vector(&made, 1, 1, (const int32_t[]){0}, (const float[]){2.5f});
    return made;
}

TEST(native_binary_is_read_and_its_lies_are_refused)
{
    sp_context *context = test_context(0, 1);
    bytes good = binary_matrix(2, 2, 1, 2.5f, 64);
    io_graph graph = read_bytes(context, good.data, good.count, automatic);
    ck_assert_str_eq(arcs_of(&graph), "0>1:2.5 1>0:2.5");
    ck_assert(graph.format == IO_NATIVE && !graph.symmetric && graph.nodes == 2);
    io_graph_free(context, &graph);
    sp_context_destroy(context);

    for (size_t cut = 4; cut < good.count; cut++) expect_failure(good.data, cut, as(IO_NATIVE), "in: byte ");
    const struct {
        bytes made;
        const char *message;
    } bad[] = {
        {binary_matrix(-1, -1, 1, 1, 64), "in: byte 28: a dimension that is not below 2^31 (got -1)"},
        {binary_matrix(2, (int64_t)1 << 31, 1, 1, 64),
         "in: byte 28: a dimension that is not below 2^31 (got 2147483648)"},
        {binary_matrix(2, 3, 1, 1, 64), "in: rows (3) and columns (2) are not the same nodes"},
        {binary_matrix(2, 2, 2, 1, 64), "in: byte 84: a row that is not in the domain (got 2)"},
        {binary_matrix(2, 2, -1, 1, 64), "in: byte 84: a row that is not in the domain (got -1)"},
        {binary_matrix(2, 2, 1, NAN, 64), "in: byte 84: a value that is not finite"},
        {binary_matrix(2, 2, 1, -1, 64), "in: byte 84: a negative value"},
        {binary_matrix(2, 2, 1, 1, 65), "in: byte 116: columns that do not end where their offsets say"},
        {binary_matrix(2, 2, 1, 1, 3), "in: byte 52: column offsets that do not ascend"},
        {binary_matrix(2000000000, 2000000000, 1, 1, 64), "in: byte "},
    };
    good = binary_matrix(2, 2, 1, -1, 64);
    context = test_context(0, 1);
    graph = read_bytes(context, good.data, good.count, lenient(IO_NATIVE));
    ck_assert_str_eq(arcs_of(&graph), "0>1:-1 1>0:2.5");
    ck_assert_int_eq(graph.negative, 1);
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    good = binary_matrix(2, 2, 1, 1, 64);
    good.data[52] = 3; /* entries of the first column */
    expect_failure(good.data, good.count, automatic,
                   "in: byte 76: a vector with more entries than the matrix has rows");
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_failure(bad[i].made.data, bad[i].made.count, automatic, bad[i].message);
}

/* ---- Matrix Market -------------------------------------------------------------------------------------- */

CONTEXT_TEST(matrix_market_is_read_in_its_kinds, 0, 1)
{
    expect_arcs("%%MatrixMarket matrix coordinate real general\n% c\n\n3 3 2\n1 2 0.5\n3 1 2e0\n", automatic,
                "1>0:0.5 0>2:2", 3);
    expect_arcs("%%matrixmarket MATRIX Coordinate Pattern Symmetric\n3 3 2\n2 1\n3 3\n", automatic, "0>1:1 2>2:1", 3);
    expect_arcs("%%MatrixMarket matrix coordinate integer general\n2 2 2\n\n% inner\n1 2 7\n2 1 0\n", automatic,
                "1>0:7", 2);
    expect_arcs("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n", lenient(IO_MTX),
                "1>0:-3 0>1:3", 2);
    io_graph graph =
        read_text(context, "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", automatic);
    ck_assert(graph.symmetric && graph.format == IO_MTX);
    io_graph_free(context, &graph);
    graph = read_text(context, "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n", automatic);
    ck_assert(!graph.symmetric);
    ck_assert_int_eq(graph.lines, 3);
    io_graph_free(context, &graph);
}

#define GENERAL "%%MatrixMarket matrix coordinate real general\n"

TEST(matrix_market_lies_are_refused)
{
    char *endless = calloc(1, 70001);
    memset(endless, '%', 70000);
    expect_error(endless, as(IO_MTX), "in:1: a line of more than 65536 bytes");
    free(endless);
    expect_error("a b c\n", as(IO_MTX), "in:1: no Matrix Market banner");
    expect_error("", as(IO_MTX), "in:1: no Matrix Market banner");
    expect_error("%%MatrixMarket matrix array real general\n2 2\n", automatic, "in:1: only the coordinate form");
    expect_error("%%MatrixMarket matrix coordinate complex general\n2 2 0\n", automatic,
                 "in:1: a field that is no weight");
    expect_error("%%MatrixMarket matrix coordinate real hermitian\n2 2 0\n", automatic, "in:1: an unknown symmetry");
    expect_error(GENERAL "% only\n", automatic, "in:3: the file ends before its size line");
    expect_error(GENERAL "2 2\n", automatic, "in:2: no size line");
    expect_error(GENERAL "2 2 1 1\n", automatic, "in:2: too many fields in the size line");
    expect_error(GENERAL "2 -2 1\n", automatic, "in:2: no size line");
    expect_error(GENERAL "2147483648 2147483648 1\n", automatic, "in:2: no size line");
    expect_error(GENERAL "2 2 99999999999999999999\n", automatic, "in:2: no size line");
    expect_error(GENERAL "2 3 1\n1 1 1\n", automatic, "in:2: rows and columns differ");
    expect_error(GENERAL "2 2 1\n3 1 1\n", automatic, "in:3: an index that is not within the matrix (got \"3\")");
    expect_error(GENERAL "2 2 1\n0 1 1\n", automatic, "in:3: an index");
    expect_error(GENERAL "2 2 1\n1 4294967297 1\n", automatic, "in:3: an index");
    expect_error(GENERAL "2 2 1\n1 1\n", automatic, "in:3: the value is not a number");
    expect_error(GENERAL "2 2 1\n1 1 1 1\n", automatic, "in:3: too many fields");
    expect_error(GENERAL "2 2 1\n1 1 1.0D2\n", automatic, "in:3: the value is not a number");
    expect_error(GENERAL "2 2 1\n1 1 -1\n", automatic, "in:3: the value is negative");
    expect_arcs(GENERAL "2 2 1\n1 1 -1\n", lenient(IO_MTX), "0>0:-1", 2);
    expect_error(GENERAL "2 2 1\n1 1 1e99\n", automatic, "in:3: the value is too large");
    expect_error("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", automatic,
                 "in:3: a value that is no");
    expect_error("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", automatic,
                 "in:3: a diagonal");
    expect_error("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 2 1\n", automatic,
                 "in:3: a skew-symm");
    expect_error(GENERAL "2 2 2\n1 1 1\n", automatic, "in:3: 1 entries, but the header says 2");
    expect_error(GENERAL "2 2 0\n1 1 1\n", automatic, "in:3: 1 entries, but the header says 0");
    expect_error(GENERAL "2000000000 2000000000 0\n", automatic, "in: the header claims 2000000000 nodes");
    expect_error(GENERAL "2000000000 2000000000 9000000000000000000\n1 1 1\n", automatic, "in:3: 1 entries, but");
}

/* ---- values of any sign, METIS -------------------------------------------------------------------------- */

CONTEXT_TEST(values_of_any_sign_are_read_strictly_otherwise, 0, 1)
{
    const io_read_options any = {.any_sign = true};
    expect_arcs("a\tb\t-1.5\r\nb\ta\r\n", any, "a>b:-1.5 b>a:1", 2);
    expect_error("a b nan\n", any, "in:1: the weight is not a number");
    expect_error("a b 1\nc\n", any, "in:2: one field where two labels");
    expect_arcs(GENERAL "2 2 1\n1 1 -1\n", any, "0>0:-1", 2);
    expect_arcs("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n", any, "1>0:-3 0>1:3", 2);
    expect_arcs(HEADER "(mclmatrix\nbegin\n0 1:-2 $\n)\n", any, "0>1:-2", 3);
    io_graph graph = read_text(context, "a b -2\nb c -1\n", any);
    ck_assert_int_eq(graph.negative, 2);
    ck_assert_int_eq(graph.odd_lines, 0);
    io_graph_free(context, &graph);
}

CONTEXT_TEST(metis_graphs_are_read_in_their_kinds, 0, 1)
{
    expect_arcs("3 2\n2 3\n1\n1\n", as(IO_METIS), "0>1:1 0>2:1 1>0:1 2>0:1", 3);
    expect_arcs("% c\n4 1 1\r\n\r\n% inner\n4 2.5\r\n\n2 2.5", as(IO_METIS), "1>3:2.5 3>1:2.5", 4);
    expect_arcs("2 1 010 3\n7 8 9 2\n1 2 3 1\n", as(IO_METIS), "0>1:1 1>0:1", 2);
    expect_arcs("2 1 110\n5 7 2\n1 2 1\n", as(IO_METIS), "0>1:1 1>0:1", 2);
    expect_arcs("3 0\n", as(IO_METIS), "", 3);
    expect_arcs("2 1\n2\n1\n\n\n", as(IO_METIS), "0>1:1 1>0:1", 2);
    io_graph graph = read_text(context, "2 1\n2\n1\n", as(IO_METIS));
    ck_assert(graph.undirected && !graph.symmetric && graph.names.count == 0);
    io_graph_free(context, &graph);
}

TEST(metis_lies_are_refused)
{
    expect_error("", as(IO_METIS), "in:1: no header");
    expect_error("% only\n", as(IO_METIS), "in:2: no header");
    expect_error("3\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("3 2 1 1 1\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("3 2 2\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("3 2 011 9999999\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("9999999999 2\n", as(IO_METIS), "in:1: no header of a METIS graph");
    expect_error("2 1\n2\n3\n", as(IO_METIS), "in:3: a neighbour that is no node (got \"3\")");
    expect_error("2 1\n2\n0\n", as(IO_METIS), "in:3: a neighbour that is no node");
    expect_error("2 1\n2\n-1\n", as(IO_METIS), "in:3: a neighbour that is no node");
    expect_error("2 1 1\n2 1\n1\n", as(IO_METIS), "in:3: a neighbour without a weight");
    expect_error("2 1 1\n2 1\n1 x\n", as(IO_METIS), "in:3: the weight is not a number");
    expect_error("2 1 10\nx 2\n1 1\n", as(IO_METIS), "in:2: a size or weight of the node");
    expect_error("2 1\n2\n1\n1\n", as(IO_METIS), "in:4: a line of node 3, but the header says 2 nodes");
    expect_error("2 2\n2\n1\n", as(IO_METIS), "in:3: 2 neighbours, but the header says 2 edges, which makes 4");
    expect_error("3 1\n2\n3\n\n", as(IO_METIS), "in:2: node 1 names node 2, but that does not name it in line 3");
    expect_error("2 1 1\n2 1\n1 2\n", as(IO_METIS), "in:2: the edge of nodes 1 and 2 weighs 1 here and 2 in line 3");
    expect_error("2 1\n1 1\n", as(IO_METIS), "in:2: node 1 is its own neighbour; METIS graphs have no loops");
    expect_error("2000000000 0\n", as(IO_METIS), "in: the header claims 2000000000 nodes");
}

/* A METIS graph in which node i + 1 neighbours i and i + 2, read with any threads and blocks. */
TEST(metis_nodes_are_numbered_across_slices)
{
    enum { NODES = 3000 };
    char *text = malloc(NODES * 24);
    size_t at = (size_t)sprintf(text, "%d %d\n", NODES, NODES - 1);
    for (int i = 1; i <= NODES; i++) {
        if (i > 1) at += (size_t)sprintf(text + at, "%d ", i - 1);
        if (i < NODES) at += (size_t)sprintf(text + at, "%d", i + 1);
        at += (size_t)sprintf(text + at, i % 50 ? "\n" : "\n%% a comment\n");
    }
    for (int threads = 1; threads <= 7; threads += 3)
        for (size_t block = 0; block < 3000; block = 5 * block + 70) {
            const io_read_options options = {.format = IO_METIS};
            sp_context *context = test_context(0, threads);
            io_graph graph;
            ck_ok(context, read_spread(context, text, at, &options, block, &graph));
            ck_assert_int_eq(graph.arcs, 2 * (NODES - 1));
            for (int64_t e = 0; e < graph.arcs; e++)
                test_expect(graph.tails[e] == (e + 1) / 2 && graph.heads[e] == (e + 1) / 2 + (e % 2 ? -1 : 1),
                            "%d threads, blocks of %zu: arc %lld is %d>%d", threads, block, (long long)e,
                            graph.tails[e], graph.heads[e]);
            io_graph_free(context, &graph);
            sp_context_destroy(context);
        }
    free(text);
}

/* ---- files: tab, compression ---------------------------------------------------------------------------- */

static char folder[64];

static const char *path_of(const char *name)
{
    static char paths[4][400];
    static int next;
    next = (next + 1) % 4;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

static void write_file(const char *path, const void *data, size_t count)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

/* What a file holds, in a static buffer. */
static const char *contents(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    size_t count = fread(text, 1, sizeof text - 1, file);
    text[count] = '\0';
    fclose(file);
    return text;
}

static int files_in_folder(void)
{
    int count = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing));) count += entry->d_name[0] != '.';
    closedir(listing);
    return count;
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/test_io.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing));)
        if (entry->d_name[0] != '.') remove(path_of(entry->d_name));
    closedir(listing);
    rmdir(folder);
}

static void expect_tab(const char *tab, const char *arcs, const char *error)
{
    sp_context *context = test_context(0, 1);
    const char *graph_path = path_of("g.mci"), *tab_path = path_of("g.tab");
    const char *text =
        "(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mcldoms\n3 5 $\n)\n(mclmatrix\nbegin\n3 5 $\n)\n";
    write_file(graph_path, text, strlen(text));
    write_file(tab_path, tab, strlen(tab));
    io_read_options options = {.tab = tab_path};
    io_graph graph;
    sp_status status = io_read_graph(context, graph_path, &options, &graph);
    if (error) {
        ck_assert_int_ne(status, SP_OK);
        const char *message = sp_last_error(context);
        ck_assert_msg(strstr(message, error) != NULL && strncmp(message, tab_path, strlen(tab_path)) == 0, "%s",
                      message);
    } else {
        ck_assert_msg(status == SP_OK, "%s", sp_last_error(context));
        ck_assert_int_eq(graph.names.count, 2);
        ck_ok(context, io_graph_spread(context, &graph));
        ck_assert_str_eq(arcs_of(&graph), arcs);
    }
    io_graph_free(context, &graph);
    sp_context_destroy(context);
}

#define SYMMETRIC(kind, size) "%%MatrixMarket matrix coordinate " kind "\n" size "\n"

CONTEXT_TEST(symmetric_files_hold_one_of_both_directions, 0, 1)
{
    expect_error(SYMMETRIC("real symmetric", "2 2 2") "2 1 1\n1 2 1\n", automatic,
                 "in:4: entry 1 2 is the mirror image of an earlier one, and in a symmetric file each stands for both; "
                 "keep one of them, or write general");
    expect_error(SYMMETRIC("pattern symmetric", "% c\n3 3 5") "1 3\n% c\n\n3 2\n2 1\n3 1\n2 2\n", automatic,
                 "in:9: entry 3 1 is the mirror image");
    expect_error(SYMMETRIC("integer skew-symmetric", "3 3 4") "2 1 5\n1 3 0\n3 1 2\n1 2 4\n",
                 (io_read_options){.format = IO_AUTO, .any_sign = true}, "in:6: entry 1 2 is the mirror image");
    expect_arcs(SYMMETRIC("real symmetric", "3 3 3") "1 2 1\n1 3 2\n3 3 4\n", automatic, "1>0:1 2>0:2 2>2:4", 3);
    expect_arcs(SYMMETRIC("real symmetric", "3 3 3") "2 1 1\n1 3 2\n2 3 5\n", automatic, "0>1:1 2>0:2 2>1:5", 3);
    expect_arcs(SYMMETRIC("real symmetric", "2 2 3") "2 1 1\n2 1 3\n1 2 0\n", automatic, "0>1:1 0>1:3", 2);
    expect_arcs(SYMMETRIC("real general", "2 2 2") "2 1 1\n1 2 3\n", automatic, "0>1:1 1>0:3", 2);
    sp_csr matrix;
    const io_adjacency_options options = {0};
    FILE *file = fopen(path_of("a.mtx"), "w");
    fputs(SYMMETRIC("pattern symmetric", "2 2 2") "2 1\n1 2\n", file);
    fclose(file);
    ck_assert_int_ne(io_read_adjacency(context, path_of("a.mtx"), &options, &matrix), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "a.mtx:4: entry 1 2 is the mirror image"));
}

/* Entries on either side of the diagonal, zeros, comments; with any threads and blocks. */
TEST(the_second_of_two_mirror_images_is_named)
{
    enum { NODES = 30, ENTRIES = 60 };
    char *text = malloc(ENTRIES * 30 + 100);
    sp_context *contexts[] = {test_context(0, 1), test_context(0, 3)};
    for (uint64_t seed = 1; seed <= (uint64_t)test_cases(300); seed++) {
        test_random random = test_seed(seed);
        bool seen[NODES][NODES] = {{0}};
        const bool skew = test_below(&random, 2);
        const int count = 1 + (int)test_below(&random, ENTRIES);
        size_t at = (size_t)sprintf(text, "%%" SYMMETRIC("real %s", "%d %d %d"), skew ? "skew-symmetric" : "symmetric",
                                    NODES, NODES, count);
        int line = 2, wrong = 0;
        for (int e = 0; e < count; e++) {
            for (; test_below(&random, 5) == 0; line++)
                at += (size_t)sprintf(text + at, "%s", e % 2 ? "\n" : "% 1 2\n");
            int row = (int)test_below(&random, NODES), col = (int)test_below(&random, NODES);
            if (row == col) col = (col + 1) % NODES;
            const int64_t value = test_below(&random, 5);
            at += (size_t)sprintf(text + at, "%d %d %lld\n", row + 1, col + 1, (long long)value);
            line++;
            if (value == 0) continue;
            seen[row][col] = true;
            if (wrong == 0 && seen[col][row]) wrong = line;
        }
        char expected[40];
        snprintf(expected, sizeof expected, "in:%d: entry", wrong);
        for (int i = 0; i < 6; i++) {
            const io_read_options options = {.format = IO_AUTO, .any_sign = true};
            sp_context *context = contexts[i % 2];
            io_graph graph;
            const sp_status status = io_read_memory(context, "in", text, at, &options, (size_t)(i / 2) * 40, &graph);
            test_expect((status == SP_OK) == (wrong == 0), "seed %llu: %s", (unsigned long long)seed, text);
            test_expect(wrong == 0 || strncmp(sp_last_error(context), expected, strlen(expected)) == 0,
                        "seed %llu: \"%s\" instead of \"%s\"", (unsigned long long)seed, sp_last_error(context),
                        expected);
            io_graph_free(context, &graph);
        }
    }
    for (int i = 0; i < 2; i++) sp_context_destroy(contexts[i]);
    free(text);
}

TEST(tab_files_name_the_nodes)
{
    expect_tab("3\ta b\n5\tc\n", "a b>c:1", NULL);
    expect_tab("# x\n0 z\n\n3  a b\n4\ty\n5\tc \tq\r\n9\tw\n", "a b>c \tq:1", NULL);
    expect_tab("5\tc", "?_3>c:1", NULL);
    expect_tab("", "?_3>?_5:1", NULL);
    expect_tab("3\ta\n5\n", NULL, ":2: an id without a label");
    expect_tab("3\ta\nx\tb\n", NULL, ":2: no id at the beginning");
    expect_tab("-3\ta\n", NULL, ":1: no id at the beginning");
    expect_tab("5\ta\n3\tb\n", NULL, ":2: an id that is not above the one before");
    expect_tab("3\ta\n3\tb\n", NULL, ":2: an id that is not above the one before");
}

TEST(a_tab_file_that_names_next_to_nothing_is_refused)
{
    enum { PADDING = 200000 };
    sp_context *context = test_context(0, 1);
    char *text = malloc(PADDING + 200);
    size_t at = (size_t)sprintf(text, "(mclheader\nmcltype matrix\ndimensions 1500000x1500000\n)\n#");
    memset(text + at, '.', PADDING);
    at += PADDING;
    at += (size_t)sprintf(text + at, "\n(mclmatrix\nbegin\n0 1 $\n)\n");
    write_file(path_of("g.mci"), text, at);
    write_file(path_of("g.tab"), "5\ta\n", 4);
    const io_read_options options = {.tab = path_of("g.tab")};
    io_graph graph;
    ck_assert_int_eq(io_read_graph(context, path_of("g.mci"), &options, &graph), SP_ERROR_MATRIX);
    ck_assert_msg(strstr(sp_last_error(context), "of the graph's 1500000 nodes have no label") != NULL, "%s",
                  sp_last_error(context));
    sp_context_destroy(context);
    free(text);
}

static size_t gzip(const void *data, size_t count, void *into, size_t room)
{
    z_stream stream = {0};
    ck_assert_int_eq(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)count;
    stream.next_out = into;
    stream.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

/* A random file of label triples; every 97th line is followed by a blank one. */
static char *random_triples(test_random *random, int64_t lines, int64_t labels, size_t *count)
{
    char *text = malloc((size_t)lines * 64 + 1);
    size_t at = 0;
    for (int64_t i = 0; i < lines; i++) {
        const char *gap = test_below(random, 2) ? "\t" : " ";
        at += (size_t)sprintf(text + at, "n%0*lld%s%sn%lld%s%.*g\n%s", (int)(labels % 20),
                              (long long)test_below(random, labels), gap, test_below(random, 5) ? "" : gap,
                              (long long)test_below(random, labels), gap, (int)(1 + test_below(random, 12)),
                              test_unit(random) * 100, i % 97 ? "" : "\n");
    }
    *count = at;
    return text;
}

/* Label number k of a family whose members share most of their bytes, of 1 to 40 of them. */
static void make_label(int64_t k, char label[64])
{
    int length = (int)(k % 40) + 1;
    memset(label, 'p', 64);
    for (int at = length - 1; at >= 0 && k > 0; at -= 3, k /= 36)
        label[at] = "0123456789abcdefghijklmnopqrstuvwxyz"[k % 36];
    label[length] = '\0';
}

static void same_graphs(const io_graph *a, const io_graph *b)
{
    ck_assert_int_eq(a->nodes, b->nodes);
    ck_assert_int_eq(a->arcs, b->arcs);
    ck_assert_int_eq(a->lines, b->lines);
    ck_assert_int_eq(a->bytes, b->bytes);
    ck_assert_int_eq(a->names.count, b->names.count);
    for (int64_t i = 0; i < a->names.count; i++)
        test_expect(io_name_length(&a->names, i) == io_name_length(&b->names, i) &&
                        memcmp(io_name(&a->names, i), io_name(&b->names, i), io_name_length(&a->names, i)) == 0,
                    "name %lld", (long long)i);
    if (a->arcs == 0) return;
    ck_assert_int_eq(memcmp(a->tails, b->tails, (size_t)a->arcs * sizeof *a->tails), 0);
    ck_assert_int_eq(memcmp(a->heads, b->heads, (size_t)a->arcs * sizeof *a->heads), 0);
    ck_assert(!a->weights == !b->weights && a->values == b->values);
    const size_t size = a->values == SP_F32 ? sizeof(float) : sizeof(double);
    if (a->weights) ck_assert_int_eq(memcmp(a->weights, b->weights, (size_t)a->arcs * size), 0);
}

/* Compresses a text in two parts and checks that it reads as the text itself does, and that no cut is accepted. */
static void check_compressed(size_t (*compress)(const void *, size_t, void *, size_t), const char *kind)
{
    sp_context *context = test_context(0, 2);
    test_random random = test_seed(7);
    size_t count, room = 1 << 20;
    char *text = random_triples(&random, 5000, 300, &count), *packed = malloc(room);
    size_t half = count / 2, first = compress(text, half, packed, room);
    size_t both = first + compress(text + half, count - half, packed + first, room - first);
    io_graph plain = read_bytes(context, text, count, automatic),
             graph = read_bytes(context, packed, both, automatic);
    same_graphs(&plain, &graph);
    io_graph_free(context, &graph);

    char message[100];
    snprintf(message, sizeof message, "in: the %s data end too soon", kind);
    for (size_t cut = 8; cut < both; cut += 61) {
        if (cut == first) continue;
        expect_failure(packed, cut, automatic, message);
    }
    snprintf(message, sizeof message, "in: the %s data are damaged", kind);
    packed[both - 6] = (char)(packed[both - 6] ^ 0x55);
    sp_status status = io_read_memory(context, "in", packed, both, &automatic, 0, &graph);
    ck_assert_msg(status != SP_OK && strncmp(sp_last_error(context), message, strlen(message)) == 0, "%s",
                  sp_last_error(context));
    io_graph_free(context, &plain);
    free_all(text, packed);
    sp_context_destroy(context);
}

static size_t zstd(const void *data, size_t count, void *into, size_t room)
{
    ZSTD_CCtx *state = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(state, ZSTD_c_checksumFlag, 1);
    size_t size = ZSTD_compress2(state, into, room, data, count);
    ck_assert(!ZSTD_isError(size));
    ZSTD_freeCCtx(state);
    return size;
}

TEST(gzip_members_are_read_whole_or_refused) { check_compressed(gzip, "gzip"); }

TEST(zstd_frames_are_read_whole_or_refused) { check_compressed(zstd, "zstd"); }

/* Reading blocks of any size meets the same thing first: the malformed line, or the damage before it. */
static void check_damage(size_t (*compress)(const void *, size_t, void *, size_t))
{
    const size_t blocks[] = {100, 4096, 70000, 0};
    sp_context *context = test_context(0, 1);
    test_random random = test_seed(11);
    size_t count, room = 1 << 20;
    int64_t lines = 0;
    char *text = random_triples(&random, 20000, 3000, &count), *packed = malloc(room), message[400];
    memcpy(strchr(text + count / 4, '\n') + 1, "x\n", 2); /* a line of one field */
    size_t size = compress(text, count, packed, room);
    for (int trial = 0; trial < 60; trial++) {
        const int64_t at = 16 + test_below(&random, (int64_t)size - 16);
        const char flip = (char)(1 << test_below(&random, 8));
        packed[at] = (char)(packed[at] ^ flip);
        for (size_t b = 0; b < COUNT(blocks); b++) {
            io_graph graph;
            test_expect(io_read_memory(context, "in", packed, size, &automatic, blocks[b], &graph) != SP_OK,
                        "byte %lld is damaged, and accepted", (long long)at);
            if (b == 0) snprintf(message, sizeof message, "%s", sp_last_error(context));
            test_expect(strcmp(message, sp_last_error(context)) == 0, "byte %lld, blocks of %zu: \"%s\", not \"%s\"",
                        (long long)at, blocks[b], sp_last_error(context), message);
        }
        lines += strncmp(message, "in: ", 4) != 0;
        packed[at] = (char)(packed[at] ^ flip);
    }
    test_expect(lines > 0, "no malformed line is met");
    free_all(text, packed);
    sp_context_destroy(context);
}

TEST(what_comes_before_damage_is_read_whatever_the_block_size)
{
    check_damage(gzip);
    check_damage(zstd);
}

CONTEXT_TEST(gzip_padding_is_skipped_and_garbage_refused, 0, 1)
{
    char packed[200] = {0};
    size_t size = gzip("a b 1\n", 6, packed, sizeof packed);
    io_graph graph = read_bytes(context, packed, size + 50, automatic);
    ck_assert_str_eq(arcs_of(&graph), "a>b:1");
    io_graph_free(context, &graph);
    packed[size + 20] = 'x';
    expect_failure(packed, size + 50, automatic, "in: bytes that are no gzip data follow");
}

TEST(errors_inside_compressed_data_have_the_line_of_the_text)
{
    char packed[300];
    const char *text = "a b 1\nb c 2\nc d x\n";
    size_t size = gzip(text, 8, packed, sizeof packed);
    size += gzip(text + 8, strlen(text) - 8, packed + size, sizeof packed - size);
    expect_failure(packed, size, automatic, "in:3: the weight is not a number (got \"x\")");
}

CONTEXT_TEST(a_dash_is_standard_input_and_output, 0, 1)
{
    int saved[2] = {dup(0), dup(1)}, ends[2];
    fflush(stdout);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], 1);
    close(ends[1]);
    io_output *output;
    sp_status written = io_output_open(context, "-", &output);
    if (written == SP_OK) {
        io_output_string(output, "a b 3\nc\n");
        written = io_output_commit(output);
    }
    dup2(saved[1], 1);
    dup2(ends[0], 0);
    close(ends[0]);
    io_graph graph;
    sp_status status = io_read_graph(context, "-", &automatic, &graph);
    dup2(saved[0], 0);
    close(saved[0]);
    close(saved[1]);
    ck_assert_int_eq(written, SP_OK);
    ck_assert_int_ne(status, SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "(standard input):2: one field"));
}

CONTEXT_TEST(files_that_cannot_be_read_are_named, 0, 1)
{
    io_graph graph;
    ck_assert_int_ne(io_read_graph(context, path_of("none"), &automatic, &graph), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "none: No such file"));
    ck_assert_int_ne(io_read_graph(context, folder, &automatic, &graph), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "this is a folder"));
    const volatile int interrupt = 1;
    io_read_options options = {.interrupt = &interrupt};
    write_file(path_of("x.abc"), "a b 1\n", 6);
    ck_assert_int_eq(io_read_graph(context, path_of("x.abc"), &options, &graph), SP_ERROR_INTERRUPTED);
}

/* ---- the parallel reader -------------------------------------------------------------------------------- */

TEST(threads_and_block_sizes_change_nothing)
{
    static const int threads[] = {1, 2, 7};
    static const size_t blocks[] = {0, 1, 64, 1000, 4096};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        test_random random = test_seed(seed);
        size_t count;
        char *text = random_triples(&random, 1 + test_below(&random, 3000), 1 + test_below(&random, 2000), &count);
        if (seed % 2) count--; /* no newline at the end */
        sp_context *alone = test_context(0, 1);
        io_graph expected = read_bytes(alone, text, count, automatic);
        for (size_t t = 0; t < 3; t++) {
            sp_context *context = test_context(0, threads[t]);
            for (size_t b = 0; b < COUNT(blocks); b++) {
                io_graph graph;
                ck_ok(context, io_read_memory(context, "in", text, count, &automatic, blocks[b], &graph));
                same_graphs(&expected, &graph);
                io_graph_free(context, &graph);
            }
            sp_context_destroy(context);
        }
        io_graph_free(alone, &expected);
        sp_context_destroy(alone);
        free(text);
    }
}

TEST(the_first_error_in_the_file_wins_whatever_the_threads)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        test_random random = test_seed(seed);
        size_t count;
        char *text = random_triples(&random, 400, 50, &count);
        int64_t places[3];
        for (int i = 0; i < 3; i++) { /* three lines of one field: the line's gaps become letters */
            char *at = text + test_below(&random, (int64_t)count - 100);
            while (*at != '\n' || at[1] == '\n') at++;
            places[i] = at + 1 - text;
            for (at++; *at != '\n'; at++)
                if (*at == ' ' || *at == '\t') *at = '_';
        }
        int64_t first = places[0];
        for (int i = 1; i < 3; i++)
            if (places[i] < first) first = places[i];
        int64_t line = 1;
        for (int64_t i = 0; i < first; i++) line += text[i] == '\n';
        char expected[100];
        snprintf(expected, sizeof expected, "in:%lld: one field where", (long long)line);
        for (int threads = 1; threads <= 7; threads += 3) {
            sp_context *context = test_context(0, threads);
            for (size_t block = 0; block <= 640; block += 64) {
                io_graph graph;
                ck_assert_int_ne(io_read_memory(context, "in", text, count, &automatic, block, &graph), SP_OK);
                ck_assert_msg(strncmp(sp_last_error(context), expected, strlen(expected)) == 0,
                              "seed %llu: \"%s\" instead of \"%s\"", (unsigned long long)seed, sp_last_error(context),
                              expected);
            }
            sp_context_destroy(context);
        }
        free(text);
    }
}

TEST(labels_of_any_length_are_told_apart)
{
    const uint64_t seed = 5;
    test_random random = test_seed(seed);
    const int64_t lines = 20000, kinds = 3000;
    char *text = malloc((size_t)lines * 90), label[64];
    int64_t *first = malloc((size_t)kinds * sizeof *first), *drawn = malloc(2 * (size_t)lines * sizeof *drawn),
            seen = 0;
    size_t at = 0;
    for (int64_t k = 0; k < kinds; k++) first[k] = -1;
    for (int64_t i = 0; i < 2 * lines; i++) {
        drawn[i] = test_below(&random, 1 + test_below(&random, kinds));
        make_label(drawn[i], label);
        /* Labels of two numbers may be the same: the smallest number stands for them. */
        for (int64_t k = 0; k < drawn[i]; k += 1) {
            char other[64];
            if (k % 40 != drawn[i] % 40) continue;
            make_label(k, other);
            if (strcmp(other, label) == 0) drawn[i] = k;
        }
        if (first[drawn[i]] < 0) first[drawn[i]] = seen++;
        at += (size_t)sprintf(text + at, "%s%c", label, i % 2 ? '\n' : ' ');
    }
    for (int threads = 1; threads <= 3; threads++) {
        sp_context *context = test_context(0, threads);
        io_graph graph;
        ck_ok(context, io_read_memory(context, "in", text, at, &automatic, 5000, &graph));
        ck_assert_int_eq(graph.nodes, seen);
        ck_assert_int_eq(graph.arcs, lines);
        for (int64_t i = 0; i < lines; i++)
            test_expect(graph.tails[i] == first[drawn[2 * i]] && graph.heads[i] == first[drawn[2 * i + 1]],
                        "seed %llu: line %lld", (unsigned long long)seed, (long long)i + 1);
        io_graph_free(context, &graph);
        sp_context_destroy(context);
    }
    free_all(text, first, drawn);
}

/* More labels than wide slots take, short ones and long ones. */
TEST(a_million_labels_are_numbered_by_their_first_appearance)
{
    enum { LABELS = 1100000 };
    char *text = malloc(LABELS * 48);
    int32_t *ids = malloc(LABELS * sizeof *ids);
    size_t at = 0;
    for (int64_t i = 0; i < LABELS; i++)
        for (int end = 0; end < 2; end++) {
            const int64_t label = end ? i * 7919 % LABELS : i;
            at += (size_t)sprintf(text + at, label % 5 ? "%llx%c" : "a-long-name-%llx%c", (long long)label,
                                  end ? '\n' : '\t');
        }
    for (int threads = 1; threads <= 3; threads += 2) {
        sp_context *context = test_context(0, threads);
        io_graph graph = read_bytes(context, text, at, as(IO_ABC));
        int32_t seen = 0;
        memset(ids, 0xff, LABELS * sizeof *ids);
        ck_assert_int_eq(graph.nodes, LABELS);
        ck_assert_int_eq(graph.arcs, LABELS);
        ck_assert_ptr_null(graph.weights);
        for (int64_t i = 0; i < LABELS; i++)
            for (int end = 0; end < 2; end++) {
                int32_t *id = &ids[end ? i * 7919 % LABELS : i];
                if (*id < 0) *id = seen++;
                if ((end ? graph.heads : graph.tails)[i] != *id) ck_abort_msg("line %lld", (long long)i + 1);
            }
        io_graph_free(context, &graph);
        sp_context_destroy(context);
    }
    free_all(text, ids);
}

/* A table that says it has all the labels there can be; its names would not fit a test. */
CONTEXT_TEST(labels_beyond_two_to_the_31_are_refused, 0, 1)
{
    io_labels labels = {.file = "in", .slot_count = 6000, .id_bits = 32};
    uint32_t *slots = malloc(6000 * sizeof *slots);
    int32_t id;
    memset(slots, 0xff, 6000 * sizeof *slots);
    labels.slots = slots;
    labels.list.names.count = INT32_MAX;
    ck_assert_int_eq(io_labels_add(context, &labels, "one-too-many", 12, io_label_hash("one-too-many", 12), &id),
                     SP_ERROR_OVERFLOW);
    ck_assert_str_eq(sp_last_error(context), "in: more than 2147483647 labels");
    free(slots);
}

/* A line of a list, of fields that mean something to one format or another. */
static size_t write_list(test_random *random, char *text)
{
    static const char *const fields[] = {"1 ", "2 ", "3 ", "4 ", "2\t\t", "1:5 ", "x:2 ", "b: 7 ", "c:8y ", "% ", "# "};
    size_t at = 0;
    for (int64_t left = test_below(random, 60); left > 0; left--) {
        const int64_t most = test_below(random, 20) ? 5 : (int64_t)(COUNT(fields));
        at += (size_t)sprintf(text + at, "%s", fields[test_below(random, most)]);
    }
    text[at++] = '\n';
    return at;
}

TEST(long_lines_in_parts_are_the_same)
{
    const uint64_t seed = 11 + (uint64_t)_i;
    test_random random = test_seed(seed);
    const io_format formats[] = {IO_SIF, IO_ETC, IO_METIS};
    const char *const heads[] = {"4 9\n", "4 9 1\n", "4 9 110 3\n", "4 9 11\n"};
    for (int round = 0; round < 120; round++) {
        const io_read_options options = {.format = formats[round % 3],
                                         .lenient = round % 2,
                                         .expect_values = round % 5 == 0};
        char text[5000];
        size_t at = options.format == IO_METIS ? (size_t)sprintf(text, "%s", heads[test_below(&random, 4)]) : 0;
        for (int line = 0; line < 4; line++) at += write_list(&random, text + at);
        const size_t count = at - (size_t)test_below(&random, 2);
        sp_context *alone = test_context(0, 1);
        io_graph whole, parts;
        const sp_status expected = read_spread(alone, text, count, &options, 0, &whole);
        for (size_t block = 7; block < 200; block += 13) {
            sp_context *context = test_context(0, 1 + (int)(block % 3));
            const sp_status status = read_spread(context, text, count, &options, block, &parts);
            test_expect(status == expected && (status == SP_OK || strcmp(sp_last_error(context),
                                                                         sp_last_error(alone)) == 0),
                        "seed %llu: \"%s\", in parts \"%s\"", (unsigned long long)seed, sp_last_error(alone),
                        sp_last_error(context));
            if (status == SP_OK) same_graphs(&parts, &whole);
            io_graph_free(context, &parts);
            sp_context_destroy(context);
        }
        io_graph_free(alone, &whole);
        sp_context_destroy(alone);
    }
}

CONTEXT_TEST(a_line_longer_than_many_blocks_is_read, 0, 2)
{
    size_t length = 300000;
    char *text = malloc(length + 20);
    memset(text, 'x', length);
    memcpy(text + length, " y 2\na b 3\n", 12);
    io_graph graph;
    ck_ok(context, io_read_memory(context, "in", text, length + 11, &automatic, 64, &graph));
    ck_assert_int_eq(graph.nodes, 4);
    ck_assert_uint_eq(io_name_length(&graph.names, 0), length);
    ck_assert_int_eq(graph.lines, 2);
    io_graph_free(context, &graph);
    free(text);
}

/* ---- numbers -------------------------------------------------------------------------------------------- */

TEST(decimals_are_read_exactly)
{
    const uint64_t seed = 20;
    test_random random = test_seed(seed);
    for (int64_t i = 0; i < 1000000; i++) {
        char text[80];
        size_t at = 0;
        int64_t digits = 1 + test_below(&random, test_below(&random, 4) ? 8 : 24),
                point = test_below(&random, digits + 1);
        if (test_below(&random, 4) == 0) text[at++] = "+-"[test_below(&random, 2)];
        for (int64_t k = 0; k < digits; k++) {
            if (k == point) text[at++] = '.';
            text[at++] = (char)('0' + test_below(&random, 10));
        }
        if (test_below(&random, 2))
            at += (size_t)sprintf(text + at, "%c%lld", "eE"[test_below(&random, 2)],
                                  (long long)(test_below(&random, 80) - 40) * (test_below(&random, 5) ? 1 : 9));
        text[at] = '\0';
        double ours = -1, theirs = strtod(text, NULL);
        test_expect(io_parse_decimal(text, text + at, &ours) == text + at && memcmp(&ours, &theirs, sizeof ours) == 0,
                    "seed %llu: %s is %.17g, not %.17g", (unsigned long long)seed, text, theirs, ours);
    }
}

TEST(what_is_no_decimal_is_not_read)
{
    static const struct {
        const char *text;
        size_t taken;
    } cases[] = {{"", 0},     {"-", 0},     {"+.", 0},  {".", 0},   {"e5", 0},   {"nan", 0},   {"inf", 0},
                 {"-inf", 0}, {"0x10", 1},  {"1e", 1},  {"1e+", 1}, {"1e+x", 1}, {"5.", 2},    {".5", 2},
                 {"1,5", 1},  {"1.0D2", 3}, {"--1", 0}, {"+-1", 0}, {"1e5x", 3}, {"1.2.3", 3}, {"1_000", 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        double value;
        const char *end = io_parse_decimal(cases[i].text, cases[i].text + strlen(cases[i].text), &value);
        ck_assert_msg(end == cases[i].text + cases[i].taken, "%s: %td taken", cases[i].text, end - cases[i].text);
    }
    double value;
    const char *huge = "1e99999999999999999999", *tiny = "-1e-99999999999999999999";
    io_parse_decimal(huge, huge + strlen(huge), &value);
    ck_assert(isinf(value));
    io_parse_decimal(tiny, tiny + strlen(tiny), &value);
    ck_assert(value == 0 && signbit(value));
}

/* ---- packed arcs and their matrix ----------------------------------------------------------------------- */

/* A list of arcs in one of the formats that pack them: in order or not, repeated or not, few of them weighted. */
static size_t write_packed(test_random *random, io_format format, char *text)
{
    const int64_t nodes = 1 + test_below(random, 30);
    const bool ordered = test_below(random, 2), weighted = test_below(random, 3);
    size_t at = 0;
    if (format == IO_NATIVE)
        at = (size_t)sprintf(text, "(mclheader\nmcltype matrix\ndimensions %lldx%lld\n)\n(mclmatrix\nbegin\n",
                             (long long)nodes, (long long)nodes);
    for (int64_t line = 0; line < nodes; line++) {
        const int64_t tail = ordered ? line : test_below(random, nodes), arcs = test_below(random, 5);
        at += (size_t)sprintf(text + at, "%lld", (long long)tail);
        for (int64_t i = 0, head = 0; i < arcs && head < nodes; i++, head += 1 + test_below(random, nodes)) {
            at += (size_t)sprintf(text + at, " %lld", (long long)(ordered ? head : test_below(random, nodes)));
            if (weighted && test_below(random, 4) == 0)
                at += (size_t)sprintf(text + at, ":%lld", (long long)test_below(random, 4));
        }
        at += (size_t)sprintf(text + at, format == IO_NATIVE ? " $\n" : "\n");
    }
    return at + (size_t)sprintf(text + at, "%s", format == IO_NATIVE ? ")\n" : "");
}

/* Taken over row by row or by way of triples: what sp_csr_from_coo makes of the arcs one by one. */
TEST(the_matrix_of_packed_arcs_is_that_of_their_triples)
{
    static const io_format formats[] = {IO_ETC, IO_SIF, IO_NATIVE};
    static const sp_combine rules[] = {SP_COMBINE_MAX, SP_COMBINE_FIRST, SP_COMBINE_SUM};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        test_random random = test_seed(seed);
        const io_read_options options = {.format = formats[seed % 3], .lenient = true, .expect_values = seed % 2};
        const size_t block = seed % 5 ? 0 : 20;
        const bool by_heads = test_below(&random, 2);
        const sp_combine rule = rules[test_below(&random, 3)];
        char text[4000];
        const size_t count = write_packed(&random, options.format, text);
        sp_context *context = test_context(0, 1 + (int)(seed % 3));
        io_graph packed, spread;
        sp_csr made, expected;
        ck_ok(context, io_read_memory(context, "in", text, count, &options, block, &packed));
        ck_ok(context, read_spread(context, text, count, &options, block, &spread));
        ck_assert(packed.packed && !packed.tails && !spread.packed);
        ck_ok(context, io_graph_matrix(context, &packed, by_heads, rule, packed.symmetric, &made));
        ck_ok(context, sp_csr_from_coo(context, spread.nodes, spread.nodes, spread.arcs,
                                       by_heads ? spread.heads : spread.tails, by_heads ? spread.tails : spread.heads,
                                       spread.weights, SP_F32, rule, spread.symmetric, &expected));
        ck_ok(context, sp_csr_check(context, &made));
        test_same(&made, &expected, seed);
        ck_assert(!packed.packed && !packed.heads);
        test_free(context, &made, &expected);
        io_graph_free(context, &packed);
        io_graph_free(context, &spread);
        sp_context_destroy(context);
    }
}

TEST(weights_that_are_zero_as_f32_make_no_arc)
{
    expect_arcs("a b 1e-50\na c 1.4e-45\n", as(IO_ABC), "a>c:1.40129846e-45", 3);
    expect_arcs("a b:1e-50 c:1.4e-45\n", (io_read_options){.format = IO_ETC, .expect_values = true},
                "a>c:1.40129846e-45", 3);
    expect_arcs("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1e-50\n2 1 1\n", automatic, "0>1:1", 2);
    expect_arcs("(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mclmatrix\nbegin\n0 0:1e-50 1:1 $\n)\n", automatic,
                "0>1:1", 2);
}

/* A weight as text in all forms, or as a native or METIS one. */
static const char *draw_weight(test_random *random)
{
    static char text[64];
    switch (test_below(random, 5)) {
    case 0: sprintf(text, "%lld", (long long)test_below(random, 1 << 30) + 1); break;
    case 1: sprintf(text, "%lld", (long long)(INT64_C(1) << 53) - 1 - (long long)test_below(random, 1000)); break;
    case 2: sprintf(text, "0.%d", 1 + (int)test_below(random, 999)); break;
    case 3: sprintf(text, "%.17g", test_unit(random) * 1e-60); break;
    default: sprintf(text, "%.12g", test_unit(random) * 1e200); break;
    }
    return text;
}

enum { WIDE_ARCS = 60 };

/* A graph of 100 nodes in the format, whose arcs have `weights` in this order. */
static size_t write_wide(test_random *random, io_format format, char *text, double weights[WIDE_ARCS])
{
    size_t at = format == IO_MTX
                    ? (size_t)sprintf(text, "%%%%MatrixMarket matrix coordinate real general\n100 100 60\n")
                : format == IO_NATIVE
                    ? (size_t)sprintf(text, "(mclheader\nmcltype matrix\ndimensions 100x100\n)\n(mclmatrix\nbegin\n")
                : format == IO_STRING ? (size_t)sprintf(text, "protein1 protein2 combined_score\n")
                                      : 0;
    for (int i = 0; i < WIDE_ARCS; i++) {
        const char *weight = draw_weight(random), *gap = test_below(random, 2) ? " " : "  ";
        weights[i] = strtod(weight, NULL);
        switch (format) {
        case IO_MTX: at += (size_t)sprintf(text + at, "%d%s%d %s\n", 1 + i, gap, 100 - i, weight); break;
        case IO_NATIVE: at += (size_t)sprintf(text + at, "%d %d:%s $\n", i, i + 1, weight); break;
        case IO_ETC: at += (size_t)sprintf(text + at, "n%d%sn%d:%s\n", i, gap, i + 1, weight); break;
        case IO_BLAST:
            at += (size_t)sprintf(text + at, "n%d\tn%d\t9\t9\t0\t0\t1\t9\t1\t9\t.1\t%s\n", i, i + 1, weight);
            break;
        default: at += (size_t)sprintf(text + at, "n%d%sn%d %s\n", i, gap, i + 1, weight);
        }
    }
    return at + (size_t)sprintf(text + at, format == IO_NATIVE ? ")\n" : "");
}

TEST(weights_of_f64_are_those_of_the_text)
{
    static const io_format formats[] = {IO_ABC, IO_ETC, IO_MTX, IO_NATIVE, IO_STRING, IO_BLAST};
    const io_format format = formats[_i];
    for (uint64_t seed = 1; seed <= 100; seed++) {
        test_random random = test_seed(seed);
        char text[8000];
        double weights[WIDE_ARCS];
        const size_t count = write_wide(&random, format, text, weights);
        const io_read_options options = {
            .format = format, .values = SP_F64, .expect_values = format == IO_ETC};
        sp_context *context = test_context(0, 1 + (int)(seed % 3));
        io_graph graph;
        ck_ok(context, read_spread(context, text, count, &options, seed % 4 ? 64 : 0, &graph));
        ck_assert_int_eq(graph.arcs, WIDE_ARCS);
        for (int64_t i = 0; i < graph.arcs; i++)
            test_expect(io_arc_weight(&graph, i) == weights[i], "seed %llu, arc %lld: %.17g, not %.17g",
                        (unsigned long long)seed, (long long)i, io_arc_weight(&graph, i), weights[i]);
        io_graph_free(context, &graph);
        sp_context_destroy(context);
    }
}

static void expect_vast(const char *text, io_format format, int64_t line)
{
    const io_read_options options = {.format = format, .values = SP_F64, .any_sign = true};
    for (size_t block = 0; block <= 100; block += 20) {
        sp_context *context = test_context(0, 2);
        io_graph graph;
        ck_ok(context, io_read_memory(context, "in", text, strlen(text), &options, block, &graph));
        test_expect(graph.vast_line == line, "block %zu: line %lld, not %lld", block, (long long)graph.vast_line,
                    (long long)line);
        io_graph_free(context, &graph);
        sp_context_destroy(context);
    }
}

TEST(the_first_line_beyond_2_to_the_53_is_known)
{
    expect_vast("a b 1\nc d 9007199254740992\ne f 9007199254740991\n", IO_ABC, 0);
    expect_vast("a b 1\nc d 9007199254740993\ne f 1e300\n", IO_ABC, 2);
    expect_vast("# x\na b 1\nc d -9007199254740993\n", IO_ABC, 3);
    expect_vast("%%MatrixMarket matrix coordinate real general\n% x\n2 2 2\n1 1 1\n2 2 1e20\n", IO_MTX, 5);
    expect_vast("(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mclmatrix\nbegin\n0 0:1\n1:1e16 $\n)\n", IO_NATIVE, 8);
    expect_vast("2 1 001\n2 1e16\n1 1e16\n", IO_METIS, 2);
}

/* ---- memory --------------------------------------------------------------------------------------------- */

/* What takes the most memory for its bytes: labels that never repeat, arcs written in a few bytes, weights here and
 * there. */
typedef struct shape {
    const char *head, *tail;
    io_format format;
    int new_labels, known_labels; /* a line, of four bytes and of one */
    int weighted;                 /* every so many'th line ends with a weight */
    const char *end;              /* of a line, before that */
    bool numbers;                 /* the known labels are digits */
    bool rows;                    /* a line's ascend, as the lines do */
} shape;

#define NATIVE_HEAD(size) "(mclheader\nmcltype matrix\ndimensions " size "x" size "\n)\n(mclmatrix\nbegin\n"

static const shape shapes[] = {
    {.format = IO_ABC, .new_labels = 2},
    {.format = IO_ABC, .new_labels = 2, .weighted = 50},
    {.format = IO_ABC, .new_labels = 2, .weighted = 1},
    {.format = IO_ABC, .new_labels = 1, .known_labels = 1},
    {.format = IO_ABC, .known_labels = 2, .weighted = 50},
    {.format = IO_ETC, .new_labels = 20},
    {.format = IO_ETC, .known_labels = 20},
    {.format = IO_ETC, .known_labels = 2},
    {.format = IO_ETC, .known_labels = 2, .weighted = 50, .end = ":"},
    {.format = IO_ETC, .known_labels = 2, .weighted = 1, .end = ":"},
    {.format = IO_ETC, .known_labels = 20, .weighted = 50, .end = ":"},
    {.format = IO_ETC, .known_labels = 4 << 20}, /* one line */
    {.format = IO_SIF, .known_labels = 1 << 20},
    {.format = IO_SIF, .known_labels = 5000, .weighted = 2, .end = ":"},
    {.format = IO_SIF, .new_labels = 1 << 20},
    {.format = IO_METIS},
    {.head = NATIVE_HEAD("10"), .tail = ")\n", .format = IO_NATIVE, .known_labels = 11, .numbers = true, .end = "$ "},
    {.head = NATIVE_HEAD("10") "0 ", .tail = "$\n)\n", .format = IO_NATIVE, .known_labels = 11, .numbers = true},
    {.head = NATIVE_HEAD("10"), .tail = ")\n", .format = IO_NATIVE, .known_labels = 3, .numbers = true, .end = "$ "},
    {.head = NATIVE_HEAD("10"), .tail = ")\n", .format = IO_NATIVE, .known_labels = 2, .numbers = true, .end = "$ "},
    {.head = NATIVE_HEAD("10"), .tail = ")\n", .format = IO_NATIVE, .known_labels = 9, .numbers = true, .rows = true,
     .weighted = 50, .end = ":"},
    {.head = NATIVE_HEAD("8000000"), .tail = ")\n", .format = IO_NATIVE, .rows = true, .weighted = 1000, .end = ":"},
};

/* Nodes 1 to 9 are neighbours of all others: those have short lines. */
static char *write_metis_lines(size_t size, size_t *count)
{
    enum { HUBS = 9, LINE = 18, NUMBER = 8 };
    const size_t others = size / (LINE + HUBS * NUMBER);
    char *text = malloc(size + 100);
    size_t at = (size_t)sprintf(text, "%zu %zu\n", HUBS + others, HUBS * others);
    for (int hub = 0; hub < HUBS; hub++) {
        for (size_t i = 1; i <= others; i++) at += (size_t)sprintf(text + at, "%zu ", HUBS + i);
        text[at - 1] = '\n';
    }
    for (size_t i = 0; i < others; i++, at += LINE) memcpy(text + at, "1 2 3 4 5 6 7 8 9\n", LINE);
    *count = at;
    return text;
}

static char *write_shape(const shape *s, size_t size, size_t *count)
{
    enum { SYMBOLS = 90, FIRST = '%', LABELS = SYMBOLS * SYMBOLS * SYMBOLS * SYMBOLS };
    const int in_line = s->new_labels + s->known_labels;
    char *text = malloc(size + (size_t)in_line * 5 + 1000);
    size_t at = (size_t)sprintf(text, "%s", s->head ? s->head : "");
    int64_t label = 0;
    for (int64_t line = 0; at < size; line++) {
        for (int i = 0; i < s->new_labels; i++) {
            label = (label + 7654321) % LABELS;
            for (int64_t k = 0, left = label; k < 4; k++, left /= SYMBOLS)
                text[at++] = (char)(FIRST + left % SYMBOLS);
            text[at++] = ' ';
        }
        for (int i = 0; i < s->known_labels; i++) {
            const int64_t number = s->rows && i ? i : i ? i - 1 : line % 10;
            text[at++] = (char)(s->numbers ? '0' + number % 10 : ';' + number % 60);
            text[at++] = ' ';
        }
        if (in_line == 0) at += (size_t)sprintf(text + at, "%lld %lld ", (long long)line, (long long)(line + 1));
        const bool weighted = s->weighted && line % s->weighted == 0;
        if (s->end && s->end[0] == ':' && weighted) at--;
        if (s->end && (weighted || s->end[0] != ':')) at += (size_t)sprintf(text + at, "%s", s->end);
        if (weighted) at += (size_t)sprintf(text + at, "%d ", 2 + (int)(line % 8));
        if (s->rows) at += (size_t)sprintf(text + at, "$ ");
        text[at - 1] = '\n';
    }
    *count = at + (size_t)sprintf(text + at, "%s", s->tail ? s->tail : "");
    return text;
}

typedef struct limited {
    test_heap heap;
    sp_allocator allocator;
    int64_t constant; /* what reading takes of 64 MB: small blocks, a table of 16 */
} limited;

static sp_context *limited_context(limited *l, int threads)
{
    l->heap = (test_heap){.fail_at = -1};
    l->allocator = test_allocator(&l->heap);
    l->constant = threads > 2 ? 48 << 20 : 36 << 20;
    const sp_context_options settings = {.device = "cpu", .threads = threads, .allocator = &l->allocator};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
    return context;
}

/* Short arcs in 16 MB: half as much again as promised is more than what the constant hides. The matrix, too. */
static void check_memory(const shape *s, sp_value_type type, const char *text, size_t count, int threads)
{
    const io_read_options options = {
        .format = s->format, .expect_values = s->end && s->end[0] == ':', .values = type};
    const int times = type == SP_F32 ? 4 : 5, value = type == SP_F32 ? 4 : 8;
    limited l;
    sp_context *context = limited_context(&l, threads);
    io_graph graph;
    sp_csr matrix;
    ck_ok(context, io_read_memory(context, "in", text, count, &options, 0, &graph));
    test_expect(l.heap.peak_bytes <= times * (int64_t)count + l.constant, "%d threads: %.2f times %zu bytes", threads,
                (double)l.heap.peak_bytes / (double)count, count);
    ck_assert_int_gt(graph.arcs, 0);
    const int64_t arcs = graph.arcs, entries = arcs * (1 + graph.symmetric), before = l.heap.live_bytes;
    l.heap.peak_bytes = before;
    ck_ok(context, io_graph_matrix(context, &graph, false, SP_COMBINE_MAX, graph.symmetric, &matrix));
    const int64_t left = l.heap.live_bytes - (4 + value) * matrix.nnz - 8 * graph.nodes; /* names of nodes */
    const int64_t most = s->rows && s->known_labels == 0
                             ? before + value * arcs + 8 * graph.nodes
                             : left + (8 + value) * arcs + (12 + value) * entries + 24 * graph.nodes;
    test_expect(l.heap.peak_bytes <= most + (1 << 20) * threads, "%d threads: a matrix of %lld arcs takes %lld "
                "bytes instead of %lld", threads, (long long)arcs, (long long)l.heap.peak_bytes, (long long)most);
    sp_csr_free(context, &matrix);
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    ck_assert_int_eq(l.heap.live_bytes, 0);
}

TEST(readers_take_no_more_memory_than_promised)
{
    const shape *s = &shapes[_i];
    const size_t size = s->new_labels ? 8 << 20 : 16 << 20;
    size_t count;
    char *text = s->format == IO_METIS ? write_metis_lines(size, &count) : write_shape(s, size, &count);
    for (int threads = 2; threads <= 16; threads += 14) {
        check_memory(s, SP_F32, text, count, threads);
        if (s->weighted) check_memory(s, SP_F64, text, count, threads);
    }
    free(text);
}

/* METIS files whose lines are two bytes, back to nodes of one digit: 0: the other halves of the edges are missing; 1:
 * there are as many arcs ahead, in two bytes too. */
TEST(metis_lines_of_two_bytes_are_refused_before_they_take_much)
{
    enum { LINES = 8 << 20 };
    char *text = malloc(4 * LINES + 100);
    size_t at = (size_t)sprintf(text, "%d %d\n", LINES, LINES);
    for (int i = 0; i < (_i ? LINES : 1); i++, at += 2) memcpy(text + at, "2 ", 2);
    for (int i = 0; i < LINES; i++, at += 2) memcpy(text + at, "\n1", 2);
    limited l;
    sp_context *context = limited_context(&l, 2);
    const io_read_options options = {.format = IO_METIS};
    io_graph graph;
    ck_assert_int_eq(io_read_memory(context, "in", text, at, &options, 0, &graph), SP_ERROR_MATRIX);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), _i ? "in:2: node 1 names node 2 twice; METIS graphs have no"
                                                            : "in:2: node 1 does not name node 3, but that names it in "
                                                              "line 4"));
    test_expect(l.heap.peak_bytes <= 4 * (int64_t)at + l.constant, "%.2f times %zu bytes",
                (double)l.heap.peak_bytes / (double)at, at);
    sp_context_destroy(context);
    ck_assert_int_eq(l.heap.live_bytes, 0);
    free(text);
}

/* A column of ids of many digits, then one id again and again. */
TEST(a_native_column_of_repeated_entries_is_settled_in_time)
{
    enum { IDS = 1500000, AGAIN = 5 };
    char *text = malloc(IDS * (8 + 2 * AGAIN) + 200);
    size_t at = (size_t)sprintf(text, NATIVE_HEAD("%d") "0 ", IDS, IDS);
    for (int i = IDS - 1; i > 0; i--) at += (size_t)sprintf(text + at, i == 7 ? "7:2 " : "%d ", i);
    for (int i = 0; i < AGAIN * IDS; i++, at += 2) memcpy(text + at, "7 ", 2);
    at += (size_t)sprintf(text + at, "$\n)\n");
    limited l;
    sp_context *context = limited_context(&l, 1);
    io_graph graph;
    ck_ok(context, io_read_memory(context, "in", text, at, &automatic, 0, &graph));
    ck_assert_int_eq(graph.arcs, IDS - 1);
    test_expect(l.heap.peak_bytes <= 4 * (int64_t)at + l.constant, "%.2f times %zu bytes",
                (double)l.heap.peak_bytes / (double)at, at);
    ck_ok(context, io_graph_spread(context, &graph));
    ck_assert(graph.heads[6] == 7 && io_arc_weight(&graph, 6) == 2 && io_arc_weight(&graph, 5) == 1);
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    free(text);
}

/* Entries of four bytes on both sides of the diagonal, empty lines between them. */
TEST(mixed_triangles_take_no_more_memory_than_promised)
{
    enum { ENTRIES = 4 << 20 };
    char *text = malloc(5 * ENTRIES + 100);
    size_t at = (size_t)sprintf(text, "%%" SYMMETRIC("pattern symmetric", "9 9 %d"), ENTRIES);
    for (int i = 0; i < ENTRIES; i++)
        at += (size_t)sprintf(text + at, "%s%s", i % 2 ? "2 1\n" : "1 3\n", _i ? "\n" : "");
    limited l;
    sp_context *context = limited_context(&l, 2);
    io_graph graph;
    ck_ok(context, io_read_memory(context, "in", text, at, &automatic, 0, &graph));
    test_expect(l.heap.peak_bytes <= 4 * (int64_t)at + l.constant, "%.2f times %zu bytes",
                (double)l.heap.peak_bytes / (double)at, at);
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    free(text);
}

/* Label files that take the most memory for their bytes: ever new names; short words for nodes in several groups. */
TEST(label_readers_take_no_more_memory_than_promised)
{
    enum { LINES = 1 << 20, NODES = 90 };
    const bool overlapping = _i;
    char *text = malloc(LINES * 8), graph_text[100];
    size_t at = 0;
    for (int64_t i = 0; i < LINES; i++) {
        const int digits[] = {(int)(i % 90), (int)(i / 90 % 90), (int)(i / 8100 % 90), (int)(i / 729000)};
        if (overlapping)
            at += (size_t)sprintf(text + at, "%lld%c", (long long)(1 + i % 9), i % 20 == 19 ? '\n' : ' ');
        else
            at += (size_t)sprintf(text + at, "%c%c%c%c\n", '%' + digits[0], '%' + digits[1], '%' + digits[2],
                                  'a' + digits[3]);
    }
    const int64_t nodes = overlapping ? NODES : LINES, factor = overlapping ? 16 : 6;
    snprintf(graph_text, sizeof graph_text, "%%%%MatrixMarket matrix coordinate pattern general\n%lld %lld 0\n",
             (long long)nodes, (long long)nodes);
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options settings = {.device = "cpu", .threads = 1, .allocator = &allocator};
    const io_label_options options = {.base = 1, .format = overlapping ? IO_LABELS_CLUSTERS : IO_LABELS_LIST};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
    io_graph graph = read_text(context, graph_text, automatic);
    io_source *source;
    io_labelling labelling;
    ck_ok(context, io_source_memory(context, "l", text, at, &source));
    heap.peak_bytes = 0;
    ck_ok(context, io_read_labels_source(context, source, &graph, &options, &labelling));
    ck_assert(overlapping == (labelling.labels == NULL));
    test_expect(heap.peak_bytes <= factor * (int64_t)at + 8 * nodes + (4 << 20), "%.2f times %zu bytes",
                (double)heap.peak_bytes / (double)at, at);
    io_source_close(source);
    io_labelling_free(context, &labelling);
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    free(text);
}

/* ---- writing -------------------------------------------------------------------------------------------- */

CONTEXT_TEST(label_clusters_are_lines_of_labels, 0, 1)
{
    int64_t offsets[] = {0, 2, 3}, groups[] = {0};
    uint32_t name_offsets[] = {0, 1, 3, 4};
    int32_t members[] = {0, 2, 1};
    char names[] = "abbc";
    const io_clusters clusters = {3, 2, offsets, members};
    const io_names labels = {3, groups, name_offsets, names};
    io_output *output;
    ck_ok(context, io_output_open(context, path_of("out"), &output));
    io_put_label_clusters(output, &clusters, &labels);
    ck_ok(context, io_output_commit(output));
    ck_assert_str_eq(contents(path_of("out")), "a\tc\nbb\n");
}

/* What mcl 22-282 wrote for a clustering of 30 nodes in one cluster. */
static const char native_clusters[] = "# cline: mcl k.mci \"-o\" \"k.cls\"\n"
                                      "(mclheader\nmcltype matrix\ndimensions 30x1\n)\n(mclmatrix\nbegin\n"
                                      "0  0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n"
                                      "     26 27 28 29 $\n)\n";

/* The same with ids 1 to 30. */
static const char native_domain_clusters[] = "(mclheader\nmcltype matrix\ndimensions 30x1\n)\n(mclrows\n"
                                             " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26\n"
                                             " 27 28 29 30 $\n)\n(mclmatrix\nbegin\n"
                                             "0  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n"
                                             "     26 27 28 29 30 $\n)\n";

CONTEXT_TEST(native_clusters_are_written_as_mcl_does, 0, 1)
{
    int64_t offsets[] = {0, 30}, ids[30];
    int32_t members[30];
    for (int i = 0; i < 30; i++) {
        members[i] = i;
        ids[i] = i + 1;
    }
    const io_clusters clusters = {30, 1, offsets, members}, none = {0, 0, offsets, members};
    ck_ok(context, io_write_native_clusters(context, path_of("out"), &clusters, NULL, false,
                                            "mcl k.mci \"-o\" \"k.cls\""));
    ck_assert_str_eq(contents(path_of("out")), native_clusters);
    ck_ok(context, io_write_native_clusters(context, path_of("out"), &clusters, ids, false, NULL));
    ck_assert_str_eq(contents(path_of("out")), native_domain_clusters);
    ck_ok(context, io_write_native_clusters(context, path_of("out"), &none, NULL, false, NULL));
    ck_assert_str_eq(contents(path_of("out")),
                     "(mclheader\nmcltype matrix\ndimensions 0x0\n)\n(mclmatrix\nbegin\n)\n");
}

CONTEXT_TEST(native_columns_are_as_wide_as_the_largest_id_plus_one, 0, 1)
{
    static const struct {
        int64_t nodes;
        const char *line;
    } cases[] = {{9, "\n0 0 $\n"}, {10, "\n0  0 $\n"}, {99, "\n0  0 $\n"}, {100, "\n0   0 $\n"}};
    int64_t offsets[] = {0, 1};
    int32_t members[] = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const io_clusters clusters = {cases[i].nodes, 1, offsets, members};
        ck_ok(context, io_write_native_clusters(context, path_of("out"), &clusters, NULL, false, NULL));
        ck_assert_ptr_nonnull(strstr(contents(path_of("out")), cases[i].line));
    }
}

/* Part of what mcl 22-282 wrote with -write-graph: lines are broken by the ids' width, not by the values'. */
static const char native_graph[] = "(mclheader\nmcltype matrix\ndimensions 60x60\n)\n(mclmatrix\nbegin\n"
                                   "0  1:45031.7 9:2.65875e-09 20:5.71177e-08 32:0.166106 34:41.5467 42:3.95634e-08\n"
                                   "     55:3.63297e-11 $\n"
                                   "2  3:193.327 10:461.153 11:2.4648e-07 17:1954500 41:5425.93 43:3.03008e-09\n"
                                   "     53:7.45095e-05 57:579.293 $\n)\n";

static sp_csr columns_of(sp_context *context, io_graph *graph)
{
    sp_csr matrix;
    ck_ok(context, io_graph_matrix(context, graph, false, SP_COMBINE_MAX, graph->symmetric, &matrix));
    return matrix;
}

CONTEXT_TEST(native_graphs_are_written_as_mcl_does, 0, 1)
{
    io_graph graph = read_text(context, native_graph, automatic);
    sp_csr matrix = columns_of(context, &graph);
    ck_ok(context, io_write_native_matrix(context, path_of("out"), &matrix, NULL, NULL, 7, false, NULL));
    ck_assert_str_eq(contents(path_of("out")), native_graph);
    sp_csr_free(context, &matrix);
    io_graph_free(context, &graph);
}

TEST(native_matrices_survive_writing_and_reading)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        sp_context *context = test_context(0, 2);
        test_random random = test_seed(seed);
        int64_t nodes = 1 + test_below(&random, 300);
        sp_csr matrix = test_matrix(context, &random, nodes, nodes, 0.1, SP_F32, TEST_POSITIVE);
        int64_t *ids = malloc((size_t)nodes * sizeof *ids), id = test_below(&random, 1000) + 1;
        for (int64_t i = 0; i < nodes; i++, id += 1 + test_below(&random, 50)) ids[i] = id;
        for (int form = 0; form < 4; form++) {
            const int64_t *domain = form & 1 ? ids : NULL;
            ck_ok(context, io_write_native_matrix(context, path_of("m"), &matrix, domain, NULL, 9, form & 2, "x"));
            io_graph graph;
            ck_ok(context, io_read_graph(context, path_of("m"), &automatic, &graph));
            ck_assert((graph.ids != NULL) == (domain != NULL));
            for (int64_t i = 0; domain && i < nodes; i++) ck_assert_int_eq(graph.ids[i], ids[i]);
            sp_csr again = columns_of(context, &graph);
            test_same(&matrix, &again, seed);
            sp_csr_free(context, &again);
            io_graph_free(context, &graph);
        }
        free(ids);
        sp_csr_free(context, &matrix);
        sp_context_destroy(context);
    }
}

/* ---- graphs in every format ------------------------------------------------------------------------------ */

static void same_text(const char *text, sp_context *context, const sp_csr *matrix, io_write_options options)
{
    ck_ok(context, io_write_graph(context, path_of("out"), matrix, &options));
    ck_assert_str_eq(contents(path_of("out")), text);
}

CONTEXT_TEST(graphs_are_written_as_their_formats_have_them, 0, 1)
{
    int64_t offsets[] = {0, 2, 3, 4}, groups[] = {0}, sizes[] = {5, 6, 7};
    int32_t columns[] = {1, 2, 0, 0};
    float values[] = {0.5f, 3, 0.5f, 3}, ones[] = {2, 3, 2, 3};
    uint32_t name_offsets[] = {0, 1, 3, 4};
    char letters[] = "abbc";
    const io_names names = {3, groups, name_offsets, letters};
    sp_csr m = {.rows = 3, .cols = 3, .nnz = 4, .row_offsets = offsets, .col_indices = columns, .values = values};
    same_text("%%MatrixMarket matrix coordinate real general\n% x\n3 3 4\n1 2 0.5\n1 3 3\n2 1 0.5\n3 1 3\n", context,
              &m, (io_write_options){.format = IO_MTX, .comment = "x"});
    same_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 1 3\n", context, &m,
              (io_write_options){.format = IO_MTX, .undirected = true});
    same_text("a\tbb\t0.5\na\tc\t3\n", context, &m,
              (io_write_options){.format = IO_ABC, .undirected = true, .names = &names});
    same_text("7\t8\t0.5\n7\t9\t3\n8\t7\t0.5\n9\t7\t3\n", context, &m,
              (io_write_options){.format = IO_TSV, .undirected = true, .first = 7});
    same_text(
        "(mclheader\nmcltype matrix\ndimensions 3x3\n)\n(mclmatrix\nbegin\n0 1:0.5 2:3 $\n1 0:0.5 $\n2 0:3 $\n)\n",
        context, &m, (io_write_options){.format = IO_NATIVE});
    m.values = ones;
    same_text("3 2 001\n2 2 3 3\n1 2\n1 3\n", context, &m, (io_write_options){.format = IO_METIS});
    m.values = NULL;
    same_text("%%MatrixMarket matrix coordinate pattern general\n3 3 4\n1 2\n1 3\n2 1\n3 1\n", context, &m,
              (io_write_options){.format = IO_MTX});
    same_text("3 2 010\n5 2 3\n6 1\n7 1\n", context, &m,
              (io_write_options){.format = IO_METIS, .constraints = 1, .node_weights = sizes});
}

CONTEXT_TEST(metis_writing_refuses_what_metis_has_not, 0, 1)
{
    int64_t offsets[] = {0, 1, 2};
    int32_t columns[] = {1, 0}, loops[] = {0, 1};
    float values[] = {2, 3};
    const io_write_options options = {.format = IO_METIS};
    sp_csr m = {.rows = 2, .cols = 2, .nnz = 2, .row_offsets = offsets, .col_indices = columns, .values = values};
    ck_assert_int_ne(io_write_graph(context, path_of("out"), &m, &options), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "the edge from 1 to 2 has no opposite of the same weight"));
    values[0] = 0.5f;
    ck_assert_int_ne(io_write_graph(context, path_of("out"), &m, &options), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "no whole number above 0"));
    m.col_indices = loops;
    ck_assert_int_ne(io_write_graph(context, path_of("out"), &m, &options), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "is a loop"));
    ck_assert_int_eq(files_in_folder(), 0);
}

static size_t length_of(const char *path)
{
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    return (size_t)about.st_size;
}

static bool same_files(const char *one, const char *other)
{
    const size_t count = length_of(one);
    char *a = malloc(count + 1), *b = malloc(count + 1);
    FILE *first = fopen(one, "rb"), *second = fopen(other, "rb");
    const bool same = fread(a, 1, count, first) == count && fread(b, 1, count + 1, second) == count &&
                      memcmp(a, b, count) == 0;
    fclose(first);
    fclose(second);
    free_all(a, b);
    return same;
}

/* Rows of the matrix that a graph file with source rows stands for. */
static sp_csr rows_of(sp_context *context, io_graph *graph)
{
    sp_csr matrix;
    ck_ok(context, io_graph_matrix(context, graph, graph->format == IO_MTX, SP_COMBINE_FIRST, false, &matrix));
    return matrix;
}

/* One row of 50,000 entries, empty rows before, between and after: pieces end everywhere. */
static sp_csr skewed_matrix(sp_context *context, test_random *random)
{
    enum { ROWS = 60000, WIDE = 30000, FULL = 50000 };
    int32_t *rows = malloc(sizeof *rows * 2 * FULL), *cols = malloc(sizeof *cols * 2 * FULL);
    float *values = malloc(sizeof *values * 2 * FULL);
    for (int64_t i = 0; i < 2 * FULL; i++) {
        rows[i] = i < FULL ? WIDE : (int32_t)(100 + test_below(random, ROWS - 200));
        cols[i] = (int32_t)(i < FULL ? i : test_below(random, ROWS));
        values[i] = (float)(test_below(random, 3) ? test_unit(random) * 100 : (double)(1 + test_below(random, 1000)));
    }
    sp_csr matrix;
    ck_ok(context, sp_csr_from_coo(context, ROWS, ROWS, 2 * FULL, rows, cols, values, SP_F32, SP_COMBINE_FIRST, false,
                                   &matrix));
    free_all(rows, cols, values);
    return matrix;
}

TEST(graphs_survive_writing_and_reading_whatever_the_threads)
{
    static const io_format formats[] = {IO_MTX, IO_NATIVE, IO_CSR, IO_TSV};
    const uint64_t seed = 11;
    test_random random = test_seed(seed);
    sp_context *context = test_context(0, 1), *many = test_context(0, 5);
    sp_csr matrix = skewed_matrix(context, &random);
    for (size_t f = 0; f < COUNT(formats); f++) {
        const io_write_options options = {.format = formats[f]};
        const io_read_options reading = {.format = formats[f]};
        ck_ok(context, io_write_graph(context, path_of("one"), &matrix, &options));
        ck_ok(many, io_write_graph(many, path_of("many"), &matrix, &options));
        ck_assert(same_files(path_of("one"), path_of("many")));
        io_graph graph;
        ck_ok(context, io_read_graph(context, path_of("one"), &reading, &graph));
        ck_assert_int_eq(graph.arcs, matrix.nnz);
        for (int64_t e = 0, row = 0; formats[f] == IO_TSV && e < graph.arcs; e++) { /* nodes are in another order */
            while (matrix.row_offsets[row + 1] <= e) row++;
            char label[16] = "";
            memcpy(label, io_name(&graph.names, graph.tails[e]), io_name_length(&graph.names, graph.tails[e]));
            test_expect(atoi(label) == row && io_arc_weight(&graph, e) == ((float *)matrix.values)[e], "line %lld",
                        (long long)e);
        }
        if (formats[f] != IO_TSV) {
            sp_csr again = rows_of(context, &graph);
            test_same(&matrix, &again, seed);
            sp_csr_free(context, &again);
        }
        io_graph_free(context, &graph);
    }
    sp_csr_free(context, &matrix);
    sp_context_destroy(many);
    sp_context_destroy(context);
}

TEST(metis_graphs_survive_writing_and_reading)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        sp_context *context = test_context(0, 2);
        test_random random = test_seed(seed);
        const int64_t nodes = 2 + test_below(&random, 200), edges = test_below(&random, 600);
        int32_t *tails = malloc(sizeof *tails * 600), *heads = malloc(sizeof *heads * 600);
        float *weights = malloc(sizeof *weights * 600);
        for (int64_t e = 0; e < edges; e++) {
            tails[e] = (int32_t)test_below(&random, nodes - 1);
            heads[e] = (int32_t)(tails[e] + 1 + test_below(&random, nodes - tails[e] - 1));
            weights[e] = (float)(seed % 2 ? 1 + test_below(&random, 1000) : 1);
        }
        sp_csr matrix;
        ck_ok(context, sp_csr_from_coo(context, nodes, nodes, edges, tails, heads, weights, SP_F32, SP_COMBINE_MAX,
                                       true, &matrix));
        const io_write_options options = {.format = IO_METIS};
        const io_read_options reading = {.format = IO_METIS};
        io_graph graph;
        ck_ok(context, io_write_graph(context, path_of("out"), &matrix, &options));
        ck_ok(context, io_read_graph(context, path_of("out"), &reading, &graph));
        sp_csr again = rows_of(context, &graph);
        test_same(&matrix, &again, seed);
        sp_csr_free(context, &again);
        io_graph_free(context, &graph);
        sp_csr_free(context, &matrix);
        free_all(tails, heads, weights);
        sp_context_destroy(context);
    }
}

CONTEXT_TEST(binary_matrices_keep_everything_and_notice_every_changed_byte, 0, 1)
{
    int64_t offsets[] = {0, 2, 3, 3}, groups[] = {0};
    int32_t columns[] = {1, 2, 0};
    double values[] = {0.1, -1e300, 3};
    uint32_t name_offsets[] = {0, 1, 3, 4};
    char letters[] = "abbc";
    const io_names names = {3, groups, name_offsets, letters};
    const sp_csr m = {.rows = 3,
                      .cols = 3,
                      .nnz = 3,
                      .row_offsets = offsets,
                      .col_indices = columns,
                      .values = values,
                      .value_type = SP_F64};
    const io_write_options writing = {.format = IO_CSR, .undirected = true, .names = &names};
    const io_read_options whole = {.matrix = true, .any_sign = true}, arcs = {.any_sign = true},
                          strict = {.matrix = true};
    io_graph graph;
    ck_ok(context, io_write_graph(context, path_of("out"), &m, &writing));
    ck_ok(context, io_read_graph(context, path_of("out"), &whole, &graph));
    ck_assert(graph.format == IO_CSR && graph.undirected && graph.nodes == 3 && graph.names.count == 3);
    test_same(&m, &graph.matrix, 0);
    ck_assert_int_eq(memcmp(io_name(&graph.names, 1), "bb", 2), 0);
    io_graph_free(context, &graph);
    ck_assert_int_ne(io_read_graph(context, path_of("out"), &strict, &graph), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "a negative value"));
    ck_assert_int_ne(io_read_graph(context, path_of("out"), &arcs, &graph), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "a value above 3.4e38"));
    char file[400], message[64];
    const size_t count = length_of(path_of("out"));
    FILE *from = fopen(path_of("out"), "rb");
    ck_assert_uint_eq(fread(file, 1, sizeof file, from), count);
    fclose(from);
    for (size_t cut = 0; cut < count; cut++) {
        snprintf(message, sizeof message, "in: byte %zu: the binary matrix ends too soon", cut);
        expect_failure(file, cut, (io_read_options){.format = IO_CSR, .any_sign = true}, message);
    }
    for (size_t at = 0; at + 4 < count; at++) { /* the last four are not used */
        if (at >= 52 && at < 56) continue;      /* nor are these */
        file[at] = (char)(file[at] ^ 0x20);
        expect_failure(file, count, (io_read_options){.format = IO_CSR, .matrix = true, .any_sign = true},
                       "in: byte ");
        file[at] = (char)(file[at] ^ 0x20);
    }
}

/* ---- numbers as text ------------------------------------------------------------------------------------ */

static void expect_number(const char *text, double value, bool single)
{
    char written[IO_NUMBER];
    size_t length = single ? io_format_f32(written, (float)value) : io_format_f64(written, value);
    ck_assert_uint_lt(length, IO_NUMBER);
    ck_assert_msg(length == strlen(text) && memcmp(written, text, length) == 0, "\"%.*s\" instead of \"%s\"",
                  (int)length, written, text);
}

TEST(numbers_are_written_with_the_fewest_digits)
{
    expect_number("0", 0, true);
    expect_number("0.1", 0.1, true);
    expect_number("-0.25", -0.25, true);
    expect_number("16777216", 16777216, true);
    expect_number("-9007199254740992", -9007199254740992, true); /* the limit of Matrix Market's field integer */
    expect_number("9007199254740992", 9007199254740992, false);
    expect_number("1e-7", 1e-7, true);
    expect_number("3.4028235e38", 3.4028234663852886e38, true);
    expect_number("0.33333334", 1.0 / 3, true);
    expect_number("0.3333333333333333", 1.0 / 3, false);
    expect_number("9007199254740991", 9007199254740991, false);
    expect_number("-1e300", -1e300, false);
    expect_number("8e-301", 8e-301, false); /* of 16 digits, 8.000000000000001e-301 */
    expect_number("1.2345e150", 1.2345e150, false);
    char text[IO_NUMBER];
    ck_assert_uint_eq(io_format_int(text, INT64_MIN), 20);
    ck_assert_int_eq(memcmp(text, "-9223372036854775808", 20), 0);
    for (int64_t i = 1, n = 1; i < 19; i++, n *= 10)
        for (int64_t k = -1; k <= 1; k++) {
            text[io_format_int(text, n + k)] = '\0';
            ck_assert_int_eq(strtoll(text, NULL, 10), n + k);
        }
}

TEST(written_numbers_are_read_back_the_same)
{
    const uint64_t seed = 30;
    test_random random = test_seed(seed);
    for (int64_t i = 0; i < 1000000; i++) {
        const uint64_t bits = test_next(&random);
        const uint32_t half = (uint32_t)bits;
        float single, read;
        double wide, back;
        char text[IO_NUMBER], shortest[IO_NUMBER];
        memcpy(&single, &half, sizeof single);
        if (i % 2) single = (float)(test_unit(&random) * 1000);
        if (!isfinite(single)) continue;
        size_t length = io_format_f32(text, single);
        text[length] = '\0';
        read = strtof(text, NULL);
        test_expect(io_parse_decimal(text, text + length, &back) == text + length && (float)back == single &&
                        read == single,
                    "seed %llu: %.9g is written as %s", (unsigned long long)seed, (double)single, text);
        for (int digits = 1; i % 2 && digits < 9; digits++) { /* %g writes no shorter one that does */
            const int found = snprintf(shortest, sizeof shortest, "%.*g", digits, (double)single);
            test_expect(strtof(shortest, NULL) != single || (size_t)found >= length,
                        "seed %llu: %s is shorter than %s", (unsigned long long)seed, shortest, text);
        }
        memcpy(&wide, &bits, sizeof wide);
        if (i % 20 || !isfinite(wide)) continue;
        length = io_format_f64(text, wide);
        text[length] = '\0';
        test_expect(length < IO_NUMBER && strtod(text, NULL) == wide, "seed %llu: %.17g is written as %s",
                    (unsigned long long)seed, wide, text);
    }
}

/* ---- labels of nodes ------------------------------------------------------------------------------------ */

/* "0 1 1 -" for labels of nodes, or "0:1,2 1:2*0.5" for the members of groups; names of groups follow a bar. */
static const char *groups_of(const io_labelling *l, int64_t nodes)
{
    static char text[1000];
    size_t at = 0;
    text[0] = '\0';
    for (int64_t i = 0; l->labels && i < nodes; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, l->labels[i] < 0 ? "%s-" : "%s%d", i ? " " : "",
                               l->labels[i]);
    for (int64_t p = 0; !l->labels && p < l->s.rows; p++)
        for (int64_t e = l->s.row_offsets[p]; e < l->s.row_offsets[p + 1]; e++) {
            const bool first = e == l->s.row_offsets[p];
            at += (size_t)snprintf(text + at, sizeof text - at, first ? "%s%lld:" : "%s", first ? p ? " " : "" : ",",
                                   (long long)p);
            at += (size_t)snprintf(text + at, sizeof text - at, "%d", l->s.col_indices[e]);
            if (l->s.values)
                at += (size_t)snprintf(text + at, sizeof text - at, "*%g", ((double *)l->s.values)[e]);
        }
    for (int64_t p = 0; p < l->names.count; p++)
        at += (size_t)snprintf(text + at, sizeof text - at, "|%.*s", (int)io_name_length(&l->names, p),
                               io_name(&l->names, p));
    return text;
}

static sp_status read_labels(sp_context *context, const char *graph_text, io_read_options reading, const char *text,
                             io_label_options options, io_labelling *labelling, int64_t *nodes)
{
    io_graph graph = read_text(context, graph_text, reading);
    io_source *source;
    ck_ok(context, io_source_memory(context, "l", text, strlen(text), &source));
    sp_status status = io_read_labels_source(context, source, &graph, &options, labelling);
    *nodes = graph.nodes;
    io_source_close(source);
    io_graph_free(context, &graph);
    return status;
}

static const char four_names[] = "a b\nc d\n";
static const char four_numbers[] = "%%MatrixMarket matrix coordinate pattern general\n4 4 0\n";
static const char five_seven[] =
    "(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mcldoms\n5 7 $\n)\n(mclmatrix\nbegin\n)\n";

static void expect_labels(const char *graph, const char *text, io_label_options options, const char *groups)
{
    sp_context *context = test_context(0, 1);
    io_labelling labelling;
    int64_t nodes;
    ck_ok(context, read_labels(context, graph, automatic, text, options, &labelling, &nodes));
    ck_assert_str_eq(groups_of(&labelling, nodes), groups);
    io_labelling_free(context, &labelling);
    sp_context_destroy(context);
}

static void expect_label_error(const char *graph, const char *text, io_label_options options, const char *beginning)
{
    sp_context *context = test_context(0, 1);
    io_labelling labelling;
    int64_t nodes;
    sp_status status = read_labels(context, graph, automatic, text, options, &labelling, &nodes);
    ck_assert_msg(status != SP_OK, "accepted: %s", text);
    ck_assert_msg(strncmp(sp_last_error(context), beginning, strlen(beginning)) == 0, "\"%s\" instead of \"%s...\"",
                  sp_last_error(context), beginning);
    ck_assert(!labelling.labels && labelling.groups == 0);
    sp_context_destroy(context);
}

static const io_label_options from_one = {.base = 1}, from_zero = {.base = 0},
                              loose = {.base = 1, .skip_unknown = true}, compact = {.base = 1, .compact = true};

TEST(label_files_are_told_apart_by_content)
{
    expect_labels(four_numbers, "2\n1\r\n# c\n\n2\n2", from_one, "1 0 1 1");
    expect_labels(four_numbers, "x y\nx y\nz\nz\n", (io_label_options){.format = IO_LABELS_LIST, .base = 1},
                  "0 0 1 1|x y|z");
    expect_labels(four_numbers, "0\n0\n3\n+2\n", from_zero, "0 0 3 2");
    expect_labels(four_names, "b\tq\r\na\tp p\nd\tq\nc\tq\n", from_one, "1 0 0 0|q|p p");
    expect_labels(four_names, "a 2\nb 2\nd 1\n", from_one, "1 1 - 0");
    expect_labels(four_names, "c b a\nd\n", from_one, "0 0 0 1");
    expect_labels(four_names, "a\tb\nc\td\n", from_one, "0 0 1 1");
    expect_labels(four_names, "d\nc\nb\na\n", from_one, "3 2 1 0");
    expect_labels(four_numbers, "1 3\n2 4\n", from_one, "0 1 0 1");
    expect_labels(four_numbers, "1 3\n2 3\n", from_one, "2 2 - -");
    expect_labels("a b\tc\n", "a b\nc\n", from_one, "0 1");
    expect_labels("10 2\n", "7\n7\n5\n7\n7\n7\n7\n7\n7\n4\n", from_one, "3 6");
    expect_labels("0 2\n", "7\n7\n5\n", from_one, "6 4");
    expect_labels(five_seven, "7 2\n5 1\n", from_one, "0 1");
    expect_labels(five_seven, "2\n1\n", from_one, "1 0");
    expect_labels(five_seven,
                  "(mclheader\nmcltype matrix\ndimensions 2x3\n)\n(mclrows\n5 7 $\n)\n(mclmatrix\nbegin\n2 7 $\n"
                  "0 5 $\n)\n",
                  from_one, "0 2");
    expect_labels(four_names,
                  "# mcl\n(mclheader\nmcltype matrix\ndimensions 4x2\n)\n(mclmatrix\nbegin\n0 0 2 $\n1 1 3 $\n)\n",
                  from_one, "0 1 0 1");
}

CONTEXT_TEST(nodes_of_several_groups_make_a_matrix, 0, 1)
{
    expect_labels(four_names, "a x\nb x\nb y\nc y\nd y\n", from_one, "0:0,1 1:1,2,3|x|y");
    expect_labels(four_names, "a\tb\tc\na\td\n", from_one, "0:0,1,2 1:0,3");
    expect_labels(four_names, "a x 0.5\nb x\na y .5\n", (io_label_options){.format = IO_LABELS_PAIRS, .base = 1},
                  "0:0*0.5,1*1 1:0*0.5|x|y");
    expect_labels(four_names, "a x\na x\nb x\n", from_one, "0 0 - -|x");
    io_labelling l;
    int64_t nodes;
    ck_ok(context, read_labels(context, four_names, automatic, "a x\nb y\nb x\n", from_one, &l, &nodes));
    ck_assert(l.unlabelled == 2 && l.first_unlabelled == 2 && l.groups == 2 && l.format == IO_LABELS_PAIRS);
    io_labelling_free(context, &l);
}

CONTEXT_TEST(labels_far_apart_are_numbered_anew_or_refused, 0, 1)
{
    const char *text = "2000000000\n7\n7\n2000000000\n";
    expect_label_error(four_numbers, text, from_one, "l: labels up to 2000000000 would make as many groups");
    expect_labels(four_numbers, text, compact, "1 0 0 1");
    io_labelling l;
    int64_t nodes;
    ck_ok(context, read_labels(context, four_numbers, automatic, text, compact, &l, &nodes));
    ck_assert(l.groups == 2 && l.numbers[0] == 6 && l.numbers[1] == 1999999999);
    io_labelling_free(context, &l);
}

TEST(bad_labels_are_refused_by_line)
{
    expect_label_error(four_numbers, "1\n2\n", from_one, "l:2: 2 labels, but the graph has 4 nodes");
    expect_label_error(four_numbers, "1\n1\n1\n1\n1\n", from_one,
                       "l:5: a label more than the graph has nodes (got \"1\")");
    expect_label_error(four_numbers, "1\n#\n0\n1\n1\n", from_one,
                       "l:3: a label 0 where labels begin at 1 (got \"0\")");
    expect_label_error(four_numbers, "1\n-4\n1\n1\n", from_one, "l:2: the label is negative (got \"-4\")");
    expect_label_error(four_numbers, "1\n1\n2147483648\n1\n", from_one,
                       "l:3: the label is too large (got \"2147483648\")");
    expect_label_error(four_numbers, "1\nx\n1\n1\n", from_one,
                       "l:2: the label is no whole number, and those before were");
    expect_label_error(four_numbers, "1 1\n5 1\n", from_one, "l:2: this is no node of the graph (got \"5\")");
    expect_label_error(four_names, "a x\ne x\nb x\n", from_one, "l:2: this is no node of the graph (got \"e\")");
    expect_labels(four_names, "a x\ne y\nb x\n", loose, "0 0 - -|x");
    expect_labels(four_names, "a\te\tb\nc\td\n", loose, "0 0 1 1");
    expect_label_error(four_names, "1\n1\n2\n2\n", from_one,
                       "l:4: a label a line for nodes that have names (got \"a\")");
    expect_label_error("1 2\n", "1\n1\n1\n", from_one, "l:3: 3 labels for nodes that are named from 1 to 2");
    expect_label_error("0 2\n", "1\n1\n", from_one,
                       "l:2: 2 labels for nodes that are named by numbers up to 2; write one for each number from 0");
    expect_label_error("1 01\n", "1\n", (io_label_options){.format = IO_LABELS_LIST, .base = 1},
                       "l:1: two nodes have names of the same number (got \"01\")");
    const io_label_options pairs = {.format = IO_LABELS_PAIRS, .base = 1};
    expect_label_error(four_names, "a x\nb\n", pairs, "l:2: a node without a label (got \"b\")");
    expect_label_error(four_names, "a x 1 2\n", pairs, "l:1: too many fields");
    expect_label_error(four_names, "a x nan\n", pairs, "l:1: the weight of a membership is no number (got \"nan\")");
    expect_label_error(four_names, "(mclheader\nmcltype matrix\ndimensions 3x1\n)\n(mclmatrix\nbegin\n)\n", from_one,
                       "l: a clustering of 3 nodes, but the graph has 4");
    expect_label_error(five_seven, "(mclheader\nmcltype matrix\ndimensions 2x1\n)\n(mclmatrix\nbegin\n0 0 $\n)\n",
                       from_one, "l: row 0 is no node of the graph");
}

/* ---- output files --------------------------------------------------------------------------------------- */

static io_output *open_output(sp_context *context, const char *path)
{
    io_output *output;
    ck_ok(context, io_output_open(context, path, &output));
    return output;
}

CONTEXT_TEST(output_appears_at_commit_and_not_before, 0, 1)
{
    write_file(path_of("out"), "old", 3);
    ck_assert_int_eq(chmod(path_of("out"), 0640), 0);
    io_output *output = open_output(context, path_of("out"));
    io_output_string(output, "new ");
    io_output_int(output, INT64_MIN);
    io_output_format(output, " %d %s", 42, "x");
    ck_assert_str_eq(contents(path_of("out")), "old");
    ck_ok(context, io_output_commit(output));
    ck_assert_str_eq(contents(path_of("out")), "new -9223372036854775808 42 x");
    struct stat about;
    stat(path_of("out"), &about);
    ck_assert_int_eq(about.st_mode & 0777, 0640);
    ck_assert_int_eq(files_in_folder(), 1);

    output = open_output(context, path_of("out"));
    io_output_string(output, "never");
    io_output_discard(output);
    ck_assert_str_eq(contents(path_of("out")), "new -9223372036854775808 42 x");
    ck_assert_int_eq(files_in_folder(), 1);
    io_output_discard(NULL);
}

CONTEXT_TEST(output_longer_than_its_buffer_is_complete, 0, 1)
{
    size_t length = 200000;
    char *text = malloc(length + 1);
    for (size_t i = 0; i < length; i++) text[i] = (char)('a' + i % 26);
    text[length] = '\0';
    io_output *output = open_output(context, path_of("out"));
    io_output_format(output, "%.40000s", text);
    io_output_format(output, "%.40000s", text + 40000);
    io_output_bytes(output, text + 80000, 20000);
    io_output_format(output, "%s", text + 100000);
    io_output_bytes(output, text, length);
    ck_ok(context, io_output_commit(output));
    FILE *file = fopen(path_of("out"), "rb");
    for (size_t i = 0; i < 2 * length; i++) {
        int c = fgetc(file);
        test_expect(c == text[i % length], "byte %zu", i);
    }
    ck_assert_int_eq(fgetc(file), EOF);
    fclose(file);
    free(text);
}

CONTEXT_TEST(output_in_shared_memory_replaces_a_longer_file, 0, 1)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/test_io.%ld", (long)getpid());
    FILE *old = fopen(path, "wb");
    if (old) {
        fputs("a longer file", old);
        fclose(old);
        io_output *output = open_output(context, path);
        io_output_string(output, "new");
        ck_assert_str_eq(contents(path), "a longer file");
        ck_ok(context, io_output_commit(output));
        ck_assert_str_eq(contents(path), "new");
        unlink(path);
    }
}

CONTEXT_TEST(outputs_that_cannot_be_are_refused_before_the_work, 0, 1)
{
    io_output *output;
    ck_assert_int_ne(io_output_check(context, path_of("none/out")), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "none"));
    ck_assert_int_ne(io_output_open(context, path_of("none/out"), &output), SP_OK);
    ck_assert_ptr_null(output);
    ck_assert_int_ne(io_output_check(context, folder), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "this is a folder"));
    ck_assert_int_ne(io_output_check(context, ""), SP_OK);
    char longest[5000];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_ne(io_output_check(context, longest), SP_OK);
    ck_ok(context, io_output_check(context, path_of("out")));
    ck_ok(context, io_output_check(context, "/dev/null"));
    ck_ok(context, io_output_check(context, "-"));
    ck_assert_int_eq(files_in_folder(), 0);
}

CONTEXT_TEST(write_errors_are_reported_at_commit, 0, 1)
{
    if (access("/dev/full", W_OK) == 0) {
        io_output *full = open_output(context, "/dev/full");
        for (int i = 0; i < 30000; i++) io_output_string(full, "0123456789");
        ck_assert_int_ne(io_output_commit(full), SP_OK);
        ck_assert_ptr_nonnull(strstr(sp_last_error(context), "/dev/full: No space left"));
    }
    /* The target becomes a folder behind our back: the rename fails, and no temporary file stays. */
    io_output *output = open_output(context, path_of("out"));
    io_output_string(output, "x");
    ck_assert_int_eq(mkdir(path_of("out"), 0700), 0);
    ck_assert_int_ne(io_output_commit(output), SP_OK);
    ck_assert_int_eq(files_in_folder(), 1);
    ck_assert_int_eq(rmdir(path_of("out")), 0);
}

CONTEXT_TEST(a_pipe_is_written_directly, 0, 1)
{
    ck_assert_int_eq(mkfifo(path_of("pipe"), 0600), 0);
    int reader = open(path_of("pipe"), O_RDONLY | O_NONBLOCK);
    io_output *output = open_output(context, path_of("pipe"));
    io_output_string(output, "through");
    ck_ok(context, io_output_commit(output));
    char text[20] = {0};
    ck_assert_int_eq(read(reader, text, sizeof text - 1), 7);
    ck_assert_str_eq(text, "through");
    close(reader);
    struct stat about;
    stat(path_of("pipe"), &about);
    ck_assert(S_ISFIFO(about.st_mode));
}

CONTEXT_TEST(a_symbolic_link_keeps_pointing_to_its_file, 0, 1)
{
    write_file(path_of("real"), "old", 3);
    ck_assert_int_eq(symlink("real", path_of("link")), 0);
    io_output *output = open_output(context, path_of("link"));
    io_output_string(output, "new");
    ck_ok(context, io_output_commit(output));
    ck_assert_str_eq(contents(path_of("real")), "new");
    struct stat about;
    lstat(path_of("link"), &about);
    ck_assert(S_ISLNK(about.st_mode));
}

TEST(an_output_that_is_the_input_is_known_by_any_name)
{
    const char *pipe_name = "/dev/null";
    char real[128], other[128], linked[128], hard[128], none[128];
    snprintf(real, sizeof real, "%s", path_of("real"));
    snprintf(other, sizeof other, "%s", path_of("other"));
    snprintf(linked, sizeof linked, "%s", path_of("./link"));
    snprintf(hard, sizeof hard, "%s", path_of("hard"));
    snprintf(none, sizeof none, "%s", path_of("none"));
    write_file(real, "a b\n", 4);
    write_file(other, "a b\n", 4);
    ck_assert_int_eq(symlink("real", linked), 0);
    ck_assert_int_eq(link(real, hard), 0);
    ck_assert(io_output_is_input(real, real) && io_output_is_input(linked, real) && io_output_is_input(real, linked));
    ck_assert(io_output_is_input(hard, linked));
    ck_assert(!io_output_is_input(other, real) && !io_output_is_input(none, real) && !io_output_is_input(none, none));
    ck_assert(!io_output_is_input(pipe_name, pipe_name) && !io_output_is_input(folder, folder));
}

static bool is_one_place(const char *one, const char *other)
{
    char first[420];
    io_place a, b;
    snprintf(first, sizeof first, "%s", one);
    io_output_place(first, &a);
    io_output_place(other, &b);
    ck_assert_int_eq(io_output_same_place(&a, &b), io_output_same_place(&b, &a));
    return io_output_same_place(&a, &b);
}

TEST(outputs_of_one_place_are_known_by_any_name)
{
    char one[128], longest[5000];
    snprintf(one, sizeof one, "%s", path_of("one"));
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    for (int there = 0; there < 2; there++) {
        if (there) write_file(one, "x", 1);
        ck_assert(is_one_place(one, path_of("one")) && is_one_place(one, path_of("./one")));
        ck_assert(!is_one_place(one, path_of("other")) && !is_one_place(one, path_of("none/one")));
        ck_assert(!is_one_place(one, folder) && !is_one_place(one, longest) && !is_one_place(one, ""));
    }
    ck_assert(!is_one_place(path_of("none/one"), path_of("neither/one")));
    ck_assert_int_eq(symlink("one", path_of("link")), 0);
    ck_assert_int_eq(link(one, path_of("hard")), 0);
    ck_assert(is_one_place(one, path_of("link")) && !is_one_place(one, path_of("hard")));
    ck_assert(is_one_place("-", "-") && !is_one_place("/dev/null", "/dev/null") && !is_one_place("-", one));
}

CONTEXT_TEST(an_account_names_what_was_written, 0, 1)
{
    char account[600], name[420];
    const bool fresh = !io_output_account(account, sizeof account); /* not where other tests ran in this process */
    if (fresh) ck_assert_str_eq(account, "no file was written");
    io_output_discard(open_output(context, path_of("never")));
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "%s%d", path_of("f"), i);
        for (int again = 0; again < 2; again++) {
            io_output *output = open_output(context, name);
            io_output_string(output, "x");
            ck_ok(context, io_output_commit(output));
        }
        ck_assert(io_output_account(account, sizeof account));
        if (!fresh) continue;
        const char *end = i == 0   ? "/f0 was written, no other file"
                          : i == 1 ? "/f0 and "
                                   : "were written, no other file";
        ck_assert_ptr_nonnull(strstr(account, end));
    }
    char cut[20];
    io_output_account(cut, sizeof cut);
    ck_assert_uint_lt(strlen(cut), sizeof cut);
}

CONTEXT_TEST(outputs_of_one_result_appear_together, 0, 1)
{
    io_output *outputs[3];
    static const char *const names[] = {"one", "two", "three"};
    for (int attempt = 0; attempt < 2; attempt++) {
        for (int i = 0; i < 3; i++) {
            outputs[i] = open_output(context, i == 1 && attempt == 0 ? "/dev/full" : path_of(names[i]));
            io_output_string(outputs[i], names[i]);
        }
        ck_assert_int_eq(io_output_commit_all(outputs, 3) == SP_OK, attempt == 1);
        ck_assert_int_eq(files_in_folder(), attempt == 0 ? 0 : 3);
    }
    ck_ok(context, io_output_commit_all(outputs, 0));
}

CONTEXT_TEST(signal_handlers_can_remove_what_is_unfinished, 0, 1)
{
    io_output *one = open_output(context, path_of("one")), *two = open_output(context, path_of("two")), *same;
    ck_assert_int_ne(io_output_open(context, path_of("one"), &same), SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "already being written"));
    io_output_string(one, "x");
    ck_assert_int_eq(files_in_folder(), 2);
    io_output_unlink_all();
    ck_assert_int_eq(files_in_folder(), 0);
    ck_assert_int_ne(io_output_commit(one), SP_OK);
    io_output_discard(two);
    ck_assert_int_eq(files_in_folder(), 0);
}

/* In a container another process can have our number. */
CONTEXT_TEST(a_temporary_file_of_another_process_stays, 0, 1)
{
    char others[420];
    snprintf(others, sizeof others, "%s.tmp.%ld", path_of("out"), (long)getpid());
    write_file(others, "half", 4);
    io_output *output = open_output(context, path_of("out"));
    io_output_string(output, "new");
    ck_ok(context, io_output_commit(output));
    ck_assert_str_eq(contents(path_of("out")), "new");
    ck_assert_str_eq(contents(others), "half");
    ck_assert_int_eq(files_in_folder(), 2);
}

/* The only temporary file in the folder. */
static void find_temporary(char path[420])
{
    DIR *entries = opendir(folder);
    path[0] = '\0';
    for (const struct dirent *entry; (entry = readdir(entries));)
        if (strstr(entry->d_name, ".tmp.")) snprintf(path, 420, "%s", path_of(entry->d_name));
    closedir(entries);
    ck_assert_str_ne(path, "");
}

CONTEXT_TEST(a_temporary_file_that_was_replaced_is_neither_published_nor_removed, 0, 1)
{
    char path[420];
    write_file(path_of("out"), "old", 3);
    for (int end = 0; end < 4; end++) {
        io_output *output = open_output(context, path_of("out"));
        io_output_string(output, "new");
        find_temporary(path);
        if (end == 3) ck_assert_int_eq(unlink(path), 0);
        else {
            ck_assert_int_eq(rename(path, path_of("away")), 0);
            write_file(path, "half", 4);
        }
        if (end == 0) io_output_unlink_all();
        if (end == 1) io_output_discard(output);
        else {
            ck_assert_int_ne(io_output_commit(output), SP_OK);
            ck_assert_ptr_nonnull(strstr(sp_last_error(context), "out: another process removed or replaced its "
                                                                 "temporary file; nothing was written there"));
        }
        ck_assert_str_eq(contents(path_of("out")), "old");
        if (end < 3) {
            ck_assert_str_eq(contents(path), "half");
            ck_assert_int_eq(unlink(path), 0);
            ck_assert_int_eq(unlink(path_of("away")), 0);
        }
        ck_assert_int_eq(files_in_folder(), 1);
    }
}

CONTEXT_TEST(names_of_temporary_files_are_not_confused, 0, 1)
{
    char path[420];
    io_output *one = open_output(context, path_of("one")), *same;
    find_temporary(path);
    io_output *two = open_output(context, path); /* opens, since `one` is not written there */
    io_output_discard(two);
    ck_assert_int_ne(io_output_open(context, path_of("./one"), &same), SP_OK);
    io_output_discard(one);
    ck_assert_int_eq(files_in_folder(), 0);
}

/* ---- failing allocations -------------------------------------------------------------------------------- */

typedef struct sample {
    const char *text;
    io_read_options options;
} sample;

static const sample samples[] = {
    {"a b 1\nc d 2\na d\n", {.format = IO_AUTO}},
    {"a pp b:1 c:2\n", {.format = IO_SIF, .expect_values = true}},
    {"a b c\n", {.format = IO_ETC}},
    {"(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mcldoms\n3 5 $\n)\n(mclmatrix\nbegin\n3 5:2 3:1 $\n)\n",
     {.format = IO_AUTO}},
    {"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 1\n", {.format = IO_AUTO}},
    {"protein1 protein2 combined_score\na b 5\n", {.format = IO_AUTO}},
    {"a\tb\t1\t1\t1\t1\t1\t1\t1\t1\t1\t9\n", {.format = IO_BLAST}},
    {"2 1 1\n2 3\n1 3\n", {.format = IO_METIS}},
    {"% c\n3 1 111 2\n%\n1 2 3 2 4\n% c\n1 2 3 1 4\n1 2 3\n", {.format = IO_METIS}},
    {"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n% c\n2 1 1\n\n1 3 2\n", {.format = IO_AUTO}},
};

/* Repeats a read, failing one allocation later each time (with `fail_all` all the later ones too), until it works. */
static void exhaust(const void *data, size_t count, const io_read_options *options, int threads, size_t block,
                    bool fail_all)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options settings = {.device = "cpu", .threads = threads, .allocator = &allocator};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
    int64_t blocks = heap.live_blocks, bytes_before = heap.live_bytes;
    for (int64_t n = 0;; n++) {
        ck_assert_int_lt(n, 2000);
        heap.allocations = 0;
        heap.fail_at = n;
        heap.fail_all = fail_all;
        io_graph graph;
        sp_csr matrix = {0};
        sp_status status = io_read_memory(context, "in", data, count, options, block, &graph);
        if (status == SP_OK)
            status = io_graph_matrix(context, &graph, n % 2, SP_COMBINE_MAX, graph.symmetric, &matrix);
        io_graph_free(context, &graph);
        if (status == SP_OK) {
            sp_csr_free(context, &matrix);
            ck_assert_int_eq(heap.live_blocks, blocks);
            ck_assert_int_gt(n, 2);
            break;
        }
        ck_assert_msg(status == SP_ERROR_HOST_MEMORY, "allocation %lld: %s (%s)", (long long)n,
                      sp_status_string(status), sp_last_error(context));
        ck_assert_ptr_null(graph.tails);
        ck_assert_int_eq(heap.live_blocks, blocks);
        ck_assert_int_eq(heap.live_bytes, bytes_before);
    }
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
}

TEST(readers_survive_every_failed_allocation)
{
    const sample *s = &samples[_i];
    char packed[1000];
    for (int fail_all = 0; fail_all < 2; fail_all++) {
        exhaust(s->text, strlen(s->text), &s->options, 1, 0, fail_all);
        exhaust(s->text, strlen(s->text), &s->options, 2, 8, fail_all);
        size_t size = gzip(s->text, strlen(s->text), packed, sizeof packed);
        exhaust(packed, size, &s->options, 1, 0, fail_all);
    }
}

TEST(the_parallel_reader_survives_failed_allocations_while_tables_grow)
{
    test_random random = test_seed(3);
    size_t count;
    char *text = random_triples(&random, 4000, 3000, &count);
    const io_read_options options = {.format = IO_ABC};
    exhaust(text, count, &options, 2, 16384, true);
    free(text);
}

TEST(writers_survive_a_failed_allocation)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&(sp_context_options){.device = "cpu", .allocator = &allocator}, &context),
                     SP_OK);
    int64_t offsets[] = {0, 1};
    int32_t members[] = {0};
    const io_clusters clusters = {1, 1, offsets, members};
    heap.fail_at = heap.allocations;
    ck_assert_int_eq(io_write_native_clusters(context, path_of("out"), &clusters, NULL, false, NULL),
                     SP_ERROR_HOST_MEMORY);
    ck_assert_int_eq(files_in_folder(), 0);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
}

static const struct {
    const char *graph, *labels;
    io_label_options options;
} label_samples[] = {
    {four_numbers, "1\n2\n2\n1\n", {.base = 1}},
    {four_numbers, "2000000000\n7\n7\n7\n", {.base = 1, .compact = true}},
    {four_names, "a x\nb y\nb x\nc z\n", {.base = 1}},
    {"0 2\n", "1\n1\n2\n", {.base = 1}},
    {four_numbers,
     "(mclheader\nmcltype matrix\ndimensions 4x2\n)\n(mclmatrix\nbegin\n0 0 2 $\n1 1 2 $\n)\n",
     {.base = 1}},
};

TEST(label_readers_survive_every_failed_allocation)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options settings = {.device = "cpu", .threads = 1, .allocator = &allocator};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
    io_graph graph = read_text(context, label_samples[_i].graph, automatic);
    const char *text = label_samples[_i].labels;
    const int64_t blocks = heap.live_blocks;
    sp_status status = SP_ERROR_HOST_MEMORY;
    for (int64_t n = 0; status != SP_OK; n++) {
        io_source *source;
        io_labelling labelling;
        ck_assert_int_lt(n, 200);
        heap.fail_at = -1;
        ck_ok(context, io_source_memory(context, "l", text, strlen(text), &source));
        heap.allocations = 0;
        heap.fail_at = n;
        status = io_read_labels_source(context, source, &graph, &label_samples[_i].options, &labelling);
        heap.fail_at = -1;
        io_source_close(source);
        if (status == SP_OK) ck_assert_int_gt(n, 1);
        else ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        io_labelling_free(context, &labelling);
        ck_assert_int_eq(heap.live_blocks, blocks);
    }
    io_graph_free(context, &graph);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
}

CONTEXT_TEST(zeros_of_binary_matrices_are_no_arcs, 0, 1)
{
    int64_t offsets[] = {0, 3, 3, 5}, kept[][4] = {{0, 2, 2, 3}, {0, 1, 1, 2}};
    int32_t columns[] = {0, 1, 2, 0, 2}, kept_columns[][3] = {{1, 2, 0}, {1, 0}};
    double values[] = {0, 2, 1e-60, 3, -0.0}, kept_values[][3] = {{2, 1e-60, 3}, {2, 3}};
    const sp_csr m = {.rows = 3, .cols = 3, .nnz = 5, .row_offsets = offsets, .col_indices = columns, .values = values,
                      .value_type = SP_F64};
    const io_write_options writing = {.format = IO_CSR};
    io_graph graph;
    ck_ok(context, io_write_graph(context, path_of("out"), &m, &writing));
    for (int rounded = 0; rounded < 2; rounded++) { /* 1e-60 is 0 in f32 */
        const sp_csr left = {.rows = 3, .cols = 3, .nnz = kept[rounded][3], .row_offsets = kept[rounded],
                             .col_indices = kept_columns[rounded], .values = kept_values[rounded],
                             .value_type = SP_F64};
        io_read_options reading = {.matrix = true, .values = rounded ? SP_F32 : SP_F64};
        ck_ok(context, io_read_graph(context, path_of("out"), &reading, &graph));
        test_same(&left, &graph.matrix, 0);
        io_graph_free(context, &graph);
        reading.matrix = false;
        ck_ok(context, io_read_graph(context, path_of("out"), &reading, &graph));
        ck_assert_str_eq(arcs_of(&graph), rounded ? "0>1:2 2>0:3" : "0>1:2 0>2:1e-60 2>0:3");
        io_graph_free(context, &graph);
    }
    ck_assert_int_eq(remove(path_of("out")), 0);
}

TEST(graph_writers_survive_every_failed_allocation)
{
    static const io_format formats[] = {IO_MTX, IO_ABC, IO_NATIVE, IO_METIS, IO_CSR};
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options settings = {.device = "cpu", .threads = 1, .allocator = &allocator};
    int64_t offsets[] = {0, 1, 2};
    int32_t columns[] = {1, 0};
    const sp_csr m = {.rows = 2, .cols = 2, .nnz = 2, .row_offsets = offsets, .col_indices = columns};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&settings, &context), SP_OK);
    const int64_t blocks = heap.live_blocks;
    for (size_t f = 0; f < COUNT(formats); f++) {
        const io_write_options options = {.format = formats[f]};
        sp_status status = SP_ERROR_HOST_MEMORY;
        for (int64_t n = 0; status != SP_OK; n++) {
            ck_assert_int_lt(n, 100);
            heap.allocations = 0;
            heap.fail_at = n;
            status = io_write_graph(context, path_of("out"), &m, &options);
            if (status != SP_OK) ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
            ck_assert_int_eq(files_in_folder(), status == SP_OK);
            ck_assert_int_eq(heap.live_blocks, blocks);
        }
        ck_assert_int_eq(remove(path_of("out")), 0);
    }
    heap.fail_at = -1;
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
}

TEST(binary_readers_survive_every_failed_allocation)
{
    sp_context *context = test_context(0, 1);
    int64_t offsets[] = {0, 1, 2}, groups[] = {0};
    int32_t columns[] = {1, 0};
    float values[] = {1, 2};
    uint32_t name_offsets[] = {0, 1, 2};
    char letters[] = "ab", file[400];
    const io_names names = {2, groups, name_offsets, letters};
    const sp_csr m = {
        .rows = 2, .cols = 2, .nnz = 2, .row_offsets = offsets, .col_indices = columns, .values = values};
    const io_write_options writing = {.format = IO_CSR, .names = &names};
    ck_ok(context, io_write_graph(context, path_of("out"), &m, &writing));
    sp_context_destroy(context);
    FILE *from = fopen(path_of("out"), "rb");
    const size_t count = fread(file, 1, sizeof file, from);
    fclose(from);
    for (int matrix = 0; matrix < 2; matrix++) {
        const io_read_options options = {.format = IO_CSR, .matrix = matrix};
        exhaust(file, count, &options, 1, 0, false);
    }
}

static const test_entry tests[] = {
    CASE("formats", 60),
    ONCE(a_byte_order_mark_is_no_part_of_the_text),
    ONCE(compression_that_is_not_read_is_named),
    ONCE(text_of_other_systems_is_named),
    ONCE(hits_read_as_pairs_are_seen),
    ONCE(what_is_wrong_before_a_nul_byte_does_not_depend_on_blocks),
    ONCE(names_decide_where_the_content_does_not),
    ONCE(abc_reads_labels_in_order_of_first_appearance),
    ONCE(abc_splits_at_tabs_if_there_are_any),
    ONCE(abc_takes_a_missing_weight_as_one_and_zero_as_no_arc),
    ONCE(abc_ends_a_line_at_cr_lf_and_the_last_one_anywhere),
    ONCE(abc_strict_refuses_odd_lines_by_number),
    ONCE(abc_messages_cut_and_escape_what_they_quote),
    ONCE(abc_lenient_does_as_mcl_and_counts),
    ONCE(transforms_apply_in_f64_before_the_weight_is_checked),
    ONCE(sif_and_etc_fan_out_from_the_first_label),
    ONCE(expected_values_follow_a_colon),
    ONCE(string_links_are_found_by_their_header),
    ONCE(string_scores_are_transformed_after_the_cutoff),
    ONCE(blast_tables_offer_three_scores),
    ONCE(blast_scores_are_transformed_as_weights),
    ONCE(transforms_as_weights_are_read_are_for_labels),
    ONCE(native_text_is_read_as_it_occurs_in_the_wild),
    ONCE(native_repetitions_and_zeros_are_settled_as_mcl_does),
    ONCE(native_columns_of_endless_repetition_keep_their_first_entries),
    ONCE(native_domains_give_ids),
    ONCE(native_text_refuses_what_is_no_graph),
    ONCE(native_text_longer_than_a_buffer_is_read_whole),
    ONCE(native_binary_is_read_and_its_lies_are_refused),
    ONCE(matrix_market_is_read_in_its_kinds),
    ONCE(matrix_market_lies_are_refused),
    ONCE(values_of_any_sign_are_read_strictly_otherwise),
    ONCE(metis_graphs_are_read_in_their_kinds),
    ONCE(metis_lies_are_refused),
    ONCE(the_second_of_two_mirror_images_is_named),
    ONCE(label_files_are_told_apart_by_content),
    ONCE(nodes_of_several_groups_make_a_matrix),
    ONCE(labels_far_apart_are_numbered_anew_or_refused),
    ONCE(bad_labels_are_refused_by_line),
    CASE("parallel reading and numbers", 120),
    ONCE(threads_and_block_sizes_change_nothing),
    ONCE(the_first_error_in_the_file_wins_whatever_the_threads),
    ONCE(labels_of_any_length_are_told_apart),
    ONCE(a_million_labels_are_numbered_by_their_first_appearance),
    ONCE(labels_beyond_two_to_the_31_are_refused),
    TURNS(long_lines_in_parts_are_the_same, 3),
    ONCE(a_line_longer_than_many_blocks_is_read),
    ONCE(decimals_are_read_exactly),
    ONCE(what_is_no_decimal_is_not_read),
    ONCE(numbers_are_written_with_the_fewest_digits),
    ONCE(written_numbers_are_read_back_the_same),
    ONCE(metis_nodes_are_numbered_across_slices),
    ONCE(gzip_members_are_read_whole_or_refused),
    ONCE(zstd_frames_are_read_whole_or_refused),
    ONCE(what_comes_before_damage_is_read_whatever_the_block_size),
    ONCE(gzip_padding_is_skipped_and_garbage_refused),
    ONCE(errors_inside_compressed_data_have_the_line_of_the_text),
    CASE("memory", 120),
    ONCE(the_matrix_of_packed_arcs_is_that_of_their_triples),
    ONCE(weights_that_are_zero_as_f32_make_no_arc),
    TURNS(weights_of_f64_are_those_of_the_text, 6),
    ONCE(the_first_line_beyond_2_to_the_53_is_known),
    TURNS(readers_take_no_more_memory_than_promised, COUNT(shapes)),
    TURNS(metis_lines_of_two_bytes_are_refused_before_they_take_much, 2),
    TURNS(mixed_triangles_take_no_more_memory_than_promised, 2),
    ONCE(a_native_column_of_repeated_entries_is_settled_in_time),
    TURNS(label_readers_take_no_more_memory_than_promised, 2),
    CASE_WITH("files", 120, make_folder, remove_folder),
    ONCE(tab_files_name_the_nodes),
    ONCE(a_tab_file_that_names_next_to_nothing_is_refused),
    ONCE(a_dash_is_standard_input_and_output),
    ONCE(files_that_cannot_be_read_are_named),
    ONCE(label_clusters_are_lines_of_labels),
    ONCE(native_clusters_are_written_as_mcl_does),
    ONCE(native_columns_are_as_wide_as_the_largest_id_plus_one),
    ONCE(native_graphs_are_written_as_mcl_does),
    ONCE(native_matrices_survive_writing_and_reading),
    ONCE(graphs_are_written_as_their_formats_have_them),
    ONCE(metis_writing_refuses_what_metis_has_not),
    ONCE(graphs_survive_writing_and_reading_whatever_the_threads),
    ONCE(metis_graphs_survive_writing_and_reading),
    ONCE(symmetric_files_hold_one_of_both_directions),
    ONCE(binary_matrices_keep_everything_and_notice_every_changed_byte),
    ONCE(output_appears_at_commit_and_not_before),
    ONCE(output_longer_than_its_buffer_is_complete),
    ONCE(output_in_shared_memory_replaces_a_longer_file),
    ONCE(outputs_that_cannot_be_are_refused_before_the_work),
    ONCE(write_errors_are_reported_at_commit),
    ONCE(a_pipe_is_written_directly),
    ONCE(a_symbolic_link_keeps_pointing_to_its_file),
    ONCE(an_output_that_is_the_input_is_known_by_any_name),
    ONCE(signal_handlers_can_remove_what_is_unfinished),
    ONCE(a_temporary_file_of_another_process_stays),
    ONCE(a_temporary_file_that_was_replaced_is_neither_published_nor_removed),
    ONCE(names_of_temporary_files_are_not_confused),
    ONCE(outputs_of_one_place_are_known_by_any_name),
    ONCE(an_account_names_what_was_written),
    ONCE(outputs_of_one_result_appear_together),
    ONCE(writers_survive_a_failed_allocation),
    ONCE(zeros_of_binary_matrices_are_no_arcs),
    ONCE(graph_writers_survive_every_failed_allocation),
    ONCE(binary_readers_survive_every_failed_allocation),
    CASE("failing allocations", 120),
    TURNS(readers_survive_every_failed_allocation, COUNT(samples)),
    TURNS(label_readers_survive_every_failed_allocation, COUNT(label_samples)),
    ONCE(the_parallel_reader_survives_failed_allocations_while_tables_grow),
    {0},
};

int main(void) { return test_run("io", tests); }
