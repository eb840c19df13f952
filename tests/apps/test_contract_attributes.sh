#!/bin/bash
# contract --attributes: tables of nodes, how their columns are combined, weights of nodes from a column.
#   CONTRACT  the tool [$BUILD/bin/contract]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${CONTRACT:-${BUILD:-build}/bin/contract}") || exit 1
model=$PWD/tests/apps/attributes_model.py
. tests/support/cli.sh

printf 'a b 1\nb c 2\nc d 3\nd e 1\ne a 4\nf a 1\n' >g.abc
printf 'a x\nb x\nc y\nd y\ne y\nf z\n' >labels
cat >nodes.csv <<'END_OF_TABLE'
# exported
id,age,"kind, of it",score
a,3,red,1.5
b,4,blue,NA
d,1,"gr""een",2.5
c,2,blue,
e,6,blue,-1
END_OF_TABLE

shows() { # shows COLUMNS LINES ARGUMENTS...: columns of --node-output, lines joined by bars, tabs replaced by blanks
    local columns=$1 lines=$2
    shift 2
    status 0 g.abc labels -o q.abc --node-output groups "$@" &&
        [ "$(cut -f "1,$columns" groups | tr '\n\t' '| ')" = "$lines" ] || { cat groups run.err; return 1; }
}
fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr, no output
    local expected=$1 pattern=$2
    shift 2
    rm -f X Y
    status "$expected" g.abc labels "$@" && [ ! -e X ] && [ ! -e Y ] && no_leftovers &&
        [ "$(wc -l <run.err)" -eq 1 ] && grep -qE -- "^contract: .*$pattern" run.err || { cat run.err; return 1; }
}
refuses() { # refuses TABLE PATTERN: what is wrong with a table
    printf '%b' "$1" >bad
    fails 1 "$2" -o X --to abc --attributes bad --node-output Y
}

# ---- values ------------------------------------------------------------------------------------------------

ok 'numbers are averaged, texts by the most frequent' shows 6- \
    'group age_mean kind, of it_mode score_mean|x 3.5 red 1.5|y 3 blue 0.75|z NA NA NA|' --attributes nodes.csv
ok 'one rule is for all columns that it fits, others are of columns' shows 6- \
    'group age_sum kind, of it_mode score_max|x 7 red 1.5|y 9 blue 2.5|z NA NA NA|' \
    --attributes nodes.csv --combine-attributes sum,score=max
ok 'a name with a comma is quoted' shows 6- \
    'group age_mean kind, of it_first score_max|x 3.5 red 1.5|y 3 blue 2.5|z NA NA NA|' \
    --attributes nodes.csv --combine-attributes '"kind, of it"=first,score=max'
ok 'a rule of numbers beside one of texts' shows 6- \
    'group age_min kind, of it_first score_min|x 3 red 1.5|y 1 blue -1|z NA NA NA|' \
    --attributes nodes.csv --combine-attributes first,min
ok 'values are counted' shows 6- 'group age_count kind, of it_count score_count|x 2 2 1|y 3 3 2|z 0 0 0|' \
    --attributes nodes.csv --combine-attributes count
ok 'medians' shows 6- 'group age_median kind, of it_mode score_median|x 3.5 red 1.5|y 2 blue 0.75|z NA NA NA|' \
    --attributes nodes.csv --combine-attributes median
printf 'id,x\na,-\nb,4\nc,#N/A\nd,<NA>\ne,2\n' >missing
ok 'words for missing values' shows 6 'group x_mean|x 4|y 2|z NA|' --attributes missing
ok 'the first value is that of the first node that has one' shows 6- \
    'group age_first kind, of it_first score_first|x 3 red 1.5|y 2 blue 2.5|z NA NA NA|' \
    --attributes nodes.csv --combine-attributes first
tr ',' '\t' <nodes.csv | sed 's/"kind\t of it"/kind/; s/NA$//; s/"//g; s/gree/gree"e/' >nodes.tsv
ok 'fields may be separated by tabs, and empty' shows 6,8 'group age_mean score_mean|x 3.5 1.5|y 3 0.75|z NA NA|' \
    --attributes nodes.tsv
