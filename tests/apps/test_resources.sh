#!/bin/bash
# Memory, files, folders and threads that the system refuses: each request of a tool fails, of which a sample is taken. The run then
# fails with one line, or does without and gives the same files; it never crashes, hangs or leaves part of an output. On
# the CPU: CUDA's runtime is part of the programs, and does not survive that its own requests fail. And --memory of gnn and contract.
#   RESOURCE_CALLS=N  requests of each command and kind that fail, in place of 40; 0: all
#   RESOURCE_SEED=N   repeats the sample of a run, which prints it
cd "$(dirname "$0")/../.." || exit 1
root=$PWD bin=$(realpath "${BUILD:-build}/bin") || exit 1
tool=
. tests/support/cli.sh

if ! ${CC:-cc} -shared -fPIC -o fail.so "$root/tests/preload/fail_resource.c" -ldl 2>compiled; then
    skip 'requests that fail: no C compiler, or another C library'
    echo "$passed passed, $failed failed, $skipped skipped"
    exit 0
fi
most=${RESOURCE_CALLS:-40} seed=${RESOURCE_SEED:-$(date +%s)}
echo "RESOURCE_SEED=$seed"

awk 'BEGIN { srand(1); for (i = 0; i < 300; i++) print "n" int(40 * rand()), "n" int(40 * rand()), 1 + int(5 * rand()) }' \
    >g.abc
gzip -kf g.abc
awk '{ for (i = 1; i < 3; i++) if (!seen[$i]++) print $i, "g" length(seen) % 5 }' g.abc >labels
printf 'id,x,y\nn1,2,a\nn2,3,"b"\n' >nodes.csv
awk 'BEGIN { print "%%MatrixMarket matrix coordinate real general"; print 40, 40, 80
    for (i = 1; i <= 40; i++) print i, i, i / 7 "\n" i, i % 40 + 1, 1 }' >m.mtx
gzip -kf m.mtx
mkdir d
for ((i = 0; i < 40; i++)); do j=$(((i + 1) % 40)); echo "$i $j"; echo "$j $i"; done >d/graph.txt
for ((i = 0; i < 40; i++)); do echo "$((i % 2)),$((i % 3))"; done >d/features.csv
for ((i = 0; i < 40; i++)); do echo $((i % 2)); done >d/labels.txt
"$bin/mcl-gpu" g.abc --abc -o old.cls -q x
"$bin/mcl-gpu" g.abc --abc -o x -q x --checkpoint saved --checkpoint-every 0
cp -r d e
for ((i = 0; i < 40; i++)); do [ $((i % 4)) -eq 0 ] && echo test || echo train; done >e/split.txt
"$bin/gnn" train d --split 5,5 --threads 1 --epochs 2 --save model >/dev/null 2>&1

