#!/bin/bash
# contract --through and --label-output: labels of a coarse graph carried back, and forms of labels.
#   CONTRACT  the tool [$BUILD/bin/contract]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${CONTRACT:-${BUILD:-build}/bin/contract}") || exit 1
in=$PWD/tests/golden/in
. tests/support/cli.sh

awk 'BEGIN { n = 30; print n * n, 2 * n * (n - 1); for (i = 0; i < n; i++) for (j = 0; j < n; j++) { k = i * n + j + 1
    line = (i ? k - n : "") " " (j ? k - 1 : "") " " (j < n - 1 ? k + 1 : "") " " (i < n - 1 ? k + n : "")
    gsub(/ +/, " ", line); gsub(/^ | $/, "", line); print line } }' >grid.graph
"$tool" grid.graph -o coarse.graph --repeat two-hop --to-nodes 100 --loops drop --quiet || exit 1
awk 'BEGIN { for (i = 1; i <= 100; i++) print (i * 7 % 3) }' >coarse.parts
awk 'NR == FNR { part[NR] = $1; next } { print part[$2] }' coarse.parts coarse.graph.total.map >expected

carried() { # carried GRAPH LABELS MAP OPTIONS...: the expected label of each node
    status 0 "$1" "$2" --through "$3" --label-output fine "${@:4}" && cmp fine expected
}
ok 'a list' carried grid.graph coarse.parts coarse.graph.total.map
ok 'what was written is said' grep -q '; wrote the labels of 3 groups to fine$' run.err
nl -w 1 coarse.parts | shuf --random-source=grid.graph >pairs
ok 'pairs' carried grid.graph pairs coarse.graph.total.map --labels pairs
gzip -c coarse.graph.total.map >packed.gz
ok 'a compressed map' carried grid.graph coarse.parts packed.gz
from_stdin() { status 0 grid.graph - --through packed.gz --label-output fine <coarse.parts && cmp fine expected; }
ok 'labels on standard input' from_stdin
counted_from_0() {
    status 0 grid.graph -o zero.abc --repeat two-hop --to-nodes 100 --node-base 0 && grep -q '	0$' zero.abc.total.map &&
        carried grid.graph coarse.parts zero.abc.total.map --node-base 0 &&
        awk '{ print NR - 1 "\t" $1 }' coarse.parts >pairs0 &&
        carried grid.graph pairs0 zero.abc.total.map --node-base 0 --labels pairs
}
ok 'nodes and groups from 0' counted_from_0
by_level() { # through the maps of two levels, one after another, as through the total map
    cut -f 2 coarse.graph.level4.map | awk 'NR == FNR { p[NR] = $1; next } { print p[$1] }' coarse.parts - >level4 &&
        cut -f 2 coarse.graph.level3.map | awk 'NR == FNR { p[NR] = $1; next } { print p[$1] }' level4 - >level3 &&
        status 0 coarse.graph coarse.parts --label-output X && cmp X coarse.parts &&
        awk 'NR == FNR { p[NR] = $2; next } { print $1 "\t" p[$2] }' coarse.graph.level2.map coarse.graph.level1.map >two.map &&
        status 0 grid.graph level3 --through two.map --label-output X && cmp X expected
}
ok 'through two levels' by_level
others() { # the quotient, the judgement and the report are about the fine graph
    status 0 grid.graph coarse.parts --through coarse.graph.total.map --judge tsv -o a.mtx --node-output a.tsv --report r.json &&
        mv run.out a.out && status 0 grid.graph expected --judge tsv -o b.mtx --node-output b.tsv && cmp run.out a.out &&
        cmp a.mtx b.mtx && cmp a.tsv b.tsv && grep -q '"through": "coarse.graph.total.map"' r.json
}
ok 'other outputs' others
refined() { # in the same call, with the same result
    status 0 grid.graph coarse.parts --through coarse.graph.total.map --refine one && status 0 grid.graph expected --refine two &&
        cmp one two && ! cmp -s one expected
}
ok 'and refined' refined
named() { # nodes and parts with names
    status 0 "$in/p2000.abc" -o q.abc --repeat two-hop --to-nodes 50 && seq 50 | sed 's/.*/&\tpart&/' >q.parts &&
        status 0 "$in/p2000.abc" q.parts --through q.abc.total.map --label-output fine.tsv &&
        sed 's/\t/\tpart/' q.abc.total.map | cmp - fine.tsv
}
ok 'names' named
by_names() { # the groups of the map have names, and labels go by these
    printf '1 a\n2 a\n3 b\n4 b\n' >to.names && printf 'b 7\na 5\n' >by.names && printf '4 3\n2\n1 3\n2 4\n3\n' >path.graph &&
        status 0 path.graph by.names --through to.names --label-output X && [ "$(tr '\n' ' ' <X)" = '5 5 7 7 ' ]
}
ok 'a map to names' by_names
awk '{ print $1, $2, 1 + NR % 7 }' "$in/p2000.abc" >whole.abc
named_hierarchy() { # --names: maps call groups as the graph does, and labels by these names go through them
    status 0 whole.abc -o h.csv --repeat two-hop --to-nodes 50 --names &&
        sed 1d h.csv | cut -d , -f 1,2 | tr , '\n' | sort -u >nodes &&
        cut -f 2 h.csv.total.map | sort -u | cmp - nodes &&
        status 0 whole.abc h.csv.total.map -o again.csv && cmp again.csv h.csv &&
        awk '{ print $1 "\tpart" NR }' nodes >q.parts && status 0 whole.abc q.parts --through h.csv.total.map \
            --label-output fine.tsv &&
        awk 'NR == FNR { part[$1] = $2; next } { print $1 "\t" part[$2] }' q.parts h.csv.total.map | cmp - fine.tsv &&
        cut -f 2 h.csv.level1.map | sort -u >between && cut -f 1 h.csv.level2.map | sort | cmp - between &&
        awk -F '\t' 'FNR == 1 { file++ } { to[file, $1] = $2; if (file == 1) name[FNR] = $1 }
            END { for (i = 1; i in name; i++) {
                at = name[i]; for (k = 1; k <= file; k++) at = to[k, at]; print name[i] "\t" at } }' h.csv.level*.map |
        cmp - h.csv.total.map
}
ok 'a hierarchy of names' named_hierarchy
far_numbers() { # names that are numbers with gaps
    printf '7 2000000001\n2000000001 9\n9 1999999999\n' >far.abc &&
        status 0 far.abc -o h.abc --repeat matching --levels 1 --names &&
        cut -f 2 h.abc.total.map | sort -u | awk '{ print $1, NR }' >far.parts &&
        status 0 far.abc far.parts --through h.abc.total.map --label-output X --labels pairs &&
        awk 'NR == FNR { part[$1] = $2; next } { print $1 "\t" part[$2] }' far.parts h.abc.total.map | cmp - X
}
ok 'numbers as names' far_numbers
tabbed() { # a matrix has numbers, and so have the maps beside it, with or without the names of OUT.tab
    status 0 "$in/p2000.abc" -o h.mtx --repeat two-hop --to-nodes 50 --names && mv h.mtx.total.map names.map &&
        status 0 "$in/p2000.abc" -o h.mtx --repeat two-hop --to-nodes 50 && cmp h.mtx.total.map names.map
}
ok 'a matrix of names' tabbed
left_out() { # nodes that the map leaves out, or whose group has no label, have none
    printf '1 1\n2 1\n3 2\n4 -1\n' >part.map && printf '3\n-1\n' >part.labels &&
        status 1 path.graph part.labels --through part.map --label-output X &&
        grep -q 'part.labels: 2 nodes have no label, such as 3; give --unlabelled' run.err &&
        status 0 path.graph part.labels --through part.map --label-output X --unlabelled drop &&
        [ "$(tr '\n' ' ' <X)" = '3 3 -1 -1 ' ]
}
ok 'nodes without a label' left_out

