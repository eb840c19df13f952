#!/bin/bash
# gnn's folders: every file in every format, refusals with their files and lines, gnn info, gnn convert from each
# layout, graphs made up; and against numpy and scipy.
#   GNN  the tool [$BUILD/bin/gnn]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${GNN:-${BUILD:-build}/bin/gnn}") || exit 1
cora=$PWD/data/cora build=$(realpath "${BUILD:-build}")
. tests/support/scipy.sh
. tests/support/cli.sh

fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr, nothing on stdout, no folder X
    local expected=$1 pattern=$2
    shift 2
    rm -rf X
    status "$expected" "$@" && [ ! -s run.out ] && [ ! -e X ] && [ "$(wc -l <run.err)" -eq 1 ] &&
        grep -qE -- "^gnn: .*$pattern" run.err || { cat run.err; return 1; }
}
says() { # says FIELD=VALUE... FOLDER [OPTION]: what gnn info --json says of it
    local folder=${*: -1} pair
    status 0 info --json $folder && tr -d '\n' <run.out >info.json || return 1
    for pair in "${@:1:$#-1}"; do
        grep -qF -- "\"${pair%%=*}\": ${pair#*=}" info.json || { echo "not $pair:"; cat info.json; return 1; }
    done
}
folder() { # folder NAME: a new one with three nodes, all of it text
    rm -rf "$1"
    mkdir "$1"
    printf '0\t1\n1\t2\n' >"$1/graph.tsv"
    printf '1,0\n0,1\n1,1\n' >"$1/features.csv"
    printf '0\n1\n1\n' >"$1/labels.txt"
}
with() { # with FILE TEXT: folder d, one file of it replaced (its other formats removed); FILE - is left out
    folder d
    rm -f "d/${1%%.*}".*
    [ "$2" = - ] || printf -- "$2" >"d/$1"
}
same_labels() { # same_labels FOLDER FOLDER: gnn info says the same of their classes
    says nodes=3 "$1" && sed 's/.*"multi_label"/"multi_label"/' info.json >a.json && says nodes=3 "$2" &&
        sed 's/.*"multi_label"/"multi_label"/' info.json | cmp - a.json
}

# ---- folders --------------------------------------------------------------------------------------------

ok 'Cora' says nodes=2708 edges=10556 symmetric=true weighted=false loops=0 isolated=0 max_degree=168 features=1433 \
    sparse=true filled=49216 unlabelled=0 "$cora"
ok 'its split' grep -qF '"split": {"train": 140, "val": 500, "test": 1000, "unused": 1068}' info.json
ok 'its classes' grep -qF '[{"name": "0", "nodes": 351}, {"name": "1", "nodes": 217}' info.json
ok 'as text' eval 'status 0 info "$cora" && grep -q "^features   1433, sparse, 49216 filled (1.27 %)$" run.out'
folder d
ok 'text' says nodes=3 edges=2 symmetric=false features=2 sparse=false filled=6 split=null isolated=0 d
ok 'undirected' says edges=4 symmetric=true mean_degree=1.3333333333333333 'd --undirected'
with labels.txt 'red\nblue\nred\n'
ok 'classes by name' says 'classes=[{"name": "blue", "nodes": 1}, {"name": "red", "nodes": 2}]' d
for text in 'red\n-1\nblue\n' '-1\nred\nblue\n' 'red\nblue\n-1\n'; do
    with labels.txt "$text"
    ok 'unknown ones among names' says unlabelled=1 \
        'classes=[{"name": "blue", "nodes": 1}, {"name": "red", "nodes": 1}]' d
done
for missing in nan NaN NA N/A null none '""' ''; do
    with labels.txt "1.0\n$missing\n0.0\n"
    ok "an unknown class written as '$missing'" says unlabelled=1 \
        'classes=[{"name": "0", "nodes": 1}, {"name": "1", "nodes": 1}]' d
    with labels.csv "class\nred\n$missing\nblue\n"
    sed -i 1d d/labels.csv
    ok "among names" says unlabelled=1 'classes=[{"name": "blue", "nodes": 1}, {"name": "red", "nodes": 1}]' d
