# Where no one or two changes suffice, the layout that a search finds.
# compare: match
ndplan why --model llama-3.1-405b --cluster 32x8xh100 --layout dp_replicate=256 --seq-len 8192 -q
