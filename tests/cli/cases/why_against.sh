# Two layouts, factor by factor, in place of a search; another batch is scaled to the same tokens.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=16,recompute=full --against dp_shard=16,micro_batch=2,grad_accum=2
