/* test_gnn_model: optimizers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn_model_shared.h"

static void fill_gradients(runner *r, test_random *random)
{
    const int64_t size = gnn_model_size(r->model);
    double *numbers = test_block((size_t)size * sizeof *numbers);
    for (int64_t k = 0; k < size; k++) numbers[k] = 2 * test_unit(random) - 1;
    to_space(r, gnn_model_gradients(r->model), numbers, size);
    free(numbers);
}

/* A run that is interrupted, and goes on with another optimizer that is given the state of the first. */
HOST_TEST(an_optimizer_goes_on_from_the_state_of_another, 1)
{
    for (int method = 0; method < 4; method++) {
        const gnn_optimizer_options how = {.method = method < 2 ? (gnn_method)method : GNN_SGD, .decay = 0.01,
                                           .beta1 = method == 2 ? 0.9 : 0};
        const int expected = method < 2 ? 2 : method == 2 ? 1 : 0;
        example e = draw_example(host, 12, GNN_GCN, 2, DIRECTED, 0, 0);
        runner r = make_runner(_i, &e);
        const int64_t size = gnn_model_size(r.model);
        double *result[2] = {malloc((size_t)size * 8), malloc((size_t)size * 8)}, *kept = malloc((size_t)size * 8);
        ck_assert(result[0] && result[1] && kept);
        for (int interrupted = 0; interrupted < 2; interrupted++) {
            test_random random = test_seed(9);
            gnn_optimizer *optimizer, *next;
            to_space(&r, gnn_model_weights(r.model), e.weights, size);
            ck_ok(r.context, gnn_optimizer_create(r.model, &how, &optimizer));
            for (int step = 0; step < 6; step++) {
                if (interrupted && step == 3) {
                    void *from[2], *to[2];
                    int64_t *done, *then, steps;
                    ck_ok(r.context, gnn_optimizer_create(r.model, &how, &next));
                    ck_assert_int_eq(gnn_optimizer_state(optimizer, from, &done), expected);
                    ck_assert_int_eq(gnn_optimizer_state(next, to, &then), expected);
                    to_host(&r, kept, gnn_model_weights(r.model), size);
                    for (int i = 0; i < expected; i++) {
                        to_host(&r, kept, to[i], size);
                        for (int64_t k = 0; k < size; k++) ck_assert(kept[k] == 0);
                        to_host(&r, kept, from[i], size);
                        to_space(&r, to[i], kept, size);
                    }
                    ck_ok(r.context, sp_array_copy(r.context, 1, 8, &steps, SP_HOST, done, r.engine->space));
                    ck_assert_int_eq(steps, 3);
                    ck_ok(r.context, sp_array_copy(r.context, 1, 8, then, r.engine->space, &steps, SP_HOST));
                    gnn_optimizer_free(optimizer);
                    optimizer = next;
                }
                fill_gradients(&r, &random);
                ck_ok(r.context, gnn_optimizer_step(optimizer));
            }
            to_host(&r, result[interrupted], gnn_model_weights(r.model), size);
            gnn_optimizer_free(optimizer);
        }
        ck_assert_int_eq(memcmp(result[0], result[1], (size_t)size * 8), 0);
        ck_assert_int_ne(memcmp(result[0], e.weights, (size_t)size * 8), 0);
        free_all(result[0], result[1], kept);
        free_runner(&r);
        free_example(host, &e);
    }
}

/* Plain descent: w - rate · (gradient + decay · w), of the first layer's parameters alone where that is asked for. */
HOST_TEST(rate_and_decay_are_what_was_asked_for, 1)
{
    for (int first_layer = 0; first_layer < 2; first_layer++) {
        const gnn_optimizer_options how = {.method = GNN_SGD, .rate = 0.5, .decay = 0.25,
                                           .decay_first_layer = first_layer};
        example e = draw_example(host, 12, GNN_GIN, 2, DIRECTED, 0, 0);
        runner r = make_runner(_i, &e);
        gnn_optimizer *optimizer;
        const int64_t size = gnn_model_size(r.model);
        double *found = malloc((size_t)size * 8), *gradient = malloc((size_t)size * 8);
        ck_assert(found && gradient);
        ck_ok(r.context, gnn_optimizer_create(r.model, &how, &optimizer));
        for (double rate = 0.5; rate > 0.2; rate -= 0.25) {
            ck_ok(r.context, gnn_optimizer_set_rate(optimizer, rate));
            fill_gradients(&r, &(test_random){4, 4});
            to_host(&r, gradient, gnn_model_gradients(r.model), size);
            ck_ok(r.context, gnn_optimizer_step(optimizer));
            to_host(&r, found, gnn_model_weights(r.model), size);
            for (int i = 0; i < e.parameters; i++) {
                const gnn_parameter *p = &e.parameter[i];
                const double decay = first_layer && p->layer > 0 ? 0 : 0.25;
                for (int64_t k = p->offset; k < p->offset + p->rows * p->cols; k++) {
                    e.weights[k] -= rate * (gradient[k] + decay * e.weights[k]);
                    ck_assert_double_eq_tol(found[k], e.weights[k], 1e-14);
                }
            }
        }
        gnn_optimizer_free(optimizer);
        free_all(found, gradient);
        free_runner(&r);
        free_example(host, &e);
    }
}

TEST(impossible_optimizers_are_refused_and_say_why)
{
    const struct {
        gnn_optimizer_options o;
        const char *why;
    } bad[] = {{{.method = (gnn_method)3}, "method 3 does not exist"},
               {{.rate = -1}, "a learning rate of -1"},
               {{.rate = INFINITY}, "a learning rate of inf"},
               {{.beta1 = 1}, "betas of 1 and 0.999"},
               {{.beta2 = -0.5}, "betas of 0.9 and -0.5"},
               {{.epsilon = -1}, "an epsilon of -1"},
               {{.decay = -1}, "a decay of -1"}};
    runner r = open_runner(_i);
    gnn_optimizer *optimizer;
    ck_ok(r.context, gnn_model_create(r.engine, &(gnn_model_options){.inputs = 5, .outputs = 3, .hidden = 4},
                                      &r.model));
    for (size_t i = 0; i < COUNT(bad); i++) {
        ck_assert_int_eq(gnn_optimizer_create(r.model, &bad[i].o, &optimizer), SP_ERROR_ARGUMENT);
        ck_assert_ptr_null(optimizer);
        ck_assert_msg(strstr(sp_last_error(r.context), bad[i].why), "%s", sp_last_error(r.context));
    }
    ck_ok(r.context, gnn_optimizer_create(r.model, &(gnn_optimizer_options){0}, &optimizer));
    ck_assert_int_eq(gnn_optimizer_set_rate(optimizer, NAN), SP_ERROR_ARGUMENT);
    gnn_optimizer_free(optimizer);
    free_runner(&r);
}

const test_entry optimizers_tests[] = {
    CASE("optimizers", 300),
    ON_DEVICES(an_optimizer_goes_on_from_the_state_of_another),
    ON_DEVICES(rate_and_decay_are_what_was_asked_for),
    ON_DEVICES(impossible_optimizers_are_refused_and_say_why),
    {0},
};
