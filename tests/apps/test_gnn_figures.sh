#!/bin/bash
# Figures of gnn: macro F1, precision, recall and confusion against scikit-learn's, embeddings.
#   GNN  the tool [$BUILD/bin/gnn]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${GNN:-${BUILD:-build}/bin/gnn}") || exit 1
build=$(realpath "${BUILD:-build}")
. tests/support/scipy.sh
. tests/support/cli.sh

# Three rings of 40 nodes with chords, whose features say which ring a node is in: each is told without a mistake.
rings() { # rings FOLDER
    mkdir -p "$1"
    awk 'BEGIN { for (c = 0; c < 3; c++) for (i = 0; i < 40; i++) {
        print c * 40 + i "," c * 40 + (i + 1) % 40; print c * 40 + i "," c * 40 + (i + 5) % 40 } }' >"$1/graph.csv"
    awk 'BEGIN { for (i = 0; i < 120; i++) { r = int(i / 40); print (r == 0) "," (r == 1) "," (r == 2) } }' >"$1/features.csv"
    awk 'BEGIN { for (i = 0; i < 120; i++) print int(i / 40) }' >"$1/labels.txt"
    awk 'BEGIN { for (i = 0; i < 120; i++) print (i % 10 == 0 ? "train" : i % 10 == 3 ? "val" : i % 10 > 4 ? "test" : "unused") }' \
        >"$1/split.txt"
    printf 'a\nb\nc\nd\n' >"$1/classes.txt"
}
learn="--undirected --rate 0.05 --dropout 0 --epochs 60"
rings d
status 0 train d $learn --save m --report r.json
ok 'every node is told' grep -q 'test accuracy 1.0000, macro F1 1.0000$' run.out
ok 'a line a class' eval 'grep -qE "^b +1\.0000  1\.0000  1\.0000 +20$" run.out && grep -qE "^d +0\.0000  0\.0000  0\.0000 +0$" run.out'

ok 'edges stand for both directions as in training' eval 'status 0 predict d --undirected --load m -o told.npy --scores &&
    status 0 predict d --load m -o same.npy --scores && cmp told.npy same.npy'
ok 'also when a training goes on' eval 'status 0 train d --undirected --epochs 80 --resume m --save told &&
    status 0 train d --epochs 80 --resume m --save same && cmp told same'

# Labels that differ from the predictions: scikit-learn 1.9.1 says of them, with y_pred = i // 40 and
# y_true = 3 if i % 29 == 0 else (i // 40 + 1) % 3 if i * i % 7 == 4 else i // 40:
#   accuracy_score, f1_score(average="macro"), precision_recall_fscore_support(labels=[0, 1, 2, 3], zero_division=0)
rings other
awk 'BEGIN { for (i = 0; i < 120; i++) { r = int(i / 40); print i % 29 == 0 ? 3 : i * i % 7 == 4 ? (r + 1) % 3 : r } }' >other/labels.txt
class_lines() { # class_lines LINE...: what the table says of the classes
    printf '%s\n' "$@" | cmp - <(awk 'NR > 1 { print $1, $2, $3, $4, $5 }' run.out)
}
ok 'of test nodes' eval 'status 0 predict other --undirected --load m -o p.txt && grep -q "(test accuracy 0.6667, macro F1 0.5171)$" run.err &&
    class_lines "a 0.6500 0.7222 0.6842 18" "b 0.7000 0.7000 0.7000 20" "c 0.6500 0.7222 0.6842 18" "d 0.0000 0.0000 0.0000 4"'
rm other/split.txt
ok 'of all without a split' eval 'status 0 predict other --undirected --load m -o p.txt &&
    grep -q "(accuracy 0.6833, macro F1 0.5234 of 120 labelled nodes)$" run.err &&
    class_lines "a 0.6750 0.7105 0.6923 38" "b 0.7000 0.7179 0.7089 39" "c 0.6750 0.7105 0.6923 38" "d 0.0000 0.0000 0.0000 5"'
ok 'nothing with --quiet' eval 'status 0 predict other --undirected --load m -o p.txt --quiet && [ ! -s run.out ]'
ok 'nor where there are no labels' eval 'rm other/labels.txt other/classes.txt && status 0 predict other --undirected --load m -o p.txt &&
    [ ! -s run.out ] && grep -q "wrote p.txt$" run.err'

