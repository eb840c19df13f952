/* test_io: tables of edges. */
#include <string.h>

#include "io_shared.h"

TEST(a_heading_says_where_source_target_and_weight_are)
{
    expect_arcs("source,target,weight\na,b,2\nb,c,3\n", automatic, "a>b:2 b>c:3", 3);
    expect_arcs("Id;Target;Source;Type;WEIGHT\n7;a;b;x;2\n8;b;c;y;3\n", automatic, "b>a:2 c>b:3", 3);
    expect_arcs("# exported\n\nfrom\tto\tn\na b\tc\t2\n", automatic, "a b>c:2", 2);
    expect_arcs("n source target\n4 a  b \n", automatic, "a>b:4", 2);
    expect_arcs("source,target,a,b\nx,y,p,q\n", automatic, "x>y:1", 2);
    expect_arcs("source,target,weight", automatic, "", 0);
}

#define STRING_SITE "#node1\tnode2\tnode1_string_id\tnode2_string_id\thomology\tcombined_score\n"

/* As STRING's site exports tables of a network. */
TEST(a_heading_may_stand_behind_a_hash)
{
    static const io_read_options homology = {.score_column = "homology", .values = SP_F64};
    expect_arcs(STRING_SITE "A\tB\t1.A\t1.B\t0.5\t0.75\n", automatic, "A>B:0.75", 2);
    expect_arcs("#node1\tnode2\tid\tscore\r\nA\tB\t1\t0.75\r\n", automatic, "A>B:0.75", 2);
    expect_arcs(STRING_SITE "A\tB\t1.A\t1.B\t0.5\t0.9\n", homology, "A>B:0.5", 2);
    expect_error(STRING_SITE "A\tB\t1.A\t1.B\t0.5\tx\n", automatic, "in:2: the weight is not a number (got \"x\")");
    expect_arcs(STRING_SITE "A\tB\t7\n", automatic, "A>B:7", 2); /* another table than the comment's */
    expect_arcs("#source\ttarget\tscore\nA\tB\t7\n", automatic, "A>B:7", 2);
    expect_arcs("#from a to b\nA\tB\t7\n", automatic, "A>B:7", 2);
    expect_arcs("#\n", automatic, "", 0);
}

TEST(only_a_heading_that_is_no_edge_makes_a_table_unasked)
{
    expect_arcs("from to 3\nto a 2\n", automatic, "from>to:3 to>a:2", 3);
    expect_arcs("source\ttarget\na\tb\n", automatic, "source>target:1 a>b:1", 4);
    expect_arcs("source\ttarget\na\tb\n", as(IO_CSV), "a>b:1", 2);
    expect_error("source\ttarget\tweight\na\tb\t1\n", as(IO_ABC), "in:1: the weight is not a number (got \"weight\")");
}

TEST(a_table_without_such_names_has_its_edges_in_front)
{
    expect_arcs("a,b\nb,c,3\n", as(IO_CSV), "a>b:1 b>c:3", 3);
    expect_arcs("gene 1;gene 2;mi;p\na;b;0.5;9\nb;c;;9\n", as(IO_CSV), "a>b:0.5 b>c:1", 3);
    expect_arcs("u,v\n1,2\n2,3\n", as(IO_CSV), "1>2:1 2>3:1", 3);
    expect_arcs("a b 2\r\nb\tc 3\r\n", as(IO_CSV), "a>b:2 b>c:3", 3);
}

TEST(of_several_columns_of_weights_the_best_name_counts)
{
    expect_arcs("source,target,score,value,weight\na,b,1,2,3\n", automatic, "a>b:3", 2);
    expect_arcs("node1,node2,coexp,combined_score\na,b,0,700\n", automatic, "a>b:700", 2);
    expect_arcs("gene1,gene2,dist,weight\na,b,5,0.5\n", as(IO_CSV), "a>b:0.5", 2);
}

TEST(columns_of_numbers_beside_edges_without_a_weight_are_named)
{
    static const io_read_options conf = {.score_column = "conf"};
    expect_unused("id,source,target,conf,kind,n\n1,a,b,0.5,x,3\n", automatic, "conf, n");
    expect_unused("\n# made\nsource;target;conf;SUID\n\na;b;1;3\n", automatic, "conf");
    expect_unused("source,target,conf,n\na,b,0.5,3\n", conf, "");
    expect_unused("source,target,conf,weight\na,b,0.5,3\n", automatic, "");
    expect_unused("source,target,conf,n\n", automatic, "");
    expect_unused("source,target,kind,n\na,b\n", automatic, "");
    expect_unused("a,b,3,4\n", as(IO_CSV), "");
}

