# Pins that need more GPUs than there are.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --pin tp=8,pp=8
