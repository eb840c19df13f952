#!/bin/bash
# mcl-gpu in several MPI processes against one process: the same files and the same log. Run by `make test-mpi`, which
# builds what is needed.
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu], with ../lib/libsparse-mpi.so
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
tests=$(realpath "${BUILD:-build}/tests") golden=$PWD/tests/mcl/golden.sh
in=$PWD/tests/golden/in preload=$PWD/tests/preload
. tests/support/mpi.sh
. tests/support/cli.sh

# ---- networks ----------------------------------------------------------------------------------------------

awk 'BEGIN { for (i = 0; i < 101; i++) print "v" i, "v" (i + 1) % 101, 1 }' >cycle.abc
awk 'BEGIN { for (i = 1; i < 400; i++) { print "hub", "v" i, 1 + i % 7; if (i % 3) print "v" i, "v" i + 1, 2 } }' >hub.abc
awk 'BEGIN { for (i = 0; i < 400; i++) { if (i % 20 < 19) print "v" i, "v" i + 1, 1; if (i < 380) print "v" i, "v" i + 20, 1 } }' >grid.abc
printf 'a b 1\nb c 1\nc a 2\nd e 1\ne f 2\nf g 1\n' >seven.abc
: >nothing.abc
cp "$in/p2000.abc" .
awk 'BEGIN { srand(7) } { print rand() "\t" $0 }' p2000.abc | sort -n | cut -f 2- >chance.abc # rows of all families together
"$tests/gen/gen_protein" 7500 60 7 >protein.abc # more than 200,000 entries: nodes are numbered by community

# A log without process ids, times and what processes say of each other.
mask() {
    sed -E -e 's/pid [0-9]+/pid N/' -e 's/^( *[0-9]+  \.* *[0-9]+\.[0-9]+) +[0-9.]+ /\1 TIME /' \
        -e '/^mcl-gpu: ([0-9]+ processes received|the (slowest|fastest) process,|a process on average|each process reads) /d' \
        "$1"
}
# same P ARGUMENTS...: what P processes write is what one writes
same() {
    local processes=$1 name
    shift
    rm -rf one several
    mkdir one several
    (cd one && "$tool" "$@" --device cpu 2>log) || { cat one/log; return 1; }
    (cd several && together -n "$processes" "$tool" "$@" --device "${device:-cpu}" \
        ${memory:+--memory "$memory"} 2>log) || { cat several/log; return 1; }
    for name in one several; do
        mask $name/log >$name/log.masked
        rm $name/log
    done
    diff -r one several
}
# compare P NETWORK ARGUMENTS...: the same clusters, log and limit matrix
compare() { ok "$*" same "$1" "../$2" --abc "${@:3}" -o out --write-limit -te 1; }

# fails P STATUS PATTERN ARGUMENTS...: all processes end, one line of ours says why, nothing is written
fails() {
    local processes=$1 expected=$2 pattern=$3 got
    shift 3
    rm -rf out
    together -n "$processes" "$tool" "$@" -o out 2>run.err
    got=$?
    [ $got -eq "$expected" ] && [ "$(grep -c '^mcl-gpu: ' run.err)" -eq 1 ] && grep -q "^mcl-gpu: .*$pattern" run.err &&
        [ ! -e out ] && no_leftovers || { echo "status $got"; cat run.err; return 1; }
}

# ---- rows --------------------------------------------------------------------------------------------------

for processes in 1 2 3 4; do
    ok "rows of $processes processes" together -n $processes "$tests/mpi/fetch_rows"
    SPARSE_MPI_BYTES=1000 ok "rows of $processes processes in short messages" \
        together -n $processes "$tests/mpi/fetch_rows"
done
SPARSE_MPI_BYTES=4 ok 'an entry a message' together -n 2 "$tests/mpi/fetch_rows"
for processes in 1 2 3 4 9; do
    ok "partitions of $processes processes" together -n $processes "$tests/mpi/partitions" p2000.abc
done
SPARSE_MPI_BYTES=1000 ok 'partitions in short messages' together -n 3 "$tests/mpi/partitions" p2000.abc

# ---- clusterings ---------------------------------------------------------------------------------------------

for processes in 1 2 3 4 9; do
    for network in cycle hub grid seven nothing p2000; do compare $processes $network.abc; done
