/* Reading GraphML item by item. Keys stand before the graph, nodes may stand among edges. Ports, nested graphs and
 * hyperedges are refused; elements within data, as yEd draws nodes, are passed over.
 */
#include <ctype.h>
#include <strings.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "xml/graphml.h"

static const io_graphml_text NONE = {-1, -1};

static bool is_name(const io_graphml *g, const char *word) { return io_xml_is(g->xml.name, word); }

bool io_looks_like_xml(const char *bytes, size_t count)
{
    size_t i = 0;
    while (i < count && isspace((unsigned char)bytes[i])) i++;
    return i + 1 < count && bytes[i] == '<' && (isalpha((unsigned char)bytes[i + 1]) || strchr("?!", bytes[i + 1]));
}

/* ---- texts ---------------------------------------------------------------------------------------------- */

static sp_status append(io_graphml *g, char **texts, int64_t *count, int64_t *capacity, io_xml_span what)
{
    const sp_status status = io_reserve(g->xml.context, *count, *count + (int64_t)what.length + 1, 1, capacity,
                                        (void **)texts);
    if (status != SP_OK) return status;
    if (what.length > 0) memcpy(*texts + *count, what.text, what.length);
    *count += (int64_t)what.length;
    (*texts)[*count] = '\0'; /* numbers are parsed up to it */
    return SP_OK;
}

/* Keeps a text, with an end of its own. */
static sp_status keep(io_graphml *g, char **texts, int64_t *count, int64_t *capacity, io_xml_span what,
                      io_graphml_text *text)
{
    *text = (io_graphml_text){*count, (int64_t)what.length};
    const sp_status status = append(g, texts, count, capacity, what);
    ++*count;
    return status;
}

static sp_status keep_text(io_graphml *g, io_xml_span what, io_graphml_text *text)
{
    return keep(g, &g->texts, &g->text_count, &g->text_capacity, what, text);
}

static sp_status keep_declared(io_graphml *g, io_xml_span what, io_graphml_text *text)
{
    return keep(g, &g->declared, &g->declared_count, &g->declared_capacity, what, text);
}

/* The text of the element that is open, up to its end, without that of elements within it. */
static sp_status take_text(io_graphml *g, io_graphml_text *text)
{
    const int outside = g->xml.depth - 1;
    *text = (io_graphml_text){g->text_count, 0};
    sp_status status = append(g, &g->texts, &g->text_count, &g->text_capacity, (io_xml_span){"", 0});
    while (status == SP_OK) {
        status = io_xml_next(&g->xml);
        if (status != SP_OK) return status;
        if (g->xml.kind == IO_XML_CLOSE && g->xml.depth == outside + 1) break;
        if (g->xml.kind != IO_XML_TEXT || g->xml.depth > outside + 1) continue;
        text->length += (int64_t)g->xml.text.length;
        if (text->length > IO_GRAPHML_TEXT)
            return io_xml_fail(&g->xml, "a value of more than 65536 bytes", g->xml.text, "shorten it");
        status = append(g, &g->texts, &g->text_count, &g->text_capacity, g->xml.text);
    }
    g->text_count++;
    return status;
}

static sp_status skip_element(io_graphml *g)
{
    const int depth = g->xml.depth;
    sp_status status = SP_OK;
    while (status == SP_OK && !(g->xml.kind == IO_XML_CLOSE && g->xml.depth == depth)) status = io_xml_next(&g->xml);
    return status;
}

/* ---- keys ----------------------------------------------------------------------------------------------- */

static io_xml_span declared(const io_graphml *g, io_graphml_text text)
{
    return text.begin < 0 ? (io_xml_span){NULL, 0} : (io_xml_span){g->declared + text.begin, (size_t)text.length};
}

static bool same(io_xml_span a, io_xml_span b) { return a.length == b.length && memcmp(a.text, b.text, a.length) == 0; }

