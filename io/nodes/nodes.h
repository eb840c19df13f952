/* Files about numbered nodes: what they hold, and which label a number stands for. */
#ifndef IO_NODES_NODES_H
#define IO_NODES_NODES_H

#include "bytes/source.h"

typedef enum io_content { IO_CONTENT_TEXT, IO_CONTENT_MTX, IO_CONTENT_NPY, IO_CONTENT_NPZ } io_content;
sp_status io_detect_content(io_source *source, io_content *content);

/* The label that a number in a file stands for: a class, or -1 for -1 and NaN; false if neither. io_class_remedy says
 * what to do then. */
bool io_class_of_number(double number, int32_t *label);
const char *io_class_remedy(double number);

/* io_read_labels on an open source (not closed here). */
sp_status io_read_labels_source(sp_context *context, io_source *source, const io_graph *graph,
                                const io_label_options *options, io_labelling *labelling);
/* The same for io_read_node_table. */
sp_status io_read_node_table_source(sp_context *context, io_source *source, const io_graph *graph,
                                    const io_node_options *options, io_node_table *table);

#endif
