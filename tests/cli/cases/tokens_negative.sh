# A run cannot have fewer than no tokens.
ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 --tokens=-5
