/* What the parts of test_contraction share. */
#ifndef TESTS_CONTRACTION_SHARED_H
#define TESTS_CONTRACTION_SHARED_H

#include "contraction.h"
#include "product.h"

/* One graph and labelling. All on the host. */
typedef struct subject {
    sp_csr g;
    int32_t *labels;
    int64_t groups;
    char name[112];
} subject;

void free_subject(sp_context *host, subject *s);

typedef struct placed {
    int32_t row, col;
    int64_t number; /* in the order of G */
    double value;
} placed;

/* The quotient by its definition; sizes[k], to be freed, bounds the terms of entry k; *entries are those of G that
 * are combined. */
sp_csr definition(sp_context *host, const subject *s, const sp_contract_options *how, double **sizes,
                  int64_t *entries);

typedef enum labelling { SCATTERED, BLOCKS, RISING, PARTLY, SKEWED, ALONE, TOGETHER, NOBODY, LABELLINGS } labelling;

subject make_subject(sp_context *host, test_random *random, int64_t nodes, double degree, int64_t groups,
                     labelling kind, sp_value_type type, test_values values);
/* Sizes, degrees, groups, labels, values, all by the seed. */
subject random_subject(sp_context *host, uint64_t seed);
/* The subject's graph and its transpose added up. */
void make_symmetric(sp_context *host, subject *s);

/* The tables of the parts. */
extern const test_entry groups_tests[], judge_tests[], coarsen_tests[], levels_tests[], refine_tests[], rows_tests[],
    devices_tests[];

#endif
