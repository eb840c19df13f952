/* The implementation of options.h: values, their errors, and the lines of --help. */
#include "options.h"

#include <inttypes.h>
#include <string.h>

#include "tool.h"

/* ---- values --------------------------------------------------------------------------------------------- */

int find_word(const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0) return i;
    return -1;
}

/* Copies what stands before the next comma and returns what stands behind it: NULL after the last item, an empty item
 * where the text is too long. */
static const char *next_item(const char *list, char item[64])
{
    const size_t length = strcspn(list, ",");
    snprintf(item, 64, "%.*s", length < 64 ? (int)length : 0, list);
    return list[length] ? list + length + 1 : NULL;
}

static bool in_range(const option_row *row, double number)
{
    return (row->above ? number > row->low : number >= row->low) &&
           (row->below ? number < row->high : number <= row->high);
}

int read_counts(const char *text, double low, double high, int most, int64_t *numbers)
{
    int count = 0;
    char item[64];
    for (const char *rest = text; rest; count++) {
        rest = next_item(rest, item);
        if (count == most || !read_integer(item, &numbers[count])) return -1;
        if ((double)numbers[count] < low || (double)numbers[count] > high) return -1;
    }
    return count;
}

static bool read_words(const char *text, const char *const *words, unsigned *bits)
{
    char item[64];
    *bits = 0;
    for (const char *rest = text; rest;) {
        rest = next_item(rest, item);
        const int place = find_word(item, words);
        if (place < 0) return false;
        *bits |= 1u << place;
    }
    return true;
}

static bool read_yes_no(const char *text, bool *value)
{
    static const char *const words[] = {"y", "yes", "Y", "Yes", "1", "n", "no", "N", "No", "0", NULL};
    const int place = find_word(text, words);
    *value = place >= 0 && place < 5;
    return place >= 0;
}

static bool is_device(const char *text)
{
    static const char *const words[] = {"auto", "cpu", "cuda", NULL};
    const size_t length = strlen(text);
    return find_word(text, words) >= 0 || (strncmp(text, "cuda:", 5) == 0 && length > 5 && length <= 8 &&
                                           strspn(text + 5, "0123456789") == length - 5);
}

/* Also several of one kind. */
static bool are_devices(const char *text)
{
    char name[16];
    if (is_device(text) || strcmp(text, "cuda:all") == 0) return true;
    for (const char *at = text; at; at = strchr(at, ',')) {
        if (at > text) at++;
        const size_t length = strcspn(at, ",");
        if (length >= sizeof name) return false;
        memcpy(name, at, length);
        name[length] = '\0';
        if (!is_device(name) || strncmp(name, text, 3) != 0 || name[0] != 'c') return false;
    }
    return true;
}

static bool read_count(const option_row *row, const char *text, int64_t *number)
{
    return read_integer(text, number) && in_range(row, (double)*number);
}

/* Puts the value where the row says; false if it is none. */
static bool store(const option_row *row, void *field, const char *value)
{
    switch (row->kind) {
    case OPTION_FLAG: return *(bool *)field = true;
    case OPTION_YES_NO: return read_yes_no(value, field);
    case OPTION_TEXT: return *(const char **)field = value, true;
    case OPTION_WORD: {
        const int place = find_word(value, row->words);
        if (place >= 0) *(int *)field = (int)row->low + place;
        return place >= 0;
    }
    case OPTION_WORDS: return read_words(value, row->words, field);
    case OPTION_COUNT: return read_count(row, value, field);
    case OPTION_COUNTS: {
        option_counts *counts = field;
        counts->count = read_counts(value, row->low, row->high, row->most, counts->number);
        return counts->count > 0;
    }
    case OPTION_NUMBER: return read_number(value, field) && in_range(row, *(double *)field);
    case OPTION_BYTES: return read_bytes(value, field);
    case OPTION_DEVICE: return *(const char **)field = value, is_device(value);
    case OPTION_DEVICES: return *(const char **)field = value, are_devices(value);
    case OPTION_SET: *(int *)field = (int)row->low; return true;
    case OPTION_OWN:
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTION_IGNORED:
    case OPTION_REFUSED:
    case OPTION_HEADING:
    case OPTION_OPERAND: break;
    }
    return true;
}

