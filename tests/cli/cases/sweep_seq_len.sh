# Longer sequences; the last ones do not fit.
# compare: match
ndplan sweep --model llama-3.1-8b --cluster 8xh100 --over seq-len --from 65536 --to 1048576 --pin micro_batch=1
