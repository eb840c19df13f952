/* Inside the reader of labellings. */
#ifndef IO_NODES_LABELLING_H
#define IO_NODES_LABELLING_H

#include "bytes/source.h"
#include "text/labels.h"

typedef struct labeller {
    sp_context *context;
    const char *name;
    const io_graph *graph;
    const io_label_options *options;
    io_label_format format;
    char *bytes; /* of the file, with a line feed at its end */
    int64_t size, line;
    io_labels nodes;        /* the graph's names, and their table; the names are not ours */
    bool blanks;            /* some of the names hold a blank */
    int32_t *node_of_line;  /* of a list for nodes that have numbers as names; NULL: as they stand */
    int64_t list_lines;
    io_labels groups;       /* labels that are names */
    bool decided, named;    /* whether the first label was seen, and was a name */
    int base;               /* of the options; 0 as long as it is to be found */
    bool has_zero;          /* a label is 0 */
    int64_t group_count;
    int32_t *labels;
    bool collect, general;  /* memberships are collected; they have to be */
    bool weighted;          /* some have a weight other than 1 */
    int32_t *member_groups, *members;
    double *weights; /* there only if `weighted` */
    int64_t count, group_capacity, member_capacity, weight_capacity;
    int64_t unknown;     /* other_graph: as in io_labelling */
    uint8_t *incomplete; /* incomplete_count of them, zero beyond */
    int64_t incomplete_count, incomplete_capacity;
} labeller;

/* The node that a word names, or -1: by its name in `index`, else by its number. */
int64_t io_find_node(const io_graph *graph, const io_labels *index, const char *word, const char *end);
/* What would be right in place of a word that names no node. */
const char *io_node_remedy(const io_graph *graph, const char *word, const char *end);
/* The node that mcl would give this id, or -1. */
int64_t io_node_of_id(const io_graph *graph, int64_t id);
/* Sets l->node_of_line for nodes that are named by numbers. For an array l->list_lines is the number of labels. */
sp_status io_order_list(labeller *l);
io_label_format io_find_label_kind(labeller *l);
/* Refuses a table whose fields are separated by commas or semicolons, by its first two lines. */
sp_status io_refuse_commas(labeller *l);
/* The group of the label `number`, 0 or above; of a label as text, -1 for none. */
sp_status io_take_number(labeller *l, int64_t number, const char *label, const char *end, int32_t *group);
sp_status io_find_group(labeller *l, const char *label, const char *end, int32_t *group);
/* label_array.c: all labels of an array, elements counted as lines. */
sp_status io_read_label_array(labeller *l, io_source *source, io_labelling *labelling);
/* label_column.c: a column of a table. */
sp_status io_read_label_column(labeller *l, io_source *source, io_labelling *labelling);
/* Notes that a group of another graph has a node that this one does not have. */
sp_status io_note_unknown(labeller *l, int64_t group);
sp_status io_add_member(labeller *l, int64_t node, int32_t group, double weight);
/* Goes over all lines; collects memberships if l->collect says so. */
sp_status io_read_label_lines(labeller *l);

#endif
