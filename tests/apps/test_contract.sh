#!/bin/bash
# contract from the command line to its files: formats, label files, every option, names, hierarchies, refusals with
# their lines, atomic output, signals, the report.
#   CONTRACT, MCL_GPU  the tools [$BUILD/bin/contract, $BUILD/bin/mcl-gpu]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${CONTRACT:-${BUILD:-build}/bin/contract}") || exit 1
mcl_gpu=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
in=$PWD/tests/golden/in tests=$PWD/tests/apps
. tests/support/cli.sh

fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr, nothing on stdout, no output X
    local expected=$1 pattern=$2
    shift 2
    rm -f X
    status "$expected" "$@" && [ ! -s run.out ] && [ ! -e X ] && no_leftovers && [ "$(wc -l <run.err)" -eq 1 ] &&
        grep -qE -- "^contract: .*$pattern" run.err || { cat run.err; return 1; }
}
says_so() { # nothing else than the closing line
    [ "$(wc -l <run.err)" -eq 1 ] && grep -qE '^contract: read .*; wrote .* to ' run.err
}
makes() { # makes LINES ARGUMENTS...: what is written, lines joined by bars, tabs replaced by blanks
    local lines=$1
    shift
    status 0 "$@" -o - && [ "$(grep -v '^%%' run.out | tr '\n\t' '| ')" = "$lines" ] && says_so ||
        { cat run.out run.err; return 1; }
}

# A square of two pairs, by names and as a matrix; 2 and 3 are a group.
printf 'a b 1\nb c 2\nc d 4\nd a 8\n' >g.abc
printf '%%%%MatrixMarket matrix coordinate integer general\n4 4 5\n1 2 1\n2 3 2\n3 4 4\n4 1 8\n2 2 16\n' >g.mtx
printf 'a x\nb y\nc y\nd z\n' >pairs
printf 'a 1\nb 2\nc 2\nd 3\n' >numbers
printf '1\n2\n2\n3\n' >list

# ---- formats of graphs ----------------------------------------------------------------------------------

ok 'without arguments: usage on stderr, status 2' eval 'status 2 && [ ! -s run.out ] && grep -q "^usage" run.err'
one_screen() { status 0 "$1" && [ ! -s run.err ] && [ "$(wc -l <run.out)" -le 40 ] && ! grep -E '^.{121}' run.out; }
ok '--help fits a screen' one_screen --help
ok '-h' one_screen -h
ok '--version' eval 'status 0 --version && grep -qE "^contract [0-9.]+$" run.out'
ok 'a directed matrix' makes '1 2 1|2 2 18|2 3 4|3 1 8|' g.mtx list --to tsv
ok 'label pairs stand for both directions' makes 'x y 1|x z 8|y x 1|y y 4|y z 4|z x 8|z y 4|' g.abc pairs --to tsv
ok 'each edge once' makes 'x y 1|x z 8|y y 4|y z 4|' g.abc pairs --to abc
ok 'or for one' makes 'x y 1|y y 2|y z 4|z x 8|' g.abc pairs --to abc --directed
ok 'a matrix made undirected' makes '1 2 1|1 3 8|2 2 20|2 3 4|' g.mtx list --to abc --undirected
skew='%%%%MatrixMarket matrix coordinate real skew-symmetric\n4 4 2\n2 1 1\n4 3 2\n'
ok 'a skew-symmetric matrix' makes '1 2 -1|2 1 1|2 3 -2|3 2 2|' <(printf "$skew") list --to tsv
ok 'has no undirected edges' fails 1 'opposite weights in a skew-symmetric matrix.*leave --undirected out' \
    <(printf "$skew") list -o X --to tsv --undirected
ok 'Matrix Market, general' makes '3 3 4|1 2 1|2 2 18|2 3 4|3 1 8|' g.mtx list --to mtx
ok 'its first line' grep -qx '%%MatrixMarket matrix coordinate integer general' run.out
ok 'Matrix Market, symmetric' makes '3 3 4|2 1 1|2 2 4|3 1 8|3 2 4|' g.abc numbers --to mtx
ok 'its first line says so' grep -qx '%%MatrixMarket matrix coordinate integer symmetric' run.out
ok 'METIS' makes '3 3 011|1 2 1 3 8|2 1 1 3 4|1 1 8 2 4|' g.abc numbers --to metis --loops drop
ok 'DIMACS, undirected' makes 'p sp 3 7|a 1 2 1|a 1 3 8|a 2 1 1|a 2 2 4|a 2 3 4|a 3 1 8|a 3 2 4|' g.abc numbers --to dimacs
ok 'DIMACS, directed' makes 'p sp 3 4|a 1 2 1|a 2 2 18|a 2 3 4|a 3 1 8|' g.mtx list --to dimacs
ok "mcl's matrix" makes \
    '(mclheader|mcltype matrix|dimensions 3x3|)|(mclmatrix|begin|0 1:1 $|1 1:18 2:4 $|2 0:8 $|)|' g.mtx list --to mcl
back() { # back EXPECTED FILE OPTIONS...: the graph of groups, written to FILE, comes back with its nodes renamed
    local expected=$1 file=$2
    shift 2
    status 0 g.abc pairs -o "$file" --loops drop && printf '3\n2\n1\n' >three && makes "$expected" "$file" three "$@"
}
ok 'Matrix Market comes back' back '1 2 4|1 3 8|2 3 1|' r.mtx --to abc
metis_back() { # but for the weights of its nodes
    status 0 g.abc pairs -o r.graph --loops drop && printf '3\n2\n1\n' >three && status 0 r.graph three -o - "$@" &&
        [ "$(tr '\n\t' '| ' <run.out)" = '1 2 4|1 3 8|2 3 1|' ] && grep -q 'r.graph: the weights and sizes' run.err
}
ok 'METIS by its ending' metis_back --to abc
metis_known() { run - three -o - --to abc <r.graph && [ "$(tr '\n\t' '| ' <run.out)" = '1 2 4|1 3 8|2 3 1|' ]; }
ok 'METIS by its content' metis_known
ok 'METIS comes back' metis_back --from metis --to abc
ok 'binary comes back, undirected' back '1 2 4|1 3 8|2 3 1|' r.bin --to abc
ok 'DIMACS comes back' back '1 2 4|1 3 8|2 3 1|' r.gr --to abc
ok "mcl's matrix comes back" back '1 2 4|1 3 8|2 3 1|' r.mci --to abc
printf '%%%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n3 1 0.2\n3 2 0.4\n4 1 0.3\n4 2 0.1\n' >above.mtx
printf '%%%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n3 1 0.2\n3 2 0.3\n4 1 0.4\n4 2 0.1\n' >below.mtx
printf '1\n1\n2\n2\n' >halves.list
for engine in fused product; do # sums in two orders are 1 and 1.0000000000000002: that from row 2 to row 1 counts
    ok "rounded sums of an undirected graph, $engine" makes '1 2 1.0000000000000002|2 1 1.0000000000000002|' above.mtx \
        halves.list --to tsv --engine $engine
    ok "as METIS, $engine" makes '2 1 010|2 2|2 1|' below.mtx halves.list --to metis --engine $engine
done
awk 'BEGIN { srand(3); for (i = 0; i < 400; i++) print int(40 * rand()), int(40 * rand()), int(90 * rand()) / 10 }' \
    >tenths.abc
