/* test_io: GraphML, as a graph and as a table of nodes. */
#include <stdio.h>
#include <string.h>

#include "io_shared.h"

#define KEYS                                                                                        \
    "<key id=\"d0\" for=\"node\" attr.name=\"kind\"/><key id=\"d1\" for=\"edge\" attr.name=\"Weight\">" \
    "<default> 3 </default></key><key id=\"d2\" for=\"all\" attr.name=\"cost\"/>"
#define GRAPH(kind, items) "<graphml>" KEYS "<graph edgedefault=\"" kind "\">" items "</graph></graphml>"
#define NODES "<node id=\"a\"/><node id=\"b\"/><node id=\"c d\"/>"
#define EDGE(from, to, data) "<edge source=\"" from "\" target=\"" to "\">" data "</edge>"

TEST(graphml_has_nodes_edges_and_weights)
{
    static const io_read_options costs = {.score_column = "cost", .values = SP_F64};
    expect_arcs(GRAPH("undirected", NODES EDGE("a", "b", "") EDGE("c d", "a", "<data key=\"d1\">1.5</data>")),
                automatic,
                "a>b:3 c d>a:1.5", 3);
    expect_arcs(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d2\">7</data>") EDGE("a", "a", "")), costs,
                "a>b:7 a>a:1", 3);
    expect_arcs(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d1\">0</data>")), automatic, "", 3);
    expect_arcs(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d1\"> </data>")), automatic, "a>b:1", 3);
    expect_arcs(GRAPH("directed", ""), automatic, "", 0);
    expect_arcs("<?xml version='1.0' encoding='utf-8'?>\n<!-- <edge> --><graphml xmlns='x'>\n<graph "
                "edgedefault='directed'><desc>a <b/> c</desc><node id='&lt;&#65;&#x3b1;&amp;'/>\n<node "
                "id='b'></node><edge source='b' target='&lt;A&#945;&amp;'/></graph></graphml>\n", automatic,
                "b><A\xce\xb1&:1", 2);
}