done
with labels.txt '1\nnan\n0\n'
ok 'how many are unknown' eval 'status 0 convert d n &&
    grep -q "^gnn: read d, 3 nodes (1 of unknown class), 2 directed edges, 2 features, 2 classes; wrote n in" run.err'
ok 'it stays unknown when converted' eval 'rm -rf n && status 0 convert d n && same_labels d n'
with labels.txt '-1\n-1\nred\n'
ok 'one name' says unlabelled=2 'classes=[{"name": "red", "nodes": 1}]' d
with labels.txt 'class\n-1\n1\n0\n'
ok 'unknown ones behind a heading' says unlabelled=1 \
    'classes=[{"name": "0", "nodes": 1}, {"name": "1", "nodes": 1}]' d
with classes.txt 'yes\nno\nmaybe\n'
ok 'names for numbers' says 'classes=[{"name": "yes", "nodes": 1}, {"name": "no", "nodes": 2}, {"name": "maybe"' d
with labels.txt '0\n-1\n5\n'
ok 'unknown labels' says unlabelled=1 d
with labels.mtx '%%%%MatrixMarket matrix coordinate pattern general\n3 2 3\n1 1\n1 2\n3 1\n'
ok 'several classes a node' says multi_label=true unlabelled=1 'classes=[{"name": "0", "nodes": 2}' d
with labels.txt -
ok 'without labels' says unlabelled=3 'classes=[]' d
with split.txt 'train\nval\ntest\n'
ok 'a split by words' says 'split={"train": 1, "val": 1, "test": 1, "unused": 0}' d
with train.txt '2\n'
ok 'a split by lists' says 'split={"train": 1, "val": 0, "test": 0, "unused": 2}' d
with graph.metis '3 2\n2\n1 3\n2\n'
ok 'METIS' says edges=4 symmetric=true d
with graph.mtx '%%%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 0.5\n3 1 1\n2 2 4\n'
ok 'weights and loops' says edges=5 symmetric=true weighted=true loops=1 d
with features.mtx '%%%%MatrixMarket matrix array real general\n3 1\n1\n0\n-2\n'
ok 'dense Matrix Market' says features=1 sparse=false d
ok 'files of others are passed over' eval 'touch d/README d/graph d/features.csv.tmp.7 "d/labels.txt~" d/.hidden &&
    says features=1 d'

numbered() { # numbered FIRST: five nodes whose features begin with their numbers, as a notice says, once
    folder i
    printf 'number,x,y\n' >i/features.csv
    for ((k = $1; k < $1 + 5; k++)); do echo "$k,0,$((k % 2))"; done >>i/features.csv
    printf '0\n0\n1\n1\n0\n' >i/labels.txt
    printf '0\n2\n' >i/train.txt
    printf '1\n' >i/test.txt
    for command in 'info i' 'train i --epochs 1'; do
        status 0 $command && [ "$(grep -c . run.err)" -le 3 ] &&
            grep -q "^gnn: i: the first feature of each node is its number, from $1; .*leave it out$" run.err ||
            return 1
    done
    rm -rf n && status 0 convert --edges i/graph.tsv --features i/features.csv --labels i/labels.txt n &&
        grep -q '^gnn: i/features.csv: the first feature of each node is its number' run.err &&
        [ "$(wc -l <run.err)" -eq 2 ] && rm -rf n || return 1
    for command in 'info i' 'train i --epochs 1' 'convert --edges i/graph.tsv --features i/features.csv --labels i/labels.txt n'; do
        status 0 $command --quiet && [ ! -s run.err ] || return 1
    done
}
ok 'a table that begins with numbers of nodes from 0' numbered 0
ok 'from 1' numbered 1
not_numbered() { # features that do not count, or are alone
    numbered 0 && sed -i '$s/^4/3/' i/features.csv && status 0 info i && [ ! -s run.err ] &&
        printf '0\n1\n2\n3\n4\n' >i/features.csv && status 0 info i && [ ! -s run.err ]
}
ok 'others are no matter' not_numbered
shuffled() { # numbers of nodes in another order than the nodes'
    folder i && printf '0\n0\n1\n1\n0\n' >i/labels.txt && printf 'number,x,y\n3,0,1\n1,0,1\n4,0,1\n5,1,1\n2,0,0\n' >i/features.csv &&
        status 0 info i && grep -q 'is its number, from 1; .*, or leave it out and sort by it: rows are nodes in the order of the file$' run.err &&
        sed -i 's/^4,/3,/' i/features.csv && status 0 info i && [ ! -s run.err ]
}
ok 'numbers that are not in order' shuffled

