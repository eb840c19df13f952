#!/bin/bash
# The wheel in every Python from 3.9 to 3.14 that this machine has. Each installs the same file, with numpy and scipy from
# PyPI, into a virtual environment of its own, and runs smoke.py there: products against scipy, and a clustering. Looks for
# python3.N on the PATH and below pyenv's versions; INTERPRETERS="/a/bin/python /b/bin/python" names others instead.
# Versions that are not found, or that PyPI has no scipy for, are counted as skipped.
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
export BUILD=${BUILD:-build}
python=$(realpath -m "$BUILD")/python
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
skipped() { echo "skipped: the wheel in other Pythons: $1" && echo "0 passed, 0 failed, 1 skipped" && exit 0; }
unreached='connection|resolution|no matching distribution|temporary failure'
[ -f "$python/libspgraph.so" ] || skipped "$BUILD/python/libspgraph.so is not built"
if ! scripts/wheel spgraph >"$work/wheel.log" 2>&1; then
    if grep -qiE "$unreached" "$work/wheel.log"; then skipped 'PyPI is not reached'; fi
    cat "$work/wheel.log" && echo "0 passed, 1 failed, 0 skipped" && exit 1
fi
wheel=$(realpath "$BUILD"/dist/spgraph-*.whl)

is() { # is PYTHON VERSION: that version, with what a virtual environment takes
    "$1" -c "import ensurepip, sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$2')" 2>/dev/null
}
find_python() { # find_python VERSION: says where it is
    local candidate versions
    versions=$(pyenv root 2>/dev/null)/versions
    for candidate in $(type -ap "python$1") "$versions/$1".*/bin/python; do
        if is "$candidate" "$1"; then echo "$candidate" && return; fi
    done
    return 1
}

passed=0 failed=0 skipped=0
smoke() { # smoke PYTHON
    local env=$work/env log=$work/log
    rm -rf "$env"
    if ! { "$1" -m venv "$env" && "$env/bin/pip" install -q --disable-pip-version-check --only-binary :all: "$wheel"; } \
        >"$log" 2>&1; then
        if grep -qiE "$unreached" "$log"; then
            echo "skipped: $1: numpy and scipy are not to be had" && skipped=$((skipped + 1)) && return
        fi
    elif (cd "$work" && PYTHONPATH='' "$env/bin/python" -B "$root/tests/python/smoke.py") >"$log" 2>&1; then
        cat "$log" && passed=$((passed + 1)) && return
    fi
    echo "failed: $1" && cat "$log" && failed=$((failed + 1))
}

if [ -n "${INTERPRETERS-}" ]; then
    for one in $INTERPRETERS; do smoke "$one"; done
else
    for version in 3.9 3.10 3.11 3.12 3.13 3.14; do
        if one=$(find_python $version); then smoke "$one"; else
            echo "skipped: there is no Python $version" && skipped=$((skipped + 1)); fi
    done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