/* ---- mistakes ------------------------------------------------------------------------------------------- */

enum { EXPECTED_TEXT = 256 };

/* "from 1 to 4096", "above 0 and at most 30", "from 0 to below 1", "from 0". */
static void describe_range(const option_row *row, char *text, size_t size)
{
    const double unlimited = 9e15; /* such limits are those of the type */
    const int used = snprintf(text, size, "%s %.10g", row->above ? "above" : "from", row->low);
    if (row->high > unlimited) return;
    snprintf(text + used, size - (size_t)used, " %s %.10g",
             row->above ? (row->below ? "and below" : "and at most") : row->below ? "to below" : "to", row->high);
}

static void join_words(const option_row *row, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; row->words[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", row->words[i]);
}

/* What an option takes, after its name. */
static void describe_value(const option_row *row, char text[EXPECTED_TEXT])
{
    char range[EXPECTED_TEXT - 64];
    switch (row->kind) {
    case OPTION_YES_NO: snprintf(text, EXPECTED_TEXT, "takes y or n"); return;
    case OPTION_WORD:
        join_words(row, range, sizeof range);
        snprintf(text, EXPECTED_TEXT, "is one of %s", range);
        return;
    case OPTION_WORDS:
        join_words(row, range, sizeof range);
        snprintf(text, EXPECTED_TEXT, "takes one or more of %s, separated by commas", range);
        return;
    case OPTION_BYTES: snprintf(text, EXPECTED_TEXT, "takes a size such as 8G or 500M"); return;
    case OPTION_DEVICE: snprintf(text, EXPECTED_TEXT, "is one of auto, cpu, cuda, cuda:N"); return;
    case OPTION_DEVICES:
        snprintf(text, EXPECTED_TEXT, "is one of auto, cpu, cuda, cuda:N, cuda:all, or a list such as cuda:0,cuda:1");
        return;
    default: break;
    }
    describe_range(row, range, sizeof range);
    if (row->kind == OPTION_COUNT) snprintf(text, EXPECTED_TEXT, "takes a whole number %s", range);
    else if (row->kind == OPTION_NUMBER) snprintf(text, EXPECTED_TEXT, "takes a number %s", range);
    else snprintf(text, EXPECTED_TEXT, "takes up to %d whole numbers %s, separated by commas", row->most, range);
}

/* ---- parsing -------------------------------------------------------------------------------------------- */

#define mistake(...) (usage_mistake(line->command, __VA_ARGS__), (options_outcome)OPTIONS_MISTAKE)

static options_outcome apply(const command_line *line, const option_row *row, const char *value, void *settings)
{
    char expected[EXPECTED_TEXT];
    const char *const *before = (const void *)((const char *)settings + row->field);
    if (row->once && *before)
        return mistake("%s is there twice, with \"%.200s\" and \"%.200s\": give one", row->name, *before, value);
    if (row->kind == OPTION_HELP) return OPTIONS_HELP;
    if (row->kind == OPTION_VERSION) return OPTIONS_VERSION;
    if (row->kind == OPTION_REFUSED) return mistake("option %s of mcl is not offered: %s", row->name, row->help);
    if (!store(row, (char *)settings + row->field, value)) {
        describe_value(row, expected);
        return mistake("%s %s (got \"%.40s\")", row->name, expected, value);
    }
    return !row->then || row->then(settings, value) ? OPTIONS_RUN : OPTIONS_MISTAKE;
}

static const char *without_dashes(const char *name) { return name + 1 + (name[1] == '-'); }

/* The row of an option that is `length` bytes long; with mcl's syntax dashes do not count. */
static const option_row *find_option(const command_line *line, const char *name, size_t length)
{
    for (int l = 0; l < MAX_OPTION_LISTS; l++)
        for (int i = 0; i < line->lists[l].count; i++) {
            const option_row *row = &line->lists[l].rows[i];
            const char *known = line->mcl_syntax ? without_dashes(row->name) : row->name;
            if (row->kind <= OPTION_OPERAND) continue;
            if (strlen(known) == length && strncmp(known, name, length) == 0) return row;
        }
    return NULL;
}

static bool is_option(const command_line *line, const char *text)
{
    if (text[0] != '-' || text[1] == '\0') return false;
    const char *name = line->mcl_syntax ? without_dashes(text) : text;
    return find_option(line, name, strlen(name)) != NULL;
}

/* ---- options that are unknown --------------------------------------------------------------------------- */

enum { LONGEST_NAME = 24, ADVICE_TEXT = 96 };

/* Without dashes and underscores, in lower case; false if it is too long. */
static bool plain_name(const char *name, char plain[LONGEST_NAME])
{
    int used = 0;
    for (; *name && *name != '='; name++) {
        if (*name == '-' || *name == '_') continue;
        if (used == LONGEST_NAME - 1) return false;
        plain[used++] = (char)(*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name);
    }
    plain[used] = '\0';
    return used > 0;
}

static int lesser(int a, int b) { return a < b ? a : b; }

/* Letters to insert, delete, change or exchange with the next. */
static int edits_between(const char *a, const char *b)
{
    int table[LONGEST_NAME][LONGEST_NAME]; /* [i][j]: for the first i bytes of a, the first j of b */
    const int length = (int)strlen(a), width = (int)strlen(b);
    for (int i = 0; i <= length; i++)
        for (int j = 0; j <= width; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            table[i][j] = lesser(table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
                                    lesser(table[i - 1][j], table[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                table[i][j] = lesser(table[i][j], table[i - 2][j - 2] + 1);
        }
    return table[length][width];
}

/* The option whose name is nearest: the same but for dashes and case, or with at most one wrong letter in four. */
static const option_row *nearest_option(const command_line *line, const char *plain)
{
    const option_row *nearest = NULL;
    int least = (int)strlen(plain) / 4 + 1;
    char known[LONGEST_NAME];
    for (int l = 0; l < MAX_OPTION_LISTS; l++)
        for (int i = 0; i < line->lists[l].count; i++) {
            const option_row *row = &line->lists[l].rows[i];
            if (row->kind <= OPTION_OPERAND || row->kind == OPTION_IGNORED || row->kind == OPTION_REFUSED) continue;
            const int edits = plain_name(row->name, known) ? edits_between(plain, known) : least;
            if (edits >= least) continue;
            least = edits;
            nearest = row;
        }
    return nearest;
}

/* " (perhaps --min-score)" for an option that is not known, or nothing. */
static void advise(const command_line *line, const char *argument, char text[ADVICE_TEXT])
{
    static const char *const usual[][3] = {{"inflation", "-I", ""}, {"threads", "-te", ""}, {"te", "--threads", ""},
                                           {"output", "-o", ""}, {"out", "-o", ""}, {"gpu", "--device", " cuda"},
                                           {"cuda", "--device", " cuda"}, {"cpu", "--device", " cpu"}};
    const char *name = without_dashes(argument);
    char plain[LONGEST_NAME];
    text[0] = '\0';
    if (argument[1] != '-' && strspn(name + 1, "0123456789.") > 0) {
        const option_row *row = find_option(line, line->mcl_syntax ? name : argument, line->mcl_syntax ? 1 : 2);
        if (row && row->argument) snprintf(text, ADVICE_TEXT, " (perhaps %s %.20s)", row->name, name + 1);
        return;
    }
    if (!plain_name(name, plain)) return;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        const char *option = line->mcl_syntax ? without_dashes(usual[i][1]) : usual[i][1];
        if (strcmp(plain, usual[i][0]) != 0 || !find_option(line, option, strlen(option))) continue;
        snprintf(text, ADVICE_TEXT, " (perhaps %s%s)", usual[i][1], usual[i][2]);
        return;
    }
    const option_row *row = nearest_option(line, plain);
    if (row) snprintf(text, ADVICE_TEXT, " (perhaps %s)", row->name);
}

static options_outcome refuse_unknown(const command_line *line, const char *argument)
{
    char advice[ADVICE_TEXT];
    advise(line, argument, advice);
    return mistake("unknown option \"%.40s\"%s", argument, advice);
}

/* Reads the option at argv[*index], and the next argument where it is its value. */
static options_outcome parse_option(const command_line *line, int argc, char **argv, int *index, void *settings)
{
    const char *argument = argv[*index];
    const char *name = line->mcl_syntax ? without_dashes(argument) : argument;
    const char *equals = line->mcl_syntax || argument[1] == '-' ? strchr(name, '=') : NULL;
    const option_row *row = find_option(line, name, equals ? (size_t)(equals - name) : strlen(name));
    if (!row) return refuse_unknown(line, argument);
    if (!row->argument)
        return equals ? mistake("%s takes no value", row->name) : apply(line, row, NULL, settings);
    if (equals) return apply(line, row, equals + 1, settings);
    if (*index + 1 >= argc) return mistake("%s needs a value", row->name);
    if (strcmp(row->argument, "FILE") == 0 && is_option(line, argv[*index + 1]))
        return mistake("%s needs a file, and \"%.40s\" is an option", row->name, argv[*index + 1]);
    return apply(line, row, argv[++*index], settings);
}

options_outcome options_parse(const command_line *line, int argc, char **argv, void *settings)
{
    bool operands = false; /* all that follow are */
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        options_outcome outcome = OPTIONS_RUN;
        if (line->mcl_syntax && argument[0] == '\0') continue;
        if (!line->mcl_syntax && !operands && strcmp(argument, "--") == 0) operands = true;
        else if (operands || argument[0] != '-' || argument[1] == '\0')
            outcome = line->operand(settings, argument) ? OPTIONS_RUN : OPTIONS_MISTAKE;
        else outcome = parse_option(line, argc, argv, &i, settings);
        if (outcome != OPTIONS_RUN) return outcome;
    }
    return OPTIONS_RUN;
}

/* ---- help ----------------------------------------------------------------------------------------------- */

enum { WIDEST_LEFT = 20, LEFT_TEXT = 80 };

/* The option and the name of its value. */
static int left_text(const option_row *row, char text[LEFT_TEXT])
{
    return snprintf(text, LEFT_TEXT, "%s%s%s", row->name, row->argument ? " " : "", row->argument ? row->argument : "");
}

static void print_row(const option_row *row, int width, FILE *stream)
{
    char left[LEFT_TEXT];
    if (row->kind == OPTION_HEADING) {
        fprintf(stream, *row->name ? "\n%s:" : "%s", row->name);
        return;
    }
    left_text(row, left);
    if (row->beside) fprintf(stream, "; %s", left);
    else fprintf(stream, "  %-*s", row->help ? width : 0, left);
    for (const char *text = row->help ? row->help : ""; *text; text++) {
        if (text == row->help) fputc(' ', stream);
        fputc(*text, stream);
        if (*text == '\n') fprintf(stream, "%*s", width + 3, "");
    }
}

static void print_rows(const command_line *line, bool all, FILE *stream)
{
    char left[LEFT_TEXT];
    int width = 0;
    bool open = false; /* a line that the next row may continue */
    for (int pass = 0; pass < 2; pass++)
        for (int l = 0; l < MAX_OPTION_LISTS; l++)
            for (int i = 0; i < line->lists[l].count; i++) {
                const option_row *row = &line->lists[l].rows[i];
                if (!row->main && !all) continue;
                if (pass == 0) {
                    const int used = row->help && !row->beside ? left_text(row, left) : 0;
                    if (used > width && used <= WIDEST_LEFT) width = used;
                    continue;
                }
                if (open && !row->beside) fputc('\n', stream);
                print_row(row, width, stream);
                open = true;
            }
    if (open) fputc('\n', stream);
}

void options_help(const command_line *line, FILE *stream) { print_rows(line, true, stream); }
void options_help_main(const command_line *line, FILE *stream) { print_rows(line, false, stream); }
