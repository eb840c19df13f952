/* test_io: labels of nodes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "io_shared.h"

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
            if (l->s.values) at += (size_t)snprintf(text + at, sizeof text - at, "*%g", ((double *)l->s.values)[e]);
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

static const io_label_options from_one = {.base = 1}, from_zero = {.base = 0}, found = {.base = IO_BASE_AUTO},
                              loose = {.base = 1, .skip_unknown = true}, compact = {.base = 1, .compact = true};

/* A name with a blank at its end counts before the one without; other blanks around a field are none of it. */
TEST(names_may_begin_and_end_in_blanks)
{
    static const char names[] = " a\tb c \nd\ta\n"; /* " a", "b c ", "d", "a" */
    expect_labels(names, " a\tx\nb c \ty\nd\tz\na\tx\n", found, "0 1 2 0|x|y|z");
    expect_labels(names, "  d \tx\n a\t y\nb c \tx\na\tx\n", found, "1 0 0 0|x|y");
    expect_labels(names, " a\tb c \nd\ta\n", found, "0 0 1 1");
    expect_labels(names, " a\nb c \nd\ta\r\n", found, "0 1 2 2");
    expect_label_error(names, "  a\tx\n b c\ty\n", found, "l:2: this is not a node of the graph (got \"b c\")");
}

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

/* Clusters of another graph: a line is always a cluster, and members that are not nodes mark theirs. */
CONTEXT_TEST(clusters_of_another_graph_may_have_other_nodes, 0, 1)
{
    const io_label_options options = {.other_graph = true};
    static const char *const clusters[] = {
        "a b\nx c\ny\n", "a b\nc x\ny z\n",
        "(mclheader\nmcltype matrix\ndimensions 9x3\n)\n(mclmatrix\nbegin\n0 0 1 $\n1 2 7 $\n2 8 $\n)\n"};
    for (int i = 0; i < 3; i++) {
        io_labelling l;
        int64_t nodes;
        ck_ok(context, read_labels(context, four_names, automatic, clusters[i], options, &l, &nodes));
        ck_assert_str_eq(groups_of(&l, nodes), "0 0 1 -");
        ck_assert(l.groups == 3 && l.unknown == (i == 1 ? 3 : 2) && l.unlabelled == 1);
        ck_assert(l.incomplete[0] == 0 && l.incomplete[1] == 1 && l.incomplete[2] == 1);
        io_labelling_free(context, &l);
    }
    expect_labels(four_names, "a b\nb x\n", options, "0:0,1 1:1");
    expect_labels(four_names, "", options, "- - - -");
}

CONTEXT_TEST(nodes_are_found_in_another_graph_by_name_or_number, 0, 1)
{
    io_graph from = read_text(context, "x c\na b\n", automatic), to = read_text(context, four_names, automatic);
    io_graph numbers = read_text(context, five_seven, (io_read_options){0}), other = {.nodes = 8};
    int32_t places[4];
    ck_ok(context, io_find_nodes(context, &from, &to, places));
    ck_assert(places[0] == -1 && places[1] == 2 && places[2] == 0 && places[3] == 1);
    ck_ok(context, io_find_nodes(context, &numbers, &other, places));
    ck_assert(places[0] == 5 && places[1] == 7);
    other.nodes = 7;
    ck_ok(context, io_find_nodes(context, &numbers, &other, places));
    ck_assert(places[0] == 5 && places[1] == -1);
    ck_assert_int_eq(io_find_nodes(context, &from, &numbers, places), SP_ERROR_ARGUMENT);
    io_graph_free(context, &from);
    io_graph_free(context, &to);
    io_graph_free(context, &numbers);
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
                       "l:2: the label is not a whole number, and those before were");
    expect_label_error(four_numbers, "1 1\n5 1\n", from_one, "l:2: this is not a node of the graph (got \"5\")");
    expect_label_error(four_names, "a x\ne x\nb x\n", from_one, "l:2: this is not a node of the graph (got \"e\")");
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
    expect_label_error(four_names, "a x nan\n", pairs, "l:1: the weight of a membership is not a number (got \"nan\")");
    expect_label_error(four_names, "(mclheader\nmcltype matrix\ndimensions 3x1\n)\n(mclmatrix\nbegin\n)\n", from_one,
                       "l: a clustering of 3 nodes, but the graph has 4");
    expect_label_error(five_seven, "(mclheader\nmcltype matrix\ndimensions 2x1\n)\n(mclmatrix\nbegin\n0 0 $\n)\n",
                       from_one, "l: row 0 is not a node of the graph");
}

