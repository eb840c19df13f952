/* What the suites of io share. */
#ifndef TESTS_GRAPHS_H
#define TESTS_GRAPHS_H

#include "io.h"
#include "support.h"

/* Frees a graph and ends its context. */
static inline void end_graph(sp_context *context, io_graph *graph)
{
    io_graph_free(context, graph);
    sp_context_destroy(context);
}

#endif
