/* METIS graphs: what their nodes and edges have, in every format, however the reader cuts the text; the first wrong
 * line, by any number of threads; recognition by content.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graphs/formats.h"
#include "graphs/metis.h"
#include "graphs.h"

static const io_read_options metis = {.format = IO_METIS};

/* ---- random graphs as text ------------------------------------------------------------------------------ */

/* What a file says, so that the reader can be compared with it. */
typedef struct sample {
    int nodes, edges, constraints;
    bool sized, weighed, valued;
    int64_t *sizes, *weights; /* of nodes */
    int *edge;                /* nodes x nodes: the weight, 0: none */
    char *text;
    size_t count;
} sample;

typedef struct sample_options {
    int nodes;
    int edges; /* tries */
    bool comments;
} sample_options;

static void print_numbers(sample *s, int node, bool *first)
{
    if (s->sized) {
        s->count += (size_t)sprintf(s->text + s->count, "%lld", (long long)s->sizes[node]);
        *first = false;
    }
    for (int k = 0; k < s->constraints; k++) {
        s->count += (size_t)sprintf(s->text + s->count, "%s%lld", *first ? "" : " ",
                                    (long long)s->weights[node * s->constraints + k]);
        *first = false;
    }
}

/* Neighbours from a random one on, so that they do not ascend. */
static void print_node(sample *s, int node, test_random *random)
{
    bool first = true;
    print_numbers(s, node, &first);
    const int begin = (int)test_below(random, s->nodes);
    for (int k = 0; k < s->nodes; k++) {
        const int j = (begin + k) % s->nodes, weight = s->edge[node * s->nodes + j];
        if (weight == 0) continue;
        s->count += (size_t)sprintf(s->text + s->count, "%s%d", first ? "" : " ", j + 1);
        if (s->valued) s->count += (size_t)sprintf(s->text + s->count, " %d", weight);
        first = false;
    }
    s->count += (size_t)sprintf(s->text + s->count, "\n");
}

static void print_header(sample *s, test_random *random)
{
    s->count += (size_t)sprintf(s->text + s->count, "%d %d", s->nodes, s->edges);
    if (s->sized || s->weighed || s->valued || test_below(random, 2))
        s->count += (size_t)sprintf(s->text + s->count, " %d%d%d", s->sized, s->weighed, s->valued);
    if (s->weighed && (s->constraints > 1 || test_below(random, 2)))
        s->count += (size_t)sprintf(s->text + s->count, " %d", s->constraints);
    s->count += (size_t)sprintf(s->text + s->count, "\n");
}

static void print_comment(sample *s, test_random *random)
{
    for (int64_t lines = test_below(random, 3); lines > 0; lines--)
        s->count += (size_t)sprintf(s->text + s->count, "%%%.*s\n", (int)test_below(random, 6), " 1 2 3");
}

static sample make_sample(test_random *random, sample_options o)
{
    const int64_t kinds = test_below(random, 8);
    sample s = {.nodes = o.nodes, .sized = kinds & 1, .weighed = kinds & 2, .valued = kinds & 4};
    s.constraints = s.weighed ? 1 + (int)test_below(random, 3) : 0;
    const size_t n = (size_t)o.nodes;
    s.sizes = malloc(8 * (n + 1));
    s.weights = malloc(8 * (3 * n + 1));
    s.edge = calloc(n * n + 1, sizeof *s.edge);
    for (size_t i = 0; i < n; i++) s.sizes[i] = test_below(random, 9);
    for (size_t i = 0; i < 3 * n; i++) s.weights[i] = test_below(random, test_below(random, 9) ? 9 : INT64_C(1) << 53);
    for (int e = 0; e < o.edges && n > 1; e++) {
        const int i = (int)test_below(random, s.nodes), j = (int)test_below(random, s.nodes);
        if (i == j || s.edge[i * s.nodes + j]) continue;
        s.edge[i * s.nodes + j] = s.edge[j * s.nodes + i] = s.valued ? 1 + (int)test_below(random, 12) : 1;
        s.edges++;
    }
    s.text = malloc(1000 + n * 100 + (size_t)s.edges * 20);
    if (o.comments) print_comment(&s, random);
    print_header(&s, random);
    for (int i = 0; i < s.nodes; i++) {
        if (o.comments) print_comment(&s, random);
        print_node(&s, i, random);
    }
    if (o.comments) print_comment(&s, random);
    return s;
}

