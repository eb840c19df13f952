#!/bin/bash
# gnn with nodes that have names: graphs of names, tables with a column of names, lists and splits by name, and what is
# written with them.
#   GNN  the tool [$BUILD/bin/gnn]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${GNN:-${BUILD:-build}/bin/gnn}") || exit 1
. tests/support/cli.sh

fails() { # fails PATTERN ARGUMENTS...: status 1, one line on stderr, nothing on stdout
    local pattern=$1
    shift
    status 1 "$@" && [ ! -s run.out ] && [ "$(wc -l <run.err)" -eq 1 ] && grep -qE -- "^gnn: $pattern" run.err ||
        { cat run.err; return 1; }
}
# Two communities of six, named out of order, and the same graph by numbers, whose rows are in the order of the table.
names=(tp53 abl1 myc '"a, b"' braf kras egfr src met ret kit alk)
edges='0 1 0 2 1 2 1 3 2 4 3 4 4 5 3 5 0 5 6 7 6 8 7 8 7 9 8 10 9 10 10 11 9 11 6 11 5 6'
folder() { # folder NAME: named nodes; NAME.numbers: the same by numbers
    rm -rf "$1" "$1.numbers"
    mkdir "$1" "$1.numbers"
    echo 'target,source,weight' >"$1/graph.csv"
    echo 'gene,x,y' >"$1/features.csv"
    set -- "$1" $edges
    local d=$1 k
    shift
    while [ $# -gt 0 ]; do
        echo "${names[$2]},${names[$1]},0.$(($1 + 1))" >>"$d/graph.csv"
        echo "$1,$2,0.$(($1 + 1))" >>"$d.numbers/graph.csv"
        shift 2
    done
    for k in 0 1 2 3 4 5 6 7 8 9 10 11; do
        echo "${names[k]},$((k % 3)).5,$((k / 6))" >>"$d/features.csv"
        echo "$((k % 3)).5,$((k / 6))" >>"$d.numbers/features.csv"
    done
    printf '%s\n' 'gene;group' 'kit;late' 'egfr;late' 'met;late' 'a, b;early' 'tp53;early' 'abl1;early' 'src;NA' \
        'myc;' 'braf;early' >"$d/labels.csv"
    printf '%s\n' early early -1 early early -1 late -1 late -1 late -1 >"$d.numbers/labels.txt"
    printf 'id\ntp53\negfr\nkit\n' >"$d/train.txt"
    printf '0\n6\n10\n' >"$d.numbers/train.txt"
    printf 'met\nabl1\n' >"$d/val.txt"
    printf '8\n1\n' >"$d.numbers/val.txt"
    printf 'a, b\nbraf\n' >"$d/test.txt"
    printf '3\n4\n' >"$d.numbers/test.txt"
}
with() { # with FILE TEXT: folder d, one file of it replaced (its other formats removed)
    folder d
    rm -f "d/${1%%.*}".*
    printf -- "$2" >"d/$1"
}
json_of() { status 0 info --json "$@" && grep -v '"folder"' run.out | sed 's/.*"nodes": 12/"nodes": 12/'; }
same_as_numbers() { # same_as_numbers [FOLDER]: what info says of d is what it says of d.numbers; so is the training
    json_of "${1:-d}" >a.json && json_of d.numbers >b.json && cmp a.json b.json &&
        status 0 train "${1:-d}" --hidden 4 --epochs 30 && sed 1d run.out >a.out &&
        status 0 train d.numbers --hidden 4 --epochs 30 && sed 1d run.out | cmp - a.out
}

# ---- input ----------------------------------------------------------------------------------------------

folder d
ok 'names are as good as numbers' same_as_numbers
with_separators() { # first lines for spreadsheets
    folder d
    sed -i '1i sep=,' d/graph.csv d/features.csv d.numbers/graph.csv d.numbers/features.csv
    sed -i '1i sep=;' d/labels.csv
    same_as_numbers && json_of d >with.json && folder d && json_of d | cmp - with.json
}
ok 'files whose first lines name the separator' with_separators
folder d
ok 'how many have no class' eval 'status 0 convert d n && grep -q "12 nodes (5 of unknown class)" run.err'
ok 'what is converted is the same' same_as_numbers n
ok 'with its names' eval 'sed -n 4p n/nodes.txt | grep -qx "a, b" && [ "$(wc -l <n/nodes.txt)" -eq 12 ]'
with_ids() { # with_ids AWK: the heading or first column of features rewritten
    folder d && awk -F , -v OFS=, "$1" d/features.csv >t && mv t d/features.csv
}
for script in 'NR == 1 { $0 = ",x,y" } 1' 'NR == 1 { $0 = ",0,1" } 1' 'NR == 1 { $0 = "x,y" } 1' 'NR > 1' \
    'NR == 1 { $0 = "\"id\",\"x\",\"y\"" } 1' 'BEGIN { print "# made by hand" } 1'; do
    with_ids "$script"
    ok "features as in $script" same_as_numbers
done
elsewhere() { # the column of names is the last, tabs and quotes
    folder d && sed -i 's/^\(.*\),\([^,]*\),\([^,]*\)$/\2\t"\3"\t\1/; 1s/gene/node_id/' d/features.csv && same_as_numbers
}
ok 'the column of names by its heading' elsewhere
numeric() { # names that are numbers, in no order
    folder d
    local k
    for ((k = 0; k < 12; k++)); do
        sed -i "s/\\b${names[k]//\"/}\\b/$((907 - 5 * k))/g; s/\"$((907 - 5 * k))\"/$((907 - 5 * k))/g" d/*
    done
    sed -i '1s/gene/id/' d/features.csv d/labels.csv
    same_as_numbers
}
ok 'names that are numbers' numeric
names_apart() {
    folder d && cp d.numbers/features.csv d/features.csv && printf '%s\n' "${names[@]//\"/}" >d/nodes.txt && same_as_numbers
}
ok 'names in nodes.txt' names_apart
split_table() {
    folder d && rm d/train.txt d/val.txt d/test.txt && printf '%s\n' 'id,set' tp53,train egfr,TRAIN kit,training met,valid \
        abl1,val '"a, b",test' braf,test src,unused myc, >d/split.csv && same_as_numbers
}
ok 'a table of the split' split_table
pairs() { # labels without a heading, blanks between; other columns
    folder d && sed -i '1d; /a, b/d; s/;/\t/' d/labels.csv && printf 'a, b\tearly\n' >>d/labels.csv && same_as_numbers &&
        sed -i 's/$/\t2019/; 1i node\tlabel\tyear' d/labels.csv && same_as_numbers
}
ok 'labels without a heading, and among other columns' pairs
targets() {
    with labels.csv 'id,fast,slow\ntp53,1,1\negfr,0,1\nkit,1,0\nmet,1,0\nabl1,0,0\n"a, b",1,0\nbraf,0,1\n' &&
        status 0 info --json d && tr -d '\n' <run.out | grep -qF '[{"name": "fast", "nodes": 4}, {"name": "slow", "nodes": 3}]' &&
        grep -q '"multi_label": true' run.out
}
ok 'several classes a node' targets
with labels.csv 'id,label\ntp53,0\negfr,1\nkit,1.0\nmet,nan\nabl1,-1\nbraf,none\n'
ok 'classes by number' eval 'status 0 info --json d && grep -qF "\"unlabelled\": 9" run.out &&
    tr -d "\n" <run.out | grep -qF "[{\"name\": \"0\", \"nodes\": 1}, {\"name\": \"1\", \"nodes\": 2}]"'
abc() { # as contract and mcl-gpu read it, and as STRING has it
    folder d && sed 1d d/graph.csv | grep -v '"' | awk -F , '{ print $2 "\t" $1 "\t" $3 }' >t && rm d/graph.csv && mv t d/graph.abc &&
        status 0 info d && grep -q '^edges      16, directed, weighted' run.out && status 0 info d --undirected &&
        grep -q '^edges      32, symmetric, weighted' run.out && (echo 'protein1 protein2 combined_score' &&
        echo 'tp53 abl1 300' && echo 'abl1 tp53 300') >d/graph.txt && rm d/graph.abc && status 0 info d &&
        grep -q '^edges      2, symmetric, weighted' run.out
}
ok 'label pairs and STRING' abc
heading() { # a word before names
    folder d && printf 'label\n' | cat - d.numbers/labels.txt >d/labels.csv && same_as_numbers
}
ok 'a heading before names of classes' heading

# ---- nodes that do not match ----------------------------------------------------------------------------

with graph.csv 'tp53,abl1\nyap1,myc\nyap1,wee1\n'
ok 'edges of unknown nodes' fails 'd/graph.csv: 2 of 5 nodes have no features, the first is "yap1"; add their rows, or .*drop\)$' info d
for command in 'info d' 'train d --epochs 1' 'convert d X'; do
    ok "they are left out by $command" eval "rm -rf X; status 0 $command --unknown drop &&
        grep -q '^gnn: d: left out 2 edges, 0 labels and 0 rows of the split, whose nodes have no features' run.err"
done
ok 'in silence' eval 'status 0 info d --unknown drop --quiet && [ ! -s run.err ]'
with labels.csv 'id,label\ntp53,a\nyap1,b\n'
ok 'a label of an unknown node' fails 'd/labels.csv:3: this is not a node of the graph \(got "yap1"\); .*--unknown drop' info d
ok 'left out' eval 'status 0 info d --unknown drop && grep -q "0 edges, 1 label and 0 rows" run.err'
with train.txt 'tp53\nyap1\n'
ok 'in a list' fails 'd/train.txt:2: this is not a node of the graph \(got "yap1"\); write names of nodes' info d
ok 'left out of it' eval 'status 0 info d --unknown drop && grep -q "0 edges, 0 labels and 1 row " run.err'
ok 'a wrong word' eval 'status 2 info d --unknown keep && grep -q -- "--unknown is one of error, drop" run.err'

# ---- what is refused ------------------------------------------------------------------------------------

refused() { # refused NAME FILE TEXT PATTERN
    with "$2" "$3"
    ok "$1" fails "$4" info d
}
folder d
twice='it is read twice, and so has to be a file: write it to one'
convert() { rm -rf X; fails "$1: $twice" convert --edges d/graph.csv --features "$2" --labels "$3" X; }
ok 'labels from a pipe' eval 'cat d/labels.csv | convert "\(standard input\)" d/features.csv -'
ok 'features from standard input' eval 'convert "\(standard input\)" - d/labels.csv <d/features.csv'
mkfifo pipe
ok 'labels from a pipe with a name' convert pipe d/features.csv pipe
refused 'a name twice' features.csv 'id,x\na,1\nb,2\na,3\n' 'd/features.csv:4: a second row for this node \(got "a"\); keep one'
refused 'a row without a name' features.csv 'id,x\na,1\n,2\n' 'd/features.csv:3: a row without the name of its node'
refused 'a kind among features' features.csv 'id,x,colour\na,1,red\nb,2,blue\n' \
    'd/features.csv:2: a feature that is not a number \(got "red"\); write numbers; for kinds, a column of 0 and 1 for each$'
refused 'a second column of words below a heading' features.csv 'gene id,symbol,x\na,tp53,1\nb,myc,2\n' \
    'd/features.csv:2: a feature that is not a number \(got "tp53"\); write numbers; for kinds'
refused 'a missing feature' features.csv 'id,x,y\na,1,2\nb,2,\n' 'd/features.csv:3: a feature that is missing, in column 3 .*mean of its column$'
refused 'a missing feature by a word' features.csv 'id,x,y\na,1,2\nb,NA,3\n' 'd/features.csv:3: a feature that is missing'
refused 'a short row' features.csv 'id,x,y\na,1,2\nb,2\n' 'd/features.csv:3: fewer numbers than in the first row'
refused 'a long row' features.csv 'id,x\na,1\nb,2,3\n' 'd/features.csv:3: more numbers than in the first row'
refused 'one word that is no number' features.csv '1,2\nx,3\n4,5\n' 'd/features.csv:2: a feature that is not a number \(got "x"\)'
refused 'one word in the first row' features.csv 'x,3\n4,5\n6,7\n' 'd/features.csv:1: a feature that is not a number \(got "x"\)'
indexed() { # data frames write the numbers of rows before all other columns
    folder d && status 0 info d --json && mv run.out whole && for f in graph features; do
        awk 'NR == 1 { print "," $0; next } { print NR - 2 "," $0 }' d/$f.csv >t && mv t d/$f.csv
    done && sed -i '1s/gene/id/' d/features.csv && status 0 info d --json && cmp whole run.out
}
ok 'the index of a data frame' indexed
folder d
refused 'names twice' nodes.txt 'a\nb\n' 'd/nodes.txt: the features have a column of names already; keep one of both$'
refused 'values' labels.csv 'id,label\ntp53,0.25\nabl1,1\n' \
    'd/labels.csv: node tp53: a label that is not a class \(got "0.25"\); gnn learns classes, not values'
refused 'a word among numbers' labels.csv 'id,label\ntp53,0\nabl1,1\nmyc,high\n' \
    'd/labels.csv: node myc: a word among labels that are numbers \(got "high"\); write numbers, or names, for all$'
with labels.csv 'id,label\ntp53,high\nabl1,2\nmyc,high\n'
ok 'a number among names is a name' eval 'status 0 info d && grep -qE "^  2 +1$" run.out && grep -qE "^  high +2$" run.out'
refused 'values beside a word for none' labels.csv 'id,label\ntp53,0.5\nabl1,none\n' \
    'd/labels.csv: node tp53: a label that is not a class \(got "0.5"\); gnn learns classes'
refused 'two columns of labels' labels.csv 'id,a,b\ntp53,x,2\n' 'd/labels.csv: 2 columns beside that of the nodes; keep one, or call one label'
refused 'a part that is none' split.csv 'id,set\ntp53,train\nabl1,tset\n' 'd: there are split'
rm d/train.txt d/val.txt d/test.txt
ok 'alone' fails 'd/split.csv: node abl1 is in no part of a split; write train, val, test or unused$' info d
refused 'a node in two lists' val.txt 'tp53\n' 'd/val.txt: node tp53 is in train, too; a node is in one list$'
refused 'features of edges' graph.csv 'source,target,weight,distance\ntp53,abl1,1,2\n' \
    'd/graph.csv:1: a column beside source, target and weight \(got "distance"\); gnn does not learn from features of edges'
refused 'kinds of edges' graph.csv 'source,target,type\ntp53,abl1,binds\n' \
    'd/graph.csv:1: a column beside source, target and weight \(got "type"\); gnn knows one kind of edges: write those of one'
for heading in edge_attr distance timestamp; do
    refused "$heading as a weight" graph.csv "source,target,$heading\ntp53,abl1,0.5\n" \
        "d/graph.csv:1: a column beside source, target and weight \(got \"$heading\"\); a weight grows with how much the nodes mean"
done
refused 'a relation between' graph.tsv 'tp53\tbinds\tabl1\n' 'd/graph.tsv:1: '
refused 'a file of edge features' edge_attr.npy 'x' 'd/edge_attr.npy: features of edges; gnn does not learn from these; make one'
refused 'a file of kinds' node_types.txt 'x' 'd/node_types.txt: kinds of nodes or edges; gnn knows one kind of each; add'
plain_names() { # names only in the graph
    folder d && cp d.numbers/features.csv d/ && rm d/*.txt d/labels.csv &&
        fails 'd/graph.csv:1: source and target are not the first two columns' info d && sed -i 1d d/graph.csv &&
        fails 'd/graph.csv:1: an end of an edge that is not a node \(got ".*"\); nodes are whole numbers from 0 to 11, unless the' info d
}
ok 'names that only the graph has' plain_names

# ---- features of the graph ------------------------------------------------------------------------------

made() { # made HOW COLUMNS FOLDER: by names of the graph, or by its numbers, if there are no features
    folder d && rm d/features.csv d.numbers/features.csv && sed -i 's/0\.\([0-9]*\)$/1/' d/graph.csv d.numbers/graph.csv &&
        status 0 train "$3" --features "$1" --hidden 4 --epochs 20 --report r.json --save mf &&
        grep -q "\"features\": $2, .*\"feature_entries\": 12" r.json && grep -q "\"features\": \"$1\"" r.json &&
        status 0 predict "$3" --features "$1" --load mf -o f.txt
}
ok 'the identity' made identity 12 d
ok 'under names of the graph' eval '[ "$(cut -f 1 f.txt | sort | tr "\n" " ")" = "a, b abl1 alk braf egfr kit kras met myc node ret src tp53 " ]'
ok 'by numbers' made identity 12 d.numbers
ok 'the degree' made degree 32 d
ok 'the degree by numbers' made degree 32 d.numbers
degrees() { # nodes of the same degree, and a place in the graph like each other, are told alike; isolated ones in nodes.txt
    folder d && rm d/features.csv && (printf '%s\n' "${names[@]//\"/}" && echo alone) >d/nodes.txt &&
        status 0 train d --features degree --epochs 2 --report r.json && grep -q '"nodes": 13, ' r.json &&
        fails 'd/graph.csv: 1 of 12 nodes have no features, the first is "' train d --features degree <<<"$(sed -i 3d d/nodes.txt)"
}
ok 'nodes without edges by nodes.txt' degrees
over() { # those of the folder do not count, but its names do
    folder d && status 0 train d --features identity --epochs 2 --save mf && status 0 predict d --features identity --load mf -o f.txt &&
        cut -f 1 f.txt | sed 1d | cmp - n/nodes.txt && fails 'mf: the saved model has 12 features, not 2' predict d --load mf -o Y
}
ok 'in place of others' over
no_rows() { # an array of none is no reason to make some
    folder d && rm d/*.csv d/*.txt && printf '0 1\n' >d/graph.tsv && printf '0\n' >d/labels.txt &&
        printf '%%%%MatrixMarket matrix coordinate real general\n0 3 0\n' >d/features.mtx &&
        fails 'd/graph.tsv: 2 nodes, but there are 0 rows of features' train d --split 1,0
}
ok 'features of no node' no_rows
folder d && rm d/features.csv
ok 'a folder without' fails 'd: there is no features.*; put one there: mtx, npy, npz, csv; or train and predict with --features' train d

# ---- predictions ----------------------------------------------------------------------------------------

folder d
status 0 train d --hidden 4 --epochs 30 --save m
status 0 predict d.numbers --load m -o numbers.txt
predicts() { # by name, under a heading
    status 0 predict d --load m -o p.tsv && head -n 1 p.tsv | grep -qx "node	class" && cut -f 2 p.tsv | sed 1d | cmp - numbers.txt &&
        cut -f 1 p.tsv | sed 1d | cmp - n/nodes.txt
}
ok 'predictions by name' predicts
hash_names() { # names that begin like comments: rows and predictions have them in quotes
    folder d && sed -i 's/\bmyc\b/#myc/; s/^#myc/"#myc"/' d/features.csv d/labels.csv && sed -i /myc/d d/graph.csv &&
        status 0 train d --hidden 4 --epochs 30 --save m && status 0 predict d --load m -o p.tsv &&
        status 0 predict d --load m -o p.csv && grep -q '^"#myc",' p.csv && grep -q '^"#myc"	' p.tsv &&
        rm d/labels.csv && cp p.tsv d/labels.tsv && status 0 info --json d && grep -qF '"unlabelled": 0' run.out &&
        sed -i 's/^"#myc"/#myc/' d/features.csv &&
        fails 'd/features.csv:4: a comment that looks like a row \(got "#myc,2.5,0"\); write the name in quotes if it is one' info d &&
        sed -i 's/^#myc/# myc/' d/features.csv && rm d/labels.tsv && status 0 info --json d && grep -qF '"nodes": 11' run.out
}
ok 'names that begin like comments' hash_names
folder d && sed -i 's/met/src/' d/val.txt
ok 'a node without a label, by name' fails 'd: node src is a validation node but has no label; give it one, or take it out' train d
windows() { # the end of a line is no part of what is shown
    folder d && sed -i 's/$/\r/; 3s/,.*/\r/' d/features.csv && fails 'd/features.csv:3: .*\(got "abl1"\)' info d
}
ok 'lines of Windows in messages' windows
weights() { # weights TABLE PATTERN
    folder d && printf "$1" >w.csv && fails "$2" train d --class-weights w.csv
}
ok 'a class twice among weights' weights 'class,w\nearly,1\nearly,2\n' 'w.csv:3: a second row for this class \(got "early"\); keep one row a class$'
ok 'no weights' weights '' 'w.csv: no heading; name the columns in the first line, as in class,'
from_one() { # from_one NUMBER: labels from there on; a notice if one class is empty
    folder d && sed "s/early/$1/; s/late/$(($1 + 1))/" d/labels.csv >t && mv t d/labels.csv && status 0 train d --epochs 2 &&
        grep -c 'no node has label 0, so one of the 3 classes is empty; number the classes from 0' run.err
}
ok 'labels from 1' eval '[ "$(from_one 1)" = 1 ]'
ok 'labels from 0' eval '[ "$(from_one 0)" = 0 ]'
drawn() { # after --split the nodes that it left to test are judged, without those of the training
    folder d && rm d/train.txt d/val.txt d/test.txt && sed -i 's/NA$/late/; s/myc;/myc;early/' d/labels.csv &&
        status 0 train d --split 1,1 --seed 5 --hidden 4 --epochs 30 --save m --report r.json && status 0 predict d --load m -o p.tsv &&
        grep -qF "(test accuracy $(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' r.json | head -n 1 | awk '{ printf "%.4f", $1 }'), macro F1 " run.err &&
        grep -q ", of the nodes that the training's --split left)" run.err && sed -i 's/^kit;late/kit;early/' d/labels.csv &&
        status 0 predict d --load m -o p.tsv && grep -q "of 9 labelled nodes)" run.err
}
ok 'what --split left is judged' drawn
swapped() { # swapped COMMAND OUTPUT: columns of features in another order are brought into the model's by their names
    folder d && status 0 train d --hidden 4 --epochs 30 --save m && status 0 $1 && cp $2 before &&
        sed -i 's/,\([^,]*\),\([^,]*\)$/,\2,\1/' d/features.csv && status 0 $1 && cmp $2 before
}
ok 'columns of features in another order' swapped 'predict d --load m --scores -o p.txt' p.txt
ok 'also to go on' swapped 'train d --resume m --epochs 40 --save m2' m2
other_features() { # other_features HEADING
    folder d && sed -i "1s/.*/$1/" d/features.csv && fails 'd: there is no feature y, which the model in m has' predict d \
        --load m -o Y && fails 'd: there is no feature y, which' train d --resume m --epochs 50
}
ok 'another feature' other_features gene,x,z
ok 'a feature twice' other_features gene,x,x
without_headings() { # features without names, by their number
    folder d && sed -i 1d d/features.csv && status 0 predict d --load m --scores -o q.txt &&
        folder d && status 0 predict d --load m --scores -o p.txt && cmp p.txt q.txt
}
ok 'features without headings' without_headings
kept_headings() { # what is converted has the names of features: a model of the table and of the folder are the same bytes
    folder d && rm -rf n && status 0 convert d n && printf 'x\ny\n' | cmp - n/feature_names.txt &&
        status 0 train d --hidden 4 --epochs 30 --save m && status 0 train n --hidden 4 --epochs 30 --save m2 && cmp m m2 &&
        printf 'y\nx\n' >n/feature_names.txt && status 0 predict n --load m --scores -o p.txt &&
        sed -i 1s/.*/gene,y,x/ d/features.csv && status 0 predict d --load m --scores -o q.txt && cmp p.txt q.txt &&
        status 0 predict n --load m2 --scores -o q.txt && cmp p.txt q.txt
}
ok 'convert keeps headings' kept_headings
no_headings() { # no_headings HEADING: names that a file with one a line cannot hold are left out
    folder d && rm -rf n && sed -i "1s/.*/$1/" d/features.csv && status 0 convert d n && [ ! -e n/feature_names.txt ] && status 0 info n
}
for heading in 'gene,x,x' 'gene," x",y' 'gene,x,"y "'; do ok "but not $heading" no_headings "$heading"; done
feature_names() { # feature_names TEXT PATTERN
    folder d && rm -rf n && status 0 convert d n && printf "$1" >n/feature_names.txt && fails "$2" info n
}
ok 'a name too few' feature_names 'x\n' 'n/feature_names.txt: 1 names for 2 features; write one a column$'
ok 'a name twice' feature_names 'x\nx\n' 'n/feature_names.txt:2: a name that is there twice'
ok 'headings and names' eval 'folder d && printf "x\ny\n" >d/feature_names.txt &&
    fails "d/feature_names.txt: the features have headings already; keep one of both$" info d'
sparse_names() { # of sparse features, which are not moved
    folder d && rm -rf n && status 0 convert d n && rm n/features.npy && {
        printf '%%%%MatrixMarket matrix coordinate real general\n12 2 12\n'
        seq 12 | awk '{ print $1, 1 + $1 % 2, 1 }'; } >n/features.mtx &&
        status 0 train n --hidden 4 --epochs 3 --save m && status 0 predict n --load m -o p.txt &&
        printf 'y\nx\n' >n/feature_names.txt && fails 'n: the sparse features are in another order than in the model in m' \
            predict n --load m -o Y
}
ok 'names of sparse features' sparse_names
csv() { # as a spreadsheet reads it, with scores under the names of classes
    status 0 predict d --load m --scores -o p.csv && head -n 1 p.csv | grep -qx 'node,class,early,late' &&
        sed -n 5p p.csv | grep -qE '^"a, b",(early|late),0?\.[0-9e-]+,[0-9.e-]+$' && [ "$(wc -l <p.csv)" -eq 13 ]
}
ok 'with scores, as CSV' csv
again() { # predictions are labels to train with
    folder d && cp p.tsv d/labels.tsv && rm d/labels.csv && status 0 info --json d && grep -qF '"unlabelled": 0' run.out
}
ok 'predictions are read as labels' again

# ---- links ------------------------------------------------------------------------------------------------

# Two rings of 30 nodes, each node linked with the three that follow it; names by number.
rings() { # rings FOLDER
    rm -rf "$1" && mkdir -p "$1"
    awk 'BEGIN { print "source,target"; for (c = 0; c < 2; c++) for (i = 0; i < 30; i++) for (k = 1; k <= 3; k++)
        print "n" c * 30 + i ",n" c * 30 + (i + k) % 30 }' >"$1/graph.csv"
    awk 'BEGIN { print "id,x,y"; for (i = 0; i < 60; i++) print "n" i "," (i < 30) "," (i >= 30) }' >"$1/features.csv"
}
link="--task link --undirected --features identity --dropout 0 --epochs 100"
train_links() { # without labels; the JSON report says what is printed
    rings r && status 0 train r $link --save ml --report l.json --plot l.svg && cp run.out links.out &&
        grep -qE '^epoch [0-9]+ of 100: validation AUC (0\.[0-9]{4}|1\.0000), test AUC (0\.[89]|1\.)' run.out &&
        grep -q ', 153 training, 9 validation, 18 test links; wrote l.svg, l.json, ml$' run.err &&
        grep -q '"task": "link"' l.json && grep -q '"test_auc": ' l.json && grep -q '"hits_at_20": null' l.json &&
        grep -q 'AUC</text>' l.svg
}
ok 'links are learnt' train_links
same_links() { status 0 train r $link --threads 3 --save other && cmp ml other; }
ok 'the same on any number of threads' same_links
resumed() { # a signal or an end later, to the bit
    status 0 train r $link --epochs 40 --save part && status 0 train r --resume part --features identity --epochs 100 --save whole && cmp whole ml
}
ok 'resumed to the last bit' resumed
best_links() {
    status 0 predict r --load ml --features identity --links 5 -o b.csv && [ "$(wc -l <b.csv)" -eq 6 ] &&
        head -n 1 b.csv | grep -qx 'source,target,probability' && grep -q 'wrote b.csv (5 pairs)$' run.err &&
        ! sed 1d b.csv | cut -d, -f 1,2 | grep -qxFf - r/graph.csv && sed 1d b.csv | cut -d, -f 3 | sort -gr | cmp - <(sed 1d b.csv | cut -d, -f 3) &&
        cut -d, -f 1,2 b.csv >pairs.csv && status 0 predict r --load ml --features identity --pairs pairs.csv -o c.csv && cmp b.csv c.csv
}
ok 'the best new links, and their pairs' best_links
pairs() { # tabs and blanks, both orders of a pair, an array
    printf 'n0 n1\nn1\tn0\nn7,n7\n' >p.txt && status 0 predict r --load ml --features identity --pairs p.txt -o q.tsv &&
        [ "$(sed -n 2p q.tsv | cut -f 3)" = "$(sed -n 3p q.tsv | cut -f 3)" ] && [ "$(wc -l <q.tsv)" -eq 4 ] &&
        status 0 predict r --load ml --features identity --pairs p.txt -o q.npy && [ "$(wc -c <q.npy)" -eq 140 ]
}
ok 'pairs of a file' pairs
bad_pairs() { printf "$1" >p.txt && fails "$2" predict r --load ml --features identity --pairs p.txt -o Q; }
ok 'a pair of an unknown node' bad_pairs 'source,target\nn0,n60\n' 'p.txt:2: this is not a node of the graph .*; write names of nodes$'
ok 'a pair of one' bad_pairs 'n0\n' 'p.txt:1: one node '
ok 'a pair of three' bad_pairs 'n0,n1,n2\n' 'p.txt:1: more than two nodes'
weights() { # safetensors know the task
    status 0 train r $link --save w.safetensors && status 0 predict r --load w.safetensors --features identity --pairs pairs.csv -o d.csv &&
        cmp c.csv d.csv
}
ok 'weights of a model of links' weights
ok 'links ask for pairs' fails 'ml: a model of links; say which with --pairs FILE or --links N$' predict r --load ml --features identity -o Q
ok 'classes have no pairs' eval 'folder d && fails "m: a model of classes; --links goes with one of links" predict d --load m --links 3 -o Q'
ok 'no scores of links' fails 'ml: a model of links, which has no classes; leave --scores out$' predict r --load ml --features identity --links 3 -o Q --scores
wrong() { status 2 "${@:2}" && grep -q -- "$1" run.err; }
ok 'links by nodes of a class' wrong '--split takes shares of the links' train r --task link --split 20,30
ok 'links by a sampler' wrong 'leave --sampler out' train r --task link --sampler node
ok 'negatives of classes' wrong '--negatives goes with --task link' train d --negatives 2
ok 'pairs and links' wrong 'one of them at a time' predict r --load ml --pairs p.txt --links 3 -o Q
ok 'links as an array' wrong '--links writes pairs' predict r --load ml --links 3 -o Q.npy
embedded() { # dot products of embeddings are the logits of links
    status 0 predict r --load ml --features identity --embeddings e.tsv --pairs p.txt -o q.tsv && awk -F '\t' '
        FNR == NR { for (i = 2; i <= NF; i++) e[$1, i] = $i; n = NF; next }
        FNR > 1 { s = 0; for (i = 2; i <= n; i++) s += e[$1, i] * e[$2, i]; p = 1 / (1 + exp(-s)); if (p - $3 > 1e-4 || $3 - p > 1e-4) exit 1 }' e.tsv q.tsv
}
printf 'n0 n1\nn0 n40\n' >p.txt
ok 'embeddings of a model of links' embedded

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
