# A framework that was named speaks by its own rule.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout pp=2,dp_shard=8 --framework accelerate
