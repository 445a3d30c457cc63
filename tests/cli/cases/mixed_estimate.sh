# Estimate takes one kind of node.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100+4x8xa100 --layout dp_shard=48
