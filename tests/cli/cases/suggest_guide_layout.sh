# The layout of the guide is in the list when it is pinned.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64 --pin dp_replicate=2,dp_shard=2,cp=2,tp=2 --top 3