# Several classes: node i has the classes i // 40 and (i // 40 + 1) % 3, and in truth each class c the other way where
# i % (7 + c) == 0. scikit-learn: f1_score(average="micro"), "macro", precision_recall_fscore_support.
rings several
rm several/labels.txt several/classes.txt
targets() { # targets FLIP: the matrix of classes
    awk -v flip="$1" 'BEGIN { print "%%MatrixMarket matrix array integer general"; print "120 3"
        for (c = 0; c < 3; c++) for (i = 0; i < 120; i++) { r = int(i / 40); t = c == r || c == (r + 1) % 3
            print (flip && i % (7 + c) == 0 ? !t : t) } }' >several/labels.mtx
}
targets 0
status 0 train several $learn --epochs 200 --save ms
ok 'several classes are told' grep -q 'test micro F1 1.0000, macro F1 1.0000$' run.out
targets 1
ok 'several classes a node' eval 'status 0 predict several --undirected --load ms -o p.txt &&
    grep -q "(test micro F1 0.9021, macro F1 0.9021)$" run.err &&
    class_lines "0 0.8500 0.9189 0.8831 37" "1 0.9000 0.9474 0.9231 38" "2 0.9000 0.9000 0.9000 40"'

# ---- the report -----------------------------------------------------------------------------------------

if command -v python3 >/dev/null; then
    judged() { # the figures of the report hang together
        python3 - <<'PYTHON'
import json
r = json.load(open("r.json"))
t = r["test"]
assert t["nodes"] == 60 and t["accuracy"] == r["test_accuracy"] == 1 and t["macro_f1"] == r["test_macro_f1"] == 1
assert t["confusion"] == [[20, 0, 0, 0], [0, 20, 0, 0], [0, 0, 20, 0], [0, 0, 0, 0]]
assert [c["name"] for c in t["classes"]] == ["a", "b", "c", "d"] and t["classes"][0]["support"] == 20
assert len(t["confidence"]) == 10 and sum(b["nodes"] for b in t["confidence"]) == 60
assert all(b["nodes"] == 0 or k / 10 <= b["mean"] <= (k + 1) / 10 for k, b in enumerate(t["confidence"]))
assert r["runs"][0]["test_macro_f1"] == 1
PYTHON
    }
    ok 'figures of the report' judged
    seeds() { # means and deviations
        status 0 train d --undirected --epochs 3 --seeds 4 --report s.json && python3 - <<'PYTHON'
import json, statistics
r = json.load(open("s.json"))
f = [run["test_macro_f1"] for run in r["runs"]]
assert len(f) == 4 and abs(r["test_macro_f1"] - statistics.mean(f)) < 1e-12
assert abs(r["test_macro_f1_deviation"] - statistics.stdev(f)) < 1e-12
PYTHON
    }
    ok 'over several seeds' seeds
else
    skip 'figures of the report: no python3'
fi

# ---- the page -------------------------------------------------------------------------------------------

