# /dev/null is no config.
ndplan suggest --model /dev/null --cluster 2x8xh100
