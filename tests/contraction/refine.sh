#!/bin/bash
# contract --refine: parts of a grid carried back, forms of the labels, other outputs, refusals.
#   CONTRACT  the tool [$BUILD/bin/contract]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${CONTRACT:-${BUILD:-build}/bin/contract}") || exit 1
in=$PWD/tests/golden/in
. tests/support/cli.sh

awk 'BEGIN { n = 30; print n * n, 2 * n * (n - 1); for (i = 0; i < n; i++) for (j = 0; j < n; j++) { k = i * n + j + 1
    line = (i ? k - n : "") " " (j ? k - 1 : "") " " (j < n - 1 ? k + 1 : "") " " (i < n - 1 ? k + n : "")
    gsub(/ +/, " ", line); gsub(/^ | $/, "", line); print line } }' >grid.graph
awk 'BEGIN { for (i = 0; i < 900; i++) print (i % 30 >= 15) != (i % 7 == 0) }' >ragged
# The cut of labels, by awk alone.
cut_of() {
    awk 'NR == FNR { label[NR] = $1; next } FNR > 1 { for (k = 1; k <= NF; k++) cut += label[FNR - 1] != label[$k] }
        END { print cut / 2 }' "$1" grid.graph
}
counts() { sort "$1" | uniq -c | awk '{ print $1 }' | sort -n | tr '\n' ' '; }