static void free_sample(sample *s) { free_all(s->sizes, s->weights, s->edge, s->text); }

/* ---- reading -------------------------------------------------------------------------------------------- */

static bool same_numbers(const int64_t *a, const int64_t *b, int64_t count, bool some)
{
    if (!some || count == 0) return !a;
    return a && memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static void expect_sample(const sample *s, const io_graph *graph, uint64_t seed)
{
    const unsigned long long number = seed;
    test_expect(graph->nodes == s->nodes && graph->arcs == 2 * s->edges, "seed %llu: %lld nodes, %lld arcs", number,
                (long long)graph->nodes, (long long)graph->arcs);
    test_expect(graph->constraints == (s->nodes ? s->constraints : 0), "seed %llu: %d constraints", number,
                graph->constraints);
    test_expect(same_numbers(graph->node_weights, s->weights, (int64_t)s->nodes * s->constraints, s->weighed),
                "seed %llu: other weights of nodes", number);
    test_expect(same_numbers(graph->node_sizes, s->sizes, s->nodes, s->sized), "seed %llu: other sizes of nodes",
                number);
    for (int64_t e = 0; e < graph->arcs; e++)
        test_expect((int)io_arc_weight(graph, e) == s->edge[graph->tails[e] * s->nodes + graph->heads[e]],
                    "seed %llu: arc %d>%d weighs %g", number, graph->tails[e] + 1, graph->heads[e] + 1,
                    (double)io_arc_weight(graph, e));
}

TEST(nodes_and_edges_are_read_with_all_that_they_have)
{
    const int64_t cases = test_cases(120);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        test_random random = test_seed(seed);
        const int64_t kind = test_below(&random, 4);
        sample s = make_sample(&random, (sample_options){.nodes = kind ? (int)test_below(&random, 60) : 1200,
                                                         .edges = (int)test_below(&random, kind ? 200 : 3000),
                                                         .comments = test_below(&random, 2)});
        const size_t blocks[] = {0, 20 + (size_t)test_below(&random, 60), 300, 5000};
        for (int i = 0; i < 4; i++) {
            sp_context *context = test_context(0, 1 + 3 * (i % 3));
            io_graph graph;
            ck_ok(context, io_read_memory(context, "in", s.text, s.count, &metis, blocks[i], &graph));
            ck_ok(context, io_graph_spread(context, &graph));
            expect_sample(&s, &graph, seed);
            end_graph(context, &graph);
        }
        free_sample(&s);
    }
}

static void expect_numbers(const char *text, int constraints, const char *weights, const char *sizes)
{
    sp_context *context = test_context(0, 1);
    io_graph graph;
    ck_ok(context, io_read_memory(context, "in", text, strlen(text), &metis, 0, &graph));
    ck_assert_int_eq(graph.constraints, constraints);
    const int64_t *numbers[] = {graph.node_weights, graph.node_sizes};
    const char *expected[] = {weights, sizes};
    for (int which = 0; which < 2; which++) {
        char shown[400] = "";
        for (int64_t i = 0; numbers[which] && i < graph.nodes * (which ? 1 : constraints); i++)
            snprintf(shown + strlen(shown), 40, "%s%lld", i ? " " : "", (long long)numbers[which][i]);
        ck_assert_str_eq(shown, expected[which]);
    }
    end_graph(context, &graph);
}

