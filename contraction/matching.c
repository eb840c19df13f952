/* Heavy-edge matching (Karypis and Kumar, "A fast and high quality multilevel scheme for partitioning irregular
 * graphs", 1998): nodes in random order, each unmatched one joined with its heaviest unmatched neighbour. O(nnz). */
#include "base/random.h"
#include "internal.h"

/* Fisher and Yates; the bias of the remainder is below 2^-33. */
static void shuffle(int32_t *order, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) order[i] = (int32_t)i;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = (int64_t)(next64(&seed) % (uint64_t)(i + 1));
        const int32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

/* The heaviest neighbour without a mate, the first of equals; the node itself if all have mates. */
static int32_t choose_mate(const sp_csr *g, const int32_t *mate, int32_t node)
{
    int32_t best = node;
    double weight = 0;
    for (int64_t k = g->row_offsets[node]; k < g->row_offsets[node + 1]; k++) {
        const int32_t other = g->col_indices[k];
        if (other == node || mate[other] >= 0) continue;
        const double value = entry_value(g, k);
        if (best != node && value <= weight) continue;
        best = other;
        weight = value;
    }
    return best;
}

sp_status contraction_match(sp_context *context, const sp_csr *g, uint64_t seed, int32_t *labels, int64_t *groups)
{
    int32_t *order = NULL, *mate = NULL;
    int64_t count = 0;
    sp_status status;
    TRY(contraction_require(context, __func__, g, labels));
    TRY(sp_require(context, __func__, "groups", groups));
    TRY(contraction_check_graph(context, g));
    TRY(sp_alloc(context, g->rows, sizeof *order, (void **)&order));
    TRY(sp_alloc(context, g->rows, sizeof *mate, (void **)&mate));
    shuffle(order, g->rows, seed);
    for (int64_t i = 0; i < g->rows; i++) mate[i] = -1;
    for (int64_t i = 0; i < g->rows; i++) {
        const int32_t node = order[i];
        if (mate[node] >= 0) continue;
        const int32_t other = choose_mate(g, mate, node);
        mate[node] = other;
        mate[other] = node;
    }
    for (int64_t i = 0; i < g->rows; i++) labels[i] = mate[i] < i ? labels[mate[i]] : (int32_t)count++;
    *groups = count;
done:
    sp_free(context, mate);
    sp_free(context, order);
    return status;
}
