# A layout whose degrees leave GPUs out: the rule first, then the nearest legal layout with its estimate.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout tp=2,micro_batch=1
