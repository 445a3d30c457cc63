# A price of nothing.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --global-batch 64 --price 0
