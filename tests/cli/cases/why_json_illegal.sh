# JSON of a layout that is not legal.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout tp=2 --json
