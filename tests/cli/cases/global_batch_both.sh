# Two ways to say the batch.
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --global-batch 64 --global-batch-tokens 262144
