#!/bin/bash
# gnn train and gnn predict from the command line to their files: what is learnt, reports, plots, saved models and going
# on with them, predictions, refusals with their lines, atomic output, signals.
#   GNN  the tool [$BUILD/bin/gnn]
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
tool=$(realpath "${GNN:-${BUILD:-build}/bin/gnn}") || exit 1
. tests/support/cli.sh

fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr, nothing on stdout, no output X
    local expected=$1 pattern=$2
    shift 2
    rm -f X
    status "$expected" "$@" && [ ! -s run.out ] && [ ! -e X ] && no_leftovers && [ "$(wc -l <run.err)" -eq 1 ] &&
        grep -qE -- "^gnn: .*$pattern" run.err || { cat run.err; return 1; }
}

# Three rings of 40 nodes with chords, and an edge between rings now and then; every third node has a feature of its
# ring, the others one that says nothing.
rings() { # rings FOLDER
    mkdir -p "$1"
    awk 'BEGIN {
        print "%%MatrixMarket matrix coordinate pattern symmetric"; print "120 120 252"
        for (c = 0; c < 3; c++) for (i = 0; i < 40; i++) {
            a = c * 40 + i + 1; b = c * 40 + (i + 1) % 40 + 1; print (a > b ? a " " b : b " " a)
            b = c * 40 + (i + 5) % 40 + 1; print (a > b ? a " " b : b " " a) }
        for (i = 0; i < 12; i++) print 41 + 3 * i, 1 + 3 * i }' >"$1/graph.mtx"
    awk 'BEGIN {
        print "%%MatrixMarket matrix coordinate real general"; print "120 6 120"
        for (i = 0; i < 120; i++) print i + 1, (i % 3 ? 4 + i % 2 : 1 + int(i / 40)), 2 }' >"$1/features.mtx"
    awk 'BEGIN { for (i = 0; i < 120; i++) print int(i / 40) }' >"$1/labels.txt"
    awk 'BEGIN { for (i = 0; i < 120; i++) if (i % 10 == 0) print i }' >"$1/train.txt"
    awk 'BEGIN { for (i = 0; i < 120; i++) if (i % 10 == 3) print i }' >"$1/val.txt"
    awk 'BEGIN { for (i = 0; i < 120; i++) if (i % 10 > 4) print i }' >"$1/test.txt"
}
rings d
quick="--rate 0.05 --dropout 0.1 --epochs 40"

# ---- help -----------------------------------------------------------------------------------------------

ok 'without arguments: usage on stderr, status 2' eval 'status 2 && [ ! -s run.out ] && grep -q "^usage" run.err'
one_screen() { status 0 "$@" && [ ! -s run.err ] && [ "$(wc -l <run.out)" -le 40 ] && ! grep -E '^.{121}' run.out; }
ok '--help fits a screen' one_screen --help
ok 'train --help' one_screen train --help
ok 'predict -h' one_screen predict -h
ok '--version' eval 'status 0 --version && grep -qE "^gnn [0-9.]+$" run.out'
ok '--doctor names the BLAS' eval 'status 0 --doctor && grep -qE "^BLAS +[^ ]" run.out && grep -q "^GPU driver " run.out'

# ---- training -------------------------------------------------------------------------------------------

learns() { # learns LEAST ARGUMENTS...: so much accuracy on test nodes
    local least=$1
    shift
    status 0 train d $quick "$@" --report r.json && [ "$(wc -l <run.err)" -eq 1 ] && no_leftovers &&
        awk -v least="$least" 'match($0, /"test_accuracy": [0-9.]+/) {
            found = substr($0, RSTART + 17, RLENGTH - 17); exit } END { print found; exit !(found >= least) }' r.json
}
for model in gcn sage gin gat; do ok "$model learns" learns 0.9 --model $model; done
ok 'sage-max learns' learns 0.75 --model sage-max
for sampler in node layer fastgcn; do ok "sampler $sampler" learns 0.85 --sampler $sampler --batch 6; done
ok 'fan-outs' learns 0.85 --sampler node --fanout 4,3 --bulk 2 --layers 2
ok 'neighbours by weight' learns 0.85 --sampler node --fanout 3,3 --by-weight --batch 6
ok 'by weight without weights' fails 2 'by-weight goes with --sampler node and gcn' train d --sampler node --model sage --by-weight
ok 'by weight without draws' fails 2 'by-weight goes with --sampler node and gcn' train d --by-weight
ok 'clusters by matchings' learns 0.85 --sampler cluster
ok 'clusters by mcl' learns 0.85 --sampler cluster --clusters mcl --batch 4
awk '{ print $1 }' d/labels.txt >clusters.txt
ok 'clusters of a file' learns 0.85 --sampler cluster --clusters clusters.txt --batch 1
ok 'adamw' learns 0.9 --optimizer adamw
ok 'sgd' learns 0.9 --optimizer sgd --rate 0.5
ok 'MaxK' learns 0.9 --maxk 8
for model in gcn sage gin gat; do ok "$model in bf16" learns 0.9 --precision bf16 --model $model; done
ok 'three layers, A·X kept' learns 0.9 --layers 3 --keep-aggregated --decay-all --rate-step 20 --rate-factor 0.5
for norm in batch layer; do ok "norm $norm" learns 0.9 --norm $norm --layers 3 --residual; done
for jump in last cat max; do ok "jump $jump" learns 0.9 --jump $jump --model sage --sampler node --batch 6; done
ok 'MaxK with a norm and a jump' learns 0.9 --maxk 8 --norm layer --jump last --layers 1
ok 'a norm of one layer' fails 2 'norm and --residual are for what goes between layers' train d --layers 1 --norm batch
cora() { # cora ARGUMENTS...: the mean test accuracy of eight layers on data/cora over three seeds
    status 0 train "$root/data/cora" --layers 8 --hidden 64 --seeds 3 "$@" &&
        sed -n 's/^test accuracy \([0-9.]*\),.*/\1/p' run.out
}
# Two layers reach 0.81 to 0.82.
ok 'eight layers learn Cora by norm and residual' eval \
    'plain=$(cora) && deep=$(cora --norm layer --residual) && awk "BEGIN { exit !($plain < 0.7 && $deep > 0.78) }"'
