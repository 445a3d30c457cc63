# JSON of a layout that fits and is not the first.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=2,tp=8 --json | tr -d " \n"
