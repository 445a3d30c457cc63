# CSV: a header and a hundred rows.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --csv | wc -l
