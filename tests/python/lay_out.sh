#!/bin/bash
# Lays the package and the library of the build into one folder, for machines where no wheel can be made, and prints
# what PYTHONPATH must be.
cd "$(dirname "$0")/../.." || exit 1
library=${BUILD:-build}/python/libspgraph.so
[ -f "$library" ] || { echo "$library is not built: make $library (CUDA=1 for a GPU)" >&2 && exit 1; }
folder=$(realpath "${BUILD:-build}")/python/path
rm -rf "$folder"
mkdir -p "$folder" && cp -r python/spgraph python/_spgraph_networkx.py "$folder" && cp "$library" "$folder/spgraph/" &&
    echo "$folder"
