/* Reading a graph: detects the format and calls its reader. */
#include <ctype.h>
#include <string.h>

#include "base/try.h"
#include "bytes/message.h"
#include "graphs/csv.h"
#include "graphs/formats.h"
#include "graphs/metis.h"
#include "text/words.h"
#include "xml/graphml.h"

const char *io_format_name(io_format format)
{
    static const char *const names[] = {[IO_AUTO] = "a graph",
                                        [IO_ABC] = "label pairs",
                                        [IO_SIF] = "SIF",
                                        [IO_ETC] = "lists of labels",
                                        [IO_NATIVE] = "an mcl matrix",
                                        [IO_MTX] = "Matrix Market",
                                        [IO_STRING] = "STRING links",
                                        [IO_BLAST] = "BLAST hits",
                                        [IO_METIS] = "METIS",
                                        [IO_CSR] = "a binary matrix",
                                        [IO_TSV] = "label pairs",
                                        [IO_CSV] = "a table of edges",
                                        [IO_NPZ] = "a scipy matrix",
                                        [IO_GRAPHML] = "GraphML",
                                        [IO_DIMACS] = "DIMACS"};
    return names[format];
}

bool io_numbers_from_one(io_format format)
{
    return format == IO_MTX || format == IO_METIS || format == IO_DIMACS;
}

/* What the nodes of a graph that was read are numbered from. */
static int first_of(const io_graph *graph)
{
    if (io_numbers_from_one(graph->format) || (graph->format == IO_CSR && graph->names.count == 0)) return 1;
    return graph->format == IO_NATIVE || graph->format == IO_NPZ ? 0 : -1;
}

enum { DETECT_BYTES = 1 << 16 };

/* Whether text..end begins with `word`, whatever the case. */
static bool begins(const char *text, const char *end, const char *word)
{
    for (; *word; word++, text++)
        if (text >= end || tolower((unsigned char)*text) != tolower((unsigned char)*word)) return false;
    return true;
}

/* The first byte that is neither blank nor within a line beginning with #. */
static const char *skip_comments(const char *text, const char *end)
{
    while (text < end) {
        if (*text == '#')
            while (text < end && *text != '\n') text++;
        else if (!isspace((unsigned char)*text))
            break;
        else
            text++;
    }
    return text;
}

sp_status io_check_nodes(sp_context *context, const char *name, int64_t nodes, int64_t bytes)
{
    enum { FREE_NODES = 1 << 20, NODES_PER_BYTE = 8 };
    if (nodes <= FREE_NODES || nodes / NODES_PER_BYTE <= bytes) return SP_OK;
    return sp_fail(context, SP_ERROR_MATRIX,
                   "%s: the header claims %lld nodes, too many for a file of %lld bytes; correct it", name,
                   (long long)nodes, (long long)bytes);
}

/* Whether the path ends with `ending`, or with that and the ending of a compressed file. */
static bool ends_with(const char *path, const char *ending)
{
    static const char *const packed[] = {"", ".gz", ".zst"};
    const size_t length = strlen(path), tail = strlen(ending);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        const size_t more = strlen(packed[i]);
        if (length > tail + more && strcmp(path + length - more, packed[i]) == 0 &&
            memcmp(path + length - more - tail, ending, tail) == 0)
            return true;
    }
    return false;
}

/* A METIS graph by the name of its file; or by its content, unless the name is that of a list. */
static bool is_metis(const char *path, const char *bytes, size_t count, bool whole)
{
    if (ends_with(path, ".metis") || ends_with(path, ".graph")) return true;
    if (ends_with(path, ".abc") || ends_with(path, ".tsv") || ends_with(path, ".csv")) return false;
    return io_looks_like_metis(bytes, count, whole);
}

/* BLAST hits, possibly below a heading, which then names the bit score. Their third column, the identity, is a weight
 * only if it is asked for. */
static bool is_hits(const char *bytes, size_t count, const io_csv *csv)
{
    const size_t heading = (size_t)csv->heading_bytes;
    return (heading == 0 || memmem(bytes, heading, "bit", 3) || memmem(bytes, heading, "Bit", 3)) &&
           io_begins_with_hit(bytes + heading, bytes + count);
}

