/* Shared inside io: byte sources, number parsing, label tables and the parallel line reader. */
#ifndef IO_INTERNAL_H
#define IO_INTERNAL_H

#include <float.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/try.h"
#include "base/value.h"
#include "io.h"

/* Allocation that may happen inside a parallel region: the context is used by one thread at a time. */
sp_status io_grow(sp_context *context, int64_t used, int64_t count, size_t size, void **pointer);
/* The capacity that an array grows to: twice what it is, by an eighth where it is large, which costs little as such
 * arrays are moved by remapping pages. */
int64_t io_capacity_for(int64_t capacity, int64_t needed);
/* Ensures room for `needed` elements; *capacity follows. */
sp_status io_reserve(sp_context *context, int64_t used, int64_t needed, size_t size, int64_t *capacity,
                     void **pointer);

/* ---- source: the uncompressed bytes of a file, of standard input or of memory ------------------------------ */

typedef struct io_source io_source;

sp_status io_source_open(sp_context *context, const char *path, const volatile int *interrupt, io_source **source);
sp_status io_source_memory(sp_context *context, const char *name, const void *bytes, size_t count,
                           io_source **source);
void io_source_close(io_source *source);
/* The bytes of a byte order mark of UTF-8 at the beginning: 0 or 3. */
static inline size_t io_mark_bytes(const char *bytes, size_t count)
{
    return count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
/* Before anything is read: a byte order mark at the beginning is not dropped. */
void io_source_keep_mark(io_source *source);
/* Fills `to`; *got is less than `count` only at the end of the data. */
sp_status io_source_read(io_source *source, void *to, size_t count, size_t *got);
/* The first bytes (up to `*count`) without taking them; valid until the next read. */
sp_status io_source_peek(io_source *source, const char **bytes, size_t *count);
/* Refuses a zip archive, .npz among them, where text or a matrix of our own kinds is read. */
sp_status io_source_refuse_zip(io_source *source);
/* Takes a line of at most 64 KB, for headers and small files; *line is NULL at the end of the data, **end is readable
 * unless it is. Valid until the next call; *bytes grows by what was taken. */
sp_status io_source_line(io_source *source, const char **line, const char **end, int64_t *bytes);
const char *io_source_name(const io_source *source);
/* Bytes that are certainly still to come (a plain file's size), 0 when unknown. */
int64_t io_source_size(const io_source *source);

/* ---- text that may be no text ------------------------------------------------------------------------------- */

/* Bytes of a word, of a gap between words, or of a line of few fields. */
enum { IO_LONGEST = 1 << 20 };
#define IO_LONG_RUN "a word, or a gap between words, of more than 1 MB"
#define IO_NO_TEXT "is this a text file?"

/* A word or a gap that is longer, NULL if there is none. */
const char *io_find_long_run(const char *bytes, int64_t count);
/* Refuses a NUL byte and such a word or gap; all but what follows `checked` has been checked. `lines` come before. */
sp_status io_check_text(sp_context *context, const char *name, const char *bytes, int64_t count, int64_t checked,
                        int64_t lines);
/* All that is left of a source, checked; a line feed follows. */
sp_status io_read_text(sp_context *context, io_source *source, char **bytes, int64_t *size);

/* ---- file: bytes at any place --------------------------------------------------------------------------------- */

typedef struct io_file {
    sp_context *context;
    const char *name;
    const volatile int *interrupt;
    int descriptor;             /* -1: in memory */
    const unsigned char *bytes; /* of memory */
    unsigned char *memory;      /* that is ours */
    int64_t size;
} io_file;

sp_status io_file_open(sp_context *context, const char *path, const volatile int *interrupt, io_file *file);
void io_file_memory(sp_context *context, const char *name, const void *bytes, size_t count, io_file *file);
void io_file_close(io_file *file);
/* Exactly `count` bytes; with `crc` it goes on with their CRC-32. By all threads, if they are many. */
sp_status io_file_read(const io_file *file, int64_t offset, void *to, int64_t count, uint32_t *crc);
/* CRC-32 of what lies in memory, by all threads, going on from `crc`. */
uint32_t io_crc(sp_context *context, uint32_t crc, const void *bytes, int64_t count);

/* ---- arrays --------------------------------------------------------------------------------------------------- */

/* What the header of a .npy says: the array without its values, and how they lie in the file. */
typedef struct io_npy_head {
    io_array array;
    int64_t begin;     /* of the values */
    size_t item_bytes; /* in the file */
    int64_t bytes;     /* of all values */
    bool fortran, swap, wide;
} io_npy_head;

enum { IO_NPY_HEADER = 1 << 16 }; /* longer headers are refused */

/* From the first bytes of a file that holds `size`: refuses what is no array of numbers, and sizes that the file does
 * not have. */
sp_status io_npy_parse(sp_context *context, const char *name, const unsigned char *bytes, int64_t count, int64_t size,
                       io_npy_head *head);
/* Takes values as they lie in the file over into head->array, which then holds them; frees them on failure. */
sp_status io_npy_finish(sp_context *context, const char *name, void *values, io_npy_head *head);
/* The header of a .npy in version 1, and its length. */
enum { IO_NPY_WRITTEN = 512 };
size_t io_npy_header(const io_array *array, char header[IO_NPY_WRITTEN]);
/* io_read_npy and io_npz_open on an open file (the archive closes it). */
sp_status io_read_npy_file(const io_file *file, io_array *array);
sp_status io_npz_open_file(io_file *file, io_npz **npz);
/* ---- numbers ------------------------------------------------------------------------------------------------ */

/* Those that are exact in f64. */
enum { IO_EXACT_POWER = 22 };
extern const double io_powers_of_ten[IO_EXACT_POWER + 1];

/* Reads the longest decimal number ([sign] digits [. digits] [e exponent]) that text..end begins with, correctly
 * rounded; returns its end, or `text` if there is none. The byte at `end` must be readable and not part of a
 * number. */
const char *io_parse_decimal(const char *text, const char *end, double *value);
/* The same with C's full syntax (hexadecimal, inf, nan), as scanf's %lf takes it. */
const char *io_parse_scanf(const char *text, const char *end, double *value);
/* Whether a number of f64 is 2^53 or more, and not that limit as it is usually written: rounding makes what is written
 * beyond a whole number. */
bool io_is_vast(sp_value_type type, double number, const char *text, const char *end);
/* Reads an integer of digits only, at most `limit`; false for anything else. */
bool io_parse_index(const char *text, const char *end, int64_t limit, int64_t *value);

/* Writes a number with as few digits as give it back, and no NUL; returns how many bytes, fewer than IO_NUMBER, all
 * of which may be written to. */
enum { IO_NUMBER = 48 };
size_t io_format_int(char *to, int64_t value);
size_t io_format_f32(char *to, float value);
size_t io_format_f64(char *to, double value);

/* ---- weights: f32 or f64, as the reader's options say ----------------------------------------------------------- */

static inline size_t io_value_size(sp_value_type type) { return type == SP_F32 ? sizeof(float) : sizeof(double); }

/* The value of the type that is nearest to `number`. */
static inline double io_round(sp_value_type type, double number)
{
    return type == SP_F32 ? (double)(float)number : number;
}

static inline void io_store_value(void *values, sp_value_type type, int64_t i, double value)
{
    if (type == SP_F32) ((float *)values)[i] = (float)value;
    else ((double *)values)[i] = value;
}

/* The largest weight that is read, and what is said of larger ones. */
static inline double io_most(sp_value_type type) { return type == SP_F32 ? (double)FLT_MAX : DBL_MAX; }
static inline const char *io_most_remedy(sp_value_type type)
{
    return type == SP_F32 ? "write a number below 3.4e38" : "write a number below 1.8e308";
}

/* 2^53: whole numbers are exact in f64 up to here. */
#define IO_MOST_WHOLE 9007199254740992.0

static inline uint64_t io_load(const char *at, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, at, bytes);
    return word;
}

