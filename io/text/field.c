/* Fields of tables as spreadsheets and data frames write them. */
#include "text/field.h"

#include <string.h>

#include "text/words.h"

/* Blanks around a field do not belong to it. */
static bool is_padding(char c, char separator) { return c != separator && io_is_blank(c); }

/* The place behind the closing quote; NULL if there is none. */
static const char *take_quoted(const char *at, const char *end, io_field *f)
{
    for (f->text = ++at; at < end; at++) {
        if (*at != '"') continue;
        f->end = at;
        if (at + 1 == end || at[1] != '"') return at + 1;
        f->doubled = true;
        at++;
    }
    return NULL;
}

const char *io_take_field(const char **at, const char *end, char separator, io_field *f)
{
    const char *text = *at, *stop;
    while (text < end && is_padding(*text, separator)) text++;
    *f = (io_field){text, end, false};
    if (text < end && *text == '"') {
        stop = take_quoted(text, end, f);
        if (!stop) return "a quote that is not closed on its line";
        while (stop < end && is_padding(*stop, separator)) stop++;
        if (stop < end && *stop != separator) return "text behind a closing quote";
    } else {
        stop = separator == ' ' ? io_skip_word(text, end) : memchr(text, separator, (size_t)(end - text));
        if (!stop) stop = end;
        for (f->end = stop; f->end > text && is_padding(f->end[-1], separator);) f->end--;
    }
    if (stop < end) stop++;
    else stop = NULL;
    if (stop && separator == ' ') stop = io_skip_blanks(stop, end);
    *at = stop == end && separator == ' ' ? NULL : stop;
    return NULL;
}

void io_undouble(char *line, io_field *f)
{
    if (!f->doubled) return;
    char *to = line + (f->text - line), *from = to;
    const char *end = f->end;
    while (from < end) {
        *to++ = *from;
        from += *from == '"' ? 2 : 1;
    }
    f->end = to;
}

char io_find_separator(const char *line, const char *end)
{
    static const char kinds[] = " ,;\t";
    const char *best = kinds, *kind;
    bool quoted = false;
    for (; line < end; line++) {
        quoted = quoted != (*line == '"');
        if (!quoted && (kind = strchr(kinds, *line)) && *line && kind > best) best = kind;
    }
    return *best;
}