/* A table of edges by its heading; or by the name of its file, if the first line has a separator. */
static bool is_table(const char *path, const char *bytes, size_t count)
{
    io_csv csv;
    io_csv_find(bytes, count, &csv);
    if (!csv.certain && is_hits(bytes, count, &csv)) return false;
    if (ends_with(path, ".csv")) return csv.heading_lines > 0 || csv.separator != ' ';
    return csv.certain || csv.named || (csv.heading_lines > 0 && ends_with(path, ".tsv"));
}

/* A zip archive whose first member is an array of numpy, by its local header. */
static bool is_npz(const char *bytes, size_t count)
{
    enum { LENGTH = 26, NAME = 30 };
    if (count < NAME || memcmp(bytes, "PK\3\4", 4) != 0) return false;
    const size_t end = NAME + (unsigned char)bytes[LENGTH] + 256u * (unsigned char)bytes[LENGTH + 1];
    return end >= NAME + 4 && end <= count && memcmp(bytes + end - 4, ".npy", 4) == 0;
}

sp_status io_detect_format(io_source *source, io_format *format)
{
    const char *bytes;
    size_t count = DETECT_BYTES;
    sp_status status = io_source_peek(source, &bytes, &count);
    if (status != SP_OK && count == 0) return status; /* otherwise the reader reports the error at its place */
    const char *end = bytes + count, *text = skip_comments(bytes, end);
    /* A byte order mark is not among the bytes. */
    const bool whole = status == SP_OK && count < DETECT_BYTES - 3;
    *format = is_metis(io_source_name(source), bytes, count, whole) ? IO_METIS : IO_ABC;
    if (count >= 4 && memcmp(bytes, io_binary_cookie, 4) == 0)
        *format = IO_NATIVE;
    else if (count >= IO_CSR_COOKIE && memcmp(bytes, io_csr_cookie, IO_CSR_COOKIE) == 0)
        *format = IO_CSR;
    else if (is_npz(bytes, count))
        *format = IO_NPZ;
    else if (io_looks_like_xml(bytes, count))
        *format = IO_GRAPHML;
    else if (io_looks_like_mtx(bytes, count))
        *format = IO_MTX;
    else if (begins(text, end, "(mcl"))
        *format = IO_NATIVE;
    else if (begins(bytes, end, "protein1 protein2 ") || begins(bytes, end, "protein1\tprotein2\t"))
        *format = IO_STRING;
    else if (io_looks_like_dimacs(bytes, count))
        *format = IO_DIMACS;
    else if (*format == IO_ABC && is_table(io_source_name(source), bytes, count))
        *format = IO_CSV;
    return SP_OK;
}

/* Whether a file may be taken for label pairs unasked: by its name, where the reader says what is wrong with a line,
 * or by a first line of two names, or of two labels and a number. Two numbers may be anything. */
static bool looks_like_pairs(const char *path, const char *bytes, const char *end)
{
    const char *word[4] = {NULL}, *word_end[4] = {NULL}, *at = skip_comments(bytes, end);
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    double number;
    int words = 0;
    if (!line_end) line_end = end;
    const bool tabs = memchr(at, '\t', (size_t)(line_end - at)); /* then blanks are in names */
    for (; words < 4; words++) {
        at = io_skip_blanks(at, line_end);
        if (at == line_end) break;
        const char *tab = tabs ? memchr(at, '\t', (size_t)(line_end - at)) : NULL;
        word[words] = at;
        at = word_end[words] = !tabs ? io_skip_word(at, line_end) : tab ? tab : line_end;
        while (io_is_blank(word_end[words][-1])) word_end[words]--; /* also the CR of CR LF */
    }
    if (ends_with(path, ".abc")) return !io_begins_with_hit(bytes, end);
    if (words < 2 || words > 3) return false;
    if (words == 3) return io_parse_decimal(word[2], word_end[2], &number) == word_end[2];
    return io_parse_decimal(word[0], word_end[0], &number) != word_end[0] &&
           io_parse_decimal(word[1], word_end[1], &number) != word_end[1];
}

