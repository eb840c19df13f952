/* What a special path is worth: in a build with make ABLATION=1, left_out("NAME") is true while the environment variable
 * SPARSE_WITHOUT names it (a,b,c), and the path's work goes the way that would take it if the path did not exist.
 * bench/ablation.sh measures every name. In other builds it is false for the compiler, which leaves no trace of it. */
#ifndef BASE_ABLATION_H
#define BASE_ABLATION_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool left_out(const char *name)
{
#ifdef SPARSE_ABLATION
    const size_t length = strlen(name);
    for (const char *list = getenv("SPARSE_WITHOUT"); list && *list; list += *list == ',') {
        const size_t item = strcspn(list, ",");
        if (item == length && strncmp(list, name, length) == 0) return true;
        list += item;
    }
#else
    (void)name;
#endif
    return false;
}

#endif
