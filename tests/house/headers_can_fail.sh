#!/bin/sh
# headers_can_fail.sh C_COMPILER SCRATCH
# headers.sh finds a header that needs another one, and one without an include guard.
compiler=$1
scratch=$2
here=$(dirname "$0")
rm -rf "$scratch"
mkdir -p "$scratch/core" || exit 1

must_fail() {
    printf '%s\n' "$1" >"$scratch/core/bad.h"
    if sh "$here/headers.sh" c "$compiler" "$scratch" >/dev/null 2>&1; then
        echo "accepted: $1"
        exit 1
    fi
}

must_fail 'int64_t nd_bad_count(void);'
must_fail 'typedef struct nd_bad { int x; } nd_bad;'
printf '#ifndef A\n#define A\nint nd_good(void);\n#endif\n' >"$scratch/core/bad.h"
sh "$here/headers.sh" c "$compiler" "$scratch" || exit 1
sh "$here/headers.sh" c "" "$scratch"
[ $? -eq 77 ] || exit 1
rm -rf "$scratch"
