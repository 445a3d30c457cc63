# Offload is estimated but not executed.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout dp_shard=2,offload=optimizer
