# A rate that no link reaches is no advice.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 2x8xh100 --layout dp_shard=8,tp=2 --seq-len 8192 --global-batch 64
ndplan sweep --model llama-3.1-70b --cluster 8xh100 --over gpus --values 16,32 -q