/* Archives and arrays that hold no graph. */
static sp_status refuse_arrays(sp_context *context, io_source *source)
{
    const char *bytes;
    size_t count = 6;
    sp_status status = io_source_refuse_zip(source);
    if (status == SP_OK) status = io_source_peek(source, &bytes, &count);
    if (status != SP_OK || count < 6 || memcmp(bytes, "\x93NUMPY", 6) != 0) return status;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: an array of numpy, not a graph; save the adjacency matrix by "
                   "scipy.sparse.save_npz", io_source_name(source));
}

/* Says what a file of no known format seems to be. */
static sp_status refuse_unknown(sp_context *context, const char *name, const io_read_options *options,
                                const char *bytes, size_t count)
{
    const char *hits = io_advice(options, "give --blast bits, --blast evalue or --blast identity",
                                 "pass format=\"blast\" and, for other weights than bit scores, weight=\"evalue\" or "
                                 "weight=\"identity\"");
    io_csv csv;
    if (count >= DETECT_BYTES - 3 && !memchr(bytes, '\n', count))
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%s: the first line has more than 64 KB, as in a matrix with names of nodes above it; write a "
                       "line for each pair, NODE NODE WEIGHT", name);
    io_csv_find(bytes, count, &csv);
    if (csv.heading_lines > 0 && is_hits(bytes, count, &csv))
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%s:%lld: the heading of a BLAST table; remove it, as with tail -n +%lld, and %s", name,
                       (long long)csv.heading_lines, (long long)csv.heading_lines + 1, hits);
    if (csv.heading_lines > 0)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s:%lld: a heading; remove it, as with tail -n +%lld, and %s", name,
                       (long long)csv.heading_lines, (long long)csv.heading_lines + 1,
                       io_advice(options,
                                 "give --abc for label pairs, or call the file *.csv, and the heading may stay",
                                 "pass format=\"abc\" for label pairs; with format=\"csv\" it may stay"));
    if (io_begins_with_hit(bytes, bytes + count))
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: a BLAST table; %s", name, hits);
    if (csv.separator == ',' || csv.separator == ';')
        return sp_fail(context, SP_ERROR_ARGUMENT,
                       "%s: fields with %s between them; if it is a table of edges, %s", name,
                       csv.separator == ',' ? "commas" : "semicolons",
                       io_advice(options, "call the file *.csv", "pass format=\"csv\""));
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: not a matrix and not a STRING file; %s", name,
                   io_advice(options, "for label pairs give --abc, for SIF --sif, for BLAST tables --blast bits",
                             "for label pairs pass format=\"abc\", for SIF \"sif\", for BLAST tables \"blast\""));
}

/* The format that the options leave open. */
static sp_status find_format(sp_context *context, io_source *source, const io_read_options *options, io_format *format)
{
    const char *name = io_source_name(source), *bytes;
    size_t count = DETECT_BYTES;
    sp_status status = io_detect_format(source, format);
    if (status == SP_OK && *format != IO_NPZ) status = refuse_arrays(context, source);
    if (status != SP_OK || *format != IO_ABC || !options->refuse_others) return status;
    status = io_source_peek(source, &bytes, &count);
    if (count > 0 && looks_like_pairs(name, bytes, bytes + count)) return SP_OK;
    return status == SP_OK && count == 0
               ? sp_fail(context, SP_ERROR_ARGUMENT,
                         "%s: the file is empty; give a matrix, or label pairs and %s", name,
                         io_advice(options, "--abc", "format=\"abc\""))
               : refuse_unknown(context, name, options, bytes, count);
}

