/* What the parts of test_transform share. */
#include <stdlib.h>
#include <string.h>

#include "transform_shared.h"

const char directed[] =
    "0 0:2 1:0.5 2:1 3:3.5 $ 1 0:0.25 2:7 5:1 $ 2 0:1 1:7 3:0.100000001 4:2 $ 3 2:0.300000012 "
    "3:4 4:2 5:2 $ 4 0:1.70000005 2:2";

sp_csr graph_of_text(sp_context *context, int64_t nodes, const char *text)
{
    int32_t columns[64], rows[64];
    float weights[64];
    int64_t count = 0;
    int column = -1;
    for (const char *at = text; *at;) {
        char *end;
        long number = strtol(at, &end, 10);
        if (*end == ':') {
            columns[count] = column;
            rows[count] = (int32_t)number;
            weights[count++] = strtof(end + 1, &end);
        } else {
            column = (int)number;
        }
        at = end + strspn(end, " $");
    }
    sp_csr graph;
    ck_ok(context, sp_csr_from_coo(context, &(sp_coo){.rows = nodes, .cols = nodes, .count = count,
                                                      .row_indices = columns, .col_indices = rows, .values = weights},
                                   SP_COMBINE_FIRST, false, &graph));
    return graph;
}

mcl_transform *parse(sp_context *context, const char *spec)
{
    mcl_transform *transform;
    ck_ok(context, mcl_transform_parse(context, spec, false, &transform));
    return transform;
}

sp_status apply(sp_context *context, const char *spec, sp_csr *graph)
{
    mcl_transform *transform = parse(context, spec);
    sp_status status = mcl_transform_graph(context, transform, NULL, graph);
    mcl_transform_free(context, transform);
    return status;
}