TEST(sizes_and_weights_of_nodes_are_kept)
{
    expect_numbers("2 1\n2\n1\n", 0, "", "");
    expect_numbers("4 2 010\n10 2\n20 1\n30 4\n40 3\n", 1, "10 20 30 40", "");
    expect_numbers("2 1 100\n5 2\n0 1\n", 0, "", "5 0");
    expect_numbers("2 1 111 2\n5 7 8 2 9\n1 2 3 1 9\n", 2, "7 8 2 3", "5 1");
    expect_numbers("3 0 010\n% c\n0\n9007199254740992\n7", 1, "0 9007199254740992 7", "");
    expect_numbers("2 1 10 0\n5 2\n6 1\n", 1, "5 6", ""); /* METIS, too, takes 0 constraints as 1 */
    expect_numbers("2 0 110\n1 2\n3 4\n\n\n", 1, "2 4", "1 3");
    expect_numbers("0 0 011\n", 0, "", "");
}

static void expect_error(const char *text, const char *beginning)
{
    for (int threads = 1; threads <= 4; threads++)
        for (size_t block = 0; block <= 64; block = block ? 4 * block : 4) {
            sp_context *context = test_context(0, threads);
            io_graph graph;
            const sp_status status = io_read_memory(context, "in", text, strlen(text), &metis, block, &graph);
            test_expect(status != SP_OK, "accepted: %.100s", text);
            test_expect(strncmp(sp_last_error(context), beginning, strlen(beginning)) == 0,
                        "\"%s\" instead of \"%s...\" (%d threads, blocks of %zu)", sp_last_error(context), beginning,
                        threads, block);
            ck_assert_ptr_null(graph.node_weights);
            sp_context_destroy(context);
        }
}

TEST(wrong_sizes_and_weights_of_nodes_are_refused)
{
    expect_error("2 1 010\n-1 2\n1 1\n",
                 "in:2: a size or weight of the node that is not a whole number from 0 to 2^53");
    expect_error("2 1 010\n1 2\n1.5 1\n", "in:3: a size or weight of the node");
    expect_error("2 1 010\n1 2\n9007199254740993 1\n", "in:3: a size or weight of the node");
    expect_error("2 1 010 3\n7 8\n1 2 3 1\n", "in:2: a size or weight of the node");
    expect_error("3 1 010\n7 2\n1 1\n\n", "in:4: node 3 has an empty line, but the header says");
    expect_error("3 1 010\n7 2\n\n% c\n1\n", "in:3: node 2 has an empty line");
    expect_error("3 1 010\n7 2\n1 1\n", "in:3: 2 lines of nodes, but the header says 3 nodes, and that each has");
    expect_error("2 1 001 2\n2 5\n1 5\n", "in:1: a number of constraints, but a format without weights of nodes");
    expect_error("2 0 010\n1\n2\n% c\n\n3\n4\n", "in:6: a line of node 4, but the header says 2 nodes");
    expect_error("2 1\n2\n1\n1\n", "in:4: a line of node 3, but the header says 2 nodes");
    expect_error("1 0 010\n1\n2\nx\n", "in:3: a line of node 2");
    expect_error("1 0 010\nx\n2\n", "in:2: a size or weight of the node");
    expect_error("2 1 011\n2 \n2\n1 2 2 2 2 2 x\n", "in:4: a line of node 3"); /* a line that is wrong twice */
    expect_error("1 0 010\n1\n2 x\n", "in:3: a line of node 2");
    expect_error("1 0 010\nx\n2 x\n", "in:2: a size or weight of the node");
}

/* Nodes with weights and no edges: what takes the most memory for its text. */
TEST(weights_of_nodes_take_no_more_memory_than_promised)
{
    enum { NODES = 12 << 20 };
    char *text = malloc(2 * NODES + 100);
    size_t count = (size_t)sprintf(text, "%d 0 010\n", NODES);
    for (int i = 0; i < NODES; i++, count += 2) memcpy(text + count, "1\n", 2);
    for (int threads = 1; threads <= 4; threads += 3) {
        test_heap heap = {.fail_at = -1};
        sp_context *context = test_heap_context(&heap, 0, threads);
        io_graph graph;
        ck_ok(context, io_read_memory(context, "in", text, count, &metis, 0, &graph));
        const double most = 4.5 * (double)count + (48 << 20);
        test_expect((double)heap.peak_bytes <= most, "%.2f times %zu bytes", (double)heap.peak_bytes / (double)count,
                    count);
        ck_assert(graph.node_weights[NODES - 1] == 1);
        end_graph(context, &graph);
        ck_assert_int_eq(heap.live_bytes, 0);
    }
    free(text);
}

