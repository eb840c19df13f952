/* Clusterings: a line of labels a cluster, or mcl's native matrix. */
#include "internal.h"

void io_put_label_clusters(io_output *output, const io_clusters *clusters, const io_names *names)
{
    for (int64_t c = 0; c < clusters->clusters; c++) {
        for (int64_t i = clusters->offsets[c]; i < clusters->offsets[c + 1]; i++) {
            int64_t node = clusters->members[i];
            if (i > clusters->offsets[c]) io_output_bytes(output, "\t", 1);
            io_output_bytes(output, io_name(names, node), io_name_length(names, node));
        }
        io_output_bytes(output, "\n", 1);
    }
}

void io_put_native_clusters(io_output *output, const io_clusters *clusters, const int64_t *ids,
                            const char *command_line)
{
    char buffer[1 << 12];
    io_text text = {.output = output, .bytes = buffer, .capacity = sizeof buffer};
    io_native_writer writer;
    io_native_begin(&writer, &text, clusters->nodes, clusters->clusters, ids, false, command_line);
    for (int64_t c = 0; c < clusters->clusters; c++) {
        if (clusters->offsets[c] == clusters->offsets[c + 1]) continue;
        io_native_column(&writer, c, NULL, 0);
        for (int64_t i = clusters->offsets[c]; i < clusters->offsets[c + 1]; i++)
            io_native_entry(&writer, ids ? ids[clusters->members[i]] : clusters->members[i]);
        io_native_column_end(&writer);
    }
    io_native_end(&writer);
    io_output_bytes(output, buffer, text.used);
}

sp_status io_write_native_clusters(sp_context *context, const char *path, const io_clusters *clusters,
                                   const int64_t *ids, bool binary, const char *command_line)
{
    const sp_csr columns = {.rows = clusters->clusters, .cols = clusters->nodes,
                            .row_offsets = (int64_t *)clusters->offsets, .col_indices = (int32_t *)clusters->members};
    io_output *output;
    sp_status status = io_output_open(context, path, &output);
    if (status != SP_OK) return status;
    if (binary) io_put_native_binary(output, &columns, NULL, ids, NULL);
    else io_put_native_clusters(output, clusters, ids, command_line);
    return io_output_commit(output);
}
