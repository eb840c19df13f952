/* What the parts of test_gnn_sampler share. */
#include <stdlib.h>

#include "gnn_sampler_shared.h"

place place_open(int device, int threads, uint64_t seed)
{
    return (place){.context = test_context(device, threads), .seed = seed};
}

void place_close(place *p)
{
    sp_context_destroy(p->context);
}

/* A minibatch on the host, each array its own. */
static gnn_minibatch to_host(place *p, gnn_minibatch *m)
{
    const sp_space space = sp_context_is_cuda(p->context) ? SP_DEVICE : SP_HOST;
    gnn_minibatch host = *m;
    for (int l = 0; l < m->layers; l++) {
        const int64_t cols = m->block[l].cols;
        ck_assert(m->block[l].space == space);
        ck_ok(p->context, sp_csr_copy(p->context, &m->block[l], SP_HOST, &host.block[l]));
        host.node[l] = malloc(((size_t)cols + 1) * sizeof *host.node[l]);
        ck_ok(p->context,
              sp_array_copy(p->context, cols, sizeof *host.node[l], host.node[l], SP_HOST, m->node[l], space));
    }
    host.batch = malloc(((size_t)m->batch_size + 1) * sizeof *host.batch);
    ck_ok(p->context,
          sp_array_copy(p->context, m->batch_size, sizeof *host.batch, host.batch, SP_HOST, m->batch, space));
    gnn_minibatch_free(p->context, m);
    ck_assert(m->layers == 0 && m->batch == NULL);
    return host;
}

static void free_host(place *p, gnn_minibatch *m)
{
    for (int l = 0; l < m->layers; l++) {
        sp_csr_free(p->context, &m->block[l]);
        free(m->node[l]);
    }
    free(m->batch);
}

sample draw_pass(place *p, gnn_sampler *sampler, const int32_t *nodes, int64_t count, int64_t pass)
{
    sample all = {0};
    ck_ok(p->context, gnn_sampler_begin(sampler, nodes, count, p->seed, pass));
    for (;;) {
        gnn_minibatch next;
        ck_ok(p->context, gnn_sampler_next(sampler, &next));
        if (next.layers == 0) break;
        all.minibatch = realloc(all.minibatch, (size_t)(all.count + 1) * sizeof *all.minibatch);
        ck_assert_ptr_nonnull(all.minibatch);
        all.minibatch[all.count++] = to_host(p, &next);
    }
    return all;
}

void free_sample(place *p, sample *all)
{
    for (int64_t b = 0; b < all->count; b++) free_host(p, &all->minibatch[b]);
    free(all->minibatch);
}

int32_t *numbers(int64_t count)
{
    int32_t *list = test_block(((size_t)count + 1) * sizeof *list);
    for (int64_t i = 0; i < count; i++) list[i] = (int32_t)i;
    return list;
}

const char *const kind_names[] = {"node-wise", "LADIES", "FastGCN", "clusters"};

void free_subject(sp_context *host, subject *s)
{
    sp_csr_free(host, &s->a);
    free_all(s->clusters, s->nodes);
}

sample draw_subject(place *p, const subject *s, int64_t bulk, int64_t pass)
{
    gnn_sampler_options options = s->options;
    gnn_sampler *sampler;
    options.bulk = bulk;
    ck_ok(p->context, gnn_sampler_create(p->context, &s->a, &options, &sampler));
    sample all = draw_pass(p, sampler, s->nodes, s->count, pass);
    gnn_sampler_free(sampler);
    return all;
}
