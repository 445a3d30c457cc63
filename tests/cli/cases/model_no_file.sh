# A config.json that does not exist.
ndplan suggest --model ./config.json --cluster 2x8xh100
