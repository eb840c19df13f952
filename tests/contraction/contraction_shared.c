/* What the parts of test_contraction share. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contraction_shared.h"

void free_subject(sp_context *host, subject *s)
{
    sp_csr_free(host, &s->g);
    free(s->labels);
}

static int by_place(const void *x, const void *y)
{
    const placed *a = x, *b = y;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    if (a->col != b->col) return a->col < b->col ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

/* The entries of one place, as the operation says; *size is the sum of what is added, taken positive. */
static double combined(const placed *list, int64_t count, const sp_contract_options *how, double *size)
{
    double sum = -0.0, max = -INFINITY, min = INFINITY;
    *size = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += list[i].value;
        *size += fabs(list[i].value);
        max = fmax(max, list[i].value);
        min = fmin(min, list[i].value);
    }
    const double scale = how->half_loops && list->row == list->col ? 0.5 : 1;
    switch (how->combine) {
    case SP_COMBINE_SUM: return sum * scale;
    case SP_COMBINE_MAX: return max;
    case SP_COMBINE_MIN: return min;
    case SP_COMBINE_MEAN: return sum / (double)count;
    case SP_COMBINE_COUNT: return (double)count * scale;
    case SP_COMBINE_FIRST: break;
    }
    return list->value;
}

sp_csr definition(sp_context *host, const subject *s, const sp_contract_options *how, double **sizes,
                  int64_t *entries)
{
    placed *list = test_block(((size_t)s->g.nnz + 1) * sizeof *list);
    int64_t count = 0, places = 0;
    sp_csr c;
    *entries = 0;
    for (int64_t i = 0; i < s->g.rows; i++)
        for (int64_t k = s->g.row_offsets[i]; k < s->g.row_offsets[i + 1]; k++) {
            const int32_t p = s->labels[i], q = s->labels[s->g.col_indices[k]];
            if (p >= 0 && q >= 0) list[count++] = (placed){p, q, k, test_value(&s->g, k)};
        }
    qsort(list, (size_t)count, sizeof *list, by_place);
    ck_ok(host, sp_csr_create(host, s->groups, s->groups, count, s->g.value_type, SP_HOST, &c));
    *sizes = malloc(((size_t)count + 1) * sizeof **sizes);
    ck_assert_ptr_nonnull(*sizes);
    memset(c.row_offsets, 0, ((size_t)s->groups + 1) * sizeof(int64_t));
    for (int64_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && list[end].row == list[i].row && list[end].col == list[i].col;) end++;
        const bool loop = list[i].row == list[i].col;
        if (loop ? how->loops == SP_LOOPS_DROP : how->loops == SP_LOOPS_ONLY) continue;
        *entries += end - i;
        const double value = combined(list + i, end - i, how, &(*sizes)[places]);
        c.col_indices[places] = list[i].col;
        test_set(&c, places, value);
        c.row_offsets[list[i].row + 1]++;
        places++;
    }
    for (int64_t p = 0; p < s->groups; p++) c.row_offsets[p + 1] += c.row_offsets[p];
    c.nnz = places;
    free(list);
    return c;
}

static const char *const labelling_names[LABELLINGS] = {"scattered", "blocks", "rising", "partly labelled",
                                                        "skewed", "each alone", "one group", "no labels"};

static int32_t draw_label(test_random *random, labelling kind, int64_t node, int64_t nodes, int64_t groups)
{
    const double u = test_unit(random);
    switch (kind) {
    case BLOCKS: return (int32_t)(node * groups / nodes);
    case RISING: return (int32_t)(pow((double)node / (double)nodes, 3) * (double)groups); /* at last with gaps */
    case PARTLY: return u < 0.3 ? (int32_t)(-1 - test_below(random, INT32_MAX)) : (int32_t)test_below(random, groups);
    case SKEWED: return (int32_t)(u * u * u * (double)groups);
    case ALONE: return (int32_t)((groups - 1 - node % groups));
    case TOGETHER: return (int32_t)(groups / 2);
    case NOBODY: return -1;
    default: return (int32_t)test_below(random, groups);
    }
}

subject make_subject(sp_context *host, test_random *random, int64_t nodes, double degree, int64_t groups,
                     labelling kind, sp_value_type type, test_values values)
{
    subject s = {.groups = groups};
    s.g = product_matrix(host, random, nodes, nodes, degree, type, values);
    s.labels = test_block(((size_t)nodes + 1) * sizeof *s.labels);
    for (int64_t i = 0; i < nodes; i++) s.labels[i] = groups ? draw_label(random, kind, i, nodes, groups) : -1;
    snprintf(s.name, sizeof s.name, "%lld nodes, degree %g, %lld groups, %s, %s, values %d", (long long)nodes, degree,
             (long long)groups, labelling_names[kind], type == SP_F32 ? "f32" : "f64", (int)values);
    return s;
}

subject random_subject(sp_context *host, uint64_t seed)
{
    test_random random = test_seed(seed);
    const int64_t nodes = test_below(&random, test_below(&random, 4) ? 60 : 400);
    const int64_t most = test_below(&random, 8) == 0 ? 100000 : nodes + 3;
    const int64_t groups = test_below(&random, 3) ? 1 + test_below(&random, most / 4 + 1) : test_below(&random, most);
    const double degree = 12 * test_unit(&random) * test_unit(&random);
    const labelling kind = (labelling)test_below(&random, LABELLINGS);
    const sp_value_type type = test_below(&random, 2) ? SP_F32 : SP_F64;
    const test_values values = (test_values)test_below(&random, 4);
    subject s = make_subject(host, &random, nodes, degree, groups, kind, type, values);
    const size_t used = strlen(s.name);
    snprintf(s.name + used, sizeof s.name - used, ", seed %llu", (unsigned long long)seed);
    return s;
}

void make_symmetric(sp_context *host, subject *s)
{
    sp_csr transpose, sum;
    ck_ok(host, sp_csr_transpose(host, &s->g, &transpose));
    ck_ok(host, sp_csr_add(host, 1, &s->g, 1, &transpose, &sum));
    sp_csr_free(host, &transpose);
    sp_csr_free(host, &s->g);
    s->g = sum;
}
