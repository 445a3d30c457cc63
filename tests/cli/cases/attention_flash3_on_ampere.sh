# flash3 needs Hopper.
ndplan suggest --model llama-3.1-8b --cluster 8xa100 --attention flash3
