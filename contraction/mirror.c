/* Makes the quotient C of an undirected graph symmetric to the last bit.
 *
 * C(p, q) and C(q, p) are sums of the same weights in two orders, so that rounding may tell them apart in the last
 * digits. Each entry above the diagonal takes the value of the one below it. Time O(nnz(C)) and memory of one
 * transpose. If the patterns of C and its transpose differ, C stays as it is and is reported as not symmetric. */
#include <string.h>

#include "on_device.h"
#include "internal.h"

static bool same_pattern(const sp_csr *a, const sp_csr *b)
{
    return memcmp(a->row_offsets, b->row_offsets, ((size_t)a->rows + 1) * sizeof *a->row_offsets) == 0 &&
           (a->nnz == 0 || memcmp(a->col_indices, b->col_indices, (size_t)a->nnz * sizeof *a->col_indices) == 0);
}

/* Values above the diagonal from the transpose, whose values there are those below. */
static void take_upper(sp_context *context, const sp_csr *transpose, sp_csr *c)
{
    const bool single = c->value_type == SP_F32;
#pragma omp parallel for schedule(static) num_threads(sp_context_threads(context))
    for (int64_t i = 0; i < c->rows; i++) {
        for (int64_t k = c->row_offsets[i]; k < c->row_offsets[i + 1]; k++) {
            if (c->col_indices[k] <= i) continue;
            if (single) ((float *)c->values)[k] = ((const float *)transpose->values)[k];
            else ((double *)c->values)[k] = ((const double *)transpose->values)[k];
        }
    }
}

sp_status contraction_mirror(sp_context *context, sp_csr *c, bool *symmetric)
{
    sp_csr transpose = {0};
    sp_status status;
    TRY(sp_require_csr(context, __func__, "C", c));
    TRY(sp_require(context, __func__, "symmetric", symmetric));
    TRY(contraction_check_square(context, c));
#ifdef CONTRACTION_CUDA
    if (c->space == SP_DEVICE) return contraction_cuda_mirror(context, c, symmetric);
#endif
    TRY(sp_csr_transpose(context, c, &transpose));
    *symmetric = same_pattern(c, &transpose);
    if (*symmetric && c->values) take_upper(context, &transpose, c);
done:
    sp_csr_free(context, &transpose);
    return status;
}
