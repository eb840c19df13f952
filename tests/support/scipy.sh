# A Python with numpy and scipy, with graph programs or with METIS, for the scripts that compare with them: $PYTHON, else
# the system's, or that of a virtual environment under $build, which the first script that asks fills from PyPI while
# the others wait. Sourced in the repository's root.
has_scipy() { "$1" -c 'import scipy.sparse; scipy.sparse.csr_array' 2>/dev/null; } # of a Python
has_graph_programs() { "$1" -c 'import igraph, networkit, networkx' 2>/dev/null; }
has_pymetis() { "$1" -c 'import pymetis' 2>/dev/null; }

into_venv() { # into_venv CHECK PACKAGE...: unless the check finds them there
    local check=$1 here=$build/venv/bin/python3
    shift
    "$check" "$here" && return
    "${PYTHON:-python3}" -m venv "$build/venv" && timeout 240 "$here" -m pip install --quiet --only-binary :all: "$@" &&
        "$check" "$here"
}

find_python() { # find_python CHECK PACKAGE...: sets python; where it fails the last line of what it prints says why
    python=${PYTHON:-python3}
    "$1" "$python" && return
    python=$(realpath "$build")/venv/bin/python3
    (flock 9 && into_venv "$@") 9>"$build/venv.lock" 2>&1
}
find_scipy() { find_python has_scipy scipy; }
find_graph_programs() { find_python has_graph_programs igraph networkit networkx; } # ten seconds
find_pymetis() { find_python has_pymetis pymetis; }
