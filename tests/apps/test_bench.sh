#!/bin/bash
# The command line of sparse-bench: small matrices of every kind, files, operations, what is printed and written, exit
# codes, error lines.
#   SPARSE_BENCH  the tool [$BUILD/bin/sparse-bench]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${SPARSE_BENCH:-${BUILD:-build}/bin/sparse-bench}") || exit 1
root=$PWD build=$(realpath "${BUILD:-build}")
. tests/support/scipy.sh
. tests/support/cli.sh
quick="--device cpu --repeat 1 --peers none"

fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr
    local expected=$1 pattern=$2
    shift 2
    status "$expected" "$@" && [ "$(wc -l <run.err)" -eq 1 ] && grep -qE "^sparse-bench: .*$pattern" run.err ||
        { cat run.err; return 1; }
}
json() { # json FILE EXPRESSION: true of the parsed file, which is d, and of each of its matrices m
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["matrices"] and all(eval(sys.argv[2]) for m in d["matrices"]), d' "$1" "$2"
}
checked='m["checked"]["good"] and m["checked"]["with"] and m["checked"]["whole"]'
times='m["ours"]["median_seconds"] > 0 and m["ours"]["first_seconds"] > 0 and m["gflops"] > 0 and 0 < m["copy_fraction"]'
square() { # square EXPRESSION ARGUMENTS...: the run is right, and so is what it writes
    local expression=$1
    shift
    rm -f out.json
    status 0 spgemm $quick --json out.json "$@" && json out.json "$checked and $times and ($expression)"
}

# ---- products ------------------------------------------------------------------------------------------------------

