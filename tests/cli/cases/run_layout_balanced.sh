# A balanced split needs a cluster.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout pp=2,split=balanced
