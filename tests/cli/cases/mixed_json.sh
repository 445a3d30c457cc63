# JSON: every way with its layout, times and the memory of each kind.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 8xh100+8xa100 --json | sed "s/,/,\n/g"
