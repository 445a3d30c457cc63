# The best layout on each number of GPUs, and where it changes.
# compare: match
ndplan sweep --model llama-3.1-8b --cluster 2x8xh100 --over gpus --from 1 --to 64
