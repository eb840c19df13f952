/* Checkpoints of a run, and going on from one. A checkpoint is a header, the figures of the iterations so far, the
 * numbering of the nodes, the iterand (offsets, columns, values), and a checksum, all as they are in memory: it is for
 * the program that wrote it. Each of several processes writes its rows of the iterand at their places, and reads others
 * when it goes on. So the checksum is that of the first three parts and of a sum over the rows.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "job.h"

static const char magic[] = "MCLCKPT2"; /* a file has these characters without the null behind them */

/* The options that act in the process, in the order of their names. */
enum { SETTINGS = 11 };
static const char *const setting_names[SETTINGS] = {"-I", "-i", "-l", "-L", "-P", "-p", "-S", "-R", "-pct", "-sparse",
                                                    "--device cuda"};

typedef struct header {
    char magic[8];
    char version[16];
    uint64_t start;            /* a hash of the start matrix */
    double settings[SETTINGS];
    int64_t rows, nnz, nnz_input, iterations, recorded;
    double inflation, marks[3];
    int64_t ordered;           /* 1: a numbering follows */
} header;

static void fill_settings(const mcl_options *o, bool cuda, double values[SETTINGS])
{
    const double all[SETTINGS] = {o->inflation, o->initial_inflation, (double)o->initial_length, (double)o->main_length,
                                  (double)o->prune_number, o->prune_cutoff, (double)o->select, (double)o->recover,
                                  o->recover_percent, (double)o->dense_factor, cuda};
    memcpy(values, all, sizeof all);
}

/* ---- hashes ---------------------------------------------------------------------------------------------- */

/* The sum over the rows of a matrix that are not empty; its first is row `first` of the whole. */
static uint64_t hash_rows(const sp_csr *m, int64_t first)
{
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (m->nnz > 100000)
    for (int64_t i = 0; i < m->rows; i++) {
        const int64_t begin = m->row_offsets[i], count = m->row_offsets[i + 1] - begin;
        if (count == 0) continue;
        const uint64_t hash = mix_bytes((uint64_t)(first + i) + 1, m->col_indices + begin,
                                      (size_t)count * sizeof *m->col_indices);
        sum += mix_bytes(hash, (const float *)m->values + begin, (size_t)count * sizeof(float));
    }
    return sum;
}

uint64_t job_hash(const sp_csr *m) { return (uint64_t)m->rows + hash_rows(m, 0); }