/* The key of this id for something that `of` is also for: Cytoscape gives keys of nodes, edges and graphs one id. */
static int64_t find_id(const io_graphml *g, io_xml_span id, const io_graphml_key *of)
{
    for (int64_t k = 0; k < g->count; k++) {
        const io_graphml_key *key = &g->keys[k];
        const bool meet = (key->nodes && of->nodes) || (key->edges && of->edges) || (key->others && of->others);
        if (meet && same(declared(g, key->id), id)) return k;
    }
    return -1;
}

/* Goes on to the next element within the one that was opened at `depth`; *more is false at the end of that. */
static sp_status next_inside(io_graphml *g, int depth, bool *more)
{
    do {
        const sp_status status = io_xml_next(&g->xml);
        if (status != SP_OK) return status;
        *more = !(g->xml.kind == IO_XML_CLOSE && g->xml.depth == depth);
    } while (*more && g->xml.kind != IO_XML_OPEN);
    return SP_OK;
}

/* Its <default>, if it has one. */
static sp_status take_standard(io_graphml *g, io_graphml_key *key)
{
    const int depth = g->xml.depth;
    io_graphml_text text;
    bool more;
    sp_status status = next_inside(g, depth, &more);
    while (status == SP_OK && more) {
        if (!is_name(g, "default")) status = skip_element(g);
        else {
            status = take_text(g, &text);
            if (status == SP_OK) status = keep_declared(g, io_graphml_span(g, text), &key->standard);
        }
        if (status == SP_OK) status = next_inside(g, depth, &more);
    }
    return status;
}

static io_graphml_type type_of(io_xml_span word)
{
    static const char *const numbers[] = {"int", "long", "float", "double", "integer", "real"};
    if (!word.text || word.length == 0) return IO_GRAPHML_UNTYPED;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (io_xml_is(word, numbers[i])) return IO_GRAPHML_NUMBER;
    return IO_GRAPHML_OTHER;
}

static sp_status take_key(io_graphml *g)
{
    const io_xml_span id = io_xml_attribute(&g->xml, "id"), of = io_xml_attribute(&g->xml, "for");
    const io_xml_span name = io_xml_attribute(&g->xml, "attr.name");
    io_graphml_key key = {.standard = NONE, .value = NONE};
    sp_status status;
    if (!id.text) return io_xml_fail(&g->xml, "a key without an id", id, "give it one");
    if (g->count == IO_GRAPHML_KEYS) return io_xml_fail(&g->xml, "more than 1024 keys", id, "leave some out");
    const bool all = !of.text || io_xml_is(of, "all");
    key.nodes = all || io_xml_is(of, "node");
    key.edges = all || io_xml_is(of, "edge");
    key.others = all || (!key.nodes && !key.edges);
    key.type = type_of(io_xml_attribute(&g->xml, "attr.type"));
    if (find_id(g, id, &key) >= 0) return io_xml_fail(&g->xml, "two keys have one id", id, "rename one of them");
    TRY(keep_declared(g, id, &key.id));
    TRY(keep_declared(g, name.text && name.length > 0 ? name : id, &key.name));
    TRY(io_reserve(g->xml.context, g->count, g->count + 1, sizeof *g->keys, &g->capacity, (void **)&g->keys));
    TRY(take_standard(g, &key));
    g->keys[g->count++] = key;
    g->text_count = 0;
done:
    return status;
}

int64_t io_graphml_find(const io_graphml *g, bool edges, const char *name, bool any_case)
{
    for (int64_t k = 0; k < g->count; k++) {
        const io_xml_span has = declared(g, g->keys[k].name);
        const bool is = any_case ? has.length == strlen(name) && strncasecmp(has.text, name, has.length) == 0
                                 : io_xml_is(has, name);
        if (is && (edges ? g->keys[k].edges : g->keys[k].nodes)) return k;
    }
    return -1;
}

