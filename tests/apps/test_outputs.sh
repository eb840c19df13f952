#!/bin/bash
# Output files of all tools: what signals leave and say, limits of the system, outputs that are one file, results of
# several files, and runs in which one call of the system after another fails.
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
bin=$(realpath "${BUILD:-build}/bin") || exit 1
in=$PWD/tests/golden/in
. tests/support/cli.sh
ulimit -c 0

use() { tool=$bin/$1; }
one_line() { # one_line PATTERN: exactly one line on stderr, and it matches
    [ "$(wc -l <run.err)" -eq 1 ] && grep -qE -- "$1" run.err || { cat run.err; return 1; }
}
fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr
    local expected=$1 pattern=$2
    shift 2
    status "$expected" "$@" && one_line "^${tool##*/}: .*$pattern"
}

printf 'a b 1\nb c 1\nd e 1\n' >g.abc
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n2 3 1\n' >m.mtx
printf 'a x\nb x\nc y\nd y\ne x\n' >pairs
# A graph without structure: with -I close to 1 clustering it takes long.
awk 'BEGIN { srand(7); for (i = 0; i < 60000; i++) print int(rand() * 3000), int(rand() * 3000), rand() }' >long.abc
mkdir d
for ((i = 0; i < 40; i++)); do j=$(((i + 1) % 40)); echo "$i $j"; echo "$j $i"; done >d/graph.txt
for ((i = 0; i < 40; i++)); do echo "$((i % 2)),$((i % 3))"; done >d/features.csv
for ((i = 0; i < 40; i++)); do echo $((i % 2)); done >d/labels.txt
split=(--split 5,5)

# ---- signals --------------------------------------------------------------------------------------------

# stopped_writing SIGNAL STATUS: contract, one output made under its temporary name, waits for the reader of the next.
stopped_writing() {
    local process waited=0
    rm -f pipe X*
    mkfifo -m 600 pipe
    heeding "$1" "$bin/contract" g.abc pairs -o X --to abc --node-output pipe 2>run.err &
    process=$!
    until ls X.tmp.* >/dev/null 2>&1 || [ $waited -eq 200 ]; do sleep 0.02; waited=$((waited + 1)); done
    sleep 0.1
    kill -s "$1" $process
    wait $process
    local got=$?
    rm pipe
    [ $got -eq "$2" ] && no_leftovers && [ ! -e X ] || { echo "status $got"; ls X*; return 1; }
}
for signal in HUP INT QUIT TERM USR1 USR2 ALRM VTALRM PROF XCPU IO PWR STKFLT RTMIN RTMAX; do
    number=$(kill -l $signal)
    ok "SIG$signal ends a run with a message" eval "stopped_writing $signal $((128 + number)) &&
        one_line '^contract: stopped by signal $number; no file was written$'"
done
for signal in ILL TRAP ABRT BUS FPE SEGV SYS; do
    ok "SIG$signal leaves no temporary file" eval \
        "stopped_writing $signal $((128 + $(kill -l $signal))) 2>/dev/null"
