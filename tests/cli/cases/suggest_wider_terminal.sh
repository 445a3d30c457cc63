# A wider terminal shows more columns.
# compare: match
COLUMNS=160 ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --top 3
