# Base units and every layout.
# compare: match
ndplan max --model llama-3.1-8b --cluster 8xh100 --json
