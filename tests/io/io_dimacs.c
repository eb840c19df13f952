/* test_io: DIMACS graphs. */
#include <string.h>

#include "io_shared.h"

TEST(arcs_of_dimacs_are_directed_and_edges_are_not)
{
    const struct {
        const char *text, *arcs;
        bool symmetric;
    } cases[] = {{"c roads\nc\np sp 3 2\na 1 2 7\nc more\na 3 1 0.5\n", "0>1:7 2>0:0.5", false},
                 {"p edge 3 2\ne 1 2\ne 3 2 4\n", "0>1:1 2>1:4", true},
                 {"\np col 4 1\r\ne 4 1\r\n", "3>0:1", true},
                 {"p sp 2 1\na 1 2 0\n", "", false},
                 {"p edge 3 0\n", "", true}};
    sp_context *context = test_context(0, 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        io_graph graph = read_text(context, cases[i].text, automatic);
        ck_assert_int_eq(graph.format, IO_DIMACS);
        ck_assert_int_eq(graph.symmetric, cases[i].symmetric);
        ck_assert_int_eq(graph.undirected, cases[i].symmetric);
        ck_assert_str_eq(arcs_of(&graph), cases[i].arcs);
        io_graph_free(context, &graph);
    }
    io_graph none = {0};
    end_graph(context, &none);
}

TEST(only_a_problem_line_makes_a_dimacs_graph)
{
    expect_arcs("c d\ne f\n", automatic, "c>d:1 e>f:1", 4);
    expect_arcs("p sp 3\n", automatic, "p>sp:3", 2);
    expect_arcs("p edge 3 x\n", automatic, "p>edge:3", 2);
}

TEST(other_problems_of_dimacs_are_no_label_pairs)
{
    expect_error("c\np max 4 3\nn 1 s\na 1 2 3\n", automatic, "in:2: not the problem of a graph");
    expect_error("p sp 3.0 1\na 1 2 3\n", automatic, "in:1: not the problem of a graph");
    expect_error("p SP -3 1\na 1 2 3\n", automatic, "in:1: not the problem of a graph");
}

TEST(edges_of_dimacs_in_both_directions_may_be_counted_once)
{
    expect_error("p edge 4 2\ne 1 2\n", automatic, "in:2: 1 lines with edges, but line 1 says 2");
    expect_arcs("p edge 2 1\ne 1 2\ne 2 1\n", automatic, "0>1:1 1>0:1", 2);
    expect_error("p sp 2 2\na 1 2 1\n", automatic, "in:2: 1 lines with arcs, but line 1 says 2; the file is not whole");
    expect_error("c\np edge 3 3\ne 1 2\n", automatic, "in:3: 1 lines with edges, but line 2 says 3");
}

TEST(wrong_lines_of_dimacs_are_named)
{
    expect_error("p sp 2 1\na 1 3 1\n", automatic,
                 "in:2: a node that is not in the graph (got \"3\"); nodes are numbers from 1");
    expect_error("p sp 2 1\na 0 1 1\n", automatic, "in:2: a node that is not in the graph (got \"0\")");
    expect_error("p sp 2 1\na -1 1 1\n", automatic, "in:2: a node that is not in the graph (got \"-1\")");
    expect_error("p sp 2 1\na 1\n", automatic, "in:2: a node that is not in the graph (got \"\")");
    expect_error("p sp 2 1\na 1 2\n", automatic, "in:2: an arc without a weight");
    expect_error("p sp 2 1\na 1 2 x\n", automatic, "in:2: the weight is not a number");
    expect_error("p sp 2 1\na 1 2 3 4\n", automatic, "in:2: too many fields (got \"4\")");
    expect_error("p sp 2 1\ne 1 2\n", automatic, "in:2: a line that is not an arc (got \"e 1 2\")");
    expect_error("p edge 2 1\nn 1 2\n", automatic, "in:2: a line that is not an edge");
    expect_error("c\np max 2 1\nn 1 s\n", as(IO_DIMACS), "in:2: not the problem of a graph (got \"p max 2 1\")");
    expect_error("p sp 2147483648 0\n", as(IO_DIMACS), "in:1: not the problem of a graph");
    expect_error("p sp 2147483647 0\n", as(IO_DIMACS), "in: the header claims 2147483647 nodes");
    expect_error("c\n", as(IO_DIMACS), "in: no line p");
    expect_error("", as(IO_DIMACS), "in: no line p");
}

TEST(dimacs_in_small_blocks_is_the_same)
{
    static const char text[] = "c x\np sp 5 4\na 1 2 3\nc\na 5 4 0\n\na 2 1 1.5\na 3 3 1e3\n";
    const io_read_options options = as(IO_DIMACS);
    sp_context *context = test_context(0, 2);
    io_graph whole = read_text(context, text, options), part;
    ck_assert_int_eq(whole.nodes, 5);
    for (size_t block = 1; block < 40; block++) {
        ck_ok(context, read_spread(context, text, sizeof text - 1, &options, block, &part));
        same_graphs(&whole, &part);
        io_graph_free(context, &part);
    }
    end_graph(context, &whole);
}

const test_entry dimacs_tests[] = {
    CASE("dimacs", 60),
    ONCE(arcs_of_dimacs_are_directed_and_edges_are_not),
    ONCE(only_a_problem_line_makes_a_dimacs_graph),
    ONCE(other_problems_of_dimacs_are_no_label_pairs),
    ONCE(edges_of_dimacs_in_both_directions_may_be_counted_once),
    ONCE(wrong_lines_of_dimacs_are_named),
    ONCE(dimacs_in_small_blocks_is_the_same),
    {0},
};
