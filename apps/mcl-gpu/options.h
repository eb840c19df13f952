/* The command line of mcl-gpu: one table of options, parsed into one struct. */
#ifndef MCL_OPTIONS_H
#define MCL_OPTIONS_H

#include <stdio.h>

#include "common/options.h"
#include "common/team.h"
#include "io.h"
#include "mcl.h"

/* What the command line asks for: a clustering, or one of the informative options. */
typedef enum request {
    REQUEST_RUN,
    REQUEST_HELP,
    REQUEST_HELP_ALL,
    REQUEST_VERSION,
    REQUEST_SETTINGS,      /* -z */
    REQUEST_SCHEMES,
    REQUEST_SKIDS,
    REQUEST_CHARTER,
    REQUEST_RAM,           /* -how-much-ram */
    REQUEST_DOCTOR,
    REQUEST_OUTPUT_NAME,   /* -az */
    REQUEST_OUTPUT_SUFFIX  /* -ax */
} request;

enum { MAX_INFLATIONS = 64, SUFFIX_SIZE = 256, PRESETS = 7 };

/* Everything the command line says. Strings point into argv. */
typedef struct settings {
    request request;
    int64_t ram_nodes;

    const char *input; /* a file or "-" */
    io_read_options read;
    const char *value_transform; /* -abc-tf */
    bool negative_log, negative_log10;
    const char *graph_transform; /* -tf */

    mcl_options mcl; /* .inflation is the first of the list */
    double inflations[MAX_INFLATIONS];
    int inflation_count;
    bool steep; /* an inflation was above 30, which mcl leaves out with a warning */
    bool loops_scaled; /* -c was given: it shows in names */
    int64_t preset;    /* of -scheme or -skid */
    bool prune_given; /* a prune number was chosen, by -P, -p or a scheme: -resource leaves it */
    bool check_connected;
    const char *start_from, *start_graph; /* an older clustering, and the graph that it is of */
    bool check_start;
    const char *checkpoint, *resume;
    double checkpoint_every; /* seconds */
    int64_t checkpoint_iterations; /* also after each of which the number is a multiple of this; 0: by time alone */

    const char *output; /* -o; NULL: a name made from the input's */
    const char *prefix, *suffix, *directory; /* -ap, -aa, -odir */
    bool input_directory; /* --d */
    bool three_digits;    /* --i3 */
    bool append_log, analyze;

    const char *write_graph, *write_transformed, *write_expanded;
    bool write_limit, binary;
    bool dump_iterands, dump_clusters;
    const char *dump_stem;
    int64_t dump_from, dump_to, dump_modulo; /* iterations from <= i < to with i % modulo == 0 */

    const char *device; /* auto, cpu, cuda, cuda:N, cuda:all, or several separated by commas */
    enum { MPI_READ_AUTO, MPI_READ_WHOLE, MPI_READ_PARTS } mpi_read; /* AUTO: large files in parts, where possible */
    team_mpi mpi;
    bool exact, fast;
    int64_t threads; /* 0: all */
    int64_t memory;  /* bytes; 0: what is free */
    enum { PROGRESS_AUTO, PROGRESS_PLAIN, PROGRESS_NONE } progress;
    const char *report, *table, *graphml;
    bool quality; /* print it, also of a single clustering */
    bool quiet;
    int64_t warn_percent, warn_factor; /* shown by -z */

    int argument_count; /* for "# cline:" and -append-log */
    char **arguments;
} settings;

/* Reads argv into *settings. On a mistake prints one line to stderr and returns false. */
bool settings_parse(int argc, char **argv, settings *settings);

/* The name of a clustering made with `inflation`: -o, or the name that mcl makes. With several inflations -o names
 * the stem: FILE.I14, FILE.I20. false when it is longer than MAX_PATH. */
bool settings_output_name(const settings *settings, double inflation, char name[MAX_PATH]);
/* The input's name without its folder. */
const char *settings_input_base(const settings *settings);
/* That, and the suffix that the settings make. */
void settings_input_name(const settings *settings, double inflation, char name[MAX_PATH]);
/* The part of these names that the settings make, such as I20pi08c25. */
void settings_suffix(const settings *settings, double inflation, char suffix[SUFFIX_SIZE]);

/* Whether clusters are kept and judged until the end. */
bool settings_judge(const settings *settings);

/* START and the arguments after the program's name, as mcl quotes them: the input bare, the others "-I" "2". An empty
 * START leaves the input out. Control characters become '?', so that the text is one line. NULL when out of memory;
 * to be freed by free(). */
char *settings_quoted(const settings *settings, const char *start);

/* Sets P, S, R and pct to the cheap preset 1..7 of -skid. */
void settings_skid(mcl_options *options, int skid);

/* The pruning, length and inflation of a run, a line each. */
void settings_print(const settings *settings, double inflation, FILE *stream);
/* The options on one screen, or all of them. */
void settings_usage(FILE *stream);
void settings_usage_all(FILE *stream);
/* Answers an informative request on stdout. */
void settings_answer(const settings *settings);

/* mcl's word for a jury synopsis from 0 to 100; another one for a network without nodes. */
const char *jury_word(double synopsis, int64_t nodes);

#endif
