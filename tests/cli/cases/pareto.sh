# What step time, memory and GPUs trade for one another.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --global-batch 64 --pareto