browser=${CHROMIUM:-chromium}
page() { # the JSON report stands in it, and it loads nothing
    status 0 train d $learn --report r.html && python3 - <<'PYTHON'
import json, re
page = open("r.html").read()
inside = json.loads(re.search(r'id="report">(.*?)</script>', page, re.S).group(1))
report = json.load(open("r.json"))
assert inside["test"] == report["test"] and inside["data"] == report["data"]
assert inside["arguments"][:2] == ["train", "d"] and inside["arguments"][-1] == "r.html"
assert "@REPORT@" not in page and "@PAGE@" not in page and page.endswith("</html>\n")
assert not re.search(r"(src|href)\s*=|@import|url\(", page), "the page loads something"
PYTHON
}
drawn() { # drawn PAGE FIGURES PATTERN...: a browser draws it without a message
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --enable-logging=stderr \
        --virtual-time-budget=5000 --dump-dom "file://$work/$1" 2>console | sed '/<script/,$d' >dom
    [ "$(grep -o '<svg' dom | wc -l)" -eq "$2" ] && ! grep -q 'NaN\|undefined' dom && ! grep CONSOLE console || return 1
    for pattern in "${@:3}"; do grep -q "$pattern" dom || return 1; done
}
command -v python3 >/dev/null && ok 'a page with the report' page
if command -v "$browser" >/dev/null; then
    ok 'a browser draws it' drawn r.html 3 'right about 100 % of 60 nodes' 'Each class' 'mistaken for which' 'be trusted' 'Kipf and M. Welling'
    odd() { # several classes a node, several seeds, no test nodes, a folder and classes that are markup
        status 0 train several $learn --seeds 2 --report s.html && drawn s.html 2 'Curves of' 'Micro F1' 'means of 2 runs' &&
            rm -rf '<b>&' && cp -r d '<b>&' && sed -i 's/test/unused/' '<b>&/split.txt' && printf '<i>\n"&\nc\nd\n' >'<b>&/classes.txt' &&
            status 0 train '<b>&' $learn --report n.html && drawn n.html 2 'no test nodes' '&lt;b&gt;&amp;' &&
            status 0 train d $learn --epochs 1 --report one.html && drawn one.html 3
    }
    ok 'whatever the training' odd
else skip "the page in a browser: $browser is not installed"; fi

# ---- hints ----------------------------------------------------------------------------------------------

rings plain
hints() { # hints PATTERN OPTIONS...: a training of plain says so, in a line beside the closing one; not with --quiet
    local pattern=$1
    shift
    status 0 train plain "$@" && [ "$(wc -l <run.err)" -eq 2 ] && grep -qE "^gnn: plain: $pattern" run.err &&
        status 0 train plain "$@" --quiet && [ ! -s run.err ]
}
none() { status 0 train plain "$@" && [ "$(wc -l <run.err)" -eq 1 ]; }
ok 'nothing to hint at' none $learn
ok 'edges in one direction' hints 'edges have directions, .* --undirected is mostly better$' --rate 0.05 --dropout 0 --epochs 60
ok 'once for several seeds' hints 'edges have directions' --epochs 3 --seeds 3
ok 'a loss that stays' hints 'even the training nodes are not told well \(loss 1\.[0-9]*; a guess has 1\.39\): try --hidden 64, --no-norm.*, more --epochs' \
    --undirected --rate 0.0001 --epochs 60
ok 'what is in use is no advice' hints '.*: try more --epochs or a larger' --undirected --rate 0.0001 --epochs 60 --hidden 64 --no-normalise
ok 'nor after few epochs' none --undirected --rate 0.0001 --epochs 40
ok 'fewer columns than classes' hints '4 classes from 3 hidden columns; .*, such as --hidden 64$' $learn --hidden 3 --epochs 40
ok 'of all heads' none $learn --model gat --hidden 1 --heads 4 --epochs 40
cp -r plain whole
awk -F , -v OFS=, '{ print $0, NR == 1 ? 90000 : 1 }' whole/features.csv >plain/features.csv
ok 'a column of another scale' hints 'feature 4 is as large as 90000, half of the features at most 1, .* one scale' $learn
cp whole/features.csv plain/features.csv
rm plain/classes.txt
sed 's/^[02]$/-1/' whole/labels.txt >plain/labels.txt
ok 'one class alone' hints 'all nodes of known class have the same one, .*; -1 is an unknown class: ' $learn --split 20,5
awk '{ print 10 * $1 }' whole/labels.txt >plain/labels.txt
ok 'classes with gaps' eval "status 0 train plain $learn && grep -q '^gnn: plain: 18 of the 21 classes are empty, the first is 1; ' run.err"
cp whole/labels.txt whole/classes.txt plain
sed -i 's/^1,/2,/; s/,1$/,-1/' plain/features.csv
ok 'negative features' hints 'some features are negative, .*; --no-normalise leaves them' $learn
ok 'sparse ones' eval 'awk -F , "BEGIN { print \"%%MatrixMarket matrix coordinate real general\"; print \"120 3 120\" }
    { for (k = 1; k <= 3; k++) if (\$k) print NR, k, \$k }" plain/features.csv >plain/features.mtx && rm plain/features.csv &&
    hints "some features are negative" $learn'
