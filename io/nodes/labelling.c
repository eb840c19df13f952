/* Labellings: which group each node of a graph belongs to. label_lines.c reads lines, label_array.c arrays,
 * label_column.c columns of tables; this file detects the form of a file, reads clusterings in native matrices, and
 * drops or refuses empty groups.
 */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/try.h"
#include "graphs/formats.h"
#include "nodes/labelling.h"
#include "nodes/nodes.h"
#include "text/check.h"
#include "text/words.h"
#include "xml/graphml.h"

enum { DETECT_BYTES = 1 << 16, FREE_GROUPS = 1 << 20, GROUPS_PER_BYTE = 8 };

/* ---- native --------------------------------------------------------------------------------------------- */

static sp_status read_native(labeller *l, io_source *source, io_labelling *labelling)
{
    const io_read_options options = {.format = IO_NATIVE, .any_sign = true, .values = SP_F64};
    io_graph clusters = {0};
    sp_status status;
    TRY(io_read_native(l->context, source, &options, &l->group_count, &clusters));
    TRY(io_graph_spread(l->context, &clusters));
    if (clusters.nodes != l->graph->nodes && !l->options->other_graph)
        TRY(sp_fail(l->context, SP_ERROR_ARGUMENT, "%s: a clustering of %lld nodes, but the graph has %lld",
                    l->name, (long long)clusters.nodes, (long long)l->graph->nodes));
    for (int pass = 0; pass < 2 && (pass == 0 || l->general); pass++) {
        l->collect = pass == 1;
        for (int64_t e = 0; e < clusters.arcs; e++) {
            const int64_t id = clusters.ids ? clusters.ids[clusters.heads[e]] : clusters.heads[e];
            const int64_t node = io_node_of_id(l->graph, id);
            if (node < 0 && l->options->other_graph) {
                TRY(io_note_unknown(l, clusters.tails[e]));
                continue;
            }
            if (node < 0)
                TRY(sp_fail(l->context, SP_ERROR_ARGUMENT, "%s: row %lld is not a node of the graph", l->name,
                            (long long)id));
            TRY(io_add_member(l, node, clusters.tails[e], io_arc_weight(&clusters, e)));
        }
    }
    labelling->lines = clusters.lines;
    labelling->bytes = clusters.bytes;
done:
    io_graph_free(l->context, &clusters);
    return status;
}

/* ---- the whole file ------------------------------------------------------------------------------------- */

static bool have_blanks(const io_names *names)
{
    const char *end = names->count > 0 ? names->bytes + io_name_begin(names, names->count) : names->bytes;
    return io_skip_word(names->bytes, end) < end;
}

static sp_status read_text(labeller *l, io_source *source, io_labelling *labelling)
{
    sp_status status;
    TRY(io_read_text(l->context, source, &l->bytes, &l->size));
    if (l->graph->names.count > 0) TRY(io_labels_index(l->context, &l->graph->names, &l->nodes));
    l->blanks = have_blanks(&l->graph->names);
    if (l->format == IO_LABELS_AUTO) {
        TRY(io_refuse_commas(l));
        l->format = io_find_label_kind(l);
    }
    if (l->format == IO_LABELS_LIST && !io_have_order(l->graph) && l->graph->nodes > 0) TRY(io_order_list(l));
    TRY(io_read_label_lines(l));
    l->collect = l->general;
    if (l->collect) TRY(io_read_label_lines(l));
    labelling->lines = l->line;
    labelling->bytes = l->size;
done:
    sp_free(l->context, l->nodes.slots);
    return status;
}

