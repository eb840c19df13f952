/* What the parts of test_arguments share. */
#include "arguments_shared.h"

operands open_operands(int device)
{
    static const double numbers[NODES * NODES] = {0, 1, 2, 0, 1, 0, 0, 3, 2, 0, 0, 1, 0, 3, 1, 0};
    const sp_spmm_options extreme = {.reduce = SP_REDUCE_MAX};
    operands o = {.context = test_context(device, 2)};
    const sp_space space = test_space(o.context);
    o.a = test_from_dense(o.context, NODES, NODES, numbers, SP_F32);
    ck_ok(o.context, sp_dense_create(o.context, NODES, 3, SP_DENSE_F32, space, &o.x));
    ck_ok(o.context, sp_dense_create(o.context, NODES, 3, SP_DENSE_F32, space, &o.y));
    ck_ok(o.context, sp_cbsr_create(o.context, NODES, 3, 2, SP_DENSE_F32, &o.kept));
    ck_ok(o.context, sp_spmm_plan_create(o.context, &o.a, 3, NULL, &o.plan));
    ck_ok(o.context, sp_spmm_plan_create(o.context, &o.a, 3, &extreme, &o.maximum));
    ck_ok(o.context, sp_spgemm_plan_create(o.context, &o.a, &o.a, NULL, &o.product));
    return o;
}

void close_operands(operands *o)
{
    sp_spmm_plan_free(o->plan);
    sp_spmm_plan_free(o->maximum);
    sp_spgemm_plan_free(o->product);
    sp_cbsr_free(o->context, &o->kept);
    test_free_dense(o->context, &o->x, &o->y);
    sp_csr_free(o->context, &o->a);
    sp_context_destroy(o->context);
}
