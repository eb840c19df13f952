/* Contraction repeated: each level contracts the graph of the level before by labels that follow from that graph. */
#include <string.h>

#include "internal.h"

/* The quotient on the host. On failure `level` has what is to be freed. */
static sp_status contract_level(sp_context *context, const sp_csr *g, const contraction_options *options,
                                contraction_level *level)
{
    sp_csr c = {0};
    bool symmetric;
    sp_status status = contraction_quotient(context, g, level->map, level->groups, options, &c, NULL);
    if (status != SP_OK) return status;
    if (c.space == SP_HOST) {
        level->c = c;
    } else {
        status = sp_csr_copy(context, &c, SP_HOST, &level->c);
        sp_csr_free(context, &c);
    }
    if (status == SP_OK && options && options->undirected)
        status = contraction_mirror(context, &level->c, &symmetric);
    return status;
}

static void free_level(sp_context *context, contraction_level *level)
{
    sp_free(context, level->map);
    sp_csr_free(context, &level->c);
}

sp_status contraction_repeat(sp_context *context, const sp_csr *g, int levels, contraction_labeller labeller,
                             void *user, const contraction_options *options, contraction_hierarchy *hierarchy)
{
    contraction_hierarchy made = {0};
    contraction_level next = {0};
    sp_status status = sp_require_csr(context, __func__, "G", g);
    if (status == SP_OK) status = sp_require(context, __func__, "labeller", labeller ? &labeller : NULL);
    if (status == SP_OK) status = sp_require(context, __func__, "hierarchy", hierarchy);
    if (status == SP_OK) status = contraction_check_graph(context, g);
    if (status != SP_OK) return status;
    while (status == SP_OK && made.count < levels) {
        const sp_csr *graph = made.count ? &made.level[made.count - 1].c : g;
        next = (contraction_level){.nodes = graph->rows};
        TRY(sp_alloc(context, graph->rows, sizeof *next.map, (void **)&next.map));
        TRY(labeller(context, user, graph, next.map, &next.groups));
        if (next.groups >= next.nodes) break;
        TRY(sp_grow(context, made.count, made.count + 1, sizeof next, (void **)&made.level));
        graph = made.count ? &made.level[made.count - 1].c : g; /* the levels have moved */
        TRY(contract_level(context, graph, options, &next));
        made.level[made.count++] = next;
        memset(&next, 0, sizeof next);
    }
done:
    free_level(context, &next);
    if (status == SP_OK) *hierarchy = made;
    else contraction_hierarchy_free(context, &made);
    return status;
}

void contraction_hierarchy_free(sp_context *context, contraction_hierarchy *hierarchy)
{
    if (!hierarchy) return;
    for (int i = 0; i < hierarchy->count; i++) free_level(context, &hierarchy->level[i]);
    sp_free(context, hierarchy->level);
    memset(hierarchy, 0, sizeof *hierarchy);
}
