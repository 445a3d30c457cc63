# One row for each value in base units; empty figures where nothing fits.
# compare: match
ndplan sweep --model llama-3.1-8b --cluster 2x8xh100 --over gpus --values 1,8 --csv