rates() { # rates WANTED ARGUMENTS...: of the epochs in the report
    local wanted=$1
    shift
    status 0 train d --rate 0.08 "$@" --report r.json &&
        sed -n '/"epochs": \[/,$s/.*"rate": \([0-9.e-]*\).*/\1/p' r.json | awk '{ printf "%.6g ", $1 }' >rates &&
        [ "$(cat rates)" = "$wanted " ]
}
ok 'steps of the rate' rates '0.08 0.08 0.04 0.04 0.02' --epochs 5 --rate-step 2
ok 'named' rates '0.08 0.08 0.02' --epochs 3 --schedule step --rate-step 2 --rate-factor 0.25
ok 'a warm-up of all epochs' eval 'status 2 train d --epochs 5 --warmup 5 && grep -q "never be reached" run.err'
ok 'a warm-up' rates '0.02 0.04 0.06 0.08 0.08' --epochs 5 --warmup 4
ok 'a cosine' rates '0.08 0.06 0.02' --epochs 3 --schedule cosine
ok 'plateaus' rates '1e-30 1e-30 1e-30 5e-31 5e-31 2.5e-31 2.5e-31' --optimizer sgd --rate 1e-30 --epochs 7 --schedule plateau --rate-step 2
ok 'plateaus after ten epochs' eval 'status 0 train d $quick --schedule plateau --report r.json &&
    grep -q "\"rate_step\": 10" r.json'
ok 'steps of a cosine' fails 2 'go with --schedule step or plateau' train d --schedule cosine --rate-step 3
ok 'plateaus of no validation loss' eval 'rm -rf noval && cp -r d noval && rm noval/val.txt &&
    fails 1 "no validation nodes, whose loss --schedule plateau waits for" train noval --schedule plateau'
ok 'MaxK of one layer' fails 2 'maxk is for what goes between layers' train d --layers 1 --maxk 2
ok 'a drawn split' learns 0.9 --split 6,6
ok 'nodes renumbered' learns 0.9 --order community
ok 'nodes renumbered, clusters of a file' learns 0.85 --order community --sampler cluster --clusters clusters.txt --batch 1
ok 'features as they are' learns 0.9 --no-normalise --evaluate-every 5
tells() { # tells LINE ARGUMENTS...: the closing line, alone on stderr; nothing of it with --quiet
    local line=$1
    shift
    status 0 "$@" && [ "$(cat run.err)" = "gnn: $line" ] && status 0 "$@" --quiet && [ ! -s run.err ]
}
holds='120 nodes, 504 edges, 6 features, 3 classes'
ok 'train tells what it read' tells "read d, $holds, 12 training, 12 validation, 60 test nodes; wrote nothing (--save FILE keeps the model)" \
    train d $quick
ok 'and wrote' tells "read d, $holds, 12 training, 12 validation, 60 test nodes; wrote c.json, c.m" \
    train d $quick --save c.m --report c.json
ok 'the accuracy, where standard output has a file' eval 'status 0 train d $quick --save - &&
    grep -q "^gnn: read d, $holds, .* 60 test nodes; wrote standard output (test accuracy [01].[0-9]*)$" run.err'
ok 'else that is the answer' eval 'status 0 train d $quick && [ "$(wc -l <run.out)" -eq 6 ] &&
    grep -q "^epoch [0-9]* of 40: validation accuracy [01].[0-9]*, test accuracy [01].[0-9]*, macro F1 [01].[0-9]*$" run.out'
slow_blas=/usr/lib/$(uname -m)-linux-gnu/blas
if [ -e "$slow_blas/libblas.so.3" ] && ldd "$tool" | grep -q 'libblas\.so\.3'; then
    slow() { # slow ARGUMENTS...: stopped while it would train for long by the reference BLAS
        for seconds in 1 4 16; do
            LD_LIBRARY_PATH=$slow_blas timeout --foreground --preserve-status -s TERM $seconds "$tool" train d \
                --epochs 100000000 --evaluate-every 1000 "$@" >run.out 2>run.err
            [ $? -eq 143 ] && [ -s run.err ] && return
        done
        return 1
    }
    ok 'it tells of a slow BLAS' eval 'slow && grep -q "the BLAS of this machine is" run.err'
    ok 'but not with --quiet' eval 'slow --quiet && [ "$(cat run.err)" = "gnn: stopped by signal 15; no file was written" ]'