done
stays_ignored() { # a signal that the process was told to ignore
    local process waited=0
    rm -f pipe X*
    mkfifo -m 600 pipe
    (trap '' "$1" && exec "$bin/contract" g.abc pairs -o X --to abc --node-output pipe 2>run.err) &
    process=$!
    until ls X.tmp.* >/dev/null 2>&1 || [ $waited -eq 200 ]; do sleep 0.02; waited=$((waited + 1)); done
    kill -s "$1" $process
    cat pipe >X.nodes
    wait $process && [ -s X ] && [ -s X.nodes ]
}
for signal in HUP TERM USR1 XCPU; do ok "SIG$signal that is ignored stays so" stays_ignored $signal; done
waits() { # a run into X that waits for the reader of its next output; N temporary files are there then
    local waited=0
    rm -f pipe
    mkfifo -m 600 pipe
    "$bin/contract" g.abc pairs -o X --to abc --node-output pipe 2>run.err &
    process=$!
    until [ "$(ls -d X.tmp.* 2>/dev/null)" != "$before" ] || [ $waited -eq 600 ]; do sleep 0.02; waited=$((waited + 1)); done
    sleep 0.1
    ls -d X.tmp.* >names
}
killed() { # what a killed run leaves the next one removes, which leaves that of a living one
    local process before='' first
    rm -f X*
    waits && first=$(cat names)
    kill -s KILL $process
    wait $process
    [ $? -eq 137 ] && [ -e "$first" ] && [ ! -e X ] || return 1
    before=$first
    waits && [ ! -e "$first" ] && [ "$(wc -l <names)" -eq 1 ] &&
        "$bin/contract" g.abc pairs -o X --to abc 2>run.err && [ -s X ] && [ -e "$(cat names)" ] &&
        cat pipe >X.nodes && wait $process && [ -s X ] && no_leftovers
}
ok 'SIGKILL leaves a temporary file, which the next run removes' killed
after_first_clustering() { # two inflations: the first is there, the second takes long
    local process waited=0
    rm -f F.*
    "$bin/mcl-gpu" long.abc --abc -I 6,1.01 -o F -q x 2>run.err &
    process=$!
    until [ -e F.I60 ] || [ $waited -eq 600 ]; do sleep 0.05; waited=$((waited + 1)); done
    sleep 0.1
    kill -s TERM $process
    wait $process
    [ $? -eq 143 ] && [ -e F.I60 ] && [ ! -e F.I10 ] && no_leftovers &&
        one_line '^mcl-gpu: stopped by signal 15; F.I60 was written, no other file$'
}
ok 'a signal after the first of two clusterings' after_first_clustering
time_limit() { # of one second of processor time
    (ulimit -S -t 1 && exec "$bin/mcl-gpu" long.abc --abc -I 1.01 -o F -q x 2>run.err)
    [ $? -eq 152 ] && [ ! -e F ] && no_leftovers && one_line '^mcl-gpu: stopped by signal 24; no file was written$'
}
ok 'a limit of processor time' time_limit
size_limit() { # size_limit TOOL ARGUMENTS...: files may have 1 KB
    use "$1"
    shift
    rm -rf full && mkdir full
    (ulimit -f 1 && "$tool" "$@" >run.out 2>run.err)
    [ $? -eq 1 ] && [ -z "$(ls -A full)" ] && one_line "^${tool##*/}: full/.*: File too large; nothing was written there$"
}
awk 'BEGIN { for (i = 0; i < 2000; i++) print i, i % 500 }' >groups
awk 'BEGIN { for (i = 0; i < 2000; i++) print i, i + 1 }' >path.abc
ok 'a limit of file sizes: mcl-gpu' size_limit mcl-gpu path.abc --abc -q x -o full/F
ok 'a limit of file sizes: contract' size_limit contract path.abc groups -o full/F --to abc --base 0 --unlabelled drop
ok 'a limit of file sizes: gnn' size_limit gnn train d "${split[@]}" --epochs 2 --save full/m --hidden 512

# ---- outputs that are one file ---------------------------------------------------------------------------

# one_file ARGUMENTS...: refused before any work, whatever is there stays.
one_file() {
    rm -rf q* && mkdir q.d && ln -s ../q q.d/link && ln -s . q.here
    printf 'old\n' >q
    fails 2 '(two outputs|a dump) would be written to ".*"(, too)?: give one another name; see ' "$@" &&
        [ "$(cat q)" = old ] && no_leftovers
}
not_there() { # the same where the file is not there yet
    rm -rf q* && ln -s . q.here
    fails 2 '(two outputs|a dump) would be written to ".*"(, too)?: give one another name; see ' "$@" && [ ! -e q ]
}
apart() { rm -rf q* && mkdir q.d && status 0 "$@" && no_leftovers; } # apart ARGUMENTS...: they are several files
use mcl-gpu
for second in q ./q "$PWD/q" q.here/q q.here/../"${PWD##*/}"/q; do
    ok "mcl-gpu: q and $second" one_file g.abc --abc -q x -o q -write-graph "$second"
    ok "mcl-gpu: q and $second, not there yet" not_there g.abc --abc -q x -o q -write-graph "$second"
done
ok 'mcl-gpu: a link' one_file g.abc --abc -q x -o q -write-graph q.d/link
ok 'mcl-gpu: the report' one_file g.abc --abc -q x -o q --report ./q
ok 'mcl-gpu: two matrices' one_file g.abc --abc -q x -o X -write-graphx q -write-expanded ./q
ok 'mcl-gpu: a name that is made' not_there g.abc --abc -q x -write-graph ./out.g.abc.I20
ok 'mcl-gpu: one of several inflations' not_there g.abc --abc -q x -I 2,3 -o q -write-graph ./q.I30
ok 'mcl-gpu: the limit' not_there g.abc --abc -q x -o q --write-limit -write-graph ./q-limit
ok 'mcl-gpu: unsplit clusters' not_there g.abc --abc -q x -o q -force-connected y -write-graph ./q-rags
ok 'mcl-gpu: a dump' not_there g.abc --abc -q x -o q -dump ite -write-graph ./ite-2.q
ok 'mcl-gpu: a dump of another number' apart g.abc --abc -q x -o q -dump ite -write-graph ite-7.q
ok 'mcl-gpu: a dump of another kind' apart g.abc --abc -q x -o q -dump ite -write-graph cls-2.q
ok 'mcl-gpu: dumps of two inflations' fails 2 '-dump-stem would give the dumps of several inflations one name' \
    g.abc --abc -q x -I 2,3 -o q -dump ite -dump-stem q
