/* Generated matrices: the part that all kinds share, and the reading of specifications.
 *
 * A row is a function of the seed, the kind's parameters and its own number. It is made twice: once to count, once to
 * store. So rows are made in parallel, need no memory beyond the matrix, and are the same for any number of threads.
 * Kinds that are not defined row by row (R-MAT, clusters) make a list of edges first. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/search.h"
#include "recipe.h"

/* ---- places and names ---------------------------------------------------------------------------------- */

/* Parts are spread so evenly that the wanted one is close to the proportional guess. */
int64_t part_of(const int64_t *starts, int64_t parts, int64_t place)
{
    const double share = (double)(place - starts[0]) / (double)(starts[parts] - starts[0]);
    int64_t low = (int64_t)(share * (double)(parts - 1)), high = low;
    for (int64_t step = 4; low > 0 && starts[low] > place; step *= 2) low = low > step ? low - step : 0;
    for (int64_t step = 4; high < parts - 1 && starts[high + 1] <= place; step *= 2)
        high = parts - 1 - high > step ? high + step : parts - 1;
    return upper_bound_i64(starts, low + 1, high + 1, place) - 1;
}

uint64_t relabel(uint64_t x, int bits, uint64_t seed)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    const int shift = bits / 2 + 1;
    for (int round = 0; round < 4; round++) {
        const uint64_t key = stream(seed, LABELS, round);
        x = (x * (key | 1) + (key >> 32)) & mask;
        x ^= x >> shift;
    }
    return x;
}

sp_status shuffle(sp_context *context, recipe *r)
{
    int bits = 1;
    while ((int64_t)1 << bits < r->rows) bits++;
    sp_status status = sp_alloc(context, r->rows, sizeof *r->ids, (void **)&r->ids);
    if (status == SP_OK) status = sp_alloc(context, r->rows, sizeof *r->places, (void **)&r->places);
    if (status != SP_OK) return status;
    for (int64_t place = 0; place < r->rows; place++) {
        uint64_t id = (uint64_t)place;
        do id = relabel(id, bits, r->seed); /* repeated until it is below the number of rows, which keeps the mapping a
                                               bijection */
        while (id >= (uint64_t)r->rows);
        r->ids[place] = (int32_t)id;
        r->places[id] = (int32_t)place;
    }
    return SP_OK;
}

/* ---- rows to matrix ------------------------------------------------------------------------------------ */

/* Shell sort, because rows are short or nearly sorted. */
static void sort_columns(int32_t *list, int64_t count)
{
    for (int64_t gap = count > 12 ? (count * 4 - 1) / 9 : 1; gap > 0; gap = gap > 2 ? (gap * 4 - 1) / 9 : gap - 1)
        for (int64_t i = gap; i < count; i++) {
            const int32_t moving = list[i];
            int64_t j = i;
            for (; j >= gap && moving < list[j - gap]; j -= gap) list[j] = list[j - gap];
            list[j] = moving;
        }
}

static int64_t finish_row(const recipe *r, make_row *make, int64_t row, int32_t *cols)
{
    const int64_t count = make(r, row, cols);
    int64_t left = 0;
    sort_columns(cols, count);
    for (int64_t k = 0; k < count; k++)
        if (left == 0 || cols[left - 1] != cols[k]) cols[left++] = cols[k];
    return left;
}

/* Values in (0, 1], equal for (i, j) and (j, i). */
static void fill_values(const recipe *r, int64_t row, sp_csr *matrix)
{
    const uint64_t seed = stream(r->seed, VALUES, 0);
    for (int64_t k = matrix->row_offsets[row]; k < matrix->row_offsets[row + 1]; k++) {
        const double value = 1 - unit64(pair_hash(seed, row, matrix->col_indices[k]));
        if (matrix->value_type == SP_F32) ((float *)matrix->values)[k] = (float)value;
        else ((double *)matrix->values)[k] = value;
    }
}

