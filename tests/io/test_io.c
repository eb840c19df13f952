/* Readers and writers: every format, every refusal with its line, compression, the parallel reader against itself,
 * numbers against strtod, mcl's native text byte for byte, failing allocations and failing files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "io_shared.h"

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
    char *text = test_block(200004);
    memcpy(text, MARK, 3);
    for (int i = 0; i < 20000; i++) snprintf(text + 3 + 10 * i, 11, "%04d %04d\n", i % 100, i / 100);
    sp_context *context = test_context(0, 2);
    io_graph with = read_text(context, text, as(IO_ABC)), without = read_text(context, text + 3, as(IO_ABC));
    ck_assert_int_eq(with.arcs, 20000);
    ck_assert_int_eq(with.nodes, without.nodes);
    ck_assert_mem_eq(with.heads, without.heads, (size_t)with.arcs * sizeof *with.heads);
    io_graph_free(context, &with);
    end_graph(context, &without);
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
    static const struct { const char *text; bool hits; } cases[] = {{HIT, true},
                 {"# BLASTP\n\n# Fields\n" HIT, true},
                 {"q\ts\t90\t100\t1\t0\t1\t100\t1\t100\t1e-5\t50\tmore\r\n", true},
                 {"q\ts\t90\t100\t1\t0\t1\t100\t1\t100\te-180\t50\n", true},
                 {"q\ts\t90\t100\t1\t0\t1\t100\t1\t100\t5\te-180\n", false},
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
    end_graph(context, &graph);
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
    expect_error("a b c d\n", strict, "in: not a matrix and not a STRING file; for label pairs give --abc, for SIF "
                                 "--sif, for BLAST tables --blast bits");
    expect_error("2 1\n2 1\n", strict, "in: not a matrix and not a STRING file");
    expect_error("", strict, "in: the file is empty");
}

#define HIT "q\ts\t99.1\t50\t0\t0\t1\t50\t1\t50\t1e-20\t90\n"
#define HIT_HEADING \
    "qseqid\tsseqid\tpident\tlength\tmismatch\tgapopen\tqstart\tqend\tsstart\tsend\tevalue\tbitscore\n"

/* Under the name of a list or a table, too: else their identities would be the weights. */
TEST(blast_tables_are_not_read_as_edges_unasked)
{
    static const char *const names[] = {"h.abc", "h.tsv", "h.csv", "h.txt"};
    const io_read_options strict = {.refuse_others = true};
    sp_context *context = test_context(0, 2);
    io_graph graph;
    for (size_t i = 0; i < COUNT(names); i++) {
        ck_assert_int_ne(io_read_memory(context, names[i], HIT, strlen(HIT), &strict, 0, &graph), SP_OK);
        ck_assert_ptr_nonnull(strstr(sp_last_error(context), ": a BLAST table; give --blast bits"));
        if (i == 0) continue; /* of label pairs the heading is refused */
        ck_assert_int_ne(io_read_memory(context, names[i], HIT_HEADING HIT, strlen(HIT_HEADING HIT), &strict, 0,
                                        &graph),
                         SP_OK);
        ck_assert_ptr_nonnull(strstr(sp_last_error(context), ":1: the heading of a BLAST table; remove it, as with "
                                                             "tail -n +2, and give --blast bits"));
    }
    sp_context_destroy(context);
    expect_arcs("source\ttarget\ta\tb\tc\td\te\tf\tg\th\tbits\tscore\n" HIT, automatic, "q>s:90", 2);
}

