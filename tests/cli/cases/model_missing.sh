# Without a model.
ndplan suggest --cluster 2x8xh100