# ---- forms -----------------------------------------------------------------------------------------------

table() { # with a heading; contract reads it again
    status 0 grid.graph expected --label-output t.csv && awk 'BEGIN { print "node,label" } { print NR "," $1 }' expected |
        cmp - t.csv && status 0 grid.graph t.csv --label-column label --label-output X && cmp X expected &&
        status 0 grid.graph expected --label-output t.csv.gz && gzip -dc t.csv.gz | cmp - t.csv
}
ok 'a table' table
quoted() {
    printf 'source,target\n" a","b,c"\n"b,c",d\n' >q.csv && printf 'node,side\n" a","x,y"\n"b,c",z\nd,z\n' >q.parts &&
        status 0 q.csv q.parts --label-column side --label-output X.csv &&
        [ "$(tr '\n' '|' <X.csv)" = 'node,label|" a","x,y"|"b,c",z|d,z|' ]
}
ok 'a table of names' quoted
wrong() { # wrong STATUS PATTERN ARGUMENTS...
    local code=$1 pattern=$2
    shift 2
    rm -f X*
    status "$code" "$@" && grep -q -- "$pattern" run.err && [ "$(wc -l <run.err)" -eq 1 ] && ! ls X* 2>/dev/null
}
unlined() { # unlined LABEL WHY: labels that lines would not hold as they are, and a table does
    printf 'node,side\n" a",%s\n"b,c",x\nd,y\n' "$1" >q.parts &&
        wrong 1 "X.tsv: a group is called \".*\", which labels cannot hold$2: give .* ends in .csv" q.csv q.parts \
            --label-column side --label-output X.tsv &&
        status 0 q.csv q.parts --label-column side --label-output X.csv &&
        status 0 q.csv q.parts --label-column side --judge tsv && mv run.out judged &&
        status 0 q.csv X.csv --label-column label --judge tsv && cmp run.out judged
}
for label in '" x"' '"x "'; do ok "labels in lines: $label" unlined "$label" ''; done
ok 'labels in lines: a number among names' unlined 7 ' among n[a-z]*'
printf 'a b\nb c\n' >g.abc
printf 'a 1\nb 1\nc 2\n' >g.parts
ok 'an array of nodes without an order' wrong 1 'X.npy: the nodes of g.abc are known by names' g.abc g.parts --label-output X.npy
printf 'x\ny\nx\ny\n' >xy
ok 'an array of names' wrong 1 'X.npy: groups have names' path.graph xy --refine X.npy
for ending in npz mtx graphml.gz json; do
    ok "labels as .$ending" wrong 2 "--label-output writes labels as text.*no .${ending%.gz} " path.graph xy --label-output X.$ending
