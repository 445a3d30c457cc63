# A pin that no way can meet.
ndplan suggest --model llama-3.1-8b --cluster 8xh100+8xa100 --pin tp=3
