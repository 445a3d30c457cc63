# What cannot run was not measured.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --global-batch 64 --layout dp_shard=16,micro_batch=1 --anchor step_s=4.5,dp_shard=8,ep=2,tp=2
