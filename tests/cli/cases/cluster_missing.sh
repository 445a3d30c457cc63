# Without a cluster.
ndplan suggest --model llama-3.1-8b