ok 'left as they are' none $learn --no-normalise

# ---- embeddings -----------------------------------------------------------------------------------------

embeddings() {
    status 0 predict d --undirected --load m --embeddings e.tsv && [ "$(wc -l <e.tsv)" -eq 120 ] &&
        [ "$(awk '{ print NF }' e.tsv | sort -u)" = 16 ] && awk '{ for (k = 1; k <= NF; k++) { if ($k < 0) exit 1; if ($k > 0) n++ } }
            END { exit !(n > 120) }' e.tsv && [ "$(sort -u e.tsv | wc -l)" -eq 3 ]
}
ok 'embeddings of equal nodes are equal, above 0 behind ReLU' embeddings
named() {
    awk 'BEGIN { print "id,x,y,z" } { print "n" NR "," $0 }' d/features.csv >t && rm -rf named && cp -r d named && mv t named/features.csv &&
        awk -F , -v OFS=, '{ print "n" $1 + 1, "n" $2 + 1 }' d/graph.csv >named/graph.csv &&
        status 0 predict named --undirected --load m -o p.csv --embeddings e.csv --scores && head -n 1 e.csv | grep -q '^node,e1,e2,.*,e16$' &&
        sed 1d e.csv | cut -d , -f 2- | tr , '\t' | cmp - e.tsv && sed -n 2p e.csv | grep -q '^n1,'
}
ok 'by names' named
ok 'as an array' eval 'status 0 predict d --undirected --load m --embeddings e.npy && head -c 128 e.npy | grep -aq "(120, 16)" &&
    [ "$(wc -c <e.npy)" -eq $((128 + 120 * 16 * 4)) ]'
ok 'of attention, heads beside each other' eval 'status 0 train d --undirected --model gat --heads 3 --hidden 5 --epochs 2 --save mg &&
    status 0 predict d --undirected --load mg --embeddings e.tsv && [ "$(awk "{ print NF }" e.tsv | sort -u)" = 15 ]'
ok 'none of one layer' eval 'status 0 train d --layers 1 --epochs 1 --save m1 && status 1 predict d --load m1 --embeddings X && [ ! -e X ] &&
    grep -q "^gnn: m1: a model of one layer, which has no embeddings; leave --embeddings out$" run.err'
ok 'no other format' eval 'status 2 predict d --load m --embeddings e.npz && grep -q "embeddings writes text, or an array of NumPy" run.err'
compressed() { # text and arrays alike; --save and --checkpoint are read back as they are
    status 0 predict d --undirected --load m -o p.txt --report p.json && status 0 predict d --undirected --load m -o p.txt.gz --report p.json.gz &&
        gzip -dc p.txt.gz | cmp - p.txt && gzip -t p.json.gz && status 0 predict d --undirected --load m -o p2.npy &&
        status 0 predict d --undirected --load m -o p2.npy.gz && gzip -dc p2.npy.gz | cmp - p2.npy || return 1
    for option in --save --checkpoint; do
        status 2 train d $option X.gz && grep -q -- "$option writes a file that is not compressed" run.err && [ ! -e X.gz ] ||
            return 1
    done
    status 2 predict d --undirected --load m -o X.zst && grep -q 'compressed by gzip only' run.err
}
ok 'names that end in .gz' compressed
ok 'no output at all' eval 'status 2 predict d --load m && grep -q "no output: give -o FILE, --embeddings FILE or --report FILE" run.err'
ok 'both in one file' eval 'status 2 predict d --load m -o X --embeddings ./X && [ ! -e X ]'

# ---- the report of predictions --------------------------------------------------------------------------

rings d
status 0 train d $learn --save m
rings other # labels that differ from the predictions, see above
awk 'BEGIN { for (i = 0; i < 120; i++) { r = int(i / 40); print i % 29 == 0 ? 3 : i * i % 7 == 4 ? (r + 1) % 3 : r } }' >other/labels.txt
rm -rf few && cp -r other few && rm few/split.txt
rm -rf bare && cp -r d bare && rm bare/labels.txt bare/classes.txt bare/split.txt
ok 'predictions with a report' eval 'status 0 predict other --undirected --load m -o p.txt --report p.json &&
    cp p.txt alone.txt && status 0 predict other --undirected --load m -o p.txt && cmp p.txt alone.txt'
