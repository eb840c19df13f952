/* test_npy: graphs of numbered nodes, JSON, failing allocations. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "npy_shared.h"

/* ---- graphs ------------------------------------------------------------------------------------------ */

/* Rows as "column:weight ...|". */
static const char *graph_text(const sp_csr *m)
{
    static char text[512];
    size_t at = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < m->rows; i++, at += (size_t)snprintf(text + at, sizeof text - at, "|"))
        for (int64_t e = m->row_offsets[i]; e < m->row_offsets[i + 1]; e++) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", e > m->row_offsets[i] ? " " : "",
                                   m->col_indices[e]);
            if (m->values) at += (size_t)snprintf(text + at, sizeof text - at, ":%g", test_value(m, e));
        }
    return text;
}

CONTEXT_TEST(graphs_are_read_from_every_format, 0, 2)
{
    static const struct { const char *name, *text, *expected, *undirected; } cases[] = {
        {"g.tsv", "0\t1\n2\t1\n", "|0 2||", "1|0 2|1|"},
        {"g.csv", "source,target,weight\n0,1,2\n0,1,3\n1,0,4\n", "1:4|0:5||", "1:4|0:4||"},
        {"g.txt", "# edges\n0 1\n1 0 1\n", "1|0||", "1|0||"},
        {"g.txt", "0 1 0\n2 2\n", "||2|", "||2|"},
        {"g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n", "1|0|2|", "1|0|2|"},
        {"g.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n2 3 1\n", "1|2||", "1|0 2|1|"},
        {"g.metis", "3 1\n2\n1\n\n", "1|0||", "1|0||"},
        {"g.mci", "(mclheader\nmcltype matrix\ndimensions 3x3\n)\n(mclmatrix\nbegin\n0 1:2 $\n)\n", "|0:2||",
         "1:2|0:2||"},
    };
    for (size_t c = 0; c < COUNT(cases); c++)
        for (int undirected = 0; undirected < 2; undirected++) {
            const io_adjacency_options options = {.nodes = 3, .undirected = undirected};
            sp_csr m;
            ck_ok(context, io_read_adjacency(context, text_of(cases[c].name, cases[c].text), &options, &m));
            ck_ok(context, sp_csr_check(context, &m));
            ck_assert_str_eq(graph_text(&m), undirected ? cases[c].undirected : cases[c].expected);
            sp_csr_free(context, &m);
        }
}

CONTEXT_TEST(graphs_are_read_from_binary_files, 0, 2)
{
    static const csr_members ones = {"\2\2", "\0\1\2", "\1\0", "\1\1", "csr", 3, 2, 2};
    static const csr_members zeros = {"\2\2", "\0\2\3", "\0\1\0", "\0\5\1", "csr", 3, 3, 3};
    const io_adjacency_options options = {.nodes = 0};
    sp_csr m;
    bytes file = csr_archive(&ones);
    ck_ok(context, io_read_adjacency(context, file_of("g.npz", file.at, file.count), &options, &m));
    ck_assert_str_eq(graph_text(&m), "1|0|");
    const char *path = path_of("g.bin");
    ck_ok(context, io_write_graph(context, path, &m, &(io_write_options){.format = IO_CSR}));
    sp_csr_free(context, &m);
    ck_ok(context, io_read_adjacency(context, path, &options, &m));
    ck_assert_str_eq(graph_text(&m), "1|0|");
    sp_csr_free(context, &m);
    file = csr_archive(&zeros);
    ck_ok(context, io_read_adjacency(context, file_of("g.npz", file.at, file.count), &options, &m));
    ck_assert_str_eq(graph_text(&m), "1:5|0:1|");
    sp_csr_free(context, &m);
}