/* ---- the first wrong line ------------------------------------------------------------------------------- */

enum { MOST = 70, WIDEST = 2 * MOST };

/* Lines of nodes that may be wrong. */
typedef struct wrong_graph {
    int nodes, count[MOST], line[MOST];
    int names[MOST][WIDEST], weighs[MOST][WIDEST];
    int broken; /* the node in whose line a letter stands; MOST: none */
    char text[MOST * WIDEST * 8];
} wrong_graph;

static int naming(const wrong_graph *g, int node, int other)
{
    for (int k = 0; k < g->count[node]; k++)
        if (g->names[node][k] == other) return k;
    return -1;
}

static void name(wrong_graph *g, int node, int other, int weight)
{
    g->names[node][g->count[node]] = other;
    g->weighs[node][g->count[node]++] = weight;
}

static void forget(wrong_graph *g, int node, int which)
{
    g->count[node]--;
    g->names[node][which] = g->names[node][g->count[node]];
    g->weighs[node][which] = g->weighs[node][g->count[node]];
}

static void make_right(wrong_graph *g, test_random *random)
{
    *g = (wrong_graph){.nodes = 2 + (int)test_below(random, MOST - 2), .broken = MOST};
    for (int64_t e = test_below(random, 4 * g->nodes); e >= 0; e--) {
        const int i = (int)test_below(random, g->nodes), j = (int)test_below(random, g->nodes);
        if (i == j || naming(g, i, j) >= 0) continue;
        const int weight = 1 + (int)test_below(random, 3);
        name(g, i, j, weight);
        name(g, j, i, weight);
    }
}

static void make_wrong(wrong_graph *g, test_random *random)
{
    const int node = (int)test_below(random, g->nodes);
    const int which = g->count[node] ? (int)test_below(random, g->count[node]) : -1;
    const int64_t kind = test_below(random, 5);
    if (kind == 0) g->broken = node < g->broken ? node : g->broken;
    else if (kind == 1) name(g, node, node, 1);
    else if (which < 0) name(g, node, (node + 1) % g->nodes, 1);
    else if (kind == 2) forget(g, node, which);
    else if (kind == 3) name(g, node, g->names[node][which], g->weighs[node][which]);
    else g->weighs[node][which]++;
}

/* The first node with a wrong line; a line that comes after a broken one says nothing. */
static int first_wrong(const wrong_graph *g)
{
    for (int i = 0; i < g->broken && i < g->nodes; i++) {
        if (naming(g, i, i) >= 0) return i;
        for (int k = 0; k < g->count[i]; k++)
            if (naming(g, i, g->names[i][k]) < k) return i;
        for (int j = i + 1; j < g->nodes && j < g->broken; j++) {
            const int up = naming(g, i, j), down = naming(g, j, i);
            if ((up < 0) != (down < 0) || (up >= 0 && g->weighs[i][up] != g->weighs[j][down])) return i;
        }
    }
    return g->broken;
}

static size_t print_wrong(wrong_graph *g, test_random *random)
{
    int64_t arcs = 0;
    for (int i = 0; i < g->nodes; i++) arcs += g->count[i];
    size_t at = (size_t)sprintf(g->text, "%d %lld 001\n", g->nodes, (long long)(arcs + test_below(random, 2)) / 2);
    for (int i = 0, line = 1; i < g->nodes; i++) {
        for (; test_below(random, 4) == 0; line++) at += (size_t)sprintf(g->text + at, "%% 1 2\n");
        for (int k = 0; k < g->count[i]; k++)
            at += (size_t)sprintf(g->text + at, "%d %d ", g->names[i][k] + 1, g->weighs[i][k]);
        at += (size_t)sprintf(g->text + at, g->broken == i ? "x\n" : "\n");
        g->line[i] = ++line;
    }
    return at;
}

