# An anchor is of one kind.
ndplan suggest --model llama-3.1-8b --cluster 8xh100+8xa100 --anchor step_s=1,dp_shard=16
