# A framework that nobody knows suggests the nearest.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --framework acelerate
