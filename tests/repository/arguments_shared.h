/* What the parts of test_arguments share. */
#ifndef TESTS_ARGUMENTS_SHARED_H
#define TESTS_ARGUMENTS_SHARED_H

#include "contraction.h"
#include "gnn.h"
#include "mcl.h"
#include "support.h"

enum { NODES = 4 };

/* A square graph of four nodes with operands that fit it, where the context computes if `there`. */
typedef struct operands {
    sp_context *context;
    sp_csr a;
    sp_dense x, y;
    sp_cbsr kept;
    sp_spmm_plan *plan, *maximum;
    sp_spgemm_plan *product;
} operands;

operands open_operands(int device);
void close_operands(operands *o);

/* The call is refused with a sentence of `context` (NULL: of the thread) that holds `words`. */
#define REFUSED(context, call, words)                                                                           \
    do {                                                                                                        \
        const sp_status refused = (call);                                                                       \
        test_expect(refused == SP_ERROR_ARGUMENT, "%s: %s", #call, sp_status_string(refused));                  \
        test_expect(strstr(sp_last_error(context), words), "%s: \"%s\"", #call, sp_last_error(context));        \
    } while (0)

/* The tables of the parts. */
extern const test_entry contexts_tests[];

#endif