/* That of the start matrix, in whichever processes its rows are. */
static sp_status hash_start(job *j)
{
    const uint64_t rows = (uint64_t)j->start.rows;
    int64_t sum = (int64_t)(job_hash(&j->start) - rows);
    const sp_status status = j->given ? team_add_up(&j->team, &sum) : SP_OK;
    j->checkpoint.start = (uint64_t)sum + rows;
    return status;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

static void put(io_output *out, uint64_t *hash, const void *bytes, size_t count)
{
    *hash = mix_bytes(*hash, bytes, count);
    io_output_bytes(out, bytes, count);
}

sp_status job_begin_checkpoints(job *j)
{
    const settings *s = j->settings;
    j->checkpoint.written = wall_seconds();
    return s->checkpoint || s->resume ? hash_start(j) : SP_OK;
}

/* The rows of this process among those of all. */
typedef struct share {
    int64_t row, entry; /* the first */
    int64_t rows, nnz;  /* of all */
    bool last;          /* the others are before them */
} share;

static sp_status find_share(job *j, const sp_csr *m, share *s)
{
    const int64_t own[2] = {m->rows, m->nnz};
    int64_t *all = NULL;
    *s = (share){.rows = m->rows, .nnz = m->nnz, .last = true};
    if (!j->team.ranks) return SP_OK;
    sp_status status;
    TRY(sp_alloc(j->host, 2 * (int64_t)j->team.ranks->size, sizeof *all, (void **)&all));
    TRY(team_share(&j->team, own, sizeof own, all));
    s->rows = s->nnz = 0;
    for (int r = 0; r < j->team.ranks->size; r++) {
        if (r < j->team.ranks->rank) {
            s->row += all[2 * r];
            s->entry += all[2 * r + 1];
        }
        s->rows += all[2 * r];
        s->nnz += all[2 * r + 1];
    }
    s->last = j->team.ranks->rank == j->team.ranks->size - 1;
done:
    sp_free(j->host, all);
    return status;
}

/* The first process's part: all that precedes the iterand. */
static sp_status put_head(job *j, const report_run *run, const mcl_iteration *i, bool cuda, const share *s,
                          uint64_t *hash, io_output **out)
{
    header h = {.start = j->checkpoint.start, .rows = s->rows, .nnz = s->nnz, .nnz_input = i->nnz_input,
                .iterations = i->number, .recorded = run->iteration_count, .inflation = i->next_inflation,
                .ordered = i->order != NULL};
    mcl_options options = j->mcl;
    memcpy(h.magic, magic, sizeof h.magic);
    memcpy(h.marks, i->marks, sizeof h.marks);
    snprintf(h.version, sizeof h.version, "%s", SP_VERSION);
    options.inflation = run->inflation;
    fill_settings(&options, cuda, h.settings);
    const sp_status status = io_output_open(j->host, j->settings->checkpoint, out);
    if (status != SP_OK) return status;
    put(*out, hash, &h, sizeof h);
    put(*out, hash, run->iterations, (size_t)run->iteration_count * sizeof *run->iterations);
    if (i->order) put(*out, hash, i->order, (size_t)s->rows * sizeof *i->order);
    if (!j->team.ranks || io_output_is_file(*out)) return SP_OK;
    return sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: not a file, and several processes write into it; give a file",
                   j->settings->checkpoint);
}

/* The other processes open the file of the first. */
static sp_status join_output(job *j, io_output **out)
{
    char temporary[MAX_PATH + 32] = "";
    if (!j->team.ranks) return SP_OK;
    if (!j->team.follows) snprintf(temporary, sizeof temporary, "%s", io_output_temporary(*out));
    sp_status status = team_agree(&j->team, temporary, sizeof temporary);
    if (status == SP_OK && j->team.follows) status = io_output_join(j->host, j->settings->checkpoint, temporary, out);
    return team_agree_on(&j->team, status);
}

/* One process writes everything in turn. */
static void put_at(const job *j, io_output *out, int64_t place, const void *bytes, int64_t count)
{
    if (j->team.ranks) io_output_at(out, place, bytes, (size_t)count);
    else io_output_bytes(out, bytes, (size_t)count);
}

/* This process's rows, in a file whose iterand begins at `place`; `place` becomes its end. */
static sp_status put_rows(job *j, io_output *out, const sp_csr *m, const share *s, int64_t *place)
{
    enum { OFFSET = sizeof *m->row_offsets, COLUMN = sizeof *m->col_indices, VALUE = sizeof(float) };
    const int64_t columns = *place + OFFSET * (s->rows + 1), values = columns + COLUMN * s->nnz;
    int64_t *offsets = NULL;
    const sp_status status = sp_alloc(j->host, m->rows + 1, sizeof *offsets, (void **)&offsets);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i <= m->rows; i++) offsets[i] = s->entry + m->row_offsets[i];
    put_at(j, out, *place + OFFSET * s->row, offsets, OFFSET * (m->rows + s->last));
    put_at(j, out, columns + COLUMN * s->entry, m->col_indices, COLUMN * m->nnz);
    put_at(j, out, values + VALUE * s->entry, m->values, VALUE * m->nnz);
    *place = values + VALUE * s->nnz;
    sp_free(j->host, offsets);
    return SP_OK;
}