ok 'a report alone' status 0 predict few --undirected --load m --report f.json
ok 'a report without labels' status 0 predict bare --undirected --load m --report b.json -o b.npy
status 0 predict bare --undirected --load m --scores -o scores.txt
if command -v python3 >/dev/null; then
    told() { # the figures are those of scikit-learn above; the nodes in doubt are those of the smallest scores
        python3 - <<'PYTHON'
import json
p, f, b = (json.load(open(n)) for n in ("p.json", "f.json", "b.json"))
assert all(r["command"] == "predict" and r["options"]["load"] == "m" and r["options"]["model"] == "gcn" for r in (p, f, b))
assert p["judged_nodes"] == "test" and p["judged"]["nodes"] == 60 and f["judged_nodes"] == "labelled" and f["judged"]["nodes"] == 120
assert (round(p["judged"]["accuracy"], 4), round(p["judged"]["macro_f1"], 4)) == (0.6667, 0.5171)
assert (round(f["judged"]["accuracy"], 4), round(f["judged"]["macro_f1"], 4)) == (0.6833, 0.5234)
assert [c["support"] for c in f["judged"]["classes"]] == [38, 39, 38, 5] and sum(map(sum, f["judged"]["confusion"])) == 120
assert b["judged_nodes"] == "none" and b["judged"] is None and "test" not in b["data"]
rows = [line.split("\t") for line in open("scores.txt").read().splitlines()[1:]]
names, scores = [r[0] for r in rows], [list(map(float, r[1:])) for r in rows]
assert len(scores) == 120 and {c["name"]: c["nodes"] for c in b["predicted"]} == {n: names.count(n) for n in "abcd"}
order = sorted(range(120), key=lambda i: max(scores[i]))
doubt = b["least_certain"]
assert len(doubt) == 20 and len({u["node"] for u in doubt}) == 20
for u, i in zip(doubt, order):
    own = sorted(scores[int(u["node"])], reverse=True)
    assert abs(u["probability"] - max(scores[i])) < 1e-5, (u, scores[i])
    assert abs(u["probability"] - own[0]) < 1e-5 and abs(u["second_probability"] - own[1]) < 1e-5
    assert u["class"] == names[int(u["node"])] and u["second_class"] != u["class"]
bins = [0] * 10
for s in scores: bins[min(int(max(s) * 10), 9)] += 1
assert b["nodes_by_probability"] == bins, (b["nodes_by_probability"], bins)
PYTHON
    }
    ok 'what it says' told
else skip 'the report of predictions: no python3'; fi
if command -v "$browser" >/dev/null; then
    pages() { # judged, and not; several classes a node
        status 0 predict few --undirected --load m --report f.html && drawn f.html 1 'right about 68.* of the 120 labelled nodes' \
            'Each class' 'mistaken for which' 'be trusted' 'in doubt' 'Kipf and M. Welling' &&
            status 0 predict bare --undirected --load m --report b.html && drawn b.html 0 'No classes are known' 'What was found' 'in doubt' &&
            status 0 predict several --undirected --load ms --report s.html && drawn s.html 0 'Micro F1 is' 'Each class'
    }
    ok 'a browser draws it' pages
fi
ok 'an output twice' eval 'status 2 predict d --undirected --load m -o X --report ./X && [ ! -e X ]'

# ---- weights --------------------------------------------------------------------------------------------