/* Compares labels, most of which have 8 to 16 bytes, without a call. */
static inline bool io_same_bytes(const char *a, const char *b, size_t length)
{
    if (length < 8) return memcmp(a, b, length) == 0;
    if (io_load(a, 8) != io_load(b, 8)) return false;
    if (length > 16) return memcmp(a + 8, b + 8, length - 8) == 0;
    return io_load(a + length - 8, 8) == io_load(b + length - 8, 8);
}

/* ---- labels: names and a hash table over them --------------------------------------------------------------- */

/* A short label as a number of 12 bytes, zeros after its end: labels hold no NUL. */
typedef struct io_key {
    uint64_t low;
    uint32_t high;
} io_key;

enum { IO_SHORT_LABEL = 12 };

typedef struct io_wide_slot {
    uint64_t low;
    uint32_t high;
    int32_t id; /* -1: free */
} io_wide_slot;

/* A slot holds an id in its low `id_bits` and low bits of the label's hash above them; all ones: free. A wide slot
 * holds a short label itself, so that looking it up takes one cache miss instead of three; they are a power of two,
 * `wide_most` at most, and once they are full, labels go to the others. */
typedef struct io_labels {
    const char *file; /* that failures name */
    io_name_list list;
    uint32_t *slots;
    int64_t slot_count; /* 0: no table yet */
    int64_t slots_used;
    int id_bits;
    io_wide_slot *wide;
    int64_t wide_count, wide_most; /* 0: none yet; never any */
    int64_t wide_used;
    int64_t wide_ids; /* once they are full: ids of short labels below are in them. 0: they are not */
} io_labels;

io_key io_label_key(const char *label, size_t length);
uint32_t io_label_hash(const char *label, size_t length);
/* The same of a short label. */
static inline uint32_t io_key_hash(io_key key)
{
    uint64_t hash = (key.low ^ (uint64_t)key.high << 29) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ key.high) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(hash >> 32);
}
/* The id of a label, or -1. */
int32_t io_labels_find(const io_labels *labels, const char *label, size_t length, uint32_t hash);
/* The id of a label that may be new. SP_ERROR_OVERFLOW beyond 2^31 - 1 labels. */
sp_status io_labels_add(sp_context *context, io_labels *labels, const char *label, size_t length, uint32_t hash,
                        int32_t *id);
