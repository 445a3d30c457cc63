# The batch follows from grad_accum when it is not given.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dp_shard=16,micro_batch=2,grad_accum=3
