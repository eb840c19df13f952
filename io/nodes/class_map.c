/* The two JSON files of GraphSAINT's folders (Zeng et al. 2020): class_map.json, {"node": class, ...} or
 * {"node": [0, 1, ...], ...}, and role.json, {"tr": [node, ...], "va": [...], "te": [...]}. Nothing else is read.
 */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "nodes/nodes.h"
#include "text/check.h"
#include "text/number.h"

/* The text of a file. */
typedef struct map_text {
    sp_context *context;
    const char *name, *begin;
    io_json json;
} map_text;

/* The rest of the line at `at` is not what is wanted. */
static sp_status refuse_at(const map_text *text, const char *at, const char *what, const char *remedy)
{
    int64_t line = 1;
    const char *stop = at;
    for (const char *p = text->begin; p < at; p++) line += *p == '\n';
    while (stop < text->json.end && stop - at < IO_TOKEN_SHOWN && *stop != '\n') stop++;
    return io_fail_line(text->context, text->name, line, what, at, stop, remedy);
}

static sp_status refuse(const map_text *text, const char *what, const char *remedy)
{
    return refuse_at(text, text->json.at, what, remedy);
}

/* The whole of a file; the bytes belong to the caller. */
static sp_status open_text(sp_context *context, const char *path, const volatile int *interrupt, char **bytes,
                           map_text *text)
{
    io_source *source;
    int64_t size = 0;
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    status = io_read_text(context, source, bytes, &size);
    if (status == SP_OK) *text = (map_text){context, io_source_name(source), *bytes, {*bytes, *bytes + size}};
    io_source_close(source);
    return status;
}

static sp_status expect_end(map_text *text)
{
    io_json_space(&text->json);
    return text->json.at == text->json.end
        ? SP_OK : refuse(text, "something follows the object", "the file holds one object");
}

/* ---- classes ------------------------------------------------------------------------------------------- */

typedef struct class_map {
    map_text text;
    int64_t nodes;
    io_classes *classes;
    bool begun, lists;
    uint8_t *rows; /* of lists, in the order of the file */
    int32_t *order; /* the nodes in that order */
    int64_t count, order_capacity, row_capacity;
    uint8_t *seen;
} class_map;

static sp_status take_list(class_map *map)
{
    io_classes *c = map->classes;
    const bool first = map->count == 0;
    int64_t length = 0, value;
    for (bool more = !io_json_take(&map->text.json, ']'); more; length++) {
        if (length == (first ? IO_MOST_CLASSES : c->classes))
            return refuse(&map->text, "too many classes", "the same number for each node, at most 65536");
        if (!io_json_whole(&map->text.json, 0, 1, &value))
            return refuse(&map->text, "an element that is not 0 or 1", "write 0 or 1 a class");
        const int64_t at = first ? length : map->count * c->classes + length;
        sp_status status = io_reserve(map->text.context, at, at + 1, 1, &map->row_capacity, (void **)&map->rows);
        if (status != SP_OK) return status;
        map->rows[at] = (uint8_t)value;
        more = io_json_take(&map->text.json, ',');
        if (!more && !io_json_take(&map->text.json, ']'))
            return refuse(&map->text, "a list that does not end", "write [0, 1, ...]");
    }
    if (first) c->classes = length;
    return length == c->classes ? SP_OK : refuse(&map->text, "too few classes", "the same number for each node");
}

static sp_status take_class(class_map *map)
{
    io_classes *c = map->classes;
    double number;
    const bool list = io_json_take(&map->text.json, '[');
    if (!map->begun) map->lists = list;
    map->begun = true;
    if (list != map->lists) return refuse(&map->text, "numbers and lists are mixed", "give every node one kind");
    if (list) return take_list(map);
    io_json_space(&map->text.json);
    const char *before = map->text.json.at;
    if (!io_json_number(&map->text.json, &number))
        return refuse_at(&map->text, before, "a class that is not a number",
                         "write whole numbers from 0, or lists of 0 and 1");
    int32_t *label = &c->labels[map->order[map->count]];
    if (!io_class_of_number(number, label))
        return refuse_at(&map->text, before, "a label that is not a class", io_class_remedy(number));
    if (*label >= c->classes) c->classes = (int64_t)*label + 1;
    return SP_OK;
}

static sp_status take_node(class_map *map)
{
    const char *key;
    size_t length;
    int64_t node;
    io_json_space(&map->text.json);
    const char *before = map->text.json.at;
    if (!io_json_string(&map->text.json, &key, &length) || !io_json_take(&map->text.json, ':'))
        return refuse_at(&map->text, before, "no node", "write \"NODE\": CLASS");
    if (!io_parse_index(key, key + length, map->nodes - 1, &node))
        return refuse_at(&map->text, before, "this is not a node of the graph", "nodes are numbers from 0");
    if (map->seen[node]) return refuse_at(&map->text, before, "a node that is there twice", "write each once");
    map->seen[node] = 1;
    sp_status status = io_reserve(map->text.context, map->count, map->count + 1, sizeof *map->order,
                                  &map->order_capacity, (void **)&map->order);
    if (status != SP_OK) return status;
    map->order[map->count] = (int32_t)node;
    status = take_class(map);
    map->count++;
    return status;
}

