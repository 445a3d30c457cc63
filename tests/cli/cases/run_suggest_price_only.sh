# Without tokens a price tells what a million of them cost.
# compare: match
COLUMNS=120 ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --price 2 --top 3