TEST(the_first_wrong_line_is_named)
{
    const int64_t cases = test_cases(150);
    sp_context *contexts[] = {test_context(0, 1), test_context(0, 2), test_context(0, 3)};
    wrong_graph *g = malloc(sizeof *g);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        test_random random = test_seed(seed);
        make_right(g, &random);
        for (int64_t faults = test_below(&random, 3); faults >= 0; faults--) make_wrong(g, &random);
        const int wrong = first_wrong(g);
        if (wrong == MOST) continue; /* one fault has mended another */
        const size_t count = print_wrong(g, &random), blocks[] = {0, 8 + (size_t)test_below(&random, 30), 300};
        char expected[32];
        snprintf(expected, sizeof expected, "in:%d: ", g->line[wrong]);
        for (int i = 0; i < 9; i++) {
            io_graph graph;
            const sp_status status = io_read_memory(contexts[i % 3], "in", g->text, count, &metis, blocks[i / 3],
                                                    &graph);
            const char *error = status == SP_OK ? "accepted" : sp_last_error(contexts[i % 3]);
            test_expect(strncmp(error, expected, strlen(expected)) == 0, "seed %llu, blocks of %zu: \"%s\" instead of "
                        "\"%s\" for\n%s", (unsigned long long)seed, blocks[i / 3], error, expected, g->text);
        }
    }
    for (int i = 0; i < 3; i++) sp_context_destroy(contexts[i]);
    free(g);
}

TEST(what_is_wrong_is_said_with_nodes_and_lines)
{
    expect_error("3 2\n2\n1 3\n% c\n\n", "in:3: node 2 names node 3, but that does not name it in line 5; write each");
    expect_error("3 2\n2\n% c\n1\n2\n", "in:4: node 2 does not name node 3, but that names it in line 5; write each");
    expect_error("2 1 001\n2 7\n1 8\n", "in:2: the edge of nodes 1 and 2 weighs 7 here and 8 in line 3; write");
    expect_error("2 1 001\n2 7\n1 0\n", "in:2: node 1 names node 2, but that does not name it in line 3 with a weight "
                                        "above 0");
    expect_error("% c\n3 2\n3 1\n1\n2\n", "in:3: node 1 is its own neighbour; METIS graphs have no loops");
    expect_error("2 2\n2 2\n1 1\n", "in:2: node 1 names node 2 twice; METIS graphs have no parallel edges");
    expect_error("3 3\n2\n3 1 3\n2 2\n", "in:3: node 2 names node 3 twice; METIS graphs have no parallel edges");
    expect_error("2 2 001\n2 1 2 1\n1 1 1 1\n", "in:2: node 1 names node 2 twice");
    expect_error("3 2\n2\n1 3\nx\n", "in:4: a neighbour that is not a node");
    expect_error("4 2\n2\n\n4\nx\n", "in:2: node 1 names node 2, but that does not name it in line 3");
    expect_error("4 2\n2 2\n1\n4\nx\n", "in:2: node 1 names node 2 twice");
    expect_error("2 1\n2 2\n1\n1\n", "in:2: node 1 names node 2 twice");
    /* Truncated: the lines that are there are not to blame. */
    expect_error("4 3\n2 3\n1\n", "in:3: 3 neighbours, but the header says 3 edges, which makes 6");
    expect_error("4 3\n2 3\n1 4\n1", "in:4: 5 neighbours, but the header says 3 edges");
}

