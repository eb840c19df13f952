/* Input without an end: zeros, one word, one gap, plain and compressed. Every reader of text refuses it where that is
 * seen, and takes little memory until then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "graphs/formats.h"
#include "nodes/nodes.h"
#include "text/check.h"
#include "support.h"

enum { PIECE = 1 << 20, PIECES = 200, MOST_BYTES = 128 << 20 };

static char path[80];

typedef enum packing { PLAIN, GZIP, ZSTD, PACKINGS } packing;

static void write_zstd(const char *head, const char *piece)
{
    FILE *file = fopen(path, "wb");
    ZSTD_CStream *stream = ZSTD_createCStream();
    const size_t room = ZSTD_CStreamOutSize();
    char *out = malloc(room);
    ck_assert(!ZSTD_isError(ZSTD_initCStream(stream, 1)));
    for (int i = -1; i <= PIECES; i++) {
        ZSTD_inBuffer in = {i < 0 ? head : piece, i < 0 ? strlen(head) : i < PIECES ? PIECE : 0, 0};
        for (bool more = true; more;) {
            ZSTD_outBuffer to = {out, room, 0};
            const size_t left = ZSTD_compressStream2(stream, &to, &in, i < PIECES ? ZSTD_e_continue : ZSTD_e_end);
            ck_assert(!ZSTD_isError(left));
            ck_assert_uint_eq(fwrite(out, 1, to.pos, file), to.pos);
            more = i < PIECES ? in.pos < in.size : left > 0;
        }
    }
    fclose(file);
    ZSTD_freeCStream(stream);
    free(out);
}

/* `head`, then 200 MB of `filling` again and again. */
static void write_endless(const char *head, const char *filling, size_t length, packing how)
{
    char *piece = malloc(PIECE);
    for (size_t i = 0; i < PIECE; i++) piece[i] = filling[i % length];
    if (how == ZSTD) {
        write_zstd(head, piece);
    } else {
        gzFile file = gzopen(path, how == GZIP ? "wb1" : "wbT");
        if (*head) ck_assert_int_gt(gzwrite(file, head, (unsigned)strlen(head)), 0);
        for (int i = 0; i < PIECES; i++) ck_assert_int_eq(gzwrite(file, piece, PIECE), PIECE);
        ck_assert_int_eq(gzclose(file), Z_OK);
    }
    free(piece);
}

/* ---- readers -------------------------------------------------------------------------------------------- */

static sp_status read_graph(sp_context *context, io_read_options options)
{
    io_graph graph;
    const sp_status status = io_read_graph(context, path, &options, &graph);
    io_graph_free(context, &graph);
    return status;
}

static sp_status read_abc(sp_context *c) { return read_graph(c, (io_read_options){.format = IO_ABC}); }
static sp_status read_lenient(sp_context *c)
{
    return read_graph(c, (io_read_options){.format = IO_ABC, .lenient = true});
}
static sp_status read_sif(sp_context *c) { return read_graph(c, (io_read_options){.format = IO_SIF}); }
static sp_status read_etc(sp_context *c)
{
    return read_graph(c, (io_read_options){.format = IO_ETC, .lenient = true, .expect_values = true});
}
static sp_status read_auto(sp_context *c) { return read_graph(c, (io_read_options){.format = IO_AUTO}); }
static sp_status read_blast(sp_context *c) { return read_graph(c, (io_read_options){.format = IO_BLAST}); }
static sp_status read_metis(sp_context *c) { return read_graph(c, (io_read_options){.format = IO_METIS}); }

static sp_status read_labels(sp_context *context)
{
    const io_graph graph = {.format = IO_MTX, .nodes = 3};
    const io_label_options options = {.base = 1};
    io_labelling labelling;
    const sp_status status = io_read_labels(context, path, &graph, &options, &labelling);
    if (status == SP_OK) io_labelling_free(context, &labelling);
    return status;
}

static sp_status read_tab(sp_context *context)
{
    io_graph graph = {.format = IO_MTX, .nodes = 3};
    io_source *source;
    sp_status status = io_source_open(context, path, NULL, &source);
    if (status == SP_OK) status = io_read_tab(context, source, &graph);
    io_source_close(source);
    io_graph_free(context, &graph);
    return status;
}

static sp_status read_features(sp_context *context)
{
    sp_dense dense;
    sp_csr sparse;
    io_names names;
    return io_read_features(context, path, NULL, &dense, &sparse, &names, NULL);
}

static sp_status read_adjacency(sp_context *context)
{
    const io_adjacency_options options = {0};
    sp_csr matrix;
    return io_read_adjacency(context, path, &options, &matrix);
}

