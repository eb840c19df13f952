/* What the parts of test_gnn_sampler share. */
#ifndef TESTS_GNN_SAMPLER_SHARED_H
#define TESTS_GNN_SAMPLER_SHARED_H

#include "support.h"
#include "gnn.h"

/* Where a test runs. */
typedef struct place {
    sp_context *context;
    uint64_t seed;
} place;

place place_open(int device, int threads, uint64_t seed);
void place_close(place *p);

/* All minibatches of a pass, on the host. */
typedef struct sample {
    int64_t count;
    gnn_minibatch *minibatch;
} sample;

sample draw_pass(place *p, gnn_sampler *sampler, const int32_t *nodes, int64_t count, int64_t pass);
void free_sample(place *p, sample *all);

/* One matrix, what is asked of it, and for which nodes. */
typedef struct subject {
    sp_csr a;
    gnn_sampler_options options;
    int32_t *clusters, *nodes;
    int64_t count;
    char name[160];
} subject;

int32_t *numbers(int64_t count);

extern const char *const kind_names[];

void free_subject(sp_context *host, subject *s);
sample draw_subject(place *p, const subject *s, int64_t bulk, int64_t pass);
/* The entry (i, j), or -1. */

/* The tables of the parts. */
extern const test_entry distribution_tests[];

#endif
