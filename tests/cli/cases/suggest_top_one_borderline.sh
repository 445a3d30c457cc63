# A list of one that is borderline still names the best plan that surely fits.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --global-batch 64 --top 1
