# A Python with numpy and scipy, for the scripts that compare with them: the system's, or that of a virtual environment
# under $build, which the first script that asks fills from PyPI while the others wait. Sourced in the repository's root.
has_scipy() { "$1" -c 'import scipy.sparse; scipy.sparse.csr_array' 2>/dev/null; } # of a Python

install_scipy() {
    has_scipy "$build/venv/bin/python3" && return
    python3 -m venv "$build/venv" && timeout 240 "$build/venv/bin/python3" -m pip install --quiet scipy &&
        has_scipy "$build/venv/bin/python3"
}

find_scipy() { # sets python; fails where there is none, and then the last line of what it prints says why
    python=python3
    has_scipy "$python" && return
    python=$(realpath "$build")/venv/bin/python3
    (flock 9 && install_scipy) 9>"$build/venv.lock" 2>&1
}