awk 'BEGIN { srand(4); for (i = 0; i < 80; i++) print i % 40, 1 + int(7 * rand()), int(1 + 9 * rand()) / 10 }' >parts
as_its_mirror() { # as_its_mirror ARGUMENTS...: every entry has its mirror image
    rm -f m.tsv && status 0 "$@" -o m.tsv && cmp <(sort m.tsv) <(awk -v OFS='\t' '{ print $2, $1, $3 }' m.tsv | sort)
}
ok 'with weights of memberships' as_its_mirror tenths.abc parts --labels pairs
ok 'with several groups a node' as_its_mirror tenths.abc <(cut -d ' ' -f 1,2 parts) --labels pairs --values f32
ok 'with means' as_its_mirror above.mtx halves.list --combine mean
ok 'at the end of a hierarchy' as_its_mirror tenths.abc --repeat matching --levels 2
entries_back() {
    printf 'x 3\ny 2\nz 1\n' >turned && status 0 g.abc pairs -o r.tsv --loops drop &&
        makes '1 2 4|1 3 8|2 1 4|2 3 1|3 1 8|3 2 1|' r.tsv turned --directed --to tsv
}
ok 'every entry a line comes back as such' entries_back
notices() { # notices EXPECTED PATTERN ARGUMENTS...: the graph, and a line before the closing one
    local expected=$1 pattern=$2
    shift 2
    status 0 "$@" -o - --to abc && [ "$(tr '\n\t' '| ' <run.out)" = "$expected" ] && [ "$(wc -l <run.err)" -eq 2 ] &&
        grep -q "^contract: $pattern" run.err
}
both_directions() { # counts once, or as often as somebody asks
    notices '1 2 4|1 3 8|2 3 1|' 'r.tsv: each edge is there in both directions, and counts once' r.tsv turned &&
        makes '1 2 8|1 3 16|2 3 2|' r.tsv turned --to abc --undirected &&
        notices '1 2 3|' '.*: each edge is there twice, with different weights, and both count' \
            <(printf 'a b 1\nb a 2\n') <(printf 'a 1\nb 2\n') &&
        makes '1 2 4|' <(printf 'a b 1\nb a 1\nb a 2\n') <(printf 'a 1\nb 2\n') --to abc
}
ok 'a list of both directions' both_directions
mcl_takes_either() {
    status 0 g.abc pairs -o r.abc --loops drop &&
        "$mcl_gpu" r.tsv --abc -o a.cls -V all && "$mcl_gpu" r.abc --abc -o b.cls -V all && cmp a.cls b.cls
}
ok 'which mcl-gpu takes as one' mcl_takes_either
named_back() { printf 'x 1\ny 1\nz 2\n' >two && makes '1 1 2|1 2 12|' r.bin two --to abc; }
ok 'names come back from binary' named_back
binary_to_metis() { status 0 r.bin three -o r2.graph && [ "$(head -n 1 r2.graph)" = '3 3 011' ]; }
ok 'from format to format' binary_to_metis
ok 'mcl-gpu reads binary' eval '"$mcl_gpu" r.bin -o b.cls -V all && [ "$(tr "\t\n" " |" <b.cls)" = "x y z|" ]'
ok 'but transforms no weights of it as it is read' eval '! "$mcl_gpu" r.bin --abc-neg-log -o b.cls -V all 2>run.err &&
    grep -q "^mcl-gpu: r.bin: a binary matrix, and -abc-tf.* use -tf" run.err'
