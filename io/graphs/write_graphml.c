/* A matrix as GraphML, as networkx, igraph, Gephi and Cytoscape read it: nodes n0, n1, ... with their names, then edges
 * with their weights. */
#include "graphs/formats.h"
#include "text/write.h"

/* Text of an XML element. XML cannot hold control characters; they become question marks. */
static void put_text(io_output *output, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '&') io_output_string(output, "&amp;");
        else if (c == '<') io_output_string(output, "&lt;");
        else if (c == '>') io_output_string(output, "&gt;");
        else if (c == '\r') io_output_string(output, "&#13;"); /* which readers take for an end of line otherwise */
        else if (c < ' ' && c != '\t' && c != '\n') io_output_string(output, "?");
        else io_output_bytes(output, text + i, 1);
    }
}

static void put_node(io_output *output, const io_write_options *o, int64_t node)
{
    io_output_format(output, "    <node id=\"n%lld\"><data key=\"name\">", (long long)node);
    if (o->names && o->names->count > 0) put_text(output, io_name(o->names, node), io_name_length(o->names, node));
    else io_output_int(output, o->first + node);
    io_output_string(output, "</data></node>\n");
}

typedef struct graphml_edges {
    const sp_csr *matrix;
    bool undirected;
} graphml_edges;

/* Edges of an undirected graph stand once. */
static void put_edges(const void *user, int64_t row, int64_t begin, int64_t end, io_text *text)
{
    static const char source[] = "    <edge source=\"n", target[] = "\" target=\"n",
                      weight[] = "\"><data key=\"weight\">",
                      rest[] = "</data></edge>\n";
    const graphml_edges *from = user;
    for (int64_t e = begin; e < end; e++) {
        const int64_t col = from->matrix->col_indices[e];
        if (from->undirected && col < row) continue;
        io_text_bytes(text, source, sizeof source - 1);
        io_text_int(text, row);
        io_text_bytes(text, target, sizeof target - 1);
        io_text_int(text, col);
        io_text_bytes(text, weight, sizeof weight - 1);
        char *at = io_text_room(text, IO_NUMBER);
        if (!at) return;
        text->used += io_format_value(at, from->matrix, e);
        io_text_bytes(text, rest, sizeof rest - 1);
    }
}

sp_status io_put_graphml(sp_context *context, io_output *output, const sp_csr *matrix, const io_write_options *options)
{
    const graphml_edges from = {matrix, options->undirected};
    io_output_string(output, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                             "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
                             "  <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n"
                             "  <key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n");
    io_output_format(output, "  <graph edgedefault=\"%s\">\n", options->undirected ? "undirected" : "directed");
    for (int64_t i = 0; i < matrix->rows; i++) put_node(output, options, i);
    const sp_status status = io_put_rows(context, output, matrix, false, put_edges, &from);
    io_output_string(output, "  </graph>\n</graphml>\n");
    return status;
}
