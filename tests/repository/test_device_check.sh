#!/bin/bash
# What needs no GPU of device_check.sh: shares of a suite are all of its tests, each once, and the script tells runs
# that pass, fail, find something or are stopped apart. Stand-ins for the driver's tool and for compute-sanitizer.
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
suites=$(realpath "${BUILD:-build}")/tests tool=$suites/test_transform
. tests/support/cli.sh

tests_of() { # tests_of NAME: what a run of the suite runs, a line a test
    CK_LOG_FILE_NAME=$1.log run && sed -nE 's/^[^ ]*:P:([^:]*:[^:]*:[^:]*):.*/\1/p' "$1.log" | sort >"$1" && [ -s "$1" ]
}
shares() { # shares N: together they are the suite
    local i
    rm -f share.*
    for ((i = 0; i < $1; i++)); do TEST_SHARE=$i/$1 tests_of "share.$i" || return 1; done
    sort share.? | diff - whole
}
refused() { TEST_SHARE=$1 status 2 && grep -F "TEST_SHARE=$1" run.err; }

ok 'the whole suite' tests_of whole
for count in 1 2 7; do ok "$count shares" shares $count; done
ok 'shares are alike in size' eval '[ $(($(wc -l <share.0) - $(wc -l <share.6))) -le 1 ]'
for share in 2/2 -1/2 0/0 0 1/2x x; do ok "TEST_SHARE=$share" refused "$share"; done

mkdir -p tools build/tests
cat >tools/nvidia-smi <<'X'
#!/bin/sh
echo "stand-in"
X
# Finds in one share, stops in another, lets the rest run.
cat >tools/compute-sanitizer <<'X'
#!/bin/sh
case $2-$TEST_SHARE in
racecheck-3/10) echo "========= Error: Race reported between Write access and Read access" ;;
racecheck-4/10) exec sleep 30 ;;
memcheck-5/10) exit 9 ;;
esac
echo "1 passed, 0 failed, 0 skipped"
X
chmod +x tools/*
: >build/tests/test_spgemm && chmod +x build/tests/test_spgemm
check() { # check STATUS ARGUMENTS...
    local expected=$1
    shift
    env -u TEST_SHARE PATH="$work/tools:$PATH" BUILD="$work/build" SANITIZE_SECONDS=1 "$root/tests/device_check.sh" "$@" \
        >run.out 2>run.err
    [ $? -eq "$expected" ]
}
line() { grep -qE "^$1 +$2" run.out; } # line RUN VERDICT

ok 'findings fail' check 1 --no-build --sanitize
ok 'a run with a finding' line 'test_spgemm shapes 3/10 racecheck' 'FAILED: findings'
ok 'a run that is stopped' line 'test_spgemm shapes 4/10 racecheck' 'stopped after [0-9]+ s, nothing found'
ok 'a run that fails' line 'test_spgemm shapes 5/10 memcheck' 'FAILED with status 9'
ok 'a run that passes' line 'test_spgemm shapes 9/10 synccheck' '1 passed, 0 failed, 0 skipped in'
ok 'all are counted' line '[0-9]+ runs:' '[0-9]+ passed, 2 failed, 1 stopped, 0 left out'
TOOLS=synccheck ok 'other tools pass' check 0 --no-build --sanitize
CHECK_SECONDS=0 ok 'time that is over' check 0 --no-build --sanitize
ok 'what was left out is told' line 'test_spgemm shapes 0/10 racecheck' 'left out: 0 s are over'
SUITES=test_spmm ok 'nothing to run is no success' check 1 --no-build --sanitize
ok 'an option that is none' check 2 --nonsense

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