/* Long lines, whose repetitions a table finds; all of them are repeated, and none. */
TEST(neighbours_named_twice_are_found_in_long_lines)
{
    enum { NODES = 5000 };
    char *text = malloc(NODES * 40);
    for (int twice = -1; twice < NODES; twice = twice < 0 ? 1 : 3 * twice) {
        size_t at = (size_t)sprintf(text, "%d %d\n", NODES, NODES - 1 + (twice >= 0));
        for (int i = NODES; i > 1; i--) at += (size_t)sprintf(text + at, "%d ", i);
        if (twice >= 0) at += (size_t)sprintf(text + at, "%d", twice + 1);
        for (int i = 1; i < NODES; i++) at += (size_t)sprintf(text + at, twice == i ? "\n1 1" : "\n1");
        for (size_t block = 0; block <= 3000; block += 3000) {
            sp_context *context = test_context(0, 3);
            io_graph graph;
            const sp_status status = io_read_memory(context, "in", text, at, &metis, block, &graph);
            char expected[60];
            snprintf(expected, sizeof expected, "in:2: node 1 names node %d twice", twice + 1);
            test_expect((status == SP_OK) == (twice < 0), "%d: %s", twice, sp_last_error(context));
            if (twice >= 0) ck_assert_ptr_nonnull(strstr(sp_last_error(context), expected));
            end_graph(context, &graph);
        }
    }
    free(text);
}

/* ---- recognition by content ----------------------------------------------------------------------------- */

static io_format format_of(const char *text, size_t count)
{
    sp_context *context = test_context(0, 1);
    io_source *source;
    io_format format;
    ck_ok(context, io_source_memory(context, "in", text, count, &source));
    ck_ok(context, io_detect_format(source, &format));
    io_source_close(source);
    sp_context_destroy(context);
    return format;
}

TEST(graphs_are_known_by_their_content)
{
    const int64_t cases = test_cases(300);
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        test_random random = test_seed(seed);
        const bool large = seed % 50 == 0;
        sample s = make_sample(&random, (sample_options){.nodes = large ? 2000 : 1 + (int)test_below(&random, 40),
                                                         .edges = large ? 20000 : (int)test_below(&random, 80),
                                                         .comments = test_below(&random, 2)});
        const bool bare = s.edges == 0 && !s.sized && !s.weighed; /* says no more than a pair of labels */
        /* A node with two or three numbers and nothing else may be a label pair. */
        const bool doubtful = s.edges == 0 && s.sized + s.constraints > 1 && s.sized + s.constraints < 4;
        const io_format format = format_of(s.text, s.count);
        test_expect(doubtful || format == (bare ? IO_ABC : IO_METIS), "seed %llu: %d in\n%.2000s",
                    (unsigned long long)seed, (int)format, s.text);
        free_sample(&s);
    }
}

/* Lists of edges in several manners: a header of counts, both directions, sorted, weights, comments. */
static size_t print_list(char *text, test_random *random)
{
    const int64_t kind = test_below(random, 64), nodes = 2 + test_below(random, kind & 32 ? 6 : 3000);
    const int64_t edges = 1 + test_below(random, kind & 32 ? 6 : 9000);
    size_t at = 0;
    if (kind & 16) at += (size_t)sprintf(text, "%% edges\n");
    if (kind & 1) at += (size_t)sprintf(text + at, "%lld %lld\n", (long long)nodes, (long long)edges);
    for (int64_t e = 0; e < edges; e++) {
        int64_t i = kind & 2 ? 1 + e * nodes / edges : 1 + test_below(random, nodes), j = 1 + test_below(random, nodes);
        if (i == j) j = j % nodes + 1;
        for (int way = 0; way < (kind & 4 ? 2 : 1); way++) {
            at += (size_t)sprintf(text + at, "%lld %lld", (long long)(way ? j : i), (long long)(way ? i : j));
            if (kind & 8) at += (size_t)sprintf(text + at, " %d", 1 + (int)test_below(random, 3));
            text[at++] = '\n';
        }
    }
    text[at] = '\0';
    return at;
}

/* The same question answered the long way, for lists of a few lines: whether the reader takes them as they stand. */
static bool is_graph(const char *text, size_t count)
{
    sp_context *context = test_context(0, 1);
    io_graph graph;
    const bool right = io_read_memory(context, "in", text, count, &metis, 0, &graph) == SP_OK;
    if (right) io_graph_free(context, &graph);
    sp_context_destroy(context);
    return right;
}