TEST(headings_are_named_with_the_remedy)
{
#define HEADING(line, got) "l:" line ": this line looks like a heading (got \"" got "\"); "
#define WITHOUT(next) "leave the line out, as tail -n +" next " does"
    static const char column[] = HEADING("1", "node label") "give --label-column label, or " WITHOUT("2"),
                      blank[] = HEADING("1", "who\\tmy part") "give --label-column \"my part\", or " WITHOUT("2"),
                      foreign[] = HEADING("1", "id k\\xc3\\xb6") "give --label-column NAME, or " WITHOUT("2"),
                      behind[] = HEADING("3", "node label") "give --label-column label, or " WITHOUT("4"),
                      alone[] = HEADING("1", "label") WITHOUT("2"),
                      ordered[] = HEADING("1", "label") "give --label-column label, or " WITHOUT("2"),
                      index[] = HEADING("1", "part") WITHOUT("2");
    expect_label_error(four_numbers, "node label\n1 1\n2 1\n", from_one, column);
    expect_label_error(four_numbers, "node label\n1 x\n2 1\n", from_one, column);
    expect_label_error(four_numbers, "node label\n", from_one, "l:1: this is not a node of the graph (got \"node\")");
    expect_label_error(four_names, "who\tmy part\na\t1\n", from_one, blank);
    expect_label_error(four_names, "node label\na x\nb y\n", from_one, column);
    expect_label_error(four_names, "id k\xc3\xb6\na x\n", from_one, foreign);
    expect_label_error(four_names, "# c\n\nnode label\na 1\n", from_one, behind);
    expect_label_error(four_names, "\tpart\na\t1\nb\t2\n", from_one, index);
    expect_label_error(four_numbers, "label\n1\n-1\n2\n2\n", from_one, ordered);
    expect_label_error(four_numbers, "label\n1.0\nNaN\n2.0\n2.0\n", found, ordered);
    expect_label_error("1 2\n", "label\n1\n1\n", from_one, alone);
    /* Not headings: rows of words, a node or a number in the line, a list that is long enough with its first line. */
    expect_label_error(four_names, "e x\na y\n", from_one, "l:1: this is not a node of the graph (got \"e\")");
    expect_label_error(four_names, "e 1\na 1\n", from_one, "l:1: this is not a node of the graph (got \"e\")");
    expect_label_error(four_names, "e a b\nc 1 d\n", from_one, "l:1: this is not a node of the graph (got \"e\")");
    expect_label_error(four_names, "a 1\nnode label\n", from_one, "l:2: this is not a node of the graph");
    expect_label_error(four_numbers, "x\n1\n1\n1\ny\n", from_one, "l:5: a label more than the graph has nodes");
    expect_labels(four_numbers, "x\n1\n1\n2\n", from_one, "0 1 1 2|x|1|2");
    expect_labels(four_names, "node label\na 1\nb 2\n", loose, "0 1 - -");
#undef HEADING
#undef WITHOUT
}

