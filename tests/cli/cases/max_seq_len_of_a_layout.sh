# The longest sequence of one layout: what helps it are the modes that a search would have tried.
# compare: match
ndplan max --model llama-3.1-8b --cluster 8xh100 --of seq-len --layout dp_shard=8
