# A run of another layout and batch scales the estimate and leaves its batch.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout tp=2,dp_shard=8,micro_batch=2 --anchor step_s=4.5,dp_shard=16,micro_batch=1,grad_accum=4
