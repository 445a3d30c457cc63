# A typo in an option suggests the nearest.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --seq_length 8192
