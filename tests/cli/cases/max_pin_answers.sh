# A pinned micro-batch answers one of three questions; the others are asked.
# compare: match
ndplan max --model llama-3.1-8b --cluster 8xh100 --pin micro_batch=2