static sp_status write_checkpoint(job *j, sp_context *context, const report_run *run, const mcl_iteration *i,
                                  const sp_csr *iterand)
{
    const sp_csr *m = iterand;
    sp_csr copy = {0};
    io_output *out = NULL;
    share s;
    uint64_t hash = 1;
    sp_status status;
    if (iterand->space != SP_HOST) {
        TRY(sp_csr_copy(context, iterand, SP_HOST, &copy));
        m = &copy;
    }
    TRY(find_share(j, m, &s));
    int64_t place = (int64_t)sizeof(header) + run->iteration_count * (int64_t)sizeof *run->iterations +
                    (i->order ? s.rows * (int64_t)sizeof *i->order : 0);
    TRY(team_agree_on(&j->team, j->team.follows ? SP_OK : put_head(j, run, i, context != j->host, &s, &hash, &out)));
    TRY(join_output(j, &out));
    int64_t sum = (int64_t)hash_rows(m, s.row);
    if (j->team.ranks) TRY(team_add_up(&j->team, &sum));
    status = put_rows(j, out, m, &s, &place);
    hash = mix_bytes(hash, &sum, sizeof sum);
    if (!j->team.follows) put_at(j, out, place, &hash, sizeof hash);
    if (j->team.follows && status == SP_OK) {
        status = io_output_commit(out);
        out = NULL;
    } else if (status == SP_OK) {
        status = io_output_settle(out);
    }
    TRY(team_agree_on(&j->team, status));
    if (!j->team.follows) {
        status = io_output_commit(out);
        out = NULL;
    }
done:
    io_output_discard(out);
    sp_csr_free(context, &copy);
    return status;
}

bool job_checkpoint_due(const job *j, const mcl_iteration *i)
{
    enum { SHARE = 20 }; /* at most about a twentieth of the time is spent on checkpoints */
    const settings *s = j->settings;
    const double passed = wall_seconds() - j->checkpoint.written;
    if (!s->checkpoint || i->number == 0 || i->converged) return false;
    if (i->interrupted) return j->checkpoint.iteration != i->number + 1;
    if (s->checkpoint_iterations && i->number % s->checkpoint_iterations == 0) return true;
    return passed >= s->checkpoint_every && passed >= SHARE * j->checkpoint.seconds;
}

bool job_has_checkpoint(const job *j) { return j->checkpoint.iteration > 0; }

sp_status job_checkpoint(job *j, sp_context *context, const report_run *run, const mcl_iteration *i,
                         const sp_csr *iterand)
{
    const settings *s = j->settings;
    const double now = wall_seconds();
    const sp_status status = write_checkpoint(j, context, run, i, iterand);
    if (status != SP_OK) return status;
    j->checkpoint.iteration = i->number + 1;
    j->checkpoint.written = wall_seconds();
    j->checkpoint.seconds = s->checkpoint_every > 0 ? j->checkpoint.written - now : 0;
    if (i->interrupted)
        log_line(&j->log, "mcl-gpu: %s has iteration %lld; --resume %s goes on from there", s->checkpoint,
                 (long long)i->number, s->checkpoint);
    return SP_OK;
}

/* ---- reading --------------------------------------------------------------------------------------------- */

#define ANEW "leave --resume out to begin anew"
static const char DAMAGED[] = "the checkpoint is damaged; give an earlier one, or " ANEW;
static const char CUT[] = "the checkpoint is cut off; give a whole one, or " ANEW;
static const char OTHER[] = "not a checkpoint of mcl-gpu; give a file that --checkpoint has written, or " ANEW;

static sp_status refuse(job *j, const char *why)
{
    return sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: %s", j->settings->resume, why);
}

/* Says what the system says. */
static sp_status refuse_unread(job *j)
{
    return sp_fail(j->host, SP_ERROR_ARGUMENT, "%s: %s; give a file that --checkpoint has written, or " ANEW,
                   j->settings->resume, strerror(errno));
}

static sp_status get(job *j, FILE *file, uint64_t *hash, void *bytes, size_t count)
{
    if (fread(bytes, 1, count, file) != count) return refuse(j, CUT);
    if (hash) *hash = mix_bytes(*hash, bytes, count);
    return SP_OK;
}

