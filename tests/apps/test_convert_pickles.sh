#!/bin/bash
# scripts/convert-pickles: pickles of every protocol against gnn convert of the same data, refusals, and pickles that are
# cut or damaged at every byte or would call something.
#   GNN  the tool [$BUILD/bin/gnn]
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${GNN:-${BUILD:-build}/bin/gnn}") || exit 1
cora=$PWD/data/cora build=$(realpath "${BUILD:-build}") script=$PWD/scripts/convert-pickles
. tests/support/scipy.sh
. tests/support/cli.sh

if ! find_scipy >venv.out; then
    skip 'no scipy'
    echo "$passed passed, $failed failed, $skipped skipped"
    exit 0
fi

pickles() { "$python" -B "$script" "$@" >run.out 2>run.err; }
fails() { # fails STATUS PATTERN ARGUMENTS...: one line on stderr, nothing on stdout, no folder X
    local expected=$1 pattern=$2
    shift 2
    rm -rf X
    pickles "$@"
    [ $? -eq "$expected" ] && [ ! -s run.out ] && [ ! -e X ] && [ "$(wc -l <run.err)" -eq 1 ] &&
        grep -qE -- "^convert-pickles: .*$pattern" run.err || { cat run.err; return 1; }
}

# ---- whole data sets -------------------------------------------------------------------------------------

"$python" - "$cora" <<'PY'
import collections, gzip, io, os, pickle, sys
import numpy as np, scipy.io, scipy.sparse as sp
cora = sys.argv[1]
mtx = lambda name: scipy.io.mmread(io.BytesIO(gzip.open(cora + '/' + name).read())).tocsr()
a, x = mtx('graph.mtx.gz'), mtx('features.mtx.gz').astype('f4')
y = np.eye(7, dtype='i4')[np.loadtxt(cora + '/labels.txt', dtype=int)]
test = np.random.default_rng(5).permutation(np.arange(1708, 2708))
lists = {i: [int(j) for j in a.indices[a.indptr[i]:a.indptr[i + 1]]] for i in range(2708)}
lists[5] += [5] + lists[5]
default = collections.defaultdict(list, lists)

# Python 2 wrote bytes as strings; Python 3 can be brought to.
class Old(pickle._Pickler):
    dispatch = dict(pickle._Pickler.dispatch)
    def save_bytes(self, b):
        self.write((b'U' + bytes([len(b)]) if len(b) < 256 else b'T' + len(b).to_bytes(4, 'little')) + b)
    dispatch[bytes] = save_bytes
    def save_str(self, s): self.save_bytes(s.encode())
    dispatch[str] = save_str

def dump(protocol, o):
    b = io.BytesIO()
    (Old(b, 2) if protocol == 'old' else pickle.Pickler(b, protocol)).dump(o)
    return b.getvalue()

def write(name, protocol, graph=lists, test=test):
    parts = {'x': x[:140], 'y': y[:140], 'tx': x[test], 'ty': y[test], 'allx': x[:1708], 'ally': y[:1708],
             'graph': graph}
    for k, v in parts.items(): open('%s.%s' % (name, k), 'wb').write(dump(protocol, v))
    open(name + '.test.index', 'w').write(''.join('%d\n' % i for i in test))
for protocol in ('old', 2, 3, 4, 5): write('ind.p%s' % protocol, protocol, default)
class Evil:
    def __reduce__(self): return os.system, ('touch evil',)
