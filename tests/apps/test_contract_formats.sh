#!/bin/bash
# What contract reads from other programs and writes for them: numbers of nodes, compressed outputs, tables of edges,
# DIMACS, arrays and matrices of numpy and scipy, GraphML, columns of tables, names beside formats without them.
#   CONTRACT  the tool [$BUILD/bin/contract]
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${BUILD:-build}") root=$PWD
tool=$(realpath "${CONTRACT:-$build/bin/contract}") || exit 1
. tests/support/scipy.sh
. tests/support/cli.sh

fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr, nothing on stdout, no output X
    local expected=$1 pattern=$2
    shift 2
    rm -f X
    status "$expected" "$@" && [ ! -s run.out ] && [ ! -e X ] && no_leftovers && [ "$(wc -l <run.err)" -eq 1 ] &&
        grep -qE -- "^contract: .*$pattern" run.err || { cat run.err; return 1; }
}
makes() { # makes LINES ARGUMENTS...: what is written, lines joined by bars, tabs replaced by blanks
    local lines=$1
    shift
    status 0 "$@" -o - && [ "$(grep -v '^%%' run.out | tr '\n\t' '| ')" = "$lines" ] && [ "$(wc -l <run.err)" -eq 1 ] ||
        { cat run.out run.err; return 1; }
}

# A square of two pairs.
printf 'a b 1\nb c 2\nc d 4\nd a 8\n' >g.abc
printf 'a x\nb y\nc y\nd z\n' >pairs

# ---- numbers of nodes -----------------------------------------------------------------------------------

printf '%%%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n2 1 1\n3 2 2\n4 3 4\n4 1 8\n' >g.mtx
printf '0\tx\n1\ty\n2\ty\n3\tz\n' >from0
printf '1 x\n2 y\n3 y\n4 z\n' >from1
square='x y 1|x z 8|y y 4|y z 4|'
ok 'nodes of Matrix Market are numbered from 1' makes "$square" g.mtx from1 --to abc
ok 'with --node-base 0 from 0' makes "$square" g.mtx from0 --to abc --node-base 0
ok 'where a file counts from 0 the remedy says so' fails 1 'from0:1: this is not a node .*from 1; give --node-base 0' \
    g.mtx from0 -o X --to abc
printf 'node,age\n0,7\n1,8\n2,9\n3,5\n' >ages
ok 'also in a table of nodes' fails 1 'ages:2: this is not a node of the graph .got "0".*give --node-base 0' \
    g.mtx from1 -o X --to abc --node-output X.n --attributes ages
based_table() {
    status 0 g.mtx from0 -o - --to abc --node-base 0 --node-output n.tsv --attributes ages &&
        [ "$(cut -f 1,6 n.tsv | tr '\n\t' '| ')" = 'group age_mean|x 7|y 8.5|z 5|' ] || { cat n.tsv; return 1; }
}
ok 'which is numbered from 0 as well' based_table
ok 'groups are called by their labels, from 0 if one is 0' makes '0 1 1|0 2 8|1 1 4|1 2 4|' g.mtx \
    <(printf '0\n1\n1\n2\n') --to abc
ok 'from 1 if none is' makes '1 2 1|1 3 8|2 2 4|2 3 4|' g.mtx <(printf '1\n2\n2\n3\n') --to abc --node-base 0
ok 'names of groups count as nodes do' makes '0 1 1|0 3 8|1 1 4|1 3 4|' g.mtx <(printf '5\n6\n6\n7\n') --to abc --names \
    --node-base 0 --compact
