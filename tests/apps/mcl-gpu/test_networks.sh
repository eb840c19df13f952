#!/bin/bash
# What mcl-gpu makes of networks that other programs export: GraphML of Cytoscape, and which column weighs the edges.
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu]
cd "$(dirname "$0")/../../.." || exit 1
tool=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
. tests/support/cli.sh

partition() { # partition EXPECTED ARGUMENTS...: labels joined by commas, clusters ended by bars
    local expected=$1
    shift
    status 0 "$@" -o - && [ "$(tr '\n\t' '|,' <run.out)" = "$expected" ] || { cat run.out run.err; return 1; }
}
tells() { # tells PATTERN: the last run's log has such a line
    grep -qE -- "$1" run.err || { cat run.err; return 1; }
}
keys() { # keys TABLE: those of the columns that all tables of Cytoscape have
    printf '<key attr.name="%s" attr.type="%s" for="'"$1"'" id="%s"/>\n' SUID long SUID 'shared name' string 'shared name' \
        name string name selected boolean selected
}
edge() { # edge TAIL HEAD DATA
    printf '<edge source="%d" target="%d">\n<data key="SUID">%d</data>\n<data key="interaction">pp</data>\n%s</edge>\n' \
        "'$1" "'$2" $((1000 * $(printf %d "'$1") + $(printf %d "'$2"))) "$3"
}
cytoscape() { # cytoscape KEYS EDGES: a network of A to F as Cytoscape exports it
    printf '<?xml version="1.0" encoding="UTF-8" standalone="no"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    keys node
    keys edge
    printf '<key attr.name="interaction" attr.type="string" for="edge" id="interaction"/>\n%s' "$1"
    keys graph
    printf '<graph edgedefault="directed" id="yeast">\n<data key="name">yeast</data>\n'
    for node in A B C D E F; do
        printf '<node id="%d">\n<data key="shared name">%s</data>\n<data key="name">%s</data>\n</node>\n' "'$node" $node $node
    done
    printf '%s</graph></graphml>\n' "$2"
}

# ---- directions ------------------------------------------------------------------------------------------

# Two triangles, which are two clusters; with the directions that they are written in all lead to F.
triangles=$(for ends in 'A B' 'A C' 'B C' 'C D' 'D E' 'D F' 'E F'; do edge $ends ''; done)
cytoscape '' "$triangles" >plain.graphml
ok 'edges of Cytoscape count in both directions' partition 'A,B,C|D,E,F|' plain.graphml
ok 'which is said' tells 'plain.graphml: Cytoscape calls every network directed, so edges count in both directions'
ok 'and no advice for directed graphs is given' eval '! tells "directed graph, clustered as it is"'
sed 's/<edge source="69"/<edge directed="true" source="69"/' plain.graphml >said.graphml
ok 'any edge that says that it is directed is believed' eval 'status 0 said.graphml -o - &&
    tells "said.graphml: a directed graph, clustered as it is"'
sed 's/shared name/other name/g' plain.graphml >other.graphml
ok 'GraphML of others is taken as it is' eval 'status 0 other.graphml -o - && tells "other.graphml: a directed graph, clustered as it is"'

# ---- weights ---------------------------------------------------------------------------------------------

# Of nodes in a row every second pair has a high score.
numbers='<key attr.name="score" attr.type="double" for="edge" id="score"/>
<key attr.name="evidence" attr.type="int" for="edge" id="evidence"/>
'
scored() { edge $1 $2 "<data key=\"score\">$3</data><data key=\"evidence\">1</data>"; }
cytoscape "$numbers" "$(scored A B 0.9 && scored B C 0.01 && scored C D 0.9 && scored D E 0.01 && scored E F 0.9)" >scored.graphml
unweighted='scored.graphml: no column of edges is called weight, so all weigh 1; --edge-column NAME takes one of numbers: score, evidence$'
ok 'edges without a weight weigh 1' partition 'A,B,C|D,E,F|' scored.graphml
ok 'which is said, with the columns of numbers' tells "$unweighted"
ok 'also if the log is off' eval 'status 0 scored.graphml -o - -V all && [ "$(wc -l <run.err)" -eq 1 ] && tells "$unweighted"'
ok '--edge-column chooses one' partition 'A,B|C,D|E,F|' scored.graphml --edge-column score
ok 'and nothing is to be said' eval '! tells "no column of edges"'
ok 'one that is not there is refused with those that are' eval 'status 1 scored.graphml -o - --edge-column confidence &&
    tells "edges have no attribute .confidence.; there are: SUID, shared name, name, selected, interaction, score, evidence$"'
printf 'source,target,kind,conf,n\na,b,pp,0.9,1\nb,c,pp,0.01,1\nc,d,pp,0.9,1\nd,e,pp,0.01,1\ne,f,pp,0.9,1\n' >scored.csv
ok 'a table without a weight' partition 'a,b,c|d,e,f|' scored.csv
ok 'is named with its columns, too' tells 'scored.csv: no column of edges is called weight.*: conf, n$'
ok 'of which --edge-column chooses one' partition 'a,b|c,d|e,f|' scored.csv --edge-column conf
printf 'protein1 protein2 coexpression combined_score\na b 900 1\nb c 1 900\nc d 900 1\n' >links.txt
ok 'and one of STRING links' partition 'a,b|c,d|' links.txt --edge-column coexpression
printf 'a b 1\n' >pairs.abc
ok 'label pairs have no columns' eval 'status 1 pairs.abc -o - --edge-column score &&
    tells "pairs.abc: label pairs, and --edge-column is for tables, STRING and GraphML$"'
ok 'nor do they if an option names the format' eval 'status 2 pairs.abc --abc -o - --edge-column score &&
    tells "edge-column is for tables, STRING and GraphML"'

# ---- files of older programs and of spreadsheets --------------------------------------------------------

hit() { printf '%s\t%s\t90\t9\t0\t0\t1\t9\t1\t9\t%s\t50\n' "$@"; }
{ hit a b e-180 && hit b c 1e-2 && hit c d E-180; } >old.m8
ok 'E-values of older versions of BLAST' partition 'a,b|c,d|' old.m8 --blast evalue
ok 'which are hits without an option, too' eval 'status 1 old.m8 -o - && tells "old.m8: a BLAST table; give --blast bits"'
{ printf 'sep=\t\n' && cat old.m8; } >excel.csv
ok 'below a line that names the separator as well' eval 'status 1 excel.csv -o - && tells "excel.csv: a BLAST table; give --blast bits"'
printf 'a b 1e-2\nb c e-180\n' >old.abc
ok 'but among label pairs, where mcl takes them for 1, the remedy is named' eval 'status 1 old.abc --abc -o - &&
    tells "old.abc:2: the weight is not a number .got .e-180..; older versions of BLAST write e-180 for 1e-180: put a 1 before"'

printf 'sep=;\nsource;target;score\n"a, 1";b;1\nb;c;2\n' >excel.txt
ok 'a table whose first line names the separator' partition 'a, 1,b,c|' excel.txt
ok 'is known by it' tells 'read excel.txt as a table of edges, 3 nodes, 2 edges'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