static sp_status make_by_rows(sp_context *context, const recipe *r, make_row *make, sp_value_type type,
                              sp_csr *matrix)
{
    const int threads = sp_context_threads(context);
    int64_t *offsets = NULL;
    int32_t *scratch = NULL;
    sp_status status;
    TRY(sp_alloc(context, r->rows + 1, sizeof *offsets, (void **)&offsets));
    TRY(sp_alloc(context, (r->longest + 1) * threads, sizeof *scratch, (void **)&scratch));
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t i = 0; i < r->rows; i++)
        offsets[i + 1] = sp_context_interrupted(context) ? 0
                         : finish_row(r, make, i, scratch + (r->longest + 1) * omp_get_thread_num());
    offsets[0] = 0;
    for (int64_t i = 0; i < r->rows; i++) offsets[i + 1] += offsets[i];
    TRY(sp_csr_create(context, r->rows, r->cols, offsets[r->rows], type, SP_HOST, matrix));
    memcpy(matrix->row_offsets, offsets, ((size_t)r->rows + 1) * sizeof *offsets);
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t i = 0; i < r->rows; i++) {
        int32_t *cols = scratch + (r->longest + 1) * omp_get_thread_num();
        if (sp_context_interrupted(context)) continue;
        const int64_t count = finish_row(r, make, i, cols);
        memcpy(matrix->col_indices + offsets[i], cols, (size_t)count * sizeof *cols);
        fill_values(r, i, matrix);
    }
    if (sp_context_interrupted(context)) {
        sp_csr_free(context, matrix);
        status = sp_fail(context, SP_ERROR_INTERRUPTED, "interrupted");
    }
done:
    sp_free(context, offsets);
    sp_free(context, scratch);
    return status;
}

/* ---- edges to matrix ----------------------------------------------------------------------------------- */

static sp_status make_by_edges(sp_context *context, recipe *r, sp_status (*make)(sp_context *, recipe *, edge_list *),
                               bool symmetric, sp_value_type type, sp_csr *matrix)
{
    edge_list list = {0};
    sp_status status;
    TRY(make(context, r, &list));
    TRY(sp_csr_from_coo(context, &(sp_coo){.rows = r->rows, .cols = r->rows, .count = list.count,
                                           .row_indices = list.rows, .col_indices = list.cols, .value_type = type},
                        SP_COMBINE_FIRST, symmetric, matrix));
#pragma omp parallel for schedule(dynamic, 256) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < r->rows; i++) fill_values(r, i, matrix);
done:
    sp_free(context, list.rows);
    sp_free(context, list.cols);
    return status;
}

/* ---- numbering ----------------------------------------------------------------------------------------- */

typedef enum numbering { AS_MADE, SHUFFLED, SORTED } numbering;

/* The numbering as permutations for sp_csr_permute: row[new] = old, column[old] = new. */
static sp_status random_order(sp_context *context, uint64_t seed, int64_t count, int32_t **row, int32_t **column)
{
    recipe r = {.seed = seed, .rows = count};
    const sp_status status = shuffle(context, &r);
    *row = r.ids;
    *column = r.places;
    return status;
}

static sp_status degree_order(sp_context *context, const sp_csr *matrix, int32_t **row, int32_t **column)
{
    sp_status status;
    TRY(sp_alloc(context, matrix->rows, sizeof **row, (void **)row));
    TRY(sp_alloc(context, matrix->rows, sizeof **column, (void **)column));
    TRY(sp_csr_degree_order(context, matrix, *row, SP_HOST));
    for (int64_t i = 0; i < matrix->rows; i++) (*column)[(*row)[i]] = (int32_t)i;
done:
    return status;
}

static sp_status renumber(sp_context *context, numbering how, uint64_t seed, sp_csr *matrix)
{
    int32_t *row = NULL, *column = NULL, *other_row = NULL, *other_column = NULL;
    sp_csr made = {0};
    sp_status status;
    if (how == AS_MADE) return SP_OK;
    const bool square = matrix->rows == matrix->cols;
    if (how == SORTED && !square)
        return sp_fail(context, SP_ERROR_ARGUMENT, "/sorted numbers the nodes of a square matrix, not %lld x %lld",
                       (long long)matrix->rows, (long long)matrix->cols);
    TRY(how == SORTED ? degree_order(context, matrix, &row, &column)
                      : random_order(context, mix(seed), matrix->rows, &row, &column));
    if (!square) TRY(random_order(context, mix(seed + 1), matrix->cols, &other_row, &other_column));
    TRY(sp_csr_permute(context, matrix, row, square ? column : other_column, &made));
    sp_csr_free(context, matrix);
    *matrix = made;
done:
    sp_free(context, row);
    sp_free(context, column);
    sp_free(context, other_row);
    sp_free(context, other_column);
    return status;
}

