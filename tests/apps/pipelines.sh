#!/bin/bash
# Command lines that well-known pipelines run, once with the installed mcl and once with mcl-gpu under its name, first
# on the PATH; mcl's companions (mcxload, mcxdump, mcxdeblast) are the installed ones. All files that a line writes,
# its standard output and its exit status must be the same, but for "# cline:" comments and logs. A line marked
# "silent" must leave standard error empty: these pipelines show whatever appears there as a warning.
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu]
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
tool=$(realpath "${MCL_GPU:-$build/bin/mcl-gpu}") || exit 1
generators=$(realpath "$build/tests/gen") || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

if ! command -v mcl >/dev/null || ! command -v mcxload >/dev/null; then
    echo "skipped: mcl is not installed (apt-get install mcl)"
    echo "0 passed, 0 failed, 1 skipped"
    exit
fi

mkdir "$work/bin" "$work/input"
ln -s "$tool" "$work/bin/mcl"

# ---- inputs: a network of 150 proteins in the spellings of the pipelines

make_inputs() {
    cd "$work/input" || exit 1
    "$generators/gen_protein2" 150 20 7 >edges.abc 3>/dev/null || exit 1
    awk -F'\t' '{ print $1 "\t" $2 "\t" $3; print $2 "\t" $1 "\t" $3 }' edges.abc |
        sort -t"$(printf '\t')" -k1,1 -k3,3gr -k2,2 >arcs.abc

    # BLAST tables: with comments (-m 9), every query hits itself first
    awk -F'\t' -v OFS='\t' '
        $1 != query {
            query = $1
            print "# BLASTP 2.2.26 [Sep-21-2011]\n# Query: " query "\n# Database: all.fa"
            print "# Fields: Query id, Subject id, % identity, alignment length, mismatches, gap openings, " \
                "q. start, q. end, s. start, s. end, e-value, bit score"
            print query, query, "100.00", 200, 0, 0, 1, 200, 1, 200, "0.0", "400"
        }
        { printf "%s\t%s\t%.2f\t150\t90\t0\t1\t150\t3\t152\t%.0e\t%.1f\n", $1, $2, 30 + $3 / 3, 10 ^ (-$3), 2 * $3 }
    ' arcs.abc >all.blast

    # similarities below 1 and E-values
    awk -F'\t' '{ printf "%s\t%s\t%.3f\n", $1, $2, $3 / 200 }' edges.abc >fraction.abc
    awk -F'\t' '{ printf "%s\t%s\t%.2e\n", $1, $2, 10 ^ (-$3) }' edges.abc >evalues.abc
    awk -F'\t' '{ print $1 "\tpp\t" $2 }' edges.abc >edges.sif

    # native matrices: of OrthoFinder, of OrthoMCL's kin, of get_homologues (ids from 1)
    native 0 '' >OrthoFinder_graph.txt
    { native 0 '   '; echo; } >all_ortho.mtx
    native 1 '  ' >ids_from_one.mtx
    cd "$OLDPWD" || exit 1
}

# native FIRST_ID BLANKS: the network as a matrix in mcl's format.
native() {
    awk -F'\t' -v first="$1" -v blanks="$2" '
        ($1, $2) in seen || ($2, $1) in seen { next }
        { seen[$1, $2] = 1 }
        !($1 in id) { id[$1] = n + first; n++ }
        !($2 in id) { id[$2] = n + first; n++ }
        { row[id[$1]] = row[id[$1]] sprintf("%d:%.3f ", id[$2], $3 / 100)
          row[id[$2]] = row[id[$2]] sprintf("%d:%.3f ", id[$1], $3 / 100) }
        END {
            printf "(mclheader\nmcltype matrix\ndimensions %dx%d\n)\n", n, n
            if (first) {
                printf "(mcldoms\n"
                for (i = first; i < n + first; i++) printf "%d ", i
                printf "$\n)\n"
            }
            printf "\n(mclmatrix\nbegin\n\n"
            for (i = first; i < n + first; i++) printf "%d %s%s$\n", i, blanks, row[i]
            printf ")\n"
        }' edges.abc
}

# ---- running and comparing

# run_line SIDE PATH LINE: in a fresh copy of the inputs.
run_line() {
    rm -rf "${work:?}/$1"
    cp -r "$work/input" "$work/$1"
    (cd "$work/$1" && PATH=$2 bash -c "$3") >"$work/$1.stdout" 2>"$work/$1.stderr"
    echo $? >"$work/$1.status"
}

same() { cmp -s <(grep -av '^# cline:' "$1") <(grep -av '^# cline:' "$2"); }

