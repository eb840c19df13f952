#!/bin/sh
# Files, functions and folders stay small: at most 700 lines a file, 80 lines a function, 25 files a folder, and lines of C
# and CUDA have at most 120 characters. Data, results and golden files do not count. Lists every offender.
cd "$(dirname "$0")/../.." || exit 1
MOST_LINES=700 MOST_FUNCTION=80 MOST_FILES=25 MOST_CHARACTERS=120
failed=0 passed=0

sources() { git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' '*.py' '*.sh' Makefile scripts; }

check() { # check WHAT OFFENDERS: passes if there are none
    if [ -n "$2" ]; then
        printf '%s:\n%s\n' "$1" "$2"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

check "files of more than $MOST_LINES lines" "$(sources | while IFS= read -r file; do
    lines=$(wc -l <"$file")
    [ "$lines" -le "$MOST_LINES" ] || echo "$file: $lines"
done)"

# A function of C begins with { and ends with } in the first column; a table does not begin so.
check "functions of more than $MOST_FUNCTION lines" "$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' |
    xargs awk -v most="$MOST_FUNCTION" 'FNR == 1 { begin = 0 }
        /^[a-zA-Z_].*\(/ && !/;$/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name); head = FNR }
        /^\{/ { begin = head ? head : FNR }
        /^\}/ { if (begin && FNR - begin + 1 > most) printf "%s %s: %d\n", FILENAME, name, FNR - begin + 1
                begin = head = 0 }')"

# A byte of a character of UTF-8 but its first, 200 to 277 in octal, is no character.
check "lines of more than $MOST_CHARACTERS characters" "$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' '*.hpp' '*.inc' |
    LC_ALL=C xargs awk -v most="$MOST_CHARACTERS" 'length($0) > most {
        line = $0; gsub(/[\200-\277]/, "", line)
        if (length(line) > most) print FILENAME ":" FNR ": " length(line) }')"

check "folders of more than $MOST_FILES files" "$(git ls-files | grep -vE '^(data|bench/results|tests/golden|tests/fuzz/corpus)/' |
    sed 's|[^/]*$||' | sort | uniq -c | awk -v most="$MOST_FILES" '$1 > most { print ($2 ? $2 : "./") ": " $1 }')"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
