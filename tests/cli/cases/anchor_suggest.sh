# The plans of a machine that is slower than the built-in constants say.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64 --top 2 --anchor step_s=4.5,dp_shard=16,micro_batch=1
