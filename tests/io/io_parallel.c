/* test_io: the parallel reader, numbers, packed arcs. */
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

#include "io_shared.h"

/* Label number k of a family whose members share most of their bytes, of 1 to 40 of them. */
static void make_label(int64_t k, char label[64])
{
    int length = (int)(k % 40) + 1;
    memset(label, 'p', 64);
    for (int at = length - 1; at >= 0 && k > 0; at -= 3, k /= 36)
        label[at] = "0123456789abcdefghijklmnopqrstuvwxyz"[k % 36];
    label[length] = '\0';
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
        end_graph(alone, &expected);
        free(text);
    }
}

/* Whether arc k of a part is an arc of the whole, by the names of its ends. */
static void check_names(const io_graph *part, int64_t k, const io_graph *whole, int64_t arc)
{
    const int32_t ends[][2] = {{part->tails[k], whole->tails[arc]}, {part->heads[k], whole->heads[arc]}};
    for (int e = 0; e < 2; e++) {
        const size_t length = io_name_length(&part->names, ends[e][0]);
        ck_assert(length == io_name_length(&whole->names, ends[e][1]));
        ck_assert_mem_eq(io_name(&part->names, ends[e][0]), io_name(&whole->names, ends[e][1]), length);
    }
}

/* The same by their numbers, which a part shares with the whole. */
static void check_numbers(const io_graph *part, int64_t k, const io_graph *whole, int64_t arc)
{
    ck_assert(part->nodes == whole->nodes && part->symmetric == whole->symmetric && part->first == 1);
    ck_assert(part->tails[k] == whole->tails[arc] && part->heads[k] == whole->heads[arc]);
}

/* The parts of a file, one after another, are the whole. Returns what they announce, which is the same in all, and the
 * sums of their other figures. */
static io_part check_parts(sp_context *context, const char *path, int parts, const io_graph *whole,
                           void (*check)(const io_graph *, int64_t, const io_graph *, int64_t))
{
    int64_t lines = 0, bytes = 0, arcs = 0;
    io_part all = {0};
    bool can = false;
    ck_ok(context, io_can_part(context, path, &automatic, &can));
    ck_assert(can);
    for (int part = 0; part < parts; part++) {
        io_read_options options = automatic;
        io_graph graph;
        options.part = part;
        options.parts = parts;
        ck_ok(context, io_read_graph(context, path, &options, &graph));
        for (int64_t k = 0; k < graph.arcs; k++, arcs++) {
            ck_assert(io_arc_weight(&graph, k) == io_arc_weight(whole, arcs));
            check(&graph, k, whole, arcs);
        }
        ck_assert(part == 0 || graph.part.announced == all.announced);
        all.announced = graph.part.announced;
        all.entries += graph.part.entries;
        all.above += graph.part.above;
        lines += graph.lines;
        bytes += graph.bytes;
        io_graph_free(context, &graph);
    }
    ck_assert(lines == whole->lines && bytes == whole->bytes && arcs == whole->arcs);
    return all;
}

/* The parts of a file, one after another, are the file: lines, arcs by label, and what a mistake says. */
TEST(parts_of_a_file_are_the_file)
{
    const char *path = path_of("parts.abc");
    for (uint64_t seed = 1; seed <= 12; seed++) {
        test_random random = test_seed(seed);
        size_t count;
        char *text = random_triples(&random, 1 + test_below(&random, 300), 1 + test_below(&random, 100), &count);
        if (seed % 2) count--; /* no newline at the end */
        sp_context *context = test_context(0, 2);
        io_graph whole = read_bytes(context, text, count, automatic);
        write_file(path, text, count);
        for (int parts = 2; parts <= 64; parts *= 2) check_parts(context, path, parts, &whole, check_names);
        end_graph(context, &whole);
        free(text);
    }
}

/* A random Matrix Market file with comments and blank lines. kind: bit 0 symmetric, bit 1 pattern. */
static char *random_matrix(test_random *random, int kind, int64_t nodes, int64_t entries, size_t *count)
{
    char *text;
    FILE *file = open_memstream(&text, count);
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%%%%MatrixMarket matrix coordinate %s %s\n", kind & 2 ? "pattern" : "real",
            kind & 1 ? "symmetric" : "general");
    for (int64_t k = test_below(random, 5); k > 0; k--) fprintf(file, "%% a comment\n");
    fprintf(file, "%lld %lld %lld\n", (long long)nodes, (long long)nodes, (long long)entries);
    for (int64_t e = 0; e < entries; e++) {
        int64_t i = 1 + test_below(random, nodes), j = 1 + test_below(random, nodes);
        const int64_t low = i < j ? i : j, high = i < j ? j : i;
        fprintf(file, "%lld %lld", (long long)(kind & 1 ? high : i), (long long)(kind & 1 ? low : j));
        if (!(kind & 2)) fprintf(file, " %.3g", (double)test_below(random, 1000) / 8);
        fprintf(file, "\n");
        if (e % 13 == 0) fprintf(file, e % 2 ? "\n" : "%% more\n");
    }
    ck_assert_int_eq(fclose(file), 0);
    return text;
}

