/* Several processes that read one input together, each a part of a file or some files of a folder. Only process 0 has
 * all labels.
 *
 * Nodes of a Matrix Market file have their numbers. Those of label pairs are numbered by their first appearance in the
 * file, as one process numbers them. Each label belongs to a process by its hash, which finds out whose part has it
 * first. Those that a process has first get numbers in the order of its part, behind those of the parts before; the
 * owner tells them to the others. Four messages between any two processes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "team.h"

/* ---- labels to their owners ---------------------------------------------------------------------------------- */

static uint64_t hash_label(const char *text, size_t length) { return mix_bytes(length, text, length); }

/* Labels on their way: those of this process by owner, and those that it owns by process. */
typedef struct label_exchange {
    sp_traffic labels, text;
    int64_t *place;    /* of each label of this process among those sent */
    uint32_t *lengths; /* of those got */
    char *bytes;
    int32_t *entry;    /* of each label got: its number among the different ones */
    int64_t different;
    uint8_t *is_first; /* of each label got: nobody before has it */
} label_exchange;

static void close_exchange(team *t, label_exchange *x)
{
    sp_traffic_free(t->host, &x->labels);
    sp_traffic_free(t->host, &x->text);
    FREE_ALL(t->host, x->place, x->lengths, x->bytes, x->entry, x->is_first);
}

/* Sorts this process's labels by owner, and learns how many come from where. */
static sp_status address_labels(team *t, const io_names *names, label_exchange *x)
{
    const int size = t->ranks->size;
    int64_t *next = NULL, at = 0;
    sp_status status;
    TRY(sp_traffic_create(t->host, t->ranks, &x->labels));
    TRY(sp_traffic_create(t->host, t->ranks, &x->text));
    TRY(sp_alloc(t->host, size, sizeof *next, (void **)&next));
    TRY(sp_alloc(t->host, names->count, sizeof *x->place, (void **)&x->place));
    for (int64_t i = 0; i < names->count; i++) {
        const size_t length = io_name_length(names, i);
        x->place[i] = (int64_t)(hash_label(io_name(names, i), length) % (uint64_t)size);
        x->labels.out[x->place[i]]++;
        x->text.out[x->place[i]] += (int64_t)length;
    }
    for (int r = 0; r < size; at += x->labels.out[r++]) next[r] = at;
    for (int64_t i = 0; i < names->count; i++) x->place[i] = next[x->place[i]]++;
    TRY(sp_traffic_learn(t->host, t->ranks, &x->labels));
    TRY(sp_traffic_learn(t->host, t->ranks, &x->text));
done:
    sp_free(t->host, next);
    return status;
}

static sp_status send_labels(team *t, const io_names *names, label_exchange *x)
{
    uint32_t *lengths = NULL;
    int64_t *order = NULL;
    char *bytes = NULL;
    sp_status status;
    TRY(sp_alloc(t->host, x->labels.sent, sizeof *lengths, (void **)&lengths));
    TRY(sp_alloc(t->host, x->labels.sent, sizeof *order, (void **)&order));
    TRY(sp_alloc(t->host, names->count ? io_name_begin(names, names->count) : 0, 1, (void **)&bytes));
    TRY(sp_alloc(t->host, x->labels.got, sizeof *x->lengths, (void **)&x->lengths));
    TRY(sp_alloc(t->host, x->text.got, 1, (void **)&x->bytes));
    for (int64_t i = 0; i < x->labels.sent; i++) order[x->place[i]] = i;
    for (int64_t k = 0, at = 0; k < x->labels.sent; at += lengths[k++]) {
        lengths[k] = (uint32_t)io_name_length(names, order[k]);
        memcpy(bytes + at, io_name(names, order[k]), lengths[k]);
    }
    TRY(sp_traffic_exchange(t->host, t->ranks, &x->labels, sizeof *lengths, lengths, x->lengths));
    TRY(sp_traffic_exchange(t->host, t->ranks, &x->text, 1, bytes, x->bytes));
done:
    FREE_ALL(t->host, lengths, order, bytes);
    return status;
}

