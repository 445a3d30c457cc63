# An empty file.
: >config.json
ndplan suggest --model ./config.json --cluster 2x8xh100
