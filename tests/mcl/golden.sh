#!/bin/bash
# Runs the command lines of golden/cases.txt and compares what they write with what mcl 22-282 wrote, byte for byte
# but for the "# cline:" comment; of the log, process ids and times are masked. A case is NAME<TAB>ARGUMENTS, @
# standing for the output file. Inputs that may not be shipped are looked for in $MCL_GOLDEN_INPUTS.
#   DEVICE   CPU, or several separated by commas [cpu]
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu]        $1  only cases whose name matches this pattern
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
others=${MCL_GOLDEN_INPUTS:-../shared/data/mcl-golden/in}
golden=$PWD/tests/golden
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# The folder that holds the input of a case; nothing when there is none.
input_folder() {
    local word
    for word in $1; do
        for folder in "$golden/in" "$others"; do
            if [ -f "$folder/$word" ]; then realpath "$folder"; return; fi
        done
    done
}

# Leaves out what differs between two runs of mcl itself (with threads also the last figure, columns done densely),
# our closing line, the forecast of a slow machine, and lines about steps that mcl takes and we need not: reading the
# matrix a second time for -force-connected.
mask_log() {
    sed -E -e 's/^\[mcl\] pid [0-9N]+/[mcl] pid N/' -e "s#$work/#../out/#g" \
        -e 's/^( *[0-9]+  \.* *[0-9]+\.[0-9]+) +[0-9.]+ /\1 TIME /' \
        -e '/^ *[0-9]+   /s/ +[0-9]+$/ DENSE/' \
        -e '/^mcl-gpu: (read .*; wrote|the next expansion makes |[0-9]+ processes received|the (slowest|fastest) process,|a process on average )/d' \
        -e '/^\[mcl\] (re-reading|cached) matrix|^\[mclAlgorithmStreamIn\]|^\.*\[mcl\] new tab/d' "$1"
}

# Does all that NAME wrote look as it should? Says what does not.
check() { # check NAME STATUS
    local name=$1 file made expected
    if [ "$2" -ne 0 ]; then echo "$name: status $2: $(tail -n 1 "$work/$name.stderr")"; return 1; fi
    for file in "$golden/out/$name".cls*; do
        [ -f "$file" ] || continue
        made=$work/${file##*/}
        [ -f "$made" ] || { echo "$name: ${file##*/} was not written"; return 1; }
        cmp -s <(grep -v '^# cline:' "$made") <(grep -v '^# cline:' "$file") ||
            { echo "$name: ${file##*/} differs"; return 1; }
    done
    expected=$golden/out/$name.stdout
    [ -f "$expected" ] || expected=/dev/null
    case $name in
    version) grep -q "^$(head -n 1 "$expected")" "$work/$name.stdout" || { echo "$name: not named"; return 1; } ;;
    *) cmp -s "$work/$name.stdout" "$expected" || { echo "$name: standard output differs"; return 1; } ;;
    esac
    case $name in
    edge-* | empty) ;; # mcl warns of negative columns, and prints figures of no column
    partition-selection) ;; # mcl selects in another way, with other chaos and the same clusters
    *) diff <(mask_log "$work/$name.stderr") <(mask_log "$golden/out/$name.stderr") >"$work/difference" ||
        { echo "$name: the log differs:"; head -n 6 "$work/difference"; return 1; } ;;
    esac
}

while IFS=$'\t' read -r name arguments; do
    case $name in ${1:-*}) ;; *) continue ;; esac
    extra="--exact --device ${DEVICE:-cpu}"
    case $name in edge-*) extra="$extra --lenient" ;; show-schemes | version) extra= ;; esac
    folder=$(input_folder "$arguments")
    case $name in show-schemes | version) folder=$work ;; esac
    if [ -z "$folder" ]; then skipped=$((skipped + 1)); continue; fi
    (cd "$folder" && eval "\"$tool\" ${arguments//@/$work/$name.cls} $extra") \
        >"$work/$name.stdout" 2>"$work/$name.stderr"
    if check "$name" $?; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done <tests/golden/cases.txt

[ "$skipped" -eq 0 ] || echo "skipped: inputs that are not shipped (set MCL_GOLDEN_INPUTS)"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
