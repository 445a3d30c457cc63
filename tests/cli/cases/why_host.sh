# What is offloaded must fit the host.
# compare: match
ndplan why --model llama-3.1-405b --cluster 8xh100 --layout dp_shard=8,offload=params,recompute=full
