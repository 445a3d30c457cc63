# A batch that the layout cannot divide names the nearest.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dp_shard=16,micro_batch=2 --global-batch 63
