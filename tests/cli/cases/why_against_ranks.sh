# What is compared with must be of this cluster.
ndplan why --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 --against dp_shard=4
