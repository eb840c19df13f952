#!/bin/bash
# Whole programs that call mcl, once with the installed mcl and once with mcl-gpu under its name: Roary, proteinortho,
# rcl and OrthoFinder, as far as they are installed. Each runs twice with mcl first: files that differ between these two
# runs are random or hold a date, and are not compared. All others must be the same with mcl-gpu, those that hold the
# clusters must be among them, and mcl-gpu must have run.
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu]
# On Debian: apt-get install mcl roary proteinortho. OrthoFinder is `orthofinder` on the PATH.
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
here=$PWD/tests/clients
. tests/support/cli.sh

# What stands as mcl first on the PATH notes each call, then runs the tool.
mkdir bin input
printf '#!/bin/sh\necho "$@" >>%s/calls\nexec %s "$@"\n' "$work" "$tool" >bin/mcl
chmod +x bin/mcl
export PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 PYTHONHASHSEED=0

# run_client SIDE PATH COMMAND: in a fresh copy of the inputs, whose name is the same each time.
run_client() {
    rm -rf "$1" at
    cp -r input at
    (cd at && PATH=$2 timeout 600 bash -c "$3") >client.log 2>&1 </dev/null || {
        echo "$1 ends with status $?"
        tail -n 5 client.log
        return 1
    }
    mv at "$1"
}

# mcl writes its command line into matrices.
same() { [ -e "$2" ] && cmp -s <(grep -av '^# cline:' "$1") <(grep -av '^# cline:' "$2"); }

same_results() { # same_results COMMAND FILE...
    local command=$1 file
    shift
    : >calls
    : >compared
    run_client theirs "$PATH" "$command" && run_client again "$PATH" "$command" &&
        run_client ours "$work/bin:$PATH" "$command" || return 1
    [ -s calls ] || { echo "mcl was not called"; return 1; }
    (cd theirs && find . -type f) | sort >names
    while read -r file; do
        same "theirs/$file" "again/$file" || continue
        same "theirs/$file" "ours/$file" || { echo "$file differs"; return 1; }
        echo "${file#./}" >>compared
    done <names
    for file; do grep -qx "$file" compared || { echo "$file was not compared"; return 1; }; done
}

client() { # client NAME PROGRAM COMMAND FILE...
    local name=$1 program=$2
    shift 2
    if ! command -v "$program" >/dev/null; then skip "$name: $program is not installed"; return; fi
    ok "$name" same_results "$@"
    echo "$name: $(wc -l <compared) files compared, $(wc -l <calls) calls of mcl"
}

if ! command -v mcl >/dev/null; then
    skip 'mcl is not installed (apt-get install mcl)'
elif ! command -v python3 >/dev/null; then
    skip 'python3 is not installed'
else
    python3 -B "$here/genomes.py" input || exit 1
    # -s: which paralogs belong together is drawn anew in each run of Roary
    client Roary roary 'roary -p 2 -s -i 70 -z *.gff' _uninflated_mcl_groups _inflated_mcl_groups \
        clustered_proteins summary_statistics.txt gene_presence_absence.Rtab
    client proteinortho proteinortho 'proteinortho -mcl -cpus=1 -project=p *.faa' p.proteinortho.tsv
    zcat "$OLDPWD/data/Hu-2007.txt.gz" >input/hu.abc
    client rcl rcl 'mcxload -abc hu.abc --stream-mirror -o hu.mci -write-tab hu.tab &&
        rcl mcl T -p 2 -n hu.mci -I "1.4 2 2.8 4" && rcl setup T -n hu.mci -t hu.tab T/out.* &&
        rcl tree T -p 2 && rcl select T -r "5 20 80"' T/out.hu.mci.I140 T/out.hu.mci.I400 T/rcl.join-order
    client OrthoFinder orthofinder 'mkdir faa && mv *.faa faa && orthofinder -f faa -og -t 2 -a 1 -n one' \
        faa/OrthoFinder/Results_one/Orthogroups/Orthogroups.tsv
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
