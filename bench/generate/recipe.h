/* Shared by the kinds of generated matrices: random numbers, parameters, lists of edges. */
#ifndef GENERATE_RECIPE_H
#define GENERATE_RECIPE_H

#include <stdio.h>

#include "base/random.h"
#include "base/try.h"
#include "generate.h"

/* ---- random numbers ------------------------------------------------------------------------------------ */

static inline uint64_t mix(uint64_t z) { return mix64(z + RANDOM_STEP); }

/* A separate stream for each number of each purpose. */
static inline uint64_t stream(uint64_t seed, uint64_t purpose, int64_t number)
{
    return mix(mix(seed + purpose * 0x632be59bd9b4e019u) ^ (uint64_t)number);
}

static inline double draw(uint64_t *state) { return unit64(mix(*state += 0x632be59bd9b4e019u)); }

static inline int64_t below(uint64_t *state, int64_t bound) { return (int64_t)(draw(state) * (double)bound); }

/* The same number for (i, j) and (j, i). */
static inline uint64_t pair_hash(uint64_t seed, int64_t i, int64_t j)
{
    const uint64_t low = (uint64_t)(i < j ? i : j), high = (uint64_t)(i < j ? j : i);
    return mix(mix(seed ^ low) ^ high * 3);
}

enum { ROWS_OF_KIND = 1, LENGTHS, HOSTS, NODES, LABELS, VALUES, PAIRS }; /* purposes of streams */

/* ---- what a kind is ------------------------------------------------------------------------------------ */

enum { MAX_PARAMETERS = 12 };

typedef struct recipe {
    uint64_t seed;
    double p[MAX_PARAMETERS];
    int count;        /* used elements of p */
    int64_t rows, cols;
    int64_t longest;  /* bound of a row's entries, including repetitions */
    int64_t *starts;  /* first elements of the parts of rows (web: hosts, fem3d: nodes), or of edges (powerlaw); NULL:
                         not used */
    int64_t parts;
    int32_t *ids, *places; /* shuffled: the id of each place, the place of each id; knn: nodes by cell */
} recipe;

/* Writes the columns of a row, in any order, possibly repeated. Returns their number. */
typedef int64_t make_row(const recipe *r, int64_t row, int32_t *cols);

static inline int64_t whole(const recipe *r, int parameter) { return (int64_t)r->p[parameter]; }

/* rows := the product of the first `parameters` parameters, if that is a possible dimension. */
static inline sp_status set_rows(sp_context *context, recipe *r, int parameters)
{
    double rows = 1;
    for (int i = 0; i < parameters; i++) rows *= r->p[i];
    r->rows = rows <= INT32_MAX ? (int64_t)rows : 0;
    if (rows <= INT32_MAX) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%.10g rows: dimensions end at %d", rows, INT32_MAX);
}

/* The last part that starts at or before `place`, which is not before the first part. starts[parts] is the end of
 * all. */
int64_t part_of(const int64_t *starts, int64_t parts, int64_t place);
/* A permutation of the rows: ids and places. */
sp_status shuffle(sp_context *context, recipe *r);
/* A random-looking bijection of the numbers of `bits` bits, so that hubs do not all have small numbers. */
uint64_t relabel(uint64_t x, int bits, uint64_t seed);

/* ---- lists of edges ------------------------------------------------------------------------------------ */

typedef struct edge_list {
    int64_t count, capacity;
    int32_t *rows, *cols;
} edge_list;

/* ---- kinds --------------------------------------------------------------------------------------------- */

typedef struct parameter {
    const char *name;
    double low, high;
    bool fraction; /* may be a fraction */
} parameter;

enum { MOST_NAMED = 7 };

typedef struct kind {
    const char *name;
    int least, most; /* numbers of parameters */
    parameter parameters[MOST_NAMED];
    sp_status (*prepare)(sp_context *, recipe *); /* for kinds made by rows */
    make_row *row;
    sp_status (*edges)(sp_context *, recipe *, edge_list *);
    bool symmetric; /* the edges are symmetric */
    bool repeats;   /* the only named parameter may be repeated */
} kind;

#define WHOLE(name, low, high) {name, low, high, false}
#define NUMBER(name, low, high) {name, low, high, true}
#define SIZE(name) WHOLE(name, 1, INT32_MAX)
#define PERCENT(name) NUMBER(name, 0, 100)
#define BY_ROWS(kind) .prepare = prepare_##kind, .row = kind##_row

/* Each list ends with a kind without a name. */
extern const kind mesh_kinds[], network_kinds[], edge_kinds[];

#endif