TEST(directions_of_graphml_are_those_of_its_edges)
{
    sp_context *context = test_context(0, 1);
    static const struct { const char *text; bool symmetric; } cases[] = {
        {GRAPH("undirected", NODES EDGE("a", "b", "")), true},
        {GRAPH("directed", NODES EDGE("a", "b", "")), false},
        {GRAPH("directed", NODES), false},
        {GRAPH("directed", NODES "<edge source=\"a\" target=\"b\" directed=\"false\"/>"), true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        io_graph graph = read_text(context, cases[i].text, automatic);
        ck_assert_int_eq(graph.format, IO_GRAPHML);
        ck_assert_int_eq(graph.symmetric, cases[i].symmetric);
        io_graph_free(context, &graph);
    }
    io_graph none = {0};
    end_graph(context, &none);
}

#define NAMED(first, more)                                                                          \
    "<graphml><key id=\"v\" for=\"node\" attr.name=\"name\"/><graph>"                                  \
    "<node id=\"" first "\"><data key=\"v\">x</data></node>"                                         \
    "<node id=\"n1\">" more "</node><edge source=\"n1\" target=\"" first "\"/></graph></graphml>"

TEST(numbered_nodes_of_graphml_are_called_by_their_names)
{
    static const io_read_options by_id = {.node_column = "id"}, by_name = {.node_column = "name"};
    expect_arcs(NAMED("n0", "<data key=\"v\">y</data>"), automatic, "y>x:1", 2);
    expect_arcs(NAMED("n0", "<data key=\"v\">y</data>"), by_id, "n1>n0:1", 2);
    expect_arcs(NAMED("m0", "<data key=\"v\">x</data>"), automatic, "n1>m0:1", 2);
    expect_arcs(NAMED("m0", "<data key=\"v\">y</data>"), by_name, "y>x:1", 2);
    expect_error(NAMED("n0", "<data key=\"v\">x</data>"), automatic,
                 "in: two nodes are called \"x\"; rename one, or call nodes by their ids (contract: --node-column id)");
    expect_error(NAMED("n0", ""), automatic, "in:1: a node without a name (got \"n1\"); give it one, or call nodes");
    expect_error(NAMED("n0", ""), ((io_read_options){.node_column = "kind"}),
                 "in: nodes have no attribute \"kind\"; there are: name");
}

/* Cytoscape writes a key for each column of its tables of nodes, edges and networks, with the column's name as the id,
 * so columns that several tables have share one. */
#define CYTOSCAPE_KEYS(table)                                                                        \
    "<key attr.name=\"SUID\" attr.type=\"long\" for=\"" table "\" id=\"SUID\"/>\n"                      \
    "<key attr.name=\"shared name\" attr.type=\"string\" for=\"" table "\" id=\"shared name\"/>\n"      \
    "<key attr.name=\"name\" attr.type=\"string\" for=\"" table "\" id=\"name\"/>\n"
#define CYTOSCAPE(edge_keys, edges)                                                                  \
    "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?><graphml "                               \
    "xmlns=\"http://graphml.graphdrawing.org/xmlns\">" CYTOSCAPE_KEYS("node") CYTOSCAPE_KEYS("edge")        \
    edge_keys CYTOSCAPE_KEYS("graph") "<graph edgedefault=\"directed\" id=\"yeast\">\n"                            \
    "<node id=\"62\"><data key=\"SUID\">62</data><data key=\"shared name\">s</data>"                     \
    "<data key=\"name\">GAL 4</data></node><node id=\"63\"><data key=\"name\">GAL80</data></node>\n"     \
    edges "</graph></graphml>\n"
#define CYTOSCAPE_EDGE(data)                                                                         \
    "<edge source=\"62\" target=\"63\"><data key=\"name\">GAL 4 (pp) GAL80</data>" data "</edge>"

/* Their ids are numbers of the session. */
TEST(nodes_of_cytoscape_are_called_by_their_names)
{
    static const char text[] = CYTOSCAPE("", CYTOSCAPE_EDGE(""));
    expect_arcs(text, automatic, "GAL 4>GAL80:1", 2);
    expect_arcs(text, ((io_read_options){.node_column = "id"}), "62>63:1", 2);
}

TEST(numbers_of_edges_without_a_weight_are_named)
{
    static const io_read_options score = {.score_column = "score"};
    static const char cytoscape[] =
        CYTOSCAPE("<key attr.name=\"interaction\" attr.type=\"string\" for=\"edge\" id=\"interaction\"/>"
                  "<key attr.name=\"score\" attr.type=\"double\" for=\"edge\" id=\"score\"/>"
                  "<key attr.name=\"evidence\" attr.type=\"int\" for=\"edge\" id=\"evidence\"/>",
                  CYTOSCAPE_EDGE("<data key=\"SUID\">70</data><data key=\"score\">0.5</data>"));
    expect_unused(cytoscape, automatic, "score, evidence");
    expect_unused(cytoscape, score, "");
    expect_arcs(cytoscape, score, "GAL 4>GAL80:0.5", 2);
    expect_unused(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d2\">7</data>")), automatic, "");
    expect_unused("<graphml><key id=\"p\" for=\"edge\"/><key id=\"q\" for=\"edge\"/><graph>" NODES
                  EDGE("a", "b", "<data key=\"p\">x</data><data key=\"q\"> 2 </data>") "</graph></graphml>", automatic,
                  "q");
}

