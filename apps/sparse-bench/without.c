/* What every special path of the library is worth: in a build with make ABLATION=1, the environment variable
 * BENCH_WITHOUT names paths (a,b,c; libsparse/base/ablation.h), and each case of ours is timed once more without each
 * of them. A line each on stdout, between tabs, for bench/ablation.py. In other builds there are no paths to leave out.
 */
#include <stdlib.h>
#include <string.h>

#include "sparse-bench/bench.h"

bool without_next(const char *operation, without *path)
{
#ifdef SPARSE_ABLATION
    if (!path->rest) path->rest = getenv("BENCH_WITHOUT");
    while (path->rest && *path->rest) {
        const size_t length = strcspn(path->rest, ",");
        snprintf(path->name, sizeof path->name, "%.*s", (int)length, path->rest);
        path->rest += length + (path->rest[length] == ',');
        if (strncmp(path->name, operation, strlen(operation)) == 0) return setenv("SPARSE_WITHOUT", path->name, 1) == 0;
    }
    unsetenv("SPARSE_WITHOUT");
#else
    (void)operation, (void)path;
#endif
    return false;
}

void without_report(const without *path, const source *from, const char *detail, const candidate *whole,
                    const candidate *left)
{
    if (*whole->word) return;
    printf("without\t%s\t%s\t%s %s\t%.9g\t%.9g\n", path->name, from->family ? from->family : "file", source_name(from),
           detail, whole->time.median, *left->word ? 0 : left->time.median);
}
