# One GPU: nothing is divided, and the report says so.
# compare: match
ndplan estimate --model gpt2 --cluster h100 --layout dp_shard=1
