# After -- everything is an argument.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 -- --json
