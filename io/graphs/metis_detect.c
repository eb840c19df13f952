/* Whether text is a METIS graph, from its beginning. Label pairs may be whole numbers too. In a METIS graph every line
 * fits the header, and each edge is in the lines of both its nodes, which does not happen in a list by chance. A short
 * text that fits both ways is a METIS graph only if the counts in the header are right.
 */
#include <string.h>

#include "graphs/metis.h"
#include "text/words.h"

/* Text that begins a file, or all of it. */
typedef struct beginning {
    const char *at, *end;
    bool whole;
} beginning;

/* The next complete line that is not a comment. */
static bool next_line(beginning *text, const char **line, const char **end)
{
    while (text->at < text->end) {
        const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
        if (!newline && !text->whole) return false;
        *line = text->at;
        *end = newline ? newline : text->end;
        text->at = newline ? newline + 1 : text->end;
        if (**line != '%') return true;
    }
    return false;
}

/* What lines of nodes add up to. */
typedef struct sums {
    int64_t lines;    /* of nodes in the text */
    int64_t arcs;     /* in all of them */
    int64_t inside;   /* arcs between nodes whose lines are there */
    uint64_t hash;    /* of those that ascend, less those that descend */
    bool other_count; /* a line has fewer or more fields than a label pair */
} sums;

static bool add_arc(const io_metis_head *head, int64_t node, int64_t neighbour, int64_t weight, sums *s)
{
    if (neighbour < 1 || neighbour > head->nodes || neighbour == node) return false;
    s->arcs++;
    if (neighbour > s->lines) return true;
    const bool ascends = node < neighbour;
    const uint64_t hash = io_metis_hash((int32_t)(ascends ? node : neighbour), (int32_t)(ascends ? neighbour : node),
                                        (double)weight);
    s->inside++;
    s->hash += ascends ? hash : -hash;
    return true;
}

/* Whether the line of a node, counted from 1, fits the header. */
static bool add_line(const io_metis_head *head, int64_t node, const char *line, const char *end, sums *s)
{
    const int before = head->sized + head->constraints;
    int64_t number, neighbour = 0;
    int fields = 0;
    if (io_skip_blanks(line, end) == end) return before == 0 || node > head->nodes;
    if (node > head->nodes) return false;
    for (const char *word; (word = io_next_word(&line, end)) < line; fields++) {
        if (!io_parse_index(word, line, IO_MOST_NODE_WEIGHT, &number)) return false;
        const int place = fields - before;
        if (place < 0) continue;
        if (head->valued && place % 2 == 0) neighbour = number;
        else if (!add_arc(head, node, head->valued ? neighbour : number, head->valued ? number : 1, s)) return false;
    }
    s->other_count = s->other_count || fields < 2 || fields > 3;
    return fields >= before && (!head->valued || (fields - before) % 2 == 0);
}

bool io_looks_like_metis(const char *bytes, size_t count, bool whole)
{
    beginning text = {bytes, bytes + count, whole}, nodes;
    io_metis_head head;
    sums s = {0};
    const char *line = bytes, *end = bytes;
    do {
        if (!next_line(&text, &line, &end)) return false;
    } while (io_skip_blanks(line, end) == end);
    if (!io_metis_parse_header(line, end, &head) || head.stray || head.nodes == 0) return false;
    nodes = text;
    while (next_line(&text, &line, &end)) s.lines++;
    text = nodes;
    for (int64_t node = 1; next_line(&text, &line, &end); node++)
        if (!add_line(&head, node, line, end, &s)) return false;
    if (whole && (s.lines < head.nodes || s.arcs != 2 * head.edges)) return false;
    return s.hash == 0 && (s.inside > 0 || s.other_count);
}
