# recompute=full is among the changes shown wherever it ranks; what trains something else comes last.
# compare: match
ndplan why --model llama-3.1-8b --cluster 2xa100-40gb --layout dp_shard=2,micro_batch=4 --global-batch 8