else skip 'no reference BLAS'; fi
directed() { # each edge listed once: the line says so, unless it stands for both directions
    mkdir -p once && cp d/features.mtx d/labels.txt d/t*.txt d/val.txt once &&
        awk 'NR > 2 { print $1 - 1 "," $2 - 1 }' d/graph.mtx >once/graph.csv &&
        status 0 train once --epochs 2 && grep -q '120 nodes, 252 directed edges, ' run.err &&
        status 0 train once --epochs 2 --undirected && grep -q '120 nodes, 504 edges, ' run.err
}
ok 'edges that have no opposite' directed
ok '--quiet' eval 'status 0 train d $quick --quiet && [ ! -s run.out ] && [ ! -s run.err ]'
ok 'patience ends it' eval 'status 0 train d --rate 0.5 --epochs 5000 --patience 3 && grep -qE "^epoch [0-9]+ of [0-9]{1,3}:" run.out'
threads() { status 0 train d $quick --save "m$1" --threads "$1" && cmp "m$1" m1; }
ok 'a model is saved' threads 1
ok 'the same with two threads' threads 2
mkdir named
cp d/* named
awk '{ print "ring" $1 }' d/labels.txt >named/labels.txt
printf 'class,weight\n1,2\n0,1\n2,4\n' >w.csv
printf 'class\tweight\nring0\t1\nring2\t4\nring9\t7\nring1\t2\n' >named.tsv
ok 'classes balanced' learns 0.9 --class-weights balanced
same_weights() { # by numbers, by names in another order; not as without them
    status 0 train d $quick --class-weights w.csv --save wa && status 0 train named $quick --class-weights named.tsv --save wb &&
        status 0 train d $quick --save wc && cmp -n $(($(wc -c <wc) - 344)) -i 344 wa wb && ! cmp -i 344 wa wc
}
ok 'weights of classes by numbers and by names' same_weights
bad_weights() { # bad_weights PATTERN TEXT: of the weights
    printf "$2" >bad.csv && fails 1 "bad.csv: $1" train named --class-weights bad.csv
}
ok 'a class without a weight' bad_weights 'class 1 .from 0., ring1 has no weight' 'class,weight\nring0,1\nring2,4\n'
ok 'a negative weight' bad_weights 'class 1 .from 0., ring1 has a weight of -2' 'class,weight\nring0,1\nring1,-2\nring2,4\n'
ok 'a weight that is a word' bad_weights 'a row has a class and its weight' 'class,weight\nring0,a\nring1,2\nring2,4\n'
ok 'a class by a wrong name' bad_weights 'class 1 .from 0., ring1 has no weight' 'class,weight\nring0,1\nring9,2\nring2,4\n'
ok 'the weights are no output' fails 2 'w.csv' train d --class-weights w.csv --save w.csv
several() {
    cp -r d several && rm several/labels.txt &&
        awk 'BEGIN { print "%%MatrixMarket matrix coordinate pattern general"; print "120 3 240"
            for (i = 0; i < 120; i++) { print i + 1, 1 + int(i / 40); print i + 1, 1 + (int(i / 40) + 1) % 3 } }' \
            >several/labels.mtx &&
        status 0 train several $quick --save ms && grep -q 'test micro F1 0.9\|test micro F1 1' run.out &&
        status 0 predict several --load ms -o several.txt && [ "$(sort several.txt | uniq | wc -l)" -lt 20 ] &&
        [ "$(awk 'NF == 2' several.txt | wc -l)" -gt 100 ]
}
ok 'nodes with several classes' several
training_only() { # no other nodes: the last parameters count
    rm -rf bad && cp -r d bad && rm bad/val.txt bad/test.txt && status 0 train bad $quick --report r.json &&
        grep -q '^epoch 40 of 40: validation accuracy none, test accuracy none, macro F1 none$' run.out &&
        grep -q '"test_accuracy": null' r.json && [ "$(wc -l <run.err)" -eq 2 ] &&
        grep -q '^gnn: bad: there are no test nodes, so that there is no test accuracy$' run.err &&
        fails 1 'bad: there are no validation nodes, whose loss --patience waits for; leave it out' train bad --patience 3
}
ok 'training nodes alone' training_only

ok 'a split that leaves no node to test' fails 1 'd: --split takes all nodes of known class, so none are left to test with; take' \
    train d $quick --split 20,20
ok 'nor links' fails 2 '--split 99%,5% leaves no links to test with: the shares are below 100% together; see' train d --split 99%,5% --task link
ok 'nor shares' fails 2 '--split 80%,20% leaves no nodes to test with: the shares are below 100% together; see' train d --split 80%,20%
for share in 60% 60,20% 0.5 %,% 0%,20% -10%,20% 120%,1% 0.5,x 0.5,0.2,0.1; do
    ok "no shares: $share" fails 2 '--split (takes nodes, or shares, of a class|0)' train d --split $share
done
small_class() { # --split takes all nodes of a small class
    rm -rf small && cp -r d small && awk '{ print (NR > 5 && NR < 40 ? -1 : $1) }' d/labels.txt >small/labels.txt &&
        status 0 train small $quick --split 10,10 && [ "$(wc -l <run.err)" -eq 2 ] &&
        grep -q '^gnn: small: 1 of 3 classes have fewer than 20 nodes, .*: at most half of these train, the others validate or test$' run.err &&
        status 0 train small $quick --split 10,10 --quiet && [ ! -s run.err ] &&
        status 0 train d $quick --split 20,15 && [ "$(wc -l <run.err)" -eq 1 ]
}
ok 'a class that is smaller than the split' small_class
shares() { # of each class of 40
    status 0 train d $quick --split 60%,25% --report r.json && grep -q '72 training, 30 validation, 18 test nodes' run.err &&
        grep -qF '"split_shares": [0.6, 0.25]' r.json && cp run.out a.out && status 0 train d $quick --split 0.6,0.25 &&
        tail -n 1 run.out | cmp - <(tail -n 1 a.out)
}
ok 'shares of each class' shares
unknown_left_out() { # nodes of unknown class are in no drawn split, and count nowhere
    rm -rf gaps && cp -r d gaps && awk '{ print NR % 4 ? $1 : NR % 8 ? "nan" : NR < 120 ? "" : "NA" }' d/labels.txt >gaps/labels.txt &&
        fails 1 'gaps: node [0-9]* \(from 0\) is a (training|validation|test) node but has no label; give it one, or' train gaps &&
        rm gaps/t*.txt gaps/val.txt && status 0 train gaps $quick --split 6,6 --report r.json --save mg &&
        grep -q '120 nodes (30 of unknown class), 504 edges, 6 features, 3 classes, 18 training, 18 validation, 54 test' run.err &&
        grep -q '"classes": 3, ' r.json && grep -q '"test": 54}' r.json && cp d/t*.txt d/val.txt gaps &&
        status 0 predict gaps --load mg -o g.txt &&
        grep -q "test accuracy $(awk 'NR == FNR { class[NR - 1] = NR % 4 ? $1 : -1; next }
            FNR == 1 { file++ } file == 1 { predicted[FNR - 1] = $1; next }
            class[$1] >= 0 { n++; right += predicted[$1] == class[$1] }
            END { printf "%.4f", right / n }' d/labels.txt g.txt d/test.txt), macro F1 " run.err
}
ok 'nodes of unknown class' unknown_left_out
weighted() {
    rm -rf weighted && cp -r d weighted && rm weighted/graph.mtx &&
        awk 'NR > 2 { print $1 - 1 "," $2 - 1 "," 1 + NR % 3 }' d/graph.mtx >weighted/graph.csv &&
        status 0 train weighted $quick --undirected && [ "$(wc -l <run.err)" -eq 1 ] &&
        grep -q ', 504 weighted edges, ' run.err && status 0 train weighted $quick --undirected --model gin &&
        grep -q '^gnn: weighted: the weights of the edges do not count with gin; they do with gcn$' run.err
}
ok 'weights that do not count' weighted

# ---- going on and predicting ----------------------------------------------------------------------------

goes_on() { # 15 epochs, then up to 40: the same bytes as 40 at once
    status 0 train d --model sage --rate 0.05 --hidden 12 --epochs 40 --save whole &&
        status 0 train d --model sage --rate 0.05 --hidden 12 --epochs 15 --save part &&
        status 0 train d --resume part --epochs 40 --save rest && cmp whole rest
}
ok '--resume goes on as if nothing had been' goes_on
renumbered_goes_on() {
    status 0 train d $quick --order community --save whole && ! cmp -s whole m1 &&
        status 0 train d $quick --order community --epochs 15 --save early &&
        status 0 train d --resume early --order community --epochs 40 --save rest && cmp whole rest
}
ok 'nor had been renumbered' renumbered_goes_on
halves_go_on() {
    status 0 train d $quick --precision bf16 --save whole && status 0 train d $quick --precision bf16 --epochs 15 --save early &&
        status 0 train d --resume early --epochs 40 --save rest && cmp whole rest
}
ok 'nor bf16 forgotten' halves_go_on
seed_goes_on() { # it draws the split and the matchings of clusters
    status 0 train d $quick --seed 9 "$@" --save whole && status 0 train d $quick --seed 9 "$@" --epochs 15 --save early &&
        status 0 train d --resume early --epochs 40 "$@" --save rest && cmp whole rest
}
ok 'nor the seed of a drawn split' seed_goes_on --split 6,6
ok 'nor that of clusters' seed_goes_on --sampler cluster --batch 1
deeper_goes_on() { # what goes with the saved model's options, not with the defaults
    local deep=(--layers 3 --hidden 20 --sampler node --fanout 3,2,2)
    status 0 train d "${deep[@]}" --epochs 6 --save whole && status 0 train d "${deep[@]}" --epochs 3 --save deep &&
        status 0 train d --resume deep --sampler node --fanout 3,2,2 --epochs 6 --save rest && cmp whole rest
}
ok 'nor that there are three layers' deeper_goes_on
from_checkpoint() { # from_checkpoint ARGUMENTS...: goes on from epoch 30 of 40 as if nothing had been
    rm -f ck && status 0 train d --rate 0.05 --epochs 40 "$@" --save whole &&
        status 0 train d --rate 0.05 --epochs 40 "$@" --checkpoint ck --checkpoint-every 15 --save also && cmp whole also &&
        grep -q '; wrote ck, also$' run.err && [ "$(epoch_of ck)" -eq 30 ] && no_leftovers &&
        status 0 train d --resume ck --epochs 40 "$@" --save rest && cmp whole rest
}
epoch_of() { od -An -t d8 -j 216 -N 8 "$1" | tr -d ' '; }
ok 'a checkpoint goes on' from_checkpoint
ok 'between evaluations' from_checkpoint --evaluate-every 7
ok 'of minibatches' from_checkpoint --sampler node --batch 5
ok 'of sgd' from_checkpoint --optimizer sgd --rate-step 8
over_itself() { # the model that it goes on from may be the checkpoint, too
    cp ck own.ck && status 0 train d --resume own.ck --epochs 60 --checkpoint own.ck --checkpoint-every 20 &&
        [ "$(epoch_of own.ck)" -eq 60 ]
}
ok 'over itself' over_itself
too_few() { rm -f ck && status 0 train d --epochs 99 --checkpoint ck && [ ! -e ck ] && ! grep -q 'wrote ck' run.err; }
ok 'none before its epoch' too_few
killed() { # nothing is lost but the epochs since the last checkpoint
    local pid tries=0
    rm -f ck
    "$tool" train d --epochs 100000000 --evaluate-every 1000 --checkpoint ck --checkpoint-every 25 --quiet >run.out 2>run.err &
    pid=$!
    while [ ! -e ck ] && [ $((tries += 1)) -lt 200 ]; do sleep 0.1; done
    kill -KILL $pid
    wait $pid 2>/dev/null
    rm -f ck.tmp.* # of a checkpoint that was being written
    [ $(($(epoch_of ck) % 25)) -eq 0 ] && last=$(($(epoch_of ck) + 10)) &&
        status 0 train d --evaluate-every 1000 --epochs $last --save whole &&
        status 0 train d --resume ck --evaluate-every 1000 --epochs $last --save rest && cmp whole rest
}
ok 'a killed training goes on from its checkpoint' killed
full_checkpoint() { rm -f X && status 1 train d --checkpoint /dev/full --save X && [ ! -e X ]; }
if [ -w /dev/full ]; then ok 'a checkpoint that cannot be written' full_checkpoint; else skip 'no /dev/full'; fi
ok 'another seed' fails 2 '--seed 8, but the saved model goes on with its own, 9;' train d --resume early --seed 8
ok 'nothing left to do' fails 1 'part was trained for 15 epochs already: give --epochs a larger number' train d --resume part --epochs 15
ok 'another shape' fails 1 'part: the saved model has 12 hidden columns, not 20' train d --resume part --hidden 20 --epochs 50
ok 'options that do not go with the model' fails 2 '--maxk 13 of 12 columns' train d --resume part --maxk 13
predicts() {
    status 0 predict d --load m1 -o p.txt && grep -q "^gnn: read d, $holds, and m1; wrote p.txt (test accuracy $(awk 'NR == FNR { class[NR - 1] = $1; next }
        FNR == 1 { file++ } file == 1 { predicted[FNR - 1] = $1; next } { n++; right += predicted[$1] == class[$1] }
        END { printf "%.4f", right / n }' d/labels.txt p.txt d/test.txt), macro F1 [01].[0-9]*)$" run.err && [ "$(wc -l <run.err)" -eq 1 ] &&
        head -n 1 run.out | grep -q '^class .*precision' && [ "$(wc -l <p.txt)" -eq 120 ] &&
        paste p.txt d/labels.txt | awk '$1 == $2 { n++ } END { exit n < 100 }'
}
status 0 predict d --load m1 -o p.txt
ok 'predictions' predicts
by_node() { # what is learnt in another order is known of the nodes as they are
    status 0 train d $quick --order community --save mo && grep -oE 'test accuracy [0-9.]+' run.out >trained &&
        status 0 predict d --load mo -o o.txt && grep -oE 'test accuracy [0-9.]+' run.err | cmp - trained &&
        paste o.txt d/labels.txt | awk '$1 == $2 { n++ } END { exit n < 100 }'
}
ok 'predictions of nodes that were renumbered' by_node
ok 'to standard output' eval 'status 0 predict d --load m1 -o - && cmp run.out p.txt'
scores() {
    status 0 predict d --load m1 -o s.txt --scores && head -n 1 s.txt | grep -qx "class	0	1	2" && sed -i 1d s.txt &&
        cut -f 1 s.txt | cmp - p.txt &&
        awk -F '\t' 'NF != 4 || $2 + $3 + $4 < 0.999 || $2 + $3 + $4 > 1.001 || $($1 + 2) < 0.333 { bad = 1 } END { exit bad }' \
            s.txt
}
ok 'scores' scores
if command -v python3 >/dev/null; then
    arrays() { # .npy: what the text says
        status 0 predict d --load m1 -o p.npy && status 0 predict d --load m1 -o s.npy --scores &&
            status 0 predict several --load ms -o t.npy && python3 - <<'PYTHON'
import struct
def load(name, form, columns):
    b = open(name, "rb").read()
    assert b[:6] == b"\x93NUMPY" and b[6] == 1
    end = 10 + b[8] + 256 * b[9]
    shape = "(120,)" if columns == 1 else "(120, %d)" % columns
    assert b[10:end].decode().startswith("{'descr': '%s', 'fortran_order': False, 'shape': %s" % (form, shape)), b[:end]
    return struct.unpack("<%d%s" % (120 * columns, {"<i4": "i", "|u1": "B", "<f4": "f"}[form]), b[end:])
assert list(load("p.npy", "<i4", 1)) == [int(line) for line in open("p.txt")]
text = [line.split() for line in open("s.txt")]
for k, score in enumerate(load("s.npy", "<f4", 3)): assert abs(score - float(text[k // 3][1 + k % 3])) < 1e-5
targets = load("t.npy", "|u1", 3)
for i, line in enumerate(open("several.txt")): assert [c for c in range(3) if targets[3 * i + c]] == list(map(int, line.split()))
PYTHON
    }
    ok 'as arrays of NumPy' arrays
else skip 'no python3: arrays'; fi
for ending in npz json npz.gz; do
    ok "no classes as .$ending" fails 2 "-o writes text, or an array of NumPy .*, no \.${ending%.gz} \(got" predict d --load m1 -o X.$ending
done
directed_prediction() { # the model knows that it was trained with edges in both directions
    status 0 train once --epochs 2 --save mu && status 0 predict once --load mu -o u.txt &&
        grep -q ', 252 directed edges, ' run.err &&
        status 0 train once --epochs 2 --undirected --save mu && status 0 predict once --load mu -o u.txt &&
        grep -q ', 504 edges, ' run.err
}
ok 'edges that have no opposite, when predicting' directed_prediction
names() { status 0 predict named --load m1 -o n.txt && sed 's/^ring//' n.txt | cmp - p.txt; }
ok 'classes by their names' names
# A node of the last ring comes first, among those that are not trained with.
other_first() {
    mkdir -p words moved && cp d/* words && cp d/* moved && awk '{ print "ring" $1 }' d/labels.txt >words/labels.txt &&
        awk 'NR == 1 { print "ring2"; next } { print "ring" $1 }' d/labels.txt >moved/labels.txt &&
        status 0 train words $quick --save mw && status 0 predict words --load mw -o w.txt &&
        status 0 predict moved --load mw -o v.txt && cmp w.txt v.txt
}
ok 'which do not go by the first nodes' other_first
# The model names its classes, whatever the folder has: no labels, some of its classes, other names by classes.txt.
kept_names() {
    mkdir -p nameless some && cp d/graph.mtx d/features.mtx nameless && cp words/* some &&
        rm some/t*.txt some/val.txt &&
        sed 's/ring0/-1/' words/labels.txt >some/labels.txt &&
        status 0 predict nameless --load mw -o v.txt && cmp w.txt v.txt &&
        status 0 predict some --load mw -o v.txt && cmp w.txt v.txt
}
ok 'of the model, too, where the folder has none or some' kept_names
same_accuracy() {
    status 0 predict words --load mw -o v.txt && cp run.err words.err && rm -rf turned && cp -r words turned &&
        awk '{ sub("ring", ""); print 2 - $1 }' words/labels.txt >turned/labels.txt &&
        printf 'ring2\nring1\nring0\n' >turned/classes.txt &&
        status 0 predict turned --load mw -o v.txt && cmp w.txt v.txt &&
        sed 's/turned/words/' run.err | cmp - words.err && status 0 train words $quick --epochs 15 --save early &&
        status 0 train turned --resume early --epochs 40 --save X && cmp X mw && rm X
}
ok 'by which another numbering is translated' same_accuracy
strange() {
    rm -rf strange && cp -r words strange && sed '5s/.*/disc/' words/labels.txt >strange/labels.txt &&
        fails 1 'strange: the model in mw has no class disc; write -1 for it, or train anew' predict strange --load mw -o X
}
ok 'a class that the model does not know' strange
several_named() {
    rm -rf snamed && cp -r several snamed && printf 'a\nb\nc\n' >snamed/classes.txt &&
        status 0 train snamed $quick --save msn && rm snamed/classes.txt &&
        status 0 predict snamed --load msn -o v.txt && grep -q 'a' v.txt && ! grep -q '[^abc ]' v.txt &&
        printf 'b\na\nc\n' >snamed/classes.txt &&
        fails 1 'snamed: the model in msn has another order of classes, from b on' predict snamed --load msn -o X
}
ok 'several classes a node by their names' several_named
unlabelled() { mkdir -p bare && cp d/graph.mtx d/features.mtx bare && status 0 predict bare --load m1 -o b.txt && cmp b.txt p.txt; }
ok 'a folder without labels' unlabelled
ok 'no such model' fails 1 'nofile: .*o such file or directory; give a model that gnn train --save wrote$' \
    predict d --load nofile -o X