static sp_status read_classes(sp_context *context)
{
    io_classes classes;
    return io_read_classes(context, path, NULL, &classes);
}

static sp_status read_class_map(sp_context *context)
{
    io_classes classes;
    return io_read_class_map(context, path, NULL, 3, &classes);
}

static sp_status read_roles(sp_context *context)
{
    uint8_t *roles;
    return io_read_roles(context, path, NULL, 3, &roles);
}

static sp_status read_names(sp_context *context)
{
    io_names names;
    return io_read_names(context, path, NULL, 1 << 20, &names);
}

static sp_status read_numbers(sp_context *context)
{
    int32_t *numbers;
    int64_t count;
    return io_read_numbers(context, path, NULL, 0, 9, NULL, &numbers, &count);
}

static sp_status read_node_weights(sp_context *context)
{
    int64_t *weights;
    int each;
    return io_read_node_weights(context, path, NULL, 9, &weights, &each);
}

/* ---- tests ---------------------------------------------------------------------------------------------- */

static const struct { const char *name; sp_status (*read)(sp_context *context); const char *head; } readers[] = {
    {"abc", read_abc, "a b 1\n"},
    {"abc, leniently", read_lenient, "a b 1\n"},
    {"sif", read_sif, "a r b c d\n"},
    {"sif within a line", read_sif, "a r b c d e f "},
    {"etc", read_etc, "a b:1\n"},
    {"blast", read_blast, "q s 90 10 1 0 1 10 1 10 1e-5 50\n"},
    {"by content", read_auto, ""},
    {"metis", read_metis, "3 1\n2\n"},
    {"metis's header", read_metis, "% c\n"},
    {"metis within a line", read_metis, "9 9 011 2\n1 2 3 4 5 6 7 8 "},
    {"mtx", read_auto, "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 3\n"},
    {"mtx's header", read_auto, "%%MatrixMarket matrix coordinate real general\n%\n"},
    {"string", read_auto, "protein1 protein2 combined_score\na b 1\n"},
    {"native", read_auto, "(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mclmatrix\nbegin\n"},
    {"labels", read_labels, "1\n2\n"},
    {"tab", read_tab, "0\ta\n"},
    {"features", read_features, "1,2\n3,4\n"},
    {"a row of features", read_features, "1,2,"},
    {"edges", read_adjacency, "0,1\n"},
    {"the first edge", read_adjacency, ""},
    {"classes", read_classes, "1\n"},
    {"the class map", read_class_map, "{\"0\": 1,\n"},
    {"roles", read_roles, "{\"tr\": [1,"},
    {"names", read_names, "a\n"},
    {"numbers", read_numbers, "1\n"},
    {"weights of nodes", read_node_weights, "1 2\n"},
    {"weights of a node", read_node_weights, "1 "},
};

/* Reads what was written, with memory counted. */
static void expect_refusal(size_t reader, const char *what, bool names_line)
{
    test_heap heap = {.fail_at = -1};
    sp_context *context = test_heap_context(&heap, 0, 2);
    char place[120];
    const sp_status status = readers[reader].read(context);
    const char *error = sp_last_error(context);
    test_expect(status != SP_OK && status != SP_ERROR_HOST_MEMORY, "%s: %s: %s", readers[reader].name, what,
                sp_status_string(status));
    test_expect(heap.peak_bytes <= MOST_BYTES, "%s: %s: %lld MB", readers[reader].name, what,
                (long long)heap.peak_bytes >> 20);
    snprintf(place, sizeof place, "%s:", path);
    test_expect(!names_line || strncmp(error, place, strlen(place)) == 0, "%s: %s: %s", readers[reader].name, what,
                error);
    test_expect(!names_line || strtol(error + strlen(place), NULL, 10) > 0, "%s: %s: %s", readers[reader].name, what,
                error);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_bytes, 0);
}

TEST(what_has_no_end_is_refused_without_taking_memory)
{
    static const struct {
        const char *name, *text;
        size_t length;
    } fillings[] = {{"zeros", "", 1}, {"letters", "y", 1}, {"digits", "1", 1}, {"blanks", " ", 1}};
    const size_t reader = (size_t)_i;
    snprintf(path, sizeof path, "/tmp/test_endless.%ld", (long)getpid());
    for (size_t i = 0; i < COUNT(fillings); i++) {
        /* Blanks between words of mcl's matrices need no memory. */
        if (fillings[i].text[0] == ' ' && strcmp(readers[reader].name, "native") == 0) continue;
        write_endless(readers[reader].head, fillings[i].text, fillings[i].length, (packing)((reader + i) % PACKINGS));
        expect_refusal(reader, fillings[i].name, true);
    }
    unlink(path);
}