straight() { # a seventh of the nodes was astray; the straight border has 30 edges
    status 0 grid.graph ragged --refine better && [ "$(wc -l <better)" -eq 900 ] && [ "$(cut_of better)" -le 36 ] &&
        grep -Eq "refined 2 groups: edge cut $(cut_of ragged) to $(cut_of better), balance [0-9.]+ to [0-9.]+, [0-9]+ moves$" \
            run.err &&
        awk '{ n[$1]++ } END { exit !(n[0] + n[1] == 900 && n[0] <= 463 && n[1] <= 463) }' better
}
ok 'the border of a grid' straight
same_for_threads() {
    for t in 1 2 5; do status 0 grid.graph ragged --refine "t$t" --threads $t && cmp "t$t" better || return 1; done
}
ok 'threads change nothing' same_for_threads
in_report() { # in_report BEFORE AFTER, and the balance of --judge in run.out
    tr -d ' \n' <r.json | grep -Eq "\"refined\":\{\"file\":\"again\",\"cut_before\":$1,\"cut\":$2,.*\"balance\":$(sed -n 2p run.out |
        cut -f 14),\"balance_bound\":[0-9.]+,\"moves\":[1-9][0-9]*,\"passes\":[1-9][0-9]*,\"cycles\":[1-3],"
}
outputs() { # the quotient and the judgement are those of the new labels
    status 0 grid.graph ragged --refine again --judge tsv -o q.mtx --report r.json && cmp again better &&
        [ "$(sed -n 2p run.out | cut -f 8)" = "$(cut_of better)" ] && in_report "$(cut_of ragged)" "$(cut_of better)" &&
        status 0 grid.graph better -o q2.mtx && cmp q.mtx q2.mtx
}
ok 'other outputs are about the new labels' outputs
named() { # names of nodes and of groups come back, and may be read again
    awk '{ print $1 "\n" $2 }' "$in/p2000.abc" | sort -u | awk '{ print $1 "\tpart" NR % 3 }' >parts.tsv
    status 0 "$in/p2000.abc" parts.tsv --refine named.tsv && [ "$(wc -l <named.tsv)" -eq "$(wc -l <parts.tsv)" ] &&
        [ "$(cut -f 2 named.tsv | sort -u | tr '\n' ' ')" = 'part0 part1 part2 ' ] &&
        status 0 "$in/p2000.abc" named.tsv --judge tsv && after=$(sed -n 2p run.out | cut -f 8) &&
        status 0 "$in/p2000.abc" parts.tsv --judge tsv && before=$(sed -n 2p run.out | cut -f 8) &&
        awk "BEGIN { exit !($after < $before) }"
}
ok 'names of nodes and groups' named
weighted() { # the heavy nodes of METIS keep their places, where a move would overload a part
    printf '4 3 010\n4 2\n4 1 3\n4 2 4\n4 3\n' >w.graph
    printf '0\n1\n0\n1\n' >w.parts
    status 0 w.graph w.parts --refine w.better && [ "$(counts w.better)" = '2 2 ' ]
}
ok 'weights of METIS nodes' weighted
loose() { # with room for it the path is cut less, though no part is emptied
    status 0 w.graph w.parts --refine w.better --imbalance 0.6 && [ "$(sort -u w.better | wc -l)" -eq 2 ] &&
        [ "$(awk 'NR > 1 && $1 != last { cut++ } { last = $1 } END { print cut }' w.better)" -eq 1 ]
}
ok '--imbalance' loose
even() { # parts of 600 and 300 nodes become halves; without --imbalance they keep their weights
    awk 'BEGIN { for (i = 0; i < 900; i++) print (i >= 600) }' >uneven
    for f in 0 0.0; do
        status 0 grid.graph uneven --refine evened --imbalance $f && [ "$(counts evened)" = '450 450 ' ] &&
            [ "$(cut_of evened)" -le 40 ] || return 1
    done
    status 0 grid.graph uneven --refine kept && [ "$(counts kept)" = '300 600 ' ]
}
ok '--imbalance 0, and heavier groups' even
too_heavy() { # a node of half of the weight
    printf '4 3 010\n9 2\n1 1 3\n1 2 4\n1 3\n' >h.graph
    printf '0\n0\n1\n2\n' >h.parts
    status 0 h.graph h.parts --refine X --imbalance 0.1 && grep -q 'h.parts: the heaviest group still weighs 2.2500 times' run.err
}
ok 'a node that is too heavy' too_heavy
numbers() { # labels without nodes change nothing
    awk '{ print 900 * $1 + 4 }' ragged >far && status 0 grid.graph far --refine X && grep -q 'refined 2 groups' run.err &&
        awk '{ print 900 * $1 + 4 }' better | cmp - X
}
ok 'numbers of labels' numbers
left_out() {
    sed '5s/.*/-1/' ragged >partly
    status 0 grid.graph partly --unlabelled drop --refine out && [ "$(sed -n 5p out)" = -1 ] && [ "$(grep -c -- -1 out)" -eq 1 ]
}
ok 'a node without a label keeps none' left_out
packed() { status 0 grid.graph ragged --refine b.gz && gzip -dc b.gz | cmp - better; }
ok 'compressed' packed
whole() { # nothing is left of an output that cannot be written
    status 1 grid.graph ragged --refine new -o /nowhere/q.mtx && [ ! -e new ] && ! ls new.tmp.* 2>/dev/null
}
ok 'all outputs or none' whole
wrong() { # wrong STATUS PATTERN ARGUMENTS...
    local code=$1 pattern=$2
    shift 2
    rm -f X
    status "$code" "$@" && grep -q -- "$pattern" run.err && [ "$(wc -l <run.err)" -eq 1 ] && [ ! -e X ]
}
ok '--imbalance alone' wrong 2 '--imbalance goes with --refine' grid.graph ragged --judge line --imbalance 0.1
ok 'no labels' wrong 2 '--refine goes with LABELS' grid.graph --repeat two-hop -o q.mtx --refine X
ok 'a directed graph' wrong 2 'leave --directed out' grid.graph ragged --refine X --directed
printf '%%%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n' >arc.mtx
printf '1\n2\n' >two
ok 'a matrix that may be directed' wrong 1 'give --undirected' arc.mtx two --refine X
ok 'means' wrong 2 'leave --combine mean out' grid.graph ragged --refine X --combine mean
printf '1 a\n1 b\n2 b\n' >twice
ok 'several groups' wrong 1 'in several groups' grid.graph twice --refine X --labels pairs --unlabelled drop
twice() { wrong 2 "$1 is there twice, with \"$2\" and \"X\"" grid.graph ragged "${@:3}"; }
ok 'two reports' twice --report Y.json --refine Z --report Y.json --report X
ok 'two files of labels' twice --refine Y --refine Y --refine X
ok 'the graph itself' wrong 2 . grid.graph ragged --refine grid.graph
ok 'zst' wrong 2 'compressed by gzip only' grid.graph ragged --refine X.zst

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