CONTEXT_TEST(what_is_no_graph_of_numbered_nodes_is_refused, 0, 1)
{
    static const struct { const char *name, *text, *sentence; } cases[] = {
        {"g.tsv", "0 1\n1 3\n", ":2: an end of an edge that is not a node (got \"3\")"},
        {"g.tsv", "0 1\n1 -1\n", ":2: an end of an edge that is not a node (got \"-1\")"},
        {"g.tsv", "0 1\n1\n", ":2: an end of an edge that is not a node (got \"\")"},
        {"g.tsv", "a 1\n0 1\n", ":1: an end of an edge that is not a node (got \"a\")"},
        {"g.tsv", "0 1\na b\n", ":2: an end of an edge that is not a node (got \"a\")"},
        {"g.tsv", "0 1 2 3\n", ":1: too many fields (got \"3\")"},
        {"g.tsv", "0 1 -2\n", ":1: the weight is negative"},
        {"g.tsv", "0 1 nan\n", ":1: the weight is not a number"},
        {"g.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 2 0\n", ":2: rows and columns differ"},
        {"g.txt", "protein1 protein2 combined_score\na b 900\n", ": nodes with names"},
    };
    const io_adjacency_options options = {.nodes = 3};
    sp_csr m;
    for (size_t c = 0; c < COUNT(cases); c++) {
        const char *path = text_of(cases[c].name, cases[c].text);
        failed(context, io_read_adjacency(context, path, &options, &m), path, cases[c].sentence);
        ck_assert_ptr_null(m.row_offsets);
    }
    static const csr_members wide = {"\2\3", "\0\2\3", "\0\2\1", "\5\6\7", "csr", 3, 3, 3};
    const bytes file = csr_archive(&wide);
    const char *path = file_of("g.npz", file.at, file.count);
    failed(context, io_read_adjacency(context, path, &options, &m), path, ": 2 rows and 3 columns");
    path = text_of("far.tsv", "0 2147483000\n");
    failed(context, io_read_adjacency(context, path, &(io_adjacency_options){.nodes = 0}, &m), path, ": the header");
}

/* ---- graphs and labels of any program ----------------------------------------------------------------- */