/* Cytoscape calls all networks directed. */
TEST(edges_of_cytoscape_count_in_both_directions)
{
    sp_context *context = test_context(0, 1);
    static const struct { const char *text; bool symmetric, presumed; } cases[] = {
        {CYTOSCAPE("", CYTOSCAPE_EDGE("")), true, true},
        {CYTOSCAPE("", ""), true, true},
        {CYTOSCAPE("", "<edge source=\"62\" target=\"63\" directed=\"true\"/>"), false, false},
        {CYTOSCAPE("", "<edge source=\"62\" target=\"63\" directed=\"false\"/>"), true, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        io_graph graph = read_text(context, cases[i].text, automatic);
        ck_assert_int_eq(graph.symmetric, cases[i].symmetric);
        ck_assert_int_eq(graph.presumed, cases[i].presumed);
        io_graph_free(context, &graph);
    }
    io_graph none = {0};
    end_graph(context, &none);
}

TEST(graphml_that_is_no_flat_graph_is_refused)
{
    expect_error("<svg/>", automatic, "in:1: an XML file that is not GraphML (got \"svg\"); export");
    expect_error("<graphml></graphml>", automatic, "in:1: no graph");
    expect_error(GRAPH("mixed", ""), automatic, "in:1: edges that are neither directed nor undirected (got \"mixed\")");
    expect_error("<graphml><graph/>\n<graph/></graphml>", automatic, "in:2: a second graph");
    expect_error(GRAPH("directed", "<node id=\"a\">\n<graph/></node>"), automatic, "in:2: a graph within a node");
    expect_error(GRAPH("directed", "<hyperedge/>"), automatic, "in:1: an edge of several nodes");
    expect_error(GRAPH("directed", "<node/>"), automatic, "in:1: a node without an id");
    expect_error(GRAPH("directed", "<node id=\"a\"/>\n<node id=\"a\"/>"), automatic,
                 "in:2: two nodes have one id (got \"a\")");
    expect_error(GRAPH("directed", "<node id=\"a&#9;b\"/>"), automatic,
                 "in:1: a name that begins with # or holds a tab");
    expect_error(GRAPH("directed", NODES "\n" EDGE("a", "e", "")), automatic,
                 "in:2: an end of an edge that is not a node above (got \"e\"); list nodes before edges");
    expect_error(GRAPH("directed", NODES "\n<edge source=\"a\"/>"), automatic,
                 "in:2: a node without an id, or an edge");
    expect_error(GRAPH("directed", NODES EDGE("a", "b", "") "\n<edge source=\"a\" target=\"b\" directed=\"false\"/>"),
                 automatic, "in:2: directed edges among undirected ones");
    expect_error(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d9\">1</data>")), automatic,
                 "in:1: data without a key that is declared above (got \"d9\")");
    expect_error(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d1\">1</data><data key=\"d1\">2</data>")),
                 automatic,
                 "in:1: two values of one key (got \"d1\")");
    expect_error(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d1\">heavy</data>")), automatic,
                 "in:1: the weight is not a number (got \"heavy\")");
    expect_error(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d1\">-1</data>")), automatic,
                 "in:1: the weight is negative");
    expect_error(GRAPH("directed", NODES EDGE("a", "b", "<data key=\"d1\">1e39</data>")), automatic,
                 "in:1: the weight is too large");
    expect_error("<graphml><key id=\"a\"/><key id=\"a\"/></graphml>", automatic,
                 "in:1: two keys have one id (got \"a\")");
    expect_error("<graphml><key id=\"a\" for=\"edge\"/>\n<key id=\"a\" for=\"edge\"/></graphml>", automatic,
                 "in:2: two keys have one id (got \"a\")");
    expect_error(GRAPH("directed", NODES EDGE("a", "b", "")), ((io_read_options){.score_column = "age"}),
                 "in: edges have no attribute \"age\"; there are: Weight, cost");
}

