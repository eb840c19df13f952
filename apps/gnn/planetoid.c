/* planetoid's files ind.NAME.x, .tx, .allx, .y, .ty, .ally, .graph, .test.index (Yang, Cohen and Salakhutdinov 2016):
 * pickles of scipy's matrices, NumPy's arrays and a dictionary of neighbours. The split is that of Kipf and Welling
 * (2017): the nodes of .y to train, the next 500 to validate, those of .test.index to test. Nodes that are in no file
 * but the graph have neither features nor a class, loops are left out.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/tool.h"
#include "input.h"

/* Nodes but those for testing; those for testing, in the order of NAME.test.index; the first nodes, to train with. */
typedef struct planetoid {
    const char *name;
    const volatile int *interrupt;
    sp_csr others, tests;
    io_array classes, test_classes, train_classes;
    int32_t *index;
    int64_t count, nodes;
} planetoid;

enum { PLANETOID_VALIDATION = 500 };

static sp_status open_part(sp_context *context, const planetoid *p, const char *part, io_pickle **pickle)
{
    char path[PATH_MAX];
    *pickle = NULL;
    if (snprintf(path, sizeof path, "%s.%s", p->name, part) >= PATH_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", p->name, strerror(ENAMETOOLONG));
    return io_pickle_open(context, path, p->interrupt, pickle);
}

static sp_status read_part_matrix(sp_context *context, const planetoid *p, const char *part, sp_csr *matrix)
{
    io_pickle *pickle;
    sp_status status = open_part(context, p, part, &pickle);
    if (status == SP_OK) status = io_pickle_matrix(pickle, matrix);
    if (status == SP_OK) status = io_check_features(context, p->name, matrix);
    io_pickle_close(pickle);
    return status;
}

static sp_status read_part_classes(sp_context *context, const planetoid *p, const char *part, io_array *array)
{
    io_pickle *pickle;
    sp_status status = open_part(context, p, part, &pickle);
    if (status == SP_OK) status = io_pickle_array(pickle, array);
    if (status == SP_OK) status = io_array_to_f32(context, p->name, array);
    if (status == SP_OK && array->dimensions != 2)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s.%s: %d dimensions; classes have two", p->name, part,
                         array->dimensions);
    io_pickle_close(pickle);
    return status;
}

static sp_status read_test_index(sp_context *context, planetoid *p)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s.test.index", p->name) >= PATH_MAX)
        return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", p->name, strerror(ENAMETOOLONG));
    sp_status status = io_read_numbers(context, path, p->interrupt, p->others.rows, INT32_MAX - 1, NULL, &p->index,
                                       &p->count);
    p->nodes = p->others.rows;
    for (int64_t i = 0; status == SP_OK && i < p->count; i++)
        if (p->index[i] >= p->nodes) p->nodes = (int64_t)p->index[i] + 1;
    return status;
}

static sp_status read_planetoid(sp_context *context, planetoid *p)
{
    sp_status status;
    TRY(read_part_matrix(context, p, "allx", &p->others));
    TRY(read_part_matrix(context, p, "tx", &p->tests));
    TRY(read_part_classes(context, p, "ally", &p->classes));
    TRY(read_part_classes(context, p, "ty", &p->test_classes));
    TRY(read_part_classes(context, p, "y", &p->train_classes));
    TRY(read_test_index(context, p));
    const int64_t *c = p->classes.shape, *t = p->test_classes.shape, *y = p->train_classes.shape;
    const bool rows = c[0] == p->others.rows && t[0] == p->tests.rows && p->count == t[0] && y[0] <= c[0];
    /* Files that leave nodes out (citeseer's) leave few. */
    if (!rows || c[1] != t[1] || c[1] != y[1] || c[1] > IO_MOST_CLASSES || p->others.cols != p->tests.cols ||
        p->nodes > 2 * (p->others.rows + p->count))
        TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s: the sizes of .allx, .tx, .ally, .ty, .y and .test.index differ",
                    p->name));
done:
    return status;
}

