/* generate: matrices made from a few numbers, for comparing sparse products. Uses libsparse only. */
#ifndef GENERATE_H
#define GENERATE_H

#include "sparse.h"

/* Makes a matrix in host memory from a specification and a seed, the same for any number of threads. Values are in
 * (0, 1], equal for (i, j) and (j, i). `spec` is one of the following; a DEGREE is the mean before repeated entries are
 * merged.
 *
 *   meshes
 *   grid:WIDTH,HEIGHT,KEPT                a road network: a grid with KEPT % of its edges, symmetric
 *   stencil:WIDTH,HEIGHT,DEPTH,POINTS     a grid; POINTS is 5 or 7 (a node and those beside it) or 9 or 27 (all that
 *                                         touch it)
 *   fem2d:WIDTH,HEIGHT,BLOCK              finite elements: 9 nodes around each, full blocks of BLOCK unknowns
 *   fem3d:WIDTH,HEIGHT,DEPTH,LEAST,MOST   27 nodes around each in a periodic box, LEAST to MOST unknowns a node
 *   torus:SIZE,...                        a lattice, periodic in up to 12 dimensions: a node and two beside it in each
 *   arrow:ROWS,DENSE,FILLED               five diagonals, and DENSE rows and columns with FILLED % of their entries
 *   band:ROWS,HALF,FILLED                 FILLED % of the entries at most HALF away from the diagonal
 *   blocks:ROWS,LEAST,MOST                full blocks of LEAST to MOST rows on the diagonal
 *   aggregation:WIDTH,HEIGHT,DEPTH        P of multigrid: each node of the grid has one entry, its box of 3 x 3 x 3
 *   restriction:WIDTH,HEIGHT,DEPTH        the transpose of aggregation
 *   coarse:WIDTH,HEIGHT,DEPTH             the pattern of restriction times stencil: a box and the nodes that touch it
 *
 *   networks
 *   uniform:ROWS,DEGREE[,COLUMNS]         DEGREE columns a row, drawn at random
 *   web:ROWS,DEGREE,COMMON,LOCAL,LONGEST  pages of hosts: COMMON % of the links from the host's list, LOCAL % of the
 *                                         others within the host, at most LONGEST links a page
 *   powerlaw:ROWS,DEGREE,LONGEST,EXPONENT,FOLLOWING  row lengths ~ u^(-EXPONENT/100), FOLLOWING % of the columns as
 *                                         skewed as the rows, the others near the diagonal. With FOLLOWING 100 it is
 *                                         a Chung-Lu graph whose degrees have the exponent 1 + 100 / EXPONENT
 *   bipartite:ROWS,DEGREE,LONGEST,EXPONENT,COLUMNS  row lengths as for powerlaw; a few columns have most entries
 *   community:ROWS,DEGREE,LONGEST,EXPONENT,SIZE,INSIDE,SHUFFLED  lengths as for powerlaw; INSIDE % of the columns
 *                                         within the row's community of SIZE rows, which are neighbours (SHUFFLED 0)
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
 * It may end with /shuffled, which numbers rows and columns at random (alike in a square matrix), or /sorted, which
 * numbers the rows of a square matrix by falling degree. Anything else is SP_ERROR_ARGUMENT. The caller releases the
 * matrix by sp_csr_free. O(nnz log(longest row)), parallel except cluster. */
sp_status generate_matrix(sp_context *context, const char *spec, uint64_t seed, sp_value_type type, sp_csr *matrix);

#endif