zeros() { # a sum of 0 is an entry of the matrix that is written, and no edge of the graph that is read
    status 0 <(printf 'a b 2\na b -2\nb c 1\n') <(printf 'a 1\nb 2\nc 3\n') -o z.bin &&
        makes '2 3 1|' z.bin <(printf '1 1\n2 2\n3 3\n') --labels pairs --to abc --combine count &&
        "$mcl_gpu" z.bin -write-graph - -o z.cls -V all | grep -qxF "1 2:1 \$"
}
ok 'zeros in binary matrices' zeros
endings() { # every ending chooses its format
    local ending format
    for ending in mtx:mtx abc:abc tsv:tsv mci:mcl mcl:mcl graph:metis metis:metis gr:dimacs bin:bin csr:bin; do
        format=${ending#*:} ending=${ending%:*}
        status 0 g.abc pairs -o "e.$ending" --loops drop &&
            status 0 g.abc pairs -o e.out --loops drop --to "$format" && cmp "e.$ending" e.out || return 1
    done
}
ok 'the ending of the output' endings
ok 'SIF' makes 'x y 2|x z 1|' <(printf 'a pp b c\nd pp a\n') pairs --from sif --to abc
ok 'ETC' makes 'x y 2|x z 1|' <(printf 'a b c\nd a\n') pairs --from etc --to abc
blast='90\t10\t0\t0\t1\t10\t1\t10\t1e-5'
ok 'BLAST tables: bit scores' makes 'x y 50|y z 7|' <(printf "a\\tb\\t$blast\\t50\\nc\\td\\t$blast\\t7\\n") pairs \
    --from blast --to abc
ok 'a symmetric pattern' makes '1 2 1|1 3 1|2 1 1|2 2 1|3 1 1|' \
    <(printf '%%%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n3 3\n4 1\n') list --to tsv
ok 'a skew-symmetric matrix' makes '1 2 -5|2 1 5|2 3 -2|3 2 2|' \
    <(printf '%%%%MatrixMarket matrix coordinate real skew-symmetric\n4 4 2\n2 1 5\n4 3 2\n') list --to tsv
if command -v zstd >/dev/null; then
    ok 'zstd' makes 'x y 1|x z 8|y y 4|y z 4|' <(zstd -qc g.abc) <(zstd -qc pairs) --to abc
else skip 'no zstd'; fi
if command -v gzip >/dev/null; then
    gzip -k r.bin three
    ok 'compressed graphs and labels' makes 'z y 4|z x 8|y z 4|y x 1|x z 8|x y 1|' r.bin.gz three.gz --to tsv --names
else skip 'no gzip'; fi
printf 'p q\np q 3\nq p\n' >twice.abc
printf 'p 1\nq 2\n' >pq
ok 'repeated edges are summed' makes '1 2 5|' twice.abc pq --to abc
ok 'repeated edges are counted' makes '1 2 3|' twice.abc pq --to abc --combine count
ok 'their mean' makes '1 2 1.6666666666666667|' twice.abc pq --to abc --combine mean
ok 'their largest' makes '1 2 3|' twice.abc pq --to abc --combine max
ok 'as arcs' makes '1 2 4|2 1 1|' twice.abc pq --to tsv --directed
printf 'protein1 protein2 combined_score\np q 900\nq p 900\n' >string.txt
ok 'STRING lists both directions' makes '1 2 900|2 1 900|' string.txt pq --to tsv
printf '1\t2\r\n2\t3\r\n3\t1\r\n' >crlf.txt
printf '1\t5\r\n2\t5\r\n3\t6\r\n' >crlf.labels
ok 'CR LF' makes '5 5 1|5 6 1|6 5 1|' crlf.txt crlf.labels --to tsv --directed
printf '1\r\n1\r\n2\r\n' >crlf.list
ok 'CR LF in lists' makes '1 1 1|1 2 1|2 1 1|' crlf.txt crlf.list --to tsv --directed
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 -0.5\n2 1 1e-7\n' >signed.mtx
printf '1\n2\n' >onetwo
ok 'negative values' makes '1 2 -0.5|2 1 1e-7|' signed.mtx onetwo --to tsv

# ---- labels ---------------------------------------------------------------------------------------------

clusters() { "$mcl_gpu" "$1" --abc -I 2 -o c -V all && status 0 "$1" c -o q.mtx; }
ok 'after mcl-gpu' clusters "$in/p2000.abc"
ok 'every edge is in it' eval '[ "$(sed -n 2p q.mtx)" = "209 209 2822" ]'
ok 'clusters' makes '1 1 2|1 2 2|2 1 2|2 2 2|' g.abc <(printf 'a\tb\nc\td\n') --to tsv --combine count --undirected
ok 'clusters of one' makes '1 2 8|1 3 4|2 4 1|3 4 2|' g.abc <(printf 'd\na\nc\nb\n') --to abc
ok 'names with blanks' makes 'left right 3|' <(printf 'a b\tc d\t3\n') <(printf 'a b\tleft\nc d\tright\n') --to abc
printf 'a b\tc d\t3\nc d\te\t2\n' >blanks.abc
for members in 'a b\nc d\n' 'a b\nc d\te\n'; do
    ok "clusters of one of them: $members" status 0 blanks.abc <(printf "$members") -o q.abc --unlabelled drop
done
ok 'which are no pairs' makes '1 2 3|2 3 2|' blanks.abc <(printf 'a b\nc d\ne\n') --to abc
ok 'clusters by numbers' makes '1 1 8|1 2 1|2 2 16|' g.mtx <(printf '1 4\n2\n') --to tsv --unlabelled drop \
    --labels clusters --combine max
ok 'ids as numbers' makes '1 1 8|1 2 1|2 1 4|2 2 18|' g.mtx <(printf '4 1\n3 2\n2 2\n1 1\n') --to tsv
ok 'labels from 0' makes '0 1 1|1 1 18|1 2 4|2 0 8|' g.mtx <(printf '0\n1\n1\n2\n') --to tsv
printf '(mclheader\nmcltype matrix\ndimensions 4x2\n)\n(mclmatrix\nbegin\n0 0 3 $\n1 1 2 $\n)\n' >native.cls
ok "mcl's matrix of clusters" makes '1 1 8|1 2 1|2 1 4|2 2 18|' g.mtx native.cls --to tsv
printf '10 20\n20 5\n5 10\n' >numbers.txt
awk 'BEGIN { for (i = 1; i <= 20; i++) print i == 10 ? 2 : i == 20 ? 3 : 1 }' >by.number
ok 'a list for nodes that are numbers' makes '1 2 1|1 3 1|2 3 1|' numbers.txt by.number --to abc
{ echo 1; cat by.number; } >by.number.0
ok 'from 0, if there is a node 0' makes '1 1 2|1 2 1|1 3 1|2 3 1|' <(cat numbers.txt; echo 0 5) by.number.0 --to abc
ok 'one that may be either' fails 1 'by.number.0:21: 21 labels for nodes .*from 1 to 20' \
    numbers.txt by.number.0 -o X --to abc
numbered_binary() { # its rows are 3, 1, 2
    status 0 <(printf '3 1 1\n1 2 2\n') <(printf '3 1\n1 2\n2 3\n') -o numbered.bin --labels pairs --names &&
        makes '1 2 3|' numbered.bin <(printf '1\n2\n2\n') --labels list --to abc --loops drop &&
        fails 1 'labels for nodes that are named by numbers up to 3' numbered.bin <(printf '1\n1\n') -o X --to abc
}
ok 'a list for a binary matrix whose nodes are numbers' numbered_binary
ok 'by its rows, if they are not' makes '1 2 12|' r.bin <(printf '1\n1\n2\n') --labels list --to abc --loops drop
printf 'a x\nb x\nb y\nc y\nd y\n' >overlap
ok 'overlapping groups' makes 'x x 2|x y 11|y x 11|y y 12|' g.abc overlap --to tsv
printf 'p 1 0.5\nq 2\n' >half.pairs
for combine in max min mean count first; do
    ok "weights of memberships, --combine $combine" fails 1 "half.pairs: memberships have weights, .* or give --combine sum" \
        twice.abc half.pairs -o X --to abc --labels pairs --combine $combine
    ok "several groups without weights, --combine $combine" status 0 g.abc overlap -o - --to abc --combine $combine
done
printf '(mclheader\nmcltype matrix\ndimensions 4x2\n)\n(mclmatrix\nbegin\n0 0:0.5 1 $\n1 2 3 $\n)\n' >half.mci
ok "weights in mcl's matrix" fails 1 'half.mci: memberships have weights' g.mtx half.mci -o X --to abc --combine max
ok "sums of weighted memberships" makes '1 2 2.5|' twice.abc half.pairs --to abc --labels pairs
ok 'as they are' makes 'x x 2|x y 11|y x 11|y y 12|' g.abc overlap --to tsv --engine product
ok 'weighted groups' makes 'x x 1|x y 9.5|y x 9.5|y y 10|' g.abc <(printf 'a x 1\nb x .5\nb y .5\nc y 1\nd y 1\n') \
    --labels pairs --to tsv
ok 'overlapping groups, directed' eval 'status 0 g.abc overlap -o X --to tsv --combine count --directed && rm X'
ok 'a node without a label is refused' fails 1 '1 node has no label, d; give --unlabelled' g.abc \
    <(printf 'a x\nb y\nc y\n') -o X --to abc
ok 'nodes without labels are refused' fails 1 '2 nodes have no label, such as c; give --unlabelled' g.abc \
    <(printf 'a x\nb y\n') -o X --to abc --labels pairs
ok 'dropped' makes 'x y 1|' g.abc <(printf 'a x\nb y\n') --to abc --labels pairs --unlabelled drop
ok 'kept' makes 'x y 1|x d 8|y c 2|c d 4|' g.abc <(printf 'a x\nb y\n') --to abc --labels pairs --unlabelled keep
ok 'kept, by number' makes '1 2 1|1 4 8|2 3 2|3 4 4|' g.abc <(printf 'a 1\nb 2\n') --to abc --labels pairs \
    --unlabelled keep
ok 'kept beside overlapping groups' makes 'x x 2|x y 1|x c 2|x d 8|y x 1|y c 2|c x 2|c y 2|c d 4|d x 8|d c 4|' g.abc \
    <(printf 'a x\nb x\nb y\n') --to tsv --unlabelled keep
for none in -1 NA nan NaN; do
    numbers=$(printf '1\n1\n2\n%s\n' $none) names=$(printf 'a x\nb x\nc y\nd %s\n' $none)
    ok "$none is no label" fails 1 ': 1 node has no label, 4; .*drop or keep .-1, NA and nan' g.mtx \
        <(echo "$numbers") -o X --to abc
    ok "$none among names" fails 1 ': 1 node has no label, d; .*drop or keep .-1, NA and nan' g.abc \
        <(echo "$names") -o X --to abc
    ok "$none dropped" makes '1 1 1|1 2 18|' <(sed 's/2 2 16/2 3 16/' g.mtx) <(echo "$numbers") --to tsv \
        --unlabelled drop
    ok "$none dropped among names" makes 'x x 2|x y 2|' g.abc <(echo "$names") --to abc --unlabelled drop
    ok "$none kept among names" makes 'x x 2|x y 2|x d 8|y d 4|' g.abc <(echo "$names") --to abc --unlabelled keep
done
ok 'all without a label' makes '0 0 0|' g.mtx <(printf -- '-1\n-1\n-1\n-1\n') --to mtx --unlabelled drop
ok 'before the first name' makes 'x x 4|' g.abc <(printf 'a -1\nb x\nc x\nd -1\n') --to abc --unlabelled drop
ok 'in one of two groups' makes '1 2 2|' g.mtx <(printf '1 -1\n2 1\n2 -1\n3 2\n4 -1\n') --to abc --unlabelled drop \
    --loops drop
ok 'labels of unknown nodes' makes 'x y 1|' g.abc <(printf 'a x\nb y\nq y\n') --to abc \
    --unlabelled drop --unknown drop
ok 'empty groups stay' makes '5 5 4|3 3 18|3 5 4|5 3 1|5 5 8|' g.mtx <(printf '5\n3\n3\n5\n') --to mtx
ok 'or go' makes '3 3 18|3 5 4|5 3 1|5 5 8|' g.mtx <(printf '5\n3\n3\n5\n') --to tsv --compact
ok 'numbered anew in a matrix' makes '2 2 4|1 1 18|1 2 4|2 1 1|2 2 8|' g.mtx <(printf '5\n3\n3\n5\n') --to mtx \
    --compact
ok 'labels far apart' makes '7 7 18|7 2000000000 4|2000000000 7 1|2000000000 2000000000 8|' g.mtx \
    <(printf '2000000000\n7\n7\n2000000000\n') --to tsv --compact
ok 'without room for the groups between' fails 1 'labels up to 2000000000 .*--compact' g.mtx \
    <(printf '2000000000\n7\n7\n2000000000\n') -o X --to tsv

# ---- operations -----------------------------------------------------------------------------------------

printf '1\n1\n2\n2\n' >halves
operation() { # operation NAME EXPECTED: of 1 2 1 | 2 2 16 within the first half, 2 3 2 | 4 1 8 between
    ok "--combine $1" makes "$2" g.mtx halves --to tsv --combine "$1"
    ok "--combine $1 as two products" makes "$2" g.mtx halves --to tsv --combine "$1" --engine product
    ok "--combine $1 in one pass" makes "$2" g.mtx halves --to tsv --combine "$1" --engine fused
}
operation sum '1 1 17|1 2 2|2 1 8|2 2 4|'
operation max '1 1 16|1 2 2|2 1 8|2 2 4|'
operation min '1 1 1|1 2 2|2 1 8|2 2 4|'
operation mean '1 1 8.5|1 2 2|2 1 8|2 2 4|'
operation count '1 1 2|1 2 1|2 1 1|2 2 1|'
operation first '1 1 1|1 2 2|2 1 8|2 2 4|'
ok '--loops drop' makes '1 2 2|2 1 8|' g.mtx halves --to tsv --loops drop
ok '--loops only' makes '1 1 17|2 2 4|' g.mtx halves --to tsv --loops only
ok '--half-loops' makes '1 1 8.5|1 2 2|2 1 8|2 2 2|' g.mtx halves --to tsv --half-loops
big() { # sums of whole numbers are exact beyond 2^24
    awk 'BEGIN { print "%%MatrixMarket matrix coordinate integer general"; print "3 3 3"; print "1 2 16777216"
        print "1 3 1"; print "2 3 1" }' >big.mtx
    makes '1 2 16777217|2 2 1|' big.mtx <(printf '1\n2\n2\n') --to tsv
}
ok 'whole sums are exact' big
printf 'a b 1.5\nb c 1.5e308\na d 1.5e308\n' >vast.abc
ok 'sums beyond f64' fails 1 'vast.abc: the edges from group x to group y sum to more than 1.8e308; scale' \
    vast.abc <(printf 'a x\nb x\nc y\nd y\n') -o X --to abc
