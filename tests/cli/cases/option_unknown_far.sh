# An option that is near to nothing.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --frobnicate