done
for processes in 2 3 4; do compare $processes protein.abc -I 1.6; done
compare 12 seven.abc
for processes in 2 3 4 9; do compare $processes chance.abc; done
memory=8M compare 4 chance.abc
compare 3 chance.abc -I 1.4 --mpi-read parts
export SPARSE_MPI_BYTES=1000
compare 3 protein.abc
compare 2 p2000.abc -I 1.4
unset SPARSE_MPI_BYTES
compare 3 protein.abc -P 20 -S 10 -R 0 # emptied columns
compare 4 p2000.abc -p 0.1 -S 0 -R 0
compare 3 p2000.abc -P 500 -S 30 -R 60 -pct 99
compare 2 cycle.abc -P 3 -R 0 -I 4
compare 3 hub.abc -L 0
memory=10M compare 3 protein.abc # batches of rows, of which one process would need 35M
memory=7M compare 4 p2000.abc
device=cpu,cpu compare 2 protein.abc
ok 'several inflations' same 3 ../p2000.abc --abc -I 1.4,2,4 -V all
for read in whole parts; do
    ok "dumps, $read" same 3 ../protein.abc --abc -o out -dump ite,cls -dump-interval 0:3 --mpi-read $read
    ok "binary dumps, $read" same 3 ../p2000.abc --abc -o out -dump ite,cls --write-binary --mpi-read $read
    for length in 0 1 2; do # runs that end early
        ok "the limit after $length iterations, $read" same 3 ../protein.abc --abc -L $length -o out --write-limit --mpi-read $read
    done
    for network in nothing seven p2000; do
        ok "matrices of $network, $read" same 4 ../$network.abc --abc -o out -write-graph g -write-graphx x \
            -write-expanded e -dump ite,cls -L 1 --write-limit --mpi-read $read
    done
    ok "binary matrices, $read" same 2 ../protein.abc --abc -o out -write-graph g -write-graphx x -write-expanded e \
        -L 1 --write-limit --write-binary --mpi-read $read