printf 'weight name\n5 b\n7 a\n1 c\n1 d\n1 e\n0 f\n' >blanks
ok 'the column of the nodes may be any' shows 6 'group weight_min|x 5|y 1|z 0|' \
    --attributes blanks --combine-attributes min
gzip -c nodes.csv >nodes.csv.gz
ok 'a table may be compressed' shows 6 'group age_mean|x 3.5|y 3|z NA|' --attributes nodes.csv.gz
sed 's/$/\r/' nodes.csv >dos.csv
ok 'lines may end as on Windows' shows 6 'group age_mean|x 3.5|y 3|z NA|' --attributes dos.csv
{ cat nodes.csv; echo 'nobody,1,x,1'; } >more.csv
ok 'rows of other nodes are passed over if that is asked for' shows 6 'group age_mean|x 3.5|y 3|z NA|' \
    --attributes more.csv --unknown drop
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1\n3 3 1\n' >g.mtx
printf '1\n1\n2\n' >list && printf 'node;x\n3;four\n1;2,5\n2;6\n' >by_number
numbered() {
    status 0 g.mtx list -o q.abc --node-output groups --attributes by_number --combine-attributes x=first &&
        [ "$(cut -f 6 groups | tr '\n' ' ')" = 'x_first 2,5 four ' ]
}
ok 'nodes without names are called by their numbers' numbered
printf ',age\na,3\nb,5\nf,1\n' >index.csv
ok 'a first column without a name, as of data frames, names the nodes' shows 6 'group age_mean|x 4|y NA|z 1|' \
    --attributes index.csv
printf 'id;places\na;1,2\nb;3,4\nf;none\n' >lists
ok 'lists of numbers beside other texts are texts' shows 6 'group places_first|x 1,2|y NA|z none|' --attributes lists \
    --combine-attributes first

printf 'id;x\na;1\nb;?\nc;2\n' >odd
told() {
    status 0 g.abc labels -o q.abc --node-output groups --attributes odd &&
        grep -q '^contract: odd: no row for 3 of 6 nodes$' run.err &&
        grep -q '^contract: odd: the column "x" is one of texts, because node b has "?"$' run.err &&
        status 0 g.abc labels -o q.abc --node-output groups --attributes odd --quiet && [ ! -s run.err ]
}
ok 'nodes without a row, and a word among numbers, are told of' told

# ---- weights -----------------------------------------------------------------------------------------------

{ cat nodes.csv; echo 'f,9007199254740992,red,1'; } >heavy.csv
weighted() {
    status 0 g.abc labels -o q.metis --loops drop --undirected --attributes heavy.csv --node-weight age \
        --node-output groups && [ "$(cut -f 6 groups | tr '\n' ' ')" = 'weight 7 9 9007199254740992 ' ] &&
        [ "$(sed -n 4p q.metis)" = '9007199254740992 1 1' ]
}
ok 'a column weighs the nodes of a METIS graph' weighted
coarsened() { # no group is heavier than it may be
    status 0 g.abc -o h.abc --repeat matching --levels 3 --undirected --loops drop --attributes heavy.csv \
        --node-weight age --max-weight 9 --node-output groups && awk 'NR > 1 && $6 > 9 && $2 > 1 { exit 1 }' groups
}
ok 'and those of a hierarchy' coarsened
weightless() { # no group weighs more than another
    sed 's/,[0-9]*,/,0,/' heavy.csv >light.csv
    status 0 g.abc labels --judge line --attributes light.csv --node-weight age && grep -q 'balance NA;' run.out
}
ok 'nodes that weigh nothing have no balance' weightless
ok 'a node without a weight is named' fails 1 'no whole number from 0 to 2\^53 for node f' -o X --to abc --attributes nodes.csv --node-weight age
ok 'a weight that is no whole number is refused' fails 1 'no whole number from 0 to 2\^53 for node a' -o X --to abc --attributes heavy.csv \
    --node-weight score
