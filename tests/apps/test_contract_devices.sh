#!/bin/bash
# contract on other devices: --device cuda, and the same bytes from CPU and GPU, and from several devices of a kind as
# from one, for every operation.
#   CONTRACT, MCL_GPU  the tools [$BUILD/bin/contract, $BUILD/bin/mcl-gpu]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${CONTRACT:-${BUILD:-build}/bin/contract}") || exit 1
mcl_gpu=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
in=$PWD/tests/golden/in
. tests/support/cli.sh

printf '%%%%MatrixMarket matrix coordinate integer general\n4 4 5\n1 2 1\n2 3 2\n3 4 4\n4 1 8\n2 2 16\n' >g.mtx
printf '1\n1\n2\n2\n' >halves
ok 'clusters' "$mcl_gpu" "$in/p2000.abc" --abc -I 2 -o c -V all
# Weights are multiples of 2^-23 over some binades; nodes 1 to 40 are hubs. Three groups and 700: rows of all lengths.
awk 'BEGIN { print "%%MatrixMarket matrix coordinate real general"; n = 3000; m = 60000; x = 1
    print n, n, m
    for (i = 0; i < m; i++) {
        for (k = 0; k < 3; k++) { x = (x * 16807) % 2147483647; r[k] = x }
        from = i % 3 ? 1 + int(r[0] / 7) % n : 1 + int(r[0] / 7) % 40
        printf "%d %d %.9g\n", from, 1 + int(r[1] / 7) % n, (1 + r[2] % 8388607) / 8388608 * 2 ^ (r[2] % 9)
    } }' >many.mtx
for groups in 3 700; do
    awk -v groups=$groups 'BEGIN { x = 5; for (i = 0; i < 3000; i++) { x = (x * 16807) % 2147483647
        print 1 + int(x / 7) % groups } }' >$groups.labels
done
devices_agree() { # devices_agree ONE OTHER ARGUMENTS...: the same files from both, the map of each level among them
    local one=$1 other=$2 place
    shift 2
    rm -rf one other
    for place in one other; do
        mkdir $place && status 0 "$@" -o $place/out.tsv --device "${!place}" || return 1
    done
    diff -r one other
}
has_gpu=
if "$tool" g.mtx halves -o cuda.tsv --device cuda 2>run.err; then
    has_gpu=yes
    ok '--device cuda' devices_agree cpu cuda g.mtx halves
else
    ok '--device cuda where there is none' eval \
        'status 1 g.mtx halves -o X --to abc --device cuda && grep -q "^contract: --device cuda: " run.err && [ ! -e X ]'
    idle() { # also where the work is the CPU's, and before the input is read
        for task in '--judge line' '--refine X' '--judge json --report X'; do
            status 1 g.mtx halves $task --device cuda && [ ! -e X ] && [ ! -s run.out ] &&
                grep -q '^contract: --device cuda: ' run.err || return 1
        done
        for devices in cuda:1 cuda:0,cuda:1 cuda:all; do
            status 1 nowhere.mtx halves --judge line --device $devices &&
                grep -q "^contract: --device $devices: " run.err || return 1
        done
    }
    ok 'nor to judge or to refine' idle
fi
on_both() { # on_both NAME ARGUMENTS...: a check where there is a GPU
    local name="$1: both devices write the same bytes"
    shift
    if [ -n "$has_gpu" ]; then ok "$name" devices_agree cpu cuda "$@"; else skip "$name (no GPU)"; fi
}
for operation in sum max min mean count first; do
    for groups in 3 700; do
        on_both "$operation, $groups groups" many.mtx $groups.labels --combine $operation
    done
    on_both "$operation, clusters" "$in/p2000.abc" c --combine $operation --engine fused
done
on_both 'half loops' many.mtx 700.labels --half-loops
on_both 'no loops' many.mtx 3.labels --loops drop
on_both 'loops alone' many.mtx 700.labels --loops only
on_both 'two products' many.mtx 700.labels --engine product
for how in matching two-hop hec lp; do
    on_both "hierarchy by $how" "$in/p2000.abc" --repeat $how --levels 3
    on_both "$how to few nodes" "$in/p2000.abc" --repeat $how --to-nodes 150
done
on_both 'hierarchy of clusters' "$in/p2000.abc" --repeat cluster --levels 2

# ---- several devices of a kind -----------------------------------------------------------------------------------

several_agree() { # several_agree DEVICES: what they write is what one of them writes
    local devices=$1 operation groups
    for operation in sum max min mean count first; do
        for groups in 3 700; do
            ok "$devices: $operation, $groups groups" devices_agree ${devices%%,*} $devices many.mtx $groups.labels \
                --combine $operation
        done
        ok "$devices: $operation, clusters" devices_agree ${devices%%,*} $devices "$in/p2000.abc" c --combine $operation
    done
    ok "$devices: f32" devices_agree ${devices%%,*} $devices many.mtx 700.labels --values f32
    ok "$devices: half loops" devices_agree ${devices%%,*} $devices "$in/p2000.abc" c --half-loops
    ok "$devices: no loops" devices_agree ${devices%%,*} $devices many.mtx 3.labels --loops drop
    ok "$devices: loops alone" devices_agree ${devices%%,*} $devices many.mtx 700.labels --loops only
    ok "$devices: two products" devices_agree ${devices%%,*} $devices many.mtx 700.labels --engine product
    ok "$devices: more devices than groups" devices_agree ${devices%%,*} $devices g.mtx halves
    ok "$devices: two-hop matching" devices_agree ${devices%%,*} $devices "$in/p2000.abc" --repeat two-hop --levels 3
    ok "$devices: clusters again" devices_agree ${devices%%,*} $devices "$in/p2000.abc" --repeat cluster --levels 2
}
several_agree cpu,cpu
several_agree cpu,cpu,cpu
ok 'the report has the devices' eval 'status 0 g.mtx halves -o X.tsv --device cpu,cpu --report report.json &&
    grep -q "\"device\": \"cpu,cpu\"" report.json'
for wrong in cpu, ,cpu cpu,cuda cpu,auto cuda:0,cpu cpu:0,cpu:1; do
    ok "--device $wrong is refused" eval "status 2 g.mtx halves -o Z --device $wrong && [ ! -e Z ]"
done
if [ -n "$has_gpu" ]; then
    several_agree cuda:0,cuda:0
    ok 'cuda:all' devices_agree cuda cuda:all many.mtx 700.labels
else
    skip 'several GPUs against one'
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