/* Where the search for a label begins in a table of so many slots. */
static inline uint64_t io_label_home(uint32_t hash, int64_t slots) { return (uint64_t)hash * (uint64_t)slots >> 32; }

/* A short label's id if it is in the wide slots, -1 otherwise. */
static inline int32_t io_labels_find_wide(const io_labels *labels, io_key key, uint32_t hash)
{
    if (labels->wide_count == 0) return -1;
    for (uint64_t at = io_label_home(hash, labels->wide_count);; at++) {
        const io_wide_slot *slot = &labels->wide[at & (uint64_t)(labels->wide_count - 1)];
        if ((slot->low == key.low && slot->high == key.high) || slot->id < 0) return slot->id;
    }
}
/* Whether a label that is not in the wide slots is new. */
static inline bool io_labels_all_wide(const io_labels *labels, size_t length)
{
    return length <= IO_SHORT_LABEL && labels->wide_most > 0 && !labels->wide_ids;
}
static inline void io_labels_prefetch_wide(const io_labels *labels, uint32_t hash)
{
    if (labels->wide_count) __builtin_prefetch(labels->wide + io_label_home(hash, labels->wide_count));
}
/* Three steps of fetching what io_labels_find will look at in narrow slots. Between them is time for other labels'
 * steps, so that their cache misses overlap. The second returns the id that the label most likely has, or -1. */
static inline void io_labels_prefetch_slot(const io_labels *labels, uint32_t hash)
{
    if (labels->slot_count) __builtin_prefetch(labels->slots + io_label_home(hash, labels->slot_count));
}
int32_t io_labels_prefetch_offset(const io_labels *labels, uint32_t hash);
static inline void io_labels_prefetch_name(const io_labels *labels, int32_t id)
{
    if (id >= 0) __builtin_prefetch(io_name(&labels->list.names, id));
}
/* A table over names that belong to somebody else: only `slots` is to be freed. */
sp_status io_labels_index(sp_context *context, const io_names *names, io_labels *labels);
/* Forgets all labels, keeps the memory. */
void io_labels_clear(io_labels *labels);
void io_labels_free(sp_context *context, io_labels *labels);

/* ---- lines: the parallel reader ----------------------------------------------------------------------------- */

enum { IO_TOKEN_SHOWN = 40, IO_MESSAGE = 320 };

/* So many arcs one after another that have the same tail. */
typedef struct io_run {
    int32_t tail;
    uint32_t count;
} io_run;

typedef struct io_arcs {
    int64_t count, capacity;
    int32_t *tails, *heads;
    void *weights; /* not there while `uniform` */
    sp_value_type values;
    bool uniform; /* all weights are `weight` */
    double weight;
} io_arcs;

/* The same in less memory: a tail for each run, and weights only of the arcs that have another than `weight`. */
struct io_packed {
    int64_t count, capacity;
    int32_t *heads; /* ~head: the next of `weights` is its own */
    io_run *runs;
    int64_t run_count, run_capacity;
    void *weights;
    sp_value_type values;
    int64_t weight_count, weight_capacity;
    double weight;
};

static inline int32_t io_packed_head(const io_packed *arcs, int64_t arc)
{
    return arcs->heads[arc] < 0 ? ~arcs->heads[arc] : arcs->heads[arc];
}

sp_status io_arcs_reserve(sp_context *context, io_arcs *arcs, int64_t needed);
/* Gives each arc a weight of its own. */
sp_status io_arcs_spread_weight(sp_context *context, io_arcs *arcs);
/* Gives the arcs to the graph; weights that are all 1 are left away. */
sp_status io_arcs_hand_over(sp_context *context, io_arcs *arcs, io_graph *graph);
void io_arcs_free(sp_context *context, io_arcs *arcs);
/* Room for so many arcs, runs and weights. */
sp_status io_packed_reserve(sp_context *context, io_packed *arcs, int64_t count, int64_t runs, int64_t weights);
sp_status io_packed_hand_over(sp_context *context, io_packed *arcs, io_graph *graph);
void io_packed_free(sp_context *context, io_packed *arcs);
/* Whether all weights are 1. */
bool io_packed_ones(const io_packed *arcs);
void io_graph_free_arcs(sp_context *context, io_graph *graph);
enum { IO_SCANNED = 64 }; /* bytes from a line's begin that can be read, whatever its length */

/* Lines that hold nothing, before those of things that are numbered in the order of the file (nodes, entries). */
typedef struct io_gap {
    uint16_t after; /* so many things after the gap before */
    uint16_t lines;
} io_gap;

typedef struct io_gaps {
    io_gap *all;
    int64_t count, capacity;
    int64_t last; /* the thing after the last gap */
} io_gaps;

sp_status io_gaps_add(sp_context *context, io_gaps *gaps, int64_t thing, int64_t lines); /* lines: below 2^16 */
/* Appends gaps in which things are numbered from `first` on. */
sp_status io_gaps_join(sp_context *context, io_gaps *all, const io_gaps *part, int64_t first);
/* How many such lines come before the thing's own. */
int64_t io_gaps_before(const io_gaps *gaps, int64_t thing);
void io_gaps_clear(io_gaps *gaps); /* keeps the memory */
void io_gaps_free(sp_context *context, io_gaps *gaps);

