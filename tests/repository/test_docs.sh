#!/bin/bash
# The documents: tables and pictures are those of the stored results, links lead somewhere, commands print what is
# shown, pages stay short, and the prose avoids the constructions that scripts/prose-check lists.
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
build=$(realpath -m "${BUILD:-build}")
documents=$(find docs -name '*.md' | sort; ls ./*.md)
pages=$(find docs/notebook -name '*.md' 2>/dev/null | sort)
. tests/support/cli.sh

here() { (cd "$root" && "$@"); } # here COMMAND...: in the repository's root
lines() { # lines MOST FILE...: no file has more
    local most=$1 file count status=0
    shift
    for file in "$@"; do
        count=$(wc -l <"$file")
        [ "$count" -le "$most" ] || { echo "$file has $count lines, more than $most"; status=1; }
    done
    return $status
}
named() { # documents that sources and scripts name are there
    local file status=0
    for file in $(grep -rhoE 'docs/[A-Za-z0-9_/-]+\.(md|svg)' Makefile apps bench contraction gnn io libsparse mcl tests \
        scripts examples .github 2>/dev/null | sort -u); do
        [ -e "$file" ] || { echo "named, but not there: $file"; status=1; }
    done
    return $status
}
small() { # small BYTES FILE...
    local most=$1
    shift
    ! find "$@" -type f -size +"$most"c | grep .
}
stale() { # a table with another number, and a marker without a table
    rm -rf copy && mkdir copy && cp -r "$root/bench" "$root/docs" "$root/README.md" copy &&
        python3 -B copy/bench/table.py --check && sed -i '/^<!-- bench:compact-markov/,/^<!-- .bench/s/^| [a-z0-9 ]* |/| altered |/' \
            copy/docs/performance.md && ! python3 -B copy/bench/table.py --check &&
        python3 -B copy/bench/table.py && cmp copy/docs/performance.md "$root/docs/performance.md" &&
        printf '<!-- bench:none -->\n<!-- /bench -->\n' >>copy/README.md && ! python3 -B copy/bench/table.py
}
unwanted() { # prose that scripts/prose-check is to find, and sentences that it is not
    printf '%s\n' 'The caller' 'is told' '  of it.' '' '- Of an edge it takes both.' '- A weight that is no number.' \
        >"$work/bad.md"
    printf 'The caller reports it, not `is told of`, no longer now.\n\n```\nis told of it\n```\n' >"$work/good.md"
    ! scripts/prose-check "$work/bad.md" >"$work/prose" && grep -F 'bad.md:1: "is told of"' "$work/prose" &&
        grep -F 'bad.md:5: "- of an"' "$work/prose" && grep -F 'bad.md:6: "that is no number"' "$work/prose" &&
        scripts/prose-check "$work/good.md" || return
    printf '/* A field.\n *\n * The caller is told\n * of it. */\nint is_told_of; /* of a row */\n' >"$work/bad.h"
    ! scripts/prose-check "$work/bad.h" >"$work/prose" && grep -F 'bad.h:3: "is told of"' "$work/prose" &&
        ! grep -v 'bad.h:3:' "$work/prose"
}
broken() { # links that tests/repository/check_links.py is to find
    printf '# A heading\n[a](#a-heading) [b](#none) [c](none.md) [d](bad.md#a-heading)\n' >"$work/bad.md"
    ! python3 -B tests/repository/check_links.py "$work/bad.md" >"$work/links" && [ "$(wc -l <"$work/links")" -eq 2 ]
}
different() { # examples that tests/repository/check_examples.py is to find, and some that it is not
    printf '```sh\n$ echo a; echo b; echo c 12\n...\nc ...2\n$ true\n```\n```sh\nfalse\n```\n' >"$work/good.md"
    printf '```sh\n$ echo a\nb\n$ false\n$ echo a \\\n    b\na b\n```\n' >"$work/bad.md"
    python3 -B tests/repository/check_examples.py . "$work/good.md" &&
        ! python3 -B tests/repository/check_examples.py . "$work/bad.md" >"$work/examples" &&
        [ "$(grep -c 'bad.md:[24]:' "$work/examples")" -eq 2 ] && [ "$(grep -c 'bad.md' "$work/examples")" -eq 2 ]
}

# What README.md is to say, and that in this order: what inflation does, then figures.
explains_first() {
    [ "$(grep -n -m 1 'The \*inflation\* `-I` sets how fine the clusters are' README.md | cut -d : -f 1)" -lt \
        "$(grep -n -m 1 '^<!-- bench:' README.md | cut -d : -f 1)" ]
}
clients_named() { grep -q '^OrthoFinder, Roary, proteinortho (`-mcl`) and `rcl` were run as a whole' README.md; }
no_awk() { ! grep -n '\bawk\b' README.md; } # --table and --report show clusters

if command -v python3 >/dev/null; then
    ok 'tables are those of the results' here python3 -B bench/table.py --check
    ok 'an altered table is found' stale
    ok 'pictures are those of the results' here python3 -B bench/plots.py --check
    ok 'links lead somewhere' here python3 -B tests/repository/check_links.py $documents
    ok 'broken links are found' here broken
    ok 'examples with other output are found' here different
    ok 'examples print what README.md and docs/guide.md show' here python3 -B tests/repository/check_examples.py "$build/bin" \
        README.md docs/guide.md
else skip 'tables, pictures, links and examples: no python3'; fi
ok 'documents that sources name are there' here named
ok 'README.md says what inflation does before it shows figures' here explains_first
ok 'README.md says which programs were run in place of mcl' here clients_named
ok 'README.md needs no awk' here no_awk
ok 'the page on performance is short' here lines 300 docs/performance.md
ok 'pages of the notebook are short' here lines 400 $pages
ok 'at most twenty-five pages' [ "$(wc -w <<<"$pages")" -le 25 ]
ok 'pictures are small' here small 60000 docs/plots
ok 'unwanted prose is found' here unwanted
ok 'prose' here scripts/prose-check

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