behind() { # numbers of nodes in another column than the first
    folder i && printf '0\n0\n1\n1\n0\n' >i/labels.txt
    printf 'x,y,customer\n0,1,3\n0,1,1\n0,1,4\n1,1,5\n0,0,2\n' >i/features.csv && status 0 info i &&
        grep -q '^gnn: i: the feature "customer" of each node is its number, from 1; if ' run.err
}
ok 'numbers in another column' behind
places() { # heading of an edge list of numbers that puts source and target elsewhere
    folder i && rm -f i/graph.* && printf '0\n0\n1\n' >i/labels.txt && printf "$1" >i/graph.csv && status 1 info i && grep -qF "$2" run.err
}
ok 'numbered edges with the target first' places 'target,source\n1,0\n' 'i/graph.csv:1: source and target are not the first two columns'
ok 'numbered edges behind an index' places ',source,target\n0,1,0\n' 'i/graph.csv:1: a first column without a name'

# ---- what is refused ------------------------------------------------------------------------------------

ok 'no folder named' fails 2 'no folder; see gnn info --help' info
ok 'an unknown option' fails 2 'unknown option "--nix"; see gnn info --help' info --nix d
ok 'a wrong number of threads' fails 2 '--threads takes a whole number' info d --threads=0
ok 'no such folder' fails 1 'nowhere: No such file or directory; give a folder with graph' info nowhere
ok 'a file' fails 1 'Not a directory' info d/labels.txt
refused() { # refused NAME FILE TEXT PATTERN
    with "$2" "$3"
    ok "$1" fails 1 "$4" convert d X
}
refused 'no graph' graph.tsv - 'd: there is no graph.\*; put one there'
refused 'no features' features.csv - 'd: there is no features.\*'
refused 'no labels' labels.txt - 'd: there is no labels.\*'
with graph.tsv '0 1\n'; cp d/graph.tsv d/graph.csv
ok 'two graphs' fails 1 'd: there are graph.csv and graph.tsv; keep one' convert d X
refused 'a node that is none' graph.tsv '0 1\n1 3\n' \
    'd/graph.tsv:2: an end of an edge that is not a node \(got "3"\); nodes are whole numbers from 0 to 2, unless the features name them \(subtract 1 if yours begin at 1\)$'
refused 'a node far from all' graph.tsv '0 1\n1 4\n' \
    'd/graph.tsv:2: an end of an edge that is not a node \(got "4"\); nodes are whole numbers from 0 to 2, unless the features name them$'
refused 'decimal commas between blanks' features.csv '1,5 2,5\n0,5 1,5\n0,5 0,5\n' \
    'd/features.csv:1: two kinds of separators \(got "1,5 2,5"\); use one; decimals are written as 1.5, not 1,5$'
refused 'decimal commas between semicolons' features.csv 'x;y\n1,5;2\n2,5;1\n3,5;1\n' \
    'd/features.csv:2: a comma within a number, which separates numbers here \(got "1,5;2"\); write decimal points$'
refused 'decimal commas beside names' features.csv 'id;x\na;1,5\nb;2\nc;3\n' \
    'd/features.csv:2: a feature that is not a number \(got "1,5"\); decimals are written as 1.5, not 1,5$'
refused 'a graph that is not square' graph.mtx '%%%%MatrixMarket matrix coordinate pattern general\n3 4 0\n' \
    'd/graph.mtx:2: rows and columns differ'
refused 'a graph of another size' graph.mtx '%%%%MatrixMarket matrix coordinate pattern general\n4 4 0\n' \
    'd/graph.mtx: 4 nodes, but there are 3 rows of features'
