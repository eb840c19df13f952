/* Characters, and the words and fields of a line. */
#ifndef IO_TEXT_WORDS_H
#define IO_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Blank as in C, except for the newline. */
static inline bool io_is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }

static inline bool io_is_digit(char c) { return c >= '0' && c <= '9'; }

/* 0,5: a comma between digits. */
static inline bool io_has_decimal_comma(const char *text, const char *end)
{
    for (const char *at = text + 1; at + 1 < end; at++)
        if (*at == ',' && io_is_digit(at[-1]) && io_is_digit(at[1])) return true;
    return false;
}

static inline const char *io_skip_blanks(const char *at, const char *end)
{
    while (at < end && io_is_blank(*at)) at++;
    return at;
}

static inline const char *io_skip_word(const char *at, const char *end)
{
    while (at < end && !io_is_blank(*at)) at++;
    return at;
}

/* The next word of the line, up to *at; empty at its end. */
static inline const char *io_next_word(const char **at, const char *end)
{
    const char *word = io_skip_blanks(*at, end);
    *at = io_skip_word(word, end);
    return word;
}

/* The place of the word among others, in upper or lower case; -1 if it is none of them. */
static inline int io_word_among(const char *word, const char *end, const char *const *others)
{
    const size_t length = (size_t)(end - word);
    for (int i = 0; others[i]; i++)
        if (strlen(others[i]) == length && strncasecmp(others[i], word, length) == 0) return i;
    return -1;
}

/* Whether a column of edges or rows that is called so counts them: then its numbers are no weights. */
static inline bool io_counts_rows(const char *name, const char *end)
{
    static const char *const counts[] = {"", "id", "edge_id", "index", "suid", NULL};
    return io_word_among(name, end, counts) >= 0;
}

static inline bool io_is_separator(char c) { return c == ',' || c == ';'; }

/* Whether this is a number with a decimal comma, as 1,5. */
static inline bool io_is_comma_number(const char *text, const char *end)
{
    int commas = 0;
    if (text < end && (*text == '-' || *text == '+')) text++;
    if (text == end || *text == ',' || end[-1] == ',') return false;
    for (; text < end; text++) {
        commas += *text == ',';
        if (*text != ',' && (*text < '0' || *text > '9')) return false;
    }
    return commas == 1;
}

/* Whether a line only tells a spreadsheet what separates fields: sep=; and the like, or without a tab at its end, which
 * may have been trimmed. It is a comment. */
static inline bool io_names_separator(const char *line, const char *end)
{
    const ptrdiff_t length = end - line;
    return (length == 4 || (length == 5 && strchr(",;|:\t ", line[4]))) && strncasecmp(line, "sep=", 4) == 0;
}

/* The separator that such a line names; 0: it is another line. */
static inline char io_named_separator(const char *line, const char *end)
{
    if (end > line && end[-1] == '\r') end--;
    return end - line == 5 && io_names_separator(line, end) ? line[4] : '\0';
}

/* Takes the blanks around *line..*end away; false if nothing is left, or a comment. */
static inline bool io_trim_line(const char **line, const char **end)
{
    *line = io_skip_blanks(*line, *end);
    while (*end > *line && io_is_blank((*end)[-1])) --*end;
    return *line < *end && **line != '#' && !io_names_separator(*line, *end);
}

/* Where a field ends: fields are separated by commas, semicolons or blanks. */
static inline const char *io_field_end(const char *field, const char *end)
{
    while (field < end && !io_is_blank(*field) && !io_is_separator(*field)) field++;
    return field;
}

/* The field at *at, which moves on to where the next one begins. */
static inline const char *io_next_field(const char **at, const char *end)
{
    const char *field = io_skip_blanks(*at, end);
    *at = io_skip_blanks(io_field_end(field, end), end);
    if (*at < end && io_is_separator(**at)) *at = io_skip_blanks(*at + 1, end);
    return field;
}

#endif
