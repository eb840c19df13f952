/* What the suites of SpGEMM share: entry lists that become matrices, products at random, a slow and obvious
 * reference, and the check that every algorithm of a back end gives the reference's bits. */
#ifndef TESTS_PRODUCT_H
#define TESTS_PRODUCT_H

#include "support.h"

/* ---- operands ------------------------------------------------------------------------------------------ */

/* Entries in any order; of those in one place the first counts. Zeroed: empty. */
typedef struct entry_list {
    int64_t count, capacity;
    int32_t *rows, *cols;
    double *values;
} entry_list;

void entry_add(entry_list *list, int64_t row, int64_t col, double value);
/* The host matrix of the entries, without values if `pattern`; the list is emptied. */
sp_csr entry_matrix(sp_context *host, entry_list *list, int64_t rows, int64_t cols, sp_value_type type, bool pattern);

/* One product. The matrices lie on the host. */
typedef struct product {
    sp_csr a, b, mask;
    bool b_is_a, mask_is_a;    /* the same pointer is passed twice; b or mask is empty */
    bool masked;
    sp_spgemm_options options; /* `mask` is not used: product_options fills it in */
    char name[96];             /* for messages */
} product;

/* A · B with the options of zeros. */
product product_of(sp_csr a, sp_csr b);
/* The options with the product's own mask. */
sp_spgemm_options product_options(const product *p);
const sp_csr *product_b(const product *p);

/* Everything at random by `seed`: sizes from 0 to 300, rows of equal, uneven and no length, value types, patterns,
 * semirings, transposes, masks. At most some 10^5 multiplications. */
product product_random(sp_context *host, uint64_t seed);
/* A real in (-1, 1), or now and then a power of two of either sign: beside those small terms are rounded away, and
 * once they cancel it shows in which order, and how precisely, terms were added. */
double product_value(test_random *random);
/* A random matrix with some `degree` entries a row. */
sp_csr product_matrix(sp_context *host, test_random *random, int64_t rows, int64_t cols, double degree,
                      sp_value_type type, test_values values);
/* A and B whose rows are mostly the row before, one column to the right, with up to `entries` entries; a few are empty
 * or have columns of their own. */
product product_shifted(sp_context *host, test_random *random, int64_t entries, sp_value_type type);
/* The same with new values for A and B. */
void product_new_values(test_random *random, product *p);
void product_free(sp_context *host, product *p);

/* ---- the reference and the check ----------------------------------------------------------------------- */

/* The product by the definition of its semiring, f64, in ascending order of A's row, rounded once; and in *products
 * (unless NULL) how many multiplications it has without the mask. */
sp_csr product_reference(sp_context *host, const product *p, int64_t *products);

/* Same shape, type, pattern and bits; any NaN equals any other. C lies on the host. */
void product_same(const sp_csr *expected, const sp_csr *c, const char *name);

/* Whether sparse.h lets the back end refuse these options, with SP_ERROR_UNSUPPORTED. */
bool product_may_be_refused(sp_context *context, const sp_spgemm_options *options);

/* Runs the product on `context` with every algorithm, operands in random spaces, C on the host at random, one random
 * setting of the AIA stage or, with `every_stage` and not in brief, each where it matters; compares each C and its
 * info with the reference. A refusal is accepted only where sparse.h announces it. */
void product_check(sp_context *context, const product *p, test_random *random, bool every_stage);

#endif
