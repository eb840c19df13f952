/* The report of gnn predict, as JSON or as a page that draws it: the model, how good its predictions are where classes
 * are known, how many nodes each class got, and the nodes that it is least sure about. */
#include <math.h>
#include <string.h>

#include "base/system.h"
#include "job.h"

enum { MOST_UNCERTAIN = 20 };

/* A node, and its two largest probabilities; of one class the second is 0. */
typedef struct uncertain {
    int64_t node, class, second;
    float probability, next;
} uncertain;

static const io_names *class_names(const gnn_job *job)
{
    static const io_names none = {0};
    return job->input.classes.count == job->data.classes ? &job->input.classes : &none;
}

/* `first` is the class that was predicted, so that equal probabilities have one order. */
static uncertain look_at(const gnn_job *job, int64_t node)
{
    const int64_t classes = job->data.classes, first = job->classes[node];
    const float *scores = job->scores + node * classes;
    uncertain found = {.node = node, .class = first, .second = -1, .probability = scores[first]};
    for (int64_t c = 0; c < classes; c++)
        if (c != first && (found.second < 0 || scores[c] > found.next)) {
            found.second = c;
            found.next = scores[c];
        }
    return found;
}

/* Keeps the nodes of the smallest probabilities, in their order; among equals the first nodes. */
static int find_uncertain(const gnn_job *job, uncertain list[MOST_UNCERTAIN])
{
    int count = 0;
    for (int64_t node = 0; node < job->data.graph.rows; node++) {
        const float probability = job->scores[node * job->data.classes + job->classes[node]];
        if (count == MOST_UNCERTAIN && probability >= list[count - 1].probability) continue;
        int at = count < MOST_UNCERTAIN ? count++ : count - 1;
        for (; at > 0 && list[at - 1].probability > probability; at--) list[at] = list[at - 1];
        list[at] = look_at(job, node);
    }
    return count;
}

static void put_uncertain(const gnn_job *job, json *j)
{
    uncertain list[MOST_UNCERTAIN];
    const int count = find_uncertain(job, list);
    char name[256];
    gnn_node_text node;
    json_begin(j, "least_certain", '[');
    for (int i = 0; i < count; i++) {
        const uncertain *u = &list[i];
        json_begin(j, NULL, '{');
        json_text(j, "node", gnn_input_node(&job->input, u->node, node));
        json_text(j, "class", gnn_class_name(class_names(job), u->class, name, sizeof name));
        json_number(j, "probability", (double)u->probability);
        if (u->second >= 0) {
            json_text(j, "second_class", gnn_class_name(class_names(job), u->second, name, sizeof name));
            json_number(j, "second_probability", (double)u->next);
        }
        json_end(j, '}');
    }
    json_end(j, ']');
}

/* Nodes by the probability of their class, in tenths. */
static void put_probabilities(const gnn_job *job, json *j)
{
    int64_t nodes[GNN_BINS] = {0};
    for (int64_t i = 0; i < job->data.graph.rows; i++) {
        const int bin = (int)((double)job->scores[i * job->data.classes + job->classes[i]] * GNN_BINS);
        nodes[bin < GNN_BINS ? bin : GNN_BINS - 1]++;
    }
    json_counts(j, "nodes_by_probability", nodes, GNN_BINS);
}

/* The nodes of each class, in one pass over them. */
static void count_classes(const gnn_job *job, int64_t *nodes)
{
    const int64_t classes = job->data.classes;
    memset(nodes, 0, (size_t)classes * sizeof *nodes);
    for (int64_t i = 0; i < job->data.graph.rows; i++) {
        if (job->classes) nodes[job->classes[i]]++;
        for (int64_t c = 0; job->targets && c < classes; c++) nodes[c] += job->targets[i * classes + c];
    }
}

static sp_status put_predicted(const gnn_job *job, json *j)
{
    char name[256];
    int64_t *nodes;
    const sp_status status = sp_alloc(job->host, job->data.classes, sizeof *nodes, (void **)&nodes);
    if (status != SP_OK) return status;
    count_classes(job, nodes);
    json_begin(j, "predicted", '[');
    for (int64_t c = 0; c < job->data.classes; c++) {
        json_begin(j, NULL, '{');
        json_text(j, "name", gnn_class_name(class_names(job), c, name, sizeof name));
        json_count(j, "nodes", nodes[c]);
        json_end(j, '}');
    }
    json_end(j, ']');
    sp_free(job->host, nodes);
    return SP_OK;
}

static sp_status put_report(const gnn_job *job, io_output *out)
{
    json file = {.out = out}, *j = &file;
    gnn_report_begin(job, j);
    json_begin(j, "options", '{');
    json_text(j, "load", job->settings->load);
    gnn_put_model(job, j);
    json_end(j, '}');
    json_text(j, "device", job->device_name);
    json_count(j, "threads", sp_context_threads(job->host));
    json_count(j, "peak_host_bytes", system_peak_bytes());
    json_begin(j, "seconds", '{');
    json_seconds(j, "read", job->seconds.read);
    json_seconds(j, "total", job->seconds.total);
    json_end(j, '}');
    json_text(j, "judged_nodes", job->figures.nodes == 0 ? "none" : job->judged == GNN_TEST ? "test" : "labelled");
    gnn_put_figures(&job->figures, class_names(job), "judged", j);
    const sp_status status = put_predicted(job, j);
    if (job->classes) {
        put_probabilities(job, j);
        put_uncertain(job, j);
    }
    json_end(j, '}');
    return status;
}

sp_status gnn_put_prediction(gnn_job *job, io_output *out) { return gnn_put_page(job, out, put_report); }
