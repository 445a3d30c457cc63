# An empty value.
ndplan suggest --model= --cluster 2x8xh100
