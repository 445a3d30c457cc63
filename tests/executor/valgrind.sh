#!/bin/sh
# Whole runs of 16 ranks under valgrind: nothing that was not written or is no longer alive is read, nothing is lost.
#   valgrind.sh WHOLE_RUNS POISON KNOWS
# The programs built from test_whole_runs.c and test_poison.c; KNOWS is yes when valgrind/memcheck.h was there.
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
freed=$(grep -c 'Invalid read' "$log")
unwritten=$(grep -c 'uninitialised' "$log")
rm -f "$log"
if [ "$freed" -eq 0 ] && [ "$unwritten" -eq 0 ]; then
    if [ "$3" = yes ]; then
        echo "$2: valgrind sees nothing of what is wrong there" >&2
        exit 1
    fi
    echo "$2: built without valgrind/memcheck.h, so valgrind sees the arena and not the buffers in it"
    exit 0
fi
echo "$2: $freed reads of freed memory and $unwritten uses of what nobody wrote are seen"
[ "$status" -eq 9 ] && [ "$freed" -gt 0 ] && [ "$unwritten" -gt 0 ]
