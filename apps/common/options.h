/* The command line of a tool as a table: a row an option says how its value is read, where it goes and what --help
 * prints. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum option_kind {
    OPTION_HEADING,  /* no option: a title in --help; name "" is an empty line */
    OPTION_OPERAND,  /* no option: a line of --help about an operand */
    OPTION_FLAG,     /* bool, set to true */
    OPTION_YES_NO,   /* bool from y or n */
    OPTION_TEXT,     /* const char * into argv */
    OPTION_WORD,     /* int or enum: the place of the value in `words`, counted from `low` */
    OPTION_WORDS,    /* unsigned: words separated by commas, bit 1 << place for each */
    OPTION_COUNT,    /* int64_t in the range */
    OPTION_COUNTS,   /* option_counts: numbers in the range separated by commas, at most `most` */
    OPTION_NUMBER,   /* double in the range */
    OPTION_BYTES,    /* int64_t from 8G, 500M, ... */
    OPTION_DEVICE,   /* const char *: auto, cpu, cuda or cuda:N */
    OPTION_DEVICES,  /* const char *: the same, cuda:all, or CPUs or CUDA devices separated by commas */
    OPTION_OWN,      /* nothing is stored: `then` does it */
    OPTION_SET,      /* int or enum, set to `low` */
    OPTION_HELP,     /* ends the reading: OPTIONS_HELP or OPTIONS_VERSION is returned */
    OPTION_VERSION,
    OPTION_IGNORED,  /* accepted without effect */
    OPTION_REFUSED   /* an option of mcl that fails with the help text as the reason */
} option_kind;

enum { MAX_COUNTS = 64 };
typedef struct option_counts {
    int64_t number[MAX_COUNTS];
    int count;
} option_counts;

/* Only `name` and `kind` are required. A row with `argument` takes a value. */
typedef struct option_row {
    const char *name;     /* with its dashes */
    const char *argument; /* the value's name in --help */
    const char *help;     /* may have several lines; NULL: the name alone is shown */
    option_kind kind;
    size_t field;         /* its offset in the settings */
    double low, high;     /* the range; above 9e15 there is no limit */
    bool above, below;    /* low, or high, is outside the range */
    int most;             /* OPTION_COUNTS */
    const char *const *words; /* ends with NULL */
    /* Called once the value is stored, NULL without an argument. Returns false after usage_mistake. */
    bool (*then)(void *settings, const char *value);
    bool once;    /* OPTION_TEXT: a file to be written; a second one is refused */
    bool beside;  /* --help shows it on the line of the row before */
    bool main;    /* options_help_main shows it */
} option_row;

#define OPTION_FROM(from) .low = (from), .high = INFINITY
#define OPTION_RANGE(from, to) .low = (from), .high = (to)
#define OPTION_ABOVE(from) .low = (from), .above = true, .high = INFINITY
#define OPTION_ABOVE_TO(from, to) .low = (from), .above = true, .high = (to)
#define OPTION_BELOW(from, to) .low = (from), .high = (to), .below = true

typedef struct option_list {
    const option_row *rows;
    int count;
} option_list;
#define OPTION_LIST(array) {(array), sizeof(array) / sizeof *(array)}

enum { MAX_OPTION_LISTS = 9 };
typedef struct command_line {
    const char *command;   /* "contract", "gnn info": mistakes name it */
    option_list lists[MAX_OPTION_LISTS];
    bool (*operand)(void *settings, const char *text); /* false after usage_mistake */
    bool mcl_syntax; /* one dash or two, a value after = in both cases, and an empty argument is skipped */
} command_line;

typedef enum options_outcome { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_MISTAKE } options_outcome;

/* Reads argv[1] and the following into *settings, which has the defaults. Options act in their order. A mistake is one
 * line on stderr. But with mcl's syntax "--" ends the options. */
options_outcome options_parse(const command_line *line, int argc, char **argv, void *settings);
/* A line a row: of all rows, or of the main ones. */
void options_help(const command_line *line, FILE *stream);
void options_help_main(const command_line *line, FILE *stream);

/* For rows that read their own value. The place of `text` among words that end with NULL, or -1. */
int find_word(const char *text, const char *const *words);
/* Whole numbers from low to high, separated by commas: how many, or -1 if there are more than `most` or others. */
int read_counts(const char *text, double low, double high, int most, int64_t *numbers);

#endif
