# Ranked by memory, the explanation is about memory.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100 --objective memory --top 3
