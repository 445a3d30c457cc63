# The fewest GPUs that surely hold 70B, and what may on fewer.
# compare: match
ndplan suggest --model llama-3.1-70b --cluster 8x8xh100 --objective gpus
