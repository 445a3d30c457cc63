#!/bin/sh
# headers.sh c|c++ COMPILER ROOT
# Every public header compiles by itself, twice in one file, without warnings. Exit 77: no compiler.
language=$1
compiler=$2
root=$3
if [ -z "$compiler" ]; then
    echo "skipped: there is no $language compiler"
    exit 77
fi
case $language in
c) flags="-std=c17 -Wstrict-prototypes" ;;
*) flags="-std=c++17" ;;
esac
cd "$root" || exit 1
checked=0
failed=0
for folder in core models topologies frameworks program cost_model planner reports executor; do
    [ -d "$folder" ] || continue
    for header in $(find "$folder" -name '*.h' ! -name '*_internal.h' | sort); do
        checked=$((checked + 1))
        printf '#include "%s"\n#include "%s"\nextern int nd_not_empty;\n' "$header" "$header" |
            $compiler -x "$language" $flags -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror -I. \
                -fsyntax-only - || {
            echo "$header does not compile alone as $language"
            failed=$((failed + 1))
        }
    done
done
echo "$checked headers, $failed failed"
[ "$checked" -gt 0 ] && [ "$failed" -eq 0 ]