/* ---- reading a specification --------------------------------------------------------------------------- */

static const kind *const kind_lists[] = {mesh_kinds, network_kinds, edge_kinds};
enum { KIND_LISTS = sizeof kind_lists / sizeof *kind_lists };

static const kind *find_kind(const char *name, size_t length)
{
    for (int i = 0; i < KIND_LISTS; i++)
        for (const kind *k = kind_lists[i]; k->name; k++)
            if (length == strlen(k->name) && memcmp(k->name, name, length) == 0) return k;
    return NULL;
}

static sp_status unknown_kind(sp_context *context, const char *spec)
{
    char names[400] = "";
    for (int i = 0; i < KIND_LISTS; i++)
        for (const kind *k = kind_lists[i]; k->name; k++) {
            const bool last = i + 1 == KIND_LISTS && !k[1].name;
            const size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", !used ? "" : last ? " or " : ", ", k->name);
        }
    return sp_fail(context, SP_ERROR_ARGUMENT, "\"%.60s\" begins with no kind of matrix: %s, a colon and numbers",
                   spec, names);
}

static const parameter *parameter_of(const kind *k, int index) { return &k->parameters[k->repeats ? 0 : index]; }

static sp_status wrong_count(sp_context *context, const char *spec, const kind *k)
{
    char names[160] = "";
    const int named = k->repeats ? 3 : k->most; /* three of a repeated parameter are shown as an example */
    for (int i = 0; i < named; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? "," : "", parameter_of(k, i)->name);
    }
    return sp_fail(context, SP_ERROR_ARGUMENT, "\"%.60s\" has not the form %s:%s%s", spec, k->name, names,
                   k->repeats ? ",..." : k->least < k->most ? " (the last may be left out)" : "");
}

static bool read_numbering(const char *word, numbering *how)
{
    *how = strcmp(word, "/shuffled") == 0 ? SHUFFLED : strcmp(word, "/sorted") == 0 ? SORTED : AS_MADE;
    return *how != AS_MADE || *word == '\0';
}

/* Digits with or without a point, in any locale. */
static const char *read_number(const char *at, double *number)
{
    double scale = 1;
    bool point = false, digits = false;
    for (*number = 0; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        digits = true;
        *number = *number * 10 + (*at - '0');
        if (point) scale *= 10;
    }
    *number /= scale;
    return digits ? at : NULL;
}

static sp_status read_parameters(sp_context *context, const char *spec, const char *at, const kind *k, recipe *r,
                                 numbering *how)
{
    do {
        double number;
        if (r->count == k->most || !(at = read_number(at + 1, &number))) return wrong_count(context, spec, k);
        const parameter *p = parameter_of(k, r->count);
        if (number < p->low || number > p->high || (!p->fraction && number != floor(number)))
            return sp_fail(context, SP_ERROR_ARGUMENT, "\"%.60s\": %s is %.12g, not a %s from %.10g to %.10g", spec,
                           p->name, number, p->fraction ? "number" : "whole number", p->low, p->high);
        r->p[r->count++] = number;
    } while (*at == ',');
    return read_numbering(at, how) && r->count >= k->least ? SP_OK : wrong_count(context, spec, k);
}

sp_status generate_matrix(sp_context *context, const char *spec, uint64_t seed, sp_value_type type, sp_csr *matrix)
{
    recipe r = {.seed = mix(seed)};
    numbering how = AS_MADE;
    sp_csr made = {0};
    const size_t length = strcspn(spec, ":");
    const kind *k = find_kind(spec, length);
    sp_status status;
    if (!k) return unknown_kind(context, spec);
    if (!spec[length]) return wrong_count(context, spec, k);
    TRY(read_parameters(context, spec, spec + length, k, &r, &how));
    if (k->edges) {
        TRY(make_by_edges(context, &r, k->edges, k->symmetric, type, &made));
    } else {
        TRY(k->prepare(context, &r));
        if (r.cols == 0) r.cols = r.rows;
        TRY(make_by_rows(context, &r, k->row, type, &made));
    }
    TRY(renumber(context, how, r.seed, &made));
    *matrix = made;
    made = (sp_csr){0};
done:
    sp_csr_free(context, &made);
    sp_free(context, r.starts);
    sp_free(context, r.ids);
    sp_free(context, r.places);
    return status;
}
