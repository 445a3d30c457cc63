# Machine output: base units, stable keys.
# compare: match
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout dp_replicate=2,dp_shard=2,cp=2,tp=2 --ranks 16 --steps 3 --verify --json