TEST(labels_begin_at_zero_if_one_is_zero)
{
    static const struct {
        const char *text;
        int base;
        const char *groups;
    } cases[] = {{"0\n2\n2\n1\n", 0, "0 2 2 1"},    {"1\n2\n2\n1\n", 1, "0 1 1 0"}, {"-1\n3\nNA\n3\n", 1, "- 2 - 2"},
                 {"1 0\n2 5\n", 0, "0 5 - -"},     {"1 3\n1 1\n2 1\n", 1, "0:0,1 2:0"},
                 {"x\nx\ny\nx\n", 1, "0 0 1 0|x|y"},
                 {"1 2 3\n4\n", 1, "0 0 0 1"},     {"-1\n-1\n-1\n-1\n", 1, "- - - -"},
                 {"1 0\n1 1\n2 1\n", 0, "0:0 1:0,1"}, {"2147483646\n1\n1\n2147483646\n", 1, "1 0 0 1"}};
    sp_context *context = test_context(0, 1);
    io_labelling l;
    int64_t nodes;
    for (size_t i = 0; i < COUNT(cases); i++) {
        io_label_options options = found;
        options.compact = i + 1 == COUNT(cases);
        ck_ok(context, read_labels(context, four_numbers, automatic, cases[i].text, options, &l, &nodes));
        ck_assert_int_eq(l.base, cases[i].base);
        ck_assert_str_eq(groups_of(&l, nodes), cases[i].groups);
        io_labelling_free(context, &l);
    }
    sp_context_destroy(context);
}

static void expect_first(int format, int first, const char *graph_text, const char *text, const char *groups)
{
    sp_context *context = test_context(0, 1);
    io_graph graph = read_text(context, graph_text, as((io_format)format));
    io_labelling l;
    io_source *source;
    if (first >= 0) graph.first = first;
    ck_ok(context, io_source_memory(context, "l", text, strlen(text), &source));
    const sp_status status = io_read_labels_source(context, source, &graph, &found, &l);
    if (status == SP_OK) ck_assert_str_eq(groups_of(&l, graph.nodes), groups);
    else ck_assert_msg(strstr(sp_last_error(context), groups) != NULL, "%s", sp_last_error(context));
    io_source_close(source);
    io_labelling_free(context, &l);
    end_graph(context, &graph);
}

TEST(nodes_are_numbered_from_where_the_caller_says)
{
    static const char colours[] = "p edge 3 1\ne 1 2\n";
    expect_first(IO_DIMACS, -1, colours, "1 x\n3 y\n", "0 - 1|x|y");
    expect_first(IO_DIMACS, 0, colours, "0 x\n2 y\n", "0 - 1|x|y");
    expect_first(IO_DIMACS, -1, colours, "0 x\n2 y\n", "numbered from 1; give --node-base 0");
    expect_first(IO_DIMACS, 0, colours, "1 x\n3 y\n", "numbered from 0; give --node-base 1");
    expect_first(IO_DIMACS, 0, colours, "1 x\n4 y\n", "write its numbers as the graph's file has them");
    expect_first(IO_ABC, -1, "1 2\n", "x\ny\nz\n", "give --node-base 0 or 1");
    expect_first(IO_ABC, 0, "1 2\n", "x\ny\nz\n", "1 2|x|y|z");
    expect_first(IO_ABC, 1, "1 2\n", "x\ny\nz\n", "0 1|x|y|z");
    expect_first(IO_ABC, 1, "1 0\n", "x\ny\nz\n", "the graph has a node 0; give --node-base 0");
}

const test_entry labels_tests[] = {
    CASE("formats", 60),
    ONCE(names_may_begin_and_end_in_blanks),
    ONCE(label_files_are_told_apart_by_content),
    ONCE(nodes_of_several_groups_make_a_matrix),
    ONCE(labels_far_apart_are_numbered_anew_or_refused),
    ONCE(clusters_of_another_graph_may_have_other_nodes),
    ONCE(nodes_are_found_in_another_graph_by_name_or_number),
    ONCE(labels_begin_at_zero_if_one_is_zero),
    ONCE(nodes_are_numbered_from_where_the_caller_says),
    ONCE(bad_labels_are_refused_by_line),
    ONCE(headings_are_named_with_the_remedy),
    {0},
};