static sp_status read_map(class_map *map)
{
    sp_context *context = map->text.context;
    io_classes *c = map->classes;
    sp_status status;
    TRY(sp_calloc(context, map->nodes, 1, (void **)&map->seen));
    TRY(sp_alloc(context, map->nodes, sizeof *c->labels, (void **)&c->labels));
    if (!io_json_take(&map->text.json, '{')) TRY(refuse(&map->text, "no object", "write {\"NODE\": CLASS, ...}"));
    for (bool more = !io_json_take(&map->text.json, '}'); more;) {
        TRY(take_node(map));
        more = io_json_take(&map->text.json, ',');
        if (!more && !io_json_take(&map->text.json, '}'))
            TRY(refuse(&map->text, "no comma and no end", "write {\"NODE\": CLASS, ...}"));
    }
    TRY(expect_end(&map->text));
    if (map->count != map->nodes)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld nodes, but the graph has %lld; give each a class",
                    map->text.name, (long long)map->count, (long long)map->nodes));
    c->nodes = map->nodes;
    if (!map->lists) goto done;
    TRY(sp_alloc(context, map->nodes * c->classes, 1, (void **)&c->targets));
    for (int64_t i = 0; i < map->nodes; i++)
        memcpy(c->targets + map->order[i] * c->classes, map->rows + i * c->classes, (size_t)c->classes);
    sp_free(context, c->labels);
    c->labels = NULL;
done:
    return status;
}

sp_status io_read_class_map(sp_context *context, const char *path, const volatile int *interrupt, int64_t nodes,
                            io_classes *classes)
{
    class_map map = {.nodes = nodes, .classes = classes};
    char *bytes = NULL;
    sp_status status;
    memset(classes, 0, sizeof *classes);
    TRY(open_text(context, path, interrupt, &bytes, &map.text));
    status = read_map(&map);
done:
    FREE_ALL(context, bytes, map.seen, map.rows, map.order);
    if (status != SP_OK) io_classes_free(context, classes);
    return status;
}

/* ---- roles --------------------------------------------------------------------------------------------- */

/* Which of `words` the string is, -1 if none. */
static int which(const char *string, size_t length, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == length && memcmp(words[i], string, length) == 0) return i;
    return -1;
}

static sp_status take_role(map_text *text, int64_t nodes, uint8_t role, uint8_t *roles)
{
    int64_t node;
    if (!io_json_take(&text->json, '[')) return refuse(text, "no list", "write [NODE, ...]");
    for (bool more = !io_json_take(&text->json, ']'); more;) {
        if (!io_json_whole(&text->json, 0, nodes - 1, &node))
            return refuse(text, "this is not a node of the graph", "nodes are numbers from 0");
        if (roles[node] && roles[node] != role)
            return sp_fail(text->context, SP_ERROR_ARGUMENT, "%s: node %lld has two roles; give it one", text->name,
                           (long long)node);
        roles[node] = role;
        more = io_json_take(&text->json, ',');
        if (!more && !io_json_take(&text->json, ']'))
            return refuse(text, "a list that does not end", "write [NODE, ...]");
    }
    return SP_OK;
}

static sp_status read_roles(map_text *text, int64_t nodes, uint8_t *roles)
{
    static const char *const words[] = {"tr", "va", "te", NULL};
    sp_status status;
    if (!io_json_take(&text->json, '{')) return refuse(text, "no object", "write {\"tr\": [NODE, ...], \"va\": ...}");
    for (bool more = !io_json_take(&text->json, '}'); more;) {
        const char *key;
        size_t length;
        io_json_space(&text->json);
        const char *before = text->json.at;
        const int role = io_json_string(&text->json, &key, &length) && io_json_take(&text->json, ':')
            ? which(key, length, words) : -1;
        if (role < 0) TRY(refuse_at(text, before, "no role", "roles are \"tr\", \"va\" and \"te\""));
        TRY(take_role(text, nodes, (uint8_t)(role + 1), roles));
        more = io_json_take(&text->json, ',');
        if (!more && !io_json_take(&text->json, '}'))
            TRY(refuse(text, "no comma and no end", "write {\"tr\": [NODE, ...], ...}"));
    }
    status = expect_end(text);
done:
    return status;
}

sp_status io_read_roles(sp_context *context, const char *path, const volatile int *interrupt, int64_t nodes,
                        uint8_t **roles)
{
    char *bytes = NULL;
    map_text text;
    sp_status status;
    *roles = NULL;
    TRY(open_text(context, path, interrupt, &bytes, &text));
    TRY(sp_calloc(context, nodes, 1, (void **)roles));
    status = read_roles(&text, nodes, *roles);
done:
    sp_free(context, bytes);
    if (status != SP_OK) sp_free(context, *roles);
    if (status != SP_OK) *roles = NULL;
    return status;
}