ok 'what is no model' fails 1 'd/graph.mtx: this is no saved model' predict d --load d/graph.mtx -o X
truncated() { head -c 700 m1 >cut && fails 1 'cut: the saved model is truncated' predict d --load cut -o X; }
ok 'a truncated model' truncated
damaged() {
    { head -c 500 m1; printf '\377\376'; tail -c +503 m1; } >damaged && ! cmp -s damaged m1 &&
        fails 1 'damaged: this is no saved model: its checksum is wrong' predict d --load damaged -o X
}
ok 'a damaged model' damaged
ok 'a damaged model to go on with' fails 1 'damaged: .*checksum' train d --resume damaged --save X
if command -v python3 >/dev/null; then
    lie() { # lie OUT FORMAT OFFSET VALUE: m1 with another number there, and its checksum made right
        python3 - "$@" <<'PYTHON'
import struct, sys
out, form, at, value = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
b, mask = bytearray(open("m1", "rb").read()), (1 << 64) - 1
struct.pack_into(form, b, at, float(value) if form in "<f<d" else int(value))
def mix(x):
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)): x = (x ^ x >> shift) * factor & mask
    return x ^ x >> 31
total = 0
for i in range(24, len(b), 8):
    total = mix(total ^ int.from_bytes(b[i:i + 8], "little")) + 0x9e3779b97f4a7c15 & mask