ok 'mcl-gpu: an inflation twice' fails 2 '-I lists inflation 2 twice: name it once' \
    g.abc --abc -q x -I 2,2.0 -o q
ok 'mcl-gpu: two folders' apart g.abc --abc -q x -o q -write-graph q.d/q
ok 'mcl-gpu: /dev/null twice' apart g.abc --abc -q x -o /dev/null -write-graph /dev/null
hard_links() { rm -rf q* && printf 'old\n' >q && ln q q2 && status 0 g.abc --abc -q x -o q -write-graph q2 && ! cmp -s q q2; }
ok 'mcl-gpu: hard links are two files' hard_links
shares_stdout() { # as with mcl: one after another
    status 0 g.abc --abc -q x -o - -write-graph - && cp run.out both && status 0 g.abc --abc -q x -o X -write-graph Y &&
        cat Y X | cmp - both && status 0 g.abc --abc -q x -o /dev/stdout -write-graph - && cmp run.out both
}
ok 'mcl-gpu: matrices and clusters on standard output' shares_stdout
redirected() { ! "$tool" g.abc --abc -q x -o - -write-graph q.f >q.f 2>run.err && one_line 'two outputs'; }
ok 'mcl-gpu: the file that standard output is' redirected
use contract
edges=(g.abc pairs --to abc)
ok 'contract: figures' one_file "${edges[@]}" -o q --node-output ./q
ok 'contract: the report' one_file "${edges[@]}" -o X --node-output q --report "$PWD/q"
ok 'contract: names' not_there g.abc pairs -o q.mtx --names --report ./q.mtx.tab
ok 'contract: maps' not_there g.abc --repeat matching --levels 2 -o q.mtx --report ./q.mtx.level2.map
ok 'contract: standard output twice' fails 2 'two outputs would be written to "-"' "${edges[@]}" -o - --report -
ok 'contract: standard output by two names' eval \
    '"$tool" "${edges[@]}" -o - --report /dev/stdout 2>run.err | cat >run.out; one_line "two outputs" && [ ! -s run.out ]'
pipe_twice() { # without the check a run waits for a reader
    rm -f pipe && mkfifo pipe || return 1
    timeout 10 "$tool" "${edges[@]}" -o pipe --report ./pipe 2>run.err
    [ $? -eq 2 ] && one_line 'two outputs would be written to'
}
ok 'contract: a pipe twice' pipe_twice
ok 'contract: /dev/null twice' apart "${edges[@]}" -o /dev/null --report /dev/null
ok 'contract: /dev/null and standard output' eval '"$tool" "${edges[@]}" -o - --report /dev/null >/dev/null 2>run.err'
use gnn
ok 'gnn: model and report' one_file train d "${split[@]}" --save q --report ./q
ok 'gnn: plot and report' not_there train d "${split[@]}" --plot q.here/q --report q
ok 'gnn: standard output twice' fails 2 'two outputs' train d "${split[@]}" --save - --report -

# ---- results of several files ---------------------------------------------------------------------------

# one_in_the_way FOLDER ARGUMENTS...: while the last output waits for its reader, the name of the first, FOLDER, is
# taken: those between are written, which is said.
one_in_the_way() {
    local process waited=0 taken=$1
    shift
    rm -rf pipe "$taken" N
    mkfifo -m 600 pipe
    "$tool" "$@" >run.out 2>run.err &
    process=$!
    until [ "$(ls -d *.tmp.* 2>/dev/null | wc -l)" -eq 2 ] || [ $waited -eq 600 ]; do
        sleep 0.02
        waited=$((waited + 1))
    done
    mkdir "$taken"
    cat pipe >/dev/null
    wait $process
    [ $? -eq 1 ] && [ -s N ] && [ -z "$(ls -A "$taken")" ] && no_leftovers && rmdir "$taken" &&
        one_line "^${tool##*/}: $taken: .*; nothing was written there; N was written, no other file$"
}
use mcl-gpu
ok 'mcl-gpu names what is written when a rename fails' \
    one_in_the_way X g.abc --abc -q x -o X -write-graph N --report pipe