refused 'too few rows of features' features.csv '1\n2\n' 'd/graph.tsv:2: an end of an edge that is not a node'
refused 'too many rows of features' features.csv '1\n2\n3\n4\n' 'd/labels.txt: 3 labels for 4 nodes'
refused 'rows of unequal length' features.csv '1,2\n3\n' 'd/features.csv:2: fewer numbers'
refused 'NaN among features' features.csv '1\nnan\n3\n' 'd/features.csv:2: a feature that is not a number \(got "nan"\)'
refused 'names that only the features have' features.csv 'name,x\na,1\nb,2\nc,0\n' \
    'd/graph.tsv: 3 of 3 nodes have no features, the first is "0"; add their rows'
refused 'words among features' features.csv 'x,y\n1,a\n2,b\n3,c\n' \
    'd/features.csv:2: a feature that is not a number \(got "a"\); write numbers$'
refused 'a negative label' labels.txt '0\n-2\n1\n' 'd/labels.txt:2: a label that is not a class \(got "-2"\)'
refused 'two classes by signs' labels.txt '-1\n+1\n-1\n' 'd/labels.txt:2: a label that is not a class \(got "\+1"\)'
refused 'a label that is not a class' labels.txt '0\n70000\n1\n' 'd/labels.txt:2: a label that is not a class'
refused 'too few labels' labels.txt '0\n1\n' \
    'd/labels.txt: 2 labels for 3 nodes; write one a node, -1 where it is unknown$'
refused 'a heading before names' labels.csv 'colour\nred\nred\nblue\n' \
    'd/labels.csv: 4 labels for 3 nodes; write one a node, -1 where it is unknown, and no heading before names$'
refused 'nodes beside their names' labels.csv 'paper,label\n0,red\n1,red\n2,blue\n' \
    'd/labels.csv: no two lines are the same, as in a table of nodes and classes; call the column of nodes id, or write'
refused 'nodes by their names' labels.csv 'p7,red\np3,red\np5,blue\n' 'd/labels.csv: no two lines are the same'
refused 'beside their classes' labels.txt '1 4\n2 4\n3 0\n' 'd/labels.txt:1: several numbers \(got "1 4"\); write the class'
refused 'values in place of classes' labels.txt '0.37\n0.91\n0.12\n' \
    'd/labels.txt:1: a label that is not a class \(got "0.37"\); gnn learns classes, not values: sort these into classes'
refused 'behind a heading and what is missing' labels.csv 'y\nNA\n0.91\n0.12\n' 'd/labels.csv:3: a label that is not a class'
refused 'with decimal commas' labels.csv '0,37\n0,91\n0,12\n' 'd/labels.csv:1: several numbers \(got "0,37"\)'
refused 'an empty line too many' labels.txt '0\n\n1\n1\n' \
    'd/labels.txt: 4 labels for 3 nodes; .*; an empty line between two others is an unknown label$'
refused 'a mask in place of a list' train.txt '1\n0\n1\n' 'd/train.txt: node 1 is there twice; .*mask'
with labels.txt '1 star\n5 stars\n5 stars\n'
ok 'names that begin with numbers' status 0 info d
refused 'decimal commas' features.csv '0,5;0,25\n1;0\n0;1\n' \
    'd/features.csv:1: a comma within a number, which separates numbers here \(got "0,5;0,25"\); write decimal points'
refused 'behind a heading' features.tsv 'x\ty\n0,5\t0,25\n1\t0\n0\t1\n' 'd/features.tsv:2: a comma within a number'
refused 'text in UTF-16' labels.txt '\377\3760\0\n\0001\0\n\0001\0\n\0' 'd/labels.txt: text in UTF-16'
refused 'a label without a name' classes.txt 'a\n' 'd/labels.txt: label 1 is out of range: d/classes.txt names 1'
refused 'a name that is there twice' classes.txt 'a\na\n' 'd/classes.txt:2: a name that is there twice'
refused 'a split that is too short' split.txt 'train\n' 'd/split.txt: 1 entries for 3 nodes'
refused 'an unknown word in a split' split.txt 'train\nx\n' \
    'd/split.txt:2: no such word or number \(got "x"\); write unused, train, val, test, or whole numbers from 0 to 3$'
