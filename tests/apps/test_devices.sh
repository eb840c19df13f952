#!/bin/bash
# mcl-gpu on several devices of one kind against one of them: the same files and the same log.
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
generators=$(realpath "${BUILD:-build}/tests/gen") golden=$PWD/tests/mcl/golden.sh
in=$PWD/tests/golden/in
. tests/support/cli.sh

# ---- networks ----------------------------------------------------------------------------------------------

awk 'BEGIN { for (i = 0; i < 101; i++) print "v" i, "v" (i + 1) % 101, 1 }' >cycle.abc
awk 'BEGIN { for (i = 1; i < 400; i++) { print "hub", "v" i, 1 + i % 7; if (i % 3) print "v" i, "v" i + 1, 2 } }' >hub.abc
printf 'a b 1\n' >pair.abc
printf 'a b 1\nb c 1\nc a 2\nd e 1\ne f 2\nf g 1\n' >seven.abc
: >nothing.abc
cp "$in/p2000.abc" .
"$generators/gen_protein" 7500 60 7 >protein.abc # more than 200,000 entries: nodes are renumbered

"$generators/gen_protein" 20000 60 7 >large.abc

# A log without process ids and times.
mask() { sed -E -e 's/pid [0-9]+/pid N/' -e 's/^( *[0-9]+  \.* *[0-9]+\.[0-9]+) +[0-9.]+ /\1 TIME /' "$1"; }
# same DEVICES ARGUMENTS...: what several devices write is what one of them writes
same() {
    local several=$1 one=${1%%,*} name
    shift
    rm -rf one several
    for name in one several; do
        mkdir $name
        (cd $name && "$tool" "$@" --device "${!name}" 2>log) || { cat $name/log; return 1; }
        mask $name/log >$name/log.masked
        rm $name/log
    done
    diff -r one several
}
# compare DEVICES NETWORK ARGUMENTS...: the same of the clusters, the log and the limit matrix
compare() { ok "$*" same "$1" "../$2" --abc "${@:3}" -o out --write-limit; }

# ---- CPUs --------------------------------------------------------------------------------------------------

for devices in cpu,cpu cpu,cpu,cpu; do
    for network in cycle hub pair seven nothing p2000; do compare $devices $network.abc -te 3; done
    compare $devices protein.abc -te 3 -I 1.6
    compare $devices protein.abc -P 20 -S 10 -R 0 # emptied columns
    compare $devices p2000.abc -p 0.1 -S 0 -R 0
    compare $devices p2000.abc -P 500 -S 30 -R 60 -pct 99
    compare $devices cycle.abc -P 3 -R 0 -I 4
    compare $devices hub.abc -I 1.2 --quality
done
compare cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu seven.abc
ok 'several inflations' same cpu,cpu ../p2000.abc --abc -I 1.4,2,4 -V all
ok 'dumps' same cpu,cpu ../protein.abc --abc -dump ite -dump-interval 0:3 -o out
if [ -n "$(DEVICE=cpu,cpu,cpu bash "$golden" | tee golden.out | grep ' 0 failed')" ]; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    cat golden.out
fi
ok 'a checkpoint of two devices is one of one' eval \
    'status 0 p2000.abc --abc -o x.cls --device cpu,cpu --checkpoint x.saved --checkpoint-every 0 &&
     status 0 p2000.abc --abc -o y.cls --device cpu --resume x.saved && cmp x.cls y.cls'
ok '--fast is refused' eval 'status 2 p2000.abc --abc -o z.cls --device cpu,cpu --fast && grep -q "number of devices" run.err'
for wrong in cpu, ,cpu cpu,cuda cpu,auto cuda:0,cpu cpu:0,cpu:1; do
    ok "--device $wrong is refused" eval "status 2 p2000.abc --abc -o z.cls --device $wrong && [ ! -e z.cls ]"
done

# ---- a run that ends early -----------------------------------------------------------------------------------

ended() { # by a signal while devices work
    "$tool" large.abc --abc -I 1.2 -o none.cls --device cpu,cpu,cpu 2>run.err &
    sleep 1
    kill -TERM $!
    wait $!
    [ $? -eq 143 ] && [ ! -e none.cls ] && no_leftovers
}
ok 'SIGTERM ends all devices' ended

# ---- GPUs --------------------------------------------------------------------------------------------------

if "$tool" p2000.abc --abc -o x.cls --device cuda:0,cuda:0 2>run.err; then
    gpus='cuda:0,cuda:0 cuda:0,cuda:0,cuda:0'
    if "$tool" p2000.abc --abc -o x.cls --device cuda:0,cuda:1 2>run.err; then gpus="$gpus cuda:0,cuda:1 cuda:1,cuda:0"; fi
    for devices in $gpus; do
        for network in cycle hub pair seven nothing p2000; do compare $devices $network.abc; done
        compare $devices protein.abc -I 1.6
        compare $devices protein.abc -P 20 -S 10 -R 0
        compare $devices protein.abc --memory 40M
    done
    # one GPU with less memory than the matrix, which has 13.8 MB after the first iteration
    ok 'a matrix larger than the memory' eval 'status 0 protein.abc --abc -o plenty.cls --device cuda:0 &&
        status 0 protein.abc --abc -o little.cls --device cuda:0 --memory 7M && cmp plenty.cls little.cls'
    follow_advice() { # the message names a --memory; an iteration with a larger matrix may name another
        local size=50K turn
        for turn in 1 2 3 4 5; do
            rm -f told.cls
            run protein.abc --abc -o told.cls --device cuda:0 --memory $size && break
            [ ! -e told.cls ] && size=$(sed -n 's/^mcl-gpu: cuda:0.*: \([0-9]*M\) would do$/\1/p' run.err) && [ "$size" ] ||
                { cat run.err; return 1; }
        done
        [ $turn -gt 1 ] && cmp plenty.cls told.cls
    }
    ok 'what would do' follow_advice
    ok 'cuda:all' eval 'status 0 p2000.abc --abc -o all.cls --device cuda:all &&
        status 0 p2000.abc --abc -o first.cls --device cuda:0 && cmp all.cls first.cls'
else
    ok 'GPUs that are not there are missed' eval \
        'status 1 p2000.abc --abc -o z.cls --device cuda:0,cuda:1 && grep -q "^mcl-gpu: --device cuda:0,cuda:1: " run.err'
    skip 'several GPUs against one'
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