/* Tells the labels apart that this process owns. */
static sp_status find_first(team *t, label_exchange *x)
{
    struct slot { int64_t place; int32_t entry; uint32_t length; } *slots = NULL; /* length 0: free */
    uint64_t mask = 1;
    int64_t at = 0;
    sp_status status;
    while (mask < (uint64_t)x->labels.got * 2) mask *= 2;
    TRY(sp_calloc(t->host, (int64_t)mask, sizeof *slots, (void **)&slots));
    TRY(sp_alloc(t->host, x->labels.got, sizeof *x->entry, (void **)&x->entry));
    TRY(sp_alloc(t->host, x->labels.got, 1, (void **)&x->is_first));
    mask--;
    for (int64_t k = 0; k < x->labels.got; at += x->lengths[k++]) {
        const char *text = x->bytes + at;
        uint64_t h = hash_label(text, x->lengths[k]) >> 20 & mask;
        while (slots[h].length && (slots[h].length != x->lengths[k] ||
                                   memcmp(x->bytes + slots[h].place, text, x->lengths[k]) != 0))
            h = (h + 1) & mask;
        x->is_first[k] = !slots[h].length;
        if (x->is_first[k]) {
            slots[h].place = at;
            slots[h].length = x->lengths[k];
            slots[h].entry = (int32_t)x->different++;
        }
        x->entry[k] = slots[h].entry;
    }
done:
    sp_free(t->host, slots);
    return status;
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

/* Numbers of the labels that this process has first, -1 for the others, as the owners say. */
static sp_status number_first(team *t, const char *path, const label_exchange *x, const uint8_t *is_first, int32_t *ids,
                              int64_t *nodes)
{
    int64_t *counts = NULL, own = 0, next = 0;
    sp_status status;
    *nodes = 0;
    TRY(sp_alloc(t->host, t->ranks->size, sizeof *counts, (void **)&counts));
    for (int64_t i = 0; i < x->labels.sent; i++) own += is_first[x->place[i]];
    TRY(team_share(t, &own, sizeof own, counts));
    for (int r = 0; r < t->ranks->size; r++) {
        if (r < t->ranks->rank) next += counts[r];
        *nodes += counts[r];
    }
    if (*nodes > INT32_MAX) TRY(sp_fail(t->host, SP_ERROR_OVERFLOW, "%s: 2^31 nodes or more", path));
    for (int64_t i = 0; i < x->labels.sent; i++) ids[i] = is_first[x->place[i]] ? (int32_t)next++ : -1;
done:
    sp_free(t->host, counts);
    return status;
}

/* Fills in the numbers that other processes have given. */
static sp_status learn_numbers(team *t, label_exchange *x, int32_t *ids)
{
    int32_t *sent = NULL, *got = NULL, *known = NULL;
    sp_status status;
    TRY(sp_alloc(t->host, x->labels.sent, sizeof *sent, (void **)&sent));
    TRY(sp_alloc(t->host, x->labels.got, sizeof *got, (void **)&got));
    TRY(sp_alloc(t->host, x->different, sizeof *known, (void **)&known));
    for (int64_t i = 0; i < x->labels.sent; i++) sent[x->place[i]] = ids[i];
    TRY(sp_traffic_exchange(t->host, t->ranks, &x->labels, sizeof *sent, sent, got));
    for (int64_t k = 0; k < x->labels.got; k++)
        if (got[k] >= 0) known[x->entry[k]] = got[k];
    for (int64_t k = 0; k < x->labels.got; k++) got[k] = known[x->entry[k]];
    TRY(sp_traffic_answer(t->host, t->ranks, &x->labels, sizeof *sent, got, sent));
    for (int64_t i = 0; i < x->labels.sent; i++) ids[i] = sent[x->place[i]];
done:
    FREE_ALL(t->host, sent, got, known);
    return status;
}

/* Process 0 gets the names of all nodes: those that each process had first, in their order. */
static sp_status gather_names(team *t, const io_names *names, const uint8_t *is_first, const label_exchange *x,
                              int64_t nodes, io_names *all)
{
    const bool collects = t->ranks->rank == 0;
    uint32_t *lengths = NULL, *all_lengths = NULL;
    int64_t *counts = NULL, own = 0, bytes = 0, total = 0;
    char *text = NULL;
    sp_status status;
    TRY(sp_alloc(t->host, t->ranks->size, sizeof *counts, (void **)&counts));
    TRY(sp_alloc(t->host, names->count, sizeof *lengths, (void **)&lengths));
    TRY(sp_alloc(t->host, names->count ? io_name_begin(names, names->count) : 0, 1, (void **)&text));
    for (int64_t i = 0; i < names->count; i++) {
        if (!is_first[x->place[i]]) continue;
        lengths[own] = (uint32_t)io_name_length(names, i);
        memcpy(text + bytes, io_name(names, i), lengths[own]);
        bytes += lengths[own++];
    }
    TRY(team_share(t, &bytes, sizeof bytes, counts));
    for (int r = 0; r < t->ranks->size; r++) total += counts[r];
    TRY(sp_alloc(t->host, collects ? total : 0, 1, (void **)&all->bytes));
    TRY(team_gather(t, text, bytes, counts, all->bytes));
    own *= (int64_t)sizeof *lengths;
    TRY(team_share(t, &own, sizeof own, counts));
    TRY(sp_alloc(t->host, collects ? nodes : 0, sizeof *all_lengths, (void **)&all_lengths));
    TRY(team_gather(t, lengths, own, counts, all_lengths));
    TRY(sp_alloc(t->host, collects ? nodes / IO_NAME_GROUP + 1 : 0, sizeof *all->groups, (void **)&all->groups));
    TRY(sp_alloc(t->host, collects ? nodes + 1 : 0, sizeof *all->offsets, (void **)&all->offsets));
    total = 0;
    for (int64_t i = 0; collects && i <= nodes; i++) {
        if (i % IO_NAME_GROUP == 0) all->groups[i / IO_NAME_GROUP] = total;
        all->offsets[i] = (uint32_t)(total - all->groups[i / IO_NAME_GROUP]);
        if (i < nodes) total += all_lengths[i];
    }
    all->count = collects ? nodes : 0;
done:
    FREE_ALL(t->host, counts, lengths, all_lengths, text);
    return status;
}

/* ids[i]: the number of this part's label i among those of the whole file. */
static sp_status number_labels(team *t, const char *path, const io_names *names, int32_t *ids, io_graph *whole)
{
    label_exchange x = {0};
    uint8_t *is_first = NULL; /* of the labels sent */
    sp_status status;
    TRY(address_labels(t, names, &x));
    TRY(send_labels(t, names, &x));
    TRY(find_first(t, &x));
    TRY(sp_alloc(t->host, x.labels.sent, 1, (void **)&is_first));
    TRY(sp_traffic_answer(t->host, t->ranks, &x.labels, 1, x.is_first, is_first));
    TRY(number_first(t, path, &x, is_first, ids, &whole->nodes));
    TRY(learn_numbers(t, &x, ids));
    TRY(gather_names(t, names, is_first, &x, whole->nodes, &whole->names));
done:
    sp_free(t->host, is_first);
    close_exchange(t, &x);
    return status;
}

/* ---- the input ------------------------------------------------------------------------------------------------ */

bool team_can_read(const team *t, const char *path, const io_read_options *options, int64_t least)
{
    io_files files;
    struct stat file;
    int64_t bytes = 0;
    bool can = false;
    if (io_is_folder(path)) {
        if (io_list_folder(t->host, path, &files) != SP_OK) return true; /* read_folder says why */
        for (int64_t i = 0; i < files.count; i++) bytes += files.list[i].bytes;
        io_files_free(t->host, &files);
        return bytes >= least;
    }
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && file.st_size >= least &&
           io_can_part(t->host, path, options, &can) == SP_OK && can;
}

/* Sums up the figures of the parts. */
static sp_status add_up_parts(team *t, const io_graph *part, io_graph *whole)
{
    int64_t *checksums = NULL;
    sp_status status;
    whole->format = part->format;
    whole->first = part->first;
    whole->nodes = part->nodes;
    whole->symmetric = part->symmetric;
    whole->undirected = part->undirected;
    whole->skew = part->skew;
    whole->values = part->values;
    whole->arcs = part->arcs;
    whole->lines = part->lines;
    whole->bytes = part->bytes;
    whole->odd_lines = part->odd_lines;
    whole->negative = part->negative;
    whole->blast_hits = part->blast_hits;
    whole->part = part->part;
    int64_t *const sums[] = {&whole->arcs, &whole->lines, &whole->bytes, &whole->odd_lines, &whole->negative,
                             &whole->part.entries, &whole->part.above, &whole->part.below};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) TRY(team_add_up(t, sums[i]));
    TRY(team_agree(t, &whole->first, sizeof whole->first)); /* process 0 knows whether a binary matrix has names */
    TRY(sp_alloc(t->host, t->ranks->size, sizeof *checksums, (void **)&checksums));
    TRY(sp_ranks_numbers(t->host, t->ranks, part->part.checksum, checksums));
    whole->part.checksum = 0;
    for (int r = 0; r < t->ranks->size; r++) whole->part.checksum ^= checksums[r];
done:
    sp_free(t->host, checksums);
    return status;
}