/* As exporters write it for spreadsheets. */
TEST(a_first_line_may_name_the_separator)
{
    expect_arcs("sep=;\nsource;target;weight\na;b;2\n", automatic, "a>b:2", 2);
    expect_arcs("sep=,\r\nfrom,to\r\na;1,b\r\n", automatic, "a;1>b:1", 2);
    expect_arcs("SEP=|\na;1|b,2|3\n", automatic, "a;1>b,2:3", 2);
    expect_arcs("sep=\t\nsource\ttarget\tscore\na b\tc\t2\n", automatic, "a b>c:2", 2);
    expect_arcs("sep=;\na;b;2\nb;c;3\n", automatic, "a>b:2 b>c:3", 3);
    expect_unused("sep=;\nsource;target;conf;n\na;b;1;3\n", automatic, "conf, n");
    expect_error("sep=;\nsource;target;weight\na;b;x\n", automatic, "in:3: the weight is not a number (got \"x\")");
    expect_error("sep=;\n", as(IO_ABC), "in:1: one field where two labels are expected");
    expect_arcs("sep=5 a\n", automatic, "sep=5>a:1", 2);
}

TEST(commas_beside_semicolons_and_within_quotes_separate_nothing)
{
    expect_error("a;b;2,5\nc;d;3,5\n", as(IO_CSV),
                 "in:1: the weight is not a number (got \"2,5\"); write decimals with a point");
    expect_error("gene 1;gene 2;score\nc;d;3,5\n", as(IO_CSV), "in:2: the weight is not a number (got \"3,5\"); write");
    expect_arcs("\"a,b\";c;2\n", as(IO_CSV), "a,b>c:2", 2);
}

TEST(a_matrix_with_names_is_no_table_of_edges)
{
    expect_error("\tA\tB\nA\t1\t0.2\nB\t0.2\t1\n", as(IO_CSV), "in: a matrix with names of nodes above and beside it");
    expect_error("A,B,C\nA,1,0.2,0\n", as(IO_CSV), "in: a matrix with names of nodes above and beside it");
    expect_error("\"\",\"A\",\"B\"\n\"A\",1,0.2\n", as(IO_CSV), "in: a matrix with names of nodes");
    expect_arcs("x,A,weight\nA,B,2\n", as(IO_CSV), "A>B:2", 2); /* text behind the name */
    expect_arcs(",source,target,weight\n0,a,b,1\n", automatic, "a>b:1", 2);
    expect_arcs("source,target,weight\nsource,2,1\n", as(IO_CSV), "source>2:1", 2); /* a node of this name */
    expect_arcs("1,2,3\n1,5,2\n", as(IO_CSV), "1>2:3 1>5:2", 3); /* numbers may be nodes */
    expect_arcs("a,b,n\na,2,3\n", lenient(IO_CSV), "a>2:3", 2);
}

TEST(labels_that_lists_cannot_hold_are_refused)
{
    expect_error("source,target,weight\n\"#c\",d,2\n", automatic, "in:2: a label that begins with # or holds a tab");
    expect_error("source,target,weight\n\"a\tb\",d,2\n", automatic, "in:2: a label that begins with # or holds a tab");
}

TEST(fields_may_be_quoted_and_padded)
{
    expect_arcs("\"a, b\" , \"say \"\"c\"\"\",2\r\n  d ,a, 3 \r\n", as(IO_CSV), "a, b>say \"c\":2 d>a:3", 4);
    expect_arcs("\"a\"\t\"b \"\t\"2\"\n", as(IO_CSV), "a>b :2", 2);
    expect_error("a,b\n\"c,d\n", as(IO_CSV), "in:2: a quote that is not closed on its line (got \"c,d\")");
    expect_error("a,b\n\"c\"d,e\n", as(IO_CSV), "in:2: text behind a closing quote");
}

TEST(a_wrong_row_of_a_table_is_named)
{
    expect_error("source,target,weight\na,b,1\nc\n", automatic, "in:3: a row without a source or without a target");
    expect_error("source,target,weight\na,,1\n", automatic, "in:2: a row without a source or without a target");
    expect_error("source,target,type\na,b,directed\n", automatic,
                 "in:2: the weight is not a number (got \"directed\"); write a decimal number, or leave the column "
                 "out");
    expect_error("a,b,0.9x\nb,c,1\n", as(IO_CSV), "in:1: the weight is not a number (got \"0.9x\")");
    expect_error("a,b,NA\nb,c,1\n", as(IO_CSV), "in:1: the weight is not a number (got \"NA\")");
    expect_error("a b 1\na,b,1\n", as(IO_ABC), "in:2: commas between the fields, where tabs or blanks are expected");
    expect_arcs("source,target,weight\na,b,1\nc\n\"d\n", lenient(IO_CSV), "a>b:1", 2);
}