TEST(what_is_no_xml_is_refused_at_its_line)
{
    static char deep[1000], wide[1 << 17];
    static const struct { const char *text, *sentence; } cases[] = {
        {"<!DOCTYPE graphml [<!ENTITY a \"b\">]><graphml/>", "in:1: a document type, or another declaration"},
        {"<graphml>\n<a b=\"&c;\"/></graphml>", "in:2: an entity that is not of XML itself (got \"&c;\")"},
        {"<graphml>&#0;</graphml>", "in:1: an entity that is not of XML itself (got \"&#0;\")"},
        {"<graphml>&#xd800;</graphml>", "in:1: an entity that is not of XML itself"},
        {"<graphml>&#1114112;</graphml>", "in:1: an entity that is not of XML itself"},
        {"<graphml>a & b</graphml>", "in:1: an entity that is not of XML itself (got \"&\")"},
        {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><graphml/>", "in:1: an encoding other than UTF-8"},
        {"<graphml>\n<graph></graphml>", "in:2: an element closes that is not the one open (got \"graphml\")"},
        {"<graphml>\n\n<graph>", "in:3: the file ends within an element"},
        {"<graphml>\n<graph", "in:2: a tag that does not end"},
        {"<graphml>\n<!-- <a>", "in:2: the file ends too soon"},
        {"<graphml><![CDATA[a", "in:1: the file ends too soon"},
        {"<graphml></graphml>\nx", "in:2: text outside of all elements"},
        {"<?xml version=\"1.0\"?>\n \nx y\n\n<graphml></graphml>", "in:3: text outside of all elements (got \"x y"},
        {"<graphml>\n\na\nb &c; d\n</graphml>", "in:4: an entity that is not of XML itself (got \"&c;\")"},
        {"<graphml><graph/></graphml>\n<graphml/>", "in:2: a second root"},
        {"<!-- nothing -->", "in:1: no element"},
        {"<graphml a=b/>", "in:1: a tag that is no XML"},
        {"<graphml a/>", "in:1: a tag that is no XML"},
        {"<graphml a=\"b\"c=\"d\"/>", "in:1: a tag that is no XML"},
        {"<graphml a=\"<\"/>", "in:1: a tag that is no XML"},
        {"<graphml a=\"b\" a=\"c\"/>", "in:1: an attribute that is there twice (got \"a\")"},
        {"<graphml><></graphml>", "in:1: an element without a name"},
        {"<graphml>\001</graphml>", "in:1: a control character"}};
    for (size_t i = 0; i < COUNT(cases); i++) expect_error(cases[i].text, automatic, cases[i].sentence);
    strcpy(deep, "<graphml>");
    for (int i = 0; i < 65; i++) strcat(deep, "<a>");
    expect_error(deep, automatic, "in:1: elements within more than 64 others");
    memset(wide, ' ', sizeof wide - 1);
    memcpy(wide, "<graphml", 8);
    expect_error(wide, automatic, "in:1: a tag of more than 65536 bytes");
}

/* Longer than the parser's buffer, in every way that it may be cut: names, entities, CDATA and comments. */
TEST(long_graphml_is_read_whole)
{
    enum { EDGES = 20000, ROOM = 1 << 22 };
    char *text = malloc(ROOM);
    size_t at = (size_t)sprintf(text, "<graphml><key id='w' for='edge' attr.name='weight'/><graph "
                                      "edgedefault='directed'>");
    sp_context *context = test_context(0, 1);
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i <= EDGES; i++) at += (size_t)sprintf(text + at, "<node id='&#%d;%d'/>\n", 65 + i % 26, i);
    for (int i = 0; i < EDGES; i++)
        at += (size_t)sprintf(text + at, "<!--%*s--><edge source='%c%d' target='%c%d'><data "
                              "key='w'>%d<![CDATA[%d]]>&#%d;</data></edge>", i % 40, "", 65 + i % 26, i,
                              65 + (i + 1) % 26, i + 1, 1 + i % 9, i % 10, 48 + i % 7);
    strcpy(text + at, "</graph></graphml>");
    io_graph graph = read_text(context, text, automatic);
    ck_assert_int_eq(graph.nodes, EDGES + 1);
    ck_assert_int_eq(graph.arcs, EDGES);
    ck_assert_int_eq(graph.lines, EDGES + 2);
    for (int i = 0; i < EDGES; i++) {
        ck_assert(graph.tails[i] == i && graph.heads[i] == i + 1);
        ck_assert(io_arc_weight(&graph, i) == 100 * (1 + i % 9) + 10 * (i % 10) + i % 7);
    }
    end_graph(context, &graph);
    free(text);
}

