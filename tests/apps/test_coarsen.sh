#!/bin/bash
# contract --repeat matching, two-hop, hec, lp: bounds, maps, notices, threads, hubs.
#   CONTRACT  the tool [$BUILD/bin/contract]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${CONTRACT:-${BUILD:-build}/bin/contract}") || exit 1
in=$PWD/tests/golden/in
build=$(realpath "${BUILD:-build}")
. tests/support/scipy.sh
. tests/support/cli.sh

awk 'BEGIN { n = 1001; print n, n - 1; for (i = 2; i <= n; i++) printf "%d ", i; print ""; for (i = 2; i <= n; i++) print 1 }' |
    sed 's/ $//' >star.graph
awk 'BEGIN { n = 30; print n * n, 2 * n * (n - 1); for (i = 0; i < n; i++) for (j = 0; j < n; j++) { k = i * n + j + 1
    line = (i ? k - n : "") " " (j ? k - 1 : "") " " (j < n - 1 ? k + 1 : "") " " (i < n - 1 ? k + n : "")
    gsub(/ +/, " ", line); gsub(/^ | $/, "", line); print line } }' >grid.graph
header() { head -n 1 "$1" | cut -d ' ' -f 1; }

for how in matching two-hop hec lp cluster; do
    ends_at() {
        rm -f c.*
        status 0 grid.graph -o c.graph --repeat $how --to-nodes 500 --loops drop && [ "$(header c.graph)" -eq 500 ] &&
            [ "$(wc -l <run.err)" -eq 1 ]
    }
    ok "$how: --to-nodes" ends_at
    composed() { # the total map is that of the levels, and makes the same graph
        awk -F '\t' 'FNR == 1 { file++ } { to[file, $1] = $2; if (file == 1) name[FNR] = $1 } END { for (i = 1; i in name; i++) {
            at = name[i]; for (k = 1; k <= file; k++) at = to[k, at]; print name[i] "\t" at } }' c.graph.level*.map >composed &&
            cmp composed c.graph.total.map && status 0 grid.graph c.graph.total.map -o again.graph --loops drop &&
            cmp again.graph c.graph
    }
    ok "$how: the total map" composed
    threads() {
        for t in 1 2 5; do status 0 "$in/p2000.abc" -o "t$t.abc" --repeat $how --to-nodes 100 --threads $t || return 1; done
        cat t1.abc t1.abc.*.map >all1 && for t in 2 5; do cat t$t.abc t$t.abc.*.map | cmp - all1 || return 1; done
    }
    ok "$how: threads change nothing" threads
done
for how in two-hop hec lp; do
    star() { status 0 star.graph -o s.graph --repeat $how --to-nodes 50 --loops drop && [ "$(header s.graph)" -eq 50 ]; }
    ok "$how: a star of leaves" star
    bound() { # no group of several nodes is heavier
        status 0 "$in/p2000.abc" -o b.abc --repeat $how --max-weight 5 --node-output b.tsv &&
            [ "$(awk 'NR > 1 && $2 > m { m = $2 } END { print m }' b.tsv)" -eq 5 ]
    }
    [ $how = two-hop ] || ok "$how: --max-weight" bound
done
seeds() {
    status 0 grid.graph -o s1.abc --repeat two-hop --levels 1 --seed 7 && status 0 grid.graph -o s2.abc --repeat two-hop \
        --levels 1 --seed 7 && cmp s1.abc s2.abc && status 0 grid.graph -o s2.abc --repeat two-hop --levels 1 --seed 8 &&
        ! cmp -s s1.abc s2.abc
}
ok '--seed' seeds
weighted() { # a node of METIS as heavy as the bound joins nobody
    printf '4 3 011\n5 2 9\n1 1 9 3 1\n1 2 1 4 1\n1 3 1\n' >w.graph
    status 0 w.graph -o w.out.graph --repeat matching --max-weight 5 --loops drop &&
        [ "$(tr '\t\n' ' |' <w.out.graph.total.map)" = '1 1|2 2|3 2|4 2|' ] ||
        [ "$(awk '$2 == 1' w.out.graph.total.map | wc -l)" -eq 1 ]
}
ok 'weights of METIS nodes' weighted
notice() { [ "$(wc -l <run.err)" -eq 2 ] && grep -q "^contract: $1" run.err; }
stalls() {
    status 0 star.graph -o s.graph --repeat matching --loops drop &&
        notice 'star.graph: level 1 shrinks the graph by 0.1 % only, less than 5 %, and is the last: 1,000 groups; --repeat two-hop also'
}
ok 'a level that shrinks by less than 5 %' stalls
short() {
    status 0 grid.graph -o s.graph --repeat matching --to-nodes 5 --levels 2 --loops drop &&
        notice 'grid.graph: [0-9]* groups are left, not 5: the levels are used up'
}
ok 'too few levels' short
apart() {
    status 0 <(printf 'a b\nc d\n') -o s.abc --repeat two-hop --to-nodes 1 &&
        notice '/dev/fd/.*: 2 groups are left, not 1: no more of them may be joined'
}
ok 'components' apart
wrong() { # wrong PATTERN ARGUMENTS...
    local pattern=$1
    shift
    status 2 "$@" && grep -q -- "$pattern" run.err
}
ok '--to-nodes without --repeat' wrong '--to-nodes goes with --repeat' grid.graph pairs -o X.abc --to-nodes 5
ok '--max-weight of clusters' wrong '--max-weight goes with' grid.graph -o X.abc --repeat cluster --max-weight 5
ok 'a bound of 0' wrong '--to-nodes' grid.graph -o X.abc --repeat lp --to-nodes 0
own_map() { ln -f grid.graph o.abc.total.map && wrong 'is an input' grid.graph -o o.abc --repeat lp; }
ok 'the total map is no input' own_map
ok 'no temporary files are left' no_leftovers

if find_pymetis >venv.out; then
    table() {
        CONTRACT=$tool "$python" -B "$OLDPWD/bench/partition.py" --seeds 2 --parts 2 grid.graph >table.out &&
            grep -q '^geometric mean; matching' table.out
    }
    ok 'bench/partition.py' table
    # Two parts of at most 1.03 times 10 nodes, rounded up: the cliques have 11 and 9.
    awk 'BEGIN { print 20, 55 + 36 + 1; for (i = 1; i <= 20; i++) { line = ""; for (j = 1; j <= 20; j++)
        if (j != i && (i <= 11) == (j <= 11) || i + j == 23 && (i == 11 || j == 11)) line = line " " j
        print substr(line, 2) } }' >cliques.graph
    rounded() {
        CONTRACT=$tool "$python" -B "$OLDPWD/bench/partition.py" --how hec --seeds 2 --parts 2 cliques.graph >rounded.out &&
            grep -Eq '^cliques +2 .* 1\.10$' rounded.out
    }
    ok 'bench/partition.py: the bound of parts is rounded up' rounded
else skip "bench/partition.py: no pymetis, and none from PyPI ($(tail -n 1 venv.out))"; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