TEST(tables_in_small_blocks_are_the_same)
{
    static const char text[] = "id,source,target,weight\n1,\"a, b\",c,2\n\n# none\n2,c,\"d\"\"\",0\n3,d,a,5\n";
    const io_read_options options = as(IO_CSV);
    sp_context *context = test_context(0, 2);
    io_graph whole = read_text(context, text, options), part;
    for (size_t block = 1; block < 40; block++) {
        ck_ok(context, read_spread(context, text, sizeof text - 1, &options, block, &part));
        same_graphs(&whole, &part);
        ck_assert_int_eq(part.bytes, (int64_t)sizeof text - 1);
        io_graph_free(context, &part);
    }
    end_graph(context, &whole);
}

CONTEXT_TEST(a_table_that_is_written_comes_back, 0, 2)
{
    int64_t offsets[] = {0, 2, 4, 5};
    int32_t columns[] = {0, 1, 0, 2, 1};
    double values[] = {0.5, 2, 2, 3, 3};
    const char *names[] = {"a, \"b\"", " #c", "d"};
    const sp_csr m = {.rows = 3, .cols = 3, .nnz = 5, .row_offsets = offsets, .col_indices = columns,
                      .value_type = SP_F64, .values = values};
    io_name_list list = {0};
    for (int i = 0; i < 3; i++) ck_ok(context, io_names_append(context, &list, names[i], strlen(names[i])));
    const io_write_options writing = {.format = IO_CSV, .undirected = true, .names = &list.names};
    ck_ok(context, io_write_graph(context, path_of("out.csv"), &m, &writing));
    ck_assert_str_eq(contents(path_of("out.csv")), "source,target,weight\n\"a, \"\"b\"\"\",\"a, \"\"b\"\"\",0.5\n"
                                                   "\"a, \"\"b\"\"\",\" #c\",2\n\" #c\",d,3\n");
    io_graph graph;
    ck_ok(context, io_read_graph(context, path_of("out.csv"), &automatic, &graph));
    ck_assert_int_eq(graph.format, IO_CSV);
    ck_assert_str_eq(arcs_of(&graph), "a, \"b\">a, \"b\":0.5 a, \"b\"> #c:2  #c>d:3");
    io_graph_free(context, &graph);
    io_names_free(context, &list.names);
}

CONTEXT_TEST(the_name_of_a_file_makes_its_rows_a_table, 0, 1)
{
    static const struct {
        const char *name, *text, *arcs;
        io_format format;
    } files[] = {{"e.csv", "a,b,2\n", "a>b:2", IO_CSV},
                 {"t.csv", "a\tb\t2\n", "a>b:2", IO_CSV},
                 {"b.csv", "a b 2\n", "a>b:2", IO_ABC},
                 {"h.tsv", "source\ttarget\na\tb\n", "a>b:1", IO_CSV},
                 {"index.csv", ",source,target\n7,a,b\n", "a>b:1", IO_CSV}, /* numbers of rows are no weights */
                 {"gephi.csv", "Id,Source,Target\n7,a,b\n", "a>b:1", IO_CSV},
                 {"e.tsv", "a\tb\n", "a>b:1", IO_ABC},
                 {"h.txt", "source\ttarget\n", "source>target:1", IO_ABC}};
    for (size_t i = 0; i < COUNT(files); i++) {
        io_graph graph;
        ck_ok(context, io_read_graph(context, text_of(files[i].name, files[i].text), &automatic, &graph));
        test_expect(graph.format == files[i].format, "%s: format %d", files[i].name, (int)graph.format);
        ck_assert_str_eq(arcs_of(&graph), files[i].arcs);
        io_graph_free(context, &graph);
    }
}

const test_entry csv_tests[] = {
    CASE_WITH("tables", 60, make_folder, remove_folder),
    ONCE(a_heading_says_where_source_target_and_weight_are),
    ONCE(a_heading_may_stand_behind_a_hash),
    ONCE(only_a_heading_that_is_no_edge_makes_a_table_unasked),
    ONCE(a_table_without_such_names_has_its_edges_in_front),
    ONCE(of_several_columns_of_weights_the_best_name_counts),
    ONCE(columns_of_numbers_beside_edges_without_a_weight_are_named),
    ONCE(a_first_line_may_name_the_separator),
    ONCE(commas_beside_semicolons_and_within_quotes_separate_nothing),
    ONCE(a_matrix_with_names_is_no_table_of_edges),
    ONCE(labels_that_lists_cannot_hold_are_refused),
    ONCE(fields_may_be_quoted_and_padded),
    ONCE(a_wrong_row_of_a_table_is_named),
    ONCE(tables_in_small_blocks_are_the_same),
    ONCE(a_table_that_is_written_comes_back),
    ONCE(the_name_of_a_file_makes_its_rows_a_table),
    {0},
};