refused 'a training node that is none' train.txt '0\n3\n' 'd/train.txt:2: a number that is out of range'
refused 'validation without training' val.txt '0\n' 'd: there is no train.\*'
with train.txt '0\n1\n'; printf '1\n' >d/test.txt
ok 'a node in two lists' fails 1 'd/test.txt: node 1 is in train, too' convert d X
printf 'train\nval\ntest\n' >d/split.txt
ok 'two kinds of split' fails 1 'd: there are split.\* and train.\*' convert d X
refused 'an archive that is none' graph.npz 'PK\003\004' 'd/graph.npz: the archive has no end; the file is truncated'
refused 'an array that is none' features.npy '\223NUMPY\001' 'd/features.npy: too short for an array'
if command -v gzip >/dev/null; then
    folder d
    gzip d/*
    ok 'compressed files' says nodes=3 edges=2 d
    head -c 30 d/graph.tsv.gz >cut && mv cut d/graph.tsv.gz
    ok 'one that is cut' fails 1 'd/graph.tsv.gz: .*truncated' convert d X
    seq 20000 | gzip >text.gz
    ok 'text in place of an archive' fails 1 'text.gz: no .npz archive; write it with numpy.savez' convert text.gz X
else skip 'no gzip'; fi

# ---- gnn convert ----------------------------------------------------------------------------------------

one_screen() { status 0 "$@" && [ ! -s run.err ] && [ "$(wc -l <run.out)" -le 40 ] && ! grep -E '^.{121}' run.out; }
ok 'gnn info --help' one_screen info --help
ok 'gnn convert --help' one_screen convert -h
ok 'Cora, rewritten' status 0 convert "$cora" c
ok 'what was read and written' eval '[ "$(sed "s/ in [0-9.]* s$//" run.err)" = \
    "gnn: read $cora, 2,708 nodes, 10,556 edges, 1,433 features, 7 classes; wrote c" ]'
ok 'five files' eval '[ "$(ls c | tr "\n" " ")" = "features.npz graph.npz labels.npy split.npy " ]'
same() { # same FOLDER FOLDER: they hold the same, by gnn info
    says nodes="$(says "$1" && sed 's/.*"nodes": \([0-9]*\), "edges.*/\1/' info.json)" "$2" &&
        sed 's/"folder": "[^"]*"//' info.json >b.json && says "$1" && sed 's/"folder": "[^"]*"//' info.json >a.json &&
        cmp a.json b.json
}
ok 'it is the same' same "$cora" c
ok 'and again' eval 'status 0 convert c c2 && cmp c/graph.npz c2/graph.npz && cmp c/features.npz c2/features.npz &&
    cmp c/labels.npy c2/labels.npy && cmp c/split.npy c2/split.npy'
ok 'over itself' eval 'status 0 convert c2 c2 && cmp c/graph.npz c2/graph.npz'
folder d
ok 'not beside other files' fails 1 'd: there is a (graph.tsv|features.csv|labels.txt) already' convert c d
folder own
status 0 convert own own.d
ok 'over a file that is named' fails 2 '"own.d/features.npy" is an input, too: .*see gnn convert --help$' \
    convert --edges own/graph.tsv --features own.d/features.npy --labels own/labels.txt own.d
ok 'from what is neither' fails 1 'd/labels.txt: no .npz archive; .*; the source is a folder, an .npz or .*--edges' \
    convert d/labels.txt X
ok 'from what is not there' fails 1 'nofile: No such file or directory; the source is a folder, an .npz' convert nofile X
ok 'not into a file' fails 1 'give a folder' convert c d/labels.txt
odd=$'odd\nname \033[31m'
ok 'into a folder whose name breaks lines' eval 'status 0 convert c "$odd" && [ "$(wc -l <run.err)" -eq 1 ] &&
    grep -qF "; wrote odd?name ?[31m in " run.err'
ok 'which is shown on one line' fails 1 'odd\?name \?\[31m/none: No such file' info "$odd/none"
ok 'not where no folder is' fails 1 'cannot be written' convert c nowhere/X
with labels.txt 'red\nblue\nred\n'
ok 'names of classes' eval 'rm -rf n && status 0 convert d n && [ "$(tr "\n" " " <n/classes.txt)" = "blue red " ] && same d n'
with labels.mtx '%%%%MatrixMarket matrix coordinate pattern general\n3 2 3\n1 1\n1 2\n3 1\n'
ok 'several classes a node' eval 'rm -rf n && status 0 convert d n && same d n'
folder d
printf 'train\ntest\nval\n' >s.txt
printf 'no\nyes\n' >c.txt
ok 'files from anywhere' status 0 convert --edges d/graph.tsv --features d/features.csv --labels=d/labels.txt f \
    --split s.txt --classes c.txt --undirected
