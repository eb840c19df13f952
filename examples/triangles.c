/* Triangles of an undirected graph, each once: the sum of (L·L) ∘ L, where L is the lower triangle of its pattern
 * (Azad, Buluc and Gilbert 2015). Entries of L·L where the mask L has none are never formed.
 *
 *   cc triangles.c -o triangles $(pkg-config --cflags --libs libsparse)
 *   ./triangles rmat:16,16          of a graph made up, as sp_generate takes it
 */
#include <sparse.h>
#include <stdio.h>

#define TRY(call)              \
    do {                       \
        status = (call);       \
        if (status) goto done; \
    } while (0)

static sp_status count_triangles(sp_context *context, const sp_csr *graph, double *triangles)
{
    sp_csr reverse = {0}, both = {0}, lower = {0}, wedges = {0};
    double *sums = NULL, total = 0;
    sp_status status;
    TRY(sp_csr_transpose(context, graph, &reverse));
    TRY(sp_csr_add(context, 1, graph, 1, &reverse, &both)); /* from here on where the context computes */
    TRY(sp_csr_select(context, &both, SP_SELECT_LOWER, -1, &lower));
    const sp_spgemm_options options = {.semiring = SP_PLUS_PAIR, .mask = &lower};
    TRY(sp_spgemm(context, &lower, &lower, &options, &wedges, NULL));
    TRY(sp_alloc(context, wedges.rows, sizeof *sums, (void **)&sums));
    TRY(sp_csr_reduce_rows(context, &wedges, SP_COMBINE_SUM, sums, SP_HOST));
    for (int64_t i = 0; i < wedges.rows; i++) total += sums[i];
    *triangles = total;
done:
    sp_free(context, sums);
    sp_csr_free(context, &wedges);
    sp_csr_free(context, &lower);
    sp_csr_free(context, &both);
    sp_csr_free(context, &reverse);
    return status;
}

int main(int argc, char **argv)
{
    sp_context *context;
    sp_csr graph = {0};
    double triangles = 0;
    if (sp_context_create(NULL, &context) != SP_OK) return 1;
    sp_status status = sp_generate(context, argc > 1 ? argv[1] : "rmat:16,16", 1, SP_F64, &graph);
    if (status == SP_OK) status = count_triangles(context, &graph, &triangles);
    if (status == SP_OK) printf("%.0f triangles\n", triangles);
    else fprintf(stderr, "%s\n", sp_last_error(context));
    sp_csr_free(context, &graph);
    sp_context_destroy(context);
    return status != SP_OK;
}