based_maps() { # nodes and groups of a hierarchy from 0
    status 0 g.mtx -o h.abc --repeat matching --levels 2 --node-base 0 --to-nodes 1 &&
        [ "$(cut -f 1 h.abc.total.map | tr '\n' ' ')" = '0 1 2 3 ' ] &&
        [ "$(cut -f 2 h.abc.total.map | sort -u)" = 0 ] &&
        [ "$(cut -f 1 h.abc.level2.map | tr '\n' ' ')" = '0 1 ' ] || { head h.abc*; return 1; }
    status 0 g.mtx -o h1.abc --repeat matching --levels 2 --to-nodes 1 &&
        awk '{print $1 - 1 "\t" $2 - 1}' h1.abc.level1.map | cmp - h.abc.level1.map
}
ok 'and so do maps of a hierarchy' based_maps
ok 'a map from 0 is read back with the same base' makes '0 0 30|' g.mtx h.abc.total.map --to tsv --node-base 0
printf '1 2 1\n2 3 2\n' >short
printf 'n\nx\ny\ny\n' >four
ok 'a list for a list of edges that may lack node 0' fails 1 'from 1 to 3, or 0 has no edges; give --node-base 0 or 1' \
    short four -o X --to abc
ok 'is told by --node-base' makes 'x y 1|y y 4|' short four --to abc --node-base 0
ok 'a node 0 where nodes count from 1' fails 1 'the graph has a node 0; give --node-base 0' <(printf '0 1\n') four -o X \
    --to abc --node-base 1
status 0 g.mtx <(printf '1\n2\n2\n3\n') -o g.mcl
ok 'ids of an mcl matrix are no numbers to shift' fails 1 'have ids: leave --node-base out' g.mcl from1 -o X --to abc \
    --node-base 1
status 0 g.mtx <(printf '1\n2\n3\n4\n') -o g.bin
ok 'nodes of a binary matrix are numbered from 1' makes "$square" g.bin from1 --to abc
ok 'or from 0' makes "$square" g.bin from0 --to abc --node-base 0

# ---- compressed outputs ---------------------------------------------------------------------------------

if command -v gzip >/dev/null; then
    packed() { # the same files as without .gz, compressed
        local file
        status 0 g.abc pairs -o p.mtx --names --node-output p.tsv --report p.json &&
            status 0 g.abc pairs -o p.mtx.gz --names --node-output p.tsv.gz --report p.json.gz &&
            [ ! -e p.mtx.gz.tab ] && no_leftovers && gzip -t p.json.gz || return 1
        for file in p.mtx p.mtx.tab p.tsv; do [ -s $file ] && gzip -dc $file.gz | cmp - $file || return 1; done
    }
    ok 'a name that ends in .gz compresses the graph, its names, figures and the report' packed
    packed_hierarchy() {
        local file
        status 0 g.abc -o h.abc --repeat matching --levels 1 && status 0 g.abc -o h.abc.gz --repeat matching --levels 1 ||
            return 1
        for file in h.abc h.abc.total.map h.abc.level1.map; do gzip -dc $file.gz | cmp - $file || return 1; done
    }
    ok 'and the maps of a hierarchy' packed_hierarchy
    read_back() {
        status 0 g.abc pairs -o p.bin.gz && makes 'x y 1|x z 8|y y 4|y z 4|' p.bin.gz same --to abc
    }
    printf 'x x\ny y\nz z\n' >same
    ok 'a compressed output is read back' read_back
    same_bytes() {
        cp p.mtx.gz first.gz && sleep 1 && status 0 g.abc pairs -o p.mtx.gz --names && cmp first.gz p.mtx.gz
    }
    ok 'a compressed output has the same bytes in each run' same_bytes
    through_a_pipe() {
        mkfifo pipe.gz && { gzip -dc <pipe.gz >piped & } && status 0 g.abc pairs -o pipe.gz --to mtx && wait $! &&
            cmp piped p.mtx
    }
    ok 'a pipe whose name ends in .gz gets compressed bytes' through_a_pipe
    ok 'an output that is the input is refused' fails 2 'is an input, too' p.mtx.gz pairs -o p.mtx.gz
    ok 'an ending within .gz must tell the format' fails 2 'does not tell the format' g.abc pairs -o X.gz
    if [ -e /dev/full ]; then
        ln -s /dev/full full.gz
        ok 'a full disk is reported' fails 1 'No space left' g.abc <(printf "a 1\nb 2\nc 2\nd 3\n") -o full.gz --to mtx
    else skip 'no /dev/full'; fi
else skip 'no gzip'; fi

