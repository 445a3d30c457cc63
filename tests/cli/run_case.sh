#!/bin/sh
# run_case.sh NDPLAN CASE.sh: runs a golden command line and compares it with CASE.golden.
#
# CASE.sh is a shell snippet that ends in one `ndplan ...`; it runs in an empty folder, and $DATA is the folder of
# test inputs. The golden file holds the exit status, stdout and stderr:
#
#   exit 2
#   --- stdout
#   --- stderr
#   ndplan: unknown option '--sequence'; did you mean '--seq-len'?
#
# A snippet with the line "# compare: match" has regular expressions (extended, whole lines) in the golden file
# instead: each must match a line of the output, in this order, lines between them do not matter, and a section without
# any must be empty. That is for reports whose figures follow the calibrations.
#
# The version of the program reads VERSION. ND_UPDATE_GOLDEN=1 rewrites the golden files of exact cases.
set -u
ndplan_path=$1
case_file=$2
golden=${case_file%.sh}.golden
DATA=$(dirname "$case_file")/../data
DATA=$(cd "$DATA" && pwd)
case_file=$(cd "$(dirname "$case_file")" && pwd)/$(basename "$case_file")
golden=${case_file%.sh}.golden
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/cwd"
cd "$work/cwd" || exit 1
unset COLUMNS NO_COLOR
export LC_ALL=C DATA

ndplan() {
    "$ndplan_path" "$@"
}
(. "$case_file") >"$work/stdout" 2>"$work/stderr"
status=$?

section() { # FILE NAME: the lines of one section of a golden file
    awk -v want="--- $2" '/^--- / { on = ($0 == want); next } on' "$1"
}

# A new version must not change the goldens.
version=$("$ndplan_path" --version | awk '{ print $2 }')
[ -n "$version" ] || {
    echo "$ndplan_path --version printed no version"
    exit 1
}
for name in stdout stderr; do
    awk -v version="$version" '{
        while ((at = index($0, version)) > 0) {
            $0 = substr($0, 1, at - 1) "VERSION" substr($0, at + length(version))
        }
        print
    }' "$work/$name" >"$work/masked" && mv "$work/masked" "$work/$name"
done

{
    echo "exit $status"
    echo "--- stdout"
    cat "$work/stdout"
    echo "--- stderr"
    cat "$work/stderr"
} >"$work/actual"

if ! grep -q '^# compare: match$' "$case_file"; then
    if [ "${ND_UPDATE_GOLDEN:-}" = 1 ]; then
        cp "$work/actual" "$golden"
    fi
    diff -u "$golden" "$work/actual"
    exit
fi

[ "$(head -n 1 "$golden")" = "exit $status" ] || {
    echo "expected $(head -n 1 "$golden"), got exit $status"
    cat "$work/actual"
    exit 1
}
for name in stdout stderr; do
    section "$golden" $name >"$work/patterns"
    if [ ! -s "$work/patterns" ] && [ -s "$work/$name" ]; then
        echo "$name should be empty:"
        cat "$work/$name"
        exit 1
    fi
    awk -v patterns="$work/patterns" '
        BEGIN { count = 0; next_one = 0; while ((getline line < patterns) > 0) { want[count++] = line } }
        next_one < count && $0 ~ ("^" want[next_one] "$") { next_one++ }
        END { if (next_one < count) { print "no line matches (in order): " want[next_one]; exit 1 } }
    ' "$work/$name" || {
        cat "$work/actual"
        exit 1
    }
done