sp_status io_graphml_lacks(const io_graphml *g, bool edges, const char *name)
{
    sp_context *context = g->xml.context;
    io_name_list list = {0};
    char there[IO_LISTED];
    sp_status status = SP_OK;
    for (int64_t k = 0; k < g->count; k++) {
        const io_xml_span has = io_graphml_name(g, k);
        if (edges ? g->keys[k].edges : g->keys[k].nodes) TRY(io_names_append(context, &list, has.text, has.length));
    }
    status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s have no attribute \"%.40s\"; there are: %s",
                     io_source_name(g->xml.source), edges ? "edges" : "nodes", name, io_names_list(&list.names, there));
done:
    io_names_free(context, &list.names);
    return status;
}

bool io_graphml_of_cytoscape(const io_graphml *g) { return io_graphml_find(g, false, "shared name", false) >= 0; }

io_xml_span io_graphml_name(const io_graphml *g, int64_t key) { return declared(g, g->keys[key].name); }

io_xml_span io_graphml_value(const io_graphml *g, int64_t key)
{
    const io_graphml_key *k = &g->keys[key];
    return k->value.begin >= 0 ? io_graphml_span(g, k->value) : declared(g, k->standard);
}

/* ---- items ---------------------------------------------------------------------------------------------- */

static sp_status take_data(io_graphml *g)
{
    const io_xml_span id = io_xml_attribute(&g->xml, "key");
    const io_graphml_key any = {.nodes = true, .edges = true, .others = true};
    const io_graphml_key of = {.nodes = g->item == IO_GRAPHML_NODE, .edges = g->item == IO_GRAPHML_EDGE};
    int64_t k = id.text ? find_id(g, id, &of) : -1;
    if (id.text && k < 0) k = find_id(g, id, &any); /* of something else: its value is passed over */
    if (k < 0) return io_xml_fail(&g->xml, "data without a key that is declared above", id, "declare the key");
    if (g->keys[k].value.begin >= 0) return io_xml_fail(&g->xml, "two values of one key", id, "leave one out");
    return take_text(g, &g->keys[k].value);
}

/* What is within a node or an edge. */
static sp_status take_inside(io_graphml *g)
{
    const int depth = g->xml.depth;
    bool more;
    sp_status status = next_inside(g, depth, &more);
    while (status == SP_OK && more) {
        if (is_name(g, "graph"))
            return io_xml_fail(&g->xml, "a graph within a node", g->xml.name, "only flat graphs are read");
        status = is_name(g, "data") ? take_data(g) : skip_element(g);
        if (status == SP_OK) status = next_inside(g, depth, &more);
    }
    return status;
}

static sp_status take_attribute(io_graphml *g, const char *word, io_graphml_text *text)
{
    const io_xml_span value = io_xml_attribute(&g->xml, word);
    if (!value.text || value.length == 0)
        return io_xml_fail(&g->xml, "a node without an id, or an edge without a source or target", g->xml.name,
                           "give it one");
    return keep_text(g, value, text);
}

static sp_status take_item(io_graphml *g, io_graphml_item item)
{
    const io_xml_span directed = io_xml_attribute(&g->xml, "directed");
    sp_status status;
    g->item = item;
    g->says_directed = directed.text != NULL;
    g->is_directed = directed.text ? io_xml_is(directed, "true") || io_xml_is(directed, "1") : g->directed;
    g->text_count = 0;
    for (int64_t k = 0; k < g->count; k++) g->keys[k].value = NONE;
    if (item == IO_GRAPHML_NODE) {
        TRY(take_attribute(g, "id", &g->id));
    } else {
        TRY(take_attribute(g, "source", &g->source));
        TRY(take_attribute(g, "target", &g->target));
    }
    status = take_inside(g);
done:
    return status;
}