static sp_status get_at(job *j, FILE *file, int64_t place, void *bytes, int64_t count)
{
    if (fseeko(file, (off_t)place, SEEK_SET) != 0) return refuse_unread(j);
    return get(j, file, NULL, bytes, (size_t)count);
}

static sp_status get_array(job *j, FILE *file, uint64_t *hash, int64_t count, size_t size, void **array)
{
    const sp_status status = sp_alloc(j->host, count, size, array);
    return status == SP_OK ? get(j, file, hash, *array, (size_t)count * size) : status;
}

/* Whether the figures can be those of a run: a checksum only tells that nothing changed. Inflation only grows. */
static bool is_plausible(const header *h, const mcl_options *o)
{
    enum { MOST = 1000000 }; /* of a mark, which is below 0 or above 100 only where weights are negative */
    for (int i = 0; i < 3; i++)
        if (!(fabs(h->marks[i]) <= MOST)) return false;
    return h->recorded == h->iterations && h->iterations <= o->initial_length + o->main_length && h->nnz_input >= 0 &&
           h->inflation >= (double)(float)o->inflation;
}

/* The shortest text that is read as this number, which may be a float. */
enum { NUMBER_TEXT = 32 };
static void write_number(double number, char text[NUMBER_TEXT])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, number);
        const double read = strtod(text, NULL);
        if (read == number || (double)(float)read == number) return;
    }
}

/* Whether the checkpoint is of this input and these options. */
static sp_status check_header(job *j, const header *h, const mcl_options *options, bool cuda, int64_t bytes)
{
    double now[SETTINGS];
    char theirs[NUMBER_TEXT], ours[NUMBER_TEXT];
    if (memcmp(h->magic, magic, sizeof h->magic) != 0) return refuse(j, OTHER);
    if (strncmp(h->version, SP_VERSION, sizeof h->version) != 0)
        return refuse(j, "a checkpoint of another version of mcl-gpu; go on with that version, or " ANEW);
    if (h->start != j->checkpoint.start || h->rows != j->start.rows)
        return refuse(j, "the checkpoint is of another network, or of other options of the input, -tf, -pi, -c or "
                      "loops; give those, or " ANEW);
    fill_settings(options, cuda, now);
    for (int i = 0; i + 1 < SETTINGS; i++)
        if (!(h->settings[i] == now[i])) {
            write_number(h->settings[i], theirs);
            write_number(now[i], ours);
            return sp_fail(j->host, SP_ERROR_ARGUMENT,
                           "%s: the checkpoint was made with %s %s, not %s; give %s %s, or " ANEW, j->settings->resume,
                           setting_names[i], theirs, ours, setting_names[i], theirs);
        }
    if (!(h->settings[SETTINGS - 1] == now[SETTINGS - 1]))
        return refuse(j, cuda ? "the checkpoint was made on the CPU, which rounds in another order; give --device cpu, "
                                "or " ANEW
                              : "the checkpoint was made on a GPU, which rounds in another order; give --device cuda, "
                                "or " ANEW);
    const double expected = (double)sizeof *h + (double)h->recorded * (double)sizeof(mcl_iteration) + 8 +
                            (h->ordered ? 4. : 0.) * (double)h->rows + 8 * ((double)h->rows + 1) + 8 * (double)h->nnz;
    if (h->nnz < 0 || h->recorded < 0 || h->iterations < 0 || expected != (double)bytes)
        return refuse(j, CUT);
    return is_plausible(h, options) ? SP_OK : refuse(j, DAMAGED);
}

void job_free_saved(job *j, saved_state *s)
{
    sp_csr_free(j->host, &s->iterand);
    FREE_ALL(j->host, s->order, s->given);
    *s = (saved_state){0};
}

