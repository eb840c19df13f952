/* Contraction repeated: each level contracts the graph of the level before by labels that follow from that graph. */
#include <string.h>

#include "internal.h"

/* A hierarchy on its way. */
typedef struct repetition {
    sp_context *context;
    const sp_csr *g;     /* the caller's */
    sp_csr here;         /* the present graph, if it lies on the device */
    sp_space space;      /* where the labeller gets graphs */
    contraction_labeller labeller;
    void *user;
    const contraction_options *options;
    contraction_hierarchy made;
} repetition;

static void free_level(sp_context *context, contraction_level *level)
{
    sp_free(context, level->map);
    sp_csr_free(context, &level->c);
}

/* The graph to be labelled. */
static const sp_csr *present(const repetition *r)
{
    if (r->space == SP_DEVICE) return &r->here;
    return r->made.count ? &r->made.level[r->made.count - 1].c : r->g;
}

/* Makes C the present graph on the device, too. C may lie there already. */
static sp_status take_present(repetition *r, sp_csr *c)
{
    sp_csr next = *c;
    sp_status status = SP_OK;
    if (c->space == SP_HOST) status = sp_csr_copy(r->context, c, SP_DEVICE, &next);
    else *c = (sp_csr){0};
    if (status != SP_OK) return status;
    sp_csr_free(r->context, &r->here);
    r->here = next;
    return SP_OK;
}

static sp_status contract_level(repetition *r, const int32_t *labels, contraction_level *level)
{
    sp_context *context = r->context;
    contraction_options how = r->options ? *r->options : (contraction_options){0};
    contraction_info info;
    sp_csr c = {0};
    bool symmetric;
    sp_status status;
    how.how.symmetric = how.undirected;
    TRY(contraction_quotient_at(context, present(r), labels, r->space, level->groups, &how, &c, &info));
    if (how.undirected && !info.mirrored) TRY(contraction_mirror(context, &c, &symmetric));
    if (r->space == SP_HOST && c.space == SP_HOST) {
        level->c = c;
        c = (sp_csr){0};
    } else {
        TRY(sp_csr_copy(context, &c, SP_HOST, &level->c));
        if (r->space == SP_DEVICE) TRY(take_present(r, &c));
    }
done:
    sp_csr_free(context, &c);
    return status;
}

/* Labels of the device are made in an array there. */
static sp_status make_level(repetition *r, bool *more)
{
    sp_context *context = r->context;
    contraction_hierarchy *made = &r->made;
    const sp_csr *graph = present(r);
    contraction_level next = {.nodes = graph->rows};
    int32_t *labels = NULL;
    sp_status status;
    *more = false;
    TRY(sp_alloc(context, next.nodes, sizeof *next.map, (void **)&next.map));
    if (r->space == SP_DEVICE) TRY(sp_array_create(context, next.nodes, sizeof *labels, SP_DEVICE, (void **)&labels));
    TRY(r->labeller(context, r->user, graph, labels ? labels : next.map, &next.groups));
    if (next.groups >= next.nodes) goto done;
    if (labels) TRY(sp_array_copy(context, next.nodes, sizeof *labels, next.map, SP_HOST, labels, SP_DEVICE));
    TRY(sp_grow(context, made->count, made->count + 1, sizeof next, (void **)&made->level));
    TRY(contract_level(r, labels ? labels : next.map, &next));
    made->level[made->count++] = next;
    memset(&next, 0, sizeof next);
    *more = true;
done:
    sp_array_free(context, SP_DEVICE, labels);
    free_level(context, &next);
    return status;
}

sp_status contraction_repeat(sp_context *context, const sp_csr *g, int levels, contraction_labeller labeller,
                             void *user, const contraction_options *options, contraction_hierarchy *hierarchy)
{
    repetition r = {.context = context, .g = g, .labeller = labeller, .user = user, .options = options};
    bool more = true;
    sp_status status = sp_require_csr(context, __func__, "G", g);
    if (status == SP_OK) status = sp_require(context, __func__, "labeller", labeller ? &labeller : NULL);
    if (status == SP_OK) status = sp_require(context, __func__, "hierarchy", hierarchy);
    if (status == SP_OK) status = contraction_check_graph(context, g);
    if (status != SP_OK) return status;
    r.space = options && options->on_device && sp_context_is_cuda(context) ? SP_DEVICE : SP_HOST;
    if (r.space == SP_DEVICE && levels > 0) status = sp_csr_copy(context, g, SP_DEVICE, &r.here);
    while (status == SP_OK && more && r.made.count < levels) status = make_level(&r, &more);
    sp_csr_free(context, &r.here);
    if (status == SP_OK) *hierarchy = r.made;
    else contraction_hierarchy_free(context, &r.made);
    return status;
}

void contraction_hierarchy_free(sp_context *context, contraction_hierarchy *hierarchy)
{
    if (!hierarchy) return;
    for (int i = 0; i < hierarchy->count; i++) free_level(context, &hierarchy->level[i]);
    sp_free(context, hierarchy->level);
    memset(hierarchy, 0, sizeof *hierarchy);
}