struct.pack_into("<Q", b, 16, total)
open(out, "wb").write(b)
PYTHON
    }
    lies() { # lies PATTERN FORMAT OFFSET VALUE: the file is named, not the command line, whoever reads it
        local pattern=$1
        shift
        lie liar "$@" && fails 1 "liar: this is no saved model: $pattern" train d --resume liar --epochs 50 --save X &&
            fails 1 "liar: this is no saved model: $pattern" predict d --load liar -o X
    }
    ok 'a model that says what it is' eval 'lie liar "<q" 88 0 && cmp liar m1'
    ok 'a model whose options exclude each other' lies 'its options do not go together: MaxK keeps 32 of 16' '<q' 88 32
    ok 'a dropout of 1' lies 'its options do not go together: a dropout of 1;' '<d' 136 1
    ok 'a weight that is no number' lies 'it has a weight that is no finite number; train it again$' '<f' 408 nan
    ok 'an infinite one' lies 'it has a weight that is no finite number; train it again$' '<f' 408 inf
    ok 'an optimizer that is not finite' lies 'the state of its optimizer has a number that is not finite' '<f' \
        $(($(wc -c <m1) - 4)) nan
else skip 'no python3: models that lie'; fi
narrow() {
    mkdir -p narrow && cp d/* narrow && sed '2s/6/7/' d/features.mtx >narrow/features.mtx &&
        fails 1 'm1: the saved model has 6 features, not 7' predict narrow --load m1 -o X
}
ok 'a model for other features' narrow
more_classes() {
    mkdir -p more && cp d/* more && sed '1s/.*/3/' d/labels.txt >more/labels.txt &&
        fails 1 'more: the labels have 4 classes, the model in m1 has 3' predict more --load m1 -o X
}
ok 'a model for other classes' more_classes

