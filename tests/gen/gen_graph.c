/* gen_graph KIND NODES SEED [native]: small graphs that are awkward for clustering, as label triples or, with
 * "native", as a matrix in mcl's text format.
 *
 *   gnp        no weights, mean degree 6: full of ties       integer    weights 1..4, mean degree 8
 *   real       weights in (0, 1), mean degree 8               dense      weights in (0, 1), half of all pairs
 *   stars      hubs of 12 leaves in a ring                    cliques    cliques of 3..12 in a chain, no weights
 *   grid       a square lattice, no weights                   rings      rings of 3..20 nodes, no weights
 *   bipartite  two sides, mean degree 6, integer weights      islands    small random pieces and single nodes
 *   untidy     loops, duplicates of other weight, both directions, comments, lines without weight, zero weights
 *   directed   arcs of real weight and loops: a matrix that is not symmetric (native only)
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

static random_state random_numbers;
static int nodes;
static float *matrix; /* nodes × nodes, column after column; NULL: edges are printed as they come */

static int below(int bound)
{
    return random_below(&random_numbers, bound);
}

static double unit(void)
{
    return random_unit(&random_numbers);
}

static void arc(int from, int to, double weight)
{
    float *entry = &matrix[(size_t)from * (size_t)nodes + (size_t)to];
    if ((float)weight > *entry) *entry = (float)weight;
}

static void edge(int a, int b, double weight)
{
    if (a >= nodes || b >= nodes) return;
    if (!matrix) {
        printf("n%d\tn%d\t%.6g\n", a, b, weight);
        return;
    }
    arc(a, b, weight);
    arc(b, a, weight);
}

/* So many random edges; weights 1 (levels 1), integers 1..levels, or reals (levels 0). */
static void random_edges(int first, int size, long count, int levels)
{
    for (long e = 0; e < count; e++) {
        int a = below(size), b = below(size);
        double weight = levels ? 1 + below(levels) : 0.001 + 0.999 * unit();
        if (a != b) edge(first + a, first + b, weight);
    }
}

static void dense(void)
{
    for (int a = 0; a < nodes; a++)
        for (int b = 0; b < a; b++)
            if (unit() < 0.5) edge(a, b, 0.001 + 0.999 * unit());
}

static void stars(void)
{
    for (int hub = 0; hub < nodes; hub += 13) {
        for (int leaf = 1; leaf < 13; leaf++) edge(hub, hub + leaf, 1);
        edge(hub, hub + 13 < nodes ? hub + 13 : 0, 1);
    }
}

/* Cliques (or rings) of random size, linked in a chain (or not at all). */
static void pieces(bool rings)
{
    for (int at = 0; at < nodes;) {
        int size = 3 + below(rings ? 18 : 10);
        if (at + size > nodes) size = nodes - at;
        for (int a = 0; a < size; a++)
            for (int b = 0; b < a; b++)
                if (!rings || b == a - 1 || (b == 0 && a == size - 1)) edge(at + a, at + b, 1);
        if (!rings && at) edge(at, at - 1, 1);
        at += size;
    }
}

static void grid(void)
{
    int width = 1;
    while ((width + 1) * (width + 1) <= nodes) width++;
    for (int i = 0; i < nodes; i++) {
        if (i % width != width - 1) edge(i, i + 1, 1);
        edge(i, i + width, 1);
    }
}

static void bipartite(void)
{
    int left = nodes / 3 > 0 ? nodes / 3 : 1;
    for (long e = 0; e < 3L * nodes; e++) {
        int a = below(left), b = left + below(nodes - left), weight = 1 + below(3);
        edge(a, b, weight);
    }
}

static void islands(void)
{
    for (int at = 0; at < nodes;) {
        int size = 1 + below(25);
        if (at + size > nodes) size = nodes - at;
        if (size == 1) edge(at, at, 1);
        else
            random_edges(at, size, 2L * size, 0);
        at += size;
    }
}

static void untidy(void)
{
    printf("# a comment\n\n");
    for (long e = 0; e < 4L * nodes; e++) {
        int a = below(nodes), b = below(nodes);
        double weight = 0.1 + unit();
        edge(a, b, weight);
        switch (below(8)) {
        case 0: edge(b, a, weight / 2); break;
        case 1: edge(a, b, weight + 0.25); break;
        case 2: edge(a, a, 3); break;
        case 3: printf("n%d n%d\n", a, b); break;
        case 4: printf("  # n%d\tn%d\t9\n", b, a); break;
        case 5: edge(b, below(nodes), 0); break;
        default: break;
        }
    }
}

static void directed(void)
{
    for (int a = 0; a < nodes; a++) {
        if (below(4) == 0) arc(a, a, unit());
        for (int k = below(10); k > 0; k--) arc(a, below(nodes), 0.01 + unit());
        if (a > 0) arc(a, a - 1, 1);
    }
}

static void write_matrix(void)
{
    printf("(mclheader\nmcltype matrix\ndimensions %dx%d\n)\n(mclmatrix\nbegin\n", nodes, nodes);
    for (int a = 0; a < nodes; a++) {
        printf("%d", a);
        for (int b = 0; b < nodes; b++) {
            float weight = matrix[(size_t)a * (size_t)nodes + (size_t)b];
            if (weight != 0) printf(" %d:%.9g", b, (double)weight);
        }
        printf(" $\n");
    }
    printf(")\n");
}

static bool make(const char *kind)
{
    if (!strcmp(kind, "gnp")) random_edges(0, nodes, 3L * nodes, 1);
    else if (!strcmp(kind, "integer")) random_edges(0, nodes, 4L * nodes, 4);
    else if (!strcmp(kind, "real")) random_edges(0, nodes, 4L * nodes, 0);
    else if (!strcmp(kind, "dense")) dense();
    else if (!strcmp(kind, "stars")) stars();
    else if (!strcmp(kind, "cliques")) pieces(false);
    else if (!strcmp(kind, "rings")) pieces(true);
    else if (!strcmp(kind, "grid")) grid();
    else if (!strcmp(kind, "bipartite")) bipartite();
    else if (!strcmp(kind, "islands")) islands();
    else if (!strcmp(kind, "untidy") && !matrix) untidy();
    else if (!strcmp(kind, "directed") && matrix) directed();
    else return false;
    return true;
}

int main(int argc, char **argv)
{
    bool native = argc == 5 && !strcmp(argv[4], "native");
    nodes = argc > 3 ? atoi(argv[2]) : 0;
    if (nodes < 2 || nodes > 10000 || (argc == 5 && !native) || argc > 5) {
        fprintf(stderr, "usage: gen_graph KIND NODES SEED [native], 2 to 10000 nodes\n");
        return 2;
    }
    random_numbers = random_start(strtoull(argv[3], NULL, 10));
    if (native) matrix = calloc((size_t)nodes * (size_t)nodes, sizeof *matrix);
    if (native && !matrix) return 1;
    if (!make(argv[1])) {
        fprintf(stderr, "gen_graph: no kind \"%s\"%s\n", argv[1], native ? " in native format" : "");
        return 2;
    }
    if (native) write_matrix();
    free(matrix);
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
