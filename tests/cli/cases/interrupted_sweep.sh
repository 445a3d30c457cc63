# Ctrl-C ends a sweep with what is known, and 130.
# compare: match
timeout --preserve-status -s INT 1 "$ndplan_path" sweep --model deepseek-v3 --cluster 2048x8xh200 --over gpus --threads 1 -q >known