/* Symmetric Matrix Market files: entries beside the diagonal, and where they are. */
typedef struct io_triangles {
    int64_t above, below;
    int64_t header_lines;
    io_gaps gaps; /* before entries that make arcs */
    int first, step; /* arcs first, first + step, ... are entries, the others their mirror images */
} io_triangles;

/* Refuses a graph that holds both directions of a pair; see triangles.c. */
sp_status io_check_triangles(sp_context *context, const char *name, const io_triangles *triangles,
                             const io_graph *graph);

/* METIS: weights a node at most, and the largest of them; whole numbers up to it are exact in f64. */
enum { IO_MOST_CONSTRAINTS = 1 << 10 };
#define IO_MOST_NODE_WEIGHT (INT64_C(1) << 53)

/* METIS: what is read beside arcs. */
typedef struct io_metis {
    int64_t header_line;
    bool sized;
    int constraints;
    int64_t count; /* sizes and weights of nodes read */
    int64_t most;  /* those of all nodes */
    int64_t *weights, *sizes;
    int64_t weight_capacity, size_capacity;
    io_gaps comments; /* before lines of nodes */
} io_metis;

/* What a parser needs to know beside the line itself. */
typedef struct io_slice io_slice;
typedef struct io_format_state {
    const io_read_options *options;
    /* Takes lines from `line` on that are written as nearly all are, without further ado; returns the first one that
     * is not, or the slice's end. NULL on failure. The format may have none. */
    const char *(*scanner)(io_slice *slice, const char *line);
    bool many_arcs; /* a line has: they are packed, and long lines come in parts */
    bool long_lines; /* lines are of any length, and in one part */
    /* Takes what a slice has beside arcs; slices come in file order, a malformed one last. METIS: also checks which
     * nodes its lines are. `line`: lines before the slice. */
    sp_status (*join)(sp_context *context, const char *name, io_slice *slice, int64_t line);
    /* METIS: adds up a slice's arcs in slice->edges and stores its numbers, now that its nodes are known. */
    void (*add_up)(io_slice *slice);
    /* METIS: once a line is refused, or reading fails, looks for a line before that is wrong, among nodes whose lines
     * have all been read up to `complete`. The arcs are of no use afterwards. */
    sp_status (*recheck)(sp_context *context, const char *name, const struct io_format_state *state, io_packed *arcs,
                         int64_t complete, int64_t before);
    int64_t rows, cols;   /* Matrix Market: bounds of indices */
    int score_column;     /* STRING: 0-based */
    bool pattern, integer, skew; /* Matrix Market */
    bool weighted;        /* METIS: neighbours have weights */
    int node_numbers;     /* METIS: sizes and weights before the neighbours */
    io_metis *metis;      /* METIS: where they go */
    io_triangles *triangles; /* Matrix Market: symmetric in either way */
} io_format_state;

/* A label in a line. */
typedef struct io_label {
    const char *text;
    size_t length;
    io_key key; /* of a short one; all zero otherwise */
    uint32_t hash;
} io_label;

/* A pair of labels that waits for its ids. */
typedef struct io_pair {
    io_label tail, head;
    double weight;
    bool keep;
    bool same_tail; /* as the pair before */
} io_pair;

enum { IO_PAIRS = 64 }; /* looked up together, so that their cache misses overlap */

/* What the rest of a line that is read in parts needs to know. */
typedef struct io_open_line {
    int32_t tail;
    bool comment; /* nothing else is left of it */
    bool odd;
    bool node;      /* METIS: it has been counted as one */
    int skip;       /* METIS: numbers of the node still to come */
    int32_t weighs; /* METIS: the neighbour whose weight comes next, -1 if none does */
} io_open_line;

/* METIS: sums over arcs that stand in the lines of both their nodes. */
typedef struct io_edge_sums {
    uint64_t hash; /* of those that ascend, less those that descend: 0 in the end */
    int64_t ahead; /* the same in bits of the higher node: never below 0, as the lower node's line comes first */
    int64_t loops;
    int64_t disorder; /* neighbours not above the one before them */
} io_edge_sums;

/* What slices count, summed up. */
typedef struct io_line_counts {
    int64_t entries, node_lines, used_lines;
    io_edge_sums edges;
    int64_t complete; /* nodes whose lines have been read to the end */
    bool stopped; /* early, as edges.ahead is below 0 */
} io_line_counts;

/* A part of a block, parsed by one thread. Labels that earlier blocks brought have ids >= 0; those that are new
 * here get ~k, k being their number in `fresh`, until the slices are joined in file order. */
