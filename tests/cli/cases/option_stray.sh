# A stray argument.
ndplan suggest llama-3.1-8b --cluster 2x8xh100