# ---- tables of edges ------------------------------------------------------------------------------------

table='source,target,weight|x,y,1|x,z,8|y,y,4|y,z,4|'
printf 'source,target,weight\na,b,1\nb,c,2\nc,d,4\nd,a,8\n' >g.csv
printf 'Id;Source;Target;Type;Weight\n0;a;b;U;1\n1;b;c;U;2\n2;c;d;U;4\n3;d;a;U;8\n' >columns.txt
tail -n +2 g.csv >bare.csv
ok 'a table is written with a heading, each undirected edge once' makes "$table" g.abc pairs --to csv
ok 'a table is known by its ending' makes "$table" bare.csv pairs --to csv
ok 'or by its heading' makes "$table" columns.txt pairs --to csv
ok 'and is named in the closing line' grep -q 'read columns.txt as a table of edges, 4 nodes, 4 edges' run.err
ok 'a table from standard input' eval 'makes "$table" - pairs --to csv <g.csv'
ok 'or with --from csv' makes "$table" <(cat bare.csv) pairs --from csv --to csv
ok 'a directed table' makes 'source,target,weight|x,y,1|y,y,2|y,z,4|z,x,8|' g.csv pairs --to csv --directed
named_table() { # names with commas and quotes survive
    printf 'p "x"\t\\a, b\t3\n' >odd.abc && printf '1 p\n' >none
    status 0 odd.abc none -o odd.csv --unknown drop --unlabelled keep --names &&
        [ "$(tail -n 1 odd.csv)" = '"p ""x""","\a, b",3' ] || { cat odd.csv; return 1; }
    status 0 odd.csv none -o odd.tsv --unknown drop --unlabelled keep --names --directed &&
        printf 'p "x"\t\\a, b\t3\n' | cmp - odd.tsv
}
ok 'names with commas and quotes come back' named_table
cp bare.csv bare.txt
printf 'a,b\n"c,d\n' >open.csv
printf 'source,target,type\na,b,directed\n' >type.csv
printf 'a,b\nc\n' >cut.csv
ok 'the comma is named' fails 1 'bare.txt:1: commas between the fields.*--from csv' bare.txt pairs -o X --to abc
ok 'a quote that is left open' fails 1 'open.csv:2: a quote that is not closed' open.csv pairs -o X --to abc
ok 'a column that holds no weights' fails 1 'type.csv:2: the weight is not a number .got "directed".*leave the column out' \
    type.csv pairs -o X --to abc
ok 'a row that is cut' fails 1 'cut.csv:2: a row without a source or without a target .got "c"' cut.csv pairs -o X --to abc

# ---- DIMACS ---------------------------------------------------------------------------------------------

printf 'c roads\np sp 4 4\na 1 2 1\na 2 3 2\na 3 4 4\na 4 1 8\n' >roads.gr
printf 'c colours\np edge 4 4\ne 1 2\ne 2 3\ne 3 4\ne 4 1\n' >colours.col
printf '1 x\n2 y\n3 y\n4 z\n' >numbers
ok 'arcs of DIMACS are directed' makes 'x y 1|y y 2|y z 4|z x 8|' roads.gr numbers --to tsv
ok 'and the format is named' grep -q 'read roads.gr as DIMACS, 4 nodes, 4 edges' run.err
ok 'edges of DIMACS stand for both directions' makes 'x y 1|x z 1|y y 2|y z 1|' colours.col numbers --to abc --from dimacs
ok 'a list follows its nodes' makes '1 2 1|1 3 1|2 2 2|2 3 1|' colours.col <(printf '1\n2\n2\n3\n') --to abc
ok 'which are called by their numbers, from 1' makes '1 2 1|1 4 1|2 2 2|2 4 1|' colours.col <(printf '1\n2\n2\n3\n') \
    --to abc --names
printf 'p max 4 4\nn 1 s\n' >flow.max
ok 'another problem is refused' fails 1 'flow.max:1: not the problem of a graph .got "p max 4 4"' flow.max numbers -o X \
    --to abc --from dimacs
