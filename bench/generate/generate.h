/* generate: matrices made up from a few numbers, the shapes on which sparse products are compared. On libsparse
 * alone. */
#ifndef GENERATE_H
#define GENERATE_H

#include "sparse.h"

/* A matrix on the host with values in (0, 1] that are equal above and below the diagonal: the same for the same
 * specification and seed, for any number of threads. `spec` is one of the following; DEGREEs are means before repeated
 * entries are merged.
 *
 *   meshes
 *   grid:WIDTH,HEIGHT,KEPT                a road network: a grid of which KEPT % of the edges are left, symmetric
 *   stencil:WIDTH,HEIGHT,DEPTH,POINTS     a grid with POINTS 5 or 7 (the node and those beside it) or 9 or 27 (all
 *                                         that touch it)
 *   fem2d:WIDTH,HEIGHT,BLOCK              finite elements: 9 nodes around each, full blocks of BLOCK unknowns
 *   fem3d:WIDTH,HEIGHT,DEPTH,LEAST,MOST   27 nodes around each in a periodic box, LEAST to MOST unknowns a node
 *   torus:SIZE,...                        a lattice, periodic in up to 12 dimensions: a node, two beside it in each
 *   arrow:ROWS,DENSE,FILLED               five diagonals, and DENSE rows and columns of which FILLED % are there
 *   band:ROWS,HALF,FILLED                 FILLED % of the entries at most HALF away from the diagonal
 *   blocks:ROWS,LEAST,MOST                full blocks of LEAST to MOST rows on the diagonal
 *   aggregation:WIDTH,HEIGHT,DEPTH        P of multigrid: a row a node of the grid, one entry: its box of 3 x 3 x 3
 *   restriction:WIDTH,HEIGHT,DEPTH        its transpose
 *   coarse:WIDTH,HEIGHT,DEPTH             the pattern of restriction times stencil: a box and what it touches
 *
 *   networks
 *   uniform:ROWS,DEGREE[,COLUMNS]         DEGREE columns a row, drawn at random
 *   web:ROWS,DEGREE,COMMON,LOCAL,LONGEST  pages of hosts: COMMON % of the links from the host's list, LOCAL % of the
 *                                         others within the host, at most LONGEST links a page
 *   powerlaw:ROWS,DEGREE,LONGEST,EXPONENT,FOLLOWING  row lengths ~ u^(-EXPONENT/100), FOLLOWING % of the columns as
 *                                         skewed as the rows, the others near the diagonal. With 100 % following a
 *                                         Chung-Lu graph whose degrees have the exponent 1 + 100 / EXPONENT
 *   bipartite:ROWS,DEGREE,LONGEST,EXPONENT,COLUMNS  row lengths as for powerlaw, few columns are met most
 *   community:ROWS,DEGREE,LONGEST,EXPONENT,SIZE,INSIDE,SHUFFLED  lengths as for powerlaw; INSIDE % of the columns
 *                                         within the row's community of SIZE rows, which stand together (SHUFFLED 0)
 *                                         or anywhere (1)
 *   overlap:ROWS,DEGREE,SMALLEST,LARGEST  every node in two communities of unequal sizes, a tenth of the edges
 *                                         anywhere
 *   smallworld:ROWS,NEIGHBOURS,REWIRED    a ring with NEIGHBOURS a node, REWIRED % of them anywhere
 *   knn:ROWS,NEIGHBOURS                   the nearest neighbours of random points in a square, numbered in any order
 *   debruijn:ROWS,BRANCHING               one to four overlaps a word, each after the first with BRANCHING %
 *   molecules:ROWS,ATOMS                  molecules of ATOMS atoms, at most four bonds an atom, symmetric
 *   mycielski:ORDER                       the Mycielski graph: 3 * 2^(ORDER - 2) - 1 nodes, no triangles, symmetric
 *   equal:ROWS,DEGREE                     all rows have the same columns
 *   crossed:ROWS,DEGREE,FULL_ROWS,FULL_COLUMNS  uniform, with some full rows and full columns
 *
 *   lists of edges
 *   rmat:SCALE,DEGREE                     2^SCALE rows, DEGREE edges each by R-MAT (.57 .19 .19 .05), relabelled
 *   cluster:ROWS,DEGREE                   protein families with dense subfamilies, symmetric
 *   entries:ROWS,COUNT                    COUNT entries anywhere: hypersparse, one, or none
 *
 * and may end with /shuffled, which numbers rows and columns at random (those of a square matrix alike), or /sorted,
 * which numbers the rows of a square matrix by falling degree. SP_ERROR_ARGUMENT with a sentence for what is none of
 * these. O(nnz log(longest row)), parallel but for cluster. */
sp_status generate_matrix(sp_context *context, const char *spec, uint64_t seed, sp_value_type type, sp_csr *matrix);

#endif
