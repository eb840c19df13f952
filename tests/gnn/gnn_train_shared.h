/* What the parts of test_gnn_train share. */
#ifndef TESTS_GNN_TRAIN_SHARED_H
#define TESTS_GNN_TRAIN_SHARED_H

#include "../gnn/internal.h"
#include "generate.h"
#include "support.h"

enum { CLASSES = 4, SIZE = 60, NODES = CLASSES * SIZE, FEATURES = 22, SEED = 5 };

/* Where data are made and looked at; each test has its own. */
extern sp_context *host;

void open_host(void);
void close_host(void);
int32_t true_class(int64_t node);
/* Nodes of the same features and edges, whether the features are sparse or not. */
gnn_data make_data(sp_context *context, bool sparse, bool several);
gnn_trainer_options usual(gnn_layer layer);

/* A trainer with all that it needs. */
typedef struct subject {
    sp_context *context;
    gnn_engine *engine;
    gnn_trainer *trainer;
} subject;

subject make_subject(int device, const gnn_data *data, const gnn_trainer_options *options, uint64_t seed);
void free_subject(subject *s);
/* Epochs until there are no more, at most `most`; how many there were. */
int64_t train(subject *s, int64_t most, gnn_epoch *epochs);
void same_epochs(const gnn_epoch *a, const gnn_epoch *b, int64_t count);
/* make_data with the nodes mixed: node i is what node i * 77 + 5 was, of 240 nodes. */
int64_t mixed(int64_t node);
gnn_data make_mixed(sp_context *context, bool sparse, bool several);

/* The tables of the parts. */
extern const test_entry data_tests[], layerwise_tests[], links_tests[], options_tests[], saved_tests[];

#endif