static int compare_labels(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Empty groups would take memory that no file accounts for. With `compact` they are dropped; otherwise a label that is
 * too large is refused. */
static sp_status bound_groups(labeller *l, int64_t bytes, io_labelling *labelling)
{
    const int64_t count = l->collect ? l->count : l->graph->nodes;
    int32_t *list = l->collect ? l->member_groups : l->labels, *sorted = NULL;
    int64_t kept = 0;
    sp_status status;
    if (l->group_count <= FREE_GROUPS || l->group_count / GROUPS_PER_BYTE <= bytes) return SP_OK;
    if (!l->options->compact)
        return sp_fail(l->context, SP_ERROR_ARGUMENT,
                       "%s: labels up to %lld would make as many groups, most of them empty; give --compact", l->name,
                       (long long)l->group_count - 1 + labelling->base);
    TRY(sp_alloc(l->context, count, sizeof *sorted, (void **)&sorted));
    for (int64_t i = 0; i < count; i++)
        if (list[i] >= 0) sorted[kept++] = list[i];
    qsort(sorted, (size_t)kept, sizeof *sorted, compare_labels);
    l->group_count = 0;
    for (int64_t i = 0; i < kept; i++)
        if (i == 0 || sorted[i] != sorted[i - 1]) sorted[l->group_count++] = sorted[i];
    for (int64_t i = 0; i < count; i++) {
        if (list[i] < 0) continue;
        list[i] = (int32_t)lower_bound_i32(sorted, 0, l->group_count, list[i]);
    }
    labelling->numbers = sorted;
    sorted = NULL;
done:
    sp_free(l->context, sorted);
    return status;
}

/* Memberships as a matrix, without values where all weights are 1. */
static sp_status make_matrix(labeller *l, io_labelling *labelling)
{
    sp_status status = sp_csr_from_coo(l->context, &(sp_coo){.rows = l->group_count, .cols = l->graph->nodes,
                                                             .count = l->count, .row_indices = l->member_groups,
                                                             .col_indices = l->members, .values = l->weights,
                                                             .value_type = SP_F64}, SP_COMBINE_FIRST, false,
                                       &labelling->s);
    if (status != SP_OK || l->weighted) return status;
    sp_free(l->context, labelling->s.values);
    labelling->s.values = NULL;
    return SP_OK;
}

static void count_unlabelled(const labeller *l, io_labelling *labelling)
{
    for (int64_t i = l->graph->nodes; i-- > 0;)
        if (l->labels[i] < 0) {
            labelling->unlabelled++;
            labelling->first_unlabelled = i;
        }
}

static sp_status finish_incomplete(labeller *l, io_labelling *labelling)
{
    sp_status status = SP_OK;
    labelling->unknown = l->unknown;
    if (!l->incomplete) return SP_OK;
    TRY(sp_calloc(l->context, l->group_count, 1, (void **)&labelling->incomplete));
    memcpy(labelling->incomplete, l->incomplete, (size_t)l->incomplete_count);
done:
    return status;
}

/* Where no label is 0 they begin at 1. */
static void find_base(labeller *l, io_labelling *labelling)
{
    const bool numbers = l->decided && !l->named;
    labelling->base = l->options->base;
    if (l->options->base != IO_BASE_AUTO) return;
    labelling->base = numbers && l->has_zero ? 0 : 1;
    if (!numbers || l->has_zero) return;
    for (int64_t i = 0; i < l->graph->nodes; i++) l->labels[i] -= l->labels[i] > 0;
    for (int64_t i = 0; i < l->count; i++) l->member_groups[i]--;
    l->group_count--;
}

static sp_status finish(labeller *l, io_labelling *labelling)
{
    sp_status status;
    labelling->format = l->format;
    find_base(l, labelling);
    count_unlabelled(l, labelling);
    TRY(bound_groups(l, labelling->bytes, labelling));
    labelling->groups = l->group_count;
    if (l->collect) TRY(make_matrix(l, labelling));
    TRY(finish_incomplete(l, labelling));
    if (!l->collect) labelling->labels = l->labels;
    if (!l->collect) l->labels = NULL;
    labelling->names = l->groups.list.names;
    memset(&l->groups.list.names, 0, sizeof l->groups.list.names);
done:
    return status;
}

static bool begins_native(const char *bytes, size_t count)
{
    if (count >= 4 && memcmp(bytes, io_binary_cookie, 4) == 0) return true;
    const char *at = bytes, *end = bytes + count;
    while (at < end && (*at == '#' || *at == '\n' || io_is_blank(*at))) {
        if (*at == '#') at = memchr(at, '\n', (size_t)(end - at));
        if (!at) return false;
        at++;
    }
    return end - at >= 4 && memcmp(at, "(mcl", 4) == 0;
}

static sp_status find_native(labeller *l, io_source *source)
{
    const char *bytes;
    size_t count = DETECT_BYTES;
    sp_status status = io_source_peek(source, &bytes, &count);
    if (status != SP_OK && count == 0) return status; /* otherwise the reader reports the error at its place */
    if (begins_native(bytes, count)) l->format = IO_LABELS_NATIVE;
    return SP_OK;
}

/* What needs the name of a column. */
static sp_status refuse_table(labeller *l, io_source *source)
{
    const char *bytes;
    size_t count = DETECT_BYTES;
    if (io_source_peek(source, &bytes, &count) != SP_OK || !io_looks_like_xml(bytes, count)) return SP_OK;
    return sp_fail(l->context, SP_ERROR_ARGUMENT, "%s: XML; if it is GraphML, give --label-column NAME with the "
                   "attribute that is the label", l->name);
}

sp_status io_read_labels_source(sp_context *context, io_source *source, const io_graph *graph,
                                const io_label_options *options, io_labelling *labelling)
{
    labeller l = {.context = context,
                  .name = io_source_name(source),
                  .groups.file = io_source_name(source),
                  .graph = graph,
                  .options = options,
                  .base = options->base == IO_BASE_AUTO ? 0 : options->base,
                  .format = options->format};
    io_content content;
    sp_status status;
    memset(labelling, 0, sizeof *labelling);
    TRY(sp_alloc(context, graph->nodes, sizeof *l.labels, (void **)&l.labels));
    memset(l.labels, 0xff, (size_t)graph->nodes * sizeof *l.labels);
    TRY(io_source_refuse_zip(source));
    TRY(io_detect_content(source, &content));
    if (l.format == IO_LABELS_AUTO) TRY(find_native(&l, source));
    if (l.format != IO_LABELS_NATIVE && !options->column) TRY(refuse_table(&l, source));
    if (l.format == IO_LABELS_AUTO && options->other_graph) l.format = IO_LABELS_CLUSTERS;
    if (options->column) TRY(io_read_label_column(&l, source, labelling));
    else if (content == IO_CONTENT_NPY) TRY(io_read_label_array(&l, source, labelling));
    else if (l.format == IO_LABELS_NATIVE) TRY(read_native(&l, source, labelling));
    else TRY(read_text(&l, source, labelling));
    TRY(finish(&l, labelling));
done:
    if (status != SP_OK) io_labelling_free(context, labelling);
    FREE_ALL(context, l.bytes, l.node_of_line, l.labels, l.member_groups, l.members, l.weights, l.incomplete);
    io_labels_free(context, &l.groups);
    return status;
}

sp_status io_read_labels(sp_context *context, const char *path, const io_graph *graph,
                         const io_label_options *options, io_labelling *labelling)
{
    io_source *source;
    memset(labelling, 0, sizeof *labelling);
    sp_status status = io_source_open(context, path, options->interrupt, &source);
    if (status != SP_OK) return status;
    status = io_read_labels_source(context, source, graph, options, labelling);
    io_source_close(source);
    return status;
}

void io_labelling_free(sp_context *context, io_labelling *labelling)
{
    FREE_ALL(context, labelling->labels, labelling->numbers, labelling->incomplete);
    sp_csr_free(context, &labelling->s);
    io_names_free(context, &labelling->names);
    memset(labelling, 0, sizeof *labelling);
}