/* Gives each label of the part its number in the whole file. */
static sp_status number_arcs(team *t, const char *path, io_graph *part, io_graph *whole)
{
    int32_t *ids = NULL;
    sp_status status;
    TRY(sp_alloc(t->host, part->names.count, sizeof *ids, (void **)&ids));
    TRY(number_labels(t, path, &part->names, ids, whole));
    for (int64_t k = 0; k < part->arcs; k++) {
        part->tails[k] = ids[part->tails[k]];
        part->heads[k] = ids[part->heads[k]];
    }
done:
    sp_free(t->host, ids);
    return status;
}

/* Whether the parts make the file's graph. Otherwise one process that reads it whole finds what is wrong, if it is. */
static bool are_sound(const io_graph *in)
{
    const io_part *p = &in->part;
    const bool twice = (in->symmetric || in->skew) && p->above > 0 && p->below > 0;
    const bool counted = in->format == IO_MTX || in->format == IO_CSR || in->format == IO_NATIVE;
    return !counted || (p->entries == p->announced && !twice && p->checksum == p->written);
}

/* Reads the files of a folder that begin in this process's share of their bytes. */
static sp_status read_some(team *t, const io_files *files, const io_read_options *options, io_graph *part)
{
    const sp_ranks *ranks = t->ranks;
    int64_t all = 0, at = 0, first = -1, count = 0;
    for (int64_t i = 0; i < files->count; i++) all += files->list[i].bytes;
    for (int64_t i = 0; i < files->count; at += files->list[i++].bytes) {
        const int owner = all > 0 ? (int)((double)at / (double)all * ranks->size) : 0;
        if ((owner < ranks->size ? owner : ranks->size - 1) != ranks->rank) continue;
        if (first < 0) first = i;
        count++;
    }
    return io_read_files(t->host, first < 0 ? NULL : files->list + first, count, options, part);
}

