/* Fields of tables as spreadsheets and data frames write them: separated by tabs, commas, semicolons or blanks, and
 * quoted as in RFC 4180, but on one line. */
#ifndef IO_TEXT_FIELD_H
#define IO_TEXT_FIELD_H

#include <stdbool.h>

typedef struct io_field {
    const char *text, *end;
    bool doubled; /* some of its quotes stand for one, twice */
} io_field;

/* The separator of a line. Outside quotes a tab, else a semicolon, beside which commas are in numbers, else a comma,
 * else blanks: ' '. */
char io_find_separator(const char *line, const char *end);
/* Takes the field at *at, which becomes NULL behind the last one. Returns what is wrong with it, or NULL. */
const char *io_take_field(const char **at, const char *end, char separator, io_field *f);
/* Makes one quote of two, in the line that has the field. */
void io_undouble(char *line, io_field *f);

#endif
