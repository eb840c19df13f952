/* gen_odd KIND SEED: small inputs whose spelling is odd, as mcl takes them without a word and mcl-gpu with --lenient.
 *
 *   abc     tabs and blanks mixed, missing fields, weights that are no numbers or only begin with one, comments, CR
 *   lists   SIF or ETC: values or none behind colons, labels with colons, labels twice, comments
 *   native  columns missing, repeated and in any order, ids repeated, blanks and comments anywhere, ids with gaps
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

static random_state random_numbers;

static int below(int bound) { return random_below(&random_numbers, bound); }

#define PICK(words) (words)[below((int)(sizeof(words) / sizeof *(words)))]

static const char *const labels[] = {"a", "b", "c", "d", "g", "h1", "0", "1", "x:y", "\xc3\xa9", "e f", "#z"};
enum { LABELS = sizeof labels / sizeof *labels, WORDS = LABELS - 2 };

static void odd_triples(void)
{
    static const char *const weights[] = {"1",  "2.5", "0",  "0.0", "1e-3", "nan", "inf", "abc", "3x", "0x10",
                                          "0xg", "1e",  "1e+", "+3",  ".5",   "5.",  "--1", "1,5", "2e2e"};
    static const char *const blanks[] = {"\t", " ", "  ", "\t\t", " \t"}, *const begins[] = {"#", " ", "\t"};
    static const char *const ends[] = {"\n", "\n", "\n", "\n", "\r\n", "\n\n"};
    for (int line = 2 + below(24); line > 0; line--) {
        const char *blank = PICK(blanks);
        if (below(8) == 0) fputs(PICK(begins), stdout);
        fputs(labels[below(LABELS)], stdout);
        if (below(8) > 0) printf("%s%s", blank, labels[below(LABELS)]);
        if (below(5) > 0) printf("%s%s", blank, PICK(weights));
        if (below(10) == 0) printf("%sextra", blank);
        fputs(PICK(ends), stdout);
    }
}

static void odd_lists(void)
{
    static const char *const values[] = {"", "", "", ":2", ": 3", ":0.5x", ":abc", ":", ":1e", ":.5", ":--1", ":1,5"};
    for (int line = 2 + below(12); line > 0; line--) {
        const char blank = "\t "[below(2)];
        fputs(labels[below(WORDS)], stdout);
        for (int field = below(6); field > 0; field--) printf("%c%s%s", blank, labels[below(LABELS)], PICK(values));
        putchar('\n');
    }
}

static void odd_matrix(void)
{
    static const char *const values[] = {"", ":1", ":0.5", ": 2", " :3", ":0", ":.25"};
    static const char *const blanks[] = {" ", "\n  ", "\t", " # c\n "}, *const ends[] = {" $\n", "$\n", " $ # c\n"};
    const int nodes = 1 + below(8), step = 1 + below(3), first = step > 1 ? below(5) : 0;
    printf("(mclheader\nmcltype matrix\ndimensions %dx%d\n)\n", nodes, nodes);
    if (step > 1) {
        puts("(mcldoms");
        for (int i = 0; i < nodes; i++) printf("%d ", first + step * i);
        puts("$\n)");
    }
    puts("(mclmatrix\nbegin");
    for (int column = 0; column < nodes + 1; column++) {
        if (below(6) == 0) continue;
        printf("%d", first + step * (column == nodes || below(8) == 0 ? below(nodes) : column));
        for (int row = 0; row < nodes; row++) {
            if (below(2)) continue;
            printf("%s%d%s", PICK(blanks), first + step * (below(4) ? row : below(nodes)), PICK(values));
        }
        fputs(PICK(ends), stdout);
    }
    puts(")");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: gen_odd abc|lists|native SEED\n");
        return 2;
    }
    random_numbers = random_start(strtoull(argv[2], NULL, 10));
    if (strcmp(argv[1], "abc") == 0) odd_triples();
    else if (strcmp(argv[1], "lists") == 0) odd_lists();
    else odd_matrix();
    return 0;
}
