#!/bin/bash
# What `make install` leaves: tools that start, man pages without a complaint, and a library to which README.md's
# program links, shared and static, also by CMake, with which examples/ find what they should, whose headers stand alone
# in C99 and C++, each function of which has a page, and whose shared objects export these headers and no more. Takes the variables of the make that runs the tests (CUDA,
# CUDA_ARCHS...), so that nothing is built anew.
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
build=$(realpath -m "${BUILD:-build}")
. tests/support/scipy.sh
. tests/support/cli.sh

variables=()
case ${MAKEFLAGS-} in *'-- '*) read -ra variables <<<"${MAKEFLAGS#*-- }" ;; esac
if [ -z "${MAKELEVEL-}" ]; then
    echo "skipped: the installation, which make test runs with its variables"
    echo "0 passed, 0 failed, 1 skipped"
    exit
fi
prefix=$work/prefix
ok 'make install' env -u MAKEFLAGS -u MAKELEVEL make -s -C "$root" "${variables[@]}" install PREFIX="$prefix"

complaints() { [ -z "$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$1" 2>&1 >/dev/null)" ]; }
for tool in mcl-gpu contract gnn sparse-bench; do
    ok "$tool starts" "$prefix/bin/$tool" --version
    if command -v man >/dev/null; then ok "the page of $tool" complaints "$prefix/share/man/man1/$tool.1"; else
        skip "no man: the page of $tool"; fi
done

exported() { # but for OpenMP's locks
    nm -D --defined-only "$prefix/lib/libsparse.so" "$prefix/lib/libsparse-io.so" "$prefix/lib/libsparse-gnn.so" |
        awk 'NF == 3 { print $3 }' |
        grep -v '^\.gomp_'
}
described() {
    exported | while read -r name; do [ -f "$prefix/share/man/man3/$name.3" ] || echo "$name"; done >run.out
    [ ! -s run.out ] || { head -n 20 run.out; return 1; }
}
ok 'a page for each function' described
if command -v man >/dev/null; then
    for page in libsparse sp_spgemm sp_spgemm_options mcl_label contraction_coarsen io_read_graph gnn_trainer_epoch; do
        ok "the page of $page" complaints "$prefix/share/man/man3/$page.3"
    done
else skip 'no man: pages of functions'; fi

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
strict='-Wall -Wextra -Werror'
sed -n '/^```c$/,/^```$/{/^```/!p}' "$root/README.md" >app.c
printf '0 0 8\n0 2 3\n1 0 12\n2 1 4\n2 2 8\n' >app.expected # the square of its matrix
builds() { # builds PROGRAM ARGUMENT...: which then says what it should
    ${CC:-cc} $strict "$1.c" "${@:2}" -o "$1" && "./$1" >run.out && diff run.out "$1.expected"
}
example() { # example COMPILER SOURCE ARGUMENT WORDS: says them; the compiler may be several words
    $1 $strict "$root/examples/$2" -o "${2%.*}" $(pkg-config --cflags --libs libsparse) &&
        "./${2%.*}" "$3" >run.out && grep -F "$4" run.out
}
says_as_scipy() { "$python" "$root/examples/neighbours.py" | grep '^as scipy'; }
modules() { # the modules of Markov clustering and of contraction
    cat >modules.c <<'EOF'
#include <contraction.h>
#include <mcl.h>
#include <stdio.h>
int main(void)
{
    int64_t offsets[] = {0, 1, 2, 3, 4}, clusters, groups;
    int32_t columns[] = {1, 0, 3, 2}, labels[4], matched[4];
    const sp_csr graph = {.rows = 4, .cols = 4, .nnz = 4, .row_offsets = offsets, .col_indices = columns};
    sp_context *context;
    mcl_options options;
    mcl_options_default(&options);
    if (sp_context_create(&(sp_context_options){.device = "cpu"}, &context) != SP_OK) return 1;
    if (mcl_label(context, &graph, &options, labels, &clusters) != SP_OK) return 1;
    if (contraction_coarsen(context, &graph, NULL, matched, &groups) != SP_OK) return 1;
    sp_context_destroy(context);
    printf("%d%d%d%d %d%d%d%d\n", labels[0], labels[1], labels[2], labels[3], matched[0], matched[1], matched[2], matched[3]);
    return sp_abi() != SP_ABI;
}
EOF
    echo '0011 0011' >modules.expected
    builds modules $(pkg-config --cflags --libs libsparse)
}
reads() { # reads ARGUMENT...: a file, by the readers
    cat >reads.c <<'EOF'
#include <sparse_io.h>
#include <stdio.h>
int main(void)
{
    sp_context *context;
    io_graph graph;
    sp_csr matrix;
    if (sp_context_create(&(sp_context_options){.device = "cpu"}, &context) != SP_OK) return 1;
    if (io_read_graph(context, "reads.abc", &(io_read_options){0}, &graph) != SP_OK) return 1;
    if (io_graph_matrix(context, &graph, false, SP_COMBINE_MAX, true, &matrix) != SP_OK) return 1;
    printf("%d nodes, %d entries\n", (int)matrix.rows, (int)matrix.nnz);
    io_graph_free(context, &graph);
    sp_csr_free(context, &matrix);
    sp_context_destroy(context);
    return 0;
}
EOF
    printf 'a\tb\t1\nb\tc\t2\n' >reads.abc
    echo '3 nodes, 4 entries' >reads.expected
    builds reads "$@"
}
trains() { # trains ARGUMENT...: two cliques with a node of each known, by graph neural networks
    cp "$root/examples/cliques.c" trains.c
    echo 000111 >trains.expected
    builds trains "$@"
}
samples() { # samples ARGUMENT...: two nodes of a ring with their neighbours, without BLAS
    cat >samples.c <<'EOF'
#include <gnn.h>
#include <stdio.h>
int main(void)
{
    int64_t offsets[] = {0, 1, 2, 3};
    int32_t next[] = {1, 2, 0}, nodes[] = {2, 0};
    const sp_csr ring = {.rows = 3, .cols = 3, .nnz = 3, .row_offsets = offsets, .col_indices = next};
    const gnn_sampler_options options = {.layers = 1, .fanout = {1}, .batch = 2, .in_order = true};
    gnn_minibatch m = {0};
    gnn_sampler *sampler = NULL;
    sp_context *context;
    if (sp_context_create(&(sp_context_options){.device = "cpu"}, &context) == SP_OK &&
        gnn_sampler_create(context, &ring, &options, &sampler) == SP_OK &&
        gnn_sampler_begin(sampler, nodes, 2, 1, 0) == SP_OK && gnn_sampler_next(sampler, &m) == SP_OK)
        printf("%d %d %d\n", m.node[0][0], m.node[0][1], m.node[0][2]);
    gnn_minibatch_free(context, &m);
    gnn_sampler_free(sampler);
    sp_context_destroy(context);
    return 0;
}
EOF
    echo 2 0 1 >samples.expected
    builds samples "$@"
}
by_cmake() { # the same, and PageRank in C++, by find_package
    mkdir -p cmake && cp reads.c trains.c "$root/examples/pagerank.cpp" cmake/ && cat >cmake/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(uses C CXX)
find_package(libsparse 0.1 REQUIRED)
set(CMAKE_CXX_STANDARD 17)
add_executable(reads reads.c)
target_link_libraries(reads libsparse::io)
add_executable(reads_static reads.c)
target_link_libraries(reads_static libsparse::io_static)
add_executable(trains trains.c)
target_link_libraries(trains libsparse::gnn)
add_executable(trains_static trains.c)
target_link_libraries(trains_static libsparse::gnn_static)
add_executable(pagerank pagerank.cpp)
target_link_libraries(pagerank libsparse::libsparse)
EOF
    cmake -S cmake -B cmake/build -DCMAKE_PREFIX_PATH="$prefix" >run.out && cmake --build cmake/build >>run.out &&
        cmake/build/reads | diff - reads.expected && cmake/build/reads_static | diff - reads.expected &&
        cmake/build/trains | diff - trains.expected && cmake/build/trains_static | diff - trains.expected &&
        cmake/build/pagerank cora | grep -F 'node 1358 is first with 0.012211'
}
version() { # the header's, in one piece and in parts, the library's, the tools' and pkg-config's
    cat >version.c <<'EOF'
#include <sparse.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    printf("%d.%d.%d\n", SP_VERSION_MAJOR, SP_VERSION_MINOR, SP_VERSION_PATCH);
    return strcmp(sp_version(), SP_VERSION) != 0;
}
EOF
    pkg-config --modversion libsparse >version.expected
    builds version $(pkg-config --cflags --libs libsparse) &&
        "$prefix/bin/contract" --version | grep -xF "contract $(cat version.expected)"
}
if command -v pkg-config >/dev/null; then
    ok 'one version everywhere' version
    ok 'a program that clusters and matches' modules
    ok 'a program that reads, shared' reads $(pkg-config --cflags --libs libsparse-io)
    ok 'the same, static' reads "$prefix/lib/libsparse-io.a" "$prefix/lib/libsparse.a" \
        $(pkg-config --cflags --libs --static libsparse-io)
    ok 'a program that trains, shared' trains $(pkg-config --cflags --libs libsparse-gnn)
    ok 'the same, static' trains "$prefix/lib/libsparse-gnn.a" "$prefix/lib/libsparse.a" \
        $(pkg-config --cflags --libs --static libsparse-gnn)
    ok 'a program that samples, shared' samples $(pkg-config --cflags --libs libsparse)
    ok 'the same, static' samples "$prefix/lib/libsparse.a" $(pkg-config --cflags --libs --static libsparse)
    ok 'the program of README.md, shared' builds app $(pkg-config --cflags --libs libsparse)
    ok 'the same, static' builds app "$prefix/lib/libsparse.a" $(pkg-config --cflags --libs --static libsparse)
    # Cora, both directions of its edges; networkx counts the same triangles and ranks the same node first.
    gzip -dc "$root/data/cora/graph.mtx.gz" | awk '!/^%/ && ++line > 1 { print $1 - 1, $2 - 1; print $2 - 1, $1 - 1 }' >cora
    ok 'triangles' example "${CC:-cc}" triangles.c cora '1630 triangles'
    if command -v g++ >/dev/null; then
        ok 'pagerank' example g++ pagerank.cpp cora 'node 1358 is first with 0.012211'
        if command -v cmake >/dev/null; then ok 'find_package of CMake' by_cmake; else skip 'no cmake: find_package'; fi
    else skip 'no g++: examples/pagerank.cpp, find_package'; fi
