/* Clusters for other programs: a table with a line a node, and GraphML with the clusters as attributes of nodes. Of
 * several inflations each has its columns. A node in several clusters stands in the first. */
#include <stdlib.h>
#include <string.h>

#include "base/value.h"
#include "common/tool.h"
#include "job.h"

/* Weights are f32; their sums have no more digits. */
#define WEIGHT "%.7g"

static void free_labels(job *j, int32_t **labels)
{
    for (int r = 0; labels && r < j->report.run_count; r++) sp_free(j->host, labels[r]);
    sp_free(j->host, labels);
}

/* labels[r][i]: the cluster of node i in run r, from 0; -1: in none. */
static sp_status make_labels(job *j, int32_t ***labels)
{
    sp_status status;
    TRY(sp_calloc(j->host, j->report.run_count, sizeof **labels, (void **)labels));
    for (int r = 0; r < j->report.run_count; r++) {
        const mcl_clustering *c = &j->report.runs[r].clustering;
        TRY(sp_alloc(j->host, c->nodes, sizeof ***labels, (void **)&(*labels)[r]));
        mcl_clustering_labels(c, (*labels)[r]);
    }
done:
    return status;
}

static int64_t size_of(const mcl_clustering *c, int32_t cluster)
{
    return cluster < 0 ? 0 : c->offsets[cluster + 1] - c->offsets[cluster];
}

static const char *is_attractor(const mcl_clustering *c, int64_t node)
{
    if (c->system_of && c->system_of[node] == MCL_SYSTEM_UNKNOWN) return "NA";
    return c->system_of && c->system_of[node] >= 0 ? "1" : "0";
}

/* The whole name, or the number that clusters have. */
static void put_name(const job *j, io_output *out, int64_t node)
{
    const io_names *names = &j->input.names;
    if (names->count > 0) io_output_bytes(out, io_name(names, node), io_name_length(names, node));
    else io_output_int(out, j->input.ids ? j->input.ids[node] : node);
}

/* "", or with several runs ".I20" and the like. */
static void put_run_name(const job *j, io_output *out, int r)
{
    if (j->report.run_count > 1) io_output_format(out, ".I%g", j->report.runs[r].inflation);
}

/* ---- table ---------------------------------------------------------------------------------------------- */

/* The fields of a node in run r. */
static void put_fields(const job *j, io_output *out, int r, int32_t cluster, int64_t node, char separator)
{
    const mcl_clustering *c = &j->report.runs[r].clustering;
    io_output_format(out, "%c%d%c%lld%c", separator, cluster + 1, separator, (long long)size_of(c, cluster), separator);
    io_output_format(out, WEIGHT, j->report.runs[r].quality.inside[node]);
    io_output_format(out, "%c%s", separator, is_attractor(c, node));
}

sp_status job_put_table(job *j, io_output *out)
{
    static const char *const headings[] = {"cluster", "size", "weight_inside", "attractor"};
    const char separator = is_kind(j->settings->table, ".csv") ? ',' : '\t';
    const io_names *names = &j->input.names;
    int32_t **labels = NULL;
    sp_status status;
    TRY(make_labels(j, &labels));
    io_output_string(out, "node");
    for (int r = 0; r < j->report.run_count; r++)
        for (int h = 0; h < 4; h++) {
            io_output_format(out, "%c%s", separator, headings[h]);
            put_run_name(j, out, r);
        }
    io_output_string(out, "\n");
    for (int64_t i = 0; i < j->report.nodes; i++) {
        if (separator == ',' && names->count > 0)
            io_put_field(out, io_name(names, i), io_name_length(names, i), separator);
        else put_name(j, out, i);
        for (int r = 0; r < j->report.run_count; r++) put_fields(j, out, r, labels[r][i], i, separator);
        io_output_string(out, "\n");
    }
done:
    free_labels(j, labels);
    return status;
}

/* ---- GraphML -------------------------------------------------------------------------------------------- */

static void put_keys(const job *j, io_output *out)
{
    io_output_string(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                          "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
                          "<key id=\"name\" for=\"node\" attr.name=\"name\" attr.type=\"string\"/>\n"
                          "<key id=\"weight\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n");
    for (int r = 0; r < j->report.run_count; r++) {
        io_output_format(out, "<key id=\"cluster%d\" for=\"node\" attr.name=\"cluster", r);
        put_run_name(j, out, r);
        io_output_format(out, "\" attr.type=\"int\"/>\n<key id=\"attractor%d\" for=\"node\" attr.name=\"attractor", r);
        put_run_name(j, out, r);
        io_output_string(out, "\" attr.type=\"boolean\"/>\n");
    }
}

static void put_xml_node(const job *j, io_output *out, int32_t *const *labels, int64_t node)
{
    const io_names *names = &j->input.names;
    io_output_format(out, "<node id=\"n%lld\"><data key=\"name\">", (long long)node);
    if (names->count > 0) io_put_xml(out, io_name(names, node), io_name_length(names, node));
    else put_name(j, out, node);
    io_output_string(out, "</data>");
    for (int r = 0; r < j->report.run_count; r++)
        io_output_format(out, "<data key=\"cluster%d\">%d</data><data key=\"attractor%d\">%s</data>", r,
                         labels[r][node] + 1, r,
                         is_attractor(&j->report.runs[r].clustering, node) ? "true" : "false");
    io_output_string(out, "</node>\n");
}

sp_status job_put_graphml(job *j, io_output *out)
{
    const sp_csr *g = &j->graph;
    const bool undirected = j->input.undirected || j->input.symmetric;
    int32_t **labels = NULL;
    sp_status status;
    TRY(make_labels(j, &labels));
    put_keys(j, out);
    io_output_format(out, "<graph edgedefault=\"%s\">\n", undirected ? "undirected" : "directed");
    for (int64_t i = 0; i < g->rows; i++) put_xml_node(j, out, labels, i);
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t e = g->row_offsets[i]; e < g->row_offsets[i + 1]; e++) {
            if (undirected && g->col_indices[e] < i) continue;
            io_output_format(out, "<edge source=\"n%lld\" target=\"n%d\"><data key=\"weight\">", (long long)i,
                             g->col_indices[e]);
            io_output_format(out, WEIGHT, entry_value(g, e));
            io_output_string(out, "</data></edge>\n");
        }
    io_output_string(out, "</graph>\n</graphml>\n");
done:
    free_labels(j, labels);
    return status;
}
