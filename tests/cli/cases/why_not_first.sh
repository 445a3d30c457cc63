# Its place, the better variant, and the terms by which it loses, with the collective and the link behind them.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_shard=2,tp=8,micro_batch=1
