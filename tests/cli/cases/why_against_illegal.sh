# What is compared with must have a step time.
ndplan why --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 --against tp=8,ep=2
