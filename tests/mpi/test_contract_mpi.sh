#!/bin/bash
# contract in several MPI processes against one process: the same files and the same messages. Run by `make test-mpi`,
# which builds what is needed.
#   CONTRACT  the tool [$BUILD/bin/contract], with ../lib/libsparse-mpi.so
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${CONTRACT:-${BUILD:-build}/bin/contract}") || exit 1
tests=$(realpath "${BUILD:-build}/tests") preload=$PWD/tests/preload
. tests/support/mpi.sh
. tests/support/cli.sh

# ---- data ------------------------------------------------------------------------------------------------------

python3 - <<'END'
import gzip, os, random
seed = 7
random.seed(seed)
def weight(): return repr(random.uniform(0.01, 9) * 10 ** random.randint(-3, 3))
nodes = 400
def arc():
    i = random.randrange(nodes)
    return i, (i // 10 * 10 + random.randrange(10) if random.random() < 0.7 else random.randrange(nodes))
arcs = [arc() for _ in range(9000)]
lines = [f"node{i}\tn{j}\t{weight()}" if i % 7 == 0 else f"n{i}\tn{j}\t{weight()}" for i, j in arcs]
with open("pairs.abc", "w") as f: print(*lines, sep="\n", file=f)
os.mkdir("folder")
for k in range(5):
    text = "".join(line + "\n" for line in lines[k * 1800:(k + 1) * 1800])
    if k % 2: gzip.open(f"folder/part{k}.abc.gz", "wt").write(text)
    else: open(f"folder/part{k}.abc", "w").write(text)
names = list(dict.fromkeys(name for line in lines for name in line.split()[:2]))
group = {name: int(name.lstrip("node")) // 10 % 31 for name in names}
with open("families.tsv", "w") as f:
    for name in names: print(name, f"family{group[name] * 3}", sep="\t", file=f)
with open("some.tsv", "w") as f:
    for name in names[: len(names) // 2]: print(name, group[name] + 2, sep="\t", file=f)
with open("clusters.txt", "w") as f:
    for g in range(31): print(*(n for n in names if group[n] == g), sep="\t", file=f)
with open("overlap.txt", "w") as f: print(*names, sep="\t", file=f); print(*names[:5], sep="\t", file=f)
with open("table.tsv", "w") as f:
    print("name\tmass\tkind", file=f)
    for name in names: print(name, random.randint(1, 50), random.choice("abc"), sep="\t", file=f)
with open("whole.abc", "w") as f: print(*(f"n{i} n{j} {random.randint(1, 9)}" for i, j in arcs), sep="\n", file=f)
wide = list(dict.fromkeys(f"n{i}" for pair in arcs for i in pair))
with open("whole.tsv", "w") as f:
    for name in wide: print(name, int(name[1:]) // 50, file=f)
with open("vast.abc", "w") as f: print(*(f"n{i} n{j} {2 ** 52 + 2 * i}" for i, j in sorted(set(arcs))), sep="\n", file=f)
def matrix(name, kind, entries, values=True):
    with open(name, "w") as f:
        print("%%MatrixMarket matrix coordinate", "real" if values else "pattern", kind, file=f)
        print(nodes, nodes, len(entries), file=f)
        for i, j in entries: print(i + 1, j + 1, *([weight()] if values else []), file=f)
matrix("general.mtx", "general", arcs)
matrix("pattern.mtx", "general", arcs, False)
matrix("symmetric.mtx", "symmetric", sorted({(max(p), min(p)) for p in arcs if p[0] != p[1]}))
both = [(i, j, w) for p, w in ((p, weight()) for p in sorted({(max(p), min(p)) for p in arcs}))
        for i, j in dict.fromkeys((p, p[::-1]))]
random.shuffle(both)
def listed(name, entries):
    with open(name + ".mtx", "w") as f:
        print("%%MatrixMarket matrix coordinate real general", f"{nodes} {nodes} {len(entries)}", sep="\n", file=f)
        for i, j, w in entries: print(i + 1, j + 1, w, file=f)
    with open(name + ".tsv", "w") as f:
        for i, j, w in entries: print(i + 1, j + 1, w, sep="\t", file=f)
listed("both", both)
odd = next(k for k, (i, j, _) in enumerate(both) if i != j)
listed("odd", both[:odd] + [(both[odd][0], both[odd][1], 7)] + both[odd + 1:])
with open("labels.txt", "w") as f: print(*(random.randrange(23) for _ in range(nodes)), sep="\n", file=f)
with open("zero.txt", "w") as f: print(*(0 for _ in range(nodes)), sep="\n", file=f)
END
: >nothing.abc
: >nothing.tsv

# same P ARGUMENTS...: the files that P processes write are those that one writes, and so is what they say
same() {
    local processes=$1
    shift
    rm -rf one several
    mkdir one several
    (cd one && "$tool" "$@" --device cpu 2>log) || { cat one/log; return 1; }
    (cd several && together -n "$processes" "$tool" "$@" ${memory:+--memory "$memory"} 2>log) ||
        { cat several/log; return 1; }
    diff -r one several
}
# both P STATUS PATTERN ARGUMENTS...: one process and P fail with this status, one line says why, nothing is written
both() {
    local processes=$1 expected=$2 pattern=$3 got
    shift 3
    rm -rf out*
    "$tool" "$@" -o out.mtx 2>run.err && return 1
    grep -q "^contract: .*$pattern" run.err || { cat run.err; return 1; }
    fails "$processes" "$expected" "$pattern" "$@"
}
fails() {
    local processes=$1 expected=$2 pattern=$3 got
    shift 3
    rm -rf out*
    together -n "$processes" "$tool" "$@" -o out.mtx 2>run.err
    got=$?
    [ $got -eq "$expected" ] && [ "$(grep -c '^contract: ' run.err)" -eq 1 ] && grep -q "^contract: .*$pattern" run.err &&
        [ ! -e out.mtx ] && no_leftovers || { echo "status $got"; cat run.err; return 1; }
}
compare() { ok "$*" same "$1" "../$2" "../$3" "${@:4}"; }

# ---- the same bytes --------------------------------------------------------------------------------------------

for processes in 1 2 3 4 9; do compare $processes pairs.abc families.tsv -o out.abc --node-output nodes.tsv; done
SPARSE_MPI_BYTES=1000 compare 3 pairs.abc families.tsv -o out.mtx --names
memory=400K compare 3 pairs.abc families.tsv -o out.mtx --node-output nodes.tsv # batches, of which one process needs more
compare 2 pairs.abc families.tsv -o out.mtx --directed --values f32
compare 3 pairs.abc clusters.txt -o out.mtx --loops drop --combine mean
compare 2 pairs.abc clusters.txt -o out.tsv --loops only --half-loops
compare 2 pairs.abc clusters.txt -o out.tsv --device cpu,cpu
compare 3 pairs.abc some.tsv -o out.mtx --unlabelled drop --compact
compare 4 pairs.abc some.tsv -o out.npz --unlabelled keep --combine count
compare 2 pairs.abc families.tsv -o out.csv --combine max
compare 3 pairs.abc families.tsv -o out.bin --combine min
compare 3 pairs.abc families.tsv -o out.graphml --combine first --directed
compare 2 pairs.abc families.tsv -o out.mtx --engine product --loops drop
compare 3 pairs.abc families.tsv -o out.mtx --attributes ../table.tsv --node-weight mass --node-output nodes.tsv
compare 3 whole.abc whole.tsv -o out.metis --loops drop
compare 3 whole.abc whole.tsv -o out.mtx --combine mean --undirected
seq 400 | awk '{ print $1, $1 % 7 }' >weights.txt
compare 3 general.mtx labels.txt -o out.mtx --node-weights ../weights.txt --node-output nodes.tsv
compare 3 general.mtx labels.txt -o out.mtx
compare 4 general.mtx zero.txt -o out.mtx # one group: most processes have none
compare 2 general.mtx labels.txt -o out.mtx --undirected --combine mean
compare 3 pattern.mtx labels.txt -o out.mtx --values f32
compare 3 symmetric.mtx labels.txt -o out.mtx.gz
compare 9 nothing.abc nothing.tsv -o out.mtx
for processes in 2 7; do compare $processes folder families.tsv -o out.mtx; done
of_one_file() { "$tool" pairs.abc families.tsv -o file.mtx --quiet && cmp file.mtx several/out.mtx; }
ok 'a folder is its files' of_one_file
# What has no parts process 0 reads: compressed files, and most formats of matrices.
gzip -k pairs.abc
compare 3 pairs.abc.gz families.tsv -o out.mtx
seq 0 399 >self.txt
for format in bin npz mcl; do
    "$tool" general.mtx self.txt -o general.$format --quiet
    compare 3 general.$format labels.txt -o out.mtx
    compare 2 general.$format labels.txt -o out.mtx --undirected --combine mean
done
# Directions: whether a matrix is symmetric, and a list has both, depends on all parts.
awk '{ print NR "\t" $1 }' labels.txt >numbered.tsv
for graph in both odd; do
    "$tool" $graph.mtx self.txt -o $graph.mcl --directed --quiet
    "$tool" $graph.mtx self.txt -o $graph.npz --directed --quiet
    for processes in 2 3 7; do
        compare $processes $graph.mtx labels.txt -o out.abc
        compare $processes $graph.mcl labels.txt -o out.mtx --undirected
        compare $processes $graph.tsv numbered.tsv -o out.abc --unknown drop
    done
    compare 2 $graph.npz labels.txt -o out.abc
    compare 2 $graph.mcl labels.txt -o out.abc
    compare 3 $graph.tsv numbered.tsv -o out.abc --unknown drop --undirected
    cp several/out.abc $graph.doubled
done
as_one() { # edges of both.tsv, each once
    "$tool" both.tsv numbered.tsv -o once.abc --unknown drop --quiet && "$tool" both.mtx labels.txt -o as.abc --quiet &&
        awk 'NR == FNR { sum[$1, $2] = $3; next } sum[$1, $2] - 2 * $3 > 1e-9 * $3 { exit 1 }' both.doubled once.abc &&
        [ "$(wc -l <once.abc)" -eq "$(wc -l <as.abc)" ]
}
ok 'both directions are one edge' as_one
"$tool" pairs.abc families.tsv -o named.bin --names --quiet
seq 0 30 >alone.txt
compare 3 named.bin alone.txt -o out.abc
head -c 4000 named.bin >short.bin
ok 'a binary matrix that is cut short' both 3 1 'short.bin: byte .*truncated' short.bin alone.txt
printf '4 4 001\n2 5 3 2\n1 5 4 7\n1 2 4 1\n2 7 3 1\n' >four.graph
printf '0\n1\n1\n0\n' >four.txt
compare 3 four.graph four.txt -o out.mtx
report() { # the figures of the report, but for times and memory
    python3 - <<'END'
import json
def load(name):
    report = json.load(open(name + "/report"))
    for key in ("seconds", "peak_host_bytes", "working_bytes", "threads"): del report[key]
    report["options"]["device"] = ""
    return report
assert load("one") == load("several"), (load("one"), load("several"))
END
}
same_report() { same 3 ../pairs.abc ../families.tsv -o out.mtx --report report; report; }
ok 'a report' same_report

# PETSc's product, to rounding.
quotient() {
    together -n "$1" "$tool" general.mtx labels.txt -o product.mtx --directed --quiet &&
        together -n "$2" "$tests/mpi/triple_product" general.mtx labels.txt product.mtx
}
for processes in 1 2 3; do ok "MatPtAP in $processes processes" quotient $processes $((4 - processes)); done
wrong_quotient() { # the comparison sees an entry that is wrong in its eighth digit
    awk 'NR == 9 { $3 *= 1 + 1e-8 } { print }' OFMT=%.17g CONVFMT=%.17g product.mtx >wrong.mtx
    ! together -n 2 "$tests/mpi/triple_product" general.mtx labels.txt wrong.mtx
}
ok 'MatPtAP differs from a wrong product' wrong_quotient

# ---- what is refused ---------------------------------------------------------------------------------------------

ok 'no such graph' both 3 1 'No such file' missing.abc families.tsv
ok 'no such labels' both 3 1 'No such file' pairs.abc missing.tsv
ok 'a node without a label' both 2 1 'have no label' pairs.abc some.tsv
ok 'sums that are not exact' both 3 1 'from group 0 to group 0, .* add up to more than 2^53' vast.abc whole.tsv --directed
ok 'an output that cannot be written' both 2 1 'nowhere' pairs.abc families.tsv --node-output nowhere/nodes
ok 'an output that is an input' fails 2 2 'LABELS\|input' pairs.abc families.tsv --node-output pairs.abc
ok 'an unknown option' both 3 2 'unknown option' pairs.abc families.tsv --typo
late() { # the first process is slow, and says all the same why all end
    together -n 1 bash -c 'sleep 0.5; exec "$@"' - "$tool" pairs.abc families.tsv --typo : \
        -n 2 "$tool" pairs.abc families.tsv --typo 2>run.err
    [ $? -eq 2 ] && [ "$(grep -c '^contract: .*unknown option' run.err)" -eq 1 ]
}
ok 'an unknown option of a slow process' late
ok 'loops in METIS' both 2 1 'METIS graphs have none' whole.abc whole.tsv --to metis --loops keep
ok 'groups that overlap' fails 2 1 'for a run in one process, because' pairs.abc overlap.txt
ok 'a hierarchy' fails 2 2 '--repeat is for a run in one process' pairs.abc --repeat matching
ok 'judging' fails 2 2 '--judge is for a run in one process' pairs.abc families.tsv --judge line
ok 'refining' fails 2 2 '--refine is for a run in one process' pairs.abc families.tsv --refine out.refined
ok 'a device' fails 2 2 '--device cuda is for a run in one process' pairs.abc families.tsv --device cuda
ok 'too little memory' fails 3 1 'edges of group .* take .* MB.*: --memory [0-9]*M would do$' pairs.abc families.tsv --memory 10K
sed '4000s/.*/single/' pairs.abc >wrong.abc
ok 'a mistake in the second part' both 2 1 'wrong.abc:4000: one field' wrong.abc families.tsv

# ---- faults ------------------------------------------------------------------------------------------------------

other_arguments() {
    together -n 2 "$tool" pairs.abc families.tsv -o out.mtx : -n 1 "$tool" pairs.abc families.tsv -o out.mtx --loops drop \
        2>run.err
    [ $? -eq 1 ] && grep -q '^contract: process 2 on .*other arguments' run.err && [ ! -e out.mtx ]
}
ok 'a process with other arguments' other_arguments
other_file() { # of the same name and size in another folder
    mkdir elsewhere
    tac pairs.abc >elsewhere/pairs.abc
    cp families.tsv elsewhere
    together -n 2 "$tool" pairs.abc families.tsv -o out.mtx : \
        -n 1 bash -c 'cd elsewhere && exec "$@"' - "$tool" pairs.abc families.tsv -o out.mtx 2>run.err
    [ $? -eq 1 ] && grep -q '^contract: process 2 on .*pairs.abc: not the file' run.err && [ ! -e out.mtx ] ||
        { cat run.err; return 1; }
}
ok 'a process that sees another file' other_file
"$tests/gen/gen_protein" 20000 60 7 >large.abc
cut -f 1 large.abc | sort -u | awk '{ print $1 "\t" NR % 500 }' >large.tsv
cut -f 2 large.abc | sort -u | awk '{ print $1 "\t" 3 }' | awk 'NR == FNR { seen[$1]; next } !($1 in seen)' large.tsv - >>large.tsv
killed() { # one process of three, in the middle
    local launcher victim started tries=0
    rm -f out.mtx
    mpirun --oversubscribe -n 3 "$tool" large.abc large.tsv -o out.mtx --memory 1M </dev/null 2>run.err &
    launcher=$!
    until [ "$(pgrep -P $launcher contract | wc -l)" -eq 3 ] || [ $((tries++)) -gt 600 ]; do sleep 0.02; done
    victim=$(pgrep -P $launcher contract | tail -n 1)
    [ -n "$victim" ] || { echo 'ended too early'; return 1; }
    started=$SECONDS
    kill -KILL "$victim"
    wait $launcher
    [ $? -ne 0 ] && [ $((SECONDS - started)) -le 5 ] && [ ! -e out.mtx ] && no_leftovers &&
        [ "$(grep -c '^contract: ' run.err)" -le 1 ]
}
ok 'a killed process ends all' killed
full_disk() { # while rows of the other processes come
    local got
    together -n 3 "$tool" large.abc large.tsv -o small/out.mtx 2>run.err
    got=$?
    [ $got -eq 1 ] && [ "$(grep -c '^contract: ' run.err)" -eq 1 ] && no_leftovers small && [ ! -e small/out.mtx ] &&
        grep -q '^contract: small/out.mtx: No space left' run.err || { echo "status $got"; cat run.err; return 1; }
}
mkdir small
if mount -t tmpfs -o size=256k tmpfs small 2>/dev/null; then
    ok 'a full disk' full_disk
    umount small
else
    skip 'a full disk: no tmpfs can be mounted here'
fi
# The Nth request for memory of one process of three fails: it says so, and all end.
no_memory() {
    local common=("$tool" pairs.abc families.tsv -o out.mtx --threads 1) got
    rm -f out.mtx
    together -n 2 "${common[@]}" : \
        -n 1 env LD_PRELOAD="$work/fail_resource.so" FAIL_KIND=memory "FAIL_CALL=$1" "${common[@]}" 2>run.err
    got=$?
    [ $got -eq 1 ] && [ ! -e out.mtx ] && no_leftovers && [ "$(grep -c '^contract: ' run.err)" -eq 1 ] &&
        grep -q '^contract: process 2 on .*: .*out of memory' run.err || { echo "status $got"; cat run.err; return 1; }
}
if ${CC:-cc} -shared -fPIC -o fail_resource.so "$preload/fail_resource.c" -ldl 2>compiled; then
    for call in 3 40 80 120; do ok "request $call for memory fails in one process" no_memory $call; done
else
    skip 'requests that fail: no C compiler, or another C library'
fi
stopped() { # SIGTERM for one process
    local launcher got tries=0
    rm -f out.mtx
    mpirun --oversubscribe -n 3 "$tool" large.abc large.tsv -o out.mtx --memory 1M </dev/null 2>run.err &
    launcher=$!
    until [ "$(pgrep -P $launcher contract | wc -l)" -eq 3 ] || [ $((tries++)) -gt 600 ]; do sleep 0.02; done
    sleep 0.3
    kill -TERM "$(pgrep -P $launcher contract | tail -n 1)"
    wait $launcher
    got=$?
    [ $got -ne 0 ] && [ ! -e out.mtx ] && no_leftovers || { echo "status $got"; cat run.err; return 1; }
}
ok 'a signal for one process ends all' stopped

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