struct io_slice {
    sp_context *context;
    const io_format_state *state;
    const io_labels *known;
    sp_value_type values;
    double scan_most;    /* scanners leave larger weights to the parser */
    double plain_weight; /* of an arc without a weight */
    io_labels fresh;
    io_arcs arcs; /* weights are f64, rounded to `values` */
    char *begin, *end;
    bool continues, goes_on; /* its first line has begun before; it is one line, and that does not end */
    bool cut_short;          /* reading has ended within its last line, which is to be refused */
    io_open_line open;       /* that line; in the end this one */
    int again;               /* METIS: its first node has been counted before */
    io_pair pairs[IO_PAIRS];
    int pair_count;
    int32_t last_tail;
    int32_t *map; /* ids of the fresh labels */
    int64_t map_capacity;
    bool differ;   /* its arcs have more than one weight */
    int64_t place; /* of its first arc among all */
    int64_t runs, run_place; /* of arcs with the same tail; of the first of them */
    int64_t own_weights, weight_place; /* arcs with another weight than those without one have; of the first */
    io_edge_sums edges;
    int64_t lines, odd_lines, negative;
    int64_t vast_line; /* as in io_graph, counted within the slice */
    int64_t entries; /* Matrix Market and METIS: counted by their parsers */
    int64_t node_lines, used_lines; /* METIS: lines that are nodes, and those up to the last that is not empty */
    int64_t first_node; /* of its node lines: added to its tails */
    bool bare;          /* METIS: an empty line, where nodes have numbers */
    int64_t *numbers;   /* METIS: sizes and weights of its nodes */
    int64_t number_count, number_capacity, number_place;
    io_gaps gaps;       /* METIS: comments before its nodes; symmetric Matrix Market: lines without an arc */
    int64_t above, below; /* symmetric Matrix Market: entries on either side of the diagonal */
    bool odd; /* this line */
    sp_status status;
    char message[IO_MESSAGE]; /* of a malformed line; its number is `lines` */
    const char *refused_end;  /* where the text ends that is wrong */
};

/* Parses line..end (without its newline; *end is readable). Returns false after io_slice_fail or when memory ends
 * (slice->status says so). */
typedef bool (*io_line_parser)(io_slice *slice, char *line, char *end);

/* Whether the line has begun in the block before; parsers of lines with many arcs ask. */
static inline bool io_line_continues(const io_slice *slice, const char *line)
{
    return slice->continues && line == slice->begin;
}

/* Refuses the line: what is wrong, the text that is wrong, what would be right. Always false. */
bool io_slice_fail(io_slice *slice, const char *what, const char *token, const char *token_end, const char *remedy);
/* The remedy that names --lenient, where the tool has that. */
static inline const char *io_slice_remedy(const io_slice *slice, const char *strict, const char *lenient)
{
    return slice->state->options->offers_lenient ? lenient : strict;
}
/* What becomes of negative weights. */
static inline const char *io_sign_remedy(const io_read_options *options)
{
    return options->offers_lenient ? "weights are similarities, 0 or above; -tf 'gt(0)' drops such arcs"
                                   : "weights are similarities, 0 or above";
}
/* Adds both labels, in this order, and, with `keep`, the arc between them. The labels must stay where they are until
 * the slice ends. A parser uses either this or the two calls below. */
bool io_slice_pair(io_slice *slice, const char *tail, const char *tail_end, const char *head, const char *head_end,
                   double weight, bool keep);
bool io_slice_label(io_slice *slice, const char *label, const char *label_end, int32_t *id);
bool io_slice_arc(io_slice *slice, int32_t tail, int32_t head, double weight);
/* The same where there is room. */
static inline void io_slice_put(io_slice *slice, int32_t tail, int32_t head, double weight)
{
    io_arcs *arcs = &slice->arcs;
    double *weights = arcs->weights;
    arcs->tails[arcs->count] = tail;
    arcs->heads[arcs->count] = head;
    weights[arcs->count] = weight;
    slice->differ |= weight != weights[0];
    arcs->count++;
}
/* The number in a weight token, 1 if that is empty. Lenient reading follows mcl: what a number begins with counts,
 * anything else is 1. */
bool io_slice_number(io_slice *slice, const char *token, const char *token_end, double *number);
/* The weight that the token's number stands for: transformed, checked, rounded. *keep is false for a weight of 0, which
 * makes no arc. */
bool io_slice_settle(io_slice *slice, const char *token, const char *token_end, double number, double *weight,
                     bool *keep);
static inline bool io_slice_weight(io_slice *slice, const char *token, const char *token_end, double *weight, bool *keep)
{
    double number;
    return io_slice_number(slice, token, token_end, &number) &&
           io_slice_settle(slice, token, token_end, number, weight, keep);
}
/* Keeps the line of the first number that io_is_vast. */
void io_slice_note_vast(io_slice *slice, const char *token, const char *token_end, double number);

/* `reader_block`: bytes a block at most, 0 for the default; tests use small ones. `first_line` counts lines that
 * were taken before. Fills arcs, labels and counters of *graph, and *counts (may be NULL). */
sp_status io_read_lines(sp_context *context, io_source *source, const io_format_state *state, io_line_parser parser,
                        size_t reader_block, int64_t first_line, io_line_counts *counts, io_graph *graph);

/* Writes text..end into `shown` for a message: cut to IO_TOKEN_SHOWN bytes, what is not printable escaped. */
void io_show_token(const char *text, const char *end, char *shown, size_t size);
/* "what (got "token"); remedy". */
void io_write_message(char *message, size_t size, const char *what, const char *token, const char *token_end,
                      const char *remedy);
