# The same in JSON.
# compare: match
ndplan sweep --model llama-3.1-8b --cluster 2x8xh100 --over nic --from 400 --to 3200 --json
