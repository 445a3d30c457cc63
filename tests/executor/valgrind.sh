#!/bin/sh
# Whole runs of 16 ranks under valgrind: nothing that was not written or is no longer alive is read, nothing is lost.
#   valgrind.sh WHOLE_RUNS POISON    the programs built from test_whole_runs.c and test_poison.c
# The second reads such memory on purpose, and valgrind must say so: buffers live in one arena a rank, of which it only
# knows what executor/poison_internal.h tells it. Exit 77 without valgrind.
set -u
command -v valgrind >/dev/null 2>&1 || exit 77

# ranks wait for each other: threads take turns
check() {
    valgrind --quiet --fair-sched=yes --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect,possible \
        --errors-for-leak-kinds=definite,indirect,possible "$@"
}

check "$1" || exit 1
echo "$1: clean"
log=$(mktemp) || exit 1
check "$2" >"$log" 2>&1
status=$?
unaddressable=$(grep -c 'Invalid read' "$log")
undefined=$(grep -c 'uninitialised' "$log")
rm -f "$log"
echo "$2: status $status, $unaddressable places that read freed memory, $undefined that use what nobody wrote"
if [ "$status" -eq 9 ] && [ "$undefined" -gt 0 ]; then
    [ "$unaddressable" -gt 0 ] && exit 0
    echo "no header valgrind/memcheck.h when this was built: valgrind sees no buffers" >&2
fi
exit 1
