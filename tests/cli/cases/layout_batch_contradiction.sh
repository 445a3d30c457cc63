# Batch and accumulation that contradict each other.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dp_shard=16,grad_accum=2 --global-batch 64
