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
sed 's/shared name/other name/g' plain.graphml >other.graphml
ok 'GraphML of others is taken as it is' eval 'status 0 other.graphml -o - && tells "other.graphml: a directed graph, clustered as it is"'

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