ok 'that repeated edges make' fails 1 'sum to more than 1.8e308' <(printf 'a b 1e308\na b 1e308\na b 1.5\n') \
    <(printf 'a x\nb y\n') -o X --to abc
ok 'sums beyond f32' fails 1 'sum to more than 3.4e38; scale' <(printf 'a b 1.5\nb c 3e38\na d 3e38\n') \
    <(printf 'a x\nb x\nc y\nd y\n') -o X --to abc --values f32
ok 'f64 has the room' makes 'x x 3|x y 6e38|' <(printf 'a b 1.5\nb c 3e38\na d 3e38\n') \
    <(printf 'a x\nb x\nc y\nd y\n') --to abc

# ---- exact values ---------------------------------------------------------------------------------------

exact() { # exact NAME EXPECTED GRAPH ARGUMENTS...: for nodes 1 and 2, or p and q
    local name=$1 expected=$2 graph=$3
    shift 3
    printf '%b' "$graph" >exact.in
    ok "$name" makes "$expected" exact.in "$@"
}
integer='%%MatrixMarket matrix coordinate integer general\n'
printf 'p p\nq q\n' >pq.names
exact 'weights above 2^24: label pairs' 'p q 123456789|' 'p q 123456789\n' pq.names --to abc
exact 'long label pairs' 'p q 16777217|' 'p    q   16777217   ignored\n' pq.names --to abc
exact 'SIF' 'p q 1|' 'p x q\n' pq.names --to abc --from sif
exact 'METIS' '2 1 011|1 2 16777217|1 1 16777217|' '2 1 001\n2 16777217\n1 16777217\n' onetwo --from metis --to metis
exact 'Matrix Market' '1 2 2147483649|2 1 0.1|' \
    '%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 2147483649\n2 1 .1\n' onetwo --to tsv
exact "mcl's matrix" '1 2 16777217|2 1 0.1|' \
    '(mclheader\nmcltype matrix\ndimensions 2x2\n)\n(mclmatrix\nbegin\n0 1:16777217 $\n1 0:.1 $\n)\n' onetwo --to tsv
exact 'STRING' 'p q 16777217|' 'protein1 protein2 combined_score\np q 16777217\n' pq.names --to tsv
exact 'BLAST' 'p q 16777217|' 'p\tq\t90\t10\t0\t0\t1\t10\t1\t10\t1e-5\t16777217\n' pq.names --to abc --from blast
exact 'edges that f32 would round to 0' 'p q 1e-60|' 'p q 1e-60\n' pq.names --to abc
exact 'tenths' 'p q 0.30000000000000004|' 'p q .1\np q .2\n' pq.names --to abc
through_binary() { # f64 from file to file, with names
    printf 'p q .1\nq r 16777217.25\n' >exact.in && printf 'p p\nq q\nr r\n' >pqr &&
        status 0 exact.in pqr -o exact.bin && makes 'p q 0.1|q r 16777217.25|' exact.bin pqr --to abc &&
        makes 'p q 0.1|q r 16777217.25|' exact.bin pqr --to abc --undirected --combine max
}
ok 'binary' through_binary
exact 'weights of memberships' '1 2 0.1|' '%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n' \
    <(printf '1 1 .1\n2 2\n') --labels pairs --to tsv
exact '--values f32' 'p q 0.1|' 'p q 0.1000000001\n' pq.names --to abc --values f32
exact 'means leave out what f32 rounds to 0' 'p q 2|' 'p q 2\np q 1e-60\n' pq.names --to abc --values f32 \
    --combine mean