else skip 'no pkg-config: the program of README.md, examples'; fi
if find_scipy >find.log; then ok 'neighbours' says_as_scipy
else skip "examples/neighbours.py: $(tail -n 1 find.log)"; fi
for header in sparse mcl contraction gnn sparse_io sp_ranks; do
    echo "#include <$header.h>" >header.c
    ok "$header.h in C99" ${CC:-cc} -std=c99 -pedantic $strict -I"$prefix/include" -fsyntax-only header.c
    if command -v g++ >/dev/null; then
        ok "$header.h in C++" g++ -x c++ -std=c++11 -pedantic $strict -I"$prefix/include" -fsyntax-only header.c
    else skip "no g++: $header.h in C++"; fi
done
if command -v g++ >/dev/null; then
    echo '#include <sparse.hpp>' >header.cpp
    ok 'sparse.hpp' g++ -std=c++17 -pedantic $strict -Wconversion -I"$prefix/include" -fsyntax-only header.cpp
else skip 'no g++: sparse.hpp'; fi
exports() {
    exported | while read -r name; do
        cat "$prefix"/include/*.h | grep -qw "$name" || echo "$name"
    done >run.out
    [ ! -s run.out ] || { head -n 20 run.out; return 1; }
}
ok 'only the headers are exported' exports
packaged() ( # each file is in a Debian package, or dpkg-buildpackage fails; libsparse-mpi.so is not built there
    patterns=$(cat "$root"/debian/*.install)
    set -f
    find "$prefix" ! -type d ! -name libsparse-mpi.so | sed "s#^$prefix/#usr/#; s#^usr/lib/#usr/lib/x/#" | while read -r file; do
        for pattern in $patterns; do case $file in $pattern | $pattern/*) continue 2 ;; esac; done
        echo "$file"
    done >run.out
    [ ! -s run.out ]
)
ok 'all of it is in the Debian packages' packaged
listed() { # the recipes for conda name each tool, header and library
    local file name recipe=$root/packaging/conda/conda-forge/recipe.yaml
    for file in "$prefix"/include/* "$prefix"/bin/* "$prefix"/lib/lib*.a; do
        name=$(basename "$file" .a)
        grep -E '^ *(bin|include|lib): ' "$recipe" | grep -qE "[[ ]${name#lib}[],]" || { echo "no $name in $recipe"; return 1; }
    done
    for file in "$prefix"/include/*; do
        grep -qF "include/${file##*/}\"" "$root/packaging/conda/bioconda/meta.yaml" || { echo "no $file"; return 1; }
    done
}
ok 'and in the recipes for conda' listed
mkdir -p forgot/obj/cuda
forgets() { # a build with nvcc is not installed as one without
    ! env -u MAKEFLAGS -u MAKELEVEL make -n -s -C "$root" BUILD="$work/forgot" CUDA=auto NVCC= install >run.out 2>&1 &&
        grep 'not found now.*CUDA_HOME=DIR' run.out
}
ok 'make install where nvcc is no longer found' forgets
if command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
    echo 'code=sm_80' >forgot/obj/cuda/flags
    remembers() { # and has code for the GPUs that the build is for
        env -u MAKEFLAGS -u MAKELEVEL -u CUDA_ARCHS make -n -s -C "$root" BUILD="$work/forgot" CUDA=1 install \
            >run.out 2>&1
        grep 'CUDA build: sm_80 and PTX' run.out
    }
    ok 'make install after CUDA_ARCHS=80' remembers
