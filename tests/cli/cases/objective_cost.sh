# The cheapest size of a cluster whose price is known; instances are rented whole.
# compare: match
ndplan suggest --model llama-3.1-8b --cluster p5.48xlarge:4 --global-batch 64 --objective cost --tokens 1T
