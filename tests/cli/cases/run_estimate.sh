# The whole run, with the price of the instance, its date and its source.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster p5.48xlarge:4 --seq-len 8192 --layout dp_shard=32,grad_accum=4 --tokens 1T