TEST(parts_of_a_matrix_are_the_matrix)
{
    const char *path = path_of("parts.mtx");
    for (uint64_t seed = 0; seed < 16; seed++) {
        test_random random = test_seed(seed + 1);
        size_t count;
        const int64_t entries = seed < 4 ? (int64_t)seed / 2 : 1 + test_below(&random, 300);
        char *text = random_matrix(&random, (int)seed % 4, 1 + test_below(&random, 60), entries, &count);
        if (seed % 3 == 1) count--; /* no newline at the end */
        sp_context *context = test_context(0, 2);
        io_graph whole = read_bytes(context, text, count, automatic);
        write_file(path, text, count);
        for (int parts = 2; parts <= 64; parts *= 2) {
            const io_part all = check_parts(context, path, parts, &whole, check_numbers);
            ck_assert(all.announced == entries && all.entries == entries && all.above == 0);
        }
        end_graph(context, &whole);
        free(text);
    }
}

/* Label pairs in a folder, some compressed, are those of one file. */
TEST(the_files_of_a_folder_are_one_file)
{
    char place[300], name[400], packed[1 << 16];
    snprintf(place, sizeof place, "%s", path_of("folder"));
    ck_assert_int_eq(mkdir(place, 0777), 0);
    test_random random = test_seed(3);
    size_t count;
    char *text = random_triples(&random, 900, 80, &count), *at = text;
    for (int i = 0; i < 4; i++) {
        char *end = i < 3 ? strchr(text + count / 4 * (size_t)(i + 1), '\n') + 1 : text + count;
        snprintf(name, sizeof name, "%s/part-%d", place, i);
        if (i % 2) write_file(name, packed, gzip(at, (size_t)(end - at), packed, sizeof packed));
        else write_file(name, at, (size_t)(end - at));
        at = end;
    }
    snprintf(name, sizeof name, "%s/_SUCCESS", place);
    write_file(name, "wrong", 5);
    snprintf(name, sizeof name, "%s/inner", place);
    ck_assert_int_eq(mkdir(name, 0777), 0);
    sp_context *context = test_context(0, 2);
    io_graph whole = read_bytes(context, text, count, as(IO_ABC));
    bool done = false;
    for (int64_t fail_at = 0; !done; fail_at++) {
        test_heap heap = {.fail_at = -1};
        sp_context *failing = test_heap_context(&heap, 0, 1);
        const io_read_options options = as(IO_ABC);
        io_files files;
        heap.fail_at = heap.allocations + fail_at;
        io_graph graph = {0};
        sp_status status = io_list_folder(failing, place, &files);
        if (status == SP_OK) {
            ck_assert_int_eq(files.count, 4);
            status = io_read_files(failing, files.list, files.count, &options, &graph);
        }
        done = status == SP_OK;
        if (done) same_graphs(&graph, &whole);
        else ck_assert_int_eq(status, SP_ERROR_HOST_MEMORY);
        io_graph_free(failing, &graph);
        io_files_free(failing, &files);
        test_end_heap(failing, &heap);
    }
    end_graph(context, &whole);
    free(text);
}

TEST(a_mistake_in_a_part_has_the_line_of_the_file)
{
    static const char text[] = "a b 1\nb c 2\n\nc d 3\nwrong\nd e 5\n";
    const char *path = path_of("wrong.abc");
    sp_context *context = test_context(0, 1);
    int failures = 0;
    write_file(path, text, sizeof text - 1);
    for (int part = 0; part < 7; part++) {
        io_read_options options = as(IO_ABC);
        io_graph graph;
        options.part = part;
        options.parts = 7;
        if (io_read_graph(context, path, &options, &graph) == SP_OK) io_graph_free(context, &graph);
        else {
            ck_assert_msg(strstr(sp_last_error(context), "wrong.abc:5: one field"), "%s", sp_last_error(context));
            ck_assert(graph.nodes == 0 && !graph.tails);
            failures++;
        }
    }
    ck_assert_int_eq(failures, 1);
    sp_context_destroy(context);
}

