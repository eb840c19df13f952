/* Graphs of GraphML files: read with names of nodes, arcs, and weights by the attribute weight of edges; written as
 * networkx, igraph, Gephi and Cytoscape read them: nodes n0, n1, ... with their names, then edges with their weights.
 */
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "graphs/formats.h"
#include "text/words.h"
#include "text/write.h"
#include "xml/graphml.h"

typedef struct graphml_reader {
    sp_context *context;
    const io_read_options *options;
    io_graphml file;
    io_graph *graph;
    io_labels ids;          /* of the nodes, in their order */
    io_name_list names;     /* if these are not their ids */
    int64_t naming, weight; /* keys, -1: none; known at the first node, and at the first edge */
    bool named, weighed, directed;
    bool says_directed; /* the first edge, of itself */
    io_arcs arcs;
} graphml_reader;

static sp_status fail(const graphml_reader *r, const char *what, io_xml_span got, const char *remedy)
{
    return io_xml_fail(&r->file.xml, what, got, remedy);
}

/* ---- nodes ---------------------------------------------------------------------------------------------- */

static sp_status add_node(graphml_reader *r)
{
    const io_xml_span id = io_graphml_span(&r->file, r->file.id);
    io_xml_span name;
    int32_t node;
    sp_status status = SP_OK;
    if (!r->named) TRY(io_graphml_naming(&r->file, r->options->node_column, &r->naming));
    r->named = true;
    TRY(io_graphml_node_name(&r->file, r->naming, &name));
    TRY(io_labels_add(r->context, &r->ids, id.text, id.length, io_label_hash(id.text, id.length), &node));
    if (node < r->graph->nodes) return fail(r, "two nodes have one id", id, "rename one of them");
    r->graph->nodes = (int64_t)node + 1;
    if (r->naming >= 0) status = io_names_append(r->context, &r->names, name.text, name.length);
done:
    return status;
}

/* Names that are not ids must differ as well. */
static sp_status take_names(graphml_reader *r)
{
    io_names *from = r->naming >= 0 ? &r->names.names : &r->ids.list.names;
    int64_t twin = -1;
    sp_status status = SP_OK;
    if (r->naming >= 0) TRY(io_names_repeated(r->context, from, &twin));
    if (twin >= 0)
        TRY(sp_fail(r->context, SP_ERROR_ARGUMENT,
                    "%s: two nodes are called \"%.*s\"; %s", io_source_name(r->file.xml.source),
                    (int)(io_name_length(from, twin) < 40 ? io_name_length(from, twin) : 40), io_name(from, twin),
                    io_advice(r->options, "rename one, or call nodes by their ids (contract: --node-column id)",
                              "rename one")));
    r->graph->names = *from;
    memset(from, 0, sizeof *from);
done:
    return status;
}

/* ---- edges ---------------------------------------------------------------------------------------------- */

/* Lists keys of edges whose values are numbers, as far as their types or the first edge tell. */
static sp_status list_unused(graphml_reader *r)
{
    io_name_list list = {0};
    double number;
    sp_status status = SP_OK;
    for (int64_t k = 0; k < r->file.count; k++) {
        const io_graphml_key *key = &r->file.keys[k];
        const io_xml_span name = io_graphml_name(&r->file, k), value = io_graphml_value(&r->file, k);
        const char *begin = value.text, *end = begin ? begin + value.length : NULL;
        bool is = key->type == IO_GRAPHML_NUMBER;
        if (key->type == IO_GRAPHML_UNTYPED && begin && io_trim_line(&begin, &end))
            is = io_parse_decimal(begin, end, &number) == end;
        if (key->edges && is && !io_counts_rows(name.text, name.text + name.length))
            TRY(io_names_append(r->context, &list, name.text, name.length));
    }
    r->graph->unused = list.names;
    memset(&list.names, 0, sizeof list.names);
done:
    io_names_free(r->context, &list.names);
    return status;
}

