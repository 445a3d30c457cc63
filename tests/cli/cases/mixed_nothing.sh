# Nothing fits in any way: exit 1, and why each way fails.
# compare: match
ndplan suggest --model llama-3.1-405b --cluster 8xh100+8xa100 --quiet