/* Words that end in colons, and fields in a line for a few of them. */
TEST(endless_lines_of_short_words_are_refused_or_read_in_parts)
{
    snprintf(path, sizeof path, "/tmp/test_endless.%ld", (long)getpid());
    for (size_t reader = 0; reader < 2; reader++) {
        write_endless("", "a b ", 4, ZSTD);
        expect_refusal(reader, "pairs", true);
    }
    write_endless("", "a: ", 3, ZSTD);
    expect_refusal(4, "colons", true);
    unlink(path);
}

static void expect_error(sp_context *context, const char *text, size_t count, io_read_options options, size_t block,
                         const char *beginning)
{
    io_graph graph;
    const sp_status status = io_read_memory(context, "in", text, count, &options, block, &graph);
    const char *error = status == SP_OK ? "accepted" : sp_last_error(context);
    test_expect(strncmp(error, beginning, strlen(beginning)) == 0, "\"%s\" instead of \"%s\", blocks of %zu", error,
                beginning, block);
}

/* The limit is the same wherever blocks end, and with a line feed in the end or not. */
TEST(limits_do_not_depend_on_blocks)
{
    enum { ROOM = 3 << 20 };
    static const size_t blocks[] = {0, 1 << 16, 1 << 20, (1 << 20) + 77, 3 << 20};
    char *text = malloc(ROOM);
    sp_context *context = test_context(0, 2);
    for (size_t i = 0; i < COUNT(blocks); i++)
        for (int ends = 0; ends < 2; ends++)
            for (int extra = -1; extra < 2; extra++) {
                io_graph graph;
                const size_t length = (size_t)(IO_LONGEST + extra);
                memcpy(text, "a b\nc ", 6);
                memset(text + 6, 'x', ROOM - 6);
                const io_read_options abc = {.format = IO_ABC}, etc = {.format = IO_ETC};
                text[4 + length] = '\n';
                const size_t count = ends ? 4 + length + 1 : 4 + length;
                if (extra > 0) expect_error(context, text, count, abc, blocks[i], "in:2: a line of more than 1 MB");
                else ck_ok(context, io_read_memory(context, "in", text, count, &abc, blocks[i], &graph));
                if (extra <= 0) io_graph_free(context, &graph);
                memset(text + 6, 'x', ROOM - 6);
                memcpy(text + 6 + length, " d\n", 3);
                if (extra > 0)
                    expect_error(context, text, 9 + length, etc, blocks[i], "in:2: a word, or a gap between words");
                else
                    ck_ok(context, io_read_memory(context, "in", text, 9 + length, &etc, blocks[i], &graph));
                if (extra <= 0) io_graph_free(context, &graph);
            }
    memset(text, 'x', ROOM);
    memcpy(text, "a b\nc \0", 7);
    for (size_t i = 0; i < COUNT(blocks); i++)
        expect_error(context, text, ROOM, (io_read_options){.format = IO_ABC}, blocks[i],
                     "in:2: the line holds a NUL byte");
    sp_context_destroy(context);
    free(text);
}

/* Rows of any number of features are read. */
TEST(long_rows_of_features_are_read)
{
    enum { COLUMNS = 1 << 20 };
    snprintf(path, sizeof path, "/tmp/test_endless.%ld", (long)getpid());
    FILE *file = fopen(path, "w");
    for (int row = 0; row < 2; row++)
        for (int i = 0; i < COLUMNS; i++) fprintf(file, "%d%c", i % 10, i + 1 < COLUMNS ? ',' : '\n');
    fclose(file);
    sp_context *context = test_context(0, 2);
    sp_dense dense;
    sp_csr sparse;
    io_names names;
    ck_ok(context, io_read_features(context, path, NULL, &dense, &sparse, &names, NULL));
    ck_assert(dense.rows == 2 && dense.cols == COLUMNS && ((const float *)dense.values)[COLUMNS + 7] == 7);
    sp_dense_free(context, &dense);
    sp_context_destroy(context);
    unlink(path);
}

static const test_entry tests[] = {
    CASE("endless", 300),
    TURNS(what_has_no_end_is_refused_without_taking_memory, COUNT(readers)),
    ONCE(endless_lines_of_short_words_are_refused_or_read_in_parts),
    ONCE(limits_do_not_depend_on_blocks),
    ONCE(long_rows_of_features_are_read),
    {0},
};

int main(void) { return test_run("endless", tests); }