# ---- reports and plots ----------------------------------------------------------------------------------

if command -v python3 >/dev/null; then
    report() {
        status 0 train d $quick --seeds 3 --report r.json --plot p.svg && python3 - <<'PYTHON'
import json, statistics
r = json.load(open("r.json"))
assert r["tool"] == "gnn" and r["command"] == "train" and r["device"] and r["threads"] >= 1
assert r["data"]["nodes"] == 120 and r["data"]["edges"] == 504 and r["data"]["classes"] == 3
assert r["data"]["sparse_features"] and r["data"]["training"] == 12 and r["data"]["test"] == 60
assert r["options"]["model"] == "gcn" and r["options"]["hidden"] == 16 and r["options"]["epochs"] == 40
assert [run["seed"] for run in r["runs"]] == [1, 2, 3]
tests = [run["test_accuracy"] for run in r["runs"]]
assert abs(r["test_accuracy"] - statistics.mean(tests)) < 1e-8
assert abs(r["test_accuracy_deviation"] - statistics.stdev(tests)) < 1e-8
for run in r["runs"]:
    epochs = run["epochs"]
    assert [e["epoch"] for e in epochs] == list(range(1, 41))
    best = min(epochs, key=lambda e: e["validation_loss"])
    assert run["best_epoch"] == best["epoch"] and abs(run["validation_loss"] - best["validation_loss"]) < 1e-5
    assert abs(run["median_epoch_seconds"] - statistics.median(e["seconds"] for e in epochs)) < 1e-8
    assert epochs[-1]["loss"] < epochs[0]["loss"] and all(0 <= e["test_accuracy"] <= 1 for e in epochs)
assert r["seconds"]["total"] > 0 and r["peak_host_bytes"] > 0 and not r["stopped"]
PYTHON
    }
    ok '--report' report
    seeds() { # each is the run that it would be alone, with a split of its own if one is drawn
        for split in '' '--split 6,6'; do
            status 0 train d $quick $split --seed 4 --seeds 3 --report all.json || return 1
            for seed in 4 5 6; do
                status 0 train d $quick $split --seed $seed --report "one$seed.json" || return 1
            done
            python3 -c '
import json
runs = json.load(open("all.json"))["runs"]
without = lambda e: {k: v for k, v in e.items() if "seconds" not in k}
for run in runs:
    alone = json.load(open("one%d.json" % run["seed"]))["runs"][0]
    assert list(map(without, run["epochs"])) == list(map(without, alone["epochs"]))
    assert run["test_accuracy"] == alone["test_accuracy"]' || return 1
        done
    }
    ok '--seeds' seeds
    best_seed() { # best_seed ENDING SCHEDULE: what --save has is of the seed with the lowest validation loss
        status 0 train d $quick --seed 4 --seeds 3 --save "best$1" --report all.json || return 1
        local seed
        seed=$(python3 -c '
import json
runs = json.load(open("all.json"))["runs"]
losses = [min(e["validation_loss"] for e in run["epochs"]) for run in runs]
assert losses.index(min(losses)) > 0, "the first seed is the best: this shows nothing"
print(runs[losses.index(min(losses))]["seed"])') &&
            status 0 train d $quick --seed "$seed" --save "one$1" && cmp "best$1" "one$1"
    }
    ok 'the best of several seeds is saved' best_seed ''
    ok 'also its weights' best_seed .safetensors
    orders() {
        for order in auto keep community; do
            status 0 train d --epochs 2 --order $order --report r.json && python3 -c '
import json, sys
r = json.load(open("r.json"))
assert r["options"]["order"] == sys.argv[1] and r["renumbered"] == (sys.argv[1] == "community")
assert r["seconds"]["order"] >= 0' $order || return 1
        done
    }
    ok 'orders in the report' orders
    plot() {
        python3 - <<'PYTHON'
import re, xml.etree.ElementTree as tree
root = tree.parse("p.svg").getroot()
space = "{http://www.w3.org/2000/svg}"
width, height = float(root.get("width")), float(root.get("height"))
curves = root.findall(space + "polyline")
assert len(curves) == 6
for curve in curves:
    points = [tuple(map(float, p.split(","))) for p in curve.get("points").split()]
    assert len(points) == 40 and all(0 <= x <= width and 0 <= y <= height for x, y in points)
    assert all(a[0] < b[0] for a, b in zip(points, points[1:]))
words = [t.text for t in root.findall(space + "text")]
assert words.count("epoch") == 2 and "loss" in words and "accuracy" in words and "validation" in words
PYTHON
    }
    ok '--plot' plot
    sparse_plot() { status 0 train d --epochs 1 --plot one.svg && python3 -c 'import xml.dom.minidom as m; m.parse("one.svg")'; }
    ok 'a plot of one epoch' sparse_plot
    null_report() {
        status 0 train d --epochs 5 --evaluate-every 5 --report r.json && python3 -c '
import json
e = json.load(open("r.json"))["runs"][0]["epochs"]
assert e[0]["test_loss"] is None and e[4]["test_loss"] > 0'
    }
    ok 'what was not evaluated is null' null_report
    on_terminal() { python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$tool" train d --epochs 3 "$@" >run.out; }
    erased=$(printf '\r\033[K')
    ok 'a progress line on a terminal' eval 'on_terminal && grep -qF "${erased}epoch 1 of 3  loss " run.out'
    searching() { # searching OPTIONS...: communities are looked for, and so it is said
        on_terminal "$@" && grep -qF "${erased}finding communities" run.out
    }
    ok 'it tells of communities' searching --order community
    ok 'but not where nobody looks for them' eval '! searching --order keep && ! searching --maxk 4'
else for what in report seeds orders plot 'progress line' communities; do skip "no python3: $what"; done; fi

# ---- on a GPU -------------------------------------------------------------------------------------------

if "$tool" train d --epochs 1 --device cuda --quiet 2>/dev/null; then
    for model in gcn sage gin gat; do ok "$model learns on CUDA" learns 0.9 --model $model --device cuda; done
    for sampler in node layer fastgcn cluster; do
        ok "sampler $sampler on CUDA" learns 0.85 --sampler $sampler --device cuda
    done
    cuda_goes_on() {
        status 0 train d --rate 0.05 --epochs 40 --device cuda --save cuda.whole &&
            status 0 train d --rate 0.05 --epochs 15 --device cuda --save cuda.part &&
            status 0 train d --resume cuda.part --epochs 40 --device cuda --save cuda.rest && cmp cuda.whole cuda.rest
    }
    ok '--resume on CUDA' cuda_goes_on
    cuda_predicts() { status 0 predict d --load m1 -o cuda.txt --device cuda && cmp cuda.txt p.txt; }
    ok 'CUDA predicts what the CPU does' cuda_predicts
else skip 'no CUDA device'; fi

# ---- refusals -------------------------------------------------------------------------------------------

refuses() { # refuses NAME PATTERN FILE TEXT ARGUMENTS...: such a file in the folder is refused
    local name=$1 pattern=$2 file=$3 text=$4
    shift 4
    rm -rf bad && cp -r d bad && rm -f "bad/${file%%.*}".*
    printf '%b' "$text" >"bad/$file"
    ok "$name" fails 1 "$pattern" train bad --save X "$@"
}
mtx='%%MatrixMarket matrix coordinate real general\n'
refuses 'too few rows of features' 'graph.mtx: 120 nodes, but there are 119 rows' features.mtx "${mtx}119 6 1\n1 1 1\n"
refuses 'NaN among features' 'features.csv:2: ' features.csv '1,2\n1,nan\n'
refuses 'an infinite feature' 'features.mtx:3: ' features.mtx "${mtx}120 6 1\n1 1 inf\n"
refuses 'too few labels' 'labels.txt: 2 labels for 120 nodes' labels.txt '0\n1\n'
refuses 'a label out of range' 'labels.txt:2: ' labels.txt '0\n70000\n1\n'
refuses 'a negative label' 'labels.txt:3: ' labels.txt '0\n1\n-2\n'
refuses 'no training nodes' 'bad: there are no training nodes' train.txt ''
refuses 'a training node that is none' 'train.txt:2: ' train.txt '1\n120\n'
refuses 'a training node without a label' 'bad: node 3 \(from 0\) is a validation node but has no label' labels.txt \
    "$(awk '{ print (NR == 4 ? -1 : $1) "\\n" }' d/labels.txt | tr -d '\n')"
refuses 'a graph that is not square' 'graph.mtx' graph.mtx "${mtx}4 3 0\n"
truncated_npz() { # cut at several places
    rm -rf bad npz && cp -r d bad && rm bad/features.mtx && status 0 convert d npz || return 1
    for part in 1 30 50 90; do
        head -c $(($(wc -c <npz/features.npz) * part / 100)) npz/features.npz >bad/features.npz &&
            fails 1 'bad/features.npz: ' train bad --save X || return 1
    done
}
ok 'a truncated npz' truncated_npz
ok 'no such folder' fails 1 'nodir: .*o such file' train nodir --save X
no_split() { rm -rf bad && cp -r d bad && rm bad/train.txt bad/val.txt bad/test.txt && fails 1 'there is no split; .*--split' train bad; }
ok 'no split' no_split
ok 'a split drawn instead' eval 'status 0 train bad $quick --split 5,5'
no_features() { rm -rf bad && cp -r d bad && rm bad/features.mtx && fails 1 'there is no features' train bad; }
ok 'no features' no_features
ok 'a loss that is no number' fails 1 'epoch [0-9]+: the .* loss is (not a number|infinite); a learning rate below 1e\+30' train d --rate 1e30 --save X
ok 'clusters that are not there' fails 1 'nofile: .*o such file' train d --sampler cluster --clusters nofile
head -n 119 clusters.txt >short.txt
ok 'clusters of too few nodes' fails 1 'short.txt' train d --sampler cluster --clusters short.txt
ok 'folder of the model is missing' fails 1 'nodir' train d --save nodir/m
ok 'folder of the checkpoint is missing' fails 1 'nodir' train d --save X --checkpoint nodir/c
ok 'folder of the report is missing' fails 1 'nodir' train d --save X --report nodir/r
ok 'folder of the plot is missing' fails 1 'nodir' train d --save X --plot nodir/p
ok 'folder of the predictions is missing' fails 1 'nodir' predict d --load m1 -o nodir/p
for wrong in '' 'd e' 'd --foo' 'd --model xyz' 'd --sampler x' 'd --optimizer x' 'd --layers 0' 'd --layers 17' \
    'd --hidden 0' 'd --maxk 0' 'd --maxk 17' 'd --epochs 0' 'd --rate 0' 'd --rate x' 'd --dropout 1' 'd --dropout -1' \
    'd --order x' 'd --input-dropout 2' 'd --decay -1' 'd --seeds 0' 'd --fanout 5,5' 'd --sampler node --fanout 5' \
    'd --sampler node --fanout 5,x' 'd --sampler node --fanout 5,' 'd --batch 5' 'd --clusters mcl' 'd --split 5' \
    'd --split 0,5' 'd --device gpu' 'd --device cuda:' 'd --threads 0' 'd --memory x' 'd --save' 'd --seeds 2 --resume m1' \
    'd --report X --plot X' 'd --keep-aggregated --input-dropout 0.5' 'd --model gat --maxk 4' 'd --model sage-max --maxk 4' 'd --model sage-max --precision bf16' 'd --precision f16' 'd --quiet=1' \
    'd --checkpoint-every 5' 'd --checkpoint -' 'd --checkpoint X --save X' 'd --checkpoint X --seeds 2' \
    'd --checkpoint X --checkpoint-every 0' 'd --heads 4' 'd --model sage --attention-dropout 0.5' 'd --rate-factor 0.1' 'd --scores' 'd -o X' '--load m1'; do
    ok "usage error: train $wrong" fails 2 '; see gnn --help$' train $wrong
done
for wrong in '' 'd' 'd --load m1' 'd -o X' 'd --load m1 -o X --hidden 5' 'd --load m1 -o X --plot r'; do
    ok "usage error: predict $wrong" fails 2 '; see gnn --help$' predict $wrong
done
for several in OMPI_COMM_WORLD_RANK=0\ OMPI_COMM_WORLD_SIZE=2 PMI_RANK=0\ PMI_SIZE=2 SLURM_PROCID=0\ SLURM_STEP_NUM_TASKS=2; do
    ok "$several" eval "(export $several; fails 2 'one of 2 processes of mpirun .* give --mpi no' train d && status 0 train d --epochs 1 --mpi no)"
done
ok 'an unknown command' fails 2 'the first argument is one of train, predict' learn d
ok 'no CUDA device' eval '"$tool" train d --epochs 2 --device cuda >run.out 2>run.err || grep -q "^gnn: --device cuda: .*; use --device cpu or auto$" run.err'

# ---- files and signals ----------------------------------------------------------------------------------

all_or_nothing() { # the report cannot be written in full: the model does not appear either
    rm -f X
    status 1 train d --epochs 2 --save X --report /dev/full && [ ! -e X ] && no_leftovers
}
if [ -w /dev/full ]; then
    ok 'all outputs or none' all_or_nothing
    to_full() { ! "$tool" predict d --load m1 -o - >/dev/full 2>run.err && [ -s run.err ]; }
    ok 'output to a full device fails' to_full
else skip 'no /dev/full'; fi
untouched() { # untouched FILE ARGUMENTS...: an output is an input, which stays as it is
    local file=$1
    shift
    cp "$file" before && fails 2 "\"$file\" is an input, too: give it another name; see gnn --help$" "$@" &&
        cmp "$file" before
}
ok 'a model over the labels' untouched d/labels.txt train d --epochs 2 --save d/labels.txt
ok 'a report over the graph' untouched d/graph.mtx train d --epochs 2 --report d/graph.mtx
ok 'classes over the model' untouched m1 predict d --load m1 -o m1
ok 'classes over the labels' untouched d/labels.txt predict d --load m1 -o d/labels.txt
for name in d/graph.svg ./d/features.npy d/../d/val.csv; do
    ok "what would be read from the folder: $name" fails 2 \
        "\"$name\" would be an input of its folder: give it another name; see gnn --help$" train d --plot "$name"
    ok 'which does not appear' [ ! -e "$name" ]
done
beside() { status 0 train d --epochs 2 --save d/kept.model && (cd d && status 0 predict . --load kept.model -o predicted.txt); }
ok 'other outputs may lie in the folder' beside
again() { cp m1 own.m && status 0 train d --resume own.m --epochs 41 --save own.m && ! cmp -s own.m m1; }
ok 'a model that goes on may be replaced' again
to_stdout() { # it is all that is there
    status 0 train d --epochs 2 --save - && cp run.out out.m && status 0 train d --epochs 2 --save file.m && cmp out.m file.m &&
        status 0 train d --epochs 2 --plot - && [ "$(tail -n 1 run.out)" = '</svg>' ]
}
ok 'a model to standard output' to_stdout
survives() { cp m1 kept && status 1 train d --rate 1e30 --save kept && cmp kept m1; }
ok 'an old model survives a failure' survives
stopped() { # stopped SIGNAL STATUS ARGUMENTS...: while it trains, which may begin late on a busy machine; one line,
    # beside what is said of a slow BLAS before so much work.
    # Without --foreground the signal goes to the process and again to its group, and a second one ends it at once.
    local signal=$1 expected=$2 seconds got
    shift 2
    for seconds in 1 4 16; do
        (heeding "$signal" timeout --foreground --preserve-status -s "$signal" $seconds "$tool" train d \
            --epochs 100000000 --evaluate-every 1000 "$@" >run.out 2>run.err)
        got=$?
        [ $got -eq "$expected" ] && no_leftovers && [ "$(grep -cv 'the BLAS of this machine' run.err)" -eq 1 ] && return
    done
    echo "status $got"
    cat run.err
    return 1
}
rm -f stopped.m
ok 'SIGINT keeps the model' eval 'stopped INT 75 --save stopped.m && grep -q "stopped.m is complete" run.err'
rm -f stopped.c
ok 'SIGINT keeps a checkpoint' eval 'stopped INT 75 --checkpoint stopped.c --checkpoint-every 1000000000 && grep -q "stopped.c is complete" run.err && status 0 predict d --load stopped.c -o X'
ok 'which can be used' status 0 predict d --load stopped.m -o X
ok 'SIGTERM without a model to keep' eval 'rm -f X; stopped TERM 143 --report X && [ ! -e X ]'
ok 'SIGHUP' stopped HUP 129
ok 'closed streams' eval '"$tool" train d --epochs 2 --save closed.m --quiet <&- >&- 2>&- && [ -s closed.m ]'
odd=$'odd\nname \033[31m'
odd_names() { # they are shown on one line, and used as they are
    cp -r d "$odd" && status 0 train "$odd" --epochs 2 --report odd.json --save "$odd.m" && [ "$(wc -l <run.err)" -eq 1 ] &&
        grep -qF 'read odd?name ?[31m, 120 nodes' run.err && status 0 predict "$odd" --load "$odd.m" -o odd.txt &&
        [ "$(wc -l <run.err)" -eq 1 ] && fails 1 'odd\?name \?\[31m/graph.mtx: this is no saved model' predict d --load "$odd/graph.mtx" -o X
}
ok 'names that break lines' odd_names
ok 'no progress line elsewhere' eval 'status 0 train d --epochs 2 && [ "$(wc -l <run.err)" -eq 1 ] && ! grep -q epoch run.err'
ok 'no temporary files are left' no_leftovers

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