ok "small matrices of every kind" square 'len(d["matrices"]) == 10 and m["nnz_product"] > 0' --generate small
ok "in single precision" square 'd["options"]["values"] == "fp32"' --generate small --fp32
ok "a line a matrix" [ "$(grep -c '^small-' run.out)" -eq 10 ]
ok "specifications" square 'm["rows"] == 300 and m["generated"] == "uniform:300,4"' --generate uniform:300,4
ok "seeds" bash -c '"$0" spgemm $1 --json a.json --generate rmat:6,4 --seed 1 &&
    "$0" spgemm $1 --json b.json --generate rmat:6,4 --seed 2 && grep -q "\"seed\": 2" b.json &&
    ! cmp <(grep \"nnz\": a.json) <(grep \"nnz\": b.json)' "$tool" "$quick"
ok "the transpose" square 'm["operation"] == "A*transpose(A)" and m["rows"] == m["columns"] == 40' \
    --generate uniform:40,3,70 --aat
ok "rectangular products" square 'm["rows"] == 40 and m["inner"] == 70 and m["columns"] == 9' \
    --generate uniform:40,3,70 --times-generated uniform:70,2,9
for algorithm in hash dense; do
    ok "algorithm $algorithm" square "d['options']['algorithm'] == '$algorithm'" --generate rmat:8,8 \
        --algorithm $algorithm
done
for semiring in plus-pair min-plus max-times or-and; do
    ok "semiring $semiring" square "d['options']['semiring'] == '$semiring'" --generate web:500,8,57,70,50 \
        --semiring $semiring
done
ok "threads" square 'd["options"]["threads"] == 3' --generate rmat:8,8 --threads 3
ok "all threads" square 'd["options"]["threads"] >= 1' --generate rmat:8,8
ok "plans" square 'm["plan"]["median_seconds"] > 0 and m["plan_seconds"] > 0' --generate fem2d:9,9,3 --plan
ok "what plans keep, the pattern of C at least" square 'm["plan"]["peak_bytes"] >= m["plan_bytes"] >=
    4 * m["nnz_product"] + 8 * m["rows"]' --generate fem2d:9,9,3 --plan
ok "a line says what a plan keeps" grep -qE '^    plan .* GFLOPS, after .* ms, keeps [0-9.]+ MB$' run.out
ok "the stage is the GPU's" square 'm["stage_on"]["failed"] == "unsupported"' --generate rmat:6,4 --aia
ok "samples" square 'len(m["ours"]["samples"]) == 4' --generate rmat:6,4 --repeat 4
ok "a matrix without entries" bash -c '"$0" spgemm $1 --generate grid:5,5,0 --json empty.json' "$tool" "$quick"
ok "no comparison" bash -c '"$0" spgemm $1 --generate rmat:6,4 --no-check --json n.json &&
    grep -q "\"checked\": null" n.json' "$tool" "$quick"
ok "presets stand in the help" bash -c '"$0" --help | grep -q arrowhead' "$tool"
ok "the commit and the machine are named" bash -c 'BENCH_COMMIT=abc123 "$0" spgemm $1 --generate rmat:6,4 \
    --json c.json && grep -q "\"commit\": \"abc123\"" c.json && grep -q "\"cores\": [1-9]" c.json' "$tool" "$quick"

# ---- quotient graphs -----------------------------------------------------------------------------------------------

right='m["checked"]["good"] and m["ours"]["fused"]["sorted"] and m["ours"]["products"]["median_seconds"] > 0'
quotient() { # quotient EXPRESSION ARGUMENTS...
    local expression=$1
    shift
    rm -f out.json
    status 0 contract $quick --json out.json "$@" && json out.json "$right and ($expression)"
}
ok "quotients of graphs of every kind" quotient 'len(d["matrices"]) == 18 and 0 < m["nnz_quotient"] <= m["edges"]' \
    --generate small
ok "a line a quotient" [ "$(grep -c '^small-' run.out)" -eq 18 ]
ok "quotients in double precision" quotient 'd["options"]["values"] == "fp64" and
    m["checked"]["largest_error"] < 1e-12' --generate rmat:8,8 --fp64
ok "groups by number and share" quotient '[g["groups"] for g in d["matrices"]] == [7, 64]' --generate rmat:8,8 \
    --groups 7,25% --labels random
ok "one group" quotient 'm["groups"] == m["nnz_quotient"] == 1' --generate rmat:8,8 --groups 1
ok "every node its own group" quotient 'm["nnz_quotient"] == m["edges"]' --generate rmat:8,8 --groups 100% \
    --labels blocks
ok "more groups than nodes" quotient 'm["groups"] == m["nodes"]' --generate rmat:6,4 --groups 1000
ok "quotients without edges" quotient 'm["nnz_quotient"] == 0' --generate grid:5,5,0
ok "bytes that must move" quotient \
    'm["bytes"] == 8 * 257 + 8 * m["edges"] + 4 * 256 + 8 * 65 + 8 * m["nnz_quotient"]' --generate rmat:8,8 --groups 25%
ok "labels by seed" bash -c '"$0" contract $1 --json a.json --generate grid:9,9,100 --labels random --seed 1 &&
    "$0" contract $1 --json b.json --generate grid:9,9,100 --labels random --seed 2 &&
    ! cmp <(grep nnz_quotient a.json) <(grep nnz_quotient b.json)' "$tool" "$quick"
ok "the stage of quotients is the GPU's" quotient 'm["stage_on"]["failed"] == "unsupported" and
    m["checked"]["whole"]' --generate rmat:6,4 --aia
ok "matrices of products are graphs" quotient 'm["generated"] == "grid:1180,1180,70"' --generate road --groups 10 \
    --labels blocks
ok "no comparison of quotients" bash -c '"$0" contract $1 --generate rmat:6,4 --no-check --json n.json &&
    grep -q "\"checked\": null" n.json' "$tool" "$quick"

ok "groups of unequal sizes" quotient 'm["labels"] == "power" and m["groups"] == 20' --generate rmat:8,8 --groups 20 \
    --labels power

# ---- levels of coarsening -------------------------------------------------------------------------------------------

level() { # level EXPRESSION ARGUMENTS...
    local expression=$1
    shift
    rm -f out.json
    status 0 coarsen --device cpu --repeat 1 --json out.json "$@" &&
        json out.json 'all(w["same"] and w["labels"]["median_seconds"] > 0 for w in m["methods"]) and ('"$expression)"
}
ok "every way of coarsening, of a graph with its transpose" level '[w["name"] for w in m["methods"]] ==
    ["matching", "two-hop", "hec", "lp"] and max(w["groups"] for w in m["methods"]) < m["nodes"]' --generate rmat:8,8
ok "a line a way of coarsening" grep -q '^    two-hop .*ms.* groups; quotient .* ms; checked' run.out
ok "a symmetric graph stays" level 'm["entries"] == 19 ** 3 and m["edges"] == (19 ** 3 - 343) // 2' \
    --generate stencil:7,7,7,27 --method lp
ok "groups of few nodes" level 'm["methods"][0]["groups"] >= 86' --generate stencil:7,7,7,27 --method hec --most 4
ok "a level without edges" level 'm["methods"][0]["groups"] == 25' --generate grid:5,5,0 --method lp
by_script() { # in a folder of its own, because it writes beside itself
    mkdir -p scripts/bench && cp "$root"/bench/{bench_contract,options}.sh scripts/bench &&
        BUILD=$build bash scripts/bench/bench_contract.sh --device cpu --small --parts levels \
            --repeat 1 --name test >/dev/null 2>&1 &&
        grep -q '"same": true' scripts/bench/results/coarsen-test-small-{rmat,stencil}.json
}
ok "levels by the script of contractions" by_script
ok "bad ways of coarsening" fails 2 '--method takes' coarsen --method some a.mtx
ok "coarsening of what is not square" fails 2 'a graph square' coarsen --device cpu --generate uniform:40,3,70

# ---- the survey ----------------------------------------------------------------------------------------------------

judged() { # a stencil three times as fast as its peer and another twice as slow, with means and the worst by name
    cat >judged.json <<'END'
{"date": "d", "commit": "c", "machine": {"gpu": null, "cpu": "CPU"}, "options": {"values": "fp64"}, "matrices": [
 {"matrix": "a", "family": "stencil", "seed": 4, "operation": "A*A", "bytes": 1000, "ours": {"median_seconds": 1.0, "peak_bytes": 70},
  "peers": [{"name": "P", "sorted": true, "median_seconds": 4.0}, {"name": "Q", "sorted": true, "median_seconds": 3.0},
            {"name": "R", "sorted": false, "median_seconds": 0.1}, {"name": "S", "failed": "memory"}]},
 {"matrix": "b", "family": "stencil", "seed": 4, "operation": "A*transpose(A)", "ours": {"median_seconds": 2.0},
  "peers": [{"name": "P", "sorted": true, "median_seconds": 1.0}]},
 {"matrix": "c", "family": "road", "seed": 9, "operation": "A*A", "ours": {"failed": "memory"}, "peers": []}]}
END
    python3 -B "$root/bench/survey.py" judged.json >run.out &&
        grep -qE '^  stencil +2 +1\.22 +0\.50 +3\.00 +1$' run.out && grep -qE '^  road +0 +1 of ours failed$' run.out &&
        grep -qE '^ +0\.50  b A\*transpose\(A\) ' run.out &&
        grep -q '^  peak memory .*: 7.0 % of them (median), at most 7.0 % (a)$' run.out
}
if command -v python3 >/dev/null; then ok "a survey is judged by family" judged; else skip 'no python3: the survey'; fi
surveyed() { # every part, by the tool: types, transposes and all widths of one matrix that is named and a file
    mkdir -p parts-of && status 0 survey $quick --generate rmat:6,4 a.mtx --width 3,8 --out parts-of &&
        grep -qx 'sparse-bench: measured 8 parts; wrote parts-of/PART.json' run.err &&
        [ "$(find parts-of -name '*.json' | wc -l)" -eq 8 ] && for part in parts-of/*.json; do
        local name=${part##*/} expected
        case $name in
        spgemm-*) expected='m["plan"]["median_seconds"] > 0' ;;
        spmm-*) expected='len(d["matrices"]) == 4 and m["width"] in (3, 8) and
            d["options"]["transpose"] == ("transposed" in "'$name'") and
            d["options"]["features"] == d["options"]["result"] == "'$name'".split("-")[-1][:-5]' ;;
        *) expected='len(d["matrices"]) == 18 and {m["labels"] for m in d["matrices"]} == {"random", "blocks", "power"}' ;;
        esac
        json "$part" '(d["bench"] in "'"$name"'" and m["checked"]["good"] and
            ("spmm" in "'$name'" or d["options"]["values"][2:] == "'$name'".split("-f")[-1][:-5]) and
            m["matrix"] in ("rmat:6,4", "a.mtx") and ('"$expected"'))' || return 1
    done
}
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2\n1 2 -1\n2 1 0.5\n3 3 1e1\n' >a.mtx
ok "a survey has all operations and types" surveyed
ok "a survey of one part writes one" bash -c 'mkdir -p one && "$0" survey $1 --generate rmat:6,4 --parts contract-f32 \
    --out one 2>run.err && grep -q "measured 1 part; wrote one" run.err && [ "$(ls one)" = contract-f32.json ]' "$tool" "$quick"
