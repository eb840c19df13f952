/* mcl: Markov clustering (van Dongen 2000) on libsparse, with the results of mcl 22-282.
 *
 * Matrices are stored by columns of the stochastic matrix: row j of an sp_csr here is column j of mcl's matrix, so
 * that expansion M·M is one row-wise product of the stored matrix with itself.
 * The steps: transform (optional) -> mcl_start_matrix -> mcl_iterate -> mcl_interpret. Conventions are those of
 * sparse.h; pointers may be NULL only where that is said. Every call has finished when it returns, on every device, and
 * an iterand is complete when a monitor gets it.
 */
#ifndef MCL_H
#define MCL_H

#include "sp_ranks.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- options ------------------------------------------------------------------------------------------ */

typedef enum mcl_overlap { MCL_OVERLAP_CUT, MCL_OVERLAP_KEEP, MCL_OVERLAP_SPLIT } mcl_overlap;
typedef enum mcl_sort { MCL_SORT_SIZE, MCL_SORT_REVSIZE, MCL_SORT_LEX, MCL_SORT_NONE } mcl_sort;

typedef struct mcl_options {
    double inflation;         /* -I, default 2.0; 0: expansion and pruning only */
    double initial_inflation; /* -i, used in the first initial_length iterations, which do not test for convergence */
    int64_t initial_length;   /* -l, 0 */
    int64_t main_length;      /* -L, 10000 */
    double pre_inflation;     /* -pi and -if, 0: none */
    double loop_factor;       /* -c, 1.0 */
    bool discard_loops;       /* -discard-loops, true: loops are dropped, then set to the maximum of their column */
    bool sum_loops;           /* --sum-loops, false: loops are set to the sum of their column without loops */
    double degree_power;      /* -dae, 0: weights are divided by (degree of i + degree of j)^degree_power */
    int64_t prune_number;     /* -P, 10000: cutoff is 0.99999 / P */
    double prune_cutoff;      /* -p, 0: use prune_number */
    int64_t select;           /* -S, 1100 */
    int64_t recover;          /* -R, 1400 */
    double recover_percent;   /* -pct, 90 */
    int64_t dense_factor;     /* -sparse, 10 */
    bool fast;                /* --fast, false: sums of dense matrices may be f32 on the CPU */
    /* false: one GPU makes what its memory has no room for from host memory; true: it fails */
    bool device_only;
    mcl_overlap overlap;      /* -overlap, cut */
    bool force_connected;     /* -force-connected, false */
    bool weak_attraction;     /* as in -dump cls, false: arcs of less than average weight count too */
    mcl_sort sort;            /* -sort, size */
} mcl_options;

void mcl_options_default(mcl_options *options);

/* Sets P, S, R and pct to resource scheme 1 to 7. Another scheme is SP_ERROR_ARGUMENT. */
sp_status mcl_options_scheme(sp_context *context, mcl_options *options, int scheme);

/* The value below which entries are pruned, from -p or -P; 0 where none are. */
double mcl_options_cutoff(const mcl_options *options);

/* ---- transforms --------------------------------------------------------------------------------------- */

/* A parsed list of -tf or -abc-tf. */
typedef struct mcl_transform mcl_transform;

/* Parses SPEC, e.g. "gq(0.5),mul(10),#knn(20)". With `values_only` (-abc-tf), graph operations (#...) are refused.
 * Unknown names and missing or surplus arguments are SP_ERROR_ARGUMENT with a sentence that names them. The caller
 * releases *transform by mcl_transform_free. */
sp_status mcl_transform_parse(sp_context *context, const char *spec, bool values_only, mcl_transform **transform);
void mcl_transform_free(sp_context *context, mcl_transform *transform);
/* Applies the value operations to one weight, in f64; 0 means "no edge". */
double mcl_transform_value(const mcl_transform *transform, double weight);
/* Whether the list makes each row from the same row of the graph alone, so that processes can transform their rows. */
bool mcl_transform_is_local(const mcl_transform *transform);
/* Applies the whole list to a graph (host, f32, square), in place. Entries that become 0 are dropped. #mcl and #symmcl
 * prune as `options` say, or by the defaults if it is NULL. After a failure *graph holds the result of the operations
 * before the failed one. */