head -n 4 roads.gr >cut.gr
ok 'a file that is cut is refused' fails 1 'cut.gr:4: 2 lines with arcs, but line 2 says 4' cut.gr numbers -o X --to abc

# ---- numpy and scipy ------------------------------------------------------------------------------------

if find_scipy >venv.out; then
    ok 'arrays and sparse matrices are those of scipy' "$python" -B "$root/tests/apps/contract_arrays.py" "$tool"
else skip "no scipy, and none from PyPI ($(tail -n 1 venv.out))"; fi

# ---- GraphML and columns of tables ----------------------------------------------------------------------

# As igraph writes Graph([(0, 1), (1, 2), (2, 3), (3, 0)]) with a name and a part of each vertex and weights, byte for byte
# but for its schema.
{
    printf '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    printf '<!-- Created by igraph -->\n  <key id="v_name" for="node" attr.name="name" attr.type="string"/>\n'
    printf '  <key id="v_part" for="node" attr.name="part" attr.type="string"/>\n'
    printf '  <key id="e_weight" for="edge" attr.name="weight" attr.type="double"/>\n'
    printf '  <graph id="G" edgedefault="undirected">\n'
    i=0
    for node in 'a x' 'b y' 'c y' 'd z'; do
        printf '    <node id="n%d">\n      <data key="v_name">%s</data>\n      <data key="v_part">%s</data>\n' $i $node
        printf '    </node>\n'
        i=$((i + 1))
    done
    for edge in '0 1 1' '1 2 2' '2 3 4' '3 0 8'; do
        printf '    <edge source="n%d" target="n%d">\n      <data key="e_weight">%s</data>\n    </edge>\n' $edge
    done
    printf '  </graph>\n</graphml>\n'
} >igraph.graphml
ok 'GraphML with labels of its own' makes "$square" igraph.graphml igraph.graphml --label-column part --to abc
ok 'its nodes are called by their names' makes "$square" igraph.graphml pairs --to abc
ok 'and the format is named' grep -q 'read igraph.graphml as GraphML, 4 nodes, 4 edges' run.err
ok 'a list follows its nodes' makes '1 2 1|1 3 8|2 2 4|2 3 4|' igraph.graphml <(printf '1\n2\n2\n3\n') --to abc
ok 'or by their ids' makes "$square" igraph.graphml <(printf 'n0 x\nn1 y\nn2 y\nn3 z\n') --to abc --node-column id
ok 'its attributes label the nodes of another graph' makes "$square" g.abc igraph.graphml --label-column part --to abc
ok 'a column of weights that is not there' fails 1 'edges have no attribute "cost"; there are: weight' igraph.graphml pairs -o X --to abc \
    --edge-column cost
sed 's/attr.name="weight"/attr.name="score"/' igraph.graphml >score.graphml
unweighted() {
    status 0 score.graphml pairs -o - --to abc && [ "$(tr '\n\t' '| ' <run.out)" = 'x y 1|x z 1|y y 2|y z 1|' ] &&
        grep -q '^contract: score.graphml: no column of edges is called weight.*--edge-column NAME takes .*: score$' run.err
}
ok 'edges without a weight are named with their columns of numbers' unweighted
ok 'of which one is chosen' makes "$square" score.graphml pairs --to abc --edge-column score
# Cytoscape calls all networks directed, and its columns of nodes and edges share keys.
sed -e 's/edgedefault="undirected"/edgedefault="directed"/' -e '/<graph /i <key id="s" for="node" attr.name="shared name"/><key id="s" for="edge" attr.name="shared name"/>' \
    igraph.graphml >cytoscape.graphml
