# A value is missing before the next option.
ndplan suggest --model --cluster 2x8xh100