# A name that JSON has to escape.
printf '"a\\\nb\nc\nd\n' >d/classes.txt
status 0 train d $learn --save m
status 0 predict d --undirected --load m -o s.npy --scores --embeddings e.npy
ok 'weights for other programs' status 0 train d $learn --save w.safetensors
deep='--layers 3 --norm batch --residual'
status 0 train d $learn $deep --save m
status 0 predict d --undirected --load m -o deep-s.npy --scores --embeddings deep-e.npy
ok 'weights of a deep model' status 0 train d $learn $deep --save deep.safetensors
ok 'twice the same' eval 'status 0 train d $learn --save v.safetensors && cmp v.safetensors w.safetensors'
ok 'no checkpoint' eval 'status 2 train d --checkpoint X.safetensors && [ ! -e X.safetensors ]'
loads() { # loads NAME OPTIONS...: the weights alone predict what the whole model does, and can be trained on
    local name=$1
    shift
    status 0 train d "$@" --save "$name.m" && status 0 train d "$@" --save "$name.safetensors" &&
        status 0 predict d --load "$name.m" --scores -o a.txt && status 0 predict d --load "$name.safetensors" --scores -o b.txt &&
        cmp a.txt b.txt && status 0 train d --resume "$name.safetensors" --epochs 3 --save X2 && rm X2
}
ok 'weights are loaded' loads gcn $learn
latin() { # names of classes that are not UTF-8: weights have them in UTF-8
    rm -rf latin && cp -r d latin && printf 'a\ncaf\351\nc\nd\n' >latin/classes.txt &&
        status 0 train latin $learn --save latin.m && status 0 train latin $learn --save latin.safetensors &&
        status 0 predict latin --undirected --load latin.m -o a.txt &&
        status 0 predict latin --undirected --load latin.safetensors -o b.txt &&
        cmp b.txt <(iconv -f LATIN1 -t UTF-8 a.txt) && grep -q caf b.txt
}
ok 'for a folder with names outside UTF-8, too' latin
for model in 'sage --layers 3' sage-max 'gin --maxk 3' 'gat --hidden 3 --heads 2' 'sage --norm batch --residual --layers 4' \
    'gcn --norm layer --jump cat --layers 3' 'gat --hidden 3 --heads 2 --jump max'; do
    ok "weights of $model are loaded" loads m --epochs 4 --hidden 6 --model $model
done
fails() { # fails PATTERN ARGUMENTS...: status 1, one line on stderr
    local pattern=$1
    shift
    status 1 "$@" && [ "$(wc -l <run.err)" -eq 1 ] && grep -qE -- "^gnn: $pattern" run.err || { cat run.err; return 1; }
}
no_weights() { # no_weights PATTERN SCRIPT: what a changed file is refused for
    python3 - "$2" <<'PYTHON' && fails "$1" predict d --load changed.safetensors -o Y
import json, struct, sys
raw = open("gcn.safetensors", "rb").read()
length = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
scope = {"json": json, "struct": struct, "h": header, "t": header["__metadata__"], "data": data}
exec(sys.argv[1], scope)
text = scope.get("text", json.dumps(scope["h"])).encode()
open("changed.safetensors", "wb").write(struct.pack("<Q", scope.get("length", len(text))) + text + scope["data"])
PYTHON
}
if command -v python3 >/dev/null; then
    ok 'spaces and escapes in a header' eval 'no_weights "" "text = json.dumps(h, indent=1, ensure_ascii=True)" ;
        status 0 predict d --load changed.safetensors --scores -o c.txt &&
        status 0 predict d --load gcn.safetensors --scores -o a.txt && cmp a.txt c.txt'
    ok 'a tensor is missing' no_weights 'changed.safetensors: there is no tensor layer2.bias; give what gnn train' 'del h["layer2.bias"]'
    ok 'a tensor too many' no_weights '.*: it has 5 tensors, where its model has 4' 'h["layer9.bias"] = h["layer1.bias"]'
    ok 'another shape' no_weights '.*: the tensor layer1.weight is .* x .*, where its model has' 'h["layer1.weight"]["shape"].reverse()'
    ok 'another type' no_weights '.*: the tensor layer1.weight is not of type F32' 'h["layer1.weight"]["dtype"] = "BF16"'
    ok 'truncated' no_weights '.*: it is truncated' 'data = data[:-4]'
    ok 'places beyond the file' no_weights '.*: it is truncated' 'h["layer1.bias"]["data_offsets"] = [1 << 40, (1 << 40) + 64]'
    ok 'places in disorder' no_weights '.*: it is truncated' 'h["layer1.bias"]["data_offsets"].reverse()'
    ok 'no description' no_weights '.*: its __metadata__ does not describe a model' 'del t["model"]'
    ok 'too large a model' no_weights '.*: it is truncated' 't["hidden"] = "2000000000"'
    ok 'not a number' no_weights '.*weight that is no finite number' 'data = struct.pack("<f", float("nan")) + data[4:]'
    ok 'other texts' no_weights '.*: its __metadata__ has something else than texts' 't["layers"] = 2'
    ok 'a header beyond the file' no_weights '.*: it is no safetensors file' 'length = 1 << 50'
    ok 'a header that ends early' no_weights '.*: its header does not end' 'text = json.dumps(h)[:-1]'
    ok 'no names of all classes' no_weights '.*: it has not as many names as classes' 't["classes"] = "x\n"'
    ok 'half a character' no_weights '.*: its header is not an object of tensors' 'text = "{\"\\ud800\": 1}"'
