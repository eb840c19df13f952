/* What the files of this module share. */
#ifndef CONTRACTION_INTERNAL_H
#define CONTRACTION_INTERNAL_H

#include "base/clock.h"
#include "base/try.h"
#include "base/value.h"
#include "contraction.h"

/* A graph and its labels, which are on the host. */
static inline sp_status contraction_require(sp_context *context, const char *call, const sp_csr *g,
                                            const int32_t *labels)
{
    const sp_status status = sp_require_csr(context, call, "G", g);
    return status == SP_OK && g->rows > 0 ? sp_require(context, call, "labels", labels) : status;
}

/* Labels are below `groups`, or the failure that names the first that is not. */
static inline sp_status contraction_check_labels(sp_context *context, const int32_t *labels, int64_t nodes,
                                                 int64_t groups)
{
    for (int64_t i = 0; i < nodes; i++)
        if (labels[i] >= groups)
            return sp_fail(context, SP_ERROR_ARGUMENT, "node %lld has label %d and there are %lld groups",
                           (long long)i, labels[i], (long long)groups);
    return SP_OK;
}

static inline sp_status contraction_check_square(sp_context *context, const sp_csr *g)
{
    if (g->rows != g->cols)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the graph is %lld x %lld: it must be square", (long long)g->rows,
                       (long long)g->cols);
    return SP_OK;
}

/* A graph that this module reads itself: square, on the host. */
static inline sp_status contraction_check_graph(sp_context *context, const sp_csr *g)
{
    if (g->rows != g->cols || g->space != SP_HOST)
        return sp_fail(context, SP_ERROR_ARGUMENT, "the graph is %lld x %lld%s: it must be square and in host memory",
                       (long long)g->rows, (long long)g->cols, g->space == SP_HOST ? "" : ", on the device");
    return SP_OK;
}

/* contraction_quotient with labels in either space. */
sp_status contraction_quotient_at(sp_context *context, const sp_csr *g, const int32_t *labels, sp_space labels_space,
                                  int64_t groups, const contraction_options *options, sp_csr *c,
                                  contraction_info *info);

#endif