static sp_status find_weight(graphml_reader *r)
{
    const char *wanted = r->options->score_column;
    r->weight = io_graphml_find(&r->file, true, wanted ? wanted : "weight", !wanted);
    r->weighed = true;
    r->directed = r->file.is_directed;
    if (r->weight >= 0) return SP_OK;
    return wanted ? io_graphml_lacks(&r->file, true, wanted) : list_unused(r);
}

static sp_status read_weight(graphml_reader *r, double *weight)
{
    const io_read_options *o = r->options;
    const io_xml_span text = r->weight < 0 ? (io_xml_span){NULL, 0} : io_graphml_value(&r->file, r->weight);
    const char *begin = text.text, *end = begin ? begin + text.length : NULL;
    *weight = 1;
    if (begin) io_trim_line(&begin, &end);
    if (begin == end) begin = NULL; /* an empty value is none, as in tables */
    if (begin && io_parse_decimal(begin, end, weight) != end)
        return fail(r, "the weight is not a number", text,
                    io_advice(o, "write a number, or choose another attribute by --edge-column",
                              "write a number, or choose another attribute by weight="));
    if (begin && io_is_vast(o->values, *weight, begin, end) && r->graph->vast_line == 0)
        r->graph->vast_line = r->file.xml.line;
    if (o->transform) *weight = o->transform(o->transform_user, *weight);
    if (!(fabs(*weight) <= io_most(o->values)))
        return fail(r, "the weight is too large", text, io_most_remedy(o->values));
    if (*weight < 0 && !o->any_sign) return fail(r, "the weight is negative", text, io_sign_remedy(o));
    *weight = io_round(o->values, *weight);
    r->graph->negative += *weight < 0;
    return SP_OK;
}

static sp_status find_end(graphml_reader *r, io_graphml_text text, int32_t *node)
{
    const io_xml_span id = io_graphml_span(&r->file, text);
    *node = io_labels_find(&r->ids, id.text, id.length, io_label_hash(id.text, id.length));
    return *node >= 0 ? SP_OK : fail(r, "an end of an edge that is not a node above", id, "list nodes before edges");
}

