# More TP than heads: rule, numbers, nearest legal value, exit 1.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 8x8xh100 --layout tp=64