ok 'a column that is not there is named' fails 1 'no column "mass" besides that of the nodes; there are: ' -o X --to abc --attributes heavy.csv --node-weight mass

printf '6 7 011 3\n1 10 5 2 1 3 2\n2 20 4 1 1 3 1 4 3\n3 30 3 1 2 2 1\n4 40 2 2 3 5 1 6 2\n' >m3.graph
printf '5 50 1 4 1 6 1\n6 60 0 4 2 5 1\n' >>m3.graph
{ echo 6 7 001; sed 1d m3.graph | cut -d ' ' -f 4-; } >m0.graph
sed 1d m3.graph | cut -d ' ' -f 1-3 >three.weights
printf '1\n1\n2\n2\n3\n3\n' >sixths
as_in_metis() { # as_in_metis ARGUMENTS...: weights beside the graph make the outputs that weights in it make
    local graph weights
    for graph in m3 m0; do
        weights=()
        [ $graph = m0 ] && weights=(--node-weights three.weights)
        status 0 $graph.graph "$@" "${weights[@]}" -o o.graph --loops drop --node-output o.tsv --judge tsv &&
            cat o.graph o.tsv run.out >$graph.all || return 1
    done
    cmp m3.all m0.all
}
ok 'several weights a node from a file' as_in_metis sixths
sums() { [ "$(cut -f 6-8 o.tsv | tr '\n\t' '| ')" = 'weight1 weight2 weight3|3 30 9|7 70 5|11 110 1|' ]; }
ok 'which are summed' sums
array() { # of NumPy, with the same weights
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (6, 3), }"
    printf '\1\12\5\2\24\4\3\36\3\4\50\2\5\62\1\6\74\0'
}
from_array() { # through a pipe, too
    status 0 m0.graph sixths -o of.graph --loops drop --node-weights three.weights && array >three.npy &&
        status 0 m0.graph sixths -o o.graph --loops drop --node-weights three.npy && cmp o.graph of.graph &&
        status 0 m0.graph sixths -o o.graph --loops drop --node-weights <(array) && cmp o.graph of.graph
}
ok 'from an array' from_array
ok 'also in a hierarchy' as_in_metis --repeat hec --to-nodes 2
ok 'and in refined parts' as_in_metis sixths --refine o.refined
unweighed() { # unweighed PATTERN ARGUMENTS...
    local pattern=$1
    shift
    rm -f X
    status 1 "$@" -o X --to abc && [ ! -e X ] && [ "$(wc -l <run.err)" -eq 1 ] && grep -q "$pattern" run.err
}
ok 'weights besides those of the file' unweighed 'm3.graph: its nodes have weights: leave --node-weights out' m3.graph \
    sixths --node-weights three.weights
ok 'nodes without an order' unweighed 'three.weights: the nodes of g.abc are known by names.*--node-weight COLUMN' \
    g.abc labels --node-weights three.weights
ok 'names for weights' unweighed 'labels:1: the weight is not a whole number' m0.graph sixths --node-weights labels
ok 'two sources of weights' eval 'status 2 g.abc labels -o X.abc --attributes heavy.csv --node-weight age \
    --node-weights three.weights && grep -q "exclude each other" run.err'
ok 'the weights are no output' eval 'status 2 m0.graph sixths -o o.abc --node-weights three.weights \
    --node-output three.weights && grep -q "is an input" run.err'

# ---- mistakes ----------------------------------------------------------------------------------------------

{ cat nodes.csv; echo "f,9007199254740991,red,1"; } | sed "s/^e,6/e,9007199254740991/" >heavier.csv

ok 'an unknown rule is a mistake' fails 2 'COLUMN=RULE, with .* \(got "middle"\)' -o X --to abc --node-output Y \
    --attributes nodes.csv --combine-attributes mean,middle
