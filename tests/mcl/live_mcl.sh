#!/bin/bash
# Clusters seeded random networks with the installed mcl and with mcl-gpu --exact on one and two threads, and compares
# what they write byte for byte, but for the "# cline:" comment. Every failure comes with the commands that repeat it.
#   MCL_GPU    the tool [$BUILD/bin/mcl-gpu]        MCL  the other one [mcl]
#   LIVE_SEED  added to every seed [0]              LIVE_FULL=1  more seeds and networks up to 20,000 nodes
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
tool=$(realpath "${MCL_GPU:-$build/bin/mcl-gpu}") || exit 1
generators=$(realpath "$build/tests/gen") || exit 1
mcl=${MCL:-mcl}
shift_seed=${LIVE_SEED:-0}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

if ! command -v "$mcl" >/dev/null; then
    echo "skipped: mcl is not installed (apt-get install mcl)"
    skipped=1
    finish
fi
exact=(--exact --device cpu)
[ "$tool" != "$(realpath "$(command -v "$mcl")")" ] || exact=() # mcl against itself: a check of this script

# make GENERATOR KIND... NODES... SEED [native]: writes the network and keeps how it was made.
make_network() {
    local words=("$@") last=$(($# - 1))
    [ "${words[last]}" != native ] || last=$((last - 1))
    words[last]=$((words[last] + shift_seed))
    made="${words[*]}"
    format=--abc
    [ "${words[-1]}" != native ] || format=
    "$generators/${words[0]}" "${words[@]:1}" >"$work/network" 3>/dev/null && return
    echo "$made: no network"
    failed=$((failed + 1))
    return 1
}

same() { [ -f "$1" ] && [ -f "$2" ] && cmp -s <(grep -v '^# cline:' "$1") <(grep -v '^# cline:' "$2"); }

# compare OPTIONS...: the network at hand, with these options, on one thread and on two.
compare() {
    local threads status
    rm -f "$work/theirs"
    (cd "$work" && "$mcl" network $format "$@" -q x -o theirs >/dev/null 2>theirs.log) || {
        echo "mcl itself failed: $made; mcl network $format $*"
        failed=$((failed + 1))
        return
    }
    for threads in 1 2; do
        rm -f "$work/ours"
        (cd "$work" && "$tool" network $format "$@" -te $threads "${exact[@]}" -o ours >/dev/null 2>ours.log)
        status=$?
        if [ $status -eq 0 ] && same "$work/ours" "$work/theirs"; then
            passed=$((passed + 1))
            continue
        fi
        failed=$((failed + 1))
        echo "differs (status $status): $made > network; mcl-gpu network $format $* -te $threads ${exact[*]}"
        tail -n 1 "$work/ours.log"
    done
}

# Each line one set of options.
compare_all() {
    local line
    while read -r line; do
        eval "compare $line"
    done
}

inflations() {
    compare_all <<'END'
-I 2
-I 1.4
-I 4
END
}

pruning() {
    compare_all <<'END'
-scheme 1
-resource 20
-P 1000 -S 50 -R 70
-P 2000 -S 60 -R 200 -pct 95 -I 1.4
-P 500 -S 30 -R 0
-P 100 -S 10 -R 15 -pct 99
-p 0.02 -S 5 -R 6 -I 1.3
-p 0.05 -S 0 -R 0
END
}

interpretation() {
    compare_all <<'END'
-overlap keep -I 1.7
-overlap split -I 2.5
-overlap split -L 4 -resource 30
-overlap cut -I 8
-force-connected y -I 1.5
-force-connected y -overlap keep
-force-connected y -overlap keep -L 2 -sort lex
-force-connected y -sort lex -L 4
-sort lex
-sort none
END
}

process() {
    compare_all <<'END'
-pi 1.3
-pi 0.7 -I 3
-if 1.3
-if 1.3 -discard-loops y -c 2
-if 3 -pi 2.1
-c 0.5
-c 3 -I 1.5
-discard-loops n
-i 1.3 -l 4
-L 3
-sparse 1
-sparse 1000
-I 25
END
}

transforms() {
    compare_all <<'END'
-tf 'gq(2)'
-tf 'lt(3),mul(0.37),add(0.11)'
-tf 'ceil(3),pow(1.7)'
-tf 'log(),abs(),add(0.2)'
-tf 'scale(3.3),exp(1.7)'
-tf '#knn(4)'
-tf '#knnj(3)'
-tf '#ceilnb(5)'
-tf '#selfmax(),#step(1)'
-tf '#ils()'
-tf 'gq(0.2),#mcl(3),mul(2)'
-tf '#mcl(3)' -P 20 -S 5 -R 5
-tf '#arcmax(),#add()'
END
}

# compare_files FILE OPTIONS...: all files that a run writes, of which FILE must be one.
compare_files() {
    local wanted=$1
    shift
    local options=($format -q x -o out "$@")
    rm -rf "$work/a" "$work/b" && mkdir "$work/a" "$work/b"
    if (cd "$work/a" && "$mcl" ../network "${options[@]}" >/dev/null 2>&1) &&
        (cd "$work/b" && "$tool" ../network "${options[@]}" "${exact[@]}" >/dev/null 2>&1) &&
        [ -e "$work/a/$wanted" ] && diff -r -I '^# cline:' "$work/a" "$work/b" >/dev/null; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "files differ: $made > network; mcl-gpu network ${options[*]} ${exact[*]}"
    fi
}

# Every iterand and its clustering, each in a file.
compare_dumps() { compare_files ite-0.out -dump ite,cls -dump-interval all "$@"; }

# All matrices that can be written, in text and in binary.
matrices() {
    local form
    for form in '' --write-binary; do
        compare_dumps $form --write-limit -write-graph graph -write-graphx start -write-expanded expanded "$@"
    done
}

# compare_odd KIND FORMAT OPTIONS...: inputs of odd spelling, as they are read and clustered with --lenient.
compare_odd() {
    local odd kind=$1
    format=$2
    shift 2
    exact+=(--lenient)
    for ((odd = 40 * seed; odd < 40 * seed + 40; odd++)); do
        made="gen_odd $kind $((odd + shift_seed))"
        "$generators/gen_odd" "$kind" $((odd + shift_seed)) >"$work/network"
        compare_files out -write-graph graph "$@"
    done
    unset 'exact[-1]'
}

# The nodes of the native network get the ids 1, 4, 7...
spread_ids() {
    awk '/^dimensions/ { split($2, size, "x") }
         /^\(mclmatrix/ { printf "(mcldoms\n"; for (i = 0; i < size[1]; i++) printf "%d ", 3 * i + 1; print "$\n)" }
         /^[0-9 ]/ { for (i = 1; i < NF; i++) { split($i, part, ":"); sub(/^[0-9]+/, 3 * part[1] + 1, $i) } }
         { print }' "$work/network" >"$work/spread" && mv "$work/spread" "$work/network" && made="$made, ids 1, 4, 7..."
}

# One choice of each.
families=(
    '-I 1.2|-I 1.4|-I 3|-I 6|-I 20|-I 1 -L 6'
    '-P 50|-P 2|-p 0.03|-scheme 1|-skid 2|-resource 5'
    '-S 1|-S 5|-S 20'
    '-R 1|-R 5|-R 20'
    '-pct 0|-pct 50|-pct 99'
    '-pi 0.7|-pi 1.3|-if 2'
    '-c 0.5|-c 2'
    '-discard-loops n'
    '--sum-loops'
    '--degree-adjust|-dae 0.5'
    '-l 3 -i 1.3|-l 30'
    '-L 0|-L 2'
    '-sparse 1|-sparse 100'
    '-tf gq(2)|-tf #knn(4)|-tf #mcl(3),mul(2)|-tf #ceilnb(5),pow(1.5)|-tf add(1),#step(1)'
    '-overlap keep|-overlap split'
    '-force-connected y|-check-connected y'
    '-sort lex|-sort size|-sort none'
    '-write-graph graph|-write-graphx start'
    '-write-expanded expanded'
    '--write-limit'
    '--write-binary'
    '-dump ite,cls|-dump cls -dump-interval all|-dump ite,cls -dump-interval 2:9 -dump-modulo 3'
)

# combinations COUNT: so many draws of options of a third of the families, in any order.
combinations() {
    local count family choices drawn
    RANDOM=$((seed + shift_seed))
    for ((count = 0; count < $1; count++)); do
        drawn=()
        for family in "${families[@]}"; do
            ((RANDOM % 3 == 0)) || continue
            IFS='|' read -ra choices <<<"$family"
            family=${choices[RANDOM % ${#choices[@]}]}
            if ((RANDOM % 2)); then drawn+=($family); else drawn=($family "${drawn[@]}"); fi
        done
        compare_files out "${drawn[@]}"
    done
}

# ---- protein-like networks

seeds='1'
sizes='300 1000 3000'
if [ -n "${LIVE_FULL-}" ]; then
    seeds='1 2 3 4 5 6 7 8'
    sizes='300 1000 3000 10000 20000'
fi
for seed in $seeds; do
    for size in $sizes; do
        make_network gen_protein "$size" 20 "$seed" && inflations
        make_network gen_protein2 "$size" 30 "$seed" && inflations
    done
    if make_network gen_protein2 600 60 "$seed"; then
        compare_dumps
        compare_dumps -I 1.4 -pi 2
        compare_dumps -i 1.3 -l 4 -c 2 -resource 30
        matrices -I 3
        pruning
        interpretation
        process
        compare_all <<'END'
-tf 'gq(50)'
-tf 'gq(60),#knn(10)'
-tf '#ceilnb(15)'
-abc-tf 'gq(40),mul(0.01)'
-abc-tf 'mul(0.005),neglog(10),add(1)'
--abc-neg-log -abc-tf 'mul(-1),ceil(4)'
-tf '#symmcl(4)'
END
    fi

    # ---- awkward graphs: ties, symmetry, no structure, many pieces

    for kind in gnp integer real stars cliques grid rings bipartite islands untidy; do
        for size in 40 400; do
            make_network gen_graph $kind $size "$seed" && inflations
        done
    done
    for kind in gnp integer cliques islands untidy; do
        make_network gen_graph $kind 90 "$seed" && interpretation
    done
    for kind in integer grid; do
        make_network gen_graph $kind 150 "$seed" && process
    done
    make_network gen_graph integer 200 "$seed" && transforms
    if make_network gen_graph real 200 "$seed"; then
        compare_all <<'END'
--abc-neg-log
--abc-neg-log10 -I 4
--abc-neg-log10 -abc-tf 'ceil(2)' -tf '#knn(5)'
-abc-tf 'acos()'
END
    fi
    for kind in dense real integer; do
        make_network gen_graph $kind 250 "$seed" && pruning
    done

    # ---- native matrices

    for kind in integer dense islands; do
        make_network gen_graph $kind 120 "$seed" native && inflations
    done
    if make_network gen_graph directed 150 "$seed" native; then
        inflations
        interpretation
        process
        pruning
        compare_all <<'END'
-tf '#max()'
-tf '#tp(),#knn(6)'
-tf '#symmcl(2)'
-tf '#arcsub(),gq(0.1)'
END
        matrices
        matrices -I 1.3 -overlap keep
        if spread_ids; then
            inflations
            interpretation
            pruning
            matrices
            matrices -I 1.3 -overlap split -tf '#mcl(2)'
        fi
    fi

    # ---- options together

    for kind in integer real stars cliques grid islands untidy; do
        make_network gen_graph $kind 70 "$seed" && combinations 6
    done
    for kind in directed integer; do
        make_network gen_graph $kind 70 "$seed" native && combinations 12
        [ $kind = integer ] || { spread_ids && combinations 12; }
    done

    # ---- odd spelling

    if [ ${#exact[@]} -gt 0 ]; then
        compare_odd abc --abc
        compare_odd abc --abc --abc-neg-log10 -I 4
        compare_odd abc --abc -abc-tf 'gq(1),mul(2)'
        compare_odd lists --sif
        compare_odd lists --etc
        compare_odd lists '--etc --expect-values'
        compare_odd lists '--sif --expect-values' -I 1.4
        compare_odd native ''
    fi

    # ---- clusters that fall apart: the whole ones go to OUT-rags
    if make_network gen_graph gnp 200 "$seed"; then
        compare_files out-rags -I 1.3 -resource 4 -force-connected y
        compare_files out-rags -I 1.3 -resource 4 -force-connected y --write-binary
    fi
    # weights that pre-inflation rounds to 0 connect nothing
    made='a path a b c d of weights 1e-30, 1e-30, 2e-30'
    printf 'a b 1e-30\nb c 1e-30\nc d 2e-30\n' >"$work/network"
    format=--abc
    compare_files out-rags -pi 2 -force-connected y
    compare_files start -if 2 -force-connected y -write-graphx start
    # columns that inflation rounds to 0
    made='a clique 0 1 ... 39 with a tail 39 40 41'
    awk 'BEGIN { for (i = 0; i < 40; i++) for (j = 0; j < i; j++) print i, j; print "39 40\n40 41" }' >"$work/network"
    compare_dumps -I 30 --write-limit
    # where neighbours of neighbours are neighbours, no two in a cluster are so in the input
    make_network gen_graph bipartite 60 "$seed" && compare -tf '#step(1)' -force-connected y
done

finish
