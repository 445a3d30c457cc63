# The first says what makes it first, and what bounds it.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=16,sharding=zero2 | tr -s " \n" " "
