# GPUs that are no power of two.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 3x8xh100 --global-batch 48 --top 2
