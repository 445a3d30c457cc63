# The whole training state of 8B does not fit one GPU: exit 1.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster h100 --layout dp_shard=1 -q
