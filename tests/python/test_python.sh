#!/bin/bash
# The Python package: makes the wheels, installs them into a virtual environment away from the checkout, and runs there
# tests/python, the examples in the docstrings and in docs/python.md, scipy's own test_base.py with spgraph's product in
# place of scipy's (what scipy skips is not counted), and networkx's own tests of what the back end computes (those of
# other functions are expected to fail, and not counted). Skipped without python3, venv and packages from PyPI. With
# FRESH=1 (make test-python) the environment is made anew; otherwise only the wheel is installed again. With LARGE=1
# torch, PyG, cdlib and scanpy are installed, too (7 GB); otherwise their tests are skipped.
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
export BUILD=${BUILD:-build}
python=$(realpath -m "$BUILD")/python
skipped() { echo "skipped: the Python package: $1" && echo "0 passed, 0 failed, 1 skipped" && exit 0; }
[ -f "$python/libspgraph.so" ] || skipped "$BUILD/python/libspgraph.so is not built"
${PYTHON:-python3} -c 'import ensurepip, venv' 2>/dev/null || skipped 'no python3 with venv'

if [ -n "${FRESH-}" ]; then rm -rf "$python/env"; fi
log=$python/install.log
prepare() {
    scripts/wheel && { [ -x "$python/env/bin/pytest" ] || {
        ${PYTHON:-python3} -m venv "$python/env" && "$python/env/bin/pip" install -q --disable-pip-version-check \
            numpy scipy networkx pandas igraph anndata matplotlib sparse_dot_topn pytest pycparser mypy; }; } &&
        { [ -z "${LARGE-}" ] || "$python/env/bin/pip" install -q --disable-pip-version-check 'torch>=2.4' \
            torch_geometric cdlib scanpy; } &&
        "$python/env/bin/pip" install -q --disable-pip-version-check --force-reinstall --no-deps \
            "$BUILD"/dist/spgraph-*.whl $(ls "$BUILD"/dist/mcl_gpu-*.whl 2>/dev/null)
}
if ! prepare >"$log" 2>&1; then
    grep -qiE 'connection|resolution|no matching distribution|temporary failure' "$log" || {
        cat "$log" && echo "0 passed, 1 failed, 0 skipped" && exit 1; }
    skipped 'PyPI is not reached'
fi

pytest() { "$python/env/bin/python" -m pytest -p no:cacheprovider -q "$@"; }
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=
cd "$python" || exit 1 # where no folder is called spgraph
pytest -rs "$root/tests/python" >own.log 2>&1
grep '^SKIPPED' own.log
pytest --doctest-modules --doctest-ignore-import-errors --pyargs spgraph >docs.log 2>&1
(cd "$root/data" && pytest --doctest-glob='*.md' "$root/docs/python.md") >guide.log 2>&1
PYTHONPATH=$root/tests/python pytest -p scipy_product --pyargs scipy.sparse.tests.test_base >scipy.log 2>&1
NETWORKX_TEST_BACKEND=spgraph pytest --pyargs networkx.algorithms.tests.test_cluster \
    networkx.algorithms.tests.test_link_prediction networkx.algorithms.link_analysis.tests.test_pagerank \
    >networkx.log 2>&1
passed=0 failed=0 skipped=0
for part in own docs guide scipy networkx; do
    count() { tail -n 1 $part.log | grep -oE "[0-9]+ $1" | grep -oE '[0-9]+' || echo 0; }
    p=$(count passed) f=$(($(count failed) + $(count error)))
    if [ "$p" -eq 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ "$f" -gt 0 ]; then cat $part.log; fi
    grep '^products: ' $part.log
    passed=$((passed + p)) failed=$((failed + f))
    if [ $part != scipy ]; then skipped=$((skipped + $(count skipped))); fi
done
grep -q '^products: [0-9][0-9]* by spgraph' scipy.log || failed=$((failed + 1))
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
