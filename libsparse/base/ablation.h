/* Measures what a special path saves. In a build with make ABLATION=1, left_out("NAME") is true while the environment
 * variable SPARSE_WITHOUT names the path (a,b,c); its work then goes the way that it would go without the path.
 * bench/ablation.sh measures every name. In other builds left_out is false at compile time and leaves no code. */
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