/* Whether the order has each node once: nodes are renumbered by it, and a checksum only tells that nothing changed. */
static sp_status check_order(job *j, const int32_t *order, int64_t nodes)
{
    uint8_t *seen;
    sp_status status = sp_calloc(j->host, nodes, 1, (void **)&seen);
    if (status != SP_OK) return status;
    for (int64_t i = 0; i < nodes && status == SP_OK; i++) {
        if (order[i] < 0 || order[i] >= nodes || seen[order[i]]) status = refuse(j, DAMAGED);
        else seen[order[i]] = 1;
    }
    sp_free(j->host, seen);
    return status;
}

/* The part before the iterand, which every process reads. */
static sp_status read_head(job *j, FILE *file, const header *h, uint64_t *hash, report_run *run, saved_state *to)
{
    sp_status status;
    TRY(get_array(j, file, hash, h->recorded, sizeof *run->iterations, (void **)&run->iterations));
    run->iteration_count = run->iteration_capacity = h->recorded;
    for (int64_t i = 0; i < h->recorded; i++) run->iterations[i].order = NULL;
    if (h->ordered) TRY(get_array(j, file, hash, h->rows, sizeof *to->order, (void **)&to->order));
    if (to->order) TRY(check_order(j, to->order, h->rows));
done:
    return status;
}

/* The first row that begins at entry `entry` or behind it; `place` is that of the offsets. */
static sp_status find_row(job *j, FILE *file, int64_t place, int64_t rows, int64_t entry, int64_t *row)
{
    int64_t low = 0, high = rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        int64_t offset;
        const sp_status status = get_at(j, file, place + middle * (int64_t)sizeof offset, &offset, sizeof offset);
        if (status != SP_OK) return status;
        if (offset < entry) low = middle + 1;
        else high = middle;
    }
    *row = low;
    return SP_OK;
}

/* Cuts the rows by their entries among the processes: to->given. */
static sp_status share_rows(job *j, FILE *file, int64_t place, const header *h, saved_state *to)
{
    const sp_ranks *ranks = j->team.ranks;
    int64_t first = 0;
    sp_status status = sp_alloc(j->host, ranks->size + 1, sizeof *to->given, (void **)&to->given);
    const double before = (double)h->nnz / ranks->size * ranks->rank;
    if (status == SP_OK && ranks->rank > 0) status = find_row(j, file, place, h->rows, (int64_t)before, &first);
    TRY(team_agree_on(&j->team, status));
    TRY(team_share(&j->team, &first, sizeof first, to->given));
    to->given[ranks->size] = h->rows;
    for (int r = 0; r < ranks->size; r++)
        if (to->given[r] > to->given[r + 1]) TRY(refuse(j, DAMAGED));
done:
    return status;
}

/* The rows first to end - 1 of the iterand, whose offsets are at `place`. */
static sp_status read_rows(job *j, FILE *file, int64_t place, const header *h, int64_t first, int64_t end, sp_csr *rows)
{
    enum { OFFSET = sizeof *rows->row_offsets, COLUMN = sizeof *rows->col_indices, VALUE = sizeof(float) };
    const int64_t columns = place + OFFSET * (h->rows + 1), values = columns + COLUMN * h->nnz;
    sp_csr m = {.rows = end - first, .cols = h->rows, .value_type = SP_F32, .space = SP_HOST};
    sp_status status;
    TRY(sp_alloc(j->host, m.rows + 1, OFFSET, (void **)&m.row_offsets));
    TRY(get_at(j, file, place + OFFSET * first, m.row_offsets, OFFSET * (m.rows + 1)));
    const int64_t base = m.row_offsets[0], last = m.row_offsets[m.rows];
    if (base < 0 || base > last || last > h->nnz || (first == 0 && base != 0) || (end == h->rows && last != h->nnz))
        TRY(refuse(j, DAMAGED));
    for (int64_t i = 0; i <= m.rows; i++) m.row_offsets[i] = (int64_t)((uint64_t)m.row_offsets[i] - (uint64_t)base);
    m.nnz = last - base;
    TRY(sp_alloc(j->host, m.nnz, COLUMN, (void **)&m.col_indices));
    TRY(sp_alloc(j->host, m.nnz, VALUE, &m.values));
    TRY(get_at(j, file, columns + COLUMN * base, m.col_indices, COLUMN * m.nnz));
    TRY(get_at(j, file, values + VALUE * base, m.values, VALUE * m.nnz));
    if (sp_csr_check(j->host, &m) != SP_OK) TRY(refuse(j, DAMAGED));
    for (int64_t e = 0; e < m.nnz; e++)
        if (!isfinite(((const float *)m.values)[e])) TRY(refuse(j, DAMAGED));
    *rows = m;
    m = (sp_csr){0};
done:
    sp_csr_free(j->host, &m);
    return status;
}

