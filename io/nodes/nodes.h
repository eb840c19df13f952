/* Files about numbered nodes: what they hold, and which label a number stands for. */
#ifndef IO_NODES_NODES_H
#define IO_NODES_NODES_H

#include "bytes/source.h"
#include "graphs/csv.h"

typedef enum io_content { IO_CONTENT_TEXT, IO_CONTENT_MTX, IO_CONTENT_NPY, IO_CONTENT_NPZ } io_content;
sp_status io_detect_content(io_source *source, io_content *content);

/* The label that a number in a file stands for: a class, or -1 for -1 and NaN; false if neither. io_class_remedy says
 * what to do then. */
bool io_class_of_number(double number, int32_t *label);
const char *io_class_remedy(double number);

/* Words that stand for a missing class in text, such as NA. Classes in the order of their names. */
bool io_is_missing_class(const char *word, const char *end);
sp_status io_sort_classes(sp_context *context, io_classes *classes);

/* Whether it heads a column with the names of nodes: id, node, name, vertex and the like. */
bool io_is_id_heading(const char *text, const char *end);
/* Finds the column of a table of numbers that names its nodes, by its heading or because its fields are no numbers:
 * csv->source, -1 if there is none. Then `names` has the names, row by row, and *numbers the other columns. Data frames
 * write their index without a name before all others: beside such a column it is csv->target, -1 if there is none, and
 * does not count. */
sp_status io_scan_ids(sp_context *context, const char *path, const volatile int *interrupt, io_csv *csv,
                      int64_t *numbers, io_names *names);

/* io_read_labels on an open source (not closed here). */
sp_status io_read_labels_source(sp_context *context, io_source *source, const io_graph *graph,
                                const io_label_options *options, io_labelling *labelling);
/* The same for io_read_node_table. */
sp_status io_read_node_table_source(sp_context *context, io_source *source, const io_graph *graph,
                                    const io_node_options *options, io_node_table *table);

#endif
