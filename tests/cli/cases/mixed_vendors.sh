# Collectives of two vendors do not talk to each other.
ndplan suggest --model llama-3.1-8b --cluster 8xh100+8xmi300x