/* "NAME:LINE: what (got "token"); remedy" as the context's error. */
sp_status io_fail_line(sp_context *context, const char *name, int64_t line, const char *what, const char *token,
                       const char *token_end, const char *remedy);

/* ---- scanning the usual line: IO_SCANNED bytes from where it begins must be readable -------------------------- */

/* A bit for each of 64 bytes: blanks and control characters. */
static inline uint64_t io_find_blanks(const char *at)
{
    uint64_t found = 0;
#ifdef __SSE2__
    const __m128i largest = _mm_set1_epi8(' ');
    for (int i = 0; i < IO_SCANNED; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        const __m128i blank = _mm_cmpeq_epi8(_mm_max_epu8(bytes, largest), largest);
        found |= (uint64_t)(uint32_t)_mm_movemask_epi8(blank) << i;
    }
#else
    const uint64_t ones = UINT64_C(0x0101010101010101);
    for (int i = 0; i < IO_SCANNED; i += 8) {
        const uint64_t word = io_load(at + i, 8);
        const uint64_t blank = ~(((word & 127 * ones) + (127 - ' ') * ones) | word) >> 7 & ones;
        found |= (blank * UINT64_C(0x0102040810204080) >> 56) << i;
    }
#endif
    return found;
}

static inline uint64_t io_low_bytes(int count) { return (UINT64_C(1) << 8 * count) - 1; } /* fewer than 8 */

/* All but the hash. */
static inline void io_scan_label(const char *at, int length, io_label *label)
{
    label->text = at;
    label->length = (size_t)length;
    if (length <= IO_SHORT_LABEL) {
        label->key.low = io_load(at, 8) & (length < 8 ? io_low_bytes(length) : UINT64_MAX);
        label->key.high = length > 8 ? (uint32_t)(io_load(at + 8, 4) & io_low_bytes(length - 8)) : 0;
    } else {
        label->key = (io_key){0, 0};
    }
}

/* Eight digits, the first in the lowest byte. */
static inline bool io_eight_digits(uint64_t text, uint32_t *number)
{
    const uint64_t high = UINT64_C(0xf0f0f0f0f0f0f0f0);
    if (((text & high) | ((text + UINT64_C(0x0606060606060606)) & high) >> 4) != UINT64_C(0x3333333333333333))
        return false;
    text -= UINT64_C(0x3030303030303030);
    text = text * 10 + (text >> 8); /* of two digits each */
    *number = (uint32_t)(((text & UINT64_C(0x000000ff000000ff)) * (100 + (UINT64_C(1000000) << 32)) +
                          (text >> 16 & UINT64_C(0x000000ff000000ff)) * (1 + (UINT64_C(10000) << 32))) >>
                         32);
    return true;
}

/* A whole number of 1 to 8 digits; false for anything else. */
static inline bool io_scan_index(const char *at, int count, uint32_t *number)
{
    if (count < 1 || count > 8) return false;
    const int empty = 8 - count;
    const uint64_t zeros = UINT64_C(0x3030303030303030) & io_low_bytes(empty);
    return io_eight_digits(io_load(at, 8) << 8 * empty | zeros, number);
}

/* A number of 1 to 8 digits, one of which may be a point; false for anything else. */
static inline bool io_scan_decimal(const char *at, int count, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    const uint64_t ones = UINT64_C(0x0101010101010101);
    if (count < 1 || count > 8) return false;
    int empty = 8 - count, fraction = 0;
    uint64_t digits = io_load(at, 8) << 8 * empty;
    const uint64_t others = digits ^ ones * '.', point = (others - ones) & ~others & ones << 7;
    if (point) { /* what is before it moves up by a byte */
        const int place = __builtin_ctzll(point) / 8;
        const uint64_t before = digits & io_low_bytes(place);
        fraction = 7 - place;
        digits = (digits & ~(io_low_bytes(place) | UINT64_C(0xff) << 8 * place)) | before << 8;
        if (++empty == 8) return false;
    }
    uint32_t number;
    if (!io_eight_digits(digits | (ones * '0' & io_low_bytes(empty)), &number)) return false;
    *value = (double)number / powers[fraction];
    return true;
}

/* A number of any length from 0 to `most`. */
static inline bool io_scan_weight(const char *at, int count, double most, double *weight)
{
    double number;
    if (io_scan_decimal(at, count, weight)) return true;
    if (count < 1 || io_parse_decimal(at, at + count, &number) != at + count) return false;
    *weight = number;
    return number >= 0 && number <= most;
}

/* ---- pairs from scanners: labels go right to where they wait ------------------------------------------------ */

static inline bool io_same_label(const io_label *a, const io_label *b)
{
    return a->length == b->length && a->key.low == b->key.low && a->key.high == b->key.high &&
           (a->length <= IO_SHORT_LABEL || io_same_bytes(a->text, b->text, a->length));
}

static inline void io_hash_label(io_label *label)
{
    const bool is_short = label->length <= IO_SHORT_LABEL;
    label->hash = is_short ? io_key_hash(label->key) : io_label_hash(label->text, label->length);
}