all_or_none() { # a report that cannot be written in full: neither clusters nor matrices appear
    rm -rf q* && status 1 g.abc --abc -q x "$@" -o q -write-graph q.graph --write-limit --report /dev/full &&
        one_line 'dev/full: No space left' && no_leftovers
}
if [ -w /dev/full ]; then
    ok 'mcl-gpu: clusters, matrices and report, all or none' eval 'all_or_none && ! ls q*'
    first_of_two() { # the first clustering is a result of its own
        all_or_none -I 2,3
        ls q* >listed
        [ "$(tr '\n' ' ' <listed)" = 'q.I20 q.I20-limit q.graph ' ] && one_line '; q.I20-limit, q.graph and q.I20 were written, no other file$'
    }
    ok 'mcl-gpu: the first of two clusterings, and its matrices, stay' first_of_two
else skip 'no /dev/full'; fi
matrices_wait() { # a matrix does not appear before the clusters
    local process waited=0
    rm -rf q* run.err
    "$tool" long.abc --abc -I 1.01 -o q -write-graph q.graph 2>run.err &
    process=$!
    until grep -qsE '^  1 ' run.err || [ $waited -eq 600 ]; do sleep 0.05; waited=$((waited + 1)); done
    kill -s TERM $process
    wait $process
    [ $? -eq 143 ] && ! ls q* && tail -n 1 run.err | grep -q 'signal 15; no file was written$'
}
ok 'mcl-gpu: a matrix waits for the clusters' matrices_wait
pipes_in_turn() { # each is at its end before the next is opened
    rm -f p1 p2 && mkfifo p1 p2 || return 1
    timeout 20 "$tool" g.abc --abc -q x -write-graph p1 -o p2 2>run.err &
    timeout 20 cat p1 >q1 && timeout 20 cat p2 >q2 && wait $! && cmp q1 Y && cmp q2 X
}
ok 'mcl-gpu: a reader that takes one pipe after another' eval \
    'rm -rf X Y; status 0 g.abc --abc -q x -o X -write-graph Y && pipes_in_turn'
use contract
ok 'contract names what is written when a rename fails' \
    one_in_the_way X g.abc pairs -o X --to abc --node-output N --report pipe
use gnn
ok 'gnn names what is written when a rename fails' \
    one_in_the_way P train d "${split[@]}" --epochs 2 --plot P --report N --save pipe

# ---- one failing call after another ----------------------------------------------------------------------

# as_made FILE: a file of the folder t is what a run without failures wrote; a report, which has times, is at its end.
as_made() { cmp -s "t/$1" "made/$1" || { [[ $1 = *.json ]] && tail -n 1 "t/$1" | grep -q '}$'; }; }

# Every call that writes files fails in turn: the run fails with one line and names what it has written, no temporary
# file stays, and every output is as it was or complete. Where what failed no longer mattered, all are complete.
# every_call OUTPUTS ARGUMENTS...
every_call() {
    local outputs=$1 calls call got file
    shift
    rm -rf t made && mkdir t
    FAIL_CALL=0 FAIL_COUNT=count LD_PRELOAD=$PWD/fail_call.so "$tool" "$@" >run.out 2>run.err || { cat run.err; return 1; }
    calls=$(cat count)
    mv t made
    [ "$calls" -ge 5 ] || { echo "only $calls calls"; return 1; }
    for ((call = 1; call <= calls; call++)); do
        rm -rf t && mkdir t
        for file in $outputs; do echo old >"t/$file"; done
        FAIL_CALL=$call LD_PRELOAD=$PWD/fail_call.so "$tool" "$@" >run.out 2>run.err
        got=$?
        no_leftovers t || { echo "call $call of $calls: leftovers"; return 1; }
        [ $got -eq 0 ] || one_line "^${tool##*/}: t/.*: (Input/output error|No space left on device); " ||
            { echo "call $call of $calls: status $got"; return 1; }
        for file in $outputs; do
            if as_made "$file"; then
                [ $got -eq 0 ] || grep -q "t/$file.* written, no other file" run.err ||
                    { echo "call $call of $calls: t/$file is not named"; cat run.err; return 1; }
            else
                [ $got -ne 0 ] && [ "$(cat "t/$file")" = old ] || { echo "call $call of $calls: t/$file"; return 1; }
            fi
        done
    done
}
if ${CC:-cc} -shared -fPIC -o fail_call.so "$root/tests/preload/fail_call.c" -ldl 2>/dev/null; then
    use mcl-gpu
    ok 'every call fails: mcl-gpu' every_call 'q gr q-limit r.json' \
        g.abc --abc -q x -t 1 -o t/q -write-graph t/gr --write-limit --report t/r.json
    ok 'every call fails: mcl-gpu, two inflations' every_call 'q.I20 q.I30' g.abc --abc -q x -t 1 -I 2,3 -o t/q
    use contract
    ok 'every call fails: contract' every_call 'q.mtx q.mtx.tab nodes r.json' \
        g.abc pairs --threads 1 -o t/q.mtx --names --node-output t/nodes --report t/r.json
    ok 'every call fails: contract, compressed' every_call 'q.mtx.gz q.mtx.tab.gz' g.abc pairs -o t/q.mtx.gz --names
    ok 'every call fails: a hierarchy' every_call 'q.mtx q.mtx.level1.map' \
        g.abc --threads 1 --repeat matching --levels 1 -o t/q.mtx
    use gnn
    ok 'every call fails: gnn train' every_call 'm p r.json' \
        train d "${split[@]}" --threads 1 --epochs 2 --save t/m --plot t/p --report t/r.json
    status 0 train d "${split[@]}" --threads 1 --epochs 2 --save model
    ok 'every call fails: gnn predict' every_call 'classes' predict d --threads 1 --load model -o t/classes
    ok 'every call fails: gnn convert' every_call 'graph.npz features.npy labels.npy' convert d t --threads 1
    use sparse-bench
    ok 'every call fails: sparse-bench' every_call 'r.json' spgemm --repeat 1 --peers none m.mtx --json t/r.json
