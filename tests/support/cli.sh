# What the scripts that test a command line share: an empty folder to work in, counts, checks. Sourced in the repository's
# root, with the program in $tool.
work=$(mktemp -d) || exit 1
# A signal that comes to a process behind before it has become its program runs this there, too.
trap '[ "$BASHPID" -ne $$ ] || { chmod -R u+w "$work"; rm -rf "$work"; }' EXIT
cd "$work" || exit 1
passed=0 failed=0 skipped=0

ok() { # ok NAME COMMAND...: the command succeeds
    local name=$1
    shift
    if "$@" >check.out 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $name"
        head -n 5 check.out run.err 2>/dev/null
    fi
}
skip() { skipped=$((skipped + 1)); echo "skipped: $1"; }
# heeding SIGNAL COMMAND...: with the signal as a terminal leaves it. What started the tests may ignore it (nohup), and a
# shell ignores SIGINT and SIGQUIT for what it puts behind.
heeding() {
    local signal=$1
    shift
    exec env --default-signal="$signal" "$@"
}
run() { "$tool" "$@" >run.out 2>run.err; } # leaves the status
status() { # status EXPECTED ARGUMENTS...
    local expected=$1 got
    shift
    run "$@"
    got=$?
    [ "$got" -eq "$expected" ] || { echo "status $got, not $expected: $*"; cat run.err; return 1; }
}
no_leftovers() { ! ls -A "${1:-.}" | grep '\.tmp\.'; }
