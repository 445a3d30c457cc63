# 32 GPUs are taken as one node, with a word about it.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 32xh100 --layout dp_shard=32