/* A COO matrix of 3 rows and columns with 4 entries, of one byte each. */
static bytes coo_archive(const char *rows, const char *cols, const char *type, const void *values, size_t size)
{
    static archive made;
    memset(&made, 0, sizeof made);
    const bytes shape = array_of("<i8", "False", "(2,)", "\3\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16),
                row = array_of("|u1", "False", "(4,)", rows, 4), col = array_of("|i1", "False", "(4,)", cols, 4),
                data = array_of(type, "False", "(4,)", values, size),
                format = array_of("<U3", "False", "()", "c\0\0\0o\0\0\0o\0\0\0", 12);
    put_member(&made, "row.npy", &row, (member_options){.deflate = true});
    put_member(&made, "col.npy", &col, (member_options){0});
    put_member(&made, "format.npy", &format, (member_options){0});
    put_member(&made, "shape.npy", &shape, (member_options){0});
    put_member(&made, "data.npy", &data, (member_options){.deflate = true});
    return end_archive(&made);
}

/* "row>column:weight ..." of the arcs, in their order. */
static const char *entries_text(const io_graph *g)
{
    static char text[512];
    size_t at = 0;
    text[0] = '\0';
    for (int64_t e = 0; e < g->arcs; e++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d>%d:%.17g", e ? " " : "", g->heads[e], g->tails[e],
                               io_arc_weight(g, e));
    return text;
}

static void expect_entries(sp_context *context, const bytes *file, io_read_options options, const char *expected)
{
    const char *path = file_of("g.npz", file->at, file->count);
    io_graph graph;
    ck_ok(context, io_read_graph(context, path, &options, &graph));
    ck_assert_int_eq(graph.format, IO_NPZ);
    ck_assert_int_eq(graph.first, 0);
    ck_assert_str_eq(entries_text(&graph), expected);
    io_graph_free(context, &graph);
}

CONTEXT_TEST(scipys_matrices_are_graphs, 0, 2)
{
    static const csr_members unsorted = {"\3\3", "\0\2\3\4", "\2\0\1\1", "\1\5\0\2", "csr", 4, 4, 4};
    static const csr_members columns = {"\3\3", "\0\2\3\3", "\1\1\2", "\1\1\1", "csc", 4, 3, 3};
    static const csr_members none = {"\0\0", "\0", "", "", "csr", 1, 0, 0};
    const io_read_options f64 = {.values = SP_F64, .any_sign = true}, f32 = {.values = SP_F32, .any_sign = true};
    static const int64_t whole[] = {9007199254740992, -3, 16777217, 0};
    bytes file = csr_archive(&unsorted);
    expect_entries(context, &file, f64, "0>2:1 0>0:5 2>1:2");
    file = csr_archive(&columns);
    expect_entries(context, &file, f64, "1>0:1 1>0:1 2>1:1");
    file = csr_archive(&none);
    expect_entries(context, &file, f64, "");
    file = coo_archive("\0\1\2\0", "\1\1\0\0", "<i8", whole, sizeof whole);
    expect_entries(context, &file, f64, "0>1:9007199254740992 1>1:-3 2>0:16777217");
    expect_entries(context, &file, f32, "0>1:9007199254740992 1>1:-3 2>0:16777216");
}

CONTEXT_TEST(what_is_no_matrix_of_scipy_is_refused, 0, 1)
{
    static const struct { csr_members members; const char *sentence; } cases[] = {
        {{"\2\3", "\0\1\2", "\1\0", "\1\1", "csr", 3, 2, 2}, ": 2 rows and 3 columns; a graph needs a square matrix"},
        {{"\2\2", "\0\1\2", "\1\0", "\1\1", "bsr", 3, 2, 2}, ": a sparse matrix that is neither CSR, CSC nor COO"},
        {{"\2\2", "\0\1\2", "\1\0", "\1\1", NULL, 3, 2, 2}, ": a zip archive that is no sparse matrix of scipy"},
        {{"\2\2", "\0\1", "\1\0", "\1\1", "csr", 2, 2, 2}, ": no sparse matrix: indptr has not one number more"},
        {{"\2\2", "\0\2\1", "\1\0", "\1\1", "csc", 3, 2, 2}, ": no sparse matrix: indptr does not run from 0"},
        {{"\2\2", "\0\3\2", "\1\0", "\1\1", "csr", 3, 2, 2}, ": no sparse matrix: indptr does not ascend"},
        {{"\2\2", "\0\1\2", "\2\0", "\1\1", "csr", 3, 2, 2}, ": no sparse matrix: an index that is not within"},
        {{"\2\2", "\0\1\2", "\1\377", "\1\1", "csc", 3, 2, 2}, ": no sparse matrix: an index that is not within"},
        {{"\2\2", "\0\1\2", "\1\0", "\1", "csr", 3, 2, 1}, ": no sparse matrix: indices and data differ in length"}};
    static const double odd[] = {1, NAN, 2, 3}, below[] = {1, 1, -2.5, 3}, large[] = {1e39, 1, 1, 1};
    static const int64_t vast[] = {1, 1, -9007199254740993, 1};
    const io_read_options options = {.values = SP_F32};
    io_graph graph;
    for (size_t c = 0; c < COUNT(cases); c++) {
        const bytes file = csr_archive(&cases[c].members);
        const char *path = file_of("g.npz", file.at, file.count);
        failed(context, io_read_graph(context, path, &options, &graph), path, cases[c].sentence);
        ck_assert(!graph.tails && !graph.heads && graph.nodes == 0);
    }
    const struct { const char *type; const void *values; const char *sentence; } values[] = {
        {"<f8", odd, ": the entry (1, 1), counted from 0, is nan; weights are finite"},
        {"<f8", below, ": the entry (2, 0), counted from 0, is -2.5; weights are similarities, 0 or above"},
        {"<f8", large, ": the entry (0, 1), counted from 0, is 1e+39; write a number below 3.4e38"},
        {"<i8", vast, ": whole numbers beyond 2^53"}};
    for (size_t c = 0; c < COUNT(values); c++) {
        const bytes file = coo_archive("\0\1\2\0", "\1\1\0\0", values[c].type, values[c].values, 32);
        const char *path = file_of("g.npz", file.at, file.count);
        failed(context, io_read_graph(context, path, &options, &graph), path, values[c].sentence);
    }
    const bytes array = array_of("|u1", "False", "(2, 2)", "\0\1\1\0", 4);
    const char *path = file_of("g.npy", array.at, array.count);
    failed(context, io_read_graph(context, path, &options, &graph), path, ": an array of numpy, not a graph");
}

static sp_status label_array(sp_context *context, const char *path, io_labelling *labelling)
{
    const io_graph graph = {.format = IO_NPZ, .nodes = 3};
    return io_read_labels(context, path, &graph, &(io_label_options){.base = IO_BASE_AUTO}, labelling);
}

CONTEXT_TEST(arrays_are_labels, 0, 1)
{
    static const double missing[] = {NAN, 2, -1}, fraction[] = {1, 1.5, 1};
    const struct { bytes file; const char *sentence; int32_t labels[3]; int base; } cases[] = {
        {array_of("|i1", "False", "(3,)", "\2\377\2", 3), NULL, {1, -1, 1}, 1},
        {array_of("|u1", "False", "(3,)", "\2\0\1", 3), NULL, {2, 0, 1}, 0},
        {array_of("<f8", "False", "(3,)", missing, 24), NULL, {-1, 1, -1}, 1},
        {array_of("|S2", "False", "(3,)", "ab\0\0b\0", 6), ":2: an empty label", {0}, 0},
        {array_of("|S2", "False", "(3,)", "abb\0ab", 6), NULL, {0, 1, 0}, 1},
        {array_of("<f8", "False", "(3,)", fraction, 24), ":2: the label is not a whole number (got \"1.5\")", {0}, 0},
        {array_of("|i1", "False", "(3,)", "\2\376\2", 3), ":2: the label is negative (got \"-2\")", {0}, 0},
        {array_of("|i1", "False", "(2,)", "\2\1", 2), ": 2 labels, but the graph has 3 nodes", {0}, 0},
        {array_of("|i1", "False", "(3, 1)", "\2\1\1", 3), ": 2 dimensions; save one", {0}, 0},
        {array_of("|b1", "False", "(3,)", "\1\1\0", 3), ": bools, not labels", {0}, 0}};
    io_labelling l;
    for (size_t c = 0; c < COUNT(cases); c++) {
        const char *path = file_of("l.npy", cases[c].file.at, cases[c].file.count);
        const sp_status status = label_array(context, path, &l);
        if (cases[c].sentence) {
            failed(context, status, path, cases[c].sentence);
            continue;
        }
        ck_ok(context, status);
        ck_assert_int_eq(l.base, cases[c].base);
        ck_assert_int_eq(l.format, IO_LABELS_LIST);
        ck_assert(memcmp(l.labels, cases[c].labels, sizeof cases[c].labels) == 0);
        io_labelling_free(context, &l);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

CONTEXT_TEST(class_maps_give_every_node_its_classes, 0, 1)
{
    io_classes classes;
    const char *path = text_of("c.json", "{\"1\": 2,\n \"0\": 0, \"2\": -1}\n");
    ck_ok(context, io_read_class_map(context, path, NULL, 3, &classes));
    ck_assert_str_eq(classes_text(&classes), "3: 0 2 -1");
    io_classes_free(context, &classes);
    path = text_of("c.json", "{\"1\": 2.0, \"0\": NaN, \"2\":null, \"3\": -1.0}");
    ck_ok(context, io_read_class_map(context, path, NULL, 4, &classes));
    ck_assert_str_eq(classes_text(&classes), "3: -1 2 -1 -1");
    io_classes_free(context, &classes);
    path = text_of("c.json", "{\"1\":[1,0, 1],\"0\":[0,1.0,0.0]}");
    ck_ok(context, io_read_class_map(context, path, NULL, 2, &classes));
    ck_assert_str_eq(classes_text(&classes), "3: 010 101");
    io_classes_free(context, &classes);
}

CONTEXT_TEST(class_maps_that_are_none_are_refused, 0, 1)
{
    static const struct { const char *text, *sentence; } cases[] = {
        {"", ":1: no object"},
        {"{\"0\": 1", ":1: no comma and no end"},
        {"{\"0\": 1,\n\"2\": 1}", ":2: this is not a node of the graph"},
        {"{\"0\": 1, \"0\": 1}", ":1: a node that is there twice"},
        {"{\"0\": 1}", ": 1 nodes, but the graph has 2"},
        {"{\"0\": 1, \"1\": 1} x", ":1: something follows the object"},
        {"{\"0\": 1, \"1\": 70000}", ":1: a label that is not a class (got \"70000}\"); number the classes"},
        {"{\"0\": 1,\n\"1\": 0.37}", ":2: a label that is not a class (got \"0.37}\"); gnn learns classes"},
        {"{\"0\": 1, \"1\": -2}", ":1: a label that is not a class (got \"-2}\"); number the classes"},
        {"{\"0\": 1, \"1\": \"red\"}", ":1: a class that is not a number (got \"\"red\"}\")"},
        {"{\"0\": 1, \"1\": 7", ":1: no comma and no end"},
        {"{\"0\": [NaN], \"1\": [1]}", ":1: an element that is not 0 or 1"},
        {"{\"0\": 1, \"1\": [1]}", ":1: numbers and lists are mixed"},
        {"{\"0\": [1], \"1\": [1, 0]}", ":1: too many classes"},
        {"{\"0\": [1, 0], \"1\": [1]}", ":1: too few classes"},
        {"{\"0\": [1, 2], \"1\": [1]}", ":1: an element that is not 0 or 1"},
        {"{\"0\": [1, 0", ":1: a list that does not end"},
        {"{0: 1}", ":1: no node"},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        io_classes classes;
        const char *path = text_of("c.json", cases[c].text);
        failed(context, io_read_class_map(context, path, NULL, 2, &classes), path, cases[c].sentence);
        ck_assert(!classes.labels && !classes.targets);
    }
}

CONTEXT_TEST(roles_are_read_and_refused, 0, 1)
{
    static const struct { const char *text, *sentence; } cases[] = {
        {"{\"tr\": [0, 3]}", ":1: this is not a node of the graph (got \"3]}\")"},
        {"{\"tr\": [0],\n\"va\": [0]}", ": node 0 has two roles"},
        {"{\"train\": [0]}", ":1: no role"},
        {"{\"tr\": 0}", ":1: no list"},
        {"{\"tr\": [0]", ":1: no comma and no end"},
    };
    uint8_t *roles;
    const char *good = text_of("r.json", "{\"va\": [2], \"te\": [], \"tr\": [0]}");
    ck_ok(context, io_read_roles(context, good, NULL, 3, &roles));
    ck_assert(roles[0] == 1 && roles[1] == 0 && roles[2] == 2);
    sp_free(context, roles);
    for (size_t c = 0; c < COUNT(cases); c++) {
        const char *path = text_of("r.json", cases[c].text);
        failed(context, io_read_roles(context, path, NULL, 3, &roles), path, cases[c].sentence);
        ck_assert_ptr_null(roles);
    }
}

/* ---- failing allocations ----------------------------------------------------------------------------- */

/* A read that frees what it got. */
typedef sp_status (*reading)(sp_context *context, const char *path);

static sp_status take_features(sp_context *context, const char *path)
{
    sp_dense dense;
    sp_csr sparse;
    io_names names;
    sp_status status = io_read_features(context, path, NULL, &dense, &sparse, &names, NULL);
    sp_dense_free(context, &dense);
    sp_csr_free(context, &sparse);
    return status;
}

static sp_status take_graph(sp_context *context, const char *path)
{
    sp_csr m;
    sp_status status = io_read_adjacency(context, path, &(io_adjacency_options){.undirected = true}, &m);
    sp_csr_free(context, &m);
    return status;
}

static sp_status take_labels(sp_context *context, const char *path)
{
    io_classes classes;
    sp_status status = io_read_classes(context, path, NULL, &classes);
    io_classes_free(context, &classes);
    return status;
}

static sp_status take_map(sp_context *context, const char *path)
{
    io_classes classes;
    sp_status status = io_read_class_map(context, path, NULL, 2, &classes);
    io_classes_free(context, &classes);
    return status;
}

static sp_status take_any_graph(sp_context *context, const char *path)
{
    io_graph graph;
    sp_status status = io_read_graph(context, path, &(io_read_options){.values = SP_F64}, &graph);
    io_graph_free(context, &graph);
    return status;
}

static sp_status take_label_array(sp_context *context, const char *path)
{
    io_labelling labelling;
    sp_status status = label_array(context, path, &labelling);
    io_labelling_free(context, &labelling);
    return status;
}

/* Again and again, one allocation later failing each time, until all is well; nothing may stay behind. */
static void exhaust(reading read, const char *path)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 1);
    const int64_t blocks = heap.live_blocks;
    sp_status status = SP_ERROR_HOST_MEMORY;
    for (int64_t n = 0; status != SP_OK; n++) {
        heap.allocations = 0;
        heap.fail_at = n;
        status = read(context, path);
        ck_assert_msg(status == SP_OK || status == SP_ERROR_HOST_MEMORY, "%s, allocation %lld: %s", path,
                      (long long)n, sp_last_error(context));
        ck_assert_msg(heap.live_blocks == blocks, "%s, allocation %lld: blocks are left", path, (long long)n);
        ck_assert_int_lt(n, 500);
    }
    ck_assert_int_gt(heap.allocations, 2);
    sp_context_destroy(context);
}

TEST(readers_survive_every_failed_allocation)
{
    static const csr_members sorted = {"\2\2", "\0\1\2", "\1\0", "\5\6", "csr", 3, 2, 2};
    static const csr_members unsorted = {"\2\2", "\0\2\3", "\1\0\0", "\0\6\2", "csr", 3, 3, 3};
    bytes file = csr_archive(&sorted);
    exhaust(take_features, file_of("f.npz", file.at, file.count));
    exhaust(take_graph, file_of("g.npz", file.at, file.count));
    file = csr_archive(&unsorted);
    exhaust(take_graph, file_of("g.npz", file.at, file.count));
    exhaust(take_any_graph, file_of("g.npz", file.at, file.count));
    file = coo_archive("\0\1\2\0", "\1\1\0\0", "|u1", "\1\2\3\4", 4);
    exhaust(take_any_graph, file_of("g.npz", file.at, file.count));
    file = array_of("|i1", "False", "(3,)", "\1\2\1", 3);
    exhaust(take_label_array, file_of("l.npy", file.at, file.count));
    file = array_of("<f8", "True", "(1, 3)", doubles, 24);
    exhaust(take_features, file_of("f.npy", file.at, file.count));
    file = array_of("|i1", "False", "(3,)", "\1\2\0", 3);
    exhaust(take_labels, file_of("l.npy", file.at, file.count));
    exhaust(take_features, text_of("f.csv", "a,b\n1,2\n3,4\n"));
    exhaust(take_features, text_of("f.mtx", "%%MatrixMarket matrix array real general\n1 2\n1\n2\n"));
    exhaust(take_graph, text_of("g.tsv", "0 1 2\n1 2 3\n"));
    exhaust(take_labels, text_of("l.txt", "red\nblue\n"));
    exhaust(take_labels, text_of("l.mtx", "%%MatrixMarket matrix array integer general\n1 2\n1\n0\n"));
    exhaust(take_map, text_of("c.json", "{\"0\": [1, 0], \"1\": [0, 1]}"));
}

const test_entry graphs_tests[] = {
    CASE_WITH("nodes", 120, make_folder, remove_folder),
    ONCE(graphs_are_read_from_every_format),
    ONCE(graphs_are_read_from_binary_files),
    ONCE(what_is_no_graph_of_numbered_nodes_is_refused),
    ONCE(scipys_matrices_are_graphs),
    ONCE(what_is_no_matrix_of_scipy_is_refused),
    ONCE(arrays_are_labels),
    ONCE(class_maps_give_every_node_its_classes),
    ONCE(class_maps_that_are_none_are_refused),
    ONCE(roles_are_read_and_refused),
    ONCE(readers_survive_every_failed_allocation),
    {0},
};
