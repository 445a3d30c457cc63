# A sequence longer than the model allows is a note, not an error.
# compare: match
ndplan estimate --model gpt2 --cluster h100 --layout dp_shard=1 --seq-len 2048
