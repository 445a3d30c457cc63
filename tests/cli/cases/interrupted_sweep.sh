# Ctrl-C ends a sweep with what is known, and 130. (In the background `timeout` signals twice, its child and its group;
# the second one kills, as it should.)
# compare: match
timeout --foreground --preserve-status -s INT 1 "$ndplan_path" sweep --model deepseek-v3 --cluster 2048x8xh200 --over gpus --threads 1 -q >known
