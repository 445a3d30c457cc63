# A micro-batch that does not divide the batch is a rule, not a usage error; a smaller one keeps the batch.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=8,tp=2,micro_batch=3 --global-batch 16
