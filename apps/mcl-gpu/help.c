/* The informative options of mcl-gpu: help, settings, presets, the jury's words. Numbers are laid out as mcl does,
 * because scripts read them. */
#include <math.h>

#include "common/doctor.h"
#include "options.h"

typedef struct jury_entry {
    int mark;
    const char *word;
} jury_entry;

/* In mcl's order: 81 stands where 91 belongs, and mcl takes the first mark that is not above the synopsis, so that
 * everything from 81 to 92 is "cracking". */
static const jury_entry jury[] = {
    {100, "really really really good"}, {99, "perfect"}, {98, "marvelous"}, {97, "superb"}, {96, "sensational"},
    {95, "fabulous"}, {94, "ripping"}, {93, "smashing baby!"}, {92, "scrumptious"}, {81, "cracking"},
    {90, "top-notch"}, {89, "excellent"}, {88, "splendid"}, {87, "outstanding"}, {85, "peachy"}, {84, "really neat"},
    {82, "dandy"}, {80, "favourable"}, {79, "not bad at all"}, {78, "groovy"}, {77, "good"}, {76, "all-right"},
    {74, "solid"}, {72, "decent"}, {70, "adequate"}, {66, "fair"}, {63, "fairish"}, {60, "satisfactory"},
    {55, "acceptable"}, {53, "tolerable"}, {50, "mediocre"}, {49, "so-so"}, {48, "off colour"}, {47, "shabby"},
    {46, "shoddy"}, {44, "dodgy"}, {43, "poor"}, {40, "bad"}, {35, "deplorable"}, {34, "woeful"}, {32, "rotten"},
    {30, "lousy"}, {26, "abominable"}, {24, "miserable"}, {23, "dismal"}, {22, "appalling"}, {20, "awful"},
    {18, "pathetic"}, {16, "terrible"}, {14, "dreadful"}, {12, "wretched"}, {10, "horrid"}, {8, "ghastly"},
    {6, "atrocious"},
};

enum { JURY_COUNT = sizeof jury / sizeof *jury };

const char *jury_word(double synopsis, int64_t nodes)
{
    if (nodes == 0) return "nothing to prune"; /* mcl praises itself here, too */
    for (int i = 0; i < JURY_COUNT; i++)
        if (synopsis >= jury[i].mark) return jury[i].word;
    return jury[JURY_COUNT - 1].word;
}

static void print_charter(void)
{
    for (int i = 0; i < JURY_COUNT; i++) printf("%3d%20s\n", jury[i].mark, jury[i].word);
    puts("\nA jury mark is the percentage of the mass that pruning left, averaged over the worst 1000\n"
         "nodes, in one of the first three expansions. The synopsis is (5*m1 + 2*m2 + m3) / 8; its word\n"
         "is the first above whose mark it reaches. If it is low, a higher -scheme keeps more and costs\n"
         "more.");
}

static void print_presets(bool skid)
{
    puts("             Pruning      Selection       Recovery  Recover percentage");
    for (int i = 1; i <= PRESETS; i++) {
        mcl_options options;
        mcl_options_default(&options);
        if (skid) settings_skid(&options, i);
        else mcl_options_scheme(NULL, &options, i);
        printf("Scheme %d%12lld%15lld%15lld%15.0f\n", i, (long long)options.prune_number, (long long)options.select,
               (long long)options.recover, options.recover_percent);
    }
}

static void print_setting(FILE *stream, const char *name, const char *value, const char *remark)
{
    fprintf(stream, "%-28s%20s        [%s]\n", name, value, remark);
}

static void print_count(FILE *stream, const char *name, int64_t value, const char *remark)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    print_setting(stream, name, text, remark);
}

/* To one digit of the f32 that mcl makes of it: 1.05 is 1.0. */
static void print_inflation(FILE *stream, const char *name, double value, const char *remark)
{
    char text[400];
    snprintf(text, sizeof text, "%.1f", (double)(float)value);
    fprintf(stream, "%-28s%22s      [%s]\n", name, text, remark);
}