static sp_status read_format(sp_context *context, io_source *source, const io_read_options *options,
                             size_t reader_block, io_graph *graph)
{
    const io_format_state state = {.options = options}, triples = {.options = options, .scanner = io_scan_abc};
    const io_format_state lists = {.options = options, .many_arcs = true};
    graph->symmetric = true;
    switch (graph->format) {
    case IO_AUTO:
    case IO_TSV:
    case IO_ABC: return io_read_lines(context, source, &triples, io_line_abc, reader_block, 0, NULL, graph);
    case IO_SIF: return io_read_lines(context, source, &lists, io_line_sif, reader_block, 0, NULL, graph);
    case IO_ETC: return io_read_lines(context, source, &lists, io_line_etc, reader_block, 0, NULL, graph);
    case IO_BLAST: return io_read_lines(context, source, &state, io_line_blast, reader_block, 0, NULL, graph);
    case IO_DIMACS: return io_read_dimacs(context, source, options, reader_block, graph);
    case IO_CSV: return io_read_csv(context, source, options, reader_block, graph);
    case IO_STRING: return io_read_string(context, source, options, reader_block, graph);
    case IO_MTX: return io_read_mtx(context, source, options, reader_block, graph);
    case IO_NATIVE: return io_read_native(context, source, options, NULL, graph);
    case IO_METIS: return io_read_metis(context, source, options, reader_block, graph);
    case IO_CSR: return io_read_csr(context, source, options, graph);
    case IO_NPZ: return io_read_npz_graph(context, source, options, graph);
    case IO_GRAPHML: return io_read_graphml(context, source, options, graph);
    }
    return sp_fail(context, SP_ERROR_ARGUMENT, "there is no input format %d", (int)graph->format);
}

/* Weights of matrices are transformed together, after reading; mcl ignores transformations of labels for them. */
static sp_status refuse_transform(sp_context *context, const char *name, io_format format)
{
    if (!io_numbers_from_one(format) && format != IO_CSR && format != IO_NPZ) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT,
                   "%s: %s, and -abc-tf, --abc-neg-log and --abc-neg-log10 transform label weights; use -tf, such as "
                   "-tf 'neglog(10)'",
                   name, io_format_name(format));
}

/* Weights are chosen by name where they have names. */
static sp_status refuse_column(sp_context *context, const char *name, const io_read_options *options, io_format format)
{
    if (format == IO_CSV || format == IO_STRING || format == IO_GRAPHML) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s, and %s", name, io_format_name(format),
                   io_advice(options, "--edge-column is for tables, STRING and GraphML",
                             "only in tables, STRING files and GraphML weights have names; leave weight out"));
}

static sp_status look_for_hits(io_source *source, io_graph *graph)
{
    const char *bytes;
    size_t count = DETECT_BYTES;
    const sp_status status = io_source_peek(source, &bytes, &count);
    graph->blast_hits = io_begins_with_hit(bytes, bytes + count);
    return count == 0 ? status : SP_OK; /* otherwise the reader reports the error at its place */
}

static sp_status read_tab_file(sp_context *context, const io_read_options *options, io_graph *graph)
{
    io_source *source;
    sp_status status = io_source_open(context, options->tab, options->interrupt, &source);
    if (status != SP_OK) return status;
    status = io_read_tab(context, source, graph);
    io_source_close(source);
    return status;
}

/* Before anything is read: the format, and what does not go with it or with this program. */
static sp_status begin_graph(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph)
{
    memset(graph, 0, sizeof *graph);
    graph->format = options->format;
    if (options->lenient) io_source_keep_mark(source);
    sp_status status = SP_OK;
    if (graph->format == IO_AUTO) status = find_format(context, source, options, &graph->format);
    else if (graph->format != IO_NPZ) status = refuse_arrays(context, source);
    if (status == SP_OK && options->transform)
        status = refuse_transform(context, io_source_name(source), graph->format);
    if (status == SP_OK && options->score_column)
        status = refuse_column(context, io_source_name(source), options, graph->format);
    return status == SP_OK && graph->format == IO_ABC ? look_for_hits(source, graph) : status;
}

/* What follows from the format; a graph that could not be read is freed. */
static sp_status end_graph(sp_context *context, sp_status status, io_graph *graph)
{
    graph->undirected = graph->undirected || graph->symmetric;
    graph->first = first_of(graph);
    if (status != SP_OK) io_graph_free(context, graph);
    return status;
}

sp_status io_read_source(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                         io_graph *graph)
{
    sp_status status = begin_graph(context, source, options, graph);
    if (status == SP_OK) status = read_format(context, source, options, reader_block, graph);
    const bool numbered = graph->format == IO_NATIVE || graph->format == IO_NPZ || io_numbers_from_one(graph->format);
    if (status == SP_OK && options->tab && numbered) status = read_tab_file(context, options, graph);
    return end_graph(context, status, graph);
}

