# --trace is not in this version.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dp_shard=16 --trace t.json
