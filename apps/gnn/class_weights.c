/* The weights of classes in the loss: balanced, or from a table with a row for each class. */
#include <math.h>
#include <string.h>

#include "job.h"

/* The table's only column of weights. */
static sp_status take_column(gnn_job *job, const char *path, const io_node_table *table)
{
    const int64_t classes = job->data.classes;
    if (table->columns != 1 || table->column[0].is_text)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: a row has a class and its weight, a number, and nothing else",
                       path);
    for (int64_t c = 0; c < classes; c++) {
        const double weight = table->column[0].values[c];
        const io_names *names = &job->input.classes;
        const bool named = names->count > 0;
        const int length = named ? (int)io_name_length(names, c) : 0;
        if (weight >= 0 && isfinite(weight)) continue;
        if (isnan(weight))
            return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: class %lld (from 0)%s%.*s has no weight", path,
                           (long long)c, named ? ", " : "", length, named ? io_name(names, c) : "");
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: class %lld (from 0)%s%.*s has a weight of %g; weights are not"
                       " negative", path, (long long)c, named ? ", " : "", length, named ? io_name(names, c) : "",
                       weight);
    }
    const sp_status status = sp_alloc(job->host, classes, sizeof *job->class_weights, (void **)&job->class_weights);
    if (status == SP_OK)
        memcpy(job->class_weights, table->column[0].values, (size_t)classes * sizeof *job->class_weights);
    return status;
}

/* The classes are the table's "nodes": by their names, else by their numbers from 0. Rows of other classes are passed
 * over; a class without a row is refused. */
static sp_status from_file(gnn_job *job, const char *path)
{
    const io_graph classes = {.format = IO_CSR, .nodes = job->data.classes, .names = job->input.classes};
    const io_node_options options = {.row = "class", .skip_unknown = true, .interrupt = &interrupt_signal};
    io_node_table table = {0};
    sp_status status;
    TRY(io_read_node_table(job->host, path, &classes, &options, &table));
    TRY(take_column(job, path, &table));
    job->how.class_weights = job->class_weights;
done:
    io_node_table_free(job->host, &table);
    return status;
}

sp_status gnn_take_class_weights(gnn_job *job)
{
    const char *how = job->settings->class_weights;
    if (!how) return SP_OK;
    if (job->data.targets)
        return sp_fail(job->host, SP_ERROR_ARGUMENT, "%s: nodes have several classes; --class-weights is for one class"
                       " a node", job->settings->folder);
    job->how.balance_classes = strcmp(how, "balanced") == 0;
    return job->how.balance_classes ? SP_OK : from_file(job, how);
}
