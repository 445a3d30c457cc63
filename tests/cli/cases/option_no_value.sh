# A value is missing at the end.
ndplan suggest --cluster 2x8xh100 --model