TEST(lists_of_edges_are_no_graphs)
{
    const int64_t cases = test_cases(600);
    char *text = malloc(1 << 20);
    int both = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        test_random random = test_seed(seed);
        const size_t count = print_list(text, &random);
        const io_format format = format_of(text, count);
        if (format != IO_METIS) continue;
        both++; /* fits both ways, counts and all */
        test_expect(count < 100 && is_graph(text, count), "seed %llu: a graph?\n%.2000s", (unsigned long long)seed,
                    text);
    }
    test_expect(both <= 2 + cases / 50, "%d lists of %lld are taken for graphs", both, (long long)cases);
    free(text);
}

TEST(what_fits_both_ways_is_a_graph_if_counts_fit)
{
    static const struct { const char *text; io_format format; } cases[] = {{"3 3\n2 3\n1 3\n1 2\n", IO_METIS},
                 {"3 3\n2 3\n1 3\n1 2", IO_METIS},
                 {"% c\n\n3 3\r\n2 3\r\n% c\n1 3\r\n1 2\r\n", IO_METIS},
                 {"3 3\n2 3\n1 3\n", IO_ABC},           /* a line too few */
                 {"3 3\n2 3\n1 3\n1 2\n1 2\n", IO_ABC}, /* one too many */
                 {"3 4\n2 3\n1 3\n1 2\n", IO_ABC},      /* another number of edges */
                 {"3 3\n2 3\n1 3\n2 1 1\n", IO_ABC},
                 {"2 1\n2\n1\n", IO_METIS},
                 {"2 1 001\n2 7\n1 7\n", IO_METIS},
                 {"2 1 001\n2 7\n1 8\n", IO_ABC},
                 {"2 0 010\n5\n6\n", IO_METIS},
                 {"1 0\n\n", IO_ABC},
                 {"1 2\n", IO_ABC},
                 {"# c\n2 1\n2\n1\n", IO_ABC},
                 {"2 1\n2\na\n", IO_ABC},
                 {"", IO_ABC}};
    for (size_t i = 0; i < COUNT(cases); i++)
        test_expect(format_of(cases[i].text, strlen(cases[i].text)) == cases[i].format, "%s", cases[i].text);
}

/* ---- writing -------------------------------------------------------------------------------------------- */

static char path[64];

static void write_sample(sp_context *context, const io_graph *graph, const sp_csr *matrix)
{
    const io_write_options options = {.format = IO_METIS,
                                      .constraints = graph->constraints,
                                      .node_weights = graph->node_weights,
                                      .node_sizes = graph->node_sizes};
    ck_ok(context, io_write_graph(context, path, matrix, &options));
}

TEST(what_is_written_is_read_again)
{
    const int64_t cases = test_cases(100);
    snprintf(path, sizeof path, "/tmp/test_metis.%ld", (long)getpid());
    for (uint64_t seed = 1; seed <= (uint64_t)cases; seed++) {
        test_random random = test_seed(seed);
        sample s = make_sample(&random, (sample_options){.nodes = 1 + (int)test_below(&random, 300),
                                                         .edges = (int)test_below(&random, 3) * 100});
        sp_context *context = test_context(0, 2);
        io_graph graph, again;
        sp_csr matrix;
        ck_ok(context, io_read_memory(context, "in", s.text, s.count, &metis, 0, &graph));
        ck_ok(context, io_graph_matrix(context, &graph, false, SP_COMBINE_FIRST, false, &matrix));
        write_sample(context, &graph, &matrix);
        ck_ok(context, io_read_graph(context, path, &metis, &again));
        ck_ok(context, io_graph_spread(context, &again));
        expect_sample(&s, &again, seed);
        io_graph_free(context, &again);
        io_graph_free(context, &graph);
        sp_csr_free(context, &matrix);
        sp_context_destroy(context);
        free_sample(&s);
    }
    unlink(path);
}

