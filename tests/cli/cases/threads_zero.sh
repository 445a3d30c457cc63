# Threads are a count.
ndplan suggest --model llama-3.1-8b --cluster 8xh100 --threads 0