/* The class of a row of 0 and 1, -1 if it has none. */
static sp_status class_of_row(sp_context *context, const planetoid *p, const char *part, const io_array *classes,
                              int64_t row, int32_t *label)
{
    const float *values = (const float *)classes->values + row * classes->shape[1];
    int64_t ones = 0;
    bool others = false;
    *label = -1;
    for (int64_t k = 0; k < classes->shape[1]; k++) {
        others = others || (values[k] != 0 && values[k] != 1);
        if (values[k] != 1) continue;
        *label = (int32_t)k;
        ones++;
    }
    if (ones <= 1 && !others) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT,
                   "%s.%s: row %lld (from 0) is no class; write a 1 for it among zeros, zeros alone where it is "
                   "unknown", p->name, part, (long long)row);
}

/* Rows of the nodes in their own order: of those that are in no file none. */
static sp_status join_rows(sp_context *context, const planetoid *p, const int32_t *test_row, sp_csr *features)
{
    int64_t at = 0;
    sp_status status = sp_csr_create(context, p->nodes, p->others.cols, p->others.nnz + p->tests.nnz, SP_F32, SP_HOST,
                                     features);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < p->nodes; i++) {
        const bool test = i >= p->others.rows;
        const sp_csr *from = test ? &p->tests : &p->others;
        const int64_t row = test ? test_row[i - p->others.rows] : i;
        features->row_offsets[i] = at;
        if (row < 0) continue;
        const int64_t begin = from->row_offsets[row], count = from->row_offsets[row + 1] - begin;
        memcpy(features->col_indices + at, from->col_indices + begin, (size_t)count * sizeof *from->col_indices);
        memcpy((float *)features->values + at, (const float *)from->values + begin, (size_t)count * sizeof(float));
        at += count;
    }
    features->row_offsets[p->nodes] = at;
    return SP_OK;
}

static sp_status label_planetoid(sp_context *context, const planetoid *p, gnn_data *data)
{
    const int64_t others = p->others.rows, train = p->train_classes.shape[0];
    sp_status status = SP_OK;
    for (int64_t i = others; i < p->nodes; i++) data->labels[i] = -1;
    for (int64_t i = 0; i < others; i++) TRY(class_of_row(context, p, "ally", &p->classes, i, &data->labels[i]));
    for (int64_t k = 0; k < p->count; k++)
        TRY(class_of_row(context, p, "ty", &p->test_classes, k, &data->labels[p->index[k]]));
    for (int64_t i = 0; i < others && i < train + PLANETOID_VALIDATION; i++)
        data->split[i] = i < train ? GNN_TRAIN : GNN_VALIDATION;
    for (int64_t k = 0; k < p->count; k++) data->split[p->index[k]] = GNN_TEST;
done:
    return status;
}

static sp_status make_planetoid(sp_context *context, const planetoid *p, gnn_input *input)
{
    gnn_data *data = &input->data;
    const int64_t others = p->others.rows, behind = p->nodes - others;
    int32_t *test_row = NULL;
    io_pickle *graph = NULL;
    sp_status status;
    TRY(sp_alloc(context, behind, sizeof *test_row, (void **)&test_row));
    for (int64_t i = 0; i < behind; i++) test_row[i] = -1;
    for (int64_t k = 0; k < p->count; k++) {
        if (test_row[p->index[k] - others] >= 0)
            TRY(sp_fail(context, SP_ERROR_ARGUMENT, "%s.test.index: node %d is there twice", p->name,
                        (int)p->index[k]));
        test_row[p->index[k] - others] = (int32_t)k;
    }
    TRY(join_rows(context, p, test_row, &data->features.sparse));
    TRY(open_part(context, p, "graph", &graph));
    TRY(io_pickle_lists(graph, p->nodes, &data->graph));
    TRY(sp_alloc(context, p->nodes, sizeof *data->labels, (void **)&data->labels));
    TRY(sp_calloc(context, p->nodes, 1, (void **)&data->split));
    TRY(label_planetoid(context, p, data));
    data->classes = p->classes.shape[1];
    input->has_split = true;
done:
    io_pickle_close(graph);
    sp_free(context, test_row);
    return status;
}

sp_status gnn_input_planetoid(sp_context *context, const char *name, const gnn_input_options *options,
                              gnn_input *input)
{
    planetoid p = {.name = name, .interrupt = options->interrupt};
    sp_status status = read_planetoid(context, &p);
    if (status == SP_OK) status = make_planetoid(context, &p, input);
    sp_csr_free(context, &p.others);
    sp_csr_free(context, &p.tests);
    io_array_free(context, &p.classes);
    io_array_free(context, &p.test_classes);
    io_array_free(context, &p.train_classes);
    sp_free(context, p.index);
    return status;
}