by_families() { # the script: a table a part, by type
    BUILD=$build "$root/bench/survey.sh" --device cpu --generate rmat:6,4 --parts "spmm-bf16 spmm-transposed-f32" \
        --widths 5 --repeat 1 --peers none --out "$PWD/scripted" >run.out 2>run.err &&
        grep -q '^spmm-bf16: .*, bf16, commit' run.out && grep -q '^spmm-transposed-f32: .*, fp32, commit' run.out &&
        grep -q '^rmat:6,4 | ' scripted/survey.log && [ "$(ls scripted/*.json | wc -l)" -eq 2 ]
}
if command -v python3 >/dev/null; then ok "a survey by the script" by_families; else skip 'no python3: the survey'; fi
ok "bad parts" fails 2 '--parts takes' survey --parts spmm-f64
ok "a survey's parts name their types" fails 2 'name their types' survey --fp32
ok "a survey into one file" fails 2 'name a folder by --out' survey --json x.json
ok "a survey into a folder that is not there" fails 1 'nowhere' survey $quick --generate rmat:6,4 --out nowhere
survey_over() {
    cp a.mtx spgemm-f64.json && fails 2 'is an input, too' survey $quick spgemm-f64.json --parts spgemm-f64 &&
        cmp a.mtx spgemm-f64.json
}
ok "a survey over its matrix" survey_over
ok "two seeds take turns" bash -c '"$0" spgemm $1 --generate rmat:6,4 --generate rmat:6,4 --generate rmat:6,4 --seed 4,9 \
    --json t.json && [ "$(grep -o "\"seed\": [0-9]*, " t.json | tr -dc "49 ")" = " 4  9  4 " ]' "$tool" "$quick"
ok "the transpose on the left" square 'm["rows"] == m["columns"] == 70 and m["operation"] == "transpose(A)*A"' \
    --generate uniform:300,4,70 --ata

# ---- files ---------------------------------------------------------------------------------------------------------

printf '%%%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2\n1 2 -1\n2 1 0.5\n3 3 1e1\n' >a.mtx
printf '%%%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n' >s.mtx
printf '# from to\n10 2\n2 10\n2 7\n7 10\n' >edges.txt
gzip -k a.mtx
json_over() {
    cp a.mtx own.mtx && fails 2 '"./own.mtx" is an input, too' spgemm own.mtx --json ./own.mtx &&
        cmp a.mtx own.mtx
}
ok "the report over the matrix" json_over
ok "Matrix Market with negative values" square 'm["nnz"] == 4 and m["products"] == 6' a.mtx
ok "compressed" square 'm["matrix"] == "a.mtx.gz" and m["nnz"] == 4' "$work/a.mtx.gz"
ok "symmetric patterns" square 'm["nnz"] == 4 and m["products"] == 6 and m["nnz_product"] == 5' s.mtx
ok "edge lists are directed" square 'm["rows"] == 3 and m["nnz"] == 4' edges.txt
ok "several files" square 'len(d["matrices"]) == 2' a.mtx edges.txt
ok "times a file" square 'm["operation"] == "s.mtx" and m["nnz_right"] == 4' a.mtx --times s.mtx
ok "quotients of files with negative values" quotient 'm["edges"] == 4 and m["nodes"] == 3' a.mtx --groups 2,100%
ok "nothing is left behind" no_leftovers