exact 'means of f32 take rounded weights' 'p q 8388609|' 'p q 16777217\np q 2\n' pq.names --to abc --values f32 \
    --combine mean
means_of_binary() { # rounded as text is
    printf 'p q 16777217\n' >exact.in && printf 'p p\nq q\n' >pp && status 0 exact.in pp -o mean.bin &&
        makes 'p q 16777216|' mean.bin pp --to abc --values f32 --combine mean
}
ok 'means of f32 from a binary matrix' means_of_binary
ok 'means of f32 refuse what is too large' fails 1 ':2: the weight is too large .*3.4e38' \
    <(printf 'p q 1\np q 1e39\n') pq.names -o X --to abc --values f32 --combine mean
exact 'sums of f32 are rounded once' 'p p 16777218|' 'p a 16777216\np b 1\na b 1\n' \
    <(printf 'p p\na p\nb p\n') --to abc --values f32 --directed
limit=9007199254740992 # 2^53
exact 'sums up to 2^53' "p q $limit|" "p q $((limit - 1))\np q 1\n" pq.names --to abc
exact 'a weight of 2^53' "p q $limit|" "p q $limit\n" pq.names --to abc
exact 'in Matrix Market' "2 2 1|1 2 $limit|" "${integer}2 2 1\n1 2 $limit\n" onetwo --to mtx
ok 'as an integer' grep -q integer run.out
for vast in $((limit + 1)) $((limit + 2)) -$((limit + 1)) 1e17; do
    ok "a whole weight of $vast" fails 1 ':2: a whole weight beyond 2\^53.*--values f32' \
        <(printf "p q 7\nq p $vast\nq p 1e18\n") pq.names -o X --to abc
done
ok 'in Matrix Market' fails 1 ':4: a whole weight' <(printf '%b' "${integer}2 2 2\n1 2 5\n2 1 9e16\n") \
    onetwo -o X --to abc
exact 'vast weights that are not used' 'p q 1|' 'p q 1e17\n' pq.names --to abc --combine count
exact 'vast weights beside fractions' 'p q 1e17|q q 0.5|' 'p q 1e17\nq q .5\n' pq.names --to abc
exact 'vast weights in f32' 'p q 1e17|' 'p q 1e17\n' pq.names --to abc --values f32
printf 'a x\nb x\nc y\nd y\n' >xy
beyond() { # beyond NAME GRAPH ARGUMENTS...: a sum whose terms add up to more than 2^53
    local name=$1
    printf '%b' "$2" >exact.in
    shift 2
    ok "$name" fails 1 'exact.in: .*from (group )?[xa] to (group )?[yc], signs aside, .* 2\^53.*--values f32' \
        exact.in xy -o X --to abc "$@"
}
exact 'cells of 2^53, all in all more' "x x $limit|x y $limit|y y 6|" \
    "a b $((limit / 2))\na c $((limit - 5))\nb d 5\nc d 3\n" xy --to abc
beyond 'sums of 2^53 + 1' "a c $((limit - 1))\nb d 2\nb c 0\n"
beyond 'by two products' "a c $((limit - 1))\nb d 2\nb c 0\n" --engine product
beyond 'though signs differ' "a c $((limit - 1))\nb d -2\nb c 0\n" --directed
beyond 'of repeated edges' "a c $((limit - 1))\na c 2\nb d 0\n"
exact 'as f32' 'x y 9007199254740992|' "a c $((limit - 1))\nb d 2\nb c 0\n" xy --to abc --values f32
exact 'maxima do not add up' "x y $((limit - 1))|" "a c $((limit - 1))\nb d 2\nb c 0\n" xy --to abc --combine max
ok 'figures of groups do' fails 1 'Y: the weights of group x, signs aside, .*2\^53' exact.in xy -o X --to abc \
    --combine max --node-output Y
ok 'and hierarchies' fails 1 'group 1 to group 1, signs aside' exact.in -o X --to abc --repeat matching
ok '--threads 1' makes '1 1 17|1 2 2|2 1 8|2 2 4|' g.mtx halves --to tsv --threads 1 --memory 100M --device cpu
same_bytes() {
    for t in 1 2 5; do status 0 "$in/p2000.abc" c -o "t$t.abc" --threads $t || return 1; done
    cmp t1.abc t2.abc && cmp t1.abc t5.abc
}
ok 'threads change nothing' same_bytes

# ---- names and figures ----------------------------------------------------------------------------------

ok '--names' makes 'a b 1|a d 8|b b 4|b d 4|' g.abc <(printf 'a 1\nb 2\nc 2\nd 3\n') --to abc --names
tab() {
    status 0 g.abc <(printf 'a 1\nb 2\nc 2\nd 3\n') -o n.mtx --names &&
        [ "$(tr '\t\n' ' |' <n.mtx.tab)" = '0 a|1 b|2 d|' ]
}
ok 'names beside formats without' tab
tab_to_mcl() { "$mcl_gpu" n.mtx -use-tab n.mtx.tab -o n.cls -V all && [ "$(tr '\t\n' ' |' <n.cls)" = 'a b d|' ]; }
ok 'mcl-gpu takes them' tab_to_mcl
figures() {
    status 0 g.abc <(printf 'a 1\nb 1\nc 2\nd 2\n') -o f.abc --node-output f.tsv --names &&
        [ "$(tail -n +2 f.tsv | tr '\t\n' ' |')" = 'a 2 2 10 0.8333333333333334|c 2 8 10 0.8333333333333334|' ] &&
        [ "$(head -n 1 f.tsv)" = $'group\tsize\tinternal\tcut\tconductance' ] || { cat f.tsv; return 1; }
}
ok '--node-output' figures
mean_figures() {
    status 0 twice.abc pq -o f.abc --combine mean --node-output f.tsv &&
        [ "$(tail -n +2 f.tsv | tr '\t\n' ' |')" = '1 1 0 1.6666666666666667 1|2 1 0 1.6666666666666667 1|' ] ||
        { cat f.tsv; return 1; }
}
ok 'figures of repeated edges by their mean' mean_figures

# ---- weights of nodes -----------------------------------------------------------------------------------

printf '4 4 111 2\n7 10 1 2 1 4 5\n7 20 1 1 1 3 1\n0 30 1 2 1 4 2\n9 40 0 1 5 3 2\n' >nodes.graph
ok 'weights and sizes of METIS nodes are summed' makes '2 1 111 2|14 30 2 2 6|9 70 1 1 6|' nodes.graph halves \
    --to metis --loops drop
ok 'those of dropped nodes are not' makes '2 1 110 2|14 30 2 2|0 30 1 1|' nodes.graph <(printf '1\n1\n2\n-1\n') \
    --to metis --loops drop --unlabelled drop
ok 'kept nodes keep theirs' makes '3 3 111 2|14 30 2 2 1 3 5|0 30 1 1 1 3 2|9 40 0 1 5 2 2|' nodes.graph \
    <(printf '1\n1\n2\n-1\n') --to metis --loops drop --unlabelled keep
