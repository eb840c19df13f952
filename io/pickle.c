/* Python's pickles (Lib/pickletools.py, protocols 2 to 5) of NumPy's arrays, scipy's CSR and dictionaries of lists.
 *
 * A pickle is a program for a stack machine that may call anything. Here it builds a tree of what it says: a call is
 * a node with the name of what would be called and its arguments, and nothing is ever called. Nodes that look like an
 * array, a matrix or a dictionary are then taken for such by those names; everything else is refused. Bytes and text
 * stay where they are in the file. Memory: at most 64 times the file, where that is lists of small numbers (a node, a
 * link and a place on the stack for two bytes); an array takes its own size once more.
 */
#include <stdio.h>

#include "internal.h"

typedef enum kind {
    NODE_NONE, NODE_NUMBER, NODE_TEXT, NODE_TUPLE, NODE_LIST, NODE_DICT, NODE_GLOBAL, NODE_OBJECT
} kind;

enum { MARK = -1, NOTHING = -1, HEADER = 512, FEW = 1000 };

/* Elements (of a dictionary keys and values in turn, of an object what was put into it) are a chain of links, as a
 * node can be in several containers. */
typedef struct node {
    kind kind;
    int32_t first, last;
    int32_t callable, arguments; /* object; global: the texts of its module and its name */
    int32_t state;               /* object: what it was built from */
    const char *text;            /* `number` bytes */
    int64_t number;              /* whole; what is no whole number reads as 0 */
} node;

typedef struct link {
    int32_t value, next;
} link;

struct io_pickle {
    sp_context *context;
    char *name;
    unsigned char *bytes;
    const unsigned char *at, *begin, *end;
    node *nodes;
    link *links;
    int32_t *stack, *memo;
    int64_t node_count, node_capacity, link_count, link_capacity, depth, stack_capacity, memo_count, memo_capacity;
    int32_t root;
};

static sp_status refuse(const io_pickle *p, const char *what)
{
    return sp_fail(p->context, SP_ERROR_MATRIX, "%s: byte %lld of the pickle: %s", p->name,
                   (long long)(p->at - p->begin), what);
}

/* ---- the machine ------------------------------------------------------------------------------------------ */

static sp_status push(io_pickle *p, int32_t value)
{
    sp_status status = io_reserve(p->context, p->depth, p->depth + 1, sizeof *p->stack, &p->stack_capacity,
                                  (void **)&p->stack);
    if (status == SP_OK) p->stack[p->depth++] = value;
    return status;
}

static sp_status add_node(io_pickle *p, node made, int32_t *id)
{
    /* Values take two bytes and more each, but for a few. */
    if (p->node_count == INT32_MAX || p->node_count > (p->end - p->begin) / 2 + FEW)
        return refuse(p, "more values than arrays need; pickle arrays, matrices and lists only");
    sp_status status = io_reserve(p->context, p->node_count, p->node_count + 1, sizeof *p->nodes, &p->node_capacity,
                                  (void **)&p->nodes);
    if (status != SP_OK) return status;
    *id = (int32_t)p->node_count;
    p->nodes[p->node_count++] = made;
    return SP_OK;
}

static sp_status push_node(io_pickle *p, node made)
{
    int32_t id = NOTHING;
    sp_status status = add_node(p, made, &id);
    return status == SP_OK ? push(p, id) : status;
}

static node empty(kind of)
{
    return (node){of, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NULL, 0};
}

static sp_status push_number(io_pickle *p, int64_t number)
{
    node made = empty(NODE_NUMBER);
    made.number = number;
    return push_node(p, made);
}

/* The topmost value, which is no mark. */
static sp_status pop(io_pickle *p, int32_t *value)
{
    if (p->depth == 0 || p->stack[p->depth - 1] == MARK) return refuse(p, "a value is missing; the file is damaged");
    *value = p->stack[--p->depth];
    return SP_OK;
}

/* The values above the topmost mark, which goes. */
static sp_status pop_to_mark(io_pickle *p, int64_t *first, int64_t *count)
{
    int64_t at = p->depth - 1;
    while (at >= 0 && p->stack[at] != MARK) at--;
    if (at < 0) return refuse(p, "a mark is missing; the file is damaged");
    *first = at + 1;
    *count = p->depth - 1 - at;
    p->depth = at;
    return SP_OK;
}