/* Resolves the pairs that wait, labels in their order. */
bool io_slice_flush(io_slice *slice);

/* The next pair has both labels in slice->pairs[slice->pair_count], without their hashes. */
static inline bool io_slice_push(io_slice *slice, double weight, bool keep)
{
    io_pair *pair = &slice->pairs[slice->pair_count];
    pair->weight = weight;
    pair->keep = keep;
    /* As the pair before, while the batch lasts: files are often sorted by their first column. */
    pair->same_tail = slice->pair_count && io_same_label(&pair[-1].tail, &pair->tail);
    if (!pair->same_tail) {
        io_hash_label(&pair->tail);
        io_labels_prefetch_wide(slice->known, pair->tail.hash);
    }
    io_hash_label(&pair->head);
    io_labels_prefetch_wide(slice->known, pair->head.hash);
    return ++slice->pair_count < IO_PAIRS || io_slice_flush(slice);
}

/* Blank in C's sense, newline apart. */
static inline bool io_is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }

static inline bool io_is_digit(char c) { return c >= '0' && c <= '9'; }

static inline const char *io_skip_blanks(const char *at, const char *end)
{
    while (at < end && io_is_blank(*at)) at++;
    return at;
}

static inline const char *io_skip_word(const char *at, const char *end)
{
    while (at < end && !io_is_blank(*at)) at++;
    return at;
}

/* The next word of the line, up to *at; empty at its end. */
static inline const char *io_next_word(const char **at, const char *end)
{
    const char *word = io_skip_blanks(*at, end);
    *at = io_skip_word(word, end);
    return word;
}

/* ---- formats ------------------------------------------------------------------------------------------------ */

bool io_line_abc(io_slice *slice, char *line, char *end);
const char *io_scan_abc(io_slice *slice, const char *line);
bool io_line_sif(io_slice *slice, char *line, char *end);
bool io_line_etc(io_slice *slice, char *line, char *end);
/* Whether the first line of text..end that is no comment is a hit of a BLAST table. */
bool io_begins_with_hit(const char *text, const char *end);
bool io_line_blast(io_slice *slice, char *line, char *end);

/* What io_read_graph would take the source for: what the content begins with, else IO_METIS if its name ends as such
 * files do, or the content fits and the name does not end as lists do, else IO_ABC. */
sp_status io_detect_format(io_source *source, io_format *format);
typedef enum io_content { IO_CONTENT_TEXT, IO_CONTENT_MTX, IO_CONTENT_NPY, IO_CONTENT_NPZ } io_content;
sp_status io_detect_content(io_source *source, io_content *content);

/* Text of fields separated by commas, semicolons or blanks: a line of headings, in which no field is a number, with
 * everything up to it, and how many fields the first line of numbers has (0: there is none). */
typedef struct io_table {
    int64_t heading_bytes, heading_lines, fields;
} io_table;
sp_status io_scan_table(sp_context *context, const char *path, const volatile int *interrupt, io_table *table);
sp_status io_skip_heading(io_source *source, const io_table *table);
/* The field at *at, which moves on to where the next one begins; and where a field ends. */
const char *io_next_field(const char **at, const char *end);
const char *io_field_end(const char *field, const char *end);

/* The label that a number in a file stands for: a class, or -1 for -1 and NaN; false if neither. What to do then. */
bool io_class_of_number(double number, int32_t *label);
const char *io_class_remedy(double number);

/* Refuses a header that claims more nodes than a file of `bytes` can have business with: nodes need no line of their
 * own, so a million is free, and eight a byte. */
sp_status io_check_nodes(sp_context *context, const char *name, int64_t nodes, int64_t bytes);
extern const unsigned char io_binary_cookie[4]; /* what mcl's binary matrices begin with */
/* With `columns` the matrix is a clustering: its rows are the graph's nodes, and *columns gets the number of its
 * columns, which are the arcs' tails. */
sp_status io_read_native(sp_context *context, io_source *source, const io_read_options *options, int64_t *columns,
                         io_graph *graph);
sp_status io_read_mtx(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                      io_graph *graph);
/* A matrix of any shape and signs: entries (row: head, column: tail), or in the array form all numbers, column by
 * column (tail: which, counted through). */
typedef struct io_mtx_numbers {
    io_graph graph;
    int64_t rows, cols;
    bool array;
} io_mtx_numbers;
sp_status io_read_mtx_numbers(sp_context *context, io_source *source, const volatile int *interrupt,
                              io_mtx_numbers *numbers);
sp_status io_read_string(sp_context *context, io_source *source, const io_read_options *options,
                         size_t reader_block, io_graph *graph);
sp_status io_read_metis(sp_context *context, io_source *source, const io_read_options *options, size_t reader_block,
                        io_graph *graph);
