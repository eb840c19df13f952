/* C = S·G·Sᵀ for labels on several devices, from host memory: each combines a range of the groups, the rows of C.
 *
 * Ranges are cut so that they have about equal numbers of entries of G. A device gets a matrix of G's shape with the
 * rows of the nodes in its groups; all other rows are empty. So nodes and groups keep their numbers, and a row of C is
 * combined of the same entries in the same order as on one device.
 *
 * Of a symmetric G a CPU makes the entries of C up to the diagonal, and the others are their mirror images. A device
 * does the same with its range. The mirror images lie in rows of its own range and of those before. So row p of C
 * begins with the entries that the device of p has, and goes on with the columns of the next devices. In all cases it
 * is the rows p of the devices, one after the other. Whether a CPU makes halves of counts depends on the lengths of the
 * rows, which are others in each range; so devices make whole rows of counts, which are symmetric in any case.
 *
 * Bytes a device beyond its entries: 8 a node for the offsets, 4 for the label, 8 a group.
 */
#include <string.h>

#include "core/devices.h"

/* What a device makes. */
typedef struct device_rows {
    sp_csr c;
    int64_t *offsets; /* its row offsets, in host memory */
    sp_contract_info info;
} device_rows;

typedef struct shared_contraction {
    sp_context *context;
    const sp_csr *g;
    const int32_t *labels;
    int64_t groups;
    sp_contract_options options;
    int64_t cuts[SP_MOST_DEVICES + 1]; /* device d has groups cuts[d] to cuts[d + 1] - 1 */
    device_rows *devices;
    const sp_csr *c; /* all rows, while they are joined */
} shared_contraction;

/* ---- a device's rows ---------------------------------------------------------------------------------- */

static int64_t length_in(const shared_contraction *s, int64_t node, int64_t first, int64_t end)
{
    const int64_t *offsets = s->g->row_offsets;
    return s->labels[node] >= first && s->labels[node] < end ? offsets[node + 1] - offsets[node] : 0;
}

/* The rows of G of the nodes in groups first to end - 1. */
static sp_status gather_rows(sp_context *device, const shared_contraction *s, int64_t first, int64_t end, sp_csr *rows)
{
    const sp_csr *g = s->g;
    const size_t size = g->values ? sp_value_size(g->value_type) : 0;
    const int threads = sp_threads_for(device, g->rows);
    int64_t entries = 0;
#pragma omp parallel for schedule(static) reduction(+ : entries) num_threads(threads)
    for (int64_t i = 0; i < g->rows; i++) entries += length_in(s, i, first, end);
    const sp_status status = sp_csr_create_like(device, g, g->rows, g->cols, entries, SP_HOST, rows);
    if (status != SP_OK) return status;
    rows->row_offsets[0] = 0;
    for (int64_t i = 0; i < g->rows; i++) rows->row_offsets[i + 1] = rows->row_offsets[i] + length_in(s, i, first, end);
#pragma omp parallel for schedule(dynamic, 4096) num_threads(threads)
    for (int64_t i = 0; i < g->rows; i++) {
        const int64_t to = rows->row_offsets[i], from = g->row_offsets[i];
        const size_t length = (size_t)(rows->row_offsets[i + 1] - to);
        if (length == 0) continue;
        memcpy(rows->col_indices + to, g->col_indices + from, length * sizeof *g->col_indices);
        if (size)
            memcpy((char *)rows->values + (size_t)to * size, (char *)g->values + (size_t)from * size, length * size);
    }
    return SP_OK;
}

/* An sp_devices_work. */
static sp_status make_rows(sp_context *device, int number, void *user)
{
    const shared_contraction *s = user;
    device_rows *own = &s->devices[number];
    sp_csr rows = {0};
    sp_status status;
    TRY(gather_rows(device, s, s->cuts[number], s->cuts[number + 1], &rows));
    TRY(sp_device_contract(device, &rows, s->labels, SP_HOST, s->groups, &s->options, &own->c, &own->info));
    TRY(sp_alloc(device, s->groups + 1, sizeof *own->offsets, (void **)&own->offsets));
    TRY(sp_array_copy(device, s->groups + 1, sizeof *own->offsets, own->offsets, SP_HOST, own->c.row_offsets,
                      own->c.space));
    own->info.peak_bytes += sp_csr_bytes(&rows) + sp_csr_bytes(&own->c);
done:
    sp_csr_free(device, &rows);
    return status;
}

/* ---- all rows ----------------------------------------------------------------------------------------- */

/* Where row p of the device begins in C: behind all rows before it, and behind row p of the devices before. */
static int64_t place_of(const shared_contraction *s, int number, int64_t p)
{
    int64_t place = 0;
    for (int d = 0; d < s->context->devices->count; d++) place += s->devices[d].offsets[p + (d < number)];
    return place;
}

