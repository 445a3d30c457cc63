# Every command line shown in the documents works, and its output has the lines that are shown: figures are masked, since
# they follow the calibrations, and a line "..." leaves lines out to the end of the block.
for document in README.md docs/CLI.md docs/ACCURACY.md docs/EXECUTOR.md; do
    # one file per block: its command on the first line, then what is shown of its output
    awk -v document="$(basename "$document" .md)" '
        /^```/ { inside = !inside; file = ""; next }
        inside && /^\$ ndplan / {
            sub(/^\$ ndplan /, "")
            while (/\\$/) { sub(/\\$/, ""); line = $0; getline; sub(/^ +/, ""); $0 = line $0 }
            file = document "." ++count ".block"
        }
        inside && file != "" { print >file }
    ' "$DATA/../../../$document"
done
mask() {
    sed -E '/^The times mean little: /d; /^The constants are of another/,/\.$/d; s/[-+]?[0-9][0-9.,]*/0/g; s/\b0 (us|ms|s)\b/0 s/g; s/ +/ /g; s/^ //; s/ $//'
}
cp "$DATA/few_runs.csv" runs.csv # the measured runs of the documents
cp "$DATA/machine.json" .        # and constants of a machine, so that the documents need not measure this one
mkdir -p tests/executor && cp -r "$DATA/../../executor/data" tests/executor/
blocks=0
for block in *.block; do
    arguments=$(head -n 1 "$block")
    blocks=$((blocks + 1))
    # shellcheck disable=SC2086 # a list of words
    ndplan $arguments >out 2>/dev/null || [ $? -eq 1 ] || echo "failed: ndplan $arguments"
    tail -n +2 "$block" | sed '/^\.\.\.$/,$d' | mask >expected
    mask <out | head -n "$(wc -l <expected)" >actual
    cmp -s expected actual || {
        echo "$block: ndplan $arguments"
        diff expected actual
    }
done
[ "$blocks" -ge 8 ] || echo "only $blocks blocks found"
