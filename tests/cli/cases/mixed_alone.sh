# A kind that is too slow to wait for: the other one alone, and how to see it in full.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster 8xb200+8xv100-32gb --precision fp16