node_columns() {
    status 0 nodes.graph halves -o X.tsv --node-output f.tsv && says_so &&
        [ "$(cut -f 1,2,6- f.tsv | tr '\t\n' ' |')" = 'group size weight1 weight2 size_sum|1 2 30 2 14|2 2 70 1 9|' ]
}
ok '--node-output has them' node_columns
left_out() { status 0 nodes.graph halves -o X.tsv && grep -q 'nodes.graph: the weights and .*--to metis' run.err; }
ok 'other formats leave them out with a notice' left_out
printf '2 1 010\n9007199254740991 2\n2 1\n' >heavy.graph
ok 'weights of nodes beyond 2^53' fails 1 'heavy.graph: the weights of the nodes of group 1 sum to more than 2.53' \
    heavy.graph <(printf '1\n1\n') -o X --to metis --loops drop
ok 'weights of nodes in several groups' fails 1 'nodes, which cannot be shared' nodes.graph \
    <(printf '1 1\n1 2\n2 1\n3 2\n4 2\n') -o X --to metis --loops drop
if command -v python3 >/dev/null; then
    metis_nodes() { python3 "$tests/contract_metis.py" "$tool" "${METIS_CASES:-60}"; }
    ok 'random METIS graphs, level by level and in one call' metis_nodes
else skip 'no python3: random METIS graphs'; fi

# ---- hierarchies ----------------------------------------------------------------------------------------

maps() { # maps HOW: the maps, one after the other, contract to the same graph
    rm -f h.*
    status 0 "$in/p2000.abc" -o h.abc --repeat "$1" --levels 3 || return 1
    [ -f h.abc.level1.map ] && cp "$in/p2000.abc" h.now.abc || return 1
    for map in h.abc.level*.map; do
        status 0 h.now.abc "$map" -o h.next.mtx --combine sum && mv h.next.mtx h.now.mtx || return 1
        [ "$map" = h.abc.level1.map ] && rm h.now.abc
        ln -sf h.now.mtx h.now.abc
    done
    status 0 h.now.mtx <(awk '!/^%/ { for (i = 1; i <= $1; i++) print i; exit }' h.now.mtx) -o h.same.abc &&
        awk 'NR == FNR { w[$1, $2] = $3; n++; next } { d = w[$1, $2] - $3; n--; if (d * d > 1e-8 * $3 * $3) exit 1 }
             END { exit n != 0 }' h.same.abc h.abc
}
ok 'maps of clusters compose' maps cluster
ok 'maps of matchings compose' maps matching
levels() {
    rm -f h.*
    status 0 "$in/p2000.abc" -o h.abc --repeat matching --levels 2 &&
        [ "$(ls h.* | tr '\n' ' ')" = 'h.abc h.abc.level1.map h.abc.level2.map h.abc.total.map ' ]
}
ok '--levels' levels
halved() { # the weights of all edges, those within groups counted once
    status 0 g.abc -o h.abc --repeat matching --levels 2 --half-loops &&
        [ "$(awk '{ s += $3 } END { print s }' h.abc)" = 15 ]
}
ok 'half loops after two levels' halved
no_graph() { : >none.abc && status 0 none.abc -o h.mtx --repeat matching && [ ! -e h.mtx.level1.map ]; }
ok 'no graph to contract' no_graph
printf 'a b 1e300\nb c .5\n' >huge.abc
ok 'clusters by weights beyond f32' fails 1 'huge.abc: a weight of 1e.300: clustering takes at most 3.4e38' huge.abc -o X \
    --to abc --repeat cluster
tiny_edges() { # are none to clustering, and stay edges of the graph
    printf 'a b 1e-60\nb c 1e-60\nc d .5\n' >tiny.abc
    status 0 tiny.abc -o h.tsv --repeat cluster --levels 1 &&
        [ "$(cut -f 2 h.tsv.level1.map | sort | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" = '2 1 1 ' ] &&
        [ "$(grep -c 1e-60 h.tsv)" -eq 4 ] || { cat h.tsv h.tsv.level1.map; return 1; }
}
ok 'clusters by weights below f32' tiny_edges
ok 'several files on stdout' fails 2 'several files' g.abc -o - --repeat matching --to abc
ok 'labels and a hierarchy' fails 2 'makes its own labels' g.abc pairs -o X --repeat matching --to abc
ok 'means of means' fails 2 'combine mean' g.abc -o X --repeat matching --to abc --combine mean

# ---- refusals -------------------------------------------------------------------------------------------

bad() { # bad NAME PATTERN LABELS ARGUMENTS...: such labels are refused, at FILE:LINE
    local name=$1 pattern=$2
    printf '%b' "$3" >bad.labels
    shift 3
    ok "$name" fails 1 "$pattern" "${graph:-g.mtx}" bad.labels -o X --to abc "$@"
}
bad 'too few labels' 'bad.labels:3: 3 labels, but the graph has 4 nodes' '1\n1\n2\n'
bad 'too many labels' 'bad.labels:5: a label more' '1\n1\n2\n2\n1\n'
bad 'label 0' 'bad.labels:2: a label 0 .*"0".*--base 0' '1\n0\n2\n2\n' --base 1
bad 'a negative label' 'bad.labels:3: the label is negative .*"-2".*from 1, or names, and -1 where' '1\n2\n-2\n2\n' --base 1
bad 'from 0' 'bad.labels:3: the label is negative .*"-3".*from 0, or names, and -1 where' '1\n2\n-3\n2\n'
bad 'a negative one among names' 'bad.labels:3: the label is negative .*"-2".*-1 where' '1 x\n2 y\n3 -2\n4 x\n'
bad 'an empty label' 'bad.labels:2: a node without a label .*-1 for no label' '1\tx\n2\t\n3\ty\n4\ty\n' --labels pairs
bad 'a large label' 'bad.labels:1: the label is too large .*"2147483648"' '2147483648\n1\n1\n1\n'
bad 'a huge label' 'bad.labels:1: the label is too large' '99999999999999999999999\n1\n1\n1\n' --compact
bad 'a label that is not a number' 'bad.labels:2: the label is not a whole number' '1\nx\n1\n1\n'
bad 'an unknown node' 'bad.labels:2: this is not a node .*"5"' '1 1\n5 1\n2 1\n1 1\n'
bad 'node 0' 'bad.labels:1: this is not a node .*"0"' '0 1\n1 1\n2 1\n1 1\n'
bad 'a weight that is not a number' 'bad.labels:1: the weight of a membership' '1 1 x\n' --labels pairs
bad 'a node alone' 'bad.labels:2: a node without a label' '1 1\n2\n3 1\n4 1\n' --labels pairs
bad 'no labels' 'bad.labels:1: 0 labels, but the graph has 4 nodes' ''
bad 'a NUL byte' 'bad.labels:2: the line holds a NUL byte' '1\n\0\n'
bad 'a clustering of another graph' 'bad.labels: a clustering of 3 nodes, but the graph has 4' \
    '(mclheader\nmcltype matrix\ndimensions 3x1\n)\n(mclmatrix\nbegin\n0 0 1 2 $\n)\n'
graph=g.abc
bad 'an unknown name' 'bad.labels:3: this is not a node .*"e"' 'a x\nb x\ne y\nd y\n'
bad 'an unknown name in a cluster' 'bad.labels:2: this is not a node .*"e"' 'a\tb\tc\nd\te\n'
bad 'labels without order' 'a label a line for nodes that have names .*"a"' '1\n1\n2\n2\n'
graph=
refuses() { # refuses NAME PATTERN TEXT ARGUMENTS...: such a graph is refused
    local name=$1 pattern=$2
    printf '%b' "$3" >bad.graph
    shift 3
    ok "$name" fails 1 "$pattern" bad.graph list -o X --to abc "$@"
}
refuses 'a matrix that is not square' 'bad.graph:2: rows and columns differ' \
    '%%MatrixMarket matrix coordinate real general\n4 3 0\n'
