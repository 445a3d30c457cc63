# Ranks are right and the model forbids it.
# compare: match
ndplan why --model llama-3.1-8b --cluster 64x1xh100 --layout tp=64
