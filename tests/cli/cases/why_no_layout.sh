# There is nothing to ask about.
ndplan why --model llama-3.1-8b --cluster 8xh100
