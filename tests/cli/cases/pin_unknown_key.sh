# A typo in a pinned key.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --pin dp_shrad=8
