# More GPUs than there are.
ndplan suggest --model llama-3.1-8b --cluster 99999999999999999999x8xh100
