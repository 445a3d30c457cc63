# The three limits of a model on a node, each with its layout and what goes further.
# compare: match
ndplan max --model llama-3.1-8b --cluster 8xh100