static sp_status add_edge(graphml_reader *r)
{
    io_arcs *arcs = &r->arcs;
    int32_t tail, head;
    double weight;
    sp_status status;
    if (!r->weighed) TRY(find_weight(r));
    r->says_directed = r->says_directed || r->file.says_directed;
    if (r->file.is_directed != r->directed)
        TRY(fail(r, "directed edges among undirected ones", io_graphml_span(&r->file, r->file.source),
                 "make all the same"));
    TRY(find_end(r, r->file.source, &tail));
    TRY(find_end(r, r->file.target, &head));
    TRY(read_weight(r, &weight));
    if (weight == 0) return SP_OK;
    if (arcs->count > 0 && weight != arcs->weight) TRY(io_arcs_spread_weight(r->context, arcs));
    TRY(io_arcs_reserve(r->context, arcs, arcs->count + 1));
    if (arcs->count == 0) arcs->weight = weight;
    arcs->tails[arcs->count] = tail;
    arcs->heads[arcs->count] = head;
    if (!arcs->uniform) io_store_value(arcs->weights, arcs->values, arcs->count, weight);
    arcs->count++;
done:
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

/* Cytoscape's writer calls every network directed, and does not say which are. */
static void take_directions(const graphml_reader *r)
{
    const bool directed = r->weighed ? r->directed : r->file.directed;
    r->graph->presumed = directed && !r->says_directed && io_graphml_of_cytoscape(&r->file);
    r->graph->symmetric = !directed || r->graph->presumed;
}

static sp_status read_items(graphml_reader *r)
{
    sp_status status = SP_OK;
    while (status == SP_OK) {
        TRY(io_graphml_next(&r->file));
        if (r->file.item == IO_GRAPHML_END) break;
        status = r->file.item == IO_GRAPHML_NODE ? add_node(r) : add_edge(r);
    }
done:
    return status;
}

sp_status io_read_graphml(sp_context *context, io_source *source, const io_read_options *options, io_graph *graph)
{
    graphml_reader *r;
    sp_status status = sp_calloc(context, 1, sizeof *r, (void **)&r); /* too large for a stack */
    if (status != SP_OK) return status;
    r->context = context;
    r->options = options;
    r->graph = graph;
    r->naming = r->weight = -1;
    r->ids.file = io_source_name(source);
    r->arcs = (io_arcs){.uniform = true, .weight = 1, .values = options->values};
    TRY(io_graphml_open(context, source, &r->file));
    TRY(read_items(r));
    take_directions(r);
    graph->lines = r->file.xml.line;
    graph->bytes = r->file.xml.bytes;
    TRY(take_names(r));
    status = io_arcs_hand_over(context, &r->arcs, graph);
done:
    io_graphml_close(&r->file);
    io_labels_free(context, &r->ids);
    io_names_free(context, &r->names.names);
    io_arcs_free(context, &r->arcs);
    sp_free(context, r);
    return status;
}

/* ---- out -------------------------------------------------------------------------------------------------- */

static void put_node(io_output *output, const io_write_options *o, int64_t node)
{
    io_output_format(output, "    <node id=\"n%lld\"><data key=\"name\">", (long long)node);
    if (o->names && o->names->count > 0) io_put_xml(output, io_name(o->names, node), io_name_length(o->names, node));
    else io_output_int(output, o->first + node);
    io_output_string(output, "</data>");
    for (int k = 0; o->node_weights && k < o->constraints; k++)
        io_output_format(output, "<data key=\"node_weight%d\">%lld</data>", k + 1,
                         (long long)o->node_weights[node * o->constraints + k]);
    if (o->node_sizes) io_output_format(output, "<data key=\"size\">%lld</data>", (long long)o->node_sizes[node]);
    io_output_string(output, "</node>\n");
}

/* What nodes weigh, as weight or, of several, as weight1, weight2 ..., and their size. */
static void put_node_keys(io_output *output, const io_write_options *o)
{
    for (int k = 0; o->node_weights && k < o->constraints; k++) {
        io_output_format(output, "  <key id=\"node_weight%d\" for=\"node\" attr.name=\"weight", k + 1);
        if (o->constraints > 1) io_output_int(output, k + 1);
        io_output_string(output, "\" attr.type=\"long\"/>\n");
    }
    if (o->node_sizes)
        io_output_string(output, "  <key id=\"size\" for=\"node\" attr.name=\"size\" attr.type=\"long\"/>\n");
}

typedef struct graphml_edges {
    const sp_csr *matrix;
    int64_t first; /* the number of its first row */
    bool undirected;
} graphml_edges;

/* Edges of an undirected graph stand once. */
static void put_edges(const void *user, int64_t place, int64_t begin, int64_t end, io_text *text)
{
    static const char source[] = "    <edge source=\"n", target[] = "\" target=\"n",
                      weight[] = "\"><data key=\"weight\">",
                      rest[] = "</data></edge>\n";
    const graphml_edges *from = user;
    const int64_t row = from->first + place;
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

static sp_status put_rows(sp_context *context, io_output *output, const graphml_edges *from)
{
    const sp_csr *m = from->matrix;
    const sp_status status = io_put_rows(context, output, m, false, put_edges, from);
    if (from->first + m->rows == m->cols) io_output_string(output, "  </graph>\n</graphml>\n");
    return status;
}

sp_status io_put_graphml(sp_context *context, io_output *output, const sp_csr *matrix, const io_write_options *options)
{
    const graphml_edges from = {matrix, options->row, options->undirected};
    if (options->row > 0) return put_rows(context, output, &from);
    io_output_string(output, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                             "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
                             "  <key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n");
    put_node_keys(output, options);
    io_output_string(output, "  <key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n");
    io_output_format(output, "  <graph edgedefault=\"%s\">\n", options->undirected ? "undirected" : "directed");
    for (int64_t i = 0; i < matrix->cols; i++) put_node(output, options, i);
    return put_rows(context, output, &from);
}
