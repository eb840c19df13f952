#!/bin/bash
# contract on both devices: --device cuda, and the same bytes from CPU and GPU for every operation.
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
devices_agree() { # devices_agree ARGUMENTS...: the same files from both, the map of each level among them
    rm -rf cpu cuda
    for device in cpu cuda; do
        mkdir $device && status 0 "$@" -o $device/out.tsv --device $device || return 1
    done
    diff -r cpu cuda
}
has_gpu=
if "$tool" g.mtx halves -o cuda.tsv --device cuda 2>run.err; then
    has_gpu=yes
    ok '--device cuda' devices_agree g.mtx halves
else
    ok '--device cuda where there is none' eval \
        'status 1 g.mtx halves -o X --to abc --device cuda && grep -q "^contract: --device cuda: " run.err && [ ! -e X ]'
    idle() { # also where the work is the CPU's, and before the input is read
        for task in '--judge line' '--refine X' '--judge json --report X'; do
            status 1 g.mtx halves $task --device cuda && [ ! -e X ] && [ ! -s run.out ] &&
                grep -q '^contract: --device cuda: ' run.err || return 1
        done
        status 1 nowhere.mtx halves --judge line --device cuda:1 && grep -q '^contract: --device cuda:1: ' run.err
    }
    ok 'nor to judge or to refine' idle
fi
on_both() { # on_both NAME ARGUMENTS...: a check where there is a GPU
    local name="$1: both devices write the same bytes"
    shift
    if [ -n "$has_gpu" ]; then ok "$name" devices_agree "$@"; else skip "$name (no GPU)"; fi
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

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