# Prints what is wrong with our side, nothing if all is well.
complaints() { # complaints MODE
    local file
    same "$work/theirs.status" "$work/ours.status" ||
        echo "status $(cat "$work/ours.status") instead of $(cat "$work/theirs.status")"
    same "$work/theirs.stdout" "$work/ours.stdout" || echo "standard output differs"
    [ "$1" != silent ] || [ ! -s "$work/ours.stderr" ] || echo "standard error: $(head -n 1 "$work/ours.stderr")"
    for file in "$work"/theirs/* "$work"/ours/*; do
        file=${file##*/}
        case $file in *.log) continue ;; esac
        [ -e "$work/ours/$file" ] || { echo "$file was not written"; continue; }
        [ -e "$work/theirs/$file" ] || { echo "$file should not be there"; continue; }
        same "$work/theirs/$file" "$work/ours/$file" || echo "$file differs"
    done | sort -u
}

# pipeline NAME MODE LINE; modes: silent (standard error stays empty), free (it may hold the log).
pipeline() {
    local found
    run_line theirs "$PATH" "$3"
    run_line ours "$work/bin:$PATH" "$3"
    found=$(complaints "$2")
    if [ -z "$found" ] && [ "$(cat "$work/theirs.status")" = 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    printf '%s: %s\n' "$1" "$3"
    printf '%s\n' "${found:-the installed mcl fails}" | sed 's/^/    /'
    tail -n 2 "$work/ours.stderr" | sed 's/^/    stderr: /'
}

# The start-up test of OrthoFinder: the help appears, with status 0.
help_appears() {
    if PATH=$work/bin:$PATH mcl -h 2>/dev/null | grep -q . && PATH=$work/bin:$PATH mcl -h >/dev/null 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "mcl -h prints no help or fails"
    fi
}

make_inputs

# ---- the lines

help_appears
pipeline OrthoFinder silent \
    'mcl OrthoFinder_graph.txt -I 1.5 -o clusters_OrthoFinder_I1.5.txt -te 2 -V all'
pipeline "OrthoFinder, binary" free \
    'mcx convert OrthoFinder_graph.txt g.mcx 2>> x.log; mcl g.mcx -I 1.5 -te 2 -o clusters_OrthoFinder_I1.5.txt'
pipeline OrthoMCL free 'mcl edges.abc --abc -I 1.5 -o mclOutput'
pipeline "OrthoMCL, connected" free 'mcl edges.abc --abc -I 1.5 -o mclOutput -force-connected y'
pipeline "OrthoMCL 1.4" free 'mcl all_ortho.mtx -I 1.5 -o all_ortho.mcl'
pipeline Roary silent \
    'mcxdeblast -m9 --score=r --line-mode=abc all.blast 2> /dev/null | mcl - --abc -I 1.5 -o out > /dev/null 2>&1'
pipeline PIRATE silent \
    'mcxdeblast --line-mode=abc --m9 --score=r all.blast 2>> p.log |
         mcl - --abc -te 2 -I 1.5 -o p.mcl_50.clusters 2>> p.log'
pipeline "PIRATE, one thread" silent \
    'mcxdeblast --line-mode=abc --m9 --score=b all.blast 2>> p.log | mcl - --abc -te 1 -I 4 -o p.clusters 2>> p.log'
pipeline get_homologues silent 'mcl all_ortho.mtx -I 1.5 -o all_ortho.mcl -V all -te 2 2>&1'
pipeline "get_homologues, ids from 1" silent 'mcl ids_from_one.mtx -I 1.5 -o all_ortho.mcl -V all -te 2 2>&1'
pipeline "anvi'o" free 'mcl fraction.abc --abc -I 2.0 -o mcl-clusters.txt -te 2'
pipeline panX silent 'mcl edges.abc --abc -o cluster.output -I 1.5 -te 2 > mcl.log 2>&1'
pipeline MGV free 'mcl fraction.abc -te 8 -I 2.0 --abc -o genus_clusters.txt'
pipeline "MGV, families" free 'mcl fraction.abc -te 8 -I 1.2 --abc -o family_clusters.txt'
pipeline SwiftOrtho free 'mcl edges.abc --abc -I 1.5 -o input.fsa.sc.orth.mcl -te 4'
pipeline "Yang and Smith" free "mcl edges.abc --abc -te 5 -tf 'gq(5)' -I 1.4 -o hit-frac0.4_I1.4_e5"
for bar in 10 40 90; do
    pipeline "RD-MCL, $bar" free "mcl edges.abc --abc -te 2 -tf 'gq($bar)' -I 1.$bar -o output.groups"
done
pipeline CHERRY free \
    "mcxload -abc evalues.abc --stream-mirror --stream-neg-log10 -stream-tf 'ceil(200)' -o x.mci \
         -write-tab x.tab 2>> x.log
     mcl x.mci -I 2.0 -use-tab x.tab -o x_mcl20.clusters"
pipeline "default output name" free \
    'mcxload -abc edges.abc --stream-mirror -write-tab seq.tab -o seq.mci 2>> x.log
     mcl seq.mci -te 30 -I 2 -use-tab seq.tab'
pipeline "mcxload, mcl, mcxdump" free \
    'mcxload -abc edges.abc --stream-mirror -write-tab n.tab -o n.mci 2>> x.log && mcl n.mci -I 2 &&
         mcxdump -icl out.n.mci.I20 -tabr n.tab -o n.dump 2>> x.log'
pipeline "mcxload to binary, mcl, mcxdump" free \
    'mcxload -abc edges.abc --stream-mirror -write-tab n.tab --write-binary -o n.mcb 2>> x.log
     mcl n.mcb -I 1.4 -o n.cls && mcxdump -icl n.cls -tabr n.tab 2>> x.log'
pipeline "clm on our clusters" free \
    'mcl OrthoFinder_graph.txt -I 2 -o a.cls && mcl OrthoFinder_graph.txt -I 4 -o b.cls
     clm dist a.cls b.cls 2>> x.log; clm info OrthoFinder_graph.txt a.cls b.cls 2>> x.log'
command -v rcl >/dev/null && pipeline RCL free \
    'rcl mcl T -p 2 -n OrthoFinder_graph.txt -I "1.4 2 4" >x.log 2>&1 && mv T/out.* . && rm -r T'
pipeline "correlation network" free \
    "awk '{ print \$1, \$2, NR % 5 == 0 ? -\$3 : \$3 }' fraction.abc | mcxload -abc - --stream-mirror -write-tab n.tab \
         -o n.mci 2>> x.log; mcl n.mci -tf 'gq(0.2),add(-0.1)' -I 2 -use-tab n.tab -o n.cls"
pipeline "correlation network, labels" free \
    "awk '{ print \$1, \$2, NR % 5 == 0 ? -\$3 : \$3 }' fraction.abc | mcl - --abc -tf 'gq(0.2)' -I 2 -o n.cls"
pipeline Ensembl free "mcl edges.abc --abc -I 2.1 -tf 'gq(50)' -scheme 6 -o families"
pipeline "Ensembl, old" free 'mcl edges.abc --abc -I 2.1 -P 10000 -S 1000 -R 1260 -pct 90 -o families'
pipeline "R wrapper" free "mcl OrthoFinder_graph.txt -I 2 -tf 'gq(0.2)' -o out"
pipeline PanTools free 'mcl edges.abc --abc -I 5 -o group'
pipeline RSAT free 'GRAPH_FILE=edges.abc; mcl ${GRAPH_FILE} --abc -I 1.8 -o clusters.mic'
pipeline MR-MCL free 'mcl edges.abc --abc -te 2 -I 2 -S 60 -R 80 -o clusters'
pipeline "HipMCL's baseline" free \
    'mcl edges.abc --abc -te 2 --partition-selection -I 2 -p 0.0001 -S 1100 -R 1400 -pct 90 -o clusters'
pipeline "Galaxy, abc" free "mcl edges.abc --abc -tf 'mul(2)' -I 4.0 --discard-loops=n -o clusters"
pipeline "Galaxy, sif" free 'mcl edges.sif --sif -I 4.0 -o clusters'
pipeline "Galaxy, as its wrapper writes it" free \
    "mcl edges.abc -I 4.0 --abc -V all -te 1 --sum-loops --discard-loops=y -v pruning -c 2 \
         -abc-tf 'mul(-1),add(200)' -o clusters"
pipeline cMonkey free 'mcl edges.abc -o out --abc -I 4.5 -v all -te 3 -S 200000 -scheme 7 --analyze=y -pi 4.0'
pipeline "statistics from the clusters" silent 'mcl edges.abc --abc -I 1.4 --analyze=y -V all -o out'
pipeline "long-species" silent 'mcl OrthoFinder_graph.txt -o clusters -I 2 -te 20 -V all'
pipeline "standard output" silent 'mcl edges.abc --abc -I 2 -o - -V all'
pipeline "into a filter" free 'mcl - --abc -I 2 -o - < edges.abc 2> /dev/null | awk "{ print NF }"'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
