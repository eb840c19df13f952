#!/bin/bash
# The command line of mcl-gpu: options, names, formats, exit codes, error lines, atomic output, signals, the report.
#   MCL_GPU  the tool [$BUILD/bin/mcl-gpu]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${MCL_GPU:-${BUILD:-build}/bin/mcl-gpu}") || exit 1
in=$PWD/tests/golden/in
out=$PWD/tests/golden/out
root=$PWD
. tests/support/cli.sh

one_line() { # one_line FILE PATTERN: exactly one line, and it matches
    [ "$(wc -l <"$1")" -eq 1 ] && grep -qE "$2" "$1" || { cat "$1"; return 1; }
}
fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr, nothing on stdout
    local expected=$1 pattern=$2
    shift 2
    status "$expected" "$@" && one_line run.err "^mcl-gpu: .*$pattern" && [ ! -s run.out ]
}
clusters() { # clusters EXPECTED ARGUMENTS...: what the run writes to stdout is what golden file EXPECTED holds
    local expected=$1
    shift
    status 0 "$@" -o - && cmp <(grep -v '^# cline' run.out) <(grep -v '^# cline' "$out/$expected.cls")
}
silent() { status 0 "$@" && [ ! -s run.err ]; }
says() { # says LINE ARGUMENTS...: a quiet run prints this line on stdout
    local line=$1
    shift
    status 0 "$@" -q x && grep -qxF -- "$line" run.out || { cat run.out; return 1; }
}
partition() { # partition EXPECTED ARGUMENTS...: labels joined by commas, clusters ended by bars
    local expected=$1
    shift
    status 0 "$@" -o - -q x && [ "$(tr '\n\t' '|,' <run.out)" = "$expected" ] || { cat run.out; return 1; }
}
tells() { # tells PATTERN ARGUMENTS...: one line on stderr, although the log is off
    local pattern=$1
    shift
    status 0 "$@" -V all && one_line run.err "$pattern"
}

# ---- informative options -------------------------------------------------------------------------------

ok 'without arguments: usage on stderr, status 2' eval 'status 2 && [ ! -s run.out ] && grep -q "^usage" run.err'
one_screen() {
    status 0 "$1" && [ ! -s run.err ] && [ "$(wc -l <run.out)" -ge 24 ] && [ "$(wc -l <run.out)" -le 40 ]
}
ok '-h fits a screen' one_screen -h
ok '--help fits a screen' one_screen --help
help_width() { status 0 --help && ! grep -E '^.{121}' run.out; }
ok '--help is not too wide' help_width
all_options() {
    status 0 --help-all || return 1
    for option in I scheme P p S R pct overlap force-connected te abc sif etc tf abc-tf use-tab device report; do
        grep -qE -- "^  --?$option( |$)" run.out || { echo "no $option"; return 1; }
    done
}
ok '--help-all names every option' all_options
if command -v man >/dev/null; then
    documented() { # what has an effect is in the man page
        MANWIDTH=200 man -l "$root/docs/man/mcl-gpu.1" 2>/dev/null | sed 's/.\x08//g' >manual
        status 0 --help-all || return 1
        sed '/^Accepted for old/,$d' run.out | grep -oE '^  --?[A-Za-z0-9-]+' | while read -r option; do
            grep -qE -- "(^|[^a-zA-Z-])$option([^a-zA-Z-]|\$)" manual || echo "$option"
        done >missing
        [ -s manual ] && [ ! -s missing ] || { cat missing; return 1; }
    }
    ok 'the man page has every option' documented
else skip 'no man: the man page has every option'; fi
ok '--version names mcl 22-282' eval 'status 0 --version && grep -q "^mcl 22-282" run.out'
ok '--show-schemes' eval 'status 0 --show-schemes && cmp run.out "$out/show-schemes.stdout"'
ok '--show-skid' eval 'status 0 --show-skid && grep -qE "^Scheme 7 +1000 +200 +250 +60$" run.out'
skid() { # what mcl 22-282 shows: numbers of --show-skid, whatever was given before
    status 0 g.mci -S 9 -skid 4 -z && grep -qE '^Prune number +400 ' run.out && grep -qE '^Selection number +80 ' run.out &&
        grep -qE '^Recovery number +100 ' run.out && grep -qE '^Recovery percentage +45 ' run.out
}
ok '-skid' skid
ok '--jury-charter' eval 'status 0 --jury-charter && grep -qE "^ 99 +perfect$" run.out'
settings_shown() {
    status 0 g.mci -scheme 2 -I 3 -z &&
        grep -qE '^Prune number +4000 +\[-P n\]$' run.out && grep -qE '^Main inflation +3.0 +\[-I f\]$' run.out
}
ok '-z takes other options into account' settings_shown
ok '-how-much-ram' eval 'status 0 -how-much-ram 1000000 && grep -q "at most <21G> RAM" run.out'
ok '-how-much-ram after a file' eval 'status 0 - -how-much-ram 100000 -R 3000 && grep -q "<6000>" run.out'
ok 'information wins over a missing input' status 0 --version -I 3
help_to_full() { ! "$tool" --help >/dev/full 2>run.err && one_line run.err 'stdout'; }
if [ -w /dev/full ]; then ok 'help to a full device fails' help_to_full; else skip 'no /dev/full'; fi

# ---- names of outputs ----------------------------------------------------------------------------------

