# One layout is one row.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dp_shard=16 --csv
