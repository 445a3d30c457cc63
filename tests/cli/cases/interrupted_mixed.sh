# Ctrl-C ends a search over several kinds of node with what is known, and 130.
# compare: match
timeout --foreground --preserve-status -s INT 1 "$ndplan_path" suggest --model llama-3.1-405b --cluster 1024x8xh100+512x8xa100+512x8xh200 --threads 1 -q >known
status=$?
grep -c . known
exit $status
