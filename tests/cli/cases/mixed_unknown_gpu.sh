# The part that is not known is named.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100+8xa1000