/* The first line of a METIS graph; false if it is none. */
typedef struct io_metis_head {
    int64_t nodes, edges;
    bool sized, valued; /* nodes have sizes, edges have weights */
    int constraints;    /* weights a node */
    bool stray;         /* a number of constraints, but no weights of nodes */
} io_metis_head;
bool io_metis_parse_header(const char *line, const char *end, io_metis_head *head);
/* Whether the beginning of a file, or the whole of it, is that of a METIS graph; see metis_detect.c. */
bool io_looks_like_metis(const char *bytes, size_t count, bool whole);
/* Of an edge, low < high. */
uint64_t io_metis_hash(int32_t low, int32_t high, double weight);
/* metis_check.c, for io_format_state. */
void io_metis_add_up(io_slice *slice);
sp_status io_metis_recheck(sp_context *context, const char *name, const io_format_state *state, io_packed *arcs,
                           int64_t complete, int64_t before);
/* Whether both lines of each edge say the same, once. */
sp_status io_metis_check(sp_context *context, const char *name, const io_format_state *state,
                         const io_line_counts *counts, io_packed *arcs);
enum { IO_CSR_COOKIE = 8 };
extern const unsigned char io_csr_cookie[IO_CSR_COOKIE]; /* what our binary matrices begin with */
sp_status io_read_csr(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph);
/* Reads ID<TAB>LABEL lines as the names of graph's nodes. */
sp_status io_read_tab(sp_context *context, io_source *source, io_graph *graph);

/* ---- text in the making -------------------------------------------------------------------------------------- */

typedef struct io_text {
    sp_context *context;
    io_output *output; /* where the buffer goes when it is full; NULL: it grows */
    char *bytes;
    size_t used, capacity;
    sp_status status; /* the first failure; text after it is dropped */
} io_text;

/* Makes room for so many bytes; where they go, or NULL if there is none. */
char *io_text_make_room(io_text *text, size_t bytes);
/* Bytes that are longer than the buffer of an output. */
void io_text_long(io_text *text, const char *bytes, size_t count);

/* Room for so many bytes, after which `used` follows; NULL if there is none. */
static inline char *io_text_room(io_text *text, size_t bytes)
{
    return bytes <= text->capacity - text->used ? text->bytes + text->used : io_text_make_room(text, bytes);
}

static inline void io_text_bytes(io_text *text, const char *bytes, size_t count)
{
    char *to = io_text_room(text, count);
    if (to) memcpy(to, bytes, count);
    if (to) text->used += count;
    else io_text_long(text, bytes, count);
}

void io_text_int(io_text *text, int64_t value);
/* The value of a matrix's entry, 1 in a pattern. */
size_t io_format_value(char *to, const sp_csr *matrix, int64_t entry);

/* Writes entries begin..end of a row: the whole row from row_offsets[row] to row_offsets[row + 1], or a part. */
typedef void (*io_row_formatter)(const void *user, int64_t row, int64_t begin, int64_t end, io_text *text);

/* A host matrix as text: `formatter` is called by several threads for every row, also those without entries, or,
 * unless `whole_rows`, for the parts of a long one. */
sp_status io_put_rows(sp_context *context, io_output *output, const sp_csr *matrix, bool whole_rows,
                      io_row_formatter formatter, const void *user);

/* ---- mcl's native text, written column by column ------------------------------------------------------------ */

typedef struct io_native_writer {
    io_text *text;
    int64_t width;   /* of a column's id, padded: the digits of the largest node id plus one */
    int64_t length;  /* of the line so far */
    int64_t indent;  /* of a continued line */
} io_native_writer;

/* Writes everything above the first column. `rows` nodes have `ids` (ascending; NULL: 0..rows-1); with `graph` the
 * columns have the same. */
void io_native_begin(io_native_writer *writer, io_text *text, int64_t rows, int64_t cols, const int64_t *ids,
                     bool graph, const char *command_line);
/* `number` is written with it unless it is NULL. */
void io_native_column(io_native_writer *writer, int64_t id, const double *number, int digits);
void io_native_entry(io_native_writer *writer, int64_t id); /* without a value, as in clusterings */
void io_native_column_end(io_native_writer *writer);
void io_native_end(io_native_writer *writer);
/* A matrix in mcl's binary form, row by row its columns; ids as in io_graph. */
void io_put_native_binary(io_output *output, const sp_csr *columns, const int64_t *column_ids,
                          const int64_t *row_ids, const double *numbers);
/* A matrix in our binary form. */
void io_put_csr(io_output *output, const sp_csr *matrix, bool undirected, const io_names *names);
/* io_write_native_matrix in text, into an output that is open; digits 0: as many as give each value back. */
sp_status io_put_native_matrix(sp_context *context, io_output *output, const sp_csr *columns, const int64_t *ids,
                               const double *numbers, int digits, const char *command_line);

/* io_read_labels on an open source (not closed here). */
sp_status io_read_labels_source(sp_context *context, io_source *source, const io_graph *graph,
                                const io_label_options *options, io_labelling *labelling);
/* io_read_graph on an open source (not closed here). */
sp_status io_read_source(sp_context *context, io_source *source, const io_read_options *options,
                         size_t reader_block, io_graph *graph);
/* io_read_graph on bytes in memory, called NAME in messages. */
sp_status io_read_memory(sp_context *context, const char *name, const void *bytes, size_t count,
                         const io_read_options *options, size_t reader_block, io_graph *graph);

#endif