static sp_status open_graph(io_graphml *g)
{
    const io_xml_span word = io_xml_attribute(&g->xml, "edgedefault");
    if (g->within || g->ended) return io_xml_fail(&g->xml, "a second graph", g->xml.name, "keep one in a file");
    if (word.text && !io_xml_is(word, "directed") && !io_xml_is(word, "undirected"))
        return io_xml_fail(&g->xml, "edges that are neither directed nor undirected", word, "write one of these words");
    g->within = true;
    g->directed = word.text && io_xml_is(word, "directed");
    return SP_OK;
}

/* An element outside of items. *done: it was one. */
static sp_status take_element(io_graphml *g, bool *done)
{
    if (g->xml.depth == 1)
        return is_name(g, "graphml") ? SP_OK
                                     : io_xml_fail(&g->xml, "an XML file that is not GraphML", g->xml.name,
                                                   "export the graph as GraphML, or as a table of edges");
    if (is_name(g, "graph")) return open_graph(g);
    if (!g->within) return is_name(g, "key") ? take_key(g) : skip_element(g);
    if (is_name(g, "hyperedge"))
        return io_xml_fail(&g->xml, "an edge of several nodes", g->xml.name, "write edges of two nodes");
    if (is_name(g, "node") || is_name(g, "edge")) {
        *done = true;
        return take_item(g, is_name(g, "node") ? IO_GRAPHML_NODE : IO_GRAPHML_EDGE);
    }
    return is_name(g, "key") ? io_xml_fail(&g->xml, "a key within the graph", g->xml.name, "declare keys before it")
                             : skip_element(g);
}

sp_status io_graphml_next(io_graphml *g)
{
    bool done = false;
    sp_status status = SP_OK;
    while (status == SP_OK && !done) {
        status = io_xml_next(&g->xml);
        if (status != SP_OK) return status;
        if (g->xml.kind == IO_XML_OPEN) status = take_element(g, &done);
        if (g->xml.kind == IO_XML_CLOSE && g->within && g->xml.depth == 2 && is_name(g, "graph")) {
            g->within = false;
            g->ended = true;
        }
        if (g->xml.kind != IO_XML_END) continue;
        if (!g->ended) return io_xml_fail(&g->xml, "no graph", (io_xml_span){NULL, 0}, "the file has no element graph");
        g->item = IO_GRAPHML_END;
        return SP_OK;
    }
    return status;
}

sp_status io_graphml_open(sp_context *context, io_source *source, io_graphml *g)
{
    memset(g, 0, sizeof *g);
    return io_xml_open(context, source, &g->xml);
}

void io_graphml_close(io_graphml *g)
{
    if (!g->xml.context) return;
    FREE_ALL(g->xml.context, g->keys, g->declared, g->texts);
    io_xml_close(&g->xml);
}

/* ---- names of nodes ------------------------------------------------------------------------------------- */

sp_status io_graphml_naming(const io_graphml *g, const char *column, int64_t *key)
{
    *key = column ? io_graphml_find(g, false, column, false) : -1;
    if (column && *key < 0 && strcasecmp(column, "id") != 0)
        return io_graphml_lacks(g, false, column);
    if (!column && (io_graphml_of_cytoscape(g) || io_xml_is(io_graphml_span(g, g->id), "n0")))
        *key = io_graphml_find(g, false, "name", false);
    return SP_OK;
}

sp_status io_graphml_node_name(const io_graphml *g, int64_t naming, io_xml_span *name)
{
    *name = naming < 0 ? io_graphml_span(g, g->id) : io_graphml_value(g, naming);
    if (!name->text || name->length == 0)
        return io_xml_fail(&g->xml, "a node without a name", io_graphml_span(g, g->id),
                           "give it one, or call nodes by their ids (contract: --node-column id)");
    if (memchr(name->text, '\t', name->length) || memchr(name->text, '\n', name->length) ||
        memchr(name->text, '\r', name->length) || *name->text == '#')
        return io_xml_fail(&g->xml, "a name that begins with # or holds a tab or a line feed", *name,
                           "rename it: lists of labels cannot hold it");
    return SP_OK;
}