# run KIND CALL COMMAND...: with that request failing
run() {
    rm -rf t && mkdir t
    timeout 60 env $removals FAIL_KIND="$1" FAIL_CALL="$2" FAIL_COUNT="$PWD/count" LD_PRELOAD="$PWD/fail.so" "${@:3}" \
        >run.out 2>run.err
}
# as_made FILE: what a run without failures made, but for the times in a report
removals= # FAIL_REMOVALS=1: what is temporary cannot be removed, and stays
as_made() { [[ $1 = *.json || $1 = *.html ]] || cmp "made/$1" "t/$1"; }
# survives KIND CALL COMMAND...: all outputs are there; or one line says why not, and which are
survives() {
    local name=${3##*/} file got
    run "$@"
    got=$?
    [ -z "$removals" ] || rm -rf t/*.tmp.*
    case $got in
    0) for file in made/*; do [ -e "t/${file#made/}" ] || { echo "request $2: no $file"; return 1; }; done ;;
    1)
        [ "$(grep -c . run.err)" -eq 1 ] && grep -q "^$name: " run.err && no_leftovers t ||
            { echo "request $2 of $1:"; cat run.err; return 1; }
        ;;
    *) echo "request $2 of $1: status $got"; cat run.err; return 1 ;;
    esac
    for file in $(ls -A t); do
        as_made "$file" || { echo "request $2 of $1"; return 1; }
        [ $got -eq 0 ] || grep -q "t/$file.* written, no other file" run.err ||
            { echo "request $2 of $1: $file is not named"; cat run.err; return 1; }
    done
}
# every_request KIND COMMAND...
every_request() {
    local kind=$1 count call step=1
    shift
    run "$kind" 0 "$@" || { cat run.err; return 1; }
    count=$(cat count)
    [[ $kind =~ thread|place|handle ]] || [ "$count" -ge 4 ] || { echo "only $count requests"; return 1; }
    rm -rf made && mv t made
    [ "$most" -eq 0 ] || step=$((count / most + 1))
    for ((call = 1 + seed % step; call <= count; call += step)); do survives "$kind" $call "$@" || return 1; done
}
# refused NAME COMMAND...: memory, then reading, then what is asked about files and folders, then locks, copies of
# descriptors and the like, then threads
refused() {
    local kind
    for kind in memory read place handle thread; do ok "$1, $kind" every_request $kind "$bin/$2" "${@:3}"; done
}
refused 'a clustering' mcl-gpu g.abc --abc -o t/q -q x -te 2 --table t/table --graphml t/graphml --report t/r.json \
    --device cpu
refused 'a report' mcl-gpu g.abc.gz --abc -o t/q -q x -te 2 --report t/r.html --device cpu
removals=FAIL_REMOVALS=1
refused 'where nothing can be removed, a clustering' mcl-gpu g.abc --abc -o t/q -q x -te 2 --table t/table --device cpu
refused 'where nothing can be removed, a quotient' contract g.abc labels -o t/q.mtx --threads 2 --quiet --device cpu
refused 'where nothing can be removed, a conversion' gnn convert d t --threads 1
removals=
refused 'several inflations' mcl-gpu g.abc --abc -I 1.5,2 -o t/q -q x -te 2 --device cpu
refused 'several devices' mcl-gpu g.abc --abc -o t/q -q x --device cpu,cpu
refused 'a resumed run' mcl-gpu g.abc --abc -o t/q -q x --resume saved --device cpu
refused 'a grown network' mcl-gpu g.abc --abc -o t/q -q x --start-from old.cls --start-graph g.abc --device cpu
refused 'a quotient' contract g.abc labels -o t/q.mtx --names --node-output t/nodes --attributes nodes.csv --threads 2 \
    --quiet --device cpu
refused 'a compressed quotient' contract g.abc.gz labels -o t/q.abc.gz --threads 2 --quiet --device cpu
refused 'a hierarchy' contract g.abc -o t/q.mtx --repeat hec --to-nodes 5 --undirected --threads 2 --quiet --device cpu
refused 'a training' gnn train d --split 5,5 --threads 1 --epochs 2 --save t/m --report t/r.json --device cpu
refused 'a prediction' gnn predict d --threads 1 --load model -o t/classes --device cpu
refused 'a conversion' gnn convert d t --threads 1
bench=(--repeat 1 --device cpu --threads 2 --json t/r.json)
refused 'a product' sparse-bench spgemm m.mtx --peers none "${bench[@]}"
refused 'a product with dense matrices' sparse-bench spmm m.mtx --width 4 --peers none "${bench[@]}"
refused 'quotients' sparse-bench contract m.mtx.gz --groups 10 --peers none "${bench[@]}"
refused 'levels of coarsening' sparse-bench coarsen m.mtx --method hec "${bench[@]}"
refused 'layers' sparse-bench gnn e --model gcn --hidden 4 "${bench[@]}"

# ---- gnn within --memory ----------------------------------------------------------------------------------

gnn() { "$bin/gnn" "$@" --quiet --device cpu --threads 2 2>run.err; }
"$bin/gnn" convert generate:rmat:13,8 wide --features 32 --quiet
gnn train wide --split 60%,20% --hidden 64 --layers 5 --epochs 2 --no-normalise --save deep
gnn predict wide --load deep -o whole --embeddings whole.csv
# within SIZE: the classes are those of the whole graph
within() { gnn predict wide --load deep -o part --memory "$1" && cmp whole part || { cat run.err; return 1; }; }
# would_do COMMAND... SIZE: one line says how much would do; prints it
would_do() {
    rm -f X
    gnn "${@:1:$#-1}" --memory "${!#}"
    [ $? -eq 1 ] && [ ! -e X ] && [ "$(grep -c . run.err)" -eq 1 ] &&
        sed -n 's/^gnn: the prediction does not fit --memory ([0-9]* MB): --memory \([0-9]*M\) would do$/\1/p' run.err
}
told() { # the size that is named is above the one that was not enough, and is enough
    local need
    need=$(would_do predict wide --load deep -o X 6M) && [ -n "$need" ] && [ "${need%M}" -gt 6 ] && within "$need"
}
ok 'a prediction in blocks of rows' within 12M
ok 'a prediction of the whole graph' within 100M
ok 'how much a prediction needs' told
near() { # embeddings in blocks: the same but for the last digits
    gnn predict wide --load deep --embeddings part.csv --memory 14M &&
        paste whole.csv part.csv | awk 'NF % 2 { exit 1 } { for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2)
            if (d * d > 1e-10 * (1 + $i * $i)) exit 1 } } END { if (NR != 8192) exit 1 }'
}
ok 'embeddings in blocks of rows' near
too_large() {
    ! gnn train wide --split 60%,20% --hidden 64 --layers 5 --epochs 2 --memory 12M --save X && [ ! -e X ] &&
        grep -q '^gnn: the work on wide does not fit --memory (12 MB): [0-9]* MB or more are needed; --sampler' run.err
}
ok 'a training that does not fit' too_large
ok 'a folder that does not fit' eval '! gnn predict wide --load deep -o X --memory 1M &&
    grep -q "^gnn: wide does not fit --memory (1 MB): [0-9]* MB or more are needed$" run.err'

# ---- contract within --memory -------------------------------------------------------------------------------

awk 'BEGIN { srand(3); for (i = 0; i < 300000; i++) print "n" int(9000 * rand()), "n" int(9000 * rand()), 1 + i % 9 }' >edges.abc
awk '{ print $1 "\n" $2 }' edges.abc | sort -u | awk '{ print $1 "\t" NR % 300 }' >groups.tsv
contract() { "$bin/contract" edges.abc groups.tsv -o "$1" --quiet --device cpu --threads 2 "${@:2}" 2>run.err; }
contract plenty.mtx
refused_memory() { # refused_memory SIZE MB: one line, with more than was given, and no output
    local need
    rm -f X.mtx
    ! contract X.mtx --memory "$1" && [ ! -e X.mtx ] && [ "$(grep -c . run.err)" -eq 1 ] &&
        need=$(sed -n "s/^contract: edges.abc does not fit --memory ($2 MB): \([0-9]*\) MB or more are needed$/\1/p" run.err) &&
        [ "$need" -gt "$2" ] || { cat run.err; return 1; }
}
ok 'a graph that does not fit' refused_memory 2M 2
ok 'nor what is made of it' refused_memory 11M 11
ok 'a graph that fits' eval 'contract enough.mtx --memory 32M && cmp plenty.mtx enough.mtx'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
