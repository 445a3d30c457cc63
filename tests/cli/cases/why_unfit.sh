# What takes the memory, which degree divides it, the smallest change and all others.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=16,micro_batch=4
