# Of a given batch only divisors can be a micro-batch; the next one says why not.
# compare: match
ndplan max --model llama-3.1-8b --cluster 8xh100 --of micro-batch --global-batch 64 --layout dp_shard=8,recompute=full
