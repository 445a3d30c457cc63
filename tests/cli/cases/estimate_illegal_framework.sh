# A framework refuses what it cannot run.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout pp=2,dp_shard=8 --framework accelerate
