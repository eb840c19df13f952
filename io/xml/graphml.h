/* GraphML, as networkx, igraph, Gephi and mcl-gpu write it: one graph, item by item. */
#ifndef IO_XML_GRAPHML_H
#define IO_XML_GRAPHML_H

#include "xml/xml.h"

enum { IO_GRAPHML_KEYS = 1 << 10, IO_GRAPHML_TEXT = 1 << 16 };

typedef enum io_graphml_item { IO_GRAPHML_NODE, IO_GRAPHML_EDGE, IO_GRAPHML_END } io_graphml_item;

/* A place in `texts`; -1: none. */
typedef struct io_graphml_text {
    int64_t begin, length;
} io_graphml_text;

/* What a key says of its values. */
typedef enum io_graphml_type { IO_GRAPHML_UNTYPED, IO_GRAPHML_NUMBER, IO_GRAPHML_OTHER } io_graphml_type;

/* A key declares an attribute of nodes or of edges. */
typedef struct io_graphml_key {
    io_graphml_text id, name; /* in `declared`; the name of a key without one is its id */
    io_graphml_text standard; /* the value where an item has none */
    bool nodes, edges, others; /* what it is for; the others are graphs and ports */
    io_graphml_type type;
    io_graphml_text value;    /* of the item at hand, in `texts` */
} io_graphml_key;

typedef struct io_graphml {
    io_xml xml;
    io_graphml_key *keys;
    int64_t count, capacity;
    char *declared, *texts; /* of the keys; of the item at hand */
    int64_t declared_count, declared_capacity, text_count, text_capacity;
    bool within, ended;     /* a graph is open; it has closed */
    bool directed;          /* what the graph says of edges that do not */
    io_graphml_item item;
    io_graphml_text id, source, target; /* of the item, in `texts` */
    bool is_directed, says_directed;    /* the edge; it does not leave that to the graph */
} io_graphml;

/* The file's beginning tells: an element, an instruction or a comment of XML. */
bool io_looks_like_xml(const char *bytes, size_t count);

/* The caller zeroes nothing, and closes after a failure, too. */
sp_status io_graphml_open(sp_context *context, io_source *source, io_graphml *g);
/* The next node or edge. */
sp_status io_graphml_next(io_graphml *g);
void io_graphml_close(io_graphml *g);
/* The key of nodes, or of edges, that has this name; without regard to case if so asked; -1 if there is none. */
int64_t io_graphml_find(const io_graphml *g, bool edges, const char *name, bool any_case);
/* Whether Cytoscape has written the file, by the keys of nodes. */
bool io_graphml_of_cytoscape(const io_graphml *g);
/* Fails because nodes, or edges, have no attribute of this name; lists those that they have. */
sp_status io_graphml_lacks(const io_graphml *g, bool edges, const char *name);
/* What the item has for a key; its text is NULL if it has nothing. */
io_xml_span io_graphml_value(const io_graphml *g, int64_t key);
io_xml_span io_graphml_name(const io_graphml *g, int64_t key);
static inline io_xml_span io_graphml_span(const io_graphml *g, io_graphml_text text)
{
    return (io_xml_span){g->texts + text.begin, (size_t)text.length};
}

/* Which attribute names the nodes, known at the first node: that called `column`; with NULL, "name" if the first node's
 * id is n0, as igraph and mcl-gpu number them, or if nodes also have a "shared name", as Cytoscape writes; else -1:
 * their ids do. */
sp_status io_graphml_naming(const io_graphml *g, const char *column, int64_t *key);
/* The name of the node at hand, which must be fit for lists of labels. */
sp_status io_graphml_node_name(const io_graphml *g, int64_t naming, io_xml_span *name);

#endif