void settings_print(const settings *s, double inflation, FILE *stream)
{
    print_count(stream, "Prune number", s->mcl.prune_number, "-P n");
    print_count(stream, "Selection number", s->mcl.select, "-S n");
    print_count(stream, "Recovery number", s->mcl.recover, "-R n");
    print_count(stream, "Recovery percentage", (int64_t)s->mcl.recover_percent, "-pct n");
    const bool initial = s->mcl.initial_length > 0;
    if (initial) print_count(stream, "Initial loop length", s->mcl.initial_length, "-l n");
    print_count(stream, "Main loop length", s->mcl.main_length, "-L n");
    if (initial) print_inflation(stream, "Initial inflation", s->mcl.initial_inflation, "-i f");
    print_inflation(stream, "Main inflation", inflation, "-I f");
}

static void print_all_settings(const settings *s)
{
    puts("[mcl] cell size: 8\n[mcl] cell contents: int and float\n[mcl] largest index allowed: 2147483647\n"
         "[mcl] smallest index allowed: 0");
    print_count(stdout, "Prune number", s->mcl.prune_number, "-P n");
    print_count(stdout, "Selection number", s->mcl.select, "-S n");
    print_count(stdout, "Recovery number", s->mcl.recover, "-R n");
    print_count(stdout, "Recovery percentage", (int64_t)s->mcl.recover_percent, "-pct n");
    print_count(stdout, "warn-pct", s->warn_percent, "-warn-pct k");
    print_count(stdout, "warn-factor", s->warn_factor, "-warn-factor k");
    print_setting(stdout, "dumpstem", s->dump_stem ? s->dump_stem : "", "-dump-stem str");
    print_count(stdout, "Initial loop length", s->mcl.initial_length, "-l n");
    print_count(stdout, "Main loop length", s->mcl.main_length, "-L n");
    print_inflation(stdout, "Initial inflation", s->mcl.initial_inflation, "-i f");
    for (int i = 0; i < s->inflation_count; i++)
        print_inflation(stdout, "Main inflation", s->inflations[i], "-I f");
}

/* mcl's bound: two matrices of 8-byte entries with max(S, R) entries a node. It holds for ours as well. */
static void print_ram(const settings *s)
{
    double kept = (double)(s->mcl.select > s->mcl.recover ? s->mcl.select : s->mcl.recover);
    double nodes = (double)s->ram_nodes;
    printf("The current settings require at most <%.0fG> RAM for a graph with <%lld> nodes,\n"
           "assuming the average node degree of the input graph does not exceed <%.0f>.\n"
           "This estimate will usually but not always be too cautious/high.\n",
           2 * 8 * nodes * kept / ldexp(1, 30), (long long)s->ram_nodes, 2 * fmin(nodes, kept));
}

static void print_names(const settings *s, bool whole)
{
    for (int i = 0; i < s->inflation_count; i++) {
        char name[MAX_PATH];
        if (i > 0) putchar('\n');
        if (whole) {
            if (s->input && settings_output_name(s, s->inflations[i], name)) fputs(name, stdout);
        } else {
            settings_suffix(s, s->inflations[i], name);
            printf("%s%s", name, s->suffix ? s->suffix : "");
        }
    }
}

void settings_answer(const settings *s)
{
    switch (s->request) {
    case REQUEST_RUN: break;
    case REQUEST_HELP: settings_usage(stdout); break;
    case REQUEST_HELP_ALL: settings_usage_all(stdout); break;
    case REQUEST_VERSION:
        puts("mcl-gpu " SP_VERSION ", with the options and results of\nmcl 22-282\n"
             "MIT licence. Stijn van Dongen invented Markov clustering (SIAM J. Matrix Anal. Appl. 30(1), 2008).");
        break;
    case REQUEST_SETTINGS: print_all_settings(s); break;
    case REQUEST_SCHEMES: print_presets(false); break;
    case REQUEST_SKIDS: print_presets(true); break;
    case REQUEST_CHARTER: print_charter(); break;
    case REQUEST_RAM: print_ram(s); break;
    case REQUEST_DOCTOR:
        doctor_print("mcl-gpu", "not used; gnn does",
                     "first expansions of more than 10 million multiplications a thread");
        break;
    case REQUEST_OUTPUT_NAME: print_names(s, true); break;
    case REQUEST_OUTPUT_SUFFIX: print_names(s, false); break;
    }
}
