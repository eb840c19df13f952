/* gen_protein NODES DEGREE SEED: a protein-like similarity network, a line "LABEL<TAB>LABEL<TAB>WEIGHT" an edge.
 *
 * Families have Pareto sizes in [2, NODES / 60] (at least 50, at most 4,000) over shuffled labels. A pair of a family
 * of s members is linked with p = min(0.85, 1.6 DEGREE / s); weights are normal about the family's mean m, drawn from
 * 25..150, with deviation m / 4. 4 % of the nodes have a second domain: links to another family at half the density
 * and 0.35 of the weight. Noise: 0.06 DEGREE edges a node, half of them to hubs (1 % of the nodes), of weight
 * 5 + exponential of mean 4. All weights lie in 5..200, one decimal. The families go to file descriptor 3 if open.
 */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

typedef struct family {
    int first, size;
    double mean;
} family;

static random_state random_numbers;
static int *label;

static double unit(void)
{
    return random_unit(&random_numbers);
}

static int below(int bound)
{
    return random_below(&random_numbers, bound);
}

static double about(double mean)
{
    return mean * (1 + 0.25 * random_normal(&random_numbers));
}

static void edge(int a, int b, double weight)
{
    if (a == b) return;
    if (weight < 5) weight = 5;
    if (weight > 200) weight = 200;
    printf("P%07d\tP%07d\t%.1f\n", label[a], label[b], weight);
}

static int draw_families(family *families, int nodes)
{
    int largest = nodes / 60, count = 0;
    if (largest < 50) largest = 50;
    if (largest > 4000) largest = 4000;
    for (int at = 0; at < nodes; count++) {
        int size = (int)(2.0 * pow(1 - unit(), -1 / 0.9));
        if (size > largest) size = largest;
        if (size < 2) size = 2;
        if (at + size > nodes) size = nodes - at;
        families[count] = (family){at, size, 25 + 125 * unit()};
        at += size;
    }
    return count;
}

static void write_truth(const family *families, int count)
{
    FILE *truth = fdopen(3, "w");
    if (!truth) return;
    for (int f = 0; f < count; f++) {
        for (int i = 0; i < families[f].size; i++)
            fprintf(truth, i ? "\tP%07d" : "P%07d", label[families[f].first + i]);
        fputc('\n', truth);
    }
    fclose(truth);
}

/* Links the pairs of a family, geometric steps over the partners of each member. */
static void link_family(const family *links, double degree)
{
    double p = degree * 1.6 / links->size;
    double log_q = log1p(-(p > 0.85 ? 0.85 : p));
    for (int i = 0; i < links->size; i++) {
        int j = i;
        for (;;) {
            j += 1 + (int)floor(log(random_positive(&random_numbers)) / log_q);
            if (j >= links->size || j < 0) break;
            edge(links->first + i, links->first + j, about(links->mean));
        }
    }
}

/* Links a node to the family that holds `member`. */
static void link_second_domain(int node, int member, const family *families, int count, double degree)
{
    int low = 0, high = count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (families[middle].first <= member) low = middle;
        else
            high = middle - 1;
    }
    const family *other = &families[low];
    double p = degree * 0.8 / other->size;
    if (p > 0.45) p = 0.45;
    for (int j = 0; j < other->size; j++)
        if (unit() < p) edge(node, other->first + j, 0.35 * about(other->mean));
}

static void add_noise(int nodes, double degree)
{
    long edges = (long)(nodes * degree * 0.06);
    int hubs = nodes / 100 < 1 ? 1 : nodes / 100;
    for (long e = 0; e < edges; e++) {
        int a = below(nodes), b;
        if (random_next(&random_numbers) & 1) b = below(nodes);
        else
            b = (int)((int64_t)below(hubs) * 97 % nodes);
        double weight = 5 + 4 * random_exponential(&random_numbers);
        edge(a, b, weight > 60 ? 60 : weight);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: gen_protein NODES DEGREE SEED > FILE.abc\n");
        return 2;
    }
    int nodes = atoi(argv[1]);
    double degree = atof(argv[2]);
    if (nodes < 1 || nodes > 100000000) return 2;
    random_numbers = random_start(strtoull(argv[3], NULL, 10));
    label = malloc((size_t)nodes * sizeof *label);
    family *families = malloc((size_t)nodes * sizeof *families);
    if (!label || !families) return 1;
    random_order(&random_numbers, label, nodes);
    int count = draw_families(families, nodes);
    write_truth(families, count);
    for (int f = 0; f < count; f++) link_family(&families[f], degree);
    for (int i = 0; i < nodes; i++)
        if (unit() < 0.04) link_second_domain(i, below(nodes), families, count, degree);
    add_noise(nodes, degree);
    free(families);
    free(label);
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
