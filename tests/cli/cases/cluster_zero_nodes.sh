# No nodes.
ndplan suggest --model llama-3.1-8b --cluster 0x8xh100