ok 'what they hold' says edges=4 'split={"train": 1, "val": 1, "test": 1, "unused": 0}' \
    'classes=[{"name": "no", "nodes": 1}, {"name": "yes", "nodes": 2}]' f
ok 'not all of them' fails 2 '--edges, --features and --labels go together' convert --edges d/graph.tsv X
ok 'files beside a source' fails 2 'a source "c" beside files' convert --edges d/graph.tsv c X
ok 'no target' fails 2 'no folder to write to' convert c
ok 'no source' fails 2 'no source' convert
ok 'no value' fails 2 '--split needs a value' convert c X --split
ok 'an unknown option' fails 2 'unknown option "--nix"' convert c X --nix 1
ok 'three places' fails 2 'a third place "Y"' convert c X Y
made=generate:community:2000,10,100,50,50,80,1
ok 'a graph made up' status 0 convert $made g --features 9 --classes 5 --edges 9000
ok 'so it says' grep -q "^gnn: made $made, 2,000 nodes, 9,000 edges, 9 features, 5 classes; wrote g in" run.err
ok 'as it was wanted' says nodes=2000 edges=9000 symmetric=true weighted=false loops=0 features=9 sparse=false \
    unlabelled=0 g
ok 'the same whatever the threads' eval 'status 0 convert $made g1 --features 9 --classes 5 --edges=9000 \
    --threads=1 &&
    cmp g/graph.npz g1/graph.npz && cmp g/features.npy g1/features.npy &&
    cmp g/labels.npy g1/labels.npy && cmp g/split.npy g1/split.npy'
ok 'another with another seed' eval 'status 0 convert $made g2 --seed 2 --features 9 --classes 5 --edges 9000 &&
    ! cmp -s g/graph.npz g2/graph.npz && ! cmp -s g/features.npy g2/features.npy'
ok 'more edges than it has' fails 1 'it has [0-9]* edges, not 100000' convert generate:uniform:100,3 X --edges 100000
ok 'half an edge' fails 2 '--edges takes an even number' convert generate:uniform:100,3 X --edges 101
ok 'no such kind' fails 1 'nix' convert generate:nix:3 X
ok 'not square' fails 1 'square' convert generate:uniform:100,3,50 X
ok 'labels for it' fails 2 'labels and a split of its own' convert generate:uniform:100,3 X --labels s.txt
write_error() { (trap '' XFSZ; ulimit -f 60; "$tool" convert c X 2>/dev/null; [ $? -eq 1 ]) && [ ! -e X ]; }
ok 'a write error leaves nothing' write_error
with graph.tsv -
mkfifo d/graph.tsv
stops() { # stops ARGUMENTS...: a signal ends what waits for a pipe that nobody writes to
    timeout --foreground --preserve-status -s INT -k 10 1 "$tool" "$@" >run.out 2>run.err
    [ $? -eq 130 ] && [ ! -s run.out ] && [ ! -e X ]
}
ok 'a signal ends gnn info' stops info d
ok 'a signal ends gnn convert' stops convert d X

# ---- numpy and scipy ------------------------------------------------------------------------------------

if find_scipy >venv.out; then
    ok 'they read what is written' "$python" - <<'PY'
import numpy as np, scipy.sparse as sp
a, x = sp.load_npz('c/graph.npz'), sp.load_npz('c/features.npz')
y, s = np.load('c/labels.npy'), np.load('c/split.npy')
assert a.shape == (2708, 2708) and a.nnz == 10556 and (a != a.T).nnz == 0 and a.has_canonical_format
assert x.shape == (2708, 1433) and x.nnz == 49216 and (x.data == 1).all()
assert y.dtype == np.int32 and list(np.bincount(y)) == [351, 217, 418, 818, 426, 298, 180]
assert list(np.bincount(s)) == [1068, 140, 500, 1000]
d = np.load('g/features.npy')
assert d.shape == (2000, 9) and d.dtype == np.float32 and abs(d.mean()) < 0.05 and abs(d.std() - 1) < 0.05
g = sp.load_npz('g/graph.npz')
assert g.nnz == 9000 and (g != g.T).nnz == 0 and g.diagonal().sum() == 0
PY
    "$python" - <<'PY'
