# Tokens that are no whole number of sequences.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq-len 4096 --global-batch-tokens 1000000