named() { # named EXPECTED ARGUMENTS...
    local expected=$1
    shift
    status 0 "$@" -az && [ "$(cat run.out)" = "$expected" ] || { cat run.out; return 1; }
}
ok 'default name' named out.cathat.mci.I20 cathat.mci
ok 'the input folder is left out' named out.g.abc.I20 some/where/g.abc --abc
ok '--d keeps it' named some/where/out.g.abc.I20 some/where/g.abc --abc --d
ok '--d in the root folder' named /out.g.I20 /g --d
ok '-odir' named x/out.g.I20 a/g -odir x
ok '-odir with a slash' named x/out.g.I20 a/g --d -odir x/
ok 'inflation' named out.g.I14 g -I 1.4
ok 'inflation above ten' named out.g.I120 g -I 12
ok 'inflation as mcl rounds it' named out.g.I15 g -I 1.45
ok 'inflation as mcl rounds it to even' named out.g.I12 g -I 1.25
ok 'three digits' named out.g.I123 g --i3 -I 1.234
ok 'pre-inflation and loops' named out.g.I14pi08c25 g -I 1.4 -pi 0.8 -c 2.5
ok 'initial inflation' named out.g.I20l3i13pi30c05 g -c 0.5 -i 1.3 -l 3 -if 3 -L 20 -te 3 -overlap keep
ok 'an initial inflation that is not used' named out.g.I20 g -i 1.3
ok 'prefix' named pre.I20 g -ap pre
ok 'prefix with the place of the name' named xgy=.I30.s a/g -I 2 -I 3 -ap x=y= -aa .s
ok '-o' named - g -o -
ok '-ax' eval 'status 0 g -I 2.55 --i3 -aa b -ax && [ "$(cat run.out)" = I255b ]'
ok 'stdin' named out.-.I20 -
ok 'several inflations' named $'out.g.I14\nout.g.I20' g -I 1.4,2
ok 'several inflations with -o' named $'F.I14\nF.I20\nF.I40' g -I 1.4,2,4 -o F
default_name() {
    mkdir -p d1 && cp "$in/line7.abc" d1/ && status 0 d1/line7.abc --abc -q x &&
        cmp out.line7.abc.I20 "$out/line7-I2.cls" && rm out.line7.abc.I20 &&
        status 0 d1/line7.abc --abc -q x --d && cmp d1/out.line7.abc.I20 "$out/line7-I2.cls"
}
ok 'output under the default name' default_name

# ---- how options are written ---------------------------------------------------------------------------

ok '-x y' clusters line7-I4 "$in/line7.abc" --abc -I 4
ok '--x=y' clusters line7-I4 "$in/line7.abc" --abc --I=4
ok '--x y' clusters line7-I4 "$in/line7.abc" --abc --I 4
ok 'the last one wins' clusters line7-I4 "$in/line7.abc" -I 2 --abc -I 4
ok 'the file may stand last' clusters line7-I4 --abc -I 4 "$in/line7.abc"
ok 'y and n' clusters line7-I2 "$in/line7.abc" --abc --force-connected=n -discard-loops yes
ok 'what old scripts pass is ignored' silent "$in/cathat.abc" --abc -V all -o F --silent -progress 3 -nj 5 \
    --stream-mirror --partition-selection -v progress -V progress --append-log=n --show-log=y -l 0 -t 1 -ti 1 \
    -annot text -cache-mx y --unchecked -digits 5 -set k=v -warn-pct 5 -warn-factor 3 -partition-p 9 -devel 1
for wrong in '--foo' '-foo 3' '-I 0' '-I abc' '-I 2x' '-I 1.4,,2' '-I nan' '-I' '-scheme 8' '-scheme 0' \
    '-pct 101' '-p 0.2' '-P -1' '-P 1e4' '-S -3' '-resource 0' '-te -1' '-overlap some' '-sort up' '-i 0' '-i 31' \
    '-force-connected maybe' '--abc=3' '--abc --sif' '--blast score' '--device gpu' '--device cuda:' '--memory 8Q' \
    '--memory 0' '--exact --fast' '--exact --device cuda' '--abc-neg-log --abc-neg-log10' '-dump foo' \
    '-dump-modulo 0' '-dump-interval 3' 'another.abc' '-icl x' '-wself 0.5' '--show' '--regularized' \
    '--null-node' '-Q 3' '--abc -use-tab t' '--abc --min-score 3' '--min-score 0.7' \
    '-o F --report F' '-I 2,3 -dump cls -dump-stem S -o F' '-I 1.41,1.42' '-I 2,3 -o -' '-how-much-ram x' '--report -'; do
    ok "usage error: $wrong" fails 2 'mcl-gpu --help$' "$in/line7.abc" $wrong
done
ok 'an inflation that is listed twice' fails 2 '-I lists inflation 2 twice: name it once' g --abc -I 2,3,2.0
ok 'inflations that --i3 tells apart' fails 2 '1.41 and 1.42 would both .* use --i3' g --abc -I 1.41,1.42
for options in '' --i3; do
    ok "those that it does not${options:+, $options}" fails 2 'both be written to .*; names hold two digits behind the point' \
        g --abc -I 1.411,1.412 $options
done
ok 'no input' fails 2 'no input' -I 3
ok '--exact and CUDA: says why' fails 2 'rounds' g --exact --device cuda:0

# ---- files that are not what they seem -----------------------------------------------------------------

