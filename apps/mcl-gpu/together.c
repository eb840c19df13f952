/* Several processes that read one input together, each a part of a file or some files of a folder, and each keeps some
 * rows of the graph. Only process 0 has all labels.
 *
 * Nodes of a Matrix Market file have their numbers. Those of label pairs are numbered by their first appearance in the
 * file, as one process numbers them. Each label belongs to a process by its hash, which finds out whose part has it
 * first. Those that a process has first get numbers in the order of its part, behind those of the parts before; the owner
 * tells them to the others. Four messages between any two processes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/try.h"
#include "job.h"

/* Smaller files are read by all, and the log says more: hubs, and how long the run will take. */
enum { LEAST_BYTES = 64 << 20 };

/* ---- labels to their owners ---------------------------------------------------------------------------------- */

static uint64_t hash_label(const char *text, size_t length) { return job_mix(length, text, length); }

/* Labels on their way: those of this process by owner, and those that it owns by process. */
typedef struct label_exchange {
    int64_t *to, *from, *bytes_to, *bytes_from; /* labels and bytes for and of each process; one block */
    int64_t sent, got;
    int64_t *place;    /* of each label of this process among those sent */
    uint32_t *lengths; /* of those got */
    char *bytes;
    int32_t *entry;    /* of each label got: its number among the different ones */
    int64_t different;
    uint8_t *is_first; /* of each label got: nobody before has it */
} label_exchange;

static void close_exchange(job *j, label_exchange *x)
{
    sp_free(j->host, x->to);
    sp_free(j->host, x->place);
    sp_free(j->host, x->lengths);
    sp_free(j->host, x->bytes);
    sp_free(j->host, x->entry);
    sp_free(j->host, x->is_first);
}

/* Sorts this process's labels by owner, and learns how many come from where. */
static sp_status address_labels(job *j, const io_names *names, label_exchange *x)
{
    const int size = j->ranks->size;
    int64_t *next = NULL, at = 0;
    sp_status status;
    TRY(sp_calloc(j->host, 4 * (int64_t)size, sizeof *x->to, (void **)&x->to));
    x->from = x->to + size;
    x->bytes_to = x->from + size;
    x->bytes_from = x->bytes_to + size;
    TRY(sp_alloc(j->host, size, sizeof *next, (void **)&next));
    TRY(sp_alloc(j->host, names->count, sizeof *x->place, (void **)&x->place));
    for (int64_t i = 0; i < names->count; i++) {
        const size_t length = io_name_length(names, i);
        x->place[i] = (int64_t)(hash_label(io_name(names, i), length) % (uint64_t)size);
        x->to[x->place[i]]++;
        x->bytes_to[x->place[i]] += (int64_t)length;
    }
    for (int r = 0; r < size; at += x->to[r++]) next[r] = at;
    for (int64_t i = 0; i < names->count; i++) x->place[i] = next[x->place[i]]++;
    x->sent = names->count;
    TRY(mcl_exchange_counts(j->host, j->ranks, x->to, x->from));
    TRY(mcl_exchange_counts(j->host, j->ranks, x->bytes_to, x->bytes_from));
    for (int r = 0; r < size; r++) x->got += x->from[r];
done:
    sp_free(j->host, next);
    return status;
}

static sp_status send_labels(job *j, const io_names *names, label_exchange *x)
{
    uint32_t *lengths = NULL;
    int64_t *order = NULL, total = 0;
    char *bytes = NULL;
    sp_status status;
    for (int r = 0; r < j->ranks->size; r++) total += x->bytes_from[r];
    TRY(sp_alloc(j->host, x->sent, sizeof *lengths, (void **)&lengths));
    TRY(sp_alloc(j->host, x->sent, sizeof *order, (void **)&order));
    TRY(sp_alloc(j->host, names->count ? io_name_begin(names, names->count) : 0, 1, (void **)&bytes));
    TRY(sp_alloc(j->host, x->got, sizeof *x->lengths, (void **)&x->lengths));
    TRY(sp_alloc(j->host, total, 1, (void **)&x->bytes));
    for (int64_t i = 0; i < x->sent; i++) order[x->place[i]] = i;
    for (int64_t k = 0, at = 0; k < x->sent; at += lengths[k++]) {
        lengths[k] = (uint32_t)io_name_length(names, order[k]);
        memcpy(bytes + at, io_name(names, order[k]), lengths[k]);
    }
    TRY(mcl_exchange(j->host, j->ranks, x->to, x->from, sizeof *lengths, lengths, x->lengths));
    TRY(mcl_exchange(j->host, j->ranks, x->bytes_to, x->bytes_from, 1, bytes, x->bytes));
done:
    sp_free(j->host, lengths);
    sp_free(j->host, order);
    sp_free(j->host, bytes);
    return status;
}