else for what in 'spaces and escapes' 'wrong files of weights'; do skip "no python3: $what"; done; fi
: >empty.safetensors
ok 'an empty file' fails 'empty.safetensors: it is no safetensors file' predict d --load empty.safetensors -o Y
if find_scipy >venv.out; then
    weights() { # the model by numpy, with the tensors of the file
        "$python" - <<'PYTHON'
import json, numpy as np
def read(name):
    raw = open(name, "rb").read()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    return raw, length, header, header.pop("__metadata__")
raw, length, header, texts = read("w.safetensors")
assert length % 8 == 0 and all(isinstance(v, str) for v in texts.values())
assert texts["model"] == "gcn" and texts["inputs"] == "3" and texts["hidden"] == "16" and texts["outputs"] == "4"
assert texts["classes"] == '"a\\\nb\nc\nd\n' and texts["normalised_features"] == "yes"
ends = sorted(t["data_offsets"] for t in header.values())
assert ends[0][0] == 0 and 8 + length + ends[-1][1] == len(raw) and all(a[1] == b[0] for a, b in zip(ends, ends[1:]))
def tensor(name):
    t = header[name]
    assert t["dtype"] == "F32"
    begin, end = (8 + length + at for at in t["data_offsets"])
    return np.frombuffer(raw[begin:end], "<f4").reshape(t["shape"]).astype(float)
try: # the package, where it is installed
    from safetensors.numpy import load_file
    loaded = load_file("w.safetensors")
    assert set(loaded) == set(header) and all(np.array_equal(loaded[k], tensor(k)) for k in header)
except ImportError: pass
a = np.eye(120)
for line in open("d/graph.csv"):
    i, j = map(int, line.split(","))
    a[i, j] = a[j, i] = 1
d = a.sum(1) ** -0.5
a = d[:, None] * a * d
x = np.loadtxt("d/features.csv", delimiter=",")
hidden = np.maximum(a @ x @ tensor("layer1.weight") + tensor("layer1.bias"), 0)
logits = a @ hidden @ tensor("layer2.weight") + tensor("layer2.bias")
scores = np.exp(logits - logits.max(1, keepdims=True))
scores /= scores.sum(1, keepdims=True)
assert np.abs(hidden - np.load("e.npy")).max() < 1e-4 and np.load("e.npy").max() > 0.1
assert np.abs(scores - np.load("s.npy")).max() < 1e-4
raw, length, header, texts = read("deep.safetensors")
assert texts["norm"] == "batch" and texts["residual"] == "yes" and texts["layers"] == "3"
def linear(n, h): return a @ h @ tensor(f"layer{n}.weight") + tensor(f"layer{n}.bias")
def layer(n, h):
    part = lambda name: tensor(f"layer{n}.norm_{name}")
    z = (linear(n, h) - part("mean")) / np.sqrt(part("variance") + 1e-5)
    return np.maximum(z * part("scale") + part("shift"), 0)
first = layer(1, x)
hidden = layer(2, first) + first
logits = linear(3, hidden)
scores = np.exp(logits - logits.max(1, keepdims=True))
scores /= scores.sum(1, keepdims=True)
assert np.abs(hidden - np.load("deep-e.npy")).max() < 1e-3 and np.abs(scores - np.load("deep-s.npy")).max() < 1e-4
PYTHON
    }
    ok 'tensors, embeddings and scores are those of the formula' weights
else skip "weights by numpy: $(tail -n 1 venv.out)"; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