import json, os, shutil, zipfile
import numpy as np, scipy.sparse as sp
random = np.random.default_rng(7)
def folder(name, a, x, y, s=None):
    os.mkdir(name)
    sp.save_npz(name + '/graph.npz', a)
    if sp.issparse(x): sp.save_npz(name + '/features.npz', x, compressed=False)
    else: np.save(name + '/features.npy', x)
    np.save(name + '/labels.npy', y)
    if s is not None: np.save(name + '/split.npy', s)
a = sp.random(60, 60, 0.1, 'csr', random_state=3)
x, y, s = random.normal(size=(60, 7)), random.integers(0, 4, 60), random.integers(0, 4, 60)
folder('p32', a.astype('f4'), x.astype('f4'), y.astype('i4'), s.astype('u1'))
folder('p64', a, np.asfortranarray(x), y, s)
folder('psparse', a.astype('f4'), sp.csr_matrix(np.where(x > 0.5, x, 0)), y)
folder('ptargets', (a > 0).astype('i8'), x.astype('>f4'), random.integers(0, 2, (60, 5)).astype(bool))
u = a.copy()
u.indices, u.data, u.has_sorted_indices = u.indices[::-1].copy(), u.data[::-1].copy(), False
u.indptr = u.nnz - u.indptr[::-1]
folder('punsorted', u, x, y)
folder('pwide', a, x, y)
z = np.load('pwide/graph.npz')
np.savez('pwide/graph.npz', **{k: z[k].astype('i8') if k in ('indices', 'indptr') else z[k] for k in z.files})
folder('pnan', a, np.where(np.arange(60)[:, None] == 17, np.nan, x), y)
folder('pnegative', a, x, np.where(np.arange(60) == 9, -5, y))
folder('prows', a, x[:59], y)
folder('pwrong', a, x, y)
b = bytearray(open('pwrong/graph.npz', 'rb').read())
with zipfile.ZipFile('pwrong/graph.npz') as f: at = f.getinfo('data.npy').header_offset
b[at + 200] ^= 1
open('pwrong/graph.npz', 'wb').write(b)
folder('pcut', a, x, y)
b = open('pcut/graph.npz', 'rb').read()
open('pcut/graph.npz', 'wb').write(b[:len(b) // 2])
folder('pobject', a, x, np.array([{}] * 60, dtype=object))
folder('prect', a[:, :50], x, y)
sp.save_npz('csc.npz', a.tocsc())
os.mkdir('saint')
sp.save_npz('saint/adj_full.npz', a > 0)
np.save('saint/feats.npy', x)
json.dump({str(i): int(y[i]) for i in random.permutation(60)}, open('saint/class_map.json', 'w'))
json.dump({'tr': list(range(30)), 'va': list(range(30, 40)), 'te': list(range(40, 60))}, open('saint/role.json', 'w'))
t = sp.csr_matrix(np.where(x > 0, x, 0).astype('f4'))
np.savez_compressed('bench.npz', adj_data=a.data, adj_indices=a.indices, adj_indptr=a.indptr, adj_shape=a.shape,
                    attr_data=t.data, attr_indices=t.indices, attr_indptr=t.indptr, attr_shape=t.shape, labels=y,
                    class_names=np.array(['a', 'b', 'c', 'd']))
gaps = np.where(np.arange(60) % 7 == 3, np.nan, y)
folder('pgaps', a.astype('f4'), x.astype('f4'), np.where(np.isnan(gaps), -1, gaps).astype('i4'), s.astype('u1'))
folder('pfloat', a.astype('f4'), x.astype('f4'), gaps, s.astype('u1'))
folder('pvalues', a, x, x[:, 0])
os.mkdir('gapsaint')
for name in ('adj_full.npz', 'feats.npy', 'role.json'): shutil.copy('saint/' + name, 'gapsaint/' + name)
json.dump({str(i): float(gaps[i]) for i in range(60)}, open('gapsaint/class_map.json', 'w'))
parts = dict(adj_data=a.data, adj_indices=a.indices, adj_indptr=a.indptr, adj_shape=a.shape, attr_matrix=x)
np.savez('gaps.npz', labels=gaps, **parts)
np.savez('values.npz', labels=x[:, 0], **parts)
np.savez('dense.npz', adj_data=a.data, adj_indices=a.indices, adj_indptr=a.indptr, adj_shape=a.shape, attr_matrix=x,
         labels=y)
PY
    ok 'what they write' says nodes=60 edges=360 weighted=true features=7 sparse=false p32
    for kind in p64 psparse ptargets punsorted pwide; do ok "$kind" says nodes=60 edges=360 features=7 $kind; done
    ok 'the same in 64 bits and Fortran order' eval 'status 0 convert p32 q32 && status 0 convert p64 q64 &&
        cmp q32/features.npy q64/features.npy && cmp q32/labels.npy q64/labels.npy && cmp q32/graph.npz q64/graph.npz'
    ok 'sorted' env GNN_TOOL="$tool" "$python" - <<'PY'
import subprocess, os, numpy as np, scipy.sparse as sp
subprocess.run([os.environ['GNN_TOOL'], 'convert', 'punsorted', 'qunsorted'], check=True)
a, b = sp.load_npz('punsorted/graph.npz').toarray().astype('f4'), sp.load_npz('qunsorted/graph.npz')
assert b.has_canonical_format and (a == b.toarray()).all()
PY
    ok 'GraphSAINT' status 0 convert saint qsaint
    ok 'its roles and classes' eval "says 'split={\"train\": 30, \"val\": 10, \"test\": 20, \"unused\": 0}' \
        weighted=false edges=360 qsaint && cmp qsaint/labels.npy q32/labels.npy &&
        cmp qsaint/features.npy q32/features.npy"
    ok 'gnn-benchmark' eval 'status 0 convert bench.npz qbench &&
        says nodes=60 edges=360 sparse=true split=null qbench'
    ok 'with dense attributes' eval 'status 0 convert dense.npz qdense && cmp qdense/features.npy q32/features.npy'
    ok 'NaN' fails 1 'pnan/features.npy: row 17 \(from 0\) has a number that is not finite' convert pnan X
    ok 'a negative label' fails 1 'pnegative/labels.npy: element 9 \(from 0\) is not a class' convert pnegative X
    ok 'a wrong number of rows' fails 1 'prows/graph.npz: 60 nodes, but there are 59 rows' convert prows X
    ok 'a wrong checksum' fails 1 'pwrong/graph.npz: data.npy: (the checksum is wrong|damaged data)' convert pwrong X
    ok 'a cut archive' fails 1 'pcut/graph.npz: the archive has no end; the file is truncated' convert pcut X
    ok 'floats with gaps' eval 'status 0 convert pgaps qgaps && status 0 convert pfloat qfloat &&
        cmp qgaps/labels.npy qfloat/labels.npy'
    ok 'in a class map' eval 'status 0 convert gapsaint qgapsaint && cmp qgaps/labels.npy qgapsaint/labels.npy'
    ok 'in an archive' eval 'status 0 convert gaps.npz qgapsbench && cmp qgaps/labels.npy qgapsbench/labels.npy'
    ok 'values in place of classes' fails 1 \
        'pvalues/labels.npy: element 0 \(from 0\) is not a class \(got "-?0\.[0-9]*"\); gnn learns classes' convert pvalues X
    ok 'in an archive, too' fails 1 'values.npz: element 0 \(from 0\) is not a class' convert values.npz X
    ok 'Python objects' fails 1 'pobject/labels.npy: elements that are not read' convert pobject X
    ok 'a rectangle' fails 1 'prect/graph.npz: 60 rows and 50 columns' convert prect X
    cp csc.npz p32/graph.npz
    ok 'columns' fails 1 'p32/graph.npz: a sparse matrix that is not CSR' convert p32 X
    ok 'another archive' fails 1 'csc.npz: no member attr_matrix.npy' convert csc.npz X
    rm saint/role.json
    ok 'GraphSAINT without roles' fails 1 'saint/role.json: No such file' convert saint X
else skip 'no scipy'; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
