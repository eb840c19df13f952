/* Trains a graph neural network that learns two classes of nodes from one node of each: the graph is two triangles, and
 * all nodes of a triangle have the same class. Prints the class of each node.
 *
 *   cc cliques.c -o cliques $(pkg-config --cflags --libs libsparse-gnn)
 *   ./cliques
 */
#include <gnn.h>
#include <stdio.h>

#define TRY(call)              \
    do {                       \
        status = (call);       \
        if (status) goto done; \
    } while (0)

enum { NODES = 6, CLIQUE = 3, EDGES = NODES * (CLIQUE - 1) };

int main(void)
{
    int64_t offsets[NODES + 1], edges = 0;
    int32_t columns[EDGES], labels[NODES] = {0, 0, 0, 1, 1, 1}, classes[NODES];
    float features[NODES * NODES] = {0}; /* each node's own */
    uint8_t split[NODES] = {GNN_TRAIN, GNN_TEST, GNN_TEST, GNN_TRAIN, GNN_TEST, GNN_TEST};
    for (int i = 0; i < NODES; i++) {
        offsets[i] = edges;
        features[NODES * i + i] = 1;
        for (int j = i / CLIQUE * CLIQUE; j < i / CLIQUE * CLIQUE + CLIQUE; j++)
            if (j != i) columns[edges++] = j;
    }
    offsets[NODES] = edges;
    const gnn_data data = {
        .graph = {.rows = NODES, .cols = NODES, .nnz = EDGES, .row_offsets = offsets, .col_indices = columns},
        .features.dense = {.rows = NODES, .cols = NODES, .stride = NODES, .values = features},
        .classes = 2, .labels = labels, .split = split};
    const gnn_trainer_options options = {.model = {.layer = GNN_GCN, .layers = 2, .hidden = 8}, .epochs = 100};
    sp_context *context = NULL;
    gnn_engine *engine = NULL;
    gnn_trainer *trainer = NULL;
    gnn_epoch epoch;
    bool last = false;
    sp_status status;
    TRY(sp_context_create(&(sp_context_options){.device = "cpu"}, &context));
    TRY(gnn_engine_create(context, 1, &engine));
    TRY(gnn_data_check(context, &data));
    TRY(gnn_trainer_create(engine, &data, &options, &trainer));
    while (!last) TRY(gnn_trainer_epoch(trainer, &epoch, &last));
    TRY(gnn_trainer_predict(trainer, classes, NULL, NULL));
    for (int i = 0; i < NODES; i++) printf("%d", classes[i]);
    puts("");
done:
    if (status) fprintf(stderr, "cliques: %s\n", sp_last_error(context));
    gnn_trainer_free(trainer);
    gnn_engine_free(engine);
    sp_context_destroy(context);
    return status != SP_OK;
}
