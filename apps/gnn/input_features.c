/* Features of nodes that have none of their own: their degree, or a column each. */
#include "input.h"

const char *const gnn_feature_words[] = {"file", "degree", "identity", NULL};

enum { DEGREE_COLUMNS = 32 };

/* 0 for no neighbour, else 1 + the whole part of the logarithm of their number to base 2. */
static int32_t degree_column(int64_t degree)
{
    int32_t column = 0;
    for (; degree > 0 && column < DEGREE_COLUMNS - 1; degree /= 2) column++;
    return column;
}

sp_status gnn_input_make_features(sp_context *context, gnn_made_features how, gnn_input *input)
{
    const sp_csr *graph = &input->data.graph;
    const int64_t nodes = graph->rows;
    sp_csr made;
    sp_status status = sp_csr_create(context, nodes, how == GNN_FEATURES_DEGREE ? DEGREE_COLUMNS : nodes, nodes, SP_F32,
                                     SP_HOST, &made);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < nodes; i++) {
        const int64_t degree = graph->row_offsets[i + 1] - graph->row_offsets[i];
        made.row_offsets[i + 1] = i + 1;
        made.col_indices[i] = how == GNN_FEATURES_DEGREE ? degree_column(degree) : (int32_t)i;
        ((float *)made.values)[i] = 1;
    }
    made.row_offsets[0] = 0;
    sp_dense_free(context, &input->data.features.dense);
    sp_csr_free(context, &input->data.features.sparse);
    io_names_free(context, &input->features);
    input->data.features = (gnn_features){.sparse = made};
    return SP_OK;
}
