# Equal nodes named apart are one cluster of them.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 8xh100+8xh100 --top 1
