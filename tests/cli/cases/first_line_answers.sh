# The first line of each report is its answer.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 | sed -n 1p
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --objective memory -q | sed -n 1p
ndplan suggest --model llama-3.1-8b --cluster 8xh100 --pareto | sed -n 1p
ndplan suggest --model llama-3.1-8b --cluster 8xh100 --objective cost --price 2 | sed -n 1p
ndplan suggest --model llama-3.1-70b --cluster 8xa100 | sed -n 1p
ndplan estimate --model llama-3.1-8b --cluster 8xh100 --layout dp_shard=8 | sed -n 1p
ndplan max --model llama-3.1-8b --cluster 8xh100 --of seq-len | sed -n 1p
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over gpus --to 64 | sed -n 1p
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over gpus --values 8,16 --layout dp_shard=8 | sed -n 1p
ndplan sweep --model llama-3.1-70b --cluster h100 --over seq-len --values 1024,2048 | sed -n 1p
