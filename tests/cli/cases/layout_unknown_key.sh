# A typo in a key.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dpshard=16,micro_bacth=1
