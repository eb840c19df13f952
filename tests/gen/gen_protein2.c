/* gen_protein2 NODES DEGREE SEED: like gen_protein, but large families are made of subfamilies, which is nearer to
 * real similarity networks. A line "LABEL<TAB>LABEL<TAB>WEIGHT" an edge.
 *
 * Families have Pareto sizes up to NODES / 60 (at least 50, at most 4,000), each cut into subfamilies of mean size
 * 60, at most 300. A pair of a subfamily of s members is linked with p = min(0.9, 1.3 DEGREE / s), weights normal
 * about the family's mean m, drawn from 40..160, with deviation m / 5; each member has 0.125 DEGREE links into its
 * family of weight about 0.3 m. 4 % of the nodes have five links elsewhere. Noise: 0.04 DEGREE edges a node, of
 * weight 5 + exponential of mean 4. All weights lie in 5..200, one decimal. The subfamilies go to file descriptor 3
 * if open.
 */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

static random_state random_numbers;
static int *label;
static FILE *truth;

static double unit(void)
{
    return random_unit(&random_numbers);
}

static int below(int bound)
{
    return random_below(&random_numbers, bound);
}

static double about(double mean, double deviation)
{
    return mean * (1 + deviation * random_normal(&random_numbers));
}

static void edge(int a, int b, double weight)
{
    if (a == b) return;
    if (weight < 5) weight = 5;
    if (weight > 200) weight = 200;
    printf("P%07d\tP%07d\t%.1f\n", label[a], label[b], weight);
}

static void write_truth(int first, int size)
{
    if (!truth) return;
    for (int i = 0; i < size; i++) fprintf(truth, i ? "\tP%07d" : "P%07d", label[first + i]);
    fputc('\n', truth);
}

/* Links the pairs of a subfamily, geometric steps over the partners of each member. */
static void link_subfamily(int first, int size, double mean, double degree)
{
    double p = degree * 1.3 / size;
    double log_q = log1p(-(p > 0.9 ? 0.9 : p));
    for (int i = 0; i < size; i++) {
        int j = i;
        for (;;) {
            j += 1 + (int)floor(log(random_positive(&random_numbers)) / log_q);
            if (j >= size || j < 0) break;
            edge(first + i, first + j, about(mean, 0.2));
        }
    }
}

static void make_family(int first, int size, double mean, double degree)
{
    int end = first + size, links = (int)(0.125 * degree);
    for (int at = first; at < end;) {
        int sub = 2 + (int)(58 * random_exponential(&random_numbers));
        if (sub > 300) sub = 300;
        if (at + sub > end) sub = end - at;
        write_truth(at, sub);
        link_subfamily(at, sub, mean, degree);
        for (int i = 0; i < sub && sub < size; i++)
            for (int q = 0; q < links; q++) {
                double weight = 0.3 * about(mean, 0.25);
                edge(at + i, first + below(size), weight);
            }
        at += sub;
    }
}

static void add_noise(int nodes, double degree)
{
    for (int i = 0; i < nodes; i++) {
        if (unit() >= 0.04) continue;
        int other = below(nodes);
        for (int q = 0; q < 5; q++) edge(i, (other + q) % nodes, 0.3 * (40 + 120 * unit()));
    }
    long edges = (long)(nodes * degree * 0.04);
    for (long e = 0; e < edges; e++) {
        double weight = 5 + 4 * random_exponential(&random_numbers);
        int b = below(nodes), a = below(nodes);
        edge(a, b, weight > 60 ? 60 : weight);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: gen_protein2 NODES DEGREE SEED > FILE.abc\n");
        return 2;
    }
    int nodes = atoi(argv[1]), largest = nodes / 60;
    double degree = atof(argv[2]);
    if (nodes < 1 || nodes > 100000000) return 2;
    if (largest < 50) largest = 50;
    if (largest > 4000) largest = 4000;
    random_numbers = random_start(strtoull(argv[3], NULL, 10));
    label = malloc((size_t)nodes * sizeof *label);
    if (!label) return 1;
    random_order(&random_numbers, label, nodes);
    truth = fdopen(3, "w");
    for (int at = 0; at < nodes;) {
        int size = (int)(2.0 * pow(1 - unit(), -1 / 0.9));
        if (size > largest) size = largest;
        if (at + size > nodes) size = nodes - at;
        make_family(at, size, 40 + 120 * unit(), degree);
        at += size;
    }
    add_noise(nodes, degree);
    if (truth) fclose(truth);
    free(label);
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