sp_status mcl_transform_graph(sp_context *context, const mcl_transform *transform, const mcl_options *options,
                              sp_csr *graph);

/* ---- the process -------------------------------------------------------------------------------------- */

/* Makes mcl's start matrix: drops loops, applies `transform` (which may be NULL), sets loops to the column maximum (1
 * for an empty column), scales them, pre-inflates, and makes columns stochastic. `graph` is host, f32 and square; row j
 * holds the neighbours of j. A negative weight after the transforms is SP_ERROR_ARGUMENT unless `lenient`. */
sp_status mcl_start_matrix(sp_context *context, const sp_csr *graph, const mcl_transform *transform,
                           const mcl_options *options, bool lenient, sp_csr *start);
/* The same without the last step, the division of columns by their sums. mcl's -write-graphx shows this matrix. */
sp_status mcl_prepared_graph(sp_context *context, const sp_csr *graph, const mcl_transform *transform,
                             const mcl_options *options, bool lenient, sp_csr *prepared);

/* Empties the columns of a host matrix whose weights inflation has all rounded to 0, as mcl does. Zeros beside other
 * weights stay. */
void mcl_drop_vanished(sp_csr *matrix);

/* Renumbers a matrix by an order of its nodes (sp_csr_community_order), and back. mcl_iterate renumbers by itself. A
 * monitor that needs the iterand in the original numbers calls mcl_restore, which takes matrices in any space. A NULL
 * order means no renumbering. */
sp_status mcl_renumber(sp_context *context, const sp_csr *matrix, const int32_t *order, sp_csr *renumbered);
sp_status mcl_restore(sp_context *context, const sp_csr *renumbered, const int32_t *order, sp_csr *matrix);
/* The same of a host matrix of several processes, which have its rows one after another: process r the rows part->rows
 * of the renumbered matrix, and afterwards about as many of the restored one as each other, in host memory. With a NULL
 * `order` rows stay where they are. O(nnz / processes + rows) memory. */
sp_status mcl_restore_together(sp_context *context, const sp_ranks *ranks, const sp_csr *part, const int32_t *order,
                               sp_csr *matrix);

typedef struct mcl_iteration {
    int64_t number;       /* from 1 */
    double chaos;         /* largest of the columns */
    double homogeneity_average, homogeneity_low, homogeneity_high;
    int64_t nnz_before, nnz_expanded, nnz_after, nnz_input;
    int64_t products;
    int64_t empty_columns; /* columns without an entry after expansion */
    int64_t dense_columns; /* columns for which mcl would take its dense path */
    double mark;          /* mean kept mass, in percent, of the worst min(1000, N) columns */
    double inflation;     /* used in this iteration */
    bool bumped;          /* inflation was raised after this iteration (from 40 on) */
    double next_inflation; /* main inflation from here on */
    double seconds;       /* expansion with its epilogue, wall */
    double cpu_seconds;
    sp_spgemm_info product;
    const int32_t *order; /* the numbering of the iterand, for mcl_restore; NULL: as in the graph */
    double marks[3];      /* as in mcl_run, so far */
    bool converged;       /* this was the last one */
    bool interrupted;     /* no iteration: the next one was interrupted, and this is the iterand before it */
} mcl_iteration;

/* Called before the first iteration with the start matrix (number 0, no figures), and after each iteration with the new
 * iterand (where sp_spgemm_markov left it, numbered by iteration->order). Returning false stops the run. If an
 * iteration fails with SP_ERROR_INTERRUPTED, it is called once more with `interrupted` set, so that it can save the
 * last iterand. */
typedef bool (*mcl_monitor)(void *user, const mcl_iteration *iteration, const sp_csr *iterand);

typedef struct mcl_run {
    int64_t iterations;
    bool converged;
    bool stopped;         /* by the monitor */
    double marks[3];      /* of iterations 1, 2 and 3; 100 for an iteration that did not run */
    double synopsis;      /* (5 m1 + 2 m2 + m3) / 8 */
} mcl_run;