/* Each process has read its rows: whether the whole is as it was written. */
static sp_status check_sum(job *j, FILE *file, int64_t place, const header *h, uint64_t hash, const saved_state *s)
{
    const sp_ranks *ranks = j->team.ranks;
    int64_t sum = (int64_t)hash_rows(&s->iterand, ranks ? s->given[ranks->rank] : 0);
    uint64_t written;
    sp_status status = ranks ? team_add_up(&j->team, &sum) : SP_OK;
    if (status == SP_OK)
        status = get_at(j, file, place + (int64_t)sizeof(int64_t) * (h->rows + 1) +
                                     (int64_t)(sizeof(int32_t) + sizeof(float)) * h->nnz, &written, sizeof written);
    if (status != SP_OK || written == mix_bytes(hash, &sum, sizeof sum)) return status;
    return refuse(j, DAMAGED);
}

/* Opens the checkpoint and reads what every process has of it. */
static sp_status open_checkpoint(job *j, const mcl_options *options, bool cuda, FILE **file, header *h, uint64_t *hash,
                                 report_run *run, saved_state *to)
{
    struct stat about;
    *file = fopen(j->settings->resume, "rb");
    if (!*file || fstat(fileno(*file), &about) != 0) return refuse_unread(j);
    if (!S_ISREG(about.st_mode)) return refuse(j, OTHER);
    if (fread(h, 1, sizeof *h, *file) != sizeof *h) return refuse(j, OTHER);
    *hash = mix_bytes(1, h, sizeof *h);
    sp_status status = check_header(j, h, options, cuda, about.st_size);
    if (status == SP_OK) status = read_head(j, *file, h, hash, run, to);
    return status;
}

sp_status job_resume(job *j, const mcl_options *options, report_run *run, bool cuda, saved_state *to)
{
    const sp_ranks *ranks = j->team.ranks;
    FILE *file = NULL;
    header h;
    uint64_t hash;
    sp_status status;
    *to = (saved_state){0};
    TRY(team_agree_on(&j->team, open_checkpoint(j, options, cuda, &file, &h, &hash, run, to)));
    const int64_t place = (int64_t)sizeof h + h.recorded * (int64_t)sizeof *run->iterations +
                          (h.ordered ? h.rows * (int64_t)sizeof *to->order : 0);
    if (ranks) TRY(team_agree_on(&j->team, share_rows(j, file, place, &h, to)));
    const int64_t first = ranks ? to->given[ranks->rank] : 0, end = ranks ? to->given[ranks->rank + 1] : h.rows;
    TRY(team_agree_on(&j->team, read_rows(j, file, place, &h, first, end, &to->iterand)));
    TRY(team_agree_on(&j->team, check_sum(j, file, place, &h, hash, to)));
    to->state = (mcl_state){.iterations = h.iterations, .nnz_input = h.nnz_input, .inflation = h.inflation,
                            .order = to->order, .iterand = &to->iterand, .given = to->given};
    memcpy(to->state.marks, h.marks, sizeof h.marks);
    log_line(&j->log, "mcl-gpu: going on after iteration %lld of %s", (long long)h.iterations, j->settings->resume);
done:
    if (file) fclose(file);
    if (status != SP_OK) job_free_saved(j, to);
    return status;
}