done
reckoned() { # what bench/ranks/volume.c reckons is what processes receive, who cut their rows again
    local megabytes
    "$tool" p2000.abc --abc -o single.cls --device cpu -q x && "$tests/../bench/volume" p2000.abc 2 "$1" >volume.json 2>run.err &&
        megabytes=$(python3 -c 'import json
print(sum(i["recut"]["received"][0] - i["recut"]["moved"][0] for i in json.load(open("volume.json"))["iterations"]) * 8 // 1000000)') &&
        together -n "$1" "$tool" p2000.abc --abc -o out --device cpu -te 1 2>run.err &&
        cmp out single.cls && grep -q "^mcl-gpu: $1 processes received $megabytes MB" run.err || { echo "reckoned: $megabytes MB"; return 1; }
}
ok 'the volume model' reckoned 5
ok 'the volume model where what is received counts' reckoned 64
resumed() { # resumed P FILE: from a checkpoint of another number of processes
    together -n "$1" "$tool" protein.abc --abc -I 1.6 -o resumed.cls --device cpu --resume "$2" 2>run.err &&
        cmp resumed.cls whole.cls
}
"$tool" protein.abc --abc -I 1.6 -o whole.cls --device cpu --checkpoint one.saved --checkpoint-every 0 2>run.err
together -n 3 "$tool" protein.abc --abc -I 1.6 -o three.cls --device cpu --checkpoint three.saved --checkpoint-every 0 \
    2>run.err
ok 'a run with checkpoints' cmp three.cls whole.cls
same_iterand() { # the numbering and the iterand in two checkpoints
    python3 - "$@" <<'END'
import struct, sys
data = [open(name, "rb").read() for name in sys.argv[1:]]
rows, nnz = struct.unpack_from("<2q", data[0], 120)
size = 4 * rows + 8 * (rows + 1) + 8 * nnz + 8
assert rows > 7000 and nnz >= rows and len(data[0]) == len(data[1])
assert data[0][-size:-8] == data[1][-size:-8]
END
}
ok 'three processes write the iterand that one writes' same_iterand one.saved three.saved
ok 'three processes go on from a checkpoint of one' resumed 3 one.saved
ok 'one process goes on from a checkpoint of three' resumed 1 three.saved
ok 'two processes go on from a checkpoint of three' resumed 2 three.saved
damaged_for() { # damaged_for P PLACE: one process of several says that a checkpoint is damaged
    python3 - "$2" <<'END'
import sys
data = bytearray(open("three.saved", "rb").read())
data[int(len(data) * float(sys.argv[1]))] ^= 1
open("damaged.saved", "wb").write(data)
END
    fails "$1" 1 'damaged.saved: the checkpoint is damaged' protein.abc --abc -I 1.6 --device cpu --resume damaged.saved
}
for place in 0.05 0.3 0.5 0.9 0.99999; do ok "a checkpoint that is damaged at $place" damaged_for 3 $place; done
head -c 100000 three.saved >short.saved
ok 'a checkpoint that is cut off' fails 3 1 'short.saved: the checkpoint is cut off' protein.abc --abc -I 1.6 --device cpu \
    --resume short.saved
ok 'all outputs' same 2 ../p2000.abc --abc -o out --table table --graphml graph --quality -write-graph g -write-graphx x

figures() { # of each process in the report, whose sums and extremes stand on the log
    together -n 3 "$tool" p2000.abc --abc -I 1.4 -o out --device cpu --report several.json 2>run.err &&
        "$tool" p2000.abc --abc -o alone.cls --device cpu --report alone.json 2>alone.err &&
        python3 - <<'END'
import json, re
processes, log = json.load(open("several.json"))["processes"], open("run.err").read()
assert "processes" not in json.load(open("alone.json")) and " process, " not in open("alone.err").read()
assert len(processes) == 3
for p in processes:
    assert p["host"] and p["read_seconds"] > 0 and p["worked_seconds"] > 0 and p["waited_seconds"] > 0
    assert p["received_bytes"] > 0 and p["messages"] > 0 and p["peak_host_bytes"] > 1 << 20
received = [p["received_bytes"] for p in processes]
line = re.search("^mcl-gpu: 3 processes received ([0-9]+) MB of columns, one of them ([0-9]+) MB", log, re.M)
assert [int(n) for n in line.groups()] == [sum(received) // 1000000, max(received) // 1000000], (line, received)
for which, choose in (("slowest", max), ("fastest", min)):
    rank = choose(range(3), key=lambda r: processes[r]["worked_seconds"])
    line = re.search(f"^mcl-gpu: the {which} process, {rank} on (.*), worked for .* s, received ([0-9]+) MB", log, re.M)
    assert line and line[1] == processes[rank]["host"] and int(line[2]) == received[rank] // 1000000, log
mean = re.search("^mcl-gpu: a process on average worked for .* s, received ([0-9]+) MB", log, re.M)
assert int(mean[1]) == sum(received) // 3000000, log
END
}
ok 'figures of the processes' figures

# golden_by P HOW PATTERN: the golden cases by P processes that read so
golden_by() {
    printf '#!/bin/bash\nexec mpirun --oversubscribe -n %s "%s" "$@" --mpi-read %s </dev/null\n' "$1" "$tool" "$2" >tool.sh
    chmod +x tool.sh
    MCL_GPU=$work/tool.sh bash "$golden" "$3" >golden.out || { cat golden.out; return 1; }
}
ok 'golden cases' golden_by 3 whole '[ijln]*'
ok 'golden networks of yeast' golden_by 4 whole '[cgk]*-I[24]' # those of shared/ are left out where it is not
ok 'golden networks by more processes than cores' golden_by 9 whole '[cg]a*-I2'
ok 'golden cases without recovery' golden_by 2 whole '*-P500S30R0pct90'

# ---- parts of the input ----------------------------------------------------------------------------------------

printf 'x y 3\nno-end y' >unfinished.abc
printf '# comment\n\n  x y\n\ny z 0\nz\tx y\t3\n' >odd.abc
printf '\357\273\277m n 2\nn o\no m 7\n' >mark.abc
awk 'BEGIN { for (i = 0; i < 300; i++) printf "%s%d %d %d\n", substr("llllllllllllllllllllllllllllllllllllllllll", 1, i % 40), i % 70, i % 31, i % 5 }' >labels.abc
for processes in 2 3 5; do
    for network in cycle hub seven nothing p2000 odd mark labels unfinished; do
        compare $processes $network.abc --mpi-read parts
    done
done
compare 12 seven.abc --mpi-read parts
SPARSE_MPI_BYTES=1000 compare 3 protein.abc -I 1.6 --mpi-read parts
compare 4 protein.abc -P 20 -S 10 -R 0 --mpi-read parts
compare 2 p2000.abc -abc-tf 'ceil(90)' --mpi-read parts
compare 3 p2000.abc -c 2 --mpi-read parts
ok 'golden cases in parts' golden_by 2 parts 'p2000-I*'
parts_saved() { # a checkpoint of processes that read parts is one of a process that read all, and the reverse
    together -n 3 "$tool" protein.abc --abc -I 1.6 -o out --device cpu --checkpoint parts.saved --checkpoint-every 0 \
        --mpi-read parts 2>run.err && cmp out whole.cls && resumed 1 parts.saved &&
        together -n 2 "$tool" protein.abc --abc -I 1.6 -o out --device cpu --resume one.saved --mpi-read parts \
            2>run.err && cmp out whole.cls
}
ok 'checkpoints in parts' parts_saved
# matrix P FILE ARGUMENTS...: a Matrix Market file in parts
matrix() { ok "$*" same "$1" "../$2" "${@:3}" -o out --write-limit -te 1 --mpi-read parts; }
python3 - <<'END'
import random
random.seed(1)
def write(name, kind, entries, nodes, values=True):
    with open(name, "w") as f:
        print("%%MatrixMarket matrix coordinate", "real" if values else "pattern", kind, file=f)
        print("% a comment\n%", file=f)
        print(nodes, nodes, len(entries), file=f)
        for i, j in entries: print(i, j, *([random.randint(1, 99) / 8] if values else []), file=f)
pairs = {(max(p), min(p)) for p in ((c * 20 + random.randint(1, 20), c * 20 + random.randint(1, 20)) for c in range(60) for _ in range(150))}
pairs |= {(max(p), min(p)) for p in ((random.randint(1, 1200), random.randint(1, 1200)) for _ in range(900))}
pairs = sorted(p for p in pairs if p[0] != p[1])
write("below.mtx", "symmetric", pairs, 1230)
write("pattern.mtx", "symmetric", pairs, 1230, False)
write("both.mtx", "symmetric", [p if k % 2 else p[::-1] for k, p in enumerate(pairs)], 1230)
write("directed.mtx", "general", [p if k % 2 else p[::-1] for k, p in enumerate(pairs)], 1230)
write("general.mtx", "general", pairs + [p[::-1] for p in pairs], 1230)
write("none.mtx", "general", [], 5)
END
for processes in 2 3 5; do
    for network in below pattern both directed general none; do matrix $processes $network.mtx; done
done
SPARSE_MPI_BYTES=1000 matrix 3 below.mtx -I 1.4
seq 0 1229 >numbers
"$(dirname "$tool")/contract" below.mtx numbers -o below.bin --quiet
matrix 3 below.bin
matrix 3 directed.mtx -c 2 -P 20 -S 10 -R 0
"$tool" protein.abc --abc -o protein.cls -write-graph protein.mci 2>run.err
"$tool" protein.abc --abc -o protein.cls -write-graph protein.bin --write-binary 2>run.err
{
    printf '(mclheader\nmcltype matrix\ndimensions 9x9\n)\n(mcldoms\n 2 3 5 7 11 13 17 19 23 $\n)\n(mclmatrix\nbegin\n'
    printf '%s # $\n 3:2 $\n' 2 3 5 7 11 2
    printf '13 17:1.5\n  19:2 $ 23 13 $\n19 $\n)\n'
} >domain.mci
for processes in 2 3; do
    for network in protein.mci protein.bin domain.mci; do matrix $processes $network; done
done
sed '9000s/:/:x/' protein.mci >wrong.mci
ok 'a mistake in a later part of a native matrix' fails 3 1 'wrong.mci:9000: a value that is a number' wrong.mci \
    --mpi-read parts
whole_again() { # PATTERN ARGUMENTS...: what wants the whole input says so and reads it
    together -n 2 "$tool" "${@:2}" -o out --mpi-read parts 2>run.err && "$tool" "${@:2}" -o alone.cls 2>/dev/null &&
        cmp out alone.cls && grep -q "^mcl-gpu: each process reads the whole input: .*$1" run.err
}
ok 'a transform' whole_again '-tf that sees several columns needs it' p2000.abc --abc -tf 'gt(0.2),#max()'
ok 'connected clusters' whole_again 'force-connected needs it' p2000.abc --abc -force-connected y
ok 'GraphML' whole_again 'graphml needs it' p2000.abc --abc --graphml network.xml
# judged P FILE ARGUMENTS...: the report and the table of processes that read parts are those of one process
judged() {
    local processes=$1 name
    shift
    rm -rf one several
    mkdir one several
    (cd one && "$tool" "../$@" --abc -o out --device cpu --report json --table table 2>log) || return 1
    (cd several && together -n "$processes" "$tool" "../$@" --abc -o out --device cpu --report json --table table \
        --mpi-read parts 2>log && ! grep 'whole input' log) || { cat several/log; return 1; }
    for name in one several; do mask $name/log >$name.masked; done
    diff one.masked several.masked && cmp one/table several/table && cmp one/out several/out && python3 - <<'END'
import json
def figures(value): # without times, memory and what processes say of themselves
    if isinstance(value, list): return [figures(v) for v in value]
    if not isinstance(value, dict): return value
    other = ("arguments", "threads", "peak_host_bytes", "product_peak_bytes", "processes", "batches", "seconds")
    return {k: figures(v) for k, v in value.items() if k not in other and not k.endswith("_seconds")}
one, several = (figures(json.load(open(name + "/json"))) for name in ("one", "several"))
assert one == several, [(k, one[k], several[k]) for k in one if one[k] != several[k]]
assert one["runs"][0]["largest_clusters"] and one["input"]["first_products"] > 0
END
}
for network in hub cycle seven p2000 protein; do ok "a report of $network in parts" judged 3 $network.abc; done
ok 'transforms in parts' judged 3 protein.abc -tf 'gt(0.01),#selfrm(),rand(0.7),mul(2),#selfmax()'
ok 'pre-inflation in parts' judged 2 p2000.abc -pi 2
ok 'dumps of a transformed network in parts' same 2 ../p2000.abc --abc -o out -dump ite,cls -tf 'gq(0.2)' -pi 1.5 -L 2 \
    --write-limit -write-graphx x --mpi-read parts
ok '-analyze in parts' same 3 ../p2000.abc --abc -o out -analyze y --mpi-read parts
awk '{ print $1, $2, $3 / 100000 }' p2000.abc >small.abc
vanished() { # columns that pre-inflation empties are named once
    "$tool" small.abc --abc -pi 15 -o alone.cls 2>one.err
    together -n 3 "$tool" small.abc --abc -pi 15 -o out --mpi-read parts 2>run.err && cmp out alone.cls &&
        grep 'warning: nonpositive sum' one.err >one.warnings && grep 'warning: nonpositive sum' run.err | cmp - one.warnings
}
several_judged() { # as judged, with an output for each inflation
    together -n 3 "$tool" "$@" --abc -o many --device cpu --table several.tsv --mpi-read parts 2>run.err &&
        ! grep 'whole input' run.err && "$tool" "$@" --abc -o alone --device cpu --table one.tsv 2>one.err &&
        grep -A 9 '^  inflation' one.err | grep -v '^mcl-gpu' >one.figures && [ -s one.figures ] &&
        grep -A 9 '^  inflation' run.err | grep -v '^mcl-gpu' | cmp - one.figures && cmp one.tsv several.tsv
}
ok 'several inflations in parts' several_judged p2000.abc -I 1.4,2,6
ok 'shared nodes in parts' several_judged grid.abc -I 1.4,4 --overlap=keep
ok 'columns that pre-inflation empties' vanished
ok 'a negative weight in one process' fails 3 1 'negative weight' p2000.abc --abc -tf 'mul(-1)' -write-graphx x -dump ite \
    --mpi-read parts
gzip -k p2000.abc
mkdir folder
split -n l/5 --additional-suffix=.abc p2000.abc folder/part-
gzip folder/part-ab.abc folder/part-ad.abc
: >folder/_SUCCESS
: >folder/part-b.abc
for processes in 2 3 8; do compare $processes folder --mpi-read parts; done
compare 2 folder
of_one_file() { # the folder is its files, one after another
    together -n 3 "$tool" folder --abc -o folder.cls --device cpu --mpi-read parts 2>run.err &&
        "$tool" folder/ --abc -o alone.cls --device cpu -q x 2>run.err && "$tool" p2000.abc --abc -o file.cls --device cpu -q x &&
        cmp folder.cls file.cls && cmp alone.cls file.cls
}
ok 'a folder is its files' of_one_file
cp -r folder wrong
printf 'a b\nsingle\n' | gzip >wrong/part-ad.abc.gz
ok 'a mistake in a file of a folder' fails 3 1 'wrong/part-ad.abc.gz:2: one field' wrong --abc --mpi-read parts
mkdir empty
ok 'an empty folder' fails 3 1 'empty: this folder has no files' empty --abc --mpi-read parts
other_files() { # a process that sees another folder
    rm -rf elsewhere
    mkdir elsewhere
    ln -s "$1" "elsewhere/$2"
    together -n 2 "$tool" "$2" --abc -o out --mpi-read parts : \
        -n 1 bash -c 'cd elsewhere && exec "$@"' - "$tool" "$2" --abc -o out --mpi-read parts 2>run.err
    [ $? -eq 1 ] && grep -q "^mcl-gpu: process 2 on .*: $2: not the file" run.err && [ ! -e out ] || { cat run.err; return 1; }
}
ok 'a process with other files' other_files "$work/wrong" folder
cp -r folder other
tac other/part-ac.abc >reversed
mv reversed other/part-ac.abc
ok 'a process with other bytes in a file of a folder' other_files "$work/other" folder
tac p2000.abc >reversed.abc
ok 'a process with other bytes in a file' other_files "$work/reversed.abc" p2000.abc
sed '$d' below.mtx >short.mtx
ok 'a matrix without its last entry' fails 3 1 'short.mtx:[0-9]*: [0-9]* entries, but the header says' short.mtx --mpi-read parts
ok 'a compressed file' whole_again 'only uncompressed' p2000.abc.gz --abc

# ---- failures --------------------------------------------------------------------------------------------------

ok 'a file that is not there' fails 3 1 'No such file' missing.abc --abc
ok 'an unknown option' fails 3 2 'unknown option' p2000.abc --abc --typo
late() { # late STATUS PATTERN TOOL ARGUMENTS...: the first process is slow, and says all the same why all end
    together -n 1 bash -c 'sleep 0.5; exec "$@"' - "${@:3}" : -n 2 "${@:3}" 2>run.err
    [ $? -eq "$1" ] && [ "$(grep -c '^mcl-gpu: ' run.err)" -eq 1 ] && grep -q "^mcl-gpu: .*$2" run.err || { cat run.err; return 1; }
}
ok 'an unknown option of a slow process' late 2 'unknown option' "$tool" p2000.abc --typo
ok 'a wrong transform' fails 3 2 'unknown transform' p2000.abc --abc -tf 'none()'
ok 'too little memory' fails 3 1 'a column needs [0-9]* KB .* 6 KB for them in each process: --memory [0-9]*M would do' \
    p2000.abc --abc --memory 20K
told() { # what the message names is enough for the whole run
    local enough
    enough=$(sed -n 's/.*: --memory \([0-9]*M\) would do.*/\1/p' run.err)
    together -n 3 "$tool" p2000.abc --abc -o out --memory "$enough" 2>run.err &&
        "$tool" p2000.abc --abc -o plain.cls --device cpu 2>run.err && cmp out plain.cls
}
ok 'what would do' told
ok 'on how many hosts' fails 3 1 'would do, or 2 hosts$' hub.abc --abc --memory 30K -S 30 -R 40
ok 'standard input' fails 2 2 'one process' - --abc
ok '--start-from' fails 2 2 'one process' p2000.abc --abc --start-from whole.cls
ok 'a checkpoint that is not one' fails 2 1 'not a checkpoint' p2000.abc --abc --resume p2000.abc
ok 'a checkpoint that cannot be written' fails 3 1 'nowhere' p2000.abc --abc --checkpoint nowhere/saved
ok 'a dump that cannot be written' fails 3 1 'full' p2000.abc --abc -dump ite -dump-stem full/x
ok 'clusters that cannot be dumped' fails 3 1 'full' p2000.abc --abc -dump cls -dump-stem full/x --mpi-read parts
ok '--fast' fails 2 2 'one process' p2000.abc --abc --fast
ok 'an output that cannot be written' fails 3 1 'nowhere' p2000.abc --abc --table nowhere/table
ok 'a device that is not there' fails 2 1 'cuda:77' p2000.abc --abc --device cuda:77
other_network() {
    together -n 2 "$tool" p2000.abc --abc -o out -V all : -n 1 "$tool" cycle.abc --abc -o out 2>run.err
    [ $? -eq 1 ] && grep -q '^mcl-gpu: process 2 on .*: cycle.abc: not the network' run.err && [ ! -e out ]
}
ok 'a process that reads another network' other_network
other_options() { # a mistake in the command line of one process, before it reads
    timeout -k 5 30 mpirun --oversubscribe -n 2 "$tool" p2000.abc --abc -o out : \
        -n 1 "$tool" p2000.abc --abc -o out -tf 'none()' </dev/null 2>run.err
    local got=$?
    [ $got -ne 0 ] && [ $got -ne 124 ] && [ "$(grep -c '^mcl-gpu: ' run.err)" -eq 1 ] &&
        grep -q '^mcl-gpu: process 2 on .*unknown transform' run.err && [ ! -e out ]
}
ok 'a process with other options' other_options
# began ITERATION PID: the run of the launcher has ended that iteration; the ids of its processes are in $processes
began() {
    local tries=0
    until grep -q "^ *$1  \." run.err || [ $((tries++)) -gt 1800 ] || ! kill -0 "$2"; do sleep 0.05; done
    processes=$(pgrep -P "$2" mcl-gpu)
    grep -q "^ *$1  \." run.err && [ -n "$processes" ]
}
killed() { # killed OPTIONS...: one process of three, in the middle
    local launcher processes victim started
    : >run.err # not that of the run before
    mpirun --oversubscribe -n 3 "$tool" large.abc --abc -I 1.4 -o out --device cpu "$@" </dev/null 2>run.err &
    launcher=$!
    began 2 $launcher || { kill -KILL $launcher; echo 'ended too early'; return 1; }
    victim=$(echo "$processes" | tail -n 1)
    started=$SECONDS
    kill -KILL "$victim"
    wait $launcher
    [ $? -ne 0 ] && [ $((SECONDS - started)) -le 5 ] && [ ! -e out ] && [ "$(grep -c '^mcl-gpu: ' run.err)" -le 1 ] && grep -q 'process rank 2 .* exited on signal 9' run.err
}
"$tests/gen/gen_protein" 20000 60 7 >large.abc
ok 'a killed process ends all' killed
ok 'a killed process leaves no output' no_leftovers
: >killed.saved.tmp.0123abcd
ok 'a killed process ends all that save the run' killed --checkpoint killed.saved --checkpoint-every 0
ok 'what an older run left of its checkpoint is removed' [ ! -e killed.saved.tmp.0123abcd ]
after_killed() { # the last whole iteration is in the checkpoint
    together -n 2 "$tool" large.abc --abc -I 1.4 -o after.cls --device cpu --resume killed.saved 2>run.err &&
        grep -q 'going on after iteration [1-9]' run.err &&
        rm -f killed.saved.tmp.* && # of a checkpoint that was being written
        together -n 3 "$tool" large.abc --abc -I 1.4 -o large.cls --device cpu 2>run.err && cmp after.cls large.cls
}
ok 'the checkpoint is whole' after_killed
slow() { # one of three gets a fifth of the time
    local launcher processes victim rank
    : >run.err
    mpirun --oversubscribe -n 3 "$tool" large.abc --abc -I 1.4 -o slow.cls --device cpu </dev/null 2>run.err &
    launcher=$!
    began 1 $launcher || { kill -KILL $launcher; return 1; }
    victim=$(echo "$processes" | tail -n 1)
    rank=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
    while kill -STOP "$victim" 2>/dev/null; do
        sleep 0.4
        kill -CONT "$victim"
        sleep 0.1
    done
    wait $launcher && grep -q "^mcl-gpu: the slowest process, $rank on" run.err || { grep slowest run.err; return 1; }
}
ok 'a slow process is named' slow
# The Nth request for memory of one process of three fails: it says so, and all end.
no_memory() {
    local common=("$tool" p2000.abc --abc -o out --device cpu -te 1) got
    rm -rf out
    together -n 2 "${common[@]}" : \
        -n 1 env LD_PRELOAD="$work/fail_resource.so" FAIL_KIND=memory "FAIL_CALL=$1" "${common[@]}" 2>run.err
    got=$?
    [ $got -eq 1 ] && [ ! -e out ] && no_leftovers && [ "$(grep -c '^mcl-gpu: ' run.err)" -eq 1 ] &&
        grep -q '^mcl-gpu: process 2 on .*: .*out of memory' run.err || { echo "status $got"; cat run.err; return 1; }
}
full_elsewhere() { # process 2 has no room for its part of a later checkpoint, whose pwrite it is
    local common=("$tool" p2000.abc --abc -o out --device cpu -te 1 --checkpoint later.saved --checkpoint-every 0)
    rm -f out
    together -n 2 "${common[@]}" : \
        -n 1 env LD_PRELOAD="$work/fail_resource.so" FAIL_KIND=place FAIL_CALL=20 "${common[@]}" 2>run.err
    [ $? -eq 1 ] && [ ! -e out ] && no_leftovers && [ "$(grep -c '^mcl-gpu: ' run.err)" -eq 1 ] &&
        grep -q '^mcl-gpu: process 2 on .*: later.saved: No space left' run.err || { cat run.err; return 1; }
    together -n 2 "$tool" p2000.abc --abc -o out --device cpu --resume later.saved 2>run.err &&
        grep -q 'going on after iteration [1-9]' run.err && "$tool" p2000.abc --abc -o alone.cls --device cpu -q x 2>run.err &&
        cmp out alone.cls
}
if ${CC:-cc} -shared -fPIC -o fail_resource.so "$preload/fail_resource.c" -ldl 2>compiled; then
    for call in 3 60 300 900 1200; do
        ok "request $call for memory fails in one process" no_memory $call
    done
    ok 'a full disk on one host leaves the checkpoint before' full_elsewhere
else
    skip 'requests that fail: no C compiler, or another C library'
fi
full_disk() { # where process 0 writes its checkpoint
    rm -f out
    together -n 3 "$tool" p2000.abc --abc -o out --device cpu --checkpoint small/saved --checkpoint-every 0 2>run.err
    [ $? -eq 1 ] && [ ! -e out ] && no_leftovers small && grep -q '^mcl-gpu: .*small/saved: No space left' run.err
}
full_output() { # where process 0 writes the clusters
    together -n 3 "$tool" p2000.abc --abc -o tiny/out --device cpu 2>run.err
    [ $? -eq 1 ] && [ ! -e tiny/out ] && no_leftovers tiny && [ "$(grep -c '^mcl-gpu: .*tiny/out: No space left' run.err)" -eq 1 ]
}
apart() { # where checkpoints go
    rm -f out
    together -n 2 "$tool" p2000.abc --abc -o out --device cpu --checkpoint apart/saved --checkpoint-every 0 : \
        -n 1 unshare -m bash -c 'mount -t tmpfs tmpfs apart && exec "$@"' - "$tool" p2000.abc --abc -o out --device cpu \
        --checkpoint apart/saved --checkpoint-every 0 2>run.err
    [ $? -eq 1 ] && [ ! -e out ] && no_leftovers apart && [ ! -e apart/saved ] &&
        [ "$(grep -c '^mcl-gpu: ' run.err)" -eq 1 ] &&
        grep -q '^mcl-gpu: process 2 on .*apart/saved: .*No such file.*all hosts share' run.err
}
mkdir small
if mount -t tmpfs -o size=256k tmpfs small 2>/dev/null; then
    ok 'a full disk' full_disk
    umount small
    mkdir tiny apart
    mount -t tmpfs -o size=4k tmpfs tiny
    ok 'a full disk for the clusters' full_output
    umount tiny
    ok 'a folder that one process does not see' apart
else
    skip 'a full disk: no tmpfs can be mounted here'
fi

# ---- signals ---------------------------------------------------------------------------------------------------

# signalled STATUS P HOW OPTIONS...: a run that is signalled after its second iteration ends with that status and leaves
# no output. HOW: each process gets SIGTERM, as from srun; or one of them, not the first; or the launcher, which sends
# its processes SIGTERM 3 s later (so the run must be long enough), SIGKILL 3 s after that, and has a status of its own;
# or the launcher passes SIGUSR1 on
signalled() {
    local expected=$1 how=$3 network=middle inflation=1.3 processes launcher got
    [ "$how" = launcher ] && network=large inflation=1.1
    rm -f out
    : >run.err
    mpirun --oversubscribe --mca odls_base_sigkill_timeout 3 -n "$2" "$tool" $network.abc --abc -I $inflation -o out \
        --device cpu "${@:4}" </dev/null 2>run.err &
    launcher=$!
    began 2 $launcher || { kill -KILL $launcher; echo 'no second iteration'; return 1; }
    case $how in
    each) kill -TERM $processes ;;
    one) kill -TERM "$(echo "$processes" | tail -n 1)" ;;
    launcher) kill -TERM $launcher ;;
    passed) kill -USR1 $launcher ;;
    esac
    wait $launcher
    got=$?
    [ $got -eq "$expected" ] && [ ! -e out ] && no_leftovers &&
        [ "$(grep -c '^mcl-gpu: stopped by signal' run.err)" -eq 1 ] || { echo "status $got"; ls; tail -n 12 run.err; return 1; }
}
goes_on() { # goes_on P: from what the signal left
    together -n "$1" "$tool" middle.abc --abc -I 1.3 -o resumed.cls --device cpu --resume sig.saved 2>run.err &&
        grep -q 'going on after iteration [2-9]' run.err && cmp resumed.cls middle.cls
}
"$tests/gen/gen_protein" 12000 60 7 >middle.abc
"$tool" middle.abc --abc -I 1.3 -o middle.cls --device cpu 2>run.err
for how in each one passed; do
    rm -f sig.saved
    ok "a signal for $how leaves a checkpoint" signalled 75 3 $how --checkpoint sig.saved
    ok "a run goes on after a signal for $how" goes_on 2
