# A plus with nothing behind it.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100+
