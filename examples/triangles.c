/* Counts the triangles of an undirected graph: the sum of (L·L) ∘ L, where L is the lower triangle of its pattern
 * (Azad, Buluc and Gilbert 2015). L is also the mask, so only entries of L·L at the places of L are formed.
 *
 *   cc triangles.c -o triangles $(pkg-config --cflags --libs libsparse)
 *   ./triangles graph.txt           an edge FROM TO a line, nodes are numbered from 0
 */
#include <sparse.h>
#include <stdio.h>

#define TRY(call)              \
    do {                       \
        status = (call);       \
        if (status) goto done; \
    } while (0)

/* Reads the edges in a file as a pattern. */
static sp_status read_edges(sp_context *context, const char *path, sp_csr *graph)
{
    FILE *file = fopen(path, "r");
    void *from = NULL, *to = NULL;
    int64_t count = 0, capacity = 0;
    int32_t nodes = 0, i, j;
    sp_status status = SP_OK;
    if (!file) return sp_fail(context, SP_ERROR_ARGUMENT, "%s cannot be read", path);
    while (fscanf(file, "%d %d", &i, &j) == 2) {
        if (i < 0 || j < 0 || i == INT32_MAX || j == INT32_MAX)
            TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %d %d is no edge", path, i, j));
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            TRY(sp_grow(context, count, capacity, sizeof(int32_t), &from));
            TRY(sp_grow(context, count, capacity, sizeof(int32_t), &to));
        }
        ((int32_t *)from)[count] = i;
        ((int32_t *)to)[count++] = j;
        if (i >= nodes) nodes = i + 1;
        if (j >= nodes) nodes = j + 1;
    }
    if (!feof(file)) TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: line %lld is no edge", path, (long long)count + 1));
    TRY(sp_csr_from_coo(context, &(sp_coo){.rows = nodes, .cols = nodes, .count = count, .row_indices = from,
                                           .col_indices = to, .value_type = SP_F64}, SP_COMBINE_FIRST, false, graph));
done:
    sp_free(context, from);
    sp_free(context, to);
    fclose(file);
    return status;
}

static sp_status count_triangles(sp_context *context, const sp_csr *graph, double *triangles)
{
    sp_csr reverse = {0}, both = {0}, lower = {0}, wedges = {0};
    double *sums = NULL, total = 0;
    sp_status status;
    TRY(sp_csr_transpose(context, graph, &reverse));
    TRY(sp_csr_add(context, 1, graph, 1, &reverse, &both)); /* lies where the context computes */
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
    if (argc != 2) {
        fprintf(stderr, "usage: triangles graph.txt\n");
        return 1;
    }
    if (sp_context_create(NULL, &context) != SP_OK) {
        fprintf(stderr, "%s\n", sp_last_error(NULL));
        return 1;
    }
    sp_status status = read_edges(context, argv[1], &graph);
    if (status == SP_OK) status = count_triangles(context, &graph, &triangles);
    if (status == SP_OK) printf("%.0f triangles\n", triangles);
    else fprintf(stderr, "%s\n", sp_last_error(context));
    sp_csr_free(context, &graph);
    sp_context_destroy(context);
    return status != SP_OK;
}
