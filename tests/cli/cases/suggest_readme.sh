# The main job: a ranked table with what was assumed, why the first is first, and what was refused.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 2x8xh100