/* Tells the labels apart that this process owns. */
static sp_status find_first(job *j, label_exchange *x)
{
    struct slot { int64_t place; int32_t entry; uint32_t length; } *slots = NULL; /* length 0: free */
    uint64_t mask = 1;
    int64_t at = 0;
    sp_status status;
    while (mask < (uint64_t)x->got * 2) mask *= 2;
    TRY(sp_calloc(j->host, (int64_t)mask, sizeof *slots, (void **)&slots));
    TRY(sp_alloc(j->host, x->got, sizeof *x->entry, (void **)&x->entry));
    TRY(sp_alloc(j->host, x->got, 1, (void **)&x->is_first));
    mask--;
    for (int64_t k = 0; k < x->got; at += x->lengths[k++]) {
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
    sp_free(j->host, slots);
    return status;
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

/* Numbers of the labels that this process has first, -1 for the others, as the owners say. */
static sp_status number_first(job *j, const label_exchange *x, const uint8_t *is_first, int32_t *ids, int64_t *nodes)
{
    int64_t *counts = NULL, own = 0, next = 0;
    sp_status status;
    *nodes = 0;
    TRY(sp_alloc(j->host, j->ranks->size, sizeof *counts, (void **)&counts));
    for (int64_t i = 0; i < x->sent; i++) own += is_first[x->place[i]];
    TRY(ranks_share(j, &own, sizeof own, counts));
    for (int r = 0; r < j->ranks->size; r++) {
        if (r < j->ranks->rank) next += counts[r];
        *nodes += counts[r];
    }
    if (*nodes > INT32_MAX) TRY(sp_fail(j->host, SP_ERROR_OVERFLOW, "%s: 2^31 nodes or more", j->settings->input));
    for (int64_t i = 0; i < x->sent; i++) ids[i] = is_first[x->place[i]] ? (int32_t)next++ : -1;
done:
    sp_free(j->host, counts);
    return status;
}

/* Fills in the numbers that other processes have given. */
static sp_status learn_numbers(job *j, label_exchange *x, int32_t *ids)
{
    int32_t *sent = NULL, *got = NULL, *known = NULL;
    sp_status status;
    TRY(sp_alloc(j->host, x->sent, sizeof *sent, (void **)&sent));
    TRY(sp_alloc(j->host, x->got, sizeof *got, (void **)&got));
    TRY(sp_alloc(j->host, x->different, sizeof *known, (void **)&known));
    for (int64_t i = 0; i < x->sent; i++) sent[x->place[i]] = ids[i];
    TRY(mcl_exchange(j->host, j->ranks, x->to, x->from, sizeof *sent, sent, got));
    for (int64_t k = 0; k < x->got; k++)
        if (got[k] >= 0) known[x->entry[k]] = got[k];
    for (int64_t k = 0; k < x->got; k++) got[k] = known[x->entry[k]];
    TRY(mcl_exchange(j->host, j->ranks, x->from, x->to, sizeof *sent, got, sent));
    for (int64_t i = 0; i < x->sent; i++) ids[i] = sent[x->place[i]];
done:
    sp_free(j->host, sent);
    sp_free(j->host, got);
    sp_free(j->host, known);
    return status;
}

/* Process 0 gets the names of all nodes: those that each process had first, in their order. */
static sp_status gather_names(job *j, const io_names *names, const uint8_t *is_first, const label_exchange *x,
                              int64_t nodes, io_names *all)
{
    const bool collects = j->ranks->rank == 0;
    uint32_t *lengths = NULL, *all_lengths = NULL;
    int64_t *counts = NULL, own = 0, bytes = 0, total = 0;
    char *text = NULL;
    sp_status status;
    TRY(sp_alloc(j->host, j->ranks->size, sizeof *counts, (void **)&counts));
    TRY(sp_alloc(j->host, names->count, sizeof *lengths, (void **)&lengths));
    TRY(sp_alloc(j->host, names->count ? io_name_begin(names, names->count) : 0, 1, (void **)&text));
    for (int64_t i = 0; i < names->count; i++) {
        if (!is_first[x->place[i]]) continue;
        lengths[own] = (uint32_t)io_name_length(names, i);
        memcpy(text + bytes, io_name(names, i), lengths[own]);
        bytes += lengths[own++];
    }
    TRY(ranks_share(j, &bytes, sizeof bytes, counts));
    for (int r = 0; r < j->ranks->size; r++) total += counts[r];
    TRY(sp_alloc(j->host, collects ? total : 0, 1, (void **)&all->bytes));
    TRY(ranks_gather(j, text, bytes, counts, all->bytes));
    own *= (int64_t)sizeof *lengths;
    TRY(ranks_share(j, &own, sizeof own, counts));
    TRY(sp_alloc(j->host, collects ? nodes : 0, sizeof *all_lengths, (void **)&all_lengths));
    TRY(ranks_gather(j, lengths, own, counts, all_lengths));
    TRY(sp_alloc(j->host, collects ? nodes / IO_NAME_GROUP + 1 : 0, sizeof *all->groups, (void **)&all->groups));
    TRY(sp_alloc(j->host, collects ? nodes + 1 : 0, sizeof *all->offsets, (void **)&all->offsets));
    total = 0;
    for (int64_t i = 0; collects && i <= nodes; i++) {
        if (i % IO_NAME_GROUP == 0) all->groups[i / IO_NAME_GROUP] = total;
        all->offsets[i] = (uint32_t)(total - all->groups[i / IO_NAME_GROUP]);
        if (i < nodes) total += all_lengths[i];
    }
    all->count = collects ? nodes : 0;
done:
    sp_free(j->host, counts);
    sp_free(j->host, lengths);
    sp_free(j->host, all_lengths);
    sp_free(j->host, text);
    return status;
}

/* ids[i]: the number of this part's label i among those of the whole file. */
static sp_status number_labels(job *j, const io_names *names, int32_t *ids)
{
    label_exchange x = {0};
    uint8_t *is_first = NULL; /* of the labels sent */
    sp_status status;
    TRY(address_labels(j, names, &x));
    TRY(send_labels(j, names, &x));
    TRY(find_first(j, &x));
    TRY(sp_alloc(j->host, x.sent, 1, (void **)&is_first));
    TRY(mcl_exchange(j->host, j->ranks, x.from, x.to, 1, x.is_first, is_first));
    TRY(number_first(j, &x, is_first, ids, &j->input.nodes));
    TRY(learn_numbers(j, &x, ids));
    TRY(gather_names(j, names, is_first, &x, j->input.nodes, &j->input.names));
done:
    sp_free(j->host, is_first);
    close_exchange(j, &x);
    return status;
}

/* ---- the file ------------------------------------------------------------------------------------------------- */

/* What needs the graph or the start matrix of all nodes in one place; NULL: nothing does. */
static const char *whole_for(const settings *s)
{
    const bool iterates = s->mcl.initial_length > 0 || s->mcl.main_length > 0;
    const struct { bool asked; const char *option; } cases[] = {
        {s->graph_transform, "-tf"},
        {s->mcl.degree_power != 0, "-dae"},
        {s->mcl.pre_inflation > 0, "-pi"},
        {s->mcl.force_connected || s->check_connected, "--force-connected"},
        {settings_judge(s), "--quality, --table or a report"},
        {s->write_graph || s->write_transformed || s->write_expanded, "writing matrices"},
        {s->dump_iterands || (s->write_limit && !iterates), "-dump ite"},
        {s->analyze, "-analyze"},
        {s->read.tab != NULL, "-use-tab"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].asked) return cases[i].option;
    return NULL;
}

/* Whether parts are possible and, unless asked for, worth it. */
static bool suits(job *j, const io_read_options *options)
{
    const settings *s = j->settings;
    io_files files;
    struct stat file;
    int64_t bytes = 0;
    bool can = false;
    if (io_is_folder(s->input)) {
        if (io_list_folder(j->host, s->input, &files) != SP_OK) return true; /* read_folder says why */
        for (int64_t i = 0; i < files.count; i++) bytes += files.list[i].bytes;
        io_files_free(j->host, &files);
        return s->mpi_read == MPI_READ_PARTS || bytes >= LEAST_BYTES;
    }
    return stat(s->input, &file) == 0 && S_ISREG(file.st_mode) &&
           (s->mpi_read == MPI_READ_PARTS || file.st_size >= LEAST_BYTES) &&
           io_can_part(j->host, s->input, options, &can) == SP_OK && can;
}

/* Process 0 decides. */
static sp_status decide(job *j, const io_read_options *options, bool *parts)
{
    const settings *s = j->settings;
    const char *option = whole_for(s);
    *parts = false;
    if (!j->ranks || s->mpi_read == MPI_READ_WHOLE) return SP_OK;
    if (!j->follows && !option) *parts = suits(j, options);
    if (!j->follows && s->mpi_read == MPI_READ_PARTS && !*parts)
        log_line(&j->log, "mcl-gpu: each process reads the whole input: %s%s",
                 option ? option : "only uncompressed label pairs and Matrix Market files are read in parts",
                 option ? " needs it" : "");
    return ranks_agree(j, parts, sizeof *parts);
}

/* Sums up the figures of the parts. */
static sp_status add_up_parts(job *j, io_graph *part)
{
    io_graph *in = &j->input;
    sp_status status = SP_OK;
    in->format = part->format;
    in->first = part->first;
    in->nodes = part->nodes;
    in->symmetric = part->symmetric;
    in->undirected = part->undirected;
    in->skew = part->skew;
    in->values = part->values;
    in->arcs = part->arcs;
    in->lines = part->lines;
    in->bytes = part->bytes;
    in->odd_lines = part->odd_lines;
    in->negative = part->negative;
    in->blast_hits = part->blast_hits;
    in->part = part->part;
    int64_t *const sums[] = {&in->arcs, &in->lines, &in->bytes, &in->odd_lines, &in->negative,
                             &in->part.entries, &in->part.above, &in->part.below};
    for (size_t i = 0; i < sizeof sums / sizeof *sums && status == SP_OK; i++) status = ranks_add_up(j, sums[i]);
    return status;
}

/* Gives each label of the part its number in the whole file. */
static sp_status number_arcs(job *j, io_graph *part)
{
    int32_t *ids = NULL;
    sp_status status;
    TRY(sp_alloc(j->host, part->names.count, sizeof *ids, (void **)&ids));
    TRY(number_labels(j, &part->names, ids));
    for (int64_t k = 0; k < part->arcs; k++) {
        part->tails[k] = ids[part->tails[k]];
        part->heads[k] = ids[part->heads[k]];
    }
done:
    sp_free(j->host, ids);
    return status;
}

/* Whether the parts make the file's graph. Otherwise one process that reads it whole finds what is wrong, if it is. */
static bool are_sound(const io_graph *in)
{
    const io_part *p = &in->part;
    const bool twice = (in->symmetric || in->skew) && p->above > 0 && p->below > 0;
    return in->format != IO_MTX || (p->entries == p->announced && !twice);
}

/* Gives the rows of the graph to the processes. */
static sp_status share_part(job *j, io_graph *part, bool *done)
{
    io_graph *in = &j->input;
    sp_status status;
    TRY(add_up_parts(j, part));
    *done = are_sound(in);
    if (!*done) {
        *in = (io_graph){0};
        return SP_OK;
    }
    if (in->format == IO_ABC) TRY(number_arcs(j, part));
    TRY(sp_alloc(j->host, j->ranks->size + 1, sizeof *j->given, (void **)&j->given));
    TRY(mcl_share_graph(j->host, j->ranks, in->nodes, part->arcs, part->tails, part->heads, part->weights,
                        in->symmetric, j->given, &j->graph));
done:
    return status;
}

/* Reads the files of a folder that begin in this process's share of their bytes. */
static sp_status read_some(job *j, const io_files *files, const io_read_options *options, io_graph *part)
{
    const mcl_ranks *ranks = j->ranks;
    int64_t all = 0, at = 0, first = -1, count = 0;
    for (int64_t i = 0; i < files->count; i++) all += files->list[i].bytes;
    for (int64_t i = 0; i < files->count; at += files->list[i++].bytes) {
        const int owner = all > 0 ? (int)((double)at / (double)all * ranks->size) : 0;
        if ((owner < ranks->size ? owner : ranks->size - 1) != ranks->rank) continue;
        if (first < 0) first = i;
        count++;
    }
    return io_read_files(j->host, first < 0 ? NULL : files->list + first, count, options, part);
}

/* Fails in a process that sees other files than process 0. */
static sp_status compare_files(job *j, const io_files *files)
{
    uint64_t own = 1;
    for (int64_t i = 0; i < files->count; i++) {
        own = job_mix(own, files->list[i].path, strlen(files->list[i].path));
        own = job_mix(own, &files->list[i].bytes, sizeof files->list[i].bytes);
    }
    uint64_t first = own;
    const sp_status status = ranks_agree(j, &first, sizeof first);
    if (status != SP_OK || first == own) return status;
    return sp_fail(j->host, SP_ERROR_ARGUMENT,
                   "%s: not the files that process 0 sees; give a folder that all hosts share", j->settings->input);
}

static sp_status read_folder(job *j, const io_read_options *options, io_graph *part)
{
    io_files files = {0};
    sp_status status;
    TRY(ranks_agree_on(j, io_list_folder(j->host, j->settings->input, &files)));
    TRY(ranks_agree_on(j, compare_files(j, &files)));
    TRY(ranks_agree_on(j, read_some(j, &files, options, part)));
done:
    io_files_free(j->host, &files);
    return status;
}

static sp_status read_file(job *j, io_read_options options, io_graph *part)
{
    options.part = j->ranks->rank;
    options.parts = j->ranks->size;
    return ranks_agree_on(j, io_read_graph(j->host, j->settings->input, &options, part));
}

sp_status job_read_together(job *j, io_read_options options, bool *done)
{
    io_graph part = {0};
    sp_status status = decide(j, &options, done);
    if (status != SP_OK || !*done) return status;
    status = io_is_folder(j->settings->input) ? read_folder(j, &options, &part) : read_file(j, options, &part);
    if (status == SP_OK) {
        status = share_part(j, &part, done);
        if (status != SP_OK) ranks_give_up(j, j->host, status); /* the others are waiting in the middle of it */
    }
    io_graph_free(j->host, &part);
    return status;
}

/* ---- directed graphs ----------------------------------------------------------------------------------------- */

/* A sum over the arcs of this process, by their ends in this order or, with `opposite`, in the other. */
static int64_t add_arcs(const sp_csr *rows, bool opposite)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < rows->rows; i++)
        for (int64_t e = rows->row_offsets[i]; e < rows->row_offsets[i + 1]; e++) {
            const int32_t ends[2] = {opposite ? rows->col_indices[e] : (int32_t)i,
                                     opposite ? (int32_t)i : rows->col_indices[e]};
            sum += job_mix(1, ends, sizeof ends);
        }
    return (int64_t)sum;
}

sp_status job_is_directed(job *j, bool *directed)
{
    int64_t sums[2];
    sp_status status = SP_OK;
    for (int k = 0; k < 2 && status == SP_OK; k++) {
        sums[k] = add_arcs(&j->graph, k == 1);
        status = ranks_add_up(j, &sums[k]);
    }
    *directed = status == SP_OK && sums[0] != sums[1];
    return status;
}
