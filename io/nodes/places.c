/* The nodes of one graph in another. */
#include "nodes/labelling.h"

sp_status io_find_nodes(sp_context *context, const io_graph *from, const io_graph *to, int32_t *places)
{
    io_labels table;
    if (from->nodes > 0 && to->nodes > 0 && (from->names.count > 0) != (to->names.count > 0))
        return sp_fail(context, SP_ERROR_ARGUMENT, "one of the graphs has names of nodes, the other has not");
    for (int64_t i = 0; i < from->nodes && from->names.count == 0; i++)
        places[i] = (int32_t)io_node_of_id(to, from->ids ? from->ids[i] : i);
    if (from->names.count == 0) return SP_OK;
    const sp_status status = io_labels_index(context, &to->names, &table);
    for (int64_t i = 0; i < from->nodes && status == SP_OK; i++) {
        const char *name = io_name(&from->names, i);
        const size_t length = io_name_length(&from->names, i);
        places[i] = io_labels_find(&table, name, length, io_label_hash(name, length));
    }
    sp_free(context, table.slots);
    return status;
}