/* Runs expansion and inflation from `start` (host) until chaos is below 1e-4, after main_length iterations, or until
 * the monitor stops it. Expansion runs on the context's back end. *limit is a host matrix. If the monitor is called
 * with another matrix than `start` (a renumbered one, before the first iteration), `start` is not read any more and the
 * monitor may free it. */
sp_status mcl_iterate(sp_context *context, const sp_csr *start, const mcl_options *options, mcl_monitor monitor,
                      void *user, sp_csr *limit, mcl_run *run);

/* mcl_iterate in several processes. With `given` NULL each gives the same start matrix, else process r its rows
 * given[r] to given[r + 1] - 1, in a matrix of the whole shape whose other rows are empty. All get the same iterations
 * and *run as a single process on one device of that kind. Of the same limit each gets some rows, one process after
 * another (sp_ranks_stream_rows, sp_ranks_gather_rows). The monitor is called with this process's rows of the iterand;
 * what it returns counts at process 0. An interrupt of one process is one of all, which have the same iteration then.
 * options->fast has no effect. */
sp_status mcl_iterate_together(sp_context *context, const sp_ranks *ranks, const sp_csr *start, const int64_t *given,
                               const mcl_options *options, mcl_monitor monitor, void *user, sp_csr *limit,
                               mcl_run *run);

/* The graph of f32 arcs that several processes have read, some of them in this one: the heaviest of those that are
 * repeated, both directions of each if `mirror`. Process r gets the rows given[r] to given[r + 1] - 1 of a matrix with
 * `nodes` rows whose others are empty; given has size + 1 elements. O(arcs) time and messages,
 * O(arcs / processes + nodes) memory. */
sp_status mcl_share_graph(sp_context *context, const sp_ranks *ranks, int64_t nodes, const sp_arcs *arcs, bool mirror,
                          int64_t *given, sp_csr *graph);

/* Empties the rows but first to end - 1 of a host matrix, in place. */
void mcl_keep_rows(sp_csr *matrix, int64_t first, int64_t end);

/* Where a process goes on: what a monitor was given after an iteration that was not the last. */
typedef struct mcl_state {
    int64_t iterations;     /* done */
    int64_t nnz_input;
    double inflation;       /* next_inflation */
    double marks[3];
    const int32_t *order;   /* the numbering of the iterand; NULL: as in the graph */
    const sp_csr *iterand;  /* host */
    const int64_t *given;   /* of several processes: process r has the rows given[r] to given[r + 1] - 1 of the iterand,
                               all have this list; NULL: each has all rows */
} mcl_state;

/* Goes on from a state, with the options and on the kind of device that the process was begun with: every further
 * iterand has the same bits as if it had not been interrupted. The monitor is first called after an iteration. */
sp_status mcl_continue(sp_context *context, const mcl_state *state, const mcl_options *options, mcl_monitor monitor,
                       void *user, sp_csr *limit, mcl_run *run);

/* The same in several processes. All have the same state, except for the rows where `given` says so; it may come from
 * another number of processes. */
sp_status mcl_continue_together(sp_context *context, const sp_ranks *ranks, const mcl_state *state,
                                const mcl_options *options, mcl_monitor monitor, void *user, sp_csr *limit,
                                mcl_run *run);

/* ---- interpretation ----------------------------------------------------------------------------------- */

enum { MCL_SYSTEM_UNKNOWN = -2 };

typedef struct mcl_clustering {
    int64_t nodes, clusters;
    int64_t *offsets;      /* clusters + 1 */
    int32_t *members;      /* ascending within a cluster */
    int64_t attractors;    /* attractor systems */
    int32_t *system_of;    /* nodes: the attractor system of an attractor, -1 for other nodes, MCL_SYSTEM_UNKNOWN for
                              nodes that did not run again (mcl_join_clusterings); may be NULL */
    int64_t overlap;       /* surplus memberships found (cut, kept or split, by options) */
    int64_t overlap_nodes; /* nodes in more than one attractor system */
    int64_t garbage;       /* nodes that no attractor reaches; they form one cluster */
} mcl_clustering;

/* The clusters of a limit matrix (host): attractor systems and the nodes that reach them. `graph` (host) is the input
 * graph; it may be NULL unless options->force_connected is set. Release the result by mcl_clustering_free. */