# ---- sparse times dense --------------------------------------------------------------------------------------------

dense() { # dense EXPRESSION ARGUMENTS...: the run is right, and so is what it writes
    local expression=$1
    shift
    rm -f out.json
    status 0 spmm $quick --json out.json "$@" && json out.json '(d["bench"] == "spmm" and m["checked"]["good"] and
        all(o["median_seconds"] > 0 for o in m["ours"].values()) and ('"$expression"'))'
}
ok "small graphs" dense 'len(d["matrices"]) == 12 and m["nnz"] > 0' --generate small --width 5,32
ok "a line a graph and width" [ "$(grep -c '^small-.* | ' run.out)" -eq 12 ]
ok "every algorithm does what it is asked for" dense 'all(o["algorithm"] == k for k, o in
    list(m["ours"].items())[1:])' --generate rmat:8,8 --width 16
ok "what plans keep and take" dense 'all(o["peak_bytes"] >= o["plan_bytes"] > o["metadata_bytes"] for o in
    m["ours"].values()) and m["ours"]["block_partition"]["plan_bytes"] >= 4 * m["rows"]' --generate rmat:10,8 --width 8
ok "plans of the transpose keep a copy" dense 'min(o["plan_bytes"] for o in m["ours"].values()) >= 8 * m["nnz"] and
    all(o["peak_bytes"] > o["plan_bytes"] for o in m["ours"].values())' --generate uniform:3000,40 --width 8 --transpose
ok "lines say what plans keep" [ "$(grep -cE '(plan|once) [0-9.]+ ms, [0-9.]+ MB$' run.out)" -eq 4 ]
ok "in double precision" dense 'd["options"]["features"] == "f64" and m["checked"]["largest_error"] < 1e-14' \
    --generate rmat:8,8 --width 16 --fp64
for features in f16 bf16; do
    ok "features $features" dense "d['options']['features'] == '$features' and d['options']['result'] == 'f32' and
        m['checked']['largest_error'] < 1e-5" --generate rmat:8,8 --width 33 --features $features
    # Half of the last place of 11 or 8 bits is what rounding may cost.
    ok "features and result $features" dense "d['options']['result'] == '$features' and
        1e-4 < m['checked']['largest_error'] < (4.9e-4 if '$features' == 'f16' else 3.95e-3) and
        m['compulsory_bytes'] < 8 * 257 + 8 * m['nnz'] + 33 * 256 * 4 + 1" --generate rmat:8,8 --width 33 \
        --features $features --result $features
done
for reduce in mean max min; do
    ok "reduction $reduce" dense "d['options']['reduce'] == '$reduce'" --generate rmat:8,8 --width 33 --reduce $reduce
done
ok "a file" dense 'm["nnz"] == 4 and m["width"] in (2, 3)' a.mtx --width 2,3
ok "bytes" dense 'm["gathered_bytes"] == 4 * 4 * 2 and m["compulsory_bytes"] == 8 * 4 + 8 * 4 + 4 * 2 * 3 * 2' \
    a.mtx --width 2
if ldconfig -p 2>/dev/null | grep -q libgraphblas; then
    quick="--device cpu --repeat 1 --peers graphblas"
    ok "GraphBLAS beside" dense 'len(m["peers"]) == 2 and all(p["median_seconds"] > 0 and p["error"] < 1e-5
        for p in m["peers"])' --generate rmat:8,8 --width 8,40
    quick="--device cpu --repeat 1 --peers none"
else skip "GraphBLAS is not installed"; fi
apart='all(v["error"] < 1e-5 and v["median_seconds"] > 0 and v["partitions"] > 0 for v in m["ablation"])'
names='[(v["name"], v["caches"]) for v in m["ablation"]]'
ok "without combined warps" dense "$apart and $names == [('FP', 0)]" --generate small --width 16,33 --ablation warps
ok "each cut alone" dense "$apart and $names == [('FP', 0), ('GP', 1), ('BiKD', 1), ('BiKD, rows as they come', 1)]" \
    --generate rmat:11,8 --width 33 --ablation partitions
# X has 10 MB, several caches of any core: the smallest partition has the most ranges.
ok "sizes of partitions" dense "$apart and [v['caches'] for v in m['ablation']] == 2 * [0.25, 0.5, 1, 2, 4, 8] and
    (lambda p: p[0] > 1 and p == sorted(p, reverse=True) and len(p) == 6)(
        [v['partitions'] for v in m['ablation'] if v['name'] == 'GP'])" \
    --generate uniform:20000,4 --width 131 --ablation sizes
