#!/bin/bash
# Long runs of mcl-gpu and runs that continue others: --start-from, --checkpoint and --resume, progress, hubs.
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
in=$PWD/tests/golden/in generators=$(realpath "${BUILD:-build}/tests/gen") forge=$PWD/tests/apps/forge_checkpoint.py
. tests/support/cli.sh
command -v python3 >/dev/null || { echo '0 passed, 0 failed, 1 skipped'; exit 0; }

# ---- --start-from ----------------------------------------------------------------------------------------

# A network of 120 components; in `new` some have new nodes, two are joined, one has lost a node, one has another weight.
cat >networks.py <<'END'
import random
random.seed(7)
edges, groups, count = [], [], 0
for size in [random.choice([1, 2, 3, 6, 9, 30]) for _ in range(120)]:
    nodes = [f"n{count + i}" for i in range(size)]
    count += size
    groups.append(nodes)
    for i, a in enumerate(nodes):
        for j, b in enumerate(nodes[:i]):
            if random.random() < (0.8 if i // 6 == j // 6 else 0.1):
                edges.append([a, b, round(random.uniform(1, 99), 2)])
    edges.append([nodes[0], nodes[-1], 1.0])
linked = {name for edge in edges for name in edge[:2]}
large = [[name for name in g if name in linked] for g in groups if len(g) >= 9]
def write(name, edges):
    open(name, "w").write("".join("%s\t%s\t%g\n" % tuple(e) for e in edges))
write("old.abc", edges)
grown = edges + [[f"x{i}", g[i], 20.0] for i, g in enumerate(large[:4])] + [["y1", "y2", 1.0]]
grown += [["z", a, 60.0] for a in large[4] + large[5]]
grown = [e for e in grown if large[6][1] not in e[:2]]
write("grown.abc", grown)
write("changed.abc", [[a, b, w + 50 * (a in large[7])] for a, b, w in grown] + [[a, b, 60.0] for a in large[8] for b in large[9]])
random.shuffle(grown)
write("shuffled.abc", grown)
open("native.mci", "w").write("(mclheader\nmcltype matrix\ndimensions 5x5\n)\n(mclmatrix\nbegin\n0 1 2 $\n1 0 2 $\n2 0 1 $\n3 4 $\n4 3 $\n)\n")
open("native3.mci", "w").write("(mclheader\nmcltype matrix\ndimensions 3x3\n)\n(mclmatrix\nbegin\n0 1 2 $\n1 0 2 $\n2 0 1 $\n)\n")
END
python3 networks.py
"$tool" old.abc --device cpu -o old.cls -q x
for network in grown changed; do "$tool" $network.abc --device cpu -o $network.cls -q x; done
"$tool" grown.abc --device cpu -I 4 -force-connected y -overlap keep -o four.cls -q x
"$tool" old.abc --device cpu -I 4 -force-connected y -overlap keep -o four.old -q x
updated() { # updated EXPECTED NETWORK ARGUMENTS...: the clusters of a run of everything
    local expected=$1 network=$2
    shift 2
    status 0 "$network" --device cpu --start-from "$@" -o inc.cls && cmp inc.cls "$expected"
}
ok 'new nodes: the clusters of a whole run' updated grown.cls grown.abc old.cls
said() { grep -qE -- "$1" run.err || { cat run.err; return 1; }; }
ok 'it says what has changed' said 'old.cls: .* clusters; nodes: 7 new, 1 gone$'
ok 'it says what runs' said ' of [0-9]+ components run again, with [0-9]+ of [0-9,]+ nodes$'
ok 'it says what it assumes' said "edges between old nodes are taken to be as they were, and nodes that are gone .*; --start-graph"
ok 'it counts the changes' said 'clusters: [0-9]+ kept; run again: .*with new nodes.*of new nodes alone'
overlooked() { updated changed.cls changed.abc old.cls; }
ok 'another weight is not seen without the older graph' eval '! overlooked'
ok 'but with it' updated changed.cls changed.abc old.cls --start-graph old.abc
ok 'then nothing is assumed' eval '! said "are taken to be"'
ok 'nothing new, nothing runs' updated old.cls old.abc old.cls --start-graph old.abc
ok 'and it says so' said ' 0 of [0-9]+ components run again'
ok 'options that act on clusters' updated four.cls grown.abc four.old -I 4 -force-connected y -overlap keep
ok 'transforms act on both graphs' eval '"$tool" old.abc -tf "gq(10)" -o t.old -q x; "$tool" changed.abc -tf "gq(10)" -o t.cls -q x; updated t.cls changed.abc t.old --start-graph old.abc -tf "gq(10)"'
checked() { updated grown.cls grown.abc old.cls --check-start --report inc.json && said 'a run of everything finds the same clusters'; }
ok '--check-start compares with a whole run' checked
ok 'the report has the counts' python3 - <<'END'
import json
s = json.load(open("inc.json"))["start_from"]
assert s["new_nodes"] == 7 and s["gone_nodes"] == 1 and s["same_as_full_run"] and s["kept"] > 0 and s["merged"] > 0
assert 0 < s["nodes_run"] and s["components_run"] < s["components"]
END
wrong() { # pairs of nodes as clusters: --check-start finds out
    printf 'n0\n' >wrong.cls && sed 's/\t/\n/' old.cls >>wrong.cls && status 0 old.abc --start-from wrong.cls --check-start -o w -V all &&
        grep -qE 'a run of everything differs: [0-9]+ clusters, not [0-9]+; [0-9]+ nodes to move' run.err
}
ok '--check-start says what differs' wrong
same_partition() {
    status 0 shuffled.abc --device cpu --start-from old.cls -o s.inc -V all && status 0 shuffled.abc --device cpu -o s.cls -V all && cmp s.inc s.cls
}
ok 'nodes in another order' same_partition
ok 'attractors of what did not run are not known' eval 'status 0 grown.abc --start-from old.cls -o w --table t.tsv -V all && cut -f 5 t.tsv | grep -qx NA && cut -f 5 t.tsv | grep -qx 1'
ok 'quality is of the whole network' eval 'status 0 grown.abc --start-from old.cls -o w --quality -V all && cp run.err a && status 0 grown.abc -o w --quality -V all && cmp a run.err'
ok 'matrices: clusters by number' eval '"$tool" native3.mci -o n.old -q x; "$tool" native.mci -o n.cls -q x; status 0 native.mci --start-from n.old -o n.inc && cmp <(grep -v "^#" n.cls) <(grep -v "^#" n.inc)'
printf '(mclheader\nmcltype matrix\ndimensions 5x5\n)\n(mclmatrix\nbegin\n0 1 $\n1 2 $\n2 0 $\n3 4 $\n4 3 $\n)\n' >loopless.mci
"$tool" loopless.mci --discard-loops=n -o loopless.cls -q x 2>/dev/null
printf '(mclheader\nmcltype matrix\ndimensions 5x1\n)\n(mclmatrix\nbegin\n0 3 4 $\n)\n' >loopless.old
garbage() { status 0 loopless.mci --discard-loops=n --start-from loopless.old -o g && cmp <(grep -v '^#' g) <(grep -v '^#' loopless.cls); }
ok 'nodes without an attractor make everything run' garbage
refused() { # refused STATUS PATTERN ARGUMENTS...
    local expected=$1 pattern=$2
    shift 2
    status "$expected" "$@" -V all && [ "$(wc -l <run.err)" -eq 1 ] && grep -qE -- "^mcl-gpu: $pattern" run.err || { cat run.err; return 1; }
}
printf 'q\tr\n' >part.cls
ok 'edges in place of clusters' eval 'status 0 grown.abc --start-from old.abc -o w && grep -q "most of what old.abc lists is not in grown.abc; is it a file of clusters?" run.err'
ok 'clusters of another network' refused 1 'part.cls: none of its 2 nodes is in grown.abc' grown.abc --start-from part.cls -o w
ok 'numbers for a network of names' refused 1 'n.old: its clusters have numbers, grown.abc has names' grown.abc --start-from n.old -o w
ok 'no such clusters' refused 1 'missing.cls: ' grown.abc --start-from missing.cls -o w
ok 'over the older clusters' refused 2 '.*old.cls.* is an input' grown.abc --start-from old.cls -o old.cls
for wrong in '-I 2,4' '-sort none' '-dump ite' '--write-limit' '-check-connected y'; do
    ok "with $wrong" refused 2 '--start-from ' grown.abc --start-from old.cls $wrong -o w
done
ok '--start-graph alone' refused 2 '--start-graph goes with --start-from' grown.abc --start-graph old.abc -o w
ok '--check-start alone' refused 2 '--check-start goes with --start-from' grown.abc --check-start -o w
# ---- a folder ------------------------------------------------------------------------------------------------

mkdir pairs
split -n l/3 --additional-suffix=.abc "$in/p2000.abc" pairs/part-
gzip pairs/part-ab.abc
of_files() {
    status 0 "$in/p2000.abc" --abc -o file.cls && status 0 pairs --abc -o pairs.cls && cmp file.cls pairs.cls &&
        status 0 pairs/ --abc && cmp file.cls out.pairs.I20
}
ok 'the files of a folder are one network' of_files
in_folder() { # in_folder OPTIONS...: an output in the folder is refused, and its files stay
    cp -r pairs before && refused 2 '.*lies in the folder that is the input' pairs --abc "$@" && diff -r pairs before
    local found=$?
    rm -r before
    return $found
}
for output in '-o pairs/part-aa.abc' '-o pairs/new' '-odir pairs' '-o w --table pairs/part-ac.abc' \
    '-o w --checkpoint pairs/w'; do
    ok "$output" in_folder $output
done
ok 'a dump in the folder' refused 1 'pairs/ite.*this dump would' pairs --abc -dump ite -dump-stem pairs/w -o w
ln -s nothing pairs/link
ok 'a link to nothing in a folder' refused 1 'pairs/link: No such file' pairs --abc -o w
rm pairs/link
cp "$in/cathat.mci" pairs/z.mci
ok 'another format in a folder' refused 1 'pairs/z.mci: .*read as label pairs' pairs -o w
rm pairs/*
ok 'an empty folder' refused 1 'pairs: this folder has no files' pairs --abc -o w

# ---- --checkpoint and --resume -----------------------------------------------------------------------------

network=$in/p2000.abc
"$tool" "$network" --abc --device cpu -o whole.cls --write-limit --report whole.json -q x
interrupted() { # interrupted SIGNAL ITERATION: ends a run after that iteration
    local ended=0 try process line
    # On a busy machine a run may end before the signal comes: then it is run again.
    for ((try = 0; try < 5 && ended == 0; try++)); do
        rm -f c.ckpt cut.cls pipe.err
        mkfifo pipe.err
        env --default-signal=INT "$tool" "$network" --abc --device cpu -o cut.cls --checkpoint c.ckpt \
            --checkpoint-every "${3-600}" 2>pipe.err &
        process=$!
        while IFS= read -r line; do
            echo "$line"
            case $line in " "*"$2 "*" "*) [ "$(echo "$line" | awk '{print $1}')" = "$2" ] && kill "-$1" "$process" ;; esac
        done <pipe.err >run.err
        wait "$process"
        ended=$?
    done
    [ $ended -eq 75 ] && [ ! -e cut.cls ] && [ -s c.ckpt ] || { cat run.err; return 1; }
}
resumed() { # the files of a run that was not interrupted
    status 0 "$network" --abc --device cpu --resume c.ckpt -o again.cls --write-limit --report again.json "$@" &&
        cmp whole.cls again.cls && cmp whole.cls-limit again.cls-limit
}
for signal in TERM INT; do
    ok "SIG$signal leaves a checkpoint" interrupted $signal 2
    ok 'its message names it' said 'c.ckpt was written, no other file'
    ok 'and says how to go on' said 'c.ckpt has iteration [0-9]+; --resume c.ckpt goes on from there'
    ok 'the same bytes after going on' resumed
done
ok 'it says from where' said 'going on after iteration [0-9]+ of c.ckpt'
ok 'with other threads' resumed -te 1
ok 'the report is that of the whole run' python3 - <<'END'
import json
a, b = (json.load(open(n)) for n in ("whole.json", "again.json"))
for run in a["runs"] + b["runs"]:
    for step in run["steps"]:
        for key in list(step):
            if "seconds" in key: del step[key]
for key in ("steps", "jury", "clusters", "iterations", "quality"):
    assert a["runs"][0][key] == b["runs"][0][key], key
END
cp c.ckpt first.ckpt
twice() {
    rm -f again.cls && env --default-signal=INT "$tool" "$network" --abc --device cpu --resume c.ckpt --checkpoint c.ckpt \
        --checkpoint-every 0 -o again.cls -V all && ! cmp -s c.ckpt first.ckpt && resumed
}
ok 'checkpoints of a run that goes on, in the same file' twice
by_iterations() { # the last checkpoint of a whole run is of a multiple of four
    status 0 "$network" --abc --device cpu -o x --checkpoint n.ckpt --checkpoint-iterations 4 &&
        status 0 "$network" --abc --device cpu --resume n.ckpt -o again.cls && cmp whole.cls again.cls &&
        grep -qE 'going on after iteration (4|8|12|16|20|24|28) of n.ckpt' run.err
}
ok 'a checkpoint every four iterations' by_iterations
ok 'options of the output may differ' eval 'status 0 "$network" --abc --device cpu --resume c.ckpt -o x -sort lex --table t -V all'
anew=', or leave --resume out to begin anew$'
for change in '-I 3:-I 2, not 3; give -I 2' '-I 2.0000002:-I 2, not 2.0000002; give -I 2' '-S 500:-S 1100, not 500; give -S 1100' \
    '-scheme 2:-P 10000, not 4000; give -P 10000' '-L 50:-L 10000, not 50; give -L 10000'; do
    ok "another ${change%%:*}" refused 1 "c.ckpt: the checkpoint was made with ${change#*:}$anew" "$network" --abc --device cpu \
        --resume c.ckpt ${change%%:*} -o x
done
for change in '-c 2' '-tf gq(50)' '-pi 1.5' '-discard-loops n'; do
    ok "with $change" refused 1 "c.ckpt: the checkpoint is of another network.*give those$anew" "$network" --abc --device cpu --resume \
        c.ckpt $change -o x
done
ok 'another network' refused 1 "c.ckpt: the checkpoint is of another network.*give those$anew" "$in/line7.abc" --abc --resume c.ckpt -o x
head -c 5000 c.ckpt >cut.ckpt
ok 'a checkpoint that is cut off' refused 1 "cut.ckpt: the checkpoint is cut off.*$anew" "$network" --abc --device cpu --resume cut.ckpt -o x
ok 'one that is damaged' eval 'cp c.ckpt bad.ckpt && printf "\377\377" | dd of=bad.ckpt bs=1 seek=20000 conv=notrunc 2>/dev/null && refused 1 "bad.ckpt: the checkpoint is damaged.*$anew" "$network" --abc --device cpu --resume bad.ckpt -o x'
newer() {
    cp c.ckpt newer.ckpt && printf '99.0.0' | dd of=newer.ckpt bs=1 seek=8 conv=notrunc 2>dd.err &&
        refused 1 "newer.ckpt: a checkpoint of another version of mcl-gpu; go on with that version$anew" "$network" --abc --device cpu \
            --resume newer.ckpt -o x
}
ok 'a checkpoint of another version' newer
forged() { # the numbering names a node twice, and the checksum is right
    "$generators/gen_protein" 7500 60 7 >protein.abc # large enough for a numbering
    status 0 protein.abc --abc --device cpu -L 2 -o x --checkpoint p.ckpt --checkpoint-every 0 &&
        python3 -B "$forge" p.ckpt forged.ckpt order && rm x &&
        refused 1 "forged.ckpt: the checkpoint is damaged.*$anew" protein.abc --abc --device cpu -L 2 --resume forged.ckpt -o x
}
ok 'a forged checkpoint' forged
forged_number() {
    python3 -B "$forge" c.ckpt forged.ckpt "$1" &&
        refused 1 "forged.ckpt: the checkpoint is damaged.*$anew" "$network" --abc --device cpu --resume forged.ckpt -o x
}
for what in inflation mark iterations input value; do ok "a checkpoint whose $what cannot be" forged_number $what; done
ok 'no checkpoint at all' refused 1 "whole.cls: not a checkpoint of mcl-gpu.*$anew" "$network" --abc --resume whole.cls -o x
ok 'no such file' refused 1 "none.ckpt: No such file or directory; give a file that --checkpoint has written$anew" "$network" --abc --resume none.ckpt -o x
ok 'clusters over the checkpoint' refused 2 '.*is an input' "$network" --abc --resume c.ckpt -o c.ckpt
for wrong in '--checkpoint F -I 2,4' '--resume c.ckpt --start-from whole.cls' '--checkpoint -' '--checkpoint-every 3' \
    '--checkpoint-iterations 3' '--checkpoint F --checkpoint-iterations 0' '--resume c.ckpt -dump ite' \
    '--checkpoint F -o F'; do
    ok "wrong: $wrong" refused 2 '.*' "$network" --abc -o w $wrong
done

# ---- hubs and progress -------------------------------------------------------------------------------------

lines() { [ "$(grep -cE -- "$1" run.err)" -ge "$2" ] || { cat run.err; return 1; }; }
plain() { status 0 "$network" --abc --device cpu -o x -V all --progress plain && lines '^mcl-gpu: iteration 1: chaos [0-9.]+, [0-9]+ entries, .*; next about [0-9]+ s; ' 1; }
ok '--progress plain prints progress without a terminal' plain
ok 'up to the last iteration' lines '^mcl-gpu: iteration [0-9]+: chaos 0.0000, ' 1
ok 'and nothing else with -V all' eval '[ "$(grep -c "^mcl-gpu: iteration" run.err)" -eq "$(wc -l <run.err)" ]'
ok 'the clusters do not change' cmp x whole.cls
ok 'a number, as in old scripts' eval 'status 0 "$network" --abc -o x -V all -progress 3 && [ ! -s run.err ]'
ok 'another word' refused 2 '--progress takes auto, plain or none' "$network" --abc -o x --progress bar
terminal() { python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$tool" "$network" --abc --device cpu -o x "$@" | tr '\r' '\n'; }
ok 'on a terminal the line tells what is left' eval 'terminal | grep -qE "iteration [0-9]+: chaos .* about [0-9]+ more, at most about [0-9]+ s"'
ok 'no line with none' eval '! terminal --progress none | grep -q "iteration 1:"'
# A star has columns of all its leaves; five hubs of a network make most of it.
awk 'BEGIN { srand(1); for (i = 0; i < 12000; i++) print "hub", "s" i, rand() }' >star.abc
awk 'BEGIN { srand(2); for (i = 0; i < 12000; i++) { for (h = 0; h < 5; h++) if (rand() < .4) print "h" h, "m" i, rand()
    for (k = 0; k < 4; k++) print "m" i, "m" int(12000 * rand()), rand() } }' >hubs.abc
announced() { # announced FILE NAME ARGUMENTS...: one line names the hub before the first iteration ends
    timeout 20 "$tool" "$1" --abc --device cpu -te 2 -L 0 -o x "${@:3}" 2>run.err >/dev/null
    lines "^mcl-gpu: $2 has [0-9,]+ neighbours: [0-9]+ % of the first expansion .* may take [0-9]+ s on (1 thread|[0-9]+ threads); -R 0 .*#knn\(500\)" 1
}
ok 'a star is announced' announced star.abc hub
ok 'on one thread' eval 'announced star.abc hub -te 1 && grep -q " on 1 thread;" run.err'
ok 'so are hubs' announced hubs.abc 'h[0-4]'
unannounced() { ! announced "$@"; }
ok 'not without recovery' unannounced star.abc hub -R 0 -S 100
ok 'not what has no hubs' unannounced "$network" '.*'

# ---- --memory ------------------------------------------------------------------------------------------------

"$generators/gen_protein" 12000 60 7 >large.abc
"$tool" large.abc --abc --device cpu -te 2 -o large.cls -q x
refused() { # refused MEMORY [DEVICE]: a run with so little fails, in one line; $enough is what the line says would do
    rm -f x
    "$tool" large.abc --abc --device "${2:-cpu}" -te 2 -o x -q x --memory "$1" 2>run.err
    [ $? -eq 1 ] && [ ! -e x ] && lines '^mcl-gpu: .* --memory \([0-9]+ MB\)' 1 &&
        enough=$(sed -n 's/.*: --memory \([0-9]*M\) would do;.*/\1/p' run.err)
}
ok '--memory for reading' refused 2M
ok 'which is less than the run needs' [ -z "$enough" ]
for memory in 32M 40M; do
    ok "--memory $memory" refused $memory
    ok "what would do: $enough" eval 'status 0 large.abc --abc --device cpu -te 2 -o x --memory $enough && cmp x large.cls'
done
ok '--memory of several CPUs' refused 70M cpu,cpu
ok "what would do: $enough" eval 'status 0 large.abc --abc --device cpu,cpu -te 2 -o x --memory $enough && cmp x large.cls'

ok 'nothing half written' no_leftovers

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