both_ways() {
    status 0 cytoscape.graphml pairs -o - --to abc && [ "$(tr '\n\t' '| ' <run.out)" = "$square" ] &&
        grep -q '^contract: cytoscape.graphml: Cytoscape calls every network directed.*--directed counts' run.err
}
ok 'edges of Cytoscape count in both directions' both_ways
ok 'or with --directed in their own' makes 'x y 1|y y 2|y z 4|z x 8|' cytoscape.graphml pairs --to abc --directed
ok 'GraphML as labels needs the attribute' fails 1 'give --label-column NAME' g.abc igraph.graphml -o X --to abc
clusters_back() { # what mcl-gpu writes for Cytoscape
    "$(dirname "$tool")/mcl-gpu" g.abc --abc -o clusters --graphml clusters.graphml 2>/dev/null &&
        makes '1 1 30|' clusters.graphml clusters.graphml --label-column cluster --to abc
}
ok 'GraphML of mcl-gpu' clusters_back
to_graphml() { # what is written is read as the same graph, packed or not, with names as the groups have them
    status 0 g.abc pairs -o q.graphml && status 0 g.abc pairs -o q.graphml.gz && gzip -dc q.graphml.gz | cmp - q.graphml &&
        status 0 g.abc pairs -o q.abc && cut -f 1,2 q.abc | tr '\t' '\n' | sort -u | awk '{ print $1 "\t" $1 }' >own &&
        status 0 q.graphml own -o back.abc --labels pairs && cmp back.abc q.abc
}
ok 'GraphML out' to_graphml
heavy_graphml() { # weights and sizes of nodes are attributes, one or several, and weigh the groups of the next level
    printf '4 4 110 1\n5 10 2 4\n6 20 1 3\n7 30 2 4\n8 40 3 1\n' >heavy.graph
    printf '4 4 010 2\n10 1 2 4\n20 2 1 3\n30 3 2 4\n40 4 3 1\n' >heavier.graph
    status 0 heavy.graph <(printf '1\n2\n2\n1\n') -o heavy.graphml && [ "$(wc -l <run.err)" -eq 1 ] &&
        grep -q '<key id="node_weight1" for="node" attr.name="weight" attr.type="long"/>' heavy.graphml &&
        grep -q '<data key="name">2</data><data key="node_weight1">50</data><data key="size">13</data></node>' heavy.graphml &&
        status 0 heavy.graphml <(printf 'a\na\n') --attributes heavy.graphml --node-weight weight -o - --to metis --loops drop &&
        [ "$(tail -n 1 run.out)" = 100 ] &&
        status 0 heavier.graph <(printf '1\n2\n2\n1\n') -o heavier.graphml && grep -q 'attr.name="weight2"' heavier.graphml &&
        grep -q '<data key="node_weight1">50</data><data key="node_weight2">5</data></node>' heavier.graphml &&
        ! grep -q size heavier.graphml
}
ok 'weights and sizes of nodes in GraphML' heavy_graphml
no_half() { # nothing is left where another output cannot be written
    rm -f h.graphml
    status 1 g.abc pairs -o h.graphml --node-output /nowhere/n.tsv
    [ ! -e h.graphml ] && ! ls h.graphml.tmp.* 2>/dev/null
}
ok 'no part of it at a failure' no_half
full() { ! "$tool" g.abc pairs -o - --to graphml >/dev/full 2>run.err && grep -q 'No space left' run.err; }
if [ -e /dev/full ]; then ok 'GraphML on a full disk' full; fi
printf 'part;node;extra\nx;a;1\ny;b;2\ny;c;\nz;d;4\n' >parts.csv
printf 'who,part\na,x\nb,y\nc,y\nd,z\n' >who.csv
printf 'part,who\nx,a\ny,b\ny,c\nz,d\n' >last.csv
ok 'a column of a table as labels' makes "$square" g.abc parts.csv --to abc --label-column part
ok 'behind a line that names the separator' makes "$square" g.abc \
    <(printf 'sep=;\nnode;part\na;x\nb;y\nc;y\nd;z\n') --to abc --label-column part
ok 'which counts' makes 'x;1 y 1|x;1 z 8|y y 4|y z 4|' g.abc \
    <(printf 'sep=,\r\nnode,part\r\na,x;1\r\nb,y\r\nc,y\r\nd,z\r\n') --to abc --label-column part
ok 'the first column names the nodes' makes "$square" g.abc who.csv --to abc --label-column part
ok 'or that of --node-column' makes "$square" g.abc last.csv --to abc --label-column part --node-column who
ok 'which the message names' fails 1 'last.csv:2: this is not a node of the graph .got "x".*give --node-column NAME if' \
    g.abc last.csv -o X --to abc --label-column who