ok "cuts of graphs without edges, of one node, in double precision" dense "$apart and m['ablation']" --generate \
    grid:5,5,0 --generate uniform:1,1 --width 1,40 --fp64 --ablation partitions,sizes
ok "cuts of files" dense "$apart and len(m['ablation']) == 14" a.mtx s.mtx --width 3 --ablation warps,partitions,sizes
ok "metadata of warps" dense 'm["warp_metadata_bytes"] == 16 * 30 * 3' --generate uniform:30,80,5000 --width 3
parts() { # parts: those of the script that take algorithms apart, their tables
    BUILD=$build RESULTS=$PWD/parts "$root/bench/bench_spmm.sh" --small --device cpu --threads 2 --repeat 1 \
        --limit 0.01 --name here --parts "accel-gcn bikd ablation host" >parts.out 2>parts.err &&
        grep -q 'left out: host' parts.err && [ "$(grep -c '^| geometric mean' parts.out)" -ge 2 ] &&
        grep -q '| 0.25 caches |' parts.out && for part in accel-gcn bikd ablation; do
        json "parts/spmm-here-small-$part.json" 'len(d["matrices"]) == 12 and m["ablation"] and m["checked"]["good"]' ||
            return 1
    done
}
ok "parts of papers" parts
if python3 -c 'import matplotlib' 2>/dev/null; then
    ok "plots of papers' figures" bash -c 'python3 -B "$0" --output plots --papers parts/*.json >plots.out &&
        for figure in accel-gcn-{6,7,8} bikd-{18,19,20}; do
            grep -q "^</svg>" plots/$figure.svg || exit 1
        done' "$root/bench/plots.py"
else skip "matplotlib is not installed"; fi
if find_scipy >venv.out; then
    scipy() {
        BUILD=$build RESULTS=$PWD/scipy PYTHON=$python "$root/bench/bench_spmm.sh" --small --device cpu --threads 2 \
            --repeat 1 --limit 0.01 --name here --parts scipy >scipy.out && grep -q '| scipy, ms |' scipy.out &&
            json scipy/spmm-here-small-scipy.json '(len(d["matrices"]) == 12 and
                m["peers"][-1]["name"] == "scipy" and m["peers"][-1]["error"] < 1e-5)'
    }
    ok "scipy beside the CPU's products" scipy
else skip "no scipy: $(tail -n 1 venv.out)"; fi
ok "plans of the transpose" dense 'd["options"]["transpose"] and (m["rows"], m["columns"]) == (70, 40) and
    m["checked"]["largest_error"] < 1e-14' --generate uniform:40,9,70 --width 5,40 --transpose --fp64
ok "maxima by plans of the transpose" dense 'd["options"]["reduce"] == "max"' --generate rmat:8,8 --width 5 --transpose \
    --reduce max
ok "ablations of transposes" fails 2 'without --transpose' spmm --ablation warps --transpose a.mtx
ok "bad ablations" fails 2 '--ablation takes' spmm --ablation all a.mtx
ok "ablations of maxima" fails 2 '--ablation takes sums' spmm --ablation warps --reduce max a.mtx
ok "bad widths" fails 2 '--width takes' spmm --width 3,0 a.mtx
ok "bad places of the dense matrices" fails 2 '--host is' spmm --host tape a.mtx
ok "bad reductions" fails 2 '--reduce is' spmm --reduce product a.mtx
ok "bad features" fails 2 '--features is' spmm --features f8 a.mtx
ok "bad results" fails 2 '--result is' spmm --features f16 --result f8 a.mtx
ok "results narrower than features" fails 2 'type of the features, f32' spmm --result f16 a.mtx
ok "results in double precision" fails 2 '--fp64 excludes' spmm --fp64 --features f16 --result f16 a.mtx
ok "options of the other command" fails 2 'unknown option "--aat"' spmm --aat a.mtx

# ---- graph neural networks -----------------------------------------------------------------------------------------

networks() { # networks EXPRESSION ARGUMENTS...: the run is right, and so is what it writes
    local expression=$1
    shift
    rm -f out.json
    status 0 gnn $quick --json out.json "$@" && json out.json '(d["bench"] == "gnn" and m["symmetric"] and
        all(t[k]["median_seconds"] > 0 for t in m["training"] for k in ("forward", "epoch")) and ('"$expression"'))'
}
tiny="--generate rmat:7,6 --features 9 --classes 3 --hidden 8"
ok "orders of nodes" networks '[t["order"] for t in m["training"]] == ["keep", "community"] and m["order_seconds"] > 0' \
    $tiny --model gcn --order keep,community
ok "the order of gnn train, which keeps a small graph" networks '[t["order"] for t in m["training"]] == ["keep"]' \
    $tiny --model gcn
ok "bad orders" fails 2 '--order takes' gnn --order random $tiny
ok "training" networks '[(t["model"], t["maxk"], t["kept"]) for t in m["training"]] == [("gcn", 3, False),
    ("sage", 3, False), ("gcn", 0, False), ("gcn", 0, True), ("sage", 0, False), ("sage", 0, True)] and
    m["nodes"] == 128 and m["features"] == 9 and m["classes"] == 3' $tiny --keep --maxk 3
ok "every model trains" networks '[t["model"] for t in m["training"]] == "gcn sage sage-max gin gat".split() and
    [t["heads"] for t in m["training"]] == [1, 1, 1, 1, 8]' $tiny \
    --model gcn,sage,sage-max,gin,gat
