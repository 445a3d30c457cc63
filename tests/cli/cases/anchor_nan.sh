# Not a number is no step.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64 --layout dp_shard=16,micro_batch=1 --anchor step_s=nan