done
ok 'SIGTERM for the launcher leaves a checkpoint' signalled 1 3 launcher --checkpoint launcher.saved
ok 'which is there' [ -s launcher.saved ]
ok 'SIGTERM in batches' signalled 75 2 each --checkpoint sig.saved --memory 20M --mpi-read parts
ok 'one process goes on after SIGTERM in batches' goes_on 1
ok 'SIGTERM without a checkpoint' signalled 143 3 each
ok 'SIGTERM for one without a checkpoint' signalled 143 3 one

sed '2000s/.*/1 1231 1/' below.mtx >beyond.mtx
ok 'a mistake in a matrix' fails 3 1 'beyond.mtx:2000: an index that is not within the matrix' beyond.mtx --mpi-read parts

# The line of a mistake is that of the whole file, and the first mistake counts.
for at in 3 4000 9000; do
    awk -v at=$at '{ print } NR == at || NR == 9200 { print "single" at }' p2000.abc >wrong.abc
    ok "a mistake in line $((at + 1))" fails 3 1 "wrong.abc:$((at + 1)): one field" wrong.abc --abc --mpi-read parts
done

cp "$tool" alone # without ../lib
ok 'no MPI library' eval 'together -n 2 ./alone p2000.abc --abc -o out 2>run.err; [ $? -eq 1 ] &&
    [ "$(grep -c "^mcl-gpu: .*make mpi builds it" run.err)" -eq 1 ] && [ ! -e out ]'
ok 'no MPI library of a slow process' late 1 'make mpi builds it' ./alone p2000.abc --abc -o out
ok '--mpi no' eval 'together -n 1 ./alone p2000.abc --abc -o out --mpi no 2>run.err && [ -s out ]'
ok '--mpi yes' eval 'env -u PMIX_RANK "$tool" p2000.abc --abc -o yes --mpi yes 2>run.err && cmp yes out'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