static sp_status move_entries(sp_context *device, const sp_csr *rows, int64_t from, const sp_csr *c, int64_t to,
                              int64_t count)
{
    const size_t size = sp_value_size(c->value_type);
    sp_status status;
    TRY(device->backend->copy(device, c->col_indices + to, c->space, rows->col_indices + from, rows->space,
                              (size_t)count * sizeof *c->col_indices));
    TRY(device->backend->copy(device, (char *)c->values + (size_t)to * size, c->space,
                              (char *)rows->values + (size_t)from * size, rows->space, (size_t)count * size));
done:
    return status;
}

/* An sp_devices_work: moves the device's rows to their places in C. Those that follow each other there, too, are moved
 * at once. */
static sp_status move_rows(sp_context *device, int number, void *user)
{
    const shared_contraction *s = user;
    device_rows *own = &s->devices[number];
    const int64_t *offsets = own->offsets;
    sp_status status = SP_OK;
    for (int64_t p = 0; p < s->groups;) {
        const int64_t from = offsets[p], to = place_of(s, number, p);
        if (offsets[++p] == from) continue;
        while (p < s->groups && place_of(s, number, p) - to == offsets[p] - from) p++;
        TRY(move_entries(device, &own->c, from, s->c, to, offsets[p] - from));
    }
    if (device->backend->finish) TRY(device->backend->finish(device));
done:
    sp_csr_free(device, &own->c);
    return status;
}

static sp_status join_rows(shared_contraction *s, sp_csr *c)
{
    sp_context *context = s->context;
    const sp_space space = context->backend->space;
    int64_t *offsets;
    sp_status status;
    TRY(sp_alloc(context, s->groups + 1, sizeof *offsets, (void **)&offsets));
    for (int64_t p = 0; p <= s->groups; p++) offsets[p] = place_of(s, 0, p);
    TRY(sp_csr_create(context, s->groups, s->groups, offsets[s->groups], s->g->value_type, space, c));
    TRY(sp_array_copy(context, s->groups + 1, sizeof *offsets, c->row_offsets, space, offsets, SP_HOST));
    s->c = c;
    TRY(sp_devices_run(context, move_rows, s));
done:
    if (status != SP_OK) sp_csr_free(context, c);
    sp_free(context, offsets);
    return status;
}

/* ---- the contraction ----------------------------------------------------------------------------------- */

/* Cuts the groups by their entries. Every thread reads all labels and adds up those of its own groups. */
static sp_status cut_groups(shared_contraction *s)
{
    sp_context *context = s->context;
    const int threads = sp_threads_for(context, s->g->rows);
    double *entries;
    sp_status status = sp_calloc(context, s->groups, sizeof *entries, (void **)&entries);
    if (status != SP_OK) return status;
#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        const int64_t first = s->groups * t / threads, end = s->groups * (t + 1) / threads;
        for (int64_t i = 0; i < s->g->rows; i++) {
            const int64_t length = length_in(s, i, first, end);
            if (length > 0) entries[s->labels[i]] += (double)length;
        }
    }
    sp_devices_cut(context, entries, s->groups, s->cuts);
    sp_free(context, entries);
    return SP_OK;
}

static void free_devices(shared_contraction *s)
{
    sp_devices *devices = s->context->devices;
    for (int d = 0; s->devices && d < devices->count; d++) {
        sp_csr_free(devices->contexts[d], &s->devices[d].c);
        sp_free(devices->contexts[d], s->devices[d].offsets);
    }
    sp_free(s->context, s->devices);
}

sp_status sp_devices_contract(sp_context *context, const sp_csr *g, const int32_t *labels, int64_t groups,
                              const sp_contract_options *options, sp_csr *c, sp_contract_info *info)
{
    const double start = wall_seconds();
    const bool counts = options->combine == SP_COMBINE_COUNT || (!g->values && options->combine == SP_COMBINE_SUM);
    shared_contraction s = {.context = context, .g = g, .labels = labels, .groups = groups, .options = *options};
    sp_status status;
    s.options.symmetric = options->symmetric && !counts;
    TRY(sp_calloc(context, context->devices->count, sizeof *s.devices, (void **)&s.devices));
    TRY(cut_groups(&s));
    info->group_seconds = wall_seconds() - start;
    TRY(sp_devices_run(context, make_rows, &s));
    TRY(join_rows(&s, c));
    for (int d = 0; d < context->devices->count; d++) {
        info->entries += s.devices[d].info.entries;
        info->peak_bytes += s.devices[d].info.peak_bytes;
    }
    info->nnz = c->nnz;
    info->mirrored = options->symmetric && context->backend->space == SP_HOST;
    info->combine_seconds = wall_seconds() - start - info->group_seconds;
done:
    free_devices(&s);
    return status;
}
