# No price is known for a cluster of one's own counts.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --global-batch 64 --objective cost
