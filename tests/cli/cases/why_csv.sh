# An answer has no rows.
ndplan why --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 --csv