/* The name is enough, and the reader says what is wrong. */
TEST(a_file_called_abc_is_one_of_label_pairs)
{
    static const struct {
        const char *text, *error;
    } cases[] = {{"a b 1 more\nb c 2\n", NULL},
                 {"# nothing\n", NULL},
                 {"a\nb c\n", "g.abc:1: one field where two labels are expected"},
                 {"a,b,1\n", "g.abc:1: commas between the fields"}};
    const io_read_options strict = {.refuse_others = true};
    sp_context *context = test_context(0, 2);
    for (size_t i = 0; i < COUNT(cases); i++) {
        io_graph graph;
        const sp_status status =
            io_read_memory(context, "g.abc", cases[i].text, strlen(cases[i].text), &strict, 0, &graph);
        if (!cases[i].error) ck_ok(context, status);
        else ck_assert_int_eq(strncmp(sp_last_error(context), cases[i].error, strlen(cases[i].error)), 0);
        io_graph_free(context, &graph);
    }
    sp_context_destroy(context);
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
    expect_error("a b e-180\n", as(IO_ABC), "in:1: the weight is not a number (got \"e-180\"); older versions of BLAST "
                                            "write e-180 for 1e-180: put a 1 before the e");
    expect_error("a b 1e39\n", as(IO_ABC), "in:1: the weight is too large");
    expect_error("a b 1e400\n", as(IO_ABC), "in:1: the weight is too large");
    expect_error("#\na b 1\na b -3\n", as(IO_ABC), "in:3: the weight is negative (got \"-3\")");
    expect_failure("a b 1\na\0c b 2\n", 14, as(IO_ABC), "in:2: the line holds a NUL byte");
}

TEST(abc_messages_cut_and_escape_what_they_quote)
{
    expect_error("a b \x01\x7f\xc3\xa9x\n", as(IO_ABC),
                 "in:1: the weight is not a number (got \"\\x01\\x7f\\xc3\\xa9x\"); write a decimal number; a heading "
                 "must go");
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

/* Hits with these E-values, of a to b and of b to c. */
#define EVALUES(first, second)                                                                       \
    "a\tb\t9\t9\t0\t0\t1\t9\t1\t9\t" first "\t9\nb\tc\t9\t9\t0\t0\t1\t9\t1\t9\t" second "\t9\n"

TEST(blast_tables_offer_three_scores)
{
    const char *text = "# comment\n"
                       "q1\ts1\t27.5\t334\t229\t10\t117\t445\t98\t423\t1e-38\t 141\n"
                       "q1\tq1\t100\t334\t0\t0\t1\t334\t1\t334\t0.0\t700\n"
                       "q2\ts2\t20\t33\t2\t0\t1\t33\t1\t33\t2.5\t20.1\textra\r\n";
    expect_arcs(text, blast(IO_BLAST_BITS), "q1>s1:141 q1>q1:700 q2>s2:20.1000004", 4);
    expect_arcs(text, blast(IO_BLAST_EVALUE), "q1>s1:38 q1>q1:200", 4);
    expect_arcs(text, blast(IO_BLAST_IDENTITY), "q1>s1:27.5 q1>q1:100 q2>s2:20", 4);
    expect_arcs(EVALUES("e-180", "E-05"), blast(IO_BLAST_EVALUE), "a>b:180 b>c:5", 3);
    expect_arcs(EVALUES("e-999", "e-0"), blast(IO_BLAST_EVALUE), "a>b:200", 3); /* the first is 0 in f64 */
    expect_error(EVALUES("1", "e"), blast(IO_BLAST_EVALUE), "in:2: the E-value (column 11)");
    expect_error(EVALUES("1", "e-"), blast(IO_BLAST_EVALUE), "in:2: the E-value (column 11)");
    expect_error(EVALUES("1", "e-9x"), blast(IO_BLAST_EVALUE), "in:2: the E-value (column 11)");
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

static const test_entry tests[] = {
    CASE("formats", 60),
    ONCE(a_byte_order_mark_is_no_part_of_the_text),
    ONCE(compression_that_is_not_read_is_named),
    ONCE(text_of_other_systems_is_named),
    ONCE(hits_read_as_pairs_are_seen),
    ONCE(what_is_wrong_before_a_nul_byte_does_not_depend_on_blocks),
    ONCE(names_decide_where_the_content_does_not),
    ONCE(blast_tables_are_not_read_as_edges_unasked),
    ONCE(a_file_called_abc_is_one_of_label_pairs),
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
    {0},
};

int main(void)
{
    return test_run("io", tests, native_tests, mtx_tests, csv_tests, dimacs_tests, graphml_tests, compressed_tests,
                    ahead_tests, parallel_tests, memory_tests, writing_tests, labels_tests, output_tests,
                    failing_tests);
}
