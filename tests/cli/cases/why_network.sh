# A network too slow: the rate that the collective has, and the one at which it would be hidden.
# compare: match
ndplan why --model llama-3.1-8b --cluster "$DATA/slow_network.json" --seq-len 8192 --layout dp_shard=16,micro_batch=1,recompute=full | tr -s " \n" " "
