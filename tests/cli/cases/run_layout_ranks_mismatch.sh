# --ranks says what the layout has.
cp "$DATA/../../executor/data/dense.json" dense.json
ndplan run --model dense.json --layout tp=2 --ranks 4