/* Fails in a process that sees something else than process 0. */
static sp_status compare_hashes(team *t, const char *path, uint64_t own, const char *what)
{
    uint64_t first = own;
    const sp_status status = team_agree(t, &first, sizeof first);
    if (status != SP_OK || first == own) return status;
    return sp_fail(t->host, SP_ERROR_ARGUMENT, "%s: not the %s; give one that all hosts share", path, what);
}

/* Of their input all processes hash sizes and samples; of up to SAMPLES * SAMPLE_BYTES bytes in a file that is
 * everything. */
enum { SAMPLES = 256, SAMPLE_BYTES = 4096 };

static uint64_t hash_file(const char *path, int64_t samples, uint64_t hash)
{
    char sample[SAMPLE_BYTES];
    struct stat file = {0};
    FILE *from = fopen(path, "rb");
    if (from) fstat(fileno(from), &file);
    hash = mix_bytes(hash, &file.st_size, sizeof file.st_size);
    for (int64_t k = 0; k < samples && from; k++) {
        const off_t place = (off_t)((double)file.st_size / (double)samples * (double)k);
        const size_t got = fseeko(from, place, SEEK_SET) == 0 ? fread(sample, 1, sizeof sample, from) : 0;
        hash = mix_bytes(hash, sample, got);
    }
    if (from) fclose(from);
    return hash;
}