sp_status mcl_interpret(sp_context *context, const sp_csr *limit, const sp_csr *graph, const mcl_options *options,
                        mcl_clustering *clustering);
void mcl_clustering_free(sp_context *context, mcl_clustering *clustering);
/* The entries that mcl_interpret looks at of some rows of a limit, from row `first` on: little of an early one. Several
 * processes keep these of their rows, and one gathers and interprets them. A row with entries keeps some. O(nnz). */
sp_status mcl_keep_attracting(sp_context *context, const sp_csr *rows, int64_t first, sp_csr *kept);
/* The cluster of each node in `labels` (nodes entries): of a node in several the first, -1 of a node in none. */
void mcl_clustering_labels(const mcl_clustering *clustering, int32_t *labels);

/* The clusters of each node: the reverse of a clustering. */
typedef struct mcl_memberships {
    const mcl_clustering *clustering; /* stays where it is */
    /* node i is in the clusters[starts[i]] to clusters[starts[i + 1] - 1], ascending */
    int64_t *starts;
    int32_t *clusters;
} mcl_memberships;

sp_status mcl_memberships_make(sp_context *context, const mcl_clustering *clustering,
                               mcl_memberships *memberships);
bool mcl_is_member(const mcl_memberships *memberships, int64_t node, int32_t cluster);
void mcl_memberships_free(sp_context *context, mcl_memberships *memberships);

/* ---- nodes added to a clustering ------------------------------------------------------------------------- */

/* The process runs in each weakly connected component of the start matrix by itself, so components that are as they
 * were keep their clusters, and only the others run again:
 *   mcl_find_touched -> mcl_touched_part -> mcl_iterate -> mcl_interpret -> mcl_join_clusterings -> mcl_find_changes.
 * The result is that of a run of everything, with two exceptions. All components end together in such a run, so one
 * whose clusters still change when its own chaos is below the limit may differ; so may one in which the last bit of a
 * value decides, because mcl's rounding depends on the number and the order of all nodes. Nodes that no attractor
 * reaches form one cluster of the whole graph: if mcl_interpret finds any, everything has to run. */

/* An older clustering in the numbers of the new graph. */
typedef struct mcl_former {
    mcl_clustering clustering; /* of the new graph's nodes, some of them in no cluster; clusters may be empty */
    const uint8_t *incomplete; /* clusters: 1 if members are not nodes of the new graph; NULL: none */
    const sp_csr *start;       /* the older graph's start matrix (host, f32); NULL: all edges between nodes of older
                                  clusters are taken to be as they were */
    const int32_t *place;      /* start->rows, each at most once: the new number of a node, -1 for one that is gone */
} mcl_former;

typedef struct mcl_update {
    int64_t components, components_touched;
    int64_t nodes_touched, new_nodes; /* new: in no older cluster */
    uint8_t *touched;                 /* nodes: 1 in the components that have to run again */
} mcl_update;

/* Finds the components of `start` that have a new node, a node of a cluster that lost members or lies in several
 * components, or, with former->start, a column that is not the same there. O(nnz log nnz). Release the result by
 * mcl_update_free. */
sp_status mcl_find_touched(sp_context *context, const sp_csr *start, const mcl_former *former, mcl_update *update);
void mcl_update_free(sp_context *context, mcl_update *update);
/* The start matrix with a single loop of 1 in each column that is not touched. */
sp_status mcl_touched_part(sp_context *context, const sp_csr *start, const uint8_t *touched, sp_csr *part);
/* The older clusters of nodes that are not touched, and those of `fresh` of the others, in the order `sort`. */
sp_status mcl_join_clusterings(sp_context *context, const mcl_former *former, const uint8_t *touched,
                               const mcl_clustering *fresh, mcl_sort sort, mcl_clustering *joined);

/* Clusters of the new clustering, each in one of the first seven counts, and of the older one. */
typedef struct mcl_changes {
    int64_t kept;   /* did not run again */
    int64_t same;   /* ran again, with the same members */
    int64_t grown;  /* an older cluster and new nodes */
    int64_t shrunk; /* an older cluster without nodes that are gone */
    int64_t merged; /* members of several older clusters */
    int64_t pieces; /* a part of an older cluster */
    int64_t made;   /* new nodes alone */
    int64_t split, gone; /* older clusters whose members lie in several; whose nodes are all gone */
} mcl_changes;