refuses 'a truncated matrix' 'bad.graph:3: 1 entries, but the header says 2' \
    '%%MatrixMarket matrix coordinate real general\n4 4 2\n1 1 1\n'
refuses 'a neighbour that is not a node' 'bad.graph:3: a neighbour that is not a node .*"3"' '2 1\n2\n3\n' --from metis
refuses 'METIS with an edge in one line' 'bad.graph:2: node 1 names node 2, but that does not name it in line 3' '3 1\n2\n3\n\n' --from metis
refuses 'METIS with too few edges' 'bad.graph:3: 2 neighbours, but the header says 2 edges' '2 2\n2\n1\n' --from metis
refuses 'METIS without a header' 'bad.graph:1: no header of a METIS graph' 'a b\n' --from metis
cut_binary() { head -c 60 r.bin >bad.bin && fails 1 'bad.bin: byte 60: .*truncated' bad.bin three -o X --to abc; }
ok 'a truncated binary' cut_binary
damaged_binary() {
    { head -c 100 r.bin; printf '\7'; tail -c +102 r.bin; } >bad.bin &&
        fails 1 'bad.bin: byte [0-9]*: the checksum is wrong' bad.bin three -o X --to abc
}
ok 'a damaged binary' damaged_binary
damaged_header() {
    { head -c 30 r.bin; printf '\7'; tail -c +32 r.bin; } >bad.bin &&
        fails 1 "bad.bin: byte 56: the header's checksum" bad.bin three -o X --to abc
}
ok 'a damaged header' damaged_header
printf '\3757zXZ\0' >packed
ok 'a graph in xz' fails 1 'packed: compressed by xz' packed list -o X --to abc
ok 'labels in xz' fails 1 'packed: compressed by xz' g.mtx packed -o X --to abc
printf 'PK\3\4' >packed
ok 'labels in a zip archive' fails 1 'packed: a zip archive' g.mtx packed -o X --to abc
marked() { { printf '\357\273\277'; cat "$1"; } >"marked.$1"; }
marked g.abc
marked pairs
ok 'byte order marks' makes 'x y 1|x z 8|y y 4|y z 4|' marked.g.abc marked.pairs --to abc
: >none
ok 'no nodes, no labels' makes '0 0 0|' none none --to mtx
cp pairs own.pairs
ln -f g.abc own.tab
ln -f g.abc own.level2.map
untouched() { # untouched ARGUMENTS...: an output is an input, which stays as it is
    fails 2 'is an input, too: give it another name; see contract --help$' "$@" && cmp own.pairs pairs &&
        [ "$(wc -l <g.abc)" -eq 4 ]
}
ok 'the output over the graph' untouched g.abc own.pairs -o ./g.abc
ok 'the output over the labels' untouched g.abc own.pairs -o own.pairs --to abc
ok 'figures over the labels' untouched g.abc own.pairs -o X --to abc --node-output own.pairs
ok 'the report over the graph' untouched g.abc own.pairs -o X --to abc --report g.abc
ok 'names over the graph' untouched g.abc own.pairs -o own --to mtx --names
ok 'a map over the graph' untouched g.abc -o own --to abc --repeat matching
ok 'no such graph' fails 1 'nofile: .*o such file' nofile list -o X --to abc
ok 'no such labels' fails 1 'nofile: .*o such file' g.mtx nofile -o X --to abc
ok 'labels of no graph' fails 1 'pairs:1: the graph has no nodes' none pairs -o X --to abc
without_loops() { # METIS drops them, with a notice if there are any
    status 0 "$@" -o l.graph && grep -q 'l.graph: METIS graphs have no loops, so edges within groups are left out' run.err &&
        status 0 "$@" -o d.graph --loops drop && says_so && cmp l.graph d.graph
}
ok 'METIS has no loops' without_loops g.abc numbers
ok 'of levels either' without_loops g.abc --repeat matching
ok 'nor of overlapping groups' without_loops g.abc overlap
ok 'no loops, no notice' makes '4 4 011|1 2 1 4 8|1 1 1 3 2|1 2 2 4 4|1 1 8 3 4|' g.abc <(printf 'a 1\nb 2\nc 3\nd 4\n') --to metis
ok 'METIS cannot keep loops' fails 1 'X: edges within groups are loops.*--loops drop' g.abc pairs -o X --to metis --loops keep
ok 'of levels either' fails 1 'X: edges within groups are loops.*--loops drop' g.abc -o X --to metis --repeat matching --loops keep
ok 'nor of overlapping groups' fails 1 'X: the edge from 1 to 1 is a loop' g.abc overlap -o X --to metis --loops keep
ok 'nor loops alone' fails 2 'loops only' g.abc pairs -o X --to metis --loops only
ok 'groups of one name' fails 1 'called "b"' g.abc <(printf 'a b\nc d\nd d\n') -o X --to abc --labels pairs --unlabelled keep
ok 'a device that is not there, before the work' fails 1 'cuda:99' nofile list -o X --to abc --device cuda:99
ok 'METIS takes no fractions' fails 1 'not a whole number' <(printf 'p q .5\n') pq -o X --to metis
ok 'METIS is undirected' fails 1 'no opposite' g.mtx halves -o X --to metis --loops drop
ok 'one pass needs one label' fails 1 'several groups' g.abc overlap -o X --to abc --engine fused
ok 'a group called as a kept node' fails 1 'called "b".*unlabelled drop' g.abc <(printf 'a b\nc d\nd d\n') -o X --to abc \
    --labels pairs --unlabelled keep
for format in mtx mcl metis; do
    ok "names on standard output, $format" fails 2 "--names with --to $format .* -o FILE, or --to abc, tsv, csv, graphml or bin" g.abc pairs \
        -o - --to $format --names
done
ok 'a number that is a name' fails 1 'called "2".*--compact' g.mtx <(printf '1\n3\n3\n3\n') -o X --to mtx --names
ok 'which a list of edges does not show' makes '1 2 1|2 1 8|2 2 22|' g.mtx <(printf '1\n3\n3\n3\n') --to tsv --names
ok 'but figures do' fails 1 'called "2".*--compact' g.mtx <(printf '1\n3\n3\n3\n') -o X --to tsv --names --node-output Y
ok 'without empty groups it is none' makes '1 2 1|2 1 8|2 2 22|' g.mtx <(printf '1\n3\n3\n3\n') --to tsv --names --compact
ok 'one first node of two groups' fails 1 'called "a".*--names' g.abc <(printf 'a b\na c d\n') -o X --to abc --names \
    --labels clusters
