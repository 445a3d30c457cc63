# --ranks alone is no layout.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --ranks 4
