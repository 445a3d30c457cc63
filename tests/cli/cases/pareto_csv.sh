# The sizes are in the column gpus.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --global-batch 64 --pareto --csv --top 5 | cut -d, -f1-2,60-