ok 'figures need one label' fails 1 'several groups' g.abc overlap -o X --to abc --node-output Y
ok 'folder of the output is missing' fails 1 'nodir' g.abc pairs -o nodir/F.abc
ok 'folder of the figures is missing' fails 1 'nodir' g.abc pairs -o X --to abc --node-output nodir/F
ok 'folder of the report is missing' fails 1 'nodir' g.abc pairs -o X --to abc --report nodir/F
for wrong in '' '-o' '--foo' '--to xyz' '--to string' '--from xyz' '--combine median' '--loops all' '--base 2' \
    '--unlabelled x' '--unknown x' '--labels x' '--repeat x' '--levels 0' '--engine x' '--device gpu' \
    '--device cuda:' '--threads 0' '--memory x' '--inflation 0' 'third' '--directed --undirected' '--node-output X' \
    '--report' '--levels 3' '--inflation 3' '--seed 2'; do
    ok "usage error: $wrong" fails 2 '; see contract --help$' g.abc pairs ${wrong:+-o X --to abc} $wrong
done
ok 'no format' fails 2 'give --to' g.abc pairs -o X
ok 'an output named as one of zstd' fails 2 'compressed by gzip only.*"X.mtx.zst"' g.abc pairs -o X.mtx.zst --to mtx
ok 'figures named as one of zstd' fails 2 'compressed by gzip only.*"X.tsv.zst"' g.abc pairs -o X.mtx --node-output X.tsv.zst
hits_as_pairs() {
    printf "a\\tb\\t$blast\\t50\\nc\\td\\t$blast\\t7\\n" >hits.m8
    status 0 hits.m8 pairs -o X.abc && grep -q 'hits.m8: a BLAST table, .*--from blast' run.err &&
        status 0 hits.m8 pairs -o X.abc --from blast && says_so
}
ok 'a BLAST table as label pairs' hits_as_pairs
ok 'no labels' fails 2 'no labels' g.abc -o X --to abc
ok 'two standard inputs' fails 2 'only one input can be standard input' - - -o X --to abc

# ---- files and signals ----------------------------------------------------------------------------------

ok 'standard input' eval '"$tool" - pairs -o - --to abc <g.abc | cmp - <("$tool" g.abc pairs -o - --to abc)'
survives() {
    cp list kept.abc && printf 'a\n' >bad.labels && status 1 g.mtx bad.labels -o kept.abc && cmp kept.abc list
}
ok 'an old output survives a failure' survives
all_or_nothing() { # the figures cannot be written in full: the graph does not appear either
    rm -f X
    status 1 g.abc pairs -o X --to abc --node-output /dev/full && [ ! -e X ] && no_leftovers
}
if [ -w /dev/full ]; then
    to_full() { ! "$tool" g.abc pairs -o - --to abc >/dev/full 2>run.err && [ -s run.err ]; }
    ok 'output to a full device fails' to_full
    ok 'all outputs or none' all_or_nothing
else skip 'no /dev/full'; fi
small_limit() { # the file size limit stands for a full disk
    mkdir -p full
    (ulimit -f 1 && trap '' XFSZ && "$tool" "$in/p2000.abc" c -o full/F.abc --report full/r 2>run.err)
    [ $? -eq 1 ] && [ -z "$(ls -A full)" ] && grep -q '^contract: ' run.err
}
ok 'a full disk leaves nothing' small_limit
ok 'closed streams' eval '"$tool" g.abc pairs -o closed.abc <&- >&- 2>&- && [ -s closed.abc ]'
waits() { # waits SIGNAL STATUS: while a pipe says nothing
    mkfifo -m 600 pipe
    heeding "$1" "$tool" pipe pairs -o sig.abc 2>run.err &
    local process=$! writer
    sleep 30 >pipe &
    writer=$!
    sleep 0.3
    kill -s "$1" $process
    wait $process
    local got=$?
    kill $writer
    rm pipe
    [ $got -eq "$2" ] && [ ! -e sig.abc ] && no_leftovers
}
ok 'SIGTERM' waits TERM 143
ok 'SIGHUP' waits HUP 129
ok 'a name that breaks lines' eval 'cp g.abc "odd
name" && status 0 "odd
name" pairs -o X.mtx --report odd.json'
if command -v python3 >/dev/null; then
    report() {
        status 0 "$in/p2000.abc" c -o rep.abc --report r.json && python3 - <<'PYTHON'
import json
r = json.load(open("r.json"))
assert r["tool"] == "contract" and r["graph"]["format"] == "abc" and r["graph"]["nodes"] == 1997
assert r["graph"]["undirected"] and r["graph"]["repeated"] == 270 and r["labels"]["kind"] == "clusters"
assert r["output"]["groups"] == 209 and r["output"]["entries"] == 5435 and r["engine"] == "fused"
assert r["seconds"]["total"] >= r["seconds"]["read_graph"] > 0 and r["peak_host_bytes"] > 0
json.load(open("odd.json"))
PYTHON
    }
    ok '--report' report
    on_terminal() { python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$tool" g.abc pairs -o tty.abc >run.out; }
    erased=$(printf '\r\033[K')
    ok 'a progress line on a terminal' eval 'on_terminal && grep -qF "${erased}reading g.abc" run.out'
else skip 'no python3: report'; skip 'no python3: progress line'; fi
ok 'no progress line elsewhere' eval 'status 0 g.abc pairs -o X.abc && says_so'
closes() { # closes LINE ARGUMENTS...: the closing line; --quiet silences it
    local line=$1
    shift
    status 0 "$@" && [ "$(cat run.err)" = "contract: $line" ] && status 0 "$@" --quiet && [ ! -s run.err ] ||
        { cat run.err; return 1; }
}
status 0 g.abc pairs -o u.bin && printf 'x 1\ny 1\nz 2\n' >xyz
ok 'a closing line' closes 'read g.abc as label pairs, 4 nodes, 4 edges; wrote 3 groups, 4 edges to X.abc' g.abc pairs \
    -o X.abc
ok 'arcs of a matrix' closes \
    'read g.mtx as Matrix Market, 4 nodes, 5 edges; wrote 3 groups, 4 edges to X.tsv' g.mtx list -o X.tsv
printf '4 4\n2 4\n1 3\n2 4\n1 3\n' >ring.graph
ok 'edges of METIS' closes \
    'read ring.graph as METIS, 4 nodes, 4 edges; wrote 1 level, 2 groups, 3 edges to X.mtx' ring.graph -o X.mtx \
    --repeat matching --levels 1
ok 'edges of an undirected binary' closes 'read u.bin as a binary matrix, 3 nodes, 4 edges; wrote 2 groups, 2 edges to X.mtx' \
    u.bin xyz -o X.mtx
ok 'nodes that were left out' closes \
    'read g.abc as label pairs, 4 nodes, 4 edges; wrote 1 group, 1 edge to X.abc; left out 2 nodes without a label' g.abc \
    <(printf 'a x\nb x\n') -o X.abc --unlabelled drop --labels pairs
thousands() {
    seq 1 2000 | awk '{ print $1, $1 % 2000 + 1 }' | status 0 - <(seq 1 2000 | awk '{ print $1, $1 }') -o - --to abc
    local count='2,000 edges'
    [ "$(cat run.err)" = "contract: read standard input as label pairs, 2,000 nodes, $count; wrote 2,000 groups, $count \
to standard output" ]
}
ok 'thousands have commas' thousands
no_notices() {
    status 0 nodes.graph halves -o X.mtx --quiet && [ ! -s run.err ] && status 0 r.tsv turned -o - --to abc --quiet &&
        [ ! -s run.err ] && fails 1 'No such file' nofile halves -o X --to mtx --quiet
}
ok 'nothing but errors under --quiet' no_notices
ok 'no temporary files are left' no_leftovers

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
