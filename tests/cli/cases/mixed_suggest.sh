# Two kinds of node: the three ways, best first, and where the stages are.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100+4x8xa100
