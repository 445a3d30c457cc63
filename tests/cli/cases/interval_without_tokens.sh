# A checkpoint interval of no run.
ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 --checkpoint-interval 30m