ok "aggregation agrees with the dense product" networks 'len(m["aggregation"]) == 2 and all(r[k]["error"] < 1e-5
    for a in m["aggregation"] for r in a["rows"] for k in ("forward", "backward") if "failed" not in r[k])' $tiny \
    --model gcn --maxk 1,3 --aggregate
ok "sampling" networks '[s["fanout"] for s in m["sampling"]] == [[25, 10], [15, 10, 5]] and
    all(s["edges"] > 0 and s["edges_a_second"] > 0 for s in m["sampling"])' $tiny --model gcn --sample
ok "training by minibatches" networks '[(b["model"], b["hidden"], b["half"], b["fanout"]) for b in m["minibatches"]] ==
    [("sage", width, half, [25, 10]) for width in (4, 8) for half in (False, True)] and all(b["edges"] > 0 and b["epoch"]["median_seconds"] > 0 and
    sorted(b["phases"]) == ["gather", "sampling", "step"] and min(b["phases"].values()) > 0
    for b in m["minibatches"])' \
    --generate rmat:7,6 --features 9 --classes 3 --hidden 4,8 --model none --minibatches --half
exported() { # exported: every array that --export writes has as many numbers as its parameters say
    status 0 gnn $quick $tiny --model gcn,gat --export passes && python3 -c 'import ast, json
for model in "gcn-f32", "gcn-f64", "gat-f32", "gat-f64":
    last = json.load(open(f"passes/{model}.json"))["parameters"][-1]
    for name in "weights", "gradients":
        bytes = open(f"passes/{model}-{name}.npy", "rb").read()
        header = ast.literal_eval(bytes[10:10 + int.from_bytes(bytes[8:10], "little")].decode())
        assert header["shape"] == (last["offset"] + last["rows"] * last["cols"],), header
        assert any(bytes[128:])
heads = json.load(open("passes/gat-f32.json"))["parameters"][1]
assert (heads["rows"], heads["cols"]) == (8, 1), heads'
}
ok "passes are exported" exported
ok "bad models" fails 2 '--model takes' gnn --generate small --model gcn,rnn
ok "bad widths between layers" fails 2 '--hidden takes' gnn --generate small --hidden 0
ok "columns that heads cannot share" fails 2 'multiple of its 8 heads' gnn --generate small --model gat --hidden 12
ok "aggregation of nothing in particular" fails 2 'needs --maxk' gnn --generate small --aggregate
ok "a folder that is not there" fails 1 'nowhere' gnn $quick nowhere

# ---- a peer --------------------------------------------------------------------------------------------------------

if ldconfig -p 2>/dev/null | grep -q libgraphblas; then
    quick="--device cpu --repeat 1 --peers graphblas"
    compared='m["checked"]["with"].startswith("GraphBLAS") and m["peers"][0]["median_seconds"] > 0'
    ok "equal to GraphBLAS" square "$compared" --generate small
    ok "equal to GraphBLAS, fp32" square "$compared" --generate small --fp32
    ok "equal to GraphBLAS, A times another" square "$compared" --generate uniform:40,3,70 \
        --times-generated uniform:70,2,9
    for semiring in plus-pair min-plus max-times or-and; do
        ok "equal to GraphBLAS, $semiring" square "$compared" --generate rmat:8,8 --semiring $semiring
    done
    same='all(p["median_seconds"] > 0 and p["error"] < 1e-5 for p in m["peers"]) and len(m["peers"]) == 2'
    ok "quotients equal to GraphBLAS" quotient "$same" --generate small
    ok "quotients equal to GraphBLAS, fp64" quotient "$same" --generate small --fp64
    ok "quotients of files equal to GraphBLAS" quotient "$same" a.mtx edges.txt --groups 2
else skip "GraphBLAS is not installed"; fi
if [ -e "$BENCH_MKL" ]; then
    quick="--device cpu --repeat 1 --peers mkl"
    compared='m["checked"]["with"] == "MKL" and [p["sorted"] for p in m["peers"]][0] and "oneMKL 20" in
        d["machine"]["peers"]'
    ok "equal to MKL" square "$compared" --generate small
    ok "equal to MKL, fp32" square "$compared" --generate small --fp32
    ok "equal to MKL, A times another" square "$compared" --generate uniform:40,3,70 --times-generated uniform:70,2,9
    same='len(m["peers"]) == 1 and m["peers"][0]["name"] == "MKL" and m["peers"][0]["median_seconds"] > 0'
    ok "sparse times dense equal to MKL" dense "$same and m['peers'][0]['error'] < 1e-5" --generate small --width 1,40
    ok "sparse times dense equal to MKL, fp64" dense "$same and m['peers'][0]['error'] < 1e-14" \
        --generate uniform:40,3,70 --width 5 --fp64
    ok "MKL multiplies no numbers of 16 bits" dense 'm["peers"][0]["failed"] == "unsupported"' --generate rmat:6,4 \
        --width 5 --features bf16
    ok "quotients equal to MKL" quotient 'all(p["error"] < 1e-5 for p in m["peers"]) and len(m["peers"]) == 2' \
        --generate small --labels random
