# A batch that no layout of the framework divides: the rule and the nearest batch.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --global-batch 7 --framework pytorch-ddp
