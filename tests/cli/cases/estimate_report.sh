# The full report of the layout of the guide: every section, every term.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --seq-len 8192 --layout dp_replicate=2,dp_shard=2,cp=2,tp=2,micro_batch=1,recompute=full
