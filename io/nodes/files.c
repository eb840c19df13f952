/* The files of a folder, and label pairs in several files as if these were one: nodes are numbered by their first
 * appearance in the order of the files. A file is read whole before the next, so a mistake has its own name and line.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/try.h"
#include "base/value.h"
#include "bytes/memory.h"
#include "text/labels.h"
#include "text/number.h"

/* ---- a folder ---------------------------------------------------------------------------------------------- */

bool io_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

sp_status io_require_file(sp_context *context, const char *path)
{
    const bool is_input = strcmp(path, "-") == 0;
    struct stat about;
    if (!is_input && (stat(path, &about) != 0 || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode))) return SP_OK;
    return sp_fail(context, SP_ERROR_ARGUMENT, "%s: it is read twice, and so has to be a file: write it to one",
                   is_input ? "(standard input)" : path);
}

static int by_path(const void *a, const void *b)
{
    const io_file_entry *x = a, *y = b;
    return strcmp(x->path, y->path);
}

/* Adds the file; a folder in the folder is passed over. */
static sp_status add_file(sp_context *context, const char *folder, const char *name, int64_t *capacity, io_files *files)
{
    const size_t room = strlen(folder) + strlen(name) + 2;
    struct stat about;
    char *path;
    sp_status status = sp_alloc(context, (int64_t)room, 1, (void **)&path);
    if (status != SP_OK) return status;
    const bool slash = folder[strlen(folder) - 1] == '/';
    strcpy(path, folder);
    if (!slash) strcat(path, "/");
    strcat(path, name);
    if (stat(path, &about) != 0)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s; the folder's files are the input", path, strerror(errno));
    else if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: no file, but the folder's files are the input", path);
    if (status != SP_OK || S_ISDIR(about.st_mode)) {
        sp_free(context, path);
        return status;
    }
    status = io_reserve(context, files->count, files->count + 1, sizeof *files->list, capacity, (void **)&files->list);
    if (status == SP_OK) files->list[files->count++] = (io_file_entry){path, (int64_t)about.st_size};
    else sp_free(context, path);
    return status;
}

sp_status io_list_folder(sp_context *context, const char *path, io_files *files)
{
    int64_t capacity = 0;
    sp_status status = SP_OK;
    DIR *folder = opendir(path);
    *files = (io_files){0};
    if (!folder) return sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", path, strerror(errno));
    errno = 0;
    for (const struct dirent *entry; status == SP_OK && (entry = readdir(folder)); errno = 0)
        if (entry->d_name[0] != '.' && entry->d_name[0] != '_')
            status = add_file(context, path, entry->d_name, &capacity, files);
    if (status == SP_OK && errno) status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: %s", path, strerror(errno));
    if (status == SP_OK && files->count == 0)
        status = sp_fail(context, SP_ERROR_ARGUMENT, "%s: this folder has no files; give one with label pairs", path);
    closedir(folder);
    if (files->count > 0) qsort(files->list, (size_t)files->count, sizeof *files->list, by_path);
    if (status != SP_OK) io_files_free(context, files);
    return status;
}

void io_files_free(sp_context *context, io_files *files)
{
    for (int64_t i = 0; i < files->count; i++) sp_free(context, files->list[i].path);
    sp_free(context, files->list);
    *files = (io_files){0};
}

/* ---- their pairs ------------------------------------------------------------------------------------------- */

/* The graph that grows file by file. */
typedef struct joined {
    io_labels labels;
    int64_t tails, heads, weights; /* room in these arrays of the graph */
    bool weighted;                 /* a file has weights */
} joined;

/* ids[i]: the number of the file's label i among all. */
static sp_status number_names(sp_context *context, joined *all, const io_names *names, int32_t *ids)
{
    sp_status status = SP_OK;
    for (int64_t i = 0; i < names->count && status == SP_OK; i++) {
        const char *name = io_name(names, i);
        const size_t length = io_name_length(names, i);
        status = io_labels_add(context, &all->labels, name, length, io_label_hash(name, length), &ids[i]);
    }
    return status;
}

static sp_status append(sp_context *context, joined *all, const io_graph *one, io_graph *graph)
{
    const int64_t first = graph->arcs, end = first + one->arcs;
    const size_t size = graph->values == SP_F64 ? sizeof(double) : sizeof(float);
    int32_t *ids = NULL;
    sp_status status;
    TRY(sp_alloc(context, one->names.count, sizeof *ids, (void **)&ids));
    TRY(number_names(context, all, &one->names, ids));
    TRY(io_reserve(context, first, end, sizeof *graph->tails, &all->tails, (void **)&graph->tails));
    TRY(io_reserve(context, first, end, sizeof *graph->heads, &all->heads, (void **)&graph->heads));
    TRY(io_reserve(context, first, end, size, &all->weights, &graph->weights));
    for (int64_t k = 0; k < one->arcs; k++) {
        graph->tails[first + k] = ids[one->tails[k]];
        graph->heads[first + k] = ids[one->heads[k]];
        io_store_value(graph->weights, graph->values, first + k,
                       one->weights ? load_value(one->weights, one->values, k) : 1);
    }
    graph->arcs = end;
    all->weighted = all->weighted || one->weights;
done:
    sp_free(context, ids);
    return status;
}

sp_status io_read_files(sp_context *context, const io_file_entry *files, int64_t count, const io_read_options *options,
                        io_graph *graph)
{
    joined all = {.labels = {.file = count > 0 ? files[0].path : ""}};
    io_graph one = {0};
    sp_status status = SP_OK;
    *graph = (io_graph){.format = IO_ABC, .first = -1, .symmetric = true, .undirected = true,
                        .values = options->values};
    for (int64_t i = 0; i < count; i++) {
        TRY(io_read_graph(context, files[i].path, options, &one));
        if (one.format != IO_ABC)
            TRY(sp_fail(context, SP_ERROR_UNSUPPORTED,
                        "%s: %s, and the files of a folder are read as label pairs; give "
                        "this file alone", files[i].path, io_format_name(one.format)));
        TRY(append(context, &all, &one, graph));
        graph->lines += one.lines;
        graph->bytes += one.bytes;
        graph->odd_lines += one.odd_lines;
        graph->negative += one.negative;
        graph->blast_hits = graph->blast_hits || one.blast_hits;
        io_graph_free(context, &one);
    }
    if (!all.weighted) {
        sp_free(context, graph->weights);
        graph->weights = NULL;
    }
    graph->nodes = all.labels.list.names.count;
    graph->names = all.labels.list.names;
    all.labels.list.names = (io_names){0};
done:
    io_graph_free(context, &one);
    io_labels_free(context, &all.labels);
    if (status != SP_OK) io_graph_free(context, graph);
    return status;
}
