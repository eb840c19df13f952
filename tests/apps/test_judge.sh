#!/bin/bash
# contract --judge: its three forms, beside a model and other programs, refusals.
#   CONTRACT  the tool [$BUILD/bin/contract]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${CONTRACT:-${BUILD:-build}/bin/contract}") || exit 1
tests=$PWD/tests/apps
build=$(realpath "${BUILD:-build}")
. tests/support/scipy.sh
. tests/support/cli.sh

printf 'a b 1\nb c 2\nc d 4\nd a 8\n' >g.abc
printf 'a x\nb y\nc y\nd z\n' >pairs

prints() { # prints EXPECTED ARGUMENTS...: on stdout, and the closing line
    local expected=$1
    shift
    status 0 "$@" && [ "$(cat run.out)" = "$expected" ] && [ "$(wc -l <run.err)" -eq 1 ] || { cat run.out run.err; return 1; }
}
sentence='edge cut 13 (86.7 % of the weight, 3 edges); modularity -0.20667; coverage 0.13333; conductance 0.85185 mean, 1.00000 worst (group x); balance 1.5000; 3 groups of 1 to 2 nodes, median 1'
ok 'a line' prints "$sentence" g.abc pairs --judge line
ok 'the closing line' grep -qx 'contract: read g.abc as label pairs, 4 nodes, 4 edges; judged 3 groups' run.err
heading='nodes left_out groups empty edges weight cut_edges cut coverage modularity conductance_mean conductance_worst worst_group balance smallest median mean largest alone'
table() {
    status 0 g.abc pairs --judge tsv && [ "$(sed -n 1p run.out | tr '\t' ' ')" = "$heading" ] && [ "$(wc -l <run.out)" -eq 2 ] &&
        [ "$(sed -n 2p run.out | cut -f 1-8,13,14 | tr '\t' ' ')" = '4 0 3 0 4 15 3 13 x 1.5' ]
}
ok 'a table' table
nothing() {
    status 0 none none --judge tsv && [ "$(sed -n 2p run.out | tr '\t' ' ')" = '0 0 0 0 0 0 0 0 NA NA NA NA NA NA 0 NA NA 0 0' ]
}
: >none
ok 'a table of nothing' nothing
beside_graph() {
    status 0 g.abc pairs -o q.abc --judge line --report q.json --loops drop && [ "$(cat run.out)" = "$sentence" ] &&
        [ "$(tr '\t\n' ' |' <q.abc)" = 'x y 1|x z 8|y z 4|' ] && grep -q '"modularity": -0.20666' q.json
}
ok 'beside the graph of the groups' beside_graph
hierarchy() {
    status 0 g.abc -o h.abc --repeat matching --levels 1 --judge tsv && [ "$(sed -n 2p run.out | cut -f 1,3)" = $'4\t2' ]
}
ok 'of a hierarchy' hierarchy
ok 'means of repeated edges' prints \
    'edge cut 2 (100 % of the weight, 1 edge); modularity -0.50000; coverage 0.00000; conductance 1.00000 mean, 1.00000 worst (group 1); balance 1.0000; 2 groups of 1 to 1 node, median 1' \
    <(printf 'p q 1\np q 3\n') <(printf 'p 1\nq 2\n') --judge line --combine mean
same_bytes() {
    for t in 1 3; do status 0 g.abc pairs --judge json --threads $t && cp run.out "j$t" || return 1; done
    cmp j1 j3
}
ok 'threads change nothing' same_bytes
refused() { # refused STATUS PATTERN ARGUMENTS...
    local expected=$1 pattern=$2
    shift 2
    status "$expected" "$@" && [ ! -s run.out ] && [ "$(wc -l <run.err)" -eq 1 ] && grep -q -- "$pattern" run.err
}
for option in '--to abc' '--loops drop' --half-loops '--engine product'; do
    # shellcheck disable=SC2086
    ok "$option without -o" refused 2 'is about the graph of the groups, which goes to -o' g.abc pairs --judge line $option
done
ok 'a hierarchy without -o' refused 2 '--repeat is about' g.abc --repeat matching --judge line
ok 'both on standard output' refused 2 'two outputs would be written to' g.abc pairs --judge line -o - --to abc
ok 'several groups a node' refused 1 'several groups.*--judge' g.abc <(printf 'a x\na y\nb y\nc y\nd z\n') --judge line
printf 'a b -1\n' >neg
printf 'a 1\nb 1\n' >ones
ok 'weights below 0' refused 1 'neg: an edge has a weight below 0' neg ones --judge line
ok 'no output' refused 2 'no output: give -o FILE, or --judge' g.abc pairs
ok 'another form' refused 2 '--judge is one of line, tsv, json' g.abc pairs --judge xml

if command -v "${PYTHON:-python3}" >/dev/null; then
    find_graph_programs >venv.out || python=${PYTHON:-python3} # which may have some of them
    model() {
        "$python" -B "$tests/judge_model.py" "$tool" "${JUDGE_CASES:-60}" >model.out || { cat model.out; return 1; }
    }
    ok 'definitions, networkx, igraph, networkit' model
    while IFS= read -r line; do skip "${line#skipped: }"; done < <(grep '^skipped: ' model.out)
else skip 'no python3: definitions'; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