sp_status mcl_find_changes(sp_context *context, const mcl_former *former, const uint8_t *touched,
                           const mcl_clustering *joined, mcl_changes *changes);

/* ---- all at once, and figures --------------------------------------------------------------------------- */

/* All steps at once, from a graph (host, with or without values) to the cluster of each node: `labels` has graph.rows
 * entries. A node in several clusters gets the first of them. */
sp_status mcl_label(sp_context *context, const sp_csr *graph, const mcl_options *options, int32_t *labels,
                    int64_t *clusters);

/* Measures of a clustering: the figures of mcl's -analyze, with mcl's names where they differ. */
typedef struct mcl_measures {
    double efficiency, modularity, mass_fraction, area_fraction; /* eff, mod, mf, af */
    int64_t clusters, largest, smallest;                         /* ncl, max, min */
    int64_t median;                /* size of the cluster in the middle */
    double center, average;        /* ctr, the mean size of a member's cluster; avg, the mean size of a cluster */
    int64_t dust;                  /* DGI: this many of the smallest clusters hold as many members as the largest */
    int64_t half, half_size; /* TWI: all but this many of the largest clusters hold half of the nodes; TWL: the size of
                                the next one */
    int64_t singletons, quartets;  /* sgl, clusters of one node; qrt, of at most four */
} mcl_measures;

/* Measures a clustering in the matrix that the process starts from (host, f32). */
sp_status mcl_measure(sp_context *context, const sp_csr *start, const mcl_clustering *clustering,
                      mcl_measures *measures);

/* The same of a matrix that comes by blocks of rows, in their order, as sp_ranks_stream_rows brings them: begin, then
 * mcl_measure_rows (an sp_take_rows) for all, then end, which releases the measuring, as drop does. The clustering
 * stays where it is until then. */
typedef struct mcl_measuring mcl_measuring;
sp_status mcl_measure_begin(sp_context *context, const mcl_clustering *clustering, mcl_measuring **measuring);
void mcl_measure_rows(void *measuring, int64_t first, const sp_csr *rows);
sp_status mcl_measure_end(mcl_measuring *measuring, mcl_measures *measures);
void mcl_measure_drop(mcl_measuring *measuring);

/* Figures of a cluster in the input graph. Arcs are entries without loops, so an undirected edge counts as two. */
typedef struct mcl_profile {
    int64_t size, arcs_inside;
    double weight, weight_inside; /* of all arcs of its members; of the arcs between members */
} mcl_profile;

/* Computes the profile of each cluster (`profiles` has an element for each), the fraction of the weight that lies
 * inside clusters, and the modularity as clm info computes it; the last two may be NULL. `graph` (host) may have values
 * of any type or none. O(nnz). */
sp_status mcl_profile_clusters(sp_context *context, const sp_csr *graph, const mcl_clustering *clustering,
                               mcl_profile *profiles, double *coverage, double *modularity);
/* The same of a graph that comes by blocks of rows, as mcl_measure_begin. */
typedef struct mcl_profiling mcl_profiling;
sp_status mcl_profile_begin(sp_context *context, const mcl_clustering *clustering, mcl_profile *profiles,
                            mcl_profiling **profiling);
void mcl_profile_rows(void *profiling, int64_t first, const sp_csr *rows);
void mcl_profile_end(mcl_profiling *profiling, double *coverage, double *modularity);
void mcl_profile_drop(mcl_profiling *profiling);

/* The distances of two clusterings from their meet, the coarsest clustering that is finer than both. The sum of the two
 * is the distance between the clusterings. A clustering that is finer than the other has distance 0. */
typedef struct mcl_distance {
    int64_t moved_first, moved_second;             /* split/join: nodes to move */
    double information_first, information_second;  /* variation of information, in nats */
} mcl_distance;

/* Compares two clusterings of the same nodes. A node in several clusters counts in the first. O(nodes). */
sp_status mcl_compare(sp_context *context, const mcl_clustering *a, const mcl_clustering *b, mcl_distance *distance);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
