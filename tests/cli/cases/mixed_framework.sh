# What the software cannot do is said with its rule.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 8xh100+8xa100 --framework deepspeed
