/* Checkpoints of mcl-gpu, taken as by --resume: what is accepted is written and read again, which gives the same state,
 * and the process ends with a matrix or one sentence. The first byte chooses the file (numbered or not) and whether the
 * input is the whole file in place of changes of it. */
#include <stdio.h>
#include <unistd.h>

#include "forged.h"
#include "mcl-gpu/job.h"

enum { NUMBERED = 1, WHOLE = 64, NODES = 6, ITERATIONS = 8, SAVED_AFTER = 2 };
/* Places in the file. */
enum { ROWS = 120, NNZ = 128, RECORDED = 152, ORDERED = 192, HEAD = 200, TAIL = 8 };

static forged_file written[2]; /* without a numbering and with one */
static char path[64];
static settings chosen;

static int64_t number_at(const forged_file *file, size_t place)
{
    int64_t number = 0;
    if (place + sizeof number <= file->size) memcpy(&number, file->bytes + place, sizeof number);
    return number;
}

/* Of main.c, which is not linked, for runs that --start-from describes. */
sp_status job_read_graph(job *j, const char *name, io_graph *graph)
{
    (void)graph;
    return sp_fail(j->host, SP_ERROR_ARGUMENT, "%s is not read here", name);
}

static void put_file(const forged_file *file)
{
    FILE *out = fopen(path, "wb");
    fuzz_require(out && fwrite(file->bytes, 1, file->size, out) == file->size && fclose(out) == 0);
}

static void get_file(forged_file *file)
{
    FILE *in = fopen(path, "rb");
    fuzz_require(in != NULL);
    file->size = fread(file->bytes, 1, sizeof file->bytes, in);
    fclose(in);
}

/* A run on a chain of nodes, before its first iteration. */
static job open_job(void)
{
    job j = {.settings = &chosen, .host = fuzz_context(1), .log.quiet = true};
    int32_t tails[2 * NODES], heads[2 * NODES];
    float weights[2 * NODES];
    int count = 0;
    for (int i = 0; i < NODES; i++)
        for (int neighbour = i > 0 ? i - 1 : i + 1; neighbour < NODES && neighbour <= i + 1; neighbour += 2) {
            tails[count] = i;
            heads[count] = neighbour;
            weights[count++] = 1.0f + (float)(i + neighbour) / 4;
        }
    mcl_options_default(&j.mcl);
    j.mcl.main_length = ITERATIONS;
    fuzz_require(sp_csr_from_coo(j.host, &(sp_coo){.rows = NODES, .cols = NODES, .count = count, .row_indices = tails,
                                                   .col_indices = heads, .values = weights}, SP_COMBINE_MAX, false,
                                 &j.graph) == SP_OK);
    fuzz_require(mcl_start_matrix(j.host, &j.graph, NULL, &j.mcl, false, &j.start) == SP_OK);
    fuzz_require(job_begin_checkpoints(&j) == SP_OK);
    return j;
}

static void close_job(job *j)
{
    sp_csr_free(j->host, &j->graph);
    sp_csr_free(j->host, &j->start);
    sp_context_destroy(j->host);
}

typedef struct recorder {
    job *job;
    report_run *run;
    bool numbered;
} recorder;

static bool record(void *user, const mcl_iteration *iteration, const sp_csr *iterand)
{
    static const int32_t order[NODES] = {5, 4, 3, 2, 1, 0};
    const recorder *r = user;
    mcl_iteration saved = *iteration;
    if (saved.number == 0) return true;
    fuzz_require(report_add_iteration(r->job->host, r->run, iteration) == SP_OK);
    if (saved.number < SAVED_AFTER) return true;
    saved.order = r->numbered ? order : NULL;
    fuzz_require(job_checkpoint(r->job, r->job->host, r->run, &saved, iterand) == SP_OK);
    return false;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_file(path, sizeof path, "checkpoint");
    chosen = (settings){.checkpoint = path, .resume = path, .quiet = true};
    for (int numbered = 0; numbered < 2; numbered++) {
        job j = open_job();
        report_run run = {.inflation = j.mcl.inflation};
        recorder r = {&j, &run, numbered};
        sp_csr limit;
        fuzz_require(mcl_iterate(j.host, &j.start, &j.mcl, record, &r, &limit, &run.run) == SP_OK);
        get_file(&written[numbered]);
        sp_csr_free(j.host, &limit);
        sp_free(j.host, run.iterations);
        close_job(&j);
    }
    unlink(path);
    return 0;
}

