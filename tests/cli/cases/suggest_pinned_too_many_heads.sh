# A pin that no layout can obey is an answer with its reason.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 8x8xh100 --pin tp=64