write('ind.evil', 4, Evil())
write('ind.far', 4, {**lists, 7: [2708]})
write('ind.two', 4)
two = y[:1708].copy()
two[5, :2] = 1
open('ind.two.ally', 'wb').write(dump(4, two))
write('ind.nan', 4)
gap = y[test].astype('f4')
gap[3] = np.nan
open('ind.nan.ty', 'wb').write(dump(4, gap))
write('ind.inf', 4)
inf = x[:1708].copy()
inf.data[inf.indptr[9]] = np.inf
open('ind.inf.allx', 'wb').write(dump(4, inf))
write('ind.cut', 4)
b = open('ind.cut.allx', 'rb').read()
open('ind.cut.allx', 'wb').write(b[:-100])
write('ind.gaps', 4, test=test[test % 9 > 0])
write('ind.layout', 4)
wide = x[test[::-1]] # all entries backwards: columns descend
wide.indices, wide.indptr = wide.indices[::-1].astype('i8'), (wide.nnz - wide.indptr[::-1]).astype('i8')
wide.data = wide.data[::-1].astype('>f8')
open('ind.layout.tx', 'wb').write(dump(4, wide))
open('ind.layout.ally', 'wb').write(dump(4, np.asfortranarray(y[:1708].astype('>f8'))))
open('ind.layout.ty', 'wb').write(dump(4, y[test].astype(bool)))
write('ind.again', 4)
open('ind.again.test.index', 'a').write('%d\n' % test[0])
write('ind.word', 4)
open('ind.word.test.index', 'a').write('x\n')
box = lambda o: np.array([o, None], dtype=object)[:1].reshape(())
np.savez_compressed('objects.npz', adj_matrix=box(a.astype('f4')), node_attr=box(x), node_label=y.argmax(1))
np.savez('columns.npz', adj_matrix=box(a.tocsc()), node_attr=box(x), node_label=y.argmax(1))
np.savez('few.npz', adj_matrix=box(a), node_attr=box(x), node_label=y.argmax(1)[1:])
np.savez('calls.npz', adj_matrix=box(Evil()), node_attr=box(x), node_label=y.argmax(1))
np.savez('plain.npz', labels=y.argmax(1))
PY
status 0 convert "$cora" c
same_as_cora() { # same_as_cora SOURCE FILE...: what gnn makes of the folder is what it makes of Cora
    local source=$1
    shift
    rm -rf q r
    pickles "$source" q && [ ! -s run.out ] && grep -q "^convert-pickles: read $source, 2708 nodes, .*; wrote q$" run.err &&
        status 0 convert q r || return 1
    for f in "$@"; do cmp "c/$f" "r/$f" || return 1; done
}
for protocol in old 2 3 4 5; do
    ok "planetoid, protocol $protocol" same_as_cora ind.p$protocol graph.npz features.npz labels.npy split.npy
done
ok 'numbers of other kinds and orders' same_as_cora ind.layout graph.npz features.npz labels.npy split.npy
ok 'an archive of objects' same_as_cora objects.npz graph.npz features.npz labels.npy
ok 'nodes that only the graph has' eval 'rm -rf q && pickles ind.gaps q && status 0 info --json q &&
    grep -q "\"unlabelled\": [1-9]" run.out'
ok 'the usual permissions' eval '(umask 027; rm -rf q; pickles ind.p4 q) && [ "$(stat -c %a q)" = 750 ] &&
    [ "$(ls q | xargs)" = "features.npz graph.npz labels.npy split.npy" ]'
ok 'not over what is there' eval 'pickles ind.p4 q; [ $? -eq 1 ] && grep -q "q: it is there already" run.err'
ok 'nothing else is left' eval '! ls -d q.tmp.* X.tmp.* 2>/dev/null'

# ---- refusals --------------------------------------------------------------------------------------------

ok 'what would be executed is not' fails 1 'ind.evil.graph: the pickle would call [a-z]*\.system, which is not done' \
    ind.evil X
ok 'nor in an archive' fails 1 'calls.npz: adj_matrix: the pickle would call [a-z]*\.system' calls.npz X
ok 'nothing was' [ ! -e evil ]
ok 'a neighbour that is not a node' fails 1 'ind.far.graph: the entry of 7 is not a list of nodes' ind.far X
ok 'a pickle that is cut' fails 1 'ind.cut.allx: the pickle is truncated or damaged' ind.cut X
ok 'two classes in a row' fails 1 'ind.two.ally: row 5 \(from 0\) is not a class; write a 1 for it' ind.two X
ok 'NaN in a row' fails 1 'ind.nan.ty: row 3 \(from 0\) is not a class' ind.nan X
ok 'a feature that is infinite' fails 1 'ind.inf.allx: row 9 \(from 0\) has a number that is not finite' ind.inf X
ok 'a test node that is there twice' fails 1 'ind.again.test.index: node [0-9]* is there twice' ind.again X
ok 'one that is not a number' fails 1 'ind.word.test.index:1001: .*\(got "x"\)' ind.word X
ok 'columns in place of rows' fails 1 'columns.npz: adj_matrix: the pickle would call scipy.*csc_matrix' columns.npz X
ok 'too few labels' fails 1 'few.npz: 2708 nodes, but 2708 rows of features and 2707 labels' few.npz X
ok 'an archive without pickles' fails 1 'plain.npz: no member adj_matrix or node_attr; gnn convert reads' plain.npz X
cp ind.p4.test.index text.npz
ok 'what is not an archive' fails 1 'text.npz: ' text.npz X
rm ind.p4.graph
ok 'a part that is missing' fails 1 'ind.p4.graph: No such file' ind.p4 X
ok 'what is not there' fails 1 'nofile: No such file' nofile X
ok 'no folder to write to' fails 1 'nowhere: No such file or directory' ind.p2 nowhere/X
ok 'one word' fails 2 'a source and a folder are expected' ind.p2
ok 'help' eval 'pickles --help && grep -q "^usage: scripts/convert-pickles SOURCE DIR$" run.out && [ ! -s run.err ]'
points_here() { # gnn convert names the script for each of these
    for source in ind.p2 objects.npz ind.p2.allx; do
        status 1 convert $source X && [ ! -s run.out ] && [ ! -e X ] && [ "$(wc -l <run.err)" -eq 1 ] &&
            grep -q "^gnn: $source: .*pickle.*scripts/convert-pickles" run.err || return 1
    done
}
ok 'gnn convert says what to run' points_here

