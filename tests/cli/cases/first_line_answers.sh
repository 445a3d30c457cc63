# The first line of each report is its answer.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 | head -n 1
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --objective memory -q | head -n 1
ndplan suggest --model llama-3.1-8b --cluster 8xh100 --pareto | head -n 1
ndplan suggest --model llama-3.1-8b --cluster 8xh100 --objective cost --price 2 | head -n 1
ndplan suggest --model llama-3.1-70b --cluster 8xa100 | head -n 1
ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 | head -n 1
ndplan max --model llama-3.1-8b --cluster 8xh100 --of seq-len | head -n 1
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over gpus --to 64 | head -n 1
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over gpus --values 8,16 --layout dp_shard=8 | head -n 1
ndplan sweep --model llama-3.1-70b --cluster h100 --over seq-len --values 1024,2048 | head -n 1
