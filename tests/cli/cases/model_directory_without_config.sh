# A directory without config.json.
mkdir empty
ndplan suggest --model empty --cluster 2x8xh100
