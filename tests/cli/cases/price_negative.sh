# A negative price.
ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 --tokens 1T --price=-2