TEST(the_header_says_what_nodes_and_edges_have)
{
    const struct {
        io_write_options options;
        float value;
        const char *text;
    } cases[] = {{{.constraints = 1}, 1, "2 1\n2\n1\n"},
                 {{.constraints = 1}, 3, "2 1 001\n2 3\n1 3\n"},
                 {{.constraints = 1, .node_weights = (const int64_t[]){5, 0}}, 1, "2 1 010\n5 2\n0 1\n"},
                 {{.constraints = 2, .node_weights = (const int64_t[]){5, 6, 7, 8}}, 3,
                  "2 1 011 2\n5 6 2 3\n7 8 1 3\n"},
                 {{.node_sizes = (const int64_t[]){4, 9}}, 1, "2 1 100\n4 2\n9 1\n"},
                 {{.constraints = 1, .node_weights = (const int64_t[]){5, 0}, .node_sizes = (const int64_t[]){4, 9}}, 0,
                  "2 0 110\n4 5\n9 0\n"}};
    snprintf(path, sizeof path, "/tmp/test_metis.%ld", (long)getpid());
    for (size_t i = 0; i < COUNT(cases); i++) {
        sp_context *context = test_context(0, 1);
        float values[2] = {cases[i].value, cases[i].value};
        int32_t columns[2] = {1, 0};
        int64_t offsets[3] = {0, cases[i].value > 0, 2 * (cases[i].value > 0)};
        const sp_csr m = {.rows = 2, .cols = 2, .nnz = offsets[2], .row_offsets = offsets, .col_indices = columns,
                          .values = values};
        io_write_options options = cases[i].options;
        options.format = IO_METIS;
        ck_ok(context, io_write_graph(context, path, &m, &options));
        char text[100] = "";
        FILE *file = fopen(path, "r");
        ck_assert_uint_lt(fread(text, 1, sizeof text - 1, file), sizeof text);
        fclose(file);
        ck_assert_str_eq(text, cases[i].text);
        sp_context_destroy(context);
    }
    unlink(path);
}

CONTEXT_TEST(numbers_of_nodes_that_metis_has_not_are_not_written, 0, 1)
{
    const struct {
        io_write_options options;
        const char *error;
    } cases[] = {{{.constraints = 1, .node_weights = (const int64_t[]){5, -1}}, "METIS takes sizes and weights"},
                 {{.node_sizes = (const int64_t[]){(INT64_C(1) << 53) + 1, 1}}, "METIS takes sizes and weights"},
                 {{.node_weights = (const int64_t[]){5, 1}}, "0 weights a node; METIS graphs have 1 to 1024"}};
    int64_t offsets[3] = {0, 0, 0};
    const sp_csr m = {.rows = 2, .cols = 2, .row_offsets = offsets};
    for (size_t i = 0; i < COUNT(cases); i++) {
        io_write_options options = cases[i].options;
        options.format = IO_METIS;
        ck_assert_int_ne(io_write_graph(context, "/tmp/test_metis.none", &m, &options), SP_OK);
        ck_assert_ptr_nonnull(strstr(sp_last_error(context), cases[i].error));
        ck_assert_int_ne(access("/tmp/test_metis.none", F_OK), 0);
    }
}

static const test_entry tests[] = {
    CASE("metis", 300),
    ONCE(nodes_and_edges_are_read_with_all_that_they_have),
    ONCE(sizes_and_weights_of_nodes_are_kept),
    ONCE(wrong_sizes_and_weights_of_nodes_are_refused),
    ONCE(weights_of_nodes_take_no_more_memory_than_promised),
    ONCE(the_first_wrong_line_is_named),
    ONCE(what_is_wrong_is_said_with_nodes_and_lines),
    ONCE(neighbours_named_twice_are_found_in_long_lines),
    ONCE(graphs_are_known_by_their_content),
    ONCE(lists_of_edges_are_no_graphs),
    ONCE(what_fits_both_ways_is_a_graph_if_counts_fit),
    ONCE(what_is_written_is_read_again),
    ONCE(the_header_says_what_nodes_and_edges_have),
    ONCE(numbers_of_nodes_that_metis_has_not_are_not_written),
    {0},
};

int main(void) { return test_run("metis", tests); }