cp "$in/line7.abc" own.abc
ln -s own.abc alias.abc
cp "$in/cathat.tab" own.tab
untouched() { # untouched ARGUMENTS...: an output is an input, which stays as it is
    fails 2 'is an input, too: give it another name; see mcl-gpu --help$' "$@" -V all &&
        cmp own.abc "$in/line7.abc" && cmp own.tab "$in/cathat.tab"
}
ok 'the clusters over the input' untouched own.abc --abc -o own.abc
ok 'by another name' untouched own.abc --abc -o ./alias.abc
ok 'over standard input' eval 'untouched - --abc -o own.abc <own.abc'
ok 'a name that is made' eval 'ln -f own.abc S.I20 && untouched own.abc --abc -I 2,3 -o S; rm S.I20'
ok 'the limit over the input' eval 'mv own.abc O-limit; cp O-limit own.abc; untouched O-limit --abc --write-limit -o O'
ok 'the report over the input' untouched own.abc --abc -o F --report own.abc
ok 'a matrix over the tab file' untouched "$in/cathat.mci" -use-tab own.tab -o F -write-graph own.tab
dump_over() {
    cp "$in/cathat.mci" ite-1.x &&
        fails 1 'ite-1.x: this dump would replace the input' ite-1.x -dump ite -dump-stem x -o F -V all &&
        cmp ite-1.x "$in/cathat.mci"
}
ok 'a dump over the input' dump_over
dump_over_output() {
    fails 2 'a dump would be written to "ite-1.S", too' "$in/cathat.mci" -dump ite -dump-stem S -o ite-1.S -V all &&
        [ ! -e ite-1.S ] && status 0 "$in/cathat.mci" -dump cls -dump-stem S -o ite-1.S -q x
}
ok 'a dump over the clusters' dump_over_output
for form in '' '| gzip' '| zstd'; do
    program=${form#| }
    if [ "$form" ] && ! command -v "$program" >/dev/null; then skip "no $program"; continue; fi
    eval "{ printf '\357\273\277'; cat '$in/line7.abc'; } $form" >marked.abc
    ok "a byte order mark $form" clusters line7-I2 marked.abc --abc
done
kept_mark() { status 0 marked.abc --abc --lenient -o - -q x && [ "$(grep -c $'\357\273\277' run.out)" -eq 1 ]; }
ok 'which mcl takes for text' kept_mark
for kind in 'xz:\3757zXZ\0' 'bzip2:BZh91AY&SY'; do
    printf "${kind#*:}" >packed
    ok "compressed by ${kind%%:*}" fails 1 "packed: compressed by ${kind%%:*}, .*unpack it" packed --abc -o F -V all
done
printf 'PK\3\4' >packed
ok 'a zip archive' fails 1 'packed: a zip archive' packed -o F -V all
printf 'a b 1\rb c 2\r' >mac
ok 'lines that end with CR alone' fails 1 'mac: its lines end with CR alone' mac --abc -o F -V all
printf '\377\376a\0 \0b\0\n\0' >utf16
ok 'text in UTF-16' fails 1 'utf16: text in UTF-16, which is not read; save it as UTF-8' utf16 --abc -o F -V all
: >void
ok 'a file without a byte' fails 1 'void: the file is empty; give a matrix, or label pairs and --abc$' void -o F \
    -V all
printf '3 2\n2 3\n1\n1\n' >mesh.graph
cp mesh.graph mesh.txt
ok 'METIS by its ending' says '0 0 1 2 $' mesh.graph -o -
ok 'METIS by its content' says '0 0 1 2 $' mesh.txt -o -
printf '1 2\n2 3\n' >edges.txt
ok 'no matrix, before it is read as anything' fails 1 'edges.txt: not a matrix .*give --abc, for SIF --sif, for BLAST tables --blast bits$' edges.txt -o F -V all
printf 'a x\tb y\t1\n' >blanks.txt
ok 'names with blanks between tabs' partition 'a x,b y|' blanks.txt
printf 'a x\tb\t0.5 \r\n' >crlf.txt
ok 'the same with CRLF' partition 'a x,b|' crlf.txt
printf '"a","b",1\n' >quoted.txt
ok 'commas under another name' fails 1 'quoted.txt: fields with commas between them; .* call the file ..csv$' quoted.txt -o F -V all
printf 'q\ts\t99.1\t50\t0\t0\t1\t50\t1\t50\t1e-20\t90\n' >hits.txt
ok 'a BLAST table' fails 1 'hits.txt: a BLAST table; give --blast bits, --blast evalue or --blast identity$' hits.txt -o F -V all
ok 'an option where a file is expected' fails 2 '--table needs a file, and "-V" is an option' hits.txt --table -V all -o F
printf 'a,b,1\n' >commas.csv
ok 'a table by its ending' partition 'a,b|' commas.csv
awk 'BEGIN { for (i = 0; i < 7000; i++) printf ",node%06d", i; print "" }' >wide.csv
ok 'a matrix of many names' fails 1 'wide.csv: the first line has more than 64 KB, as in a matrix with names .* NODE NODE WEIGHT$' wide.csv -o F -V all
ok 'commas' fails 1 'commas.csv:1: commas between the fields, where tabs or blanks .*"a,b,1".* no --abc' commas.csv --abc -o F -V all

# ---- results -------------------------------------------------------------------------------------------

ok 'native text to native text' clusters native-I2 "$in/cathat.mci" -I 2
ok 'native binary' clusters binary-I2 "$in/cathat.mcb" -I 2
ok 'native with a tab file' clusters native-tab "$in/cathat.mci" -use-tab "$in/cathat.tab"
ok 'no clusters of an empty graph' clusters empty "$in/empty.abc" --abc
ok 'standard input' eval '"$tool" - --abc -I 2 -o - -q x <"$in/line7.abc" | cmp - "$out/line7-I2.cls"'
several() {
    status 0 "$in/p2000.abc" --abc -I 1.4,2,4 -o M -q x --exact --device cpu &&
        cmp M.I14 "$out/p2000-I1.4.cls" && cmp M.I20 "$out/p2000-I2.cls" && cmp M.I40 "$out/p2000-I4.cls"
}
ok 'several inflations in one run' several
threads() {
    status 0 "$in/p2000.abc" --abc -te 1 -o T1 -q x && status 0 "$in/p2000.abc" --abc -te 64 -o T2 -q x && cmp T1 T2
}
ok 'threads do not change the result' threads
if command -v gzip >/dev/null; then
    gzip -c "$in/line7.abc" >line7.gz
    ok 'gzip by content' clusters line7-I2 line7.gz --abc
    gzip -c "$in/cathat.mcb" >cathat.gz
    ok 'a binary matrix in gzip' clusters binary-I2 cathat.gz
    packed() { # outputs whose names end in .gz are what others are, compressed
        status 0 "$in/line7.abc" --abc -o p.cls --table p.tsv --graphml p.graphml --report p.html -write-graph p.mci &&
            status 0 "$in/line7.abc" --abc -o q.cls.gz --table q.tsv.gz --graphml q.graphml.gz --report q.html.gz \
                -write-graph q.mci.gz && gzip -dc q.html.gz | grep -q '</html>' || return 1
        for f in cls tsv graphml mci; do gzip -dc q.$f.gz | cmp - p.$f || return 1; done
    }
    ok 'outputs by their names' packed
    gzip -c "$in/p2000.abc" | head -c 50000 >cut.gz
    ok 'cut gzip' fails 1 'cut.gz' cut.gz --abc -o X -V all
else skip 'no gzip'; fi
if command -v zstd >/dev/null; then
    zstd -q -c "$in/line7.abc" >line7.zst
    ok 'zstd by content' clusters line7-I2 line7.zst --abc
else skip 'no zstd'; fi
{
    echo 'protein1 protein2 combined_score'
    printf '%s\n' 'A B 900' 'B A 900' 'B C 800' 'C B 800' 'C D 200' 'D C 200' 'D E 950' 'E D 950'
} >string.txt
ok 'STRING by content' partition 'A,B,C|D,E|' string.txt
ok 'a cutoff without a score' fails 1 'min-score' "$in/cathat.mci" --min-score 850 -V all -o F
ok 'STRING with a cutoff' partition 'A,B|D,E|' string.txt --min-score 850
ok 'one that nothing reaches' fails 1 'string.txt: no pair scores 951 or more' string.txt --min-score 951 -V all -o F
printf '%%%%MatrixMarket matrix coordinate real symmetric\n4 4 3\n2 1 1.5\n3 1 0.1\n4 3 2\n' >m.mtx
ok 'Matrix Market by content' says '0 0 1 $' m.mtx -o -
hit() { printf '%s\t%s\t%s\t100\t1\t0\t1\t100\t1\t100\t%s\t%s\n' "$@"; } # QUERY SUBJECT IDENTITY E BITS
{ hit q1 s1 90.0 1e-50 200; hit s1 q1 91.0 1e-60 210; hit q2 s2 90.0 1e-5 50; } >blast.tsv
for score in bits evalue identity; do
    ok "BLAST, $score" partition 'q1,s1|q2,s2|' blast.tsv --blast $score
done
ok 'BLAST: the best hit of a pair' says '0 1:210 $' blast.tsv --blast bits -write-graph - -o F
hits_as_pairs() {
    tells "$1: a BLAST table, .* column 3; --blast bits" "$1" --abc -o F && partition 'q1,s1|q2,s2|' "$1" --abc
}
ok 'a BLAST table as label pairs' hits_as_pairs blast.tsv
{ echo '# BLASTP 2.15.0+'; cat blast.tsv; } >comments.tsv
ok 'with comments' hits_as_pairs comments.tsv
cut -f 1,2,11 blast.tsv >cut.abc
ok 'three columns of it' silent cut.abc --abc -V all -o F
printf 'a x b c\nd x e\n' >g.sif
ok '--sif' partition 'a,b,c|d,e|' g.sif --sif
printf 'a b c\nd e\n' >g.etc
ok '--etc' partition 'a,b,c|d,e|' g.etc --etc
ok 'transforms' \
    partition 'bat,bit,fit,hit|cat,hat|' "$in/cathat.abc" --abc --abc-neg-log10 -abc-tf 'gq(0.3)' -tf 'gq(0.2)'
printf 'source\ttarget\tweight\na\tb\t1\n' >heading.abc
ok 'a heading' fails 1 'heading.abc:1: the weight is not a number .*a heading must go' heading.abc --abc -o X -V all
printf 'gene1\tgene2\tscore\na\tb\t1\n' | tee named.abc >named.txt
ok 'without --abc, in a file called .abc' fails 1 "named.abc:1: the weight is not a number .got .score.*a heading must go" named.abc -o X -V all
ok 'and in another' fails 1 'named.txt:1: a heading; remove it, as with tail -n .2, and give --abc' named.txt -o X -V all
ok 'which may stay in a table' eval 'cp named.txt named.csv; partition "a,b|" named.csv'
printf 'a\tb\t1e-9\nb\tc\t8.2\n' >evalues.abc
ok 'an E-value above 1' fails 1 'evalues.abc:2: the weight after .* negative .*gt\(0\)' \
    evalues.abc --abc --abc-neg-log10 -o X -V all
ok 'as that line says' partition 'a,b|c|' evalues.abc --abc --abc-neg-log10 -abc-tf 'gt(0)'
ok 'E-values of BLAST, transformed' \
    says '0 0:0.5 1:0.5 $' blast.tsv --blast evalue -abc-tf 'add(-59.5)' -tf 'gt(0)' -write-graphx - -o F
ok 'STRING scores, transformed' says '0 0:9 1:9 $' string.txt --min-score 900 -abc-tf 'mul(0.01)' -write-graphx - -o F
printf 'protein1 protein2 combined_score\nA B 0.001\nB A 0.001\n' >probabilities.txt
ok 'STRING scores by their logarithm' says '0 0:3 1:3 $' probabilities.txt --abc-neg-log10 -write-graphx - -o F
printf '3 2\n2\n1 3\n2\n' >m.graph
for matrix in m.mtx m.graph; do
    for option in '-abc-tf mul(2)' --abc-neg-log --abc-neg-log10; do
        ok "$option of $matrix" fails 1 "$matrix: .* transform label weights; use -tf" $matrix $option -V all -o X
    done
done
ok "mcl's matrices pass over it" says '2 0:1 1:0.16 3:0.125 $' "$in/cathat.mci" --abc-neg-log10 -write-graph - -o F
ok 'unknown transform' fails 2 'unknown transform "foo"; there are lt lq .* #thread$' nofile -tf 'foo(3)' -V all
ok 'the same of weights' fails 2 'unknown transform "foo"; there are lt lq .* acos$' nofile --abc -abc-tf 'foo(3)' -V all
ok 'a transform that does not end' fails 2 '-abc-tf: transform list: expected NAME\(NUMBER\) at "gq\("' nofile --abc \
    -abc-tf 'gq(' -V all
ok 'a transform that is not offered' fails 2 '#tug of mcl is not offered; let .* mcx alter apply it .-tf., and take the matrix' nofile -tf '#tug(2)' -V all
ok 'transforms that make weights negative' \
    fails 1 'negative weight -0.8; .*gt\(0\)' "$in/cathat.mci" -tf 'add(-1)' -o X -V all
printf 'a b -0.5\nb c 0.9\nc d 0.4\na c -0.9\n' >correlations.abc
ok 'correlations' fails 1 "correlations.abc:1: the weight is negative .*-tf 'gt\(0\)'" correlations.abc --abc -o X -V all
ok 'as that line says' partition 'b,c,d|a|' correlations.abc --abc -tf 'gt(0)' -V all
ok 'which says nothing then' eval '[ ! -s run.err ]'
ok 'correlations of either sign' partition 'a,b,c,d|' correlations.abc --abc -tf 'abs()'
ok 'correlations that are left' fails 1 'negative weight -0.4; .*gt\(0\)' correlations.abc --abc -tf 'add(0.5)' -o X -V all
ok 'which mcl clusters' status 0 "$in/cathat.mci" -tf 'add(-0.1)' -o X -V all --lenient
printf 'a b 3e38\nb c 2e38\n' >large.abc
for options in '-pi 1.3' '-c 10' '--sum-loops' '-dae -1'; do
    ok "weights that $options makes infinite" fails 1 'node [01] are too large .*mul' large.abc --abc $options -o X -V all
done
ok 'a graph transform of single weights' fails 2 'knn' nofile --abc -abc-tf '#knn(3)' -V all
ok '-write-graph' says '2 0:1 1:0.16 3:0.125 $' "$in/cathat.mci" -write-graph - -o F
ok '-write-graphx' says '3 2:0.125 3:0.25 4:0.25 5:0.16 $' "$in/cathat.mci" -write-graphx - -o F
ok '--sum-loops' says '4 3:0.25 4:0.75 5:0.5 $' "$in/cathat.mci" --sum-loops -write-graphx - -o F
ok '--degree-adjust' says '3 2:0.02083333 3:0.05 4:0.05 5:0.032 $' "$in/cathat.mci" --degree-adjust -write-graphx - -o F
ok '-dae' says '4 3:0.1118034 4:0.25 5:0.25 $' "$in/cathat.mci" --degree-adjust -dae 0.5 -write-graphx - -o F
ok 'an empty argument, as from Galaxy' clusters native-I2 "$in/cathat.mci" -I 2 ''
ok '-write-expanded' \
    says '0 0:0.4380049 1:0.105618 2:0.4315114 3:0.02486572 $' "$in/cathat.mci" -write-expanded - -o F
ok '--write-limit' eval 'status 0 "$in/cathat.mci" --write-limit -o F -q x && grep -qxF "3 4:1 $" F-limit'
dumps() {
    mkdir -p dump && cd dump &&
        "$tool" "$in/cathat.mci" -dump ite,cls -dump-stem S -q x -o F >../run.out 2>../run.err &&
        [ "$(LC_ALL=C ls | tr '\n' ' ')" = 'F cls-1.S cls-2.S cls-3.S cls-4.S ite-0.S ite-1.S ite-2.S ite-3.S ite-4.S ' ] &&
        grep -qxF '0 0:0.492141 1:0.02861589 2:0.477657 3:0.001586112 $' ite-1.S &&
        grep -qxF '0:2.2 0:0.4545455 1:0.09090909 2:0.4545455 $' ite-0.S && grep -qxF '1 3 4 5 $' cls-4.S
}
ok '-dump' eval '(dumps)'
dumps_all() { # 14 iterands, as mcl writes them; an interval to 0 has no end
    for interval in all 0:0 2:3; do
        mkdir "dump-$interval" && (cd "dump-$interval" &&
            "$tool" "$in/cathat.mci" -dump ite -dump-stem S -dump-interval "$interval" -q x -o F) || return 1
    done
    diff -r -I '^# cline' dump-all dump-0:0 && [ "$(printf '%s\n' dump-all/ite-*.S | wc -l)" = 14 ] &&
        [ -e dump-all/ite-13.S ] && [ "$(echo dump-2:3/ite-*)" = dump-2:3/ite-2.S ]
}
ok '-dump-interval all' dumps_all
dump_names() {
    mkdir -p dump2 && cd dump2 && cp "$in/cathat.mci" . &&
        "$tool" cathat.mci -dump ite,cls -dump-interval 1:2 -aa x -q x >../run.out 2>../run.err &&
        [ "$(LC_ALL=C ls | tr '\n' ' ')" = \
            'cathat.mci cls-1.cathat.mci.I20x ite-1.cathat.mci.I20x out.cathat.mci.I20x ' ]
}
ok 'names of dumps as mcl makes them' eval '(dump_names)'
dump_of_stdout() { # is named after the input
    mkdir -p dump3 && cd dump3 && cp "$in/cathat.mci" . &&
        "$tool" cathat.mci -dump cls -dump-interval 1:2 -o - -q x >../run.out 2>../run.err &&
        [ "$(echo *)" = 'cathat.mci cls-1.cathat.mci' ] || { echo *; return 1; }
}
ok 'the name of a dump beside stdout' eval '(dump_of_stdout)'
ok '-append-log' says 'number of clusters <2>' "$in/line7.abc" --abc -append-log y -o -
ok '-append-log with -l' says 'Initial loop length                            3        [-l n]' \
    "$in/line7.abc" --abc -append-log y -l 3 -o -
ok '-append-log with an inflation between two digits' says \
    'Main inflation                                 1.0      [-I f]' "$in/line7.abc" --abc -append-log y -I 1.05 -o -
ok '-p that no prune number holds' says 'Prune number                               10000        [-P n]' \
    "$in/line7.abc" --abc -append-log y -P 500 -p 1e-10 -o -
for line in 'ncl=2 max=3  ctr=3.0 avg=3.0 min=3 DGI=1 TWI=1 TWL=3 sgl=0 qrt=2' \
    "eff=0.87687 mod=0.44021 mf=0.96434 af=0.40000 target-name=$in/cathat.abc" 'source-name=-'; do
    ok '-analyze, as mcl has it' says "$line" "$in/cathat.abc" --abc -analyze y -o -
done
ok '-analyze with several inflations' eval 'status 0 "$in/cathat.abc" --abc --analyze=y -I 2,4 -o A -q x &&
    grep -q "^eff=0.87687.*" A.I20 && grep -q "^eff=.*" A.I40'
limited() { status 0 "$in/p2000.abc" --abc -L 2 -o F && grep -qE '^  2 ' run.err && ! grep -qE '^  3 ' run.err; }
ok '-L ends the process' limited
unlimited() { status 0 "$in/cathat.mci" -l 30 -o F && grep -qE '^ 31 ' run.err && ! grep -qE '^ 32 ' run.err; }
ok '-l goes on when nothing changes' unlimited

# ---- the log -------------------------------------------------------------------------------------------

ok '-V all says nothing' silent "$in/cathat.mci" -I 1.5 -o F -te 2 -V all
ok '-q x says nothing' silent "$in/cathat.mci" -q x -o F
native() { # native DIMENSIONS LINE...
    printf '(mclheader\nmcltype matrix\ndimensions %s\n)\n(mclmatrix\nbegin\n' "$1"
    shift
    printf '%s\n' "$@"
}
native 5x5 '0 1 $' '1 2 $' '2 0 $' '3 4 $' '4 3 4 $' ')' >cycle.mci
ok 'overlap is told even so' tells '^.mcl. cut <1> instances of overlap$' "$in/line7.abc" --abc -o F
ok 'garbage is told even so' tells '^.mcl. added <3> garbage entries$' cycle.mci --discard-loops=n -o F
for ((i = 0; i < 60; i++)); do for ((k = 0; k < i; k++)); do echo "n$i n$k"; done; done >clique.abc
echo 'z n1 2' >>clique.abc
vanished() {
    status 0 clique.abc --abc -I 30 -o F -V all &&
        [ "$(grep -cE '^___ .mclvInflate. warning: nonpositive sum <0.000000> for vector [0-9]+$' run.err)" -eq 59 ]
}
ok 'columns that vanish are told even so' vanished
ok 'no progress line without a terminal' eval 'status 0 "$in/p2000.abc" --abc -o F && ! grep -q $'"'\r'"' run.err'

if command -v python3 >/dev/null; then
    on_terminal() {
        python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$tool" "$in/line7.abc" --abc -I 4 -o F "$@" >run.out
    }
    erased=$(printf '\r\033[K')
    ok 'a progress line on a terminal' eval 'on_terminal && grep -qF "${erased}iteration 3: chaos 0" run.out'
    ok 'no progress line with -V all' eval 'on_terminal -V all && [ ! -s run.out ]'
else skip 'no python3: progress line'; skip 'no python3: no progress line with -V all'; fi

# ---- first uses ------------------------------------------------------------------------------------------

noted() { # noted PATTERN ARGUMENTS...: a line of the log, or a warning, tells it
    local pattern=$1
    shift
    status 0 "$@" && grep -qE -- "$pattern" run.err || { cat run.err; return 1; }
}
if "$tool" --doctor | grep -q '^GPUs *none'; then
    ok '--device cuda without a GPU fails before the input is read' \
        fails 1 '.*(CUDA|GPU)' nofile --abc --device cuda -o X -V all
else skip 'there is a GPU: --device cuda without one'; fi
ok '--doctor says what auto chooses, and why' eval \
    'status 0 --doctor && grep -qE "^--device auto +(the CPU, because (this build has no CUDA|no GPU can be used)|the first GPU for .*million.*, because)" run.out'
ok 'figures of -analyze are told from clusters' noted 'two lines behind the clusters, not clusters; --quality' \
    "$in/cathat.abc" --abc -analyze y -o F
ok 'an empty network' noted 'empty.abc: no edges; there is nothing to cluster' "$in/empty.abc" --abc -o F -V all
unpraised() { status 0 "$in/empty.abc" --abc -o F && grep -q 'synopsis: <100.0 or nothing to prune>' run.err && ! grep really run.err; }
ok 'an empty network is not praised' unpraised
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 2\n2 1 1\n3 1 2\n' >directed.mtx
ok 'a directed matrix' noted "directed.mtx: a directed graph, clustered as it is; -tf '#max\(\)'" directed.mtx -o F
ok 'not a symmetric one' eval '! noted "directed graph" m.mtx -o F'
printf '1 2\n2 3\n' >two.abc
ok 'the ending .abc is enough' noted 'read two.abc as label pairs, 3 nodes, 2 edges; wrote 1 cluster to F' two.abc -o F
ok '-te 0 takes all processors' status 0 "$in/cathat.abc" --abc -te 0 -o F -V all
ok 'whose help says so' eval 'status 0 --help && grep -qE "^  -te N .*0 for all" run.out'

# ---- bad input and bad outputs -------------------------------------------------------------------------

refused() { # refused PATTERN ARGUMENTS...: bad.txt fails and leaves no output
    local pattern=$1
    shift
    rm -f X
    fails 1 "$pattern" bad.txt "$@" -o X -V all && [ ! -e X ] && no_leftovers
}
bad() { # bad NAME TEXT PATTERN ARGUMENTS...: such an input is refused, at FILE:LINE
    local name=$1
    printf '%b' "$2" >bad.txt
    shift 2
    ok "$name" refused "$@"
}
bad 'a weight that is no number' 'a b 1\na c x\n' 'bad.txt:2: .*"x"' --abc
bad 'NaN' 'a b 1\n\na c nan\n' 'bad.txt:3:' --abc
bad 'infinity' 'a b inf\n' 'bad.txt:1:' --abc
bad 'a negative weight' 'a b 1\na b -3\n' 'bad.txt:2:' --abc
bad 'one field' 'a b 1\nbroken\n' 'bad.txt:2:' --abc
bad 'an index out of range' "$(native 2x2 '0 0 1 $' '1 0 7 $' ')')" 'bad.txt:8:'
bad 'a header that lies' "$(native 2147483647x2147483647 '0 1 $')" 'bad.txt'
bad 'lines of four without --abc' 'a b 1 x\nb c 2 y\n' '--abc'
plain_pairs() { printf 'a b 1\nb c 2\n' >pairs && status 0 pairs -o X -V all && [ "$(wc -l <X)" -eq 1 ]; }
ok 'label pairs are known by their first line' plain_pairs
ok 'an inflation above 30 is left out with a warning, as with mcl' tells 'range .0.0,30.0.*left out' \
    "$in/cathat.abc" --abc -I 31 -o X
ok 'as the only one of a list' tells 'range .0.0,30.0.*left out, as with mcl; it is 3$' "$in/cathat.abc" --abc -I 3,31 -o X
among_others() {
    tells 'range .0.0,30.0.*left out, as with mcl; the first left is 1.4$' "$in/cathat.abc" --abc -I 31,1.4,2,40 -o X &&
        [ "$(echo X.I*)" = 'X.I14 X.I20' ]
}
ok 'or one of several' among_others
ok 'a list with 1, as of a decimal comma' fails 2 '-I 1,4: with inflation 1 .* have a point: 1.4' "$in/cathat.abc" -I 1,4 -o X
ok 'an option of another spelling' fails 2 'unknown option "--minscore" .perhaps --min-score.; see' x --minscore 7 -o X
ok 'with two letters exchanged' fails 2 'unknown option "-shceme" .perhaps -scheme.; see' x -shceme 7 -o X
ok 'of another program' fails 2 'unknown option "--threads" .perhaps -te.; see' x --threads 7 -o X
ok 'with its value' fails 2 'unknown option "-I2.5" .perhaps -I 2.5.; see' x -I2.5 -o X
ok 'or of none' fails 2 'unknown option "--nix"; see' x --nix 7 -o X
ok 'a report as PDF' fails 2 '--report writes a page .* no PDF' x --report r.pdf -o X
printf 'a b 1e-30\nb c 1e-3\n' >evalues.abc
ok 'weights that look like E-values' tells 'evalues.abc: weights down to 1e-30, .* give --abc-neg-log10$' evalues.abc -o X
ok 'unless they are transformed' silent evalues.abc --abc-neg-log10 -o X -V all
printf 'a,x\tb\t3\nb"q\tc\t2\n' >commas.abc
comma_table() {
    status 0 commas.abc -o X --table t.csv -V all && cat t.csv &&
        [ "$(cut -d , -f 1-3 t.csv | tail -n 3 | tr '\n' ' ')" = 'b,1,2 "b""q",2,2 c,2,2 ' ] &&
        [ "$(sed -n 2p t.csv)" = '"a,x",1,2,3,1' ]
}
ok 'a table with commas' comma_table
ok 'no such file' fails 1 'nofile.*o such file' nofile --abc -V all
ok 'a folder as input' fails 2 'lies in the folder' "$work" --abc -o X -V all
ok 'no such tab file' fails 1 'notab' "$in/cathat.mci" -use-tab notab -o X -V all
printf 'a b 1\nbroken\nc d x\n' >odd.txt
ok '--lenient goes on and counts' tells '^mcl-gpu: odd.txt: [0-9]+ odd lines' odd.txt --abc --lenient -o -
ok 'folder of the output is missing' fails 1 'nodir' "$in/line7.abc" --abc -o nodir/F -V all
ok 'the output is a folder' fails 1 '' "$in/line7.abc" --abc -o "$work" -V all
ln -s gone leading
ok 'a link that leads nowhere' eval 'fails 1 "leading: this link leads to no file" "$in/line7.abc" --abc -o leading -V all &&
    [ -L leading ]'
long_name=$(printf '%0250d' 0)
ok 'a name too long, before the work' fails 1 'File name too long' nofile --abc -o "$long_name" -V all
between() { # standard output by another name: what is in the file stays
    { echo first && "$tool" "$in/line7.abc" --abc -V all -o "$1" && echo last; } >mixed 2>run.err &&
        { echo first && cat "$out/line7-I2.cls" && echo last; } | cmp - mixed
}
ok '/dev/stdout in the middle of a file' between /dev/stdout
ok '/dev/fd/1 in the middle of a file' between /dev/fd/1
ok 'folder of the report is missing' fails 1 'nodir' "$in/line7.abc" --abc -o X --report nodir/r.json -V all
if [ "$(id -u)" -ne 0 ]; then
    mkdir -p locked && chmod a-w locked
    ok 'the folder may not be written' fails 1 'locked' "$in/line7.abc" --abc -o locked/F -V all
else skip 'as root every folder can be written'; fi
output_to_full() {
    ! "$tool" "$in/cathat.abc" --abc -V all -o - >/dev/full 2>run.err && one_line run.err '^mcl-gpu: '
}
if [ -w /dev/full ]; then ok 'output to a full device fails' output_to_full; else skip 'no /dev/full'; fi
small_limit() { # the file size limit stands for a full disk
    (ulimit -f 1 && trap '' XFSZ && "$tool" "$in/p2000.abc" --abc -V all -o full/F 2>run.err)
    [ $? -eq 1 ] && [ -z "$(ls -A full)" ] && grep -q '^mcl-gpu: ' run.err
}
mkdir -p full
ok 'a full disk leaves nothing' small_limit
survives() {
    cp "$in/line7.abc" kept && printf 'broken\n' >bad.txt && fails 1 'bad.txt:1:' bad.txt --abc -o kept -V all &&
        cmp kept "$in/line7.abc"
}
ok 'an old output survives a failure' survives
ok 'closed standard output' \
    eval '! "$tool" "$in/cathat.abc" --abc -V all -o - >&- 2>run.err && one_line run.err "^mcl-gpu: "'
ok 'closed standard error' eval '"$tool" "$in/line7.abc" --abc -o F 2>&- && cmp F "$out/line7-I2.cls"'
ok 'closed standard input' eval '! "$tool" - --abc -o F -V all <&- 2>run.err && grep -q "^mcl-gpu: " run.err'
ok 'all streams closed' eval '"$tool" "$in/line7.abc" --abc -o F <&- >&- 2>&- && cmp F "$out/line7-I2.cls"'
broken_pipe() {
    (trap '' PIPE; "$tool" "$in/p2000.abc" --abc -V all -o - 2>run.err; echo $? >code) | true
    [ "$(cat code)" = 1 ] && grep -q '^mcl-gpu: ' run.err
}
printf 'a\xff\x01"\\ b 1\n' >'odd
name'
ok 'a name that breaks lines' eval 'status 0 "odd
name" --abc -V all -o -'
printf 'a b x\n' >$'bad\n\033[2J\177name'
ok 'control characters of a name stay out of messages' \
    fails 1 'bad\?\?.2J\?name:1: the weight' $'bad\n\033[2J\177name' --abc -V all -o X
ok 'nor do options bring them in' fails 2 'unknown option "-\?oo"' -$'\n'oo
running_name() { # the run starts itself again, under its own name
    mkfifo -m 600 named
    sleep 5 >named &
    local writer=$! process name
    "$tool" named --abc -V all -o F -te 2 &
    process=$!
    sleep 0.3
    name=$(cat /proc/$process/comm)
    kill $process $writer
    wait $process $writer
    [ "$name" = "$(basename "$tool" | cut -c -15)" ] || { echo "$name"; return 1; }
}
ok 'ps shows the name of the tool' running_name
setup_refuses() { # nothing installed, no root, no sudo
    mkdir -p nothing && printf "#!/bin/sh\necho 1000\n" >nothing/id && chmod +x nothing/id
    cp nothing/id nothing/apt-get
    (PATH=$PWD/nothing /bin/sh "$root/scripts/setup" >run.out 2>run.err)
    [ $? -eq 1 ] && one_line run.err '^setup: missing .*; as root run: apt-get update && apt-get install -y gcc make '
}
ok 'the set-up says what to install where it may not' setup_refuses

# ---- signals -------------------------------------------------------------------------------------------

# A run that takes long: a graph without structure, -I close to 1.
awk 'BEGIN { srand(7); for (i = 0; i < 60000; i++) print int(rand() * 3000), int(rand() * 3000), rand() }' >long.abc
ends_by() { # ends_by SIGNAL STATUS
    mkdir -p sig && rm -f sig/* run.err
    heeding "$1" "$tool" long.abc --abc -I 1.01 -o sig/F 2>run.err &
    local process=$! waited=0
    until grep -qsE '^  1 ' run.err || [ $waited -eq 200 ]; do sleep 0.05; waited=$((waited + 1)); done
    kill -s "$1" $process
    wait $process
    [ $? -eq "$2" ] && [ -z "$(ls -A sig)" ] && ! grep -q 'Traceback\|dumped' run.err
}
ok 'SIGINT' ends_by INT 130
ok 'SIGTERM' ends_by TERM 143
ok 'SIGHUP' ends_by HUP 129
blocked_reading() {
    mkfifo -m 600 pipe
    "$tool" pipe --abc -o sig/F -V all 2>run.err &
    local process=$! writer
    sleep 30 >pipe &
    writer=$!
    sleep 0.3
    kill -s TERM $process
    wait $process
    local status=$?
    kill $writer
    [ $status -eq 143 ] && [ -z "$(ls -A sig)" ]
}
ok 'SIGTERM while a pipe says nothing' blocked_reading
blocked_writing() { # more output than a pipe holds
    rm -f pipe
    mkfifo -m 600 pipe
    sleep 30 <pipe &
    local reader=$! process
    "$tool" long.abc --abc -I 6 -L 1 -write-graph pipe -o sig/F -V all 2>run.err &
    process=$!
    sleep 1
    kill -s TERM $process
    wait $process
    local status=$?
    kill $reader
    [ $status -eq 143 ] && [ -z "$(ls -A sig)" ]
}
ok 'SIGTERM while a reader takes nothing' blocked_writing
alarm_stops() {
    rm -f run.err
    "$tool" long.abc --abc -I 1.01 -o sig/A 2>run.err &
    local process=$! waited=0
    until grep -qsE '^  1 ' run.err || [ $waited -eq 200 ]; do sleep 0.05; waited=$((waited + 1)); done
    kill -s ALRM $process
    wait $process && [ -f sig/A ]
}
ok 'SIGALRM: the clusters of the present iterand' alarm_stops

# ---- device and report ---------------------------------------------------------------------------------

ok '--device cpu' clusters line7-I2 "$in/line7.abc" --abc --device cpu
ok '--device auto' clusters line7-I2 "$in/line7.abc" --abc --device auto
ok '--exact' clusters line7-I2 "$in/line7.abc" --abc --exact
ok '--fast' clusters line7-I2 "$in/line7.abc" --abc --fast
ok '--memory' clusters line7-I2 "$in/line7.abc" --abc --memory 100M
if "$tool" "$in/line7.abc" --abc --device cuda -o F -V all 2>run.err; then
    ok '--device cuda' cmp F "$out/line7-I2.cls"
else
    ok '--device cuda where there is none' fails 1 '--device cuda: ' "$in/line7.abc" --abc --device cuda -o X -V all
fi
if command -v python3 >/dev/null; then
    report() {
        status 0 "$in/p2000.abc" --abc -I 1.4,2 -o R -q x --report r.json && python3 - <<'PYTHON'
import json
r = json.load(open("r.json"))
assert r["tool"] == "mcl-gpu" and r["input"]["format"] == "abc" and r["input"]["nodes"] == 1997
assert r["arguments"][1:6] == ["--abc", "-I", "1.4,2", "-o", "R"]
assert r["options"]["inflations"] == [1.4, 2] and r["options"]["prune_number"] == 10000
assert [run["output"] for run in r["runs"]] == ["R.I14", "R.I20"]
run = r["runs"][1]
assert run["clusters"] == 209 == sum(1 for line in open("R.I20"))
assert run["jury"]["marks"] == [98, 99, 99] and run["jury"]["word"] == "marvelous" and run["converged"]
assert len(run["steps"]) == run["iterations"] == 24 and run["steps"][-1]["chaos"] < 1e-4
assert run["steps"][0]["nnz_before"] == r["input"]["start_entries"]
assert run["overlap"] == 0 and run["garbage_nodes"] == 0 and run["device"] == "cpu"
assert {"iterate", "expand", "interpret", "write"} <= set(run["seconds"])
assert r["seconds"]["total"] >= r["seconds"]["read"] > 0 and r["peak_host_bytes"] > 0
PYTHON
    }
    ok '--report' report
    ok '--report with odd bytes in names' eval 'status 0 "odd
name" --abc -V all -o $'"'o\"\xff\\\\'"' --report r2.json && python3 -m json.tool r2.json'
else skip 'no python3: --report'; skip 'no python3: --report with odd bytes in names'; fi

ok 'a reader that goes away' broken_pipe
ok 'no temporary files are left' no_leftovers
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
