# Every command line shown in docs/CLI.md works: exit status 0, or 1 where the answer is no.
awk '/^\$ ndplan / { sub(/^\$ ndplan /, ""); line = $0
                     while (line ~ /\\$/) { sub(/\\$/, "", line); getline more; line = line more }
                     print line }' "$DATA/../../../docs/CLI.md" >commands
[ "$(wc -l <commands)" -ge 5 ] || echo "too few commands found"
while read -r arguments; do
    ndplan $arguments >/dev/null || [ $? -eq 1 ] || echo "failed: ndplan $arguments"
done <commands