blanks() { # names that begin or end in blanks come back from every output
    printf 'source,target,weight\n" lead",b,1\nb,"trail ",2\n"trail "," lead",4\n' >blank.csv
    printf 'node,part\n" lead",1\nb,2\n"trail ",3\n' >blank.parts
    for to in csv graphml bin; do
        status 0 blank.csv blank.parts --label-column part -o "again.$to" --names &&
            status 0 "again.$to" blank.parts --label-column part --judge tsv && [ "$(sed -n 2p run.out | cut -f 1,8)" = '3	7' ] ||
            return 1
    done
    status 0 blank.csv blank.parts --label-column part --refine blank.tsv &&
        status 0 blank.csv blank.tsv --judge tsv && status 0 blank.csv -o blank.mtx --repeat matching --levels 1 &&
        status 0 blank.csv blank.mtx.total.map --judge tsv
}
ok 'names that begin with a blank' blanks
ok 'which label pairs have none of' fails 1 'X: a node is called " lead".*use csv or graphml' blank.csv \
    -o X --to abc --names <(printf ' lead\t1\nb\t2\ntrail \t3\n')
feeds() { # and those that begin or end in a form feed
    printf 'source,target\n"\f",b\nb,"x\f"\n' >feed.csv && printf 'node,part\n"\f",1\nb,2\n"x\f",3\n' >feed.parts
    status 0 feed.csv feed.parts --label-column part -o again.csv --names --directed && tail -n +2 feed.csv |
        sed 's/$/,1/' | diff - <(tail -n +2 again.csv)
}
ok 'names that begin or end in a form feed' feeds
printf 'a\tb\nb\tc\n' >chain.abc
printf 'a\t#g\nb\tk\nc\tk\n' >hash.first
printf 'a\tk\nb\t#g\nc\t#g\n' >hash.second
for to in abc tsv; do
    ok "a comment in place of an edge, $to" fails 1 'X: a node is called "#g".*rename it, or use csv' chain.abc \
        hash.first -o X --to $to
done
ok 'a name that begins with #, second in its line' makes 'k #g 1|' chain.abc hash.second --to abc --loops drop
ok 'a column that is not there' fails 1 'parts.csv: no column "size" besides that of the nodes; there are: [a-z, ]*part' g.abc parts.csv -o X --to abc --label-column size
ok 'no such column of nodes' fails 1 'who.csv:1: no column "id"; there are: ' g.abc who.csv -o X --to abc --label-column part \
    --node-column id
ok 'numbers with fractions are no labels' fails 1 'the label of node b is 2.5' g.abc <(printf 'node,k\na,1\nb,2.5\n') \
    -o X --to abc --label-column k
ok 'numbers are labels as in lists' makes '0 0 2|0 7 10|7 7 8|' g.abc <(printf 'node,k\na,0\nb,0\nc,7\nd,7\n') --to abc \
    --label-column k --loops keep --compact
ok 'a table without the name of a column' fails 1 'who.csv:2: commas between the fields.*give --label-column NAME' g.abc \
    who.csv -o X --to abc
heading() { # heading FILE MESSAGE: the message, and both of the ways that it names
    fails 1 "$1:1: this line looks like a heading .*$2" g.mtx "$1" -o X --to abc &&
        tail -n +2 "$1" >bare && makes "$numbers" g.mtx bare --to abc
}
printf 'node label\n1 1\n2 2\n3 2\n4 1\n' >headed
printf 'label\n1\n2\n2\n1\n' >headed1
numbers='1 1 16|1 2 5|2 2 4|'
ok 'the heading of pairs is named' heading headed 'give --label-column label, or leave the line out, as tail -n [+]2 does$'
ok 'and of a list' heading headed1 '.got "label".; give --label-column label, or leave the line out, as tail -n [+]2 does$'
for file in headed headed1; do ok 'as its remedy says' makes "$numbers" g.mtx $file --label-column label --to abc; done
printf 'louvain\nnorth\nNA\nsouth\nnorth\n' >alone
ok 'a table of one column has a label a row, in the order of the nodes' makes 'north north 16|north south 4|' g.mtx alone \
    --label-column louvain --to abc --unlabelled drop