static sp_status read_nodes(sp_context *context, const io_graph *graph, const char *text, const char *column,
                            io_node_table *table)
{
    const io_node_options options = {.node_column = column};
    io_source *source;
    ck_ok(context, io_source_memory(context, "t", text, strlen(text), &source));
    const sp_status status = io_read_node_table_source(context, source, graph, &options, table);
    io_source_close(source);
    return status;
}

static const char colours[] =
    "<graphml><key id='c' for='node' attr.name='colour'><default>red</default></key><key id='s' for='node' "
    "attr.name='size'/><graph><node id='d'><data key='s'> 4 </data></node><node id='b'><data key='c'>blue &amp; "
    "green</data></node><node id='a'><data key='s'>NA</data><data key='c'/></node></graph></graphml>";

TEST(nodes_of_graphml_are_a_table)
{
    sp_context *context = test_context(0, 1);
    io_graph graph = read_text(context, four_names, automatic);
    io_node_table table;
    ck_ok(context, read_nodes(context, &graph, colours, NULL, &table));
    ck_assert_int_eq(table.columns, 2);
    ck_assert_int_eq(table.rows, 3);
    const io_attribute *colour = &table.column[0], *size = &table.column[1];
    ck_assert(colour->is_text && !size->is_text && size->values[3] == 4 && size->values[0] != size->values[0]);
    ck_assert(colour->values[0] != colour->values[0] && colour->values[2] != colour->values[2]);
    const int64_t blue = (int64_t)colour->values[1], red = (int64_t)colour->values[3];
    ck_assert_uint_eq(io_name_length(&table.texts, blue), strlen("blue & green"));
    ck_assert(memcmp(io_name(&table.texts, red), "red", 3) == 0 && io_name_length(&table.texts, red) == 3);
    io_node_table_free(context, &table);
    ck_assert_int_ne(read_nodes(context, &graph, "<graphml><graph><node id='e'/></graph></graphml>", NULL, &table),
                     SP_OK);
    ck_assert_ptr_nonnull(strstr(sp_last_error(context), "t:1: this is not a node of the graph (got \"e\")"));
    end_graph(context, &graph);
}

TEST(graphml_survives_every_failed_allocation)
{
    static const char text[] = CYTOSCAPE("<key id=\"p\" attr.type=\"int\" for=\"edge\"/>", CYTOSCAPE_EDGE(""));
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    sp_status status = SP_ERROR_HOST_MEMORY;
    const int64_t blocks = heap.live_blocks;
    for (int64_t n = 0; status != SP_OK; n++) {
        io_graph graph;
        io_node_table table = {0};
        ck_assert_int_lt(n, 200);
        heap.allocations = 0;
        heap.fail_at = n;
        status = io_read_memory(context, "in", text, strlen(text), &automatic, 0, &graph);
        if (status == SP_OK) {
            io_source *source;
            status = io_source_memory(context, "in", text, strlen(text), &source);
            if (status == SP_OK)
                status = io_read_node_table_source(context, source, &graph, &(io_node_options){0}, &table);
            if (source) io_source_close(source);
        }
        heap.fail_at = -1;
        io_node_table_free(context, &table);
        io_graph_free(context, &graph);
        if (status == SP_OK) ck_assert_int_gt(n, 20);
        else ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        ck_assert_int_eq(heap.live_blocks, blocks);
    }
    test_end_heap(context, &heap);
}

const test_entry graphml_tests[] = {
    CASE("graphml", 60),
    ONCE(graphml_has_nodes_edges_and_weights),
    ONCE(directions_of_graphml_are_those_of_its_edges),
    ONCE(numbered_nodes_of_graphml_are_called_by_their_names),
    ONCE(nodes_of_cytoscape_are_called_by_their_names),
    ONCE(numbers_of_edges_without_a_weight_are_named),
    ONCE(edges_of_cytoscape_count_in_both_directions),
    ONCE(graphml_that_is_no_flat_graph_is_refused),
    ONCE(what_is_no_xml_is_refused_at_its_line),
    ONCE(long_graphml_is_read_whole),
    ONCE(nodes_of_graphml_are_a_table),
    ONCE(graphml_survives_every_failed_allocation),
    {0},
};
