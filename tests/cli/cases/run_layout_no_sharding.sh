# dp_shard without sharding.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout dp_shard=2,sharding=none