# ---- pickles by hand -------------------------------------------------------------------------------------

ok 'pickles by hand' "$python" -B - "$script" <<'PY'
import io, sys, tracemalloc, types
tool = types.ModuleType('tool')
exec(compile(open(sys.argv[1]).read(), sys.argv[1], 'exec'), vars(tool))

def array(kind, values): # of one dimension, of one-byte values, as Python 2 pickles it
    count = bytes([len(values)])
    return (b'cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R(K\1K' + count +
            b'\x85cnumpy\ndtype\nU\2' + kind + b'K\0K\1\x87R(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89U' +
            count + values + b'tb')

def matrix(name): # 2 x 3 of three entries
    return (b'\x80\2ccopy_reg\n_reconstructor\n(cscipy.sparse.csr\n' + name +
            b'\nc__builtin__\nobject\nNtRq\1}q\2(U\6_shapeK\2K\3\x86U\4data' + array(b'u1', b'\5\6\7') +
            b'U\7indices' + array(b'i1', b'\0\2\1') + b'U\6indptr' + array(b'i1', b'\0\2\3') + b'ub.')

load = lambda text: tool.unpickle(io.BytesIO(text), 'p')
read = lambda text: tool.as_matrix(load(text), 'p')
def refused(text, sentence, take=load):
    try: take(text)
    except tool.Refused as why: assert sentence in str(why), (text, why)
    else: raise AssertionError(text)

good = matrix(b'csr_matrix')
assert (read(good).toarray() == [[5, 0, 6], [0, 7, 0]]).all()
refused(matrix(b'csc_matrix'), 'csc_matrix')
for count in range(len(good)): refused(good[:count], 'p: ', read)
for at in range(len(good)):
    for bit in range(8):
        try: read(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1:]).check_format(full_check=True)
        except tool.Refused: pass

tool.load_part = lambda name, part: (load(name), 'p')
graph = b'\x80\2}(K\0](K\1K\2eK\1](K\0K\1K\0eK\2]u.'  # {0: [1, 2], 1: [0, 1, 0], 2: []}
made = tool.read_neighbours(graph, 3)
assert made.dtype == bool and (made.toarray() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]).all()
refused(graph, 'the entry of 0 is not a list of nodes', lambda text: tool.read_neighbours(text, 2))
refused(b']K\0a.', 'no dictionary', lambda text: tool.read_neighbours(text, 2))
refused(b'}K\0K\1s.', 'the entry of 0 is not a list', lambda text: tool.read_neighbours(text, 2))

for text in (b'', b'.', b'(.', b'K\1b.', b'K\1K\2b.', b'K\1t.', b']K\1s.', b'K\1(K\1e.', b'}(K\1u.', b'h\1.',
             b'B\xff\xff\xff\xff.', b'cos', b'N\x91.', b'cos\nsystem\n)R.', b'\x80\4\x8c\2os\x8c\6system\x93)R.',
             b'cbuiltins\neval\n(U\0011tR.', b'I1\nP1\n.'): refused(text, 'p: ')
refused(b'c_codecs\nencode\n(X\1\0\0\0aU\3zipt' + b'R.', 'p: ')
for text in (b'K\1.', b'N.', array(b'O8', b'').join((b'', b'.')), array(b'U8', b'') + b'.', array(b'i4', b'\1') + b'.'):
    refused(text, 'p: ', lambda text: tool.as_array(load(text), 'p'))
tracemalloc.start() # numbers that would be so many bytes, or places in the memo
refused(b'cbuiltins\nbytes\nJ\0\0\0\x40\x85R.', 'p: bytes of something')
load(b'K\1r\xff\xff\xff\x7f.')
assert tracemalloc.get_traced_memory()[1] <= 1 << 20
tracemalloc.stop()
for value in (b'K\1', b'N'): # lists of small numbers, and what takes no bytes beside its name
    text = b'](' + value * (2 << 20) + b'e.'
    tracemalloc.start()
    load(text)
    assert tracemalloc.get_traced_memory()[1] <= 64 * len(text)
    tracemalloc.stop()
PY

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