ok 'with a row too many' fails 1 ':6: a row more than the graph has nodes' g.mtx <(cat alone; echo south) -o X --to abc \
    --label-column louvain
ok 'with a row too few' fails 1 ': 3 rows for 4 nodes; write one a node' g.mtx <(head -n 4 alone) -o X --to abc \
    --label-column louvain
ok 'for nodes that have an order only' fails 1 'a table of one column, and nodes that have names and no order' g.abc alone \
    -o X --to abc --label-column louvain
ok 'the index of a data frame names the nodes, also beside a column called label' makes "$square" g.abc \
    <(printf ',label\na,x\nb,y\nc,y\nd,z\n') --to abc --label-column label
ok 'and is left out where another column does' makes "$square" g.abc \
    <(printf ',node,label\n7,a,x\n8,b,y\n9,c,y\n,d,z\n') --to abc --label-column label
ok 'but it is no label' fails 1 'no column "" besides that of the nodes; there are: x' g.abc \
    <(printf ',node,x\n7,a,x\n') -o X --to abc --label-column ''
ok 'an index before a table of edges' makes "$square" <(printf ',source,target,weight\n0,a,b,1\n1,b,c,2\n2,c,d,4\n3,d,a,8\n') \
    pairs --to abc --from csv
printf 'source,target,km,cost\na,b,5,1\nb,c,5,2\nc,d,5,4\nd,a,5,8\n' >costs.csv
ok 'a column of weights' makes "$square" costs.csv pairs --to abc --edge-column cost
ok 'that is not there' fails 1 'costs.csv: no column "weight"; there are: ' costs.csv pairs -o X --to abc --edge-column weight
ok 'weights of a format without columns' fails 1 'g.abc: label pairs, and --edge-column is for' g.abc pairs -o X --to abc \
    --edge-column cost
ok 'a column of nodes without a table' fails 1 '--node-column is for tables' g.abc pairs -o X --to abc --node-column id
ok 'labels of a column are no list' fails 2 'leave --labels out' g.abc who.csv -o X --to abc --label-column part \
    --labels list

# ---- what is written is read as the same graph -------------------------------------------------------------

ring() { # of 40 nodes, with chords, loops and fractions; DIRECTED also other weights back
    awk -v directed="$1" 'BEGIN { srand(5); for (i = 1; i <= 40; i++) { j = i % 40 + 1; print i, j, 1 + i / 8
        if (directed && i % 2) print j, i, 3
        if (i % 3 == 0) print i, (i * 7) % 40 + 1, i
        if (i % 5 == 0) print i, i, 2 } }'
}
ring 0 >ring.abc
ring 1 >arcs.abc
seq 40 >each.txt
awk '{ print 1 + $1 % 3 }' each.txt >thirds.txt
compares() { # compares BACK WANTED OPTIONS...: as a graph of 40 nodes, entry by entry, and by its figures
    local back=$1 wanted=$2
    shift 2
    status 0 "$back" each.txt -o back.tsv --base 1 "$@" && status 0 "$back" thirds.txt --judge tsv "$@" &&
        mv run.out back.figures && cmp back.tsv "$wanted.tsv" && cmp back.figures "$wanted.figures"
}
for kind in ring arcs; do
    direction=()
    [ $kind = arcs ] && direction=(--directed)
    status 0 $kind.abc each.txt -o $kind.tsv "${direction[@]}"
    status 0 $kind.abc thirds.txt --judge tsv "${direction[@]}"
    mv run.out $kind.figures
    for ending in abc tsv csv mtx mcl npz graphml bin; do
        told=() # what lists do not tell of directed edges
        case $kind.$ending in arcs.abc | arcs.tsv | arcs.csv) told=(--directed) ;; esac
        for packed in '' .gz; do
            status 0 $kind.abc each.txt -o "w.$ending$packed" "${direction[@]}"
            ok "$kind.$ending$packed comes back" compares "w.$ending$packed" $kind "${told[@]}"
        done
    done