/* Makes the checksum right, if the parts have the sizes that the file has. */
static void repair(forged_file *file)
{
    const int64_t rows = number_at(file, ROWS), nnz = number_at(file, NNZ), recorded = number_at(file, RECORDED),
                  room = (int64_t)file->size - HEAD - TAIL, most = MOST_FORGED;
    if (rows < 0 || nnz < 0 || recorded < 0 || rows > most || nnz > most || recorded > most) return;
    const int64_t figures = recorded * (int64_t)sizeof(mcl_iteration), order = number_at(file, ORDERED) ? 4 * rows : 0;
    if (figures + order + 8 * (rows + 1) + 8 * nnz != room) return;
    static int64_t offsets[MOST_FORGED / 8];
    unsigned char *at = file->bytes;
    uint64_t hash = mix_bytes(1, at, HEAD), sum = 0;
    at += HEAD;
    hash = mix_bytes(hash, at, (size_t)figures);
    at += figures;
    if (order) hash = mix_bytes(hash, at, (size_t)order);
    at += order;
    memcpy(offsets, at, (size_t)(rows + 1) * 8);
    for (int64_t i = 0; i < rows; i++)
        if (offsets[0] != 0 || offsets[i] > offsets[i + 1] || offsets[i + 1] > nnz) return;
    at += 8 * (rows + 1);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t begin = offsets[i], count = offsets[i + 1] - begin;
        if (count == 0) continue;
        const uint64_t row = mix_bytes((uint64_t)i + 1, at + 4 * begin, 4 * (size_t)count);
        sum += mix_bytes(row, at + 4 * (nnz + begin), 4 * (size_t)count);
    }
    hash = mix_bytes(hash, &sum, sizeof sum);
    memcpy(at + 8 * nnz, &hash, sizeof hash);
}

static void check_state(sp_context *context, const report_run *run, const saved_state *s)
{
    fuzz_require(s->iterand.rows == NODES && sp_csr_check(context, &s->iterand) == SP_OK);
    fuzz_require(s->state.iterations >= 0 && run->iteration_count == s->state.iterations);
    int seen = 0;
    for (int i = 0; s->order && i < NODES; i++) seen |= 1 << s->order[i];
    fuzz_require(!s->order || seen == (1 << NODES) - 1);
}

static bool same_bytes(const void *a, const void *b, size_t size) { return size == 0 || memcmp(a, b, size) == 0; }

/* Writes the state that was read, which is read again. */
static void write_and_read(job *j, const report_run *run, const saved_state *s)
{
    const mcl_state *state = &s->state;
    mcl_iteration iteration = {.number = state->iterations, .nnz_input = state->nnz_input, .order = s->order,
                               .next_inflation = state->inflation};
    report_run again = {.inflation = run->inflation};
    saved_state copy;
    memcpy(iteration.marks, state->marks, sizeof iteration.marks);
    fuzz_require(job_checkpoint(j, j->host, run, &iteration, &s->iterand) == SP_OK);
    fuzz_require(job_resume(j, &j->mcl, &again, false, &copy) == SP_OK);
    fuzz_require(copy.state.iterations == state->iterations && copy.state.nnz_input == state->nnz_input);
    fuzz_require(copy.state.inflation == state->inflation && copy.iterand.nnz == s->iterand.nnz);
    fuzz_require(same_bytes(copy.state.marks, state->marks, sizeof state->marks));
    fuzz_require(same_bytes(again.iterations, run->iterations, (size_t)run->iteration_count * sizeof *run->iterations));
    fuzz_require(!copy.order == !s->order && (!s->order || same_bytes(copy.order, s->order, sizeof(int32_t[NODES]))));
    fuzz_require(same_bytes(copy.iterand.row_offsets, s->iterand.row_offsets, sizeof(int64_t[NODES + 1])));
    fuzz_require(same_bytes(copy.iterand.col_indices, s->iterand.col_indices, 4 * (size_t)copy.iterand.nnz));
    fuzz_require(same_bytes(copy.iterand.values, s->iterand.values, 4 * (size_t)copy.iterand.nnz));
    sp_free(j->host, again.iterations);
    job_free_saved(j, &copy);
}

static void go_on(job *j, const saved_state *s)
{
    sp_csr limit;
    mcl_run run;
    if (mcl_continue(j->host, &s->state, &j->mcl, NULL, NULL, &limit, &run) != SP_OK) {
        fuzz_require(*sp_last_error(j->host) != '\0');
        return;
    }
    const jury_report jury = jury_of(&run);
    for (int i = 0; i < 3; i++) fuzz_require(abs(jury.marks[i]) <= 1000000000);
    mcl_clustering clustering;
    if (mcl_interpret(j->host, &limit, &j->graph, &j->mcl, &clustering) == SP_OK)
        mcl_clustering_free(j->host, &clustering);
    sp_csr_free(j->host, &limit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static forged_file file;
    if (size == 0 || size > MOST_FORGED / 2) return 0;
    if (data[0] & WHOLE) {
        file.size = size - 1;
        memcpy(file.bytes, data + 1, size - 1);
    } else {
        file = written[data[0] & NUMBERED];
        fuzz_forge(&file, data + 1, size - 1);
    }
    repair(&file);
    put_file(&file);
    job j = open_job();
    report_run run = {.inflation = j.mcl.inflation};
    saved_state saved = {0};
    if (job_resume(&j, &j.mcl, &run, false, &saved) == SP_OK) {
        check_state(j.host, &run, &saved);
        write_and_read(&j, &run, &saved);
        go_on(&j, &saved);
    } else {
        fuzz_require(strncmp(sp_last_error(j.host), path, strlen(path)) == 0);
    }
    sp_free(j.host, run.iterations);
    job_free_saved(&j, &saved);
    close_job(&j);
    unlink(path);
    fuzz_require(fuzz_live == 0);
    return 0;
}