/* Appends values that lie on the stack, from `first` on, to a node. */
static sp_status append(io_pickle *p, int32_t to, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (p->link_count == INT32_MAX) return refuse(p, "2^31 elements; this is too large a pickle");
        sp_status status = io_reserve(p->context, p->link_count, p->link_count + 1, sizeof *p->links,
                                      &p->link_capacity, (void **)&p->links);
        if (status != SP_OK) return status;
        const int32_t id = (int32_t)p->link_count++;
        node *n = &p->nodes[to];
        p->links[id] = (link){p->stack[first + i], NOTHING};
        if (n->first == NOTHING) n->first = id;
        else p->links[n->last].next = id;
        n->last = id;
    }
    return SP_OK;
}

static sp_status push_tuple(io_pickle *p, int64_t count)
{
    int32_t id = NOTHING;
    for (int64_t i = 0; i < count; i++)
        if (p->depth < count || p->stack[p->depth - 1 - i] == MARK)
            return refuse(p, "a value is missing; the file is damaged");
    sp_status status = add_node(p, empty(NODE_TUPLE), &id);
    if (status == SP_OK) status = append(p, id, p->depth - count, count);
    if (status != SP_OK) return status;
    p->depth -= count;
    return push(p, id);
}

static sp_status take(io_pickle *p, int64_t count, const unsigned char **bytes)
{
    if (count > p->end - p->at) return refuse(p, "the pickle ends too soon; the file is truncated");
    *bytes = p->at;
    p->at += count;
    return SP_OK;
}

/* A little-endian number, with a sign if it has 4 bytes and `sign` says so. */
static sp_status take_number(io_pickle *p, int bytes, bool sign, int64_t *number)
{
    const unsigned char *at = p->at;
    uint64_t value = 0;
    sp_status status = take(p, bytes, &at);
    if (status != SP_OK) return status;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
    if (value > INT64_MAX) return refuse(p, "a size that cannot be; the file is damaged");
    *number = sign ? (int64_t)(int32_t)(uint32_t)value : (int64_t)value;
    return SP_OK;
}

static sp_status push_text(io_pickle *p, int size_bytes)
{
    const unsigned char *bytes = NULL;
    node made = empty(NODE_TEXT);
    sp_status status = take_number(p, size_bytes, false, &made.number);
    if (status == SP_OK) status = take(p, made.number, &bytes);
    made.text = (const char *)bytes;
    return status == SP_OK ? push_node(p, made) : status;
}