else skip 'no C compiler: every call fails'; fi

# ---- the closing line -----------------------------------------------------------------------------------

closes() { # closes LINE ARGUMENTS...: the last line on stderr
    local line=$1
    shift
    status 0 "$@" && [ "$(tail -n 1 run.err)" = "$line" ] || { tail -n 1 run.err; return 1; }
}
use mcl-gpu
printf '(mclheader\nmcltype matrix\ndimensions 3x3\n)\n(mclmatrix\nbegin\n0 1 $\n1 0 2 $\n2 1 $\n)\n' >g.mci
printf '3 2\n2\n1 3\n2\n' >g.graph
ok 'mcl-gpu: label pairs' closes 'mcl-gpu: read g.abc as label pairs, 5 nodes, 3 edges; wrote 2 clusters to q' g.abc --abc -o q
ok 'mcl-gpu: a name that is made' closes \
    'mcl-gpu: read g.abc as label pairs, 5 nodes, 3 edges; wrote 2 clusters to out.g.abc.I20' g.abc --abc
ok 'mcl-gpu: an mcl matrix' closes 'mcl-gpu: read g.mci as an mcl matrix, 3 nodes, 4 arcs; wrote 1 cluster to q' g.mci -o q
ok 'mcl-gpu: METIS' closes 'mcl-gpu: read g.graph as METIS, 3 nodes, 2 edges; wrote 1 cluster to q' g.graph -o q
ok 'mcl-gpu: counts have commas' eval 'status 0 long.abc --abc -I 6 -L 1 -o q &&
    tail -n 1 run.err | grep -q "^mcl-gpu: read long.abc as label pairs, 3,000 nodes, 60,000 edges; wrote"'
ok 'mcl-gpu: several inflations' closes \
    'mcl-gpu: read g.abc as label pairs, 5 nodes, 3 edges; wrote 2 clusters to q.I14, 2 to q.I20, 2 to q.I40' \
    g.abc --abc -I 1.4,2,4 -o q
ok 'mcl-gpu: standard streams' eval '"$tool" - --abc -o - <g.abc 2>run.err >run.out && [ "$(tail -n 1 run.err)" = \
    "mcl-gpu: read standard input as label pairs, 5 nodes, 3 edges; wrote 2 clusters to standard output" ]'
for quiet in '-q x' '-V all'; do
    ok "mcl-gpu $quiet: nothing" eval "status 0 g.abc --abc -o q $quiet && [ ! -s run.err ]"
done

use sparse-bench
cp m.mtx m2.mtx
bench=(spgemm --repeat 1 --peers none)
ok 'sparse-bench: a report' closes 'sparse-bench: read m.mtx; wrote r.json' "${bench[@]}" m.mtx --json r.json
ok 'sparse-bench: two matrices' closes 'sparse-bench: read m.mtx and 1 more; wrote r.json' \
    "${bench[@]}" m.mtx m2.mtx --json r.json
ok 'sparse-bench without a report: nothing' eval 'status 0 "${bench[@]}" m.mtx && [ ! -s run.err ]'

ok 'no temporary files are left' no_leftovers
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