else skip 'no nvcc: make install after CUDA_ARCHS=80'; fi
installs() { # installs TARGET VARIABLE...: make install or uninstall
    env -u MAKEFLAGS -u MAKELEVEL make -s -C "$root" "${variables[@]}" "$@"
}
uninstalls() {
    installs uninstall PREFIX="$prefix" && [ -z "$(find "$prefix" ! -type d | tee run.out)" ]
}
ok 'make uninstall' uninstalls
elsewhere() { # folders of a multiarch distribution, staged: the pkg-config file names them as they will be
    local folders=(DESTDIR="$work/stage" PREFIX=/usr LIBDIR=/usr/lib/some-linux-gnu BINDIR=/opt/bin
        INCLUDEDIR=/usr/include/sp MANDIR=/usr/man)
    local pc=stage/usr/lib/some-linux-gnu/pkgconfig/libsparse.pc
    installs install "${folders[@]}" && [ -x stage/opt/bin/contract ] && [ -f stage/usr/man/man1/contract.1 ] &&
        [ -f stage/usr/include/sp/sparse.h ] && [ -e stage/usr/lib/some-linux-gnu/libsparse.so ] &&
        grep -x 'libdir=${prefix}/lib/some-linux-gnu' $pc && grep -x 'includedir=${prefix}/include/sp' $pc &&
        installs uninstall "${folders[@]}" && [ -z "$(find stage ! -type d | tee run.out)" ]
}
ok 'LIBDIR, BINDIR, INCLUDEDIR, MANDIR' elsewhere

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