static sp_status compare_file(team *t, const char *path)
{
    return compare_hashes(t, path, hash_file(path, SAMPLES, 1), "file that process 0 sees");
}

/* The names and sizes of all files, and as many samples as of one file. */
static sp_status compare_files(team *t, const char *path, const io_files *files)
{
    const int64_t sampled = files->count < SAMPLES ? files->count : SAMPLES;
    uint64_t own = 1;
    for (int64_t i = 0; i < files->count; i++) {
        own = mix_bytes(own, files->list[i].path, strlen(files->list[i].path));
        own = mix_bytes(own, &files->list[i].bytes, sizeof files->list[i].bytes);
    }
    for (int64_t k = 0; k < sampled; k++) {
        const int64_t i = (int64_t)((double)files->count / (double)sampled * (double)k);
        own = hash_file(files->list[i].path, SAMPLES / sampled, own);
    }
    return compare_hashes(t, path, own, "files that process 0 sees");
}

static sp_status read_folder(team *t, const char *path, const io_read_options *options, io_graph *part)
{
    io_files files = {0};
    sp_status status;
    TRY(team_agree_on(t, io_list_folder(t->host, path, &files)));
    TRY(team_agree_on(t, compare_files(t, path, &files)));
    TRY(team_agree_on(t, read_some(t, &files, options, part)));
done:
    io_files_free(t->host, &files);
    return status;
}

static sp_status read_file(team *t, const char *path, io_read_options options, io_graph *part)
{
    sp_status status = team_agree_on(t, compare_file(t, path));
    if (status != SP_OK) return status;
    options.part = t->ranks->rank;
    options.parts = t->ranks->size;
    return team_agree_on(t, io_read_graph(t->host, path, &options, part));
}

/* The parts become one graph. */
static sp_status join_parts(team *t, const char *path, io_graph *part, io_graph *whole, bool *sound)
{
    sp_status status;
    TRY(add_up_parts(t, part, whole));
    *sound = are_sound(whole);
    if (*sound && whole->format == IO_ABC) TRY(number_arcs(t, path, part, whole));
    if (*sound && whole->format == IO_CSR) {
        whole->names = part->names; /* process 0's */
        part->names = (io_names){0};
    }
    if (*sound && whole->format == IO_NATIVE) {
        whole->ids = part->ids; /* those of all nodes */
        part->ids = NULL;
    }
done:
    if (status != SP_OK) team_give_up(t, t->host, status); /* the others are waiting in the middle of it */
    return status;
}

sp_status team_read(team *t, const char *path, io_read_options options, io_graph *part, io_graph *whole, bool *sound)
{
    *part = *whole = (io_graph){0};
    sp_status status = io_is_folder(path) ? read_folder(t, path, &options, part) : read_file(t, path, options, part);
    if (status == SP_OK) status = join_parts(t, path, part, whole, sound);
    if (status == SP_OK) io_names_free(t->host, &part->names);
    if (status == SP_OK && *sound) return SP_OK;
    io_graph_free(t->host, part);
    *whole = (io_graph){0};
    return status;
}