done
ok 'labels alone' wrong 2 '--through goes with LABELS' grid.graph --repeat two-hop -o X.abc --through coarse.graph.total.map
ok 'of a hierarchy' wrong 2 'OUT.total.map has the groups' grid.graph --repeat two-hop -o X.abc --label-output X
ok 'beside refined labels' wrong 2 'leave --label-output out' grid.graph expected --refine X --label-output X2
ok 'too few labels' wrong 1 'short:99: 99 labels.*(the nodes are the groups of coarse.graph.total.map, by their n.*)' \
    grid.graph short --through coarse.graph.total.map --label-output X < <(head -n 99 coarse.parts >short)
ok 'a map of another graph' wrong 1 'coarse.graph.total.map:5: this is not a node' path.graph xy --through \
    coarse.graph.total.map --label-output X
ok 'names where the map has numbers' wrong 1 'q.parts:1: this is not a node.*groups of names.map, by their numbers)' \
    "$in/p2000.abc" q.parts --through names.map --label-output X
ok 'numbers where it has names' wrong 1 'by.number:1: this is not a node.*groups of h.csv.total.map, by their names)' \
    "$in/p2000.abc" by.number --through h.csv.total.map --label-output X < <(printf '1 1\n2 1\n' >by.number)
unheld() { # unheld NAME WHY: a name that maps would hold as something else
    printf 'source,target\n%s,a\na,b\nb,c\n' "$1" >odd.csv
    wrong 1 "X.csv: a group is called \".*\", which labels cannot hold$2: ${3:-leave --names out}" odd.csv -o X.csv \
        --names --repeat matching --levels 1 && status 0 odd.csv -o fine.csv --repeat matching --levels 1
}
for name in '" lead"' 007 +5 -5 99999999999; do ok "a group called $name" unheld "$name" ''; done
for name in NA nan -1; do ok "a group called $name" unheld "$name" '' 'rename it'; done
ok 'numbers among names' unheld 7 ' among n[a-z]*'
ok 'several groups' wrong 1 'which --through cannot carry' path.graph xy --through <(printf '1 1\n1 2\n2 1\n3 2\n4 2\n') \
    --label-output X --labels list
ok 'the map is no output' wrong 2 'is an input' grid.graph coarse.parts --through coarse.graph.total.map --label-output \
    coarse.graph.total.map

python=${PYTHON:-python3}
if "$python" -c 'import numpy, scipy' 2>/dev/null; then
    arrays() { # maps and labels as arrays, in and out
        "$python" -B - "$tool" <<'END'
import subprocess, sys
import numpy as np, scipy.sparse as sp
def contract(*arguments): subprocess.run([sys.argv[1], *arguments, "--quiet"], check=True)
grid = sp.diags_array([1, 1], offsets=[-1, 1], shape=(30, 30))
sp.save_npz("grid.npz", sp.kronsum(grid, grid).tocsr())
contract("grid.npz", "-o", "q.npz", "--repeat", "matching", "--to-nodes", "100")
to = np.load("q.npz.total.npy")
parts = np.random.default_rng(1).integers(0, 9, to.max() + 1)
np.save("parts.npy", parts)
contract("grid.npz", "parts.npy", "--through", "q.npz.total.npy", "--label-output", "fine.npy")
fine = np.load("fine.npy")
assert fine.dtype == np.int64 and (fine == parts[to]).all()
contract("grid.npz", "fine.npy", "--refine", "better.npy")
better = np.load("better.npy")
contract("grid.npz", "fine.npy", "--refine", "better.txt")
assert (better == np.loadtxt("better.txt")).all() and (better != fine).any()
np.save("far.npy", 1000 * fine + 5)
contract("grid.npz", "far.npy", "--label-output", "same.npy", "--compact")
assert (np.load("same.npy") == 1000 * fine + 5).all()
END
    }
    ok 'arrays' arrays
else skip 'arrays (no scipy)'; fi
ok 'no temporary files are left' no_leftovers

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
