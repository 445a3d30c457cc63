# Not only the first rule that is broken, but every one after it.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout pp=2,tp=3,dp_shard=2 --framework accelerate
