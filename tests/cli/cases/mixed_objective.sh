# Throughput only.
ndplan suggest --model llama-3.1-8b --cluster 8xh100+8xa100 --objective memory
