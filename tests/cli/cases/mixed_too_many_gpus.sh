# The sum has a limit.
ndplan suggest --model llama-3.1-8b --cluster 65536x16xh100+8xa100
