# A timeline that cannot be written: nothing is printed and no file appears.
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout pp=2,dp_shard=8,grad_accum=8 --trace no/such/t.json
