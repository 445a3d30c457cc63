# CSV of an illegal layout: no rows, the reason on stderr.
# compare: match
ndplan estimate --model llama-3.1-8b --cluster 8x8xh100 --layout tp=64 --csv