else skip "BENCH_MKL names no library"; fi
# ---- published kernels: programs that run by themselves ------------------------------------------------------------

published() { # published FAULT EXPRESSION ARGUMENTS...: a program with this fault is the only peer, p
    local fault=$1 expression=$2
    shift 2
    mkdir -p published
    printf '#!/bin/sh\nexec python3 -B %s/tests/bench/published_peer.py %s "$@"\n' "$root" "$fault" >published/spgemm-loop
    chmod +x published/spgemm-loop
    rm -f out.json
    BENCH_PEERS=published TMPDIR=. status 0 spgemm --device cpu --repeat 3 --peers published --json out.json "$@" &&
        json out.json "(lambda m, p: $expression)(m, m['peers'][0]) and len(m['peers']) == 1 and m['checked']['good']" &&
        ! ls sparse-bench-* 2>/dev/null
}
ok "a published program is timed and compared" published none "p['median_seconds'] == 1.25 and p['sorted'] and
    p['name'] == \"Python's loop\" and p['peak_bytes'] == 1234 and m['checked']['with'] == p['name']" --generate rmat:7,4
ok "its right operand may be another" published none "p['median_seconds'] == 1.25 and m['checked']['with'] == p['name']" \
    --generate uniform:40,3,70 --times-generated uniform:70,2,9
ok "a wrong value is found" published value "p['failed'] == 'differs'" --generate uniform:40,3
ok "a missing entry is found" published entry "p['failed'] == 'differs'" --generate uniform:40,3
ok "one that crashes is a word" published crash "p['failed'] == 'failed'" --generate uniform:40,3
ok "one that refuses is a word" published refuse "p['failed'] == 'failed'" --generate uniform:40,3
ok "one that says nothing is a word" published silent "p['failed'] == 'failed'" --generate uniform:40,3

# ---- scipy, by a script -----------------------------------------------------------------------------------------------

by_scipy() { # by_scipy CHECK EXPRESSION ARGUMENTS...: scipy is the only peer; nothing stays of what it was given
    local quick="--device cpu --repeat 2 --limit 1 --peers scipy"
    BENCH_SCIPY=${script:-$root/bench/scipy_peer.py} PYTHON=$python TMPDIR=. "$@" && ! ls sparse-bench-* 2>/dev/null
}
if find_scipy >venv.out; then
    ran='all(p["median_seconds"] > 0 and p["peak_bytes"] is None for p in m["peers"]) and
        d["machine"]["peers"].startswith("scipy 1.")'
    compared="$ran and m['checked']['with'] == 'scipy' and [p['sorted'] for p in m['peers']] == [True, False]"
    ok "equal to scipy" by_scipy square "$compared" --generate web:500,8,57,70,50 --generate rmat:6,4
    ok "equal to scipy, fp32" by_scipy square "$compared" --generate web:500,8,57,70,50 --fp32
    ok "equal to scipy, A times another" by_scipy square "$compared" --generate uniform:40,3,70 \
        --times-generated uniform:70,2,9
    ok "scipy has no other semirings" by_scipy square 'm["peers"][0]["failed"] == "unsupported"' --generate rmat:6,4 \
        --semiring min-plus
    same="$ran and [p['name'] for p in m['peers']] == ['scipy', 'scipy relabelled'] and all(p['sorted'] for p in m['peers'])"
    ok "quotients equal to scipy's" by_scipy quotient "$same and max(p['error'] for p in m['peers']) < 1e-5" \
        --generate rmat:8,8 --generate grid:5,5,0 --groups 10%
    ok "quotients equal to scipy's, fp64" by_scipy quotient "$same and max(p['error'] for p in m['peers']) < 1e-12" \
        --generate rmat:8,8 --fp64 --groups 10% --labels random
    product="$ran and len(m['peers']) == 1 and m['peers'][0]['name'] == 'scipy'"
    ok "sparse times dense equal to scipy" by_scipy dense "$product and m['peers'][0]['error'] < 1e-5" \
        --generate uniform:40,3,70 --width 1,40
    ok "sparse times dense equal to scipy, fp64" by_scipy dense "$product and m['peers'][0]['error'] < 1e-12" \
        --generate rmat:8,8 --width 5 --fp64
    ok "scipy multiplies no numbers of 16 bits" by_scipy dense 'm["peers"][0]["failed"] == "unsupported"' \
        --generate rmat:6,4 --width 5 --features bf16
    sed 's/result.data, values/result.data + 1, values/; s/array(result, values)/array(result + 1, values)/' \
        "$root/bench/scipy_peer.py" >wrong.py
    wrongly() { script=wrong.py by_scipy "$@"; }
    ok "wrong values of scipy's products are found" wrongly square 'm["peers"][0]["why"].endswith(
        "has other values") and m["checked"]["with"] == "reference"' --generate rmat:6,4
    ok "wrong values of scipy's quotients are found" wrongly quotient \
        'min(p["error"] for p in m["peers"]) > 1e-5' --generate rmat:6,4 --groups 10% --labels random
    ok "wrong values of scipy's dense products are found" wrongly dense \
        'm["peers"][0]["failed"] == "wrong"' --generate rmat:6,4 --width 5
    beside_scipy() { # the script, a family a case: scipy counts as a peer
        BUILD=$build PYTHON=$python "$root/bench/survey.sh" --device cpu --generate rmat:6,4 --repeat 1 --peers scipy \
            --parts spgemm-f32 --out "$PWD/beside" >run.out 2>run.err &&
            grep -qE '^  all +1 ' run.out && grep -q ' ms, scipy$' run.out
    }
    ok "a survey beside scipy" beside_scipy
