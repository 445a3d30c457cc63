# A model nobody knows suggests the nearest.
ndplan suggest --model llama-3.1-9b --cluster 2x8xh100