/* Two's complement of any length. */
static sp_status push_long(io_pickle *p)
{
    const unsigned char *bytes = NULL;
    int64_t count = 0;
    uint64_t value = 0;
    sp_status status = take_number(p, 1, false, &count);
    if (status == SP_OK) status = take(p, count, &bytes);
    if (status != SP_OK) return status;
    if (count > 8) return refuse(p, "a number of more than 64 bits; there is no such node or size");
    if (count > 0 && bytes[count - 1] & 0x80) value = UINT64_MAX;
    for (int64_t i = count - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return push_number(p, (int64_t)value);
}

/* A line, of what is in text within the pickle. */
static sp_status push_line(io_pickle *p)
{
    const unsigned char *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    if (!newline) return refuse(p, "the pickle ends too soon; the file is truncated");
    node made = empty(NODE_TEXT);
    made.text = (const char *)p->at;
    made.number = newline - p->at;
    p->at = newline + 1;
    return push_node(p, made);
}

/* The two topmost values become one. */
static sp_status push_pair(io_pickle *p, kind of)
{
    node made = empty(of);
    sp_status status = pop(p, &made.arguments);
    if (status == SP_OK) status = pop(p, &made.callable);
    return status == SP_OK ? push_node(p, made) : status;
}

static sp_status build(io_pickle *p)
{
    int32_t state = NOTHING, object = NOTHING;
    sp_status status = pop(p, &state);
    if (status == SP_OK) status = pop(p, &object);
    if (status != SP_OK) return status;
    if (p->nodes[object].kind != NODE_OBJECT) return refuse(p, "a state of what is no object; the file is damaged");
    p->nodes[object].state = state;
    return push(p, object);
}

/* Puts the `count` topmost values, or those above the mark, into the container below them. */
static sp_status put_into(io_pickle *p, int64_t count, bool pairs)
{
    int64_t first = p->depth - count;
    sp_status status = SP_OK;
    if (count == 0) status = pop_to_mark(p, &first, &count);
    else p->depth -= count;
    if (status != SP_OK) return status;
    if (first < 0 || p->depth <= 0 || p->stack[p->depth - 1] == MARK || (pairs && count % 2))
        return refuse(p, "elements without a container; the file is damaged");
    for (int64_t i = 0; i < count; i++)
        if (p->stack[first + i] == MARK) return refuse(p, "a value is missing; the file is damaged");
    const int32_t to = p->stack[p->depth - 1];
    const kind of = p->nodes[to].kind;
    if (of != NODE_OBJECT && of != (pairs ? NODE_DICT : NODE_LIST))
        return refuse(p, "elements without a container; the file is damaged");
    return append(p, to, first, count);
}

/* Keeps the topmost value as number `index`. */
static sp_status keep(io_pickle *p, int64_t index)
{
    if (p->depth == 0 || p->stack[p->depth - 1] == MARK || index > p->at - p->begin)
        return refuse(p, "a value is missing; the file is damaged");
    const int64_t count = index + 1 > p->memo_count ? index + 1 : p->memo_count;
    sp_status status = io_reserve(p->context, p->memo_count, count, sizeof *p->memo, &p->memo_capacity,
                                  (void **)&p->memo);
    if (status != SP_OK) return status;
    while (p->memo_count < count) p->memo[p->memo_count++] = NOTHING;
    p->memo[index] = p->stack[p->depth - 1];
    return SP_OK;
}

static sp_status recall(io_pickle *p, int64_t index)
{
    if (index >= p->memo_count || p->memo[index] == NOTHING)
        return refuse(p, "a value is missing; the file is damaged");
    return push(p, p->memo[index]);
}

static sp_status step_text(io_pickle *p, unsigned char operation, bool *known)
{
    *known = true;
    switch (operation) {
    case 'U': case 'C': case 0x8c: return push_text(p, 1); /* short strings, bytes, text */
    case 'T': case 'B': case 'X': return push_text(p, 4);
    case 0x8d: case 0x8e: case 0x96: return push_text(p, 8);
    default: *known = false; return SP_OK;
    }
}

static sp_status step_number(io_pickle *p, unsigned char operation, bool *known)
{
    const unsigned char *bytes;
    int64_t number = 0;
    sp_status status = SP_OK;
    *known = true;
    switch (operation) {
    case 'N': return push_node(p, empty(NODE_NONE));
    case 0x88: return push_number(p, 1); /* true */
    case 0x89: return push_number(p, 0);
    case 'K': status = take_number(p, 1, false, &number); break;
    case 'M': status = take_number(p, 2, false, &number); break;
    case 'J': status = take_number(p, 4, true, &number); break;
    case 'G': status = take(p, 8, &bytes); break;
    case 0x8a: return push_long(p);
    default: *known = false; return SP_OK;
    }
    return status == SP_OK ? push_number(p, number) : status;
}

static sp_status step_memo(io_pickle *p, unsigned char operation, bool *known)
{
    int64_t index = 0;
    sp_status status = SP_OK;
    *known = true;
    switch (operation) {
    case 0x94: return keep(p, p->memo_count);
    case 'q': case 'h': status = take_number(p, 1, false, &index); break;
    case 'r': case 'j': status = take_number(p, 4, false, &index); break;
    default: *known = false; return SP_OK;
    }
    if (status != SP_OK) return status;
    return operation == 'q' || operation == 'r' ? keep(p, index) : recall(p, index);
}

static sp_status step_container(io_pickle *p, unsigned char operation, bool *known)
{
    int64_t first = 0, count = 0;
    sp_status status;
    *known = true;
    switch (operation) {
    case '(': return push(p, MARK);
    case ')': return push_node(p, empty(NODE_TUPLE));
    case ']': return push_node(p, empty(NODE_LIST));
    case '}': return push_node(p, empty(NODE_DICT));
    case 0x85: return push_tuple(p, 1);
    case 0x86: return push_tuple(p, 2);
    case 0x87: return push_tuple(p, 3);
    case 'a': return put_into(p, 1, false);
    case 'e': return put_into(p, 0, false);
    case 's': return put_into(p, 2, true);
    case 'u': return put_into(p, 0, true);
    case 't':
        status = pop_to_mark(p, &first, &count);
        if (status != SP_OK) return status;
        /* The values move down by the mark's place. */
        p->depth = first - 1;
        memmove(p->stack + p->depth, p->stack + first, (size_t)count * sizeof *p->stack);
        p->depth += count;
        return push_tuple(p, count);
    default: *known = false; return SP_OK;
    }
}

static sp_status step_object(io_pickle *p, unsigned char operation)
{
    sp_status status;
    switch (operation) {
    case 'c':
        status = push_line(p);
        if (status == SP_OK) status = push_line(p);
        return status == SP_OK ? push_pair(p, NODE_GLOBAL) : status;
    case 0x93: return push_pair(p, NODE_GLOBAL);
    case 'R': case 0x81: return push_pair(p, NODE_OBJECT); /* a call, a new object of a class */
    case 'b': return build(p);
    default: return refuse(p, "an operation that arrays do not need; pickle arrays, matrices and lists only");
    }
}

static sp_status run(io_pickle *p)
{
    int64_t number;
    sp_status status = SP_OK;
    while (status == SP_OK) {
        const unsigned char *operation = p->at;
        bool known;
        status = take(p, 1, &operation);
        if (status != SP_OK) break;
        if (*operation == '.') return pop(p, &p->root);
        if (*operation == 0x80) status = take_number(p, 1, false, &number);      /* protocol */
        else if (*operation == 0x95) status = take_number(p, 8, false, &number); /* a frame begins */
        else {
            status = step_number(p, *operation, &known);
            if (!known) status = step_memo(p, *operation, &known);
            if (!known) status = step_text(p, *operation, &known);
            if (!known) status = step_container(p, *operation, &known);
            if (!known) status = step_object(p, *operation);
        }
    }
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

/* Runs what lies in `bytes` from `offset` on; the bytes are taken over, also on failure. */
static sp_status open_bytes(sp_context *context, const char *name, unsigned char *bytes, int64_t offset, int64_t size,
                            io_pickle **pickle)
{
    const size_t length = strlen(name) + 1;
    io_pickle *p;
    *pickle = NULL;
    sp_status status = sp_calloc(context, 1, sizeof *p, (void **)&p);
    if (status != SP_OK) {
        sp_free(context, bytes);
        return status;
    }
    p->context = context;
    p->bytes = bytes;
    p->begin = p->at = bytes + offset;
    p->end = bytes + size;
    status = sp_alloc(context, (int64_t)length, 1, (void **)&p->name);
    if (status == SP_OK) memcpy(p->name, name, length);
    if (status == SP_OK) status = run(p);
    if (status == SP_OK) *pickle = p;
    else io_pickle_close(p);
    return status;
}

sp_status io_pickle_open_file(const io_file *file, io_pickle **pickle)
{
    unsigned char *bytes;
    *pickle = NULL;
    sp_status status = sp_alloc(file->context, file->size, 1, (void **)&bytes);
    if (status != SP_OK) return status;
    status = io_file_read(file, 0, bytes, file->size, NULL);
    if (status == SP_OK) return open_bytes(file->context, file->name, bytes, 0, file->size, pickle);
    sp_free(file->context, bytes);
    return status;
}

sp_status io_pickle_open(sp_context *context, const char *path, const volatile int *interrupt, io_pickle **pickle)
{
    io_file file;
    *pickle = NULL;
    sp_status status = io_file_open(context, path, interrupt, &file);
    if (status != SP_OK) return status;
    status = io_pickle_open_file(&file, pickle);
    io_file_close(&file);
    return status;
}

sp_status io_npz_pickle(io_npz *npz, const char *name, io_pickle **pickle)
{
    unsigned char *bytes;
    int64_t size, begin;
    *pickle = NULL;
    sp_status status = io_npz_bytes(npz, name, &bytes, &size);
    if (status != SP_OK) return status;
    if (io_npy_objects(bytes, size, &begin))
        return open_bytes(io_npz_context(npz), io_npz_path(npz), bytes, begin, size, pickle);
    sp_free(io_npz_context(npz), bytes);
    return sp_fail(io_npz_context(npz), SP_ERROR_MATRIX, "%s: %s: this is no array of objects", io_npz_path(npz),
                   name);
}

void io_pickle_close(io_pickle *p)
{
    if (!p) return;
    sp_free(p->context, p->name);
    sp_free(p->context, p->bytes);
    sp_free(p->context, p->nodes);
    sp_free(p->context, p->links);
    sp_free(p->context, p->stack);
    sp_free(p->context, p->memo);
    sp_free(p->context, p);
}

/* ---- what nodes stand for ---------------------------------------------------------------------------------- */

static bool is_text(const io_pickle *p, int32_t id, const char *text)
{
    if (id == NOTHING || p->nodes[id].kind != NODE_TEXT) return false;
    const node *n = &p->nodes[id];
    return (size_t)n->number == strlen(text) && memcmp(n->text, text, strlen(text)) == 0;
}

/* Whether a node is a global of that name, whatever its module: NumPy and scipy have moved theirs about. */
static bool is_global(const io_pickle *p, int32_t id, const char *name)
{
    return id != NOTHING && p->nodes[id].kind == NODE_GLOBAL && is_text(p, p->nodes[id].arguments, name);
}

/* Element `index` of a container, NOTHING if there are not so many. */
static int32_t element(const io_pickle *p, int32_t id, int index)
{
    if (id == NOTHING) return NOTHING;
    int32_t at = p->nodes[id].first;
    while (at != NOTHING && index-- > 0) at = p->links[at].next;
    return at == NOTHING ? NOTHING : p->links[at].value;
}

/* What an object is of: the class that it was made with. */
static int32_t class_of(const io_pickle *p, int32_t id)
{
    if (id == NOTHING || p->nodes[id].kind != NODE_OBJECT) return NOTHING;
    const node *n = &p->nodes[id];
    return is_global(p, n->callable, "_reconstructor") ? element(p, n->arguments, 0) : n->callable;
}

/* The bytes of a node: text, or text in the hands of _codecs.encode (as Python 3 pickles bytes for Python 2), which
 * are then made in *made. */
static sp_status bytes_of(const io_pickle *p, int32_t id, const char **bytes, int64_t *count, char **made)
{
    *made = NULL;
    *count = 0;
    *bytes = "";
    if (id != NOTHING && p->nodes[id].kind == NODE_TEXT) {
        *bytes = p->nodes[id].text;
        *count = p->nodes[id].number;
        return SP_OK;
    }
    const int32_t callable = class_of(p, id);
    if (is_global(p, callable, "bytes") && element(p, p->nodes[id].arguments, 0) == NOTHING) return SP_OK;
    const int32_t text = is_global(p, callable, "encode") ? element(p, p->nodes[id].arguments, 0) : NOTHING;
    if (text == NOTHING || p->nodes[text].kind != NODE_TEXT ||
        !is_text(p, element(p, p->nodes[id].arguments, 1), "latin1"))
        return refuse(p, "no bytes where those of an array are wanted");
    const unsigned char *from = (const unsigned char *)p->nodes[text].text, *end = from + p->nodes[text].number;
    sp_status status = sp_alloc(p->context, p->nodes[text].number, 1, (void **)made);
    if (status != SP_OK) return status;
    for (; from < end; (*count)++) { /* UTF-8 of characters below 256 */
        const bool two = *from >= 0xc2 && *from <= 0xc3 && end - from >= 2 && (from[1] & 0xc0) == 0x80;
        if (!two && *from > 127) return refuse(p, "bytes that are not encoded as Latin-1");
        (*made)[*count] = (char)(two ? (from[0] & 3) << 6 | (from[1] & 0x3f) : *from);
        from += two ? 2 : 1;
    }
    *bytes = *made;
    return SP_OK;
}

/* An array's parts, wherever they stand in the ways that NumPy pickles one. */
typedef struct array_parts {
    int32_t shape, type, bytes;
    bool fortran;
} array_parts;

static bool find_array(const io_pickle *p, int32_t id, array_parts *parts)
{
    const int32_t callable = class_of(p, id);
    const node *n = id == NOTHING ? NULL : &p->nodes[id];
    if (is_global(p, callable, "_reconstruct")) {
        *parts = (array_parts){element(p, n->state, 1), element(p, n->state, 2), element(p, n->state, 4), false};
        const int32_t order = element(p, n->state, 3);
        parts->fortran = order != NOTHING && p->nodes[order].number != 0;
    } else if (is_global(p, callable, "_frombuffer")) {
        *parts = (array_parts){element(p, n->arguments, 2), element(p, n->arguments, 1), element(p, n->arguments, 0),
                               is_text(p, element(p, n->arguments, 3), "F")};
    } else {
        return false;
    }
    return parts->shape != NOTHING && p->nodes[parts->shape].kind == NODE_TUPLE &&
           is_global(p, class_of(p, parts->type), "dtype");
}

/* The header that the array would have in a .npy; false if it cannot be. */
static bool write_header(const io_pickle *p, const array_parts *parts, char header[HEADER])
{
    const int32_t type = element(p, p->nodes[parts->type].arguments, 0);
    const int32_t order = element(p, p->nodes[parts->type].state, 1);
    char shape[IO_DIMENSIONS * 24] = "";
    int dimensions = 0;
    if (type == NOTHING || p->nodes[type].kind != NODE_TEXT || p->nodes[type].number > 8) return false;
    for (int32_t at = p->nodes[parts->shape].first; at != NOTHING; at = p->links[at].next) {
        const node *size = &p->nodes[p->links[at].value];
        const size_t used = strlen(shape);
        if (size->kind != NODE_NUMBER || size->number < 0 || dimensions++ == IO_DIMENSIONS) return false;
        snprintf(shape + used, sizeof shape - used, "%lld, ", (long long)size->number);
    }
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    const int length = snprintf(header + 10, HEADER - 10, "{'descr': '%s%.*s', 'fortran_order': %s, 'shape': (%s)}",
                                is_text(p, order, ">") ? ">" : "<", (int)p->nodes[type].number, p->nodes[type].text,
                                parts->fortran ? "True" : "False", shape);
    header[8] = (char)(length & 255);
    header[9] = (char)(length >> 8);
    return true;
}

static sp_status take_array(const io_pickle *p, int32_t id, io_array *array)
{
    char header[HEADER] = "", *made = NULL;
    const char *bytes;
    int64_t count;
    array_parts parts;
    void *values = NULL;
    io_npy_head head;
    sp_status status;
    memset(array, 0, sizeof *array);
    if (!find_array(p, id, &parts) || !write_header(p, &parts, header))
        return sp_fail(p->context, SP_ERROR_MATRIX,
                       "%s: no array of NumPy where one is wanted; convert the file with Python", p->name);
    TRY(bytes_of(p, parts.bytes, &bytes, &count, &made));
    const int64_t begin = 10 + (unsigned char)header[8] + 256 * (unsigned char)header[9];
    TRY(io_npy_parse(p->context, p->name, (const unsigned char *)header, begin, begin + count, &head));
    TRY(sp_alloc(p->context, count, 1, &values));
    if (count > 0) memcpy(values, bytes, (size_t)count);
    status = io_npy_finish(p->context, p->name, values, &head);
    if (status == SP_OK) *array = head.array;
done:
    sp_free(p->context, made);
    return status;
}

/* The value of a key, or of two that it may be called. */
static int32_t look_up(const io_pickle *p, int32_t dictionary, const char *key, const char *other)
{
    if (dictionary == NOTHING || p->nodes[dictionary].kind != NODE_DICT) return NOTHING;
    for (int32_t at = p->nodes[dictionary].first; at != NOTHING;) {
        const int32_t name = p->links[at].value, value_at = p->links[at].next;
        if (value_at == NOTHING) break;
        if (is_text(p, name, key) || is_text(p, name, other)) return p->links[value_at].value;
        at = p->links[value_at].next;
    }
    return NOTHING;
}

/* The object itself, or the one in an array of a single object. */
static int32_t root_object(const io_pickle *p)
{
    const node *n = &p->nodes[p->root];
    if (!is_global(p, class_of(p, p->root), "_reconstruct")) return p->root;
    const int32_t list = element(p, n->state, 4);
    return list != NOTHING && p->nodes[list].kind == NODE_LIST ? element(p, list, 0) : p->root;
}

sp_status io_pickle_array(const io_pickle *p, io_array *array) { return take_array(p, root_object(p), array); }

/* Two numbers. */
static sp_status take_shape(const io_pickle *p, int32_t id, io_array *shape)
{
    int64_t *sizes;
    const int32_t rows = element(p, id, 0), cols = element(p, id, 1);
    if (rows == NOTHING || cols == NOTHING || element(p, id, 2) != NOTHING)
        return sp_fail(p->context, SP_ERROR_MATRIX, "%s: a matrix without a shape; convert the file with Python",
                       p->name);
    sp_status status = sp_alloc(p->context, 2, sizeof *sizes, (void **)&sizes);
    if (status != SP_OK) return status;
    sizes[0] = p->nodes[rows].number;
    sizes[1] = p->nodes[cols].number;
    *shape = (io_array){.type = IO_I64, .dimensions = 1, .shape = {2}, .count = 2, .item_size = 8, .values = sizes};
    return SP_OK;
}

sp_status io_pickle_matrix(const io_pickle *p, sp_csr *matrix)
{
    const int32_t object = root_object(p), class = class_of(p, object);
    const int32_t state = object == NOTHING ? NOTHING : p->nodes[object].state;
    io_csr_parts parts = {0};
    sp_status status;
    memset(matrix, 0, sizeof *matrix);
    if (!is_global(p, class, "csr_matrix") && !is_global(p, class, "csr_array"))
        return sp_fail(p->context, SP_ERROR_MATRIX, "%s: no CSR matrix of scipy; convert the file with Python",
                       p->name);
    TRY(take_shape(p, look_up(p, state, "_shape", "shape"), &parts.shape));
    TRY(take_array(p, look_up(p, state, "indptr", "indptr"), &parts.offsets));
    TRY(take_array(p, look_up(p, state, "indices", "indices"), &parts.indices));
    TRY(take_array(p, look_up(p, state, "data", "data"), &parts.data));
    status = io_make_csr(p->context, p->name, &parts, matrix);
done:
    io_csr_parts_free(p->context, &parts);
    return status;
}

/* ---- dictionaries of lists --------------------------------------------------------------------------------- */

static bool is_node(const io_pickle *p, int32_t id, int64_t nodes)
{
    return p->nodes[id].kind == NODE_NUMBER && p->nodes[id].number >= 0 && p->nodes[id].number < nodes;
}

sp_status io_pickle_lists(const io_pickle *p, int64_t nodes, sp_csr *matrix)
{
    int32_t *rows = NULL, *cols = NULL;
    int64_t capacity = 0, col_capacity = 0, count = 0, seen = 0;
    sp_status status = SP_OK;
    memset(matrix, 0, sizeof *matrix);
    if (p->nodes[p->root].kind != NODE_DICT && !is_global(p, class_of(p, p->root), "defaultdict"))
        return refuse(p, "no dictionary of the nodes; convert the file with Python");
    for (int32_t at = p->nodes[p->root].first; at != NOTHING;) {
        const int32_t key = p->links[at].value, value_at = p->links[at].next;
        if (value_at == NOTHING || !is_node(p, key, nodes)) TRY(refuse(p, "no dictionary of the nodes"));
        const node *list = &p->nodes[p->links[value_at].value];
        if (list->kind != NODE_LIST) TRY(refuse(p, "no dictionary of lists"));
        for (int32_t item = list->first; item != NOTHING; item = p->links[item].next) {
            /* A list can stand in many places: together they are no longer than all that the file holds. */
            if (!is_node(p, p->links[item].value, nodes) || seen++ == p->link_count)
                TRY(refuse(p, "a list with what is no node"));
            if (p->nodes[p->links[item].value].number == p->nodes[key].number) continue;
            TRY(io_reserve(p->context, count, count + 1, sizeof *rows, &capacity, (void **)&rows));
            TRY(io_reserve(p->context, count, count + 1, sizeof *cols, &col_capacity, (void **)&cols));
            rows[count] = (int32_t)p->nodes[key].number;
            cols[count++] = (int32_t)p->nodes[p->links[item].value].number;
        }
        at = p->links[value_at].next;
    }
    status = sp_csr_from_coo(p->context, nodes, nodes, count, rows, cols, NULL, SP_F32, SP_COMBINE_MAX, true, matrix);
    if (status == SP_OK) {
        sp_free(p->context, matrix->values);
        matrix->values = NULL;
    }
done:
    sp_free(p->context, rows);
    sp_free(p->context, cols);
    return status;
}