else skip "no scipy: $(tail -n 1 venv.out)"; fi
left_out() { # left_out WHY PYTHON SCRIPT
    PYTHON=$2 BENCH_SCIPY=$3 status 0 spgemm --device cpu --repeat 1 --peers scipy --generate rmat:6,4 --json out.json &&
        json out.json "([p['name'] for p in m['peers']] == ['scipy', 'scipy unsorted'] and m['checked']['good'] and
            all(p['failed'] == 'absent' and '$1' in p['why'] for p in m['peers']))"
}
ok "scipy that is not installed is left out by name" left_out without false "$root/bench/scipy_peer.py"
ok "scipy without its script is left out by name" left_out 'BENCH_SCIPY' python3 ''
ok "scipy runs only where it is named" bash -c 'PYTHON=none "$0" spgemm --device cpu --repeat 1 --generate rmat:6,4 >run.out &&
    ! grep -q scipy run.out' "$tool"

absent='all(p["failed"] == "absent" for p in m["peers"]) and len(m["peers"]) == 4 and not d["machine"]["peers"]'
quick="--device cpu --repeat 1"
named_wrongly() { BENCH_MKL=none.so BENCH_GRAPHBLAS=none.so square "$absent" --generate rmat:6,4; }
ok "peers that the environment names wrongly" named_wrongly
ok "absent peers of quotients are words" bash -c '"$0" contract --generate rmat:6,4 --device cpu --repeat 1 \
    --peers cusparse,cub --json p.json && python3 -c "import json; m = json.load(open(\"p.json\"))[\"matrices\"][0]
assert m[\"checked\"][\"good\"] and len(m[\"peers\"]) == 4
assert all(p.get(\"failed\") or p[\"error\"] < 1e-5 for p in m[\"peers\"])"' "$tool"
ok "an absent peer is a word" bash -c '"$0" spgemm --generate rmat:6,4 --device cpu --repeat 1 --peers cusparse \
    --json p.json && python3 -c "import json; m = json.load(open(\"p.json\"))[\"matrices\"][0]
assert m[\"checked\"][\"good\"] and all(p.get(\"failed\") or p[\"median_seconds\"] for p in m[\"peers\"])"' "$tool"

# ---- mistakes ------------------------------------------------------------------------------------------------------

ok "no arguments" bash -c '! "$0" 2>usage.err && grep -q ^usage usage.err' "$tool"
ok "help" bash -c '"$0" spgemm --help >h.out 2>h.err && grep -q ^usage h.out && [ ! -s h.err ]' "$tool"
ok "version" bash -c '"$0" --version | grep -qE "^sparse-bench [0-9.]+$"' "$tool"
ok "unknown command" fails 2 'nothing that can be measured' gemm
ok "unknown option" fails 2 'unknown option "--fast"' spgemm --fast a.mtx
ok "no matrix" fails 2 'no matrix' spgemm --fp32
ok "no value" fails 2 '--json needs a value' spgemm a.mtx --json
for bad in rmat rmat:3 rmat:x,y rmat:40,1 nothing:5 torus: uniform:5,6,7,8 grid:5,5,200; do
    ok "bad specification $bad" fails 2 "\"$bad\"" spgemm $quick --generate $bad
done
ok "bad counts" fails 2 'whole number from 1 to' spgemm --repeat 0 a.mtx
ok "bad peers" fails 2 '--peers takes' spgemm --peers blas a.mtx
ok "bad semirings" fails 2 '--semiring is' spgemm --semiring times a.mtx
ok "bad algorithms" fails 2 '--algorithm is' spgemm --algorithm best a.mtx
ok "bad devices" fails 2 '--device is' spgemm --device tpu a.mtx
ok "bad sizes of memory" fails 2 '--memory takes' spgemm --memory much a.mtx
ok "two right operands" fails 2 'exclude each other' spgemm --aat --times a.mtx a.mtx
for bad in 0 -1 1.5 0% 101% many 1,,2; do
    ok "bad groups $bad" fails 2 '--groups takes' contract --groups $bad a.mtx
done
ok "bad labels" fails 2 '--labels takes' contract --labels some a.mtx
ok "options of another command" fails 2 'unknown option "--aat"' contract --aat a.mtx
ok "a sort is no product" fails 2 '--peers takes' spgemm --peers cub a.mtx
ok "graphs that are not square" fails 2 'a graph square' contract $quick --generate uniform:40,3,70
ok "sizes that do not fit" fails 2 '70 columns' spgemm $quick --generate uniform:40,3,70
ok "missing file" fails 1 'missing.mtx' spgemm $quick missing.mtx
echo '%%MatrixMarket matrix' >b.mtx
ok "broken file" fails 1 'b.mtx:1' spgemm $quick b.mtx
ok "output that cannot be written" fails 1 'nowhere/x.json' spgemm $quick a.mtx --json nowhere/x.json
ok "nothing is left behind by failures" no_leftovers

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
