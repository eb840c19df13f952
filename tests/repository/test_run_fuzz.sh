#!/bin/bash
# tests/run_fuzz.sh with programs in place of libFuzzer's targets: what passes, and what counts as a finding.
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
. tests/support/cli.sh
export BUILD=$work/build
mkdir -p "$BUILD/bin"

target() { # target NAME COMMANDS: a target that says so
    printf '#!/bin/bash\n%s\n' "$2" >"$BUILD/bin/fuzz_$1"
    chmod +x "$BUILD/bin/fuzz_$1"
}
target good 'echo "stat::number_of_executed_units: 5"'
target bad 'echo "stat::number_of_executed_units: 5"; exit 1'
target cut 'echo "stat::number_of_executed_units: 5"; printf half; exit 1'
target none 'exit 0'

mkfifo silent && exec 8<>silent # an input that never comes
fuzz() { # fuzz STATUS LINE TARGETS [CORES]: the status, and a line of the output
    FUZZ_TARGETS=$3 FUZZ_CORES=${4:-1} FUZZ_SECONDS=1 timeout 60 bash "$root/tests/run_fuzz.sh" <&8 >run.out 2>run.err
    local got=$?
    [ $got -eq "$1" ] && grep -q "^$2" run.out || { echo "status $got"; cat run.out; return 1; }
}
ok 'targets without a finding' fuzz 0 'fuzz_good: 5 inputs, no finding' good
ok 'shares of the cores' fuzz 0 'fuzz_good: 20 inputs, no finding' good 4
ok 'a target that is named twice' fuzz 0 'fuzz_good: 10 inputs, no finding' 'good good'
ok 'a finding' fuzz 1 'fuzz_bad: FINDING after 5 inputs' 'good bad'
ok 'the others go on' grep -q '^fuzz_good: 5 inputs, no finding' run.out
ok 'a finding whose last line is cut' fuzz 1 'fuzz_cut: FINDING after 5 inputs' cut
ok 'a target that ran nothing' fuzz 1 'fuzz_none: FINDING after 0 inputs' none
ok 'a target that is not there' fuzz 1 'fuzz_absent: FINDING after 0 inputs' absent

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
