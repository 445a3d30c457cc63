# Why more GPUs do not reduce memory: what twice each degree leaves of each term.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=16 -v
