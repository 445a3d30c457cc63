# One GPU is a cluster, too.
# compare: match
ndplan suggest --model gpt2 --cluster h100 --top 2