contradict() { # contradict RULES FIRST SECOND
    fails 2 "two rules for the same: \"$2\" and \"$3\"" -o X --to abc --node-output Y --attributes nodes.csv \
        --combine-attributes "$1"
}
ok 'two rules of all numbers contradict each other' contradict sum,first,max sum max
ok 'and two of all texts' contradict first,sum,mode first mode
ok 'and two of one column' contradict 'age=sum,score=max,age=max' age=sum age=max
ok 'in quotes, too' contradict '"kind, of it"=first,"kind, of it"=mode' '"kind, of it"=first' '"kind, of it"=mode'
ok 'a quote that is left open' fails 2 'with "COLUMN" if it holds a comma .got ""kind"' -o X --to abc --node-output Y \
    --attributes nodes.csv --combine-attributes '"kind, of it=first'
ok 'a table without a use is a mistake' fails 2 'goes with --node-output' -o X --to abc --attributes nodes.csv
ok 'rules without a table are a mistake' fails 2 'goes with --attributes' -o X --to abc --combine-attributes sum
ok 'a table cannot be an output, too' fails 2 'is an input, too' -o X --to abc --attributes nodes.csv --node-output nodes.csv
ok 'a sum of texts is refused' fails 1 'are not numbers, and have no sum' -o X --to abc --node-output Y \
    --attributes nodes.tsv --combine-attributes kind=sum
ok 'sums beyond 2\^53 are refused' fails 1 'sums to more than 2\^53' -o X --to abc --node-output Y --attributes heavier.csv \
    --combine-attributes sum
ok 'a table without a heading is refused' refuses 'a,1\nb,2\n' 'bad:1: a number in the heading'
ok 'an empty table is refused' refuses '\n# nothing\n' 'no heading'
ok 'a second row for a node is refused' refuses 'id,x\na,1\na,2\n' 'bad:3: a second row for this node'
ok 'a row of another node is refused' refuses 'id,x\nq,1\n' 'bad:2: this is not a node'
ok 'a row that is too short is refused' refuses 'id,x,y\na,1\n' 'bad:2: fewer fields than columns'
ok 'a row that is too long is refused' refuses 'id,x\na,1,2\n' 'bad:2: more fields than columns'
ok 'two columns of one name are refused' refuses 'id,x,x\n' 'bad:1: two columns have one name'
ok 'a column without a name is refused' refuses 'id,,x\n' 'bad:1: a column without a name'
ok 'numbers with decimal commas are refused' refuses 'id;x\na;1\nb;2,5\n' \
    'bad: the numbers of the column "x" have decimal commas, as 2,5; write points'
ok 'an open quote is refused' refuses 'id,x\na,"1\n' 'bad:2: a quote that is not closed'
without_index() { # and a table is read as without it
    status 0 g.abc labels -o q.abc --attributes nodes.csv --node-output plain.tsv &&
        awk 'NR > 1 { print (NR > 2 ? NR - 3 : "") "," $0 }' nodes.csv >indexed.csv &&
        status 0 g.abc labels -o q.abc --attributes indexed.csv --node-output indexed.tsv && cmp plain.tsv indexed.tsv
}
ok 'an index beside a column of nodes is left out' without_index

# ---- beside the definitions --------------------------------------------------------------------------------

if command -v python3 >/dev/null; then
    awk 'BEGIN { srand(7); for (i = 0; i < 900; i++) print "n" int(300 * rand()), "n" int(300 * rand()), 1 }' >random.abc
    awk '{ for (i = 1; i < 3; i++) if (!seen[$i]++) print $i, "g" length(seen) % 17 }' random.abc >random.labels
    awk 'BEGIN { srand(8); print "name,small,real,word"
                 for (i = 299; i >= 0; i--) if (i % 11)
                     print "n" i "," (i % 7 ? int(5 * rand()) - 2 : "") "," 10 * rand() - 5 "," \
                           (i % 5 ? "w" int(4 * rand()) : "NA") }' >random.csv
    agrees() {
        status 0 random.abc random.labels -o q.abc --node-output groups --attributes random.csv \
            --combine-attributes "$1" --unknown drop && python3 -B "$model" random.labels random.csv "$1" groups
    }
    for rule in sum mean min max median first mode count; do ok "$rule agrees with its definition" agrees $rule; done
else
    skip 'rules beside their definitions: python3 is missing'
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