TEST(a_mistake_in_a_part_of_a_matrix_has_the_line_of_the_file)
{
    static const char text[] = "%%MatrixMarket matrix coordinate real general\n% one\n4 4 5\n1 2 1\n2 3 2\n\n3 4 1\n5 "
                               "1 1\n4 1 2\n";
    const char *path = path_of("wrong.mtx");
    sp_context *context = test_context(0, 1);
    int failures = 0;
    write_file(path, text, sizeof text - 1);
    for (int part = 0; part < 7; part++) {
        io_read_options options = automatic;
        io_graph graph;
        options.part = part;
        options.parts = 7;
        if (io_read_graph(context, path, &options, &graph) == SP_OK) io_graph_free(context, &graph);
        else {
            ck_assert_msg(strstr(sp_last_error(context), "wrong.mtx:8: an index"), "%s", sp_last_error(context));
            failures++;
        }
    }
    ck_assert_int_eq(failures, 1);
    sp_context_destroy(context);
}

TEST(other_files_have_no_parts)
{
    char packed[200];
    const struct { const char *name, *text; bool zipped; } cases[] = {
        {"g.graph", "2 1\n2\n1\n", false}, {"g.mtx.gz", four_numbers, true},
        {"g.abc.gz", four_names, true}, {"g.csv", "source,target\na,b\n", false}};
    sp_context *context = test_context(0, 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *path = path_of(cases[i].name);
        size_t count = strlen(cases[i].text);
        io_read_options options = automatic;
        io_graph graph;
        bool can = true;
        if (cases[i].zipped) count = gzip(cases[i].text, count, packed, sizeof packed);
        write_file(path, cases[i].zipped ? packed : cases[i].text, count);
        ck_ok(context, io_can_part(context, path, &automatic, &can));
        ck_assert(!can);
        options.parts = 2;
        ck_assert_int_eq(io_read_graph(context, path, &options, &graph), SP_ERROR_UNSUPPORTED);
    }
    sp_context_destroy(context);
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
        end_graph(context, &graph);
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
        end_graph(context, &graph);
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
            end_graph(context, &parts);
        }
        end_graph(alone, &whole);
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
        ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = spread.nodes, .cols = spread.nodes,
                                                          .count = spread.arcs,
                                                          .row_indices = by_heads ? spread.heads : spread.tails,
                                                          .col_indices = by_heads ? spread.tails : spread.heads,
                                                          .values = spread.weights}, rule, spread.symmetric,
                                       &expected));
        ck_ok(context, sp_csr_check(context, &made));
        test_same(&made, &expected, seed);
        ck_assert(!packed.packed && !packed.heads);
        test_free(context, &made, &expected);
        io_graph_free(context, &packed);
        end_graph(context, &spread);
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
        end_graph(context, &graph);
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
        end_graph(context, &graph);
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

const test_entry parallel_tests[] = {
    CASE_WITH("parts of files", 120, make_folder, remove_folder),
    ONCE(threads_and_block_sizes_change_nothing),
    ONCE(parts_of_a_file_are_the_file),
    ONCE(parts_of_a_matrix_are_the_matrix),
    ONCE(the_files_of_a_folder_are_one_file),
    ONCE(a_mistake_in_a_part_of_a_matrix_has_the_line_of_the_file),
    ONCE(a_mistake_in_a_part_has_the_line_of_the_file),
    ONCE(other_files_have_no_parts),
    ONCE(the_first_error_in_the_file_wins_whatever_the_threads),
    ONCE(labels_of_any_length_are_told_apart),
    ONCE(a_million_labels_are_numbered_by_their_first_appearance),
    ONCE(labels_beyond_two_to_the_31_are_refused),
    TURNS(long_lines_in_parts_are_the_same, 3),
    ONCE(a_line_longer_than_many_blocks_is_read),
    ONCE(decimals_are_read_exactly),
    ONCE(what_is_no_decimal_is_not_read),
    CASE("memory", 120),
    ONCE(the_matrix_of_packed_arcs_is_that_of_their_triples),
    ONCE(weights_that_are_zero_as_f32_make_no_arc),
    TURNS(weights_of_f64_are_those_of_the_text, 6),
    ONCE(the_first_line_beyond_2_to_the_53_is_known),
    {0},
};