sp_status io_read_memory(sp_context *context, const char *name, const void *bytes, size_t count,
                         const io_read_options *options, size_t reader_block, io_graph *graph)
{
    io_source *source;
    memset(graph, 0, sizeof *graph);
    sp_status status = io_source_memory(context, name, bytes, count, &source);
    if (status != SP_OK) return status;
    status = io_read_source(context, source, options, reader_block, graph);
    io_source_close(source);
    return status;
}

/* ---- parts of a file ------------------------------------------------------------------------------------- */

/* Opens a file that has parts; *source is NULL for any other. */
static sp_status open_parts(sp_context *context, const char *path, const io_read_options *options, io_source **source,
                            io_graph *graph)
{
    sp_status status = io_source_open(context, path, options->interrupt, source);
    if (status != SP_OK) return status;
    status = begin_graph(context, *source, options, graph);
    const bool cut = graph->format == IO_ABC || graph->format == IO_MTX || graph->format == IO_CSR ||
                     graph->format == IO_NATIVE;
    if (status == SP_OK && cut && io_source_has_parts(*source)) return SP_OK;
    io_source_close(*source);
    *source = NULL;
    return status;
}

sp_status io_can_part(sp_context *context, const char *path, const io_read_options *options, bool *can)
{
    io_graph graph = {0};
    io_source *source = NULL;
    const sp_status status = open_parts(context, path, options, &source, &graph);
    *can = status == SP_OK && source;
    io_source_close(source);
    return status;
}

/* `number`: also counts the lines before the part, which takes as long as reading them. */
static sp_status read_abc_part(sp_context *context, io_source *source, const io_read_options *options, bool number,
                               io_graph *graph)
{
    const io_format_state triples = {.options = options, .scanner = io_scan_abc};
    int64_t begin = 0, before = 0;
    sp_status status = io_source_take_part(source, 0, options->part, options->parts, false, &begin);
    if (status == SP_OK && number) status = io_source_count_lines(source, begin, &before);
    graph->symmetric = true;
    return status == SP_OK ? io_read_lines(context, source, &triples, io_line_abc, 0, before, NULL, graph) : status;
}

static sp_status read_part(sp_context *context, const char *path, const io_read_options *options, bool number,
                           io_graph *graph)
{
    io_source *source = NULL;
    sp_status status = open_parts(context, path, options, &source, graph);
    if (status == SP_OK && !source)
        status = sp_fail(context, SP_ERROR_UNSUPPORTED, "%s: only uncompressed label pairs, Matrix Market files, mcl's "
                         "matrices and our binary ones are read in parts", path);
    if (status == SP_OK && graph->format == IO_CSR)
        status = io_read_csr_part(context, source, options, graph);
    else if (status == SP_OK && graph->format == IO_NATIVE)
        status = io_read_native_part(context, source, options, graph);
    else if (status == SP_OK)
        status = graph->format == IO_MTX ? io_read_mtx_part(context, source, options, number, graph)
                                         : read_abc_part(context, source, options, number, graph);
    io_source_close(source);
    return end_graph(context, status, graph);
}

sp_status io_read_graph(sp_context *context, const char *path, const io_read_options *options, io_graph *graph)
{
    io_source *source;
    memset(graph, 0, sizeof *graph);
    if (options->parts > 1) {
        sp_status part = read_part(context, path, options, false, graph);
        if ((part == SP_ERROR_ARGUMENT || part == SP_ERROR_MATRIX) && options->part > 0)
            part = read_part(context, path, options, true, graph);
        return part;
    }
    sp_status status = io_source_open(context, path, options->interrupt, &source);
    if (status != SP_OK) return status;
    status = io_read_source(context, source, options, 0, graph);
    io_source_close(source);
    return status;
}

void io_graph_free(sp_context *context, io_graph *graph)
{
    io_graph_free_arcs(context, graph);
    FREE_ALL(context, graph->node_weights, graph->node_sizes, graph->ids);
    sp_csr_free(context, &graph->matrix);
    io_names_free(context, &graph->names);
    io_names_free(context, &graph->unused);
    memset(graph, 0, sizeof *graph);
}