done
undirected_twice() { # a symmetric matrix has both directions already
    local ending
    for ending in mtx mcl npz bin graphml; do
        status 0 ring.abc each.txt -o "w.$ending" && mv "w.$ending" "once.$ending" &&
            compares "once.$ending" ring --undirected || return 1
        [ "$ending" != mtx ] || sed -n 1p once.mtx | grep -q symmetric || return 1
    done
    status 0 ring.abc each.txt -o - --to tsv --quiet && { # the same as a general matrix, and as a directed binary one
        printf '%%%%MatrixMarket matrix coordinate real general\n40 40 %d\n' "$(wc -l <run.out)" && cat run.out
    } >general.mtx &&
        compares general.mtx ring && compares general.mtx ring --undirected &&
        status 0 general.mtx each.txt -o directed.bin --directed && compares directed.bin ring --undirected
}
ok '--undirected counts no edge of a symmetric matrix twice' undirected_twice
if command -v mcx >/dev/null; then
    binary_mcl() {
        mcx convert --write-binary once.mcl once.mcb && compares once.mcb ring && compares once.mcb ring --undirected
    }
    ok "also mcl's in binary" binary_mcl
else skip "no mcx: mcl's matrix in binary"; fi
refines() { # as it advises where a graph is directed
    status 0 general.mtx thirds.txt --refine better.txt && grep -q 'edge cut 343.5 to ' run.err &&
        status 0 general.mtx thirds.txt --refine again.txt --undirected && cmp better.txt again.txt
}
ok 'which can be refined' refines
printf 'p sp 4 6\na 1 2 1\na 2 3 2\na 3 4 3\na 2 1 1\na 3 2 2\na 4 3 3\n' >both.gr
ok 'arcs of DIMACS in both directions are edges' makes '1 1 2|1 2 2|2 2 6|' both.gr <(printf '1\n1\n2\n2\n') --to abc
ok 'unless --directed' makes '1 1 2|1 2 2|2 1 2|2 2 6|' both.gr <(printf '1\n1\n2\n2\n') --to abc --directed
with_networkx() { # sets python
    for python in "${python-python3}" python3 "$build/python/env/bin/python3"; do
        "$python" -c 'import networkx' 2>/dev/null && return
    done
    return 1
}
if with_networkx; then
    ok 'GraphML of networkx' "$python" -B "$root/tests/apps/contract_graphml.py" "$tool"
else skip 'no networkx: GraphML'; fi

# ---- names of groups --------------------------------------------------------------------------------------

printf 'a 1\nb 2\nc 2\nd 3\n' >from1.abc
names_unasked() { # names of labels; numbers have none; OUT.tab is checked as outputs are; a stream has no file beside it
    for format in mtx mcl dimacs npz metis; do
        rm -f u.out.tab && status 0 g.abc pairs -o u.out --to $format && [ "$(tr '\t\n' ' |' <u.out.tab)" = '0 x|1 y|2 z|' ] &&
            grep -q 'to u.out, their names beside it$' run.err || return 1
    done
    status 0 g.abc pairs -o u.mtx.gz && gzip -dc u.mtx.tab.gz | cmp - u.out.tab &&
        status 0 g.abc from1.abc -o n.out --to mtx && [ ! -e n.out.tab ] && [ "$(wc -l <run.err)" -eq 1 ] &&
        ln -f g.abc hard.tab &&
        fails 2 'is an input, too: give it another name; see contract --help$' g.abc pairs -o hard --to mtx && [ ! -e hard ] &&
        fails 2 'two outputs would be written to "u.mtx.tab"' g.abc pairs -o u.mtx --report u.mtx.tab && rm hard.tab &&
        for out in - /dev/null; do
            status 0 g.abc pairs -o $out --to mtx && grep -q 'the names of groups are left out, as --to mtx' run.err || return 1
        done
}
ok 'names of labels lie beside formats that hold none' names_unasked

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
