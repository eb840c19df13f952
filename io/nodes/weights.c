/* Weights of nodes: whole numbers, one or several a node, which stand in the order of the nodes. */
#include "arrays/npy.h"
#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "graphs/metis.h"
#include "nodes/nodes.h"
#include "text/number.h"
#include "text/words.h"

static const char REMEDY[] = "write whole numbers from 0 to 2^53 with blanks between them, as many in each line";

static sp_status count_error(sp_context *context, const char *name, int64_t found, int64_t nodes)
{
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: weights of %lld nodes, but the graph has %lld; write those of a "
                   "node a line, in the order of the nodes", name, (long long)found, (long long)nodes);
}

static sp_status read_lines(sp_context *context, io_source *source, int64_t nodes, int64_t **weights, int *each)
{
    const char *name = io_source_name(source), *line, *end;
    int64_t bytes = 0, lines = 0, count = 0, found = 0, capacity = 0;
    sp_status status;
    for (;;) {
        TRY(io_source_line(source, &line, &end, &bytes));
        if (!line) break;
        lines++;
        if (!io_trim_line(&line, &end)) continue;
        int fields = 0;
        for (const char *at = line; at < end; fields++) {
            const char *word = io_next_word(&at, end);
            int64_t weight;
            if (!io_parse_index(word, at, IO_MOST_NODE_WEIGHT, &weight))
                return io_fail_line(context, name, lines, "the weight is not a whole number", word, at, REMEDY);
            if (fields == IO_MOST_CONSTRAINTS || (*each && fields == *each))
                return io_fail_line(context, name, lines, "too many weights", line, end, REMEDY);
            TRY(io_reserve(context, count, count + 1, sizeof **weights, &capacity, (void **)weights));
            (*weights)[count++] = weight;
        }
        if (*each && fields < *each) return io_fail_line(context, name, lines, "too few weights", line, end, REMEDY);
        *each = fields;
        found++;
    }
    if (found != nodes) return count_error(context, name, found, nodes);
    if (nodes == 0) *each = 1;
done:
    return status;
}

static sp_status take_array(sp_context *context, const char *path, io_array *array, int64_t nodes, int64_t **weights,
                            int *each)
{
    const bool several = array->dimensions == 2;
    sp_status status;
    if (array->dimensions != 1 && !several)
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %d dimensions; save one, or two with a row a node", path,
                    array->dimensions));
    if (several && (array->shape[1] < 1 || array->shape[1] > IO_MOST_CONSTRAINTS))
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: %lld weights a node; save from 1 to %d", path,
                    (long long)array->shape[1], IO_MOST_CONSTRAINTS));
    if (array->shape[0] != nodes) TRY(count_error(context, path, array->shape[0], nodes));
    TRY(io_array_to_i64(context, path, array));
    for (int64_t i = 0; i < array->count; i++) {
        const int64_t weight = ((const int64_t *)array->values)[i];
        if (weight < 0 || weight > IO_MOST_NODE_WEIGHT)
            TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: element %lld (from 0) is no weight (got \"%lld\"); weights "
                        "are whole numbers from 0 to 2^53", path, (long long)i, (long long)weight));
    }
    *each = several ? (int)array->shape[1] : 1;
    *weights = array->values;
    array->values = NULL;
done:
    return status;
}

static sp_status read_array(sp_context *context, io_source *source, const volatile int *interrupt, int64_t nodes,
                            int64_t **weights, int *each)
{
    io_array array = {0};
    io_file file;
    sp_status status = io_file_of_source(context, source, interrupt, &file);
    if (status != SP_OK) return status;
    TRY(io_read_npy_file(&file, &array));
    TRY(take_array(context, io_source_name(source), &array, nodes, weights, each));
done:
    io_array_free(context, &array);
    io_file_close(&file);
    return status;
}

sp_status io_read_node_weights(sp_context *context, const char *path, const volatile int *interrupt, int64_t nodes,
                               int64_t **weights, int *each)
{
    io_content content;
    io_source *source;
    *weights = NULL;
    *each = 0;
    sp_status status = io_source_open(context, path, interrupt, &source);
    if (status != SP_OK) return status;
    TRY(io_detect_content(source, &content));
    status = content == IO_CONTENT_NPY ? read_array(context, source, interrupt, nodes, weights, each)
                                       : read_lines(context, source, nodes, weights, each);
done:
    io_source_close(source);
    if (status != SP_OK) {
        sp_free(context, *weights);
        *weights = NULL;
    }
    return status;
}
