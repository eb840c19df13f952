/* What the parts of test_mcl share. */
#include <stdio.h>

#include "mcl_shared.h"

mcl_options defaults(void)
{
    mcl_options options;
    mcl_options_default(&options);
    return options;
}

const char *text(const mcl_clustering *clustering)
{
    static char line[4096];
    size_t at = 0;
    line[0] = '\0';
    for (int64_t c = 0; c < clustering->clusters; c++)
        for (int64_t i = clustering->offsets[c]; i < clustering->offsets[c + 1] && at < sizeof line - 16; i++) {
            const char *between = i > clustering->offsets[c] ? "," : c ? " " : "";
            at += (size_t)snprintf(line + at, sizeof line - at, "%s%d", between, clustering->members[i]);
        }
    return line;
}

const double path[] = {0, 2, 0, 0, 2, 9, 4, 0, 0, 4, 0, 0, 0, 0, 0, 0};
